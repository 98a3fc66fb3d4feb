//! Runs an HPCC config file and prints what became of it, how fast it was and how much memory it took:
//!
//! ```text
//! cargo run --release -p softfabric-fabric --example measure -- crates/fabric/tests/hpcc/w2_dcqcn.conf
//! ```

#[path = "../benches/support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use softfabric_fabric::engine::{RunOptions, run};
use softfabric_fabric::import::hpcc::load_config;
use softfabric_fabric::plan::Timing;
use softfabric_fabric::results::Results;
use softfabric_telemetry::ClassCounter;
use softfabric_units::Bytes;
use support::{digest::digest, process};

/// Runs an HPCC config file and measures the engine.
#[derive(Parser)]
struct Arguments {
    /// The config file.
    config: PathBuf,
    /// How time on a link is counted.
    #[arg(long, value_enum, default_value = "exact")]
    timing: TimingChoice,
    /// Threads to use.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// How often to run.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Fail if more memory than this was resident at once.
    #[arg(long)]
    peak_at_most: Option<Bytes>,
}

#[derive(Clone, Copy, ValueEnum)]
enum TimingChoice {
    Exact,
    Hpcc,
}

#[expect(clippy::disallowed_methods, reason = "this program is a stopwatch")]
fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut plan = load_config(&arguments.config)?.plan;
    plan.timing = match arguments.timing {
        TimingChoice::Exact => Timing::Exact,
        TimingChoice::Hpcc => Timing::Hpcc,
    };
    for turn in 1..=arguments.repeat {
        let wall = Instant::now();
        let user = process::user_time().context("the system does not tell the time used")?;
        let mut options = RunOptions {
            threads: arguments.threads,
            ..RunOptions::default()
        };
        let results = run(&plan, &mut options)?;
        let wall = wall.elapsed().as_secs_f64();
        let user = (process::user_time().unwrap_or(user) - user).as_secs_f64();
        if turn == 1 {
            describe(&results);
        }
        let hops = results.work.link_hops as f64 / 1e6;
        println!(
            "run {turn}: user {user:.2} s, wall {wall:.2} s, {:.2} M hops/s of user time, {:.2} M hops/s",
            hops / user,
            hops / wall
        );
    }
    let peak = process::peak_memory().context("the system does not tell the memory used")?;
    println!("peak memory {:.1} MB", peak as f64 / 1e6);
    match arguments.peak_at_most {
        Some(limit) if peak > limit.as_u64() => {
            eprintln!("that is more than {limit}");
            Ok(ExitCode::FAILURE)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn describe(results: &Results) {
    let mut times: Vec<f64> = results
        .flows
        .iter()
        .filter_map(|flow| Some(flow.completion_time()?.as_micros_f64()))
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        times
            .get(((times.len() as f64 - 1.0) * share) as usize)
            .copied()
            .unwrap_or(0.0)
    };
    let marks: u64 = results
        .ports
        .iter()
        .flat_map(|port| &port.classes)
        .map(|class| class.value(ClassCounter::EcnMarked))
        .sum();
    let pauses = results.pause_log.iter().filter(|event| event.pause).count();
    println!(
        "{:?} at {}: {} of {} flows done, completion mean {:.1} p50 {:.1} p99 {:.1} max {:.1} us",
        results.ending,
        results.end,
        times.len(),
        results.flows.len(),
        times.iter().sum::<f64>() / times.len() as f64,
        at(0.5),
        at(0.99),
        at(1.0),
    );
    println!(
        "{pauses} pauses, {marks} marks, {} dropped, violations {:?}",
        results.conservation.dropped, results.conservation.violations
    );
    println!(
        "{} link hops, {} events, {} windows; digest {:016x}",
        results.work.link_hops,
        results.work.events,
        results.work.windows,
        digest(results)
    );
}
