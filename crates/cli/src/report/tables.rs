//! Tables and bars of the report.

use maud::{Markup, html};
use softfabric_fabric::export::json::status_name;
use softfabric_fabric::export::{Distribution, FlowFigures, Names, ProcessorFigures, Summary};
use softfabric_fabric::plan::Plan;
use softfabric_fabric::results::{FlowResult, FlowStatus, PortResult, Results};
use softfabric_telemetry::{ClassCounter, PortCounter};
use softfabric_units::{Bytes, Span};

use super::topology::heat_class;
use crate::format;
use crate::summary::{HeldUp, held_up, phase_name, processor_shares};

/// How many ports and flows are listed; all are in JSON and CSV.
const PORTS: usize = 20;
const FLOWS: usize = 20;
/// How many members of multicast groups; all are in JSON.
const MEMBERS: usize = 20;
const BARS: usize = 12;
const PHASES: usize = 50;

/// The figures of each group of flows.
pub(super) fn groups(summary: &Summary) -> Markup {
    let row = |name: &str, figures: &FlowFigures| {
        let time = |value: Option<f64>| value.map_or("–".to_owned(), format::nanoseconds);
        let factor = |value: Option<f64>| {
            value.map_or("–".to_owned(), |v| format!("{}×", format::factor(v)))
        };
        let completion = figures.completion_ns;
        let slowdown = figures.slowdown;
        html! {
            tr {
                th scope="row" { (name) }
                td { (format::grouped(figures.completed)) " / " (format::grouped(figures.flows)) }
                td { (format::bytes(figures.bytes.as_u64())) }
                td { (time(completion.map(|d| d.p50))) }
                td { (time(completion.map(|d| d.p99))) }
                td { (time(completion.map(|d| d.max))) }
                td { (factor(slowdown.map(|d| d.p50))) }
                td { (factor(slowdown.map(|d| d.p99))) }
                td { (figures.goodput_bps.map_or("–".to_owned(), |d| format::bit_rate(d.p50))) }
            }
        }
    };
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th { "Group" } th { "Done" } th { "Bytes" }
                        th { "FCT p50" } th { "FCT p99" } th { "FCT max" }
                        th { "Slowdown p50" } th { "p99" } th { "Goodput p50" }
                    }
                }
                tbody {
                    @for group in &summary.groups {
                        (row(if group.name.is_empty() { "flows" } else { &group.name }, &group.figures))
                    }
                    @if summary.groups.len() > 1 { (row("all", &summary.all)) }
                }
            }
        }
    }
}

/// Time and bandwidth of each phase of each job.
pub(super) fn phases(summary: &Summary) -> Markup {
    let bandwidth = |value: Option<f64>| value.map_or("–".to_owned(), format::gigabytes);
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th { "Phase" } th { "Ranks" } th { "Bytes" } th { "Time" }
                        th { "Algorithm bandwidth" } th { "Bus bandwidth" } th { "Exposed communication" }
                    }
                }
                tbody {
                    @for phase in summary.phases.iter().take(PHASES) {
                        tr {
                            th scope="row" { (phase_name(phase)) }
                            td { (format::grouped(phase.ranks as u64)) }
                            td { (phase.bytes.map_or("–".to_owned(), |bytes| format::bytes(bytes.as_u64()))) }
                            td { (phase.time.map_or("not over".to_owned(), format::span)) }
                            td { (bandwidth(phase.algorithm_bandwidth)) }
                            td { (bandwidth(phase.bus_bandwidth)) }
                            td { (phase.exposed.map_or("–".to_owned(), format::percent)) }
                        }
                    }
                }
            }
        }
        @if summary.phases.len() > PHASES {
            p.note { "The first " (PHASES) " of " (format::grouped(summary.phases.len() as u64)) " phases; all are in the JSON output." }
        }
    }
}

/// What became of jobs when something broke.
pub(super) fn jobs(summary: &Summary) -> Markup {
    let bandwidth = |value: Option<f64>| value.map_or("–".to_owned(), format::gigabytes);
    html! {
        @if !summary.jobs.is_empty() {
            div.scroll {
                table {
                    thead {
                        tr {
                            th { "Job" } th { "Before the failure" } th { "During" } th { "After" } th { "Survived" }
                        }
                    }
                    tbody {
                        @for job in &summary.jobs {
                            tr {
                                th scope="row" { (job.job) }
                                td { (bandwidth(job.before)) }
                                td { (bandwidth(job.during)) }
                                td { (bandwidth(job.after)) }
                                td { (if job.survived { "yes" } else { "no" }) }
                            }
                        }
                    }
                }
            }
            p.note { "What all ranks together got from other servers while they ran." }
        }
    }
}

/// What the processors of hosts were busy with.
pub(super) fn processors(found: &ProcessorFigures) -> Markup {
    let time = found.time.as_picos() as f64 / 1e3;
    html! {
        @if !found.parts.is_empty() {
            div.scroll {
                table {
                    thead { tr { th { "Work" } th { "Time" } th { "Share" } } }
                    tbody {
                        @for (work, share) in processor_shares(found) {
                            tr {
                                th scope="row" { (work) }
                                td { (format::nanoseconds(time * share)) }
                                td { (format::percent(share)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Percentiles of factors.
pub(super) fn distribution(found: &Distribution) -> Markup {
    let entries = [
        ("min", found.min),
        ("p50", found.p50),
        ("p90", found.p90),
        ("p95", found.p95),
        ("p99", found.p99),
        ("max", found.max),
    ];
    html! {
        dl.percentiles {
            @for (name, value) in entries { div { dt { (name) } dd { (format::factor(value)) "×" } } }
        }
    }
}

/// The ports that were paused longest, as bars.
pub(super) fn pause_bars(
    plan: &Plan,
    results: &Results,
    summary: &Summary,
    names: &Names<'_>,
) -> Markup {
    let ports = held_up(plan, results);
    let by_credit = plan.link_layer.infiniband().is_some();
    let active = summary.active.as_picos().max(1) as f64;
    html! {
        @if ports.is_empty() {
            p.note { @if by_credit { "No port ever waited for credit." } @else { "No port was ever paused." } }
        } @else {
            figure.bars {
                figcaption {
                    b { @if by_credit { "Credit wait by port" } @else { "Pause time by port" } }
                    span { "share of the time in which its neighbour kept it from sending" }
                }
                @for HeldUp { endpoint, class, time, frames } in ports.iter().take(BARS) {
                    @let share = time.as_picos() as f64 / active;
                    @let frames = format::grouped(*frames);
                    @let title = class.map_or_else(|| format!("{frames} grants of credit"), |class| format!("class {class}, {frames} pause frames"));
                    div.bar title=(title) {
                        span.name {
                            (names.port(*endpoint))
                            @if let Some(peer) = names.peer(*endpoint) { small { " by " (names.port(peer)) } }
                        }
                        span.track { span.fill.(heat_class(share)) style={ "width:" (format!("{:.2}", (share * 100.0).min(100.0))) "%" } {} }
                        span.value { (format::percent(share)) small { (format::span(*time)) } }
                    }
                }
                @if ports.len() > BARS {
                    p.note { (format::grouped((ports.len() - BARS) as u64)) " more ports were held up for a shorter time." }
                }
            }
        }
    }
}

/// Ports with their counters: those first on which most happened.
pub(super) fn ports_section(
    plan: &Plan,
    results: &Results,
    summary: &Summary,
    names: &Names<'_>,
) -> Markup {
    if plan.link_layer.infiniband().is_some() {
        return lane_ports_section(results, summary, names);
    }
    let mut ports: Vec<&PortResult> = results.ports.iter().collect();
    ports.sort_by_cached_key(|port| {
        let paused = port
            .longest_paused_class()
            .map_or(Span::ZERO, |(_, time)| time);
        let dropped = port.class_total(ClassCounter::IngressDropped)
            + port.class_total(ClassCounter::EgressDropped);
        let marked = port.class_total(ClassCounter::EcnMarked);
        let sent = port.port.value(PortCounter::TransmitBytes);
        std::cmp::Reverse((dropped, marked, paused, sent))
    });
    html! {
        section {
            h2 { "Ports" }
            p.note {
                "The " (format::grouped(ports.len().min(PORTS) as u64)) " of " (format::grouped(ports.len() as u64))
                " ports on which most happened, with the names that Linux and SONiC give their counters."
            }
            div.scroll {
                table.counters {
                    thead {
                        tr {
                            th { "Port" } th { "to" }
                            th { "port_xmit_ packets" } th { "sent" } th { "ecn_ marked" } th { "queue_ watermark" }
                            th { "rx_prio_ pause" } th { "tx_prio_ pause" } th { "paused" } th { "discards" }
                        }
                    }
                    tbody {
                        @for port in ports.into_iter().take(PORTS) {
                            @let paused = port.longest_paused_class().map_or(Span::ZERO, |(_, time)| time);
                            @let share = paused.as_picos() as f64 / summary.active.as_picos().max(1) as f64;
                            @let dropped = port.class_total(ClassCounter::IngressDropped) + port.class_total(ClassCounter::EgressDropped);
                            tr {
                                th scope="row" { (names.port(port.endpoint)) }
                                td.word { (names.peer(port.endpoint).map_or("–".to_owned(), |peer| names.port(peer))) }
                                td { (cell(port.port.value(PortCounter::TransmitPackets))) }
                                td { (format::bytes(port.port.value(PortCounter::TransmitBytes))) }
                                td { (cell(port.class_total(ClassCounter::EcnMarked))) }
                                td { (some_bytes(port.class_total(ClassCounter::QueueWatermark))) }
                                td { (cell(port.class_total(ClassCounter::PauseReceived))) }
                                td { (cell(port.class_total(ClassCounter::PauseSent))) }
                                td { @if paused.is_zero() { "–" } @else { (format::percent(share)) } }
                                td { (cell(dropped)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The same of InfiniBand.
fn lane_ports_section(results: &Results, summary: &Summary, names: &Names<'_>) -> Markup {
    let mut ports: Vec<&PortResult> = results.ports.iter().collect();
    let discards = |port: &PortResult| {
        port.port.value(PortCounter::TransmitDiscards)
            + port.port.value(PortCounter::ReceiveDiscards)
    };
    ports.sort_by_cached_key(|port| {
        std::cmp::Reverse((
            discards(port),
            port.class_total(ClassCounter::EcnMarked),
            port.port.value(PortCounter::TransmitWait),
            port.port.value(PortCounter::TransmitBytes),
        ))
    });
    let share = |picos: u64| {
        if picos == 0 {
            return "–".to_owned();
        }
        format::percent(picos as f64 / summary.active.as_picos().max(1) as f64)
    };
    html! {
        section {
            h2 { "Ports" }
            p.note {
                "The " (format::grouped(ports.len().min(PORTS) as u64)) " of " (format::grouped(ports.len() as u64))
                " ports on which most happened, with the names of InfiniBand's own counters; times are shares of the time from the first flow on."
            }
            div.scroll {
                table.counters {
                    thead {
                        tr {
                            th { "Port" } th { "to" }
                            th { "port_xmit_ packets" } th { "sent" } th { "port_xmit_ wait" } th { "PortXmit TimeCong" }
                            th { "FECN marked" } th { "PortPkt RcvFECN" } th { "PortPkt RcvBECN" } th { "ingress_ watermark" }
                            th { "discards" }
                        }
                    }
                    tbody {
                        @for port in ports.into_iter().take(PORTS) {
                            @let of = |counter| port.port.value(counter);
                            tr {
                                th scope="row" { (names.port(port.endpoint)) }
                                td.word { (names.peer(port.endpoint).map_or("–".to_owned(), |peer| names.port(peer))) }
                                td { (cell(of(PortCounter::TransmitPackets))) }
                                td { (format::bytes(of(PortCounter::TransmitBytes))) }
                                td { (share(of(PortCounter::TransmitWait))) }
                                td { (share(of(PortCounter::TransmitTimeCongested))) }
                                td { (cell(port.class_total(ClassCounter::EcnMarked))) }
                                td { (cell(of(PortCounter::FecnReceived))) }
                                td { (cell(of(PortCounter::BecnReceived))) }
                                td { (some_bytes(port.class_total(ClassCounter::IngressWatermark))) }
                                td { (cell(discards(port))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A count, and a dash where there is none.
fn cell(value: u64) -> String {
    if value == 0 {
        "–".to_owned()
    } else {
        format::grouped(value)
    }
}

/// What the members of multicast groups heard.
pub(super) fn multicast_section(plan: &Plan, results: &Results, names: &Names<'_>) -> Markup {
    let all = results.multicast.iter();
    let mut rows: Vec<_> = all
        .flat_map(|result| result.members.iter().map(move |member| (result, member)))
        .collect();
    rows.sort_by_key(|(result, member)| std::cmp::Reverse(result.lost(member)));
    html! {
        section {
            h2 { "Multicast" }
            p.note {
                "The " (format::grouped(rows.len().min(MEMBERS) as u64)) " of " (format::grouped(rows.len() as u64))
                " members that lost most of what a flow sent to their group."
            }
            div.scroll {
                table {
                    thead {
                        tr {
                            th { "Flow" } th { "Member" } th { "Packets sent" } th { "received" } th { "lost" }
                            th { "Bytes" } th { "Had all after" }
                        }
                    }
                    tbody {
                        @for (result, member) in rows.into_iter().take(MEMBERS) {
                            @let flow = &plan.flows[result.flow.index()];
                            @let start = results.flows[result.flow.index()].start;
                            tr {
                                th scope="row" { (names.node(flow.source).name) " → " (plan.destination_name(flow)) }
                                td.word { (names.node(member.node).name) }
                                td { (format::grouped(result.sent)) }
                                td { (format::grouped(member.packets)) }
                                td { (cell(result.lost(member))) }
                                td { (size(member.bytes)) }
                                td { (member.received.zip(start).map_or("–".to_owned(), |(end, start)| format::span(end.since(start)))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The flows that suffered most.
pub(super) fn flows_section(plan: &Plan, results: &Results, names: &Names<'_>) -> Markup {
    let mut flows: Vec<(usize, &FlowResult)> = results.flows.iter().enumerate().collect();
    // Queue pairs that a job kept in reserve carried nothing.
    flows.retain(|(index, result)| {
        plan.flows
            .get(*index)
            .is_some_and(|flow| flow.bytes.as_u64() > 0 || result.status != FlowStatus::Completed)
    });
    let order = |result: &FlowResult| match result.status {
        FlowStatus::Failed(_) => 0,
        FlowStatus::Unfinished => 1,
        FlowStatus::Completed => 2,
        FlowStatus::NotStarted => 3,
    };
    flows.sort_by(|(a, first), (b, second)| {
        let slowdown = |result: &FlowResult| result.slowdown().unwrap_or(0.0);
        order(first)
            .cmp(&order(second))
            .then(slowdown(second).total_cmp(&slowdown(first)))
            .then(a.cmp(b))
    });
    let total = flows.len();
    html! {
        section {
            h2 { "Slowest flows" }
            p.note {
                "The " (format::grouped(total.min(FLOWS) as u64)) " of " (format::grouped(total as u64))
                " flows that failed or took longest for their size."
            }
            div.scroll {
                table {
                    thead {
                        tr {
                            th { "Flow" } th { "Group" } th { "Bytes" } th { "Start" } th { "FCT" } th { "Slowdown" }
                            th { "Goodput" } th { "Sent again" }
                            th { @if plan.link_layer.infiniband().is_some() { "BECNs" } @else { "CNPs" } } th { "Status" }
                        }
                    }
                    tbody {
                        @for (index, result) in flows.into_iter().take(FLOWS) {
                            @let flow = &plan.flows[index];
                            tr {
                                th scope="row" { (names.node(flow.source).name) " → " (plan.destination_name(flow)) }
                                td.word { (flow.group) }
                                td { (size(flow.bytes)) }
                                td { (result.start.map_or("–".to_owned(), |time| format::nanoseconds(time.as_picos() as f64 / 1e3))) }
                                td { (result.completion_time().map_or("–".to_owned(), format::span)) }
                                td { (result.slowdown().map_or("–".to_owned(), |value| format!("{}×", format::factor(value)))) }
                                td { (format::bit_rate(result.goodput(results.end).as_bps() as f64)) }
                                td { (format::grouped(result.retransmitted)) }
                                td { (format::grouped(result.notifications)) }
                                td.word.(status_name(&result.status)) { (status(&result.status)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn status(status: &FlowStatus) -> String {
    match status {
        FlowStatus::Completed => "done".to_owned(),
        FlowStatus::Failed(error) => error.clone(),
        FlowStatus::Unfinished => "under way".to_owned(),
        FlowStatus::NotStarted => "not started".to_owned(),
    }
}

fn some_bytes(value: u64) -> String {
    if value == 0 {
        "–".to_owned()
    } else {
        format::bytes(value)
    }
}

fn size(bytes: Bytes) -> String {
    format::bytes(bytes.as_u64())
}
