//! What a host does: its NIC, its addresses, and how fast it takes what arrives.

pub use softfabric_transport::WithinInterval;
use softfabric_transport::rate::RateControlConfig;
use softfabric_units::{Bytes, Class, ClassMask, Rate, Span};

use super::ServerProfile;
use crate::tcp::StackConfig;

/// The behaviour of a host; many hosts share one profile.
#[derive(Clone, Debug, PartialEq)]
pub struct HostProfile {
    /// The NIC.
    pub nic: NicProfile,
    /// How packets are addressed.
    pub addressing: Addressing,
    /// What happens to packets that arrive.
    pub receive: ReceivePath,
    /// The classes in which the NIC obeys pause frames, and sends them when its receive buffer fills.
    pub lossless: ClassMask,
    /// How long a pause frame of the NIC asks for, in quanta; `None`: until a resume frame.
    pub pause_quanta: Option<u16>,
    /// What is inside, for the ranks of jobs.
    pub server: ServerProfile,
    /// The host speaks TCP, over IPv4 or IPv6 as `addressing` says, and not RDMA; then of the above only `lossless` counts
    /// beside, for the pauses that it obeys.
    pub tcp: Option<StackConfig>,
}

/// The NIC and the settings of its queue pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct NicProfile {
    /// Payload bytes of a full packet: 256, 512, 1024, 2048 or 4096; any other for a simulator's file.
    pub mtu: Bytes,
    /// The sender's rate control.
    pub rate_control: RateControlConfig,
    /// At most so many unacknowledged bytes a queue pair.
    pub window: Option<Bytes>,
    /// What a lost packet costs.
    pub loss_recovery: LossRecovery,
    /// What the receiver does with CE.
    pub notification: NotificationPoint,
    /// An acknowledgement for each so many packets (1: for every packet), besides those that are asked for.
    pub acknowledge_every: u32,
    /// The class of acknowledgements.
    pub acknowledgement_class: AcknowledgementClass,
    /// The class of CNPs.
    pub notification_class: Class,
    /// Who sends next.
    pub arbitration: Arbitration,
    /// The local ACK timeout code t: 4.096 µs · 2ᵗ; 0 waits for ever (IBTA vol. 1, 9.7.6.1.3).
    pub timeout: u8,
    /// How often a request is sent again before the queue pair fails, 0–7.
    pub retry_count: u8,
    /// How often a receiver that is not ready is tried again, 0–7; 7 is for ever.
    pub rnr_retry: u8,
    /// Outstanding reads and atomics.
    pub max_reads: u8,
}

/// What a lost packet costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRecovery {
    /// All packets from the lost one on are sent again.
    GoBackN,
    /// The whole message is sent again.
    GoBackZero,
    /// Only lost packets are sent again, with at most `cap` bytes in flight (IRN).
    SelectiveRepeat {
        /// The bandwidth–delay product, or what stands for it.
        cap: Option<Bytes>,
    },
}

/// What the receiver does with CE-marked packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationPoint {
    /// Nothing.
    Off,
    /// A CNP, at most one for each queue pair and interval.
    Cnp {
        /// The interval.
        interval: Span,
        /// What becomes of a mark within it.
        within: WithinInterval,
    },
    /// The acknowledgement carries the mark, as in the HPCC ns-3 code.
    OnAcknowledgement,
}

/// The class of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcknowledgementClass {
    /// That of the request, obeying its pause.
    Request,
    /// This one.
    Explicit(Class),
    /// In the network that of the request; in the NIC never paused (ACK_HIGH_PRIO of the HPCC ns-3 code).
    RequestUnpausedAtHost,
}

/// Who sends next on a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbitration {
    /// CNPs and acknowledgements first, then queue pairs in turn, a packet each.
    ControlFirst,
    /// Acknowledgements in turn with requests.
    RoundRobin,
}

/// How packets are addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// RoCEv2 over IPv4.
    RoceV2Ipv4,
    /// RoCEv2 over IPv6.
    RoceV2Ipv6,
    /// RoCEv1: within one Ethernet segment.
    RoceV1,
}

/// What happens to packets that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivePath {
    /// How fast memory takes them; `None`: as fast as they come.
    pub drain: Option<Rate>,
    /// The NIC's receive buffer.
    pub buffer: Bytes,
    /// The NIC sends pause when more than this waits.
    pub xoff: Bytes,
    /// And resume when this or less waits.
    pub xon: Bytes,
}
