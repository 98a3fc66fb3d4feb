//! Packet-level simulator of RDMA fabrics.

pub mod headroom;
pub mod import;
pub mod plan;
pub mod results;
pub mod topology;
pub mod workload;
