//! Moving bytes of this process: the only place that follows addresses from work requests.
//!
//! ```text
//! direct    source ──memmove──► destination, the last bytes last
//! checked   source ──kernel──► destination; an unmapped or write-protected page is an error instead of a signal
//! ```
//!
//! A program may wait for the last byte of a write in memory, without asking a completion queue. So the last bytes
//! become visible after all others.

#![allow(
    unsafe_code,
    reason = "follows addresses that whoever opened the device has vouched for"
)]

use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use softfabric_transport::MemoryFault;

use super::kernel::kernel_copy;
use super::payload::{Piece, Reach};

/// Copies `length` bytes; the ranges may overlap. The last bytes are stored last.
///
/// # Safety
/// Both ranges are mapped, the destination writable. Others may read and write them meanwhile: then the bytes that
/// arrive are those of either time, as with any device that writes to memory.
#[inline]
pub(super) unsafe fn copy(source: *const u8, destination: *mut u8, length: usize) {
    if length > 8 {
        // SAFETY: within the caller's ranges. The tail is read first, as the ranges may overlap.
        unsafe {
            let tail = source.add(length - 8).cast::<u64>().read_unaligned();
            ptr::copy(source, destination, length - 8);
            fence(Ordering::Release);
            store_word(destination.add(length - 8), tail);
        }
        return;
    }
    // SAFETY: within the caller's ranges.
    unsafe {
        match length {
            8 => store_word(destination, source.cast::<u64>().read_unaligned()),
            4 if destination.addr().is_multiple_of(4) => {
                let value = source.cast::<u32>().read_unaligned();
                AtomicU32::from_ptr(destination.cast()).store(value, Ordering::Release);
            }
            2 if destination.addr().is_multiple_of(2) => {
                let value = source.cast::<u16>().read_unaligned();
                AtomicU16::from_ptr(destination.cast()).store(value, Ordering::Release);
            }
            0 => {}
            _ => {
                let last = source.add(length - 1).read();
                ptr::copy(source, destination, length - 1);
                AtomicU8::from_ptr(destination.add(length - 1)).store(last, Ordering::Release);
            }
        }
    }
}

/// Copies `length` bytes past the caches: to memory that another processor reads next. The bytes are ordered before
/// what is stored after [`stream_fence`].
///
/// # Safety
/// Both ranges are mapped, the destination writable, and they do not overlap.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn stream(source: *const u8, destination: *mut u8, length: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const LINE: usize = 64;
    let head = destination.addr().wrapping_neg() % LINE;
    if length < head + LINE {
        // SAFETY: the caller's ranges.
        unsafe { ptr::copy_nonoverlapping(source, destination, length) };
        return;
    }
    // SAFETY: within the caller's ranges. After the head the destination is aligned to a line.
    unsafe {
        ptr::copy_nonoverlapping(source, destination, head);
        let mut from = source.add(head);
        let mut to = destination.add(head);
        let lines = (length - head) / LINE;
        for _ in 0..lines {
            let (parts, target) = (from.cast::<__m128i>(), to.cast::<__m128i>());
            let a = _mm_loadu_si128(parts);
            let b = _mm_loadu_si128(parts.add(1));
            let c = _mm_loadu_si128(parts.add(2));
            let d = _mm_loadu_si128(parts.add(3));
            _mm_stream_si128(target, a);
            _mm_stream_si128(target.add(1), b);
            _mm_stream_si128(target.add(2), c);
            _mm_stream_si128(target.add(3), d);
            from = from.add(LINE);
            to = to.add(LINE);
        }
        ptr::copy_nonoverlapping(from, to, (length - head) % LINE);
    }
}

/// Copies `length` bytes to memory that another processor reads next.
///
/// # Safety
/// Both ranges are mapped, the destination writable, and they do not overlap.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn stream(source: *const u8, destination: *mut u8, length: usize) {
    // SAFETY: the caller's ranges.
    unsafe { ptr::copy_nonoverlapping(source, destination, length) };
}

/// What was streamed is stored before what follows.
pub(super) fn stream_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Stores eight bytes, at once where they are aligned.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn store_word(destination: *mut u8, value: u64) {
    // SAFETY: the caller's range.
    unsafe {
        if destination.addr().is_multiple_of(8) {
            AtomicU64::from_ptr(destination.cast()).store(value, Ordering::Release);
        } else {
            destination.cast::<u64>().write_unaligned(value);
        }
    }
}

/// Reads a piece of this process into `into`, which is as long.
///
/// # Errors
/// If the piece is checked and cannot be read.
#[inline]
pub(super) fn read(piece: Piece, into: &mut [u8]) -> Result<(), MemoryFault> {
    debug_assert_eq!(piece.length as usize, into.len());
    // SAFETY: a slice can be written.
    unsafe { read_to(piece, into.as_mut_ptr()) }
}

/// Appends a piece of this process to `out`.
///
/// # Errors
/// If the piece is checked and cannot be read.
#[inline]
pub(super) fn append(piece: Piece, out: &mut Vec<u8>) -> Result<(), MemoryFault> {
    let length = piece.length as usize;
    out.reserve(length);
    let start = out.len();
    // SAFETY: so many bytes were reserved, and they are written before they count.
    unsafe {
        read_to(piece, out.as_mut_ptr().add(start))?;
        out.set_len(start + length);
    }
    Ok(())
}

/// Reads a piece of this process to an address past the caches.
///
/// # Errors
/// If the piece is checked and cannot be read.
///
/// # Safety
/// As for [`read_to`], and the ranges do not overlap.
pub(super) unsafe fn stream_to(piece: Piece, into: *mut u8) -> Result<(), MemoryFault> {
    if piece.reach == Reach::Direct {
        // SAFETY: pieces are mapped, as in `read_to`.
        unsafe { stream(pointer(piece.address), into, piece.length as usize) };
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { read_to(piece, into) }
}

/// Reads a piece of this process to an address.
///
/// # Errors
/// If the piece is checked and cannot be read.
///
/// # Safety
/// As many bytes as the piece has can be written there.
#[inline]
pub(super) unsafe fn read_to(piece: Piece, into: *mut u8) -> Result<(), MemoryFault> {
    let length = piece.length as usize;
    match piece.reach {
        Reach::Direct => {
            // SAFETY: pieces are registered memory or inline data, which `Nic::open` demands to be mapped.
            unsafe { ptr::copy(pointer(piece.address), into, length) };
            Ok(())
        }
        Reach::Checked => kernel_copy(into, piece.address, length, false),
        Reach::Null => {
            // SAFETY: the caller's range.
            unsafe { ptr::write_bytes(into, 0, length) };
            Ok(())
        }
    }
}

/// Writes `bytes` to a piece of this process, which is as long.
///
/// # Errors
/// If the piece is checked and cannot be written.
#[inline]
pub(super) fn write(piece: Piece, bytes: &[u8]) -> Result<(), MemoryFault> {
    debug_assert_eq!(piece.length as usize, bytes.len());
    match piece.reach {
        Reach::Direct => {
            let target = pointer(piece.address).cast_mut();
            // SAFETY: as in `read`, and registered for writing.
            unsafe { copy(bytes.as_ptr(), target, bytes.len()) };
            Ok(())
        }
        Reach::Checked => kernel_copy(bytes.as_ptr().cast_mut(), piece.address, bytes.len(), true),
        Reach::Null => Ok(()),
    }
}

/// Copies from one piece of this process to another of the same length.
///
/// # Errors
/// If a piece is checked and cannot be reached.
#[inline]
pub(super) fn transfer(from: Piece, to: Piece) -> Result<(), MemoryFault> {
    debug_assert_eq!(from.length, to.length);
    let length = from.length as usize;
    match (from.reach, to.reach) {
        (_, Reach::Null) => Ok(()),
        (Reach::Null, _) => {
            const ZEROS: [u8; 4096] = [0; 4096];
            let mut to = to;
            while to.length > 0 {
                let some = to.length.min(ZEROS.len() as u32);
                write(to.split_off_front(some), &ZEROS[..some as usize])?;
            }
            Ok(())
        }
        (Reach::Direct, Reach::Direct) => {
            let target = pointer(to.address).cast_mut();
            // SAFETY: as in `read` and `write`.
            unsafe { copy(pointer(from.address), target, length) };
            Ok(())
        }
        // The kernel takes the faults of both sides.
        (Reach::Checked, _) => {
            kernel_copy(pointer(to.address).cast_mut(), from.address, length, false)
        }
        (Reach::Direct, Reach::Checked) => {
            kernel_copy(pointer(from.address).cast_mut(), to.address, length, true)
        }
    }
}

/// Does an atomic operation on eight bytes, and returns what was there.
///
/// # Errors
/// If the piece is checked and cannot be reached.
pub(super) fn update(word: Piece, apply: impl Fn(u64) -> u64) -> Result<u64, MemoryFault> {
    match word.reach {
        Reach::Direct => {}
        Reach::Checked => return update_checked(word, apply),
        Reach::Null => return Ok(0),
    }
    let target = pointer(word.address).cast_mut();
    if target.addr().is_multiple_of(8) {
        // SAFETY: eight aligned bytes of registered memory.
        let target = unsafe { AtomicU64::from_ptr(target.cast()) };
        let mut original = target.load(Ordering::Acquire);
        loop {
            match target.compare_exchange(
                original,
                apply(original),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(original) => return Ok(original),
                Err(found) => original = found,
            }
        }
    }
    // A zero-based region may start anywhere: then it is atomic towards this device only, which is locked.
    // SAFETY: eight bytes of registered memory.
    unsafe {
        let target = target.cast::<u64>();
        let original = target.read_unaligned();
        target.write_unaligned(apply(original));
        Ok(original)
    }
}

/// The same by the kernel: atomic towards this device only, which is locked.
fn update_checked(word: Piece, apply: impl Fn(u64) -> u64) -> Result<u64, MemoryFault> {
    let mut bytes = [0; 8];
    read(word, &mut bytes)?;
    let original = u64::from_ne_bytes(bytes);
    write(word, &apply(original).to_ne_bytes())?;
    Ok(original)
}

#[inline]
pub(super) fn pointer(address: u64) -> *const u8 {
    ptr::with_exposed_provenance(address as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: &mut [u8]) -> Piece {
        Piece {
            address: bytes.as_mut_ptr().expose_provenance() as u64,
            length: bytes.len() as u32,
            reach: Reach::Direct,
        }
    }

    #[test]
    fn every_short_length_is_copied_whole() {
        for length in 0..40 {
            for offset in 0..9 {
                let source: Vec<u8> = (1..=length as u8).collect();
                let mut target = vec![0xee; length + 18];
                write(piece(&mut target[offset..offset + length]), &source).unwrap();
                assert_eq!(
                    target[offset..offset + length],
                    source,
                    "{length} at {offset}"
                );
                assert!(target[..offset].iter().all(|byte| *byte == 0xee));
                assert!(target[offset + length..].iter().all(|byte| *byte == 0xee));
            }
        }
    }

    #[test]
    fn streams_copy_every_length_at_every_offset() {
        let source: Vec<u8> = (0..400).map(|at| at as u8).collect();
        for length in (0..300).step_by(7) {
            for offset in (0..70).step_by(3) {
                let mut target = vec![0xee_u8; 400];
                // SAFETY: within both vectors.
                unsafe {
                    stream(source[3..].as_ptr(), target[offset..].as_mut_ptr(), length);
                }
                stream_fence();
                assert_eq!(target[offset..offset + length], source[3..3 + length]);
                assert!(target[..offset].iter().all(|byte| *byte == 0xee));
                assert!(target[offset + length..].iter().all(|byte| *byte == 0xee));
            }
        }
    }

    #[test]
    fn overlapping_pieces_move_as_if_copied_aside() {
        for (from, to) in [(0, 5), (5, 0), (3, 3), (0, 20)] {
            let mut bytes: Vec<u8> = (0..64).collect();
            let expected = bytes[from..from + 30].to_vec();
            let source = piece(&mut bytes[from..from + 30]);
            let target = piece(&mut bytes[to..to + 30]);
            transfer(source, target).unwrap();
            assert_eq!(bytes[to..to + 30], expected);
        }
    }

    #[test]
    fn checked_pieces_report_what_is_not_there() {
        let mut here = [7_u8; 32];
        let absent = Piece {
            address: 8,
            length: 32,
            reach: Reach::Checked,
        };
        assert_eq!(read(absent, &mut here), Err(MemoryFault));
        assert_eq!(write(absent, &here), Err(MemoryFault));
        assert_eq!(transfer(absent, piece(&mut here)), Err(MemoryFault));
        assert_eq!(transfer(piece(&mut here), absent), Err(MemoryFault));
        let mut there = [0_u8; 32];
        let checked = Piece {
            reach: Reach::Checked,
            ..piece(&mut there)
        };
        write(checked, &here).unwrap();
        assert_eq!(there, here);
    }

    #[test]
    fn null_pieces_give_zeros_and_take_anything() {
        let mut here = [7_u8; 9000];
        let null = Piece {
            address: 0,
            length: 9000,
            reach: Reach::Null,
        };
        write(null, &here).unwrap();
        transfer(piece(&mut here), null).unwrap();
        transfer(null, piece(&mut here)).unwrap();
        assert!(here.iter().all(|byte| *byte == 0));
        here.fill(7);
        read(null, &mut here).unwrap();
        assert!(here.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn updates_return_what_was_there() {
        let mut bytes = [0_u8; 24];
        for offset in [0, 1] {
            let word = piece(&mut bytes[offset..offset + 8]);
            write(word, &41_u64.to_ne_bytes()).unwrap();
            assert_eq!(update(word, |value| value + 1), Ok(41));
            assert_eq!(update(word, |value| value + 1), Ok(42));
            let checked = Piece {
                reach: Reach::Checked,
                ..word
            };
            assert_eq!(update(checked, |value| value + 1), Ok(43));
            assert_eq!(update(word, |value| value + 1), Ok(44));
        }
    }
}
