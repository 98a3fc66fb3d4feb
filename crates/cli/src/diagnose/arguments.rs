//! The arguments of `softfabric diagnose`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Say who is to blame when pause counters rise: the true source, the evidence, and what to do.
///
/// The ports that report pauses are symptoms. This follows who holds whom to the end of the trail, and says what is wrong
/// there, which ports only suffer, what would confirm it, and what to do at which price. It would rather say that the
/// counters do not suffice than guess.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct DiagnoseArguments {
    /// A recording, as `softfabric run --counters` writes it; - is standard input.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) recording: PathBuf,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  softfabric run scenarios/storm_pfc_on.toml --counters storm.jsonl
  softfabric diagnose storm.jsonl
  softfabric diagnose storm.jsonl --json | jq -r '.findings[].summary'

Exit codes:
  0  nothing in the fabric is wrong
  1  something is: the verdict says what
  2  misuse, bad input, or counters that do not suffice for a verdict";
