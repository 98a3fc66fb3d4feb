//! What one run is like: drawn from its seed, fixed for the run.

use softfabric_testkit::{Faults, PairOptions};
use softfabric_transport::{AckTimeout, Acknowledgement, Coalescing, LossRecovery, Mtu};
use softfabric_units::{Bytes, Random};

/// The choices of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) seed: u64,
    pub(crate) faults: Faults,
    pub(crate) mtu: Mtu,
    pub(crate) recovery: LossRecovery,
    pub(crate) acknowledgement: Acknowledgement,
    /// Requests and receives with defects are among the good ones.
    pub(crate) defects: bool,
    /// Queue pairs are put into the error state, and the wire may die.
    pub(crate) deaths: bool,
    /// Receivers that are not ready are given up.
    pub(crate) impatient: bool,
    pub(crate) links: usize,
    pub(crate) phases: usize,
    /// Actions of a phase.
    pub(crate) actions: usize,
    /// The longest message.
    pub(crate) longest: u32,
}

/// Bytes of memory on each side.
pub(crate) const MEMORY: usize = 1 << 20;

impl Scene {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::stream(seed, 0);
        let faults = if random.chance(0.3) {
            Faults::default()
        } else {
            Faults {
                drop: random.unit() * 0.04,
                duplicate: random.unit() * 0.05,
                reorder: random.unit() * 0.1,
                corrupt: random.unit() * 0.02,
                mark: random.unit() * 0.2,
            }
        };
        let recovery = match random.below(5) {
            0 | 1 => LossRecovery::GoBackN,
            2 => LossRecovery::GoBack0,
            3 => LossRecovery::SelectiveRepeat { bdp_cap: None },
            _ => LossRecovery::SelectiveRepeat {
                bdp_cap: Some(Bytes::kib(8)),
            },
        };
        let local = Mtu::local(8192).expect("a multiple of 4096");
        let mut mtu =
            [Mtu::BYTES_256, Mtu::BYTES_1024, Mtu::BYTES_4096, local][random.below(4) as usize];
        // Going back to 0, long messages never come through a bad wire.
        let mut longest = [1_500, 3_000, 3_000, 9_000][random.below(4) as usize];
        if recovery == LossRecovery::GoBack0 {
            mtu = Mtu::BYTES_4096;
            longest = 6_000;
        }
        let coalescing = match random.below(4) {
            0 => Coalescing::EveryPacket,
            1 => Coalescing::AtMost(1),
            2 => Coalescing::AtMost(16),
            _ => Coalescing::AtMost(1000),
        };
        Self {
            seed,
            faults,
            mtu,
            recovery,
            acknowledgement: Acknowledgement {
                coalescing,
                credits: random.chance(0.2),
                ..Acknowledgement::default()
            },
            defects: random.chance(0.4),
            deaths: random.chance(0.2),
            impatient: random.chance(0.1),
            links: 1 + random.below(6) as usize,
            phases: 1 + random.below(3) as usize,
            actions: 20 + random.below(120) as usize,
            longest,
        }
    }

    pub(crate) fn options(&self) -> PairOptions {
        let mut options = PairOptions {
            faults: self.faults,
            seed: self.seed,
            mtu: self.mtu,
            memory: MEMORY,
            timeout: AckTimeout::from_code(5),
            ..PairOptions::default()
        };
        options.config.recovery = self.recovery;
        options.config.acknowledgement = self.acknowledgement;
        options
    }

    /// The room of a receive request that takes every message, a datagram's header included.
    pub(crate) fn room(&self) -> u32 {
        self.longest + 40
    }

    /// Whether packets may come twice or out of order: then unreliable messages may, too.
    pub(crate) fn disorders(&self) -> bool {
        self.faults.duplicate > 0.0 || self.faults.reorder > 0.0
    }

    /// Whether packets may be lost.
    pub(crate) fn loses(&self) -> bool {
        self.faults != Faults::default()
    }
}
