//! Management datagrams: the 256 bytes that queue pairs 0 and 1 exchange (IBTA vol. 1, 13.4).
//!
//! ```text
//!    0 | version 1 | class    | class version | method          |
//!    4 | status               | class specific                  |
//!    8 | transaction (8)                                        |
//!   16 | attribute            | reserved                        |
//!   20 | modifier                                               |
//!   24 | what class and attribute say (232)
//! ```
//!
//! [`subnet`] has the packets of subnet managers, [`administration`] those of whoever asks them, [`performance`] counters,
//! [`congestion`] congestion control, [`cm`] connections. A datagram is always whole: 256 bytes, in one packet.

pub mod administration;
#[cfg(test)]
mod attribute_tests;
pub mod cm;
mod codes;
pub mod congestion;
mod fields;
pub mod performance;
pub mod subnet;
pub(crate) mod table;

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub use codes::{
    ClassCapabilities, ComponentMask, ExtendedSpeeds, LaneCount, LinkSpeeds, LinkWidths,
    ManagerState, MtuCode, NodeType, PhysicalState, PortCapabilities, PortState, RateCode,
    Selector,
};
pub use fields::{PrivateData, TimeoutCode};
pub use table::{Attribute, FieldLayout};

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
    /// Congestion control.
    pub const CONGESTION_CONTROL: Self = Self(0x21);
    /// Subnet management by directed route.
    pub const SUBNET_DIRECTED: Self = Self(0x81);

    const fn name(self) -> &'static str {
        match self {
            Self::SUBNET_LID_ROUTED => "0x01 (subnet management by LID)",
            Self::SUBNET_ADMINISTRATION => "0x03 (subnet administration)",
            Self::PERFORMANCE => "0x04 (performance)",
            Self::COMMUNICATION => "0x07 (connection management)",
            Self::CONGESTION_CONTROL => "0x21 (congestion control)",
            Self::SUBNET_DIRECTED => "0x81 (subnet management by directed route)",
            _ => "another class",
        }
    }
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
    /// A notice that is passed on to who asked for such.
    pub const REPORT: Self = Self(0x06);
    /// Ends the repetition of a notice.
    pub const TRAP_REPRESS: Self = Self(0x07);
    /// The response to [`Method::GET`] and [`Method::SET`].
    pub const GET_RESPONSE: Self = Self(0x81);
    /// The response to [`Method::REPORT`].
    pub const REPORT_RESPONSE: Self = Self(0x86);
    /// Administration: asks for all records that match.
    pub const GET_TABLE: Self = Self(0x12);
    /// Administration: asks for the records that a packet meets on its way.
    pub const GET_TRACE: Self = Self(0x13);
    /// Administration: asks for what several records answer.
    pub const GET_MULTI: Self = Self(0x14);
    /// Administration: takes a record away.
    pub const DELETE: Self = Self(0x15);
    /// The response to [`Method::GET_TABLE`] and [`Method::GET_TRACE`].
    pub const GET_TABLE_RESPONSE: Self = Self(0x92);
    /// The response to [`Method::GET_MULTI`].
    pub const GET_MULTI_RESPONSE: Self = Self(0x94);
    /// The response to [`Method::DELETE`].
    pub const DELETE_RESPONSE: Self = Self(0x95);

    /// Whether it answers something.
    pub const fn is_response(self) -> bool {
        self.0 & 0x80 != 0 || self.0 == Self::TRAP_REPRESS.0
    }
}

/// What the low bits of a status say (IBTA vol. 1, 13.4.7); administration has codes of its own.
pub mod status {
    /// Busy: ask again later.
    pub const BUSY: u16 = 0x01;
    /// The version is not one of the agent's.
    pub const UNSUPPORTED_VERSION: u16 = 0x04;
    /// The agent has no such method.
    pub const UNSUPPORTED_METHOD: u16 = 0x08;
    /// The method does not go with this attribute.
    pub const UNSUPPORTED_ATTRIBUTE: u16 = 0x0c;
    /// A field, or the modifier, has a value that it cannot have.
    pub const INVALID_FIELD: u16 = 0x1c;
    /// Administration: no room.
    pub const NO_RESOURCES: u16 = 0x0100;
    /// Administration: the request is not sound.
    pub const INVALID_REQUEST: u16 = 0x0200;
    /// Administration: nothing matches.
    pub const NO_RECORDS: u16 = 0x0300;
    /// Administration: more than one record matches.
    pub const TOO_MANY_RECORDS: u16 = 0x0400;
    /// Administration: a GID is not valid, or not of the subnet.
    pub const INVALID_GID: u16 = 0x0500;
    /// Administration: the component mask lacks what the request needs.
    pub const INSUFFICIENT_COMPONENTS: u16 = 0x0600;
    /// Administration: the asker may not.
    pub const DENIED: u16 = 0x0700;
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

    /// Refuses other classes and versions.
    pub(crate) fn expect(&self, class: ManagementClass, version: u8) -> Result<(), DecodeError> {
        let value = |what, offset, found: u8, needed| DecodeError::Value {
            what,
            offset,
            found: u64::from(found),
            needed,
        };
        if self.class != class {
            return Err(value("MAD class", 1, self.class.0, class.name()));
        }
        if self.class_version != version {
            let needed = if version == 1 { "1" } else { "2" };
            return Err(value("MAD class version", 2, self.class_version, needed));
        }
        Ok(())
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
