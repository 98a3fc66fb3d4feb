//! The values of the charts, as JSON in the page.

use serde::Serialize;
use softfabric_fabric::export::{Names, PhaseFigures, Summary};
use softfabric_fabric::plan::{Endpoint, Plan};
use softfabric_fabric::results::{FlowSeries, Results};
use softfabric_telemetry::Series;
use softfabric_units::Time;

use crate::format;
use crate::summary::marks_name;

/// No line has more points: a chart is not wider.
pub(super) const MOST_POINTS: usize = 600;
/// No chart has more lines, or eyes lose them.
const MOST_LINES: usize = 8;
/// Completion times spread wider than this are drawn on a logarithmic axis.
const WIDE_SPREAD: f64 = 30.0;

/// A chart: a title for the page, values for the script.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Chart {
    #[serde(skip)]
    pub(super) id: &'static str,
    #[serde(skip)]
    pub(super) title: &'static str,
    #[serde(skip)]
    pub(super) subtitle: &'static str,
    /// What the values along are: `ns`, or `index` into `labels`.
    x_unit: &'static str,
    /// What the values are: `B`, `B_per_s`, `bps`, `share`, `factor`, `per_us`.
    y_unit: &'static str,
    x_log: bool,
    y_log: bool,
    labels: Vec<String>,
    series: Vec<Line>,
}

#[derive(Clone, Debug, Serialize)]
struct Line {
    label: String,
    x: Vec<f64>,
    y: Vec<f64>,
}

/// All charts that the run has values for.
pub(super) struct Charts(Vec<Chart>);

impl Charts {
    pub(super) fn get(&self, id: &str) -> Option<&Chart> {
        self.0.iter().find(|chart| chart.id == id)
    }

    /// The values by chart, safe to stand inside a script element.
    pub(super) fn json(&self) -> String {
        let by_id: serde_json::Map<String, serde_json::Value> = self
            .0
            .iter()
            .filter_map(|chart| Some((chart.id.to_owned(), serde_json::to_value(chart).ok()?)))
            .collect();
        // `</script>` or `<!--` in a name would end the element: `<` is written as JSON can also write it.
        serde_json::Value::Object(by_id)
            .to_string()
            .replace('<', "\\u003c")
    }
}

/// Picks what is worth drawing.
pub(super) fn of(plan: &Plan, results: &Results, summary: &Summary, names: &Names<'_>) -> Charts {
    let charts = [
        phases(summary),
        completion(plan, results, summary),
        slowdown(summary),
        queues(results, summary, names),
        paused(plan, results, summary, names),
        marks(plan, results, summary),
        flow_rates(plan, results, summary, names),
        allowed_rates(plan, results, summary, names),
    ];
    let mut charts: Vec<Chart> = charts.into_iter().flatten().collect();
    charts.retain(|chart| !chart.series.is_empty());
    Charts(charts)
}

/// What each job's collectives reached, one after the other: what a failure in their middle cost is seen at a glance.
fn phases(summary: &Summary) -> Option<Chart> {
    let collectives = |phases: &'_ [PhaseFigures]| -> Vec<(String, f64)> {
        let reached = phases.iter();
        reached
            .filter_map(|phase| Some((phase.phase.clone(), phase.bus_bandwidth? * 1e9)))
            .collect()
    };
    let jobs: Vec<_> = (summary.jobs())
        .map(|phases| (&phases[0].job, collectives(phases)))
        .filter(|(_, reached)| reached.len() > 1)
        .collect();
    let (_, longest) = jobs.iter().max_by_key(|(_, reached)| reached.len())?;
    let labels = longest.iter().map(|(phase, _)| phase.clone()).collect();
    let line = |(job, reached): &(&String, Vec<(String, f64)>)| Line {
        label: if job.is_empty() { "job" } else { job }.to_owned(),
        x: (0..reached.len()).map(|index| index as f64).collect(),
        y: reached.iter().map(|(_, value)| rounded(*value)).collect(),
    };
    Some(Chart {
        id: "phases",
        title: "Bus bandwidth",
        subtitle: "what each collective of a job reached, in their order",
        x_unit: "index",
        y_unit: "B_per_s",
        x_log: false,
        y_log: false,
        labels,
        series: jobs.iter().take(MOST_LINES).map(line).collect(),
    })
}

fn completion(plan: &Plan, results: &Results, summary: &Summary) -> Option<Chart> {
    let whole = summary.all.completion_ns?;
    let mut series = Vec::new();
    for group in summary.groups.iter().take(MOST_LINES) {
        let flows = plan.flows.iter().zip(&results.flows);
        let members = flows.filter(|(flow, _)| flow.group == group.name);
        let mut times: Vec<f64> = members
            .filter_map(|(_, result)| Some(result.completion_time()?.as_picos() as f64 / 1e3))
            .collect();
        if times.is_empty() {
            continue;
        }
        times.sort_unstable_by(f64::total_cmp);
        let (x, y) = distribution_curve(&times);
        let label = if group.name.is_empty() {
            "flows"
        } else {
            &group.name
        };
        let label = label.to_owned();
        series.push(Line { label, x, y });
    }
    Some(Chart {
        id: "completion",
        title: "Completion time",
        subtitle: "share of flows that were done within",
        x_unit: "ns",
        y_unit: "share",
        x_log: whole.max > whole.min.max(1.0) * WIDE_SPREAD,
        y_log: false,
        labels: Vec::new(),
        series,
    })
}

/// The cumulative distribution of sorted values, with no more points than a chart shows.
fn distribution_curve(sorted: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let count = sorted.len();
    let points = count.min(MOST_POINTS - 1);
    let (mut x, mut y) = (vec![sorted[0]], vec![0.0]);
    for point in 1..=points {
        let rank = (count * point).div_ceil(points);
        x.push(rounded(sorted[rank - 1]));
        y.push(rounded(rank as f64 / count as f64));
    }
    (x, y)
}

fn slowdown(summary: &Summary) -> Option<Chart> {
    let sizes: Vec<_> = summary
        .sizes
        .iter()
        .filter_map(|size| Some((size, size.figures.slowdown?)))
        .collect();
    if sizes.len() < 2 {
        return None;
    }
    let line = |label: &str, value: fn(&softfabric_fabric::export::Distribution) -> f64| Line {
        label: label.to_owned(),
        x: (0..sizes.len()).map(|index| index as f64).collect(),
        y: sizes
            .iter()
            .map(|(_, slowdown)| rounded(value(slowdown)))
            .collect(),
    };
    let worst = sizes
        .iter()
        .map(|(_, slowdown)| slowdown.max)
        .fold(1.0, f64::max);
    Some(Chart {
        id: "slowdown",
        title: "Slowdown by size",
        subtitle: "completion time over that of the flow alone; flows up to this size",
        x_unit: "index",
        y_unit: "factor",
        x_log: false,
        y_log: worst > WIDE_SPREAD,
        labels: sizes
            .iter()
            .map(|(size, _)| format::bytes(size.to.as_u64()))
            .collect(),
        series: vec![
            line("p99", |slowdown| slowdown.p99),
            line("p95", |slowdown| slowdown.p95),
            line("p50", |slowdown| slowdown.p50),
        ],
    })
}

fn over_time(
    id: &'static str,
    title: &'static str,
    subtitle: &'static str,
    y_unit: &'static str,
    series: Vec<Line>,
) -> Chart {
    Chart {
        id,
        title,
        subtitle,
        x_unit: "ns",
        y_unit,
        x_log: false,
        y_log: false,
        labels: Vec::new(),
        series,
    }
}

fn queues(results: &Results, summary: &Summary, names: &Names<'_>) -> Option<Chart> {
    let ports = results.series.ports.iter();
    let ports = ports.map(|port| (port.endpoint, &port.queue));
    let lines = tallest(ports, summary.begin, names, Fold::Largest)?;
    Some(over_time(
        "queues",
        "Queue depth",
        "bytes waiting at a port, the largest of each interval",
        "B",
        lines,
    ))
}

fn paused(plan: &Plan, results: &Results, summary: &Summary, names: &Names<'_>) -> Option<Chart> {
    let ports = results.series.ports.iter();
    let ports = ports.map(|port| (port.endpoint, &port.paused));
    let lines = tallest(ports, summary.begin, names, Fold::Mean)?;
    Some(over_time(
        "paused",
        match plan.link_layer.infiniband() {
            Some(_) => "Waited for credit",
            None => "Paused",
        },
        "share of the time in which a port had to wait for its neighbour",
        "share",
        lines,
    ))
}

/// The ports whose values add up to most.
fn tallest<'s>(
    ports: impl Iterator<Item = (Endpoint, &'s Series)>,
    begin: Time,
    names: &Names<'_>,
    fold: Fold,
) -> Option<Vec<Line>> {
    let mut ports: Vec<(f64, Endpoint, &Series)> = ports
        .map(|(endpoint, series)| (series.values().iter().sum(), endpoint, series))
        .filter(|(sum, _, _)| *sum > 0.0)
        .collect();
    ports.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let lines: Vec<Line> = ports
        .into_iter()
        .take(MOST_LINES)
        .map(|(_, endpoint, series)| line(names.port(endpoint), series, begin, fold, 1.0))
        .collect();
    (!lines.is_empty()).then_some(lines)
}

fn marks(plan: &Plan, results: &Results, summary: &Summary) -> Option<Chart> {
    let per_microsecond = |series: &Series| 1.0 / series.interval().as_micros_f64().max(1e-9);
    let (title, notifications) = match plan.link_layer.infiniband() {
        Some(_) => ("FECN and BECN", "BECNs received"),
        None => ("ECN and CNP", "CNPs"),
    };
    let named = [
        (marks_name(plan), &results.series.marks),
        (notifications, &results.series.notifications),
    ];
    let lines = named.into_iter().filter_map(|(label, series)| {
        let series = series.as_ref()?;
        let factor = per_microsecond(series);
        Some(line(
            label.to_owned(),
            series,
            summary.begin,
            Fold::Mean,
            factor,
        ))
    });
    let lines: Vec<Line> = lines.collect();
    let anything = lines
        .iter()
        .any(|line| line.y.iter().any(|&value| value > 0.0));
    anything.then(|| {
        over_time(
            "marks",
            title,
            "per microsecond, whole fabric",
            "per_us",
            lines,
        )
    })
}

fn flow_rates(
    plan: &Plan,
    results: &Results,
    summary: &Summary,
    names: &Names<'_>,
) -> Option<Chart> {
    let lines = of_flows(plan, results, summary, names, |flow| &flow.rate);
    (!lines.is_empty()).then(|| {
        over_time(
            "flow_rates",
            "Rate of flows",
            "payload delivered",
            "bps",
            lines,
        )
    })
}

/// What InfiniBand's congestion control lets flows send: their index into the control table, as a rate.
fn allowed_rates(
    plan: &Plan,
    results: &Results,
    summary: &Summary,
    names: &Names<'_>,
) -> Option<Chart> {
    plan.link_layer.infiniband()?.congestion.as_ref()?;
    let lines = of_flows(plan, results, summary, names, |flow| &flow.allowed);
    (!lines.is_empty()).then(|| {
        over_time(
            "allowed_rates",
            "Rate that the control table allows",
            "by the index (CCTI) of each flow",
            "bps",
            lines,
        )
    })
}

/// A line for each of the largest flows that have time series.
fn of_flows<'r>(
    plan: &Plan,
    results: &'r Results,
    summary: &Summary,
    names: &Names<'_>,
    series: impl Fn(&'r FlowSeries) -> &'r Series,
) -> Vec<Line> {
    let flows = results.series.flows.iter();
    let mut flows: Vec<_> = flows
        .filter(|flow| plan.flows.get(flow.flow.index()).is_some())
        .collect();
    // The largest flows live longest; of equal ones the first.
    flows.sort_by_key(|flow| std::cmp::Reverse(plan.flows[flow.flow.index()].bytes));
    let lines = flows.into_iter().take(MOST_LINES).map(|flow| {
        let planned = &plan.flows[flow.flow.index()];
        let label = format!(
            "{} → {}",
            names.node(planned.source).name,
            plan.destination_name(planned)
        );
        line(label, series(flow), summary.begin, Fold::Mean, 1.0)
    });
    lines.collect()
}

/// How many values become one.
#[derive(Clone, Copy, Debug)]
enum Fold {
    Mean,
    Largest,
}

/// A series as a line from the first flow on, in no more points than a chart shows.
fn line(label: String, series: &Series, begin: Time, fold: Fold, factor: f64) -> Line {
    let interval = series.interval().as_picos().max(1);
    let skipped = (begin.as_picos() / interval) as usize;
    let values = series.values().get(skipped..).unwrap_or_default();
    let group = values.len().div_ceil(MOST_POINTS).max(1);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (index, chunk) in values.chunks(group).enumerate() {
        let end = skipped + index * group + chunk.len();
        x.push((interval * end as u64) as f64 / 1e3);
        let value = match fold {
            Fold::Mean => chunk.iter().sum::<f64>() / chunk.len() as f64,
            Fold::Largest => chunk.iter().copied().fold(0.0, f64::max),
        };
        y.push(rounded(value * factor));
    }
    Line { label, x, y }
}

/// Four digits: more cannot be seen, and the page stays small.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use softfabric_telemetry::Reduce;
    use softfabric_units::Span;

    use super::*;

    #[test]
    fn long_series_keep_their_peaks_and_their_end() {
        let mut series = Series::new(Span::micros(1), 10_000, Reduce::Max);
        for index in 0..2_000 {
            series.push(if index == 1_234 { 5e6 } else { 1.0 });
        }
        let line = line(String::new(), &series, Time::ZERO, Fold::Largest, 1.0);
        assert!(line.x.len() <= MOST_POINTS);
        assert_eq!(line.x.last(), Some(&2_000_000.0));
        assert_eq!(line.y.iter().copied().fold(0.0, f64::max), 5e6);
    }

    #[test]
    fn lines_begin_with_the_first_flow() {
        let mut series = Series::new(Span::micros(1), 100, Reduce::Max);
        for index in 0..10 {
            series.push(f64::from(index));
        }
        let line = line(
            String::new(),
            &series,
            Time::from_nanos(4_500),
            Fold::Mean,
            2.0,
        );
        assert_eq!(line.x[0], 5_000.0);
        assert_eq!(line.y[0], 8.0);
    }

    #[test]
    fn a_distribution_goes_from_none_to_all() {
        let values: Vec<f64> = (1..=5_000).map(f64::from).collect();
        let (x, y) = distribution_curve(&values);
        assert_eq!((x[0], y[0]), (1.0, 0.0));
        assert_eq!((x.last(), y.last()), (Some(&5_000.0), Some(&1.0)));
        assert!(x.len() <= MOST_POINTS && x.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
