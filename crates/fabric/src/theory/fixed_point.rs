//! DCQCN's equilibrium, solved without approximation.
//!
//! At the fixed point each flow has the rate R = C/N, and all derivatives of the fluid model are zero. With τ the
//! notification interval, τ' the alpha period, T the increase timer, B the byte counter in packets and F the stages
//! of fast recovery:
//!
//! ```text
//! a = 1 − (1−p)^(τR)              a notification in an interval
//! α = 1 − (1−p)^(τ'R)
//! b = p / ((1−p)^(−B) − 1)        increases by the byte counter, a packet
//! c = (1−p)^(FB) · b              those of them past fast recovery
//! d = p / ((1−p)^(−TR) − 1)       increases by the timer, a packet
//! e = (1−p)^(FTR) · d             those of them past fast recovery
//!
//! α · a² = τ² · R_AI · R · (b + d)(c + e)
//! q = Kmin + (p / Pmax)(Kmax − Kmin)
//! ```
//!
//! The left side rises with p and the right side falls, so there is one solution, found by bisection. (The closed
//! form for small p that the paper goes on with lies 19 to 58 % too high at 40 Gb/s.)

use softfabric_units::{Bytes, Rate};

use super::{Dcqcn, TheoryError, none_marked, runs_per_packet};

/// The equilibrium of N equal flows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FixedPoint {
    /// p*: the share of packets marked.
    pub marking: f64,
    /// q*: the queue at which that share is marked; none where it is more than `pmax`, so that no queue on RED's
    /// slope holds the flows and they swing.
    pub queue: Option<Bytes>,
    /// Each sender's estimate of congestion.
    pub alpha: f64,
    /// Each sender's rate.
    pub rate: Rate,
}

/// Bisection narrows p to the precision of its 53 bits well before this many halvings.
const HALVINGS: u32 = 200;

impl Dcqcn {
    /// The equilibrium.
    ///
    /// # Errors
    /// [`TheoryError`] where a parameter makes the question meaningless.
    pub fn fixed_point(&self) -> Result<FixedPoint, TheoryError> {
        self.check()?;
        let rate = Rate::bps(self.line.as_bps() / u64::from(self.flows));
        let (mut low, mut high) = (1e-15, 1.0 - 1e-12);
        for _ in 0..HALVINGS {
            // In the geometric middle, as p may be of any magnitude.
            let middle = libm::sqrt(low * high);
            if self.imbalance(middle, rate) < 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        let marking = low;
        let slope = (self.kmax - self.kmin).as_f64();
        let queue = self.kmin.as_f64() + marking / self.pmax * slope;
        let packets = self.packets_per_second(rate);
        let alpha_period = self.reaction.alpha_period.as_seconds_f64();
        Ok(FixedPoint {
            marking,
            queue: (marking <= self.pmax).then(|| Bytes::new(queue as u64)),
            alpha: 1.0 - none_marked(marking, alpha_period * packets),
            rate,
        })
    }

    /// What marking at `marking` takes from a flow less what it gains: below zero where the flow would grow.
    pub(super) fn imbalance(&self, marking: f64, rate: Rate) -> f64 {
        let reaction = &self.reaction;
        let rate = self.packets_per_second(rate);
        let interval = self.notification_interval.as_seconds_f64();
        let stages = f64::from(reaction.fast_recovery_stages);
        let counter = self.byte_counter_packets();
        let timer = reaction.increase_period.as_seconds_f64() * rate;
        let step = self.packets_per_second(reaction.additive_increase);

        let a = 1.0 - none_marked(marking, interval * rate);
        let alpha = 1.0 - none_marked(marking, reaction.alpha_period.as_seconds_f64() * rate);
        let b = runs_per_packet(marking, counter);
        let c = none_marked(marking, stages * counter) * b;
        let d = runs_per_packet(marking, timer);
        let e = none_marked(marking, stages * timer) * d;
        alpha * a * a - interval * interval * step * rate * (b + d) * (c + e)
    }
}
