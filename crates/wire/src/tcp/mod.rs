//! TCP (RFC 9293): the header, its options, and the checksum over it, the addresses and the payload.
//!
//! ```text
//!    0 | source port              | destination port       |
//!    4 | sequence number                                    |
//!    8 | acknowledgement number                             |
//!   12 | offset(4) 0(3) flags(9)  | window                  |
//!   16 | checksum                 | urgent pointer          |
//!   20 | options: 0 to 40 bytes, to a multiple of 4          |
//! ```
//!
//! ```
//! use std::net::Ipv4Addr;
//!
//! use softfabric_wire::Data;
//! use softfabric_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, TcpPacket};
//!
//! let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
//! let header = TcpHeader {
//!     source_port: 49152,
//!     destination_port: 5201,
//!     sequence: 7,
//!     acknowledgement: 0,
//!     flags: TcpFlags::SYN,
//!     window: 65535,
//!     checksum: 0,
//!     urgent: 0,
//!     options: TcpOptions { maximum_segment: Some(1460), ..TcpOptions::default() },
//! };
//! let packet = TcpPacket { header, payload: Data::EMPTY }.with_checksum(from.into(), to.into());
//! let mut bytes = vec![0; packet.length()];
//! packet.encode(&mut bytes);
//! let found = TcpPacket::decode(&bytes)?;
//! assert_eq!(found, packet);
//! assert!(found.checksum_is_right(from.into(), to.into()));
//! # Ok::<(), softfabric_wire::DecodeError>(())
//! ```

mod flags;
mod options;
mod packet;
#[cfg(test)]
mod tests;

pub use flags::TcpFlags;
pub use options::{SackBlocks, TcpOptions, Timestamps};
pub use packet::TcpPacket;

use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::bytes::{put, split, take};
use crate::error::DecodeError;

/// A TCP header. Its length follows from its options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpHeader {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The number of the first byte of payload, or of SYN.
    pub sequence: u32,
    /// The number that is expected next, where `flags` has ACK.
    pub acknowledgement: u32,
    /// SYN, ACK and the others.
    pub flags: TcpFlags,
    /// How much the sender may be sent, shifted right by its window scale, except with SYN (RFC 7323, 2.2).
    pub window: u16,
    /// The checksum as it stands; see [`TcpPacket::with_checksum`].
    pub checksum: u16,
    /// Where urgent data ends, where `flags` has URG.
    pub urgent: u16,
    /// What comes after the fixed part.
    pub options: TcpOptions,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct RawTcp {
    source_port: U16,
    destination_port: U16,
    sequence: U32,
    acknowledgement: U32,
    offset_and_flags: U16,
    window: U16,
    checksum: U16,
    urgent: U16,
}

/// The three bits between offset and flags that are sent as zeros (RFC 9293, 3.1, but for AE of RFC 9768); headers with others
/// are refused, which is stricter than the RFC.
const RESERVED: u16 = 0x0e00;

impl TcpHeader {
    /// The fixed part, in bytes.
    pub const FIXED: usize = 20;
    /// The longest header, in bytes: an offset of 15 words.
    pub const LONGEST: usize = 60;

    /// Its length in bytes, options and their padding included.
    pub fn length(&self) -> usize {
        Self::FIXED + self.options.length()
    }

    /// Writes the header and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`TcpHeader::length`].
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        let length = self.length();
        let words = (length / 4) as u16;
        let raw = RawTcp {
            source_port: U16::new(self.source_port),
            destination_port: U16::new(self.destination_port),
            sequence: U32::new(self.sequence),
            acknowledgement: U32::new(self.acknowledgement),
            offset_and_flags: U16::new(words << 12 | self.flags.bits()),
            window: U16::new(self.window),
            checksum: U16::new(self.checksum),
            urgent: U16::new(self.urgent),
        };
        let at = put(bytes, 0, &raw);
        self.options.encode(&mut bytes[at..length]);
        length
    }

    /// Reads the header at the start of `bytes`, and its length.
    ///
    /// # Errors
    /// If the bytes end too early, the offset is below 5 words, a reserved bit is set, or an option that we know has
    /// another length than it must have. Options that we do not know are skipped.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), DecodeError> {
        let raw: RawTcp = take(bytes, 0, "TCP header")?;
        let word = raw.offset_and_flags.get();
        let length = usize::from(word >> 12) * 4;
        let wrong = |what, needed| DecodeError::Value {
            what,
            offset: 12,
            found: u64::from(word),
            needed,
        };
        if length < Self::FIXED {
            return Err(wrong("TCP data offset", "5 words or more"));
        }
        if word & RESERVED != 0 {
            return Err(wrong("TCP reserved bits", "zeros"));
        }
        let (header, _) = split(bytes, 0, length, "TCP options")?;
        let options = TcpOptions::decode(&header[Self::FIXED..]).map_err(|e| e.at(Self::FIXED))?;
        let header = Self {
            source_port: raw.source_port.get(),
            destination_port: raw.destination_port.get(),
            sequence: raw.sequence.get(),
            acknowledgement: raw.acknowledgement.get(),
            flags: TcpFlags::from_bits(word),
            window: raw.window.get(),
            checksum: raw.checksum.get(),
            urgent: raw.urgent.get(),
            options,
        };
        Ok((header, length))
    }
}
