//! Repairs of engines that go up, then down: only what lost cables can have changed is measured.
//!
//! A way that took a lost cable came to one of its ends before. So towards a destination to which all these ends have ways as
//! long as before, everybody has, and tables hold there but for the ends' own. Towards the rest, ways are measured from
//! everywhere; and from the ends and their neighbours, to everywhere.
//!
//! Where no way goes up and down, only management goes, and any way will do. So there an end takes a neighbour whose tables
//! lead to the destination by no switch that has lost a cable.

use softfabric_units::Lid;

use super::distance::FAR;
use super::parallel;
use super::ranks::{Ranks, UpDownDistances, Ways, choose, extend, go_up, measure_down};
use super::repair::Before;
use super::view::{RoutingView, Target};

/// How many switches may have lost cables for a repair that looks only at what is close by.
const CLOSE: usize = 16;
/// One of how many destinations may have moved.
const MOVED: usize = 3;

/// Lengths of ways up and down, of all or of those that a repair asks for.
pub(super) enum Measured<'a> {
    All(UpDownDistances),
    Close(CloseBy<'a>),
}

impl Measured<'_> {
    /// The places of the links of `from` that are on a shortest path to `to`.
    pub(super) fn candidates(
        &self,
        view: &RoutingView,
        ranks: &Ranks,
        from: usize,
        to: usize,
        links: &mut Vec<u8>,
    ) {
        match self {
            Self::All(distances) => distances.candidates(view, ranks, from, to, links),
            Self::Close(close) => close.candidates(view, ranks, from, to, links),
        }
    }

    /// Whether the table of a switch holds for a target as it was.
    pub(super) fn trusts(&self, switch: usize, target: &Target) -> bool {
        match self {
            Self::All(_) => false,
            Self::Close(close) => close.trusts(switch, target),
        }
    }
}

/// Ways from and to what lost cables can have changed.
pub(super) struct CloseBy<'a> {
    before: Before<'a>,
    is_loser: Vec<bool>,
    /// The identifiers at each switch.
    lids: Vec<Vec<Lid>>,
    /// Of destinations that have moved: from everywhere.
    rows: Vec<Option<Vec<Ways>>>,
    /// From switches that have lost cables, and their neighbours: to everywhere, where nothing has moved.
    columns: Columns,
}

impl<'a> CloseBy<'a> {
    /// `None` where that would be too much, or somebody with hosts has no way up and down to others: then all is measured.
    /// The ranks are those of both views.
    pub(super) fn new(view: &RoutingView, ranks: &Ranks, before: Before<'a>) -> Option<Self> {
        let losers = before.losers(view).filter(|losers| losers.len() <= CLOSE)?;
        let order = ranks.top_down();
        if !all_hosts_meet(view, ranks, &order) {
            return None;
        }
        let switches = view.switches();
        // No switch is gone, so they have the same numbers.
        let (mut old, mut columns) = (Columns::new(switches), Columns::new(switches));
        let mut has_moved = vec![false; switches];
        let mut is_loser = vec![false; switches];
        for loser in losers {
            is_loser[loser] = true;
            old.measure(before.view, ranks, loser);
            columns.measure(view, ranks, loser);
            for link in view.out(loser) {
                columns.measure(view, ranks, link.to as usize);
            }
            for (to, moved) in has_moved.iter_mut().enumerate() {
                *moved |= old.ways(loser, to) != columns.ways(loser, to);
            }
        }
        let moved: Vec<usize> = (0..switches).filter(|to| has_moved[*to]).collect();
        if moved.len() > switches / MOVED {
            return None;
        }
        let mut measured = vec![Ways::NONE; moved.len() * switches];
        parallel::rows(&mut measured, switches, |place, row| {
            measure_all(view, ranks, &order, moved[place], row);
        });
        let mut rows = vec![None; switches];
        for (to, row) in moved.iter().zip(measured.chunks(switches)) {
            rows[*to] = Some(row.to_vec());
        }
        let mut lids = vec![Vec::new(); switches];
        for target in view.targets() {
            lids[target.switch as usize].push(target.lid);
        }
        Some(Self {
            before,
            is_loser,
            lids,
            rows,
            columns,
        })
    }

    /// The places of the links of `from` that are good towards `to`: of switches that have lost cables, or where `to` has
    /// moved.
    fn candidates(
        &self,
        view: &RoutingView,
        ranks: &Ranks,
        from: usize,
        to: usize,
        links: &mut Vec<u8>,
    ) {
        let is_legal = self.ways(from, to).total != FAR;
        if is_legal || self.rows[to].is_some() {
            return choose(view, ranks, from, links, |switch| self.ways(switch, to));
        }
        // There are others' before them.
        let start = links.len();
        let mut shortest = usize::MAX;
        for (place, link) in (0..).zip(view.out(from)) {
            let length = self.length_by_tables(link.to as usize, to);
            let Some(length) = length.filter(|length| *length <= shortest) else {
                continue;
            };
            if length < shortest {
                links.truncate(start);
                shortest = length;
            }
            links.push(place);
        }
    }

    /// How many links the longest way has that tables lead from a switch to another; `None` where one passes a switch that has
    /// lost cables.
    fn length_by_tables(&self, from: usize, to: usize) -> Option<usize> {
        let Before { view, routes } = self.before;
        let mut longest = 0;
        for lid in &self.lids[to] {
            let walk = routes.walk(view, from, *lid);
            let passed = walk.links.iter().map(|link| view.links()[*link]);
            let mut passed = passed
                .flat_map(|link| [link.from, link.to])
                .chain([from as u32]);
            if passed.any(|switch| self.is_loser[switch as usize]) {
                return None;
            }
            longest = longest.max(walk.links.len());
        }
        Some(longest)
    }

    fn ways(&self, from: usize, to: usize) -> Ways {
        match &self.rows[to] {
            Some(row) => row[from],
            None => self.columns.ways(from, to),
        }
    }

    fn trusts(&self, switch: usize, target: &Target) -> bool {
        !self.is_loser[switch] && self.rows[target.switch as usize].is_none()
    }
}

fn measure_all(
    view: &RoutingView,
    ranks: &Ranks,
    order: &[usize],
    destination: usize,
    row: &mut [Ways],
) {
    let mut down = vec![FAR; row.len()];
    measure_down(view, ranks, destination, &mut down);
    let mut total = down.clone();
    go_up(view, ranks, order, &mut total);
    let mut beyond = vec![FAR; row.len()];
    extend(view, &total, &mut beyond);
    for (switch, ways) in row.iter_mut().enumerate() {
        *ways = Ways {
            down: down[switch],
            total: total[switch],
            beyond: beyond[switch],
        };
    }
}

/// Ways from some switches to everywhere, as far as they go up and down.
struct Columns(Vec<Option<Vec<Ways>>>);

impl Columns {
    fn new(switches: usize) -> Self {
        Self(vec![None; switches])
    }

    fn ways(&self, from: usize, to: usize) -> Ways {
        self.0[from]
            .as_ref()
            .map_or(Ways::NONE, |column| column[to])
    }

    /// Measures from a switch, and so from all that are above it.
    fn measure(&mut self, view: &RoutingView, ranks: &Ranks, from: usize) {
        let mut above = vec![from];
        let mut seen = vec![false; view.switches()];
        seen[from] = true;
        let mut next = 0;
        while let Some(here) = above.get(next).copied() {
            next += 1;
            for link in view.out(here) {
                let to = link.to as usize;
                if ranks.is_up(here, to) && !std::mem::replace(&mut seen[to], true) {
                    above.push(to);
                }
            }
        }
        above.sort_by_key(|switch| (ranks.0[*switch], *switch));
        for here in above {
            if self.0[here].is_none() {
                self.0[here] = Some(self.column(view, ranks, here));
            }
        }
    }

    /// Down from a switch; where that does not lead, by those above, which are measured.
    fn column(&self, view: &RoutingView, ranks: &Ranks, from: usize) -> Vec<Ways> {
        let mut column = vec![Ways::NONE; view.switches()];
        column[from].down = 0;
        let mut queue = vec![from];
        let mut next = 0;
        while let Some(here) = queue.get(next).copied() {
            next += 1;
            let distance = column[here].down.saturating_add(1);
            for link in view.out(here) {
                let below = link.to as usize;
                if !ranks.is_up(here, below) && column[below].down == FAR && distance < FAR {
                    column[below].down = distance;
                    queue.push(below);
                }
            }
        }
        let mut above: Vec<usize> = view.out(from).iter().map(|link| link.to as usize).collect();
        above.retain(|to| ranks.is_up(from, *to));
        for (to, ways) in column.iter_mut().enumerate() {
            let by_others = || {
                let totals = above.iter().map(|other| self.ways(*other, to).total);
                totals.min().map_or(FAR, |total| total.saturating_add(1))
            };
            ways.total = if ways.down == FAR {
                by_others()
            } else {
                ways.down
            };
        }
        column
    }
}

/// Whether every switch with hosts has a way up and down to all others with hosts.
fn all_hosts_meet(view: &RoutingView, ranks: &Ranks, order: &[usize]) -> bool {
    let words = view.switches().div_ceil(64);
    let mut reached = vec![vec![0_u64; words]; view.switches()];
    let add = |reached: &mut Vec<Vec<u64>>, here: usize, other: usize| {
        let others = std::mem::take(&mut reached[other]);
        for (word, more) in reached[here].iter_mut().zip(&others) {
            *word |= more;
        }
        reached[other] = others;
    };
    for here in order.iter().rev().copied() {
        reached[here][here / 64] |= 1 << (here % 64);
        for link in view.out(here) {
            if !ranks.is_up(here, link.to as usize) {
                add(&mut reached, here, link.to as usize);
            }
        }
    }
    for here in order.iter().copied() {
        for link in view.out(here) {
            if ranks.is_up(here, link.to as usize) {
                add(&mut reached, here, link.to as usize);
            }
        }
    }
    let with_hosts: Vec<usize> = (0..view.switches())
        .filter(|switch| view.hosts(*switch) > 0)
        .collect();
    with_hosts.iter().all(|from| {
        let reached = &reached[*from];
        with_hosts
            .iter()
            .all(|to| reached[to / 64] >> (to % 64) & 1 != 0)
    })
}

#[cfg(test)]
mod tests {
    use softfabric_units::Random;

    use super::*;
    use crate::generate::{fat_tree, random, torus};
    use crate::routing::{RoutingEngine, UpDown};
    use crate::subnet::{PortRef, Subnet};

    /// Cables between switches.
    fn trunks(subnet: &Subnet) -> Vec<PortRef> {
        let is_switch = |port: PortRef| subnet.node(port.node).is_switch();
        let cables = subnet.cables();
        cables
            .filter(|(left, right)| is_switch(*left) && is_switch(*right))
            .map(|(left, _)| left)
            .collect()
    }

    #[test]
    fn what_is_close_by_is_as_if_all_were_measured() {
        let mut numbers = Random::from_seed(3);
        let (mut close, mut trusted, mut beyond) = (0, 0, 0);
        for subnet in [
            fat_tree(8, 3).unwrap(),
            fat_tree(6, 2).unwrap(),
            torus(&[4, 5], 1).unwrap(),
            random(40, 4, 1, 3).unwrap(),
        ] {
            for _ in 0..60 {
                let mut whole = subnet.clone();
                whole.assign_lids(0).unwrap();
                // One cable is gone already.
                let mut cut = |subnet: &mut Subnet, count: u64| {
                    for _ in 0..count {
                        let all = trunks(subnet);
                        let lost = all[numbers.below(all.len() as u64) as usize];
                        subnet.disconnect(lost);
                    }
                };
                cut(&mut whole, 1);
                let view = RoutingView::new(&whole);
                let Ok(routes) = UpDown::default().route(&view) else {
                    continue;
                };
                cut(&mut whole, 1);
                let less = RoutingView::new(&whole);
                let before = Before {
                    view: &view,
                    routes: &routes,
                };
                let mut roots = Ranks::natural_roots(&view);
                if roots.is_empty() {
                    roots.push(0);
                }
                let ranks = Ranks::from_roots(&less, &roots);
                if ranks != Ranks::from_roots(&view, &roots) {
                    continue;
                }
                let Some(measured) = CloseBy::new(&less, &ranks, before) else {
                    continue;
                };
                close += 1;
                let all = UpDownDistances::new(&less, &ranks);
                let were = UpDownDistances::new(&view, &ranks);
                for target in less.targets() {
                    let to = target.switch as usize;
                    for from in (0..less.switches()).filter(|from| *from != to) {
                        let (mut found, mut wanted) = (Vec::new(), Vec::new());
                        all.candidates(&less, &ranks, from, to, &mut wanted);
                        if measured.trusts(from, target) {
                            trusted += 1;
                            were.candidates(&view, &ranks, from, to, &mut found);
                        } else {
                            measured.candidates(&less, &ranks, from, to, &mut found);
                        }
                        let is_legal = all.reaches(from, to);
                        if is_legal || measured.rows[to].is_some() {
                            assert_eq!(found, wanted, "{from} to {to}");
                        }
                        beyond += usize::from(!is_legal);
                    }
                }
            }
        }
        assert!(
            close > 60 && trusted > 100_000 && beyond > 10_000,
            "{close}, {trusted}, {beyond}"
        );
    }
}
