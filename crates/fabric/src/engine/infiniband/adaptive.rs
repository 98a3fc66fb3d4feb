//! Adaptive routing: a packet takes that one of the engine's ways by which it waits least.
//!
//! ```text
//! destination ─► the table's own port, where hardly anything waits
//!            └─► its switch ─► ports on the engine's shortest ways ─► credit for the packet? ─► least wait
//! ```

use softfabric_units::{Bytes, Span, Time};

use super::{LanePort, LaneSwitch};
use crate::engine::frame::Frame;
use crate::subnet::Routed;

/// The ports that packets may choose among, by row of a switch and by the switch that a destination hangs on.
#[derive(Debug)]
pub(super) struct Choices {
    /// By destination: the number of its switch.
    group_of: Vec<u32>,
    groups: usize,
    /// By row and number of the destination's switch: a range of `ports`.
    cells: Vec<(u32, u8)>,
    /// Counted from zero.
    ports: Vec<u8>,
}

impl Choices {
    /// The choices of the switches of each subnet's rows; `access` has the node that each destination hangs on. `None` where
    /// there are none to make.
    pub(super) fn new(parts: &[(&Routed, Vec<usize>)], access: &[u32]) -> Option<Self> {
        let mut nodes = access.to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        let number = |node: &u32| nodes.partition_point(|other| other < node) as u32;
        let mut choices = Self {
            group_of: access.iter().map(number).collect(),
            groups: nodes.len(),
            cells: Vec::new(),
            ports: Vec::new(),
        };
        for (routed, rows) in parts {
            let alternatives = routed.alternatives.as_ref()?;
            let place = |node: &u32| routed.row(crate::plan::NodeId(*node));
            let places: Vec<Option<usize>> = nodes.iter().map(place).collect();
            for row in rows {
                for to in &places {
                    let ports = to.map_or(&[][..], |to| alternatives.ports(*row, to));
                    choices.add(ports.iter().map(|port| port - 1));
                }
            }
        }
        Some(choices)
    }

    fn add(&mut self, ports: impl Iterator<Item = u8>) {
        let start = self.ports.len();
        self.ports.extend(ports);
        let count = self.ports.len() - start;
        self.cells.push((start as u32, count as u8));
    }

    /// Another row, which is one of those before.
    pub(super) fn keep(&mut self, before: &Self, row: usize) {
        for (start, count) in &before.cells[row * before.groups..][..before.groups] {
            let ports = &before.ports[*start as usize..][..usize::from(*count)];
            self.add(ports.iter().copied());
        }
    }

    /// The ports of a row by which packets for a destination may leave; none where it hangs on the switch itself.
    fn ports(&self, row: usize, destination: u32) -> &[u8] {
        let group = self.group_of[destination as usize] as usize;
        let (start, count) = self.cells[row * self.groups + group];
        &self.ports[start as usize..][..usize::from(count)]
    }
}

impl LaneSwitch {
    /// Of the ports that a packet may take, the one by which it waits least; `usual` is the table's.
    ///
    /// The table's own stays as long as it has credit and is done with what goes before in the time of the packet itself: an
    /// idle fabric keeps all packets of a flow in order. Else ports that have credit for it go before those that have none,
    /// then those whose link is done sooner with what it sends and what waits for it.
    #[cold]
    pub(super) fn choose(
        &self,
        now: Time,
        frame: &Frame,
        choices: &Choices,
        row: usize,
        usual: usize,
    ) -> usize {
        let level = usize::from(frame.service_level());
        let ports = choices.ports(row, frame.destination).iter();
        let up = ports.map(|port| usize::from(*port));
        let up = up.filter(|port| self.ports[*port].transmitter.link.up);
        let starves = |at: &LanePort| {
            let lane = at.lane_of_level[level];
            !at.credits.may_send(lane, u32::from(frame.length))
        };
        let own = &self.ports[usual];
        let length = Bytes::new(u64::from(frame.length));
        let is_near = own.wait(now) <= own.transmitter.link.rate.time_for(length);
        if own.transmitter.link.up && is_near && !starves(own) {
            return usual;
        }
        let best = up.min_by_key(|&port| {
            let at = &self.ports[port];
            (starves(at), at.wait(now), port != usual, port)
        });
        best.unwrap_or(usual)
    }
}

impl LanePort {
    /// How long the link is busy with what it sends and what waits for it.
    fn wait(&self, now: Time) -> Span {
        let sends = self.transmitter.busy_until.max(now).since(now);
        sends + self.transmitter.link.rate.time_for(Bytes::new(self.queued))
    }
}
