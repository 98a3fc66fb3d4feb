//! The structures in which the kernel's connection manager hands attributes over, and those of paths.

use super::device::ibv_gid;

/// The kernel's form of `ibv_global_route`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_uverbs_global_route {
    /// The destination.
    pub dgid: [u8; 16],
    /// The flow label.
    pub flow_label: u32,
    /// The place of the source in the table of addresses.
    pub sgid_index: u8,
    /// The hop limit.
    pub hop_limit: u8,
    /// The traffic class.
    pub traffic_class: u8,
    /// Nothing.
    pub reserved: u8,
}

/// The kernel's form of `ibv_ah_attr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_uverbs_ah_attr {
    /// The global part.
    pub grh: ib_uverbs_global_route,
    /// The local identifier.
    pub dlid: u16,
    /// The service level.
    pub sl: u8,
    /// Path bits.
    pub src_path_bits: u8,
    /// The rate.
    pub static_rate: u8,
    /// Whether there is a global part.
    pub is_global: u8,
    /// The port.
    pub port_num: u8,
    /// Nothing.
    pub reserved: u8,
}

/// The kernel's form of `ibv_qp_attr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_uverbs_qp_attr {
    /// What is valid.
    pub qp_attr_mask: u32,
    /// The state.
    pub qp_state: u32,
    /// The state before.
    pub cur_qp_state: u32,
    /// The path's MTU.
    pub path_mtu: u32,
    /// The migration state.
    pub path_mig_state: u32,
    /// The queue key.
    pub qkey: u32,
    /// The PSN that requests arrive with.
    pub rq_psn: u32,
    /// The PSN that requests leave with.
    pub sq_psn: u32,
    /// The peer.
    pub dest_qp_num: u32,
    /// What the peer may do.
    pub qp_access_flags: u32,
    /// The path.
    pub ah_attr: ib_uverbs_ah_attr,
    /// The alternate path.
    pub alt_ah_attr: ib_uverbs_ah_attr,
    /// Send requests.
    pub max_send_wr: u32,
    /// Receive requests.
    pub max_recv_wr: u32,
    /// Pieces of memory of a send request.
    pub max_send_sge: u32,
    /// Pieces of memory of a receive request.
    pub max_recv_sge: u32,
    /// Bytes of inline data.
    pub max_inline_data: u32,
    /// The partition.
    pub pkey_index: u16,
    /// The alternate path's.
    pub alt_pkey_index: u16,
    /// Whether an event tells that the send queue has drained.
    pub en_sqd_async_notify: u8,
    /// Whether the send queue still drains.
    pub sq_draining: u8,
    /// Reads and atomics in flight to the peer.
    pub max_rd_atomic: u8,
    /// Reads and atomics in flight from the peer.
    pub max_dest_rd_atomic: u8,
    /// The timer of receiver-not-ready NAKs.
    pub min_rnr_timer: u8,
    /// The port.
    pub port_num: u8,
    /// The acknowledgement timeout.
    pub timeout: u8,
    /// Retries.
    pub retry_cnt: u8,
    /// Retries to a receiver that is not ready.
    pub rnr_retry: u8,
    /// The alternate path's.
    pub alt_port_num: u8,
    /// The alternate path's.
    pub alt_timeout: u8,
    /// Nothing.
    pub reserved: [u8; 5],
}

/// The kernel's form of a path record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_user_path_rec {
    /// The destination.
    pub dgid: [u8; 16],
    /// The source.
    pub sgid: [u8; 16],
    /// The destination's local identifier.
    pub dlid: u16,
    /// The source's.
    pub slid: u16,
    /// Whether it is raw traffic.
    pub raw_traffic: u32,
    /// The flow label.
    pub flow_label: u32,
    /// Whether it leads back too.
    pub reversible: u32,
    /// The MTU.
    pub mtu: u32,
    /// The partition.
    pub pkey: u16,
    /// The hop limit.
    pub hop_limit: u8,
    /// The traffic class.
    pub traffic_class: u8,
    /// How many paths.
    pub numb_path: u8,
    /// The service level.
    pub sl: u8,
    /// What the MTU means.
    pub mtu_selector: u8,
    /// What the rate means.
    pub rate_selector: u8,
    /// The rate.
    pub rate: u8,
    /// What the lifetime means.
    pub packet_life_time_selector: u8,
    /// The lifetime.
    pub packet_life_time: u8,
    /// The order of preference.
    pub preference: u8,
}

/// A path record as programs see it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_sa_path_rec {
    /// The destination.
    pub dgid: ibv_gid,
    /// The source.
    pub sgid: ibv_gid,
    /// The destination's local identifier.
    pub dlid: u16,
    /// The source's.
    pub slid: u16,
    /// Whether it is raw traffic.
    pub raw_traffic: i32,
    /// The flow label.
    pub flow_label: u32,
    /// The hop limit.
    pub hop_limit: u8,
    /// The traffic class.
    pub traffic_class: u8,
    /// Whether it leads back too.
    pub reversible: i32,
    /// How many paths.
    pub numb_path: u8,
    /// The partition.
    pub pkey: u16,
    /// The service level.
    pub sl: u8,
    /// What the MTU means.
    pub mtu_selector: u8,
    /// The MTU.
    pub mtu: u8,
    /// What the rate means.
    pub rate_selector: u8,
    /// The rate.
    pub rate: u8,
    /// What the lifetime means.
    pub packet_life_time_selector: u8,
    /// The lifetime.
    pub packet_life_time: u8,
    /// The order of preference.
    pub preference: u8,
}
