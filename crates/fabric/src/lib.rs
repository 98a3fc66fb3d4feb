//! Packet-level simulator of RDMA fabrics.

pub mod plan;
pub mod results;
