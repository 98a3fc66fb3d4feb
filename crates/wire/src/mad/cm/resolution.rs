//! SIDR_REQ and SIDR_REP: which queue pair serves datagrams for a service (IBTA vol. 1, 12.11).
//!
//! ```text
//!        SIDR_REQ                             SIDR_REP
//!    0 | request id                         | request id
//!    4 | partition key | reserved           | status | information length | vendor, upper (2)
//!    8 | service id (8)                     | QPN (3)                     | vendor, lowest
//!   12 |                                    | service id (8)
//!   16 | private data (216)
//!   20 |                                    | queue key
//!   24 |                                    | additional information (72), private data (136)
//! ```

use softfabric_units::{PartitionKey, Qpn};
use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::request::{join, parted};
use super::{Body, CommunicationId, ServiceId};
use crate::mad::PrivateData;

/// Asks which queue pair serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolutionRequest {
    /// What the sender calls the request; of one number space with its connections.
    pub request: CommunicationId,
    /// The partition.
    pub partition: PartitionKey,
    /// What is asked for.
    pub service: ServiceId,
    /// For the program behind the service; starts with an [`IpHeader`](super::IpHeader) if the service is an IP port.
    pub private_data: PrivateData<216>,
}

/// Tells the queue pair, or why there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolutionReply {
    /// What the receiver called its request.
    pub request: CommunicationId,
    /// Whether the rest is of use.
    pub status: ResolutionStatus,
    /// How many bytes of the additional information count, 0–72.
    pub information_length: u8,
    /// The vendor of an enhanced connection establishment (24 bits), or zero.
    pub vendor: u32,
    /// Where datagrams go.
    pub qpn: Qpn,
    /// What was asked for.
    pub service: ServiceId,
    /// The queue key that datagrams need.
    pub qkey: u32,
    /// Where to ask instead; its form depends on the status.
    pub information: PrivateData<72>,
    /// For the program that asked.
    pub private_data: PrivateData<136>,
}

/// What became of a resolution (IBTA vol. 1, table 125).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ResolutionStatus(pub u8);

impl ResolutionStatus {
    /// The queue pair is valid.
    pub const SUCCESS: Self = Self(0);
    /// The service takes no datagrams.
    pub const UNSUPPORTED: Self = Self(1);
    /// The program behind the service refuses.
    pub const REJECTED: Self = Self(2);
    /// There is no queue pair.
    pub const NO_QUEUE_PAIR: Self = Self(3);
    /// Another port serves; the information says which.
    pub const REDIRECTED: Self = Self(4);
    /// The version is not supported.
    pub const UNSUPPORTED_VERSION: Self = Self(5);
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawResolution {
    request: U32,
    partition: U16,
    reserved: U16,
    service: U64,
    private_data: [u8; 216],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawResolutionReply {
    request: U32,
    status: u8,
    information_length: u8,
    vendor: U16,
    qpn_vendor: U32,
    service: U64,
    qkey: U32,
    information: [u8; 72],
    private_data: [u8; 136],
}

impl Body for ResolutionRequest {
    type Raw = RawResolution;
    const NAME: &'static str = "SIDR_REQ";

    fn to_raw(&self) -> RawResolution {
        RawResolution {
            request: U32::new(self.request.0),
            partition: U16::new(self.partition.0),
            reserved: U16::ZERO,
            service: U64::new(self.service.0),
            private_data: *self.private_data.bytes(),
        }
    }

    fn from_raw(raw: &RawResolution) -> Self {
        Self {
            request: CommunicationId(raw.request.get()),
            partition: PartitionKey(raw.partition.get()),
            service: ServiceId(raw.service.get()),
            private_data: PrivateData::new(raw.private_data),
        }
    }
}

impl Body for ResolutionReply {
    type Raw = RawResolutionReply;
    const NAME: &'static str = "SIDR_REP";

    fn to_raw(&self) -> RawResolutionReply {
        RawResolutionReply {
            request: U32::new(self.request.0),
            status: self.status.0,
            information_length: self.information_length,
            vendor: U16::new((self.vendor >> 8) as u16),
            qpn_vendor: join(self.qpn.as_u32(), self.vendor as u8),
            service: U64::new(self.service.0),
            qkey: U32::new(self.qkey),
            information: *self.information.bytes(),
            private_data: *self.private_data.bytes(),
        }
    }

    fn from_raw(raw: &RawResolutionReply) -> Self {
        let (qpn, vendor) = parted(raw.qpn_vendor);
        Self {
            request: CommunicationId(raw.request.get()),
            status: ResolutionStatus(raw.status),
            information_length: raw.information_length,
            vendor: u32::from(raw.vendor.get()) << 8 | u32::from(vendor),
            qpn: Qpn::new(qpn),
            service: ServiceId(raw.service.get()),
            qkey: raw.qkey.get(),
            information: PrivateData::new(raw.information),
            private_data: PrivateData::new(raw.private_data),
        }
    }
}
