//! Packet formats: Ethernet, IP, UDP, and the RDMA transport headers that RoCE and InfiniBand share.

mod error;
pub mod rdma;

pub use error::DecodeError;
