//! What theory predicts, to hold the simulator against: DCQCN's equilibrium and its stability, and the shortest
//! possible completion time of a flow.
//!
//! | what | source | where |
//! |---|---|---|
//! | fixed point of DCQCN: marking and queue for N equal flows | Zhu et al., CoNEXT 2016, section 3 | [`Dcqcn::fixed_point`] |
//! | fluid model of DCQCN: does the queue settle or swing | the same, equations of the model | [`Dcqcn::fluid`] |
//! | completion time of a flow that is alone | arithmetic | [`ideal_completion`] |
//!
//! The paper: Y. Zhu, M. Ghobadi, V. Misra, J. Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and
//! TIMELY", CoNEXT 2016. Powers and logarithms come from `libm`: the same bits on every machine.

mod completion;
mod fixed_point;
mod fluid;
#[cfg(test)]
mod tests;

use softfabric_transport::rate::DcqcnPaperParameters;
use softfabric_units::{Bytes, Rate, Span};
use thiserror::Error;

pub use completion::{Acknowledgement, Hop, Message, hpcc_standalone, ideal_completion};
pub use fixed_point::FixedPoint;
pub use fluid::{FluidRun, FluidSettings};

/// N equal DCQCN flows over one bottleneck that marks by RED.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dcqcn {
    /// The bottleneck's rate, which is also the line rate of the senders.
    pub line: Rate,
    /// How many flows share it.
    pub flows: u32,
    /// The size of every packet.
    pub packet: Bytes,
    /// Below this queue nothing is marked.
    pub kmin: Bytes,
    /// Above this queue everything is marked.
    pub kmax: Bytes,
    /// The share of packets that is marked at `kmax`.
    pub pmax: f64,
    /// A receiver sends at most one notification in this time.
    pub notification_interval: Span,
    /// The senders.
    pub reaction: DcqcnPaperParameters,
}

/// A question that the model has no answer to.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum TheoryError {
    /// A parameter that the model divides by, or a range without extent.
    #[error("the model needs {needed}, but found {found}")]
    Parameter {
        /// What was found.
        found: String,
        /// What is needed.
        needed: &'static str,
    },
}

impl Dcqcn {
    /// The setting of the papers: 40 Gb/s, 1,000 B packets, RED from 5 KB to 200 KB at 1 %, a notification each 50 µs,
    /// and the reaction point of SIGCOMM 2015.
    pub const fn of_the_papers(flows: u32) -> Self {
        Self {
            line: Rate::gbps(40),
            flows,
            packet: Bytes::new(1_000),
            kmin: Bytes::kb(5),
            kmax: Bytes::kb(200),
            pmax: 0.01,
            notification_interval: Span::micros(50),
            reaction: DcqcnPaperParameters::sigcomm15(),
        }
    }

    fn check(&self) -> Result<(), TheoryError> {
        let requirements = [
            (self.line > Rate::ZERO, "a line rate above 0"),
            (self.flows > 0, "at least one flow"),
            (self.packet > Bytes::ZERO, "packets above 0 bytes"),
            (self.kmax > self.kmin, "kmax above kmin"),
            (
                self.pmax > 0.0 && self.pmax <= 1.0,
                "pmax in 0..=1, above 0",
            ),
            (
                self.notification_interval > Span::ZERO,
                "a notification interval above 0",
            ),
            (self.reaction.check().is_ok(), "a reaction point that runs"),
        ];
        match requirements.into_iter().find(|(holds, _)| !holds) {
            None => Ok(()),
            Some((_, needed)) => Err(TheoryError::Parameter {
                found: format!("{self:?}"),
                needed,
            }),
        }
    }

    /// A rate in packets a second.
    fn packets_per_second(&self, rate: Rate) -> f64 {
        rate.as_bps() as f64 / (8.0 * self.packet.as_f64())
    }

    /// The byte counter in packets; without one, infinitely many.
    fn byte_counter_packets(&self) -> f64 {
        let counter = self.reaction.byte_counter;
        counter.map_or(f64::INFINITY, |bytes| bytes.as_f64() / self.packet.as_f64())
    }
}

/// `(1 − p)^n`: that none of `n` packets is marked.
fn none_marked(marking: f64, packets: f64) -> f64 {
    if marking <= 0.0 || packets == 0.0 {
        return 1.0;
    }
    libm::exp(packets * libm::log1p(-marking))
}

/// `p / ((1 − p)^−n − 1)`: how often in a packet's time `n` packets in a row are seen unmarked; `1/n` without marking.
fn runs_per_packet(marking: f64, packets: f64) -> f64 {
    if packets.is_infinite() {
        return 0.0;
    }
    if marking <= 1e-12 {
        return 1.0 / packets;
    }
    marking / libm::expm1(-packets * libm::log1p(-marking))
}
