//! The arguments of `softfabric commission`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use softfabric_units::{Bytes, Span};

/// Measure what every host and every pair of hosts can do on an idle fabric, name what is slower than the rest, and keep it as a
/// baseline for `softfabric watch --baseline`.
///
/// Pairs are measured in rounds in which no host is in two pairs: n - 1 rounds for n hosts, both directions. Of a scenario, its
/// network is simulated without its workload. Of real hosts, --pair-command runs a program such as perftest's ib_write_bw, and its
/// table is read.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct CommissionArguments {
    /// A scenario (.toml), whose network is measured.
    #[arg(required_unless_present = "pair_command", conflicts_with = "pair_command", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Option<PathBuf>,
    /// Where the baseline goes; - is standard output.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// How much each host of a pair sends.
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "4MB",
        conflicts_with = "pair_command"
    )]
    pub(crate) bytes: Bytes,
    /// The network as it is when everything has happened that the scenario's events do until then. Default: before all of them.
    #[arg(long, value_name = "TIME", conflicts_with = "pair_command")]
    pub(crate) at: Option<Span>,
    /// In place of pairs a ring over the hosts, on each rail, all at once: what an all-reduce sends.
    #[arg(long)]
    pub(crate) collective: bool,
    /// The seed of every random choice, in place of the scenario's.
    #[arg(long, value_name = "N", conflicts_with = "pair_command")]
    pub(crate) seed: Option<u64>,
    /// Measure real hosts: a command for the shell that measures from {client} to {server} and prints perftest's table. {port} is a
    /// port number of the pair's own.
    #[arg(long, value_name = "COMMAND", requires = "hosts")]
    pub(crate) pair_command: Option<String>,
    /// Started before --pair-command and ended after it: the other end, such as 'ssh {server} ib_write_bw -F --report_gbits -p {port}'.
    #[arg(long, value_name = "COMMAND", requires = "pair_command")]
    pub(crate) server_command: Option<String>,
    /// A second command for each pair, whose table of latencies is read, such as ib_write_lat's; its other end is
    /// --latency-server-command.
    #[arg(long, value_name = "COMMAND", requires = "pair_command")]
    pub(crate) latency_command: Option<String>,
    /// The other end of --latency-command.
    #[arg(long, value_name = "COMMAND", requires = "latency_command")]
    pub(crate) latency_server_command: Option<String>,
    /// The hosts, with commas between them. One may stand more than once, for several devices of it.
    #[arg(
        long,
        value_name = "HOSTS",
        value_delimiter = ',',
        requires = "pair_command"
    )]
    pub(crate) hosts: Vec<String>,
    /// How long a server gets to be ready.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1s",
        requires = "pair_command"
    )]
    pub(crate) settle: Span,
    /// A pair that takes longer has failed.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        requires = "pair_command"
    )]
    pub(crate) patience: Span,
    /// No progress and no summary: only the baseline and the exit code.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  softfabric commission scenarios/diagnose_healthy_load.toml -o baseline.json
  softfabric commission scenarios/diagnose_slow_receiver.toml --at 5ms
      what a slow host looks like
  softfabric commission --hosts gpu1,gpu2,gpu3,gpu4 \\
      --server-command 'ssh {server} ib_write_bw -F --report_gbits' \\
      --pair-command 'ssh {client} ib_write_bw -F --report_gbits {server}' \\
      -o baseline.json
  softfabric watch --prometheus http://prometheus:9090 --baseline baseline.json

Exit codes:
  0  nobody is slower than the rest
  1  somebody is, or a pair could not be measured
  2  misuse or bad input";
