//! Counters of a fabric over time, and who is to blame when they rise.
//!
//! ```text
//! sources ─► Topology   who is wired to whom
//!            History    what every port's counters said, and when ──► diagnose ──► Diagnosis
//!            recording  both, as a file                                       │
//!            baseline   what was measured when all was well ──► watch ◄──────┘   findings over time
//! ```
//!
//! Nothing here knows whether the counters were simulated or real. Counters are those of the one table
//! ([`softfabric_telemetry`]), under the names that operations people know.

pub mod baseline;
pub mod diagnose;
pub mod history;
mod live;
pub mod openmetrics;
pub mod recording;
pub mod sources;
pub mod topology;
pub mod watch;

pub use baseline::Baseline;
pub use diagnose::{Diagnosis, diagnose};
pub use history::{History, PortSample, Width, Window};
pub use live::Live;
pub use recording::Recording;
pub use topology::{LinkLayer, NodeIndex, NodeKind, PortIndex, Topology};
pub use watch::{View, Watch};
