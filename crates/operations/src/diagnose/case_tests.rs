//! Cases that people told of in public, as the counters that they would have left behind. Those that a simulation shows are
//! scenarios; `docs/cases.md` lists all.

use softfabric_telemetry::{ClassCounter, Counter, DeviceCounter, PortCounter};

use super::samples::{DATA, Flow, Hand, busy, hand};
use super::*;

fn data(counter: ClassCounter) -> Counter {
    Counter::Class(DATA, counter)
}

fn diagnosed(hand: &Hand) -> Diagnosis {
    diagnose(&hand.topology, &hand.history())
}

fn misconfigured<'d>(diagnosis: &'d Diagnosis, node: &str) -> &'d Finding {
    assert_eq!(
        diagnosis.verdict,
        Verdict::Cause(Cause::Misconfiguration),
        "{diagnosis}"
    );
    assert_eq!(diagnosis.findings[0].node, node, "{diagnosis}");
    &diagnosis.findings[0]
}

/// github.com/sonic-net/sonic-buildimage/issues/5898: drops go on after the watchdog restored the queue.
#[test]
fn a_rule_of_the_watchdog_that_outlives_the_storm() {
    let mut hand = hand();
    for second in 0..10 {
        match second {
            1 => hand.count("leaf2:3", data(ClassCounter::WatchdogStorms), 1),
            3 => hand.count("leaf2:3", data(ClassCounter::WatchdogRestored), 1),
            _ => {}
        }
        if second >= 4 {
            hand.count("leaf2:3", data(ClassCounter::EgressDropped), 500);
            let missing = Counter::Device(DeviceCounter::SequenceErrorReceived);
            hand.count("h0", missing, 100);
        }
        let storms = (1..3).contains(&second);
        let held = Flow {
            held: if storms { 1.0 } else { 0.0 },
            ..busy(if storms { 0.0 } else { 0.3 })
        };
        hand.second(&[("leaf2:3", held)]);
    }
    let diagnosis = diagnosed(&hand);
    let mut findings = diagnosis.findings.iter();
    let rule = findings.find(|finding| finding.cause == Cause::Misconfiguration);
    let rule = rule.unwrap_or_else(|| panic!("{diagnosis}"));
    assert!(rule.summary.contains("was not taken away"), "{diagnosis}");
    assert_eq!(rule.node, "leaf2");
    // The storm that began it is told as well.
    let storm = |finding: &&Finding| finding.cause == Cause::HostStorm;
    assert_eq!(diagnosis.findings.iter().find(storm).unwrap().node, "h11");
}

/// github.com/sonic-net/sonic-swss/issues/4581: the host takes its pauses back, and the watchdog takes that for more of them.
#[test]
fn a_watchdog_that_does_not_let_go() {
    let mut hand = hand();
    for second in 0..10 {
        if second == 1 {
            hand.count("leaf2:3", data(ClassCounter::WatchdogStorms), 1);
        }
        if second >= 1 {
            hand.count("leaf2:3", data(ClassCounter::WatchdogDropped), 500);
        }
        let held = Flow {
            held: if (1..3).contains(&second) { 1.0 } else { 0.0 },
            ..Flow::default()
        };
        hand.second(&[("leaf2:3", held)]);
    }
    let diagnosis = diagnosed(&hand);
    let mut findings = diagnosis.findings.iter();
    let stuck = findings.find(|finding| finding.cause == Cause::Misconfiguration);
    let stuck = stuck.unwrap_or_else(|| panic!("{diagnosis}"));
    assert_eq!(stuck.node, "leaf2");
    assert!(
        stuck.summary.contains("although the storm is over"),
        "{diagnosis}"
    );

    // While the host does pause, dropping is what the watchdog is for.
    let mut hand = self::hand();
    for second in 0..10 {
        if second == 1 {
            hand.count("leaf2:3", data(ClassCounter::WatchdogStorms), 1);
        }
        hand.count("leaf2:3", data(ClassCounter::WatchdogDropped), 500);
        let held = Flow {
            held: 1.0,
            ..Flow::default()
        };
        hand.second(&[("leaf2:3", held)]);
    }
    let diagnosis = diagnosed(&hand);
    assert!(
        diagnosis
            .findings
            .iter()
            .all(|f| f.cause == Cause::HostStorm),
        "{diagnosis}"
    );
}

/// github.com/sonic-net/sonic-mgmt/issues/5239: two ports storm, and the watchdog has noticed one of them.
#[test]
fn a_storm_that_the_watchdog_missed() {
    let mut hand = hand();
    hand.count("leaf2:2", data(ClassCounter::WatchdogStorms), 1);
    let stuck = Flow {
        held: 1.0,
        ..Flow::default()
    };
    for _ in 0..6 {
        hand.second(&[("leaf2:2", stuck), ("leaf2:3", stuck)]);
        hand.count("leaf2:2", data(ClassCounter::WatchdogStorms), 1);
    }
    let diagnosis = diagnosed(&hand);
    let nodes: Vec<&str> = diagnosis.findings.iter().map(|f| f.node.as_str()).collect();
    assert!(
        nodes.contains(&"h10") && nodes.contains(&"h11"),
        "{diagnosis}"
    );
    let missed = diagnosis.findings.iter().find(|f| f.node == "h11").unwrap();
    let says = missed
        .evidence
        .iter()
        .find(|e| e.counter.contains("pfcwd_storms"));
    assert!(
        says.unwrap().says.contains("has one at leaf2:2"),
        "{diagnosis}"
    );
}

/// github.com/NVIDIA/nccl/issues/378: a job is slow, the fabric is suspected, and no counter says anything against it. What was
/// heard decides whether that is an all-clear.
#[test]
fn a_slow_job_over_a_fabric_without_drops() {
    let mut hand = hand();
    for _ in 0..6 {
        hand.second(&[("h0", busy(0.02)), ("leaf2:3", busy(0.02))]);
    }
    assert_eq!(diagnosed(&hand).verdict, Verdict::NotTheFabric);
    // Counters of the hosts alone do not tell.
    let history = hand.history_without(|port, _| {
        hand.topology.owner(port).kind == NodeKind::Switch || port.0 % 3 == 0
    });
    let diagnosis = diagnose(&hand.topology, &history);
    assert_eq!(diagnosis.verdict, Verdict::NotEnoughData, "{diagnosis}");
}

/// github.com/deepseek-ai/DeepEP/issues/254: some hosts get less than others, and nobody is held back.
#[test]
fn hosts_that_are_not_alike_are_not_the_fabrics_fault() {
    let mut hand = hand();
    for _ in 0..6 {
        hand.second(&[
            ("leaf0:0", busy(0.8)),
            ("leaf1:0", busy(0.4)),
            ("leaf2:0", busy(0.2)),
        ]);
    }
    let diagnosis = diagnosed(&hand);
    assert_eq!(diagnosis.verdict, Verdict::NotTheFabric, "{diagnosis}");
    assert!(
        diagnosis.summary.contains("leaf0:0"),
        "the busiest: {diagnosis}"
    );
}

/// github.com/NVIDIA/nccl-tests/issues/112: half of the bandwidth, as the PCIe switch sends everything to the root port and back
/// (ACS). The NIC has no room for what arrives: that is the host, and not the fabric.
#[test]
fn half_of_the_bandwidth_because_of_a_hosts_pcie() {
    let mut hand = hand();
    let half = Flow {
        held: 0.5,
        pauses: 4_000,
        ..busy(0.5)
    };
    for _ in 0..6 {
        hand.second(&[("leaf2:3", half), ("spine0:2", half), ("h0", half)]);
    }
    let diagnosis = diagnosed(&hand);
    assert_eq!(
        diagnosis.verdict,
        Verdict::Cause(Cause::SlowReceiver),
        "{diagnosis}"
    );
    let finding = &diagnosis.findings[0];
    assert_eq!(finding.node, "h11");
    assert!(finding.confirm[0].contains("ACS"), "{:?}", finding.confirm);

    // Where it is the sender that cannot read faster, nobody is held back at all.
    let mut hand = self::hand();
    for _ in 0..6 {
        hand.second(&[("h0", busy(0.5)), ("leaf2:3", busy(0.5))]);
    }
    assert_eq!(diagnosed(&hand).verdict, Verdict::NotTheFabric);
}

/// github.com/NVIDIA/nccl/issues/426: error 12 at once, as the peer is never reached.
#[test]
fn a_peer_that_is_never_reached() {
    let mut hand = hand();
    for second in 0..6 {
        hand.count("h2", Counter::Device(DeviceCounter::LocalAckTimeout), 4);
        if second == 3 {
            hand.count("h2", Counter::Device(DeviceCounter::RetriesExceeded), 2);
        }
        hand.second(&[("h2", busy(0.001))]);
    }
    let diagnosis = diagnosed(&hand);
    let finding = misconfigured(&diagnosis, "h2");
    assert_eq!(finding.certainty, Certainty::Moderate);
    assert!(finding.summary.contains("GID"), "{diagnosis}");

    // Where hosts miss packets, there was a way, and something was lost on it.
    hand.count("h5", Counter::Device(DeviceCounter::OutOfSequence), 50);
    hand.second(&[]);
    let diagnosis = diagnosed(&hand);
    assert_eq!(diagnosis.findings, [], "{diagnosis}");
}

/// github.com/NVIDIA/nccl/issues/2345: rails that are cut off from each other, and a ring with edges that cross them.
#[test]
fn rails_without_a_way_between_them() {
    let mut hand = hand();
    for _ in 0..6 {
        hand.count("h1", Counter::Device(DeviceCounter::LocalAckTimeout), 9);
        hand.count("h1", Counter::Device(DeviceCounter::RetriesExceeded), 1);
        hand.count("leaf0:1", Counter::Port(PortCounter::ReceiveDiscards), 7);
        hand.second(&[("h1", busy(0.001))]);
    }
    let diagnosis = diagnosed(&hand);
    let finding = misconfigured(&diagnosis, "h1");
    let discards = finding
        .evidence
        .iter()
        .find(|e| e.port == "leaf0:1")
        .unwrap();
    assert!(discards.says.contains("no route"), "{diagnosis}");
    assert!(finding.summary.contains("rails"), "{diagnosis}");
}
