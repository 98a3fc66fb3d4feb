//! Packets out, and time.

use softfabric_telemetry::DeviceCounter;
use softfabric_units::{Class, ClassMask, Psn, Time};
use softfabric_wire::rdma::{Bth, Extension, Opcode, TransportHeader};

use super::Device;
use crate::arbitration::{Notification, Turn};
use crate::memory::Memory;
use crate::packet::Transmit;

impl<M: Memory> Device<M> {
    /// The next packet to send, if a class of `open` has one: to be called once for each packet that the port can
    /// take. A class that is paused, or has no credits, is simply not open.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, open: ClassMask) -> Option<Transmit<M::Outgoing>> {
        if self.core.pacing.next().is_some_and(|next| next <= now) {
            self.wake_paced(now);
        }
        loop {
            let packet = match self.core.lanes.next(open)? {
                Turn::Request(slot) => {
                    let qp = &mut self.queue_pairs[slot as usize];
                    let packet = qp.emit_request(&mut self.core, now);
                    qp.prepare(&mut self.core, now);
                    qp.refresh(&mut self.core);
                    packet
                }
                Turn::Acknowledge(class, acknowledge) => {
                    let qp = &mut self.queue_pairs[acknowledge.slot as usize];
                    qp.emit_acknowledge(&mut self.core, class, acknowledge)
                }
                Turn::Response(slot) => {
                    let qp = &mut self.queue_pairs[slot as usize];
                    let packet = qp.emit_response(&mut self.core, now);
                    qp.refresh(&mut self.core);
                    packet
                }
                Turn::Notification(class, notification) => Some(self.notify(class, notification)),
            };
            if !self.core.overruns.is_empty() {
                self.settle_overruns();
            }
            if packet.is_some() {
                return packet;
            }
        }
    }

    /// The classes in which a packet waits that [`Device::poll_transmit`] would give, but for those that are not open: a
    /// port that sends nothing then waits for credit, or is paused.
    pub fn waiting(&self) -> ClassMask {
        self.core.lanes.waiting()
    }

    fn wake_paced(&mut self, now: Time) {
        while let Some(wake_up) = self.core.pacing.pop_due(now) {
            if let Some(qp) = self.queue_pairs.get_mut(wake_up.slot as usize)
                && qp.serial == wake_up.serial
            {
                qp.wake(&mut self.core, now, wake_up.time);
            }
        }
    }

    /// A congestion notification packet (annex A17.9).
    fn notify(&mut self, class: Class, notification: Notification) -> Transmit<M::Outgoing> {
        self.core.count(DeviceCounter::CnpSent);
        let header = TransportHeader {
            bth: Bth {
                opcode: Opcode::CNP,
                solicited: false,
                migrated: true,
                pad: 0,
                partition: notification.partition,
                fecn: false,
                becn: true,
                destination: notification.destination,
                acknowledge: false,
                psn: Psn::new(0),
            },
            extension: Extension::Notification,
            xrc_srq: 0,
        };
        let mut path = notification.path;
        path.class = class;
        Transmit {
            header,
            payload: M::Outgoing::default(),
            payload_length: 0,
            class,
            path,
            ecn_capable: false,
            qp: notification.qp,
        }
    }

    /// When [`Device::handle_timeout`] has to be called, or, for paced queue pairs, [`Device::poll_transmit`] can yield
    /// more. It may be early, never late.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        let deferred = self.core.deferred.front().map(|first| first.due);
        let timers = [self.core.timers.next(), self.core.pacing.next(), deferred];
        timers.into_iter().flatten().min()
    }

    /// Lets every timer act that is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.wake_paced(now);
        self.core.send_deferred(now);
        while let Some(wake_up) = self.core.timers.pop_due(now) {
            if let Some(qp) = self.queue_pairs.get_mut(wake_up.slot as usize)
                && qp.serial == wake_up.serial
                && qp.armed == wake_up.time
            {
                qp.armed = Time::NEVER;
                qp.handle_timer(&mut self.core, now);
            }
        }
        if !self.core.overruns.is_empty() {
            self.settle_overruns();
        }
    }
}
