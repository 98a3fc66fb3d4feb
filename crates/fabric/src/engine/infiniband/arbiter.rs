//! Which lane of a port sends next (IBTA vol. 1, 7.6.9).
//!
//! ```text
//! high table ──► as long as its limit lasts ──┐
//!                                             ├─► one lane
//! low table  ──► when high may not, or must ──┘   (for the rest of its entry's weight)
//! ```

use crate::plan::{LaneArbitration, LaneWeight};

/// Lanes as bits.
pub(crate) type LaneMask = u16;

const WEIGHT_UNIT: i64 = 64;
const LIMIT_UNIT: i64 = 4096;
const UNLIMITED: u8 = 255;

/// The state of a port's arbitration.
#[derive(Clone, Debug)]
pub(crate) struct Arbiter {
    high: Table,
    low: Table,
    limit: u8,
    /// Bytes that high priority may still send before low priority has a turn.
    high_left: i64,
    /// The last lane was picked from the high table.
    from_high: bool,
}

#[derive(Clone, Debug)]
struct Table {
    entries: Box<[LaneWeight]>,
    at: usize,
    /// Bytes that the entry may still send in its turn.
    left: i64,
}

impl Table {
    fn new(entries: &[LaneWeight]) -> Self {
        let entries: Box<[LaneWeight]> = entries
            .iter()
            .filter(|entry| entry.weight > 0)
            .copied()
            .collect();
        let left = entries.first().map_or(0, Self::turn);
        Self {
            entries,
            at: 0,
            left,
        }
    }

    fn turn(entry: &LaneWeight) -> i64 {
        i64::from(entry.weight) * WEIGHT_UNIT
    }

    /// The lane whose turn it is among those that are ready.
    fn pick(&mut self, ready: LaneMask) -> Option<u8> {
        let is_ready = |entry: &LaneWeight| ready >> entry.lane & 1 != 0;
        let current = self.entries.get(self.at)?;
        if self.left > 0 && is_ready(current) {
            return Some(current.lane);
        }
        let count = self.entries.len();
        let next = (1..=count)
            .map(|step| (self.at + step) % count)
            .find(|&at| is_ready(&self.entries[at]))?;
        self.at = next;
        self.left = Self::turn(&self.entries[next]);
        Some(self.entries[next].lane)
    }
}

impl Arbiter {
    pub(crate) fn new(tables: &LaneArbitration) -> Self {
        Self {
            high: Table::new(&tables.high),
            low: Table::new(&tables.low),
            limit: tables.limit,
            high_left: i64::from(tables.limit) * LIMIT_UNIT,
            from_high: false,
        }
    }

    /// The lane that sends next among those that are ready: they have a packet and the credit for it. A lane in neither
    /// table never sends.
    pub(crate) fn pick(&mut self, ready: LaneMask) -> Option<u8> {
        if ready == 0 {
            return None;
        }
        let may_go_on = self.limit == UNLIMITED || self.high_left > 0 || !self.from_high;
        if may_go_on && let Some(lane) = self.high.pick(ready) {
            self.from_high = true;
            return Some(lane);
        }
        // Low priority has a turn; with nothing to send there, high priority goes on.
        self.high_left = i64::from(self.limit) * LIMIT_UNIT;
        if let Some(lane) = self.low.pick(ready) {
            self.from_high = false;
            return Some(lane);
        }
        let lane = self.high.pick(ready)?;
        self.from_high = true;
        Some(lane)
    }

    /// The picked lane sends so many bytes. The last packet of a turn may be longer than what is left of it.
    pub(crate) fn sent(&mut self, length: u32) {
        let table = if self.from_high {
            self.high_left -= i64::from(length);
            &mut self.high
        } else {
            &mut self.low
        };
        table.left -= i64::from(length.next_multiple_of(WEIGHT_UNIT as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(weights: &[(u8, u8)]) -> Vec<LaneWeight> {
        let entry = |&(lane, weight)| LaneWeight { lane, weight };
        weights.iter().map(entry).collect()
    }

    fn arbiter(high: &[(u8, u8)], low: &[(u8, u8)], limit: u8) -> Arbiter {
        Arbiter::new(&LaneArbitration {
            high: entries(high),
            low: entries(low),
            limit,
        })
    }

    fn served(arbiter: &mut Arbiter, ready: LaneMask, length: u32, count: usize) -> Vec<u8> {
        let serve = |_| {
            let lane = arbiter.pick(ready).unwrap();
            arbiter.sent(length);
            lane
        };
        (0..count).map(serve).collect()
    }

    #[test]
    fn weights_are_shares() {
        let mut three_to_one = arbiter(&[], &[(0, 96), (1, 32)], 0);
        let lanes = served(&mut three_to_one, 0b11, 2048, 400);
        assert_eq!(lanes.iter().filter(|lane| **lane == 0).count(), 300);
        assert_eq!(lanes[..4], [0, 0, 0, 1]);
    }

    #[test]
    fn a_lane_that_is_not_ready_gives_its_turn_away() {
        let mut all = arbiter(&[], &[(0, 64), (1, 64), (2, 64)], 0);
        assert_eq!(served(&mut all, 0b110, 4096, 4), [1, 2, 1, 2]);
        assert_eq!(all.pick(0b1000), None, "a lane in no table");
        assert_eq!(all.pick(0), None);
    }

    #[test]
    fn high_priority_goes_first_as_far_as_its_limit_goes() {
        let (high, low) = (&[(1, 255)][..], &[(0, 255)][..]);
        let mut unlimited = arbiter(high, low, 255);
        assert_eq!(served(&mut unlimited, 0b11, 4096, 50), [1; 50]);
        let mut one_packet = arbiter(high, low, 0);
        assert_eq!(
            served(&mut one_packet, 0b11, 4096, 6),
            [1, 0, 1, 0, 1, 0],
            "limit 0: a packet"
        );
        let mut two = arbiter(high, low, 2);
        assert_eq!(
            served(&mut two, 0b11, 4096, 6),
            [1, 1, 0, 1, 1, 0],
            "8 KiB, then low priority has a turn"
        );
        assert_eq!(served(&mut two, 0b10, 4096, 5), [1; 5], "nobody else waits");
    }

    #[test]
    fn a_weight_of_zero_skips_the_entry() {
        let mut skipped = arbiter(&[], &[(0, 0), (1, 1), (2, 1)], 0);
        assert_eq!(served(&mut skipped, 0b111, 64, 4), [1, 2, 1, 2]);
    }
}
