//! DCQCN as delay differential equations: whether the queue settles, and where.
//!
//! All flows are alike, so one rate R, one target S and one α stand for all. With p and R of one feedback delay ago
//! written p' and R', and the abbreviations of the fixed point taken at p' and R':
//!
//! ```text
//! dq/dt = N·R − C                                                    (not below an empty queue)
//! p     = RED(q)
//! dα/dt = g/τ' · (1 − (1−p')^(τ'R') − α)
//! dS/dt = −(S − R)/τ · a + R_AI · R' · (c + e)
//! dR/dt = −R·α/(2τ) · a  + (S − R)/2 · R' · (b + d)
//! ```
//!
//! Solved by Euler's method with a step far below the feedback delay. Rates stay between the minimum and the line
//! rate. Hyper increase is left out, as in the paper.

use softfabric_units::{Bytes, Span};

use super::{Dcqcn, TheoryError, none_marked, runs_per_packet};

/// How to integrate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FluidSettings {
    /// From a mark to its effect at the sender.
    pub feedback_delay: Span,
    /// The step of time.
    pub step: Span,
    /// What is left out of the statistics at the start.
    pub warm_up: Span,
    /// How long to integrate, the warm-up included.
    pub length: Span,
    /// How often the trace keeps a sample; none keeps no trace.
    pub sample_every: Option<Span>,
}

impl FluidSettings {
    /// 100 ms after a warm-up of 100 ms in steps of 500 ns: enough for every case of the papers.
    pub const fn with_delay(feedback_delay: Span) -> Self {
        Self {
            feedback_delay,
            step: Span::nanos(500),
            warm_up: Span::millis(100),
            length: Span::millis(200),
            sample_every: None,
        }
    }
}

/// What came out.
#[derive(Clone, PartialEq, Debug)]
pub struct FluidRun {
    /// The mean queue in bytes after the warm-up.
    pub mean_queue: f64,
    /// The standard deviation of the queue in bytes after the warm-up.
    pub queue_deviation: f64,
    /// The mean of all flows' rate together over the line rate, after the warm-up.
    pub utilisation: f64,
    /// Queue in time, from the start on.
    pub trace: Vec<(Span, Bytes)>,
}

/// The state of the equations, rates in packets a second, the queue in packets.
#[derive(Clone, Copy)]
struct State {
    queue: f64,
    alpha: f64,
    target: f64,
    rate: f64,
}

/// What a sender hears of: the past, one feedback delay ago.
#[derive(Clone, Copy)]
struct Feedback {
    marking: f64,
    rate: f64,
}

impl Dcqcn {
    /// Integrates the model from line rate and an empty queue.
    ///
    /// # Errors
    /// [`TheoryError`] where a parameter makes the question meaningless.
    pub fn fluid(&self, settings: &FluidSettings) -> Result<FluidRun, TheoryError> {
        self.check()?;
        if settings.step.is_zero() || settings.length <= settings.warm_up {
            return Err(TheoryError::Parameter {
                found: format!("{settings:?}"),
                needed: "a step above 0, and a length beyond the warm-up",
            });
        }
        let steps = settings.length.div_floor(settings.step);
        let delay = settings.feedback_delay.div_floor(settings.step).max(1) as usize;
        let line = self.packets_per_second(self.line);
        let mut state = State {
            queue: 0.0,
            alpha: 1.0,
            target: line,
            rate: line,
        };
        // A ring of what is still on its way back: before the start, no marks.
        let mut past = vec![
            Feedback {
                marking: 0.0,
                rate: line,
            };
            delay
        ];
        let mut statistics = Statistics::default();
        let mut trace = Vec::new();
        let mut next_sample = Span::ZERO;
        for step in 0..steps {
            let time = settings.step * step;
            let slot = (step % delay as u64) as usize;
            let heard = past[slot];
            past[slot] = Feedback {
                marking: self.red(state.queue),
                rate: state.rate,
            };
            if let Some(every) = settings.sample_every
                && time >= next_sample
            {
                trace.push((time, Bytes::new(self.queue_bytes(&state) as u64)));
                next_sample += every.max(settings.step);
            }
            if time >= settings.warm_up {
                statistics.add(self.queue_bytes(&state), state.rate);
            }
            state = self.advance(state, heard, settings.step.as_seconds_f64());
        }
        Ok(FluidRun {
            mean_queue: statistics.mean(),
            queue_deviation: statistics.deviation(),
            utilisation: statistics.mean_rate() * f64::from(self.flows) / line,
            trace,
        })
    }

    fn advance(&self, state: State, heard: Feedback, step: f64) -> State {
        let reaction = &self.reaction;
        let interval = self.notification_interval.as_seconds_f64();
        let alpha_period = reaction.alpha_period.as_seconds_f64();
        let stages = f64::from(reaction.fast_recovery_stages);
        let counter = self.byte_counter_packets();
        let timer = reaction.increase_period.as_seconds_f64() * heard.rate;
        let increase = self.packets_per_second(reaction.additive_increase);
        let line = self.packets_per_second(self.line);
        let minimum = self.packets_per_second(reaction.minimum_rate.min(self.line));

        let marking = heard.marking;
        let a = 1.0 - none_marked(marking, interval * heard.rate);
        let b = runs_per_packet(marking, counter);
        let c = none_marked(marking, stages * counter) * b;
        let d = runs_per_packet(marking, timer);
        let e = none_marked(marking, stages * timer) * d;
        let news = 1.0 - none_marked(marking, alpha_period * heard.rate);

        let gap = state.target - state.rate;
        let queue_change = f64::from(self.flows) * state.rate - line;
        let alpha_change = reaction.alpha_gain / alpha_period * (news - state.alpha);
        let target_change = -gap / interval * a + increase * heard.rate * (c + e);
        let rate_change =
            -state.rate * state.alpha / (2.0 * interval) * a + gap / 2.0 * heard.rate * (b + d);
        State {
            queue: (state.queue + step * queue_change).max(0.0),
            alpha: (state.alpha + step * alpha_change).clamp(0.0, 1.0),
            target: (state.target + step * target_change).clamp(minimum, line),
            rate: (state.rate + step * rate_change).clamp(minimum, line),
        }
    }

    /// The share of packets that RED marks at a queue of so many packets.
    fn red(&self, queue: f64) -> f64 {
        let queue = queue * self.packet.as_f64();
        let (kmin, kmax) = (self.kmin.as_f64(), self.kmax.as_f64());
        if queue <= kmin {
            0.0
        } else if queue <= kmax {
            self.pmax * (queue - kmin) / (kmax - kmin)
        } else {
            // Not 1: a logarithm of nothing follows.
            1.0 - 1e-9
        }
    }

    fn queue_bytes(&self, state: &State) -> f64 {
        state.queue * self.packet.as_f64()
    }
}

#[derive(Default)]
struct Statistics {
    count: f64,
    sum: f64,
    squares: f64,
    rates: f64,
}

impl Statistics {
    fn add(&mut self, queue: f64, rate: f64) {
        self.count += 1.0;
        self.sum += queue;
        self.squares += queue * queue;
        self.rates += rate;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count
    }

    fn mean_rate(&self) -> f64 {
        self.rates / self.count
    }

    fn deviation(&self) -> f64 {
        let mean = self.mean();
        libm::sqrt((self.squares / self.count - mean * mean).max(0.0))
    }
}
