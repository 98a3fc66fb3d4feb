//! Every structure's size and every field's offset, as the Rust compiler laid them out.

use super::*;

/// How one structure lies in memory.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The C name of the structure, with its keyword.
    pub structure: &'static str,
    /// Its size in bytes.
    pub size: usize,
    /// The C name and the offset of each field.
    pub fields: &'static [(&'static str, usize)],
}

/// One structure; a field is written `c_name` or, where C and Rust differ, `c_name: rust.path`.
macro_rules! structure {
    ($kind:literal $name:ident { $($field:ident $(: $($path:ident).+)?,)* }) => {
        Layout {
            structure: concat!($kind, " ", stringify!($name)),
            size: size_of::<$name>(),
            fields: &[$((stringify!($field), structure!(@offset $name $field $($($path).+)?)),)*],
        }
    };
    (@offset $name:ident $field:ident) => { std::mem::offset_of!($name, $field) };
    (@offset $name:ident $field:ident $($path:ident).+) => { std::mem::offset_of!($name, $($path).+) };
}

const LAYOUTS: &[Layout] = &[
    structure!("union" ibv_gid { raw, }),
    structure!("struct" ibv_gid_entry { gid, gid_index, port_num, gid_type, ndev_ifindex, }),
    structure!("struct" _ibv_device_ops { _dummy1, _dummy2, }),
    structure!("struct" ibv_device { _ops, node_type, transport_type, name, dev_name, dev_path, ibdev_path, }),
    structure!("struct" ibv_context_ops { _compat_query_device, _compat_query_port, _compat_alloc_pd, _compat_dealloc_pd, _compat_reg_mr, _compat_rereg_mr, _compat_dereg_mr, alloc_mw, bind_mw, dealloc_mw, _compat_create_cq, poll_cq, req_notify_cq, _compat_cq_event, _compat_resize_cq, _compat_destroy_cq, _compat_create_srq, _compat_modify_srq, _compat_query_srq, _compat_destroy_srq, post_srq_recv, _compat_create_qp, _compat_query_qp, _compat_modify_qp, _compat_destroy_qp, post_send, post_recv, _compat_create_ah, _compat_destroy_ah, _compat_attach_mcast, _compat_detach_mcast, _compat_async_event, }),
    structure!("struct" ibv_context { device, ops, cmd_fd, async_fd, num_comp_vectors, mutex, abi_compat, }),
    structure!("struct" verbs_context { free_buf, alloc_buf, dm_export_dmabuf_fd, reg_mr_ex, dealloc_dmah, alloc_dmah, query_port, advise_mr, alloc_null_mr, read_counters, attach_counters_point_flow, create_counters, destroy_counters, reg_dm_mr, alloc_dm, free_dm, modify_flow_action_esp, destroy_flow_action, create_flow_action_esp, modify_qp_rate_limit, alloc_parent_domain, dealloc_td, alloc_td, modify_cq, post_srq_ops, destroy_rwq_ind_table, create_rwq_ind_table, destroy_wq, modify_wq, create_wq, query_rt_values, create_cq_ex, r#priv, query_device_ex, ibv_destroy_flow, ABI_placeholder2, ibv_create_flow, ABI_placeholder1, open_qp, create_qp_ex, get_srq_num, create_srq_ex, open_xrcd, close_xrcd, _ABI_placeholder3, sz, context, }),
    structure!("struct" ibv_values_ex { comp_mask, raw_clock, }),
    structure!("struct" ibv_pd { context, handle, }),
    structure!("struct" ibv_td { context, }),
    structure!("struct" ibv_xrcd { context, }),
    structure!("struct" ibv_mr { context, pd, addr, length, handle, lkey, rkey, }),
    structure!("struct" ibv_mw { context, pd, rkey, handle, r#type, }),
    structure!("struct" ibv_dm { context, memcpy_to_dm, memcpy_from_dm, comp_mask, handle, }),
    structure!("struct" ibv_ah { context, pd, handle, }),
    structure!("struct" ibv_comp_channel { context, fd, refcnt, }),
    structure!("struct" ibv_cq { context, channel, cq_context, handle, cqe, mutex, cond, comp_events_completed, async_events_completed, }),
    structure!("struct" ibv_cq_ex { context: base.context, channel: base.channel, cq_context: base.cq_context, handle: base.handle, cqe: base.cqe, mutex: base.mutex, cond: base.cond, comp_events_completed: base.comp_events_completed, async_events_completed: base.async_events_completed, comp_mask, status, wr_id, start_poll, next_poll, end_poll, read_opcode, read_vendor_err, read_byte_len, read_imm_data, read_qp_num, read_src_qp, read_wc_flags, read_slid, read_sl, read_dlid_path_bits, read_completion_ts, read_cvlan, read_flow_tag, read_tm_info, read_completion_wallclock_ns, }),
    structure!("struct" ibv_srq { context, srq_context, pd, handle, mutex, cond, events_completed, }),
    structure!("struct" ibv_qp { context, qp_context, pd, send_cq, recv_cq, srq, handle, qp_num, state, qp_type, mutex, cond, events_completed, }),
    structure!("struct" ibv_qp_ex { qp_base, comp_mask, wr_id, wr_flags, wr_atomic_cmp_swp, wr_atomic_fetch_add, wr_bind_mw, wr_local_inv, wr_rdma_read, wr_rdma_write, wr_rdma_write_imm, wr_send, wr_send_imm, wr_send_inv, wr_send_tso, wr_set_ud_addr, wr_set_xrc_srqn, wr_set_inline_data, wr_set_inline_data_list, wr_set_sge, wr_set_sge_list, wr_start, wr_complete, wr_abort, wr_atomic_write, wr_flush, }),
    structure!("struct" ibv_flow_attr { comp_mask, r#type, size, priority, num_of_specs, port, flags, }),
    structure!("struct" ibv_flow { comp_mask, context, handle, }),
    structure!("struct" ibv_sge { addr, length, lkey, }),
    structure!("struct" ibv_mw_bind_info { mr, addr, length, mw_access_flags, }),
    structure!("struct" ibv_mw_bind { wr_id, send_flags, bind_info, }),
    structure!("struct" ibv_send_wr { wr_id, next, sg_list, num_sge, opcode, send_flags, imm_data, wr, qp_type: remote_srqn, bind_mw: rare, tso: rare, }),
    structure!("struct" ibv_recv_wr { wr_id, next, sg_list, num_sge, }),
    structure!("struct" ibv_wc { wr_id, status, opcode, vendor_err, byte_len, imm_data, qp_num, src_qp, wc_flags, pkey_index, slid, sl, dlid_path_bits, }),
    structure!("struct" ibv_poll_cq_attr { comp_mask, }),
    structure!("struct" ibv_wc_tm_info { tag, r#priv, }),
    structure!("struct" ibv_grh { version_tclass_flow, paylen, next_hdr, hop_limit, sgid, dgid, }),
    structure!("struct" ibv_async_event { element, event_type, }),
    structure!("struct" ibv_device_attr { fw_ver, node_guid, sys_image_guid, max_mr_size, page_size_cap, vendor_id, vendor_part_id, hw_ver, max_qp, max_qp_wr, device_cap_flags, max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom, max_qp_init_rd_atom, max_ee_init_rd_atom, atomic_cap, max_ee, max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethy_qp, max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach, max_ah, max_fmr, max_map_per_fmr, max_srq, max_srq_wr, max_srq_sge, max_pkeys, local_ca_ack_delay, phys_port_cnt, }),
    structure!("struct" ibv_query_device_ex_input { comp_mask, }),
    structure!("struct" ibv_odp_caps { general_caps, per_transport_caps: rc_odp_caps, }),
    structure!("struct" ibv_tso_caps { max_tso, supported_qpts, }),
    structure!("struct" ibv_rss_caps { supported_qpts, max_rwq_indirection_tables, max_rwq_indirection_table_size, rx_hash_fields_mask, rx_hash_function, }),
    structure!("struct" ibv_packet_pacing_caps { qp_rate_limit_min, qp_rate_limit_max, supported_qpts, }),
    structure!("struct" ibv_tm_caps { max_rndv_hdr_size, max_num_tags, flags, max_ops, max_sge, }),
    structure!("struct" ibv_cq_moderation_caps { max_cq_count, max_cq_period, }),
    structure!("struct" ibv_pci_atomic_caps { fetch_add, swap, compare_swap, }),
    structure!("struct" ibv_device_attr_ex { orig_attr, comp_mask, odp_caps, completion_timestamp_mask, hca_core_clock, device_cap_flags_ex, tso_caps, rss_caps, max_wq_type_rq, packet_pacing_caps, raw_packet_caps, tm_caps, cq_mod_caps, max_dm_size, pci_atomic_caps, xrc_odp_caps, phys_port_cnt_ex, }),
    structure!("struct" ibv_port_attr { state, max_mtu, active_mtu, gid_tbl_len, port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr, pkey_tbl_len, lid, sm_lid, lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed, phys_state, link_layer, flags, port_cap_flags2, active_speed_ex, }),
    structure!("struct" ibv_global_route { dgid, flow_label, sgid_index, hop_limit, traffic_class, }),
    structure!("struct" ibv_ah_attr { grh, dlid, sl, src_path_bits, static_rate, is_global, port_num, }),
    structure!("struct" ibv_srq_attr { max_wr, max_sge, srq_limit, }),
    structure!("struct" ibv_srq_init_attr { srq_context, attr, }),
    structure!("struct" ibv_tm_cap { max_num_tags, max_ops, }),
    structure!("struct" ibv_srq_init_attr_ex { srq_context, attr, comp_mask, srq_type, pd, xrcd, cq, tm_cap, }),
    structure!("struct" ibv_qp_cap { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data, }),
    structure!("struct" ibv_qp_init_attr { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all, }),
    structure!("struct" ibv_rx_hash_conf { rx_hash_function, rx_hash_key_len, rx_hash_key, rx_hash_fields_mask, }),
    structure!("struct" ibv_qp_init_attr_ex { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all, comp_mask, pd, xrcd, create_flags, max_tso_header, rwq_ind_tbl, rx_hash_conf, source_qpn, send_ops_flags, }),
    structure!("struct" ibv_qp_open_attr { comp_mask, qp_num, xrcd, qp_context, qp_type, }),
    structure!("struct" ibv_qp_attr { qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags, cap, ah_attr, alt_ah_attr, pkey_index, alt_pkey_index, en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout, rate_limit, }),
    structure!("struct" ibv_qp_rate_limit_attr { rate_limit, max_burst_sz, typical_pkt_sz, comp_mask, }),
    structure!("struct" ibv_cq_init_attr_ex { cqe, cq_context, channel, comp_vector, wc_flags, comp_mask, flags, parent_domain, }),
    structure!("struct" ibv_moderate_cq { cq_count, cq_period, }),
    structure!("struct" ibv_modify_cq_attr { attr_mask, moderate, }),
    structure!("struct" ibv_parent_domain_init_attr { pd, td, comp_mask, alloc, free, pd_context, }),
    structure!("struct" ibv_td_init_attr { comp_mask, }),
    structure!("struct" ibv_xrcd_init_attr { comp_mask, fd, oflags, }),
    structure!("struct" ibv_alloc_dm_attr { length, log_align_req, comp_mask, }),
    structure!("struct" ibv_data_buf { addr, length, }),
    structure!("struct" ibv_ece { vendor_id, options, comp_mask, }),
    structure!("struct" ib_uverbs_global_route { dgid, flow_label, sgid_index, hop_limit, traffic_class, reserved, }),
    structure!("struct" ib_uverbs_ah_attr { grh, dlid, sl, src_path_bits, static_rate, is_global, port_num, reserved, }),
    structure!("struct" ib_uverbs_qp_attr { qp_attr_mask, qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags, ah_attr, alt_ah_attr, max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data, pkey_index, alt_pkey_index, en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout, reserved, }),
    structure!("struct" ib_user_path_rec { dgid, sgid, dlid, slid, raw_traffic, flow_label, reversible, mtu, pkey, hop_limit, traffic_class, numb_path, sl, mtu_selector, rate_selector, rate, packet_life_time_selector, packet_life_time, preference, }),
    structure!("struct" ibv_sa_path_rec { dgid, sgid, dlid, slid, raw_traffic, flow_label, hop_limit, traffic_class, reversible, numb_path, pkey, sl, mtu_selector, mtu, rate_selector, rate, packet_life_time_selector, packet_life_time, preference, }),
];

/// The layout of every structure that programs share with the library.
pub const fn layouts() -> &'static [Layout] {
    LAYOUTS
}
