//! Baselines: as files, their outliers, and what differs from them.

use super::*;
use crate::diagnose::Certainty;
use crate::diagnose::facts::Facts;
use crate::diagnose::samples::{Flow, Hand, busy, hand};
use crate::recording::{Recording, Skipped};
use crate::watch::{Moment, Options, View, Watch};
use softfabric_units::{Span, Time};

const FULL: f64 = 97e9;

/// Every pair of so many hosts, at `bandwidth` of client and server.
fn pairs(hosts: u32, bandwidth: impl Fn(u32, u32) -> f64) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for client in 0..hosts {
        for server in (0..hosts).filter(|&server| server != client) {
            pairs.push(Pair {
                client: format!("h{client}"),
                server: format!("h{server}"),
                round: (client + server) % hosts,
                rail: None,
                bandwidth_bps: bandwidth(client, server),
                latency_ns: Some(2_000.0),
            });
        }
    }
    pairs
}

/// A little more for some than for others, as measurements are.
fn usual(client: u32, server: u32) -> f64 {
    FULL * (1.0 - 0.003 * f64::from((client * 7 + server * 3) % 5))
}

fn baseline(pairs: Vec<Pair>) -> Baseline {
    Baseline::new("by hand", Conditions::default(), pairs)
}

#[test]
fn what_was_written_is_read() {
    let mut written = baseline(pairs(4, usual));
    written.conditions = Conditions {
        made: "2026-11-30T09:12:44Z".to_owned(),
        command: "softfabric commission lab.toml".to_owned(),
        seed: Some(7),
        settings: [("MTU".to_owned(), "4096".to_owned())].into(),
        ..Conditions::default()
    };
    written.ports.push(PortAtWork {
        port: "leaf0:3".to_owned(),
        busy: 0.97,
        held: 0.0,
        marked: 0.001,
        queue_bytes: Some(61_440),
    });
    let text = written.write().unwrap();
    assert_eq!(Baseline::read(&text).unwrap(), written);
    assert!((written.hosts[2].sends_bps / FULL - 1.0).abs() < 0.02);
}

#[test]
fn errors_name_the_field() {
    let text = baseline(pairs(2, usual)).write().unwrap();
    let error = |text: &str| Baseline::read(text).unwrap_err().to_string();
    assert!(error("hello").contains("softfabric_baseline"));
    assert!(error("{}").contains("softfabric_baseline"));
    let newer = text.replace("\"softfabric_baseline\": 1", "\"softfabric_baseline\": 9");
    assert!(error(&newer).contains("version 9"), "{}", error(&newer));
    let wrong = text.replacen("\"server\": \"h1\"", "\"server\": 5", 1);
    let said = error(&wrong);
    assert!(
        said.contains("field `pairs[0].server`") && said.contains("line 1") && said.contains("5"),
        "{said}"
    );
    let missing = text.replacen("\"latency_ns\"", "\"latency_days\"", 1);
    assert!(
        error(&missing).contains("latency_days"),
        "{}",
        error(&missing)
    );
    let negative = text.replacen("\"bandwidth_bps\": 9", "\"bandwidth_bps\": -9", 1);
    assert_ne!(negative, text);
    assert!(
        error(&negative).contains("pairs[0].bandwidth_bps"),
        "{}",
        error(&negative)
    );
}

#[test]
fn equals_have_no_outliers() {
    let told = baseline(pairs(8, usual)).outliers();
    assert_eq!(told.found, []);
    assert!(told.least_bps < told.median_bps && told.median_bps < told.most_bps);
    // Without any scatter, one percent is still nobody's concern.
    let told = baseline(pairs(
        8,
        |client, _| if client == 3 { FULL * 0.99 } else { FULL },
    ))
    .outliers();
    assert_eq!(told.found, []);
}

#[test]
fn a_slow_host_is_one_outlier_and_not_seven_pairs() {
    let slow = baseline(pairs(8, |client, server| match server {
        5 => FULL * 0.4,
        _ => usual(client, server),
    }));
    let found: Vec<Of> = slow.outliers().found.into_iter().map(|o| o.of).collect();
    assert_eq!(found, [Of::Receives("h5".to_owned())]);
}

#[test]
fn a_slow_way_is_a_pair() {
    let slow = baseline(pairs(8, |client, server| match (client, server) {
        (2, 6) => FULL * 0.5,
        _ => usual(client, server),
    }));
    let found: Vec<Of> = slow.outliers().found.into_iter().map(|o| o.of).collect();
    assert_eq!(found, [Of::Pair("h2".to_owned(), "h6".to_owned(), None)]);
    let said = slow.outliers().found[0].to_string();
    assert!(
        said.contains("from h2 to h6") && said.contains("48.5 Gb/s"),
        "{said}"
    );
}

#[test]
fn a_slow_rail_explains_its_pairs() {
    let mut all = Vec::new();
    for rail in 0..8 {
        let share = if rail == 3 { 0.5 } else { 1.0 };
        all.extend(
            pairs(4, |client, server| usual(client, server) * share)
                .into_iter()
                .map(|pair| Pair {
                    rail: Some(rail),
                    ..pair
                }),
        );
    }
    let found: Vec<Of> = baseline(all)
        .outliers()
        .found
        .into_iter()
        .map(|o| o.of)
        .collect();
    assert_eq!(found, [Of::Rail(3)]);
}

#[test]
fn a_long_way_is_told() {
    let mut far = pairs(6, usual);
    far[7].latency_ns = Some(9_000.0);
    let found = baseline(far).outliers().found;
    assert_eq!(found.len(), 1);
    assert!(matches!(found[0].of, Of::Latency(..)), "{found:?}");
}

fn second(second: u64) -> Time {
    Time::ZERO + Span::seconds(second)
}

fn watched(hand: Hand, seconds: u64, baseline: Baseline) -> View {
    let recording = Recording {
        about: String::new(),
        history: hand.history(),
        topology: hand.topology,
        skipped: Skipped::default(),
        start_unix_ns: 0,
    };
    let options = Options::of_interval(Span::seconds(1)).with_window(Span::seconds(40));
    let mut watch = Watch::new(options).with_baseline(baseline);
    let mut view = watch.look(&recording, second(2));
    for now in 3..=seconds {
        view = watch.look(&recording, second(now));
    }
    view
}

fn commissioned() -> Baseline {
    let mut baseline = baseline(pairs(12, usual));
    for leaf in 0..3 {
        for port in 0..6 {
            baseline.ports.push(PortAtWork {
                port: format!("leaf{leaf}:{port}"),
                busy: 0.97,
                held: 0.0,
                marked: 0.01,
                queue_bytes: Some(60_000),
            });
        }
    }
    baseline
}

/// All hosts send at so much of their rate.
fn all_send(load: f64, but: &str, less: f64) -> Vec<(String, Flow)> {
    let share = |name: &str| if name == but { less } else { load };
    (0..12)
        .map(|host| format!("h{host}"))
        .map(|name| (name.clone(), busy(share(&name))))
        .collect()
}

fn pass(hand: &mut Hand, flows: &[(String, Flow)]) {
    let flows: Vec<(&str, Flow)> = flows
        .iter()
        .map(|(name, flow)| (name.as_str(), *flow))
        .collect();
    hand.second(&flows);
}

#[test]
fn a_host_that_alone_lags_behind_deviates_whatever_the_load() {
    for load in [0.9, 0.5] {
        let mut hand = hand();
        for now in 0..60 {
            let less = if now < 30 { load } else { load * 0.5 };
            pass(&mut hand, &all_send(load, "h7", less));
        }
        let view = watched(hand, 60, commissioned());
        let found = &view.compared.as_ref().unwrap().deviations;
        let [deviation] = found.as_slice() else {
            panic!("{load}: {found:#?}")
        };
        assert_eq!(
            (deviation.measure, &*deviation.place),
            (Measure::Sends, "h7")
        );
        assert_eq!(deviation.since.as_nanos(), 30_000_000_000);
        assert_eq!(deviation.certainty, Certainty::High);
        let open: Vec<&str> = view
            .open_episodes()
            .map(|episode| episode.title())
            .collect();
        assert_eq!(open, ["sends less than its baseline"]);
    }
}

/// Less to do for everybody is no deviation, nor is a job on a few hosts.
#[test]
fn less_load_is_no_deviation() {
    for load in [0.9, 0.3, 0.05] {
        let mut hand = hand();
        for now in 0..60 {
            let load = if now < 30 { 0.9 } else { load };
            pass(&mut hand, &all_send(load, "", 0.0));
        }
        let view = watched(hand, 60, commissioned());
        assert_eq!(view.compared.unwrap().deviations, [], "{load}");
    }
    let mut hand = hand();
    for _ in 0..60 {
        hand.second(&[("h0", busy(0.9)), ("h1", busy(0.9)), ("h2", busy(0.9))]);
    }
    let view = watched(hand, 60, commissioned());
    assert_eq!(view.compared.unwrap().deviations, []);
}

#[test]
fn a_port_that_is_held_or_marks_more_than_its_load_explains_deviates() {
    let mut hand = hand();
    for now in 0..60 {
        let mut flow = busy(0.5);
        if now >= 30 {
            flow.held = 0.3;
            flow.pauses = 100;
        }
        // A fifth of a million and a half packets a second.
        let marks = Flow {
            marks: 300_000,
            ..busy(0.5)
        };
        let few = Flow {
            marks: 8_000,
            ..busy(0.5)
        };
        hand.second(&[
            ("leaf0:4", flow),
            ("leaf1:4", if now >= 40 { marks } else { few }),
        ]);
    }
    // The diagnosis has its own word on the port that is held; here is what the baseline says, before that.
    let history = hand.history();
    let facts = Facts::new(&hand.topology, &history);
    let moment = |time: Time| Moment::from_nanos(time.as_nanos());
    let (_, deviations) = Deviations::default().compare(&commissioned(), &facts, &history, moment);
    let mut found: Vec<(Measure, String, u64)> = deviations
        .into_iter()
        .map(|d| (d.measure, d.place, d.since.as_nanos() / 1_000_000_000))
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            (Measure::Held, "leaf0:4".to_owned(), 30),
            (Measure::Marked, "leaf1:4".to_owned(), 40)
        ]
    );
}

/// What a storm does to its victims is the storm's, and is not told again as deviations of theirs.
#[test]
fn what_a_finding_explains_is_no_deviation_of_its_own() {
    let mut hand = hand();
    for now in 0..60 {
        let mut flows = all_send(0.5, "", 0.0);
        if now >= 20 {
            let stuck = Flow {
                held: 1.0,
                pauses: 1_000,
                ..Flow::default()
            };
            let held = Flow {
                held: 0.8,
                pauses: 900,
                ..busy(0.1)
            };
            flows.push(("leaf2:3".to_owned(), Flow { pauses: 0, ..stuck }));
            flows.push(("spine0:2".to_owned(), held));
            flows.push(("leaf0:4".to_owned(), held));
            flows[0].1 = held;
        }
        pass(&mut hand, &flows);
    }
    let view = watched(hand, 60, commissioned());
    let open: Vec<&str> = view
        .open_episodes()
        .map(|episode| episode.title())
        .collect();
    assert_eq!(open, ["host storm"]);
    let compared = view.compared.as_ref().unwrap();
    assert_eq!(compared.deviations, []);
    // The ports leaf2:3 and leaf0:4, and h0, which sends less.
    assert_eq!(compared.explained, 3);
}

/// One stretch is chance.
#[test]
fn a_moment_is_no_deviation() {
    let mut hand = hand();
    for now in 0..60 {
        let held = if now % 10 == 9 { 0.6 } else { 0.0 };
        hand.second(&[(
            "leaf0:4",
            Flow {
                held,
                pauses: 3,
                ..busy(0.4)
            },
        )]);
    }
    assert_eq!(
        watched(hand, 60, commissioned())
            .compared
            .unwrap()
            .deviations,
        []
    );
}
