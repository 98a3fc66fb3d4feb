//! Receive queues: a queue pair's own, and those that several share (IBTA vol. 1, 10.2.9; of XRC, annex A14).

use std::collections::VecDeque;

use crate::completion::CompletionQueueId;
use crate::memory::Domain;
use crate::work::ReceiveRequest;

/// A shared receive queue of one device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SharedQueueId(pub(crate) u32);

/// A shared receive queue to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedQueueInit {
    /// Whose memory its requests use.
    pub domain: Domain,
    /// How many requests it holds.
    pub depth: u32,
    /// How many pieces of memory a request may have.
    pub segments: u32,
}

/// An XRC domain of one device: XRC targets reach only shared receive queues of their own domain (annex A14).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct XrcDomain(pub(crate) u32);

/// What makes a shared receive queue one of XRC: peers name it by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct XrcQueueInit {
    /// The targets of this domain may receive through it.
    pub domain: XrcDomain,
    /// Where its requests complete, whichever target took them.
    pub completions: CompletionQueueId,
}

/// Why an XRC domain was not used or not removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum XrcError {
    /// No such domain.
    #[error("{0:?} does not exist")]
    UnknownDomain(XrcDomain),
    /// Shared receive queues or targets belong to it.
    #[error("{1} objects still belong to {0:?}")]
    DomainInUse(XrcDomain, u32),
    /// There is no such queue pair, or it is no target of the domain.
    #[error("{0:?} has no target with number {1}")]
    NoTarget(XrcDomain, softfabric_units::Qpn),
}

/// How a shared receive queue stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedQueueStatus {
    /// Whose memory its requests use.
    pub domain: Domain,
    /// How many requests it holds.
    pub depth: u32,
    /// How many pieces of memory a request may have.
    pub segments: u32,
    /// The limit that is armed; zero: none, or its event has been raised.
    pub limit: u32,
    /// How many requests wait.
    pub waiting: usize,
    /// How many queue pairs use it; none is attached to one of XRC.
    pub users: u32,
    /// The number that peers name it by, of XRC.
    pub number: Option<u32>,
    /// What makes it one of XRC.
    pub xrc: Option<XrcQueueInit>,
}

/// Why a shared receive queue was not made, changed or destroyed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SharedQueueError {
    /// No such queue.
    #[error("{0:?} does not exist")]
    Unknown(SharedQueueId),
    /// No such domain.
    #[error("{0:?} does not exist")]
    UnknownDomain(Domain),
    /// No such XRC domain.
    #[error("{0:?} does not exist")]
    UnknownXrcDomain(XrcDomain),
    /// No such completion queue.
    #[error("{0:?} does not exist")]
    UnknownCompletionQueue(CompletionQueueId),
    /// Peers name shared receive queues of XRC by 24 bits, and those are used up.
    #[error("a device holds {0} shared receive queues of XRC at most")]
    NoNumbers(u32),
    /// Zero, or more than the device allows.
    #[error("a depth of {found}, and 1 to {needed} are allowed")]
    Depth {
        /// What was asked for.
        found: u32,
        /// The most.
        needed: u32,
    },
    /// More pieces of memory than the device allows.
    #[error("{found} scatter/gather entries, at most {needed} are allowed")]
    Segments {
        /// What was asked for.
        found: u32,
        /// The most.
        needed: u32,
    },
    /// The limit is above the depth.
    #[error("a limit of {found}, at most {needed} are allowed")]
    Limit {
        /// What was asked for.
        found: u32,
        /// The most.
        needed: u32,
    },
    /// The new depth is too small for what waits, or for the limit that is armed.
    #[error("a depth of {found}, and {needed} at least is needed")]
    Resize {
        /// What was asked for.
        found: u32,
        /// What waits, or the limit.
        needed: usize,
    },
    /// Queue pairs use it.
    #[error("{0} queue pairs still use it")]
    InUse(u32),
}

#[derive(Debug)]
pub(crate) struct SharedQueue {
    pub(crate) init: SharedQueueInit,
    pub(crate) requests: VecDeque<ReceiveRequest>,
    /// An event is raised when fewer requests wait; zero: not armed.
    pub(crate) limit: u32,
    pub(crate) users: u32,
    /// Of XRC: its number and what it belongs to.
    pub(crate) xrc: Option<(u32, XrcQueueInit)>,
}

impl SharedQueue {
    pub(crate) fn new(init: SharedQueueInit) -> Self {
        Self {
            init,
            requests: VecDeque::new(),
            limit: 0,
            users: 0,
            xrc: None,
        }
    }

    pub(crate) fn status(&self) -> SharedQueueStatus {
        SharedQueueStatus {
            domain: self.init.domain,
            depth: self.init.depth,
            segments: self.init.segments,
            limit: self.limit,
            waiting: self.requests.len(),
            users: self.users,
            number: self.xrc.map(|(number, _)| number),
            xrc: self.xrc.map(|(_, init)| init),
        }
    }

    /// Takes the next request, and says whether the limit event is due; it disarms itself.
    pub(crate) fn take(&mut self) -> (Option<ReceiveRequest>, bool) {
        let request = self.requests.pop_front();
        let due = request.is_some() && (self.requests.len() as u32) < self.limit;
        if due {
            self.limit = 0;
        }
        (request, due)
    }
}
