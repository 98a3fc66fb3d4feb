//! `cargo xtask kernel-interop`: the Linux kernel's own soft-RoCE and softfabric as each other's peer.
//!
//! ```text
//! network and process namespace of this run (gone with its last process)
//!
//!   programs on the host ── softfabric0 ── rxe-bridge ── tap ── guest: eth0 ── rxe0 ── programs in the guest
//!       │                    10.77.0.1, fd77::1                 10.77.0.11, fd77::11        │
//!       └── traffic.py ◄──────────── agree over TCP on each case ────────────► traffic.py ──┘
//! ```
//!
//! Each case is run in both directions. The guest is booted once (`tools/rxe-vm`); cases share nothing else, and each has
//! a time limit.

mod cases;
mod guest;
mod programs;
mod report;
mod traffic;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::counts;
use crate::library;
use crate::process::{self, is_installed, target_folder};
use crate::steps::Outcome;
use cases::Work;
use guest::{Build, Guest};
use report::{Ending, Report};

/// What is asked for on the command line.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Only cases whose name contains one of these.
    pub(crate) names: Vec<String>,
    /// Also the cases that take longer.
    #[arg(long)]
    pub(crate) full: bool,
    /// Only list the cases.
    #[arg(long)]
    pub(crate) list: bool,
    /// The namespaces are made: run the cases in them.
    #[arg(long, hide = true)]
    inside: bool,
}

/// Runs the cases and prints the table; says whether all passed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if options.list {
        for run in cases::runs(options.full, &options.names) {
            println!("{run}");
        }
        return Ok(true);
    }
    if options.inside {
        return inside(options);
    }
    attempt(options)?.into_verdict()
}

/// The step of `cargo xtask test`: the cases, or a word why not.
pub(crate) fn step(full: bool) -> Result<Outcome> {
    attempt(&Options {
        full,
        ..Options::default()
    })
}

fn attempt(options: &Options) -> Result<Outcome> {
    if let Some(missing) = missing() {
        return Ok(Outcome::Skipped(missing));
    }
    if cases::runs(options.full, &options.names).is_empty() {
        bail!("no case has such a name; `cargo xtask kernel-interop --list` shows them");
    }
    let folder = folders()?;
    if let Build::Unavailable(reason) = guest::build(&folder.guest)? {
        return Ok(Outcome::Skipped(reason));
    }
    library::in_folder(LIBRARY)?;
    let finished = process::run(&mut namespaces(options)?)?;
    let counts = counts::read(&finished.output);
    Ok(Outcome::tests(counts, finished.success))
}

/// Where the drop-in library is, under cargo's target folder.
const LIBRARY: &str = "kernel-interop/library";

/// Where things are.
struct Folders {
    /// The guest's image, and its shared folder.
    guest: PathBuf,
    /// The drop-in library, under the name that programs look for.
    library: PathBuf,
}

fn folders() -> Result<Folders> {
    let target = target_folder()?;
    Ok(Folders {
        guest: target.join("rxe-vm"),
        library: target.join(LIBRARY),
    })
}

/// What is not there, of this machine or of Debian's packages.
fn missing() -> Option<String> {
    if std::env::consts::ARCH != "x86_64" {
        return Some("the guest is made of packages for amd64".to_owned());
    }
    let programs = [
        ("apt-get", "the guest is made of Debian's packages"),
        ("dpkg-deb", "the guest is made of Debian's packages"),
        ("ip", "apt-get install iproute2"),
        ("setpriv", "apt-get install util-linux"),
        ("rping", "apt-get install rdmacm-utils"),
        ("ib_write_bw", "apt-get install perftest"),
        (guest::PYVERBS, "apt-get install python3-pyverbs"),
        ("/dev/net/tun", "no tap device can be made"),
    ];
    for (program, remedy) in programs {
        if !is_installed(program) && !Path::new(program).exists() {
            return Some(format!("{program} is not there ({remedy})"));
        }
    }
    let tried = isolated()
        .arg("true")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string());
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!(
            "namespaces cannot be made (it takes root): {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Some(format!("namespaces cannot be made: {error}")),
    }
}

/// A command in namespaces of its own. They are gone with their last process, and all processes in them end with the one
/// that started them, however it ends.
fn isolated() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "unshare"]);
    if !is_root() {
        command.arg("--map-root-user");
    }
    command
        .args([
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child=KILL",
            "--",
        ])
        // What is under /sys and /proc is that of the namespaces where it was mounted.
        .args(["sh", "-c"])
        .arg("mount -t sysfs sysfs /sys && mount -t proc proc /proc && exec \"$@\"")
        .arg("sh");
    command
}

/// This program again, in namespaces of its own.
fn namespaces(options: &Options) -> Result<Command> {
    let mut command = isolated();
    command
        .arg(std::env::current_exe().context("this program's own path")?)
        .args(["kernel-interop", "--inside"])
        .args(options.full.then_some("--full"))
        .args(&options.names);
    Ok(command)
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

/// Boots the guest and runs the cases.
fn inside(options: &Options) -> Result<bool> {
    let folder = folders()?;
    let mut guest = Guest::boot(&folder.guest, &folder.library)?;
    let mut report = Report::default();
    for run in cases::runs(options.full, &options.names) {
        guest.set_mtu(run.case.mtu)?;
        #[expect(clippy::disallowed_methods, reason = "cases take real time")]
        let begun = Instant::now();
        let mut once = || {
            let ending = match &run.case.work {
                Work::Traffic { .. } => traffic::run(&mut guest, &run),
                Work::Programs { .. } => programs::run(&guest, &run),
            };
            ending.unwrap_or_else(|error| Ending::Failed(format!("{error:#}")))
        };
        // What failed attempts found is shown whatever becomes of the last.
        let mut found = Vec::new();
        let ending = loop {
            match once() {
                Ending::Failed(now) => {
                    let may_go_on = found.len() + 1 < run.case.attempts(&now);
                    found.push(now);
                    if !may_go_on {
                        break Ending::Failed(found.join("\nand then: "));
                    }
                }
                Ending::Passed if !found.is_empty() => break Ending::PassedAgain(found),
                other => break other,
            }
        };
        report.note(&run, ending, begun.elapsed());
    }
    print!("{}", report.summary());
    Ok(report.is_good())
}
