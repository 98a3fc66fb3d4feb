//! Packet formats: Ethernet, IP, UDP, TCP, and the RDMA transport headers that RoCE and InfiniBand share.
//!
//! Every header is decoded from bytes by a checked, fixed view into a value in which illegal states do not exist, and is
//! encoded from that value. No decoder panics on any bytes. [`Frame`] is the way through all layers of an Ethernet frame:
//!
//! ```
//! use std::net::Ipv4Addr;
//!
//! use softfabric_units::{Gid, MacAddress, PartitionKey, Psn, Qpn};
//! use softfabric_wire::ip::TrafficClass;
//! use softfabric_wire::rdma::{Bth, Extension, Opcode, TransportHeader};
//! use softfabric_wire::{Body, Data, Frame, RoceFrame, RoceNetwork};
//!
//! let bth = Bth {
//!     opcode: Opcode::RC_SEND_ONLY,
//!     solicited: false,
//!     migrated: true,
//!     pad: 0,
//!     partition: PartitionKey::DEFAULT,
//!     fecn: false,
//!     becn: false,
//!     destination: Qpn::new(17),
//!     acknowledge: true,
//!     psn: Psn::new(1),
//! };
//! let network = RoceNetwork::v2(
//!     Gid::from(Ipv4Addr::new(10, 0, 0, 1)),
//!     Gid::from(Ipv4Addr::new(10, 0, 0, 2)),
//!     0xc000,
//!     TrafficClass::default(),
//! );
//! let frame = RoceFrame {
//!     destination: MacAddress([2, 0, 0, 0, 0, 2]),
//!     source: MacAddress([2, 0, 0, 0, 0, 1]),
//!     tag: None,
//!     network,
//!     header: TransportHeader { bth, extension: Extension::None, xrc_srq: 0 },
//!     payload: Data::Zeros(1024),
//! };
//! let mut bytes = Vec::new();
//! frame.encode(&mut bytes);
//! assert_eq!(bytes.len(), 14 + 20 + 8 + 12 + 1024 + 4);
//! let Body::Roce(packet) = Frame::decode(&bytes)?.body else { unreachable!() };
//! assert!(packet.icrc_is_right());
//! # Ok::<(), softfabric_wire::DecodeError>(())
//! ```

mod bytes;
mod data;
mod error;
pub mod ethernet;
pub mod frame;
pub mod infiniband;
pub mod ip;
pub mod length;
pub mod mad;
pub mod pcapng;
pub mod rdma;
pub mod tcp;
pub mod udp;

pub use data::Data;
pub use error::DecodeError;
pub use frame::{Body, Frame, RoceFrame, RoceNetwork, RocePacket};
