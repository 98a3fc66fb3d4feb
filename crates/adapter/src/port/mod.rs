//! The ways out of a device.

pub(crate) mod udp;
