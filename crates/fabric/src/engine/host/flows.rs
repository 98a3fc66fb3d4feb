//! Flows as work requests: a queue pair at each end, made when the flow starts or its first packet arrives.
//!
//! Connections are set up out of band and take no time: both ends know the flow, and its index is the queue pair number
//! (and the first PSN) at both.

use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;
use softfabric_transport::rate::RateControlConfig;
use softfabric_transport::{
    Access, AckTimeout, AddressVector, Attachment, Capacity, CompletedOperation, Completion,
    FrameSizing, LocalSegment, Modify, Mtu, QueuePairInit, QueuePairType, ReceiveRequest, Remote,
    RnrRetry, SendOperation, SendRequest, Status,
};
use softfabric_units::{Bytes, Psn, Qpn, Time};

use super::multicast::group_of;
use super::nic::Nic;
use crate::engine::event::{Scheduler, Signal};
use crate::engine::program::{Note, POSTED};
use crate::engine::world::World;
use crate::plan::{Flow, GroupId, LARGEST_MESSAGE, Operation, TriggerId};
use crate::results::FlowStatus;

/// What queue pairs of a NIC are set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuePairSettings {
    pub(crate) mtu: Mtu,
    pub(crate) timeout: AckTimeout,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry: RnrRetry,
    pub(crate) max_reads: u8,
    pub(crate) window: Option<Bytes>,
    /// It has no rate control of its own, so its flows react as the fabric says.
    pub(crate) reacts: bool,
    /// How long a packet is on the wire, from Ethernet header to FCS.
    pub(crate) sizing: FrameSizing,
    /// No packet is shorter.
    pub(crate) smallest: Bytes,
}

/// The ends of flows on one NIC.
#[derive(Debug, Default)]
pub(crate) struct FlowTable {
    pub(super) ends: FxHashMap<u32, FlowEnd>,
    /// Groups that this NIC hears.
    pub(super) groups: Vec<GroupId>,
    /// Flows under way whose requests this NIC posts, in the order of their start.
    under_way: Vec<u32>,
    last_finish: Option<Time>,
}

/// One end of a flow.
#[derive(Debug)]
pub(super) struct FlowEnd {
    /// This end sends the data.
    sends: bool,
    /// Requests posted, and completed, of how many.
    posted: u64,
    completed: u64,
    messages: u64,
    /// The datagrams to a group that came here, a bit each: tables that change may bring one twice.
    heard: Vec<u64>,
    pub(super) record: FlowRecord,
}

/// What one end knows of what became of a flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowRecord {
    pub(crate) start: Option<Time>,
    pub(crate) finished: Option<Time>,
    pub(crate) received: Option<Time>,
    /// Payload placed here.
    pub(crate) delivered: u64,
    /// Datagrams to a group that left from here, or came here.
    pub(crate) datagrams: u64,
    /// Payload of requests that have completed here.
    pub(crate) acknowledged: u64,
    pub(crate) status: FlowStatus,
    pub(crate) retransmitted: u64,
    pub(crate) notifications: u64,
}

/// The number of a flow's queue pairs; 0 and 1 are taken.
pub(super) fn number_of(flow: u32) -> Qpn {
    Qpn::new(flow + 2)
}

/// The first PSN of a flow, at both of its ends.
pub(super) fn first_psn(flow: u32) -> Psn {
    Psn::new(flow.wrapping_mul(0x9e37_79b1))
}

impl FlowTable {
    fn end(&self, flow: u32) -> Option<&FlowEnd> {
        self.ends.get(&flow)
    }

    /// The queue pair that sends the flow's data from here, while it is under way.
    pub(super) fn sending(&self, flow: u32) -> Option<Qpn> {
        self.end(flow)
            .filter(|end| end.sends && end.record.finished.is_none())
            .map(|_| number_of(flow))
    }

    /// When the last flow finished here.
    pub(super) fn last_finish(&self) -> Option<Time> {
        self.last_finish
    }

    /// What this end knows of a flow.
    pub(crate) fn record(&self, flow: u32) -> Option<&FlowRecord> {
        self.end(flow).map(|end| &end.record)
    }
}

/// Hits a trigger, if there is one; the hit takes effect one lookahead later, wherever the trigger's flows start.
pub(crate) fn signal<S: Scheduler>(
    now: Time,
    trigger: Option<TriggerId>,
    flow: u32,
    world: &World,
    scheduler: &mut S,
) {
    if let Some(trigger) = trigger {
        let time = now + world.lookahead;
        let trigger = trigger.0;
        scheduler.signal(Signal {
            time,
            trigger,
            flow,
        });
    }
}

impl FlowRecord {
    /// Of a flow that is under way.
    pub(crate) fn new(start: Option<Time>) -> Self {
        Self {
            start,
            finished: None,
            received: None,
            delivered: 0,
            datagrams: 0,
            acknowledged: 0,
            status: FlowStatus::Unfinished,
            retransmitted: 0,
            notifications: 0,
        }
    }
}

impl FlowEnd {
    pub(super) fn new(sends: bool, start: Option<Time>, messages: u64) -> Self {
        Self {
            sends,
            posted: 0,
            completed: 0,
            messages,
            heard: Vec::new(),
            record: FlowRecord::new(start),
        }
    }

    /// Takes note of a datagram to a group; false if it came before.
    pub(super) fn hears(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, number % 64);
        if self.heard.len() <= word {
            self.heard.resize(word + 1, 0);
        }
        let is_new = self.heard[word] >> bit & 1 == 0;
        self.heard[word] |= 1 << bit;
        self.record.datagrams += u64::from(is_new);
        is_new
    }
}

/// How many messages a flow is, and how long message `index` is.
fn messages(flow: &Flow) -> u64 {
    flow.bytes.as_u64().div_ceil(message_length(flow)).max(1)
}

fn message_length(flow: &Flow) -> u64 {
    flow.message
        .unwrap_or(LARGEST_MESSAGE)
        .clamp(Bytes::new(1), LARGEST_MESSAGE)
        .as_u64()
}

fn length_of(flow: &Flow, index: u64) -> u32 {
    let longest = message_length(flow);
    (flow.bytes.as_u64() - index * longest).min(longest) as u32
}

/// What the driver's number of a path says: whose it is, and its InfiniBand service level.
pub(super) const fn driver(flow: u32, level: u8) -> u64 {
    flow as u64 | (level as u64) << 32
}

/// The flow that a path is of.
pub(super) const fn flow_of(path: &AddressVector) -> u32 {
    path.driver as u32
}

/// The InfiniBand service level of a path.
pub(super) const fn level_of(path: &AddressVector) -> u8 {
    (path.driver >> 32) as u8
}

impl Nic {
    /// The path of a flow's packets from this end.
    pub(super) fn flow_path(&self, flow: u32, host: u32, world: &World) -> AddressVector {
        let plan = &world.plan.flows[flow as usize];
        // As a connection that is made asks for its path once, it keeps the level that it got.
        let (level, class) = match &self.lanes {
            Some(lanes) => lanes.level_and_class(plan.class, world.level_from(flow, host)),
            None => (0, plan.class),
        };
        AddressVector {
            driver: driver(flow, level),
            class,
            source_port: plan.udp_source_port,
            traffic_class: if plan.ecn_capable {
                AddressVector::ECT0
            } else {
                0
            },
            ..AddressVector::default()
        }
    }

    /// Starts a flow whose requests this NIC posts.
    pub(super) fn start_flow(&mut self, now: Time, flow: u32, host: u32, world: &World) {
        let plan = &world.plan.flows[flow as usize];
        match plan.operation.group() {
            Some(group) => self.open_to_group(now, flow, group, host, world),
            None => self.connect(now, flow, host, true, world),
        }
        self.flows.ends.insert(
            flow,
            FlowEnd::new(plan.source.0 == host, Some(now), messages(plan)),
        );
        self.flows.under_way.push(flow);
        if !plan.is_fed() {
            self.post(now, flow, world);
        }
    }

    /// Posts a message of a job's channel.
    pub(super) fn post_message(&mut self, now: Time, flow: u32, message: u32, bytes: Bytes) {
        let Some(end) = (self.flows.ends.get_mut(&flow))
            .filter(|end| end.record.status == FlowStatus::Unfinished)
        else {
            return;
        };
        end.posted += 1;
        let remote = Remote {
            address: 0,
            key: self.key,
        };
        let local = LocalSegment {
            address: 0,
            length: bytes.as_u64() as u32,
            key: self.key,
        };
        let operation = SendOperation::WriteImmediate(remote, message);
        let request = SendRequest::new(u64::from(flow), operation, local);
        let posted = self.device.post_send(now, number_of(flow), request);
        debug_assert!(posted.is_ok(), "{posted:?}");
    }

    /// A job has no more to send on a flow.
    pub(super) fn close_fed(&mut self, now: Time, flow: u32, world: &World) {
        if let Some(end) = (self.flows.ends.get_mut(&flow))
            .filter(|end| end.record.status == FlowStatus::Unfinished)
        {
            end.record.finished = Some(now);
            end.record.status = FlowStatus::Completed;
            self.flows.last_finish = Some(now);
            self.close(flow, world);
        }
    }

    /// Makes the other end of a flow when its first packet arrives.
    pub(super) fn answer_flow(&mut self, now: Time, flow: u32, host: u32, world: &World) {
        if world.flows[flow as usize].starter == host || self.flows.ends.contains_key(&flow) {
            return;
        }
        let plan = &world.plan.flows[flow as usize];
        self.connect(now, flow, host, false, world);
        self.flows.ends.insert(
            flow,
            FlowEnd::new(plan.source.0 == host, None, messages(plan)),
        );
        if plan.operation == Operation::Send || plan.is_fed() {
            let messages = if plan.is_fed() {
                POSTED
            } else {
                messages(plan)
            };
            for _ in 0..POSTED.min(messages) {
                self.post_receive(flow, plan);
            }
        }
    }

    fn connect(&mut self, now: Time, flow: u32, host: u32, requests: bool, world: &World) {
        let settings = self.settings;
        let number = number_of(flow);
        let psn = first_psn(flow);
        let mut init = QueuePairInit::new(
            QueuePairType::ReliableConnection,
            self.domain,
            self.completions,
        );
        init.number = Some(number);
        init.signal_all = true;
        init.window = settings.window;
        init.capacity = Capacity {
            sends: POSTED as u32,
            receives: POSTED as u32,
            ..Capacity::default()
        };
        let access = Access::REMOTE_WRITE | Access::REMOTE_READ;
        let path = self.flow_path(flow, host, world);
        init.rate_control = self.injection(flow, host, level_of(&path), world);
        let initialize = Modify {
            partition: Some(self.partition(flow, host, world)),
            ..Modify::initialize(access)
        };
        let ready_to_receive = Modify {
            max_peer_reads: Some(settings.max_reads),
            ..Modify::ready_to_receive_reliable(path, settings.mtu, number, psn)
        };
        let ready_to_send = Modify {
            retry_count: Some(settings.retry_count),
            rnr_retry: Some(settings.rnr_retry),
            max_reads: Some(settings.max_reads),
            ..Modify::ready_to_send_reliable(psn, settings.timeout)
        };
        let created = self.device.create_qp(&init);
        debug_assert!(created.is_ok(), "{created:?}");
        let mut changes = vec![initialize, ready_to_receive];
        if requests {
            changes.push(ready_to_send);
        }
        for change in &changes {
            let changed = self.device.modify_qp(now, number, change);
            debug_assert!(changed.is_ok(), "{changed:?}");
        }
    }

    /// How a flow of a service level reacts to congestion, where the fabric says so and the NIC has no rate control of its
    /// own.
    pub(super) fn congestion_control(&self, level: u8, world: &World) -> Option<RateControlConfig> {
        let plan = world.plan.link_layer.infiniband()?;
        let congestion = plan.congestion.as_ref()?;
        self.settings
            .reacts
            .then(|| congestion.hosts.rate_control(level))
    }

    /// Posts as many requests of a flow as it may have posted.
    fn post(&mut self, now: Time, flow: u32, world: &World) {
        let plan = &world.plan.flows[flow as usize];
        let group = plan.operation.group();
        let datagram = group.map(|group| self.group_datagram(flow, group, world));
        let key = self.key;
        let Some(end) = self.flows.ends.get_mut(&flow) else {
            return;
        };
        while end.posted < end.messages && end.posted - end.completed < POSTED {
            let offset = end.posted * message_length(plan);
            let length = length_of(plan, end.posted);
            let local = LocalSegment {
                address: offset,
                length,
                key,
            };
            // Every NIC registers all of its memory first, so the keys of both ends are equal.
            let remote = Remote {
                address: offset,
                key,
            };
            let operation = match plan.operation {
                Operation::Write => SendOperation::Write(remote),
                Operation::Send | Operation::Multicast(_) => SendOperation::Send,
                Operation::Read => SendOperation::Read(remote),
            };
            let mut request = SendRequest::new(u64::from(flow), operation, local);
            request.datagram = datagram;
            let posted = self.device.post_send(now, number_of(flow), request);
            debug_assert!(posted.is_ok(), "{posted:?}");
            end.posted += 1;
        }
    }

    fn post_receive(&mut self, flow: u32, plan: &Flow) {
        let local = LocalSegment {
            address: 0,
            length: message_length(plan).min(u64::from(u32::MAX)) as u32,
            key: self.key,
        };
        let posted = self
            .device
            .post_recv(number_of(flow), ReceiveRequest::new(u64::from(flow), local));
        debug_assert!(posted.is_ok(), "{posted:?}");
    }

    /// Payload of a flow has reached this end's memory.
    pub(super) fn flow_received<S: Scheduler>(
        &mut self,
        now: Time,
        flow: u32,
        placed: u64,
        world: &World,
        scheduler: &mut S,
    ) {
        let plan = &world.plan.flows[flow as usize];
        let Some(end) = self.flows.ends.get_mut(&flow) else {
            return;
        };
        end.record.delivered += placed;
        let all = end.record.delivered >= plan.bytes.as_u64() && !plan.is_fed();
        if all && end.record.received.is_none() {
            end.record.received = Some(now);
            signal(now, plan.on_received, flow, world, scheduler);
        }
    }

    /// Takes completions: posts what comes next, and closes flows that are done.
    pub(super) fn reap<S: Scheduler>(&mut self, now: Time, world: &World, scheduler: &mut S) {
        while let Some(completion) = self.device.poll_completion(self.completions) {
            self.completed(now, &completion, world, scheduler);
        }
        while self.device.poll_event().is_some() {}
    }

    fn completed<S: Scheduler>(
        &mut self,
        now: Time,
        completion: &Completion,
        world: &World,
        scheduler: &mut S,
    ) {
        if let Some(group) = group_of(completion.id) {
            return self.await_datagram(group, world);
        }
        let flow = completion.id as u32;
        let plan = &world.plan.flows[flow as usize];
        let receives = matches!(
            completion.operation,
            CompletedOperation::Receive | CompletedOperation::ReceiveWithWrite
        );
        let Some(end) = self.flows.ends.get_mut(&flow) else {
            return;
        };
        if receives {
            if completion.status == Status::Success {
                self.post_receive(flow, plan);
                if let Attachment::Immediate(message) = completion.attachment
                    && plan.is_fed()
                {
                    self.notes.push(Note::Arrived { flow, message });
                }
            }
            return;
        }
        if end.record.finished.is_some() || end.record.status != FlowStatus::Unfinished {
            return;
        }
        if completion.status != Status::Success {
            end.record.status = FlowStatus::Failed(completion.status.to_string());
            self.close(flow, world);
            if plan.is_fed() {
                self.notes.push(Note::Failed { flow });
            }
            return;
        }
        if plan.is_fed() {
            end.record.acknowledged += u64::from(completion.length);
            end.completed += 1;
            return self.notes.push(Note::Sent { flow });
        }
        end.record.acknowledged += u64::from(length_of(plan, end.completed));
        end.record.datagrams += u64::from(plan.operation.group().is_some());
        end.completed += 1;
        if end.completed < end.messages {
            return self.post(now, flow, world);
        }
        end.record.finished = Some(now);
        self.flows.last_finish = Some(now);
        end.record.status = FlowStatus::Completed;
        self.close(flow, world);
        signal(now, plan.on_sent, flow, world, scheduler);
        if plan.bytes.is_zero() {
            signal(now, plan.on_received, flow, world, scheduler);
        }
    }

    /// A flow is over, one way or the other: its queue pair goes.
    fn close(&mut self, flow: u32, world: &World) {
        let number = number_of(flow);
        if let (Some(statistics), Some(end)) = (
            self.device.qp_statistics(number),
            self.flows.ends.get_mut(&flow),
        ) {
            end.record.retransmitted = statistics.retransmitted;
            end.record.notifications = statistics.notifications_received;
        }
        let destroyed = self.device.destroy_qp(number);
        debug_assert!(destroyed.is_ok(), "{destroyed:?}");
        self.flows.under_way.retain(|&other| other != flow);
        world.flows_left.fetch_sub(1, Ordering::Relaxed);
    }

    /// All flows that send from here are cut off.
    pub(super) fn stop_sources(&mut self, world: &World) {
        for flow in std::mem::take(&mut self.flows.under_way) {
            self.close(flow, world);
        }
    }

    /// What flows have counted so far whose queue pairs are still there, for the end of a run.
    pub(crate) fn settle(&mut self) {
        let device = &self.device;
        self.flows.ends.iter_mut().for_each(|(flow, end)| {
            if let Some(statistics) = device.qp_statistics(number_of(*flow)) {
                end.record.retransmitted = statistics.retransmitted;
                end.record.notifications = statistics.notifications_received;
            }
        });
    }
}
