//! The engine: takes a [`Plan`], returns [`Results`].
//!
//! ```text
//! Plan ─► build ─► nodes, wires, routes ─► driver (windows or one by one) ─► collect ─► Results
//!                        ▲                        │
//!                        └── timed actions ◄──────┘ (links that fail, hosts that storm …)
//! ```
//!
//! Invariant: equal plans give equal results, bit for bit, on every machine and for any number of threads.

mod build;
mod capture;
mod collect;
mod deadlock;
mod drive;
mod event;
mod frame;
mod host;
mod ideal;
mod infiniband;
mod jobs;
mod link;
mod machine;
mod node;
mod pause_book;
mod poll;
mod port;
mod program;
mod recorder;
mod routing;
mod sweep;
mod switch;
mod tcp;
mod world;

#[cfg(test)]
mod counter_tests;
#[cfg(test)]
mod feature_tests;
#[cfg(test)]
mod map_tests;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};

use softfabric_units::Time;

use crate::plan::{Plan, PlanError, Severity, unroutable};
use crate::results::{Ending, Results};
use drive::{Pause, Until, Watcher};
use infiniband::Tables;
use machine::Machine;
pub(crate) use routing::table_entries;
use sweep::Sweeps;

/// How to run a plan. None of it changes a result.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// Threads to use; zero counts as one. HPCC timing always uses one.
    pub threads: usize,
    /// Set it to true to end the run early; what has happened until then is returned.
    pub interrupt: Option<&'a AtomicBool>,
    /// Told now and then how far the run is.
    pub progress: Option<&'a mut (dyn FnMut(Progress) + Send)>,
    /// Which driver makes time pass.
    pub driver: Driver,
}

/// Which driver makes time pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Driver {
    /// The one that fits the plan's timing: windows for exact timing, one event at a time for HPCC timing.
    #[default]
    Automatic,
    /// One event at a time from one list, whatever the timing. Slower; the same results.
    Sequential,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The simulated time.
    pub simulated: Time,
    /// The time at which the run ends at the latest.
    pub stop: Time,
    /// Flows that are done or have failed, and ranks of jobs that have come to their end.
    pub flows_done: u64,
    /// All flows, and all ranks that have something to do.
    pub flows: u64,
    /// Packets that have arrived at the end of a link.
    pub link_hops: u64,
}

/// Runs a plan to its end.
///
/// # Errors
/// [`PlanError`] with every finding of [`Plan::check`] that is an error; nothing has run then.
pub fn run(plan: &Plan, options: &mut RunOptions<'_>) -> Result<Results, PlanError> {
    let errors: Vec<_> = plan
        .check_but_routes()
        .into_iter()
        .filter(|finding| finding.severity == Severity::Error)
        .collect();
    if !errors.is_empty() {
        return Err(PlanError(errors));
    }
    let up = vec![true; plan.network.links.len()];
    let tables = match plan.link_layer.infiniband() {
        Some(settings) => Some(
            Tables::new(plan, settings, &up)
                .map_err(|error| PlanError(vec![unroutable(&error)]))?
                .with_rates(plan, settings),
        ),
        None => None,
    };
    let (mut world, nodes) = build::build(plan, tables);
    let work = world.flows_left.load(Ordering::Relaxed);
    let mut machine = Machine::new(plan, nodes, options);
    machine.start_flows(plan);
    let mut actions = plan.actions.clone();
    actions.sort_by_key(|action| action.at);
    let mut actions = actions
        .into_iter()
        .filter(|action| action.at < plan.stop.at)
        .peekable();
    let mut sweeps = Sweeps::new(plan);
    let mut last_action = Time::ZERO;
    let pause = loop {
        let next_action = actions.peek().map_or(Time::NEVER, |action| action.at);
        let next_sweep = sweeps.next();
        let end = plan.stop.at.min(next_action).min(next_sweep);
        let flows = work;
        let flows_left = &world.flows_left;
        let report = &mut options.progress;
        let mut forward = |simulated: Time, link_hops: u64| {
            if let Some(report) = report {
                let flows_done = flows - flows_left.load(Ordering::Relaxed).min(flows);
                report(Progress {
                    simulated,
                    stop: plan.stop.at,
                    flows_done,
                    flows,
                    link_hops,
                });
            }
        };
        let mut watcher = Watcher {
            interrupt: options.interrupt,
            progress: Some(&mut forward),
        };
        // With actions to come, an empty network is not the end: a source may have been stopped by a failed link.
        let until = Until {
            end,
            when_done: plan.stop.when_done,
        };
        let pause = machine.run(&world, until, &mut watcher);
        if !matches!(pause, Pause::Reached | Pause::Drained) {
            break pause;
        }
        if next_sweep < next_action {
            last_action = next_sweep;
            sweeps.run(&mut machine, &mut world);
        } else if let Some(action) = actions.next() {
            last_action = action.at;
            if machine.apply(&action, &mut world) {
                sweeps.link_changed(action.at, machine.links_up());
            }
        } else {
            break pause;
        }
    };
    let flows_left = world.flows_left.load(Ordering::Relaxed);
    let ending = match pause {
        Pause::Interrupted => Ending::Interrupted,
        _ if flows_left == 0 => Ending::Completed,
        Pause::Drained if plan.stop.when_done => Ending::Stalled,
        _ => Ending::StopTime,
    };
    let mut results = collect::collect(&world, machine, ending, last_action);
    results.repairs = sweeps.repairs;
    Ok(results)
}
