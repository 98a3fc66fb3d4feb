//! Devices and contexts: the tables of functions that a program calls without symbols.

use std::ffi::{c_char, c_int, c_uint, c_void};

use libc::{pthread_mutex_t, timespec};

use super::attributes::*;
use super::flow::*;
use super::objects::*;
use super::work::*;

/// A slot of a function table that nobody calls, or that has no implementation here.
pub type Unused = Option<unsafe extern "C" fn()>;

/// The address of a port, in network byte order (`union ibv_gid`).
#[repr(C, align(8))]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ibv_gid {
    /// The 16 bytes.
    pub raw: [u8; 16],
}

/// One entry of a port's table of addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_gid_entry {
    /// The address.
    pub gid: ibv_gid,
    /// Its place in the table.
    pub gid_index: u32,
    /// The port.
    pub port_num: u32,
    /// `IBV_GID_TYPE_…`.
    pub gid_type: u32,
    /// The network interface.
    pub ndev_ifindex: u32,
}

/// Never used by anybody.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct _ibv_device_ops {
    /// Nothing.
    pub _dummy1: Unused,
    /// Nothing.
    pub _dummy2: Unused,
}

/// A device.
#[repr(C)]
#[derive(Debug)]
pub struct ibv_device {
    /// Never used.
    pub _ops: _ibv_device_ops,
    /// `IBV_NODE_…`.
    pub node_type: c_int,
    /// `IBV_TRANSPORT_…`.
    pub transport_type: c_int,
    /// Its name, ended by a zero.
    pub name: [c_char; 64],
    /// The name of its character device.
    pub dev_name: [c_char; 64],
    /// Its folder among character devices in sysfs.
    pub dev_path: [c_char; 256],
    /// Its folder in sysfs.
    pub ibdev_path: [c_char; 256],
}

/// The functions that programs reach through `ibv_context.ops`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ibv_context_ops {
    /// `ibv_query_device` of old programs.
    pub _compat_query_device:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_device_attr) -> c_int>,
    /// `ibv_query_port` of old programs.
    pub _compat_query_port:
        Option<unsafe extern "C" fn(*mut ibv_context, u8, *mut c_void) -> c_int>,
    /// Not called.
    pub _compat_alloc_pd: Unused,
    /// Not called.
    pub _compat_dealloc_pd: Unused,
    /// Not called.
    pub _compat_reg_mr: Unused,
    /// Not called.
    pub _compat_rereg_mr: Unused,
    /// Not called.
    pub _compat_dereg_mr: Unused,
    /// `ibv_alloc_mw`.
    pub alloc_mw: Option<unsafe extern "C" fn(*mut ibv_pd, c_int) -> *mut ibv_mw>,
    /// `ibv_bind_mw`.
    pub bind_mw: Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_mw, *mut ibv_mw_bind) -> c_int>,
    /// `ibv_dealloc_mw`.
    pub dealloc_mw: Option<unsafe extern "C" fn(*mut ibv_mw) -> c_int>,
    /// Not called.
    pub _compat_create_cq: Unused,
    /// `ibv_poll_cq`.
    pub poll_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int>,
    /// `ibv_req_notify_cq`.
    pub req_notify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int>,
    /// Not called.
    pub _compat_cq_event: Unused,
    /// Not called.
    pub _compat_resize_cq: Unused,
    /// Not called.
    pub _compat_destroy_cq: Unused,
    /// Not called.
    pub _compat_create_srq: Unused,
    /// Not called.
    pub _compat_modify_srq: Unused,
    /// Not called.
    pub _compat_query_srq: Unused,
    /// Not called.
    pub _compat_destroy_srq: Unused,
    /// `ibv_post_srq_recv`.
    pub post_srq_recv: Option<
        unsafe extern "C" fn(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
    >,
    /// Not called.
    pub _compat_create_qp: Unused,
    /// Not called.
    pub _compat_query_qp: Unused,
    /// Not called.
    pub _compat_modify_qp: Unused,
    /// Not called.
    pub _compat_destroy_qp: Unused,
    /// `ibv_post_send`.
    pub post_send:
        Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int>,
    /// `ibv_post_recv`.
    pub post_recv:
        Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
    /// Not called.
    pub _compat_create_ah: Unused,
    /// Not called.
    pub _compat_destroy_ah: Unused,
    /// Not called.
    pub _compat_attach_mcast: Unused,
    /// Not called.
    pub _compat_detach_mcast: Unused,
    /// Not called.
    pub _compat_async_event: Unused,
}

/// An open device.
#[repr(C)]
pub struct ibv_context {
    /// The device.
    pub device: *mut ibv_device,
    /// Functions.
    pub ops: ibv_context_ops,
    /// The descriptor of the character device.
    pub cmd_fd: c_int,
    /// Readable when an asynchronous event waits.
    pub async_fd: c_int,
    /// How many vectors completions are spread over.
    pub num_comp_vectors: c_int,
    /// Belongs to the library.
    pub mutex: pthread_mutex_t,
    /// All ones: this context is the end of a [`verbs_context`].
    pub abi_compat: *mut c_void,
}

/// The functions that came after [`ibv_context_ops`]. The structure grows at its start; programs reach it from the
/// address of `context` and compare `sz`.
#[repr(C)]
pub struct verbs_context {
    /// `ibv_free_buf`.
    pub free_buf: Unused,
    /// `ibv_alloc_buf`.
    pub alloc_buf: Unused,
    /// `ibv_dm_export_dmabuf_fd`.
    pub dm_export_dmabuf_fd: Unused,
    /// `ibv_reg_mr_ex`.
    pub reg_mr_ex: Unused,
    /// `ibv_dealloc_dmah`.
    pub dealloc_dmah: Unused,
    /// `ibv_alloc_dmah`.
    pub alloc_dmah: Unused,
    /// `ibv_query_port`, told how much the program has room for.
    pub query_port:
        Option<unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr, usize) -> c_int>,
    /// `ibv_advise_mr`.
    pub advise_mr:
        Option<unsafe extern "C" fn(*mut ibv_pd, c_int, u32, *mut ibv_sge, u32) -> c_int>,
    /// `ibv_alloc_null_mr`.
    pub alloc_null_mr: Option<unsafe extern "C" fn(*mut ibv_pd) -> *mut ibv_mr>,
    /// `ibv_read_counters`.
    pub read_counters: Unused,
    /// `ibv_attach_counters_point_flow`.
    pub attach_counters_point_flow: Unused,
    /// `ibv_create_counters`.
    pub create_counters: Unused,
    /// `ibv_destroy_counters`.
    pub destroy_counters: Unused,
    /// `ibv_reg_dm_mr`.
    pub reg_dm_mr:
        Option<unsafe extern "C" fn(*mut ibv_pd, *mut ibv_dm, u64, usize, c_uint) -> *mut ibv_mr>,
    /// `ibv_alloc_dm`.
    pub alloc_dm:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_alloc_dm_attr) -> *mut ibv_dm>,
    /// `ibv_free_dm`.
    pub free_dm: Option<unsafe extern "C" fn(*mut ibv_dm) -> c_int>,
    /// `ibv_modify_flow_action_esp`.
    pub modify_flow_action_esp: Unused,
    /// `ibv_destroy_flow_action`.
    pub destroy_flow_action: Unused,
    /// `ibv_create_flow_action_esp`.
    pub create_flow_action_esp: Unused,
    /// `ibv_modify_qp_rate_limit`.
    pub modify_qp_rate_limit:
        Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_rate_limit_attr) -> c_int>,
    /// `ibv_alloc_parent_domain`.
    pub alloc_parent_domain: Option<
        unsafe extern "C" fn(*mut ibv_context, *mut ibv_parent_domain_init_attr) -> *mut ibv_pd,
    >,
    /// `ibv_dealloc_td`.
    pub dealloc_td: Option<unsafe extern "C" fn(*mut ibv_td) -> c_int>,
    /// `ibv_alloc_td`.
    pub alloc_td:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_td_init_attr) -> *mut ibv_td>,
    /// `ibv_modify_cq`.
    pub modify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, *mut ibv_modify_cq_attr) -> c_int>,
    /// `ibv_post_srq_ops`.
    pub post_srq_ops: Unused,
    /// `ibv_destroy_rwq_ind_table`.
    pub destroy_rwq_ind_table: Unused,
    /// `ibv_create_rwq_ind_table`.
    pub create_rwq_ind_table: Unused,
    /// `ibv_destroy_wq`.
    pub destroy_wq: Unused,
    /// `ibv_modify_wq`.
    pub modify_wq: Unused,
    /// `ibv_create_wq`.
    pub create_wq: Unused,
    /// `ibv_query_rt_values_ex`.
    pub query_rt_values:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_values_ex) -> c_int>,
    /// `ibv_create_cq_ex`.
    pub create_cq_ex:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex>,
    /// Belongs to the library.
    pub r#priv: *mut c_void,
    /// `ibv_query_device_ex`, told how much the program has room for.
    pub query_device_ex: Option<
        unsafe extern "C" fn(
            *mut ibv_context,
            *const ibv_query_device_ex_input,
            *mut ibv_device_attr_ex,
            usize,
        ) -> c_int,
    >,
    /// `ibv_destroy_flow`.
    pub ibv_destroy_flow: Option<unsafe extern "C" fn(*mut ibv_flow) -> c_int>,
    /// Not called.
    pub ABI_placeholder2: Unused,
    /// `ibv_create_flow`.
    pub ibv_create_flow:
        Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_flow_attr) -> *mut ibv_flow>,
    /// Not called.
    pub ABI_placeholder1: Unused,
    /// `ibv_open_qp`.
    pub open_qp:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_qp_open_attr) -> *mut ibv_qp>,
    /// `ibv_create_qp_ex`.
    pub create_qp_ex:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_qp_init_attr_ex) -> *mut ibv_qp>,
    /// `ibv_get_srq_num`.
    pub get_srq_num: Option<unsafe extern "C" fn(*mut ibv_srq, *mut u32) -> c_int>,
    /// `ibv_create_srq_ex`.
    pub create_srq_ex:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_srq_init_attr_ex) -> *mut ibv_srq>,
    /// `ibv_open_xrcd`.
    pub open_xrcd:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_xrcd_init_attr) -> *mut ibv_xrcd>,
    /// `ibv_close_xrcd`.
    pub close_xrcd: Option<unsafe extern "C" fn(*mut ibv_xrcd) -> c_int>,
    /// Not used.
    pub _ABI_placeholder3: u64,
    /// How much there is before `context`.
    pub sz: usize,
    /// What programs hold.
    pub context: ibv_context,
}

/// What `ibv_query_rt_values_ex` tells.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_values_ex {
    /// What is asked for and told: `IBV_VALUES_MASK_…`.
    pub comp_mask: u32,
    /// The device's clock.
    pub raw_clock: timespec,
}
