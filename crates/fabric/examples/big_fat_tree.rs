//! Builds and runs a fat-tree of 65,536 hosts and 5,120 switches, each host sending to one other:
//!
//! ```text
//! cargo run --release -p softfabric-fabric --example big_fat_tree -- --bytes 64KiB
//! ```

#[path = "../benches/support/mod.rs"]
mod support;

use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use softfabric_fabric::engine::{RunOptions, run};
use softfabric_units::Bytes;
use support::{digest::digest, plans, process};

/// Runs a permutation over a fat-tree of three tiers and measures the engine.
#[derive(Parser)]
struct Arguments {
    /// The arity: k³/4 hosts, 5/4 k² switches.
    #[arg(long, default_value_t = 64)]
    k: u32,
    /// What each host sends.
    #[arg(long, default_value = "64KiB")]
    bytes: Bytes,
    /// Nobody sends: what the network alone costs.
    #[arg(long)]
    idle: bool,
    /// Threads to use.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Print a digest of all results, to compare two runs.
    #[arg(long)]
    digest: bool,
}

#[expect(clippy::disallowed_methods, reason = "this program is a stopwatch")]
fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let user = || process::user_time().context("the system does not tell the time used");
    let peak = || process::peak_memory().context("the system does not tell the memory used");
    let start = user()?;
    let mut plan = plans::big(arguments.k, arguments.bytes);
    if arguments.idle {
        plan.flows.clear();
    }
    println!(
        "plan: {} hosts, {} switches, {} links, {} flows of {}; user {:.2} s, peak memory {:.1} MB",
        plan.network.hosts().count(),
        plan.network.switches().count(),
        plan.network.links.len(),
        plan.flows.len(),
        arguments.bytes,
        (user()? - start).as_secs_f64(),
        peak()? as f64 / 1e6,
    );
    let wall = Instant::now();
    let start = user()?;
    let mut options = RunOptions {
        threads: arguments.threads,
        ..RunOptions::default()
    };
    let results = run(&plan, &mut options)?;
    let wall = wall.elapsed().as_secs_f64();
    let used = (user()? - start).as_secs_f64();
    let hops = results.work.link_hops as f64 / 1e6;
    println!(
        "run: {:?} at {}, {} dropped, violations {:?}",
        results.ending, results.end, results.conservation.dropped, results.conservation.violations
    );
    println!(
        "{} link hops, {} events, {} windows; user {used:.2} s, wall {wall:.2} s, {:.2} M hops/s of user time",
        results.work.link_hops,
        results.work.events,
        results.work.windows,
        hops / used
    );
    println!("peak memory {:.1} MB", peak()? as f64 / 1e6);
    if arguments.digest {
        println!("digest {:016x}", digest(&results));
    }
    Ok(())
}
