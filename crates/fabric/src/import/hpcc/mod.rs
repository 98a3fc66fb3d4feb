//! Files of the HPCC ns-3 simulator (github.com/alibaba-edu/High-Precision-Congestion-Control): config, topology,
//! flows and flow size distributions.
//!
//! ```text
//! config ──┬── TOPOLOGY_FILE ──► Network
//!          ├── FLOW_FILE ──────► flows
//!          └── the rest ───────► profiles, recording, stop, names of the outputs
//! ```
//!
//! Invariant: node n of the topology is `NodeId(n)` and its interface i is port i − 1, so that outputs can name them as
//! HPCC does.

mod config;
mod distribution;
mod flows;
mod network;
mod settings;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use distribution::read_distribution;
pub use flows::{HpccFlow, read_flows, seconds};
pub use network::read_topology;

use super::ImportError;
use super::lines::{beside, read_text};
use crate::plan::Plan;

/// A run as an HPCC config file asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct HpccRun {
    /// What to run, in HPCC's timing.
    pub plan: Plan,
    /// Where flow completion times go (`FCT_OUTPUT_FILE`).
    pub fct_output: PathBuf,
    /// Where pause frames go (`PFC_OUTPUT_FILE`).
    pub pfc_output: PathBuf,
    /// Settings that have no effect here, each with the reason: to be shown before the run.
    pub notes: Vec<String>,
}

/// Reads a config file and the files that it names, relative to its own folder.
///
/// # Errors
/// If a file cannot be read, says what is impossible, or asks for what is not supported.
pub fn load_config(path: &Path) -> Result<HpccRun, ImportError> {
    let text = read_text(path)?;
    let config = config::Config::read(path, &text)?;
    let topology_path = beside(path, config.topology_file());
    let flow_path = beside(path, config.flow_file());
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    config.check()?;
    let named = |key, path: &Path| {
        read_text(path).map_err(|error| {
            let found = format!("{}, which is {}", path.display(), error.found);
            let error = config.wrong(key, found, "the name of a text file");
            error.advise("it is looked for in the folder of the config file")
        })
    };
    let topology = named("TOPOLOGY_FILE", &topology_path)?;
    let network = read_topology(&topology_path, &topology, config.error_rate())?;
    let flows = named("FLOW_FILE", &flow_path)?;
    let flows = read_flows(&flow_path, &flows, &network)?;
    let plan = settings::plan(&config, &name, network, &flows)?;
    Ok(HpccRun {
        plan,
        fct_output: beside(path, config.fct_output()),
        pfc_output: beside(path, config.pfc_output()),
        notes: config.notes(),
    })
}
