//! Lanes, turns and congestion control by `softfabric sm`: what Debian's diagnostics read back is what Debian's OpenSM writes with
//! the same options.
//!
//! ```text
//!   softfabric sm --options ─► server 1 ─► smpquery, saquery, `congestion` ─┐
//!                                                                          ├─ equal?
//!   opensm -F the same file ─► server 2 ─► smpquery, `congestion` ─────────┘
//! ```
//!
//! Where these programs are not installed, the tests say so and pass.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::disallowed_methods, reason = "other programs run in real time")]

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use softfabric_subnet::generate::fat_tree;

use support::{Ends, Server, discover, library, servers};

/// Adapters and switches have something of their own. OpenSM lets ports have all lanes that they can, so `max_vls` is not among these.
const QUALITY: &str = "\
qos TRUE
qos_high_limit 7
qos_vlarb_high 0:64,1:32,2:16
qos_vlarb_low 0:1,1:2,2:3,3:4,4:5,5:6,6:7,7:8
qos_sl2vl 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
qos_ca_high_limit 255
qos_ca_vlarb_low 7:8,6:7,5:6,4:5,3:4,2:3,1:2,0:1
qos_swe_sl2vl 7,6,5,4,3,2,1,0,7,6,5,4,3,2,1,0
";

fn congestion_options() -> String {
    let table: Vec<String> = (0..100).map(|index| format!("1:{}", index * 3)).collect();
    format!(
        "congestion_control TRUE\ncc_sw_cong_setting_control_map 0x1f\ncc_sw_cong_setting_victim_mask 0x{}\n\
         cc_sw_cong_setting_threshold 0x0b\ncc_sw_cong_setting_packet_size 8\ncc_sw_cong_setting_marking_rate \
         7\ncc_ca_cong_setting_control_map 0xffff\ncc_ca_cong_setting_ccti_timer 0 100\ncc_ca_cong_setting_ccti_increase \
         0 2\ncc_ca_cong_setting_trigger_threshold 0 5\ncc_ca_cong_setting_ccti_min 0 1\ncc_cct {}\n",
        "f".repeat(64),
        table.join(",")
    )
}

fn sm(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_softfabric"));
    command
        .args(["sm", "--socket-name", &server.name])
        .args(arguments)
        .current_dir(&server.folder);
    command
}

fn once(server: &Server, arguments: &[&str]) -> Output {
    sm(server, &["--once"]).args(arguments).output().unwrap()
}

fn file(server: &Server, name: &str, text: &str) {
    std::fs::write(server.folder.path().join(name), text).unwrap();
}

/// What it said, without the breaks of lines.
fn errors(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What `smpquery` reads of some nodes, by node and port; identifiers, which both give as they like, are left out.
fn tables(server: &Server) -> BTreeMap<(String, u8), String> {
    let found = discover(server);
    let mut tables = BTreeMap::new();
    let ends = found.end_ports();
    for (end, port) in ends.step_by(5) {
        let node = found.node(end.node);
        let lid = port.lid.to_string();
        let ports = if end.port == 0 {
            1..=node.ports.min(5)
        } else {
            end.port..=end.port
        };
        for number in ports {
            let port = number.to_string();
            let ask = |what| server.ask("smpquery", &[what, &lid, &port]);
            let info = ask("portinfo");
            let lines = info.lines();
            let lanes: Vec<&str> = lines
                .filter(|line| line.starts_with("OperVLs") || line.starts_with("VLHighLimit"))
                .collect();
            assert_eq!(lanes.len(), 2, "{info}");
            let text = format!("{}{}{}", ask("sl2vl"), ask("vlarb"), lanes.join("\n"));
            let told = text.lines().filter(|line| !line.contains("Lid "));
            let told: Vec<&str> = told.collect();
            tables.insert((node.description.clone(), number), told.join("\n"));
        }
    }
    tables
}

#[test]
fn lanes_and_turns_are_those_of_opensm() {
    let Some(library) = library("lanes_and_turns_are_those_of_opensm") else {
        return;
    };
    let subnet = fat_tree(4, 3).unwrap();
    let ours = servers(&subnet, "lanes", &library);
    let theirs = servers(&subnet, "lanes-opensm", &library);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        file(ours, "options.conf", QUALITY);
        file(theirs, "options.conf", QUALITY);
        let output = once(ours, &["--options", "options.conf"]);
        assert!(output.status.success(), "{output:?}");
        theirs.ask(
            "opensm",
            &["-o", "-R", "minhop", "-F", "options.conf", "-f", "osm.log"],
        );
        let is_ours = ours.output.is_some();
        let (ours, theirs) = (tables(ours), tables(theirs));
        assert!(ours.len() > 15, "{ours:?}");
        let all: String = ours.values().map(String::as_str).collect();
        assert!(all.contains("| 7| 6| 5| 4| 3| 2| 1| 0| 7| 6|"), "{all}");
        // ibsim keeps no limits.
        let kept = all.contains("VLHighLimit:.....................255");
        assert_eq!(kept, is_ours, "{all}");
        for (port, text) in &ours {
            assert_eq!(Some(text), theirs.get(port), "{port:?}");
        }
    }
}

/// A manager that stays, once the subnet is up.
fn stay(server: &Server, arguments: &[&str]) -> Ends {
    let mut process = sm(server, arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let up = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("up ")));
    assert!(up.is_some());
    std::thread::spawn(move || lines.for_each(drop));
    Ends(process)
}

const POLICY: &str = r#"
[[level]]
name = "storage"
sl = 5

[[rule]]
level = "storage"
services = ["0x1000-0x1fff"]
"#;

#[test]
fn saquery_hears_levels_lanes_and_turns() {
    let Some(library) = library("saquery_hears_levels_lanes_and_turns") else {
        return;
    };
    let subnet = fat_tree(4, 3).unwrap();
    for server in servers(&subnet, "levels", &library) {
        file(&server, "options.conf", QUALITY);
        file(&server, "policy.toml", POLICY);
        let partitions = "Default=0x7fff : ALL=full;\nred=0x8001, sl=2 : ALL=full;\n";
        file(&server, "partitions.conf", partitions);
        let _manager = stay(
            &server,
            &[
                "--options",
                "options.conf",
                "--qos-policy",
                "policy.toml",
                "--partitions",
                "partitions.conf",
            ],
        );
        let found = discover(&server);
        let lids = |adapters: bool| {
            let ends = found.end_ports();
            let wanted = ends.filter(move |(end, _)| (end.port != 0) == adapters);
            wanted.map(|(_, port)| port.lid.to_string())
        };
        let hosts: Vec<String> = lids(true).collect();
        let switch = lids(false).next().unwrap();
        let level = |more: &[&str]| {
            let ends = ["--slid", &hosts[1], "--dlid", &hosts[2]];
            let answer = server.ask("saquery", &[&["PR"], &ends[..], more].concat());
            let line = answer.lines().find(|line| line.trim().starts_with("sl."));
            line.map(|line| {
                line.trim()
                    .trim_start_matches("sl")
                    .trim_matches('.')
                    .to_owned()
            })
        };
        assert_eq!(level(&[]).as_deref(), Some("0x0"));
        assert_eq!(level(&["--pkey", "0x8001"]).as_deref(), Some("0x2"));
        assert_eq!(level(&["--service_id", "0x1fff"]).as_deref(), Some("0x5"));
        assert_eq!(level(&["--sl", "3"]).as_deref(), Some("0x3"));
        // Adapters drop level 15, and a rule says 5.
        assert_eq!(level(&["--sl", "15"]), None);
        assert_eq!(level(&["--sl", "3", "--service_id", "0x1fff"]), None);

        // What administration says is what the ports say.
        let ask = |what: &str, of: &str| server.ask("saquery", &[what, of]);
        let row = |text: &str, head: &str| -> Vec<u8> {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(head));
            let (_, cells) = line.and_then(|line| line.split_once(':')).unwrap();
            let cells = cells.split('|').take(8);
            cells.map(|cell| cell.trim().parse().unwrap()).collect()
        };
        let host = &hosts[1];
        let lanes = ask("SL2VL", &format!("{switch}/2/1"));
        assert_eq!(row(&lanes, "VL"), [7, 6, 5, 4, 3, 2, 1, 0], "{lanes}");
        let lanes = ask("SL2VL", &format!("{host}/0/1"));
        assert!(
            lanes.contains("VL: 0| 1| 2| 3| 4| 5| 6| 7| 0| 1| 2| 3| 4| 5| 6|15|"),
            "{lanes}"
        );
        let turns = ask("VLAR", &format!("{host}/1/1"));
        assert_eq!(row(&turns, "VL  "), [7, 6, 5, 4, 3, 2, 1, 0], "{turns}");
        assert_eq!(row(&turns, "Weight"), [8, 7, 6, 5, 4, 3, 2, 1], "{turns}");
    }
}

/// The table that the server prints.
fn congestion(server: &mut Server) -> String {
    let mut text = server.say("congestion");
    loop {
        let line = server.line();
        if line.trim().is_empty() {
            return text;
        }
        text.push_str(&line);
    }
}

#[test]
fn congestion_control_is_that_of_opensm() {
    let Some(library) = library("congestion_control_is_that_of_opensm") else {
        return;
    };
    let mut ours = Server::start(&["--fat-tree", "4"], "cc-ours", &library);
    let mut theirs = Server::start(&["--fat-tree", "4"], "cc-opensm", &library);
    let options = congestion_options();
    file(&ours, "options.conf", &options);
    file(&theirs, "options.conf", &options);
    let before = congestion(&mut ours);
    let output = once(&ours, &["--options", "options.conf"]);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    theirs.ask(
        "opensm",
        &["-o", "-R", "minhop", "-F", "options.conf", "-f", "osm.log"],
    );
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("with 100 entries in control tables"),
        "{said}"
    );
    let (ours, theirs) = (congestion(&mut ours), congestion(&mut theirs));
    assert_ne!(ours, before);
    assert!(ours.contains("threshold = 11"), "{ours}");
    assert_eq!(ours, theirs);
}

#[test]
fn a_subnet_without_congestion_control_is_managed() {
    let test = "a_subnet_without_congestion_control_is_managed";
    let Some(library) = library(test) else {
        return;
    };
    let Some(server) = Server::ibsim(&fat_tree(4, 2).unwrap(), "cc-ibsim", &library) else {
        return;
    };
    file(&server, "options.conf", &congestion_options());
    let output = once(&server, &["--options", "options.conf"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // ibsim reads nothing of that class, and refuses to write.
    let told = errors(&output);
    assert!(
        told.contains("has room for 0 entries, and 100 are given"),
        "{told}"
    );
    assert!(
        told.contains("refuses Set(SwitchCongestionSetting)"),
        "{told}"
    );
}

#[test]
fn what_cannot_be_is_told() {
    let server = Server::start(&["--torus", "4x4"], "qos-refuse", "");
    for (name, text, code, wanted) in [
        (
            "--options",
            "qos TRUE\nqos_max_vls 16\n",
            2,
            ":2: qos_max_vls: found \"16\", needed 0 to 15",
        ),
        (
            "--options",
            "qos TRUE\nqos_max_vl 8\n",
            2,
            ":2: qos_max_vl: not known",
        ),
        (
            "--options",
            "qos TRUE\nqos_max_vls 15\n",
            1,
            "are to use 15 lanes, and port 1 of",
        ),
        (
            "--options",
            "cc_cct 9:1\n",
            2,
            ":1: cc_cct: found \"9\", needed 0 to 3",
        ),
        (
            "--qos-policy",
            "[[rule]]\nlevel = \"fast\"\n",
            2,
            ":2: rule 1 gives the level \"fast\", and there are no levels",
        ),
        (
            "--qos-policy",
            "[[level]]\nname = \"fast\"\nsl = 16\n",
            2,
            ":3: found 0x10, needed one number from 0 to 0xf",
        ),
        (
            "--options",
            "lmc 1\nrouting_engine updn\n",
            0,
            "not lmc, routing_engine",
        ),
    ] {
        file(&server, "file", text);
        let output = once(&server, &[name, "file"]);
        let told = errors(&output);
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    // The policy's levels, where the engine has its own.
    file(&server, "file", POLICY);
    let output = once(&server, &["--qos-policy", "file", "--routing", "torus"]);
    let told = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("says which level each path has"), "{told}");
}
