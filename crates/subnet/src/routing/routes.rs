//! What an engine makes: a forwarding table for each switch, and which service level and lane each path takes.

use softfabric_units::Lid;
use softfabric_wire::mad::subnet::ForwardingBlock;

use super::view::RoutingView;

/// The entry of an identifier that a switch cannot reach.
pub const NO_PORT: u8 = ForwardingBlock::NO_PORT;

/// Which service level a path takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Levels {
    /// Level 0, always.
    Uniform,
    /// By destination: one for each LID.
    ByDestination(Vec<u8>),
    /// By the switch where it starts, then by destination: a row of LIDs for each switch.
    ByPath(Vec<u8>),
}

/// How switches map levels to lanes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LaneMap {
    /// Lane n for level n.
    Identity,
    /// Lane 1 where the level has the bit of the link's dimension, else lane 0: a dimension for each link, in the order of
    /// [`RoutingView::links`].
    BitOfDimension(Vec<u8>),
}

/// Forwarding tables, levels and lanes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Routes {
    /// The engine that made them.
    pub engine: &'static str,
    /// Which level a path takes.
    pub levels: Levels,
    /// Which lane a level takes.
    pub lanes: LaneMap,
    /// How many data lanes they use.
    pub lanes_used: u8,
    width: usize,
    ports: Vec<u8>,
}

impl Routes {
    /// Tables that reach nothing.
    pub fn empty(engine: &'static str, view: &RoutingView) -> Self {
        let width = usize::from(view.top().0) + 1;
        Self {
            engine,
            levels: Levels::Uniform,
            lanes: LaneMap::Identity,
            lanes_used: 1,
            width,
            ports: vec![NO_PORT; width * view.switches()],
        }
    }

    /// Entries of a table: the highest LID and one.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// The table of a switch: a port for each LID, or [`NO_PORT`].
    pub fn table(&self, switch: usize) -> &[u8] {
        &self.ports[switch * self.width..][..self.width]
    }

    pub(super) fn tables(&mut self) -> &mut [u8] {
        &mut self.ports
    }

    /// The port of a LID at a switch.
    pub fn port(&self, switch: usize, lid: Lid) -> Option<u8> {
        let port = *self.table(switch).get(usize::from(lid.0))?;
        (port != NO_PORT).then_some(port)
    }

    pub(crate) fn set(&mut self, switch: usize, lid: Lid, port: u8) {
        self.ports[switch * self.width + usize::from(lid.0)] = port;
    }

    /// 64 entries of a switch's table, as a switch is told.
    pub fn block(&self, switch: usize, block: usize) -> ForwardingBlock {
        let mut ports = ForwardingBlock::EMPTY;
        let first = block * ForwardingBlock::LIDS;
        let rest = self.table(switch).get(first..).unwrap_or_default();
        for (port, found) in ports.ports.iter_mut().zip(rest) {
            *port = *found;
        }
        ports
    }

    /// How many blocks a table has.
    pub const fn blocks(&self) -> usize {
        self.width.div_ceil(ForwardingBlock::LIDS)
    }

    /// The level of packets from hosts at switch `from` to `lid`.
    pub fn level(&self, from: usize, lid: Lid) -> u8 {
        let lid = usize::from(lid.0);
        let found = match &self.levels {
            Levels::Uniform => None,
            Levels::ByDestination(levels) => levels.get(lid),
            Levels::ByPath(levels) => levels.get(from * self.width + lid),
        };
        found.copied().unwrap_or(0)
    }

    /// The lane of `level` on link `link`.
    pub fn lane(&self, link: usize, level: u8) -> u8 {
        match &self.lanes {
            LaneMap::Identity => level,
            LaneMap::BitOfDimension(dimensions) => level >> dimensions[link] & 1,
        }
    }

    /// The links that packets from switch `from` to `lid` pass, until they arrive, or their path breaks off or turns in a
    /// circle.
    pub fn walk(&self, view: &RoutingView, from: usize, lid: Lid) -> Walk {
        let mut walk = Walk {
            links: Vec::new(),
            end: WalkEnd::Circle,
        };
        let mut here = from;
        while walk.links.len() <= view.switches() {
            let Some(port) = self.port(here, lid) else {
                walk.end = WalkEnd::NoPort { switch: here };
                return walk;
            };
            let Some(link) = view.link_by_port(here, port) else {
                walk.end = WalkEnd::Left { switch: here, port };
                return walk;
            };
            walk.links.push(link);
            here = view.links()[link].to as usize;
        }
        walk
    }
}

/// A path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Walk {
    /// Its links.
    pub links: Vec<usize>,
    /// How it ends.
    pub end: WalkEnd,
}

/// How a path ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WalkEnd {
    /// It leaves the switches: to an adapter by this port, or to the switch itself by port 0.
    Left {
        /// The last switch.
        switch: usize,
        /// The port.
        port: u8,
    },
    /// A switch does not know the identifier.
    NoPort {
        /// The switch.
        switch: usize,
    },
    /// It never ends.
    Circle,
}
