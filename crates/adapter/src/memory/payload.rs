//! Payloads on their way: where the bytes of a packet are.
//!
//! ```text
//! Payload   what the device wants sent     pieces of this process · bytes of its own
//! Incoming  what the device is given       bytes · a payload of this process · pieces of another process
//! ```
//!
//! A payload's pieces are good while the device is locked: whoever keeps a packet longer copies its bytes.

use smallvec::SmallVec;
use softfabric_transport::{MemoryFault, NULL_REGION, Segment};

use super::{ProcessMemory, copy};

/// Contiguous bytes of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// The first byte.
    pub(crate) address: u64,
    /// How many.
    pub(crate) length: u32,
    /// How they are reached.
    pub(crate) reach: Reach,
}

/// How the bytes of a piece are reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// By their address.
    Direct,
    /// By the kernel, as they may be missing.
    Checked,
    /// There are none: they read as zeros, and what is written is gone.
    Null,
}

impl Piece {
    /// Takes the first `length` bytes off.
    #[inline]
    pub(super) fn split_off_front(&mut self, length: u32) -> Self {
        let first = Self { length, ..*self };
        self.address = self.address.wrapping_add(u64::from(length));
        self.length -= length;
        first
    }

    #[inline]
    pub(super) fn of(segment: Segment) -> Self {
        Self {
            address: segment.address,
            length: segment.length,
            reach: match segment.region {
                ProcessMemory::CHECKED => Reach::Checked,
                NULL_REGION => Reach::Null,
                _ => Reach::Direct,
            },
        }
    }
}

/// Bytes that the device keeps: inline data, and packets that wait for one before them. Few need no allocation.
pub type Captured = SmallVec<[u8; 64]>;

/// What a packet to send carries.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Pieces of registered memory.
    Pieces(Pieces),
    /// Bytes that were captured.
    Bytes(Captured),
}

/// Pieces of registered memory, in order.
#[derive(Clone, Debug, Default)]
pub struct Pieces(pub(crate) SmallVec<[Piece; 2]>);

impl Default for Payload {
    #[inline]
    fn default() -> Self {
        Self::Pieces(Pieces::default())
    }
}

impl Payload {
    /// Appends the bytes to `out`.
    ///
    /// # Errors
    /// If a page is missing.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) -> Result<(), MemoryFault> {
        match self {
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Pieces(pieces) => {
                for piece in &pieces.0 {
                    let start = out.len();
                    out.resize(start + piece.length as usize, 0);
                    copy::read(*piece, &mut out[start..])?;
                }
            }
        }
        Ok(())
    }
}

/// What a packet that arrived carries.
#[derive(Clone, Copy, Debug)]
pub enum Incoming<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// A payload of this very process: one queue pair sends to another of the same device.
    Here(&'a Payload),
}

impl Incoming<'_> {
    /// Appends the bytes to `out`.
    ///
    /// # Errors
    /// If a page is missing.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) -> Result<(), MemoryFault> {
        match self {
            Self::Bytes(bytes) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            Self::Here(payload) => payload.append_to(out),
        }
    }
}
