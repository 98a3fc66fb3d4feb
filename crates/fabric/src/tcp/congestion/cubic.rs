//! CUBIC (RFC 9438): the window is a cubic function of the time since the last loss.

use softfabric_units::{Span, Time};

use crate::tcp::CubicParameters;

/// What CUBIC remembers of the last loss. Windows are in segments.
#[derive(Clone, Debug)]
pub(super) struct Cubic {
    parameters: CubicParameters,
    /// W_max: where the curve is flat.
    maximum: f64,
    /// cwnd before the last reduction.
    before: f64,
    epoch: Option<Epoch>,
    /// The window with its fraction of a byte.
    exact: f64,
    /// The next stage follows a timeout (RFC 9438, 4.8).
    timed_out: bool,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// K: when the curve reaches W_max, in seconds.
    plateau: f64,
    /// W_est: what Reno would have.
    estimate: f64,
}

/// W_cubic(t) of RFC 9438, figure 1.
pub(super) fn curve(scale: f64, maximum: f64, plateau: f64, time: f64) -> f64 {
    let distance = time - plateau;
    scale * distance * distance * distance + maximum
}

/// K of RFC 9438, figure 2.
pub(super) fn plateau(scale: f64, maximum: f64, window: f64) -> f64 {
    libm::cbrt((maximum - window).max(0.0) / scale)
}

impl Cubic {
    pub(super) fn new(parameters: CubicParameters) -> Self {
        Self {
            parameters,
            maximum: 0.0,
            before: 0.0,
            epoch: None,
            exact: 0.0,
            timed_out: false,
        }
    }

    /// What is left of a window of `used` bytes after a loss or a mark (RFC 9438, 4.6 and 4.7).
    pub(super) fn reduce(&mut self, used: u64, segment: u64) -> u64 {
        let window = used as f64 / segment as f64;
        let decrease = self.parameters.decrease;
        self.maximum = if self.parameters.fast_convergence && window < self.maximum {
            window * (1.0 + decrease) / 2.0
        } else {
            window
        };
        self.before = window;
        self.epoch = None;
        self.timed_out = false;
        (used as f64 * decrease) as u64
    }

    pub(super) fn time_out(&mut self) {
        self.epoch = None;
        self.timed_out = true;
    }

    /// The window in avoidance after `bytes` more were acknowledged (RFC 9438, 4.2 to 4.5).
    pub(super) fn grow(
        &mut self,
        now: Time,
        window: u64,
        segment: u64,
        bytes: u64,
        smoothed: Option<Span>,
    ) -> u64 {
        let size = segment as f64;
        let scale = self.parameters.scale;
        // Between two calls only reductions change the window.
        if (self.exact * size) as u64 != window {
            self.exact = window as f64 / size;
        }
        let epoch = match &mut self.epoch {
            Some(epoch) => epoch,
            None => {
                if self.timed_out || self.maximum < self.exact {
                    self.maximum = self.exact;
                    self.timed_out = false;
                }
                self.epoch.insert(Epoch {
                    start: now,
                    plateau: plateau(scale, self.maximum, self.exact),
                    estimate: self.exact,
                })
            }
        };
        let segments = bytes as f64 / size;
        let decrease = self.parameters.decrease;
        let alpha = if epoch.estimate < self.before {
            3.0 * (1.0 - decrease) / (1.0 + decrease)
        } else {
            1.0
        };
        epoch.estimate += alpha * segments / self.exact;
        let elapsed = now.since(epoch.start).as_seconds_f64();
        let ahead = smoothed.map_or(0.0, Span::as_seconds_f64);
        if curve(scale, self.maximum, epoch.plateau, elapsed) < epoch.estimate {
            // The Reno-friendly region.
            self.exact = self.exact.max(epoch.estimate);
        } else {
            let target = curve(scale, self.maximum, epoch.plateau, elapsed + ahead)
                .clamp(self.exact, 1.5 * self.exact);
            self.exact += (target - self.exact) * (segments / self.exact).min(1.0);
        }
        (self.exact * size) as u64
    }
}
