//! Memory without bytes that counts what is placed in it.

use softfabric_transport::{
    AtomicOperation, LengthsOnly, Memory, MemoryFault, PlaceError, Segment,
};

/// [`LengthsOnly`], and how many payload bytes were placed. Duplicates are not placed, so this is what was delivered.
#[derive(Debug, Default)]
pub(crate) struct CountingMemory {
    inner: LengthsOnly,
    pub(crate) placed: u64,
}

impl Memory for CountingMemory {
    type Outgoing = ();
    type Incoming<'a> = ();
    type Captured = ();

    #[inline]
    fn gather(&mut self, _: impl Iterator<Item = Segment>) -> Result<(), MemoryFault> {
        Ok(())
    }

    #[inline]
    fn place(&mut self, segments: impl Iterator<Item = Segment>, (): ()) -> Result<(), PlaceError> {
        self.placed += segments
            .map(|segment| u64::from(segment.length))
            .sum::<u64>();
        Ok(())
    }

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
        self.inner.atomic(word, operation)
    }
}
