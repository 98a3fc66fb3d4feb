//! What tests of emulated subnets share: a server, and Debian's programs on it.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use softfabric_subnet::Subnet;
use softfabric_subnet::format::{read_topology, write_net};
pub(crate) use softfabric_testkit::programs::Ends;
use softfabric_testkit::programs::{has, umad2sim};

/// Where libumad2sim.so is, if all programs are there; otherwise says what is missing.
pub(crate) fn library(test: &str) -> Option<String> {
    let library = umad2sim(test)?;
    let programs = [("opensm", "opensm"), ("iblinkinfo", "infiniband-diags")];
    let all = programs
        .iter()
        .all(|(program, package)| has(test, program, package));
    all.then_some(library)
}

/// A server, and what programs need to reach it.
pub(crate) struct Server {
    pub(crate) process: Ends,
    /// Of our own server.
    pub(crate) output: Option<BufReader<ChildStdout>>,
    pub(crate) name: String,
    pub(crate) library: String,
    pub(crate) folder: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start(arguments: &[&str], name: &str, library: &str) -> Self {
        let name = format!("softfabric-{name}-{}", std::process::id());
        let mut process = Command::new(env!("CARGO_BIN_EXE_softfabric"))
            .args(["ib", "serve", "--socket-name", &name])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut server = Self {
            process: Ends(process),
            output: Some(output),
            name,
            library: library.to_owned(),
            folder: tempfile::tempdir().unwrap(),
        };
        let greeting = server.line();
        assert!(greeting.contains("are served as"), "{greeting}");
        let join = server.line();
        assert!(join.contains("LD_PRELOAD="), "{join}");
        server
    }

    /// Debian's ibsim with a topology; `None`, and a word about it, where it is not installed.
    pub(crate) fn ibsim(subnet: &Subnet, name: &str, library: &str) -> Option<Self> {
        if !has(&format!("{name} over ibsim"), "ibsim", "ibsim-utils") {
            return None;
        }
        let name = format!("softfabric-{name}-{}", std::process::id());
        let folder = tempfile::tempdir().unwrap();
        let net = folder.path().join("subnet.net");
        std::fs::write(&net, write_net(subnet)).unwrap();
        let mut process = Command::new("ibsim")
            .arg("-s")
            .arg(&net)
            .env("IBSIM_SOCKNAME", &name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // What it prints is read and forgotten, so that it never waits for a reader.
        let mut output = process.stdout.take().unwrap();
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let socket = format!("@{name}:out9@");
        let begin = Instant::now();
        while !std::fs::read_to_string("/proc/net/unix")
            .unwrap()
            .contains(&socket)
        {
            assert!(begin.elapsed() < Duration::from_secs(30), "no {socket}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self {
            process: Ends(process),
            output: None,
            name,
            library: library.to_owned(),
            folder,
        })
    }

    /// Says a line to the server.
    pub(crate) fn tell(&mut self, line: &str) {
        let input = self.process.0.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    /// Says a line to the server, and returns its answer.
    pub(crate) fn say(&mut self, line: &str) -> String {
        self.tell(line);
        self.line()
    }

    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["60", program]);
        self.prepare(command, arguments)
    }

    pub(crate) fn prepare(&self, mut command: Command, arguments: &[&str]) -> Command {
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("LD_PRELOAD", &self.library)
            .env("IBSIM_SOCKNAME", &self.name)
            .env("OSM_TMP_DIR", self.folder.path())
            .env("OSM_CACHE_DIR", self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// What a program prints; it must end well.
    pub(crate) fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(program, arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {}: {text}{errors}",
            output.status
        );
        text
    }

    pub(crate) fn log(&self) -> String {
        let log = std::fs::read(self.folder.path().join("osm.log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// OpenSM that goes on managing, and sweeps only when it is told of something; returns when the subnet is up.
    pub(crate) fn manager(&self) -> Ends {
        // Without `timeout` between: whoever kills that leaves OpenSM behind.
        let manager = self
            .prepare(
                Command::new("opensm"),
                &["-f", "osm.log", "-d", "2", "-s", "0"],
            )
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let manager = Ends(manager);
        self.wait_for("SUBNET UP", 1);
        manager
    }

    pub(crate) fn wait_for(&self, text: &str, times: usize) {
        let begin = Instant::now();
        while self.log().matches(text).count() < times {
            assert!(
                begin.elapsed() < Duration::from_secs(30),
                "{text:?} is not in the log: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What OpenSM's log says of a sweep with a routing engine: the subnet is up, by that engine and no other, without an error.
pub(crate) fn judge_sweep(log: &str, engine: &str) {
    assert!(log.contains("SUBNET UP"), "{engine}: {log}");
    assert!(
        log.contains(&format!("{engine} tables configured on all switches")),
        "{engine}: {log}"
    );
    assert!(!log.contains("ERR "), "{engine}: {log}");
}

/// What OpenSM's torus-2QoS has to know of our 4×4×4 torus: what is around the first switch, where the last coordinate counts
/// fastest.
pub(crate) fn torus_seed() -> String {
    let mut seed = "torus 4 4 4\n".to_owned();
    for (axis, forward, back) in [('x', 16, 48), ('y', 4, 12), ('z', 1, 3)] {
        for (direction, switch) in [('p', forward), ('m', back)] {
            let guid = 0x20_0000 + switch;
            seed += &format!("{axis}{direction}_link 0x200000 {guid:#x}\n");
        }
    }
    seed
}

/// What of a topology every program should see: descriptions by GUID, and cables.
pub(crate) type Essence = (BTreeSet<(u64, String)>, BTreeSet<[(u64, u8); 2]>);

pub(crate) fn essence(subnet: &Subnet) -> Essence {
    let nodes = subnet
        .nodes()
        .map(|(_, node)| (node.guid.0, node.description.clone()))
        .collect();
    let cables = subnet.cables().map(|(left, right)| {
        let mut ends = [left, right].map(|end| (subnet.node(end.node).guid.0, end.port));
        ends.sort_unstable();
        ends
    });
    (nodes, cables.collect())
}

pub(crate) fn discover(server: &Server) -> Subnet {
    read_topology(&server.ask("ibnetdiscover", &[]), "ibnetdiscover").unwrap()
}

/// Our server with the topology, and ibsim with it.
pub(crate) fn servers(subnet: &Subnet, name: &str, library: &str) -> Vec<Server> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, write_net(subnet)).unwrap();
    let path = file.path().to_str().unwrap();
    let ours = Server::start(&[path], &format!("{name}-ours"), library);
    let theirs = Server::ibsim(subnet, &format!("{name}-ibsim"), library);
    std::iter::once(ours).chain(theirs).collect()
}
