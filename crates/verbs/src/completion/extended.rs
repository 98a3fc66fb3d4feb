//! Extended completion queues: entries are read one at a time, and only the fields that the program wants.
//!
//! ```text
//! start_poll ─► entry ─► read_… ─► next_poll ─► entry ─► read_… ─► … ─► end_poll
//! └──────────────────────── the queue's polling lock ──────────────────────────┘
//! ```
#![allow(unsafe_code, reason = "the program's pointers are followed")]

use std::ffi::{c_int, c_uint};

use lock_api::RawMutex as _;

use super::queue::{CompletionQueue, Current, Wish};
use super::translate;
use crate::abi::*;
use crate::context::Context;
use crate::device;
use crate::domain::ProtectionDomain;
use crate::errno::{Errno, number, pointer, quiet};
use crate::object::Object;

/// What can be asked for. VLANs, flows and tags are always zero.
const FIELDS: i32 = IBV_WC_EX_WITH_BYTE_LEN
    | IBV_WC_EX_WITH_IMM
    | IBV_WC_EX_WITH_QP_NUM
    | IBV_WC_EX_WITH_SRC_QP
    | IBV_WC_EX_WITH_SLID
    | IBV_WC_EX_WITH_SL
    | IBV_WC_EX_WITH_DLID_PATH_BITS
    | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
    | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

/// `ibv_create_cq_ex`
///
/// # Safety
/// The context is open; the attributes are a structure of the caller, and what they point to is ours.
pub(crate) unsafe extern "C" fn create_cq_ex(
    context: *mut ibv_context,
    attributes: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let (context, attributes) = unsafe {
            (
                Context::of(context)?,
                attributes.as_ref().ok_or(Errno::EINVAL)?,
            )
        };
        let known = (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) as u32;
        if attributes.comp_mask & !known != 0 {
            return Err(Errno::EINVAL);
        }
        if attributes.wc_flags & !(FIELDS as u64) != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let flags = if attributes.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS as u32 != 0 {
            attributes.flags as i32
        } else {
            0
        };
        // A queue that may overrun without an error would have to lose completions.
        if flags & !IBV_CREATE_CQ_ATTR_SINGLE_THREADED != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        if attributes.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD as u32 != 0 {
            // SAFETY: the program passes a domain of ours.
            unsafe { ProtectionDomain::of(attributes.parent_domain) }?;
        }
        let wish = Wish {
            entries: attributes.cqe,
            cq_context: attributes.cq_context,
            channel: attributes.channel,
            vector: attributes.comp_vector,
            single_threaded: flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED != 0,
        };
        // SAFETY: as promised by the caller.
        unsafe { CompletionQueue::create(context, &wish) }
    })
}

/// The C structure with its functions.
pub(super) fn structure(base: ibv_cq) -> ibv_cq_ex {
    ibv_cq_ex {
        base,
        comp_mask: 0,
        status: 0,
        wr_id: 0,
        start_poll: Some(start_poll),
        next_poll: Some(next_poll),
        end_poll: Some(end_poll),
        read_opcode: Some(read_opcode),
        read_vendor_err: Some(read_zero),
        read_byte_len: Some(read_byte_len),
        read_imm_data: Some(read_imm_data),
        read_qp_num: Some(read_qp_num),
        read_src_qp: Some(read_src_qp),
        read_wc_flags: Some(read_wc_flags),
        read_slid: Some(read_zero),
        read_sl: Some(read_sl),
        read_dlid_path_bits: Some(read_zero_byte),
        read_completion_ts: Some(read_completion_ts),
        read_cvlan: None,
        read_flow_tag: None,
        read_tm_info: None,
        read_completion_wallclock_ns: Some(read_completion_wallclock_ns),
    }
}

/// Takes the next entry; `ENOENT` where there is none.
fn take(queue: &CompletionQueue) -> Result<(), Errno> {
    let mut taken = None;
    queue.poll(1, |completion| taken = Some(completion));
    let completion = taken.ok_or(Errno::ENOENT)?;
    // SAFETY: the polling lock is held, or the program has promised to be alone.
    unsafe {
        *queue.current.get() = Current {
            completion: Some(completion),
            time: device::clock(),
            wall_time: device::wall_clock(),
        };
        let c = queue.c.get();
        (&raw mut (*c).status).write(translate::status(completion.status));
        (&raw mut (*c).wr_id).write(completion.id);
    }
    Ok(())
}

unsafe extern "C" fn start_poll(cq: *mut ibv_cq_ex, attributes: *mut ibv_poll_cq_attr) -> c_int {
    number(|| {
        // SAFETY: the program passes a queue of ours, and a structure or null.
        let (queue, attributes) = unsafe { (CompletionQueue::of(cq)?, attributes.as_ref()) };
        if attributes.is_some_and(|attributes| attributes.comp_mask != 0) {
            return Err(Errno::EINVAL);
        }
        if let Some(polling) = &queue.polling {
            polling.lock();
        }
        take(queue).inspect_err(|_| {
            if let Some(polling) = &queue.polling {
                // SAFETY: it was locked above; without an entry the program does not call `end_poll`.
                unsafe { polling.unlock() };
            }
        })
    })
}

unsafe extern "C" fn next_poll(cq: *mut ibv_cq_ex) -> c_int {
    // SAFETY: the program passes a queue of ours, between `start_poll` and `end_poll`.
    number(|| take(unsafe { CompletionQueue::of(cq) }?))
}

unsafe extern "C" fn end_poll(cq: *mut ibv_cq_ex) {
    quiet(|| {
        // SAFETY: the program passes a queue of ours, after a `start_poll` that gave an entry.
        if let Ok(queue) = unsafe { CompletionQueue::of(cq) }
            && let Some(polling) = &queue.polling
            && polling.is_locked()
        {
            // SAFETY: it was locked by `start_poll`.
            unsafe { polling.unlock() };
        }
    });
}

/// Reads from the entry at hand; the default without one.
fn current<T: Default>(cq: *mut ibv_cq_ex, read: impl FnOnce(&Current) -> Option<T>) -> T {
    // SAFETY: the program passes a queue of ours, between `start_poll` and `end_poll`, which exclude each other.
    let current = unsafe { CompletionQueue::of(cq).map(|queue| &*queue.current.get()) };
    current.ok().and_then(read).unwrap_or_default()
}

unsafe extern "C" fn read_opcode(cq: *mut ibv_cq_ex) -> c_int {
    current(cq, |entry| {
        entry
            .completion
            .map(|completion| translate::opcode(completion.operation))
    })
}

unsafe extern "C" fn read_byte_len(cq: *mut ibv_cq_ex) -> u32 {
    current(cq, |entry| {
        entry.completion.map(|completion| completion.length)
    })
}

unsafe extern "C" fn read_imm_data(cq: *mut ibv_cq_ex) -> u32 {
    current(cq, |entry| {
        entry
            .completion
            .map(|completion| translate::attachment(completion.attachment))
    })
}

unsafe extern "C" fn read_qp_num(cq: *mut ibv_cq_ex) -> u32 {
    current(cq, |entry| {
        entry.completion.map(|completion| completion.qp.as_u32())
    })
}

unsafe extern "C" fn read_src_qp(cq: *mut ibv_cq_ex) -> u32 {
    current(cq, |entry| {
        entry
            .completion
            .map(|completion| completion.source.as_u32())
    })
}

unsafe extern "C" fn read_wc_flags(cq: *mut ibv_cq_ex) -> c_uint {
    current(cq, |entry| {
        entry
            .completion
            .map(|completion| translate::flags(&completion))
    })
}

unsafe extern "C" fn read_sl(cq: *mut ibv_cq_ex) -> u8 {
    current(cq, |entry| {
        entry
            .completion
            .map(|completion| translate::service_level(&completion))
    })
}

unsafe extern "C" fn read_completion_ts(cq: *mut ibv_cq_ex) -> u64 {
    current(cq, |entry| Some(entry.time))
}

unsafe extern "C" fn read_completion_wallclock_ns(cq: *mut ibv_cq_ex) -> u64 {
    current(cq, |entry| Some(entry.wall_time))
}

unsafe extern "C" fn read_zero(_: *mut ibv_cq_ex) -> u32 {
    0
}

unsafe extern "C" fn read_zero_byte(_: *mut ibv_cq_ex) -> u8 {
    0
}
