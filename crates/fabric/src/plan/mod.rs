//! Everything that a run needs, resolved: what the engine takes.
//!
//! ```text
//! scenario file, HPCC files, .cm/.topo …  ──►  Plan  ──►  engine  ──►  Results  ──►  report, JSON, CSV, pcapng
//! ```
//!
//! A plan has no names to look up, no defaults to fill in and no units to read: whoever makes one (a scenario, an
//! importer, a test) has done that. [`Plan::check`] says what contradicts itself before anything runs.

mod check;
mod congestion;
mod flow;
mod host;
mod infiniband;
mod job;
mod multicast;
mod network;
mod order;
mod partition;
mod recording;
mod sizes;
mod switch;

pub(crate) use check::unroutable;
pub use check::{Finding, PlanError, Severity};
pub use congestion::{
    AdapterCongestion, InfinibandCongestion, LevelReaction, SwitchCongestion, SwitchPorts,
};
pub use flow::{Flow, FlowId, MOST_FLOWS, Operation, Start, Trigger, TriggerId};
pub use host::{
    AcknowledgementClass, Addressing, Arbitration, HostProfile, LossRecovery, NicProfile,
    NotificationPoint, ReceivePath, WithinInterval,
};
pub use infiniband::{
    DATA_LANES, Infiniband, InfinibandSwitch, LaneArbitration, LaneSpeed, LaneWeight, Lanes,
    LinkLayer, PacketLife, SERVICE_LEVELS, StaticRate, SubnetRouting,
};
pub use job::{
    Activity, Channel, DataPath, Dealing, Gate, Job, JobId, Measure, Phase, Rank, Receives, Sends,
    ServerProfile, Staging, Task,
};
pub use multicast::{GroupId, MulticastGroup};
pub use network::{Endpoint, Link, LinkId, Network, Node, NodeId, NodeKind, PortId};
pub(crate) use order::order;
pub(crate) use partition::{DEFAULT_PARTITION, shared_keys};
pub use partition::{Partition, Partitions};
pub use recording::{Action, PortSelection, Recording, Stop, TimedAction};
pub(crate) use sizes::{LARGEST_MESSAGE, SMALLEST_FRAME};
pub use switch::{
    Alpha, BufferAccounting, BufferProfile, ClassMaps, ClassProfile, Classifier, Ecn, EgressLimit,
    Forwarding, IngressLimit, Layer, LoadBalancing, PauseProfile, Scheduling, SwitchProfile,
    Watchdog, WatchdogAction, Xon,
};

use softfabric_units::Span;

use crate::tcp::StackConfig;

/// A whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// A name for people.
    pub name: String,
    /// The seed of every random stream.
    pub seed: u64,
    /// How time on a link is counted.
    pub timing: Timing,
    /// Who is there and how they are linked.
    pub network: Network,
    /// Ethernet, or InfiniBand.
    pub link_layer: LinkLayer,
    /// Which paths packets may take.
    pub routing: Routing,
    /// On Ethernet: from a change of a link until all switches route by it.
    pub reroute: Span,
    /// Profiles that the network's Ethernet switches name by index.
    pub switch_profiles: Vec<SwitchProfile>,
    /// Profiles that the network's hosts name by index.
    pub host_profiles: Vec<HostProfile>,
    /// What is to be sent, in the order of the flow ids.
    pub flows: Vec<Flow>,
    /// What starts flows other than the clock, in the order of the trigger ids.
    pub triggers: Vec<Trigger>,
    /// Programs that run over the fabric; their queue pairs are among the flows.
    pub jobs: Vec<Job>,
    /// What happens to the network on the way, in any order.
    pub actions: Vec<TimedAction>,
    /// What to keep.
    pub recording: Recording,
    /// When to stop.
    pub stop: Stop,
}

impl Plan {
    /// The profile of a host; `None` for what is no host.
    pub fn host_profile(&self, node: NodeId) -> Option<&HostProfile> {
        match self.network.nodes.get(node.index())?.kind {
            NodeKind::Host { profile, .. } => self.host_profiles.get(profile as usize),
            NodeKind::Switch { .. } => None,
        }
    }

    /// The stack of a host that speaks TCP; `None` for any other node.
    pub fn stack_of(&self, node: NodeId) -> Option<&StackConfig> {
        self.host_profile(node)?.tcp.as_ref()
    }
}

/// Which paths packets without a path of their own may take; one of them is chosen by load balancing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Routing {
    /// All shortest ones.
    #[default]
    Shortest,
    /// The shortest of those that never go up after they went down (up*/down*), so that no cycle of buffers that wait
    /// for each other can form. Up is towards the higher tier, and between equal tiers towards the lower node id.
    UpDown,
}

/// How time on a link is counted, and how events of the same instant are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Timing {
    /// Picoseconds, rounded up; frames with their true length, preamble and gap. Ties go by (time, node, port).
    #[default]
    Exact,
    /// As the HPCC ns-3 code counts: whole nanoseconds, its frame sizes (payload + 48 B, 60 B, 43 B), no preamble, and
    /// ties in the order of scheduling. Reproduces its published runs to the nanosecond.
    Hpcc,
}
