//! `softfabric what-if`: a scenario as it is, and with something done about it, side by side.
//!
//! ```text
//! scenario ─► plan ─┬─ without the remedy ─► run ─► figures ─┐
//!                   └─ with it ────────────► run ─► figures ─┴─► table, and the sentence that follows
//! ```

pub(crate) mod arguments;
mod figures;
mod pfc_off;

use std::process::ExitCode;

use self::arguments::{WhatIfArguments, WhatIfCommand};
use crate::failure::Failure;

/// Runs both and prints the comparison.
///
/// # Errors
/// If the scenario is wrong, or has nothing to turn off.
pub(crate) fn run(arguments: &WhatIfArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        WhatIfCommand::PfcOff(arguments) => pfc_off::run(arguments),
    }
}
