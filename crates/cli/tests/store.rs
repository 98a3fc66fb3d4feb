//! Stores on the command line: recorded, read, interrupted, full, and read by another program.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use softfabric_testkit::programs::has;

fn softfabric() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_softfabric"));
    command.env("NO_COLOR", "1");
    command
}

/// A host with one port, as files.
fn host(folder: &Path) {
    let port = folder.join("sys/class/infiniband/mlx5_0/ports/1");
    for (file, text) in [
        ("state", "4: ACTIVE\n"),
        ("rate", "100 Gb/sec (2X HDR)\n"),
        ("link_layer", "InfiniBand\n"),
        ("counters/port_xmit_data", "1000\n"),
        ("counters/port_xmit_wait", "70\n"),
        ("hw_counters/np_cnp_sent", "7\n"),
    ] {
        let file = port.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

/// Records the host into a store.
fn record(host: &Path, store: &Path, more: &[&str]) -> Command {
    let mut command = softfabric();
    command.args(["record", "--every", "10ms", "--node", "gpu17", "--root"]);
    command.arg(host).arg("--store").arg(store).args(more);
    command
}

fn segments(store: &Path) -> Vec<String> {
    let names = fs::read_dir(store).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("samples-")).collect();
    names.sort();
    names
}

/// What was said on standard error, without the frame and the line breaks of a terminal.
fn said(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| *word != "│")
        .collect();
    words.join(" ")
}

fn diagnose(store: &Path, more: &[&str]) -> Output {
    softfabric()
        .arg("diagnose")
        .arg(store)
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn a_store_grows_and_a_part_of_it_is_diagnosed() {
    let folder = tempfile::tempdir().unwrap();
    let (host_folder, store) = (folder.path().join("host"), folder.path().join("store"));
    host(&host_folder);
    for _ in 0..2 {
        let output = record(&host_folder, &store, &["--count", "5"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(segments(&store).len(), 2);
    // One host alone, whose cables nobody knows, is too little for a verdict; it was read, though.
    let output = diagnose(&store, &["--json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        answer["coverage"]["watched"]
            .as_str()
            .unwrap()
            .ends_with('s'),
        "{answer}"
    );
    let past = [
        "--from",
        "2020-01-01T00:00:00Z",
        "--to",
        "2020-01-02T00:00:00Z",
    ];
    let output = diagnose(&store, &past);
    let error = said(&output);
    assert!(error.contains("nothing was stored at that time"), "{error}");
    let output = diagnose(&store, &["--from", "yesterday"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let output = diagnose(folder.path(), &[]);
    let error = said(&output);
    assert!(error.contains("no files of a store"), "{error}");
    // What a scraper would see.
    let output = softfabric().arg("export").arg(&store).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("node_infiniband_np_cnp_packets_sent_total"),
        "{text}"
    );
}

#[test]
fn an_interrupted_session_closes_its_file() {
    let test = "an_interrupted_session_closes_its_file";
    if !has(test, "kill", "procps") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (host_folder, store) = (folder.path().join("host"), folder.path().join("store"));
    host(&host_folder);
    let mut child = record(&host_folder, &store, &[])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    #[expect(clippy::disallowed_methods, reason = "a real program takes real time")]
    let begin = Instant::now();
    // The topology is there before the first sample; then some samples come.
    while !store.join("topology-0001.jsonl").exists() && begin.elapsed() < Duration::from_secs(30) {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(300));
    let id = child.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(segments(&store).len(), 1);
    let left = fs::read_dir(&store).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing is left open: {left:?}");
}

/// A disk of a few pages, if this user may make one.
#[test]
fn a_full_disk_is_said_and_what_was_closed_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (host_folder, disk) = (folder.path().join("host"), folder.path().join("disk"));
    host(&host_folder);
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "none"])
        .arg(&disk)
        .stderr(Stdio::null())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        println!(
            "SKIPPED a_full_disk_is_said_and_what_was_closed_is_whole: only root mounts a small disk"
        );
        return;
    }
    let store = disk.join("store");
    // Files of a few samples each fill it after some of them.
    let output = record(
        &host_folder,
        &store,
        &["--count", "2000", "--segment", "20ms"],
    )
    .output();
    let read = diagnose(&store, &["--json"]);
    let closed = segments(&store).len();
    Command::new("umount").arg(&disk).status().unwrap();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = said(&output);
    assert!(error.contains("the disk is full"), "{error}");
    assert!(closed > 1, "{closed}");
    let answer: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(answer["skipped"]["lines"], 0, "{answer}");
}
