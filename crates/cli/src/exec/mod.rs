//! `softfabric exec`: a program on software RDMA devices, as it is.
//!
//! ```text
//! arguments ─► settings ─► environment ─┐
//! library (carried, unpacked) ──────────┴─► the program ─► its exit code
//! ```
//!
//! The program finds the drop-in `libibverbs.so.1` before any other, and in it the settings of this run. The library
//! answers for the files of devices, too. With `--ib`, it finds the drop-in `libibumad.so.3` instead, on the subnet of a
//! `softfabric ib serve`. Nothing outside the program's own environment is changed.

mod library;
mod program;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use softfabric_adapter::{CongestionControl, DeviceInfo, HostError, Settings, VARIABLE, devices};
use softfabric_subnet::ibsim::{NAME_VARIABLE, NODE_VARIABLE};
use softfabric_subnet::umad::{FromServer, ToServer, socket_name};

use crate::arguments::ExecArguments;
use crate::failure::Failure;
use crate::ib::names;
use crate::terminal::{FAINT, Stream};

/// How long the server of a subnet may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the program and returns its own exit code; 128 and the number of a signal that ended it.
///
/// # Errors
/// If the program or an interface is not there, or there is no place for the library.
pub(crate) fn exec(arguments: &ExecArguments) -> Result<ExitCode, Failure> {
    let (name, rest) = arguments
        .program
        .split_first()
        .expect("the command line asks for a program");
    let program = program::find(name)?;
    if let Some(subnet) = &arguments.ib {
        let subnet = names::of_server(Some(subnet));
        return run(&mut on_subnet(arguments, &subnet, &program, rest)?);
    }
    let settings = settings(arguments)?;
    let devices = devices(&settings).map_err(|error| refusal(&error))?;
    let library = library::unpack(&library::VERBS)?;
    if !settings.faults.is_empty() {
        announce_faults(&settings);
    }
    if arguments.verbose {
        announce(&devices, &library);
    }
    let mut command = Command::new(&program);
    command
        .args(rest)
        .env(VARIABLE, settings.to_json())
        .env("LD_PRELOAD", joined(&library, "LD_PRELOAD"));
    run(&mut command)
}

/// Runs a program to its end.
fn run(command: &mut Command) -> Result<ExitCode, Failure> {
    // Ctrl-C reaches the program, too, and it is for the program to decide.
    let _ = ctrlc::set_handler(|| {});
    let status = command.status().map_err(|error| Failure::Arguments {
        problem: format!(
            "{} does not start: {error}",
            command.get_program().display()
        ),
        help: None,
    })?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::from(code as u8),
        (None, Some(signal)) => ExitCode::from(128_u8.wrapping_add(signal as u8)),
        (None, None) => ExitCode::FAILURE,
    })
}

/// The program on an emulated InfiniBand subnet: it finds our libibumad before any other.
fn on_subnet(
    arguments: &ExecArguments,
    subnet: &str,
    program: &Path,
    rest: &[OsString],
) -> Result<Command, Failure> {
    let node = names::of_node(arguments.node.as_deref());
    match describe(subnet, node.clone()) {
        Ok(FromServer::Refused(problem)) => {
            return Err(Failure::Arguments {
                problem,
                help: Some("A node is named by its name, its description or its GUID.".to_owned()),
            });
        }
        Ok(_) => {}
        Err(error) => {
            return Err(Failure::Arguments {
                problem: format!("no subnet is served as {subnet:?}: {error}"),
                help: Some(format!(
                    "Start one first: softfabric ib serve --socket-name {subnet} --fat-tree 4"
                )),
            });
        }
    }
    let library = library::unpack(&library::UMAD)?;
    if arguments.verbose {
        let text = format!("{FAINT}softfabric: {}{FAINT:#}\n", library.display());
        let _ = Stream::Error.print(&text);
    }
    let folder = library.parent().unwrap_or(&library);
    let mut command = Command::new(program);
    command
        .args(rest)
        .env(NAME_VARIABLE, subnet)
        .env(NODE_VARIABLE, node)
        .env("LD_LIBRARY_PATH", joined(folder, "LD_LIBRARY_PATH"));
    Ok(command)
}

/// What the server of a subnet says of a node.
fn describe(subnet: &str, node: String) -> io::Result<FromServer> {
    let name = SocketAddr::from_abstract_name(socket_name(subnet))?;
    let mut stream = UnixStream::connect_addr(&name)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&ToServer::Describe { node }.encode())?;
    FromServer::read(&mut stream)
}

fn settings(arguments: &ExecArguments) -> Result<Settings, Failure> {
    let recording = arguments.pcap.as_deref().map(writable).transpose()?;
    Ok(Settings {
        interfaces: arguments.device.clone(),
        shared_memory: !arguments.no_shared_memory,
        faults: arguments.faults.clone(),
        seed: arguments.seed.unwrap_or_else(fresh_seed),
        recording,
        congestion_control: if arguments.dcqcn {
            CongestionControl::Dcqcn
        } else {
            CongestionControl::Off
        },
        ..Settings::default()
    })
}

/// The program may change its folder: the recording's path is made absolute. It must be possible to write it.
fn writable(path: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(path).map_err(|error| Failure::unwritable(path, error))?;
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&absolute)
        .map_err(|error| Failure::unwritable(path, error))?;
    Ok(absolute)
}

/// A seed that differs from run to run, short enough to be typed.
#[allow(
    clippy::disallowed_methods,
    reason = "the clock only makes a seed, which is shown"
)]
fn fresh_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since.map_or(1, |since| since.as_nanos() as u64);
    (nanos ^ u64::from(std::process::id()).wrapping_mul(0x9e37_79b9)) % 1_000_000
}

fn announce_faults(settings: &Settings) {
    let faults: Vec<String> = settings.faults.iter().map(ToString::to_string).collect();
    let text = format!(
        "softfabric: faults {} with --seed {}\n",
        faults.join(" "),
        settings.seed
    );
    let _ = Stream::Error.print(&text);
}

/// A path first, then what a variable has already.
fn joined(path: &Path, variable: &str) -> OsString {
    let mut list = path.as_os_str().to_owned();
    if let Some(before) = std::env::var_os(variable).filter(|before| !before.is_empty()) {
        list.push(":");
        list.push(before);
    }
    list
}

fn announce(devices: &[DeviceInfo], library: &Path) {
    let mut text = format!("{FAINT}softfabric: {}\n", library.display());
    for device in devices {
        let addresses: Vec<String> = device
            .gids
            .iter()
            .map(|entry| entry.ip.to_string())
            .collect();
        text.push_str(&format!(
            "softfabric: {} on {}: {}\n",
            device.name,
            device.netdev,
            addresses.join(", ")
        ));
    }
    text.push_str(&format!("{FAINT:#}"));
    let _ = Stream::Error.print(&text);
}

/// What is wrong with the interfaces, for a person.
pub(crate) fn refusal(error: &HostError) -> Failure {
    Failure::Arguments {
        problem: error.to_string(),
        help: Some("`softfabric device list` shows the devices of this host.".to_owned()),
    }
}
