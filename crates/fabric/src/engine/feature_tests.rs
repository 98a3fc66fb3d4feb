//! One feature of switches, links and hosts at a time, each with the figure that arithmetic gives.

use softfabric_telemetry::{ClassCounter, DeviceCounter, PortCounter};
use softfabric_units::{Bytes, Class, ClassMask, Rate, Span, Time};

use super::tests::{DATA, flow, host_profile, switch_profile};
use super::*;
use crate::plan::*;
use crate::results::FlowStatus;

/// `hosts` hosts at 100 Gb/s around one switch; host 0 is the receiver.
pub(super) fn star(hosts: u32) -> Plan {
    let mut network = Network::default();
    let switch = network.add_node("s0", NodeKind::Switch { profile: 0 }, 1);
    for index in 0..hosts {
        let kind = NodeKind::Host {
            profile: 0,
            subnet: 0,
        };
        let host = network.add_node(format!("h{index}"), kind, 0);
        network.connect(host, switch, Rate::gbps(100), Span::nanos(500));
    }
    let mut host = host_profile();
    host.nic.rate_control = softfabric_transport::rate::RateControlConfig::None;
    let mut profile = switch_profile();
    profile.buffer.total = Bytes::mib(4);
    for class in &mut profile.classes {
        class.ecn.clear();
    }
    Plan {
        name: "star".to_owned(),
        seed: 1,
        timing: Timing::Exact,
        network,
        link_layer: LinkLayer::Ethernet,
        routing: Routing::Shortest,
        reroute: Span::ZERO,
        switch_profiles: vec![profile],
        host_profiles: vec![host],
        flows: Vec::new(),
        triggers: Vec::new(),
        jobs: Vec::new(),
        actions: Vec::new(),
        recording: Recording::default(),
        stop: Stop {
            at: Time::ZERO + Span::millis(20),
            when_done: true,
        },
    }
}

/// A flow from host `source` to host 0.
pub(super) fn towards_receiver(source: u32, bytes: u64) -> Flow {
    flow(NodeId(1 + source), NodeId(1), bytes, 20_000 + source as u16)
}

pub(super) fn simulate(plan: &Plan) -> Results {
    let results = run(plan, &mut RunOptions::default()).expect("a sound plan");
    assert_eq!(results.conservation.violations, Vec::<String>::new());
    let again = RunOptions {
        driver: Driver::Sequential,
        ..RunOptions::default()
    };
    let one_by_one = run(plan, &mut { again }).expect("a sound plan");
    assert_eq!(one_by_one.flows, results.flows, "both drivers agree");
    assert_eq!(one_by_one.ports, results.ports, "both drivers agree");
    results
}

fn class_of_port(
    results: &Results,
    node: u32,
    port: u16,
    class: Class,
    counter: ClassCounter,
) -> u64 {
    let endpoint = Endpoint {
        node: NodeId(node),
        port: PortId(port),
    };
    let port = results.ports.iter().find(|port| port.endpoint == endpoint);
    port.expect("the port").classes[class.index()].value(counter)
}

fn total(results: &Results, counter: ClassCounter) -> u64 {
    let classes = results.ports.iter().flat_map(|port| &port.classes);
    classes.map(|class| class.value(counter)).sum()
}

/// Pauses that run out by themselves are asked for again as long as they are meant: nothing is lost, and no class runs
/// while it should wait.
#[test]
fn pauses_of_a_given_time_are_renewed() {
    let with = |quanta| {
        let mut plan = star(5);
        plan.switch_profiles[0].pause.quanta = quanta;
        plan.flows = (1..5)
            .map(|source| towards_receiver(source, 2_000_000))
            .collect();
        simulate(&plan)
    };
    let (open, renewed) = (with(None), with(Some(100)));
    for results in [&open, &renewed] {
        assert_eq!(results.lossless_drops, 0);
        assert_eq!(results.ending, Ending::Completed);
    }
    // 100 quanta of 512 bit times are 512 ns at 100 Gb/s; asked for again every 256 ns.
    let (few, many) = (
        total(&open, ClassCounter::PauseSent),
        total(&renewed, ClassCounter::PauseSent),
    );
    assert!(many > 2 * few, "{few} and {many} pause frames");
    let paused = |results: &Results| total(results, ClassCounter::PauseReceivedDuration) as f64;
    assert!(
        (paused(&renewed) / paused(&open) - 1.0).abs() < 0.1,
        "for as long"
    );
}

/// Two classes at weights 3 and 1 share a full port 3 to 1 (Shreedhar and Varghese, SIGCOMM 1995).
#[test]
fn weights_share_a_port() {
    let mut plan = star(3);
    let other = Class::new(4);
    plan.switch_profiles[0].classes[other.index()] =
        plan.switch_profiles[0].classes[DATA.index()].clone();
    plan.switch_profiles[0].classes[DATA.index()].scheduling = Scheduling::Weighted(3);
    plan.host_profiles[0].lossless = ClassMask::of(DATA).with(other);
    plan.flows = vec![towards_receiver(1, 1 << 30), towards_receiver(2, 1 << 30)];
    plan.flows[1].class = other;
    plan.stop.at = Time::ZERO + Span::millis(5);
    let results = simulate(&plan);
    let [three, one] = [0, 1].map(|flow: usize| results.flows[flow].delivered.as_f64());
    assert!((three / one - 3.0).abs() < 0.03, "{three} to {one}");
    let rate = (three + one) * 8.0 / results.end.as_seconds_f64() / 1e9;
    assert!(rate > 90.0, "the port is full: {rate} Gb/s");
}

#[test]
fn a_strict_class_goes_first() {
    let mut plan = star(3);
    let strict = Class::new(5);
    plan.switch_profiles[0].classes[strict.index()] =
        plan.switch_profiles[0].classes[DATA.index()].clone();
    plan.switch_profiles[0].classes[strict.index()].scheduling = Scheduling::Strict;
    plan.host_profiles[0].lossless = ClassMask::of(DATA).with(strict);
    plan.flows = vec![
        towards_receiver(1, 5_000_000),
        towards_receiver(2, 5_000_000),
    ];
    plan.flows[1].class = strict;
    let results = simulate(&plan);
    let slowdown = |flow: usize| results.flows[flow].slowdown().expect("it finishes");
    // One packet of the other class may be in its way each time; its acknowledgements share the way back.
    assert!(slowdown(1) < 1.01, "{}", slowdown(1));
    assert!((1.9..2.1).contains(&slowdown(0)), "{}", slowdown(0));
}

/// A host that storms stops a port; the watchdog drops what waits there until the storm is over.
#[test]
fn the_watchdog_finds_a_storm_and_restores_the_port() {
    let mut plan = star(3);
    plan.switch_profiles[0].watchdog = Some(Watchdog {
        detection: Span::millis(2),
        restoration: Span::millis(2),
        poll: Span::millis(1),
        action: WatchdogAction::Drop,
    });
    let stormer = NodeId(1);
    let at = |millis| Time::ZERO + Span::millis(millis);
    plan.actions = vec![
        TimedAction {
            at: at(1),
            action: Action::StormBegins(stormer, DATA),
        },
        TimedAction {
            at: at(9),
            action: Action::StormEnds(stormer, DATA),
        },
    ];
    plan.flows = vec![towards_receiver(1, 1 << 30), towards_receiver(2, 1 << 30)];
    let results = simulate(&plan);
    let counted = |counter| class_of_port(&results, 0, 0, DATA, counter);
    assert_eq!(counted(ClassCounter::WatchdogStorms), 1);
    assert_eq!(counted(ClassCounter::WatchdogRestored), 1);
    assert!(counted(ClassCounter::WatchdogDropped) > 0);
    let paused = Span::picos(counted(ClassCounter::PauseReceivedDuration));
    assert!(paused >= Span::millis(7), "{paused}");
    // A storm's frames ask for the longest time and are sent again at half of it: 167.8 us at 100 Gb/s.
    let frames = counted(ClassCounter::PauseReceived);
    assert!((40..=60).contains(&frames), "{frames}");
    assert!(
        results
            .flows
            .iter()
            .all(|flow| flow.delivered > Bytes::mib(1)),
        "traffic goes on after it"
    );
}

/// Cutting through saves the time of a packet, less that of its header, at the switch; on the way back, too.
#[test]
fn cut_through_saves_a_packet_time() {
    let time = |forwarding| {
        let mut plan = star(2);
        plan.switch_profiles[0].forwarding = forwarding;
        plan.flows = vec![towards_receiver(1, 1024)];
        let results = simulate(&plan);
        let flow = &results.flows[0];
        assert_eq!(flow.completion_time(), Some(flow.ideal));
        flow.ideal
    };
    let stored = time(Forwarding::StoreAndForward);
    let cut = time(Forwarding::CutThrough {
        header: Bytes::new(64),
    });
    // The packet has 1024 + 28 + 50 bytes, its acknowledgement 16 + 50; of each, 64 are waited for.
    assert_eq!(
        stored - cut,
        Rate::gbps(100).time_for(Bytes::new((1102 - 64) + (66 - 64)))
    );
}

#[test]
fn damaged_packets_are_counted_and_sent_again() {
    let mut plan = star(2);
    plan.network.links[1].bit_error_rate = 1e-7;
    plan.flows = vec![towards_receiver(1, 20_000_000)];
    let results = simulate(&plan);
    assert_eq!(results.flows[0].status, FlowStatus::Completed);
    let errors: u64 = results
        .ports
        .iter()
        .map(|port| port.port.value(PortCounter::ReceiveErrors))
        .sum();
    // 19,532 packets of 8,816 bits and the packets sent again: about 17 per 20 MB, plus the go-backs' share.
    assert!((8..80).contains(&errors), "{errors}");
    assert_eq!(results.conservation.dropped, errors);
    assert!(results.flows[0].retransmitted >= errors);
    assert_eq!(results.lossless_drops, 0, "damage is not congestion");
}

/// WRED drops what cannot be marked, and marks the rest.
#[test]
fn red_drops_packets_that_are_not_ecn_capable() {
    let with = |ecn_capable| {
        let mut plan = star(4);
        let class = &mut plan.switch_profiles[0].classes[DATA.index()];
        class.ecn = vec![Ecn {
            rate: None,
            kmin: Bytes::kb(10),
            kmax: Bytes::kb(40),
            pmax: 0.1,
            drop_not_capable: true,
        }];
        plan.flows = (1..4)
            .map(|source| towards_receiver(source, 1_000_000))
            .collect();
        for flow in &mut plan.flows {
            flow.ecn_capable = ecn_capable;
        }
        // Acknowledgements are never ECN-capable; they ride elsewhere, so that all drops are data.
        plan.host_profiles[0].nic.acknowledgement_class =
            AcknowledgementClass::Explicit(Class::new(6));
        plan.host_profiles[0].nic.timeout = 8;
        plan.stop.at = Time::ZERO + Span::millis(5);
        simulate(&plan)
    };
    let (marked, dropped) = (with(true), with(false));
    assert!(total(&marked, ClassCounter::EcnMarked) > 0);
    assert_eq!(marked.conservation.dropped, 0);
    assert_eq!(total(&dropped, ClassCounter::EcnMarked), 0);
    assert!(
        dropped.lossless_drops > 0,
        "WRED below XOFF makes a lossless class lose"
    );
    assert_eq!(
        dropped.first_lossless_drops[0].reason,
        crate::results::DropReason::Red
    );
}

/// Spraying takes every path and puts packets out of order: go-back-N sends again, selective repeat hardly does.
#[test]
fn spraying_reorders() {
    let with = |recovery| {
        let mut network = Network::default();
        let leaves = [0, 1]
            .map(|n| network.add_node(format!("leaf{n}"), NodeKind::Switch { profile: 0 }, 1));
        for n in 0..2 {
            let spine = network.add_node(format!("spine{n}"), NodeKind::Switch { profile: 0 }, 2);
            for leaf in leaves {
                // The second spine is further away.
                network.connect(leaf, spine, Rate::gbps(100), Span::nanos(500 + 2_000 * n));
            }
        }
        let mut plan = star(2);
        let kind = NodeKind::Host {
            profile: 0,
            subnet: 0,
        };
        let hosts = [0, 1].map(|n: usize| {
            let host = network.add_node(format!("h{n}"), kind, 0);
            network.connect(host, leaves[n], Rate::gbps(100), Span::nanos(500));
            host
        });
        plan.network = network;
        plan.switch_profiles[0].load_balancing = LoadBalancing::SprayRoundRobin;
        plan.host_profiles[0].nic.loss_recovery = recovery;
        plan.flows = vec![flow(hosts[0], hosts[1], 2_000_000, 7)];
        simulate(&plan)
    };
    let go_back = with(LossRecovery::GoBackN);
    let selective = with(LossRecovery::SelectiveRepeat { cap: None });
    let out_of_order = |results: &Results| -> u64 {
        results
            .devices
            .iter()
            .map(|device| device.counters.value(DeviceCounter::OutOfSequence))
            .sum()
    };
    assert!(out_of_order(&go_back) > 0);
    let [go_back, selective] = [go_back, selective].map(|results| results.flows[0].clone());
    assert_eq!(
        (go_back.delivered, selective.delivered),
        (Bytes::mb(2), Bytes::mb(2))
    );
    assert!(selective.completion_time() < go_back.completion_time());
}

/// A switch that obeys pauses on a lossy class stops lossy traffic.
#[test]
fn pauses_of_a_lossy_class_are_obeyed_only_where_the_switch_does() {
    let lossy = Class::new(0);
    let delivered = |obeys_on_lossy| {
        let mut plan = star(3);
        plan.switch_profiles[0].pause.obeys_on_lossy = obeys_on_lossy;
        plan.actions = vec![TimedAction {
            at: Time::from_nanos(1_000),
            action: Action::StormBegins(NodeId(1), lossy),
        }];
        plan.flows = vec![towards_receiver(1, 1 << 30)];
        plan.flows[0].class = lossy;
        plan.stop.at = Time::ZERO + Span::millis(1);
        simulate(&plan).flows[0].delivered
    };
    assert!(delivered(false) > Bytes::mb(5));
    assert!(delivered(true) < Bytes::mb(1));
}

#[test]
fn a_receive_buffer_without_pfc_overflows() {
    let mut plan = star(2);
    plan.host_profiles[0].receive.drain = Some(Rate::gbps(40));
    plan.host_profiles[0].lossless = ClassMask::NONE;
    plan.flows = vec![towards_receiver(1, 20_000_000)];
    plan.stop.at = Time::ZERO + Span::millis(2);
    let results = simulate(&plan);
    assert!(results.conservation.dropped > 0);
    assert_eq!(
        results.lossless_drops, 0,
        "the class is not lossless at the host"
    );
}

/// Queue pairs with DSCP 0 among a fabric in which only DSCP 26 is lossless: they ride the lossy queue and lose packets,
/// although their NIC means them to be lossless.
#[test]
fn a_switch_may_tell_the_class_by_the_dscp() {
    let with = |dscp| {
        let mut plan = star(4);
        let mut classes = Box::new([Class::new(0); 64]);
        classes[26] = DATA;
        classes[48] = Class::new(6);
        plan.switch_profiles[0].classifier = Classifier::Dscp(classes);
        plan.host_profiles[0].nic.acknowledgement_class =
            AcknowledgementClass::Explicit(Class::new(6));
        plan.host_profiles[0].nic.timeout = 8;
        plan.switch_profiles[0].classes[0].egress.threshold = Alpha::Static(Bytes::kb(100));
        plan.flows = (1..4)
            .map(|source| towards_receiver(source, 1_000_000))
            .collect();
        for flow in &mut plan.flows {
            flow.dscp = dscp;
        }
        plan.stop.at = Time::ZERO + Span::millis(5);
        simulate(&plan)
    };
    let (right, wrong) = (with(Some(26)), with(Some(0)));
    assert_eq!(
        (right.conservation.dropped, right.ending),
        (0, Ending::Completed)
    );
    assert!(total(&right, ClassCounter::PauseSent) > 0);
    assert!(wrong.conservation.dropped > 100 && wrong.lossless_drops == 0);
    assert_eq!(
        total(&wrong, ClassCounter::PauseSent),
        0,
        "nobody pauses a lossy class"
    );
    let lossy = class_of_port(&wrong, 0, 0, Class::new(0), ClassCounter::TransmitPackets);
    assert!(lossy > 1_000);
    assert_eq!(
        class_of_port(&wrong, 0, 0, DATA, ClassCounter::TransmitPackets),
        0
    );
    // Without a DSCP of its own a flow has its class's selector, 24, which this switch does not know.
    assert!(with(None).conservation.dropped > 100);
}
