//! A fabric that is watched while a storm comes and goes.

use softfabric_telemetry::{Counter, PortCounter};

use super::*;
use crate::diagnose::Cause;
use crate::diagnose::samples::{Flow, Hand, busy, hand};
use crate::recording::Skipped;

/// The cable to h11 is held by h11 for good, and so are the ports on the way to it.
fn storm() -> Vec<(&'static str, Flow)> {
    let stuck = Flow {
        held: 1.0,
        pauses: 1_000,
        ..Flow::default()
    };
    let slowed = Flow {
        held: 0.6,
        busy: 0.2,
        pauses: 1_000,
        ..Flow::default()
    };
    let mut flows = vec![("leaf2:3", Flow { pauses: 0, ..stuck })];
    for port in [
        "spine0:2", "spine1:2", "leaf0:4", "leaf1:5", "h0", "h1", "h4",
    ] {
        flows.push((port, slowed));
    }
    flows
}

fn calm() -> Vec<(&'static str, Flow)> {
    ["h0", "h1", "leaf0:4", "spine0:2", "leaf2:3"]
        .into_iter()
        .map(|port| (port, busy(0.3)))
        .collect()
}

fn recording(hand: Hand) -> Recording {
    Recording {
        about: "by hand".to_owned(),
        history: hand.history(),
        topology: hand.topology,
        skipped: Skipped::default(),
        start_unix_ns: 0,
    }
}

fn second(second: u64) -> Time {
    Time::ZERO + Span::seconds(second)
}

fn moment(second: u64) -> Moment {
    Moment::from_nanos(second * 1_000_000_000)
}

/// Calm until second 20, a storm until second 50, calm again.
fn storm_that_ends() -> Recording {
    let mut hand = hand();
    for now in 0..90 {
        match now {
            20..50 => hand.second(&storm()),
            _ => hand.second(&calm()),
        }
    }
    recording(hand)
}

fn options() -> Options {
    Options::of_interval(Span::seconds(1)).with_window(Span::seconds(30))
}

#[test]
fn a_finding_begins_goes_on_and_ends() {
    let recording = storm_that_ends();
    let mut watch = Watch::new(options());
    let mut views: Vec<View> = Vec::new();
    for now in 2..=90 {
        views.push(watch.look(&recording, second(now)));
    }
    let at = |now: usize| &views[now - 2];
    assert_eq!(at(19).episodes, [], "nothing is wrong yet");
    assert_eq!(at(19).held_ports(), 0);
    assert_eq!(at(19).many_held_since(), None);
    let storm = at(40);
    let open: Vec<&Episode> = storm.open_episodes().collect();
    let [episode] = open.as_slice() else {
        panic!("{open:#?}")
    };
    assert_eq!(episode.finding().unwrap().cause, Cause::HostStorm);
    assert_eq!(episode.place(), "h11");
    assert_eq!(episode.since, moment(20));
    assert_eq!(storm.many_held_since(), Some(moment(20)));
    assert_eq!(storm.held_ports(), 8);
    // The longer it lasts, the more of the window it fills; it began when it began.
    let later = at(49).open_episodes().next().unwrap();
    assert_eq!((later.since, later.until), (moment(20), moment(49)));
    let last = views.last().unwrap();
    assert_eq!(last.open_episodes().count(), 0);
    assert_eq!(last.episodes.len(), 1, "{:#?}", last.episodes);
    let ended = &last.episodes[0];
    assert!(ended.has_ended);
    assert_eq!(ended.since, moment(20));
    assert!(
        (moment(49)..=moment(51)).contains(&ended.until),
        "{:?}",
        ended.until
    );
    // A storm that has ended is known to have ended within a few stretches, though it still fills the window.
    assert_eq!(at(55).open_episodes().count(), 0);
}

#[test]
fn a_second_storm_much_later_is_another_one() {
    let mut hand = hand();
    for now in 0..120 {
        match now {
            20..40 | 90..110 => hand.second(&storm()),
            _ => hand.second(&calm()),
        }
    }
    let recording = recording(hand);
    let mut watch = Watch::new(options());
    let views: Vec<View> = (2..=109)
        .map(|now| watch.look(&recording, second(now)))
        .collect();
    let last = views.last().unwrap();
    let sinces: Vec<Moment> = last.episodes.iter().map(|episode| episode.since).collect();
    assert_eq!(sinces, [moment(90), moment(20)]);
    assert_eq!(
        last.episodes
            .iter()
            .map(|e| e.has_ended)
            .collect::<Vec<_>>(),
        [false, true]
    );
}

#[test]
fn the_source_is_told_from_the_ports_that_are_held() {
    let recording = storm_that_ends();
    let mut watch = Watch::new(options());
    let view = watch.look(&recording, second(45));
    let port = |name: &str| &view.ports[recording.topology.find_port(name).unwrap().index()];
    let node = |name: &str| &view.nodes[recording.topology.find_node(name).unwrap().index()];
    assert_eq!(node("h11").state, State::Source);
    assert_eq!(node("h0").state, State::Held);
    assert_eq!(node("h5").state, State::Calm);
    let worst = view.worst_ports();
    assert_eq!(view.ports[worst[0].index()].state, State::Source);
    let h0 = port("h0");
    assert!((h0.held.unwrap() - 0.6).abs() < 1e-9, "{h0:?}");
    assert_eq!(h0.class.map(softfabric_units::Class::as_u8), Some(3));
    assert!((port("h11").holds.unwrap() - 1.0).abs() < 1e-9);
    // A fifth of 100 Gb/s, without gaps.
    let sends = h0.transmits.unwrap().as_bps() as f64;
    assert!((sends / 20e9 - 1.0).abs() < 0.01, "{sends}");
    assert_eq!(port("leaf0:0").receives, h0.transmits);
    let stretch = view.trend.last().unwrap();
    assert_eq!((stretch.held_ports, stretch.worst), (8, 1.0));
    assert_eq!(stretch.to, moment(45));
}

#[test]
fn a_port_that_is_down_or_silent_is_not_calm() {
    let mut hand = hand();
    for now in 0..40 {
        if now == 10 {
            hand.cut("leaf0:4");
        }
        hand.second(&calm());
    }
    let h5 = hand.port("h5");
    let history = hand.history_without(|port, second| port == h5 && second > 20);
    let recording = Recording {
        history,
        ..recording(hand)
    };
    let mut watch = Watch::new(options());
    let view = watch.look(&recording, second(40));
    let state = |name: &str| view.ports[recording.topology.find_port(name).unwrap().index()].state;
    assert!(state("leaf0:4") >= State::Down);
    assert!(state("spine0:0") >= State::Down);
    assert_eq!(state("leaf1:0"), State::Calm);
    // The other end of its cable is heard, and tells what it carries.
    assert_eq!(
        view.ports[h5.index()].receives,
        Some(softfabric_units::Rate::bps(0))
    );
}

/// What was cut out of a history is judged as if nothing else had been.
#[test]
fn a_window_of_a_history_is_a_history() {
    let recording = storm_that_ends();
    let window = Window {
        from: second(30),
        to: second(40),
    };
    let cut = recording.history.within(window);
    assert_eq!(cut.span(), Some(window));
    let whole = recording.history.growth();
    let part = cut.growth();
    let port = recording.topology.find_port("h0").unwrap();
    for counter in Counter::all() {
        assert_eq!(
            part.of(port, counter, window),
            whole.of(port, counter, window),
            "{counter}"
        );
    }
    let mut forgot = recording.history.clone();
    forgot.forget_before(second(80));
    assert_eq!(forgot.span().unwrap().from, second(80));
    let bytes = Counter::Port(PortCounter::TransmitBytes);
    assert_eq!(
        forgot.last(port, bytes),
        recording.history.last(port, bytes)
    );
}
