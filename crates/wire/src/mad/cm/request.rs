//! REQ: the active side asks for a connection (IBTA vol. 1, 12.6.5).
//!
//! ```text
//!    0 | local communication id                                 |
//!    4 | reserved | vendor (3)                                  |
//!    8 | service id (8)                                         |
//!   16 | local CA GUID (8)                                      |
//!   24 | reserved                                               |
//!   28 | queue key                                              |
//!   32 | local QPN (3)                 | responder resources    |
//!   36 | local EECN (3)                | initiator depth        |
//!   40 | remote EECN (3)               | timeout(5) service(2) F|
//!   44 | starting PSN (3)              | timeout(5) retries(3)  |
//!   48 | partition key                 | MTU(4) R RNR(3) | CM retries(4) S ext(3) |
//!   52 | primary path (44)             96 | alternate path (44) |
//!  140 | private data (92)                                      |
//! ```

use softfabric_units::{Gid, Lid, PartitionKey, Psn, Qpn};
use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Body, CommunicationId, ServiceId};
use crate::infiniband::ServiceLevel;
use crate::ip::FlowLabel;
use crate::mad::{PrivateData, TimeoutCode};

/// Asks for a connection. "Local" is the sender's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectRequest {
    /// What the sender calls the connection.
    pub local: CommunicationId,
    /// The vendor of an enhanced connection establishment (24 bits), or zero.
    pub vendor: u32,
    /// What is asked for.
    pub service: ServiceId,
    /// The GUID of the sender's adapter.
    pub guid: u64,
    /// The queue key of a reliable datagram; zero otherwise.
    pub qkey: u32,
    /// The sender's queue pair.
    pub qpn: Qpn,
    /// How many RDMA reads and atomics of the receiver the sender takes at once.
    pub responder_resources: u8,
    /// How many of its own the sender wants to have under way.
    pub initiator_depth: u8,
    /// The sender's end-to-end context (reliable datagrams; 24 bits).
    pub local_context: Qpn,
    /// The receiver's end-to-end context (reliable datagrams; 24 bits).
    pub remote_context: Qpn,
    /// How soon the sender wants an answer.
    pub remote_response_timeout: TimeoutCode,
    /// What kind of queue pairs are joined.
    pub transport: TransportService,
    /// Whether the sender gives end-to-end credits.
    pub flow_control: bool,
    /// The first PSN that the receiver shall send.
    pub starting_psn: Psn,
    /// How soon the sender will answer.
    pub local_response_timeout: TimeoutCode,
    /// How often the receiver's queue pair repeats what is not acknowledged, 0–7.
    pub retries: u8,
    /// The partition of the connection.
    pub partition: PartitionKey,
    /// The MTU of the paths.
    pub mtu: PathMtuCode,
    /// Whether a reliable-datagram channel exists already.
    pub channel_exists: bool,
    /// How often to try again when the receiver is not ready, 0–7 (7: without end).
    pub rnr_retries: u8,
    /// How often the sender repeats its messages, 0–15.
    pub cm_retries: u8,
    /// Whether the sender's queue pair takes its receives from a shared queue.
    pub shared_receive_queue: bool,
    /// The way that the connection takes.
    pub primary: Path,
    /// The way to fall back to; all zeros where there is none.
    pub alternate: Path,
    /// For the program behind the service; starts with an [`IpHeader`](super::IpHeader) if the service is an IP port.
    pub private_data: PrivateData<92>,
}

/// One path of a request, as its sender sees it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Path {
    /// The sender's port; 0xffff on Ethernet.
    pub local_lid: Lid,
    /// The receiver's port; 0xffff on Ethernet.
    pub remote_lid: Lid,
    /// The sender's address.
    pub local_gid: Gid,
    /// The receiver's address.
    pub remote_gid: Gid,
    /// The flow that packets are labelled with.
    pub flow_label: FlowLabel,
    /// The static rate (6 bits; 0: that of the port).
    pub rate: u8,
    /// The byte of DSCP and ECN.
    pub traffic_class: u8,
    /// How many routers may forward packets.
    pub hop_limit: u8,
    /// The service level.
    pub service_level: ServiceLevel,
    /// Whether both ends are in one subnet.
    pub subnet_local: bool,
    /// How long to wait for an acknowledgement: the path's delay and the receiver's.
    pub ack_timeout: TimeoutCode,
}

/// What kind of queue pairs a request joins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TransportService {
    /// RC.
    Reliable,
    /// UC.
    Unreliable,
    /// RD.
    ReliableDatagram,
    /// XRC.
    ExtendedReliable,
    /// Another extended type (3 bits, not 1).
    Other(u8),
}

/// The 4-bit code of a path MTU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PathMtuCode(u8);

impl PathMtuCode {
    /// The MTU whose code is the low four bits of `code`: 1 is 256 bytes, 5 is 4096.
    pub const fn from_code(code: u8) -> Self {
        Self(code & 0xf)
    }

    /// 0–15.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The payload in bytes; `None` for codes that the standard reserves.
    pub const fn bytes(self) -> Option<usize> {
        match self.0 {
            1..=5 => Some(128 << self.0),
            _ => None,
        }
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawRequest {
    local: U32,
    vendor: U32,
    service: U64,
    guid: U64,
    reserved: U32,
    qkey: U32,
    qpn_resources: U32,
    context_depth: U32,
    context_timeout: U32,
    psn_timeout: U32,
    partition: U16,
    mtu_retries: u8,
    cm_retries: u8,
    primary: RawPath,
    alternate: RawPath,
    private_data: [u8; 92],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawPath {
    local_lid: U16,
    remote_lid: U16,
    local_gid: [u8; 16],
    remote_gid: [u8; 16],
    flow_rate: U32,
    traffic_class: u8,
    hop_limit: u8,
    level_local: u8,
    ack_timeout: u8,
}

/// A word of 24 bits and a byte.
pub(super) fn join(high: u32, low: u8) -> U32 {
    U32::new(high << 8 | u32::from(low))
}

/// The 24 bits and the byte of a word.
pub(super) fn parted(word: U32) -> (u32, u8) {
    (word.get() >> 8, word.get() as u8)
}

impl Body for ConnectRequest {
    type Raw = RawRequest;
    const NAME: &'static str = "REQ";

    fn to_raw(&self) -> RawRequest {
        let (transport, extended) = self.transport.bits();
        let context_timeout =
            self.remote_response_timeout.code() << 3 | transport << 1 | u8::from(self.flow_control);
        let cm_retries = self.cm_retries << 4 | u8::from(self.shared_receive_queue) << 3 | extended;
        RawRequest {
            local: U32::new(self.local.0),
            vendor: U32::new(self.vendor & 0xff_ffff),
            service: U64::new(self.service.0),
            guid: U64::new(self.guid),
            reserved: U32::ZERO,
            qkey: U32::new(self.qkey),
            qpn_resources: join(self.qpn.as_u32(), self.responder_resources),
            context_depth: join(self.local_context.as_u32(), self.initiator_depth),
            context_timeout: join(self.remote_context.as_u32(), context_timeout),
            psn_timeout: join(
                self.starting_psn.as_u32(),
                self.local_response_timeout.code() << 3 | (self.retries & 7),
            ),
            partition: U16::new(self.partition.0),
            mtu_retries: self.mtu.code() << 4
                | u8::from(self.channel_exists) << 3
                | (self.rnr_retries & 7),
            cm_retries,
            primary: self.primary.to_raw(),
            alternate: self.alternate.to_raw(),
            private_data: *self.private_data.bytes(),
        }
    }

    fn from_raw(raw: &RawRequest) -> Self {
        let (qpn, responder_resources) = parted(raw.qpn_resources);
        let (local_context, initiator_depth) = parted(raw.context_depth);
        let (remote_context, flags) = parted(raw.context_timeout);
        let (starting_psn, local) = parted(raw.psn_timeout);
        Self {
            local: CommunicationId(raw.local.get()),
            vendor: raw.vendor.get() & 0xff_ffff,
            service: ServiceId(raw.service.get()),
            guid: raw.guid.get(),
            qkey: raw.qkey.get(),
            qpn: Qpn::new(qpn),
            responder_resources,
            initiator_depth,
            local_context: Qpn::new(local_context),
            remote_context: Qpn::new(remote_context),
            remote_response_timeout: TimeoutCode::from_code(flags >> 3),
            transport: TransportService::from_bits(flags >> 1, raw.cm_retries),
            flow_control: flags & 1 != 0,
            starting_psn: Psn::new(starting_psn),
            local_response_timeout: TimeoutCode::from_code(local >> 3),
            retries: local & 7,
            partition: PartitionKey(raw.partition.get()),
            mtu: PathMtuCode::from_code(raw.mtu_retries >> 4),
            channel_exists: raw.mtu_retries & 8 != 0,
            rnr_retries: raw.mtu_retries & 7,
            cm_retries: raw.cm_retries >> 4,
            shared_receive_queue: raw.cm_retries & 8 != 0,
            primary: Path::from_raw(&raw.primary),
            alternate: Path::from_raw(&raw.alternate),
            private_data: PrivateData::new(raw.private_data),
        }
    }
}

impl TransportService {
    /// The two bits of the service, and the three of its extension.
    const fn bits(self) -> (u8, u8) {
        match self {
            Self::Reliable => (0, 0),
            Self::Unreliable => (1, 0),
            Self::ReliableDatagram => (2, 0),
            Self::ExtendedReliable => (3, 1),
            Self::Other(extended) => (3, extended & 7),
        }
    }

    const fn from_bits(service: u8, extended: u8) -> Self {
        match (service & 3, extended & 7) {
            (0, _) => Self::Reliable,
            (1, _) => Self::Unreliable,
            (2, _) => Self::ReliableDatagram,
            (_, 1) => Self::ExtendedReliable,
            (_, extended) => Self::Other(extended),
        }
    }
}

impl Path {
    fn to_raw(self) -> RawPath {
        RawPath {
            local_lid: U16::new(self.local_lid.0),
            remote_lid: U16::new(self.remote_lid.0),
            local_gid: self.local_gid.0,
            remote_gid: self.remote_gid.0,
            flow_rate: U32::new(self.flow_label.as_u32() << 12 | u32::from(self.rate & 0x3f)),
            traffic_class: self.traffic_class,
            hop_limit: self.hop_limit,
            level_local: self.service_level.as_u8() << 4 | u8::from(self.subnet_local) << 3,
            ack_timeout: self.ack_timeout.code() << 3,
        }
    }

    fn from_raw(raw: &RawPath) -> Self {
        let flow_rate = raw.flow_rate.get();
        Self {
            local_lid: Lid(raw.local_lid.get()),
            remote_lid: Lid(raw.remote_lid.get()),
            local_gid: Gid(raw.local_gid),
            remote_gid: Gid(raw.remote_gid),
            flow_label: FlowLabel::checked(flow_rate >> 12).unwrap_or_default(),
            rate: flow_rate as u8 & 0x3f,
            traffic_class: raw.traffic_class,
            hop_limit: raw.hop_limit,
            service_level: ServiceLevel::checked(raw.level_local >> 4).unwrap_or_default(),
            subnet_local: raw.level_local & 8 != 0,
            ack_timeout: TimeoutCode::from_code(raw.ack_timeout >> 3),
        }
    }
}
