//! Duplicates: requests that were executed before and come again (IBTA vol. 1, 9.7.5.1.3).

use softfabric_telemetry::DeviceCounter;
use softfabric_units::Psn;
use softfabric_wire::rdma::{Extension, Operation, TransportHeader};

use super::Message;
use super::reply::Reply;
use crate::arbitration::Answer;
use crate::config::{Coalescing, LossRecovery};
use crate::core::Core;
use crate::memory::{Access, Memory};
use crate::queue_pair::QueuePair;

impl<M: Memory> QueuePair<M> {
    pub(super) fn handle_duplicate(
        &mut self,
        core: &mut Core<M>,
        header: &TransportHeader,
        payload: M::Incoming<'_>,
        payload_length: u32,
    ) {
        let psn = header.bth.psn;
        match (header.bth.opcode.operation(), header.extension) {
            (Operation::ReadRequest, Extension::Reth(reth)) => {
                let Some(domain) = self.domain_of(core, header.xrc_srq) else {
                    core.count(DeviceCounter::Discarded);
                    return;
                };
                let refused = !self.settings.access.contains(Access::REMOTE_READ)
                    || reth.length > core.config.limits.message
                    || !self.may_read(core, domain, reth);
                let packets = reth.length.div_ceil(self.settings.mtu.as_u32()).max(1);
                // It may not reach into what was not asked for yet.
                let beyond = psn.add(packets).is_after(self.responder.expected);
                if refused || beyond {
                    core.count(DeviceCounter::Discarded);
                    return;
                }
                // Whatever was to be sent from here on is asked for again.
                self.drop_replies_from(psn);
                if self.has_room_for_reply() {
                    let msn = self.responder.msn;
                    let reply = Reply::read(psn, msn, reth, domain, core.keys.epoch());
                    self.reply(reply.again());
                }
            }
            (Operation::CompareSwap | Operation::FetchAdd, Extension::Atomic(_)) => {
                // It is never executed twice: its result is sent again, while it is remembered (9.4.5).
                match self.remembered_atomic(psn) {
                    Some(original) => {
                        self.drop_replies_from(psn);
                        let msn = self.responder.msn;
                        self.reply(Reply::Atomic {
                            psn,
                            msn,
                            original,
                            again: true,
                        });
                    }
                    None => core.count(DeviceCounter::Discarded),
                }
            }
            (Operation::Send | Operation::Write, _) => {
                let first = self.responder.first;
                let restarts = core.config.recovery == LossRecovery::GoBack0
                    && psn == first
                    && !matches!(self.responder.message, Message::None);
                if restarts {
                    self.forget_message(core);
                    let outcome = self.execute(core, header, payload, payload_length);
                    self.conclude(core, header, outcome);
                    return;
                }
                self.acknowledge_again(core, psn);
            }
            _ => core.count(DeviceCounter::Discarded),
        }
    }

    /// Acknowledges a duplicate (IBTA vol. 1, 9.7.5.1.3): everything so far or, where reads are in use, no more than it
    /// itself covers, for responses after it may have been lost.
    fn acknowledge_again(&mut self, core: &mut Core<M>, psn: Psn) {
        if !core.config.acknowledgement.duplicates {
            return;
        }
        let every = core.config.acknowledgement.coalescing == Coalescing::EveryPacket;
        if self.responder.merging && !every {
            return;
        }
        let psn = if self.responder.replies.is_some() {
            psn
        } else {
            self.responder.expected.sub(1)
        };
        let answer = Answer {
            psn,
            msn: self.responder.msn,
            syndrome: self.positive(core),
            becn: std::mem::take(&mut self.responder.becn),
        };
        self.answer(core, answer);
    }
}
