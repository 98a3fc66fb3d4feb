//! The link layer of InfiniBand (IBTA vol. 1, chapter 7): packets as they pass a link, and the credits that let them.
//!
//! ```text
//!   LRH (8) | GRH (40, global packets) | BTH … payload, pad | ICRC (4) | VCRC (2)     data packet
//!             op(4) FCTBS(12) VL(4) FCCL(12) | LPCRC (2)                              flow-control packet
//! ```
//!
//! Both CRCs of 16 bits go out lowest byte first. The LRH's length counts 4-byte words from the LRH to the ICRC.

mod crc;
mod flow_control;
mod lrh;
mod packet;

pub use crc::{VCRC_LENGTH, vcrc};
pub use flow_control::{BLOCK, CreditReceiver, CreditSender, FlowControl, FlowControlOperation};
pub use lrh::{LinkNext, Lrh, ServiceLevel, VirtualLane};
pub use packet::{LinkPacket, LinkRoute};
