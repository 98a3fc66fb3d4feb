//! A heap of wake-ups.
//!
//! Entries are never moved or removed: a queue pair that needs to be woken later than its entry says is woken early,
//! finds nothing to do, and enters again. So a timer that is pushed back by every packet costs no heap operation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use softfabric_units::Time;

/// A wake-up: when, which slot, and the serial number of the queue pair that has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct WakeUp {
    pub(crate) time: Time,
    pub(crate) slot: u32,
    pub(crate) serial: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Timers(BinaryHeap<Reverse<WakeUp>>);

impl Timers {
    pub(crate) fn push(&mut self, time: Time, slot: u32, serial: u32) {
        self.0.push(Reverse(WakeUp { time, slot, serial }));
    }

    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        self.0.peek().map(|Reverse(wake_up)| wake_up.time)
    }

    /// The earliest wake-up, if it is due.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<WakeUp> {
        match self.0.peek() {
            Some(Reverse(wake_up)) if wake_up.time <= now => {
                self.0.pop().map(|Reverse(wake_up)| wake_up)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_come_in_order_of_time_and_then_of_slots() {
        let mut timers = Timers::default();
        let at = Time::from_nanos;
        for (nanos, slot) in [(30, 1), (10, 2), (10, 1), (20, 3)] {
            timers.push(at(nanos), slot, 0);
        }
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.pop_due(at(9)), None);
        let mut order = Vec::new();
        while let Some(wake_up) = timers.pop_due(at(25)) {
            order.push((wake_up.time.as_nanos(), wake_up.slot));
        }
        assert_eq!(order, [(10, 1), (10, 2), (20, 3)]);
        assert_eq!(timers.next(), Some(at(30)));
    }
}
