//! Devices: their list, and what they tell about themselves.

mod list;
mod query;
mod sysfs;

pub(crate) use list::{
    Device, free_device_list, get_device_guid, get_device_index, get_device_list, get_device_name,
    settings,
};
pub(crate) use query::{
    clock, get_pkey_index, mtu, query_device, query_device_ex, query_gid, query_gid_ex,
    query_gid_table, query_gid_type, query_pkey, query_port, query_port_ex, query_rt_values,
    wall_clock,
};
pub use sysfs::{SysfsFile, sysfs_files};
pub(crate) use sysfs::{
    character_device, counter_files, get_sysfs_path, read_ibdev_sysfs_file, read_sysfs_file,
};
