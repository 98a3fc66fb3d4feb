//! Queue pairs begin and end.

use std::ffi::c_int;
use std::sync::{Arc, Mutex};

use softfabric_transport::{Capacity, CreateError, ModifyError, QueuePairInit, QueuePairType};
use softfabric_units::Qpn;

use super::build::{self, Builder};
use super::modify::state_number;
use super::{Kept, QueuePair};
use crate::abi::*;
use crate::completion::CompletionQueue;
use crate::context::{Context, Living};
use crate::domain::ProtectionDomain;
use crate::errno::{Errno, number, pointer};
use crate::event::Element;
use crate::object::{Acknowledgements, Object, Pointer, Shared, handle};
use crate::shared_queue::SharedQueue;
use crate::xrc::Xrcd;

/// How many bytes may be posted inline where less is asked for. Other devices give what a work request has room for anyway
/// (16 bytes for each segment and more), and there are programs that rely on it without asking (`rdma_xclient`).
const LEAST_INLINE: u32 = 64;

/// What the transport calls a type of queue pair.
fn service(qp_type: c_int) -> Result<QueuePairType, Errno> {
    match qp_type {
        IBV_QPT_RC => Ok(QueuePairType::ReliableConnection),
        IBV_QPT_UC => Ok(QueuePairType::UnreliableConnection),
        IBV_QPT_UD => Ok(QueuePairType::UnreliableDatagram),
        IBV_QPT_XRC_SEND => Ok(QueuePairType::XrcInitiator),
        IBV_QPT_XRC_RECV => Ok(QueuePairType::XrcTarget),
        IBV_QPT_RAW_PACKET | IBV_QPT_DRIVER => Err(Errno::EOPNOTSUPP),
        _ => Err(Errno::EINVAL),
    }
}

fn errno(error: CreateError) -> Errno {
    match error {
        CreateError::TooMany(_) => Errno::ENOMEM,
        _ => Errno::EINVAL,
    }
}

/// `ibv_create_qp`
///
/// # Safety
/// The attributes are a structure of the caller, and what they point to is ours.
pub(crate) unsafe extern "C" fn create_qp(
    pd: *mut ibv_pd,
    attributes: *mut ibv_qp_init_attr,
) -> *mut ibv_qp {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let attributes = unsafe { attributes.as_mut() }.ok_or(Errno::EINVAL)?;
        // SAFETY: as promised by the caller.
        unsafe { create(pd, attributes, None) }
    })
    .cast()
}

/// `ibv_create_qp_ex`
///
/// # Safety
/// As for [`create_qp`].
pub(crate) unsafe extern "C" fn create_qp_ex(
    context: *mut ibv_context,
    attributes: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let (context, attributes) = unsafe {
            (
                Context::of(context)?,
                attributes.as_mut().ok_or(Errno::EINVAL)?,
            )
        };
        let mask = attributes.comp_mask as i32;
        let given = |attribute: i32| mask & attribute != 0;
        let known = IBV_QP_INIT_ATTR_PD
            | IBV_QP_INIT_ATTR_XRCD
            | IBV_QP_INIT_ATTR_CREATE_FLAGS
            | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        let wants_flags = given(IBV_QP_INIT_ATTR_CREATE_FLAGS) && attributes.create_flags != 0;
        if mask & !known != 0 || wants_flags {
            return Err(Errno::EOPNOTSUPP);
        }
        let target = attributes.qp_type == IBV_QPT_XRC_RECV;
        // A target belongs to an XRC domain, everything else to a protection domain. librdmacm names one for a target, too,
        // and looks for it in the queue pair's structure later: it means nothing else.
        if target != given(IBV_QP_INIT_ATTR_XRCD) || !target && !given(IBV_QP_INIT_ATTR_PD) {
            return Err(Errno::EINVAL);
        }
        let mut base = ibv_qp_init_attr {
            qp_context: attributes.qp_context,
            send_cq: attributes.send_cq,
            recv_cq: attributes.recv_cq,
            srq: attributes.srq,
            cap: attributes.cap,
            qp_type: attributes.qp_type,
            sq_sig_all: attributes.sq_sig_all,
        };
        if target {
            // SAFETY: as promised by the caller.
            let domain = unsafe { Xrcd::of(attributes.xrcd) }?.domain;
            let init = QueuePairInit::xrc_target(domain);
            let made = context.hub.nic.with(|device, _| device.create_qp(&init));
            let mut structure = target_structure(context, &base);
            if given(IBV_QP_INIT_ATTR_PD) {
                structure.pd = attributes.pd;
            }
            return Ok(publish(context, made.map_err(errno)?, structure, None));
        }
        let operations =
            given(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS).then_some(attributes.send_ops_flags);
        // SAFETY: as promised by the caller.
        let made = unsafe { create(attributes.pd, &mut base, operations) }?;
        attributes.cap = base.cap;
        Ok(made)
    })
    .cast()
}

/// Makes a queue pair that belongs to a protection domain.
///
/// # Safety
/// What the domain and the attributes point to is ours, or null.
unsafe fn create(
    pd: *mut ibv_pd,
    attributes: &mut ibv_qp_init_attr,
    operations: Option<u64>,
) -> Result<*mut ibv_qp_ex, Errno> {
    let service = service(attributes.qp_type)?;
    if service == QueuePairType::XrcTarget {
        return Err(Errno::EINVAL);
    }
    let initiator = service == QueuePairType::XrcInitiator;
    // SAFETY: as promised by the caller.
    let (domain, send_queue) = unsafe {
        (
            ProtectionDomain::of(pd)?,
            CompletionQueue::of_cq(attributes.send_cq)?,
        )
    };
    // The sending end of an extended connection receives nothing.
    let receive_queue = if initiator {
        send_queue
    } else {
        // SAFETY: as promised by the caller.
        unsafe { CompletionQueue::of_cq(attributes.recv_cq) }?
    };
    let context = domain.context();
    if let Some(operations) = operations
        && operations & !build::operations(service) != 0
    {
        return Err(Errno::EOPNOTSUPP);
    }
    let shared = if attributes.srq.is_null() {
        None
    } else {
        // SAFETY: as promised by the caller.
        Some(unsafe { SharedQueue::of(attributes.srq) }?.id)
    };
    for other in [send_queue.context(), receive_queue.context()] {
        if !std::ptr::eq(other, context) {
            return Err(Errno::EINVAL);
        }
    }
    let cap = &mut attributes.cap;
    // With a shared queue there is none of its own.
    if shared.is_some() || initiator {
        (cap.max_recv_wr, cap.max_recv_sge) = (0, 0);
    }
    // Granted in `attributes` too: programs may use more than they have asked for.
    cap.max_inline_data = cap.max_inline_data.max(LEAST_INLINE);
    let init = QueuePairInit {
        send_queue: send_queue.id,
        receive_queue: receive_queue.id,
        shared,
        signal_all: attributes.sq_sig_all != 0,
        capacity: Capacity {
            sends: cap.max_send_wr,
            receives: cap.max_recv_wr,
            send_segments: cap.max_send_sge,
            receive_segments: cap.max_recv_sge,
            inline: cap.max_inline_data,
        },
        ..QueuePairInit::new(service, domain.domain, send_queue.id)
    };
    let made = context.hub.nic.with(|device, _| device.create_qp(&init));
    let number = made.map_err(errno)?;
    let base = ibv_qp {
        pd,
        send_cq: attributes.send_cq,
        recv_cq: attributes.recv_cq,
        srq: attributes.srq,
        ..target_structure(context, attributes)
    };
    Ok(publish(context, number, base, operations))
}

/// The C structure of a queue pair that has nothing of its own.
fn target_structure(context: &Context, attributes: &ibv_qp_init_attr) -> ibv_qp {
    ibv_qp {
        context: context.as_ibv(),
        qp_context: attributes.qp_context,
        pd: std::ptr::null_mut(),
        send_cq: std::ptr::null_mut(),
        recv_cq: std::ptr::null_mut(),
        srq: std::ptr::null_mut(),
        handle: handle(),
        qp_num: 0,
        state: IBV_QPS_RESET,
        qp_type: attributes.qp_type,
        mutex: libc::PTHREAD_MUTEX_INITIALIZER,
        cond: libc::PTHREAD_COND_INITIALIZER,
        events_completed: 0,
    }
}

/// Hands a queue pair that the device has made to the program.
fn publish(
    context: &Context,
    number: Qpn,
    mut base: ibv_qp,
    operations: Option<u64>,
) -> *mut ibv_qp_ex {
    context.born(Living::QueuePair(number));
    let datagrams = base.qp_type == IBV_QPT_UD;
    base.qp_num = number.as_u32();
    let qp = QueuePair {
        c: Shared::new(build::structure(base)),
        hub: Arc::clone(&context.hub),
        number,
        datagrams,
        extended: operations.is_some(),
        events: Acknowledgements::default(),
        kept: Mutex::new(Kept::default()),
        builder: Builder::default(),
    }
    .publish();
    context.hub.listeners.add_queue_pair(number, qp.cast());
    qp
}

/// `ibv_open_qp`: the receiving end of an extended connection, once more
///
/// # Safety
/// The context is open; the attributes are a structure of the caller, and what they point to is ours.
pub(crate) unsafe extern "C" fn open_qp(
    context: *mut ibv_context,
    attributes: *mut ibv_qp_open_attr,
) -> *mut ibv_qp {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let (context, attributes) = unsafe {
            (
                Context::of(context)?,
                attributes.as_ref().ok_or(Errno::EINVAL)?,
            )
        };
        let mask = attributes.comp_mask as i32;
        let needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
        if mask & needed != needed || mask & !(needed | IBV_QP_OPEN_ATTR_CONTEXT) != 0 {
            return Err(Errno::EINVAL);
        }
        if attributes.qp_type != IBV_QPT_XRC_RECV {
            return Err(Errno::EINVAL);
        }
        // SAFETY: as promised by the caller.
        let domain = unsafe { Xrcd::of(attributes.xrcd) }?.domain;
        let number = Qpn::new(attributes.qp_num);
        let opened = context.hub.nic.with(|device, _| {
            device
                .open_qp(domain, number)
                .map(|()| device.query_qp(number))
        });
        let status = opened.map_err(|_| Errno::EINVAL)?;
        let init = ibv_qp_init_attr {
            qp_context: if mask & IBV_QP_OPEN_ATTR_CONTEXT != 0 {
                attributes.qp_context
            } else {
                std::ptr::null_mut()
            },
            send_cq: std::ptr::null_mut(),
            recv_cq: std::ptr::null_mut(),
            srq: std::ptr::null_mut(),
            cap: ibv_qp_cap::default(),
            qp_type: attributes.qp_type,
            sq_sig_all: 0,
        };
        let base = ibv_qp {
            state: status.map_or(IBV_QPS_UNKNOWN, |status| state_number(status.state)),
            ..target_structure(context, &init)
        };
        Ok(publish(context, number, base, None))
    })
    .cast()
}

/// `ibv_destroy_qp`
///
/// # Safety
/// The queue pair is one of ours, and nobody will use it again unless this fails.
pub(crate) unsafe extern "C" fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let this = unsafe { QueuePair::of_qp(qp) }?;
        let (context, number) = (this.context(), this.number);
        let destroyed = this.hub.nic.with(|device, _| device.destroy_qp(number));
        destroyed.map_err(|error| match error {
            ModifyError::Unknown(_) => Errno::EINVAL,
            _ => Errno::EBUSY,
        })?;
        this.hub.listeners.remove_queue_pair(number, Some(this));
        context.died(Living::QueuePair(number));
        let pointer = Pointer(std::ptr::from_ref(this));
        context
            .events
            .forget(|waiting| waiting.element == Element::QueuePair(pointer));
        this.events.wait();
        // SAFETY: the caller gives it up, and nothing of ours leads to it any more.
        drop(unsafe { QueuePair::reclaim(qp.cast()) });
        Ok(())
    })
}
