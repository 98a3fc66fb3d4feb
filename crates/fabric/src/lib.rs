//! Packet-level simulator of RDMA fabrics.

// The sample run of the tests of `export` is also that of the command line's tests, under this name.
#[cfg(test)]
extern crate self as softfabric_fabric;

pub mod engine;
pub mod export;
pub mod headroom;
pub mod import;
pub mod plan;
pub mod preset;
pub mod results;
pub mod scenario;
pub mod theory;
pub mod topology;
pub mod workload;
