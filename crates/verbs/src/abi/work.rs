//! Work requests and completions.

use std::ffi::{c_int, c_uint, c_void};

use super::objects::{ibv_ah, ibv_mr, ibv_mw};

/// A piece of local memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_sge {
    /// The first byte.
    pub addr: u64,
    /// How many bytes.
    pub length: u32,
    /// The key.
    pub lkey: u32,
}

/// What a window is bound to.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_mw_bind_info {
    /// The region.
    pub mr: *mut ibv_mr,
    /// The first byte, in the region's addresses.
    pub addr: u64,
    /// How many bytes; none unbinds.
    pub length: u64,
    /// What peers may do.
    pub mw_access_flags: c_uint,
}

/// A binding of a window of type 1.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_mw_bind {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// `IBV_SEND_…`.
    pub send_flags: c_uint,
    /// What it is bound to.
    pub bind_info: ibv_mw_bind_info,
}

/// Remote memory of a write or read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_wr_rdma {
    /// The first byte.
    pub remote_addr: u64,
    /// The key.
    pub rkey: u32,
}

/// Remote memory and operands of an atomic.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_wr_atomic {
    /// The 8 bytes.
    pub remote_addr: u64,
    /// What they are compared with, or the summand.
    pub compare_add: u64,
    /// What they become.
    pub swap: u64,
    /// The key.
    pub rkey: u32,
}

/// Where a datagram goes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_wr_ud {
    /// The address.
    pub ah: *mut ibv_ah,
    /// The receiving queue pair.
    pub remote_qpn: u32,
    /// Its queue key.
    pub remote_qkey: u32,
}

/// What a request needs besides local memory: one of three.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_wr_target {
    /// Writes and reads.
    pub rdma: ibv_wr_rdma,
    /// Atomics.
    pub atomic: ibv_wr_atomic,
    /// Datagrams.
    pub ud: ibv_wr_ud,
}

/// A binding of a window.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_wr_bind_mw {
    /// The window.
    pub mw: *mut ibv_mw,
    /// Its new key.
    pub rkey: u32,
    /// What it is bound to.
    pub bind_info: ibv_mw_bind_info,
}

/// Segmentation of raw packets.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_wr_tso {
    /// The header.
    pub hdr: *mut c_void,
    /// Its length.
    pub hdr_sz: u16,
    /// The longest segment.
    pub mss: u16,
}

/// What rare requests need.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_wr_rare {
    /// A binding.
    pub bind_mw: ibv_wr_bind_mw,
    /// Segmentation.
    pub tso: ibv_wr_tso,
}

/// A request for a send queue.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_send_wr {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// The next of the list.
    pub next: *mut ibv_send_wr,
    /// Local memory.
    pub sg_list: *mut ibv_sge,
    /// How many pieces.
    pub num_sge: c_int,
    /// `IBV_WR_…`.
    pub opcode: c_int,
    /// `IBV_SEND_…`.
    pub send_flags: c_uint,
    /// Immediate data in network byte order, or the key to invalidate.
    pub imm_data: u32,
    /// The target.
    pub wr: ibv_wr_target,
    /// The shared receive queue of an extended reliable connection.
    pub remote_srqn: u32,
    /// The rest.
    pub rare: ibv_wr_rare,
}

/// A request for a receive queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_recv_wr {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// The next of the list.
    pub next: *mut ibv_recv_wr,
    /// Local memory.
    pub sg_list: *mut ibv_sge,
    /// How many pieces.
    pub num_sge: c_int,
}

/// A completion.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_wc {
    /// The work request.
    pub wr_id: u64,
    /// `IBV_WC_…` status.
    pub status: c_int,
    /// `IBV_WC_…` operation.
    pub opcode: c_int,
    /// The vendor's own code.
    pub vendor_err: u32,
    /// Bytes received.
    pub byte_len: u32,
    /// Immediate data in network byte order, or the invalidated key.
    pub imm_data: u32,
    /// The queue pair.
    pub qp_num: u32,
    /// The sender's queue pair.
    pub src_qp: u32,
    /// `IBV_WC_…` flags.
    pub wc_flags: c_uint,
    /// The partition.
    pub pkey_index: u16,
    /// The sender's local identifier.
    pub slid: u16,
    /// The service level.
    pub sl: u8,
    /// Path bits.
    pub dlid_path_bits: u8,
}

/// How `start_poll` polls.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_poll_cq_attr {
    /// Nothing yet.
    pub comp_mask: u32,
}

/// Tag matching.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_wc_tm_info {
    /// The tag.
    pub tag: u64,
    /// The program's own.
    pub r#priv: u32,
}

/// The header before the payload of a datagram.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_grh {
    /// Version, traffic class and flow label, in network byte order.
    pub version_tclass_flow: u32,
    /// The payload's length.
    pub paylen: u16,
    /// What follows.
    pub next_hdr: u8,
    /// The hop limit.
    pub hop_limit: u8,
    /// The sender.
    pub sgid: super::device::ibv_gid,
    /// The receiver.
    pub dgid: super::device::ibv_gid,
}

/// An asynchronous event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_async_event {
    /// The object, or the number of the port.
    pub element: *mut c_void,
    /// `IBV_EVENT_…`.
    pub event_type: c_int,
}
