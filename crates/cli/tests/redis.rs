//! The real Redis, filled as SONiC fills its own: the switch is recorded, and tells a storm.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use softfabric_testkit::programs::{Ends, has};

fn softfabric() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_softfabric"));
    command.env("NO_COLOR", "1");
    command
}

/// Starts a server of ours, without files.
fn server() -> (Ends, u16) {
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let child = Command::new("redis-server")
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    (Ends(child), port)
}

/// Runs commands in a database; says whether the server took them.
fn tell(port: u16, database: u8, words: &[&str]) -> bool {
    let output = Command::new("redis-cli")
        .args(["-p", &port.to_string(), "-n", &database.to_string()])
        .args(words)
        .output()
        .unwrap();
    output.status.success()
}

#[test]
fn a_sonic_switch_is_recorded_through_its_redis() {
    let test = "a_sonic_switch_is_recorded_through_its_redis";
    if !has(test, "redis-server", "redis-server") || !has(test, "redis-cli", "redis-tools") {
        return;
    }
    let (_server, port) = server();
    let name = ["HSET", "DEVICE_METADATA|localhost", "hostname", "leaf0"];
    let up = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(50));
        tell(port, 4, &name)
    });
    assert!(up, "the server does not come up");
    for (number, port_name) in ["Ethernet0", "Ethernet4"].into_iter().enumerate() {
        let key = |kind: &str| format!("oid:0x{kind}{number}");
        let (own, queue, group) = (key("1"), key("15"), key("1a"));
        let class = format!("{port_name}:3");
        tell(
            port,
            2,
            &["HSET", "COUNTERS_PORT_NAME_MAP", port_name, &own],
        );
        tell(
            port,
            2,
            &["HSET", "COUNTERS_QUEUE_NAME_MAP", &class, &queue],
        );
        tell(port, 2, &["HSET", "COUNTERS_PG_NAME_MAP", &class, &group]);
        tell(
            port,
            0,
            &[
                "HSET",
                &format!("PORT_TABLE:{port_name}"),
                "speed",
                "100000",
                "oper_status",
                "up",
            ],
        );
        tell(
            port,
            2,
            &[
                "HSET",
                &format!("COUNTERS:{own}"),
                "SAI_PORT_STAT_IF_OUT_OCTETS",
                "1000",
                "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US",
                "0",
            ],
        );
        tell(
            port,
            2,
            &[
                "HSET",
                &format!("COUNTERS:{queue}"),
                "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS",
                "7",
            ],
        );
        tell(
            port,
            2,
            &[
                "HSET",
                &format!("COUNTERS:{group}"),
                "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS",
                "5",
            ],
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("leaf0.jsonl");
    let mut recorder = softfabric()
        .args([
            "record",
            "--redis",
            &format!("127.0.0.1:{port}"),
            "--count",
            "16",
            "--every",
            "100ms",
            "-o",
        ])
        .arg(&recording)
        .spawn()
        .unwrap();
    // h1 at Ethernet4 pauses without end meanwhile, by the clock of this loop: more than all the time would be.
    let held = "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US";
    while recorder.try_wait().unwrap().is_none() {
        tell(port, 2, &["HINCRBY", "COUNTERS:oid:0x11", held, "60000"]);
        thread::sleep(Duration::from_millis(30));
    }
    let text = fs::read_to_string(&recording).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let node = lines
        .iter()
        .find(|line| line["node"] == "leaf0" && line["kind"] == "switch");
    assert!(node.is_some(), "{text}");
    let sample = lines.iter().find(|line| line["at_ns"].is_u64()).unwrap();
    assert_eq!(sample["port"], "leaf0:Ethernet0");
    assert_eq!(sample["up"], true);
    let counters = &sample["counters"];
    assert_eq!(counters["port_xmit_data"], 1_000);
    assert_eq!(counters["rx_prio3_marked"], 7);
    assert_eq!(counters["rx_prio3_buf_discard"], 5);
    // With its hosts' names and cables, it tells who holds it.
    let hosts = "{\"softfabric_counters\":1}\n{\"node\":\"h0\",\"kind\":\"host\"}\n{\"node\":\"h1\",\"kind\":\"host\"}\n\
                 {\"port\":\"h0:eth0\",\"node\":\"h0\"}\n{\"port\":\"h1:eth0\",\"node\":\"h1\"}\n";
    fs::write(folder.path().join("hosts.jsonl"), hosts).unwrap();
    fs::write(
        folder.path().join("cables.txt"),
        "leaf0:Ethernet0 h0:eth0\nleaf0:Ethernet4 h1:eth0\n",
    )
    .unwrap();
    let output = softfabric()
        .current_dir(folder.path())
        .args([
            "diagnose",
            "leaf0.jsonl",
            "hosts.jsonl",
            "--cables",
            "cables.txt",
            "--json",
        ])
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = &document["findings"][0];
    assert_eq!(first["cause"], "host_storm", "{document:#}");
    assert_eq!(first["node"], "h1", "{document:#}");
    let nobody = softfabric()
        .args(["record", "--redis", "127.0.0.1:1", "--count", "1"])
        .output()
        .unwrap();
    assert_eq!(nobody.status.code(), Some(2), "{nobody:?}");
}
