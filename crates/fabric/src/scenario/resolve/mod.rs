//! From a scenario to a plan: names looked up, defaults filled in, contradictions found.
//!
//! ```text
//! topology ─► network ─► switches, hosts ─► workloads ─► events, recording ─► Plan::check
//! ```
//!
//! Invariant: what is found wrong is collected, and only a network that cannot be built stops the search.

mod congestion;
mod defaults;
mod events;
mod flows;
mod hosts;
mod infiniband;
mod jobs;
mod machine;
mod multicast;
mod network;
mod partition;
mod switches;
mod tcp;
mod timeline;
mod trace;

pub(super) use infiniband::default_profiles as infiniband_profiles;
pub(super) use tcp::{default_profiles as tcp_profiles, default_stack, usual_port};

pub(super) use machine::notes;

pub(crate) use defaults::{class_profile, host_profile, switch_profile};

use softfabric_units::{ClassMask, Rate, Time};

use machine::Machines;

use super::error::{Problems, ScenarioError};
use super::names::{Names, Unknown, Wanted};
use super::{FabricKind, RoutingKind, Scenario, TimingKind};
use crate::plan::{Network, NodeId, Plan, Routing, Severity, Stop, Timing};

/// How long a run may take at the most, unless the scenario says otherwise.
const STOP: Time = Time::from_nanos(1_000_000_000);

pub(super) fn plan(scenario: &Scenario) -> Result<Plan, ScenarioError> {
    let mut problems = Problems::new(&scenario.source);
    let scenario = &*infiniband::defaults(scenario);
    let scenario = &*tcp::defaults(scenario);
    check_ip(scenario, &mut problems);
    let machines = Machines::read(scenario, &mut problems);
    let scenario = &*machines.defaults(scenario);
    let Some(mut shape) = network::network(scenario, &mut problems) else {
        problems.finish()?;
        unreachable!("a network that cannot be built has a problem");
    };
    let rates = rates(&shape.network);
    let switch_profiles = switches::profiles(scenario, &mut shape.network, &rates, &mut problems);
    let lossless = (switch_profiles.iter())
        .flat_map(|profile| profile.priorities().iter())
        .fold(ClassMask::NONE, ClassMask::with);
    let host_profiles = hosts::profiles(
        scenario,
        &mut shape.network,
        lossless,
        &machines,
        &mut problems,
    );
    let link_layer = infiniband::link_layer(
        scenario,
        &shape.network,
        &switch_profiles,
        &host_profiles,
        &mut problems,
    );
    let groups = (link_layer.infiniband()).map_or(&[][..], |settings| &settings.multicast[..]);
    let mut flows = flows::flows(scenario, &shape, &host_profiles, groups, &mut problems);
    let jobs = jobs::jobs(
        scenario,
        &shape,
        &machines,
        &host_profiles,
        &mut flows,
        &mut problems,
    );
    let names = Names::new(&shape.network);
    let plan = Plan {
        name: scenario.name.clone().unwrap_or_else(|| stem(scenario)),
        seed: scenario.seed.unwrap_or(1),
        timing: match scenario.timing {
            Some(TimingKind::Hpcc) => Timing::Hpcc,
            Some(TimingKind::Exact) | None => Timing::Exact,
        },
        link_layer,
        routing: routing(scenario, &mut problems),
        reroute: scenario.fabric.reroute.unwrap_or_default(),
        switch_profiles,
        host_profiles,
        flows,
        triggers: timeline::triggers(scenario),
        jobs,
        actions: events::actions(scenario, &shape, &names, &mut problems),
        recording: timeline::recording(scenario, &names, &mut problems),
        stop: Stop {
            at: scenario.stop.at.unwrap_or(STOP),
            when_done: scenario.stop.when_done.unwrap_or(true),
        },
        network: shape.network.clone(),
    };
    // What a place of the file explains better comes first; the rest is said in the plan's own terms.
    if problems.len() == 0 {
        for finding in plan.check() {
            if finding.severity == Severity::Error {
                let advice = Some(finding.advice).filter(|advice| !advice.is_empty());
                let found = format!("{}: {}", finding.place, finding.problem);
                problems.add("", found, "a plan that makes sense", advice);
            }
        }
    }
    problems.finish()?;
    Ok(plan)
}

/// Which paths Ethernet's packets may take. InfiniBand has its subnet manager for that.
fn routing(scenario: &Scenario, problems: &mut Problems<'_>) -> Routing {
    let engine = match scenario.fabric.routing {
        Some(RoutingKind::UpDown) => return Routing::UpDown,
        Some(RoutingKind::Shortest) | None => return Routing::Shortest,
        Some(engine) => engine,
    };
    if scenario.fabric.kind != Some(FabricKind::Infiniband) {
        problems.add(
            "fabric.routing",
            format!("{engine:?}, a routing engine of InfiniBand"),
            "shortest or up_down on Ethernet",
            Some("or set `fabric.kind = \"infiniband\"`".to_owned()),
        );
    }
    Routing::Shortest
}

fn check_ip(scenario: &Scenario, problems: &mut Problems<'_>) {
    if scenario.fabric.ip == Some(5) {
        problems.add("fabric.ip", "the number 5", "4 or 6", None);
    }
}

/// The distinct rates of the links, in order.
fn rates(network: &Network) -> Vec<Rate> {
    let mut rates: Vec<_> = network.links.iter().map(|link| link.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    rates
}

fn stem(scenario: &Scenario) -> String {
    let file = std::path::Path::new(&scenario.source.file);
    match file.file_stem() {
        Some(stem) => stem.to_string_lossy().into_owned(),
        None => "scenario".to_owned(),
    }
}

/// The nodes that a list of names, ranges and patterns means, each once, in the order of the list.
fn select(
    names: &Names<'_>,
    patterns: &[String],
    wanted: Wanted,
    field: &str,
    problems: &mut Problems<'_>,
) -> Vec<NodeId> {
    let mut selected: Vec<NodeId> = Vec::new();
    let mut seen = rustc_hash::FxHashSet::default();
    for (place, pattern) in patterns.iter().enumerate() {
        match names.select(pattern, wanted) {
            Ok(nodes) => selected.extend(nodes.into_iter().filter(|node| seen.insert(*node))),
            Err(unknown) => report(&format!("{field}[{place}]"), unknown, problems),
        }
    }
    selected
}

fn one(
    names: &Names<'_>,
    name: &str,
    wanted: Wanted,
    field: &str,
    problems: &mut Problems<'_>,
) -> Option<NodeId> {
    match names.node(name, wanted) {
        Ok(node) => Some(node),
        Err(unknown) => {
            report(field, unknown, problems);
            None
        }
    }
}

fn report(field: &str, unknown: Unknown, problems: &mut Problems<'_>) {
    problems.add(field, unknown.found, unknown.allowed, unknown.advice);
}
