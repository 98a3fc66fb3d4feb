//! `softfabric compare` and `softfabric tune` as programs: tables on wide and narrow terminals, pages, JSON, pipes, mistakes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const SCENARIO: &str = r#"
description = "Five <to> one"

[topology]
kind = "star"
hosts = 6

[switch]
alpha = "1/16"

[[workload]]
kind = "incast"
bytes = "300KB"

[[event]]
kind = "link_down"
at = "30us"
between = ["h0", "s0"]

[[event]]
kind = "link_up"
at = "200us"
between = ["h0", "s0"]
"#;

fn folder_with(scenario: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.toml"), scenario).unwrap();
    folder
}

fn softfabric(folder: &Path, columns: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_softfabric"));
    command.env("NO_COLOR", "1").env("COLUMNS", columns);
    command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_table_fits_wide_and_narrow_terminals() {
    let folder = folder_with(SCENARIO);
    for columns in ["120", "80", "44"] {
        let output = softfabric(
            folder.path(),
            columns,
            &["compare", "small.toml", "--seeds", "2"],
        );
        let table = text(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{table}\n{}",
            text(&output.stderr)
        );
        let width: usize = columns.parse().unwrap();
        for line in table.lines() {
            assert!(
                line.chars().count() <= width,
                "{columns}: {line:?}\n{table}"
            );
        }
        for word in [
            "TCP/IP",
            "RoCEv2",
            "InfiniBand",
            "FCT p99",
            "Ecosystem",
            "not measured by a simulation",
            "Link down",
        ] {
            assert!(table.contains(word), "{columns}: no {word} in\n{table}");
        }
        let in_one_line = table.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            in_one_line.contains("left out over TCP/IP: switch.alpha"),
            "{table}"
        );
    }
}

#[test]
fn the_page_needs_nothing_and_escapes_what_the_file_says() {
    let folder = folder_with(SCENARIO);
    let output = softfabric(
        folder.path(),
        "80",
        &["compare", "small.toml", "--html", "page.html"],
    );
    assert!(
        text(&output.stdout).ends_with("report: page.html\n"),
        "{}",
        text(&output.stdout)
    );
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("Five &lt;to&gt; one"));
    assert!(page.contains("default-src 'none'"));
    for loads in ["src=\"http", "href=\"http", "@import"] {
        assert!(!page.contains(loads), "{loads}");
    }
    assert!(
        page.contains("softfabric compare small.toml --seeds 3"),
        "the command is in the page"
    );
}

#[test]
fn each_technology_runs_once() {
    let folder = folder_with(SCENARIO);
    let arguments = "compare small.toml --only tcp,rocev2,tcp --seeds 1 --quick --quiet --json -";
    let arguments: Vec<_> = arguments.split(' ').collect();
    let output = softfabric(folder.path(), "80", &arguments);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let variants = document["variants"].as_array().unwrap();
    let names: Vec<_> = variants.iter().map(|variant| &variant["name"]).collect();
    assert_eq!(names, ["TCP/IP", "RoCEv2"]);
}

#[test]
fn json_on_standard_output_is_all_there_is_on_it() {
    let folder = folder_with(SCENARIO);
    let on_threads = |threads| {
        let arguments = "compare small.toml --json - --seeds 1 --threads"
            .split(' ')
            .chain([threads])
            .collect::<Vec<_>>();
        softfabric(folder.path(), "80", &arguments)
    };
    let output = on_threads("2");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        text(&output.stderr).contains("RoCEv2"),
        "the table is on standard error"
    );
    let variants = document["variants"].as_array().unwrap();
    let names: Vec<_> = variants
        .iter()
        .map(|v| v["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["TCP/IP", "RoCEv2", "InfiniBand"]);
    for variant in variants {
        assert!(
            variant["figures"]["completion_p99"]["median"]
                .as_f64()
                .unwrap()
                > 0.0
        );
        assert_eq!(
            variant["runs"][0]["aftermath"][0]["name"],
            "Link down h0 – s0"
        );
        assert_eq!(variant["calm"].as_array().unwrap().len(), 1);
    }
    assert_eq!(
        output.stdout,
        on_threads("1").stdout,
        "equal bytes for any number of threads"
    );
}

#[test]
fn mistakes_are_named_with_their_place() {
    let folder = folder_with(&format!(
        "{SCENARIO}\n[compare.tcp.host.tcp]\ncongestion_controll = {{ kind = \"dctcp\" }}\n"
    ));
    let output = softfabric(folder.path(), "100", &["compare", "small.toml"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        error.contains("compare.tcp.host.tcp.congestion_controll")
            && error.contains("did you mean `congestion_control`"),
        "{error}"
    );
    assert!(error.contains("small.toml:26"), "{error}");
    let folder = folder_with(SCENARIO);
    for (arguments, word) in [
        (
            &["compare", "small.toml", "--set", "switch.alhpa=1"][..],
            "did you mean `alpha`",
        ),
        (
            &["compare", "small.toml", "--set", "workload[7].bytes=1KB"],
            "entry 7",
        ),
        (
            &["compare", "small.toml", "--set", "host.mtu"],
            "FIELD=VALUES",
        ),
        (
            &["compare", "small.toml", "--only", "myrinet"],
            "invalid value 'myrinet'",
        ),
        (&["compare", "missing.toml"], "missing.toml"),
        (&["tune", "small.toml", "--budget", "5"], "at least 24"),
    ] {
        let output = softfabric(folder.path(), "100", arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(word), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = folder_with(SCENARIO);
    let mut child = Command::new(env!("CARGO_BIN_EXE_softfabric"))
        .current_dir(folder.path())
        .args(["compare", "small.toml", "--quick", "--seeds", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn what_tune_writes_is_a_scenario() {
    let folder = folder_with(SCENARIO);
    let arguments = [
        "tune",
        "small.toml",
        "--budget",
        "14",
        "--seeds",
        "1",
        "--output",
        "tuned.toml",
        "--json",
        "tuned.json",
    ];
    let output = softfabric(folder.path(), "80", &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(
        table.contains("switch.ecn.kmin") && table.contains("With seeds that it has not seen"),
        "{table}"
    );
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line:?}\n{table}");
    }
    let run = softfabric(
        folder.path(),
        "80",
        &["run", "tuned.toml", "--no-report", "--quiet"],
    );
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let document: Value =
        serde_json::from_slice(&fs::read(folder.path().join("tuned.json")).unwrap()).unwrap();
    assert!(document["best"]["worth"]["tail_ns"].as_f64().unwrap() > 0.0);
    assert!(document["simulations"].as_u64().unwrap() <= 14);
}
