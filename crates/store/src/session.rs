//! Writing: samples are gathered, put in order port by port, and written to the open segment; whole segments get their name.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use parquet::errors::ParquetError;
use softfabric_operations::recording::Writer as RecordingWriter;
use softfabric_operations::{PortIndex, PortSample, Topology, Width};
use softfabric_telemetry::Counter;
use softfabric_units::Span;
use tempfile::NamedTempFile;

use crate::buffer::{Buffer, Row};
use crate::names::{self, SegmentName};
use crate::segment::Writer;
use crate::{Range, Store, StoreError};

const OPEN: &str = ".open-";
/// How many samples come between two looks at the memory that they take.
const LOOKS: usize = 64;
/// What an ended session left open is removed when it is so much older than what is written now.
const LEFT_OVER: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// How a session stores.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How much time a segment covers. This much is lost at most where a session ends without a word.
    pub segment: Span,
    /// How long samples are kept, counted back from the last one that was stored; `None` for ever.
    pub keep: Option<Span>,
    /// How many bytes of samples are gathered before they are written.
    pub memory: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            segment: Span::seconds(60),
            keep: None,
            memory: 192 << 20,
        }
    }
}

/// Samples on their way into a store. It ends with [`Session::finish`]; dropped without it, the open segment is lost.
pub struct Session<'a> {
    store: Store,
    topology: &'a Topology,
    number: u32,
    settings: Settings,
    buffer: Buffer,
    open: Option<Open>,
    /// From the first to the last sample that is in no closed segment.
    range: Option<Range>,
    /// Samples are stored up to here.
    until: Option<u64>,
}

struct Open {
    file: NamedTempFile,
    writer: Writer,
}

impl Store {
    /// Begins to store samples of this topology. `widths` says how the counters of a port end that do not have 64 bits.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn session<'a, 'w>(
        &self,
        topology: &'a Topology,
        about: &str,
        widths: impl Fn(PortIndex) -> &'w [(Counter, Width)],
        settings: Settings,
    ) -> Result<Session<'a>, StoreError> {
        let mut text = Vec::new();
        RecordingWriter::beginning(&mut text, topology, about, 0, widths)
            .map_err(|error| StoreError::io(&self.folder, error))?;
        Ok(Session {
            number: self.topology_number(&text)?,
            store: self.clone(),
            topology,
            settings,
            buffer: Buffer::new(),
            open: None,
            range: None,
            until: None,
        })
    }

    /// The number of the file with this topology, which is written if there is none.
    fn topology_number(&self, text: &[u8]) -> Result<u32, StoreError> {
        let mut file = self.open_file()?;
        self.remove_left_over(file.as_file());
        let numbers = self.topologies()?;
        for &number in numbers.iter().rev() {
            let path = self.folder.join(names::topology(number));
            let known = fs::read(&path).map_err(|error| StoreError::io(&path, error))?;
            if known == text {
                return Ok(number);
            }
        }
        io::Write::write_all(&mut file, text)
            .and_then(|()| file.as_file().sync_all())
            .map_err(|error| self.unwritten(error, None))?;
        let mut number = numbers.last().map_or(1, |last| last + 1);
        loop {
            let path = self.folder.join(names::topology(number));
            match file.persist_noclobber(&path) {
                Ok(_) => return Ok(number),
                // Another session began at the same time.
                Err(taken) if taken.error.kind() == io::ErrorKind::AlreadyExists => {
                    file = taken.file;
                    number += 1;
                }
                Err(refused) => return Err(self.unwritten(refused.error, None)),
            }
        }
    }

    fn open_file(&self) -> Result<NamedTempFile, StoreError> {
        let mut file = tempfile::Builder::new();
        // Others read what one stores; tempfile's own default is for secrets.
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        let file = file.prefix(OPEN).permissions(permissions);
        file.tempfile_in(&self.folder)
            .map_err(|error| self.unwritten(error, None))
    }

    /// Removes what sessions left open that ended without a word. The time is the folder's own: that of a file made just now.
    fn remove_left_over(&self, now: &File) {
        let changed = |file: &fs::Metadata| file.modified();
        let Ok(now) = now.metadata().and_then(|file| changed(&file)) else {
            return;
        };
        for name in self.files().unwrap_or_default() {
            let path = self.folder.join(&name);
            let age = fs::metadata(&path).and_then(|file| changed(&file));
            let age = age.ok().and_then(|then| now.duration_since(then).ok());
            if name.starts_with(OPEN) && age.is_some_and(|age| age > LEFT_OVER) {
                // What cannot be removed is in nobody's way.
                let _ = fs::remove_file(path);
            }
        }
    }

    fn unwritten(&self, error: io::Error, until: Option<u64>) -> StoreError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full {
                folder: self.folder.clone(),
                kept_until: until.map_or_else(|| "this session".to_owned(), names::for_people),
            },
            _ => StoreError::io(&self.folder, error),
        }
    }
}

impl Session<'_> {
    /// Stores what a port said, all of its counters, at a time in nanoseconds since 1970. It reaches the disk when its
    /// segment is closed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(
        &mut self,
        port: PortIndex,
        unix_nanos: u64,
        sample: &PortSample,
    ) -> Result<(), StoreError> {
        let length = self.settings.segment.as_nanos();
        let begun = self.range.map(|range| range.from);
        // A late sample does not end a segment.
        if begun.is_some_and(|begun| unix_nanos >= begun.saturating_add(length)) {
            self.close_segment()?;
        }
        // Bytes are summed up over all columns, so not for each sample.
        let is_time = self.buffer.rows.len() % LOOKS == LOOKS - 1;
        if is_time && self.buffer.bytes() > self.settings.memory {
            self.write_rows()?;
        }
        if self.open.is_some() && self.buffer.is_new(sample) {
            self.close_segment()?;
        }
        let range = self.range.get_or_insert(Range {
            from: unix_nanos,
            to: unix_nanos,
        });
        range.from = range.from.min(unix_nanos);
        range.to = range.to.max(unix_nanos);
        let row = Row {
            unix_nanos,
            port,
            up: sample.up,
        };
        self.buffer.add(row, sample);
        Ok(())
    }

    /// Closes the open segment.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.close_segment()
    }

    /// Writes the samples that are in memory to the open segment.
    fn write_rows(&mut self) -> Result<(), StoreError> {
        if self.buffer.rows.is_empty() {
            return Ok(());
        }
        let order = self.buffer.order();
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let file = self.store.open_file()?;
                let handle = file.reopen().map_err(|error| self.refused(error))?;
                let writer = Writer::begin(handle, &self.buffer, &order);
                let writer = writer.map_err(|error| self.failed(error))?;
                Open { file, writer }
            }
        };
        debug_assert!(
            open.writer.fits(&self.buffer),
            "a new counter opens a segment"
        );
        let written = open.writer.rows(self.topology, &self.buffer, &order);
        written.map_err(|error| self.failed(error))?;
        self.buffer.clear();
        self.open = Some(open);
        Ok(())
    }

    fn close_segment(&mut self) -> Result<(), StoreError> {
        self.write_rows()?;
        let (Some(open), Some(range)) = (self.open.take(), self.range.take()) else {
            return Ok(());
        };
        let file = open.writer.finish().map_err(|error| self.failed(error))?;
        file.sync_all().map_err(|error| self.refused(error))?;
        let mut file = open.file;
        let mut name = SegmentName {
            range,
            topology: self.number,
            copy: 1,
        };
        loop {
            match file.persist_noclobber(self.store.folder.join(name.to_string())) {
                Ok(_) => break,
                Err(taken) if taken.error.kind() == io::ErrorKind::AlreadyExists => {
                    file = taken.file;
                    name.copy += 1;
                }
                Err(refused) => return Err(self.refused(refused.error)),
            }
        }
        sync_folder(&self.store.folder).map_err(|error| self.refused(error))?;
        self.until = self.until.max(Some(range.to));
        self.buffer = Buffer::new();
        if let (Some(keep), Some(until)) = (self.settings.keep, self.until) {
            self.store
                .forget_before(until.saturating_sub(keep.as_nanos()))?;
        }
        Ok(())
    }

    fn refused(&self, error: io::Error) -> StoreError {
        self.store.unwritten(error, self.until)
    }

    fn failed(&self, error: ParquetError) -> StoreError {
        match error {
            ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(error) => self.refused(*error),
                Err(error) => self.refused(io::Error::other(error)),
            },
            other => self.refused(io::Error::other(other)),
        }
    }
}

/// A new name is on the disk when its folder is.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
