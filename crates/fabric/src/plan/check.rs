//! What contradicts itself in a plan.

use thiserror::Error;

use super::Plan;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The run makes sense, but perhaps not the one that was meant.
    Warning,
    /// The run makes no sense.
    Error,
}

/// One thing that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where, in the plan's terms: `switch profile 0, class 3`.
    pub place: String,
    /// What was found, and what is needed.
    pub problem: String,
    /// What to try.
    pub advice: String,
}

/// A plan that makes no sense.
#[derive(Clone, Debug, Error)]
#[error("the plan makes no sense: {}", .0.iter().map(|f| format!("{}: {}", f.place, f.problem)).collect::<Vec<_>>().join("; "))]
pub struct PlanError(pub Vec<Finding>);

impl Plan {
    /// Everything that contradicts itself, errors first.
    pub fn check(&self) -> Vec<Finding> {
        Vec::new()
    }
}
