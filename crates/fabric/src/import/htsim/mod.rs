//! Files of htsim (github.com/Broadcom/csg-htsim): connection matrices `.cm` and topologies `.topo`.
//!
//! ```text
//! .cm ──► connections, triggers, failures ─┐
//!                                          ├──► Plan, with the switches and hosts of a scenario that says nothing
//! .topo (or the fat-tree of so many hosts) ┘
//! ```
//!
//! htsim's files say nothing of PFC, ECN or congestion control: those are options of its programs.

mod matrix;
#[cfg(test)]
mod tests;
mod topology;

use std::path::Path;

use softfabric_units::{Bytes, Class, Rate, Span, Time};

pub use matrix::{Connection, ConnectionMatrix, Failure, StartUnit, read_matrix};
pub use topology::{HtsimTopology, read_topology};

use super::ImportError;
use super::lines::read_text;
use crate::plan::{Flow, Operation, Plan, PortId, Start, TriggerId};
use crate::topology::Cable;

/// A run of a connection matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct HtsimRun {
    /// What to run.
    pub plan: Plan,
    /// What has no effect here, and what was assumed: to be shown before the run.
    pub notes: Vec<String>,
}

/// What htsim's files leave to the command line of its programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtsimOptions {
    /// In what `start` counts: picoseconds by htsim's parser, microseconds in one of its programs.
    pub start: StartUnit,
    /// The rate of all links where there is no `.topo`.
    pub rate: Rate,
    /// Their delay.
    pub delay: Span,
}

impl Default for HtsimOptions {
    fn default() -> Self {
        Self {
            start: StartUnit::Picoseconds,
            rate: Rate::gbps(100),
            delay: Span::micros(1),
        }
    }
}

/// Reads a connection matrix, and the topology that it runs on; without one, htsim's own fat-tree of three tiers.
///
/// # Errors
/// If a file cannot be read, or is wrong, or the topology is too small.
pub fn load(
    matrix: &Path,
    topology: Option<&Path>,
    options: HtsimOptions,
) -> Result<HtsimRun, ImportError> {
    let text = read_text(matrix)?;
    let connections = read_matrix(matrix, &text, options.start)?;
    let mut notes = connections.notes.clone();
    let tree = match topology {
        Some(path) => read_topology(path, &read_text(path)?)?,
        None => {
            let cable = Cable {
                rate: options.rate,
                delay: options.delay,
            };
            notes.push(format!(
                "no topology was given: a fat-tree of three tiers, {} and {} a link",
                options.rate, options.delay
            ));
            HtsimTopology::of_hosts(connections.nodes, cable).ok_or_else(|| {
                let found = format!("{} nodes", connections.nodes);
                let allowed = "k³/4 nodes for an even k (16, 54, 128 … 1024, 8192)";
                ImportError::new(matrix, None, "Nodes", found, allowed)
                    .advise("name a .topo file with as many nodes or more")
            })?
        }
    };
    if tree.hosts() < connections.nodes {
        let found = format!(
            "{} nodes, where the topology has {}",
            connections.nodes,
            tree.hosts()
        );
        let allowed = "no more nodes than the topology";
        return Err(ImportError::new(matrix, None, "Nodes", found, allowed));
    }
    let network = tree.network(matrix, &connections.failures)?;
    let name = matrix.file_stem().unwrap_or_default().to_string_lossy();
    let plan = Plan {
        flows: flows(&connections),
        triggers: connections.triggers.clone(),
        jobs: Vec::new(),
        ..super::plan_of(&name, network, &tree.latencies())
    };
    Ok(HtsimRun { plan, notes })
}

fn flows(connections: &ConnectionMatrix) -> Vec<Flow> {
    let flow = |(index, connection): (usize, &Connection)| Flow {
        source: connection.source,
        destination: connection.destination,
        source_nic: PortId(0),
        destination_nic: PortId(0),
        bytes: connection.bytes,
        message: None,
        operation: Operation::Write,
        start: match connection.trigger {
            Some(trigger) => Start::After(trigger, Span::ZERO),
            None => Start::At(connection.start),
        },
        class: Class::new(3),
        dscp: None,
        ecn_capable: true,
        udp_source_port: 0xc000 | (index as u16 & 0x3fff),
        udp_destination_port: 4791,
        path: None,
        group: String::new(),
        on_sent: connection.on_sent,
        on_received: connection.on_received,
    };
    connections
        .connections
        .iter()
        .enumerate()
        .map(flow)
        .collect()
}

/// Where a connection has no start of its own.
const AT_ONCE: Time = Time::ZERO;

/// Sizes are 32 bit in htsim.
const LARGEST: Bytes = Bytes::new(u32::MAX as u64);

/// The id that htsim's triggers and flows may not have.
const NO_ID: TriggerId = TriggerId(0);
