//! The arguments of `softfabric watch`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use softfabric_units::Span;

use crate::diagnose::arguments::LldpTable;
use crate::diagnose::prometheus::{self, Access, Url};

/// Watch a fabric: what is wrong now, where it comes from, since when, and what every port does.
///
/// Looks at the counters again and again, follows pauses to their source as `softfabric diagnose` does, and keeps a timeline of
/// what began and ended. In a terminal this is a full screen; into a pipe or a file goes a line whenever something begins, changes
/// or ends. With --listen it is a page for a browser, too, also for a phone's. Without a source, this host's RDMA ports are
/// watched.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct WatchArguments {
    /// A recording (of `softfabric record` or `run --counters`), which may still grow; several, as parts of one fabric; a store of
    /// `softfabric record --store`; a scenario (.toml), which is simulated first; or - for a recording on standard input.
    #[arg(value_hint = ValueHint::FilePath, conflicts_with_all = ["prometheus", "redis", "devices", "root"])]
    pub(crate) source: Vec<PathBuf>,
    /// Watch what a Prometheus has scraped: https://HOST:PORT or http://, with a path before /api if it has one.
    #[arg(long, value_name = "URL", value_parser = prometheus::url, conflicts_with = "redis")]
    pub(crate) prometheus: Option<Url>,
    #[command(flatten)]
    pub(crate) access: Access,
    /// Watch a SONiC switch: the address of its Redis.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "root")]
    pub(crate) redis: Option<String>,
    /// Watch this user's software devices.
    #[arg(long, conflicts_with_all = ["prometheus", "redis", "root"])]
    pub(crate) devices: bool,
    /// Watch the RDMA ports whose files are below this folder. Default: this host's.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,
    /// How often counters are polled. Default: 1s; 15s of a Prometheus, 100us of a scenario.
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::poll_interval)]
    pub(crate) every: Option<Span>,
    /// How far back the diagnosis looks. Default: 60 polls, and at least 20ms.
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::poll_interval)]
    pub(crate) window: Option<Span>,
    /// Replay a recording or scenario from its beginning, so many times as fast as it was: 0.001 makes a second of a millisecond.
    /// Default: it is gone through at once, and watched from its end on.
    #[arg(long, value_name = "FACTOR", value_parser = speed, conflicts_with_all = ["prometheus", "redis", "devices", "root", "once"])]
    pub(crate) speed: Option<f64>,
    /// Compare with what was measured at commissioning: a file of `softfabric commission`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) baseline: Option<PathBuf>,
    /// Serve the page at http://ADDRESS/, such as 127.0.0.1:9750; port 0 takes a free one, which is printed. Whoever reaches the
    /// address can read it: there is no password.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once")]
    pub(crate) listen: Option<SocketAddr>,
    /// Print what there is to see, and exit.
    #[arg(long)]
    pub(crate) once: bool,
    /// With --once, as JSON: the document that the page gets.
    #[arg(long, requires = "once")]
    pub(crate) json: bool,
    /// Cables that the source does not tell: a file with the names of two ports on each line.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cables: Vec<PathBuf>,
    /// Cables from a switch's LLDP table (show lldp table): the switch's name and a file. May be given more than once.
    #[arg(long, value_name = "SWITCH=FILE")]
    pub(crate) lldp: Vec<LldpTable>,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
        _ => Err("it must be a number above 0, such as 1 or 0.001".to_owned()),
    }
}

const EXAMPLES: &str = "\
Examples:
  softfabric watch scenarios/diagnose_host_storm.toml --speed 0.001
      a storm in slow motion: 20 ms in 20 s
  softfabric record --redis 127.0.0.1:6379 -o leaf0.jsonl &
  softfabric watch leaf0.jsonl
      while it is being recorded
  softfabric watch --prometheus http://prometheus:9090 --listen 127.0.0.1:9750
      a whole fabric, on the screen and in a browser
  softfabric watch --prometheus http://prometheus:9090 --baseline baseline.json
      what differs from the day of commissioning, too
  softfabric watch gpu*.jsonl leaf*.jsonl --cables cables.txt --once
      look once

On the screen: arrows choose an entry of the timeline, Enter shows its evidence,
p holds a replay, q ends.

Exit codes:
  0  nothing in the fabric is wrong, or it was ended by q or Ctrl-C
  1  something is
  2  misuse, bad input, or counters that do not suffice for a verdict";
