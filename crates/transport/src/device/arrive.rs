//! Packets in.

use softfabric_telemetry::DeviceCounter;
use softfabric_units::{Qpn, Time};
use softfabric_wire::rdma::{Operation, Service};

use super::Device;
use crate::memory::Memory;
use crate::packet::Arrival;
use crate::queue_pair::QueuePairType;

impl<M: Memory> Device<M> {
    /// Takes a packet that arrived at `now`. Whatever a peer sends leads to an answer, a completion or a counter.
    #[inline]
    pub fn handle_packet(&mut self, now: Time, arrival: Arrival<'_, M::Incoming<'_>>) {
        let bth = &arrival.header.bth;
        let core = &mut self.core;
        let Some(&slot) = self.by_number.get(&bth.destination) else {
            self.handle_stray(&arrival);
            return;
        };
        let qp = &mut self.queue_pairs[slot as usize];
        let opcode = bth.opcode;
        let service = opcode.service();
        // IBTA vol. 1, 9.6.1: state, partition and service are checked before anything else, and failures are silent.
        if !qp.state.receives() || !qp.settings.partition.matches(bth.partition) {
            core.count(DeviceCounter::Discarded);
            return;
        }
        // IBTA vol. 1, 9.6.1.5: nobody but the peer speaks for a connection, not even to slow it down.
        if qp.service.is_connected() && arrival.source.gid != qp.settings.path.gid {
            core.count(DeviceCounter::WrongSource);
            return;
        }
        if service == Service::CongestionNotification {
            qp.handle_notification(core, now);
            return;
        }
        let fits = match service {
            Service::ReliableConnection => qp.service == QueuePairType::ReliableConnection,
            Service::UnreliableConnection => qp.service == QueuePairType::UnreliableConnection,
            Service::UnreliableDatagram => qp.service == QueuePairType::UnreliableDatagram,
            Service::ExtendedReliableConnection if opcode.is_response() => {
                qp.service == QueuePairType::XrcInitiator
            }
            Service::ExtendedReliableConnection => qp.service == QueuePairType::XrcTarget,
            Service::CongestionNotification => false,
        };
        if !fits {
            core.count(DeviceCounter::Discarded);
            return;
        }
        let marked = arrival.congestion || bth.fecn;
        if marked {
            qp.handle_mark(core, now, &arrival);
        }
        // In an acknowledgement on RoCE, in any packet on InfiniBand (annex A10.2.1).
        if bth.becn {
            qp.handle_notification(core, now);
        }
        match opcode.operation() {
            Operation::ReadResponse | Operation::Acknowledge | Operation::AtomicAcknowledge => {
                qp.handle_response(
                    core,
                    now,
                    arrival.header,
                    arrival.payload,
                    arrival.payload_length,
                );
            }
            _ if qp.service == QueuePairType::UnreliableDatagram => {
                qp.handle_datagram(core, &arrival);
            }
            _ => qp.handle_request(
                core,
                now,
                arrival.header,
                arrival.payload,
                arrival.payload_length,
                marked,
            ),
        }
        qp.refresh(core);
        if !core.overruns.is_empty() {
            self.settle_overruns();
        }
    }

    /// A packet for a number that no queue pair has: multicast, or nothing.
    #[cold]
    fn handle_stray(&mut self, arrival: &Arrival<'_, M::Incoming<'_>>) {
        if arrival.header.bth.destination == Qpn::MULTICAST {
            self.handle_multicast(arrival);
            self.settle_overruns();
        } else {
            self.core.count(DeviceCounter::Discarded);
        }
    }
}
