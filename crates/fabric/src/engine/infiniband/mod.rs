//! An InfiniBand switch: packets wait where they came in, until the port that they go on by has credit for them.
//!
//! ```text
//! arrive ─► forwarding table ─► SL2VL ─► queue of (input, lane, output) ─► arbitration ─► link
//!    │                                                                        │
//!    └── takes the input lane's credit            its credit is granted anew ◄┘
//! ```
//!
//! The crossbar is faster than the links: a packet waits for its output's link and credit, never for the crossbar.
//!
//! Invariant: nothing is dropped for lack of room. A packet that finds none was sent without credit, and counts as the
//! loss of a lossless packet.

mod adaptive;
mod arbiter;
mod congestion;
mod credits;
mod guard;
mod life;
mod multicast;
mod path_rate;
mod tables;
mod waiting;

#[cfg(test)]
mod adaptive_tests;
#[cfg(test)]
mod congestion_tests;
#[cfg(test)]
mod life_tests;
#[cfg(test)]
mod multicast_tests;
#[cfg(test)]
mod partition_tests;
#[cfg(test)]
mod static_rate_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use softfabric_telemetry::{ClassCounter, PortCounter};
use softfabric_units::Time;

pub(crate) use arbiter::{Arbiter, LaneMask};
pub(crate) use congestion::Congestion;
pub(crate) use credits::Credits;
use guard::Guards;
use life::Lives;
use multicast::Copies;
pub(crate) use path_rate::path_rate;
pub(crate) use tables::Tables;
use waiting::Waiting;

use super::event::Scheduler;
use super::frame::{Control, CreditFrame, Flags, Frame};
use super::port::Transmitter;
use super::recorder::{Losses, NodeRecorder, NodeTotals, PortProbe};
use super::world::World;
use crate::plan::{DATA_LANES, Endpoint, InfinibandSwitch, Lanes, NodeId, PortId, SERVICE_LEVELS};
use crate::results::DropReason;

/// One switch.
#[derive(Debug)]
pub(crate) struct LaneSwitch {
    id: u32,
    pub(crate) ports: Vec<LanePort>,
    waiting: Waiting,
    /// The places of packets to groups.
    copies: Copies,
    /// How long packets may stay, where that is limited.
    lives: Option<Box<Lives>>,
    /// What guards partitions, where any ports do.
    guards: Option<Box<Guards>>,
    /// What marks packets, where congestion control is on.
    pub(crate) congestion: Option<Box<Congestion>>,
    pub(crate) recorder: Option<NodeRecorder>,
    pub(crate) losses: Losses,
}

/// A port of a switch.
#[derive(Debug)]
pub(crate) struct LanePort {
    pub(crate) transmitter: Transmitter,
    pub(crate) credits: Credits,
    arbiter: Arbiter,
    /// By which lane packets of each service level leave.
    lane_of_level: [u8; SERVICE_LEVELS],
    /// Lanes by which something waits to go.
    lanes: LaneMask,
    /// Since when the packet at the head of each lane is there.
    head_since: [Time; DATA_LANES],
    /// Bytes that wait to go by this port, and the most since the recorder looked.
    queued: u64,
    peak: u64,
    /// Bytes queued times picoseconds, up to the last change.
    area: u128,
    changed: Time,
}

impl LanePort {
    fn account(&mut self, now: Time) {
        let span = now.since(self.changed).as_picos();
        self.area += u128::from(self.queued) * u128::from(span);
        self.changed = now;
    }
}

impl LaneSwitch {
    /// A switch with nothing in it; `transmitters` are in the order of its ports.
    pub(crate) fn new(
        id: NodeId,
        profile: &InfinibandSwitch,
        transmitters: Vec<Transmitter>,
    ) -> Self {
        let ports: Vec<LanePort> = transmitters
            .into_iter()
            .map(|transmitter| LanePort {
                transmitter,
                credits: Credits::new(&profile.lanes),
                arbiter: Arbiter::new(&profile.lanes.arbitration),
                lane_of_level: profile.lanes.of_level,
                lanes: 0,
                head_since: [Time::ZERO; DATA_LANES],
                queued: 0,
                peak: 0,
                area: 0,
                changed: Time::ZERO,
            })
            .collect();
        Self {
            id: id.0,
            waiting: Waiting::new(ports.len(), usize::from(profile.lanes.count)),
            ports,
            copies: Copies::default(),
            lives: None,
            guards: None,
            congestion: None,
            recorder: None,
            losses: Losses::default(),
        }
    }

    /// A packet has come in by `port`.
    pub(crate) fn packet<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        let length = u32::from(frame.length);
        let at = &mut self.ports[port];
        at.transmitter.count_received(length, frame.class);
        if let Some(tap) = &mut at.transmitter.tap {
            tap.packet(now, false, frame, world);
        }
        if !at.credits.arrived(frame.lane(), length) {
            at.transmitter.port.count(PortCounter::ReceiveDiscards);
            return self.lose(now, port, frame, DropReason::BufferFull);
        }
        if frame.flags.has(Flags::MULTICAST) {
            return self.replicate(now, port, frame, world, scheduler);
        }
        let onward = if frame.flags.has(Flags::DAMAGED) {
            at.transmitter.port.count(PortCounter::ReceiveErrors);
            Err(DropReason::Damaged)
        } else if self.guards.is_some() {
            self.guarded_route(now, port, frame, world)
        } else {
            self.route(now, frame, world)
        };
        let egress = match onward {
            Ok(egress) if self.ports[egress].transmitter.link.up => egress,
            refused => {
                let reason = refused.err().unwrap_or(DropReason::LinkDown);
                if !matches!(reason, DropReason::Damaged | DropReason::PartitionKey) {
                    let counters = &mut self.ports[port].transmitter.port;
                    counters.count(PortCounter::ReceiveDiscards);
                }
                self.lose(now, port, frame, reason);
                return self.free(now, port, frame, world, scheduler);
            }
        };
        let mut frame = *frame;
        frame.ingress = port as u16;
        self.queue(now, egress, frame, world, scheduler);
    }

    /// A packet, or a copy of one, is to leave by `egress`.
    #[inline]
    fn queue<S: Scheduler>(
        &mut self,
        now: Time,
        egress: usize,
        frame: Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        let length = u32::from(frame.length);
        let into = &mut self.ports[egress];
        let lane = into.lane_of_level[usize::from(frame.service_level())];
        if let Some(lives) = &self.lives
            && lives.is_stalled(now, egress, lane)
        {
            let reason = DropReason::LaneStalled;
            return self.discard(now, egress, &frame, reason, world, scheduler);
        }
        into.account(now);
        into.queued += u64::from(length);
        into.peak = into.peak.max(into.queued);
        into.lanes |= 1 << lane;
        if let Some(congestion) = &mut self.congestion {
            congestion.came(now, egress, lane, length);
        }
        if self.waiting.push(egress, lane, frame) {
            into.head_since[usize::from(lane)] = now;
        }
        self.watch(now, egress, scheduler);
        self.transmit(now, egress, world, scheduler);
    }

    /// The same where partitions are guarded.
    #[cold]
    fn guarded_route(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        world: &World,
    ) -> Result<usize, DropReason> {
        if !self.lets_in(port, frame) {
            return Err(DropReason::PartitionKey);
        }
        let egress = self.route(now, frame, world)?;
        if self.lets_out(egress, frame) {
            Ok(egress)
        } else {
            Err(DropReason::PartitionKey)
        }
    }

    /// The port by which a packet goes on: that of its own path, or that of the forwarding table, or with adaptive routing
    /// one that is as good.
    fn route(&self, now: Time, frame: &Frame, world: &World) -> Result<usize, DropReason> {
        let reverse = frame.flags.has(Flags::REVERSE);
        if let Some(port) = world.fixed_hops.port(self.id, frame.flow, reverse) {
            return Ok(port);
        }
        let tables = world.tables.as_ref().ok_or(DropReason::NoRoute)?;
        let port = tables.port(self.id, frame.destination);
        let port = port.ok_or(DropReason::NoRoute)?;
        if let Some(choices) = &tables.choices
            && let Some(row) = tables.row(self.id)
        {
            return Ok(self.choose(now, frame, choices, row, port));
        }
        Ok(port)
    }

    /// The subnet manager says which lanes packets leave by.
    pub(crate) fn program(&mut self, tables: &Tables, usual: &Lanes) {
        for (number, port) in self.ports.iter_mut().enumerate() {
            port.lane_of_level = tables.lanes(NodeId(self.id), number, usual);
        }
    }

    /// The other end of `port` grants credit.
    pub(crate) fn credit<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        credit: CreditFrame,
        world: &World,
        scheduler: &mut S,
    ) {
        let at = &mut self.ports[port];
        at.transmitter.count_credit(now, &credit);
        at.credits.granted(credit.lane, credit.limit);
        self.transmit(now, port, world, scheduler);
    }

    /// The transmitter of `port` has become free.
    pub(crate) fn port_free<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        world: &World,
        scheduler: &mut S,
    ) {
        self.ports[port].transmitter.free_pending = false;
        self.transmit(now, port, world, scheduler);
    }

    /// Sends what may be sent next by `port`, if its transmitter is free.
    fn transmit<S: Scheduler>(&mut self, now: Time, port: usize, world: &World, scheduler: &mut S) {
        let at = &mut self.ports[port];
        if at.transmitter.must_wait(now, port, scheduler) {
            return;
        }
        if let Some(credit) = at.credits.next_announcement() {
            let credit = at.transmitter.occupy_for_credit(now, credit);
            if at.credits.has_announcements() || at.lanes != 0 {
                at.transmitter.tell_when_free(port, scheduler);
            }
            return scheduler.send_control(&at.transmitter.link, Control::Credit(credit));
        }
        if at.lanes == 0 {
            return;
        }
        let mut ready = 0;
        let mut lanes = at.lanes;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            lanes &= lanes - 1;
            let front = self.waiting.front(port, lane);
            if front.is_some_and(|frame| at.credits.may_send(lane, u32::from(frame.length))) {
                ready |= 1 << lane;
            } else if let Some(congestion) = &mut self.congestion {
                congestion.waits(port, lane);
            }
        }
        let Some(lane) = at.arbiter.pick(ready) else {
            return at.transmitter.block(now);
        };
        if let Some(frame) = self.take(now, port, lane) {
            self.depart(now, port, lane, frame, world, scheduler);
        }
    }

    /// Takes the packet that goes next by a lane of `port` out of its queue.
    fn take(&mut self, now: Time, port: usize, lane: u8) -> Option<Frame> {
        let frame = self.waiting.pop(port, lane)?;
        self.ports[port].head_since[usize::from(lane)] = now;
        self.taken(now, port, lane, &frame);
        Some(frame)
    }

    /// Takes the first packet of an input out of its queue for a lane of `port`, whether or not it goes next.
    fn take_of(&mut self, now: Time, port: usize, lane: u8, input: u16) -> Option<Frame> {
        if self.waiting.goes_next(port, lane, input) {
            return self.take(now, port, lane);
        }
        let frame = self.waiting.pop_of(port, lane, input)?;
        self.taken(now, port, lane, &frame);
        Some(frame)
    }

    /// A packet waits for a lane of `port` no more.
    #[inline]
    fn taken(&mut self, now: Time, port: usize, lane: u8, frame: &Frame) {
        let at = &mut self.ports[port];
        at.account(now);
        at.queued -= u64::from(frame.length);
        if let Some(congestion) = &mut self.congestion {
            let length = u32::from(frame.length);
            congestion.left(now, port, lane, length, &mut at.transmitter.port);
        }
        if self.waiting.is_empty(port, lane) {
            at.lanes &= !(1 << lane);
            if at.lanes == 0 {
                at.transmitter.unblock(now);
            }
        }
    }

    /// A packet leaves by a lane of `port`, whose transmitter is free.
    fn depart<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        lane: u8,
        mut frame: Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        let (ingress, came_by) = (usize::from(frame.ingress), frame.lane());
        let (flags, share) = (frame.flags, frame.share());
        let length = u32::from(frame.length);
        frame.set_lane(lane);
        let at = &mut self.ports[port];
        at.credits.sent(lane, length);
        at.arbiter.sent(length);
        if let Some(lives) = &mut self.lives {
            lives.sent(port, lane);
        }
        let busy = at.transmitter.occupy(now, length, frame.class);
        if let Some(congestion) = &mut self.congestion
            && congestion.marks(port, lane, length)
        {
            frame.set_fecn();
            at.transmitter.count_mark(now, frame.class, length);
        }
        if let Some(tap) = &mut at.transmitter.tap {
            tap.packet(now, true, &frame, world);
        }
        if at.lanes != 0 || at.credits.has_announcements() {
            at.transmitter.tell_when_free(port, scheduler);
        }
        if flags.has(Flags::MULTICAST) {
            let counters = &mut at.transmitter.port;
            counters.count(PortCounter::MulticastTransmitPackets);
        }
        at.transmitter.launch(now, busy, frame, scheduler);
        if self.leaves_place(flags, share) {
            self.release(now, ingress, came_by, length, world, scheduler);
        }
    }

    /// A packet that waited, or was to wait, is gone: so is its place in the buffer, if it shares it with no other copy.
    fn leave<S: Scheduler>(&mut self, now: Time, frame: &Frame, world: &World, scheduler: &mut S) {
        if self.leaves_place(frame.flags, frame.share()) {
            self.free(now, usize::from(frame.ingress), frame, world, scheduler);
        }
    }

    /// The place of a packet in the buffer of an input becomes free.
    fn free<S: Scheduler>(
        &mut self,
        now: Time,
        ingress: usize,
        frame: &Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        let length = u32::from(frame.length);
        self.release(now, ingress, frame.lane(), length, world, scheduler);
    }

    /// A packet has left the buffer of an input's lane.
    fn release<S: Scheduler>(
        &mut self,
        now: Time,
        ingress: usize,
        lane: u8,
        length: u32,
        world: &World,
        scheduler: &mut S,
    ) {
        if self.ports[ingress].credits.released(lane, length) {
            self.transmit(now, ingress, world, scheduler);
        }
    }

    fn lose(&mut self, now: Time, port: usize, frame: &Frame, reason: DropReason) {
        let endpoint = Endpoint {
            node: NodeId(self.id),
            port: PortId(port as u16),
        };
        // All lanes are lossless: only links, missing routes and partitions may lose packets.
        let lossless = matches!(
            reason,
            DropReason::BufferFull
                | DropReason::HeadOfQueueLife
                | DropReason::PacketLife
                | DropReason::LaneStalled
        );
        self.losses.count(now, endpoint, frame, reason, lossless);
    }

    /// The link of `port` goes down: what waits for it is lost.
    pub(crate) fn link_down<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        world: &World,
        scheduler: &mut S,
    ) {
        let at = &mut self.ports[port];
        at.transmitter.lose_link(now);
        at.credits.reset();
        for lane in 0..self.ports[port].credits.count() as u8 {
            while let Some(frame) = self.take(now, port, lane) {
                self.discard(now, port, &frame, DropReason::LinkDown, world, scheduler);
            }
        }
    }

    /// The link of `port` comes back: both ends tell what they have room for.
    pub(crate) fn link_up<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        world: &World,
        scheduler: &mut S,
    ) {
        let at = &mut self.ports[port];
        at.transmitter.link.up = true;
        at.credits.announce_all();
        self.transmit(now, port, world, scheduler);
    }

    /// Takes the samples that are due.
    pub(crate) fn sample(&mut self, now: Time) {
        let ports = &mut self.ports;
        if let Some(recorder) = &mut self.recorder {
            let peaks: Vec<u64> = ports
                .iter_mut()
                .map(|port| std::mem::replace(&mut port.peak, port.queued))
                .collect();
            recorder.sample(now, NodeTotals::default(), |port| {
                let at = &ports[port];
                PortProbe {
                    transmitter: &at.transmitter,
                    peak: peaks[port],
                    queued: at.queued,
                    area: at.area,
                    changed: at.changed,
                    by_credit: true,
                }
            });
        }
    }

    /// Closes all open accounts at the end of a run.
    pub(crate) fn close(&mut self, now: Time) {
        for (index, port) in self.ports.iter_mut().enumerate() {
            if let Some(congestion) = &mut self.congestion {
                congestion.close(now, index, &mut port.transmitter.port);
            }
            port.transmitter.close(now);
        }
        self.raise_watermarks();
    }

    /// Brings the counters of watermarks up to date: at the end, and before they are polled.
    pub(crate) fn raise_watermarks(&mut self) {
        for port in &mut self.ports {
            for lane in 0..port.credits.count() {
                let counters = &mut port.transmitter.classes[lane & 7];
                counters.raise(ClassCounter::IngressWatermark, port.credits.peak(lane));
            }
        }
    }

    /// What the books say at the end, in words, where they do not add up: each input lane holds what waits from it.
    pub(crate) fn audit(&self) -> Option<String> {
        let lanes = self.ports.first().map_or(0, |port| port.credits.count());
        let mut held = vec![0; self.ports.len() * lanes];
        // Copies of a packet share its place.
        let mut places = BTreeSet::new();
        for output in 0..self.ports.len() {
            for lane in 0..lanes as u8 {
                for frame in self.waiting.of(output, lane) {
                    if frame.flags.has(Flags::MULTICAST) && !places.insert(frame.share()) {
                        continue;
                    }
                    let bytes = credits::blocks(u32::from(frame.length)) * 64;
                    held[usize::from(frame.ingress) * lanes + usize::from(frame.lane())] += bytes;
                }
            }
        }
        for (port, at) in self.ports.iter().enumerate() {
            for lane in 0..lanes {
                let (counted, found) = (at.credits.held(lane), held[port * lanes + lane]);
                if counted != found {
                    return Some(format!(
                        "lane {lane} of port {port} counts {counted} B, {found} B wait"
                    ));
                }
            }
        }
        None
    }

    /// Bytes that all buffers hold, in whole blocks.
    pub(crate) fn held(&self) -> u64 {
        let lanes = |port: &LanePort| -> u64 {
            (0..port.credits.count())
                .map(|lane| port.credits.held(lane))
                .sum()
        };
        self.ports.iter().map(lanes).sum()
    }

    /// Packets that wait in the queues.
    pub(crate) fn queued_packets(&self) -> u64 {
        self.waiting.packets()
    }

    /// The lanes of `port` by which something waits that there is no credit for.
    pub(crate) fn starved(&self, port: usize) -> impl Iterator<Item = u8> + '_ {
        let at = &self.ports[port];
        (0..at.credits.count() as u8).filter(move |&lane| {
            let front = self.waiting.front(port, lane);
            front.is_some_and(|frame| !at.credits.may_send(lane, u32::from(frame.length)))
        })
    }

    /// The outputs and lanes that packets wait for which hold the buffer of an input's lane.
    pub(crate) fn holders(&self, input: u16, lane: u8) -> Vec<(u16, u8)> {
        let mut holders = Vec::new();
        for (output, at) in self.ports.iter().enumerate() {
            for onward in (0..at.credits.count() as u8).filter(|&lane| at.lanes >> lane & 1 != 0) {
                let mut waiting = self.waiting.of(output, onward);
                if waiting.any(|frame| frame.ingress == input && frame.lane() == lane) {
                    holders.push((output as u16, onward));
                }
            }
        }
        holders
    }

    /// Since when the packet at the head of a lane of `port` is there.
    pub(crate) fn head_since(&self, port: usize, lane: u8) -> Time {
        self.ports[port].head_since[usize::from(lane)]
    }
}
