//! Shortest paths, balanced at each switch. Fast, and not free of deadlock where the graph has cycles.

use super::alternatives::Alternatives;
use super::balance::{self, Candidates};
use super::distance::{self, Distances, FAR};
use super::repair::Before;
use super::routes::Routes;
use super::view::{RoutingView, Target};
use super::{RoutingEngine, RoutingError};

const NO_CABLES: &str = "no cables lead there";

/// Shortest paths.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MinHop;

impl RoutingEngine for MinHop {
    fn name(&self) -> &'static str {
        "minhop"
    }

    fn route(&self, view: &RoutingView) -> Result<Routes, RoutingError> {
        routed(view, None)
    }

    fn repair(&self, view: &RoutingView, before: Before<'_>) -> Result<Routes, RoutingError> {
        match close_by(view, before) {
            Some(repaired) => repaired,
            None => routed(view, Some(before)),
        }
    }

    fn alternatives(&self, view: &RoutingView) -> Result<Alternatives, RoutingError> {
        let rule = Shortest {
            view,
            distances: Distances::new(view),
        };
        let candidates = |from, to, links: &mut Vec<u8>| rule.candidates(from, to, links);
        Ok(Alternatives::collect(view, candidates))
    }
}

/// How many switches may have lost cables for a repair that looks only at what is close by.
const CLOSE: usize = 16;

/// Repairs what lost cables can have changed, without measuring everything. `None` where that would be too much.
///
/// A path that used a lost cable came to one of its ends before. So what is as far from all these ends as it was, is so from
/// everywhere, and all others' tables hold for it. Towards the rest, distances are measured.
fn close_by(view: &RoutingView, before: Before<'_>) -> Option<Result<Routes, RoutingError>> {
    let losers = before.losers(view).filter(|losers| losers.len() <= CLOSE)?;
    let mut rule = Near {
        view,
        rows: vec![Vec::new(); view.switches()],
    };
    let mut has_moved = vec![false; view.switches()];
    for loser in &losers {
        rule.measure(*loser);
        for link in view.out(*loser) {
            rule.measure(link.to as usize);
        }
        // No switch is gone, so they have the same numbers.
        let old = measured(before.view, *loser);
        for (moved, (now, then)) in has_moved.iter_mut().zip(rule.rows[*loser].iter().zip(&old)) {
            *moved |= now != then;
        }
    }
    let moved: Vec<usize> = (0..view.switches())
        .filter(|switch| has_moved[*switch])
        .collect();
    if moved.len() > view.switches() / 4 {
        return None;
    }
    for switch in moved {
        rule.measure(switch);
    }
    let mut is_loser = vec![false; view.switches()];
    for loser in losers {
        is_loser[loser] = true;
    }
    let mut routes = Routes::empty(MinHop.name(), view);
    let trusts =
        |switch: usize, target: &Target| !is_loser[switch] && !has_moved[target.switch as usize];
    let refilled = balance::refill(&mut routes, view, &rule, before, trusts);
    Some(refilled.map(|()| routes))
}

fn measured(view: &RoutingView, switch: usize) -> Vec<u8> {
    let mut row = vec![FAR; view.switches()];
    distance::measure(view, switch, &mut row);
    row
}

/// Shortest paths from a few switches and to a few, whose distances are measured.
struct Near<'a> {
    view: &'a RoutingView,
    /// Of the switches that were measured, distances from and to all others.
    rows: Vec<Vec<u8>>,
}

impl Near<'_> {
    fn measure(&mut self, switch: usize) {
        if self.rows[switch].is_empty() {
            self.rows[switch] = measured(self.view, switch);
        }
    }

    /// Between two switches, of which one was measured.
    fn between(&self, left: usize, right: usize) -> u8 {
        let from = self.rows[left].get(right).or(self.rows[right].get(left));
        from.copied().unwrap_or(FAR)
    }
}

impl Candidates for Near<'_> {
    fn candidates(&self, from: usize, to: usize, links: &mut Vec<u8>) {
        let here = self.between(from, to);
        if here == FAR {
            return;
        }
        for (place, link) in (0..).zip(self.view.out(from)) {
            if self.between(link.to as usize, to).saturating_add(1) == here {
                links.push(place);
            }
        }
    }

    fn hint(&self) -> &'static str {
        NO_CABLES
    }
}

fn routed(view: &RoutingView, before: Option<Before<'_>>) -> Result<Routes, RoutingError> {
    let mut routes = Routes::empty(MinHop.name(), view);
    let rule = Shortest {
        view,
        distances: Distances::new(view),
    };
    balance::fill(&mut routes, view, &rule, before)?;
    Ok(routes)
}

struct Shortest<'a> {
    view: &'a RoutingView,
    distances: Distances,
}

impl Candidates for Shortest<'_> {
    fn candidates(&self, from: usize, to: usize, links: &mut Vec<u8>) {
        let row = self.distances.to(to);
        let here = row[from];
        if here == FAR {
            return;
        }
        for (place, link) in (0..).zip(self.view.out(from)) {
            if row[link.to as usize] + 1 == here {
                links.push(place);
            }
        }
    }

    fn hint(&self) -> &'static str {
        NO_CABLES
    }
}
