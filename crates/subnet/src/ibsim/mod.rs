//! The protocol of ibsim's server, without I/O: programs that are linked against libibumad reach an emulated fabric through
//! `libumad2sim.so`.
//!
//! ```text
//!   program ── B:ctl<id> ── control, 80 bytes ──► B:ctl             connect, who am I, I am a manager
//!           ── B:in<id>  ── data, 288 bytes   ──► B:out<slot>       datagrams and their addresses
//! ```
//!
//! `B` is a name, the sockets are datagram sockets of the abstract Unix namespace. A [`Server`] has up to
//! [`CLIENTS`] clients, each at a port of its [`Fabric`](crate::agent::Fabric). The driver hands it what arrives and sends
//! what [`Server::poll_transmit`] has; a message of wrong length or content is dropped or refused, and never ends it.
//! [`Joining`] is the programs' side, for our own subnet manager.

/// The name `B` where nobody chooses one.
pub const DEFAULT_NAME: &str = "sim";
/// The environment variable by which programs and servers find another name.
pub const NAME_VARIABLE: &str = "IBSIM_SOCKNAME";
/// The environment variable in which programs find the node that they shall be at.
pub const NODE_VARIABLE: &str = "SIM_HOST";

mod client;
mod message;
mod server;

pub use client::{JoinError, Joined, Joining, Progress};
pub(crate) use message::{CLASS, METHOD, TRANSACTION};
pub use message::{
    CONTROL_LENGTH, Connect, Control, ControlKind, DATA_LENGTH, Data, MessageError, TIMED_OUT,
};
pub use server::{CLIENTS, Client, Served, Server};
