//! What PFC watchdogs of switches tell: storms that they saw, and what is wrong with a watchdog itself.
//!
//! A watchdog that drops does what it is for; what it drops is the storm's. It is wrong itself where it goes on dropping although
//! nobody pauses any more, and where it saw one storm of a switch and not the other.

use softfabric_telemetry::{ClassCounter, Counter};
use softfabric_units::Class;

use super::facts::Facts;
use super::scan::{LOSES, NO_CHANCE, Scan};
use super::{Cause, Certainty, Finding, Lane};
use crate::history::Window;
use crate::topology::{NodeKind, PortIndex};

/// Held for less than this share of a stretch, a port is free: what a sample that was late can leave of a storm.
const FREE: f64 = 0.01;
/// So many stretches in which a watchdog drops for nothing are no chance.
const STRETCHES: usize = 3;

/// Findings that `known` does not have yet.
pub(crate) fn scan(scan: &Scan<'_>, known: &[Finding]) -> Vec<Finding> {
    let mut found = storms_seen(scan, known);
    found.extend(stuck(scan));
    found
}

/// Queues that a PFC watchdog called stormed, where a host is at the other end.
fn storms_seen(scan: &Scan<'_>, known: &[Finding]) -> Vec<Finding> {
    let mut found = Vec::new();
    for port in scan.facts.topology.port_indices() {
        let Some(peer) = scan.facts.topology.peer(port) else {
            continue;
        };
        let host = scan.facts.topology.owner(peer);
        let is_known = known.iter().any(|finding| {
            finding.cause == Cause::HostStorm && [Some(port), Some(peer)].contains(&finding.source)
        });
        if host.kind != NodeKind::Host || is_known {
            continue;
        }
        for class in Class::all() {
            let storms = Counter::Class(class, ClassCounter::WatchdogStorms);
            let Some(times) = scan.grown(port, storms).filter(|&times| times >= 1.0) else {
                continue;
            };
            let name = &scan.facts.topology.port(port).name;
            let says = format!("the PFC watchdog called its queue stormed, times: {times:.0}");
            let mut evidence = vec![scan.evidence(port, storms, says)];
            let dropped = Counter::Class(class, ClassCounter::WatchdogDropped);
            if let Some(lost) = scan.grown(port, dropped).filter(|&lost| lost >= 1.0) {
                let says = format!("{lost:.0} packets were dropped, so that others need not wait");
                evidence.push(scan.evidence(port, dropped, says));
            }
            let summary = format!(
                "{} paused {name} for priority {class} until its PFC watchdog stepped in: a broken NIC or a hung host",
                host.name
            );
            let certainty = Certainty::Moderate;
            let cause = Cause::HostStorm;
            let mut finding = scan.finding(cause, certainty, port, LOSES, summary, evidence);
            finding.node.clone_from(&host.name);
            finding.ports.reverse();
            found.push(finding);
        }
    }
    found
}

/// Watchdogs that go on dropping although the queue is not paused any more.
fn stuck(scan: &Scan<'_>) -> Vec<Finding> {
    let facts = scan.facts;
    let mut found = Vec::new();
    for port in facts.topology.port_indices() {
        if facts.topology.owner(port).kind == NodeKind::Host {
            continue;
        }
        for class in Class::all() {
            let dropped = Counter::Class(class, ClassCounter::WatchdogDropped);
            if scan
                .grown(port, dropped)
                .is_none_or(|lost| lost < NO_CHANCE)
            {
                continue;
            }
            let lane = Lane::Priority(class);
            // What is not paused, and yet nothing is let through.
            let for_nothing: Vec<f64> = facts
                .grid
                .iter()
                .filter(|&&window| {
                    facts
                        .held(port, lane, window)
                        .is_some_and(|held| held < FREE)
                })
                .filter_map(|&window| facts.grown(port, dropped, window))
                .filter(|&lost| lost >= 1.0)
                .collect();
            if for_nothing.len() < STRETCHES {
                continue;
            }
            let name = &facts.topology.port(port).name;
            let lost: f64 = for_nothing.iter().sum();
            let time = Counter::Class(class, ClassCounter::PauseReceivedDuration);
            let evidence = vec![
                scan.evidence(
                    port,
                    dropped,
                    format!("{lost:.0} packets were dropped by the watchdog while nobody paused the queue"),
                ),
                scan.evidence(port, time, "it stands still meanwhile".to_owned()),
            ];
            let summary = format!(
                "the PFC watchdog of {name} goes on dropping packets of class {class} although the storm is over: it does not see \
                 that the queue is free, or takes resumes (XON) for pauses"
            );
            let (cause, certainty) = (Cause::Misconfiguration, Certainty::High);
            found.push(scan.finding(cause, certainty, port, LOSES, summary, evidence));
        }
    }
    found
}

/// For a storm at `port`: another port of the switch whose watchdog has seen one, if that of `port` has seen none.
pub(crate) fn missed_beside(
    facts: &Facts<'_>,
    port: PortIndex,
    class: Class,
    whole: Window,
) -> Option<PortIndex> {
    let storms = Counter::Class(class, ClassCounter::WatchdogStorms);
    let seen = |port: PortIndex| facts.grown(port, storms, whole);
    seen(port).filter(|&seen| seen < 1.0)?;
    let ports = facts.topology.owner(port).ports.iter().copied();
    let mut others = ports.filter(|&other| other != port);
    others.find(|&other| seen(other).is_some_and(|seen| seen >= 1.0))
}
