//! Structures that came from the kernel, rewritten for programs: `librdmacm` asks for it.
#![allow(unsafe_code, reason = "the structures are the caller's")]

use std::ffi::c_int;

use crate::abi::*;
use crate::errno::quiet;

fn address(from: &ib_uverbs_ah_attr) -> ibv_ah_attr {
    ibv_ah_attr {
        grh: ibv_global_route {
            dgid: ibv_gid { raw: from.grh.dgid },
            flow_label: from.grh.flow_label,
            sgid_index: from.grh.sgid_index,
            hop_limit: from.grh.hop_limit,
            traffic_class: from.grh.traffic_class,
        },
        dlid: from.dlid,
        sl: from.sl,
        src_path_bits: from.src_path_bits,
        static_rate: from.static_rate,
        is_global: from.is_global,
        port_num: from.port_num,
    }
}

fn attributes(from: &ib_uverbs_qp_attr) -> ibv_qp_attr {
    ibv_qp_attr {
        qp_state: from.qp_state as c_int,
        cur_qp_state: from.cur_qp_state as c_int,
        path_mtu: from.path_mtu as c_int,
        path_mig_state: from.path_mig_state as c_int,
        qkey: from.qkey,
        rq_psn: from.rq_psn,
        sq_psn: from.sq_psn,
        dest_qp_num: from.dest_qp_num,
        qp_access_flags: from.qp_access_flags,
        cap: ibv_qp_cap {
            max_send_wr: from.max_send_wr,
            max_recv_wr: from.max_recv_wr,
            max_send_sge: from.max_send_sge,
            max_recv_sge: from.max_recv_sge,
            max_inline_data: from.max_inline_data,
        },
        ah_attr: address(&from.ah_attr),
        alt_ah_attr: address(&from.alt_ah_attr),
        pkey_index: from.pkey_index,
        alt_pkey_index: from.alt_pkey_index,
        en_sqd_async_notify: from.en_sqd_async_notify,
        sq_draining: from.sq_draining,
        max_rd_atomic: from.max_rd_atomic,
        max_dest_rd_atomic: from.max_dest_rd_atomic,
        min_rnr_timer: from.min_rnr_timer,
        port_num: from.port_num,
        timeout: from.timeout,
        retry_cnt: from.retry_cnt,
        rnr_retry: from.rnr_retry,
        alt_port_num: from.alt_port_num,
        alt_timeout: from.alt_timeout,
        rate_limit: 0,
    }
}

fn path(from: &ib_user_path_rec) -> ibv_sa_path_rec {
    ibv_sa_path_rec {
        dgid: ibv_gid { raw: from.dgid },
        sgid: ibv_gid { raw: from.sgid },
        dlid: from.dlid,
        slid: from.slid,
        raw_traffic: from.raw_traffic as c_int,
        flow_label: from.flow_label,
        hop_limit: from.hop_limit,
        traffic_class: from.traffic_class,
        reversible: from.reversible as c_int,
        numb_path: from.numb_path,
        pkey: from.pkey,
        sl: from.sl,
        mtu_selector: from.mtu_selector,
        mtu: from.mtu as u8,
        rate_selector: from.rate_selector,
        rate: from.rate,
        packet_life_time_selector: from.packet_life_time_selector,
        packet_life_time: from.packet_life_time,
        preference: from.preference,
    }
}

fn path_back(from: &ibv_sa_path_rec) -> ib_user_path_rec {
    ib_user_path_rec {
        dgid: from.dgid.raw,
        sgid: from.sgid.raw,
        dlid: from.dlid,
        slid: from.slid,
        raw_traffic: from.raw_traffic as u32,
        flow_label: from.flow_label,
        reversible: from.reversible as u32,
        mtu: u32::from(from.mtu),
        pkey: from.pkey,
        hop_limit: from.hop_limit,
        traffic_class: from.traffic_class,
        numb_path: from.numb_path,
        sl: from.sl,
        mtu_selector: from.mtu_selector,
        rate_selector: from.rate_selector,
        rate: from.rate,
        packet_life_time_selector: from.packet_life_time_selector,
        packet_life_time: from.packet_life_time,
        preference: from.preference,
    }
}

/// Rewrites one structure into another; nothing happens where a pointer is null.
///
/// # Safety
/// `from` and `to` are null, or point to structures of the caller; `to` may be uninitialised.
unsafe fn rewrite<F, T>(to: *mut T, from: *const F, with: impl FnOnce(&F) -> T) {
    quiet(|| {
        if !to.is_null() && !from.is_null() {
            // SAFETY: both are the caller's structures; `write` does not look at what was there.
            unsafe { to.write(with(&*from)) };
        }
    });
}

/// `ibv_copy_ah_attr_from_kern`
///
/// # Safety
/// The pointers are those of structures, or null.
pub(crate) unsafe extern "C" fn copy_ah_attr_from_kern(
    to: *mut ibv_ah_attr,
    from: *const ib_uverbs_ah_attr,
) {
    // SAFETY: as promised by the caller.
    unsafe { rewrite(to, from, address) };
}

/// `ibv_copy_qp_attr_from_kern`
///
/// # Safety
/// The pointers are those of structures, or null.
pub(crate) unsafe extern "C" fn copy_qp_attr_from_kern(
    to: *mut ibv_qp_attr,
    from: *const ib_uverbs_qp_attr,
) {
    // SAFETY: as promised by the caller.
    unsafe { rewrite(to, from, attributes) };
}

/// `ibv_copy_path_rec_from_kern`
///
/// # Safety
/// The pointers are those of structures, or null.
pub(crate) unsafe extern "C" fn copy_path_rec_from_kern(
    to: *mut ibv_sa_path_rec,
    from: *const ib_user_path_rec,
) {
    // SAFETY: as promised by the caller.
    unsafe { rewrite(to, from, path) };
}

/// `ibv_copy_path_rec_to_kern`
///
/// # Safety
/// The pointers are those of structures, or null.
pub(crate) unsafe extern "C" fn copy_path_rec_to_kern(
    to: *mut ib_user_path_rec,
    from: *const ibv_sa_path_rec,
) {
    // SAFETY: as promised by the caller.
    unsafe { rewrite(to, from, path_back) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_both_ways() {
        let kernel = ib_user_path_rec {
            dgid: [1; 16],
            sgid: [2; 16],
            dlid: 3,
            slid: 4,
            raw_traffic: 5,
            flow_label: 6,
            reversible: 1,
            mtu: 5,
            pkey: 0xffff,
            hop_limit: 64,
            traffic_class: 7,
            numb_path: 8,
            sl: 9,
            mtu_selector: 2,
            rate_selector: 2,
            rate: 3,
            packet_life_time_selector: 2,
            packet_life_time: 14,
            preference: 1,
        };
        let mut program = ibv_sa_path_rec::default();
        let mut back = ib_user_path_rec::default();
        // SAFETY: all are structures of this test.
        unsafe {
            copy_path_rec_from_kern(&raw mut program, &raw const kernel);
            copy_path_rec_to_kern(&raw mut back, &raw const program);
            copy_path_rec_to_kern(std::ptr::null_mut(), &raw const program);
        }
        assert_eq!(
            (program.mtu, program.packet_life_time, program.rate),
            (5, 14, 3)
        );
        assert_eq!(format!("{kernel:?}"), format!("{back:?}"));
    }

    #[test]
    fn attributes_arrive_in_their_fields() {
        let mut kernel = ib_uverbs_qp_attr {
            qp_state: 2,
            path_mtu: 3,
            rq_psn: 4,
            dest_qp_num: 5,
            max_inline_data: 6,
            min_rnr_timer: 7,
            alt_timeout: 8,
            ..Default::default()
        };
        kernel.ah_attr.grh.dgid[15] = 9;
        kernel.ah_attr.port_num = 1;
        kernel.alt_ah_attr.sl = 10;
        let mut program = ibv_qp_attr::default();
        // SAFETY: both are structures of this test.
        unsafe { copy_qp_attr_from_kern(&raw mut program, &raw const kernel) };
        assert_eq!(
            (
                program.qp_state,
                program.path_mtu,
                program.rq_psn,
                program.dest_qp_num
            ),
            (2, 3, 4, 5)
        );
        assert_eq!(
            (
                program.cap.max_inline_data,
                program.min_rnr_timer,
                program.alt_timeout
            ),
            (6, 7, 8)
        );
        assert_eq!(
            (
                program.ah_attr.grh.dgid.raw[15],
                program.ah_attr.port_num,
                program.alt_ah_attr.sl
            ),
            (9, 1, 10)
        );
    }
}
