//! The congestion window: slow start, congestion avoidance, and what loss and marks take off.
//!
//! ```text
//!  window
//!    ▲        slow start        avoidance: Reno +1 segment a round trip, CUBIC its curve
//!    │           ╱│╲ loss        ╱│
//!    │          ╱ │ ╲___________╱ │ mark: CUBIC · β, Reno · ½, DCTCP · (1 − α/2)
//!    └─────────────────────────────────► time
//! ```
//!
//! Windows are bytes; CUBIC reckons in segments, as its RFC does.

mod cubic;
mod dctcp;
mod hystart;
#[cfg(test)]
mod tests;

use softfabric_units::{Span, Time};

use self::cubic::Cubic;
use self::dctcp::Dctcp;
use self::hystart::HyStart;
use super::{CongestionAlgorithm, TcpConfig};

/// What an acknowledgement says to congestion control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledged {
    /// Bytes that it acknowledged for the first time.
    pub(super) bytes: u64,
    /// Up to where everything is acknowledged, and up to where something is sent.
    pub(super) position: u64,
    pub(super) sent: u64,
    /// The latest round trip that was measured, and the smoothed one.
    pub(super) latest: Option<Span>,
    pub(super) smoothed: Option<Span>,
}

/// The congestion window of one sender.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    /// A full segment.
    segment: u64,
    window: u64,
    /// ssthresh: below it, slow start.
    threshold: u64,
    /// Bytes that were acknowledged in avoidance since the window last grew.
    counted: u64,
    algorithm: Algorithm,
    hystart: Option<HyStart>,
}

#[derive(Clone, Debug)]
enum Algorithm {
    Reno,
    Cubic(Cubic),
    Dctcp(Dctcp),
}

impl Congestion {
    pub(super) fn new(config: &TcpConfig, segment: u64) -> Self {
        let (algorithm, hystart) = match config.congestion {
            CongestionAlgorithm::Reno => (Algorithm::Reno, None),
            CongestionAlgorithm::Cubic(parameters) => (
                Algorithm::Cubic(Cubic::new(parameters)),
                parameters.hystart.then(HyStart::new),
            ),
            CongestionAlgorithm::Dctcp(parameters) => {
                (Algorithm::Dctcp(Dctcp::new(parameters)), None)
            }
        };
        Self {
            segment,
            window: u64::from(config.initial_window.max(1)) * segment,
            threshold: u64::MAX,
            counted: 0,
            algorithm,
            hystart,
        }
    }

    /// cwnd, in bytes.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    pub(super) fn is_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// DCTCP's alpha, where that runs.
    pub(super) fn alpha(&self) -> Option<f64> {
        match &self.algorithm {
            Algorithm::Dctcp(dctcp) => Some(dctcp.alpha()),
            Algorithm::Reno | Algorithm::Cubic(_) => None,
        }
    }

    /// Takes note of an acknowledgement, whether or not the window may grow: DCTCP counts marks here.
    pub(super) fn observe(&mut self, acknowledged: &Acknowledged, marked: bool) {
        if let Algorithm::Dctcp(dctcp) = &mut self.algorithm {
            dctcp.observe(acknowledged, marked);
        }
    }

    /// The window grows by an acknowledgement, if it was what held the sender back.
    pub(super) fn grow(&mut self, now: Time, acknowledged: &Acknowledged) {
        let mut bytes = acknowledged.bytes;
        if self.is_slow_start() {
            // RFC 5681, 3.1 with RFC 3465's byte counting: one acknowledgement may stand for many segments.
            let divisor = match &mut self.hystart {
                Some(hystart) => hystart.acknowledged(acknowledged),
                None => 1,
            };
            let step = bytes / divisor;
            if self.window.saturating_add(step) < self.threshold {
                self.window += step;
                if self.hystart.as_ref().is_some_and(HyStart::is_over) {
                    self.threshold = self.window;
                }
                return;
            }
            bytes = (self.window + step - self.threshold) * divisor;
            self.window = self.threshold;
        }
        if let Algorithm::Cubic(cubic) = &mut self.algorithm {
            self.window = cubic.grow(now, self.window, self.segment, bytes, acknowledged.smoothed);
            return;
        }
        self.counted += bytes;
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window += self.segment;
        }
    }

    /// A segment is lost with `flight` bytes under way (RFC 5681, 3.2; RFC 6675, 5).
    pub(super) fn lose(&mut self, flight: u64) {
        let used = self.window.min(flight).max(self.segment);
        let kept = match &mut self.algorithm {
            Algorithm::Reno | Algorithm::Dctcp(_) => used / 2,
            Algorithm::Cubic(cubic) => cubic.reduce(used, self.segment),
        };
        self.reduce_to(kept);
    }

    /// Marked packets have been reported, for the first time in this window (RFC 3168, 6.1.2; RFC 8257, 3.3).
    pub(super) fn mark(&mut self) {
        let kept = match &mut self.algorithm {
            Algorithm::Reno => self.window / 2,
            Algorithm::Cubic(cubic) => cubic.reduce(self.window, self.segment),
            Algorithm::Dctcp(dctcp) => dctcp.reduced(self.window),
        };
        self.reduce_to(kept);
    }

    fn reduce_to(&mut self, kept: u64) {
        self.threshold = kept.max(2 * self.segment);
        self.window = self.threshold;
        self.counted = 0;
        self.hystart = None;
    }

    /// The retransmission timer has expired (RFC 5681, 3.1); `again`: for something that it had expired for before.
    pub(super) fn time_out(&mut self, flight: u64, again: bool) {
        if !again {
            self.lose(flight);
        }
        if let Algorithm::Cubic(cubic) = &mut self.algorithm {
            cubic.time_out();
        }
        self.window = self.segment;
        self.counted = 0;
    }
}
