//! `softfabric diagnose`: who is to blame when counters rise.

pub(crate) mod arguments;
pub(crate) mod prometheus;
mod subnet;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use softfabric_operations::diagnose::Verdict;
use softfabric_operations::recording::{self, Recording, Skipped};
use softfabric_operations::sources::lldp;
use softfabric_operations::topology::TopologyError;
use softfabric_operations::{Diagnosis, diagnose};
use softfabric_store::{Range, Store};
use softfabric_units::Span;

use self::arguments::{DiagnoseArguments, LldpTable, Within};
use crate::failure::{self, Failure};
use crate::terminal;

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    about: &'a str,
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
    skipped: Left<'a>,
}

/// What was left out of the input.
#[derive(Serialize)]
struct Left<'a> {
    lines: u64,
    first: &'a [String],
    unknown_counters: &'a std::collections::BTreeMap<String, u64>,
}

/// Reads a recording and says what is wrong.
///
/// # Errors
/// If it cannot be read or is none.
pub(crate) fn run(arguments: &DiagnoseArguments) -> Result<ExitCode, Failure> {
    let within = Within {
        from: arguments.from,
        to: arguments.to,
        last: arguments.last,
    };
    let several = arguments.recordings.len() > 1;
    let mut recordings = Vec::new();
    for path in &arguments.recordings {
        let mut recording = read_within(path, within)?;
        if several {
            // Of one file, the line says enough.
            let skipped = std::mem::take(&mut recording.skipped);
            recording.skipped = skipped.from_source(&path.display().to_string());
        }
        recordings.push(recording);
    }
    if let Some(url) = &arguments.prometheus {
        recordings.push(prometheus::ask(
            url,
            &arguments.access,
            arguments.last,
            arguments.step,
        )?);
    }
    for path in &arguments.ibnetdiscover {
        recordings.push(subnet::read(path)?);
    }
    let mut recording = recording::merge(recordings).map_err(|error| contradiction(&error))?;
    lay_cables(&mut recording, &arguments.cables, &arguments.lldp)?;
    let diagnosis = diagnose(&recording.topology, &recording.history);
    if arguments.json {
        let document = Document {
            about: &recording.about,
            diagnosis: &diagnosis,
            skipped: Left {
                lines: recording.skipped.lines,
                first: &recording.skipped.first,
                unknown_counters: &recording.skipped.unknown_counters,
            },
        };
        terminal::print_json(&document)?;
    } else {
        warn_of(&recording.skipped);
        terminal::print(&diagnosis.to_string())?;
    }
    Ok(exit_code(diagnosis.verdict))
}

/// The exit code that says a verdict.
pub(crate) fn exit_code(verdict: Verdict) -> ExitCode {
    match verdict {
        Verdict::NotTheFabric => ExitCode::SUCCESS,
        Verdict::Cause(_) => ExitCode::from(failure::FINDING),
        Verdict::NotEnoughData => ExitCode::from(failure::BAD_INPUT),
    }
}

/// Adds the cables that recordings do not tell.
///
/// # Errors
/// If a file cannot be read, or a port has two neighbours.
pub(crate) fn lay_cables(
    recording: &mut Recording,
    lists: &[PathBuf],
    tables: &[LldpTable],
) -> Result<(), Failure> {
    let ports = recording.topology.ports().iter();
    let known: BTreeSet<String> = ports.map(|port| port.name.clone()).collect();
    let cables = read_cables(lists, tables, &known, &mut recording.skipped)?;
    let topology = &mut recording.topology;
    for (here, there) in cables {
        if let (Some(a), Some(b)) = (topology.find_port(&here), topology.find_port(&there)) {
            topology
                .connect(a, b)
                .map_err(|error| contradiction(&error))?;
        }
    }
    Ok(())
}

/// Cables of lists and LLDP tables, by the names of their ports; lines with other ports than the known ones are left out.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn read_cables(
    lists: &[PathBuf],
    tables: &[LldpTable],
    known: &BTreeSet<String>,
    skipped: &mut Skipped,
) -> Result<Vec<(String, String)>, Failure> {
    let text =
        |path: &Path| fs::read_to_string(path).map_err(|error| Failure::unreadable(path, error));
    let mut keep = |left: Skipped, path: &Path| {
        skipped.absorb(left.from_source(&path.display().to_string()));
    };
    let mut cables = Vec::new();
    for path in lists {
        let mut left = Skipped::default();
        cables.extend(lldp::list(&text(path)?, known, &mut left));
        keep(left, path);
    }
    for table in tables {
        let (path, mut left) = (&table.file, Skipped::default());
        cables.extend(lldp::table(&table.switch, &text(path)?, known, &mut left));
        keep(left, path);
    }
    Ok(cables)
}

/// Recordings that do not belong together.
pub(crate) fn contradiction(error: &TopologyError) -> Failure {
    Failure::Arguments {
        problem: error.to_string(),
        help: Some("Are all files of the same fabric and the same day?".to_owned()),
    }
}

/// Reads a recording, `-` from standard input, or the last ten minutes of a store.
///
/// # Errors
/// If it cannot be read or is none.
pub(crate) fn read(path: &Path) -> Result<Recording, Failure> {
    read_within(path, Within::RECENT)
}

/// Reads the last while of a store.
///
/// # Errors
/// If it cannot be read or is none.
pub(crate) fn read_last(path: &Path, last: Span) -> Result<Recording, Failure> {
    let within = Within {
        from: None,
        to: None,
        last,
    };
    read_within(path, within)
}

/// Reads a recording, or part of a store.
fn read_within(path: &Path, within: Within) -> Result<Recording, Failure> {
    if path.is_dir() {
        let store = Store::open(path)?;
        let end = store.extent()?.map_or(0, |extent| extent.to);
        let to = within.to.unwrap_or(end);
        let from = within
            .from
            .unwrap_or_else(|| to.saturating_sub(within.last.as_nanos()));
        return Ok(store.read(Range { from, to })?);
    }
    let input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path).map_err(|error| Failure::unreadable(path, error))?;
        Box::new(BufReader::with_capacity(1 << 16, file))
    };
    recording::read(input).map_err(|error| Failure::WrongKind {
        path: path.to_owned(),
        problem: error.to_string(),
        help: "softfabric run SCENARIO --counters FILE writes recordings.".to_owned(),
    })
}

/// Says what of a recording could not be used.
pub(crate) fn warn_of(skipped: &Skipped) {
    if skipped.lines > 0 {
        terminal::warn(&format!("{} lines were left out:", skipped.lines));
        for reason in &skipped.first {
            terminal::warn(reason);
        }
    }
    for (name, times) in &skipped.unknown_counters {
        terminal::warn(&format!(
            "the counter `{name}` is not known and was left out {times} times"
        ));
    }
}
