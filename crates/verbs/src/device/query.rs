//! What a device and its port are.
#![allow(unsafe_code, reason = "the program's structures are filled")]

use std::ffi::{c_int, c_void};

use softfabric_adapter::{DeviceInfo, GidEntry};
use softfabric_transport::Limits;
use softfabric_units::PartitionKey;

use super::list::text;
use crate::abi::*;
use crate::address;
use crate::context::Context;
use crate::errno::{Errno, minus_one, number};
use crate::memory;

/// The only port.
const PORT: u32 = 1;
/// The least length of a port's table of addresses: empty entries are zero, as with real devices.
const GID_TABLE: usize = 16;
/// The length of the part of a port's attributes that the oldest programs have room for.
const OLD_PORT_ATTRIBUTES: usize = 48;
/// No vendor (what Linux's software devices say too).
const VENDOR: u32 = 0xff_ffff;

/// The length of the table of addresses.
fn table_length(gids: &[GidEntry]) -> usize {
    gids.len().max(GID_TABLE)
}

fn guid(info: &DeviceInfo) -> u64 {
    u64::from_ne_bytes(info.guid)
}

fn most(count: u32) -> c_int {
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

fn attributes(context: &Context) -> ibv_device_attr {
    let info = context.hub.nic.info();
    let limits: Limits = context.hub.nic.with(|device, _| device.config().limits);
    ibv_device_attr {
        fw_ver: text(concat!("softfabric ", env!("CARGO_PKG_VERSION"))),
        node_guid: guid(info),
        sys_image_guid: guid(info),
        max_mr_size: u64::MAX,
        page_size_cap: 0xffff_f000,
        vendor_id: VENDOR,
        vendor_part_id: 0,
        hw_ver: 0,
        max_qp: most(limits.queue_pairs),
        max_qp_wr: most(limits.work_requests),
        device_cap_flags: (IBV_DEVICE_BAD_PKEY_CNTR
            | IBV_DEVICE_BAD_QKEY_CNTR
            | IBV_DEVICE_CURR_QP_STATE_MOD
            | IBV_DEVICE_PORT_ACTIVE_EVENT
            | IBV_DEVICE_SYS_IMAGE_GUID
            | IBV_DEVICE_RC_RNR_NAK_GEN
            | IBV_DEVICE_SRQ_RESIZE
            | IBV_DEVICE_MEM_WINDOW
            | IBV_DEVICE_MEM_WINDOW_TYPE_2B
            | IBV_DEVICE_XRC) as u32,
        max_sge: most(limits.segments),
        max_sge_rd: most(limits.segments),
        max_cq: 1 << 20,
        max_cqe: most(limits.completions),
        max_mr: 1 << 23,
        max_pd: 1 << 20,
        max_qp_rd_atom: c_int::from(limits.reads),
        max_ee_rd_atom: 0,
        max_res_rd_atom: most(limits.queue_pairs.saturating_mul(u32::from(limits.reads))),
        max_qp_init_rd_atom: c_int::from(limits.reads),
        max_ee_init_rd_atom: 0,
        // Atomic among everything that the adapter does, not towards the processor's plain writes.
        atomic_cap: IBV_ATOMIC_HCA,
        max_ee: 0,
        max_rdd: 0,
        max_mw: 1 << 23,
        max_raw_ipv6_qp: 0,
        max_raw_ethy_qp: 0,
        max_mcast_grp: 8192,
        max_mcast_qp_attach: 56,
        max_total_mcast_qp_attach: 8192 * 56,
        max_ah: 1 << 20,
        max_fmr: 0,
        max_map_per_fmr: 0,
        max_srq: 1 << 20,
        max_srq_wr: most(limits.work_requests),
        max_srq_sge: most(limits.segments),
        max_pkeys: 1,
        local_ca_ack_delay: 15,
        phys_port_cnt: 1,
    }
}

fn attributes_ex(context: &Context) -> ibv_device_attr_ex {
    let orig_attr = attributes(context);
    let rc = IBV_ODP_SUPPORT_SEND
        | IBV_ODP_SUPPORT_RECV
        | IBV_ODP_SUPPORT_WRITE
        | IBV_ODP_SUPPORT_READ
        | IBV_ODP_SUPPORT_ATOMIC
        | IBV_ODP_SUPPORT_SRQ_RECV;
    let uc = IBV_ODP_SUPPORT_SEND
        | IBV_ODP_SUPPORT_RECV
        | IBV_ODP_SUPPORT_WRITE
        | IBV_ODP_SUPPORT_SRQ_RECV;
    let ud = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
    ibv_device_attr_ex {
        orig_attr,
        comp_mask: 0,
        odp_caps: ibv_odp_caps {
            general_caps: (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT) as u64,
            rc_odp_caps: rc as u32,
            uc_odp_caps: uc as u32,
            ud_odp_caps: ud as u32,
        },
        // Times are nanoseconds of the monotonic clock.
        completion_timestamp_mask: u64::MAX,
        hca_core_clock: 1_000_000,
        device_cap_flags_ex: u64::from(orig_attr.device_cap_flags),
        tso_caps: ibv_tso_caps::default(),
        rss_caps: ibv_rss_caps::default(),
        max_wq_type_rq: 0,
        packet_pacing_caps: ibv_packet_pacing_caps::default(),
        raw_packet_caps: 0,
        tm_caps: ibv_tm_caps::default(),
        cq_mod_caps: ibv_cq_moderation_caps::default(),
        max_dm_size: memory::DEVICE_MEMORY as u64,
        pci_atomic_caps: ibv_pci_atomic_caps::default(),
        xrc_odp_caps: rc as u32,
        phys_port_cnt_ex: 1,
    }
}

fn port(context: &Context, port: u32) -> Result<ibv_port_attr, Errno> {
    if port != PORT {
        return Err(Errno::EINVAL);
    }
    let info = context.hub.nic.info();
    Ok(ibv_port_attr {
        state: IBV_PORT_ACTIVE,
        max_mtu: IBV_MTU_4096,
        active_mtu: mtu(info.mtu.as_u32()),
        gid_tbl_len: table_length(&info.gids) as c_int,
        port_cap_flags: (IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS) as u32,
        max_msg_sz: 1 << 31,
        pkey_tbl_len: 1,
        lid: address::local_identifier(info),
        max_vl_num: 1,
        // Four lanes of 25 Gb/s.
        active_width: 2,
        active_speed: 32,
        // The link is up.
        phys_state: 5,
        link_layer: IBV_LINK_LAYER_ETHERNET as u8,
        // Every path needs its global part.
        flags: 1,
        ..Default::default()
    })
}

/// The code of the largest MTU that is not above `bytes`.
pub(crate) fn mtu(bytes: u32) -> c_int {
    match bytes {
        4096.. => IBV_MTU_4096,
        2048.. => IBV_MTU_2048,
        1024.. => IBV_MTU_1024,
        512.. => IBV_MTU_512,
        _ => IBV_MTU_256,
    }
}

/// Writes as much of a structure as the program has room for.
///
/// # Safety
/// `into` has room for `room` bytes.
unsafe fn fill<T>(into: *mut c_void, room: usize, value: &T) {
    let length = room.min(size_of::<T>());
    // SAFETY: both have that many bytes, and do not overlap.
    unsafe {
        std::ptr::write_bytes(into.cast::<u8>(), 0, room);
        std::ptr::copy_nonoverlapping(
            std::ptr::from_ref(value).cast::<u8>(),
            into.cast::<u8>(),
            length,
        );
    }
}

/// `ibv_query_device`
///
/// # Safety
/// The context is open, and the attributes are a structure of the caller.
pub(crate) unsafe extern "C" fn query_device(
    context: *mut ibv_context,
    into: *mut ibv_device_attr,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let context = unsafe { Context::of(context) }?;
        if into.is_null() {
            return Err(Errno::EINVAL);
        }
        // SAFETY: the caller's structure.
        unsafe { into.write(attributes(context)) };
        Ok(())
    })
}

/// `ibv_query_device_ex`
///
/// # Safety
/// The context is open, and `into` has `room` bytes.
pub(crate) unsafe extern "C" fn query_device_ex(
    context: *mut ibv_context,
    input: *const ibv_query_device_ex_input,
    into: *mut ibv_device_attr_ex,
    room: usize,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let (context, input) = unsafe { (Context::of(context)?, input.as_ref()) };
        if into.is_null()
            || input.is_some_and(|input| input.comp_mask != 0)
            || room < size_of::<ibv_device_attr>()
        {
            return Err(Errno::EINVAL);
        }
        // SAFETY: as promised by the caller.
        unsafe { fill(into.cast(), room, &attributes_ex(context)) };
        Ok(())
    })
}

/// `ibv_query_port` as a symbol: for programs that have room for the oldest attributes only
///
/// # Safety
/// The context is open, and `into` has 48 bytes.
pub(crate) unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    number: u8,
    into: *mut c_void,
) -> c_int {
    // SAFETY: as promised by the caller; no more is written than it has room for.
    unsafe { query_port_ex(context, number, into.cast(), OLD_PORT_ATTRIBUTES) }
}

/// `ibv_query_port` as everybody calls it today
///
/// # Safety
/// The context is open, and `into` has `room` bytes.
pub(crate) unsafe extern "C" fn query_port_ex(
    context: *mut ibv_context,
    port_number: u8,
    into: *mut ibv_port_attr,
    room: usize,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let context = unsafe { Context::of(context) }?;
        if into.is_null() || room < OLD_PORT_ATTRIBUTES {
            return Err(Errno::EINVAL);
        }
        let found = port(context, u32::from(port_number))?;
        // SAFETY: as promised by the caller.
        unsafe { fill(into.cast(), room, &found) };
        Ok(())
    })
}

/// `ibv_query_gid`
///
/// # Safety
/// The context is open, and `gid` is a structure of the caller.
pub(crate) unsafe extern "C" fn query_gid(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    gid: *mut ibv_gid,
) -> c_int {
    minus_one(|| {
        // SAFETY: as promised by the caller.
        let context = unsafe { Context::of(context) }?;
        let gids = context.hub.nic.gids();
        let index = usize::try_from(index).map_err(|_| Errno::ENOENT)?;
        if gid.is_null() || u32::from(port) != PORT || index >= table_length(gids) {
            return Err(Errno::ENOENT);
        }
        let raw = gids.get(index).map_or([0; 16], |entry| entry.gid.0);
        // SAFETY: the caller's structure, which need not be aligned for its larger half.
        unsafe { gid.cast::<[u8; 16]>().write(raw) };
        Ok(0)
    })
}

fn entry(context: &Context, entry: &GidEntry) -> ibv_gid_entry {
    ibv_gid_entry {
        gid: ibv_gid { raw: entry.gid.0 },
        gid_index: entry.index as u32,
        port_num: PORT,
        gid_type: IBV_GID_TYPE_ROCE_V2 as u32,
        ndev_ifindex: context.hub.nic.info().interface,
    }
}

/// `ibv_query_gid_ex`
///
/// # Safety
/// The context is open, and `into` has `room` bytes.
pub(crate) unsafe extern "C" fn query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    index: u32,
    into: *mut ibv_gid_entry,
    flags: u32,
    room: usize,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let context = unsafe { Context::of(context) }?;
        let gids = context.hub.nic.gids();
        if into.is_null() || port != PORT || flags != 0 || index as usize >= table_length(gids) {
            return Err(Errno::EINVAL);
        }
        let found = gids.get(index as usize).ok_or(Errno::ENODATA)?;
        // SAFETY: as promised by the caller.
        unsafe { fill(into.cast(), room, &entry(context, found)) };
        Ok(())
    })
}

/// `ibv_query_gid_table`: how many entries were written, or the negative of an error
///
/// # Safety
/// The context is open, and `into` has `most` entries of `room` bytes.
pub(crate) unsafe extern "C" fn query_gid_table(
    context: *mut ibv_context,
    into: *mut ibv_gid_entry,
    most: usize,
    flags: u32,
    room: usize,
) -> isize {
    let mut count = 0;
    let error = number(|| {
        // SAFETY: as promised by the caller.
        let context = unsafe { Context::of(context) }?;
        let gids = context.hub.nic.gids();
        if flags != 0 || gids.len() > most || (into.is_null() && !gids.is_empty()) {
            return Err(Errno::EINVAL);
        }
        for (place, found) in gids.iter().enumerate() {
            // SAFETY: there are `most` places of `room` bytes, and no more GIDs than that.
            unsafe {
                let at = into.cast::<u8>().add(place * room);
                fill(at.cast(), room, &entry(context, found));
            }
        }
        count = gids.len();
        Ok(())
    });
    if error == 0 {
        count as isize
    } else {
        -(error as isize)
    }
}

/// `ibv_query_gid_type`, in the two kinds that sysfs once told: InfiniBand and RoCE v1 alike are 0, RoCE v2 is 1
///
/// # Safety
/// The context is open, and `kind` is a number of the caller.
pub(crate) unsafe extern "C" fn query_gid_type(
    context: *mut ibv_context,
    port: u8,
    index: u32,
    kind: *mut c_int,
) -> c_int {
    minus_one(|| {
        // SAFETY: as promised by the caller.
        let (context, kind) =
            unsafe { (Context::of(context)?, kind.as_mut().ok_or(Errno::EINVAL)?) };
        if u32::from(port) != PORT {
            return Err(Errno::EINVAL);
        }
        *kind = c_int::from(context.hub.nic.gids().get(index as usize).is_some());
        Ok(0)
    })
}

/// `ibv_query_pkey`, in network byte order
///
/// # Safety
/// The context is open, and `key` is a number of the caller.
pub(crate) unsafe extern "C" fn query_pkey(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    key: *mut u16,
) -> c_int {
    minus_one(|| {
        // SAFETY: as promised by the caller.
        let (_, key) = unsafe { (Context::of(context)?, key.as_mut().ok_or(Errno::EINVAL)?) };
        if u32::from(port) != PORT || index != 0 {
            return Err(Errno::EINVAL);
        }
        *key = PartitionKey::DEFAULT.0.to_be();
        Ok(0)
    })
}

/// `ibv_get_pkey_index`
///
/// # Safety
/// The context is open.
pub(crate) unsafe extern "C" fn get_pkey_index(
    context: *mut ibv_context,
    port: u8,
    key: u16,
) -> c_int {
    minus_one(|| {
        // SAFETY: as promised by the caller.
        unsafe { Context::of(context) }?;
        if u32::from(port) != PORT || u16::from_be(key) != PartitionKey::DEFAULT.0 {
            return Err(Errno::EINVAL);
        }
        Ok(0)
    })
}

/// Nanoseconds of the monotonic clock: the device's own clock, as far as programs see.
pub(crate) fn clock() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970.
pub(crate) fn wall_clock() -> u64 {
    nanoseconds(libc::CLOCK_REALTIME)
}

fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a structure of our own is filled.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// `ibv_query_rt_values_ex`
///
/// # Safety
/// The context is open, and `values` is a structure of the caller.
pub(crate) unsafe extern "C" fn query_rt_values(
    context: *mut ibv_context,
    values: *mut ibv_values_ex,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let (_, values) = unsafe { (Context::of(context)?, values.as_mut().ok_or(Errno::EINVAL)?) };
        if values.comp_mask & !(IBV_VALUES_MASK_RAW_CLOCK as u32) != 0 {
            return Err(Errno::EINVAL);
        }
        if values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK as u32 != 0 {
            // The clock's ticks, whole, where drivers put them.
            values.raw_clock = libc::timespec {
                tv_sec: 0,
                tv_nsec: clock() as i64,
            };
        }
        Ok(())
    })
}
