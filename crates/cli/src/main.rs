//! `softfabric`, the command line: it reads inputs, runs the simulator, and writes what people and programs read.
//!
//! ```text
//! arguments ─► run/input ─► Plan ─► run/simulate ─► Results ─┬► summary     the table in the terminal
//!                                                            ├► report      the HTML page
//!                                                            └► run/output  JSON, CSV, pcapng, HPCC's files
//! ```
//!
//! The library `softfabric-fabric` does the work; here is only what talks to people. Exit codes: 0 all well, 1 a run
//! showed a failure (lossless drops, a deadlock, failed flows, a broken conservation law), 2 misuse or bad input.

mod arguments;
mod benchmark;
mod clock;
mod commands;
mod commission;
mod compare;
mod diagnose;
mod exec;
mod export;
mod failure;
mod http;
mod ib;
mod lint;
mod net;
mod record;
mod report;
mod run;
#[cfg(test)]
#[path = "../../fabric/src/export/sample.rs"]
mod sample;
mod sm;
mod summary;
mod table;
mod terminal;
mod tune;
mod watch;
mod what_if;

use std::process::ExitCode;

use clap::Parser;
use softfabric_fabric::export::format;

use crate::arguments::{Arguments, Command};

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Exec(arguments) => exec::exec(&arguments),
        Command::Device(arguments) => commands::device(&arguments),
        Command::Ib(arguments) => ib::ib(&arguments),
        Command::Sm(arguments) => sm::sm(&arguments),
        Command::Diagnose(arguments) => diagnose::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Commission(arguments) => commission::run(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Lint(arguments) => lint::run(&arguments),
        Command::WhatIf(arguments) => what_if::run(&arguments),
        Command::Benchmark(arguments) => benchmark::run(&arguments),
        Command::Headroom(arguments) => commands::headroom(&arguments),
        Command::Import(arguments) => commands::import(&arguments),
        Command::Schema(arguments) => commands::schema(&arguments),
        Command::Presets(arguments) => commands::presets(&arguments),
        Command::Counters(arguments) => commands::counters(&arguments),
        Command::Completions(arguments) => commands::completions(&arguments),
        Command::Man(arguments) => commands::manual(&arguments),
    };
    outcome.unwrap_or_else(|failure| {
        terminal::complain(&failure);
        ExitCode::from(failure::BAD_INPUT)
    })
}
