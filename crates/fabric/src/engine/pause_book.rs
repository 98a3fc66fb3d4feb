//! What a port expects its own pause frames to do at the other end, so that both ends can be compared after a run.
//!
//! ```text
//!  this end   ──PAUSE──────────────────RESUME──────────►      what it has put on the wire, and when
//!                  ╲ wire, response delay   ╲
//!  other end         ███████ paused ██████████                 what its counters must say, to the picosecond
//! ```
//!
//! The other end keeps its own account, from the frames that it gets and the timers that it sets. This one is kept from
//! the frames that leave. They share no code, so a frame that is lost, a timer that fires late or a pause that outlives
//! its link shows as a difference.

use softfabric_units::{Span, Time};

use super::frame::PauseRequest;

/// Of one class: the pauses at the other end that follow from what this end has sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct PauseBook {
    /// Time under pauses that are over.
    over: Span,
    /// Pauses whose end is known but may still be ahead.
    ending: Vec<(Time, Time)>,
    /// The pause that holds: since when, and when it runs out by itself.
    holding: Option<(Time, Time)>,
    /// The class speaks PFC no more.
    closed: bool,
}

impl PauseBook {
    /// At `now`, a frame leaves that takes effect at `effect`; a pause in it lasts `span`, or until it is resumed.
    pub(crate) fn note(
        &mut self,
        now: Time,
        effect: Time,
        request: PauseRequest,
        quantum: impl Fn(u16) -> Span,
    ) {
        if self.closed {
            return;
        }
        self.settle(now);
        if let Some((since, until)) = self.holding
            && until < effect
        {
            self.ending.push((since, until));
            self.holding = None;
        }
        let since = self.holding.map_or(effect, |(since, _)| since);
        match request {
            PauseRequest::UntilResume => self.holding = Some((since, Time::NEVER)),
            PauseRequest::Quanta(quanta) => self.holding = Some((since, effect + quantum(quanta))),
            PauseRequest::Resume => {
                if self.holding.take().is_some() {
                    self.ending.push((since, effect));
                }
            }
        }
    }

    /// The link fails at `now`: what is under way is lost, what holds ends.
    pub(crate) fn cut(&mut self, now: Time) {
        self.over = self.total(now);
        self.ending.clear();
        self.holding = None;
    }

    /// At `now`, both ends stop to speak PFC for the class.
    pub(crate) fn close(&mut self, now: Time) {
        self.cut(now);
        self.closed = true;
    }

    /// How long the other end has been paused by `now`.
    pub(crate) fn total(&self, now: Time) -> Span {
        let known = self.ending.iter().chain(&self.holding);
        known.fold(self.over, |total, &(since, until)| {
            let (since, until) = (since.min(now), until.min(now));
            total + until.since(since)
        })
    }

    fn settle(&mut self, now: Time) {
        let over = &mut self.over;
        self.ending.retain(|&(since, until)| {
            let ahead = until > now;
            if !ahead {
                *over += until.since(since);
            }
            ahead
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: PauseRequest = PauseRequest::UntilResume;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn book(frames: &[(u64, PauseRequest)]) -> PauseBook {
        let mut book = PauseBook::default();
        for &(sent, request) in frames {
            // 10 ns under way; a quantum is 1 ns.
            let quantum = |quanta: u16| Span::nanos(u64::from(quanta));
            book.note(at(sent), at(sent + 10), request, quantum);
        }
        book
    }

    #[test]
    fn a_pause_lasts_from_its_effect_to_that_of_its_resume() {
        let book = book(&[(0, HOLD), (5, HOLD), (20, PauseRequest::Resume)]);
        assert_eq!(book.total(at(8)), Span::ZERO);
        assert_eq!(book.total(at(25)), Span::nanos(15));
        assert_eq!(book.total(at(100)), Span::nanos(20));
    }

    #[test]
    fn a_pause_with_a_time_runs_out_unless_it_is_repeated() {
        let asks = |quanta| PauseRequest::Quanta(quanta);
        assert_eq!(book(&[(0, asks(7))]).total(at(100)), Span::nanos(7));
        let repeated = book(&[(0, asks(7)), (5, asks(7))]);
        assert_eq!(repeated.total(at(100)), Span::nanos(12));
        let twice = book(&[(0, asks(7)), (20, asks(7)), (21, PauseRequest::Resume)]);
        assert_eq!(twice.total(at(100)), Span::nanos(8));
    }

    #[test]
    fn a_link_that_fails_ends_pauses_and_loses_frames() {
        let mut failed = book(&[(0, HOLD), (20, PauseRequest::Resume), (22, HOLD)]);
        failed.cut(at(25));
        assert_eq!(failed.total(at(100)), Span::nanos(15));
        failed.note(at(50), at(60), HOLD, |_| Span::ZERO);
        assert_eq!(failed.total(at(100)), Span::nanos(55));
        failed.close(at(70));
        failed.note(at(80), at(90), HOLD, |_| Span::ZERO);
        assert_eq!(failed.total(at(100)), Span::nanos(25));
    }
}
