//! The library's symbols, each with the version that programs were linked against.
//!
//! ```text
//! ibv_alloc_pd@@IBVERBS_1.1 ──► trampoline (one jump, in assembly) ──► domain::alloc_pd (extern "C", private)
//! ibv_alloc_pd@IBVERBS_1.0  ──► trampoline ──────────────────────────► compat::refuse_pointer
//! ```
//!
//! How a symbol gets its version is in [`softfabric_cabi`]. Two files beside the tests list what must come out.
#![allow(unsafe_code, reason = "versioned symbols are made in assembly")]

mod compat;
mod private;

use softfabric_cabi::versioned_exports as exports;

use crate::refuse::{refuse_negative, refuse_quietly, unsupported, unsupported_pointer};
use crate::{
    address, completion, context, device, domain, event, kernel, memory, queue_pair, rate,
    shared_queue, text,
};

exports! {
    "IBVERBS_1.0" "@@" {
        ibv_copy_path_rec_from_kern => kernel::copy_path_rec_from_kern,
        ibv_copy_path_rec_to_kern => kernel::copy_path_rec_to_kern,
        ibv_copy_qp_attr_from_kern => kernel::copy_qp_attr_from_kern,
        ibv_create_comp_channel => completion::create_comp_channel,
        ibv_destroy_comp_channel => completion::destroy_comp_channel,
        ibv_get_sysfs_path => device::get_sysfs_path,
        ibv_rate_to_mult => rate::rate_to_mult,
        ibv_read_sysfs_file => device::read_sysfs_file,
        mult_to_ibv_rate => rate::mult_to_rate,
    }
    "IBVERBS_1.1" "@@" {
        ibv_ack_async_event => event::ack_async_event,
        ibv_ack_cq_events => completion::ack_cq_events,
        ibv_alloc_pd => domain::alloc_pd,
        ibv_attach_mcast => queue_pair::attach_mcast,
        ibv_close_device => context::close_device,
        ibv_copy_ah_attr_from_kern => kernel::copy_ah_attr_from_kern,
        ibv_create_ah => address::create_ah,
        ibv_create_ah_from_wc => address::create_ah_from_wc,
        ibv_create_cq => completion::create_cq,
        ibv_create_qp => queue_pair::create_qp,
        ibv_create_srq => shared_queue::create_srq,
        ibv_dealloc_pd => domain::dealloc_pd,
        ibv_dereg_mr => memory::dereg_mr,
        ibv_destroy_ah => address::destroy_ah,
        ibv_destroy_cq => completion::destroy_cq,
        ibv_destroy_qp => queue_pair::destroy_qp,
        ibv_destroy_srq => shared_queue::destroy_srq,
        ibv_detach_mcast => queue_pair::detach_mcast,
        ibv_dofork_range => memory::dofork_range,
        ibv_dontfork_range => memory::dontfork_range,
        ibv_event_type_str => text::event_type_str,
        ibv_fork_init => memory::fork_init,
        ibv_free_device_list => device::free_device_list,
        ibv_get_async_event => event::get_async_event,
        ibv_get_cq_event => completion::get_cq_event,
        ibv_get_device_guid => device::get_device_guid,
        ibv_get_device_list => device::get_device_list,
        ibv_get_device_name => device::get_device_name,
        ibv_init_ah_from_wc => address::init_ah_from_wc,
        ibv_modify_qp => queue_pair::modify_qp,
        ibv_modify_srq => shared_queue::modify_srq,
        ibv_node_type_str => text::node_type_str,
        ibv_open_device => context::open_device,
        ibv_port_state_str => text::port_state_str,
        ibv_query_device => device::query_device,
        ibv_query_gid => device::query_gid,
        ibv_query_pkey => device::query_pkey,
        ibv_query_port => device::query_port,
        ibv_query_qp => queue_pair::query_qp,
        ibv_query_srq => shared_queue::query_srq,
        ibv_rate_to_mbps => rate::rate_to_mbps,
        ibv_reg_mr => memory::reg_mr,
        ibv_rereg_mr => memory::rereg_mr,
        ibv_resize_cq => completion::resize_cq,
        ibv_resolve_eth_l2_from_gid => address::resolve_eth_l2_from_gid,
        ibv_wc_status_str => text::wc_status_str,
        mbps_to_ibv_rate => rate::mbps_to_rate,
    }
    "IBVERBS_1.5" "@@" {
        ibv_get_pkey_index => device::get_pkey_index,
    }
    "IBVERBS_1.6" "@@" {
        ibv_qp_to_qp_ex => queue_pair::qp_to_qp_ex,
    }
    "IBVERBS_1.7" "@@" {
        ibv_reg_mr_iova => memory::reg_mr_iova,
    }
    "IBVERBS_1.8" "@@" {
        ibv_reg_mr_iova2 => memory::reg_mr_iova2,
    }
    "IBVERBS_1.9" "@@" {
        ibv_get_device_index => device::get_device_index,
    }
    "IBVERBS_1.10" "@@" {
        ibv_import_device => context::import_device,
        ibv_import_mr => memory::import_mr,
        ibv_import_pd => domain::import_pd,
        ibv_query_ece => queue_pair::query_ece,
        ibv_set_ece => queue_pair::set_ece,
        ibv_unimport_mr => refuse_quietly,
        ibv_unimport_pd => refuse_quietly,
    }
    "IBVERBS_1.11" "@@" {
        _ibv_query_gid_ex => device::query_gid_ex,
        _ibv_query_gid_table => device::query_gid_table,
    }
    "IBVERBS_1.12" "@@" {
        ibv_reg_dmabuf_mr => memory::reg_dmabuf_mr,
    }
    "IBVERBS_1.13" "@@" {
        ibv_import_dm => memory::import_dm,
        ibv_is_fork_initialized => memory::is_fork_initialized,
        ibv_unimport_dm => refuse_quietly,
    }
    "IBVERBS_1.14" "@@" {
        ibv_query_qp_data_in_order => queue_pair::query_qp_data_in_order,
    }
    "IBVERBS_1.15" "@@" {
        ibv_alloc_dmah => unsupported_pointer,
        ibv_dealloc_dmah => unsupported,
        ibv_reg_mr_ex => unsupported_pointer,
    }
    "IBVERBS_1.16" "@@" {
        ibv_dm_export_dmabuf_fd => refuse_negative,
        ibv_query_port_speed => unsupported,
    }
    "IBVERBS_1.17" "@@" {
        ibv_alloc_buf => unsupported_pointer,
        ibv_free_buf => refuse_quietly,
        ibv_reg_buf_mr => unsupported_pointer,
    }
    "IBVERBS_1.18" "@@" {
        _ibv_query_comp_cntr_caps => unsupported,
        ibv_create_comp_cntr => unsupported_pointer,
        ibv_destroy_comp_cntr => unsupported,
        ibv_export_buf_dmabuf_fd => refuse_negative,
        ibv_inc_comp_cntr => unsupported,
        ibv_inc_err_comp_cntr => unsupported,
        ibv_qp_attach_comp_cntr => unsupported,
        ibv_read_comp_cntr => unsupported,
        ibv_read_err_comp_cntr => unsupported,
        ibv_set_comp_cntr => unsupported,
        ibv_set_err_comp_cntr => unsupported,
    }
}
