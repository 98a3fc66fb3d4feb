//! Scenario files: TOML with units in its values, from a few lines to every last setting.
//!
//! ```text
//!  text ──► check against the schema ──► Scenario ──► plan(): names, defaults, presets ──► Plan
//!              │                            ▲                     │
//!              └─► file, line, field ◄──────┼─────────────────────┘
//!                                           └── from_plan(): what an importer read, as a scenario
//! ```
//!
//! The types' own comments are the documentation: the JSON schema and `docs/scenarios.md` are made from them.
//!
//! Invariant: the schema knows every field, so whatever text passes its check deserialises; what the schema cannot say
//! (names that exist, thresholds that fit) is checked by [`Scenario::plan`].

mod compare;
mod congestion;
mod edit;
mod error;
mod event;
mod export;
mod host;
mod infiniband;
mod job;
mod names;
mod quantity;
mod reference;
mod resolve;
mod shape;
mod source;
mod switch;
mod tcp;
#[cfg(test)]
mod tests;
mod traffic;
mod translate;
mod validate;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softfabric_units::Time;

pub use compare::{Compare, Overlay};
pub use congestion::{CongestionSettings, LevelSettings, PortsKind, TableEntry};
pub use edit::{EditError, set};
pub use error::{Problem, ScenarioError};
pub use event::Event;
pub use host::{
    AcknowledgementKind, AcknowledgementRule, ArbitrationKind, CongestionControl, DcqcnDefaults,
    Host, LossRecoveryKind, NotificationKind,
};
pub use infiniband::{
    Enforcement, InfinibandSettings, LaneEntry, MulticastSettings, PartitionSettings,
    StaticRateKind,
};
pub use job::{
    AllReduceAlgorithm, AllToAllAlgorithm, Among, DataPathKind, JobEntry, RankOrder, Server,
    SpreadKind, Step, TraceFormat,
};
pub use quantity::{ByteCounter, Drain, Headroom, HeadroomPool, Interval, Limit, Share};
pub use shape::{
    ExplicitKind, ExplicitLink, ExplicitNode, Fabric, FabricKind, LinkChange, RoutingKind, Segment,
    Topology,
};
pub use switch::{
    AccountingKind, CodePoints, ForwardingKind, LayerKind, LoadBalancingKind, Marking, Pause,
    Switch, SwitchClass, WatchdogActionKind, WatchdogSettings,
};
pub use tcp::{CpuSettings, TcpCongestionControl, TcpSettings};
pub use traffic::{
    FlowEntry, OperationKind, Pattern, Route, SizePoint, Sizes, TriggerEntry, Workload,
};
pub use translate::{LeftOut, Translation};

use crate::plan::Plan;
use quantity::TimeText;
pub(crate) use resolve::{class_profile, host_profile, switch_profile};
use source::Source;

/// A fabric, what runs over it, and what to record. Quantities carry their units: `rate = "400Gb/s"`,
/// `delay = "500ns"`, `buffer = "64MiB"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// A name for reports. Default: the name of the file.
    pub name: Option<String>,
    /// What the scenario shows, for people.
    pub description: Option<String>,
    /// The seed of every random stream. Default: 1.
    pub seed: Option<u64>,
    /// How time is counted. Default: `exact`.
    pub timing: Option<TimingKind>,
    /// What kind of fabric it is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fabric: Fabric,
    /// The shape of the network.
    pub topology: Topology,
    /// Changes to some links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkChange>,
    /// What switches do.
    #[serde(default, skip_serializing_if = "is_default")]
    pub switch: Switch,
    /// Changes to some switches; where two name the same switch, the later one counts alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switch_group: Vec<Switch>,
    /// What an InfiniBand fabric does.
    #[serde(default, skip_serializing_if = "is_default")]
    pub infiniband: InfinibandSettings,
    /// What hosts do.
    #[serde(default, skip_serializing_if = "is_default")]
    pub host: Host,
    /// Changes to some hosts; where two name the same host, the later one counts alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_group: Vec<Host>,
    /// What is sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workload: Vec<Workload>,
    /// Programs of many ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub job: Vec<JobEntry>,
    /// What starts flows other than the clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trigger: Vec<TriggerEntry>,
    /// What happens to the network on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<Event>,
    /// What to keep beside the counters.
    #[serde(default, skip_serializing_if = "is_default")]
    pub record: Record,
    /// When to stop.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stop: StopSettings,
    /// What is different for one technology when `softfabric compare` runs the scenario over several.
    #[serde(default, skip_serializing_if = "is_default")]
    pub compare: Compare,
    #[serde(skip)]
    source: Source,
}

/// How time is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimingKind {
    /// Picoseconds, true frame lengths.
    Exact,
    /// Nanoseconds and frame sizes of the HPCC ns-3 code.
    Hpcc,
}

/// What to keep beside the counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Sample queues, pauses and rates this often. Default: `10us`.
    pub interval: Option<Interval>,
    /// Ports with time series, `node:port` or `node:neighbour`. Default: the busiest.
    pub ports: Option<Vec<String>>,
    /// The rate over time of so many flows, the first ones. Default: 64.
    pub flow_rates: Option<u32>,
    /// Ports whose frames are captured, `node:port` or `node:neighbour`. Default: none.
    pub captures: Option<Vec<String>>,
    /// Keep each pause and resume frame. Default: false.
    pub pause_log: Option<bool>,
    /// Encode and decode every packet on its way, and compare. Default: false.
    pub check_wire: Option<bool>,
}

/// When to stop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StopSettings {
    /// At this time at the latest. Default: `1s`.
    #[schemars(with = "Option<TimeText>")]
    pub at: Option<Time>,
    /// As soon as all flows are done. Default: true.
    pub when_done: Option<bool>,
}

impl Scenario {
    /// Reads a scenario; `name` is that of its file.
    ///
    /// # Errors
    /// Everything that is not as the schema says, with its place in the text.
    pub fn from_toml(text: &str, name: &str) -> Result<Self, ScenarioError> {
        let source = Source {
            file: name.to_owned(),
            text: text.into(),
            overlay: None,
        };
        validate::validate(&source)?;
        let mut scenario: Self = toml::from_str(text).map_err(|error| {
            let mut problems = error::Problems::new(&source);
            let allowed = "what the reference says".to_owned();
            problems.add_at(error.span(), "", error.message(), allowed, None);
            match problems.finish() {
                Err(error) => error,
                Ok(()) => unreachable!("a problem was added"),
            }
        })?;
        scenario.source = source;
        Ok(scenario)
    }

    /// Resolves names, defaults and presets, and reads the files that it names.
    ///
    /// # Errors
    /// Everything that contradicts itself, with its place in the text. Doubtful settings are no errors: see
    /// [`Plan::check`].
    pub fn plan(&self) -> Result<Plan, ScenarioError> {
        resolve::plan(self)
    }

    /// What the files that it names say and the model has no place for, or takes more simply.
    pub fn notes(&self) -> Vec<String> {
        resolve::notes(self)
    }

    /// The scenario that leads to a plan: everything explicit, nothing lost.
    ///
    /// # Errors
    /// If the plan has what no scenario can say; the text says what.
    pub fn from_plan(plan: &Plan) -> Result<Self, String> {
        export::scenario(plan)
    }

    /// The scenario as a file.
    pub fn to_toml(&self) -> String {
        export::toml(self)
    }
}

/// The JSON schema of scenario files.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Scenario).to_value()
}

/// The reference of scenario files, made from the schema: `docs/scenarios.md`.
pub fn reference_markdown() -> String {
    reference::markdown(&schema())
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
