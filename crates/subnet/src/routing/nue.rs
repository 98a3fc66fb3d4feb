//! Nue: routing inside the dependency graph, so that any number of lanes is enough (Domke, Hoefler, Matsuoka: HPDC 2016).
//!
//! Destinations are dealt out to lanes. Each lane has one acyclic graph of dependencies, which starts with those of a spanning
//! tree: the escape paths. Towards each destination, Dijkstra's algorithm settles switch after switch from the destination
//! outwards; a switch is settled through a link only if the dependency that this adds leaves the graph acyclic. Where switches
//! remain that cannot be settled, the whole destination takes the escape paths, which are always there.
//!
//! The graph's order is kept as it grows (Pearce and Kelly, 2006), so most additions are one comparison. A dependency that
//! would close a circle is blocked from then on, as the graph only grows: nothing is searched twice.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::balance;
use super::dependency::Numbering;
use super::ranks::Ranks;
use super::routes::{Levels, Routes};
use super::view::RoutingView;
use super::{RoutingEngine, RoutingError};

/// Routing inside the dependency graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nue {
    /// How many data lanes to use: 1 or more.
    pub lanes: u8,
}

impl Default for Nue {
    /// Four lanes.
    fn default() -> Self {
        Self { lanes: 4 }
    }
}

const NAME: &str = "nue";
const NO_LINK: u32 = u32::MAX;
/// What a link costs beside its load: shorter paths come first.
const HOP: u64 = 1 << 24;

impl RoutingEngine for Nue {
    fn name(&self) -> &'static str {
        NAME
    }

    fn route(&self, view: &RoutingView) -> Result<Routes, RoutingError> {
        let mut routes = Routes::empty(NAME, view);
        let lanes = self.lanes.clamp(1, 15);
        routes.lanes_used = lanes;
        let Some(root) = Ranks::centre(view) else {
            return Ok(routes);
        };
        let tree = EscapeTree::new(view, root);
        let numbering = Numbering::new(view);
        let mut levels = vec![0; routes.width()];
        let mut load = vec![0; view.links().len()];
        for lane in 0..lanes {
            let mut layer = Layer::new(view, &tree, &numbering);
            for target in view.targets() {
                if target.switch as usize % usize::from(lanes) != usize::from(lane) {
                    continue;
                }
                levels[usize::from(target.lid.0)] = lane;
                let next = layer.towards(target.switch as usize, &mut load);
                for (switch, link) in next.iter().enumerate() {
                    if *link != NO_LINK {
                        routes.set(switch, target.lid, view.links()[*link as usize].port);
                    }
                }
                routes.set(target.switch as usize, target.lid, target.port);
                if target.is_adapter() {
                    layer.count_load(target.switch as usize, &mut load);
                }
            }
        }
        balance::verify(&routes, view, "no cables lead there")?;
        if lanes > 1 {
            routes.levels = Levels::ByDestination(levels);
        }
        Ok(routes)
    }
}

/// A spanning tree: the link to the parent of each switch.
struct EscapeTree {
    up: Vec<u32>,
    depth: Vec<u32>,
}

impl EscapeTree {
    fn new(view: &RoutingView, root: usize) -> Self {
        let depth = Ranks::from_roots(view, &[root]).0;
        let up = (0..view.switches())
            .map(|switch| {
                let links = view.links_of(switch).zip(view.out(switch));
                let above = links
                    .filter(|(_, link)| {
                        depth[link.to as usize].checked_add(1) == Some(depth[switch])
                    })
                    .map(|(number, _)| number as u32);
                above.min().unwrap_or(NO_LINK)
            })
            .collect();
        Self { up, depth }
    }

    /// Links in an order that every dependency of the tree keeps: up from the bottom, then down from the top. What is not in
    /// the tree comes between.
    fn order(&self, view: &RoutingView) -> Vec<u32> {
        let key = |link: usize| {
            let ends = view.links()[link];
            let up = self.up[ends.from as usize] == link as u32;
            let down = self.up[ends.to as usize] == ends.reverse;
            match (up, down) {
                (true, _) => (0, Reverse(self.depth[ends.from as usize]), 0),
                (_, true) => (2, Reverse(0), self.depth[ends.to as usize]),
                _ => (1, Reverse(0), 0),
            }
        };
        let mut links: Vec<u32> = (0..view.links().len() as u32).collect();
        links.sort_by_key(|link| (key(*link as usize), *link));
        let mut place = vec![0; links.len()];
        for (number, link) in (0..).zip(links) {
            place[link as usize] = number;
        }
        place
    }
}

/// What became of a dependency.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Nobody has needed it.
    Free,
    /// It is in the graph.
    Used,
    /// It would close a circle.
    Blocked,
}

/// The dependencies of one lane.
struct Layer<'a> {
    view: &'a RoutingView,
    tree: &'a EscapeTree,
    numbering: &'a Numbering,
    used: Vec<Use>,
    /// The place of each link in an order in which dependencies lead forward only.
    place: Vec<u32>,
    /// What the current destination added or blocked.
    touched: Vec<usize>,
    next: Vec<u32>,
    seen: Vec<bool>,
    order: Vec<u32>,
}

impl<'a> Layer<'a> {
    fn new(view: &'a RoutingView, tree: &'a EscapeTree, numbering: &'a Numbering) -> Self {
        let mut layer = Self {
            view,
            tree,
            numbering,
            used: vec![Use::Free; numbering.count()],
            place: tree.order(view),
            touched: Vec::new(),
            next: vec![NO_LINK; view.switches()],
            seen: vec![false; view.links().len()],
            order: Vec::new(),
        };
        layer.add_escape_paths();
        layer
    }

    fn in_tree(&self, link: usize) -> bool {
        let ends = self.view.links()[link];
        let [from, to] = [ends.from, ends.to].map(|end| self.tree.up[end as usize]);
        from == link as u32 || to == ends.reverse
    }

    fn add_escape_paths(&mut self) {
        for from in 0..self.view.links().len() {
            if !self.in_tree(from) {
                continue;
            }
            let link = self.view.links()[from];
            for to in self.view.links_of(link.to as usize) {
                if to as u32 != link.reverse && self.in_tree(to) {
                    self.used[self.numbering.of(self.view, from, to)] = Use::Used;
                }
            }
        }
    }

    /// The next link of every switch towards `destination`.
    fn towards(&mut self, destination: usize, load: &mut [u64]) -> &[u32] {
        self.next.fill(NO_LINK);
        self.order.clear();
        self.touched.clear();
        let mut settled = vec![false; self.view.switches()];
        let mut heap = BinaryHeap::new();
        heap.push(Reverse((0, NO_LINK, destination as u32)));
        while let Some(Reverse((cost, link, switch))) = heap.pop() {
            let here = switch as usize;
            if settled[here] {
                continue;
            }
            if link != NO_LINK {
                let onward = self.next[self.view.links()[link as usize].to as usize];
                if onward != NO_LINK && !self.depend(link as usize, onward as usize) {
                    continue;
                }
            }
            settled[here] = true;
            self.next[here] = link;
            self.order.push(switch);
            for away in self.view.out(here) {
                let before = away.to as usize;
                if !settled[before] {
                    let towards = away.reverse;
                    let cost = cost + HOP + load[towards as usize];
                    heap.push(Reverse((cost, towards, away.to)));
                }
            }
        }
        let reachable = |switch: usize| self.tree.depth[switch] != u32::MAX;
        if (0..settled.len()).any(|switch| !settled[switch] && reachable(switch)) {
            self.escape(destination);
        }
        &self.next
    }

    /// Takes back what was added, and goes along the tree.
    fn escape(&mut self, destination: usize) {
        for dependency in self.touched.drain(..) {
            self.used[dependency] = Use::Free;
        }
        self.next.fill(NO_LINK);
        self.order.clear();
        self.order.push(destination as u32);
        let mut done = 0;
        while let Some(here) = self.order.get(done).copied() {
            done += 1;
            for link in self.view.links_of(here as usize) {
                let ends = self.view.links()[link];
                let before = ends.to as usize;
                if before != destination && self.next[before] == NO_LINK && self.in_tree(link) {
                    self.next[before] = ends.reverse;
                    self.order.push(ends.to);
                }
            }
        }
    }

    /// Counts the paths of all hosts on the links that they take.
    fn count_load(&self, destination: usize, load: &mut [u64]) {
        let mut paths: Vec<u64> = vec![0; self.view.switches()];
        // Settled from the destination outwards: the outermost come last.
        for switch in self.order.iter().rev() {
            let here = *switch as usize;
            if here == destination {
                continue;
            }
            paths[here] += u64::from(self.view.hosts(here));
            let link = self.next[here] as usize;
            load[link] += paths[here];
            paths[self.view.links()[link].to as usize] += paths[here];
        }
    }

    /// Adds "`from` depends on `to`", unless that would close a circle.
    fn depend(&mut self, from: usize, to: usize) -> bool {
        let dependency = self.numbering.of(self.view, from, to);
        match self.used[dependency] {
            Use::Used => return true,
            Use::Blocked => return false,
            Use::Free => {}
        }
        let back = self.view.links()[from].reverse == to as u32;
        let fits = !back && (self.place[from] < self.place[to] || self.reorder(from, to));
        self.used[dependency] = if fits { Use::Used } else { Use::Blocked };
        self.touched.push(dependency);
        fits
    }

    /// Moves `to` and what depends on it behind `from` and what it depends on; `false` if that cannot be.
    fn reorder(&mut self, from: usize, to: usize) -> bool {
        let (low, high) = (self.place[to], self.place[from]);
        let mut after = vec![to];
        self.seen[to] = true;
        let mut done = 0;
        let mut circle = false;
        'search: while let Some(link) = after.get(done).copied() {
            done += 1;
            for next in self.view.links_of(self.view.links()[link].to as usize) {
                if !self.seen[next]
                    && self.place[next] <= high
                    && self.used[self.numbering.of(self.view, link, next)] == Use::Used
                {
                    if next == from {
                        circle = true;
                        break 'search;
                    }
                    self.seen[next] = true;
                    after.push(next);
                }
            }
        }
        let mut before = Vec::new();
        if !circle {
            before.push(from);
            self.seen[from] = true;
            let mut done = 0;
            while let Some(link) = before.get(done).copied() {
                done += 1;
                for outward in self.view.out(self.view.links()[link].from as usize) {
                    let previous = outward.reverse as usize;
                    if !self.seen[previous]
                        && self.place[previous] >= low
                        && self.used[self.numbering.of(self.view, previous, link)] == Use::Used
                    {
                        self.seen[previous] = true;
                        before.push(previous);
                    }
                }
            }
        }
        for link in after.iter().chain(&before) {
            self.seen[*link] = false;
        }
        if circle {
            return false;
        }
        before.sort_unstable_by_key(|link| self.place[*link]);
        after.sort_unstable_by_key(|link| self.place[*link]);
        let moved: Vec<usize> = before.into_iter().chain(after).collect();
        let mut places: Vec<u32> = moved.iter().map(|link| self.place[*link]).collect();
        places.sort_unstable();
        for (link, place) in moved.into_iter().zip(places) {
            self.place[link] = place;
        }
        true
    }
}
