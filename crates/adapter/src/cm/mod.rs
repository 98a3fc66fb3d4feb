//! Connection management: how two programs find each other and join their queue pairs.
//!
//! ```text
//!   program ── listen, connect, accept, … ──► Manager ── datagrams ──► queue pair 1 of a device
//!      ▲                                      │    ▲
//!      └──────────── events ──────────────────┘    └── datagrams, the time
//! ```
//!
//! [`Manager`] is the protocol (IBTA vol. 1, chapter 12): it has no clock, no socket and no thread. [`Service`] gives it
//! those. [`Registry`] is where the processes of a host share ports and find who listens.

mod event;
mod listener;
mod manager;
mod names;
mod registry;
mod route;
mod service;

pub use event::{Event, Transmit, Way};
pub use listener::{ListenAddress, ListenerId};
pub use manager::{CallError, Manager};
pub use registry::{PortError, Registry, leave_registry_to_parent};
pub(crate) use route::{addressee, answer_for_nobody};
pub use service::{Program, Service};
