//! Packets that do not get through: refused by the memory, without a route, flushed from a queue, on a link that fails.

use softfabric_telemetry::{ClassCounter, PortCounter};
use softfabric_units::{ClassMask, Time};

use super::Switch;
use crate::engine::event::Scheduler;
use crate::engine::frame::Frame;
use crate::engine::world::World;
use crate::plan::{Endpoint, NodeId, PortId};
use crate::results::DropReason;

impl Switch {
    pub(super) fn refuse(
        &mut self,
        now: Time,
        port: usize,
        egress: usize,
        frame: &Frame,
        reason: DropReason,
    ) {
        let (group, queue) = self.places(frame.class);
        let (at, class, counter) = match reason {
            DropReason::EgressThreshold => (egress, queue, ClassCounter::EgressDropped),
            _ => (port, group, ClassCounter::IngressDropped),
        };
        let transmitter = &mut self.ports[at].transmitter;
        transmitter.classes[class.index()].count(counter);
        transmitter
            .port
            .count(if at == egress && reason == DropReason::EgressThreshold {
                PortCounter::TransmitDiscards
            } else {
                PortCounter::ReceiveDiscards
            });
        self.lose(now, port, frame, reason);
    }

    /// A packet that cannot go anywhere.
    pub(super) fn discard(&mut self, now: Time, port: usize, frame: &Frame, reason: DropReason) {
        self.ports[port]
            .transmitter
            .port
            .count(PortCounter::ReceiveDiscards);
        self.lose(now, port, frame, reason);
    }

    /// A packet that was in the egress queue of `port`, its memory already released.
    pub(super) fn drop_from_queue(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        reason: DropReason,
    ) {
        let (_, queue) = self.places(frame.class);
        let transmitter = &mut self.ports[port].transmitter;
        transmitter.port.count(PortCounter::TransmitDiscards);
        transmitter.classes[queue.index()].count(ClassCounter::EgressDropped);
        self.lose(now, usize::from(frame.ingress), frame, reason);
    }

    pub(super) fn lose(&mut self, now: Time, port: usize, frame: &Frame, reason: DropReason) {
        let endpoint = Endpoint {
            node: NodeId(self.id),
            port: PortId(port as u16),
        };
        let (group, _) = self.places(frame.class);
        let lossless = self.lossless.contains(group)
            && !matches!(
                reason,
                DropReason::Damaged
                    | DropReason::LinkDown
                    | DropReason::NoRoute
                    | DropReason::NotRoutable
            );
        self.losses.count(now, endpoint, frame, reason, lossless);
    }

    /// The link of `port` goes down: what waits for it is lost.
    pub(crate) fn link_down<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        world: &World,
        scheduler: &mut S,
    ) {
        let at = &mut self.ports[port];
        at.transmitter.lose_link(now);
        // Pauses that have come in and are not obeyed yet end with the link too.
        at.delayed.clear();
        self.flush(
            now,
            port,
            ClassMask::ALL,
            DropReason::LinkDown,
            world,
            scheduler,
        );
        self.ports[port].pausing = ClassMask::NONE;
    }

    /// The link of `port` comes back.
    pub(crate) fn link_up(&mut self, port: usize) {
        self.ports[port].transmitter.link.up = true;
    }

    /// Drops what waits in some egress queues.
    pub(super) fn flush<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        queues: ClassMask,
        reason: DropReason,
        world: &World,
        scheduler: &mut S,
    ) {
        for queue in queues.iter() {
            self.ports[port].account(now);
            while let Some(frame) = self.ports[port].queues.pop_class(queue) {
                let ingress = usize::from(frame.ingress);
                let (group, _) = self.places(frame.class);
                self.memory
                    .release(ingress, port, group, queue, u64::from(frame.length));
                self.drop_from_queue(now, port, &frame, reason);
                if reason == DropReason::Watchdog {
                    self.ports[port].transmitter.classes[queue.index()]
                        .count(ClassCounter::WatchdogDropped);
                }
                self.resume_if_allowed(now, ingress, group, world, scheduler);
            }
        }
    }
}
