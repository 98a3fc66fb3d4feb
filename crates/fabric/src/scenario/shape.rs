//! `[fabric]`, `[topology]` and `[[link]]`: who is there and how they are linked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softfabric_units::{Rate, Span};

use super::quantity::{RateText, SpanText};

/// What kind of fabric it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fabric {
    /// The transport that hosts speak. Default: `rocev2`.
    pub kind: Option<FabricKind>,
    /// The IP version of RoCEv2 and TCP packets, 4 or 6. Default: 4.
    #[schemars(range(min = 4, max = 6))]
    pub ip: Option<u8>,
    /// Where Ethernet segments (and IP subnets) end. Default: `edge_switch` for RoCEv2, `fabric` for RoCEv1.
    pub segment: Option<Segment>,
    /// Which paths packets may take. Default: `shortest`, on InfiniBand `min_hop`.
    pub routing: Option<RoutingKind>,
    /// On Ethernet: from a change of a link until all switches route by it. A switch next to the link drops what it would send
    /// there until then. Default: `0s`, as if every switch had another way in its tables that it takes by itself. With BGP
    /// and no link signal, up to the hold time of 90 s (RFC 4271, 10); with BFD, three times its interval. On InfiniBand, see
    /// `infiniband.repair`.
    #[schemars(with = "Option<SpanText>")]
    pub reroute: Option<Span>,
}

/// The transport that hosts speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FabricKind {
    /// RDMA over UDP and IP: routable.
    #[serde(rename = "rocev2")]
    RoceV2,
    /// RDMA over Ethernet: stays within one segment.
    #[serde(rename = "rocev1")]
    RoceV1,
    /// RDMA over InfiniBand: nothing is sent without credit. See `[infiniband]`.
    #[serde(rename = "infiniband")]
    Infiniband,
    /// TCP over IP and Ethernet, by the processors: no class is lossless unless `switch.lossless` says so. See `[host.tcp]`.
    #[serde(rename = "tcp")]
    Tcp,
}

/// Where Ethernet segments end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Segment {
    /// The whole fabric is one segment.
    Fabric,
    /// The hosts of each edge switch are a segment; others are reached by routing.
    EdgeSwitch,
}

/// Which paths packets may take. All but `shortest` and `up_down` are routing engines of InfiniBand's subnet managers: they
/// give each destination one port at each switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoutingKind {
    /// All shortest ones; on InfiniBand `min_hop`.
    Shortest,
    /// The shortest of those that never go up again after they went down, so that no deadlock can form.
    UpDown,
    /// The shortest ones, balanced: can deadlock where there are rings.
    MinHop,
    /// Up by destination, then down: shift permutations meet nowhere. For fat-trees and leaf–spine fabrics.
    FatTree,
    /// The shortest ones, moved to further lanes until no deadlock can form. Uses as many of the lanes as it needs.
    Dfsssp,
    /// Dimension after dimension, with a second lane for paths that cross a dateline. For tori; needs two lanes.
    Torus,
    /// Paths within an acyclic graph of dependencies, with any number of lanes.
    Nue,
}

/// The shape of the network. `rate` and `delay` are those of the cables of hosts, `trunk_rate` and `trunk_delay` those
/// of the cables between switches; a delay is one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Topology {
    /// Hosts `h0` … on one switch `s0`.
    Star {
        /// How many hosts.
        #[schemars(range(min = 2))]
        hosts: u32,
        /// Default: `100Gb/s`.
        #[schemars(with = "Option<RateText>")]
        rate: Option<Rate>,
        /// Default: `1us`.
        #[schemars(with = "Option<SpanText>")]
        delay: Option<Span>,
    },
    /// Hosts on both sides of one link between `s0` and `s1`; those on the left come first.
    Dumbbell {
        /// How many hosts on `s0`.
        #[schemars(range(min = 1))]
        left: u32,
        /// How many hosts on `s1`.
        #[schemars(range(min = 1))]
        right: u32,
        /// Default: `100Gb/s`.
        #[schemars(with = "Option<RateText>")]
        rate: Option<Rate>,
        /// Default: `1us`.
        #[schemars(with = "Option<SpanText>")]
        delay: Option<Span>,
        /// Default: as `rate`.
        #[schemars(with = "Option<RateText>")]
        trunk_rate: Option<Rate>,
        /// Default: as `delay`.
        #[schemars(with = "Option<SpanText>")]
        trunk_delay: Option<Span>,
    },
    /// Switches `s0`, `s1` … in a row, with hosts on each; hosts are numbered along the row.
    ParkingLot {
        /// How many hosts on each switch: `[3, 2]`.
        hosts: Vec<u32>,
        /// Default: `100Gb/s`.
        #[schemars(with = "Option<RateText>")]
        rate: Option<Rate>,
        /// Default: `1us`.
        #[schemars(with = "Option<SpanText>")]
        delay: Option<Span>,
        /// Default: as `rate`.
        #[schemars(with = "Option<RateText>")]
        trunk_rate: Option<Rate>,
        /// Default: as `delay`.
        #[schemars(with = "Option<SpanText>")]
        trunk_delay: Option<Span>,
    },
    /// Switches `s0`, `s1` … in a ring, with hosts on each. Workloads may ask for clockwise paths, which can deadlock.
    Ring {
        /// How many switches.
        #[schemars(range(min = 3))]
        switches: u32,
        /// How many hosts on each switch. Default: 1.
        #[schemars(range(min = 1))]
        hosts_per_switch: Option<u32>,
        /// Default: `100Gb/s`.
        #[schemars(with = "Option<RateText>")]
        rate: Option<Rate>,
        /// Default: `1us`.
        #[schemars(with = "Option<SpanText>")]
        delay: Option<Span>,
        /// Default: as `rate`.
        #[schemars(with = "Option<RateText>")]
        trunk_rate: Option<Rate>,
        /// Default: as `delay`.
        #[schemars(with = "Option<SpanText>")]
        trunk_delay: Option<Span>,
    },
    /// Leaves `leaf0` … with hosts, each linked to all spines `spine0` …; hosts are numbered leaf by leaf.
    LeafSpine {
        /// How many leaves.
        #[schemars(range(min = 1))]
        leaves: u32,
        /// How many spines. Default: what `oversubscription` asks for.
        #[schemars(range(min = 1))]
        spines: Option<u32>,
        /// How many hosts on each leaf.
        #[schemars(range(min = 1))]
        hosts_per_leaf: u32,
        /// What the hosts of a leaf can offer over what its uplinks carry. Default: 1, or what `spines` leads to.
        oversubscription: Option<f64>,
        /// Default: `100Gb/s`.
        #[schemars(with = "Option<RateText>")]
        rate: Option<Rate>,
        /// Default: `1us`.
        #[schemars(with = "Option<SpanText>")]
        delay: Option<Span>,
        /// Default: as `rate`.
        #[schemars(with = "Option<RateText>")]
        trunk_rate: Option<Rate>,
        /// Default: as `delay`.
        #[schemars(with = "Option<SpanText>")]
        trunk_delay: Option<Span>,
    },
    /// A fat-tree: k pods of k/2 edge switches `edge0` … and k/2 aggregation switches `agg0` …, and (k/2)² core
    /// switches `core0` …; k³/4 hosts.
    FatTree {
        /// Ports of a switch: an even number.
        #[schemars(range(min = 2, max = 256))]
        k: u32,
        /// Hosts of an edge switch over its uplinks. Default: 1.
        #[schemars(range(min = 1))]
        oversubscription: Option<u32>,
        /// Default: `100Gb/s`.
        #[schemars(with = "Option<RateText>")]
        rate: Option<Rate>,
        /// Default: `1us`.
        #[schemars(with = "Option<SpanText>")]
        delay: Option<Span>,
        /// Default: as `rate`.
        #[schemars(with = "Option<RateText>")]
        trunk_rate: Option<Rate>,
        /// Default: as `delay`.
        #[schemars(with = "Option<SpanText>")]
        trunk_delay: Option<Span>,
    },
    /// A torus: switches `s0`, `s1` … in a ring in each dimension, the last running fastest, with hosts on each; hosts are
    /// numbered switch by switch.
    Torus {
        /// How many switches each dimension has: `[4, 4, 4]`.
        dimensions: Vec<u32>,
        /// How many hosts on each switch. Default: 1.
        #[schemars(range(min = 1))]
        hosts_per_switch: Option<u32>,
        /// Default: `100Gb/s`.
        #[schemars(with = "Option<RateText>")]
        rate: Option<Rate>,
        /// Default: `1us`.
        #[schemars(with = "Option<SpanText>")]
        delay: Option<Span>,
        /// Default: as `rate`.
        #[schemars(with = "Option<RateText>")]
        trunk_rate: Option<Rate>,
        /// Default: as `delay`.
        #[schemars(with = "Option<SpanText>")]
        trunk_delay: Option<Span>,
    },
    /// A Dragonfly+: groups in which every leaf `group0leaf0` … is linked to every spine `group0spine0` …, and spines are linked to
    /// those of all other groups; hosts are numbered group by group and leaf by leaf. The shortest ways go up, across and down, and
    /// cannot lock up; where lost cables make others of them, `routing = "up_down"` (or InfiniBand's `nue`) keeps them so.
    DragonflyPlus {
        /// How many groups.
        #[schemars(range(min = 2))]
        groups: u32,
        /// How many leaves each group has.
        #[schemars(range(min = 1))]
        leaves: u32,
        /// How many spines each group has. Default: as many as leaves.
        #[schemars(range(min = 1))]
        spines: Option<u32>,
        /// How many hosts on each leaf. Default: as many as spines.
        #[schemars(range(min = 1))]
        hosts_per_leaf: Option<u32>,
        /// How many cables lead from each group to each other one; a group deals its cables to its spines in turn. Default: one
        /// for each spine.
        #[schemars(range(min = 1))]
        global_links: Option<u32>,
        /// Default: `100Gb/s`.
        #[schemars(with = "Option<RateText>")]
        rate: Option<Rate>,
        /// Default: `1us`.
        #[schemars(with = "Option<SpanText>")]
        delay: Option<Span>,
        /// Default: as `rate`.
        #[schemars(with = "Option<RateText>")]
        trunk_rate: Option<Rate>,
        /// Default: as `delay`.
        #[schemars(with = "Option<SpanText>")]
        trunk_delay: Option<Span>,
        /// The rate of cables between groups. Default: as `trunk_rate`.
        #[schemars(with = "Option<RateText>")]
        global_rate: Option<Rate>,
        /// Their delay. Default: as `trunk_delay`.
        #[schemars(with = "Option<SpanText>")]
        global_delay: Option<Span>,
    },
    /// Servers `h0` … with a NIC for each rail and a port of it for each plane; leaves `rail0leaf0` … (with several planes
    /// `plane0rail0leaf0` …), and spines `spine0` … (`plane0spine0` …) that link all rails of a plane. Planes, and rails without
    /// spines, are subnets of their own on InfiniBand.
    RailOptimised {
        /// How many servers.
        #[schemars(range(min = 1))]
        servers: u32,
        /// How many rails: NICs of a server. Default: as `host.server.topology` says, else 8.
        #[schemars(range(min = 1))]
        rails: Option<u32>,
        /// How many planes: ports of a NIC. Default: 1.
        #[schemars(range(min = 1))]
        planes: Option<u32>,
        /// How many servers hang on one leaf. Default: all.
        #[schemars(range(min = 1))]
        servers_per_leaf: Option<u32>,
        /// How many spines each plane has; 0: rails do not reach each other. Default: 0 where all servers hang on one leaf, else
        /// as many as carry what the servers of a leaf can send.
        spines: Option<u32>,
        /// Default: as `host.server.topology` says, else `400Gb/s`.
        #[schemars(with = "Option<RateText>")]
        rate: Option<Rate>,
        /// Default: `1us`.
        #[schemars(with = "Option<SpanText>")]
        delay: Option<Span>,
        /// Default: as `rate`.
        #[schemars(with = "Option<RateText>")]
        trunk_rate: Option<Rate>,
        /// Default: as `delay`.
        #[schemars(with = "Option<SpanText>")]
        trunk_delay: Option<Span>,
    },
    /// Nodes and links, one by one. Ports are numbered in the order of the links, unless links say their ports.
    Explicit {
        /// Hosts and switches.
        node: Vec<ExplicitNode>,
        /// The links between them.
        link: Vec<ExplicitLink>,
    },
}

/// A host or a switch of an explicit topology.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplicitNode {
    /// Its name, unique in the network.
    pub name: String,
    /// What it is.
    pub kind: ExplicitKind,
    /// Its height, for drawings and up-down routing: hosts 0, edge switches 1 … Default: by the distance from the
    /// nearest host.
    pub tier: Option<u8>,
    /// The number of the Ethernet segment of a host. Default: 0.
    pub segment: Option<u32>,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExplicitKind {
    /// A host.
    Host,
    /// A switch.
    Switch,
}

/// A link of an explicit topology.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplicitLink {
    /// The name of one end.
    pub a: String,
    /// The name of the other end.
    pub b: String,
    /// The port of `a`, from 0. Default: the number of its links before this one.
    pub a_port: Option<u16>,
    /// The port of `b`.
    pub b_port: Option<u16>,
    /// The line rate of each direction.
    #[schemars(with = "RateText")]
    pub rate: Rate,
    /// The propagation delay, one way.
    #[schemars(with = "SpanText")]
    pub delay: Span,
    /// The probability that a bit is damaged. Default: 0.
    #[schemars(range(min = 0, max = 1))]
    pub bit_error_rate: Option<f64>,
    /// The probability that a packet is lost. Default: 0.
    #[schemars(range(min = 0, max = 1))]
    pub packet_error_rate: Option<f64>,
}

/// Changes some links of a topology.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkChange {
    /// The nodes at both ends: names, ranges `h0..h3` (both included), or `*` for any text: `["h*", "s0"]`.
    pub between: (String, String),
    /// The line rate.
    #[schemars(with = "Option<RateText>")]
    pub rate: Option<Rate>,
    /// The propagation delay, one way.
    #[schemars(with = "Option<SpanText>")]
    pub delay: Option<Span>,
    /// The probability that a bit is damaged.
    #[schemars(range(min = 0, max = 1))]
    pub bit_error_rate: Option<f64>,
    /// The probability that a packet is lost.
    #[schemars(range(min = 0, max = 1))]
    pub packet_error_rate: Option<f64>,
}
