//! Packet formats: Ethernet, IP, UDP, and the RDMA transport headers that RoCE and InfiniBand share.

mod bytes;
mod error;
pub mod ethernet;
pub mod ip;
pub mod rdma;
pub mod udp;

pub use error::DecodeError;
