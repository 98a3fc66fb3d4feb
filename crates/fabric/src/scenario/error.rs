//! What is wrong with a scenario, and where.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::source::Source;
use crate::import::ImportError;

/// Everything that is wrong with a scenario, at least one thing.
#[derive(Clone, Debug)]
pub struct ScenarioError {
    /// The name of the file.
    pub file: String,
    /// Its text, for showing the places.
    pub text: Arc<str>,
    /// What is wrong, in the order of the file where that is known.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field: `topology.rate`, `workload[0].to`. Empty for the file as a whole.
    pub field: String,
    /// The bytes of the file that are wrong.
    pub span: Option<Range<usize>>,
    /// The line, from one.
    pub line: Option<usize>,
    /// The column, from one.
    pub column: Option<usize>,
    /// What was found.
    pub found: String,
    /// What is allowed.
    pub allowed: String,
    /// What to try.
    pub advice: Option<String>,
}

impl std::error::Error for ScenarioError {}

/// One line a problem: `file:line:column: field: found …, allowed …. Advice.`
impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.problems.iter().enumerate() {
            if place > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&self.file)?;
            if let (Some(line), Some(column)) = (problem.line, problem.column) {
                write!(f, ":{line}:{column}")?;
            }
            write!(f, ": {problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "`{}`: ", self.field)?;
        }
        write!(f, "found {}; allowed: {}", self.found, self.allowed)?;
        if let Some(advice) = &self.advice {
            write!(f, "; {advice}")?;
        }
        Ok(())
    }
}

/// Gathers problems, and finds out where in the text they are.
#[derive(Debug)]
pub(super) struct Problems<'a> {
    pub(super) source: &'a Source,
    found: Vec<Problem>,
}

impl<'a> Problems<'a> {
    pub(super) fn new(source: &'a Source) -> Self {
        Self {
            source,
            found: Vec::new(),
        }
    }

    /// Adds a problem of a field, wherever that stands in the text.
    pub(super) fn add(
        &mut self,
        field: impl Into<String>,
        found: impl Into<String>,
        allowed: impl Into<String>,
        advice: Option<String>,
    ) {
        let field = field.into();
        let span = self.source.locate(&field);
        self.add_at(span, field, found, allowed, advice);
    }

    /// Adds a problem of a file, which is one of the field that names it.
    pub(super) fn add_of_file(&mut self, field: impl Into<String>, error: &ImportError) {
        let line = error
            .line
            .map_or_else(String::new, |line| format!(":{line}"));
        let found = format!(
            "{}{line}: {} is {}",
            error.file.display(),
            error.field,
            error.found
        );
        let allowed = error.allowed.to_string();
        self.add(field, found, allowed, error.advice.clone());
    }

    /// Adds a problem at a place of the text.
    pub(super) fn add_at(
        &mut self,
        span: Option<Range<usize>>,
        field: impl Into<String>,
        found: impl Into<String>,
        allowed: impl Into<String>,
        advice: Option<String>,
    ) {
        let (line, column) = match &span {
            Some(span) => {
                let (line, column) = self.source.line_and_column(span.start);
                (Some(line), Some(column))
            }
            None => (None, None),
        };
        self.found.push(Problem {
            field: field.into(),
            span,
            line,
            column,
            found: found.into(),
            allowed: allowed.into(),
            advice,
        });
    }

    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Takes back what was added after there were `count`.
    pub(super) fn split_off(&mut self, count: usize) -> Vec<Problem> {
        self.found.split_off(count)
    }

    /// The error, unless there is no problem.
    pub(super) fn finish(mut self) -> Result<(), ScenarioError> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found
            .sort_by_key(|problem| problem.span.as_ref().map_or(usize::MAX, |span| span.start));
        Err(ScenarioError {
            file: self.source.file.clone(),
            text: Arc::clone(&self.source.text),
            problems: self.found,
        })
    }
}

/// The known name that is most like `found`, if one is like it at all.
pub(super) fn nearest<'a>(
    found: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let found = found.to_lowercase();
    (known.into_iter())
        .map(|name| {
            let distance = strsim::damerau_levenshtein(&found, &name.to_lowercase());
            (distance, name)
        })
        .filter(|(distance, name)| {
            let longer = name.len().max(found.len());
            *distance <= 1 + longer / 3 && *distance < longer
        })
        .min()
        .map(|(_, name)| name)
}

/// `did you mean …?`, if a known name is like `found`.
pub(super) fn did_you_mean<'a>(
    found: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    // What is often written and is no technology: the term is RoCE.
    if found.to_lowercase().starts_with("roci") {
        return Some(
            "did you mean `rocev2`? RoCI is not a technology, the term is RoCE".to_owned(),
        );
    }
    nearest(found, known).map(|name| format!("did you mean `{name}`?"))
}
