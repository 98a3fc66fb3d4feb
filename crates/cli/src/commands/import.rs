//! `softfabric import`: another program's files become a scenario.

use std::process::ExitCode;

use softfabric_fabric::import::hpcc;
use softfabric_fabric::scenario::Scenario;

use crate::arguments::{ImportArguments, ImportKind};
use crate::failure::Failure;
use crate::terminal;

/// Reads the files and writes the scenario.
///
/// # Errors
/// If a file is wrong, or says what no scenario can say.
pub(crate) fn import(arguments: &ImportArguments) -> Result<ExitCode, Failure> {
    let (plan, notes) = match (arguments.kind, arguments.files.as_slice()) {
        (ImportKind::Hpcc, [config]) => {
            let run = hpcc::load_config(config)?;
            (run.plan, run.notes)
        }
        (kind, _) => {
            return Err(Failure::Arguments {
                problem: format!("cannot import {kind:?}"),
                help: None,
            });
        }
    };
    for note in &notes {
        terminal::warn(note);
    }
    let scenario = Scenario::from_plan(&plan).map_err(|problem| Failure::Arguments {
        problem: format!("no scenario can say what these files say: {problem}"),
        help: None,
    })?;
    crate::run::write_text(&arguments.output, &scenario.to_toml())?;
    Ok(ExitCode::SUCCESS)
}
