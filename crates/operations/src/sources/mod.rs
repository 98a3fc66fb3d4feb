//! Where counters and topologies come from, other than recordings.

pub mod linux;
pub mod lldp;
pub mod prometheus;
pub mod sonic;
