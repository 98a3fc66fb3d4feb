//! From losses to repairs: fast recovery (RFC 6675, RFC 6582) and what a timeout does (RFC 5681, RFC 6298).

use super::Statistics;
use super::sender::Sender;

/// Whether the sender repairs losses, or rests after a reduction. Each phase is over when everything is acknowledged that
/// had been sent when it began, so there is one reduction a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// All is well.
    Open,
    /// The window was reduced because of marks.
    Reduced { until: u64 },
    /// Fast recovery.
    Recovery { until: u64 },
    /// The retransmission timer has expired.
    Timeout { until: u64 },
}

impl Phase {
    /// Whether acknowledgements make the congestion window grow.
    pub(super) fn grows(self) -> bool {
        matches!(self, Self::Open | Self::Timeout { .. })
    }
}

/// So many duplicate acknowledgements mean a loss (RFC 5681, 3.2).
const DUPLICATE_THRESHOLD: u64 = 3;

/// Packets are taken to overtake each other by this part of a round trip at the most (RFC 8985, 6.2: a quarter).
const REORDERING: u64 = 4;

impl Sender {
    /// Ends a phase whose window is acknowledged; in NewReno's recovery, a partial acknowledgement names the next loss.
    pub(super) fn move_on(&mut self, progress: bool) {
        let until = match self.phase {
            Phase::Open => {
                if progress {
                    self.duplicates = 0;
                }
                return;
            }
            Phase::Reduced { until } | Phase::Recovery { until } | Phase::Timeout { until } => {
                until
            }
        };
        if self.unacknowledged >= until {
            self.phase = Phase::Open;
            self.duplicates = 0;
            self.repair_at_once = false;
        } else if progress && !self.sack && matches!(self.phase, Phase::Recovery { .. }) {
            self.board.lose_first();
            self.repair_at_once = true;
        }
    }

    /// Looks for losses, and begins fast recovery at the first (RFC 6675, 5).
    pub(super) fn look_for_losses(&mut self, flight: u64, statistics: &mut Statistics) {
        let begins = match self.phase {
            Phase::Open | Phase::Reduced { .. } => true,
            Phase::Recovery { .. } | Phase::Timeout { .. } => false,
        };
        if self.sack {
            if let (false, Some(smoothed)) = (begins, self.round_trip.smoothed()) {
                self.board.find_lost_repairs(smoothed / REORDERING);
            }
            if !self.board.find_losses(self.segment) {
                return;
            }
        } else if !begins || self.duplicates < DUPLICATE_THRESHOLD || !self.board.lose_first() {
            return;
        }
        if !begins {
            return;
        }
        // A reduction because of marks in this window was the window's reduction (RFC 3168, 6.1.2).
        if self.phase == Phase::Open {
            self.congestion.lose(flight);
            self.reduced = true;
        }
        self.phase = Phase::Recovery { until: self.next };
        self.repair_at_once = true;
        statistics.fast_recoveries += 1;
    }

    /// The retransmission timer has expired: everything is taken for lost, and one segment may leave.
    pub(super) fn expire(&mut self) {
        let again = self.expired > 1;
        self.congestion.time_out(self.flight(), again);
        self.board.lose_all();
        self.duplicates = 0;
        self.repair_at_once = false;
        self.phase = Phase::Timeout { until: self.next };
    }
}
