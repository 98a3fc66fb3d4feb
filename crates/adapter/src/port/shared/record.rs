//! A packet as a record of a ring.
//!
//! ```text
//! word (length, kind) │ source GID │ BTH, extension headers │ [destination GID] │ payload, or where it is
//! ```
//!
//! An 8-byte write fits one cache line. There is no ICRC: nothing damages memory.

#![allow(unsafe_code, reason = "copies payloads into and out of shared memory")]

use smallvec::SmallVec;
use softfabric_transport::Transmit;
use softfabric_units::Gid;
use softfabric_wire::rdma::{Service, TransportHeader};

use super::ring::{LONGEST, Producer, Record, WORD};
use crate::memory::{Payload, Reach};

const GID: usize = 16;
/// From how many bytes on a payload goes past the caches: the other processor fetches it faster from memory.
const STREAM: u32 = 2048;
/// Bytes of a piece in a record: address and length.
const PIECE: usize = 12;
/// The most pieces of a payload that is not in the record.
const PIECES: usize = 32;

/// What the record's word says beside the length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kind {
    header_length: u8,
    traffic_class: u8,
    hop_limit: u8,
    /// The payload is where the pieces say, in the sender's memory.
    elsewhere: bool,
    /// The destination's GID is there: of datagrams.
    addressed: bool,
}

impl Kind {
    fn encode(self) -> u32 {
        u32::from(self.header_length)
            | u32::from(self.elsewhere) << 6
            | u32::from(self.addressed) << 7
            | u32::from(self.traffic_class) << 8
            | u32::from(self.hop_limit) << 16
    }

    fn decode(kind: u32) -> Self {
        Self {
            header_length: kind as u8 & 0x3f,
            elsewhere: kind & 1 << 6 != 0,
            addressed: kind & 1 << 7 != 0,
            traffic_class: (kind >> 8) as u8,
            hop_limit: (kind >> 16) as u8,
        }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Written {
    /// It is in the ring; `true`: its payload is elsewhere.
    Done(bool),
    /// The ring is full.
    Full,
    /// The payload cannot be read.
    Fault,
}

/// Writes a packet from `source`. Payloads of `direct` bytes and more stay where they are.
#[inline]
pub(super) fn write(
    ring: &mut Producer,
    source: Gid,
    packet: &Transmit<Payload>,
    direct: Option<u32>,
) -> Written {
    let mut headers = [0; TransportHeader::MAX_LENGTH];
    let header_length = packet.header.encode(&mut headers);
    let addressed = packet.header.bth.opcode.service() == Service::UnreliableDatagram;
    let pieces = match direct {
        Some(direct) if packet.payload_length >= direct => stay(packet),
        _ => None,
    };
    let fixed = WORD + GID + header_length + if addressed { GID } else { 0 };
    let length = fixed
        + match pieces {
            Some(pieces) => pieces.len() * PIECE,
            None => packet.payload_length as usize,
        };
    if length > LONGEST {
        return Written::Fault;
    }
    if !ring.fits(length) {
        return Written::Full;
    }
    let mut slot = ring.slot(length);
    slot.write(&source.0);
    slot.write(&headers[..header_length]);
    if addressed {
        slot.write(&packet.path.gid.0);
    }
    match pieces {
        Some(pieces) => {
            for piece in pieces {
                slot.write(&piece.address.to_ne_bytes());
                slot.write(&piece.length.to_ne_bytes());
            }
        }
        None => {
            let take = |length| slot.take(length);
            // SAFETY: `take` checks that the record has room.
            let copied = unsafe {
                if packet.payload_length >= STREAM {
                    packet.payload.stream_to(take)
                } else {
                    packet.payload.copy_to(take)
                }
            };
            if copied.is_err() {
                return Written::Fault;
            }
        }
    }
    let kind = Kind {
        header_length: header_length as u8,
        traffic_class: packet.path.traffic_class,
        hop_limit: packet.path.hop_limit,
        elsewhere: pieces.is_some(),
        addressed,
    };
    ring.publish(length, kind.encode());
    Written::Done(pieces.is_some())
}

/// The pieces of a payload that may stay in this process's memory until the receiver reads it. Only a reliable
/// connection's memory is left alone until the peer has acknowledged.
fn stay(packet: &Transmit<Payload>) -> Option<&[crate::memory::Piece]> {
    let Payload::Pieces(pieces) = &packet.payload else {
        return None;
    };
    let reliable = matches!(
        packet.header.bth.opcode.service(),
        Service::ReliableConnection | Service::ExtendedReliableConnection
    );
    let real = pieces.0.iter().all(|piece| piece.reach != Reach::Null);
    (reliable && real && pieces.0.len() <= PIECES).then_some(&pieces.0)
}

/// A packet that was read from a ring.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) header: TransportHeader,
    pub(super) source: Gid,
    /// Of datagrams.
    pub(super) destination: Option<Gid>,
    pub(super) traffic_class: u8,
    pub(super) hop_limit: u8,
    pub(super) payload: Place,
    pub(super) payload_length: u32,
}

/// Where a packet's payload is.
#[derive(Debug)]
pub(super) enum Place {
    /// In the ring.
    Ring(*const u8),
    /// In the sender's memory.
    Sender(SmallVec<[(u64, u32); 4]>),
}

/// Reads a record. `None`: it is no packet.
#[inline]
pub(super) fn read(record: &Record) -> Option<Packet> {
    let kind = Kind::decode(record.kind);
    let header_length = usize::from(kind.header_length);
    // Source, headers and destination at once.
    let mut bytes = [0; GID + TransportHeader::MAX_LENGTH + GID];
    let fixed = GID + header_length + if kind.addressed { GID } else { 0 };
    if !record.copy_to(0, bytes.get_mut(..fixed)?) {
        return None;
    }
    let gid = |at: usize| {
        let mut gid = [0; GID];
        gid.copy_from_slice(&bytes[at..at + GID]);
        Gid(gid)
    };
    let (header, decoded) = TransportHeader::decode(&bytes[GID..GID + header_length]).ok()?;
    if decoded != header_length {
        return None;
    }
    let rest = record.length - fixed;
    let (payload, payload_length) = if kind.elsewhere {
        read_pieces(record, fixed, rest)?
    } else {
        // SAFETY: `fixed` bytes of the record were read, so this is at most one past it.
        let start = unsafe { record.bytes.add(fixed) };
        (Place::Ring(start), rest)
    };
    if payload_length > 0 && !header.bth.opcode.has_payload() {
        return None;
    }
    Some(Packet {
        header,
        source: gid(0),
        destination: kind.addressed.then(|| gid(GID + header_length)),
        traffic_class: kind.traffic_class,
        hop_limit: kind.hop_limit,
        payload,
        payload_length: u32::try_from(payload_length).ok()?,
    })
}

fn read_pieces(record: &Record, from: usize, length: usize) -> Option<(Place, usize)> {
    let mut bytes = [0; PIECES * PIECE];
    let bytes = bytes.get_mut(..length)?;
    if !length.is_multiple_of(PIECE) || !record.copy_to(from, bytes) {
        return None;
    }
    let mut total = 0;
    let mut pieces = SmallVec::new();
    for piece in bytes.chunks_exact(PIECE) {
        let (address, length) = piece.split_at(8);
        let length = u32::from_ne_bytes(length.try_into().ok()?);
        pieces.push((u64::from_ne_bytes(address.try_into().ok()?), length));
        total += length as usize;
    }
    // More than any packet carries.
    (total <= 1 << 20).then_some((Place::Sender(pieces), total))
}

#[cfg(test)]
mod tests {
    use softfabric_transport::AddressVector;
    use softfabric_units::{Class, PartitionKey, Psn, Qpn};
    use softfabric_wire::rdma::{Bth, Deth, Extension, Opcode, Reth};

    use super::super::ring::{Consumer, WriterIdentity};
    use super::*;
    use crate::memory::{Captured, Pieces};

    fn ring() -> (Producer, Consumer) {
        let writer = WriterIdentity {
            process: 1,
            address: 0,
            value: 0,
        };
        let (producer, fd) = Producer::create(writer).unwrap();
        let consumer = Consumer::attach(&fd).unwrap();
        (producer, consumer)
    }

    fn packet(
        opcode: Opcode,
        extension: Extension,
        payload: Payload,
        length: u32,
    ) -> Transmit<Payload> {
        let bth = Bth {
            opcode,
            solicited: true,
            migrated: false,
            pad: 0,
            partition: PartitionKey::DEFAULT,
            fecn: false,
            becn: false,
            destination: Qpn::new(0x02_0003),
            acknowledge: true,
            psn: Psn::new(9),
        };
        Transmit {
            header: TransportHeader {
                bth,
                extension,
                xrc_srq: 0,
            },
            payload,
            payload_length: length,
            class: Class::new(0),
            path: AddressVector {
                gid: Gid([7; 16]),
                traffic_class: 0x6a,
                hop_limit: 31,
                ..AddressVector::default()
            },
            ecn_capable: false,
            qp: Qpn::new(5),
        }
    }

    const RETH: Extension = Extension::Reth(Reth {
        address: 1,
        rkey: 2,
        length: 8,
    });

    #[test]
    fn an_8_byte_write_takes_one_line() {
        let (mut producer, consumer) = ring();
        let payload = Payload::Bytes(Captured::from_slice(&[5; 8]));
        let write_only = packet(Opcode::RC_WRITE_ONLY, RETH, payload, 8);
        assert_eq!(
            write(&mut producer, Gid([1; 16]), &write_only, None),
            Written::Done(false)
        );
        assert_eq!(producer.place(), 64);
        let record = consumer.peek().unwrap().unwrap();
        let read = read(&record).unwrap();
        assert_eq!(
            (read.header, read.source),
            (write_only.header, Gid([1; 16]))
        );
        assert_eq!((read.payload_length, read.destination), (8, None));
        assert_eq!((read.traffic_class, read.hop_limit), (0x6a, 31));
        let mut bytes = [0; 8];
        assert!(record.copy_to(record.length - 8, &mut bytes));
        assert_eq!(bytes, [5; 8]);
    }

    #[test]
    fn large_payloads_stay_and_datagrams_do_not() {
        let (mut producer, mut consumer) = ring();
        let mut memory = vec![3_u8; 5000];
        let pieces = || {
            let piece = crate::memory::Piece {
                address: memory.as_ptr().expose_provenance() as u64,
                length: 2500,
                reach: Reach::Direct,
            };
            let mut second = piece;
            second.address += 2500;
            Payload::Pieces(Pieces(SmallVec::from_slice(&[piece, second])))
        };
        let large = packet(Opcode::RC_WRITE_ONLY, RETH, pieces(), 5000);
        let written = write(&mut producer, Gid([1; 16]), &large, Some(4096));
        assert_eq!(written, Written::Done(true));
        let record = consumer.peek().unwrap().unwrap();
        let found = read(&record).unwrap();
        assert_eq!(found.payload_length, 5000);
        let Place::Sender(found) = found.payload else {
            panic!("{found:?}")
        };
        assert_eq!(
            found.iter().map(|piece| piece.1).collect::<Vec<_>>(),
            [2500, 2500]
        );
        consumer.pass(&record);

        let deth = Deth {
            qkey: 1,
            source: Qpn::new(2),
        };
        let datagram = packet(Opcode::UD_SEND_ONLY, Extension::Deth(deth), pieces(), 5000);
        let written = write(&mut producer, Gid([1; 16]), &datagram, Some(4096));
        assert_eq!(written, Written::Done(false));
        memory[4999] = 4;
        let record = consumer.peek().unwrap().unwrap();
        let found = read(&record).unwrap();
        assert_eq!(found.destination, Some(Gid([7; 16])));
        let mut bytes = vec![0; 5000];
        assert!(record.copy_to(record.length - 5000, &mut bytes));
        assert_eq!(bytes, [3; 5000], "a copy");
    }

    #[test]
    fn nonsense_is_no_packet() {
        let (mut producer, consumer) = ring();
        let payload = Payload::Bytes(Captured::from_slice(&[5; 8]));
        let good = packet(Opcode::RC_WRITE_ONLY, RETH, payload, 8);
        write(&mut producer, Gid([1; 16]), &good, None);
        let record = consumer.peek().unwrap().unwrap();
        assert!(read(&record).is_some());
        for kind in 0..1 << 16 {
            for length in [0, 1, 15, 16, 30, record.length] {
                // Whatever it makes of it, it stays within the record.
                let wild = Record {
                    kind,
                    length,
                    ..record
                };
                if let Some(found) = read(&wild) {
                    let limit = if matches!(found.payload, Place::Ring(_)) {
                        length
                    } else {
                        1 << 20
                    };
                    assert!(found.payload_length as usize <= limit);
                }
            }
        }
    }
}
