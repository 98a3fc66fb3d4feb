//! What is to be sent.

use softfabric_units::{Bytes, Class, Span, Time};

use super::{GroupId, JobId, NodeId, PortId};

/// The index of a flow in `Plan::flows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FlowId(pub u32);

impl FlowId {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How many flows a plan may have: numbers of queue pairs have 24 bits (IBTA vol. 1, 9.2), of which 0 and 1 are taken.
pub const MOST_FLOWS: u64 = (1 << 24) - 2;

/// The index of a trigger in `Plan::triggers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TriggerId(pub u32);

/// Bytes from one host to another over a queue pair of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Who sends.
    pub source: NodeId,
    /// The port by which it sends.
    pub source_nic: PortId,
    /// Who receives; of a multicast group, one of those who hear it.
    pub destination: NodeId,
    /// The port at which it receives.
    pub destination_nic: PortId,
    /// How much.
    pub bytes: Bytes,
    /// How much one work request carries; `None`: all in one (up to 2 GiB).
    pub message: Option<Bytes>,
    /// How it is sent.
    pub operation: Operation,
    /// When it starts.
    pub start: Start,
    /// The traffic class of its packets.
    pub class: Class,
    /// The DSCP of its packets, 0–63; `None`: the class selector of the class, 8 · class (RFC 2474, 4.2.2).
    pub dscp: Option<u8>,
    /// Its packets say that they are ECN-capable.
    pub ecn_capable: bool,
    /// The UDP source port: what ECMP tells flows by.
    pub udp_source_port: u16,
    /// The UDP destination port as ECMP hashes see it: 4791, or what an HPCC flow file says; of TCP its destination port.
    pub udp_destination_port: u16,
    /// The switches that its packets cross, in order; `None`: as load balancing chooses.
    pub path: Option<Vec<NodeId>>,
    /// A name of the group it belongs to, for reports: `incast`, `victim`.
    pub group: String,
    /// Fires when the sender has all acknowledgements.
    pub on_sent: Option<TriggerId>,
    /// Fires when the receiver has all bytes.
    pub on_received: Option<TriggerId>,
}

impl Flow {
    /// Whether a job says what is sent.
    pub(crate) const fn is_fed(&self) -> bool {
        matches!(self.start, Start::Fed(..))
    }
}

/// How a flow is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Operation {
    /// RDMA WRITE.
    #[default]
    Write,
    /// SEND into posted receives.
    Send,
    /// RDMA READ: the destination asks, the source answers; data still goes from source to destination.
    Read,
    /// SEND of unreliable datagrams to a group on InfiniBand; who loses one never gets it.
    Multicast(GroupId),
}

impl Operation {
    /// The group that it goes to, if it goes to one.
    pub const fn group(self) -> Option<GroupId> {
        match self {
            Self::Multicast(group) => Some(group),
            Self::Write | Self::Send | Self::Read => None,
        }
    }
}

/// When a flow starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At a time.
    At(Time),
    /// So long after a trigger fires.
    After(TriggerId, Span),
    /// It is a queue pair of a job's channel: the job says what is sent on it, and when. Its messages are writes with
    /// immediate data, which say which message of the channel it is.
    Fed(JobId, u32),
}

/// What starts flows other than the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// It fires when it was hit so often.
    pub count: u32,
    /// It starts its flows one by one, in their order: the first at the `count`-th hit, the next at each further hit
    /// (htsim's `multishot`). Otherwise the `count`-th hit starts all of them, and further hits start none.
    pub repeat: bool,
}
