//! Connections in lockstep under a virtual clock, over a bottleneck that they share and a wire that errs.

mod behaviour;
mod properties;
mod theory;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use softfabric_units::{Bytes, Random, Rate, Span, Time};

use super::{Arrival, Connection, State, TcpConfig, Transmit};

/// What the wire is like.
#[derive(Clone, Debug)]
struct Path {
    /// The bottleneck's rate; the senders' own links are as fast as they like.
    rate: Rate,
    /// One way, each.
    delay: Span,
    /// Packets that the bottleneck's queue holds.
    room: usize,
    /// Packets that come to a queue of so many are marked, or, where the sender is not capable, left alone.
    marks_from: usize,
    /// Chances of each packet with data: to be lost, doubled, held up.
    loss: f64,
    duplication: f64,
    reordering: f64,
    /// The same for acknowledgements' losses.
    acknowledgement_loss: f64,
    /// How long a packet is held up.
    held: Span,
    seed: u64,
}

impl Path {
    fn clean(rate: Rate, delay: Span) -> Self {
        Self {
            rate,
            delay,
            room: usize::MAX,
            marks_from: usize::MAX,
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            acknowledgement_loss: 0.0,
            held: delay,
            seed: 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The packet at this place of the store arrives at an end.
    Arrives(usize),
    /// The bottleneck has sent a packet.
    Served,
    /// A flow starts.
    Starts(usize),
}

/// A packet of a flow; `forward` from its sender.
#[derive(Clone, Copy, Debug)]
struct Packet {
    flow: usize,
    forward: bool,
    segment: Transmit,
    marked: bool,
}

/// A flow's two ends, and what was seen.
struct Flow {
    ends: [Connection; 2],
    started: bool,
    bytes: u64,
    written: u64,
    read: u64,
    finished: Option<Time>,
}

/// Chooses the packets with data to drop: by flow, their number within it, and the segment.
type Dropper = Box<dyn FnMut(usize, u64, &Transmit) -> bool>;

struct World {
    now: Time,
    path: Path,
    flows: Vec<Flow>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    order: u64,
    store: Vec<Packet>,
    queue: VecDeque<Packet>,
    serving: bool,
    random: Random,
    dropper: Dropper,
    sent_data: u64,
    dropped: u64,
    marked: u64,
    /// Time during which the queue had each length, from when it is watched on.
    watch_from: Time,
    watched: Vec<Span>,
    since: Time,
    /// The receiver's application reads only when told to.
    reads: bool,
    log: Vec<(Time, bool, Transmit)>,
    logs: bool,
}

impl World {
    fn new(path: Path) -> Self {
        Self {
            now: Time::ZERO,
            random: Random::from_seed(path.seed),
            path,
            flows: Vec::new(),
            events: BinaryHeap::new(),
            order: 0,
            store: Vec::new(),
            queue: VecDeque::new(),
            serving: false,
            dropper: Box::new(|_, _, _| false),
            sent_data: 0,
            dropped: 0,
            marked: 0,
            watch_from: Time::NEVER,
            watched: Vec::new(),
            since: Time::ZERO,
            reads: true,
            log: Vec::new(),
            logs: false,
        }
    }

    fn add(&mut self, config: TcpConfig, bytes: u64, start: Time) -> usize {
        let flow = self.flows.len();
        let initial = self.random.bits() as u32;
        self.flows.push(Flow {
            ends: [
                Connection::connect(config, initial),
                Connection::listen(config, !initial),
            ],
            started: false,
            bytes,
            written: 0,
            read: 0,
            finished: None,
        });
        self.at(start, Event::Starts(flow));
        flow
    }

    fn at(&mut self, time: Time, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, event)));
    }

    /// Lets time pass until `end`, or until every flow is done.
    fn run(&mut self, end: Time) {
        loop {
            if self.flows.iter().all(|flow| flow.finished.is_some()) && self.events.is_empty() {
                return;
            }
            let timers = self.flows.iter().filter(|flow| flow.started);
            let timer = timers
                .flat_map(|flow| &flow.ends)
                .filter_map(Connection::poll_timeout)
                .min();
            let event = self.events.peek().map(|Reverse((time, ..))| *time);
            let next = match (event, timer) {
                (Some(event), Some(timer)) => event.min(timer),
                (Some(time), None) | (None, Some(time)) => time,
                (None, None) => return,
            };
            if next > end {
                return;
            }
            assert!(next >= self.now, "a timer of the past");
            self.now = next;
            if event == Some(next) {
                let Some(Reverse((_, _, event))) = self.events.pop() else {
                    unreachable!()
                };
                self.happens(event);
            } else {
                for flow in 0..self.flows.len() {
                    for end in 0..2 {
                        let connection = &mut self.flows[flow].ends[end];
                        if connection.poll_timeout().is_some_and(|time| time <= next) {
                            connection.handle_timeout(next);
                        }
                    }
                    self.drain(flow);
                }
            }
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Starts(flow) => {
                self.flows[flow].started = true;
                self.drain(flow);
            }
            Event::Served => {
                self.note_queue();
                let Some(packet) = self.queue.pop_front() else {
                    unreachable!()
                };
                self.travels(packet);
                self.serving = false;
                self.serve();
            }
            Event::Arrives(place) => {
                let packet = self.store[place];
                let flow = &mut self.flows[packet.flow];
                let arrival = Arrival {
                    header: &packet.segment.header,
                    payload: packet.segment.payload,
                    congestion: packet.marked,
                };
                flow.ends[usize::from(packet.forward)].handle_segment(self.now, &arrival);
                self.drain(packet.flow);
            }
        }
    }

    /// The application writes and reads, and everything that may leave leaves.
    fn drain(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        let [sender, receiver] = &mut state.ends;
        let writes = (state.bytes - state.written).min(sender.writable());
        if writes > 0 {
            state.written += writes;
            sender.write(writes, state.written == state.bytes);
        }
        if self.reads {
            let readable = receiver.readable();
            receiver.read(readable);
            state.read += readable;
        }
        if sender.acknowledged() == state.bytes && state.finished.is_none() {
            state.finished = Some(self.now);
        }
        for end in 0..2 {
            while let Some(segment) = self.flows[flow].ends[end].poll_transmit(self.now) {
                self.send(flow, end == 0, segment);
            }
            debug_assert!(self.flows[flow].ends[end].books_agree());
        }
    }

    fn send(&mut self, flow: usize, forward: bool, segment: Transmit) {
        if self.logs {
            self.log.push((self.now, forward, segment));
        }
        let mut packet = Packet {
            flow,
            forward,
            segment,
            marked: false,
        };
        if !forward {
            if self.random.chance(self.path.acknowledgement_loss) {
                self.dropped += 1;
                return;
            }
            return self.travels(packet);
        }
        if segment.payload > 0 {
            self.sent_data += 1;
            let number = self.sent_data;
            if (self.dropper)(flow, number, &segment) || self.random.chance(self.path.loss) {
                self.dropped += 1;
                return;
            }
        }
        if self.queue.len() >= self.path.room {
            self.dropped += 1;
            return;
        }
        if self.queue.len() >= self.path.marks_from && segment.ecn_capable {
            packet.marked = true;
            self.marked += 1;
        }
        self.note_queue();
        self.queue.push_back(packet);
        if self.random.chance(self.path.duplication) {
            self.queue.push_back(packet);
        }
        self.serve();
    }

    fn serve(&mut self) {
        if self.serving {
            return;
        }
        if let Some(packet) = self.queue.front() {
            self.serving = true;
            let length = 14
                + 20
                + packet.segment.header.length() as u64
                + u64::from(packet.segment.payload)
                + 24;
            let time = self.now + self.path.rate.time_for(Bytes::new(length));
            self.at(time, Event::Served);
        }
    }

    fn travels(&mut self, packet: Packet) {
        let mut time = self.now + self.path.delay;
        if self.random.chance(self.path.reordering) {
            time += self.path.held;
        }
        self.store.push(packet);
        self.at(time, Event::Arrives(self.store.len() - 1));
    }

    fn note_queue(&mut self) {
        if self.now >= self.watch_from {
            let length = self.queue.len();
            if self.watched.len() <= length {
                self.watched.resize(length + 1, Span::ZERO);
            }
            self.watched[length] += self.now.since(self.since.max(self.watch_from));
        }
        self.since = self.now;
    }

    fn goodput(&self, flow: usize, from: Time) -> f64 {
        let flow = &self.flows[flow];
        let end = flow.finished.unwrap_or(self.now);
        flow.read as f64 * 8.0 / end.since(from).as_seconds_f64()
    }
}

fn is_failed(connection: &Connection) -> bool {
    connection.state() == State::Failed
}
