//! The wire: RoCEv2 over UDP port 4791.
//!
//! ```text
//! Transmit ──► Batch ──sendmmsg, segmentation──► network
//! Arrived  ◄── Opener ◄──recvmmsg, merging────── network
//! ```

mod batch;
mod frame;
mod socket;
mod tap;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use softfabric_telemetry::{PortCounter, PortCounters};
use softfabric_transport::{AddressVector, MemoryFault, Transmit};
use softfabric_units::{Class, Gid, Time};
use softfabric_wire::ip::IpProtocol;
use softfabric_wire::rdma::{Grh, HiddenFields, Service, TransportHeader};
use softfabric_wire::udp::{ROCE_PORT, UdpHeader};

use crate::memory::Payload;
use crate::neighbours::{PROBE, Sockets};
use crate::nic::Path;
use batch::{Batch, Lane};
pub(crate) use frame::Network;
use frame::{FIRST_GUESS, Opener, Refusal};
use socket::{BATCH, Batches, Received};
pub(crate) use socket::{Family, Socket};
pub(crate) use tap::Tap;

/// What the bits of ECN say: congestion experienced (RFC 3168 5).
const CONGESTION_EXPERIENCED: u8 = 0b11;
/// Bytes of headers that a port's byte counters count beside the RDMA packet: Ethernet, IPv4, UDP.
const OVERHEAD: u64 = 14 + 20 + 8;

/// The sockets, and what waits on their two sides.
#[derive(Debug)]
pub(crate) struct UdpPort {
    sockets: Arc<Sockets>,
    batch: Batch,
    blocked: bool,
    batches: Option<Box<Batches>>,
    opener: Opener,
    pub(crate) tap: Tap,
    pub(crate) counters: PortCounters,
    /// Packets whose ICRC was wrong, and those that made no sense, since they were last asked for.
    pub(crate) damaged: u64,
    pub(crate) malformed: u64,
    /// Probes that came to these sockets.
    pub(crate) probes: Vec<(Family, Vec<u8>)>,
}

/// A packet that arrived whole.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) header: TransportHeader,
    pub(crate) payload: &'a [u8],
    pub(crate) source: AddressVector,
    pub(crate) destination: Gid,
    pub(crate) congestion: bool,
    /// What a datagram's receiver finds before the payload.
    pub(crate) grh: Option<[u8; 40]>,
    /// The packet as it came, from BTH to ICRC, and the addresses that it came with.
    pub(crate) bytes: &'a [u8],
    pub(crate) origin: Origin,
    /// It is the first of those that came merged: the socket was chosen by it.
    pub(crate) leads: bool,
}

/// What the network's headers said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub(crate) source: IpAddr,
    pub(crate) source_port: u16,
    pub(crate) destination: IpAddr,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
}

impl UdpPort {
    pub(crate) fn new(sockets: Arc<Sockets>, tap: Tap) -> Self {
        Self {
            sockets,
            batch: Batch::new(true),
            blocked: false,
            batches: Some(Box::new(Batches::to_receive())),
            opener: Opener::default(),
            tap,
            counters: PortCounters::default(),
            damaged: 0,
            malformed: 0,
            probes: Vec::new(),
        }
    }

    /// Whether it waits for the sockets to take more.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Lets go of the sockets.
    pub(crate) fn close(&mut self) {
        self.sockets = Arc::default();
    }

    /// Whether packets wait to be sent.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Whether the port takes another packet now.
    pub(crate) fn has_room(&self) -> bool {
        !self.blocked
    }

    /// Takes a packet to send. It leaves at the latest with [`UdpPort::flush`].
    pub(crate) fn send(&mut self, now: Time, path: &Path, packet: &Transmit<Payload>) {
        let header = &packet.header;
        let ecn = if packet.ecn_capable {
            AddressVector::ECT0
        } else {
            0
        };
        let lane = Lane {
            path: *path,
            traffic_class: packet.path.traffic_class & !CONGESTION_EXPERIENCED | ecn,
            hop_limit: packet.path.hop_limit,
            member: (header.bth.destination.as_u32() >> 16) as u8,
        };
        let length = if self.tap.is_outward() {
            self.send_alone(now, lane, packet)
        } else {
            self.batch
                .push(lane, header, &packet.payload, packet.payload_length)
        };
        match length {
            Ok(length) => {
                self.counters.count(PortCounter::TransmitPackets);
                self.counters
                    .add(PortCounter::TransmitBytes, length as u64 + OVERHEAD);
            }
            // The page has gone since the key was checked: as if lost on the way.
            Err(_) => self.counters.count(PortCounter::TransmitDiscards),
        }
        if self.batch.is_full() {
            self.flush();
        }
    }

    /// Lets a packet pass the tap.
    fn send_alone(
        &mut self,
        now: Time,
        lane: Lane,
        packet: &Transmit<Payload>,
    ) -> Result<usize, MemoryFault> {
        let mut bytes = Vec::new();
        let payload = &packet.payload;
        frame::encode(&lane.network(), 0, &packet.header, payload, &mut bytes)?;
        let length = bytes.len();
        for packet in self.tap.outward(now, lane, bytes) {
            self.batch.push_bytes(packet.about, &packet.bytes);
        }
        Ok(length)
    }

    /// Lets go on what was held back until now.
    pub(crate) fn release(&mut self, now: Time, mut take: impl FnMut(&Arrived<'_>)) {
        if self.tap.next_due().is_none_or(|due| due > now) {
            return;
        }
        for packet in self.tap.outward_due(now) {
            self.batch.push_bytes(packet.about, &packet.bytes);
        }
        let mut problems = Problems::default();
        for packet in self.tap.inward_due(now) {
            let received = packet.about.received(&packet.bytes);
            open(&mut self.opener, &mut problems, &received, &mut take);
        }
        self.note(&problems);
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let flushed = self.batch.flush(&self.sockets);
        self.blocked = flushed.blocked;
        self.counters
            .add(PortCounter::TransmitDiscards, flushed.discarded);
    }

    /// Takes what arrived on the socket of a family, one batch. Returns how many packets there were, and whether there
    /// may be more.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        family: Family,
        mut take: impl FnMut(&Arrived<'_>),
    ) -> io::Result<(usize, bool)> {
        let Some(socket) = self.sockets.of(family) else {
            return Ok((0, false));
        };
        let Some(mut batches) = self.batches.take() else {
            return Ok((0, false));
        };
        let mut packets = 0;
        let mut problems = Problems::default();
        let (opener, counters) = (&mut self.opener, &mut self.counters);
        let (tap, probes) = (&mut self.tap, &mut self.probes);
        let result = batches.receive(socket, |received| {
            if received.bytes.first() == Some(&PROBE) {
                probes.push((family, received.bytes.to_vec()));
                return;
            }
            packets += count(counters, &received);
            if !tap.is_inward() {
                open(opener, &mut problems, &received, &mut take);
                return;
            }
            for bytes in received.bytes.chunks(received.segment.max(1)) {
                for packet in tap.inward(now, Origin::of(&received), bytes) {
                    let received = packet.about.received(&packet.bytes);
                    open(opener, &mut problems, &received, &mut take);
                }
            }
        });
        self.batches = Some(batches);
        self.note(&problems);
        result.map(|messages| (packets, messages == BATCH))
    }

    /// Opens a packet that another process received and handed over.
    pub(crate) fn receive_handed(
        &mut self,
        origin: Origin,
        bytes: &[u8],
        mut take: impl FnMut(&Arrived<'_>),
    ) {
        let received = origin.received(bytes);
        count(&mut self.counters, &received);
        let mut problems = Problems::default();
        open(&mut self.opener, &mut problems, &received, &mut take);
        self.note(&problems);
    }

    fn note(&mut self, problems: &Problems) {
        self.damaged += problems.damaged;
        self.malformed += problems.malformed;
        self.counters
            .add(PortCounter::ReceiveErrors, problems.damaged);
    }
}

impl Origin {
    fn of(received: &Received<'_>) -> Self {
        Self {
            source: received.source,
            source_port: received.source_port,
            destination: received.destination,
            traffic_class: received.traffic_class,
            hop_limit: received.hop_limit,
        }
    }

    /// One packet as if it had just been received.
    fn received(self, bytes: &[u8]) -> Received<'_> {
        Received {
            source: self.source,
            source_port: self.source_port,
            destination: self.destination,
            traffic_class: self.traffic_class,
            hop_limit: self.hop_limit,
            segment: bytes.len(),
            bytes,
        }
    }
}

/// Counts the packets of a datagram, and returns how many they are.
fn count(counters: &mut PortCounters, received: &Received<'_>) -> usize {
    let bytes = received.bytes.len();
    let packets = bytes.div_ceil(received.segment.max(1));
    counters.add(PortCounter::ReceivePackets, packets as u64);
    counters.add(
        PortCounter::ReceiveBytes,
        bytes as u64 + packets as u64 * OVERHEAD,
    );
    packets
}

#[derive(Default)]
struct Problems {
    damaged: u64,
    malformed: u64,
}

/// Takes a datagram apart.
fn open(
    opener: &mut Opener,
    problems: &mut Problems,
    received: &Received<'_>,
    take: &mut impl FnMut(&Arrived<'_>),
) {
    let network = Network {
        source: received.source,
        destination: received.destination,
        source_port: received.source_port,
    };
    let origin = Origin::of(received);
    let source = AddressVector {
        gid: Gid::from_ip(received.source),
        driver: 0,
        flow_label: 0,
        source_port: received.source_port,
        traffic_class: received.traffic_class,
        hop_limit: received.hop_limit,
        class: Class::new(0),
    };
    let marks = received.traffic_class & CONGESTION_EXPERIENCED;
    let mut guess = FIRST_GUESS;
    let mut leads = true;
    for bytes in received.bytes.chunks(received.segment.max(1)) {
        let opened = match opener.open(&network, guess, bytes) {
            Ok(opened) => opened,
            Err(refusal) => {
                match refusal {
                    Refusal::Damaged => problems.damaged += 1,
                    Refusal::Malformed(_) => problems.malformed += 1,
                }
                guess = frame::next(guess);
                leads = false;
                continue;
            }
        };
        guess = frame::next(opened.hidden);
        let is_datagram = opened.header.bth.opcode.service() == Service::UnreliableDatagram;
        take(&Arrived {
            grh: is_datagram.then(|| {
                let (class, hops) = (received.traffic_class, received.hop_limit);
                grh(&network, class, hops, opened.hidden, bytes.len())
            }),
            header: opened.header,
            payload: opened.payload,
            source,
            destination: Gid::from_ip(received.destination),
            congestion: marks == CONGESTION_EXPERIENCED,
            bytes,
            origin,
            leads,
        });
        leads = false;
    }
}

/// The 40 bytes before the payload of a datagram that never was on the wire.
pub(crate) fn datagram_header(
    (source, destination): (IpAddr, IpAddr),
    path: &AddressVector,
    header: &TransportHeader,
    payload_length: u32,
) -> [u8; 40] {
    let network = Network {
        source,
        destination,
        source_port: ROCE_PORT,
    };
    let length = frame::length(header, payload_length);
    grh(
        &network,
        path.traffic_class,
        path.hop_limit,
        FIRST_GUESS,
        length,
    )
}

/// The 40 bytes before a datagram's payload: the IPv6 header, or the IPv4 header in the last 20 (IBTA annex A17).
fn grh(
    network: &Network,
    traffic_class: u8,
    hop_limit: u8,
    hidden: HiddenFields,
    length: usize,
) -> [u8; 40] {
    let mut bytes = [0; 40];
    let payload = UdpHeader::LENGTH + length;
    match network.ipv4(hidden, traffic_class, hop_limit) {
        Some(ip) => {
            ip.encode(IpProtocol::UDP, payload, &mut bytes[20..]);
        }
        None => {
            let ip = network.ipv6(traffic_class, hop_limit);
            let grh = Grh {
                traffic_class: ip.traffic_class,
                flow_label: ip.flow_label,
                hop_limit: ip.hop_limit,
                source: Gid(ip.source.octets()),
                destination: Gid(ip.destination.octets()),
            };
            grh.encode(IpProtocol::UDP, payload, &mut bytes);
        }
    }
    bytes
}
