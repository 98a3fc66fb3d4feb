//! The figures of a run: totals, and order statistics of its flows by group and by size.

use std::collections::BTreeMap;

use softfabric_telemetry::{ClassCounter, DeviceCounter, Kind, PortCounter, StackCounter};
use softfabric_units::{Bytes, Class, Span, Time};

use super::{Distribution, JobFigures, PhaseFigures, ProcessorFigures};
use crate::plan::{Flow, Plan};
use crate::results::{FirstSignals, FlowResult, FlowStatus, PortResult, Results};

/// The figures of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// When the first flow started; zero if none did.
    pub begin: Time,
    /// From then to the end, or for as long as a port stood still, if that is longer: what shares of time are shares
    /// of. Ports of a deadlock are paused long after the last packet moved.
    pub active: Span,
    /// Packets that arrived at the end of a link, pause frames left out.
    pub link_hops: u64,
    /// Events handled.
    pub events: u64,
    /// Packets dropped, by any reason.
    pub drops: u64,
    /// Packets that lossless classes dropped.
    pub lossless_drops: u64,
    /// Pause frames received, resume frames left out.
    pub pause_frames: u64,
    /// Ports that had something to send and could not: on InfiniBand, for want of credit.
    pub waiting_ports: u64,
    /// Packets that switches marked CE.
    pub ecn_marked: u64,
    /// CNPs that receivers sent.
    pub cnps: u64,
    /// Notifications that reached senders: CNPs, or acknowledgements that carry the mark.
    pub notifications: u64,
    /// Request packets sent again.
    pub retransmissions: u64,
    /// When the network first marked, paused and dropped.
    pub first_signals: FirstSignals,
    /// The phases of jobs, in order.
    pub phases: Vec<PhaseFigures>,
    /// What became of the jobs, where something breaks in the plan.
    pub jobs: Vec<JobFigures>,
    /// What communication cost the processors of hosts, where that was asked: of TCP, and of what ranks of jobs post.
    pub processors: Option<ProcessorFigures>,
    /// All flows.
    pub all: FlowFigures,
    /// The flows of each group, in the order in which groups occur; one entry if there are no groups.
    pub groups: Vec<GroupFigures>,
    /// The flows by size, from small to large.
    pub sizes: Vec<SizeFigures>,
}

/// Figures of a set of flows.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FlowFigures {
    /// How many there are.
    pub flows: u64,
    /// How many are done.
    pub completed: u64,
    /// How many failed.
    pub failed: u64,
    /// What they were to send.
    pub bytes: Bytes,
    /// What arrived of it.
    pub delivered: Bytes,
    /// Flow completion time in nanoseconds, of those that are done.
    pub completion_ns: Option<Distribution>,
    /// Slowdown of those that are done.
    pub slowdown: Option<Distribution>,
    /// Goodput in bit/s of those that started.
    pub goodput_bps: Option<Distribution>,
}

/// Figures of the flows of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupFigures {
    /// The group; may be empty.
    pub name: String,
    /// Its figures.
    pub figures: FlowFigures,
}

/// Figures of the flows of one range of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeFigures {
    /// The smallest size in the range that occurs.
    pub from: Bytes,
    /// The largest size in the range that occurs.
    pub to: Bytes,
    /// The figures.
    pub figures: FlowFigures,
}

/// Above so many different sizes, flows are put together in ranges.
const EXACT_SIZES: usize = 10;

impl Summary {
    /// The phases of each job.
    pub fn jobs(&self) -> impl Iterator<Item = &[PhaseFigures]> {
        self.phases.chunk_by(|one, other| one.job == other.job)
    }

    /// Of this run.
    pub fn of(plan: &Plan, results: &Results) -> Self {
        let class_total = |counter| {
            results
                .ports
                .iter()
                .map(|port| port.class_total(counter))
                .sum()
        };
        let device_total = |counter| {
            let devices = results.devices.iter();
            devices.map(|device| device.counters.value(counter)).sum()
        };
        let flows: Vec<_> = plan.flows.iter().zip(&results.flows).collect();
        let begin = results.flows.iter().filter_map(|flow| flow.start).min();
        let begin = begin.unwrap_or(Time::ZERO);
        let active = results.end.since(begin).max(longest_pause(results));
        Self {
            begin,
            active,
            processors: ProcessorFigures::of(results, active),
            link_hops: results.work.link_hops,
            events: results.work.events,
            drops: results.conservation.dropped,
            lossless_drops: results.lossless_drops,
            pause_frames: class_total(ClassCounter::PauseReceived),
            waiting_ports: (results.ports.iter())
                .filter(|port| port.port.value(PortCounter::TransmitWait) > 0)
                .count() as u64,
            ecn_marked: class_total(ClassCounter::EcnMarked),
            cnps: device_total(DeviceCounter::CnpSent),
            notifications: results.flows.iter().map(|flow| flow.notifications).sum(),
            retransmissions: device_total(DeviceCounter::Retransmitted)
                + (results.stacks.iter())
                    .map(|stack| stack.counters.value(StackCounter::Retransmitted))
                    .sum::<u64>(),
            first_signals: results.first_signals,
            phases: PhaseFigures::all(plan, results),
            jobs: JobFigures::all(plan, results),
            all: FlowFigures::of(&flows, results),
            groups: by_group(&flows, results),
            sizes: by_size(&flows, results),
        }
    }
}

/// The longest time that a class of a port was paused.
fn longest_pause(results: &Results) -> Span {
    let pauses = results
        .ports
        .iter()
        .filter_map(PortResult::longest_paused_class);
    pauses.map(|(_, time)| time).max().unwrap_or(Span::ZERO)
}

impl FlowFigures {
    fn of(flows: &[(&Flow, &FlowResult)], results: &Results) -> Self {
        // What a job sends is as long as the job: its phases have their own figures.
        let own = || (flows.iter()).filter(|(flow, _)| !flow.is_fed());
        let started = own().filter(|(_, result)| result.start.is_some());
        let count = |wanted: fn(&FlowStatus) -> bool| {
            flows
                .iter()
                .filter(|(_, result)| wanted(&result.status))
                .count() as u64
        };
        let completion = own().filter_map(|(_, result)| result.completion_time());
        Self {
            flows: flows.len() as u64,
            completed: count(|status| *status == FlowStatus::Completed),
            failed: count(|status| matches!(status, FlowStatus::Failed(_))),
            bytes: flows.iter().map(|(flow, _)| flow.bytes).sum(),
            delivered: flows.iter().map(|(_, result)| result.delivered).sum(),
            completion_ns: Distribution::of(completion.map(|time| time.as_picos() as f64 / 1e3)),
            slowdown: Distribution::of(flows.iter().filter_map(|(_, result)| result.slowdown())),
            goodput_bps: Distribution::of(
                started.map(|(_, result)| result.goodput(results.end).as_bps() as f64),
            ),
        }
    }
}

impl PortResult {
    /// A counter over all classes of the port: totals add, of watermarks the highest counts.
    pub fn class_total(&self, counter: ClassCounter) -> u64 {
        let values = self.classes.iter().map(|class| class.value(counter));
        match counter.definition().kind {
            Kind::Total => values.sum(),
            Kind::Watermark => values.max().unwrap_or(0),
        }
    }

    /// The class that the other end paused longest here, if any was paused.
    pub fn longest_paused_class(&self) -> Option<(Class, Span)> {
        let paused = Class::all().map(|class| {
            let counters = &self.classes[class.index()];
            (class, counters.value(ClassCounter::PauseReceivedDuration))
        });
        let (class, picos) =
            paused.max_by_key(|(class, picos)| (*picos, std::cmp::Reverse(*class)))?;
        (picos > 0).then(|| (class, Span::picos(picos)))
    }
}

fn by_group(flows: &[(&Flow, &FlowResult)], results: &Results) -> Vec<GroupFigures> {
    let mut groups: Vec<(&str, Vec<(&Flow, &FlowResult)>)> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for &(flow, result) in flows {
        let index = *known.entry(&flow.group).or_insert(groups.len());
        if index == groups.len() {
            groups.push((&flow.group, Vec::new()));
        }
        groups[index].1.push((flow, result));
    }
    let figures = groups.into_iter().map(|(name, members)| GroupFigures {
        name: name.to_owned(),
        figures: FlowFigures::of(&members, results),
    });
    figures.collect()
}

fn by_size(flows: &[(&Flow, &FlowResult)], results: &Results) -> Vec<SizeFigures> {
    let mut flows = flows.to_vec();
    flows.sort_by_key(|(flow, _)| flow.bytes);
    let sizes = flows.chunk_by(|a, b| a.0.bytes == b.0.bytes).count();
    let range = |flow: &Flow| {
        if sizes <= EXACT_SIZES {
            flow.bytes.as_u64()
        } else {
            size_range(flow.bytes.as_u64())
        }
    };
    let chunks = flows.chunk_by(|a, b| range(a.0) == range(b.0));
    let figures = chunks.map(|chunk| SizeFigures {
        from: chunk[0].0.bytes,
        to: chunk[chunk.len() - 1].0.bytes,
        figures: FlowFigures::of(chunk, results),
    });
    figures.collect()
}

/// The upper end of the size's range: 1, 3, 10, 30, 100 … bytes.
fn size_range(bytes: u64) -> u64 {
    let mut end: u64 = 1;
    while end < bytes {
        let third = end.saturating_mul(3);
        if bytes <= third {
            return third;
        }
        end = end.saturating_mul(10);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn totals_come_from_the_counters() {
        let (plan, results) = sample::incast();
        let summary = Summary::of(&plan, &results);
        let marked: u64 = results
            .ports
            .iter()
            .flat_map(|port| &port.classes)
            .map(|class| class.value(ClassCounter::EcnMarked))
            .sum();
        assert!(marked > 0);
        assert_eq!(summary.ecn_marked, marked);
        assert_eq!(summary.drops, results.conservation.dropped);
        assert_eq!(summary.all.flows, plan.flows.len() as u64);
    }

    #[test]
    fn the_active_time_begins_with_the_first_flow() {
        let (plan, mut results) = sample::incast();
        for flow in &mut results.flows {
            flow.start = flow.start.map(|start| start + Span::seconds(2));
        }
        results.end += Span::seconds(2);
        let summary = Summary::of(&plan, &results);
        assert_eq!(summary.begin, Time::ZERO + Span::seconds(2));
        assert_eq!(summary.active, results.end - summary.begin);
    }

    /// Nothing moves in a deadlock, but its ports stay paused: no share of the time is above the whole.
    #[test]
    fn no_port_is_paused_for_longer_than_the_active_time() {
        let (plan, mut results) = sample::deadlocked();
        results.end = Time::from_nanos(1);
        let summary = Summary::of(&plan, &results);
        let paused = longest_pause(&results);
        assert!(paused > Span::nanos(1));
        assert_eq!(summary.active, paused);
    }

    #[test]
    fn groups_keep_their_order_and_lose_no_flow() {
        let (plan, results) = sample::incast();
        let summary = Summary::of(&plan, &results);
        let names: Vec<_> = summary
            .groups
            .iter()
            .map(|group| group.name.as_str())
            .collect();
        assert_eq!(names, ["incast", "victim"]);
        let flows: u64 = summary.groups.iter().map(|group| group.figures.flows).sum();
        assert_eq!(flows, summary.all.flows);
        let by_size: u64 = summary.sizes.iter().map(|size| size.figures.flows).sum();
        assert_eq!(by_size, summary.all.flows);
    }

    #[test]
    fn many_sizes_are_put_together() {
        assert_eq!(size_range(1), 1);
        assert_eq!(size_range(2), 3);
        assert_eq!(size_range(3), 3);
        assert_eq!(size_range(4), 10);
        assert_eq!(size_range(1_000_000), 1_000_000);
        assert_eq!(size_range(1_000_001), 3_000_000);
        assert!(size_range(u64::MAX) > 0);
    }
}
