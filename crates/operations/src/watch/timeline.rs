//! Findings over time: each look sees them anew, and here they are one thing with a beginning and an end.

use std::cmp::Reverse;

use softfabric_units::Span;

use super::Moment;
use super::ports::{NodeView, PortView, State};
use crate::baseline::Deviation;
use crate::diagnose::{Certainty, Finding};
use crate::history::patience;
use crate::topology::Topology;

/// Something that is or was wrong.
#[derive(Clone, PartialEq, Debug)]
pub struct Episode {
    /// What, as it was seen most clearly.
    pub what: What,
    /// When it was first seen.
    pub since: Moment,
    /// When it was last seen.
    pub until: Moment,
    /// Whether it is over.
    pub has_ended: bool,
    /// How often it was seen.
    pub looks: u64,
    /// Its place among what the last look saw: what matters most first.
    rank: usize,
}

/// What an episode is of.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    /// The diagnosis found it.
    Finding(Finding),
    /// The baseline says that it was otherwise.
    Deviation(Deviation),
}

impl Episode {
    /// In a few words, such as `host storm`.
    pub fn title(&self) -> &str {
        match &self.what {
            What::Finding(finding) => finding.cause.name(),
            What::Deviation(deviation) => deviation.measure.name(),
        }
    }

    /// The node or port at which it is.
    pub fn place(&self) -> &str {
        match &self.what {
            What::Finding(finding) => &finding.node,
            What::Deviation(deviation) => &deviation.place,
        }
    }

    /// As a sentence.
    pub fn summary(&self) -> &str {
        match &self.what {
            What::Finding(finding) => &finding.summary,
            What::Deviation(deviation) => &deviation.summary,
        }
    }

    /// How sure it is.
    pub fn certainty(&self) -> Certainty {
        match &self.what {
            What::Finding(finding) => finding.certainty,
            What::Deviation(deviation) => deviation.certainty,
        }
    }

    /// The finding, if it is one.
    pub fn finding(&self) -> Option<&Finding> {
        match &self.what {
            What::Finding(finding) => Some(finding),
            What::Deviation(_) => None,
        }
    }

    /// What makes it the same episode at the next look.
    fn key(&self) -> (&str, &str) {
        let place = match &self.what {
            What::Finding(finding) => finding.ports.first().unwrap_or(&finding.node),
            What::Deviation(deviation) => &deviation.place,
        };
        (self.title(), place)
    }

    /// Whether another sight of the same is clearer. While it goes on the latest is; what it fades to is not.
    fn is_clearer(&self, than: &Self) -> bool {
        match (&self.what, &than.what) {
            (What::Finding(new), What::Finding(old)) => {
                (new.certainty, new.explains) >= (old.certainty, old.explains * 0.5)
            }
            _ => self.certainty() >= than.certainty(),
        }
    }
}

/// All episodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    /// In the order in which they were first seen.
    episodes: Vec<Episode>,
}

/// So many that ended are remembered.
const REMEMBERED: usize = 200;

impl Timeline {
    /// What goes on first, then the latest.
    pub(super) fn episodes(&self) -> impl Iterator<Item = &Episode> {
        let mut episodes: Vec<&Episode> = self.episodes.iter().collect();
        let rank = |episode: &Episode| match episode.has_ended {
            // Findings before deviations, each in the order of whoever found them.
            false => (episode.finding().is_none(), episode.rank),
            true => (false, 0),
        };
        episodes.sort_by_key(|episode| (episode.has_ended, rank(episode), Reverse(episode.until)));
        episodes.into_iter()
    }

    /// Takes what a look at the time from `from` to `now` has found.
    pub(super) fn take(&mut self, findings: &[Finding], from: Moment, now: Moment, stretch: Span) {
        let seen = findings.iter().enumerate().map(|(rank, finding)| Episode {
            since: from.after(finding.from),
            until: from.after(finding.until).min(now),
            what: What::Finding(finding.clone()),
            has_ended: false,
            looks: 1,
            rank,
        });
        self.see(seen.collect(), now, stretch, |what| {
            matches!(what, What::Finding(_))
        });
    }

    /// Takes what differs from the baseline.
    pub(super) fn deviate(&mut self, deviations: &[Deviation], now: Moment, stretch: Span) {
        let seen = deviations
            .iter()
            .enumerate()
            .map(|(rank, deviation)| Episode {
                since: deviation.since,
                until: now,
                what: What::Deviation(deviation.clone()),
                has_ended: false,
                looks: 1,
                rank,
            });
        self.see(seen.collect(), now, stretch, |what| {
            matches!(what, What::Deviation(_))
        });
    }

    fn see(
        &mut self,
        seen: Vec<Episode>,
        now: Moment,
        stretch: Span,
        is_meant: impl Fn(&What) -> bool,
    ) {
        // What was not seen for longer is over.
        let patience = patience(stretch);
        let mut again = vec![false; self.episodes.len()];
        for mut new in seen {
            let known = self.episodes.iter().rposition(|known| {
                // What ended and comes back much later is another one.
                known.key() == new.key()
                    && (!known.has_ended || new.since <= known.until.after(patience))
            });
            new.has_ended = new.until.after(patience) < now;
            match known {
                Some(place) if place < again.len() => {
                    again[place] = true;
                    let known = &mut self.episodes[place];
                    known.since = known.since.min(new.since);
                    known.until = known.until.max(new.until);
                    known.has_ended = new.has_ended;
                    known.looks += 1;
                    known.rank = new.rank;
                    if new.is_clearer(known) {
                        known.what = new.what;
                    }
                }
                Some(_) => {}
                None => self.episodes.push(new),
            }
        }
        for (known, again) in self.episodes.iter_mut().zip(again) {
            if !again && is_meant(&known.what) {
                known.has_ended = true;
            }
        }
        let mut ended = self.episodes.iter().filter(|known| known.has_ended).count();
        self.episodes.retain(|known| {
            let forget = known.has_ended && ended > REMEMBERED;
            ended -= usize::from(forget);
            !forget
        });
    }

    fn going_on(&self) -> impl Iterator<Item = &Episode> {
        self.episodes.iter().filter(|episode| !episode.has_ended)
    }

    /// Marks the ports at which something goes on.
    pub(super) fn mark(&self, ports: &mut [PortView], topology: &Topology) {
        for episode in self.going_on() {
            match &episode.what {
                What::Finding(finding) => {
                    let source = finding.ports.first();
                    if let Some(port) = source.and_then(|name| topology.find_port(name)) {
                        let port = &mut ports[port.index()];
                        port.state = port.state.max(State::Source);
                    }
                }
                What::Deviation(deviation) => {
                    if let Some(port) = topology.find_port(&deviation.place) {
                        let port = &mut ports[port.index()];
                        port.state = port.state.max(State::Deviates);
                    }
                }
            }
        }
    }

    /// Marks the nodes at which something goes on.
    pub(super) fn mark_nodes(&self, nodes: &mut [NodeView]) {
        for episode in self.going_on() {
            let (name, state) = match &episode.what {
                What::Finding(finding) => (&finding.node, State::Source),
                What::Deviation(deviation) => (&deviation.node, State::Deviates),
            };
            for node in nodes.iter_mut().filter(|node| node.name == *name) {
                node.state = node.state.max(state);
            }
        }
    }
}
