//! `softfabric sm` over Debian's ibsim and over our own server: Debian's diagnostics agree with it, ibdmchk judges its tables.
//!
//! ```text
//!   softfabric sm ─► ibsim, or softfabric ib serve ◄─ libumad2sim.so in ibnetdiscover, sminfo, saquery, ibroute, opensm
//! ```
//!
//! Where these programs are not installed, the tests say so and pass.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::disallowed_methods, reason = "other programs run in real time")]

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use softfabric_subnet::generate::{fat_tree, torus};
use softfabric_subnet::{PortRef, Subnet};

use support::{Ends, Server, discover, essence, library, servers};

fn softfabric() -> Command {
    Command::new(env!("CARGO_BIN_EXE_softfabric"))
}

/// A manager that stays.
struct Manager {
    process: Ends,
    lines: BufReader<ChildStdout>,
}

impl Manager {
    fn start(server: &Server, arguments: &[&str]) -> Self {
        let mut process: Child = softfabric()
            .args(["sm", "--socket-name", &server.name])
            .args(arguments)
            .current_dir(&server.folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Self {
            process: Ends(process),
            lines,
        }
    }

    /// The next line that starts with a word: its figures.
    fn wait_for(&mut self, word: &str) -> Vec<String> {
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "no {word:?}");
            let mut words = line.split_whitespace().map(str::to_owned);
            if words.next().as_deref() == Some(word) {
                return words.collect();
            }
        }
    }

    /// Ctrl-C; what it says then.
    fn interrupt(mut self) -> (Option<i32>, String) {
        let number = self.process.0.id().to_string();
        let killed = Command::new("kill").args(["-INT", &number]).status();
        assert!(killed.unwrap().success());
        let rest: Vec<String> = self.lines.lines().map(Result::unwrap).collect();
        (self.process.0.wait().unwrap().code(), rest.join("\n"))
    }
}

/// One sweep; its tables are in the folder `tables`.
fn once(server: &Server, routing: &str, more: &[&str]) -> Output {
    softfabric()
        .args(["sm", "--once", "--socket-name", &server.name])
        .args(["--routing", routing, "--dump-folder", "tables"])
        .args(more)
        .current_dir(&server.folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn diagnostics_agree_with_our_manager() {
    let Some(library) = library("diagnostics_agree_with_our_manager") else {
        return;
    };
    let cases = [
        (
            "tree",
            fat_tree(8, 3).unwrap(),
            "fat-tree",
            ["80", "128", "208"],
        ),
        (
            "torus",
            torus(&[4, 4, 4], 1).unwrap(),
            "torus",
            ["64", "64", "128"],
        ),
    ];
    for (name, subnet, routing, counts) in cases {
        for mut server in servers(&subnet, &format!("agree-{name}"), &library) {
            let mut manager = Manager::start(
                &server,
                &[
                    "--routing",
                    routing,
                    "--dump-folder",
                    "tables",
                    "--priority",
                    "3",
                ],
            );
            let figures = manager.wait_for("up");
            assert_eq!(figures[..3], counts, "{}", server.name);
            let found = discover(&server);
            assert_eq!(essence(&found), essence(&subnet), "{}", server.name);
            check_diagnostics(&server, &found);
            check_a_lost_link(&mut server, &mut manager, &subnet);
            let (code, last) = manager.interrupt();
            assert_eq!(code, Some(0), "{last}");
            assert!(last.contains("nobody manages it now"), "{last}");
        }
    }
}

fn check_diagnostics(server: &Server, found: &Subnet) {
    let links = server.ask("iblinkinfo", &["-l"]);
    let active = links.lines().filter(|line| line.contains("Active/"));
    assert_eq!(active.count(), 2 * found.cables().count(), "{links}");
    let master = server.ask("sminfo", &[]);
    assert!(
        master.contains("priority 3 state 3 SMINFO_MASTER"),
        "{master}"
    );
    let switches: Vec<PortRef> = found
        .end_ports()
        .map(|(end, _)| end)
        .filter(|end| end.port == 0)
        .collect();
    let tables = std::fs::read_to_string(server.folder.path().join("tables/opensm-lfts.dump"));
    let tables = tables.unwrap();
    for switch in switches.iter().step_by(19) {
        let lid = found.port(*switch).lid.to_string();
        // ibroute's table is what the switch has; ours is what the manager thinks that it has.
        let theirs = forwarding(&server.ask("ibroute", &["-n", &lid]));
        let guid = found.node(switch.node).guid.to_string();
        let start = tables.find(&format!("Lid {lid} guid {guid}")).unwrap();
        let end = tables[start..].find("dumped").unwrap();
        let mut ours = forwarding(&tables[start..start + end]);
        assert_eq!(ours.len(), found.end_ports().count());
        // ibroute does not show the last identifier where its block starts with it.
        ours.retain(|lid, _| !lid.is_multiple_of(64) || usize::from(*lid) < top_lid(found));
        assert_eq!(theirs, ours, "switch {lid}");
    }
    check_queries(server, found);
}

fn top_lid(found: &Subnet) -> usize {
    let lids = found.end_ports().map(|(_, port)| usize::from(port.lid.0));
    lids.max().unwrap()
}

/// Ports by identifiers, of lines such as `0x0001 005 …`.
fn forwarding(text: &str) -> BTreeMap<u16, u8> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("0x")?.split_whitespace();
            let lid = u16::from_str_radix(words.next()?, 16).ok()?;
            Some((lid, words.next()?.parse().ok()?))
        })
        .collect()
}

fn check_queries(server: &Server, found: &Subnet) {
    let hosts: Vec<(u16, String)> = found
        .end_ports()
        .filter(|(end, _)| end.port != 0)
        .map(|(end, port)| (port.lid.0, found.node(end.node).description.clone()))
        .collect();
    for (lid, name) in hosts.iter().step_by(50) {
        let record = server.ask("saquery", &["NR", &lid.to_string()]);
        assert!(record.contains(name.as_str()), "{record}");
    }
    let [(first, _), .., (last, _)] = &hosts[..] else {
        panic!("{hosts:?}")
    };
    let path = server.ask(
        "saquery",
        &["PR", "--src-to-dst", &format!("{first}:{last}")],
    );
    assert!(
        path.contains(&format!("dlid....................{last}\n")),
        "{path}"
    );
    assert!(
        path.contains(&format!("slid....................{first}\n")),
        "{path}"
    );
    let trace = server.ask("ibtracert", &[&first.to_string(), &last.to_string()]);
    assert!(
        trace.trim_end().lines().last().unwrap().starts_with("To "),
        "{trace}"
    );
}

/// A link goes down: the manager hears of it, and repairs.
fn check_a_lost_link(server: &mut Server, manager: &mut Manager, subnet: &Subnet) {
    let is_switch = |port: PortRef| subnet.node(port.node).is_switch();
    let mut cables = subnet.cables();
    let (end, _) = cables
        .find(|(left, right)| is_switch(*left) && is_switch(*right))
        .unwrap();
    let node = &subnet.node(end.node).id;
    let (down, up) = if server.output.is_some() {
        let port = format!("{node}:{}", end.port);
        (format!("down {port}"), format!("up {port}"))
    } else {
        let port = format!("\"{node}\"[{}]", end.port);
        (format!("Unlink {port}"), format!("ReLink {port}"))
    };
    let mut cut = subnet.clone();
    cut.disconnect(end);
    server.tell(&down);
    let figures = manager.wait_for("repair");
    let writes: usize = figures[4].replace(',', "").parse().unwrap();
    // A new sweep writes thousands.
    assert!((1..200).contains(&writes), "{figures:?}");
    let found = discover(server);
    assert_eq!(essence(&found), essence(&cut), "{}", server.name);
    check_queries(server, &found);
    server.tell(&up);
    manager.wait_for("repair");
    assert_eq!(
        essence(&discover(server)),
        essence(subnet),
        "{}",
        server.name
    );
}

/// What `ibdmchk` says of the tables that the manager has written into its folder.
fn ibdmchk(server: &Server) -> String {
    let folder = server.folder.path().join("tables");
    let mut command = Command::new("ibdmchk");
    command.current_dir(&folder).args([
        "-s",
        "opensm-subnet.lst",
        "-f",
        "opensm.fdbs",
        "-m",
        "opensm.mcfdbs",
    ]);
    let levels = std::fs::metadata(folder.join("ibdmchk.levels")).unwrap();
    if levels.len() > 0 {
        command.args(["-c", "ibdmchk.levels", "-d", "ibdmchk.lanes"]);
    }
    // It may crash at its end; what it printed before counts.
    text(&command.output().unwrap().stdout)
}

#[test]
fn ibdmchk_finds_loops_where_there_are_some() {
    let test = "ibdmchk_finds_loops_where_there_are_some";
    let Some(library) = library(test) else {
        return;
    };
    if Command::new("ibdmchk").arg("-h").output().is_err() {
        println!("SKIPPED {test}: `ibdmchk` is not installed (package ibutils)");
        return;
    }
    let cases = [
        (
            "torus",
            torus(&[4, 4, 4], 1).unwrap(),
            &[
                ("min-hop", true),
                ("torus", false),
                ("nue", false),
                ("up-down", false),
            ][..],
        ),
        (
            "tree",
            fat_tree(8, 3).unwrap(),
            &[("fat-tree", false), ("up-down", false), ("dfsssp", false)][..],
        ),
    ];
    for (name, subnet, engines) in cases {
        for server in servers(&subnet, &format!("judge-{name}"), &library) {
            for (routing, loops) in engines {
                let output = once(&server, routing, &[]);
                assert!(output.status.success(), "{routing}: {output:?}");
                let verdict = ibdmchk(&server);
                let context = format!("{routing} on {}: {verdict}", server.name);
                assert!(
                    verdict.contains("Analyzing Fabric for Credit Loops"),
                    "{context}"
                );
                assert!(!verdict.contains("-E- Unassigned"), "{context}");
                assert!(!verdict.contains("Found missing paths"), "{context}");
                assert_eq!(verdict.contains("Found credit loop"), *loops, "{context}");
            }
        }
    }
}

/// Links of paths by GUID of the switch and GUID of the end.
fn hops(folder: &Path) -> BTreeMap<(u64, u64), u8> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let number = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
    let guids = read("guid2lid");
    let by_lid: BTreeMap<u64, u64> = guids
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let guid = number(words.next()?)?;
            Some((number(words.next()?)?, guid))
        })
        .collect();
    let mut hops = BTreeMap::new();
    let mut switch = 0;
    for line in read("opensm.fdbs").lines() {
        if let Some((_, guid)) = line.split_once("Switch 0x") {
            switch = number(guid).unwrap();
        }
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        if let [lid, _, count, _] = fields[..]
            && let Some(end) = number(lid).and_then(|lid| by_lid.get(&lid))
        {
            hops.insert((switch, *end), count.parse().unwrap());
        }
    }
    hops
}

#[test]
fn min_hop_is_as_short_as_opensms() {
    let Some(library) = library("min_hop_is_as_short_as_opensms") else {
        return;
    };
    for (name, subnet) in [
        ("tree", fat_tree(8, 3).unwrap()),
        ("torus", torus(&[4, 4, 4], 1).unwrap()),
    ] {
        let Some(server) = Server::ibsim(&subnet, &format!("hops-{name}"), &library) else {
            return;
        };
        // Ours finds a subnet that nobody has managed, OpenSM one that ours has.
        assert!(once(&server, "min-hop", &[]).status.success());
        server.ask(
            "opensm",
            &["-D", "0x43", "-o", "-R", "minhop", "-f", "osm.log"],
        );
        let ours = hops(&server.folder.path().join("tables"));
        let theirs = hops(server.folder.path());
        assert!(ours.len() > 5_000, "{}", ours.len());
        assert_eq!(ours, theirs);
    }
}

#[test]
fn partitions_part_hosts() {
    let Some(library) = library("partitions_part_hosts") else {
        return;
    };
    let subnet = fat_tree(4, 3).unwrap();
    for server in servers(&subnet, "partitions", &library) {
        let hosts: Vec<u64> = subnet
            .end_ports()
            .filter(|(end, _)| end.port != 0)
            .map(|(_, port)| port.guid.0)
            .collect();
        let text = format!(
            "Default=0x7fff : ALL, SELF=full;\nred=0x8001 : {:#x}=full, {:#x}=full;\n",
            hosts[1], hosts[2]
        );
        std::fs::write(server.folder.path().join("partitions.conf"), text).unwrap();
        let arguments = ["--partitions", "partitions.conf", "--node", "H-00000"];
        let mut manager = Manager::start(&server, &arguments);
        manager.wait_for("up");
        let found = discover(&server);
        let lid = |guid: u64| {
            let end = found.end_ports().find(|(_, port)| port.guid.0 == guid);
            end.unwrap().1.lid.to_string()
        };
        let [_, one, two, three] = [0, 1, 2, 3].map(|host| lid(hosts[host]));
        let keys = server.ask("smpquery", &["pkeys", &one]);
        assert!(keys.contains("0x7fff 0x8001 0x0000"), "{keys}");
        let path = |from: &str, to: &str| {
            server.ask("saquery", &["PR", "--src-to-dst", &format!("{from}:{to}")])
        };
        let shared = path(&one, &two);
        assert!(
            shared.contains("pkey....................0x8001"),
            "{shared}"
        );
        let parted = path(&one, &three);
        assert!(!parted.contains("pkey"), "{parted}");
    }
}

/// OpenSM on a node of its own, which notices soon that another manager is silent.
fn opensm(server: &Server, node: &str, priority: &str) -> Ends {
    let config = server.folder.path().join("opensm.conf");
    std::fs::write(
        config,
        "sminfo_polling_timeout 300\npolling_retry_number 2\n",
    )
    .unwrap();
    let arguments = [
        "-f",
        "osm.log",
        "-d",
        "2",
        "-s",
        "2",
        "-F",
        "opensm.conf",
        "-p",
        priority,
    ];
    let manager = server
        .prepare(Command::new("opensm"), &arguments)
        .env("SIM_HOST", node)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Ends(manager.unwrap())
}

#[test]
fn opensm_and_our_manager_take_turns() {
    let Some(library) = library("opensm_and_our_manager_take_turns") else {
        return;
    };
    let subnet = fat_tree(4, 3).unwrap();
    // ibsim drops what OpenSM, standing by, waits for: the answer to its trap.
    for server in servers(&subnet, "turns", &library).into_iter().take(1) {
        // A lower one of ours, and then a higher OpenSM.
        let mut ours = Manager::start(&server, &["--node", "H-00003", "--sweep", "1"]);
        ours.wait_for("up");
        let theirs = opensm(&server, "H-00007", "13");
        let told = ours.wait_for("standby:").join(" ");
        assert!(told.contains("H-00007"), "{told}");
        server.wait_for("SUBNET UP", 1);
        let master = server.ask("sminfo", &[]);
        assert!(
            master.contains("priority 13 state 3 SMINFO_MASTER"),
            "{master}"
        );
        drop(theirs);
        ours.wait_for("up");
        let master = server.ask("sminfo", &[]);
        assert!(
            master.contains("priority 0 state 3 SMINFO_MASTER"),
            "{master}"
        );
        assert_eq!(ours.interrupt().0, Some(0));

        // A lower OpenSM, and then a higher one of ours.
        std::fs::remove_file(server.folder.path().join("osm.log")).unwrap();
        let _theirs = opensm(&server, "H-00007", "1");
        server.wait_for("SUBNET UP", 1);
        let arguments = ["--node", "H-00003", "--sweep", "1", "--priority", "9"];
        let mut ours = Manager::start(&server, &arguments);
        ours.wait_for("standby:");
        ours.wait_for("up");
        let master = server.ask("sminfo", &[]);
        assert!(
            master.contains("priority 9 state 3 SMINFO_MASTER"),
            "{master}"
        );
        drop(ours);
        server.wait_for("SUBNET UP", 2);
        let master = server.ask("sminfo", &[]);
        assert!(
            master.contains("priority 1 state 3 SMINFO_MASTER"),
            "{master}"
        );
    }
}

#[test]
fn what_cannot_be_is_told() {
    let nobody = format!("softfabric-nobody-{}", std::process::id());
    let output = softfabric()
        .args(["sm", "--socket-name", &nobody])
        .output()
        .unwrap();
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("there is no server called"), "{errors}");
    assert!(errors.contains("softfabric ib serve"), "{errors}");

    let server = Server::start(&["--torus", "4x4"], "refuse", "");
    let output = once(&server, "min-hop", &["--node", "nowhere"]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("no client at node \"nowhere\""), "{errors}");

    for (routing, more, wanted) in [
        ("fat-tree", &[][..], "ftree does not fit this subnet"),
        ("dfsssp", &["--lanes", "1"], "dfsssp needs 2 lanes"),
        ("nue", &["--lanes", "12"], "nue uses 12 lanes"),
        ("min-hop", &["--node", "H-00003", "--lmc", "7"], ""),
    ] {
        let output = once(&server, routing, more);
        let errors = text(&output.stderr).replace("\n         ", " ");
        let refused = !wanted.is_empty();
        assert_eq!(output.status.code(), Some(i32::from(refused)), "{errors}");
        assert!(errors.contains(wanted), "{errors}");
    }
}
