//! Order statistics of a set of values.

use serde::Serialize;

/// Smallest, mean, percentiles and largest of a set of values. A percentile is a value of the set (nearest rank):
/// the smallest with at least that share of the set at or below it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// The smallest.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// Nine of ten are at or below it.
    pub p90: f64,
    /// 95 of 100 are at or below it.
    pub p95: f64,
    /// 99 of 100 are at or below it.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

impl Distribution {
    /// Of these values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let rank = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
        Some(Self {
            count: values.len() as u64,
            min,
            mean: values.iter().sum::<f64>() / values.len() as f64,
            p50: rank(50),
            p90: rank(90),
            p95: rank(95),
            p99: rank(99),
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_rank() {
        let of_100 = Distribution::of((1..=100).rev().map(f64::from)).unwrap();
        assert_eq!(
            (of_100.p50, of_100.p90, of_100.p95, of_100.p99),
            (50.0, 90.0, 95.0, 99.0)
        );
        assert_eq!((of_100.min, of_100.mean, of_100.max), (1.0, 50.5, 100.0));
        let of_3 = Distribution::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!((of_3.p50, of_3.p90, of_3.p99), (2.0, 3.0, 3.0));
        assert_eq!(Distribution::of([]), None);
    }
}
