//! Samples that are not yet on the disk: rows as they come, columns of which most say the same in every row.

use softfabric_operations::{PortIndex, PortSample};
use softfabric_telemetry::Counter;

/// A counter has no column.
const NONE: u16 = u16::MAX;

/// Rows and columns.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) rows: Vec<Row>,
    /// In the order in which counters were first told.
    pub(crate) columns: Vec<(Counter, Column)>,
    places: Vec<u16>,
}

/// What a port says besides its counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) unix_nanos: u64,
    pub(crate) port: PortIndex,
    pub(crate) up: Option<bool>,
}

/// One counter in all rows.
#[derive(Debug)]
pub(crate) enum Column {
    /// The first `rows` rows told this value, and none after them has told any.
    Alike { value: u64, rows: usize },
    /// A value for each of the first rows; those in `untold` have none, and zero in its place.
    Various { values: Vec<u64>, untold: Vec<u32> },
}

impl Buffer {
    pub(crate) fn new() -> Self {
        Self {
            rows: Vec::new(),
            columns: Vec::new(),
            places: vec![NONE; Counter::COUNT],
        }
    }

    pub(crate) fn add(&mut self, row: Row, sample: &PortSample) {
        let number = self.rows.len();
        self.rows.push(row);
        for &(counter, value) in &sample.values {
            let place = &mut self.places[counter.index()];
            if *place == NONE {
                *place = self.columns.len() as u16;
                let empty = Column::Alike { value, rows: 0 };
                self.columns.push((counter, empty));
            }
            let (_, column) = &mut self.columns[usize::from(*place)];
            column.add(number, value);
        }
    }

    /// Whether a sample tells a counter that no row has told.
    pub(crate) fn is_new(&self, sample: &PortSample) -> bool {
        let mut counters = sample.values.iter();
        counters.any(|(counter, _)| self.places[counter.index()] == NONE)
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let columns = self.columns.iter().map(|(_, column)| match column {
            Column::Alike { .. } => 0,
            Column::Various { values, untold } => values.len() * 8 + untold.len() * 4,
        });
        self.rows.len() * size_of::<Row>() + columns.sum::<usize>()
    }

    /// Forgets the rows; counters keep their columns.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        for (_, column) in &mut self.columns {
            *column = Column::Alike { value: 0, rows: 0 };
        }
    }

    /// The numbers of the rows, port by port; those of a port as they came.
    pub(crate) fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.rows.len() as u32).collect();
        order.sort_by_key(|&row| self.rows[row as usize].port);
        order
    }
}

impl Column {
    fn add(&mut self, row: usize, value: u64) {
        match self {
            Self::Alike { value: known, rows } if *rows == row && (row == 0 || *known == value) => {
                *known = value;
                *rows += 1;
            }
            Self::Alike { value: known, rows } => {
                let mut values = vec![*known; *rows];
                let untold = (*rows as u32..row as u32).collect();
                values.resize(row, 0);
                values.push(value);
                *self = Self::Various { values, untold };
            }
            Self::Various { values, untold } => {
                untold.extend(values.len() as u32..row as u32);
                values.resize(row, 0);
                values.push(value);
            }
        }
    }
}
