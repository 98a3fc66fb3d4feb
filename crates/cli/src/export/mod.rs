//! `softfabric export`: counters of a recording for Prometheus.

pub(crate) mod arguments;
mod http;

use std::net::TcpListener;
use std::process::ExitCode;

use softfabric_operations::openmetrics;
use softfabric_operations::recording::{self, Recording};
use softfabric_units::{Span, Time};

use self::arguments::ExportArguments;
use self::http::Answer;
use crate::clock::Clock;
use crate::diagnose;
use crate::failure::Failure;
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
    let exposition = |at: Time, slower: u64| {
        openmetrics::exposition(&recording.topology, &recording.history, at, slower)
    };
    let Some(address) = arguments.listen else {
        let at = arguments
            .at
            .map_or(span.to, |after| span.from.saturating_add(after));
        terminal::print(&exposition(at, 1))?;
        return Ok(ExitCode::SUCCESS);
    };
    let unavailable = |error: std::io::Error| Failure::Arguments {
        problem: format!("cannot listen on {address}: {error}"),
        help: Some("Is another program there? Port 0 takes a free one.".to_owned()),
    };
    let listener = TcpListener::bind(address).map_err(unavailable)?;
    let served = listener.local_addr().map_err(unavailable)?;
    terminal::print(&format!("serving http://{served}/metrics\n"))?;
    let clock = Clock::start();
    http::serve(&listener, |path| match path {
        "/metrics" => {
            let passed = Span::picos(clock.now().as_picos() / arguments.slower);
            let at = span.from.saturating_add(passed).min(span.to);
            Answer::Found {
                media_type: openmetrics::MEDIA_TYPE,
                text: exposition(at, arguments.slower),
            }
        }
        _ => Answer::NotFound,
    })
    .map_err(unavailable)
}
