//! The transport of a device, and what is done with packets that arrive for it.
//!
//! ```text
//! arrived ─┬─ queue pair 1 ──────────────► management datagrams, told after the lock
//!          ├─ slot of another process ───► its mailbox
//!          └─ else ──────────────────────► the transport
//! ```

use std::sync::Arc;

use softfabric_telemetry::DeviceCounter;
use softfabric_transport::{Arrival, Device, GENERAL_SERVICES_QKEY};
use softfabric_units::{Gid, Psn, Qpn, Span, Time};
use softfabric_wire::rdma::{Extension, Service};

use super::general::{ArrivedMad, MAD_LENGTH};
use super::path::Paths;
use crate::host::DeviceInfo;
use crate::memory::{Incoming, ProcessMemory};
use crate::neighbours::Mailbox;
use crate::port::shared::ArrivedHere;
use crate::port::udp::{Arrived, Origin, datagram_header};

/// The least time between two repairs of the steering.
const REPAIR_INTERVAL: Span = Span::millis(100);
/// The most management datagrams that wait to be told.
const MADS: usize = 4096;

/// What a device counts that no real one has a counter for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Packets that the kernel gave to this process and that were handed to the neighbour that they were for.
    pub handed_over: u64,
    /// How often the steering of packets to processes was repaired.
    pub repairs: u64,
    /// How often a packet met a fault of the settings' rules.
    pub faults: u64,
}

/// The device and what belongs to it whatever ports it has.
pub(crate) struct Core {
    pub(crate) device: Device<ProcessMemory>,
    pub(crate) paths: Paths,
    /// The device's own addresses.
    pub(crate) gids: Vec<Gid>,
    pub(crate) slot: u8,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) mads: Vec<ArrivedMad>,
    pub(crate) mad_psn: Psn,
    /// The steering needs repair.
    pub(crate) repair: bool,
    repaired: Time,
    pub(crate) statistics: Statistics,
}

/// The slot of the process that has a queue pair.
#[inline]
pub(crate) fn slot_of(qp: Qpn) -> u8 {
    (qp.as_u32() >> 16) as u8
}

/// The number by which neighbours reach queue pair 1 of a slot directly: the last of the slot's, which no other queue
/// pair has.
pub(crate) const fn general_services(slot: u8) -> Qpn {
    Qpn::new((slot as u32) << 16 | 0xffff)
}

/// Whether a number is that of queue pair 1, or a slot's own for it. One for another slot has lost its way, or its
/// process has ended: it is looked after like any other.
#[inline]
fn is_general_services(qp: Qpn) -> bool {
    qp == Qpn::GENERAL_SERVICES || (qp == general_services(slot_of(qp)) && qp != Qpn::MULTICAST)
}

impl Core {
    pub(crate) fn new(
        device: Device<ProcessMemory>,
        info: &DeviceInfo,
        slot: u8,
        mailbox: Arc<Mailbox>,
    ) -> Self {
        Self {
            device,
            paths: Paths::new(info),
            gids: info.gids.iter().map(|entry| entry.gid).collect(),
            slot,
            mailbox,
            mads: Vec::new(),
            mad_psn: Psn::default(),
            repair: false,
            repaired: Time::ZERO,
            statistics: Statistics::default(),
        }
    }

    /// A packet came over the wire.
    #[inline]
    pub(crate) fn arrived(&mut self, now: Time, arrived: &Arrived<'_>) {
        let destination = arrived.header.bth.destination;
        let slot = slot_of(destination);
        let multicast = destination == Qpn::MULTICAST;
        // Management datagrams of all of the host's addresses come to one neighbour.
        let anywhere = multicast || is_general_services(destination);
        if slot != self.slot && !anywhere {
            self.misdirected(now, slot, arrived);
            return;
        }
        if !anywhere && !self.gids.contains(&arrived.destination) {
            self.device.counters_mut().count(DeviceCounter::Discarded);
            return;
        }
        self.arrive(
            now,
            Arrival {
                header: &arrived.header,
                payload: Incoming::Bytes(arrived.payload),
                payload_length: arrived.payload.len() as u32,
                congestion: arrived.congestion,
                source: &arrived.source,
                destination: Some(&arrived.destination),
                grh: arrived.grh.as_ref(),
            },
        );
    }

    /// A packet came from a neighbour's memory.
    #[inline]
    pub(crate) fn arrived_here(&mut self, now: Time, arrived: &ArrivedHere<'_>) {
        if slot_of(arrived.header.bth.destination) != self.slot {
            self.device.counters_mut().count(DeviceCounter::Discarded);
            return;
        }
        let grh = arrived.destination.map(|destination| {
            let source = arrived.source.gid.to_ip();
            datagram_header(
                (source, destination.to_ip()),
                &arrived.source,
                arrived.header,
                arrived.payload_length,
            )
        });
        self.arrive(
            now,
            Arrival {
                header: arrived.header,
                payload: arrived.payload,
                payload_length: arrived.payload_length,
                congestion: false,
                source: &arrived.source,
                destination: arrived.destination.as_ref(),
                grh: grh.as_ref(),
            },
        );
    }

    /// A packet arrived, on whichever way.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Time, arrival: Arrival<'_, Incoming<'_>>) {
        if is_general_services(arrival.header.bth.destination) {
            self.arrive_mad(&arrival);
        } else {
            self.device.handle_packet(now, arrival);
        }
    }

    /// The kernel gave us a neighbour's packet.
    #[cold]
    fn misdirected(&mut self, now: Time, slot: u8, arrived: &Arrived<'_>) {
        let handed = slot != 0
            && self
                .mailbox
                .send(slot, &[&encode_origin(&arrived.origin), arrived.bytes], &[])
                .is_ok();
        if handed {
            self.statistics.handed_over += 1;
        } else {
            self.device.counters_mut().count(DeviceCounter::Discarded);
        }
        // Of packets that came merged, only the first has chosen the socket.
        let due = self.repaired == Time::ZERO || now.since(self.repaired) > REPAIR_INTERVAL;
        if arrived.leads && slot != 0 && due {
            self.repaired = now;
            self.repair = true;
            self.statistics.repairs += 1;
        }
    }

    /// A datagram for queue pair 1, which is not one of the transport's.
    fn arrive_mad(&mut self, arrival: &Arrival<'_, Incoming<'_>>) {
        let header = arrival.header;
        let mut bytes = Vec::with_capacity(MAD_LENGTH);
        let taken = match (header.extension, header.bth.opcode.service()) {
            (Extension::Deth(deth), Service::UnreliableDatagram)
                if deth.qkey == GENERAL_SERVICES_QKEY
                    && self.mads.len() < MADS
                    && arrival.payload.append_to(&mut bytes).is_ok() =>
            {
                <[u8; MAD_LENGTH]>::try_from(bytes.as_slice())
                    .ok()
                    .map(|bytes| ArrivedMad {
                        source: arrival.source.gid,
                        source_qp: deth.source,
                        destination: arrival.destination.copied().unwrap_or_default(),
                        traffic_class: arrival.source.traffic_class,
                        bytes,
                    })
            }
            _ => None,
        };
        match taken {
            Some(mad) => self.mads.push(mad),
            None => self.device.counters_mut().count(DeviceCounter::Discarded),
        }
    }
}

/// The first byte of a letter that hands a packet over.
pub(crate) const LETTER_PACKET: u8 = 1;
/// The bytes of such a letter before the packet.
pub(crate) const ORIGIN_LENGTH: usize = 40;

fn encode_origin(origin: &Origin) -> [u8; ORIGIN_LENGTH] {
    let mut bytes = [0; ORIGIN_LENGTH];
    bytes[0] = LETTER_PACKET;
    bytes[1] = origin.traffic_class;
    bytes[2] = origin.hop_limit;
    bytes[4..6].copy_from_slice(&origin.source_port.to_be_bytes());
    bytes[8..24].copy_from_slice(&Gid::from_ip(origin.source).0);
    bytes[24..].copy_from_slice(&Gid::from_ip(origin.destination).0);
    bytes
}

/// The packet of such a letter and where it came from.
pub(crate) fn decode_origin(letter: &[u8]) -> Option<(Origin, &[u8])> {
    let (head, packet) = letter.split_at_checked(ORIGIN_LENGTH)?;
    let gid = |at: usize| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&head[at..at + 16]);
        Gid(bytes).to_ip()
    };
    let origin = Origin {
        source: gid(8),
        source_port: u16::from_be_bytes([head[4], head[5]]),
        destination: gid(24),
        traffic_class: head[1],
        hop_limit: head[2],
    };
    Some((origin, packet))
}

/// The first byte of a letter that hands a management datagram over.
pub(crate) const LETTER_MAD: u8 = 2;
/// The bytes of such a letter before the datagram: kind, class, 0, 0, queue pair, source, destination.
const MAD_HEAD: usize = 40;

pub(crate) fn encode_mad(mad: &ArrivedMad) -> [u8; MAD_HEAD] {
    let mut bytes = [0; MAD_HEAD];
    bytes[0] = LETTER_MAD;
    bytes[1] = mad.traffic_class;
    bytes[4..8].copy_from_slice(&mad.source_qp.as_u32().to_be_bytes());
    bytes[8..24].copy_from_slice(&mad.source.0);
    bytes[24..].copy_from_slice(&mad.destination.0);
    bytes
}

pub(crate) fn decode_mad(letter: &[u8]) -> Option<ArrivedMad> {
    let (head, bytes) = letter.split_at_checked(MAD_HEAD)?;
    Some(ArrivedMad {
        source: Gid(head[8..24].try_into().ok()?),
        source_qp: Qpn::new(u32::from_be_bytes(head[4..8].try_into().ok()?)),
        destination: Gid(head[24..].try_into().ok()?),
        traffic_class: head[1],
        bytes: bytes.try_into().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handed_packets_keep_their_origin() {
        for (source, destination) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let origin = Origin {
                source: source.parse().unwrap(),
                source_port: 0xc123,
                destination: destination.parse().unwrap(),
                traffic_class: 0x6b,
                hop_limit: 63,
            };
            let mut letter = encode_origin(&origin).to_vec();
            letter.extend(b"packet");
            assert_eq!(decode_origin(&letter), Some((origin, &b"packet"[..])));
        }
        assert_eq!(decode_origin(&[LETTER_PACKET; 39]), None);
    }

    #[test]
    fn handed_management_datagrams_come_back() {
        let mad = ArrivedMad {
            source: Gid([1; 16]),
            source_qp: Qpn::new(0x12_3456),
            destination: Gid([2; 16]),
            traffic_class: 7,
            bytes: [3; MAD_LENGTH],
        };
        let letter = [&encode_mad(&mad)[..], &mad.bytes].concat();
        assert_eq!(decode_mad(&letter), Some(mad));
        assert_eq!(decode_mad(&letter[1..]), None);
        assert_eq!(decode_mad(&[]), None);
    }
}
