//! `softfabric compare`: one scenario over several technologies.
//!
//! ```text
//! file, --set, --only ─► compare::Prepared ─► runs on all cores ─► compare::Comparison ─┬► text  in the terminal
//!                                                                                       ├► page  HTML
//!                                                                                       └► JSON
//! ```

pub(crate) mod arguments;
mod page;
mod text;

use std::path::Path;
use std::process::ExitCode;

use softfabric_fabric::compare::{
    Comparison, Measure, PrepareError, Prepared, Request, TECHNOLOGIES,
};
use softfabric_fabric::scenario::FabricKind;

use self::arguments::CompareArguments;
use crate::failure::{self, Failure};
use crate::run::{self, many};
use crate::terminal::{self, Stream};

/// Compares, and writes all outputs.
///
/// # Errors
/// If the input is wrong: then nothing ran, and nothing was written.
pub(crate) fn run(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let text = run::scenario_text(&arguments.scenario)?;
    let request = Request {
        technologies: technologies(arguments),
        grid: (arguments.set.iter())
            .map(|axis| (axis.field.clone(), axis.values.clone()))
            .collect(),
        seeds: arguments.seeds,
        thorough: !arguments.quick,
    };
    let name = arguments.scenario.display().to_string();
    let prepared = Prepared::new(&text, &name, &request).map_err(failure_of)?;
    let comparison = many::run(
        prepared.runs(),
        arguments.threads.map(usize::from),
        arguments.quiet,
        |threads, interrupt, done| prepared.run(threads, interrupt, done),
    );

    let json_on_output = arguments.json.as_deref() == Some(Path::new("-"));
    let stream = if json_on_output {
        Stream::Error
    } else {
        Stream::Output
    };
    let mut unwritten = Vec::new();
    if let Some(path) = &arguments.json {
        let written = json(&comparison).and_then(|json| run::write_text(path, &json));
        unwritten.extend(written.err());
    }
    if !arguments.quiet {
        let printed = stream.print(&text::render(&comparison, stream.width()));
        let failed = |error| Failure::unwritable("the terminal".as_ref(), error);
        unwritten.extend(printed.err().map(failed));
    }
    if let Some(path) = &arguments.html {
        let page = page::render(&comparison, &command(arguments));
        match run::write_text(path, &page) {
            Err(failure) => unwritten.push(failure),
            Ok(()) if !arguments.quiet => {
                let _ = stream.print(&format!("report: {}\n", path.display()));
            }
            Ok(()) => {}
        }
    }
    for failure in &unwritten {
        terminal::complain(failure);
    }
    Ok(match (unwritten.is_empty(), is_sound(&comparison)) {
        (false, _) => ExitCode::from(failure::BAD_INPUT),
        (true, false) => ExitCode::from(failure::FINDING),
        (true, true) => ExitCode::SUCCESS,
    })
}

/// The technologies that were asked for, each once.
fn technologies(arguments: &CompareArguments) -> Vec<FabricKind> {
    let mut all = Vec::new();
    for kind in arguments.only.iter().map(|only| only.kind()) {
        if !all.contains(&kind) {
            all.push(kind);
        }
    }
    all
}

/// Whether something ran, all of it came to its end, and no lossless class lost a packet.
fn is_sound(comparison: &Comparison) -> bool {
    let runs = comparison.variants.iter().flat_map(|variant| &variant.runs);
    let mut ran = false;
    for run in runs {
        ran = true;
        if !run.survived || run.value(Measure::LosslessDrops).unwrap_or(0.0) > 0.0 {
            return false;
        }
    }
    ran
}

fn failure_of(error: PrepareError) -> Failure {
    match error {
        PrepareError::Scenario(error) => error.into(),
        PrepareError::Edit(error) => Failure::Arguments {
            problem: format!("--set {error}"),
            help: Some("docs/scenarios.md has all fields.".to_owned()),
        },
    }
}

/// The figures with the spread of each measure over the seeds, and the table of measures.
fn json(comparison: &Comparison) -> Result<String, Failure> {
    let mut document = serde_json::to_value(comparison).unwrap_or_default();
    let definitions: Vec<_> = Measure::ALL
        .iter()
        .map(|measure| measure.definition())
        .collect();
    document["measures"] = serde_json::to_value(definitions).unwrap_or_default();
    for (at, variant) in comparison.variants.iter().enumerate() {
        let spreads: serde_json::Map<String, serde_json::Value> = (Measure::ALL.iter())
            .filter_map(|measure| {
                let spread = serde_json::to_value(variant.spread(*measure)?).ok()?;
                Some((measure.definition().id.to_owned(), spread))
            })
            .collect();
        document["variants"][at]["figures"] = spreads.into();
    }
    terminal::json(&document)
}

/// The command that repeats the comparison.
fn command(arguments: &CompareArguments) -> String {
    let mut command = format!(
        "softfabric compare {}",
        run::quoted(&arguments.scenario.display().to_string())
    );
    let technologies = technologies(arguments);
    if technologies != TECHNOLOGIES {
        let words: Vec<_> = technologies.iter().map(|kind| kind.word()).collect();
        command.push_str(&format!(" --only {}", words.join(",")));
    }
    for axis in &arguments.set {
        let setting = format!("{}={}", axis.field, axis.values.join(","));
        command.push_str(&format!(" --set {}", run::quoted(&setting)));
    }
    command.push_str(&format!(" --seeds {}", arguments.seeds));
    if arguments.quick {
        command.push_str(" --quick");
    }
    command
}
