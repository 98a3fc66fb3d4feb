//! Measuring a scenario's network: every round is a run of its own on the idle network.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use softfabric_fabric::batch;
use softfabric_fabric::engine::{self, RunOptions};
use softfabric_fabric::export::Names;
use softfabric_fabric::plan::{Flow, Network, NodeId, Plan, PortId, Start, Stop};
use softfabric_fabric::results::Results;
use softfabric_fabric::scenario::Scenario;
use softfabric_operations::baseline::{Pair, PortAtWork};
use softfabric_telemetry::{ClassCounter, PortCounter};
use softfabric_units::{Bytes, Rate, Span, Time};

use super::arguments::CommissionArguments;
use super::{Measured, rounds};
use crate::failure::Failure;
use crate::run;

/// What a latency is measured with.
const SMALL: Bytes = Bytes::new(64);
/// When the small messages have long arrived, unless something is very slow.
const BEGIN: Span = Span::micros(100);
/// A round that takes so many times as long as one pair's bytes would over the slowest link is stopped.
const SLOWEST: u64 = 50;

/// From whom to whom, by which rail.
#[derive(Clone, Copy)]
struct Way {
    client: NodeId,
    server: NodeId,
    rail: PortId,
}

/// The network alone, with one flow as the scenario's hosts send it.
struct Ground {
    plan: Plan,
    template: Flow,
    /// Hosts and how many NICs they have.
    hosts: Vec<(NodeId, u16)>,
}

impl Ground {
    fn new(arguments: &CommissionArguments, path: &Path) -> Result<Self, Failure> {
        let text = run::scenario_text(path)?;
        let name = path.display().to_string();
        let mut scenario = Scenario::from_toml(&text, &name)?;
        scenario.seed = arguments.seed.or(scenario.seed);
        let actions = scenario.plan()?.actions;
        // Without the workload, and with one flow that shows which class and queue pair hosts use.
        scenario.workload.clear();
        scenario.job.clear();
        scenario.trigger.clear();
        scenario.event.clear();
        scenario.record = Default::default();
        let network = scenario.plan()?.network;
        let names = Names::new(&network);
        let hosts = nics(&network);
        let [(first, _), (second, _), ..] = hosts.as_slice() else {
            return Err(Failure::WrongKind {
                path: path.to_owned(),
                problem: "a pair takes two hosts, and the network has fewer".to_owned(),
                help: "The scenario's [topology] says how many there are.".to_owned(),
            });
        };
        let (from, to) = (&names.node(*first).name, &names.node(*second).name);
        let flow = format!(
            "[topology]\nkind = \"star\"\nhosts = 2\n[[workload]]\nkind = \"flow\"\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = \"1MB\"\n"
        );
        scenario.workload = Scenario::from_toml(&flow, &name)?.workload;
        let mut plan = scenario.plan()?;
        let template = plan.flows[0].clone();
        plan.flows.clear();
        plan.actions = actions;
        let until = arguments.at.map(|at| Time::ZERO + at);
        plan.actions
            .retain(|action| until.is_some_and(|until| action.at <= until));
        plan.actions.sort_by_key(|action| action.at);
        for action in &mut plan.actions {
            action.at = Time::ZERO;
        }
        Ok(Self {
            plan,
            template,
            hosts,
        })
    }

    /// How many rails all hosts have.
    fn rails(&self) -> u16 {
        self.hosts.iter().map(|(_, nics)| *nics).min().unwrap_or(1)
    }

    fn flow(&self, way: Way, bytes: Bytes, start: Time, number: usize) -> Flow {
        Flow {
            source: way.client,
            source_nic: way.rail,
            destination: way.server,
            destination_nic: way.rail,
            bytes,
            message: None,
            start: Start::At(start),
            // Not all over one of several ways.
            udp_source_port: 49_152 + (number * 7_919 % 16_384) as u16,
            path: None,
            group: "commission".to_owned(),
            on_sent: None,
            on_received: None,
            ..self.template.clone()
        }
    }

    /// The plan of a round: a small message on each way, then all bytes.
    fn round(&self, ways: &[Way], bytes: Bytes) -> Plan {
        let mut plan = self.plan.clone();
        let begin = Time::ZERO + BEGIN;
        for (number, &way) in ways.iter().enumerate() {
            plan.flows.push(self.flow(way, SMALL, Time::ZERO, number));
            plan.flows.push(self.flow(way, bytes, begin, number));
        }
        let slowest = plan.network.links.iter().map(|link| link.rate).min();
        let alone = slowest.unwrap_or(Rate::gbps(1)).time_for(bytes);
        plan.stop = Stop {
            at: begin + alone * SLOWEST + Span::millis(1),
            when_done: true,
        };
        plan
    }
}

/// Hosts with their number of links.
fn nics(network: &Network) -> Vec<(NodeId, u16)> {
    let hosts = network.hosts();
    hosts
        .map(|id| {
            let ends = network.links.iter().flat_map(|link| [link.a, link.b]);
            (id, ends.filter(|end| end.node == id).count() as u16)
        })
        .filter(|(_, nics)| *nics > 0)
        .collect()
}

/// What a port did, summed over rounds.
#[derive(Default)]
struct Sum {
    time: f64,
    sent: f64,
    held: f64,
    marks: f64,
    packets: f64,
    queue: u64,
}

/// Measures every pair, or the rings.
///
/// # Errors
/// If the scenario cannot be read or is wrong.
pub(super) fn measure(arguments: &CommissionArguments, path: &Path) -> Result<Measured, Failure> {
    let ground = Ground::new(arguments, path)?;
    let hosts: Vec<NodeId> = ground.hosts.iter().map(|(id, _)| *id).collect();
    let rails = ground.rails();
    let rounds = rounds::of(hosts.len(), arguments.collective);
    let ways = |round: &[(usize, usize)]| -> Vec<Way> {
        let both = round.iter().flat_map(|&(a, b)| match arguments.collective {
            true => vec![(a, b)],
            false => vec![(a, b), (b, a)],
        });
        both.flat_map(|(a, b)| {
            let hosts = &hosts;
            (0..rails).map(move |rail| Way {
                client: hosts[a],
                server: hosts[b],
                rail: PortId(rail),
            })
        })
        .collect()
    };
    let rounds: Vec<Vec<Way>> = rounds.iter().map(|round| ways(round)).collect();
    let plans: Vec<Plan> = rounds
        .iter()
        .map(|ways| ground.round(ways, arguments.bytes))
        .collect();
    let outcomes = run::many::run(
        plans.len(),
        None,
        arguments.quiet,
        |threads, interrupt: &AtomicBool, done| {
            batch::map(plans.len(), threads, interrupt, done, &|index| {
                let options = &mut RunOptions {
                    interrupt: Some(interrupt),
                    ..RunOptions::default()
                };
                Some(engine::run(&plans[index], options))
            })
        },
    );
    let names = Names::new(&ground.plan.network);
    let name = |node: NodeId| names.node(node).name.clone();
    let mut measured = Measured::default();
    let mut sums: BTreeMap<String, (Option<Rate>, Sum)> = BTreeMap::new();
    for (number, ((ways, plan), outcome)) in rounds.iter().zip(&plans).zip(outcomes).enumerate() {
        let Some(outcome) = outcome else {
            return Err(Failure::Arguments {
                problem: format!("interrupted in round {} of {}", number + 1, rounds.len()),
                help: None,
            });
        };
        let results = outcome?;
        for (place, way) in ways.iter().enumerate() {
            let [small, big] = [2 * place, 2 * place + 1].map(|flow| &results.flows[flow]);
            let taken = big
                .received
                .unwrap_or(results.end)
                .since(big.start.unwrap_or(results.end));
            let seconds = taken.as_seconds_f64();
            let latency = small
                .received
                .zip(small.start)
                .map(|(received, start)| received.since(start));
            if seconds <= 0.0 || big.delivered.is_zero() {
                let (client, server) = (name(way.client), name(way.server));
                measured
                    .failed
                    .push(format!("from {client} to {server}: nothing arrived"));
                continue;
            }
            measured.pairs.push(Pair {
                client: name(way.client),
                server: name(way.server),
                round: number as u32,
                rail: (rails > 1).then_some(u32::from(way.rail.0)),
                bandwidth_bps: big.delivered.as_f64() * 8.0 / seconds,
                latency_ns: latency.map(|latency| latency.as_picos() as f64 / 1e3),
            });
        }
        add(&mut sums, plan, &results, &names);
    }
    measured.ports = sums
        .into_iter()
        .filter(|(_, (_, sum))| sum.time > 0.0)
        .map(|(port, (rate, sum))| PortAtWork {
            port,
            busy: rate.map_or(0.0, |rate| {
                (sum.sent * 8.0 / rate.as_bps() as f64 / sum.time).min(1.0)
            }),
            held: (sum.held / sum.time).min(1.0),
            marked: if sum.packets > 0.0 {
                (sum.marks / sum.packets).min(1.0)
            } else {
                0.0
            },
            queue_bytes: Some(sum.queue),
        })
        .collect();
    measured.bytes = Some(arguments.bytes.as_u64());
    measured.seed = Some(ground.plan.seed);
    Ok(measured)
}

/// Adds what ports did while bytes were under way.
fn add(
    sums: &mut BTreeMap<String, (Option<Rate>, Sum)>,
    plan: &Plan,
    results: &Results,
    names: &Names<'_>,
) {
    let begin = Time::ZERO + BEGIN;
    let active = results.end.max(begin).since(begin).as_seconds_f64();
    for port in &results.ports {
        let sent = port.port.value(PortCounter::TransmitBytes) as f64;
        let link = names.link(port.endpoint);
        let (_, sum) = sums
            .entry(names.port(port.endpoint))
            .or_insert_with(|| (link.map(|link| link.rate), Sum::default()));
        // A port that only acknowledges is not at work.
        let carries =
            link.is_some_and(|link| sent * 8.0 > 0.02 * link.rate.as_bps() as f64 * active);
        if !carries {
            continue;
        }
        let held = match plan.link_layer.infiniband().is_some() {
            true => Span::picos(port.port.value(PortCounter::TransmitWait)),
            false => port
                .longest_paused_class()
                .map_or(Span::ZERO, |(_, time)| time),
        };
        sum.time += active;
        sum.sent += sent;
        sum.held += held.as_seconds_f64();
        sum.marks += port.class_total(ClassCounter::EcnMarked) as f64;
        sum.packets += port.port.value(PortCounter::TransmitPackets) as f64;
        // The deepest queue of one class.
        let deepest = port
            .classes
            .iter()
            .map(|class| class.value(ClassCounter::QueueWatermark))
            .max();
        sum.queue = sum.queue.max(deepest.unwrap_or(0));
    }
}
