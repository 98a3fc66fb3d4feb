//! `softfabric what-if pfc-off`: the figures of both runs, and the sentence that they bear out.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.toml"))
}

fn pfc_off(scenario: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_softfabric"))
        .env("NO_COLOR", "1")
        .args(["what-if", "pfc-off"])
        .arg(scenario)
        .args(arguments)
        .output()
        .unwrap()
}

fn compared(scenario: &Path, arguments: &[&str]) -> Value {
    let output = pfc_off(scenario, &[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The storm of both scenarios: waiting becomes loss, and the goodput falls.
#[test]
fn turning_pfc_off_turns_a_slowdown_into_loss() {
    let document = compared(&scenario("storm_pfc_on"), &["--at", "1500us"]);
    let (before, after) = (&document["as_it_is"], &document["without_pfc"]);
    assert_eq!(before["dropped"], 0, "{document:#}");
    assert!(after["dropped"].as_u64().unwrap() > 1_000, "{document:#}");
    assert!(
        after["sent_again"].as_u64() > before["sent_again"].as_u64(),
        "{document:#}"
    );
    let figure = |of: &Value, name: &str| of[name].as_f64().unwrap();
    assert!(figure(after, "paused_seconds") < figure(before, "paused_seconds") / 2.0);
    assert!(
        figure(after, "goodput_bps") < figure(before, "goodput_bps"),
        "{document:#}"
    );
    assert_eq!(document["sources"][0], "h15");
    assert_eq!(document["outcome"], "worse", "{document:#}");
    // The scenario that turns it off itself says when; the other half of the comparison is without that.
    let same = compared(&scenario("storm_pfc_off"), &[]);
    assert_eq!(same["as_it_is"], document["as_it_is"]);
    assert_eq!(same["without_pfc"], document["without_pfc"]);
}

/// A job that waits for its slowest message: half a millisecond of storm becomes retransmission timeouts.
#[test]
fn a_job_pays_for_every_loss() {
    let document = compared(&scenario("storm_job"), &[]);
    let seconds = |of: &str| document[of]["jobs"][0]["seconds"].as_f64().unwrap();
    assert!(seconds("as_it_is") < 0.01, "{document:#}");
    assert!(
        seconds("without_pfc") > 10.0 * seconds("as_it_is"),
        "{document:#}"
    );
    assert_eq!(document["outcome"], "worse");
    let sentence = document["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("the time of job exchange rises"),
        "{sentence}"
    );
}

/// A storm that nobody ends, little traffic and congestion control: others are freed and no queue overflows, and that is said.
#[test]
fn where_it_helps_it_says_so() {
    let document = compared(&scenario("diagnose_host_storm"), &[]);
    assert_eq!(document["outcome"], "not_worse", "{document:#}");
    assert_eq!(document["without_pfc"]["dropped"], 0);
    let sentence = document["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("goodput of all other flows rises"),
        "{sentence}"
    );
}

/// Where nobody has to be held back, nothing becomes worse, and the sentence says so.
#[test]
fn where_the_figures_do_not_bear_it_out_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calm.toml");
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n\n[[workload]]\nkind = \"flow\"\nfrom = \"h0\"\nto = \"h1\"\nbytes = \"1MB\"\n";
    fs::write(&path, text).unwrap();
    let document = compared(&path, &[]);
    assert_eq!(document["outcome"], "not_worse", "{document:#}");
    let sentence = document["sentence"].as_str().unwrap();
    assert!(sentence.contains("do not bear out"), "{sentence}");
    assert_eq!(document["without_pfc"]["completed"], 1);
    let text = String::from_utf8(pfc_off(&path, &[]).stdout).unwrap();
    for part in [
        "as it is",
        "PFC off",
        "packets lost",
        "1 flows that end in both",
        "do not bear out",
    ] {
        assert!(
            text.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(part),
            "{part}: {text}"
        );
    }
}

#[test]
fn without_pfc_there_is_nothing_to_turn_off() {
    for name in ["infiniband_incast", "irn_without_pfc"] {
        let output = pfc_off(&scenario(name), &[]);
        assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(complaint.contains("PFC"), "{complaint}");
    }
}
