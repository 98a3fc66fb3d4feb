//! InfiniBand's partitions: keys that exist, members that are hosts, flows whose ends share one.

use std::collections::BTreeSet;

use super::{Findings, REPEATS};
use crate::plan::{NodeId, NodeKind, Partition, Plan, shared_keys};

pub(super) fn check(plan: &Plan, findings: &mut Findings) {
    let settings = plan.link_layer.infiniband();
    let Some(partitions) = settings.and_then(|settings| settings.partitions.as_ref()) else {
        return;
    };
    let nodes = &plan.network.nodes;
    let is_host = |node: NodeId| {
        let node = nodes.get(node.index());
        node.is_some_and(|node| matches!(node.kind, NodeKind::Host { .. }))
    };
    let mut keys = BTreeSet::new();
    let mut is_sound = true;
    for partition in &partitions.partitions {
        let place = format!("partition {}", partition.name);
        if !(1..=0x7fff).contains(&partition.key) {
            let found = format!("has key {:#06x}", partition.key);
            findings.error(&place, found, "give it a key of 0x0001 to 0x7fff");
            is_sound = false;
        }
        if !keys.insert(partition.key) {
            let found = format!("has key {:#06x}, as another one", partition.key);
            findings.error(&place, found, "give each partition a key of its own");
        }
        is_sound &= members(partition, &place, plan, findings);
    }
    if !is_sound {
        return;
    }
    let keys = partitions.keys(nodes.len(), is_host);
    let name = |node: NodeId| &nodes[node.index()].name;
    let connections = plan.flows.iter();
    let connections = connections.filter(|flow| flow.operation.group().is_none());
    let apart = connections.filter(|flow| {
        let (source, destination) = (flow.source.index(), flow.destination.index());
        // Other ends than hosts have been told of.
        is_host(flow.source)
            && is_host(flow.destination)
            && shared_keys(&keys[source], &keys[destination]).is_none()
    });
    for flow in apart.take(REPEATS) {
        findings.warning(
            format!("the flow {} → {}", name(flow.source), name(flow.destination)),
            "has ends that share no partition in which one is a full member: nothing arrives, and its queue pair fails",
            "make both members of one partition, one of them in full",
        );
    }
}

/// Whether all members are hosts, each once.
fn members(partition: &Partition, place: &str, plan: &Plan, findings: &mut Findings) -> bool {
    let nodes = &plan.network.nodes;
    let mut seen = BTreeSet::new();
    for &member in partition.full.iter().chain(&partition.limited) {
        let node = nodes.get(member.index());
        let name = node.map_or("a node that does not exist", |node| node.name.as_str());
        if !node.is_some_and(|node| matches!(node.kind, NodeKind::Host { .. })) {
            let found = format!("has member {name}, which is no host");
            findings.error(place, found, "name hosts only");
            return false;
        }
        if !seen.insert(member) {
            let found = format!("has member {name} twice");
            let advice = "name each host once, as a full or as a limited member";
            findings.error(place, found, advice);
            return false;
        }
    }
    true
}
