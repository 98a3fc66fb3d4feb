//! Shared receive queues.
#![allow(unsafe_code, reason = "the program's pointers are followed")]

use std::ffi::c_int;
use std::sync::Arc;

use softfabric_transport::{SharedQueueError, SharedQueueId, SharedQueueInit, XrcQueueInit};

use crate::abi::*;
use crate::completion::CompletionQueue;
use crate::context::{Context, Living};
use crate::domain::ProtectionDomain;
use crate::errno::{Errno, number, pointer};
use crate::event::Element;
use crate::hub::Hub;
use crate::object::{Acknowledgements, Object, Pointer, Shared, handle};
use crate::queue_pair;
use crate::xrc::Xrcd;

/// A shared receive queue.
#[repr(C)]
pub(crate) struct SharedQueue {
    c: Shared<ibv_srq>,
    hub: Arc<Hub>,
    pub(crate) id: SharedQueueId,
    /// Asynchronous events.
    pub(crate) events: Acknowledgements,
}

// SAFETY: it is `repr(C)` and begins with its C structure.
unsafe impl Object for SharedQueue {
    type C = ibv_srq;
}

impl SharedQueue {
    pub(crate) fn context(&self) -> &Context {
        // SAFETY: the field is set when the object is made; a queue ends before its context does.
        unsafe { Context::of((*self.c.get()).context) }
            .expect("a shared receive queue has a context")
    }
}

fn errno(error: SharedQueueError) -> Errno {
    match error {
        SharedQueueError::InUse(_) => Errno::EBUSY,
        _ => Errno::EINVAL,
    }
}

/// `ibv_create_srq`
///
/// # Safety
/// The domain is one of ours, and the attributes are a structure of the caller.
pub(crate) unsafe extern "C" fn create_srq(
    pd: *mut ibv_pd,
    attributes: *mut ibv_srq_init_attr,
) -> *mut ibv_srq {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let attributes = unsafe { attributes.as_ref() }.ok_or(Errno::EINVAL)?;
        // SAFETY: as promised by the caller.
        unsafe { create(pd, attributes, None) }
    })
}

/// # Safety
/// The domain is one of ours, or null.
unsafe fn create(
    pd: *mut ibv_pd,
    attributes: &ibv_srq_init_attr,
    xrc: Option<XrcQueueInit>,
) -> Result<*mut ibv_srq, Errno> {
    // SAFETY: as promised by the caller.
    let domain = unsafe { ProtectionDomain::of(pd) }?;
    let init = SharedQueueInit {
        domain: domain.domain,
        depth: attributes.attr.max_wr,
        segments: attributes.attr.max_sge,
    };
    let hub = Arc::clone(domain.hub());
    let made = hub.nic.with(|device, _| match xrc {
        None => device.create_srq(init),
        Some(xrc) => device.create_xrc_srq(init, xrc),
    });
    let id = made.map_err(errno)?;
    let limit = attributes.attr.srq_limit;
    if limit > 0 {
        hub.nic
            .with(|device, _| device.set_srq_limit(id, limit))
            .map_err(|error| {
                let _ = hub.nic.with(|device, _| device.destroy_srq(id));
                errno(error)
            })?;
    }
    domain.context().born(Living::SharedQueue(id));
    let queue = SharedQueue {
        c: Shared::new(ibv_srq {
            context: domain.context_pointer(),
            srq_context: attributes.srq_context,
            pd,
            handle: handle(),
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            cond: libc::PTHREAD_COND_INITIALIZER,
            events_completed: 0,
        }),
        hub: Arc::clone(&hub),
        id,
        events: Acknowledgements::default(),
    }
    .publish();
    hub.listeners.add_shared_queue(id, queue.cast());
    Ok(queue)
}

/// `ibv_create_srq_ex`
///
/// # Safety
/// The context is open; the attributes are a structure of the caller, and what they point to is ours.
pub(crate) unsafe extern "C" fn create_srq_ex(
    context: *mut ibv_context,
    attributes: *mut ibv_srq_init_attr_ex,
) -> *mut ibv_srq {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let (_, attributes) = unsafe {
            (
                Context::of(context)?,
                attributes.as_ref().ok_or(Errno::EINVAL)?,
            )
        };
        let mask = attributes.comp_mask as i32;
        let basic = mask & IBV_SRQ_INIT_ATTR_TYPE == 0 || attributes.srq_type == IBV_SRQT_BASIC;
        if !basic && attributes.srq_type == IBV_SRQT_XRC {
            let needed = IBV_SRQ_INIT_ATTR_TYPE
                | IBV_SRQ_INIT_ATTR_PD
                | IBV_SRQ_INIT_ATTR_XRCD
                | IBV_SRQ_INIT_ATTR_CQ;
            if mask != needed {
                return Err(Errno::EINVAL);
            }
            // SAFETY: as promised by the caller.
            let xrc = unsafe {
                XrcQueueInit {
                    domain: Xrcd::of(attributes.xrcd)?.domain,
                    completions: CompletionQueue::of_cq(attributes.cq)?.id,
                }
            };
            let base = ibv_srq_init_attr {
                srq_context: attributes.srq_context,
                attr: attributes.attr,
            };
            // SAFETY: as promised by the caller.
            return unsafe { create(attributes.pd, &base, Some(xrc)) };
        }
        if !basic || mask & !(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD) != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        if mask & IBV_SRQ_INIT_ATTR_PD == 0 {
            return Err(Errno::EINVAL);
        }
        let base = ibv_srq_init_attr {
            srq_context: attributes.srq_context,
            attr: attributes.attr,
        };
        // SAFETY: as promised by the caller.
        unsafe { create(attributes.pd, &base, None) }
    })
}

/// `ibv_modify_srq`
///
/// # Safety
/// The queue is one of ours, and the attributes are a structure of the caller.
pub(crate) unsafe extern "C" fn modify_srq(
    srq: *mut ibv_srq,
    attributes: *mut ibv_srq_attr,
    mask: c_int,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let (queue, attributes) = unsafe {
            (
                SharedQueue::of(srq)?,
                attributes.as_ref().ok_or(Errno::EINVAL)?,
            )
        };
        if mask & !(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) != 0 {
            return Err(Errno::EINVAL);
        }
        queue.hub.nic.with(|device, _| {
            if mask & IBV_SRQ_MAX_WR != 0 {
                device
                    .resize_srq(queue.id, attributes.max_wr)
                    .map_err(errno)?;
            }
            if mask & IBV_SRQ_LIMIT != 0 {
                device
                    .set_srq_limit(queue.id, attributes.srq_limit)
                    .map_err(errno)?;
            }
            Ok(())
        })
    })
}

/// `ibv_query_srq`
///
/// # Safety
/// The queue is one of ours, and the attributes are a structure of the caller.
pub(crate) unsafe extern "C" fn query_srq(srq: *mut ibv_srq, into: *mut ibv_srq_attr) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let queue = unsafe { SharedQueue::of(srq) }?;
        if into.is_null() {
            return Err(Errno::EINVAL);
        }
        let status = queue
            .hub
            .nic
            .with(|device, _| device.query_srq(queue.id))
            .ok_or(Errno::EINVAL)?;
        // SAFETY: the caller's structure; what was in it does not matter.
        unsafe {
            into.write(ibv_srq_attr {
                max_wr: status.depth,
                max_sge: status.segments,
                srq_limit: status.limit,
            });
        }
        Ok(())
    })
}

/// `ibv_get_srq_num`: only shared receive queues of extended reliable connections have one
///
/// # Safety
/// The queue is one of ours, and `number` is a number of the caller.
pub(crate) unsafe extern "C" fn get_srq_num(srq: *mut ibv_srq, into: *mut u32) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let (queue, into) = unsafe { (SharedQueue::of(srq)?, into.as_mut().ok_or(Errno::EINVAL)?) };
        let status = queue.hub.nic.with(|device, _| device.query_srq(queue.id));
        let number = status.and_then(|status| status.number);
        *into = number.ok_or(Errno::EOPNOTSUPP)?;
        Ok(())
    })
}

/// `ibv_destroy_srq`
///
/// # Safety
/// The queue is one of ours, and nobody will use it again unless this fails.
pub(crate) unsafe extern "C" fn destroy_srq(srq: *mut ibv_srq) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let queue = unsafe { SharedQueue::of(srq) }?;
        let (context, id) = (queue.context(), queue.id);
        queue
            .hub
            .nic
            .with(|device, _| device.destroy_srq(id))
            .map_err(errno)?;
        queue.hub.listeners.remove_shared_queue(id);
        context.died(Living::SharedQueue(id));
        let this = Pointer(std::ptr::from_ref(queue));
        context
            .events
            .forget(|waiting| waiting.element == Element::SharedQueue(this));
        queue.events.wait();
        // SAFETY: the caller gives it up, and nothing of ours leads to it any more.
        drop(unsafe { SharedQueue::reclaim(srq) });
        Ok(())
    })
}

/// `ibv_post_srq_recv`
///
/// # Safety
/// The queue is one of ours, and the requests are a list of the caller.
pub(crate) unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    list: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: as promised by the caller.
    let queue = unsafe { SharedQueue::of(srq) };
    // SAFETY: as promised by the caller.
    unsafe {
        queue_pair::post_receives(list, bad, |requests| {
            let queue = queue?;
            queue.hub.nic.with(|device, _| {
                for request in requests {
                    device
                        .post_srq_recv(queue.id, request?)
                        .map_err(queue_pair::post_errno)?;
                }
                Ok(())
            })
        })
    }
}
