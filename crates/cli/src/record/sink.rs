//! Where samples go: a recording, line by line, or a store.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use softfabric_operations::recording::Writer;
use softfabric_operations::{PortIndex, PortSample, Topology, Width};
use softfabric_store::{Session, Settings, Store, StoreError};
use softfabric_telemetry::Counter;
use softfabric_units::Time;

use super::arguments::RecordArguments;
use crate::clock::{self, Clock};
use crate::failure::Failure;
use crate::terminal;

/// A recording or a store that is being written.
pub(super) enum Sink<'a> {
    Recording {
        writer: Writer<'a, Box<dyn Write>>,
        path: PathBuf,
    },
    Store {
        session: Box<Session<'a>>,
        /// When the recording began, in nanoseconds since 1970.
        start: u64,
    },
}

impl<'a> Sink<'a> {
    /// Begins to write: to `out`, if somebody watches, or where the arguments say.
    pub(super) fn begin<'w>(
        arguments: &RecordArguments,
        out: Option<Box<dyn Write>>,
        topology: &'a Topology,
        about: &str,
        start: u64,
        widths: impl Fn(PortIndex) -> &'w [(Counter, Width)],
    ) -> Result<Self, Failure> {
        if let Some(folder) = &arguments.store {
            let settings = Settings {
                segment: arguments.segment,
                keep: arguments.keep,
                ..Settings::default()
            };
            let store = Store::create(folder)?;
            let session = Box::new(store.session(topology, about, widths, settings)?);
            return Ok(Self::Store { session, start });
        }
        let path = arguments.output.clone();
        let unwritable = |error| Failure::unwritable(&path, error);
        let out: Box<dyn Write> = match out {
            Some(out) => out,
            None if path == Path::new("-") => Box::new(io::stdout().lock()),
            None => Box::new(File::create(&path).map_err(unwritable)?),
        };
        // Every line is flushed, so that whoever reads the file while it grows sees whole polls.
        let out: Box<dyn Write> = Box::new(io::LineWriter::new(out));
        let writer = Writer::beginning(out, topology, about, start, widths).map_err(unwritable)?;
        Ok(Self::Recording { writer, path })
    }

    /// Takes what a port said, at a time since the recording began.
    pub(super) fn sample(
        &mut self,
        port: PortIndex,
        time: Time,
        sample: &PortSample,
    ) -> Result<(), Failure> {
        match self {
            Self::Recording { writer, path } => writer
                .sample(port, time, sample)
                .map_err(|error| Failure::unwritable(path, error)),
            Self::Store { session, start } => {
                Ok(session.add(port, start.saturating_add(time.as_nanos()), sample)?)
            }
        }
    }

    /// Writes what is still to be written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Recording { .. } => Ok(()),
            Self::Store { session, .. } => Ok(session.finish()?),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let help = match &error {
            StoreError::Nothing { .. } => Some(
                "softfabric record --store DIR fills a store; --from, --to and --last choose a time.",
            ),
            StoreError::TooLong(_) => Some("--from, --to and --last choose a time."),
            StoreError::Segment { .. } | StoreError::NoColumn { .. } => Some(
                "Was the file written by something else, or damaged? The store is whole without it.",
            ),
            StoreError::Io { .. } | StoreError::Full { .. } | StoreError::Topology { .. } => None,
        };
        Self::Arguments {
            problem: error.to_string(),
            help: help.map(str::to_owned),
        }
    }
}

/// Waits between polls, and hears Ctrl-C where something has to be closed after it.
pub(super) struct Pause(Option<Receiver<()>>);

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    InTime,
    Interrupted,
}

impl Ended {
    pub(super) fn is_interrupted(self) -> bool {
        self == Self::Interrupted
    }
}

impl Pause {
    pub(super) fn new(hears_interrupts: bool) -> Self {
        if !hears_interrupts {
            return Self(None);
        }
        let (tell, heard) = mpsc::channel();
        let caught = ctrlc::set_handler(move || {
            let _ = tell.send(());
        });
        if let Err(error) = caught {
            terminal::warn(&format!("Ctrl-C will lose the open file: {error}"));
            return Self(None);
        }
        Self(Some(heard))
    }

    /// Waits until a time.
    pub(super) fn until(&self, clock: &Clock, due: Time) -> Ended {
        let left = clock::between(clock.now(), due);
        match &self.0 {
            None => std::thread::sleep(left),
            Some(heard) => {
                if heard.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
                    return Ended::Interrupted;
                }
            }
        }
        Ended::InTime
    }
}
