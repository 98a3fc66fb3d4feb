//! REP, RTU, MRA and REJ: the answers to a REQ, and the answer to that (IBTA vol. 1, 12.6.6 to 12.6.9).
//!
//! ```text
//!        REP                           MRA, REJ
//!    0 | local communication id      | the same
//!    4 | remote communication id     | the same
//!    8 | queue key                   | stage(2) 0(6) | timeout(5) 0(3), or 0 length(7) | reason (REJ)
//!   12 | local QPN (3)   | vendor    | private data from byte 10 (MRA, 222);
//!   16 | local EECN (3)  | vendor    | additional information (72), private data (148) (REJ)
//!   20 | PSN (3)         | vendor
//!   24 | resources | depth | delay(5) failover(2) F | RNR(3) S 0(4)
//!   28 | local CA GUID (8)
//!   36 | private data (196)
//! ```

use softfabric_units::{Psn, Qpn};
use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::request::{join, parted};
use super::{Body, CommunicationId};
use crate::mad::{PrivateData, TimeoutCode};

/// Accepts a request. "Local" is the sender's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectReply {
    /// What the sender calls the connection.
    pub local: CommunicationId,
    /// What the receiver calls it.
    pub remote: CommunicationId,
    /// The queue key of a reliable datagram; zero otherwise.
    pub qkey: u32,
    /// The sender's queue pair.
    pub qpn: Qpn,
    /// The sender's end-to-end context (24 bits); the number of an XRC target otherwise, or zero.
    pub local_context: Qpn,
    /// The vendor of an enhanced connection establishment (24 bits), or zero.
    pub vendor: u32,
    /// The first PSN that the receiver shall send.
    pub starting_psn: Psn,
    /// How many RDMA reads and atomics of the receiver the sender takes at once.
    pub responder_resources: u8,
    /// How many of its own the sender will have under way.
    pub initiator_depth: u8,
    /// How long the sender may take to acknowledge.
    pub ack_delay: TimeoutCode,
    /// Whether the alternate path was taken: 0 yes, 1 failover is not supported, 2 the path was refused.
    pub failover: u8,
    /// Whether the sender gives end-to-end credits.
    pub flow_control: bool,
    /// How often to try again when the sender is not ready, 0–7 (7: without end).
    pub rnr_retries: u8,
    /// Whether the sender's queue pair takes its receives from a shared queue.
    pub shared_receive_queue: bool,
    /// The GUID of the sender's adapter.
    pub guid: u64,
    /// For the program that asked.
    pub private_data: PrivateData<196>,
}

/// The active side may send now; the passive side may too, from here on at the latest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadyToUse {
    /// What the sender calls the connection.
    pub local: CommunicationId,
    /// What the receiver calls it.
    pub remote: CommunicationId,
    /// For the program that accepted.
    pub private_data: PrivateData<224>,
}

/// "Your message has come; the answer takes up to `timeout` longer."
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiptAcknowledgement {
    /// What the sender calls the connection.
    pub local: CommunicationId,
    /// What the receiver calls it.
    pub remote: CommunicationId,
    /// Which message has come.
    pub stage: Stage,
    /// How much longer to wait.
    pub timeout: TimeoutCode,
    /// For the program that waits.
    pub private_data: PrivateData<222>,
}

/// Refuses what a message asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reject {
    /// What the sender calls the connection; zero if it never had a name for it.
    pub local: CommunicationId,
    /// What the receiver calls it.
    pub remote: CommunicationId,
    /// Which message is refused.
    pub stage: Stage,
    /// Why.
    pub reason: RejectReason,
    /// How many bytes of the additional information count, 0–72.
    pub information_length: u8,
    /// What would be accepted instead; its form depends on the reason.
    pub information: PrivateData<72>,
    /// For the program that is refused.
    pub private_data: PrivateData<148>,
}

/// Which message an MRA or REJ is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// The REQ.
    Request,
    /// The REP.
    Reply,
    /// Another: a LAP in an MRA, none at all in a REJ.
    Other,
    /// The value that the standard reserves.
    Reserved,
}

/// Why a message is refused (IBTA vol. 1, table 102).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RejectReason(pub u16);

impl RejectReason {
    /// No queue pair is left.
    pub const NO_QUEUE_PAIR: Self = Self(1);
    /// No end-to-end context is left.
    pub const NO_CONTEXT: Self = Self(2);
    /// Nothing of some other kind is left.
    pub const NO_RESOURCES: Self = Self(3);
    /// The sender waited too long for the answer.
    pub const TIMEOUT: Self = Self(4);
    /// The request cannot be done.
    pub const UNSUPPORTED: Self = Self(5);
    /// The receiver has no connection of that name.
    pub const INVALID_COMMUNICATION_ID: Self = Self(6);
    /// The names do not belong to one connection.
    pub const INVALID_COMMUNICATION_INSTANCE: Self = Self(7);
    /// Nobody offers the service.
    pub const INVALID_SERVICE_ID: Self = Self(8);
    /// The kind of queue pair does not suit the service.
    pub const INVALID_TRANSPORT_SERVICE: Self = Self(9);
    /// The queue pair of the request is connected already, as far as the receiver knows.
    pub const STALE_CONNECTION: Self = Self(10);
    /// There is no such reliable-datagram channel.
    pub const NO_CHANNEL: Self = Self(11);
    /// The primary path's address is not the receiver's.
    pub const INVALID_GID: Self = Self(12);
    /// The primary path's LID is not the receiver's.
    pub const INVALID_LID: Self = Self(13);
    /// The service level is not supported.
    pub const INVALID_SERVICE_LEVEL: Self = Self(14);
    /// The traffic class is not supported.
    pub const INVALID_TRAFFIC_CLASS: Self = Self(15);
    /// The hop limit is not supported.
    pub const INVALID_HOP_LIMIT: Self = Self(16);
    /// The rate is not supported.
    pub const INVALID_RATE: Self = Self(17);
    /// The alternate path's address is not the receiver's.
    pub const INVALID_ALTERNATE_GID: Self = Self(18);
    /// The request should go to another port; the information says which.
    pub const REDIRECTED: Self = Self(24);
    /// The MTU is not supported; the information says the greatest.
    pub const INVALID_MTU: Self = Self(26);
    /// Too many RDMA reads at once.
    pub const INSUFFICIENT_RESPONDER_RESOURCES: Self = Self(27);
    /// The program behind the service refuses; the private data are its own.
    pub const CONSUMER: Self = Self(28);
    /// The RNR retry count is refused.
    pub const INVALID_RNR_RETRIES: Self = Self(29);
    /// The sender has this very communication id already.
    pub const DUPLICATE_COMMUNICATION_ID: Self = Self(30);
    /// The class version is not supported.
    pub const INVALID_CLASS_VERSION: Self = Self(31);
    /// The flow label is refused.
    pub const INVALID_FLOW_LABEL: Self = Self(32);
    /// The enhanced connection establishment is not supported.
    pub const VENDOR_OPTION_NOT_SUPPORTED: Self = Self(35);
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawReply {
    local: U32,
    remote: U32,
    qkey: U32,
    qpn_vendor: U32,
    context_vendor: U32,
    psn_vendor: U32,
    responder_resources: u8,
    initiator_depth: u8,
    delay_failover: u8,
    rnr_srq: u8,
    guid: U64,
    private_data: [u8; 196],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawReady {
    local: U32,
    remote: U32,
    private_data: [u8; 224],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawReceipt {
    local: U32,
    remote: U32,
    stage: u8,
    timeout: u8,
    private_data: [u8; 222],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawReject {
    local: U32,
    remote: U32,
    stage: u8,
    length: u8,
    reason: U16,
    information: [u8; 72],
    private_data: [u8; 148],
}

impl Body for ConnectReply {
    type Raw = RawReply;
    const NAME: &'static str = "REP";

    fn to_raw(&self) -> RawReply {
        let [_, high, middle, low] = self.vendor.to_be_bytes();
        RawReply {
            local: U32::new(self.local.0),
            remote: U32::new(self.remote.0),
            qkey: U32::new(self.qkey),
            qpn_vendor: join(self.qpn.as_u32(), high),
            context_vendor: join(self.local_context.as_u32(), middle),
            psn_vendor: join(self.starting_psn.as_u32(), low),
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            delay_failover: self.ack_delay.code() << 3
                | (self.failover & 3) << 1
                | u8::from(self.flow_control),
            rnr_srq: self.rnr_retries << 5 | u8::from(self.shared_receive_queue) << 4,
            guid: U64::new(self.guid),
            private_data: *self.private_data.bytes(),
        }
    }

    fn from_raw(raw: &RawReply) -> Self {
        let (qpn, high) = parted(raw.qpn_vendor);
        let (local_context, middle) = parted(raw.context_vendor);
        let (starting_psn, low) = parted(raw.psn_vendor);
        Self {
            local: CommunicationId(raw.local.get()),
            remote: CommunicationId(raw.remote.get()),
            qkey: raw.qkey.get(),
            qpn: Qpn::new(qpn),
            local_context: Qpn::new(local_context),
            vendor: u32::from_be_bytes([0, high, middle, low]),
            starting_psn: Psn::new(starting_psn),
            responder_resources: raw.responder_resources,
            initiator_depth: raw.initiator_depth,
            ack_delay: TimeoutCode::from_code(raw.delay_failover >> 3),
            failover: raw.delay_failover >> 1 & 3,
            flow_control: raw.delay_failover & 1 != 0,
            rnr_retries: raw.rnr_srq >> 5,
            shared_receive_queue: raw.rnr_srq & 0x10 != 0,
            guid: raw.guid.get(),
            private_data: PrivateData::new(raw.private_data),
        }
    }
}

impl Body for ReadyToUse {
    type Raw = RawReady;
    const NAME: &'static str = "RTU";

    fn to_raw(&self) -> RawReady {
        RawReady {
            local: U32::new(self.local.0),
            remote: U32::new(self.remote.0),
            private_data: *self.private_data.bytes(),
        }
    }

    fn from_raw(raw: &RawReady) -> Self {
        Self {
            local: CommunicationId(raw.local.get()),
            remote: CommunicationId(raw.remote.get()),
            private_data: PrivateData::new(raw.private_data),
        }
    }
}

impl Body for ReceiptAcknowledgement {
    type Raw = RawReceipt;
    const NAME: &'static str = "MRA";

    fn to_raw(&self) -> RawReceipt {
        RawReceipt {
            local: U32::new(self.local.0),
            remote: U32::new(self.remote.0),
            stage: self.stage.bits(),
            timeout: self.timeout.code() << 3,
            private_data: *self.private_data.bytes(),
        }
    }

    fn from_raw(raw: &RawReceipt) -> Self {
        Self {
            local: CommunicationId(raw.local.get()),
            remote: CommunicationId(raw.remote.get()),
            stage: Stage::from_bits(raw.stage),
            timeout: TimeoutCode::from_code(raw.timeout >> 3),
            private_data: PrivateData::new(raw.private_data),
        }
    }
}

impl Body for Reject {
    type Raw = RawReject;
    const NAME: &'static str = "REJ";

    fn to_raw(&self) -> RawReject {
        RawReject {
            local: U32::new(self.local.0),
            remote: U32::new(self.remote.0),
            stage: self.stage.bits(),
            length: self.information_length << 1,
            reason: U16::new(self.reason.0),
            information: *self.information.bytes(),
            private_data: *self.private_data.bytes(),
        }
    }

    fn from_raw(raw: &RawReject) -> Self {
        Self {
            local: CommunicationId(raw.local.get()),
            remote: CommunicationId(raw.remote.get()),
            stage: Stage::from_bits(raw.stage),
            reason: RejectReason(raw.reason.get()),
            information_length: raw.length >> 1,
            information: PrivateData::new(raw.information),
            private_data: PrivateData::new(raw.private_data),
        }
    }
}

impl Stage {
    /// The top two bits of the byte.
    const fn bits(self) -> u8 {
        match self {
            Self::Request => 0x00,
            Self::Reply => 0x40,
            Self::Other => 0x80,
            Self::Reserved => 0xc0,
        }
    }

    const fn from_bits(byte: u8) -> Self {
        match byte >> 6 {
            0 => Self::Request,
            1 => Self::Reply,
            2 => Self::Other,
            _ => Self::Reserved,
        }
    }
}
