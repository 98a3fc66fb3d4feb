//! Ranges of positions that have arrived, or are known to have, ahead of others.

/// Ranges in order; no two touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Adds `start..end`, and returns the range that it became a part of.
    pub(super) fn insert(&mut self, start: u64, end: u64) -> (u64, u64) {
        let first = self.0.partition_point(|range| range.1 < start);
        let after = self.0.partition_point(|range| range.0 <= end);
        let mut merged = (start, end);
        if first < after {
            merged.0 = start.min(self.0[first].0);
            merged.1 = end.max(self.0[after - 1].1);
        }
        self.0.splice(first..after, [merged]);
        merged
    }

    /// The parts of `start..end` that are not here yet, in order.
    pub(super) fn missing(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.0.partition_point(|range| range.1 <= start);
        let mut at = start;
        let mut known = self.0[first..].iter();
        std::iter::from_fn(move || {
            while at < end {
                let &(from, to) = known.next().unwrap_or(&(u64::MAX, u64::MAX));
                let gap = (at, from.min(end));
                at = to;
                if gap.0 < gap.1 {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// Forgets everything below `position`.
    pub(super) fn remove_below(&mut self, position: u64) {
        let gone = self.0.partition_point(|range| range.1 <= position);
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.0 = first.0.max(position);
        }
    }

    /// The ranges from the highest down.
    pub(super) fn descending(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().rev().copied()
    }

    /// The lowest range.
    #[cfg(test)]
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.0.first().copied()
    }

    /// The range that `position` is in.
    pub(super) fn around(&self, position: u64) -> Option<(u64, u64)> {
        let index = self.0.partition_point(|range| range.1 <= position);
        self.0
            .get(index)
            .copied()
            .filter(|range| range.0 <= position)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a set of single positions.
        #[test]
        fn ranges_are_sets(inserts in proptest::collection::vec((0_u64..60, 1_u64..12), 0..20), below in 0_u64..60) {
            let mut ranges = Ranges::default();
            let mut model = std::collections::BTreeSet::new();
            for (start, length) in inserts {
                let missing: Vec<u64> = ranges.missing(start, start + length).flat_map(|(a, b)| a..b).collect();
                let expected: Vec<u64> = (start..start + length).filter(|p| !model.contains(p)).collect();
                prop_assert_eq!(missing, expected);
                let (from, to) = ranges.insert(start, start + length);
                model.extend(start..start + length);
                prop_assert!((from..to).all(|p| model.contains(&p)) && !model.contains(&to));
                prop_assert_eq!(ranges.around(start), Some((from, to)));
                let mut found: Vec<(u64, u64)> = ranges.descending().collect();
                found.reverse();
                prop_assert!(found.windows(2).all(|pair| pair[0].1 < pair[1].0));
                prop_assert!(found.into_iter().flat_map(|(a, b)| a..b).eq(model.iter().copied()));
            }
            ranges.remove_below(below);
            model.retain(|&p| p >= below);
            prop_assert_eq!(ranges.is_empty(), model.is_empty());
            prop_assert_eq!(ranges.first().map(|range| range.0), model.first().copied());
        }
    }
}
