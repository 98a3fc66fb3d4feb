//! `[[job]]` and `[host.server]`: programs of many ranks, and what is inside the servers that they run on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softfabric_units::{Bytes, Rate, Span, Time};

use super::quantity::{BytesText, RateText, SpanText, TimeText};

/// A program of many ranks: accelerators that compute and communicate, step after step. A host has as many ranks as NICs,
/// or as accelerators where a file says what is inside of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobEntry {
    /// Its name in reports. Default: the kind of its only step, the name of its trace, or `job`.
    pub name: Option<String>,
    /// The servers that it runs on, in the order of its ranks. Default: all hosts.
    pub hosts: Option<Vec<String>>,
    /// How many ranks each server has: one a NIC, or one an accelerator where `host.server.topology` says which these are.
    /// Default: as many as the one with the fewest has.
    #[schemars(range(min = 1))]
    pub ranks_per_host: Option<u32>,
    /// How ranks are numbered. Default: `host`.
    pub order: Option<RankOrder>,
    /// When it starts. Default: `0s`.
    #[schemars(with = "Option<TimeText>")]
    pub start: Option<Time>,
    /// How often all steps are done. Default: 1.
    #[schemars(range(min = 1))]
    pub iterations: Option<u32>,
    /// Queue pairs between two ranks, for each plane (`NCCL_IB_QPS_PER_CONNECTION`). Default: 1.
    #[schemars(range(min = 1, max = 64))]
    pub queue_pairs: Option<u32>,
    /// How messages are spread over these queue pairs. Default: `fewest`.
    pub spread: Option<SpreadKind>,
    /// When the queue pairs over a rank's own NIC have failed, its messages go over the other NICs of its server, each along
    /// its rail; the way to them inside the server costs nothing. Default: false.
    pub failover: Option<bool>,
    /// No message is longer, but inside servers: larger ones are cut, and passed on piece by piece. Default: `512KiB`.
    #[schemars(with = "Option<BytesText>")]
    pub slice: Option<Bytes>,
    /// How long after its arrival a message is of use: the latency of a step, or of a reduction. Default: `0s`.
    #[schemars(with = "Option<SpanText>")]
    pub handling: Option<Span>,
    /// The traffic class. Default: 3.
    #[schemars(range(min = 0, max = 7))]
    pub class: Option<u8>,
    /// Packets say that they are ECN-capable. Default: true.
    pub ecn: Option<bool>,
    /// What each iteration does, one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub step: Vec<Step>,
    /// Instead of steps: a file that says what ranks do, beside the scenario's. Of Chakra's files, one a rank, that of any rank or
    /// what their names begin with. A trace of fewer ranks than the job takes the first ones.
    pub trace: Option<String>,
    /// The form of the trace. Default: by its name and first word.
    pub format: Option<TraceFormat>,
    /// With a trace in the form `simai`: only so many of its layers. Default: all.
    #[schemars(range(min = 1))]
    pub layers: Option<u32>,
    /// With a trace in the form `simai`: the first layer that is kept, from zero. Default: 0.
    pub first_layer: Option<u32>,
    /// With a trace in the form `simai`, on fewer ranks than it is for: one stage and fewer replicas, but groups for tensors
    /// and experts as they are. Default: false, which is an error then.
    pub fewer_ranks: Option<bool>,
}

/// The form of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceFormat {
    /// A schedule in the text form of GOAL, as LogGOPSim reads it: `calc`, `send`, `recv` and what requires what.
    Goal,
    /// A workload of SimAI or ASTRA-sim: layers with times and collectives, forward and backward.
    Simai,
    /// Execution traces of Chakra: a protobuf file for each rank, `name.0.et`, `name.1.et` and so on.
    Chakra,
}

/// How messages are spread over several queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpreadKind {
    /// Each whole, over the one with the fewest messages under way: a way that is slow gets fewer.
    Fewest,
    /// Each whole, over one after the other, as NCCL does by itself.
    InTurn,
    /// Each in as many pieces as there are queue pairs, one over each; it has come when all its pieces have
    /// (`NCCL_IB_SPLIT_DATA_ON_QPS=1`).
    Split,
}

/// How ranks are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RankOrder {
    /// All ranks of the first host, then those of the second one.
    Host,
    /// The first rank of every host, then the second ones: neighbours are on different hosts.
    Rail,
    /// By chance, from the scenario's seed: what a scheduler that knows nothing of the fabric does.
    Random,
}

/// One step of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Every rank computes.
    Compute {
        /// For how long.
        #[schemars(with = "SpanText")]
        time: Span,
    },
    /// Everybody gets the sum of all.
    AllReduce {
        /// What a rank has, before and after.
        #[schemars(with = "BytesText")]
        bytes: Bytes,
        /// How. Default: `hierarchical` where several servers have several ranks each, else `ring`.
        algorithm: Option<AllReduceAlgorithm>,
        /// Who takes part together. Default: `all`.
        among: Option<Among>,
        /// Later steps do not wait for it; the iteration does. Default: false.
        background: Option<bool>,
    },
    /// Everybody gets all parts, round a ring.
    AllGather {
        /// What a rank has afterwards.
        #[schemars(with = "BytesText")]
        bytes: Bytes,
        /// Who takes part together. Default: `all`.
        among: Option<Among>,
        /// Later steps do not wait for it; the iteration does. Default: false.
        background: Option<bool>,
    },
    /// Everybody gets its part of the sum, round a ring.
    ReduceScatter {
        /// What a rank has before.
        #[schemars(with = "BytesText")]
        bytes: Bytes,
        /// Who takes part together. Default: `all`.
        among: Option<Among>,
        /// Later steps do not wait for it; the iteration does. Default: false.
        background: Option<bool>,
    },
    /// Everybody sends a different part to everybody.
    AllToAll {
        /// What a rank has of parts, all together.
        #[schemars(with = "BytesText")]
        bytes: Bytes,
        /// How. Default: `by_rail` where several servers have several ranks each, else `direct`.
        algorithm: Option<AllToAllAlgorithm>,
        /// Who takes part together. Default: `all`.
        among: Option<Among>,
        /// Later steps do not wait for it; the iteration does. Default: false.
        background: Option<bool>,
    },
    /// The first rank sends to all, along a chain.
    Broadcast {
        /// How much.
        #[schemars(with = "BytesText")]
        bytes: Bytes,
        /// Who takes part together. Default: `all`.
        among: Option<Among>,
        /// Later steps do not wait for it; the iteration does. Default: false.
        background: Option<bool>,
    },
    /// Every rank sends to the rank some places further on, round in a circle.
    Shift {
        /// How much.
        #[schemars(with = "BytesText")]
        bytes: Bytes,
        /// How many places. Default: half of the ranks.
        #[schemars(range(min = 1))]
        distance: Option<u32>,
        /// Later steps do not wait for it; the iteration does. Default: false.
        background: Option<bool>,
    },
    /// Ranks in stages: micro-batches go through all of them forward and back (as many forward as there are stages left,
    /// then one back for each forward).
    Pipeline {
        /// How many stages; ranks that follow each other share a stage.
        #[schemars(range(min = 2))]
        stages: u32,
        /// How many micro-batches.
        #[schemars(range(min = 1))]
        micro_batches: u32,
        /// What a rank hands on for each micro-batch.
        #[schemars(with = "BytesText")]
        bytes: Bytes,
        /// How long a rank computes forward.
        #[schemars(with = "SpanText")]
        forward: Span,
        /// How long it computes back. Default: twice as long.
        #[schemars(with = "Option<SpanText>")]
        backward: Option<Span>,
    },
}

/// Algorithms of all-reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AllReduceAlgorithm {
    /// Round a ring, once to reduce, once to gather.
    Ring,
    /// Two binary trees, each for one half.
    DoubleTree,
    /// Halves, quarters and so on with ever other partners, and back. Takes a power of two of ranks.
    HalvingDoubling,
    /// Inside each server, a ring for each rail, inside again; all at once.
    Hierarchical,
}

/// Algorithms of all-to-all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AllToAllAlgorithm {
    /// Everybody sends to everybody.
    Direct,
    /// Over the links inside the server to the receiver's rail, then along the rail (NCCL's PXN).
    ByRail,
}

/// Who takes part in a collective together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Among {
    /// All ranks.
    All,
    /// The ranks of each server.
    Server,
    /// The ranks of each rail: the same accelerator of every server.
    Rail,
}

/// What is inside a server, for the ranks of jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// A topology file of NCCL (what `NCCL_TOPO_FILE` names, or `NCCL_TOPO_DUMP_FILE` has made), beside the scenario's. It says
    /// the rate between accelerators, the data path and the PCIe link, where they are not given here, and which NIC is nearest
    /// to which accelerator: servers have a rank for each accelerator then, and several may share a NIC. Default: none.
    pub topology: Option<String>,
    /// The rate of an accelerator's link to those of the same server, each way. Default: as `topology` says, else `3600Gb/s`,
    /// NVLink of the fourth generation.
    #[schemars(with = "Option<RateText>")]
    pub accelerator_rate: Option<Rate>,
    /// Its latency. Default: `700ns`.
    #[schemars(with = "Option<SpanText>")]
    pub accelerator_latency: Option<Span>,
    /// How the NIC reaches the accelerator's memory. Default: as `topology` says, else `direct`; over TCP always
    /// `staged`.
    pub data_path: Option<DataPathKind>,
    /// With `staged`: what the PCIe link between a PCIe switch and the host carries, each way. Default: as `topology` says,
    /// else `460.8Gb/s`, 16 lanes of the fifth generation with payloads of 256 B.
    #[schemars(with = "Option<RateText>")]
    pub pcie_rate: Option<Rate>,
    /// With `staged`: how many accelerators, and their NICs, share one such link. Default: as `topology` says,
    /// else 1.
    #[schemars(range(min = 1))]
    pub pcie_sharing: Option<u32>,
    /// With `staged`: how long it takes to start a copy. Default: `5us`.
    #[schemars(with = "Option<SpanText>")]
    pub copy_latency: Option<Span>,
    /// With `staged`: how long the processor is busy with each copy, which delays nothing else. Default: `5us`.
    #[schemars(with = "Option<SpanText>")]
    pub copy_processor_time: Option<Span>,
    /// What a work request costs the processor before the NIC hears of it. Default: `0s`.
    #[schemars(with = "Option<SpanText>")]
    pub post_time: Option<Span>,
    /// What a completion costs the processor, which delays nothing. Default: `0s`.
    #[schemars(with = "Option<SpanText>")]
    pub complete_time: Option<Span>,
    /// How many times as long as elsewhere computations take: above 1 for a slow server. Default: 1.
    #[schemars(range(min = 0))]
    pub slowness: Option<f64>,
}

/// How the NIC reaches the accelerator's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DataPathKind {
    /// GPUDirect RDMA: through the PCIe switch that both hang on. Not over TCP.
    Direct,
    /// Through host memory, by a copy at each end.
    Staged,
}
