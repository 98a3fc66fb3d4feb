//! Flow size distributions: lines `bytes cumulative_percent`.

use std::path::Path;

use softfabric_units::Bytes;

use crate::import::ImportError;
use crate::import::lines::Words;
use crate::workload::SizeDistribution;

/// Reads a flow size distribution.
///
/// # Errors
/// If a line is not two numbers, or they do not rise to 100 %.
pub fn read_distribution(file: &Path, text: &str) -> Result<SizeDistribution, ImportError> {
    let mut words = Words::new(file, text);
    let mut points = Vec::new();
    let mut lines = Vec::new();
    while let Some(word) = words.peek() {
        lines.push(word.line);
        let bytes: f64 = words.read("the size of a point", "bytes")?;
        if !(0.0..1e18).contains(&bytes) {
            let found = format!("`{}`", word.text);
            return Err(ImportError::new(
                file,
                Some(word.line),
                "the size of a point",
                found,
                "bytes",
            ));
        }
        let percent: f64 = words.read("the share of a point", "a percentage from 0 to 100")?;
        points.push((Bytes::new(bytes as u64), percent));
    }
    SizeDistribution::from_percent(&points).map_err(|error| {
        let line = lines.get(error.place).or(lines.last()).copied();
        ImportError::new(file, line, "a point", error.found, error.needed)
    })
}
