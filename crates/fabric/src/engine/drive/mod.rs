//! What makes time pass: two drivers over the same nodes.
//!
//! - [`window`]: many events at a time, on any number of threads; the one that runs.
//! - [`sequential`]: one event at a time from one global list. It settles ties by the order of scheduling, as HPCC timing
//!   needs, or as the window driver does, which tests use to hold the two against each other.

mod part;
mod sequential;
mod triggers;
mod wheel;
mod window;

pub(crate) use part::{Part, PartWork};
pub(crate) use sequential::{Sequential, TieOrder};
pub(crate) use triggers::Triggers;
pub(crate) use window::{Watcher, Windows};

use softfabric_units::Time;

/// Why a driver came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Everything before the given end has happened.
    Reached,
    /// Nothing is left to happen.
    Drained,
    /// All flows are done and no packet is under way.
    Done,
    /// Somebody asked.
    Interrupted,
}

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    /// Events at or after this time wait.
    pub(crate) end: Time,
    /// Come back as soon as all flows are done and no packet is under way.
    pub(crate) when_done: bool,
}
