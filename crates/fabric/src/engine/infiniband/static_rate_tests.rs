//! Queue pairs that send no faster than their path: exact gaps, and what they spare others.

use softfabric_units::{Bytes, Rate, Span, Time};

use super::tests::{goodput, of_port, on_infiniband, settings};
use crate::engine::feature_tests::{simulate, star, towards_receiver};
use crate::plan::*;
use softfabric_telemetry::PortCounter;

/// A host of 100 Gb/s sends to one whose link has `slow`.
fn towards_slow(slow: Rate, bytes: u64) -> Plan {
    let mut plan = on_infiniband(star(3), 1);
    plan.network.links[0].rate = slow;
    plan.flows = vec![towards_receiver(1, bytes)];
    plan.stop.at = Time::ZERO + Span::seconds(1);
    plan
}

/// When the receiver has all of 200 packets: each but the last is followed by `delay` times of its own.
fn finish(delay: u64, slow: Rate) -> Span {
    let (first, middle) = (4138, 4122);
    let sent = Span::picos(80 * (delay + 1)) * (first + 198 * middle);
    let host = Span::nanos(500);
    // The switch cuts through: no port of it is faster than the one that a packet came by. The slower link sends the last packet
    // whole.
    let switch = Span::picos(80 * 24) + Span::nanos(500 + 150);
    let last = slow.time_for(Bytes::new(middle));
    sent + switch + last + host
}

#[test]
fn packets_are_followed_by_whole_gaps() {
    for (slow, delay) in [(50, 1), (40, 2), (25, 3), (10, 9)] {
        let slow = Rate::gbps(slow);
        let mut plan = towards_slow(slow, 200 * 4096);
        settings(&mut plan).static_rate = StaticRate::Path;
        let results = simulate(&plan);
        let start = results.flows[0].start.unwrap();
        let took = results.flows[0].received.unwrap().since(start);
        assert_eq!(took, finish(delay, slow), "{slow}");
        assert_eq!(of_port(&results, 2, 0, PortCounter::TransmitWait), 0);
        settings(&mut plan).static_rate = StaticRate::None;
        let results = simulate(&plan);
        assert!(of_port(&results, 2, 0, PortCounter::TransmitWait) > 0);
    }
}

/// Towards a link that is as fast or faster, nothing changes.
#[test]
fn no_gap_towards_a_link_that_is_not_slower() {
    for rate in [100, 400] {
        let mut plan = towards_slow(Rate::gbps(rate), 1_000_000);
        let without = simulate(&plan);
        settings(&mut plan).static_rate = StaticRate::Path;
        assert_eq!(simulate(&plan).flows, without.flows);
    }
}

/// A flow that starts while no path leads to its destination has no static rate; congestion control is its all the same.
#[test]
fn congestion_control_outlasts_a_lost_path() {
    let mut plan = towards_slow(Rate::gbps(100), 1_000_000);
    let infiniband = settings(&mut plan);
    infiniband.static_rate = StaticRate::Path;
    infiniband.repair = Span::micros(10);
    let mut congestion = InfinibandCongestion {
        switches: vec![SwitchCongestion::default()],
        hosts: AdapterCongestion::default(),
    };
    // Index 8 of the table: two packet times after each packet.
    for level in &mut congestion.hosts.levels {
        level.minimum = 8;
    }
    infiniband.congestion = Some(Box::new(congestion));
    plan.host_profiles[0].nic.timeout = 5;
    // The receiver's cable is away when the flow starts, and the sweep has taken it out of the tables.
    let change = |at, action| TimedAction {
        at: Time::from_nanos(at),
        action,
    };
    plan.actions = vec![
        change(1_000, Action::LinkDown(LinkId(0))),
        change(30_000, Action::LinkUp(LinkId(0))),
    ];
    plan.flows[0].start = Start::At(Time::from_nanos(20_000));
    let results = simulate(&plan);
    let flow = &results.flows[0];
    let took = flow.received.unwrap() - flow.start.unwrap();
    let wire = Rate::gbps(100).time_for(Bytes::new(245 * 4122));
    let times = took.as_picos() as f64 / wire.as_picos() as f64;
    // Without congestion control it takes little more than once, and the timeouts at the beginning.
    assert!(times > 2.9, "{times}");
}

/// With congestion control as well, the table's waits come on top.
#[test]
fn congestion_control_adds_to_the_static_rate() {
    let mut plan = towards_slow(Rate::gbps(50), 1_000_000);
    let infiniband = settings(&mut plan);
    infiniband.static_rate = StaticRate::Path;
    let mut congestion = InfinibandCongestion {
        switches: vec![SwitchCongestion::default()],
        hosts: AdapterCongestion::default(),
    };
    infiniband.congestion = Some(Box::new(congestion.clone()));
    let alone = goodput(&simulate(&plan), 0, 1_000_000);
    assert!((alone / 50e9 - 4096.0 / 4122.0).abs() < 0.01, "{alone}");
    // Index 8 of the table: two packet times. With the one of the static rate, a quarter of the line is left.
    for level in &mut congestion.hosts.levels {
        level.minimum = 8;
    }
    settings(&mut plan).congestion = Some(Box::new(congestion));
    let slowed = goodput(&simulate(&plan), 0, 1_000_000);
    assert!((slowed / 25e9 - 4096.0 / 4122.0).abs() < 0.01, "{slowed}");
}
