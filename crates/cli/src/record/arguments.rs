//! The arguments of `softfabric record`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use softfabric_operations::LinkLayer;
use softfabric_units::Span;

/// Record the counters of this host's RDMA ports, or of a SONiC switch, for `softfabric diagnose`.
///
/// Reads /sys/class/infiniband and, where it is installed, ethtool -S; with --redis the databases of a SONiC switch. Nothing is
/// written but the recording.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct RecordArguments {
    /// Where the recording goes; - is standard output.
    #[arg(long, short, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Store the samples in this folder instead, as Parquet files, beside what is there: `softfabric diagnose DIR` reads it, and
    /// so does whatever reads Parquet. Ctrl-C closes the last file.
    #[arg(long, value_name = "DIR", conflicts_with = "output", value_hint = ValueHint::DirPath)]
    pub(crate) store: Option<PathBuf>,
    /// Remove files of the store whose samples are all older than this, such as 7d or 12h. Default: none.
    #[arg(long, value_name = "TIME", requires = "store", value_parser = crate::arguments::age)]
    pub(crate) keep: Option<Span>,
    /// How much time a file of the store covers, which is what is lost at most if this ends without a word.
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "store", value_parser = crate::arguments::age)]
    pub(crate) segment: Span,
    /// How often counters are read.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = crate::arguments::poll_interval)]
    pub(crate) every: Span,
    /// How often in all. Default: until it is ended.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Record a SONiC switch: the address of its Redis, such as 127.0.0.1:6379 on the switch itself.
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["root", "link_layer"])]
    pub(crate) redis: Option<String>,
    /// Record this user's software devices: what all programs have counted that have them open, or had.
    #[arg(long, conflicts_with_all = ["root", "link_layer", "redis"])]
    pub(crate) devices: bool,
    /// The name of the host or switch in the recording. Default: its hostname.
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Record the ports of this link layer, where a host has both. Default: that of its first port.
    #[arg(long, value_enum)]
    pub(crate) link_layer: Option<LinkLayerName>,
    /// Read the files below this folder, as a copy of another host's: sys/class/infiniband, and ethtool/INTERFACE.txt with
    /// what ethtool -S printed.
    #[arg(long, value_name = "DIR", default_value = "/", value_hint = ValueHint::DirPath)]
    pub(crate) root: PathBuf,
}

impl RecordArguments {
    /// What whoever watches wants to have recorded: this host, a switch, software devices, or the files below a folder.
    pub(crate) fn watching(
        every: Span,
        count: Option<u64>,
        redis: Option<String>,
        devices: bool,
        root: Option<PathBuf>,
    ) -> Self {
        Self {
            output: PathBuf::from("-"),
            store: None,
            keep: None,
            segment: Span::seconds(60),
            every,
            count,
            redis,
            devices,
            node: None,
            link_layer: None,
            root: root.unwrap_or_else(|| PathBuf::from("/")),
        }
    }
}

/// What holds senders back on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkLayerName {
    /// RoCE: pause frames.
    Ethernet,
    /// InfiniBand: credits.
    Infiniband,
}

impl From<LinkLayerName> for LinkLayer {
    fn from(name: LinkLayerName) -> Self {
        match name {
            LinkLayerName::Ethernet => Self::Ethernet,
            LinkLayerName::Infiniband => Self::Infiniband,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  softfabric record --count 60 -o gpu17.jsonl
  softfabric record --redis 127.0.0.1:6379 --count 60 -o leaf0.jsonl
  softfabric record --store /var/lib/softfabric --keep 7d
  softfabric diagnose gpu*.jsonl leaf*.jsonl --cables cables.txt";
