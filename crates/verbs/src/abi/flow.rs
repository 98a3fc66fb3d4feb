//! Flow steering: no device here steers, so only what the refusals need.

use super::device::ibv_context;

/// A rule, begun by its header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_flow_attr {
    /// Nothing.
    pub comp_mask: u32,
    /// The kind of rule.
    pub r#type: u32,
    /// The length with everything that follows.
    pub size: u16,
    /// The priority.
    pub priority: u16,
    /// How many specifications follow.
    pub num_of_specs: u8,
    /// The port.
    pub port: u8,
    /// Flags.
    pub flags: u32,
}

/// A rule in force.
#[repr(C)]
#[derive(Debug)]
pub struct ibv_flow {
    /// Nothing.
    pub comp_mask: u32,
    /// The context.
    pub context: *mut ibv_context,
    /// A number.
    pub handle: u32,
}
