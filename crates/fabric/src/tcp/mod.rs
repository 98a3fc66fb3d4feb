//! TCP without I/O and without a clock, for hosts that speak it instead of RDMA.
//!
//! A [`Connection`] is one end: it does nothing by itself. Its driver tells it what happened and when, and asks what
//! follows, as with the RDMA transport:
//!
//! ```text
//!   application    write · read                            writable · readable · acknowledged
//!                       │                                              ▲
//!               ┌───────▼──────────────────────────────────────────────┴───────┐
//!               │ sender     scoreboard, recovery, timeouts, congestion window │
//!   Connection  │ receiver   order, window, SACK, delayed acknowledgements, ECN │
//!               └───────▲──────────────────────────────────────────────┬───────┘
//!                       │                                              ▼
//!   driver         handle_segment(now) · handle_timeout(now)   poll_transmit(now) · poll_timeout
//! ```
//!
//! Payload is lengths only. What a peer sends leads to an answer or to nothing, never to a panic.
//!
//! ```
//! use softfabric_fabric::tcp::{Arrival, Connection, State, TcpConfig};
//! use softfabric_units::Time;
//!
//! let now = Time::ZERO;
//! let mut client = Connection::connect(TcpConfig::default(), 7);
//! let mut server = Connection::listen(TcpConfig::default(), 0xffff_ffff);
//! client.write(3000, true);
//! let (mut segments, mut with_data) = (0, 0);
//! let (mut from, mut to) = (&mut client, &mut server);
//! for _turn in 0..6 {
//!     while let Some(segment) = from.poll_transmit(now) {
//!         segments += 1;
//!         with_data += usize::from(segment.payload > 0);
//!         let arrival = Arrival { header: &segment.header, payload: segment.payload, congestion: false };
//!         to.handle_segment(now, &arrival);
//!     }
//!     std::mem::swap(&mut from, &mut to);
//! }
//! assert_eq!((server.received(), server.state()), (3000, State::Established));
//! assert_eq!(client.acknowledged(), 3000);
//! // Both SYNs, three segments, the first of which also ends the set-up, and their acknowledgement.
//! assert_eq!((segments, with_data), (2 + 3 + 1, 3));
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `connection` | RFC 9293: set-up, windows; RFC 6675 and RFC 6582: recovery; RFC 3168 and RFC 8257: ECN |
//! | `congestion` | Reno (RFC 5681), CUBIC (RFC 9438), HyStart++ (RFC 9406), DCTCP (RFC 8257) |
//! | `round_trip` | RFC 6298 |
//! | `stack` | all connections of a host, its applications, and what they cost its processors (`cpu`) |

mod config;
mod congestion;
mod connection;
mod cpu;
mod ranges;
mod round_trip;
mod stack;
#[cfg(test)]
mod tests;

pub use config::{CongestionAlgorithm, CubicParameters, DctcpParameters, TcpConfig};
pub use connection::{Arrival, Connection, State, Statistics, Transmit};
pub use cpu::{CpuModel, CpuTime};
pub use stack::{Open, Outgoing, Packet, Stack, StackConfig, StackEvent, StackStatistics};
