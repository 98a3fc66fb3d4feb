//! Packets that outlive their time in a switch: when, how many, and what is left of the lane.

use softfabric_telemetry::PortCounter;
use softfabric_units::{Rate, Span, Time};

use super::tests::{of_port, on_infiniband, settings};
use crate::engine::feature_tests::{simulate, star, towards_receiver};
use crate::plan::*;
use crate::results::{DropReason, LosslessDrop, Results};

/// Code 2 of HOQLife: four units of 4.096 µs.
const LIFE: Span = Span::nanos(16_384);
/// The wire length of a write's first packet, and of those in its middle.
const FIRST: u64 = 8 + 12 + 16 + 4096 + 4 + 2;
const MIDDLE: u64 = FIRST - 16;
/// What a lane's buffer of 32 KiB holds of them, in blocks of 64 B.
const HELD: usize = (32 << 10) / (65 * 64);

/// One host sends to another whose memory as good as stands still, so that nothing but the lives of packets empties the switch.
fn blocked(life: PacketLife) -> Plan {
    let mut plan = on_infiniband(star(3), 1);
    settings(&mut plan).switches[0].life = life;
    plan.flows = vec![towards_receiver(1, 4_000_000)];
    // A packet in nine hours.
    plan.host_profiles[0].receive.drain = Some(Rate::bps(1));
    plan.host_profiles[0].nic.timeout = 0;
    plan.stop.at = Time::ZERO + Span::millis(1);
    plan
}

fn drops(results: &Results, reason: DropReason) -> Vec<LosslessDrop> {
    let all = results.first_lossless_drops.iter();
    all.filter(|drop| drop.reason == reason).copied().collect()
}

/// When the switch knows where packet `index` of the flow goes: the flow starts, the packets before it and 24 B of its own
/// are on the wire, then the cable, the switch.
fn arrival(index: u64) -> Time {
    let before = if index == 0 {
        0
    } else {
        FIRST + (index - 1) * MIDDLE
    };
    let bytes = Span::picos((before + 24) * 80);
    Time::from_nanos(100) + bytes + Span::nanos(500) + Span::nanos(150)
}

#[test]
fn heads_are_discarded_one_life_after_the_other() {
    let life = PacketLife {
        at_head_to_host: Some(LIFE),
        ..PacketLife::default()
    };
    let results = simulate(&blocked(life));
    let found = drops(&results, DropReason::HeadOfQueueLife);
    // The first packet without credit is the one that the host's buffer has no room for.
    let first = arrival(HELD as u64) + LIFE;
    let expected: Vec<Time> = (0..60).map(|turn| first + LIFE * turn).collect();
    let times: Vec<Time> = found.iter().map(|drop| drop.time).collect();
    assert_eq!(times[..59], expected[..59]);
    assert_eq!(results.lossless_drops, found.len() as u64);
    let mut longer = blocked(life);
    longer.stop.at = Time::ZERO + Span::millis(6);
    assert!(
        simulate(&longer).lossless_drops > 300,
        "in a row, without a stall"
    );
    for counter in [PortCounter::TransmitDiscards, PortCounter::HeadLifeDiscards] {
        assert_eq!(of_port(&results, 0, 0, counter), results.lossless_drops);
    }
    assert_eq!(of_port(&results, 0, 0, PortCounter::SwitchLifeDiscards), 0);
}

/// The life towards switches is no concern of a port to a host.
#[test]
fn ports_to_hosts_have_a_life_of_their_own() {
    let life = PacketLife {
        at_head: Some(LIFE),
        ..PacketLife::default()
    };
    let results = simulate(&blocked(life));
    assert_eq!(results.lossless_drops, 0);
}

/// With a stall count of three: three lives, then eight in which nothing stays, then three again.
#[test]
fn a_lane_stalls_after_discards_in_a_row() {
    let life = PacketLife {
        at_head_to_host: Some(LIFE),
        stall_count: Some(3),
        ..PacketLife::default()
    };
    let results = simulate(&blocked(life));
    let first = arrival(HELD as u64);
    let heads: Vec<u64> = drops(&results, DropReason::HeadOfQueueLife)
        .iter()
        .map(|drop| drop.time.since(first).as_picos() / LIFE.as_picos())
        .collect();
    assert_eq!(heads[..3], [1, 2, 3]);
    // What comes after the stall is a head from then on: the twelfth life ends first.
    assert_eq!(heads[3..6], [12, 13, 14]);
    let stalled = drops(&results, DropReason::LaneStalled);
    let begin = first + LIFE * 3;
    assert_eq!(stalled[0].time, begin, "what waits goes at once");
    let at_once = stalled.iter().filter(|drop| drop.time == begin).count();
    // A buffer's worth; the credit of the last two that were discarded is on its way.
    assert_eq!(at_once, HELD - 2);
    let within = |drop: &&LosslessDrop| drop.time < begin + LIFE * 8;
    assert!(stalled.iter().filter(within).count() > 100, "at line rate");
    let next = stalled.iter().find(|drop| !within(drop)).unwrap();
    let third = drops(&results, DropReason::HeadOfQueueLife)[5].time;
    assert_eq!(next.time, third, "none between the stalls");
    let counted = of_port(&results, 0, 0, PortCounter::TransmitDiscards);
    assert_eq!(counted, results.lossless_drops);
    let counted = of_port(&results, 0, 0, PortCounter::HeadLifeDiscards);
    assert!(counted < results.lossless_drops / 10);
}

/// A packet that goes ends the row: with credit for two packets after each life and a half, no lane stalls.
#[test]
fn a_packet_that_goes_ends_the_row() {
    let life = PacketLife {
        at_head_to_host: Some(LIFE),
        stall_count: Some(2),
        ..PacketLife::default()
    };
    let mut plan = blocked(life);
    // A packet of 4122 B in 0.75 lives.
    plan.host_profiles[0].receive.drain = Some(Rate::bps(2_684_000_000));
    let results = simulate(&plan);
    assert!(drops(&results, DropReason::HeadOfQueueLife).len() > 5);
    assert!(drops(&results, DropReason::LaneStalled).is_empty());
    plan.host_profiles[0].receive.drain = Some(Rate::bps(500_000_000));
    let results = simulate(&plan);
    assert!(!drops(&results, DropReason::LaneStalled).is_empty());
}

/// From arrival to departure: each packet that finds no credit dies one life after it came, whatever is before it.
#[test]
fn packets_die_one_life_after_they_came() {
    let life = PacketLife {
        in_switch: Some(LIFE),
        ..PacketLife::default()
    };
    let results = simulate(&blocked(life));
    let times: Vec<Time> = drops(&results, DropReason::PacketLife)
        .iter()
        .map(|drop| drop.time)
        .collect();
    // The credit of the last packet that went on is granted with that of the next one.
    let expected: Vec<Time> = (HELD..2 * HELD - 1)
        .map(|index| arrival(index as u64) + LIFE)
        .collect();
    assert_eq!(times[..HELD - 1], expected);
    let counted = of_port(&results, 0, 0, PortCounter::SwitchLifeDiscards);
    assert_eq!(counted, results.lossless_drops);
    assert_eq!(of_port(&results, 0, 0, PortCounter::HeadLifeDiscards), 0);
}

/// What waits in time for credit is not discarded, however long all together wait.
#[test]
fn who_has_credit_in_time_lives() {
    let life = PacketLife {
        at_head: Some(LIFE),
        at_head_to_host: Some(LIFE),
        stall_count: Some(1),
        ..PacketLife::default()
    };
    let mut plan = blocked(life);
    plan.flows = vec![
        towards_receiver(1, 1_000_000),
        towards_receiver(2, 1_000_000),
    ];
    plan.host_profiles[0].receive.drain = Some(Rate::gbps(10));
    plan.stop.at = Time::ZERO + Span::millis(10);
    let results = simulate(&plan);
    assert_eq!(results.ending, crate::results::Ending::Completed);
    assert_eq!(results.conservation.dropped, 0);
    // A packet takes 3.3 µs to be drained; those behind it wait for 46 µs.
    let mut shorter = plan.clone();
    settings(&mut shorter).switches[0].life = PacketLife {
        in_switch: Some(LIFE),
        ..PacketLife::default()
    };
    assert!(simulate(&shorter).conservation.dropped > 0);
}
