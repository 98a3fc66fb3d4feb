//! Prometheus: the answer of `/api/v1/query_range`, as a recording.
//!
//! ```text
//! softfabric_class_pause_received_seconds_total{device="leaf2",port="3",class="3"}     what `softfabric export` serves
//! softfabric_port_info{device="leaf2",port="3",kind="switch",peer_device="h11",…}      who is wired to whom
//! node_ethtool_received_prio3_pause_duration{instance="gpu17:9100",device="eth0"}      node_exporter --collector.ethtool
//! node_infiniband_port_data_transmitted_bytes_total{instance="gpu17:9100",device="mlx5_0",port="1"}
//! ```
//!
//! Hosts under node_exporter are called by their instance without its port, and their ports `HOST:DEVICE`. They do not say how they
//! are wired: lists of cables or LLDP tables do.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Deserialize;
use softfabric_telemetry::{Counter, PortCounter, Unit};
use softfabric_units::{Class, Rate, Span, Time};
use thiserror::Error;

use super::linux;
use crate::history::{History, PortSample};
use crate::recording::{Recording, Skipped};
use crate::topology::{LinkLayer, NodeKind, PortIndex, Topology, TopologyError};

/// All series that are read, as a query.
pub const QUERY: &str = r#"{__name__=~"softfabric_(port|class|device)_.+|node_infiniband_.+|node_ethtool_.+_(prio[0-7]_.+|phy)"}"#;

/// Why an answer is no recording.
#[derive(Debug, Error)]
pub enum PrometheusError {
    /// It is something else.
    #[error("this is no answer of /api/v1/query_range: {0}")]
    Format(#[from] serde_json::Error),
    /// Prometheus says why not.
    #[error("Prometheus refuses: {0}")]
    Refused(String),
    /// Labels contradict each other.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    data: Data,
}

#[derive(Deserialize, Default)]
struct Data {
    #[serde(default)]
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

impl Series {
    fn label(&self, name: &str) -> &str {
        self.metric.get(name).map_or("", String::as_str)
    }
}

/// What a series tells of a port.
enum Tells {
    Up,
    /// A counter in the table's unit, if multiplied by this.
    Counter(Counter, f64),
}

/// Reads an answer.
///
/// # Errors
/// If it is none, or its labels contradict each other.
pub fn read(text: &str) -> Result<Recording, PrometheusError> {
    let answer: Answer = serde_json::from_str(text)?;
    if answer.status != "success" {
        return Err(PrometheusError::Refused(answer.error));
    }
    let series = answer.data.result;
    let (mut topology, described) = described(&series)?;
    let mut skipped = Skipped::default();
    let start = series
        .iter()
        .filter_map(|series| series.values.first())
        .map(|(time, _)| *time)
        .fold(f64::INFINITY, f64::min);
    let mut samples: BTreeMap<PortIndex, BTreeMap<Time, PortSample>> = BTreeMap::new();
    for series in &series {
        let name = series.label("__name__");
        if name == "softfabric_port_info" {
            continue;
        }
        let key = (
            series.label("device").to_owned(),
            series.label("port").to_owned(),
        );
        let port = match described.get(&key) {
            Some(&port) => port,
            // Ours come from a port that we describe; node_exporter says the host by the instance.
            None if name.starts_with("softfabric_") => {
                skipped.line(format!(
                    "{name}: no softfabric_port_info tells of {}:{}",
                    key.0, key.1
                ));
                continue;
            }
            None => of_host(&mut topology, series)?,
        };
        let rate = topology.port(port).rate;
        let Some(tells) = tells(name, series.label("class"), rate) else {
            continue;
        };
        for (time, value) in &series.values {
            let Ok(value) = value.parse::<f64>() else {
                skipped.line(format!("{name}: `{value}` is no number"));
                continue;
            };
            let at = Time::ZERO + Span::nanos(((time - start).max(0.0) * 1e9).round() as u64);
            let sample = samples.entry(port).or_default().entry(at).or_default();
            match tells {
                Tells::Up => sample.up = Some(value > 0.0),
                Tells::Counter(counter, factor) => {
                    let value = (value * factor).round().max(0.0) as u64;
                    sample.values.push((counter, value));
                }
            }
        }
    }
    let mut history = History::new(&topology);
    for (port, samples) in samples {
        for (time, sample) in samples {
            history.add(port, time, &sample);
        }
    }
    Ok(Recording {
        about: "Prometheus".to_owned(),
        topology,
        history,
        skipped,
        start_unix_ns: if start.is_finite() {
            (start * 1e9) as u64
        } else {
            0
        },
    })
}

type Described = BTreeMap<(String, String), PortIndex>;

/// Nodes, ports and cables of `softfabric_port_info`.
fn described(series: &[Series]) -> Result<(Topology, Described), TopologyError> {
    let infos = || {
        series
            .iter()
            .filter(|series| series.label("__name__") == "softfabric_port_info")
    };
    let layer = match infos().next().map(|info| info.label("link_layer")) {
        Some("infiniband") => LinkLayer::Infiniband,
        _ => LinkLayer::Ethernet,
    };
    let mut topology = Topology::new(layer);
    let mut ports = Described::new();
    for info in infos() {
        let (device, number) = (info.label("device"), info.label("port"));
        let node = match topology.find_node(device) {
            Some(node) => node,
            None => {
                let kind = match info.label("kind") {
                    "switch" => NodeKind::Switch,
                    _ => NodeKind::Host,
                };
                topology.add_node(device, kind)?
            }
        };
        let key = (device.to_owned(), number.to_owned());
        if let Entry::Vacant(place) = ports.entry(key) {
            let rate = info.label("rate").parse().ok();
            place.insert(topology.add_port(node, format!("{device}:{number}"), rate)?);
        }
    }
    for info in infos() {
        let end = |device: &str, port: &str| {
            ports.get(&(info.label(device).to_owned(), info.label(port).to_owned()))
        };
        if let (Some(&here), Some(&there)) =
            (end("device", "port"), end("peer_device", "peer_port"))
        {
            topology.connect(here, there)?;
        }
    }
    Ok((topology, ports))
}

/// The port of a host under node_exporter.
fn of_host(topology: &mut Topology, series: &Series) -> Result<PortIndex, TopologyError> {
    let instance = series.label("instance");
    let host = instance.rsplit_once(':').map_or(instance, |(host, _)| host);
    let name = format!("{host}:{}", series.label("device"));
    if let Some(port) = topology.find_port(&name) {
        return Ok(port);
    }
    let node = match topology.find_node(host) {
        Some(node) => node,
        None => topology.add_node(host, NodeKind::Host)?,
    };
    topology.add_port(node, name, None)
}

/// What a metric's name means.
fn tells(name: &str, class: &str, rate: Option<Rate>) -> Option<Tells> {
    if name == "softfabric_port_up" {
        return Some(Tells::Up);
    }
    if let Some(name) = name.strip_prefix("node_ethtool_") {
        // node_exporter spells rx and tx out.
        let name = name.replace("received", "rx").replace("transmitted", "tx");
        let counter = linux::named(&name)?;
        let factor = match counter.definition().unit {
            // Microseconds.
            Unit::Picoseconds => 1e6,
            Unit::Packets | Unit::Bytes | Unit::Events => 1.0,
        };
        return Some(Tells::Counter(counter, factor));
    }
    let of_class = |counter: &Counter| match counter {
        Counter::Class(known, _) => class.parse().ok().and_then(Class::checked) == Some(*known),
        Counter::Port(_) | Counter::Device(_) => true,
    };
    let counter = Counter::all()
        .find(|counter| counter.definition().prometheus == name && of_class(counter))?;
    let factor = match (counter, counter.definition().unit) {
        (Counter::Port(PortCounter::TransmitWait), _) => {
            rate?.time_for(linux::WAIT_TICK).as_picos() as f64
        }
        (_, Unit::Picoseconds) => 1e12,
        (_, Unit::Packets | Unit::Bytes | Unit::Events) => 1.0,
    };
    Some(Tells::Counter(counter, factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::samples::{Flow, hand};
    use crate::diagnose::{Cause, Verdict, diagnose};
    use crate::openmetrics;

    /// An answer of Prometheus that has scraped these expositions, one a second.
    fn answer(expositions: &[String]) -> String {
        let mut series: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (second, text) in expositions.iter().enumerate() {
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let value = format!("[{}.5,\"{value}\"]", 1_700_000_000 + second);
                series.entry(name.to_owned()).or_default().push(value);
            }
        }
        let results: Vec<String> = series
            .into_iter()
            .map(|(name, values)| {
                let (name, labels) = name.split_once('{').unwrap();
                let labels = labels.trim_end_matches('}').split("\",");
                let labels: Vec<String> = labels
                    .map(|label| {
                        let (key, value) = label.split_once('=').unwrap();
                        format!("\"{key}\":\"{}\"", value.trim_matches('"'))
                    })
                    .collect();
                format!(
                    "{{\"metric\":{{\"__name__\":\"{name}\",\"instance\":\"x:1\",{}}},\"values\":[{}]}}",
                    labels.join(","),
                    values.join(",")
                )
            })
            .collect();
        format!(
            "{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[{}]}}}}",
            results.join(",")
        )
    }

    #[test]
    fn what_we_export_comes_back_and_is_diagnosed_alike() {
        let mut hand = hand();
        let stuck = Flow {
            held: 0.99,
            ..Flow::default()
        };
        for _ in 0..6 {
            hand.second(&[("leaf2:3", stuck), ("spine0:2", stuck), ("h0", stuck)]);
        }
        let history = hand.history();
        let expositions: Vec<String> = (0..=6)
            .map(|second| {
                let at = Time::ZERO + Span::seconds(second);
                openmetrics::exposition(&hand.topology, &history, at, 1)
            })
            .collect();
        let recording = read(&answer(&expositions)).unwrap();
        assert_eq!(recording.skipped, Skipped::default());
        assert_eq!(recording.start_unix_ns / 1_000_000_000, 1_700_000_000);
        let diagnosis = diagnose(&recording.topology, &recording.history);
        assert_eq!(
            diagnosis.verdict,
            Verdict::Cause(Cause::HostStorm),
            "{diagnosis}"
        );
        assert_eq!(diagnosis.findings[0].ports, ["h11:1", "leaf2:3"]);
        assert_eq!(diagnosis.coverage.ports, 36);
    }

    #[test]
    fn hosts_under_node_exporter_are_called_by_their_instance() {
        let text = r#"{"status":"success","data":{"result":[
          {"metric":{"__name__":"node_ethtool_received_prio3_pause_duration","instance":"gpu17:9100","device":"eth0"},
           "values":[[100,"0"],[101,"250000"]]},
          {"metric":{"__name__":"node_infiniband_port_data_transmitted_bytes_total","instance":"gpu17:9100","device":"mlx5_0","port":"1"},
           "values":[[100,"7"],[101,"1007"]]},
          {"metric":{"__name__":"node_ethtool_received_prio3_bananas","instance":"gpu17:9100","device":"eth0"},
           "values":[[100,"0"]]}]}}"#;
        let recording = read(text).unwrap();
        let port = |name| recording.topology.find_port(name).unwrap();
        let held = Counter::named("rx_prio3_pause_duration").unwrap();
        let bytes = Counter::Port(PortCounter::TransmitBytes);
        let history = &recording.history;
        assert_eq!(
            history.last(port("gpu17:eth0"), held),
            Some(Span::millis(250).as_picos())
        );
        assert_eq!(history.last(port("gpu17:mlx5_0"), bytes), Some(1_007));
        assert_eq!(history.times(port("gpu17:eth0")).len(), 2);
    }

    #[test]
    fn other_answers_are_refused() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert!(error("<html>").contains("no answer"));
        assert_eq!(
            error(r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#),
            "Prometheus refuses: parse error"
        );
    }
}
