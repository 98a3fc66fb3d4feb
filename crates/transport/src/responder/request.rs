//! Requests of a connected peer: in order, behind, or ahead.

use softfabric_telemetry::DeviceCounter;
use softfabric_units::Time;
use softfabric_wire::rdma::{NakCode, Operation, Position, Syndrome, TransportHeader};

use super::Message;
use crate::arbitration::Answer;
use crate::config::{Coalescing, LossRecovery};
use crate::core::Core;
use crate::event::Event;
use crate::memory::Memory;
use crate::queue_pair::{QueuePair, QueuePairType, State};

/// What became of a request packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Executed; a reliable peer is owed an acknowledgement.
    Done,
    /// Executed, and its own response answers it.
    Answered,
    /// There is no receive request for it.
    NotReady,
    /// Its payload is not there any more: as if it had not arrived.
    Lost,
    /// Refused.
    Refused(NakCode),
    /// Refused, and its receive request has completed with an error.
    Broken(NakCode),
}

impl<M: Memory> QueuePair<M> {
    /// Handles a request packet on a connected queue pair.
    #[inline]
    pub(crate) fn handle_request(
        &mut self,
        core: &mut Core<M>,
        now: Time,
        header: &TransportHeader,
        payload: M::Incoming<'_>,
        payload_length: u32,
        marked: bool,
    ) {
        if self.state == State::ReadyToReceive && !self.responder.established {
            self.responder.established = true;
            let event = Event::CommunicationEstablished(self.number);
            core.events.push_back(event);
        }
        if self.service == QueuePairType::UnreliableConnection {
            self.handle_unreliable(core, header, payload, payload_length);
            return;
        }
        self.responder.becn |= marked;
        let ahead = header.bth.psn.offset_from(self.responder.expected);
        if ahead == 0 {
            self.handle_expected(core, header, payload, payload_length);
        } else if ahead > 0 {
            self.handle_ahead(core, now, header, payload, payload_length, ahead as u32);
        } else {
            core.count(DeviceCounter::DuplicateRequest);
            self.handle_duplicate(core, header, payload, payload_length);
        }
        // Where every packet has its own acknowledgement, a mark without one is lost.
        if core.config.acknowledgement.coalescing == Coalescing::EveryPacket {
            self.responder.becn = false;
        }
    }

    #[inline]
    fn handle_expected(
        &mut self,
        core: &mut Core<M>,
        header: &TransportHeader,
        payload: M::Incoming<'_>,
        payload_length: u32,
    ) {
        self.responder.reported = false;
        let before = self.responder.expected;
        let outcome = self.execute(core, header, payload, payload_length);
        self.conclude(core, header, outcome);
        if self.responder.held.is_some() {
            let consumed = self.responder.expected.distance_from(before);
            self.release_held(core, consumed);
        }
    }

    /// Answers an executed or refused request.
    #[inline]
    pub(super) fn conclude(
        &mut self,
        core: &mut Core<M>,
        header: &TransportHeader,
        outcome: Outcome,
    ) {
        match outcome {
            Outcome::Done => self.owe(core, header.bth.psn, header.bth.acknowledge),
            Outcome::Answered => {}
            Outcome::NotReady => {
                core.count(DeviceCounter::OutOfBuffer);
                // Only the packet that found no request is answered; what follows is dropped until it comes again
                // (IBTA vol. 1, 9.7.5.2.8).
                self.responder.reported = true;
                self.responder.held = None;
                let timer = Syndrome::RnrNak(self.settings.min_rnr_timer);
                self.refuse(core, header.bth.psn, timer);
            }
            Outcome::Lost => core.count(DeviceCounter::Discarded),
            Outcome::Refused(code) | Outcome::Broken(code) => {
                self.refuse_for_good(core, header, code);
            }
        }
    }

    /// A request that breaks the rules ends the connection (IBTA vol. 1, 9.9.3, class C).
    pub(super) fn refuse_for_good(
        &mut self,
        core: &mut Core<M>,
        header: &TransportHeader,
        code: NakCode,
    ) {
        self.refuse(core, header.bth.psn, Syndrome::Nak(code));
        let event = match code {
            NakCode::RemoteAccess => {
                core.count(DeviceCounter::ResponderAccessErrors);
                Event::AccessError(self.number)
            }
            NakCode::RemoteOperational => Event::QueuePairFatal(self.number),
            _ => Event::RequestError(self.number),
        };
        core.events.push_back(event);
        self.fail_after_replies(core);
    }

    /// A packet before this one is missing.
    fn handle_ahead(
        &mut self,
        core: &mut Core<M>,
        now: Time,
        header: &TransportHeader,
        payload: M::Incoming<'_>,
        payload_length: u32,
        ahead: u32,
    ) {
        core.count(DeviceCounter::OutOfSequence);
        let responder = &mut self.responder;
        match core.config.recovery {
            LossRecovery::SelectiveRepeat { .. } => {
                // After a receiver-not-ready NAK everything comes again.
                let not_ready = responder.reported && responder.held.is_none();
                if not_ready || !self.keep(core, header, payload, payload_length, ahead) {
                    return;
                }
                self.responder.reported = true;
                self.report_gap(core, header.bth.psn);
            }
            LossRecovery::GoBackN | LossRecovery::GoBack0 => {
                // IBTA vol. 1, 9.7.5.1.4: one NAK for a gap; again after an interval where the NIC does so.
                if responder.reported {
                    let due = core
                        .config
                        .acknowledgement
                        .nak_interval
                        .is_some_and(|interval| now.since(responder.reported_at) >= interval);
                    if !due {
                        return;
                    }
                }
                responder.reported = true;
                responder.reported_at = now;
                if core.config.recovery == LossRecovery::GoBack0 {
                    self.forget_message(core);
                }
                let expected = self.responder.expected;
                self.refuse(core, expected, Syndrome::Nak(NakCode::SequenceError));
            }
        }
    }

    /// Go back 0: the message that was begun is received again from its first packet.
    pub(super) fn forget_message(&mut self, core: &mut Core<M>) {
        let responder = &mut self.responder;
        if !matches!(responder.message, Message::None) {
            responder.expected = responder.first;
            responder.message = Message::None;
            responder.received = 0;
            self.return_receive(core);
        }
    }

    /// Unreliable connections: what does not follow is dropped with the rest of its message, silently
    /// (IBTA vol. 1, 9.8.2.2).
    fn handle_unreliable(
        &mut self,
        core: &mut Core<M>,
        header: &TransportHeader,
        payload: M::Incoming<'_>,
        payload_length: u32,
    ) {
        let position = header.bth.opcode.position();
        let in_order = header.bth.psn == self.responder.expected;
        self.responder.expected = header.bth.psn.next();
        if !in_order {
            core.count(DeviceCounter::OutOfSequence);
            self.drop_message(position);
        }
        if position.starts() && !matches!(self.responder.message, Message::None) {
            self.drop_message(position);
            self.responder.message = Message::None;
        }
        if matches!(self.responder.message, Message::Dropped) {
            core.count(DeviceCounter::Discarded);
            if position.ends() {
                self.responder.message = Message::None;
            }
            return;
        }
        match self.execute(core, header, payload, payload_length) {
            Outcome::Done | Outcome::Answered => {}
            Outcome::NotReady => {
                core.count(DeviceCounter::OutOfBuffer);
                self.drop_message(position);
            }
            // A receive request that completed with an error takes the queue pair along (IBTA vol. 1, 10.3.1.7).
            Outcome::Broken(_) => self.fail(core),
            Outcome::Refused(_) | Outcome::Lost => {
                core.count(DeviceCounter::Discarded);
                self.drop_message(position);
            }
        }
    }

    /// Drops what was received of a message, and the rest of it to come. Its receive request serves the next.
    fn drop_message(&mut self, position: Position) {
        let responder = &mut self.responder;
        responder.received = 0;
        responder.message = if position.ends() || position.starts() {
            Message::None
        } else {
            Message::Dropped
        };
    }

    /// Whether the packet may follow what came before it in the message (IBTA vol. 1, 9.7.4.1.2).
    #[inline]
    pub(super) fn follows(&self, operation: Operation, position: Position) -> bool {
        match &self.responder.message {
            Message::None => position.starts(),
            Message::Send => !position.starts() && operation == Operation::Send,
            Message::Write(_) => !position.starts() && operation == Operation::Write,
            Message::Dropped => false,
        }
    }

    /// Refuses the request at `psn`, or asks for it again.
    pub(super) fn refuse(
        &mut self,
        core: &mut Core<M>,
        psn: softfabric_units::Psn,
        syndrome: Syndrome,
    ) {
        let answer = Answer {
            psn,
            msn: self.responder.msn,
            syndrome,
            becn: std::mem::take(&mut self.responder.becn),
        };
        self.answer(core, answer);
    }
}
