//! `softfabric record`: the counters of this host's RDMA ports, or of a SONiC switch, as a recording.

pub(crate) mod arguments;
mod devices;
mod redis;
mod sink;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode};

use softfabric_operations::recording::Skipped;
use softfabric_operations::sources::linux::{self, LinuxPort};
use softfabric_operations::sources::sonic::{self, SonicPort};
use softfabric_operations::topology::TopologyError;
use softfabric_operations::{LinkLayer, NodeKind, PortIndex, PortSample, Topology, Width};
use softfabric_telemetry::Counter;
use softfabric_units::{Rate, Time};

use self::arguments::RecordArguments;
use self::redis::Redis;
use self::sink::{Pause, Sink};
use crate::clock::{self, Clock};
use crate::failure::Failure;
use crate::terminal;

/// Polls until the count is reached, or for ever.
///
/// # Errors
/// If there are no ports, the switch does not answer, or the output cannot be written.
pub(crate) fn run(arguments: &RecordArguments) -> Result<ExitCode, Failure> {
    record(arguments, None)?;
    Ok(ExitCode::SUCCESS)
}

/// Records into something else than a file: for whoever watches.
///
/// # Errors
/// If there are no ports, the switch does not answer, or nobody reads any more.
pub(crate) fn into(arguments: &RecordArguments, out: Box<dyn Write>) -> Result<(), Failure> {
    record(arguments, Some(out))
}

fn record(arguments: &RecordArguments, out: Option<Box<dyn Write>>) -> Result<(), Failure> {
    match &arguments.redis {
        Some(address) => switch(arguments, address, out),
        None if arguments.devices => software_devices(arguments, out),
        None => host(arguments, out),
    }
}

/// What one port says at one time, by its name.
type Polled = Vec<(String, PortSample)>;

fn host(arguments: &RecordArguments, out: Option<Box<dyn Write>>) -> Result<(), Failure> {
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
    let node = arguments.node.clone().unwrap_or_else(hostname);
    let found = first.iter().map(|port| {
        // By the interface of Ethernet, which neighbours know, or by the device.
        let name = match port.interfaces.as_slice() {
            [interface] => interface,
            _ => &port.name,
        };
        (port.name.as_str(), name.as_str(), port.rate)
    });
    let link_layer = link_layer.unwrap_or_default();
    let (topology, ports) = topology(link_layer, &node, NodeKind::Host, found)?;
    let widths: Vec<Vec<(Counter, Width)>> = first
        .iter()
        .map(|port| linux::widths(port.link_layer, port.rate))
        .collect();
    let samples = |ports: Vec<LinuxPort>| -> Polled {
        let ports = ports.into_iter();
        ports.map(|port| (port.name, port.sample)).collect()
    };
    let recorder = Recorder {
        arguments,
        node: &node,
        topology: &topology,
        ports: &ports,
        widths: &widths,
    };
    let begun = samples(first.clone());
    recorder.record(out, begun, skipped, &mut |skipped| {
        Ok(samples(poll(&arguments.root, &first, skipped)?))
    })
}

/// The software devices of this user.
fn software_devices(
    arguments: &RecordArguments,
    out: Option<Box<dyn Write>>,
) -> Result<(), Failure> {
    let unanswered = |error: io::Error| Failure::Arguments {
        problem: format!("the software devices: {error}"),
        help: None,
    };
    let first = devices::poll().map_err(unanswered)?;
    if first.is_empty() {
        return Err(Failure::Arguments {
            problem: "no software device answers".to_owned(),
            help: Some("`softfabric device list` shows them, and who has them open.".to_owned()),
        });
    }
    let node = arguments.node.clone().unwrap_or_else(hostname);
    let found = first
        .iter()
        .map(|(name, _)| (name.as_str(), name.as_str(), None));
    let (topology, ports) = topology(LinkLayer::Ethernet, &node, NodeKind::Host, found)?;
    let recorder = Recorder {
        arguments,
        node: &node,
        topology: &topology,
        ports: &ports,
        widths: &[],
    };
    recorder.record(out, first, Skipped::default(), &mut |_| {
        devices::poll().map_err(unanswered)
    })
}

/// A SONiC switch, through its Redis.
fn switch(
    arguments: &RecordArguments,
    address: &str,
    out: Option<Box<dyn Write>>,
) -> Result<(), Failure> {
    let unanswered = |error: io::Error| {
        Failure::Arguments {
        problem: format!("the Redis at {address}: {error}"),
        help: Some(
            "On a SONiC switch it listens on 127.0.0.1:6379: ssh -L 6379:127.0.0.1:6379 SWITCH makes it reachable.".to_owned(),
        ),
    }
    };
    let mut redis = Redis::connect(address).map_err(unanswered)?;
    let mut ask = |database: u8, key: &str| redis.hash(database, key);
    let mut skipped = Skipped::default();
    let told = sonic::hostname(&mut ask).map_err(unanswered)?;
    let Some(node) = arguments.node.clone().or(told) else {
        return Err(Failure::Arguments {
            problem: format!("the switch at {address} does not say its name"),
            help: Some("--node says how it is called in the recording.".to_owned()),
        });
    };
    let first = sonic::ports(&mut ask, &mut skipped).map_err(unanswered)?;
    if first.is_empty() {
        return Err(Failure::Arguments {
            problem: format!("there are no counters of ports in the Redis at {address}"),
            help: Some(
                "Is it a SONiC switch, and does `counterpoll show` say that they are on?"
                    .to_owned(),
            ),
        });
    }
    let found = first
        .iter()
        .map(|port| (port.name.as_str(), port.name.as_str(), port.rate));
    let (topology, ports) = topology(LinkLayer::Ethernet, &node, NodeKind::Switch, found)?;
    let samples = |ports: Vec<SonicPort>| -> Polled {
        let ports = ports.into_iter();
        ports.map(|port| (port.name, port.sample)).collect()
    };
    let recorder = Recorder {
        arguments,
        node: &node,
        topology: &topology,
        ports: &ports,
        widths: &[],
    };
    recorder.record(out, samples(first), skipped, &mut |skipped| {
        Ok(samples(
            sonic::ports(&mut ask, skipped).map_err(unanswered)?,
        ))
    })
}

/// Writes what is polled.
struct Recorder<'a> {
    arguments: &'a RecordArguments,
    node: &'a str,
    topology: &'a Topology,
    ports: &'a [(String, PortIndex)],
    /// How counters end, in the order of the ports; none where all have 64 bits.
    widths: &'a [Vec<(Counter, Width)>],
}

impl Recorder<'_> {
    fn record(
        &self,
        out: Option<Box<dyn Write>>,
        first: Polled,
        mut skipped: Skipped,
        poll: &mut dyn FnMut(&mut Skipped) -> Result<Polled, Failure>,
    ) -> Result<(), Failure> {
        let widths = |port: PortIndex| {
            let place = self.ports.iter().position(|(_, known)| *known == port);
            let widths = place.and_then(|place| self.widths.get(place));
            widths.map_or(&[][..], Vec::as_slice)
        };
        let about = format!("softfabric record on {}", self.node);
        let start = clock::unix_nanos();
        let mut sink = Sink::begin(self.arguments, out, self.topology, &about, start, widths)?;
        let pause = Pause::new(self.arguments.store.is_some());
        let clock = Clock::start();
        let mut now = Some(first);
        let mut failed = None;
        for number in 0..self.arguments.count.unwrap_or(u64::MAX) {
            let due = Time::ZERO + self.arguments.every * number;
            if pause.until(&clock, due).is_interrupted() {
                break;
            }
            let time = clock.now();
            let polled = match now.take().map_or_else(|| poll(&mut skipped), Ok) {
                Ok(polled) => polled,
                Err(failure) => {
                    failed = Some(failure);
                    break;
                }
            };
            for (name, sample) in &polled {
                let found = self.ports.iter().find(|(known, _)| known == name);
                if let Some((_, index)) = found {
                    sink.sample(*index, time, sample)?;
                }
            }
        }
        // What was polled before is kept, whatever came after it.
        sink.finish()?;
        if let Some(failure) = failed {
            return Err(failure);
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
        Ok(())
    }
}

/// The name of this host.
fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "host".to_owned(), |name| name.trim().to_owned())
}

/// The node and its ports: of each what polls call it, what it is called behind the name of the node, and its rate.
fn topology<'a>(
    link_layer: LinkLayer,
    node: &str,
    kind: NodeKind,
    found: impl Iterator<Item = (&'a str, &'a str, Option<Rate>)>,
) -> Result<(Topology, Vec<(String, PortIndex)>), Failure> {
    let twice = |error: TopologyError| Failure::Arguments {
        problem: error.to_string(),
        help: None,
    };
    let mut topology = Topology::new(link_layer);
    let owner = topology.add_node(node, kind).map_err(twice)?;
    let mut ports = Vec::new();
    for (polled, name, rate) in found {
        let place = topology
            .add_port(owner, format!("{node}:{name}"), rate)
            .map_err(twice)?;
        ports.push((polled.to_owned(), place));
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
