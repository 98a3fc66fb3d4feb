//! Work requests: what a queue pair is asked to send, and where it may receive.

use bitflags::bitflags;
use smallvec::SmallVec;
use softfabric_units::Qpn;

use crate::address::AddressVector;
use crate::memory::Access;

/// A piece of local memory: an entry of a scatter/gather list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LocalSegment {
    /// The first byte.
    pub address: u64,
    /// How many bytes.
    pub length: u32,
    /// The local key; not looked at for inline data.
    pub key: u32,
}

/// A scatter/gather list. One entry needs no allocation.
pub type LocalSegments = SmallVec<[LocalSegment; 1]>;

/// Remote memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Remote {
    /// The first byte.
    pub address: u64,
    /// The remote key.
    pub key: u32,
}

bitflags! {
    /// How a send request is carried out.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub struct SendFlags: u8 {
        /// It starts after all reads and atomics before it have completed (IBTA vol. 1, 10.8.3.3).
        const FENCE = 1;
        /// Its success makes a completion.
        const SIGNALED = 2;
        /// The receiver's completion is a solicited event.
        const SOLICITED = 4;
        /// The data is copied when the request is posted.
        const INLINE = 8;
    }
}

/// What a send request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendOperation {
    /// A message to the peer's receive queue.
    Send,
    /// The same, with 32 bits for the completion.
    SendImmediate(u32),
    /// The same, and a remote key is invalidated.
    SendInvalidate(u32),
    /// A write into the peer's memory.
    Write(Remote),
    /// The same, with 32 bits for a completion of the peer.
    WriteImmediate(Remote, u32),
    /// A read of the peer's memory.
    Read(Remote),
    /// An atomic compare and swap on 8 bytes of the peer's memory; what was there comes into the first 8 bytes of the
    /// local memory.
    CompareSwap {
        /// The 8 bytes; the address is a multiple of 8.
        remote: Remote,
        /// What they are compared with.
        compare: u64,
        /// What they become if they are equal.
        swap: u64,
    },
    /// An atomic addition to 8 bytes of the peer's memory.
    FetchAdd {
        /// The 8 bytes; the address is a multiple of 8.
        remote: Remote,
        /// What is added, modulo 2⁶⁴.
        add: u64,
    },
    /// Binds a memory window; the request completes locally.
    BindWindow(BindWindow),
    /// Invalidates a memory window of type 2; the request completes locally.
    LocalInvalidate(u32),
}

/// A binding of a memory window. A length of zero unbinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BindWindow {
    /// The window's key now.
    pub window: u32,
    /// Its key after: the same index, another variant.
    pub new_key: u32,
    /// The region's local key.
    pub region: u32,
    /// The first byte, in the region's addresses.
    pub address: u64,
    /// How many bytes.
    pub length: u64,
    /// What peers may do through the window.
    pub access: Access,
}

/// Where a datagram goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The path.
    pub path: AddressVector,
    /// The receiving queue pair.
    pub destination: Qpn,
    /// Its queue key; with the top bit set, the sending queue pair's own is sent (IBTA vol. 1, 10.2.5).
    pub qkey: u32,
}

/// A request for the send queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SendRequest {
    /// Comes back in the completion.
    pub id: u64,
    /// What to do.
    pub operation: SendOperation,
    /// The local memory: sent, or filled by a read or an atomic.
    pub local: LocalSegments,
    /// How.
    pub flags: SendFlags,
    /// Where to, for datagrams.
    pub datagram: Option<Datagram>,
    /// The number of the peer's shared receive queue, 24 bits, for XRC; looked at nowhere else.
    pub xrc_srq: u32,
}

impl SendRequest {
    /// A signalled request over one piece of local memory.
    pub fn new(id: u64, operation: SendOperation, local: LocalSegment) -> Self {
        Self {
            id,
            operation,
            local: LocalSegments::from_buf([local]),
            flags: SendFlags::SIGNALED,
            datagram: None,
            xrc_srq: 0,
        }
    }

    /// A signalled request without local memory.
    pub fn empty(id: u64, operation: SendOperation) -> Self {
        Self {
            id,
            operation,
            local: LocalSegments::new(),
            flags: SendFlags::SIGNALED,
            datagram: None,
            xrc_srq: 0,
        }
    }

    /// The same request with more flags.
    #[must_use]
    pub fn with(mut self, flags: SendFlags) -> Self {
        self.flags |= flags;
        self
    }

    /// The same request, whose success makes no completion.
    #[must_use]
    pub fn unsignaled(mut self) -> Self {
        self.flags -= SendFlags::SIGNALED;
        self
    }

    /// The same request, as a datagram.
    #[must_use]
    pub fn to(mut self, datagram: Datagram) -> Self {
        self.datagram = Some(datagram);
        self
    }

    /// The same request, for the peer's shared receive queue `number` (XRC).
    #[must_use]
    pub fn to_srq(mut self, number: u32) -> Self {
        self.xrc_srq = number;
        self
    }
}

/// A request for a receive queue.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReceiveRequest {
    /// Comes back in the completion.
    pub id: u64,
    /// Where the message goes, in order.
    pub local: LocalSegments,
}

impl ReceiveRequest {
    /// A request over one piece of local memory.
    pub fn new(id: u64, local: LocalSegment) -> Self {
        Self {
            id,
            local: LocalSegments::from_buf([local]),
        }
    }
}

/// Why a request was not posted. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PostError {
    /// No such queue pair or shared receive queue.
    #[error("the queue does not exist")]
    UnknownQueue,
    /// The queue pair's state does not allow it.
    #[error("the queue pair is in state {found}, and posting needs {needed}")]
    State {
        /// The state it is in.
        found: crate::queue_pair::State,
        /// The first state that allows it.
        needed: crate::queue_pair::State,
    },
    /// The queue is full.
    #[error("the queue holds {0} requests and is full")]
    Full(u32),
    /// Too many pieces of local memory.
    #[error("{found} scatter/gather entries, at most {needed} are allowed")]
    Segments {
        /// How many there are.
        found: usize,
        /// How many there may be.
        needed: u32,
    },
    /// Too much inline data.
    #[error("{found} bytes of inline data, at most {needed} are allowed")]
    Inline {
        /// How many there are.
        found: u64,
        /// How many there may be.
        needed: u32,
    },
    /// The service cannot do it, or not inline.
    #[error("a {service} queue pair cannot do this operation")]
    Operation {
        /// The queue pair's service.
        service: crate::queue_pair::QueuePairType,
    },
    /// The message is longer than the service carries.
    #[error("a message of {found} bytes, at most {needed} are allowed")]
    Length {
        /// How long it is.
        found: u64,
        /// How long it may be.
        needed: u32,
    },
    /// A datagram without a destination, or a destination where there is a connection.
    #[error("datagrams, and only they, need a destination")]
    Destination,
    /// The local memory of an atomic operation is less than 8 bytes, or the remote address not a multiple of 8.
    #[error(
        "an atomic operation needs 8 bytes of local memory, and a remote address that is a multiple of 8"
    )]
    Atomic,
    /// The queue pair takes its receive requests from a shared receive queue.
    #[error("the queue pair receives through a shared receive queue")]
    Shared,
    /// Inline memory could not be read.
    #[error(transparent)]
    Memory(#[from] crate::memory::MemoryFault),
}
