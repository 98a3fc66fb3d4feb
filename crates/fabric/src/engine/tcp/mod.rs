//! A host that speaks TCP: its stack, and the ports that it feeds.
//!
//! ```text
//! flows, ranks ─► writes ─► Stack (connections, processors) ─► transmitter ─► link
//!   ▲                          ▲
//!   └── events ────────────────┴── receive ring, interrupts ◄── link
//! ```
//!
//! It obeys the pause frames of the classes that are lossless for it, and sends none: a receive ring that is full drops.

mod flows;
mod header;
#[cfg(test)]
mod job_tests;
mod messages;
#[cfg(test)]
mod tests;

use rustc_hash::{FxHashMap, FxHashSet};
use softfabric_telemetry::{PortCounter, StackCounter, StackCounters};
use softfabric_units::{Class, ClassMask, Span, Time};

pub(crate) use header::unpack;

use super::capture::check_codec;
use super::event::{Event, Scheduler};
use super::frame::{Flags, Frame, PauseFrame};
use super::host::FlowRecord;
use super::port::Transmitter;
use super::program::{Note, Program};
use super::recorder::{Losses, NodeRecorder, NodeTotals, PortProbe};
use super::world::World;
use crate::plan::{Action, Addressing, Endpoint, HostProfile, NodeId, PortId, SMALLEST_FRAME};
use crate::results::DropReason;
use crate::tcp::{Outgoing, Packet, Stack, StackConfig};
use messages::Reading;

/// One host.
#[derive(Debug)]
pub(crate) struct TcpHost {
    id: u32,
    pub(crate) ports: Vec<Transmitter>,
    stack: Stack,
    addressing: Addressing,
    obeyed: ClassMask,
    flows: FxHashMap<u32, FlowRecord>,
    /// What the ranks of jobs do here, if there are any.
    pub(crate) program: Option<Box<Program>>,
    /// What they have not heard yet.
    notes: Vec<Note>,
    /// How far the connections of jobs that come here have been read.
    reading: FxHashMap<u32, Reading>,
    /// Flows under way that this host has started.
    under_way: Vec<u32>,
    last_finish: Option<Time>,
    /// Flows whose data is sent from here.
    sending: FxHashSet<u32>,
    /// When the stack is to be woken, as far as it is scheduled.
    wake_at: Time,
    pub(crate) wire_fault: Option<String>,
    /// Packets handed to links, and packets taken from them.
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    pub(crate) losses: Losses,
    pub(crate) recorder: Option<NodeRecorder>,
}

/// The timers of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Timer {
    FlowStart(u32),
    /// The stack asked to be woken.
    Wake,
    /// A pause of the class on the port runs out.
    PauseExpiry(usize, Class),
    /// Something is due in the program of the ranks.
    Program,
}

impl Timer {
    fn event(self) -> Event {
        Event::timer(match self {
            Self::FlowStart(flow) => flow & 0xff_ffff,
            Self::Wake => 1 << 24,
            Self::PauseExpiry(port, class) => {
                2 << 24 | (port as u32) << 3 | u32::from(class.as_u8())
            }
            Self::Program => 3 << 24,
        })
    }

    fn from_number(number: u32) -> Self {
        match number >> 24 {
            0 => Self::FlowStart(number),
            1 => Self::Wake,
            2 => Self::PauseExpiry(
                (number >> 3 & 0x1f_ffff) as usize,
                Class::new((number & 7) as u8),
            ),
            _ => Self::Program,
        }
    }
}

impl TcpHost {
    pub(crate) fn new(
        id: NodeId,
        ports: Vec<Transmitter>,
        stack: StackConfig,
        profile: &HostProfile,
    ) -> Self {
        let count = ports.len();
        Self {
            id: id.0,
            ports,
            stack: Stack::new(stack, count),
            addressing: profile.addressing,
            obeyed: profile.lossless,
            flows: FxHashMap::default(),
            program: None,
            notes: Vec::new(),
            reading: FxHashMap::default(),
            under_way: Vec::new(),
            last_finish: None,
            sending: FxHashSet::default(),
            wake_at: Time::NEVER,
            wire_fault: None,
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
        let transmitter = &mut self.ports[port];
        transmitter.count_received(u32::from(frame.length), frame.class);
        if let Some(tap) = &mut transmitter.tap {
            tap.packet(now, false, frame, world);
        }
        if frame.flags.has(Flags::DAMAGED) {
            transmitter.port.count(PortCounter::ReceiveErrors);
            return self.lose(now, port, frame, DropReason::Damaged);
        }
        let plan = &world.plan.flows[frame.flow as usize];
        let Some(header) = unpack(&frame.header, plan, frame.flags.has(Flags::REVERSE)) else {
            debug_assert!(false, "a header that a connection made does not decode");
            return self.lose(now, port, frame, DropReason::Damaged);
        };
        self.answer_flow(now, frame.flow, world);
        let packet = Packet {
            id: frame.flow,
            header,
            payload: u32::from(frame.payload),
            congestion: frame.flags.has(Flags::MARKED),
        };
        if self.stack.arrive(now, packet) {
            self.delivered += 1;
            self.after_work(now, world, scheduler);
        } else {
            self.ports[port].port.count(PortCounter::ReceiveDiscards);
            self.lose(now, port, frame, DropReason::ReceiveBufferFull);
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
        self.ports[port].free_pending = false;
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
        let transmitter = &mut self.ports[port];
        transmitter.count_pause(now, &frame);
        if self.obeyed.contains(frame.class) {
            let obeyed = transmitter.obey(now, frame.class, frame.request);
            if let Some(end) = obeyed.ends {
                scheduler.at(end, Timer::PauseExpiry(port, frame.class).event());
            }
            if obeyed.goes_on {
                self.transmit(now, port, world, scheduler);
            }
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
                self.start_flow(now, flow, world);
                self.after_work(now, world, scheduler);
            }
            Timer::Wake => {
                if now >= self.wake_at {
                    self.wake_at = Time::NEVER;
                    self.stack.handle_timeout(now);
                    self.after_work(now, world, scheduler);
                }
            }
            Timer::PauseExpiry(port, class) => {
                if self.ports[port].pause_expires(now, class) {
                    self.transmit(now, port, world, scheduler);
                }
            }
            Timer::Program => {
                if let Some(program) = &mut self.program {
                    program.alarm(now);
                }
                self.advance(now, world, scheduler);
                self.after_work(now, world, scheduler);
            }
        }
    }

    /// The stack has been given something: look at what applications should know, send what can be sent, set the alarm.
    fn after_work<S: Scheduler>(&mut self, now: Time, world: &World, scheduler: &mut S) {
        self.reap(now, world, scheduler);
        if !self.notes.is_empty() {
            self.advance(now, world, scheduler);
        }
        for port in 0..self.ports.len() {
            self.transmit(now, port, world, scheduler);
        }
    }

    /// Sends what may be sent next, if the transmitter is free, and makes sure that the stack is woken when it wants to be:
    /// what is sent starts timers.
    fn transmit<S: Scheduler>(&mut self, now: Time, port: usize, world: &World, scheduler: &mut S) {
        self.send_next(now, port, world, scheduler);
        if let Some(time) = self.stack.poll_timeout()
            && time < self.wake_at
        {
            self.wake_at = time.max(now);
            scheduler.at(self.wake_at, Timer::Wake.event());
        }
    }

    fn send_next<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        world: &World,
        scheduler: &mut S,
    ) {
        let transmitter = &mut self.ports[port];
        if transmitter.must_wait(now, port, scheduler) {
            return;
        }
        let open = ClassMask::ALL.minus(transmitter.paused.mask);
        let Some(outgoing) = self.stack.poll_transmit(now, port, open) else {
            return;
        };
        let frame = self.frame(&outgoing, world);
        let transmitter = &mut self.ports[port];
        let busy = transmitter.occupy(now, u32::from(frame.length), frame.class);
        if let Some(tap) = &mut transmitter.tap {
            tap.packet(now, true, &frame, world);
        }
        if world.plan.recording.check_wire && self.wire_fault.is_none() {
            self.wire_fault = check_codec(&frame, world);
        }
        transmitter.tell_when_free(port, scheduler);
        transmitter.launch(now, busy, frame, scheduler);
        self.sent += 1;
    }

    /// A segment as the network sees it.
    fn frame(&self, outgoing: &Outgoing, world: &World) -> Frame {
        let flow = outgoing.id;
        let address = &world.flows[flow as usize];
        let plan = &world.plan.flows[flow as usize];
        let forward = plan.source.0 == self.id;
        let (destination, entropy) = if forward {
            (address.destination, address.entropy)
        } else {
            (address.source, address.reverse_entropy)
        };
        let segment = &outgoing.segment;
        let length = self.addressing.tcp_overhead().as_u64()
            + segment.header.length() as u64
            + u64::from(segment.payload);
        Frame {
            time: Time::NEVER,
            destination,
            flow,
            entropy,
            length: length.max(SMALLEST_FRAME.as_u64()) as u16,
            payload: segment.payload as u16,
            ingress: 0,
            class: outgoing.class,
            mark: plan.dscp.unwrap_or(outgoing.class.as_u8() << 3),
            flags: Flags::default()
                .with(Flags::REVERSE, !forward)
                .with(Flags::ECN_CAPABLE, segment.ecn_capable),
            header: header::pack(&segment.header),
        }
    }

    fn lose(&mut self, now: Time, port: usize, frame: &Frame, reason: DropReason) {
        let endpoint = Endpoint {
            node: NodeId(self.id),
            port: PortId(port as u16),
        };
        self.losses.count(now, endpoint, frame, reason, false);
    }

    /// Something happens to this host.
    pub(crate) fn act<S: Scheduler>(
        &mut self,
        now: Time,
        action: Action,
        world: &World,
        scheduler: &mut S,
    ) {
        match action {
            Action::PfcOff(class) => {
                self.obeyed = self.obeyed.without(class);
                for port in &mut self.ports {
                    port.forget_pauses(now, class);
                }
            }
            Action::SourceStops(_) => self.stop_sources(world),
            Action::Slowness(_, slowness) => {
                self.stack.set_slowness(slowness);
                if let Some(program) = &mut self.program {
                    program.slowness = slowness;
                }
            }
            // `Plan::check` refuses the others for such a host.
            _ => return,
        }
        self.after_work(now, world, scheduler);
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
        if up {
            self.ports[port].link.up = true;
            self.transmit(now, port, world, scheduler);
        } else {
            self.ports[port].lose_link(now);
        }
    }

    /// What a run waits for when all flows are done: packets (those that wait for a processor are delivered, they are
    /// counted when they come in), and applications that read what has come.
    pub(crate) fn balance(&self) -> i64 {
        self.sent as i64 - self.delivered as i64 - self.losses.total as i64
            + self.stack.reads_under_way() as i64
    }

    /// When the last of its flows finished.
    pub(crate) fn last_finish(&self) -> Option<Time> {
        self.last_finish
    }

    /// How large segments are: header with the options of data, and payload; and the frames of a SYN and of its answer.
    pub(crate) fn sizes(&self) -> SegmentSizes {
        let tcp = &self.stack.config().tcp;
        let options = if tcp.timestamps { 12 } else { 0 };
        let around = self.addressing.tcp_overhead().as_u64() + 20;
        let with_syn = 4 + 4 + if tcp.sack { 4 } else { 0 } + options;
        let frame = |length: u64| length.max(SMALLEST_FRAME.as_u64()) as u32;
        SegmentSizes {
            payload: tcp.maximum_segment.as_u64().saturating_sub(options).max(1),
            around: around + options,
            syn: frame(around + with_syn),
            acknowledgement: frame(around + options),
        }
    }

    /// What the stack has counted.
    pub(crate) fn counters(&self) -> (StackCounters, u32) {
        let found = self.stack.statistics();
        let connections = &found.connections;
        let mut counters = StackCounters::default();
        for (counter, value) in [
            (StackCounter::SegmentsSent, connections.sent),
            (StackCounter::SegmentsReceived, found.frames),
            (StackCounter::Retransmitted, connections.retransmitted),
            (StackCounter::Timeouts, connections.timeouts),
            (StackCounter::FastRecoveries, connections.fast_recoveries),
            (StackCounter::MarkReductions, connections.reductions),
            (StackCounter::EchoesReceived, connections.echoes),
            (StackCounter::MarkedReceived, connections.marked),
            (StackCounter::Acknowledgements, connections.acknowledgements),
            (StackCounter::OutOfOrder, connections.out_of_order),
            (StackCounter::Duplicates, connections.duplicates),
            (StackCounter::Merged, found.merged),
            (StackCounter::RingDropped, found.ring_dropped),
            (StackCounter::Interrupts, found.interrupts),
            (StackCounter::SystemCalls, found.system_calls),
            (
                StackCounter::SystemCallTime,
                found.time.system_calls.as_picos(),
            ),
            (StackCounter::CopyTime, found.time.copies.as_picos()),
            (StackCounter::StackTime, found.time.stack.as_picos()),
            (
                StackCounter::InterruptTime,
                found.time.interrupts.as_picos(),
            ),
        ] {
            counters.add(counter, value);
        }
        let cores = self.stack.config().cpu.map_or(0, |cpu| cpu.cores);
        (counters, cores)
    }

    /// Takes the samples that are due.
    pub(crate) fn sample(&mut self, now: Time) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        for track in &mut recorder.flows {
            track.bytes = self.stack.read(track.flow);
            // What the window allows a round trip, up to the line.
            if let Some(connection) = self.stack.connection(track.flow)
                && let Some(port) = self.stack.port(track.flow)
                && self.sending.contains(&track.flow)
            {
                let line = self.ports[port].link.rate.as_bps() as f64;
                let window = connection.congestion_window() as f64 * 8.0;
                track.allowed = connection
                    .round_trip()
                    .filter(|span| *span > Span::ZERO)
                    .map_or(line, |span| (window / span.as_seconds_f64()).min(line));
            }
        }
        let totals = NodeTotals {
            notifications: 0,
            delivered: self.stack.delivered(),
        };
        let ports = &self.ports;
        recorder.sample(now, totals, |port| PortProbe {
            transmitter: &ports[port],
            peak: 0,
            queued: 0,
            area: 0,
            changed: Time::ZERO,
            by_credit: false,
        });
    }
}

/// How long the frames of a connection that errs in nothing are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentSizes {
    /// Payload of a full segment.
    pub(crate) payload: u64,
    /// Everything else in its frame.
    pub(crate) around: u64,
    /// The frame of a SYN.
    pub(crate) syn: u32,
    /// The frame of an acknowledgement.
    pub(crate) acknowledgement: u32,
}
