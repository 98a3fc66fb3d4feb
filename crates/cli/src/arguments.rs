//! What can be asked for, in clap's words. The help texts are the command line's documentation: the manual page,
//! `docs/command-line.md` and the shell completions are made from them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use softfabric_adapter::Rule;
use softfabric_fabric::headroom::CableLength;
use softfabric_units::{Bytes, Rate, Span};

use crate::benchmark::arguments::BenchmarkArguments;
use crate::commission::arguments::CommissionArguments;
use crate::compare::arguments::CompareArguments;
use crate::diagnose::arguments::DiagnoseArguments;
use crate::export::arguments::ExportArguments;
use crate::lint::arguments::LintArguments;
use crate::record::arguments::RecordArguments;
use crate::sm::arguments::SmArguments;
use crate::tune::arguments::TuneArguments;
use crate::watch::arguments::WatchArguments;
use crate::what_if::arguments::WhatIfArguments;

/// An RDMA fabric in software: simulate lossless RoCEv2 networks packet by packet, and run RDMA programs without RDMA
/// hardware.
#[derive(Parser)]
#[command(
    name = "softfabric",
    version,
    propagate_version = true,
    after_help = EXAMPLES,
    after_long_help = EXAMPLES,
    max_term_width = 100
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  softfabric run scenarios/incast.toml
      simulate, print a table, write an HTML report
  softfabric run W1.conf
      run a config file of the HPCC simulator as it is
  softfabric compare scenarios/incast.toml
      the same over TCP/IP, RoCEv2 and InfiniBand
  softfabric exec -- ib_write_bw
      run an RDMA program on software devices, as it is
  softfabric diagnose counters.jsonl
      who is to blame when pause counters rise
  softfabric watch --prometheus http://prometheus:9090
      a fabric on the screen: what is wrong, where, since when
  softfabric what-if pfc-off scenarios/storm_pfc_on.toml
      what turning PFC off would do to a storm
  softfabric lint config_db.json
      settings of switches and hosts that do not fit together
  softfabric headroom --rate 100Gb/s --cable 40m
      how much PFC headroom a port needs
  softfabric import hpcc W1.conf -o w1.toml
      turn another simulator's files into a scenario

Exit codes: 0 all well; 1 the run showed a failure; 2 misuse or bad input.";

#[derive(Subcommand)]
pub(crate) enum Command {
    Run(RunArguments),
    Compare(CompareArguments),
    Tune(TuneArguments),
    Exec(ExecArguments),
    Device(DeviceArguments),
    Ib(IbArguments),
    Sm(SmArguments),
    Diagnose(DiagnoseArguments),
    Watch(WatchArguments),
    Commission(CommissionArguments),
    Record(RecordArguments),
    WhatIf(WhatIfArguments),
    Lint(LintArguments),
    Export(ExportArguments),
    Benchmark(BenchmarkArguments),
    Headroom(HeadroomArguments),
    Import(ImportArguments),
    Schema(SchemaArguments),
    Presets(PresetsArguments),
    Counters(CountersArguments),
    Completions(CompletionsArguments),
    Man(ManArguments),
}

/// Simulate a scenario: a table in the terminal, a report in HTML.
///
/// Ctrl-C ends the run early and writes what there is; a second Ctrl-C ends it at once.
#[derive(Args)]
#[command(after_help = RUN_EXAMPLES, after_long_help = RUN_EXAMPLES)]
pub(crate) struct RunArguments {
    /// A scenario (.toml), a config file of the HPCC simulator (its outputs go where it says, too), or - to read a
    /// scenario from standard input.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,
    /// The seed of every random choice, in place of the scenario's.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How many threads simulate. The result is the same for any number.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: u16,
    /// Where the HTML report goes.
    #[arg(long, value_name = "FILE", default_value = "softfabric-report.html", value_hint = ValueHint::FilePath)]
    pub(crate) report: PathBuf,
    /// Write no HTML report.
    #[arg(long, conflicts_with = "report")]
    pub(crate) no_report: bool,
    /// Write everything as one JSON document; - is standard output, and moves the table to standard error.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Write tables as CSV files into this folder.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) csv: Option<PathBuf>,
    /// Poll the counters of all ports and write them into this file, which `softfabric diagnose` reads.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) counters: Option<PathBuf>,
    /// How often counters are polled.
    #[arg(long, value_name = "TIME", default_value = "100us", requires = "counters", value_parser = poll_interval)]
    pub(crate) poll: Span,
    /// Capture the frames of a port, both directions, as pcapng: leaf0:3 is port 3 of leaf0, leaf0:spine1 the one
    /// that leads to spine1. May be given more than once.
    #[arg(long, value_name = "PORT=FILE")]
    pub(crate) pcap: Vec<CaptureRequest>,
    /// Encode and decode every packet on its way, and compare: slower, and a test of the packet formats.
    #[arg(long)]
    pub(crate) check_wire: bool,
    /// No progress and no table. Failures are still named, on standard error.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const RUN_EXAMPLES: &str = "\
Examples:
  softfabric run scenarios/incast.toml
  softfabric run scenarios/incast.toml --seed 7 --report incast-7.html
  softfabric run scenarios/incast.toml --no-report --json - | jq .summary
  softfabric run scenarios/incast.toml --pcap s0:0=port.pcapng --csv tables
  softfabric run W1.conf

Exit codes:
  0  all well
  1  the run showed a failure: a lossless class dropped packets, a deadlock,
     failed flows
  2  misuse, bad input, or an output that could not be written";

/// Run a program on software RDMA devices: unmodified, without RDMA hardware, kernel modules or root.
///
/// The program finds a libibverbs of softfabric's, whose devices are the network interfaces of this host. They speak
/// RoCEv2, so the other end may be another softfabric, the kernel's soft-RoCE, or a NIC.
#[derive(Args)]
#[command(after_help = EXEC_EXAMPLES, after_long_help = EXEC_EXAMPLES)]
pub(crate) struct ExecArguments {
    /// Make a device only of this network interface. May be given more than once; without it, all that have an
    /// address are devices.
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) device: Vec<String>,
    /// Send between processes of this host over UDP, too.
    #[arg(long)]
    pub(crate) no_shared_memory: bool,
    /// Let packets on the wire meet a fault: drop, duplicate, reorder, delay=TIME, corrupt or mark, and behind colons
    /// when: p=1%, packets=3,7-9, opcode=RC_SEND*, at=send or at=receive. May be given more than once.
    #[arg(long, value_name = "RULE")]
    pub(crate) faults: Vec<Rule>,
    /// What chance says about faults: with the same seed it says the same. Without it a new one is taken, and shown.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Record the packets on the wire, as pcapng.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Send ECN-capable packets, and slow down when they come marked, as DCQCN does.
    #[arg(long)]
    pub(crate) dcqcn: bool,
    /// The program is one of InfiniBand's management (OpenSM, infiniband-diags): put it on the subnet that `softfabric ib
    /// serve` has under this name. Default: the one in IBSIM_SOCKNAME, or sim.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", require_equals = true, conflicts_with_all = ["device", "no_shared_memory", "faults", "seed", "pcap", "dcqcn"])]
    pub(crate) ib: Option<String>,
    /// With --ib, the node that it is on: name, description or GUID. Default: the one in SIM_HOST, or the first adapter.
    #[arg(long, value_name = "NODE", requires = "ib")]
    pub(crate) node: Option<String>,
    /// Say which library and devices the program gets.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// The program and its arguments, after --.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

const EXEC_EXAMPLES: &str = "\
Examples:
  softfabric exec -- ibv_devinfo
  softfabric exec -- ib_write_bw &
  softfabric exec -- ib_write_bw 127.0.0.1
  softfabric exec --device eth0 -- ibv_rc_pingpong -g 0 server.example
  softfabric exec --faults drop:p=1% --faults delay=2ms:opcode=RC_ACKNOWLEDGE \
      --pcap run.pcapng -- ib_send_bw 127.0.0.1
  softfabric exec --ib -- opensm
  softfabric exec --ib=lab --node H-00012 -- saquery

The exit code is that of the program, or 128 and the number of the signal that
ended it; 2 if it was not started.";

/// The RDMA devices that programs see under `softfabric exec`.
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct DeviceArguments {
    #[command(subcommand)]
    pub(crate) command: DeviceCommand,
}

#[derive(Subcommand)]
pub(crate) enum DeviceCommand {
    List(DeviceListArguments),
}

/// List the devices of this host with their GIDs.
#[derive(Args)]
#[command(after_help = DEVICE_EXAMPLES, after_long_help = DEVICE_EXAMPLES)]
pub(crate) struct DeviceListArguments {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const DEVICE_EXAMPLES: &str = "\
Examples:
  softfabric device list
  softfabric device list --json | jq -r '.[].name'";

/// An amount of data; a bare number is bytes, as MTUs are usually written.
fn bytes(text: &str) -> Result<Bytes, String> {
    if let Ok(bytes) = text.parse() {
        return Ok(Bytes::new(bytes));
    }
    text.parse::<Bytes>().map_err(|error| error.to_string())
}

/// How often something is polled: never is not often.
pub(crate) fn poll_interval(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    match span.is_zero() {
        true => Err("it must be longer than 0, such as 100us or 1s".to_owned()),
        false => Ok(span),
    }
}

/// A longer time: what a length of time can be, and `7d`, `12h` or `30min`.
pub(crate) fn age(text: &str) -> Result<Span, String> {
    /// No more whole days fit into a `Span`.
    const LONGEST_DAYS: u64 = 213;
    let scales = [("min", 60), ("h", 3_600), ("d", 86_400)];
    let longer = scales.iter().find_map(|&(unit, seconds)| {
        let number = text.trim().strip_suffix(unit)?.trim().parse::<u64>();
        Some(number.ok()?.saturating_mul(seconds))
    });
    match longer {
        Some(0) => Err("it must be longer than 0, such as 60s, 30min, 12h or 7d".to_owned()),
        Some(seconds) if seconds > LONGEST_DAYS * 86_400 => {
            Err(format!("it must be {LONGEST_DAYS}d or less"))
        }
        Some(seconds) => Ok(Span::seconds(seconds)),
        None => match text.parse::<Span>() {
            Ok(span) if !span.is_zero() => Ok(span),
            _ => {
                Err("it must be a length of time above 0, such as 60s, 30min, 12h or 7d".to_owned())
            }
        },
    }
}

/// A time of day with its date, in nanoseconds since 1970.
pub(crate) fn date(text: &str) -> Result<u64, String> {
    softfabric_store::unix_nanos(text).ok_or_else(|| {
        "it must be a date and a time with its zone, such as 2026-12-01T02:17:00Z or 2026-12-01T03:17:00+01:00".to_owned()
    })
}

/// `PORT=FILE`.
#[derive(Clone, Debug)]
pub(crate) struct CaptureRequest {
    pub(crate) port: String,
    pub(crate) file: PathBuf,
}

impl FromStr for CaptureRequest {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((port, file)) if !port.is_empty() && !file.is_empty() => Ok(Self {
                port: port.to_owned(),
                file: PathBuf::from(file),
            }),
            _ => Err("it must be PORT=FILE, such as leaf0:3=leaf0.pcapng".to_owned()),
        }
    }
}

/// How much PFC headroom a lossless priority needs, from speed, cable and MTU.
///
/// This is the calculation that SONiC ships its tables with.
#[derive(Args)]
#[command(after_help = HEADROOM_EXAMPLES, after_long_help = HEADROOM_EXAMPLES)]
pub(crate) struct HeadroomArguments {
    /// The port's speed.
    #[arg(long, value_name = "RATE", required_unless_present = "table")]
    pub(crate) rate: Option<Rate>,
    /// The length of the cable.
    #[arg(long, value_name = "LENGTH", required_unless_present = "table")]
    pub(crate) cable: Option<CableLength>,
    /// The largest frame of the port, which may be in the way of a pause frame. The platform says what is usual.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) mtu: Option<Bytes>,
    /// The largest packet of the lossless class, which may be half received. The platform says what is usual.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) lossless_mtu: Option<Bytes>,
    /// The switch: a name that `softfabric presets` lists.
    #[arg(long, value_name = "NAME", default_value = "sn5600")]
    pub(crate) platform: String,
    /// All speeds of the platform at 5, 40 and 300 m.
    #[arg(long, conflicts_with_all = ["rate", "cable"])]
    pub(crate) table: bool,
}

const HEADROOM_EXAMPLES: &str = "\
Examples:
  softfabric headroom --rate 100Gb/s --cable 40m
  softfabric headroom --rate 100Gb/s --cable 40m --mtu 9100 --platform sn2700
  softfabric headroom --table --platform sn2700";

/// Turn the files of another program into a scenario.
#[derive(Args)]
#[command(after_help = IMPORT_EXAMPLES, after_long_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArguments {
    /// What kind of files they are.
    pub(crate) kind: ImportKind,
    /// The files.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Where the scenario goes; - is standard output.
    #[arg(long, short, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// htsim, sonic: the rate of the links, where the files do not say it. Default: 100Gb/s.
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<Rate>,
    /// htsim: the delay of the links, where there is no topology. Default: 1us.
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<Span>,
    /// htsim: what `start` counts in. Its parser takes picoseconds, one of its programs microseconds. Default: ps.
    #[arg(long, value_name = "UNIT")]
    pub(crate) start_unit: Option<StartUnitName>,
    /// sonic: the length of the cables. Default: 40m.
    #[arg(long, value_name = "LENGTH")]
    pub(crate) cable: Option<CableLength>,
    /// sonic: the port whose settings count. Default: the first that has settings.
    #[arg(long, value_name = "NAME")]
    pub(crate) port: Option<String>,
    /// sonic: how many hosts the switch has in the scenario. Default: 8.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub(crate) hosts: Option<u32>,
}

const IMPORT_EXAMPLES: &str = "\
Examples:
  softfabric import hpcc W1.conf -o w1.toml
  softfabric import htsim leaf.topo incast.cm -o incast.toml
  softfabric import simai topology.txt -o ai.toml
  softfabric import sonic pg_profile_lookup.ini buffers.json qos.json \\
      --rate 400Gb/s --cable 5m -o switch.toml

SimAI's and SONiC's files have no traffic: the scenario needs a workload then.";

/// What an htsim file counts starts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StartUnitName {
    /// Picoseconds.
    Ps,
    /// Microseconds.
    Us,
}

/// Whose files they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportKind {
    /// A config file of the HPCC ns-3 simulator; it names the topology and the flows.
    Hpcc,
    /// A connection matrix (.cm) of htsim, and a topology (.topo) if there is one.
    Htsim,
    /// A topology of SimAI.
    Simai,
    /// Thresholds of a SONiC switch: pg_profile_lookup.ini, buffers.json, qos.json.
    Sonic,
}

/// Print the JSON schema of scenario files.
#[derive(Args)]
#[command(after_help = SCHEMA_EXAMPLES, after_long_help = SCHEMA_EXAMPLES)]
pub(crate) struct SchemaArguments {
    /// As JSON schema, or as a reference for people.
    #[arg(long, value_enum, default_value_t = SchemaFormat::Json)]
    pub(crate) format: SchemaFormat,
}

const SCHEMA_EXAMPLES: &str = "\
Examples:
  softfabric schema > scenario.schema.json
      for editors that complete and check TOML
  softfabric schema --format markdown
      every field with its meaning";

/// How the schema is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFormat {
    /// JSON schema.
    Json,
    /// Markdown.
    Markdown,
}

/// InfiniBand: emulated subnets for managers and diagnostics.
#[derive(Args)]
pub(crate) struct IbArguments {
    #[command(subcommand)]
    pub(crate) command: IbCommand,
}

#[derive(Subcommand)]
pub(crate) enum IbCommand {
    Serve(ServeArguments),
}

/// Serve an emulated InfiniBand subnet: OpenSM and infiniband-diags run on it, unmodified.
///
/// Programs join by `softfabric exec --ib`, or through ibsim's library, libumad2sim.so. Every switch and adapter has its agents; what a manager writes
/// into forwarding tables decides where packets go. Lines on standard input change links while it runs: down NODE:PORT,
/// up NODE:PORT; clients lists who is there, and congestion prints what a manager has set of congestion control, as a
/// table for scenarios.
#[derive(Args)]
#[command(after_help = SERVE_EXAMPLES, after_long_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArguments {
    /// The topology: a .net file of ibsim, what ibnetdiscover prints, or - to read it from standard input.
    #[arg(value_hint = ValueHint::FilePath, required_unless_present_any = ["fat_tree", "torus"])]
    pub(crate) topology: Option<PathBuf>,
    /// In place of a file: a full fat tree of three levels, of switches with this many ports.
    #[arg(long, value_name = "PORTS", conflicts_with_all = ["topology", "torus"])]
    pub(crate) fat_tree: Option<u8>,
    /// In place of a file: a torus, such as 4x4x4.
    #[arg(long, value_name = "SIZES", conflicts_with = "topology")]
    pub(crate) torus: Option<TorusSizes>,
    /// How many adapters each switch of the torus has.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "torus")]
    pub(crate) hosts: u8,
    /// The name of the server's sockets: programs look for the one in IBSIM_SOCKNAME, or for sim. The same holds here.
    #[arg(long, value_name = "NAME")]
    pub(crate) socket_name: Option<String>,
    /// Begin with this link down: a node by its name, description or GUID, and a port. May be given more than once.
    #[arg(long, value_name = "NODE:PORT")]
    pub(crate) link_down: Vec<String>,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  softfabric ib serve fabric.net
  softfabric ib serve --fat-tree 8 --link-down L1-00-00:5
  ibnetdiscover | softfabric ib serve - --socket-name copy

Programs, in another terminal; or with the LD_PRELOAD that the server prints:
  softfabric exec --ib -- opensm
  softfabric exec --ib --node H-00007 -- ibstat
  LD_PRELOAD=.../libumad2sim.so iblinkinfo";

/// The sizes of a torus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TorusSizes(pub(crate) Vec<u8>);

impl FromStr for TorusSizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sizes: Result<Vec<u8>, _> = text.split('x').map(str::parse).collect();
        sizes
            .map(Self)
            .map_err(|_| "a torus needs its sizes with x between them, such as 4x4x4".to_owned())
    }
}

/// List the platforms whose settings scenarios can name, or show one.
#[derive(Args)]
#[command(after_help = PRESETS_EXAMPLES, after_long_help = PRESETS_EXAMPLES)]
pub(crate) struct PresetsArguments {
    /// The preset to show with its values and their sources.
    pub(crate) name: Option<String>,
}

const PRESETS_EXAMPLES: &str = "\
Examples:
  softfabric presets
  softfabric presets sn5600";

/// Print the one table of counters, with the names of real systems.
#[derive(Args)]
pub(crate) struct CountersArguments {
    /// As a table, or as Markdown.
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    pub(crate) format: TextFormat,
}

/// How a text is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// For the terminal.
    Text,
    /// Markdown.
    Markdown,
}

/// Print a script that completes commands in a shell.
#[derive(Args)]
#[command(after_help = COMPLETIONS_EXAMPLES, after_long_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    pub(crate) shell: Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  softfabric completions bash > /etc/bash_completion.d/softfabric
  softfabric completions fish > ~/.config/fish/completions/softfabric.fish";

/// Print the manual page.
#[derive(Args)]
#[command(after_help = MAN_EXAMPLES, after_long_help = MAN_EXAMPLES)]
pub(crate) struct ManArguments {
    /// As a manual page, or as Markdown.
    #[arg(long, value_enum, default_value_t = ManualFormat::Roff)]
    pub(crate) format: ManualFormat,
}

const MAN_EXAMPLES: &str = "\
Examples:
  softfabric man > softfabric.1 && man ./softfabric.1";

/// How the manual is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ManualFormat {
    /// For `man`.
    Roff,
    /// Markdown.
    Markdown,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_hold_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn captures_name_a_port_and_a_file() {
        let request: CaptureRequest = "leaf0:3=a=b.pcapng".parse().unwrap();
        assert_eq!(request.port, "leaf0:3");
        assert_eq!(request.file, PathBuf::from("a=b.pcapng"));
        for wrong in ["leaf0:3", "=x", "leaf0="] {
            assert!(wrong.parse::<CaptureRequest>().is_err(), "{wrong}");
        }
    }
}
