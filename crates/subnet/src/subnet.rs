//! The graph of a subnet: nodes, their ports, the cables between them, and the identifiers that ports have.
//!
//! ```text
//!   nodes   [ switch, 36 ports | adapter, 1 port | … ]
//!               │ first                │
//!   ports   [ 0 1 2 … 36             | 1 | … ]          one row for all, 24 bytes a port
//! ```
//!
//! A cable is known at both of its ends, always: [`Subnet::connect`] and [`Subnet::disconnect`] are the only ways to
//! change one. Node numbers never change.

use rustc_hash::FxHashMap;
use softfabric_units::{Guid, Lid};
use softfabric_wire::mad::{ExtendedSpeeds, LinkSpeeds, LinkWidths};
use thiserror::Error;

/// A node of a [`Subnet`], by its place in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

impl NodeId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A port of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortRef {
    /// The node.
    pub node: NodeId,
    /// The number that the node has for it.
    pub port: u8,
}

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodeKind {
    /// A channel adapter: a host's ends of links, each with identifiers of its own.
    Adapter,
    /// A switch: its port 0 is its own end, for management.
    Switch,
    /// A router to other subnets: here, an adapter.
    Router,
}

/// A node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its GUID.
    pub guid: Guid,
    /// The GUID of the system that it is part of; its own where it stands alone.
    pub system: Guid,
    /// How many external ports it has.
    pub ports: u8,
    /// What a file called it; for `.net` files the name in quotes.
    pub id: String,
    /// Its description.
    pub description: String,
    /// The vendor's number.
    pub vendor: u32,
    /// The vendor's number of the device.
    pub device: u16,
    first: u32,
}

impl Node {
    /// Whether it is a switch.
    pub fn is_switch(&self) -> bool {
        self.kind == NodeKind::Switch
    }

    /// The number of its first port that has identifiers: 0 of switches, 1 of others.
    fn first_number(&self) -> u8 {
        u8::from(!self.is_switch())
    }
}

/// A port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its GUID; zero of a switch's external ports.
    pub guid: Guid,
    /// Its first local identifier; zero where it has none.
    pub lid: Lid,
    /// It has 2 to the power of this identifiers.
    pub lmc: u8,
    /// The width of its link.
    pub width: LinkWidths,
    /// The speed of its link up to QDR.
    pub speed: LinkSpeeds,
    /// The speed of its link above QDR.
    pub extended_speed: ExtendedSpeeds,
    peer: Option<PortRef>,
}

impl Default for Port {
    /// No identifiers and no cable; 4x HDR.
    fn default() -> Self {
        Self {
            guid: Guid::default(),
            lid: Lid::default(),
            lmc: 0,
            width: LinkWidths::X4,
            speed: LinkSpeeds::QDR,
            extended_speed: ExtendedSpeeds::HDR,
            peer: None,
        }
    }
}

impl Port {
    /// The other end of its cable.
    pub const fn peer(&self) -> Option<PortRef> {
        self.peer
    }

    /// Its identifiers, in order.
    pub fn lids(&self) -> impl Iterator<Item = Lid> + use<> {
        let first = self.lid.0;
        let count = if first == 0 { 0 } else { 1_u16 << self.lmc };
        (first..first.saturating_add(count)).map(Lid)
    }
}

/// Why a graph cannot be as it is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BuildError {
    /// Two nodes have one GUID.
    #[error("GUID {guid} is that of {first:?} and of {second:?}: give one of them another")]
    DuplicateGuid {
        /// The GUID.
        guid: Guid,
        /// Whose it was first.
        first: String,
        /// Who has it, too.
        second: String,
    },
    /// A node has no such port.
    #[error("{node:?} has no port {port}: its ports are {first} to {last}")]
    NoSuchPort {
        /// The node.
        node: String,
        /// The port that was named.
        port: u8,
        /// Its first port that takes a cable.
        first: u8,
        /// Its last.
        last: u8,
    },
    /// A port has a cable already.
    #[error("port {port} of {node:?} is cabled already, to port {peer_port} of {peer:?}")]
    PortTaken {
        /// The node.
        node: String,
        /// The port.
        port: u8,
        /// The node at the other end.
        peer: String,
        /// Its port.
        peer_port: u8,
    },
    /// A port is to be cabled to itself.
    #[error("port {port} of {node:?} cannot be cabled to itself")]
    Loopback {
        /// The node.
        node: String,
        /// The port.
        port: u8,
    },
}

/// Why identifiers cannot be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum LidError {
    /// More than there are.
    #[error(
        "{needed} local identifiers are needed (LMC {lmc}), and a subnet has 49151: lower the LMC or split the subnet"
    )]
    TooMany {
        /// How many.
        needed: usize,
        /// With this LMC.
        lmc: u8,
    },
    /// An LMC that does not exist.
    #[error("LMC {found} is none: it is 0 to 7")]
    Lmc {
        /// What was asked for.
        found: u8,
    },
}

/// A subnet's graph.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Subnet {
    nodes: Vec<Node>,
    ports: Vec<Port>,
    guids: FxHashMap<Guid, NodeId>,
}

impl Subnet {
    /// An empty subnet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node without cables. Ports of adapters get the GUIDs after the node's; of a switch, port 0 has the
    /// node's, and the others have none.
    ///
    /// # Errors
    /// If another node has its GUID.
    pub fn add_node(
        &mut self,
        kind: NodeKind,
        guid: Guid,
        ports: u8,
        id: &str,
    ) -> Result<NodeId, BuildError> {
        let number = NodeId(self.nodes.len() as u32);
        if let Some(first) = self.guids.get(&guid) {
            return Err(BuildError::DuplicateGuid {
                guid,
                first: self.node(*first).id.clone(),
                second: id.to_owned(),
            });
        }
        self.guids.insert(guid, number);
        let node = Node {
            kind,
            guid,
            system: guid,
            ports,
            id: id.to_owned(),
            description: id.to_owned(),
            vendor: 0,
            device: 0,
            first: self.ports.len() as u32,
        };
        let first = node.first_number();
        self.ports.extend((first..=ports).map(|number| Port {
            guid: match (kind, number) {
                (NodeKind::Switch, 0) => guid,
                (NodeKind::Switch, _) => Guid(0),
                _ => Guid(guid.0.wrapping_add(u64::from(number))),
            },
            ..Port::default()
        }));
        self.nodes.push(node);
        Ok(number)
    }

    /// Cables two external ports.
    ///
    /// # Errors
    /// If a port does not exist, has a cable, or both are one.
    pub fn connect(&mut self, left: PortRef, right: PortRef) -> Result<(), BuildError> {
        for end in [left, right] {
            let node = self.node(end.node);
            if end.port == 0 || end.port > node.ports {
                return Err(BuildError::NoSuchPort {
                    node: node.id.clone(),
                    port: end.port,
                    first: 1,
                    last: node.ports,
                });
            }
            if let Some(peer) = self.port(end).peer {
                return Err(BuildError::PortTaken {
                    node: node.id.clone(),
                    port: end.port,
                    peer: self.node(peer.node).id.clone(),
                    peer_port: peer.port,
                });
            }
        }
        if left == right {
            return Err(BuildError::Loopback {
                node: self.node(left.node).id.clone(),
                port: left.port,
            });
        }
        self.port_mut(left).peer = Some(right);
        self.port_mut(right).peer = Some(left);
        Ok(())
    }

    /// Takes a port's cable away, and returns the other end.
    pub fn disconnect(&mut self, end: PortRef) -> Option<PortRef> {
        let peer = self.port_mut(end).peer.take()?;
        self.port_mut(peer).peer = None;
        Some(peer)
    }

    /// All nodes.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> + ExactSizeIterator {
        self.nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (NodeId(index as u32), node))
    }

    /// A node.
    ///
    /// # Panics
    /// If it is of another subnet; so in all that takes nodes and ports.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.index()]
    }

    /// A node, to change what is not its place in the graph.
    pub fn node_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node.index()]
    }

    /// The node of a GUID.
    pub fn by_guid(&self, guid: Guid) -> Option<NodeId> {
        self.guids.get(&guid).copied()
    }

    /// The node that a text names: by what a file called it, by its description, or by its GUID after `0x`.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        let called = |text: fn(&Node) -> &str| {
            let mut nodes = self.nodes();
            nodes.find(|(_, node)| text(node) == name)
        };
        if let Some((node, _)) =
            called(|node| &node.id).or_else(|| called(|node| &node.description))
        {
            return Some(node);
        }
        let guid = u64::from_str_radix(name.strip_prefix("0x")?, 16).ok()?;
        self.by_guid(Guid(guid))
    }

    /// The port that has the identifiers: port 0 of a switch, the adapter's port itself.
    pub fn end_port(&self, at: PortRef) -> PortRef {
        if self.node(at.node).is_switch() {
            PortRef { port: 0, ..at }
        } else {
            at
        }
    }

    /// A port.
    pub fn port(&self, port: PortRef) -> &Port {
        &self.ports[self.place(port)]
    }

    /// A port, to change its identifiers and speeds.
    pub fn port_mut(&mut self, port: PortRef) -> &mut Port {
        let place = self.place(port);
        &mut self.ports[place]
    }

    fn place(&self, port: PortRef) -> usize {
        let node = self.node(port.node);
        let first = node.first_number();
        assert!(
            (first..=node.ports).contains(&port.port),
            "{port:?} of {:?}",
            node.id
        );
        node.first as usize + usize::from(port.port - first)
    }

    /// The ports of a node that take cables, with their numbers.
    pub fn external_ports(
        &self,
        node: NodeId,
    ) -> impl DoubleEndedIterator<Item = (PortRef, &Port)> {
        let count = self.node(node).ports;
        (1..=count).map(move |port| {
            let port = PortRef { node, port };
            (port, self.port(port))
        })
    }

    /// The ports that have identifiers: port 0 of switches, all ports of others.
    pub fn end_ports(&self) -> impl Iterator<Item = (PortRef, &Port)> {
        self.nodes().flat_map(move |(node, description)| {
            let last = if description.is_switch() {
                0
            } else {
                description.ports
            };
            (description.first_number()..=last).map(move |port| {
                let port = PortRef { node, port };
                (port, self.port(port))
            })
        })
    }

    /// Every cable once, from the end of the lower node.
    pub fn cables(&self) -> impl Iterator<Item = (PortRef, PortRef)> {
        self.nodes().flat_map(move |(node, _)| {
            self.external_ports(node)
                .filter_map(|(port, state)| Some((port, state.peer?)))
                .filter(|(port, peer)| port < peer)
        })
    }

    /// Gives every end port that is cabled, and every switch, 2 to the power of `lmc` identifiers (switches one). Ports keep
    /// what they have where it fits; the others get the lowest free ones, switches first, in the order of nodes.
    ///
    /// # Errors
    /// If there are not enough.
    pub fn assign_lids(&mut self, lmc: u8) -> Result<(), LidError> {
        if lmc > 7 {
            return Err(LidError::Lmc { found: lmc });
        }
        let wanted = |subnet: &Self, port: PortRef| {
            let switch = subnet.node(port.node).is_switch();
            let cabled = subnet.port(port).peer.is_some();
            (switch || cabled).then_some(if switch { 0 } else { lmc })
        };
        let mut ends: Vec<(PortRef, u8)> = self
            .end_ports()
            .filter_map(|(port, _)| Some((port, wanted(self, port)?)))
            .collect();
        ends.sort_by_key(|(port, _)| (!self.node(port.node).is_switch(), *port));
        let mut taken = vec![false; usize::from(Lid::FIRST_MULTICAST.0)];
        taken[0] = true;
        let mut waiting = Vec::new();
        for (port, lmc) in ends.iter().copied() {
            let (first, count) = (usize::from(self.port(port).lid.0), 1 << lmc);
            let free = taken
                .get(first..first + count)
                .is_some_and(|range| !range.contains(&true));
            if first != 0 && free && first.is_multiple_of(count) {
                taken[first..first + count].fill(true);
                self.port_mut(port).lmc = lmc;
            } else {
                waiting.push((port, lmc));
            }
        }
        let mut next = [1_usize, 1 << lmc];
        for (port, lmc) in waiting {
            let count = 1_usize << lmc;
            let from = &mut next[usize::from(lmc != 0)];
            while taken
                .get(*from..*from + count)
                .is_some_and(|range| range.contains(&true))
            {
                *from += count;
            }
            let Some(range) = taken.get_mut(*from..*from + count) else {
                let needed = ends.iter().map(|(_, lmc)| 1_usize << lmc).sum();
                return Err(LidError::TooMany { needed, lmc });
            };
            range.fill(true);
            let place = self.port_mut(port);
            (place.lid, place.lmc) = (Lid(*from as u16), lmc);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (Subnet, NodeId, NodeId) {
        let mut subnet = Subnet::new();
        let switch = subnet
            .add_node(NodeKind::Switch, Guid(0x10), 4, "sw")
            .unwrap();
        let host = subnet
            .add_node(NodeKind::Adapter, Guid(0x20), 2, "host")
            .unwrap();
        (subnet, switch, host)
    }

    #[test]
    fn cables_have_two_ends() {
        let (mut subnet, switch, host) = two();
        let (left, right) = (
            PortRef {
                node: switch,
                port: 3,
            },
            PortRef {
                node: host,
                port: 1,
            },
        );
        subnet.connect(left, right).unwrap();
        assert_eq!(subnet.port(right).peer(), Some(left));
        assert_eq!(subnet.cables().collect::<Vec<_>>(), [(left, right)]);
        assert_eq!(
            subnet
                .connect(
                    left,
                    PortRef {
                        node: host,
                        port: 2
                    }
                )
                .unwrap_err()
                .to_string(),
            "port 3 of \"sw\" is cabled already, to port 1 of \"host\""
        );
        assert_eq!(subnet.disconnect(right), Some(left));
        assert_eq!(subnet.cables().count(), 0);
        assert_eq!(
            subnet.connect(left, left).unwrap_err().to_string(),
            "port 3 of \"sw\" cannot be cabled to itself"
        );
        assert_eq!(
            subnet
                .connect(
                    PortRef {
                        node: switch,
                        port: 0
                    },
                    right
                )
                .unwrap_err()
                .to_string(),
            "\"sw\" has no port 0: its ports are 1 to 4"
        );
        assert_eq!(
            subnet
                .add_node(NodeKind::Switch, Guid(0x10), 4, "other")
                .unwrap_err()
                .to_string(),
            "GUID 0x0000000000000010 is that of \"sw\" and of \"other\": give one of them another"
        );
    }

    #[test]
    fn identifiers_stay_where_they_fit() {
        let (mut subnet, switch, host) = two();
        let second = subnet
            .add_node(NodeKind::Adapter, Guid(0x30), 1, "second")
            .unwrap();
        let ends = [
            PortRef {
                node: host,
                port: 1,
            },
            PortRef {
                node: second,
                port: 1,
            },
        ];
        for (port, end) in (1..).zip(ends) {
            subnet.connect(PortRef { node: switch, port }, end).unwrap();
        }
        subnet.port_mut(ends[1]).lid = Lid(4);
        subnet.assign_lids(2).unwrap();
        let lids = |port| {
            subnet
                .port(port)
                .lids()
                .map(|lid| lid.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            lids(PortRef {
                node: switch,
                port: 0
            }),
            [1]
        );
        assert_eq!(lids(ends[1]), [4, 5, 6, 7]);
        assert_eq!(lids(ends[0]), [8, 9, 10, 11]);
        assert_eq!(
            lids(PortRef {
                node: host,
                port: 2
            }),
            [] as [u16; 0],
            "no cable"
        );
        assert_eq!(subnet.assign_lids(8), Err(LidError::Lmc { found: 8 }));
    }
}
