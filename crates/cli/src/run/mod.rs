//! `softfabric run`: from a file to a table, a report and whatever else was asked for.

pub(crate) mod counters;
pub(crate) mod input;
pub(crate) mod many;
mod output;
mod progress;
mod simulate;

use std::path::Path;
use std::process::ExitCode;

use softfabric_fabric::export::findings;
use softfabric_fabric::plan::{Plan, Severity};

pub(crate) use self::input::scenario_text;
pub(crate) use self::output::quoted;
pub(crate) use self::simulate::simulate;
use crate::arguments::RunArguments;
use crate::failure::{self, Failure};
use crate::summary;
use crate::terminal::{self, Stream};

/// Runs the scenario and writes all outputs.
///
/// # Errors
/// If the input is wrong: then nothing ran, and nothing was written.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let mut input = input::load(&arguments.scenario, arguments.seed)?;
    for note in &input.notes {
        terminal::warn(note);
    }
    let captures = input::add_captures(&mut input.plan, &arguments.pcap)?;
    input.plan.recording.check_wire |= arguments.check_wire;
    input.plan.recording.counters = arguments.counters.as_ref().map(|_| arguments.poll);
    warn_of_doubtful_settings(&input.plan);

    let run = simulate(&input.plan, usize::from(arguments.threads), arguments.quiet)?;
    let found = findings::find(&input.plan, &run.results);
    let outputs = output::Outputs {
        arguments,
        input: &input,
        run: &run,
        findings: &found,
        captures: &captures,
    };
    // Standard output belongs to the JSON document, if that goes there.
    let stream = if outputs.json_goes_to_standard_output() {
        Stream::Error
    } else {
        Stream::Output
    };
    let mut unwritten = outputs.write_files();
    if arguments.quiet {
        for finding in &found {
            let _ = Stream::Error.print(&summary::render_finding(finding, Stream::Error.width()));
        }
    } else {
        let table = summary::render(
            &input.plan,
            &run.results,
            &found,
            run.wall_seconds,
            stream.width(),
        );
        let printed = stream.print(&table);
        unwritten.extend(
            printed
                .err()
                .map(|error| Failure::unwritable("the terminal".as_ref(), error)),
        );
    }
    let report = outputs.write_report();
    for failure in unwritten.iter().chain(report.as_ref().err()) {
        terminal::complain(failure);
    }
    if let (Ok(Some(path)), false) = (&report, arguments.quiet) {
        let printed = stream.print(&format!("report: {}\n", path.display()));
        unwritten.extend(
            printed
                .err()
                .map(|error| Failure::unwritable("the terminal".as_ref(), error)),
        );
    }
    Ok(if !unwritten.is_empty() || report.is_err() {
        ExitCode::from(failure::BAD_INPUT)
    } else if findings::has_failure(&found) {
        ExitCode::from(failure::FINDING)
    } else {
        ExitCode::SUCCESS
    })
}

/// Writes a text to a file, whole or not at all; `-` is standard output.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    output::write(path, &|out| out.write_all(text.as_bytes()))
}

/// Says what in the plan makes sense, but perhaps not the sense that was meant.
fn warn_of_doubtful_settings(plan: &Plan) {
    for finding in plan.check() {
        if finding.severity == Severity::Warning {
            warn_with_advice(
                &format!("{}: {}", finding.place, finding.problem),
                &finding.advice,
            );
        }
    }
    if plan.network.hosts().count() == 0 {
        terminal::warn("the network has no hosts");
    } else if plan.flows.is_empty() {
        warn_with_advice(
            "there is no traffic, so there is nothing to simulate",
            "add a [[workload]] to the scenario",
        );
    }
}

fn warn_with_advice(problem: &str, advice: &str) {
    terminal::warn(problem);
    if !advice.is_empty() {
        const INDENT: usize = "warning: → ".len() - "→".len() + 1;
        let advice = summary::wrap(advice, Stream::Error.width(), INDENT);
        let _ = Stream::Error.print(&format!("         → {advice}\n"));
    }
}
