//! What there is to see as text, in so many columns: for the screen, for a pipe, and for one look.

use softfabric_operations::diagnose::{Certainty, Finding, Verdict};
use softfabric_operations::watch::{Episode, Moment, PortView, State, View, What};
use softfabric_units::{Rate, Span};

use crate::clock;
use crate::format;
use crate::summary::wrap;
use crate::table::Table;
use crate::terminal::{BAD, BOLD, DOUBTFUL, FAINT, GOOD};

/// How the text is laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) width: usize,
    /// So many ports are listed at most.
    pub(super) ports: usize,
    /// So many entries of the timeline.
    pub(super) episodes: usize,
    /// The entry that is chosen on a screen.
    pub(super) chosen: Option<usize>,
}

/// Everything in one text: the answer, ports, the timeline.
pub(super) fn whole(view: &View, layout: Layout) -> String {
    let mut text = headline(view, layout.width);
    text.push_str(&trend(view, layout.width));
    text.push('\n');
    text.push_str(&ports(view, layout));
    text.push('\n');
    text.push_str(&timeline(view, layout));
    text
}

/// The answer, and how far the trouble reaches.
pub(super) fn headline(view: &View, width: usize) -> String {
    let style = match view.verdict {
        Verdict::Cause(_) => BAD,
        Verdict::NotTheFabric => GOOD,
        Verdict::NotEnoughData => DOUBTFUL,
    };
    let open: Vec<&Episode> = view.open_episodes().collect();
    let findings = open.iter().filter(|episode| episode.finding().is_some());
    let title = match (view.verdict, findings.clone().next()) {
        (Verdict::Cause(_), Some(first)) => {
            let for_so_long = lasting(view.now.since(first.since));
            format!("{} at {} for {for_so_long}", first.title(), first.place())
        }
        // It was there in the window, and is over.
        (Verdict::Cause(cause), None) => format!("over: {}", cause.name()),
        (verdict, _) => verdict.name().to_owned(),
    };
    let mut text = format!("{style}{}{style:#}\n", wrap(&title, width, 0));
    text.push_str(&format!("{}\n", wrap(&view.summary, width, 0)));
    for also in findings.skip(1).take(3) {
        let line = format!("also: {} at {}", also.title(), also.place());
        text.push_str(&format!("{}\n", wrap(&line, width, 0)));
    }
    let held = view.held_ports();
    if held > 0 {
        let since = view.many_held_since().map_or(String::new(), |since| {
            format!(", many at once since {}", moment(view, since))
        });
        let are = if held == 1 {
            "port is held"
        } else {
            "ports are held"
        };
        let sources = view
            .ports
            .iter()
            .filter(|port| port.state == State::Source)
            .count();
        let meaning = match sources {
            0 => "",
            _ => "; the ports that report pauses are symptoms",
        };
        let line = format!("{held} of {} {are}{since}{meaning}", view.ports.len());
        text.push_str(&format!("{}\n", wrap(&line, width, 0)));
    }
    let coverage = &view.coverage;
    if coverage.heard < coverage.ports {
        let line = format!(
            "{} of {} ports were not heard: {}",
            coverage.ports - coverage.heard,
            coverage.ports,
            coverage
                .silent
                .iter()
                .take(6)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        );
        text.push_str(&format!(
            "{DOUBTFUL}{}{DOUBTFUL:#}\n",
            wrap(&line, width, 0)
        ));
    }
    if let Some(compared) = &view.compared {
        let of = format!("of {} hosts and ports compared", compared.ports);
        let also = match compared.explained {
            0 => String::new(),
            more => format!("; {more} more are symptoms of what was found"),
        };
        let line = match compared.deviations.len() {
            0 => format!("baseline: nothing else differs, {of}{also}"),
            1 => format!("baseline: 1 difference, {of}{also}"),
            many => format!("baseline: {many} differences, {of}{also}"),
        };
        text.push_str(&format!("{}\n", wrap(&line, width, 0)));
    }
    text
}

/// A share for people; what nobody tells is a dash.
fn share(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), format::percent)
}

/// A rate for people; what nobody tells is a dash.
pub(super) fn rate(rate: Option<Rate>) -> String {
    rate.map_or("–".to_owned(), |rate| {
        format::bit_rate(rate.as_bps() as f64)
    })
}

/// The window as little curves.
fn trend(view: &View, width: usize) -> String {
    const WIDEST: usize = 30;
    if view.trend.is_empty() {
        return String::new();
    }
    let last = view.trend.last();
    let held = last.map_or(0, |s| s.held_ports);
    let ports = view.ports.len().max(1) as f64;
    let received = view.trend.iter().filter_map(|s| s.received).max();
    let most = received.map_or(1.0, |rate| rate.as_bps() as f64).max(1.0);
    let lines: [(&str, Vec<f64>, String); 4] = [
        (
            "ports held",
            view.trend
                .iter()
                .map(|s| s.held_ports as f64 / ports)
                .collect(),
            held.to_string(),
        ),
        (
            "worst pause",
            view.trend.iter().map(|s| s.worst).collect(),
            share(last.map(|s| s.worst)),
        ),
        (
            "ECN marks",
            view.trend.iter().map(|s| s.marked.unwrap_or(0.0)).collect(),
            share(last.and_then(|s| s.marked)),
        ),
        (
            "received",
            view.trend
                .iter()
                .map(|s| s.received.map_or(0.0, |rate| rate.as_bps() as f64 / most))
                .collect(),
            rate(last.and_then(|s| s.received)),
        ),
    ];
    let columns = width.saturating_sub(26).clamp(8, WIDEST);
    let two = width >= 2 * (columns + 26) + 2;
    let mut text = String::new();
    for (place, (name, values, now)) in lines.iter().enumerate() {
        let curve = spark(values, columns);
        text.push_str(&format!("{FAINT}{name:<12}{FAINT:#}{curve} {now:<12}"));
        if !two || place % 2 == 1 {
            text = text.trim_end().to_owned();
            text.push('\n');
        }
    }
    text
}

/// A curve of eighths, from 0 to 1; of several values in one column the largest counts.
fn spark(values: &[f64], columns: usize) -> String {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let count = values.len().min(columns).max(1);
    let column = |place: usize| {
        let (from, to) = (
            place * values.len() / count,
            (place + 1) * values.len() / count,
        );
        let most = values[from..to.max(from)]
            .iter()
            .copied()
            .fold(0.0, f64::max);
        match (most * 8.0).ceil() as usize {
            0 => '·',
            height => EIGHTHS[height.min(8)],
        }
    };
    let curve: String = (0..count).map(column).collect();
    format!("{curve:>columns$}")
}

fn ports(view: &View, layout: Layout) -> String {
    let mut table = Table::new()
        .words("port", 0)
        .words("", 0)
        .figures("held", 0)
        .figures("holds", 2)
        .figures("sends", 1)
        .figures("receives", 3)
        .figures("marks", 4)
        .figures("queue", 5)
        .figures("buffer", 7)
        .figures("CNP/s", 8)
        .figures("drops/s", 6)
        .figures("bad/s", 9);
    let many = |value: Option<f64>| match value {
        None => "–".to_owned(),
        Some(value) if value < 0.05 => "0".to_owned(),
        Some(value) => format::short_count(value),
    };
    let order = view.worst_ports();
    let held = |port: &PortView| match (port.held, port.class) {
        (Some(held), Some(class)) if held > 0.0 => {
            format!("{} c{}", format::percent(held), class.as_u8())
        }
        (held, _) => share(held),
    };
    for index in order.iter().take(layout.ports) {
        let port = &view.ports[index.index()];
        let bytes = |bytes: Option<softfabric_units::Bytes>| {
            bytes.map_or("–".to_owned(), |bytes| format::bytes(bytes.as_u64()))
        };
        table.row([
            port.name.clone(),
            port.state.name().to_owned(),
            held(port),
            share(port.holds),
            rate(port.transmits),
            rate(port.receives),
            share(port.marked),
            bytes(port.queue),
            bytes(port.buffer),
            many(port.notifications),
            many(port.drops),
            many(port.damaged),
        ]);
    }
    let mut text = table.render(layout.width);
    for (state, style) in [
        (State::Source, BAD),
        (State::Down, BAD),
        (State::Held, DOUBTFUL),
    ] {
        text = painted(&text, state.name(), style);
    }
    let left = order.len().saturating_sub(layout.ports);
    if left > 0 {
        text.push_str(&format!("{FAINT}and {left} more ports{FAINT:#}\n"));
    }
    text
}

/// The first of these words in each line, painted; names of ports have no spaces around them.
fn painted(text: &str, word: &str, style: anstyle::Style) -> String {
    let spaced = format!(" {word} ");
    let paint = format!(" {style}{word}{style:#} ");
    text.lines()
        .map(|line| format!("{}\n", line.replacen(&spaced, &paint, 1)))
        .collect()
}

/// What began and ended.
pub(super) fn timeline(view: &View, layout: Layout) -> String {
    if view.episodes.is_empty() {
        return format!("{FAINT}nothing was wrong in this time{FAINT:#}\n");
    }
    let mut text = format!("{FAINT}timeline{FAINT:#}\n");
    for (place, episode) in view.episodes.iter().take(layout.episodes).enumerate() {
        let chosen = layout.chosen == Some(place);
        let mark = if chosen { "▸ " } else { "  " };
        let until = match episode.has_ended {
            true => moment(view, episode.until),
            false => "now".to_owned(),
        };
        let style = match (episode.has_ended, &episode.what) {
            (true, _) => FAINT,
            (false, What::Finding(_)) => BAD,
            (false, What::Deviation(_)) => DOUBTFUL,
        };
        let times = format!("{} – {until}", moment(view, episode.since));
        let line = format!(
            "{times}  {} at {}{}",
            episode.title(),
            episode.place(),
            sureness(episode)
        );
        let line = wrap(&line, layout.width.saturating_sub(2), 2);
        let line = line.replace('\n', "\n  ");
        text.push_str(&format!("{mark}{style}{line}{style:#}\n"));
    }
    let left = view.episodes.len().saturating_sub(layout.episodes);
    if left > 0 {
        text.push_str(&format!("{FAINT}  and {left} earlier{FAINT:#}\n"));
    }
    text
}

fn sureness(episode: &Episode) -> String {
    let sure = match episode.certainty() {
        Certainty::High => "",
        Certainty::Moderate => ", moderate certainty",
    };
    match episode.finding() {
        Some(finding) if finding.explains > 0.0 => {
            format!(
                "; explains {} of all waiting{sure}",
                format::percent(finding.explains)
            )
        }
        _ => sure.to_owned(),
    }
}

/// Everything that speaks for one entry, and what to do about it.
pub(super) fn evidence(view: &View, episode: &Episode, width: usize) -> String {
    let mut text = format!("{BOLD}{}{BOLD:#}\n", wrap(episode.summary(), width, 0));
    let heading = |name: &str| format!("{FAINT}{name}{FAINT:#}\n");
    let item = |line: &str| {
        format!(
            "  {}\n",
            wrap(line, width.saturating_sub(2), 2).replace('\n', "\n  ")
        )
    };
    let lasted = format!(
        "since {}, for {}{}",
        moment(view, episode.since),
        lasting(episode.until.since(episode.since)),
        if episode.has_ended { ", over" } else { "" }
    );
    text.push_str(&format!(
        "{}\n",
        wrap(&format!("{lasted}{}", sureness(episode)), width, 0)
    ));
    let said = match &episode.what {
        What::Finding(finding) => &finding.evidence,
        What::Deviation(deviation) => &deviation.evidence,
    };
    text.push_str(&heading("evidence"));
    for evidence in said {
        text.push_str(&item(&format!(
            "{} {}: {}",
            evidence.port, evidence.counter, evidence.says
        )));
    }
    if let What::Finding(finding) = &episode.what {
        text.push_str(&chain(finding, &heading, &item));
    }
    text
}

fn chain(
    finding: &Finding,
    heading: &dyn Fn(&str) -> String,
    item: &dyn Fn(&str) -> String,
) -> String {
    let mut text = String::new();
    if !finding.trail.is_empty() {
        text.push_str(&heading("from a symptom to the source"));
        for step in &finding.trail {
            let held = format::percent(step.held);
            text.push_str(&item(&format!(
                "{} is held by {}, {held} of the time",
                step.port, step.by
            )));
        }
    }
    if !finding.confirm.is_empty() {
        text.push_str(&heading("would confirm it"));
        text.extend(finding.confirm.iter().map(|line| item(line)));
    }
    text.push_str(&heading("what to do"));
    for action in &finding.actions {
        text.push_str(&item(&format!("{} (price: {})", action.act, action.price)));
    }
    if !finding.avoid.is_empty() {
        text.push_str(&heading("what not to do"));
        text.extend(finding.avoid.iter().map(|line| item(line)));
    }
    text
}

/// A moment for people: the time of day, or the time since the start.
pub(super) fn moment(view: &View, moment: Moment) -> String {
    match view.is_time_of_day {
        true => {
            let date = clock::date(moment.as_nanos());
            // Whoever watches knows what day it is, unless it was another one.
            let today = clock::date(view.now.as_nanos());
            match date[..10] == today[..10] {
                true => date[11..].to_owned(),
                false => date,
            }
        }
        false => format!("+{}", format::span(Span::nanos(moment.as_nanos()))),
    }
}

/// A moment in a log, where each line stands alone: the whole date, or the time since the start.
fn logged(view: &View, at: Moment) -> String {
    match view.is_time_of_day {
        true => clock::date(at.as_nanos()),
        false => moment(view, at),
    }
}

/// A length of time for people, also if it is a night.
pub(super) fn lasting(span: Span) -> String {
    let seconds = span.as_seconds_f64().round() as u64;
    match seconds {
        0..120 => format::span(span),
        120..7_200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// One line of what changed, for a pipe.
pub(super) fn event(view: &View, word: &str, at: Moment, episode: &Episode) -> String {
    let time = logged(view, at);
    format!(
        "{time}  {word}  {} at {}{}: {}\n",
        episode.title(),
        episode.place(),
        sureness(episode),
        episode.summary()
    )
}

/// One line of how it stands, for a pipe.
pub(super) fn status(view: &View) -> String {
    let time = logged(view, view.now);
    let last = view.trend.last();
    format!(
        "{time}  {}; {} of {} ports held, worst {}; {} open, {} ended\n",
        view.verdict.name(),
        view.held_ports(),
        view.ports.len(),
        format::percent(last.map_or(0.0, |s| s.worst)),
        view.open_episodes().count(),
        view.episodes.len() - view.open_episodes().count()
    )
}
