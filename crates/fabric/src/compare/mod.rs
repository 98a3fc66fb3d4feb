//! One scenario over several technologies, or with several values of a setting: the same machines, cables and traffic.
//!
//! ```text
//! scenario ─► settings to try ─► technologies ─► variants ─┬─► runs, one a seed ────────┐
//!                                  (scenario::over)        ├─► the same without events ─┤
//!                                                          ├─► a small message, idle ───┼─► Comparison ─► reading
//!                                                          └─► settings taken away ─────┘
//! ```
//!
//! All runs of all variants are one list that [`batch`] works off; what comes out does not depend on threads.

mod dimensions;
mod failure;
mod figures;
mod measure;
mod operations;
mod probe;
mod reading;
mod routing;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicBool;

use serde::Serialize;
use thiserror::Error;

pub use dimensions::Dimension;
pub use failure::Aftermath;
pub use figures::{Figures, RepairFigures};
pub use measure::{Better, Definition, Measure, Spread, Unit};
pub use operations::Without;
pub use reading::Sentence;
pub use routing::RoutingFigures;

use crate::batch;
use crate::engine::{self, RunOptions};
use crate::plan::{Plan, PortSelection, Recording};
use crate::results::{Ending, Results};
use crate::scenario::{
    EditError, Event, FabricKind, Problem, Scenario, ScenarioError, Translation, set,
};
use failure::EventTime;
use operations::Family;
use softfabric_units::Span;

/// What is to be compared.
#[derive(Clone, Debug)]
pub struct Request {
    /// The technologies; of one only its name is known, where the grid says `fabric.kind`.
    pub technologies: Vec<FabricKind>,
    /// Settings, each with the values to try: all combinations.
    pub grid: Vec<(String, Vec<String>)>,
    /// How many seeds, from the scenario's on.
    pub seeds: u32,
    /// Also runs without events, with settings taken away, and small messages.
    pub thorough: bool,
}

/// Why nothing can be compared.
#[derive(Clone, Debug, Error)]
pub enum PrepareError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A setting of the grid is none.
    #[error(transparent)]
    Edit(#[from] EditError),
}

/// Everything that is to be run.
#[derive(Debug)]
pub struct Prepared {
    name: String,
    description: Option<String>,
    seeds: Vec<u64>,
    variants: Vec<Variant>,
    tasks: Vec<Task>,
}

#[derive(Debug)]
struct Variant {
    changes: Vec<(String, String)>,
    translation: Translation,
    /// Why it cannot run.
    refused: Vec<String>,
    events: Vec<EventTime>,
    families: Vec<Family>,
    routing: Option<RoutingFigures>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// The scenario with this seed.
    Whole(usize, u64),
    /// The same without its events.
    Calm(usize, u64),
    /// A small message in an idle network.
    Probe(usize),
    /// Without a group of settings, with the first seed.
    Without(usize, usize),
}

impl Task {
    /// The variant that runs.
    const fn variant(self) -> usize {
        match self {
            Self::Whole(at, _) | Self::Calm(at, _) | Self::Probe(at) | Self::Without(at, _) => at,
        }
    }
}

#[derive(Debug)]
enum Outcome {
    Figures(Box<Figures>),
    Probe(Option<f64>),
    Refused(Vec<String>),
}

/// Everything that came out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The scenario's name.
    pub name: String,
    /// What it shows.
    pub description: Option<String>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// What was compared, in the order of the request.
    pub variants: Vec<VariantFigures>,
    /// What the figures say, in words.
    pub reading: Vec<Sentence>,
    /// The dimensions in which technologies are usually compared, each with what this comparison has to say.
    pub dimensions: Vec<Dimension>,
}

/// One variant and its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantFigures {
    /// Its technology, and what of the grid it is.
    pub name: String,
    /// The technology.
    pub technology: &'static str,
    /// The settings of the grid.
    pub changes: Vec<(String, String)>,
    /// What the file says and this technology does not have, with the reason.
    pub left_out: Vec<(String, &'static str)>,
    /// Why it cannot run; empty if it can.
    pub refused: Vec<String>,
    /// The runs, one a seed.
    pub runs: Vec<Figures>,
    /// The same without events, where there are any.
    pub calm: Vec<Figures>,
    /// A small message in an idle network, in nanoseconds.
    pub small_message_ns: Option<f64>,
    /// The tables of its switches.
    pub routing: Option<RoutingFigures>,
    /// How many groups of settings it has that can be taken away.
    pub groups_of_settings: usize,
    /// The run without each of them.
    pub without: Vec<Without>,
}

impl VariantFigures {
    /// A measure over all seeds; `None` where it has none.
    pub fn spread(&self, measure: Measure) -> Option<Spread> {
        if measure == Measure::SmallMessage {
            return Spread::of(self.small_message_ns);
        }
        Spread::of(self.runs.iter().filter_map(|run| run.value(measure)))
    }

    /// The same of the runs without events.
    pub fn calm_spread(&self, measure: Measure) -> Option<Spread> {
        Spread::of(self.calm.iter().filter_map(|run| run.value(measure)))
    }

    /// The median of a measure over all seeds; zero where it has none.
    fn median(&self, measure: Measure) -> f64 {
        self.spread(measure).map_or(0.0, |spread| spread.median)
    }

    /// Completion times of all seeds, sorted, in nanoseconds.
    pub fn completions(&self) -> Vec<f64> {
        let mut all: Vec<f64> = (self.runs.iter())
            .flat_map(|run| run.completions.iter().copied())
            .collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    }

    /// What each event did, as medians over the seeds that have a value.
    pub fn aftermath(&self) -> Vec<Aftermath> {
        let events = self.runs.first().map_or(&[][..], |run| &run.aftermath);
        (events.iter())
            .map(|event| {
                let all = || self.runs.iter().flat_map(|run| &run.aftermath);
                let median = |value: fn(&Aftermath) -> Option<f64>| {
                    let same = all().filter(|other| other.event == event.event);
                    Spread::of(same.filter_map(value)).map(|spread| spread.median)
                };
                Aftermath {
                    before_bps: median(|found| found.before_bps),
                    outage_ns: median(|found| Some(found.outage_ns)).unwrap_or(0.0),
                    during_bps: median(|found| found.during_bps),
                    after_bps: median(|found| found.after_bps),
                    ..event.clone()
                }
            })
            .collect()
    }

    /// How many of the seeds came to their end.
    pub fn survived(&self) -> usize {
        self.runs.iter().filter(|run| run.survived).count()
    }
}

/// The default technologies, in the order of tables.
pub const TECHNOLOGIES: [FabricKind; 3] =
    [FabricKind::Tcp, FabricKind::RoceV2, FabricKind::Infiniband];

impl Prepared {
    /// Reads the scenario and makes all variants of it; `file` is the name of its file.
    ///
    /// # Errors
    /// If the scenario, a setting of the grid, or what is laid over the scenario for a technology is wrong. A technology that
    /// cannot run a right scenario is no error: its variant says why.
    pub fn new(text: &str, file: &str, request: &Request) -> Result<Self, PrepareError> {
        let base = Scenario::from_toml(text, file)?;
        let first = base.seed.unwrap_or(1);
        let seeds: Vec<u64> = (0..u64::from(request.seeds.max(1)))
            .map(|offset| first.wrapping_add(offset))
            .collect();
        let mut variants = Vec::new();
        for changes in combinations(&request.grid) {
            let scenario = match changes.is_empty() {
                true => base.clone(),
                false => changed(text, file, &changes)?,
            };
            let own = scenario.technology();
            let kind_is_given = changes.iter().any(|(path, _)| path == "fabric.kind");
            let technologies = match kind_is_given {
                true => &[own][..],
                false => &request.technologies,
            };
            for &kind in technologies {
                variants.push(Variant::new(&scenario, kind, changes.clone(), seeds[0])?);
            }
        }
        let tasks = tasks(&variants, &seeds, request.thorough);
        let stem = std::path::Path::new(file).file_stem();
        let stem = stem.map_or("scenario".to_owned(), |stem| {
            stem.to_string_lossy().into_owned()
        });
        Ok(Self {
            name: base.name.clone().unwrap_or(stem),
            description: base.description.clone(),
            seeds,
            variants,
            tasks,
        })
    }

    /// How many runs it takes.
    pub fn runs(&self) -> usize {
        self.tasks.len()
    }

    /// Runs everything on up to `threads` threads. Once `interrupt` is true, what is not done is left out.
    pub fn run(
        &self,
        threads: usize,
        interrupt: &AtomicBool,
        done: &(dyn Fn(usize) + Sync),
    ) -> Comparison {
        let outcomes = batch::map(self.tasks.len(), threads, interrupt, done, &|index| {
            self.work(self.tasks[index], interrupt)
        });
        let mut figures: Vec<VariantFigures> = self.variants.iter().map(Variant::figures).collect();
        let mut without = Vec::new();
        for (task, outcome) in self.tasks.iter().zip(outcomes) {
            match (task, outcome) {
                (_, None) => {}
                (Task::Whole(at, _), Some(Outcome::Figures(found))) => {
                    figures[*at].runs.push(*found);
                }
                (Task::Calm(at, _), Some(Outcome::Figures(found))) => {
                    figures[*at].calm.push(*found);
                }
                (Task::Without(at, family), Some(Outcome::Figures(found))) => {
                    without.push((*at, *family, found));
                }
                (Task::Probe(at), Some(Outcome::Probe(found))) => {
                    figures[*at].small_message_ns = found;
                }
                (task, Some(Outcome::Refused(why)))
                    if figures[task.variant()].refused.is_empty() =>
                {
                    figures[task.variant()].refused = why;
                }
                _ => {}
            }
        }
        for (at, family, found) in without {
            let with = figures[at]
                .runs
                .iter()
                .find(|run| run.seed == self.seeds[0]);
            if let Some(with) = with {
                let judged = Without::of(&self.variants[at].families[family], with, &found);
                figures[at].without.push(judged);
            }
        }
        let mut comparison = Comparison {
            name: self.name.clone(),
            description: self.description.clone(),
            seeds: self.seeds.clone(),
            variants: figures,
            reading: Vec::new(),
            dimensions: Vec::new(),
        };
        comparison.reading = reading::of(&comparison);
        comparison.dimensions = dimensions::of(&comparison);
        comparison
    }

    fn work(&self, task: Task, interrupt: &AtomicBool) -> Option<Outcome> {
        let variant = &self.variants[task.variant()];
        let mut scenario = variant.translation.scenario.clone();
        scenario.seed = Some(self.seeds[0]);
        match task {
            Task::Whole(_, seed) => scenario.seed = Some(seed),
            Task::Calm(_, seed) => {
                scenario.seed = Some(seed);
                scenario.event.clear();
            }
            Task::Probe(_) => {
                let Some(mut plan) = probe::plan(scenario) else {
                    return Some(Outcome::Probe(None));
                };
                keep_only_what_is_compared(&mut plan, false);
                let results = simulate(&plan, interrupt)?;
                let results = results.ok();
                return Some(Outcome::Probe(results.as_ref().and_then(probe::latency)));
            }
            Task::Without(..) => {}
        }
        let mut plan = match scenario.plan() {
            Ok(plan) => plan,
            Err(error) => return Some(Outcome::Refused(lines(&error))),
        };
        if let Task::Without(_, family) = task {
            (variant.families[family].take_away)(&mut plan);
        }
        let events: &[EventTime] = match task {
            Task::Whole(..) => &variant.events,
            _ => &[],
        };
        keep_only_what_is_compared(&mut plan, !events.is_empty());
        let results = simulate(&plan, interrupt)?;
        Some(match results {
            Ok(results) => Outcome::Figures(Box::new(Figures::of(&plan, &results, events))),
            Err(why) => Outcome::Refused(why),
        })
    }
}

impl Variant {
    fn new(
        scenario: &Scenario,
        kind: FabricKind,
        changes: Vec<(String, String)>,
        seed: u64,
    ) -> Result<Self, ScenarioError> {
        let translation = scenario.over(kind)?;
        let mut first = translation.scenario.clone();
        first.seed = Some(seed);
        let planned = first.plan();
        let is_own = kind == scenario.technology();
        let (plan, refused) = match planned {
            Ok(plan) => (Some(plan), Vec::new()),
            Err(error) if is_own || scenario.has_overlay(kind) => return Err(error),
            Err(error) => (None, lines(&error)),
        };
        let events = (translation.events.iter().enumerate())
            .filter_map(|(place, kept)| event_time(place, &translation.scenario.event[(*kept)?]))
            .collect();
        Ok(Self {
            families: plan.as_ref().map_or(Vec::new(), operations::families),
            routing: plan.as_ref().map(RoutingFigures::of),
            changes,
            translation,
            refused,
            events,
        })
    }

    fn figures(&self) -> VariantFigures {
        let technology = self.translation.kind.name();
        let changes: Vec<String> = (self.changes.iter())
            .filter(|(path, _)| path != "fabric.kind")
            .map(|(path, value)| format!("{}={value}", path.rsplit('.').next().unwrap_or(path)))
            .collect();
        let name = match changes.is_empty() {
            true => technology.to_owned(),
            false => format!("{technology} {}", changes.join(" ")),
        };
        VariantFigures {
            name,
            technology,
            changes: self.changes.clone(),
            left_out: (self.translation.left_out.iter())
                .map(|left| (left.field.clone(), left.reason))
                .collect(),
            refused: self.refused.clone(),
            runs: Vec::new(),
            calm: Vec::new(),
            small_message_ns: None,
            routing: self.routing.clone(),
            groups_of_settings: self.families.len(),
            without: Vec::new(),
        }
    }
}

/// All combinations of the values of a grid; of an empty one a single one without changes.
fn combinations(grid: &[(String, Vec<String>)]) -> Vec<Vec<(String, String)>> {
    let mut all = vec![Vec::new()];
    for (path, values) in grid {
        all = (all.iter())
            .flat_map(|before: &Vec<(String, String)>| {
                values.iter().map(move |value| {
                    let mut changes = before.clone();
                    changes.push((path.clone(), value.clone()));
                    changes
                })
            })
            .collect();
    }
    all
}

/// The scenario with these values of settings. What looks like a number may be meant as a text: a share of 1.
fn changed(text: &str, file: &str, changes: &[(String, String)]) -> Result<Scenario, PrepareError> {
    let file = with_changes(file, changes);
    let read = |texts: bool| -> Result<Scenario, PrepareError> {
        let mut changed = text.to_owned();
        for (path, value) in changes {
            let value = match texts && value.parse::<f64>().is_ok() {
                true => format!("\"{value}\""),
                false => value.clone(),
            };
            changed = set(&changed, path, &value)?;
        }
        Ok(Scenario::from_toml(&changed, &file)?)
    };
    read(false).or_else(|error| read(true).map_err(|_| error))
}

fn with_changes(file: &str, changes: &[(String, String)]) -> String {
    let settings: Vec<String> = (changes.iter())
        .map(|(path, value)| format!("--set {path}={value}"))
        .collect();
    format!("{file} with {}", settings.join(" "))
}

fn tasks(variants: &[Variant], seeds: &[u64], thorough: bool) -> Vec<Task> {
    let able = || (0..variants.len()).filter(|at| variants[*at].refused.is_empty());
    let mut tasks = Vec::new();
    // The first seed of all variants comes first, so that an early end leaves something to compare.
    for &seed in seeds {
        tasks.extend(able().map(|at| Task::Whole(at, seed)));
    }
    if !thorough {
        return tasks;
    }
    tasks.extend(able().map(Task::Probe));
    for &seed in seeds {
        let calm = able().filter(|at| !variants[*at].events.is_empty());
        tasks.extend(calm.map(|at| Task::Calm(at, seed)));
    }
    for at in able() {
        tasks.extend((0..variants[at].families.len()).map(|family| Task::Without(at, family)));
    }
    tasks
}

/// What happens, for people; `None` for what is no failure of the network.
fn event_time(place: usize, event: &Event) -> Option<EventTime> {
    let (at, name) = match event {
        Event::LinkDown { at, between, .. } => {
            (at, format!("Link down {} – {}", between.0, between.1))
        }
        Event::LinkFlaps { at, between, .. } => {
            (at, format!("Link flaps {} – {}", between.0, between.1))
        }
        Event::PortDown { at, port, .. } => (at, format!("Port down {port}")),
        Event::SwitchDown { at, switches, .. } => {
            (at, format!("Switch down {}", switches.join(", ")))
        }
        Event::RailDown {
            at, rail, plane, ..
        } => match plane {
            Some(plane) => (at, format!("Rail {rail} down in plane {plane}")),
            None => (at, format!("Rail {rail} down")),
        },
        Event::PlaneDown { at, plane, .. } => (at, format!("Plane {plane} down")),
        Event::BitErrors {
            at,
            between,
            bit_error_rate,
            ..
        } => (
            at,
            format!("Bit errors {bit_error_rate} {} – {}", between.0, between.1),
        ),
        Event::SlowHosts {
            at,
            hosts,
            slowness,
            ..
        } => (at, format!("{} slower by {slowness}", hosts.join(", "))),
        Event::Drain { at, hosts, rate } => (at, format!("Drain {} at {rate}", hosts.join(", "))),
        Event::Storm { at, host, .. } => (at, format!("Pause storm of {host}")),
        Event::PfcOff { at, .. } => (at, "PFC off".to_owned()),
        Event::LinkUp { .. } | Event::StopSources { .. } => return None,
    };
    Some(EventTime {
        place,
        name,
        at: *at,
    })
}

/// What is wrong, for somebody who did not write it: a field is named where there is one.
fn lines(error: &ScenarioError) -> Vec<String> {
    let line = |problem: &Problem| match (problem.field.is_empty(), &problem.advice) {
        (true, Some(advice)) => format!("{} ({advice})", problem.found),
        (true, None) => problem.found.clone(),
        (false, _) => problem.to_string(),
    };
    error.problems.iter().map(line).collect()
}

/// Recording changes no result, but it takes time and memory.
pub(crate) fn keep_only_what_is_compared(plan: &mut Plan, over_time: bool) {
    let interval = plan.recording.interval.unwrap_or(Span::micros(10));
    plan.recording = Recording {
        interval: over_time.then_some(interval),
        ports: PortSelection::These(Vec::new()),
        ..Recording::default()
    };
}

/// Runs a plan; `None` if it was interrupted.
pub(crate) fn simulate(
    plan: &Plan,
    interrupt: &AtomicBool,
) -> Option<Result<Results, Vec<String>>> {
    let mut options = RunOptions {
        interrupt: Some(interrupt),
        ..RunOptions::default()
    };
    match engine::run(plan, &mut options) {
        Ok(results) if results.ending == Ending::Interrupted => None,
        Ok(results) => Some(Ok(results)),
        Err(error) => {
            let problems = error.0.iter();
            Some(Err(problems
                .map(|finding| format!("{}: {}", finding.place, finding.problem))
                .collect()))
        }
    }
}
