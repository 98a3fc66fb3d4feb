//! `softfabric commission`, and what a watch makes of its baselines.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use softfabric_testkit::programs::has;

/// Twelve hosts over a fabric wide enough for all of them, with what happens to it after this.
const NETWORK: &str = r#"
[topology]
kind = "leaf_spine"
leaves = 3
spines = 2
hosts_per_leaf = 4
rate = "25Gb/s"
trunk_rate = "100Gb/s"

[host.congestion_control]
kind = "dcqcn_nic"

[[workload]]
kind = "poisson"
load = 0.5
duration = "39ms"

[stop]
at = "40ms"
"#;
const SLOW_HOST: &str =
    "\n[[event]]\nkind = \"drain\"\nat = \"10ms\"\nhosts = [\"h7\"]\nrate = \"4Gb/s\"\n";
const BAD_CABLE: &str = "\n[[event]]\nkind = \"bit_errors\"\nat = \"10ms\"\nbetween = [\"leaf1\", \"h6\"]\nbit_error_rate = 1e-6\n";

struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, events) in [("healthy", ""), ("slow", SLOW_HOST), ("bad", BAD_CABLE)] {
            fs::write(
                folder.path().join(format!("{name}.toml")),
                format!("{NETWORK}{events}"),
            )
            .unwrap();
        }
        Self(folder)
    }

    fn softfabric(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_softfabric"))
            .current_dir(self.0.path())
            .env("NO_COLOR", "1")
            .env("COLUMNS", "200")
            .args(arguments)
            .output()
            .unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A baseline that was written.
    fn document(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_healthy_fabric_is_a_baseline_and_a_slow_host_an_outlier() {
    let lab = Lab::new();
    let healthy = lab.softfabric(&["commission", "healthy.toml", "-o", "baseline.json"]);
    assert_eq!(healthy.status.code(), Some(0), "{healthy:?}");
    assert!(
        text(&healthy.stdout).contains("nobody is slower than the rest"),
        "{healthy:?}"
    );
    let document = lab.document("baseline.json");
    assert_eq!(document["pairs"].as_array().unwrap().len(), 12 * 11);
    let rounds = document["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| pair["round"].as_u64().unwrap());
    assert_eq!(rounds.max(), Some(10), "n - 1 rounds for n hosts");
    assert_eq!(document["hosts"].as_array().unwrap().len(), 12);
    for host in document["hosts"].as_array().unwrap() {
        let sends = host["sends_bps"].as_f64().unwrap();
        assert!(
            (22e9..25e9).contains(&sends),
            "close to the line rate: {host}"
        );
    }
    assert_eq!(document["conditions"]["seed"], 1);
    assert!(
        document["conditions"]["command"]
            .as_str()
            .unwrap()
            .contains("healthy.toml")
    );
    // The same again is the same, whatever the number of threads.
    let again = lab.softfabric(&["commission", "healthy.toml", "-o", "baseline.json"]);
    assert!(again.status.success());
    let repeated = lab.document("baseline.json");
    assert_eq!(repeated, document);
    let slow = lab.softfabric(&["commission", "slow.toml", "--at", "20ms"]);
    assert_eq!(slow.status.code(), Some(1), "{slow:?}");
    let said = text(&slow.stdout);
    let outliers: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("slow "))
        .collect();
    assert_eq!(outliers.len(), 1, "{said}");
    assert!(outliers[0].starts_with("slow host: h7 receives"), "{said}");
    // Before the event nothing is slow.
    let before = lab.softfabric(&["commission", "slow.toml", "--at", "5ms"]);
    assert_eq!(before.status.code(), Some(0), "{before:?}");
    let bad = lab.softfabric(&["commission", "bad.toml", "--at", "20ms"]);
    assert_eq!(bad.status.code(), Some(1), "{bad:?}");
    let said = text(&bad.stdout);
    let slow = || said.lines().filter(|line| line.starts_with("slow "));
    assert!(slow().count() > 0, "{said}");
    assert!(slow().all(|line| line.contains("h6")), "{said}");
}

#[test]
fn rails_are_told_apart_and_a_ring_is_one_round() {
    let lab = Lab::new();
    let rails =
        "[topology]\nkind = \"rail_optimised\"\nservers = 4\nrails = 4\nrate = \"100Gb/s\"\n";
    let event = "[[event]]\nkind = \"bit_errors\"\nat = \"1us\"\nbetween = [\"h2\", \"rail3leaf0\"]\nbit_error_rate = 1e-6\n";
    fs::write(lab.path("rails.toml"), format!("{rails}{event}")).unwrap();
    let pairs = lab.softfabric(&["commission", "rails.toml", "-o", "-", "--quiet"]);
    assert_eq!(pairs.status.code(), Some(0), "{pairs:?}");
    let document: Value = serde_json::from_slice(&pairs.stdout).unwrap();
    assert_eq!(document["pairs"].as_array().unwrap().len(), 4 * 3 * 4);
    let ring = lab.softfabric(&[
        "commission",
        "rails.toml",
        "--collective",
        "--at",
        "1ms",
        "-o",
        "ring.json",
    ]);
    let said = text(&ring.stdout);
    assert_eq!(ring.status.code(), Some(1), "{ring:?}");
    let document = lab.document("ring.json");
    assert_eq!(document["pairs"].as_array().unwrap().len(), 4 * 4);
    assert_eq!(document["conditions"]["pattern"], "rings");
    let slow: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("slow "))
        .collect();
    assert_eq!(slow.len(), 2, "{said}");
    assert!(
        slow.iter()
            .all(|line| line.contains("h2 on rail 3") || line.contains("from h2 to h3 on rail 3")),
        "{said}"
    );
}

/// What differs from the baseline is found where it is, since when it is, and nowhere else.
#[test]
fn a_watch_with_a_baseline_finds_what_degraded_and_nothing_in_a_healthy_fabric() {
    let lab = Lab::new();
    let made = lab.softfabric(&[
        "commission",
        "healthy.toml",
        "--quiet",
        "-o",
        "baseline.json",
    ]);
    assert!(made.status.success(), "{made:?}");
    let watch = |scenario: &str| -> Value {
        let output = lab.softfabric(&[
            "watch",
            scenario,
            "--once",
            "--json",
            "--every",
            "1ms",
            "--baseline",
            "baseline.json",
        ]);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let healthy = watch("healthy.toml");
    assert_eq!(healthy["kind"], "calm", "{}", healthy["summary"]);
    assert_eq!(healthy["episodes"], Value::Array(Vec::new()));
    assert!(healthy["baseline"]["compared"].as_u64().unwrap() >= 36);
    let slow = watch("slow.toml");
    let episodes = slow["episodes"].as_array().unwrap();
    let first = &episodes[0];
    assert_eq!(first["place"], "h7", "{episodes:#?}");
    let since = first["since_ns"].as_u64().unwrap();
    // The host is slow from 10 ms on; megabytes of buffer fill before anybody is paused.
    assert!((10_000_000..=20_000_000).contains(&since), "{since}");
    // What differs is where h7 is, or suffers from it.
    let differs = slow["baseline"]["deviations"].as_u64().unwrap()
        + slow["baseline"]["explained"].as_u64().unwrap();
    assert!(differs > 0, "{:#}", slow["baseline"]);
    let usual = slow["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|host| host["name"] == "h7")
        .unwrap();
    assert!(
        usual["receives_bps"].as_f64().unwrap()
            < 0.3 * usual["usual_receives_bps"].as_f64().unwrap()
    );
}

#[test]
fn another_program_measures_real_hosts() {
    let lab = Lab::new();
    let table =
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\\n";
    let pair = format!(
        "case {{client}}{{server}} in *c*) speed=40;; *) speed=96;; esac; printf ' Mtu             : 4096[B]\\n{table} 65536      5000             99.00              '$speed'.5   0.17\\n'"
    );
    let output = lab.softfabric(&[
        "commission",
        "--hosts",
        "a,b,c,d,e,f",
        "--pair-command",
        &pair,
        "-o",
        "real.json",
    ]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stdout);
    assert!(
        said.contains("slow host: c sends 40.5 Gb/s")
            && said.contains("slow host: c receives 40.5 Gb/s"),
        "{said}"
    );
    assert_eq!(said.matches("slow ").count(), 2, "{said}");
    let document = lab.document("real.json");
    assert_eq!(document["conditions"]["settings"]["Mtu"], "4096[B]");
    assert!(
        document["conditions"]["made"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    // One pair fails: it is named, the rest is kept.
    let pair = pair.replace("speed=40", "echo no route to host >&2; exit 3");
    let output = lab.softfabric(&[
        "commission",
        "--hosts",
        "a,b,c",
        "--pair-command",
        &pair,
        "-o",
        "real.json",
    ]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stdout);
    assert!(
        said.contains("not measured: from a to c: exit status: 3: no route to host"),
        "{said}"
    );
    let nothing = lab.softfabric(&[
        "commission",
        "--hosts",
        "a,b",
        "--pair-command",
        "true {server}",
    ]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(
        text(&nothing.stderr).contains("nothing was printed"),
        "{nothing:?}"
    );
}

/// perftest itself, between two devices of this host.
#[test]
fn perftest_measures_over_softfabric_exec() {
    let test = "perftest_measures_over_softfabric_exec";
    if !has(test, "ib_write_bw", "perftest") {
        return;
    }
    let lab = Lab::new();
    let program = env!("CARGO_BIN_EXE_softfabric");
    let run = |of: &str| format!("'{program}' exec --device lo -- {of} -p {{port}} -n 500");
    let server = format!("{} --report_gbits # {{server}}", run("ib_write_bw"));
    let pair = format!(
        "{} --report_gbits 127.0.0.1 # {{client}}",
        run("ib_write_bw")
    );
    let latency_server = run("ib_write_lat");
    let latency = format!("{} 127.0.0.1", run("ib_write_lat"));
    let output = lab.softfabric(&[
        "commission",
        "--hosts",
        "one,two",
        "--server-command",
        &server,
        "--pair-command",
        &pair,
        "--latency-server-command",
        &latency_server,
        "--latency-command",
        &latency,
        "-o",
        "real.json",
    ]);
    assert_ne!(output.status.code(), Some(2), "{output:?}");
    let document = lab.document("real.json");
    let pairs = document["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2, "{output:?}");
    for pair in pairs {
        assert!(pair["bandwidth_bps"].as_f64().unwrap() > 1e6, "{pair}");
        assert!(pair["latency_ns"].as_f64().unwrap() > 100.0, "{pair}");
    }
    assert_eq!(document["conditions"]["tool"], "ib_write_bw");
}
