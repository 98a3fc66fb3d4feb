//! Jobs: ranks that compute and send each other messages, each step when what it waits for is there.
//!
//! ```text
//! rank 0   compute ──► send to 1, message i as soon as message i − 1 from n − 1 is here ──► …
//! rank 1   compute ──► receive from 0 …
//! ```
//!
//! A job is a graph of tasks. Tasks of one rank wait for each other by name; ranks wait for each other only by messages.
//! Collectives, training iterations and traces are all made into this form; the engine knows no other.

use softfabric_units::{Bytes, Span, Time};

use super::{FlowId, NodeId, PortId};

/// The index of a job in `Plan::jobs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct JobId(pub u32);

/// A program that runs on many ranks.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Job {
    /// Its name, for reports.
    pub name: String,
    /// When it starts.
    pub start: Time,
    /// Where its ranks are.
    pub ranks: Vec<Rank>,
    /// Who sends to whom.
    pub channels: Vec<Channel>,
    /// What is done. Sends and receives of a channel come in the order of its messages.
    pub tasks: Vec<Task>,
    /// What is measured: parts of the job that have a name.
    pub phases: Vec<Phase>,
}

/// One rank: an accelerator and its NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The server that it is in.
    pub host: NodeId,
    /// Which accelerator of the server it is. Those of a server have a link to each other.
    pub accelerator: u32,
    /// The NIC port that is nearest to it.
    pub nic: PortId,
}

/// Messages from one rank to another, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The sending rank.
    pub from: u32,
    /// The receiving rank.
    pub to: u32,
    /// The queue pairs or connections over which messages are dealt; none: the link between accelerators of a server.
    pub flows: Vec<FlowId>,
    /// Queue pairs that take over when all of those have failed.
    pub standby: Vec<FlowId>,
    /// Which of them a message takes.
    pub dealing: Dealing,
}

/// Which queue pair of a channel a message takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dealing {
    /// That with the fewest messages under way, of equal ones each in its turn.
    #[default]
    Fewest,
    /// One after the other, whatever waits there; where one has failed, as [`Self::Fewest`].
    InTurn,
}

/// One step of one rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Who does it.
    pub rank: u32,
    /// The phase that it is part of.
    pub phase: u32,
    /// Which of the rank's processors does it, if it is a computation: 0 is the accelerator.
    pub processor: u8,
    /// Tasks of the same rank that must be over before it begins.
    pub after: Vec<u32>,
    /// Tasks of the same rank that must have begun before it begins.
    pub after_begin: Vec<u32>,
    /// What is done.
    pub activity: Activity,
}

/// What a task does.
#[derive(Clone, Debug, PartialEq)]
pub enum Activity {
    /// A processor of the rank is busy. Each does one computation at a time: others wait.
    Compute(Span),
    /// Sends messages.
    Send(Sends),
    /// Takes messages.
    Receive(Receives),
}

/// Messages that a task sends, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sends {
    /// On which channel.
    pub channel: u32,
    /// How many.
    pub messages: u32,
    /// How long each is.
    pub bytes: Bytes,
    /// So many that follow each other are one to whoever passes it on: gates count those. At least 1.
    pub pieces: u32,
    /// What they wait for, one by one. This is how rings and trees pass on what they get.
    pub gates: Vec<Gate>,
}

/// Message i of a send waits until i + 1 − lead messages of a receive have come: none if that is below 1, all if there are
/// not so many. What is cut into pieces counts as one message, and has come when all its pieces have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The receive, a task of the same rank.
    pub receive: u32,
    /// How many messages go ahead; below zero, how many must have come before the first one goes, less one.
    pub lead: i32,
}

/// Messages that a task takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receives {
    /// From which channel.
    pub channel: u32,
    /// How many.
    pub messages: u32,
    /// So many that follow each other are one to whoever passes it on. At least 1.
    pub pieces: u32,
    /// How long after its arrival a message is of use: a reduction, or the latency of a step.
    pub handling: Span,
}

/// A part of a job that is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its name, such as `all_reduce` or `iteration 3`.
    pub name: String,
    /// What it moves, if it is one collective.
    pub collective: Option<Measure>,
}

/// How the bandwidth of a collective is worked out, as nccl-tests do it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// The bytes that it is for: algorithm bandwidth is these over the time.
    pub bytes: Bytes,
    /// Bus bandwidth over algorithm bandwidth: 2(n − 1)/n for all-reduce.
    pub bus_factor: f64,
}

/// What is inside a server, and how data gets from accelerators to NICs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerProfile {
    /// The rate of an accelerator's link to those of the same server (NVLink-class), each way.
    pub accelerator_rate: softfabric_units::Rate,
    /// Its latency.
    pub accelerator_latency: Span,
    /// How the NIC reaches the accelerator's memory.
    pub data_path: DataPath,
    /// What one work request costs the processor before the NIC hears of it.
    pub post: Span,
    /// What one completion costs the processor.
    pub complete: Span,
    /// How many times as long as elsewhere a computation takes: above 1 for a slow server.
    pub slowness: f64,
}

impl Default for ServerProfile {
    /// NVLink of the fourth generation (18 links of 25 GB/s each way), GPUDirect, and no cost of work requests.
    fn default() -> Self {
        Self {
            accelerator_rate: softfabric_units::Rate::gbps(3600),
            accelerator_latency: Span::nanos(700),
            data_path: DataPath::Direct,
            post: Span::ZERO,
            complete: Span::ZERO,
            slowness: 1.0,
        }
    }
}

/// How the NIC reaches the accelerator's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPath {
    /// Directly (GPUDirect RDMA): through the PCIe switch that both hang on. Hosts that speak TCP cannot.
    Direct,
    /// Through host memory: every message crosses the PCIe link to the host twice at each end, once as a copy and once as
    /// the NIC reads or writes it.
    Staged(Staging),
}

/// Copies through host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staging {
    /// What the PCIe link between a PCIe switch and the host carries, each way.
    pub uplink: softfabric_units::Rate,
    /// How many accelerators (and their NICs) share one such link.
    pub sharing: u32,
    /// The latency of starting a copy.
    pub latency: Span,
    /// How long the processor is busy with each copy.
    pub processor: Span,
}
