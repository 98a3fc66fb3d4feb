//! The figures of jobs: time and bandwidth of each phase, as nccl-tests give them, and what was not hidden.

use softfabric_units::{Bytes, Span, Time};

use super::findings::{Finding, Kind, Weight, count, shortened};
use crate::plan::{Flow, FlowId, Job, NodeId, Plan, Start};
use crate::results::{Ending, FlowStatus, JobResult, JobStatus, Results, Wait};

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

/// What became of a job, where something breaks in the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFigures {
    /// Its name.
    pub job: String,
    /// It came to its end; otherwise it failed, or was stopped.
    pub survived: bool,
    /// When the first thing broke, and when all was whole again, if ever.
    pub broken: (Time, Option<Time>),
    /// What all ranks together got from other servers while all was whole, in GB/s (10⁹ bytes a second) over the time that the
    /// job ran; `None` if it did not.
    pub before: Option<f64>,
    /// The same while something was broken.
    pub during: Option<f64>,
    /// And from then on.
    pub after: Option<f64>,
}

impl JobFigures {
    /// Of all jobs, in order; none if nothing breaks.
    pub fn all(plan: &Plan, results: &Results) -> Vec<Self> {
        (plan.jobs.iter().zip(&results.jobs))
            .filter_map(|(job, result)| Self::of(job, result, results.end))
            .collect()
    }

    fn of(job: &Job, result: &JobResult, end: Time) -> Option<Self> {
        let eras = result.eras?;
        let end = result.finished.unwrap_or(end);
        let until = eras.until.unwrap_or(Time::NEVER);
        let over = |bytes: Bytes, from: Time, to: Time| {
            let (from, to) = (from.max(job.start), to.min(end));
            (to > from).then(|| bytes.as_u64() as f64 / to.since(from).as_seconds_f64() / 1e9)
        };
        Some(Self {
            job: job.name.clone(),
            survived: result.status == JobStatus::Completed,
            broken: (eras.from, eras.until),
            before: over(eras.before, job.start, eras.from),
            during: over(eras.during, eras.from, until),
            after: over(eras.after, until, Time::NEVER),
        })
    }

    /// `40.10 GB/s before, 20.30 GB/s during, 40.00 GB/s after`, as far as the job ran.
    pub fn in_words(&self) -> String {
        let parts = [
            (self.before, "before"),
            (self.during, "during"),
            (self.after, "after"),
        ];
        let parts: Vec<String> = (parts.iter())
            .filter_map(|(value, when)| Some(format!("{:.2} GB/s {when}", (*value)?)))
            .collect();
        parts.join(", ")
    }
}

/// Jobs that failed or stand still, and jobs that went on with fewer queue pairs.
pub(super) fn findings(plan: &Plan, results: &Results) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, (job, result)) in plan.jobs.iter().zip(&results.jobs).enumerate() {
        let name = &job.name;
        match &result.status {
            JobStatus::Completed => {
                let failures = failures(plan, results, number);
                let words = JobFigures::of(job, result, results.end)
                    .filter(|figures| figures.during.is_some())
                    .map(|figures| figures.in_words());
                if let (true, Some(words)) = (failures.is_empty(), &words) {
                    found.push(Finding {
                        kind: Kind::JobSurvived,
                        weight: Weight::Notice,
                        title: format!("Job {name} went through what broke: {words}"),
                        details: Vec::new(),
                        advice: "What is missing afterwards is what did not come back.".to_owned(),
                    });
                } else if !failures.is_empty() {
                    let what = match over_tcp(plan, job) {
                        true => "connection",
                        false => "queue pair",
                    };
                    found.push(Finding {
                        kind: Kind::JobSurvived,
                        weight: Weight::Notice,
                        title: format!(
                            "Job {name} lost {} and went on",
                            count(failures.len() as u64, what)
                        ),
                        details: shortened(words.into_iter().chain(failures).collect()),
                        advice: "Compare the phases before and after: the bandwidth that is left is that of the other \
                                 ports."
                            .to_owned(),
                    });
                }
            }
            JobStatus::Failed { flow } => found.push(failed(plan, results, job, result, *flow)),
            JobStatus::Unfinished if results.ending == Ending::Stalled => found.push(Finding {
                kind: Kind::JobFailed,
                weight: Weight::Failure,
                title: format!("Job {name} stands still: ranks wait for each other"),
                details: shortened(chain(plan, job, result)),
                advice: "Each rank must receive what is sent to it, and send what is waited for."
                    .to_owned(),
            }),
            JobStatus::Unfinished => {}
        }
    }
    found
}

/// A job that has lost what it cannot do without.
fn failed(plan: &Plan, results: &Results, job: &Job, result: &JobResult, lost: FlowId) -> Finding {
    let flow = &plan.flows[lost.index()];
    let words = JobFigures::of(job, result, results.end).map(|figures| figures.in_words());
    let status = match &results.flows[lost.index()].status {
        FlowStatus::Failed(status) => status.as_str(),
        _ => "",
    };
    Finding {
        kind: Kind::JobFailed,
        weight: Weight::Failure,
        title: format!("Job {} failed: {}: {status}", job.name, ends(plan, flow)),
        details: shortened(words.into_iter().chain(chain(plan, job, result)).collect()),
        advice: match plan.stack_of(flow.source) {
            Some(_) => "It goes on if its connections last longer than the outage: `host.tcp.retries`, and the \
                        retransmission timeouts, each twice the one before.",
            None => "It goes on if its queue pairs last longer than the outage (`host.timeout`, `host.retry`), or if it \
                     has others: several planes, or `failover`.",
        }
        .to_owned(),
    }
}

/// Whether the ranks of a job speak TCP; all do, or none.
fn over_tcp(plan: &Plan, job: &Job) -> bool {
    let first = job.ranks.first();
    first.is_some_and(|rank| plan.stack_of(rank.host).is_some())
}

/// A connection by its addresses, `h0:49152 → h1:5201`, or a queue pair by its ports, `h0 port 1 → h1 port 1`.
fn ends(plan: &Plan, flow: &Flow) -> String {
    let name = |node: NodeId| &plan.network.nodes[node.index()].name;
    let (from, to) = (name(flow.source), name(flow.destination));
    match plan.stack_of(flow.source) {
        Some(_) => {
            let (out, into) = (flow.udp_source_port, flow.udp_destination_port);
            format!("{from}:{out} → {to}:{into}")
        }
        None => {
            let (out, into) = (flow.source_nic.0, flow.destination_nic.0);
            format!("{from} port {out} → {to} port {into}")
        }
    }
}

/// The failed queue pairs or connections of a job, a line each.
fn failures(plan: &Plan, results: &Results, job: usize) -> Vec<String> {
    (plan.flows.iter().zip(&results.flows))
        .filter(|(flow, _)| matches!(flow.start, Start::Fed(of, _) if of.0 as usize == job))
        .filter_map(|(flow, result)| match &result.status {
            FlowStatus::Failed(status) => Some(format!("{}: {status}", ends(plan, flow))),
            _ => None,
        })
        .collect()
}

/// Who waits for whom in a job that did not come to its end: the channel that failed, if one did; then from the first rank that
/// waits, along whom it waits for, to a rank that waits for nobody, or round to one that was there before. A line each.
fn chain(plan: &Plan, job: &Job, result: &JobResult) -> Vec<String> {
    let name = |rank: u32| {
        let place = job.ranks[rank as usize];
        let host = &plan.network.nodes[place.host.index()].name;
        format!("rank {rank} ({host})")
    };
    let mut lines = Vec::new();
    if let JobStatus::Failed { flow } = result.status {
        let flow = &plan.flows[flow.index()];
        let name = |node: NodeId| &plan.network.nodes[node.index()].name;
        let lost = match plan.stack_of(flow.source) {
            Some(_) => "has lost its connection to",
            None => "has no queue pair left to",
        };
        lines.push(format!(
            "{} {lost} {}",
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
