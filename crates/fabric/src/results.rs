//! What a run leaves behind: everything that reports, files and tests read.

use softfabric_telemetry::{
    ClassCounters, Counter, DeviceCounters, PortCounters, Series, StackCounters,
};
use softfabric_units::{Bytes, Class, Rate, Span, Time};

use crate::plan::{Endpoint, FlowId, NodeId};

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Why it ended.
    pub ending: Ending,
    /// The simulated time at the end.
    pub end: Time,
    /// One entry a flow, in the order of the plan.
    pub flows: Vec<FlowResult>,
    /// One entry a flow to a multicast group, in the order of the flows.
    pub multicast: Vec<MulticastResult>,
    /// One entry a port, ordered by node and port.
    pub ports: Vec<PortResult>,
    /// One entry a host with RDMA, in the order of the nodes.
    pub devices: Vec<DeviceResult>,
    /// One entry a host that speaks TCP, in the order of the nodes.
    pub stacks: Vec<StackResult>,
    /// Packets that a lossless class dropped: what a report shows first. At most the first 1,000; `lossless_drops` has
    /// the count.
    pub first_lossless_drops: Vec<LosslessDrop>,
    /// How many packets lossless classes dropped.
    pub lossless_drops: u64,
    /// When the network first told of congestion, in each of its ways.
    pub first_signals: FirstSignals,
    /// Pause and resume frames as they were received, if the plan asked for them.
    pub pause_log: Vec<PauseEvent>,
    /// One entry a job, in the order of the plan.
    pub jobs: Vec<JobResult>,
    /// What the processors of hosts with ranks did for them, in the order of the nodes.
    pub processors: Vec<ProcessorResult>,
    /// Who waits for whom, if the run ended in a deadlock.
    pub deadlock: Option<Deadlock>,
    /// What an InfiniBand subnet manager did after links changed, in the order of time.
    pub repairs: Vec<Repair>,
    /// Counters of all ports as they were polled, in the order of time, if the plan asked for them.
    pub counters: Vec<CounterSample>,
    /// Series over time, if the plan asked for them.
    pub series: TimeSeries,
    /// Captured frames, by the plan's captures.
    pub captures: Vec<Capture>,
    /// Whether everything that was sent is accounted for.
    pub conservation: Conservation,
    /// How much work it was.
    pub work: Work,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All flows are done, all packets arrived.
    Completed,
    /// The plan's stop time came first.
    StopTime,
    /// Nothing can move any more, yet flows are not done.
    Stalled,
    /// Somebody asked for it.
    Interrupted,
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobResult {
    /// When the last of its ranks came to its end.
    pub finished: Option<Time>,
    /// How it ended.
    pub status: JobStatus,
    /// One entry a rank.
    pub ranks: Vec<RankResult>,
    /// One entry a phase.
    pub phases: Vec<PhaseResult>,
    /// Who waits for whom, where the job did not come to its end; at most the first 1,000.
    pub waits: Vec<Wait>,
    /// What its ranks got while all was whole and while it was not, if something breaks in the plan.
    pub eras: Option<Eras>,
}

/// What the ranks of a job got from other hosts before, during and after what the plan breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eras {
    /// When the first thing broke.
    pub from: Time,
    /// When all was whole again, if ever.
    pub until: Option<Time>,
    /// Until then.
    pub before: Bytes,
    /// While something was broken.
    pub during: Bytes,
    /// From then on.
    pub after: Bytes,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStatus {
    /// All ranks have done all that they had to do.
    Completed,
    /// It was under way when the run ended.
    Unfinished,
    /// A channel has lost its last queue pair, or a connection, so a rank can go no further.
    Failed {
        /// The flow that failed; its status says why.
        flow: FlowId,
    },
}

/// What became of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankResult {
    /// When its last task was over.
    pub finished: Option<Time>,
    /// How long its accelerator computed.
    pub computing: Span,
}

/// What became of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseResult {
    /// When its first task began.
    pub begun: Option<Time>,
    /// From when on it is measured: when the phase before it was over, if that is later. Ranks that are done with one phase
    /// begin the next while others are not.
    pub since: Option<Time>,
    /// When its last task was over.
    pub over: Option<Time>,
    /// The longest time that one rank computed in it.
    pub computing: Span,
}

impl PhaseResult {
    /// How long it took, from [`Self::since`] on.
    pub fn span(&self) -> Option<Span> {
        Some(self.over?.since(self.since?))
    }

    /// The share of its time that the rank with the most computations did not compute: communication that nothing hid.
    pub fn exposed(&self) -> Option<f64> {
        let span = self.span()?.as_picos();
        let computing = self.computing.as_picos().min(span);
        (span > 0).then(|| (span - computing) as f64 / span as f64)
    }
}

/// A rank that waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Who waits.
    pub rank: u32,
    /// For whom.
    pub other: u32,
    /// The task, of those of the job.
    pub task: u32,
    /// It waits for messages; otherwise until its own are sent.
    pub receives: bool,
    /// Messages that have come, or that are sent: acknowledged, or copied by a socket.
    pub messages: u32,
    /// Of how many.
    pub of: u32,
}

/// What a host's processor did for its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorResult {
    /// The host.
    pub node: NodeId,
    /// Time for work requests and completions.
    pub requests: Span,
    /// Time for copies through host memory.
    pub copies: Span,
}

/// New routes of an InfiniBand subnet manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// When a link changed.
    pub changed: Time,
    /// When the new routes were in force.
    pub programmed: Time,
    /// Entries of forwarding tables that changed.
    pub entries: u64,
    /// Switches that have such entries.
    pub switches: u64,
    /// Why there are none, and the old ones stay.
    pub failure: Option<String>,
}

/// What became of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// When it started, if it did.
    pub start: Option<Time>,
    /// When the sender had all acknowledgements; to a multicast group, when the last datagram had left.
    pub finished: Option<Time>,
    /// When the receiver had all bytes; of a multicast group, all of its members.
    pub received: Option<Time>,
    /// How long it would take alone in the network; zero for what a job sends, which is as long as the job, and for what goes
    /// to a multicast group.
    pub ideal: Span,
    /// Bytes that the receiver got in completed or partial messages, each counted once; of a multicast group, what each of its
    /// members got at least.
    pub delivered: Bytes,
    /// How it ended.
    pub status: FlowStatus,
    /// Packets sent again.
    pub retransmitted: u64,
    /// CNPs (or marked acknowledgements) that reached the sender.
    pub notifications: u64,
}

/// What became of a flow to a multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastResult {
    /// The flow.
    pub flow: FlowId,
    /// Datagrams that it sent.
    pub sent: u64,
    /// One entry for each host that was to hear it, in order.
    pub members: Vec<MemberResult>,
}

/// What a member of a multicast group heard of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberResult {
    /// The member.
    pub node: NodeId,
    /// Datagrams that it got.
    pub packets: u64,
    /// Their payload.
    pub bytes: Bytes,
    /// When it had all bytes, if it ever did.
    pub received: Option<Time>,
}

impl MulticastResult {
    /// Datagrams that were sent and that a member did not get: lost, or under way when the run ended.
    pub const fn lost(&self, member: &MemberResult) -> u64 {
        self.sent.saturating_sub(member.packets)
    }
}

/// How a flow ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowStatus {
    /// It never started.
    NotStarted,
    /// It was under way when the run ended.
    Unfinished,
    /// All bytes are there and acknowledged.
    Completed,
    /// Its queue pair or connection failed; the text says why.
    Failed(String),
}

impl FlowResult {
    /// Flow completion time: from the start to the last acknowledgement.
    pub fn completion_time(&self) -> Option<Span> {
        Some(self.finished?.since(self.start?))
    }

    /// Completion time over the ideal, at least 1; `None` where there is no ideal.
    pub fn slowdown(&self) -> Option<f64> {
        if self.ideal == Span::ZERO {
            return None;
        }
        let fct = self.completion_time()?.as_picos() as f64;
        Some((fct / self.ideal.as_picos().max(1) as f64).max(1.0))
    }

    /// Bytes over completion time, or over the time until `end` while unfinished.
    pub fn goodput(&self, end: Time) -> Rate {
        match self.start {
            Some(start) => Rate::average(self.delivered, self.finished.unwrap_or(end).since(start)),
            None => Rate::ZERO,
        }
    }
}

/// The counters of one port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortResult {
    /// The port.
    pub endpoint: Endpoint,
    /// Its own counters.
    pub port: PortCounters,
    /// Those of its classes.
    pub classes: [ClassCounters; Class::COUNT],
}

/// The counters of one port at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterSample {
    /// When.
    pub time: Time,
    /// The port.
    pub endpoint: Endpoint,
    /// Whether its link was up.
    pub up: bool,
    /// Its counters, its classes' and, at a host, its device's, in the unit of the table: those that differ from the
    /// port's sample before. At first all are zero.
    pub changed: Vec<(Counter, u64)>,
}

/// The counters of one RDMA device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceResult {
    /// The host.
    pub node: NodeId,
    /// Its counters.
    pub counters: DeviceCounters,
}

/// The counters of the TCP/IP stack of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct StackResult {
    /// The host.
    pub node: NodeId,
    /// Its counters.
    pub counters: StackCounters,
    /// The cores that share its work; 0 where work takes no time.
    pub cores: u32,
}

/// A packet that a lossless class dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LosslessDrop {
    /// When.
    pub time: Time,
    /// Where: the port by which it came in.
    pub endpoint: Endpoint,
    /// Its class.
    pub class: Class,
    /// Its flow.
    pub flow: FlowId,
    /// Why.
    pub reason: DropReason,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The headroom was full.
    HeadroomFull,
    /// The priority group was over its threshold (lossy).
    IngressThreshold,
    /// The egress queue was over its threshold.
    EgressThreshold,
    /// The packet memory was full.
    BufferFull,
    /// RED chose a packet that is not ECN-capable.
    Red,
    /// The watchdog dropped it.
    Watchdog,
    /// The link was down.
    LinkDown,
    /// A bit was damaged.
    Damaged,
    /// No route leads to the destination.
    NoRoute,
    /// A router met a frame without an IP header (RoCEv1).
    NotRoutable,
    /// The NIC's receive buffer was full.
    ReceiveBufferFull,
    /// It was at the head of its lane for longer than HOQLife (IBTA vol. 1, 18.2.5.4).
    HeadOfQueueLife,
    /// It was in the switch for longer than LifeTimeValue (IBTA vol. 1, 18.2.5.4).
    PacketLife,
    /// Its lane was stalled: VLStallCount packets in a row had outlived HOQLife (IBTA vol. 1, 18.2.5.4).
    LaneStalled,
    /// It was sent in a partition in which the port or its host is not (IBTA vol. 1, 10.9).
    PartitionKey,
}

impl DropReason {
    /// Whether too much traffic is the reason, and not a failure or a rule.
    pub fn is_congestion(self) -> bool {
        match self {
            Self::HeadroomFull
            | Self::IngressThreshold
            | Self::EgressThreshold
            | Self::BufferFull
            | Self::Red
            | Self::ReceiveBufferFull
            | Self::HeadOfQueueLife
            | Self::PacketLife
            | Self::LaneStalled => true,
            Self::Watchdog
            | Self::LinkDown
            | Self::Damaged
            | Self::NoRoute
            | Self::NotRoutable
            | Self::PartitionKey => false,
        }
    }
}

/// When the network first told of congestion, in each of its ways: which of them acts first says how a fabric is tuned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstSignals {
    /// A switch marked a packet CE (RFC 3168), or FECN on InfiniBand.
    pub mark: Option<Signal>,
    /// A port was paused, or had to wait for credit.
    pub pause: Option<Signal>,
    /// A packet was dropped for congestion.
    pub drop: Option<Signal>,
}

/// A first time, and the port where it was. Of several ports at one time, the first in the order of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signal {
    /// When.
    pub time: Time,
    /// Where.
    pub endpoint: Endpoint,
}

/// A pause or resume frame as it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseEvent {
    /// When it arrived.
    pub time: Time,
    /// At which port.
    pub endpoint: Endpoint,
    /// For which class.
    pub class: Class,
    /// Pause, or resume.
    pub pause: bool,
}

/// A cycle of egress queues, each paused by the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The class that is locked.
    pub class: Class,
    /// Egress ports; each is paused because the next one's queue does not drain, and the last by the first.
    pub cycle: Vec<Endpoint>,
    /// When the last of them was paused for good.
    pub since: Time,
}

/// Values over time.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TimeSeries {
    /// When the first interval starts: all series count from here.
    pub origin: Time,
    /// One entry a recorded port.
    pub ports: Vec<PortSeries>,
    /// One entry a recorded flow.
    pub flows: Vec<FlowSeries>,
    /// ECN marks per interval, all switches together.
    pub marks: Option<Series>,
    /// CNPs sent per interval, all hosts together.
    pub notifications: Option<Series>,
    /// Share of (port, class) pairs paused, in ports: the mean number of paused queues per interval.
    pub paused_queues: Option<Series>,
    /// Payload that all hosts took, as a rate in bit/s.
    pub delivered: Option<Series>,
}

/// One port over time.
#[derive(Clone, Debug, PartialEq)]
pub struct PortSeries {
    /// The port.
    pub endpoint: Endpoint,
    /// Bytes in its egress queues: the largest value of each interval.
    pub queue: Series,
    /// Bytes in its egress queues: the mean over time of each interval.
    pub mean_queue: Series,
    /// Share of each interval in which a class was paused, 0–1.
    pub paused: Series,
    /// Bits per second sent.
    pub rate: Series,
}

/// One flow over time.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSeries {
    /// The flow.
    pub flow: FlowId,
    /// Bits per second of payload delivered.
    pub rate: Series,
    /// The rate that rate control allows, in bit/s.
    pub allowed: Series,
}

/// The frames of one captured port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The port.
    pub endpoint: Endpoint,
    /// Whole frames in the order of time: Ethernet without FCS, or InfiniBand with its CRCs.
    pub frames: Vec<CapturedFrame>,
}

/// One captured frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// When its first bit left, or its last bit arrived.
    pub time: Time,
    /// The port sent it, or received it.
    pub sent: bool,
    /// Its bytes, payload zeroed, cut after 256 bytes.
    pub bytes: Vec<u8>,
    /// Its true length without FCS.
    pub length: u32,
}

/// Whether everything is accounted for. Checked after every run; a difference is a fault of the simulator.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Conservation {
    /// Packets that hosts sent.
    pub sent: u64,
    /// Copies that switches made of packets to multicast groups, beyond the packets themselves.
    pub copied: u64,
    /// Packets that hosts received.
    pub delivered: u64,
    /// Packets dropped, by any reason.
    pub dropped: u64,
    /// Packets still in queues or on links.
    pub in_flight: u64,
    /// What does not add up, in words; empty when all is well.
    pub violations: Vec<String>,
}

/// How much work the run was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Work {
    /// Packets that arrived at the end of a link, pause frames left out.
    pub link_hops: u64,
    /// Events handled.
    pub events: u64,
    /// Windows of the window-synchronous engine; zero in HPCC timing.
    pub windows: u64,
}
