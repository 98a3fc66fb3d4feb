//! Histories: wraps, resets, late and missing samples, and counters that never move.

use proptest::prelude::*;
use softfabric_telemetry::{Counter, PortCounter};

use super::*;
use crate::topology::{LinkLayer, NodeKind};

const BYTES: Counter = Counter::Port(PortCounter::TransmitBytes);
const PORT: PortIndex = PortIndex(0);

fn one_port() -> History {
    let mut topology = Topology::new(LinkLayer::Ethernet);
    let node = topology.add_node("h0", NodeKind::Host).unwrap();
    topology.add_port(node, "h0", None).unwrap();
    History::new(&topology)
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::seconds(seconds)
}

fn window(from: u64, to: u64) -> Window {
    Window {
        from: at(from),
        to: at(to),
    }
}

fn history(samples: &[(u64, u64)]) -> History {
    let mut history = one_port();
    for &(time, value) in samples {
        let sample = PortSample {
            up: None,
            values: vec![(BYTES, value)],
        };
        history.add(PORT, at(time), &sample);
    }
    history
}

fn grown(history: &History, from: u64, to: u64) -> Option<f64> {
    history.growth().of(PORT, BYTES, window(from, to))
}

#[test]
fn growth_between_samples_is_even() {
    let history = history(&[(0, 100), (1, 200), (2, 400)]);
    assert_eq!(grown(&history, 0, 2), Some(300.0));
    assert_eq!(grown(&history, 1, 2), Some(200.0));
    let half = Window {
        from: at(1),
        to: at(1) + Span::millis(500),
    };
    assert_eq!(history.growth().of(PORT, BYTES, half), Some(100.0));
    assert_eq!(grown(&history, 5, 6), None);
    let other = Counter::Port(PortCounter::ReceiveBytes);
    assert_eq!(history.growth().of(PORT, other, window(0, 2)), None);
}

#[test]
fn a_counter_of_32_bits_wraps_and_one_of_64_was_reset() {
    let samples = [(0, (1 << 32) - 100), (1, 50), (2, 60)];
    let mut wraps = history(&samples);
    wraps.set_width(PORT, BYTES, Width::Bits32);
    assert_eq!(grown(&wraps, 0, 2), Some(160.0));
    assert_eq!(grown(&history(&samples), 0, 2), Some(60.0));
}

#[test]
fn a_reset_of_32_bits_is_no_wrap() {
    let mut history = history(&[(0, 1_000_000), (1, 2_000_000), (2, 500), (3, 600)]);
    history.set_width(PORT, BYTES, Width::Bits32);
    assert_eq!(grown(&history, 1, 3), Some(600.0));
}

#[test]
fn a_counter_that_stays_at_its_end_says_nothing_any_more() {
    let mut history = history(&[(0, 10), (1, 20), (2, 100), (3, 100), (4, 100)]);
    history.set_width(PORT, BYTES, Width::StaysAt(100));
    assert_eq!(grown(&history, 0, 1), Some(10.0));
    assert_eq!(grown(&history, 2, 3), None);
    assert_eq!(grown(&history, 0, 4), None);
}

#[test]
fn what_was_missed_is_unknown_and_what_was_late_is_not() {
    // Second 3 comes half a second late; seconds 6 to 9 never come.
    let mut history = history(&[
        (0, 0),
        (1, 10),
        (2, 20),
        (4, 40),
        (5, 50),
        (10, 100),
        (11, 110),
    ]);
    let late = PortSample {
        up: None,
        values: vec![(BYTES, 35)],
    };
    history.add(PORT, at(3) + Span::millis(500), &late);
    assert_eq!(history.interval(PORT), Some(Span::seconds(1)));
    assert_eq!(grown(&history, 2, 3), Some(10.0));
    assert_eq!(grown(&history, 6, 8), None);
    assert_eq!(grown(&history, 10, 11), Some(10.0));
}

#[test]
fn links_go_down_and_come_back() {
    let mut history = one_port();
    for (time, up) in [
        (0, true),
        (1, true),
        (2, false),
        (3, false),
        (4, true),
        (5, true),
    ] {
        let sample = PortSample {
            up: Some(up),
            values: Vec::new(),
        };
        history.add(PORT, at(time), &sample);
    }
    let growth = history.growth();
    assert_eq!(growth.was_down(PORT, window(0, 2)), Some(false));
    assert_eq!(growth.was_down(PORT, window(0, 3)), Some(true));
    assert_eq!(growth.was_down(PORT, window(3, 4)), Some(true));
    assert_eq!(growth.was_down(PORT, window(4, 5)), Some(false));
    assert_eq!(one_port().growth().was_down(PORT, window(0, 1)), None);
}

/// A counter that stood still, one that is no longer told, and a late sample that differs: all that was told is told.
#[test]
fn what_stood_still_is_known_at_every_sample() {
    let other = Counter::Port(PortCounter::ReceiveErrors);
    let mut history = one_port();
    for time in [0, 1, 2, 4, 5] {
        let mut values = vec![(BYTES, 7)];
        if time < 4 {
            values.push((other, 3));
        }
        let up = Some(true);
        history.add(PORT, at(time), &PortSample { up, values });
    }
    let late = PortSample {
        up: Some(false),
        values: vec![(BYTES, 9), (other, 3)],
    };
    history.add(PORT, at(3), &late);
    let told = |counter| [0, 2, 3, 4, 5].map(|time| history.value_at(PORT, counter, at(time)));
    assert_eq!(told(BYTES), [7, 7, 9, 7, 7].map(Some));
    assert_eq!(told(other), [3; 5].map(Some));
    let up = [2, 3, 4].map(|time| history.up_at(PORT, at(time)));
    assert_eq!(up, [true, false, true].map(Some));
    // It was last told at 3 s.
    assert_eq!(history.growth().of(PORT, other, window(1, 3)), Some(0.0));
    assert_eq!(history.growth().of(PORT, other, window(4, 5)), None);
}

/// A window that moves: what it shows is what a history shows that never knew the rest.
#[test]
fn what_is_forgotten_changes_nothing_of_the_rest() {
    let samples: Vec<(u64, u64)> = (0..20)
        .map(|time| (time, if time < 10 { time * time } else { 100 }))
        .collect();
    let mut moving = history(&samples);
    moving.forget_before(at(8));
    assert_eq!(moving.span(), Some(window(8, 19)));
    let whole = history(&samples);
    for from in 8..19 {
        assert_eq!(
            grown(&moving, from, from + 1),
            grown(&whole, from, from + 1)
        );
    }
    assert_eq!(grown(&moving, 3, 5), None);
    moving.forget_before(at(12));
    assert_eq!(
        moving.ports[0].still, 1,
        "it takes no more room than its value"
    );
    let next = PortSample {
        up: None,
        values: vec![(BYTES, 130)],
    };
    moving.add(PORT, at(20), &next);
    assert_eq!(grown(&moving, 18, 19), Some(0.0));
    assert_eq!(grown(&moving, 19, 20), Some(30.0));
    moving.forget_before(at(100));
    assert_eq!(moving.span(), None);
    assert_eq!(moving.last(PORT, BYTES), None);
}

proptest! {
    /// The order in which samples arrive does not matter, and windows add up.
    #[test]
    fn order_does_not_matter(steps in prop::collection::vec(0u64..50, 3..40), seed in any::<u64>(), cut in 0.0..1.0f64) {
        let mut total = 0;
        let samples: Vec<(u64, u64)> = steps.iter().enumerate().map(|(time, step)| {
            total += step;
            (time as u64, total)
        }).collect();
        let mut shuffled = samples.clone();
        let mut random = softfabric_units::Random::from_seed(seed);
        for place in (1..shuffled.len()).rev() {
            shuffled.swap(place, (random.bits() % (place as u64 + 1)) as usize);
        }
        let (in_order, mixed) = (history(&samples), history(&shuffled));
        let end = steps.len() as u64 - 1;
        let middle = (end as f64 * cut) as u64;
        let whole = grown(&in_order, 0, end).unwrap();
        prop_assert_eq!(whole, (total - steps[0]) as f64);
        prop_assert_eq!(grown(&mixed, 0, end), Some(whole));
        if middle > 0 && middle < end {
            let parts = grown(&mixed, 0, middle).unwrap() + grown(&mixed, middle, end).unwrap();
            prop_assert!((parts - whole).abs() < 1e-9);
        }
    }
}
