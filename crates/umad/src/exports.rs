//! The library's symbols, each with the version that programs were linked against.
#![allow(unsafe_code, reason = "versioned symbols are made in assembly")]

use softfabric_cabi::versioned_exports;

use crate::{adapters, datagram, ports, words};

versioned_exports! {
    "IBUMAD_1.0" "@@" {
        umad_addr_dump => datagram::addr_dump,
        umad_attribute_str => words::attribute_str,
        umad_class_str => words::class_str,
        umad_close_port => ports::close_port,
        umad_common_mad_status_str => words::common_mad_status_str,
        umad_debug => ports::debug,
        umad_done => ports::nothing,
        umad_dump => datagram::dump,
        umad_get_ca => adapters::get_ca,
        umad_get_ca_portguids => adapters::get_ca_portguids,
        umad_get_cas_names => adapters::get_cas_names,
        umad_get_fd => ports::get_fd,
        umad_get_issm_path => ports::get_issm_path,
        umad_get_mad => datagram::get_mad,
        umad_get_mad_addr => datagram::get_mad_addr,
        umad_get_pkey => datagram::get_pkey,
        umad_get_port => adapters::get_port,
        umad_init => ports::nothing,
        umad_method_str => words::method_str,
        umad_open_port => ports::open_port,
        umad_poll => ports::poll,
        umad_recv => ports::receive,
        umad_register => ports::register,
        umad_register2 => ports::register2,
        umad_register_oui => ports::register_oui,
        umad_release_ca => adapters::release_ca,
        umad_release_port => adapters::release_port,
        umad_sa_mad_status_str => words::sa_mad_status_str,
        umad_send => ports::send,
        umad_set_addr => datagram::set_addr,
        umad_set_addr_net => datagram::set_addr_net,
        umad_set_grh => datagram::set_grh,
        umad_set_pkey => datagram::set_pkey,
        umad_size => datagram::size,
        umad_status => datagram::status,
        umad_unregister => ports::unregister,
    }
    "IBUMAD_1.1" "@@" {
        umad_free_ca_device_list => adapters::free_ca_device_list,
        umad_get_ca_device_list => adapters::get_ca_device_list,
    }
    "IBUMAD_1.2" "@@" {
        umad_sort_ca_device_list => adapters::sort_ca_device_list,
    }
    "IBUMAD_1.3" "@@" {
        umad_open_smi_port => ports::open_port,
    }
    "IBUMAD_1.4" "@@" {
        umad_get_smi_gsi_pair_by_ca_name => adapters::get_smi_gsi_pair_by_ca_name,
        umad_get_smi_gsi_pairs => adapters::get_smi_gsi_pairs,
    }
}
