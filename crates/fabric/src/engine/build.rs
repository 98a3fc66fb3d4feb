//! From a plan to nodes that can run.

use std::sync::atomic::AtomicU64;

use softfabric_transport as transport;
use softfabric_transport::rate::RateControlConfig;
use softfabric_transport::{AckTimeout, FrameSizing, Mtu, RnrRetry};
use softfabric_units::{Bytes, Class, PartitionKey, Random, Rate, Span, Time};

use super::capture::Tap;
use super::frame::PauseRequest;
use super::host::{Host, HostLanes, Nic, NicSetup, QueuePairSettings};
use super::infiniband::{Congestion, Credits, LaneSwitch, Tables};
use super::link::{ErrorModel, OutLink};
use super::node::{Kind, Node};
use super::port::Transmitter;
use super::program::{Streams, programs};
use super::recorder::{FlowTrack, NodeRecorder};
use super::routing::{HpccTuple, Routes, destinations, entropy, hpcc_ip};
use super::switch::{PortShape, Switch};
use super::tcp::TcpHost;
use super::world::{FixedHops, FlowAddress, FrameSizes, World};
use crate::plan::{
    AcknowledgementClass, Arbitration, Endpoint, Flow, Forwarding, HostProfile, Infiniband, LinkId,
    LinkLayer, LossRecovery, NicProfile, NodeId, NodeKind, NotificationPoint, Operation, Plan,
    PortId, SMALLEST_FRAME, Start, SwitchProfile, Timing,
};

/// The random stream of a link's errors in one direction; nodes use the streams below 2³².
pub(crate) fn error_stream(link: LinkId, side: usize) -> u64 {
    1 << 32 | u64::from(link.0) << 1 | side as u64
}

/// The host whose work requests move a flow.
pub(crate) fn starter(flow: &Flow) -> NodeId {
    if flow.operation == Operation::Read {
        flow.destination
    } else {
        flow.source
    }
}

/// The class of the NIC in which unpaused acknowledgements leave: nothing else uses it there.
const UNPAUSED: Class = Class::new(7);
/// What InfiniBand adds to transport header and payload within a subnet: LRH, ICRC, VCRC (IBTA vol. 1, 6.1).
const INFINIBAND_OVERHEAD: Bytes = Bytes::new(8 + 4 + 2);
/// Networks up to this many nodes have time series.
const RECORDED_NODES: usize = 4096;

/// Makes the world and all nodes of a plan; `tables` are those of an InfiniBand network's routes.
pub(crate) fn build(plan: &Plan, tables: Option<Tables>) -> (World<'_>, Vec<Node>) {
    let sizes = FrameSizes::of(plan.timing, &plan.link_layer);
    let mut transmitters = transmitters(plan);
    let lookahead = transmitters
        .iter()
        .flatten()
        .map(|(transmitter, _)| transmitter.link.lookahead(sizes.smallest, sizes.pause))
        .min()
        .unwrap_or(Span::micros(1));
    let host_rate = plan
        .network
        .hosts()
        .find_map(|host| {
            transmitters[host.index()]
                .first()
                .map(|(transmitter, _)| transmitter.link.rate)
        })
        .unwrap_or(Rate::gbps(100));
    let up = vec![true; plan.network.links.len()];
    let (mut programs, busy_ranks) = programs(plan);
    let world = World {
        plan,
        routes: match tables {
            Some(_) => Routes::default(),
            None => Routes::compute(plan, &up),
        },
        tables,
        keys: partition_keys(plan),
        fixed_hops: FixedHops::new(plan),
        flows: addresses(plan),
        streams: Streams::of(plan),
        sizes,
        lookahead: lookahead.max(Span::picos(1)),
        host_rate,
        flows_left: AtomicU64::new(plan.flows.len() as u64 + busy_ranks),
    };
    let mut nodes = Vec::with_capacity(plan.network.nodes.len());
    for id in plan.network.ids() {
        let ports = std::mem::take(&mut transmitters[id.index()]);
        let kind = match plan.network.nodes[id.index()].kind {
            NodeKind::Switch { profile } => match &plan.link_layer {
                LinkLayer::Ethernet => {
                    let profile = &plan.switch_profiles[profile as usize];
                    Kind::Switch(Box::new(switch(id, profile, ports, &world)))
                }
                LinkLayer::Infiniband(settings) => {
                    let switch_profile = &settings.switches[profile as usize];
                    let transmitters = ports.into_iter().map(|(transmitter, _)| transmitter);
                    let mut switch = LaneSwitch::new(id, switch_profile, transmitters.collect());
                    if let Some(tables) = &world.tables {
                        switch.program(tables, &switch_profile.lanes);
                    }
                    let at_host = at_host(&switch, plan);
                    switch.limit_lives(&switch_profile.life, &at_host);
                    if let (Some(partitions), Some(keys)) = (&settings.partitions, &world.keys) {
                        switch.guard(partitions, keys, &at_host);
                    }
                    switch.congestion = congestion(id, profile, settings, &at_host, plan);
                    Kind::LaneSwitch(Box::new(switch))
                }
            },
            NodeKind::Host { profile, .. } => {
                let profile = &plan.host_profiles[profile as usize];
                let ports = ports.into_iter().map(|(transmitter, _)| transmitter);
                match profile.tcp {
                    Some(stack) => {
                        let mut host = TcpHost::new(id, ports.collect(), stack, profile);
                        host.program = programs.remove(&id).map(Box::new);
                        Kind::TcpHost(Box::new(host))
                    }
                    None => {
                        let nics = ports.map(|transmitter| {
                            let mut nic = nic(profile, transmitter, plan);
                            if let (Some(lanes), Some(keys)) = (&mut nic.lanes, &world.keys) {
                                lanes.keys = Some(keys[id.index()].clone().into());
                            }
                            nic
                        });
                        let mut host = Host::new(id, nics.collect());
                        host.program = programs.remove(&id).map(Box::new);
                        Kind::Host(Box::new(host))
                    }
                }
            }
        };
        nodes.push(kind);
    }
    grant_credits(&mut nodes);
    attach_recorders(plan, &mut nodes);
    let mut nodes: Vec<Node> = nodes.into_iter().map(Node::new).collect();
    if let Some(interval) = plan.recording.counters {
        for (id, node) in plan.network.ids().zip(&mut nodes) {
            node.poll_counters(id, origin(plan), interval);
        }
    }
    for end in &plan.recording.captures {
        let tap = Box::new(Tap::new(end.node));
        nodes[end.node.index()]
            .transmitter_mut(end.port.index())
            .tap = Some(tap);
    }
    (world, nodes)
}

/// The transmitters of each node in the order of its ports, with their link.
fn transmitters(plan: &Plan) -> Vec<Vec<(Transmitter, LinkId)>> {
    let network = &plan.network;
    let mut counts = vec![0u32; network.nodes.len()];
    for end in network.links.iter().flat_map(|link| [link.a, link.b]) {
        let count = &mut counts[end.node.index()];
        *count = (*count).max(u32::from(end.port.0) + 1);
    }
    let mut first = vec![0u32; network.nodes.len()];
    for node in 1..network.nodes.len() {
        first[node] = first[node - 1] + counts[node - 1];
    }
    // A switch cuts through only if no port is faster than the one a packet comes in by: it would run dry.
    let mut fastest = vec![Rate::ZERO; network.nodes.len()];
    for link in &network.links {
        for end in [link.a, link.b] {
            let node = &mut fastest[end.node.index()];
            *node = link.rate.max(*node);
        }
    }
    let mut ports: Vec<Vec<Option<(Transmitter, LinkId)>>> = counts
        .iter()
        .map(|&count| (0..count).map(|_| None).collect())
        .collect();
    for (index, link) in network.links.iter().enumerate() {
        for (side, (from, to)) in [(link.a, link.b), (link.b, link.a)].into_iter().enumerate() {
            let wire = first[to.node.index()] + u32::from(to.port.0);
            let mut out = OutLink::new(wire, to.node.0, link.rate, link.delay, plan.timing);
            match network.nodes[to.node.index()].kind {
                NodeKind::Host { profile, .. } => {
                    out.pause_obeyed = plan.host_profiles[profile as usize].lossless;
                }
                NodeKind::Switch { profile } => {
                    let (forwarding, latency) = match &plan.link_layer {
                        LinkLayer::Ethernet => {
                            let profile = &plan.switch_profiles[profile as usize];
                            out.pause_obeyed = profile.obeyed();
                            out.pause_response = profile.pause.response_delay;
                            (profile.forwarding, profile.latency)
                        }
                        LinkLayer::Infiniband(settings) => {
                            let profile = &settings.switches[profile as usize];
                            (profile.forwarding, profile.latency)
                        }
                    };
                    out.packet_delay += latency;
                    out.cut_through = match forwarding {
                        Forwarding::CutThrough { header }
                            if link.rate >= fastest[to.node.index()] =>
                        {
                            Some(header.as_u64() as u32)
                        }
                        _ => None,
                    };
                }
            }
            if plan.link_layer != LinkLayer::Ethernet {
                out = out.without_gap();
            }
            if link.bit_error_rate > 0.0 || link.packet_error_rate > 0.0 {
                out.errors = Some(Box::new(ErrorModel {
                    bit_error_rate: link.bit_error_rate,
                    packet_error_rate: link.packet_error_rate,
                    random: Random::stream(plan.seed, error_stream(LinkId(index as u32), side)),
                }));
            }
            ports[from.node.index()][from.port.index()] =
                Some((Transmitter::new(out), LinkId(index as u32)));
        }
    }
    // `Plan::check` has seen to it that ports have no gaps.
    ports
        .into_iter()
        .map(|node| node.into_iter().flatten().collect())
        .collect()
}

fn switch(
    id: NodeId,
    profile: &SwitchProfile,
    ports: Vec<(Transmitter, LinkId)>,
    world: &World,
) -> Switch {
    let shape = |link: LinkId| {
        let link = &world.plan.network.links[link.0 as usize];
        PortShape {
            rate: link.rate,
            delay: link.delay,
            headroom: world.plan.needed_headroom(profile, link).as_u64(),
        }
    };
    let shapes: Vec<PortShape> = ports.iter().map(|(_, link)| shape(*link)).collect();
    let transmitters = ports
        .into_iter()
        .map(|(transmitter, _)| transmitter)
        .collect();
    Switch::new(
        id,
        profile,
        transmitters,
        &shapes,
        world.host_rate,
        world.plan.seed,
    )
}

/// What marks the packets of an InfiniBand switch whose profile has this index.
fn congestion(
    id: NodeId,
    profile: u32,
    settings: &Infiniband,
    at_host: &[bool],
    plan: &Plan,
) -> Option<Box<Congestion>> {
    let setting = settings
        .congestion
        .as_ref()?
        .switches
        .get(profile as usize)?;
    let lanes = &settings.switches[profile as usize].lanes;
    Congestion::new(id, setting, lanes, at_host, plan.seed)
}

/// By node: the keys of partitions that its port holds.
fn partition_keys(plan: &Plan) -> Option<Vec<Vec<PartitionKey>>> {
    let partitions = plan.link_layer.infiniband()?.partitions.as_ref()?;
    let nodes = &plan.network.nodes;
    let is_host = |node: NodeId| matches!(nodes[node.index()].kind, NodeKind::Host { .. });
    Some(partitions.keys(nodes.len(), is_host))
}

/// By port of a switch: whether it leads to a host.
fn at_host(switch: &LaneSwitch, plan: &Plan) -> Vec<bool> {
    let is_host = |node: u32| {
        matches!(
            plan.network.nodes[node as usize].kind,
            NodeKind::Host { .. }
        )
    };
    let ports = switch.ports.iter();
    ports
        .map(|port| is_host(port.transmitter.link.receiver))
        .collect()
}

/// Before anything runs, each end of an InfiniBand link knows what the other has room for.
fn grant_credits(nodes: &mut [Kind]) {
    let mut limits: Vec<Vec<u16>> = Vec::new();
    let credits = |kind: &mut Kind, act: &mut dyn FnMut(u32, &mut Credits)| match kind {
        Kind::Host(host) => host.nics.iter_mut().for_each(|nic| {
            if let Some(lanes) = &mut nic.lanes {
                act(nic.transmitter.link.wire, &mut lanes.credits);
            }
        }),
        Kind::LaneSwitch(switch) => switch
            .ports
            .iter_mut()
            .for_each(|port| act(port.transmitter.link.wire, &mut port.credits)),
        Kind::Switch(_) | Kind::TcpHost(_) => {}
    };
    for kind in &mut *nodes {
        credits(kind, &mut |_, credits| {
            limits.push(credits.limits().collect());
        });
    }
    for kind in nodes {
        credits(kind, &mut |wire, credits| {
            for (lane, &limit) in (0..).zip(&limits[wire as usize]) {
                credits.granted(lane, limit);
            }
        });
    }
}

fn nic(profile: &HostProfile, transmitter: Transmitter, plan: &Plan) -> Nic {
    let (settings, timing) = (&profile.nic, plan.timing);
    let infiniband = plan.link_layer.infiniband();
    let sizing = match timing {
        Timing::Exact if infiniband.is_some() => FrameSizing::Overhead(INFINIBAND_OVERHEAD),
        Timing::Exact => FrameSizing::Overhead(profile.addressing.overhead()),
        Timing::Hpcc => FrameSizing::Fixed {
            data: Bytes::new(48),
            control: Bytes::new(60),
        },
    };
    let unpaused = (settings.acknowledgement_class == AcknowledgementClass::RequestUnpausedAtHost)
        .then_some(UNPAUSED);
    let mut config = device_config(settings, transmitter.link.rate, sizing, timing);
    let controlled = infiniband.is_some_and(|infiniband| infiniband.congestion.is_some());
    if infiniband.is_some() {
        // Whatever answers a packet goes by its lane.
        config.notification_class = transport::ClassChoice::Same;
    }
    if controlled && settings.notification == NotificationPoint::Off {
        config.notification = transport::NotificationPoint::Becn;
    }
    // A write with immediate data has 32 bytes of transport headers in its longest packet: BTH, RETH, immediate data. A
    // datagram to a group has 20, and a global route header of 40.
    let groups = infiniband.is_some_and(|infiniband| !infiniband.multicast.is_empty());
    let headers = if groups { 20 + 40 } else { 32 };
    let longest = settings.mtu.as_u64() + INFINIBAND_OVERHEAD.as_u64() + headers;
    let lanes = infiniband.map(|infiniband| Box::new(HostLanes::new(infiniband, longest as u32)));
    Nic::new(NicSetup {
        lanes,
        config,
        receive: profile.receive,
        lossless: profile.lossless,
        pause_request: profile
            .pause_quanta
            .map_or(PauseRequest::UntilResume, PauseRequest::Quanta),
        unpaused_acknowledgements: unpaused,
        addressing: profile.addressing,
        queue_pairs: QueuePairSettings {
            mtu: mtu(settings.mtu),
            timeout: AckTimeout::from_code(settings.timeout),
            retry_count: settings.retry_count,
            rnr_retry: RnrRetry::new(settings.rnr_retry),
            max_reads: settings.max_reads,
            window: settings.window,
            reacts: settings.rate_control == RateControlConfig::None,
            sizing,
            smallest: match timing {
                Timing::Exact if infiniband.is_some() => Bytes::new(1),
                Timing::Exact => SMALLEST_FRAME,
                Timing::Hpcc => Bytes::new(1),
            },
        },
        transmitter,
    })
}

fn mtu(bytes: Bytes) -> Mtu {
    Mtu::custom(bytes.as_u64().clamp(1, 9000) as u16).unwrap_or(Mtu::BYTES_1024)
}

fn device_config(
    nic: &NicProfile,
    rate: Rate,
    sizing: FrameSizing,
    timing: Timing,
) -> transport::DeviceConfig {
    let mut config = transport::DeviceConfig::new(rate);
    config.rate_control = nic.rate_control;
    config.pacing = transport::Pacing {
        sizing,
        rounding: match timing {
            Timing::Exact => transport::PaceRounding::Exact,
            Timing::Hpcc => transport::PaceRounding::WholeNanoseconds,
        },
        rate_change: transport::RateChange::FromNextPacket,
    };
    config.acknowledgement.coalescing = match nic.acknowledge_every {
        0 | 1 => transport::Coalescing::EveryPacket,
        packets => transport::Coalescing::AtMost(packets.min(u32::from(u16::MAX)) as u16),
    };
    config.acknowledgement.class = match nic.acknowledgement_class {
        AcknowledgementClass::Request => transport::ClassChoice::Same,
        AcknowledgementClass::Explicit(class) => transport::ClassChoice::Explicit(class),
        AcknowledgementClass::RequestUnpausedAtHost => transport::ClassChoice::Explicit(UNPAUSED),
    };
    if timing == Timing::Hpcc {
        config.acknowledgement.duplicates = false;
        config.acknowledgement.nak_interval = Some(Span::micros(500));
    }
    config.notification = match nic.notification {
        NotificationPoint::Off => transport::NotificationPoint::Off,
        NotificationPoint::Cnp { interval, within } => transport::NotificationPoint::Cnp {
            interval,
            scope: transport::NotificationScope::QueuePair,
            within,
        },
        NotificationPoint::OnAcknowledgement => transport::NotificationPoint::OnAcknowledge,
    };
    config.notification_class = transport::ClassChoice::Explicit(nic.notification_class);
    config.recovery = match nic.loss_recovery {
        LossRecovery::GoBackN => transport::LossRecovery::GoBackN,
        LossRecovery::GoBackZero => transport::LossRecovery::GoBack0,
        LossRecovery::SelectiveRepeat { cap } => {
            transport::LossRecovery::SelectiveRepeat { bdp_cap: cap }
        }
    };
    config.arbitration.responses = match nic.arbitration {
        Arbitration::ControlFirst => transport::ResponseOrder::First,
        Arbitration::RoundRobin => transport::ResponseOrder::InTurn,
    };
    config
}

fn addresses(plan: &Plan) -> Vec<FlowAddress> {
    let ends = destinations(&plan.network);
    let index = |node: NodeId, port: PortId| {
        ends.partition_point(|end: &Endpoint| *end < Endpoint { node, port }) as u32
    };
    plan.flows
        .iter()
        .map(|flow| {
            let ports =
                u32::from(flow.udp_source_port) | u32::from(flow.udp_destination_port) << 16;
            FlowAddress {
                source: index(flow.source, flow.source_nic),
                destination: index(flow.destination, flow.destination_nic),
                starter: starter(flow).0,
                starting_port: match flow.operation {
                    Operation::Read => flow.destination_nic.0,
                    Operation::Write | Operation::Send | Operation::Multicast(_) => {
                        flow.source_nic.0
                    }
                },
                entropy: entropy(flow.source.0, flow.destination.0, ports),
                reverse_entropy: entropy(flow.destination.0, flow.source.0, ports),
                tuple: HpccTuple {
                    source_ip: hpcc_ip(flow.source.0),
                    destination_ip: hpcc_ip(flow.destination.0),
                    ports,
                },
            }
        })
        .collect()
}

/// When the first flow starts: where time series begin.
pub(crate) fn origin(plan: &Plan) -> Time {
    let starts = plan.flows.iter().filter_map(|flow| match flow.start {
        Start::At(time) => Some(time),
        Start::After(..) | Start::Fed(..) => None,
    });
    starts
        .chain(plan.jobs.iter().map(|job| job.start))
        .min()
        .unwrap_or(Time::ZERO)
}

fn attach_recorders(plan: &Plan, nodes: &mut [Kind]) {
    let recording = &plan.recording;
    let interval = recording.interval.filter(|_| nodes.len() <= RECORDED_NODES);
    if interval.is_none() && !recording.pause_log {
        return;
    }
    let origin = origin(plan);
    for (id, kind) in nodes.iter_mut().enumerate() {
        let (ports, recorder) = match kind {
            Kind::LaneSwitch(switch) => (switch.ports.len(), &mut switch.recorder),
            Kind::Switch(switch) => (switch.ports.len(), &mut switch.recorder),
            Kind::TcpHost(host) => (host.ports.len(), &mut host.recorder),
            Kind::Host(host) => (host.nics.len(), &mut host.recorder),
        };
        *recorder = Some(NodeRecorder::new(
            id as u32,
            ports,
            interval,
            origin,
            recording.pause_log,
        ));
    }
    if interval.is_some() {
        for (id, flow) in plan
            .flows
            .iter()
            .enumerate()
            .take(recording.flow_rates as usize)
        {
            for node in [flow.source, flow.destination] {
                let recorder = match &mut nodes[node.index()] {
                    Kind::Host(host) => &mut host.recorder,
                    Kind::TcpHost(host) => &mut host.recorder,
                    Kind::Switch(_) | Kind::LaneSwitch(_) => continue,
                };
                if let Some(recorder) = recorder {
                    recorder.flows.push(FlowTrack::new(id as u32));
                }
            }
        }
    }
}
