//! Flows as connections: opened by the host that starts the flow, answered by the other when the SYN arrives.

use std::sync::atomic::Ordering;

use softfabric_units::Time;

use super::TcpHost;
use crate::engine::event::Scheduler;
use crate::engine::host::{FlowRecord, signal};
use crate::engine::program::Note;
use crate::engine::world::World;
use crate::results::FlowStatus;
use crate::tcp::{Open, StackEvent};

impl TcpHost {
    /// Starts a flow: the connection is opened.
    pub(super) fn start_flow(&mut self, now: Time, flow: u32, world: &World) {
        self.flows.insert(flow, FlowRecord::new(Some(now)));
        self.under_way.push(flow);
        self.open(now, flow, true, world);
    }

    /// Makes the other end of a flow when its first packet arrives.
    pub(super) fn answer_flow(&mut self, now: Time, flow: u32, world: &World) {
        if world.flows[flow as usize].starter == self.id || self.flows.contains_key(&flow) {
            return;
        }
        self.flows.insert(flow, FlowRecord::new(None));
        self.open(now, flow, false, world);
    }

    fn open(&mut self, now: Time, flow: u32, active: bool, world: &World) {
        let plan = &world.plan.flows[flow as usize];
        let bytes = plan.bytes.as_u64();
        let fed = plan.is_fed();
        let of = |is: bool| if is && !fed { bytes } else { 0 };
        let open = Open {
            id: flow,
            active,
            writes: of(plan.source.0 == self.id),
            reads: of(plan.destination.0 == self.id),
            messages: fed,
            call: plan.message,
            ecn: plan.ecn_capable && self.stack.config().tcp.ecn,
            class: plan.class,
            port: if plan.source.0 == self.id {
                plan.source_nic.index()
            } else {
                plan.destination_nic.index()
            },
        };
        if plan.source.0 == self.id {
            self.sending.insert(flow);
        }
        self.stack.open(now, &open);
    }

    /// Takes what applications should know, and closes flows that are done.
    pub(super) fn reap<S: Scheduler>(&mut self, now: Time, world: &World, scheduler: &mut S) {
        while let Some(event) = self.stack.poll_event() {
            let (StackEvent::Sent(id)
            | StackEvent::Received(id)
            | StackEvent::Written(id)
            | StackEvent::Read(id)
            | StackEvent::Failed(id)) = event;
            let plan = &world.plan.flows[id as usize];
            let starter = world.flows[id as usize].starter == self.id;
            match event {
                StackEvent::Sent(flow) if starter => self.finish(now, flow, world, scheduler),
                StackEvent::Sent(_) => {}
                StackEvent::Written(flow) => self.notes.push(Note::Sent { flow }),
                StackEvent::Read(flow) => self.take_messages(flow, world),
                StackEvent::Received(flow) => {
                    if let Some(record) = self.flows.get_mut(&flow) {
                        record.received = Some(now);
                    }
                    self.last_finish = Some(now);
                    signal(now, plan.on_received, flow, world, scheduler);
                    if starter {
                        self.finish(now, flow, world, scheduler);
                    }
                }
                StackEvent::Failed(flow) => {
                    if let Some(record) = self.flows.get_mut(&flow)
                        && record.status == FlowStatus::Unfinished
                    {
                        record.status = FlowStatus::Failed("the connection timed out".to_owned());
                        // Of the end that did not start it, the other hears nothing.
                        if starter {
                            self.end(flow, world);
                        }
                        if starter && plan.is_fed() {
                            self.notes.push(Note::Failed { flow });
                        }
                    }
                }
            }
        }
    }

    /// A flow that this host has started is done.
    fn finish<S: Scheduler>(&mut self, now: Time, flow: u32, world: &World, scheduler: &mut S) {
        let plan = &world.plan.flows[flow as usize];
        if let Some(record) = self.flows.get_mut(&flow) {
            record.finished = Some(now);
            record.status = FlowStatus::Completed;
        }
        self.last_finish = Some(now);
        signal(now, plan.on_sent, flow, world, scheduler);
        // The end that has sent everything hears nothing more that matters; the other may have to acknowledge again.
        self.end(flow, world);
        // A job's stay: the other end of one that nothing was sent on may not have heard of it yet.
        if plan.source.0 == self.id && !plan.is_fed() {
            self.stack.close(flow);
        }
    }

    fn end(&mut self, flow: u32, world: &World) {
        self.note(flow);
        self.under_way.retain(|&other| other != flow);
        world.flows_left.fetch_sub(1, Ordering::Relaxed);
    }

    /// All flows that were started here are cut off.
    pub(super) fn stop_sources(&mut self, world: &World) {
        for flow in std::mem::take(&mut self.under_way) {
            self.note(flow);
            self.stack.close(flow);
            world.flows_left.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Writes down what a connection has counted so far.
    fn note(&mut self, flow: u32) {
        if let (Some(connection), Some(record)) =
            (self.stack.connection(flow), self.flows.get_mut(&flow))
        {
            let statistics = connection.statistics();
            record.retransmitted = statistics.retransmitted;
            record.notifications = statistics.echoes;
            record.acknowledged = connection.acknowledged();
            record.delivered = match self.reading.get(&flow) {
                Some(reading) => reading.payload(self.stack.read(flow)),
                None => self.stack.read(flow),
            };
        }
    }

    /// What flows have counted by the end of a run.
    pub(crate) fn settle(&mut self) {
        let mut open: Vec<u32> = self.flows.keys().copied().collect();
        open.sort_unstable();
        open.into_iter().for_each(|flow| self.note(flow));
    }

    /// What this end knows of a flow.
    pub(crate) fn record(&self, flow: u32) -> Option<&FlowRecord> {
        self.flows.get(&flow)
    }
}
