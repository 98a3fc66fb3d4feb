//! Devices in one process, in several, and across network namespaces.
//!
//! Processes are this very test binary, started again with a role: see `node`.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "the adapter works in real time, and so do its tests"
)]

mod faults;
mod loopback;
mod namespace;
mod neighbours;
mod node;
mod process;
mod wire;
