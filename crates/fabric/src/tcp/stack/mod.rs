//! All connections of one host, its applications and its processors.
//!
//! An application writes its stream as fast as the send buffer takes it and reads what has come; what that costs, the
//! [`CpuModel`] says. Without one, work takes no time. One that has messages to send ([`Stack::post`]) writes each by calls of
//! its own, and hears of every message that is written and of every read.
//!
//! The contract is that of a connection: change it, drain it ([`Stack::poll_transmit`], [`Stack::poll_event`]), and ask
//! when to come back.

mod receive;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::FxHashMap;
use softfabric_units::{Bytes, Class, ClassMask, Span, Time};

use self::receive::{Batch, Ring};
use super::cpu::{Core, CpuTime, Work};
use super::{Connection, CpuModel, State, Statistics, TcpConfig, Transmit};

pub use self::receive::Packet;

/// What a host's connections and applications are set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StackConfig {
    /// Its connections.
    pub tcp: TcpConfig,
    /// What its processors take; `None`: nothing.
    pub cpu: Option<CpuModel>,
    /// How much an application writes or reads at once, at most.
    pub call: Bytes,
}

/// A connection to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Its number; the same at both ends.
    pub id: u32,
    /// This end sends the SYN.
    pub active: bool,
    /// How much the application here will write.
    pub writes: u64,
    /// How much it will read.
    pub reads: u64,
    /// It sends messages, which nobody knows yet, and takes some: it hears of each that is written, and of each read.
    pub messages: bool,
    /// How much it writes at once, where that is less than the stack's setting.
    pub call: Option<Bytes>,
    /// Marks are understood, if the other end says so too.
    pub ecn: bool,
    /// The traffic class of its packets.
    pub class: Class,
    /// The port of the host by which they leave.
    pub port: usize,
}

/// Something that an application should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackEvent {
    /// All that was written is acknowledged.
    Sent(u32),
    /// All that was to be read is read.
    Received(u32),
    /// The oldest message that was posted is written: the send buffer has all of it.
    Written(u32),
    /// Something has been read; [`Stack::read`] says how much by now.
    Read(u32),
    /// The connection has failed.
    Failed(u32),
}

/// A segment that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Of this connection.
    pub id: u32,
    /// In this class.
    pub class: Class,
    /// The segment.
    pub segment: Transmit,
}

/// What a host has counted beside what its connections have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackStatistics {
    /// The connections' counts, all together.
    pub connections: Statistics,
    /// Processor time.
    pub time: CpuTime,
    /// Reads and writes.
    pub system_calls: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Segments received, as the wire had them, and as the stack got them after merging.
    pub frames: u64,
    /// After merging.
    pub merged: u64,
    /// Frames that found the ring full.
    pub ring_dropped: u64,
}

/// One connection and its application.
#[derive(Debug)]
struct Socket {
    connection: Connection,
    class: Class,
    port: usize,
    core: usize,
    call: u64,
    messages: bool,
    /// What the application has yet to write, message by message, and a write under way.
    to_write: VecDeque<u64>,
    writing: bool,
    written: u64,
    /// Bytes that it has yet to read, and a read under way.
    to_read: u64,
    reading: bool,
    read: u64,
    /// It is in the queue of those that may have something to send.
    queued: bool,
    /// When its timer is registered for.
    timer: Time,
    told_sent: bool,
    told_failed: bool,
}

/// What a processor finishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// The NIC interrupts the core.
    Interrupt(usize),
    /// A batch is through the stack.
    Batch(usize),
    Write(u32, u64),
    Read(u32, u64),
    /// A connection's timer.
    Timer(u32),
}

/// All connections of one host.
#[derive(Debug)]
pub struct Stack {
    config: StackConfig,
    sockets: FxHashMap<u32, Socket>,
    /// By port: connections that may have something to send.
    ready: Vec<VecDeque<u32>>,
    cores: Vec<Core>,
    rings: Vec<Ring>,
    tasks: BinaryHeap<Reverse<(Time, u64, Task)>>,
    order: u64,
    events: VecDeque<StackEvent>,
    statistics: StackStatistics,
    /// Payload bytes that applications have read.
    delivered: u64,
    /// Reads under way.
    reads: u64,
    /// How many times as long as usual work takes.
    slowness: f64,
}

/// Spreads initial sequence numbers. Nobody here guesses them: RFC 9293, 3.4.1 is stricter.
const SPREAD: u32 = 0x9e37_79b1;

impl Stack {
    /// A host with so many ports and no connections.
    pub fn new(config: StackConfig, ports: usize) -> Self {
        let cores = config.cpu.map_or(0, |cpu| cpu.cores.max(1) as usize);
        Self {
            config,
            sockets: FxHashMap::default(),
            ready: vec![VecDeque::new(); ports.max(1)],
            cores: vec![Core::default(); cores],
            rings: (0..cores).map(|_| Ring::default()).collect(),
            tasks: BinaryHeap::new(),
            order: 0,
            events: VecDeque::new(),
            statistics: StackStatistics::default(),
            delivered: 0,
            reads: 0,
            slowness: 1.0,
        }
    }

    /// Its settings.
    pub fn config(&self) -> &StackConfig {
        &self.config
    }

    /// Opens one end of a connection. An id that is open stays as it is.
    pub fn open(&mut self, now: Time, open: &Open) {
        if self.sockets.contains_key(&open.id) {
            return;
        }
        let tcp = TcpConfig {
            ecn: open.ecn,
            ..self.config.tcp
        };
        let initial = open.id.wrapping_mul(SPREAD);
        let connection = if open.active {
            Connection::connect(tcp, initial)
        } else {
            Connection::listen(tcp, !initial)
        };
        let call = open.call.map_or(u64::MAX, Bytes::as_u64);
        let call = call
            .min(self.config.call.as_u64())
            .min(tcp.send_buffer.as_u64());
        let socket = Socket {
            connection,
            class: open.class,
            port: open.port.min(self.ready.len() - 1),
            core: open.id as usize % self.cores.len().max(1),
            call: call.max(1),
            messages: open.messages,
            to_write: (open.writes > 0)
                .then_some(open.writes)
                .into_iter()
                .collect(),
            writing: false,
            written: 0,
            to_read: open.reads,
            reading: false,
            read: 0,
            queued: false,
            timer: Time::NEVER,
            told_sent: open.writes == 0,
            told_failed: false,
        };
        self.sockets.insert(open.id, socket);
        self.look_after(now, open.id);
    }

    /// From now on all work takes so many times as long as usual.
    pub fn set_slowness(&mut self, slowness: f64) {
        self.slowness = slowness;
    }

    /// The application has one more message to send.
    pub fn post(&mut self, now: Time, id: u32, bytes: u64) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.to_write.push_back(bytes);
            self.look_after(now, id);
        }
    }

    /// The application has no more messages: [`StackEvent::Sent`] comes once all that it wrote is acknowledged.
    pub fn end_of_messages(&mut self, now: Time, id: u32) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.told_sent = false;
            self.look_after(now, id);
        }
    }

    /// The connection takes no part any more.
    pub fn close(&mut self, id: u32) {
        if let Some(socket) = self.sockets.remove(&id) {
            add(
                &mut self.statistics.connections,
                socket.connection.statistics(),
            );
        }
    }

    /// A connection that is open.
    pub fn connection(&self, id: u32) -> Option<&Connection> {
        self.sockets.get(&id).map(|socket| &socket.connection)
    }

    /// Bytes of a connection that the application here has read.
    pub fn read(&self, id: u32) -> u64 {
        self.sockets.get(&id).map_or(0, |socket| socket.read)
    }

    /// How many reads are under way: what has come waits for no longer than that.
    pub fn reads_under_way(&self) -> u64 {
        self.reads
    }

    /// The port by which a connection's packets leave, while it is open.
    pub fn port(&self, id: u32) -> Option<usize> {
        self.sockets.get(&id).map(|socket| socket.port)
    }

    /// Bytes that all applications here have read.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// What the host has counted, all connections together.
    pub fn statistics(&self) -> StackStatistics {
        let mut sum = self.statistics;
        let mut open: Vec<_> = self.sockets.iter().collect();
        open.sort_unstable_by_key(|(id, _)| **id);
        for (_, socket) in open {
            add(&mut sum.connections, socket.connection.statistics());
        }
        sum
    }

    fn at(&mut self, time: Time, task: Task) {
        self.order += 1;
        self.tasks.push(Reverse((time, self.order, task)));
    }

    /// The next segment that may leave by a port in one of the `open` classes; connections take turns.
    pub fn poll_transmit(&mut self, now: Time, port: usize, open: ClassMask) -> Option<Outgoing> {
        let mut passed = 0;
        while let Some(&id) = self.ready[port].get(passed) {
            let Some(socket) = self.sockets.get_mut(&id) else {
                self.ready[port].remove(passed);
                continue;
            };
            if !open.contains(socket.class) {
                passed += 1;
                continue;
            }
            self.ready[port].remove(passed);
            let before = socket.connection.statistics().retransmitted;
            let Some(segment) = socket.connection.poll_transmit(now) else {
                socket.queued = false;
                self.set_timer(id);
                continue;
            };
            let (class, core) = (socket.class, socket.core);
            if let Some(cpu) = self.config.cpu
                && socket.connection.statistics().retransmitted > before
            {
                self.statistics.time.add(Work::Stack, cpu.segment);
                self.cores[core].run(now, cpu.segment);
            }
            self.ready[port].push_back(id);
            self.set_timer(id);
            return Some(Outgoing { id, class, segment });
        }
        None
    }

    /// Something that an application should know, in the order in which it happened.
    pub fn poll_event(&mut self) -> Option<StackEvent> {
        self.events.pop_front()
    }

    /// When [`Stack::handle_timeout`] is to be called, if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.tasks.peek().map(|Reverse((time, ..))| *time)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(Reverse((time, _, task))) = self.tasks.peek().copied()
            && time <= now
        {
            self.tasks.pop();
            self.finish(now, task);
        }
    }

    fn finish(&mut self, now: Time, task: Task) {
        match task {
            Task::Interrupt(core) => self.interrupt(now, core),
            Task::Batch(core) => self.batch_done(now, core),
            Task::Write(id, bytes) => {
                self.write_done(id, bytes);
                self.look_after(now, id);
            }
            Task::Read(id, bytes) => {
                self.reads -= 1;
                self.read_done(id, bytes);
                self.look_after(now, id);
            }
            Task::Timer(id) => {
                let Some(socket) = self.sockets.get_mut(&id) else {
                    return;
                };
                socket.timer = Time::NEVER;
                if socket
                    .connection
                    .poll_timeout()
                    .is_some_and(|time| time <= now)
                {
                    socket.connection.handle_timeout(now);
                    self.look_after(now, id);
                }
                self.set_timer(id);
            }
        }
    }

    /// Registers a connection's timer. One that is registered for earlier is left, and looked at then.
    fn set_timer(&mut self, id: u32) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if let Some(time) = socket.connection.poll_timeout()
            && time < socket.timer
        {
            socket.timer = time;
            self.at(time, Task::Timer(id));
        }
    }

    /// Something about a connection has changed: the application writes and reads, and it may have something to send.
    fn look_after(&mut self, now: Time, id: u32) {
        loop {
            let wrote = self.start_write(now, id);
            let read = self.start_read(now, id);
            if !(wrote || read) {
                break;
            }
        }
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        let all_written = socket.to_write.is_empty() && !socket.writing;
        let connected = socket.connection.state() == State::Established;
        let acknowledged = socket.connection.acknowledged() == socket.written;
        if !socket.told_sent && all_written && connected && acknowledged {
            socket.told_sent = true;
            self.events.push_back(StackEvent::Sent(id));
        }
        if !socket.told_failed && socket.connection.state() == State::Failed {
            socket.told_failed = true;
            self.events.push_back(StackEvent::Failed(id));
        }
        if !socket.queued {
            socket.queued = true;
            self.ready[socket.port].push_back(id);
        }
        self.set_timer(id);
    }

    /// The application writes, if the send buffer has room for a whole call. True if that is done already.
    fn start_write(&mut self, now: Time, id: u32) -> bool {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return false;
        };
        let Some(message) = socket.to_write.front_mut() else {
            return false;
        };
        let bytes = socket.call.min(*message);
        let connected = socket.connection.state() == State::Established;
        if socket.writing || !connected || socket.connection.writable() < bytes {
            return false;
        }
        *message -= bytes;
        socket.writing = true;
        self.statistics.system_calls += 1;
        let Some(cpu) = self.config.cpu else {
            self.write_done(id, bytes);
            return true;
        };
        let core = socket.core;
        let copy = cpu.write_copy.time_for(Bytes::new(bytes));
        let segments = cpu.segment * bytes.div_ceil(cpu.offload.as_u64().max(1));
        let work = [
            (Work::SystemCall, cpu.system_call),
            (Work::Copy, copy),
            (Work::Stack, segments),
        ];
        let done = self.spend(now, core, work);
        self.at(done, Task::Write(id, bytes));
        false
    }

    fn write_done(&mut self, id: u32, bytes: u64) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.writing = false;
            socket.written += bytes;
            socket.connection.write(bytes, true);
            if socket.to_write.front() == Some(&0) {
                socket.to_write.pop_front();
                if socket.messages {
                    self.events.push_back(StackEvent::Written(id));
                }
            }
        }
    }

    /// The application reads, if there is anything. True if that is done already.
    fn start_read(&mut self, now: Time, id: u32) -> bool {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return false;
        };
        let bytes = socket
            .connection
            .readable()
            .min(self.config.call.as_u64().max(1));
        if bytes == 0 || socket.reading {
            return false;
        }
        socket.reading = true;
        self.statistics.system_calls += 1;
        let Some(cpu) = self.config.cpu else {
            self.read_done(id, bytes);
            return true;
        };
        let core = socket.core;
        let copy = cpu.read_copy.time_for(Bytes::new(bytes));
        let work = [
            (Work::SystemCall, cpu.wake_up + cpu.system_call),
            (Work::Copy, copy),
        ];
        let done = self.spend(now, core, work);
        self.reads += 1;
        self.at(done, Task::Read(id, bytes));
        false
    }

    fn read_done(&mut self, id: u32, bytes: u64) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        socket.reading = false;
        socket.read += bytes;
        socket.connection.read(bytes);
        self.delivered += bytes;
        if socket.messages {
            self.events.push_back(StackEvent::Read(id));
        }
        let before = socket.to_read;
        socket.to_read = before.saturating_sub(bytes);
        if before > 0 && socket.to_read == 0 {
            self.events.push_back(StackEvent::Received(id));
        }
    }

    /// Application work on a core: when it is done.
    fn spend<const N: usize>(&mut self, now: Time, core: usize, work: [(Work, Span); N]) -> Time {
        let mut sum = Span::ZERO;
        for (kind, span) in work {
            let span = slowed(span, self.slowness);
            self.statistics.time.add(kind, span);
            sum += span;
        }
        self.cores[core].run(now, sum)
    }

    /// A batch for a core, whose work goes before the application's.
    fn take_batch(&mut self, now: Time, core: usize, entry: Span, cpu: &CpuModel) {
        let batch = self.rings[core].take(cpu);
        let entry = slowed(entry, self.slowness);
        let cost = slowed(batch.cost(cpu), self.slowness);
        self.statistics.frames += batch.frames;
        self.statistics.merged += batch.packets.len() as u64;
        self.statistics.time.add(Work::Interrupt, entry);
        self.statistics.time.add(Work::Stack, cost);
        self.rings[core].in_work = batch;
        let done = self.cores[core].interrupt(now, entry + cost);
        self.at(done, Task::Batch(core));
    }

    fn interrupt(&mut self, now: Time, core: usize) {
        let Some(cpu) = self.config.cpu else { return };
        let ring = &mut self.rings[core];
        if ring.polling || ring.is_empty() {
            return;
        }
        ring.polling = true;
        self.statistics.interrupts += 1;
        self.take_batch(now, core, cpu.interrupt, &cpu);
    }

    fn batch_done(&mut self, now: Time, core: usize) {
        let Some(cpu) = self.config.cpu else { return };
        let Batch { packets, .. } = std::mem::take(&mut self.rings[core].in_work);
        for packet in &packets {
            self.take(now, packet);
        }
        if self.rings[core].is_empty() {
            self.rings[core].polling = false;
        } else {
            self.take_batch(now, core, Span::ZERO, &cpu);
        }
    }

    /// A segment has come off the wire. False if the ring had no room for it.
    pub fn arrive(&mut self, now: Time, packet: Packet) -> bool {
        let Some(cpu) = self.config.cpu else {
            self.statistics.frames += 1;
            self.statistics.merged += 1;
            self.take(now, &packet);
            return true;
        };
        let core = self.sockets.get(&packet.id).map_or(0, |socket| socket.core);
        let ring = &mut self.rings[core];
        if ring.len() >= cpu.ring as usize {
            self.statistics.ring_dropped += 1;
            return false;
        }
        ring.push(packet);
        let waiting = ring.len();
        if ring.polling {
            return true;
        }
        if waiting >= cpu.coalesced_frames.max(1) as usize {
            self.interrupt(now, core);
        } else if waiting == 1 {
            self.at(now + cpu.coalescing, Task::Interrupt(core));
        }
        true
    }

    /// A segment, or several in a row, reach the connection.
    fn take(&mut self, now: Time, packet: &Packet) {
        if let Some(socket) = self.sockets.get_mut(&packet.id) {
            socket.connection.handle_segment(now, &packet.arrival());
            self.look_after(now, packet.id);
        }
    }

    /// Frames that wait for a processor.
    pub fn waiting(&self) -> u64 {
        self.rings.iter().map(|ring| ring.held()).sum()
    }
}

fn slowed(span: Span, slowness: f64) -> Span {
    if slowness == 1.0 {
        return span;
    }
    Span::picos((span.as_picos() as f64 * slowness) as u64)
}

fn add(sum: &mut Statistics, more: &Statistics) {
    sum.sent += more.sent;
    sum.retransmitted += more.retransmitted;
    sum.timeouts += more.timeouts;
    sum.fast_recoveries += more.fast_recoveries;
    sum.reductions += more.reductions;
    sum.echoes += more.echoes;
    sum.acknowledgements += more.acknowledgements;
    sum.duplicates += more.duplicates;
    sum.out_of_order += more.out_of_order;
    sum.marked += more.marked;
}
