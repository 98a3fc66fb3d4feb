//! Instructions per link hop, counted by valgrind: `cargo bench -p softfabric-fabric --bench instructions`.
//!
//! ```text
//! this program ──► valgrind --tool=callgrind this program --child W ──► counts only what `simulated` does
//! ```
//!
//! The count does not depend on how busy the machine is, so a change of one percent is a change of the program (or of
//! the compiler). Without valgrind nothing is measured, and that is said.

#[path = "support/mod.rs"]
mod support;

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use softfabric_fabric::engine::{RunOptions, run};
use softfabric_fabric::plan::{Plan, Timing};
use softfabric_units::Bytes;
use support::plans;

/// The name of a workload, and how to make it.
type Workload = (&'static str, fn() -> Plan);

const WORKLOADS: [Workload; 4] = [
    ("w1/exact", || plans::w1(Timing::Exact)),
    ("w1/hpcc", || plans::w1(Timing::Hpcc)),
    ("w2_tenth/exact", || plans::w2_tenth(Timing::Exact)),
    ("fat_tree_16/exact", || plans::big(16, Bytes::kib(16))),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = arguments.as_slice()
        && flag == "--child"
    {
        return child(name);
    }
    if !has_valgrind() {
        println!("SKIPPED: instructions per link hop: `valgrind --version` does not run here");
        return ExitCode::SUCCESS;
    }
    println!(
        "{:<20} {:>12} {:>16} {:>10}",
        "workload", "link hops", "instructions", "per hop"
    );
    for (name, _) in WORKLOADS {
        match count(name) {
            Ok((hops, instructions)) => {
                let each = instructions as f64 / hops as f64;
                println!("{name:<20} {hops:>12} {instructions:>16} {each:>10.1}");
            }
            Err(problem) => {
                eprintln!("{name}: {problem}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn has_valgrind() -> bool {
    let version = Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

/// What runs under valgrind.
fn child(name: &str) -> ExitCode {
    let Some((_, plan)) = WORKLOADS.iter().find(|(other, _)| *other == name) else {
        eprintln!("no workload is called {name}");
        return ExitCode::FAILURE;
    };
    println!("{}", simulated(&plan()));
    ExitCode::SUCCESS
}

/// The part that is counted; valgrind finds it by its name.
#[inline(never)]
fn simulated(plan: &Plan) -> u64 {
    let results = run(black_box(plan), &mut RunOptions::default()).expect("the plan makes sense");
    results.work.link_hops
}

/// Link hops and instructions of a workload.
fn count(name: &str) -> Result<(u64, u64), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let profile = this.with_file_name(format!("callgrind.{}.out", name.replace('/', "_")));
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--toggle-collect=*instructions*simulated*",
        ])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(&this)
        .args(["--child", name])
        .output()
        .map_err(|error| format!("valgrind did not start: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let hops = said.trim().parse().map_err(|_| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        format!("no number of link hops came back, but {said:?}:\n{complaint}")
    })?;
    match total(&profile) {
        Some(instructions) if instructions > 0 => Ok((hops, instructions)),
        _ => Err(format!(
            "{} has no count of instructions",
            profile.display()
        )),
    }
}

/// The sum of all costs in a profile of callgrind.
fn total(profile: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(profile).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals:"))?;
    line.split_whitespace().next()?.parse().ok()
}
