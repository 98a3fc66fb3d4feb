//! How long packets stay in a switch: what outlives its life is discarded (IBTA vol. 1, 18.2.5.4, Transmitter
//! Queuing).
//!
//! ```text
//! in the switch for too long (LifeTimeValue) ──► discarded, wherever it waits
//! at the head of a lane for too long (HOQLife) ─► discarded ─► so many in a row (VLStallCount) ─► the lane is stalled
//!                                                                 discards all that waits and comes, for 8 · HOQLife
//! ```
//!
//! Timers are lazy: one of each kind a port, set for the oldest packet there is and set anew when it runs out. No packet
//! lives longer than it may, as no younger one dies first.
//!
//! Invariant: while a packet waits at a port where packets have a life, the port's timer of that kind runs, and ends no
//! later than the packet's life.

use softfabric_telemetry::PortCounter;
use softfabric_units::{Span, Time};

use super::LaneSwitch;
use crate::engine::event::{Event, Scheduler};
use crate::engine::frame::Frame;
use crate::engine::world::World;
use crate::plan::{DATA_LANES, PacketLife};
use crate::results::DropReason;

/// A stalled lane stays so for so many lives at the head of its queue.
const STALLED_LIVES: u64 = 8;
/// The timer of the life in the switch; that of the life at the head has the port's own number.
const IN_SWITCH: u32 = 1 << 16;

/// The lives of packets in a switch.
#[derive(Debug)]
pub(super) struct Lives {
    in_switch: Option<Span>,
    stall_count: Option<u8>,
    ports: Box<[Port]>,
}

#[derive(Debug)]
struct Port {
    at_head: Option<Span>,
    head_timer: bool,
    switch_timer: bool,
    lanes: [Lane; DATA_LANES],
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    /// Packets that were discarded at the head since the last one that was sent.
    in_a_row: u8,
    stalled_until: Time,
}

impl Lives {
    /// Lives as a profile has them, if it limits any; `at_host` says which ports lead to a host.
    fn new(life: &PacketLife, at_host: &[bool]) -> Option<Box<Self>> {
        let limits = [life.in_switch, life.at_head, life.at_head_to_host];
        limits.into_iter().flatten().next()?;
        let fresh = Lane {
            in_a_row: 0,
            stalled_until: Time::ZERO,
        };
        let port = |&to_host: &bool| Port {
            at_head: if to_host {
                life.at_head_to_host
            } else {
                life.at_head
            },
            head_timer: false,
            switch_timer: false,
            lanes: [fresh; DATA_LANES],
        };
        Some(Box::new(Self {
            in_switch: life.in_switch,
            stall_count: life.stall_count,
            ports: at_host.iter().map(port).collect(),
        }))
    }

    /// Whether a lane of a port discards all that comes.
    pub(super) fn is_stalled(&self, now: Time, port: usize, lane: u8) -> bool {
        now < self.ports[port].lanes[usize::from(lane)].stalled_until
    }

    /// A lane of a port has sent a packet.
    pub(super) fn sent(&mut self, port: usize, lane: u8) {
        self.ports[port].lanes[usize::from(lane)].in_a_row = 0;
    }

    /// The head of a lane was discarded after `life`. True if that stalls the lane.
    fn discarded(&mut self, now: Time, port: usize, lane: u8, life: Span) -> bool {
        let Some(count) = self.stall_count else {
            return false;
        };
        let lane = &mut self.ports[port].lanes[usize::from(lane)];
        lane.in_a_row += 1;
        if lane.in_a_row < count {
            return false;
        }
        lane.in_a_row = 0;
        lane.stalled_until = now.saturating_add(life * STALLED_LIVES);
        true
    }
}

impl LaneSwitch {
    /// Limits how long packets stay; `at_host` says which ports lead to a host.
    pub(crate) fn limit_lives(&mut self, life: &PacketLife, at_host: &[bool]) {
        self.lives = Lives::new(life, at_host);
    }

    /// Whether nothing waits at `port` for ever.
    pub(crate) fn ends_waits(&self, port: usize) -> bool {
        let ends = |lives: &Lives| lives.in_switch.or(lives.ports[port].at_head).is_some();
        self.lives.as_deref().is_some_and(ends)
    }

    /// A packet has come to wait at `port`: it must not do so for longer than its life.
    pub(super) fn watch<S: Scheduler>(&mut self, now: Time, port: usize, scheduler: &mut S) {
        let Some(lives) = &mut self.lives else {
            return;
        };
        let at = &mut lives.ports[port];
        if let Some(life) = at.at_head
            && !std::mem::replace(&mut at.head_timer, true)
        {
            scheduler.at(now.saturating_add(life), Event::timer(port as u32));
        }
        if let Some(life) = lives.in_switch
            && !std::mem::replace(&mut at.switch_timer, true)
        {
            let timer = Event::timer(IN_SWITCH | port as u32);
            scheduler.at(now.saturating_add(life), timer);
        }
    }

    /// A packet may have waited for too long.
    #[cold]
    pub(crate) fn timer<S: Scheduler>(
        &mut self,
        now: Time,
        number: u32,
        world: &World,
        scheduler: &mut S,
    ) {
        let port = (number & !IN_SWITCH) as usize;
        let next = if number & IN_SWITCH != 0 {
            self.end_lives_in_switch(now, port, world, scheduler)
        } else {
            self.end_lives_at_head(now, port, world, scheduler)
        };
        if let Some(lives) = &mut self.lives {
            let at = &mut lives.ports[port];
            let timer = if number & IN_SWITCH != 0 {
                &mut at.switch_timer
            } else {
                &mut at.head_timer
            };
            *timer = next.is_some();
        }
        if let Some(next) = next {
            scheduler.at(next, Event::timer(number));
        }
        // What waits now may be shorter than what was discarded, and have the credit that it needs.
        self.transmit(now, port, world, scheduler);
    }

    /// Discards heads of lanes that have been there for too long. Returns when the next one will have been.
    fn end_lives_at_head<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        world: &World,
        scheduler: &mut S,
    ) -> Option<Time> {
        let life = self.lives.as_ref()?.ports[port].at_head?;
        for lane in 0..DATA_LANES as u8 {
            let at = &self.ports[port];
            let since = at.head_since[usize::from(lane)];
            if at.lanes >> lane & 1 == 0 || now.since(since) < life {
                continue;
            }
            let reason = DropReason::HeadOfQueueLife;
            self.discard_head(now, port, lane, reason, world, scheduler);
            let stalls = |lives: &mut Box<Lives>| lives.discarded(now, port, lane, life);
            if self.lives.as_mut().is_some_and(stalls) {
                let reason = DropReason::LaneStalled;
                while self.discard_head(now, port, lane, reason, world, scheduler) {}
            }
        }
        let at = &self.ports[port];
        let heads = (0..DATA_LANES).filter(|lane| at.lanes >> lane & 1 != 0);
        let oldest = heads.map(|lane| at.head_since[lane]).min()?;
        Some(oldest.saturating_add(life))
    }

    /// Discards what has been in the switch for too long and waits at `port`. Returns when the next packet will have been.
    fn end_lives_in_switch<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        world: &World,
        scheduler: &mut S,
    ) -> Option<Time> {
        let life = self.lives.as_ref()?.in_switch?;
        let mut oldest: Option<Time> = None;
        for lane in 0..self.ports[port].credits.count() as u8 {
            // Each input's packets wait in the order in which they came.
            let inputs: Vec<u16> = self.waiting.inputs(port, lane).collect();
            for input in inputs {
                while let Some(came) = self.waiting.first_of(port, lane, input) {
                    if now.since(came) < life {
                        oldest = Some(oldest.map_or(came, |oldest| oldest.min(came)));
                        break;
                    }
                    let Some(frame) = self.take_of(now, port, lane, input) else {
                        break;
                    };
                    let reason = DropReason::PacketLife;
                    self.discard(now, port, &frame, reason, world, scheduler);
                }
            }
        }
        oldest.map(|oldest| oldest.saturating_add(life))
    }

    /// Discards the packet at the head of a lane of `port`; `false` if there is none.
    fn discard_head<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        lane: u8,
        reason: DropReason,
        world: &World,
        scheduler: &mut S,
    ) -> bool {
        let Some(frame) = self.take(now, port, lane) else {
            return false;
        };
        self.discard(now, port, &frame, reason, world, scheduler);
        true
    }

    /// A packet that was to leave by `port`, and is in no queue any more, is lost; its room is free.
    #[cold]
    pub(super) fn discard<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        reason: DropReason,
        world: &World,
        scheduler: &mut S,
    ) {
        let counters = &mut self.ports[port].transmitter.port;
        counters.count(PortCounter::TransmitDiscards);
        match reason {
            DropReason::HeadOfQueueLife => counters.count(PortCounter::HeadLifeDiscards),
            DropReason::PacketLife => counters.count(PortCounter::SwitchLifeDiscards),
            _ => {}
        }
        self.lose(now, usize::from(frame.ingress), frame, reason);
        self.leave(now, frame, world, scheduler);
    }
}
