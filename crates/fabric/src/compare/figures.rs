//! The figures of one run that another technology has as well.

use serde::Serialize;
use softfabric_telemetry::{DeviceCounter, PortCounter, StackCounter};
use softfabric_units::{Span, Time};

use super::failure::{self, Aftermath, EventTime};
use super::measure::Measure;
use crate::export::{Distribution, ProcessorWork, Summary, findings};
use crate::plan::Plan;
use crate::results::{Ending, FlowResult, FlowStatus, JobStatus, Results};

/// The figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// The seed.
    pub seed: u64,
    /// All that the run has, in the order of the measures.
    pub values: Vec<(Measure, f64)>,
    /// Whether everything came to its end: all jobs, and all flows that are no part of a job.
    pub survived: bool,
    /// What somebody must know first: titles of findings.
    pub findings: Vec<String>,
    /// What events did.
    pub aftermath: Vec<Aftermath>,
    /// New forwarding tables after failures.
    pub repairs: Vec<RepairFigures>,
    /// Completion times of flows in nanoseconds, sorted; of many, evenly chosen ones.
    #[serde(skip)]
    pub completions: Vec<f64>,
}

/// What an InfiniBand subnet manager did after links changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RepairFigures {
    /// From the change to new tables, in nanoseconds.
    pub after_ns: f64,
    /// Entries that changed.
    pub entries: u64,
    /// Switches that have such entries.
    pub switches: u64,
}

/// So many completion times are kept for a curve.
const KEPT: usize = 400;

impl Figures {
    /// Of this run. `events` names the plan's actions that are looked at.
    pub(crate) fn of(plan: &Plan, results: &Results, events: &[EventTime]) -> Self {
        let summary = Summary::of(plan, results);
        let over = finished(results).unwrap_or(results.end);
        let mut values = Vec::new();
        let mut add = |measure, value: Option<f64>| {
            values.extend(
                value
                    .filter(|value| value.is_finite())
                    .map(|value| (measure, value)),
            );
        };
        add(Measure::JobTime, job_time(plan, results));
        add(Measure::BusBandwidth, bus_bandwidth(&summary));
        let completions = completions(plan, results);
        let slowdowns = slowdowns(results);
        for (measure, values, share) in [
            (Measure::CompletionMedian, &completions, 0.5),
            (Measure::CompletionP99, &completions, 0.99),
            (Measure::CompletionP999, &completions, 0.999),
            (Measure::SlowdownMedian, &slowdowns, 0.5),
            (Measure::SlowdownP99, &slowdowns, 0.99),
            (Measure::SlowdownP999, &slowdowns, 0.999),
        ] {
            add(measure, percentile(values, share));
        }
        let span = over.since(summary.begin);
        let payload = summary.all.delivered.as_u64() as f64;
        add(Measure::Throughput, per(payload * 8.0, span));
        let undone = own_flows(plan, results)
            .filter(|flow| flow.status != FlowStatus::Completed)
            .count();
        add(Measure::Undone, Some(undone as f64));
        // Where nothing is said of what work costs, nothing was measured.
        if let Some(found) = summary
            .processors
            .as_ref()
            .filter(|found| !found.time.is_zero())
        {
            // A nanosecond a byte is a second a gigabyte.
            let all = found.nanoseconds_per_byte();
            let copies = found.share(ProcessorWork::Copies) + found.share(ProcessorWork::Staging);
            add(Measure::ProcessorTime, all);
            add(Measure::CopyTime, all.map(|all| all * copies));
        }
        let ethernet = plan.link_layer.infiniband().is_none();
        let active = summary.active.as_picos().max(1) as f64;
        if ethernet {
            add(Measure::PauseFrames, Some(summary.pause_frames as f64));
            let longest = (results.ports.iter())
                .filter_map(|port| port.longest_paused_class())
                .map(|(_, time)| time.as_picos())
                .max();
            add(
                Measure::PausedShare,
                Some(longest.unwrap_or(0) as f64 / active),
            );
        } else {
            let waits = results.ports.iter();
            let longest = waits
                .map(|port| port.port.value(PortCounter::TransmitWait))
                .max();
            add(
                Measure::CreditShare,
                Some(longest.unwrap_or(0) as f64 / active),
            );
        }
        add(Measure::Drops, Some(summary.drops as f64));
        add(Measure::LosslessDrops, Some(summary.lossless_drops as f64));
        add(
            Measure::Retransmissions,
            Some(summary.retransmissions as f64),
        );
        add(Measure::Timeouts, Some(timeouts(results) as f64));
        add(Measure::Marks, Some(summary.ecn_marked as f64));
        let echoes: u64 = (results.stacks.iter())
            .map(|stack| stack.counters.value(StackCounter::EchoesReceived))
            .sum();
        add(
            Measure::Notifications,
            Some((summary.notifications.max(summary.cnps) + echoes) as f64),
        );
        values.sort_by_key(|(measure, _)| *measure);
        let found = findings::find(plan, results);
        Self {
            seed: plan.seed,
            values,
            survived: survived(plan, results),
            findings: found.into_iter().map(|finding| finding.title).collect(),
            aftermath: failure::all(results, &summary, over, events),
            repairs: (results.repairs.iter())
                .map(|repair| RepairFigures {
                    after_ns: nanoseconds(repair.programmed.since(repair.changed)),
                    entries: repair.entries,
                    switches: repair.switches,
                })
                .collect(),
            completions: thinned(&completions),
        }
    }

    /// The value of a measure, if the run has one.
    pub fn value(&self, measure: Measure) -> Option<f64> {
        let found = self.values.iter().find(|(of, _)| *of == measure);
        found.map(|(_, value)| *value)
    }
}

pub(super) fn nanoseconds(span: Span) -> f64 {
    span.as_picos() as f64 / 1e3
}

/// The flows that are no part of a job: what a job sends is as long as the job.
fn own_flows<'a>(plan: &'a Plan, results: &'a Results) -> impl Iterator<Item = &'a FlowResult> {
    (plan.flows.iter().zip(&results.flows))
        .filter(|(flow, _)| !flow.is_fed())
        .map(|(_, result)| result)
}

/// When the last flow or job was done.
fn finished(results: &Results) -> Option<Time> {
    let flows = results.flows.iter().filter_map(|flow| flow.finished);
    let jobs = results.jobs.iter().filter_map(|job| job.finished);
    flows.chain(jobs).max()
}

fn job_time(plan: &Plan, results: &Results) -> Option<f64> {
    let first = plan.jobs.iter().map(|job| job.start).min()?;
    let mut last = Time::ZERO;
    for job in &results.jobs {
        if job.status != JobStatus::Completed {
            return None;
        }
        last = last.max(job.finished?);
    }
    Some(nanoseconds(last.since(first)))
}

fn bus_bandwidth(summary: &Summary) -> Option<f64> {
    let phases = summary.phases.iter();
    Distribution::of(phases.filter_map(|phase| phase.bus_bandwidth)).map(|found| found.p50)
}

fn completions(plan: &Plan, results: &Results) -> Vec<f64> {
    let mut times: Vec<f64> = own_flows(plan, results)
        .filter_map(|flow| flow.completion_time().map(nanoseconds))
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times
}

fn slowdowns(results: &Results) -> Vec<f64> {
    let mut found: Vec<f64> = (results.flows.iter())
        .filter_map(|flow| flow.slowdown())
        .collect();
    found.sort_unstable_by(f64::total_cmp);
    found
}

/// The smallest value with at least this share of the sorted values at or below it.
fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = libm::ceil(sorted.len() as f64 * share - 1e-9).max(1.0) as usize;
    sorted.get(rank - 1).copied()
}

fn per(amount: f64, span: Span) -> Option<f64> {
    (!span.is_zero()).then(|| amount / span.as_seconds_f64())
}

fn timeouts(results: &Results) -> u64 {
    let devices = results.devices.iter();
    let stacks = results.stacks.iter();
    devices
        .map(|device| device.counters.value(DeviceCounter::LocalAckTimeout))
        .chain(stacks.map(|stack| stack.counters.value(StackCounter::Timeouts)))
        .sum()
}

fn survived(plan: &Plan, results: &Results) -> bool {
    let jobs = (results.jobs.iter()).all(|job| job.status == JobStatus::Completed);
    let flows = own_flows(plan, results).all(|flow| flow.status == FlowStatus::Completed);
    jobs && flows && !matches!(results.ending, Ending::Stalled | Ending::Interrupted)
}

fn thinned(sorted: &[f64]) -> Vec<f64> {
    let count = sorted.len().min(KEPT);
    let rank = |point: usize| ((point + 1) * sorted.len()).div_ceil(count) - 1;
    (0..count).map(|point| sorted[rank(point)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_the_set() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(percentile(&values, 0.5), Some(500.0));
        assert_eq!(percentile(&values, 0.99), Some(990.0));
        assert_eq!(percentile(&values, 0.999), Some(999.0));
        assert_eq!(percentile(&values[..16], 0.999), Some(16.0));
        assert_eq!(percentile(&[], 0.5), None);
        let kept = thinned(&values);
        assert_eq!((kept.len(), kept[KEPT - 1]), (KEPT, 1000.0));
    }
}
