//! The arguments of `softfabric benchmark`.

use clap::{Args, Subcommand};
use softfabric_units::Span;

/// Measure how good softfabric's own judgement is.
#[derive(Args)]
pub(crate) struct BenchmarkArguments {
    #[command(subcommand)]
    pub(crate) command: BenchmarkCommand,
}

#[derive(Subcommand)]
pub(crate) enum BenchmarkCommand {
    Diagnose(DiagnoseBenchmarkArguments),
}

/// Score `softfabric diagnose` on simulated faults whose truth is known.
///
/// Every kind of fault, over several fabrics and loads, and fabrics in which nothing is wrong. The diagnosis sees only what
/// real devices would tell (NICs under Linux, switches under SONiC), once whole, once with a fifth of all ports missing, once
/// with samples lost and late. Beside it: the port that sends most pauses, and the rule of PFC watchdogs.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct DiagnoseBenchmarkArguments {
    /// Where random choices begin: other seeds, other cases.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many seeds each combination of fault, fabric and load has.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    /// How often counters are polled in the 20 ms that a case lasts.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = crate::arguments::poll_interval)]
    pub(crate) poll: Span,
    /// Only cases with this in their name.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Name every case that was judged wrongly, with what was said.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// As JSON, case by case.
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  softfabric benchmark diagnose
  softfabric benchmark diagnose --seed 100 --seeds 10
  softfabric benchmark diagnose --only incast --verbose";
