//! From a plan to the scenario that leads to it, and from a scenario to its file.
//!
//! Only what differs from the defaults is written, so that an imported file stays readable.

mod congestion;
mod events;
mod host;
mod infiniband;
mod switch;
mod tcp;
mod text;

use softfabric_units::{Span, Time};

use super::resolve::{host_profile, infiniband_profiles, switch_profile, tcp_profiles, usual_port};
use super::{
    ExplicitKind, ExplicitLink, ExplicitNode, Fabric, FabricKind, FlowEntry, Host, Interval,
    OperationKind, Record, RoutingKind, Scenario, StopSettings, Switch, TimingKind, Topology,
    TriggerEntry, Workload,
};
use crate::plan::{
    Addressing, Endpoint, Flow, LinkLayer, Network, NodeId, NodeKind, Operation, Plan,
    PortSelection, Routing, Start, Timing,
};
use crate::topology::tiers_by_distance;

pub(super) use congestion::section as congestion_control;
pub(super) use text::{table, toml};

pub(super) fn scenario(plan: &Plan) -> Result<Scenario, String> {
    let network = &plan.network;
    let mut rates: Vec<_> = network.links.iter().map(|link| link.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    let [first_switch, other_switches @ ..] = &plan.switch_profiles[..] else {
        return Err("there is no switch profile".to_owned());
    };
    let [first_host, other_hosts @ ..] = &plan.host_profiles[..] else {
        return Err("there is no host profile".to_owned());
    };
    let lossless = switch::lossless(&plan.switch_profiles);
    let mut base_switch = switch_profile(&rates);
    let mut base_host = host_profile(lossless, first_host.addressing);
    if plan.link_layer.infiniband().is_some() {
        infiniband_profiles(&mut base_switch, &mut base_host);
    }
    if speaks_tcp(plan) {
        tcp_profiles(&mut base_switch, &mut base_host, &rates);
    }
    let switch_group = (1u32..)
        .zip(other_switches)
        .map(|(index, profile)| {
            let names = names_of(
                network,
                |kind| matches!(kind, NodeKind::Switch { profile } if profile == index),
            )?;
            Ok(Switch {
                names: Some(names),
                ..switch::section(profile, first_switch)
            })
        })
        .collect::<Result<_, String>>()?;
    let host_group = (1u32..)
        .zip(other_hosts)
        .map(|(index, profile)| {
            if profile.addressing != first_host.addressing {
                return Err("hosts differ in how they address packets".to_owned());
            }
            let names = names_of(
                network,
                |kind| matches!(kind, NodeKind::Host { profile, .. } if profile == index),
            )?;
            Ok(Host {
                names: Some(names),
                ..host::section(profile, first_host)?
            })
        })
        .collect::<Result<_, String>>()?;
    Ok(Scenario {
        name: Some(plan.name.clone()),
        description: None,
        seed: Some(plan.seed),
        timing: (plan.timing == Timing::Hpcc).then_some(TimingKind::Hpcc),
        fabric: fabric(plan, first_host.addressing),
        topology: topology(network),
        link: Vec::new(),
        switch: switch::section(first_switch, &base_switch),
        switch_group,
        infiniband: infiniband::section(plan)?,
        host: host::section(first_host, &base_host)?,
        host_group,
        job: Vec::new(),
        workload: workload(plan)?,
        trigger: (plan.triggers.iter())
            .map(|trigger| TriggerEntry {
                count: Some(trigger.count),
                repeat: Some(trigger.repeat),
            })
            .collect(),
        event: events::events(plan)?,
        record: record(plan),
        stop: StopSettings {
            at: Some(plan.stop.at),
            when_done: Some(plan.stop.when_done),
        },
        compare: super::Compare::default(),
        source: super::Source::default(),
    })
}

fn names_of(network: &Network, is: impl Fn(NodeKind) -> bool) -> Result<Vec<String>, String> {
    let names: Vec<_> = (network.nodes.iter())
        .filter(|node| is(node.kind))
        .map(|node| node.name.clone())
        .collect();
    if names.is_empty() {
        return Err("a profile is used by no node".to_owned());
    }
    Ok(names)
}

/// Whether all hosts speak TCP.
fn speaks_tcp(plan: &Plan) -> bool {
    plan.host_profiles
        .iter()
        .all(|profile| profile.tcp.is_some())
}

fn fabric(plan: &Plan, addressing: Addressing) -> Fabric {
    Fabric {
        kind: Some(match (&plan.link_layer, addressing) {
            _ if speaks_tcp(plan) => FabricKind::Tcp,
            (LinkLayer::Infiniband(_), _) => FabricKind::Infiniband,
            (_, Addressing::RoceV1) => FabricKind::RoceV1,
            (_, Addressing::RoceV2Ipv4 | Addressing::RoceV2Ipv6) => FabricKind::RoceV2,
        }),
        ip: (addressing == Addressing::RoceV2Ipv6).then_some(6),
        segment: None,
        routing: match plan.link_layer.infiniband() {
            Some(settings) => Some(infiniband::routing(settings.routing)),
            None => (plan.routing == Routing::UpDown).then_some(RoutingKind::UpDown),
        },
        reroute: (!plan.reroute.is_zero()).then_some(plan.reroute),
    }
}

fn topology(network: &Network) -> Topology {
    let mut by_distance = network.clone();
    tiers_by_distance(&mut by_distance);
    let node = (network.nodes.iter().zip(&by_distance.nodes))
        .map(|(node, guess)| {
            let (kind, segment) = match node.kind {
                NodeKind::Host { subnet, .. } => (ExplicitKind::Host, subnet),
                NodeKind::Switch { .. } => (ExplicitKind::Switch, 0),
            };
            ExplicitNode {
                name: node.name.clone(),
                kind,
                tier: (node.tier != guess.tier).then_some(node.tier),
                segment: (segment > 0).then_some(segment),
            }
        })
        .collect();
    let name = |end: Endpoint| network.nodes[end.node.index()].name.clone();
    // Ports go in the order of links unless a link says otherwise.
    let mut next = vec![0; network.nodes.len()];
    let mut port = |end: Endpoint| {
        let usual: &mut u16 = &mut next[end.node.index()];
        let said = (end.port.0 != *usual).then_some(end.port.0);
        *usual = usual.wrapping_add(1);
        said
    };
    let link = (network.links.iter())
        .map(|link| ExplicitLink {
            a: name(link.a),
            b: name(link.b),
            a_port: port(link.a),
            b_port: port(link.b),
            rate: link.rate,
            delay: link.delay,
            bit_error_rate: (link.bit_error_rate > 0.0).then_some(link.bit_error_rate),
            packet_error_rate: (link.packet_error_rate > 0.0).then_some(link.packet_error_rate),
        })
        .collect();
    Topology::Explicit { node, link }
}

/// All flows in one list; what the first one says is said once.
fn workload(plan: &Plan) -> Result<Vec<Workload>, String> {
    let Some(first) = plan.flows.first() else {
        return Ok(Vec::new());
    };
    let name = |node: NodeId| plan.network.nodes[node.index()].name.clone();
    // What goes to a group has no operation to say.
    let has_groups = plan
        .flows
        .iter()
        .any(|flow| flow.operation.group().is_some());
    let usual = match has_groups {
        true => Operation::Write,
        false => first.operation,
    };
    // Where some flows are cut into messages and others are not, each that is says so.
    let all_are_cut = plan.flows.iter().all(|flow| flow.message.is_some());
    let message = first.message.filter(|_| all_are_cut);
    let entry = |flow: &Flow| -> Result<FlowEntry, String> {
        let (start, after) = match flow.start {
            Start::At(time) => (time.since(Time::ZERO), None),
            Start::After(trigger, span) => (span, Some(trigger.0)),
            Start::Fed(..) => return Err("a job says what some flows send".to_owned()),
        };
        Ok(FlowEntry {
            from: name(flow.source),
            to: plan.destination_name(flow).to_owned(),
            bytes: flow.bytes,
            start: (start > Span::ZERO).then_some(start),
            after,
            class: (flow.class != first.class).then_some(flow.class.as_u8()),
            operation: operation(flow.operation).filter(|_| flow.operation != usual),
            message: flow.message.filter(|_| flow.message != message),
            ecn: (flow.ecn_capable != first.ecn_capable).then_some(flow.ecn_capable),
            dscp: flow.dscp,
            group: (flow.group != first.group).then(|| flow.group.clone()),
            source_port: Some(flow.udp_source_port),
            destination_port: (flow.udp_destination_port
                != usual_port(plan.stack_of(flow.source).is_some()))
            .then_some(flow.udp_destination_port),
            path: (flow.path.as_ref()).map(|path| path.iter().map(|node| name(*node)).collect()),
            on_sent: flow.on_sent.map(|trigger| trigger.0),
            on_received: flow.on_received.map(|trigger| trigger.0),
        })
    };
    Ok(vec![Workload::Flows {
        flow: plan.flows.iter().map(entry).collect::<Result<_, _>>()?,
        group: Some(first.group.clone()),
        start: None,
        class: Some(first.class.as_u8()),
        operation: operation(usual).filter(|_| usual != Operation::Write),
        message,
        ecn: Some(first.ecn_capable),
    }])
}

/// How a flow says that it is sent; not where it goes to a group.
const fn operation(operation: Operation) -> Option<OperationKind> {
    match operation {
        Operation::Write => Some(OperationKind::Write),
        Operation::Send => Some(OperationKind::Send),
        Operation::Read => Some(OperationKind::Read),
        Operation::Multicast(_) => None,
    }
}

fn record(plan: &Plan) -> Record {
    let recording = &plan.recording;
    let port = |end: &Endpoint| {
        let name = &plan.network.nodes[end.node.index()].name;
        format!("{name}:{}", end.port.0)
    };
    let ports = |ends: &[Endpoint]| ends.iter().map(port).collect::<Vec<_>>();
    Record {
        interval: Some(Interval::from(recording.interval)),
        ports: match &recording.ports {
            PortSelection::Busiest => None,
            PortSelection::These(ends) => Some(ports(ends)),
        },
        flow_rates: Some(recording.flow_rates),
        captures: Some(ports(&recording.captures)).filter(|captures| !captures.is_empty()),
        pause_log: Some(recording.pause_log),
        check_wire: recording.check_wire.then_some(true),
    }
}

/// `Some(found)` where it differs from what is there anyway.
fn changed<T: PartialEq + Clone>(found: &T, base: &T) -> Option<T> {
    (found != base).then(|| found.clone())
}
