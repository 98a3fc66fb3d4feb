//! Who is wired to whom: nodes, their ports, and the cables between them.
//!
//! ```text
//! Topology ── nodes   h0, leaf0, spine1 …       a host, or a switch
//!          └─ ports   h0, leaf0:3, leaf0:8 …    of one node each, with a rate, and the port at the other end
//! ```
//!
//! A port is known by its number in `Topology::ports`; everything that counts is indexed by it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use softfabric_units::Rate;
use thiserror::Error;

/// A port, by its place in the topology.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortIndex(pub u32);

/// A node, by its place in the topology.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeIndex(pub u32);

impl PortIndex {
    /// For use as an array index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl NodeIndex {
    /// For use as an array index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What holds senders back where a receiver has no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkLayer {
    /// Pause frames, by priority.
    #[default]
    Ethernet,
    /// Credits.
    Infiniband,
}

impl fmt::Display for LinkLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ethernet => "Ethernet",
            Self::Infiniband => "InfiniBand",
        })
    }
}

/// What a node does with packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// It sends and takes them.
    Host,
    /// It forwards them.
    Switch,
}

/// A host or a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Its ports.
    pub ports: Vec<PortIndex>,
}

/// A port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its name, unique in the topology: `leaf0:3`, or `leaf0:Ethernet12`.
    pub name: String,
    /// The node that it belongs to.
    pub node: NodeIndex,
    /// How fast it is, if that is known.
    pub rate: Option<Rate>,
    /// The port at the other end of its cable.
    pub peer: Option<PortIndex>,
}

/// Nodes, ports and cables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Topology {
    /// What holds senders back.
    pub link_layer: LinkLayer,
    nodes: Vec<Node>,
    ports: Vec<Port>,
    nodes_by_name: BTreeMap<String, NodeIndex>,
    ports_by_name: BTreeMap<String, PortIndex>,
}

/// What cannot be in a topology.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TopologyError {
    /// Two nodes of one name.
    #[error("there are two nodes of the name `{0}`; names must be unique")]
    NodeTwice(String),
    /// Two ports of one name.
    #[error("there are two ports of the name `{0}`; names must be unique")]
    PortTwice(String),
    /// A cable with three ends.
    #[error(
        "`{port}` has two cables: to `{first}` and to `{second}`; a port has one neighbour. Is one of the tables stale?"
    )]
    CabledTwice {
        /// The port.
        port: String,
        /// Its neighbour.
        first: String,
        /// The other one.
        second: String,
    },
    /// A node that is a host in one place and a switch in another.
    #[error("`{0}` is a host in one recording and a switch in another; which is it?")]
    KindTwice(String),
    /// Two fabrics of different kinds in one.
    #[error(
        "one recording is of {first} and another of {second}: a diagnosis follows one of them at a time"
    )]
    LinkLayers {
        /// What holds senders back in the first.
        first: LinkLayer,
        /// And in the other.
        second: LinkLayer,
    },
    /// A cable from a port to itself.
    #[error("`{0}` is cabled to itself")]
    CabledToItself(String),
}

impl Topology {
    /// A topology without nodes.
    pub fn new(link_layer: LinkLayer) -> Self {
        Self {
            link_layer,
            ..Self::default()
        }
    }

    /// Adds a node.
    ///
    /// # Errors
    /// If there is one of this name.
    pub fn add_node(
        &mut self,
        name: impl Into<String>,
        kind: NodeKind,
    ) -> Result<NodeIndex, TopologyError> {
        let name = name.into();
        let index = NodeIndex(self.nodes.len() as u32);
        if self.nodes_by_name.contains_key(&name) {
            return Err(TopologyError::NodeTwice(name));
        }
        self.nodes_by_name.insert(name.clone(), index);
        self.nodes.push(Node {
            name,
            kind,
            ports: Vec::new(),
        });
        Ok(index)
    }

    /// Adds a port to a node.
    ///
    /// # Errors
    /// If there is one of this name.
    pub fn add_port(
        &mut self,
        node: NodeIndex,
        name: impl Into<String>,
        rate: Option<Rate>,
    ) -> Result<PortIndex, TopologyError> {
        let name = name.into();
        let index = PortIndex(self.ports.len() as u32);
        if self.ports_by_name.contains_key(&name) {
            return Err(TopologyError::PortTwice(name));
        }
        self.ports_by_name.insert(name.clone(), index);
        self.nodes[node.index()].ports.push(index);
        self.ports.push(Port {
            name,
            node,
            rate,
            peer: None,
        });
        Ok(index)
    }

    /// Lays a cable. The same cable twice, as two neighbours' tables tell it, is one cable.
    ///
    /// # Errors
    /// If one of the ports has another neighbour already, or both are one.
    pub fn connect(&mut self, a: PortIndex, b: PortIndex) -> Result<(), TopologyError> {
        if a == b {
            return Err(TopologyError::CabledToItself(self.port(a).name.clone()));
        }
        for (this, other) in [(a, b), (b, a)] {
            if let Some(known) = self.port(this).peer
                && known != other
            {
                return Err(TopologyError::CabledTwice {
                    port: self.port(this).name.clone(),
                    first: self.port(known).name.clone(),
                    second: self.port(other).name.clone(),
                });
            }
        }
        self.ports[a.index()].peer = Some(b);
        self.ports[b.index()].peer = Some(a);
        Ok(())
    }

    /// Adds what another topology has and this one does not; says where each of its ports is here.
    ///
    /// # Errors
    /// If a port has two neighbours, or belongs to two nodes; if a node is of two kinds, or the two are of different link
    /// layers.
    pub(crate) fn absorb(&mut self, other: &Self) -> Result<Vec<PortIndex>, TopologyError> {
        // Without ports, it says nothing of the fabric's kind.
        if self.ports.is_empty() {
            self.link_layer = other.link_layer;
        } else if !other.ports.is_empty() && self.link_layer != other.link_layer {
            return Err(TopologyError::LinkLayers {
                first: self.link_layer,
                second: other.link_layer,
            });
        }
        let mut nodes = Vec::with_capacity(other.nodes.len());
        for node in &other.nodes {
            nodes.push(match self.find_node(&node.name) {
                Some(known) if self.node(known).kind != node.kind => {
                    return Err(TopologyError::KindTwice(node.name.clone()));
                }
                Some(known) => known,
                None => self.add_node(node.name.clone(), node.kind)?,
            });
        }
        let mut places = Vec::new();
        for port in &other.ports {
            let here = nodes[port.node.index()];
            let place = match self.find_port(&port.name) {
                Some(place) if self.port(place).node == here => {
                    // Who lists a neighbour's port may not know its rate.
                    let known = &mut self.ports[place.index()].rate;
                    *known = known.or(port.rate);
                    place
                }
                Some(_) => return Err(TopologyError::PortTwice(port.name.clone())),
                None => self.add_port(here, port.name.clone(), port.rate)?,
            };
            places.push(place);
        }
        for (port, place) in other.ports.iter().zip(&places) {
            if let Some(peer) = port.peer {
                self.connect(*place, places[peer.index()])?;
            }
        }
        Ok(places)
    }

    /// All nodes, by their index.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All ports, by their index.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The node.
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.index()]
    }

    /// The port.
    pub fn port(&self, index: PortIndex) -> &Port {
        &self.ports[index.index()]
    }

    /// The node that the port belongs to.
    pub fn owner(&self, port: PortIndex) -> &Node {
        self.node(self.port(port).node)
    }

    /// The port at the other end of the cable.
    pub fn peer(&self, port: PortIndex) -> Option<PortIndex> {
        self.port(port).peer
    }

    /// What is at the other end of the cable.
    pub fn neighbour(&self, port: PortIndex) -> Option<&Node> {
        Some(self.owner(self.peer(port)?))
    }

    /// The node of this name.
    pub fn find_node(&self, name: &str) -> Option<NodeIndex> {
        self.nodes_by_name.get(name).copied()
    }

    /// The port of this name.
    pub fn find_port(&self, name: &str) -> Option<PortIndex> {
        self.ports_by_name.get(name).copied()
    }

    /// All ports, in order.
    pub fn port_indices(&self) -> impl Iterator<Item = PortIndex> + use<> {
        (0..self.ports.len() as u32).map(PortIndex)
    }

    /// How many cables lie between this node and every other one; `None` where no way leads.
    fn distances(&self, from: NodeIndex, usable: &dyn Fn(PortIndex) -> bool) -> Vec<Option<u32>> {
        let mut distances = vec![None; self.nodes.len()];
        distances[from.index()] = Some(0);
        let mut reached = vec![from];
        let mut next = 0;
        while let Some(&node) = reached.get(next) {
            next += 1;
            // Hosts do not forward.
            if node != from && self.node(node).kind == NodeKind::Host {
                continue;
            }
            let distance = distances[node.index()].map(|distance| distance + 1);
            for &port in &self.node(node).ports {
                let Some(peer) = self.peer(port).filter(|_| usable(port)) else {
                    continue;
                };
                let neighbour = self.port(peer).node;
                if distances[neighbour.index()].is_none() {
                    distances[neighbour.index()] = distance;
                    reached.push(neighbour);
                }
            }
        }
        distances
    }

    /// The other ports of the same switch that lead just as well to wherever `port` leads: their neighbours are as far
    /// from every host as that of `port` is, over the cables that are `usable`. Routes that balance load choose among these.
    pub fn alternatives(
        &self,
        port: PortIndex,
        usable: &dyn Fn(PortIndex) -> bool,
    ) -> Vec<PortIndex> {
        let node = self.port(port).node;
        let far_side = |port: PortIndex| self.peer(port).map(|peer| self.port(peer).node);
        let Some(there) = far_side(port) else {
            return Vec::new();
        };
        if self.node(there).kind == NodeKind::Host {
            return Vec::new();
        }
        let hosts = |distances: Vec<Option<u32>>| -> Vec<Option<u32>> {
            let of_hosts = distances.into_iter().zip(&self.nodes);
            of_hosts
                .filter(|(_, node)| node.kind == NodeKind::Host)
                .map(|(distance, _)| distance)
                .collect()
        };
        let goal = hosts(self.distances(there, usable));
        let mut judged: BTreeMap<NodeIndex, bool> = BTreeMap::from([(there, true)]);
        let others = self.node(node).ports.iter().copied();
        others
            .filter(|&other| other != port && usable(other))
            .filter(|&other| {
                let Some(neighbour) = far_side(other) else {
                    return false;
                };
                self.node(neighbour).kind == NodeKind::Switch
                    && *judged
                        .entry(neighbour)
                        .or_insert_with(|| hosts(self.distances(neighbour, usable)) == goal)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::samples::leaf_spine;

    #[test]
    fn a_cable_told_by_both_ends_is_one_cable_and_a_second_one_is_an_error() {
        let mut topology = Topology::new(LinkLayer::Ethernet);
        let node = topology.add_node("s0", NodeKind::Switch).unwrap();
        let ports: Vec<_> = (0..3)
            .map(|port| topology.add_port(node, format!("s0:{port}"), None).unwrap())
            .collect();
        topology.connect(ports[0], ports[1]).unwrap();
        topology.connect(ports[1], ports[0]).unwrap();
        let error = topology.connect(ports[1], ports[2]).unwrap_err();
        assert_eq!(
            error,
            TopologyError::CabledTwice {
                port: "s0:1".to_owned(),
                first: "s0:0".to_owned(),
                second: "s0:2".to_owned()
            }
        );
        assert_eq!(topology.peer(ports[1]), Some(ports[0]));
        assert!(topology.connect(ports[2], ports[2]).is_err());
        assert!(topology.add_node("s0", NodeKind::Host).is_err());
        assert!(topology.add_port(node, "s0:1", None).is_err());
    }

    #[test]
    fn parts_of_a_fabric_must_be_of_one_kind_and_fill_each_other_in() {
        let part = |layer, kind, rate| {
            let mut part = Topology::new(layer);
            let node = part.add_node("a", kind).unwrap();
            part.add_port(node, "a:0", rate).unwrap();
            part
        };
        use LinkLayer::{Ethernet, Infiniband};
        let absorb = |mut first: Topology, second: &Topology| {
            first.absorb(second)?;
            Ok(first)
        };
        let host = part(Ethernet, NodeKind::Host, None);
        let other = part(Infiniband, NodeKind::Host, None);
        assert_eq!(
            absorb(host.clone(), &other),
            Err(TopologyError::LinkLayers {
                first: Ethernet,
                second: Infiniband
            })
        );
        let switch = part(Ethernet, NodeKind::Switch, None);
        let error = absorb(host.clone(), &switch).unwrap_err();
        assert_eq!(error, TopologyError::KindTwice("a".to_owned()));
        let rate = Some(Rate::gbps(100));
        let whole = absorb(host, &part(Ethernet, NodeKind::Host, rate)).unwrap();
        assert_eq!(whole.ports()[0].rate, rate);
        // What has no ports says nothing of its kind.
        let named = absorb(Topology::new(Ethernet), &other).unwrap();
        assert_eq!(named.link_layer, Infiniband);
        assert!(absorb(named, &Topology::new(Ethernet)).is_ok());
    }

    /// Of a leaf, all uplinks are as good; of a spine, each downlink leads elsewhere.
    #[test]
    fn alternatives_are_the_ports_that_balance_load() {
        let topology = leaf_spine(2, 3, 2);
        let named = |name: &str| topology.find_port(name).unwrap();
        let names = |ports: Vec<PortIndex>| -> Vec<&str> {
            ports
                .into_iter()
                .map(|port| topology.port(port).name.as_str())
                .collect()
        };
        let all = |port: &str| names(topology.alternatives(named(port), &|_| true));
        assert_eq!(all("leaf0:2"), ["leaf0:3", "leaf0:4"]);
        assert_eq!(all("spine0:0"), [""; 0]);
        assert_eq!(all("leaf0:0"), [""; 0]);
        // Spine 1 does not reach the other leaf any more.
        let lost = [named("leaf1:3"), named("spine1:1")];
        let usable = |port| !lost.contains(&port);
        assert_eq!(
            names(topology.alternatives(named("leaf0:2"), &usable)),
            ["leaf0:4"]
        );
    }
}
