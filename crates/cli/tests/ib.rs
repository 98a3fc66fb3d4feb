//! Debian's OpenSM and infiniband-diags on a fabric that `softfabric ib serve` emulates, through their own libumad2sim.so.
//!
//! ```text
//!   softfabric ib serve ◄── abstract Unix sockets ──► libumad2sim.so in opensm, ibnetdiscover, iblinkinfo, …
//! ```
//!
//! Where these programs are not installed, the tests say so and pass.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::disallowed_methods, reason = "other programs run in real time")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use softfabric_subnet::Subnet;
use softfabric_subnet::format::write_net;
use softfabric_subnet::generate::{fat_tree, torus};

use support::{Ends, Server, discover, essence, judge_sweep, library, torus_seed};

/// One sweep of OpenSM with a routing engine.
fn sweep(server: &Server, engine: &str, options: &[&str]) {
    let _ = std::fs::remove_file(server.folder.path().join("osm.log"));
    let mut arguments = vec!["-o", "-R", engine, "-f", "osm.log"];
    arguments.extend(options);
    let begin = Instant::now();
    server.ask("opensm", &arguments);
    let log = server.log();
    println!("{}: {engine} in {:?}", server.name, begin.elapsed());
    judge_sweep(&log, engine);
}

#[test]
fn opensm_brings_fat_trees_and_tori_up() {
    let Some(library) = library("opensm_brings_fat_trees_and_tori_up") else {
        return;
    };
    for engine in ["minhop", "updn", "ftree", "dfsssp", "nue"] {
        let name = format!("tree-{engine}");
        sweep(
            &Server::start(&["--fat-tree", "8"], &name, &library),
            engine,
            &[],
        );
    }
    for engine in ["minhop", "updn", "dor", "nue", "torus-2QoS"] {
        let name = format!("torus-{engine}");
        let server = Server::start(&["--torus", "4x4x4", "--hosts", "2"], &name, &library);
        let seed = torus_seed();
        std::fs::write(server.folder.path().join("torus.conf"), seed).unwrap();
        std::fs::write(server.folder.path().join("roots"), "0x200000\n").unwrap();
        let options: &[&str] = match engine {
            "torus-2QoS" => &["-Q", "--torus_config", "torus.conf"],
            "updn" => &["-a", "roots"],
            _ => &[],
        };
        sweep(&server, engine, options);
    }
}

#[test]
fn diagnostics_agree_with_the_file() {
    let Some(library) = library("diagnostics_agree_with_the_file") else {
        return;
    };
    let cases = [
        ("tree", fat_tree(8, 3).unwrap()),
        ("torus", torus(&[4, 4, 4], 1).unwrap()),
    ];
    for (name, subnet) in cases {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, write_net(&subnet)).unwrap();
        let path = file.path().to_str().unwrap();
        let mut server = Server::start(&[path], &format!("diagnostics-{name}"), &library);
        let _manager = server.manager();
        let found = discover(&server);
        assert_eq!(essence(&found), essence(&subnet));
        check_diagnostics(&server, &found);
        check_a_lost_link(&mut server, &subnet);
    }
}

fn check_diagnostics(server: &Server, found: &Subnet) {
    let links = server.ask("iblinkinfo", &["-l"]);
    let active = links.lines().filter(|line| line.contains("Active/"));
    assert_eq!(active.count(), 2 * found.cables().count(), "{links}");
    assert!(server.ask("sminfo", &[]).contains("SMINFO_MASTER"));
    let lids: Vec<(String, String)> = found
        .end_ports()
        .map(|(end, port)| {
            let description = found.node(end.node).description.clone();
            (port.lid.to_string(), description)
        })
        .collect();
    let packets = |text: &str| -> u64 {
        let line = text.lines().find(|line| line.contains("PortRcvPkts:"));
        let digits = line.unwrap().rsplit('.').next().unwrap();
        digits.parse().unwrap()
    };
    let (first, _) = &lids[0];
    for (lid, description) in [&lids[1], &lids[lids.len() / 2], &lids[lids.len() - 1]] {
        let trace = server.ask("ibtracert", &[first, lid]);
        let end = trace.trim_end().lines().last().unwrap();
        assert!(
            end.starts_with("To ") && end.contains(description.as_str()),
            "{trace}"
        );
        let described = server.ask("smpquery", &["nodedesc", lid]);
        assert!(described.contains(description.as_str()), "{described}");
        let state = server.ask("smpquery", &["portinfo", lid]);
        assert!(state.contains("Active"), "{state}");
        // The questions above came by that port.
        let counted = packets(&server.ask("perfquery", &["-x", lid, "1"]));
        assert!(counted > 0, "port 1 of {lid}");
    }
    let adapter = &lids
        .iter()
        .find(|(_, name)| name.contains("HCA"))
        .unwrap()
        .0;
    let before = packets(&server.ask("perfquery", &[adapter, "1"]));
    assert!(before > 0);
    server.ask("perfquery", &["-R", adapter, "1"]);
    let after = packets(&server.ask("perfquery", &[adapter, "1"]));
    assert!(after < before, "{after} after {before} and a reset");
    let errors = server.ask("ibqueryerrors", &[]);
    assert!(
        errors.contains("0 ports have errors beyond threshold"),
        "{errors}"
    );
    let record = server.ask("saquery", &["PR", "--src-to-dst", "1:2"]);
    assert!(record.contains("PathRecord"), "{record}");
}

/// A link goes down: OpenSM hears of it and routes around it; then it comes back.
fn check_a_lost_link(server: &mut Server, subnet: &Subnet) {
    let switches = subnet.cables().find(|(left, right)| {
        subnet.node(left.node).is_switch() && subnet.node(right.node).is_switch()
    });
    let (end, _) = switches.unwrap();
    let port = format!("{}:{}", subnet.node(end.node).id, end.port);
    let mut cut = subnet.clone();
    cut.disconnect(end);
    let sweeps = server.log().matches("SUBNET UP").count();
    assert_eq!(
        server.say(&format!("down {port}")),
        format!("{port} is down\n")
    );
    server.wait_for("SUBNET UP", sweeps + 1);
    assert_eq!(essence(&discover(server)), essence(&cut));
    let sweeps = server.log().matches("SUBNET UP").count();
    assert_eq!(server.say(&format!("up {port}")), format!("{port} is up\n"));
    server.wait_for("SUBNET UP", sweeps + 1);
    assert_eq!(essence(&discover(server)), essence(subnet));
}

#[test]
fn a_taken_name_is_told_with_its_owner() {
    let name = format!("softfabric-taken-{}", std::process::id());
    let arguments = ["ib", "serve", "--torus", "2x2", "--socket-name", &name];
    let serve = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_softfabric"));
        command.args(arguments).stdin(Stdio::piped());
        command
    };
    let mut first = Ends(serve().stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(first.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let second = serve().output().unwrap();
    let text = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(2), "{text}");
    let owner = format!("process {}", first.0.id());
    assert!(text.contains(&owner), "{text}");
    assert!(text.contains("--socket-name"), "{text}");
}

/// What OpenSM's options say of congestion control is in the agents after its sweep, and a scenario has it.
#[test]
fn congestion_settings_of_opensm_are_a_table_of_a_scenario() {
    let Some(library) = library("congestion_settings_of_opensm_are_a_table_of_a_scenario") else {
        return;
    };
    let mut server = Server::start(&["--fat-tree", "4"], "congestion", &library);
    let table = (0..100).map(|index| format!("1:{}", index * 3));
    let table = table.collect::<Vec<_>>().join(",");
    let options = format!(
        "congestion_control TRUE\ncc_sw_cong_setting_control_map 0x1f\ncc_sw_cong_setting_victim_mask 0x{}\n\
         cc_sw_cong_setting_threshold 0x0b\ncc_sw_cong_setting_packet_size 8\ncc_sw_cong_setting_marking_rate \
         7\ncc_ca_cong_setting_control_map 0xffff\ncc_ca_cong_setting_ccti_timer 0 100\ncc_ca_cong_setting_ccti_increase \
         0 2\ncc_ca_cong_setting_trigger_threshold 0 5\ncc_ca_cong_setting_ccti_min 0 1\ncc_cct {table}\n",
        "f".repeat(64)
    );
    let file = server.folder.path().join("congestion.conf");
    std::fs::write(&file, options).unwrap();
    let name = file.to_str().unwrap().to_owned();
    sweep(&server, "minhop", &["-F", &name]);
    // The settings go out after the tables: OpenSM ends once all are answered.
    let mut text = server.say("congestion");
    loop {
        let line = server.line();
        if line.trim().is_empty() {
            break;
        }
        text.push_str(&line);
    }
    let scenario =
        format!("[fabric]\nkind = \"infiniband\"\n[topology]\nkind = \"star\"\nhosts = 2\n{text}");
    let scenario = softfabric_fabric::scenario::Scenario::from_toml(&scenario, "opensm.toml")
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let plan = scenario
        .plan()
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let settings = plan.link_layer.infiniband().unwrap();
    let congestion = settings.congestion.as_ref().unwrap();
    let switch = &congestion.switches[0];
    assert_eq!((switch.threshold, switch.marking_rate), (11, 7), "{text}");
    assert_eq!(switch.packet_size.as_u64(), 512, "{text}");
    assert_eq!(switch.victims, softfabric_fabric::plan::SwitchPorts::All);
    let level = congestion.hosts.levels[0];
    assert_eq!(level.timer.as_picos(), 102_400_000);
    assert_eq!((level.increase, level.trigger, level.minimum), (2, 5, 1));
    let entries = congestion.hosts.table.entries();
    assert_eq!(entries.len(), 100, "{text}");
    assert_eq!((entries[99].shift(), entries[99].multiplier()), (1, 297));
}
