//! The dimensions in which the three technologies are usually set side by side, each filled with what this comparison measured
//! or counted. Where a simulation has nothing to say, that is what is said.

use serde::Serialize;
use softfabric_telemetry::{ClassCounter, DeviceCounter, PortCounter, StackCounter};

use super::{Comparison, Measure, Spread, VariantFigures};
use crate::export::format;

/// A dimension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dimension {
    /// Its name.
    pub name: &'static str,
    /// What its cells rest on.
    pub rests_on: &'static str,
    /// One cell a variant.
    pub cells: Vec<String>,
}

pub(super) fn of(comparison: &Comparison) -> Vec<Dimension> {
    let row = |name, rests_on, cell: fn(&VariantFigures) -> String| Dimension {
        name,
        rests_on,
        cells: (comparison.variants.iter())
            .map(|variant| match variant.runs.is_empty() {
                true => "not run".to_owned(),
                false => cell(variant),
            })
            .collect(),
    };
    vec![
        row(
            "Typical role",
            "nothing: who uses it for what is no property of a run",
            |_| "not measured by a simulation".to_owned(),
        ),
        row(
            "RDMA",
            "processor time of copies and of all else, for each gigabyte",
            rdma,
        ),
        row(
            "Routing",
            "tables of this fabric's switches, and repairs in these runs",
            routing,
        ),
        row(
            "Operations",
            "groups of settings, each taken away once",
            operations,
        ),
        row(
            "Congestion",
            "what acted, and how often (medians of the seeds)",
            congestion,
        ),
        row(
            "Ecosystem",
            "what of this program speaks it, counted; adoption is not measured",
            ecosystem,
        ),
    ]
}

fn count(variant: &VariantFigures, measure: Measure, one: &str, more: &str) -> Option<String> {
    let value = variant.median(measure);
    let what = if value == 1.0 { one } else { more };
    (value > 0.0).then(|| format!("{} {what}", measure.show(value)))
}

/// `one setting`, `5 settings`.
pub(super) fn counted(count: u32, one: &str, more: &str) -> String {
    match count {
        1 => format!("one {one}"),
        count => format!("{count} {more}"),
    }
}

fn rdma(variant: &VariantFigures) -> String {
    let of = |measure| variant.spread(measure).map(|spread: Spread| spread.median);
    let Some(all) = of(Measure::ProcessorTime) else {
        return "no copies by processors; what requests cost them is not given (host.server.post_time, for ranks of jobs)".to_owned();
    };
    let copies = of(Measure::CopyTime).unwrap_or(0.0);
    let show = |value| Measure::ProcessorTime.show(value);
    match copies > 0.0 {
        true => format!(
            "processors copy: {} of {} a gigabyte",
            show(copies),
            show(all)
        ),
        false => format!(
            "no copies by processors; {} a gigabyte for requests and completions",
            show(all)
        ),
    }
}

fn routing(variant: &VariantFigures) -> String {
    let Some(routing) = &variant.routing else {
        return "not counted".to_owned();
    };
    let mut text = format!(
        "{} entries in {} switches ({} next hops), computed by {}",
        format::grouped(routing.entries),
        format::grouped(routing.switches),
        format::grouped(routing.next_hops),
        routing.by
    );
    let repairs = variant.runs.iter().flat_map(|run| &run.repairs);
    let times = Spread::of(repairs.clone().map(|repair| repair.after_ns));
    match times {
        Some(times) => {
            let entries = Spread::of(repairs.map(|repair| repair.entries as f64));
            text.push_str(&format!(
                "; {} entries changed {} after a link did",
                entries.map_or("0".to_owned(), |found| format::grouped(found.median as u64)),
                format::nanoseconds(times.median)
            ));
        }
        None if variant.runs.iter().all(|run| run.aftermath.is_empty()) => {}
        None if variant.technology == "InfiniBand" => {
            text.push_str("; no sweep was over before the runs were (infiniband.repair)");
        }
        None => text.push_str("; dead ports are left out at once, as it is modelled"),
    }
    text
}

fn operations(variant: &VariantFigures) -> String {
    if variant.without.is_empty() {
        return match variant.groups_of_settings {
            0 => "no group of settings to take away".to_owned(),
            _ => "not measured in this comparison".to_owned(),
        };
    }
    let total: u32 = variant.without.iter().map(|found| found.settings).sum();
    let needed: Vec<_> = variant
        .without
        .iter()
        .filter(|found| found.needed)
        .collect();
    let of_needed: u32 = needed.iter().map(|found| found.settings).sum();
    let names: Vec<_> = needed.iter().map(|found| found.family).collect();
    let all = format!(
        "{} in {}",
        counted(total, "setting", "settings"),
        counted(variant.without.len() as u32, "group", "groups")
    );
    match names.is_empty() {
        true => format!("{all}; none was missed here"),
        false => format!(
            "{all}; missed when taken away: {of_needed} ({})",
            names.join(", ")
        ),
    }
}

fn congestion(variant: &VariantFigures) -> String {
    let credit = variant
        .spread(Measure::CreditShare)
        .filter(|spread| spread.median > 0.0);
    let parts = [
        count(variant, Measure::Marks, "mark", "marks"),
        count(
            variant,
            Measure::Notifications,
            "told to senders",
            "told to senders",
        ),
        count(variant, Measure::PauseFrames, "pause frame", "pause frames"),
        credit.map(|spread| {
            format!(
                "credit stalls up to {} of the time",
                format::percent(spread.median)
            )
        }),
        count(variant, Measure::Drops, "drop", "drops"),
        count(
            variant,
            Measure::Retransmissions,
            "sent again",
            "sent again",
        ),
        count(variant, Measure::Timeouts, "timeout", "timeouts"),
    ];
    let acted: Vec<String> = parts.into_iter().flatten().collect();
    match acted.is_empty() {
        true => "nothing had to act".to_owned(),
        false => acted.join(", "),
    }
}

/// What of this program is for the technology. Each has tests that run it.
fn ecosystem(variant: &VariantFigures) -> String {
    let devices = || {
        DeviceCounter::ALL
            .iter()
            .map(|counter| counter.definition())
    };
    let ports = || PortCounter::ALL.iter().map(|counter| counter.definition());
    let classes = || ClassCounter::ALL.iter().map(|counter| counter.definition());
    let stacks = || StackCounter::ALL.iter().map(|counter| counter.definition());
    let linux = |rows: &mut dyn Iterator<
        Item = &'static softfabric_telemetry::CounterDefinition,
    >| { rows.filter(|row| !row.linux.is_empty()).count() };
    let (counters, speaks) = match variant.technology {
        "TCP/IP" => (linux(&mut stacks().chain(ports())), "pcapng"),
        "InfiniBand" => (
            linux(&mut devices().chain(ports())),
            "libibverbs programs, OpenSM and ibsim's protocol, ibnetdiscover and .net files, pcapng",
        ),
        _ => (
            linux(&mut devices().chain(ports()).chain(classes())),
            "libibverbs and librdmacm programs, the kernel's soft-RoCE, HPCC, htsim and SONiC files, pcapng",
        ),
    };
    format!("in this program: {speaks}; {counters} counters with Linux's names")
}
