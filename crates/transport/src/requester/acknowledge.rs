//! Responses: acknowledgements, refusals, read data and results of atomic operations.
//!
//! A response stands for its own PSN and, silently, for every request before it; but a read or atomic operation is
//! done only by its own response. So a response beyond one that is still missing tells that it was lost
//! (IBTA vol. 1, 9.7.5.2.5, "implied NAK").

use softfabric_telemetry::DeviceCounter;
use softfabric_units::{Psn, Time};
use softfabric_wire::rdma::{
    Aeth, Extension, NakCode, Operation, Position, RnrTimer, Syndrome, TransportHeader,
};

use super::{PSN_WINDOW, segments};
use crate::completion::Status;
use crate::core::Core;
use crate::memory::{Memory, PlaceError};
use crate::queue_pair::{QueuePair, RnrRetry, State};
use crate::work::SendOperation;

impl<M: Memory> QueuePair<M> {
    /// Handles a packet that answers a request.
    #[inline]
    pub(crate) fn handle_response(
        &mut self,
        core: &mut Core<M>,
        now: Time,
        header: &TransportHeader,
        payload: M::Incoming<'_>,
        payload_length: u32,
    ) {
        if !matches!(self.state, State::ReadyToSend | State::SendQueueDrain) {
            core.count(DeviceCounter::Discarded);
            return;
        }
        let psn = header.bth.psn;
        match (header.bth.opcode.operation(), header.extension) {
            (Operation::Acknowledge, Extension::Aeth(aeth)) => {
                self.handle_acknowledge(core, now, psn, aeth);
            }
            (Operation::ReadResponse, extension) => {
                let aeth = match extension {
                    Extension::Aeth(aeth) => Some(aeth),
                    _ => None,
                };
                let position = header.bth.opcode.position();
                self.handle_read(core, now, psn, aeth, position, payload, payload_length);
            }
            (Operation::AtomicAcknowledge, Extension::AethAtomic(aeth, original)) => {
                self.handle_atomic(core, now, psn, aeth, original);
            }
            _ => core.count(DeviceCounter::Discarded),
        }
    }

    fn handle_acknowledge(&mut self, core: &mut Core<M>, now: Time, psn: Psn, aeth: Aeth) {
        match aeth.syndrome {
            Syndrome::Ack { .. } => {
                self.grant(aeth);
                if self.advance(core, now, psn.next()) {
                    self.settle(core, now);
                }
            }
            Syndrome::Nak(NakCode::SequenceError) => {
                core.count(DeviceCounter::SequenceErrorReceived);
                self.handle_sequence_error(core, now, psn, aeth);
            }
            Syndrome::RnrNak(timer) => {
                core.count(DeviceCounter::RnrNakReceived);
                self.statistics.rnr_naks += 1;
                self.handle_not_ready(core, now, psn, timer);
            }
            Syndrome::Nak(NakCode::InvalidRequest) => {
                self.handle_refusal(core, now, psn, Status::RemoteInvalidRequest);
            }
            Syndrome::Nak(NakCode::RemoteAccess) => {
                self.handle_refusal(core, now, psn, Status::RemoteAccess);
            }
            Syndrome::Nak(NakCode::RemoteOperational) => {
                self.handle_refusal(core, now, psn, Status::RemoteOperation);
            }
            Syndrome::Nak(NakCode::InvalidRdRequest) | Syndrome::Reserved(_) => {
                self.handle_refusal(core, now, psn, Status::BadResponse);
            }
        }
    }

    /// Whether `psn` is one of those that wait for an answer.
    #[inline]
    pub(super) fn is_outstanding(&self, psn: Psn) -> bool {
        let requester = &self.requester;
        psn.distance_from(requester.una) < requester.end.distance_from(requester.una)
    }

    /// Takes over the credits of an acknowledgement (IBTA vol. 1, 9.7.7.2.4).
    #[inline]
    fn grant(&mut self, aeth: Aeth) {
        self.requester.credit_limit = aeth
            .syndrome
            .credits()
            .map(|credits| softfabric_units::Msn::new(aeth.msn.as_u32().wrapping_add(credits)));
    }

    /// Everything before `upto` has arrived. False where that says nothing new.
    ///
    /// A read or atomic operation in between has not been answered: everything up to it counts, and it is asked for
    /// again.
    #[inline]
    pub(super) fn advance(&mut self, core: &mut Core<M>, now: Time, upto: Psn) -> bool {
        let last = upto.sub(1);
        if !self.is_outstanding(last) {
            if last.distance_from(self.requester.end) < PSN_WINDOW {
                // It acknowledges what was never sent.
                core.count(DeviceCounter::Discarded);
            }
            return false;
        }
        let mut upto = upto;
        if self.requester.reads > 0
            && let Some(unanswered) = self.unanswered_before(upto)
        {
            if self.requester.una != unanswered {
                self.move_una(unanswered);
                self.settle(core, now);
            }
            if self.requester.implied != Some(unanswered) {
                self.requester.implied = Some(unanswered);
                core.count(DeviceCounter::ImpliedNak);
                self.retry(core, now, unanswered);
            }
            return false;
        }
        if self.requester.end.is_before(upto) {
            upto = self.requester.end;
        }
        self.move_una(upto);
        true
    }

    /// Moves `una` forward, and the cursor along where it had gone back behind it.
    #[inline]
    fn move_una(&mut self, upto: Psn) {
        let requester = &mut self.requester;
        if let Some(selective) = &mut requester.selective {
            selective.advance(requester.una, upto);
        }
        requester.una = upto;
        if requester.next.is_before(upto) {
            self.seek(upto);
        }
        let requester = &mut self.requester;
        if let Some(selective) = &mut requester.selective
            && selective.is_over(upto, requester.end)
        {
            requester.selective = None;
        }
    }

    /// The first PSN before `upto` that only its own response can settle.
    fn unanswered_before(&self, upto: Psn) -> Option<Psn> {
        let requester = &self.requester;
        requester
            .queue
            .iter()
            .take_while(|posted| posted.begun && posted.first.is_before(upto))
            .find(|posted| posted.is_read_or_atomic() && posted.end().is_after(requester.una))
            .map(|posted| {
                if posted.first.is_after(requester.una) {
                    posted.first
                } else {
                    requester.una
                }
            })
    }

    /// Progress was made: the counters of retries start anew, and the timer with them (IBTA vol. 1, 9.7.6.1.3).
    #[inline]
    pub(super) fn settle(&mut self, core: &mut Core<M>, now: Time) {
        let requester = &mut self.requester;
        requester.retries_left = self.settings.retry_count;
        requester.rnr_left = self.settings.rnr_retry.count();
        requester.quiet_until = Time::ZERO;
        requester.implied = None;
        requester.overdue = if requester.una == requester.end || requester.timeout.is_zero() {
            Time::NEVER
        } else {
            now + requester.timeout
        };
        self.reap(core);
        self.prepare(core, now);
        self.arm(core);
    }

    /// The peer misses a packet (IBTA vol. 1, 9.7.5.1.4).
    fn handle_sequence_error(&mut self, core: &mut Core<M>, now: Time, psn: Psn, aeth: Aeth) {
        if let crate::config::LossRecovery::SelectiveRepeat { .. } = core.config.recovery {
            // The MSN field names the packet that showed the gap.
            self.handle_gap(core, now, psn, Psn::new(aeth.msn.as_u32()));
            return;
        }
        if core.config.recovery == crate::config::LossRecovery::GoBack0 {
            self.handle_start_again(core, now, psn);
            return;
        }
        if !self.is_outstanding(psn) {
            core.count(DeviceCounter::Discarded);
            return;
        }
        if psn != self.requester.una {
            if !self.advance(core, now, psn) {
                return;
            }
            self.settle(core, now);
        }
        if self.state != State::Error {
            self.retry(core, now, psn);
        }
    }

    /// The peer is not ready: it is asked again after the timer (IBTA vol. 1, 9.7.5.2.8).
    fn handle_not_ready(&mut self, core: &mut Core<M>, now: Time, psn: Psn, timer: RnrTimer) {
        if !self.is_outstanding(psn) {
            core.count(DeviceCounter::Discarded);
            return;
        }
        if psn != self.requester.una {
            if !self.advance(core, now, psn) {
                return;
            }
            self.settle(core, now);
            if self.state == State::Error {
                return;
            }
        }
        let left = self.requester.rnr_left;
        let infinite = self.settings.rnr_retry == RnrRetry::INFINITE;
        if left == 0 && !infinite {
            core.count(DeviceCounter::RnrRetriesExceeded);
            self.fail_request(core, Status::RnrRetriesExceeded);
            return;
        }
        self.requester.rnr_left = if infinite { left } else { left - 1 };
        // The peer is there: what was lost on the way to this answer does not count against the next.
        self.requester.retries_left = self.settings.retry_count;
        self.requester.selective = None;
        self.seek(psn);
        self.requester.overdue = Time::NEVER;
        self.requester.quiet_until = now + timer.span();
        self.arm(core);
    }

    /// The peer refuses the request at `psn` for good.
    fn handle_refusal(&mut self, core: &mut Core<M>, now: Time, psn: Psn, status: Status) {
        if !self.is_outstanding(psn) {
            core.count(DeviceCounter::Discarded);
            return;
        }
        if psn != self.requester.una {
            // What came before was accepted; a read before it that is still unanswered is asked for first.
            if !self.advance(core, now, psn) {
                return;
            }
            self.settle(core, now);
        }
        match status {
            Status::RemoteAccess => core.count(DeviceCounter::RemoteAccessErrors),
            Status::RemoteInvalidRequest => core.count(DeviceCounter::RemoteInvalidRequests),
            _ => {}
        }
        if self.state != State::Error {
            self.fail_request(core, status);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one packet")]
    fn handle_read(
        &mut self,
        core: &mut Core<M>,
        now: Time,
        psn: Psn,
        aeth: Option<Aeth>,
        position: Position,
        payload: M::Incoming<'_>,
        payload_length: u32,
    ) {
        if !self.reach(core, now, psn) {
            return;
        }
        if let Some(aeth) = aeth {
            self.grant(aeth);
        }
        let mtu = self.settings.mtu.as_u32();
        let Some(posted) = self.requester.queue.front_mut() else {
            return;
        };
        let packet = psn.distance_from(posted.first);
        let offset = packet * mtu;
        let ends = packet + 1 == posted.packets;
        let fits = matches!(posted.request.operation, SendOperation::Read(_))
            && position.ends() == ends
            && payload_length == (posted.length - offset).min(mtu);
        // IBTA vol. 1, 9.9.2.3: an unexpected opcode or length is a bad response.
        if !fits {
            self.fail_request(core, Status::BadResponse);
            return;
        }
        if !Self::check_segments(core, self.domain, posted) {
            self.fail_request(core, Status::LocalProtection);
            return;
        }
        if payload_length > 0 {
            let local = &posted.request.local;
            let pieces = segments(&core.keys, self.domain, local, offset, payload_length);
            match core.memory.place(pieces, payload) {
                Ok(()) => {}
                // As if it had not arrived: it is asked for again, or given up in the end.
                Err(PlaceError::Lost) => return,
                Err(PlaceError::Memory(_)) => {
                    self.fail_request(core, Status::LocalOperation);
                    return;
                }
            }
        }
        self.statistics.packets_received += 1;
        self.statistics.bytes_received += u64::from(payload_length);
        if ends {
            self.requester.reads -= 1;
        }
        self.move_una(psn.next());
        self.settle(core, now);
    }

    fn handle_atomic(
        &mut self,
        core: &mut Core<M>,
        now: Time,
        psn: Psn,
        aeth: Aeth,
        original: u64,
    ) {
        if !self.reach(core, now, psn) {
            return;
        }
        self.grant(aeth);
        let Some(posted) = self.requester.queue.front_mut() else {
            return;
        };
        let atomic = matches!(
            posted.request.operation,
            SendOperation::CompareSwap { .. } | SendOperation::FetchAdd { .. }
        );
        if !atomic {
            self.fail_request(core, Status::BadResponse);
            return;
        }
        if !Self::check_segments(core, self.domain, posted) {
            self.fail_request(core, Status::LocalProtection);
            return;
        }
        let pieces = segments(&core.keys, self.domain, &posted.request.local, 0, 8);
        if core
            .memory
            .place_bytes(pieces, &original.to_ne_bytes())
            .is_err()
        {
            self.fail_request(core, Status::LocalOperation);
            return;
        }
        self.requester.reads -= 1;
        self.move_una(psn.next());
        self.settle(core, now);
    }

    /// Whether the response at `psn` is the one that is due; what came before it is settled on the way.
    fn reach(&mut self, core: &mut Core<M>, now: Time, psn: Psn) -> bool {
        if !self.is_outstanding(psn) {
            // A duplicate, or a ghost: dropped (IBTA vol. 1, 9.7.5.2.4).
            core.count(DeviceCounter::Discarded);
            return false;
        }
        if psn != self.requester.una {
            if !self.advance(core, now, psn) {
                return false;
            }
            self.settle(core, now);
        }
        self.state != State::Error
    }
}
