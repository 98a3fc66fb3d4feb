//! Spreads identifiers over the ports that are equally good: each switch for itself, the least used port first.
//!
//! Among equally used ones, a hash of switch and identifier decides. If the number of the port did, all levels of a tree
//! would count in step: a leaf would send every fourth identifier to a parent, which would send all of those to the same
//! root, and its other cables would carry nothing.
//!
//! An engine says which links a switch may use towards another switch; this fills the tables. Ports of different
//! identifiers of one end port (LMC) also avoid each other's next switch where they can.

use super::parallel;
use super::repair::Before;
use super::routes::{NO_PORT, Routes};
use super::view::{RoutingView, Target};
use super::{RoutingError, view::Link};

/// Which links a switch may use towards another, and what to do where there is none.
pub(super) trait Candidates: Sync {
    /// Adds to `links` the places, among the links of switch `from`, of those that are good towards switch `to`.
    fn candidates(&self, from: usize, to: usize, links: &mut Vec<u8>);

    /// Among `candidates` (never empty), the one that `target` should take by rule; `None`: the least used.
    fn preferred(&self, _from: usize, _target: &Target, _candidates: &[u8]) -> Option<u8> {
        None
    }

    /// Advice where there is none.
    fn hint(&self) -> &'static str;
}

/// Fills the tables of `routes`: with what was `before`, where that is still a candidate.
pub(super) fn fill(
    routes: &mut Routes,
    view: &RoutingView,
    rule: &impl Candidates,
    before: Option<Before<'_>>,
) -> Result<(), RoutingError> {
    if let Some(before) = before {
        return refill(routes, view, rule, before, |_, _| false);
    }
    let width = routes.width();
    parallel::rows(routes.tables(), width, |switch, table| {
        Switch::new(view, rule, switch).fill(table);
    });
    verify(routes, view, rule.hint())
}

/// Fills tables with what was `before`: what `trusts` says of a switch and a target holds as it was, the rest where it is
/// still a candidate. What does not hold is filled anew.
pub(super) fn refill(
    routes: &mut Routes,
    view: &RoutingView,
    rule: &impl Candidates,
    before: Before<'_>,
    trusts: impl Fn(usize, &Target) -> bool + Sync,
) -> Result<(), RoutingError> {
    let width = routes.width();
    parallel::rows(routes.tables(), width, |switch, table| {
        let mut here = Switch::new(view, rule, switch);
        if let Some(old) = before.table(view, switch) {
            here.keep(old, table, |target| trusts(switch, target));
        }
        here.fill(table);
    });
    verify(routes, view, rule.hint())
}

/// Refuses tables with holes.
pub(super) fn verify(
    routes: &Routes,
    view: &RoutingView,
    hint: &'static str,
) -> Result<(), RoutingError> {
    for switch in 0..view.switches() {
        let table = routes.table(switch);
        for target in view.targets() {
            if table[usize::from(target.lid.0)] == NO_PORT {
                return Err(unroutable(routes.engine, view, switch, target, hint));
            }
        }
    }
    Ok(())
}

pub(super) fn unroutable(
    engine: &'static str,
    view: &RoutingView,
    from: usize,
    target: &Target,
    hint: &'static str,
) -> RoutingError {
    RoutingError::Unroutable {
        engine,
        from: view.name(from).to_owned(),
        to: view.name(target.switch as usize).to_owned(),
        lid: target.lid,
        hint,
    }
}

/// One switch's choices.
struct Switch<'a, R> {
    rule: &'a R,
    view: &'a RoutingView,
    here: usize,
    links: &'a [Link],
    /// Identifiers of adapters that each link has.
    used: Vec<u32>,
    /// Candidates towards each switch, once they were asked for: a range of `places`.
    known: Vec<(u32, u32)>,
    places: Vec<u8>,
}

impl<'a, R: Candidates> Switch<'a, R> {
    fn new(view: &'a RoutingView, rule: &'a R, here: usize) -> Self {
        let links = view.out(here);
        Self {
            rule,
            view,
            here,
            links,
            used: vec![0; links.len()],
            known: vec![(u32::MAX, 0); view.switches()],
            places: Vec::new(),
        }
    }

    /// Takes over those entries of an `old` table that are trusted or still candidates.
    fn keep(&mut self, old: &[u8], table: &mut [u8], trusts: impl Fn(&Target) -> bool) {
        // The place of each port's link.
        let mut places = [u8::MAX; 256];
        for (place, link) in (0..).zip(self.links) {
            places[usize::from(link.port)] = place;
        }
        for target in self.view.targets() {
            let lid = usize::from(target.lid.0);
            if target.switch as usize == self.here {
                continue;
            }
            let place = old
                .get(lid)
                .map_or(u8::MAX, |port| places[usize::from(*port)]);
            if place == u8::MAX {
                continue;
            }
            let holds = trusts(target) || {
                let (start, end) = self.candidates(target.switch as usize);
                self.places[start as usize..end as usize].contains(&place)
            };
            if holds {
                table[lid] = old[lid];
                self.used[usize::from(place)] += u32::from(target.is_adapter());
            }
        }
    }

    fn fill(mut self, table: &mut [u8]) {
        let copies = self.view.targets().iter().any(|target| target.copy > 0);
        // Where the other identifiers of the same end port go.
        let mut previous: Vec<u32> = Vec::new();
        for target in self.view.targets() {
            if target.copy == 0 {
                previous.clear();
            }
            let entry = &mut table[usize::from(target.lid.0)];
            if target.switch as usize == self.here {
                *entry = target.port;
                continue;
            }
            if *entry != NO_PORT {
                if copies {
                    let kept = self.view.link_by_port(self.here, *entry);
                    previous.extend(kept.map(|link| self.view.links()[link].to));
                }
                continue;
            }
            let (start, end) = self.candidates(target.switch as usize);
            if start == end {
                continue;
            }
            let candidates = &self.places[start as usize..end as usize];
            let preferred = self.rule.preferred(self.here, target, candidates);
            let place = preferred.unwrap_or_else(|| self.least_used(candidates, target, &previous));
            let link = &self.links[usize::from(place)];
            *entry = link.port;
            previous.push(link.to);
            // What only switches themselves hear is no load.
            self.used[usize::from(place)] += u32::from(target.is_adapter());
        }
    }

    fn candidates(&mut self, to: usize) -> (u32, u32) {
        if self.known[to].0 == u32::MAX {
            let start = self.places.len() as u32;
            self.rule.candidates(self.here, to, &mut self.places);
            self.known[to] = (start, self.places.len() as u32);
        }
        self.known[to]
    }

    fn least_used(&self, candidates: &[u8], target: &Target, previous: &[u32]) -> u8 {
        let chance = mixed((self.here as u64) << 16 | u64::from(target.lid.0));
        let used = |candidate: u8| self.used[usize::from(candidate)];
        if previous.is_empty() {
            return one_of_the_least(candidates, used, chance);
        }
        let met = |candidate: u8| {
            let next = self.links[usize::from(candidate)].to;
            previous.iter().filter(|to| **to == next).count()
        };
        let cost = |candidate| (met(candidate), used(candidate));
        one_of_the_least(candidates, cost, chance)
    }
}

/// Of the candidates that cost least, the one that `chance` says.
fn one_of_the_least<C: Ord>(candidates: &[u8], cost: impl Fn(u8) -> C, chance: u64) -> u8 {
    let Some(least) = candidates.iter().map(|candidate| cost(*candidate)).min() else {
        return 0;
    };
    let tied = || {
        let all = candidates.iter().copied();
        all.filter(|candidate| cost(*candidate) == least)
    };
    let which = ((chance >> 32) * tied().count() as u64) >> 32;
    tied().nth(which as usize).unwrap_or(0)
}

/// The same bits everywhere, in no order (the finaliser of SplitMix64).
const fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
