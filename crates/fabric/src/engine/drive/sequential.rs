//! One event at a time, from one list for the whole network.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

use softfabric_units::Time;

use super::super::event::{Event, EventKind, Scheduler, Signal};
use super::super::frame::{Control, Frame};
use super::super::link::{OutLink, Wire};
use super::super::node::Node;
use super::super::world::World;
use super::part::PartWork;
use super::wheel::Wheel;
use super::window::Watcher;
use super::{Pause, Triggers, Until};

/// How events of one instant are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TieOrder {
    /// In the order in which they were scheduled, as ns-3 does.
    Scheduling,
    /// By node and event, as the window driver does.
    NodeAndEvent,
}

/// The driver with everything that it drives.
#[derive(Debug)]
pub(crate) struct Sequential {
    pub(crate) nodes: Vec<Node>,
    first_wire: Vec<u32>,
    list: List,
    triggers: Triggers,
    pub(crate) work: PartWork,
    /// The nodes that pause frames reached, in order: what puts their logs into one.
    pub(crate) pause_order: Vec<u32>,
}

/// The event list and the wires: what a node in work may change.
#[derive(Debug)]
pub(crate) struct List {
    pending: Pending,
    wires: Vec<Wire>,
    node: u32,
    signals: Vec<Signal>,
    first_wire_of: Vec<u32>,
}

/// What is to happen, in one of two orders.
#[derive(Debug)]
enum Pending {
    /// By time, then in the order of scheduling.
    Scheduling(Box<Wheel>),
    /// By time, node and event.
    NodeAndEvent(BinaryHeap<Reverse<(Time, u32, Event)>>),
}

/// How many events pass between two reports of progress.
const REPORT_EVERY: u64 = 1 << 17;

impl List {
    fn push(&mut self, time: Time, node: u32, event: Event) {
        match &mut self.pending {
            Pending::Scheduling(wheel) => wheel.push(time, node, event),
            Pending::NodeAndEvent(heap) => heap.push(Reverse((time, node, event))),
        }
    }

    fn next_time(&mut self) -> Option<Time> {
        match &mut self.pending {
            Pending::Scheduling(wheel) => wheel.next_time(),
            Pending::NodeAndEvent(heap) => heap.peek().map(|Reverse((time, ..))| *time),
        }
    }

    fn pop(&mut self) -> Option<(Time, u32, Event)> {
        match &mut self.pending {
            Pending::Scheduling(wheel) => wheel.pop(),
            Pending::NodeAndEvent(heap) => heap.pop().map(|Reverse(first)| first),
        }
    }
}

impl Scheduler for List {
    fn at(&mut self, time: Time, event: Event) {
        self.push(time, self.node, event);
    }

    fn send(&mut self, link: &OutLink, frame: Frame) {
        let port = (link.wire - self.first_wire_of[link.receiver as usize]) as usize;
        self.push(frame.time, link.receiver, Event::packet(port));
        self.wires[link.wire as usize].packets.push_back(frame);
    }

    fn send_control(&mut self, link: &OutLink, control: Control) {
        let port = (link.wire - self.first_wire_of[link.receiver as usize]) as usize;
        self.push(control.time(), link.receiver, Event::control(port));
        self.wires[link.wire as usize].controls.push_back(control);
    }

    fn signal(&mut self, signal: Signal) {
        self.signals.push(signal);
    }
}

impl Sequential {
    /// `first_wire[node]` is the first wire of a node; one more entry ends the last node's.
    pub(crate) fn new(
        nodes: Vec<Node>,
        first_wire: Vec<u32>,
        order: TieOrder,
        triggers: Triggers,
    ) -> Self {
        let wires = (0..*first_wire.last().unwrap_or(&0))
            .map(|_| Wire::default())
            .collect();
        Self {
            nodes,
            list: List {
                pending: match order {
                    TieOrder::Scheduling => Pending::Scheduling(Box::new(Wheel::new())),
                    TieOrder::NodeAndEvent => Pending::NodeAndEvent(BinaryHeap::new()),
                },
                wires,
                node: 0,
                signals: Vec::new(),
                first_wire_of: first_wire.clone(),
            },
            first_wire,
            triggers,
            work: PartWork::default(),
            pause_order: Vec::new(),
        }
    }

    /// Lets `act` do something to a node between events.
    pub(crate) fn with_node<R>(
        &mut self,
        node: u32,
        act: impl FnOnce(&mut Node, &mut List) -> R,
    ) -> R {
        self.list.node = node;
        act(&mut self.nodes[node as usize], &mut self.list)
    }

    /// Packets and control frames on the wire to `port` of `node` are lost; returns how many packets. Their events find
    /// nothing, and do nothing.
    pub(crate) fn cut_wire(&mut self, node: u32, port: usize) -> u64 {
        let wire = &mut self.list.wires[self.first_wire[node as usize] as usize + port];
        wire.controls.clear();
        let lost = wire.packets.len() as u64;
        wire.packets.clear();
        lost
    }

    /// Packets on all wires.
    pub(crate) fn on_wires(&self) -> u64 {
        self.list
            .wires
            .iter()
            .map(|wire| wire.packets.len() as u64)
            .sum()
    }

    pub(crate) fn run(&mut self, world: &World, until: Until, watcher: &mut Watcher<'_>) -> Pause {
        // Whether all is done is asked where windows end, so that both drivers stop at the same event.
        let by_windows = matches!(self.list.pending, Pending::NodeAndEvent(_));
        let mut window_end = Time::ZERO;
        loop {
            while let Some(signal) = self.list.signals.pop() {
                let list = &mut self.list;
                let nodes = &mut self.nodes;
                self.triggers.hit(signal, world.plan, |flow, time| {
                    let host = world.flows[flow as usize].starter;
                    list.node = host;
                    nodes[host as usize].start_flow(flow, time, list);
                });
            }
            match self.list.next_time() {
                None => return Pause::Drained,
                Some(time) if time >= until.end => return Pause::Reached,
                Some(time) if by_windows && time >= window_end => {
                    if self.is_done(world, until) {
                        return Pause::Done;
                    }
                    window_end = time.saturating_add(world.lookahead).min(until.end);
                }
                Some(_) => {}
            }
            let Some((now, number, event)) = self.list.pop() else {
                return Pause::Drained;
            };
            self.work.events += 1;
            self.work.last_event = now;
            self.list.node = number;
            let node = &mut self.nodes[number as usize];
            let first = self.first_wire[number as usize] as usize;
            match event.kind() {
                EventKind::Packet(port) => {
                    // The front may have been lost with its link, and a later packet stand there: not yet due.
                    let packets = &mut self.list.wires[first + port].packets;
                    if packets.front().is_some_and(|frame| frame.time == now)
                        && let Some(frame) = packets.pop_front()
                    {
                        self.work.link_hops += 1;
                        self.work.last_packet = now;
                        node.packet(now, port, &frame, world, &mut self.list);
                    }
                }
                EventKind::Control(port) => {
                    let controls = &mut self.list.wires[first + port].controls;
                    if controls
                        .front()
                        .is_some_and(|control| control.time() == now)
                        && let Some(control) = controls.pop_front()
                    {
                        if world.plan.recording.pause_log && control.is_pause_frame() {
                            self.pause_order.push(number);
                        }
                        node.control(now, port, control, world, &mut self.list);
                    }
                }
                EventKind::PortFree(_) | EventKind::Timer(_) => {
                    node.event(now, event, world, &mut self.list);
                }
            }
            if self.work.events.is_multiple_of(REPORT_EVERY) {
                if let Some(progress) = &mut watcher.progress {
                    progress(now, self.work.link_hops);
                }
                if watcher
                    .interrupt
                    .is_some_and(|interrupt| interrupt.load(Ordering::Relaxed))
                {
                    return Pause::Interrupted;
                }
            }
            if !by_windows && self.is_done(world, until) {
                return Pause::Done;
            }
        }
    }

    /// Whether all flows are done and no packet is under way, where that is the end.
    fn is_done(&self, world: &World, until: Until) -> bool {
        until.when_done
            && world.flows_left.load(Ordering::Relaxed) == 0
            && self.nodes.iter().map(Node::balance).sum::<i64>() == 0
    }
}
