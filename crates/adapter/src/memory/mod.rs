//! Memory of this process, as the transport sees it: addresses are pointers, and bytes move once.
//!
//! ```text
//! work request ─► key checked by the transport ─► Segment {region, address, length} ─► Piece ─► copy
//! ```
//!
//! The driver's number of a region says how its bytes are reached: [`ProcessMemory::DIRECT`] follows the address as it
//! is, [`ProcessMemory::CHECKED`] lets the kernel copy, so that a page that is not there is a fault of the request and
//! not a signal that ends the process.

mod copy;
mod foreign;
mod kernel;
mod payload;

use softfabric_transport::{AtomicOperation, Memory, MemoryFault, PlaceError, Segment};

pub(crate) use foreign::can_read;
pub use payload::{Captured, Incoming, Payload, Pieces};
pub(crate) use payload::{Foreign, Piece, Reach, Shared};

/// The process's own memory.
#[derive(Debug, Default)]
pub struct ProcessMemory {
    _private: (),
}

impl ProcessMemory {
    /// The `region` of memory that stays mapped while it is registered: the usual kind.
    pub const DIRECT: u64 = 0;
    /// The `region` of memory that may be unmapped or protected while it is registered: on-demand paging, implicit
    /// regions over the whole address space. Copies are slower, and a missing page is a fault of the request.
    pub const CHECKED: u64 = 1;

    pub(crate) const fn new() -> Self {
        Self { _private: () }
    }

    /// Whether a range can be read, and with `writable` also written, right now: to refuse a registration as a kernel
    /// would. It touches every page.
    pub fn is_reachable(address: u64, length: u64, writable: bool) -> bool {
        kernel::reachable(address, length, writable)
    }
}

impl Memory for ProcessMemory {
    type Outgoing = Payload;
    type Incoming<'a> = Incoming<'a>;
    type Captured = Captured;

    #[inline]
    fn gather(&mut self, segments: impl Iterator<Item = Segment>) -> Result<Payload, MemoryFault> {
        Ok(Payload::Pieces(Pieces(segments.map(Piece::of).collect())))
    }

    #[inline]
    fn place(
        &mut self,
        segments: impl Iterator<Item = Segment>,
        payload: Incoming<'_>,
    ) -> Result<(), PlaceError> {
        match payload {
            Incoming::Bytes(bytes) => place_bytes(segments, bytes)?,
            Incoming::Here(Payload::Bytes(bytes)) => place_bytes(segments, bytes)?,
            Incoming::Here(Payload::Pieces(from)) => place_pieces(segments, &from.0)?,
            Incoming::Shared(shared) => place_pieces(segments, &[shared.piece])?,
            Incoming::There(from) => foreign::place(from, segments.map(Piece::of))?,
        }
        Ok(())
    }

    fn place_bytes(
        &mut self,
        segments: impl Iterator<Item = Segment>,
        bytes: &[u8],
    ) -> Result<(), MemoryFault> {
        place_bytes(segments, bytes)
    }

    fn capture(
        &mut self,
        segments: impl Iterator<Item = Segment>,
    ) -> Result<Captured, MemoryFault> {
        let mut captured = Captured::new();
        for segment in segments {
            let start = captured.len();
            captured.resize(start + segment.length as usize, 0);
            copy::read(Piece::of(segment), &mut captured[start..])?;
        }
        Ok(captured)
    }

    #[inline]
    fn gather_captured(&mut self, captured: &Captured, offset: u32, length: u32) -> Payload {
        let bytes = &captured[offset as usize..][..length as usize];
        Payload::Bytes(Captured::from_slice(bytes))
    }

    fn hold(&mut self, payload: Incoming<'_>) -> Captured {
        let mut bytes = Vec::new();
        // What cannot be read now is missing when its turn comes: the lengths differ, and placing it fails.
        if payload.append_to(&mut bytes).is_err() {
            bytes.clear();
        }
        Captured::from_vec(bytes)
    }

    fn release(captured: &Captured) -> Incoming<'_> {
        Incoming::Bytes(captured)
    }

    fn atomic(&mut self, word: Segment, operation: AtomicOperation) -> Result<u64, MemoryFault> {
        copy::update(Piece::of(word), |value| operation.apply(value))
    }
}

#[inline]
fn place_bytes(segments: impl Iterator<Item = Segment>, bytes: &[u8]) -> Result<(), MemoryFault> {
    let mut rest = bytes;
    for segment in segments {
        let Some((piece, after)) = rest.split_at_checked(segment.length as usize) else {
            return Err(MemoryFault);
        };
        copy::write(Piece::of(segment), piece)?;
        rest = after;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(MemoryFault)
    }
}

/// Copies pieces onto segments that are split elsewhere.
fn place_pieces(
    segments: impl Iterator<Item = Segment>,
    from: &[Piece],
) -> Result<(), MemoryFault> {
    let mut sources = from.iter().copied();
    let mut source = sources.next();
    for segment in segments {
        let mut target = Piece::of(segment);
        while target.length > 0 {
            let Some(piece) = &mut source else {
                return Err(MemoryFault);
            };
            let length = piece.length.min(target.length);
            copy::transfer(
                piece.split_off_front(length),
                target.split_off_front(length),
            )?;
            if piece.length == 0 {
                source = sources.next();
            }
        }
    }
    match source {
        None => Ok(()),
        Some(_) => Err(MemoryFault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(bytes: &mut [u8]) -> Segment {
        Segment {
            region: ProcessMemory::DIRECT,
            address: bytes.as_mut_ptr().expose_provenance() as u64,
            length: bytes.len() as u32,
        }
    }

    #[test]
    fn pieces_land_on_segments_that_are_cut_elsewhere() {
        let mut memory = ProcessMemory::new();
        let mut source: Vec<u8> = (0..100).collect();
        let (first, second) = source.split_at_mut(33);
        let payload = memory
            .gather([segment(first), segment(second)].into_iter())
            .unwrap();
        let mut target = vec![0; 100];
        let (a, rest) = target.split_at_mut(1);
        let (b, c) = rest.split_at_mut(60);
        let targets = [segment(a), segment(b), segment(c)];
        memory
            .place(targets.into_iter(), Incoming::Here(&payload))
            .unwrap();
        assert_eq!(target, source);
    }

    #[test]
    fn lengths_that_differ_are_refused() {
        let mut memory = ProcessMemory::new();
        let mut bytes = [1_u8; 8];
        let payload = memory.gather([segment(&mut bytes)].into_iter()).unwrap();
        let mut target = [0_u8; 9];
        for length in [7, 9] {
            let place = [segment(&mut target[..length])];
            let incoming = Incoming::Here(&payload);
            assert_eq!(
                memory.place(place.into_iter(), incoming),
                Err(PlaceError::Memory(MemoryFault))
            );
            let incoming = Incoming::Bytes(&bytes);
            assert_eq!(
                memory.place(place.into_iter(), incoming),
                Err(PlaceError::Memory(MemoryFault))
            );
        }
    }

    #[test]
    fn captured_bytes_are_a_copy() {
        let mut memory = ProcessMemory::new();
        let mut bytes = *b"inline data";
        let captured = memory.capture([segment(&mut bytes)].into_iter()).unwrap();
        bytes.fill(0);
        let payload = memory.gather_captured(&captured, 7, 4);
        let mut out = Vec::new();
        payload.append_to(&mut out).unwrap();
        assert_eq!(out, b"data");
    }
}
