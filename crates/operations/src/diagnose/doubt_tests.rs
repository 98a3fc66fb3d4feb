//! When an all-clear, or certainty, would be wrong: counters that do not tell, losses that are somebody else's.

use softfabric_telemetry::{ClassCounter, Counter, DeviceCounter, PortCounter};
use softfabric_units::Class;

use super::samples::{DATA, Flow, Hand, busy, hand, hand_of};
use super::*;
use crate::topology::LinkLayer;
use crate::{PortSample, Width};

/// h11 holds its leaf for good, and others wait for it.
fn storm(hand: &mut Hand, seconds: usize) {
    let held = |held| Flow {
        held,
        pauses: 3_000,
        ..Flow::default()
    };
    for _ in 0..seconds {
        hand.second(&[
            ("leaf2:3", held(0.99)),
            ("spine0:2", held(0.9)),
            ("leaf0:4", held(0.9)),
            ("h0", held(0.8)),
        ]);
    }
}

/// The same history without what `is_told` refuses, and without cables if they are not known.
fn seen(hand: &Hand, topology: &Topology, is_told: impl Fn(Counter) -> bool) -> Diagnosis {
    let mut history = History::new(topology);
    hand.for_each_change(|port, time, sample| {
        let told = sample.values.iter().copied();
        let values = told.filter(|&(counter, _)| is_told(counter)).collect();
        let up = sample.up;
        history.add_changes(port, time, &PortSample { up, values });
    });
    diagnose(topology, &history)
}

fn without_cables(topology: &Topology) -> Topology {
    let mut bare = Topology::new(topology.link_layer);
    for node in topology.nodes() {
        bare.add_node(node.name.clone(), node.kind).unwrap();
    }
    for port in topology.ports() {
        bare.add_port(port.node, port.name.clone(), port.rate)
            .unwrap();
    }
    bare
}

#[test]
fn without_cables_there_is_no_all_clear_and_hosts_that_pause_are_named() {
    let mut hand = hand();
    for _ in 0..5 {
        hand.second(&[("h0", busy(0.4))]);
    }
    let diagnosis = seen(&hand, &without_cables(&hand.topology), |_| true);
    assert_eq!(diagnosis.verdict, Verdict::NotEnoughData, "{diagnosis}");
    assert!(diagnosis.summary.starts_with("No cable is known"));
    assert_eq!(diagnosis.coverage.without_cable, 2);
    assert_eq!(diagnosis.coverage.uncabled, ["leaf0:0", "h0"]);
    storm(&mut hand, 5);
    let diagnosis = seen(&hand, &without_cables(&hand.topology), |_| true);
    assert_eq!(diagnosis.verdict, Verdict::NotEnoughData, "{diagnosis}");
    // h11's port sent the pauses; those of switches may be symptoms and are not named so.
    let (_, hosts) = diagnosis.summary.split_once("never only symptoms").unwrap();
    assert!(hosts.contains("h11 (for 50 % of the time)"), "{hosts}");
    assert!(!hosts.contains("leaf") && !hosts.contains("h0"), "{hosts}");
}

/// A few cables of many are known: what goes on beside them is not.
#[test]
fn a_few_cables_of_many_are_no_all_clear() {
    let mut hand = hand();
    for _ in 0..5 {
        let ports = ["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"];
        hand.second(&ports.map(|port| (port, busy(0.3))));
    }
    let mut topology = without_cables(&hand.topology);
    let [a, b] = ["h0", "leaf0:0"].map(|name| topology.find_port(name).unwrap());
    topology.connect(a, b).unwrap();
    let diagnosis = seen(&hand, &topology, |_| true);
    assert_eq!(diagnosis.verdict, Verdict::NotEnoughData, "{diagnosis}");
    assert!(
        diagnosis.summary.contains("14 more are in use"),
        "{}",
        diagnosis.summary
    );
}

fn is_duration(counter: Counter) -> bool {
    use ClassCounter::{PauseReceivedDuration, PauseSentDuration};
    matches!(
        counter,
        Counter::Class(_, PauseReceivedDuration | PauseSentDuration)
    )
}

/// Switches that count frames only: neither a storm nor an all-clear, but what is missing, and who sends frames.
#[test]
fn frames_without_durations_are_no_all_clear() {
    let mut hand = hand();
    storm(&mut hand, 6);
    let diagnosis = seen(&hand, &hand.topology, |counter| !is_duration(counter));
    assert_eq!(diagnosis.verdict, Verdict::NotEnoughData, "{diagnosis}");
    let summary = &diagnosis.summary;
    assert!(summary.contains("rx_prio3_pause_duration"), "{summary}");
    assert!(summary.contains("h11 (18000 frames)"), "{summary}");

    // Of all priorities together, as some drivers count.
    let diagnosis = seen(&hand, &hand.topology, |counter| match counter {
        Counter::Class(..) => false,
        Counter::Port(_) | Counter::Device(_) => true,
    });
    assert_eq!(diagnosis.verdict, Verdict::NotEnoughData, "{diagnosis}");
}

/// So few frames cannot hold anybody for long: at 100 Gb/s, one holds for 336 us at most.
#[test]
fn a_few_frames_without_durations_are_an_all_clear() {
    let mut hand = hand();
    for _ in 0..6 {
        let few = Flow {
            busy: 0.5,
            pauses: 10,
            ..Flow::default()
        };
        hand.second(&[("leaf0:4", few)]);
    }
    let diagnosis = seen(&hand, &hand.topology, |counter| !is_duration(counter));
    assert_eq!(diagnosis.verdict, Verdict::NotTheFabric, "{diagnosis}");
}

/// Where the port that would tell the duration is silent, that is a matter of coverage: one silent port is no reason to abstain.
#[test]
fn a_silent_port_is_not_a_counter_that_is_missing() {
    let mut hand = hand();
    for _ in 0..6 {
        let paused = Flow {
            busy: 0.5,
            held: 0.01,
            pauses: 1_000,
            ..Flow::default()
        };
        hand.second(&[("leaf0:4", paused)]);
    }
    // The spine tells frames and no durations, as switches do of what they send.
    let silent = hand.port("leaf0:4");
    let mut history = History::new(&hand.topology);
    hand.for_each_change(|port, time, sample| {
        let is_sent =
            |counter| matches!(counter, Counter::Class(_, ClassCounter::PauseSentDuration));
        let told = sample.values.iter().copied();
        let values = told.filter(|&(counter, _)| !is_sent(counter)).collect();
        let up = sample.up;
        if port != silent {
            history.add_changes(port, time, &PortSample { up, values });
        }
    });
    let diagnosis = diagnose(&hand.topology, &history);
    assert_eq!(diagnosis.verdict, Verdict::NotTheFabric, "{diagnosis}");
}

/// Only bytes are told: nobody knows of pauses.
#[test]
fn without_counters_of_pauses_there_is_no_all_clear() {
    let mut hand = hand();
    storm(&mut hand, 6);
    let bytes = |counter| {
        use PortCounter::{ReceiveBytes, TransmitBytes};
        matches!(counter, Counter::Port(TransmitBytes | ReceiveBytes))
    };
    let diagnosis = seen(&hand, &hand.topology, bytes);
    assert_eq!(diagnosis.verdict, Verdict::NotEnoughData, "{diagnosis}");
    assert!(
        diagnosis.summary.contains("36 of 36"),
        "{}",
        diagnosis.summary
    );
}

/// InfiniBand's counter of waiting has 32 bits and stays at its end: then nobody knows whether ports wait.
#[test]
fn a_counter_of_waiting_at_its_end_is_no_all_clear() {
    let mut hand = hand_of(LinkLayer::Infiniband);
    for _ in 0..6 {
        hand.second(&[("leaf2:3", busy(0.9))]);
    }
    let free = diagnose(&hand.topology, &hand.history());
    assert_eq!(free.verdict, Verdict::NotTheFabric, "{free}");
    let mut history = hand.history();
    let wait = Counter::Port(PortCounter::TransmitWait);
    for port in hand.topology.port_indices() {
        history.set_width(port, wait, Width::StaysAt(0));
    }
    let stuck = diagnose(&hand.topology, &history);
    assert_eq!(stuck.verdict, Verdict::NotEnoughData, "{stuck}");
    assert!(stuck.summary.contains("PortXmitWait"), "{}", stuck.summary);
}

fn drops(hand: &mut Hand, port: &str, class: u8, counter: ClassCounter, amount: u64) {
    hand.count(port, Counter::Class(Class::new(class), counter), amount);
}

fn missing(hand: &mut Hand, amount: u64) {
    let missing = Counter::Device(DeviceCounter::SequenceErrorReceived);
    hand.count("h0", missing, amount);
}

fn misconfiguration(diagnosis: &Diagnosis) -> Option<&Finding> {
    let mut findings = diagnosis.findings.iter();
    findings.find(|finding| finding.cause == Cause::Misconfiguration)
}

/// TCP loses packets all the time in class 0, and one RDMA packet was missing once: that is no misconfiguration.
#[test]
fn losses_of_another_class_are_not_rdmas() {
    let mut hand = hand();
    for second in 0..10 {
        drops(&mut hand, "leaf0:0", 0, ClassCounter::EgressDropped, 1_000);
        if second == 4 {
            missing(&mut hand, 1);
        }
        hand.second(&[("h0", busy(0.3))]);
    }
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(diagnosis.verdict, Verdict::NotTheFabric, "{diagnosis}");

    // More of them, and at other times than the drops.
    let mut hand = self::hand();
    for second in 0..12 {
        match second % 6 {
            0 => drops(&mut hand, "leaf0:0", 0, ClassCounter::EgressDropped, 1_000),
            3 => missing(&mut hand, 50),
            _ => {}
        }
        hand.second(&[("h0", busy(0.3))]);
    }
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(misconfiguration(&diagnosis), None, "{diagnosis}");
    assert_eq!(diagnosis.verdict, Verdict::NotEnoughData, "{diagnosis}");

    // At the same times: likely, and not certain.
    let mut hand = self::hand();
    for second in 0..12 {
        if second % 6 == 0 {
            drops(&mut hand, "leaf0:0", 0, ClassCounter::IngressDropped, 1_000);
            missing(&mut hand, 50);
        }
        hand.second(&[("h0", busy(0.3))]);
    }
    let diagnosis = diagnose(&hand.topology, &hand.history());
    let finding = misconfiguration(&diagnosis).unwrap();
    assert_eq!(finding.certainty, Certainty::Moderate);
    assert!(finding.summary.contains("not lossless"), "{diagnosis}");
}

/// What a watchdog drops on purpose is a sign of the storm, and not of RED.
#[test]
fn drops_of_a_watchdog_are_those_of_the_storm() {
    let mut hand = hand();
    let stuck = Flow {
        held: 0.99,
        ..Flow::default()
    };
    for second in 0..8 {
        if second == 2 {
            drops(&mut hand, "leaf2:3", 3, ClassCounter::WatchdogStorms, 1);
        }
        if second >= 2 {
            drops(&mut hand, "leaf2:3", 3, ClassCounter::WatchdogDropped, 900);
            drops(&mut hand, "leaf2:3", 3, ClassCounter::EgressDropped, 700);
            missing(&mut hand, 100);
        }
        hand.second(&[("leaf2:3", stuck)]);
    }
    let diagnosis = diagnose(&hand.topology, &hand.history());
    assert_eq!(
        diagnosis.verdict,
        Verdict::Cause(Cause::HostStorm),
        "{diagnosis}"
    );
    assert_eq!(misconfiguration(&diagnosis), None, "{diagnosis}");
}

/// Nobody tells durations, but the watchdog of the switch has seen the storm.
#[test]
fn a_watchdog_tells_of_a_storm_that_no_duration_shows() {
    let mut hand = hand();
    storm(&mut hand, 3);
    drops(&mut hand, "leaf2:3", 3, ClassCounter::WatchdogStorms, 1);
    storm(&mut hand, 3);
    // And one that is only a symptom.
    drops(&mut hand, "spine0:2", 3, ClassCounter::WatchdogStorms, 1);
    storm(&mut hand, 3);
    let diagnosis = seen(&hand, &hand.topology, |counter| !is_duration(counter));
    assert_eq!(
        diagnosis.verdict,
        Verdict::Cause(Cause::HostStorm),
        "{diagnosis}"
    );
    assert_eq!(diagnosis.findings.len(), 1);
    let finding = &diagnosis.findings[0];
    assert_eq!(
        (finding.node.as_str(), finding.certainty),
        ("h11", Certainty::Moderate)
    );
    assert_eq!(finding.ports, ["h11", "leaf2:3"]);
}

/// The watchdog let the queue go, and its rule goes on dropping.
#[test]
fn drops_after_a_watchdogs_end_are_a_misconfiguration() {
    let mut hand = hand();
    for second in 0..10 {
        match second {
            1 => drops(&mut hand, "leaf2:3", 3, ClassCounter::WatchdogStorms, 1),
            3 => drops(&mut hand, "leaf2:3", 3, ClassCounter::WatchdogRestored, 1),
            _ => {}
        }
        if (1..3).contains(&second) {
            drops(&mut hand, "leaf2:3", 3, ClassCounter::WatchdogDropped, 900);
        }
        if second >= 5 {
            drops(&mut hand, "leaf2:3", 3, ClassCounter::EgressDropped, 500);
            missing(&mut hand, 100);
        }
        let held = Flow {
            held: 0.01,
            pauses: 1,
            ..busy(0.3)
        };
        hand.second(&[("leaf2:3", held)]);
    }
    let diagnosis = diagnose(&hand.topology, &hand.history());
    let finding = misconfiguration(&diagnosis).unwrap();
    assert!(
        finding.summary.contains("was not taken away"),
        "{diagnosis}"
    );
    assert_eq!(finding.node, "leaf2");
}

/// Evidence names the counter that told: the switch is silent, and the host's own counters speak.
#[test]
fn evidence_names_the_end_that_was_heard() {
    let mut hand = hand();
    storm(&mut hand, 6);
    let silent = hand.port("leaf2:3");
    let history = hand.history_without(|port, _| port == silent);
    let diagnosis = diagnose(&hand.topology, &history);
    assert_eq!(
        diagnosis.verdict,
        Verdict::Cause(Cause::HostStorm),
        "{diagnosis}"
    );
    let evidence = &diagnosis.findings[0].evidence;
    let named: Vec<(&str, &str)> = evidence
        .iter()
        .map(|evidence| (evidence.port.as_str(), evidence.counter.as_str()))
        .collect();
    assert!(
        named.contains(&("h11", "tx_prio3_pause_duration")),
        "{named:?}"
    );
    assert!(named.contains(&("h11", "port_rcv_data")), "{named:?}");
    assert!(
        named.iter().all(|&(port, _)| port != "leaf2:3"),
        "{named:?}"
    );
}

/// A host that does not obey pauses gets a host's advice.
#[test]
fn advice_for_a_host_speaks_of_hosts() {
    let mut hand = hand();
    for _ in 0..5 {
        let frames = Counter::Class(DATA, ClassCounter::PauseReceived);
        hand.count("h2", frames, 1_000);
        hand.second(&[("h2", busy(0.9))]);
    }
    let diagnosis = diagnose(&hand.topology, &hand.history());
    let finding = misconfiguration(&diagnosis).unwrap();
    assert_eq!(finding.node, "h2");
    let confirm = finding.confirm.join(" ");
    assert!(
        confirm.contains("mlnx_qos") && !confirm.contains("switch"),
        "{confirm}"
    );
    assert!(
        finding
            .actions
            .iter()
            .all(|action| !action.act.contains("route around"))
    );
}
