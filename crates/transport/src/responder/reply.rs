//! Answers: acknowledgements, read data, results of atomics.
//!
//! Answers leave in the order of their PSNs (IBTA vol. 1, 9.7.5.1.1). Acknowledgements go straight into the device's
//! queue while no read or atomic waits before them, and behind those otherwise.

use std::collections::VecDeque;

use softfabric_telemetry::DeviceCounter;
use softfabric_units::{Class, Msn, Psn, Time};
use softfabric_wire::rdma::{
    Aeth, Bth, Extension, NakCode, Opcode, Reth, Syndrome, TransportHeader,
};

use super::Replies;
use crate::arbitration::{Acknowledge, Answer};
use crate::config::{Coalescing, LossRecovery, NotificationPoint};
use crate::core::Core;
use crate::event::Event;
use crate::memory::{Access, Domain, Memory, Segment};
use crate::packet::Transmit;
use crate::queue_pair::{Migration, QueuePair, QueuePairType};

/// An answer that waits its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    Acknowledge(Answer),
    Read {
        first: Psn,
        next: Psn,
        msn: Msn,
        reth: Reth,
        /// Whose memory is read: the queue pair's, or that of a shared receive queue (XRC).
        domain: Domain,
        checked: u32,
        /// It answers a duplicate: the peer may have had the answer before.
        again: bool,
    },
    Atomic {
        psn: Psn,
        msn: Msn,
        original: u64,
        again: bool,
    },
}

impl Reply {
    pub(super) fn read(psn: Psn, msn: Msn, reth: Reth, domain: Domain, checked: u32) -> Self {
        Self::Read {
            first: psn,
            next: psn,
            msn,
            reth,
            domain,
            checked,
            again: false,
        }
    }

    /// The same reply, to a duplicate.
    pub(super) fn again(mut self) -> Self {
        if let Self::Read { again, .. } | Self::Atomic { again, .. } = &mut self {
            *again = true;
        }
        self
    }

    fn is_again(&self) -> bool {
        matches!(
            self,
            Self::Read { again: true, .. } | Self::Atomic { again: true, .. }
        )
    }

    /// The PSN that it would be sent with.
    fn psn(&self) -> Psn {
        match self {
            Self::Acknowledge(answer) => answer.psn,
            Self::Read { next, .. } => *next,
            Self::Atomic { psn, .. } => *psn,
        }
    }

    fn is_acknowledge(&self) -> bool {
        matches!(self, Self::Acknowledge(_))
    }
}

impl<M: Memory> QueuePair<M> {
    /// Whether a read or atomic response could be sent.
    #[inline]
    pub(crate) fn response_ready(&self) -> bool {
        match &self.responder.replies {
            Some(replies) => !replies.queue.is_empty(),
            None => false,
        }
    }

    fn replies(&mut self) -> &mut Replies {
        self.responder.replies.get_or_insert_with(|| {
            Box::new(Replies {
                queue: VecDeque::new(),
                atomics: VecDeque::new(),
            })
        })
    }

    /// Whether the peer has fewer reads and atomics in flight than it may (IBTA vol. 1, 9.7.4.1.4).
    pub(super) fn has_room_for_reply(&self) -> bool {
        let waiting = self.responder.replies.as_ref().map_or(0, |replies| {
            let queue = replies.queue.iter();
            queue.filter(|reply| !reply.is_acknowledge()).count()
        });
        waiting < usize::from(self.settings.max_peer_reads)
    }

    /// Makes room for the reply to a new request. A peer that keeps to its limit, and yet asks for more than fits, has had
    /// the answer that still waits for a duplicate: the duplicate's is dropped.
    pub(super) fn make_room_for_reply(&mut self) -> bool {
        if self.has_room_for_reply() {
            return true;
        }
        let Some(replies) = &mut self.responder.replies else {
            return false;
        };
        let obsolete = replies.queue.iter().position(Reply::is_again);
        obsolete
            .and_then(|index| replies.queue.remove(index))
            .is_some()
    }

    /// Queues a read or atomic response; a waiting acknowledgement goes before it as it stands.
    pub(super) fn reply(&mut self, reply: Reply) {
        self.responder.unacknowledged = 0;
        self.replies().queue.push_back(reply);
    }

    pub(super) fn remember_atomic(&mut self, psn: Psn, original: u64) {
        let kept = usize::from(self.settings.max_peer_reads).max(1);
        let atomics = &mut self.replies().atomics;
        if atomics.len() >= kept {
            atomics.pop_front();
        }
        atomics.push_back((psn, original));
    }

    pub(super) fn remembered_atomic(&self, psn: Psn) -> Option<u64> {
        let atomics = &self.responder.replies.as_ref()?.atomics;
        let found = atomics.iter().rev().find(|(known, _)| *known == psn);
        found.map(|(_, original)| *original)
    }

    /// Drops replies from `psn` on: they are asked for again.
    pub(super) fn drop_replies_from(&mut self, psn: Psn) {
        if let Some(replies) = &mut self.responder.replies {
            replies.queue.retain(|reply| reply.psn().is_before(psn));
        }
    }

    /// The syndrome of a positive acknowledgement: with credits, the receive requests that wait (IBTA vol. 1, 9.7.7.2).
    #[inline]
    pub(super) fn positive(&self, core: &Core<M>) -> Syndrome {
        if core.config.acknowledgement.credits && self.shared.is_none() && self.xrc.is_none() {
            Syndrome::with_credits(self.receives.len() as u32)
        } else {
            Syndrome::ACK
        }
    }

    /// An executed request packet is to be acknowledged, at once or together with others.
    #[inline]
    pub(super) fn owe(&mut self, core: &mut Core<M>, psn: Psn, asked: bool) {
        let most = match core.config.acknowledgement.coalescing {
            Coalescing::EveryPacket => {
                let answer = Answer {
                    psn,
                    msn: self.responder.msn,
                    syndrome: self.positive(core),
                    becn: std::mem::take(&mut self.responder.becn),
                };
                self.answer(core, answer);
                return;
            }
            Coalescing::AtMost(most) => most,
        };
        let responder = &mut self.responder;
        responder.unacknowledged = responder.unacknowledged.saturating_add(1);
        let behind = responder
            .replies
            .as_ref()
            .is_some_and(|replies| !replies.queue.is_empty());
        if responder.merging && !behind {
            responder.merged_psn = psn;
            responder.merged_msn = responder.msn;
            responder.unacknowledged = 0;
            return;
        }
        if !asked && responder.unacknowledged < most {
            return;
        }
        responder.unacknowledged = 0;
        if behind {
            let answer = Answer {
                psn,
                msn: responder.msn,
                syndrome: self.positive(core),
                becn: false,
            };
            let queue = &mut self.replies().queue;
            match queue.back_mut() {
                Some(Reply::Acknowledge(last))
                    if last.syndrome.credits() == answer.syndrome.credits()
                        && matches!(last.syndrome, Syndrome::Ack { .. }) =>
                {
                    *last = answer;
                }
                _ => queue.push_back(Reply::Acknowledge(answer)),
            }
            return;
        }
        responder.merging = true;
        responder.merged_psn = psn;
        responder.merged_msn = responder.msn;
        let class = core
            .config
            .acknowledgement
            .class
            .or(self.settings.path.class);
        let slot = self.slot;
        core.lanes
            .acknowledge(class, Acknowledge { slot, answer: None });
    }

    /// Queues an answer of its own.
    #[inline]
    pub(super) fn answer(&mut self, core: &mut Core<M>, answer: Answer) {
        if let Some(replies) = &mut self.responder.replies
            && !replies.queue.is_empty()
        {
            replies.queue.push_back(Reply::Acknowledge(answer));
            return;
        }
        let class = core
            .config
            .acknowledgement
            .class
            .or(self.settings.path.class);
        let acknowledge = Acknowledge {
            slot: self.slot,
            answer: Some(answer),
        };
        core.lanes.acknowledge(class, acknowledge);
    }

    /// Reports the gap before `expected`, and that `arrived` is here: the acknowledged PSN is the missing one, and the
    /// MSN field names the one that arrived.
    pub(super) fn report_gap(&mut self, core: &mut Core<M>, arrived: Psn) {
        let answer = Answer {
            psn: self.responder.expected,
            msn: Msn::new(arrived.as_u32()),
            syndrome: Syndrome::Nak(NakCode::SequenceError),
            becn: std::mem::take(&mut self.responder.becn),
        };
        debug_assert!(matches!(
            core.config.recovery,
            LossRecovery::SelectiveRepeat { .. }
        ));
        self.answer(core, answer);
    }

    /// The acknowledgement packet whose turn it is.
    #[inline]
    pub(crate) fn emit_acknowledge(
        &mut self,
        core: &mut Core<M>,
        class: Class,
        acknowledge: Acknowledge,
    ) -> Option<Transmit<M::Outgoing>> {
        let answer = match acknowledge.answer {
            Some(answer) => answer,
            None => {
                if !self.responder.merging {
                    return None;
                }
                self.responder.merging = false;
                Answer {
                    psn: self.responder.merged_psn,
                    msn: self.responder.merged_msn,
                    syndrome: self.positive(core),
                    becn: std::mem::take(&mut self.responder.becn),
                }
            }
        };
        Some(self.acknowledge_packet(core, class, answer))
    }

    fn acknowledge_packet(
        &self,
        core: &mut Core<M>,
        class: Class,
        answer: Answer,
    ) -> Transmit<M::Outgoing> {
        let aeth = Aeth {
            syndrome: answer.syndrome,
            msn: answer.msn,
        };
        let carries = matches!(
            core.config.notification,
            NotificationPoint::OnAcknowledge | NotificationPoint::Becn
        );
        let becn = answer.becn && carries;
        let header = self.response_header(
            Opcode::RC_ACKNOWLEDGE,
            answer.psn,
            Extension::Aeth(aeth),
            becn,
            0,
        );
        let size = core
            .config
            .pacing
            .sizing
            .size(Opcode::RC_ACKNOWLEDGE.header_length(), 0);
        core.lanes.charge(class, size.as_u64());
        let mut path = self.settings.path;
        path.class = class;
        Transmit {
            header,
            payload: M::Outgoing::default(),
            payload_length: 0,
            class,
            ecn_capable: path.ecn_capable(),
            path,
            qp: self.number,
        }
    }

    #[inline]
    fn response_header(
        &self,
        opcode: Opcode,
        psn: Psn,
        extension: Extension,
        becn: bool,
        payload_length: u32,
    ) -> TransportHeader {
        let opcode = match self.service {
            QueuePairType::XrcTarget => opcode.extended(),
            _ => opcode,
        };
        TransportHeader {
            bth: Bth {
                opcode,
                solicited: false,
                migrated: self.settings.migration == Migration::Migrated,
                pad: (payload_length.wrapping_neg() & 3) as u8,
                partition: self.settings.partition,
                fecn: false,
                becn,
                destination: self.settings.destination,
                acknowledge: false,
                psn,
            },
            extension,
            xrc_srq: 0,
        }
    }

    /// The next packet of the read or atomic responses. `None`: what was to be read is out of reach now.
    pub(crate) fn emit_response(
        &mut self,
        core: &mut Core<M>,
        now: Time,
    ) -> Option<Transmit<M::Outgoing>> {
        let reply = *self.responder.replies.as_ref()?.queue.front()?;
        let class = self.settings.path.class;
        match reply {
            // An acknowledgement behind a response leaves in the class of the response.
            Reply::Acknowledge(answer) => {
                self.drop_reply();
                Some(self.acknowledge_packet(core, class, answer))
            }
            Reply::Atomic {
                psn, msn, original, ..
            } => {
                self.drop_reply();
                let aeth = Aeth {
                    syndrome: self.positive(core),
                    msn,
                };
                let extension = Extension::AethAtomic(aeth, original);
                let opcode = Opcode::RC_ATOMIC_ACKNOWLEDGE;
                let header = self.response_header(opcode, psn, extension, false, 0);
                Some(self.data_response(core, now, header, M::Outgoing::default(), 0))
            }
            Reply::Read { .. } => self.emit_read(core, now, reply),
        }
    }

    fn drop_reply(&mut self) {
        if let Some(replies) = &mut self.responder.replies {
            replies.queue.pop_front();
        }
    }

    fn emit_read(
        &mut self,
        core: &mut Core<M>,
        now: Time,
        reply: Reply,
    ) -> Option<Transmit<M::Outgoing>> {
        let Reply::Read {
            first,
            next,
            msn,
            reth,
            domain,
            checked,
            ..
        } = reply
        else {
            return None;
        };
        let mtu = self.settings.mtu.as_u32();
        let offset = next.distance_from(first) * mtu;
        let payload_length = (reth.length - offset).min(mtu);
        let ends = offset + payload_length == reth.length;
        let opcode = match (next == first, ends) {
            (true, true) => Opcode::RC_READ_RESPONSE_ONLY,
            (true, false) => Opcode::RC_READ_RESPONSE_FIRST,
            (false, false) => Opcode::RC_READ_RESPONSE_MIDDLE,
            (false, true) => Opcode::RC_READ_RESPONSE_LAST,
        };
        let current = checked == core.keys.epoch();
        let payload = if current || self.may_read(core, domain, reth) {
            self.read_payload(core, domain, reth, offset, payload_length)
        } else {
            Err(NakCode::RemoteAccess)
        };
        let payload = match payload {
            Ok(payload) => payload,
            Err(code) => {
                self.drop_reply();
                let syndrome = Syndrome::Nak(code);
                let answer = Answer {
                    psn: next,
                    msn,
                    syndrome,
                    becn: false,
                };
                self.drop_replies_from(next);
                self.answer(core, answer);
                core.count(DeviceCounter::ResponderAccessErrors);
                core.events.push_back(Event::AccessError(self.number));
                self.fail_after_replies(core);
                return None;
            }
        };
        if ends {
            self.drop_reply();
        } else if let Some(Reply::Read { next, checked, .. }) = self
            .responder
            .replies
            .as_mut()
            .and_then(|replies| replies.queue.front_mut())
        {
            *next = next.next();
            *checked = core.keys.epoch();
        }
        let extension = if opcode == Opcode::RC_READ_RESPONSE_MIDDLE {
            Extension::None
        } else {
            Extension::Aeth(Aeth {
                syndrome: self.positive(core),
                msn,
            })
        };
        let header = self.response_header(opcode, next, extension, false, payload_length);
        Some(self.data_response(core, now, header, payload, payload_length))
    }

    fn read_payload(
        &self,
        core: &mut Core<M>,
        domain: Domain,
        reth: Reth,
        offset: u32,
        length: u32,
    ) -> Result<M::Outgoing, NakCode> {
        if length == 0 {
            return Ok(M::Outgoing::default());
        }
        let address = reth.address + u64::from(offset);
        let (keys, number) = (&core.keys, self.number);
        let piece = std::iter::once_with(|| {
            let length = u64::from(length);
            keys.check_remote(reth.rkey, domain, number, address, length, Access::empty())
        })
        .filter_map(Result::ok)
        .map(|translation| Segment {
            region: translation.region,
            address: translation.address,
            length,
        });
        core.memory
            .gather(piece)
            .map_err(|_| NakCode::RemoteOperational)
    }

    fn data_response(
        &mut self,
        core: &mut Core<M>,
        now: Time,
        header: TransportHeader,
        payload: M::Outgoing,
        payload_length: u32,
    ) -> Transmit<M::Outgoing> {
        let path = self.settings.path;
        self.account(core, now, path.class, &header, payload_length);
        Transmit {
            header,
            payload,
            payload_length,
            class: path.class,
            ecn_capable: path.ecn_capable(),
            path,
            qp: self.number,
        }
    }
}
