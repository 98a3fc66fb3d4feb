//! The notification point and the reaction point: what a marked packet leads to (annex A17.9 and DCQCN; annex A10 on InfiniBand).

use softfabric_telemetry::DeviceCounter;
use softfabric_units::{Class, Span, Time};
use softfabric_wire::rdma::{Extension, Operation};

use crate::arbitration::Notification;
use crate::config::{NotificationPoint, NotificationScope, WithinInterval};
use crate::core::Core;
use crate::memory::Memory;
use crate::packet::Arrival;
use crate::queue_pair::{QueuePair, QueuePairType};

/// A notification that waits for the end of its interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deferred {
    pub(crate) due: Time,
    class: Class,
    notification: Notification,
}

impl<M: Memory> Core<M> {
    fn defer(&mut self, deferred: Deferred) {
        let place = self
            .deferred
            .partition_point(|other| other.due <= deferred.due);
        self.deferred.insert(place, deferred);
    }

    /// Hands over the notifications whose interval has ended.
    pub(crate) fn send_deferred(&mut self, now: Time) {
        while let Some(first) = self.deferred.front()
            && first.due <= now
        {
            self.lanes.notify(first.class, first.notification);
            self.deferred.pop_front();
        }
    }
}

impl<M: Memory> QueuePair<M> {
    /// A marked packet arrived: its sender is notified, at most once per interval. Pure acknowledgements are no load
    /// that a sender could cut.
    pub(crate) fn handle_mark(
        &mut self,
        core: &mut Core<M>,
        now: Time,
        arrival: &Arrival<'_, M::Incoming<'_>>,
    ) {
        core.count(DeviceCounter::EcnMarkedReceived);
        let opcode = arrival.header.bth.opcode;
        let (interval, scope, within) = match core.config.notification {
            NotificationPoint::Cnp {
                interval,
                scope,
                within,
            } => (interval, scope, within),
            // Requests of reliable services are answered by their acknowledgement.
            NotificationPoint::Becn if opcode.is_response() || !self.service.is_reliable() => (
                Span::ZERO,
                NotificationScope::QueuePair,
                WithinInterval::Forgotten,
            ),
            NotificationPoint::Becn | NotificationPoint::OnAcknowledge | NotificationPoint::Off => {
                return;
            }
        };
        if opcode.operation() == Operation::Acknowledge {
            return;
        }
        let datagrams = self.service == QueuePairType::UnreliableDatagram;
        let (path, destination) = match arrival.header.extension {
            Extension::Deth(deth) | Extension::DethImmediate(deth, _) if datagrams => {
                (*arrival.source, deth.source)
            }
            _ => (self.settings.path, self.settings.destination),
        };
        let last = match scope {
            NotificationScope::QueuePair => self.responder.notified_mut(),
            NotificationScope::Destination => {
                &mut *core.notified.entry(path.gid).or_insert_with(|| None)
            }
        };
        // A deferred notification counts from the time at which it will leave, which may be to come.
        let due = match *last {
            Some(last) if now.since(last) < interval => match within {
                WithinInterval::Deferred if last <= now => last + interval,
                WithinInterval::Deferred | WithinInterval::Forgotten => return,
            },
            _ => now,
        };
        *last = Some(due);
        self.statistics.notifications_sent += 1;
        let class = core.config.notification_class.or(path.class);
        let notification = Notification {
            path,
            destination,
            partition: self.settings.partition,
            qp: self.number,
        };
        if due == now {
            core.lanes.notify(class, notification);
        } else {
            core.defer(Deferred {
                due,
                class,
                notification,
            });
        }
    }

    /// A notification arrived: the rate control hears of it.
    pub(crate) fn handle_notification(&mut self, core: &mut Core<M>, now: Time) {
        self.statistics.notifications_received += 1;
        let listens =
            !self.rate.is_none() && !matches!(self.rate, crate::rate::RateControl::Fixed(_));
        if !listens {
            core.count(DeviceCounter::CnpIgnored);
            return;
        }
        core.count(DeviceCounter::CnpHandled);
        if self.rate.on_notification(now) {
            core.count(DeviceCounter::CongestionEvents);
        }
        self.repace(core, now);
        self.refresh(core);
    }
}
