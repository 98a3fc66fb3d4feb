//! Debian's own programs of connection management, unmodified, over the library: two processes on one host, and across
//! two network namespaces.
//!
//! What a machine lacks is skipped, and said.

#[path = "../support/mod.rs"]
mod support;

mod contract;
mod programs;
mod sockets;
