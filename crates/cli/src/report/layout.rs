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
use softfabric_fabric::plan::{Network, NodeId, Plan};

/// Networks up to this size are drawn node by node.
const NODES_DRAWN: usize = 200;
/// Larger ones have at most so many cells in a row.
const CELLS_IN_ROW: usize = 48;

/// Some nodes that are drawn as one.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) nodes: Vec<NodeId>,
    pub(super) hosts: bool,
    /// The row, from the top.
    pub(super) row: usize,
    /// Its place in the row, and how many there are.
    pub(super) place: usize,
    pub(super) row_length: usize,
}

/// Links between two cells, drawn as one.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Indices of the links.
    pub(super) links: Vec<usize>,
}

/// The picture, without places in points.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) cells: Vec<Cell>,
    pub(super) bundles: Vec<Bundle>,
    pub(super) rows: usize,
}

/// Lays the network out.
pub(super) fn of(plan: &Plan, names: &Names<'_>) -> Layout {
    let network = &plan.network;
    let rows = rows(network);
    let count = rows.len();
    let gathered = network.nodes.len() > NODES_DRAWN;
    let mut cells: Vec<Cell> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let groups = if gathered {
            gather(network, row, names)
        } else {
            row.iter().map(|&node| vec![node]).collect()
        };
        let row_length = groups.len();
        for (place, nodes) in groups.into_iter().enumerate() {
            cells.push(Cell {
                hosts: names.is_host(nodes[0]),
                nodes,
                row: count - 1 - index,
                place,
                row_length,
            });
        }
    }
    let bundles = bundles(network, &cells);
    Layout {
        cells,
        bundles,
        rows: count,
    }
}

/// The nodes of each tier from the lowest on, in an order that keeps links short.
fn rows(network: &Network) -> Vec<Vec<NodeId>> {
    let neighbours = neighbours(network);
    let mut tiers: BTreeMap<u8, Vec<NodeId>> = BTreeMap::new();
    for id in network.ids() {
        tiers
            .entry(network.nodes[id.index()].tier)
            .or_default()
            .push(id);
    }
    let mut rows: Vec<Vec<NodeId>> = tiers.into_values().collect();
    // The lowest row stands by the switches above it; each row above stands over what it is linked to.
    let mut place = vec![0.0; network.nodes.len()];
    let mut placed = vec![false; network.nodes.len()];
    for (index, row) in rows.iter_mut().enumerate() {
        if index == 0 {
            row.sort_by_key(|id| (neighbours[id.index()].iter().min().copied(), *id));
        } else {
            let mean = |id: &NodeId| {
                let below = neighbours[id.index()]
                    .iter()
                    .filter(|other| placed[other.index()]);
                let (sum, count) = below.fold((0.0, 0), |(sum, count), other| {
                    (sum + place[other.index()], count + 1)
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
            place[id.index()] = (position as f64 + 0.5) / length;
        }
        for id in row.iter() {
            placed[id.index()] = true;
        }
    }
    rows
}

/// Puts hosts of the same switches together, and then neighbours, until the row has few enough cells.
fn gather(network: &Network, row: &[NodeId], names: &Names<'_>) -> Vec<Vec<NodeId>> {
    let neighbours = neighbours(network);
    let together = |a: &NodeId, b: &NodeId| {
        names.is_host(*a) && names.is_host(*b) && neighbours[a.index()] == neighbours[b.index()]
    };
    let groups: Vec<Vec<NodeId>> = row.chunk_by(together).map(<[NodeId]>::to_vec).collect();
    let share = groups.len().div_ceil(CELLS_IN_ROW).max(1);
    groups.chunks(share).map(<[Vec<NodeId>]>::concat).collect()
}

fn neighbours(network: &Network) -> Vec<Vec<NodeId>> {
    let mut neighbours = vec![Vec::new(); network.nodes.len()];
    for link in &network.links {
        neighbours[link.a.node.index()].push(link.b.node);
        neighbours[link.b.node.index()].push(link.a.node);
    }
    for list in &mut neighbours {
        list.sort_unstable();
    }
    neighbours
}

fn bundles(network: &Network, cells: &[Cell]) -> Vec<Bundle> {
    let mut cell_of = vec![0; network.nodes.len()];
    for (index, cell) in cells.iter().enumerate() {
        for node in &cell.nodes {
            cell_of[node.index()] = index;
        }
    }
    let mut links: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (index, link) in network.links.iter().enumerate() {
        let (a, b) = (cell_of[link.a.node.index()], cell_of[link.b.node.index()]);
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
        let layout = of(&plan, &names);
        assert_eq!(layout.rows, 3);
        assert_eq!(layout.cells.len(), plan.network.nodes.len());
        assert_eq!(layout.bundles.len(), plan.network.links.len());
        let place = |node: u32| {
            let cell = layout
                .cells
                .iter()
                .find(|cell| cell.nodes == [NodeId(node)]);
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
}
