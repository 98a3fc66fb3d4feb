//! One Parquet file: its columns, how each is written, and rows out of it.
//!
//! Counters that move are written byte by byte of all values (`BYTE_STREAM_SPLIT`), where the upper bytes of neighbours are
//! alike, and compressed with zstd; those that stand still as a dictionary of few values. Both are old enough that every
//! reader of Parquet of the last years knows them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{
    Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use softfabric_operations::recording::scale;
use softfabric_operations::{PortSample, Topology};
use softfabric_telemetry::Counter;

use crate::buffer::{Buffer, Column, Row};
use crate::{Range, StoreError};

const TIME: &str = "time";
const NODE: &str = "node";
const PORT: &str = "port";
const UP: &str = "up";
/// The columns before those of counters.
const FIXED: usize = 4;
/// Names of all ports of a large fabric fit.
const DICTIONARY: usize = 64 << 20;
/// A counter that changes more often than once in so many samples of its port is written as one that moves.
const MOVES: usize = 8;
/// So many rows are read at once.
const BATCH: usize = 1 << 13;

/// A file that is being written.
pub(crate) struct Writer {
    file: SerializedFileWriter<File>,
    /// Its columns of counters.
    counters: Vec<Counter>,
}

impl Writer {
    /// Begins a file with the columns of a buffer, from whose rows it also learns which of them move.
    pub(crate) fn begin(file: File, buffer: &Buffer, order: &[u32]) -> Result<Self> {
        let counters: Vec<Counter> = buffer.columns.iter().map(|(counter, _)| *counter).collect();
        let mut properties = WriterProperties::builder()
            .set_created_by("softfabric".to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_dictionary_page_size_limit(DICTIONARY)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_column_statistics_enabled(ColumnPath::from(TIME), EnabledStatistics::Chunk)
            .set_column_encoding(ColumnPath::from(TIME), Encoding::DELTA_BINARY_PACKED);
        for (counter, column) in &buffer.columns {
            if moves(&buffer.rows, column, order) {
                let path = ColumnPath::from(counter.name());
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT);
            }
        }
        let file =
            SerializedFileWriter::new(file, schema(&counters)?, Arc::new(properties.build()))?;
        Ok(Self { file, counters })
    }

    /// Whether every counter of a buffer has its column.
    pub(crate) fn fits(&self, buffer: &Buffer) -> bool {
        let counters = buffer.columns.iter().map(|(counter, _)| counter);
        self.counters.iter().eq(counters)
    }

    /// Writes all rows of a buffer, in this order.
    pub(crate) fn rows(
        &mut self,
        topology: &Topology,
        buffer: &Buffer,
        order: &[u32],
    ) -> Result<()> {
        let rows = || order.iter().map(|&row| &buffer.rows[row as usize]);
        let mut group = self.file.next_row_group()?;
        let times: Vec<i64> = rows().map(|row| row.unix_nanos as i64).collect();
        write::<Int64Type>(&mut group, &times, None)?;
        let nodes = topology.nodes().iter();
        let nodes: Vec<ByteArray> = nodes.map(|node| node.name.as_str().into()).collect();
        let ports = topology.ports().iter();
        let ports: Vec<ByteArray> = ports.map(|port| port.name.as_str().into()).collect();
        let node = |row: &Row| nodes[topology.port(row.port).node.index()].clone();
        write::<ByteArrayType>(&mut group, &rows().map(node).collect::<Vec<_>>(), None)?;
        let port = |row: &Row| ports[row.port.index()].clone();
        write::<ByteArrayType>(&mut group, &rows().map(port).collect::<Vec<_>>(), None)?;
        let told: Vec<i16> = rows().map(|row| i16::from(row.up.is_some())).collect();
        let ups: Vec<bool> = rows().filter_map(|row| row.up).collect();
        write::<BoolType>(&mut group, &ups, Some(&told))?;
        let (mut values, mut told) = (Vec::new(), Vec::new());
        for (counter, column) in &buffer.columns {
            arrange(*counter, column, order, &mut values, &mut told);
            write::<Int64Type>(&mut group, &values, Some(&told))?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the end, and hands the file back.
    pub(crate) fn finish(self) -> Result<File> {
        self.file.into_inner()
    }
}

fn schema(counters: &[Counter]) -> Result<TypePtr> {
    let column = |name: &str, physical, repetition, logical| -> Result<TypePtr> {
        let column = Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()?;
        Ok(Arc::new(column))
    };
    let time = LogicalType::timestamp(true, TimeUnit::NANOS);
    let text = Some(LogicalType::String);
    let mut fields = vec![
        column(TIME, Physical::INT64, Repetition::REQUIRED, Some(time))?,
        column(
            NODE,
            Physical::BYTE_ARRAY,
            Repetition::REQUIRED,
            text.clone(),
        )?,
        column(PORT, Physical::BYTE_ARRAY, Repetition::REQUIRED, text)?,
        column(UP, Physical::BOOLEAN, Repetition::OPTIONAL, None)?,
    ];
    for counter in counters {
        let unsigned = LogicalType::integer(64, false);
        let optional = Repetition::OPTIONAL;
        fields.push(column(
            &counter.name(),
            Physical::INT64,
            optional,
            Some(unsigned),
        )?);
    }
    let schema = Type::group_type_builder("counters").with_fields(fields);
    Ok(Arc::new(schema.build()?))
}

/// Writes one column of a row group. Where not every row has a value, `told` says which do.
fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    told: Option<&[i16]>,
) -> Result<()> {
    let column: Option<SerializedColumnWriter<'_>> = group.next_column()?;
    let mut column =
        column.ok_or_else(|| ParquetError::General("more columns than told".into()))?;
    column.typed::<T>().write_batch(values, told, None)?;
    column.close()
}

/// The values of a column in the order of the file, and which rows have one.
fn arrange(
    counter: Counter,
    column: &Column,
    order: &[u32],
    values: &mut Vec<i64>,
    told: &mut Vec<i16>,
) {
    values.clear();
    told.clear();
    match column {
        Column::Alike { value, rows } => {
            let value = (*value / scale(counter)) as i64;
            values.resize(*rows, value);
            told.extend(order.iter().map(|&row| i16::from((row as usize) < *rows)));
        }
        Column::Various {
            values: all,
            untold,
        } => {
            if untold.is_empty() && all.len() == order.len() {
                told.resize(order.len(), 1);
            } else {
                let mut is_told = vec![1; all.len()];
                for &row in untold {
                    is_told[row as usize] = 0;
                }
                is_told.resize(order.len(), 0);
                told.extend(order.iter().map(|&row| is_told[row as usize]));
            }
            let told = order.iter().zip(&*told).filter(|&(_, &told)| told == 1);
            let scale = scale(counter);
            values.extend(told.map(|(&row, _)| (all[row as usize] / scale) as i64));
        }
    }
}

/// Whether the counter often differs from the sample of the same port before.
fn moves(rows: &[Row], column: &Column, order: &[u32]) -> bool {
    let Column::Various { values, .. } = column else {
        return false;
    };
    let value = |row: u32| values.get(row as usize).copied();
    let pairs = order.windows(2);
    let (mut same_port, mut moved) = (0_usize, 0_usize);
    for pair in pairs {
        if rows[pair[0] as usize].port == rows[pair[1] as usize].port {
            same_port += 1;
            moved += usize::from(value(pair[0]) != value(pair[1]));
        }
    }
    // Where no port was heard twice, nobody knows.
    same_port == 0 || moved * MOVES > same_port
}

/// Reads the rows of a range, in the order of the file: port, time, sample. Columns that are no counter are told by name.
pub(crate) fn read(
    path: &Path,
    range: Range,
    mut unknown: impl FnMut(&str),
    mut take: impl FnMut(&str, u64, &PortSample),
) -> std::result::Result<(), StoreError> {
    let wrong = |error| StoreError::Segment {
        path: path.to_owned(),
        error,
    };
    let file = File::open(path).map_err(|error| StoreError::io(path, error))?;
    let reader = SerializedFileReader::new(file).map_err(wrong)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns = schema.columns();
    let find = |column: &'static str| {
        let place = columns.iter().position(|known| known.name() == column);
        place.ok_or_else(|| StoreError::NoColumn {
            path: path.to_owned(),
            column,
        })
    };
    let (time, port, up) = (find(TIME)?, find(PORT)?, find(UP)?);
    let mut counters = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        match Counter::named(column.name()) {
            Some(counter) if column.physical_type() == Physical::INT64 => {
                counters.push((place, counter));
            }
            _ if place < FIXED => {}
            _ => unknown(column.name()),
        }
    }
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(wrong)?;
        let mut told = Vec::with_capacity(counters.len());
        for &(place, counter) in &counters {
            let values = Values::<Int64Type>::new(&*group, place, path)?;
            told.push((counter, scale(counter), values));
        }
        let mut rows = Rows {
            group: &*group,
            time: Values::<Int64Type>::new(&*group, time, path)?,
            port: Values::<ByteArrayType>::new(&*group, port, path)?,
            up: Values::<BoolType>::new(&*group, up, path)?,
            counters: told,
        };
        rows.read(range, &mut take).map_err(wrong)?;
    }
    Ok(())
}

/// The columns of a row group while they are read.
struct Rows<'a> {
    group: &'a dyn RowGroupReader,
    time: Values<Int64Type>,
    port: Values<ByteArrayType>,
    up: Values<BoolType>,
    counters: Vec<(Counter, u64, Values<Int64Type>)>,
}

impl Rows<'_> {
    fn read(&mut self, range: Range, take: &mut impl FnMut(&str, u64, &PortSample)) -> Result<()> {
        let mut left = usize::try_from(self.group.metadata().num_rows()).unwrap_or(0);
        let mut sample = PortSample::default();
        while left > 0 {
            let rows = left.min(BATCH);
            left -= rows;
            self.time.fill(rows)?;
            self.port.fill(rows)?;
            self.up.fill(rows)?;
            for (_, _, column) in &mut self.counters {
                column.fill(rows)?;
            }
            for _ in 0..rows {
                let time = self.time.next().unwrap_or_default() as u64;
                let port = self.port.next().unwrap_or_default();
                sample.up = self.up.next();
                sample.values.clear();
                for (counter, scale, column) in &mut self.counters {
                    if let Some(value) = column.next() {
                        let value = (value as u64).saturating_mul(*scale);
                        sample.values.push((*counter, value));
                    }
                }
                if range.has(time) {
                    let port = std::str::from_utf8(port.data()).map_err(|_| {
                        ParquetError::General("the name of a port is no text".into())
                    })?;
                    take(port, time, &sample);
                }
            }
        }
        Ok(())
    }
}

/// A column while it is read: a batch of values, of which some rows have none.
struct Values<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    told: Vec<i16>,
    row: usize,
    value: usize,
    required: bool,
}

impl<T: DataType> Values<T> {
    fn new(
        group: &dyn RowGroupReader,
        column: usize,
        path: &Path,
    ) -> std::result::Result<Self, StoreError> {
        let wrong = |error| StoreError::Segment {
            path: PathBuf::from(path),
            error,
        };
        let descriptor = group.metadata().column(column).column_descr();
        if descriptor.physical_type() != T::get_physical_type() {
            return Err(wrong(ParquetError::General(format!(
                "the column `{}` is of the type {}",
                descriptor.name(),
                descriptor.physical_type()
            ))));
        }
        let required = descriptor.max_def_level() == 0;
        let reader: ColumnReader = group.get_column_reader(column).map_err(wrong)?;
        Ok(Self {
            reader: get_typed_column_reader(reader),
            values: Vec::new(),
            told: Vec::new(),
            row: 0,
            value: 0,
            required,
        })
    }

    /// Reads so many rows.
    fn fill(&mut self, rows: usize) -> Result<()> {
        self.values.clear();
        self.told.clear();
        (self.row, self.value) = (0, 0);
        let mut read = 0;
        while read < rows {
            let told = (!self.required).then_some(&mut self.told);
            let (records, _, _) =
                self.reader
                    .read_records(rows - read, told, None, &mut self.values)?;
            if records == 0 {
                return Err(ParquetError::EOF(
                    "a column is shorter than its row group".into(),
                ));
            }
            read += records;
        }
        Ok(())
    }

    fn next(&mut self) -> Option<T::T> {
        let told = self.required || self.told.get(self.row) == Some(&1);
        self.row += 1;
        if !told {
            return None;
        }
        let value = self.values.get(self.value).cloned();
        self.value += 1;
        value
    }
}
