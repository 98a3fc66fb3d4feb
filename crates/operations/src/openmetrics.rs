//! Counters as OpenMetrics, for Prometheus: the names of node_exporter where it has them, those of the one table elsewhere.
//!
//! ```text
//! # TYPE softfabric_class_pause_received_seconds counter
//! # UNIT softfabric_class_pause_received_seconds seconds
//! softfabric_class_pause_received_seconds_total{device="leaf2",port="3",class="3"} 0.0169
//! ```
//!
//! A port is labelled as node_exporter labels InfiniBand's: by device and port; `softfabric_port_info` says what is at the other
//! end. Times are seconds and data bytes, as the naming rules want; `port_xmit_wait` is in ticks, as node_exporter hands it on.

use std::fmt::Write;

use softfabric_telemetry::{Counter, Kind, PortCounter, Unit};
use softfabric_units::{Class, Span, Time};

use crate::history::History;
use crate::sources::linux::WAIT_TICK;
use crate::topology::{LinkLayer, NodeKind, PortIndex, Topology};

/// The media type of what [`exposition`] writes.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What all ports had said last at a time. Counters of time are told `slower` times as long: for a history that is replayed so
/// many times slower than it was, shares of time stay what they were.
pub fn exposition(topology: &Topology, history: &History, at: Time, slower: u64) -> String {
    let mut text = String::new();
    let names: Vec<Labels> = topology
        .port_indices()
        .map(|port| Labels::of(topology, port))
        .collect();
    information(&mut text, topology, &names);
    state(&mut text, topology, history, at, &names);
    for family in families() {
        let mut body = String::new();
        for port in topology.port_indices() {
            for &counter in &family {
                let Some(value) = history.value_at(port, counter, at) else {
                    continue;
                };
                let Some(value) = exported(topology, port, counter, value, slower) else {
                    continue;
                };
                let class = match counter {
                    Counter::Class(class, _) => format!(",class=\"{}\"", class.as_u8()),
                    Counter::Port(_) | Counter::Device(_) => String::new(),
                };
                let name = counter.definition().prometheus;
                let labels = &names[port.index()].text;
                let _ = writeln!(body, "{name}{{{labels}{class}}} {value}");
            }
        }
        if let Some(first) = family.first().filter(|_| !body.is_empty()) {
            let row = first.definition();
            let (kind, name) = match row.kind {
                // A family is called without the suffix that its samples have.
                Kind::Total => ("counter", row.prometheus.trim_end_matches("_total")),
                Kind::Watermark => ("gauge", row.prometheus),
            };
            let _ = writeln!(text, "# HELP {name} {}", escaped(row.help));
            let _ = writeln!(text, "# TYPE {name} {kind}");
            let unit = [("_seconds", "seconds"), ("_bytes", "bytes")];
            if let Some((_, unit)) = unit.iter().find(|(suffix, _)| name.ends_with(suffix)) {
                let _ = writeln!(text, "# UNIT {name} {unit}");
            }
            text.push_str(&body);
        }
    }
    text.push_str("# EOF\n");
    text
}

/// Counters that are one family: those of all classes together.
fn families() -> Vec<Vec<Counter>> {
    let mut families: Vec<Vec<Counter>> = Vec::new();
    for counter in Counter::all() {
        let of_class = |known: &&mut Vec<Counter>| matches!((known[0], counter), (Counter::Class(_, a), Counter::Class(_, b)) if a == b);
        match families.iter_mut().find(of_class) {
            Some(family) => family.push(counter),
            None => families.push(vec![counter]),
        }
    }
    debug_assert!(
        families
            .iter()
            .all(|family| family.len() == 1 || family.len() == Class::COUNT)
    );
    families
}

/// A value in the unit that the name promises.
fn exported(
    topology: &Topology,
    port: PortIndex,
    counter: Counter,
    value: u64,
    slower: u64,
) -> Option<String> {
    match (counter, counter.definition().unit) {
        (Counter::Port(PortCounter::TransmitWait), _) => {
            let tick = topology.port(port).rate?.time_for(WAIT_TICK).as_picos();
            let ticks = value.saturating_mul(slower).checked_div(tick)?;
            Some(ticks.to_string())
        }
        (_, Unit::Picoseconds) => {
            let seconds = Span::picos(value).as_seconds_f64() * slower as f64;
            Some(seconds.to_string())
        }
        (_, Unit::Packets | Unit::Bytes | Unit::Events) => Some(value.to_string()),
    }
}

struct Labels {
    device: String,
    port: String,
    text: String,
}

impl Labels {
    /// `leaf0:3` is port 3 of leaf0, and `h0`, which is all that its node has, port 1.
    fn of(topology: &Topology, port: PortIndex) -> Self {
        let device = topology.owner(port).name.clone();
        let name = &topology.port(port).name;
        let inner = name
            .strip_prefix(&device)
            .and_then(|rest| rest.strip_prefix(':'));
        let port = match inner {
            Some(inner) => inner.to_owned(),
            None if *name == device => "1".to_owned(),
            None => name.clone(),
        };
        let text = format!(
            "device=\"{}\",port=\"{}\"",
            escaped(&device),
            escaped(&port)
        );
        Self { device, port, text }
    }
}

fn information(text: &mut String, topology: &Topology, names: &[Labels]) {
    text.push_str(
        "# HELP softfabric_port Who is at the other end of a port, and how fast it is.\n",
    );
    text.push_str("# TYPE softfabric_port info\n");
    for port in topology.port_indices() {
        let peer = topology.peer(port).map(|peer| &names[peer.index()]);
        let (device, number) = peer.map_or(("", ""), |peer| (&peer.device, &peer.port));
        let rate = topology.port(port).rate.map(|rate| rate.to_string());
        let kind = match topology.owner(port).kind {
            NodeKind::Host => "host",
            NodeKind::Switch => "switch",
        };
        let layer = match topology.link_layer {
            LinkLayer::Ethernet => "ethernet",
            LinkLayer::Infiniband => "infiniband",
        };
        let _ = writeln!(
            text,
            "softfabric_port_info{{{},kind=\"{kind}\",link_layer=\"{layer}\",peer_device=\"{}\",peer_port=\"{}\",rate=\"{}\"}} 1",
            names[port.index()].text,
            escaped(device),
            escaped(number),
            rate.unwrap_or_default()
        );
    }
}

fn state(text: &mut String, topology: &Topology, history: &History, at: Time, names: &[Labels]) {
    text.push_str(
        "# HELP softfabric_port_up Whether the link is up.\n# TYPE softfabric_port_up gauge\n",
    );
    for port in topology.port_indices() {
        if let Some(up) = history.up_at(port, at) {
            let labels = &names[port.index()].text;
            let _ = writeln!(text, "softfabric_port_up{{{labels}}} {}", u8::from(up));
        }
    }
}

/// As a value of a label, or a help text.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::diagnose::samples::{Flow, Hand, leaf_spine};

    fn at(second: u64) -> Time {
        Time::ZERO + Span::seconds(second)
    }

    fn storm() -> Hand {
        let mut hand = Hand::new(leaf_spine(2, 1, 2));
        for _ in 0..4 {
            let stuck = Flow {
                busy: 0.5,
                held: 0.5,
                pauses: 10,
                ..Flow::default()
            };
            hand.second(&[("leaf1:1", stuck)]);
        }
        hand
    }

    #[test]
    fn counters_have_names_units_and_labels_that_prometheus_knows() {
        let hand = storm();
        let history = hand.history();
        let text = exposition(&hand.topology, &history, at(2), 1);
        for line in [
            "# TYPE softfabric_class_pause_received_seconds counter",
            "# UNIT softfabric_class_pause_received_seconds seconds",
            "softfabric_class_pause_received_seconds_total{device=\"leaf1\",port=\"1\",class=\"3\"} 1",
            "softfabric_class_pause_transmitted_seconds_total{device=\"h3\",port=\"1\",class=\"3\"} 1",
            "softfabric_port_info{device=\"h3\",port=\"1\",kind=\"host\",link_layer=\"ethernet\",peer_device=\"leaf1\",peer_port=\"1\",rate=\"100Gb/s\"} 1",
            "softfabric_port_up{device=\"leaf1\",port=\"1\"} 1",
            // A second of waiting at 100 Gb/s in ticks of 8 bytes, which are 640 ps.
            "node_infiniband_port_transmit_wait_total{device=\"leaf1\",port=\"1\"} 1562500000",
            "# EOF",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
        // What the last second brought is not told yet.
        let later = exposition(&hand.topology, &history, at(3), 1);
        assert!(later.contains("port=\"1\",class=\"3\"} 1.5\n"), "{later}");
        // A slower replay tells the same shares of its own time.
        let slower = exposition(&hand.topology, &history, at(2), 1_000);
        assert!(
            slower.contains("port=\"1\",class=\"3\"} 1000\n"),
            "{slower}"
        );
    }

    /// OpenMetrics, 4: each family once, its samples together, and each sample with labels of its own.
    #[test]
    fn families_stand_together_and_samples_are_unique() {
        let hand = storm();
        let text = exposition(&hand.topology, &hand.history(), at(4), 1);
        let mut families = BTreeSet::new();
        let mut samples = BTreeSet::new();
        let mut current = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                current = rest.split(' ').next().unwrap();
                assert!(families.insert(current), "{current} twice");
            } else if !line.starts_with('#') {
                let (name, _) = line.rsplit_once(' ').unwrap();
                assert!(name.starts_with(current), "{line} in {current}");
                assert!(samples.insert(name), "{name} twice");
            }
        }
        assert!(samples.len() > 100);
    }
}
