//! The kernel's connection manager, served to Debian's own `librdmacm` from inside the process.
//!
//! ```text
//! program ── librdmacm ── open("/dev/infiniband/rdma_cm"), write(command), close
//!                             │   its jumps to the C library lead here instead
//!                             ▼
//!              hook ─► command ─► engine ─► adapter's connection manager ─► queue pair 1
//!                                   └─ eventfd: what the program polls
//! ```
//!
//! `librdmacm` talks to its device by four functions of the C library, which it calls through its table of addresses.
//! When this library is loaded, and when devices are listed, that table is changed: in `librdmacm` only, so that the rest
//! of the program calls what it always called.
#![allow(unsafe_code, reason = "another library's calls lead here")]

mod abi;
mod command;
mod descriptors;
mod engine;
mod hook;
mod process;
mod route;

pub(crate) use hook::install;
