//! Networks of the common shapes: nodes with names, ports and tiers, linked.
//!
//! ```text
//!  star        dumbbell       parking lot / ring      leaf–spine            fat-tree
//!   h h         h   h          h    h    h             spine spine           core  core
//!   \ /          \ /           │    │    │             ╳     ╳               agg agg ┊ agg agg
//!    s0         s0─s1          s0───s1───s2(──s0)      leaf  leaf            edge edge ┊ edge edge
//!   / \          / \                                   h h   h h             h h   h h ┊ …
//! ```
//!
//! Invariant: hosts come before switches, the links of hosts before those between switches, and a port's number is its
//! place among the links of its node (in a torus: what its direction says), so that names, ids and ports of a shape never
//! move.

mod dragonfly_plus;
mod fat_tree;
mod leaf_spine;
mod line;
mod rail;
#[cfg(test)]
mod tests;
mod torus;

use softfabric_units::{Rate, Span};
use thiserror::Error;

pub use dragonfly_plus::DragonflyPlus;
pub use fat_tree::FatTree;
pub use leaf_spine::LeafSpine;
pub use line::{Dumbbell, ParkingLot, Ring, Star};
pub use rail::RailOptimised;
pub use torus::Torus;

use crate::plan::{Endpoint, Link, LinkId, Network, NodeId, NodeKind, PortId};

/// A shape that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{field}` is {found}, but it must be {needed}")]
pub struct TopologyError {
    /// The field that is wrong, as scenario files call it.
    pub field: &'static str,
    /// What was found.
    pub found: String,
    /// What is allowed.
    pub needed: String,
}

impl TopologyError {
    pub(crate) fn new(
        field: &'static str,
        found: impl std::fmt::Display,
        needed: impl Into<String>,
    ) -> Self {
        Self {
            field,
            found: found.to_string(),
            needed: needed.into(),
        }
    }
}

/// Rate and delay of one kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cable {
    /// The line rate of each direction.
    pub rate: Rate,
    /// The propagation delay, one way.
    pub delay: Span,
}

/// Adds nodes and links in constant time each.
#[derive(Debug, Default)]
pub struct Builder {
    network: Network,
    ports: Vec<u32>,
}

impl Builder {
    /// Adds a host of the first profile.
    pub fn host(&mut self, name: impl Into<String>, subnet: u32) -> NodeId {
        let kind = NodeKind::Host { profile: 0, subnet };
        self.node(name, kind, 0)
    }

    /// Adds a switch of the first profile.
    pub fn switch(&mut self, name: impl Into<String>, tier: u8) -> NodeId {
        self.node(name, NodeKind::Switch { profile: 0 }, tier)
    }

    /// Adds a node.
    pub fn node(&mut self, name: impl Into<String>, kind: NodeKind, tier: u8) -> NodeId {
        self.ports.push(0);
        self.network.add_node(name, kind, tier)
    }

    /// Links two nodes by the next free port of each.
    pub fn link(&mut self, a: NodeId, b: NodeId, cable: Cable) -> LinkId {
        let a = self.next_port(a);
        let b = self.next_port(b);
        self.add(a, b, cable)
    }

    /// Links two nodes by given ports, or by the number of links that a node has. In the end, the ports of a node must have
    /// no gaps.
    pub fn link_by_ports(
        &mut self,
        a: (NodeId, Option<PortId>),
        b: (NodeId, Option<PortId>),
        cable: Cable,
    ) -> LinkId {
        let [a, b] = [a, b].map(|(node, port)| {
            let next = self.next_port(node);
            Endpoint {
                port: port.unwrap_or(next.port),
                ..next
            }
        });
        self.add(a, b, cable)
    }

    fn add(&mut self, a: Endpoint, b: Endpoint, cable: Cable) -> LinkId {
        let id = LinkId(self.network.links.len() as u32);
        self.network.links.push(Link {
            a,
            b,
            rate: cable.rate,
            delay: cable.delay,
            bit_error_rate: 0.0,
            packet_error_rate: 0.0,
        });
        id
    }

    /// The link that was just added, to change what a [`Cable`] does not say.
    pub fn link_mut(&mut self, link: LinkId) -> &mut Link {
        &mut self.network.links[link.0 as usize]
    }

    /// The network.
    ///
    /// # Errors
    /// If a node has more ports than can be numbered.
    pub fn finish(self) -> Result<Network, TopologyError> {
        let most = u32::from(u16::MAX) + 1;
        match self.ports.iter().position(|ports| *ports > most) {
            None => Ok(self.network),
            Some(node) => Err(TopologyError::new(
                "hosts",
                format!(
                    "{} ports on {}",
                    self.ports[node], self.network.nodes[node].name
                ),
                format!("at most {most} ports a node"),
            )),
        }
    }

    fn next_port(&mut self, node: NodeId) -> Endpoint {
        let port = &mut self.ports[node.index()];
        // Ports past the last number wrap here and are refused by `finish`.
        let id = PortId(*port as u16);
        *port += 1;
        Endpoint { node, port: id }
    }
}

/// Gives each switch the tier that its distance from the nearest host says; hosts are tier 0.
///
/// For networks that came as a bare list of links. A switch that no host reaches gets tier 1.
pub fn tiers_by_distance(network: &mut Network) {
    let mut neighbours = vec![Vec::new(); network.nodes.len()];
    for link in &network.links {
        neighbours[link.a.node.index()].push(link.b.node);
        neighbours[link.b.node.index()].push(link.a.node);
    }
    let mut tier: Vec<Option<u8>> = vec![None; network.nodes.len()];
    let mut reached: Vec<NodeId> = network.hosts().collect();
    reached.iter().for_each(|host| tier[host.index()] = Some(0));
    let mut next = 0;
    while next < reached.len() {
        let node = reached[next];
        next += 1;
        let above = tier[node.index()].unwrap_or(0).saturating_add(1);
        for neighbour in &neighbours[node.index()] {
            if tier[neighbour.index()].is_none() {
                tier[neighbour.index()] = Some(above);
                reached.push(*neighbour);
            }
        }
    }
    for (node, tier) in network.nodes.iter_mut().zip(tier) {
        node.tier = tier.unwrap_or(1);
    }
}

/// The order in which shapes are built: hosts first, then switches, then cables.
pub(crate) fn hosts(builder: &mut Builder, count: u32, subnet: impl Fn(u32) -> u32) -> Vec<NodeId> {
    (0..count)
        .map(|index| builder.host(format!("h{index}"), subnet(index)))
        .collect()
}

pub(crate) fn switches(builder: &mut Builder, prefix: &str, count: u32, tier: u8) -> Vec<NodeId> {
    (0..count)
        .map(|index| builder.switch(format!("{prefix}{index}"), tier))
        .collect()
}

pub(crate) fn at_least(field: &'static str, found: u32, least: u32) -> Result<(), TopologyError> {
    if found < least {
        return Err(TopologyError::new(field, found, format!("{least} or more")));
    }
    Ok(())
}

pub(crate) fn running(field: &'static str, rate: Rate) -> Result<(), TopologyError> {
    if rate.is_zero() {
        return Err(TopologyError::new(
            field,
            rate,
            "above zero, such as 100Gb/s",
        ));
    }
    Ok(())
}
