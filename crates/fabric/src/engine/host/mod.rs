//! A host: the NIC that drives the transport, the path on which packets reach memory, and the flows.
//!
//! ```text
//! flows ─► work requests ─► transport (Device) ─► transmitter ─► link
//!   ▲                          ▲
//!   └── completions ───────────┴── receive path (memory that may be slow, and pauses the switch) ◄── link
//! ```
//!
//! Losslessness is this driver's business: a class that the switch has paused is not polled, and the transport never
//! hears of it.

mod flows;
mod lanes;
mod memory;
mod multicast;
mod nic;
mod receive;

use std::sync::atomic::Ordering;

use softfabric_telemetry::PortCounter;
use softfabric_units::{Bytes, Class, ClassMask, Time};

pub(crate) use flows::{FlowRecord, QueuePairSettings, signal};
pub(crate) use lanes::HostLanes;
pub(crate) use nic::{Nic, NicSetup};

use super::event::{Event, Scheduler};
use super::frame::{CreditFrame, Flags, Frame, PauseFrame};
use super::program::{Carrier, Note, Program};
use super::recorder::{Losses, NodeRecorder, NodeTotals, PortProbe};
use super::world::World;
use crate::plan::{Action, Endpoint, NodeId, PortId};
use crate::results::DropReason;

/// One host.
#[derive(Debug)]
pub(crate) struct Host {
    id: u32,
    /// One NIC a port.
    pub(crate) nics: Vec<Nic>,
    /// What the ranks of jobs do here, if there are any.
    pub(crate) program: Option<Box<Program>>,
    /// Packets handed to links, and packets taken from them.
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    pub(crate) losses: Losses,
    pub(crate) recorder: Option<NodeRecorder>,
}

/// The port whose work requests move a flow.
fn starting_port(flow: u32, world: &World) -> usize {
    usize::from(world.flows[flow as usize].starting_port)
}

/// The timers of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// The flow starts.
    FlowStart(u32),
    /// The transport of the port asked to be woken.
    Wake(usize),
    /// A pause of the class on the port runs out.
    PauseExpiry(usize, Class),
    /// A pause that this host asks for is about to run out.
    PauseRefresh(usize, Class),
    /// Memory has taken the packet at the head of the port's receive buffer.
    Drained(usize),
    /// Something is due in the program of the ranks.
    Program,
}

impl Timer {
    pub(super) fn event(self) -> Event {
        let number =
            |kind: u32, port: usize, class: u8| kind << 24 | (port as u32) << 3 | u32::from(class);
        Event::timer(match self {
            Self::FlowStart(flow) => flow & 0xff_ffff,
            Self::Wake(port) => number(1, port, 0),
            Self::PauseExpiry(port, class) => number(2, port, class.as_u8()),
            Self::PauseRefresh(port, class) => number(3, port, class.as_u8()),
            Self::Drained(port) => number(4, port, 0),
            Self::Program => number(5, 0, 0),
        })
    }

    fn from_number(number: u32) -> Self {
        let port = (number >> 3 & 0x1f_ffff) as usize;
        let class = Class::new((number & 7) as u8);
        match number >> 24 {
            0 => Self::FlowStart(number & 0xff_ffff),
            1 => Self::Wake(port),
            2 => Self::PauseExpiry(port, class),
            3 => Self::PauseRefresh(port, class),
            4 => Self::Drained(port),
            _ => Self::Program,
        }
    }
}

impl Host {
    pub(crate) fn new(id: NodeId, nics: Vec<Nic>) -> Self {
        Self {
            id: id.0,
            nics,
            program: None,
            sent: 0,
            delivered: 0,
            losses: Losses::default(),
            recorder: None,
        }
    }

    /// Asks for a flow of this host to start at `time`.
    pub(crate) fn schedule_flow<S: Scheduler>(&mut self, flow: u32, time: Time, scheduler: &mut S) {
        scheduler.at(time, Timer::FlowStart(flow).event());
    }

    /// A packet has come in.
    pub(crate) fn packet<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        let nic = &mut self.nics[port];
        nic.transmitter
            .count_received(u32::from(frame.length), frame.class);
        if let Some(tap) = &mut nic.transmitter.tap {
            tap.packet(now, false, frame, world);
        }
        if nic.lanes.is_some() {
            return self.packet_by_lane(now, port, frame, world, scheduler);
        }
        if frame.flags.has(Flags::DAMAGED) {
            nic.transmitter.port.count(PortCounter::ReceiveErrors);
            return self.lose(now, port, frame, DropReason::Damaged, false);
        }
        if nic.receive.takes_at_once() {
            self.deliver(now, port, frame, world, scheduler);
        } else if nic.receive.has_room(frame) {
            self.wait_for_memory(now, port, frame, scheduler);
            let nic = &mut self.nics[port];
            if nic.wants_pause(frame.class) {
                nic.speak(now, port, frame.class, true, scheduler);
                self.transmit(now, port, world, scheduler);
            }
        } else {
            nic.transmitter.port.count(PortCounter::ReceiveDiscards);
            let lossless = nic.lossless.contains(frame.class);
            self.lose(now, port, frame, DropReason::ReceiveBufferFull, lossless);
        }
    }

    /// The same on InfiniBand, where the sender knew that there is room.
    fn packet_by_lane<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        let nic = &mut self.nics[port];
        nic.count_heard(frame);
        let Some(lanes) = &mut nic.lanes else {
            return;
        };
        let has_room = lanes.credits.arrived(frame.lane(), u32::from(frame.length));
        let counters = &mut nic.transmitter.port;
        if !has_room {
            counters.count(PortCounter::ReceiveDiscards);
            return self.lose(now, port, frame, DropReason::ReceiveBufferFull, true);
        }
        let refused = if frame.flags.has(Flags::DAMAGED) {
            counters.count(PortCounter::ReceiveErrors);
            Some(DropReason::Damaged)
        } else if !lanes.takes(frame) {
            counters.count(PortCounter::PartitionKeyViolations);
            Some(DropReason::PartitionKey)
        } else {
            None
        };
        if let Some(reason) = refused {
            self.lose(now, port, frame, reason, false);
        } else if nic.receive.takes_at_once() {
            self.deliver(now, port, frame, world, scheduler);
        } else {
            return self.wait_for_memory(now, port, frame, scheduler);
        }
        self.release(now, port, frame, world, scheduler);
    }

    /// A packet waits in the receive buffer.
    fn wait_for_memory<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        scheduler: &mut S,
    ) {
        if let Some(done) = self.nics[port].receive.push(now, *frame) {
            scheduler.at(done, Timer::Drained(port).event());
        }
    }

    /// A packet has left the receive buffer: on InfiniBand, the other end may send as much anew.
    #[inline]
    fn release<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        if let Some(lanes) = &mut self.nics[port].lanes
            && lanes
                .credits
                .released(frame.lane(), u32::from(frame.length))
        {
            self.transmit(now, port, world, scheduler);
        }
    }

    /// The other end of the link grants credit.
    pub(crate) fn credit<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        credit: CreditFrame,
        world: &World,
        scheduler: &mut S,
    ) {
        let nic = &mut self.nics[port];
        nic.transmitter.count_credit(now, &credit);
        if let Some(lanes) = &mut nic.lanes {
            lanes.credits.granted(credit.lane, credit.limit);
            self.transmit(now, port, world, scheduler);
        }
    }

    /// The transmitter has become free.
    pub(crate) fn port_free<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        world: &World,
        scheduler: &mut S,
    ) {
        self.nics[port].transmitter.free_pending = false;
        self.transmit(now, port, world, scheduler);
    }

    /// A pause frame has come in.
    pub(crate) fn pause<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: PauseFrame,
        world: &World,
        scheduler: &mut S,
    ) {
        if let Some(recorder) = &mut self.recorder {
            recorder.log_pause(now, port, &frame);
        }
        if self.nics[port].pause(now, port, frame, scheduler) {
            self.transmit(now, port, world, scheduler);
        }
    }

    /// A timer has run out.
    pub(crate) fn timer<S: Scheduler>(
        &mut self,
        now: Time,
        number: u32,
        world: &World,
        scheduler: &mut S,
    ) {
        match Timer::from_number(number) {
            Timer::FlowStart(flow) => {
                let port = starting_port(flow, world);
                self.nics[port].start_flow(now, flow, self.id, world);
                self.follow(flow, port);
                self.after_work(now, port, world, scheduler);
            }
            Timer::Wake(port) => {
                if self.nics[port].wake(now) {
                    self.after_work(now, port, world, scheduler);
                }
            }
            Timer::PauseExpiry(port, class) => {
                if self.nics[port].transmitter.pause_expires(now, class) {
                    self.transmit(now, port, world, scheduler);
                }
            }
            Timer::PauseRefresh(port, class) => {
                let nic = &mut self.nics[port];
                if nic.pausing.contains(class) {
                    nic.speak(now, port, class, true, scheduler);
                    self.transmit(now, port, world, scheduler);
                }
            }
            Timer::Drained(port) => self.drained(now, port, world, scheduler),
            Timer::Program => {
                if let Some(program) = &mut self.program {
                    program.alarm(now);
                }
                self.advance(now, world, scheduler);
            }
        }
    }

    /// Asks to be told when the ranks begin.
    pub(crate) fn schedule_program<S: Scheduler>(&mut self, scheduler: &mut S) {
        if let Some(program) = &mut self.program
            && let Some(time) = program.next_alarm()
        {
            scheduler.at(time, Timer::Program.event());
        }
    }

    /// The ranks hear what NICs have to say, and say what is to be posted.
    fn advance<S: Scheduler>(&mut self, now: Time, world: &World, scheduler: &mut S) {
        let Some(program) = &mut self.program else {
            return;
        };
        let mut queue_pairs = QueuePairs {
            nics: &mut self.nics,
            host: self.id,
            world,
            scheduler,
            touched: 0,
        };
        let ended = program.converse(now, &mut queue_pairs);
        let touched = queue_pairs.touched;
        world.flows_left.fetch_sub(ended, Ordering::Relaxed);
        self.schedule_program(scheduler);
        for port in (0..self.nics.len()).filter(|port| touched & 1 << (port & 63) != 0) {
            self.transmit(now, port, world, scheduler);
        }
    }

    fn drained<S: Scheduler>(&mut self, now: Time, port: usize, world: &World, scheduler: &mut S) {
        let nic = &mut self.nics[port];
        let Some(frame) = nic.receive.pop() else {
            return;
        };
        if let Some(done) = nic.receive.next_done(now) {
            scheduler.at(done, Timer::Drained(port).event());
        }
        for class in nic
            .pausing
            .iter()
            .filter(|&class| nic.allows_resume(class))
            .collect::<Vec<_>>()
        {
            nic.speak(now, port, class, false, scheduler);
        }
        self.deliver(now, port, &frame, world, scheduler);
        self.release(now, port, &frame, world, scheduler);
    }

    /// A packet reaches memory: the transport takes it.
    fn deliver<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        self.delivered += 1;
        let placed = self.nics[port].take(now, frame, self.id, world, scheduler);
        if let Some(recorder) = &mut self.recorder
            && placed > 0
            && let Some(track) = recorder
                .flows
                .iter_mut()
                .find(|track| track.flow == frame.flow)
        {
            track.bytes += placed;
        }
        self.after_work(now, port, world, scheduler);
    }

    /// The transport has been given something: look at completions, send what can be sent, set the alarm.
    fn after_work<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        world: &World,
        scheduler: &mut S,
    ) {
        self.nics[port].reap(now, world, scheduler);
        if !self.nics[port].notes.is_empty() {
            self.advance(now, world, scheduler);
        }
        self.transmit(now, port, world, scheduler);
    }

    fn transmit<S: Scheduler>(&mut self, now: Time, port: usize, world: &World, scheduler: &mut S) {
        if !self.nics[port].transmitter.link.up {
            return self.send_into_nothing(now, port, world, scheduler);
        }
        if self.nics[port].transmit(now, port, self.id, world, scheduler) {
            self.sent += 1;
        }
    }

    /// A port without a link sends on, and what it sends is lost: only so do queue pairs learn of it, by their timeouts.
    fn send_into_nothing<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        world: &World,
        scheduler: &mut S,
    ) {
        if let Some(frame) = self.nics[port].waste(now, port, self.id, world, scheduler) {
            self.sent += 1;
            self.lose(now, port, &frame, DropReason::LinkDown, false);
        }
    }

    fn lose(&mut self, now: Time, port: usize, frame: &Frame, reason: DropReason, lossless: bool) {
        let endpoint = Endpoint {
            node: NodeId(self.id),
            port: PortId(port as u16),
        };
        self.losses.count(now, endpoint, frame, reason, lossless);
    }

    /// Something happens to this host.
    pub(crate) fn act<S: Scheduler>(
        &mut self,
        now: Time,
        action: Action,
        world: &World,
        scheduler: &mut S,
    ) {
        if let (Action::Slowness(_, slowness), Some(program)) = (action, &mut self.program) {
            program.slowness = slowness;
        }
        for port in 0..self.nics.len() {
            let nic = &mut self.nics[port];
            match action {
                Action::DrainRate(_, rate) => {
                    if let Some(done) = nic.receive.set_drain(now, rate) {
                        scheduler.at(done, Timer::Drained(port).event());
                    }
                }
                Action::StormBegins(_, class) => {
                    nic.storming = nic.storming.with(class);
                    nic.speak(now, port, class, true, scheduler);
                }
                Action::StormEnds(_, class) => {
                    nic.storming = nic.storming.without(class);
                    nic.speak(now, port, class, false, scheduler);
                }
                Action::PfcOff(class) => nic.pfc_off(now, class),
                Action::SourceStops(_) => nic.stop_sources(world),
                Action::LinkDown(_)
                | Action::LinkUp(_)
                | Action::BitErrorRate(..)
                | Action::Slowness(..) => continue,
            }
            self.after_work(now, port, world, scheduler);
        }
    }

    /// The link of `port` goes down or comes back.
    pub(crate) fn set_link<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        up: bool,
        world: &World,
        scheduler: &mut S,
    ) {
        let nic = &mut self.nics[port];
        if up {
            nic.transmitter.link.up = true;
            if let Some(lanes) = &mut nic.lanes {
                lanes.credits.announce_all();
            }
        } else {
            nic.transmitter.lose_link(now);
            if let Some(lanes) = &mut nic.lanes {
                lanes.credits.reset();
            }
            nic.pausing = ClassMask::NONE;
        }
        self.transmit(now, port, world, scheduler);
    }

    /// Tells the recorder what the sender of `flow` may send now.
    fn follow(&mut self, flow: u32, port: usize) {
        if let Some(recorder) = &mut self.recorder
            && let Some(track) = recorder.flows.iter_mut().find(|track| track.flow == flow)
        {
            track.allowed = self.nics[port].transmitter.link.rate.as_bps() as f64;
        }
    }

    /// Takes the samples that are due.
    pub(crate) fn sample(&mut self, now: Time) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let totals = NodeTotals {
            notifications: self.nics.iter().map(Nic::notifications).sum(),
            delivered: self.nics.iter().map(Nic::placed).sum(),
        };
        for track in &mut recorder.flows {
            for nic in &mut self.nics {
                if let Some(rate) = nic.allowed_rate(now, track.flow) {
                    track.allowed = rate.as_bps() as f64;
                } else if track.allowed == 0.0 && nic.flows.sending(track.flow).is_some() {
                    track.allowed = nic.transmitter.link.rate.as_bps() as f64;
                }
            }
        }
        let nics = &self.nics;
        recorder.sample(now, totals, |port| PortProbe {
            transmitter: &nics[port].transmitter,
            peak: 0,
            queued: 0,
            area: 0,
            changed: Time::ZERO,
            by_credit: nics[port].lanes.is_some(),
        });
    }
}

/// The queue pairs of a host's NICs, for its ranks.
struct QueuePairs<'h, 'p, S> {
    nics: &'h mut [Nic],
    host: u32,
    world: &'h World<'p>,
    scheduler: &'h mut S,
    /// Ports (by their number, less multiples of 64) that may have something to send.
    touched: u64,
}

impl<S: Scheduler> QueuePairs<'_, '_, S> {
    fn nic(&mut self, flow: u32) -> &mut Nic {
        let port = starting_port(flow, self.world);
        self.touched |= 1 << (port & 63);
        &mut self.nics[port]
    }
}

impl<S: Scheduler> Carrier for QueuePairs<'_, '_, S> {
    fn open(&mut self, now: Time, flow: u32) {
        let (host, world) = (self.host, self.world);
        self.nic(flow).start_flow(now, flow, host, world);
    }

    fn post(&mut self, now: Time, flow: u32, message: u32, bytes: Bytes) {
        let port = starting_port(flow, self.world);
        self.nic(flow).post_message(now, flow, message, bytes);
        self.nics[port].reap(now, self.world, self.scheduler);
    }

    fn close(&mut self, now: Time, flow: u32) {
        let world = self.world;
        self.nic(flow).close_fed(now, flow, world);
    }

    fn take_notes(&mut self) -> Vec<Note> {
        let notes = self.nics.iter_mut().map(|nic| &mut nic.notes);
        notes.flat_map(std::mem::take).collect()
    }
}
