use softfabric_units::{Bytes, Span, Time};

use super::*;
use crate::tcp::{CubicParameters, DctcpParameters};

const SEGMENT: u64 = 1000;

fn config(congestion: CongestionAlgorithm) -> TcpConfig {
    TcpConfig {
        congestion,
        maximum_segment: Bytes::new(SEGMENT),
        ..TcpConfig::default()
    }
}

fn acknowledged(bytes: u64, round_trip: Span) -> Acknowledged {
    Acknowledged {
        bytes,
        position: 0,
        sent: 0,
        latest: Some(round_trip),
        smoothed: Some(round_trip),
    }
}

/// One round trip of acknowledgements, a segment each.
fn round(congestion: &mut Congestion, now: Time, round_trip: Span) {
    for _ in 0..congestion.window() / SEGMENT {
        congestion.grow(now, &acknowledged(SEGMENT, round_trip));
    }
}

#[test]
fn slow_start_doubles_and_reno_adds_a_segment() {
    let mut reno = Congestion::new(&config(CongestionAlgorithm::Reno), SEGMENT);
    let span = Span::micros(100);
    assert_eq!(reno.window(), 10 * SEGMENT);
    round(&mut reno, Time::ZERO, span);
    assert_eq!(reno.window(), 20 * SEGMENT);
    reno.lose(20 * SEGMENT);
    assert_eq!((reno.window(), reno.is_slow_start()), (10 * SEGMENT, false));
    for more in 1..=5 {
        round(&mut reno, Time::ZERO, span);
        assert_eq!(reno.window(), (10 + more) * SEGMENT);
    }
    // RFC 5681: after a timeout one segment, slow start up to half of what was under way, and no second halving.
    reno.time_out(15 * SEGMENT, false);
    assert_eq!((reno.window(), reno.threshold), (SEGMENT, 7_500));
    reno.time_out(SEGMENT, true);
    assert_eq!((reno.window(), reno.threshold), (SEGMENT, 7_500));
    round(&mut reno, Time::ZERO, span);
    round(&mut reno, Time::ZERO, span);
    round(&mut reno, Time::ZERO, span);
    assert_eq!((reno.window(), reno.is_slow_start()), (7_500, false));
}

/// One acknowledgement for several segments moves the window as far as several would; slow start ends where it must.
#[test]
fn stretched_acknowledgements_count_bytes() {
    let mut reno = Congestion::new(&config(CongestionAlgorithm::Reno), SEGMENT);
    reno.threshold = 12 * SEGMENT;
    reno.grow(Time::ZERO, &acknowledged(10 * SEGMENT, Span::micros(1)));
    assert_eq!(
        reno.window(),
        12 * SEGMENT,
        "eight of the ten count towards the next segment"
    );
    reno.grow(Time::ZERO, &acknowledged(4 * SEGMENT, Span::micros(1)));
    assert_eq!(reno.window(), 13 * SEGMENT);
}

/// W_cubic(t) = C · (t − K)³ + W_max from the loss on (RFC 9438, 4.2): within 2 % over two epochs' length, at a round trip of
/// 100 ms, so that windows are far above what Reno would have.
#[test]
fn cubic_follows_its_curve() {
    let parameters = CubicParameters {
        hystart: false,
        ..CubicParameters::default()
    };
    let mut cubic = Congestion::new(&config(CongestionAlgorithm::Cubic(parameters)), SEGMENT);
    let span = Span::millis(100);
    cubic.window = 2_000 * SEGMENT;
    cubic.lose(2_000 * SEGMENT);
    assert_eq!(cubic.window(), 1_400 * SEGMENT);
    // K = ∛(600 / 0.4) = 11.447 s.
    let plateau = 11.447_142;
    let mut now = Time::ZERO;
    let mut checked = 0;
    while now.as_seconds_f64() < 2.0 * plateau {
        round(&mut cubic, now, span);
        now += span;
        let distance = now.as_seconds_f64() - plateau;
        let expected = 0.4 * distance * distance * distance + 2_000.0;
        let found = cubic.window() as f64 / SEGMENT as f64;
        assert!(
            (found / expected - 1.0).abs() < 0.02,
            "{now}: {found} for {expected}"
        );
        checked += 1;
    }
    assert!(checked > 200);
}

/// In small networks CUBIC is Reno's equal (RFC 9438, 4.3): with α = 3(1 − β)/(1 + β) both have the same mean.
#[test]
fn cubic_is_reno_friendly_where_windows_are_small() {
    let mut cubic = Congestion::new(
        &config(CongestionAlgorithm::Cubic(CubicParameters::default())),
        SEGMENT,
    );
    let span = Span::micros(50);
    cubic.window = 40 * SEGMENT;
    cubic.lose(40 * SEGMENT);
    assert_eq!(cubic.window(), 28 * SEGMENT);
    let mut now = Time::ZERO;
    for _ in 0..10 {
        round(&mut cubic, now, span);
        now += span;
    }
    // 28 + 10 · 0.5294, up to what ten rounds of a growing window lose in the division.
    let found = cubic.window() as f64 / SEGMENT as f64;
    assert!((found - 33.3).abs() < 0.6, "{found}");
}

#[test]
fn cubic_converges_fast() {
    let mut cubic = Cubic::new(CubicParameters::default());
    assert_eq!(cubic.reduce(100 * SEGMENT, SEGMENT), 70 * SEGMENT);
    // Lost again at 80, below the last maximum: the next plateau is at 80 · 1.7 / 2 = 68, below 80.
    assert_eq!(cubic.reduce(80 * SEGMENT, SEGMENT), 56 * SEGMENT);
    let span = Some(Span::millis(1));
    let start = Time::ZERO + Span::seconds(1);
    cubic.grow(start, 56 * SEGMENT, SEGMENT, SEGMENT, span);
    // K = ∛((68 − 56) / 0.4) = 3.107 s after the start the window is at 68.
    let at = start + Span::micros(3_107_232);
    let mut window = 56 * SEGMENT;
    for _ in 0..2_000 {
        window = cubic.grow(at, window, SEGMENT, SEGMENT, span);
    }
    let found = window as f64 / SEGMENT as f64;
    // Without fast convergence the plateau is at 80.
    assert!(found >= 68.0, "{found}");
    assert!(found < 75.0, "{found}");
}

/// α ← (1 − g) · α + g · F, once a window; the window loses α/2 (RFC 8257, 3.3).
#[test]
fn dctcp_smooths_the_share_of_marks() {
    let parameters = DctcpParameters {
        gain: 0.25,
        initial_alpha: 1.0,
    };
    let mut dctcp = Congestion::new(&config(CongestionAlgorithm::Dctcp(parameters)), SEGMENT);
    let news = |bytes, position, sent| Acknowledged {
        bytes,
        position,
        sent,
        latest: None,
        smoothed: None,
    };
    dctcp.observe(&news(1_000, 1_001, 11_001), false);
    assert_eq!(dctcp.alpha(), Some(0.75));
    dctcp.observe(&news(4_000, 5_001, 13_001), true);
    dctcp.observe(&news(6_000, 11_001, 14_001), false);
    assert_eq!(dctcp.alpha(), Some(0.75), "the window is not over");
    dctcp.observe(&news(1_000, 12_001, 21_001), true);
    // 5,000 of 11,000 bytes.
    let alpha = 0.75 * 0.75 + 0.25 * 5.0 / 11.0;
    assert!((dctcp.alpha().unwrap() - alpha).abs() < 1e-12);
    dctcp.mark();
    assert_eq!(dctcp.window(), (10_000.0 * (1.0 - alpha / 2.0)) as u64);
    // A loss still halves (RFC 8257, 3.5).
    let before = dctcp.window();
    dctcp.lose(1_000_000);
    assert_eq!(dctcp.window(), before / 2);
}

/// RFC 9406: round trips that rise by 4 ms slow the start down fourfold; five such rounds end it.
#[test]
fn hystart_leaves_slow_start_when_round_trips_rise() {
    let mut cubic = Congestion::new(
        &config(CongestionAlgorithm::Cubic(CubicParameters::default())),
        SEGMENT,
    );
    let mut position = 1;
    let mut rounds_of = |cubic: &mut Congestion, span: Span, rounds: u64| {
        for _ in 0..rounds {
            let window = cubic.window();
            for _ in 0..window / SEGMENT {
                position += SEGMENT;
                let news = Acknowledged {
                    position,
                    sent: position + window,
                    ..acknowledged(SEGMENT, span)
                };
                cubic.grow(Time::ZERO, &news);
            }
        }
    };
    rounds_of(&mut cubic, Span::millis(10), 3);
    assert!(cubic.is_slow_start());
    assert!(cubic.window() >= 75 * SEGMENT, "{}", cubic.window());
    let before = cubic.window();
    rounds_of(&mut cubic, Span::millis(15), 1);
    let growth = cubic.window() as f64 / before as f64;
    assert!(growth < 1.5, "{growth}: slowed down after eight samples");
    rounds_of(&mut cubic, Span::millis(15), 6);
    assert!(!cubic.is_slow_start());
}
