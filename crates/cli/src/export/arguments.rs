//! The arguments of `softfabric export`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use softfabric_units::Span;

/// Export counters as OpenMetrics, for Prometheus: as text, or served as they grew.
///
/// Names are node_exporter's where it has them, and those of `softfabric counters` elsewhere. tools/prometheus has alert rules for
/// them. Without --listen, the counters at one time are printed. With it, the recording is replayed, and every request gets
/// what had been counted by then; after its end, counters stand still.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct ExportArguments {
    /// Recordings, as `softfabric run --counters` and `softfabric record` write them, or the last ten minutes of a store;
    /// - is standard input.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub(crate) recordings: Vec<PathBuf>,
    /// Print the counters as they were so long after the start. Default: at the end.
    #[arg(long, value_name = "TIME", conflicts_with = "listen")]
    pub(crate) at: Option<Span>,
    /// Serve them at http://ADDRESS/metrics, such as 127.0.0.1:9750; port 0 takes a free one, which is printed.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Replay so many times slower than it was, for recordings of simulations, which are short. Counters of time grow so many
    /// times more: shares of time, which alerts look at, stay what they were. Rates of packets and bytes fall.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "listen", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) slower: u64,
}

const EXAMPLES: &str = "\
Examples:
  softfabric run scenarios/storm_pfc_on.toml --counters storm.jsonl
  softfabric export storm.jsonl --at 2ms
  softfabric export storm.jsonl --listen 127.0.0.1:9750 --slower 10000
  promtool check rules tools/prometheus/softfabric.rules.yml";
