//! The HTML report: one file that needs nothing else, on a screen, on a phone, on paper, by day and by night.
//!
//! ```text
//! page ──┬─ head: findings, key figures
//!        ├─ charts      their values as JSON in the page; assets/report.js draws them with uPlot
//!        ├─ topology    an SVG, coloured by pause time
//!        ├─ tables      groups, ports, flows
//!        └─ settings    what was run, and the command that repeats it
//! ```
//!
//! Every text from outside (names in a scenario) goes through maud's escaping or into JSON that cannot end its element.

mod charts;
pub(crate) mod layout;
mod settings;
mod tables;
pub(crate) mod topology;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use softfabric_fabric::export::findings::{Finding, Kind, Weight};
use softfabric_fabric::export::{FlowFigures, Names, Summary};
use softfabric_fabric::plan::Plan;
use softfabric_fabric::results::{Ending, Results};
use softfabric_units::Span;

use crate::format;
use crate::summary::{first_signals, held_up, marks_name};

const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
const CHART_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const CHART_SCRIPT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");

/// What the page may load: nothing but what is in it.
const CONTENT_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// What a report is made of.
pub(crate) struct Report<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) results: &'a Results,
    pub(crate) findings: &'a [Finding],
    pub(crate) wall_seconds: f64,
    /// The command that repeats the run.
    pub(crate) command: &'a str,
}

/// The whole page.
pub(crate) fn render(report: &Report<'_>) -> String {
    let Report { plan, results, .. } = report;
    let summary = Summary::of(plan, results);
    let names = Names::new(&plan.network);
    let charts = charts::of(plan, results, &summary, &names);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&plan.name))
            body {
                (header(report, &summary))
                main {
                    @for finding in report.findings { (finding_card(finding)) }
                    (key_figures(plan, results, &summary, &names))
                    (jobs_section(&summary, &charts))
                    (processors_section(&summary, &names))
                    (flows_section(report, &summary, &charts))
                    (network_section(report, &summary, &names))
                    (time_section(plan, &summary, &charts))
                    (tables::ports_section(plan, results, &summary, &names))
                    @if !results.multicast.is_empty() {
                        (tables::multicast_section(plan, results, &names))
                    }
                    (tables::flows_section(plan, results, &names))
                    (settings::section(plan, report.command))
                }
                (footer(report, &summary))
                noscript { p.note { "Charts need JavaScript; all figures are in the tables too." } }
                (scripts(&charts.json()))
            }
        }
    };
    page.into_string()
}

/// The head of a page of this program: its title, its style, and the policy by which it loads nothing.
pub(crate) fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta http-equiv="Content-Security-Policy" content=(CONTENT_POLICY);
            title { (title) " – softfabric" }
            style { (PreEscaped(CHART_STYLE)) (PreEscaped(STYLE)) }
        }
    }
}

/// What draws a page's charts, and their values: JSON that is safe to stand inside a script element.
pub(crate) fn scripts(charts: &str) -> Markup {
    html! {
        script type="application/json" id="charts" { (PreEscaped(charts)) }
        script { (PreEscaped(CHART_SCRIPT)) }
        script { (PreEscaped(SCRIPT)) }
    }
}

fn header(report: &Report<'_>, summary: &Summary) -> Markup {
    let Report { plan, results, .. } = report;
    let FlowFigures {
        flows,
        completed,
        failed,
        ..
    } = summary.all;
    let ending = match results.ending {
        Ending::Completed if completed + failed < flows => "when their sources were stopped, after",
        Ending::Completed => "in",
        Ending::StopTime => "when it was stopped after",
        Ending::Stalled => "when it stalled after",
        Ending::Interrupted => "when it was interrupted after",
    };
    html! {
        header {
            p.brand { "softfabric" span { "run report" } }
            h1 { (plan.name) }
            p.lead {
                (format::grouped(completed)) " of " (format::grouped(flows)) " flows done " (ending) " "
                (format::span(summary.active)) " of simulated time, over "
                (settings::network_in_words(&plan.network)) "."
            }
            (verdict(report.findings, summary))
        }
    }
}

/// The one thing to know: whether the lossless fabric was lossless.
fn verdict(findings: &[Finding], summary: &Summary) -> Markup {
    let failure = findings
        .iter()
        .find(|finding| finding.weight == Weight::Failure);
    let (class, text) = match failure {
        Some(finding) if finding.kind == Kind::LosslessDrops => ("bad", "Not lossless"),
        Some(finding) if finding.kind == Kind::Deadlock => ("bad", "Deadlocked"),
        Some(_) => ("bad", "Failed"),
        None if summary.drops > 0 => ("good", "No packet of a lossless class was lost"),
        None => ("good", "No packet was lost"),
    };
    html! { p.verdict.(class) { span.dot {} (text) } }
}

fn finding_card(finding: &Finding) -> Markup {
    let class = match finding.weight {
        Weight::Failure => "failure",
        Weight::Notice => "notice",
    };
    html! {
        section.finding.(class) {
            h2 { (finding.title) }
            @if !finding.details.is_empty() {
                ul { @for detail in &finding.details { li { (detail) } } }
            }
            @if !finding.advice.is_empty() { p.advice { (finding.advice) } }
        }
    }
}

fn key_figures(plan: &Plan, results: &Results, summary: &Summary, names: &Names<'_>) -> Markup {
    let time = |value: Option<f64>| value.map_or("–".to_owned(), format::nanoseconds);
    let completion = summary.all.completion_ns;
    let slowdown = summary.all.slowdown;
    let active = summary.active.as_picos().max(1) as f64;
    let by_credit = plan.link_layer.infiniband().is_some();
    let paused = held_up(plan, results).into_iter().next();
    let (paused_value, paused_note) = match paused {
        Some(port) => (
            format::percent(port.time.as_picos() as f64 / active),
            format!("of the time, {}", names.port(port.endpoint)),
        ),
        None if by_credit => ("0 %".to_owned(), "no port waited for credit".to_owned()),
        None => ("0 %".to_owned(), "no port was paused".to_owned()),
    };
    let tile = |name: &str, value: String, note: String| {
        html! { div.tile { dt { (name) } dd { (value) } p { (note) } } }
    };
    html! {
        dl.tiles {
            @if completion.is_some() || summary.phases.is_empty() {
                (tile("FCT, p99", time(completion.map(|d| d.p99)), format!("median {}", time(completion.map(|d| d.p50)))))
                (tile(
                    "Slowdown, p99",
                    slowdown.map_or("–".to_owned(), |d| format!("{}×", format::factor(d.p99))),
                    slowdown.map_or("no flow is done".to_owned(), |d| format!("median {}×", format::factor(d.p50))),
                ))
            } @else {
                @for (name, value, note) in job_figures(summary) { (tile(name, value, note)) }
            }
            @if by_credit {
                (tile("Longest wait for credit", paused_value, paused_note))
            } @else {
                (tile("Paused longest", paused_value, paused_note))
                (tile("Pause frames", format::grouped(summary.pause_frames), "received, all ports".to_owned()))
            }
            (tile(marks_name(plan), format::grouped(summary.ecn_marked), notifications(plan, summary)))
            (tile(
                "Packets dropped",
                format::grouped(summary.drops),
                format!(
                    "{} of lossless classes, {} sent again",
                    format::grouped(summary.lossless_drops),
                    format::grouped(summary.retransmissions)
                ),
            ))
        }
    }
}

/// Where all traffic is that of jobs: how long the longest took, and what its collectives reached; names, values and notes.
fn job_figures(summary: &Summary) -> Vec<(&'static str, String, String)> {
    let jobs = summary.jobs().map(|phases| {
        let time: Option<Span> = phases.iter().map(|phase| phase.time).sum();
        (&phases[0].job, time, phases.len())
    });
    // A job that did not end took longest of all.
    let longest = jobs.max_by_key(|(_, time, _)| time.map_or(u64::MAX, Span::as_picos));
    let mut figures = Vec::new();
    if let Some((job, time, phases)) = longest {
        let value = time.map_or("–".to_owned(), format::span);
        let note = match time {
            Some(_) => format!("{job}, {phases} phases"),
            None => format!("{job} did not end"),
        };
        figures.push(("Job time", value, note));
    }
    let reached = summary
        .phases
        .iter()
        .filter_map(|phase| phase.bus_bandwidth);
    let lowest = reached.clone().min_by(f64::total_cmp);
    if let (Some(low), Some(high)) = (lowest, reached.max_by(f64::total_cmp)) {
        let rate = |value: f64| format!("{value:.1} GB/s");
        figures.push(("Lowest busbw", rate(low), format!("highest {}", rate(high))));
    }
    figures
}

/// What answered the marks: BECN, CNPs, or acknowledgements that carry them.
fn notifications(plan: &Plan, summary: &Summary) -> String {
    if plan.link_layer.infiniband().is_some() {
        format!("{} BECNs received", format::grouped(summary.notifications))
    } else if summary.cnps == 0 && summary.notifications > 0 {
        format!(
            "{} in acknowledgements",
            format::grouped(summary.notifications)
        )
    } else {
        format!("{} CNPs sent", format::grouped(summary.cnps))
    }
}

fn jobs_section(summary: &Summary, charts: &charts::Charts) -> Markup {
    html! {
        @if !summary.phases.is_empty() {
            section {
                h2 { "Jobs" }
                (tables::phases(summary))
                @if let Some(chart) = charts.get("phases") { div.grid { (chart_figure(chart)) } }
                (tables::jobs(summary))
            }
        }
    }
}

/// What communication cost the processors of hosts.
fn processors_section(summary: &Summary, names: &Names<'_>) -> Markup {
    let figures = summary.processors.as_ref().and_then(|found| {
        let each = found.nanoseconds_per_byte()?;
        Some((found, each, found.cores_for_100_gbps()?))
    });
    let Some((found, each, cores)) = figures else {
        return html! {};
    };
    html! {
        section {
            h2 { "Processors" }
            p {
                (format!("{each:.3} ns a byte of payload, both ends together")) ": "
                (format!("{cores:.2} cores to move 100 Gb/s. "))
                "The busiest host is " (names.node(found.busiest).name) ", with "
                (format!("{:.2} cores", found.busiest_cores)) " on average."
            }
            (tables::processors(found))
        }
    }
}

fn flows_section(report: &Report<'_>, summary: &Summary, charts: &charts::Charts) -> Markup {
    html! {
        section {
            h2 { "Flows" }
            (tables::groups(summary))
            div.grid {
                @if let Some(chart) = charts.get("completion") { (chart_figure(chart)) }
                @if let Some(chart) = charts.get("slowdown") {
                    (chart_figure(chart))
                } @else if let (Some(size), Some(slowdown)) = (summary.sizes.first(), summary.all.slowdown) {
                    figure.chart.text {
                        figcaption { b { "Slowdown" } span { "completion time over that of the flow alone" } }
                        p { "All flows are of one size, " (format::bytes(size.to.as_u64())) "." }
                        (tables::distribution(&slowdown))
                    }
                }
            }
            @if report.results.flows.iter().all(|flow| flow.finished.is_none()) {
                p.note { "No flow was done, so there are no completion times." }
            }
        }
    }
}

fn network_section(report: &Report<'_>, summary: &Summary, names: &Names<'_>) -> Markup {
    html! {
        section {
            h2 {
                @if report.plan.link_layer.infiniband().is_some() { "Where the fabric waited for credit" }
                @else { "Where the fabric paused" }
            }
            (topology::picture(report.plan, report.results, summary, names))
            (tables::pause_bars(report.plan, report.results, summary, names))
        }
    }
}

fn time_section(plan: &Plan, summary: &Summary, charts: &charts::Charts) -> Markup {
    let over_time = ["queues", "paused", "marks", "flow_rates", "allowed_rates"];
    let shown: Vec<_> = over_time.iter().filter_map(|id| charts.get(id)).collect();
    html! {
        section {
            h2 { "Over time" }
            @if let Some(signals) = first_signals(plan, summary) {
                p.note { "First to tell of congestion: " (signals) "." }
            }
            @if shown.is_empty() {
                p.note { "The run recorded no time series: a scenario's " code { "record.interval" } " asks for them." }
            }
            div.grid { @for chart in shown { (chart_figure(chart)) } }
        }
    }
}

fn chart_figure(chart: &charts::Chart) -> Markup {
    html! {
        figure.chart {
            figcaption { b { (chart.title) } span { (chart.subtitle) } }
            div.plot data-chart=(chart.id) {}
        }
    }
}

fn footer(report: &Report<'_>, summary: &Summary) -> Markup {
    html! {
        footer {
            p {
                "softfabric " (env!("CARGO_PKG_VERSION")) " · "
                (format::grouped(summary.link_hops)) " packet hops in " (format::nanoseconds(report.wall_seconds * 1e9))
                " · the same settings give the same figures on every machine"
            }
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::infiniband_run;
