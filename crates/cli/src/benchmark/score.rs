//! What was said against what is true.

use std::collections::BTreeMap;

use serde::Serialize;
use softfabric_operations::diagnose::{Cause, Finding, Verdict};
use softfabric_operations::{History, PortIndex, Topology, diagnose};
use softfabric_units::{Span, Time};

use super::baseline;
use super::case::{Case, Truth};
use super::view::View;

/// One case, seen in one way.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Outcome {
    case: String,
    fault: String,
    view: &'static str,
    truth: Option<Cause>,
    places: Vec<String>,
    verdict: Verdict,
    said_ports: Vec<String>,
    summary: String,
    /// The cause is the right one.
    cause_is_right: bool,
    /// The place is the right one, whatever the cause.
    place_is_right: bool,
    /// The place is right among all findings.
    place_is_listed: bool,
    /// Each of several faults is among the findings, with its cause and at its place; nothing where there is one.
    all_are_found: Option<bool>,
    /// How many polls after the fault began the verdict was right and stayed so; nothing where it never was,
    /// and where counters are missing.
    polls_to_verdict: Option<u64>,
    most_pausing_is_right: bool,
    watchdog_is_right: bool,
    watchdog_spoke: bool,
}

/// All outcomes.
#[derive(Default, Serialize)]
pub(super) struct Board {
    pub(super) outcomes: Vec<Outcome>,
    /// Cases that could not be made.
    pub(super) impossible: u64,
}

impl Outcome {
    /// Diagnoses what is seen and compares.
    pub(super) fn of(
        case: &Case,
        truth: &Truth,
        view: View,
        topology: &Topology,
        history: &History,
    ) -> Self {
        let diagnosis = diagnose(topology, history);
        let first = diagnosis.findings.first();
        let mut places = truth.places.clone();
        places.extend(truth.also.iter().flat_map(|(_, places)| places.clone()));
        let is_place = |name: &String| places.contains(name);
        let names = |port: PortIndex| {
            let node = topology.owner(port).name.clone();
            [topology.port(port).name.clone(), node]
        };
        let is_right_port =
            |port: Option<PortIndex>| port.is_some_and(|port| names(port).iter().any(is_place));
        let most_pausing = baseline::most_pausing(topology, history);
        let watchdog = baseline::watchdog(topology, history);
        // A watchdog names the port that is paused; the one that pauses it is at the other end.
        let blamed = watchdog.and_then(|port| topology.peer(port));
        let said = match diagnosis.verdict {
            Verdict::Cause(cause) => Some(cause),
            Verdict::NotTheFabric | Verdict::NotEnoughData => None,
        };
        let cause_is_right = is_right(truth, diagnosis.verdict);
        let finds = |cause: Cause, places: &[String]| {
            diagnosis.findings.iter().any(|finding| {
                let named = finding.ports.iter().take(2).chain([&finding.node]);
                finding.cause == cause && named.into_iter().any(|name| places.contains(name))
            })
        };
        let all_are_found =
            truth
                .cause
                .zip(truth.also.as_ref())
                .map(|(cause, (other, elsewhere))| {
                    finds(cause, &truth.places) && finds(*other, elsewhere)
                });
        let at = |finding: &Finding| {
            is_place(&finding.node) || finding.ports.iter().take(2).any(is_place)
        };
        Self {
            case: case.name(),
            fault: format!("{:?}", case.fault),
            view: view.name(),
            truth: truth.cause,
            places: truth.places.clone(),
            verdict: diagnosis.verdict,
            said_ports: first.map(|first| first.ports.clone()).unwrap_or_default(),
            cause_is_right,
            place_is_right: said.is_some() && first.is_some_and(at),
            place_is_listed: diagnosis.findings.iter().any(at),
            all_are_found,
            polls_to_verdict: match view {
                View::Whole => polls_to_verdict(truth, topology, history),
                View::PortsMissing | View::LateAndLost => None,
            },
            most_pausing_is_right: is_right_port(most_pausing),
            watchdog_is_right: is_right_port(watchdog) || is_right_port(blamed),
            watchdog_spoke: watchdog.is_some(),
            summary: diagnosis.summary,
        }
    }

    pub(super) fn is_right(&self) -> bool {
        self.cause_is_right && (self.truth.is_none() || self.place_is_right)
    }

    /// What was wrong about it, in one line.
    pub(super) fn complaint(&self) -> String {
        format!(
            "{} ({}): it is {:?} at {}, and was called {} at {}: {}",
            self.case,
            self.view,
            self.truth,
            self.places.join(", "),
            self.verdict.name(),
            self.said_ports.join(", "),
            self.summary
        )
    }

    fn named_a_cause(&self) -> bool {
        matches!(self.verdict, Verdict::Cause(_))
    }
}

/// Whether the verdict names what is wrong; of several, any of them.
fn is_right(truth: &Truth, verdict: Verdict) -> bool {
    let Some(cause) = truth.cause else {
        return verdict == Verdict::NotTheFabric;
    };
    let other = truth.also.as_ref().map(|&(cause, _)| cause);
    verdict == Verdict::Cause(cause) || other.is_some_and(|other| verdict == Verdict::Cause(other))
}

/// How many polls after the fault began the verdict is right and stays so, if every poll is diagnosed as it comes.
fn polls_to_verdict(truth: &Truth, topology: &Topology, history: &History) -> Option<u64> {
    truth.cause?;
    let span = history.span()?;
    let step = topology
        .port_indices()
        .find_map(|port| history.interval(port))
        .filter(|step| !step.is_zero())?;
    let begin = Time::ZERO + Span::micros(truth.begin);
    let polls = (1_u64..).map(|poll| begin.max(span.from) + step * poll);
    let polls: Vec<Time> = polls.take_while(|&time| time <= span.to + step).collect();
    let right = polls.iter().map(|&now| {
        let known = history.filtered(|_, time| (time <= now).then_some(time));
        is_right(truth, diagnose(topology, &known).verdict)
    });
    let right: Vec<bool> = right.collect();
    let wrong = right.iter().rposition(|right| !right);
    let first = wrong.map_or(0, |last| last + 1);
    (first < right.len()).then_some(first as u64 + 1)
}

/// `right` of `all`, as a percentage.
fn share(right: usize, all: usize) -> String {
    match all {
        0 => "–".to_owned(),
        _ => format!(
            "{:.1} % ({right} of {all})",
            right as f64 * 100.0 / all as f64
        ),
    }
}

impl Board {
    /// Scores for each view, then the cases that were judged wrongly by fault.
    pub(super) fn table(&self, poll: Span) -> String {
        let mut text = format!(
            "{} cases of 20ms, polled every {poll}; {} could not be made\n",
            self.outcomes.len() / View::ALL.len(),
            self.impossible
        );
        for view in View::ALL {
            text.push_str(&self.scores(view));
        }
        text.push_str("\nby fault (cause and place right, abstained, wrong; all views)\n");
        let mut by_fault: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
        for outcome in &self.outcomes {
            let counts = by_fault.entry(&outcome.fault).or_default();
            let kind = match (outcome.is_right(), outcome.verdict) {
                (true, _) => 0,
                (false, Verdict::NotEnoughData) => 1,
                (false, _) => 2,
            };
            counts[kind] += 1;
        }
        for (fault, [right, abstained, wrong]) in by_fault {
            text.push_str(&format!(
                "  {fault:<24} {right:>4} {abstained:>4} {wrong:>4}\n"
            ));
        }
        text
    }

    fn scores(&self, view: View) -> String {
        let seen: Vec<&Outcome> = self
            .outcomes
            .iter()
            .filter(|outcome| outcome.view == view.name())
            .collect();
        let count = |wanted: &dyn Fn(&Outcome) -> bool| seen.iter().filter(|o| wanted(o)).count();
        let faulty = count(&|o| o.truth.is_some());
        let healthy = count(&|o| o.truth.is_none());
        let named = count(&|o| o.named_a_cause());
        let right = count(&|o| o.truth.is_some() && o.cause_is_right);
        let lines = [
            ("precision of the cause", share(right, named)),
            ("recall of the cause", share(right, faulty)),
            (
                "source at its port",
                share(count(&|o| o.truth.is_some() && o.place_is_right), faulty),
            ),
            (
                "source among all findings",
                share(count(&|o| o.truth.is_some() && o.place_is_listed), faulty),
            ),
            (
                "abstained",
                share(count(&|o| o.verdict == Verdict::NotEnoughData), seen.len()),
            ),
            (
                "false alarms",
                share(count(&|o| o.truth.is_none() && o.named_a_cause()), healthy),
            ),
            (
                "baseline: most pausing port",
                share(
                    count(&|o| o.truth.is_some() && o.most_pausing_is_right),
                    faulty,
                ),
            ),
            (
                "baseline: PFC watchdog's rule",
                format!(
                    "{}, spoke in {}",
                    share(count(&|o| o.truth.is_some() && o.watchdog_is_right), faulty),
                    count(&|o| o.watchdog_spoke)
                ),
            ),
        ];
        let several = count(&|o| o.all_are_found.is_some());
        let all_found = count(&|o| o.all_are_found == Some(true));
        let mut lines = lines.to_vec();
        lines.push(("all of several faults found", share(all_found, several)));
        let mut polls: Vec<u64> = seen.iter().filter_map(|o| o.polls_to_verdict).collect();
        polls.sort_unstable();
        if let (Some(median), Some(most)) =
            (polls.get(polls.len() / 2), polls.get(polls.len() * 9 / 10))
        {
            let value = format!("{median}, nine of ten within {most}");
            lines.push(("polls until the verdict", value));
        }
        let mut text = format!("\n{}\n", view.name());
        for (name, value) in lines {
            text.push_str(&format!("  {name:<30} {value}\n"));
        }
        text
    }
}
