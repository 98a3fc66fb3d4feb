//! Counters of a fabric on disk: a folder of Parquet files that any tool reads, and recordings out of them.
//!
//! ```text
//! DIR/topology-0001.jsonl                                        who is wired to whom: a recording without samples
//!     samples-20261201T021700.000000000Z-20261201T021759.….parquet   a segment: one row for each time a port was heard
//!     .open-Xa81Zq                                               the segment that is being written
//! ```
//!
//! A row has `time`, `node`, `port`, `up`, and a column for each counter under the name that people know, in the units of
//! [recordings](softfabric_operations::recording); a counter that a port does not tell is null. Rows stand port by port, so
//! that a counter's values are near to each other and compress.
//!
//! A segment is written under another name and renamed when it is whole and on the disk: whoever reads sees whole files
//! only, and a writer that ends without a word takes with it no more than the segment that it had open.

mod buffer;
mod names;
mod read;
mod segment;
mod session;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use softfabric_operations::recording::RecordingError;
use thiserror::Error;

use self::names::SegmentName;
pub use self::names::unix_nanos;
pub use self::session::{Session, Settings};

/// A folder with counters.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// Times from the first to the last of these, both included, in nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Range {
    /// The earliest.
    pub from: u64,
    /// The latest.
    pub to: u64,
}

impl Range {
    /// All times.
    pub const ALL: Self = Self {
        from: 0,
        to: u64::MAX,
    };

    const fn has(self, time: u64) -> bool {
        self.from <= time && time <= self.to
    }
}

/// What goes wrong with a store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file or folder cannot be read or written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The disk is full.
    #[error(
        "{}: the disk is full. What was stored before {kept_until} is whole and can be read; make room, or keep less (--keep), and begin again",
        .folder.display()
    )]
    Full {
        /// The store.
        folder: PathBuf,
        /// Up to when it has everything.
        kept_until: String,
    },
    /// A file is not what its name says.
    #[error("{}: it is no segment of a store: {error}", .path.display())]
    Segment {
        /// Which.
        path: PathBuf,
        /// What its reader says.
        error: ParquetError,
    },
    /// A column that must be there is not.
    #[error("{}: it has no column `{column}`", .path.display())]
    NoColumn {
        /// Which file.
        path: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// The topology of segments cannot be used.
    #[error("{}: {error}", .path.display())]
    Topology {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: RecordingError,
    },
    /// There is nothing in this range.
    #[error("{}: nothing was stored at that time; {known}", .folder.display())]
    Nothing {
        /// The store.
        folder: PathBuf,
        /// What there is.
        known: String,
    },
    /// The range is longer than a recording can be.
    #[error("{}: more than 213 days are asked for at once, which is more than a recording holds", .0.display())]
    TooLong(PathBuf),
}

impl StoreError {
    fn io(path: &Path, error: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            error,
        }
    }
}

impl Store {
    /// The store in a folder, which is made if there is none.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn create(folder: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(|error| StoreError::io(folder, error))?;
        Ok(Self::at(folder))
    }

    /// The store in a folder that is there.
    ///
    /// # Errors
    /// If it cannot be read, or has nothing that a store has.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let store = Self::at(folder);
        if store.segments()?.is_empty() && store.topologies()?.is_empty() {
            return Err(StoreError::Nothing {
                folder: folder.to_owned(),
                known: "it has no files of a store".to_owned(),
            });
        }
        Ok(store)
    }

    fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// From the first to the last time that closed segments tell of; `None` where there is none.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn extent(&self) -> Result<Option<Range>, StoreError> {
        let segments = self.segments()?;
        let from = segments.iter().map(|segment| segment.range.from).min();
        let to = segments.iter().map(|segment| segment.range.to).max();
        Ok(from.zip(to).map(|(from, to)| Range { from, to }))
    }

    /// Removes segments that end before a time, in nanoseconds since 1970; says how many. The segment that has the time in it
    /// stays whole.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn forget_before(&self, unix_nanos: u64) -> Result<usize, StoreError> {
        let mut removed = 0;
        for segment in self.segments()? {
            if segment.range.to < unix_nanos {
                let path = self.folder.join(segment.to_string());
                match fs::remove_file(&path) {
                    // Somebody else who records here was faster.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    done => {
                        done.map_err(|error| StoreError::io(&path, error))?;
                        removed += 1;
                    }
                }
            }
        }
        Ok(removed)
    }

    /// The closed segments, the earliest first.
    fn segments(&self) -> Result<Vec<SegmentName>, StoreError> {
        let mut segments: Vec<SegmentName> = self
            .files()?
            .iter()
            .filter_map(|name| SegmentName::parse(name))
            .collect();
        segments.sort_unstable();
        Ok(segments)
    }

    /// The numbers of topologies, the earliest first.
    fn topologies(&self) -> Result<Vec<u32>, StoreError> {
        let files = self.files()?;
        let numbers = files.iter().filter_map(|name| names::topology_number(name));
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn files(&self) -> Result<Vec<String>, StoreError> {
        let unreadable = |error| StoreError::io(&self.folder, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            names.extend(name.into_string());
        }
        Ok(names)
    }
}
