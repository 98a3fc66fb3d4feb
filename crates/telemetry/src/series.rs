//! Values over time.

use softfabric_units::{Span, Time};

/// One value at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// When.
    pub time: Time,
    /// How much, in the series' unit.
    pub value: f64,
}

/// Samples at a fixed interval from time zero. When there are too many, the interval doubles and neighbours merge, so a
/// series never holds more than its capacity however long it runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    interval: Span,
    capacity: usize,
    reduce: Reduce,
    values: Vec<f64>,
    /// How many raw values stand behind the last entry of `values`, of `stride`.
    pending: u32,
    stride: u32,
}

/// How two neighbours become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduce {
    /// Their mean: rates.
    Mean,
    /// The larger: depths.
    Max,
    /// Their sum: counts per interval.
    Sum,
}

impl Series {
    /// An empty series of at most `capacity` values (at least two), `interval` apart at first.
    pub fn new(interval: Span, capacity: usize, reduce: Reduce) -> Self {
        Self {
            interval,
            capacity: capacity.max(2),
            reduce,
            values: Vec::new(),
            pending: 0,
            stride: 1,
        }
    }

    /// A finished series of values that are `interval` apart.
    pub fn from_values(interval: Span, reduce: Reduce, values: Vec<f64>) -> Self {
        Self {
            interval,
            capacity: values.len().max(2),
            reduce,
            values,
            pending: 0,
            stride: 1,
        }
    }

    /// How neighbours of this series merge.
    pub fn reduce(&self) -> Reduce {
        self.reduce
    }

    /// Appends the value of the next interval.
    pub fn push(&mut self, value: f64) {
        let starts = self.pending == 0 || self.pending == self.stride;
        if starts && self.values.len() == self.capacity {
            self.halve();
        }
        if self.pending > 0 && self.pending < self.stride {
            let pending = self.pending;
            if let Some(last) = self.values.last_mut() {
                *last = self.reduce.fold(*last, pending, value);
            }
            self.pending += 1;
        } else {
            self.values.push(value);
            self.pending = 1;
        }
    }

    /// The time between two values.
    pub fn interval(&self) -> Span {
        self.interval * u64::from(self.stride)
    }

    /// The values with the end of their interval.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        let interval = self.interval();
        self.values
            .iter()
            .enumerate()
            .map(move |(index, &value)| Sample {
                time: Time::ZERO + interval * (index as u64 + 1),
                value,
            })
    }

    /// The bare values.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    fn halve(&mut self) {
        let reduce = self.reduce;
        self.values = self
            .values
            .chunks(2)
            .map(|pair| {
                pair.iter()
                    .skip(1)
                    .fold(pair[0], |first, &second| reduce.fold(first, 1, second))
            })
            .collect();
        self.pending = if self.capacity.is_multiple_of(2) {
            0
        } else {
            self.stride
        };
        self.stride *= 2;
    }
}

impl Reduce {
    /// Folds `value` into `folded`, which stands for `count` equal parts already.
    fn fold(self, folded: f64, count: u32, value: f64) -> f64 {
        match self {
            Self::Mean => (folded * f64::from(count) + value) / f64::from(count + 1),
            Self::Max => folded.max(value),
            Self::Sum => folded + value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_series_halves() {
        for capacity in [4, 5] {
            let mut sum = Series::new(Span::micros(1), capacity, Reduce::Sum);
            let mut mean = Series::new(Span::micros(1), capacity, Reduce::Mean);
            let mut max = Series::new(Span::micros(1), capacity, Reduce::Max);
            for value in 0..40 {
                for series in [&mut sum, &mut mean, &mut max] {
                    series.push(f64::from(value));
                }
            }
            assert_eq!(sum.values().iter().sum::<f64>(), 780.0, "nothing is lost");
            assert!(sum.values().len() <= capacity);
            assert_eq!(max.values().last(), Some(&39.0));
            let per_value = sum.interval().div_floor(Span::micros(1)) as f64;
            assert_eq!(
                sum.values()[0],
                (0..per_value as u32).map(f64::from).sum::<f64>()
            );
            assert_eq!(mean.values()[0], sum.values()[0] / per_value);
        }
    }
}
