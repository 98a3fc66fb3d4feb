//! Other programs' files, as they are.
//!
//! ```text
//! HPCC config, topology, flows, CDF ─┐
//! htsim .cm, .topo ──────────────────┼──► Plan, or a part of one ──► run, or a scenario file that loads back to it
//! SimAI topology ────────────────────┤
//! SONiC headroom, buffers, QoS ──────┘
//! ```
//!
//! Invariant: what a file says is followed or refused, with the line that says it; nothing is skipped in silence.

mod error;
pub mod hpcc;
mod lines;

pub use error::ImportError;
