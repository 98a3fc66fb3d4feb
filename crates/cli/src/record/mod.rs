//! `softfabric record`: the counters of this host's RDMA ports, as a recording.

pub(crate) mod arguments;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;

use softfabric_operations::recording::{Skipped, Writer};
use softfabric_operations::sources::linux::{self, LinuxPort};
use softfabric_operations::{LinkLayer, NodeKind, PortIndex, Topology, Width};
use softfabric_telemetry::Counter;
use softfabric_units::Time;

use self::arguments::RecordArguments;
use crate::clock::{self, Clock};
use crate::failure::Failure;
use crate::terminal;

/// Polls until the count is reached, or for ever.
///
/// # Errors
/// If there are no RDMA ports, or the output cannot be written.
pub(crate) fn run(arguments: &RecordArguments) -> Result<ExitCode, Failure> {
    let mut skipped = Skipped::default();
    let mut first = poll(&arguments.root, &[], &mut skipped)?;
    let chosen = arguments.link_layer.map(LinkLayer::from);
    let link_layer = chosen.or_else(|| first.first().map(|port| port.link_layer));
    let others = first.extract_if(.., |port| Some(port.link_layer) != link_layer);
    let others: Vec<String> = others.map(|port| port.name).collect();
    if chosen.is_none() && !others.is_empty() {
        terminal::warn(&format!(
            "{} are left out: a recording is of one link layer; --link-layer chooses it",
            others.join(", ")
        ));
    }
    if first.is_empty() {
        return Err(Failure::Arguments {
            problem: format!("there is no RDMA port below {}", arguments.root.display()),
            help: Some(
                "Is the driver loaded? `ls /sys/class/infiniband` shows its devices.".to_owned(),
            ),
        });
    }
    let node = match &arguments.node {
        Some(node) => node.clone(),
        None => hostname(),
    };
    let (topology, ports) = topology(&node, &first)?;
    let path = arguments.output.as_path();
    let unwritable = |error| Failure::unwritable(path, error);
    let out: Box<dyn Write> = if path == Path::new("-") {
        Box::new(io::stdout().lock())
    } else {
        Box::new(File::create(path).map_err(unwritable)?)
    };
    let of_ports: Vec<Vec<(Counter, Width)>> = first
        .iter()
        .map(|port| linux::widths(port.link_layer, port.rate))
        .collect();
    let widths = |port: PortIndex| {
        let place = ports.iter().position(|(_, known)| *known == port);
        place.map_or(&[][..], |place| of_ports[place].as_slice())
    };
    let about = format!("softfabric record on {node}");
    // Every line is flushed, so that whoever reads the file while it grows sees whole polls.
    let out = io::LineWriter::new(out);
    let mut writer = Writer::beginning(out, &topology, &about, clock::unix_nanos(), widths)
        .map_err(unwritable)?;
    let clock = Clock::start();
    let mut now = Some(first.clone());
    for number in 0..arguments.count.unwrap_or(u64::MAX) {
        let due = Time::ZERO + arguments.every * number;
        thread::sleep(clock::between(clock.now(), due));
        let time = clock.now();
        let polled = match now.take() {
            Some(first) => first,
            None => poll(&arguments.root, &first, &mut skipped)?,
        };
        for port in &polled {
            let found = ports.iter().find(|(name, _)| *name == port.name);
            if let Some((_, index)) = found {
                writer
                    .sample(*index, time, &port.sample)
                    .map_err(unwritable)?;
            }
        }
    }
    for reason in &skipped.first {
        terminal::warn(reason);
    }
    if skipped.lines > skipped.first.len() as u64 {
        terminal::warn(&format!(
            "{} values in all could not be read",
            skipped.lines
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of this host.
fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "host".to_owned(), |name| name.trim().to_owned())
}

/// The host and its ports: by the interface of Ethernet, which neighbours know, or by the device.
fn topology(
    node: &str,
    found: &[LinuxPort],
) -> Result<(Topology, Vec<(String, PortIndex)>), Failure> {
    let twice = |error: softfabric_operations::topology::TopologyError| Failure::Arguments {
        problem: error.to_string(),
        help: None,
    };
    let link_layer = found.first().map(|port| port.link_layer);
    let link_layer = link_layer.unwrap_or_default();
    let mut topology = Topology::new(link_layer);
    let host = topology.add_node(node, NodeKind::Host).map_err(twice)?;
    let mut ports = Vec::new();
    for port in found {
        let name = match port.interfaces.as_slice() {
            [interface] => interface,
            _ => &port.name,
        };
        let index = topology
            .add_port(host, format!("{node}:{name}"), port.rate)
            .map_err(twice)?;
        ports.push((port.name.clone(), index));
    }
    Ok((topology, ports))
}

/// All ports with what `ethtool` says of their interfaces. Their rates were those of `before`, if they were polled before.
fn poll(
    root: &Path,
    before: &[LinuxPort],
    skipped: &mut Skipped,
) -> Result<Vec<LinuxPort>, Failure> {
    let rate = |name: &str| before.iter().find(|port| port.name == name)?.rate;
    let mut ports = linux::ports(root, &rate, skipped)
        .map_err(|error| Failure::unreadable(&root.join("sys/class/infiniband"), error))?;
    for port in &mut ports {
        if let [interface] = port.interfaces.as_slice() {
            let told = linux::ethtool(&ethtool(root, interface), skipped);
            linux::combine(&mut port.sample, told);
        }
    }
    Ok(ports)
}

/// What `ethtool -S` prints: of this host, or a copy beside the files of another. Empty where there is none: the driver's
/// other counters are enough.
fn ethtool(root: &Path, interface: &str) -> String {
    if root == Path::new("/") {
        let output = Command::new("ethtool").args(["-S", interface]).output();
        output.map_or_else(
            |_| String::new(),
            |output| String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    } else {
        let copy = root.join("ethtool").join(format!("{interface}.txt"));
        fs::read_to_string(copy).unwrap_or_default()
    }
}
