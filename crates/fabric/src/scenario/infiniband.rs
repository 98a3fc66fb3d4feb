//! `[infiniband]`: lanes and their credits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softfabric_units::{Bytes, Rate, Span};

use super::congestion::CongestionSettings;
use super::quantity::{BytesText, RateText, SpanText};

/// What links and switches do with `fabric.kind = "infiniband"`. Of `[switch]`, `latency`, `forwarding` and
/// `cut_through_header` count there (defaults `200ns`, `cut_through`, `24B`); hosts have no congestion control unless they
/// are given one, or the fabric has `[infiniband.congestion_control]`. Rates are data rates: 4x EDR is `100Gb/s`, 4x NDR `400Gb/s`.
/// Rails without spines and planes, which no cable joins, are subnets of their own, each with its own subnet manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InfinibandSettings {
    /// Data lanes in operation, at both ends of each link. Default: 1.
    #[schemars(range(min = 1, max = 15))]
    pub lanes: Option<u8>,
    /// The receive buffer of each lane of each port: what credits are for. Default: `128KiB`.
    #[schemars(with = "Option<BytesText>")]
    pub buffer: Option<Bytes>,
    /// The service level of each of the eight classes. Default: the same number.
    #[schemars(inner(range(min = 0, max = 15)))]
    pub service_levels: Option<[u8; 8]>,
    /// The lane of each of the sixteen service levels (SL2VL). Default: they go round the lanes.
    #[schemars(inner(range(min = 0, max = 14)))]
    pub level_to_lane: Option<[u8; 16]>,
    /// The arbitration table of high priority. Default: empty.
    pub high: Option<Vec<LaneEntry>>,
    /// The arbitration table of low priority. Default: all lanes, with weight 64.
    pub low: Option<Vec<LaneEntry>>,
    /// How much of high priority goes before low priority has a turn, in units of 4 KiB; 0 is one packet, 255 no limit.
    /// Default: 255.
    pub high_limit: Option<u8>,
    /// From a change of a link to new forwarding tables everywhere: until then packets run into the failed link. Default:
    /// `50ms`.
    #[schemars(with = "Option<SpanText>")]
    pub repair: Option<Span>,
    /// Switches choose for each packet among all ports on the routing engine's shortest ways: one that has credit for it,
    /// and where it waits least. Only with `min_hop`, `up_down` and `fat_tree`, and where these ways make no circle. Packets
    /// may overtake each other: give hosts `loss_recovery = "selective_repeat"`. Default: false.
    pub adaptive_routing: Option<bool>,
    /// How long a packet may be at the head of its lane before a switch discards it (HOQLife): `4.096us` times a power of
    /// two, up to `2.147483648s`. Default: for ever.
    #[schemars(with = "Option<SpanText>")]
    pub head_of_queue_life: Option<Span>,
    /// The same where the lane leads to a host. Default: as `head_of_queue_life`.
    #[schemars(with = "Option<SpanText>")]
    pub host_head_of_queue_life: Option<Span>,
    /// How long a packet may be in a switch before it begins to leave (LifeTimeValue): as above. Default: for ever.
    #[schemars(with = "Option<SpanText>")]
    pub packet_life: Option<Span>,
    /// So many packets of a lane in a row that are discarded at its head stall the lane: for eight times
    /// the life at its head it discards all there is (VLStallCount). Default: lanes never stall.
    #[schemars(range(min = 1, max = 7))]
    pub stall_count: Option<u8>,
    /// How fast queue pairs send towards links that are slower than their own. Default: `none`.
    pub static_rate: Option<StaticRateKind>,
    /// Partitions: who may talk to whom. Where the default partition (key 0x7fff) is not among them, all hosts are full
    /// members of it. Default: none but that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partition: Vec<PartitionSettings>,
    /// Which packets of foreign partitions switches drop at ports to hosts, who drop them anyway. Default: `both`.
    pub partition_enforcement: Option<Enforcement>,
    /// Multicast groups: workloads of kind `flow` and `flows` send to one by naming it in `to`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub multicast: Vec<MulticastSettings>,
    /// Congestion control. Default: none.
    pub congestion_control: Option<CongestionSettings>,
}

/// A partition of the fabric. A flow uses the first one that both of its ends are in, one of them as a full member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartitionSettings {
    /// A name for people.
    pub name: String,
    /// The key, without the bit that says who is a full member: 0x7fff is the default partition.
    #[schemars(range(min = 1, max = 32767))]
    pub key: u16,
    /// Hosts that may talk to all members: names, ranges `h0..h3` (both included), or `*` for any text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub full: Vec<String>,
    /// Hosts that may talk to full members only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limited: Vec<String>,
}

/// A multicast group. What is sent to it goes as unreliable datagrams along a tree of switches that the subnet manager
/// makes; nobody acknowledges, and what a member loses it never gets. A flow is done when its last datagram has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MulticastSettings {
    /// The name by which flows send to it: that of no node.
    pub name: String,
    /// Hosts that hear what others send to it, and may send: names, ranges `h0..h3` (both included), or `*` for any text.
    pub members: Vec<String>,
    /// Hosts that only send to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub send_only: Vec<String>,
    /// The service level of its packets. Default: that of the flow's class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 15))]
    pub service_level: Option<u8>,
    /// The name of its partition. Default: the default partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The longest payload of a datagram: `256B`, `512B`, `1024B`, `2048B` or `4096B`. Longer flows are several. Default: as
    /// long as all members take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BytesText>")]
    pub mtu: Option<Bytes>,
    /// Senders are no faster than this: after each datagram a whole number of its own times. Default: as fast as the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RateText>")]
    pub rate: Option<Rate>,
}

/// Where switches guard partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// Nowhere: adapters alone drop what is not for them.
    None,
    /// Where hosts' packets come in.
    Inbound,
    /// Where packets leave for hosts.
    Outbound,
    /// Both.
    Both,
}

/// The static rate of queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StaticRateKind {
    /// All send as fast as their port, and wait for credit.
    None,
    /// As fast as the slowest link of their path, as path records say it: after each packet they wait for a whole number of packet
    /// times, so that 100 Gb/s towards 40 Gb/s become 33.3 Gb/s. Data that are read are not slowed.
    Path,
}

/// An entry of an arbitration table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaneEntry {
    /// The data lane.
    #[schemars(range(min = 0, max = 14))]
    pub lane: u8,
    /// What it may send in a turn, in units of 64 B; 0 skips the entry.
    pub weight: u8,
}
