//! Fat trees: up by destination, so that all packets for one host meet on one way down (d-mod-k), and around lost cables.
//!
//! ```text
//!   destination j:   leaf takes parent  j mod U₁,   above  (j / U₁) mod U₂,   …
//! ```
//!
//! With that, every shift permutation (each host i to i + k) is free of contention on a full tree (Zahavi, JPDC 2012). Hosts
//! are numbered by their place in the tree, not by their identifiers. Parents are numbered among those that a switch could
//! have: what its siblings have counts. So a lost cable moves only the destinations that took it, to the least used of the
//! ways that are left.

use softfabric_units::Guid;

use super::alternatives::Alternatives;
use super::balance::{self, Candidates};
use super::close_by::{CloseBy, Measured};
use super::ranks::{Ranks, UpDownDistances};
use super::repair::Before;
use super::routes::Routes;
use super::view::{RoutingView, Target};
use super::{RoutingEngine, RoutingError};

/// Up by destination, then down.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FatTree {
    /// The switches at the top. None: those that are farthest from hosts.
    pub roots: Vec<Guid>,
}

const NAME: &str = "ftree";
const HINT: &str =
    "no way goes up and down again; too many cables are lost, or other roots are needed";

impl RoutingEngine for FatTree {
    fn name(&self) -> &'static str {
        NAME
    }

    fn route(&self, view: &RoutingView) -> Result<Routes, RoutingError> {
        self.routed(view, None)
    }

    fn repair(&self, view: &RoutingView, before: Before<'_>) -> Result<Routes, RoutingError> {
        self.routed(view, Some(before))
    }

    fn alternatives(&self, view: &RoutingView) -> Result<Alternatives, RoutingError> {
        let ranks = self.ranks(view)?;
        Ok(UpDownDistances::new(view, &ranks).alternatives(view, &ranks))
    }
}

impl FatTree {
    fn routed(
        &self,
        view: &RoutingView,
        before: Option<Before<'_>>,
    ) -> Result<Routes, RoutingError> {
        let mut routes = Routes::empty(NAME, view);
        let ranks = self.ranks(view)?;
        if view.switches() < 2 {
            let distances = Measured::All(UpDownDistances::new(view, &ranks));
            let rule = Tree::new(view, ranks, distances);
            balance::fill(&mut routes, view, &rule, before)?;
            return Ok(routes);
        }
        if let Some(before) = before
            && self.had(&ranks, before.view)?
            && let Some(close) = CloseBy::new(view, &ranks, before)
        {
            let rule = Tree::new(view, ranks.clone(), Measured::Close(close));
            let trusts = |switch: usize, target: &Target| rule.distances.trusts(switch, target);
            if balance::refill(&mut routes, view, &rule, before, trusts).is_ok() {
                return Ok(routes);
            }
            routes = Routes::empty(NAME, view);
        }
        let distances = UpDownDistances::new(view, &ranks);
        distances.refuse_gaps(NAME, view, HINT)?;
        let rule = Tree::new(view, ranks, Measured::All(distances));
        balance::fill(&mut routes, view, &rule, before)?;
        Ok(routes)
    }

    /// How far each switch is below the top; refuses what is no tree.
    fn ranks(&self, view: &RoutingView) -> Result<Ranks, RoutingError> {
        let shape = |reason: String| RoutingError::Shape {
            engine: NAME,
            reason,
        };
        if view.switches() < 2 {
            return Ok(Ranks::from_roots(view, &[0][..view.switches()]));
        }
        let mut roots = Ranks::roots_of(view, &self.roots)?;
        if roots.is_empty() {
            roots = Ranks::natural_roots(view);
        }
        if roots.is_empty() {
            return Err(shape(
                "hosts are at all switches alike, so none is the top: name the roots".to_owned(),
            ));
        }
        let ranks = Ranks::from_roots(view, &roots);
        for link in view.links() {
            let [from, to] = [link.from, link.to].map(|switch| ranks.0[switch as usize]);
            if from.abs_diff(to) != 1 {
                let [from_name, to_name] = [link.from, link.to].map(|at| view.name(at as usize));
                return Err(shape(format!(
                    "the cable from port {} of {from_name:?} to port {} of {to_name:?} joins switches {from} and {to} steps below the top, which should be one apart",
                    link.port, link.peer_port
                )));
            }
        }
        Ok(ranks)
    }

    /// Whether switches had these ranks in the view before.
    fn had(&self, ranks: &Ranks, before: &RoutingView) -> Result<bool, RoutingError> {
        let mut roots = Ranks::roots_of(before, &self.roots)?;
        if roots.is_empty() {
            roots = Ranks::natural_roots(before);
        }
        Ok(*ranks == Ranks::from_roots(before, &roots))
    }
}

/// Switches that could have the same parents, and these parents.
#[derive(Default)]
struct Family {
    /// In order.
    parents: Vec<u32>,
    /// The most parallel cables between a child and a parent.
    cables: usize,
}

struct Tree<'a> {
    view: &'a RoutingView,
    ranks: Ranks,
    distances: Measured<'a>,
    families: Vec<Family>,
    /// The family of each switch as a child.
    family: Vec<u32>,
    /// What to divide a destination's number by, at each rank.
    divisors: Vec<usize>,
    /// The number of the first host of each switch.
    first_host: Vec<usize>,
    /// The place of a host by its port.
    slots: Vec<u8>,
}

impl<'a> Tree<'a> {
    fn new(view: &'a RoutingView, ranks: Ranks, distances: Measured<'a>) -> Self {
        let mut slots: Vec<u8> = view
            .targets()
            .iter()
            .filter(|target| target.is_adapter())
            .map(|target| target.port)
            .collect();
        slots.sort_unstable();
        slots.dedup();
        let mut first_host = vec![0; view.switches()];
        let order = Order::new(view, &ranks).find();
        for (place, switch) in order.into_iter().enumerate() {
            first_host[switch as usize] = place * slots.len();
        }
        let mut tree = Self {
            view,
            distances,
            families: Vec::new(),
            family: vec![u32::MAX; view.switches()],
            divisors: Vec::new(),
            first_host,
            slots,
            ranks,
        };
        tree.find_families();
        tree
    }

    /// Children and parents that hang together by cables between two ranks are a family.
    fn find_families(&mut self) {
        let depth = self.ranks.0.iter().filter(|rank| **rank != u32::MAX).max();
        let depth = depth.map_or(0, |rank| *rank as usize + 1);
        let mut arity = vec![1; depth];
        for start in 0..self.view.switches() {
            if self.ranks.0[start] == 0 || self.family[start] != u32::MAX {
                continue;
            }
            let number = self.families.len() as u32;
            let mut family = Family::default();
            let mut children = vec![start];
            self.family[start] = number;
            let mut next = 0;
            while let Some(child) = children.get(next).copied() {
                next += 1;
                let mut parallel = 0;
                let mut last = u32::MAX;
                let mut parents: Vec<u32> = self.up(child).map(|(_, parent)| parent).collect();
                parents.sort_unstable();
                for parent in parents {
                    parallel = if parent == last { parallel + 1 } else { 1 };
                    last = parent;
                    family.cables = family.cables.max(parallel);
                    if family.parents.contains(&parent) {
                        continue;
                    }
                    family.parents.push(parent);
                    for link in self.view.out(parent as usize) {
                        let sibling = link.to as usize;
                        let below = self.ranks.0[sibling] > self.ranks.0[parent as usize];
                        if below && self.family[sibling] == u32::MAX {
                            self.family[sibling] = number;
                            children.push(sibling);
                        }
                    }
                }
            }
            family.parents.sort_unstable();
            let rank = self.ranks.0[start] as usize;
            if rank < depth {
                arity[rank] = arity[rank].max(family.parents.len() * family.cables);
            }
            self.families.push(family);
        }
        self.divisors = (0..depth)
            .map(|rank| arity[rank + 1..].iter().product::<usize>())
            .collect();
    }

    /// The links up, by place, with the parents.
    fn up(&self, switch: usize) -> impl Iterator<Item = (u8, u32)> + '_ {
        (0..)
            .zip(self.view.out(switch))
            .filter(move |(_, link)| self.ranks.is_up(switch, link.to as usize))
            .map(|(place, link)| (place, link.to))
    }
}

impl Candidates for Tree<'_> {
    fn candidates(&self, from: usize, to: usize, links: &mut Vec<u8>) {
        self.distances
            .candidates(self.view, &self.ranks, from, to, links);
    }

    fn preferred(&self, from: usize, target: &Target, candidates: &[u8]) -> Option<u8> {
        let slot = self.slots.binary_search(&target.port).ok()?;
        let family = self.families.get(*self.family.get(from)? as usize)?;
        let links = self.view.out(from);
        let first = links[usize::from(*candidates.first()?)].to as usize;
        if !self.ranks.is_up(from, first) {
            return None;
        }
        let number = self.first_host[target.switch as usize] + slot;
        let choice = number / self.divisors.get(self.ranks.0[from] as usize)?;
        let parent = family.parents[choice % family.parents.len()];
        let cable = choice / family.parents.len() % family.cables;
        let of_parent = candidates
            .iter()
            .filter(|place| links[usize::from(**place)].to == parent);
        of_parent.cycle().nth(cable).copied()
    }

    fn hint(&self) -> &'static str {
        HINT
    }
}

/// Puts the switches with hosts in the order in which they hang in the tree.
struct Order<'a> {
    view: &'a RoutingView,
    ranks: &'a Ranks,
    found: Vec<u32>,
}

impl<'a> Order<'a> {
    const fn new(view: &'a RoutingView, ranks: &'a Ranks) -> Self {
        Self {
            view,
            ranks,
            found: Vec::new(),
        }
    }

    fn find(mut self) -> Vec<u32> {
        let all: Vec<u32> = (0..self.view.switches() as u32).collect();
        self.split(all, 0);
        self.found
    }

    /// `members` hang together and are at `rank` and below. Without those at `rank` they fall apart: the parts are in the
    /// order of the ports by which they hung.
    fn split(&mut self, members: Vec<u32>, rank: u32) {
        let at = |switch: u32| self.ranks.0[switch as usize];
        let top = members.iter().map(|switch| at(*switch)).min();
        let rank = rank.max(top.unwrap_or(rank));
        let (tops, below): (Vec<u32>, Vec<u32>) =
            members.into_iter().partition(|switch| at(*switch) <= rank);
        let mut inside = vec![false; self.view.switches()];
        for switch in &below {
            inside[*switch as usize] = true;
        }
        let mut port = vec![u8::MAX; self.view.switches()];
        for link in tops.iter().flat_map(|top| self.view.out(*top as usize)) {
            let place = &mut port[link.to as usize];
            *place = (*place).min(link.port);
        }
        let mut parts: Vec<(u8, u32, Vec<u32>)> = Vec::new();
        for start in below {
            if !std::mem::take(&mut inside[start as usize]) {
                continue;
            }
            let mut part = vec![start];
            let mut next = 0;
            while let Some(here) = part.get(next).copied() {
                next += 1;
                for link in self.view.out(here as usize) {
                    if std::mem::take(&mut inside[link.to as usize]) {
                        part.push(link.to);
                    }
                }
            }
            let key = part.iter().map(|switch| port[*switch as usize]).min();
            parts.push((key.unwrap_or(u8::MAX), start, part));
        }
        parts.sort_by_key(|(port, first, _)| (*port, *first));
        for (_, _, part) in parts {
            self.split(part, rank + 1);
        }
        let with_hosts = tops
            .into_iter()
            .filter(|top| self.view.hosts(*top as usize) > 0);
        self.found.extend(with_hosts);
    }
}
