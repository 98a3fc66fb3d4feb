//! The notification point and the reaction point: what a marked packet leads to (annex A17.9, DCQCN).

use softfabric_telemetry::DeviceCounter;
use softfabric_units::Time;
use softfabric_wire::rdma::{Extension, Operation};

use crate::arbitration::Notification;
use crate::config::{NotificationPoint, NotificationScope};
use crate::core::Core;
use crate::memory::Memory;
use crate::packet::Arrival;
use crate::queue_pair::{QueuePair, QueuePairType};

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
        let NotificationPoint::Cnp { interval, scope } = core.config.notification else {
            return;
        };
        if arrival.header.bth.opcode.operation() == Operation::Acknowledge {
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
        if last.is_some_and(|last| now.since(last) < interval) {
            return;
        }
        *last = Some(now);
        self.statistics.notifications_sent += 1;
        let class = core.config.notification_class.or(path.class);
        core.lanes.notify(
            class,
            Notification {
                path,
                destination,
                partition: self.settings.partition,
                qp: self.number,
            },
        );
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
        self.rate.on_notification(now);
        self.repace(core, now);
        self.refresh(core);
    }
}
