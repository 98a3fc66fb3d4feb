//! Asynchronous events: what happens outside any work request.
#![allow(unsafe_code, reason = "the program's structures are written and read")]

use std::ffi::{c_int, c_void};

use softfabric_cabi::cancel;
use softfabric_transport::Event;

use crate::abi::*;
use crate::completion::CompletionQueue;
use crate::context::Context;
use crate::errno::{Errno, minus_one, quiet};
use crate::object::{Object, Pointer};
use crate::queue_pair::QueuePair;
use crate::shared_queue::SharedQueue;

/// What an event is about.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Element {
    CompletionQueue(Pointer<CompletionQueue>),
    QueuePair(Pointer<QueuePair>),
    SharedQueue(Pointer<SharedQueue>),
    #[allow(
        dead_code,
        reason = "ports come and go once the adapter watches interfaces"
    )]
    Port(u8),
}

/// An event that waits for the program.
pub(crate) struct Waiting {
    pub(crate) number: c_int,
    pub(crate) element: Element,
}

/// The C interface's number of an event.
pub(crate) fn number(event: Event) -> c_int {
    match event {
        // Never told this way; it has a channel of its own.
        Event::Completion(_) | Event::CompletionQueueError(_) => IBV_EVENT_CQ_ERR,
        Event::SharedQueueLimit(_) => IBV_EVENT_SRQ_LIMIT_REACHED,
        Event::CommunicationEstablished(_) => IBV_EVENT_COMM_EST,
        Event::SendQueueDrained(_) => IBV_EVENT_SQ_DRAINED,
        Event::LastReceiveReached(_) => IBV_EVENT_QP_LAST_WQE_REACHED,
        Event::QueuePairFatal(_) => IBV_EVENT_QP_FATAL,
        Event::RequestError(_) => IBV_EVENT_QP_REQ_ERR,
        Event::AccessError(_) => IBV_EVENT_QP_ACCESS_ERR,
    }
}

impl Element {
    /// Notes that the program has got an event of the object.
    fn got(&self) {
        // SAFETY: an object takes its events out of the queue, whose lock is held here, before it ends.
        match self {
            // SAFETY: see above.
            Self::CompletionQueue(queue) => unsafe { &*queue.0 }.events.got(),
            // SAFETY: see above.
            Self::QueuePair(qp) => unsafe { &*qp.0 }.events.got(),
            // SAFETY: see above.
            Self::SharedQueue(queue) => unsafe { &*queue.0 }.events.got(),
            Self::Port(_) => {}
        }
    }

    /// What the program finds in the event.
    fn for_program(&self) -> *mut c_void {
        match self {
            Self::CompletionQueue(queue) => queue.0.cast_mut().cast(),
            Self::QueuePair(qp) => qp.0.cast_mut().cast(),
            Self::SharedQueue(queue) => queue.0.cast_mut().cast(),
            Self::Port(port) => std::ptr::without_provenance_mut(usize::from(*port)),
        }
    }
}

/// `ibv_get_async_event`
///
/// # Safety
/// The pointers are those of an open context and of a structure to fill.
pub(crate) unsafe extern "C-unwind" fn get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    // SAFETY: as promised by the caller.
    let descriptor = minus_one(|| Ok(unsafe { Context::of(context) }?.events.descriptor()));
    if descriptor < 0 {
        return -1;
    }
    // Of a descriptor that the program has closed itself, the read tells.
    cancel::wait_readable(descriptor);
    minus_one(|| {
        // SAFETY: as promised by the caller.
        let context = unsafe { Context::of(context) }?;
        if event.is_null() {
            return Err(Errno::EINVAL);
        }
        let waiting = context.events.take(|waiting| waiting.element.got())?;
        // SAFETY: the caller's structure; what was in it does not matter.
        unsafe {
            event.write(ibv_async_event {
                element: waiting.element.for_program(),
                event_type: waiting.number,
            });
        }
        Ok(0)
    })
}

/// `ibv_ack_async_event`
///
/// # Safety
/// The event came from [`get_async_event`], and its object still lives.
pub(crate) unsafe extern "C" fn ack_async_event(event: *mut ibv_async_event) {
    quiet(|| {
        // SAFETY: the caller's structure.
        let Some(event) = (unsafe { event.as_ref() }) else {
            return;
        };
        let acknowledgements = match event.event_type {
            IBV_EVENT_CQ_ERR => {
                // SAFETY: for these events the element is a completion queue.
                let queue = unsafe { CompletionQueue::of(event.element.cast()) };
                queue.map(|queue| &queue.events)
            }
            IBV_EVENT_QP_FATAL
            | IBV_EVENT_QP_REQ_ERR
            | IBV_EVENT_QP_ACCESS_ERR
            | IBV_EVENT_COMM_EST
            | IBV_EVENT_SQ_DRAINED
            | IBV_EVENT_PATH_MIG
            | IBV_EVENT_PATH_MIG_ERR
            | IBV_EVENT_QP_LAST_WQE_REACHED => {
                // SAFETY: for these events the element is a queue pair.
                unsafe { QueuePair::of(event.element.cast()) }.map(|qp| &qp.events)
            }
            IBV_EVENT_SRQ_ERR | IBV_EVENT_SRQ_LIMIT_REACHED => {
                // SAFETY: for these events the element is a shared receive queue.
                unsafe { SharedQueue::of(event.element.cast()) }.map(|queue| &queue.events)
            }
            _ => return,
        };
        if let Ok(acknowledgements) = acknowledgements {
            acknowledgements.acknowledge(1);
        }
    });
}
