//! Memory of another process of this user: the kernel copies from there to here, once.

#![allow(
    unsafe_code,
    reason = "gives the kernel addresses of this process to write to"
)]

use std::ptr;

use smallvec::SmallVec;
use softfabric_transport::{MemoryFault, PlaceError};

use super::payload::{Foreign, Piece, Reach};

/// Copies a foreign payload onto pieces of this process, whose lengths add up to its own.
///
/// # Errors
/// If the other process's memory cannot be read, the payload is lost; or one of the pieces cannot be written.
pub(super) fn place(
    from: &Foreign<'_>,
    pieces: impl Iterator<Item = Piece>,
) -> Result<(), PlaceError> {
    let pieces: SmallVec<[Piece; 4]> = pieces.collect();
    if transfer_onto(from, &pieces) {
        return Ok(());
    }
    // The kernel does not say which side could not be reached.
    let ours = pieces.iter().all(|piece| {
        piece.reach != Reach::Checked
            || super::kernel::reachable(piece.address, u64::from(piece.length), true)
    });
    Err(if ours {
        PlaceError::Lost
    } else {
        PlaceError::Memory(MemoryFault)
    })
}

fn transfer_onto(from: &Foreign<'_>, pieces: &[Piece]) -> bool {
    let mut local: SmallVec<[libc::iovec; 4]> = SmallVec::new();
    let mut scratch = Vec::new();
    for piece in pieces {
        let base = if piece.reach == Reach::Null {
            // What goes nowhere has to be read all the same.
            scratch.resize(scratch.len().max(piece.length as usize), 0_u8);
            None
        } else {
            Some(piece.address)
        };
        local.push(libc::iovec {
            iov_base: base.map_or(ptr::null_mut(), |address| {
                ptr::with_exposed_provenance_mut(address as usize)
            }),
            iov_len: piece.length as usize,
        });
    }
    for vector in &mut local {
        if vector.iov_base.is_null() {
            vector.iov_base = scratch.as_mut_ptr().cast();
        }
    }
    transfer(from, &local).is_ok()
}

/// Copies a foreign payload to `into`, which is as long.
///
/// # Errors
/// If the other process's memory cannot be read.
pub(super) fn read(from: &Foreign<'_>, into: &mut [u8]) -> Result<(), MemoryFault> {
    let local = [libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    }];
    transfer(from, &local)
}

fn transfer(from: &Foreign<'_>, local: &[libc::iovec]) -> Result<(), MemoryFault> {
    let remote: SmallVec<[libc::iovec; 4]> = from
        .pieces
        .iter()
        .map(|(address, length)| libc::iovec {
            iov_base: ptr::without_provenance_mut(*address as usize),
            iov_len: *length as usize,
        })
        .collect();
    let wanted: usize = local.iter().map(|vector| vector.iov_len).sum();
    if (from.is_revoked)() {
        return Err(MemoryFault);
    }
    // SAFETY: the local vectors are registered memory, or slices, that can be written; the kernel checks all addresses.
    let moved = unsafe {
        libc::process_vm_readv(
            from.process,
            local.as_ptr(),
            local.len() as libc::c_ulong,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    if moved != wanted as isize || (from.is_revoked)() {
        return Err(MemoryFault);
    }
    Ok(())
}

/// Whether another process's memory can be read: `value` is what must be found at an address of it.
pub(crate) fn can_read(process: i32, address: u64, value: u64) -> bool {
    let foreign = Foreign {
        process,
        pieces: SmallVec::from_slice(&[(address, 8)]),
        is_revoked: &|| false,
    };
    let mut found = [0; 8];
    read(&foreign, &mut found).is_ok() && u64::from_ne_bytes(found) == value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign<'a>(bytes: &[u8], is_revoked: &'a dyn Fn() -> bool) -> Foreign<'a> {
        let address = bytes.as_ptr().expose_provenance() as u64;
        let half = bytes.len() as u32 / 2;
        let rest = bytes.len() as u32 - half;
        Foreign {
            // This process is as good as another.
            process: std::process::id() as i32,
            pieces: SmallVec::from_slice(&[(address, half), (address + u64::from(half), rest)]),
            is_revoked,
        }
    }

    fn piece(bytes: &mut [u8], reach: Reach) -> Piece {
        Piece {
            address: bytes.as_mut_ptr().expose_provenance() as u64,
            length: bytes.len() as u32,
            reach,
        }
    }

    #[test]
    fn bytes_arrive_on_pieces_that_are_cut_elsewhere() {
        let source: Vec<u8> = (0..101).collect();
        let mut target = [0; 101];
        let (first, rest) = target.split_at_mut(7);
        let (second, third) = rest.split_at_mut(50);
        let pieces = [
            piece(first, Reach::Direct),
            piece(second, Reach::Null),
            piece(third, Reach::Checked),
        ];
        place(&foreign(&source, &|| false), pieces.into_iter()).unwrap();
        assert_eq!(target[..7], source[..7]);
        assert_eq!(target[7..57], [0; 50]);
        assert_eq!(target[57..], source[57..]);
    }

    #[test]
    fn it_is_known_whose_memory_is_missing() {
        let source = [1_u8; 64];
        let mut target = [0_u8; 64];
        let mut gone = foreign(&source, &|| false);
        gone.pieces[0].0 = 8;
        let here = [piece(&mut target, Reach::Direct)];
        assert_eq!(place(&gone, here.into_iter()), Err(PlaceError::Lost));
        let missing = Piece {
            address: 8,
            ..piece(&mut target, Reach::Checked)
        };
        let placed = place(&foreign(&source, &|| false), [missing].into_iter());
        assert_eq!(placed, Err(PlaceError::Memory(MemoryFault)));
    }

    #[test]
    fn what_was_revoked_or_is_not_there_is_not_placed() {
        let source = [1_u8; 64];
        let mut target = [0_u8; 64];
        assert!(read(&foreign(&source, &|| true), &mut target).is_err());
        let mut gone = foreign(&source, &|| false);
        gone.pieces[0].0 = 8;
        assert!(read(&gone, &mut target).is_err());
        assert!(can_read(
            gone.process,
            source.as_ptr().addr() as u64,
            0x0101_0101_0101_0101
        ));
        assert!(!can_read(gone.process, source.as_ptr().addr() as u64, 5));
        assert!(!can_read(i32::MAX, source.as_ptr().addr() as u64, 5));
    }
}
