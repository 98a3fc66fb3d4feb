//! `softfabric run` as a program: exit codes, files, pipes, and the same bytes again.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Four hosts send to one: small, quick, lossless.
const SCENARIO: &str = r#"
[topology]
kind = "star"
hosts = 5
rate = "100Gb/s"
delay = "200ns"

[switch]
lossless = [3]

[record]
pause_log = true

[[workload]]
kind = "incast"
from = ["h0..h3"]
to = "h4"
bytes = "200KB"
"#;

/// The same with far too little headroom.
fn lossy_scenario() -> String {
    SCENARIO.replace(
        "lossless = [3]",
        "lossless = [3]\nbuffer = \"256KiB\"\nheadroom = \"1KiB\"",
    )
}

fn softfabric() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_softfabric"));
    command.env_remove("COLUMNS").env("NO_COLOR", "1");
    command
}

fn folder_with(scenario: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.toml"), scenario).unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = softfabric();
    command.current_dir(folder).args(["run", "small.toml"]);
    command.args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
}

#[test]
fn a_good_run_prints_a_table_and_names_its_report_last() {
    let folder = folder_with(SCENARIO);
    let output = run(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.starts_with("small 4 of 4 flows done in"), "{table}");
    assert_eq!(table.lines().last(), Some("report: softfabric-report.html"));
    let page = fs::read_to_string(folder.path().join("softfabric-report.html")).unwrap();
    assert!(
        page.contains("softfabric run small.toml"),
        "the command is in the report"
    );
    assert!(!table.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn every_output_is_written_and_agrees() {
    let folder = folder_with(SCENARIO);
    let arguments = [
        "--json",
        "out.json",
        "--csv",
        "tables",
        "--report",
        "r.html",
        "--pcap",
        "h4=h4.pcapng",
        "--check-wire",
        "--quiet",
    ];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "", "quiet");
    let document = json(folder.path(), "out.json");
    let flows = document["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 4);
    assert_eq!(flows[0]["bytes"], 200_000);
    let table = fs::read_to_string(folder.path().join("tables/flows.csv")).unwrap();
    assert_eq!(table.lines().count(), 5);
    let first = table.lines().nth(1).unwrap();
    assert!(first.contains(&flows[0]["fct_ns"].to_string()), "{first}");
    let sent = document["conservation"]["sent"].as_u64().unwrap();
    assert!(sent > 0);
    assert_eq!(
        sent,
        document["conservation"]["delivered"].as_u64().unwrap()
    );
    let capture = fs::read(folder.path().join("h4.pcapng")).unwrap();
    assert_eq!(capture[..4], [0x0a, 0x0d, 0x0d, 0x0a], "a pcapng file");
    assert!(capture.len() > 10_000, "{} bytes", capture.len());
}

#[test]
fn the_same_seed_gives_the_same_bytes_for_any_number_of_threads() {
    let folder = folder_with(SCENARIO);
    let documents = [("a.json", "1"), ("b.json", "3")].map(|(name, threads)| {
        let arguments = [
            "--json",
            name,
            "--threads",
            threads,
            "--no-report",
            "--seed",
            "9",
        ];
        assert_eq!(run(folder.path(), &arguments).status.code(), Some(0));
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        let (before, rest) = text.split_once("\"wall_seconds\":").unwrap();
        let (_, after) = rest.split_once(',').unwrap();
        format!("{before}{after}")
    });
    assert!(documents[0].contains("\"seed\":9"));
    assert!(documents[0] == documents[1], "the documents differ");
}

#[test]
fn lossless_drops_are_a_failure_and_come_first() {
    let folder = folder_with(&lossy_scenario());
    let output = run(folder.path(), &["--json", "out.json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(
        table.starts_with("FAILURE Lossless classes dropped"),
        "{table}"
    );
    let document = json(folder.path(), "out.json");
    assert!(document["summary"]["lossless_drops"].as_u64().unwrap() > 0);
    assert_eq!(document["findings"][0]["kind"], "lossless_drops");
    let quiet = run(folder.path(), &["--quiet"]);
    assert_eq!(quiet.status.code(), Some(1));
    assert_eq!(text(&quiet.stdout), "");
    assert!(text(&quiet.stderr).contains("FAILURE Lossless classes dropped"));
}

#[test]
fn json_to_standard_output_is_nothing_but_json() {
    let folder = folder_with(SCENARIO);
    let output = run(folder.path(), &["--json", "-", "--no-report"]);
    assert_eq!(output.status.code(), Some(0));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["summary"]["flows"], 4);
    assert!(
        text(&output.stderr).contains("4 of 4 flows done"),
        "the table is on standard error"
    );
}

#[test]
fn what_cannot_be_written_is_named_and_the_rest_is_written() {
    let folder = folder_with(SCENARIO);
    let arguments = [
        "--json",
        "no/such/folder/x.json",
        "--csv",
        "tables",
        "--report",
        "r.html",
    ];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(2));
    let complaint = text(&output.stderr);
    assert!(complaint.contains("no/such/folder/x.json"), "{complaint}");
    assert!(
        complaint.contains("No such file or directory"),
        "{complaint}"
    );
    assert!(folder.path().join("tables/flows.csv").exists());
    assert!(folder.path().join("r.html").exists());
    assert!(text(&output.stdout).ends_with("report: r.html\n"));
}

#[test]
fn a_scenario_without_traffic_says_so() {
    let (without, _) = SCENARIO.split_once("[[workload]]").unwrap();
    let folder = folder_with(without);
    let output = run(folder.path(), &["--no-report"]);
    assert_eq!(output.status.code(), Some(0));
    let warning = text(&output.stderr);
    assert!(
        warning.contains("warning: there is no traffic"),
        "{warning}"
    );
    assert!(warning.contains("[[workload]]"), "{warning}");
}

#[test]
fn warnings_fit_narrow_terminals() {
    let scenario = format!("{SCENARIO}\n[host]\nmtu = \"36B\"\n");
    let folder = folder_with(&scenario);
    let mut command = softfabric();
    let command = command.current_dir(folder.path()).env("COLUMNS", "40");
    let output = command
        .args(["run", "small.toml", "--no-report"])
        .output()
        .unwrap();
    let warning = text(&output.stderr);
    assert!(warning.contains("→"), "{warning}");
    for line in warning.lines() {
        assert!(line.chars().count() <= 40, "{warning}");
    }
}

#[test]
fn a_missing_file_of_an_hpcc_run_is_named_with_the_line_that_names_it() {
    let folder = folder_with(SCENARIO);
    let config = "CC_MODE 1\nTOPOLOGY_FILE nowhere.txt\nFLOW_FILE flows.txt\nHAS_WIN 0\nRATE_BOUND 1\nL2_ACK_INTERVAL 1\n";
    fs::write(folder.path().join("w.conf"), config).unwrap();
    let mut command = softfabric();
    let command = command.current_dir(folder.path()).env("COLUMNS", "200");
    let output = command.args(["run", "w.conf"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let complaint = text(&output.stderr);
    assert!(
        complaint.contains(
            "w.conf:2: TOPOLOGY_FILE is nowhere.txt, which is not readable: No such file"
        ),
        "{complaint}"
    );
}

/// A folder that does not take files is named by the file that was to go there, not by a temporary one.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_no_files_is_an_error_without_temporary_names() {
    let folder = folder_with(SCENARIO);
    let output = run(folder.path(), &["--report", "/proc/report.html"]);
    assert_eq!(output.status.code(), Some(2));
    let complaint = text(&output.stderr);
    assert!(complaint.contains("/proc/report.html"), "{complaint}");
    assert!(!complaint.contains(".softfabric-"), "{complaint}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_says_so() {
    let folder = folder_with(SCENARIO);
    let output = run(
        folder.path(),
        &["--json", "/dev/full", "--report", "/dev/full"],
    );
    assert_eq!(output.status.code(), Some(2));
    let complaint = text(&output.stderr);
    assert_eq!(
        complaint.matches("No space left on device").count(),
        2,
        "{complaint}"
    );
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = softfabric();
    let arguments = ["run", "small.toml", "--json", "out.json"];
    let command = command
        .current_dir(folder.path())
        .args(arguments)
        .stdout(full);
    let output = command.output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(2),
        "the table could not be printed"
    );
    assert!(folder.path().join("out.json").exists());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = folder_with(SCENARIO);
    for arguments in [&["--json", "-"][..], &[]] {
        let mut command = softfabric();
        command
            .current_dir(folder.path())
            .args(["run", "small.toml"])
            .args(arguments);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The reader closes its end before anything is written.
        drop(child.stdout.take());
        let mut complaint = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut complaint)
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{complaint}");
        assert!(
            !complaint.contains("panicked") && !complaint.contains("pipe"),
            "{complaint}"
        );
        assert!(folder.path().join("softfabric-report.html").exists());
        fs::remove_file(folder.path().join("softfabric-report.html")).unwrap();
    }
}

#[test]
fn a_scenario_comes_from_standard_input_too() {
    let folder = folder_with(SCENARIO);
    let input = fs::File::open(folder.path().join("small.toml")).unwrap();
    let mut command = softfabric();
    command
        .current_dir(folder.path())
        .args(["run", "-", "--no-report"])
        .stdin(input);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("4 of 4 flows done"));
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_writes_what_there_is() {
    // Far more than a test would wait for.
    let long = SCENARIO
        .replace("200KB", "200GB")
        .replace("[record]", "[stop]\nat = \"100s\"\n\n[record]");
    let folder = folder_with(&long);
    let mut command = softfabric();
    command
        .current_dir(folder.path())
        .args(["run", "small.toml", "--json", "out.json"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until_it_catches_interrupts(child.id());
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.starts_with("NOTE Interrupted at"), "{table}");
    assert_eq!(json(folder.path(), "out.json")["ending"], "interrupted");
    assert!(text(&output.stderr).contains("writing what there is"));
}

/// A signal that comes before its handler is there would end the program.
#[cfg(target_os = "linux")]
fn wait_until_it_catches_interrupts(process: u32) {
    const INTERRUPT: u64 = 1 << (2 - 1);
    loop {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        if caught & INTERRUPT != 0 {
            return;
        }
        std::thread::yield_now();
    }
}
