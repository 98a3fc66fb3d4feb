//! The search for settings of ECN, DCQCN and PFC that suit a scenario.
//!
//! ```text
//!            ┌──────────────── NSGA-II (heuropt) ────────────────┐
//! places ─► settings ─► text of the scenario ─► runs, one a search seed ─► tail, pauses, throughput
//!                                                                              │
//!                                 front ─► the best of it ─► held-out seeds ◄──┘
//! ```
//!
//! Three things are to be had at once, and they contradict each other: a short tail of completion times, little pause, much
//! throughput. So the search is for the front of what is not beaten in all three, and the best of that front is the point with
//! the least sum of its three ratios to the start. The seeds of the search decide; other seeds, held out, say what that is worth.

mod space;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use heuropt::prelude::{
    CompositeVariation, Evaluation, Initializer, Nsga2, Nsga2Config, Objective, ObjectiveSpace,
    Optimizer, PolynomialMutation, Problem, RealBounds, Rng, SimulatedBinaryCrossover,
};
use serde::Serialize;
use softfabric_telemetry::ClassCounter;
use thiserror::Error;

pub use space::Setting;

use crate::compare::{Figures, Measure, keep_only_what_is_compared, simulate};
use crate::results::Results;
use crate::scenario::{EditError, Scenario, ScenarioError};
use space::Space;

/// How to search.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// So many simulations at most, those of held-out seeds left out.
    pub budget: u32,
    /// Seeds that each point is run with, from the scenario's on.
    pub seeds: u32,
}

/// Why there is no search.
#[derive(Clone, Debug, Error)]
pub enum TuneError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A field cannot be written.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// Nothing can be tuned.
    #[error("there is nothing to tune: {0}")]
    Nothing(&'static str),
    /// The budget is too small.
    #[error(
        "a budget of {found} simulations is too small for {seeds} seeds: at least {least} are needed"
    )]
    Budget {
        /// The budget.
        found: u32,
        /// The seeds.
        seeds: u32,
        /// What is needed.
        least: u32,
    },
}

/// What a point is worth, as means over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Worth {
    /// The time that 99 of 100 flows do not exceed, or that of the job where there are no other flows, in nanoseconds.
    pub tail_ns: f64,
    /// The time for which queues were paused, all ports together, in nanoseconds.
    pub paused_ns: f64,
    /// Payload that arrived, in bit/s.
    pub throughput_bps: f64,
    /// Pause frames received.
    pub pause_frames: f64,
    /// Packets marked.
    pub marks: f64,
    /// The share of seeds in which a packet was marked before any port was paused, 0–1.
    pub marked_first: f64,
    /// Packets dropped.
    pub drops: f64,
    /// The share of seeds in which something was lost from a lossless class, or did not come to its end.
    pub failed: f64,
}

/// A point of the search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Its settings.
    pub settings: Vec<Setting>,
    /// What it is worth with the seeds of the search.
    pub worth: Worth,
}

/// What a search found.
#[derive(Clone, Debug, Serialize)]
pub struct Tuned {
    /// The scenario's name.
    pub name: String,
    /// The seeds of the search.
    pub seeds: Vec<u64>,
    /// The seeds that were held out.
    pub held_out_seeds: Vec<u64>,
    /// Simulations that the search took.
    pub simulations: u32,
    /// The scenario as it was.
    pub start: Point,
    /// The best point.
    pub best: Point,
    /// The scenario as it was, with the seeds that were held out; `None` if the search was interrupted.
    pub start_held_out: Option<Worth>,
    /// The best point with those seeds.
    pub best_held_out: Option<Worth>,
    /// Points that no other one beats in all three: by the tail, the shortest first.
    pub front: Vec<Point>,
    /// The scenario with the best settings.
    #[serde(skip)]
    pub text: String,
}

/// Everything that a search needs.
#[derive(Debug)]
pub struct Search {
    name: String,
    text: String,
    file: String,
    space: Space,
    seeds: Vec<u64>,
    held_out: Vec<u64>,
    population: usize,
    generations: usize,
}

/// The least population that crosses over anything.
const SMALLEST_POPULATION: u32 = 6;
const LARGEST_POPULATION: u32 = 24;

impl Search {
    /// Reads the scenario, and finds out what can be tuned.
    ///
    /// # Errors
    /// If the scenario is wrong, has nothing to tune, or the budget is too small.
    pub fn new(text: &str, file: &str, request: Request) -> Result<Self, TuneError> {
        let scenario = Scenario::from_toml(text, file)?;
        let plan = scenario.plan()?;
        if plan.flows.is_empty() {
            return Err(TuneError::Nothing("the scenario has no traffic"));
        }
        let space = Space::of(&scenario, &plan).ok_or(TuneError::Nothing(
            "ECN, DCQCN and PFC are RoCE's, and this fabric has no lossless class of Ethernet",
        ))?;
        let seeds = request.seeds.max(1);
        let points = request.budget / seeds;
        if points < 2 * SMALLEST_POPULATION {
            return Err(TuneError::Budget {
                found: request.budget,
                seeds,
                least: 2 * SMALLEST_POPULATION * seeds,
            });
        }
        let population = (points / 6).clamp(SMALLEST_POPULATION, LARGEST_POPULATION);
        let first = plan.seed;
        let seed = |offset: u32| first.wrapping_add(u64::from(offset));
        Ok(Self {
            name: plan.name,
            text: text.to_owned(),
            file: file.to_owned(),
            space,
            seeds: (0..seeds).map(seed).collect(),
            held_out: (seeds..2 * seeds).map(seed).collect(),
            population: population as usize,
            generations: (points / population - 1) as usize,
        })
    }

    /// The fields that are tuned.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.space
            .parameters
            .iter()
            .map(|parameter| parameter.field.as_str())
    }

    /// How many simulations it takes at most, those of held-out seeds included.
    pub fn simulations(&self) -> usize {
        self.population * (self.generations + 1) * self.seeds.len() + 2 * self.held_out.len()
    }

    /// Searches on up to `threads` threads. Once `interrupt` is true, the best of what is done is what is found. `done` is told
    /// how many simulations are done.
    ///
    /// # Errors
    /// If a field cannot be written into the scenario, or the search was interrupted before the first point was run.
    pub fn run(
        &self,
        threads: usize,
        interrupt: &AtomicBool,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<Tuned, TuneError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .build();
        let runs = Runs {
            search: self,
            interrupt,
            done,
            count: AtomicUsize::new(0),
            known: Mutex::default(),
        };
        let bounds = vec![(0.0, 1.0); self.space.parameters.len()];
        let mut optimizer = Nsga2::new(
            Nsga2Config {
                population_size: self.population,
                generations: self.generations,
                seed: self.seeds[0],
            },
            FromStart {
                start: self.space.start(),
                others: RealBounds::new(bounds.clone()),
            },
            CompositeVariation {
                crossover: SimulatedBinaryCrossover::new(bounds.clone(), 15.0, 0.5),
                mutation: PolynomialMutation::new(
                    bounds,
                    20.0,
                    1.0 / self.space.parameters.len() as f64,
                ),
            },
        );
        let mut go = || {
            let start = runs.point(&self.space.start());
            optimizer.run(&runs);
            start
        };
        let start = match &pool {
            Ok(pool) => pool.install(go),
            Err(_) => go(),
        };
        let Some(start) = start else {
            return Err(TuneError::Nothing(
                "the search was interrupted before anything was done",
            ));
        };
        // Two threads may have run the same settings at once: what was found counts, not what was done twice.
        let simulations = (runs.points().len() * self.seeds.len()) as u32;
        let front = front(&runs.points());
        let best = best(&front, &start.worth)
            .cloned()
            .unwrap_or_else(|| start.clone());
        let held_out = |point: &Point| runs.worth(&point.settings, &self.held_out);
        Ok(Tuned {
            name: self.name.clone(),
            seeds: self.seeds.clone(),
            held_out_seeds: self.held_out.clone(),
            simulations,
            start_held_out: held_out(&start),
            best_held_out: held_out(&best),
            text: self.space.write(&self.text, &best.settings)?,
            start,
            best,
            front,
        })
    }
}

/// The first points of a search: the scenario as it is, and others by chance.
struct FromStart {
    start: Vec<f64>,
    others: RealBounds,
}

impl Initializer<Vec<f64>> for FromStart {
    fn initialize(&mut self, size: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
        let mut all = self.others.initialize(size, rng);
        if let Some(first) = all.first_mut() {
            first.clone_from(&self.start);
        }
        all
    }
}

/// Runs points, and remembers them: different places may be the same settings.
struct Runs<'a> {
    search: &'a Search,
    interrupt: &'a AtomicBool,
    done: &'a (dyn Fn(usize) + Sync),
    count: AtomicUsize,
    known: Mutex<BTreeMap<Vec<String>, Point>>,
}

impl Problem for Runs<'_> {
    type Decision = Vec<f64>;

    fn objectives(&self) -> ObjectiveSpace {
        ObjectiveSpace::new(vec![
            Objective::minimize("tail"),
            Objective::minimize("paused"),
            Objective::maximize("throughput"),
        ])
    }

    fn evaluate(&self, places: &Vec<f64>) -> Evaluation {
        match self.point(places) {
            Some(Point { worth, .. }) => Evaluation::constrained(
                vec![worth.tail_ns, worth.paused_ns, worth.throughput_bps],
                worth.failed,
            ),
            // Interrupted: the search ends soon, and this point is among nobody's best.
            None => Evaluation::constrained(vec![f64::MAX, f64::MAX, 0.0], 1.0),
        }
    }
}

impl Runs<'_> {
    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<Vec<String>, Point>> {
        self.known
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// All points that were run, in the order of their settings: not in that in which threads were done.
    fn points(&self) -> Vec<Point> {
        self.known().values().cloned().collect()
    }

    fn point(&self, places: &[f64]) -> Option<Point> {
        let settings = self.search.space.settings(places);
        let key: Vec<String> = settings
            .iter()
            .map(|setting| setting.value.clone())
            .collect();
        let known = self.known().get(&key).cloned();
        if known.is_some() {
            return known;
        }
        let worth = self.worth(&settings, &self.search.seeds)?;
        let point = Point { settings, worth };
        self.known().insert(key, point.clone());
        Some(point)
    }

    /// What settings are worth with these seeds; `None` if the search was interrupted.
    fn worth(&self, settings: &[Setting], seeds: &[u64]) -> Option<Worth> {
        let text = self.search.space.write(&self.search.text, settings);
        let scenario = text
            .ok()
            .and_then(|text| Scenario::from_toml(&text, &self.search.file).ok());
        let mut all = Vec::new();
        for &seed in seeds {
            if self.interrupt.load(Ordering::Relaxed) {
                return None;
            }
            let worth = match scenario.clone() {
                Some(scenario) => self.one(scenario, seed)?,
                None => Worth::NOTHING,
            };
            all.push(worth);
            (self.done)(self.count.fetch_add(1, Ordering::Relaxed) + 1);
        }
        Worth::mean(&all)
    }

    fn one(&self, mut scenario: Scenario, seed: u64) -> Option<Worth> {
        scenario.seed = Some(seed);
        let Ok(mut plan) = scenario.plan() else {
            return Some(Worth::NOTHING);
        };
        keep_only_what_is_compared(&mut plan, false);
        Some(match simulate(&plan, self.interrupt)? {
            Ok(results) => Worth::of(&Figures::of(&plan, &results, &[]), &results),
            Err(_) => Worth::NOTHING,
        })
    }
}

impl Worth {
    /// Of a point that cannot run.
    const NOTHING: Self = Self {
        tail_ns: 1e18,
        paused_ns: 1e18,
        throughput_bps: 0.0,
        pause_frames: 0.0,
        marks: 0.0,
        marked_first: 0.0,
        drops: 0.0,
        failed: 1.0,
    };

    fn of(figures: &Figures, results: &Results) -> Self {
        let value = |measure| figures.value(measure).unwrap_or(0.0);
        let tail = figures.value(Measure::CompletionP99);
        let paused: u64 = (results.ports.iter())
            .map(|port| port.class_total(ClassCounter::PauseReceivedDuration))
            .sum();
        let signals = &results.first_signals;
        let marked_first = (signals.mark.as_ref()).is_some_and(|mark| {
            (signals.pause.as_ref()).is_none_or(|pause| mark.time < pause.time)
        });
        let failed = !figures.survived || value(Measure::LosslessDrops) > 0.0;
        Self {
            tail_ns: tail
                .or_else(|| figures.value(Measure::JobTime))
                .unwrap_or(Self::NOTHING.tail_ns),
            paused_ns: paused as f64 / 1e3,
            throughput_bps: value(Measure::Throughput),
            pause_frames: value(Measure::PauseFrames),
            marks: value(Measure::Marks),
            marked_first: f64::from(u8::from(marked_first)),
            drops: value(Measure::Drops),
            failed: f64::from(u8::from(failed)),
        }
    }

    fn mean(all: &[Self]) -> Option<Self> {
        let count = all.len() as f64;
        let of = |field: fn(&Self) -> f64| all.iter().map(field).sum::<f64>() / count;
        (!all.is_empty()).then(|| Self {
            tail_ns: of(|worth| worth.tail_ns),
            paused_ns: of(|worth| worth.paused_ns),
            throughput_bps: of(|worth| worth.throughput_bps),
            pause_frames: of(|worth| worth.pause_frames),
            marks: of(|worth| worth.marks),
            marked_first: of(|worth| worth.marked_first),
            drops: of(|worth| worth.drops),
            failed: of(|worth| worth.failed),
        })
    }

    /// At least as good in all three, and better in one.
    fn beats(&self, other: &Self) -> bool {
        let [mine, its] = [self, other].map(|worth| {
            [
                worth.failed,
                worth.tail_ns,
                worth.paused_ns,
                -worth.throughput_bps,
            ]
        });
        let pairs = || mine.iter().zip(&its);
        pairs().all(|(mine, its)| mine <= its) && pairs().any(|(mine, its)| mine < its)
    }

    /// The sum of the three ratios to another one: 3 is as good. Where nothing was paused, any pause counts as its share of
    /// the tail.
    fn cost(&self, start: &Self) -> f64 {
        let paused = match start.paused_ns > 0.0 {
            true => self.paused_ns / start.paused_ns,
            false => 1.0 + self.paused_ns / start.tail_ns.max(1.0),
        };
        self.tail_ns / start.tail_ns.max(1e-3)
            + paused
            + start.throughput_bps / self.throughput_bps.max(1.0)
    }
}

/// Points that no other one beats, the shortest tail first.
fn front(points: &[Point]) -> Vec<Point> {
    let beaten = |point: &&Point| points.iter().any(|other| other.worth.beats(&point.worth));
    let mut front: Vec<Point> = points
        .iter()
        .filter(|point| !beaten(point))
        .cloned()
        .collect();
    front.sort_by(|a, b| a.worth.tail_ns.total_cmp(&b.worth.tail_ns));
    front
}

/// The point of the front with the least cost; one that fails nowhere, if there is one.
fn best<'a>(front: &'a [Point], start: &Worth) -> Option<&'a Point> {
    front.iter().min_by(|a, b| {
        let key = |point: &Point| (point.worth.failed, point.worth.cost(start));
        let (a, b) = (key(a), key(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    })
}
