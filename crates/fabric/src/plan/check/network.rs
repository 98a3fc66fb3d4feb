//! Nodes, ports and links.

use std::collections::BTreeMap;

use super::{Findings, REPEATS};
use crate::plan::{Link, LinkLayer, NodeKind, Plan};

/// Whether ids and ports exist, so that the rest can be looked at.
pub(super) fn check(plan: &Plan, findings: &mut Findings) -> bool {
    let before = findings.all.len();
    nodes(plan, findings);
    ports(plan, findings);
    let is_sound = findings.all.len() == before;
    links(plan, findings);
    is_sound
}

fn nodes(plan: &Plan, findings: &mut Findings) {
    let network = &plan.network;
    let mut names = BTreeMap::new();
    for (node, id) in network.nodes.iter().zip(network.ids()) {
        if let Some(first) = names.insert(node.name.as_str(), id.0) {
            findings.error(
                format!("node {}", id.0),
                format!("is called {}, as node {first} is", node.name),
                "give each node a name of its own",
            );
        }
        let (kind, profile, known) = match node.kind {
            NodeKind::Host { profile, .. } => ("host", profile, plan.host_profiles.len()),
            NodeKind::Switch { profile } => {
                let known = match &plan.link_layer {
                    LinkLayer::Ethernet => plan.switch_profiles.len(),
                    LinkLayer::Infiniband(settings) => settings.switches.len(),
                };
                ("switch", profile, known)
            }
        };
        if profile as usize >= known {
            findings.error(
                format!("node {}", node.name),
                format!("has {kind} profile {profile}, of {known}"),
                "add the profile",
            );
        }
    }
}

/// Ports of a node are numbered without gaps, and each has one link.
fn ports(plan: &Plan, findings: &mut Findings) {
    let network = &plan.network;
    let mut ports: Vec<Vec<u16>> = vec![Vec::new(); network.nodes.len()];
    for (place, link) in network.links.iter().enumerate() {
        for end in [link.a, link.b] {
            match ports.get_mut(end.node.index()) {
                Some(ports) => ports.push(end.port.0),
                None => findings.error(
                    format!("link {place}"),
                    format!("ends at node {}, which is not there", end.node.0),
                    "add the node",
                ),
            }
        }
    }
    for (node, ports) in network.nodes.iter().zip(&mut ports) {
        ports.sort_unstable();
        if (0u32..)
            .zip(&*ports)
            .any(|(place, port)| place != u32::from(*port))
        {
            findings.error(
                format!("node {}", node.name),
                "has ports with gaps, or two links at one port",
                "number the ports of each node from zero",
            );
        }
    }
}

fn links(plan: &Plan, findings: &mut Findings) {
    let before = findings.all.len();
    for (place, link) in plan.network.links.iter().enumerate() {
        if findings.all.len() >= before + REPEATS {
            return;
        }
        let found = format!("link {}", name(plan, place, link));
        if link.rate.is_zero() {
            findings.error(
                &found,
                "has a rate of zero",
                "give it a rate such as 100Gb/s",
            );
        }
        if link.a.node == link.b.node {
            findings.error(&found, "leads back to the same node", "link two nodes");
        }
        for (what, rate) in [
            ("bit error rate", link.bit_error_rate),
            ("packet error rate", link.packet_error_rate),
        ] {
            if !(0.0..=1.0).contains(&rate) {
                findings.error(
                    &found,
                    format!("has a {what} of {rate}, which is no probability"),
                    "give a number from 0 to 1",
                );
            }
        }
    }
}

fn name(plan: &Plan, place: usize, link: &Link) -> String {
    let name = |node: crate::plan::NodeId| {
        (plan.network.nodes.get(node.index())).map_or("?", |node| node.name.as_str())
    };
    format!("{place} ({}–{})", name(link.a.node), name(link.b.node))
}
