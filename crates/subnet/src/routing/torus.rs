//! Tori: dimension after dimension, and in each ring a second lane for paths that cross its dateline.
//!
//! ```text
//!   ring of 6:   0 ─ 1 ─ 2 ─ 3 ─ 4 ─ 5 ─(0)        dateline between 5 and 0
//!   4 → 1 crosses it: lane 1 all the way.   1 → 4 does not: lane 0
//! ```
//!
//! Within a lane, no dependency closes the ring: lane 0 never passes the dateline, and paths in lane 1 all pass it and are at
//! most half a ring long. Between dimensions, dependencies lead from lower to higher ones only. The level of a path has a bit
//! for each dimension whose dateline it crosses; each link looks at the bit of its own dimension.
//!
//! Where a ring has lost a cable, its packets go the other way round.

use super::balance;
use super::routes::{LaneMap, Levels, Routes};
use super::view::{RoutingView, Target};
use super::{RoutingEngine, RoutingError};

/// Dimension order, with datelines.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Torus;

const NAME: &str = "torus-2QoS";
const MAX_DIMENSIONS: usize = 4;

impl RoutingEngine for Torus {
    fn name(&self) -> &'static str {
        NAME
    }

    fn route(&self, view: &RoutingView) -> Result<Routes, RoutingError> {
        let shape = TorusShape::detect(view)?;
        let mut routes = Routes::empty(NAME, view);
        let mut levels = vec![0; view.switches() * routes.width()];
        let width = routes.width();
        for target in view.targets() {
            let to = target.switch as usize;
            for from in 0..view.switches() {
                if from == to {
                    routes.set(from, target.lid, target.port);
                    continue;
                }
                let link = shape.step(view, from, target)?;
                routes.set(from, target.lid, view.links()[link].port);
            }
            for from in 0..view.switches() {
                levels[from * width + usize::from(target.lid.0)] =
                    shape.level(view, from, target)?;
            }
        }
        balance::verify(&routes, view, "no cables lead there")?;
        let dimensions = view
            .links()
            .iter()
            .map(|link| shape.dimension_of(link.port));
        routes.lanes = LaneMap::BitOfDimension(dimensions.collect());
        routes.lanes_used = 2;
        routes.levels = Levels::ByPath(levels);
        Ok(routes)
    }
}

/// How a subnet is a torus.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TorusShape {
    /// How long the rings of each dimension are.
    pub sizes: Vec<u8>,
    /// Where each switch is.
    pub coordinates: Vec<[u8; MAX_DIMENSIONS]>,
    /// The dimension of each port, where it leads to switches.
    dimensions: [Option<u8>; 256],
    /// The port that leads forward in each dimension, then the one that leads back.
    ports: Vec<[u8; 2]>,
}

impl TorusShape {
    /// Finds the dimensions: in a torus whose switches are all cabled alike, port p leads in the same direction everywhere.
    /// Switches and cables may be missing.
    ///
    /// # Errors
    /// If the subnet is not such a torus.
    pub fn detect(view: &RoutingView) -> Result<Self, RoutingError> {
        let shape = |reason: String| RoutingError::Shape {
            engine: NAME,
            reason,
        };
        // Which port is at the other end of which: forward and back of one dimension.
        let mut opposite = [None; 256];
        for link in view.links() {
            let known = opposite[usize::from(link.port)].get_or_insert(link.peer_port);
            if *known != link.peer_port {
                return Err(shape(format!(
                    "port {} leads to port {} of a switch here and to port {} there, at {:?}: the switches are not cabled alike",
                    link.port,
                    known,
                    link.peer_port,
                    view.name(link.from as usize)
                )));
            }
        }
        let mut ports: Vec<[u8; 2]> = Vec::new();
        let mut dimensions = [None; 256];
        for port in 0..=u8::MAX {
            let Some(back) = opposite[usize::from(port)] else {
                continue;
            };
            if dimensions[usize::from(port)].is_none() {
                let number = Some(ports.len() as u8);
                dimensions[usize::from(port)] = number;
                dimensions[usize::from(back)] = number;
                ports.push([port, back]);
            }
        }
        if ports.is_empty() || ports.len() > MAX_DIMENSIONS {
            return Err(shape(format!(
                "its switches are cabled in {} dimensions, needed 1 to {MAX_DIMENSIONS}",
                ports.len()
            )));
        }
        let mut found = Self {
            sizes: Vec::new(),
            coordinates: vec![[0; MAX_DIMENSIONS]; view.switches()],
            dimensions,
            ports,
        };
        found.measure(view).map_err(shape)?;
        found.place(view).map_err(shape)?;
        Ok(found)
    }

    /// Follows each dimension round, wherever its ring is whole.
    fn measure(&mut self, view: &RoutingView) -> Result<(), String> {
        for [forward, _] in self.ports.clone() {
            let mut size = None;
            for start in 0..view.switches() {
                let mut here = start;
                let mut steps = 0_usize;
                while let Some(link) = view.link_by_port(here, forward) {
                    here = view.links()[link].to as usize;
                    steps += 1;
                    if here == start || steps > view.switches() {
                        break;
                    }
                }
                if here != start || steps == 0 {
                    continue;
                }
                if *size.get_or_insert(steps) != steps {
                    return Err(format!(
                        "following port {forward} from {:?} comes back after {steps} switches, elsewhere after {}",
                        view.name(start),
                        size.unwrap_or(0)
                    ));
                }
            }
            match size.map(u8::try_from) {
                Some(Ok(size)) => self.sizes.push(size),
                Some(Err(_)) => {
                    return Err(format!(
                        "rings along port {forward} have more than 255 switches"
                    ));
                }
                None => {
                    return Err(format!(
                        "no ring along port {forward} is whole, so its length is not known"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Gives each switch its place, counted from the first.
    fn place(&mut self, view: &RoutingView) -> Result<(), String> {
        let mut known = vec![false; view.switches()];
        let mut queue = vec![0_usize];
        known[0] = true;
        let mut next = 0;
        while let Some(here) = queue.get(next).copied() {
            next += 1;
            for link in view.out(here) {
                let dimension = usize::from(self.dimension_of(link.port));
                let size = self.sizes[dimension];
                let mut place = self.coordinates[here];
                let step = if link.port == self.ports[dimension][0] {
                    1
                } else {
                    size - 1
                };
                place[dimension] =
                    ((u16::from(place[dimension]) + u16::from(step)) % u16::from(size)) as u8;
                let to = link.to as usize;
                if !known[to] {
                    known[to] = true;
                    self.coordinates[to] = place;
                    queue.push(to);
                } else if self.coordinates[to] != place {
                    return Err(format!(
                        "{:?} is at {:?} by one way and at {place:?} by another",
                        view.name(to),
                        self.coordinates[to]
                    ));
                }
            }
        }
        let mut places: Vec<_> = self.coordinates.clone();
        places.sort_unstable();
        match places.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("two switches are at {:?}", pair[0])),
            None => Ok(()),
        }
    }

    fn dimension_of(&self, port: u8) -> u8 {
        self.dimensions[usize::from(port)].unwrap_or(0)
    }

    /// The link that a packet for `target` leaves switch `from` by.
    fn step(
        &self,
        view: &RoutingView,
        from: usize,
        target: &Target,
    ) -> Result<usize, RoutingError> {
        let (dimension, forward) = self.direction(view, from, target).ok_or_else(|| {
            let hint =
                "the ring that it would take is broken on both sides; use updn, dfsssp or nue";
            balance::unroutable(NAME, view, from, target, hint)
        })?;
        let port = self.ports[dimension][usize::from(!forward)];
        Ok(view
            .link_by_port(from, port)
            .expect("the way was looked at"))
    }

    /// The first dimension in which a packet is not yet where it should be, and which way it goes.
    fn direction(&self, view: &RoutingView, from: usize, target: &Target) -> Option<(usize, bool)> {
        let (here, there) = (
            self.coordinates[from],
            self.coordinates[target.switch as usize],
        );
        let dimension =
            (0..self.sizes.len()).find(|dimension| here[*dimension] != there[*dimension])?;
        let size = u16::from(self.sizes[dimension]);
        let ahead = (size + u16::from(there[dimension]) - u16::from(here[dimension])) % size;
        // Half way round is as far either way: the destination's number decides.
        let forward = match (2 * ahead).cmp(&size) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => target.lid.0.is_multiple_of(2),
        };
        let steps = |forward: bool| if forward { ahead } else { size - ahead };
        [forward, !forward]
            .into_iter()
            .find(|forward| self.is_whole(view, from, dimension, *forward, steps(*forward)))
            .map(|forward| (dimension, forward))
    }

    fn is_whole(
        &self,
        view: &RoutingView,
        from: usize,
        dimension: usize,
        forward: bool,
        steps: u16,
    ) -> bool {
        let port = self.ports[dimension][usize::from(!forward)];
        let mut here = from;
        (0..steps).all(|_| match view.link_by_port(here, port) {
            Some(link) => {
                here = view.links()[link].to as usize;
                true
            }
            None => false,
        })
    }

    /// A bit for each dimension whose dateline the path crosses: the cable between the last switch and the first.
    fn level(&self, view: &RoutingView, from: usize, target: &Target) -> Result<u8, RoutingError> {
        let mut level = 0;
        let mut here = from;
        while here != target.switch as usize {
            let link = view.links()[self.step(view, here, target)?];
            let dimension = usize::from(self.dimension_of(link.port));
            let [before, after] =
                [link.from, link.to].map(|at| self.coordinates[at as usize][dimension]);
            let forward = link.port == self.ports[dimension][0];
            let crosses = if forward {
                after < before
            } else {
                after > before
            };
            level |= u8::from(crosses) << dimension;
            here = link.to as usize;
        }
        Ok(level)
    }
}
