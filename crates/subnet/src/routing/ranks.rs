//! Who is above whom: ranks of switches, and the shortest paths that go up first and down then.
//!
//! ```text
//!        rank 0     roots            up: to a smaller rank; at equal ranks, to the smaller number
//!        rank 1    /     \
//!        rank 2   leaves …
//! ```
//!
//! A switch that can reach a destination by going down only must do so: packets may have come down to it, and may not turn
//! up again. Those that cannot go up to the neighbour from where it is nearest.
//!
//! In a tree there is no such way from one root to another, nor from a leaf to a parent whose cable it has lost. What goes
//! between hosts never comes to be there, so there any shortest way will do: it serves management only.

use softfabric_units::Guid;

use super::RoutingError;
use super::alternatives::Alternatives;
use super::balance;
use super::distance::FAR;
use super::parallel;
use super::view::RoutingView;

/// The rank of every switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ranks(pub(super) Vec<u32>);

impl Ranks {
    /// Distances from the nearest of `roots`.
    pub(super) fn from_roots(view: &RoutingView, roots: &[usize]) -> Self {
        let mut ranks = vec![u32::MAX; view.switches()];
        let mut queue: Vec<usize> = Vec::new();
        for root in roots {
            if ranks[*root] == u32::MAX {
                ranks[*root] = 0;
                queue.push(*root);
            }
        }
        let mut next = 0;
        while let Some(here) = queue.get(next).copied() {
            next += 1;
            for link in view.out(here) {
                let to = link.to as usize;
                if ranks[to] == u32::MAX {
                    ranks[to] = ranks[here] + 1;
                    queue.push(to);
                }
            }
        }
        Self(ranks)
    }

    /// The switches of `guids`.
    pub(super) fn roots_of(view: &RoutingView, guids: &[Guid]) -> Result<Vec<usize>, RoutingError> {
        guids
            .iter()
            .map(|guid| {
                view.by_guid(*guid)
                    .ok_or(RoutingError::UnknownRoot { guid: *guid })
            })
            .collect()
    }

    /// The switches that are farthest from hosts, where not all are equally far: the roots of a tree. Else none.
    pub(super) fn natural_roots(view: &RoutingView) -> Vec<usize> {
        let with_hosts: Vec<usize> = (0..view.switches())
            .filter(|switch| view.hosts(*switch) > 0)
            .collect();
        let levels = Self::from_roots(view, &with_hosts).0;
        let highest = levels.iter().filter(|level| **level != u32::MAX).max();
        match highest {
            None | Some(0) => Vec::new(),
            Some(highest) => (0..levels.len())
                .filter(|switch| levels[*switch] == *highest)
                .collect(),
        }
    }

    /// The switch from which the others are nearest in sum.
    pub(super) fn centre(view: &RoutingView) -> Option<usize> {
        (0..view.switches()).min_by_key(|switch| {
            let ranks = Self::from_roots(view, &[*switch]).0;
            ranks.iter().map(|rank| u64::from(*rank)).sum::<u64>()
        })
    }

    /// All switches: who is above comes before.
    pub(super) fn top_down(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.0.len()).collect();
        order.sort_by_key(|switch| (self.0[*switch], *switch));
        order
    }

    /// Whether a link from `from` to `to` leads up.
    pub(super) fn is_up(&self, from: usize, to: usize) -> bool {
        (self.0[to], to) < (self.0[from], from)
    }
}

/// Lengths of paths that go up, then down.
pub(super) struct UpDownDistances {
    switches: usize,
    /// For each destination a row: links down only, or [`FAR`]; then links up and down.
    down: Vec<u8>,
    total: Vec<u8>,
    /// Where there is no such way: links of a shortest one.
    beyond: Vec<u8>,
}

impl UpDownDistances {
    pub(super) fn new(view: &RoutingView, ranks: &Ranks) -> Self {
        let switches = view.switches();
        let order = ranks.top_down();
        let mut down = vec![FAR; switches * switches];
        parallel::rows(&mut down, switches, |destination, row| {
            measure_down(view, ranks, destination, row);
        });
        let mut total = down.clone();
        parallel::rows(&mut total, switches, |_, row| {
            go_up(view, ranks, &order, row);
        });
        let mut beyond = vec![FAR; switches * switches];
        parallel::rows(&mut beyond, switches, |destination, row| {
            let legal = &total[destination * switches..][..switches];
            extend(view, legal, row);
        });
        Self {
            switches,
            down,
            total,
            beyond,
        }
    }

    /// The places of the links of `from` that are on a shortest path to `to`.
    pub(super) fn candidates(
        &self,
        view: &RoutingView,
        ranks: &Ranks,
        from: usize,
        to: usize,
        links: &mut Vec<u8>,
    ) {
        let row = to * self.switches;
        choose(view, ranks, from, links, |switch| Ways {
            down: self.down[row + switch],
            total: self.total[row + switch],
            beyond: self.beyond[row + switch],
        });
    }

    /// The ports of all such links.
    pub(super) fn alternatives(&self, view: &RoutingView, ranks: &Ranks) -> Alternatives {
        let candidates =
            |from, to, links: &mut Vec<u8>| self.candidates(view, ranks, from, to, links);
        Alternatives::collect(view, candidates)
    }

    /// Whether a way goes up and down.
    #[cfg(test)]
    pub(super) fn reaches(&self, from: usize, to: usize) -> bool {
        self.total[to * self.switches + from] != FAR
    }

    /// Whether every switch with hosts reaches all others with hosts, up and down.
    pub(super) fn complete(&self, view: &RoutingView) -> bool {
        (0..self.switches).all(|to| self.gap(view, to).is_none())
    }

    /// A switch with hosts that has no way up and down to the hosts of `to`.
    fn gap(&self, view: &RoutingView, to: usize) -> Option<usize> {
        if view.hosts(to) == 0 {
            return None;
        }
        let row = &self.total[to * self.switches..][..self.switches];
        (0..self.switches).find(|from| row[*from] == FAR && view.hosts(*from) > 0)
    }

    /// Refuses a subnet where hosts would need another way.
    pub(super) fn refuse_gaps(
        &self,
        engine: &'static str,
        view: &RoutingView,
        hint: &'static str,
    ) -> Result<(), RoutingError> {
        for target in view.targets() {
            if let Some(from) = self.gap(view, target.switch as usize) {
                return Err(balance::unroutable(engine, view, from, target, hint));
            }
        }
        Ok(())
    }
}

/// Lengths of ways from one switch to one destination, [`FAR`] where there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ways {
    /// Links down only.
    pub(super) down: u8,
    /// Links up and down: those down only, where they lead there.
    pub(super) total: u8,
    /// Where there is no such way: links of a shortest one.
    pub(super) beyond: u8,
}

impl Ways {
    pub(super) const NONE: Self = Self {
        down: FAR,
        total: FAR,
        beyond: FAR,
    };
}

/// Adds the places of the links of `from` that are on a shortest path, by what is known of it and of its neighbours.
pub(super) fn choose(
    view: &RoutingView,
    ranks: &Ranks,
    from: usize,
    links: &mut Vec<u8>,
    ways: impl Fn(usize) -> Ways,
) {
    let here = ways(from);
    for (place, link) in (0..).zip(view.out(from)) {
        let next = link.to as usize;
        let there = ways(next);
        let good = if here.total == FAR {
            let nearest = there.total.min(there.beyond);
            here.beyond != FAR && nearest.checked_add(1) == Some(here.beyond)
        } else if here.down != FAR {
            !ranks.is_up(from, next) && there.down.checked_add(1) == Some(here.down)
        } else {
            ranks.is_up(from, next) && there.total.checked_add(1) == Some(here.total)
        };
        if good {
            links.push(place);
        }
    }
}

/// Fills a row that says [`FAR`] everywhere with the lengths of ways down to `destination`.
pub(super) fn measure_down(view: &RoutingView, ranks: &Ranks, destination: usize, row: &mut [u8]) {
    row[destination] = 0;
    let mut queue = vec![destination];
    let mut next = 0;
    while let Some(here) = queue.get(next).copied() {
        next += 1;
        let distance = row[here].saturating_add(1);
        for link in view.out(here) {
            let above = link.to as usize;
            if ranks.is_up(here, above) && row[above] == FAR && distance < FAR {
                row[above] = distance;
                queue.push(above);
            }
        }
    }
}

/// Where a row has no way down, ways that go up first; `order` is from the top.
pub(super) fn go_up(view: &RoutingView, ranks: &Ranks, order: &[usize], row: &mut [u8]) {
    for here in order.iter().copied() {
        if row[here] != FAR {
            continue;
        }
        for link in view.out(here) {
            if ranks.is_up(here, link.to as usize) {
                row[here] = row[here].min(row[link.to as usize].saturating_add(1));
            }
        }
    }
}

/// Goes on by breadth-first search from the switches that have a way, in the order of its length.
pub(super) fn extend(view: &RoutingView, legal: &[u8], beyond: &mut [u8]) {
    let lost = legal.iter().filter(|distance| **distance == FAR).count();
    if lost == 0 {
        return;
    }
    let mut by_distance: Vec<Vec<u32>> = vec![Vec::new(); usize::from(FAR) + 1];
    for (switch, distance) in (0..).zip(legal) {
        if *distance != FAR {
            by_distance[usize::from(*distance)].push(switch);
        }
    }
    for distance in 0..FAR {
        for here in std::mem::take(&mut by_distance[usize::from(distance)]) {
            for link in view.out(here as usize) {
                let to = link.to as usize;
                if legal[to] == FAR && beyond[to] == FAR && distance + 1 < FAR {
                    beyond[to] = distance + 1;
                    by_distance[usize::from(distance) + 1].push(link.to);
                }
            }
        }
    }
}
