//! LAP and APR: another path for a connection that stands (IBTA vol. 1, 12.8).
//!
//! ```text
//!        LAP                                              APR
//!    0 | local communication id                         | the same
//!    4 | remote communication id                        | the same
//!    8 | reserved                                       | information length | status | reserved
//!   12 | the receiver's QPN (3) | timeout(5) 0(3)       | additional information (72)
//!   16 | reserved
//!   20 | local LID              | remote LID
//!   24 | local GID (16), remote GID (16)
//!   56 | flow label(20) 0(4)    | traffic class
//!   60 | hop limit | 0(2) rate(6) | SL(4) L 0(3) | timeout(5) 0(3)
//!   64 | private data (168)                             | private data (148) at 84
//! ```

use softfabric_units::{Gid, Lid, Qpn};
use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::request::{Path, join, parted};
use super::{Body, CommunicationId};
use crate::infiniband::ServiceLevel;
use crate::ip::FlowLabel;
use crate::mad::{PrivateData, TimeoutCode};

/// Offers a path to fall back to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadAlternatePath {
    /// What the sender calls the connection.
    pub local: CommunicationId,
    /// What the receiver calls it.
    pub remote: CommunicationId,
    /// The receiver's queue pair.
    pub remote_qpn: Qpn,
    /// How soon the sender wants an answer.
    pub remote_response_timeout: TimeoutCode,
    /// The path.
    pub path: Path,
    /// For the program at the other end.
    pub private_data: PrivateData<168>,
}

/// Takes the path, or says why not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlternatePathResponse {
    /// What the sender calls the connection.
    pub local: CommunicationId,
    /// What the receiver calls it.
    pub remote: CommunicationId,
    /// How many bytes of the additional information count, 0–72.
    pub information_length: u8,
    /// Whether the path is loaded.
    pub status: AlternatePathStatus,
    /// What would be accepted instead.
    pub information: PrivateData<72>,
    /// For the program that offered.
    pub private_data: PrivateData<148>,
}

/// What became of an alternate path (IBTA vol. 1, table 117).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AlternatePathStatus(pub u8);

impl AlternatePathStatus {
    /// The path is loaded.
    pub const SUCCESS: Self = Self(0);
    /// The receiver has no connection of that name.
    pub const INVALID_COMMUNICATION_ID: Self = Self(1);
    /// The receiver cannot do this.
    pub const UNSUPPORTED: Self = Self(2);
    /// The receiver does not want it.
    pub const REJECTED: Self = Self(3);
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawLoad {
    local: U32,
    remote: U32,
    reserved: U32,
    qpn_timeout: U32,
    reserved_2: U32,
    local_lid: U16,
    remote_lid: U16,
    local_gid: [u8; 16],
    remote_gid: [u8; 16],
    flow_class: U32,
    hop_limit: u8,
    rate: u8,
    level_local: u8,
    ack_timeout: u8,
    private_data: [u8; 168],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawAlternate {
    local: U32,
    remote: U32,
    information_length: u8,
    status: u8,
    reserved: U16,
    information: [u8; 72],
    private_data: [u8; 148],
}

impl Body for LoadAlternatePath {
    type Raw = RawLoad;
    const NAME: &'static str = "LAP";

    fn to_raw(&self) -> RawLoad {
        let path = &self.path;
        RawLoad {
            local: U32::new(self.local.0),
            remote: U32::new(self.remote.0),
            reserved: U32::ZERO,
            qpn_timeout: join(
                self.remote_qpn.as_u32(),
                self.remote_response_timeout.code() << 3,
            ),
            reserved_2: U32::ZERO,
            local_lid: U16::new(path.local_lid.0),
            remote_lid: U16::new(path.remote_lid.0),
            local_gid: path.local_gid.0,
            remote_gid: path.remote_gid.0,
            flow_class: join(path.flow_label.as_u32() << 4, path.traffic_class),
            hop_limit: path.hop_limit,
            rate: path.rate & 0x3f,
            level_local: path.service_level.as_u8() << 4 | u8::from(path.subnet_local) << 3,
            ack_timeout: path.ack_timeout.code() << 3,
            private_data: *self.private_data.bytes(),
        }
    }

    fn from_raw(raw: &RawLoad) -> Self {
        let (qpn, timeout) = parted(raw.qpn_timeout);
        let (flow, traffic_class) = parted(raw.flow_class);
        Self {
            local: CommunicationId(raw.local.get()),
            remote: CommunicationId(raw.remote.get()),
            remote_qpn: Qpn::new(qpn),
            remote_response_timeout: TimeoutCode::from_code(timeout >> 3),
            path: Path {
                local_lid: Lid(raw.local_lid.get()),
                remote_lid: Lid(raw.remote_lid.get()),
                local_gid: Gid(raw.local_gid),
                remote_gid: Gid(raw.remote_gid),
                flow_label: FlowLabel::checked(flow >> 4).unwrap_or_default(),
                rate: raw.rate & 0x3f,
                traffic_class,
                hop_limit: raw.hop_limit,
                service_level: ServiceLevel::checked(raw.level_local >> 4).unwrap_or_default(),
                subnet_local: raw.level_local & 8 != 0,
                ack_timeout: TimeoutCode::from_code(raw.ack_timeout >> 3),
            },
            private_data: PrivateData::new(raw.private_data),
        }
    }
}

impl Body for AlternatePathResponse {
    type Raw = RawAlternate;
    const NAME: &'static str = "APR";

    fn to_raw(&self) -> RawAlternate {
        RawAlternate {
            local: U32::new(self.local.0),
            remote: U32::new(self.remote.0),
            information_length: self.information_length,
            status: self.status.0,
            reserved: U16::ZERO,
            information: *self.information.bytes(),
            private_data: *self.private_data.bytes(),
        }
    }

    fn from_raw(raw: &RawAlternate) -> Self {
        Self {
            local: CommunicationId(raw.local.get()),
            remote: CommunicationId(raw.remote.get()),
            information_length: raw.information_length,
            status: AlternatePathStatus(raw.status),
            information: PrivateData::new(raw.information),
            private_data: PrivateData::new(raw.private_data),
        }
    }
}
