//! The library's symbols, each with the version that programs were linked against.
//!
//! ```text
//! ibv_alloc_pd@@IBVERBS_1.1 ──► trampoline (one jump, in assembly) ──► domain::alloc_pd (extern "C", private)
//! ibv_alloc_pd@IBVERBS_1.0  ──► trampoline ──────────────────────────► compat::refuse_pointer
//! ```
//!
//! A version belongs to a symbol through a `.symver` directive, which only assembly has; `#[no_mangle]` functions get
//! none, because rustc's own version script is anonymous. `remove` takes the trampoline's own name out again. The nodes
//! themselves are made known by the build script. Two files beside the tests list what must come out.
#![allow(unsafe_code, reason = "versioned symbols are made in assembly")]

mod compat;
mod private;

/// Exports functions: `node separator { name => function, … }`, where the separator is `@@` for the version that new
/// programs get, and `@` for one that only old programs ask for.
macro_rules! exports {
    ($($node:literal $separator:literal { $($name:ident => $target:path,)+ })+) => {
        $($(
            #[cfg(target_arch = "x86_64")]
            std::arch::global_asm!(
                ".pushsection .text.softfabric.exports,\"ax\",@progbits",
                ".p2align 4",
                concat!(".globl \"softfabric.", stringify!($name), ".", $node, "\""),
                concat!(".type \"softfabric.", stringify!($name), ".", $node, "\",@function"),
                concat!("\"softfabric.", stringify!($name), ".", $node, "\":"),
                "jmp {target}",
                concat!(".size \"softfabric.", stringify!($name), ".", $node, "\", . - \"softfabric.", stringify!($name), ".", $node, "\""),
                concat!(".symver \"softfabric.", stringify!($name), ".", $node, "\", ", stringify!($name), $separator, $node, ", remove"),
                ".popsection",
                target = sym $target,
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::global_asm!(
                ".pushsection .text.softfabric.exports,\"ax\",@progbits",
                ".p2align 4",
                concat!(".globl \"softfabric.", stringify!($name), ".", $node, "\""),
                concat!(".type \"softfabric.", stringify!($name), ".", $node, "\",@function"),
                concat!("\"softfabric.", stringify!($name), ".", $node, "\":"),
                "b {target}",
                concat!(".size \"softfabric.", stringify!($name), ".", $node, "\", . - \"softfabric.", stringify!($name), ".", $node, "\""),
                concat!(".symver \"softfabric.", stringify!($name), ".", $node, "\", ", stringify!($name), $separator, $node, ", remove"),
                ".popsection",
                target = sym $target,
            );
        )+)+
    };
}
use exports;

use crate::refuse::refuse;

exports! {
    "IBVERBS_1.0" "@@" {
        ibv_copy_path_rec_from_kern => refuse,
        ibv_copy_path_rec_to_kern => refuse,
        ibv_copy_qp_attr_from_kern => refuse,
        ibv_create_comp_channel => refuse,
        ibv_destroy_comp_channel => refuse,
        ibv_get_sysfs_path => refuse,
        ibv_rate_to_mult => refuse,
        ibv_read_sysfs_file => refuse,
        mult_to_ibv_rate => refuse,
    }
    "IBVERBS_1.1" "@@" {
        ibv_ack_async_event => refuse,
        ibv_ack_cq_events => refuse,
        ibv_alloc_pd => refuse,
        ibv_attach_mcast => refuse,
        ibv_close_device => refuse,
        ibv_copy_ah_attr_from_kern => refuse,
        ibv_create_ah => refuse,
        ibv_create_ah_from_wc => refuse,
        ibv_create_cq => refuse,
        ibv_create_qp => refuse,
        ibv_create_srq => refuse,
        ibv_dealloc_pd => refuse,
        ibv_dereg_mr => refuse,
        ibv_destroy_ah => refuse,
        ibv_destroy_cq => refuse,
        ibv_destroy_qp => refuse,
        ibv_destroy_srq => refuse,
        ibv_detach_mcast => refuse,
        ibv_dofork_range => refuse,
        ibv_dontfork_range => refuse,
        ibv_event_type_str => refuse,
        ibv_fork_init => refuse,
        ibv_free_device_list => refuse,
        ibv_get_async_event => refuse,
        ibv_get_cq_event => refuse,
        ibv_get_device_guid => refuse,
        ibv_get_device_list => refuse,
        ibv_get_device_name => refuse,
        ibv_init_ah_from_wc => refuse,
        ibv_modify_qp => refuse,
        ibv_modify_srq => refuse,
        ibv_node_type_str => refuse,
        ibv_open_device => refuse,
        ibv_port_state_str => refuse,
        ibv_query_device => refuse,
        ibv_query_gid => refuse,
        ibv_query_pkey => refuse,
        ibv_query_port => refuse,
        ibv_query_qp => refuse,
        ibv_query_srq => refuse,
        ibv_rate_to_mbps => refuse,
        ibv_reg_mr => refuse,
        ibv_rereg_mr => refuse,
        ibv_resize_cq => refuse,
        ibv_resolve_eth_l2_from_gid => refuse,
        ibv_wc_status_str => refuse,
        mbps_to_ibv_rate => refuse,
    }
    "IBVERBS_1.5" "@@" {
        ibv_get_pkey_index => refuse,
    }
    "IBVERBS_1.6" "@@" {
        ibv_qp_to_qp_ex => refuse,
    }
    "IBVERBS_1.7" "@@" {
        ibv_reg_mr_iova => refuse,
    }
    "IBVERBS_1.8" "@@" {
        ibv_reg_mr_iova2 => refuse,
    }
    "IBVERBS_1.9" "@@" {
        ibv_get_device_index => refuse,
    }
    "IBVERBS_1.10" "@@" {
        ibv_import_device => refuse,
        ibv_import_mr => refuse,
        ibv_import_pd => refuse,
        ibv_query_ece => refuse,
        ibv_set_ece => refuse,
        ibv_unimport_mr => refuse,
        ibv_unimport_pd => refuse,
    }
    "IBVERBS_1.11" "@@" {
        _ibv_query_gid_ex => refuse,
        _ibv_query_gid_table => refuse,
    }
    "IBVERBS_1.12" "@@" {
        ibv_reg_dmabuf_mr => refuse,
    }
    "IBVERBS_1.13" "@@" {
        ibv_import_dm => refuse,
        ibv_is_fork_initialized => refuse,
        ibv_unimport_dm => refuse,
    }
    "IBVERBS_1.14" "@@" {
        ibv_query_qp_data_in_order => refuse,
    }
    "IBVERBS_1.15" "@@" {
        ibv_alloc_dmah => refuse,
        ibv_dealloc_dmah => refuse,
        ibv_reg_mr_ex => refuse,
    }
    "IBVERBS_1.16" "@@" {
        ibv_dm_export_dmabuf_fd => refuse,
        ibv_query_port_speed => refuse,
    }
    "IBVERBS_1.17" "@@" {
        ibv_alloc_buf => refuse,
        ibv_free_buf => refuse,
        ibv_reg_buf_mr => refuse,
    }
    "IBVERBS_1.18" "@@" {
        _ibv_query_comp_cntr_caps => refuse,
        ibv_create_comp_cntr => refuse,
        ibv_destroy_comp_cntr => refuse,
        ibv_export_buf_dmabuf_fd => refuse,
        ibv_inc_comp_cntr => refuse,
        ibv_inc_err_comp_cntr => refuse,
        ibv_qp_attach_comp_cntr => refuse,
        ibv_read_comp_cntr => refuse,
        ibv_read_err_comp_cntr => refuse,
        ibv_set_comp_cntr => refuse,
        ibv_set_err_comp_cntr => refuse,
    }
}
