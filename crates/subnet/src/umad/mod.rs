//! The door for programs that are linked against libibumad: messages of any length over a stream, without I/O.
//!
//! ```text
//!   program ─► drop-in libibumad.so.3 ── stream B:umad ──► Server
//!               one stream for each open port; requests are written, datagrams are read
//! ```
//!
//! What the kernel does for its users is done here: agents hear of the classes and methods that they registered for, answers
//! find the agent that asked by the upper half of their transaction number, and an agent that waits in vain gets its own
//! request back with a status. Datagrams are as long as their message: programs on streams never see segments, and those
//! of other senders are put together here.

/// The name of the socket, in the abstract namespace, by which a server called `base` takes streams.
pub fn socket_name(base: &str) -> String {
    format!("{base}:umad")
}

/// The length of a datagram that is not one of several: shorter ones have zeros behind them.
pub const DATAGRAM: usize = softfabric_wire::mad::MAD_LENGTH;

mod message;
mod serve;
mod users;

pub use message::{
    Adapter, AdapterPort, AgentId, Envelope, FRAME_HEADER, FrameError, FrameHeader, FromServer,
    LONGEST_FRAME, Registration, ToServer,
};
pub(crate) use serve::envelope;
pub(crate) use users::Users;
pub use users::{User, UserId};
