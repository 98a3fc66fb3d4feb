//! `trace` of `[[job]]`: a file that says what ranks do.

use std::path::{Path, PathBuf};

use crate::import::{ImportError, beside};
use crate::job::trace::{Format, Trace};
use crate::scenario::error::Problems;
use crate::scenario::{JobEntry, TraceFormat};

/// The trace of a job, if it has one instead of steps; `None` if something is wrong.
pub(super) fn read(
    entry: &JobEntry,
    field: &str,
    ranks: usize,
    problems: &mut Problems<'_>,
) -> Option<Option<Trace>> {
    let Some(name) = &entry.trace else {
        let settings = [
            ("format", entry.format.is_some()),
            ("layers", entry.layers.is_some()),
            ("first_layer", entry.first_layer.is_some()),
            ("fewer_ranks", entry.fewer_ranks.is_some()),
        ];
        if let Some((setting, _)) = settings.iter().find(|(_, given)| *given) {
            let allowed = "only together with `trace`";
            problems.add(format!("{field}.{setting}"), "no trace", allowed, None);
            return None;
        }
        if entry.step.is_empty() {
            let allowed = "one step or more, such as `kind = \"all_reduce\"`, or a `trace`";
            problems.add(format!("{field}.step"), "no step", allowed, None);
            return None;
        }
        return Some(None);
    };
    if !entry.step.is_empty() {
        let allowed = "either steps or a trace";
        problems.add(format!("{field}.trace"), "a trace and steps", allowed, None);
        return None;
    }
    let path = beside(Path::new(&problems.source.file), name);
    let trace = match Trace::read(&path, entry.format.map(format)) {
        Ok(trace) => trace,
        Err(error) => {
            refuse(&error, field, problems);
            return None;
        }
    };
    let trace = fit(trace, entry, ranks, field, problems)?;
    let wanted = trace.ranks() as usize;
    if wanted > ranks {
        let found = format!("a trace of {wanted} ranks on {ranks}");
        let allowed = format!("at least {wanted} ranks, one a NIC of `hosts`");
        let advice = match trace {
            Trace::Simai(_) => "give more hosts or NICs, or set `fewer_ranks = true`",
            Trace::Goal(_) | Trace::Chakra(_) => "give more hosts, or hosts with more NICs",
        };
        problems.add(
            format!("{field}.trace"),
            found,
            allowed,
            Some(advice.to_owned()),
        );
        return None;
    }
    Some(Some(trace))
}

/// The part of a workload that is wanted.
fn fit(
    trace: Trace,
    entry: &JobEntry,
    ranks: usize,
    field: &str,
    problems: &mut Problems<'_>,
) -> Option<Trace> {
    let settings = [
        ("layers", entry.layers.is_some()),
        ("first_layer", entry.first_layer.is_some()),
        ("fewer_ranks", entry.fewer_ranks.is_some()),
    ];
    let given = settings.iter().find(|(_, given)| *given);
    match (trace, given) {
        (Trace::Simai(mut workload), Some(_)) => {
            let kept = workload.keep_layers(entry.first_layer.unwrap_or(0), entry.layers);
            let fitted = kept.and_then(|()| match entry.fewer_ranks {
                Some(true) => workload.fit(ranks as u32),
                Some(false) | None => Ok(()),
            });
            match fitted {
                Ok(()) => Some(Trace::Simai(workload)),
                Err(error) => {
                    refuse(&error, field, problems);
                    None
                }
            }
        }
        (Trace::Goal(_) | Trace::Chakra(_), Some((setting, _))) => {
            let allowed = "only with a trace in the form `simai`";
            let found = "a trace of another form";
            problems.add(format!("{field}.{setting}"), found, allowed, None);
            None
        }
        (trace, None) => Some(trace),
    }
}

/// What a job with a trace is called: as its file, without extensions.
pub(super) fn name(entry: &JobEntry) -> String {
    let path = entry.trace.as_ref().map(PathBuf::from).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// A problem of a trace.
pub(super) fn refuse(error: &ImportError, field: &str, problems: &mut Problems<'_>) {
    problems.add_of_file(format!("{field}.trace"), error);
}

fn format(format: TraceFormat) -> Format {
    match format {
        TraceFormat::Goal => Format::Goal,
        TraceFormat::Simai => Format::Simai,
        TraceFormat::Chakra => Format::Chakra,
    }
}
