//! `[[trigger]]` and `[record]`: what starts flows, and what is kept.

use softfabric_units::Span;

use super::report;
use crate::plan::{Endpoint, PortSelection, Recording, Trigger};
use crate::scenario::error::Problems;
use crate::scenario::names::Names;
use crate::scenario::{Interval, Scenario};

/// How often queues, pauses and rates are sampled.
const INTERVAL: Span = Span::micros(10);

/// The rate over time of so many flows.
const FLOW_RATES: u32 = 64;

pub(super) fn triggers(scenario: &Scenario) -> Vec<Trigger> {
    (scenario.trigger.iter())
        .map(|trigger| Trigger {
            count: trigger.count.unwrap_or(1),
            repeat: trigger.repeat.unwrap_or(false),
        })
        .collect()
}

pub(super) fn recording(
    scenario: &Scenario,
    names: &Names<'_>,
    problems: &mut Problems<'_>,
) -> Recording {
    let record = &scenario.record;
    let interval = record.interval.unwrap_or(Interval::Value(INTERVAL)).value();
    if interval.is_some_and(Span::is_zero) {
        let allowed = "a time above zero, or `off`";
        problems.add("record.interval", "zero", allowed, None);
    }
    let captures = record.captures.as_deref().unwrap_or(&[]);
    Recording {
        interval,
        counters: None,
        ports: match &record.ports {
            None => PortSelection::Busiest,
            Some(ports) => PortSelection::These(endpoints(ports, "record.ports", names, problems)),
        },
        flow_rates: record.flow_rates.unwrap_or(FLOW_RATES),
        captures: endpoints(captures, "record.captures", names, problems),
        pause_log: record.pause_log.unwrap_or(false),
        check_wire: record.check_wire.unwrap_or(false),
    }
}

fn endpoints(
    ports: &[String],
    field: &str,
    names: &Names<'_>,
    problems: &mut Problems<'_>,
) -> Vec<Endpoint> {
    let mut endpoints = Vec::new();
    for (place, port) in ports.iter().enumerate() {
        match names.port(port) {
            Ok(endpoint) => endpoints.push(endpoint),
            Err(unknown) => report(&format!("{field}[{place}]"), unknown, problems),
        }
    }
    endpoints
}
