//! The real Prometheus: it takes our rules, scrapes what we serve, and an alert fires in a simulated storm.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::disallowed_methods, reason = "other programs run in real time")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
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

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// The storm of `diagnose_host_storm`, polled, as a recording in the folder.
fn record(folder: &Path) -> PathBuf {
    let recording = folder.join("storm.jsonl");
    let run = softfabric()
        .arg("run")
        .arg(repository("scenarios/diagnose_host_storm.toml"))
        .args(["--no-report", "--quiet", "--poll", "200us", "--counters"])
        .arg(&recording)
        .output()
        .unwrap();
    assert_ne!(run.status.code(), Some(2), "{run:?}");
    recording
}

/// Serves a recording, and says where.
fn serve(recording: &Path, slower: &str) -> (Ends, String) {
    let mut child = softfabric()
        .arg("export")
        .arg(recording)
        .args(["--listen", "127.0.0.1:0", "--slower", slower])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = child.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("serving http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap().to_owned();
    (Ends(child), address)
}

/// The body of what is at a path, and its head.
fn get(address: &str, path: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

#[test]
fn a_recording_is_served_as_open_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record(folder.path());
    let (_server, address) = serve(&recording, "1");
    // 20 ms have long passed.
    thread::sleep(Duration::from_millis(100));
    let (head, body) = get(&address, "/metrics").unwrap();
    assert!(
        head.contains("Content-Type: application/openmetrics-text"),
        "{head}"
    );
    let held = "softfabric_class_pause_received_seconds_total{device=\"leaf2\",port=\"3\",class=\"3\"} 0.0";
    assert!(body.lines().any(|line| line.starts_with(held)), "{body}");
    // The same at the end, printed.
    let printed = softfabric().arg("export").arg(&recording).output().unwrap();
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), body);
    assert!(get(&address, "/").unwrap().0.starts_with("HTTP/1.1 404"));
    let early = softfabric()
        .arg("export")
        .arg(&recording)
        .args(["--at", "1ms"])
        .output()
        .unwrap();
    let early = String::from_utf8(early.stdout).unwrap();
    let none =
        "softfabric_class_pause_received_seconds_total{device=\"leaf2\",port=\"3\",class=\"3\"} 0";
    assert!(
        early.lines().any(|line| line == none),
        "the storm begins later"
    );
}

#[test]
fn promtool_takes_the_rules_and_their_tests() {
    let test = "promtool_takes_the_rules_and_their_tests";
    if !has(test, "promtool", "prometheus") {
        return;
    }
    for arguments in [
        ["check", "rules", "softfabric.rules.yml"],
        ["test", "rules", "softfabric.rules.test.yml"],
    ] {
        let output = Command::new("promtool")
            .current_dir(repository("tools/prometheus"))
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

/// A Prometheus with these settings, and its address.
fn prometheus(folder: &Path, settings: &str) -> (Ends, String) {
    let config = folder.join("prometheus.yml");
    fs::write(&config, settings).unwrap();
    let address = {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().to_string()
    };
    let log = fs::File::create(folder.join("log")).unwrap();
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("data").display()
        ))
        .arg(format!("--web.listen-address={address}"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    (Ends(child), address)
}

/// As part of a URL.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The document that Prometheus answers; chunked or not, it is from the first brace to the last.
fn answer(address: &str, path: &str) -> Option<Value> {
    let (_, body) = get(address, path)?;
    serde_json::from_str(&body[body.find('{')?..=body.rfind('}')?]).ok()
}

/// Every panel of the dashboard has what Grafana asks for, and each of its queries has an answer in a storm.
#[test]
fn every_panel_of_the_dashboard_has_data() {
    let test = "every_panel_of_the_dashboard_has_data";
    let text = fs::read_to_string(repository("tools/grafana/softfabric.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    for field in [
        "title",
        "uid",
        "schemaVersion",
        "panels",
        "templating",
        "time",
        "refresh",
    ] {
        assert!(!dashboard[field].is_null(), "{field}");
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let variables: Vec<&str> = variables
        .map(|variable| variable["name"].as_str().unwrap())
        .collect();
    assert_eq!(variables, ["datasource", "device", "class"]);
    let mut queries = Vec::new();
    let mut numbers = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let place = &panel["gridPos"];
        let [x, w, h] = ["x", "w", "h"].map(|side| place[side].as_u64().unwrap());
        assert!(x + w <= 24 && h > 0, "{panel:#}");
        numbers.push(panel["id"].as_u64().unwrap());
        if panel["type"] == "text" {
            continue;
        }
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel:#}");
        assert!(
            panel["fieldConfig"]["defaults"]["unit"].is_string(),
            "{panel:#}"
        );
        for target in panel["targets"].as_array().unwrap() {
            assert!(target["refId"].is_string());
            queries.push((
                panel["title"].as_str().unwrap(),
                target["expr"].as_str().unwrap(),
            ));
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(
        numbers.len(),
        dashboard["panels"].as_array().unwrap().len(),
        "ids are unique"
    );
    if !has(test, "prometheus", "prometheus") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let recording = record(folder.path());
    let (_exporter, exported) = serve(&recording, "1000");
    let settings = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
         scrape_configs:\n  - job_name: softfabric\n    static_configs: [{{targets: ['{exported}']}}]\n"
    );
    let (_prometheus, address) = prometheus(folder.path(), &settings);
    // What Grafana puts in for its variables.
    let filled = |expression: &str| {
        expression
            .replace("$__rate_interval", "4s")
            .replace("$device", ".*")
            .replace("$class", ".*")
    };
    let ask = |expression: &str| {
        answer(
            &address,
            &format!("/api/v1/query?query={}", escaped(&filled(expression))),
        )
    };
    let begin = std::time::Instant::now();
    let held = |document: &Value| {
        document["data"]["result"][0]["value"][1]
            .as_str()
            .is_some_and(|value| value != "0")
    };
    while !ask(queries[0].1).is_some_and(|document| held(&document)) {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "no port is ever held"
        );
        thread::sleep(Duration::from_millis(200));
    }
    for (panel, expression) in queries {
        let document = ask(expression).unwrap();
        assert_eq!(
            document["status"], "success",
            "{panel}: {expression}: {document:#}"
        );
        // Hosts under node_exporter are no part of this recording.
        if expression.contains("host_pause_received") {
            continue;
        }
        let results = document["data"]["result"].as_array().unwrap();
        assert!(!results.is_empty(), "{panel}: {expression}");
    }
}

/// The replay takes 20 s for 20 ms; the alert's minute is two seconds here.
#[test]
fn an_alert_fires_in_a_simulated_storm() {
    let test = "an_alert_fires_in_a_simulated_storm";
    if !has(test, "prometheus", "prometheus") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let recording = record(folder.path());
    let (_exporter, exported) = serve(&recording, "1000");
    let rules = fs::read_to_string(repository("tools/prometheus/softfabric.rules.yml")).unwrap();
    let quick = rules
        .replace("[1m:15s]", "[4s:1s]")
        .replace("[1m]", "[4s]")
        .replace("for: 1m", "for: 2s");
    assert_ne!(quick, rules);
    fs::write(folder.path().join("rules.yml"), quick).unwrap();
    let settings = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yml]\n\
         scrape_configs:\n  - job_name: softfabric\n    static_configs: [{{targets: ['{exported}']}}]\n"
    );
    let (_prometheus, address) = prometheus(folder.path(), &settings);
    let fired = || -> Option<Vec<String>> {
        let document = answer(&address, "/api/v1/alerts")?;
        let alerts = document["data"]["alerts"].as_array()?.iter();
        let firing = alerts.filter(|alert| {
            alert["state"] == "firing" && alert["labels"]["alertname"] == "PauseStorm"
        });
        let ports = firing.map(|alert| {
            let labels = &alert["labels"];
            format!(
                "{}:{}",
                labels["device"].as_str().unwrap(),
                labels["port"].as_str().unwrap()
            )
        });
        Some(ports.collect())
    };
    let mut alarmed = Vec::new();
    for _ in 0..300 {
        alarmed = fired().unwrap_or_default();
        if alarmed.iter().any(|port| port == "leaf2:3") {
            break;
        }
        thread::sleep(Duration::from_millis(200));
    }
    let log = || fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(
        alarmed.iter().any(|port| port == "leaf2:3"),
        "{alarmed:?}\n{}",
        log()
    );
    // Who is called out of bed asks the same Prometheus.
    let output = softfabric()
        .args([
            "diagnose",
            "--json",
            "--last",
            "30s",
            "--step",
            "1s",
            "--prometheus",
        ])
        .arg(format!("http://{address}"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["verdict"]["cause"], "host_storm", "{document:#}");
    assert_eq!(document["findings"][0]["node"], "h11", "{document:#}");
}
