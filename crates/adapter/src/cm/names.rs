//! Names of connections: 8 bits of the process, 24 that count.

use softfabric_units::Random;
use softfabric_wire::mad::cm::CommunicationId;

const COUNT_BITS: u32 = 24;
const COUNT_MASK: u32 = (1 << COUNT_BITS) - 1;

/// Gives names and transaction numbers. Both start at random, so that a process that takes a dead one's place is not
/// taken for it.
#[derive(Debug)]
pub(super) struct Names {
    random: Random,
    next: u32,
}

impl Names {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::from_seed(seed);
        let next = random.bits() as u32;
        Self { random, next }
    }

    /// A name of process `slot` that is not taken; `None` once all are. Zero is no name.
    pub(super) fn name(
        &mut self,
        slot: u8,
        taken: impl Fn(CommunicationId) -> bool,
    ) -> Option<CommunicationId> {
        for _ in 0..=COUNT_MASK {
            self.next = self.next.wrapping_add(1);
            let name = CommunicationId(u32::from(slot) << COUNT_BITS | self.next & COUNT_MASK);
            if name.0 != 0 && !taken(name) {
                return Some(name);
            }
        }
        None
    }

    pub(super) fn transaction(&mut self) -> u64 {
        self.random.bits()
    }
}

/// The process that gave a name.
pub(super) const fn slot_of(name: CommunicationId) -> u8 {
    (name.0 >> COUNT_BITS) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_the_slot_and_skip_what_is_taken() {
        let mut names = Names::new(1);
        let first = names.name(7, |_| false).unwrap();
        assert_eq!(slot_of(first), 7);
        names.next = first.0.wrapping_sub(1);
        let second = names.name(7, |name| name == first).unwrap();
        assert_eq!(second.0, 7 << 24 | (first.0 + 1) & 0xff_ffff);
        names.next = u32::MAX;
        assert_eq!(
            names.name(0, |_| false),
            Some(CommunicationId(1)),
            "zero is no name"
        );
        let mut names = Names::new(1);
        assert_eq!(names.name(0, |name| name.0 != 9), Some(CommunicationId(9)));
    }
}
