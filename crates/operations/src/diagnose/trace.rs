//! Who holds whom, followed to its end, for one stretch of time and one lane.
//!
//! ```text
//! h3 ──held──► leaf0 ──held──► spine1 ──held──► leaf1 ──held──► h15     ends at a host that takes too little
//!                                               leaf1 ──busy──► h15     ends at a port that sends all the time
//! ```
//!
//! A switch holds an ingress port when packets that came in by it cannot leave. Counters do not say by which egress port
//! those packets want to leave, so the blame is split over all that can be the reason: those that are held themselves,
//! as much as they are held, and those that send all the time and are not held. Following the shares through the fabric
//! until none is under way any more says how much of all the waiting each end explains. What never ends goes round in a
//! circle.

use std::collections::BTreeMap;

use softfabric_telemetry::ClassCounter;

use super::Lane;
use super::facts::Facts;
use crate::history::Window;
use crate::topology::{NodeIndex, NodeKind, PortIndex};

/// Held for less than this share of the time is not worth a question.
pub(crate) const HELD: f64 = 0.05;
/// A port that sends or is held for this share of the time always has something to send.
const ALWAYS_BUSY: f64 = 0.85;
/// A port that is held for longer than this is no end of a trail, but a step of it.
const STEP: f64 = 0.10;
/// Of the blame, what a port without a sign of a queue gets.
const WITHOUT_QUEUE: f64 = 0.05;
/// Of the blame, what a port gets that does not tell of queues.
const QUEUE_UNKNOWN: f64 = 0.5;

/// Where a trail ends. Ports are egress ports: each names a direction of a cable.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum End {
    /// The host at the other end of this port does not take what it gets.
    Host(PortIndex),
    /// This port sends all the time, and more is to go by it.
    Busy(PortIndex),
    /// The switch at the other end holds this port, and none of its own ports is a reason to.
    Nothing(PortIndex),
    /// The switch at the other end holds this port, and some of its ports were not heard.
    Unseen(PortIndex),
    /// Each of these waits for the next, and the last for the first.
    Circle(Vec<PortIndex>),
}

/// What one stretch of time shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// Directions that are held, with the share of the time.
    pub(crate) held: BTreeMap<PortIndex, f64>,
    /// For each of them, what it waits for, with its share of the blame.
    pub(crate) reasons: BTreeMap<PortIndex, Vec<(Reason, f64)>>,
    /// How much of all waiting each end explains, in ports.
    pub(crate) ends: BTreeMap<End, f64>,
}

/// Why a direction is held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// Another one is held.
    Held(PortIndex),
    /// The trail ends.
    End(End),
}

/// Follows all that is held in `lane` during `window`; `candidates` are the ports that may be.
pub(crate) fn trace(
    facts: &Facts<'_>,
    lane: Lane,
    candidates: &[PortIndex],
    window: Window,
) -> Trace {
    let held: BTreeMap<PortIndex, f64> = candidates
        .iter()
        .filter_map(|&port| Some((port, facts.held(port, lane, window)?)))
        .filter(|&(_, share)| share >= HELD)
        .collect();
    let mut search = Search {
        facts,
        lane,
        window,
        assumed: BTreeMap::new(),
        marking: BTreeMap::new(),
        ways: vec![None; facts.topology.ports().len()],
    };
    let mut reasons: BTreeMap<PortIndex, Vec<(Reason, f64)>> = held
        .iter()
        .map(|(&port, &share)| (port, search.reasons(port, share)))
        .collect();
    reasons.extend(
        search
            .assumed
            .into_iter()
            .filter_map(|(port, r)| Some((port, r?))),
    );
    let ends = follow(&held, &reasons);
    Trace {
        held,
        reasons,
        ends,
    }
}

/// The search for reasons in one stretch and lane.
struct Search<'a> {
    facts: &'a Facts<'a>,
    lane: Lane,
    window: Window,
    /// Ports of which is not known whether they are held, with what they would wait for; `None` where that leads nowhere.
    assumed: BTreeMap<PortIndex, Option<Vec<(Reason, f64)>>>,
    /// Whether any port of a switch marks.
    marking: BTreeMap<NodeIndex, bool>,
    /// What was asked of a port already: each port of a switch may be the reason for all others.
    ways: Vec<Option<Way>>,
}

/// A port by which packets may want to leave.
#[derive(Clone, Copy)]
struct Way {
    held: Option<f64>,
    busy: Option<f64>,
    /// How much it looks as if packets stood in its queue.
    sign: Option<f64>,
}

impl Search<'_> {
    /// What `port`, held for this share of the time, waits for: reasons whose shares add to one.
    fn reasons(&mut self, port: PortIndex, share: f64) -> Vec<(Reason, f64)> {
        let facts = self.facts;
        let Some(peer) = facts.topology.peer(port) else {
            return vec![(Reason::End(End::Unseen(port)), 1.0)];
        };
        let holder = facts.topology.owner(peer);
        if holder.kind == NodeKind::Host {
            return vec![(Reason::End(End::Host(port)), 1.0)];
        }
        let mut found = Vec::new();
        let mut busiest: Option<(f64, PortIndex)> = None;
        let mut unknown = Vec::new();
        for &way in holder.ports.iter().filter(|&&way| way != peer) {
            let Way {
                held: way_held,
                busy,
                ..
            } = self.way(way);
            if let Some(way_held) = way_held.filter(|&share| share >= STEP) {
                found.push((Reason::Held(way), way_held));
                continue;
            }
            // Whatever the reason is, it must have been busy whenever it made the switch hold others.
            match (busy, way_held) {
                (Some(busy), Some(way_held)) if busy + way_held >= ALWAYS_BUSY => {
                    found.push((Reason::End(End::Busy(way)), busy * self.queue_sign(way)));
                }
                (Some(busy), None) if busy >= ALWAYS_BUSY => {
                    found.push((Reason::End(End::Busy(way)), busy * self.queue_sign(way)));
                }
                (Some(busy), Some(way_held)) => {
                    let enough = busy + way_held >= share * 0.9
                        && busiest.is_none_or(|(most, _)| busy > most);
                    if enough && self.queue_sign(way) > WITHOUT_QUEUE {
                        busiest = Some((busy, way));
                    }
                }
                (_, None) | (None, _) if facts.topology.peer(way).is_some() => unknown.push(way),
                _ => {}
            }
        }
        if found.is_empty() {
            let lead_on = unknown.iter().filter(|&&way| self.leads_on(way, share));
            found = lead_on.map(|&way| (Reason::Held(way), 1.0)).collect();
        }
        if found.is_empty() {
            let end = match (unknown.as_slice(), busiest) {
                // All others are no reason, and this one leads to a host and is not full.
                (&[way], None) if self.leads_to_host(way) && self.way(way).busy.is_some() => {
                    End::Host(way)
                }
                ([], Some((_, way))) => End::Busy(way),
                ([], None) => End::Nothing(port),
                _ => End::Unseen(port),
            };
            found.push((Reason::End(end), 1.0));
        }
        let total: f64 = found.iter().map(|(_, weight)| weight).sum();
        for (_, weight) in &mut found {
            *weight /= total;
        }
        found
    }

    fn way(&mut self, way: PortIndex) -> Way {
        let (facts, lane, window) = (self.facts, self.lane, self.window);
        *self.ways[way.index()].get_or_insert_with(|| Way {
            held: facts.held(way, lane, window),
            busy: facts.busy(way, window),
            sign: None,
        })
    }

    /// How much the port looks as if packets stood in its queue: ECN marks are the sign, where queues are marked at all.
    fn queue_sign(&mut self, port: PortIndex) -> f64 {
        if let Some(Way {
            sign: Some(sign), ..
        }) = self.ways[port.index()]
        {
            return sign;
        }
        let sign = self.new_queue_sign(port);
        if let Some(way) = &mut self.ways[port.index()] {
            way.sign = Some(sign);
        }
        sign
    }

    fn new_queue_sign(&mut self, port: PortIndex) -> f64 {
        let (facts, window) = (self.facts, self.window);
        let marks = |port| facts.over_classes(port, ClassCounter::EcnMarked, &[window]);
        match marks(port) {
            Some(own) if own >= 1.0 => 1.0,
            Some(_) => {
                // Another port of the same switch marks, so this one would.
                let node = facts.topology.port(port).node;
                let others = self.marking.entry(node).or_insert_with(|| {
                    let mut ports = facts.topology.node(node).ports.iter();
                    ports.any(|&other| marks(other).is_some_and(|marks| marks >= 1.0))
                });
                if *others {
                    WITHOUT_QUEUE
                } else {
                    QUEUE_UNKNOWN
                }
            }
            None => QUEUE_UNKNOWN,
        }
    }

    fn leads_to_host(&self, way: PortIndex) -> bool {
        let neighbour = self.facts.topology.neighbour(way);
        neighbour.is_some_and(|node| node.kind == NodeKind::Host)
    }

    /// Whether a port of which is not known whether it is held would be held for a reason that can be seen.
    fn leads_on(&mut self, way: PortIndex, share: f64) -> bool {
        if let Some(known) = self.assumed.get(&way) {
            return known.is_some();
        }
        // Whoever comes back here meanwhile goes in a circle.
        self.assumed.insert(way, None);
        let reasons = self.reasons(way, share);
        let certain = reasons.iter().any(|(reason, _)| match reason {
            Reason::Held(_) | Reason::End(End::Busy(_)) => true,
            // That a host holds it is just what is not known.
            Reason::End(_) => false,
        });
        if certain {
            self.assumed.insert(way, Some(reasons));
        }
        certain
    }
}

/// Lets every held port's waiting flow along the reasons until all of it is at an end.
fn follow(
    held: &BTreeMap<PortIndex, f64>,
    reasons: &BTreeMap<PortIndex, Vec<(Reason, f64)>>,
) -> BTreeMap<End, f64> {
    let mut ends: BTreeMap<End, f64> = BTreeMap::new();
    let finite = with_an_end(reasons);
    for port in held.keys().filter(|port| !finite.contains_key(port)) {
        *ends
            .entry(End::Circle(circle_from(*port, reasons)))
            .or_default() += held[port];
    }
    let mut moving: BTreeMap<PortIndex, f64> = held.clone();
    moving.retain(|port, _| finite.contains_key(port));
    let total: f64 = moving.values().sum();
    // Each round leaves less under way, or all of it has arrived.
    for _ in 0..1_000 {
        let mut next: BTreeMap<PortIndex, f64> = BTreeMap::new();
        for (port, mass) in &moving {
            for (reason, weight) in reasons.get(port).into_iter().flatten() {
                match reason {
                    Reason::Held(way) if finite.contains_key(way) => {
                        *next.entry(*way).or_default() += mass * weight;
                    }
                    // What waits for a circle as well as for an end: the circle is counted with its own ports.
                    Reason::Held(way) => {
                        let circle = End::Circle(circle_from(*way, reasons));
                        *ends.entry(circle).or_default() += mass * weight;
                    }
                    Reason::End(end) => *ends.entry(end.clone()).or_default() += mass * weight,
                }
            }
        }
        moving = next;
        if moving.values().sum::<f64>() < total * 1e-4 {
            break;
        }
    }
    ends
}

/// The ports from which an end can be reached.
fn with_an_end(reasons: &BTreeMap<PortIndex, Vec<(Reason, f64)>>) -> BTreeMap<PortIndex, ()> {
    let mut waiters: BTreeMap<PortIndex, Vec<PortIndex>> = BTreeMap::new();
    let mut found: BTreeMap<PortIndex, ()> = BTreeMap::new();
    let mut open = Vec::new();
    for (&port, reasons) in reasons {
        for (reason, _) in reasons {
            match reason {
                Reason::Held(way) => waiters.entry(*way).or_default().push(port),
                Reason::End(_) => {
                    if found.insert(port, ()).is_none() {
                        open.push(port);
                    }
                }
            }
        }
    }
    while let Some(port) = open.pop() {
        for &waiter in waiters.get(&port).into_iter().flatten() {
            if found.insert(waiter, ()).is_none() {
                open.push(waiter);
            }
        }
    }
    found
}

/// The circle to which the strongest reasons lead from `port`, beginning with its first port.
fn circle_from(
    port: PortIndex,
    reasons: &BTreeMap<PortIndex, Vec<(Reason, f64)>>,
) -> Vec<PortIndex> {
    let strongest = |port: PortIndex| {
        let ways = reasons[&port]
            .iter()
            .filter_map(|(reason, weight)| match reason {
                Reason::Held(way) => Some((*way, *weight)),
                Reason::End(_) => None,
            });
        // The first of equals.
        ways.reduce(|best, next| if next.1 > best.1 { next } else { best })
            .map(|(way, _)| way)
    };
    let mut walk = vec![port];
    loop {
        let Some(next) = strongest(walk[walk.len() - 1]) else {
            return Vec::new();
        };
        if let Some(start) = walk.iter().position(|&known| known == next) {
            let mut circle = walk.split_off(start);
            let least = (0..circle.len()).min_by_key(|&i| circle[i]).unwrap_or(0);
            circle.rotate_left(least);
            return circle;
        }
        walk.push(next);
    }
}
