//! Seeded randomness that is the same on every machine.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers: xoshiro256++, seeded through SplitMix64.
///
/// Every part that needs chance (a switch's marking, a host's arrivals) owns a stream derived from the run's seed and
/// its own number, so that adding a part does not move the numbers of another. Logarithms come from `libm`, which
/// gives the same bits everywhere.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of `seed`.
    pub fn from_seed(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Stream number `stream` of `seed`: independent of every other number's.
    pub fn stream(seed: u64, stream: u64) -> Self {
        // One SplitMix64 step over the stream number keeps neighbouring streams apart.
        let mut mixed = stream.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self::from_seed(seed ^ mixed ^ (mixed >> 31))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number of 0.0..1.0 with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `probability` (never at 0 or less, always at 1 or more).
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && (probability >= 1.0 || self.unit() < probability)
    }

    /// A number of `0..bound`, without bias (Lemire's method).
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            if product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// An exponentially distributed number of the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// Shuffles `items` (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden values: a change here changes every seeded result that anybody has published.
    #[test]
    fn streams_do_not_move() {
        let mut random = Random::stream(1, 0);
        let first: Vec<_> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(first, GOLDEN);
        assert_ne!(Random::stream(1, 1).bits(), first[0]);
        assert_ne!(Random::stream(2, 0).bits(), first[0]);
    }
    const GOLDEN: [u64; 3] = [
        5226295891941712017,
        5547022123706608281,
        18144476329041699521,
    ];

    #[test]
    fn moments() {
        let mut random = Random::from_seed(7);
        let mean = (0..100_000).map(|_| random.exponential(3.0)).sum::<f64>() / 1e5;
        assert!((mean - 3.0).abs() < 0.05, "{mean}");
        let hits = (0..100_000).filter(|_| random.chance(0.25)).count();
        assert!((hits as f64 / 1e5 - 0.25).abs() < 0.01, "{hits}");
        let mut seen = [0; 7];
        (0..70_000).for_each(|_| seen[random.below(7) as usize] += 1);
        assert!(seen.iter().all(|n| (9_000..11_000).contains(n)), "{seen:?}");
        assert!(!random.chance(0.0) && random.chance(1.0));
    }

    #[test]
    fn a_shuffle_keeps_everything() {
        let mut items: Vec<_> = (0..100).collect();
        Random::from_seed(3).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
