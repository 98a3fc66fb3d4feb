//! `[[event]]`: what happens on the way, by the names of the topology, made into what happens to links and hosts.

use std::collections::BTreeSet;

use softfabric_units::{Class, Rate, Span, Time};

use super::network::Shape;
use super::{one, report, select};
use crate::plan::{Action, Endpoint, LinkId, NodeId, NodeKind, PortId, TimedAction};
use crate::scenario::error::Problems;
use crate::scenario::names::{Names, Wanted};
use crate::scenario::{Event, Scenario};

/// How often a link may go down in one event.
const MOST_FLAPS: u64 = 100_000;

pub(super) fn actions(
    scenario: &Scenario,
    shape: &Shape,
    names: &Names<'_>,
    problems: &mut Problems<'_>,
) -> Vec<TimedAction> {
    let mut maker = Maker {
        shape,
        names,
        problems,
        actions: Vec::new(),
        outages: Vec::new(),
        field: String::new(),
    };
    for (place, event) in scenario.event.iter().enumerate() {
        maker.field = format!("event[{place}]");
        maker.event(event);
    }
    let Maker {
        mut actions,
        outages,
        ..
    } = maker;
    actions.extend(merged(outages));
    actions
}

/// A link that is down from a time on, and until when, if it comes back.
type Outage = (LinkId, Time, Option<Time>);

struct Maker<'m, 's> {
    shape: &'m Shape,
    names: &'m Names<'m>,
    problems: &'m mut Problems<'s>,
    actions: Vec<TimedAction>,
    /// What takes links down; several things may take the same one down at once.
    outages: Vec<Outage>,
    field: String,
}

impl Maker<'_, '_> {
    fn event(&mut self, event: &Event) {
        let class = |class: &Option<u8>| class.and_then(Class::checked).unwrap_or(Class::new(3));
        match event {
            Event::LinkDown { at, between, until } => {
                let link = self.link(between);
                match until {
                    None => self.all(*at, link.map(Action::LinkDown)),
                    Some(_) => self.down(link, *at, *until),
                }
            }
            Event::LinkUp { at, between } => {
                let link = self.link(between);
                self.all(*at, link.map(Action::LinkUp));
            }
            Event::LinkFlaps {
                at,
                between,
                period,
                down,
                until,
            } => self.flaps(between, (*at, *until), *period, down.unwrap_or(0.5)),
            Event::PortDown { at, port, until } => match self.names.port(port) {
                Ok(end) => {
                    let links = self.links_of(|other| other == end);
                    self.down(links, *at, *until);
                }
                Err(unknown) => report(&format!("{}.port", self.field), unknown, self.problems),
            },
            Event::SwitchDown {
                at,
                switches,
                until,
            } => {
                let field = format!("{}.switches", self.field);
                let nodes = select(self.names, switches, Wanted::Switch, &field, self.problems);
                self.nodes_down(&nodes.into_iter().collect(), *at, *until);
            }
            Event::RailDown {
                at,
                rail,
                plane,
                until,
            } => {
                let planes = u32::from(self.shape.planes);
                let rails = self.shape.rails;
                if self.exists("rail", *rail, rails) {
                    let all = match plane {
                        Some(plane) if !self.exists("plane", *plane, planes) => return,
                        Some(plane) => *plane..*plane + 1,
                        None => 0..planes,
                    };
                    let ports: BTreeSet<u32> = all.map(|plane| rail * planes + plane).collect();
                    let leaves = self.leaves(|port| ports.contains(&port));
                    self.nodes_down(&leaves, *at, *until);
                }
            }
            Event::PlaneDown { at, plane, until } => {
                let planes = u32::from(self.shape.planes);
                let known = if self.shape.rails > 0 { planes } else { 0 };
                if self.exists("plane", *plane, known) {
                    let leaves = self.leaves(|port| port % planes == *plane);
                    // The spines have no other links than to these leaves.
                    self.nodes_down(&leaves, *at, *until);
                }
            }
            Event::BitErrors {
                at,
                between,
                bit_error_rate,
                until,
            } => {
                let link = self.link(between);
                self.all(
                    *at,
                    link.map(|link| Action::BitErrorRate(link, *bit_error_rate)),
                );
                if let (Some(link), Some(until)) = (link, self.later(*at, *until)) {
                    let usual = self.shape.network.links[link.0 as usize].bit_error_rate;
                    self.all(until, [Action::BitErrorRate(link, usual)]);
                }
            }
            Event::SlowHosts {
                at,
                hosts,
                slowness,
                until,
            } => {
                let hosts = self.hosts(hosts);
                let slow = |slowness| {
                    hosts
                        .iter()
                        .map(move |host| Action::Slowness(*host, slowness))
                };
                self.all(*at, slow(*slowness));
                if let Some(until) = self.later(*at, *until) {
                    self.all(until, slow(1.0));
                }
            }
            Event::Drain { at, hosts, rate } => {
                if rate.value().is_some_and(Rate::is_zero) {
                    let allowed = "a rate above zero, or `unlimited`";
                    let field = format!("{}.rate", self.field);
                    self.problems.add(field, "zero", allowed, None);
                }
                let hosts = self.hosts(hosts);
                let drains = hosts
                    .iter()
                    .map(|host| Action::DrainRate(*host, rate.value()));
                self.all(*at, drains);
            }
            Event::Storm {
                at,
                host,
                class: paused,
                until,
            } => {
                let field = format!("{}.host", self.field);
                let Some(host) = one(self.names, host, Wanted::Host, &field, self.problems) else {
                    return;
                };
                self.all(*at, [Action::StormBegins(host, class(paused))]);
                if let Some(until) = self.later(*at, *until) {
                    self.all(until, [Action::StormEnds(host, class(paused))]);
                }
            }
            Event::PfcOff { at, class: off } => self.all(*at, [Action::PfcOff(class(off))]),
            Event::StopSources { at, hosts } => {
                let all = ["*".to_owned()];
                let hosts = self.hosts(hosts.as_deref().unwrap_or(&all));
                self.all(*at, hosts.into_iter().map(Action::SourceStops));
            }
        }
    }

    fn all(&mut self, at: Time, actions: impl IntoIterator<Item = Action>) {
        let timed = |action| TimedAction { at, action };
        self.actions.extend(actions.into_iter().map(timed));
    }

    /// Takes links down; `until` has to be later.
    fn down(&mut self, links: impl IntoIterator<Item = LinkId>, at: Time, until: Option<Time>) {
        if until.is_some() && self.later(at, until).is_none() {
            return;
        }
        let outage = |link| (link, at, until);
        self.outages.extend(links.into_iter().map(outage));
    }

    /// All links of some nodes go down.
    fn nodes_down(&mut self, nodes: &BTreeSet<NodeId>, at: Time, until: Option<Time>) {
        let links = self.links_of(|end| nodes.contains(&end.node));
        self.down(links, at, until);
    }

    fn flaps(
        &mut self,
        between: &(String, String),
        (at, until): (Time, Time),
        period: Span,
        share: f64,
    ) {
        let Some(link) = self.link(between) else {
            return;
        };
        if self.later(at, Some(until)).is_none() {
            return;
        }
        let each = Span::picos((period.as_picos() as f64 * share) as u64);
        let count = until
            .since(at)
            .as_picos()
            .div_ceil(period.as_picos().max(1));
        if period.is_zero() || count > MOST_FLAPS {
            let found = format!("{period}, {count} times until {until}");
            let allowed = format!("a time so that the link goes down {MOST_FLAPS} times at most");
            let field = format!("{}.period", self.field);
            return self.problems.add(field, found, allowed, None);
        }
        if each.is_zero() {
            let field = format!("{}.down", self.field);
            return self
                .problems
                .add(field, "no time at all", "a share above zero", None);
        }
        for number in 0..count {
            let begin = at + period * number;
            let end = (begin + each).min(until);
            self.down([link], begin, Some(end));
        }
    }

    /// `until`, if it is given and later than `at`.
    fn later(&mut self, at: Time, until: Option<Time>) -> Option<Time> {
        let until = until?;
        if until <= at {
            let found = format!("{until}, where it begins at {at}");
            let field = format!("{}.until", self.field);
            self.problems.add(field, found, "later than `at`", None);
            return None;
        }
        Some(until)
    }

    /// Whether a rail or plane is there.
    fn exists(&mut self, what: &str, number: u32, count: u32) -> bool {
        if number < count {
            return true;
        }
        let allowed = match count {
            0 => format!("a topology that has {what}s: `rail_optimised`"),
            _ => format!("0 to {}", count - 1),
        };
        let field = format!("{}.{what}", self.field);
        self.problems.add(field, number.to_string(), allowed, None);
        false
    }

    /// The switches at the other ends of those ports of hosts.
    fn leaves(&self, wanted: impl Fn(u32) -> bool) -> BTreeSet<NodeId> {
        let network = &self.shape.network;
        let is_host =
            |node: NodeId| matches!(network.nodes[node.index()].kind, NodeKind::Host { .. });
        let port = |PortId(port): PortId| u32::from(port);
        (network.links.iter())
            .flat_map(|link| [(link.a, link.b), (link.b, link.a)])
            .filter(|(near, _)| is_host(near.node) && wanted(port(near.port)))
            .map(|(_, far)| far.node)
            .collect()
    }

    fn links_of(&self, wanted: impl Fn(Endpoint) -> bool) -> Vec<LinkId> {
        (0..)
            .zip(&self.shape.network.links)
            .filter(|(_, link)| wanted(link.a) || wanted(link.b))
            .map(|(number, _)| LinkId(number))
            .collect()
    }

    fn hosts(&mut self, patterns: &[String]) -> Vec<NodeId> {
        let field = format!("{}.hosts", self.field);
        select(self.names, patterns, Wanted::Host, &field, self.problems)
    }

    fn link(&mut self, between: &(String, String)) -> Option<LinkId> {
        let field = format!("{}.between", self.field);
        let mut end = |place: usize, name: &str| {
            let field = format!("{field}[{place}]");
            one(self.names, name, Wanted::Any, &field, self.problems)
        };
        let (a, b) = (end(0, &between.0), end(1, &between.1));
        let link = self.names.link(a?, b?);
        if link.is_none() {
            let found = format!(
                "`{}` and `{}`, which no link connects",
                between.0, between.1
            );
            self.problems
                .add(field, found, "the two ends of a link", None);
        }
        link
    }
}

/// When links go down and come back: a link that several things have taken down comes back when all of them are over.
fn merged(mut outages: Vec<Outage>) -> Vec<TimedAction> {
    outages.sort_by_key(|(link, from, _)| (*link, *from));
    let mut actions = Vec::new();
    let mut close = |link: LinkId, from: Time, until: Option<Time>| {
        actions.push(TimedAction {
            at: from,
            action: Action::LinkDown(link),
        });
        actions.extend(until.map(|at| TimedAction {
            at,
            action: Action::LinkUp(link),
        }));
    };
    let mut open: Option<Outage> = None;
    for (link, from, until) in outages {
        match &mut open {
            Some((of, _, end)) if *of == link && end.is_none_or(|end| from <= end) => {
                *end = end.zip(until).map(|(one, other)| one.max(other));
            }
            _ => {
                if let Some((link, from, until)) = open.replace((link, from, until)) {
                    close(link, from, until);
                }
            }
        }
    }
    if let Some((link, from, until)) = open {
        close(link, from, until);
    }
    actions.sort_by_key(|timed| timed.at);
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_back_when_all_outages_are_over() {
        let at = Time::from_nanos;
        let (first, second) = (LinkId(0), LinkId(1));
        let found = merged(vec![
            (first, at(10), Some(at(30))),
            (second, at(5), None),
            (first, at(20), Some(at(50))),
            (first, at(60), Some(at(70))),
            (second, at(8), Some(at(9))),
        ]);
        let expected = [
            (5, Action::LinkDown(second)),
            (10, Action::LinkDown(first)),
            (50, Action::LinkUp(first)),
            (60, Action::LinkDown(first)),
            (70, Action::LinkUp(first)),
        ];
        let expected: Vec<TimedAction> = expected
            .into_iter()
            .map(|(time, action)| TimedAction {
                at: at(time),
                action,
            })
            .collect();
        assert_eq!(found, expected);
    }
}
