//! Agents: what answers for every node of an emulated subnet, and the wires between them.
//!
//! ```text
//!   Fabric::send(port, packet) ──► hop by hop, by directed route or forwarding tables ──► agent of the node
//!                                                                                          │ management  (tables, ports)
//!        Delivery::Answered ◄────── the same way back, or by the tables ◄───────────────── │ performance (counters)
//!        Delivery::Arrived  ◄────── what is for a program at that port                     │ congestion  (settings)
//!        Delivery::Lost     ◄────── no link, no entry, no answer
//! ```
//!
//! A [`Fabric`] is a [`Subnet`](crate::Subnet) and an [`Agent`] for each of its nodes; it has no clock and does no I/O. What
//! a manager writes into a table decides where later packets go: by LID a packet arrives only where tables, identifiers
//! and port states let it. Datagrams of any bytes are answered, dropped or refused with a status; none panics.

mod congestion;
mod fabric;
mod management;
mod node;
mod performance;

pub use congestion::Congestion;
pub use fabric::{Delivery, Fabric, Packet};
pub use node::Agent;
