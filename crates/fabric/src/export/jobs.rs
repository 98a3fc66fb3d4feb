//! The figures of jobs: time and bandwidth of each phase, as nccl-tests give them, and what was not hidden.

use softfabric_units::{Bytes, Span};

use crate::plan::{Job, NodeId, Plan};
use crate::results::{JobResult, JobStatus, Results, Wait};

/// The figures of one phase of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseFigures {
    /// Its job.
    pub job: String,
    /// Its name.
    pub phase: String,
    /// How many ranks the job has.
    pub ranks: usize,
    /// From the start of its first task, or from the end of the phase before it, to the end of its last task; `None` if it was
    /// not over when the run ended.
    pub time: Option<Span>,
    /// Of a collective: the bytes that it was for.
    pub bytes: Option<Bytes>,
    /// Of a collective: bytes over time, in GB/s (10⁹ bytes a second), as nccl-tests have it.
    pub algorithm_bandwidth: Option<f64>,
    /// The same times what the algorithm must move on each link, in GB/s.
    pub bus_bandwidth: Option<f64>,
    /// The share of the time in which the rank with the most computations did not compute: communication that nothing hid.
    /// `None` where nothing computes.
    pub exposed: Option<f64>,
}

impl PhaseFigures {
    /// Of all phases of all jobs, in order.
    pub fn all(plan: &Plan, results: &Results) -> Vec<Self> {
        (plan.jobs.iter().zip(&results.jobs))
            .flat_map(|(job, result)| Self::of(job, result))
            .collect()
    }

    fn of(job: &Job, result: &JobResult) -> Vec<Self> {
        (job.phases.iter().zip(&result.phases))
            .map(|(phase, result)| {
                let time = result.span();
                let bandwidth = |factor: f64| {
                    let bytes = phase.collective?.bytes.as_u64() as f64;
                    let time = time.filter(|time| *time > Span::ZERO)?;
                    Some(bytes / time.as_seconds_f64() / 1e9 * factor)
                };
                Self {
                    job: job.name.clone(),
                    phase: phase.name.clone(),
                    ranks: job.ranks.len(),
                    time,
                    bytes: phase.collective.map(|measure| measure.bytes),
                    algorithm_bandwidth: bandwidth(1.0),
                    bus_bandwidth: (phase.collective)
                        .and_then(|measure| bandwidth(measure.bus_factor)),
                    exposed: result.exposed().filter(|_| result.computing > Span::ZERO),
                }
            })
            .collect()
    }
}

/// Who waits for whom in a job that did not come to its end: the channel that failed, if one did; then from the first rank that
/// waits, along whom it waits for, to a rank that waits for nobody, or round to one that was there before. A line each.
pub(super) fn chain(plan: &Plan, job: &Job, result: &JobResult) -> Vec<String> {
    let name = |rank: u32| {
        let place = job.ranks[rank as usize];
        let host = &plan.network.nodes[place.host.index()].name;
        format!("rank {rank} ({host})")
    };
    let mut lines = Vec::new();
    if let JobStatus::Failed { flow } = result.status {
        let flow = &plan.flows[flow.index()];
        let name = |node: NodeId| &plan.network.nodes[node.index()].name;
        lines.push(format!(
            "{} has no queue pair left to {}",
            name(flow.source),
            name(flow.destination)
        ));
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut at = result.waits.iter().find(|wait| wait.receives);
    while let Some(wait) = at {
        if !seen.insert(wait.rank) {
            lines.push(format!("and so on in a circle: {}", name(wait.rank)));
            break;
        }
        lines.push(format!(
            "{} waits for {}: {} of {} messages have come",
            name(wait.rank),
            name(wait.other),
            wait.messages,
            wait.of
        ));
        let next = |other: &&Wait| other.rank == wait.other && other.receives;
        at = result.waits.iter().find(next);
    }
    lines
}
