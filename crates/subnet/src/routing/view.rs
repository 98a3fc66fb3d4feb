//! A subnet as routing sees it: switches, the channels between them, and the identifiers to reach.
//!
//! ```text
//!   links  [ switch 0: port 5 → 7, port 6 → 8 | switch 1: … ]     by switch, then by port; a link is one direction of a cable
//!   targets  LID 1 at switch 3, port 2 · LID 2 at switch 3 itself · …     by LID
//! ```

use softfabric_units::{Guid, Lid};

use crate::subnet::{NodeId, PortRef, Subnet};

/// One direction of a cable between two switches: a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The switch that it leaves.
    pub from: u32,
    /// By this port.
    pub port: u8,
    /// The switch that it comes to.
    pub to: u32,
    /// At this port.
    pub peer_port: u8,
    /// The other direction.
    pub reverse: u32,
}

/// An identifier to reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The identifier.
    pub lid: Lid,
    /// The switch that it is at.
    pub switch: u32,
    /// The port there that leads to it; 0 for the switch itself.
    pub port: u8,
    /// Which of its port's identifiers it is.
    pub copy: u8,
    /// Whose it is.
    pub end: PortRef,
}

impl Target {
    /// Whether it is an adapter's, not a switch's.
    pub const fn is_adapter(&self) -> bool {
        self.port != 0
    }
}

/// A subnet as routing sees it.
#[derive(Clone, Debug)]
pub struct RoutingView {
    nodes: Vec<NodeId>,
    names: Vec<String>,
    guids: Vec<Guid>,
    links: Vec<Link>,
    starts: Vec<u32>,
    targets: Vec<Target>,
    /// Adapter ports at each switch.
    hosts: Vec<u32>,
}

impl RoutingView {
    /// The view of `subnet`, whose ports have their identifiers. Those of ports without a cable are not in it.
    pub fn new(subnet: &Subnet) -> Self {
        Self::of(subnet, |_| true)
    }

    /// The view of what `start` reaches by cables. No packet passes through an adapter: its other ports may be of other subnets.
    pub fn reachable(subnet: &Subnet, start: NodeId) -> Self {
        let mut reached = vec![false; subnet.nodes().len()];
        reached[start.index()] = true;
        let mut queue = vec![start];
        while let Some(here) = queue.pop() {
            if here != start && !subnet.node(here).is_switch() {
                continue;
            }
            for (_, port) in subnet.external_ports(here) {
                if let Some(peer) = port.peer()
                    && !std::mem::replace(&mut reached[peer.node.index()], true)
                {
                    queue.push(peer.node);
                }
            }
        }
        Self::of(subnet, |node| reached[node.index()])
    }

    fn of(subnet: &Subnet, includes: impl Fn(NodeId) -> bool) -> Self {
        let nodes: Vec<NodeId> = subnet
            .nodes()
            .filter(|(id, node)| node.is_switch() && includes(*id))
            .map(|(id, _)| id)
            .collect();
        let mut number = vec![u32::MAX; subnet.nodes().len()];
        for (index, node) in (0..).zip(&nodes) {
            number[node.0 as usize] = index;
        }
        let mut view = Self {
            names: nodes
                .iter()
                .map(|node| subnet.node(*node).id.clone())
                .collect(),
            guids: nodes.iter().map(|node| subnet.node(*node).guid).collect(),
            links: Vec::new(),
            starts: vec![0],
            targets: Vec::new(),
            hosts: vec![0; nodes.len()],
            nodes,
        };
        view.add_links(subnet, &number);
        view.add_targets(subnet, &number);
        view
    }

    fn add_links(&mut self, subnet: &Subnet, number: &[u32]) {
        for (from, node) in (0..).zip(&self.nodes) {
            for (port, state) in subnet.external_ports(*node) {
                let Some(peer) = state.peer() else { continue };
                let to = number[peer.node.0 as usize];
                // A cable from a switch to itself leads nowhere new.
                if to != u32::MAX && to != from {
                    self.links.push(Link {
                        from,
                        port: port.port,
                        to,
                        peer_port: peer.port,
                        reverse: u32::MAX,
                    });
                }
            }
            self.starts.push(self.links.len() as u32);
        }
        for index in 0..self.links.len() {
            let link = self.links[index];
            let back = self
                .link_by_port(link.to as usize, link.peer_port)
                .expect("a cable between switches is a link both ways");
            self.links[index].reverse = back as u32;
        }
    }

    fn add_targets(&mut self, subnet: &Subnet, number: &[u32]) {
        for (end, port) in subnet.end_ports() {
            let own = number[end.node.0 as usize];
            let (switch, out) = if own != u32::MAX {
                (own, 0)
            } else {
                match port.peer() {
                    Some(peer) if number[peer.node.0 as usize] != u32::MAX => {
                        (number[peer.node.0 as usize], peer.port)
                    }
                    _ => continue,
                }
            };
            self.hosts[switch as usize] += u32::from(out != 0);
            self.targets
                .extend((0..).zip(port.lids()).map(|(copy, lid)| Target {
                    lid,
                    switch,
                    port: out,
                    copy,
                    end,
                }));
        }
        self.targets.sort_by_key(|target| target.lid);
    }

    /// How many switches.
    pub fn switches(&self) -> usize {
        self.nodes.len()
    }

    /// The node of a switch.
    pub fn node(&self, switch: usize) -> NodeId {
        self.nodes[switch]
    }

    /// The switch that is this node.
    pub fn switch_of(&self, node: NodeId) -> Option<usize> {
        self.nodes.binary_search(&node).ok()
    }

    /// What the subnet calls a switch.
    pub fn name(&self, switch: usize) -> &str {
        &self.names[switch]
    }

    /// The GUID of a switch.
    pub fn guid(&self, switch: usize) -> Guid {
        self.guids[switch]
    }

    /// The switch of a GUID.
    pub fn by_guid(&self, guid: Guid) -> Option<usize> {
        self.guids.iter().position(|found| *found == guid)
    }

    /// All links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The numbers of a switch's links, by port.
    pub fn links_of(&self, switch: usize) -> std::ops::Range<usize> {
        self.starts[switch] as usize..self.starts[switch + 1] as usize
    }

    /// A switch's links, by port.
    pub fn out(&self, switch: usize) -> &[Link] {
        &self.links[self.links_of(switch)]
    }

    /// The link that leaves a switch by `port`.
    pub fn link_by_port(&self, switch: usize, port: u8) -> Option<usize> {
        let range = self.links_of(switch);
        let found = self.links[range.clone()].binary_search_by_key(&port, |link| link.port);
        found.ok().map(|place| range.start + place)
    }

    /// The most links that a switch has.
    pub fn degree(&self) -> usize {
        (0..self.switches())
            .map(|switch| self.links_of(switch).len())
            .max()
            .unwrap_or(0)
    }

    /// The identifiers, in order.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// How many adapter ports are at a switch.
    pub fn hosts(&self, switch: usize) -> u32 {
        self.hosts[switch]
    }

    /// The highest identifier; zero where there is none.
    pub fn top(&self) -> Lid {
        self.targets.last().map_or(Lid(0), |target| target.lid)
    }
}
