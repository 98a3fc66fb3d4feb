//! Execution traces of Chakra (MLCommons), as ASTRA-sim reads them: one file a rank, `name.0.et`, `name.1.et` …
//!
//! ```text
//! length ─ GlobalMetadata ─ length ─ Node ─ length ─ Node …      lengths are protobuf varints
//! ```
//!
//! | node | what becomes of it |
//! |---|---|
//! | `COMP_NODE` | a computation of `duration_micros`, with `is_cpu_op` on a processor beside the accelerator |
//! | `COMM_SEND_NODE`, `COMM_RECV_NODE` | `comm_size` bytes to `comm_dst` or from `comm_src`, matched by `comm_tag` |
//! | `COMM_COLL_NODE` | `comm_type` of `comm_size` bytes among the ranks whose files name the same `pg_name` |
//! | `METADATA_NODE` | nothing: what waits for it waits for what it waits for |
//!
//! A node begins when those in its `ctrl_deps` and `data_deps` are over. The n-th collective of a process group is the same one
//! on all its ranks. `comm_size` is what a rank brings, so of an all-gather the whole is so much from each. Without `pg_name`, a
//! collective is of all ranks, or, where `involved_dim` has two dimensions, of the ranks of a server (`[true, false]`) or of a
//! rail (`[false, true]`). Times at which nodes were recorded change nothing.

mod add;
mod read;

use std::path::{Path, PathBuf};

use softfabric_units::{Bytes, Span};

use super::{Message, wrong};
use crate::import::ImportError;
use crate::job::collective::Collective;

pub use read::read;

/// The traces of all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// What each rank does, with the file that says it.
    pub ranks: Vec<Rank>,
}

/// The trace of a rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    /// Its file, for messages.
    pub file: PathBuf,
    /// What it does, in the order of the file.
    pub nodes: Vec<Node>,
}

/// Something that a rank does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number in the file.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// What it is.
    pub action: Action,
    /// Places of nodes of the same rank that must be over before it begins.
    pub after: Vec<u32>,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// Computes.
    Compute {
        /// For how long.
        span: Span,
        /// Not on the accelerator.
        on_cpu: bool,
    },
    /// Sends a message.
    Send(Message),
    /// Takes a message.
    Receive(Message),
    /// Takes part in a collective.
    Collective {
        /// Which one.
        collective: Collective,
        /// What a rank brings.
        bytes: Bytes,
        /// With whom.
        group: Group,
    },
}

/// Who takes part in a collective.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// All ranks.
    All,
    /// The ranks of each server.
    Server,
    /// The ranks of each rail.
    Rail,
    /// The ranks that name this process group.
    Named(String),
}

/// The file of a rank: `name.3.et` for `name`, `name.et` or `name.0.et`.
pub fn file_of(path: &Path, rank: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".et").unwrap_or(&name);
    let stem = match stem.rsplit_once('.') {
        Some((before, number)) if name.ends_with(".et") && number.parse::<u32>().is_ok() => before,
        _ => stem,
    };
    path.with_file_name(format!("{stem}.{rank}.et"))
}

/// Reads the files of all ranks; `path` is that of one of them, or what their names begin with.
///
/// # Errors
/// If a file is missing between others, cannot be read, or is wrong.
pub fn load(path: &Path) -> Result<Traces, ImportError> {
    let files: Vec<PathBuf> = (0..)
        .map(|rank| file_of(path, rank))
        .take_while(|file| file.exists())
        .collect();
    let missing = file_of(path, files.len() as u32);
    // A file after a gap says that one is missing.
    let beyond = (files.len() as u32 + 1..files.len() as u32 + 1024)
        .map(|rank| file_of(path, rank))
        .find(|file| file.exists());
    if files.is_empty() || beyond.is_some() {
        let allowed = "there: a trace is a file for each rank, such as name.0.et, name.1.et …";
        let error = wrong(&missing, None, "the trace of a rank", "missing", allowed);
        return Err(match beyond {
            Some(beyond) => error.advise(format!("{} is there", beyond.display())),
            None => error,
        });
    }
    let count = files.len() as u32;
    let read = |file: &PathBuf| {
        let bytes = std::fs::read(file).map_err(|error| {
            let found = format!("not readable: {error}");
            wrong(file, None, "the file", found, "a Chakra execution trace")
        })?;
        read(file, &bytes, count)
    };
    let ranks: Vec<Rank> = files.iter().map(read).collect::<Result<_, _>>()?;
    Ok(Traces { ranks })
}
