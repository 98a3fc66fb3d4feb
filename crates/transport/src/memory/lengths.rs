//! Memory without bytes, for simulations.

use std::collections::BTreeMap;

use super::{AtomicOperation, Memory, MemoryFault, NULL_REGION, PlaceError, Segment};

/// Memory that has lengths and no bytes.
///
/// Only the words that atomic operations touch are kept, so that a simulated lock or counter works; they start at zero,
/// and a write over them is not seen.
#[derive(Clone, Debug, Default)]
pub struct LengthsOnly {
    words: BTreeMap<(u64, u64), u64>,
}

impl LengthsOnly {
    /// Empty memory.
    pub const fn new() -> Self {
        Self {
            words: BTreeMap::new(),
        }
    }
}

impl Memory for LengthsOnly {
    type Outgoing = ();
    type Incoming<'a> = ();
    type Captured = ();

    #[inline]
    fn gather(&mut self, _: impl Iterator<Item = Segment>) -> Result<(), MemoryFault> {
        Ok(())
    }

    #[inline]
    fn place(&mut self, _: impl Iterator<Item = Segment>, (): ()) -> Result<(), PlaceError> {
        Ok(())
    }

    #[inline]
    fn place_bytes(
        &mut self,
        _: impl Iterator<Item = Segment>,
        _: &[u8],
    ) -> Result<(), MemoryFault> {
        Ok(())
    }

    fn capture(&mut self, _: impl Iterator<Item = Segment>) -> Result<(), MemoryFault> {
        Ok(())
    }

    fn gather_captured(&mut self, (): &(), _: u32, _: u32) {}

    fn hold(&mut self, (): ()) {}

    fn release((): &()) {}

    fn atomic(&mut self, word: Segment, operation: AtomicOperation) -> Result<u64, MemoryFault> {
        if word.region == NULL_REGION {
            return Ok(0);
        }
        let value = self.words.entry((word.region, word.address)).or_default();
        let original = *value;
        *value = operation.apply(original);
        Ok(original)
    }
}
