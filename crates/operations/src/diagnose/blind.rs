//! What cannot be seen although ports are heard: for how long they are held.
//!
//! An all-clear needs counters that would have shown the trouble. Ports may tell bytes and no pauses (files of `/sys` without
//! `ethtool`), pause frames and not how long they held (many switches), or a counter of waiting that has reached its end and
//! stays there (InfiniBand's 32 bits of PortXmitWait). Frames alone are weak: between none and the longest pause for each.

use softfabric_telemetry::{ClassCounter, Counter, PortCounter};
use softfabric_units::Class;

use super::facts::Facts;
use super::judge::percent;
use super::roots::TOO_LITTLE;
use crate::history::Window;
use crate::topology::{LinkLayer, NodeKind, PortIndex};

/// If more than this share of the directions says nothing, nothing is said of the fabric.
const TOO_MANY: f64 = 0.3;

/// Directions of cables, by what is known of their waiting. Each is named by its egress port.
pub(crate) struct Blind {
    /// Those of which at least one end was heard.
    directions: usize,
    /// Of these ones no counter of pauses or of waiting is told.
    untold: Vec<PortIndex>,
    /// Of these ones only frames are told, and enough of them to hold for long.
    frames_only: Vec<FramesOnly>,
    /// Those that were held for a time that is known, however short.
    paused: usize,
}

struct FramesOnly {
    port: PortIndex,
    counter: Counter,
    frames: f64,
}

/// Looks for directions of which nobody knows how long they were held. `None` if these are too few to matter.
pub(crate) fn blind(facts: &Facts<'_>, whole: Window) -> Option<Blind> {
    let mut blind = Blind {
        directions: 0,
        untold: Vec::new(),
        frames_only: Vec::new(),
        paused: 0,
    };
    for egress in facts.topology.port_indices() {
        let Some(peer) = facts.topology.peer(egress) else {
            continue;
        };
        if !facts.is_heard(egress, whole) && !facts.is_heard(peer, whole) {
            continue;
        }
        blind.directions += 1;
        match facts.topology.link_layer {
            LinkLayer::Ethernet => blind.pauses_of(facts, egress, peer, whole),
            LinkLayer::Infiniband => {
                // The other end knows nothing of it: credits that are not there are not counted where they come from.
                let wait = Counter::Port(PortCounter::TransmitWait);
                // A silent port is a matter of coverage.
                if facts.grown(egress, wait, whole).is_none() && facts.is_heard(egress, whole) {
                    blind.untold.push(egress);
                }
            }
        }
    }
    let untold = blind.untold.len() as f64 > blind.directions as f64 * TOO_MANY;
    let paused = blind.paused + blind.frames_only.len();
    let frames_only = blind.frames_only.len() as f64 > paused as f64 * TOO_MANY;
    (untold || frames_only).then_some(blind)
}

impl Blind {
    fn pauses_of(&mut self, facts: &Facts<'_>, egress: PortIndex, peer: PortIndex, whole: Window) {
        let mut told = false;
        let mut paused = false;
        let mut worst: Option<FramesOnly> = None;
        // Each priority, and then all of them together, as some drivers count only these.
        let classes = Class::all().map(Some).chain([None]);
        for class in classes {
            if let Some(class) = class {
                let time = [
                    (egress, ClassCounter::PauseReceivedDuration),
                    (peer, ClassCounter::PauseSentDuration),
                ];
                let time = time
                    .into_iter()
                    .find_map(|(port, c)| facts.grown(port, Counter::Class(class, c), whole));
                if let Some(time) = time {
                    told = true;
                    paused |= time > 0.0;
                    continue;
                }
            } else if told || worst.is_some() {
                continue;
            }
            let Some(frames) = facts.pause_frames(egress, class, whole) else {
                continue;
            };
            let most = facts.most_held(egress, frames.value, whole);
            if frames.value < 1.0 || most.is_some_and(|most| most < TOO_LITTLE) {
                told = true;
            } else if worst
                .as_ref()
                .is_none_or(|worst| frames.value > worst.frames)
            {
                worst = Some(FramesOnly {
                    port: frames.port,
                    counter: frames.counter,
                    frames: frames.value,
                });
            }
        }
        match worst {
            None if told => self.paused += usize::from(paused),
            // Its own counters would tell, and were not heard: that is a matter of coverage.
            _ if !facts.is_heard(egress, whole) => {}
            Some(worst) => self.frames_only.push(worst),
            None => self.untold.push(egress),
        }
    }

    /// What is missing, as a sentence.
    pub(crate) fn says(&self, facts: &Facts<'_>, whole: Window) -> String {
        let name = |port: PortIndex| &facts.topology.port(port).name;
        let most = self
            .frames_only
            .iter()
            .max_by(|a, b| a.frames.total_cmp(&b.frames));
        let mut text = match (facts.topology.link_layer, most) {
            (LinkLayer::Ethernet, Some(most)) => {
                let by_priority = match most.counter {
                    Counter::Class(class, _) => Some(class),
                    Counter::Port(_) | Counter::Device(_) => None,
                };
                let priority =
                    by_priority.map_or("N".to_owned(), |class| class.as_u8().to_string());
                format!(
                    "Pause frames were counted, and not for how long they held: {} counted {:.0} ({}), and of {} directions of \
                     cables with so many frames no end tells rx_prio{priority}_pause_duration or \
                     tx_prio{priority}_pause_duration. Frames alone may be anything between a healthy queue and a storm.",
                    name(most.port),
                    most.frames,
                    most.counter,
                    self.frames_only.len(),
                )
            }
            (LinkLayer::Ethernet, None) => format!(
                "Of {} of {} directions of cables no end counts pauses: rx_prioN_pause_duration and tx_prioN_pause_duration \
                 (ethtool -S) are missing.",
                self.untold.len(),
                self.directions
            ),
            (LinkLayer::Infiniband, _) => format!(
                "{} of {} ports do not tell for how long they wait for credit: PortXmitWait is missing, or stands at its largest \
                 value of 32 bits and counts no more until it is reset (perfquery -R).",
                self.untold.len(),
                self.directions
            ),
        };
        text.push_str(&hosts_that_pause(facts, whole));
        text
    }
}

/// Hosts that send pauses themselves, as a sentence; empty without any. A host forwards nothing, so its pauses are never only
/// a symptom.
pub(crate) fn hosts_that_pause(facts: &Facts<'_>, whole: Window) -> String {
    let topology = facts.topology;
    let ports = topology
        .port_indices()
        .filter(|&port| topology.owner(port).kind == NodeKind::Host);
    let mut found: Vec<(f64, String)> = Vec::new();
    for port in ports {
        let name = &topology.port(port).name;
        let sum = |counter| {
            let classes = Class::all().map(|class| Counter::Class(class, counter));
            classes
                .filter_map(|counter| facts.grown(port, counter, whole))
                .reduce(|a, b| a + b)
        };
        let all = || facts.grown(port, Counter::Port(PortCounter::PauseFramesSent), whole);
        if let Some(time) = sum(ClassCounter::PauseSentDuration) {
            let share = time / whole.length().as_picos() as f64;
            if share >= TOO_LITTLE {
                let says = format!("{name} (for {} of the time)", percent(share.min(1.0)));
                found.push((share * 1e12, says));
            }
        } else if let Some(frames) = sum(ClassCounter::PauseSent).or_else(all)
            && frames >= 1.0
        {
            found.push((frames, format!("{name} ({frames:.0} frames)")));
        }
    }
    if found.is_empty() {
        return String::new();
    }
    /// More would not help anybody.
    const NAMED: usize = 5;
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let names: Vec<String> = found
        .into_iter()
        .take(NAMED)
        .map(|(_, says)| says)
        .collect();
    format!(
        " Hosts that send pauses themselves, which are never only symptoms: {}.",
        names.join(", ")
    )
}
