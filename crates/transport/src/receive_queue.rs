//! Receive queues: a queue pair's own, and those that several share (IBTA vol. 1, 10.2.9).

use std::collections::VecDeque;

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
    /// How many queue pairs use it.
    pub users: u32,
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
}

impl SharedQueue {
    pub(crate) fn new(init: SharedQueueInit) -> Self {
        Self {
            init,
            requests: VecDeque::new(),
            limit: 0,
            users: 0,
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
