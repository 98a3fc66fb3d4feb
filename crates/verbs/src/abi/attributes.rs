//! What objects are made with, and what is told about them.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::device::ibv_gid;
use super::objects::{ibv_comp_channel, ibv_cq, ibv_pd, ibv_srq, ibv_td, ibv_xrcd};

/// What a device is and can do.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_device_attr {
    /// The firmware's version.
    pub fw_ver: [c_char; 64],
    /// The device's identifier, in network byte order.
    pub node_guid: u64,
    /// The system's identifier, in network byte order.
    pub sys_image_guid: u64,
    /// The longest region, in bytes.
    pub max_mr_size: u64,
    /// The sizes of pages, a bit each.
    pub page_size_cap: u64,
    /// The vendor.
    pub vendor_id: u32,
    /// The vendor's own number.
    pub vendor_part_id: u32,
    /// The hardware's version.
    pub hw_ver: u32,
    /// Queue pairs.
    pub max_qp: c_int,
    /// Work requests of a queue.
    pub max_qp_wr: c_int,
    /// `IBV_DEVICE_…`.
    pub device_cap_flags: c_uint,
    /// Pieces of memory of a request.
    pub max_sge: c_int,
    /// Pieces of memory of a read.
    pub max_sge_rd: c_int,
    /// Completion queues.
    pub max_cq: c_int,
    /// Entries of a completion queue.
    pub max_cqe: c_int,
    /// Regions.
    pub max_mr: c_int,
    /// Domains.
    pub max_pd: c_int,
    /// Reads and atomics that peers may have in flight to a queue pair.
    pub max_qp_rd_atom: c_int,
    /// Of the days of reliable datagrams.
    pub max_ee_rd_atom: c_int,
    /// Reads and atomics that peers may have in flight to the device.
    pub max_res_rd_atom: c_int,
    /// Reads and atomics that a queue pair may have in flight.
    pub max_qp_init_rd_atom: c_int,
    /// Of the days of reliable datagrams.
    pub max_ee_init_rd_atom: c_int,
    /// `IBV_ATOMIC_…`.
    pub atomic_cap: c_int,
    /// Of the days of reliable datagrams.
    pub max_ee: c_int,
    /// Of the days of reliable datagrams.
    pub max_rdd: c_int,
    /// Windows.
    pub max_mw: c_int,
    /// Raw queue pairs.
    pub max_raw_ipv6_qp: c_int,
    /// Raw queue pairs.
    pub max_raw_ethy_qp: c_int,
    /// Multicast groups.
    pub max_mcast_grp: c_int,
    /// Queue pairs of a group.
    pub max_mcast_qp_attach: c_int,
    /// Memberships.
    pub max_total_mcast_qp_attach: c_int,
    /// Address handles.
    pub max_ah: c_int,
    /// Obsolete.
    pub max_fmr: c_int,
    /// Obsolete.
    pub max_map_per_fmr: c_int,
    /// Shared receive queues.
    pub max_srq: c_int,
    /// Requests of a shared receive queue.
    pub max_srq_wr: c_int,
    /// Pieces of memory of such a request.
    pub max_srq_sge: c_int,
    /// Partitions.
    pub max_pkeys: u16,
    /// How long an acknowledgement may be delayed here.
    pub local_ca_ack_delay: u8,
    /// Ports.
    pub phys_port_cnt: u8,
}

/// Nothing yet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_query_device_ex_input {
    /// Nothing yet.
    pub comp_mask: u32,
}

/// Paging on demand.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_odp_caps {
    /// `IBV_ODP_SUPPORT…`.
    pub general_caps: u64,
    /// Operations of reliable connections.
    pub rc_odp_caps: u32,
    /// Operations of unreliable connections.
    pub uc_odp_caps: u32,
    /// Operations of datagrams.
    pub ud_odp_caps: u32,
}

/// Segmentation.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_tso_caps {
    /// The longest.
    pub max_tso: u32,
    /// For which queue pairs.
    pub supported_qpts: u32,
}

/// Receive-side scaling.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_rss_caps {
    /// For which queue pairs.
    pub supported_qpts: u32,
    /// Tables.
    pub max_rwq_indirection_tables: u32,
    /// Entries of a table.
    pub max_rwq_indirection_table_size: u32,
    /// Fields.
    pub rx_hash_fields_mask: u64,
    /// Functions.
    pub rx_hash_function: u8,
}

/// Pacing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_packet_pacing_caps {
    /// The least rate.
    pub qp_rate_limit_min: u32,
    /// The greatest.
    pub qp_rate_limit_max: u32,
    /// For which queue pairs.
    pub supported_qpts: u32,
}

/// Tag matching.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_tm_caps {
    /// The longest header.
    pub max_rndv_hdr_size: u32,
    /// Tags.
    pub max_num_tags: u32,
    /// Flags.
    pub flags: u32,
    /// Operations.
    pub max_ops: u32,
    /// Pieces of memory.
    pub max_sge: u32,
}

/// Moderation of completion events.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_cq_moderation_caps {
    /// The most completions.
    pub max_cq_count: u16,
    /// The longest wait, in microseconds.
    pub max_cq_period: u16,
}

/// Atomics over the bus.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_pci_atomic_caps {
    /// Sizes.
    pub fetch_add: u16,
    /// Sizes.
    pub swap: u16,
    /// Sizes.
    pub compare_swap: u16,
}

/// What a device is and can do, with what was added later.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_device_attr_ex {
    /// What there was from the start.
    pub orig_attr: ibv_device_attr,
    /// Nothing yet.
    pub comp_mask: u32,
    /// Paging on demand.
    pub odp_caps: ibv_odp_caps,
    /// The bits of a completion's time that count.
    pub completion_timestamp_mask: u64,
    /// The device's clock in kHz.
    pub hca_core_clock: u64,
    /// The flags of before, in 64 bits.
    pub device_cap_flags_ex: u64,
    /// Segmentation.
    pub tso_caps: ibv_tso_caps,
    /// Receive-side scaling.
    pub rss_caps: ibv_rss_caps,
    /// Work queues.
    pub max_wq_type_rq: u32,
    /// Pacing.
    pub packet_pacing_caps: ibv_packet_pacing_caps,
    /// Raw packets.
    pub raw_packet_caps: u32,
    /// Tag matching.
    pub tm_caps: ibv_tm_caps,
    /// Moderation.
    pub cq_mod_caps: ibv_cq_moderation_caps,
    /// Memory of the device, in bytes.
    pub max_dm_size: u64,
    /// Atomics over the bus.
    pub pci_atomic_caps: ibv_pci_atomic_caps,
    /// Paging on demand for extended reliable connections.
    pub xrc_odp_caps: u32,
    /// Ports.
    pub phys_port_cnt_ex: u32,
}

/// How a port is. Old programs have room for the first 48 bytes only.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_port_attr {
    /// `IBV_PORT_…`.
    pub state: c_int,
    /// `IBV_MTU_…`.
    pub max_mtu: c_int,
    /// `IBV_MTU_…`.
    pub active_mtu: c_int,
    /// Entries of the table of addresses.
    pub gid_tbl_len: c_int,
    /// `IBV_PORT_…`.
    pub port_cap_flags: u32,
    /// The longest message, in bytes.
    pub max_msg_sz: u32,
    /// Packets with a wrong partition.
    pub bad_pkey_cntr: u32,
    /// Datagrams with a wrong queue key.
    pub qkey_viol_cntr: u32,
    /// Entries of the table of partitions.
    pub pkey_tbl_len: u16,
    /// The local identifier.
    pub lid: u16,
    /// The subnet manager's.
    pub sm_lid: u16,
    /// The mask of local identifiers.
    pub lmc: u8,
    /// Virtual lanes.
    pub max_vl_num: u8,
    /// The subnet manager's service level.
    pub sm_sl: u8,
    /// The subnet's timeout.
    pub subnet_timeout: u8,
    /// How the subnet manager initialised it.
    pub init_type_reply: u8,
    /// Lanes of the link, coded.
    pub active_width: u8,
    /// Speed of a lane, coded.
    pub active_speed: u8,
    /// Physical state.
    pub phys_state: u8,
    /// `IBV_LINK_LAYER_…`.
    pub link_layer: u8,
    /// Flags.
    pub flags: u8,
    /// More flags.
    pub port_cap_flags2: u16,
    /// Speed of a lane where the older field is too small.
    pub active_speed_ex: u32,
}

/// The global part of an address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_global_route {
    /// The destination.
    pub dgid: ibv_gid,
    /// The flow label.
    pub flow_label: u32,
    /// The place of the source in the table of addresses.
    pub sgid_index: u8,
    /// The hop limit.
    pub hop_limit: u8,
    /// The traffic class.
    pub traffic_class: u8,
}

/// An address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_ah_attr {
    /// The global part.
    pub grh: ibv_global_route,
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
}

/// What a shared receive queue is set to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_srq_attr {
    /// Requests.
    pub max_wr: u32,
    /// Pieces of memory of a request.
    pub max_sge: u32,
    /// When the limit event is due.
    pub srq_limit: u32,
}

/// A shared receive queue to make.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_srq_init_attr {
    /// The program's own.
    pub srq_context: *mut c_void,
    /// Its size.
    pub attr: ibv_srq_attr,
}

/// Tag matching.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_tm_cap {
    /// Tags.
    pub max_num_tags: u32,
    /// Operations.
    pub max_ops: u32,
}

/// A shared receive queue to make, with what was added later.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_srq_init_attr_ex {
    /// The program's own.
    pub srq_context: *mut c_void,
    /// Its size.
    pub attr: ibv_srq_attr,
    /// What is valid: `IBV_SRQ_INIT_ATTR_…`.
    pub comp_mask: u32,
    /// `IBV_SRQT_…`.
    pub srq_type: c_int,
    /// The domain.
    pub pd: *mut ibv_pd,
    /// The domain of extended reliable connections.
    pub xrcd: *mut ibv_xrcd,
    /// Where its requests complete.
    pub cq: *mut ibv_cq,
    /// Tag matching.
    pub tm_cap: ibv_tm_cap,
}

/// How much a queue pair holds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_qp_cap {
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
}

/// A queue pair to make.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_qp_init_attr {
    /// The program's own.
    pub qp_context: *mut c_void,
    /// Where sends complete.
    pub send_cq: *mut ibv_cq,
    /// Where receives complete.
    pub recv_cq: *mut ibv_cq,
    /// Where receive requests come from.
    pub srq: *mut ibv_srq,
    /// Its size.
    pub cap: ibv_qp_cap,
    /// `IBV_QPT_…`.
    pub qp_type: c_int,
    /// Whether every send makes a completion.
    pub sq_sig_all: c_int,
}

/// Receive-side scaling.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_rx_hash_conf {
    /// The function.
    pub rx_hash_function: u8,
    /// The length of the key.
    pub rx_hash_key_len: u8,
    /// The key.
    pub rx_hash_key: *mut u8,
    /// Fields.
    pub rx_hash_fields_mask: u64,
}

/// A queue pair to make, with what was added later.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_qp_init_attr_ex {
    /// The program's own.
    pub qp_context: *mut c_void,
    /// Where sends complete.
    pub send_cq: *mut ibv_cq,
    /// Where receives complete.
    pub recv_cq: *mut ibv_cq,
    /// Where receive requests come from.
    pub srq: *mut ibv_srq,
    /// Its size.
    pub cap: ibv_qp_cap,
    /// `IBV_QPT_…`.
    pub qp_type: c_int,
    /// Whether every send makes a completion.
    pub sq_sig_all: c_int,
    /// What is valid: `IBV_QP_INIT_ATTR_…`.
    pub comp_mask: u32,
    /// The domain.
    pub pd: *mut ibv_pd,
    /// The domain of extended reliable connections.
    pub xrcd: *mut ibv_xrcd,
    /// `IBV_QP_CREATE_…`.
    pub create_flags: u32,
    /// Segmentation.
    pub max_tso_header: u16,
    /// Receive-side scaling.
    pub rwq_ind_tbl: *mut c_void,
    /// Receive-side scaling.
    pub rx_hash_conf: ibv_rx_hash_conf,
    /// A number to send from.
    pub source_qpn: u32,
    /// Which requests are built by calls: `IBV_QP_EX_WITH_…`.
    pub send_ops_flags: u64,
}

/// A shared queue pair to open.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_qp_open_attr {
    /// What is valid: `IBV_QP_OPEN_ATTR_…`.
    pub comp_mask: u32,
    /// Its number.
    pub qp_num: u32,
    /// The domain.
    pub xrcd: *mut ibv_xrcd,
    /// The program's own.
    pub qp_context: *mut c_void,
    /// `IBV_QPT_…`.
    pub qp_type: c_int,
}

/// What a queue pair is set to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_qp_attr {
    /// `IBV_QPS_…`.
    pub qp_state: c_int,
    /// The state that the program believes in.
    pub cur_qp_state: c_int,
    /// `IBV_MTU_…`.
    pub path_mtu: c_int,
    /// `IBV_MIG_…`.
    pub path_mig_state: c_int,
    /// The queue key.
    pub qkey: u32,
    /// The PSN that requests arrive with.
    pub rq_psn: u32,
    /// The PSN that requests leave with.
    pub sq_psn: u32,
    /// The peer.
    pub dest_qp_num: u32,
    /// What the peer may do: `IBV_ACCESS_…`.
    pub qp_access_flags: c_uint,
    /// Its size.
    pub cap: ibv_qp_cap,
    /// The path.
    pub ah_attr: ibv_ah_attr,
    /// The alternate path.
    pub alt_ah_attr: ibv_ah_attr,
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
    /// In kb/s.
    pub rate_limit: u32,
}

/// A limit of rate.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_qp_rate_limit_attr {
    /// In kb/s.
    pub rate_limit: u32,
    /// The longest burst, in bytes.
    pub max_burst_sz: u32,
    /// The usual packet, in bytes.
    pub typical_pkt_sz: u16,
    /// Nothing yet.
    pub comp_mask: u32,
}

/// A completion queue to make.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_cq_init_attr_ex {
    /// Entries.
    pub cqe: u32,
    /// The program's own.
    pub cq_context: *mut c_void,
    /// Where its events go.
    pub channel: *mut ibv_comp_channel,
    /// The vector.
    pub comp_vector: u32,
    /// What will be read: `IBV_WC_EX_WITH_…`.
    pub wc_flags: u64,
    /// What is valid: `IBV_CQ_INIT_ATTR_MASK_…`.
    pub comp_mask: u32,
    /// `IBV_CREATE_CQ_ATTR_…`.
    pub flags: u32,
    /// The domain whose allocators are used.
    pub parent_domain: *mut ibv_pd,
}

/// Moderation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_moderate_cq {
    /// Completions.
    pub cq_count: u16,
    /// Microseconds.
    pub cq_period: u16,
}

/// A change of a completion queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_modify_cq_attr {
    /// What is valid: `IBV_CQ_ATTR_…`.
    pub attr_mask: u32,
    /// Moderation.
    pub moderate: ibv_moderate_cq,
}

/// A parent domain to make.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_parent_domain_init_attr {
    /// The domain.
    pub pd: *mut ibv_pd,
    /// The thread domain.
    pub td: *mut ibv_td,
    /// What is valid: `IBV_PARENT_DOMAIN_INIT_ATTR_…`.
    pub comp_mask: u32,
    /// The program's allocator.
    pub alloc:
        Option<unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, usize, u64) -> *mut c_void>,
    /// Its counterpart.
    pub free: Option<unsafe extern "C" fn(*mut ibv_pd, *mut c_void, *mut c_void, u64)>,
    /// The program's own.
    pub pd_context: *mut c_void,
}

/// A thread domain to make.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_td_init_attr {
    /// Nothing yet.
    pub comp_mask: u32,
}

/// A domain of extended reliable connections to open.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_xrcd_init_attr {
    /// What is valid: `IBV_XRCD_INIT_ATTR_…`.
    pub comp_mask: u32,
    /// A file that stands for it, or −1.
    pub fd: c_int,
    /// `O_CREAT`, `O_EXCL`.
    pub oflags: c_int,
}

/// Memory of the device to allocate.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_alloc_dm_attr {
    /// Bytes.
    pub length: usize,
    /// The alignment's logarithm.
    pub log_align_req: u32,
    /// Nothing yet.
    pub comp_mask: u32,
}

/// A piece of memory without key.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_data_buf {
    /// The first byte.
    pub addr: *mut c_void,
    /// How many bytes.
    pub length: usize,
}

/// Options of a connection that both ends have to know.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_ece {
    /// The vendor.
    pub vendor_id: u32,
    /// The vendor's options.
    pub options: u32,
    /// Nothing yet.
    pub comp_mask: u32,
}
