//! Packet formats: Ethernet, IP, UDP, and the RDMA transport headers that RoCE and InfiniBand share.

pub mod rdma;
