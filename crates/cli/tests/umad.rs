//! Debian's OpenSM and infiniband-diags on our libibumad, as `softfabric exec --ib` starts them: no preload, whole tables, as
//! many programs as like.
//!
//! Where these programs are not installed, the tests say so and pass.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::disallowed_methods, reason = "other programs run in real time")]

mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use softfabric_subnet::Subnet;
use softfabric_subnet::generate::fat_tree;
use softfabric_testkit::programs::has;

use support::{Ends, Server, judge_sweep, torus_seed};

const SOFTFABRIC: &str = env!("CARGO_BIN_EXE_softfabric");

/// A subnet that is served, and the folder of the library.
struct Served {
    server: Server,
    library: PathBuf,
}

impl Served {
    /// Serves a fat tree of 4-port switches; `None` where a program is missing, which is said.
    fn start(test: &str) -> Option<Self> {
        Self::with(test, &["--fat-tree", "4"])
    }

    fn with(test: &str, topology: &[&str]) -> Option<Self> {
        let programs = [("opensm", "opensm"), ("saquery", "infiniband-diags")];
        if !programs
            .iter()
            .all(|(program, package)| has(test, program, package))
        {
            return None;
        }
        // Nothing is preloaded.
        let server = Server::start(topology, test, "");
        let verbose = Command::new(SOFTFABRIC)
            .args(["exec", "-v", &format!("--ib={}", server.name), "--", "true"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&verbose.stderr).into_owned();
        let path = said.trim().strip_prefix("softfabric: ").expect(&said);
        let library = PathBuf::from(path).parent().unwrap().to_owned();
        Some(Self { server, library })
    }

    fn exec(&self, node: &str, program: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .args([
                "60",
                SOFTFABRIC,
                "exec",
                &format!("--ib={}", self.server.name),
            ])
            .args(["--node", node, "--"])
            .args(program)
            .current_dir(&self.server.folder)
            .stdin(Stdio::null());
        command
    }

    /// What a program prints; it must end well.
    fn ask(&self, node: &str, program: &[&str]) -> String {
        let output: Output = self.exec(node, program).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program:?}: {text}{errors}");
        text
    }

    /// A program without a parent in between, which would leave it behind when it is killed.
    fn alone(&self, node: &str, program: &[&str]) -> Ends {
        let child = Command::new(program[0])
            .args(&program[1..])
            .current_dir(&self.server.folder)
            .env("LD_LIBRARY_PATH", &self.library)
            .env("IBSIM_SOCKNAME", &self.server.name)
            .env("SIM_HOST", node)
            .env("OSM_TMP_DIR", self.server.folder.path())
            .env("OSM_CACHE_DIR", self.server.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Ends(child.unwrap())
    }

    /// How many streams the server has.
    fn streams(&self) -> usize {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        let name = format!("@{}:umad", self.server.name);
        let named = sockets.lines().filter(|line| line.ends_with(&name)).count();
        // One of them is the listener.
        named - 1
    }

    /// OpenSM on the first host; the subnet is up.
    fn manager(&self) -> Ends {
        let manager = self.alone(
            "H-00000",
            &["opensm", "-f", "osm.log", "-d", "2", "-s", "0"],
        );
        self.server.wait_for("SUBNET UP", 1);
        let log = self.server.log();
        assert!(!log.contains("ERR "), "{log}");
        manager
    }
}

fn ports(subnet: &Subnet) -> usize {
    let nodes = subnet.nodes().map(|(_, node)| {
        // Of a switch, port 0 too.
        usize::from(node.ports) + usize::from(node.is_switch())
    });
    nodes.sum()
}

#[test]
fn subnet_administration_answers_with_whole_tables() {
    let Some(served) = Served::start("subnet_administration_answers_with_whole_tables") else {
        return;
    };
    let _manager = served.manager();
    let subnet = fat_tree(4, 3).unwrap();
    let switches = subnet.nodes().filter(|(_, node)| node.is_switch()).count();
    let adapters = subnet.nodes().len() - switches;
    let count = |record: &str, title: &str| {
        let text = served.ask("H-00003", &["saquery", record]);
        text.matches(title).count()
    };
    assert_eq!(count("NR", "NodeRecord dump"), switches + adapters);
    assert_eq!(count("LR", "LinkRecord dump"), 2 * subnet.cables().count());
    assert_eq!(count("PIR", "PortInfoRecord dump"), ports(&subnet));
    assert_eq!(count("SwitchInfoRecord", "SwitchInfoRecord dump"), switches);
    // Of 37 identifiers, one block a switch.
    assert_eq!(count("LFTR", "LFT Record dump"), switches);
    let paths = served.ask("H-00003", &["saquery", "-p", "--src-to-dst", "1:5"]);
    assert!(paths.contains("dlid"), "{paths}");
    // Of each switch all pairs of its four ports and its end port; of an adapter one.
    let lanes = count("SL2VL", "SL2VLTableRecord dump");
    assert_eq!(lanes, adapters + switches * 5 * 5);
}

/// Our own manager answers in segments, over ibsim's protocol: a program on a stream hears the message.
#[test]
fn long_answers_of_our_manager_come_whole() {
    let Some(served) = Served::start("long_answers_of_our_manager_come_whole") else {
        return;
    };
    let mut manager = Command::new(SOFTFABRIC)
        .args(["sm", "--socket-name", &served.server.name])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(manager.stdout.take().unwrap());
    let _manager = Ends(manager);
    let mut line = String::new();
    while !line.starts_with("up ") {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "it ended");
    }
    let subnet = fat_tree(4, 3).unwrap();
    let count = |record: &str, title: &str| {
        let text = served.ask("H-00003", &["saquery", record]);
        text.matches(title).count()
    };
    assert_eq!(count("NR", "NodeRecord dump"), subnet.nodes().len());
    assert_eq!(count("LR", "LinkRecord dump"), 2 * subnet.cables().count());
    assert_eq!(count("PIR", "PortInfoRecord dump"), ports(&subnet));
}

#[test]
fn diagnostics_agree_with_the_topology() {
    let Some(served) = Served::start("diagnostics_agree_with_the_topology") else {
        return;
    };
    let _manager = served.manager();
    let on = |program: &[&str]| served.ask("H-00007", program);
    let discovered = on(&["ibnetdiscover"]);
    let read = softfabric_subnet::format::read_topology(&discovered, "ibnetdiscover").unwrap();
    let subnet = fat_tree(4, 3).unwrap();
    assert_eq!(read.nodes().len(), subnet.nodes().len());
    assert_eq!(read.cables().count(), subnet.cables().count());
    for (end, peer) in subnet.cables() {
        let same = |node| read.by_guid(subnet.node(node).guid).unwrap();
        let found = read.port(softfabric_subnet::PortRef {
            node: same(end.node),
            port: end.port,
        });
        let there = found.peer().unwrap();
        assert_eq!((there.node, there.port), (same(peer.node), peer.port));
    }
    let links = on(&["iblinkinfo", "-l"]);
    assert_eq!(
        links.matches("Active/  LinkUp").count(),
        2 * subnet.cables().count()
    );
    assert!(on(&["sminfo"]).contains("SMINFO_MASTER"));
    assert!(on(&["ibstat"]).contains("State: Active"));
    assert_eq!(on(&["ibhosts"]).lines().count(), 16);
    assert_eq!(on(&["ibswitches"]).lines().count(), 20);
    assert!(on(&["ibqueryerrors"]).contains("0 ports have errors"));
    assert!(on(&["perfquery"]).contains("PortXmitData"));
    assert!(on(&["ibtracert", "1", "5"]).contains("To "));
    assert!(on(&["smpquery", "nodedesc", "-D", "0"]).contains("H-00007"));
}

/// `ibping` has a server of its own: a vendor's class, from program to program.
#[test]
fn programs_hear_each_other() {
    let Some(served) = Served::start("programs_hear_each_other") else {
        return;
    };
    let _manager = served.manager();
    let _listener = served.alone("H-00009", &["ibping", "-S"]);
    let lid = served.ask("H-00009", &["ibaddr", "-l"]);
    let lid = lid.split_whitespace().nth(2).unwrap().to_owned();
    let begin = Instant::now();
    loop {
        let text = served.ask("H-00002", &["ibping", "-c", "3", &lid]);
        if text.contains(" 3 received, 0% packet loss") {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{text}");
    }
    // Nobody listens there: the request comes back after its time.
    let text = served.ask("H-00002", &["ibping", "-c", "1", "-t", "50", "1"]);
    assert!(text.contains("100% packet loss"), "{text}");
}

/// ibsim's own protocol has ten clients; streams have as many as like, and each gets its own answers.
#[test]
fn more_programs_than_ibsim_has_room_for() {
    let Some(served) = Served::start("more_programs_than_ibsim_has_room_for") else {
        return;
    };
    let _manager = served.manager();
    let (managers, begin) = (served.streams(), Instant::now());
    let listeners: Vec<Ends> = (0..14)
        .map(|host| served.alone(&format!("H-{host:05}"), &["ibping", "-S"]))
        .collect();
    // All of them are there, beside the manager's streams, before anybody asks.
    while served.streams() < managers + 14 {
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    let askers: Vec<Child> = (0..16)
        .map(|host| {
            let mut command = served.exec(&format!("H-{host:05}"), &["saquery", "NR"]);
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for asker in askers {
        let output = asker.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text.matches("NodeRecord dump").count(), 36);
    }
    drop(listeners);
}

/// One sweep of OpenSM with a routing engine: up, without an error, and no other engine than the one that was asked for.
fn sweep(served: &Served, engine: &str, options: &[&str]) {
    let _ = std::fs::remove_file(served.server.folder.path().join("osm.log"));
    let mut program = vec!["opensm", "-o", "-R", engine, "-f", "osm.log"];
    program.extend(options);
    let begin = Instant::now();
    let mut command = served.exec("H-00000", &program);
    command
        .env("OSM_TMP_DIR", served.server.folder.path())
        .env("OSM_CACHE_DIR", served.server.folder.path());
    assert!(command.output().unwrap().status.success());
    let log = served.server.log();
    println!("{} {engine}: {:?}", served.server.name, begin.elapsed());
    judge_sweep(&log, engine);
}

/// The engines of OpenSM on what each is for: a fat tree of 1,024 hosts, a torus, a random graph.
#[test]
fn opensm_brings_large_subnets_up_with_every_engine() {
    let Some(served) = Served::with("large-tree", &["--fat-tree", "16"]) else {
        return;
    };
    for engine in ["minhop", "updn", "ftree", "dfsssp", "nue"] {
        sweep(&served, engine, &[]);
    }
    let served = Served::with("torus", &["--torus", "4x4x4", "--hosts", "2"]).unwrap();
    let write = |served: &Served, name: &str, text: &str| {
        std::fs::write(served.server.folder.path().join(name), text).unwrap();
    };
    write(&served, "torus.conf", &torus_seed());
    write(&served, "roots", "0x200000\n");
    sweep(&served, "minhop", &[]);
    sweep(&served, "updn", &["-a", "roots"]);
    sweep(&served, "nue", &[]);
    sweep(
        &served,
        "torus-2QoS",
        &["-Q", "--torus_config", "torus.conf"],
    );
    let random = softfabric_subnet::generate::random(40, 5, 3, 7).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("random.net");
    std::fs::write(&file, softfabric_subnet::format::write_net(&random)).unwrap();
    let served = Served::with("random", &[file.to_str().unwrap()]).unwrap();
    write(&served, "roots", "0x200000\n");
    sweep(&served, "updn", &["-a", "roots"]);
    for engine in ["minhop", "dfsssp", "nue"] {
        sweep(&served, engine, &[]);
    }
}

#[test]
fn a_subnet_that_nobody_serves_and_a_node_that_is_not_there() {
    let output = Command::new(SOFTFABRIC)
        .args(["exec", "--ib=softfabric-nobody", "--", "true"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("no subnet is served as \"softfabric-nobody\""),
        "{said}"
    );
    assert!(said.contains("softfabric ib serve"), "{said}");
    let Some(served) = Served::start("a_subnet_that_nobody_serves_and_a_node_that_is_not_there")
    else {
        return;
    };
    let output = served.exec("H-99999", &["ibstat"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("no node is called \"H-99999\""), "{said}");
}
