//! A plan with results made by hand, for tests of outputs: eight hosts send to one, and others share the way.
//!
//! Nothing here was simulated. The figures only have the right shape.

use softfabric_fabric::plan::*;
use softfabric_fabric::results::*;
use softfabric_telemetry::{
    ClassCounter, ClassCounters, DeviceCounter, DeviceCounters, PortCounter, PortCounters, Reduce,
    Series,
};
use softfabric_transport::rate::RateControlConfig;
use softfabric_units::{Bytes, Class, ClassMask, Rate, Span, Time};

/// The index of a host.
pub(crate) const HOST: u32 = 4;
/// The index of a switch.
pub(crate) const SWITCH: u32 = 16;

const LOSSLESS: Class = Class::new(3);
const HOSTS: u32 = 16;
const LEAVES: u32 = 4;
const SPINES: u32 = 2;
const END: Time = Time::from_nanos(6_912_000);
const SAMPLES: u32 = 346;

/// A run in which all went well.
pub(crate) fn incast() -> (Plan, Results) {
    let plan = plan();
    let results = results(&plan);
    (plan, results)
}

/// The same, but that a lossless class dropped twelve packets.
pub(crate) fn lossy() -> (Plan, Results) {
    let (plan, mut results) = incast();
    results.lossless_drops = 12;
    results.conservation.dropped = 12;
    for index in 0..12 {
        results.first_lossless_drops.push(LosslessDrop {
            time: Time::from_nanos(61_000 + index * 85),
            endpoint: endpoint(SWITCH, 4 + u16::from(index % 3 == 0)),
            class: LOSSLESS,
            flow: FlowId((index % 8) as u32),
            reason: DropReason::HeadroomFull,
        });
    }
    (plan, results)
}

/// The same, but that it ended in a deadlock of three ports.
pub(crate) fn deadlocked() -> (Plan, Results) {
    let (plan, mut results) = incast();
    results.ending = Ending::Stalled;
    results.deadlock = Some(Deadlock {
        class: LOSSLESS,
        cycle: vec![endpoint(16, 4), endpoint(20, 1), endpoint(17, 5)],
        since: Time::from_nanos(1_234_567),
    });
    for flow in &mut results.flows[..8] {
        flow.finished = None;
        flow.status = FlowStatus::Unfinished;
    }
    (plan, results)
}

fn plan() -> Plan {
    let mut network = Network::default();
    for host in 0..HOSTS {
        let kind = NodeKind::Host {
            profile: 0,
            subnet: 0,
        };
        network.add_node(format!("host{host}"), kind, 0);
    }
    for leaf in 0..LEAVES {
        network.add_node(format!("leaf{leaf}"), NodeKind::Switch { profile: 0 }, 1);
    }
    for spine in 0..SPINES {
        network.add_node(format!("spine{spine}"), NodeKind::Switch { profile: 0 }, 2);
    }
    for host in 0..HOSTS {
        let leaf = NodeId(HOSTS + host / 4);
        network.connect(NodeId(host), leaf, Rate::gbps(100), Span::nanos(500));
    }
    for leaf in 0..LEAVES {
        for spine in 0..SPINES {
            let (leaf, spine) = (NodeId(HOSTS + leaf), NodeId(HOSTS + LEAVES + spine));
            network.connect(leaf, spine, Rate::gbps(400), Span::nanos(600));
        }
    }
    Plan {
        name: "incast".to_owned(),
        seed: 7,
        timing: Timing::Exact,
        link_layer: LinkLayer::Ethernet,
        routing: Routing::Shortest,
        reroute: Span::ZERO,
        network,
        switch_profiles: vec![switch_profile()],
        host_profiles: vec![host_profile()],
        flows: flows(),
        triggers: Vec::new(),
        jobs: Vec::new(),
        actions: Vec::new(),
        recording: Recording {
            interval: Some(Span::micros(20)),
            flow_rates: 8,
            ..Recording::default()
        },
        stop: Stop {
            at: Time::from_nanos(20_000_000),
            when_done: true,
        },
    }
}

fn flows() -> Vec<Flow> {
    let mut flows = Vec::new();
    for source in 4..12 {
        flows.push(flow(source, 0, 10_000_000, Time::ZERO, "incast"));
    }
    for index in 0..240u32 {
        let source = 4 + index * 7 % 12;
        let destination = if source == 5 { 6 } else { 1 + index % 3 };
        let bytes =
            [800, 2_500, 9_000, 32_000, 110_000, 420_000, 1_300_000][index as usize * 5 % 7];
        let bytes = bytes + u64::from(index * 37 % 200);
        let start = Time::from_nanos(u64::from(index) * 21_000);
        flows.push(flow(source, destination, bytes, start, "victim"));
    }
    flows
}

fn flow(source: u32, destination: u32, bytes: u64, start: Time, group: &str) -> Flow {
    Flow {
        source: NodeId(source),
        destination: NodeId(destination),
        source_nic: PortId(0),
        destination_nic: PortId(0),
        bytes: Bytes::new(bytes),
        message: None,
        operation: Operation::Write,
        start: Start::At(start),
        class: LOSSLESS,
        dscp: None,
        ecn_capable: true,
        udp_source_port: 10_000 + source as u16,
        udp_destination_port: 4791,
        path: None,
        group: group.to_owned(),
        on_sent: None,
        on_received: None,
    }
}

fn switch_profile() -> SwitchProfile {
    let class = |index: usize| ClassProfile {
        lossless: index == 3,
        ingress: IngressLimit {
            reserved: Bytes::kib(4),
            threshold: Alpha::Dynamic(-3),
            headroom: None,
            xon: Xon {
                size: Bytes::ZERO,
                offset: Some(Bytes::new(3_072)),
            },
        },
        egress: EgressLimit {
            reserved: Bytes::ZERO,
            threshold: Alpha::Unlimited,
        },
        ecn: if index == 3 {
            vec![Ecn {
                rate: None,
                kmin: Bytes::kb(400),
                kmax: Bytes::kb(1_600),
                pmax: 0.2,
                drop_not_capable: false,
            }]
        } else {
            Vec::new()
        },
        scheduling: Scheduling::Weighted(1),
    };
    SwitchProfile {
        forwarding: Forwarding::StoreAndForward,
        latency: Span::nanos(450),
        layer: Layer::Router,
        buffer: BufferProfile {
            total: Bytes::mib(32),
            cell: Bytes::new(254),
            headroom_pool: None,
            accounting: BufferAccounting::SharedBuffer,
        },
        classes: std::array::from_fn(class),
        pause: PauseProfile {
            quanta: Some(65_535),
            response_delay: Span::nanos(600),
            obeys: true,
            obeys_on_lossy: false,
        },
        watchdog: None,
        classifier: Classifier::Priority,
        maps: ClassMaps::default(),
        load_balancing: LoadBalancing::EcmpHash,
    }
}

fn host_profile() -> HostProfile {
    HostProfile {
        tcp: None,
        nic: NicProfile {
            mtu: Bytes::new(4_096),
            rate_control: RateControlConfig::None,
            window: None,
            loss_recovery: LossRecovery::GoBackN,
            notification: NotificationPoint::Cnp {
                interval: Span::micros(50),
                within: WithinInterval::Forgotten,
            },
            acknowledge_every: 1,
            acknowledgement_class: AcknowledgementClass::Explicit(Class::new(6)),
            notification_class: Class::new(6),
            arbitration: Arbitration::ControlFirst,
            timeout: 14,
            retry_count: 7,
            rnr_retry: 7,
            max_reads: 16,
        },
        addressing: Addressing::RoceV2Ipv4,
        receive: ReceivePath {
            drain: None,
            buffer: Bytes::mib(2),
            xoff: Bytes::mib(1),
            xon: Bytes::kib(512),
        },
        lossless: ClassMask::of(LOSSLESS),
        pause_quanta: Some(65_535),
        server: ServerProfile::default(),
    }
}

fn results(plan: &Plan) -> Results {
    let flows: Vec<FlowResult> = plan.flows.iter().enumerate().map(flow_result).collect();
    let ports = ports(plan);
    Results {
        ending: Ending::Completed,
        end: END,
        flows,
        ports,
        multicast: Vec::new(),
        stacks: Vec::new(),
        devices: (0..HOSTS).map(device).collect(),
        first_lossless_drops: Vec::new(),
        lossless_drops: 0,
        first_signals: FirstSignals {
            mark: Some(Signal {
                time: Time::from_nanos(12_345),
                endpoint: endpoint(SWITCH, 0),
            }),
            pause: Some(Signal {
                time: Time::from_nanos(45_000),
                endpoint: endpoint(HOST, 0),
            }),
            drop: None,
        },
        pause_log: vec![PauseEvent {
            time: Time::from_nanos(45_000),
            endpoint: endpoint(HOST, 0),
            class: LOSSLESS,
            pause: true,
        }],
        jobs: Vec::new(),
        processors: Vec::new(),
        deadlock: None,
        repairs: Vec::new(),
        counters: Vec::new(),
        series: series(),
        captures: Vec::new(),
        conservation: Conservation {
            sent: 61_234,
            delivered: 61_234,
            ..Conservation::default()
        },
        work: Work {
            link_hops: 214_319,
            events: 512_007,
            windows: 11_520,
        },
    }
}

fn flow_result((index, flow): (usize, &Flow)) -> FlowResult {
    let Start::At(start) = flow.start else {
        panic!("the sample has no triggers")
    };
    let ideal = Rate::gbps(100).time_for(flow.bytes) + Span::nanos(4_014);
    let wait = if flow.group == "incast" {
        Span::micros(5_900 + (index as u64 * 131) % 170)
    } else {
        let spread = (index as u64 * index as u64 * 7_919) % 1_000;
        Span::nanos(spread * spread * spread / 7_000)
    };
    let finished = start + ideal + wait;
    FlowResult {
        start: Some(start),
        finished: Some(finished),
        received: Some(finished - Span::nanos(2_007)),
        ideal,
        delivered: flow.bytes,
        status: FlowStatus::Completed,
        retransmitted: 0,
        notifications: if index < 8 { 40 + index as u64 } else { 0 },
    }
}

fn ports(plan: &Plan) -> Vec<PortResult> {
    let mut ports = Vec::new();
    let mut ends: Vec<Endpoint> = plan
        .network
        .links
        .iter()
        .flat_map(|link| [link.a, link.b])
        .collect();
    ends.sort_unstable();
    for (index, &end) in ends.iter().enumerate() {
        let mut port = PortCounters::default();
        let packets = 2_000 + (index as u64 * 977) % 5_000;
        port.add(PortCounter::TransmitPackets, packets);
        port.add(PortCounter::TransmitBytes, packets * 4_166);
        port.add(PortCounter::ReceivePackets, packets / 2);
        port.add(PortCounter::ReceiveBytes, packets / 2 * 4_166);
        let mut classes: [ClassCounters; Class::COUNT] = Default::default();
        let class = &mut classes[LOSSLESS.index()];
        class.add(ClassCounter::TransmitPackets, packets);
        class.add(ClassCounter::TransmitBytes, packets * 4_166);
        let node = end.node.0;
        let paused_share = match node {
            4..12 => 60 + node * 3,
            17 | 18 if end.port.0 >= 4 => 38 + u32::from(end.port.0),
            20 | 21 if end.port.0 == 0 => 22,
            _ => 0,
        };
        let paused = END.since(Time::ZERO) / 100 * u64::from(paused_share);
        let frames = u64::from(paused_share) * 9;
        class.add(ClassCounter::PauseReceived, frames);
        class.add(ClassCounter::ResumeReceived, frames);
        class.add(
            ClassCounter::PauseReceivedDuration,
            paused.as_picos() + u64::from(node) * 1_301,
        );
        class.add(ClassCounter::PauseTransitions, frames);
        port.add(PortCounter::PauseFramesReceived, frames * 2);
        if node == SWITCH && end.port.0 == 0 {
            class.add(ClassCounter::EcnMarked, 9_871);
            class.raise(ClassCounter::QueueWatermark, 3_912_000);
        } else if node >= SWITCH {
            class.raise(
                ClassCounter::QueueWatermark,
                40_000 + u64::from(node) * 31_000,
            );
            class.add(ClassCounter::EcnMarked, u64::from(paused_share) * 11);
        }
        ports.push(PortResult {
            endpoint: end,
            port,
            classes,
        });
    }
    ports
}

fn device(host: u32) -> DeviceResult {
    let mut counters = DeviceCounters::default();
    if host == 0 {
        counters.add(DeviceCounter::CnpSent, 348);
        counters.add(DeviceCounter::EcnMarkedReceived, 9_871);
    } else if (4..12).contains(&host) {
        counters.add(DeviceCounter::CnpHandled, 40 + u64::from(host));
    }
    DeviceResult {
        node: NodeId(host),
        counters,
    }
}

fn series() -> TimeSeries {
    let port = |node, port, height: f64, paused: f64| PortSeries {
        endpoint: endpoint(node, port),
        queue: curve(Reduce::Max, move |t| {
            height * bump(t) * (0.8 + 0.2 * wave(t, 17))
        }),
        mean_queue: curve(Reduce::Mean, move |t| height * bump(t) * 0.8),
        paused: curve(Reduce::Mean, move |t| {
            (paused * bump(t) * (0.6 + 0.4 * wave(t, 23))).min(1.0)
        }),
        rate: curve(Reduce::Mean, move |t| 1e11 * (1.0 - paused * bump(t))),
    };
    TimeSeries {
        origin: Time::ZERO,
        ports: vec![
            port(16, 0, 3.9e6, 0.0),
            port(17, 4, 1.2e6, 0.7),
            port(17, 5, 0.9e6, 0.6),
            port(18, 4, 1.1e6, 0.65),
            port(20, 0, 0.5e6, 0.3),
            port(4, 0, 0.0, 0.9),
        ],
        flows: (0..8)
            .map(|flow| FlowSeries {
                flow: FlowId(flow),
                rate: curve(Reduce::Mean, move |t| {
                    1.25e10 * (1.0 + 0.25 * wave(t + flow * 13, 40)) * f64::from(t < 340)
                }),
                allowed: curve(Reduce::Mean, move |t| {
                    1.4e10 * (1.0 + 0.2 * wave(t + flow * 13, 40))
                }),
            })
            .collect(),
        marks: Some(curve(Reduce::Sum, |t| {
            (60.0 * bump(t) * wave(t, 29)).round()
        })),
        notifications: Some(curve(Reduce::Sum, |t| {
            (4.0 * bump(t) * wave(t, 31)).round()
        })),
        paused_queues: Some(curve(Reduce::Mean, |t| 9.0 * bump(t))),
        delivered: Some(curve(Reduce::Mean, |t| 1.9e11 * (0.5 + 0.5 * bump(t)))),
    }
}

fn curve(reduce: Reduce, value: impl Fn(u32) -> f64) -> Series {
    let mut series = Series::new(Span::micros(20), 2_000, reduce);
    for time in 0..SAMPLES {
        series.push(value(time));
    }
    series
}

/// From 0 up to 1, along, and down again.
fn bump(time: u32) -> f64 {
    let rise = f64::from(time) / 20.0;
    let fall = f64::from(SAMPLES.saturating_sub(time + 4)) / 12.0;
    rise.min(fall).min(1.0)
}

/// A triangle between 0 and 1.
fn wave(time: u32, period: u32) -> f64 {
    let phase = f64::from(time % period) / f64::from(period);
    1.0 - (2.0 * phase - 1.0).abs()
}

fn endpoint(node: u32, port: u16) -> Endpoint {
    Endpoint {
        node: NodeId(node),
        port: PortId(port),
    }
}
