//! Requests that are in order: checked, then done.

use softfabric_wire::rdma::{
    AtomicEth, Extension, NakCode, Operation, Position, Reth, TransportHeader,
};

use super::reply::Reply;
use super::request::Outcome;
use super::{Message, Write};
use crate::completion::{Attachment, CompletedOperation, Status};
use crate::core::Core;
use crate::memory::{Access, AtomicOperation, Domain, Memory, PlaceError, Segment};
use crate::queue_pair::{QueuePair, QueuePairType};
use crate::requester::segments;

impl<M: Memory> QueuePair<M> {
    /// Executes the request packet whose turn it is.
    #[inline]
    pub(super) fn execute(
        &mut self,
        core: &mut Core<M>,
        header: &TransportHeader,
        payload: M::Incoming<'_>,
        payload_length: u32,
    ) -> Outcome {
        let opcode = header.bth.opcode;
        let operation = opcode.operation();
        let position = opcode.position();
        if !self.follows(operation, position) {
            return Outcome::Refused(NakCode::InvalidRequest);
        }
        if self.service == QueuePairType::XrcTarget
            && let Err(code) = self.turn_to(core, header.xrc_srq, position)
        {
            return Outcome::Refused(code);
        }
        match operation {
            Operation::Write | Operation::Send => {
                // IBTA vol. 1, 9.7.4.1.6: all but the last packet are full, and the last of several is not empty.
                let mtu = self.settings.mtu.as_u32();
                let fits = match position {
                    Position::First | Position::Middle => payload_length == mtu,
                    Position::Last => payload_length > 0 && payload_length <= mtu,
                    Position::Only => payload_length <= mtu,
                };
                if !fits {
                    return Outcome::Refused(NakCode::InvalidRequest);
                }
                if operation == Operation::Write {
                    self.execute_write(core, header, position, payload, payload_length)
                } else {
                    self.execute_send(core, header, position, payload, payload_length)
                }
            }
            Operation::ReadRequest => match header.extension {
                Extension::Reth(reth) => self.execute_read(core, header, reth),
                _ => Outcome::Refused(NakCode::InvalidRequest),
            },
            Operation::CompareSwap | Operation::FetchAdd => match header.extension {
                Extension::Atomic(atomic) => {
                    let operation = if operation == Operation::FetchAdd {
                        AtomicOperation::FetchAdd {
                            add: atomic.swap_or_add,
                        }
                    } else {
                        AtomicOperation::CompareSwap {
                            compare: atomic.compare,
                            swap: atomic.swap_or_add,
                        }
                    };
                    self.execute_atomic(core, header, atomic, operation)
                }
                _ => Outcome::Refused(NakCode::InvalidRequest),
            },
            _ => Outcome::Refused(NakCode::InvalidRequest),
        }
    }

    #[inline]
    fn accept(&mut self, ends: bool, payload_length: u32) {
        let reliable = self.service.is_reliable();
        let responder = &mut self.responder;
        if reliable {
            responder.expected = responder.expected.next();
        }
        if ends {
            responder.msn = responder.msn.next();
            responder.message = Message::None;
            responder.received = 0;
        }
        self.statistics.packets_received += 1;
        self.statistics.bytes_received += u64::from(payload_length);
    }

    #[inline]
    fn execute_write(
        &mut self,
        core: &mut Core<M>,
        header: &TransportHeader,
        position: Position,
        payload: M::Incoming<'_>,
        payload_length: u32,
    ) -> Outcome {
        let mut write = match (&self.responder.message, header.extension) {
            (Message::Write(write), _) => *write,
            (_, Extension::Reth(reth) | Extension::RethImmediate(reth, _)) => {
                // IBTA vol. 1, 9.7.4.1.3: writes are off for this queue pair.
                if !self.settings.access.contains(Access::REMOTE_WRITE) {
                    return Outcome::Refused(NakCode::InvalidRequest);
                }
                if reth.length > core.config.limits.message {
                    return Outcome::Refused(NakCode::InvalidRequest);
                }
                self.responder.first = header.bth.psn;
                Write {
                    address: reth.address,
                    key: reth.rkey,
                    length: reth.length,
                    checked: core.keys.epoch().wrapping_sub(1),
                }
            }
            _ => return Outcome::Refused(NakCode::InvalidRequest),
        };
        let received = if position.starts() {
            0
        } else {
            self.responder.received
        };
        // A length of zero asks for no key (IBTA vol. 1, 9.7.4.1.5). The key is checked for the whole message at once.
        if write.length > 0 && write.checked != core.keys.epoch() {
            let held = core.keys.check_remote(
                write.key,
                self.domain,
                self.number,
                write.address,
                u64::from(write.length),
                Access::REMOTE_WRITE,
            );
            if held.is_err() {
                return Outcome::Refused(NakCode::RemoteAccess);
            }
            write.checked = core.keys.epoch();
        }
        // The data is as long as was announced, neither more nor less (IBTA vol. 1, 9.7.4.1.6).
        let total = received + payload_length;
        let ends = position.ends();
        if total > write.length || (ends && total != write.length) {
            return Outcome::Refused(NakCode::InvalidRequest);
        }
        let immediate = match header.extension {
            Extension::Immediate(data) | Extension::RethImmediate(_, data) => Some(data),
            _ => None,
        };
        if immediate.is_some() && self.responder.receive.is_none() && !self.take_request(core) {
            return Outcome::NotReady;
        }
        if payload_length > 0 {
            let address = write.address + u64::from(received);
            let (keys, domain, number) = (&core.keys, self.domain, self.number);
            let piece = std::iter::once_with(|| {
                let length = u64::from(payload_length);
                keys.check_remote(write.key, domain, number, address, length, Access::empty())
            })
            .filter_map(Result::ok)
            .map(|translation| Segment {
                region: translation.region,
                address: translation.address,
                length: payload_length,
            });
            match core.memory.place(piece, payload) {
                Ok(()) => {}
                Err(PlaceError::Lost) => return Outcome::Lost,
                Err(PlaceError::Memory(_)) => {
                    return self.break_off(core, Status::LocalAccess, NakCode::RemoteOperational);
                }
            }
        }
        if ends {
            self.accept(true, payload_length);
            if let Some(data) = immediate {
                self.complete_receive(
                    core,
                    header,
                    CompletedOperation::ReceiveWithWrite,
                    write.length,
                    Attachment::Immediate(data),
                );
            }
        } else {
            self.accept(false, payload_length);
            self.responder.received = total;
            self.responder.message = Message::Write(write);
        }
        Outcome::Done
    }

    fn execute_send(
        &mut self,
        core: &mut Core<M>,
        header: &TransportHeader,
        position: Position,
        payload: M::Incoming<'_>,
        payload_length: u32,
    ) -> Outcome {
        if position.starts() {
            if self.responder.receive.is_none() && !self.take_request(core) {
                return Outcome::NotReady;
            }
            self.responder.first = header.bth.psn;
            self.responder.received = 0;
        }
        let offset = self.responder.received;
        let Some(receive) = self.responder.receive.as_ref() else {
            return Outcome::Refused(NakCode::InvalidRequest);
        };
        let room: u64 = receive
            .local
            .iter()
            .map(|piece| u64::from(piece.length))
            .sum();
        // IBTA vol. 1, 9.7.5.2.3 and table 58: too long for the receive request, an invalid request.
        if u64::from(offset) + u64::from(payload_length) > room {
            return self.break_off(core, Status::LocalLength, NakCode::InvalidRequest);
        }
        if offset + payload_length > core.config.limits.message {
            return Outcome::Refused(NakCode::InvalidRequest);
        }
        if payload_length > 0 {
            if !self.may_receive(core, receive, offset, payload_length) {
                return self.break_off(core, Status::LocalProtection, NakCode::RemoteOperational);
            }
            let pieces = segments(
                &core.keys,
                self.receive_domain,
                &receive.local,
                offset,
                payload_length,
            );
            match core.memory.place(pieces, payload) {
                Ok(()) => {}
                Err(PlaceError::Lost) => return Outcome::Lost,
                Err(PlaceError::Memory(_)) => {
                    let status = Status::LocalOperation;
                    return self.break_off(core, status, NakCode::RemoteOperational);
                }
            }
        }
        let total = offset + payload_length;
        if !position.ends() {
            self.accept(false, payload_length);
            self.responder.received = total;
            self.responder.message = Message::Send;
            return Outcome::Done;
        }
        let attachment = match header.extension {
            Extension::Immediate(data) => Attachment::Immediate(data),
            Extension::Invalidate(key) => {
                let invalidated = core.keys.invalidate(key, self.domain, self.number, true);
                if invalidated.is_err() {
                    return self.break_off(core, Status::LocalProtection, NakCode::RemoteAccess);
                }
                Attachment::Invalidated(key)
            }
            _ => Attachment::None,
        };
        self.accept(true, payload_length);
        let operation = CompletedOperation::Receive;
        self.complete_receive(core, header, operation, total, attachment);
        Outcome::Done
    }

    fn execute_read(
        &mut self,
        core: &mut Core<M>,
        header: &TransportHeader,
        reth: Reth,
    ) -> Outcome {
        if !self.settings.access.contains(Access::REMOTE_READ)
            || reth.length > core.config.limits.message
            || !self.make_room_for_reply()
        {
            return Outcome::Refused(NakCode::InvalidRequest);
        }
        if !self.may_read(core, self.domain, reth) {
            return Outcome::Refused(NakCode::RemoteAccess);
        }
        let packets = reth.length.div_ceil(self.settings.mtu.as_u32()).max(1);
        self.responder.first = header.bth.psn;
        self.responder.expected = self.responder.expected.add(packets);
        self.responder.msn = self.responder.msn.next();
        self.statistics.packets_received += 1;
        let msn = self.responder.msn;
        self.reply(Reply::read(
            header.bth.psn,
            msn,
            reth,
            self.domain,
            core.keys.epoch(),
        ));
        Outcome::Answered
    }

    pub(super) fn may_read(&self, core: &Core<M>, domain: Domain, reth: Reth) -> bool {
        reth.length == 0
            || core
                .keys
                .check_remote(
                    reth.rkey,
                    domain,
                    self.number,
                    reth.address,
                    u64::from(reth.length),
                    Access::REMOTE_READ,
                )
                .is_ok()
    }

    fn execute_atomic(
        &mut self,
        core: &mut Core<M>,
        header: &TransportHeader,
        atomic: AtomicEth,
        operation: AtomicOperation,
    ) -> Outcome {
        if !self.settings.access.contains(Access::REMOTE_ATOMIC)
            || !atomic.address.is_multiple_of(8)
            || !self.make_room_for_reply()
        {
            return Outcome::Refused(NakCode::InvalidRequest);
        }
        let Ok(translation) = core.keys.check_remote(
            atomic.rkey,
            self.domain,
            self.number,
            atomic.address,
            8,
            Access::REMOTE_ATOMIC,
        ) else {
            return Outcome::Refused(NakCode::RemoteAccess);
        };
        let word = Segment {
            region: translation.region,
            address: translation.address,
            length: 8,
        };
        let Ok(original) = core.memory.atomic(word, operation) else {
            return Outcome::Refused(NakCode::RemoteOperational);
        };
        self.accept(true, 0);
        let psn = header.bth.psn;
        self.remember_atomic(psn, original);
        self.reply(Reply::Atomic {
            psn,
            msn: self.responder.msn,
            original,
            again: false,
        });
        Outcome::Answered
    }
}
