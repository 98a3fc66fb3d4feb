//! The true source of pauses, and not the ports that report them.
//!
//! ```text
//! Facts      what counters say of each direction of each cable, stretch by stretch
//!   └ trace  who holds whom, followed to its ends, for one stretch
//!       └ roots    the same ends over time: when, and how much of all waiting they explain
//!           └ judge    what is wrong at each of them; scan: what else is wrong that holds nobody
//!               └ advice   what would confirm it, what to do, and what that costs
//! ```
//!
//! Waiting and load are shares of time (how long a port was held, how busy it was), never counts of frames, so they are
//! the same for polls of a hundred microseconds and of a minute. Where the counters do not suffice, the verdict is
//! that they do not, and what is missing.

mod advice;
mod blind;
#[cfg(test)]
mod case_tests;
#[cfg(test)]
mod doubt_tests;
pub(crate) mod facts;
mod judge;
mod reach;
mod render;
mod roots;
#[cfg(test)]
pub(crate) mod samples;
mod scan;
#[cfg(test)]
mod tests;
mod trace;
mod watchdog;

use serde::Serialize;
use softfabric_units::{Class, Span, Time};

use self::facts::Facts;
pub(crate) use self::judge::percent;
use crate::history::{History, Window};
use crate::topology::{NodeKind, PortIndex, Topology};

/// What a diagnosis says.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Diagnosis {
    /// The answer.
    pub verdict: Verdict,
    /// The answer as a sentence.
    pub summary: String,
    /// Everything that is wrong: what stops everybody first, then what explains the most waiting.
    pub findings: Vec<Finding>,
    /// Ports that are held back, and only because of something elsewhere; the longest held first.
    pub symptoms: Vec<Symptom>,
    /// Hosts that cannot send as they want to.
    pub victims: Vec<Victim>,
    /// How much was seen.
    pub coverage: Coverage,
}

/// The answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// This is wrong in the fabric or at its edge; there may be more findings than one.
    Cause(Cause),
    /// Nothing in the fabric explains a slow application.
    NotTheFabric,
    /// The counters do not suffice for an answer.
    NotEnoughData,
}

/// What can be wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A host holds its switch for good and takes next to nothing: a broken NIC, a hung host.
    HostStorm,
    /// A host takes less than arrives.
    SlowReceiver,
    /// More is sent to one port than it can carry.
    Incast,
    /// Ports wait for each other in a circle.
    Deadlock,
    /// Settings of switches or hosts do not fit together.
    Misconfiguration,
    /// A cable is or was down.
    FailedLink,
    /// A cable damages packets.
    DegradedLink,
    /// Load balancing put too much on one of several ways.
    HashCollision,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 8] = [
        Self::HostStorm,
        Self::SlowReceiver,
        Self::Incast,
        Self::Deadlock,
        Self::Misconfiguration,
        Self::FailedLink,
        Self::DegradedLink,
        Self::HashCollision,
    ];

    /// Its name in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HostStorm => "host storm",
            Self::SlowReceiver => "slow receiver",
            Self::Incast => "incast",
            Self::Deadlock => "deadlock",
            Self::Misconfiguration => "misconfiguration",
            Self::FailedLink => "failed link",
            Self::DegradedLink => "degraded link",
            Self::HashCollision => "hash collision",
        }
    }
}

impl Verdict {
    /// Its name in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cause(cause) => cause.name(),
            Self::NotTheFabric => "not the fabric",
            Self::NotEnoughData => "not enough data",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// What.
    pub cause: Cause,
    /// What, as a sentence with its place.
    pub summary: String,
    /// The ports at which it is: the source's own port first.
    pub ports: Vec<String>,
    /// The node at which it is.
    pub node: String,
    /// How sure this is.
    pub certainty: Certainty,
    /// When it was first seen, since the first sample.
    pub from: Span,
    /// When it was last seen.
    pub until: Span,
    /// How much of all waiting in the fabric it explains, 0 to 1.
    pub explains: f64,
    /// What counters say.
    pub evidence: Vec<Evidence>,
    /// From a port that only suffers to the source, each waiting for the next.
    pub trail: Vec<Step>,
    /// What would confirm it.
    pub confirm: Vec<String>,
    /// What can be done, the gentlest first.
    pub actions: Vec<Action>,
    /// What looks like a remedy and is none.
    pub avoid: Vec<String>,
    /// How much it matters, for the order of findings.
    #[serde(skip)]
    pub(crate) weight: f64,
    #[serde(skip)]
    pub(crate) source: Option<PortIndex>,
}

/// How sure a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Another cause would leave nearly the same counters.
    Moderate,
    /// Counters tell it from the other causes.
    High,
}

/// A counter that speaks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Evidence {
    /// Of which port.
    pub port: String,
    /// Its name.
    pub counter: String,
    /// What it says, with its meaning.
    pub says: String,
}

/// One step of a trail.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Step {
    /// A port that is held.
    pub port: String,
    /// The port that holds it.
    pub by: String,
    /// For what share of the time.
    pub held: f64,
}

/// Something that can be done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Action {
    /// What.
    pub act: String,
    /// What it costs.
    pub price: String,
}

/// A port that suffers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Symptom {
    /// The port.
    pub port: String,
    /// The port that holds it.
    pub by: String,
    /// For what share of the time, at its worst moment.
    pub held: f64,
}

/// A host that suffers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Victim {
    /// The host.
    pub host: String,
    /// For what share of the time it could not send, at its worst moment.
    pub held: f64,
}

/// How much was seen.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Coverage {
    /// How many ports there are.
    pub ports: usize,
    /// How many of them were heard for most of the time.
    pub heard: usize,
    /// The first of those that were not.
    pub silent: Vec<String>,
    /// Ports that carry something, and of whose cable nobody knows where it leads: the first of them.
    pub uncabled: Vec<String>,
    /// How many those are.
    pub without_cable: usize,
    /// How long the counters were watched.
    pub watched: Span,
    /// The stretches of time that were told apart.
    pub interval: Span,
}

/// What holds a direction back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Lane {
    /// Pause frames of this priority.
    Priority(Class),
    /// InfiniBand's credits, over all lanes: ports count their waiting together.
    Credit,
}

impl Diagnosis {
    /// Time is cut into so many stretches at most.
    pub const MOST_STEPS: u64 = 240;
    /// Without a reason, so much waiting may go without a word: in ports held all the time.
    const MUCH_WAITING: f64 = 0.2;
    /// So many silent ports are named.
    const NAMED_PORTS: usize = 20;
    /// Of all ports, so many must have been heard for an all-clear.
    const ENOUGH_HEARD: f64 = 0.7;
}

/// Says what is wrong, from who is wired to whom and what their counters said.
pub fn diagnose(topology: &Topology, history: &History) -> Diagnosis {
    judge_facts(&Facts::new(topology, history))
}

/// The same, where the facts are known already.
pub(crate) fn judge_facts(facts: &Facts<'_>) -> Diagnosis {
    let topology = facts.topology;
    let Some(whole) = facts.whole() else {
        return nothing_known(topology);
    };
    let coverage = coverage(facts, whole);
    let view = roots::watch(facts);
    let mut findings = judge::judge(facts, &view, whole);
    findings.extend(scan::scan(facts, &findings, whole));
    let mut findings = merged(topology, findings);
    for finding in &mut findings {
        advice::advise(topology, finding);
    }
    findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let sources: Vec<PortIndex> = findings.iter().filter_map(|f| f.source).collect();
    let (symptoms, victims) = sufferers(facts, &view, &sources);
    let unexplained = view.unexplained();
    let blind = blind::blind(facts, whole);
    let verdict = match findings.first() {
        // What is not explained weighs more than what is.
        Some(first) if unexplained.share < 0.5 || first.explains >= unexplained.share => {
            Verdict::Cause(first.cause)
        }
        _ if unexplained.share > 0.0 => Verdict::NotEnoughData,
        Some(first) => Verdict::Cause(first.cause),
        // Many wait, or packets are lost, and nobody knows why.
        None if view.waiting() >= Diagnosis::MUCH_WAITING
            || scan::losses_at_hosts(facts, whole) =>
        {
            Verdict::NotEnoughData
        }
        None if !coverage.is_enough() || blind.is_some() => Verdict::NotEnoughData,
        None => Verdict::NotTheFabric,
    };
    let summary = match verdict {
        Verdict::Cause(_) => findings[0].summary.clone(),
        Verdict::NotTheFabric => advice::all_clear(facts, whole),
        Verdict::NotEnoughData => {
            let lost = scan::losses_at_hosts(facts, whole);
            let waiting = view.waiting();
            match &blind {
                Some(blind)
                    if unexplained.port.is_none()
                        && waiting < Diagnosis::MUCH_WAITING
                        && !lost
                        && coverage.is_enough() =>
                {
                    blind.says(facts, whole)
                }
                _ => advice::too_little(facts, &unexplained, waiting, lost, &coverage, whole),
            }
        }
    };
    Diagnosis {
        verdict,
        summary,
        findings,
        symptoms,
        victims,
        coverage,
    }
}

/// What is wrong with one cable is one finding, whichever direction shows it and however many trails end there.
fn merged(topology: &Topology, findings: Vec<Finding>) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    for finding in findings {
        let same_place = |known: &&mut Finding| {
            let same = known.source == finding.source
                || known.source.and_then(|port| topology.peer(port)) == finding.source;
            known.cause == finding.cause && finding.source.is_some() && same
        };
        match merged.iter_mut().find(same_place) {
            Some(known) => {
                known.explains += finding.explains;
                known.weight = known.weight.max(finding.weight) + finding.explains;
                known.from = known.from.min(finding.from);
                known.until = known.until.max(finding.until);
                for evidence in finding.evidence {
                    if !known.evidence.contains(&evidence) {
                        known.evidence.push(evidence);
                    }
                }
            }
            None => merged.push(finding),
        }
    }
    merged
}

fn nothing_known(topology: &Topology) -> Diagnosis {
    Diagnosis {
        verdict: Verdict::NotEnoughData,
        summary: "No port has two samples: growth of counters cannot be told.".to_owned(),
        findings: Vec::new(),
        symptoms: Vec::new(),
        victims: Vec::new(),
        coverage: Coverage {
            ports: topology.ports().len(),
            heard: 0,
            silent: Vec::new(),
            uncabled: Vec::new(),
            without_cable: 0,
            watched: Span::ZERO,
            interval: Span::ZERO,
        },
    }
}

fn coverage(facts: &Facts<'_>, whole: Window) -> Coverage {
    let cabled = || {
        let ports = facts.topology.port_indices();
        ports.filter(|&port| facts.topology.peer(port).is_some())
    };
    let silent: Vec<PortIndex> = cabled().filter(|&p| !facts.is_heard(p, whole)).collect();
    let ports = cabled().count();
    let uncabled: Vec<PortIndex> = facts
        .topology
        .port_indices()
        .filter(|&port| facts.topology.peer(port).is_none() && facts.is_in_use(port, whole))
        .collect();
    let names = |ports: &[PortIndex]| {
        let named = ports.iter().take(Diagnosis::NAMED_PORTS);
        let names = named.map(|&port| facts.topology.port(port).name.clone());
        names.collect()
    };
    Coverage {
        ports,
        heard: ports - silent.len(),
        silent: names(&silent),
        uncabled: names(&uncabled),
        without_cable: uncabled.len(),
        watched: whole.length(),
        interval: facts.grid.first().map_or(Span::ZERO, |w| w.length()),
    }
}

impl Coverage {
    /// Whether so much was seen that silence means that nothing is wrong: without any cable, nobody can be followed.
    fn is_enough(&self) -> bool {
        let in_use = (self.ports + self.without_cable) as f64;
        self.ports > 0 && self.heard as f64 >= in_use * Diagnosis::ENOUGH_HEARD
    }
}

/// Ports and hosts that are held because of something elsewhere.
fn sufferers(
    facts: &Facts<'_>,
    view: &roots::View,
    sources: &[PortIndex],
) -> (Vec<Symptom>, Vec<Victim>) {
    let topology = facts.topology;
    let mut held: Vec<(PortIndex, f64)> = view
        .worst()
        .into_iter()
        .filter(|(port, _)| !sources.contains(port))
        .collect();
    held.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let name = |port: PortIndex| topology.port(port).name.clone();
    let symptoms = held.iter().filter_map(|&(port, held)| {
        let by = name(topology.peer(port)?);
        let port = name(port);
        Some(Symptom { port, by, held })
    });
    let victims = held
        .iter()
        .filter(|(port, _)| topology.owner(*port).kind == NodeKind::Host)
        .map(|&(port, held)| Victim {
            host: topology.owner(port).name.clone(),
            held,
        });
    (symptoms.collect(), victims.collect())
}

/// The time since the first sample.
fn since_start(whole: Window, time: Time) -> Span {
    time.since(whole.from)
}
