//! Against published analyses, with the tolerance stated at each.

use super::*;
use crate::tcp::{CongestionAlgorithm, CubicParameters, DctcpParameters};

const SEGMENT: u64 = 1448;

fn config(congestion: CongestionAlgorithm) -> TcpConfig {
    TcpConfig {
        congestion,
        maximum_segment: Bytes::new(SEGMENT),
        timestamps: false,
        send_buffer: Bytes::mib(64),
        receive_buffer: Bytes::mib(64),
        ..TcpConfig::default()
    }
}

/// The square-root law: with an acknowledgement a packet and losses at every 1/p-th packet, throughput is
/// (MSS / RTT) · √(3 / 2p) (Mathis, Semke, Mahdavi, Ott, CCR 1997: C = √(3/2) for periodic losses). Within 10 % for p from 1/100
/// to 1/5000.
#[test]
fn reno_keeps_the_square_root_law() {
    for every in [100_u64, 500, 1_000, 5_000] {
        let mut world = World::new(Path::clean(Rate::gbps(100), Span::millis(5)));
        let mut count = 0;
        world.dropper = Box::new(move |_, _, _| {
            count += 1;
            count % every == 0
        });
        let settings = TcpConfig {
            delayed_acknowledgement: None,
            ..config(CongestionAlgorithm::Reno)
        };
        world.add(settings, u64::MAX >> 20, Time::ZERO);
        // The first losses end slow start.
        world.run(Time::ZERO + Span::seconds(5));
        let before = world.flows[0].read;
        world.run(Time::ZERO + Span::seconds(65));
        let found = (world.flows[0].read - before) as f64 / 60.0;
        let round_trip = 0.010;
        let law = SEGMENT as f64 / round_trip * (1.5 * every as f64).sqrt();
        let ratio = found / law;
        println!("1/{every}: {found:.0} B/s, {ratio:.3} of the law");
        assert!((0.9..1.1).contains(&ratio), "1/{every}: {ratio}");
        assert_eq!(world.flows[0].ends[0].statistics().timeouts, 0);
    }
}

/// What the analysis of DCTCP says of `flows` long flows (Alizadeh et al., SIGCOMM 2010, 3.3), in packets.
#[derive(Debug)]
struct Analysis {
    top: f64,
    amplitude: f64,
    alpha: f64,
}

/// What was measured of the queue, from its 1st to its 99th percentile, and of alpha.
#[derive(Debug)]
struct Measured {
    low: f64,
    top: f64,
    empty: f64,
    alpha: f64,
}

const MARKS_FROM: usize = 40;

fn dctcp_queue(flows: usize) -> (Analysis, Measured) {
    let mut world = World::new(Path {
        marks_from: MARKS_FROM,
        ..Path::clean(Rate::gbps(10), Span::micros(50))
    });
    world.watch_from = Time::ZERO + Span::millis(50);
    let settings = TcpConfig {
        ecn: true,
        delayed_acknowledgement: None,
        ..config(CongestionAlgorithm::Dctcp(DctcpParameters::default()))
    };
    for _ in 0..flows {
        world.add(settings, u64::MAX >> 20, Time::ZERO);
    }
    let (mut alphas, mut samples) = (0.0, 0.0);
    for step in 0..2_500 {
        world.run(Time::ZERO + Span::millis(50) + Span::micros(100) * step);
        alphas += world.flows[0].ends[0].alpha().unwrap();
        samples += 1.0;
    }
    assert_eq!(world.dropped, 0);
    let total: f64 = world.watched.iter().map(|span| span.as_seconds_f64()).sum();
    let quantile = |share: f64| {
        let mut sum = 0.0;
        let found = world.watched.iter().position(|span| {
            sum += span.as_seconds_f64();
            sum >= share * total
        });
        found.unwrap() as f64
    };
    let measured = Measured {
        low: quantile(0.01),
        top: quantile(0.99),
        empty: world.watched[0].as_seconds_f64() / total,
        alpha: alphas / samples,
    };
    let packet = SEGMENT as f64 + 14.0 + 20.0 + 20.0 + 24.0;
    let (product, threshold, n) = (
        10e9 / 8.0 * 100e-6 / packet,
        MARKS_FROM as f64,
        flows as f64,
    );
    let analysis = Analysis {
        top: threshold + n,
        amplitude: 0.5 * (2.0 * n * (product + threshold)).sqrt(),
        alpha: (2.0 * n / (product + threshold)).sqrt(),
    };
    (analysis, measured)
}

/// DCTCP's queue tops out at K + N packets, its amplitude is ½ · √(2 N (C·RTT + K)), and α is √(2 N / (C·RTT + K))
/// (Alizadeh et al., SIGCOMM 2010, equations 4 to 9), for flows that move as one: C·RTT = 82 packets, K = 40. The top within
/// 2 packets, the amplitude within 15 %, α within 20 %; and the link is never idle, as K is above a seventh of C·RTT (their
/// 3.4).
#[test]
fn dctcps_queue_is_where_its_analysis_has_it() {
    for flows in [1, 2, 4] {
        let (analysis, measured) = dctcp_queue(flows);
        let amplitude = measured.top - measured.low;
        println!("{flows}: {analysis:?} {measured:?}");
        assert!((measured.top - analysis.top).abs() <= 2.0);
        assert!((amplitude / analysis.amplitude - 1.0).abs() < 0.15);
        assert!((measured.alpha / analysis.alpha - 1.0).abs() < 0.2);
        assert!(measured.empty < 1e-9);
    }
}

/// Jain's index of the throughputs of flows that share a bottleneck: (Σx)² / (n Σx²).
fn fairness(world: &World, before: &[u64]) -> f64 {
    let shares: Vec<f64> = world
        .flows
        .iter()
        .zip(before)
        .map(|(flow, before)| (flow.read - before) as f64)
        .collect();
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|x| x * x).sum::<f64>())
}

/// Four flows that start one after another share a bottleneck fairly: an index of 0.95 and more over a second, and nearly all
/// of the link.
#[test]
fn flows_share_fairly() {
    for (name, congestion, marks_from) in [
        ("reno", CongestionAlgorithm::Reno, usize::MAX),
        (
            "cubic",
            CongestionAlgorithm::Cubic(CubicParameters::default()),
            usize::MAX,
        ),
        (
            "dctcp",
            CongestionAlgorithm::Dctcp(DctcpParameters::default()),
            40,
        ),
    ] {
        let mut world = World::new(Path {
            marks_from,
            room: 200,
            ..Path::clean(Rate::gbps(1), Span::micros(250))
        });
        let settings = TcpConfig {
            ecn: marks_from < usize::MAX,
            ..config(congestion)
        };
        for flow in 0..4 {
            world.add(
                settings,
                u64::MAX >> 20,
                Time::ZERO + Span::millis(100) * flow,
            );
        }
        world.run(Time::ZERO + Span::seconds(3));
        let before: Vec<u64> = world.flows.iter().map(|flow| flow.read).collect();
        world.run(Time::ZERO + Span::seconds(4));
        let index = fairness(&world, &before);
        let total: u64 =
            world.flows.iter().map(|flow| flow.read).sum::<u64>() - before.iter().sum::<u64>();
        let used = total as f64 * 8.0 / 1e9 * (SEGMENT as f64 + 78.0) / SEGMENT as f64;
        println!("{name}: fairness {index:.4}, {used:.3} of the link");
        assert!(index > 0.95, "{name}: {index}");
        assert!(used > 0.97, "{name}: {used}");
    }
}

/// A long flow that its window limits gets W / RTT.
#[test]
fn throughput_is_the_window_over_the_round_trip() {
    let mut world = World::new(Path::clean(Rate::gbps(100), Span::micros(500)));
    let settings = TcpConfig {
        receive_buffer: Bytes::new(1_000_000),
        ..config(CongestionAlgorithm::Reno)
    };
    world.add(settings, 200_000_000, Time::ZERO);
    world.run(Time::ZERO + Span::seconds(10));
    // 1 MB, less what the scale rounds off, every 1.0001 ms.
    let found = world.goodput(0, Time::ZERO);
    assert!((found / 8e9 - 1.0).abs() < 0.05, "{found}");
}
