//! `softfabric diagnose` end to end: scenarios in which one thing is wrong, seen through polled counters.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Scenario, poll intervals, cause, and where: the node and a port of the first finding.
type Case = (
    &'static str,
    &'static [&'static str],
    &'static str,
    (&'static str, &'static str),
);

const FAST: &[&str] = &["100us", "1ms", "3ms"];

const CASES: &[Case] = &[
    ("diagnose_host_storm", FAST, "host_storm", ("h11", "h11")),
    (
        "storm_pfc_on",
        &["100us", "1ms"],
        "host_storm",
        ("h15", "h15"),
    ),
    (
        "diagnose_slow_receiver",
        FAST,
        "slow_receiver",
        ("h11", "h11"),
    ),
    ("slow_receiver", FAST, "slow_receiver", ("h1", "h1")),
    ("diagnose_incast", FAST, "incast", ("leaf2", "leaf2:0")),
    ("victim_pfc", FAST, "incast", ("leaf3", "leaf3:3")),
    ("ring_deadlock", FAST, "deadlock", ("s0", "s0:1")),
    (
        "diagnose_failed_link",
        FAST,
        "failed_link",
        ("spine1", "leaf0:5"),
    ),
    (
        "diagnose_degraded_link",
        FAST,
        "degraded_link",
        ("leaf0", "spine0:0"),
    ),
    (
        "diagnose_hash_collision",
        FAST,
        "hash_collision",
        ("leaf0", "leaf0:4"),
    ),
    (
        "diagnose_switch_without_pfc",
        FAST,
        "misconfiguration",
        ("spine0", "spine0:2"),
    ),
    (
        "diagnose_ecn_too_late",
        FAST,
        "misconfiguration",
        ("leaf2", "leaf2:0"),
    ),
    (
        "infiniband_victim_uncontrolled",
        FAST,
        "incast",
        ("leaf3", "leaf3:3"),
    ),
    (
        "infiniband_credit_loop",
        &["100us", "1ms"],
        "deadlock",
        ("s0", "s0:1"),
    ),
    (
        "diagnose_infiniband_bad_cable",
        &["100us", "1ms"],
        "degraded_link",
        ("leaf0", "spine0:0"),
    ),
    (
        "diagnose_infiniband_slow_receiver",
        FAST,
        "slow_receiver",
        ("h11", "h11"),
    ),
];

/// Cases from the field (docs/cases.md): the verdict, and the finding that is the case's, with a part of its sentence.
const FROM_THE_FIELD: &[(&str, &str, &str, &str)] = &[
    (
        "diagnose_headroom_zero",
        "misconfiguration",
        "misconfiguration",
        "its group has no headroom",
    ),
    (
        "diagnose_red_drops",
        "misconfiguration",
        "misconfiguration",
        "RED drops what is not ECN-capable",
    ),
    (
        "diagnose_lossy_group_pauses",
        "misconfiguration",
        "misconfiguration",
        "does not obey pause frames for priority 0",
    ),
    (
        "diagnose_pause_of_lossy_obeyed",
        "slow_receiver",
        "misconfiguration",
        "obeys pause frames for class 0",
    ),
    (
        "diagnose_long_cable",
        "misconfiguration",
        "misconfiguration",
        "too little headroom for its cable",
    ),
    (
        "diagnose_wrong_dscp",
        "misconfiguration",
        "misconfiguration",
        "a class that is not lossless",
    ),
    (
        "diagnose_one_source_port",
        "hash_collision",
        "hash_collision",
        "load balancing puts too much",
    ),
    (
        "diagnose_control_behind_data",
        "incast",
        "incast",
        "more is sent to h8",
    ),
    (
        "diagnose_two_storms",
        "host_storm",
        "host_storm",
        "h8 sends pause frames",
    ),
];

const HEALTHY: &[&str] = &[
    "diagnose_healthy_load",
    "diagnose_slow_application",
    "victim_dcqcn",
];

fn softfabric() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_softfabric"));
    command.env_remove("COLUMNS").env("NO_COLOR", "1");
    command
}

fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.toml"))
}

/// Runs the scenario and returns its recording.
fn record(folder: &TempDir, name: &str, poll: &str) -> PathBuf {
    let recording = folder.path().join(format!("{name}-{poll}.jsonl"));
    let run = softfabric()
        .arg("run")
        .arg(scenario(name))
        .args(["--no-report", "--quiet", "--poll", poll, "--counters"])
        .arg(&recording)
        .output()
        .unwrap();
    assert_ne!(run.status.code(), Some(2), "{name}: {run:?}");
    recording
}

fn diagnose(recording: &Path, arguments: &[&str]) -> Output {
    softfabric()
        .arg("diagnose")
        .arg(recording)
        .args(arguments)
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_cause_is_found_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    for &(name, polls, cause, (node, port)) in CASES {
        for poll in polls {
            let output = diagnose(&record(&folder, name, poll), &["--json"]);
            assert_eq!(
                output.status.code(),
                Some(1),
                "{name} at {poll}: {output:?}"
            );
            let document = json(&output);
            assert_eq!(
                document["verdict"]["cause"], cause,
                "{name} at {poll}: {document:#}"
            );
            let first = &document["findings"][0];
            assert_eq!(first["cause"], cause, "{name} at {poll}");
            assert_eq!(first["node"], node, "{name} at {poll}");
            let ports = first["ports"].as_array().unwrap();
            assert!(
                ports.contains(&Value::from(port)),
                "{name} at {poll}: {ports:?}"
            );
        }
    }
}

#[test]
fn cases_from_the_field_get_their_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    for &(name, verdict, cause, says) in FROM_THE_FIELD {
        for poll in ["200us", "1ms"] {
            let document = json(&diagnose(&record(&folder, name, poll), &["--json"]));
            let findings = document["findings"].as_array().unwrap();
            let summary = |finding: &Value| finding["summary"].as_str().unwrap().to_owned();
            assert_eq!(
                document["verdict"]["cause"], verdict,
                "{name} at {poll}: {document:#}"
            );
            let found = findings
                .iter()
                .any(|f| f["cause"] == cause && summary(f).contains(says));
            assert!(found, "{name} at {poll}: {document:#}");
        }
    }
    // Both storms, and not only the first.
    let document = json(&diagnose(
        &record(&folder, "diagnose_two_storms", "1ms"),
        &["--json"],
    ));
    let findings = document["findings"].as_array().unwrap();
    for host in ["h8", "h9"] {
        let storm = |f: &&Value| f["cause"] == "host_storm" && f["node"] == host;
        assert!(findings.iter().any(|f| storm(&f)), "{host}: {document:#}");
    }
}

#[test]
fn where_nothing_is_wrong_nothing_is_found() {
    let folder = tempfile::tempdir().unwrap();
    for name in HEALTHY {
        for poll in FAST {
            let output = diagnose(&record(&folder, name, poll), &["--json"]);
            assert_eq!(
                output.status.code(),
                Some(0),
                "{name} at {poll}: {output:?}"
            );
            let document = json(&output);
            assert_eq!(document["verdict"], "not_the_fabric", "{name} at {poll}");
            assert_eq!(document["findings"].as_array().unwrap().len(), 0);
        }
    }
}

/// The text says the same: answer, evidence, trail, symptoms, advice with its price, and what not to do.
#[test]
fn the_text_tells_the_whole_story() {
    let folder = tempfile::tempdir().unwrap();
    let output = diagnose(&record(&folder, "diagnose_host_storm", "1ms"), &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "verdict: host storm\n",
        "h11 sends pause frames for priority 3 without end",
        "leaf2:3 rx_prio3_pause_duration: h11 holds leaf2:3 for",
        "is held by h11",
        "(price: ",
        "only symptoms (",
        "victims (",
        "Turning PFC off: the pauses end and packets are lost instead",
        "seen: 36 of 36 ports",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn recordings_are_read_from_standard_input_and_bad_lines_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record(&folder, "slow_receiver", "1ms");
    let mut text = fs::read_to_string(&recording).unwrap();
    text.push_str("{\"at_ns\":1,\"port\":\"nobody\"}\nrubbish\n");
    fs::write(&recording, text).unwrap();
    let output = softfabric()
        .args(["diagnose", "-"])
        .stdin(fs::File::open(&recording).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert!(complaints.contains("2 lines were left out"), "{complaints}");
    assert!(
        complaints.contains("no port is called `nobody`"),
        "{complaints}"
    );
    let skipped = json(&diagnose(&recording, &["--json"]));
    assert_eq!(skipped["skipped"]["lines"], 2);
}

#[test]
fn other_files_and_empty_recordings_end_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let output = diagnose(&scenario("incast"), &[]);
    assert_eq!(output.status.code(), Some(2));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("line 1 is no"), "{complaint}");
    assert!(complaint.contains("--counters"), "{complaint}");
    let recording = record(&folder, "slow_receiver", "100ms");
    let output = diagnose(&recording, &[]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("verdict: not enough data"), "{text}");
}

/// A host's files as the kernel and ethtool show them.
fn host(folder: &Path) {
    let port = folder.join("sys/class/infiniband/mlx5_0/ports/1");
    for (file, text) in [
        (port.join("state"), "4: ACTIVE\n"),
        (port.join("rate"), "100 Gb/sec (2X HDR)\n"),
        (port.join("link_layer"), "Ethernet\n"),
        (port.join("counters/port_xmit_data"), "1000\n"),
        (port.join("hw_counters/np_cnp_sent"), "7\n"),
        (port.join("hw_counters/out_of_buffer"), "broken\n"),
        (
            folder.join("ethtool/eth0.txt"),
            "NIC statistics:\n     tx_prio3_pause: 90000\n     tx_prio3_pause_duration: 1500\n",
        ),
    ] {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let interface = folder.join("sys/class/infiniband/mlx5_0/device/net/eth0");
    fs::create_dir_all(interface).unwrap();
}

#[test]
fn a_copy_of_a_hosts_files_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    host(folder.path());
    let record = |arguments: &[&str]| {
        softfabric()
            .args([
                "record", "--count", "2", "--every", "1ms", "--node", "gpu17", "--root",
            ])
            .arg(folder.path())
            .args(arguments)
            .output()
            .unwrap()
    };
    let output = record(&[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let complaints = String::from_utf8(output.stderr).unwrap();
    let words: Vec<&str> = complaints.split_whitespace().collect();
    let complaints = words.join(" ");
    assert!(
        complaints.contains("out_of_buffer: no number"),
        "{complaints}"
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines[0]["start_unix_ns"].as_u64().unwrap() > 0);
    assert_eq!(lines[2]["port"], "gpu17:eth0");
    assert_eq!(lines[2]["rate"], "100Gb/s");
    for sample in &lines[3..] {
        assert_eq!(sample["counters"]["tx_prio3_pause_duration"], 1500);
        assert_eq!(sample["counters"]["port_xmit_data"], 4000);
        assert_eq!(sample["counters"]["np_cnp_sent"], 7);
        assert_eq!(sample["up"], true);
    }
    let recording = folder.path().join("gpu17.jsonl");
    fs::write(&recording, text).unwrap();
    // One host without a cable says nothing of a fabric.
    let output = diagnose(&recording, &["--json"]);
    assert_eq!(output.status.code(), Some(2));
    let diagnosis = json(&output);
    assert_eq!(diagnosis["verdict"], "not_enough_data", "{diagnosis:#}");
    let summary = diagnosis["summary"].as_str().unwrap();
    assert!(summary.starts_with("No cable is known"), "{summary}");
    fs::remove_dir_all(folder.path().join("sys/class/infiniband")).unwrap();
    assert_eq!(record(&[]).status.code(), Some(2));
}

/// A host with ports of both kinds: one recording is of one of them.
#[test]
fn a_recording_is_of_one_link_layer() {
    let folder = tempfile::tempdir().unwrap();
    host(folder.path());
    let port = folder
        .path()
        .join("sys/class/infiniband/mlx5_1/ports/1/link_layer");
    fs::create_dir_all(port.parent().unwrap()).unwrap();
    fs::write(port, "InfiniBand\n").unwrap();
    let record = |arguments: &[&str]| {
        let output = softfabric()
            .args(["record", "--count", "1", "--node", "gpu17", "--root"])
            .arg(folder.path())
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let warning = String::from_utf8(output.stderr).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (text, warning.contains("mlx5_1 are left out"))
    };
    let (text, warned) = record(&[]);
    assert!(
        text.contains("\"link_layer\":\"ethernet\"") && warned,
        "{text}"
    );
    assert!(
        text.contains("gpu17:eth0") && !text.contains("mlx5_1"),
        "{text}"
    );
    let (text, warned) = record(&["--link-layer", "infiniband"]);
    assert!(
        text.contains("\"link_layer\":\"infiniband\"") && !warned,
        "{text}"
    );
    assert!(
        text.contains("gpu17:mlx5_1") && !text.contains("eth0"),
        "{text}"
    );
}

/// Lines that are left out say of which of several files they are.
#[test]
fn lines_left_out_name_their_file() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let text = format!(
            "{{\"softfabric_counters\":1}}\n{{\"node\":\"{name}\",\"kind\":\"host\"}}\nrubbish\n"
        );
        fs::write(folder.path().join(format!("{name}.jsonl")), text).unwrap();
    }
    fs::write(folder.path().join("cables.txt"), "a b c\n").unwrap();
    let output = softfabric()
        .current_dir(folder.path())
        .args([
            "diagnose",
            "a.jsonl",
            "b.jsonl",
            "--cables",
            "cables.txt",
            "--json",
        ])
        .output()
        .unwrap();
    let document = json(&output);
    let first = document["skipped"]["first"].as_array().unwrap();
    assert_eq!(first[0], "a.jsonl, line 3: neither node, port nor sample");
    assert_eq!(first[1], "b.jsonl, line 3: neither node, port nor sample");
    assert_eq!(first[2], "cables.txt, line 1: a cable has two ends, not 3");
}

/// Hosts tell their side, the switch's LLDP table tells the cables: the storm is found though the switch itself is silent.
#[test]
fn recordings_of_hosts_and_cables_from_lldp_make_a_fabric() {
    let folder = tempfile::tempdir().unwrap();
    let head = |about: &str| {
        format!(
            "{{\"softfabric_counters\":1,\"about\":\"{about}\",\"start_unix_ns\":1700000000000000000}}\n"
        )
    };
    let mut files = Vec::new();
    let mut switch = head("switch");
    switch.push_str("{\"node\":\"leaf0\",\"kind\":\"switch\"}\n");
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        let port = format!("Ethernet{}", number * 4);
        switch.push_str(&format!(
            "{{\"port\":\"leaf0:{port}\",\"node\":\"leaf0\",\"rate\":\"100Gb/s\"}}\n"
        ));
        let mut text = head(name);
        text.push_str(&format!("{{\"node\":\"{name}\",\"kind\":\"host\"}}\n"));
        text.push_str(&format!(
            "{{\"port\":\"{name}:eth0\",\"node\":\"{name}\",\"rate\":\"100Gb/s\"}}\n"
        ));
        for second in 0..6_u64 {
            // b pauses the switch for good, which pauses a; c is at rest.
            let (sent, received) = match name {
                "a" => (0, second * 900_000),
                "b" => (second * 995_000, 0),
                _ => (0, 0),
            };
            text.push_str(&format!(
                "{{\"at_ns\":{},\"port\":\"{name}:eth0\",\"counters\":{{\"tx_prio3_pause_duration\":{sent},\
                 \"rx_prio3_pause_duration\":{received},\"port_xmit_data\":{},\"port_rcv_data\":0}}}}\n",
                second * 1_000_000_000,
                second * 1_000,
            ));
        }
        files.push((format!("{name}.jsonl"), text));
    }
    files.push(("leaf0.jsonl".to_owned(), switch));
    files.push((
        "lldp.txt".to_owned(),
        "LocalPort RemoteDevice RemotePortID Capability RemotePortDescr\n\
         Ethernet0 a 02:00:00:00:00:01 B eth0\nEthernet4 b 02:00:00:00:00:02 B eth0\n\
         Ethernet8 c 02:00:00:00:00:03 B eth0\n"
            .to_owned(),
    ));
    for (name, text) in &files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let output = softfabric()
        .current_dir(folder.path())
        .args(["diagnose", "a.jsonl", "b.jsonl", "c.jsonl", "leaf0.jsonl"])
        .args(["--lldp", "leaf0=lldp.txt", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let document = json(&output);
    assert_eq!(document["verdict"]["cause"], "host_storm", "{document:#}");
    assert_eq!(document["findings"][0]["node"], "b");
    assert_eq!(document["victims"][0]["host"], "a");
    // The same cables as a list.
    let cables = "leaf0:Ethernet0 a:eth0\nleaf0:Ethernet4 b:eth0\nleaf0:Ethernet8 c:eth0\n";
    fs::write(folder.path().join("cables.txt"), cables).unwrap();
    let output = softfabric()
        .current_dir(folder.path())
        .args(["diagnose", "a.jsonl", "b.jsonl", "c.jsonl", "leaf0.jsonl"])
        .args(["--cables", "cables.txt", "--json"])
        .output()
        .unwrap();
    assert_eq!(json(&output)["findings"], document["findings"]);
}

/// The scores of the quick tier: what the project promises of a diagnosis that sees everything, and of one that does not.
#[test]
fn the_benchmark_scores_what_it_should() {
    let output = softfabric()
        .args([
            "benchmark",
            "diagnose",
            "--seeds",
            "1",
            "--seed",
            "7",
            "--json",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let board = json(&output);
    let outcomes = board["outcomes"].as_array().unwrap();
    assert!(outcomes.len() > 150, "{}", outcomes.len());
    let share = |view: &str, of: &dyn Fn(&Value) -> bool, wanted: &dyn Fn(&Value) -> bool| {
        let all = outcomes.iter().filter(|o| o["view"] == view && of(o));
        let all: Vec<&Value> = all.collect();
        let wanted = all.iter().filter(|o| wanted(o)).count();
        wanted as f64 / all.len() as f64
    };
    let is_faulty = |o: &Value| !o["truth"].is_null();
    let names_a_cause = |o: &Value| o["verdict"].is_object();
    let cause_is_right = |o: &Value| is_faulty(o) && o["cause_is_right"] == true;
    let place_is_right = |o: &Value| o["place_is_right"] == true;
    let missing = "20 % of ports missing";
    let late = "10 % of samples lost, others late";
    for view in ["whole", late] {
        assert!(
            share(view, &names_a_cause, &cause_is_right) >= 0.95,
            "precision, {view}"
        );
        assert!(
            share(view, &is_faulty, &cause_is_right) >= 0.95,
            "recall, {view}"
        );
        assert!(
            share(view, &is_faulty, &place_is_right) >= 0.95,
            "place, {view}"
        );
    }
    assert!(share(missing, &is_faulty, &place_is_right) >= 0.85);
    for view in ["whole", missing, late] {
        assert_eq!(
            share(view, &|o| !is_faulty(o), &names_a_cause),
            0.0,
            "false alarms, {view}"
        );
        let baseline = share(view, &is_faulty, &|o| o["most_pausing_is_right"] == true);
        assert!(baseline < 0.5, "the simple rule is as good: {baseline}");
    }
}
