//! Flows, triggers, actions and recording.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use softfabric_units::{Class, ClassMask, Time};

use super::{Findings, REPEATS};
use crate::plan::{
    Action, Addressing, Endpoint, Flow, LARGEST_MESSAGE, LinkLayer, MOST_FLOWS, NodeId, NodeKind,
    Plan, PortSelection, Start, SwitchProfile, TriggerId,
};

pub(super) fn check(plan: &Plan, findings: &mut Findings) {
    let network = Reach::new(plan);
    let before = findings.all.len();
    for (index, flow) in plan.flows.iter().enumerate() {
        if findings.all.len() >= before + REPEATS {
            break;
        }
        one_flow(plan, &network, index, flow, findings);
    }
    count(plan.flows.len() as u64, findings);
    unprotected(plan, findings);
    for (index, trigger) in plan.triggers.iter().enumerate() {
        if trigger.count == 0 {
            let place = format!("trigger {index}");
            findings.error(place, "fires after 0 hits", "give 1 or more");
        }
    }
    for (index, timed) in plan.actions.iter().enumerate() {
        action(plan, &format!("action {index}"), timed.action, findings);
    }
    recording(plan, findings);
    if plan.stop.at == Time::ZERO {
        findings.error("stop", "is at time zero", "give a time such as 1s");
    }
    if plan.stop.at == Time::NEVER && !plan.stop.when_done {
        findings.error(
            "stop",
            "is never",
            "give a time, or stop when all flows are done",
        );
    }
}

pub(super) fn count(flows: u64, findings: &mut Findings) {
    if flows > MOST_FLOWS {
        let problem = format!("are {flows}, more than there are numbers for their queue pairs");
        findings.error("flows", problem, format!("have at most {MOST_FLOWS}"));
    }
}

/// Which links each node has, and which nodes reach each other.
struct Reach {
    neighbours: Vec<Vec<NodeId>>,
    /// The other end of each port's link.
    far: FxHashMap<Endpoint, NodeId>,
    /// Nodes that reach each other over switches have the same number; no packet passes through a host.
    island: Vec<u32>,
    is_host: Vec<bool>,
}

impl Reach {
    fn new(plan: &Plan) -> Self {
        let count = plan.network.nodes.len();
        let mut neighbours = vec![Vec::new(); count];
        let mut far = FxHashMap::default();
        let is_host: Vec<bool> = (plan.network.nodes.iter())
            .map(|node| matches!(node.kind, NodeKind::Host { .. }))
            .collect();
        for link in &plan.network.links {
            far.insert(link.a, link.b.node);
            far.insert(link.b, link.a.node);
            neighbours[link.a.node.index()].push(link.b.node);
            neighbours[link.b.node.index()].push(link.a.node);
        }
        Self {
            neighbours,
            far,
            island: plan.network.islands(),
            is_host,
        }
    }

    /// Whether packets from one port of a host get to a port of another one.
    fn connects(&self, from: Endpoint, to: Endpoint) -> bool {
        let (Some(near), Some(far)) = (self.far.get(&from), self.far.get(&to)) else {
            return false;
        };
        if self.is_host[near.index()] || self.is_host[far.index()] {
            return *near == to.node;
        }
        self.island[near.index()] == self.island[far.index()]
    }
}

fn one_flow(plan: &Plan, reach: &Reach, index: usize, flow: &Flow, findings: &mut Findings) {
    let place = format!("flow {index}");
    let nodes = &plan.network.nodes;
    for (what, node) in [("source", flow.source), ("destination", flow.destination)] {
        let is_host = (nodes.get(node.index()))
            .is_some_and(|node| matches!(node.kind, NodeKind::Host { .. }));
        if !is_host {
            let problem = format!("has node {} as {what}, which is no host", node.0);
            return findings.error(place, problem, "hosts send and receive");
        }
    }
    let (source, destination) = (
        &nodes[flow.source.index()],
        &nodes[flow.destination.index()],
    );
    let names = format!("from {} to {}", source.name, destination.name);
    let ends = [
        (source, flow.source, flow.source_nic),
        (destination, flow.destination, flow.destination_nic),
    ];
    for (host, node, port) in ends {
        if port.0 > 0 && !reach.far.contains_key(&Endpoint { node, port }) {
            let problem = format!(
                "goes by port {} of {}, which is not there",
                port.0, host.name
            );
            return findings.error(&place, problem, "name a port that has a link");
        }
    }
    let [from, to] = ends.map(|(_, node, port)| Endpoint { node, port });
    if flow.source == flow.destination {
        findings.error(&place, format!("goes {names}, itself"), "name another host");
    } else if !reach.connects(from, to) {
        let problem = match (flow.source_nic.0, flow.destination_nic.0) {
            (0, 0) => format!("goes {names}, which no links connect"),
            (out, into) => format!("goes {names}, whose ports {out} and {into} no links connect"),
        };
        findings.error(&place, problem, "add links, or another destination");
    }
    if flow.bytes.is_zero() && !flow.is_fed() {
        findings.error(&place, "has 0 bytes", "give 1 byte or more");
    }
    let message = flow.message.unwrap_or(flow.bytes);
    if message > LARGEST_MESSAGE || message.is_zero() && !flow.bytes.is_zero() {
        let problem = format!("has messages of {message}");
        findings.error(&place, problem, format!("give 1 B to {LARGEST_MESSAGE}"));
    }
    if let Start::After(trigger, _) = flow.start {
        trigger_exists(plan, &place, trigger, findings);
    }
    for trigger in [flow.on_sent, flow.on_received].into_iter().flatten() {
        trigger_exists(plan, &place, trigger, findings);
    }
    if let Some(path) = &flow.path {
        one_path(plan, reach, &place, flow, path, findings);
    }
    if let Some(group) = flow.operation.group() {
        super::multicast::flow(plan, &place, flow, group, findings);
    }
    one_segment(plan, &place, &names, flow, findings);
}

fn trigger_exists(plan: &Plan, place: &str, trigger: TriggerId, findings: &mut Findings) {
    let count = plan.triggers.len();
    if trigger.0 as usize >= count {
        let problem = format!("names trigger {}, of {count}", trigger.0);
        findings.error(place, problem, "add the trigger");
    }
}

fn one_path(
    plan: &Plan,
    reach: &Reach,
    place: &str,
    flow: &Flow,
    path: &[NodeId],
    findings: &mut Findings,
) {
    let name = |node: NodeId| {
        (plan.network.nodes.get(node.index())).map_or("?", |node| node.name.as_str())
    };
    let stops = [flow.source]
        .into_iter()
        .chain(path.iter().copied())
        .chain([flow.destination]);
    let stops: Vec<_> = stops.collect();
    for pair in stops.windows(2) {
        let neighbours = reach.neighbours.get(pair[0].index());
        if !neighbours.is_some_and(|neighbours| neighbours.contains(&pair[1])) {
            let problem = format!(
                "has a path from {} to {}, which no link connects",
                name(pair[0]),
                name(pair[1])
            );
            return findings.error(place, problem, "name every switch on the way, in order");
        }
    }
    if path.is_empty() {
        findings.error(
            place,
            "has an empty path",
            "name the switches, or leave it out",
        );
    }
}

/// RoCEv1 has no IP header, so no router forwards it.
fn one_segment(plan: &Plan, place: &str, names: &str, flow: &Flow, findings: &mut Findings) {
    let kinds = [flow.source, flow.destination].map(|node| plan.network.nodes[node.index()].kind);
    let [
        NodeKind::Host { profile, subnet },
        NodeKind::Host { subnet: other, .. },
    ] = kinds
    else {
        return;
    };
    let profile = plan.host_profiles.get(profile as usize);
    let is_v1 = profile.is_some_and(|profile| profile.addressing == Addressing::RoceV1);
    if is_v1 && subnet != other {
        findings.warning(
            place,
            format!("goes {names}, into another Ethernet segment, as RoCEv1: it will not arrive"),
            "use RoCEv2, or one segment",
        );
    }
}

/// Classes with traffic that PFC protects at some places and not at others, or whose pauses stop something else.
fn unprotected(plan: &Plan, findings: &mut Findings) {
    if plan.link_layer != LinkLayer::Ethernet {
        return;
    }
    let traffic: BTreeSet<(Class, u8)> = (plan.flows.iter())
        .map(|flow| (flow.class, flow.dscp.unwrap_or(flow.class.as_u8() * 8)))
        .collect();
    let mut said = ClassMask::NONE;
    for (class, dscp) in traffic {
        let told = |profile: &SwitchProfile| profile.classifier.class_of(class, dscp);
        let protecting: Vec<&SwitchProfile> = (plan.switch_profiles.iter())
            .filter(|profile| profile.protects(told(profile)))
            .collect();
        if protecting.is_empty() || said.contains(class) {
            continue;
        }
        said = said.with(class);
        let place = format!("class {class}");
        if protecting.len() < plan.switch_profiles.len() {
            findings.warning(
                &place,
                "is lossless on some switches and not on others",
                "make it lossless everywhere, or nowhere",
            );
        }
        if !(plan.host_profiles.iter()).all(|profile| profile.lossless.contains(class)) {
            findings.warning(
                &place,
                "is lossless on switches, but some hosts do not obey its pause frames",
                "make it lossless on hosts too",
            );
        }
        let pauses: ClassMask = (protecting.iter())
            .map(|profile| profile.maps.pause[profile.maps.group[told(profile).index()].index()])
            .fold(ClassMask::NONE, ClassMask::with);
        for priority in pauses.iter() {
            if priority != class {
                findings.warning(
                    &place,
                    format!("is paused by PFC priority {priority}, and hosts send it in {class}: they would not stop"),
                    "let the group pause the priority that hosts send in",
                );
            }
            for profile in &plan.switch_profiles {
                let (stops, waits) = (
                    profile.maps.stops[priority.index()],
                    profile.maps.queue[told(profile).index()],
                );
                if stops != waits {
                    findings.warning(
                        &place,
                        format!("waits in queue {waits}, and a pause of its priority {priority} stops queue {stops}"),
                        "make the maps of classes to queues and of priorities to queues agree",
                    );
                    break;
                }
            }
        }
    }
}

fn action(plan: &Plan, place: &str, action: Action, findings: &mut Findings) {
    match action {
        Action::LinkDown(link) | Action::LinkUp(link) | Action::BitErrorRate(link, _)
            if link.0 as usize >= plan.network.links.len() =>
        {
            let problem = format!("names link {}, which is not there", link.0);
            findings.error(place, problem, "name a link");
        }
        Action::BitErrorRate(_, rate) if !(0.0..=1.0).contains(&rate) => {
            let problem = format!("sets a bit error rate of {rate}, which is no probability");
            findings.error(place, problem, "give a number from 0 to 1");
        }
        Action::DrainRate(node, _)
        | Action::StormBegins(node, _)
        | Action::StormEnds(node, _)
        | Action::SourceStops(node)
        | Action::Slowness(node, _)
            if !(plan.network.nodes.get(node.index()))
                .is_some_and(|node| matches!(node.kind, NodeKind::Host { .. })) =>
        {
            let problem = format!("names node {}, which is no host", node.0);
            findings.error(place, problem, "name a host");
        }
        Action::Slowness(_, slowness) if !(slowness > 0.0 && slowness.is_finite()) => {
            let problem = format!("makes a host take {slowness} times as long");
            findings.error(place, problem, "give a number above zero");
        }
        Action::DrainRate(_, Some(rate)) if rate.is_zero() => {
            findings.error(place, "sets a drain rate of zero", "give a rate, or none");
        }
        _ => {}
    }
}

fn recording(plan: &Plan, findings: &mut Findings) {
    let recording = &plan.recording;
    if recording
        .interval
        .is_some_and(softfabric_units::Span::is_zero)
    {
        findings.error("recording", "samples every 0 s", "give a time such as 10us");
    }
    let chosen: &[Endpoint] = match &recording.ports {
        PortSelection::Busiest => &[],
        PortSelection::These(ends) => ends,
    };
    for end in chosen.iter().chain(&recording.captures) {
        let is_there = (plan.network.links.iter()).any(|link| link.a == *end || link.b == *end);
        if !is_there {
            let problem = format!(
                "names port {} of node {}, which is not there",
                end.port.0, end.node.0
            );
            findings.error("recording", problem, "name a port with a link");
        }
    }
}
