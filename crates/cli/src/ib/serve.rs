//! `softfabric ib serve`: one thread, which waits for control messages, datagrams, streams, and lines on standard input.

use std::fmt::Write as _;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use softfabric_fabric::scenario::CongestionSettings;
use softfabric_fabric::subnet::congestion::Programmed;
use softfabric_subnet::agent::Fabric;
use softfabric_subnet::ibsim::{DEFAULT_NAME, NAME_VARIABLE, Server};
use softfabric_subnet::umad::UserId;
use softfabric_subnet::{PortRef, Subnet};

use super::sockets::Sockets;
use super::streams::Streams;
use super::{find_port, names, topology};
use crate::arguments::ServeArguments;
use crate::clock::{Clock, between};
use crate::failure::Failure;
use crate::terminal;

/// Where Debian has the library that programs join with.
const LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so",
    "/usr/lib/aarch64-linux-gnu/umad2sim/libumad2sim.so",
    "/usr/lib/umad2sim/libumad2sim.so",
];
/// The longest line of standard input.
const LONGEST_LINE: usize = 4_096;

/// Serves until it is ended.
///
/// # Errors
/// If the topology is wrong, or the name is taken.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<ExitCode, Failure> {
    let subnet = topology(arguments)?;
    let down = arguments.link_down.iter().map(|text| {
        find_port(&subnet, text).map_err(|problem| Failure::Arguments {
            problem: format!("--link-down: {problem}"),
            help: None,
        })
    });
    let down = down.collect::<Result<Vec<PortRef>, _>>()?;
    let name = names::of_server(arguments.socket_name.as_deref());
    let mut sockets = Sockets::bind(&name)?;
    let mut streams = Streams::bind(&name)?;
    let clock = Clock::start();
    let greeting = greeting(&subnet, &name);
    let mut links = Links::default();
    let mut server = Server::new(Fabric::new(subnet));
    for port in down {
        links.take_down(&mut server, port);
    }
    terminal::print(&greeting)?;
    let failed = |error: io::Error| Failure::Arguments {
        problem: format!("the server's sockets fail: {error}"),
        help: None,
    };
    let reads_input = arguments.topology.as_deref() != Some(Path::new("-"));
    let mut input = Input::new(reads_input);
    loop {
        let patience = server
            .poll_user_timeout()
            .map(|due| between(clock.now(), due));
        let ready = wait(&sockets, &streams, &input, patience).map_err(failed)?;
        if ready.control {
            for remark in sockets.serve_control(&mut server).map_err(failed)? {
                terminal::warn(&remark);
            }
        }
        for slot in ready.slots {
            sockets.receive(&mut server, slot);
        }
        if ready.listener {
            streams.accept(&mut server);
        }
        for stream in ready.streams {
            streams.receive(&mut server, stream, clock.now());
        }
        server.handle_user_timeout(clock.now());
        if ready.input {
            for line in input.lines() {
                match links.obey(&mut server, &line) {
                    Ok(text) => terminal::print(&text)?,
                    Err(problem) => terminal::warn(&problem),
                }
            }
        }
        sockets.transmit(&mut server);
        while streams.transmit(&mut server) {
            sockets.transmit(&mut server);
        }
    }
}

fn greeting(subnet: &Subnet, name: &str) -> String {
    let switches = subnet.nodes().filter(|(_, node)| node.is_switch()).count();
    let adapters = subnet.nodes().len() - switches;
    let links = subnet.cables().count();
    let library = LIBRARIES.iter().find(|path| Path::new(path).is_file());
    let mut text = format!(
        "{switches} switches, {adapters} adapters and {links} links are served as {name:?}.\n"
    );
    let variable = if name == DEFAULT_NAME {
        String::new()
    } else {
        format!("{NAME_VARIABLE}={name} ")
    };
    let preload = library.copied().unwrap_or("libumad2sim.so");
    let _ = writeln!(
        text,
        "Programs join with: softfabric exec --ib={name} -- opensm, or with {variable}LD_PRELOAD={preload} opensm"
    );
    if library.is_none() {
        text.push_str(
            "libumad2sim.so is not installed: Debian has it in the package libumad2sim0.\n",
        );
    }
    text
}

/// What waits.
struct Ready {
    control: bool,
    slots: Vec<usize>,
    listener: bool,
    streams: Vec<UserId>,
    input: bool,
}

/// Waits until something is ready, or `patience` is over.
fn wait(
    sockets: &Sockets,
    streams: &Streams,
    input: &Input,
    patience: Option<Duration>,
) -> io::Result<Ready> {
    let stdin = io::stdin();
    let mut wanted = vec![
        PollFd::new(&sockets.control, PollFlags::IN),
        PollFd::new(
            &streams.listener,
            if streams.takes_more() {
                PollFlags::IN
            } else {
                PollFlags::empty()
            },
        ),
    ];
    let mut numbers = Vec::new();
    for (number, slot) in sockets.slots.iter().enumerate() {
        if slot.connected {
            let flags = if slot.waiting.is_empty() {
                PollFlags::IN
            } else {
                PollFlags::IN | PollFlags::OUT
            };
            numbers.push(number);
            wanted.push(PollFd::new(&slot.socket, flags));
        }
    }
    for stream in streams.streams.values() {
        let flags = if stream.is_waiting() {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        wanted.push(PollFd::new(&stream.socket, flags));
    }
    if input.open {
        wanted.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
    }
    let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
    match poll(&mut wanted, patience.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
    Ok(Ready {
        control: is_ready(&wanted[0]),
        slots: numbers
            .iter()
            .zip(&wanted[2..])
            .filter(|(_, fd)| is_ready(fd))
            .map(|(number, _)| *number)
            .collect(),
        listener: is_ready(&wanted[1]),
        streams: streams
            .streams
            .keys()
            .zip(&wanted[2 + numbers.len()..])
            .filter(|(_, fd)| is_ready(fd))
            .map(|(id, _)| *id)
            .collect(),
        input: input.open && wanted.last().is_some_and(is_ready),
    })
}

/// Lines on standard input, until that ends.
struct Input {
    open: bool,
    text: Vec<u8>,
}

impl Input {
    const fn new(open: bool) -> Self {
        Self {
            open,
            text: Vec::new(),
        }
    }

    /// Reads what is there, and returns the lines that are whole.
    fn lines(&mut self) -> Vec<String> {
        let mut bytes = [0; 1_024];
        match rustix::io::read(io::stdin(), &mut bytes) {
            Ok(0) | Err(_) => self.open = false,
            Ok(length) => self.text.extend(&bytes[..length]),
        }
        let mut lines = Vec::new();
        while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.text.drain(..=end).collect();
            lines.push(String::from_utf8_lossy(&line).trim().to_owned());
        }
        if self.text.len() > LONGEST_LINE {
            self.text.clear();
        }
        lines
    }
}

/// What a manager has set of congestion control, as a table of a scenario, and an empty line after it.
fn congestion(fabric: &Fabric) -> Result<String, String> {
    let found = Programmed::read(fabric).map_err(|error| error.to_string())?;
    let alike = found.alike().ok_or("switches are set differently")?;
    Ok(CongestionSettings::from_plan(&alike)?.to_toml() + "\n")
}

/// The cables that were taken away, to be put back.
#[derive(Default)]
struct Links {
    down: Vec<(PortRef, PortRef)>,
}

impl Links {
    fn take_down(&mut self, server: &mut Server, port: PortRef) -> bool {
        let peer = server.cut(port);
        self.down.extend(peer.map(|peer| (port, peer)));
        peer.is_some()
    }

    /// Does what a line says: `down NODE:PORT`, `up NODE:PORT`, `clients` or `congestion`.
    fn obey(&mut self, server: &mut Server, line: &str) -> Result<String, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let port = || find_port(server.fabric().subnet(), rest.trim());
        match word {
            "" => Ok(String::new()),
            "down" => {
                let port = port()?;
                if self.take_down(server, port) {
                    Ok(format!("{rest} is down\n"))
                } else {
                    Err(format!("{rest} has no cable, or is down already"))
                }
            }
            "up" => {
                let port = port()?;
                let found = self.down.iter().position(|(a, b)| *a == port || *b == port);
                let index = found.ok_or_else(|| format!("{rest} was not taken down"))?;
                let (port, peer) = self.down.swap_remove(index);
                server.mend(port, peer).map_err(|error| error.to_string())?;
                Ok(format!("{rest} is up\n"))
            }
            "clients" => {
                let mut text = String::new();
                for (slot, client) in server.clients() {
                    let node = &server.fabric().subnet().node(client.port.node).id;
                    let _ = writeln!(text, "{slot}: process {} at {node}", client.id);
                }
                for (_, user) in server.users() {
                    let node = &server.fabric().subnet().node(user.port.node).id;
                    let _ = writeln!(text, "stream: process {} at {node}", user.process);
                }
                Ok(text)
            }
            "congestion" => congestion(server.fabric()),
            other => Err(format!(
                "{other:?} is not known; there are: down NODE:PORT, up NODE:PORT, clients, congestion"
            )),
        }
    }
}
