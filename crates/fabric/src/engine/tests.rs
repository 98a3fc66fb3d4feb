//! The engine as a whole: two drivers and any number of threads agree, everything is accounted for.

use softfabric_telemetry::{ClassCounter, DeviceCounter};
use softfabric_units::{Bytes, Class, ClassMask, Rate, Span, Time};

use super::*;
use crate::plan::*;
use crate::results::FlowStatus;

pub(super) const DATA: Class = Class::new(3);

/// A small fabric with everything switched on.
pub(super) fn leaf_spine(seed: u64) -> Plan {
    let mut network = Network::default();
    let leaves: Vec<_> = (0..3)
        .map(|n| network.add_node(format!("leaf{n}"), NodeKind::Switch { profile: 0 }, 1))
        .collect();
    let spines: Vec<_> = (0..2)
        .map(|n| network.add_node(format!("spine{n}"), NodeKind::Switch { profile: 0 }, 2))
        .collect();
    let mut hosts = Vec::new();
    for &leaf in &leaves {
        for _ in 0..4 {
            let name = format!("h{}", hosts.len());
            let host = network.add_node(
                name,
                NodeKind::Host {
                    profile: 0,
                    subnet: 0,
                },
                0,
            );
            network.connect(host, leaf, Rate::gbps(100), Span::nanos(500));
            hosts.push(host);
        }
        for &spine in &spines {
            network.connect(leaf, spine, Rate::gbps(200), Span::nanos(700));
        }
    }
    let mut flows = Vec::new();
    for (index, &source) in hosts.iter().enumerate() {
        for (step, destination) in [(5, 0), (7, 3), (1, index)] {
            let destination = hosts[(index * step + destination) % hosts.len()];
            if destination != source {
                flows.push(flow(
                    source,
                    destination,
                    300_000 + 1_000 * index as u64,
                    10_000 + index as u16,
                ));
            }
        }
    }
    flows[3].operation = Operation::Send;
    flows[4].operation = Operation::Read;
    flows[5].message = Some(Bytes::new(5_000));
    let trigger = TriggerId(0);
    flows[0].on_sent = Some(trigger);
    flows[1].on_received = Some(trigger);
    flows[2].start = Start::After(trigger, Span::micros(3));
    Plan {
        name: "small".to_owned(),
        seed,
        timing: Timing::Exact,
        network,
        link_layer: LinkLayer::Ethernet,
        routing: Routing::Shortest,
        reroute: Span::ZERO,
        switch_profiles: vec![switch_profile()],
        host_profiles: vec![host_profile()],
        flows,
        triggers: vec![Trigger {
            count: 2,
            repeat: false,
        }],
        jobs: Vec::new(),
        actions: Vec::new(),
        recording: Recording {
            interval: Some(Span::micros(1)),
            flow_rates: 4,
            pause_log: true,
            check_wire: true,
            ..Recording::default()
        },
        stop: Stop {
            at: Time::ZERO + Span::millis(50),
            when_done: true,
        },
    }
}

pub(super) fn flow(source: NodeId, destination: NodeId, bytes: u64, port: u16) -> Flow {
    Flow {
        source,
        destination,
        source_nic: PortId(0),
        destination_nic: PortId(0),
        bytes: Bytes::new(bytes),
        message: None,
        operation: Operation::Write,
        start: Start::At(Time::from_nanos(100)),
        class: DATA,
        dscp: None,
        ecn_capable: true,
        udp_source_port: port,
        udp_destination_port: 4791,
        path: None,
        group: "all".to_owned(),
        on_sent: None,
        on_received: None,
    }
}

pub(super) fn switch_profile() -> SwitchProfile {
    let class = |class: usize| ClassProfile {
        lossless: class == DATA.index(),
        ingress: IngressLimit {
            reserved: Bytes::new(2_000),
            threshold: Alpha::Dynamic(-4),
            headroom: None,
            xon: Xon {
                size: Bytes::ZERO,
                offset: Some(Bytes::kb(4)),
            },
        },
        egress: EgressLimit {
            reserved: Bytes::ZERO,
            threshold: if class == DATA.index() {
                Alpha::Unlimited
            } else {
                Alpha::Dynamic(0)
            },
        },
        ecn: vec![Ecn {
            rate: None,
            kmin: Bytes::kb(20),
            kmax: Bytes::kb(80),
            pmax: 0.2,
            drop_not_capable: false,
        }],
        scheduling: if class == 6 {
            Scheduling::Strict
        } else {
            Scheduling::Weighted(1)
        },
    };
    SwitchProfile {
        forwarding: Forwarding::StoreAndForward,
        latency: Span::nanos(300),
        layer: Layer::Router,
        buffer: BufferProfile {
            total: Bytes::kb(2_300),
            cell: Bytes::new(208),
            headroom_pool: None,
            accounting: BufferAccounting::SharedBuffer,
        },
        classes: std::array::from_fn(class),
        pause: PauseProfile {
            quanta: None,
            response_delay: Span::nanos(100),
            obeys: true,
            obeys_on_lossy: false,
        },
        watchdog: None,
        classifier: Classifier::Priority,
        maps: ClassMaps::default(),
        load_balancing: LoadBalancing::EcmpHash,
    }
}

pub(super) fn host_profile() -> HostProfile {
    HostProfile {
        tcp: None,
        nic: NicProfile {
            mtu: Bytes::new(1024),
            rate_control: softfabric_transport::rate::RateControlConfig::DcqcnNic(
                softfabric_transport::rate::DcqcnNicParameters::hpcc(Rate::gbps(100)),
            ),
            window: None,
            loss_recovery: LossRecovery::GoBackN,
            notification: NotificationPoint::Cnp {
                interval: Span::micros(10),
                within: WithinInterval::Forgotten,
            },
            acknowledge_every: 4,
            acknowledgement_class: AcknowledgementClass::Request,
            notification_class: Class::new(6),
            arbitration: Arbitration::ControlFirst,
            timeout: 14,
            retry_count: 7,
            rnr_retry: 7,
            max_reads: 4,
        },
        addressing: Addressing::RoceV2Ipv4,
        receive: ReceivePath {
            drain: None,
            buffer: Bytes::mib(1),
            xoff: Bytes::kib(256),
            xon: Bytes::kib(128),
        },
        lossless: ClassMask::of(DATA),
        pause_quanta: None,
        server: ServerProfile::default(),
    }
}

fn outcome(plan: &Plan, threads: usize, driver: Driver) -> Results {
    let results = run(
        plan,
        &mut RunOptions {
            threads,
            driver,
            ..RunOptions::default()
        },
    )
    .expect("a sound plan");
    assert_eq!(
        results.conservation.violations,
        Vec::<String>::new(),
        "seed {}",
        plan.seed
    );
    results
}

fn class_total(results: &Results, counter: ClassCounter) -> u64 {
    results
        .ports
        .iter()
        .flat_map(|port| &port.classes)
        .map(|class| class.value(counter))
        .sum()
}

/// What must be equal however a plan is run: everything but the number of windows.
fn comparable(mut results: Results) -> Results {
    results.work.windows = 0;
    results
}

#[test]
fn a_small_fabric_works_and_everything_happens_in_it() {
    let plan = leaf_spine(1);
    let results = outcome(&plan, 1, Driver::Automatic);
    assert_eq!(results.ending, Ending::Completed);
    for (flow, result) in plan.flows.iter().zip(&results.flows) {
        assert_eq!(result.status, FlowStatus::Completed);
        assert_eq!(result.delivered, flow.bytes);
        assert!(result.received <= result.finished);
        assert!(
            result.completion_time() >= Some(result.ideal),
            "{:?} {:?}",
            result.completion_time(),
            result.ideal
        );
    }
    let trigger_at = results.flows[0].finished.max(results.flows[1].received);
    assert!(results.flows[2].start >= trigger_at.map(|time| time + Span::micros(3)));
    assert_eq!(
        (results.lossless_drops, results.conservation.dropped),
        (0, 0)
    );
    for counter in [
        ClassCounter::EcnMarked,
        ClassCounter::PauseReceived,
        ClassCounter::PauseReceivedDuration,
    ] {
        assert!(class_total(&results, counter) > 0, "{counter:?}");
    }
    let device = |counter| {
        results
            .devices
            .iter()
            .map(|device| device.counters.value(counter))
            .sum::<u64>()
    };
    assert!(device(DeviceCounter::CnpSent) > 0 && device(DeviceCounter::CnpHandled) > 0);
    assert_eq!(
        results
            .flows
            .iter()
            .map(|flow| flow.retransmitted)
            .sum::<u64>(),
        0
    );
}

#[test]
fn threads_and_drivers_agree_to_the_bit() {
    for seed in 0..6 {
        let mut plan = leaf_spine(seed);
        plan.switch_profiles[0].load_balancing = [
            LoadBalancing::EcmpHash,
            LoadBalancing::SprayRandom,
            LoadBalancing::SprayRoundRobin,
            LoadBalancing::Adaptive,
        ][seed as usize % 4];
        plan.network.links[2].packet_error_rate = if seed % 2 == 0 { 0.01 } else { 0.0 };
        let alone = comparable(outcome(&plan, 1, Driver::Automatic));
        for threads in [2, 3, 5] {
            let together = comparable(outcome(&plan, threads, Driver::Automatic));
            assert_same(
                &together,
                &alone,
                &format!("{threads} threads, seed {seed}"),
            );
        }
        let mut sequential = comparable(outcome(&plan, 1, Driver::Sequential));
        // The window driver ends with its window; the sequential one with the last event.
        sequential.work.events = alone.work.events;
        assert_same(&sequential, &alone, &format!("one by one, seed {seed}"));
    }
}

/// Compares results piece by piece, so that a failure names the piece and not a page of numbers.
fn assert_same(found: &Results, expected: &Results, what: &str) {
    for (flow, (found, expected)) in found.flows.iter().zip(&expected.flows).enumerate() {
        assert_eq!(found, expected, "{what}: flow {flow}");
    }
    for (found, expected) in found.ports.iter().zip(&expected.ports) {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(found.devices, expected.devices, "{what}");
    assert_eq!(found.pause_log, expected.pause_log, "{what}");
    assert_eq!(
        (found.ending, found.end, found.work),
        (expected.ending, expected.end, expected.work),
        "{what}"
    );
    assert!(found.series == expected.series, "{what}: series differ");
    assert!(found == expected, "{what}");
}

#[test]
fn another_seed_is_another_run() {
    let (one, two) = (
        outcome(&leaf_spine(1), 1, Driver::Automatic),
        outcome(&leaf_spine(2), 1, Driver::Automatic),
    );
    assert_ne!(one.flows, two.flows);
}

#[test]
fn pause_time_is_the_same_at_both_ends_of_a_link() {
    let plan = leaf_spine(3);
    let results = outcome(&plan, 1, Driver::Automatic);
    let at = |end: Endpoint| {
        results
            .ports
            .iter()
            .find(|port| port.endpoint == end)
            .expect("every port has counters")
    };
    let mut compared = 0;
    for link in &plan.network.links {
        for (from, to) in [(link.a, link.b), (link.b, link.a)] {
            let (sender, receiver) = (
                &at(from).classes[DATA.index()],
                &at(to).classes[DATA.index()],
            );
            assert_eq!(
                sender.value(ClassCounter::PauseSent),
                receiver.value(ClassCounter::PauseReceived)
            );
            assert_eq!(
                sender.value(ClassCounter::ResumeSent),
                receiver.value(ClassCounter::ResumeReceived)
            );
            let sent = sender.value(ClassCounter::PauseSentDuration);
            // Each pause and its resume take the same way, so the time between them is the same at both ends.
            assert_eq!(sent, receiver.value(ClassCounter::PauseReceivedDuration));
            compared += u64::from(sent > 0);
        }
    }
    assert!(compared > 0, "nothing was paused");
}

#[test]
fn a_flow_alone_takes_the_ideal_time() {
    for operation in [Operation::Write, Operation::Send, Operation::Read] {
        for bytes in [1, 64, 1024, 1025, 100_000, 1_000_000] {
            for message in [None, Some(Bytes::new(10_000))] {
                let mut plan = leaf_spine(1);
                plan.flows.truncate(1);
                plan.flows[0].operation = operation;
                plan.flows[0].bytes = Bytes::new(bytes);
                plan.flows[0].message = message;
                plan.flows[0].on_sent = None;
                plan.triggers.clear();
                plan.host_profiles[0].nic.max_reads = 16;
                let results = outcome(&plan, 1, Driver::Automatic);
                let flow = &results.flows[0];
                assert_eq!(
                    flow.completion_time(),
                    Some(flow.ideal),
                    "{operation:?} of {bytes} B in {message:?}"
                );
            }
        }
    }
}

#[test]
fn a_link_that_fails_and_comes_back_costs_time_and_no_flow() {
    for threads in [1, 3] {
        let mut plan = leaf_spine(4);
        let uplink = plan.network.links.iter().position(|link| {
            [link.a, link.b].iter().all(|end| {
                matches!(
                    plan.network.nodes[end.node.index()].kind,
                    NodeKind::Switch { .. }
                )
            })
        });
        let link = LinkId(uplink.expect("leaves have uplinks") as u32);
        plan.actions = vec![
            TimedAction {
                at: Time::from_nanos(20_000),
                action: Action::LinkDown(link),
            },
            TimedAction {
                at: Time::from_nanos(60_000),
                action: Action::LinkUp(link),
            },
        ];
        let results = outcome(&plan, threads, Driver::Automatic);
        assert_eq!(results.ending, Ending::Completed);
        assert!(
            results.conservation.dropped > 0,
            "packets on the link were lost"
        );
        assert!(
            results
                .flows
                .iter()
                .all(|flow| flow.status == FlowStatus::Completed)
        );
        assert!(
            results
                .flows
                .iter()
                .map(|flow| flow.retransmitted)
                .sum::<u64>()
                > 0
        );
        assert_eq!(results.lossless_drops, 0, "a failed link is not congestion");
        let one_by_one = comparable(outcome(&plan, 1, Driver::Sequential));
        assert_eq!(one_by_one.flows, results.flows);
    }
}

#[test]
fn captures_hold_data_and_pause_frames() {
    let mut plan = leaf_spine(1);
    let port = Endpoint {
        node: plan.network.links[0].a.node,
        port: PortId(0),
    };
    plan.recording.captures = vec![port];
    let results = outcome(&plan, 1, Driver::Automatic);
    let frames = &results.captures[0].frames;
    assert!(frames.is_sorted_by_key(|frame| frame.time));
    let counters = &results
        .ports
        .iter()
        .find(|result| result.endpoint == port)
        .expect("the port")
        .port;
    use softfabric_telemetry::PortCounter::*;
    let expected = [
        TransmitPackets,
        ReceivePackets,
        PauseFramesSent,
        PauseFramesReceived,
    ];
    assert_eq!(
        frames.len() as u64,
        expected
            .iter()
            .map(|&counter| counters.value(counter))
            .sum::<u64>()
    );
    assert!(frames.iter().all(|frame| softfabric_wire::Frame::decode(&frame.bytes).is_ok() || frame.length > 256));
}

/// One flow's end starts two others at once, or, repeated, one at each of two ends.
#[test]
fn triggers_start_all_at_once_or_one_by_one() {
    for repeat in [false, true] {
        let mut plan = leaf_spine(1);
        plan.flows.truncate(4);
        for flow in &mut plan.flows {
            flow.operation = Operation::Write;
            flow.on_sent = None;
            flow.on_received = None;
            flow.start = Start::At(Time::from_nanos(100));
        }
        let trigger = TriggerId(0);
        plan.flows[0].on_sent = Some(trigger);
        plan.flows[1].on_sent = Some(trigger);
        plan.flows[2].start = Start::After(trigger, Span::ZERO);
        plan.flows[3].start = Start::After(trigger, Span::ZERO);
        plan.triggers = vec![Trigger { count: 1, repeat }];
        let results = outcome(&plan, 1, Driver::Automatic);
        let mut ends = [results.flows[0].finished, results.flows[1].finished];
        ends.sort_unstable();
        let [second, third] = [results.flows[2].start, results.flows[3].start];
        assert!(second >= ends[0] && second < ends[1], "at the first end");
        if repeat {
            assert!(third >= ends[1], "at the second end");
        } else {
            assert_eq!(third, second);
        }
        assert_eq!(results.ending, Ending::Completed);
    }
}
