//! Memory as the device sees it: bytes behind one trait, and the keys that say who may touch them.
//!
//! The transport never holds a payload. It checks keys, walks scatter/gather lists, and asks its [`Memory`] to move the
//! bytes. With [`LengthsOnly`] there are none, so the same transport runs in a simulation of thousands of hosts; both
//! kinds of memory make the device emit the same packets.

mod key;
mod lengths;
mod window;

pub(crate) use key::KeyTable;
pub use key::{
    Access, Domain, KeyFault, NULL_REGION, RegionChange, RegionInit, RegionRange, RegisterError,
    ReleaseKeyError, ReregisterError,
};
pub use lengths::LengthsOnly;
pub(crate) use window::Bind;
pub use window::{BindError, WindowKind};

/// A contiguous piece of a registered region, checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// What the driver gave when it registered the region; zero for inline data, which needs no region.
    pub region: u64,
    /// Where the bytes are, in the driver's own addresses.
    pub address: u64,
    /// How many.
    pub length: u32,
}

/// An atomic operation on 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicOperation {
    /// If the value equals `compare`, it becomes `swap`.
    CompareSwap {
        /// What it is compared with.
        compare: u64,
        /// What it becomes.
        swap: u64,
    },
    /// `add` is added, modulo 2⁶⁴.
    FetchAdd {
        /// The summand.
        add: u64,
    },
}

impl AtomicOperation {
    /// The value after the operation on `original`.
    pub const fn apply(self, original: u64) -> u64 {
        match self {
            Self::CompareSwap { compare, swap } if original == compare => swap,
            Self::CompareSwap { .. } => original,
            Self::FetchAdd { add } => original.wrapping_add(add),
        }
    }
}

/// The bytes could not be reached, although the keys allowed it: an unmapped page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("registered memory cannot be reached")]
pub struct MemoryFault;

/// Why a payload was not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlaceError {
    /// The memory that it was for cannot be reached.
    #[error(transparent)]
    Memory(#[from] MemoryFault),
    /// The payload itself is not there any more: the packet counts as lost on the way.
    #[error("the payload is lost")]
    Lost,
}

/// The bytes behind the device. Segments of [`NULL_REGION`] have none: they give zeros, and take what they are given.
pub trait Memory {
    /// What a packet to send carries; the default is an empty payload.
    type Outgoing: Default;
    /// What a packet that arrived carries.
    type Incoming<'a>: Copy;
    /// Bytes that the device itself keeps: inline data, and packets that wait for one before them.
    type Captured;

    /// The payload that `segments` make, in order.
    ///
    /// # Errors
    /// If the memory cannot be reached.
    fn gather(
        &mut self,
        segments: impl Iterator<Item = Segment>,
    ) -> Result<Self::Outgoing, MemoryFault>;

    /// Stores a payload, split over `segments`, whose lengths add up to the payload's.
    ///
    /// # Errors
    /// If the memory cannot be reached, or the payload is lost.
    fn place(
        &mut self,
        segments: impl Iterator<Item = Segment>,
        payload: Self::Incoming<'_>,
    ) -> Result<(), PlaceError>;

    /// Stores bytes that the device made: the header before a datagram, the result of an atomic operation.
    ///
    /// # Errors
    /// If the memory cannot be reached.
    fn place_bytes(
        &mut self,
        segments: impl Iterator<Item = Segment>,
        bytes: &[u8],
    ) -> Result<(), MemoryFault>;

    /// Copies inline data when a request is posted.
    ///
    /// # Errors
    /// If the memory cannot be reached.
    fn capture(
        &mut self,
        segments: impl Iterator<Item = Segment>,
    ) -> Result<Self::Captured, MemoryFault>;

    /// A payload of `length` bytes from `offset` of captured bytes.
    fn gather_captured(
        &mut self,
        captured: &Self::Captured,
        offset: u32,
        length: u32,
    ) -> Self::Outgoing;

    /// Copies the payload of a packet that has to wait.
    fn hold(&mut self, payload: Self::Incoming<'_>) -> Self::Captured;

    /// The payload of a packet that has waited.
    fn release(captured: &Self::Captured) -> Self::Incoming<'_>;

    /// Does `operation` on the 8 bytes of `word`, in the host's byte order and atomically towards every other access of
    /// this device, and returns what was there.
    ///
    /// # Errors
    /// If the memory cannot be reached.
    fn atomic(&mut self, word: Segment, operation: AtomicOperation) -> Result<u64, MemoryFault>;
}
