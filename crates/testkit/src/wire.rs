//! The wire between two devices, and what goes wrong on it.

use softfabric_units::{Random, Span};
use softfabric_wire::rdma::TransportHeader;

/// Probabilities of faults, for each packet.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Faults {
    /// The packet is lost.
    pub drop: f64,
    /// It arrives twice.
    pub duplicate: f64,
    /// It is overtaken by those behind it.
    pub reorder: f64,
    /// It arrives damaged: its ICRC does not hold, and the driver drops it.
    pub corrupt: f64,
    /// It is marked CE.
    pub mark: f64,
}

impl Faults {
    /// The same probability of every fault.
    pub const fn all(probability: f64) -> Self {
        Self {
            drop: probability,
            duplicate: probability,
            reorder: probability,
            corrupt: probability,
            mark: probability,
        }
    }

    /// Loss alone.
    pub const fn loss(probability: f64) -> Self {
        Self {
            drop: probability,
            duplicate: 0.0,
            reorder: 0.0,
            corrupt: 0.0,
            mark: 0.0,
        }
    }
}

/// What becomes of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fate {
    /// It is lost.
    pub dropped: bool,
    /// It arrives twice.
    pub duplicated: bool,
    /// How much later than those before it.
    pub late: Span,
    /// It is damaged.
    pub corrupted: bool,
    /// It is marked.
    pub marked: bool,
}

/// What a test sees of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Which side sent it.
    pub side: usize,
    /// Its headers.
    pub header: TransportHeader,
    /// Its payload's length.
    pub payload_length: u32,
    /// What became of it.
    pub fate: Fate,
}

/// A rule of a test: what happens to the `n`th packet of a side (from zero), if it has an opinion.
pub type Rule = Box<dyn FnMut(usize, u64, &TransportHeader) -> Option<Fate>>;

/// The wire: seeded faults, and rules that go before them.
pub struct Wire {
    faults: Faults,
    random: Random,
    rule: Option<Rule>,
    counts: [u64; 2],
    /// How late a reordered packet is, at most.
    pub latest: Span,
}

impl Wire {
    /// A wire with faults drawn from `seed`.
    pub fn new(faults: Faults, seed: u64) -> Self {
        Self {
            faults,
            random: Random::from_seed(seed),
            rule: None,
            counts: [0; 2],
            latest: Span::micros(3),
        }
    }

    /// Changes the faults from here on.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Lets `rule` decide before chance does.
    pub fn set_rule(
        &mut self,
        rule: impl FnMut(usize, u64, &TransportHeader) -> Option<Fate> + 'static,
    ) {
        self.rule = Some(Box::new(rule));
    }

    /// Decides what becomes of a packet. Always draws the same number of random numbers.
    pub fn decide(&mut self, side: usize, header: &TransportHeader) -> Fate {
        let number = self.counts[side];
        self.counts[side] += 1;
        let mut draw = |probability| self.random.unit() < probability;
        let dropped = draw(self.faults.drop);
        let duplicated = draw(self.faults.duplicate);
        let reordered = draw(self.faults.reorder);
        let corrupted = draw(self.faults.corrupt);
        let marked = draw(self.faults.mark);
        let late = self.random.below(self.latest.as_picos().max(1));
        if let Some(rule) = &mut self.rule
            && let Some(fate) = rule(side, number, header)
        {
            return fate;
        }
        Fate {
            dropped,
            duplicated,
            late: if reordered {
                Span::picos(late)
            } else {
                Span::ZERO
            },
            corrupted,
            marked,
        }
    }
}
