//! Cases of traffic: `traffic.py` at both ends.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::cases::{Run, Work};
use super::guest::{Guest, PYTHON, Place};
use super::report::Ending;
use crate::process::workspace_root;

/// What runs at both ends.
pub(super) const SCRIPT: &str = include_str!("traffic.py");
/// The TCP port at which the guest's end waits, as in the script.
pub(super) const PORT: u16 = 18600;
const PATH: &str = "xtask/src/kernel_interop/traffic.py";

/// What the script says of a case.
#[derive(Deserialize)]
struct Verdict {
    passed: bool,
    /// What a device cannot do at all.
    lacking: Option<String>,
    problem: Option<String>,
}

/// Runs one case.
pub(super) fn run(guest: &mut Guest, run: &Run) -> Result<Ending> {
    let Work::Traffic { script, options } = &run.case.work else {
        bail!("{run} is not traffic");
    };
    guest.wait_for_server()?;
    let role = match run.active {
        Place::Host => "requester",
        Place::Guest => "responder",
    };
    let limit = run.case.limit;
    let command = format!(
        "exec {PYTHON} {} run {} {script} {role} ours={} theirs={} limit={} {options}",
        workspace_root().join(PATH).display(),
        // The ends agree over IPv4, whatever the traffic itself is.
        Place::Guest.address(super::cases::Family::V4),
        Place::Host.address(run.family),
        Place::Guest.address(run.family),
        limit.as_secs(),
    );
    let started = guest.start(Place::Host, &command, run.case.faults)?;
    let ended = started.finish(limit);
    let line = ended.said.lines().find(|line| line.starts_with('{'));
    let Some(line) = line else {
        return Ok(Ending::Failed(format!("no verdict: {}", ended.said)));
    };
    let verdict: Verdict = serde_json::from_str(line).context("the script's verdict")?;
    Ok(match verdict {
        _ if !ended.success => Ending::Failed(ended.said),
        Verdict { passed: true, .. } => Ending::Passed,
        Verdict {
            lacking: Some(reason),
            ..
        } if run.case.may_lack => Ending::Lacking(reason),
        Verdict {
            lacking, problem, ..
        } => Ending::Failed(problem.or(lacking).unwrap_or_default()),
    })
}
