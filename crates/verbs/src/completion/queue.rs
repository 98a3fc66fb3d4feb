//! Completion queues.
#![allow(unsafe_code, reason = "the program's pointers are followed")]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::RawMutex;
use softfabric_transport::{Completion, CompletionQueueError, CompletionQueueId};

use super::channel::Channel;
use super::translate;
use crate::abi::*;
use crate::context::{COMPLETION_VECTORS, Context, Living};
use crate::errno::{Errno, minus_one, number, pointer};
use crate::hub::Hub;
use crate::object::{Acknowledgements, Object, Pointer, Shared, handle};

/// A completion queue, read by whole entries or field by field.
#[repr(C)]
pub(crate) struct CompletionQueue {
    pub(super) c: Shared<ibv_cq_ex>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) id: CompletionQueueId,
    channel: Option<NonNull<ibv_comp_channel>>,
    /// Asynchronous events.
    pub(crate) events: Acknowledgements,
    /// Events of the channel.
    pub(crate) channel_events: Acknowledgements,
    /// Held between `start_poll` and `end_poll`, unless the program promises to poll from one thread.
    pub(super) polling: Option<RawMutex>,
    /// The entry at hand, with the times at which it was taken; guarded by `polling`.
    pub(super) current: UnsafeCell<Current>,
}

/// The entry that is read field by field.
#[derive(Clone, Copy, Default)]
pub(super) struct Current {
    pub(super) completion: Option<Completion>,
    pub(super) time: u64,
    pub(super) wall_time: u64,
}

// SAFETY: it is `repr(C)` and begins with its C structure, of which `ibv_cq` is the first part.
unsafe impl Object for CompletionQueue {
    type C = ibv_cq_ex;
}

/// What a queue is made with.
pub(super) struct Wish {
    pub(super) entries: u32,
    pub(super) cq_context: *mut c_void,
    pub(super) channel: *mut ibv_comp_channel,
    pub(super) vector: u32,
    pub(super) single_threaded: bool,
}

fn errno(error: CompletionQueueError) -> Errno {
    match error {
        CompletionQueueError::InUse(_) => Errno::EBUSY,
        CompletionQueueError::Unknown(_)
        | CompletionQueueError::Depth { .. }
        | CompletionQueueError::Resize { .. } => Errno::EINVAL,
    }
}

impl CompletionQueue {
    /// Makes a queue; `functions` are those of the extended interface.
    ///
    /// # Safety
    /// The channel is one of ours, or null.
    pub(super) unsafe fn create(context: &Context, wish: &Wish) -> Result<*mut ibv_cq_ex, Errno> {
        if wish.vector >= COMPLETION_VECTORS as u32 {
            return Err(Errno::EINVAL);
        }
        let channel = NonNull::new(wish.channel);
        if let Some(channel) = channel {
            // SAFETY: as promised by the caller.
            unsafe { Channel::of(channel.as_ptr()) }?.count_user(1);
        }
        let made = context
            .hub
            .nic
            .with(|device, _| device.create_cq(wish.entries));
        let id = made.map_err(errno).inspect_err(|_| {
            if let Some(channel) = channel {
                // SAFETY: as promised by the caller.
                let _ =
                    unsafe { Channel::of(channel.as_ptr()) }.map(|channel| channel.count_user(-1));
            }
        })?;
        context.born(Living::CompletionQueue(id));
        let base = ibv_cq {
            context: context.as_ibv(),
            channel: wish.channel,
            cq_context: wish.cq_context,
            handle: handle(),
            cqe: wish.entries as c_int,
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            cond: libc::PTHREAD_COND_INITIALIZER,
            comp_events_completed: 0,
            async_events_completed: 0,
        };
        let queue = Self {
            c: Shared::new(super::extended::structure(base)),
            hub: Arc::clone(&context.hub),
            id,
            channel,
            events: Acknowledgements::default(),
            channel_events: Acknowledgements::default(),
            polling: (!wish.single_threaded).then_some(<RawMutex as lock_api::RawMutex>::INIT),
            current: UnsafeCell::default(),
        }
        .publish();
        context.hub.listeners.add_completion_queue(id, queue.cast());
        Ok(queue)
    }

    /// The queue behind a pointer to its first part.
    ///
    /// # Safety
    /// The pointer is null, or that of a queue of ours.
    pub(crate) unsafe fn of_cq<'a>(cq: *const ibv_cq) -> Result<&'a Self, Errno> {
        // SAFETY: every queue of ours is made as an extended one.
        unsafe { Self::of(cq.cast()) }
    }

    /// What the program holds.
    pub(crate) fn as_ibv(&self) -> *mut ibv_cq {
        self.c.get().cast()
    }

    pub(crate) fn context(&self) -> &Context {
        // SAFETY: the field is set when the object is made; a queue ends before its context does.
        unsafe { Context::of((*self.as_ibv()).context) }.expect("a completion queue has a context")
    }

    /// Takes up to `most` completions.
    #[inline]
    pub(super) fn poll(&self, most: usize, take: impl FnMut(Completion)) -> usize {
        self.hub.nic.poll(self.id, most, take)
    }

    /// Tells the channel, if there is one, that the queue has something.
    pub(crate) fn notify(&self) {
        if let Some(channel) = self.channel {
            // SAFETY: a channel does not end while a queue uses it.
            if let Ok(channel) = unsafe { Channel::of(channel.as_ptr()) } {
                channel.events.push(Pointer(self));
            }
        }
    }
}

/// `ibv_create_cq`
///
/// # Safety
/// The context is open, and the channel is one of ours or null.
pub(crate) unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    entries: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> *mut ibv_cq {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let context = unsafe { Context::of(context) }?;
        let wish = Wish {
            entries: u32::try_from(entries).map_err(|_| Errno::EINVAL)?,
            cq_context,
            channel,
            vector: u32::try_from(vector).map_err(|_| Errno::EINVAL)?,
            single_threaded: false,
        };
        // SAFETY: as promised by the caller.
        unsafe { CompletionQueue::create(context, &wish) }
    })
    .cast()
}

/// `ibv_destroy_cq`
///
/// # Safety
/// The queue is one of ours, and nobody will use it again unless this fails.
pub(crate) unsafe extern "C" fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let queue = unsafe { CompletionQueue::of_cq(cq) }?;
        let (context, id) = (queue.context(), queue.id);
        queue
            .hub
            .nic
            .with(|device, _| device.destroy_cq(id))
            .map_err(errno)?;
        queue.hub.listeners.remove_completion_queue(id);
        context.died(Living::CompletionQueue(id));
        let this = Pointer(std::ptr::from_ref(queue));
        context
            .events
            .forget(|waiting| waiting.element == crate::event::Element::CompletionQueue(this));
        queue.events.wait();
        if let Some(channel) = queue.channel {
            // SAFETY: a channel does not end while a queue uses it.
            let channel = unsafe { Channel::of(channel.as_ptr()) }?;
            channel.events.forget(|waiting| *waiting == this);
            queue.channel_events.wait();
            channel.count_user(-1);
        }
        // SAFETY: the caller gives it up, and nothing of ours leads to it any more.
        drop(unsafe { CompletionQueue::reclaim(cq.cast()) });
        Ok(())
    })
}

/// `ibv_resize_cq`
///
/// # Safety
/// The queue is one of ours.
pub(crate) unsafe extern "C" fn resize_cq(cq: *mut ibv_cq, entries: c_int) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let queue = unsafe { CompletionQueue::of_cq(cq) }?;
        let depth = u32::try_from(entries).map_err(|_| Errno::EINVAL)?;
        queue
            .hub
            .nic
            .with(|device, _| device.resize_cq(queue.id, depth))
            .map_err(errno)?;
        // SAFETY: the field belongs to the library; programs may look at it.
        unsafe { (&raw mut (*cq).cqe).write(entries) };
        Ok(())
    })
}

/// `ibv_modify_cq`: moderation is accepted only where it changes nothing
///
/// # Safety
/// The queue is one of ours, and the attributes are a structure of the caller.
pub(crate) unsafe extern "C" fn modify_cq(
    cq: *mut ibv_cq,
    attributes: *mut ibv_modify_cq_attr,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let (_, attributes) = unsafe {
            (
                CompletionQueue::of_cq(cq)?,
                attributes.as_ref().ok_or(Errno::EINVAL)?,
            )
        };
        let moderate = attributes.moderate;
        let nothing = moderate.cq_count <= 1 && moderate.cq_period == 0;
        if attributes.attr_mask & !(IBV_CQ_ATTR_MODERATE as u32) != 0 {
            return Err(Errno::EINVAL);
        }
        if nothing {
            Ok(())
        } else {
            Err(Errno::EOPNOTSUPP)
        }
    })
}

/// `ibv_poll_cq`
///
/// # Safety
/// The queue is one of ours, and `into` has room for `most` completions.
pub(crate) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, most: c_int, into: *mut ibv_wc) -> c_int {
    minus_one(|| {
        // SAFETY: as promised by the caller.
        let queue = unsafe { CompletionQueue::of_cq(cq) }?;
        let most = usize::try_from(most).unwrap_or(0);
        let mut place = into;
        let count = queue.poll(most, |completion| {
            // SAFETY: there is room for `most`, and no more are taken. Programs may have left it uninitialised.
            unsafe {
                place.write(translate::completion(&completion));
                place = place.add(1);
            }
        });
        Ok(count as c_int)
    })
}

/// `ibv_req_notify_cq`
///
/// # Safety
/// The queue is one of ours.
pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let queue = unsafe { CompletionQueue::of_cq(cq) }?;
        let armed = queue
            .hub
            .nic
            .with(|device, _| device.request_notify(queue.id, solicited_only != 0));
        armed.map_err(errno)
    })
}
