//! What is wrong without holding anybody: cables that fail or damage packets, and losses where there must be none.

use softfabric_telemetry::{ClassCounter, Counter, DeviceCounter, PortCounter};
use softfabric_units::{Class, Span};

use super::facts::Facts;
use super::judge::{cable, percent};
use super::{Cause, Certainty, Evidence, Finding, Lane, reach, since_start, watchdog};
use crate::history::Window;
use crate::topology::{NodeKind, PortIndex};

/// A cable within its specification (a bit error rate of 1e-12) damages one of 30 million packets of 4 kB.
const DAMAGED: f64 = 1e-6;
/// One packet in ten thousand: with go-back-N, a flow of 4 kB packets at 100 Gb/s begins anew 300 times a second.
const HURTS: f64 = 1e-4;
/// Losses where there must be none matter more than any waiting, except where nothing moves at all.
pub(crate) const LOSES: f64 = 3.0;
/// A cable that fails goes before mere traffic.
const FAILS: f64 = 2.0;
/// So many damaged packets are no chance.
pub(crate) const NO_CHANCE: f64 = 3.0;
/// Of what hosts suffer, so much must fall into the stretches in which a port drops packets, if the port is to be blamed.
const COINCIDES: f64 = 0.5;

/// Findings that `known` does not have yet.
pub(crate) fn scan(facts: &Facts<'_>, known: &[Finding], whole: Window) -> Vec<Finding> {
    let scan = Scan { facts, whole };
    let mut found = scan.cables(known);
    let cables_fail = known
        .iter()
        .chain(&found)
        .any(|finding| finding.cause == Cause::FailedLink);
    let deaf = scan.deaf_neighbours();
    let mut losses = scan.losses(cables_fail);
    // Who loses packets because its neighbour does not obey is a symptom.
    let is_deaf = |port: Option<PortIndex>| deaf.iter().any(|finding| finding.source == port);
    losses.retain(|loss| {
        let peer = loss.source.and_then(|port| facts.topology.peer(port));
        !is_deaf(peer)
    });
    found.extend(merged(losses));
    found.extend(merged(deaf));
    found.extend(watchdog::scan(&scan, known));
    found.extend(reach::unreachable(&scan, known.iter().chain(&found)));
    found
}

/// Whether hosts say that packets are missing, more often than by chance.
pub(crate) fn losses_at_hosts(facts: &Facts<'_>, whole: Window) -> bool {
    facts.of_devices(DeviceCounter::SequenceErrorReceived, &[whole]) >= NO_CHANCE
}

pub(crate) struct Scan<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) whole: Window,
}

impl Scan<'_> {
    fn cables(&self, known: &[Finding]) -> Vec<Finding> {
        let mut found = Vec::new();
        for port in self.facts.topology.port_indices() {
            let Some(peer) = self.facts.topology.peer(port) else {
                continue;
            };
            found.extend(self.damages(port, peer));
            let new = !known.iter().any(|finding| {
                finding.cause == Cause::FailedLink
                    && [Some(port), Some(peer)].contains(&finding.source)
            });
            if port < peer && new {
                found.extend(self.failed(port));
            }
        }
        found
    }

    /// Packets from `port` arrive damaged at `peer`.
    fn damages(&self, port: PortIndex, peer: PortIndex) -> Option<Finding> {
        let errors = Counter::Port(PortCounter::ReceiveErrors);
        let damaged = self.grown(peer, errors)?;
        if damaged < NO_CHANCE {
            return None;
        }
        let whole = [self.whole];
        let received = self
            .grown(peer, Counter::Port(PortCounter::ReceivePackets))
            .or_else(|| {
                let sent = Counter::Port(PortCounter::TransmitPackets);
                self.facts.sum(port, sent, &whole)
            })
            .unwrap_or(0.0);
        let share = damaged / (received + damaged).max(1.0);
        if share < DAMAGED {
            return None;
        }
        let cable = cable(self.facts, port);
        let mut evidence = vec![self.evidence(
            peer,
            errors,
            format!(
                "{damaged:.0} packets came damaged, one of {:.0}",
                1.0 / share
            ),
        )];
        let again = self
            .facts
            .of_devices(DeviceCounter::SequenceErrorReceived, &whole);
        if again >= 1.0 {
            let says = format!(
                "hosts were told {again:.0} times that a packet is missing, and sent again"
            );
            evidence.push(Evidence {
                port: "all hosts".to_owned(),
                counter: Counter::Device(DeviceCounter::SequenceErrorReceived).name(),
                says,
            });
        }
        let summary = format!(
            "the cable {cable} damages {} of the packets",
            percent_fine(share)
        );
        Some(self.finding(
            Cause::DegradedLink,
            Certainty::High,
            port,
            if share >= HURTS { FAILS } else { 0.3 },
            summary,
            evidence,
        ))
    }

    fn failed(&self, port: PortIndex) -> Option<Finding> {
        let downs: Vec<Window> = self
            .facts
            .grid
            .iter()
            .copied()
            .filter(|&window| self.facts.was_down(port, window))
            .collect();
        let (first, last) = (downs.first()?, downs.last()?);
        // One that was down from the start may be known, or not in use; one that fails now is news.
        let fails = downs.len() < self.facts.grid.len();
        let weight = if fails { FAILS } else { 0.9 };
        let cable = cable(self.facts, port);
        let evidence = vec![self.evidence(
            port,
            Counter::Port(PortCounter::LinkDowned),
            format!(
                "the link was down in {} of {} stretches of {}",
                downs.len(),
                self.facts.grid.len(),
                first.length()
            ),
        )];
        let summary = format!("the cable {cable} is or was down");
        let mut finding = self.finding(
            Cause::FailedLink,
            Certainty::High,
            port,
            weight,
            summary,
            evidence,
        );
        finding.from = since_start(self.whole, first.from);
        finding.until = since_start(self.whole, last.to);
        Some(finding)
    }

    /// Packets that were dropped for want of room, in a class that must not lose any.
    fn losses(&self, cables_fail: bool) -> Vec<Finding> {
        // Packets without a way are lost by the cable that failed.
        if cables_fail {
            return Vec::new();
        }
        let suffers = self.facts.of_devices_by_stretch(&[
            DeviceCounter::OutOfSequence,
            DeviceCounter::SequenceErrorReceived,
            DeviceCounter::LocalAckTimeout,
        ]);
        // Without RDMA that suffers, or pauses that forbid it, losses are TCP's daily bread.
        if suffers.iter().sum::<f64>() < NO_CHANCE {
            return Vec::new();
        }
        let mut found = Vec::new();
        for port in self.facts.topology.port_indices() {
            if self.facts.topology.owner(port).kind == NodeKind::Host {
                continue;
            }
            let drops = |class: &Class| {
                let signs = [ClassCounter::IngressDropped, ClassCounter::EgressDropped];
                let mut signs = signs.map(|sign| Counter::Class(*class, sign)).into_iter();
                signs.any(|sign| !self.facts.stands_still(port, sign))
            };
            for class in Class::all().filter(drops) {
                let lossless = self.facts.lanes.contains(&Lane::Priority(class));
                found.extend(self.lost(port, class, &suffers, lossless));
            }
        }
        found
    }

    fn lost(
        &self,
        port: PortIndex,
        class: Class,
        suffers: &[f64],
        lossless: bool,
    ) -> Option<Finding> {
        let drops = Drops::of(self.facts, port, class);
        let (ingress, egress) = (drops.ingress, drops.egress);
        if ingress + egress < NO_CHANCE {
            return None;
        }
        // Whose losses they are, no counter says: in a class that nobody pauses they are RDMA's only if hosts miss packets when
        // this port drops them, and not at other times.
        if !lossless && drops.share_of(suffers) < COINCIDES {
            return None;
        }
        let pauses = Counter::Class(class, ClassCounter::PauseSent);
        let paused = self.grown(port, pauses).unwrap_or(0.0);
        let name = self.facts.topology.port(port).name.clone();
        let switch = self.facts.topology.owner(port).name.clone();
        let mut evidence = Vec::new();
        if ingress >= 1.0 {
            let counter = Counter::Class(class, ClassCounter::IngressDropped);
            let says = format!("{ingress:.0} packets of class {class} found no room");
            evidence.push(self.evidence(port, counter, says));
        }
        if egress >= 1.0 {
            let counter = Counter::Class(class, ClassCounter::EgressDropped);
            let says = format!("{egress:.0} packets of class {class} were dropped at its queue");
            evidence.push(self.evidence(port, counter, says));
        }
        let summary = if ingress >= egress && paused >= 1.0 {
            evidence.push(self.evidence(
                port,
                pauses,
                format!(
                    "{paused:.0} pause frames were sent: PFC is on, and its headroom was too small"
                ),
            ));
            format!(
                "{name} drops packets of class {class} after it has sent pause: too little headroom for its cable and \
                 MTU, or a neighbour that does not obey"
            )
        } else if ingress >= egress {
            evidence.push(self.evidence(
                port,
                pauses,
                "no pause frame was sent before packets were dropped".to_owned(),
            ));
            match lossless {
                true => format!(
                    "{switch} drops packets of class {class} and sends no pause, while others pause this class: PFC is \
                     not on there, or for another priority"
                ),
                false => format!(
                    "{switch} drops packets of class {class} when hosts miss some, and nobody sends pause: RDMA seems to run in \
                     a class that is not lossless there, because PFC is off for it, or its group has no headroom"
                ),
            }
        } else if drops.restored {
            let counter = Counter::Class(class, ClassCounter::WatchdogRestored);
            let says =
                "the watchdog says that it let the queue go again, and packets are dropped since"
                    .to_owned();
            evidence.push(self.evidence(port, counter, says));
            format!(
                "{name} drops packets of class {class} after its PFC watchdog restored the queue: the watchdog's rule of dropping \
                 was not taken away"
            )
        } else if self.obeys_without_protecting(port, class) {
            let time = Counter::Class(class, ClassCounter::PauseReceivedDuration);
            let says = format!(
                "{name} is paused for this class, and no port of {switch} ever pauses it: packets pile up and are dropped"
            );
            evidence.push(self.evidence(port, time, says));
            format!(
                "{name} obeys pause frames for class {class}, which is not lossless at {switch}: what it holds back is dropped \
                 there"
            )
        } else if lossless {
            format!(
                "{name} drops packets of class {class} at its queue: RED drops what is not ECN-capable, or the queue's \
                 limit lies below its pause threshold"
            )
        } else {
            format!(
                "{name} drops packets of class {class} at its queue when hosts miss some, and nobody sends pause: RDMA seems to \
                 run in a class that is not lossless, or RED drops what is not ECN-capable before anybody pauses"
            )
        };
        let certainty = match lossless {
            true => Certainty::High,
            // TCP may lose the same packets at the same time.
            false => Certainty::Moderate,
        };
        Some(self.finding(
            Cause::Misconfiguration,
            certainty,
            port,
            LOSES,
            summary,
            evidence,
        ))
    }

    /// Whether the port is paused in a class that its switch pauses for nobody.
    fn obeys_without_protecting(&self, port: PortIndex, class: Class) -> bool {
        let of = |port, counter| self.grown(port, Counter::Class(class, counter));
        let paused = of(port, ClassCounter::PauseReceivedDuration);
        let ports = &self.facts.topology.owner(port).ports;
        let pauses: Vec<f64> = ports
            .iter()
            .filter_map(|&port| of(port, ClassCounter::PauseSent))
            .collect();
        paused.is_some_and(|time| time > 0.0)
            && !pauses.is_empty()
            && pauses.iter().all(|&frames| frames < 1.0)
    }

    /// Neighbours that receive pause frames and do not stop.
    fn deaf_neighbours(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for port in self.facts.topology.port_indices() {
            let Some(peer) = self.facts.topology.peer(port) else {
                continue;
            };
            for class in Class::all() {
                let frames = Counter::Class(class, ClassCounter::PauseReceived);
                let time = Counter::Class(class, ClassCounter::PauseReceivedDuration);
                let (Some(received), Some(held)) =
                    (self.grown(port, frames), self.grown(port, time))
                else {
                    continue;
                };
                if received < NO_CHANCE || held > 0.0 {
                    continue;
                }
                let name = self.facts.topology.port(port).name.clone();
                let by = self.facts.topology.port(peer).name.clone();
                let evidence = vec![
                    self.evidence(
                        port,
                        frames,
                        format!("{received:.0} pause frames came from {by}"),
                    ),
                    self.evidence(port, time, "and it did not stop for any of them".to_owned()),
                ];
                let summary = format!(
                    "{name} does not obey pause frames for priority {class}: PFC is not on there for this priority"
                );
                found.push(self.finding(
                    Cause::Misconfiguration,
                    Certainty::High,
                    port,
                    LOSES,
                    summary,
                    evidence,
                ));
            }
        }
        found
    }

    pub(crate) fn grown(&self, port: PortIndex, counter: Counter) -> Option<f64> {
        self.facts.grown(port, counter, self.whole)
    }

    pub(crate) fn evidence(&self, port: PortIndex, counter: Counter, says: String) -> Evidence {
        Evidence {
            port: self.facts.topology.port(port).name.clone(),
            counter: counter.name(),
            says,
        }
    }

    pub(crate) fn finding(
        &self,
        cause: Cause,
        certainty: Certainty,
        port: PortIndex,
        weight: f64,
        summary: String,
        evidence: Vec<Evidence>,
    ) -> Finding {
        let topology = self.facts.topology;
        let ports = [Some(port), topology.peer(port)];
        Finding {
            cause,
            summary,
            ports: ports
                .into_iter()
                .flatten()
                .map(|port| topology.port(port).name.clone())
                .collect(),
            node: topology.owner(port).name.clone(),
            certainty,
            from: Span::ZERO,
            until: self.whole.length(),
            explains: 0.0,
            evidence,
            trail: Vec::new(),
            confirm: Vec::new(),
            actions: Vec::new(),
            avoid: Vec::new(),
            weight,
            source: Some(port),
        }
    }
}

/// What a port of a switch dropped in one class, without what its PFC watchdog did on purpose.
struct Drops {
    ingress: f64,
    egress: f64,
    /// Of each stretch, whether it dropped any.
    stretches: Vec<bool>,
    /// It dropped at the egress after the watchdog said that all was over, and not before.
    restored: bool,
}

impl Drops {
    fn of(facts: &Facts<'_>, port: PortIndex, class: Class) -> Self {
        let mut drops = Self {
            ingress: 0.0,
            egress: 0.0,
            stretches: Vec::with_capacity(facts.grid.len()),
            restored: false,
        };
        let mut storms_end = false;
        let mut restored = None;
        for &window in &facts.grid {
            let grown = |counter| {
                let counter = Counter::Class(class, counter);
                facts.grown(port, counter, window).unwrap_or(0.0)
            };
            let ingress = grown(ClassCounter::IngressDropped);
            // A watchdog drops what stands in the queue and what comes for it; queues count the former, some also the latter.
            let on_purpose = grown(ClassCounter::WatchdogDropped);
            let egress = (grown(ClassCounter::EgressDropped) - on_purpose).max(0.0);
            // In the stretch in which the storm ends it may have been either.
            if egress > 0.0 {
                restored = Some(restored.unwrap_or(true) && storms_end);
            }
            let begins = grown(ClassCounter::WatchdogStorms) > 0.0;
            storms_end = (storms_end && !begins) || grown(ClassCounter::WatchdogRestored) > 0.0;
            drops.ingress += ingress;
            drops.egress += egress;
            drops.stretches.push(ingress + egress > 0.0);
        }
        drops.restored = restored.unwrap_or(false);
        drops
    }

    /// What share of `suffers`, by stretch, falls into stretches in which something was dropped, or the ones after them: a loss
    /// is noticed a round trip or a timeout later.
    fn share_of(&self, suffers: &[f64]) -> f64 {
        let drops = |stretch: usize| self.stretches.get(stretch).copied().unwrap_or(false);
        let coincides = |stretch: usize| drops(stretch) || stretch > 0 && drops(stretch - 1);
        let inside: f64 = (0..suffers.len())
            .filter(|&stretch| coincides(stretch))
            .map(|stretch| suffers[stretch])
            .sum();
        let all: f64 = suffers.iter().sum();
        if all > 0.0 { inside / all } else { 0.0 }
    }
}

/// One finding for each node: what several of its ports say is one matter.
fn merged(findings: Vec<Finding>) -> Vec<Finding> {
    /// More would only repeat it.
    const MOST_EVIDENCE: usize = 8;
    let mut merged: Vec<Finding> = Vec::new();
    for finding in findings {
        match merged.iter_mut().find(|known| known.node == finding.node) {
            Some(known) => {
                let room = MOST_EVIDENCE.saturating_sub(known.evidence.len());
                known
                    .evidence
                    .extend(finding.evidence.into_iter().take(room));
                known.ports.extend(finding.ports.into_iter().take(1));
            }
            None => merged.push(finding),
        }
    }
    merged
}

/// A small share.
fn percent_fine(share: f64) -> String {
    if share < 0.001 {
        format!("{:.1} of a million", share * 1e6)
    } else {
        percent(share)
    }
}
