use softfabric_fabric::export::findings;
use softfabric_fabric::plan::{Network, NodeKind, Plan};
use softfabric_fabric::results::Results;
use softfabric_telemetry::ClassCounter;
use softfabric_units::{Rate, Span};

use super::*;
use crate::sample;

fn page(plan: &Plan, results: &Results) -> String {
    let findings = findings::find(plan, results);
    render(&Report {
        plan,
        results,
        findings: &findings,
        wall_seconds: 0.25,
        command: "softfabric run scenario.toml",
    })
}

/// What is in the page beside the chart library.
fn own_part(page: &str) -> String {
    page.replace(CHART_SCRIPT, "").replace(CHART_STYLE, "")
}

/// The values of an attribute, wherever it stands.
fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let pattern = format!(" {name}=\"");
    let rests = page.split(pattern.as_str()).skip(1);
    rests.filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn the_page_loads_nothing() {
    let (plan, results) = sample::incast();
    let page = page(&plan, &results);
    assert_eq!(attributes(&page, "src"), [""; 0]);
    for href in attributes(&page, "href") {
        assert!(href.starts_with('#'), "{href}");
    }
    let own = own_part(&page);
    for pattern in [
        "http:", "https:", "url(", "@import", "fetch(", "<link", "<img", "<iframe",
    ] {
        assert!(!own.contains(pattern), "{pattern}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn hostile_names_stay_text() {
    let (mut plan, results) = sample::lossy();
    let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&";
    plan.name = hostile.to_owned();
    plan.network.nodes[4].name = hostile.to_owned();
    plan.network.nodes[16].name = hostile.to_owned();
    plan.flows[0].group = hostile.to_owned();
    let page = own_part(&page(&plan, &results));
    assert!(!page.contains("<script>alert"), "a name became a script");
    assert!(!page.contains("<img"), "a name became an element");
    assert!(page.contains("&lt;script&gt;alert(1)"), "the name is shown");
    let data = page.split("id=\"charts\">").nth(1).unwrap();
    let data = data.split("</script>").next().unwrap();
    let value: serde_json::Value = serde_json::from_str(data).unwrap();
    assert!(
        value.to_string().contains("alert(2)"),
        "the name is in the data, whole"
    );
}

#[test]
fn failures_come_before_figures() {
    let (plan, results) = sample::lossy();
    let page = own_part(&page(&plan, &results));
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(place("Not lossless") < place("Lossless classes dropped 12 packets"));
    assert!(place("Lossless classes dropped 12 packets") < place("FCT, p99"));
    let (plan, results) = sample::incast();
    assert!(self::page(&plan, &results).contains("No packet was lost"));
}

#[test]
fn every_chart_in_the_page_has_data() {
    let (plan, results) = sample::incast();
    let page = own_part(&page(&plan, &results));
    let data = page.split("id=\"charts\">").nth(1).unwrap();
    let data = data.split("</script>").next().unwrap();
    let value: serde_json::Value = serde_json::from_str(data).unwrap();
    let shown = attributes(&page, "data-chart");
    assert_eq!(
        shown,
        [
            "completion",
            "slowdown",
            "queues",
            "paused",
            "marks",
            "flow_rates"
        ]
    );
    for id in shown {
        let series = value[id]["series"].as_array().unwrap();
        assert!(!series.is_empty(), "{id}");
        for one in series {
            let (x, y) = (one["x"].as_array().unwrap(), one["y"].as_array().unwrap());
            assert_eq!(x.len(), y.len(), "{id}");
            assert!(
                !x.is_empty() && x.len() <= charts::MOST_POINTS,
                "{id}: {}",
                x.len()
            );
        }
    }
}

/// An incast of three over InfiniBand, with congestion control.
pub(crate) fn infiniband_run() -> (Plan, Results) {
    use softfabric_fabric::engine::{RunOptions, run};
    use softfabric_fabric::scenario::Scenario;
    let text = r#"
[fabric]
kind = "infiniband"
[topology]
kind = "star"
hosts = 4
[infiniband]
buffer = "64KiB"
[infiniband.congestion_control]
marking_rate = 3
timer = "20.48us"
[record]
interval = "10us"
[[workload]]
kind = "incast"
from = ["h1..h3"]
to = "h0"
bytes = "2MB"
"#;
    let plan = Scenario::from_toml(text, "incast.toml")
        .unwrap()
        .plan()
        .unwrap();
    let results = run(&plan, &mut RunOptions::default()).unwrap();
    (plan, results)
}

#[test]
fn infiniband_shows_credit_marks_and_what_they_lead_to() {
    let (plan, results) = infiniband_run();
    let page = own_part(&page(&plan, &results));
    for text in [
        "FECN marks",
        "BECNs received",
        "Longest wait for credit",
        "Where the fabric waited for credit",
        "Waited for credit",
        "FECN and BECN",
        "Rate that the control table allows",
        "PortXmit TimeCong",
        "Reaction to congestion",
        "+1 a BECN, −1 each 20.48us, from 0",
        "threshold 15, packets of 512B and more, one of 4; while waiting for credit where hosts are",
    ] {
        assert!(page.contains(text), "no {text:?}");
    }
    // The picture is coloured by the same: some link is hot.
    let hot = ["heat2", "heat3", "heat4", "heat5"].map(|class| format!("class=\"link {class}\""));
    assert!(
        hot.iter().any(|class| page.contains(class)),
        "nothing is hot"
    );
    assert!(!page.contains("Pause frames") && !page.contains("was paused"));
    let data = page.split("id=\"charts\">").nth(1).unwrap();
    let data = data.split("</script>").next().unwrap();
    let value: serde_json::Value = serde_json::from_str(data).unwrap();
    let values = |chart: &str, line: usize| -> Vec<f64> {
        let y = value[chart]["series"][line]["y"].as_array().unwrap();
        y.iter().filter_map(serde_json::Value::as_f64).collect()
    };
    let waited = values("paused", 0);
    assert!(waited.iter().any(|share| *share > 0.1), "{waited:?}");
    assert!(
        waited.iter().all(|share| (0.0..=1.0).contains(share)),
        "{waited:?}"
    );
    // Marks and answers over the run, per microsecond of intervals of ten.
    let marks: f64 = values("marks", 0).iter().sum::<f64>() * 10.0;
    let counted = results
        .ports
        .iter()
        .map(|port| port.class_total(ClassCounter::EcnMarked));
    let counted = counted.sum::<u64>() as f64;
    assert!((marks / counted - 1.0).abs() < 0.05, "{marks} {counted}");
    let allowed = values("allowed_rates", 0);
    // Whole indices of a table that adds a quarter of a packet's time each; charts have five figures of a value.
    let indices: Vec<f64> = (allowed.iter().filter(|rate| **rate > 0.0))
        .map(|rate| (100e9 / rate - 1.0) * 4.0)
        .collect();
    let whole = |index: &f64| (index - index.round()).abs() < 0.01;
    assert!(indices.iter().all(whole), "{indices:?}");
    assert!(indices.iter().any(|index| *index > 1.5), "{indices:?}");
}

/// A job's figures and chart are those of its phases, not of its queue pairs.
#[test]
fn a_job_is_shown_by_its_phases() {
    use softfabric_fabric::engine::{RunOptions, run};
    use softfabric_fabric::scenario::Scenario;
    let text = r#"
[topology]
kind = "rail_optimised"
servers = 2
rails = 2
[[job]]
name = "train"
iterations = 3
step = [{ kind = "all_reduce", bytes = "4MB" }]
"#;
    let plan = Scenario::from_toml(text, "job.toml")
        .unwrap()
        .plan()
        .unwrap();
    let results = run(&plan, &mut RunOptions::default()).unwrap();
    let page = own_part(&page(&plan, &results));
    for text in [
        "Job time",
        "train, 3 phases",
        "Lowest busbw",
        "data-chart=\"phases\"",
    ] {
        assert!(page.contains(text), "no {text:?}");
    }
    assert!(!page.contains("FCT, p99"));
    let summary = Summary::of(&plan, &results);
    let data = page.split("id=\"charts\">").nth(1).unwrap();
    let value: serde_json::Value =
        serde_json::from_str(data.split("</script>").next().unwrap()).unwrap();
    let drawn = value["phases"]["series"][0]["y"].as_array().unwrap();
    assert_eq!(drawn.len(), 3);
    for (drawn, phase) in drawn.iter().zip(&summary.phases) {
        let reached = phase.bus_bandwidth.unwrap() * 1e9;
        assert!((drawn.as_f64().unwrap() / reached - 1.0).abs() < 1e-3);
    }
}

#[test]
fn a_run_without_anything_has_a_report_too() {
    let (mut plan, mut results) = sample::incast();
    plan.flows.clear();
    results.flows.clear();
    results.series = Default::default();
    let page = page(&plan, &results);
    assert!(page.contains("recorded no time series"));
}

#[test]
fn large_networks_are_drawn_together() {
    let (mut plan, mut results) = sample::incast();
    plan.flows.clear();
    results.flows.clear();
    results.ports.clear();
    results.devices.clear();
    results.series = Default::default();
    plan.network = Network::default();
    let mut leaves = Vec::new();
    for leaf in 0..64 {
        let name = format!("leaf{leaf}");
        leaves.push(
            plan.network
                .add_node(name, NodeKind::Switch { profile: 0 }, 1),
        );
    }
    for host in 0..2_000 {
        let kind = NodeKind::Host {
            profile: 0,
            subnet: 0,
        };
        let id = plan.network.add_node(format!("host{host}"), kind, 0);
        let leaf = leaves[host % leaves.len()];
        plan.network
            .connect(id, leaf, Rate::gbps(100), Span::nanos(500));
    }
    let page = page(&plan, &results);
    let svg = page.split("<svg").nth(1).unwrap();
    let svg = svg.split("</svg>").next().unwrap();
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    assert!(svg.contains("hosts"), "groups say what they stand for");
}

/// Not a check: writes sample pages to look at, where `SOFTFABRIC_SAMPLE_PAGES` names a folder.
#[test]
fn sample_pages() {
    let Some(folder) = std::env::var_os("SOFTFABRIC_SAMPLE_PAGES") else {
        return;
    };
    for (name, (plan, results)) in [
        ("incast", sample::incast()),
        ("lossy", sample::lossy()),
        ("deadlocked", sample::deadlocked()),
    ] {
        let path = std::path::Path::new(&folder).join(format!("{name}.html"));
        std::fs::write(path, page(&plan, &results)).unwrap();
    }
}
