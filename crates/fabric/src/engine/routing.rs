//! Which ports lead where, and which of several is taken.
//!
//! Routes are kept per access switch, not per host: a host port is found by the switch it hangs on. A table has one
//! row a switch and one column an access switch; a cell names a list of ports in a shared arena.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::plan::{Endpoint, Network, NodeKind, Plan, Routing as RoutingKind, Timing};

/// All routes of a network.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Routes {
    /// For each destination, the node port that it hangs on.
    access: Vec<Access>,
    /// Rows of cells: `[node][access group]`, only switches have rows.
    rows: Vec<Vec<Cell>>,
    /// The ports that cells name.
    arena: Vec<u16>,
}

/// Where a destination hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Access {
    /// The column of its access switch.
    group: u32,
    /// Its access switch.
    node: u32,
    /// The port there.
    port: u16,
}

/// A list of ports in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Cell {
    start: u32,
    count: u16,
}

/// A destination is the port of a host; this lists them in the order of nodes and ports.
pub(crate) fn destinations(network: &Network) -> Vec<Endpoint> {
    let mut ends: Vec<Endpoint> = network
        .links
        .iter()
        .flat_map(|link| [link.a, link.b])
        .filter(|end| matches!(network.nodes[end.node.index()].kind, NodeKind::Host { .. }))
        .collect();
    ends.sort_unstable();
    ends
}

impl Routes {
    /// Computes all routes; links that are down (`up[link]` false) lead nowhere.
    pub(crate) fn compute(plan: &Plan, up: &[bool]) -> Self {
        let network = &plan.network;
        let is_switch: Vec<bool> = network
            .nodes
            .iter()
            .map(|node| matches!(node.kind, NodeKind::Switch { .. }))
            .collect();
        let adjacency = Adjacency::new(network, &is_switch, up, plan.timing);
        let destinations = destinations(network);
        let mut group_of = vec![u32::MAX; network.nodes.len()];
        let mut groups = Vec::new();
        let mut far_end = FxHashMap::default();
        for link in &network.links {
            far_end.insert(link.a, link.b);
            far_end.insert(link.b, link.a);
        }
        let access = destinations
            .iter()
            .map(|end| {
                let far = far_end[end];
                let group = &mut group_of[far.node.index()];
                if *group == u32::MAX {
                    *group = groups.len() as u32;
                    groups.push(far.node.0);
                }
                Access {
                    group: *group,
                    node: far.node.0,
                    port: far.port.0,
                }
            })
            .collect();
        let mut rows: Vec<Vec<Cell>> = is_switch
            .iter()
            .map(|&switch| {
                if switch {
                    vec![Cell::default(); groups.len()]
                } else {
                    Vec::new()
                }
            })
            .collect();
        let switches: Vec<usize> = (0..is_switch.len())
            .filter(|&node| is_switch[node])
            .collect();
        let mut arena: Vec<u16> = Vec::new();
        // Many cells name the same ports (an edge switch has one list for everything that is above it).
        let mut known: FxHashMap<Box<[u16]>, Cell> = FxHashMap::default();
        let mut lists: Vec<Vec<u16>> = vec![Vec::new(); network.nodes.len()];
        let mut search = Search::new(network.nodes.len());
        for (column, &root) in groups.iter().enumerate() {
            match plan.routing {
                RoutingKind::Shortest => search.shortest(&adjacency, root, &mut lists),
                RoutingKind::UpDown => search.up_down(&adjacency, network, root, &mut lists),
            }
            for &node in &switches {
                let list = &mut lists[node];
                if list.is_empty() {
                    continue;
                }
                let cell = match known.get(list.as_slice()) {
                    Some(cell) => *cell,
                    None => {
                        let (start, count) = (arena.len() as u32, list.len() as u16);
                        arena.extend_from_slice(list);
                        let cell = Cell { start, count };
                        known.insert(list.as_slice().into(), cell);
                        cell
                    }
                };
                rows[node][column] = cell;
                list.clear();
            }
        }
        Self {
            access,
            rows,
            arena,
        }
    }

    /// The ports of `node` that lead to `destination`; empty where none does.
    #[inline]
    pub(crate) fn next_hops(&self, node: u32, destination: u32) -> NextHops<'_> {
        let access = self.access[destination as usize];
        if access.node == node {
            return NextHops::Access(access.port);
        }
        let cell = self.rows[node as usize][access.group as usize];
        NextHops::Ports(&self.arena[cell.start as usize..cell.start as usize + cell.count as usize])
    }
}

/// The ports that lead on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextHops<'a> {
    /// The destination hangs on this port.
    Access(u16),
    /// Any of these.
    Ports(&'a [u16]),
}

/// How many destinations the tables of an Ethernet fabric's switches have a way to, all together, and how many next hops that
/// makes: a prefix for the hosts of each other access switch, and a host for each of a switch's own.
pub(crate) fn table_entries(plan: &Plan) -> (u64, u64) {
    let up = vec![true; plan.network.links.len()];
    let routes = Routes::compute(plan, &up);
    let mut seen = FxHashSet::default();
    let (mut entries, mut hops) = (0, 0);
    for (destination, access) in (0..).zip(&routes.access) {
        for switch in plan.network.switches() {
            match routes.next_hops(switch.0, destination) {
                NextHops::Access(_) => {
                    entries += 1;
                    hops += 1;
                }
                NextHops::Ports(ports) => {
                    if !ports.is_empty() && seen.insert((switch, access.node)) {
                        entries += 1;
                        hops += ports.len() as u64;
                    }
                }
            }
        }
    }
    (entries, hops)
}

/// The switches beside each switch, in the order in which a search visits them.
struct Adjacency {
    first: Vec<u32>,
    /// (neighbour, port here, port there)
    edges: Vec<(u32, u16, u16)>,
}

impl Adjacency {
    fn new(network: &Network, is_switch: &[bool], up: &[bool], timing: Timing) -> Self {
        let mut lists: Vec<Vec<(u32, u16, u16)>> = vec![Vec::new(); network.nodes.len()];
        for (link, _) in network.links.iter().zip(up).filter(|(_, up)| **up) {
            if !is_switch[link.a.node.index()] || !is_switch[link.b.node.index()] {
                continue;
            }
            lists[link.a.node.index()].push((link.b.node.0, link.a.port.0, link.b.port.0));
            lists[link.b.node.index()].push((link.a.node.0, link.b.port.0, link.a.port.0));
        }
        let mut first = vec![0];
        let mut edges = Vec::new();
        for list in &mut lists {
            match timing {
                Timing::Exact => list.sort_unstable(),
                // ns-3 visits the larger node ids first; its hash picks from lists in that order.
                Timing::Hpcc => list.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1))),
            }
            edges.extend_from_slice(list);
            first.push(edges.len() as u32);
        }
        Self { first, edges }
    }

    fn of(&self, node: u32) -> &[(u32, u16, u16)] {
        &self.edges[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }
}

/// Breadth-first search from an access switch, its memory kept between searches.
struct Search {
    distance: Vec<u32>,
    queue: Vec<u32>,
}

impl Search {
    fn new(nodes: usize) -> Self {
        Self {
            distance: vec![u32::MAX; nodes],
            queue: Vec::with_capacity(nodes),
        }
    }

    /// Appends to `lists[node]` every port of the switch `node` on a shortest path to `root`.
    fn shortest(&mut self, adjacency: &Adjacency, root: u32, lists: &mut [Vec<u16>]) {
        self.distance.fill(u32::MAX);
        self.queue.clear();
        self.queue.push(root);
        self.distance[root as usize] = 0;
        let mut head = 0;
        while head < self.queue.len() {
            let node = self.queue[head];
            head += 1;
            let next_distance = self.distance[node as usize] + 1;
            for &(neighbour, _, port_there) in adjacency.of(node) {
                let distance = &mut self.distance[neighbour as usize];
                if *distance == u32::MAX {
                    *distance = next_distance;
                    self.queue.push(neighbour);
                }
                if *distance == next_distance {
                    lists[neighbour as usize].push(port_there);
                }
            }
        }
    }

    /// As [`Search::shortest`], over paths that never go up after they went down. "Up" leads to a higher tier, or, in
    /// one tier, to a lower node id. Such routes cannot close a cycle of waiting queues.
    fn up_down(
        &mut self,
        adjacency: &Adjacency,
        network: &Network,
        root: u32,
        lists: &mut [Vec<u16>],
    ) {
        let rank = |node: u32| (network.nodes[node as usize].tier, u32::MAX - node);
        let switch =
            |node: u32| matches!(network.nodes[node as usize].kind, NodeKind::Switch { .. });
        // From the root outwards a path is walked backwards: first over links that packets go down (we climb), then over
        // links that packets go up (we descend). A node reached by climbing alone must send down.
        let mut down = vec![u32::MAX; network.nodes.len()];
        down[root as usize] = 0;
        self.queue.clear();
        self.queue.push(root);
        let mut head = 0;
        while head < self.queue.len() {
            let node = self.queue[head];
            head += 1;
            for &(neighbour, _, port_there) in adjacency.of(node) {
                if !switch(neighbour) || rank(neighbour) < rank(node) {
                    continue;
                }
                if down[neighbour as usize] == u32::MAX {
                    down[neighbour as usize] = down[node as usize] + 1;
                    self.queue.push(neighbour);
                }
                if down[neighbour as usize] == down[node as usize] + 1 {
                    lists[neighbour as usize].push(port_there);
                }
            }
        }
        // Everybody else goes up towards the nearest node that can send down; highest ranks first, so that each node's
        // own distance is final before its subordinates look at it.
        let mut total = down.clone();
        let mut order: Vec<u32> = (0..network.nodes.len() as u32)
            .filter(|&node| switch(node))
            .collect();
        order.sort_unstable_by_key(|&node| std::cmp::Reverse(rank(node)));
        for &node in &order {
            if down[node as usize] != u32::MAX {
                continue;
            }
            let above = |neighbour: u32| switch(neighbour) && rank(neighbour) > rank(node);
            let best = adjacency
                .of(node)
                .iter()
                .filter(|edge| above(edge.0))
                .map(|edge| total[edge.0 as usize])
                .min()
                .unwrap_or(u32::MAX);
            if best == u32::MAX {
                continue;
            }
            total[node as usize] = best + 1;
            for &(neighbour, port_here, _) in adjacency.of(node) {
                if above(neighbour) && total[neighbour as usize] == best {
                    lists[node as usize].push(port_here);
                }
            }
        }
    }
}

/// The addresses and ports of a flow as HPCC's switches hash them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HpccTuple {
    pub(crate) source_ip: u32,
    pub(crate) destination_ip: u32,
    pub(crate) ports: u32,
}

/// The IP address that HPCC gives to a node.
pub(crate) const fn hpcc_ip(node: u32) -> u32 {
    0x0b00_0001 + (node / 256) * 0x1_0000 + (node % 256) * 0x100
}

/// murmur3_x86_32 over the tuple's three words.
pub(crate) fn hpcc_hash(tuple: HpccTuple, seed: u32) -> u32 {
    let mut hash = seed;
    for word in [tuple.source_ip, tuple.destination_ip, tuple.ports] {
        let mixed = word
            .wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593);
        hash = (hash ^ mixed)
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    hash ^= 12;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// The hash of a flow's addresses and ports, before a switch mixes its own seed in.
pub(crate) fn entropy(source: u32, destination: u32, ports: u32) -> u32 {
    hpcc_hash(
        HpccTuple {
            source_ip: source,
            destination_ip: destination,
            ports,
        },
        0x5f5e_1007,
    )
}

/// A switch's own mix of a flow's entropy: polarisation between tiers is broken by the seed.
#[inline]
pub(crate) const fn mix(entropy: u32, seed: u32) -> u32 {
    let mixed = (entropy ^ seed).wrapping_mul(0x9e37_79b1);
    let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x85eb_ca77);
    mixed ^ (mixed >> 13)
}

/// Picks one of `count` from a hash, without division and without bias that matters.
#[inline]
pub(crate) const fn pick(hash: u32, count: usize) -> usize {
    ((hash as u64 * count as u64) >> 32) as usize
}

#[cfg(test)]
#[path = "routing_tests.rs"]
mod tests;
