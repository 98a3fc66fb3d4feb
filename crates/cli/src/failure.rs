//! What goes wrong before and after a run, shown with the place in the file where there is one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use softfabric_fabric::import::ImportError;
use softfabric_fabric::plan::PlanError;
use softfabric_fabric::scenario::{Problem, ScenarioError};
use thiserror::Error;

/// The exit code of a run that showed a failure.
pub(crate) const FINDING: u8 = 1;
/// The exit code of misuse, bad input, and outputs that cannot be written.
pub(crate) const BAD_INPUT: u8 = 2;

/// Why the command cannot do what it was asked for.
#[derive(Debug, Error, Diagnostic)]
pub(crate) enum Failure {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
        #[help]
        help: Option<String>,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {error}", .path.display())]
    Unwritable {
        path: PathBuf,
        error: std::io::Error,
    },
    /// A file is of no kind that is known, or of one that cannot be used here.
    #[error("{}: {problem}", .path.display())]
    WrongKind {
        path: PathBuf,
        problem: String,
        #[help]
        help: String,
    },
    /// A scenario is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Scenario(ScenarioDiagnostic),
    /// Another program's file is wrong.
    #[error("{error}")]
    Import {
        error: Box<ImportError>,
        #[help]
        help: Option<String>,
    },
    /// The plan contradicts itself.
    #[error("the settings contradict each other")]
    Plan {
        #[related]
        problems: Vec<PlanProblem>,
    },
    /// Arguments that do not fit.
    #[error("{problem}")]
    Arguments {
        problem: String,
        #[help]
        help: Option<String>,
    },
}

impl Failure {
    pub(crate) fn unreadable(path: &Path, error: std::io::Error) -> Self {
        let not_found = error.kind() == std::io::ErrorKind::NotFound;
        Self::Unreadable {
            path: path.to_owned(),
            help: not_found.then(|| "Is the path right, seen from the current folder?".to_owned()),
            error,
        }
    }

    pub(crate) fn unwritable(path: &Path, error: std::io::Error) -> Self {
        Self::Unwritable {
            path: path.to_owned(),
            error,
        }
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(ScenarioDiagnostic::new(error))
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        Self::Import {
            help: None,
            error: Box::new(error),
        }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        let problems = error.0.into_iter().map(|finding| PlanProblem {
            place: finding.place,
            problem: finding.problem,
            advice: Some(finding.advice).filter(|advice| !advice.is_empty()),
        });
        Self::Plan {
            problems: problems.collect(),
        }
    }
}

/// One thing in a plan that contradicts another.
#[derive(Debug, Error, Diagnostic)]
#[error("{place}: {problem}")]
pub(crate) struct PlanProblem {
    place: String,
    problem: String,
    #[help]
    advice: Option<String>,
}

/// A scenario's problems, each shown in its text.
#[derive(Debug)]
pub(crate) struct ScenarioDiagnostic {
    file: String,
    problems: Vec<ProblemDiagnostic>,
}

#[derive(Debug)]
struct ProblemDiagnostic {
    problem: Problem,
    source: NamedSource<Arc<str>>,
}

impl ScenarioDiagnostic {
    fn new(error: ScenarioError) -> Self {
        let problems = error.problems.into_iter();
        let problems = problems.map(|problem| ProblemDiagnostic {
            problem,
            source: NamedSource::new(&error.file, Arc::clone(&error.text)),
        });
        Self {
            problems: problems.collect(),
            file: error.file,
        }
    }
}

impl fmt::Display for ScenarioDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.len() {
            1 => write!(f, "{} has a problem", self.file),
            count => write!(f, "{} has {count} problems", self.file),
        }
    }
}

impl std::error::Error for ScenarioDiagnostic {}

impl Diagnostic for ScenarioDiagnostic {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        let problems = self.problems.iter();
        Some(Box::new(problems.map(|problem| problem as &dyn Diagnostic)))
    }
}

impl fmt::Display for ProblemDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem {
            field,
            found,
            allowed,
            ..
        } = &self.problem;
        if !field.is_empty() {
            write!(f, "`{field}`: ")?;
        }
        write!(f, "found {found}; allowed: {allowed}")
    }
}

impl std::error::Error for ProblemDiagnostic {}

impl Diagnostic for ProblemDiagnostic {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let advice = self.problem.advice.as_ref()?;
        Some(Box::new(advice))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.problem.span.as_ref()?;
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.problem.span.clone()?;
        let label = LabeledSpan::new_primary_with_span(Some("here".to_owned()), span);
        Some(Box::new(std::iter::once(label)))
    }
}
