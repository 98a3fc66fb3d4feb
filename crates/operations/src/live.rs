//! A fabric that is watched: samples come, the last while of them is kept, and a diagnosis is asked for again and again.
//!
//! ```text
//! add ──► History of the last `window` ──► diagnose
//!             └► what is older is forgotten, a quarter of the window at a time
//! ```

use softfabric_telemetry::Counter;
use softfabric_units::{Span, Time};

use crate::diagnose::{Diagnosis, diagnose};
use crate::history::{History, PortSample, Width};
use crate::topology::{PortIndex, Topology};

/// A topology and what its ports said lately.
#[derive(Clone, PartialEq, Debug)]
pub struct Live {
    topology: Topology,
    history: History,
    window: Span,
    /// The samples before this are forgotten.
    from: Time,
    latest: Time,
}

impl Live {
    /// Watches a fabric of which nothing is known yet, and remembers at least the last `window`.
    pub fn new(topology: Topology, window: Span) -> Self {
        Self {
            history: History::new(&topology),
            topology,
            window,
            from: Time::ZERO,
            latest: Time::ZERO,
        }
    }

    /// Says how a counter ends; without it, it has 64 bits.
    pub fn set_width(&mut self, port: PortIndex, counter: Counter, width: Width) {
        self.history.set_width(port, counter, width);
    }

    /// Takes what a port said, all of its counters.
    pub fn add(&mut self, port: PortIndex, time: Time, sample: &PortSample) {
        self.latest = self.latest.max(time);
        let length = self.window.as_picos();
        // To forget costs a walk over all counters, so it is done now and then.
        if self.latest.as_picos() - self.from.as_picos() > length + length / 4 {
            self.from = Time::from_picos(self.latest.as_picos() - length);
            self.history.forget_before(self.from);
        }
        if time >= self.from {
            self.history.add(port, time, sample);
        }
    }

    /// Who is wired to whom.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// What ports said lately.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// What is wrong, as far as the last while shows it.
    pub fn diagnose(&self) -> Diagnosis {
        diagnose(&self.topology, &self.history)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::samples::{Flow, Hand, leaf_spine};
    use crate::diagnose::{Cause, Verdict};

    /// A storm begins and ends: it is seen while it is there, and forgotten a window after it.
    #[test]
    fn what_is_over_for_longer_than_the_window_is_forgotten() {
        let mut hand = Hand::new(leaf_spine(2, 2, 2));
        let stuck = Flow {
            held: 1.0,
            ..Flow::default()
        };
        let quiet = |hand: &mut Hand| {
            for _ in 0..20 {
                hand.second(&[]);
            }
        };
        quiet(&mut hand);
        for _ in 0..10 {
            hand.second(&[("leaf1:1", stuck), ("spine0:1", stuck)]);
        }
        quiet(&mut hand);
        let mut live = Live::new(hand.topology.clone(), Span::seconds(8));
        let mut verdicts = Vec::new();
        let history = hand.history();
        for second in 0..=50 {
            let time = Time::ZERO + Span::seconds(second);
            for port in hand.topology.port_indices() {
                live.add(port, time, &history.sample(port, time));
            }
            assert!(live.history().times(PortIndex(0)).len() <= 12);
            verdicts.push(live.diagnose().verdict);
        }
        let storm = Verdict::Cause(Cause::HostStorm);
        assert_ne!(verdicts[19], storm);
        assert_eq!(verdicts[25], storm);
        assert_eq!(verdicts[30], storm);
        assert_ne!(verdicts[45], storm);
    }
}
