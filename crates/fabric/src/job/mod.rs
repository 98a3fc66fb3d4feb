//! Makes jobs: collectives by their algorithms, steps of training, and traces of real ones.
//!
//! ```text
//! ranks ──► JobBuilder ◄── collectives among members, pipelines, traces
//!               └──► tasks and channels of a plan's Job, and the flows of its queue pairs
//! ```
//!
//! Every function that adds to a job takes, for each member, the tasks that it begins after, and returns those that it
//! ends with; so steps are put one after the other, or side by side.

pub mod collective;
pub mod pipeline;
pub mod trace;
mod tree;

use rustc_hash::FxHashMap;
use softfabric_units::{Bytes, Span, Time};

use crate::plan::{
    Activity, Channel, Dealing, Flow, FlowId, Gate, Job, JobId, Measure, Operation, Phase, PortId,
    Rank, Receives, Sends, Start, Task,
};

/// For each member of a group of ranks, tasks: those that it begins after, or ends with.
pub type Frontier = Vec<Vec<u32>>;

/// Tasks with which a rank may end without being joined: those of a step of a ring, both ways.
const FEW: usize = 4;

/// A job under construction.
#[derive(Debug)]
pub struct JobBuilder {
    job: Job,
    channels: FxHashMap<(u32, u32), u32>,
    phase: u32,
}

/// How two ranks of different servers are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// How many ports a NIC has, each on a plane of its own, from that of the rank on.
    pub planes: u16,
    /// Queue pairs for each of them.
    pub queue_pairs: u32,
    /// How many ports a server has that take over when all of the rank's own have failed; zero for none.
    pub standby_ports: u16,
    /// How messages are spread over them.
    pub spread: Spread,
}

/// How the messages of two ranks are spread over the queue pairs between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Each whole, over one of them.
    Whole(Dealing),
    /// Each cut into as many pieces as there are queue pairs, one over each.
    Split,
}

/// How messages are cut, and what each costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slicing {
    /// No message is longer, but for what all-to-all by rail moves inside a server: what is passed on is passed on in pieces of
    /// this.
    pub slice: Bytes,
    /// How long after its arrival a message can be passed on or used.
    pub handling: Span,
}

impl Default for Slicing {
    /// Slices of 512 KiB, an eighth of NCCL's buffer of 4 MiB (`NCCL_BUFFSIZE`, `NCCL_STEPS`), used at once.
    fn default() -> Self {
        Self {
            slice: Bytes::kib(512),
            handling: Span::ZERO,
        }
    }
}

impl Slicing {
    /// How many messages `bytes` are, and how long each is: all equal, rounded up. The most that can be counted stands for
    /// more, and [`Plan::check`](crate::plan::Plan::check) refuses it.
    fn cut(&self, bytes: Bytes) -> (u32, Bytes) {
        let bytes = bytes.as_u64().max(1);
        let messages = bytes.div_ceil(self.slice.as_u64().max(1));
        let counted = u32::try_from(messages).unwrap_or(u32::MAX);
        (counted, Bytes::new(bytes.div_ceil(messages)))
    }
}

/// The name of a phase that comes once in each iteration.
pub(crate) fn numbered(name: &str, iteration: u32, iterations: u32) -> String {
    match iterations {
        1 => name.to_owned(),
        _ => format!("{name} {}", iteration + 1),
    }
}

impl JobBuilder {
    /// A job of these ranks.
    pub fn new(name: impl Into<String>, ranks: Vec<Rank>, start: Time) -> Self {
        Self {
            job: Job {
                name: name.into(),
                start,
                ranks,
                ..Job::default()
            },
            channels: FxHashMap::default(),
            phase: 0,
        }
    }

    /// How many ranks it has.
    pub fn ranks(&self) -> u32 {
        self.job.ranks.len() as u32
    }

    /// Where a rank is.
    pub fn rank(&self, rank: u32) -> Rank {
        self.job.ranks[rank as usize]
    }

    /// Begins a phase: what is added from now on is part of it.
    pub fn begin_phase(&mut self, name: impl Into<String>, collective: Option<Measure>) {
        self.phase = self.job.phases.len() as u32;
        self.job.phases.push(Phase {
            name: name.into(),
            collective,
        });
    }

    /// A frontier that waits for nothing.
    pub fn beginning(&self, members: usize) -> Frontier {
        vec![Vec::new(); members]
    }

    /// One task of each rank that is over when all its ends are, so that what comes after has one thing to wait for. Ranks that
    /// end with few tasks keep them.
    pub fn join(&mut self, mut ends: Frontier) -> Frontier {
        for (rank, ends) in (0..).zip(&mut ends) {
            if ends.len() > FEW {
                *ends = vec![self.compute(rank, Span::ZERO, ends)];
            }
        }
        ends
    }

    /// How many flows its channels take.
    pub fn flows(&self, connections: &Connections) -> u64 {
        let of_channel = |channel: &&Channel| {
            let [from, to] = [channel.from, channel.to].map(|rank| self.rank(rank).host);
            from != to
        };
        let each = u64::from(connections.planes) * u64::from(connections.queue_pairs)
            + u64::from(connections.standby_ports.saturating_sub(connections.planes));
        self.job.channels.iter().filter(of_channel).count() as u64 * each
    }

    /// A computation.
    pub fn compute(&mut self, rank: u32, span: Span, after: &[u32]) -> u32 {
        self.task(rank, after, Activity::Compute(span))
    }

    /// A computation of another processor than the accelerator, which is 0.
    pub fn compute_on(&mut self, processor: u8, rank: u32, span: Span, after: &[u32]) -> u32 {
        let task = self.compute(rank, span, after);
        self.job.tasks[task as usize].processor = processor;
        task
    }

    /// A task begins after others, too, which may be added later than itself.
    pub fn begin_after(&mut self, task: u32, others: impl IntoIterator<Item = u32>) {
        self.job.tasks[task as usize].after.extend(others);
    }

    /// A task does not begin before others have begun.
    pub fn begin_with(&mut self, task: u32, others: impl IntoIterator<Item = u32>) {
        self.job.tasks[task as usize].after_begin.extend(others);
    }

    /// Messages to another rank.
    pub fn send(
        &mut self,
        (from, to): (u32, u32),
        (messages, bytes): (u32, Bytes),
        gates: Vec<Gate>,
        after: &[u32],
    ) -> u32 {
        let channel = self.channel(from, to);
        self.task(
            from,
            after,
            Activity::Send(Sends {
                channel,
                messages,
                bytes,
                pieces: 1,
                gates,
            }),
        )
    }

    /// Messages from another rank.
    pub fn receive(
        &mut self,
        (from, to): (u32, u32),
        messages: u32,
        handling: Span,
        after: &[u32],
    ) -> u32 {
        let channel = self.channel(from, to);
        self.task(
            to,
            after,
            Activity::Receive(Receives {
                channel,
                messages,
                pieces: 1,
                handling,
            }),
        )
    }

    /// Cuts messages between servers into as many pieces as their channel has queue pairs.
    fn split(&mut self) {
        let channels = &self.job.channels;
        let pieces = |channel: u32| channels[channel as usize].flows.len().max(1) as u32;
        for task in &mut self.job.tasks {
            match &mut task.activity {
                Activity::Compute(_) => {}
                Activity::Send(send) => {
                    send.pieces = pieces(send.channel);
                    send.messages = send.messages.saturating_mul(send.pieces);
                    send.bytes = Bytes::new(send.bytes.as_u64().div_ceil(send.pieces.into()));
                }
                Activity::Receive(receive) => {
                    receive.pieces = pieces(receive.channel);
                    receive.messages = receive.messages.saturating_mul(receive.pieces);
                }
            }
        }
    }

    fn task(&mut self, rank: u32, after: &[u32], activity: Activity) -> u32 {
        self.job.tasks.push(Task {
            rank,
            phase: self.phase,
            processor: 0,
            after: after.to_vec(),
            after_begin: Vec::new(),
            activity,
        });
        self.job.tasks.len() as u32 - 1
    }

    fn channel(&mut self, from: u32, to: u32) -> u32 {
        let channels = &mut self.job.channels;
        *self.channels.entry((from, to)).or_insert_with(|| {
            channels.push(Channel {
                from,
                to,
                flows: Vec::new(),
                standby: Vec::new(),
                dealing: Dealing::default(),
            });
            channels.len() as u32 - 1
        })
    }

    /// The job, and the flows of its channels, which take the numbers from `flows.len()` on and are added there.
    ///
    /// `flow` fills in what a flow is besides its ends.
    pub fn finish(
        mut self,
        id: JobId,
        connections: Connections,
        flows: &mut Vec<Flow>,
        mut flow: impl FnMut(u64) -> Flow,
    ) -> Job {
        let mut sent = vec![0u64; self.job.channels.len()];
        for task in &self.job.tasks {
            if let Activity::Send(send) = &task.activity {
                sent[send.channel as usize] += u64::from(send.messages) * send.bytes.as_u64();
            }
        }
        let ranks = &self.job.ranks;
        for ((number, channel), sent) in (0..).zip(&mut self.job.channels).zip(sent) {
            let (from, to) = (ranks[channel.from as usize], ranks[channel.to as usize]);
            if from.host == to.host {
                continue;
            }
            let mut connect = |out: u16, into: u16, bytes: u64| {
                let number_of_flow = flows.len();
                flows.push(Flow {
                    source: from.host,
                    source_nic: PortId(out),
                    destination: to.host,
                    destination_nic: PortId(into),
                    bytes: Bytes::new(bytes),
                    operation: Operation::Write,
                    start: Start::Fed(id, number),
                    message: None,
                    ..flow(number_of_flow as u64)
                });
                FlowId(number_of_flow as u32)
            };
            let planes = connections.planes;
            let count = u64::from(planes) * u64::from(connections.queue_pairs);
            for plane in 0..planes {
                for _ in 0..connections.queue_pairs {
                    let (out, into) = (from.nic.0 + plane, to.nic.0 + plane);
                    (channel.flows).push(connect(out, into, sent.div_ceil(count)));
                }
            }
            // The other NICs of the server, each on a rail of its own.
            for port in (0..connections.standby_ports)
                .filter(|port| !(from.nic.0..from.nic.0 + planes).contains(port))
            {
                channel.standby.push(connect(port, port, 0));
            }
            channel.dealing = match connections.spread {
                Spread::Whole(dealing) => dealing,
                Spread::Split => Dealing::InTurn,
            };
        }
        if connections.spread == Spread::Split {
            self.split();
        }
        self.job
    }
}
