//! Pacing: a rate becomes the time at which the next packet may leave.

use softfabric_units::{Bytes, Rate, Span, Time};

use super::QueuePair;
use crate::config::{PaceRounding, RateChange};
use crate::core::Core;
use crate::memory::Memory;

/// How long `size` bytes take at `rate`.
fn duration(rounding: PaceRounding, size: Bytes, rate: Rate) -> Span {
    let exact = rate.time_for(size);
    match rounding {
        PaceRounding::Exact => exact,
        PaceRounding::WholeNanoseconds => {
            let nanos = exact.as_picos().div_ceil(1000).saturating_sub(1);
            Span::nanos(nanos)
        }
    }
}

impl<M: Memory> QueuePair<M> {
    /// A packet of `size` bytes left at `now`.
    pub(crate) fn pace(&mut self, core: &mut Core<M>, now: Time, size: Bytes) {
        self.rate.on_sent(now, size);
        self.pace.last_sent = now;
        self.pace.last_size = size;
        self.hold(core, now);
    }

    /// The rate has changed at `now`, or its own timers may have changed it.
    pub(crate) fn repace(&mut self, core: &mut Core<M>, now: Time) {
        if core.config.pacing.rate_change == RateChange::MovesWaiting {
            self.hold(core, now);
        }
    }

    /// Works out when the next packet may leave, and waits for it. At line rate the line itself paces.
    fn hold(&mut self, core: &mut Core<M>, now: Time) {
        let rate = self.rate.rate(now);
        let pacing = core.config.pacing;
        self.pace.until = if rate >= core.config.line_rate {
            self.pace.last_sent
        } else {
            let span = duration(pacing.rounding, self.pace.last_size, rate);
            self.pace.last_sent.saturating_add(span)
        };
        if self.pace.until <= now {
            return;
        }
        let mut wake = self.pace.until;
        if pacing.rate_change == RateChange::MovesWaiting
            && let Some(change) = self.rate.next_change(now)
        {
            wake = wake.min(change.max(now + Span::picos(1)));
        }
        // An entry that is already there comes at its own time, finds the queue pair held, and is made anew.
        if !self.pace.waits || wake < self.pace.entry {
            self.pace.waits = true;
            self.pace.entry = wake;
            core.pacing.push(wake, self.slot, self.serial);
        }
    }

    /// An entry of the pacing heap is due.
    pub(crate) fn wake(&mut self, core: &mut Core<M>, now: Time, entry: Time) {
        if !self.pace.waits || entry != self.pace.entry {
            return;
        }
        self.pace.waits = false;
        if core.config.pacing.rate_change == RateChange::MovesWaiting {
            self.hold(core, now);
        } else if self.pace.until > now {
            self.pace.waits = true;
            self.pace.entry = self.pace.until;
            core.pacing.push(self.pace.until, self.slot, self.serial);
        }
        self.refresh(core);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_nanoseconds_come_out_one_less() {
        let duration = |bytes, gbps| {
            duration(
                PaceRounding::WholeNanoseconds,
                Bytes::new(bytes),
                Rate::gbps(gbps),
            )
        };
        assert_eq!(duration(1048, 100), Span::nanos(83), "83.84");
        assert_eq!(duration(1000, 100), Span::nanos(79), "80 exactly");
        assert_eq!(duration(43, 400), Span::ZERO, "0.86");
    }
}
