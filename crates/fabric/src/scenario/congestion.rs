//! `[infiniband.congestion_control]`: what switches mark, and how hosts slow down.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softfabric_units::{Bytes, Span};

use super::quantity::{BytesText, SpanText};
use crate::plan::InfinibandCongestion;

/// Congestion control of InfiniBand (IBTA vol. 1, annex A10); without this table there is none. Switches mark packets with
/// FECN, receivers return BECN on acknowledgements, and a flow waits after each packet: an index into a table says how
/// long, a BECN raises it, time lowers it. The defaults are those of the manager that comes with Mellanox OFED, where it
/// has any. Hosts with a `congestion_control` of their own react by that one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CongestionSettings {
    /// How early a lane of a switch counts as congested: 0 never, 15 earliest. Congested is a lane for which more than
    /// (16 − threshold)/16 of one lane's buffer waits. Default: 15.
    #[schemars(range(min = 0, max = 15))]
    pub threshold: Option<u8>,
    /// Shorter packets are not marked; a multiple of 64 B. Default: `512B`.
    #[schemars(with = "Option<BytesText>")]
    pub packet_size: Option<Bytes>,
    /// How many packets that could be marked pass on average between two that are; 0 marks all. Default: 10.
    pub marking_rate: Option<u16>,
    /// Where packets are marked also while the port waits for credit itself (the victim mask). Default: `hosts`.
    pub victims: Option<PortsKind>,
    /// How early a lane counts as starved of credit, in the scale of `threshold`; 0 never. Default: 0.
    #[schemars(range(min = 0, max = 15))]
    pub credit_threshold: Option<u8>,
    /// Where packets are marked that leave a lane starved of credit (the credit mask). Default: `none`.
    pub credit_ports: Option<PortsKind>,
    /// How long until the index of a flow falls by one, in whole units of 1.024 µs; zero: it never falls. Default:
    /// `153.6us`.
    #[schemars(with = "Option<SpanText>")]
    pub timer: Option<Span>,
    /// How much a BECN raises the index. Default: 1.
    pub increase: Option<u8>,
    /// The index at which an event is counted (`ThresholdEventCounter`); 0 never. Default: 2.
    pub trigger: Option<u8>,
    /// The lowest index. Default: 0.
    #[schemars(range(min = 0, max = 127))]
    pub minimum: Option<u8>,
    /// Changes for some service levels; where two name the same one, the later one counts alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub level: Vec<LevelSettings>,
    /// The congestion control table, up to 128 entries; the last one is the highest index (`CCTI_Limit`). Default: 128
    /// entries, entry i with shift 2 and multiplier i.
    pub table: Option<Vec<TableEntry>>,
}

impl CongestionSettings {
    /// The settings that lead to a plan's.
    ///
    /// # Errors
    /// If no settings do: switches that differ, ports that are named by number.
    pub fn from_plan(congestion: &InfinibandCongestion) -> Result<Self, String> {
        super::export::congestion_control(congestion)
    }

    /// The table as it stands in a scenario file.
    pub fn to_toml(&self) -> String {
        super::export::table("infiniband.congestion_control", self)
    }
}

/// How the flows of one service level react, where that is not as for all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LevelSettings {
    /// The service level.
    #[schemars(range(min = 0, max = 15))]
    pub level: u8,
    /// How long until the index falls by one. Default: as for all.
    #[schemars(with = "Option<SpanText>")]
    pub timer: Option<Span>,
    /// How much a BECN raises the index. Default: as for all.
    pub increase: Option<u8>,
    /// The index at which an event is counted. Default: as for all.
    pub trigger: Option<u8>,
    /// The lowest index. Default: as for all.
    #[schemars(range(min = 0, max = 127))]
    pub minimum: Option<u8>,
}

/// An entry of the congestion control table: after each packet its flow waits `multiplier` / 2^`shift` of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableEntry {
    /// How far the packet's time is shifted down.
    #[schemars(range(min = 0, max = 3))]
    pub shift: u8,
    /// By how much that is multiplied.
    #[schemars(range(min = 0, max = 16383))]
    pub multiplier: u16,
}

/// Some ports of each switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PortsKind {
    /// None.
    None,
    /// Those that hosts are at.
    Hosts,
    /// All.
    All,
}
