//! One JSON document with everything that a run left behind.
//!
//! Equal runs give equal bytes but for `summary.wall_seconds`, which the caller gives and may leave out. Times are in
//! nanoseconds where a key ends in `_ns`; counters have the ids of the table and the units of
//! [`exported_unit`](super::exported_unit). A class that saw nothing on a port is left out.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use softfabric_telemetry::{CounterDefinition, Series};
use softfabric_units::Class;

use super::findings::{self, Finding};
use super::value::Nanoseconds;
use super::{Distribution, ExportedValue, FlowFigures, Names, Summary, exported};
use crate::plan::{Endpoint, Plan, Timing};
use crate::results::{
    Conservation, DropReason, Ending, FirstSignals, FlowStatus, MulticastResult, PortResult,
    Results, Signal,
};

/// The version of the document's shape: it grows when a key goes away or changes its meaning.
pub const FORMAT_VERSION: u32 = 1;

/// What the document says that is neither in the plan nor in the results.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Circumstances {
    /// How long the run took by a real clock; `None` leaves it `null`.
    pub wall_seconds: Option<f64>,
}

/// Writes the document, and a newline.
///
/// # Errors
/// What `out` says.
pub fn write(
    out: &mut impl Write,
    plan: &Plan,
    results: &Results,
    circumstances: &Circumstances,
) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &document(plan, results, circumstances))?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    softfabric: &'static str,
    scenario: &'a str,
    seed: u64,
    timing: &'static str,
    ending: &'static str,
    end_ns: Nanoseconds,
    findings: Vec<Finding>,
    summary: SummaryEntry,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    phases: Vec<PhaseEntry>,
    /// What became of jobs, where something breaks in the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<JobEntry>,
    groups: Vec<GroupEntry>,
    sizes: Vec<SizeEntry>,
    flows: Vec<FlowEntry<'a>>,
    ports: Vec<PortEntry<'a>>,
    devices: Vec<DeviceEntry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stacks: Vec<StackEntry<'a>>,
    lossless_drops: Vec<DropEntry>,
    deadlock: Option<DeadlockEntry>,
    conservation: ConservationEntry<'a>,
    series: SeriesEntries<'a>,
}

#[derive(Serialize)]
struct SummaryEntry {
    link_hops: u64,
    events: u64,
    wall_seconds: Option<f64>,
    drops: u64,
    lossless_drops: u64,
    pause_frames: u64,
    ecn_marked: u64,
    cnps: u64,
    notifications: u64,
    retransmissions: u64,
    /// When the network first marked, paused (or waited for credit) and dropped.
    first_signals: BTreeMap<&'static str, SignalEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processors: Option<ProcessorsEntry>,
    #[serde(flatten)]
    flows: FiguresEntry,
}

#[derive(Serialize)]
struct SignalEntry {
    at_ns: Nanoseconds,
    port: String,
}

#[derive(Serialize)]
struct ProcessorsEntry {
    time_ns: Nanoseconds,
    /// By what it was spent on.
    shares: BTreeMap<&'static str, f64>,
    nanoseconds_per_byte: Option<f64>,
    cores_for_100_gbps: Option<f64>,
    busiest: String,
    busiest_cores: f64,
}

#[derive(Serialize)]
struct FiguresEntry {
    flows: u64,
    completed: u64,
    failed: u64,
    bytes: u64,
    delivered_bytes: u64,
    fct_ns: Option<Distribution>,
    slowdown: Option<Distribution>,
    goodput_bps: Option<Distribution>,
}

#[derive(Serialize)]
struct PhaseEntry {
    job: String,
    phase: String,
    ranks: usize,
    time_ns: Option<Nanoseconds>,
    bytes: Option<u64>,
    algorithm_bandwidth_gbytes_per_second: Option<f64>,
    bus_bandwidth_gbytes_per_second: Option<f64>,
    exposed_share: Option<f64>,
}

#[derive(Serialize)]
struct JobEntry {
    job: String,
    survived: bool,
    broken_ns: Nanoseconds,
    whole_ns: Option<Nanoseconds>,
    before_gbytes_per_second: Option<f64>,
    during_gbytes_per_second: Option<f64>,
    after_gbytes_per_second: Option<f64>,
}

#[derive(Serialize)]
struct GroupEntry {
    group: String,
    #[serde(flatten)]
    figures: FiguresEntry,
}

#[derive(Serialize)]
struct SizeEntry {
    from_bytes: u64,
    to_bytes: u64,
    #[serde(flatten)]
    figures: FiguresEntry,
}

#[derive(Serialize)]
struct FlowEntry<'a> {
    id: usize,
    group: &'a str,
    source: &'a str,
    destination: &'a str,
    bytes: u64,
    class: u8,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    start_ns: Option<Nanoseconds>,
    fct_ns: Option<Nanoseconds>,
    received_ns: Option<Nanoseconds>,
    ideal_ns: Nanoseconds,
    slowdown: Option<f64>,
    delivered_bytes: u64,
    goodput_bps: u64,
    retransmissions: u64,
    notifications: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    multicast: Option<MulticastEntry<'a>>,
}

#[derive(Serialize)]
struct MulticastEntry<'a> {
    sent_packets: u64,
    members: Vec<MemberEntry<'a>>,
}

#[derive(Serialize)]
struct MemberEntry<'a> {
    member: &'a str,
    packets: u64,
    lost_packets: u64,
    bytes: u64,
    received_ns: Option<Nanoseconds>,
}

#[derive(Serialize)]
struct PortEntry<'a> {
    port: String,
    node: &'a str,
    index: u16,
    peer: Option<String>,
    rate_bps: Option<u64>,
    counters: BTreeMap<&'static str, ExportedValue>,
    classes: Vec<ClassEntry>,
}

#[derive(Serialize)]
struct ClassEntry {
    class: usize,
    counters: BTreeMap<&'static str, ExportedValue>,
}

#[derive(Serialize)]
struct DeviceEntry<'a> {
    node: &'a str,
    counters: BTreeMap<&'static str, ExportedValue>,
}

#[derive(Serialize)]
struct StackEntry<'a> {
    node: &'a str,
    cores: u32,
    counters: BTreeMap<&'static str, ExportedValue>,
}

#[derive(Serialize)]
struct DropEntry {
    time_ns: Nanoseconds,
    port: String,
    class: u8,
    flow: u32,
    reason: &'static str,
}

#[derive(Serialize)]
struct DeadlockEntry {
    class: u8,
    since_ns: Nanoseconds,
    cycle: Vec<String>,
}

#[derive(Serialize)]
struct ConservationEntry<'a> {
    sent: u64,
    copied: u64,
    delivered: u64,
    dropped: u64,
    in_flight: u64,
    violations: &'a [String],
}

#[derive(Serialize)]
struct SeriesEntries<'a> {
    ports: Vec<PortSeriesEntry<'a>>,
    flows: Vec<FlowSeriesEntry<'a>>,
    ecn_marked: Option<SeriesEntry<'a>>,
    cnps: Option<SeriesEntry<'a>>,
    paused_queues: Option<SeriesEntry<'a>>,
    delivered_bps: Option<SeriesEntry<'a>>,
}

#[derive(Serialize)]
struct PortSeriesEntry<'a> {
    port: String,
    queue_bytes: SeriesEntry<'a>,
    mean_queue_bytes: SeriesEntry<'a>,
    paused_share: SeriesEntry<'a>,
    rate_bps: SeriesEntry<'a>,
}

#[derive(Serialize)]
struct FlowSeriesEntry<'a> {
    flow: u32,
    rate_bps: SeriesEntry<'a>,
    allowed_bps: SeriesEntry<'a>,
}

/// Value `i` belongs to the interval that ends at `(i + 1) · interval_ns`.
#[derive(Serialize)]
struct SeriesEntry<'a> {
    interval_ns: Nanoseconds,
    #[serde(serialize_with = "short_numbers")]
    values: &'a [f64],
}

fn document<'a>(
    plan: &'a Plan,
    results: &'a Results,
    circumstances: &Circumstances,
) -> Document<'a> {
    let names = Names::new(&plan.network);
    let summary = Summary::of(plan, results);
    Document {
        format: "softfabric-run",
        version: FORMAT_VERSION,
        softfabric: env!("CARGO_PKG_VERSION"),
        scenario: &plan.name,
        seed: plan.seed,
        timing: timing_name(plan.timing),
        ending: ending_name(results.ending),
        end_ns: results.end.into(),
        findings: findings::find(plan, results),
        summary: SummaryEntry {
            link_hops: summary.link_hops,
            events: summary.events,
            wall_seconds: circumstances.wall_seconds,
            drops: summary.drops,
            lossless_drops: summary.lossless_drops,
            pause_frames: summary.pause_frames,
            ecn_marked: summary.ecn_marked,
            cnps: summary.cnps,
            notifications: summary.notifications,
            retransmissions: summary.retransmissions,
            first_signals: first_signals(&summary, &names),
            processors: summary.processors.as_ref().map(|found| ProcessorsEntry {
                time_ns: Nanoseconds(found.time.as_picos()),
                shares: (found.parts.iter())
                    .map(|(work, _)| (work.name(), found.share(*work)))
                    .collect(),
                nanoseconds_per_byte: found.nanoseconds_per_byte(),
                cores_for_100_gbps: found.cores_for_100_gbps(),
                busiest: names.node(found.busiest).name.clone(),
                busiest_cores: found.busiest_cores,
            }),
            flows: figures(&summary.all),
        },
        phases: (summary.phases.iter())
            .map(|phase| PhaseEntry {
                job: phase.job.clone(),
                phase: phase.phase.clone(),
                ranks: phase.ranks,
                time_ns: phase.time.map(Into::into),
                bytes: phase.bytes.map(softfabric_units::Bytes::as_u64),
                algorithm_bandwidth_gbytes_per_second: phase.algorithm_bandwidth,
                bus_bandwidth_gbytes_per_second: phase.bus_bandwidth,
                exposed_share: phase.exposed,
            })
            .collect(),
        jobs: (summary.jobs.iter())
            .map(|job| JobEntry {
                job: job.job.clone(),
                survived: job.survived,
                broken_ns: job.broken.0.into(),
                whole_ns: job.broken.1.map(Into::into),
                before_gbytes_per_second: job.before,
                during_gbytes_per_second: job.during,
                after_gbytes_per_second: job.after,
            })
            .collect(),
        groups: summary
            .groups
            .iter()
            .map(|group| GroupEntry {
                group: group.name.clone(),
                figures: figures(&group.figures),
            })
            .collect(),
        sizes: summary
            .sizes
            .iter()
            .map(|size| SizeEntry {
                from_bytes: size.from.as_u64(),
                to_bytes: size.to.as_u64(),
                figures: figures(&size.figures),
            })
            .collect(),
        flows: flows(plan, results),
        ports: results
            .ports
            .iter()
            .map(|port| port_entry(&names, port))
            .collect(),
        devices: results
            .devices
            .iter()
            .map(|device| DeviceEntry {
                node: &names.node(device.node).name,
                counters: counters(device.counters.iter().map(|(c, v)| (c.definition(), v))),
            })
            .collect(),
        stacks: results
            .stacks
            .iter()
            .map(|stack| StackEntry {
                node: &names.node(stack.node).name,
                cores: stack.cores,
                counters: counters(stack.counters.iter().map(|(c, v)| (c.definition(), v))),
            })
            .collect(),
        lossless_drops: results
            .first_lossless_drops
            .iter()
            .map(|drop| DropEntry {
                time_ns: drop.time.into(),
                port: names.port(drop.endpoint),
                class: drop.class.as_u8(),
                flow: drop.flow.0,
                reason: reason_name(drop.reason),
            })
            .collect(),
        deadlock: results.deadlock.as_ref().map(|deadlock| DeadlockEntry {
            class: deadlock.class.as_u8(),
            since_ns: deadlock.since.into(),
            cycle: deadlock
                .cycle
                .iter()
                .map(|&port| names.port(port))
                .collect(),
        }),
        conservation: conservation(&results.conservation),
        series: series_entries(&names, results),
    }
}

fn figures(figures: &FlowFigures) -> FiguresEntry {
    FiguresEntry {
        flows: figures.flows,
        completed: figures.completed,
        failed: figures.failed,
        bytes: figures.bytes.as_u64(),
        delivered_bytes: figures.delivered.as_u64(),
        fct_ns: figures.completion_ns,
        slowdown: figures.slowdown,
        goodput_bps: figures.goodput_bps,
    }
}

fn flows<'a>(plan: &'a Plan, results: &'a Results) -> Vec<FlowEntry<'a>> {
    let name = |node: crate::plan::NodeId| plan.network.nodes[node.index()].name.as_str();
    let entries = plan.flows.iter().zip(&results.flows).enumerate();
    let entries = entries.map(|(id, (flow, result))| FlowEntry {
        id,
        group: &flow.group,
        source: name(flow.source),
        destination: plan.destination_name(flow),
        bytes: flow.bytes.as_u64(),
        class: flow.class.as_u8(),
        status: status_name(&result.status),
        error: match &result.status {
            FlowStatus::Failed(error) => Some(error),
            _ => None,
        },
        start_ns: result.start.map(Into::into),
        fct_ns: result.completion_time().map(Into::into),
        received_ns: result.received.map(Into::into),
        ideal_ns: result.ideal.into(),
        slowdown: result.slowdown(),
        delivered_bytes: result.delivered.as_u64(),
        goodput_bps: result.goodput(results.end).as_bps(),
        retransmissions: result.retransmitted,
        notifications: result.notifications,
        multicast: (results.multicast.iter())
            .find(|heard| heard.flow.index() == id)
            .map(|heard| multicast_entry(plan, heard)),
    });
    entries.collect()
}

fn multicast_entry<'a>(plan: &'a Plan, result: &MulticastResult) -> MulticastEntry<'a> {
    let members = result.members.iter().map(|member| MemberEntry {
        member: &plan.network.nodes[member.node.index()].name,
        packets: member.packets,
        lost_packets: result.lost(member),
        bytes: member.bytes.as_u64(),
        received_ns: member.received.map(Into::into),
    });
    MulticastEntry {
        sent_packets: result.sent,
        members: members.collect(),
    }
}

fn port_entry<'a>(names: &Names<'a>, port: &PortResult) -> PortEntry<'a> {
    let classes = Class::all().filter_map(|class| {
        let block = &port.classes[class.index()];
        block
            .iter()
            .any(|(_, value)| value != 0)
            .then(|| ClassEntry {
                class: class.index(),
                counters: counters(block.iter().map(|(c, v)| (c.definition(), v))),
            })
    });
    PortEntry {
        port: names.port(port.endpoint),
        node: &names.node(port.endpoint.node).name,
        index: port.endpoint.port.0,
        peer: names.peer(port.endpoint).map(|peer| names.port(peer)),
        rate_bps: names.link(port.endpoint).map(|link| link.rate.as_bps()),
        counters: counters(port.port.iter().map(|(c, v)| (c.definition(), v))),
        classes: classes.collect(),
    }
}

fn counters<'d>(
    rows: impl Iterator<Item = (&'d CounterDefinition, u64)>,
) -> BTreeMap<&'static str, ExportedValue> {
    rows.map(|(definition, value)| (definition.id, exported(definition, value)))
        .collect()
}

fn conservation(found: &Conservation) -> ConservationEntry<'_> {
    ConservationEntry {
        sent: found.sent,
        copied: found.copied,
        delivered: found.delivered,
        dropped: found.dropped,
        in_flight: found.in_flight,
        violations: &found.violations,
    }
}

fn series_entries<'a>(names: &Names<'_>, results: &'a Results) -> SeriesEntries<'a> {
    let series = &results.series;
    let port_name = |endpoint: Endpoint| names.port(endpoint);
    let ports = series.ports.iter().map(|port| PortSeriesEntry {
        port: port_name(port.endpoint),
        queue_bytes: series_entry(&port.queue),
        mean_queue_bytes: series_entry(&port.mean_queue),
        paused_share: series_entry(&port.paused),
        rate_bps: series_entry(&port.rate),
    });
    let flows = series.flows.iter().map(|flow| FlowSeriesEntry {
        flow: flow.flow.0,
        rate_bps: series_entry(&flow.rate),
        allowed_bps: series_entry(&flow.allowed),
    });
    SeriesEntries {
        ports: ports.collect(),
        flows: flows.collect(),
        ecn_marked: series.marks.as_ref().map(series_entry),
        cnps: series.notifications.as_ref().map(series_entry),
        paused_queues: series.paused_queues.as_ref().map(series_entry),
        delivered_bps: series.delivered.as_ref().map(series_entry),
    }
}

fn first_signals(summary: &Summary, names: &Names<'_>) -> BTreeMap<&'static str, SignalEntry> {
    let FirstSignals { mark, pause, drop } = summary.first_signals;
    [("mark", mark), ("pause", pause), ("drop", drop)]
        .into_iter()
        .filter_map(|(name, signal)| {
            let Signal { time, endpoint } = signal?;
            let port = names.port(endpoint);
            let at_ns = time.into();
            Some((name, SignalEntry { at_ns, port }))
        })
        .collect()
}

fn series_entry(series: &Series) -> SeriesEntry<'_> {
    SeriesEntry {
        interval_ns: series.interval().into(),
        values: series.values(),
    }
}

/// Whole numbers without `.0`: a series is mostly bytes and zeros.
fn short_numbers<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Number {
        Whole(u64),
        Real(f64),
    }
    serializer.collect_seq(values.iter().map(|&value| {
        let whole = value as u64;
        if whole as f64 == value && whole < 1 << 53 {
            Number::Whole(whole)
        } else {
            Number::Real(value)
        }
    }))
}

/// The name of an ending, as all outputs write it.
pub fn ending_name(ending: Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::StopTime => "stop_time",
        Ending::Stalled => "stalled",
        Ending::Interrupted => "interrupted",
    }
}

/// The name of a flow's status, as all outputs write it.
pub fn status_name(status: &FlowStatus) -> &'static str {
    match status {
        FlowStatus::NotStarted => "not_started",
        FlowStatus::Unfinished => "unfinished",
        FlowStatus::Completed => "completed",
        FlowStatus::Failed(_) => "failed",
    }
}

/// The name of a timing mode, as scenario files and outputs write it.
pub fn timing_name(timing: Timing) -> &'static str {
    match timing {
        Timing::Exact => "exact",
        Timing::Hpcc => "hpcc",
    }
}

fn reason_name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::HeadroomFull => "headroom_full",
        DropReason::IngressThreshold => "ingress_threshold",
        DropReason::EgressThreshold => "egress_threshold",
        DropReason::BufferFull => "buffer_full",
        DropReason::Red => "red",
        DropReason::Watchdog => "watchdog",
        DropReason::LinkDown => "link_down",
        DropReason::Damaged => "damaged",
        DropReason::NoRoute => "no_route",
        DropReason::NotRoutable => "not_routable",
        DropReason::ReceiveBufferFull => "receive_buffer_full",
        DropReason::HeadOfQueueLife => "head_of_queue_life",
        DropReason::PacketLife => "packet_life",
        DropReason::LaneStalled => "lane_stalled",
        DropReason::PartitionKey => "partition_key",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;

    fn json(plan: &Plan, results: &Results, wall_seconds: Option<f64>) -> (String, Value) {
        let mut bytes = Vec::new();
        write(&mut bytes, plan, results, &Circumstances { wall_seconds }).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let value = serde_json::from_str(&text).unwrap();
        (text, value)
    }

    #[test]
    fn the_promised_keys_are_there() {
        let (plan, results) = sample::incast();
        let (_, document) = json(&plan, &results, Some(1.5));
        for key in [
            "link_hops",
            "events",
            "wall_seconds",
            "drops",
            "pause_frames",
            "ecn_marked",
            "cnps",
            "retransmissions",
        ] {
            assert!(document["summary"][key].is_number(), "summary.{key}");
        }
        let flow = &document["flows"][0];
        assert_eq!(flow["source"], "host4");
        assert_eq!(flow["destination"], "host0");
        assert_eq!(flow["bytes"], 10_000_000);
        assert_eq!(flow["start_ns"], 0);
        for key in ["fct_ns", "slowdown"] {
            assert!(flow[key].is_number(), "flows[].{key}");
        }
        assert_eq!(
            document["flows"].as_array().unwrap().len(),
            plan.flows.len()
        );
    }

    #[test]
    fn counters_have_the_names_and_units_of_the_table() {
        let (plan, results) = sample::incast();
        let (_, document) = json(&plan, &results, None);
        let port = &document["ports"][0];
        assert!(port["counters"]["port_xmit_packets"].is_u64(), "{port}");
        let classes = port["classes"].as_array().unwrap();
        assert_eq!(classes.len(), 1, "classes that saw nothing are left out");
        assert_eq!(classes[0]["class"], 3);
        assert!(classes[0]["counters"]["rx_prio_pause_duration"].is_f64());
    }

    #[test]
    fn only_the_wall_time_differs() {
        let (plan, results) = sample::incast();
        let (one, _) = json(&plan, &results, Some(1.0));
        let (two, _) = json(&plan, &results, Some(2.5));
        assert_ne!(one, two);
        let strip = |text: &str, seconds: &str| {
            text.replace(&format!("\"wall_seconds\":{seconds}"), "\"wall_seconds\":0")
        };
        assert_eq!(strip(&one, "1.0"), strip(&two, "2.5"));
    }

    #[test]
    fn drops_and_deadlocks_are_named() {
        let (plan, results) = sample::lossy();
        let (_, document) = json(&plan, &results, None);
        assert_eq!(document["summary"]["wall_seconds"], Value::Null);
        assert_eq!(document["lossless_drops"][0]["reason"], "headroom_full");
        assert_eq!(document["findings"][0]["kind"], "lossless_drops");
    }
}
