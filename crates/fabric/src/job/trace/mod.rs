//! Jobs from traces and schedules of real programs.
//!
//! ```text
//! GOAL schedule (LogGOPSim)     text, one file      ─┐
//! SimAI, ASTRA-sim workload     text, one file       ├──► Trace ──► add() ──► tasks and channels of a JobBuilder
//! Chakra execution trace        protobuf, one a rank ─┘
//! ```
//!
//! Messages are matched before the job runs: the n-th send from one rank to another with a tag is for the n-th receive of it.
//! What is sent and never received, or waited for and never sent, and what waits for itself, is refused with its place.
//!
//! Invariant: what a file says is followed or refused; nothing is skipped in silence.

pub mod chakra;
pub mod goal;
mod message;
pub mod simai;

use std::path::Path;

use super::{JobBuilder, Slicing, numbered};
use crate::import::{ImportError, read_text};

pub use message::Message;

/// The form of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A schedule in the text form of GOAL.
    Goal,
    /// A workload of SimAI or ASTRA-sim.
    Simai,
    /// Execution traces of Chakra, one file a rank.
    Chakra,
}

/// A trace that has been read.
#[derive(Clone, Debug, PartialEq)]
pub enum Trace {
    /// A schedule in the text form of GOAL.
    Goal(goal::Schedule),
    /// A workload of SimAI or ASTRA-sim.
    Simai(simai::Workload),
    /// Execution traces of Chakra.
    Chakra(chakra::Traces),
}

impl Trace {
    /// Reads a trace; without a format, finds out which it is by the file's name and first words.
    ///
    /// # Errors
    /// If the file cannot be read, is of no known form, or is wrong.
    pub fn read(path: &Path, format: Option<Format>) -> Result<Self, ImportError> {
        let format = match format {
            Some(format) => format,
            None => format_of(path)?,
        };
        Ok(match format {
            Format::Goal => Self::Goal(goal::read(path, &read_text(path)?)?),
            Format::Simai => Self::Simai(simai::read(path, &read_text(path)?)?),
            Format::Chakra => Self::Chakra(chakra::load(path)?),
        })
    }

    /// How many ranks it is for.
    pub fn ranks(&self) -> u32 {
        match self {
            Self::Goal(schedule) => schedule.ranks.len() as u32,
            Self::Simai(workload) => workload.layout.gpus,
            Self::Chakra(traces) => traces.ranks.len() as u32,
        }
    }

    /// Adds it to a job with as many ranks, `iterations` times one after the other; each is a phase, or several.
    ///
    /// # Errors
    /// If messages have no other end, ranks take part in different collectives, or something waits for itself.
    pub fn add(
        &self,
        builder: &mut JobBuilder,
        iterations: u32,
        slicing: Slicing,
    ) -> Result<(), ImportError> {
        if let Self::Simai(workload) = self {
            return workload.add(builder, iterations, slicing);
        }
        let mut after = builder.beginning(self.ranks() as usize);
        for iteration in 0..iterations {
            builder.begin_phase(numbered("iteration", iteration, iterations), None);
            let ends = match self {
                Self::Goal(schedule) => schedule.add(builder, slicing, &after)?,
                Self::Chakra(traces) => traces.add(builder, slicing, &after)?,
                Self::Simai(_) => after,
            };
            after = match iteration + 1 < iterations {
                true => builder.join(ends),
                false => ends,
            };
        }
        Ok(())
    }
}

/// The form of a file, by its name, or by its first word.
fn format_of(path: &Path) -> Result<Format, ImportError> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("goal") => return Ok(Format::Goal),
        Some("et") => return Ok(Format::Chakra),
        _ if !path.exists() && chakra::file_of(path, 0).exists() => return Ok(Format::Chakra),
        _ => {}
    }
    let text = read_text(path)?;
    if simai::begins(&text) {
        return Ok(Format::Simai);
    }
    if goal::begins(&text) {
        return Ok(Format::Goal);
    }
    let first = text.split_whitespace().next().unwrap_or("nothing");
    let found = format!("`{first}`");
    let allowed = "`num_ranks` of a GOAL schedule, or the parallelism of a SimAI workload";
    let advice = "say which form it is, such as format = \"goal\"";
    Err(ImportError::new(path, Some(1), "the first word", found, allowed).advise(advice))
}

/// An error of a file at a line, or as a whole.
fn wrong(
    file: &Path,
    line: Option<u32>,
    field: impl Into<String>,
    found: impl Into<String>,
    allowed: impl Into<String>,
) -> ImportError {
    ImportError::new(file, line.map(|line| line as usize), field, found, allowed)
}
