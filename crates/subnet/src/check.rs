//! Judges routes, whoever made them: does every path arrive, how long is it, and can packets lock each other up?
//!
//! Packets lock up where dependencies between channels (links, each with its lanes) make a circle: each waits for credits of
//! the next. The check follows every path between hosts, with the level and the lanes that it has, and looks for one. Whether
//! paths arrive, it checks from and to every switch, too.

use std::fmt;

use softfabric_units::Lid;

use crate::routing::{Alternatives, Numbering, PortSet, Routes, RoutingView, WalkEnd};

/// What the check found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Paths that do not arrive: the first hundred.
    pub broken: Vec<BrokenPath>,
    /// How many there are.
    pub broken_count: usize,
    /// How many paths from switches with hosts to adapters' identifiers there are, by their number of links between switches.
    pub hops: Vec<usize>,
    /// A circle of channels, if there is one.
    pub credit_loop: Option<CreditLoop>,
}

impl Report {
    /// Whether all paths arrive and none can lock up.
    pub const fn is_sound(&self) -> bool {
        self.broken_count == 0 && self.credit_loop.is_none()
    }
}

/// A path that does not arrive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokenPath {
    /// The switch where it starts.
    pub from: String,
    /// The identifier where it should end.
    pub to: Lid,
    /// What becomes of it.
    pub end: String,
}

/// Channels, each of which waits for the next, and the last for the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreditLoop {
    /// Switch, port and lane of each.
    pub channels: Vec<(String, u8, u8)>,
}

impl fmt::Display for CreditLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut arrow = "";
        for (switch, port, lane) in &self.channels {
            write!(f, "{arrow}{switch}[{port}] VL {lane}")?;
            arrow = " → ";
        }
        Ok(())
    }
}

/// How many broken paths are told one by one.
const TOLD: usize = 100;

/// Checks `routes`.
pub fn check(view: &RoutingView, routes: &Routes) -> Report {
    let mut report = Report {
        broken: Vec::new(),
        broken_count: 0,
        hops: Vec::new(),
        credit_loop: None,
    };
    arrivals(view, routes, &mut report);
    report.credit_loop = credit_loop(view, routes, Beside::default());
    report
}

/// What packets may do beside what forwarding tables say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// They choose among these.
    pub alternatives: Option<&'a Alternatives>,
    /// The trees of multicast groups, each with the service level of its packets.
    pub trees: &'a [(u8, Vec<PortSet>)],
}

/// A circle of channels that wait for each other's credit, if packets between hosts can make one.
pub fn credit_loop(view: &RoutingView, routes: &Routes, beside: Beside<'_>) -> Option<CreditLoop> {
    let mut channels = Channels::of_paths(view, routes);
    if let Some(alternatives) = beside.alternatives {
        channels.add_alternatives(routes, alternatives);
    }
    for (level, tree) in beside.trees {
        channels.add_tree(routes, *level, tree);
    }
    let circle = channels.circle()?.into_iter();
    let channels = circle.map(|(link, lane)| {
        let ends = view.links()[link];
        (view.name(ends.from as usize).to_owned(), ends.port, lane)
    });
    Some(CreditLoop {
        channels: channels.collect(),
    })
}

/// What is known of a switch's path to one identifier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    /// It is being followed.
    Open,
    Arrives(u16),
    Breaks,
}

/// Follows all paths; each switch once for each identifier.
fn arrivals(view: &RoutingView, routes: &Routes, report: &mut Report) {
    let mut known = vec![Known::Nothing; view.switches()];
    let mut path = Vec::new();
    for target in view.targets() {
        known.fill(Known::Nothing);
        for start in 0..view.switches() {
            let mut here = start;
            path.clear();
            let mut end = loop {
                match known[here] {
                    Known::Nothing => {}
                    Known::Open => break Known::Breaks,
                    end => break end,
                }
                known[here] = Known::Open;
                path.push(here);
                match routes.port(here, target.lid) {
                    Some(port) if here == target.switch as usize && port == target.port => {
                        known[here] = Known::Arrives(0);
                        path.pop();
                        break known[here];
                    }
                    Some(port) => match view.link_by_port(here, port) {
                        Some(link) => here = view.links()[link].to as usize,
                        None => break Known::Breaks,
                    },
                    None => break Known::Breaks,
                }
            };
            for switch in path.iter().rev() {
                if let Known::Arrives(hops) = end {
                    end = Known::Arrives(hops + 1);
                }
                known[*switch] = end;
            }
            match known[start] {
                Known::Arrives(hops) if view.hosts(start) > 0 && target.is_adapter() => {
                    let hops = usize::from(hops);
                    if report.hops.len() <= hops {
                        report.hops.resize(hops + 1, 0);
                    }
                    report.hops[hops] += 1;
                }
                Known::Arrives(_) => {}
                _ => {
                    report.broken_count += 1;
                    if report.broken.len() < TOLD {
                        report.broken.push(broken(view, routes, start, target.lid));
                    }
                }
            }
        }
    }
}

fn broken(view: &RoutingView, routes: &Routes, start: usize, lid: Lid) -> BrokenPath {
    let walk = routes.walk(view, start, lid);
    let end = match walk.end {
        WalkEnd::NoPort { switch } => format!("{} knows no port for it", view.name(switch)),
        WalkEnd::Left { switch, port } => {
            format!(
                "it leaves {} by port {port}, where something else is",
                view.name(switch)
            )
        }
        WalkEnd::Circle => {
            let last = walk
                .links
                .last()
                .map_or(start, |link| view.links()[*link].to as usize);
            format!("it goes round in a circle through {}", view.name(last))
        }
    };
    BrokenPath {
        from: view.name(start).to_owned(),
        to: lid,
        end,
    }
}

/// Dependencies between channels: a bit for each pair of links that follow each other, and each pair of lanes.
struct Channels<'a> {
    view: &'a RoutingView,
    numbering: Numbering,
    lanes: usize,
    bits: Vec<u64>,
}

impl<'a> Channels<'a> {
    fn of_paths(view: &'a RoutingView, routes: &Routes) -> Self {
        let numbering = Numbering::new(view);
        let lanes = usize::from(routes.lanes_used.max(1));
        let mut channels = Self {
            view,
            lanes,
            bits: vec![0; (numbering.count() * lanes * lanes).div_ceil(64)],
            numbering,
        };
        // From a switch on, paths of one level to one identifier are one.
        let mut followed = vec![0_u32; view.switches() * 16];
        let adapters = view.targets().iter().filter(|target| target.is_adapter());
        for (stamp, target) in (1..).zip(adapters) {
            for start in 0..view.switches() {
                if view.hosts(start) > 0 {
                    channels.follow(routes, start, target.lid, &mut followed, stamp);
                }
            }
        }
        channels
    }

    fn follow(
        &mut self,
        routes: &Routes,
        start: usize,
        lid: Lid,
        followed: &mut [u32],
        stamp: u32,
    ) {
        let level = routes.level(start, lid);
        let mut here = start;
        let mut last: Option<(usize, u8)> = None;
        loop {
            let port = routes.port(here, lid);
            let Some(link) = port.and_then(|port| self.view.link_by_port(here, port)) else {
                return;
            };
            let lane = routes.lane(link, level);
            if let Some((before, before_lane)) = last {
                self.add(before, before_lane, link, lane);
            }
            let mark = &mut followed[here * 16 + usize::from(level & 15)];
            if *mark == stamp {
                return;
            }
            *mark = stamp;
            last = Some((link, lane));
            here = self.view.links()[link].to as usize;
        }
    }

    /// Whoever comes to a switch on one of the alternatives may go on by any of them. All have level 0.
    fn add_alternatives(&mut self, routes: &Routes, alternatives: &Alternatives) {
        let view = self.view;
        let by = |switch: usize, to: usize| {
            let ports = alternatives.ports(switch, to).iter();
            ports.filter_map(move |port| view.link_by_port(switch, *port))
        };
        let with_hosts = || (0..view.switches()).filter(|switch| view.hosts(*switch) > 0);
        let mut reached = vec![0_usize; view.links().len()];
        for (stamp, to) in (1..).zip(with_hosts()) {
            let mut open: Vec<usize> = with_hosts().flat_map(|from| by(from, to)).collect();
            for link in &open {
                reached[*link] = stamp;
            }
            while let Some(link) = open.pop() {
                for next in by(view.links()[link].to as usize, to) {
                    self.add(link, routes.lane(link, 0), next, routes.lane(next, 0));
                    if std::mem::replace(&mut reached[next], stamp) != stamp {
                        open.push(next);
                    }
                }
            }
        }
    }

    /// What comes to a switch of a group's tree goes on by all ports of the tree but the one that it came by.
    fn add_tree(&mut self, routes: &Routes, level: u8, tree: &[PortSet]) {
        let view = self.view;
        for (link, ends) in view.links().iter().enumerate() {
            let (from, here) = (ends.from as usize, ends.to as usize);
            let carries = tree
                .get(from)
                .is_some_and(|ports| ports.contains(ends.port));
            let onward = tree.get(here).filter(|_| carries);
            let ports = onward.into_iter().flat_map(PortSet::iter);
            for port in ports.filter(|port| *port != ends.peer_port) {
                if let Some(next) = view.link_by_port(here, port) {
                    self.add(
                        link,
                        routes.lane(link, level),
                        next,
                        routes.lane(next, level),
                    );
                }
            }
        }
    }

    fn bit(&self, from: usize, from_lane: usize, to: usize, to_lane: usize) -> usize {
        (self.numbering.of(self.view, from, to) * self.lanes + from_lane) * self.lanes + to_lane
    }

    fn add(&mut self, from: usize, from_lane: u8, to: usize, to_lane: u8) {
        let lane = |lane: u8| usize::from(lane).min(self.lanes - 1);
        let bit = self.bit(from, lane(from_lane), to, lane(to_lane));
        self.bits[bit / 64] |= 1 << (bit % 64);
    }

    fn has(&self, from: (usize, usize), to: (usize, usize)) -> bool {
        let bit = self.bit(from.0, from.1, to.0, to.1);
        self.bits[bit / 64] >> (bit % 64) & 1 != 0
    }

    /// The first circle, by depth-first search.
    fn circle(&self) -> Option<Vec<(usize, u8)>> {
        let lanes = self.lanes;
        let mut colours = vec![0_u8; self.view.links().len() * lanes];
        let mut stack: Vec<(usize, usize)> = Vec::new();
        for start in 0..colours.len() {
            if colours[start] != 0 {
                continue;
            }
            colours[start] = 1;
            stack.push((start, 0));
            while let Some((channel, step)) = stack.last_mut() {
                let (channel, here) = (*channel, *step);
                *step += 1;
                let link = channel / lanes;
                let range = self.view.links_of(self.view.links()[link].to as usize);
                let Some(next) = range.clone().nth(here / lanes) else {
                    colours[channel] = 2;
                    stack.pop();
                    continue;
                };
                let lane = here % lanes;
                let to = next * lanes + lane;
                if colours[to] == 2 || !self.has((link, channel % lanes), (next, lane)) {
                    continue;
                }
                if colours[to] == 0 {
                    colours[to] = 1;
                    stack.push((to, 0));
                    continue;
                }
                let first = stack.iter().rposition(|(channel, _)| *channel == to)?;
                let circle = stack[first..].iter();
                return Some(
                    circle
                        .map(|(at, _)| (at / lanes, (at % lanes) as u8))
                        .collect(),
                );
            }
        }
        None
    }
}

/// How many flows share the busiest link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Contention {
    /// The flows on the busiest link between switches.
    pub most: u32,
    /// The flows on a link, on average over the links that carry any.
    pub mean: f64,
}

/// Puts one flow on the path of each pair (where it starts, where it ends; adapters' identifiers), and counts.
pub fn contention(view: &RoutingView, routes: &Routes, flows: &[(Lid, Lid)]) -> Contention {
    let mut counts = vec![0_u32; view.links().len()];
    for (from, to) in flows {
        let place = view
            .targets()
            .binary_search_by_key(from, |target| target.lid);
        let Ok(place) = place else { continue };
        let start = view.targets()[place].switch as usize;
        for link in routes.walk(view, start, *to).links {
            counts[link] += 1;
        }
    }
    let busy = counts.iter().filter(|count| **count > 0).count();
    let sum: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    Contention {
        most: counts.iter().copied().max().unwrap_or(0),
        mean: if busy == 0 {
            0.0
        } else {
            sum as f64 / busy as f64
        },
    }
}
