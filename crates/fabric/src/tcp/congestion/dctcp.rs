//! DCTCP's sender (RFC 8257, 3.3): the share of marked bytes in each window, smoothed, says how much to slow down.

use super::Acknowledged;
use crate::tcp::DctcpParameters;

/// The estimate of congestion.
#[derive(Clone, Debug)]
pub(super) struct Dctcp {
    gain: f64,
    alpha: f64,
    acknowledged: u64,
    marked: u64,
    /// The window of observation ends when this is acknowledged.
    window_end: u64,
}

impl Dctcp {
    pub(super) fn new(parameters: DctcpParameters) -> Self {
        Self {
            gain: parameters.gain,
            alpha: parameters.initial_alpha,
            acknowledged: 0,
            marked: 0,
            window_end: 0,
        }
    }

    pub(super) fn alpha(&self) -> f64 {
        self.alpha
    }

    pub(super) fn observe(&mut self, acknowledged: &Acknowledged, marked: bool) {
        self.acknowledged += acknowledged.bytes;
        if marked {
            self.marked += acknowledged.bytes;
        }
        if acknowledged.position <= self.window_end {
            return;
        }
        if self.acknowledged > 0 {
            let share = self.marked as f64 / self.acknowledged as f64;
            self.alpha = self.alpha * (1.0 - self.gain) + self.gain * share;
        }
        self.acknowledged = 0;
        self.marked = 0;
        self.window_end = acknowledged.sent;
    }

    /// What a report of marks leaves of a window.
    pub(super) fn reduced(&self, window: u64) -> u64 {
        (window as f64 * (1.0 - self.alpha / 2.0)) as u64
    }
}
