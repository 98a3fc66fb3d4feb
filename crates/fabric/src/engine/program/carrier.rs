//! What carries messages from host to host: queue pairs, or connections.
//!
//! ```text
//!            open, post, close                  posted, a message each                 immediate data says which it is
//! Program ────────────────────► queue pair   ─────────────────────────► queue pair   ──────────────────────────────┐
//!    ▲                    └───► connection   ═════════ bytes ══════════► connection   ── a header says which it is ─┤
//!    └──────────────────────────────── sent, arrived, failed ◄──────────────────────────────────────────────────────┘
//! ```

use softfabric_units::{Bytes, Time};

use super::Program;

/// What a host does for its ranks. Each flow is a queue pair or a connection.
pub(crate) trait Carrier {
    /// Makes a flow's queue pair, or opens its connection.
    fn open(&mut self, now: Time, flow: u32);

    /// Posts a message. A flow has at most [`POSTED`] that are not sent.
    fn post(&mut self, now: Time, flow: u32, message: u32, bytes: Bytes);

    /// A flow has no more to send.
    fn close(&mut self, now: Time, flow: u32);

    /// What has happened since the last call, in order.
    fn take_notes(&mut self) -> Vec<Note>;
}

/// Messages that a flow has posted, at most.
pub(crate) const POSTED: u64 = 16;

/// What the ranks hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A message of a flow has come.
    Arrived { flow: u32, message: u32 },
    /// The oldest message of a flow is sent, and its memory is free again: a queue pair says so when it is acknowledged, a
    /// socket when it has copied it.
    Sent { flow: u32 },
    /// The queue pair or the connection of a flow has failed.
    Failed { flow: u32 },
}

/// What is to be done for the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Open {
        flow: u32,
    },
    Post {
        flow: u32,
        message: u32,
        bytes: Bytes,
    },
    Close {
        flow: u32,
    },
}

impl Program {
    /// The ranks hear what there is to hear, and say what is to be done, until both are silent. Returns how many ranks have
    /// come to their end.
    pub(crate) fn converse(&mut self, now: Time, carrier: &mut impl Carrier) -> u64 {
        loop {
            for note in carrier.take_notes() {
                self.hear(now, note);
            }
            if self.orders.is_empty() {
                return std::mem::take(&mut self.ended);
            }
            for order in std::mem::take(&mut self.orders) {
                match order {
                    Order::Open { flow } => carrier.open(now, flow),
                    Order::Post {
                        flow,
                        message,
                        bytes,
                    } => carrier.post(now, flow, message, bytes),
                    Order::Close { flow } => carrier.close(now, flow),
                }
            }
        }
    }
}
