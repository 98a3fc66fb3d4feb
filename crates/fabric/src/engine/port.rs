//! A port of a switch: its egress queues, who is served next, and what is paused.

use std::collections::VecDeque;

use softfabric_telemetry::{ClassCounter, ClassCounters, PortCounter, PortCounters};
use softfabric_units::{Bytes, Class, ClassMask, Span, Time};

use crate::engine::capture::Tap;
use crate::engine::event::{Event, Scheduler};
use crate::engine::frame::{CREDIT_LENGTH, CreditFrame, Flags, Frame, PauseFrame, PauseRequest};
use crate::engine::link::OutLink;
use crate::engine::pause_book::PauseBook;
use crate::plan::{ClassMaps, Ecn, Scheduling};

/// The transmitter of a port, of switches and hosts alike: when it is free, what pause frames wait, what is paused.
#[derive(Debug)]
pub(crate) struct Transmitter {
    /// The link that it sends on.
    pub(crate) link: OutLink,
    /// Until when it sends what it sends.
    pub(crate) busy_until: Time,
    /// An event will tell when it is free.
    pub(crate) free_pending: bool,
    /// Pause frames that wait for the transmitter; they go first.
    pub(crate) pauses: VecDeque<PauseFrame>,
    /// What the other end has paused.
    pub(crate) paused: Paused,
    /// Since when there is something to send that must not be sent.
    blocked_since: Option<Time>,
    /// When it first marked a packet.
    pub(crate) first_mark: Option<Time>,
    /// When it was first paused, or first waited for credit.
    pub(crate) first_pause: Option<Time>,
    /// What records the port's frames, where the plan wants it.
    pub(crate) tap: Option<Box<Tap>>,
    /// Counters of the port.
    pub(crate) port: PortCounters,
    /// Counters of its classes.
    pub(crate) classes: Box<[ClassCounters; Class::COUNT]>,
    /// Since when this end holds the other end paused, by class.
    pause_sent_since: [Option<Time>; Class::COUNT],
    /// What the pause frames of this end do at the other; made at the first one.
    pause_book: Option<Box<[PauseBook; Class::COUNT]>>,
}

impl Transmitter {
    pub(crate) fn new(link: OutLink) -> Self {
        Self {
            link,
            busy_until: Time::ZERO,
            free_pending: false,
            pauses: VecDeque::new(),
            paused: Paused::new(ClassMaps::SAME),
            blocked_since: None,
            first_mark: None,
            first_pause: None,
            tap: None,
            port: PortCounters::default(),
            classes: Box::default(),
            pause_sent_since: [None; Class::COUNT],
            pause_book: None,
        }
    }

    /// Whether a frame is being sent. At the very instant a frame ends, the transmitter counts as busy only if an event
    /// for that instant is still to come.
    #[inline]
    pub(crate) fn is_busy(&self, now: Time) -> bool {
        self.busy_until > now || self.free_pending
    }

    /// Whether nothing can be sent now, since the link is down, or a frame is being sent: then an event tells when it is
    /// over.
    #[inline]
    pub(crate) fn must_wait<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        scheduler: &mut S,
    ) -> bool {
        if !self.link.up {
            return true;
        }
        let busy = self.is_busy(now);
        if busy {
            self.tell_when_free(port, scheduler);
        }
        busy
    }

    /// An event tells when the transmitter becomes free.
    #[inline]
    pub(crate) fn tell_when_free<S: Scheduler>(&mut self, port: usize, scheduler: &mut S) {
        if !self.free_pending {
            self.free_pending = true;
            scheduler.at(self.busy_until, Event::port_free(port));
        }
    }

    /// A packet that occupies the transmitter for `busy` from now on goes onto the link, which may damage it.
    #[inline]
    pub(crate) fn launch<S: Scheduler>(
        &mut self,
        now: Time,
        busy: Span,
        mut frame: Frame,
        scheduler: &mut S,
    ) {
        let length = u32::from(frame.length);
        frame.time = self.link.arrival(now, busy, length);
        if let Some(errors) = &mut self.link.errors
            && errors.damages(length)
        {
            frame.flags.set(Flags::DAMAGED);
        }
        scheduler.send(&self.link, frame);
    }

    /// Whether a packet of queue `class` may leave at once: the transmitter is free, nothing goes before it, nothing pauses it.
    #[inline]
    pub(crate) fn may_send(&self, now: Time, class: Class) -> bool {
        !self.is_busy(now)
            && self.pauses.is_empty()
            && !self.paused.queues.contains(class)
            && self.link.up
    }

    /// Counts a packet that goes out now, and occupies the transmitter.
    #[inline]
    pub(crate) fn occupy(&mut self, now: Time, length: u32, class: Class) -> Span {
        let busy = self.link.occupies(length);
        self.busy_until = now + busy;
        let counters = &mut self.classes[class.index()];
        counters.count(ClassCounter::TransmitPackets);
        counters.add(ClassCounter::TransmitBytes, u64::from(length));
        self.unblock(now);
        busy
    }

    /// Takes the time of a packet that leaves although there is no link.
    pub(crate) fn occupy_in_vain(&mut self, now: Time, length: u32) {
        self.busy_until = now + self.link.occupies(length);
        self.port.count(PortCounter::TransmitDiscards);
    }

    /// Counts a packet that came in.
    #[inline]
    pub(crate) fn count_received(&mut self, length: u32, class: Class) {
        let counters = &mut self.classes[class.index()];
        counters.count(ClassCounter::ReceivePackets);
        counters.add(ClassCounter::ReceiveBytes, u64::from(length));
    }

    /// Counts a pause frame that goes out now, and occupies the transmitter. Returns the frame, stamped with the time of
    /// its arrival.
    pub(crate) fn occupy_for_pause(
        &mut self,
        now: Time,
        mut frame: PauseFrame,
        length: u32,
    ) -> PauseFrame {
        let busy = self.link.occupies(length);
        self.busy_until = now + busy;
        frame.time = self.busy_until + self.link.pause_delay;
        self.port.count(PortCounter::PauseFramesSent);
        if let Some(tap) = &mut self.tap {
            tap.pause(now, true, &frame);
        }
        let class = frame.class.index();
        let (rate, effect) = (self.link.rate, frame.time + self.link.pause_response);
        if self.link.pause_obeyed.contains(frame.class) {
            let quantum = |quanta| rate.time_for(Bytes::new(u64::from(quanta) * 64));
            let book = &mut self.pause_book.get_or_insert_default()[class];
            book.note(now, effect, frame.request, quantum);
        }
        if frame.request.is_pause() {
            self.classes[class].count(ClassCounter::PauseSent);
            self.pause_sent_since[class].get_or_insert(now);
        } else {
            self.classes[class].count(ClassCounter::ResumeSent);
            self.end_pause_sent(now, class);
        }
        frame
    }

    /// Counts a flow-control packet that goes out now, and occupies the transmitter. Returns the packet, stamped with the
    /// time of its arrival.
    pub(crate) fn occupy_for_credit(&mut self, now: Time, mut credit: CreditFrame) -> CreditFrame {
        self.busy_until = now + self.link.occupies(CREDIT_LENGTH);
        credit.time = self.busy_until + self.link.pause_delay;
        self.port.count(PortCounter::CreditsSent);
        if let Some(tap) = &mut self.tap {
            tap.credit(now, true, &credit);
        }
        credit
    }

    /// A flow-control packet has come in.
    pub(crate) fn count_credit(&mut self, now: Time, credit: &CreditFrame) {
        self.port.count(PortCounter::CreditsReceived);
        if let Some(tap) = &mut self.tap {
            tap.credit(now, false, credit);
        }
    }

    fn end_pause_sent(&mut self, now: Time, class: usize) {
        if let Some(since) = self.pause_sent_since[class].take() {
            self.classes[class].add(ClassCounter::PauseSentDuration, now.since(since).as_picos());
        }
    }

    /// How long the other end has been paused in `class` by `now`, as follows from the frames that this end has sent.
    pub(crate) fn pauses_caused(&self, now: Time, class: Class) -> Span {
        let book = self.pause_book.as_ref();
        book.map_or(Span::ZERO, |book| book[class.index()].total(now))
    }

    /// The link fails: frames that wait are gone, and no pause holds any more at either end.
    pub(crate) fn lose_link(&mut self, now: Time) {
        self.link.up = false;
        self.port.count(PortCounter::LinkDowned);
        self.pauses.clear();
        // A port without a link waits for nobody: what waits for it is lost.
        self.unblock(now);
        for class in Class::all() {
            self.resume(now, class);
            self.end_pause_sent(now, class.index());
            if let Some(book) = &mut self.pause_book {
                book[class.index()].cut(now);
            }
        }
    }

    /// Nobody speaks PFC for `class` any more. True if the class may send again and could not before.
    pub(crate) fn forget_pauses(&mut self, now: Time, class: Class) -> bool {
        self.end_pause_sent(now, class.index());
        if let Some(book) = &mut self.pause_book {
            book[class.index()].close(now);
        }
        self.resume(now, class)
    }

    /// Since when this end holds the other end paused in `class`, if it does.
    pub(crate) fn pausing_since(&self, class: Class) -> Option<Time> {
        self.pause_sent_since[class.index()]
    }

    /// Since when the other end holds `class` paused here, if it does.
    pub(crate) fn paused_since(&self, class: Class) -> Option<Time> {
        let paused = self.paused.mask.contains(class);
        paused.then_some(self.paused.since[class.index()])
    }

    /// Counts a packet that is marked as it leaves.
    pub(crate) fn count_mark(&mut self, now: Time, queue: Class, length: u32) {
        let counters = &mut self.classes[queue.index()];
        counters.count(ClassCounter::EcnMarked);
        counters.add(ClassCounter::EcnMarkedBytes, u64::from(length));
        self.first_mark.get_or_insert(now);
    }

    /// Counts a pause frame that has come in.
    pub(crate) fn count_pause(&mut self, now: Time, frame: &PauseFrame) {
        self.port.count(PortCounter::PauseFramesReceived);
        let counter = if frame.request.is_pause() {
            self.first_pause.get_or_insert(now);
            ClassCounter::PauseReceived
        } else {
            ClassCounter::ResumeReceived
        };
        self.classes[frame.class.index()].count(counter);
        if let Some(tap) = &mut self.tap {
            tap.pause(now, false, frame);
        }
    }

    /// Takes note of a pause frame that takes effect now.
    pub(crate) fn obey(&mut self, now: Time, class: Class, request: PauseRequest) -> Obeyed {
        let goes_on = self.take_pause(now, class, request);
        let until = self.paused.until[class.index()];
        Obeyed {
            goes_on,
            ends: (request.is_pause() && until != Time::NEVER).then_some(until),
        }
    }

    /// A pause runs out, if nobody has prolonged it: true if the class may send again.
    pub(crate) fn pause_expires(&mut self, now: Time, class: Class) -> bool {
        self.paused.until[class.index()] == now && self.resume(now, class)
    }

    fn take_pause(&mut self, now: Time, class: Class, request: PauseRequest) -> bool {
        match request {
            PauseRequest::Resume => self.resume(now, class),
            PauseRequest::UntilResume => self.pause(now, class, Time::NEVER),
            PauseRequest::Quanta(quanta) => {
                let span = self.link.rate.time_for(Bytes::new(u64::from(quanta) * 64));
                self.pause(now, class, now + span)
            }
        }
    }

    fn pause(&mut self, now: Time, class: Class, until: Time) -> bool {
        if !self.paused.mask.contains(class) {
            self.paused.set(self.paused.mask.with(class));
            self.paused.since[class.index()] = now;
            self.classes[class.index()].count(ClassCounter::PauseTransitions);
        }
        self.paused.until[class.index()] = until;
        false
    }

    /// Ends the pause of a class: true if it was paused.
    pub(crate) fn resume(&mut self, now: Time, class: Class) -> bool {
        if !self.paused.mask.contains(class) {
            return false;
        }
        self.paused.set(self.paused.mask.without(class));
        let paused = now.since(self.paused.since[class.index()]);
        self.classes[class.index()].add(ClassCounter::PauseReceivedDuration, paused.as_picos());
        true
    }

    /// There is something to send, the transmitter is free, and everything is paused.
    pub(crate) fn block(&mut self, now: Time) {
        self.blocked_since.get_or_insert(now);
        self.first_pause.get_or_insert(now);
    }

    /// Something goes out, or nothing waits any more.
    #[inline]
    pub(crate) fn unblock(&mut self, now: Time) {
        if let Some(since) = self.blocked_since.take() {
            self.port
                .add(PortCounter::TransmitWait, now.since(since).as_picos());
        }
    }

    /// For how long the port has had something to send and could not, by `now`.
    pub(crate) fn waited(&self, now: Time) -> Span {
        let open = self
            .blocked_since
            .map_or(Span::ZERO, |since| now.since(since));
        Span::picos(self.port.value(PortCounter::TransmitWait)) + open
    }

    /// What the classes have counted, together.
    pub(crate) fn total(&self, counter: ClassCounter) -> u64 {
        let classes = self.classes.iter();
        classes.map(|class| class.value(counter)).sum()
    }

    /// Closes all open accounts at the end of a run: times that still run, and the port's sums over its classes.
    pub(crate) fn close(&mut self, now: Time) {
        for (sum, part) in [
            (PortCounter::TransmitPackets, ClassCounter::TransmitPackets),
            (PortCounter::TransmitBytes, ClassCounter::TransmitBytes),
            (PortCounter::ReceivePackets, ClassCounter::ReceivePackets),
            (PortCounter::ReceiveBytes, ClassCounter::ReceiveBytes),
        ] {
            self.port.add(sum, self.total(part));
        }
        self.unblock(now);
        for class in Class::all() {
            self.end_pause_sent(now, class.index());
            if self.paused.mask.contains(class) {
                let paused = now.since(self.paused.since[class.index()]);
                self.classes[class.index()]
                    .add(ClassCounter::PauseReceivedDuration, paused.as_picos());
            }
        }
    }
}

/// What follows from a pause frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Obeyed {
    /// The class may send again and could not before.
    pub(crate) goes_on: bool,
    /// When the pause ends by itself, if it does.
    pub(crate) ends: Option<Time>,
}

/// What the other end of a link has paused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paused {
    /// By PFC priority.
    pub(crate) mask: ClassMask,
    /// The queues that this stops.
    pub(crate) queues: ClassMask,
    /// The queue that each priority stops.
    pub(crate) stops: [Class; Class::COUNT],
    /// When the pause ends by itself.
    pub(crate) until: [Time; Class::COUNT],
    /// Since when it holds.
    pub(crate) since: [Time; Class::COUNT],
}

impl Paused {
    fn new(stops: [Class; Class::COUNT]) -> Self {
        Self {
            mask: ClassMask::NONE,
            queues: ClassMask::NONE,
            stops,
            until: [Time::ZERO; Class::COUNT],
            since: [Time::ZERO; Class::COUNT],
        }
    }

    fn set(&mut self, mask: ClassMask) {
        self.mask = mask;
        let stopped = mask.iter().map(|class| self.stops[class.index()]);
        self.queues = stopped.fold(ClassMask::NONE, ClassMask::with);
    }
}

/// The queues of a switch port.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    lanes: [VecDeque<Frame>; Class::COUNT],
    waiting: ClassMask,
    /// Bytes that each weighted class may still send in this round.
    deficit: [u32; Class::COUNT],
    /// The weighted class whose turn it is.
    turn: u8,
    /// Bytes in all queues.
    pub(crate) bytes: u64,
}

/// How the classes of a switch are served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceOrder {
    strict: ClassMask,
    weights: [u32; Class::COUNT],
}

/// What one unit of weight may send in a round of deficit round robin: more than any packet, so that every turn serves.
const QUANTUM: u32 = 16_384;

impl ServiceOrder {
    pub(crate) fn new(classes: impl Iterator<Item = Scheduling>) -> Self {
        let mut order = Self {
            strict: ClassMask::NONE,
            weights: [1; Class::COUNT],
        };
        for (class, scheduling) in Class::all().zip(classes) {
            match scheduling {
                Scheduling::Strict => order.strict = order.strict.with(class),
                Scheduling::Weighted(weight) => order.weights[class.index()] = weight.max(1),
            }
        }
        order
    }
}

impl Queues {
    #[inline]
    pub(crate) fn push(&mut self, queue: Class, frame: Frame) {
        self.bytes += u64::from(frame.length);
        self.waiting = self.waiting.with(queue);
        self.lanes[queue.index()].push_back(frame);
    }

    /// The classes that have something to send.
    #[inline]
    pub(crate) fn waiting(&self) -> ClassMask {
        self.waiting
    }

    /// The packets of a queue, first first.
    pub(crate) fn lane(&self, class: Class) -> impl Iterator<Item = &Frame> {
        self.lanes[class.index()].iter()
    }

    /// How many packets wait.
    pub(crate) fn len(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).sum()
    }

    /// Takes the next packet of the classes in `open`, which must all be waiting.
    #[inline]
    pub(crate) fn pop(&mut self, open: ClassMask, order: &ServiceOrder) -> Option<Frame> {
        let class = self.choose(open, order)?;
        self.pop_class(class)
    }

    /// Takes the next packet of a class.
    #[inline]
    pub(crate) fn pop_class(&mut self, class: Class) -> Option<Frame> {
        let lane = &mut self.lanes[class.index()];
        let frame = lane.pop_front()?;
        if lane.is_empty() {
            self.waiting = self.waiting.without(class);
        }
        self.bytes -= u64::from(frame.length);
        Some(frame)
    }

    fn choose(&mut self, open: ClassMask, order: &ServiceOrder) -> Option<Class> {
        if open.0.is_power_of_two() {
            return Class::checked(open.0.trailing_zeros() as u8);
        }
        let strict = open.and(order.strict);
        if !strict.is_empty() {
            return Class::checked(7 - strict.0.leading_zeros() as u8);
        }
        if open.is_empty() {
            None
        } else {
            Some(self.take_turn(open, order))
        }
    }

    /// Deficit weighted round robin (Shreedhar and Varghese, SIGCOMM'95).
    fn take_turn(&mut self, open: ClassMask, order: &ServiceOrder) -> Class {
        loop {
            let class = Class::new(self.turn);
            if open.contains(class) {
                let length = self.lanes[class.index()]
                    .front()
                    .map_or(0, |frame| u32::from(frame.length));
                let deficit = &mut self.deficit[class.index()];
                if *deficit >= length {
                    *deficit -= length;
                    return class;
                }
            } else if !self.waiting.contains(class) {
                self.deficit[class.index()] = 0;
            }
            self.turn = (self.turn + 1) % Class::COUNT as u8;
            let next = self.turn as usize;
            if open.contains(Class::new(self.turn)) {
                self.deficit[next] += order.weights[next] * QUANTUM;
            }
        }
    }
}

/// The marking that a class of a port applies: the entry for its rate, or the one for any rate.
pub(crate) fn marking_for(entries: &[Ecn], link: &OutLink) -> Option<Ecn> {
    let exact = entries.iter().find(|entry| entry.rate == Some(link.rate));
    exact
        .or_else(|| entries.iter().find(|entry| entry.rate.is_none()))
        .copied()
}

#[cfg(test)]
mod tests {
    use softfabric_units::Rate;

    use super::*;
    use crate::plan::Timing;

    fn link() -> OutLink {
        OutLink::new(0, 0, Rate::gbps(100), Span::nanos(500), Timing::Exact)
    }

    #[test]
    fn a_wait_counts_while_it_lasts() {
        let at = Time::from_nanos;
        let mut transmitter = Transmitter::new(link());
        assert_eq!(transmitter.waited(at(10)), Span::ZERO);
        transmitter.block(at(10));
        transmitter.block(at(15));
        assert_eq!(transmitter.waited(at(30)), Span::nanos(20));
        transmitter.unblock(at(40));
        assert_eq!(transmitter.waited(at(50)), Span::nanos(30));
        transmitter.block(at(60));
        assert_eq!(transmitter.waited(at(61)), Span::nanos(31));
    }

    /// A port without a link waits for nobody.
    #[test]
    fn a_wait_ends_with_the_link() {
        let at = Time::from_nanos;
        let mut transmitter = Transmitter::new(link());
        transmitter.block(at(10));
        transmitter.lose_link(at(30));
        assert_eq!(transmitter.waited(at(90)), Span::nanos(20));
        transmitter.close(at(100));
        let waited = transmitter.port.value(PortCounter::TransmitWait);
        assert_eq!(Span::picos(waited), Span::nanos(20));
    }

    fn queues(counts: &[(u8, usize)]) -> Queues {
        let mut queues = Queues::default();
        for &(class, count) in counts {
            for _ in 0..count {
                queues.push(
                    Class::new(class),
                    Frame {
                        length: 1_000,
                        class: Class::new(class),
                        ..Frame::blank()
                    },
                );
            }
        }
        queues
    }

    fn served(queues: &mut Queues, order: &ServiceOrder) -> Option<u8> {
        let frame = queues.pop(queues.waiting(), order);
        frame.map(|frame| frame.class.as_u8())
    }

    #[test]
    fn the_highest_strict_class_goes_first() {
        let order = ServiceOrder::new(std::iter::repeat_n(Scheduling::Strict, Class::COUNT));
        let mut queues = queues(&[(1, 1), (6, 1), (4, 1)]);
        let all: Vec<_> = std::iter::from_fn(|| served(&mut queues, &order)).collect();
        assert_eq!(all, [6, 4, 1]);
    }

    #[test]
    fn a_class_that_runs_empty_saves_nothing_up() {
        let order = ServiceOrder::new(std::iter::repeat_n(Scheduling::Weighted(1), Class::COUNT));
        let mut queues = queues(&[(0, 1), (1, 40), (2, 40)]);
        // 16 packets of 1,000 B are a turn of 16,384 B.
        let turns: Vec<_> = (0..34)
            .filter_map(|_| served(&mut queues, &order))
            .collect();
        assert_eq!(turns[..32], [[1; 16], [2; 16]].concat());
        assert_eq!(turns[32..], [0, 1]);
        assert_eq!(queues.deficit[0], 0);
    }

    #[test]
    fn a_quantum_is_512_bit_times() {
        let mut transmitter = Transmitter::new(link());
        let class = Class::new(3);
        transmitter.obey(Time::ZERO, class, PauseRequest::Quanta(100));
        assert_eq!(transmitter.paused.until[3], Time::from_nanos(512));
        assert!(transmitter.resume(Time::from_nanos(512), class));
        let paused = transmitter.classes[3].value(ClassCounter::PauseReceivedDuration);
        assert_eq!(Span::picos(paused), Span::nanos(512));
    }

    #[test]
    fn the_marking_for_a_rate_goes_before_that_for_any() {
        let entry = |rate, kmin| Ecn {
            rate,
            kmin: Bytes::new(kmin),
            kmax: Bytes::new(9),
            pmax: 1.0,
            drop_not_capable: false,
        };
        let (any, exact) = (entry(None, 1), entry(Some(Rate::gbps(100)), 2));
        let other = entry(Some(Rate::gbps(25)), 3);
        let kmin = |entries: &[Ecn]| marking_for(entries, &link()).map(|ecn| ecn.kmin.as_u64());
        assert_eq!(kmin(&[any, other, exact]), Some(2));
        assert_eq!(kmin(&[other, any]), Some(1));
        assert_eq!(kmin(&[other]), None);
    }
}
