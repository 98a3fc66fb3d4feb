//! Packet formats: Ethernet, IP, UDP, and the RDMA transport headers that RoCE and InfiniBand share.

mod bytes;
mod data;
mod error;
pub mod ethernet;
pub mod frame;
pub mod ip;
pub mod length;
pub mod pcapng;
pub mod rdma;
pub mod udp;

pub use data::Data;
pub use error::DecodeError;
pub use frame::{Body, Frame, RoceFrame, RoceNetwork, RocePacket};
