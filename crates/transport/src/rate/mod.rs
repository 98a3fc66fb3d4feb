//! Rate control of one queue pair: how fast it may send, and how congestion notifications and time change that.
//!
//! ```text
//!                on_notification (CNP, or BECN on an acknowledgement)
//!                        │
//!   on_sent ──► byte ┐   ▼
//!                    ├─► stages ──► target ──► rate(now) ──► pacing of the queue pair
//!   time ─────► timer┘              ▲
//!   time ─────► alpha ──────────────┘ how deep the next cut is
//! ```
//!
//! Nothing here asks for an event per timer tick. State is brought up to date when it is asked for, with every timer
//! acting at its own time, so the result does not depend on when or how often it is asked: [`RateControl::rate`] may
//! be called for every packet or once a second and gives the same rates.
//!
//! Invariants: a rate lies between the smaller of the minimum and the line rate, and the line rate. Timers due at or
//! before `now` act before what is reported at `now`. Time never runs backwards.

mod dcqcn_nic;
mod dcqcn_paper;
mod injection;
#[cfg(test)]
mod tests;

use softfabric_units::{Bytes, Rate, Span, Time};
use thiserror::Error;

pub use dcqcn_nic::{DcqcnNic, DcqcnNicParameters};
pub use dcqcn_paper::{DcqcnPaper, DcqcnPaperParameters};
pub use injection::{
    InjectionControl, InjectionDelay, InjectionDelayParameters, InjectionTable, TABLE_ENTRIES,
    TIMER_UNIT,
};

/// Which rate control a NIC gives to its queue pairs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum RateControlConfig {
    /// Line rate, whatever the network says.
    #[default]
    None,
    /// A constant rate, at most the line rate.
    Fixed {
        /// The rate.
        rate: Rate,
    },
    /// DCQCN as its paper describes it.
    DcqcnPaper(DcqcnPaperParameters),
    /// DCQCN as NVIDIA's NICs and the HPCC simulator run it.
    DcqcnNic(DcqcnNicParameters),
    /// InfiniBand's: a wait after each packet, from a table (IBTA vol. 1, annex A10).
    InjectionDelay(InjectionDelayParameters),
}

impl RateControlConfig {
    /// Whether the parameters can be run with.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn check(&self) -> Result<(), RateParameterError> {
        match self {
            Self::None => Ok(()),
            Self::Fixed { rate } => positive_rate("rate", *rate),
            Self::DcqcnPaper(parameters) => parameters.check(),
            Self::DcqcnNic(parameters) => parameters.check(),
            Self::InjectionDelay(parameters) => parameters.check(),
        }
    }
}

/// A parameter of rate control that is out of its range.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("rate control parameter `{parameter}` is {found}, but it must be {needed}")]
pub struct RateParameterError {
    /// The field's name.
    pub parameter: &'static str,
    /// The value found.
    pub found: String,
    /// What is allowed.
    pub needed: &'static str,
}

/// The rate control of one queue pair.
#[derive(Clone, Debug)]
pub enum RateControl {
    /// Line rate always.
    None {
        /// The line rate.
        line: Rate,
    },
    /// A constant rate.
    Fixed(Rate),
    /// DCQCN of the paper.
    DcqcnPaper(DcqcnPaper),
    /// DCQCN of NICs.
    DcqcnNic(DcqcnNic),
    /// InfiniBand's.
    Injection(InjectionControl),
}

impl RateControl {
    /// The rate control of a new queue pair on a line of rate `line`: every kind but the fixed one starts at line rate,
    /// or at that of its lowest entry.
    ///
    /// # Panics
    /// If the parameters do not pass [`RateControlConfig::check`].
    pub fn new(config: &RateControlConfig, line: Rate, now: Time) -> Self {
        let _ = now; // The clocks of both DCQCN variants start with the first notification.
        if let Err(error) = config.check() {
            panic!("{error}");
        }
        match config {
            RateControlConfig::None => Self::None { line },
            RateControlConfig::Fixed { rate } => Self::Fixed((*rate).min(line)),
            RateControlConfig::DcqcnPaper(parameters) => {
                Self::DcqcnPaper(DcqcnPaper::new(parameters, line))
            }
            RateControlConfig::DcqcnNic(parameters) => {
                Self::DcqcnNic(DcqcnNic::new(parameters, line))
            }
            RateControlConfig::InjectionDelay(parameters) => {
                Self::Injection(InjectionControl::new(parameters, line))
            }
        }
    }

    /// Whether the rate is the line's for ever, so that nothing has to be paced.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None { .. })
    }

    /// The sending rate at `now`, after every timer of its own that is due at or before `now`.
    #[inline]
    pub fn rate(&mut self, now: Time) -> Rate {
        match self {
            Self::None { line } => *line,
            Self::Fixed(rate) => *rate,
            Self::DcqcnPaper(state) => state.rate(now),
            Self::DcqcnNic(state) => state.rate(now),
            Self::Injection(state) => state.rate(now),
        }
    }

    /// A congestion notification arrived at `now`. True where that is an event to log, as InfiniBand's trigger threshold
    /// says.
    pub fn on_notification(&mut self, now: Time) -> bool {
        match self {
            Self::None { .. } | Self::Fixed(_) => {}
            Self::DcqcnPaper(state) => state.on_notification(now),
            Self::DcqcnNic(state) => state.on_notification(now),
            Self::Injection(state) => return state.on_notification(now),
        }
        false
    }

    /// `bytes` were sent at `now`: counts towards the byte counter.
    #[inline]
    pub fn on_sent(&mut self, now: Time, bytes: Bytes) {
        match self {
            Self::None { .. } | Self::Fixed(_) | Self::Injection(_) => {}
            Self::DcqcnPaper(state) => state.on_sent(now, bytes),
            Self::DcqcnNic(state) => state.on_sent(now, bytes),
        }
    }

    /// The acknowledgement timer of the queue pair ran out at `now`: restarts slowly where that is asked for.
    pub fn on_timeout(&mut self, now: Time) {
        match self {
            Self::None { .. } | Self::Fixed(_) | Self::Injection(_) => {}
            Self::DcqcnPaper(state) => state.on_timeout(now),
            Self::DcqcnNic(state) => state.on_timeout(now),
        }
    }

    /// When its own timers may next raise the rate: never later than they do, possibly earlier. Nothing where the
    /// rate cannot rise by time alone.
    pub fn next_change(&mut self, now: Time) -> Option<Time> {
        match self {
            Self::None { .. } | Self::Fixed(_) => None,
            Self::DcqcnPaper(state) => state.next_change(now),
            Self::DcqcnNic(state) => state.next_change(now),
            Self::Injection(state) => state.next_change(now),
        }
    }

    /// DCQCN's estimate of congestion at `now`, 0 to 1; nothing for the other kinds.
    pub fn alpha(&self, now: Time) -> Option<f64> {
        match self {
            Self::None { .. } | Self::Fixed(_) | Self::Injection(_) => None,
            Self::DcqcnPaper(state) => Some(state.alpha(now)),
            Self::DcqcnNic(state) => Some(state.alpha(now)),
        }
    }

    /// The index into InfiniBand's control table at `now` (CCTI); nothing for the other kinds.
    pub fn injection_index(&mut self, now: Time) -> Option<u8> {
        match self {
            Self::Injection(state) => Some(state.index(now)),
            _ => None,
        }
    }

    /// The rate that DCQCN recovers towards at `now`; the rate itself for the other kinds.
    pub fn target(&mut self, now: Time) -> Rate {
        match self {
            Self::None { line } => *line,
            Self::Fixed(rate) => *rate,
            Self::DcqcnPaper(state) => state.target(now),
            Self::DcqcnNic(state) => state.target(now),
            Self::Injection(state) => state.rate(now),
        }
    }
}

/// What an increase does, by how far the timer and the byte counter have come since the last decrease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Halve the distance to the target.
    FastRecovery,
    /// Raise the target by a small step first.
    Additive,
    /// Raise the target by a large step first.
    Hyper,
}

impl Phase {
    /// The phase of an increase, from the increases that the timer and the byte counter have made *before* it: the
    /// first `threshold` increases are fast recovery ("F successive iterations", SIGCOMM'15, 3.1).
    fn of(time_stage: u32, byte_stage: u32, threshold: u32) -> Self {
        if time_stage.max(byte_stage) < threshold {
            Self::FastRecovery
        } else if time_stage.min(byte_stage) > threshold {
            Self::Hyper
        } else {
            Self::Additive
        }
    }
}

/// Up to this many factors are multiplied one by one, exactly as a timer per tick would; beyond, by squaring.
const EXACT_TICKS: u64 = 64;

/// `alpha · keep^ticks`, the same bits on every machine: only multiplications in a fixed order.
fn decayed(mut alpha: f64, keep: f64, mut ticks: u64) -> f64 {
    if ticks <= EXACT_TICKS {
        for _ in 0..ticks {
            alpha *= keep;
        }
        return alpha;
    }
    let mut power = keep;
    while ticks > 0 {
        if ticks & 1 == 1 {
            alpha *= power;
        }
        power *= power;
        ticks >>= 1;
    }
    alpha
}

/// How many ticks of a clock with the given period are due at or before `now`, its next one being due at `next`.
fn ticks_due(next: Time, period: Span, now: Time) -> u64 {
    if next > now {
        0
    } else {
        now.since(next).div_floor(period) + 1
    }
}

fn positive_rate(parameter: &'static str, rate: Rate) -> Result<(), RateParameterError> {
    require(!rate.is_zero(), parameter, &rate, "above 0")
}

fn positive_span(parameter: &'static str, span: Span) -> Result<(), RateParameterError> {
    require(!span.is_zero(), parameter, &span, "above 0")
}

fn share(parameter: &'static str, value: f64) -> Result<(), RateParameterError> {
    let within = (0.0..=1.0).contains(&value);
    require(within, parameter, &value, "between 0 and 1")
}

fn require(
    holds: bool,
    parameter: &'static str,
    found: &dyn ToString,
    needed: &'static str,
) -> Result<(), RateParameterError> {
    if holds {
        return Ok(());
    }
    Err(RateParameterError {
        parameter,
        found: found.to_string(),
        needed,
    })
}
