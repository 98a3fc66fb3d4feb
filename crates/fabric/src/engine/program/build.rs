//! From a plan's jobs to the programs of its hosts.

use rustc_hash::FxHashMap;
use softfabric_units::{Bytes, Time};

use super::channel::{Arrivals, Incoming, Lane, Outgoing};
use super::server::Server;
use super::{Alarm, Doing, Processor, Program, RankState, Receiving, Role, Sending, TaskState};
use crate::plan::{Activity, FlowId, Job, NodeId, Plan, ServerProfile};

/// The programs of all hosts that have ranks, by node, and how many ranks have anything to do.
pub(crate) fn programs(plan: &Plan) -> (FxHashMap<NodeId, Program>, u64) {
    let mut programs: FxHashMap<NodeId, Program> = FxHashMap::default();
    let mut busy = 0;
    for (number, job) in (0..).zip(&plan.jobs) {
        busy += add(plan, number, job, &mut programs);
    }
    let disturbed = (plan.disturbance()).map(|(from, until)| (from, until.unwrap_or(Time::NEVER)));
    programs
        .values_mut()
        .for_each(|program| program.disturbed = disturbed);
    (programs, busy)
}

/// Adds a job to the programs of its hosts; returns how many of its ranks have tasks.
fn add(plan: &Plan, number: u32, job: &Job, programs: &mut FxHashMap<NodeId, Program>) -> u64 {
    // Where each rank is, among those of its host.
    let ranks: Vec<(NodeId, u32)> = (job.ranks.iter())
        .map(|rank| {
            let program = programs
                .entry(rank.host)
                .or_insert_with(|| Program::new(plan, rank.host));
            program.ranks.push(RankState {
                job: number,
                left: 0,
                processors: Vec::new(),
            });
            (rank.host, program.ranks.len() as u32 - 1)
        })
        .collect();
    let host = |rank: u32| job.ranks[rank as usize].host;
    // The ends of each channel, at its hosts.
    let ends: Vec<(u32, u32)> = (job.channels.iter())
        .map(|channel| {
            let (from, to) = (
                &job.ranks[channel.from as usize],
                &job.ranks[channel.to as usize],
            );
            let receiver = programs.get_mut(&to.host).expect("ranks have programs");
            let incoming = receiver.incoming.len() as u32;
            receiver.incoming.push(Incoming {
                receives: Vec::new(),
                sizes: Vec::new(),
                accelerator: to.accelerator,
                job: number,
                by_network: !channel.flows.is_empty(),
            });
            let flows = || channel.flows.iter().chain(&channel.standby);
            for flow in flows() {
                let role = Role::Receives { channel: incoming };
                receiver.roles.insert(flow.0, role);
            }
            let sender = programs.get_mut(&from.host).expect("ranks have programs");
            let outgoing = sender.outgoing.len() as u32;
            for (place, flow) in (0..).zip(flows()) {
                let channel = outgoing;
                sender.roles.insert(flow.0, Role::Sends { channel, place });
            }
            let lane = |(place, flow): (usize, &FlowId)| Lane {
                flow: flow.0,
                standby: place >= channel.flows.len(),
                open: false,
                failed: false,
                posted: std::collections::VecDeque::new(),
            };
            sender.outgoing.push(Outgoing {
                sends: Vec::new(),
                lanes: flows().enumerate().map(lane).collect(),
                within: (channel.flows.is_empty()).then_some((from.accelerator, to.accelerator)),
                incoming,
                accelerator: from.accelerator,
                dealing: channel.dealing,
                turn: 0,
                waiting: std::collections::VecDeque::new(),
                left: 0,
            });
            (outgoing, incoming)
        })
        .collect();
    // The place of each task at its host.
    let mut next: FxHashMap<NodeId, u32> = (programs.iter())
        .map(|(host, program)| (*host, program.tasks.len() as u32))
        .collect();
    let places: Vec<u32> = (job.tasks.iter())
        .map(|task| {
            let place = next.get_mut(&host(task.rank)).expect("ranks have programs");
            *place += 1;
            *place - 1
        })
        .collect();
    for (channel, &(outgoing, _)) in job.channels.iter().zip(&ends) {
        let program = programs
            .get_mut(&host(channel.from))
            .expect("ranks have programs");
        if program.connects && !channel.flows.is_empty() {
            program.at(job.start, Alarm::Connect { channel: outgoing });
        }
    }
    let mut received = vec![0; job.channels.len()];
    for (id, task) in (0..).zip(&job.tasks) {
        let (host, rank) = ranks[task.rank as usize];
        let program = programs.get_mut(&host).expect("ranks have programs");
        let place = program.tasks.len() as u32;
        let work = match &task.activity {
            Activity::Compute(span) => {
                let processors = &mut program.ranks[rank as usize].processors;
                let count = processors.len().max(usize::from(task.processor) + 1);
                processors.resize_with(count, Default::default);
                Doing::Compute(*span)
            }
            Activity::Send(send) => {
                let channel = ends[send.channel as usize].0;
                let out = &mut program.outgoing[channel as usize];
                let first = out.left;
                out.sends.push((first, place));
                out.left += send.messages;
                Doing::Send(Sending {
                    channel,
                    first,
                    messages: send.messages,
                    bytes: send.bytes,
                    pieces: send.pieces,
                    gates: (send.gates.iter())
                        .map(|gate| (places[gate.receive as usize], gate.lead))
                        .collect(),
                    released: 0,
                    done: 0,
                })
            }
            Activity::Receive(receive) => {
                let channel = ends[receive.channel as usize].1;
                let first = &mut received[receive.channel as usize];
                let incoming = &mut program.incoming[channel as usize];
                incoming.receives.push((*first, place));
                *first += receive.messages;
                Doing::Receive(Receiving {
                    messages: receive.messages,
                    pieces: receive.pieces,
                    handling: receive.handling,
                    arrivals: Arrivals::default(),
                    usable: 0,
                    gated: Vec::new(),
                })
            }
        };
        program.tasks.push(TaskState {
            id,
            rank,
            processor: task.processor,
            waits: (task.after.len() + task.after_begin.len()) as u32,
            followers: Vec::new(),
            companions: Vec::new(),
            begun: None,
            over: None,
            work,
        });
        program.ranks[rank as usize].left += 1;
        if task.after.is_empty() && task.after_begin.is_empty() {
            program.at(job.start, Alarm::Begin { task: place });
        }
    }
    // Who waits for whom; and how long messages are, for the receiver's copies.
    let mut sent = vec![0; job.channels.len()];
    for (task, &place) in job.tasks.iter().zip(&places) {
        let (host, _) = ranks[task.rank as usize];
        let program = programs.get_mut(&host).expect("ranks have programs");
        for &before in &task.after {
            program.tasks[places[before as usize] as usize]
                .followers
                .push(place);
        }
        for &before in &task.after_begin {
            program.tasks[places[before as usize] as usize]
                .companions
                .push(place);
        }
        let Activity::Send(send) = &task.activity else {
            continue;
        };
        for gate in &send.gates {
            let receive = &mut program.tasks[places[gate.receive as usize] as usize];
            if let Doing::Receive(receiving) = &mut receive.work {
                receiving.gated.push(place);
            }
        }
        let channel = &job.channels[send.channel as usize];
        let first: &mut u32 = &mut sent[send.channel as usize];
        let receiver = programs
            .get_mut(&job.ranks[channel.to as usize].host)
            .expect("ranks have programs");
        let incoming = &mut receiver.incoming[ends[send.channel as usize].1 as usize];
        incoming.sizes.push((*first, send.bytes));
        *first += send.messages;
    }
    let busy = |&(host, rank): &(NodeId, u32)| programs[&host].ranks[rank as usize].left > 0;
    ranks.iter().filter(|rank| busy(rank)).count() as u64
}

impl Program {
    fn new(plan: &Plan, host: NodeId) -> Self {
        let profile = plan.host_profile(host);
        Self {
            profile: profile.map_or_else(ServerProfile::default, |profile| profile.server),
            slowness: 1.0,
            disturbed: None,
            moved: FxHashMap::default(),
            connects: profile.is_some_and(|profile| profile.tcp.is_some()),
            server: Server::default(),
            ranks: Vec::new(),
            tasks: Vec::new(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            roles: FxHashMap::default(),
            alarms: std::collections::BinaryHeap::new(),
            made: 0,
            armed: Time::NEVER,
            orders: Vec::new(),
            ended: 0,
            processor: Processor::default(),
        }
    }
}

impl Incoming {
    /// How long a message is.
    pub(super) fn bytes_of(&self, message: u32) -> Bytes {
        let place = self.sizes.partition_point(|(first, _)| *first <= message);
        self.sizes[place - 1].1
    }
}
