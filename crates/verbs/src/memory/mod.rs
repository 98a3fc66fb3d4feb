//! Memory that peers and work requests may reach: regions, windows, and memory of the device.

mod device_memory;
mod region;
mod window;

pub(crate) use device_memory::{DEVICE_MEMORY, alloc_dm, free_dm, import_dm, reg_dm_mr};
pub(crate) use region::{
    access, advise_mr, alloc_null_mr, dereg_mr, dofork_range, dontfork_range, fork_init, import_mr,
    is_fork_initialized, reg_dmabuf_mr, reg_mr, reg_mr_iova, reg_mr_iova2, rereg_mr,
};
pub(crate) use window::{MemoryWindow, alloc_mw, dealloc_mw, release_window};
