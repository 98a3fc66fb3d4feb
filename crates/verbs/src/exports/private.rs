//! The interface between the library and hardware vendors' libraries.
//!
//! perftest, UCX and others load `libmlx5` and `libefa` whether or not such hardware is there. These must find every
//! symbol, and their constructors register a driver with us, which is taken note of by doing nothing: this library has
//! drivers of its own only. Nothing else of it is ever called, so everything else refuses.
//!
//! The interface has a new name in each release that changes it. Those since 34 are exported alike.

use crate::refuse::{refuse, refuse_pointer, refuse_quietly};
use softfabric_cabi::versioned_exports as exports;

/// Exports functions in every node of the interface: the first is the one that a linker would choose.
macro_rules! private {
    ($($name:ident => $target:path,)+) => {
        exports! {
            "IBVERBS_PRIVATE_34" "@@" { $($name => $target,)+ }
            "IBVERBS_PRIVATE_57" "@" { $($name => $target,)+ }
            "IBVERBS_PRIVATE_59" "@" { $($name => $target,)+ }
            "IBVERBS_PRIVATE_64" "@" { $($name => $target,)+ }
            "IBVERBS_PRIVATE_65" "@" { $($name => $target,)+ }
        }
    };
}

exports! {
    "IBVERBS_PRIVATE_34" "@@" { verbs_register_driver_34 => refuse_quietly, }
    "IBVERBS_PRIVATE_57" "@@" { verbs_register_driver_57 => refuse_quietly, }
    "IBVERBS_PRIVATE_59" "@@" { verbs_register_driver_59 => refuse_quietly, }
    "IBVERBS_PRIVATE_64" "@@" { verbs_register_driver_64 => refuse_quietly, }
    "IBVERBS_PRIVATE_65" "@@" { verbs_register_driver_65 => refuse_quietly, }
}

private! {
    __ioctl_final_num_attrs => refuse_quietly,
    __verbs_log => refuse_quietly,
    _verbs_init_and_alloc_context => refuse_pointer,
    execute_ioctl => refuse,
    ibv_cmd_advise_mr => refuse,
    ibv_cmd_alloc_dm => refuse,
    ibv_cmd_alloc_mw => refuse,
    ibv_cmd_alloc_pd => refuse,
    ibv_cmd_attach_mcast => refuse,
    ibv_cmd_close_xrcd => refuse,
    ibv_cmd_create_ah => refuse,
    ibv_cmd_create_counters => refuse,
    ibv_cmd_create_cq => refuse,
    ibv_cmd_create_cq_ex => refuse,
    ibv_cmd_create_flow => refuse,
    ibv_cmd_create_flow_action_esp => refuse,
    ibv_cmd_create_qp => refuse,
    ibv_cmd_create_qp_ex => refuse,
    ibv_cmd_create_qp_ex2 => refuse,
    ibv_cmd_create_rwq_ind_table => refuse,
    ibv_cmd_create_srq => refuse,
    ibv_cmd_create_srq_ex => refuse,
    ibv_cmd_create_wq => refuse,
    ibv_cmd_dealloc_mw => refuse,
    ibv_cmd_dealloc_pd => refuse,
    ibv_cmd_dereg_mr => refuse,
    ibv_cmd_destroy_ah => refuse,
    ibv_cmd_destroy_counters => refuse,
    ibv_cmd_destroy_cq => refuse,
    ibv_cmd_destroy_flow => refuse,
    ibv_cmd_destroy_flow_action => refuse,
    ibv_cmd_destroy_qp => refuse,
    ibv_cmd_destroy_rwq_ind_table => refuse,
    ibv_cmd_destroy_srq => refuse,
    ibv_cmd_destroy_wq => refuse,
    ibv_cmd_detach_mcast => refuse,
    ibv_cmd_free_dm => refuse,
    ibv_cmd_get_context => refuse,
    ibv_cmd_modify_cq => refuse,
    ibv_cmd_modify_flow_action_esp => refuse,
    ibv_cmd_modify_qp => refuse,
    ibv_cmd_modify_qp_ex => refuse,
    ibv_cmd_modify_srq => refuse,
    ibv_cmd_modify_wq => refuse,
    ibv_cmd_open_qp => refuse,
    ibv_cmd_open_xrcd => refuse,
    ibv_cmd_poll_cq => refuse,
    ibv_cmd_post_recv => refuse,
    ibv_cmd_post_send => refuse,
    ibv_cmd_post_srq_recv => refuse,
    ibv_cmd_query_context => refuse,
    ibv_cmd_query_device_any => refuse,
    ibv_cmd_query_mr => refuse,
    ibv_cmd_query_port => refuse,
    ibv_cmd_query_qp => refuse,
    ibv_cmd_query_srq => refuse,
    ibv_cmd_read_counters => refuse,
    ibv_cmd_reg_dm_mr => refuse,
    ibv_cmd_reg_dmabuf_mr => refuse,
    ibv_cmd_reg_mr => refuse,
    ibv_cmd_req_notify_cq => refuse,
    ibv_cmd_rereg_mr => refuse,
    ibv_cmd_resize_cq => refuse,
    ibv_query_gid_type => crate::device::query_gid_type,
    ibv_read_ibdev_sysfs_file => crate::device::read_ibdev_sysfs_file,
    verbs_init_cq => refuse_quietly,
    verbs_open_device => refuse_pointer,
    verbs_set_ops => refuse_quietly,
    verbs_uninit_context => refuse_quietly,
}

// Since 57 at the latest; nothing older asks for them.
exports! {
    "IBVERBS_PRIVATE_57" "@" {
        ibv_cmd_alloc_dmah => refuse,
        ibv_cmd_create_comp_cntr => refuse,
        ibv_cmd_create_cq_ex2 => refuse,
        ibv_cmd_destroy_comp_cntr => refuse,
        ibv_cmd_export_dmabuf_fd => refuse,
        ibv_cmd_free_dmah => refuse,
        ibv_cmd_inc_comp_cntr => refuse,
        ibv_cmd_inc_err_comp_cntr => refuse,
        ibv_cmd_qp_attach_comp_cntr => refuse,
        ibv_cmd_query_comp_cntr_caps => refuse,
        ibv_cmd_query_port_speed => refuse,
        ibv_cmd_read_comp_cntr => refuse,
        ibv_cmd_read_err_comp_cntr => refuse,
        ibv_cmd_reg_mr_ex => refuse,
        ibv_cmd_set_comp_cntr => refuse,
        ibv_cmd_set_err_comp_cntr => refuse,
        ibv_dmabuf_heap_alloc => refuse_pointer,
        ibv_dmabuf_heap_cc_shared_init => refuse_pointer,
        ibv_dmabuf_heap_destroy => refuse_quietly,
        ibv_dmabuf_heap_free => refuse_quietly,
        ibv_wr_opcode_str => refuse_pointer,
    }
    "IBVERBS_PRIVATE_59" "@" {
        ibv_cmd_alloc_dmah => refuse,
        ibv_cmd_create_comp_cntr => refuse,
        ibv_cmd_create_cq_ex2 => refuse,
        ibv_cmd_destroy_comp_cntr => refuse,
        ibv_cmd_export_dmabuf_fd => refuse,
        ibv_cmd_free_dmah => refuse,
        ibv_cmd_inc_comp_cntr => refuse,
        ibv_cmd_inc_err_comp_cntr => refuse,
        ibv_cmd_qp_attach_comp_cntr => refuse,
        ibv_cmd_query_comp_cntr_caps => refuse,
        ibv_cmd_query_port_speed => refuse,
        ibv_cmd_read_comp_cntr => refuse,
        ibv_cmd_read_err_comp_cntr => refuse,
        ibv_cmd_reg_mr_ex => refuse,
        ibv_cmd_set_comp_cntr => refuse,
        ibv_cmd_set_err_comp_cntr => refuse,
        ibv_dmabuf_heap_alloc => refuse_pointer,
        ibv_dmabuf_heap_cc_shared_init => refuse_pointer,
        ibv_dmabuf_heap_destroy => refuse_quietly,
        ibv_dmabuf_heap_free => refuse_quietly,
        ibv_wr_opcode_str => refuse_pointer,
    }
    "IBVERBS_PRIVATE_64" "@" {
        ibv_cmd_alloc_dmah => refuse,
        ibv_cmd_create_comp_cntr => refuse,
        ibv_cmd_create_cq_ex2 => refuse,
        ibv_cmd_destroy_comp_cntr => refuse,
        ibv_cmd_export_dmabuf_fd => refuse,
        ibv_cmd_free_dmah => refuse,
        ibv_cmd_inc_comp_cntr => refuse,
        ibv_cmd_inc_err_comp_cntr => refuse,
        ibv_cmd_qp_attach_comp_cntr => refuse,
        ibv_cmd_query_comp_cntr_caps => refuse,
        ibv_cmd_query_port_speed => refuse,
        ibv_cmd_read_comp_cntr => refuse,
        ibv_cmd_read_err_comp_cntr => refuse,
        ibv_cmd_reg_mr_ex => refuse,
        ibv_cmd_set_comp_cntr => refuse,
        ibv_cmd_set_err_comp_cntr => refuse,
        ibv_dmabuf_heap_alloc => refuse_pointer,
        ibv_dmabuf_heap_cc_shared_init => refuse_pointer,
        ibv_dmabuf_heap_destroy => refuse_quietly,
        ibv_dmabuf_heap_free => refuse_quietly,
        ibv_wr_opcode_str => refuse_pointer,
    }
    "IBVERBS_PRIVATE_65" "@@" {
        ibv_cmd_alloc_dmah => refuse,
        ibv_cmd_create_comp_cntr => refuse,
        ibv_cmd_create_cq_ex2 => refuse,
        ibv_cmd_destroy_comp_cntr => refuse,
        ibv_cmd_export_dmabuf_fd => refuse,
        ibv_cmd_free_dmah => refuse,
        ibv_cmd_inc_comp_cntr => refuse,
        ibv_cmd_inc_err_comp_cntr => refuse,
        ibv_cmd_qp_attach_comp_cntr => refuse,
        ibv_cmd_query_comp_cntr_caps => refuse,
        ibv_cmd_query_port_speed => refuse,
        ibv_cmd_read_comp_cntr => refuse,
        ibv_cmd_read_err_comp_cntr => refuse,
        ibv_cmd_reg_mr_ex => refuse,
        ibv_cmd_set_comp_cntr => refuse,
        ibv_cmd_set_err_comp_cntr => refuse,
        ibv_dmabuf_heap_alloc => refuse_pointer,
        ibv_dmabuf_heap_cc_shared_init => refuse_pointer,
        ibv_dmabuf_heap_destroy => refuse_quietly,
        ibv_dmabuf_heap_free => refuse_quietly,
        ibv_wr_opcode_str => refuse_pointer,
    }
}

/// Exports one byte of zeroed memory as a variable of every node.
macro_rules! variable {
    ($name:literal: $($node:literal $separator:literal,)+) => {
        std::arch::global_asm!(
            ".pushsection .bss.softfabric.exports,\"aw\",@nobits",
            $(
                concat!(".globl \"softfabric.", $name, ".", $node, "\""),
                concat!(".type \"softfabric.", $name, ".", $node, "\",@object"),
                concat!(".size \"softfabric.", $name, ".", $node, "\", 1"),
                concat!("\"softfabric.", $name, ".", $node, "\":"),
                concat!(".symver \"softfabric.", $name, ".", $node, "\", ", $name, $separator, $node, ", remove"),
            )+
            ".zero 1",
            ".popsection",
        );
    };
}

// A vendor's library sets it to true.
variable! {
    "verbs_allow_disassociate_destroy":
    "IBVERBS_PRIVATE_34" "@@",
    "IBVERBS_PRIVATE_57" "@",
    "IBVERBS_PRIVATE_59" "@",
    "IBVERBS_PRIVATE_64" "@",
    "IBVERBS_PRIVATE_65" "@",
}
