//! The nodes of one thread: their agendas, the wires that lead to them, and what they send elsewhere.
//!
//! Packets for a node of the same part go straight onto their wire; those for another part wait in a box until the
//! window ends. Either way a wire has one sender, so it stays in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use softfabric_units::Time;

use super::super::event::{Event, EventKind, Scheduler, Signal};
use super::super::frame::{Control, Frame};
use super::super::link::{OutLink, Wire};
use super::super::node::Node;
use super::super::world::World;

/// A node's own events, earliest first. The key holds time and event code, so that ties are settled by the code.
#[derive(Debug, Default)]
pub(crate) struct Agenda(BinaryHeap<Reverse<u128>>);

#[inline]
fn key(time: Time, event: Event) -> u128 {
    u128::from(time.as_picos()) << 32 | u128::from(event.code())
}

impl Agenda {
    #[inline]
    fn push(&mut self, time: Time, event: Event) {
        self.0.push(Reverse(key(time, event)));
    }

    #[inline]
    fn pop_before(&mut self, end: Time) -> Option<(Time, Event)> {
        let Reverse(key) = *self.0.peek()?;
        let time = Time::from_picos((key >> 32) as u64);
        if time >= end {
            return None;
        }
        self.0.pop();
        Some((time, Event::from_code(key as u32)))
    }

    /// Whether everything here comes after `event` at `time`.
    #[inline]
    fn is_after(&self, time: Time, event: Event) -> bool {
        let key = key(time, event);
        self.0.peek().is_none_or(|Reverse(first)| *first > key)
    }

    fn first(&self) -> Time {
        self.0.peek().map_or(Time::NEVER, |Reverse(key)| {
            Time::from_picos((key >> 32) as u64)
        })
    }
}

/// The nodes of one thread, their wires and what they send to other parts.
#[derive(Debug)]
pub(crate) struct Part {
    nodes: Range<usize>,
    /// The first wire of each node, and one more.
    pub(crate) first_wire: Vec<u32>,
    wires: Range<u32>,
    pub(crate) members: Vec<Node>,
    agendas: Vec<Agenda>,
    pub(crate) arrivals: Vec<Wire>,
    /// When each node has to be looked at next.
    next: Vec<Time>,
    fresh: Vec<Vec<(Time, Event)>>,
    /// For each other part, what is to cross.
    outboxes: Vec<Vec<Crossing>>,
    signals: Vec<Signal>,
    pub(crate) work: PartWork,
}

/// How much a part has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartWork {
    pub(crate) link_hops: u64,
    pub(crate) events: u64,
    /// When the last event of any kind happened.
    pub(crate) last_event: Time,
    /// When the last packet arrived.
    pub(crate) last_packet: Time,
}

impl PartWork {
    pub(crate) fn merge(&mut self, other: Self) {
        self.link_hops += other.link_hops;
        self.events += other.events;
        self.last_event = self.last_event.max(other.last_event);
        self.last_packet = self.last_packet.max(other.last_packet);
    }
}

/// Something that goes onto a wire of another part.
#[derive(Debug)]
pub(crate) enum Crossing {
    Packet(u32, Frame),
    Control(u32, Control),
}

/// What the node in work causes.
pub(crate) struct Outlet<'a> {
    agenda: &'a mut Agenda,
    wires: &'a Range<u32>,
    arrivals: &'a mut [Wire],
    next: &'a mut [Time],
    /// For each node, events of wires that were idle: what its agenda does not know yet.
    fresh: &'a mut [Vec<(Time, Event)>],
    first_wire: &'a [u32],
    first_node: usize,
    part_of: &'a [u16],
    outboxes: &'a mut [Vec<Crossing>],
    signals: &'a mut Vec<Signal>,
}

impl Scheduler for Outlet<'_> {
    #[inline]
    fn at(&mut self, time: Time, event: Event) {
        self.agenda.push(time, event);
    }

    #[inline]
    fn send(&mut self, link: &OutLink, frame: Frame) {
        if !self.wires.contains(&link.wire) {
            let part = self.part_of[link.receiver as usize];
            self.outboxes[usize::from(part)].push(Crossing::Packet(link.wire, frame));
            return;
        }
        let wire = &mut self.arrivals[(link.wire - self.wires.start) as usize];
        if !wire.packet_armed {
            wire.packet_armed = true;
            let local = link.receiver as usize - self.first_node;
            let port = (link.wire - self.first_wire[local]) as usize;
            self.fresh[local].push((frame.time, Event::packet(port)));
            self.next[local] = frame.time.min(self.next[local]);
        }
        wire.packets.push_back(frame);
    }

    fn send_control(&mut self, link: &OutLink, control: Control) {
        if !self.wires.contains(&link.wire) {
            let part = self.part_of[link.receiver as usize];
            self.outboxes[usize::from(part)].push(Crossing::Control(link.wire, control));
            return;
        }
        let wire = &mut self.arrivals[(link.wire - self.wires.start) as usize];
        if !wire.control_armed {
            wire.control_armed = true;
            let local = link.receiver as usize - self.first_node;
            let port = (link.wire - self.first_wire[local]) as usize;
            self.fresh[local].push((control.time(), Event::control(port)));
            self.next[local] = control.time().min(self.next[local]);
        }
        wire.controls.push_back(control);
    }

    fn signal(&mut self, signal: Signal) {
        self.signals.push(signal);
    }
}

impl Part {
    /// The part of the nodes `nodes`, which have the wires `first_wire[0]..first_wire[last]`.
    pub(crate) fn new(
        nodes: Range<usize>,
        members: Vec<Node>,
        first_wire: Vec<u32>,
        parts: usize,
    ) -> Self {
        let wires = first_wire[0]..*first_wire.last().unwrap_or(&0);
        Self {
            agendas: members.iter().map(|_| Agenda::default()).collect(),
            arrivals: wires.clone().map(|_| Wire::default()).collect(),
            next: vec![Time::NEVER; members.len()],
            fresh: members.iter().map(|_| Vec::new()).collect(),
            outboxes: (0..parts).map(|_| Vec::new()).collect(),
            signals: Vec::new(),
            work: PartWork::default(),
            nodes,
            first_wire,
            wires,
            members,
        }
    }

    /// The earliest time at which anything happens here.
    pub(crate) fn first_event(&self) -> Time {
        self.next.iter().copied().min().unwrap_or(Time::NEVER)
    }

    /// Whether the part has this node.
    pub(crate) fn holds(&self, node: u32) -> bool {
        self.nodes.contains(&(node as usize))
    }

    /// Lets `act` do something to a node of this part outside of a window.
    pub(crate) fn with_node<R>(
        &mut self,
        node: u32,
        part_of: &[u16],
        act: impl FnOnce(&mut Node, &mut Outlet<'_>) -> R,
    ) -> R {
        let local = node as usize - self.nodes.start;
        let mut agenda = std::mem::take(&mut self.agendas[local]);
        let mut outlet = Outlet {
            agenda: &mut agenda,
            wires: &self.wires,
            arrivals: &mut self.arrivals,
            next: &mut self.next,
            fresh: &mut self.fresh,
            first_wire: &self.first_wire,
            first_node: self.nodes.start,
            part_of,
            outboxes: &mut self.outboxes,
            signals: &mut self.signals,
        };
        let result = act(&mut self.members[local], &mut outlet);
        self.next[local] = agenda.first().min(self.next[local]);
        self.agendas[local] = agenda;
        result
    }

    /// Packets and control frames on the wire to `port` of `node` are lost; returns how many packets.
    pub(crate) fn cut_wire(&mut self, node: u32, port: usize) -> u64 {
        let local = node as usize - self.nodes.start;
        let wire = &mut self.arrivals[(self.first_wire[local] - self.wires.start) as usize + port];
        // The event that is armed finds nothing, and does nothing.
        wire.controls.clear();
        let lost = wire.packets.len() as u64;
        wire.packets.clear();
        lost
    }

    /// Takes what other parts have boxed for this part.
    pub(crate) fn accept(&mut self, crossings: &mut Vec<Crossing>) {
        for crossing in crossings.drain(..) {
            let (number, time) = match &crossing {
                Crossing::Packet(wire, frame) => (*wire, frame.time),
                Crossing::Control(wire, control) => (*wire, control.time()),
            };
            let local = self.first_wire.partition_point(|first| *first <= number) - 1;
            let port = (number - self.first_wire[local]) as usize;
            let wire = &mut self.arrivals[(number - self.wires.start) as usize];
            let (armed, event) = match crossing {
                Crossing::Packet(_, frame) => {
                    wire.packets.push_back(frame);
                    (&mut wire.packet_armed, Event::packet(port))
                }
                Crossing::Control(_, control) => {
                    wire.controls.push_back(control);
                    (&mut wire.control_armed, Event::control(port))
                }
            };
            if !std::mem::replace(armed, true) {
                self.fresh[local].push((time, event));
                self.next[local] = time.min(self.next[local]);
            }
        }
    }

    /// What is boxed for part `part`.
    pub(crate) fn outbox(&mut self, part: usize) -> &mut Vec<Crossing> {
        &mut self.outboxes[part]
    }

    /// The trigger hits since the last call.
    pub(crate) fn take_signals(&mut self) -> Vec<Signal> {
        std::mem::take(&mut self.signals)
    }

    /// Packets on the wires of this part, and boxed for others.
    pub(crate) fn on_wires(&self) -> u64 {
        let arriving: usize = self.arrivals.iter().map(|wire| wire.packets.len()).sum();
        let boxed = self
            .outboxes
            .iter()
            .flatten()
            .filter(|crossing| matches!(crossing, Crossing::Packet(..)))
            .count();
        (arriving + boxed) as u64
    }

    /// Packets sent and neither delivered nor lost, as far as this part's nodes count. Packets that cross from one part
    /// to another make single parts positive or negative; the sum over all parts is the number in flight.
    pub(crate) fn balance(&self) -> i64 {
        self.members.iter().map(Node::balance).sum()
    }

    /// Works through all events before `end`.
    pub(crate) fn run_window(&mut self, end: Time, world: &World, part_of: &[u16]) {
        for local in 0..self.members.len() {
            if self.next[local] < end {
                self.run_node(local, end, world, part_of);
            }
        }
    }

    fn run_node(&mut self, local: usize, end: Time, world: &World, part_of: &[u16]) {
        let base = (self.first_wire[local] - self.wires.start) as usize;
        let mut agenda = std::mem::take(&mut self.agendas[local]);
        for (time, event) in self.fresh[local].drain(..) {
            agenda.push(time, event);
        }
        self.next[local] = Time::NEVER;
        let mut due = agenda.pop_before(end);
        while let Some((now, event)) = due {
            self.work.events += 1;
            let mut outlet = Outlet {
                agenda: &mut agenda,
                wires: &self.wires,
                arrivals: &mut self.arrivals,
                next: &mut self.next,
                fresh: &mut self.fresh,
                first_wire: &self.first_wire,
                first_node: self.nodes.start,
                part_of,
                outboxes: &mut self.outboxes,
                signals: &mut self.signals,
            };
            let node = &mut self.members[local];
            // What comes next on the same wire.
            let mut next = None;
            match event.kind() {
                EventKind::Packet(port) => {
                    let wire = &mut outlet.arrivals[base + port];
                    // The front may have been lost with its link, and a later packet stand there: not yet due.
                    let front = wire
                        .packets
                        .front()
                        .filter(|frame| frame.time == now)
                        .copied();
                    if front.is_some() {
                        wire.packets.pop_front();
                    }
                    next = wire.packets.front().map(|frame| frame.time);
                    wire.packet_armed = next.is_some();
                    if let Some(frame) = front {
                        self.work.link_hops += 1;
                        self.work.last_packet = self.work.last_packet.max(now);
                        node.packet(now, port, &frame, world, &mut outlet);
                    }
                }
                EventKind::Control(port) => {
                    let wire = &mut outlet.arrivals[base + port];
                    let front = wire
                        .controls
                        .front()
                        .filter(|control| control.time() == now)
                        .copied();
                    if front.is_some() {
                        wire.controls.pop_front();
                    }
                    next = wire.controls.front().map(Control::time);
                    wire.control_armed = next.is_some();
                    if let Some(control) = front {
                        node.control(now, port, control, world, &mut outlet);
                    }
                }
                EventKind::PortFree(_) | EventKind::Timer(_) => {
                    node.event(now, event, world, &mut outlet);
                }
            }
            self.work.last_event = self.work.last_event.max(now);
            due = match next {
                // Packets often come back to back: no need to put the next one away to fetch it again.
                Some(time) if time < end && agenda.is_after(time, event) => Some((time, event)),
                Some(time) => {
                    agenda.push(time, event);
                    agenda.pop_before(end)
                }
                None => agenda.pop_before(end),
            };
        }
        self.next[local] = agenda.first().min(self.next[local]);
        self.agendas[local] = agenda;
    }
}
