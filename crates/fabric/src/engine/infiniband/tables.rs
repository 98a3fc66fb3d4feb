//! What switches and hosts know from the subnet manager: forwarding tables, service levels of paths, lanes of levels.
//!
//! ```text
//! host: level(source, destination) ─► switch: port(destination) ─► lane(port, level) ─► next switch …
//! ```

use super::adaptive::Choices;
use super::path_rate::FarEnds;
use crate::engine::routing::destinations;
use crate::plan::{Endpoint, Infiniband, Lanes, Network, NodeId, Plan, SERVICE_LEVELS, StaticRate};
use crate::subnet::{Routed, SubnetError, route};
use softfabric_subnet::routing::{LaneMap, Levels, NO_PORT, PortSet};
use softfabric_units::Lid;

/// All that the managers of all subnets have programmed.
#[derive(Debug)]
pub(crate) struct Tables {
    /// How many destinations there are: the length of a row.
    width: usize,
    /// By node: the row of a switch.
    row_of: Vec<u32>,
    /// A port for each switch and destination, or `NO_PORT`; ports are counted from 0.
    ports: Vec<u8>,
    levels: PathLevels,
    /// By switch and port: what is different from the plan's own map of levels to lanes.
    lanes: Vec<Vec<Option<[u8; SERVICE_LEVELS]>>>,
    /// By destination: its local identifier.
    lids: Vec<Lid>,
    /// By destination: the switch that it hangs on.
    access: Vec<u32>,
    /// With adaptive routing, the ports that packets may choose among.
    pub(super) choices: Option<Choices>,
    /// Multicast tables: by row of a switch, the ports of each group.
    trees: Vec<PortSet>,
    /// How many groups there are.
    groups: usize,
    /// Rates of links, where queue pairs ask for them.
    pub(super) far_ends: Option<FarEnds>,
}

/// The level of a packet, where the routes say it.
#[derive(Debug)]
enum PathLevels {
    /// Its class says it.
    OfClass,
    /// By destination.
    ByDestination(Vec<u8>),
    /// By row of the first switch, and destination.
    ByPath(Vec<u8>),
}

/// In the tables of levels: the packet's class says it.
const OF_CLASS: u8 = u8::MAX;

impl PathLevels {
    /// Those of all subnets, each with the rows of its switches; by destination, its identifier and the switch that it hangs on.
    fn new(parts: &[(&Routed, Vec<usize>)], lids: &[Lid], access: &[u32]) -> Self {
        let at = |levels: &[u8], lid: &Lid| levels.get(usize::from(lid.0)).copied().unwrap_or(0);
        let is_by_path = |routed: &Routed| matches!(routed.routes.levels, Levels::ByPath(_));
        if parts.iter().any(|(routed, _)| is_by_path(routed)) {
            let mut all = Vec::new();
            for (routed, rows) in parts {
                for row in rows {
                    let width = routed.routes.width();
                    all.extend(lids.iter().map(|lid| match &routed.routes.levels {
                        Levels::Uniform => OF_CLASS,
                        Levels::ByDestination(levels) => at(levels, lid),
                        Levels::ByPath(levels) => at(&levels[row * width..][..width], lid),
                    }));
                }
            }
            return Self::ByPath(all);
        }
        let mut all = vec![OF_CLASS; lids.len()];
        for (routed, _) in parts {
            let Levels::ByDestination(levels) = &routed.routes.levels else {
                continue;
            };
            for ((level, lid), switch) in all.iter_mut().zip(lids).zip(access) {
                if routed.row(NodeId(*switch)).is_some() {
                    *level = at(levels, lid);
                }
            }
        }
        match all.iter().all(|level| *level == OF_CLASS) {
            true => Self::OfClass,
            false => Self::ByDestination(all),
        }
    }
}

/// By destination: the switch that it hangs on.
fn access(network: &Network, ends: &[Endpoint]) -> Vec<u32> {
    let mut access = vec![0; ends.len()];
    for link in &network.links {
        for (host, switch) in [(link.a, link.b), (link.b, link.a)] {
            if let Ok(place) = ends.binary_search(&host) {
                access[place] = switch.node.0;
            }
        }
    }
    access
}

const NO_ROW: u32 = u32::MAX;

/// What programming new routes took.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Changes {
    /// Entries of forwarding tables that are different now.
    pub(crate) entries: u64,
    /// Switches that have such entries.
    pub(crate) switches: u64,
}

impl Tables {
    /// The tables of a plan's network, with the links that are up.
    pub(crate) fn new(
        plan: &Plan,
        settings: &Infiniband,
        up: &[bool],
    ) -> Result<Self, SubnetError> {
        let subnets = route(&plan.network, settings, up)?;
        let ends = destinations(&plan.network);
        // Those of all subnets are in each.
        let names: Vec<Lid> = (ends.iter())
            .filter_map(|end| subnets.first().map(|routed| routed.lid(*end)))
            .collect();
        let mut tables = Self {
            width: ends.len(),
            row_of: vec![NO_ROW; plan.network.nodes.len()],
            ports: Vec::new(),
            levels: PathLevels::OfClass,
            lanes: Vec::new(),
            lids: names,
            access: access(&plan.network, &ends),
            choices: None,
            trees: Vec::new(),
            groups: settings.multicast.len(),
            far_ends: None,
        };
        // The rows of each subnet's switches, in the order of the tables' own rows.
        let mut parts: Vec<(&Routed, Vec<usize>)> = Vec::new();
        for routed in &subnets {
            let mut rows = Vec::new();
            for switch in plan.network.switches() {
                let Some(row) = routed.row(switch) else {
                    continue;
                };
                tables.row_of[switch.index()] = (tables.lanes.len() + rows.len()) as u32;
                rows.push(row);
                let table = routed.routes.table(row);
                let port = |lid: &Lid| match table.get(usize::from(lid.0)) {
                    None | Some(&NO_PORT) => NO_PORT,
                    Some(port) => port.wrapping_sub(1),
                };
                tables.ports.extend(tables.lids.iter().map(port));
            }
            tables
                .lanes
                .extend(rows.iter().map(|row| lanes(routed, *row)));
            for row in &rows {
                let trees = routed.trees.iter();
                let ports = trees.map(|(_, tree)| tree.get(*row).copied().unwrap_or_default());
                tables.trees.extend(ports);
            }
            parts.push((routed, rows));
        }
        tables.levels = PathLevels::new(&parts, &tables.lids, &tables.access);
        tables.choices = Choices::new(&parts, &tables.access);
        Ok(tables)
    }

    /// Rates of links become known, where queue pairs ask for them: they are the same whatever is up.
    pub(crate) fn with_rates(mut self, plan: &Plan, settings: &Infiniband) -> Self {
        self.far_ends =
            (settings.static_rate == StaticRate::Path).then(|| FarEnds::new(&plan.network));
        self
    }

    /// The ports of `node` by which packets to a group leave, but for the one that they came by.
    pub(crate) fn group_ports(
        &self,
        node: u32,
        group: u32,
        came_by: usize,
    ) -> impl Iterator<Item = usize> + '_ {
        let row = self.row_of[node as usize] as usize;
        let place = row
            .saturating_mul(self.groups)
            .saturating_add(group as usize);
        let ports = self.trees.get(place).into_iter().flat_map(PortSet::iter);
        // Ports are counted from one in a subnet, and port 0 is the switch itself.
        let ports = ports.filter_map(|port| usize::from(port).checked_sub(1));
        ports.filter(move |port| *port != came_by)
    }

    /// The row of a node's tables.
    pub(super) fn row(&self, node: u32) -> Option<usize> {
        let row = self.row_of[node as usize];
        (row != NO_ROW).then_some(row as usize)
    }

    /// The port of `node` that packets for a destination leave by.
    #[inline]
    pub(crate) fn port(&self, node: u32, destination: u32) -> Option<usize> {
        let row = self.row_of[node as usize];
        if row == NO_ROW {
            return None;
        }
        let port = self.ports[row as usize * self.width + destination as usize];
        (port != NO_PORT).then_some(usize::from(port))
    }

    /// The local identifier of a destination.
    pub(crate) fn lid(&self, destination: u32) -> Lid {
        self.lids[destination as usize]
    }

    /// The service level of packets between two hosts' ports, where their class does not say it.
    #[inline]
    pub(crate) fn level(&self, source: u32, destination: u32) -> Option<u8> {
        match &self.levels {
            PathLevels::OfClass => None,
            PathLevels::ByDestination(levels) => {
                Some(levels[destination as usize]).filter(|level| *level != OF_CLASS)
            }
            PathLevels::ByPath(levels) => {
                let row = self.row_of[self.access[source as usize] as usize];
                let place = (row as usize).saturating_mul(self.width) + destination as usize;
                Some(levels.get(place).copied().unwrap_or(0)).filter(|level| *level != OF_CLASS)
            }
        }
    }

    /// The lane of each level at a port of `node`.
    pub(crate) fn lanes(&self, node: NodeId, port: usize, usual: &Lanes) -> [u8; SERVICE_LEVELS] {
        let row = self.row_of[node.index()] as usize;
        let known = self.lanes.get(row).and_then(|ports| ports.get(port));
        known.copied().flatten().unwrap_or(usual.of_level)
    }

    /// What is different from the tables before. Switches out of reach keep what they have.
    pub(crate) fn replace(&mut self, new: Self) -> Changes {
        let mut changes = Changes::default();
        let mut old = std::mem::replace(self, new);
        self.far_ends = old.far_ends.take();
        let rows = old.row_of.iter().zip(&mut self.row_of);
        let mut kept = Vec::new();
        for (old_row, new_row) in rows {
            if *old_row == NO_ROW {
                continue;
            }
            let before = &old.ports[*old_row as usize * old.width..][..old.width];
            if *new_row == NO_ROW {
                *new_row = (self.lanes.len() + kept.len()) as u32;
                kept.push(*old_row as usize);
                continue;
            }
            let after = &self.ports[*new_row as usize * self.width..][..self.width];
            let different = before
                .iter()
                .zip(after)
                .filter(|(before, after)| before != after);
            let groups = self.groups;
            let of_groups = (old.trees[*old_row as usize * groups..][..groups].iter())
                .zip(&self.trees[*new_row as usize * groups..][..groups])
                .filter(|(before, after)| before != after);
            let count = different.count() as u64 + of_groups.count() as u64;
            changes.entries += count;
            changes.switches += u64::from(count > 0);
        }
        for row in kept {
            self.ports
                .extend_from_slice(&old.ports[row * old.width..][..old.width]);
            self.lanes.push(old.lanes[row].clone());
            self.trees
                .extend_from_slice(&old.trees[row * old.groups..][..old.groups]);
            if let (Some(new), Some(old)) = (&mut self.choices, &old.choices) {
                new.keep(old, row);
            }
            if let (PathLevels::ByPath(new), PathLevels::ByPath(old_levels)) =
                (&mut self.levels, &old.levels)
            {
                new.extend_from_slice(&old_levels[row * old.width..][..old.width]);
            }
        }
        changes
    }
}

/// By port of a switch: the lane of each level, where the routes say it.
fn lanes(routed: &Routed, row: usize) -> Vec<Option<[u8; SERVICE_LEVELS]>> {
    let mut lanes = Vec::new();
    if routed.routes.lanes == LaneMap::Identity {
        return lanes;
    }
    for link in routed.view.links_of(row) {
        let port = usize::from(routed.view.links()[link].port) - 1;
        if lanes.len() <= port {
            lanes.resize(port + 1, None);
        }
        let lane = |level| routed.routes.lane(link, level as u8);
        lanes[port] = Some(std::array::from_fn(lane));
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    /// In a torus, each dimension looks at its own bit of the level; hosts' ports do as the plan says.
    #[test]
    fn lanes_follow_the_dimension_of_the_port() {
        let text = "[fabric]\nkind = \"infiniband\"\nrouting = \"torus\"\n[topology]\nkind = \"torus\"\ndimensions = [4, \
                    3]\nhosts_per_switch = 2\n[infiniband]\nlanes = 2\n";
        let plan = Scenario::from_toml(text, "torus.toml")
            .unwrap()
            .plan()
            .unwrap();
        let settings = plan.link_layer.infiniband().unwrap();
        let up = vec![true; plan.network.links.len()];
        let tables = Tables::new(&plan, settings, &up).unwrap();
        for switch in plan.network.switches() {
            for port in 0..6 {
                let lanes = tables.lanes(switch, port, &settings.switches[0].lanes);
                let expected = |level: usize| match port {
                    0 | 1 => (level % 2) as u8,
                    2 | 3 => (level & 1) as u8,
                    _ => (level >> 1 & 1) as u8,
                };
                assert_eq!(lanes, std::array::from_fn(expected), "port {port}");
            }
        }
    }

    /// Two subnets, of which one needs lanes against circles: there paths have levels, and in the other one classes do. No
    /// switch knows a way to the other subnet.
    #[test]
    fn subnets_have_tables_of_their_own() {
        let text = "[fabric]\nkind = \"infiniband\"\nrouting = \"dfsssp\"\n[topology]\nkind = \"ring\"\nswitches = \
                    6\nhosts_per_switch = 2\n[infiniband]\nlanes = 4\n";
        let scenario = Scenario::from_toml(text, "ring.toml").unwrap();
        let mut plan = scenario.plan().unwrap();
        let ring = plan.network.nodes.len();
        let (rate, delay) = (plan.network.links[0].rate, plan.network.links[0].delay);
        let kind = |at: usize| plan.network.nodes[at].kind;
        let (host, switch) = (
            kind(0),
            kind(plan.network.switches().next().unwrap().index()),
        );
        let alone = plan.network.add_node("alone", switch, 0);
        for name in ["one", "other"] {
            let added = plan.network.add_node(name, host, 0);
            plan.network.connect(added, alone, rate, delay);
        }
        let settings = plan.link_layer.infiniband().unwrap();
        let mut up = vec![true; plan.network.links.len()];
        let mut tables = Tables::new(&plan, settings, &up).unwrap();
        let ends = destinations(&plan.network);
        let is_of_ring = |place: u32| ends[place as usize].node.index() < ring;
        let places = 0..ends.len() as u32;
        let mut levels = std::collections::BTreeSet::new();
        for to in places.clone() {
            for switch in plan.network.switches() {
                let same = (switch != alone) == is_of_ring(to);
                assert_eq!(tables.port(switch.0, to).is_some(), same, "{switch:?} {to}");
            }
            for from in places
                .clone()
                .filter(|from| is_of_ring(*from) == is_of_ring(to))
            {
                let level = tables.level(from, to);
                assert_eq!(level.is_some(), is_of_ring(to), "{from} {to}");
                levels.extend(level);
            }
        }
        assert!(levels.len() > 1, "{levels:?}");
        // The ring's first switch loses its cables; the other subnet's manager has nothing to change.
        let first = plan.network.switches().next().unwrap();
        for (link, up) in plan.network.links.iter().zip(&mut up) {
            *up = link.a.node != first && link.b.node != first;
        }
        let before: Vec<_> = places.clone().map(|to| tables.port(alone.0, to)).collect();
        tables.replace(Tables::new(&plan, settings, &up).unwrap());
        let after: Vec<_> = places.map(|to| tables.port(alone.0, to)).collect();
        assert_eq!(after, before);
    }

    /// A switch out of reach keeps its row, with the ports, levels and lanes that it had; the others get theirs.
    #[test]
    fn a_switch_out_of_reach_keeps_its_row() {
        let text = "[fabric]\nkind = \"infiniband\"\nrouting = \"torus\"\n[topology]\nkind = \"torus\"\ndimensions = [4, \
                    3]\n[infiniband]\nlanes = 2\n";
        let plan = Scenario::from_toml(text, "torus.toml")
            .unwrap()
            .plan()
            .unwrap();
        let settings = plan.link_layer.infiniband().unwrap();
        let usual = &settings.switches[0].lanes;
        let mut up = vec![true; plan.network.links.len()];
        let before = Tables::new(&plan, settings, &up).unwrap();
        let mut tables = Tables::new(&plan, settings, &up).unwrap();
        // A switch in the middle loses all its cables; one elsewhere a cable to its host.
        let cut = plan.network.switches().nth(5).unwrap();
        for (link, up) in plan.network.links.iter().zip(&mut up) {
            *up = link.a.node != cut && link.b.node != cut;
        }
        let mut settings = settings.clone();
        settings.routing = crate::plan::SubnetRouting::Nue;
        let new = Tables::new(&plan, &settings, &up).unwrap();
        let alone = Tables::new(&plan, &settings, &up).unwrap();
        assert_eq!(new.row_of[cut.index()], NO_ROW);
        let changes = tables.replace(new);
        let destinations = tables.width as u32;
        let row = |tables: &Tables, node: NodeId| -> Vec<Option<usize>> {
            (0..destinations)
                .map(|destination| tables.port(node.0, destination))
                .collect()
        };
        let (mut entries, mut switches) = (0, 0);
        for switch in plan.network.switches() {
            let now = row(&tables, switch);
            let expected = if switch == cut { &before } else { &alone };
            assert_eq!(now, row(expected, switch), "{switch:?}");
            for port in 0..5 {
                let lanes = tables.lanes(switch, port, usual);
                assert_eq!(
                    lanes,
                    expected.lanes(switch, port, usual),
                    "{switch:?} {port}"
                );
            }
            let old = row(&before, switch);
            let different = now.iter().zip(&old).filter(|(now, old)| now != old).count() as u64;
            entries += different;
            switches += u64::from(different > 0);
        }
        assert_eq!(changes, Changes { entries, switches });
        assert!(entries > 0 && switches < plan.network.switches().count() as u64);
        assert!(row(&tables, cut).iter().all(Option::is_some));
    }
}
