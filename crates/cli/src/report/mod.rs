//! The HTML report (being written).

use softfabric_fabric::export::findings::Finding;
use softfabric_fabric::plan::Plan;
use softfabric_fabric::results::Results;

/// What a report is made of.
pub(crate) struct Report<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) results: &'a Results,
    pub(crate) findings: &'a [Finding],
    pub(crate) wall_seconds: f64,
    /// The command that repeats the run.
    pub(crate) command: &'a str,
}

/// The page.
pub(crate) fn render(report: &Report<'_>) -> String {
    report.command.to_owned()
}
