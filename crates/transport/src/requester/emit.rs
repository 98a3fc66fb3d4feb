//! Request packets: the next one, or one that was lost.

use softfabric_telemetry::DeviceCounter;
use softfabric_units::{Class, Psn, Time};
use softfabric_wire::rdma::{
    AtomicEth, Bth, Deth, Extension, Opcode, Position, Reth, TransportHeader,
};

use super::{Posted, segments};
use crate::completion::Status;
use crate::core::Core;
use crate::memory::Memory;
use crate::packet::Transmit;
use crate::queue_pair::{Migration, QueuePair, QueuePairType, Settings};
use crate::work::{SendFlags, SendOperation};

/// The opcodes of a SEND: first, middle, last, only.
type Places = [Opcode; 4];

const RC_SEND: Places = [
    Opcode::RC_SEND_FIRST,
    Opcode::RC_SEND_MIDDLE,
    Opcode::RC_SEND_LAST,
    Opcode::RC_SEND_ONLY,
];
const RC_SEND_IMMEDIATE: Places = [
    Opcode::RC_SEND_FIRST,
    Opcode::RC_SEND_MIDDLE,
    Opcode::RC_SEND_LAST_IMMEDIATE,
    Opcode::RC_SEND_ONLY_IMMEDIATE,
];
const RC_SEND_INVALIDATE: Places = [
    Opcode::RC_SEND_FIRST,
    Opcode::RC_SEND_MIDDLE,
    Opcode::RC_SEND_LAST_INVALIDATE,
    Opcode::RC_SEND_ONLY_INVALIDATE,
];
const RC_WRITE: Places = [
    Opcode::RC_WRITE_FIRST,
    Opcode::RC_WRITE_MIDDLE,
    Opcode::RC_WRITE_LAST,
    Opcode::RC_WRITE_ONLY,
];
const RC_WRITE_IMMEDIATE: Places = [
    Opcode::RC_WRITE_FIRST,
    Opcode::RC_WRITE_MIDDLE,
    Opcode::RC_WRITE_LAST_IMMEDIATE,
    Opcode::RC_WRITE_ONLY_IMMEDIATE,
];
const UC_SEND: Places = [
    Opcode::UC_SEND_FIRST,
    Opcode::UC_SEND_MIDDLE,
    Opcode::UC_SEND_LAST,
    Opcode::UC_SEND_ONLY,
];
const UC_SEND_IMMEDIATE: Places = [
    Opcode::UC_SEND_FIRST,
    Opcode::UC_SEND_MIDDLE,
    Opcode::UC_SEND_LAST_IMMEDIATE,
    Opcode::UC_SEND_ONLY_IMMEDIATE,
];
const UC_WRITE: Places = [
    Opcode::UC_WRITE_FIRST,
    Opcode::UC_WRITE_MIDDLE,
    Opcode::UC_WRITE_LAST,
    Opcode::UC_WRITE_ONLY,
];
const UC_WRITE_IMMEDIATE: Places = [
    Opcode::UC_WRITE_FIRST,
    Opcode::UC_WRITE_MIDDLE,
    Opcode::UC_WRITE_LAST_IMMEDIATE,
    Opcode::UC_WRITE_ONLY_IMMEDIATE,
];

/// The opcode of a request packet at its place in the message.
#[inline]
fn opcode(service: QueuePairType, operation: &SendOperation, position: Position) -> Opcode {
    use QueuePairType::{
        ReliableConnection, UnreliableConnection, UnreliableDatagram, XrcInitiator, XrcTarget,
    };
    let places = match (service, operation) {
        (ReliableConnection, SendOperation::Write(_)) => &RC_WRITE,
        (ReliableConnection, SendOperation::Send) => &RC_SEND,
        (ReliableConnection, SendOperation::SendImmediate(_)) => &RC_SEND_IMMEDIATE,
        (ReliableConnection, SendOperation::SendInvalidate(_)) => &RC_SEND_INVALIDATE,
        (ReliableConnection, SendOperation::WriteImmediate(..)) => &RC_WRITE_IMMEDIATE,
        (UnreliableConnection, SendOperation::Write(_)) => &UC_WRITE,
        (UnreliableConnection, SendOperation::SendImmediate(_)) => &UC_SEND_IMMEDIATE,
        (UnreliableConnection, SendOperation::WriteImmediate(..)) => &UC_WRITE_IMMEDIATE,
        (UnreliableConnection, _) => &UC_SEND,
        (UnreliableDatagram, SendOperation::SendImmediate(_)) => {
            return Opcode::UD_SEND_ONLY_IMMEDIATE;
        }
        (UnreliableDatagram, _) => return Opcode::UD_SEND_ONLY,
        (ReliableConnection, SendOperation::Read(_)) => return Opcode::RC_READ_REQUEST,
        (ReliableConnection, SendOperation::CompareSwap { .. }) => {
            return Opcode::RC_COMPARE_SWAP;
        }
        // Posting lets nothing else through.
        (ReliableConnection, _) => return Opcode::RC_FETCH_ADD,
        (XrcInitiator | XrcTarget, _) => {
            return opcode(ReliableConnection, operation, position).extended();
        }
    };
    places[match position {
        Position::First => 0,
        Position::Middle => 1,
        Position::Last => 2,
        Position::Only => 3,
    }]
}

/// The extension headers of a request packet. `offset` is how much of the message went before it.
#[inline]
fn extension<M: Memory>(
    posted: &Posted<M>,
    position: Position,
    offset: u32,
    settings: &Settings,
    number: softfabric_units::Qpn,
) -> Extension {
    if let Some(datagram) = &posted.request.datagram {
        // IBTA vol. 1, 10.2.5: a queue key with the top bit set stands for the queue pair's own.
        let qkey = if datagram.qkey & 0x8000_0000 != 0 {
            settings.qkey
        } else {
            datagram.qkey
        };
        let deth = Deth {
            qkey,
            source: number,
        };
        return match posted.request.operation {
            SendOperation::SendImmediate(data) => Extension::DethImmediate(deth, data),
            _ => Extension::Deth(deth),
        };
    }
    let reth = |address: u64, key: u32| Reth {
        address: address.wrapping_add(u64::from(offset)),
        rkey: key,
        length: posted.length - offset,
    };
    match posted.request.operation {
        SendOperation::Write(remote) if position.starts() => {
            Extension::Reth(reth(remote.address, remote.key))
        }
        SendOperation::WriteImmediate(remote, data) if position == Position::Only => {
            Extension::RethImmediate(reth(remote.address, remote.key), data)
        }
        SendOperation::WriteImmediate(remote, _) if position.starts() => {
            Extension::Reth(reth(remote.address, remote.key))
        }
        SendOperation::SendImmediate(data) | SendOperation::WriteImmediate(_, data)
            if position.ends() =>
        {
            Extension::Immediate(data)
        }
        SendOperation::SendInvalidate(key) if position.ends() => Extension::Invalidate(key),
        // A read that is asked for again from its middle names only what is missing (IBTA vol. 1, 9.7.5.1.5).
        SendOperation::Read(remote) => Extension::Reth(reth(remote.address, remote.key)),
        SendOperation::CompareSwap {
            remote,
            compare,
            swap,
        } => Extension::Atomic(AtomicEth {
            address: remote.address,
            rkey: remote.key,
            swap_or_add: swap,
            compare,
        }),
        SendOperation::FetchAdd { remote, add } => Extension::Atomic(AtomicEth {
            address: remote.address,
            rkey: remote.key,
            swap_or_add: add,
            compare: 0,
        }),
        _ => Extension::None,
    }
}

impl<M: Memory> QueuePair<M> {
    /// The next request packet. `None`: the request failed on this side.
    #[inline]
    pub(crate) fn emit_request(
        &mut self,
        core: &mut Core<M>,
        now: Time,
    ) -> Option<Transmit<M::Outgoing>> {
        let mut index = self.requester.index as usize;
        let mut packet = self.requester.packet;
        let mut psn = self.requester.next;
        let mut again = false;
        if self.requester.selective.is_some()
            && let Some(lost) = self.requester.take_lost()
        {
            index = self.requester.position_of(lost);
            let posted = self.requester.queue.get(index)?;
            packet = lost.distance_from(posted.first);
            // One request asks for all PSNs of a read.
            if posted.is_read_or_atomic() {
                let end = posted.end();
                self.requester.judge(end);
            }
            psn = lost;
            again = true;
        }
        self.emit(core, now, index, packet, psn, again)
    }

    #[inline]
    fn emit(
        &mut self,
        core: &mut Core<M>,
        now: Time,
        index: usize,
        packet: u32,
        psn: Psn,
        again: bool,
    ) -> Option<Transmit<M::Outgoing>> {
        let mtu = self.settings.mtu.as_u32();
        let requester = &mut self.requester;
        let posted = requester.queue.get_mut(index)?;
        let bulk = !posted.is_read_or_atomic();
        if !bulk && requester.max_reads == 0 {
            // It would wait for ever: no read or atomic may be in flight (IBTA vol. 1, 11.2.5.2).
            posted.ended = Some(Status::LocalOperation);
            self.reap(core);
            return None;
        }
        if !Self::check_segments(core, self.domain, posted) {
            posted.ended = Some(Status::LocalProtection);
            self.reap(core);
            return None;
        }
        if !posted.begun {
            posted.begun = true;
            posted.first = psn;
            posted.packets = match posted.request.operation {
                SendOperation::CompareSwap { .. } | SendOperation::FetchAdd { .. } => 1,
                _ => posted.length.div_ceil(mtu).max(1),
            };
            posted.sequence = requester.next_sequence;
            requester.next_sequence = requester.next_sequence.next();
            if !bulk {
                requester.reads += 1;
            }
        }
        let offset = packet * mtu;
        let (position, payload_length) = if bulk {
            let left = posted.length - offset;
            let position = match (packet == 0, packet + 1 == posted.packets) {
                (false, false) => Position::Middle,
                (true, false) => Position::First,
                (false, true) => Position::Last,
                (true, true) => Position::Only,
            };
            (position, left.min(mtu))
        } else {
            (Position::Only, 0)
        };
        let payload = if payload_length == 0 {
            M::Outgoing::default()
        } else if let Some(captured) = &posted.captured {
            core.memory
                .gather_captured(captured, offset, payload_length)
        } else {
            let local = &posted.request.local;
            let pieces = segments(&core.keys, self.domain, local, offset, payload_length);
            match core.memory.gather(pieces) {
                Ok(payload) => payload,
                Err(_) => {
                    posted.ended = Some(Status::LocalOperation);
                    self.reap(core);
                    return None;
                }
            }
        };
        let opcode = opcode(self.service, &posted.request.operation, position);
        let extension = extension(posted, position, offset, &self.settings, self.number);
        let datagram = posted.request.datagram.as_ref();
        let path = datagram.map_or(self.settings.path, |datagram| datagram.path);
        let destination =
            datagram.map_or(self.settings.destination, |datagram| datagram.destination);
        let solicited = position.ends()
            && bulk
            && posted.request.flags.contains(SendFlags::SOLICITED)
            && !matches!(posted.request.operation, SendOperation::Write(_));
        let xrc_srq = if self.service == QueuePairType::XrcInitiator {
            posted.request.xrc_srq & 0xff_ffff
        } else {
            0
        };
        let step = if bulk { 1 } else { posted.packets - packet };
        let ends = packet + step == posted.packets;

        let resent = again || psn != requester.end;
        if !again {
            requester.next = psn.add(step);
            if ends {
                requester.index += 1;
                requester.packet = 0;
            } else {
                requester.packet += step;
            }
            if requester.next.is_after(requester.end) {
                requester.end = requester.next;
            }
        }
        let reliable = self.service.is_reliable();
        let acknowledge = reliable && (ends || again || requester.in_flight() >= requester.window);
        let header = TransportHeader {
            bth: Bth {
                opcode,
                solicited,
                migrated: self.settings.migration == Migration::Migrated,
                pad: (payload_length.wrapping_neg() & 3) as u8,
                partition: self.settings.partition,
                fecn: false,
                becn: false,
                destination,
                acknowledge,
                psn,
            },
            extension,
            xrc_srq,
        };
        if resent {
            core.count(DeviceCounter::Retransmitted);
            self.statistics.retransmitted += 1;
        }
        if reliable {
            self.watch(core, now);
        } else {
            self.requester.una = self.requester.next;
            if ends {
                self.reap(core);
            }
        }
        self.account(core, now, path.class, &header, payload_length);
        Some(Transmit {
            header,
            payload,
            payload_length,
            class: path.class,
            ecn_capable: path.ecn_capable(),
            path,
            qp: self.number,
        })
    }

    /// Counts a data packet, and paces the next one.
    #[inline]
    pub(crate) fn account(
        &mut self,
        core: &mut Core<M>,
        now: Time,
        class: Class,
        header: &TransportHeader,
        payload_length: u32,
    ) {
        self.statistics.packets_sent += 1;
        self.statistics.bytes_sent += u64::from(payload_length);
        let sizing = core.config.pacing.sizing;
        let size = sizing.size(header.bth.opcode.header_length(), payload_length);
        core.lanes.charge(class, size.as_u64());
        if !self.rate.is_none() {
            self.pace(core, now, size);
        }
    }

    /// Starts the acknowledgement timer, if it does not run (IBTA vol. 1, 9.7.6.1.3).
    #[inline]
    fn watch(&mut self, core: &mut Core<M>, now: Time) {
        let requester = &mut self.requester;
        if requester.overdue == Time::NEVER && !requester.timeout.is_zero() {
            requester.overdue = now + requester.timeout;
            self.arm(core);
        }
    }
}
