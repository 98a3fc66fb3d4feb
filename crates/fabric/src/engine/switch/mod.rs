//! A switch: packets come in, wait in the shared memory, and leave by a port that leads on.
//!
//! ```text
//! arrive ─► route ─► memory admits ─► (pause?) ─► egress queue ─► served ─► memory released ─► (mark?) ─► (resume?) ─► link
//! ```

mod loss;
mod memory;
mod pause;
mod route;
mod watchdog;

use std::collections::VecDeque;

use softfabric_telemetry::{ClassCounter, PortCounter};
use softfabric_units::{Class, ClassMask, Random, Rate, Span, Time};

pub(crate) use memory::PortShape;
use memory::{Admission, Memory};
use watchdog::Watch;

use super::event::Scheduler;
use super::frame::{Control, Flags, Frame, PauseFrame, PauseRequest};
use super::port::{Queues, ServiceOrder, Transmitter, marking_for};
use super::recorder::{Losses, NodeRecorder, NodeTotals, PortProbe};
use super::world::World;
use crate::plan::{ClassMaps, Classifier, Ecn, Layer, LoadBalancing, NodeId, SwitchProfile};
use crate::results::DropReason;

/// One switch.
#[derive(Debug)]
pub(crate) struct Switch {
    id: u32,
    pub(crate) ports: Vec<SwitchPort>,
    memory: Memory,
    order: ServiceOrder,
    lossless: ClassMask,
    /// PFC priorities whose pause frames are obeyed.
    obeyed: ClassMask,
    /// Priority groups for which pause frames are sent.
    spoken: ClassMask,
    pause_request: PauseRequest,
    response_delay: Span,
    classifier: Classifier,
    maps: ClassMaps,
    layer: Layer,
    load_balancing: LoadBalancing,
    hash_seed: u32,
    spray: u32,
    random: Random,
    watch: Option<Watch>,
    pub(crate) recorder: Option<NodeRecorder>,
    pub(crate) losses: Losses,
}

/// A port of a switch.
#[derive(Debug)]
pub(crate) struct SwitchPort {
    pub(crate) transmitter: Transmitter,
    pub(crate) queues: Queues,
    /// What marks the queues of this port, by class.
    marking: [Option<Marking>; Class::COUNT],
    /// Classes whose sender this port has paused.
    pub(crate) pausing: ClassMask,
    /// Pause frames that take effect later, and when.
    delayed: VecDeque<(Time, PauseFrame)>,
    /// The most bytes queued since the recorder looked.
    pub(crate) peak: u64,
    /// Bytes queued times picoseconds, up to the last change: what the mean is made from.
    area: u128,
    changed: Time,
}

impl SwitchPort {
    /// The queues are about to change.
    #[inline]
    fn account(&mut self, now: Time) {
        let span = now.since(self.changed).as_picos();
        self.area += u128::from(self.queues.bytes) * u128::from(span);
        self.changed = now;
    }
}

/// RED in the form that the hot path wants.
#[derive(Clone, Copy, Debug)]
struct Marking {
    kmin: u64,
    kmax: u64,
    pmax: f64,
    drop_not_capable: bool,
}

impl From<Ecn> for Marking {
    fn from(ecn: Ecn) -> Self {
        Self {
            kmin: ecn.kmin.as_u64(),
            kmax: ecn.kmax.as_u64(),
            pmax: ecn.pmax,
            drop_not_capable: ecn.drop_not_capable,
        }
    }
}

impl Switch {
    /// A switch with nothing in it. `transmitters` and `shapes` are in the order of the ports.
    pub(crate) fn new(
        id: NodeId,
        profile: &SwitchProfile,
        transmitters: Vec<Transmitter>,
        shapes: &[PortShape],
        host_rate: Rate,
        seed: u64,
    ) -> Self {
        let lossless = profile.lossless();
        let ports = transmitters
            .into_iter()
            .map(|mut transmitter| {
                transmitter.paused.stops = profile.maps.stops;
                let marking = profile
                    .classes
                    .each_ref()
                    .map(|class| marking_for(&class.ecn, &transmitter.link).map(Marking::from));
                SwitchPort {
                    transmitter,
                    queues: Queues::default(),
                    marking,
                    pausing: ClassMask::NONE,
                    delayed: VecDeque::new(),
                    peak: 0,
                    area: 0,
                    changed: Time::ZERO,
                }
            })
            .collect();
        let mut random = Random::stream(seed, u64::from(id.0));
        Self {
            id: id.0,
            ports,
            memory: Memory::new(profile, shapes, host_rate),
            order: ServiceOrder::new(profile.classes.iter().map(|class| class.scheduling)),
            lossless,
            obeyed: profile.obeyed(),
            spoken: lossless,
            pause_request: profile
                .pause
                .quanta
                .map_or(PauseRequest::UntilResume, PauseRequest::Quanta),
            response_delay: profile.pause.response_delay,
            classifier: profile.classifier.clone(),
            maps: profile.maps,
            layer: profile.layer,
            load_balancing: profile.load_balancing,
            hash_seed: random.bits() as u32,
            spray: 0,
            random,
            watch: profile.watchdog.map(Watch::new),
            recorder: None,
            losses: Losses::default(),
        }
    }

    /// A packet has come in by `port`: its class is told, then it is taken in.
    pub(crate) fn packet<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        let class = self.classifier.class_of(frame.class, frame.mark);
        if class == frame.class {
            self.take(now, port, frame, world, scheduler);
        } else {
            let frame = Frame { class, ..*frame };
            self.take(now, port, &frame, world, scheduler);
        }
    }

    /// The priority group and the queue of a traffic class.
    #[inline]
    pub(super) fn places(&self, class: Class) -> (Class, Class) {
        let index = class.index();
        (self.maps.group[index], self.maps.queue[index])
    }

    /// The PFC priority that is paused for the sake of a traffic class.
    pub(crate) fn pauses(&self, class: Class) -> Class {
        let (group, _) = self.places(class);
        self.maps.pause[group.index()]
    }

    /// Takes in a packet whose class is known.
    fn take<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        let length = u32::from(frame.length);
        let transmitter = &mut self.ports[port].transmitter;
        transmitter.count_received(length, frame.class);
        if let Some(tap) = &mut transmitter.tap {
            tap.packet(now, false, frame, world);
        }
        if frame.flags.has(Flags::DAMAGED) {
            self.ports[port]
                .transmitter
                .port
                .count(PortCounter::ReceiveErrors);
            return self.lose(now, port, frame, DropReason::Damaged);
        }
        if frame.flags.has(Flags::UNROUTABLE) && self.layer == Layer::Router {
            return self.discard(now, port, frame, DropReason::NotRoutable);
        }
        let Some(egress) = self.route(frame, world) else {
            return self.discard(now, port, frame, DropReason::NoRoute);
        };
        if !self.ports[egress].transmitter.link.up {
            return self.discard(now, port, frame, DropReason::LinkDown);
        }
        let (group, queue) = self.places(frame.class);
        if let Some(watch) = &mut self.watch
            && watch.drops(egress, queue)
        {
            self.ports[egress].transmitter.classes[queue.index()]
                .count(ClassCounter::WatchdogDropped);
            return self.lose(now, port, frame, DropReason::Watchdog);
        }
        if let Admission::Dropped(reason) =
            self.memory
                .admit(port, egress, group, queue, u64::from(length))
        {
            return self.refuse(now, port, egress, frame, reason);
        }
        if self.spoken.contains(group) {
            let priority = self.maps.pause[group.index()];
            if !self.ports[port].pausing.contains(priority) && self.memory.wants_pause(port, group)
            {
                self.speak(now, port, priority, self.pause_request, world, scheduler);
            }
        }
        let mut frame = *frame;
        frame.ingress = port as u16;
        let into = &mut self.ports[egress];
        if into.queues.waiting().is_empty() && into.transmitter.may_send(now, queue) {
            into.peak = into.peak.max(u64::from(length));
            return self.depart(now, egress, frame, world, scheduler);
        }
        into.account(now);
        into.queues.push(queue, frame);
        into.peak = into.peak.max(into.queues.bytes);
        self.transmit(now, egress, world, scheduler);
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
        if let Some(pause) = at.transmitter.pauses.pop_front() {
            let pause = at
                .transmitter
                .occupy_for_pause(now, pause, world.sizes.pause);
            let more = world.sizes.eager_free
                || !at.transmitter.pauses.is_empty()
                || !at.queues.waiting().is_empty();
            if more {
                at.transmitter.tell_when_free(port, scheduler);
            }
            scheduler.send_control(&at.transmitter.link, Control::Pause(pause));
            return;
        }
        let waiting = at.queues.waiting();
        let mut open = waiting.minus(at.transmitter.paused.queues);
        if let Some(watch) = &self.watch {
            open = ClassMask(open.0 | waiting.and(watch.forwarding(port)).0);
        }
        let at = &mut self.ports[port];
        at.account(now);
        let Some(frame) = at.queues.pop(open, &self.order) else {
            if !waiting.is_empty() {
                at.transmitter.block(now);
            }
            return;
        };
        self.depart(now, port, frame, world, scheduler);
    }

    /// A packet leaves by `port`, whose transmitter is free.
    fn depart<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        mut frame: Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        let (group, queue) = self.places(frame.class);
        let length = u32::from(frame.length);
        let ingress = usize::from(frame.ingress);
        self.memory
            .release(ingress, port, group, queue, u64::from(length));
        if let Some(marking) = self.ports[port].marking[queue.index()]
            && self.meets_congestion(port, queue, marking)
        {
            if frame.flags.has(Flags::ECN_CAPABLE) {
                let transmitter = &mut self.ports[port].transmitter;
                transmitter.count_mark(now, queue, length);
                frame.flags.set(Flags::MARKED);
            } else if marking.drop_not_capable {
                self.drop_from_queue(now, port, &frame, DropReason::Red);
                self.resume_if_allowed(now, ingress, group, world, scheduler);
                return self.transmit(now, port, world, scheduler);
            }
        }
        self.resume_if_allowed(now, ingress, group, world, scheduler);
        let at = &mut self.ports[port];
        let busy = at.transmitter.occupy(now, length, frame.class);
        if let Some(tap) = &mut at.transmitter.tap {
            tap.packet(now, true, &frame, world);
        }
        if let Some(watch) = &mut self.watch {
            watch.sent(port, queue);
        }
        if world.sizes.eager_free || !at.queues.waiting().is_empty() {
            at.transmitter.tell_when_free(port, scheduler);
        }
        at.transmitter.launch(now, busy, frame, scheduler);
    }

    /// RED on the queue that a packet leaves behind.
    fn meets_congestion(&mut self, port: usize, queue: Class, marking: Marking) -> bool {
        let queued = self.memory.queued(port, queue);
        if queued <= marking.kmin {
            return false;
        }
        if queued > marking.kmax {
            return true;
        }
        let slope = (queued - marking.kmin) as f64 / (marking.kmax - marking.kmin) as f64;
        self.random.chance(marking.pmax * slope)
    }

    /// Takes the samples that are due.
    pub(crate) fn sample(&mut self, now: Time) {
        let ports = &mut self.ports;
        if let Some(recorder) = &mut self.recorder {
            let peaks: Vec<u64> = ports
                .iter_mut()
                .map(|port| std::mem::replace(&mut port.peak, port.queues.bytes))
                .collect();
            recorder.sample(now, NodeTotals::default(), |port| {
                let at = &ports[port];
                PortProbe {
                    transmitter: &at.transmitter,
                    peak: peaks[port],
                    queued: at.queues.bytes,
                    area: at.area,
                    changed: at.changed,
                    by_credit: false,
                }
            });
        }
    }

    /// Closes all open accounts at the end of a run.
    pub(crate) fn close(&mut self, now: Time) {
        for port in &mut self.ports {
            port.transmitter.close(now);
        }
        self.raise_watermarks();
    }

    /// Brings the counters of watermarks up to date: at the end, and before they are polled.
    pub(crate) fn raise_watermarks(&mut self) {
        for (index, port) in self.ports.iter_mut().enumerate() {
            for class in Class::all() {
                let (queue, shared, headroom) = self.memory.peaks(index, class);
                let counters = &mut port.transmitter.classes[class.index()];
                counters.raise(ClassCounter::QueueWatermark, queue);
                counters.raise(ClassCounter::IngressWatermark, shared);
                counters.raise(ClassCounter::HeadroomWatermark, headroom);
            }
        }
    }

    /// What the books say at the end, in words, where they do not add up.
    pub(crate) fn audit(&self) -> Option<String> {
        self.memory.audit()
    }

    /// Bytes that the memory holds.
    pub(crate) fn held(&self) -> u64 {
        self.memory.totals().0
    }

    /// Packets that wait in the queues.
    pub(crate) fn queued_packets(&self) -> u64 {
        self.ports.iter().map(|port| port.queues.len() as u64).sum()
    }
}
