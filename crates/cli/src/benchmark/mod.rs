//! `softfabric benchmark diagnose`: how often the diagnosis is right, where the truth is known.
//!
//! ```text
//! case (fault, fabric, load, seed) ─► scenario ─► run, polled ─► what real devices tell ─► view (whole, ports missing, late)
//!                                                                                            ├─► diagnosis ─┐
//!                                                        truth: cause and ports ─────────────┼──────────────┼─► score
//!                                                                                            └─► baselines ─┘
//! ```
//!
//! The diagnosis sees counters and cables, and nothing else of a run.

pub(crate) mod arguments;
mod baseline;
mod case;
mod score;
mod view;

use std::process::ExitCode;

use softfabric_fabric::engine::{self, RunOptions};
use softfabric_fabric::results::Results;
use softfabric_fabric::scenario::Scenario;
use softfabric_operations::diagnose::Cause;
use softfabric_telemetry::PortCounter;
use softfabric_units::Span;

use self::arguments::{BenchmarkArguments, BenchmarkCommand, DiagnoseBenchmarkArguments};
use self::case::{Case, Prepared};
use self::score::{Board, Outcome};
use self::view::View;
use crate::failure::Failure;
use crate::run::counters::Wiring;
use crate::terminal;

/// Runs a benchmark.
///
/// # Errors
/// If its result cannot be printed.
pub(crate) fn run(arguments: &BenchmarkArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        BenchmarkCommand::Diagnose(arguments) => diagnose(arguments),
    }
}

fn diagnose(arguments: &DiagnoseBenchmarkArguments) -> Result<ExitCode, Failure> {
    let cases = case::cases(arguments.seed, arguments.seeds);
    let cases: Vec<Case> = cases
        .into_iter()
        .filter(|case| {
            arguments
                .only
                .as_ref()
                .is_none_or(|only| case.name().contains(only))
        })
        .collect();
    let mut board = Board::default();
    for (number, case) in cases.iter().enumerate() {
        if terminal::is_watched() && !arguments.json {
            eprint!("\r{} of {} cases", number + 1, cases.len());
        }
        let Some((prepared, wiring, history)) = record(case, arguments.poll)? else {
            board.impossible += 1;
            continue;
        };
        for view in View::ALL {
            let seen = view.of(&wiring.topology, &history, case.seed);
            let outcome = Outcome::of(case, &prepared.truth, view, &wiring.topology, &seen);
            if arguments.verbose && !outcome.is_right() {
                terminal::warn(&outcome.complaint());
            }
            board.outcomes.push(outcome);
        }
    }
    if terminal::is_watched() && !arguments.json {
        eprintln!();
    }
    match arguments.json {
        true => terminal::print_json(&board)?,
        false => terminal::print(&board.table(arguments.poll))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A cable that has damaged fewer packets than this has done nothing yet that could be seen.
const NOTICEABLE: u64 = 6;

fn damaged(results: &Results) -> u64 {
    let ports = results.ports.iter();
    ports
        .map(|port| port.port.value(PortCounter::ReceiveErrors))
        .sum()
}

/// Runs a case. `None` if the fault cannot be in this fabric with this seed.
fn record(
    case: &Case,
    poll: Span,
) -> Result<Option<(Prepared, Wiring, softfabric_operations::History)>, Failure> {
    let Some(prepared) = case.prepare()? else {
        return Ok(None);
    };
    let mut plan = Scenario::from_toml(&prepared.scenario, &case.name())?.plan()?;
    plan.recording.counters = Some(poll);
    plan.recording.interval = None;
    let results = engine::run(&plan, &mut RunOptions::default())?;
    let wiring = Wiring::new(&plan).map_err(|error| Failure::Arguments {
        problem: error.to_string(),
        help: None,
    })?;
    if prepared.truth.cause == Some(Cause::DegradedLink) && damaged(&results) < NOTICEABLE {
        return Ok(None);
    }
    let history = wiring.history(&results);
    Ok(Some((prepared, wiring, history)))
}
