//! What the bytes of connections say: which message comes next, and how long it is.
//!
//! Payload is lengths only, in frames as in connections. What a real stream has in its bytes, the headers of messages, is
//! kept here instead: the sender adds one when it writes it, and the receiver takes it once its bytes have been read.
//!
//! Invariant: a header is taken at least one window after it was added, because its bytes have crossed a link in between. So
//! what a receiver finds does not depend on which thread was faster.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;
use softfabric_units::Bytes;

use crate::plan::Plan;

/// What stands before every message: its place in the channel and its length, in 4 B each.
pub(crate) const HEADER: Bytes = Bytes::new(8);

/// The headers of all streams, from when they are written until they are read.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    headers: FxHashMap<u32, Mutex<VecDeque<Header>>>,
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) message: u32,
    pub(crate) bytes: Bytes,
}

impl Streams {
    /// One for each connection that a job has.
    pub(crate) fn of(plan: &Plan) -> Self {
        let fed = (0..)
            .zip(&plan.flows)
            .filter(|(_, flow)| flow.is_fed() && plan.stack_of(flow.source).is_some());
        Self {
            headers: fed.map(|(flow, _)| (flow, Mutex::default())).collect(),
        }
    }

    /// The sender of `flow` writes a header.
    pub(crate) fn add(&self, flow: u32, header: Header) {
        self.with(flow, |headers| headers.push_back(header));
    }

    /// What the next header of `flow` says, whose bytes have come.
    pub(crate) fn next(&self, flow: u32) -> Option<Header> {
        self.with(flow, |headers| headers.front().copied())?
    }

    /// The message of that header has come as well.
    pub(crate) fn take(&self, flow: u32) {
        self.with(flow, VecDeque::pop_front);
    }

    fn with<T>(&self, flow: u32, act: impl FnOnce(&mut VecDeque<Header>) -> T) -> Option<T> {
        let headers = self.headers.get(&flow)?;
        Some(act(&mut headers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)))
    }
}
