//! Datagrams: one packet, one receive request, no answer (IBTA vol. 1, 9.8.3).

use softfabric_telemetry::DeviceCounter;
use softfabric_wire::rdma::Extension;

use crate::completion::{Attachment, CompletedOperation, Completion, CompletionFlags, Status};
use crate::core::Core;
use crate::memory::{Access, Memory, PlaceError};
use crate::packet::Arrival;
use crate::queue_pair::QueuePair;
use crate::requester::segments;

/// The bytes before a datagram's payload: a global routing header, or zeros.
const GRH: u32 = 40;

impl<M: Memory> QueuePair<M> {
    /// Receives a datagram, or drops it silently.
    pub(crate) fn handle_datagram(
        &mut self,
        core: &mut Core<M>,
        arrival: &Arrival<'_, M::Incoming<'_>>,
    ) {
        let (deth, attachment) = match arrival.header.extension {
            Extension::Deth(deth) => (deth, Attachment::None),
            Extension::DethImmediate(deth, data) => (deth, Attachment::Immediate(data)),
            _ => {
                core.count(DeviceCounter::Discarded);
                return;
            }
        };
        // IBTA vol. 1, 9.6.1.4: a wrong queue key is dropped; 9.8.3: and what is longer than the port's MTU.
        let longest = self.settings.mtu.as_u32();
        if deth.qkey != self.settings.qkey || arrival.payload_length > longest {
            core.count(DeviceCounter::Discarded);
            return;
        }
        if !self.take_request(core) {
            core.count(DeviceCounter::OutOfBuffer);
            return;
        }
        let Some(receive) = &self.responder.receive else {
            return;
        };
        let room: u64 = receive
            .local
            .iter()
            .map(|piece| u64::from(piece.length))
            .sum();
        let length = GRH + arrival.payload_length;
        if room < u64::from(length) {
            // Nobody who can reach the queue pair may stop it: the datagram is dropped, its request serves the next.
            core.count(DeviceCounter::Discarded);
            self.return_receive(core);
            return;
        }
        let Some(receive) = self.responder.take_receive() else {
            return;
        };
        let held = receive.local.iter().all(|piece| {
            let length = u64::from(piece.length);
            let (key, address) = (piece.key, piece.address);
            let need = Access::LOCAL_WRITE;
            length == 0
                || core
                    .keys
                    .check_local(key, self.receive_domain, address, length, need)
                    .is_ok()
        });
        if !held {
            self.complete_failed_receive(core, receive.id, Status::LocalProtection);
            self.fail(core);
            return;
        }
        let grh = arrival.grh.unwrap_or(&[0; GRH as usize]);
        let before = segments(&core.keys, self.receive_domain, &receive.local, 0, GRH);
        let mut placed = core.memory.place_bytes(before, grh).map_err(Into::into);
        if placed.is_ok() && arrival.payload_length > 0 {
            let after = segments(
                &core.keys,
                self.receive_domain,
                &receive.local,
                GRH,
                arrival.payload_length,
            );
            placed = core.memory.place(after, arrival.payload);
        }
        match placed {
            Ok(()) => {}
            Err(PlaceError::Lost) => {
                core.count(DeviceCounter::Discarded);
                self.responder.receive = Some(receive);
                self.return_receive(core);
                return;
            }
            Err(PlaceError::Memory(_)) => {
                self.complete_failed_receive(core, receive.id, Status::LocalOperation);
                self.fail(core);
                return;
            }
        }
        let mut flags = CompletionFlags::GRH;
        flags.set(CompletionFlags::SOLICITED, arrival.header.bth.solicited);
        self.statistics.packets_received += 1;
        self.statistics.bytes_received += u64::from(arrival.payload_length);
        core.complete(
            self.receive_queue,
            Completion {
                id: receive.id,
                status: Status::Success,
                operation: CompletedOperation::Receive,
                qp: self.number,
                length,
                attachment,
                flags,
                source: deth.source,
                source_gid: arrival.source.gid,
                partition: arrival.header.bth.partition,
            },
        );
    }
}
