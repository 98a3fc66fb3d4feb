//! Receive requests: taken when a message begins, completed when it ends.

use softfabric_telemetry::DeviceCounter;
use softfabric_units::{Gid, PartitionKey, Qpn};
use softfabric_wire::rdma::{NakCode, TransportHeader};

use super::request::Outcome;
use crate::completion::{Attachment, CompletedOperation, Completion, CompletionFlags, Status};
use crate::core::Core;
use crate::event::Event;
use crate::memory::{Access, Memory};
use crate::queue_pair::QueuePair;
use crate::work::ReceiveRequest;

impl<M: Memory> QueuePair<M> {
    /// Takes a receive request for the message that begins. False where there is none.
    pub(super) fn take_request(&mut self, core: &mut Core<M>) -> bool {
        let taken = match self.shared {
            None => self.receives.pop_front(),
            Some(shared) => {
                let Some(queue) = core.shared_queues.get_mut(shared.0) else {
                    return false;
                };
                let (taken, below_limit) = queue.take();
                if below_limit {
                    core.events.push_back(Event::SharedQueueLimit(shared));
                }
                taken
            }
        };
        self.responder.receive = taken;
        self.responder.receive.is_some()
    }

    /// Puts the receive request of a message that is given up back to where it came from: the next message takes it.
    pub(crate) fn return_receive(&mut self, core: &mut Core<M>) {
        let Some(receive) = self.responder.take_receive() else {
            return;
        };
        match self.shared {
            None => self.receives.push_front(receive),
            Some(shared) => {
                if let Some(queue) = core.shared_queues.get_mut(shared.0) {
                    queue.requests.push_front(receive);
                }
            }
        }
    }

    /// Completes the receive request of the message.
    pub(super) fn complete_receive(
        &mut self,
        core: &mut Core<M>,
        header: &TransportHeader,
        operation: CompletedOperation,
        length: u32,
        attachment: Attachment,
    ) {
        let Some(receive) = self.responder.take_receive() else {
            return;
        };
        let mut flags = CompletionFlags::empty();
        flags.set(CompletionFlags::SOLICITED, header.bth.solicited);
        core.complete(
            self.receive_queue,
            Completion {
                id: receive.id,
                status: Status::Success,
                operation,
                qp: self.number,
                length,
                attachment,
                flags,
                source: self.settings.destination,
                source_gid: Gid::default(),
                partition: self.settings.partition,
            },
        );
    }

    /// Completes the receive request of the message with an error, if it has one.
    pub(crate) fn complete_receive_with(&mut self, core: &mut Core<M>, status: Status) {
        if let Some(receive) = self.responder.take_receive() {
            self.complete_failed_receive(core, receive.id, status);
        }
    }

    /// Gives a request up for something that is wrong on this side: its receive request, if it has one, says what.
    pub(super) fn break_off(
        &mut self,
        core: &mut Core<M>,
        status: Status,
        code: NakCode,
    ) -> Outcome {
        match self.responder.take_receive() {
            Some(receive) => {
                self.complete_failed_receive(core, receive.id, status);
                Outcome::Broken(code)
            }
            None => Outcome::Refused(code),
        }
    }

    /// Completes a receive request with an error.
    pub(crate) fn complete_failed_receive(&self, core: &mut Core<M>, id: u64, status: Status) {
        if status == Status::Flushed {
            core.count(DeviceCounter::FlushedRequests);
        }
        core.complete(
            self.receive_queue,
            Completion {
                id,
                status,
                operation: CompletedOperation::Receive,
                qp: self.number,
                length: 0,
                attachment: Attachment::None,
                flags: CompletionFlags::empty(),
                source: Qpn::default(),
                source_gid: Gid::default(),
                partition: PartitionKey::DEFAULT,
            },
        );
    }

    /// Whether the memory that a packet touches of a receive request may be written.
    pub(super) fn may_receive(
        &self,
        core: &Core<M>,
        receive: &ReceiveRequest,
        offset: u32,
        length: u32,
    ) -> bool {
        let mut start = 0;
        receive.local.iter().all(|piece| {
            let end = start + u64::from(piece.length);
            let touched = end > u64::from(offset)
                && start < u64::from(offset) + u64::from(length)
                && piece.length > 0;
            start = end;
            let length = u64::from(piece.length);
            let key = piece.key;
            !touched
                || core
                    .keys
                    .check_local(
                        key,
                        self.receive_domain,
                        piece.address,
                        length,
                        Access::LOCAL_WRITE,
                    )
                    .is_ok()
        })
    }
}
