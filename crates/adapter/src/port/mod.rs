//! The ways out of a device.

pub(crate) mod shared;
pub(crate) mod udp;
