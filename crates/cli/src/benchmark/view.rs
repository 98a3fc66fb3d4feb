//! What is seen of a run: everything, or what telemetry of real fabrics would leave of it.

use softfabric_operations::{History, PortIndex, Topology};
use softfabric_units::{Random, Span};

/// How much is seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum View {
    /// Every port, every poll.
    Whole,
    /// A fifth of all ports is not heard at all.
    PortsMissing,
    /// A tenth of all samples is lost, and each of the others is late by up to half of a poll.
    LateAndLost,
}

impl View {
    pub(super) const ALL: [Self; 3] = [Self::Whole, Self::PortsMissing, Self::LateAndLost];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::PortsMissing => "20 % of ports missing",
            Self::LateAndLost => "10 % of samples lost, others late",
        }
    }

    /// The history that is left.
    pub(super) fn of(self, topology: &Topology, history: &History, seed: u64) -> History {
        let mut random = Random::stream(seed, 7_777);
        match self {
            Self::Whole => history.clone(),
            Self::PortsMissing => {
                let missing: Vec<PortIndex> = topology
                    .port_indices()
                    .filter(|_| random.chance(0.2))
                    .collect();
                history.filtered(|port, time| (!missing.contains(&port)).then_some(time))
            }
            Self::LateAndLost => history.filtered(|port, time| {
                let interval = history.interval(port).unwrap_or(Span::ZERO);
                let late = Span::picos((interval.as_picos() as f64 * random.unit() / 2.0) as u64);
                // What a late sample says is what was so when it was due: the clock of the poller is what lies.
                (!random.chance(0.1)).then_some(time + late)
            }),
        }
    }
}
