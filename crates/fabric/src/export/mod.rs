//! From (plan, results) to what people and programs read: figures, findings, JSON, CSV, HPCC's files, pcapng.
//!
//! ```text
//!                    ┌─ Summary ──┬─ table in a terminal, HTML report (the command line makes them)
//! (Plan, Results) ───┼─ findings ─┘
//!                    ├─ json      one document with everything
//!                    ├─ csv       one table a file
//!                    ├─ hpcc      `fct` and `pfc`, byte for byte as the HPCC ns-3 code writes them
//!                    └─ pcapng    the frames of a captured port
//! ```
//!
//! Writers write into any [`std::io::Write`] and decide nothing: every figure is one of the results, a counter of the
//! one table, or an order statistic of them. Equal results give equal bytes.

pub mod csv;
mod distribution;
pub mod findings;
pub mod format;
pub mod hpcc;
mod jobs;
pub mod json;
mod names;
pub mod pcapng;
mod processors;
#[cfg(test)]
mod sample;
mod summary;
mod value;

pub use distribution::Distribution;
pub use jobs::{JobFigures, PhaseFigures};
pub use names::{Names, PortNameError};
pub use processors::{ProcessorFigures, ProcessorWork};
pub use summary::{FlowFigures, GroupFigures, SizeFigures, Summary};
pub use value::{ExportedValue, exported, exported_unit, grouped};
