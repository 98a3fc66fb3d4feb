//! Nodes, ports and links.

use softfabric_units::{Rate, Span};

/// The index of a node in [`Network::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u32);

/// The index of a port on its node, from zero, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PortId(pub u16);

/// The index of a link in [`Network::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LinkId(pub u32);

impl NodeId {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl PortId {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Who is there and how they are linked.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Network {
    /// All nodes; hosts and switches in any order.
    pub nodes: Vec<Node>,
    /// All full-duplex links. Every port that occurs here exists; ports of a node are numbered without gaps.
    pub links: Vec<Link>,
}

/// A host or a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name, unique in the network.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Its height in a drawing and in up–down routing: hosts 0, edge switches 1, and so on.
    pub tier: u8,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A host with the profile of this index in `Plan::host_profiles`.
    Host {
        /// The index.
        profile: u32,
        /// Its Ethernet segment and IP subnet, by number: RoCEv1 stays within one.
        subnet: u32,
    },
    /// A switch with the profile of this index in `Plan::switch_profiles`.
    Switch {
        /// The index.
        profile: u32,
    },
}

/// A port of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The node.
    pub node: NodeId,
    /// The port.
    pub port: PortId,
}

/// A full-duplex link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// One end.
    pub a: Endpoint,
    /// The other end.
    pub b: Endpoint,
    /// The line rate of each direction.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Span,
    /// The probability that a bit is damaged.
    pub bit_error_rate: f64,
    /// The probability that a packet is lost, whatever its length.
    pub packet_error_rate: f64,
}

impl Network {
    /// Adds a node and says its id.
    pub fn add_node(&mut self, name: impl Into<String>, kind: NodeKind, tier: u8) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node {
            name: name.into(),
            kind,
            tier,
        });
        id
    }

    /// Links two nodes by the next free port of each. Linear in the number of links: builders that add many links
    /// keep their own port counters.
    pub fn connect(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Span) -> LinkId {
        let a = Endpoint {
            node: a,
            port: self.next_port(a),
        };
        let b = Endpoint {
            node: b,
            port: self.next_port(b),
        };
        let id = LinkId(self.links.len() as u32);
        self.links.push(Link {
            a,
            b,
            rate,
            delay,
            bit_error_rate: 0.0,
            packet_error_rate: 0.0,
        });
        id
    }

    /// By node: for a switch, the number of what cables join it to, which is the index of the first switch there; no packet
    /// passes through a host, so a host has none (`u32::MAX`). On InfiniBand each of these is a subnet.
    pub fn islands(&self) -> Vec<u32> {
        let is_switch =
            |node: NodeId| matches!(self.nodes[node.index()].kind, NodeKind::Switch { .. });
        let mut neighbours = vec![Vec::new(); self.nodes.len()];
        for link in &self.links {
            if is_switch(link.a.node) && is_switch(link.b.node) {
                neighbours[link.a.node.index()].push(link.b.node);
                neighbours[link.b.node.index()].push(link.a.node);
            }
        }
        let mut islands = vec![u32::MAX; self.nodes.len()];
        for first in self.switches() {
            let mut open = vec![first];
            while let Some(node) = open.pop() {
                let island = &mut islands[node.index()];
                if *island == u32::MAX {
                    *island = first.0;
                    open.extend(&neighbours[node.index()]);
                }
            }
        }
        islands
    }

    /// The ids of all hosts, in order.
    pub fn hosts(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.ids()
            .filter(|id| matches!(self.nodes[id.index()].kind, NodeKind::Host { .. }))
    }

    /// The ids of all switches, in order.
    pub fn switches(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.ids()
            .filter(|id| matches!(self.nodes[id.index()].kind, NodeKind::Switch { .. }))
    }

    /// How many ports each node has.
    pub fn port_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.nodes.len()];
        for end in self.links.iter().flat_map(|link| [link.a, link.b]) {
            counts[end.node.index()] += 1;
        }
        counts
    }

    /// The ids of all nodes, in order.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    fn next_port(&self, node: NodeId) -> PortId {
        let used = self
            .links
            .iter()
            .flat_map(|link| [link.a, link.b])
            .filter(|end| end.node == node)
            .count();
        PortId(used as u16)
    }
}
