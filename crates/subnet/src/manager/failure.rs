//! What a manager says when a subnet cannot be managed as asked, or something is odd.

use softfabric_units::{Guid, Lid};
use thiserror::Error;

use crate::routing::RoutingError;
use crate::subnet::LidError;

/// Why a subnet cannot be managed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ManageError {
    /// The manager's own port does not answer.
    #[error("the manager's own node does not answer: is its port there?")]
    NoOwnNode,
    /// Not enough identifiers.
    #[error(transparent)]
    Lids(#[from] LidError),
    /// No routes.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// A port has fewer data lanes than the routes need.
    #[error(
        "{engine} uses {needed} lanes, and port {port} of {node} has {available}: let it use fewer, or choose another engine"
    )]
    Lanes {
        /// The engine.
        engine: &'static str,
        /// How many lanes its routes use.
        needed: u8,
        /// The switch whose port has the fewest.
        node: String,
        /// Its port.
        port: u8,
        /// How many that has.
        available: u8,
    },
    /// Ports do not have the lanes that they are to use.
    #[error(
        "{kind} are to use {wanted} lanes, and port {port} of {node} has {available}: ask for fewer"
    )]
    TooManyLanes {
        /// Which ports.
        kind: &'static str,
        /// How many lanes they are to use.
        wanted: u8,
        /// The first node that cannot.
        node: String,
        /// Its port.
        port: u8,
        /// How many that has.
        available: u8,
    },
    /// The engine and the settings want different lanes.
    #[error(
        "{engine} needs lane {needed} for level {level} at port {port} of {node}, and the settings say lane {wanted}: leave out the lanes of levels for ports of switches, or choose an engine without lanes of its own (min-hop, up-down, fat-tree)"
    )]
    LanesTaken {
        /// The engine.
        engine: &'static str,
        /// The level.
        level: u8,
        /// The engine's lane.
        needed: u8,
        /// The settings' lane.
        wanted: u8,
        /// The switch.
        node: String,
        /// The port where packets leave.
        port: u8,
    },
    /// The engine and the policy want different levels.
    #[error(
        "{engine} says which level each path has so that packets do not lock up, and {what} is to have level {sl}: leave levels out, or choose an engine without levels of its own (min-hop, up-down, fat-tree)"
    )]
    LevelsTaken {
        /// The engine.
        engine: &'static str,
        /// What has a level.
        what: String,
        /// The level.
        sl: u8,
    },
    /// A lane would never send.
    #[error(
        "level {level} has lane {lane} at port {port} of {node}, and that lane has no turn in the {high} entries of the high table and the {low} of the low one: give it one, or use fewer lanes"
    )]
    NoTurn {
        /// A level with that lane.
        level: u8,
        /// The lane.
        lane: u8,
        /// The node.
        node: String,
        /// The port.
        port: u8,
        /// Entries that it has room for in its high table.
        high: u8,
        /// The same of its low table.
        low: u8,
    },
    /// A port's partition table is too small.
    #[error(
        "port {port} of {node} is in {needed} partitions, and its table has {available} entries: take it out of some"
    )]
    Partitions {
        /// The node.
        node: String,
        /// Its port.
        port: u8,
        /// How many entries it takes.
        needed: usize,
        /// How many it has.
        available: u16,
    },
    /// A switch's forwarding table is too small.
    #[error(
        "the highest identifier is {top}, and the forwarding table of {node} has {capacity} entries: lower the LMC or replace the switch"
    )]
    TableTooSmall {
        /// The switch.
        node: String,
        /// The highest identifier.
        top: Lid,
        /// Its entries.
        capacity: u16,
    },
}

/// What is odd.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Problem {
    /// A node was asked as often as allowed.
    #[error("{node} does not answer to {request}")]
    Silent {
        /// Which.
        node: String,
        /// What it was asked for.
        request: &'static str,
    },
    /// A node refused a request.
    #[error("{node} refuses {request} with status {status:#06x}")]
    Refused {
        /// Which.
        node: String,
        /// What it was asked for.
        request: &'static str,
        /// Why.
        status: u16,
    },
    /// A control table is too small.
    #[error(
        "the control table of {node} has room for {available} entries, and {needed} are given: it gets neither entries nor settings"
    )]
    ControlTable {
        /// Which adapter.
        node: String,
        /// How many entries there are to write.
        needed: usize,
        /// How many it has room for.
        available: usize,
    },
    /// Two nodes say that they are one.
    #[error("port {port} of {node} has two cables: two nodes have the GUID {guid}")]
    DuplicateGuid {
        /// The node that was first.
        node: String,
        /// Its port.
        port: u8,
        /// The GUID.
        guid: Guid,
    },
}
