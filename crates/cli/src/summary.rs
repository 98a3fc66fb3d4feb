//! The table of a run in the terminal: failures first, then flows, totals, and the ports that were held up longest.

use softfabric_fabric::export::findings::{Finding, Weight};
use softfabric_fabric::export::{
    FlowFigures, Names, PhaseFigures, ProcessorFigures, ProcessorWork, Summary,
};
use softfabric_fabric::plan::{Endpoint, NodeId, Plan};
use softfabric_fabric::results::{Ending, FirstSignals, MulticastResult, Results};
use softfabric_telemetry::{ClassCounter, PortCounter};
use softfabric_units::{Class, Span};

use crate::format;
use crate::table::Table;
use crate::terminal::{BAD, BOLD, DOUBTFUL, FAINT, GOOD};

/// At most so many ports are listed.
const PORTS: usize = 5;
/// At most so many phases of jobs are listed.
const PHASES: usize = 20;

/// At most so many groups are listed.
const GROUPS: usize = 12;

/// The whole table, in at most `width` columns.
pub(crate) fn render(
    plan: &Plan,
    results: &Results,
    findings: &[Finding],
    wall_seconds: f64,
    width: usize,
) -> String {
    let summary = Summary::of(plan, results);
    let mut text = String::new();
    for finding in findings {
        text.push_str(&render_finding(finding, width));
    }
    text.push_str(&headline(plan, results, &summary, width));
    if !summary.phases.is_empty() {
        text.push('\n');
        text.push_str(&phases(&summary).render(width));
        if !summary.jobs.is_empty() {
            text.push('\n');
            text.push_str(&jobs(&summary).render(width));
        }
    }
    text.push('\n');
    text.push_str(&flows(&summary).render(width));
    if !results.multicast.is_empty() {
        text.push('\n');
        text.push_str(&multicast(plan, results).render(width));
    }
    text.push('\n');
    text.push_str(&totals(plan, &summary, width));
    if let Some(signals) = first_signals(plan, &summary) {
        let name = "first to tell";
        text.push_str(&format!("{name:<19} {}\n", wrap(&signals, width, 20)));
    }
    let ports = held_up(plan, results);
    if !ports.is_empty() {
        text.push('\n');
        text.push_str(&held_up_table(plan, &summary, &ports).render(width));
    }
    text.push('\n');
    text.push_str(&speed(&summary, wall_seconds, width));
    text
}

/// A finding with what to try.
pub(crate) fn render_finding(finding: &Finding, width: usize) -> String {
    let (style, word) = match finding.weight {
        Weight::Failure => (BAD, "FAILURE"),
        Weight::Notice => (DOUBTFUL, "NOTE"),
    };
    let mut text = format!("{style}{word}{style:#} ");
    let indent = word.len() + 1;
    let title = wrap(&finding.title, width, indent);
    text.push_str(&format!("{BOLD}{title}{BOLD:#}\n"));
    for detail in &finding.details {
        text.push_str(&format!("{:indent$}{}\n", "", wrap(detail, width, indent)));
    }
    if !finding.advice.is_empty() {
        text.push_str(&format!(
            "{:indent$}→ {}\n",
            "",
            wrap(&finding.advice, width, indent + 2)
        ));
    }
    text.push('\n');
    text
}

fn headline(plan: &Plan, results: &Results, summary: &Summary, width: usize) -> String {
    let FlowFigures {
        flows,
        completed,
        failed,
        ..
    } = summary.all;
    let style = if completed == flows { GOOD } else { DOUBTFUL };
    let done = format!(
        "{} of {} flows done",
        format::grouped(completed),
        format::grouped(flows)
    );
    let ending = match results.ending {
        Ending::Completed if completed + failed < flows => "when their sources were stopped, after",
        Ending::Completed => "in",
        Ending::StopTime => "when it was stopped after",
        Ending::Stalled => "when it stalled after",
        Ending::Interrupted => "when it was interrupted after",
    };
    let active = format::span(summary.active);
    let rest = wrap(
        &format!("{} {done} {ending} {active} of simulated time", plan.name),
        width,
        0,
    );
    // The style goes in after the wrapping, so that it takes no room.
    let rest = rest.replacen(&done, &format!("{style}{done}{style:#}"), 1);
    format!(
        "{}\n",
        rest.replacen(&plan.name, &format!("{BOLD}{}{BOLD:#}", plan.name), 1)
    )
}

/// The phases of jobs; of many, the first and the last ones.
fn phases(summary: &Summary) -> Table {
    let mut table = Table::new()
        .words("job", 0)
        .figures("ranks", 1)
        .figures("bytes", 4)
        .figures("time", 0)
        .figures("algbw", 3)
        .figures("busbw", 0)
        .figures("exposed", 2);
    let all = &summary.phases;
    let (head, tail) = if all.len() > PHASES {
        (&all[..PHASES / 2], &all[all.len() - PHASES / 2..])
    } else {
        (&all[..], &all[..0])
    };
    for (place, phase) in head.iter().chain(tail).enumerate() {
        if place == head.len() {
            let left_out = format!("… {} more", all.len() - head.len() - tail.len());
            table.row([
                left_out,
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
            ]);
        }
        let bandwidth = |value: Option<f64>| value.map_or("–".to_owned(), format::gigabytes);
        table.row([
            phase_name(phase),
            format::grouped(phase.ranks as u64),
            phase
                .bytes
                .map_or("–".to_owned(), |bytes| format::bytes(bytes.as_u64())),
            phase.time.map_or("not over".to_owned(), format::span),
            bandwidth(phase.algorithm_bandwidth),
            bandwidth(phase.bus_bandwidth),
            phase.exposed.map_or("–".to_owned(), format::percent),
        ]);
    }
    table
}

/// What became of jobs when something broke.
fn jobs(summary: &Summary) -> Table {
    let mut table = Table::new()
        .words("when something broke", 0)
        .figures("before", 1)
        .figures("during", 0)
        .figures("after", 0)
        .words("survived", 2);
    let bandwidth = |value: Option<f64>| value.map_or("–".to_owned(), format::gigabytes);
    for job in summary.jobs.iter().take(PHASES) {
        table.row([
            job.job.clone(),
            bandwidth(job.before),
            bandwidth(job.during),
            bandwidth(job.after),
            if job.survived { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

/// A phase and its job, said once where they have one name.
pub(crate) fn phase_name(phase: &PhaseFigures) -> String {
    if phase.phase.starts_with(&phase.job) {
        phase.phase.clone()
    } else {
        format!("{}: {}", phase.job, phase.phase)
    }
}

fn flows(summary: &Summary) -> Table {
    let mut table = Table::new()
        .words("flows", 0)
        .figures("done", 0)
        .figures("bytes", 4)
        .figures("FCT p50", 3)
        .figures("p99", 0)
        .figures("max", 6)
        .figures("slowdown p50", 2)
        .figures("p99", 1)
        .figures("goodput p50", 5);
    let mut row = |name: &str, figures: &FlowFigures| {
        let time = |value: Option<f64>| value.map_or("–".to_owned(), format::nanoseconds);
        let factor = |value: Option<f64>| value.map_or("–".to_owned(), format::factor);
        let completion = figures.completion_ns;
        table.row([
            name.to_owned(),
            format!(
                "{}/{}",
                format::grouped(figures.completed),
                format::grouped(figures.flows)
            ),
            format::bytes(figures.bytes.as_u64()),
            time(completion.map(|d| d.p50)),
            time(completion.map(|d| d.p99)),
            time(completion.map(|d| d.max)),
            factor(figures.slowdown.map(|d| d.p50)),
            factor(figures.slowdown.map(|d| d.p99)),
            figures
                .goodput_bps
                .map_or("–".to_owned(), |d| format::bit_rate(d.p50)),
        ]);
    };
    for group in summary.groups.iter().take(GROUPS) {
        let name = if group.name.is_empty() {
            "flows"
        } else {
            &group.name
        };
        row(name, &group.figures);
    }
    if summary.groups.len() > 1 {
        row("all", &summary.all);
    }
    table
}

/// How the network first told of congestion: in the order of time, with the port where it was.
pub(crate) fn first_signals(plan: &Plan, summary: &Summary) -> Option<String> {
    let names = Names::new(&plan.network);
    let infiniband = plan.link_layer.infiniband().is_some();
    let FirstSignals { mark, pause, drop } = summary.first_signals;
    let (marked, held) = match infiniband {
        true => ("FECN mark", "wait for credit"),
        false => ("ECN mark", "pause"),
    };
    let mut signals: Vec<_> = [(marked, mark), (held, pause), ("drop", drop)]
        .into_iter()
        .filter_map(|(what, signal)| signal.map(|signal| (signal.time, what, signal.endpoint)))
        .collect();
    signals.sort();
    let line = signals.into_iter().map(|(time, what, endpoint)| {
        let time = format::nanoseconds(time.as_picos() as f64 / 1e3);
        format!("{what} at {time} ({})", names.port(endpoint))
    });
    let line = line.collect::<Vec<_>>().join(", ");
    (!line.is_empty()).then_some(line)
}

/// What came of flows to multicast groups, those that lost most first.
fn multicast(plan: &Plan, results: &Results) -> Table {
    let mut table = Table::new()
        .words("multicast", 0)
        .figures("members", 1)
        .figures("packets", 0)
        .figures("lost", 0)
        .words("most by", 2);
    let lost = |result: &MulticastResult| -> u64 {
        let members = result.members.iter();
        members.map(|member| result.lost(member)).sum()
    };
    let mut all: Vec<_> = results.multicast.iter().collect();
    all.sort_by_key(|result| std::cmp::Reverse(lost(result)));
    for result in all.into_iter().take(GROUPS) {
        let name = |node: NodeId| plan.network.nodes[node.index()].name.as_str();
        let flow = &plan.flows[result.flow.index()];
        // Of equal ones the first.
        let most = (result.members.iter())
            .filter(|member| result.lost(member) > 0)
            .max_by_key(|member| (result.lost(member), std::cmp::Reverse(member.node)));
        table.row([
            format!("{} → {}", name(flow.source), plan.destination_name(flow)),
            format::grouped(result.members.len() as u64),
            format::grouped(result.sent),
            format::grouped(lost(result)),
            most.map_or("–".to_owned(), |member| name(member.node).to_owned()),
        ]);
    }
    table
}

/// What the marks of switches are called.
pub(crate) fn marks_name(plan: &Plan) -> &'static str {
    match plan.link_layer.infiniband() {
        Some(_) => "FECN marks",
        None => "ECN marks",
    }
}

fn totals(plan: &Plan, summary: &Summary, width: usize) -> String {
    // Where acknowledgements carry the marks, there are no CNPs.
    let notifications = if plan.link_layer.infiniband().is_some() {
        ("BECNs received", summary.notifications)
    } else if summary.cnps == 0 && summary.notifications > 0 {
        ("marks in ACKs", summary.notifications)
    } else {
        ("CNPs", summary.cnps)
    };
    let entries = [
        ("packets dropped", summary.drops),
        ("of lossless classes", summary.lossless_drops),
        match plan.link_layer.infiniband() {
            Some(_) => ("ports out of credit", summary.waiting_ports),
            None => ("pause frames", summary.pause_frames),
        },
        (marks_name(plan), summary.ecn_marked),
        notifications,
        ("sent again", summary.retransmissions),
    ];
    let columns = if width >= 66 { 2 } else { 1 };
    let rows = entries.len().div_ceil(columns);
    let mut text = String::new();
    for row in 0..rows {
        for column in 0..columns {
            let Some((name, value)) = entries.get(column * rows + row) else {
                continue;
            };
            let figure = format::grouped(*value);
            let bad = *value > 0 && name.starts_with("of lossless");
            let (style, gap) = (
                if bad { BAD } else { BOLD },
                if column > 0 { "      " } else { "" },
            );
            text.push_str(&format!("{gap}{name:<19} {style}{figure:>10}{style:#}"));
        }
        text.push('\n');
    }
    if let Some(found) = &summary.processors {
        text.push_str(&processors(plan, found, width));
    }
    text
}

/// What communication cost the processors of hosts, in a line or two; nothing where requests cost nothing.
fn processors(plan: &Plan, found: &ProcessorFigures, width: usize) -> String {
    let (Some(each), Some(cores)) = (found.nanoseconds_per_byte(), found.cores_for_100_gbps())
    else {
        return String::new();
    };
    if each == 0.0 {
        return String::new();
    }
    let name = &plan.network.nodes[found.busiest.index()].name;
    let room = " ".repeat(21);
    let cost = format!("{cores:.2} cores for 100 Gb/s");
    let busiest = format!("busiest {:.2} cores of {name}", found.busiest_cores);
    let mut text = format!("processors           {BOLD}{each:>10.3}{BOLD:#} ns a byte");
    match width >= 80 {
        true => text.push_str(&format!(", {cost}; {busiest}\n")),
        false => text.push_str(&format!("\n{room}{cost}\n{room}{busiest}\n")),
    }
    let shares: Vec<String> = processor_shares(found)
        .map(|(work, share)| format!("{work} {:.0} %", share * 100.0))
        .collect();
    if !shares.is_empty() {
        let shares = wrap(&shares.join(", "), width.saturating_sub(room.len()), 0);
        for line in shares.lines() {
            text.push_str(&format!("{room}{line}\n"));
        }
    }
    text
}

/// What processors were busy with, and the share of that, the largest first.
pub(crate) fn processor_shares(
    found: &ProcessorFigures,
) -> impl Iterator<Item = (&'static str, f64)> + '_ {
    let mut parts: Vec<_> = (found.parts.iter())
        .map(|(work, _)| (*work, found.share(*work)))
        .collect();
    parts.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    parts.into_iter().map(|(work, share)| {
        let name = match work {
            ProcessorWork::SystemCalls => "system calls",
            ProcessorWork::Copies => "copies",
            ProcessorWork::Stack => "stack",
            ProcessorWork::Interrupts => "interrupts",
            ProcessorWork::Requests => "work requests",
            ProcessorWork::Staging => "staging",
        };
        (name, share)
    })
}

/// A port that could not send although it had something to send.
pub(crate) struct HeldUp {
    pub(crate) endpoint: Endpoint,
    /// On Ethernet, the class that was paused longest.
    pub(crate) class: Option<Class>,
    pub(crate) time: Span,
    /// Pause frames of that class, or flow-control packets, that came in.
    pub(crate) frames: u64,
}

/// Ports by the time that they were held up, the longest first: by pause frames, or for want of credit.
pub(crate) fn held_up(plan: &Plan, results: &Results) -> Vec<HeldUp> {
    let by_credit = plan.link_layer.infiniband().is_some();
    let mut ports: Vec<_> = results
        .ports
        .iter()
        .filter(|port| port.endpoint.node.index() < plan.network.nodes.len())
        .filter_map(|port| {
            let (class, time, frames) = if by_credit {
                let waited = port.port.value(PortCounter::TransmitWait);
                let credits = port.port.value(PortCounter::CreditsReceived);
                (None, Span::picos(waited), credits)
            } else {
                let (class, time) = port.longest_paused_class()?;
                let frames = port.classes[class.index()].value(ClassCounter::PauseReceived);
                (Some(class), time, frames)
            };
            (!time.is_zero()).then_some(HeldUp {
                endpoint: port.endpoint,
                class,
                time,
                frames,
            })
        })
        .collect();
    ports.sort_by_key(|port| (std::cmp::Reverse(port.time), port.endpoint));
    ports
}

fn held_up_table(plan: &Plan, summary: &Summary, ports: &[HeldUp]) -> Table {
    let names = Names::new(&plan.network);
    let active = summary.active.as_picos().max(1) as f64;
    let by_credit = plan.link_layer.infiniband().is_some();
    let table = if by_credit {
        Table::new()
            .words("waited for credit", 0)
            .words("of", 1)
            .figures("for", 0)
            .figures("of the time", 0)
            .figures("grants", 2)
    } else {
        Table::new()
            .words("paused longest", 0)
            .words("by", 1)
            .figures("class", 3)
            .figures("for", 0)
            .figures("of the time", 0)
            .figures("pause frames", 2)
    };
    let mut table = table;
    for port in ports.iter().take(PORTS) {
        let peer = names.peer(port.endpoint);
        let ends = [
            names.port(port.endpoint),
            peer.map_or(String::new(), |peer| names.port(peer)),
        ];
        let figures = [
            format::span(port.time),
            format::percent(port.time.as_picos() as f64 / active),
            format::grouped(port.frames),
        ];
        let class = port.class.map(|class| class.to_string());
        table.row(ends.into_iter().chain(class).chain(figures));
    }
    table
}

fn speed(summary: &Summary, wall_seconds: f64, width: usize) -> String {
    let rate = summary.link_hops as f64 / wall_seconds.max(1e-9);
    let line = format!(
        "{} packet hops in {}: {} a second",
        format::grouped(summary.link_hops),
        format::nanoseconds(wall_seconds * 1e9),
        format::short_count(rate)
    );
    format!("{FAINT}{}{FAINT:#}\n", wrap(&line, width, 0))
}

/// Breaks a text at spaces; lines after the first begin with `indent` spaces.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> String {
    let room = width.saturating_sub(indent).max(20);
    let mut wrapped = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > room {
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', indent));
            column = 0;
        } else if column > 0 {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += length;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use softfabric_fabric::export::findings;

    use super::*;
    use crate::sample;

    fn plain(plan: &Plan, results: &Results, width: usize) -> String {
        let found = findings::find(plan, results);
        let text = render(plan, results, &found, 0.25, width);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn it_fits_wide_and_narrow_terminals() {
        for (plan, results) in [sample::incast(), sample::lossy(), sample::deadlocked()] {
            for width in [120, 80, 60, 40] {
                let text = plain(&plan, &results, width);
                for line in text.lines() {
                    assert!(line.chars().count() <= width, "{width}: {line:?}\n{text}");
                }
                assert!(text.contains("FCT") || text.contains("p99"), "{text}");
            }
        }
    }

    #[test]
    fn a_lossless_drop_is_the_first_thing_said() {
        let (plan, results) = sample::lossy();
        let text = plain(&plan, &results, 80);
        assert!(
            text.starts_with("FAILURE Lossless classes dropped 12 packets"),
            "{text}"
        );
        let (plan, results) = sample::incast();
        let text = plain(&plan, &results, 80);
        assert!(
            text.starts_with("incast 248 of 248 flows done in"),
            "{text}"
        );
    }

    #[test]
    fn marks_in_acknowledgements_count_where_there_are_no_cnps() {
        let (plan, mut results) = sample::incast();
        assert!(plain(&plan, &results, 80).contains("CNPs                       348"));
        results.devices.clear();
        let carried: u64 = results.flows.iter().map(|flow| flow.notifications).sum();
        let text = plain(&plan, &results, 80);
        assert!(
            text.contains(&format!("marks in ACKs {carried:>16}")),
            "{text}"
        );
    }

    #[test]
    fn infiniband_has_fecn_and_becn() {
        let (plan, results) = crate::report::infiniband_run();
        let text = plain(&plan, &results, 80);
        let marks: u64 = (results.ports.iter())
            .map(|port| port.class_total(ClassCounter::EcnMarked))
            .sum();
        assert!(marks > 0);
        let line = |name: &str, value: u64| {
            let mut words = text.lines().filter_map(|line| line.split(name).nth(1));
            let after = words.next().unwrap_or_else(|| panic!("no {name}: {text}"));
            let figure = after
                .split("  ")
                .map(str::trim)
                .find(|word| !word.is_empty());
            assert_eq!(
                figure,
                Some(format::grouped(value).as_str()),
                "{name}: {text}"
            );
        };
        line("FECN marks", marks);
        let told: u64 = results.flows.iter().map(|flow| flow.notifications).sum();
        assert!(told > 0);
        line("BECNs received", told);
        assert!(
            !text.contains("CNPs") && !text.contains(" ECN marks"),
            "{text}"
        );
    }

    #[test]
    fn the_longest_paused_port_leads() {
        let (plan, results) = sample::incast();
        let ports = held_up(&plan, &results);
        assert!(ports.windows(2).all(|pair| pair[0].time >= pair[1].time));
        let text = plain(&plan, &results, 80);
        let list = text.split("paused longest").nth(1).unwrap();
        let first = list.lines().nth(1).unwrap();
        assert!(first.starts_with("host11"), "{first}");
    }
}
