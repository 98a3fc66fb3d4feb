//! The arguments of `softfabric diagnose`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueHint};
use softfabric_units::Span;

use super::prometheus::{Access, Url};

/// Say who is to blame when pause counters rise: the true source, the evidence, and what to do.
///
/// The ports that report pauses are symptoms. This follows who holds whom to the end of the trail, and says what is wrong
/// there, which ports only suffer, what would confirm it, and what to do at which price. It would rather say that the
/// counters do not suffice than guess.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct DiagnoseArguments {
    /// Recordings, as `softfabric run --counters` and `softfabric record` write them, and folders of `softfabric record --store`;
    /// - is standard input. Several are taken for parts of one fabric.
    #[arg(required_unless_present = "prometheus", value_hint = ValueHint::FilePath)]
    pub(crate) recordings: Vec<PathBuf>,
    /// Ask a Prometheus for the counters, too: https://HOST:PORT or http://, with a path before /api if it has one. It must have scraped
    /// `softfabric export`, or node_exporter on hosts (--collector.ethtool).
    #[arg(long, value_name = "URL", value_parser = super::prometheus::url)]
    pub(crate) prometheus: Option<Url>,
    #[command(flatten)]
    pub(crate) access: Access,
    /// How far back Prometheus is asked and stores are read: from now, or from the last sample of a store.
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = crate::arguments::age)]
    pub(crate) last: Span,
    /// Of stores, take what was sampled from here on, such as 2026-12-01T02:17:00Z.
    #[arg(long, value_name = "DATE", conflicts_with = "last", value_parser = crate::arguments::date)]
    pub(crate) from: Option<u64>,
    /// Of stores, take what was sampled until then.
    #[arg(long, value_name = "DATE", value_parser = crate::arguments::date)]
    pub(crate) to: Option<u64>,
    /// How often Prometheus scrapes.
    #[arg(long, value_name = "TIME", default_value = "15s", requires = "prometheus", value_parser = crate::arguments::poll_interval)]
    pub(crate) step: Span,
    /// Cables that recordings do not tell: a file with the names of two ports on each line.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cables: Vec<PathBuf>,
    /// Cables from a switch's LLDP table (show lldp table): the switch's name and a file. May be given more than once.
    #[arg(long, value_name = "SWITCH=FILE")]
    pub(crate) lldp: Vec<LldpTable>,
    /// Cables of an InfiniBand subnet: what ibnetdiscover prints, or ibsim reads. Its hosts are to be called `HOST DEVICE`, as Linux
    /// calls them.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ibnetdiscover: Vec<PathBuf>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which part of a store is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within {
    /// From here on, in nanoseconds since 1970; else `last` before the end.
    pub(crate) from: Option<u64>,
    /// Until then; else until the last sample.
    pub(crate) to: Option<u64>,
    /// How far back from the end.
    pub(crate) last: Span,
}

impl Within {
    /// The last ten minutes.
    pub(crate) const RECENT: Self = Self {
        from: None,
        to: None,
        last: Span::seconds(600),
    };
}

/// `SWITCH=FILE`.
#[derive(Clone, Debug)]
pub(crate) struct LldpTable {
    pub(crate) switch: String,
    pub(crate) file: PathBuf,
}

impl FromStr for LldpTable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((switch, file)) if !switch.is_empty() && !file.is_empty() => Ok(Self {
                switch: switch.to_owned(),
                file: PathBuf::from(file),
            }),
            _ => Err("it must be SWITCH=FILE, such as leaf0=leaf0-lldp.txt".to_owned()),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  softfabric run scenarios/storm_pfc_on.toml --counters storm.jsonl
  softfabric diagnose storm.jsonl
  softfabric diagnose gpu*.jsonl leaf0.jsonl --lldp leaf0=leaf0-lldp.txt
  softfabric diagnose /var/lib/softfabric --to 2026-12-01T02:17:00Z --last 30min
  softfabric diagnose --prometheus http://prometheus:9090 --last 300s --cables cables.txt
  softfabric diagnose storm.jsonl --json | jq -r '.findings[].summary'

Exit codes:
  0  nothing in the fabric is wrong
  1  something is: the verdict says what
  2  misuse, bad input, or counters that do not suffice for a verdict";
