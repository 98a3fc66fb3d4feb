//! What is wrong at the end of a trail.

use softfabric_telemetry::{ClassCounter, Counter, PortCounter};
use softfabric_units::Span;

use super::facts::Facts;
use super::roots::{Root, View};
use super::trace::End;
use super::{Cause, Certainty, Evidence, Finding, Lane, since_start, watchdog};
use crate::history::Window;
use crate::topology::{LinkLayer, NodeKind, PortIndex};

/// Held for this share of the time, a port is held for good.
const FOR_GOOD: f64 = 0.9;
/// Of the last stretches of a circle, its ports are held for this share: all of the time, less what late samples hide.
const LOCKED: f64 = 0.8;
/// So many of the last stretches of a circle are looked at together.
const STAYS: usize = 3;
/// A port that moves less than this share of its rate moves next to nothing.
const NEXT_TO_NOTHING: f64 = 0.02;
/// A NIC that is slow takes its pause back when it has room. One that is broken lets pause after pause run on: a pause
/// lasts for many times what a single frame can ask for.
const REFRESHED: u64 = 4;
/// Of several equal ways, one is overloaded and the others are used less than this part of it: balancing failed.
const UNEVEN: f64 = 0.75;
/// All equal ways together have room for everything, if balanced, below this use.
const ROOM: f64 = 0.9;

/// One finding for each end that tells enough.
pub(crate) fn judge(facts: &Facts<'_>, view: &View, whole: Window) -> Vec<Finding> {
    let judge = Judge { facts, view, whole };
    let roots = view.roots.iter();
    roots.filter_map(|root| judge.root(root)).collect()
}

struct Judge<'a> {
    facts: &'a Facts<'a>,
    view: &'a View,
    whole: Window,
}

impl Judge<'_> {
    fn root(&self, root: &Root) -> Option<Finding> {
        match &root.end {
            End::Host(port) => Some(self.host(root, *port)),
            End::Busy(port) => Some(self.busy(root, *port)),
            End::Nothing(port) => Some(self.pauses_for_nothing(root, *port)),
            End::Circle(ports) => self.circle(root, ports),
            // Where the trail is lost, there is no finding; the verdict knows.
            End::Unseen(_) => None,
        }
    }

    /// A host holds its switch.
    fn host(&self, root: &Root, port: PortIndex) -> Finding {
        let facts = self.facts;
        let held = self.mean(&root.core, |w| facts.held(port, root.lane, w));
        let busy = self.mean(&root.core, |w| facts.busy(port, w));
        let pause = facts.mean_pause(port, root.lane, &root.core);
        let longest = facts.longest_pause(port);
        let refreshed = pause
            .zip(longest)
            .map(|(pause, longest)| pause >= longest * REFRESHED);
        let stuck =
            held.is_some_and(|h| h >= FOR_GOOD) && busy.is_none_or(|b| b <= NEXT_TO_NOTHING);
        let watched = match root.lane {
            Lane::Priority(class) => {
                let storms = Counter::Class(class, ClassCounter::WatchdogStorms);
                facts.grown(port, storms, self.whole)
            }
            Lane::Credit => None,
        };
        let watchdog_spoke = watched.is_some_and(|storms| storms >= 1.0);
        let (cause, certainty) = match refreshed {
            // Since the watchdog drops, nothing waits, and pauses come as if they were taken back.
            _ if watchdog_spoke => (Cause::HostStorm, Certainty::High),
            Some(true) => (Cause::HostStorm, Certainty::High),
            Some(false) => (Cause::SlowReceiver, Certainty::High),
            None if stuck => (Cause::HostStorm, Certainty::High),
            None if busy.is_some() && held.is_some() => (Cause::SlowReceiver, Certainty::High),
            None => (Cause::SlowReceiver, Certainty::Moderate),
        };
        let mut evidence = vec![self.held_evidence(port, root, &root.core, held)];
        if let (Some(storms), Lane::Priority(class)) =
            (watched.filter(|_| watchdog_spoke), root.lane)
        {
            let counter = Counter::Class(class, ClassCounter::WatchdogStorms);
            let says = format!("its PFC watchdog called the queue stormed, times: {storms:.0}");
            evidence.push(self.evidence(port, counter, says));
        }
        if let Some(pause) = pause.filter(|_| !watchdog_spoke) {
            let says = match (cause, longest) {
                (Cause::HostStorm, Some(longest)) => format!(
                    "one pause lasts {pause} on average; a single frame can ask for {longest} at most, so pauses \
                     follow each other without a resume"
                ),
                _ => format!("one pause lasts {pause} on average: the host takes its pauses back"),
            };
            evidence.push(self.evidence(port, self.transitions(root.lane), says));
        }
        if let Some(busy) = busy {
            let says = format!("{} of the rate goes to the host meanwhile", percent(busy));
            evidence.push(self.busy_evidence(port, &root.core, says));
        }
        if let (Cause::HostStorm, Lane::Priority(class)) = (cause, root.lane)
            && let Some(other) = watchdog::missed_beside(facts, port, class, self.whole)
        {
            let says = format!(
                "the PFC watchdog has not noticed this one, although it has one at {}: is its state kept for each port?",
                facts.topology.port(other).name
            );
            let storms = Counter::Class(class, ClassCounter::WatchdogStorms);
            evidence.push(self.evidence(port, storms, says));
        }
        let host = self.host_name(port);
        let summary = match (cause, root.lane) {
            (Cause::HostStorm, Lane::Priority(class)) => format!(
                "{host} sends pause frames for priority {class} without end and takes next to nothing: a broken NIC or \
                 a hung host"
            ),
            (Cause::HostStorm, Lane::Credit) => {
                format!("{host} gives no credit: a broken adapter or a hung host")
            }
            _ => format!("{host} takes less than arrives: a slow receiver"),
        };
        self.finding(cause, certainty, root, port, summary, evidence)
    }

    /// A port sends all the time, and more is to go by it.
    fn busy(&self, root: &Root, port: PortIndex) -> Finding {
        let facts = self.facts;
        let topology = facts.topology;
        let busy = self
            .mean(&root.core, |w| facts.busy(port, w))
            .unwrap_or(0.0);
        let name = topology.port(port).name.clone();
        let says = format!(
            "{name} sends at {} of its rate, and nothing holds it",
            percent(busy)
        );
        let mut evidence = vec![self.busy_evidence(port, &root.core, says)];
        let marks = facts.over_classes(port, ClassCounter::EcnMarked, &root.core);
        let elsewhere = || {
            topology.port_indices().any(|other| {
                topology.port(other).node != topology.port(port).node
                    && facts
                        .over_classes(other, ClassCounter::EcnMarked, &root.core)
                        .is_some_and(|marks| marks >= 1.0)
            })
        };
        if let Some(marks) = marks.filter(|&marks| marks >= 1.0) {
            let says = format!("{marks:.0} packets were marked: packets stand in its queue");
            evidence.push(self.evidence(port, self.marks(root.lane), says));
        }
        if let Some(down) = self.failed_beside(port, &root.seen) {
            let cable = self.cable(down);
            let says =
                format!("the cable {cable} is or was down, and its traffic crowds onto {name}");
            evidence.insert(
                0,
                self.evidence(down, Counter::Port(PortCounter::LinkDowned), says),
            );
            let summary = format!("the cable {cable} failed; what it carried overloads {name}");
            return self.finding(
                Cause::FailedLink,
                Certainty::High,
                root,
                down,
                summary,
                evidence,
            );
        }
        if let Some((others, use_of_others)) = self.unused_alternatives(port, busy, &root.core) {
            let names: Vec<&str> = others
                .iter()
                .map(|&p| topology.port(p).name.as_str())
                .collect();
            let says = format!(
                "{} lead to the same places and are used at {}",
                names.join(", "),
                percent(use_of_others)
            );
            evidence.push(self.busy_evidence(others[0], &root.core, says));
            let summary = format!(
                "load balancing puts too much on {name} while equal ways ({}) have room",
                names.join(", ")
            );
            return self.finding(
                Cause::HashCollision,
                Certainty::High,
                root,
                port,
                summary,
                evidence,
            );
        }
        // Neither this port nor any other of its switch, as far as they are heard.
        let never_marks = marks == Some(0.0)
            && topology.owner(port).ports.iter().all(|&sibling| {
                facts
                    .over_classes(sibling, ClassCounter::EcnMarked, &[self.whole])
                    .is_none_or(|marks| marks < 1.0)
            });
        if never_marks && elsewhere() {
            let says = "no packet was marked here, while other switches mark: senders are never told to slow down, \
                        and only pauses stop them";
            evidence.push(self.evidence(port, self.marks(root.lane), says.to_owned()));
            let summary = format!(
                "{} pauses its neighbours before ECN marks anything at {name}: its thresholds do not fit together",
                topology.owner(port).name
            );
            return self.finding(
                Cause::Misconfiguration,
                Certainty::Moderate,
                root,
                port,
                summary,
                evidence,
            );
        }
        let neighbour = topology.neighbour(port);
        let to = neighbour.map_or("nobody", |node| node.name.as_str());
        let tree = match topology.link_layer {
            LinkLayer::Ethernet => "incast",
            LinkLayer::Infiniband => "a congestion tree with its root here",
        };
        let summary = format!("more is sent to {to} than {name} can carry: {tree}");
        self.finding(
            Cause::Incast,
            Certainty::High,
            root,
            port,
            summary,
            evidence,
        )
    }

    /// A switch holds its neighbour although none of its own ports is a reason to.
    fn pauses_for_nothing(&self, root: &Root, port: PortIndex) -> Finding {
        let facts = self.facts;
        let held = self.mean(&root.core, |w| facts.held(port, root.lane, w));
        let evidence = vec![self.held_evidence(port, root, &root.core, held)];
        let switch = self.host_name(port);
        let summary = format!(
            "{switch} holds {} although none of its own ports is held or busy: its thresholds or buffers are wrong, or \
             it is broken",
            facts.topology.port(port).name
        );
        let cause = Cause::Misconfiguration;
        let mut finding = self.finding(cause, Certainty::Moderate, root, port, summary, evidence);
        // What has a reason elsewhere goes first: late samples may hide one here.
        finding.weight = 1.0 + root.share;
        finding
    }

    /// Ports wait for each other in a circle. A deadlock only if nothing at all moves.
    fn circle(&self, root: &Root, ports: &[PortIndex]) -> Option<Finding> {
        let facts = self.facts;
        // A circle closes some time: only the last stretches in which all its ports were heard show it as it stays, and
        // several of them even out samples that were late.
        let tells = |port: PortIndex| {
            let mut seen = root.seen.iter();
            seen.any(|&window| facts.held(port, root.lane, window).is_some())
        };
        let told = |window: &&Window| {
            let mut ports = ports.iter().filter(|&&port| tells(port));
            ports.all(|&port| facts.held(port, root.lane, **window).is_some())
        };
        // Of ports that tell nothing, at least their neighbours must say that nothing moves; most must tell.
        if ports.iter().filter(|&&port| tells(port)).count() * 2 < ports.len() {
            return None;
        }
        let last: Vec<Window> = root
            .seen
            .iter()
            .rev()
            .filter(told)
            .take(STAYS)
            .copied()
            .collect();
        let last = [Window {
            from: last.last()?.from,
            to: last.first()?.to,
        }];
        let mut evidence = Vec::new();
        for &port in ports {
            let held = self.mean(&last, |w| facts.held(port, root.lane, w));
            let busy = self.mean(&last, |w| facts.busy(port, w)).unwrap_or(0.0);
            if held.is_some_and(|held| held < LOCKED) || busy > NEXT_TO_NOTHING {
                return None;
            }
            evidence.push(self.held_evidence(port, root, &last, held));
        }
        let first = *ports.first()?;
        let names: Vec<&str> = ports
            .iter()
            .map(|&port| facts.topology.port(port).name.as_str())
            .collect();
        let what = match root.lane {
            Lane::Priority(class) => format!("a deadlock of priority {class}"),
            Lane::Credit => "a credit loop".to_owned(),
        };
        let summary = format!(
            "{} wait for each other in a circle and nothing moves: {what}",
            names.join(", ")
        );
        let cause = Cause::Deadlock;
        let mut finding = self.finding(cause, Certainty::High, root, first, summary, evidence);
        finding.ports = names.into_iter().map(str::to_owned).collect();
        Some(finding)
    }

    /// A cable that is down and would be another way for what crowds onto `port`: at the switch of either end, or farther
    /// on behind a port that would be an alternative.
    fn failed_beside(&self, port: PortIndex, windows: &[Window]) -> Option<PortIndex> {
        let topology = self.facts.topology;
        let peer = topology.peer(port);
        let down = |way: PortIndex| windows.iter().any(|&w| self.facts.was_down(way, w));
        let between_switches = |way: PortIndex| {
            topology
                .neighbour(way)
                .is_some_and(|node| node.kind == NodeKind::Switch)
        };
        let beside = [Some(port), peer].into_iter().flatten();
        let at_either_end = beside
            .filter(|&end| topology.owner(end).kind == NodeKind::Switch)
            .flat_map(|end| topology.owner(end).ports.iter().copied())
            .filter(|&way| way != port && Some(way) != peer)
            .filter(|&way| between_switches(way) && down(way))
            .min();
        at_either_end.or_else(|| {
            let all = topology.alternatives(port, &|_| true);
            let left = topology.alternatives(port, &|way| !down(way));
            let lost = all.into_iter().filter(|way| !left.contains(way));
            lost.filter_map(|way| topology.neighbour(way))
                .flat_map(|node| node.ports.iter().copied())
                .find(|&way| between_switches(way) && down(way))
        })
    }

    /// Ports that lead to the same places and are used less, if all of them together could carry everything.
    fn unused_alternatives(
        &self,
        port: PortIndex,
        busy: f64,
        windows: &[Window],
    ) -> Option<(Vec<PortIndex>, f64)> {
        let down = |way: PortIndex| windows.iter().any(|&w| self.facts.was_down(way, w));
        let others = self.facts.topology.alternatives(port, &|way| !down(way));
        let uses: Vec<f64> = others
            .iter()
            .filter_map(|&other| self.mean(windows, |w| self.facts.busy(other, w)))
            .collect();
        if uses.is_empty() || uses.len() < others.len() {
            return None;
        }
        let mean = uses.iter().sum::<f64>() / uses.len() as f64;
        let all = (uses.iter().sum::<f64>() + busy) / (uses.len() + 1) as f64;
        (mean <= busy * UNEVEN && all <= ROOM).then_some((others, mean))
    }

    fn finding(
        &self,
        cause: Cause,
        certainty: Certainty,
        root: &Root,
        source: PortIndex,
        summary: String,
        evidence: Vec<Evidence>,
    ) -> Finding {
        let topology = self.facts.topology;
        let at_host = matches!(root.end, End::Host(_));
        let there = topology.peer(source);
        let node = match there {
            Some(there) if at_host || matches!(root.end, End::Nothing(_)) => topology.owner(there),
            _ => topology.owner(source),
        };
        // A host's own port is the source; the switch's port shows it.
        let first = if at_host {
            there.unwrap_or(source)
        } else {
            source
        };
        let second = if at_host { Some(source) } else { there };
        let ports = [Some(first), second].into_iter().flatten();
        let (from, until) = match (root.seen.first(), root.seen.last()) {
            (Some(first), Some(last)) => (
                since_start(self.whole, first.from),
                since_start(self.whole, last.to),
            ),
            _ => (Span::ZERO, Span::ZERO),
        };
        Finding {
            cause,
            summary,
            ports: ports.map(|port| topology.port(port).name.clone()).collect(),
            node: node.name.clone(),
            certainty,
            from,
            until,
            explains: root.share,
            evidence,
            trail: self.view.trail(self.facts, root),
            confirm: Vec::new(),
            actions: Vec::new(),
            avoid: Vec::new(),
            weight: weight(cause, root.share),
            source: Some(source),
        }
    }

    fn mean(&self, windows: &[Window], value: impl Fn(Window) -> Option<f64>) -> Option<f64> {
        let known: Vec<f64> = windows.iter().filter_map(|&window| value(window)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }

    /// The counter that tells for how long the port is held: its own, or that of the other end where only that was heard.
    fn held_evidence(
        &self,
        port: PortIndex,
        root: &Root,
        windows: &[Window],
        held: Option<f64>,
    ) -> Evidence {
        let topology = self.facts.topology;
        let name = &topology.port(port).name;
        let by = topology.peer(port).map_or_else(
            || "the other end".to_owned(),
            |peer| topology.port(peer).name.clone(),
        );
        let held = held.map_or_else(|| "an unknown share".to_owned(), percent);
        let (usual, says) = match root.lane {
            Lane::Priority(class) => (
                Counter::Class(class, ClassCounter::PauseReceivedDuration),
                format!("{by} holds {name} for {held} of the time"),
            ),
            Lane::Credit => (
                Counter::Port(PortCounter::TransmitWait),
                format!("{name} waits for credit of {by} for {held} of the time"),
            ),
        };
        let told = windows
            .iter()
            .find_map(|&window| self.facts.held_told(port, root.lane, window));
        let (port, counter) = told.map_or((port, usual), |told| (told.port, told.counter));
        self.evidence(port, counter, says)
    }

    /// The counter that tells how much the port sends: its own, or that of the other end where only that was heard.
    fn busy_evidence(&self, port: PortIndex, windows: &[Window], says: String) -> Evidence {
        let told = windows
            .iter()
            .find_map(|&window| self.facts.busy_told(port, window));
        let usual = (port, Counter::Port(PortCounter::TransmitBytes));
        let (port, counter) = told.map_or(usual, |told| (told.port, told.counter));
        self.evidence(port, counter, says)
    }

    fn evidence(&self, port: PortIndex, counter: Counter, says: String) -> Evidence {
        Evidence {
            port: self.facts.topology.port(port).name.clone(),
            counter: counter.name(),
            says,
        }
    }

    fn transitions(&self, lane: Lane) -> Counter {
        match lane {
            Lane::Priority(class) => Counter::Class(class, ClassCounter::PauseTransitions),
            Lane::Credit => Counter::Port(PortCounter::TransmitWait),
        }
    }

    fn marks(&self, lane: Lane) -> Counter {
        match lane {
            Lane::Priority(class) => Counter::Class(class, ClassCounter::EcnMarked),
            Lane::Credit => Counter::Port(PortCounter::FecnReceived),
        }
    }

    /// The node at the other end of the port.
    fn host_name(&self, port: PortIndex) -> String {
        let neighbour = self.facts.topology.neighbour(port);
        neighbour.map_or_else(|| "nobody".to_owned(), |node| node.name.clone())
    }

    fn cable(&self, port: PortIndex) -> String {
        cable(self.facts, port)
    }
}

/// How much a finding matters: what stops everybody first, then faults, then what is merely too much traffic; among these
/// what explains the most waiting.
fn weight(cause: Cause, explains: f64) -> f64 {
    match cause {
        Cause::Deadlock | Cause::HostStorm => 3.0 + explains,
        Cause::SlowReceiver | Cause::Misconfiguration | Cause::FailedLink | Cause::DegradedLink => {
            2.0 + explains
        }
        // Nothing is broken; yet a collision can be helped.
        Cause::HashCollision => 1.5 + explains,
        Cause::Incast => 1.0 + explains,
    }
}

/// The names of both ends.
pub(crate) fn cable(facts: &Facts<'_>, port: PortIndex) -> String {
    let topology = facts.topology;
    let here = &topology.port(port).name;
    match topology.peer(port) {
        Some(peer) => format!("{here} – {}", topology.port(peer).name),
        None => here.clone(),
    }
}

/// A share for people.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        none if none < 0.05 => "0 %".to_owned(),
        few if few < 10.0 => format!("{few:.1} %"),
        many => format!("{many:.0} %"),
    }
}
