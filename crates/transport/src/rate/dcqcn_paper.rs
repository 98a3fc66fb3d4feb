//! DCQCN's reaction point as its paper describes it (Zhu et al., "Congestion Control for Large-Scale RDMA
//! Deployments", SIGCOMM 2015, section 3.1 and figure 7).
//!
//! ```text
//! notification:      target = rate;  rate ·= 1 − alpha/2;  alpha = (1 − g)·alpha + g;  every timer and counter restarts
//! alpha timer:       alpha = (1 − g)·alpha                                     each alpha period without a notification
//! timer, bytes:      fast recovery   (both stages < F)                          rate = (rate + target) / 2
//!                    additive        target += additive step, then the same
//!                    hyper           (both stages > F)  target += hyper step, then the same
//! ```
//!
//! A queue pair starts at line rate with alpha = 1, and its timers start with the first notification. Rates are whole
//! bit/s, rounded down.
//!
//! Invariant: `due` is when the increase timer next acts, so up to then the rate is what is stored. Alpha does not
//! touch the rate before the next notification, so its ticks are worked off then, together.

use softfabric_units::{Bytes, Rate, Span, Time};

use super::{
    Phase, RateParameterError, decayed, positive_rate, positive_span, require, share, ticks_due,
};

/// The parameters of the paper's reaction point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DcqcnPaperParameters {
    /// `g`: the weight of news in alpha, 0 to 1.
    pub alpha_gain: f64,
    /// How long without a notification until alpha decays once.
    pub alpha_period: Span,
    /// The increase timer, `T`.
    pub increase_period: Span,
    /// The byte counter, `B`: an increase each time that so much has been sent. `None` switches it off.
    pub byte_counter: Option<Bytes>,
    /// `F`: how many increases of a counter are fast recovery.
    pub fast_recovery_stages: u32,
    /// `R_AI`: the step of the target in additive increase.
    pub additive_increase: Rate,
    /// `R_HAI`: the step of the target in hyper increase.
    pub hyper_increase: Rate,
    /// No decrease goes below it (nor below the line rate, where that is less).
    pub minimum_rate: Rate,
    /// The rate after the acknowledgement timer ran out. `None` leaves the rate as it is.
    pub restart_rate: Option<Rate>,
}

impl DcqcnPaperParameters {
    /// The paper's values for 40 Gb/s.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | `alpha_gain` | 1/256 | SIGCOMM'15, 5.2 |
    /// | `alpha_period` | 55 µs | SIGCOMM'15, 5.2 |
    /// | `increase_period` | 55 µs | SIGCOMM'15, 5.2 |
    /// | `byte_counter` | 10 MB | SIGCOMM'15, 5.2 |
    /// | `fast_recovery_stages` | 5 | SIGCOMM'15, 3.1 |
    /// | `additive_increase` | 40 Mb/s | SIGCOMM'15, 5.2 |
    /// | `hyper_increase` | 400 Mb/s | assumed: ten additive steps, the ratio of NVIDIA's defaults; the paper gives none |
    /// | `minimum_rate` | 1 Mb/s | assumed: NVIDIA's `rpg_min_rate`; the paper gives none |
    /// | `restart_rate` | none | not part of the paper |
    pub const fn sigcomm15() -> Self {
        Self {
            alpha_gain: 1.0 / 256.0,
            alpha_period: Span::micros(55),
            increase_period: Span::micros(55),
            byte_counter: Some(Bytes::mb(10)),
            fast_recovery_stages: 5,
            additive_increase: Rate::mbps(40),
            hyper_increase: Rate::mbps(400),
            minimum_rate: Rate::mbps(1),
            restart_rate: None,
        }
    }

    /// Whether the parameters can be run with.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn check(&self) -> Result<(), RateParameterError> {
        share("alpha_gain", self.alpha_gain)?;
        positive_span("alpha_period", self.alpha_period)?;
        positive_span("increase_period", self.increase_period)?;
        let counts = self.byte_counter != Some(Bytes::ZERO);
        require(counts, "byte_counter", &"0B", "above 0, or off")?;
        positive_rate("minimum_rate", self.minimum_rate)
    }
}

/// The state of one queue pair under the paper's DCQCN.
#[derive(Clone, Debug)]
pub struct DcqcnPaper {
    rate: u64,
    /// When the increase timer next acts; never before the first notification.
    due: Time,
    target: u64,
    line: u64,
    alpha: f64,
    /// When alpha next decays; never before the first notification.
    alpha_due: Time,
    /// What may still be sent before the byte counter acts.
    bytes_left: u64,
    time_stage: u32,
    byte_stage: u32,
    parameters: Box<DcqcnPaperParameters>,
}

impl DcqcnPaper {
    pub(super) fn new(parameters: &DcqcnPaperParameters, line: Rate) -> Self {
        Self {
            rate: line.as_bps(),
            due: Time::NEVER,
            target: line.as_bps(),
            line: line.as_bps(),
            alpha: 1.0,
            alpha_due: Time::NEVER,
            bytes_left: u64::MAX,
            time_stage: 0,
            byte_stage: 0,
            parameters: Box::new(*parameters),
        }
    }

    #[inline]
    pub(super) fn rate(&mut self, now: Time) -> Rate {
        if self.due <= now {
            self.catch_up(now);
        }
        Rate::bps(self.rate)
    }

    pub(super) fn on_notification(&mut self, now: Time) {
        self.catch_up(now);
        let gain = self.parameters.alpha_gain;
        let alpha = self.alpha(now);
        self.target = self.rate;
        let reduced = (self.rate as f64 * (1.0 - alpha / 2.0)) as u64;
        self.rate = reduced.max(self.minimum());
        self.alpha = (1.0 - gain) * alpha + gain;
        self.alpha_due = now.saturating_add(self.parameters.alpha_period);
        self.restart_increases(now);
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, bytes: Bytes) {
        if bytes.as_u64() < self.bytes_left {
            self.bytes_left -= bytes.as_u64();
        } else {
            self.count_bytes(now, bytes.as_u64());
        }
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        self.catch_up(now);
        let Some(restart) = self.parameters.restart_rate else {
            return;
        };
        let restart = restart.as_bps().max(self.minimum());
        if restart < self.rate {
            self.target = self.rate;
            self.rate = restart;
            self.restart_increases(now);
        }
    }

    pub(super) fn next_change(&mut self, now: Time) -> Option<Time> {
        self.catch_up(now);
        (self.due != Time::NEVER && !self.is_saturated()).then_some(self.due)
    }

    pub(super) fn alpha(&self, now: Time) -> f64 {
        let ticks = ticks_due(self.alpha_due, self.parameters.alpha_period, now);
        decayed(self.alpha, 1.0 - self.parameters.alpha_gain, ticks)
    }

    pub(super) fn target(&mut self, now: Time) -> Rate {
        self.catch_up(now);
        Rate::bps(self.target)
    }

    /// Lets the increase timer act at each of its times up to `now`.
    fn catch_up(&mut self, now: Time) {
        while self.due <= now {
            if self.is_saturated() {
                // The stages no longer matter: whatever ends this state starts them afresh.
                let ticks = ticks_due(self.due, self.parameters.increase_period, now);
                self.due = self
                    .due
                    .saturating_add(self.parameters.increase_period * ticks);
                return;
            }
            self.increase();
            self.time_stage = self.time_stage.saturating_add(1);
            self.due = self.due.saturating_add(self.parameters.increase_period);
        }
    }

    /// Counts `bytes` that reach or pass the byte counter's end.
    #[cold]
    fn count_bytes(&mut self, now: Time, mut bytes: u64) {
        self.catch_up(now);
        let reset = self.parameters.byte_counter.map_or(u64::MAX, Bytes::as_u64);
        while bytes >= self.bytes_left {
            bytes -= self.bytes_left;
            self.bytes_left = reset;
            self.increase();
            self.byte_stage = self.byte_stage.saturating_add(1);
        }
        self.bytes_left -= bytes;
    }

    fn increase(&mut self) {
        let parameters = &self.parameters;
        let threshold = parameters.fast_recovery_stages;
        let step = match Phase::of(self.time_stage, self.byte_stage, threshold) {
            Phase::FastRecovery => Rate::ZERO,
            Phase::Additive => parameters.additive_increase,
            Phase::Hyper => parameters.hyper_increase,
        };
        self.target = self.target.saturating_add(step.as_bps()).min(self.line);
        self.rate = self.rate.midpoint(self.target);
    }

    fn restart_increases(&mut self, now: Time) {
        self.time_stage = 0;
        self.byte_stage = 0;
        self.due = now.saturating_add(self.parameters.increase_period);
        self.bytes_left = self.parameters.byte_counter.map_or(u64::MAX, Bytes::as_u64);
    }

    /// Whether increases no longer change anything but the stages.
    fn is_saturated(&self) -> bool {
        self.target == self.line && self.rate.midpoint(self.line) == self.rate
    }

    fn minimum(&self) -> u64 {
        self.parameters.minimum_rate.as_bps().min(self.line)
    }
}
