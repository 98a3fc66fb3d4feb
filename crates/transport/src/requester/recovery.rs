//! Recovery: what is sent again, and when it is given up.
//!
//! ```text
//! go back N           una … [lost] … end     next := lost, everything from there is sent again
//! go back 0           una := next := first packet of the message
//! selective repeat    only what is missing below the highest packet known to have arrived
//! ```

use std::collections::VecDeque;

use softfabric_telemetry::DeviceCounter;
use softfabric_units::{Psn, Time};

use super::Requester;
use crate::completion::Status;
use crate::config::LossRecovery;
use crate::core::Core;
use crate::memory::Memory;
use crate::queue_pair::{QueuePair, State};

/// What selective repeat knows between a loss and its repair.
#[derive(Debug)]
pub(super) struct Selective {
    /// Whether the packet at `una` plus the index has arrived.
    arrived: VecDeque<bool>,
    /// One past the highest packet that is known to have arrived.
    highest: Psn,
    /// Below this, everything has been judged in this round.
    judged: Psn,
    /// Where the recovery ends: one past the highest packet sent when it began.
    over: Psn,
    /// The timer ran out: the oldest packet counts as lost, whatever arrived above it.
    timed_out: bool,
}

impl Selective {
    fn new(una: Psn, end: Psn) -> Self {
        Self {
            arrived: VecDeque::new(),
            highest: una,
            judged: una,
            over: end,
            timed_out: false,
        }
    }

    fn mark(&mut self, una: Psn, psn: Psn) {
        let index = psn.distance_from(una) as usize;
        if index >= self.arrived.len() {
            self.arrived.resize(index + 1, false);
        }
        self.arrived[index] = true;
        if psn.next().is_after(self.highest) {
            self.highest = psn.next();
        }
    }

    /// `una` moves from one PSN to another.
    pub(super) fn advance(&mut self, una: Psn, to: Psn) {
        let gone = (to.distance_from(una) as usize).min(self.arrived.len());
        self.arrived.drain(..gone);
        if self.judged.is_before(to) {
            self.judged = to;
        }
        if self.highest.is_before(to) {
            self.highest = to;
        }
    }

    /// Whether the recovery has done its work. Where packets above are known to have arrived, the next one begins.
    pub(super) fn is_over(&mut self, una: Psn, end: Psn) -> bool {
        if una.is_before(self.over) {
            return false;
        }
        self.over = end;
        self.timed_out = false;
        !self.highest.is_after(una)
    }

    /// The next packet that counts as lost: not arrived, while one above it has.
    pub(super) fn next_lost(&self, una: Psn, end: Psn) -> Option<Psn> {
        let mut psn = self.judged;
        if self.timed_out && psn == una && psn != end {
            return Some(psn);
        }
        while psn.is_before(self.highest) {
            let index = psn.distance_from(una) as usize;
            if !self.arrived.get(index).copied().unwrap_or(false) {
                return Some(psn);
            }
            psn = psn.next();
        }
        None
    }
}

impl<M: Memory> Requester<M> {
    /// Whether it went back and has not sent the packet that is missing yet.
    fn holds_all_back(&self) -> bool {
        match &self.selective {
            Some(selective) => selective.timed_out && selective.judged == self.una,
            None => self.next == self.una,
        }
    }

    /// Takes the next packet that counts as lost.
    pub(super) fn take_lost(&mut self) -> Option<Psn> {
        let (una, end) = (self.una, self.end);
        let selective = self.selective.as_mut()?;
        let lost = selective.next_lost(una, end)?;
        selective.judged = lost.next();
        Some(lost)
    }

    /// What is before `upto` has been judged.
    pub(super) fn judge(&mut self, upto: Psn) {
        if let Some(selective) = &mut self.selective {
            selective.judged = upto;
        }
    }
}

impl<M: Memory> QueuePair<M> {
    /// Moves the cursor to `psn`.
    pub(super) fn seek(&mut self, psn: Psn) {
        let requester = &mut self.requester;
        let index = requester.position_of(psn);
        let packet = match requester.queue.get(index) {
            Some(posted) if posted.begun => psn.distance_from(posted.first),
            _ => 0,
        };
        requester.index = index as u32;
        requester.packet = packet;
        requester.next = psn;
    }

    /// Sends again from `psn` on, if there are retries left (IBTA vol. 1, 9.9.2.1.1: timeouts and sequence errors draw
    /// on one counter).
    pub(super) fn retry(&mut self, core: &mut Core<M>, now: Time, psn: Psn) {
        if self.requester.retries_left == 0 {
            core.count(DeviceCounter::RetriesExceeded);
            self.fail_request(core, Status::RetriesExceeded);
            return;
        }
        self.requester.retries_left -= 1;
        self.seek(psn);
        if !self.requester.timeout.is_zero() {
            self.requester.overdue = now + self.requester.timeout;
            self.arm(core);
        }
    }

    /// The first PSN of the message that `psn` belongs to.
    fn start_of(&self, psn: Psn) -> Psn {
        let requester = &self.requester;
        match requester.queue.get(requester.position_of(psn)) {
            Some(posted) if posted.begun => posted.first,
            _ => psn,
        }
    }

    /// Go back 0: the peer has forgotten the message, and names its first packet. What was acknowledged of it is open
    /// again.
    pub(super) fn handle_start_again(&mut self, core: &mut Core<M>, now: Time, psn: Psn) {
        let behind = self.requester.una.distance_from(psn);
        let head = self.requester.queue.front();
        let reopened = head.is_some_and(|head| head.begun && head.first == psn && behind > 0);
        if !reopened {
            if !self.is_outstanding(psn) {
                core.count(DeviceCounter::Discarded);
                return;
            }
            if psn != self.requester.una {
                if !self.advance(core, now, psn) {
                    return;
                }
                self.settle(core, now);
            }
        }
        if self.state != State::Error {
            let start = self.start_of(psn);
            self.requester.una = start;
            self.retry(core, now, start);
        }
    }

    /// Selective repeat: everything before `missing` has arrived, and `arrived` too.
    pub(super) fn handle_gap(&mut self, core: &mut Core<M>, now: Time, missing: Psn, arrived: Psn) {
        if !self.is_outstanding(missing) || !self.is_outstanding(arrived) {
            core.count(DeviceCounter::Discarded);
            return;
        }
        if missing != self.requester.una {
            if !self.advance(core, now, missing) {
                return;
            }
            self.settle(core, now);
        }
        let requester = &mut self.requester;
        let (una, end) = (requester.una, requester.end);
        let selective = requester
            .selective
            .get_or_insert_with(|| Box::new(Selective::new(una, end)));
        selective.mark(una, arrived);
    }

    /// A timer of the requester has come to its time, or been woken early.
    pub(crate) fn handle_timer(&mut self, core: &mut Core<M>, now: Time) {
        let requester = &mut self.requester;
        if requester.quiet_until > Time::ZERO {
            if requester.quiet_until <= now {
                requester.quiet_until = Time::ZERO;
            }
        } else if requester.overdue <= now {
            if requester.holds_all_back() && self.pace.until > now {
                // Its own rate keeps it from sending again: nobody is late with an answer (IBTA vol. 1, 9.7.6.1.3).
                requester.overdue = self.pace.until + requester.timeout;
            } else {
                self.time_out(core, now);
            }
        }
        self.arm(core);
        self.refresh(core);
    }

    /// The acknowledgement of `una` is overdue (IBTA vol. 1, 9.7.6.1.3).
    fn time_out(&mut self, core: &mut Core<M>, now: Time) {
        core.count(DeviceCounter::LocalAckTimeout);
        self.statistics.timeouts += 1;
        let before = self.rate.rate(now);
        self.rate.on_timeout(now);
        if self.rate.rate(now) < before {
            core.count(DeviceCounter::SlowRestart);
        }
        let mut psn = self.requester.una;
        match core.config.recovery {
            LossRecovery::GoBackN => {}
            LossRecovery::GoBack0 => {
                psn = self.start_of(psn);
                self.requester.una = psn;
            }
            LossRecovery::SelectiveRepeat { .. } if self.requester.reads == 0 => {
                if self.requester.retries_left == 0 {
                    core.count(DeviceCounter::RetriesExceeded);
                    self.fail_request(core, Status::RetriesExceeded);
                    return;
                }
                let requester = &mut self.requester;
                requester.retries_left -= 1;
                requester.overdue = now + requester.timeout;
                let (una, end) = (requester.una, requester.end);
                let selective = requester
                    .selective
                    .get_or_insert_with(|| Box::new(Selective::new(una, end)));
                selective.judged = una;
                selective.over = end;
                selective.timed_out = true;
                return;
            }
            LossRecovery::SelectiveRepeat { .. } => self.requester.selective = None,
        }
        self.retry(core, now, psn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all packets that count as lost.
    fn lost(selective: &mut Selective, una: Psn, end: Psn) -> Vec<u32> {
        let mut all = Vec::new();
        while let Some(psn) = selective.next_lost(una, end) {
            selective.judged = psn.next();
            all.push(psn.as_u32());
        }
        all
    }

    #[test]
    fn only_what_is_below_an_arrival_counts_as_lost() {
        // Over the wrap: 0xfffffe is missing, and so are 0 and 1; 2 and above may be on their way.
        let una = Psn::new(0xff_fffe);
        let end = Psn::new(10);
        let mut selective = Selective::new(una, end);
        assert_eq!(selective.next_lost(una, end), None);
        selective.mark(una, Psn::new(0xff_ffff));
        assert_eq!(lost(&mut selective, una, end), [0xff_fffe]);
        selective.mark(una, Psn::new(2));
        assert_eq!(lost(&mut selective, una, end), [0, 1]);
        assert_eq!(lost(&mut selective, una, end), [0; 0], "once in a round");
        // The first was repaired: una moves to 0, which has been judged.
        selective.advance(una, Psn::new(0));
        assert_eq!(lost(&mut selective, Psn::new(0), end), [0; 0]);
        selective.mark(Psn::new(0), Psn::new(5));
        assert_eq!(lost(&mut selective, Psn::new(0), end), [3, 4]);
    }

    #[test]
    fn a_timeout_repairs_one_after_the_other() {
        let una = Psn::new(7);
        let end = Psn::new(10);
        let mut selective = Selective::new(una, end);
        selective.timed_out = true;
        assert_eq!(lost(&mut selective, una, end), [7]);
        selective.advance(una, Psn::new(8));
        assert_eq!(lost(&mut selective, Psn::new(8), end), [8]);
        selective.advance(Psn::new(8), end);
        assert_eq!(lost(&mut selective, end, end), [0; 0]);
        assert!(selective.is_over(end, end));
    }

    #[test]
    fn a_recovery_ends_where_it_began_unless_more_is_missing() {
        let una = Psn::new(0);
        let mut selective = Selective::new(una, Psn::new(10));
        selective.mark(una, Psn::new(12));
        selective.advance(una, Psn::new(9));
        assert!(!selective.is_over(Psn::new(9), Psn::new(20)));
        selective.advance(Psn::new(9), Psn::new(11));
        assert!(
            !selective.is_over(Psn::new(11), Psn::new(20)),
            "12 is there, 11 is not"
        );
        selective.advance(Psn::new(11), Psn::new(20));
        assert!(selective.is_over(Psn::new(20), Psn::new(20)));
    }
}
