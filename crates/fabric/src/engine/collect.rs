//! From nodes that have run to results.

use softfabric_telemetry::{ClassCounter, PortCounter, Reduce, Series};
use softfabric_units::{Bytes, Class, Span, Time};

use super::build::origin;
use super::host::FlowRecord;
use super::machine::{Machine, Remains};
use super::node::{Kind, Node};
use super::port::Transmitter;
use super::recorder::Track;
use super::world::World;
use super::{deadlock, ideal, jobs};
use crate::plan::{
    Endpoint, Flow, FlowId, LossRecovery, NodeId, NodeKind, Operation, Plan, PortId, PortSelection,
};
use crate::results::{
    Capture, Conservation, CounterSample, DeviceResult, Ending, FirstSignals, FlowResult,
    FlowSeries, FlowStatus, MemberResult, MulticastResult, PauseEvent, PortResult, PortSeries,
    Results, Signal, StackResult, TimeSeries, Work,
};

/// How many ports have series in the results, when the plan leaves the choice.
const BUSIEST: usize = 64;
/// How many lossless drops results list.
const LISTED_DROPS: usize = 1000;

pub(crate) fn collect(
    world: &World,
    machine: Machine,
    ending: Ending,
    last_action: Time,
) -> Results {
    let plan = world.plan;
    let Remains {
        mut nodes,
        work,
        windows,
        on_wires,
        pause_order,
    } = machine.into_remains();
    let last = nodes
        .iter()
        .filter_map(last_finish)
        .max()
        .unwrap_or(Time::ZERO);
    let end = match ending {
        Ending::Completed if plan.stop.when_done => work.last_packet.max(last).max(last_action),
        Ending::Completed | Ending::StopTime => plan.stop.at,
        Ending::Stalled | Ending::Interrupted => work.last_event.max(last_action),
    };
    let close = end.max(work.last_event).max(last_action);
    let held = nodes.iter().any(|node| match &node.kind {
        Kind::Switch(switch) => switch.held() > 0,
        Kind::LaneSwitch(switch) => switch.held() > 0,
        Kind::Host(_) | Kind::TcpHost(_) => false,
    });
    if (held || ending == Ending::Stalled) && ending != Ending::Interrupted {
        // What is left, in switches or at hosts, does not move any more, and whoever polls sees that until the end.
        for node in &mut nodes {
            node.poll_until(plan.stop.at);
        }
    }
    for node in &mut nodes {
        node.close(close);
        match &mut node.kind {
            Kind::Host(host) => host.nics.iter_mut().for_each(super::host::Nic::settle),
            Kind::TcpHost(host) => host.settle(),
            Kind::Switch(_) | Kind::LaneSwitch(_) => {}
        }
    }
    let flows: Vec<FlowResult> = (0..plan.flows.len() as u32)
        .map(|flow| flow_result(flow, world, &nodes))
        .collect();
    let unfinished = flows
        .iter()
        .any(|flow| flow.status == FlowStatus::Unfinished);
    let ports = port_results(&nodes);
    let mut first_lossless_drops: Vec<_> = nodes
        .iter()
        .flat_map(|node| node.losses().first_lossless.iter().copied())
        .collect();
    first_lossless_drops.sort_by_key(|drop| (drop.time, drop.endpoint));
    first_lossless_drops.truncate(LISTED_DROPS);
    let pause_log = pause_log(&nodes, &pause_order);
    Results {
        ending,
        end,
        first_lossless_drops,
        lossless_drops: nodes.iter().map(|node| node.losses().lossless).sum(),
        first_signals: first_signals(&nodes),
        pause_log,
        deadlock: if unfinished || held {
            deadlock::find(&plan.network, &nodes)
        } else {
            None
        },
        jobs: jobs::results(plan, &flows, &nodes),
        processors: jobs::processors(&nodes),
        counters: counters(&mut nodes),
        series: series(plan, &mut nodes),
        captures: captures(plan, &mut nodes),
        repairs: Vec::new(),
        conservation: conservation(&nodes, &ports, on_wires, close),
        devices: device_results(&nodes),
        multicast: multicast_results(world, &nodes),
        stacks: stack_results(&nodes),
        flows,
        ports,
        work: Work {
            link_hops: work.link_hops,
            events: work.events,
            windows,
        },
    }
}

/// All nodes' logs in one. Each is in order; of what happened at one instant the driver's order decides, or the nodes'.
fn pause_log(nodes: &[Node], order: &[u32]) -> Vec<PauseEvent> {
    let log = |node: &Node| {
        node.recorder()
            .and_then(|recorder| recorder.pause_log.clone())
    };
    let logs: Vec<Vec<PauseEvent>> = nodes
        .iter()
        .map(|node| log(node).unwrap_or_default())
        .collect();
    if order.is_empty() {
        let mut all: Vec<PauseEvent> = logs.concat();
        all.sort_by_key(|event| event.time);
        return all;
    }
    let mut logs: Vec<_> = logs.into_iter().map(Vec::into_iter).collect();
    order
        .iter()
        .filter_map(|&node| logs[node as usize].next())
        .collect()
}

/// What was polled, in the order of time.
fn counters(nodes: &mut [Node]) -> Vec<CounterSample> {
    let mut samples: Vec<CounterSample> = nodes.iter_mut().flat_map(Node::take_samples).collect();
    samples.sort_by_key(|sample| sample.time);
    samples
}

fn captures(plan: &Plan, nodes: &mut [Node]) -> Vec<Capture> {
    let frames = |endpoint: Endpoint, nodes: &mut [Node]| {
        let tap = nodes[endpoint.node.index()]
            .transmitter_mut(endpoint.port.index())
            .tap
            .take();
        tap.map_or(Vec::new(), |tap| tap.frames)
    };
    let ports = plan.recording.captures.iter();
    ports
        .map(|&endpoint| Capture {
            endpoint,
            frames: frames(endpoint, nodes),
        })
        .collect()
}

fn last_finish(node: &Node) -> Option<Time> {
    match &node.kind {
        Kind::Host(host) => host
            .nics
            .iter()
            .filter_map(super::host::Nic::last_finish)
            .max(),
        Kind::TcpHost(host) => host.last_finish(),
        Kind::Switch(_) | Kind::LaneSwitch(_) => None,
    }
}

fn flow_result(flow: u32, world: &World, nodes: &[Node]) -> FlowResult {
    let plan = &world.plan.flows[flow as usize];
    let record = |node: NodeId| flow_record(flow, node, nodes);
    let starter = record(NodeId(world.flows[flow as usize].starter));
    let sender = record(plan.source);
    // Who reads sends requests again, and who is read from sends data again.
    let again = |record: Option<&FlowRecord>| record.map_or(0, |record| record.retransmitted);
    let answers = plan.operation == Operation::Read;
    let receiver = record(plan.destination);
    let (received, delivered) = match receivers(flow, world) {
        None => (
            receiver.and_then(|record| record.received),
            delivered(plan, starter, receiver, world),
        ),
        Some(members) => {
            let heard = || members.iter().map(|member| record(*member));
            let bytes = heard().map(|record| record.map_or(0, |record| record.delivered));
            // The last one's time, and none while one has not heard all.
            let all: Option<Vec<Time>> = heard().map(|record| record?.received).collect();
            let last = all.and_then(|all| all.into_iter().max());
            (last, Bytes::new(bytes.min().unwrap_or(0)))
        }
    };
    FlowResult {
        start: starter.and_then(|record| record.start),
        finished: starter.and_then(|record| record.finished),
        received,
        ideal: ideal::completion_time(flow, world, nodes),
        delivered,
        status: status(starter, sender),
        retransmitted: again(starter) + if answers { again(sender) } else { 0 },
        notifications: sender.map_or(0, |record| record.notifications),
    }
}

/// How a flow ended: as the host says that started it, or, if that still waits, as the one that was to send and has given up.
fn status(starter: Option<&FlowRecord>, sender: Option<&FlowRecord>) -> FlowStatus {
    let Some(starter) = starter else {
        return FlowStatus::NotStarted;
    };
    match sender.map(|sender| &sender.status) {
        Some(failed @ FlowStatus::Failed(_)) if starter.status == FlowStatus::Unfinished => {
            failed.clone()
        }
        _ => starter.status.clone(),
    }
}

/// What a node knows of a flow.
fn flow_record(flow: u32, node: NodeId, nodes: &[Node]) -> Option<&FlowRecord> {
    match &nodes[node.index()].kind {
        Kind::Host(host) => host.nics.iter().find_map(|nic| nic.flows.record(flow)),
        Kind::TcpHost(host) => host.record(flow),
        Kind::Switch(_) | Kind::LaneSwitch(_) => None,
    }
}

/// Who hears a flow that goes to a multicast group.
fn receivers(flow: u32, world: &World) -> Option<Vec<NodeId>> {
    let flow = &world.plan.flows[flow as usize];
    let group = world.plan.group_of(flow)?;
    Some(group.receivers(flow.source).collect())
}

fn multicast_results(world: &World, nodes: &[Node]) -> Vec<MulticastResult> {
    let flows = 0..world.plan.flows.len() as u32;
    let result = |flow: u32| {
        let members = receivers(flow, world)?;
        let source = world.plan.flows[flow as usize].source;
        let member = |node: NodeId| {
            let record = flow_record(flow, node, nodes);
            MemberResult {
                node,
                packets: record.map_or(0, |record| record.datagrams),
                bytes: Bytes::new(record.map_or(0, |record| record.delivered)),
                received: record.and_then(|record| record.received),
            }
        };
        let sent = flow_record(flow, source, nodes).map_or(0, |record| record.datagrams);
        Some(MulticastResult {
            flow: FlowId(flow),
            sent,
            members: members.into_iter().map(member).collect(),
        })
    };
    flows.filter_map(result).collect()
}

/// Bytes that count as delivered. Under go-back-0 a message that is not whole starts anew at the next loss, so only whole
/// ones count.
fn delivered(
    flow: &Flow,
    starter: Option<&FlowRecord>,
    receiver: Option<&FlowRecord>,
    world: &World,
) -> Bytes {
    let profile = match world.plan.network.nodes[flow.source.index()].kind {
        NodeKind::Host { profile, .. } => &world.plan.host_profiles[profile as usize],
        NodeKind::Switch { .. } => return Bytes::ZERO,
    };
    let record = match profile.nic.loss_recovery {
        LossRecovery::GoBackZero if profile.tcp.is_none() => {
            starter.map_or(0, |record| record.acknowledged)
        }
        _ => receiver.map_or(0, |record| record.delivered),
    };
    Bytes::new(record)
}

/// All transmitters, by node and port.
fn transmitters(nodes: &[Node]) -> impl Iterator<Item = (Endpoint, &Transmitter)> {
    nodes.iter().enumerate().flat_map(|(id, node)| {
        (node.transmitters().enumerate()).map(move |(index, transmitter)| {
            let endpoint = Endpoint {
                node: NodeId(id as u32),
                port: PortId(index as u16),
            };
            (endpoint, transmitter)
        })
    })
}

fn port_results(nodes: &[Node]) -> Vec<PortResult> {
    transmitters(nodes)
        .map(|(endpoint, transmitter)| PortResult {
            endpoint,
            port: transmitter.port.clone(),
            classes: (*transmitter.classes).clone(),
        })
        .collect()
}

fn first_signals(nodes: &[Node]) -> FirstSignals {
    let first = |of: fn(&Transmitter) -> Option<Time>| {
        transmitters(nodes)
            .filter_map(|(endpoint, transmitter)| {
                let time = of(transmitter)?;
                Some(Signal { time, endpoint })
            })
            .min()
    };
    FirstSignals {
        mark: first(|transmitter| transmitter.first_mark),
        pause: first(|transmitter| transmitter.first_pause),
        drop: nodes.iter().filter_map(|node| node.losses().first).min(),
    }
}

fn device_results(nodes: &[Node]) -> Vec<DeviceResult> {
    let mut results = Vec::new();
    for (id, node) in nodes.iter().enumerate() {
        if let Kind::Host(host) = &node.kind {
            let mut counters = softfabric_telemetry::DeviceCounters::default();
            for nic in &host.nics {
                counters.merge(nic.device.counters());
            }
            results.push(DeviceResult {
                node: NodeId(id as u32),
                counters,
            });
        }
    }
    results
}

fn stack_results(nodes: &[Node]) -> Vec<StackResult> {
    let stack = |(id, node): (u32, &Node)| match &node.kind {
        Kind::TcpHost(host) => {
            let (counters, cores) = host.counters();
            Some(StackResult {
                node: NodeId(id),
                counters,
                cores,
            })
        }
        Kind::Host(_) | Kind::Switch(_) | Kind::LaneSwitch(_) => None,
    };
    (0..).zip(nodes).filter_map(stack).collect()
}

fn conservation(nodes: &[Node], ports: &[PortResult], on_wires: u64, close: Time) -> Conservation {
    let mut conservation = Conservation {
        in_flight: on_wires,
        ..Conservation::default()
    };
    for (id, node) in nodes.iter().enumerate() {
        conservation.dropped += node.losses().total;
        match &node.kind {
            Kind::Host(host) => {
                conservation.sent += host.sent;
                conservation.delivered += host.delivered;
                for fault in host.nics.iter().filter_map(|nic| nic.wire_fault.as_ref()) {
                    let fault = format!("the wire codec at node {id}: {fault}");
                    conservation.violations.push(fault);
                }
                conservation.in_flight += host
                    .nics
                    .iter()
                    .map(|nic| nic.receive.len() as u64)
                    .sum::<u64>();
            }
            Kind::TcpHost(host) => {
                conservation.sent += host.sent;
                conservation.delivered += host.delivered;
                if let Some(fault) = &host.wire_fault {
                    let fault = format!("the wire codec at node {id}: {fault}");
                    conservation.violations.push(fault);
                }
            }
            Kind::Switch(switch) => {
                conservation.in_flight += switch.queued_packets();
                if let Some(problem) = switch.audit() {
                    conservation
                        .violations
                        .push(format!("the memory of node {id}: {problem}"));
                }
                if switch.queued_packets() == 0 && switch.held() != 0 {
                    let held = switch.held();
                    conservation
                        .violations
                        .push(format!("node {id} is empty and its memory holds {held} B"));
                }
            }
            Kind::LaneSwitch(switch) => {
                conservation.in_flight += switch.queued_packets();
                conservation.copied += switch.copies();
                if let Some(problem) = switch.audit() {
                    conservation
                        .violations
                        .push(format!("the buffers of node {id}: {problem}"));
                }
            }
        }
    }
    let accounted = conservation.delivered + conservation.dropped + conservation.in_flight;
    if conservation.sent + conservation.copied != accounted {
        let (sent, copied) = (conservation.sent, conservation.copied);
        conservation.violations.push(format!(
            "{sent} packets were sent and {copied} copied, {accounted} are accounted for"
        ));
    }
    let pauses = nodes.iter().flat_map(Node::transmitters);
    for (here, sender) in ports.iter().zip(pauses) {
        let there = &ports[sender.link.wire as usize];
        conservation
            .violations
            .extend(pauses_differ(here, there, sender, close));
    }
    conservation
}

/// What `here` has sent in pauses against what `there`, the other end of the link, has counted: every pause takes
/// effect, ends and runs out when it must, to the picosecond, and no frame comes from nowhere.
fn pauses_differ(
    here: &PortResult,
    there: &PortResult,
    sender: &Transmitter,
    close: Time,
) -> Vec<String> {
    let mut violations = Vec::new();
    for class in Class::all() {
        let (sent, received) = (&here.classes[class.index()], &there.classes[class.index()]);
        let between = || format!("{:?} to {:?}, {class}", here.endpoint, there.endpoint);
        for (out, into) in [
            (ClassCounter::PauseSent, ClassCounter::PauseReceived),
            (ClassCounter::ResumeSent, ClassCounter::ResumeReceived),
        ] {
            let (sent, received) = (sent.value(out), received.value(into));
            if received > sent {
                violations.push(format!(
                    "{}: {sent} pause frames were sent, {received} received",
                    between()
                ));
            }
        }
        let paused = Span::picos(received.value(ClassCounter::PauseReceivedDuration));
        let caused = sender.pauses_caused(close, class);
        if paused != caused {
            violations.push(format!(
                "{}: pauses of {caused} were sent, and {paused} were kept",
                between()
            ));
        }
    }
    violations
}

fn series(plan: &Plan, nodes: &mut [Node]) -> TimeSeries {
    let Some(interval) = nodes.iter().find_map(|node| node.recorder()?.interval()) else {
        return TimeSeries::default();
    };
    let mut series = TimeSeries {
        origin: origin(plan),
        ..TimeSeries::default()
    };
    let endpoints: Vec<Endpoint> = match &plan.recording.ports {
        PortSelection::These(endpoints) => endpoints.clone(),
        PortSelection::Busiest => busiest(nodes, plan.link_layer.infiniband().is_some()),
    };
    for endpoint in endpoints {
        let track = nodes[endpoint.node.index()]
            .recorder()
            .and_then(|r| r.ports.get(endpoint.port.index()));
        if let Some(track) = track {
            series.ports.push(PortSeries {
                endpoint,
                queue: track.queue().series(interval),
                mean_queue: track.mean_queue().series(interval),
                paused: track.paused().series(interval),
                rate: track.rate().series(interval),
            });
        }
    }
    for (id, flow) in plan
        .flows
        .iter()
        .enumerate()
        .take(plan.recording.flow_rates as usize)
    {
        let find = |node: NodeId| {
            let recorder = nodes[node.index()].recorder()?;
            recorder
                .flows
                .iter()
                .find(|track| track.flow as usize == id)
        };
        if let (Some(sender), Some(receiver)) = (find(flow.source), find(flow.destination)) {
            series.flows.push(FlowSeries {
                flow: FlowId(id as u32),
                rate: receiver.rate().series(interval),
                allowed: sender.allowed_rates().series(interval),
            });
        }
    }
    let total = |select: fn(&super::recorder::NodeRecorder) -> &Track| {
        let mut sum = Track::default();
        for node in nodes.iter() {
            if let Some(recorder) = node.recorder() {
                sum.absorb(select(recorder));
            }
        }
        Some(sum.series(interval))
    };
    series.marks = total(|recorder| &recorder.marks);
    series.notifications = total(|recorder| &recorder.notifications);
    series.paused_queues = total(|recorder| &recorder.paused_queues);
    series.delivered = total(|recorder| &recorder.delivered).map(|bytes| {
        let rate = |bytes: &f64| bytes * 8.0 / interval.as_seconds_f64();
        Series::from_values(
            interval,
            Reduce::Mean,
            bytes.values().iter().map(rate).collect(),
        )
    });
    series
}

/// The ports on which the most happened: paused the longest (or, on InfiniBand, without credit), then filled the most;
/// those where nothing happened, not.
fn busiest(nodes: &[Node], by_credit: bool) -> Vec<Endpoint> {
    let mut scored = Vec::new();
    for (id, node) in nodes.iter().enumerate() {
        for (index, transmitter) in node.transmitters().enumerate() {
            let over_classes = |counter| {
                Class::all()
                    .map(|class| transmitter.classes[class.index()].value(counter))
                    .sum::<u64>()
            };
            let (paused, filled) = if by_credit {
                (
                    transmitter.port.value(PortCounter::TransmitWait),
                    over_classes(ClassCounter::IngressWatermark),
                )
            } else {
                (
                    over_classes(ClassCounter::PauseReceivedDuration),
                    over_classes(ClassCounter::QueueWatermark),
                )
            };
            if paused > 0 || filled > 0 {
                let endpoint = Endpoint {
                    node: NodeId(id as u32),
                    port: PortId(index as u16),
                };
                scored.push((std::cmp::Reverse((paused, filled)), endpoint));
            }
        }
    }
    scored.sort_unstable();
    let mut chosen: Vec<Endpoint> = scored
        .into_iter()
        .take(BUSIEST)
        .map(|(_, endpoint)| endpoint)
        .collect();
    chosen.sort_unstable();
    chosen
}
