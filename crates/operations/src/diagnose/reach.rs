//! Hosts whose packets reach nobody: they are not lost on the way, they have no way.
//!
//! A packet that is lost among others is missed by its receiver, which says so. Where requests run out of retries and nobody has
//! ever missed anything, nothing arrived at all: a wrong GID or address, no route, a firewall, a rail that is cut off.

use softfabric_telemetry::{ClassCounter, Counter, DeviceCounter, PortCounter};

use super::scan::{LOSES, Scan};
use super::{Cause, Certainty, Finding};
use crate::topology::NodeKind;

/// Hosts that give up although nothing that was found takes their packets.
pub(crate) fn unreachable<'f>(
    scan: &Scan<'_>,
    mut known: impl Iterator<Item = &'f Finding>,
) -> Option<Finding> {
    let facts = scan.facts;
    // Whatever else is wrong may be the reason.
    if known.next().is_some() || missed(scan) >= 1.0 {
        return None;
    }
    let topology = facts.topology;
    let hosts = topology
        .port_indices()
        .filter(|&port| topology.owner(port).kind == NodeKind::Host);
    let mut evidence = Vec::new();
    let mut first = None;
    for port in hosts {
        let given_up = Counter::Device(DeviceCounter::RetriesExceeded);
        let Some(times) = scan.grown(port, given_up).filter(|&times| times >= 1.0) else {
            continue;
        };
        first = first.or(Some(port));
        evidence.push(scan.evidence(
            port,
            given_up,
            format!("queue pairs that gave up after their retries: {times:.0}"),
        ));
    }
    let first = first?;
    for port in topology.port_indices() {
        let discards = Counter::Port(PortCounter::ReceiveDiscards);
        if topology.owner(port).kind == NodeKind::Host {
            continue;
        }
        // What a class had no room for is counted there, too.
        let full = facts.over_classes(port, ClassCounter::IngressDropped, &[scan.whole]);
        let lost = scan
            .grown(port, discards)
            .map(|all| all - full.unwrap_or(0.0));
        if let Some(lost) = lost.filter(|&lost| lost >= 1.0) {
            let says =
                format!("{lost:.0} packets were dropped, of no class: there was no route for them");
            evidence.push(scan.evidence(port, discards, says));
        }
    }
    let missing = Counter::Device(DeviceCounter::OutOfSequence);
    let nobody =
        "and no host has ever missed a packet: nothing arrived that one could be missing from";
    evidence.push(scan.evidence(first, missing, nobody.to_owned()));
    let host = &topology.owner(first).name;
    let summary = format!(
        "{host} gets no answer from a peer and no packet was lost on the way: the peer is never reached. Look at GID index and \
         addresses, routes between the two (also between rails), firewalls for UDP port 4791"
    );
    let cause = Cause::Misconfiguration;
    Some(scan.finding(cause, Certainty::Moderate, first, LOSES, summary, evidence))
}

/// How often hosts missed packets.
fn missed(scan: &Scan<'_>) -> f64 {
    let counters = [
        DeviceCounter::OutOfSequence,
        DeviceCounter::SequenceErrorReceived,
    ];
    let all = counters.iter();
    all.map(|&counter| scan.facts.of_devices(counter, &[scan.whole]))
        .sum()
}
