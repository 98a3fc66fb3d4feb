//! One fabric, made by hand, with each thing that can be wrong with it.
//!
//! Leaves 0 to 2 have hosts h0–h3, h4–h7, h8–h11 at their ports 0–3, and spines 0 and 1 at their ports 4 and 5.

use softfabric_telemetry::{ClassCounter, Counter, DeviceCounter};
use softfabric_units::Class;

use super::samples::{DATA, Flow, Hand, busy, hand, hand_of, leaf_spine};
use super::*;
use crate::topology::LinkLayer;

fn held(held: f64, busy: f64) -> Flow {
    Flow {
        busy,
        held,
        pauses: 1_000,
        ..Flow::default()
    }
}

/// Runs the same second `times` times.
fn repeat(hand: &mut Hand, times: usize, flows: &[(&str, Flow)]) {
    for _ in 0..times {
        hand.second(flows);
    }
}

/// h11 pauses for good; h0 and h4 send to it, and h1 shares a cable with them.
fn storm(hand: &mut Hand, seconds: usize) {
    let stuck = Flow {
        busy: 0.0,
        held: 0.99,
        pauses: 0,
        ..Flow::default()
    };
    repeat(
        hand,
        seconds,
        &[
            ("leaf2:3", stuck),
            ("spine0:2", held(0.95, 0.0)),
            ("leaf0:4", held(0.9, 0.05)),
            ("leaf1:4", held(0.9, 0.05)),
            ("h0", held(0.85, 0.0)),
            ("h4", held(0.85, 0.0)),
            ("h1", held(0.8, 0.1)),
        ],
    );
}

#[test]
fn a_storm_is_found_at_the_host_that_sends_it() {
    let mut hand = hand();
    repeat(&mut hand, 5, &[("h0", busy(0.4)), ("leaf2:3", busy(0.4))]);
    storm(&mut hand, 5);
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::Cause(Cause::HostStorm));
    let finding = &diagnosis.findings[0];
    assert_eq!(finding.node, "h11");
    assert_eq!(finding.ports, ["h11", "leaf2:3"]);
    assert_eq!(finding.certainty, Certainty::High);
    assert!(finding.explains > 0.99, "{}", finding.explains);
    assert_eq!(finding.from, Span::seconds(5));
    assert_eq!(finding.until, Span::seconds(10));
    let trail: Vec<&str> = finding
        .trail
        .iter()
        .map(|step| step.port.as_str())
        .collect();
    assert_eq!(trail, ["h0", "leaf0:4", "spine0:2", "leaf2:3"]);
    let symptoms: Vec<&str> = diagnosis.symptoms.iter().map(|s| s.port.as_str()).collect();
    assert_eq!(
        symptoms,
        ["spine0:2", "leaf0:4", "leaf1:4", "h0", "h4", "h1"]
    );
    let victims: Vec<&str> = diagnosis.victims.iter().map(|v| v.host.as_str()).collect();
    assert_eq!(victims, ["h0", "h4", "h1"]);
    assert_eq!(diagnosis.findings.len(), 1);
}

#[test]
fn a_slow_receiver_takes_its_pauses_back() {
    let mut hand = hand();
    repeat(
        &mut hand,
        6,
        &[
            ("leaf2:3", held(0.6, 0.4)),
            ("spine0:2", held(0.55, 0.4)),
            ("leaf0:4", held(0.5, 0.4)),
            ("h0", held(0.5, 0.4)),
        ],
    );
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::Cause(Cause::SlowReceiver));
    assert_eq!(diagnosis.findings[0].node, "h11");
}

#[test]
fn incast_has_its_root_at_a_port_that_nothing_holds() {
    let mut hand = hand();
    let root = Flow {
        busy: 0.99,
        marks: 1_000,
        ..Flow::default()
    };
    repeat(
        &mut hand,
        6,
        &[
            ("leaf2:3", root),
            // A bystander at full speed, without a queue.
            ("leaf2:0", busy(0.99)),
            ("leaf2:5", busy(0.5)),
            ("spine0:2", held(0.5, 0.5)),
            ("spine1:2", held(0.5, 0.5)),
            ("leaf0:4", held(0.6, 0.25)),
            ("leaf1:5", held(0.6, 0.25)),
            ("h0", held(0.7, 0.25)),
            ("h5", held(0.7, 0.25)),
        ],
    );
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::Cause(Cause::Incast));
    assert_eq!(diagnosis.findings[0].ports[0], "leaf2:3");
    assert!(diagnosis.findings[0].explains > 0.9);
}

#[test]
fn a_circle_of_ports_that_nothing_moves_is_a_deadlock() {
    let mut hand = hand();
    let locked = Flow {
        held: 1.0,
        ..Flow::default()
    };
    let circle = [
        ("leaf0:4", locked),
        ("spine0:1", locked),
        ("leaf1:5", locked),
        ("spine1:0", locked),
    ];
    let mut flows = circle.to_vec();
    flows.push(("h0", locked));
    repeat(&mut hand, 2, &[("h0", busy(0.5))]);
    repeat(&mut hand, 5, &flows);
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::Cause(Cause::Deadlock));
    let mut ports = diagnosis.findings[0].ports.clone();
    ports.sort();
    assert_eq!(ports, ["leaf0:4", "leaf1:5", "spine0:1", "spine1:0"]);

    // The same circle with a storm that it waits for is a storm.
    let mut hand = self::hand();
    flows.push(("leaf1:0", locked));
    repeat(&mut hand, 5, &flows);
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::Cause(Cause::HostStorm));
    assert_eq!(diagnosis.findings[0].node, "h4");
}

#[test]
fn a_circle_that_moves_is_no_deadlock() {
    let mut hand = hand();
    let circle: Vec<_> = ["leaf0:4", "spine0:1", "leaf1:5", "spine1:0"]
        .map(|port| (port, held(0.6, 0.3)))
        .to_vec();
    repeat(&mut hand, 6, &circle);
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_ne!(diagnosis.verdict, Verdict::Cause(Cause::Deadlock));
}

#[test]
fn uneven_ways_are_a_collision_unless_one_of_them_failed() {
    let overloaded = [
        ("leaf0:4", busy(0.99)),
        ("leaf0:5", busy(0.2)),
        ("h0", held(0.4, 0.5)),
        ("h1", held(0.4, 0.5)),
    ];
    let mut hand = hand();
    repeat(&mut hand, 6, &overloaded);
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::Cause(Cause::HashCollision));
    assert_eq!(diagnosis.findings[0].ports[0], "leaf0:4");

    let mut hand = self::hand();
    repeat(
        &mut hand,
        2,
        &[("leaf0:4", busy(0.5)), ("leaf0:5", busy(0.5))],
    );
    hand.cut("leaf0:5");
    repeat(
        &mut hand,
        6,
        &[
            ("leaf0:4", busy(0.99)),
            ("h0", held(0.4, 0.5)),
            ("h1", held(0.4, 0.5)),
        ],
    );
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::Cause(Cause::FailedLink));
    assert_eq!(diagnosis.findings[0].ports, ["leaf0:5", "spine1:0"]);
    assert_eq!(diagnosis.findings.len(), 1, "{diagnosis}");
}

#[test]
fn a_cable_that_damages_packets_is_named_by_the_end_that_sees_it() {
    let damaged = |damaged| Flow {
        busy: 0.5,
        damaged,
        ..Flow::default()
    };
    let mut hand = hand();
    repeat(&mut hand, 6, &[("leaf0:4", damaged(100))]);
    hand.count(
        "h11",
        Counter::Device(DeviceCounter::SequenceErrorReceived),
        500,
    );
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::Cause(Cause::DegradedLink));
    assert_eq!(diagnosis.findings[0].ports, ["leaf0:4", "spine0:0"]);

    // Within the specification.
    let mut hand = self::hand();
    repeat(&mut hand, 4, &[("leaf0:4", damaged(0))]);
    repeat(&mut hand, 1, &[("leaf0:4", damaged(2))]);
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::NotTheFabric, "{diagnosis}");
}

#[test]
fn drops_without_pause_where_others_pause_are_a_misconfiguration() {
    let mut hand = hand();
    let drops = Flow {
        busy: 0.9,
        drops: 1_000,
        ..Flow::default()
    };
    for _ in 0..5 {
        hand.count(
            "h0",
            Counter::Device(DeviceCounter::SequenceErrorReceived),
            50,
        );
        hand.second(&[
            ("leaf0:4", drops),
            ("leaf1:4", drops),
            ("h8", held(0.01, 0.5)),
        ]);
    }
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::Cause(Cause::Misconfiguration));
    let finding = &diagnosis.findings[0];
    assert_eq!(finding.node, "spine0");
    assert!(
        finding.summary.contains("sends no pause"),
        "{}",
        finding.summary
    );
}

#[test]
fn a_neighbour_that_does_not_obey_is_named() {
    let mut hand = hand();
    for _ in 0..5 {
        let frames = Counter::Class(DATA, ClassCounter::PauseReceived);
        hand.count("h2", frames, 1_000);
        hand.second(&[
            ("h2", busy(0.9)),
            ("h3", held(0.2, 0.5)),
            ("leaf0:4", busy(0.99)),
        ]);
    }
    let diagnosis = diagnose(&hand.topology, &hand.history());
    let finding = diagnosis
        .findings
        .iter()
        .find(|finding| finding.cause == Cause::Misconfiguration);
    assert_eq!(finding.unwrap().node, "h2", "{diagnosis}");
}

#[test]
fn a_switch_that_pauses_for_no_reason_is_a_misconfiguration() {
    let mut hand = hand();
    repeat(
        &mut hand,
        6,
        &[("leaf0:4", held(0.7, 0.05)), ("h0", held(0.5, 0.05))],
    );
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::Cause(Cause::Misconfiguration));
    assert_eq!(diagnosis.findings[0].node, "spine0");
}

#[test]
fn marks_everywhere_but_at_the_root_are_a_misconfiguration() {
    let mut hand = hand();
    let marks = Flow {
        busy: 0.5,
        marks: 100,
        ..Flow::default()
    };
    repeat(
        &mut hand,
        6,
        &[
            ("leaf2:3", busy(0.99)),
            ("leaf1:0", marks),
            ("spine0:2", held(0.5, 0.45)),
            ("leaf0:4", held(0.5, 0.45)),
        ],
    );
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::Cause(Cause::Misconfiguration));
    assert_eq!(diagnosis.findings[0].node, "leaf2");
}

#[test]
fn load_alone_is_no_alarm() {
    let mut hand = hand();
    repeat(
        &mut hand,
        10,
        &[
            ("h0", busy(0.95)),
            ("leaf0:4", busy(0.95)),
            ("spine0:2", busy(0.95)),
            ("leaf2:3", busy(0.95)),
            ("h5", held(0.01, 0.9)),
        ],
    );
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::NotTheFabric, "{diagnosis}");
    assert!(diagnosis.summary.contains("95 %"), "{}", diagnosis.summary);
}

#[test]
fn one_burst_is_no_alarm() {
    let mut hand = hand();
    repeat(&mut hand, 10, &[("leaf2:3", busy(0.5))]);
    repeat(
        &mut hand,
        1,
        &[("leaf2:3", busy(0.99)), ("spine0:2", held(0.3, 0.6))],
    );
    repeat(&mut hand, 10, &[("leaf2:3", busy(0.5))]);
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::NotTheFabric, "{diagnosis}");
}

#[test]
fn two_storms_are_two_findings() {
    let mut hand = hand();
    let stuck = Flow {
        held: 1.0,
        ..Flow::default()
    };
    repeat(
        &mut hand,
        6,
        &[
            ("leaf2:3", stuck),
            ("spine0:2", held(0.9, 0.0)),
            ("leaf0:4", held(0.9, 0.0)),
            ("leaf1:1", stuck),
            ("spine1:1", held(0.9, 0.0)),
            ("leaf0:5", held(0.9, 0.0)),
        ],
    );
    let diagnosis = diagnose(&hand.topology, &hand.history());
    let mut nodes: Vec<&str> = diagnosis.findings.iter().map(|f| f.node.as_str()).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["h11", "h5"], "{diagnosis}");
    assert!(
        diagnosis
            .findings
            .iter()
            .all(|f| f.cause == Cause::HostStorm)
    );
}

/// Either end of a cable tells the same: without h11's and the leaf's counters at both ends the trail is lost there.
#[test]
fn a_missing_end_is_made_up_for_and_two_are_not() {
    let mut hand = hand();
    storm(&mut hand, 6);
    let without = |names: &[&str]| {
        let lost: Vec<PortIndex> = names.iter().map(|name| hand.port(name)).collect();
        let history = hand.history_without(|port, _| lost.contains(&port));
        diagnose(&hand.topology, &history)
    };
    let seen = without(&["leaf2:3", "spine0:2", "leaf0:4", "h0"]);
    assert_eq!(seen.verdict, Verdict::Cause(Cause::HostStorm), "{seen}");
    assert_eq!(seen.findings[0].node, "h11");
    let lost = without(&["leaf2:3", "h11"]);
    assert_eq!(lost.verdict, Verdict::NotEnoughData, "{lost}");
    assert!(lost.summary.contains("leaf2"), "{}", lost.summary);
    assert_eq!(lost.coverage.silent, ["leaf2:3", "h11"]);
}

#[test]
fn a_fifth_of_all_samples_may_be_lost() {
    let mut hand = hand();
    repeat(&mut hand, 5, &[("h0", busy(0.4)), ("leaf2:3", busy(0.4))]);
    storm(&mut hand, 15);
    for seed in 0..20 {
        let diagnosis = diagnose(&hand.topology, &hand.history_with_losses(0.2, seed));
        assert_eq!(
            diagnosis.verdict,
            Verdict::Cause(Cause::HostStorm),
            "seed {seed}: {diagnosis}"
        );
        assert_eq!(diagnosis.findings[0].node, "h11", "seed {seed}");
    }
}

/// The port that would count the damage is silent: hosts still know that packets are missing.
#[test]
fn losses_that_nobody_explains_are_no_all_clear() {
    let mut hand = hand();
    let damaged = Flow {
        busy: 0.5,
        damaged: 100,
        ..Flow::default()
    };
    for _ in 0..5 {
        let missing = Counter::Device(DeviceCounter::SequenceErrorReceived);
        hand.count("h0", missing, 100);
        hand.second(&[("leaf0:4", damaged)]);
    }
    let silent = hand.port("spine0:0");
    let history = hand.history_without(|port, _| port == silent);
    let diagnosis = diagnose(&hand.topology, &history);
    assert_eq!(diagnosis.verdict, Verdict::NotEnoughData, "{diagnosis}");
    assert!(
        diagnosis.summary.contains("packets are missing"),
        "{}",
        diagnosis.summary
    );
    let heard = diagnose(&hand.topology, &hand.history());
    assert_eq!(heard.verdict, Verdict::Cause(Cause::DegradedLink));
}

/// Two ports of a circle of which one is silent: its neighbours tell that nothing moves.
#[test]
fn a_deadlock_is_seen_with_a_silent_port() {
    let mut hand = hand();
    let locked = Flow {
        held: 1.0,
        ..Flow::default()
    };
    let circle = ["leaf0:4", "spine0:1", "leaf1:5", "spine1:0"].map(|port| (port, locked));
    repeat(&mut hand, 2, &[("h0", busy(0.5)), ("leaf0:4", busy(0.2))]);
    repeat(&mut hand, 6, &circle);
    let silent = [hand.port("spine0:1"), hand.port("leaf1:4")];
    let history = hand.history_without(|port, _| silent.contains(&port));
    let diagnosis = diagnose(&hand.topology, &history);
    assert_eq!(
        diagnosis.verdict,
        Verdict::Cause(Cause::Deadlock),
        "{diagnosis}"
    );
}

#[test]
fn without_samples_there_is_no_answer() {
    let hand = hand();
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::NotEnoughData);
    let mut hand = self::hand();
    repeat(&mut hand, 5, &[("h0", busy(0.4))]);
    let few = hand.history_without(|port, _| port.0 % 4 != 0);
    assert_eq!(
        diagnose(&hand.topology, &few).verdict,
        Verdict::NotEnoughData
    );
}

#[test]
fn over_infiniband_waiting_for_credit_tells_the_same() {
    let mut hand = hand_of(LinkLayer::Infiniband);
    repeat(
        &mut hand,
        6,
        &[
            ("leaf2:3", busy(1.0)),
            ("spine0:2", held(0.5, 0.5)),
            ("leaf0:4", held(0.6, 0.4)),
            ("h0", held(0.7, 0.3)),
        ],
    );
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(
        diagnosis.verdict,
        Verdict::Cause(Cause::Incast),
        "{diagnosis}"
    );
    let finding = &diagnosis.findings[0];
    assert_eq!(finding.ports[0], "leaf2:3");
    assert!(
        finding.summary.contains("congestion tree"),
        "{}",
        finding.summary
    );
    assert!(finding.avoid.iter().all(|advice| !advice.contains("PFC")));
}

/// No advice turns PFC off; where that comes to mind, its price is said.
#[test]
fn advice_has_its_price_and_never_turns_pfc_off() {
    let topology = leaf_spine(1, 1, 2);
    for link_layer in [LinkLayer::Ethernet, LinkLayer::Infiniband] {
        for cause in Cause::ALL {
            let mut topology = topology.clone();
            topology.link_layer = link_layer;
            let mut finding = Finding {
                cause,
                summary: String::new(),
                ports: vec!["leaf0:0".to_owned(), "h0".to_owned()],
                node: "h0".to_owned(),
                certainty: Certainty::High,
                from: Span::ZERO,
                until: Span::ZERO,
                explains: 1.0,
                evidence: Vec::new(),
                trail: Vec::new(),
                confirm: Vec::new(),
                actions: Vec::new(),
                avoid: Vec::new(),
                weight: 0.0,
                source: None,
            };
            advice::advise(&topology, &mut finding);
            assert!(!finding.actions.is_empty() && !finding.confirm.is_empty());
            for action in &finding.actions {
                assert!(!action.price.is_empty(), "{}", action.act);
                let act = action.act.to_lowercase();
                let turns_off = ["off", "disable"].iter().any(|word| act.contains(word));
                assert!(!(turns_off && act.contains("pfc")), "{}", action.act);
            }
            for advice in finding.avoid.iter().filter(|advice| advice.contains("PFC")) {
                assert!(advice.contains("lost"), "{advice}");
            }
        }
    }
}

/// The same second in other classes: each priority is a lane of its own.
#[test]
fn the_priority_that_is_paused_is_named() {
    let mut hand = hand();
    let five = Class::new(5);
    for _ in 0..5 {
        let time = Counter::Class(five, ClassCounter::PauseReceivedDuration);
        let pauses = Counter::Class(five, ClassCounter::PauseTransitions);
        hand.count("leaf0:1", time, 990_000_000_000);
        hand.count("leaf0:1", pauses, 0);
        hand.second(&[]);
    }
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(
        diagnosis.verdict,
        Verdict::Cause(Cause::HostStorm),
        "{diagnosis}"
    );
    assert!(
        diagnosis.summary.contains("priority 5"),
        "{}",
        diagnosis.summary
    );
    assert_eq!(
        diagnosis.findings[0].evidence[0].counter,
        "rx_prio5_pause_duration"
    );
}
