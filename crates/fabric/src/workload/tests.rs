use std::collections::BTreeSet;

use super::*;

fn nodes(count: u32) -> Vec<NodeId> {
    (0..count).map(NodeId).collect()
}

const SIZE: Bytes = Bytes::mb(1);

#[test]
fn an_incast_is_staggered() {
    let demands = incast(
        &nodes(3),
        NodeId(9),
        SIZE,
        Time::from_nanos(10),
        Span::nanos(5),
    );
    let starts: Vec<_> = demands
        .iter()
        .map(|demand| demand.start.as_nanos())
        .collect();
    assert_eq!(starts, [10, 15, 20]);
    assert!(demands.iter().all(|demand| demand.destination == NodeId(9)));
}

#[test]
fn permutations_are_derangements_and_equally_likely() {
    let hosts = nodes(4);
    let mut seen = BTreeSet::new();
    let mut identity_like = [0u32; 4];
    for seed in 0..3_000 {
        let demands = permutation(&hosts, SIZE, Time::ZERO, seed, 0);
        let to: Vec<_> = demands.iter().map(|demand| demand.destination.0).collect();
        assert!((0u32..).zip(&to).all(|(from, to)| from != *to));
        assert_eq!(to.iter().collect::<BTreeSet<_>>().len(), 4);
        identity_like[to[0] as usize] += 1;
        seen.insert(to);
    }
    assert_eq!(seen.len(), 9, "all derangements of four");
    for count in &identity_like[1..] {
        assert!((900..1_100).contains(count), "{identity_like:?}");
    }
    let again = permutation(&hosts, SIZE, Time::ZERO, 5, 0);
    assert_eq!(again, permutation(&hosts, SIZE, Time::ZERO, 5, 0));
}

#[test]
fn all_to_all_meets_everybody_once() {
    let demands = all_to_all(&nodes(5), SIZE, Time::ZERO, Span::ZERO);
    let pairs: BTreeSet<_> = demands.iter().map(|d| (d.source, d.destination)).collect();
    assert_eq!((demands.len(), pairs.len()), (20, 20));
    assert!(pairs.iter().all(|(from, to)| from != to));
    let first: BTreeSet<_> = demands[..5].iter().map(|d| d.destination).collect();
    assert_eq!(first.len(), 5, "no receiver is everybody's first");
}

#[test]
fn poisson_offers_the_load_and_the_sizes() {
    let sizes = SizeDistribution::web_search();
    let hosts = nodes(50);
    let arrivals = Poisson {
        hosts: &hosts,
        rate: Rate::gbps(100),
        load: 0.5,
        sizes: &sizes,
        start: Time::from_nanos(1_000),
        end: Time::from_nanos(100_001_000),
    };
    let demands = poisson(&arrivals, 1, 0);
    let bytes: u64 = demands.iter().map(|demand| demand.bytes.as_u64()).sum();
    let offered = bytes as f64 * 8.0 / 0.1 / 50.0 / 100e9;
    assert!((offered - 0.5).abs() < 0.03, "{offered}");
    let small = demands
        .iter()
        .filter(|demand| demand.bytes <= Bytes::kb(80))
        .count();
    let share = small as f64 / demands.len() as f64;
    assert!((share - 0.53).abs() < 0.02, "{share}");
    assert!(
        demands
            .windows(2)
            .all(|pair| pair[0].start <= pair[1].start)
    );
    assert!(
        demands
            .iter()
            .all(|demand| demand.source != demand.destination)
    );
    assert!(
        demands
            .iter()
            .all(|d| d.start >= arrivals.start && d.start < arrivals.end)
    );
    // The gaps of one host are exponential: their standard deviation is their mean.
    let of_one: Vec<_> = (demands.iter().filter(|d| d.source == hosts[7]))
        .map(|demand| demand.start.as_picos() as f64)
        .collect();
    let gaps: Vec<_> = of_one.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    let variation = variance.sqrt() / mean;
    assert!((variation - 1.0).abs() < 0.15, "{variation}");
    assert_ne!(demands, poisson(&arrivals, 2, 0));
    assert_ne!(demands, poisson(&arrivals, 1, 1));
}

#[test]
fn size_distributions() {
    let sizes = SizeDistribution::web_search();
    assert_eq!(sizes.at(0.0), Bytes::new(1));
    assert_eq!(sizes.at(0.15), Bytes::kb(10));
    assert!(sizes.at(0.35).as_u64().abs_diff(40_000) <= 1);
    assert_eq!(sizes.at(1.0), Bytes::mb(30));
    // By hand: Σ (size + size before) / 2 · share.
    assert!((sizes.mean() - 1_711_250.0).abs() < 1.0, "{}", sizes.mean());
    let error = |points: &[(u64, f64)]| {
        let points: Vec<_> = points.iter().map(|(s, p)| (Bytes::new(*s), *p)).collect();
        SizeDistribution::from_percent(&points)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error(&[(0, 0.0), (10, 60.0), (20, 50.0)]),
        "point 2 of the size distribution, 20B at 50 %, is wrong: neither size nor percent may fall"
    );
    assert!(error(&[(0, 0.0), (10, 60.0)]).contains("the last point is at 100 %"));
    assert!(error(&[(1, 5.0), (10, 100.0)]).contains("the first point is at 0 %"));
    assert!(error(&[]).contains("two points are needed"));
}
