//! What a queue pair is set to.

use std::ffi::c_int;

use softfabric_transport::{Migration, QueuePairStatus};

use super::QueuePair;
use super::modify::state_number;
use crate::abi::*;
use crate::device;
use crate::errno::{Errno, number};
use crate::object::{Object, lock};

/// Everything that can be asked for.
fn attributes(qp: &QueuePair, status: &QueuePairStatus) -> ibv_qp_attr {
    let kept = *lock(&qp.kept);
    let settings = &status.settings;
    // On a link inside the host packets are longer than any MTU that the interface has a number for.
    let path_mtu = if kept.path_mtu != 0 {
        kept.path_mtu
    } else {
        device::mtu(settings.mtu.as_u32())
    };
    ibv_qp_attr {
        qp_state: state_number(status.state),
        cur_qp_state: state_number(status.state),
        path_mtu,
        path_mig_state: match settings.migration {
            Migration::Migrated => IBV_MIG_MIGRATED,
            Migration::Rearm => IBV_MIG_REARM,
            Migration::Armed => IBV_MIG_ARMED,
        },
        qkey: settings.qkey,
        rq_psn: status.receive_psn.as_u32(),
        sq_psn: status.send_psn.as_u32(),
        dest_qp_num: settings.destination.as_u32(),
        qp_access_flags: kept.access,
        cap: capacity(status),
        ah_attr: kept.ah_attr,
        alt_ah_attr: kept.alt_ah_attr,
        pkey_index: 0,
        alt_pkey_index: 0,
        en_sqd_async_notify: u8::from(settings.drain_notify),
        sq_draining: u8::from(status.draining),
        max_rd_atomic: settings.max_reads,
        max_dest_rd_atomic: settings.max_peer_reads,
        min_rnr_timer: settings.min_rnr_timer.code(),
        port_num: kept.port_num,
        timeout: settings.timeout.code(),
        retry_cnt: settings.retry_count,
        rnr_retry: settings.rnr_retry.count(),
        alt_port_num: kept.alt_port_num,
        alt_timeout: kept.alt_timeout,
        rate_limit: kept.rate_limit,
    }
}

fn capacity(status: &QueuePairStatus) -> ibv_qp_cap {
    ibv_qp_cap {
        max_send_wr: status.capacity.sends,
        max_recv_wr: status.capacity.receives,
        max_send_sge: status.capacity.send_segments,
        max_recv_sge: status.capacity.receive_segments,
        max_inline_data: status.capacity.inline,
    }
}

/// `ibv_query_qp`: more is told than asked for, as the interface allows
///
/// # Safety
/// The queue pair is one of ours; the others are structures of the caller.
pub(crate) unsafe extern "C" fn query_qp(
    qp: *mut ibv_qp,
    into: *mut ibv_qp_attr,
    _mask: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let this = unsafe { QueuePair::of_qp(qp) }?;
        if into.is_null() {
            return Err(Errno::EINVAL);
        }
        let status = this
            .hub
            .nic
            .with(|device, _| device.query_qp(this.number))
            .ok_or(Errno::EINVAL)?;
        // SAFETY: the caller's structures; what was in them does not matter. The queue pair's own fields are only read.
        unsafe {
            into.write(attributes(this, &status));
            (&raw mut (*qp).state).write(state_number(status.state));
            if !init.is_null() {
                init.write(ibv_qp_init_attr {
                    qp_context: (*qp).qp_context,
                    send_cq: (*qp).send_cq,
                    recv_cq: (*qp).recv_cq,
                    srq: (*qp).srq,
                    cap: capacity(&status),
                    qp_type: (*qp).qp_type,
                    sq_sig_all: c_int::from(status.signal_all),
                });
            }
        }
        Ok(())
    })
}

/// `ibv_query_qp_data_in_order`: the last byte is not promised to arrive last
///
/// # Safety
/// The queue pair is one of ours.
pub(crate) unsafe extern "C" fn query_qp_data_in_order(
    _qp: *mut ibv_qp,
    _operation: c_int,
    _flags: u32,
) -> c_int {
    0
}

/// `ibv_qp_to_qp_ex`: only of a queue pair that was made for it
///
/// # Safety
/// The queue pair is one of ours.
pub(crate) unsafe extern "C" fn qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    // SAFETY: as promised by the caller.
    match unsafe { QueuePair::of(qp.cast()) } {
        Ok(this) if this.extended => qp.cast(),
        _ => std::ptr::null_mut(),
    }
}

/// `ibv_set_ece`: there are no options; a peer that asks for none gets none
///
/// # Safety
/// `ece` is a structure of the caller.
pub(crate) unsafe extern "C" fn set_ece(qp: *mut ibv_qp, ece: *mut ibv_ece) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let (_, ece) = unsafe { (QueuePair::of_qp(qp)?, ece.as_ref().ok_or(Errno::EINVAL)?) };
        if ece.comp_mask != 0 {
            return Err(Errno::EINVAL);
        }
        if ece.vendor_id == 0 {
            Ok(())
        } else {
            Err(Errno::EOPNOTSUPP)
        }
    })
}

/// `ibv_query_ece`: there are no options, and whoever manages connections has to know it: `librdmacm` refuses options of
/// no vendor
///
/// # Safety
/// `ece` is a structure of the caller.
pub(crate) unsafe extern "C" fn query_ece(qp: *mut ibv_qp, ece: *mut ibv_ece) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        unsafe { QueuePair::of_qp(qp) }?;
        if ece.is_null() {
            return Err(Errno::EINVAL);
        }
        Err(Errno::EOPNOTSUPP)
    })
}
