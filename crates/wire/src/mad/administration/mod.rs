//! Subnet administration: what programs ask the subnet manager (IBTA vol. 1, 15.2).
//!
//! ```text
//!    0 | MAD header (24)
//!   24 | RMPP version | type | response time(5) flags(3) | status
//!   28 | segment number          | payload length, or the end of the window
//!   36 | SM_Key (8)              | attribute offset (2), in 8 bytes | 0 (2)
//!   48 | component mask (8)
//!   56 | data (200)
//! ```
//!
//! A query gives a record, and in the component mask the fields that must be equal. One record answers a Get; a table of
//! any number, each padded to the attribute offset and cut into datagrams by [RMPP](rmpp), answers a GetTable.

mod query;
mod records;
pub mod rmpp;
#[cfg(test)]
mod rmpp_tests;

pub use query::{component, matches};
pub use records::{
    ForwardingRecord, GuidInfoRecord, InformInfo, InformInfoRecord, LevelMapRecord, LinkRecord,
    MemberRecord, MultiPathRecord, MulticastForwardingRecord, NodeRecord, PartitionTableRecord,
    PathRecord, PortInfoRecord, ServiceRecord, SmInfoRecord, SwitchInfoRecord, VlArbitrationRecord,
};

use rmpp::RmppHeader;

use super::table::data_as;
use super::{Attribute, ComponentMask, MAD_LENGTH, MadHeader, ManagementClass, Method};
use crate::bytes::take;
use crate::error::DecodeError;

/// The bytes that records may take in one datagram.
pub const ADMINISTRATION_DATA_LENGTH: usize = 200;

const CLASS_VERSION: u8 = 2;
const SM_KEY: usize = 36;
const ATTRIBUTE_OFFSET: usize = 44;
const COMPONENT_MASK: usize = 48;
/// Where the records start in a datagram.
pub const ADMINISTRATION_DATA: usize = 56;

/// A datagram of subnet administration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdministrationMad {
    /// What it does.
    pub method: Method,
    /// Zero, or what went wrong: see [`super::status`].
    pub status: u16,
    /// Relates a response to its request.
    pub transaction: u64,
    /// What the records are.
    pub attribute: u16,
    /// Unused by most records.
    pub modifier: u32,
    /// Which part of a longer message this is.
    pub rmpp: RmppHeader,
    /// The key of a trusted asker, or zero.
    pub sm_key: u64,
    /// How far apart records are, in 8 bytes; zero where there is no table.
    pub attribute_offset: u16,
    /// Which fields a query fixes.
    pub mask: ComponentMask,
    /// The record, or a part of a table.
    pub data: [u8; ADMINISTRATION_DATA_LENGTH],
}

impl AdministrationMad {
    /// Asks for what matches `record` in the fields of `mask`.
    pub fn query<A: Attribute>(method: Method, mask: ComponentMask, record: &A) -> Self {
        Self {
            method,
            status: 0,
            transaction: 0,
            attribute: A::ID,
            modifier: 0,
            rmpp: RmppHeader::NONE,
            sm_key: 0,
            attribute_offset: attribute_offset::<A>(),
            mask,
            data: record.to_bytes(),
        }
    }

    /// Reads one datagram; bytes after its 256 are ignored.
    ///
    /// # Errors
    /// If the bytes end too early, or the header is not one of subnet administration, version 2.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let header = MadHeader::decode(bytes)?;
        header.expect(ManagementClass::SUBNET_ADMINISTRATION, CLASS_VERSION)?;
        let offset = take(bytes, ATTRIBUTE_OFFSET, "attribute offset")?;
        Ok(Self {
            method: header.method,
            status: header.status,
            transaction: header.transaction,
            attribute: header.attribute,
            modifier: header.modifier,
            rmpp: RmppHeader::decode(bytes)?,
            sm_key: u64::from_be_bytes(take(bytes, SM_KEY, "SM_Key")?),
            attribute_offset: u16::from_be_bytes(offset),
            mask: ComponentMask(u64::from_be_bytes(take(
                bytes,
                COMPONENT_MASK,
                "component mask",
            )?)),
            data: take(bytes, ADMINISTRATION_DATA, "administration data")?,
        })
    }

    /// The datagram's bytes.
    pub fn encode(&self) -> [u8; MAD_LENGTH] {
        let mut bytes = [0; MAD_LENGTH];
        let header = MadHeader {
            class: ManagementClass::SUBNET_ADMINISTRATION,
            class_version: CLASS_VERSION,
            method: self.method,
            status: self.status,
            class_specific: 0,
            transaction: self.transaction,
            attribute: self.attribute,
            modifier: self.modifier,
        };
        header.encode(&mut bytes);
        self.rmpp.encode(&mut bytes[MadHeader::LENGTH..]);
        bytes[SM_KEY..][..8].copy_from_slice(&self.sm_key.to_be_bytes());
        bytes[ATTRIBUTE_OFFSET..][..2].copy_from_slice(&self.attribute_offset.to_be_bytes());
        bytes[COMPONENT_MASK..][..8].copy_from_slice(&self.mask.0.to_be_bytes());
        bytes[ADMINISTRATION_DATA..].copy_from_slice(&self.data);
        bytes
    }

    /// The data as a record `A`; `None` where the datagram carries another one.
    pub fn data_as<A: Attribute>(&self) -> Option<A> {
        data_as(self.attribute, &self.data)
    }
}

/// How far apart records of a table are, in 8 bytes.
pub const fn attribute_offset<A: Attribute>() -> u16 {
    A::LENGTH.div_ceil(8) as u16
}

/// The bytes of a table: records one after another, each padded to the attribute offset.
pub fn encode_table<A: Attribute>(records: &[A]) -> Vec<u8> {
    let each = usize::from(attribute_offset::<A>()) * 8;
    let mut bytes = vec![0; each * records.len()];
    for (record, bytes) in records.iter().zip(bytes.chunks_exact_mut(each)) {
        record.encode(bytes);
    }
    bytes
}

/// The records of a table whose records are `attribute_offset` × 8 bytes apart. A last part that is shorter than a record
/// is padding.
///
/// # Errors
/// If records of that distance cannot hold an `A`.
pub fn decode_table<A: Attribute>(
    bytes: &[u8],
    attribute_offset: u16,
) -> Result<Vec<A>, DecodeError> {
    let each = usize::from(attribute_offset) * 8;
    if each < A::LENGTH {
        return Err(DecodeError::Value {
            what: "attribute offset",
            offset: ATTRIBUTE_OFFSET,
            found: u64::from(attribute_offset),
            needed: "room for the record",
        });
    }
    let whole = bytes
        .chunks(each)
        .filter(|record| record.len() >= A::LENGTH);
    whole.map(A::decode).collect()
}
