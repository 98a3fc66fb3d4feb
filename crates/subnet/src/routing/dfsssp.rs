//! Deadlock-free single-source shortest paths (Domke, Hoefler, Nagel: IPDPS 2011).
//!
//! 1. Shortest paths, one destination after another: of equally short ones those whose links carry the fewest paths so far.
//! 2. All paths start in lane 0. While the lane's dependencies make a circle, the dependency in it that the fewest paths
//!    need is cut: these paths move to the next lane. Then the next lane, until there is none with circles.

use super::balance;
use super::dependency::{CircleSearch, Counted, Numbering};
use super::distance::{Distances, FAR};
use super::routes::{Levels, NO_PORT, Routes};
use super::view::RoutingView;
use super::{RoutingEngine, RoutingError};

/// Shortest paths over as many lanes as it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dfsssp {
    /// How many data lanes there are.
    pub lanes: u8,
}

impl Default for Dfsssp {
    /// Eight lanes, as most switches have.
    fn default() -> Self {
        Self { lanes: 8 }
    }
}

const NAME: &str = "dfsssp";
const NO_LINK: u32 = u32::MAX;
/// The data lanes of InfiniBand.
const MOST_LANES: u8 = 15;

impl RoutingEngine for Dfsssp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn route(&self, view: &RoutingView) -> Result<Routes, RoutingError> {
        let mut routes = Routes::empty(NAME, view);
        ShortestPaths::new(view).fill(&mut routes);
        balance::verify(&routes, view, "no cables lead there")?;
        let mut lanes = Lanes::new(view, &routes);
        let needed = lanes.assign();
        if needed > usize::from(self.lanes.min(MOST_LANES)) {
            return Err(RoutingError::Lanes {
                engine: NAME,
                needed,
                available: self.lanes,
            });
        }
        let levels = lanes.levels;
        routes.lanes_used = needed as u8;
        if needed > 1 {
            routes.levels = Levels::ByPath(levels);
        }
        Ok(routes)
    }
}

/// Step 1. As the length of a path comes first, breadth-first search with ties broken by load is Dijkstra's algorithm with
/// weights that start high, without its heap.
struct ShortestPaths<'a> {
    view: &'a RoutingView,
    distances: Distances,
    load: Vec<u64>,
    cost: Vec<u64>,
    paths: Vec<u64>,
    next: Vec<u32>,
    order: Vec<u32>,
    order_of: u32,
}

impl<'a> ShortestPaths<'a> {
    fn new(view: &'a RoutingView) -> Self {
        Self {
            view,
            distances: Distances::new(view),
            load: vec![0; view.links().len()],
            cost: vec![0; view.switches()],
            paths: vec![0; view.switches()],
            next: vec![NO_LINK; view.switches()],
            order: Vec::new(),
            order_of: u32::MAX,
        }
    }

    fn fill(&mut self, routes: &mut Routes) {
        for target in self.view.targets() {
            self.towards(target.switch, target.is_adapter());
            routes.set(target.switch as usize, target.lid, target.port);
            for switch in &self.order {
                let link = self.next[*switch as usize];
                if link != NO_LINK {
                    let port = self.view.links()[link as usize].port;
                    routes.set(*switch as usize, target.lid, port);
                }
            }
        }
    }

    /// Chooses the next link of every switch towards `to`, and counts the paths.
    fn towards(&mut self, to: u32, counts: bool) {
        let row = self.distances.to(to as usize);
        if self.order_of != to {
            self.order_of = to;
            self.order.clear();
            let reached = (0..self.view.switches() as u32).filter(|at| row[*at as usize] != FAR);
            self.order.extend(reached);
            self.order.sort_by_key(|switch| row[*switch as usize]);
        }
        self.cost[to as usize] = 0;
        self.next[to as usize] = NO_LINK;
        for switch in self.order.iter().skip(1) {
            let here = *switch as usize;
            let mut best = (u64::MAX, NO_LINK);
            for (number, link) in self.view.links_of(here).zip(self.view.out(here)) {
                if row[link.to as usize] + 1 == row[here] {
                    let cost = self.cost[link.to as usize] + self.load[number];
                    if cost < best.0 {
                        best = (cost, number as u32);
                    }
                }
            }
            (self.cost[here], self.next[here]) = best;
        }
        if !counts {
            return;
        }
        for switch in &self.order {
            self.paths[*switch as usize] = u64::from(self.view.hosts(*switch as usize));
        }
        for switch in self.order.iter().skip(1).rev() {
            let paths = self.paths[*switch as usize];
            let link = self.next[*switch as usize] as usize;
            self.load[link] += paths;
            self.paths[self.view.links()[link].to as usize] += paths;
        }
    }
}

/// Step 2.
struct Lanes<'a> {
    view: &'a RoutingView,
    routes: &'a Routes,
    numbering: Numbering,
    /// The lane of each path: a row of LIDs for each switch where it starts.
    levels: Vec<u8>,
}

/// A path: where it starts, and the place of its destination among the targets.
type Path = (u32, u32);

impl<'a> Lanes<'a> {
    fn new(view: &'a RoutingView, routes: &'a Routes) -> Self {
        Self {
            view,
            routes,
            numbering: Numbering::new(view),
            levels: vec![0; view.switches() * routes.width()],
        }
    }

    /// Gives every path a lane; returns how many lanes it took, or one more than there can be.
    fn assign(&mut self) -> usize {
        let mut lane = 0;
        let numbering = self.numbering.clone();
        let mut counted = Counted::new(self.view, &numbering);
        self.count_all(&mut counted);
        loop {
            let moved = self.break_circles(lane, &mut counted);
            if moved.is_empty() {
                return usize::from(lane) + 1;
            }
            lane += 1;
            if lane == MOST_LANES {
                return usize::from(lane) + 1;
            }
            counted = Counted::new(self.view, &numbering);
            for path in moved {
                self.along(path, |from, to| counted.add(from, to, 1));
            }
        }
    }

    /// All paths are in lane 0: their dependencies, counted by trees instead of path by path.
    fn count_all(&self, counted: &mut Counted<'_>) {
        let switches = self.view.switches();
        let mut next = vec![NO_LINK; switches];
        let mut waiting = vec![0_u32; switches];
        let mut paths = vec![0_u32; switches];
        let mut ready: Vec<usize> = Vec::with_capacity(switches);
        for target in self.view.targets() {
            waiting.fill(0);
            for switch in 0..switches {
                next[switch] = self
                    .next(switch, target.lid.0)
                    .map_or(NO_LINK, |link| link as u32);
                paths[switch] = u32::from(self.view.hosts(switch) > 0);
                if next[switch] != NO_LINK {
                    waiting[self.view.links()[next[switch] as usize].to as usize] += 1;
                }
            }
            ready.clear();
            ready.extend((0..switches).filter(|switch| waiting[*switch] == 0));
            while let Some(here) = ready.pop() {
                if next[here] == NO_LINK {
                    continue;
                }
                let link = next[here] as usize;
                let to = self.view.links()[link].to as usize;
                if next[to] != NO_LINK && paths[here] > 0 {
                    counted.add(link, next[to] as usize, paths[here]);
                }
                paths[to] += paths[here];
                waiting[to] -= 1;
                if waiting[to] == 0 {
                    ready.push(to);
                }
            }
        }
    }

    /// Moves paths of `lane` to the next until its dependencies have no circle; returns the moved ones.
    fn break_circles(&mut self, lane: u8, counted: &mut Counted<'_>) -> Vec<Path> {
        let mut moved = Vec::new();
        let mut search = CircleSearch::new(self.view);
        while let Some(circle) = search.next(counted) {
            let pairs = circle.iter().zip(circle.iter().cycle().skip(1));
            let weakest = pairs.min_by_key(|(from, to)| counted.count(**from, **to));
            let Some((from, to)) = weakest else { break };
            for path in self.paths_through(lane, *from, *to) {
                self.along(path, |from, to| counted.remove(from, to));
                let place = self.place(path);
                self.levels[place] = lane + 1;
                moved.push(path);
            }
        }
        moved
    }

    /// The paths of `lane` that take link `from`, then link `to`.
    fn paths_through(&self, lane: u8, from: usize, to: usize) -> Vec<Path> {
        let [first, second] = [from, to].map(|link| self.view.links()[link]);
        let mut paths = Vec::new();
        let mut tree = Vec::new();
        for (number, target) in (0..).zip(self.view.targets()) {
            let lid = usize::from(target.lid.0);
            if self.routes.table(first.from as usize)[lid] != first.port
                || self.routes.table(second.from as usize)[lid] != second.port
                || target.switch == second.from
            {
                continue;
            }
            // Everybody whose path comes to the start of the first link.
            tree.clear();
            tree.push(first.from);
            let mut next = 0;
            while let Some(here) = tree.get(next).copied() {
                next += 1;
                for link in self.view.out(here as usize) {
                    let before = link.to as usize;
                    if self.routes.table(before)[lid] == link.peer_port && link.to != target.switch
                    {
                        tree.push(link.to);
                    }
                }
                let path = (here, number);
                if self.view.hosts(here as usize) > 0 && self.levels[self.place(path)] == lane {
                    paths.push(path);
                }
            }
        }
        paths
    }

    fn place(&self, (start, target): Path) -> usize {
        let lid = self.view.targets()[target as usize].lid;
        start as usize * self.routes.width() + usize::from(lid.0)
    }

    /// Calls `visit` with each pair of links that follow each other on a path.
    fn along(&self, (start, target): Path, mut visit: impl FnMut(usize, usize)) {
        let lid = self.view.targets()[target as usize].lid.0;
        let mut last = None;
        let mut here = start as usize;
        while let Some(link) = self.next(here, lid) {
            if let Some(last) = last {
                visit(last, link);
            }
            last = Some(link);
            here = self.view.links()[link].to as usize;
        }
    }

    /// The link that a switch sends packets to `lid` by; `None` where they leave the switches.
    fn next(&self, switch: usize, lid: u16) -> Option<usize> {
        let port = self.routes.table(switch)[usize::from(lid)];
        if port == NO_PORT || port == 0 {
            return None;
        }
        self.view.link_by_port(switch, port)
    }
}
