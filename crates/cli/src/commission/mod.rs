//! `softfabric commission`: what every host and pair can do on an idle fabric, as a baseline, and who is slower than the rest.

pub(crate) mod arguments;
mod measured;
mod perftest;
mod rounds;
mod simulated;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use softfabric_operations::baseline::{Baseline, Conditions, Outliers, Pair, Pattern, PortAtWork};

use self::arguments::CommissionArguments;
use crate::clock;
use crate::failure::{self, Failure};
use crate::format;
use crate::run;
use crate::summary::wrap;
use crate::terminal::{self, BAD, BOLD, FAINT, GOOD, Stream};

/// So many outliers are listed.
const LISTED: usize = 20;

/// What was measured, of whatever.
#[derive(Default)]
struct Measured {
    pairs: Vec<Pair>,
    ports: Vec<PortAtWork>,
    /// Pairs that could not be measured, and why.
    failed: Vec<String>,
    settings: BTreeMap<String, String>,
    bytes: Option<u64>,
    seed: Option<u64>,
}

/// Measures, writes the baseline, and says who is slower than the rest.
///
/// # Errors
/// If the scenario or the commands are wrong, or the baseline cannot be written.
pub(crate) fn run(arguments: &CommissionArguments) -> Result<ExitCode, Failure> {
    let (measured, about, tool, made) = match (&arguments.scenario, &arguments.pair_command) {
        (Some(scenario), _) => {
            let measured = simulated::measure(arguments, scenario)?;
            let name = scenario.file_name().unwrap_or(scenario.as_os_str());
            let about = name.to_string_lossy().into_owned();
            (measured, about, "the simulator".to_owned(), String::new())
        }
        (None, Some(command)) => {
            let made = clock::date(clock::unix_nanos());
            let progress = |done: usize, all: usize| {
                if !arguments.quiet && terminal::is_watched() {
                    let _ = Stream::Error.print(&format!("round {} of {all}\n", done + 1));
                }
            };
            let measured = measured::measure(arguments, command, &progress)?;
            let about = format!("{} hosts", arguments.hosts.len());
            let tool = command
                .split_whitespace()
                .find(|word| word.contains("ib_") || word.contains("perftest"));
            (measured, about, tool.unwrap_or(command).to_owned(), made)
        }
        (None, None) => unreachable!("clap requires one of the two"),
    };
    if measured.pairs.is_empty() {
        return Err(Failure::Arguments {
            problem: match measured.failed.first() {
                Some(first) => format!("no pair could be measured: {first}"),
                None => "there is no pair to measure".to_owned(),
            },
            help: Some("Does the command work by hand, for one pair?".to_owned()),
        });
    }
    let command: Vec<String> = std::env::args_os()
        .map(|word| run::quoted(&word.to_string_lossy()))
        .collect();
    let conditions = Conditions {
        made,
        command: command.join(" "),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tool,
        pattern: match arguments.collective {
            true => Pattern::Rings,
            false => Pattern::Pairs,
        },
        bytes: measured.bytes,
        seed: measured.seed,
        settings: measured.settings,
    };
    let mut baseline = Baseline::new(about, conditions, measured.pairs);
    baseline.ports = measured.ports;
    let outliers = baseline.outliers();
    let to_output = arguments.output.as_deref() == Some(Path::new("-"));
    if !arguments.quiet {
        let stream = if to_output {
            Stream::Error
        } else {
            Stream::Output
        };
        let text = summary(&baseline, &outliers, &measured.failed, stream.width());
        let printed = stream.print(&text);
        printed.map_err(|error| Failure::unwritable("the terminal".as_ref(), error))?;
    }
    if let Some(path) = &arguments.output {
        let text = baseline
            .write()
            .map_err(|error| Failure::unwritable(path, std::io::Error::other(error)))?;
        run::write_text(path, &text)?;
        if !arguments.quiet && !to_output {
            terminal::print(&format!("baseline: {}\n", path.display()))?;
        }
    }
    Ok(
        match outliers.found.is_empty() && measured.failed.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(failure::FINDING),
        },
    )
}

fn summary(baseline: &Baseline, outliers: &Outliers, failed: &[String], width: usize) -> String {
    let pattern = baseline.conditions.pattern.name();
    let rounds = baseline
        .pairs
        .iter()
        .map(|pair| pair.round)
        .max()
        .map_or(0, |last| last + 1);
    let mut text = format!(
        "{BOLD}{}{BOLD:#}\n{FAINT}{}{FAINT:#}\n",
        wrap(&baseline.about, width, 0),
        wrap(
            &format!(
                "{} hosts, {} ways in {rounds} {}: {pattern}",
                baseline.hosts.len(),
                baseline.pairs.len(),
                if rounds == 1 { "round" } else { "rounds" }
            ),
            width,
            0
        )
    );
    let line = format!(
        "median {}, from {} to {}",
        format::bit_rate(outliers.median_bps),
        format::bit_rate(outliers.least_bps),
        format::bit_rate(outliers.most_bps)
    );
    text.push_str(&format!("bandwidth  {}\n", wrap(&line, width, 11)));
    if let Some(latency) = outliers.latency_ns {
        text.push_str(&format!(
            "latency    median {}\n",
            format::nanoseconds(latency)
        ));
    }
    for problem in failed.iter().take(LISTED) {
        let line = wrap(&format!("not measured: {problem}"), width, 2);
        text.push_str(&format!("{BAD}{line}{BAD:#}\n"));
    }
    if failed.len() > LISTED {
        text.push_str(&format!("and {} more\n", failed.len() - LISTED));
    }
    for outlier in outliers.found.iter().take(LISTED) {
        text.push_str(&format!(
            "{BAD}{}{BAD:#}\n",
            wrap(&outlier.to_string(), width, 2)
        ));
    }
    if outliers.found.len() > LISTED {
        text.push_str(&format!("and {} more\n", outliers.found.len() - LISTED));
    }
    if outliers.found.is_empty() && failed.is_empty() {
        text.push_str(&format!("{GOOD}nobody is slower than the rest{GOOD:#}\n"));
    }
    text
}
