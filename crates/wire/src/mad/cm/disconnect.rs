//! DREQ and DREP: either side ends the connection, the other agrees (IBTA vol. 1, 12.6.10 and 12.6.11).
//!
//! ```text
//!        DREQ                                   DREP
//!    0 | local communication id               | the same
//!    4 | remote communication id              | the same
//!    8 | the receiver's QPN (3) | reserved    | private data (224)
//!   12 | private data (220)
//! ```

use softfabric_units::Qpn;
use zerocopy::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::request::{join, parted};
use super::{Body, CommunicationId};
use crate::mad::PrivateData;

/// Ends a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DisconnectRequest {
    /// What the sender calls the connection.
    pub local: CommunicationId,
    /// What the receiver calls it.
    pub remote: CommunicationId,
    /// The receiver's queue pair: proves that the sender knows it.
    pub remote_qpn: Qpn,
    /// For the program at the other end.
    pub private_data: PrivateData<220>,
}

/// Agrees that the connection is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DisconnectReply {
    /// What the sender calls the connection.
    pub local: CommunicationId,
    /// What the receiver calls it.
    pub remote: CommunicationId,
    /// For the program that asked.
    pub private_data: PrivateData<224>,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawDisconnect {
    local: U32,
    remote: U32,
    qpn: U32,
    private_data: [u8; 220],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawDisconnectReply {
    local: U32,
    remote: U32,
    private_data: [u8; 224],
}

impl Body for DisconnectRequest {
    type Raw = RawDisconnect;
    const NAME: &'static str = "DREQ";

    fn to_raw(&self) -> RawDisconnect {
        RawDisconnect {
            local: U32::new(self.local.0),
            remote: U32::new(self.remote.0),
            qpn: join(self.remote_qpn.as_u32(), 0),
            private_data: *self.private_data.bytes(),
        }
    }

    fn from_raw(raw: &RawDisconnect) -> Self {
        let (qpn, _) = parted(raw.qpn);
        Self {
            local: CommunicationId(raw.local.get()),
            remote: CommunicationId(raw.remote.get()),
            remote_qpn: Qpn::new(qpn),
            private_data: PrivateData::new(raw.private_data),
        }
    }
}

impl Body for DisconnectReply {
    type Raw = RawDisconnectReply;
    const NAME: &'static str = "DREP";

    fn to_raw(&self) -> RawDisconnectReply {
        RawDisconnectReply {
            local: U32::new(self.local.0),
            remote: U32::new(self.remote.0),
            private_data: *self.private_data.bytes(),
        }
    }

    fn from_raw(raw: &RawDisconnectReply) -> Self {
        Self {
            local: CommunicationId(raw.local.get()),
            remote: CommunicationId(raw.remote.get()),
            private_data: PrivateData::new(raw.private_data),
        }
    }
}
