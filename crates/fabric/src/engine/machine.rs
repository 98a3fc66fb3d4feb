//! The nodes and the driver that moves them, whichever it is.

use std::ops::Range;

use softfabric_units::{Random, Time};

use super::drive::{
    Part, PartWork, Pause, Sequential, TieOrder, Triggers, Until, Watcher, Windows,
};
use super::infiniband::Tables;
use super::link::ErrorModel;
use super::node::{Kind, Node};
use super::routing::Routes;
use super::world::World;
use super::{Driver, RunOptions};
use crate::plan::{
    Action, Endpoint, Infiniband, LinkId, NodeKind, Plan, Start, TimedAction, Timing,
};

/// Nodes and driver.
#[derive(Debug)]
pub(crate) struct Machine {
    engine: Engine,
    links_up: Vec<bool>,
}

#[derive(Debug)]
enum Engine {
    Windows { parts: Vec<Part>, driver: Windows },
    Sequential(Box<Sequential>),
}

/// What a machine leaves behind.
pub(crate) struct Remains {
    pub(crate) nodes: Vec<Node>,
    pub(crate) work: PartWork,
    pub(crate) windows: u64,
    /// Packets that are still on links.
    pub(crate) on_wires: u64,
    /// The nodes that pause frames reached, in the order of events; empty where the driver does not know it.
    pub(crate) pause_order: Vec<u32>,
}

/// Calls a node with its scheduler, whichever driver it is.
macro_rules! with_node {
    ($machine:expr, $node:expr, |$n:ident, $s:ident| $body:expr) => {
        match &mut $machine.engine {
            Engine::Windows { parts, driver } => {
                let part = usize::from(driver.part_of[$node as usize]);
                parts[part].with_node($node, &driver.part_of, |$n, $s| $body)
            }
            Engine::Sequential(sequential) => sequential.with_node($node, |$n, $s| $body),
        }
    };
}

impl Machine {
    pub(crate) fn new(plan: &Plan, nodes: Vec<Node>, options: &RunOptions<'_>) -> Self {
        let triggers = Triggers::new(plan);
        let mut first_wire = vec![0u32];
        let mut wires = 0;
        for node in &nodes {
            wires += node.transmitters().count() as u32;
            first_wire.push(wires);
        }
        let engine =
            match (plan.timing, options.driver) {
                (Timing::Hpcc, _) => Engine::Sequential(Box::new(Sequential::new(
                    nodes,
                    first_wire,
                    TieOrder::Scheduling,
                    triggers,
                ))),
                (Timing::Exact, Driver::Sequential) => Engine::Sequential(Box::new(
                    Sequential::new(nodes, first_wire, TieOrder::NodeAndEvent, triggers),
                )),
                (Timing::Exact, Driver::Automatic) => {
                    let threads = options.threads.clamp(1, nodes.len().max(1));
                    let ranges = split(&weights(&nodes), threads);
                    let mut part_of = vec![0u16; nodes.len()];
                    let mut rest = nodes.into_iter();
                    let mut parts = Vec::with_capacity(ranges.len());
                    for (index, range) in ranges.iter().enumerate() {
                        part_of[range.clone()].fill(index as u16);
                        let members = rest.by_ref().take(range.len()).collect();
                        let wires = first_wire[range.start..=range.end].to_vec();
                        parts.push(Part::new(range.clone(), members, wires, ranges.len()));
                    }
                    Engine::Windows {
                        parts,
                        driver: Windows::new(part_of, triggers),
                    }
                }
            };
        Self {
            engine,
            links_up: vec![true; plan.network.links.len()],
        }
    }

    /// Schedules every flow that starts by the clock, in the order of the plan, and every job.
    pub(crate) fn start_flows(&mut self, plan: &Plan) {
        for (id, flow) in plan.flows.iter().enumerate() {
            if let Start::At(time) = flow.start {
                let host = super::build::starter(flow).0;
                with_node!(self, host, |node, scheduler| node
                    .start_flow(id as u32, time, scheduler));
            }
        }
        if !plan.jobs.is_empty() {
            for host in plan.network.hosts() {
                with_node!(self, host.0, |node, scheduler| node
                    .schedule_program(scheduler));
            }
        }
    }

    pub(crate) fn run(&mut self, world: &World, until: Until, watcher: &mut Watcher<'_>) -> Pause {
        match &mut self.engine {
            Engine::Windows { parts, driver } => driver.run(parts, world, until, watcher),
            Engine::Sequential(sequential) => sequential.run(world, until, watcher),
        }
    }

    /// Makes something happen to the network. True if a link has gone down or come up.
    pub(crate) fn apply(&mut self, timed: &TimedAction, world: &mut World) -> bool {
        let now = timed.at;
        match timed.action {
            Action::LinkDown(link) => return self.set_link(now, link, false, world),
            Action::LinkUp(link) => return self.set_link(now, link, true, world),
            Action::BitErrorRate(link, rate) => self.set_errors(link, rate, world),
            Action::DrainRate(node, _)
            | Action::StormBegins(node, _)
            | Action::StormEnds(node, _)
            | Action::SourceStops(node)
            | Action::Slowness(node, _) => {
                with_node!(self, node.0, |node, scheduler| node.act(
                    now,
                    timed.action,
                    world,
                    scheduler
                ));
            }
            Action::PfcOff(_) => {
                for node in world.plan.network.ids() {
                    with_node!(self, node.0, |node, scheduler| node.act(
                        now,
                        timed.action,
                        world,
                        scheduler
                    ));
                }
            }
        }
        false
    }

    /// By number of the link: whether it is up.
    pub(crate) fn links_up(&self) -> &[bool] {
        &self.links_up
    }

    /// InfiniBand's subnet manager has made new tables.
    pub(crate) fn program(&mut self, tables: &Tables, plan: &Plan, settings: &Infiniband) {
        for id in plan.network.switches() {
            if let NodeKind::Switch { profile } = plan.network.nodes[id.index()].kind {
                let usual = &settings.switches[profile as usize].lanes;
                with_node!(self, id.0, |node, _scheduler| node.program(tables, usual));
            }
        }
    }

    fn set_link(&mut self, now: Time, link: LinkId, up: bool, world: &mut World) -> bool {
        let index = link.0 as usize;
        if self.links_up[index] == up {
            return false;
        }
        self.links_up[index] = up;
        if world.tables.is_none() && world.plan.reroute.is_zero() {
            world.routes = Routes::compute(world.plan, &self.links_up);
        }
        let link = world.plan.network.links[index];
        for end in [link.a, link.b] {
            if !up {
                self.cut(end);
            }
            with_node!(self, end.node.0, |node, scheduler| node.set_link(
                now,
                end.port.index(),
                up,
                world,
                scheduler
            ));
        }
        true
    }

    /// What is on the wire to `end` is lost, as seen by the node there.
    fn cut(&mut self, end: Endpoint) {
        let (node, port) = (end.node.0, end.port.index());
        let lost = match &mut self.engine {
            Engine::Windows { parts, driver } => {
                parts[usize::from(driver.part_of[node as usize])].cut_wire(node, port)
            }
            Engine::Sequential(sequential) => sequential.cut_wire(node, port),
        };
        with_node!(self, node, |node, _scheduler| node.losses_mut().total +=
            lost);
    }

    fn set_errors(&mut self, link: LinkId, bit_error_rate: f64, world: &World) {
        let plan = world.plan;
        let ends = plan.network.links[link.0 as usize];
        for (side, end) in [ends.a, ends.b].into_iter().enumerate() {
            let stream = super::build::error_stream(link, side);
            with_node!(self, end.node.0, |node, _scheduler| {
                let errors = &mut node.transmitter_mut(end.port.index()).link.errors;
                let model = errors.get_or_insert_with(|| {
                    let random = Random::stream(plan.seed, stream);
                    Box::new(ErrorModel {
                        bit_error_rate: 0.0,
                        packet_error_rate: ends.packet_error_rate,
                        random,
                    })
                });
                model.bit_error_rate = bit_error_rate;
            });
        }
    }

    /// Takes the machine apart.
    pub(crate) fn into_remains(self) -> Remains {
        match self.engine {
            Engine::Windows { parts, driver } => {
                let mut remains = Remains {
                    nodes: Vec::new(),
                    work: PartWork::default(),
                    windows: driver.windows,
                    on_wires: 0,
                    pause_order: Vec::new(),
                };
                for part in parts {
                    remains.work.merge(part.work);
                    remains.on_wires += part.on_wires();
                    remains.nodes.extend(part.members);
                }
                remains
            }
            Engine::Sequential(sequential) => {
                let on_wires = sequential.on_wires();
                Remains {
                    nodes: sequential.nodes,
                    work: sequential.work,
                    windows: 0,
                    on_wires,
                    pause_order: sequential.pause_order,
                }
            }
        }
    }
}

/// The work of all nodes before each node: a packet costs a host, whose transport handles it, about three times what it
/// costs a switch.
fn weights(nodes: &[Node]) -> Vec<u32> {
    let mut sum = 0;
    let mut before = vec![0];
    for node in nodes {
        let ports = node.transmitters().count() as u32;
        sum += match node.kind {
            Kind::Host(_) | Kind::TcpHost(_) => 3 * ports,
            Kind::Switch(_) | Kind::LaneSwitch(_) => ports,
        };
        before.push(sum);
    }
    before
}

/// Splits nodes into runs of about equal weight; `before[node]` is the weight of all nodes before it.
fn split(before: &[u32], parts: usize) -> Vec<Range<usize>> {
    let nodes = before.len() - 1;
    let wires = u64::from(before[nodes]);
    let mut ranges = Vec::with_capacity(parts);
    let mut start = 0;
    for part in 1..=parts {
        let target = wires * part as u64 / parts as u64;
        let mut end = before
            .partition_point(|&first| u64::from(first) < target)
            .clamp(start, nodes);
        if part == parts {
            end = nodes;
        }
        if end > start {
            ranges.push(start..end);
            start = end;
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn parts_cover_all_nodes_once() {
        let before = [0, 1, 2, 3, 4, 12, 20];
        for parts in 1..10 {
            let ranges = split(&before, parts);
            assert_eq!(ranges.first().map(|range| range.start), Some(0));
            assert_eq!(ranges.last().map(|range| range.end), Some(6));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(ranges.iter().all(|range| !range.is_empty()));
        }
        assert_eq!(split(&before, 2), [0..5, 5..6]);
    }
}
