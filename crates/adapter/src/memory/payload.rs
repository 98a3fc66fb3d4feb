//! Payloads on their way: where the bytes of a packet are.
//!
//! ```text
//! Payload   what the device wants sent     pieces of this process · bytes of its own
//! Incoming  what the device is given       bytes · a payload of this process · pieces of another process
//! ```
//!
//! A payload's pieces are good while the device is locked: whoever keeps a packet longer copies its bytes.

use std::marker::PhantomData;

use smallvec::SmallVec;
use softfabric_transport::{MemoryFault, NULL_REGION, Segment};

use super::{ProcessMemory, copy, foreign};

/// Contiguous bytes of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// The first byte.
    pub(crate) address: u64,
    /// How many.
    pub(crate) length: u32,
    /// How they are reached.
    pub(crate) reach: Reach,
}

/// How the bytes of a piece are reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// By their address.
    Direct,
    /// By the kernel, as they may be missing.
    Checked,
    /// There are none: they read as zeros, and what is written is gone.
    Null,
}

impl Piece {
    /// Takes the first `length` bytes off.
    #[inline]
    pub(super) fn split_off_front(&mut self, length: u32) -> Self {
        let first = Self { length, ..*self };
        self.address = self.address.wrapping_add(u64::from(length));
        self.length -= length;
        first
    }

    #[inline]
    pub(super) fn of(segment: Segment) -> Self {
        Self {
            address: segment.address,
            length: segment.length,
            reach: match segment.region {
                ProcessMemory::CHECKED => Reach::Checked,
                NULL_REGION => Reach::Null,
                _ => Reach::Direct,
            },
        }
    }
}

/// Bytes that the device keeps: inline data, and packets that wait for one before them. Few need no allocation.
pub type Captured = SmallVec<[u8; 64]>;

/// What a packet to send carries.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Pieces of registered memory.
    Pieces(Pieces),
    /// Bytes that were captured.
    Bytes(Captured),
}

/// Pieces of registered memory, in order.
#[derive(Clone, Debug, Default)]
pub struct Pieces(pub(crate) SmallVec<[Piece; 2]>);

impl Default for Payload {
    #[inline]
    fn default() -> Self {
        Self::Pieces(Pieces::default())
    }
}

impl Payload {
    /// Copies the bytes to where `take` says that so many go.
    ///
    /// # Errors
    /// If a page is missing.
    ///
    /// # Safety
    /// `take` gives addresses where so many bytes can be written.
    #[allow(unsafe_code, reason = "writes memory that another process shares")]
    #[inline]
    pub(crate) unsafe fn copy_to(
        &self,
        mut take: impl FnMut(usize) -> *mut u8,
    ) -> Result<(), MemoryFault> {
        match self {
            Self::Bytes(bytes) => {
                // SAFETY: the caller's promise; shared memory and captured bytes do not overlap.
                unsafe {
                    let target = take(bytes.len());
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
                }
                Ok(())
            }
            Self::Pieces(pieces) => pieces.0.iter().try_for_each(|piece| {
                // SAFETY: the caller's promise.
                unsafe { copy::read_to(*piece, take(piece.length as usize)) }
            }),
        }
    }

    /// The same past the caches, for much that another processor reads next.
    ///
    /// # Errors
    /// If a page is missing.
    ///
    /// # Safety
    /// As for [`Payload::copy_to`], and nobody has the target in a region.
    #[allow(unsafe_code, reason = "writes memory that another process shares")]
    pub(crate) unsafe fn stream_to(
        &self,
        mut take: impl FnMut(usize) -> *mut u8,
    ) -> Result<(), MemoryFault> {
        let Self::Pieces(pieces) = self else {
            // SAFETY: the caller's promise.
            return unsafe { self.copy_to(take) };
        };
        for piece in &pieces.0 {
            // SAFETY: the caller's promise.
            unsafe { copy::stream_to(*piece, take(piece.length as usize))? };
        }
        copy::stream_fence();
        Ok(())
    }

    /// Appends the bytes to `out`.
    ///
    /// # Errors
    /// If a page is missing.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) -> Result<(), MemoryFault> {
        match self {
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Pieces(pieces) => {
                for piece in &pieces.0 {
                    copy::append(*piece, out)?;
                }
            }
        }
        Ok(())
    }
}

/// What a packet that arrived carries.
#[derive(Clone, Copy, Debug)]
pub enum Incoming<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// A payload of this very process: one queue pair sends to another of the same device.
    Here(&'a Payload),
    /// Bytes in memory that another process shares and may change meanwhile.
    Shared(Shared<'a>),
    /// Memory of another process.
    There(&'a Foreign<'a>),
}

/// Bytes in memory that another process shares.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'a> {
    pub(super) piece: Piece,
    ring: PhantomData<&'a ()>,
}

impl Shared<'_> {
    /// # Safety
    /// The bytes stay mapped for the lifetime.
    #[allow(unsafe_code, reason = "vouches for memory of a ring")]
    pub(crate) unsafe fn new(bytes: *const u8, length: u32) -> Self {
        Self {
            piece: Piece {
                address: bytes.expose_provenance() as u64,
                length,
                reach: Reach::Direct,
            },
            ring: PhantomData,
        }
    }
}

/// Memory of another process, which the kernel copies from.
pub struct Foreign<'a> {
    pub(crate) process: i32,
    /// Addresses and lengths there.
    pub(crate) pieces: SmallVec<[(u64, u32); 4]>,
    /// Whether the other process has taken its leave back: then what was copied is not what was sent.
    pub(crate) is_revoked: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for Foreign<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Foreign")
            .field("process", &self.process)
            .field("pieces", &self.pieces)
            .finish_non_exhaustive()
    }
}

impl Incoming<'_> {
    /// Appends the bytes to `out`.
    ///
    /// # Errors
    /// If a page is missing.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) -> Result<(), MemoryFault> {
        match self {
            Self::Bytes(bytes) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            Self::Here(payload) => payload.append_to(out),
            Self::Shared(shared) => {
                let start = out.len();
                out.resize(start + shared.piece.length as usize, 0);
                copy::read(shared.piece, &mut out[start..])
            }
            Self::There(foreign) => {
                let start = out.len();
                let length: usize = foreign
                    .pieces
                    .iter()
                    .map(|(_, length)| *length as usize)
                    .sum();
                out.resize(start + length, 0);
                foreign::read(foreign, &mut out[start..])
            }
        }
    }
}
