//! The bytes of the transport headers.
//!
//! ```text
//!        0        1        2        3
//!    0 | opcode | SE M pad(2) TVer(4) | partition key   |
//!    4 | F B reserved(6) | destination queue pair       |
//!    8 | A reserved(7)   | packet sequence number       |
//!   12 | reserved, SRQ (XRC requests only)              |
//!   .. | RETH, AtomicETH, DETH or AETH; then ImmDt, IETH or AtomicAckETH
//! ```
//!
//! Encoding writes reserved bits as zero; decoding ignores them (IBTA vol. 1, 9.2). Both run once per simulated packet
//! under `--check-wire`, so neither allocates.

use softfabric_units::{Msn, PartitionKey, Psn, Qpn};
use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Aeth, AtomicEth, Bth, Deth, Extension, Reth, Syndrome, TransportHeader};
use super::opcode::{ExtensionKind, Opcode};
use crate::bytes::{put, take};
use crate::error::DecodeError;

const SOLICITED: u8 = 0x80;
const MIGRATED: u8 = 0x40;
const PAD_SHIFT: u8 = 4;
const VERSION_MASK: u8 = 0x0f;
const FECN: u32 = 1 << 31;
const BECN: u32 = 1 << 30;
const ACKNOWLEDGE: u32 = 1 << 31;
const LOW_24: u32 = 0x00ff_ffff;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawBth {
    opcode: u8,
    flags: u8,
    partition: U16,
    congestion_destination: U32,
    acknowledge_psn: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawReth {
    address: U64,
    rkey: U32,
    length: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawAtomic {
    address: U64,
    rkey: U32,
    swap_or_add: U64,
    compare: U64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawDeth {
    qkey: U32,
    source: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawAeth {
    syndrome_msn: U32,
}

/// Extension headers that come in pairs.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Pair<A, B> {
    first: A,
    second: B,
}

impl TransportHeader {
    /// The most bytes that the headers of one packet take: BTH, XRCETH and AtomicETH.
    pub const MAX_LENGTH: usize = Bth::LENGTH + 4 + 28;

    /// The headers of a CNP: tells the sender behind `destination` to slow down (IBTA annex A17.9).
    pub const fn congestion_notification(destination: Qpn, partition: PartitionKey) -> Self {
        Self {
            bth: Bth {
                opcode: Opcode::CNP,
                solicited: false,
                migrated: false,
                pad: 0,
                partition,
                fecn: false,
                becn: true,
                destination,
                acknowledge: false,
                psn: Psn::new(0),
            },
            extension: Extension::Notification,
            xrc_srq: 0,
        }
    }

    /// The length of BTH and extension headers in bytes.
    #[inline]
    pub const fn length(&self) -> usize {
        let xrc = if self.bth.opcode.has_xrc() { 4 } else { 0 };
        Bth::LENGTH + xrc + self.extension.kind().length()
    }

    /// Whether the extension headers are those that the opcode asks for, and `xrc_srq` is zero where no XRCETH is.
    pub fn is_consistent(&self) -> bool {
        self.extension.kind() == self.bth.opcode.extension()
            && (self.bth.opcode.has_xrc() || self.xrc_srq == 0)
    }

    /// Writes the headers to the start of `bytes` and returns how many bytes they took.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`TransportHeader::length`].
    #[inline]
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        debug_assert!(
            self.is_consistent(),
            "{:?} with {:?} and SRQ {}",
            self.bth.opcode,
            self.extension,
            self.xrc_srq
        );
        let mut at = put(bytes, 0, &self.bth.to_raw());
        if self.bth.opcode.has_xrc() {
            at = put(bytes, at, &U32::new(self.xrc_srq & LOW_24));
        }
        match self.extension {
            Extension::None => at,
            Extension::Reth(reth) => put(bytes, at, &reth.to_raw()),
            Extension::RethImmediate(reth, data) => put(
                bytes,
                at,
                &Pair {
                    first: reth.to_raw(),
                    second: U32::new(data),
                },
            ),
            Extension::Immediate(data) | Extension::Invalidate(data) => {
                put(bytes, at, &U32::new(data))
            }
            Extension::Aeth(aeth) => put(bytes, at, &aeth.to_raw()),
            Extension::AethAtomic(aeth, original) => put(
                bytes,
                at,
                &Pair {
                    first: aeth.to_raw(),
                    second: U64::new(original),
                },
            ),
            Extension::Atomic(atomic) => put(bytes, at, &atomic.to_raw()),
            Extension::Deth(deth) => put(bytes, at, &deth.to_raw()),
            Extension::DethImmediate(deth, data) => put(
                bytes,
                at,
                &Pair {
                    first: deth.to_raw(),
                    second: U32::new(data),
                },
            ),
            Extension::Notification => put(bytes, at, &[0_u8; 16]),
        }
    }

    /// Reads the headers at the start of `bytes`, and how many bytes they take. What follows is the payload.
    ///
    /// # Errors
    /// If the bytes end too early, the opcode is not in the table, or the transport version is not 0.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), DecodeError> {
        let raw: RawBth = take(bytes, 0, "BTH")?;
        let bth = Bth::from_raw(&raw)?;
        let mut at = Bth::LENGTH;
        let mut xrc_srq = 0;
        if bth.opcode.has_xrc() {
            xrc_srq = take::<U32>(bytes, at, "XRCETH")?.get() & LOW_24;
            at += 4;
        }
        let kind = bth.opcode.extension();
        let extension = match kind {
            ExtensionKind::None => Extension::None,
            ExtensionKind::Reth => Extension::Reth(Reth::from_raw(&take(bytes, at, "RETH")?)),
            ExtensionKind::RethImmediate => {
                let raw: Pair<RawReth, U32> = take(bytes, at, "RETH and ImmDt")?;
                Extension::RethImmediate(Reth::from_raw(&raw.first), raw.second.get())
            }
            ExtensionKind::Immediate => {
                Extension::Immediate(take::<U32>(bytes, at, "ImmDt")?.get())
            }
            ExtensionKind::Invalidate => {
                Extension::Invalidate(take::<U32>(bytes, at, "IETH")?.get())
            }
            ExtensionKind::Aeth => Extension::Aeth(Aeth::from_raw(&take(bytes, at, "AETH")?)),
            ExtensionKind::AethAtomic => {
                let raw: Pair<RawAeth, U64> = take(bytes, at, "AETH and AtomicAckETH")?;
                Extension::AethAtomic(Aeth::from_raw(&raw.first), raw.second.get())
            }
            ExtensionKind::Atomic => {
                Extension::Atomic(AtomicEth::from_raw(&take(bytes, at, "AtomicETH")?))
            }
            ExtensionKind::Deth => Extension::Deth(Deth::from_raw(&take(bytes, at, "DETH")?)),
            ExtensionKind::DethImmediate => {
                let raw: Pair<RawDeth, U32> = take(bytes, at, "DETH and ImmDt")?;
                Extension::DethImmediate(Deth::from_raw(&raw.first), raw.second.get())
            }
            ExtensionKind::Notification => {
                take::<[u8; 16]>(bytes, at, "the reserved bytes of a CNP")?;
                Extension::Notification
            }
        };
        let header = Self {
            bth,
            extension,
            xrc_srq,
        };
        Ok((header, at + kind.length()))
    }
}

impl Bth {
    /// Its length in bytes.
    pub const LENGTH: usize = 12;

    #[inline]
    fn to_raw(self) -> RawBth {
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        let flags = (u8::from(self.solicited) << 7)
            | (u8::from(self.migrated) << 6)
            | ((self.pad & 3) << PAD_SHIFT);
        RawBth {
            opcode: self.opcode.code(),
            flags,
            partition: U16::new(self.partition.0),
            congestion_destination: U32::new(
                flag(self.fecn, FECN) | flag(self.becn, BECN) | self.destination.as_u32(),
            ),
            acknowledge_psn: U32::new(flag(self.acknowledge, ACKNOWLEDGE) | self.psn.as_u32()),
        }
    }

    #[inline]
    fn from_raw(raw: &RawBth) -> Result<Self, DecodeError> {
        let Some(opcode) = Opcode::from_code(raw.opcode) else {
            return Err(DecodeError::Value {
                what: "BTH opcode",
                offset: 0,
                found: u64::from(raw.opcode),
                needed: "an opcode of RC, UC, UD, XRC or CNP",
            });
        };
        if raw.flags & VERSION_MASK != 0 {
            return Err(DecodeError::Value {
                what: "BTH transport version",
                offset: 1,
                found: u64::from(raw.flags & VERSION_MASK),
                needed: "0",
            });
        }
        let congestion_destination = raw.congestion_destination.get();
        let acknowledge_psn = raw.acknowledge_psn.get();
        Ok(Self {
            opcode,
            solicited: raw.flags & SOLICITED != 0,
            migrated: raw.flags & MIGRATED != 0,
            pad: (raw.flags >> PAD_SHIFT) & 3,
            partition: PartitionKey(raw.partition.get()),
            fecn: congestion_destination & FECN != 0,
            becn: congestion_destination & BECN != 0,
            destination: Qpn::new(congestion_destination),
            acknowledge: acknowledge_psn & ACKNOWLEDGE != 0,
            psn: Psn::new(acknowledge_psn),
        })
    }
}

impl Extension {
    /// Which extension headers these are.
    #[inline]
    pub const fn kind(&self) -> ExtensionKind {
        match self {
            Self::None => ExtensionKind::None,
            Self::Reth(_) => ExtensionKind::Reth,
            Self::RethImmediate(..) => ExtensionKind::RethImmediate,
            Self::Immediate(_) => ExtensionKind::Immediate,
            Self::Invalidate(_) => ExtensionKind::Invalidate,
            Self::Aeth(_) => ExtensionKind::Aeth,
            Self::AethAtomic(..) => ExtensionKind::AethAtomic,
            Self::Atomic(_) => ExtensionKind::Atomic,
            Self::Deth(_) => ExtensionKind::Deth,
            Self::DethImmediate(..) => ExtensionKind::DethImmediate,
            Self::Notification => ExtensionKind::Notification,
        }
    }
}

impl Reth {
    #[inline]
    fn to_raw(self) -> RawReth {
        RawReth {
            address: U64::new(self.address),
            rkey: U32::new(self.rkey),
            length: U32::new(self.length),
        }
    }

    #[inline]
    fn from_raw(raw: &RawReth) -> Self {
        Self {
            address: raw.address.get(),
            rkey: raw.rkey.get(),
            length: raw.length.get(),
        }
    }
}

impl AtomicEth {
    #[inline]
    fn to_raw(self) -> RawAtomic {
        RawAtomic {
            address: U64::new(self.address),
            rkey: U32::new(self.rkey),
            swap_or_add: U64::new(self.swap_or_add),
            compare: U64::new(self.compare),
        }
    }

    #[inline]
    fn from_raw(raw: &RawAtomic) -> Self {
        Self {
            address: raw.address.get(),
            rkey: raw.rkey.get(),
            swap_or_add: raw.swap_or_add.get(),
            compare: raw.compare.get(),
        }
    }
}

impl Deth {
    #[inline]
    fn to_raw(self) -> RawDeth {
        RawDeth {
            qkey: U32::new(self.qkey),
            source: U32::new(self.source.as_u32()),
        }
    }

    #[inline]
    fn from_raw(raw: &RawDeth) -> Self {
        Self {
            qkey: raw.qkey.get(),
            source: Qpn::new(raw.source.get()),
        }
    }
}

impl Aeth {
    #[inline]
    fn to_raw(self) -> RawAeth {
        let syndrome = u32::from(self.syndrome.to_byte()) << 24;
        RawAeth {
            syndrome_msn: U32::new(syndrome | self.msn.as_u32()),
        }
    }

    #[inline]
    fn from_raw(raw: &RawAeth) -> Self {
        let [syndrome, ..] = raw.syndrome_msn.to_bytes();
        Self {
            syndrome: Syndrome::from_byte(syndrome),
            msn: Msn::new(raw.syndrome_msn.get()),
        }
    }
}
