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
        "leaf2:3 rx_prio3_pause_duration: h11 holds it for",
        "is held by h11",
        "(price: ",
        "only symptoms (",
        "victims (",
        "Turning PFC off: the pauses end and packets are lost instead",
        "seen: 40 of 40 ports",
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
