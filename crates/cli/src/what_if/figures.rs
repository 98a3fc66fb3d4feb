//! What a run came to: the figures by which two runs of one scenario are compared.

use serde::Serialize;
use softfabric_fabric::export::Summary;
use softfabric_fabric::plan::{NodeId, Plan};
use softfabric_fabric::results::{FlowResult, FlowStatus, JobStatus, Results};
use softfabric_telemetry::ClassCounter;
use softfabric_units::{Span, Time};

/// The figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    /// How long ports were held, all of them together, in seconds.
    pub(super) paused_seconds: f64,
    /// Packets that were lost.
    pub(super) dropped: u64,
    /// Packets that were sent again.
    pub(super) sent_again: u64,
    /// What all flows delivered, over the whole run.
    pub(super) goodput_bps: f64,
    /// The same of flows to hosts that pause without end or take too little.
    pub(super) goodput_to_source_bps: Option<f64>,
    /// The same of all other flows.
    pub(super) goodput_of_others_bps: Option<f64>,
    pub(super) completed: u64,
    pub(super) failed: u64,
    /// Neither completed nor failed when the run ended.
    pub(super) unfinished: u64,
    pub(super) jobs: Vec<JobFigures>,
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct JobFigures {
    pub(super) name: String,
    /// How long it took; nothing if it did not come to its end.
    pub(super) seconds: Option<f64>,
    pub(super) failed: bool,
}

impl Figures {
    pub(super) fn of(plan: &Plan, results: &Results, sources: &[NodeId]) -> Self {
        let summary = Summary::of(plan, results);
        let paused: u64 = results
            .ports
            .iter()
            .map(|port| port.class_total(ClassCounter::PauseReceivedDuration))
            .sum();
        let length = results.end.since(Time::ZERO).as_seconds_f64();
        let goodput = |wanted: &dyn Fn(NodeId) -> bool| {
            let flows = plan.flows.iter().zip(&results.flows);
            let flows: Vec<f64> = flows
                .filter(|(flow, _)| wanted(flow.destination))
                .map(|(_, result)| result.delivered.as_u64() as f64 * 8.0)
                .collect();
            let bits: f64 = flows.iter().sum();
            (!flows.is_empty() && length > 0.0).then(|| bits / length)
        };
        let count = |wanted: fn(&FlowStatus) -> bool| {
            let flows = results.flows.iter();
            flows.filter(|flow| wanted(&flow.status)).count() as u64
        };
        let jobs = plan.jobs.iter().zip(&results.jobs).map(|(job, result)| {
            let finished = result
                .finished
                .filter(|_| result.status == JobStatus::Completed);
            JobFigures {
                name: job.name.clone(),
                seconds: finished.map(|time| time.since(job.start).as_seconds_f64()),
                failed: matches!(result.status, JobStatus::Failed { .. }),
            }
        });
        Self {
            paused_seconds: Span::picos(paused).as_seconds_f64(),
            dropped: summary.drops,
            sent_again: summary.retransmissions,
            goodput_bps: goodput(&|_| true).unwrap_or(0.0),
            goodput_to_source_bps: goodput(&|host| sources.contains(&host)),
            goodput_of_others_bps: goodput(&|host| !sources.contains(&host))
                .filter(|_| !sources.is_empty()),
            completed: count(|status| *status == FlowStatus::Completed),
            failed: count(|status| matches!(status, FlowStatus::Failed(_))),
            unfinished: count(|status| *status == FlowStatus::Unfinished),
            jobs: jobs.collect(),
        }
    }
}

/// Completion times of the flows that came to their end in both runs: others would make the tails of different sets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Tail {
    pub(super) flows: u64,
    pub(super) p50_ns: f64,
    pub(super) p99_ns: f64,
    pub(super) max_ns: f64,
}

/// The tails of both.
pub(super) fn tails(first: &Results, second: &Results) -> Option<(Tail, Tail)> {
    let both = first.flows.iter().zip(&second.flows);
    let nanos = |flow: &FlowResult| Some(flow.completion_time()?.as_picos() as f64 / 1e3);
    let times: Vec<(f64, f64)> = both
        .filter_map(|(first, second)| nanos(first).zip(nanos(second)))
        .collect();
    let tail = |times: Vec<f64>| {
        let of = softfabric_fabric::export::Distribution::of(times)?;
        Some(Tail {
            flows: of.count,
            p50_ns: of.p50,
            p99_ns: of.p99,
            max_ns: of.max,
        })
    };
    let (first, second) = times.into_iter().unzip();
    tail(first).zip(tail(second))
}
