//! What is wrong with a file of another program.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{}: {field} is {found}, but it must be {allowed}{}", .file.display(), line_suffix(*.line), advice_suffix(.advice.as_deref()))]
pub struct ImportError {
    /// The file.
    pub file: PathBuf,
    /// The line, from one; `None`: the whole file.
    pub line: Option<usize>,
    /// Which field.
    pub field: Box<str>,
    /// What was found.
    pub found: String,
    /// What is allowed.
    pub allowed: Box<str>,
    /// What to try.
    pub advice: Option<String>,
}

impl ImportError {
    pub(crate) fn new(
        file: &Path,
        line: Option<usize>,
        field: impl Into<String>,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        Self {
            file: file.to_owned(),
            line,
            field: field.into().into_boxed_str(),
            found: found.into(),
            allowed: allowed.into().into_boxed_str(),
            advice: None,
        }
    }

    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

fn line_suffix(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(":{line}"))
}

fn advice_suffix(advice: Option<&str>) -> String {
    advice.map_or_else(String::new, |advice| format!(" ({advice})"))
}
