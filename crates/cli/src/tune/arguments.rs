//! The arguments of `softfabric tune`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Search for settings of ECN, DCQCN and PFC that suit a scenario.
///
/// What is tuned: kmin, kmax and pmax of the marking, the parameters of the hosts' DCQCN, and the threshold at which a lossless
/// class pauses. What is wanted: a short tail of completion times, little pause, much throughput. The search (NSGA-II) begins at
/// the scenario's own settings. What it finds is run again with seeds that the search has not seen. Ctrl-C ends the search, and
/// keeps the best until then.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct TuneArguments {
    /// A scenario (.toml) whose hosts speak RoCE, or - to read it from standard input.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,
    /// So many simulations at most, those of held-out seeds left out.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) budget: u32,
    /// How many seeds each point is run with; as many others are held out.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seeds: u32,
    /// Write the scenario with the best settings into this file; - is standard output, and moves the table to standard error.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Write everything as JSON.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// How many simulations at once. Default: as many as there are processors. What is found is the same for any number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// No progress and no table.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  softfabric tune scenarios/tune_pauses_first.toml --output tuned.toml
  softfabric tune scenarios/incast.toml --budget 600 --seeds 3
  softfabric compare tuned.toml --only rocev2

Exit codes:
  0  the search is done
  2  misuse, bad input, or an output that could not be written";
