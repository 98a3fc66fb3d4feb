//! What ports get of lanes and their turns, from the settings, from the routing engine, or from both.
//!
//! | | settings of quality of service | without them |
//! |---|---|---|
//! | cables between switches, an engine with lanes | its lanes; turns as set | its lanes; equal turns |
//! | all other ports | as set | nothing is written, but lane 0 towards hosts under an engine with lanes |

use softfabric_units::PartitionKey;
use softfabric_wire::infiniband::VirtualLane;
use softfabric_wire::mad::subnet::{LaneWeight, ServiceLevelMap, Smp, SmpRoute, VlArbitration};
use softfabric_wire::mad::{LaneCount, PortCapabilities};

use super::super::requests::Request;
use super::super::{ManageError, Manager};
use super::{PathRequest, PortKind, block_of, fold, folded};
use crate::routing::{Levels, Routes, RoutingView};
use crate::subnet::{NodeKind, PortRef};

/// The blocks of arbitration: two of the low table, two of the high one.
const BLOCKS: std::ops::RangeInclusive<u8> = 1..=4;
/// The first block of the high table.
const HIGH: u8 = 3;
/// Entries of a block.
const BLOCK: usize = 32;
/// The weight of a lane's turn where nothing is set, in 64 bytes: one largest packet.
const TURN: u8 = 64;

impl Manager {
    fn kind_of(&self, port: PortRef) -> PortKind {
        match (self.subnet.node(port.node).kind, port.port) {
            (NodeKind::Switch, 0) => PortKind::SwitchPort0,
            (NodeKind::Switch, _) => PortKind::Switch,
            (NodeKind::Router, _) => PortKind::Router,
            (NodeKind::Adapter, _) => PortKind::Adapter,
        }
    }

    /// How many data lanes a port shall use: what it and the other end have and may. Port 0 has no other end.
    pub(in super::super) fn wanted_lane_count(&self, port: PortRef) -> Option<LaneCount> {
        let may = |port: PortRef| {
            let has = self.known.port(port)?.lane_capability;
            let quality = self.quality.as_ref();
            let most = quality.and_then(|quality| quality.told(self.kind_of(port)).most_lanes);
            let most = most.map_or(has, LaneCount::at_most);
            Some(LaneCount(has.0.min(most.0).max(1)))
        };
        let own = may(port)?;
        let peer = self.subnet.port(port).peer();
        let other = peer.filter(|_| port.port != 0).and_then(may);
        Some(LaneCount(other.map_or(own.0, |other| own.0.min(other.0))))
    }

    fn lanes_of(&self, port: PortRef) -> u8 {
        let count = self.wanted_lane_count(port);
        count.and_then(LaneCount::lanes).unwrap_or(1)
    }

    /// Whether the settings are for this port: not for a switch's port 0 that is none of the enhanced ones.
    fn has_turns(&self, port: PortRef) -> bool {
        let enhanced = || {
            let info = self.known.switch(port.node);
            info.is_some_and(|info| info.enhanced_port_0)
        };
        self.kind_of(port) != PortKind::SwitchPort0 || enhanced()
    }

    /// How much the high table may send at a stretch; `None` where that stays as it is.
    pub(in super::super) fn wanted_high_limit(&self, port: PortRef) -> Option<u8> {
        let quality = self.quality.as_ref().filter(|_| self.has_turns(port))?;
        // With one data lane there is nothing to arbitrate.
        let single = self.known.port(port)?.lane_capability == LaneCount::ONE;
        let limit = quality.told(self.kind_of(port)).high_limit;
        Some(if single { 0 } else { limit })
    }

    /// The link between switches that a port sends on, where the routing engine says which lanes it has.
    fn engine_link(&self, port: PortRef) -> Option<(&Routes, usize)> {
        let (view, routes) = self.routed.as_ref()?;
        if routes.lanes_used <= 1 {
            return None;
        }
        let link = view.link_by_port(view.switch_of(port.node)?, port.port)?;
        Some((routes, link))
    }

    /// A block of a port's turns; `None` where that stays as it is.
    pub(in super::super) fn wanted_arbitration(
        &self,
        port: PortRef,
        block: u8,
    ) -> Option<VlArbitration> {
        let info = self.known.port(port)?;
        let high = block >= HIGH;
        let room = usize::from(if high {
            info.arbitration_high_capacity
        } else {
            info.arbitration_low_capacity
        });
        let place = usize::from((block - 1) % 2);
        if room <= place * BLOCK {
            return None;
        }
        match &self.quality {
            None => {
                let (routes, _) = self.engine_link(port).filter(|_| block == 1)?;
                Some(equal_turns(routes.lanes_used))
            }
            Some(quality) => {
                if info.lane_capability == LaneCount::ONE || !self.has_turns(port) {
                    return None;
                }
                let told = quality.told(self.kind_of(port));
                let turns = if high { &told.high } else { &told.low };
                Some(block_of(turns, place, self.lanes_of(port), room))
            }
        }
    }

    /// The lanes of levels for packets that leave by a port, wherever they came in; `None` where that stays as it is.
    pub(in super::super) fn wanted_levels(&self, output: PortRef) -> Option<ServiceLevelMap> {
        if let Some((routes, link)) = self.engine_link(output) {
            return Some(engine_lanes(routes, link));
        }
        match &self.quality {
            Some(quality) => {
                // What a switch can, its port 0 says.
                let says = self.subnet.end_port(output);
                let maps = self.known.port(says)?.capabilities;
                let does = maps.contains(PortCapabilities::SL_MAPPING) && self.has_turns(output);
                let map = quality.told(self.kind_of(output)).lanes.0;
                does.then(|| folded(&map, self.lanes_of(output)))
            }
            None => {
                let (_, routes) = self.routed.as_ref()?;
                let is_switch = self.kind_of(output) == PortKind::Switch;
                // To a host: nothing waits behind it.
                (routes.lanes_used > 1 && is_switch).then(ServiceLevelMap::default)
            }
        }
    }

    /// All that differs: lanes of levels, and turns.
    pub(in super::super) fn write_lanes(&mut self) {
        let Some((view, routes)) = &self.routed else {
            return;
        };
        if self.quality.is_none() && routes.lanes_used <= 1 {
            return;
        }
        let own = (0..view.switches()).map(|switch| PortRef {
            node: view.node(switch),
            port: 0,
        });
        let mut ports: Vec<PortRef> = own.collect();
        ports.extend(self.cabled_ports());
        for port in ports {
            self.write_levels(port);
            for block in BLOCKS {
                let wanted = self.wanted_arbitration(port, block);
                if wanted.is_some() && self.known.arbitration(port, block) != wanted.as_ref() {
                    self.requests.ask(Request::SetArbitration { port, block });
                }
            }
        }
    }

    fn write_levels(&mut self, output: PortRef) {
        let Some(wanted) = self.wanted_levels(output) else {
            return;
        };
        let node = self.subnet.node(output.node);
        let inputs = if node.is_switch() { node.ports } else { 0 };
        let differs = |input: &u8| self.known.levels(output, *input) != Some(&wanted);
        let differing: Vec<u8> = (0..=inputs).filter(differs).collect();
        if self.takes_all_inputs(output) && !differing.is_empty() {
            self.requests.ask(Request::SetLevels { output, input: 0 });
            return;
        }
        for input in differing {
            self.requests.ask(Request::SetLevels { output, input });
        }
    }

    /// Whether one order sets the lanes of all inputs.
    fn takes_all_inputs(&self, output: PortRef) -> bool {
        let is_switch = self.subnet.node(output.node).is_switch();
        let info = self.known.switch(output.node).filter(|_| is_switch);
        info.is_some_and(|info| info.optimized_levels & 1 != 0)
    }

    pub(in super::super) fn levels_order(&mut self, output: PortRef, input: u8) -> Option<Smp> {
        let wanted = self.wanted_levels(output)?;
        let modifier = if !self.subnet.node(output.node).is_switch() {
            ServiceLevelMap::modifier(0, 0)
        } else if self.takes_all_inputs(output) {
            ServiceLevelMap::all_inputs(output.port)
        } else {
            ServiceLevelMap::modifier(input, output.port)
        };
        Some(Smp::set(self.table_route(output)?, modifier, &wanted))
    }

    pub(in super::super) fn take_levels(&mut self, output: PortRef, input: u8, smp: &Smp) {
        let Some(map) = smp.data_as::<ServiceLevelMap>() else {
            return;
        };
        let inputs = if self.takes_all_inputs(output) {
            0..=self.subnet.node(output.node).ports
        } else {
            input..=input
        };
        for input in inputs {
            self.known.set_levels(output, input, map);
        }
    }

    pub(in super::super) fn arbitration_order(&mut self, port: PortRef, block: u8) -> Option<Smp> {
        let wanted = self.wanted_arbitration(port, block)?;
        let is_switch = self.subnet.node(port.node).is_switch();
        let number = if is_switch { port.port } else { 0 };
        let modifier = VlArbitration::modifier(number, block);
        Some(Smp::set(self.table_route(port)?, modifier, &wanted))
    }

    /// The way to where a port's tables are: every port of an adapter has its own, and takes orders for those only.
    fn table_route(&mut self, port: PortRef) -> Option<SmpRoute> {
        if self.subnet.node(port.node).is_switch() {
            self.route_to(port.node)
        } else {
            self.route_to_port(port)
        }
    }

    /// Whether settings, engine and ports agree.
    pub(in super::super) fn check_quality(
        &self,
        view: &RoutingView,
        routes: &Routes,
    ) -> Result<(), ManageError> {
        self.check_levels(routes)?;
        if self.quality.is_none() {
            return Ok(());
        }
        for port in self.ports_of(view) {
            self.check_port(view, routes, port)?;
        }
        Ok(())
    }

    /// An engine that says which level a path takes leaves no choice.
    fn check_levels(&self, routes: &Routes) -> Result<(), ManageError> {
        if routes.levels == Levels::Uniform {
            return Ok(());
        }
        let quality = self.quality.as_ref();
        let level = quality.and_then(|quality| quality.policy.levels().first());
        let by_policy =
            level.map(|level| (format!("the policy's level {:?}", level.name), level.sl));
        let partitions = self.partitions.as_ref();
        let by_partition = partitions
            .and_then(super::super::Partitions::first_level)
            .map(|(key, sl)| (format!("partition {:#06x}", key.0), sl));
        match by_policy.or(by_partition) {
            None => Ok(()),
            Some((what, sl)) => Err(ManageError::LevelsTaken {
                engine: routes.engine,
                what,
                sl,
            }),
        }
    }

    /// The ports with cables of switches in a view, and those at their other ends; and enhanced ports 0.
    fn ports_of(&self, view: &RoutingView) -> Vec<PortRef> {
        let switches = (0..view.switches()).map(|switch| view.node(switch));
        let own = switches.clone().map(|node| PortRef { node, port: 0 });
        let mut ports: Vec<PortRef> = own.filter(|port| self.has_turns(*port)).collect();
        for (port, state) in switches.flat_map(|node| self.subnet.external_ports(node)) {
            if let Some(peer) = state.peer() {
                ports.push(port);
                if !self.subnet.node(peer.node).is_switch() {
                    ports.push(peer);
                }
            }
        }
        ports
    }

    fn check_port(
        &self,
        view: &RoutingView,
        routes: &Routes,
        port: PortRef,
    ) -> Result<(), ManageError> {
        let (Some(quality), Some(info)) = (&self.quality, self.known.port(port)) else {
            return Ok(());
        };
        let kind = self.kind_of(port);
        let told = quality.told(kind);
        let has = info.lane_capability.lanes().unwrap_or(1);
        let node = || self.named(port.node);
        if let Some(wanted) = told.most_lanes.filter(|most| *most > has) {
            return Err(ManageError::TooManyLanes {
                kind: kind.name(),
                wanted,
                node: node(),
                port: port.port,
                available: has,
            });
        }
        let lanes = self.lanes_of(port);
        let switch = view.switch_of(port.node);
        let link = switch.and_then(|switch| view.link_by_port(switch, port.port));
        let by_engine = link.filter(|_| routes.lanes_used > 1);
        let map = match by_engine {
            Some(link) => engine_lanes(routes, link),
            None => folded(&told.lanes.0, lanes),
        };
        if by_engine.is_some() && lanes < routes.lanes_used {
            return Err(ManageError::Lanes {
                engine: routes.engine,
                needed: routes.lanes_used,
                node: node(),
                port: port.port,
                available: lanes,
            });
        }
        if let (Some(_), Some(named)) = (by_engine, told.lanes.1) {
            let named = folded(named, lanes);
            let levels = (0..).zip(map.lanes.iter().zip(&named.lanes));
            let mut used = levels.take(usize::from(top_level(routes)) + 1);
            if let Some((level, (needed, wanted))) = used.find(|(_, (one, other))| one != other) {
                return Err(ManageError::LanesTaken {
                    engine: routes.engine,
                    level,
                    needed: needed.as_u8(),
                    wanted: wanted.as_u8(),
                    node: node(),
                    port: port.port,
                });
            }
        }
        if info.lane_capability == LaneCount::ONE {
            return Ok(());
        }
        let turns = |turns: &[LaneWeight], room: u8, lane: VirtualLane| {
            turns
                .iter()
                .take(usize::from(room))
                .any(|turn| turn.weight > 0 && fold(turn.lane.as_u8(), lanes) == lane.as_u8())
        };
        let (high, low) = (
            info.arbitration_high_capacity,
            info.arbitration_low_capacity,
        );
        let waits = (0..).zip(map.lanes).find(|(_, lane)| {
            *lane != VirtualLane::MANAGEMENT
                && !turns(&told.high, high, *lane)
                && !turns(&told.low, low, *lane)
        });
        match waits.filter(|_| high > 0 || low > 0) {
            None => Ok(()),
            Some((level, lane)) => Err(ManageError::NoTurn {
                level,
                lane: lane.as_u8(),
                node: node(),
                port: port.port,
                high,
                low,
            }),
        }
    }

    /// The level of a path from a port: the engine's; with quality of service the one that is asked for, or a rule's; else the
    /// partition's. `None` where no packet of that level would arrive, or a rule wants another one than who asks.
    pub(in super::super) fn path_level(
        &self,
        by_engine: Option<u8>,
        asked: Option<u8>,
        request: &PathRequest,
        from: PortRef,
    ) -> Option<u8> {
        if let Some(level) = by_engine {
            return Some(level);
        }
        let partition = |key: PartitionKey| {
            let partitions = self.partitions.as_ref();
            partitions.map_or(0, |partitions| partitions.level(key))
        };
        let Some(quality) = &self.quality else {
            return Some(partition(request.partition));
        };
        let by_rule = quality.policy.level(request).map(|level| level.sl);
        let level = match (asked, by_rule) {
            (Some(asked), Some(ruled)) if asked != ruled => return None,
            (asked, ruled) => asked
                .or(ruled)
                .unwrap_or_else(|| partition(request.partition)),
        };
        let start = self.kind_of(from);
        let dropped = quality.drops(PortKind::Switch, level)
            || (start != PortKind::SwitchPort0 && quality.drops(start, level));
        (!dropped).then_some(level)
    }
}

/// The lanes that an engine gives to the levels of a link.
fn engine_lanes(routes: &Routes, link: usize) -> ServiceLevelMap {
    let mut map = ServiceLevelMap::default();
    for (level, lane) in (0..).zip(&mut map.lanes) {
        *lane = super::lane(routes.lane(link, level) % routes.lanes_used.max(1));
    }
    map
}

/// The highest level that paths take.
fn top_level(routes: &Routes) -> u8 {
    let top = match &routes.levels {
        Levels::Uniform => None,
        Levels::ByDestination(levels) | Levels::ByPath(levels) => levels.iter().max(),
    };
    top.copied().unwrap_or(0).min(15)
}

/// A turn of 64 × 64 bytes, one largest packet, for each lane.
fn equal_turns(lanes: u8) -> VlArbitration {
    let mut table = VlArbitration::default();
    for (number, entry) in (0..lanes).zip(&mut table.entries) {
        *entry = LaneWeight {
            lane: super::lane(number),
            weight: TURN,
        };
    }
    table
}
