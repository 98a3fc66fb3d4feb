//! Links between processes of one host: a ring in each direction, made when they are first needed.
//!
//! ```text
//! process A                                                  process B
//! send ──► ring A→B (A makes it, a letter carries it) ──► receive
//! receive ◄── ring B→A (B makes it, …) ◄────────────────── send
//!      bell A ◄── rung by B when A sleeps        bell B ◄── rung by A when B sleeps
//! ```
//!
//! Both ends have a link if both are members that share memory: each reads the same two entries of the table.
//!
//! Payloads go through the ring, large ones in many packets: while one end writes, the other reads, past the caches.
//! What a peer reads from a process that does not poll stays where it is, and the peer has the kernel copy it, once, if
//! that is permitted: the process that is read from goes on with its own work.

mod barrier;
mod record;
mod ring;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use softfabric_telemetry::{PortCounter, PortCounters};
use softfabric_transport::{AddressVector, Transmit};
use softfabric_units::{Class, Gid, Qpn, Span, Time};
use softfabric_wire::rdma::Operation;

use crate::memory::{Foreign, Incoming, Payload, Shared, can_read};
use crate::neighbours::{Mailbox, Membership};
use record::{Packet, Place, Written};
use ring::{Consumer, Producer, Record, WriterIdentity};

/// The largest payload of a packet on a link. Part of what both ends have to agree on: see [`VERSION`].
pub(crate) const MTU: u32 = 1 << 15;
/// What the ends of a link have to agree on.
pub(crate) const VERSION: u32 = 1;
/// From how many bytes on a payload stays in the sender's memory.
const DIRECT: u32 = 8 << 10;
/// How many packets are taken from a ring before others have their turn.
const TURN: usize = 256;
/// How long a ring may be full before its packets are dropped instead of holding up all others: longer than a reader waits
/// for a processor where there are few, since what is dropped here is lost to an unreliable connection; and less than
/// reliable ones with the usual timeouts put up with.
const PATIENCE: Span = Span::millis(250);
/// How long a reader that does not sleep may stand still before it is woken all the same.
const OVERDUE: Span = Span::micros(50);
/// After so many bytes the writer is told how far the reader is.
const RELEASE: u32 = 1 << 14;
/// How long it is believed that a neighbour has no link.
const REFUSED: Span = Span::seconds(1);

/// The first byte of a letter that offers a ring.
pub(crate) const LETTER_RING: u8 = 3;
/// The first byte of a letter that only wakes.
pub(crate) const LETTER_WAKE: u8 = 4;
const OFFER: usize = 24;

/// All links of a device.
pub(crate) struct SharedPort {
    enabled: bool,
    membership: Arc<Membership>,
    mailbox: Arc<Mailbox>,
    bell: OwnedFd,
    /// What the readers of our rings must find in our memory.
    nonce: Box<u64>,
    links: Vec<Link>,
    /// The slots whose ring is read, those that have a ring of ours, and those of them that were written to since the
    /// last flush.
    readers: Vec<u8>,
    writers: Vec<u8>,
    written: Vec<u8>,
    /// The program polls: this process copies for others.
    polled: bool,
    /// How many rings are full, and hold up all packets.
    full: usize,
    /// Some rings were full, and it is to be looked whether they still are.
    look: bool,
    pub(crate) counters: PortCounters,
    /// Records that made no sense.
    pub(crate) malformed: u64,
}

/// What connects this device with the one of a slot.
#[derive(Default)]
struct Link {
    /// Which member with that slot it is.
    generation: u64,
    writer: Option<Writer>,
    reader: Option<Reader>,
    /// Wakes the neighbour.
    bell: Option<OwnedFd>,
    /// The table was looked at, and it has a link.
    known: bool,
    /// It was found to have none.
    refused_until: Time,
}

struct Writer {
    ring: Producer,
    in_list: bool,
    /// Since when it is full and its reader stands still, where that is, and whether it has been for too long.
    full_since: Option<Time>,
    full_at: u64,
    given_up: bool,
    /// Where the reader was when it was looked, since when, and whether it was woken there although it did not sleep.
    reader_at: u64,
    reader_since: Time,
    nudged: bool,
    /// Records whose payload is in this process's memory: their place, and whose they are.
    outstanding: VecDeque<(u64, Qpn)>,
}

struct Reader {
    ring: Consumer,
    process: i32,
    readable: bool,
}

/// A packet that came through a ring.
pub(crate) struct ArrivedHere<'a> {
    pub(crate) header: &'a softfabric_wire::rdma::TransportHeader,
    pub(crate) payload: Incoming<'a>,
    pub(crate) payload_length: u32,
    pub(crate) source: AddressVector,
    pub(crate) destination: Option<Gid>,
}

/// Whether a packet has been taken care of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// It is in a ring, or was dropped.
    Yes,
    /// There is no link: it has to go over the wire.
    NoLink,
}

impl SharedPort {
    pub(crate) fn new(
        enabled: bool,
        membership: Arc<Membership>,
        mailbox: Arc<Mailbox>,
        bell: OwnedFd,
    ) -> Self {
        let nonce = Box::new(membership.generation);
        Self {
            enabled,
            membership,
            mailbox,
            bell,
            nonce,
            links: (0..=u8::MAX).map(|_| Link::default()).collect(),
            readers: Vec::new(),
            writers: Vec::new(),
            written: Vec::new(),
            polled: false,
            full: 0,
            look: false,
            counters: PortCounters::default(),
            malformed: 0,
        }
    }

    /// Whether rings can be made here at all.
    pub(crate) fn is_possible() -> bool {
        let nobody = WriterIdentity {
            process: 0,
            address: 0,
            value: 0,
        };
        Producer::create(nobody).is_ok()
    }

    /// Whether the device and the neighbour have a link: the same answer on both ends.
    pub(crate) fn has_link(&mut self, now: Time, slot: u8) -> bool {
        let link = &mut self.links[usize::from(slot)];
        link.known = false;
        link.refused_until = Time::ZERO;
        self.enabled && self.writer(now, slot).is_some()
    }

    /// The writing end to a slot, made if need be.
    #[inline]
    fn writer(&mut self, now: Time, slot: u8) -> Option<&mut Writer> {
        if !self.links[usize::from(slot)].known {
            self.get_to_know(now, slot)?;
        }
        self.links[usize::from(slot)].writer.as_mut()
    }

    #[cold]
    fn get_to_know(&mut self, now: Time, slot: u8) -> Option<()> {
        let link = &mut self.links[usize::from(slot)];
        if now < link.refused_until {
            return None;
        }
        link.refused_until = now + REFUSED;
        self.bury();
        let generation = self.membership.link_of(slot, VERSION)?;
        let link = &self.links[usize::from(slot)];
        if link.writer.is_none() || link.generation != generation {
            self.offer(now, slot, generation).ok()?;
        }
        self.links[usize::from(slot)].known = true;
        Some(())
    }

    /// Lets go of the rings of neighbours that have ended, once what they had written is read.
    fn bury(&mut self) {
        for slot in self.writers.clone() {
            let reader = self.reader(slot);
            let read = reader.is_none_or(|reader| matches!(reader.ring.peek(), Ok(None)));
            if read && !self.membership.is_alive(slot) {
                self.renew(slot, 0);
            }
        }
    }

    /// Makes a ring to a neighbour and sends it there.
    fn offer(&mut self, now: Time, slot: u8, generation: u64) -> io::Result<()> {
        let writer = WriterIdentity {
            process: std::process::id(),
            address: (&raw const *self.nonce).expose_provenance() as u64,
            value: *self.nonce,
        };
        let (ring, memory) = Producer::create(writer)?;
        let mut letter = [0; OFFER];
        (letter[0], letter[1]) = (LETTER_RING, self.membership.slot);
        letter[4..8].copy_from_slice(&VERSION.to_le_bytes());
        letter[8..16].copy_from_slice(&self.membership.generation.to_le_bytes());
        letter[16..].copy_from_slice(&generation.to_le_bytes());
        self.mailbox
            .send(slot, &[&letter], &[memory.as_fd(), self.bell.as_fd()])?;
        self.renew(slot, generation);
        self.links[usize::from(slot)].writer = Some(Writer {
            ring,
            in_list: false,
            full_since: None,
            full_at: 0,
            given_up: false,
            reader_at: 0,
            reader_since: now,
            nudged: false,
            outstanding: VecDeque::new(),
        });
        self.writers.push(slot);
        Ok(())
    }

    /// Forgets what belonged to another member with the slot.
    fn renew(&mut self, slot: u8, generation: u64) {
        let link = &mut self.links[usize::from(slot)];
        if link.generation == generation {
            return;
        }
        let old = std::mem::take(link);
        link.generation = generation;
        if let Some(writer) = old.writer {
            self.full -= usize::from(writer.holds_up());
        }
        for list in [&mut self.readers, &mut self.writers, &mut self.written] {
            list.retain(|other| *other != slot);
        }
    }

    /// A neighbour offers a ring.
    pub(crate) fn accept(&mut self, letter: &[u8], from: Option<u8>, descriptors: Vec<OwnedFd>) {
        let number = |at: usize| {
            let bytes = letter.get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let Some([_, slot, _, _, a, b, c, d]) = letter.first_chunk().copied() else {
            return;
        };
        let (Some(generation), Some(ours)) = (number(8), number(16)) else {
            return;
        };
        // Only the slot's own mailbox speaks for it, to this very member, in the same version.
        let right = from == Some(slot)
            && u32::from_le_bytes([a, b, c, d]) == VERSION
            && ours == self.membership.generation;
        let Ok([memory, bell]) = <[OwnedFd; 2]>::try_from(descriptors) else {
            return;
        };
        let Some(ring) = (self.enabled && right)
            .then(|| Consumer::attach(&memory).ok())
            .flatten()
        else {
            return;
        };
        self.renew(slot, generation);
        let writer = ring.writer();
        let process = i32::try_from(writer.process).unwrap_or(0);
        let readable = process > 0 && can_read(process, writer.address, writer.value);
        ring.set_readable(readable);
        let link = &mut self.links[usize::from(slot)];
        link.reader = Some(Reader {
            ring,
            process,
            readable,
        });
        link.bell = Some(bell);
        if !self.readers.contains(&slot) {
            self.readers.push(slot);
        }
    }

    /// Whether the port takes another packet now, whoever it is for.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.full == 0
    }

    /// Looks whether full rings have room again.
    #[inline]
    pub(crate) fn look_for_room(&mut self, now: Time) {
        if !self.look {
            return;
        }
        self.look = false;
        for slot in &self.writers {
            let Some(writer) = &mut self.links[usize::from(*slot)].writer else {
                continue;
            };
            let Some(since) = writer.full_since else {
                continue;
            };
            let held_up = writer.holds_up();
            if writer.ring.fits(ring::LONGEST) {
                writer.full_since = None;
                writer.given_up = false;
            } else if writer.ring.read_until() != writer.full_at {
                writer.full_at = writer.ring.read_until();
                writer.full_since = Some(now);
                writer.given_up = false;
            } else if now.since(since) > PATIENCE {
                writer.given_up = true;
            }
            self.look |= writer.full_since.is_some();
            match (held_up, writer.holds_up()) {
                (true, false) => self.full -= 1,
                (false, true) => self.full += 1,
                _ => {}
            }
        }
    }

    /// Takes a packet to a neighbour.
    #[inline]
    pub(crate) fn send(
        &mut self,
        now: Time,
        slot: u8,
        source: Gid,
        packet: &Transmit<Payload>,
    ) -> Taken {
        if !self.enabled {
            return Taken::NoLink;
        }
        let polled = self.polled;
        let Some(writer) = self.writer(now, slot) else {
            return Taken::NoLink;
        };
        // What was asked for by the peer is copied by the peer, unless this process spins anyway.
        let asked = packet.header.bth.opcode.operation() == Operation::ReadResponse;
        let direct = asked && !polled && writer.ring.is_readable() == Some(true);
        let direct = direct.then_some(DIRECT);
        let place = writer.ring.place();
        let held_up = writer.holds_up();
        let written = record::write(&mut writer.ring, source, packet, direct);
        match written {
            Written::Done(elsewhere) => {
                if elsewhere {
                    writer.outstanding.push_back((place, packet.qp));
                }
                if !writer.in_list {
                    writer.in_list = true;
                    self.written.push(slot);
                }
                self.counters.count(PortCounter::TransmitPackets);
                self.counters
                    .add(PortCounter::TransmitBytes, u64::from(packet.payload_length));
            }
            Written::Full | Written::Fault => {
                self.counters.count(PortCounter::TransmitDiscards);
            }
        }
        let Some(writer) = &mut self.links[usize::from(slot)].writer else {
            return Taken::Yes;
        };
        // Packets are taken off the transport only while each ring has room for the longest.
        if !writer.ring.fits(ring::LONGEST) && writer.full_since.is_none() {
            writer.full_since = Some(now);
            writer.full_at = writer.ring.read_until();
            self.look = true;
        }
        self.full += usize::from(writer.holds_up() && !held_up);
        Taken::Yes
    }

    /// Wakes the neighbours that sleep and were written to.
    #[inline]
    pub(crate) fn flush(&mut self) {
        while let Some(slot) = self.written.pop() {
            let link = &mut self.links[usize::from(slot)];
            if let Some(writer) = &mut link.writer {
                writer.in_list = false;
                if writer.ring.must_wake() {
                    self.wake(slot);
                }
            }
        }
    }

    fn wake(&self, slot: u8) {
        match &self.links[usize::from(slot)].bell {
            // A bell that cannot be rung once more rings already.
            Some(bell) => drop(rustix::io::write(bell, &1_u64.to_ne_bytes())),
            None => drop(self.mailbox.send(slot, &[&[LETTER_WAKE]], &[])),
        }
    }

    /// Wakes neighbours that are awake, but do not read.
    pub(crate) fn nudge(&mut self, now: Time) {
        for at in 0..self.writers.len() {
            let slot = self.writers[at];
            let Some(writer) = &mut self.links[usize::from(slot)].writer else {
                continue;
            };
            if now.since(writer.reader_since) < OVERDUE {
                continue;
            }
            let at = writer.ring.read_until();
            if at != writer.reader_at || at == writer.ring.place() {
                writer.reader_at = at;
                writer.reader_since = now;
                writer.nudged = false;
            } else if !writer.nudged {
                writer.nudged = true;
                self.wake(slot);
            }
        }
    }

    /// Takes what arrived, and returns how many packets that were.
    #[inline]
    pub(crate) fn receive(&mut self, mut take: impl FnMut(&ArrivedHere<'_>)) -> usize {
        let mut total = 0;
        for at in 0..self.readers.len() {
            let slot = self.readers[at];
            let link = &mut self.links[usize::from(slot)];
            let Some(reader) = &mut link.reader else {
                continue;
            };
            let mut count = 0;
            let mut unreleased = 0;
            let mut corrupt = false;
            while count < TURN {
                match reader.ring.peek() {
                    Ok(None) => break,
                    Ok(Some(record)) => {
                        count += 1;
                        let mut packet_bytes = 256;
                        match record::read(&record) {
                            Some(packet) => {
                                self.counters.count(PortCounter::ReceivePackets);
                                packet_bytes += packet.payload_length;
                                let bytes = u64::from(packet.payload_length);
                                self.counters.add(PortCounter::ReceiveBytes, bytes);
                                deliver(reader, &record, &packet, &mut take);
                            }
                            None => self.malformed += 1,
                        }
                        reader.ring.pass(&record);
                        unreleased += packet_bytes;
                        if unreleased > RELEASE {
                            reader.ring.release();
                            unreleased = 0;
                        }
                    }
                    Err(_) => {
                        corrupt = true;
                        break;
                    }
                }
            }
            if count > 0 {
                reader.ring.release();
            }
            if corrupt {
                // Nothing that this neighbour writes is read any more.
                self.malformed += 1;
                link.reader = None;
            }
            total += count;
        }
        total
    }

    /// Asks all neighbours to wake this device from now on. False: something has arrived meanwhile.
    pub(crate) fn fall_asleep(&mut self) -> bool {
        self.polled = false;
        if self.readers.is_empty() {
            return true;
        }
        let mut readers = self.readers.iter().filter_map(|slot| self.reader(*slot));
        readers.clone().for_each(|reader| reader.ring.fall_asleep());
        barrier::everywhere();
        readers.all(|reader| matches!(reader.ring.peek(), Ok(None)))
    }

    /// Looks by itself from now on.
    pub(crate) fn stay_awake(&mut self) {
        self.polled = true;
        let readers = self.readers.iter().filter_map(|slot| self.reader(*slot));
        readers.for_each(|reader| reader.ring.stay_awake());
    }

    fn reader(&self, slot: u8) -> Option<&Reader> {
        self.links[usize::from(slot)].reader.as_ref()
    }

    /// Takes back the leave to read this process's memory for queue pairs that are `gone`.
    #[inline]
    pub(crate) fn revoke(&mut self, mut is_gone: impl FnMut(Qpn) -> bool) {
        for slot in &self.writers {
            let Some(writer) = &mut self.links[usize::from(*slot)].writer else {
                continue;
            };
            if writer.outstanding.is_empty() {
                continue;
            }
            let read = writer.ring.read_until();
            while writer
                .outstanding
                .front()
                .is_some_and(|(place, _)| *place < read)
            {
                writer.outstanding.pop_front();
            }
            let mut last = None;
            let gone = writer.outstanding.iter().any(|(_, qp)| {
                // Those of one queue pair follow each other.
                last.replace(*qp) != Some(*qp) && is_gone(*qp)
            });
            if gone {
                writer.ring.revoke();
                writer.outstanding.clear();
            }
        }
    }

    /// Whether some packets wait for room: somebody has to look again soon.
    pub(crate) fn is_blocked(&self) -> bool {
        self.full > 0
    }
}

impl Writer {
    /// Whether all packets wait for this ring.
    fn holds_up(&self) -> bool {
        self.full_since.is_some() && !self.given_up
    }
}

/// Gives a packet to the transport, with its payload where it is.
#[inline]
fn deliver(
    reader: &Reader,
    record: &Record,
    packet: &Packet,
    take: &mut impl FnMut(&ArrivedHere<'_>),
) {
    let arrived = |payload| ArrivedHere {
        header: &packet.header,
        payload,
        payload_length: packet.payload_length,
        source: AddressVector {
            gid: packet.source,
            driver: 0,
            flow_label: 0,
            source_port: 0,
            traffic_class: packet.traffic_class,
            hop_limit: packet.hop_limit,
            class: Class::new(0),
        },
        destination: packet.destination,
    };
    match &packet.payload {
        Place::Ring(bytes) => {
            #[allow(
                unsafe_code,
                reason = "the record stays in the ring until it is passed"
            )]
            // SAFETY: the record was checked to have so many bytes, and is passed after this.
            let shared = unsafe { Shared::new(*bytes, packet.payload_length) };
            take(&arrived(Incoming::Shared(shared)));
        }
        Place::Sender(pieces) if reader.readable => {
            let is_revoked = || reader.ring.is_revoked(record.place);
            let foreign = Foreign {
                process: reader.process,
                pieces: pieces.clone(),
                is_revoked: &is_revoked,
            };
            take(&arrived(Incoming::There(&foreign)));
        }
        // It was told that it cannot be read.
        Place::Sender(_) => {}
    }
}
