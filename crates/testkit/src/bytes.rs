//! Memory made of bytes: one `Vec`, in which addresses are indices.

use std::ops::Range;

use softfabric_transport::{
    AtomicOperation, LengthsOnly, Memory, MemoryFault, NULL_REGION, PlaceError, Segment,
};

/// Memory of a fixed size. Holes in it stand for pages that are registered and yet cannot be reached.
#[derive(Clone, Debug, Default)]
pub struct ByteMemory {
    bytes: Vec<u8>,
    holes: Vec<Range<u64>>,
    placed: u64,
    lost: Vec<u64>,
}

impl ByteMemory {
    /// `size` zero bytes.
    pub fn new(size: usize) -> Self {
        Self {
            bytes: vec![0; size],
            ..Self::default()
        }
    }

    /// Payloads that are not there any more when they are to be placed: the first is number 0.
    pub fn lose(&mut self, payloads: &[u64]) {
        self.lost = payloads.to_vec();
    }

    /// Makes a range of addresses unreachable.
    pub fn hole(&mut self, range: Range<u64>) {
        self.holes.push(range);
    }

    /// The bytes of a range.
    ///
    /// # Panics
    /// If the range is outside.
    pub fn slice(&self, address: u64, length: usize) -> &[u8] {
        &self.bytes[address as usize..address as usize + length]
    }

    /// The bytes of a range, to be changed.
    ///
    /// # Panics
    /// If the range is outside.
    pub fn slice_mut(&mut self, address: u64, length: usize) -> &mut [u8] {
        &mut self.bytes[address as usize..address as usize + length]
    }

    fn range(&self, segment: Segment) -> Result<Range<usize>, MemoryFault> {
        let end = segment.address + u64::from(segment.length);
        let holed = self
            .holes
            .iter()
            .any(|hole| hole.start < end && segment.address < hole.end);
        if holed || end > self.bytes.len() as u64 {
            return Err(MemoryFault);
        }
        Ok(segment.address as usize..end as usize)
    }
}

impl Memory for ByteMemory {
    type Outgoing = Vec<u8>;
    type Incoming<'a> = &'a [u8];
    type Captured = Box<[u8]>;

    fn gather(
        &mut self,
        segments: impl Iterator<Item = Segment>,
    ) -> Result<Self::Outgoing, MemoryFault> {
        let mut payload = Vec::new();
        for segment in segments {
            if segment.region == NULL_REGION {
                payload.resize(payload.len() + segment.length as usize, 0);
            } else {
                payload.extend_from_slice(&self.bytes[self.range(segment)?]);
            }
        }
        Ok(payload)
    }

    fn place(
        &mut self,
        segments: impl Iterator<Item = Segment>,
        payload: &[u8],
    ) -> Result<(), PlaceError> {
        let number = self.placed;
        self.placed += 1;
        if self.lost.contains(&number) {
            return Err(PlaceError::Lost);
        }
        Ok(self.place_bytes(segments, payload)?)
    }

    fn place_bytes(
        &mut self,
        segments: impl Iterator<Item = Segment>,
        bytes: &[u8],
    ) -> Result<(), MemoryFault> {
        let mut rest = bytes;
        for segment in segments {
            let (piece, after) = rest.split_at(segment.length as usize);
            if segment.region != NULL_REGION {
                let range = self.range(segment)?;
                self.bytes[range].copy_from_slice(piece);
            }
            rest = after;
        }
        assert!(rest.is_empty(), "segments are as long as the payload");
        Ok(())
    }

    fn capture(
        &mut self,
        segments: impl Iterator<Item = Segment>,
    ) -> Result<Self::Captured, MemoryFault> {
        self.gather(segments).map(Vec::into_boxed_slice)
    }

    fn gather_captured(
        &mut self,
        captured: &Self::Captured,
        offset: u32,
        length: u32,
    ) -> Self::Outgoing {
        captured[offset as usize..][..length as usize].to_vec()
    }

    fn hold(&mut self, payload: &[u8]) -> Self::Captured {
        payload.into()
    }

    fn release(captured: &Self::Captured) -> &[u8] {
        captured
    }

    fn atomic(&mut self, word: Segment, operation: AtomicOperation) -> Result<u64, MemoryFault> {
        if word.region == NULL_REGION {
            return Ok(0);
        }
        let range = self.range(word)?;
        let bytes = &mut self.bytes[range];
        let mut value = [0; 8];
        value.copy_from_slice(bytes);
        let original = u64::from_ne_bytes(value);
        bytes.copy_from_slice(&operation.apply(original).to_ne_bytes());
        Ok(original)
    }
}

/// Memory whose outgoing payloads can arrive.
pub trait Carry: Memory {
    /// Memory of `size` bytes.
    fn sized(size: usize) -> Self;
    /// An outgoing payload as the other end sees it.
    fn carry(outgoing: &Self::Outgoing) -> Self::Incoming<'_>;
    /// A copy, for a packet that the wire duplicates.
    fn copy(outgoing: &Self::Outgoing) -> Self::Outgoing;
}

impl Carry for ByteMemory {
    fn sized(size: usize) -> Self {
        Self::new(size)
    }

    fn carry(outgoing: &Vec<u8>) -> &[u8] {
        outgoing
    }

    fn copy(outgoing: &Vec<u8>) -> Vec<u8> {
        outgoing.clone()
    }
}

impl Carry for LengthsOnly {
    fn sized(_: usize) -> Self {
        Self::new()
    }

    fn carry((): &()) {}

    fn copy((): &()) {}
}
