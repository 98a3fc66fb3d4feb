//! How long a diagnosis of a large fabric takes: `cargo run --release -p softfabric-operations --example large_fabric`.
//!
//! 128 leaves of 32 hosts, 16 spines: 12,288 ports, polled 60 times. A host storms, and 500 ports report it.

use std::time::Instant;

use softfabric_operations::{
    History, LinkLayer, NodeKind, PortIndex, PortSample, Topology, diagnose,
};
use softfabric_telemetry::{ClassCounter, Counter, PortCounter};
use softfabric_units::{Class, Rate, Span, Time};

const LEAVES: usize = 128;
const HOSTS: usize = 32;
const SPINES: usize = 16;
const POLLS: u64 = 60;
const CLASS: Class = Class::new(3);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let topology = fabric()?;
    let begin = now();
    let history = history(&topology);
    let recorded = begin.elapsed();
    let begin = now();
    let diagnosis = diagnose(&topology, &history);
    println!(
        "{} ports, {POLLS} polls: taken in {recorded:.2?}, diagnosed in {:.2?}: {}; {} symptoms",
        topology.ports().len(),
        begin.elapsed(),
        diagnosis.summary,
        diagnosis.symptoms.len(),
    );
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "it measures how long real work takes"
)]
fn now() -> Instant {
    Instant::now()
}

fn fabric() -> Result<Topology, Box<dyn std::error::Error>> {
    let mut topology = Topology::new(LinkLayer::Ethernet);
    let rate = Some(Rate::gbps(400));
    let mut uplinks = Vec::new();
    for leaf in 0..LEAVES {
        let node = topology.add_node(format!("leaf{leaf}"), NodeKind::Switch)?;
        for port in 0..HOSTS {
            let name = format!("h{}", leaf * HOSTS + port);
            let host = topology.add_node(name.clone(), NodeKind::Host)?;
            let own = topology.add_port(host, name, rate)?;
            let down = topology.add_port(node, format!("leaf{leaf}:{port}"), rate)?;
            topology.connect(own, down)?;
        }
        for spine in 0..SPINES {
            uplinks.push(topology.add_port(node, format!("leaf{leaf}:{}", HOSTS + spine), rate)?);
        }
    }
    for spine in 0..SPINES {
        let node = topology.add_node(format!("spine{spine}"), NodeKind::Switch)?;
        for leaf in 0..LEAVES {
            let port = topology.add_port(node, format!("spine{spine}:{leaf}"), rate)?;
            topology.connect(port, uplinks[leaf * SPINES + spine])?;
        }
    }
    Ok(topology)
}

/// Whether a port is held by the storm of h7, which is at leaf 0.
fn is_held(name: &str) -> bool {
    let number = |rest: &str| rest.parse::<usize>().unwrap_or(usize::MAX);
    match name
        .strip_prefix("leaf")
        .and_then(|rest| rest.split_once(':'))
    {
        Some((leaf, port)) => {
            let (leaf, port) = (number(leaf), number(port));
            (leaf, port) == (0, 7) || leaf > 0 && leaf < 30 && (32..40).contains(&port)
        }
        None => match name
            .strip_prefix("spine")
            .and_then(|rest| rest.split_once(':'))
        {
            Some((spine, port)) => number(spine) < 8 && number(port) == 0,
            None => (32..280).contains(&number(&name[1..])),
        },
    }
}

fn history(topology: &Topology) -> History {
    let mut history = History::new(topology);
    let second = Span::seconds(1).as_picos();
    for index in 0..topology.ports().len() as u32 {
        let port = PortIndex(index);
        let held = is_held(&topology.port(port).name);
        for poll in 0..POLLS {
            let storm = if held { poll.saturating_sub(10) } else { 0 };
            let bytes = (poll - storm) * 20_000_000_000;
            let class = |counter| Counter::Class(CLASS, counter);
            let sample = PortSample {
                up: Some(true),
                values: vec![
                    (Counter::Port(PortCounter::TransmitBytes), bytes),
                    (Counter::Port(PortCounter::ReceiveBytes), bytes),
                    (Counter::Port(PortCounter::TransmitPackets), bytes / 4096),
                    (Counter::Port(PortCounter::ReceivePackets), bytes / 4096),
                    (Counter::Port(PortCounter::ReceiveErrors), 0),
                    (
                        class(ClassCounter::PauseReceivedDuration),
                        storm * second * 98 / 100,
                    ),
                    (class(ClassCounter::PauseTransitions), storm / 8),
                    (class(ClassCounter::PauseReceived), storm * 10_000),
                    (class(ClassCounter::EcnMarked), poll * 10),
                    (class(ClassCounter::IngressDropped), 0),
                ],
            };
            history.add(port, Time::ZERO + Span::seconds(poll), &sample);
        }
    }
    history
}
