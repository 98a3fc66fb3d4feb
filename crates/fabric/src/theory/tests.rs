//! Figures worked out elsewhere, and the models against one another.

use proptest::prelude::*;
use softfabric_units::{Bytes, Rate, Span};

use super::*;

/// p* and q* solved independently (CoNEXT'16's equations at 40 Gb/s, 1,000 B packets).
#[test]
fn fixed_points_of_the_papers() {
    for (flows, marking, queue) in [
        (2, 7.77e-4, 20.2),
        (4, 1.89e-3, 41.8),
        (8, 4.55e-3, 93.8),
        (10, 6.03e-3, 122.6),
    ] {
        let point = Dcqcn::of_the_papers(flows).fixed_point().unwrap();
        assert!(
            (point.marking / marking - 1.0).abs() < 3e-3,
            "{flows}: {point:?}"
        );
        let kilobytes = point.queue.unwrap().as_f64() / 1e3;
        assert!((kilobytes - queue).abs() < 0.06, "{flows}: {point:?}");
        assert_eq!(point.rate, Rate::bps(40_000_000_000 / u64::from(flows)));
    }
    let point = Dcqcn::of_the_papers(16).fixed_point().unwrap();
    assert!((point.marking - 1.09e-2).abs() < 1e-4, "{point:?}");
    assert_eq!(point.queue, None, "more marking than RED's slope has");
}

#[test]
fn the_solution_balances() {
    for flows in [1, 2, 3, 10, 50, 100] {
        let model = Dcqcn::of_the_papers(flows);
        let point = model.fixed_point().unwrap();
        let imbalance = |factor| model.imbalance(point.marking * factor, point.rate);
        assert!(imbalance(1.0 - 1e-9) < 0.0, "{flows}: {point:?}");
        assert!(imbalance(1.0 + 1e-9) > 0.0, "{flows}: {point:?}");
    }
}

#[test]
fn the_fluid_model_settles_at_the_fixed_point_with_short_delay() {
    for flows in [2, 10] {
        let model = Dcqcn::of_the_papers(flows);
        let run = model
            .fluid(&FluidSettings::with_delay(Span::micros(4)))
            .unwrap();
        let fixed = model.fixed_point().unwrap().queue.unwrap().as_f64();
        assert!(
            (run.mean_queue / fixed - 1.0).abs() < 0.01,
            "{flows}: {} for {fixed}",
            run.mean_queue
        );
        assert!(run.queue_deviation < 0.02 * fixed, "{flows}: {run:?}");
        assert!((run.utilisation - 1.0).abs() < 1e-3, "{run:?}");
    }
}

/// Integrated independently at 85 µs with N = 10: mean 55 KB, standard deviation 79 KB.
#[test]
fn the_fluid_model_swings_with_long_delay() {
    let model = Dcqcn::of_the_papers(10);
    let run = model
        .fluid(&FluidSettings::with_delay(Span::micros(85)))
        .unwrap();
    assert!((run.mean_queue / 55e3 - 1.0).abs() < 0.1, "{run:?}");
    assert!((run.queue_deviation / 79e3 - 1.0).abs() < 0.1, "{run:?}");
}

#[test]
fn a_trace_is_as_long_as_asked() {
    let settings = FluidSettings {
        warm_up: Span::millis(1),
        length: Span::millis(2),
        sample_every: Some(Span::micros(100)),
        ..FluidSettings::with_delay(Span::micros(4))
    };
    let run = Dcqcn::of_the_papers(2).fluid(&settings).unwrap();
    assert_eq!(run.trace.len(), 20);
    assert_eq!(run.trace[0], (Span::ZERO, Bytes::ZERO));
    assert!(run.trace.iter().any(|(_, queue)| *queue > Bytes::kb(5)));
}

#[test]
fn meaningless_questions_are_refused() {
    let mut model = Dcqcn::of_the_papers(2);
    model.kmax = model.kmin;
    let error = model.fixed_point().unwrap_err().to_string();
    assert!(error.contains("kmax above kmin"), "{error}");
    assert!(Dcqcn::of_the_papers(0).fixed_point().is_err());
    let endless = FluidSettings {
        step: Span::ZERO,
        ..FluidSettings::with_delay(Span::ZERO)
    };
    assert!(Dcqcn::of_the_papers(2).fluid(&endless).is_err());
}

/// Whole nanoseconds, rounded down, and one less where nothing is cut off, as the HPCC ns-3 code counts.
fn hpcc_time(rate: Rate, bytes: Bytes) -> Span {
    let bits = bytes.as_u64() * 8 * 1_000_000_000;
    Span::nanos(bits.div_ceil(rate.as_bps()) - 1)
}

fn message(bytes: u64) -> Message {
    Message {
        bytes: Bytes::new(bytes),
        payload: Bytes::new(1_000),
        overhead: Bytes::new(48),
    }
}

/// One flow over two 100 Gb/s links of 1 µs: figures of the HPCC ns-3 code.
#[test]
fn hpcc_single_flows() {
    let hop = Hop {
        rate: Rate::gbps(100),
        delay: Span::micros(1),
        latency: Span::ZERO,
    };
    let acknowledgement = Acknowledgement::OfSize(Bytes::new(60));
    for (bytes, nanos) in [(1, 4_014), (1_000, 4_174), (10_000_000, 834_091)] {
        let found = ideal_completion(&[hop, hop], message(bytes), acknowledgement, hpcc_time);
        assert_eq!(found, Span::nanos(nanos), "{bytes} B");
    }
    let standalone = hpcc_standalone(&[hop, hop], message(10_000_000));
    assert_eq!(standalone, Span::nanos(842_560));
}

/// Each packet over each hop, one by one.
fn stepwise(hops: &[Hop], message: Message) -> Span {
    let mut free = vec![Span::ZERO; hops.len()];
    let mut left = message.bytes.as_u64();
    let mut done = Span::ZERO;
    loop {
        let payload = left.min(message.payload.as_u64());
        left -= payload;
        let mut arrival = Span::ZERO;
        for (hop, free) in hops.iter().zip(&mut free) {
            let size = Bytes::new(payload) + message.overhead;
            *free = arrival.max(*free) + hop.rate.time_for(size);
            arrival = *free + hop.delay + hop.latency;
        }
        done = done.max(arrival);
        if left == 0 {
            return done;
        }
    }
}

proptest! {
    #[test]
    fn completion_equals_packet_by_packet(
        bytes in 0..40_000u64,
        hops in prop::collection::vec((1..400u64, 0..2_000u64, 0..900u64), 1..6),
    ) {
        let hops: Vec<_> = hops
            .into_iter()
            .map(|(gbps, delay, latency)| Hop {
                rate: Rate::gbps(gbps),
                delay: Span::nanos(delay),
                latency: Span::nanos(latency),
            })
            .collect();
        let found = ideal_completion(
            &hops,
            message(bytes),
            Acknowledgement::None,
            Rate::time_for,
        );
        prop_assert_eq!(found, stepwise(&hops, message(bytes)));
    }
}
