//! What `softfabric sm` can be asked for.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use softfabric_subnet::routing::{Dfsssp, FatTree, MinHop, Nue, RoutingEngine, Torus, UpDown};

/// Manage an InfiniBand subnet: discover it, route it, program it, answer its queries, repair it.
///
/// It joins a server of ibsim's protocol, as `softfabric ib serve` and ibsim are, and stays. A line is printed whenever the
/// subnet is up: after the first sweep, and after each repair. Programs that ask the subnet manager, such as saquery and
/// sminfo, ask this one.
#[derive(Args)]
#[command(after_help = SM_EXAMPLES, after_long_help = SM_EXAMPLES)]
pub(crate) struct SmArguments {
    /// The name of the server's sockets. Default: the one in IBSIM_SOCKNAME, or sim.
    #[arg(long, value_name = "NAME")]
    pub(crate) socket_name: Option<String>,
    /// The node that it runs on. Default: the one in SIM_HOST, or where the server puts programs.
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// How packets are routed.
    #[arg(long, value_enum, value_name = "ENGINE", default_value_t = EngineName::MinHop)]
    pub(crate) routing: EngineName,
    /// dfsssp, nue: how many data lanes they may use. Default: 8, and 4 for nue.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=15))]
    pub(crate) lanes: Option<u8>,
    /// Ports of adapters get 2 to the power of this identifiers.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=7))]
    pub(crate) lmc: u8,
    /// Who may talk to whom: lines such as `storage=0x8001, sl=3 : SELF=full, 0x100001=full, 0x100003=limited;`, as in OpenSM's
    /// partitions.conf. Ports get their keys, and switches drop what comes to a host from other partitions. Without it,
    /// tables of partitions stay as they are.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) partitions: Option<PathBuf>,
    /// Lanes of ports, their turns, and congestion control: lines such as `qos TRUE`, `qos_sl2vl 0,1,…`,
    /// `congestion_control TRUE` and `cc_cct 0:0,0:1`, as in OpenSM's file of options. Options of other things are not read,
    /// and named. Without it, congestion control stays as it is, and without `--qos-policy`, too, lanes are only what the
    /// routing engine needs.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) options: Option<PathBuf>,
    /// Which traffic has which service level, for whoever asks for a path: a file of TOML with `[[level]]` (`name`, `sl`) and
    /// `[[rule]]` (`level`, and `partitions`, `services`, `classes`, `sources`, `destinations`); the first rule that fits
    /// decides, and a partition's `sl=` where none does. Without `--options`, lanes and their turns are OpenSM's where nothing is
    /// said.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) qos_policy: Option<PathBuf>,
    /// Among several managers, the one with the highest priority manages, and the others stand by.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=15))]
    pub(crate) priority: u8,
    /// How many seconds to wait before all switches are asked whether something has changed, in case a trap was lost; 0:
    /// they are never asked.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) sweep: u16,
    /// How many requests may be on their way at once.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) window: u16,
    /// End when the subnet is up.
    #[arg(long)]
    pub(crate) once: bool,
    /// Whenever the subnet is up, write its tables into this folder, as OpenSM dumps them: guid2lid, opensm-lfts.dump,
    /// opensm.fdbs, opensm.mcfdbs, opensm-subnet.lst, opensm-sl2vl.dump, and what ibdmchk reads of levels and lanes.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dump_folder: Option<PathBuf>,
    /// Print no lines. Problems are still named, on standard error.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const SM_EXAMPLES: &str = "\
Examples:
  softfabric ib serve --fat-tree 8 &
  softfabric sm --once --routing fat-tree
  softfabric sm --routing nue --lanes 2 --dump-folder tables
  softfabric sm --options opensm.conf --qos-policy qos.toml

Judge the tables for credit loops, with Debian's ibutils:
  cd tables; ibdmchk -s opensm-subnet.lst -f opensm.fdbs -m opensm.mcfdbs \\
      -c ibdmchk.levels -d ibdmchk.lanes

A policy, for --qos-policy:
  [[level]]
  name = \"storage\"
  sl = 3
  [[rule]]
  level = \"storage\"
  partitions = [0x8001]
  services = [0x10cc, \"0x1000-0x1fff\"]

Exit codes:
  0  the subnet was up, or Ctrl-C ended the manager
  1  the subnet cannot be managed as asked, or the server is gone
  2  misuse, or no server";

/// A routing engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// Shortest paths, balanced; packets can lock each other up where the cables make rings.
    #[value(alias = "minhop")]
    MinHop,
    /// Up towards roots, then down.
    #[value(alias = "updn")]
    UpDown,
    /// Up by destination, then down; around lost cables.
    #[value(alias = "ftree")]
    FatTree,
    /// Shortest paths, over as many lanes as it takes not to lock up.
    Dfsssp,
    /// Dimension after dimension, with a second lane behind each ring's dateline.
    #[value(alias = "torus-2qos")]
    Torus,
    /// Any graph, with any number of lanes.
    Nue,
}

impl EngineName {
    pub(super) fn engine(self, lanes: Option<u8>) -> Box<dyn RoutingEngine + Send> {
        match self {
            Self::MinHop => Box::new(MinHop),
            Self::UpDown => Box::new(UpDown::default()),
            Self::FatTree => Box::new(FatTree::default()),
            Self::Dfsssp => Box::new(lanes.map_or_else(Dfsssp::default, |lanes| Dfsssp { lanes })),
            Self::Torus => Box::new(Torus),
            Self::Nue => Box::new(lanes.map_or_else(Nue::default, |lanes| Nue { lanes })),
        }
    }
}
