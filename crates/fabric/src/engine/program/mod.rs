//! The ranks of a host: which task may begin, which message may leave, and what is over.
//!
//! ```text
//!            a task is over                order: post message m on flow f
//! tasks ────────────────────► tasks ready ────────────────────────────────► Carrier (queue pairs, or connections)
//!   ▲                         ▲                                              │
//!   │ gates                   │ sent                                         │
//!   └──────── receives ◄──────┴──────────── arrived, failed ◄────────────────┘
//! ```
//!
//! A message says its place in the channel, so a channel may deal its messages over several flows. When a queue pair fails,
//! what it had posted is sent anew over another one, and what comes twice counts once. A connection that fails is the end of
//! its channel: what its socket has taken and not delivered, nobody knows.

mod build;
mod carrier;
mod channel;
mod server;
mod stream;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::FxHashMap;
use softfabric_units::{Bytes, Span, Time};

pub(crate) use build::programs;
pub(crate) use carrier::{Carrier, Note, POSTED};
pub(crate) use stream::{HEADER, Header, Streams};

use crate::plan::{DataPath, ServerProfile};
use carrier::Order;
use channel::{Arrivals, Incoming, Outgoing};
use server::{Local, Server};

/// The ranks of one host, of all jobs.
#[derive(Debug)]
pub(crate) struct Program {
    profile: ServerProfile,
    /// How many times as long as usual computations take at present.
    pub(crate) slowness: f64,
    /// When something is broken, and how much of each job has come from other hosts before, meanwhile and since.
    disturbed: Option<(Time, Time)>,
    moved: FxHashMap<u32, [u64; 3]>,
    /// Flows are connections: opened when the job starts, and not replaced when they fail.
    connects: bool,
    server: Server,
    ranks: Vec<RankState>,
    tasks: Vec<TaskState>,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    /// What each flow is to this host.
    roles: FxHashMap<u32, Role>,
    /// What is to happen at a time that is known; of one instant in the order in which it was made known.
    alarms: BinaryHeap<Reverse<(Time, u64, Alarm)>>,
    made: u64,
    /// When the host is told of the time next.
    armed: Time,
    orders: Vec<Order>,
    /// Ranks that have come to their end since the last look.
    ended: u64,
    processor: Processor,
}

/// Time that the processor of a host spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Processor {
    /// On work requests and completions.
    pub(crate) requests: Span,
    /// On copies through host memory.
    pub(crate) copies: Span,
}

/// How a task went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskRecord {
    pub(crate) job: u32,
    /// Its index in the job.
    pub(crate) task: u32,
    pub(crate) begun: Option<Time>,
    pub(crate) over: Option<Time>,
    /// Messages that have come, or that are sent.
    pub(crate) messages: u32,
}

/// What a flow is to a host.
#[derive(Clone, Copy, Debug)]
enum Role {
    Sends { channel: u32, place: u32 },
    Receives { channel: u32 },
}

#[derive(Debug)]
struct RankState {
    job: u32,
    /// Tasks that are not over.
    left: u32,
    /// The accelerator, and what else computes.
    processors: Vec<Computing>,
}

/// A processor of a rank.
#[derive(Debug, Default)]
struct Computing {
    /// Computations that may begin, in the order in which they could; one runs at a time.
    ready: VecDeque<u32>,
    busy: bool,
}

#[derive(Debug)]
struct TaskState {
    /// Its index in its job.
    id: u32,
    /// Its rank, of those of this host.
    rank: u32,
    /// Which of the rank's processors computes.
    processor: u8,
    /// Tasks that it still waits for.
    waits: u32,
    /// Tasks that wait for its end.
    followers: Vec<u32>,
    /// Tasks that wait for its beginning.
    companions: Vec<u32>,
    begun: Option<Time>,
    over: Option<Time>,
    work: Doing,
}

#[derive(Debug)]
enum Doing {
    Compute(Span),
    Send(Sending),
    Receive(Receiving),
}

#[derive(Debug)]
struct Sending {
    channel: u32,
    /// The place of its first message in the channel.
    first: u32,
    messages: u32,
    bytes: Bytes,
    /// So many are one to its gates.
    pieces: u32,
    /// Receives of this host, and how many messages go ahead of them.
    gates: Vec<(u32, i32)>,
    /// Messages let go, and sent.
    released: u32,
    done: u32,
}

#[derive(Debug)]
struct Receiving {
    messages: u32,
    /// So many are one to whoever waits for them.
    pieces: u32,
    handling: Span,
    arrivals: Arrivals,
    /// Messages that are of use.
    usable: u32,
    /// Sends that wait for them.
    gated: Vec<u32>,
}

/// What happens at a known time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    /// A task without anything to wait for begins with its job.
    Begin { task: u32 },
    /// A computation is over.
    Computed { task: u32 },
    /// The connections of a channel are opened.
    Connect { channel: u32 },
    /// A message may be posted.
    Ready { channel: u32, message: u32 },
    /// A message to another accelerator of the server has left.
    Left { channel: u32, message: u32 },
    /// A message is in the accelerator's memory.
    Landed { channel: u32, message: u32 },
    /// So many messages of a receive are of use.
    Usable { task: u32, messages: u32 },
}

impl Program {
    /// When something is to happen that has not been asked for before; the host is to call [`Self::alarm`] then.
    pub(crate) fn next_alarm(&mut self) -> Option<Time> {
        let Reverse((time, ..)) = *self.alarms.peek()?;
        if time >= self.armed {
            return None;
        }
        self.armed = time;
        Some(time)
    }

    /// What is to happen until now happens.
    pub(crate) fn alarm(&mut self, now: Time) {
        if now >= self.armed {
            self.armed = Time::NEVER;
        }
        while let Some(&Reverse((time, _, alarm))) = self.alarms.peek()
            && time <= now
        {
            self.alarms.pop();
            match alarm {
                Alarm::Begin { task } => self.begin(now, task),
                Alarm::Computed { task } => self.computed(now, task),
                Alarm::Connect { channel } => self.connect(channel),
                Alarm::Ready { channel, message } => {
                    self.outgoing[channel as usize].waiting.push_back(message);
                    self.deal(channel);
                }
                Alarm::Left { channel, message } => {
                    let from = self.outgoing[channel as usize].accelerator;
                    self.server.idle(from);
                    self.start_local(now, from);
                    self.sent(now, channel, message);
                }
                Alarm::Landed { channel, message } => self.landed(now, channel, message),
                Alarm::Usable { task, messages } => self.usable(now, task, messages),
            }
        }
    }

    /// What carries the messages has something to say.
    fn hear(&mut self, now: Time, note: Note) {
        let (Note::Arrived { flow, .. } | Note::Sent { flow } | Note::Failed { flow }) = note;
        match (note, self.roles.get(&flow).copied()) {
            (Note::Arrived { message, .. }, Some(Role::Receives { channel })) => {
                self.processor.requests += self.profile.complete;
                self.arrived(now, channel, message);
            }
            (Note::Sent { .. }, Some(Role::Sends { channel, place })) => {
                self.processor.requests += self.profile.complete;
                let lane = &mut self.outgoing[channel as usize].lanes[place as usize];
                if let Some(message) = lane.posted.pop_front() {
                    self.sent(now, channel, message);
                    self.deal(channel);
                }
            }
            (Note::Failed { .. }, Some(Role::Sends { channel, place })) => {
                let out = &mut self.outgoing[channel as usize];
                out.fail(place as usize);
                if self.connects {
                    out.lanes.iter_mut().for_each(|lane| lane.failed = true);
                }
                self.deal(channel);
            }
            _ => {}
        }
    }

    /// What the processor was busy with.
    pub(crate) fn processor(&self) -> Processor {
        self.processor
    }

    /// How every task went.
    pub(crate) fn records(&self) -> impl Iterator<Item = TaskRecord> + '_ {
        self.tasks.iter().map(|task| TaskRecord {
            job: self.ranks[task.rank as usize].job,
            task: task.id,
            begun: task.begun,
            over: task.over,
            messages: match &task.work {
                Doing::Compute(_) => 0,
                Doing::Send(sending) => sending.done,
                Doing::Receive(receiving) => receiving.arrivals.prefix,
            },
        })
    }

    fn at(&mut self, time: Time, alarm: Alarm) {
        self.alarms.push(Reverse((time, self.made, alarm)));
        self.made += 1;
    }

    /// A task has nothing to wait for any more; nor have those that only waited for its beginning.
    fn begin(&mut self, now: Time, index: u32) {
        let mut next = VecDeque::new();
        let mut task = Some(index);
        while let Some(index) = task {
            self.begin_one(now, index);
            if self.tasks[index as usize].begun.is_some() {
                next.extend(self.companions(index));
            }
            task = next.pop_front();
        }
    }

    /// The tasks that waited for the beginning of this one, and for nothing else.
    fn companions(&mut self, index: u32) -> Vec<u32> {
        let mut companions = std::mem::take(&mut self.tasks[index as usize].companions);
        companions.retain(|companion| {
            let waiting = &mut self.tasks[*companion as usize];
            waiting.waits -= 1;
            waiting.waits == 0
        });
        companions
    }

    fn begin_one(&mut self, now: Time, index: u32) {
        let task = &mut self.tasks[index as usize];
        match &task.work {
            Doing::Compute(_) => {
                let (rank, processor) = (task.rank, task.processor);
                let state = &mut self.ranks[rank as usize];
                state.processors[usize::from(processor)]
                    .ready
                    .push_back(index);
                self.compute(now, rank, processor);
            }
            Doing::Send(_) => {
                task.begun = Some(now);
                self.release(now, index);
            }
            Doing::Receive(receiving) => {
                task.begun = Some(now);
                if receiving.usable == receiving.messages {
                    self.over(now, index);
                }
            }
        }
    }

    /// A processor takes up its next computation, if it is idle.
    fn compute(&mut self, now: Time, rank: u32, processor: u8) {
        let state = &mut self.ranks[rank as usize].processors[usize::from(processor)];
        if state.busy {
            return;
        }
        let Some(index) = state.ready.pop_front() else {
            return;
        };
        state.busy = true;
        let task = &mut self.tasks[index as usize];
        task.begun = Some(now);
        if let Doing::Compute(span) = task.work {
            let picos = span.as_picos() as f64 * self.profile.slowness * self.slowness;
            self.at(
                now + Span::picos(picos as u64),
                Alarm::Computed { task: index },
            );
        }
        for companion in self.companions(index) {
            self.begin(now, companion);
        }
    }

    fn computed(&mut self, now: Time, index: u32) {
        let task = &self.tasks[index as usize];
        let (rank, processor) = (task.rank, task.processor);
        self.ranks[rank as usize].processors[usize::from(processor)].busy = false;
        self.over(now, index);
        self.compute(now, rank, processor);
    }

    /// A task is over: those that waited for nothing else begin.
    fn over(&mut self, now: Time, index: u32) {
        let task = &mut self.tasks[index as usize];
        debug_assert!(task.over.is_none());
        task.over = Some(now);
        let rank = &mut self.ranks[task.rank as usize];
        rank.left -= 1;
        self.ended += u64::from(rank.left == 0);
        for follower in std::mem::take(&mut task.followers) {
            let waiting = &mut self.tasks[follower as usize];
            waiting.waits -= 1;
            if waiting.waits == 0 {
                self.begin(now, follower);
            }
        }
    }

    /// Lets go of the messages of a send that its gates allow.
    fn release(&mut self, now: Time, index: u32) {
        loop {
            let task = &self.tasks[index as usize];
            let Doing::Send(sending) = &task.work else {
                return;
            };
            if task.begun.is_none() || sending.released == sending.messages {
                return;
            }
            let open = sending.gates.iter().all(|&(receive, lead)| {
                match &self.tasks[receive as usize].work {
                    Doing::Receive(receiving) => {
                        let whole = i64::from(sending.released / sending.pieces.max(1)) + 1;
                        let needed = (whole - i64::from(lead)) * i64::from(receiving.pieces);
                        i64::from(receiving.usable) >= needed.min(receiving.messages.into())
                    }
                    _ => true,
                }
            });
            if !open {
                return;
            }
            let (channel, message) = (sending.channel, sending.first + sending.released);
            let bytes = sending.bytes;
            if let Doing::Send(sending) = &mut self.tasks[index as usize].work {
                sending.released += 1;
            }
            self.dispatch(now, channel, message, bytes);
        }
    }

    /// A message sets out: to another accelerator, to another host, or to host memory first.
    fn dispatch(&mut self, now: Time, channel: u32, message: u32, bytes: Bytes) {
        let out = &self.outgoing[channel as usize];
        if let Some((from, to)) = out.within {
            self.server.queue(
                from,
                Local {
                    channel,
                    message,
                    bytes,
                    to,
                },
            );
            return self.start_local(now, from);
        }
        let accelerator = out.accelerator;
        let mut ready = now;
        if let DataPath::Staged(staging) = &self.profile.data_path {
            self.processor.copies += staging.processor;
            ready = self.server.stage_out(now, accelerator, bytes, staging);
        }
        self.processor.requests += self.profile.post;
        ready += self.profile.post;
        if ready > now {
            self.at(ready, Alarm::Ready { channel, message });
        } else {
            self.outgoing[channel as usize].waiting.push_back(message);
            self.deal(channel);
        }
    }

    /// The link of an accelerator takes up its next message to another one, if it is idle.
    fn start_local(&mut self, now: Time, from: u32) {
        if let Some((local, left, there)) = self.server.start(now, from, &self.profile) {
            let Local {
                channel, message, ..
            } = local;
            self.at(left, Alarm::Left { channel, message });
            let channel = self.outgoing[channel as usize].incoming;
            self.at(there, Alarm::Landed { channel, message });
        }
    }

    /// Opens the connections of a channel.
    fn connect(&mut self, channel: u32) {
        for lane in &mut self.outgoing[channel as usize].lanes {
            lane.open = true;
            self.orders.push(Order::Open { flow: lane.flow });
        }
    }

    /// Posts what is ready, as far as the flows have room.
    fn deal(&mut self, channel: u32) {
        let out = &mut self.outgoing[channel as usize];
        while let Some(&message) = out.waiting.front()
            && let Some(place) = out.lane(message)
        {
            out.waiting.pop_front();
            let bytes = match &self.tasks[out.task_of(message) as usize].work {
                Doing::Send(sending) => sending.bytes,
                _ => Bytes::ZERO,
            };
            let lane = &mut out.lanes[place];
            let flow = lane.flow;
            if !std::mem::replace(&mut lane.open, true) {
                self.orders.push(Order::Open { flow });
            }
            lane.posted.push_back(message);
            self.orders.push(Order::Post {
                flow,
                message,
                bytes,
            });
        }
    }

    /// A message is sent, and its memory is free again.
    fn sent(&mut self, now: Time, channel: u32, message: u32) {
        let out = &mut self.outgoing[channel as usize];
        out.left -= 1;
        if out.left == 0 {
            for lane in out.lanes.iter().filter(|lane| !lane.failed) {
                if !lane.open {
                    self.orders.push(Order::Open { flow: lane.flow });
                }
                self.orders.push(Order::Close { flow: lane.flow });
            }
        }
        let index = out.task_of(message);
        if let Doing::Send(sending) = &mut self.tasks[index as usize].work {
            sending.done += 1;
            if sending.done == sending.messages {
                self.over(now, index);
            }
        }
    }

    /// A message has come from the network.
    fn arrived(&mut self, now: Time, channel: u32, message: u32) {
        let DataPath::Staged(staging) = self.profile.data_path else {
            return self.landed(now, channel, message);
        };
        let incoming = &self.incoming[channel as usize];
        let (accelerator, bytes) = (incoming.accelerator, incoming.bytes_of(message));
        self.processor.copies += staging.processor;
        let there = self.server.stage_in(now, accelerator, bytes, &staging);
        self.at(there, Alarm::Landed { channel, message });
    }

    /// A message is in the accelerator's memory.
    fn landed(&mut self, now: Time, channel: u32, message: u32) {
        let (index, place) = self.incoming[channel as usize].task_of(message);
        let Doing::Receive(receiving) = &mut self.tasks[index as usize].work else {
            return;
        };
        let before = receiving.arrivals.prefix;
        let is_new = receiving.arrivals.add(place);
        let (messages, handling) = (receiving.arrivals.prefix, receiving.handling);
        if is_new {
            self.count(now, channel, message);
        }
        if messages == before {
            return;
        }
        if handling == Span::ZERO {
            self.usable(now, index, messages);
        } else {
            let task = index;
            self.at(now + handling, Alarm::Usable { task, messages });
        }
    }

    /// A message from another host has come.
    fn count(&mut self, now: Time, channel: u32, message: u32) {
        let incoming = &self.incoming[channel as usize];
        if let (Some((from, until)), true) = (self.disturbed, incoming.by_network) {
            let era = usize::from(now >= from) + usize::from(now >= until);
            self.moved.entry(incoming.job).or_default()[era] += incoming.bytes_of(message).as_u64();
        }
    }

    /// How much of a job has come from other hosts before, during and after the plan's disturbance.
    pub(crate) fn moved(&self, job: u32) -> [u64; 3] {
        self.moved.get(&job).copied().unwrap_or_default()
    }

    /// Messages of a receive are of use: sends that waited for them go on.
    fn usable(&mut self, now: Time, index: u32, messages: u32) {
        let task = &mut self.tasks[index as usize];
        let begun = task.begun.is_some();
        let Doing::Receive(receiving) = &mut task.work else {
            return;
        };
        receiving.usable = receiving.usable.max(messages);
        let all = receiving.usable == receiving.messages;
        let gated = std::mem::take(&mut receiving.gated);
        for &send in &gated {
            self.release(now, send);
        }
        if let Doing::Receive(receiving) = &mut self.tasks[index as usize].work {
            receiving.gated = gated;
        }
        if all && begun {
            self.over(now, index);
        }
    }
}
