//! A comparison as one HTML page, in the style of the report of a run: it needs nothing else, and loads nothing.

use maud::{DOCTYPE, Markup, html};
use serde::Serialize;
use softfabric_fabric::compare::{Comparison, Measure, Spread, VariantFigures};

use super::text::rows;
use crate::format;
use crate::report::{head, scripts};

/// The whole page; `command` repeats the comparison.
pub(super) fn render(comparison: &Comparison, command: &str) -> String {
    let seeds = comparison.seeds.len();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&format!("{} compared", comparison.name)))
            body {
                header {
                    p.brand { "softfabric" span { "comparison" } }
                    h1 { (comparison.name) }
                    @if let Some(description) = &comparison.description { p.lead { (description) } }
                    p.lead {
                        "The same machines, cables and traffic over " (names(comparison)) "; "
                        @if seeds == 1 { "one seed." } @else { "medians of " (seeds) " seeds." }
                    }
                }
                main {
                    (refusals(comparison))
                    (reading(comparison))
                    (charts(comparison))
                    (figures(comparison))
                    (events(comparison))
                    (dimensions(comparison))
                    (settings(comparison))
                    section {
                        h2 { "Settings" }
                        p { "This command repeats the comparison:" }
                        pre.command { code { (command) } }
                        (left_out(comparison))
                    }
                }
                footer { p { "softfabric " (env!("CARGO_PKG_VERSION")) " · the same settings give the same figures on every machine" } }
                noscript { p.note { "The curve needs JavaScript; all figures are in the tables too." } }
                (scripts(&curve_json(comparison)))
            }
        }
    };
    page.into_string()
}

fn names(comparison: &Comparison) -> String {
    let names: Vec<_> = comparison
        .variants
        .iter()
        .map(|v| v.name.as_str())
        .collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

fn refusals(comparison: &Comparison) -> Markup {
    html! {
        @for variant in comparison.variants.iter().filter(|variant| !variant.refused.is_empty()) {
            section.finding.failure {
                h2 { (variant.name) " did not run" }
                ul { @for why in &variant.refused { li { (why) } } }
            }
        }
        @for variant in &comparison.variants {
            @if let Some(run) = variant.runs.iter().find(|run| !run.findings.is_empty()) {
                section.finding.notice {
                    h2 { (variant.name) }
                    ul { @for finding in &run.findings { li { (finding) } } }
                }
            }
        }
    }
}

fn reading(comparison: &Comparison) -> Markup {
    html! {
        section {
            h2 { "What the figures say" }
            ul.reading { @for sentence in &comparison.reading { li { (sentence.text) } } }
        }
    }
}

/// Measures that are drawn together, with a title.
const GROUPS: &[(&str, &str, &[Measure])] = &[
    ("Job", "from the start to the end", &[Measure::JobTime]),
    (
        "Bus bandwidth",
        "of collectives, as nccl-tests have it",
        &[Measure::BusBandwidth],
    ),
    (
        "Completion time of flows",
        "median, 99 % and 99.9 %",
        &[
            Measure::CompletionMedian,
            Measure::CompletionP99,
            Measure::CompletionP999,
        ],
    ),
    (
        "Slowdown of flows",
        "completion time over that of the flow alone, over the same technology",
        &[
            Measure::SlowdownMedian,
            Measure::SlowdownP99,
            Measure::SlowdownP999,
        ],
    ),
    (
        "Small message",
        "64 B in an idle network",
        &[Measure::SmallMessage],
    ),
    (
        "Throughput",
        "payload, all hosts together",
        &[Measure::Throughput],
    ),
    (
        "Processor time",
        "of both ends, for each gigabyte of payload",
        &[Measure::ProcessorTime, Measure::CopyTime],
    ),
];

fn charts(comparison: &Comparison) -> Markup {
    let drawn: Vec<_> = (GROUPS.iter())
        .filter(|(_, _, measures)| largest(comparison, measures) > 0.0)
        .collect();
    html! {
        section {
            h2 { "Side by side" }
            (legend(comparison))
            div.grid {
                @for (title, subtitle, measures) in drawn {
                    figure.chart { figcaption { b { (title) } span { (subtitle) } } (bars(comparison, measures)) }
                }
                @if curves(comparison).is_some() {
                    figure.chart {
                        figcaption { b { "Completion time" } span { "share of flows that were done within, all seeds" } }
                        div.plot data-chart="completion" {}
                    }
                }
            }
        }
    }
}

fn legend(comparison: &Comparison) -> Markup {
    html! {
        p.legend.variants {
            @for (place, variant) in comparison.variants.iter().enumerate() {
                span { i style=(colour(place)) {} (variant.name) }
            }
        }
    }
}

fn colour(place: usize) -> String {
    format!("background: var(--c{})", place % 8)
}

/// The largest value of these measures over all variants and seeds; zero where there is none.
fn largest(comparison: &Comparison, measures: &[Measure]) -> f64 {
    let spreads = measures.iter().flat_map(|measure| {
        comparison
            .variants
            .iter()
            .filter_map(|variant| variant.spread(*measure))
    });
    spreads.map(|spread| spread.max).fold(0.0, f64::max)
}

/// A bar for each variant, in groups of one measure, of which one is above zero; the range of the seeds as a line on it.
fn bars(comparison: &Comparison, measures: &[Measure]) -> Markup {
    let largest = largest(comparison, measures);
    let share = |value: f64| 100.0 * value / largest;
    html! {
        div.compared {
            @for measure in measures {
                @if measures.len() > 1 { h3 { (measure.definition().name) } }
                @for (place, variant) in comparison.variants.iter().enumerate() {
                    @let found = variant.spread(*measure);
                    div.row {
                        span.track {
                            @if let Some(found) = found {
                                span.fill style=(format!("width: {:.2}%; {}", share(found.median), colour(place))) {}
                                @if found.max > found.min {
                                    span.range style=(format!("left: {:.2}%; width: {:.2}%", share(found.min), share(found.max - found.min))) {}
                                }
                            }
                        }
                        span.value title=(variant.name) { (found.map_or("–".to_owned(), |found| measure.show(found.median))) }
                    }
                }
            }
        }
    }
}

#[derive(Serialize)]
struct Curve {
    label: String,
    x: Vec<f64>,
    y: Vec<f64>,
}

/// The distribution of completion times of each variant; none where there are too few flows to draw.
fn curves(comparison: &Comparison) -> Option<Vec<Curve>> {
    let curves = comparison.variants.iter().map(|variant| {
        let times = variant.completions();
        let count = times.len() as f64;
        let first = times.first().copied();
        Curve {
            label: variant.name.clone(),
            y: std::iter::once(0.0)
                .chain((1..=times.len()).map(|rank| rank as f64 / count))
                .collect(),
            x: first.into_iter().chain(times).collect(),
        }
    });
    let drawn: Vec<Curve> = curves.filter(|curve| curve.x.len() > 2).collect();
    (!drawn.is_empty()).then_some(drawn)
}

/// The curve for the page's script, safe to stand inside a script element.
fn curve_json(comparison: &Comparison) -> String {
    let Some(series) = curves(comparison) else {
        return "{}".to_owned();
    };
    let values = || series.iter().flat_map(|curve| curve.x.iter().copied());
    let (low, high) = (
        values().fold(f64::MAX, f64::min),
        values().fold(0.0, f64::max),
    );
    let chart = serde_json::json!({ "completion": {
        "x_unit": "ns", "y_unit": "share", "x_log": high > low.max(1.0) * 30.0, "y_log": false, "labels": [], "series": series,
    } });
    chart.to_string().replace('<', "\\u003c")
}

fn figures(comparison: &Comparison) -> Markup {
    let cell = |measure: Measure, spread: &Option<Spread>| {
        html! {
            td {
                @match spread {
                    None => "–",
                    Some(spread) => {
                        (measure.show(spread.median))
                        @if measure.show(spread.min) != measure.show(spread.max) {
                            small { (measure.show(spread.min)) " to " (measure.show(spread.max)) }
                        }
                    }
                }
            }
        }
    };
    html! {
        section {
            h2 { "Figures" }
            div.scroll {
                table.figures {
                    thead { tr { th { "Measure" } @for variant in &comparison.variants { th { (variant.name) } } } }
                    tbody {
                        @for (measure, spreads) in rows(comparison) {
                            tr {
                                th scope="row" title=(measure.definition().help) { (measure.definition().name) }
                                @for spread in &spreads { (cell(measure, spread)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn events(comparison: &Comparison) -> Markup {
    let any = (comparison.variants.iter())
        .any(|variant| variant.runs.iter().any(|run| !run.aftermath.is_empty()));
    let rate = |value: Option<f64>| value.map_or("–".to_owned(), format::bit_rate);
    let time = |variant: &VariantFigures| {
        let of = |measure| {
            Some((
                variant.spread(measure)?.median,
                variant.calm_spread(measure)?.median,
            ))
        };
        let found = of(Measure::JobTime).or_else(|| of(Measure::CompletionP99));
        found.map_or("–".to_owned(), |(with, without)| {
            format!("{}×", format::factor(with / without.max(1e-3)))
        })
    };
    html! {
        @if any {
            section {
                h2 { "Events" }
                div.scroll {
                    table {
                        thead {
                            tr {
                                th { "Event" } th.word { "Over" } th { "Before" } th { "Less than half for" } th { "During" } th { "After" }
                                th { "Time with and without" } th { "Survived" }
                            }
                        }
                        tbody {
                            @for variant in &comparison.variants {
                                @for found in variant.aftermath() {
                                    tr {
                                        th scope="row" { (found.name) }
                                        td.word { (variant.name) }
                                        td { (rate(found.before_bps)) }
                                        td { (if found.outage_ns > 0.0 { format::nanoseconds(found.outage_ns) } else { "–".to_owned() }) }
                                        td { (rate(found.during_bps)) }
                                        td { (rate(found.after_bps)) }
                                        td { (time(variant)) }
                                        td { (variant.survived()) " of " (variant.runs.len()) }
                                    }
                                }
                            }
                        }
                    }
                }
                p.note { "Rates are those of the first seed." }
            }
        }
    }
}

fn dimensions(comparison: &Comparison) -> Markup {
    html! {
        section {
            h2 { "What these runs say of each technology" }
            div.scroll {
                table.prose {
                    thead { tr { th { "Dimension" } @for variant in &comparison.variants { th { (variant.name) } } } }
                    tbody {
                        @for dimension in &comparison.dimensions {
                            tr {
                                th scope="row" { (dimension.name) small { (dimension.rests_on) } }
                                @for cell in &dimension.cells { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn settings(comparison: &Comparison) -> Markup {
    let any = comparison
        .variants
        .iter()
        .any(|variant| !variant.without.is_empty());
    html! {
        @if any {
            section {
                h2 { "Settings taken away" }
                div.scroll {
                    table {
                        thead { tr { th { "Without" } th.word { "Over" } th { "Settings" } th { "Missed" } th { "Dropped" } th { "Time" } th { "Pause frames" } th { "Survived" } } }
                        tbody {
                            @for variant in &comparison.variants {
                                @for found in &variant.without {
                                    tr {
                                        th scope="row" { (found.family) }
                                        td.word { (variant.name) }
                                        td { (found.settings) }
                                        td { (if found.needed { "yes" } else { "no" }) }
                                        td { (format::grouped(found.drops as u64)) }
                                        td { (found.time_factor.map_or("–".to_owned(), |factor| format!("{}×", format::factor(factor)))) }
                                        td { (found.pause_frames.map_or("–".to_owned(), |count| format::grouped(count as u64))) }
                                        td { (if found.survived { "yes" } else { "no" }) }
                                    }
                                }
                            }
                        }
                    }
                }
                p.note { "Each group was taken away once, with the first seed. It is missed where packets are dropped, something does not come to its end, or all takes a tenth longer." }
            }
        }
    }
}

fn left_out(comparison: &Comparison) -> Markup {
    html! {
        @for variant in comparison.variants.iter().filter(|variant| !variant.left_out.is_empty()) {
            h3 { "Left out over " (variant.name) }
            ul.reading { @for (field, reason) in &variant.left_out { li { code { (field) } ": " (reason) } } }
        }
    }
}
