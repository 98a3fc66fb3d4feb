//! `[topology]` and `[[link]]`: the network.

use softfabric_units::{Rate, Span};

use super::{one, report};
use crate::plan::{Network, NodeId, NodeKind, PortId};
use crate::scenario::error::Problems;
use crate::scenario::names::{Names, Wanted};
use crate::scenario::{
    ExplicitKind, ExplicitLink, ExplicitNode, FabricKind, Scenario, Segment, Topology,
};
use crate::topology::{
    Builder, Cable, DragonflyPlus, Dumbbell, FatTree, LeafSpine, ParkingLot, RailOptimised, Ring,
    Star, TopologyError, Torus, tiers_by_distance,
};

/// A network, and what workloads may ask about its shape.
pub(super) struct Shape {
    pub(super) network: Network,
    /// The switches of a ring, clockwise.
    pub(super) ring: Vec<NodeId>,
    /// How many ports of a host belong to one NIC, each on a plane of its own.
    pub(super) planes: u16,
    /// How many NICs a host has, each on a rail of its own; zero where there are no rails.
    pub(super) rails: u32,
}

impl From<Network> for Shape {
    fn from(network: Network) -> Self {
        Self {
            network,
            ring: Vec::new(),
            planes: 1,
            rails: 0,
        }
    }
}

const RATE: Rate = Rate::gbps(100);
const DELAY: Span = Span::micros(1);

/// Of a rail-optimised fabric: how many NICs a server has, and how fast they are.
const RAILS: u32 = 8;
const RAIL_RATE: Rate = Rate::gbps(400);

/// More hosts than any topology here can have: those of a fat-tree of 256 ports.
const MOST_HOSTS: u64 = 256 * 256 * 256 / 4;
/// Links of the same fat-tree, with some to spare.
const MOST_LINKS: u64 = 1 << 24;

/// Refuses numbers that would fill the memory before anything else could be said of them.
fn refuse_the_gigantic(topology: &Topology, problems: &mut Problems<'_>) -> Option<()> {
    let (hosts, trunks) = match topology {
        Topology::Star { hosts, .. } => (u64::from(*hosts), 0),
        Topology::Dumbbell { left, right, .. } => (u64::from(*left) + u64::from(*right), 1),
        Topology::ParkingLot { hosts, .. } => (
            hosts.iter().map(|hosts| u64::from(*hosts)).sum(),
            hosts.len() as u64,
        ),
        Topology::Ring {
            switches,
            hosts_per_switch,
            ..
        } => (
            u64::from(*switches) * u64::from(hosts_per_switch.unwrap_or(1)),
            u64::from(*switches),
        ),
        Topology::LeafSpine { .. } => {
            // What has no number of spines is refused when it is built.
            let Some(Ok(shape)) = leaf_spine(topology) else {
                return Some(());
            };
            (
                u64::from(shape.leaves) * u64::from(shape.hosts_per_leaf),
                u64::from(shape.leaves) * u64::from(shape.spines),
            )
        }
        Topology::FatTree {
            k,
            oversubscription,
            ..
        } => {
            let k = u64::from(*k);
            let hosts = (k * k * k / 4).saturating_mul(u64::from(oversubscription.unwrap_or(1)));
            (hosts, k * k * k / 2)
        }
        Topology::Torus {
            dimensions,
            hosts_per_switch,
            ..
        } => {
            let switches = Torus::switches(dimensions);
            (
                switches.saturating_mul(u64::from(hosts_per_switch.unwrap_or(1))),
                switches.saturating_mul(dimensions.len() as u64),
            )
        }
        Topology::DragonflyPlus { .. } => {
            let shape = dragonfly_plus(topology)?;
            let leaves = u64::from(shape.groups).saturating_mul(u64::from(shape.leaves));
            (
                leaves.saturating_mul(u64::from(shape.hosts_per_leaf)),
                shape.trunks(),
            )
        }
        Topology::RailOptimised { .. } => {
            let shape = rail_optimised(topology)?;
            let ports = u64::from(shape.rails) * u64::from(shape.planes);
            (
                u64::from(shape.servers).saturating_mul(ports),
                ports
                    .saturating_mul(u64::from(shape.leaves()))
                    .saturating_mul(u64::from(shape.spines)),
            )
        }
        Topology::Explicit { .. } => return Some(()),
    };
    let links = hosts.saturating_add(trunks);
    let (found, allowed) = if hosts > MOST_HOSTS {
        (
            format!("{hosts} hosts"),
            format!("at most {MOST_HOSTS} hosts"),
        )
    } else if links > MOST_LINKS {
        (
            format!("{links} links"),
            format!("at most {MOST_LINKS} links"),
        )
    } else {
        return Some(());
    };
    problems.add("topology", found, allowed, None);
    None
}

pub(super) fn network(scenario: &Scenario, problems: &mut Problems<'_>) -> Option<Shape> {
    refuse_the_gigantic(&scenario.topology, problems)?;
    let built = match &scenario.topology {
        Topology::Explicit { node, link } => explicit(node, link, problems)?,
        known => match shape(known) {
            Ok(shape) => shape,
            Err(error) => {
                let field = format!("topology.{}", error.field);
                problems.add(field, error.found, error.needed, None);
                return None;
            }
        },
    };
    let mut shape = built;
    let is_explicit = matches!(scenario.topology, Topology::Explicit { .. });
    let segment = scenario
        .fabric
        .segment
        .unwrap_or(match scenario.fabric.kind {
            Some(FabricKind::RoceV1) => Segment::Fabric,
            _ => Segment::EdgeSwitch,
        });
    // An explicit topology says itself which segment a host is in.
    if segment == Segment::Fabric && !is_explicit {
        for node in &mut shape.network.nodes {
            if let NodeKind::Host { subnet, .. } = &mut node.kind {
                *subnet = 0;
            }
        }
    }
    change_links(scenario, &mut shape.network, problems);
    Some(shape)
}

fn cables(rate: &Option<Rate>, delay: &Option<Span>) -> Cable {
    Cable {
        rate: rate.unwrap_or(RATE),
        delay: delay.unwrap_or(DELAY),
    }
}

fn trunks(cable: Cable, rate: &Option<Rate>, delay: &Option<Span>) -> Cable {
    Cable {
        rate: rate.unwrap_or(cable.rate),
        delay: delay.unwrap_or(cable.delay),
    }
}

/// The counts of a leaf–spine, spines included; `None` if it is none.
fn leaf_spine(topology: &Topology) -> Option<Result<LeafSpine, TopologyError>> {
    let Topology::LeafSpine {
        leaves,
        spines,
        hosts_per_leaf,
        oversubscription,
        rate,
        delay,
        trunk_rate,
        trunk_delay,
    } = topology
    else {
        return None;
    };
    let cable = cables(rate, delay);
    let mut shape = LeafSpine {
        leaves: *leaves,
        spines: spines.unwrap_or(1),
        hosts_per_leaf: *hosts_per_leaf,
        cable,
        uplink: trunks(cable, trunk_rate, trunk_delay),
    };
    let wanted = oversubscription.or(spines.is_none().then_some(1.0));
    let fits = wanted.map_or(Ok(()), |wanted| oversubscribe(&mut shape, wanted, *spines));
    Some(fits.map(|()| shape))
}

/// The counts of a rail-optimised fabric, spines included; `None` if it is none.
fn rail_optimised(topology: &Topology) -> Option<RailOptimised> {
    let Topology::RailOptimised {
        servers,
        rails,
        planes,
        servers_per_leaf,
        spines,
        rate,
        delay,
        trunk_rate,
        trunk_delay,
    } = topology
    else {
        return None;
    };
    let cable = cables(&Some(rate.unwrap_or(RAIL_RATE)), delay);
    let uplink = trunks(cable, trunk_rate, trunk_delay);
    let each = servers_per_leaf.unwrap_or(*servers);
    let enough = (u128::from(each) * u128::from(cable.rate.as_bps()))
        .div_ceil(u128::from(uplink.rate.as_bps().max(1)));
    Some(RailOptimised {
        servers: *servers,
        rails: rails.unwrap_or(RAILS),
        planes: planes.unwrap_or(1),
        servers_per_leaf: each,
        spines: spines.unwrap_or(match each >= *servers {
            true => 0,
            false => enough.min(1 << 16) as u32,
        }),
        cable,
        uplink,
    })
}

/// The counts of a Dragonfly+, with those that follow from others; `None` if it is none.
fn dragonfly_plus(topology: &Topology) -> Option<DragonflyPlus> {
    let Topology::DragonflyPlus {
        groups,
        leaves,
        spines,
        hosts_per_leaf,
        global_links,
        rate,
        delay,
        trunk_rate,
        trunk_delay,
        global_rate,
        global_delay,
    } = topology
    else {
        return None;
    };
    let cable = cables(rate, delay);
    let trunk = trunks(cable, trunk_rate, trunk_delay);
    let spines = spines.unwrap_or(*leaves);
    Some(DragonflyPlus {
        groups: *groups,
        leaves: *leaves,
        spines,
        hosts_per_leaf: hosts_per_leaf.unwrap_or(spines),
        global_links: global_links.unwrap_or(spines),
        cable,
        trunk,
        global: trunks(trunk, global_rate, global_delay),
    })
}

fn shape(topology: &Topology) -> Result<Shape, TopologyError> {
    match topology {
        Topology::Star { hosts, rate, delay } => {
            let cable = cables(rate, delay);
            let star = Star {
                hosts: *hosts,
                cable,
            };
            Ok(star.build()?.into())
        }
        Topology::Dumbbell {
            left,
            right,
            rate,
            delay,
            trunk_rate,
            trunk_delay,
        } => {
            let cable = cables(rate, delay);
            let dumbbell = Dumbbell {
                left: *left,
                right: *right,
                cable,
                bottleneck: trunks(cable, trunk_rate, trunk_delay),
            };
            Ok(dumbbell.build()?.into())
        }
        Topology::ParkingLot {
            hosts,
            rate,
            delay,
            trunk_rate,
            trunk_delay,
        } => {
            let cable = cables(rate, delay);
            let parking = ParkingLot {
                hosts: hosts.clone(),
                cable,
                trunk: trunks(cable, trunk_rate, trunk_delay),
            };
            Ok(parking.build()?.into())
        }
        Topology::Ring {
            switches,
            hosts_per_switch,
            rate,
            delay,
            trunk_rate,
            trunk_delay,
        } => {
            let cable = cables(rate, delay);
            let ring = Ring {
                switches: *switches,
                hosts_per_switch: hosts_per_switch.unwrap_or(1),
                cable,
                trunk: trunks(cable, trunk_rate, trunk_delay),
            };
            let (network, ring) = ring.build()?;
            Ok(Shape {
                ring,
                ..network.into()
            })
        }
        Topology::LeafSpine { .. } => match leaf_spine(topology) {
            Some(shape) => Ok(shape?.build()?.into()),
            None => unreachable!("it is a leaf–spine"),
        },
        Topology::FatTree {
            k,
            oversubscription,
            rate,
            delay,
            trunk_rate,
            trunk_delay,
        } => {
            let cable = cables(rate, delay);
            let tree = FatTree {
                k: *k,
                oversubscription: oversubscription.unwrap_or(1),
                cable,
                uplink: trunks(cable, trunk_rate, trunk_delay),
            };
            Ok(tree.build()?.into())
        }
        Topology::Torus {
            dimensions,
            hosts_per_switch,
            rate,
            delay,
            trunk_rate,
            trunk_delay,
        } => {
            let cable = cables(rate, delay);
            let torus = Torus {
                dimensions: dimensions.clone(),
                hosts_per_switch: hosts_per_switch.unwrap_or(1),
                cable,
                trunk: trunks(cable, trunk_rate, trunk_delay),
            };
            Ok(torus.build()?.into())
        }
        Topology::DragonflyPlus { .. } => match dragonfly_plus(topology) {
            Some(shape) => Ok(shape.build()?.into()),
            None => unreachable!("it is a Dragonfly+"),
        },
        Topology::RailOptimised { .. } => match rail_optimised(topology) {
            Some(shape) => Ok(Shape {
                planes: shape.planes.min(u32::from(u16::MAX)) as u16,
                rails: shape.rails,
                ..shape.build()?.into()
            }),
            None => unreachable!("it is rail-optimised"),
        },
        Topology::Explicit { .. } => unreachable!("explicit topologies are built by name"),
    }
}

/// Finds the number of spines for an oversubscription, or checks that it is the one asked for.
fn oversubscribe(
    shape: &mut LeafSpine,
    wanted: f64,
    spines: Option<u32>,
) -> Result<(), TopologyError> {
    let wrong =
        |found: String, needed: String| Err(TopologyError::new("oversubscription", found, needed));
    if !(wanted > 0.0 && wanted.is_finite()) {
        return wrong(
            wanted.to_string(),
            "a number above zero, such as 1 or 2".to_owned(),
        );
    }
    // With a zero rate there is nothing to divide; `build` says so.
    if shape.cable.rate.is_zero() || shape.uplink.rate.is_zero() {
        return Ok(());
    }
    let close = |ratio: f64, wanted: f64| (ratio / wanted - 1.0).abs() < 1e-9;
    if spines.is_some() {
        let ratio = shape.oversubscription();
        return if close(ratio, wanted) {
            Ok(())
        } else {
            wrong(
                wanted.to_string(),
                format!("{ratio}, which `spines` and the rates lead to; leave out one of them"),
            )
        };
    }
    shape.spines = 1;
    let exact = shape.oversubscription() / wanted;
    let spines = libm::round(exact);
    if spines < 1.0 || !close(spines, exact) {
        return wrong(
            format!("{wanted}, which takes {exact} spines"),
            "one that takes a whole number of spines; give `spines` or other rates".to_owned(),
        );
    }
    shape.spines = spines as u32;
    Ok(())
}

fn explicit(
    nodes: &[ExplicitNode],
    links: &[ExplicitLink],
    problems: &mut Problems<'_>,
) -> Option<Shape> {
    let before = problems.len();
    let mut builder = Builder::default();
    let mut seen = rustc_hash::FxHashMap::default();
    for (place, node) in nodes.iter().enumerate() {
        if let Some(first) = seen.insert(node.name.as_str(), place) {
            problems.add(
                format!("topology.node[{place}].name"),
                format!("`{}`, the name of node {first}", node.name),
                "a name of its own",
                None,
            );
        }
        let kind = match node.kind {
            ExplicitKind::Host => NodeKind::Host {
                profile: 0,
                subnet: node.segment.unwrap_or(0),
            },
            ExplicitKind::Switch => NodeKind::Switch { profile: 0 },
        };
        builder.node(node.name.clone(), kind, node.tier.unwrap_or(0));
    }
    if problems.len() > before {
        return None;
    }
    let mut bare = Network::default();
    for node in nodes {
        bare.add_node(node.name.clone(), NodeKind::Switch { profile: 0 }, 0);
    }
    let names = Names::new(&bare);
    for (place, link) in links.iter().enumerate() {
        let field = format!("topology.link[{place}]");
        let a = one(
            &names,
            &link.a,
            Wanted::Any,
            &format!("{field}.a"),
            problems,
        );
        let b = one(
            &names,
            &link.b,
            Wanted::Any,
            &format!("{field}.b"),
            problems,
        );
        let (Some(a), Some(b)) = (a, b) else {
            continue;
        };
        if link.rate.is_zero() {
            let allowed = "a rate above zero, such as 100Gb/s";
            problems.add(format!("{field}.rate"), "zero", allowed, None);
        }
        let cable = Cable {
            rate: link.rate,
            delay: link.delay,
        };
        let id = builder.link_by_ports(
            (a, link.a_port.map(PortId)),
            (b, link.b_port.map(PortId)),
            cable,
        );
        let built = builder.link_mut(id);
        built.bit_error_rate = link.bit_error_rate.unwrap_or(0.0);
        built.packet_error_rate = link.packet_error_rate.unwrap_or(0.0);
    }
    let mut network = match builder.finish() {
        Ok(network) => network,
        Err(error) => {
            problems.add("topology.link", error.found, error.needed, None);
            return None;
        }
    };
    tiers_by_distance(&mut network);
    for (built, node) in network.nodes.iter_mut().zip(nodes) {
        built.tier = node.tier.unwrap_or(built.tier);
    }
    (problems.len() == before).then(|| network.into())
}

fn change_links(scenario: &Scenario, network: &mut Network, problems: &mut Problems<'_>) {
    for (place, change) in scenario.link.iter().enumerate() {
        let field = format!("link[{place}]");
        let mut ends = Vec::new();
        let names = Names::new(network);
        for (end, pattern) in [&change.between.0, &change.between.1].iter().enumerate() {
            match names.select(pattern, Wanted::Any) {
                Ok(nodes) => ends.push(nodes),
                Err(unknown) => report(&format!("{field}.between[{end}]"), unknown, problems),
            }
        }
        let [a, b] = &ends[..] else {
            continue;
        };
        let of = |nodes: &[NodeId]| {
            let mut is_in = vec![false; network.nodes.len()];
            nodes.iter().for_each(|node| is_in[node.index()] = true);
            is_in
        };
        let (a, b) = (of(a), of(b));
        if change.rate.is_some_and(Rate::is_zero) {
            let allowed = "a rate above zero, such as 100Gb/s";
            problems.add(format!("{field}.rate"), "zero", allowed, None);
        }
        let mut changed = 0;
        for link in &mut network.links {
            let (one, other) = (link.a.node.index(), link.b.node.index());
            if !((a[one] && b[other]) || (a[other] && b[one])) {
                continue;
            }
            changed += 1;
            link.rate = change.rate.unwrap_or(link.rate);
            link.delay = change.delay.unwrap_or(link.delay);
            link.bit_error_rate = change.bit_error_rate.unwrap_or(link.bit_error_rate);
            link.packet_error_rate = change.packet_error_rate.unwrap_or(link.packet_error_rate);
        }
        if changed == 0 {
            let found = format!("`{}` and `{}`", change.between.0, change.between.1);
            problems.add(
                format!("{field}.between"),
                format!("{found}, which no link connects"),
                "the two ends of at least one link",
                None,
            );
        }
    }
}
