//! Management datagrams: the 256 bytes that queue pairs 0 and 1 exchange (IBTA vol. 1, 13.4).
//!
//! ```text
//!    0 | version 1 | class    | class version | method          |
//!    4 | status               | class specific                  |
//!    8 | transaction (8)                                        |
//!   16 | attribute            | reserved                        |
//!   20 | modifier                                               |
//!   24 | what class and attribute say (232): see [`cm`] for connection management
//! ```
//!
//! A datagram is always whole: 256 bytes, in one packet.

pub mod cm;
mod fields;

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub use fields::{PrivateData, TimeoutCode};

use crate::bytes::{put, take};
use crate::error::DecodeError;

/// The length of every management datagram in bytes.
pub const MAD_LENGTH: usize = 256;

/// The only base version.
const BASE_VERSION: u8 = 1;

/// The queue key of QP 1: who sends to general services must know it (IBTA vol. 1, 10.2.5).
pub const GENERAL_SERVICES_QKEY: u32 = 0x8001_0000;

/// Which agent a datagram is for (IBTA vol. 1, table 110).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ManagementClass(pub u8);

impl ManagementClass {
    /// Subnet management by local identifier.
    pub const SUBNET_LID_ROUTED: Self = Self(0x01);
    /// Subnet administration.
    pub const SUBNET_ADMINISTRATION: Self = Self(0x03);
    /// Performance counters.
    pub const PERFORMANCE: Self = Self(0x04);
    /// Connection management.
    pub const COMMUNICATION: Self = Self(0x07);
    /// Subnet management by directed route.
    pub const SUBNET_DIRECTED: Self = Self(0x81);
}

/// What a datagram does (IBTA vol. 1, table 113). The top bit tells a response.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Method(pub u8);

impl Method {
    /// Asks for an attribute.
    pub const GET: Self = Self(0x01);
    /// Changes an attribute.
    pub const SET: Self = Self(0x02);
    /// A datagram that expects no response of its own.
    pub const SEND: Self = Self(0x03);
    /// A notice.
    pub const TRAP: Self = Self(0x05);
    /// Ends the repetition of a notice.
    pub const TRAP_REPRESS: Self = Self(0x07);
    /// The response to [`Method::GET`] and [`Method::SET`].
    pub const GET_RESPONSE: Self = Self(0x81);
}

/// The header that all management datagrams share (IBTA vol. 1, 13.4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MadHeader {
    /// Whom it is for.
    pub class: ManagementClass,
    /// The version of the class's messages.
    pub class_version: u8,
    /// What it does.
    pub method: Method,
    /// Zero, or what went wrong.
    pub status: u16,
    /// Two bytes of the class's own; hop pointer and count of directed routes.
    pub class_specific: u16,
    /// Relates a response to its request; the sender chooses it.
    pub transaction: u64,
    /// What the data are.
    pub attribute: u16,
    /// Which of several.
    pub modifier: u32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawHeader {
    base_version: u8,
    class: u8,
    class_version: u8,
    method: u8,
    status: U16,
    class_specific: U16,
    transaction: U64,
    attribute: U16,
    reserved: U16,
    modifier: U32,
}

impl MadHeader {
    /// Its length in bytes.
    pub const LENGTH: usize = 24;

    /// Writes the header to the start of `bytes` and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`MadHeader::LENGTH`].
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        let raw = RawHeader {
            base_version: BASE_VERSION,
            class: self.class.0,
            class_version: self.class_version,
            method: self.method.0,
            status: U16::new(self.status),
            class_specific: U16::new(self.class_specific),
            transaction: U64::new(self.transaction),
            attribute: U16::new(self.attribute),
            reserved: U16::ZERO,
            modifier: U32::new(self.modifier),
        };
        put(bytes, 0, &raw)
    }

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// If the bytes end too early or the base version is not 1.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let raw: RawHeader = take(bytes, 0, "MAD header")?;
        if raw.base_version != BASE_VERSION {
            return Err(DecodeError::Value {
                what: "MAD base version",
                offset: 0,
                found: u64::from(raw.base_version),
                needed: "1",
            });
        }
        Ok(Self {
            class: ManagementClass(raw.class),
            class_version: raw.class_version,
            method: Method(raw.method),
            status: raw.status.get(),
            class_specific: raw.class_specific.get(),
            transaction: raw.transaction.get(),
            attribute: raw.attribute.get(),
            modifier: raw.modifier.get(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rustfmt::skip]
    const BYTES: [u8; 24] = [
        1, 7, 2, 3,  0x80, 0x01, 0x12, 0x34,
        1, 2, 3, 4, 5, 6, 7, 8,
        0x00, 0x10, 0, 0,  0xde, 0xad, 0xbe, 0xef,
    ];

    #[test]
    fn header_bytes() {
        let header = MadHeader {
            class: ManagementClass::COMMUNICATION,
            class_version: 2,
            method: Method::SEND,
            status: 0x8001,
            class_specific: 0x1234,
            transaction: 0x0102_0304_0506_0708,
            attribute: 0x10,
            modifier: 0xdead_beef,
        };
        let mut bytes = [0xff; MadHeader::LENGTH];
        assert_eq!(header.encode(&mut bytes), 24);
        assert_eq!(bytes, BYTES);
        assert_eq!(MadHeader::decode(&bytes), Ok(header));
    }

    #[test]
    fn another_version_and_short_bytes_are_errors() {
        let mut bytes = BYTES;
        bytes[0] = 2;
        assert_eq!(
            MadHeader::decode(&bytes).unwrap_err().to_string(),
            "MAD base version at byte 0 is 0x2, needed 1"
        );
        assert_eq!(
            MadHeader::decode(&BYTES[..23]).unwrap_err().to_string(),
            "MAD header at byte 0 needs 24 bytes, found 23"
        );
    }
}
