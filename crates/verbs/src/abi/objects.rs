//! The objects that verbs make: programs read their fields, so each begins with what C expects.

use std::ffi::{c_int, c_uint, c_void};

use libc::{pthread_cond_t, pthread_mutex_t};

use super::attributes::ibv_data_buf;
use super::device::{Unused, ibv_context};
use super::work::{ibv_mw_bind_info, ibv_poll_cq_attr, ibv_sge, ibv_wc_tm_info};

/// A protection domain.
#[repr(C)]
#[derive(Debug)]
pub struct ibv_pd {
    /// The context.
    pub context: *mut ibv_context,
    /// A number.
    pub handle: u32,
}

/// A thread domain.
#[repr(C)]
#[derive(Debug)]
pub struct ibv_td {
    /// The context.
    pub context: *mut ibv_context,
}

/// A domain of extended reliable connections.
#[repr(C)]
#[derive(Debug)]
pub struct ibv_xrcd {
    /// The context.
    pub context: *mut ibv_context,
}

/// A memory region.
#[repr(C)]
#[derive(Debug)]
pub struct ibv_mr {
    /// The context.
    pub context: *mut ibv_context,
    /// The domain it belongs to.
    pub pd: *mut ibv_pd,
    /// Where it starts.
    pub addr: *mut c_void,
    /// Its length in bytes.
    pub length: usize,
    /// A number.
    pub handle: u32,
    /// The key for local use.
    pub lkey: u32,
    /// The key for peers.
    pub rkey: u32,
}

/// A memory window.
#[repr(C)]
#[derive(Debug)]
pub struct ibv_mw {
    /// The context.
    pub context: *mut ibv_context,
    /// The domain it belongs to.
    pub pd: *mut ibv_pd,
    /// The key for peers.
    pub rkey: u32,
    /// A number.
    pub handle: u32,
    /// `IBV_MW_TYPE_…`.
    pub r#type: c_int,
}

/// Memory of the device.
#[repr(C)]
#[derive(Debug)]
pub struct ibv_dm {
    /// The context.
    pub context: *mut ibv_context,
    /// Copies into it.
    pub memcpy_to_dm: Option<unsafe extern "C" fn(*mut ibv_dm, u64, *const c_void, usize) -> c_int>,
    /// Copies out of it.
    pub memcpy_from_dm: Option<unsafe extern "C" fn(*mut c_void, *mut ibv_dm, u64, usize) -> c_int>,
    /// What else is valid: `IBV_DM_MASK_…`.
    pub comp_mask: u32,
    /// A number.
    pub handle: u32,
}

/// An address handle.
#[repr(C)]
#[derive(Debug)]
pub struct ibv_ah {
    /// The context.
    pub context: *mut ibv_context,
    /// The domain it belongs to.
    pub pd: *mut ibv_pd,
    /// A number.
    pub handle: u32,
}

/// A channel of completion events.
#[repr(C)]
#[derive(Debug)]
pub struct ibv_comp_channel {
    /// The context.
    pub context: *mut ibv_context,
    /// Readable when an event waits.
    pub fd: c_int,
    /// How many completion queues use it.
    pub refcnt: c_int,
}

/// A completion queue.
#[repr(C)]
pub struct ibv_cq {
    /// The context.
    pub context: *mut ibv_context,
    /// Where its events go.
    pub channel: *mut ibv_comp_channel,
    /// The program's own.
    pub cq_context: *mut c_void,
    /// A number.
    pub handle: u32,
    /// How many entries it has.
    pub cqe: c_int,
    /// Belongs to the library.
    pub mutex: pthread_mutex_t,
    /// Belongs to the library.
    pub cond: pthread_cond_t,
    /// Completion events acknowledged.
    pub comp_events_completed: u32,
    /// Asynchronous events acknowledged.
    pub async_events_completed: u32,
}

/// A completion queue that is read entry by entry, field by field.
#[repr(C)]
pub struct ibv_cq_ex {
    /// What every completion queue has; the C structure repeats its fields.
    pub base: ibv_cq,
    /// Nothing yet.
    pub comp_mask: u32,
    /// The status of the entry at hand.
    pub status: c_int,
    /// The work request of the entry at hand.
    pub wr_id: u64,
    /// Takes the first entry.
    pub start_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex, *mut ibv_poll_cq_attr) -> c_int>,
    /// Takes the next one.
    pub next_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> c_int>,
    /// Ends the polling.
    pub end_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex)>,
    /// `IBV_WC_…`.
    pub read_opcode: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> c_int>,
    /// The vendor's own code.
    pub read_vendor_err: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    /// Bytes received.
    pub read_byte_len: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    /// Immediate data in network byte order, or the invalidated key.
    pub read_imm_data: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    /// The queue pair.
    pub read_qp_num: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    /// The sender's queue pair.
    pub read_src_qp: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    /// `IBV_WC_…` flags.
    pub read_wc_flags: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> c_uint>,
    /// The sender's local identifier.
    pub read_slid: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    /// The service level.
    pub read_sl: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u8>,
    /// Path bits.
    pub read_dlid_path_bits: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u8>,
    /// When it completed, by the device's clock.
    pub read_completion_ts: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u64>,
    /// VLAN.
    pub read_cvlan: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u16>,
    /// Flow.
    pub read_flow_tag: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u32>,
    /// Tag matching.
    pub read_tm_info: Option<unsafe extern "C" fn(*mut ibv_cq_ex, *mut ibv_wc_tm_info)>,
    /// When it completed, in nanoseconds since 1970.
    pub read_completion_wallclock_ns: Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> u64>,
}

/// A shared receive queue.
#[repr(C)]
pub struct ibv_srq {
    /// The context.
    pub context: *mut ibv_context,
    /// The program's own.
    pub srq_context: *mut c_void,
    /// The domain it belongs to.
    pub pd: *mut ibv_pd,
    /// A number.
    pub handle: u32,
    /// Belongs to the library.
    pub mutex: pthread_mutex_t,
    /// Belongs to the library.
    pub cond: pthread_cond_t,
    /// Asynchronous events acknowledged.
    pub events_completed: u32,
}

/// A queue pair.
#[repr(C)]
pub struct ibv_qp {
    /// The context.
    pub context: *mut ibv_context,
    /// The program's own.
    pub qp_context: *mut c_void,
    /// The domain it belongs to.
    pub pd: *mut ibv_pd,
    /// Where sends complete.
    pub send_cq: *mut ibv_cq,
    /// Where receives complete.
    pub recv_cq: *mut ibv_cq,
    /// Where receive requests come from.
    pub srq: *mut ibv_srq,
    /// A number.
    pub handle: u32,
    /// Its number on the wire.
    pub qp_num: u32,
    /// `IBV_QPS_…`.
    pub state: c_int,
    /// `IBV_QPT_…`.
    pub qp_type: c_int,
    /// Belongs to the library.
    pub mutex: pthread_mutex_t,
    /// Belongs to the library.
    pub cond: pthread_cond_t,
    /// Asynchronous events acknowledged.
    pub events_completed: u32,
}

/// A queue pair whose requests are built by calls.
#[repr(C)]
pub struct ibv_qp_ex {
    /// What every queue pair has.
    pub qp_base: ibv_qp,
    /// Nothing yet.
    pub comp_mask: u64,
    /// The id of the next request.
    pub wr_id: u64,
    /// The flags of the next request.
    pub wr_flags: c_uint,
    /// Compare and swap.
    pub wr_atomic_cmp_swp: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, u64, u64)>,
    /// Fetch and add.
    pub wr_atomic_fetch_add: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, u64)>,
    /// Bind a window.
    pub wr_bind_mw:
        Option<unsafe extern "C" fn(*mut ibv_qp_ex, *mut ibv_mw, u32, *const ibv_mw_bind_info)>,
    /// Invalidate a key.
    pub wr_local_inv: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32)>,
    /// Read.
    pub wr_rdma_read: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64)>,
    /// Write.
    pub wr_rdma_write: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64)>,
    /// Write with immediate data.
    pub wr_rdma_write_imm: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, u32)>,
    /// Send.
    pub wr_send: Option<unsafe extern "C" fn(*mut ibv_qp_ex)>,
    /// Send with immediate data.
    pub wr_send_imm: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32)>,
    /// Send, and invalidate a key of the peer.
    pub wr_send_inv: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32)>,
    /// Segmented packets.
    pub wr_send_tso: Option<unsafe extern "C" fn(*mut ibv_qp_ex, *mut c_void, u16, u16)>,
    /// The destination of a datagram.
    pub wr_set_ud_addr: Option<unsafe extern "C" fn(*mut ibv_qp_ex, *mut ibv_ah, u32, u32)>,
    /// The shared receive queue of an extended reliable connection.
    pub wr_set_xrc_srqn: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32)>,
    /// Data that is copied.
    pub wr_set_inline_data: Option<unsafe extern "C" fn(*mut ibv_qp_ex, *mut c_void, usize)>,
    /// Data that is copied, in pieces.
    pub wr_set_inline_data_list:
        Option<unsafe extern "C" fn(*mut ibv_qp_ex, usize, *const ibv_data_buf)>,
    /// One piece of memory.
    pub wr_set_sge: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, u32)>,
    /// Pieces of memory.
    pub wr_set_sge_list: Option<unsafe extern "C" fn(*mut ibv_qp_ex, usize, *const ibv_sge)>,
    /// Begins a list of requests.
    pub wr_start: Option<unsafe extern "C" fn(*mut ibv_qp_ex)>,
    /// Posts the list.
    pub wr_complete: Option<unsafe extern "C" fn(*mut ibv_qp_ex) -> c_int>,
    /// Forgets the list.
    pub wr_abort: Option<unsafe extern "C" fn(*mut ibv_qp_ex)>,
    /// An atomic write of 8 bytes.
    pub wr_atomic_write: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, *const c_void)>,
    /// A flush.
    pub wr_flush: Unused,
}
