//! `[[job]]`: ranks placed, steps made into tasks.

use softfabric_units::{Bytes, Class, Random, Span, Time};

use super::flows::{CLASS, set_source_port, source_port};
use super::machine::Machines;
use super::network::Shape;
use super::select;
use super::tcp::port_of;
use super::trace;
use crate::job::collective::{self, Collective};
use crate::job::{Connections, Frontier, JobBuilder, Slicing, Spread, numbered, pipeline};
use crate::plan::{
    Dealing, Flow, HostProfile, Job, JobId, MOST_FLOWS, Measure, NodeId, Operation, PortId, Rank,
    Start,
};
use crate::scenario::error::Problems;
use crate::scenario::names::{Names, Wanted};
use crate::scenario::{
    AllReduceAlgorithm, AllToAllAlgorithm, Among, JobEntry, RankOrder, Scenario, SpreadKind, Step,
};

/// The most ranks that a job may have.
const MOST_RANKS: usize = 1 << 20;

/// The random stream of rank orders.
const ORDER: u64 = 0x6f72_6465_7200_0000;

/// The jobs of a scenario; the queue pairs of their channels go after the other flows.
pub(super) fn jobs(
    scenario: &Scenario,
    shape: &Shape,
    machines: &Machines,
    profiles: &[HostProfile],
    flows: &mut Vec<Flow>,
    problems: &mut Problems<'_>,
) -> Vec<Job> {
    let names = Names::new(&shape.network);
    let ports = shape.network.port_counts();
    let mut jobs = Vec::new();
    for (place, entry) in scenario.job.iter().enumerate() {
        let mut maker = Maker {
            scenario,
            shape,
            machines,
            profiles,
            names: &names,
            ports: &ports,
            field: format!("job[{place}]"),
            entry,
            problems,
        };
        jobs.extend(maker.job(place, flows));
    }
    jobs
}

struct Maker<'m, 's> {
    scenario: &'m Scenario,
    shape: &'m Shape,
    machines: &'m Machines,
    profiles: &'m [HostProfile],
    names: &'m Names<'m>,
    /// How many ports each node has.
    ports: &'m [u32],
    field: String,
    entry: &'m JobEntry,
    problems: &'m mut Problems<'s>,
}

impl Maker<'_, '_> {
    fn job(&mut self, place: usize, flows: &mut Vec<Flow>) -> Option<Job> {
        let entry = self.entry;
        let mut ranks = self.ranks(place)?;
        if entry.slice.is_some_and(Bytes::is_zero) {
            let field = format!("{}.slice", self.field);
            self.problems.add(field, "0B", "at least `1B`", None);
            return None;
        }
        let trace = trace::read(entry, &self.field, ranks.len(), self.problems)?;
        let name = entry.name.clone().unwrap_or_else(|| match &entry.step[..] {
            [only] => kind(only).to_owned(),
            [] => trace::name(entry),
            _ => "job".to_owned(),
        });
        if let Some(trace) = &trace {
            ranks.truncate(trace.ranks() as usize);
        }
        let start = entry.start.unwrap_or(Time::ZERO);
        let mut builder = JobBuilder::new(name.clone(), ranks, start);
        match trace {
            Some(trace) => {
                let iterations = entry.iterations.unwrap_or(1);
                if let Err(error) = trace.add(&mut builder, iterations, self.slicing()) {
                    trace::refuse(&error, &self.field, self.problems);
                    return None;
                }
            }
            None => self.steps(&mut builder)?,
        }
        self.finish(place, &name, builder, flows)
    }

    /// What all iterations of all steps do.
    fn steps(&mut self, builder: &mut JobBuilder) -> Option<()> {
        let entry = self.entry;
        let iterations = entry.iterations.unwrap_or(1);
        let all: Vec<u32> = (0..builder.ranks()).collect();
        let mut after = builder.beginning(all.len());
        for iteration in 0..iterations {
            self.phase(builder, iteration, iterations);
            let mut background: Frontier = builder.beginning(all.len());
            for (number, step) in entry.step.iter().enumerate() {
                let field = format!("{}.step[{number}]", self.field);
                let ends = self.step(builder, step, &field, &after)?;
                if is_background(step) {
                    for (rank, ends) in background.iter_mut().zip(ends) {
                        rank.extend(ends);
                    }
                } else {
                    after = builder.join(ends);
                }
            }
            for (rank, ends) in after.iter_mut().zip(background) {
                rank.extend(ends);
            }
            after = builder.join(after);
        }
        Some(())
    }

    /// The queue pairs of a job's channels.
    fn finish(
        &mut self,
        place: usize,
        name: &str,
        builder: JobBuilder,
        flows: &mut Vec<Flow>,
    ) -> Option<Job> {
        let entry = self.entry;
        let seed = self.scenario.seed.unwrap_or(1);
        let id = JobId(place as u32);
        let ports = (0..builder.ranks()).map(|rank| self.ports[builder.rank(rank).host.index()]);
        let connections = Connections {
            planes: self.shape.planes,
            queue_pairs: entry.queue_pairs.unwrap_or(1),
            spread: match entry.spread.unwrap_or(SpreadKind::Fewest) {
                SpreadKind::Fewest => Spread::Whole(Dealing::Fewest),
                SpreadKind::InTurn => Spread::Whole(Dealing::InTurn),
                SpreadKind::Split => Spread::Split,
            },
            standby_ports: match entry.failover {
                Some(true) => ports.min().unwrap_or(0).min(u32::from(u16::MAX)) as u16,
                Some(false) | None => 0,
            },
        };
        let first = builder.rank(0).host;
        let before = flows.len();
        let port = port_of(first, &self.shape.network, self.profiles);
        let all = builder.flows(&connections) + flows.len() as u64;
        if all > MOST_FLOWS {
            let found = format!("{all} flows, each a queue pair or connection at either end");
            let allowed = format!("at most {MOST_FLOWS}");
            let advice = "fewer ranks, fewer `queue_pairs`, or steps in which fewer ranks meet";
            let advice = Some(advice.to_owned());
            self.problems.add(&*self.field, found, allowed, advice);
            return None;
        }
        let job = builder.finish(id, connections, flows, |number| Flow {
            source: NodeId(0),
            source_nic: PortId(0),
            destination: NodeId(0),
            destination_nic: PortId(0),
            bytes: Bytes::ZERO,
            message: None,
            operation: Operation::Write,
            start: Start::Fed(id, 0),
            class: Class::checked(entry.class.unwrap_or(CLASS)).unwrap_or_default(),
            dscp: None,
            ecn_capable: entry.ecn.unwrap_or(true),
            udp_source_port: source_port(seed, number),
            udp_destination_port: port,
            path: None,
            group: name.to_owned(),
            on_sent: None,
            on_received: None,
        });
        for flow in &mut flows[before..] {
            set_source_port(self.scenario, &self.shape.network, self.profiles, flow);
        }
        Some(job)
    }

    /// How messages are cut.
    fn slicing(&self) -> Slicing {
        Slicing {
            slice: self.entry.slice.unwrap_or(Slicing::default().slice),
            handling: self.entry.handling.unwrap_or(Span::ZERO),
        }
    }

    /// Where the ranks are.
    fn ranks(&mut self, place: usize) -> Option<Vec<Rank>> {
        let entry = self.entry;
        let field = format!("{}.hosts", self.field);
        let before = self.problems.len();
        let hosts = match &entry.hosts {
            Some(patterns) => select(self.names, patterns, Wanted::Host, &field, self.problems),
            None => self.shape.network.hosts().collect(),
        };
        if self.problems.len() > before {
            return None;
        }
        let planes = u32::from(self.shape.planes);
        let network = &self.shape.network;
        let nics = |host: NodeId| self.ports[host.index()] / planes;
        for host in &hosts {
            let Some(machine) = self.machines.of(*host, network) else {
                continue;
            };
            let (wanted, there) = (machine.nics.len() as u32, nics(*host));
            if wanted > there {
                let name = &network.nodes[host.index()].name;
                let names: Vec<&str> = machine.nics.iter().map(|nic| nic.name.as_str()).collect();
                self.problems.add(
                    &*self.field,
                    format!("{there} NICs of `{name}`, whose server has more"),
                    format!("{wanted} NICs: {}", names.join(", ")),
                    Some(format!(
                        "give the topology of the network {wanted} rails, or the host another `server.topology`"
                    )),
                );
                return None;
            }
        }
        let places = |host: &NodeId| match self.machines.of(*host, network) {
            Some(machine) => machine.accelerators.len() as u32,
            None => nics(*host),
        };
        let fewest = hosts.iter().map(places).min().unwrap_or(0);
        let each = entry.ranks_per_host.unwrap_or(fewest);
        if each > fewest || each == 0 {
            let found = format!("{each} ranks a host");
            let has_machine = hosts
                .iter()
                .any(|host| self.machines.of(*host, network).is_some());
            let what = match has_machine {
                true => "accelerators",
                false => "NICs",
            };
            let allowed = format!("1 to {fewest}, the {what} of a host");
            self.problems.add(
                format!("{}.ranks_per_host", self.field),
                found,
                allowed,
                None,
            );
            return None;
        }
        let count = hosts.len().saturating_mul(each as usize);
        if !(2..=MOST_RANKS).contains(&count) {
            let found = format!("{count} ranks");
            let allowed = format!("2 to {MOST_RANKS} ranks");
            self.problems.add(field, found, allowed, None);
            return None;
        }
        let rank = |host: NodeId, accelerator: u32| Rank {
            host,
            accelerator,
            nic: PortId((self.nic(host, accelerator) * planes) as u16),
        };
        let by_host = |hosts: &[NodeId]| -> Vec<Rank> {
            (hosts.iter())
                .flat_map(|host| (0..each).map(move |accelerator| rank(*host, accelerator)))
                .collect()
        };
        Some(match entry.order.unwrap_or(RankOrder::Host) {
            RankOrder::Host => by_host(&hosts),
            RankOrder::Rail => (0..each)
                .flat_map(|accelerator| hosts.iter().map(move |host| rank(*host, accelerator)))
                .collect(),
            RankOrder::Random => {
                let seed = self.scenario.seed.unwrap_or(1);
                let mut random = Random::stream(seed, ORDER | place as u64);
                let mut ranks = by_host(&hosts);
                for last in (1..ranks.len()).rev() {
                    let other = random.below(last as u64 + 1) as usize;
                    ranks.swap(last, other);
                }
                ranks
            }
        })
    }

    /// The NIC that is nearest to an accelerator of a host.
    fn nic(&self, host: NodeId, accelerator: u32) -> u32 {
        (self.machines.of(host, &self.shape.network))
            .and_then(|machine| machine.accelerators.get(accelerator as usize))
            .map_or(accelerator, |found| found.nic)
    }

    /// A job of one collective is measured as that; others by iteration.
    fn phase(&self, builder: &mut JobBuilder, iteration: u32, iterations: u32) {
        let (name, measure) = match &self.entry.step[..] {
            [only] if measured(only).is_some() => {
                let members = self.groups(builder, among(only));
                let count = members.first().map_or(0, Vec::len);
                let measure = measured(only)
                    .map(|(collective, bytes)| -> Measure { collective.measure(bytes, count) });
                (kind(only).to_owned(), measure)
            }
            _ => ("iteration".to_owned(), None),
        };
        builder.begin_phase(numbered(&name, iteration, iterations), measure);
    }

    /// Who takes part together, by rank.
    fn groups(&self, builder: &JobBuilder, among: Among) -> Vec<Vec<u32>> {
        let all: Vec<u32> = (0..builder.ranks()).collect();
        let key = |rank: &u32| match among {
            Among::All => 0,
            Among::Server => builder.rank(*rank).host.0,
            Among::Rail => builder.rank(*rank).accelerator,
        };
        let mut keys: Vec<u32> = all.iter().map(key).collect();
        keys.sort_unstable();
        keys.dedup();
        (keys.iter())
            .map(|wanted| {
                all.iter()
                    .copied()
                    .filter(|rank| key(rank) == *wanted)
                    .collect()
            })
            .collect()
    }

    fn step(
        &mut self,
        builder: &mut JobBuilder,
        step: &Step,
        field: &str,
        after: &Frontier,
    ) -> Option<Frontier> {
        let slicing = self.slicing();
        if let Some((_, bytes)) = measured(step)
            && bytes.is_zero()
        {
            self.problems
                .add(format!("{field}.bytes"), "0B", "at least `1B`", None);
            return None;
        }
        match step {
            Step::Compute { time } => Some(
                (0..builder.ranks())
                    .map(|rank| vec![builder.compute(rank, *time, &after[rank as usize])])
                    .collect(),
            ),
            Step::Shift {
                bytes, distance, ..
            } => {
                let count = builder.ranks();
                let distance = distance.unwrap_or(count / 2);
                if distance.is_multiple_of(count) {
                    let found = format!("{distance} among {count} ranks, back to the sender");
                    let allowed = format!("1 to {}", count - 1);
                    self.problems
                        .add(format!("{field}.distance"), found, allowed, None);
                    return None;
                }
                Some(collective::shift(builder, *bytes, distance, slicing, after))
            }
            Step::Pipeline {
                stages,
                micro_batches,
                bytes,
                forward,
                backward,
            } => {
                let count = builder.ranks();
                if !count.is_multiple_of(*stages) {
                    let found = format!("{stages} stages of {count} ranks");
                    let allowed = "a number that divides the ranks";
                    self.problems
                        .add(format!("{field}.stages"), found, allowed, None);
                    return None;
                }
                let pipeline = pipeline::Pipeline {
                    stages: *stages,
                    micro_batches: *micro_batches,
                    bytes: *bytes,
                    forward: *forward,
                    backward: backward.unwrap_or(*forward * 2),
                };
                Some(pipeline.add(builder, slicing, after))
            }
            _ => {
                let mut ends: Frontier = vec![Vec::new(); after.len()];
                for members in self.groups(builder, among(step)) {
                    let before: Frontier = (members.iter())
                        .map(|rank| after[*rank as usize].clone())
                        .collect();
                    let of_group = match one_collective(builder, step, &members, slicing, &before) {
                        Ok(of_group) => of_group,
                        Err(found) => {
                            let allowed = "another algorithm, or other ranks";
                            self.problems
                                .add(format!("{field}.algorithm"), found, allowed, None);
                            return None;
                        }
                    };
                    for (rank, tasks) in members.iter().zip(of_group) {
                        ends[*rank as usize] = tasks;
                    }
                }
                Some(ends)
            }
        }
    }
}

/// One collective among `members`.
fn one_collective(
    builder: &mut JobBuilder,
    step: &Step,
    members: &[u32],
    slicing: Slicing,
    after: &Frontier,
) -> Result<Frontier, String> {
    let Some((collective, bytes)) = measured(step) else {
        return Ok(after.clone());
    };
    match step {
        Step::AllReduce {
            algorithm: Some(algorithm),
            ..
        } => match algorithm {
            AllReduceAlgorithm::Ring => Ok(collective::by_ring(
                builder, collective, members, bytes, slicing, after,
            )),
            AllReduceAlgorithm::DoubleTree => Ok(collective::all_reduce_double_tree(
                builder, members, bytes, slicing, after,
            )),
            AllReduceAlgorithm::HalvingDoubling => {
                collective::all_reduce_halving_doubling(builder, members, bytes, slicing, after)
            }
            AllReduceAlgorithm::Hierarchical => {
                collective::all_reduce_hierarchical(builder, members, bytes, slicing, after)
            }
        },
        Step::AllToAll {
            algorithm: Some(algorithm),
            ..
        } => match algorithm {
            AllToAllAlgorithm::Direct => Ok(collective::all_to_all_direct(
                builder, members, bytes, slicing, after,
            )),
            AllToAllAlgorithm::ByRail => {
                collective::all_to_all_by_rail(builder, members, bytes, slicing, after)
            }
        },
        _ => collective::usual(builder, collective, members, bytes, slicing, after),
    }
}

/// What a step is called.
fn kind(step: &Step) -> &'static str {
    match step {
        Step::Compute { .. } => "compute",
        Step::AllReduce { .. } => "all_reduce",
        Step::AllGather { .. } => "all_gather",
        Step::ReduceScatter { .. } => "reduce_scatter",
        Step::AllToAll { .. } => "all_to_all",
        Step::Broadcast { .. } => "broadcast",
        Step::Shift { .. } => "shift",
        Step::Pipeline { .. } => "pipeline",
    }
}

/// The collective that a step is, and how large it is.
fn measured(step: &Step) -> Option<(Collective, Bytes)> {
    match step {
        Step::AllReduce { bytes, .. } => Some((Collective::AllReduce, *bytes)),
        Step::AllGather { bytes, .. } => Some((Collective::AllGather, *bytes)),
        Step::ReduceScatter { bytes, .. } => Some((Collective::ReduceScatter, *bytes)),
        Step::AllToAll { bytes, .. } => Some((Collective::AllToAll, *bytes)),
        Step::Broadcast { bytes, .. } => Some((Collective::Broadcast, *bytes)),
        Step::Shift { bytes, .. } => Some((Collective::SendReceive, *bytes)),
        Step::Compute { .. } | Step::Pipeline { .. } => None,
    }
}

fn among(step: &Step) -> Among {
    match step {
        Step::AllReduce { among, .. }
        | Step::AllGather { among, .. }
        | Step::ReduceScatter { among, .. }
        | Step::AllToAll { among, .. }
        | Step::Broadcast { among, .. } => among.unwrap_or(Among::All),
        Step::Compute { .. } | Step::Shift { .. } | Step::Pipeline { .. } => Among::All,
    }
}

fn is_background(step: &Step) -> bool {
    match step {
        Step::AllReduce { background, .. }
        | Step::AllGather { background, .. }
        | Step::ReduceScatter { background, .. }
        | Step::AllToAll { background, .. }
        | Step::Broadcast { background, .. }
        | Step::Shift { background, .. } => background.unwrap_or(false),
        Step::Compute { .. } | Step::Pipeline { .. } => false,
    }
}
