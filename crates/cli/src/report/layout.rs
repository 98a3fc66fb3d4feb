//! Where nodes stand in the picture of the topology.
//!
//! ```text
//!   tier 2       spine0    spine1              a row for each tier, hosts at the bottom; in a row, nodes stand
//!   tier 1   leaf0   leaf1   leaf2             over the mean of those that they are linked to below
//!   tier 0   h0 h1   h2 h3   h4 h5
//! ```
//!
//! A cell is what is drawn as one: a node, or in large networks the hosts of one switch, or neighbours in a row.

use std::collections::BTreeMap;

use softfabric_fabric::export::Names;
use softfabric_fabric::plan::Plan;
use softfabric_operations::{NodeKind, PortIndex, Topology};

/// Networks up to this size are drawn node by node.
const NODES_DRAWN: usize = 200;
/// Larger ones have at most so many cells in a row.
const CELLS_IN_ROW: usize = 48;

/// What is drawn: nodes by their number, and links between them.
pub(crate) struct Graph {
    /// Of each node; hosts have tier 0.
    tiers: Vec<u8>,
    /// Whether each node is a host.
    hosts: Vec<bool>,
    links: Vec<(usize, usize)>,
}

impl Graph {
    /// The network of a plan, its links in their order.
    pub(super) fn of_plan(plan: &Plan, names: &Names<'_>) -> Self {
        let network = &plan.network;
        let links = network.links.iter();
        Self {
            tiers: network.nodes.iter().map(|node| node.tier).collect(),
            hosts: network.ids().map(|id| names.is_host(id)).collect(),
            links: links
                .map(|link| (link.a.node.index(), link.b.node.index()))
                .collect(),
        }
    }

    /// A topology of which only cables are known: a switch's tier is how many cables lead from it to the nearest host. Links are
    /// cables in the order of their first port.
    pub(crate) fn of_topology(topology: &Topology) -> Self {
        let hosts: Vec<bool> = topology
            .nodes()
            .iter()
            .map(|n| n.kind == NodeKind::Host)
            .collect();
        let cables = cables(topology);
        let links: Vec<(usize, usize)> = cables
            .iter()
            .map(|&(a, b)| {
                let node = |port| topology.port(port).node.index();
                (node(a), node(b))
            })
            .collect();
        let mut tiers: Vec<Option<u8>> = hosts.iter().map(|host| host.then_some(0)).collect();
        for tier in 1..=u8::MAX {
            let below = |node: usize| tiers[node] == Some(tier - 1);
            let both = links.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
            let next: Vec<usize> = both
                .filter(|&(a, b)| below(a) && tiers[b].is_none())
                .map(|(_, b)| b)
                .collect();
            if next.is_empty() {
                break;
            }
            for node in next {
                tiers[node] = Some(tier);
            }
        }
        Self {
            tiers: tiers.into_iter().map(|tier| tier.unwrap_or(1)).collect(),
            hosts,
            links,
        }
    }
}

/// The cables of a topology, each from its end with the lower number.
pub(crate) fn cables(topology: &Topology) -> Vec<(PortIndex, PortIndex)> {
    let ports = topology.port_indices();
    ports
        .filter_map(|port| Some((port, topology.peer(port)?)))
        .filter(|(a, b)| a < b)
        .collect()
}

/// Some nodes that are drawn as one.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) nodes: Vec<usize>,
    pub(crate) hosts: bool,
    /// The row, from the top.
    pub(crate) row: usize,
    /// Its place in the row, and how many there are.
    pub(crate) place: usize,
    pub(crate) row_length: usize,
}

/// Links between two cells, drawn as one.
#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Indices of the links.
    pub(crate) links: Vec<usize>,
}

/// The picture, without places in points.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) cells: Vec<Cell>,
    pub(crate) bundles: Vec<Bundle>,
    pub(crate) rows: usize,
}

/// Lays the network out.
pub(crate) fn of(graph: &Graph) -> Layout {
    let rows = rows(graph);
    let count = rows.len();
    let gathered = graph.tiers.len() > NODES_DRAWN;
    let mut cells: Vec<Cell> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let groups = if gathered {
            gather(graph, row)
        } else {
            row.iter().map(|&node| vec![node]).collect()
        };
        let row_length = groups.len();
        for (place, nodes) in groups.into_iter().enumerate() {
            cells.push(Cell {
                hosts: graph.hosts[nodes[0]],
                nodes,
                row: count - 1 - index,
                place,
                row_length,
            });
        }
    }
    let bundles = bundles(graph, &cells);
    Layout {
        cells,
        bundles,
        rows: count,
    }
}

/// The nodes of each tier from the lowest on, in an order that keeps links short.
fn rows(graph: &Graph) -> Vec<Vec<usize>> {
    let neighbours = neighbours(graph);
    let mut tiers: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
    for (node, &tier) in graph.tiers.iter().enumerate() {
        tiers.entry(tier).or_default().push(node);
    }
    let mut rows: Vec<Vec<usize>> = tiers.into_values().collect();
    // The lowest row stands by the switches above it; each row above stands over what it is linked to.
    let mut place = vec![0.0; graph.tiers.len()];
    let mut placed = vec![false; graph.tiers.len()];
    for (index, row) in rows.iter_mut().enumerate() {
        if index == 0 {
            row.sort_by_key(|id| (neighbours[*id].iter().min().copied(), *id));
        } else {
            let mean = |id: &usize| {
                let below = neighbours[*id].iter().filter(|other| placed[**other]);
                let (sum, count) = below.fold((0.0, 0), |(sum, count), other| {
                    (sum + place[*other], count + 1)
                });
                if count == 0 {
                    0.5
                } else {
                    sum / f64::from(count)
                }
            };
            row.sort_by(|a, b| mean(a).total_cmp(&mean(b)).then(a.cmp(b)));
        }
        let length = row.len() as f64;
        for (position, id) in row.iter().enumerate() {
            place[*id] = (position as f64 + 0.5) / length;
        }
        for id in row.iter() {
            placed[*id] = true;
        }
    }
    rows
}

/// Puts hosts of the same switches together, and then neighbours, until the row has few enough cells.
fn gather(graph: &Graph, row: &[usize]) -> Vec<Vec<usize>> {
    let neighbours = neighbours(graph);
    let together = |a: &usize, b: &usize| {
        graph.hosts[*a] && graph.hosts[*b] && neighbours[*a] == neighbours[*b]
    };
    let groups: Vec<Vec<usize>> = row.chunk_by(together).map(<[usize]>::to_vec).collect();
    let share = groups.len().div_ceil(CELLS_IN_ROW).max(1);
    groups.chunks(share).map(<[Vec<usize>]>::concat).collect()
}

fn neighbours(graph: &Graph) -> Vec<Vec<usize>> {
    let mut neighbours = vec![Vec::new(); graph.tiers.len()];
    for &(a, b) in &graph.links {
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    for list in &mut neighbours {
        list.sort_unstable();
    }
    neighbours
}

fn bundles(graph: &Graph, cells: &[Cell]) -> Vec<Bundle> {
    let mut cell_of = vec![0; graph.tiers.len()];
    for (index, cell) in cells.iter().enumerate() {
        for node in &cell.nodes {
            cell_of[*node] = index;
        }
    }
    let mut links: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (index, &(a, b)) in graph.links.iter().enumerate() {
        let (a, b) = (cell_of[a], cell_of[b]);
        if a != b {
            links.entry((a.min(b), a.max(b))).or_default().push(index);
        }
    }
    let bundles = links
        .into_iter()
        .map(|((from, to), links)| Bundle { from, to, links });
    bundles.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn hosts_stand_under_their_switch() {
        let (plan, _) = sample::incast();
        let names = Names::new(&plan.network);
        let layout = of(&Graph::of_plan(&plan, &names));
        assert_eq!(layout.rows, 3);
        assert_eq!(layout.cells.len(), plan.network.nodes.len());
        assert_eq!(layout.bundles.len(), plan.network.links.len());
        let place = |node: usize| {
            let cell = layout.cells.iter().find(|cell| cell.nodes == [node]);
            let cell = cell.unwrap();
            (cell.row, (cell.place as f64 + 0.5) / cell.row_length as f64)
        };
        for host in 0..16 {
            let (row, x) = place(host);
            let (leaf_row, leaf_x) = place(16 + host / 4);
            assert_eq!((row, leaf_row), (2, 1));
            assert!((x - leaf_x).abs() < 0.125, "host {host}");
        }
    }

    /// Of the cables alone the same picture comes as of the plan.
    #[test]
    fn a_topology_is_drawn_like_its_plan() {
        let (plan, _) = sample::incast();
        let names = Names::new(&plan.network);
        let wiring = crate::run::counters::Wiring::new(&plan).unwrap();
        let cells = |layout: Layout| -> Vec<(usize, usize, Vec<usize>)> {
            let cells = layout.cells.into_iter();
            cells
                .map(|cell| (cell.row, cell.place, cell.nodes))
                .collect()
        };
        let of_topology = of(&Graph::of_topology(&wiring.topology));
        assert_eq!(of_topology.bundles.len(), plan.network.links.len());
        assert_eq!(
            cells(of_topology),
            cells(of(&Graph::of_plan(&plan, &names)))
        );
    }
}
