//! Other programs' files, as they are.
//!
//! ```text
//! HPCC config, topology, flows, CDF ─┐
//! htsim .cm, .topo ──────────────────┼──► Plan, or a part of one ──► run, or a scenario file that loads back to it
//! SimAI topology ────────────────────┤
//! SONiC headroom, buffers, QoS ──────┘
//! NCCL topology ──► what is inside a server of a scenario
//! ```
//!
//! `Scenario::from_plan` makes the scenario file.
//!
//! Invariant: what a file says is followed or refused, with the line that says it; nothing is skipped in silence.

mod error;
pub mod hpcc;
pub mod htsim;
mod lines;
mod located;
pub mod nccl;
pub mod simai;
pub mod sonic;

pub use error::ImportError;
pub(crate) use lines::{Word, Words, beside, read_text};
pub use located::Located;

use softfabric_units::{Span, Time};

use crate::plan::{
    Addressing, LinkLayer, Network, NodeKind, Plan, Recording, Routing, Stop, Timing,
};
use crate::scenario::{host_profile, switch_profile};

/// The plan of a network whose files say nothing of switches and hosts: those of a scenario that says nothing either,
/// but for the latency of each switch profile.
fn plan_of(name: &str, mut network: Network, latencies: &[Span]) -> Plan {
    let mut rates: Vec<_> = network.links.iter().map(|link| link.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    let mut latencies = latencies.to_vec();
    if latencies.iter().all(|latency| *latency == latencies[0]) {
        latencies.truncate(1);
        for node in &mut network.nodes {
            if let NodeKind::Switch { profile } = &mut node.kind {
                *profile = 0;
            }
        }
    }
    let mut switch_profiles = vec![switch_profile(&rates); latencies.len().max(1)];
    for (profile, latency) in switch_profiles.iter_mut().zip(latencies) {
        profile.latency = latency;
    }
    let lossless = switch_profiles[0].priorities();
    Plan {
        name: name.to_owned(),
        seed: 1,
        timing: Timing::Exact,
        network,
        link_layer: LinkLayer::Ethernet,
        routing: Routing::Shortest,
        reroute: Span::ZERO,
        host_profiles: vec![host_profile(lossless, Addressing::RoceV2Ipv4)],
        switch_profiles,
        flows: Vec::new(),
        triggers: Vec::new(),
        jobs: Vec::new(),
        actions: Vec::new(),
        recording: Recording {
            interval: Some(Span::micros(10)),
            flow_rates: 64,
            ..Recording::default()
        },
        stop: Stop {
            at: Time::from_nanos(1_000_000_000),
            when_done: true,
        },
    }
}
