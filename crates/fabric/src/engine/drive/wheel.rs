//! A timing wheel of whole nanoseconds: events of one nanosecond come out in the order in which they went in.
//!
//! ```text
//! now ─► [ns 0][ns 1][ns 2] … [ns 4095]      further away ─► heap by (time, order)
//!          │ first in, first out
//! ```
//!
//! Invariant: an event leaves the heap for its bucket before anything can be put there directly, so a bucket is in the
//! order of scheduling.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use softfabric_units::Time;

use super::super::event::Event;

/// How many nanoseconds the wheel covers: more than any usual link delay.
const SPAN: u64 = 4096;
const WORDS: usize = SPAN as usize / 64;

/// What is to happen, first first.
#[derive(Debug)]
pub(super) struct Wheel {
    buckets: Vec<VecDeque<(u32, Event)>>,
    /// One bit a bucket: something is in it.
    filled: [u64; WORDS],
    /// The nanosecond that is being worked through.
    now: u64,
    far: BinaryHeap<Reverse<(u64, u64, u32, Event)>>,
    scheduled: u64,
}

impl Wheel {
    pub(super) fn new() -> Self {
        Self {
            buckets: (0..SPAN).map(|_| VecDeque::new()).collect(),
            filled: [0; WORDS],
            now: 0,
            far: BinaryHeap::new(),
            scheduled: 0,
        }
    }

    /// Adds an event at a whole nanosecond that is not past.
    #[inline]
    pub(super) fn push(&mut self, time: Time, node: u32, event: Event) {
        let nanos = time.as_nanos();
        debug_assert!(nanos >= self.now, "an event in the past");
        if nanos < self.now + SPAN {
            self.fill(nanos, node, event);
        } else {
            self.far.push(Reverse((nanos, self.scheduled, node, event)));
            self.scheduled += 1;
        }
    }

    /// When the next event happens.
    #[inline]
    pub(super) fn next_time(&mut self) -> Option<Time> {
        self.advance().then(|| Time::from_nanos(self.now))
    }

    /// Takes the next event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Time, u32, Event)> {
        if !self.advance() {
            return None;
        }
        let slot = (self.now % SPAN) as usize;
        let (node, event) = self.buckets[slot].pop_front()?;
        if self.buckets[slot].is_empty() {
            self.filled[slot / 64] &= !(1 << (slot % 64));
        }
        Some((Time::from_nanos(self.now), node, event))
    }

    #[inline]
    fn fill(&mut self, nanos: u64, node: u32, event: Event) {
        let slot = (nanos % SPAN) as usize;
        self.buckets[slot].push_back((node, event));
        self.filled[slot / 64] |= 1 << (slot % 64);
    }

    /// Goes to the first nanosecond with an event; false where there is none.
    #[inline]
    fn advance(&mut self) -> bool {
        let slot = (self.now % SPAN) as usize;
        if self.filled[slot / 64] >> (slot % 64) & 1 == 1 {
            return true;
        }
        self.advance_far(slot)
    }

    fn advance_far(&mut self, slot: usize) -> bool {
        self.now = match self.distance_to_filled(slot) {
            Some(distance) => self.now + distance,
            None => match self.far.peek() {
                Some(Reverse((nanos, ..))) => *nanos,
                None => return false,
            },
        };
        while let Some(&Reverse((nanos, _, node, event))) = self.far.peek()
            && nanos < self.now + SPAN
        {
            self.far.pop();
            self.fill(nanos, node, event);
        }
        true
    }

    /// How many buckets after `slot`, going round, the next filled one is.
    fn distance_to_filled(&self, slot: usize) -> Option<u64> {
        let (word, bit) = (slot / 64, slot % 64);
        let here = self.filled[word] >> bit;
        if here != 0 {
            return Some(u64::from(here.trailing_zeros()));
        }
        for step in 1..=WORDS {
            let bits = self.filled[(word + step) % WORDS];
            // The last step comes back to the first word, whose upper bits are known to be empty.
            if bits != 0 {
                let first = u64::from(bits.trailing_zeros());
                return Some(step as u64 * 64 + first - bit as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use softfabric_units::Random;

    use super::*;

    /// Against a plain list sorted by time and order of scheduling.
    #[test]
    fn events_come_out_by_time_then_in_order() {
        for seed in 0..50 {
            let mut random = Random::from_seed(seed);
            let mut wheel = Wheel::new();
            let mut list: Vec<(u64, u64, u32)> = Vec::new();
            let (mut now, mut order) = (0, 0);
            for _ in 0..5_000 {
                if random.chance(0.5) || list.is_empty() {
                    let ahead = match random.below(4) {
                        0 => 0,
                        1 => random.below(100),
                        2 => random.below(5_000),
                        _ => random.below(1_000_000),
                    };
                    let node = random.below(1_000) as u32;
                    wheel.push(
                        Time::from_nanos(now + ahead),
                        node,
                        Event::timer(order as u32),
                    );
                    list.push((now + ahead, order, node));
                    order += 1;
                } else {
                    let first = *list.iter().min().expect("not empty");
                    list.retain(|entry| *entry != first);
                    now = first.0;
                    assert_eq!(
                        wheel.next_time(),
                        Some(Time::from_nanos(now)),
                        "seed {seed}"
                    );
                    let expected = (Time::from_nanos(now), first.2, Event::timer(first.1 as u32));
                    assert_eq!(wheel.pop(), Some(expected), "seed {seed}");
                }
            }
        }
    }
}
