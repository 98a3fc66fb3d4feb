//! `softfabric export`: counters of a recording for Prometheus.

pub(crate) mod arguments;

use std::process::ExitCode;

use softfabric_operations::openmetrics;
use softfabric_operations::recording::{self, Recording};
use softfabric_units::Span;

use self::arguments::ExportArguments;
use crate::clock::Clock;
use crate::diagnose;
use crate::failure::Failure;
use crate::http::{self, Answer, Site};
use crate::terminal;

/// Prints or serves the counters.
///
/// # Errors
/// If a recording cannot be read or is none, or the address cannot be had.
pub(crate) fn run(arguments: &ExportArguments) -> Result<ExitCode, Failure> {
    let recordings = arguments.recordings.iter().map(|path| diagnose::read(path));
    let recordings: Vec<Recording> = recordings.collect::<Result<_, _>>()?;
    let recording =
        recording::merge(recordings).map_err(|error| diagnose::contradiction(&error))?;
    let Some(span) = recording.history.span() else {
        return Err(Failure::Arguments {
            problem: "the recording has no samples".to_owned(),
            help: None,
        });
    };
    let Some(address) = arguments.listen else {
        let at = arguments
            .at
            .map_or(span.to, |after| span.from.saturating_add(after));
        let (topology, history) = (&recording.topology, &recording.history);
        terminal::print(&openmetrics::exposition(topology, history, at, 1))?;
        return Ok(ExitCode::SUCCESS);
    };
    let (listener, served) = http::listen(address)?;
    terminal::print(&format!("serving http://{served}/metrics\n"))?;
    let clock = Clock::start();
    let slower = arguments.slower;
    let answer = move |path: &str| match path {
        "/metrics" => {
            let passed = Span::picos(clock.now().as_picos() / slower);
            let at = span.from.saturating_add(passed).min(span.to);
            let (topology, history) = (&recording.topology, &recording.history);
            Answer::Found {
                media_type: openmetrics::MEDIA_TYPE,
                text: openmetrics::exposition(topology, history, at, slower),
            }
        }
        _ => Answer::NotFound,
    };
    let site = Site {
        only_local_names: false,
        headers: "",
        not_found: "look at /metrics\n",
        answer,
    };
    http::serve(&listener, site).map_err(|error| http::unavailable(address, &error))?;
    Ok(ExitCode::SUCCESS)
}
