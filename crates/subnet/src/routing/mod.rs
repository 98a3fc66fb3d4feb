//! Routing engines: from a graph with identifiers to forwarding tables that reach every identifier from every switch.
//!
//! | engine | paths | deadlock-free by |
//! |---|---|---|
//! | [`MinHop`] | shortest, balanced | nothing: only where the graph has no cycles that matter |
//! | [`UpDown`] | up towards roots, then down | no turn from down to up |
//! | [`FatTree`] | up by destination (d-mod-k), then down; around lost cables | no turn from down to up |
//! | [`Dfsssp`] | shortest, balanced over the whole subnet | paths moved to further lanes until no cycle is left |
//! | [`Torus`] | dimension after dimension | two lanes for each ring, by whether the path crosses its dateline |
//! | [`Nue`] | balanced, within what the dependencies allow | routing inside an acyclic dependency graph, with any number of lanes |
//!
//! Groups have a tree each: [`multicast_tree`]. Switches that choose as packets come do so among [`Alternatives`]. All engines
//! are behind [`RoutingEngine`], give the same answer on every machine, and refuse what they cannot do instead of leaving
//! holes.

mod alternatives;
mod balance;
mod close_by;
mod dependency;
mod dfsssp;
mod distance;
mod fat_tree;
mod min_hop;
mod multicast;
mod nue;
mod parallel;
mod ranks;
mod repair;
mod routes;
mod torus;
mod up_down;
mod view;

pub use alternatives::Alternatives;
pub(crate) use dependency::Numbering;
pub use dfsssp::Dfsssp;
pub use distance::Distances;
pub use fat_tree::FatTree;
pub use min_hop::MinHop;
pub use multicast::{PortSet, multicast_tree};
pub use nue::Nue;
pub use repair::Before;
pub use routes::{LaneMap, Levels, NO_PORT, Routes, Walk, WalkEnd};
pub use torus::{Torus, TorusShape};
pub use up_down::UpDown;
pub use view::{Link, RoutingView, Target};

use softfabric_units::{Guid, Lid};
use thiserror::Error;

/// Makes routes.
pub trait RoutingEngine {
    /// What OpenSM calls it.
    fn name(&self) -> &'static str;

    /// Routes from every switch to every identifier.
    ///
    /// # Errors
    /// If the engine cannot route this subnet.
    fn route(&self, view: &RoutingView) -> Result<Routes, RoutingError>;

    /// Routes after cables were lost, with as much as possible as it was: `before` covers `view` ([`Before::covers`]).
    /// Engines that cannot keep anything route anew.
    ///
    /// # Errors
    /// If the engine cannot route what is left.
    fn repair(&self, view: &RoutingView, _before: Before<'_>) -> Result<Routes, RoutingError> {
        self.route(view)
    }

    /// All ports on the ways among which the engine chooses when it fills tables. Whether packets that choose for
    /// themselves can lock each other up, [`credit_loop`](crate::check::credit_loop) says.
    ///
    /// # Errors
    /// If the engine has one way only towards each identifier, or as [`RoutingEngine::route`].
    fn alternatives(&self, _view: &RoutingView) -> Result<Alternatives, RoutingError> {
        Err(RoutingError::OneWay {
            engine: self.name(),
        })
    }
}

/// Why an engine gives no routes.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum RoutingError {
    /// No path that the engine may use.
    #[error("{engine} finds no path from switch {from:?} to LID {lid} at switch {to:?}: {hint}")]
    Unroutable {
        /// The engine.
        engine: &'static str,
        /// Where the path would start.
        from: String,
        /// Where it would end.
        to: String,
        /// The identifier.
        lid: Lid,
        /// What may be done.
        hint: &'static str,
    },
    /// Not enough lanes.
    #[error(
        "{engine} needs {needed} lanes for this subnet and may use {available}: allow more lanes, or use an engine that needs fewer (updn, nue)"
    )]
    Lanes {
        /// The engine.
        engine: &'static str,
        /// How many it would take: exact up to 15, the most that there are.
        needed: usize,
        /// How many there are.
        available: u8,
    },
    /// The graph is not of the kind that the engine is for.
    #[error("{engine} does not fit this subnet: {reason}")]
    Shape {
        /// The engine.
        engine: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// Levels or lanes are for the one way that the engine has chosen.
    #[error(
        "{engine} keeps packets from locking up by the way that it gives each of them, so they cannot choose among several"
    )]
    OneWay {
        /// The engine.
        engine: &'static str,
    },
    /// A root that is not there.
    #[error("root {guid} is no switch of this subnet")]
    UnknownRoot {
        /// Its GUID.
        guid: Guid,
    },
}
