//! Whole runs over InfiniBand, each with the figure that arithmetic gives.

use softfabric_telemetry::{ClassCounter, PortCounter};
use softfabric_units::{Bytes, Class, Rate, Span, Time};
use softfabric_wire::infiniband::{FlowControl, LinkPacket, Lrh};

use crate::engine::feature_tests::{simulate, star, towards_receiver};
use crate::engine::{Driver, Ending, RunOptions, run};
use crate::plan::*;
use crate::results::{FlowStatus, Results};

const BUFFER: Bytes = Bytes::kib(32);

/// The plan's network with InfiniBand links: `lanes` lanes, and as many service levels, each class its own.
pub(super) fn on_infiniband(mut plan: Plan, lanes: u8) -> Plan {
    plan.link_layer = LinkLayer::Infiniband(Infiniband {
        switches: vec![InfinibandSwitch {
            forwarding: Forwarding::CutThrough {
                header: Bytes::new(24),
            },
            latency: Span::nanos(150),
            lanes: Lanes::alike(lanes, BUFFER),
            life: PacketLife::default(),
        }],
        hosts: Lanes::alike(lanes, BUFFER),
        service_levels: [0, 1, 2, 3, 4, 5, 6, 7],
        routing: SubnetRouting::MinHop,
        adaptive: false,
        multicast: Vec::new(),
        repair: Span::millis(1),
        static_rate: StaticRate::None,
        partitions: None,
        congestion: None,
    });
    plan.host_profiles[0].nic.mtu = Bytes::new(4096);
    plan
}

pub(super) fn settings(plan: &mut Plan) -> &mut Infiniband {
    match &mut plan.link_layer {
        LinkLayer::Infiniband(settings) => settings,
        LinkLayer::Ethernet => panic!("the plan is one of InfiniBand"),
    }
}

pub(super) fn of_port(results: &Results, node: u32, port: u16, counter: PortCounter) -> u64 {
    let endpoint = Endpoint {
        node: NodeId(node),
        port: PortId(port),
    };
    let port = results.ports.iter().find(|port| port.endpoint == endpoint);
    port.expect("the port").port.value(counter)
}

pub(super) fn goodput(results: &Results, flow: usize, bytes: u64) -> f64 {
    let result = &results.flows[flow];
    let span = result.received.expect("done") - result.start.expect("begun");
    bytes as f64 * 8.0 / (span.as_picos() as f64 / 1e12)
}

/// Each speed and width carries what the encoding leaves, less the headers: 26 bytes to 4096.
#[test]
fn links_carry_their_data_rate() {
    for (speed, lane) in [
        (LaneSpeed::Sdr, 2.0),
        (LaneSpeed::Ddr, 4.0),
        (LaneSpeed::Qdr, 8.0),
        (LaneSpeed::Fdr10, 10.0),
        (LaneSpeed::Fdr, 14.0625 * 64.0 / 66.0),
        (LaneSpeed::Edr, 25.0),
        (LaneSpeed::Hdr, 50.0),
        (LaneSpeed::Ndr, 100.0),
        (LaneSpeed::Xdr, 200.0),
    ] {
        for width in [1, 4, 12] {
            let mut plan = on_infiniband(star(2), 1);
            let infiniband = settings(&mut plan);
            // The bandwidth–delay product of the fastest.
            infiniband.hosts.buffer = Bytes::kib(127);
            infiniband.switches[0].lanes.buffer = Bytes::kib(127);
            for link in &mut plan.network.links {
                link.rate = speed.data_rate(width);
                link.delay = Span::nanos(25);
            }
            plan.flows = vec![towards_receiver(1, 8_000_000)];
            plan.stop.at = Time::ZERO + Span::millis(100);
            let results = simulate(&plan);
            let expected = lane * f64::from(width) * 1e9 * 4096.0 / 4122.0;
            let found = goodput(&results, 0, 8_000_000);
            let off = (found / expected - 1.0).abs();
            assert!(
                off < 0.01,
                "{speed:?} {width}x: {found:.4e} of {expected:.4e}"
            );
        }
    }
}

/// Seven send to one: nobody loses anything, all wait for credit, and the receiver's link is full.
#[test]
fn an_incast_waits_for_credit_and_loses_nothing() {
    let mut plan = on_infiniband(star(8), 1);
    plan.flows = (1..8)
        .map(|source| towards_receiver(source, 2_000_000))
        .collect();
    let results = simulate(&plan);
    assert_eq!(results.ending, Ending::Completed);
    assert_eq!(
        (results.conservation.dropped, results.lossless_drops),
        (0, 0)
    );
    let finish = results.flows.iter().filter_map(|flow| flow.received).max();
    let total = finish.expect("done") - Time::from_nanos(100);
    let least = 7.0 * 2_000_000.0 * 8.0 / 100e9 * 4122.0 / 4096.0;
    let seconds = total.as_picos() as f64 / 1e12;
    assert!(
        seconds > least && seconds < 1.01 * least,
        "{seconds} s of {least} s"
    );
    let watermarks = results
        .ports
        .iter()
        .map(|port| port.classes[0].value(ClassCounter::IngressWatermark));
    let peak = watermarks.max().unwrap_or(0);
    assert!(
        peak > BUFFER.as_u64() / 2 && peak <= BUFFER.as_u64(),
        "{peak}"
    );
    for source in 1..8 {
        // Six sevenths of the time each sender waits, but for the buffer's worth at the beginning.
        let waited = of_port(
            &results,
            1 + u32::from(source),
            0,
            PortCounter::TransmitWait,
        );
        let share = waited as f64 / total.as_picos() as f64;
        assert!(share > 0.8 && share < 6.0 / 7.0 + 0.01, "{share}");
        let granted = of_port(&results, 0, source, PortCounter::CreditsSent);
        let received = of_port(
            &results,
            1 + u32::from(source),
            0,
            PortCounter::CreditsReceived,
        );
        assert!(granted > 20 && received <= granted, "{granted} {received}");
        let share = goodput(&results, usize::from(source) - 1, 2_000_000) / 100e9;
        assert!((share - 1.0 / 7.0).abs() < 0.01, "{share}");
    }
}

/// Two lanes with weights 3 and 1 share a link 3 : 1.
#[test]
fn lanes_share_a_link_by_weight() {
    let mut plan = on_infiniband(star(3), 2);
    let infiniband = settings(&mut plan);
    infiniband.switches[0].lanes.arbitration.low = vec![
        LaneWeight {
            lane: 0,
            weight: 192,
        },
        LaneWeight {
            lane: 1,
            weight: 64,
        },
    ];
    plan.flows = vec![
        towards_receiver(1, 9_000_000),
        towards_receiver(2, 3_000_000),
    ];
    for (flow, class) in plan.flows.iter_mut().zip([0, 1]) {
        flow.class = Class::new(class);
    }
    let results = simulate(&plan);
    let rates =
        [(0, 9_000_000), (1, 3_000_000)].map(|(flow, bytes)| goodput(&results, flow, bytes));
    let ratio = rates[0] / rates[1];
    assert!((ratio - 3.0).abs() < 0.05, "{rates:?}: {ratio}");
}

/// High priority goes first, and low priority has what is left.
#[test]
fn high_priority_goes_first() {
    let mut plan = on_infiniband(star(3), 2);
    let lanes = &mut settings(&mut plan).switches[0].lanes;
    lanes.arbitration = LaneArbitration {
        high: vec![LaneWeight {
            lane: 1,
            weight: 255,
        }],
        low: vec![LaneWeight {
            lane: 0,
            weight: 255,
        }],
        limit: 255,
    };
    plan.flows = vec![
        towards_receiver(1, 2_000_000),
        towards_receiver(2, 2_000_000),
    ];
    for (flow, class) in plan.flows.iter_mut().zip([0, 1]) {
        flow.class = Class::new(class);
    }
    let results = simulate(&plan);
    let alone = 2_000_000.0 * 8.0 / 100e9;
    let [low, high] = [0, 1].map(|flow| 2_000_000.0 * 8.0 / goodput(&results, flow, 2_000_000));
    assert!(high < 1.03 * alone, "{high} s, alone {alone} s");
    assert!(low > 1.97 * alone && low < 2.05 * alone, "{low} s");
}

/// Four switches in a ring, a host at each that sends to the host three switches further on, clockwise.
fn ring(bytes: u64) -> Plan {
    let mut plan = on_infiniband(star(1), 1);
    let mut network = Network::default();
    let switches: Vec<NodeId> = (0..4)
        .map(|n| network.add_node(format!("s{n}"), NodeKind::Switch { profile: 0 }, 1))
        .collect();
    let kind = NodeKind::Host {
        profile: 0,
        subnet: 0,
    };
    let hosts: Vec<NodeId> = (0..4)
        .map(|n| network.add_node(format!("h{n}"), kind, 0))
        .collect();
    for n in 0..4 {
        network.connect(hosts[n], switches[n], Rate::gbps(100), Span::nanos(50));
        network.connect(
            switches[n],
            switches[(n + 1) % 4],
            Rate::gbps(100),
            Span::nanos(50),
        );
    }
    plan.network = network;
    plan.flows = (0..4)
        .map(|n| {
            let mut flow = towards_receiver(0, bytes);
            flow.source = hosts[n];
            flow.destination = hosts[(n + 3) % 4];
            flow.path = Some((0..4).map(|step| switches[(n + step) % 4]).collect());
            flow
        })
        .collect();
    plan.stop.at = Time::ZERO + Span::millis(2);
    plan
}

/// Each lane waits for credit of the next, round the ring: nothing moves, and the circle is found.
#[test]
fn a_credit_loop_locks_and_is_found() {
    let results = simulate(&ring(10_000_000));
    let deadlock = results.deadlock.as_ref().expect("the ring locks");
    assert_eq!(deadlock.cycle.len(), 4, "{deadlock:?}");
    assert!(deadlock.since < Time::ZERO + Span::millis(1));
    assert_eq!(results.conservation.dropped, 0);
    let waited: u64 = (0..4)
        .flat_map(|node| (0..3).map(move |port| (node, port)))
        .map(|(node, port)| of_port(&results, node, port, PortCounter::TransmitWait))
        .sum();
    // Four ports stand still for nearly all of 2 ms.
    assert!(waited > 4 * Span::micros(1500).as_picos(), "{waited} ps");
}

/// With a limit to the life at the head of a queue the circle opens again, at the price of losses.
#[test]
fn the_life_at_the_head_of_a_queue_opens_a_loop() {
    let mut plan = ring(200_000);
    settings(&mut plan).switches[0].life.at_head = Some(Span::micros(20));
    // Half a millisecond: what was dropped at the end of a message is missed by nobody else.
    plan.host_profiles[0].nic.timeout = 7;
    plan.stop.at = Time::ZERO + Span::millis(100);
    let results = simulate(&plan);
    assert!(results.deadlock.is_none());
    assert!(results.lossless_drops > 0);
    assert_eq!(results.ending, Ending::Completed);
    assert!(
        results
            .flows
            .iter()
            .all(|flow| flow.status == FlowStatus::Completed)
    );
    let discards: u64 = (0..4)
        .flat_map(|node| (0..3).map(move |port| (node, port)))
        .map(|(node, port)| of_port(&results, node, port, PortCounter::TransmitDiscards))
        .sum();
    assert_eq!(discards, results.lossless_drops);
}

/// A receiver whose memory stands still holds its sender, by credit alone; then all goes on.
#[test]
fn a_slow_receiver_grants_no_credit() {
    let mut plan = on_infiniband(star(2), 1);
    plan.flows = vec![towards_receiver(1, 1_000_000)];
    plan.host_profiles[0].receive.drain = Some(Rate::gbps(10));
    let results = simulate(&plan);
    assert_eq!(results.ending, Ending::Completed);
    assert_eq!(results.conservation.dropped, 0);
    let share = goodput(&results, 0, 1_000_000) / 10e9;
    assert!(share > 0.95 && share < 1.05, "{share}");
}

/// A link that fails in the middle of a transfer and comes back: what was lost is sent again, credits begin anew.
#[test]
fn credits_begin_anew_after_a_link_has_failed() {
    let mut plan = on_infiniband(star(3), 1);
    plan.flows = (1..3)
        .map(|source| towards_receiver(source, 4_000_000))
        .collect();
    let at = |micros, action| TimedAction {
        at: Time::ZERO + Span::micros(micros),
        action,
    };
    plan.actions = vec![
        at(50, Action::LinkDown(LinkId(1))),
        at(90, Action::LinkUp(LinkId(1))),
        at(150, Action::LinkDown(LinkId(0))),
        at(200, Action::LinkUp(LinkId(0))),
    ];
    plan.stop.at = Time::ZERO + Span::millis(500);
    let results = simulate(&plan);
    assert_eq!(results.ending, Ending::Completed);
    assert!(results.conservation.dropped > 0);
    assert_eq!(
        results.lossless_drops, 0,
        "a link that fails may lose packets"
    );
    assert!(
        results
            .flows
            .iter()
            .all(|flow| flow.status == FlowStatus::Completed)
    );
}

/// Damaged packets cost no credit for good.
#[test]
fn bit_errors_cost_no_credit() {
    let mut plan = on_infiniband(star(2), 1);
    plan.flows = vec![towards_receiver(1, 4_000_000)];
    plan.network.links[1].bit_error_rate = 1e-6;
    plan.stop.at = Time::ZERO + Span::millis(500);
    let results = simulate(&plan);
    assert_eq!(results.ending, Ending::Completed);
    assert!(results.conservation.dropped > 10);
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let mut plan = ring(300_000);
    settings(&mut plan).switches[0].life.at_head = Some(Span::micros(20));
    plan.stop.at = Time::ZERO + Span::millis(100);
    let outcome = |threads, driver| {
        let mut options = RunOptions {
            threads,
            driver,
            ..RunOptions::default()
        };
        let results = run(&plan, &mut options).expect("a sound plan");
        (results.flows, results.ports, results.devices, results.end)
    };
    let alone = outcome(1, Driver::Automatic);
    for threads in [2, 3, 5] {
        assert!(
            outcome(threads, Driver::Automatic) == alone,
            "{threads} threads"
        );
    }
    let one_by_one = outcome(1, Driver::Sequential);
    assert!((one_by_one.0, one_by_one.1) == (alone.0, alone.1));
}

/// Every packet passes the codec, and a captured port shows packets with both CRCs, their lanes, and credits.
#[test]
fn packets_are_what_a_wire_would_carry() {
    let mut plan = on_infiniband(star(4), 3);
    plan.flows = (1..4)
        .map(|source| towards_receiver(source, 200_000))
        .collect();
    plan.flows[0].class = Class::new(2);
    plan.recording.check_wire = true;
    let port = Endpoint {
        node: NodeId(0),
        port: PortId(0),
    };
    plan.recording.captures = vec![port];
    let results = simulate(&plan);
    let (mut data, mut credits, mut acknowledgements) = (0, 0, 0);
    let mut lanes = 0_u16;
    for frame in &results.captures[0].frames {
        if let Ok(credit) = FlowControl::decode(&frame.bytes) {
            assert_eq!(frame.length, 6);
            assert!(credit.lane.as_u8() < 3);
            credits += 1;
        } else if frame.bytes.len() == frame.length as usize {
            let packet = LinkPacket::decode(&frame.bytes).expect("a packet");
            assert!(packet.icrc_is_right() && packet.vcrc_is_right());
            acknowledgements += 1;
        } else {
            let lrh = Lrh::decode(&frame.bytes).expect("a header");
            assert_eq!(u32::from(lrh.words) * 4 + 2, frame.length);
            assert_eq!(lrh.level.as_u8() % 3, lrh.lane.as_u8());
            lanes |= 1 << lrh.lane.as_u8();
            data += 1;
        }
    }
    // 200 kB in packets of 4,096 B; the last of each flow is short, but not whole in a capture.
    assert_eq!(data, 3 * 49);
    assert!(
        credits > 0 && acknowledgements > 0,
        "{credits} {acknowledgements}"
    );
    let mut expected = 0;
    for flow in &plan.flows {
        expected |= 1 << (flow.class.as_u8() % 3);
    }
    assert_eq!(lanes, expected);
}
