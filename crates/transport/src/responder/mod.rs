//! The responder: what a queue pair receives.
//!
//! ```text
//! request ─► PSN ──► expected ─► opcode in order? ─► length? ─► key, receive request? ─► done ─► ACK
//!              ├───► behind: duplicate ─► ACK, read again, or replay the atomic's result
//!              └───► ahead:  NAK once, or kept until the gap is filled (selective repeat)
//! ```
//!
//! Invariant: every request before `expected` has been executed exactly once and in order, none after it has.

mod datagram;
mod duplicate;
mod execute;
mod held;
mod receive;
mod reply;
mod request;
mod target;

use std::collections::VecDeque;

use softfabric_units::{Msn, Psn, Time};

use crate::memory::Memory;
use crate::work::ReceiveRequest;

use held::Held;
use reply::Reply;

/// The message that is being received.
#[derive(Debug, Default)]
pub(crate) enum Message {
    /// None: the next packet begins one.
    #[default]
    None,
    /// A SEND.
    Send,
    /// A WRITE.
    Write(Write),
    /// One that is dropped to its end (unreliable connections).
    Dropped,
}

/// A write that is being received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    address: u64,
    key: u32,
    length: u32,
    /// The epoch at which the key held for the whole range.
    checked: u32,
}

/// What a responder keeps for reads and atomics: made when the first arrives.
#[derive(Debug)]
struct Replies {
    queue: VecDeque<Reply>,
    /// Results of the latest atomics, to be given again to duplicates.
    atomics: VecDeque<(Psn, u64)>,
}

pub(crate) struct Responder<M: Memory> {
    expected: Psn,
    /// The first PSN of the message that is being received.
    first: Psn,
    msn: Msn,
    message: Message,
    /// Bytes of it so far.
    received: u32,
    /// The receive request that it takes.
    receive: Option<ReceiveRequest>,
    /// A gap or a missing receive request was reported; cleared by the expected packet.
    reported: bool,
    reported_at: Time,
    /// Request packets since the last acknowledgement.
    unacknowledged: u16,
    /// An acknowledgement waits, and more may be merged into it.
    merging: bool,
    merged_psn: Psn,
    merged_msn: Msn,
    /// A marked packet is to be answered with BECN.
    becn: bool,
    /// When the peer was last notified of congestion.
    notified: Option<Time>,
    replies: Option<Box<Replies>>,
    held: Option<Box<Held<M>>>,
    /// COMM_EST has been raised.
    established: bool,
}

impl<M: Memory> Responder<M> {
    pub(crate) fn new() -> Self {
        Self {
            expected: Psn::default(),
            first: Psn::default(),
            msn: Msn::default(),
            message: Message::None,
            received: 0,
            receive: None,
            reported: false,
            reported_at: Time::ZERO,
            unacknowledged: 0,
            merging: false,
            merged_psn: Psn::default(),
            merged_msn: Msn::default(),
            becn: false,
            notified: None,
            replies: None,
            held: None,
            established: false,
        }
    }

    /// Sets the first PSN.
    pub(crate) fn start(&mut self, psn: Psn) {
        self.expected = psn;
        self.first = psn;
        self.msn = Msn::default();
    }

    pub(crate) fn expected(&self) -> Psn {
        self.expected
    }

    /// Gives up the message that is being received, and what is held.
    pub(crate) fn give_up(&mut self) {
        self.message = Message::None;
        self.held = None;
    }

    /// Forgets what is owed to the peer.
    pub(crate) fn forget_replies(&mut self) {
        self.replies = None;
        // An acknowledgement that waits for its turn finds nothing to say.
        self.merging = false;
    }

    /// Takes back the receive request of a message that did not come to its end.
    pub(crate) fn take_receive(&mut self) -> Option<ReceiveRequest> {
        self.receive.take()
    }

    /// When the peer was last notified of congestion.
    pub(crate) fn notified_mut(&mut self) -> &mut Option<Time> {
        &mut self.notified
    }
}
