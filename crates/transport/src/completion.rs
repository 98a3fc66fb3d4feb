//! Completion queues: what became of each work request.

use std::collections::VecDeque;
use std::fmt;

use bitflags::bitflags;
use softfabric_units::{Gid, PartitionKey, Qpn};

/// A completion queue of one device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CompletionQueueId(pub(crate) u32);

impl CompletionQueueId {
    /// None: what completes there is told to nobody.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// How a work request ended (IBTA vol. 1, 11.6.2; the names of the C interface in brackets).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// It was done (`IBV_WC_SUCCESS`).
    Success,
    /// The message did not fit the receive request, or was too long to send (`IBV_WC_LOC_LEN_ERR`).
    LocalLength,
    /// The device failed inside (`IBV_WC_LOC_QP_OP_ERR`).
    LocalOperation,
    /// Local memory was not what its key allows (`IBV_WC_LOC_PROT_ERR`).
    LocalProtection,
    /// The queue pair went to the error state before it was done (`IBV_WC_WR_FLUSH_ERR`).
    Flushed,
    /// The window was not bound (`IBV_WC_MW_BIND_ERR`).
    WindowBind,
    /// The peer answered what does not fit (`IBV_WC_BAD_RESP_ERR`).
    BadResponse,
    /// A peer's write failed on local memory: completes its receive request (`IBV_WC_LOC_ACCESS_ERR`).
    LocalAccess,
    /// The peer called the request invalid (`IBV_WC_REM_INV_REQ_ERR`).
    RemoteInvalidRequest,
    /// The peer refused access (`IBV_WC_REM_ACCESS_ERR`).
    RemoteAccess,
    /// The peer could not do it (`IBV_WC_REM_OP_ERR`).
    RemoteOperation,
    /// The peer did not answer, however often it was asked (`IBV_WC_RETRY_EXC_ERR`).
    RetriesExceeded,
    /// The peer was not ready, however often it was asked (`IBV_WC_RNR_RETRY_EXC_ERR`).
    RnrRetriesExceeded,
    /// The peer aborted the request (`IBV_WC_REM_ABORT_ERR`): a receive request of which the message was given up.
    RemoteAborted,
}

/// Writes the name that verbs give it, without `IBV_WC_`: `RETRY_EXC_ERR`.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "SUCCESS",
            Self::LocalLength => "LOC_LEN_ERR",
            Self::LocalOperation => "LOC_QP_OP_ERR",
            Self::LocalProtection => "LOC_PROT_ERR",
            Self::Flushed => "WR_FLUSH_ERR",
            Self::WindowBind => "MW_BIND_ERR",
            Self::BadResponse => "BAD_RESP_ERR",
            Self::LocalAccess => "LOC_ACCESS_ERR",
            Self::RemoteInvalidRequest => "REM_INV_REQ_ERR",
            Self::RemoteAccess => "REM_ACCESS_ERR",
            Self::RemoteOperation => "REM_OP_ERR",
            Self::RetriesExceeded => "RETRY_EXC_ERR",
            Self::RnrRetriesExceeded => "RNR_RETRY_EXC_ERR",
            Self::RemoteAborted => "REM_ABORT_ERR",
        })
    }
}

/// What was completed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CompletedOperation {
    /// A SEND.
    Send,
    /// A WRITE.
    Write,
    /// A READ.
    Read,
    /// A compare and swap.
    CompareSwap,
    /// A fetch and add.
    FetchAdd,
    /// A window was bound.
    BindWindow,
    /// A key was invalidated.
    LocalInvalidate,
    /// A SEND arrived.
    Receive,
    /// A WRITE with immediate arrived.
    ReceiveWithWrite,
}

/// What came with a received message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Attachment {
    /// Nothing.
    #[default]
    None,
    /// Immediate data.
    Immediate(u32),
    /// This key was invalidated.
    Invalidated(u32),
}

bitflags! {
    /// More about a completion.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub struct CompletionFlags: u8 {
        /// The first 40 bytes of the buffer are a global routing header (datagrams).
        const GRH = 1;
        /// The sender asked for a solicited event.
        const SOLICITED = 2;
    }
}

/// One entry of a completion queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The work request's own id.
    pub id: u64,
    /// How it ended. If not with success, only `id`, `status` and `qp` mean something.
    pub status: Status,
    /// What it did.
    pub operation: CompletedOperation,
    /// The queue pair.
    pub qp: Qpn,
    /// Bytes received, read, or sent.
    pub length: u32,
    /// What came with the message.
    pub attachment: Attachment,
    /// More.
    pub flags: CompletionFlags,
    /// Who sent a datagram.
    pub source: Qpn,
    /// The address that a datagram came from.
    pub source_gid: Gid,
    /// The partition that a datagram came in.
    pub partition: PartitionKey,
}

/// How a completion queue stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompletionQueueStatus {
    /// How many completions it holds.
    pub depth: u32,
    /// How many wait.
    pub waiting: usize,
    /// One was lost: the queue is of no more use.
    pub overrun: bool,
    /// How many queues of queue pairs complete into it.
    pub users: u32,
}

/// When a completion queue raises its next event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Armed {
    /// It does not.
    #[default]
    No,
    /// At a solicited completion or an error (IBTA vol. 1, 11.4.2.2).
    Solicited,
    /// At any completion.
    Any,
}

/// Why a completion queue was not made, resized or destroyed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CompletionQueueError {
    /// No such queue.
    #[error("{0:?} does not exist")]
    Unknown(CompletionQueueId),
    /// Zero, or more than the device allows.
    #[error("a depth of {found}, and 1 to {needed} are allowed")]
    Depth {
        /// What was asked for.
        found: u32,
        /// The most.
        needed: u32,
    },
    /// More completions wait than would fit.
    #[error("{waiting} completions wait and do not fit {found}")]
    Resize {
        /// What was asked for.
        found: u32,
        /// How many wait.
        waiting: usize,
    },
    /// Queue pairs complete into it.
    #[error("{0} queue pairs still complete into it")]
    InUse(u32),
}

#[derive(Debug)]
pub(crate) struct CompletionQueue {
    entries: VecDeque<Completion>,
    depth: u32,
    pub(crate) armed: Armed,
    /// A completion was lost: the queue is of no more use (IBTA vol. 1, 10.2.6.3).
    pub(crate) overrun: bool,
    /// How many queues of queue pairs complete here.
    pub(crate) users: u32,
}

/// What pushing a completion leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pushed {
    Quietly,
    RaisesEvent,
    Overruns,
}

impl CompletionQueue {
    pub(crate) fn new(depth: u32) -> Self {
        Self {
            entries: VecDeque::new(),
            depth,
            armed: Armed::No,
            overrun: false,
            users: 0,
        }
    }

    pub(crate) fn status(&self) -> CompletionQueueStatus {
        CompletionQueueStatus {
            depth: self.depth,
            waiting: self.entries.len(),
            overrun: self.overrun,
            users: self.users,
        }
    }

    pub(crate) fn resize(&mut self, depth: u32) -> Result<(), CompletionQueueError> {
        let waiting = self.entries.len();
        if waiting > depth as usize {
            return Err(CompletionQueueError::Resize {
                found: depth,
                waiting,
            });
        }
        self.depth = depth;
        Ok(())
    }

    pub(crate) fn push(&mut self, completion: Completion) -> Pushed {
        if self.overrun {
            return Pushed::Quietly;
        }
        if self.entries.len() >= self.depth as usize {
            self.overrun = true;
            return Pushed::Overruns;
        }
        self.entries.push_back(completion);
        let solicited = completion.flags.contains(CompletionFlags::SOLICITED)
            || completion.status != Status::Success;
        let raises = match self.armed {
            Armed::No => false,
            Armed::Solicited => solicited,
            Armed::Any => true,
        };
        if raises {
            self.armed = Armed::No;
            Pushed::RaisesEvent
        } else {
            Pushed::Quietly
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Completion> {
        self.entries.pop_front()
    }

    /// Removes what a destroyed queue pair left (as `ibv_destroy_qp` does).
    pub(crate) fn purge(&mut self, qp: Qpn) {
        self.entries.retain(|entry| entry.qp != qp);
    }
}
