//! Writing topologies: for ibsim, and as ibnetdiscover does.

use std::fmt::Write;

use super::{lanes, speed_name};
use crate::subnet::{Node, NodeId, NodeKind, PortRef, Subnet};

/// The subnet as a `.net` file of ibsim. GUIDs are written, so that they come back.
pub fn write_net(subnet: &Subnet) -> String {
    let mut text = String::new();
    for (id, node) in subnet.nodes() {
        let word = if node.is_switch() {
            "switchguid"
        } else {
            "caguid"
        };
        line(&mut text, format_args!("{word}={:#x}", node.guid.0));
        let (kind, base) = match node.kind {
            NodeKind::Switch => ("Switch", " base port 0"),
            NodeKind::Adapter => ("Hca", ""),
            NodeKind::Router => ("Rt", ""),
        };
        let (ports, name, description) = (node.ports, &node.id, plain(&node.description));
        line(
            &mut text,
            format_args!("{kind}\t{ports} \"{name}\"\t\t# \"{description}\"{base}"),
        );
        for (port, peer) in cabled(subnet, id) {
            let (name, number) = (&subnet.node(peer.node).id, peer.port);
            line(
                &mut text,
                format_args!("[{}]\t\"{name}\"[{number}]", port.port),
            );
        }
        text.push('\n');
    }
    text
}

/// The subnet as ibnetdiscover prints it, without the remarks at its start.
pub fn write_ibnetdiscover(subnet: &Subnet) -> String {
    let mut text = String::new();
    let switches_first = [true, false];
    for switches in switches_first {
        for (id, node) in subnet
            .nodes()
            .filter(|(_, node)| node.is_switch() == switches)
        {
            record(&mut text, subnet, id, node);
        }
    }
    text
}

fn record(text: &mut String, subnet: &Subnet, id: NodeId, node: &Node) {
    let guid = node.guid.0;
    line(text, format_args!("vendid={:#x}", node.vendor));
    line(text, format_args!("devid={:#x}", node.device));
    line(text, format_args!("sysimgguid={:#x}", node.system.0));
    let (ports, name, description) = (node.ports, discovered_name(node), plain(&node.description));
    if node.is_switch() {
        let lid = subnet.port(PortRef { node: id, port: 0 }).lid;
        line(text, format_args!("switchguid={guid:#x}({guid:x})"));
        line(
            text,
            format_args!(
                "Switch\t{ports} \"{name}\"\t\t# \"{description}\" base port 0 lid {lid} lmc 0"
            ),
        );
    } else {
        let kind = if node.kind == NodeKind::Router {
            "Rt"
        } else {
            "Ca"
        };
        let word = if node.kind == NodeKind::Router {
            "rtguid"
        } else {
            "caguid"
        };
        line(text, format_args!("{word}={guid:#x}"));
        line(
            text,
            format_args!("{kind}\t{ports} \"{name}\"\t\t# \"{description}\""),
        );
    }
    for (port, peer) in cabled(subnet, id) {
        let (state, other) = (subnet.port(port), subnet.node(peer.node));
        let speed = format!("{}x{}", lanes(state), speed_name(state));
        let (peer_name, peer_description) = (discovered_name(other), plain(&other.description));
        let own = if node.is_switch() {
            String::new()
        } else {
            format!("({:x}) ", state.guid.0)
        };
        let peer_port = subnet.port(subnet.end_port(peer));
        let theirs = if other.is_switch() {
            String::new()
        } else {
            format!("({:x}) ", peer_port.guid.0)
        };
        let identifiers = if node.is_switch() {
            String::new()
        } else {
            format!("lid {} lmc {} ", state.lid, state.lmc)
        };
        let (number, peer_number) = (port.port, peer.port);
        line(
            text,
            format_args!(
                "[{number}]{own}\t\"{peer_name}\"[{peer_number}]{theirs}\t\t# {identifiers}\"{peer_description}\" lid {} {speed}",
                peer_port.lid
            ),
        );
    }
    text.push('\n');
}

/// `S-` or `H-` and the GUID.
fn discovered_name(node: &Node) -> String {
    let letter = match node.kind {
        NodeKind::Switch => 'S',
        NodeKind::Adapter => 'H',
        NodeKind::Router => 'R',
    };
    format!("{letter}-{:016x}", node.guid.0)
}

fn cabled(subnet: &Subnet, node: NodeId) -> impl Iterator<Item = (PortRef, PortRef)> {
    subnet
        .external_ports(node)
        .filter_map(|(port, state)| Some((port, state.peer()?)))
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes all");
    text.push('\n');
}

/// A description as it may stand in quotes.
fn plain(description: &str) -> String {
    description.replace('"', "'").replace(['\n', '\r'], " ")
}
