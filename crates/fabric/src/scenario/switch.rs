//! `[switch]` and `[[switch_group]]`: what switches do.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softfabric_units::{Bytes, Rate, Span};

use super::quantity::{BytesText, Headroom, HeadroomPool, RateText, Share, SpanText};

/// What switches do. `[switch]` is for all of them, `[[switch_group]]` changes it for some.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Switch {
    /// Only in `[[switch_group]]`: which switches, by name, range `leaf0..leaf3` (both included) or pattern `spine*`.
    pub names: Option<Vec<String>>,
    /// A real platform to start from; what else is given here overrides it.
    pub preset: Option<String>,
    /// When a packet may leave. Default: `store_and_forward`.
    pub forwarding: Option<ForwardingKind>,
    /// How many bytes a cut-through switch looks at before it forwards. Default: `64B`.
    #[schemars(with = "Option<BytesText>")]
    pub cut_through_header: Option<Bytes>,
    /// From the arrival of a packet to its place in the egress queue. Default: `500ns`.
    #[schemars(with = "Option<SpanText>")]
    pub latency: Option<Span>,
    /// Bridge or router. Default: `bridge`.
    pub layer: Option<LayerKind>,
    /// The packet memory. Default: `32MiB`.
    #[schemars(with = "Option<BytesText>")]
    pub buffer: Option<Bytes>,
    /// Memory is taken in cells of this size; `1B` counts bytes. Default: `256B`.
    #[schemars(with = "Option<BytesText>")]
    pub cell: Option<Bytes>,
    /// A pool of headroom for all ports; `own`: each priority group has its headroom set aside. Default: `own`.
    pub headroom_pool: Option<HeadroomPool>,
    /// Whose rules account for the memory. Default: `shared_buffer`.
    pub accounting: Option<AccountingKind>,
    /// The classes that PFC protects, which means their priority groups. Default: `[3]`.
    #[schemars(inner(range(min = 0, max = 7)))]
    pub lossless: Option<Vec<u8>>,
    /// The class of packets by their DSCP; code points that are not named are class 0. Default: by the class that the
    /// sending NIC gives them.
    pub dscp: Option<Vec<CodePoints>>,
    /// The class of packets by the priority that they come with (PCP), for 0 to 7. Default: the same number.
    #[schemars(inner(range(min = 0, max = 7)))]
    pub pcp: Option<[u8; 8]>,
    /// The ingress priority group of each class, 0 to 7; group n has the ingress settings of class n. Default: the same number.
    #[schemars(inner(range(min = 0, max = 7)))]
    pub class_to_group: Option<[u8; 8]>,
    /// The egress queue of each class, 0 to 7; queue n has the egress settings of class n. Default: the same number.
    #[schemars(inner(range(min = 0, max = 7)))]
    pub class_to_queue: Option<[u8; 8]>,
    /// The PFC priority that each priority group, 0 to 7, pauses. Default: the same number.
    #[schemars(inner(range(min = 0, max = 7)))]
    pub group_to_pfc: Option<[u8; 8]>,
    /// The egress queue that a pause of each PFC priority, 0 to 7, stops. Default: the same number.
    #[schemars(inner(range(min = 0, max = 7)))]
    pub pfc_to_queue: Option<[u8; 8]>,
    /// ECN marking of the lossless classes; `[]` turns it off. Default: from 100 KB to 400 KB with 20 % for each
    /// 25 Gb/s of the port.
    pub ecn: Option<Vec<Marking>>,
    /// What is always there for a lossless priority group. Default: `4KiB`.
    #[schemars(with = "Option<BytesText>")]
    pub reserved: Option<Bytes>,
    /// How much of the free memory a lossless priority group may take until it pauses. Default: `1/8`.
    pub alpha: Option<Share>,
    /// What absorbs packets in flight after a pause; `auto` computes it for each port from rate, cable and MTU.
    /// Default: `auto`.
    pub headroom: Option<Headroom>,
    /// A lossless group resumes at or below this, or by `xon_offset`. With one of the two given, the other does not count
    /// unless it is given too.
    #[schemars(with = "Option<BytesText>")]
    pub xon: Option<Bytes>,
    /// A lossless group resumes once it is so far under the point at which it pauses. Default: `8KiB`.
    #[schemars(with = "Option<BytesText>")]
    pub xon_offset: Option<Bytes>,
    /// PFC timing.
    pub pause: Option<Pause>,
    /// The PFC watchdog. Default: none.
    pub watchdog: Option<WatchdogSettings>,
    /// How one of several next hops is chosen. Default: `ecmp`.
    pub load_balancing: Option<LoadBalancingKind>,
    /// Single classes, by number: `[switch.class.3]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub class: BTreeMap<String, SwitchClass>,
}

/// When a packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForwardingKind {
    /// Once it is here whole.
    StoreAndForward,
    /// Once its first bytes are here.
    CutThrough,
}

/// Bridge or router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// Forwards every frame of its segment, and routes IP besides.
    Bridge,
    /// Routes IP only: RoCEv1 frames are dropped.
    Router,
}

/// Whose rules account for the packet memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountingKind {
    /// Reserved, shared and headroom per priority group; per queue at egress.
    SharedBuffer,
    /// Those of the HPCC ns-3 code.
    Hpcc,
}

/// How one of several next hops is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadBalancingKind {
    /// By a hash over addresses and ports, with a seed of each switch.
    Ecmp,
    /// As `ecmp`, and of RoCEv2 over the destination queue pair in the BTH, too (enhanced ECMP, by fields that the user
    /// defines): queue pairs with the same addresses and ports go different ways.
    EcmpQueuePair,
    /// By the hash of the HPCC ns-3 code.
    EcmpHpcc,
    /// Each packet by chance.
    SprayRandom,
    /// Each packet by the next port in turn.
    SprayRoundRobin,
    /// Each packet by the shortest queue.
    Adaptive,
}

/// RED/ECN marking of an egress queue: below `kmin` nothing, above `kmax` everything, between them rising to `pmax`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Marking {
    /// The port rate that this is for. Default: every other one.
    #[schemars(with = "Option<RateText>")]
    pub rate: Option<Rate>,
    /// Ports of other rates have thresholds in proportion to theirs (`rate` is needed). Default: false.
    pub scaled: Option<bool>,
    /// Below it nothing is marked.
    #[schemars(with = "BytesText")]
    pub kmin: Bytes,
    /// Above it everything is marked.
    #[schemars(with = "BytesText")]
    pub kmax: Bytes,
    /// The probability at `kmax`.
    #[schemars(range(min = 0, max = 1))]
    pub pmax: f64,
    /// Packets that are not ECN-capable are dropped instead of marked. Default: false.
    pub drop_not_capable: Option<bool>,
}

/// Code points that are one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodePoints {
    /// The DSCPs.
    #[schemars(inner(range(min = 0, max = 63)))]
    pub codes: Vec<u8>,
    /// Their class.
    #[schemars(range(min = 0, max = 7))]
    pub class: u8,
}

/// PFC timing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pause {
    /// How long a pause frame asks for, in quanta of 512 bit times; 0: until a resume frame. Default: 65535.
    pub quanta: Option<u16>,
    /// From the arrival of a pause frame to the stop of the queue. Default: `0s`.
    #[schemars(with = "Option<SpanText>")]
    pub response_delay: Option<Span>,
    /// The switch acts on pause frames. Default: true.
    pub obeys: Option<bool>,
    /// Also on those for classes that are not lossless here. Default: false.
    pub obeys_on_lossy: Option<bool>,
}

/// The PFC watchdog: a queue that stays paused and does not move is stormed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WatchdogSettings {
    /// Whether there is one. Default: true.
    pub enabled: Option<bool>,
    /// Paused without progress so long: stormed. Default: `200ms`.
    #[schemars(with = "Option<SpanText>")]
    pub detection: Option<Span>,
    /// Free of pause so long: restored. Default: `200ms`.
    #[schemars(with = "Option<SpanText>")]
    pub restoration: Option<Span>,
    /// How often it looks. Default: `200ms`.
    #[schemars(with = "Option<SpanText>")]
    pub poll: Option<Span>,
    /// What it does with a stormed queue. Default: `drop`.
    pub action: Option<WatchdogActionKind>,
}

/// What the watchdog does with a stormed queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchdogActionKind {
    /// Drops what is queued and what comes.
    Drop,
    /// Sends as if nothing were paused.
    Forward,
    /// Only counts.
    Alert,
}

/// One traffic class of a switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchClass {
    /// PFC protects it. Default: as `lossless` of the switch says.
    pub lossless: Option<bool>,
    /// What is always there for an ingress priority group.
    #[schemars(with = "Option<BytesText>")]
    pub reserved: Option<Bytes>,
    /// How much of the free memory a priority group may take until it pauses, or drops.
    pub alpha: Option<Share>,
    /// What absorbs packets in flight after a pause.
    pub headroom: Option<Headroom>,
    /// It resumes at or below this, or by `xon_offset`. With one of the two given, the other does not count unless it is
    /// given too.
    #[schemars(with = "Option<BytesText>")]
    pub xon: Option<Bytes>,
    /// It resumes once it is so far under the point at which it pauses.
    #[schemars(with = "Option<BytesText>")]
    pub xon_offset: Option<Bytes>,
    /// What is always there for an egress queue.
    #[schemars(with = "Option<BytesText>")]
    pub egress_reserved: Option<Bytes>,
    /// How much of the free memory an egress queue may take. A lossless class is `unlimited`, or it drops.
    pub egress_alpha: Option<Share>,
    /// ECN marking; `[]` turns it off.
    pub ecn: Option<Vec<Marking>>,
    /// Served before all weighted queues. Default: true for the classes 6 and 7.
    pub strict: Option<bool>,
    /// The weight of its queue among those that are not strict. Default: 1.
    #[schemars(range(min = 1))]
    pub weight: Option<u32>,
}
