//! What contradicts itself in a plan.
//!
//! Invariant: an engine may rely on whatever is an [`Severity::Error`] here: indices that exist, ports without gaps,
//! rates and sizes above zero, probabilities of 0..=1, hosts that can reach each other.

mod congestion;
mod infiniband;
mod jobs;
mod multicast;
mod network;
mod partition;
mod profiles;
mod tcp;
#[cfg(test)]
mod tests;
mod traffic;

pub(crate) use infiniband::unroutable;
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
    /// Everything that contradicts itself, errors first. Of findings that repeat for many links or flows, the first few.
    pub fn check(&self) -> Vec<Finding> {
        let (mut findings, is_sound) = self.look();
        if is_sound {
            infiniband::check_routes(self, &mut findings);
        }
        findings.sorted()
    }

    /// The same without a look at InfiniBand's routes, which are long to compute: who runs the plan computes them anyway.
    pub(crate) fn check_but_routes(&self) -> Vec<Finding> {
        self.look().0.sorted()
    }

    /// What there is beside the routes, and whether all ids exist.
    fn look(&self) -> (Findings, bool) {
        let mut findings = Findings::default();
        let is_sound = network::check(self, &mut findings);
        profiles::check(self, &mut findings);
        infiniband::check(self, &mut findings);
        tcp::check(self, &mut findings);
        if is_sound {
            profiles::check_memory(self, &mut findings);
            traffic::check(self, &mut findings);
            jobs::check(self, &mut findings);
            partition::check(self, &mut findings);
            multicast::check(self, &mut findings);
        }
        (findings, is_sound)
    }
}

#[derive(Debug, Default)]
struct Findings {
    all: Vec<Finding>,
}

impl Findings {
    /// A stable sort: within a severity the order is that of the plan.
    fn sorted(mut self) -> Vec<Finding> {
        self.all
            .sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        self.all
    }

    fn error(
        &mut self,
        place: impl Into<String>,
        problem: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Severity::Error, place.into(), problem.into(), advice.into());
    }

    fn warning(
        &mut self,
        place: impl Into<String>,
        problem: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(
            Severity::Warning,
            place.into(),
            problem.into(),
            advice.into(),
        );
    }

    fn add(&mut self, severity: Severity, place: String, problem: String, advice: String) {
        self.all.push(Finding {
            severity,
            place,
            problem,
            advice,
        });
    }
}

/// Of findings that may repeat for each link or flow, so many are kept.
const REPEATS: usize = 10;
