//! Connection management: how two programs find each other and join their queue pairs.
//!
//! ```text
//!   program ── listen, connect, accept, … ──► Manager ── datagrams ──► queue pair 1 of a device
//!      ▲                                      │    ▲
//!      └──────────── events ──────────────────┘    └── datagrams, the time
//! ```
//!
//! [`Manager`] is the protocol (IBTA vol. 1, chapter 12): it has no clock, no socket and no thread.

mod event;
mod listener;
mod manager;
mod names;

pub use event::{Event, Transmit, Way};
pub use listener::{ListenAddress, ListenerId};
pub use manager::{CallError, Manager};
