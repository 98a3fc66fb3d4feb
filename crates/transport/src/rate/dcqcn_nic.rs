//! DCQCN's reaction point as NVIDIA's NICs document it and as the HPCC ns-3 simulator runs it.
//!
//! It differs from the paper in that alpha and the decrease run on clocks of their own, which start with the first
//! notification and keep their rhythm:
//!
//! ```text
//! first notification  alpha = initial;  rate may be set;  both clocks start
//! any notification    noted twice: for the next alpha tick, and for the next decrease tick
//! alpha tick          alpha = (1 − g)·alpha + (noted ? g : 0)
//! decrease tick       if noted: target = rate if it has risen since the last decrease (or always, "clamp");
//!                               rate ·= 1 − alpha/2;  stages = 0;  the increase timer restarts
//! timer, bytes        stage < F   fast recovery        rate = rate/2 + target/2
//!                     stage = F   target += additive step first
//!                     stage > F   target += hyper step first
//! ```
//!
//! With the byte counter off, the stage is the timer's. With it on, fast recovery lasts while both stages are below F
//! and hyper increase starts when both are above (802.1Qau 32.4).
//!
//! Ties: of what is due at one instant, the increase timer acts first, then alpha, then the decrease, then what is
//! reported from outside (a notification, bytes). So a decrease that falls on an increase sees the raised rate, as in
//! HPCC, where 300 µs is a multiple of 4 µs and this happens at each cut.
//!
//! Rates are whole bit/s, rounded down at each step like ns-3's `DataRate`: halves are rounded down one by one.
//!
//! Invariant: `due` is the earlier of the increase timer and, if a decrease is noted, its tick. Nothing else changes the
//! rate, so up to then the rate is what is stored; alpha's ticks are worked off when alpha is needed.

use softfabric_units::{Bytes, Rate, Span, Time};

use super::{
    Phase, RateParameterError, decayed, positive_rate, positive_span, require, share, ticks_due,
};

/// The parameters of a NIC's reaction point. NVIDIA's names are those of `/sys/class/net/<interface>/ecn/roce_rp/`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DcqcnNicParameters {
    /// `g`, the weight of news in alpha, 0 to 1. NVIDIA's `dce_tcp_g` is what is kept, in 1/1024: g = 1 − `dce_tcp_g`/1024.
    pub alpha_gain: f64,
    /// Alpha at the first notification, 0 to 1 (`initial_alpha_value`/1024).
    pub initial_alpha: f64,
    /// The period of the alpha clock (`dce_tcp_rtt`).
    pub alpha_period: Span,
    /// The period of the decrease clock (`rate_reduce_monitor_period`).
    pub decrease_period: Span,
    /// How much later than one period the first decrease tick comes.
    pub first_decrease_delay: Span,
    /// The share of alpha that a decrease takes off: 2^(10 − `rpg_gd`).
    pub decrease_share: f64,
    /// A decrease leaves at least this share of the rate (`rpg_min_dec_fac`/100).
    pub minimum_decrease_factor: f64,
    /// The rate and target at the first notification (`rate_to_set_on_first_cnp`). `None`, NVIDIA's 0, leaves them.
    pub rate_on_first_notification: Option<Rate>,
    /// Each decrease sets the target to the rate (`clamp_tgt_rate`), also where no increase came before it.
    pub clamp_target: bool,
    /// A decrease sets the target to the rate also if only the timer has raised it since the last decrease, not the
    /// byte counter (`clamp_tgt_rate_after_time_inc`).
    pub clamp_target_after_timer: bool,
    /// No decrease goes below it, nor below the line rate where that is less (`rpg_min_rate`).
    pub minimum_rate: Rate,
    /// No increase goes above it. `None`, NVIDIA's `rpg_max_rate` 0, is the line rate.
    pub maximum_rate: Option<Rate>,
    /// The increase timer (`rpg_time_reset`).
    pub increase_period: Span,
    /// The byte counter (`rpg_byte_reset`); `None` switches it off.
    pub byte_counter: Option<Bytes>,
    /// `F`: how many increases are fast recovery (`rpg_threshold`).
    pub fast_recovery_stages: u32,
    /// The step of the target in additive increase (`rpg_ai_rate`).
    pub additive_increase: Rate,
    /// The step of the target in hyper increase (`rpg_hai_rate`).
    pub hyper_increase: Rate,
    /// At the maximum rate the limiter is released: the queue pair runs at line rate, its clocks stop, and the next
    /// notification is a first one again.
    pub release_at_maximum: bool,
    /// The rate after the acknowledgement timer ran out. `None` leaves the rate as it is.
    pub restart_rate: Option<Rate>,
}

impl DcqcnNicParameters {
    /// What the HPCC simulator runs as `dcqcn` on hosts of the given line rate.
    ///
    /// All from the HPCC ns-3 code (github.com/alibaba-edu/High-Precision-Congestion-Control): `run.py` for values that
    /// it writes to the configuration, `rdma-hw.cc` for what is fixed.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | `alpha_gain` | 1/256 | `EWMA_GAIN 0.00390625` |
    /// | `initial_alpha` | 1 | `rdma-hw.cc` |
    /// | `alpha_period` | 1 µs | `ALPHA_RESUME_INTERVAL 1` |
    /// | `decrease_period` | 4 µs | `RATE_DECREASE_INTERVAL 4` |
    /// | `first_decrease_delay` | 1 ns | `rdma-hw.cc`: the first check is scheduled so that alpha acts before it |
    /// | `decrease_share` | 1/2 | `rdma-hw.cc` |
    /// | `minimum_decrease_factor` | 0 | not there |
    /// | `rate_on_first_notification` | none | `rdma-hw.cc`: 1.0 of the rate |
    /// | `clamp_target` | no | `CLAMP_TARGET_RATE 0` |
    /// | `clamp_target_after_timer` | yes | `rdma-hw.cc`: target follows if the stage is not 0 |
    /// | `minimum_rate` | 1 Gb/s | `MIN_RATE 1000Mb/s` |
    /// | `maximum_rate` | line | `rdma-hw.cc` |
    /// | `increase_period` | 300 µs | `RP_TIMER 300` |
    /// | `byte_counter` | off | not there |
    /// | `fast_recovery_stages` | 1 | `FAST_RECOVERY_TIMES 1` |
    /// | `additive_increase` | 5 Mb/s per 25 Gb/s | `run.py`: `5 * bw / 25` |
    /// | `hyper_increase` | 50 Mb/s per 25 Gb/s | `run.py`: `50 * bw / 25` |
    /// | `release_at_maximum` | no | not there |
    /// | `restart_rate` | none | not there |
    pub const fn hpcc(bandwidth: Rate) -> Self {
        // 5 Mb/s per 25 Gb/s is one part in 5,000, in whole Mb/s as the configuration file writes it.
        let additive_megabits = bandwidth.as_bps() / 5_000 / 1_000_000;
        let hyper_megabits = bandwidth.as_bps() / 500 / 1_000_000;
        Self {
            alpha_gain: 1.0 / 256.0,
            initial_alpha: 1.0,
            alpha_period: Span::micros(1),
            decrease_period: Span::micros(4),
            first_decrease_delay: Span::nanos(1),
            decrease_share: 0.5,
            minimum_decrease_factor: 0.0,
            rate_on_first_notification: None,
            clamp_target: false,
            clamp_target_after_timer: true,
            minimum_rate: Rate::gbps(1),
            maximum_rate: None,
            increase_period: Span::micros(300),
            byte_counter: None,
            fast_recovery_stages: 1,
            additive_increase: Rate::mbps(additive_megabits),
            hyper_increase: Rate::mbps(hyper_megabits),
            release_at_maximum: false,
            restart_rate: None,
        }
    }

    /// What NVIDIA's NICs (ConnectX-4 and later) are shipped with.
    ///
    /// "Page" is NVIDIA's "DCQCN CC Parameters" (DOCA SDK documentation; formerly Mellanox community DOC-2790),
    /// "mlxconfig" a query of the firmware's defaults, and "mstflint" the field descriptions of
    /// `roce_cc_ecn` in its `tools_layouts`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | `alpha_gain` | 5/1024 | page: `dce_tcp_g` 1019 is kept |
    /// | `initial_alpha` | 1023/1024 | page: `initial_alpha_value` 1023 |
    /// | `alpha_period` | 1 µs | page: `dce_tcp_rtt` 1 |
    /// | `decrease_period` | 4 µs | page: `rate_reduce_monitor_period` 4 |
    /// | `first_decrease_delay` | 0 | assumed: not documented |
    /// | `decrease_share` | 1/2 | page: `rpg_gd` 11, log2 of a divisor of alpha in 1/1024 |
    /// | `minimum_decrease_factor` | 1/2 | page: `rpg_min_dec_fac` 50 % |
    /// | `rate_on_first_notification` | none | page: `rate_to_set_on_first_cnp` 0 |
    /// | `clamp_target` | no | mlxconfig: `CLAMP_TGT_RATE` false |
    /// | `clamp_target_after_timer` | yes | mlxconfig: `CLAMP_TGT_RATE_AFTER_TIME_INC` true |
    /// | `minimum_rate` | 1 Mb/s | page: `rpg_min_rate` 1 |
    /// | `maximum_rate` | line | mlxconfig: `RPG_MAX_RATE` 0; mstflint: 0 is full port speed |
    /// | `increase_period` | 300 µs | mlxconfig: `RPG_TIME_RESET` 300 |
    /// | `byte_counter` | 32767 · 64 B | mlxconfig: `RPG_BYTE_RESET` 32767; assumed: the unit of 64 B |
    /// | `fast_recovery_stages` | 1 | mlxconfig: `RPG_THRESHOLD` 1 |
    /// | `additive_increase` | 5 Mb/s | mlxconfig: `RPG_AI_RATE` 5 |
    /// | `hyper_increase` | 50 Mb/s | mlxconfig: `RPG_HAI_RATE` 50 |
    /// | `release_at_maximum` | yes | mstflint: at `rpg_max_rate` the limiter is released |
    /// | `restart_rate` | none | assumed: `roce_slow_restart` is off by default on recent firmware |
    pub const fn nvidia_default() -> Self {
        Self {
            alpha_gain: 5.0 / 1024.0,
            initial_alpha: 1023.0 / 1024.0,
            alpha_period: Span::micros(1),
            decrease_period: Span::micros(4),
            first_decrease_delay: Span::ZERO,
            decrease_share: 0.5,
            minimum_decrease_factor: 0.5,
            rate_on_first_notification: None,
            clamp_target: false,
            clamp_target_after_timer: true,
            minimum_rate: Rate::mbps(1),
            maximum_rate: None,
            increase_period: Span::micros(300),
            byte_counter: Some(Bytes::new(32_767 * 64)),
            fast_recovery_stages: 1,
            additive_increase: Rate::mbps(5),
            hyper_increase: Rate::mbps(50),
            release_at_maximum: true,
            restart_rate: None,
        }
    }

    /// Whether the parameters can be run with.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn check(&self) -> Result<(), RateParameterError> {
        share("alpha_gain", self.alpha_gain)?;
        share("initial_alpha", self.initial_alpha)?;
        share("decrease_share", self.decrease_share)?;
        share("minimum_decrease_factor", self.minimum_decrease_factor)?;
        positive_span("alpha_period", self.alpha_period)?;
        positive_span("decrease_period", self.decrease_period)?;
        positive_span("increase_period", self.increase_period)?;
        let counts = self.byte_counter != Some(Bytes::ZERO);
        require(counts, "byte_counter", &"0B", "above 0, or off")?;
        positive_rate("minimum_rate", self.minimum_rate)?;
        if let Some(maximum) = self.maximum_rate {
            let ordered = maximum >= self.minimum_rate;
            require(ordered, "maximum_rate", &maximum, "minimum_rate or more")?;
        }
        Ok(())
    }
}

/// The state of one queue pair under a NIC's DCQCN.
#[derive(Clone, Debug)]
pub struct DcqcnNic {
    rate: u64,
    /// When something next changes the rate: see the module's invariant.
    due: Time,
    /// What may still be sent before the byte counter acts.
    bytes_left: u64,
    target: u64,
    line: u64,
    /// When the increase timer next acts; never before the first decrease.
    increase_due: Time,
    /// A tick of the decrease clock: if a decrease is noted, the one at which it happens.
    decrease_due: Time,
    /// When alpha next changes.
    alpha_due: Time,
    alpha: f64,
    time_stage: u32,
    byte_stage: u32,
    /// Whether the alpha and the decrease clock run.
    is_notified: bool,
    noted_for_alpha: bool,
    noted_for_decrease: bool,
    parameters: Box<DcqcnNicParameters>,
}

impl DcqcnNic {
    pub(super) fn new(parameters: &DcqcnNicParameters, line: Rate) -> Self {
        Self {
            rate: line.as_bps(),
            due: Time::NEVER,
            bytes_left: u64::MAX,
            target: line.as_bps(),
            line: line.as_bps(),
            increase_due: Time::NEVER,
            decrease_due: Time::NEVER,
            alpha_due: Time::NEVER,
            alpha: parameters.initial_alpha,
            time_stage: 0,
            byte_stage: 0,
            is_notified: false,
            noted_for_alpha: false,
            noted_for_decrease: false,
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
        if self.is_notified {
            self.advance_alpha(now);
            self.noted_for_alpha = true;
        } else {
            self.start_clocks(now);
        }
        if !self.noted_for_decrease {
            self.noted_for_decrease = true;
            let period = self.parameters.decrease_period;
            let passed = ticks_due(self.decrease_due, period, now);
            self.decrease_due = self.decrease_due.saturating_add(period * passed);
        }
        self.set_due();
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, bytes: Bytes) {
        if self.due <= now {
            self.catch_up(now); // A decrease that is due restarts the byte counter first.
        }
        if bytes.as_u64() < self.bytes_left {
            self.bytes_left -= bytes.as_u64();
        } else {
            self.count_bytes(bytes.as_u64());
        }
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        self.catch_up(now);
        let Some(restart) = self.parameters.restart_rate else {
            return;
        };
        let restart = restart.as_bps().max(self.minimum());
        if restart < self.rate {
            self.target = self.rate.min(self.maximum());
            self.rate = restart;
            self.restart_increases(now);
        }
    }

    pub(super) fn next_change(&mut self, now: Time) -> Option<Time> {
        self.catch_up(now);
        (self.increase_due != Time::NEVER && !self.is_saturated()).then_some(self.increase_due)
    }

    pub(super) fn alpha(&self, now: Time) -> f64 {
        self.alpha_after(ticks_due(self.alpha_due, self.parameters.alpha_period, now))
    }

    pub(super) fn target(&mut self, now: Time) -> Rate {
        self.catch_up(now);
        Rate::bps(self.target)
    }

    /// The first notification: the queue pair becomes limited.
    fn start_clocks(&mut self, now: Time) {
        let parameters = &self.parameters;
        self.is_notified = true;
        self.noted_for_alpha = false;
        self.alpha = parameters.initial_alpha;
        self.alpha_due = now.saturating_add(parameters.alpha_period);
        self.decrease_due =
            now.saturating_add(parameters.decrease_period + parameters.first_decrease_delay);
        let set = parameters.rate_on_first_notification;
        let rate = set.map_or(self.rate, |rate| rate.as_bps().min(self.line));
        self.rate = rate.max(self.minimum()).min(self.maximum());
        self.target = self.rate;
    }

    /// Lets the increase timer and the noted decreases act at each of their times up to `now`.
    fn catch_up(&mut self, now: Time) {
        while self.due <= now {
            if self.increase_due == self.due {
                self.on_increase_timer(now);
            } else {
                self.decrease();
            }
            self.set_due();
        }
    }

    fn on_increase_timer(&mut self, now: Time) {
        let period = self.parameters.increase_period;
        let ticks = if self.is_saturated() && !self.noted_for_decrease {
            ticks_due(self.increase_due, period, now)
        } else {
            self.increase();
            1
        };
        self.time_stage = add_ticks(self.time_stage, ticks);
        self.increase_due = self.increase_due.saturating_add(period * ticks);
        self.release_if_full();
    }

    /// The decrease that is noted, at its tick.
    fn decrease(&mut self) {
        let tick = self.decrease_due;
        self.advance_alpha(tick);
        let parameters = &self.parameters;
        let has_risen =
            self.byte_stage > 0 || (parameters.clamp_target_after_timer && self.time_stage > 0);
        if parameters.clamp_target || has_risen {
            self.target = self.rate;
        }
        let factor =
            (1.0 - self.alpha * parameters.decrease_share).max(parameters.minimum_decrease_factor);
        self.rate = ((self.rate as f64 * factor) as u64).max(self.minimum());
        self.noted_for_decrease = false;
        self.decrease_due = tick.saturating_add(self.parameters.decrease_period);
        self.restart_increases(tick);
    }

    /// Counts `bytes` that reach or pass the byte counter's end.
    #[cold]
    fn count_bytes(&mut self, mut bytes: u64) {
        while bytes >= self.bytes_left {
            bytes -= self.bytes_left;
            self.bytes_left = self.byte_counter();
            self.increase();
            self.byte_stage = self.byte_stage.saturating_add(1);
            self.release_if_full();
        }
        self.bytes_left -= bytes;
        self.set_due();
    }

    fn increase(&mut self) {
        let parameters = &self.parameters;
        let byte_stage = match parameters.byte_counter {
            Some(_) => self.byte_stage,
            None => self.time_stage,
        };
        let threshold = parameters.fast_recovery_stages;
        let step = match Phase::of(self.time_stage, byte_stage, threshold) {
            Phase::FastRecovery => Rate::ZERO,
            Phase::Additive => parameters.additive_increase,
            Phase::Hyper => parameters.hyper_increase,
        };
        let maximum = self.maximum();
        self.target = self.target.saturating_add(step.as_bps()).min(maximum);
        self.rate = half_way(self.rate, self.target).max(self.minimum());
    }

    fn restart_increases(&mut self, now: Time) {
        self.time_stage = 0;
        self.byte_stage = 0;
        self.increase_due = now.saturating_add(self.parameters.increase_period);
        self.bytes_left = self.byte_counter();
        self.set_due();
    }

    /// At the maximum rate, stops every clock where the parameters say so; not while a decrease is noted.
    fn release_if_full(&mut self) {
        if self.parameters.release_at_maximum && self.is_saturated() && !self.noted_for_decrease {
            self.rate = self.line;
            self.target = self.line;
            self.is_notified = false;
            self.increase_due = Time::NEVER;
            self.alpha_due = Time::NEVER;
            self.alpha = self.parameters.initial_alpha;
            self.bytes_left = u64::MAX;
        }
    }

    fn set_due(&mut self) {
        let decrease_due = if self.noted_for_decrease {
            self.decrease_due
        } else {
            Time::NEVER
        };
        self.due = self.increase_due.min(decrease_due);
    }

    fn advance_alpha(&mut self, now: Time) {
        let period = self.parameters.alpha_period;
        let ticks = ticks_due(self.alpha_due, period, now);
        if ticks > 0 {
            self.alpha = self.alpha_after(ticks);
            self.noted_for_alpha = false;
            self.alpha_due = self.alpha_due.saturating_add(period * ticks);
        }
    }

    /// Alpha after `ticks` more: a notification counts at the first of them.
    fn alpha_after(&self, ticks: u64) -> f64 {
        let gain = self.parameters.alpha_gain;
        let keep = 1.0 - gain;
        if self.noted_for_alpha && ticks > 0 {
            decayed(keep * self.alpha + gain, keep, ticks - 1)
        } else {
            decayed(self.alpha, keep, ticks)
        }
    }

    /// Whether increases no longer change anything but the stages.
    fn is_saturated(&self) -> bool {
        let maximum = self.maximum();
        self.target == maximum && half_way(self.rate, maximum) <= self.rate
    }

    fn byte_counter(&self) -> u64 {
        self.parameters.byte_counter.map_or(u64::MAX, Bytes::as_u64)
    }

    fn minimum(&self) -> u64 {
        self.parameters.minimum_rate.as_bps().min(self.line)
    }

    fn maximum(&self) -> u64 {
        let maximum = self.parameters.maximum_rate;
        maximum.map_or(self.line, |rate| rate.as_bps().min(self.line))
    }
}

/// Half of each, rounded down one by one, as ns-3 does it: up to 1 bit/s less than the mean.
const fn half_way(rate: u64, target: u64) -> u64 {
    rate / 2 + target / 2
}

/// A stage after `ticks` more, at most what its counter holds.
fn add_ticks(stage: u32, ticks: u64) -> u32 {
    stage.saturating_add(u32::try_from(ticks).unwrap_or(u32::MAX))
}
