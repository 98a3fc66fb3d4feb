//! Completion channels: a descriptor that is readable when a completion queue has something to tell.
#![allow(unsafe_code, reason = "the program's pointers are followed")]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use softfabric_cabi::cancel;

use crate::abi::*;
use crate::completion::CompletionQueue;
use crate::context::Context;
use crate::errno::{Errno, minus_one, number, pointer, quiet};
use crate::object::{EventQueue, Object, Pointer, Shared};

/// A channel.
#[repr(C)]
pub(crate) struct Channel {
    c: Shared<ibv_comp_channel>,
    pub(crate) events: EventQueue<Pointer<CompletionQueue>>,
    /// Completion queues that use it.
    users: AtomicU32,
}

// SAFETY: it is `repr(C)` and begins with its C structure.
unsafe impl Object for Channel {
    type C = ibv_comp_channel;
}

impl Channel {
    /// Counts a completion queue in (or out: a negative `change`).
    pub(crate) fn count_user(&self, change: i32) {
        let before = if change < 0 {
            self.users
                .fetch_sub(change.unsigned_abs(), Ordering::AcqRel)
        } else {
            self.users
                .fetch_add(change.unsigned_abs(), Ordering::AcqRel)
        };
        // SAFETY: the field belongs to the library; programs may look at it.
        unsafe { (&raw mut (*self.c.get()).refcnt).write(before as i32 + change) };
    }
}

/// `ibv_create_comp_channel`
///
/// # Safety
/// The context is open.
pub(crate) unsafe extern "C" fn create_comp_channel(
    context: *mut ibv_context,
) -> *mut ibv_comp_channel {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let context = unsafe { Context::of(context) }?;
        let events = EventQueue::new()?;
        Ok(Channel {
            c: Shared::new(ibv_comp_channel {
                context: context.as_ibv(),
                fd: events.descriptor(),
                refcnt: 0,
            }),
            events,
            users: AtomicU32::new(0),
        }
        .publish())
    })
}

/// `ibv_destroy_comp_channel`
///
/// # Safety
/// The channel is one of ours, and nobody will use it again unless this fails.
pub(crate) unsafe extern "C" fn destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        if unsafe { Channel::of(channel) }?
            .users
            .load(Ordering::Acquire)
            > 0
        {
            return Err(Errno::EBUSY);
        }
        // SAFETY: the caller gives it up.
        drop(unsafe { Channel::reclaim(channel) });
        Ok(())
    })
}

/// `ibv_get_cq_event`
///
/// # Safety
/// The channel is one of ours; the other pointers are places of the caller.
pub(crate) unsafe extern "C-unwind" fn get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    // SAFETY: as promised by the caller.
    let descriptor = minus_one(|| Ok(unsafe { Channel::of(channel) }?.events.descriptor()));
    if descriptor < 0 {
        return -1;
    }
    // Of a channel that the program has closed itself, the read tells.
    cancel::wait_readable(descriptor);
    minus_one(|| {
        // SAFETY: as promised by the caller.
        let channel = unsafe { Channel::of(channel) }?;
        // SAFETY: a queue takes its events out, under the lock that `take` holds, before it ends.
        let queue = channel
            .events
            .take(|queue| unsafe { &*queue.0 }.channel_events.got())?;
        // SAFETY: the event has to be acknowledged before the queue can end; the places are the caller's.
        unsafe {
            let queue = &*queue.0;
            if !cq.is_null() {
                cq.write(queue.as_ibv());
            }
            if !cq_context.is_null() {
                cq_context.write((*queue.as_ibv()).cq_context);
            }
        }
        Ok(0)
    })
}

/// `ibv_ack_cq_events`
///
/// # Safety
/// The queue is one of ours, and the program got that many events of it.
pub(crate) unsafe extern "C" fn ack_cq_events(cq: *mut ibv_cq, count: u32) {
    quiet(|| {
        // SAFETY: as promised by the caller.
        if let Ok(queue) = unsafe { CompletionQueue::of(cq.cast()) } {
            queue.channel_events.acknowledge(count);
        }
    });
}
