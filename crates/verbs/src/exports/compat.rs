//! Symbols of 2005: programs linked against the first version of the library, whose structures looked different.
//!
//! No such program is known to exist; the symbols are there because loaders and checkers look for them.

use crate::refuse::{refuse, refuse_pointer, refuse_quietly};
use softfabric_cabi::versioned_exports as exports;

exports! {
    "IBVERBS_1.0" "@" {
        ibv_ack_async_event => refuse_quietly,
        ibv_ack_cq_events => refuse_quietly,
        ibv_alloc_pd => refuse_pointer,
        ibv_attach_mcast => refuse,
        ibv_close_device => refuse,
        ibv_create_ah => refuse_pointer,
        ibv_create_cq => refuse_pointer,
        ibv_create_qp => refuse_pointer,
        ibv_create_srq => refuse_pointer,
        ibv_dealloc_pd => refuse,
        ibv_dereg_mr => refuse,
        ibv_destroy_ah => refuse,
        ibv_destroy_cq => refuse,
        ibv_destroy_qp => refuse,
        ibv_destroy_srq => refuse,
        ibv_detach_mcast => refuse,
        ibv_free_device_list => refuse_quietly,
        ibv_get_async_event => refuse,
        ibv_get_cq_event => refuse,
        ibv_get_device_guid => refuse_quietly,
        ibv_get_device_list => refuse_pointer,
        ibv_get_device_name => refuse_pointer,
        ibv_modify_qp => refuse,
        ibv_modify_srq => refuse,
        ibv_open_device => refuse_pointer,
        ibv_query_device => refuse,
        ibv_query_gid => refuse,
        ibv_query_pkey => refuse,
        ibv_query_port => refuse,
        ibv_query_qp => refuse,
        ibv_query_srq => refuse,
        ibv_reg_mr => refuse_pointer,
        ibv_resize_cq => refuse,
    }
    // Drivers of that time registered themselves by it; it has never been withdrawn.
    "IBVERBS_1.1" "@" {
        ibv_register_driver => refuse_quietly,
    }
}
