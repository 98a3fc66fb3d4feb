//! `[[trigger]]`, `[[event]]` and `[record]`: what happens on the way, and what is kept.

use softfabric_units::{Class, Span};

use super::{one, report, select};
use crate::plan::{Action, Endpoint, LinkId, PortSelection, Recording, TimedAction, Trigger};
use crate::scenario::error::Problems;
use crate::scenario::names::{Names, Wanted};
use crate::scenario::{Event, Interval, Scenario};

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

pub(super) fn actions(
    scenario: &Scenario,
    names: &Names<'_>,
    problems: &mut Problems<'_>,
) -> Vec<TimedAction> {
    let mut actions = Vec::new();
    for (place, event) in scenario.event.iter().enumerate() {
        let field = format!("event[{place}]");
        one_event(event, &field, names, problems, &mut actions);
    }
    actions
}

fn one_event(
    event: &Event,
    field: &str,
    names: &Names<'_>,
    problems: &mut Problems<'_>,
    actions: &mut Vec<TimedAction>,
) {
    let class = |class: &Option<u8>| class.and_then(Class::checked).unwrap_or(Class::new(3));
    match event {
        Event::LinkDown { at, between } => {
            let link = link(between, field, names, problems);
            actions.extend(link.map(|link| TimedAction {
                at: *at,
                action: Action::LinkDown(link),
            }));
        }
        Event::LinkUp { at, between } => {
            let link = link(between, field, names, problems);
            actions.extend(link.map(|link| TimedAction {
                at: *at,
                action: Action::LinkUp(link),
            }));
        }
        Event::BitErrors {
            at,
            between,
            bit_error_rate,
        } => {
            let link = link(between, field, names, problems);
            actions.extend(link.map(|link| TimedAction {
                at: *at,
                action: Action::BitErrorRate(link, *bit_error_rate),
            }));
        }
        Event::Drain { at, hosts, rate } => {
            if rate.value().is_some_and(softfabric_units::Rate::is_zero) {
                let allowed = "a rate above zero, or `unlimited`";
                problems.add(format!("{field}.rate"), "zero", allowed, None);
            }
            let hosts = select(
                names,
                hosts,
                Wanted::Host,
                &format!("{field}.hosts"),
                problems,
            );
            actions.extend(hosts.into_iter().map(|host| TimedAction {
                at: *at,
                action: Action::DrainRate(host, rate.value()),
            }));
        }
        Event::Storm {
            at,
            host,
            class: paused,
            until,
        } => {
            let field_host = format!("{field}.host");
            let Some(host) = one(names, host, Wanted::Host, &field_host, problems) else {
                return;
            };
            actions.push(TimedAction {
                at: *at,
                action: Action::StormBegins(host, class(paused)),
            });
            if let Some(until) = until {
                if until <= at {
                    let found = format!("{until}, where it begins at {at}");
                    problems.add(format!("{field}.until"), found, "later than `at`", None);
                }
                actions.push(TimedAction {
                    at: *until,
                    action: Action::StormEnds(host, class(paused)),
                });
            }
        }
        Event::PfcOff { at, class: off } => actions.push(TimedAction {
            at: *at,
            action: Action::PfcOff(class(off)),
        }),
        Event::StopSources { at, hosts } => {
            let all = ["*".to_owned()];
            let hosts = hosts.as_deref().unwrap_or(&all);
            let hosts = select(
                names,
                hosts,
                Wanted::Host,
                &format!("{field}.hosts"),
                problems,
            );
            actions.extend(hosts.into_iter().map(|host| TimedAction {
                at: *at,
                action: Action::SourceStops(host),
            }));
        }
    }
}

fn link(
    between: &(String, String),
    field: &str,
    names: &Names<'_>,
    problems: &mut Problems<'_>,
) -> Option<LinkId> {
    let field = format!("{field}.between");
    let a = one(
        names,
        &between.0,
        Wanted::Any,
        &format!("{field}[0]"),
        problems,
    );
    let b = one(
        names,
        &between.1,
        Wanted::Any,
        &format!("{field}[1]"),
        problems,
    );
    let link = names.link(a?, b?);
    if link.is_none() {
        let found = format!(
            "`{}` and `{}`, which no link connects",
            between.0, between.1
        );
        problems.add(field, found, "the two ends of a link", None);
    }
    link
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
