//! What turning PFC off does to a storm: it ends the pauses, and losslessness with them.

use std::process::ExitCode;
use std::thread;

use serde::Serialize;
use softfabric_fabric::engine::{self, RunOptions};
use softfabric_fabric::export::Names;
use softfabric_fabric::plan::{Action, LinkLayer, NodeId, Plan, PlanError, TimedAction};
use softfabric_fabric::results::Results;
use softfabric_units::{Class, ClassMask, Time};

use super::arguments::PfcOffArguments;
use super::figures::{Figures, Tail, tails};
use crate::failure::Failure;
use crate::format;
use crate::run::input;
use crate::summary::wrap;
use crate::table::Table;
use crate::terminal::{self, BOLD, Stream};

/// Closer than this, two figures are the same.
const ALIKE: f64 = 0.01;

/// What the simulator leaves out, and figures of such scenarios must be read with.
const STORMS_TAKE: &str = "A NIC that storms still takes what arrives here; one that hangs takes nothing, and packets to it are lost in either case.";

/// What `--json` prints.
#[derive(Serialize)]
struct Comparison {
    scenario: String,
    /// When PFC is turned off.
    off_at_seconds: f64,
    classes: Vec<u8>,
    /// Hosts that storm or take too little.
    sources: Vec<String>,
    /// Among them is a broken NIC.
    storms: bool,
    as_it_is: Figures,
    without_pfc: Figures,
    /// Completion times of the flows that came to their end in both.
    completion: Option<(Tail, Tail)>,
    outcome: Outcome,
    sentence: String,
}

/// What follows from the figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// Something is worse, and nothing is better.
    Worse,
    /// Some are better off, and others pay.
    Mixed,
    /// Nothing that matters is worse.
    NotWorse,
}

pub(super) fn run(arguments: &PfcOffArguments) -> Result<ExitCode, Failure> {
    let plan = input::load(&arguments.scenario, arguments.seed)?.plan;
    let remedy = Remedy::of(&plan, arguments)?;
    let mut as_it_is = plan;
    // What the scenario itself does about it belongs to the other run.
    as_it_is
        .actions
        .retain(|timed| !matches!(timed.action, Action::PfcOff(_)));
    let without_pfc = remedy.applied(as_it_is.clone());
    let (with, without) = run_both(&as_it_is, &without_pfc)?;
    let comparison = compare(&as_it_is, &remedy, &with, &without);
    match arguments.json {
        true => terminal::print_json(&comparison)?,
        false => terminal::print(&render(&comparison, Stream::Output.width()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// When PFC is turned off, and for what.
struct Remedy {
    at: Time,
    classes: ClassMask,
    sources: Vec<NodeId>,
}

impl Remedy {
    fn of(plan: &Plan, arguments: &PfcOffArguments) -> Result<Self, Failure> {
        if !matches!(plan.link_layer, LinkLayer::Ethernet) {
            return Err(Failure::Arguments {
                problem: "this scenario is of InfiniBand, which has no PFC to turn off".to_owned(),
                help: Some("What holds senders back there are credits, and they stay.".to_owned()),
            });
        }
        let lossless = plan.switch_profiles.iter().flat_map(|profile| {
            // Groups are protected; what is turned off is the priority that they pause.
            let priorities = profile.lossless();
            priorities
                .iter()
                .map(|group| profile.maps.pause[group.index()])
                .collect::<Vec<_>>()
        });
        let classes = match arguments.class {
            Some(class) => ClassMask::NONE.with(class),
            None => lossless.fold(ClassMask::NONE, ClassMask::with),
        };
        if classes == ClassMask::NONE {
            return Err(Failure::Arguments {
                problem: "no switch of this scenario has PFC, so there is none to turn off"
                    .to_owned(),
                help: Some("`lossless` of [switch] says which classes have it.".to_owned()),
            });
        }
        let mut sources: Vec<NodeId> = Vec::new();
        let mut begins: Option<Time> = None;
        let mut off: Option<Time> = None;
        for timed in &plan.actions {
            let source = match timed.action {
                Action::StormBegins(host, _) | Action::DrainRate(host, Some(_)) => host,
                Action::PfcOff(_) => {
                    off = Some(off.map_or(timed.at, |known| known.min(timed.at)));
                    continue;
                }
                _ => continue,
            };
            begins = Some(begins.map_or(timed.at, |known| known.min(timed.at)));
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        Ok(Self {
            at: arguments.at.or(off).or(begins).unwrap_or(Time::ZERO),
            classes,
            sources,
        })
    }

    /// The plan in which somebody turns PFC off.
    fn applied(&self, mut plan: Plan) -> Plan {
        plan.actions
            .extend(self.classes.iter().map(|class| TimedAction {
                at: self.at,
                action: Action::PfcOff(class),
            }));
        plan.actions.sort_by_key(|timed| timed.at);
        plan
    }
}

/// Both at once: neither knows of the other.
fn run_both(first: &Plan, second: &Plan) -> Result<(Results, Results), Failure> {
    let run = |plan: &Plan| engine::run(plan, &mut RunOptions::default());
    let (first, second): (Result<_, PlanError>, Result<_, PlanError>) = thread::scope(|scope| {
        let other = scope.spawn(|| run(second));
        let first = run(first);
        (
            first,
            other
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    });
    Ok((first?, second?))
}

fn compare(plan: &Plan, remedy: &Remedy, with: &Results, without: &Results) -> Comparison {
    let figures = |results| Figures::of(plan, results, &remedy.sources);
    let (as_it_is, without_pfc) = (figures(with), figures(without));
    let completion = tails(with, without);
    let names = Names::new(&plan.network);
    let sources = remedy.sources.iter();
    let sources: Vec<String> = sources.map(|&host| names.node(host).name.clone()).collect();
    let changes = changes(&as_it_is, &without_pfc, completion.as_ref(), &sources);
    let outcome = match (changes.worse.is_empty(), changes.better.is_empty()) {
        (true, _) => Outcome::NotWorse,
        (false, true) => Outcome::Worse,
        (false, false) => Outcome::Mixed,
    };
    let sentence = sentence(outcome, &changes, &as_it_is, &without_pfc, remedy.at);
    let is_storm = |timed: &TimedAction| matches!(timed.action, Action::StormBegins(..));
    Comparison {
        storms: plan.actions.iter().any(is_storm),
        scenario: plan.name.clone(),
        off_at_seconds: remedy.at.since(Time::ZERO).as_seconds_f64(),
        classes: remedy.classes.iter().map(Class::as_u8).collect(),
        sources,
        as_it_is,
        without_pfc,
        completion,
        outcome,
        sentence,
    }
}

/// What got better and what got worse, in words.
struct Changes {
    better: Vec<String>,
    worse: Vec<String>,
}

impl Changes {
    /// Says which way a figure moved, if it did.
    fn weigh(&mut self, what: &str, moved: (f64, f64), more: Good, show: fn(f64) -> String) {
        let (before, after) = moved;
        if (after - before).abs() <= ALIKE * before.abs().max(after.abs()) {
            return;
        }
        let way = if after > before { "rises" } else { "falls" };
        let says = format!("{what} {way} from {} to {}", show(before), show(after));
        match (after > before) == (more == Good::More) {
            true => self.better.push(says),
            false => self.worse.push(says),
        }
    }
}

/// Which way is the good one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Good {
    More,
    Less,
}

fn changes(
    before: &Figures,
    after: &Figures,
    completion: Option<&(Tail, Tail)>,
    sources: &[String],
) -> Changes {
    let mut changes = Changes {
        better: Vec::new(),
        worse: Vec::new(),
    };
    let count: fn(f64) -> String = |value| format::grouped(value as u64);
    let rate = format::bit_rate;
    match before
        .goodput_to_source_bps
        .zip(after.goodput_to_source_bps)
    {
        Some(moved) => {
            let to = format!("goodput of flows to {}", sources.join(", "));
            changes.weigh(&to, moved, Good::More, rate);
            let others = before
                .goodput_of_others_bps
                .zip(after.goodput_of_others_bps);
            if let Some(moved) = others {
                changes.weigh("goodput of all other flows", moved, Good::More, rate);
            }
        }
        None => {
            let moved = (before.goodput_bps, after.goodput_bps);
            changes.weigh("goodput", moved, Good::More, rate);
        }
    }
    if let Some((first, second)) = completion {
        let what = "the completion time that 99 of 100 flows keep to";
        let moved = (first.p99_ns, second.p99_ns);
        changes.weigh(what, moved, Good::Less, format::nanoseconds);
    }
    let failed = (before.failed as f64, after.failed as f64);
    changes.weigh("the number of failed flows", failed, Good::Less, count);
    let unfinished = (before.unfinished as f64, after.unfinished as f64);
    changes.weigh(
        "the number of unfinished flows",
        unfinished,
        Good::Less,
        count,
    );
    for (before, after) in before.jobs.iter().zip(&after.jobs) {
        let what = format!("the time of job {}", before.name);
        match (before.seconds, after.seconds) {
            (Some(first), Some(second)) => {
                let moved = (first * 1e9, second * 1e9);
                changes.weigh(&what, moved, Good::Less, format::nanoseconds);
            }
            (Some(_), None) => changes
                .worse
                .push(format!("job {} does not end", before.name)),
            (None, Some(_)) => changes.better.push(format!("job {} ends", before.name)),
            (None, None) => {}
        }
    }
    changes
}

/// The sentence that follows, whatever it is.
fn sentence(
    outcome: Outcome,
    changes: &Changes,
    before: &Figures,
    after: &Figures,
    at: Time,
) -> String {
    let at = format::span(at.since(Time::ZERO));
    let count = format::grouped;
    let lost = match (before.dropped, after.dropped) {
        (first, second) if second <= first => "no more packets are lost than before".to_owned(),
        (0, second) => format!(
            "{} packets are lost where none was, and {} are sent again",
            count(second),
            count(after.sent_again)
        ),
        (first, second) => format!(
            "{} packets are lost instead of {}, and {} are sent again",
            count(second),
            count(first),
            count(after.sent_again)
        ),
    };
    let worse = changes.worse.join("; ");
    let better = changes.better.join("; ");
    match outcome {
        Outcome::Worse => format!(
            "Turning PFC off at {at} turns a slowdown into loss and makes it worse: the pauses end, {lost}, and {worse}."
        ),
        Outcome::Mixed => format!(
            "Turning PFC off at {at} is a trade and no remedy: {lost}. Worse: {worse}. Better: {better}."
        ),
        Outcome::NotWorse if changes.better.is_empty() => format!(
            "In this scenario the figures do not bear out that turning PFC off at {at} makes it worse, nor that it helps: \
             {lost}, and everything else stays as it was."
        ),
        Outcome::NotWorse => format!(
            "In this scenario the figures do not bear out that turning PFC off at {at} makes it worse: {lost}, and {better}."
        ),
    }
}

fn render(comparison: &Comparison, width: usize) -> String {
    let mut table = Table::new()
        .words("", 0)
        .figures("as it is", 0)
        .figures("PFC off", 0);
    let (first, second) = (&comparison.as_it_is, &comparison.without_pfc);
    let mut row = |what: String, of: &dyn Fn(&Figures) -> Option<String>| {
        let cells = [of(first), of(second)];
        if cells.iter().any(Option::is_some) {
            let [first, second] = cells.map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
            table.row([what, first, second]);
        }
    };
    let count = format::grouped;
    let rate = |value: Option<f64>| value.map(format::bit_rate);
    row("ports paused, all together".to_owned(), &|figures| {
        Some(format::nanoseconds(figures.paused_seconds * 1e9))
    });
    row("packets lost".to_owned(), &|figures| {
        Some(count(figures.dropped))
    });
    row("packets sent again".to_owned(), &|figures| {
        Some(count(figures.sent_again))
    });
    row("goodput".to_owned(), &|figures| {
        rate(Some(figures.goodput_bps))
    });
    if !comparison.sources.is_empty() {
        let to = comparison.sources.join(", ");
        row(format!("  of flows to {to}"), &|figures| {
            rate(figures.goodput_to_source_bps)
        });
        row("  of all other flows".to_owned(), &|figures| {
            rate(figures.goodput_of_others_bps)
        });
    }
    row("flows completed".to_owned(), &|figures| {
        Some(count(figures.completed))
    });
    row("flows failed".to_owned(), &|figures| {
        Some(count(figures.failed))
    });
    row("flows unfinished".to_owned(), &|figures| {
        Some(count(figures.unfinished))
    });
    for (number, job) in first.jobs.iter().enumerate() {
        row(format!("job {}", job.name), &|figures| {
            let job = &figures.jobs[number];
            Some(match job.seconds {
                Some(seconds) => format::nanoseconds(seconds * 1e9),
                None if job.failed => "failed".to_owned(),
                None => "unfinished".to_owned(),
            })
        });
    }
    if let Some((first, second)) = &comparison.completion {
        let figures = [
            ("completion time, median", first.p50_ns, second.p50_ns),
            ("  99 of 100 within", first.p99_ns, second.p99_ns),
            ("  slowest", first.max_ns, second.max_ns),
        ];
        for (what, first, second) in figures {
            table.row([
                what.to_owned(),
                format::nanoseconds(first),
                format::nanoseconds(second),
            ]);
        }
    }
    let head = format!("{BOLD}{}{BOLD:#}\n\n", comparison.scenario);
    let mut text = head + &table.render(width);
    if let Some((tail, _)) = &comparison.completion {
        let flows = format::grouped(tail.flows);
        text.push_str(&format!(
            "\nCompletion times are those of the {flows} flows that end in both.\n"
        ));
    }
    text.push_str(&format!("\n{}\n", wrap(&comparison.sentence, width, 0)));
    if comparison.storms {
        text.push_str(&format!("\n{}\n", wrap(STORMS_TAKE, width, 0)));
    }
    text
}
