//! Distributions of flow sizes, as cumulative tables.

use softfabric_units::Bytes;
use thiserror::Error;

/// A piecewise linear cumulative distribution of flow sizes.
///
/// Invariant: at least two points, sizes and shares never fall, the first share is 0 and the last is 1.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    points: Vec<(u64, f64)>,
}

/// A table that is not a cumulative distribution.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("point {place} of the size distribution, {found}, is wrong: {needed}")]
pub struct SizeDistributionError {
    /// Which point, from zero.
    pub place: usize,
    /// The point.
    pub found: String,
    /// What is allowed.
    pub needed: &'static str,
}

impl SizeDistribution {
    /// Web search (DCTCP, SIGCOMM 2010), as the HPCC code ships it in `WebSearch_distribution.txt`.
    pub fn web_search() -> Self {
        Self::known(&[
            (0, 0.0),
            (10_000, 15.0),
            (20_000, 20.0),
            (30_000, 30.0),
            (50_000, 40.0),
            (80_000, 53.0),
            (200_000, 60.0),
            (1_000_000, 70.0),
            (2_000_000, 80.0),
            (5_000_000, 90.0),
            (10_000_000, 97.0),
            (30_000_000, 100.0),
        ])
    }

    /// Facebook's Hadoop (Roy et al., SIGCOMM 2015), as the HPCC code ships it in `FbHdp_distribution.txt`.
    pub fn hadoop() -> Self {
        Self::known(&[
            (0, 0.0),
            (100, 1.0),
            (200, 2.0),
            (300, 5.0),
            (350, 15.0),
            (400, 20.0),
            (500, 30.0),
            (600, 40.0),
            (700, 50.0),
            (1_000, 60.0),
            (2_000, 67.0),
            (7_000, 70.0),
            (30_000, 72.0),
            (50_000, 82.0),
            (80_000, 87.0),
            (120_000, 90.0),
            (300_000, 95.0),
            (1_000_000, 97.5),
            (2_000_000, 99.0),
            (10_000_000, 100.0),
        ])
    }

    /// A distribution from points (size, percent of flows that are not larger).
    ///
    /// # Errors
    /// If the points do not rise from 0 to 100 %.
    pub fn from_percent(points: &[(Bytes, f64)]) -> Result<Self, SizeDistributionError> {
        let fail = |place: usize, needed| {
            let found = match points.get(place) {
                Some((bytes, percent)) => format!("{bytes} at {percent} %"),
                None => "which is not there".to_owned(),
            };
            Err(SizeDistributionError {
                place,
                found,
                needed,
            })
        };
        for (place, (bytes, percent)) in points.iter().enumerate() {
            if !(0.0..=100.0).contains(percent) {
                return fail(place, "percent go from 0 to 100");
            }
            if place > 0 && (points[place - 1].0 > *bytes || points[place - 1].1 > *percent) {
                return fail(place, "neither size nor percent may fall");
            }
        }
        match (points.first(), points.last()) {
            (Some((_, first)), _) if *first != 0.0 => fail(0, "the first point is at 0 %"),
            (_, Some((_, last))) if *last != 100.0 => {
                fail(points.len() - 1, "the last point is at 100 %")
            }
            (_, Some((bytes, _))) if bytes.is_zero() => {
                fail(points.len() - 1, "the largest flow has at least 1 byte")
            }
            _ if points.len() < 2 => fail(points.len(), "two points are needed"),
            _ => Ok(Self {
                points: (points.iter())
                    .map(|(bytes, percent)| (bytes.as_u64(), percent / 100.0))
                    .collect(),
            }),
        }
    }

    /// The size below which `share` of all flows lie; at least 1 byte.
    pub fn at(&self, share: f64) -> Bytes {
        let above = self.points.partition_point(|(_, upto)| *upto <= share);
        let above = above.clamp(1, self.points.len() - 1);
        let (low, from) = self.points[above - 1];
        let (high, upto) = self.points[above];
        let width = upto - from;
        let within = if width > 0.0 {
            ((share - from) / width).clamp(0.0, 1.0)
        } else {
            1.0
        };
        let size = low as f64 + (high - low) as f64 * within;
        Bytes::new((size as u64).max(1))
    }

    /// The mean size in bytes.
    pub fn mean(&self) -> f64 {
        (self.points.windows(2))
            .map(|pair| (pair[0].0 + pair[1].0) as f64 / 2.0 * (pair[1].1 - pair[0].1))
            .sum()
    }

    /// The points: size, and share of flows that are not larger.
    pub fn points(&self) -> impl Iterator<Item = (Bytes, f64)> + '_ {
        (self.points.iter()).map(|(size, share)| (Bytes::new(*size), *share))
    }

    fn known(percent: &[(u64, f64)]) -> Self {
        Self {
            points: (percent.iter())
                .map(|(size, percent)| (*size, percent / 100.0))
                .collect(),
        }
    }
}
