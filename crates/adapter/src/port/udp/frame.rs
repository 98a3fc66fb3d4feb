//! One packet in a UDP datagram: BTH, payload, pad, and the ICRC that also covers what the socket hides.
//!
//! ```text
//! IPv4 or IPv6, UDP (the kernel's) | BTH, extension headers | payload | pad | ICRC
//! ```
//!
//! The ICRC covers the IPv4 identification and DF. An unconnected socket that never fragments sends DF and
//! identification 0; segment *k* of a segmented send has identification *k*. Other senders use what they like: on
//! arrival, the one identification that explains the ICRC is solved for.

use std::net::IpAddr;

use rustc_hash::FxHashMap;
use softfabric_transport::MemoryFault;
use softfabric_wire::DecodeError;
use softfabric_wire::ip::{FlowLabel, Fragment, Ipv4Header, Ipv6Header, TrafficClass};
use softfabric_wire::rdma::{
    HiddenFields, ICRC_LENGTH, Icrc, IdentificationSolver, RdmaPacket, TransportHeader,
};
use softfabric_wire::udp::{ROCE_PORT, UdpHeader};

use crate::memory::Payload;

/// What the ICRC covers of the network's headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Network {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) source_port: u16,
}

/// The identification that the first packet of a send has, and DF.
const SENT: HiddenFields = HiddenFields {
    identification: 0,
    dont_fragment: true,
};

impl Network {
    /// The IPv4 header of a packet, as far as the ICRC covers it. `None`: it is an IPv6 packet.
    pub(crate) fn ipv4(
        &self,
        hidden: HiddenFields,
        class: u8,
        hop_limit: u8,
    ) -> Option<Ipv4Header> {
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (self.source, self.destination) else {
            return None;
        };
        Some(Ipv4Header {
            traffic_class: TrafficClass::from_byte(class),
            identification: hidden.identification,
            dont_fragment: hidden.dont_fragment,
            fragment: Fragment::WHOLE,
            time_to_live: hop_limit,
            source,
            destination,
        })
    }

    /// The IPv6 header of a packet, in which IPv4 addresses are mapped.
    pub(crate) fn ipv6(&self, class: u8, hop_limit: u8) -> Ipv6Header {
        let v6 = |address| match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        Ipv6Header {
            traffic_class: TrafficClass::from_byte(class),
            flow_label: FlowLabel::NONE,
            hop_limit,
            source: v6(self.source),
            destination: v6(self.destination),
        }
    }

    /// The ICRC of a packet whose bytes from BTH to pad are `headers` and `rest`.
    #[inline]
    fn icrc(&self, hidden: HiddenFields, headers: &[u8], rest: &[u8]) -> u32 {
        let length = headers.len() + rest.len() + ICRC_LENGTH;
        let udp = UdpHeader {
            source_port: self.source_port,
            destination_port: ROCE_PORT,
            checksum: 0,
        };
        let mut icrc = match self.ipv4(hidden, 0, 0) {
            Some(ip) => Icrc::over_ipv4(&ip, &udp, length),
            None => Icrc::over_ipv6(&self.ipv6(0, 0), &udp, length),
        };
        icrc.headers(headers);
        icrc.payload(rest);
        icrc.finish()
    }
}

/// The length of a packet from BTH to ICRC.
#[inline]
pub(crate) fn length(header: &TransportHeader, payload_length: u32) -> usize {
    header.length() + (payload_length as usize).next_multiple_of(4) + ICRC_LENGTH
}

/// Appends a packet, which will be segment `segment` of its send.
///
/// # Errors
/// If the payload cannot be read. Nothing was appended then.
#[inline]
pub(crate) fn encode(
    network: &Network,
    segment: u16,
    header: &TransportHeader,
    payload: &Payload,
    out: &mut Vec<u8>,
) -> Result<(), MemoryFault> {
    let start = out.len();
    let mut headers = [0; TransportHeader::MAX_LENGTH];
    let header_length = header.encode(&mut headers);
    out.extend_from_slice(&headers[..header_length]);
    if let Err(fault) = payload.append_to(out) {
        out.truncate(start);
        return Err(fault);
    }
    let pad = (out.len() - start).wrapping_neg() & 3;
    out.extend_from_slice(&[0; 3][..pad]);
    let (headers, rest) = out[start..].split_at(header_length);
    let icrc = network.icrc(sent(segment), headers, rest);
    out.extend_from_slice(&icrc.to_le_bytes());
    Ok(())
}

/// Computes the ICRC of an encoded packet again, which will be another segment of a send than it was to be.
pub(crate) fn seal(network: &Network, segment: u16, packet: &mut [u8]) {
    let Ok((_, header_length)) = TransportHeader::decode(packet) else {
        return;
    };
    let Some(end) = packet.len().checked_sub(ICRC_LENGTH) else {
        return;
    };
    if header_length <= end {
        let (headers, rest) = packet[..end].split_at(header_length);
        let icrc = network.icrc(sent(segment), headers, rest);
        packet[end..].copy_from_slice(&icrc.to_le_bytes());
    }
}

fn sent(segment: u16) -> HiddenFields {
    HiddenFields {
        identification: segment,
        ..SENT
    }
}

/// A packet that arrived whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened<'a> {
    pub(crate) header: TransportHeader,
    pub(crate) payload: &'a [u8],
    /// What the socket did not show of the IPv4 header.
    pub(crate) hidden: HiddenFields,
}

/// Why a packet is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// It is no RDMA packet.
    Malformed(DecodeError),
    /// The ICRC is wrong.
    Damaged,
}

/// Opens arriving packets. It remembers what it needs to solve for identifications, and who sends as we do.
///
/// Any of 2¹⁷ values of the hidden fields is accepted from a stranger, so a damaged packet passes in 1 of 2¹⁵ cases. A
/// source whose packets have shown to be numbered as ours are gets no such leave.
#[derive(Debug, Default)]
pub(crate) struct Opener {
    solvers: FxHashMap<u16, IdentificationSolver>,
    sources: FxHashMap<IpAddr, Habit>,
}

/// How a source numbers its packets.
#[derive(Clone, Copy, Debug, Default)]
struct Habit {
    /// Packets in a row that were numbered as ours are.
    plain: u8,
    /// Packets in a row that were refused because of that.
    refused: u8,
}

impl Habit {
    /// So many are no coincidence.
    const SURE: u8 = 4;
    /// After so many, another kind of sender has the address now.
    const CHANGED: u8 = 100;
}

/// The most segments of one send, and so the identifications that a sender of our kind uses.
const SEGMENTS: u16 = 128;
/// How many sources are remembered.
const SOURCES: usize = 4096;

impl Opener {
    /// Checks a packet and takes it apart. `guess` is the identification that it probably has.
    #[inline]
    pub(crate) fn open<'a>(
        &mut self,
        network: &Network,
        guess: HiddenFields,
        bytes: &'a [u8],
    ) -> Result<Opened<'a>, Refusal> {
        let (header, header_length) = TransportHeader::decode(bytes).map_err(Refusal::Malformed)?;
        let pad = usize::from(header.bth.pad);
        let payload_length = bytes
            .len()
            .checked_sub(header_length + pad + ICRC_LENGTH)
            .filter(|length| (length + pad).is_multiple_of(4))
            .filter(|length| length + pad == 0 || header.bth.opcode.has_payload());
        let Some(payload_length) = payload_length else {
            // The slow decoder says what is wrong.
            let error = RdmaPacket::decode(bytes).err();
            return Err(error.map_or(Refusal::Damaged, Refusal::Malformed));
        };
        let end = bytes.len() - ICRC_LENGTH;
        let (headers, rest) = bytes[..end].split_at(header_length);
        let mut found = [0; ICRC_LENGTH];
        found.copy_from_slice(&bytes[end..]);
        let found = u32::from_le_bytes(found);
        let hidden = if network.icrc(guess, headers, rest) == found {
            if network.destination.is_ipv4() && guess.identification < SEGMENTS {
                self.sources.entry(network.source).or_default().note_plain();
            }
            guess
        } else {
            self.solve(network, headers, rest, found)?
        };
        Ok(Opened {
            header,
            payload: &rest[..payload_length],
            hidden,
        })
    }

    #[cold]
    fn solve(
        &mut self,
        network: &Network,
        headers: &[u8],
        rest: &[u8],
        found: u32,
    ) -> Result<HiddenFields, Refusal> {
        const NONE: HiddenFields = HiddenFields {
            identification: 0,
            dont_fragment: false,
        };
        if network.destination.is_ipv6() {
            return Err(Refusal::Damaged);
        }
        let length =
            Ipv4Header::LENGTH + UdpHeader::LENGTH + headers.len() + rest.len() + ICRC_LENGTH;
        let length = u16::try_from(length).map_err(|_| Refusal::Damaged)?;
        let solver = self
            .solvers
            .entry(length)
            .or_insert_with(|| IdentificationSolver::for_total_length(length));
        let hidden = solver
            .solve(found, network.icrc(NONE, headers, rest))
            .ok_or(Refusal::Damaged)?;
        if self.sources.len() >= SOURCES {
            self.sources.clear();
        }
        let habit = self.sources.entry(network.source).or_default();
        let plain = hidden.dont_fragment && hidden.identification < SEGMENTS;
        if plain {
            habit.note_plain();
        } else if habit.plain >= Habit::SURE && habit.refused < Habit::CHANGED {
            habit.refused += 1;
            return Err(Refusal::Damaged);
        } else {
            *habit = Habit::default();
        }
        Ok(hidden)
    }
}

impl Habit {
    #[inline]
    fn note_plain(&mut self) {
        self.plain = self.plain.saturating_add(1);
        self.refused = 0;
    }
}

/// The identification of the packet after one with `hidden`, if both were segments of one send.
#[inline]
pub(crate) fn next(hidden: HiddenFields) -> HiddenFields {
    HiddenFields {
        identification: hidden.identification.wrapping_add(1),
        ..hidden
    }
}

/// What the first packet of a datagram probably has.
pub(crate) const FIRST_GUESS: HiddenFields = SENT;

#[cfg(test)]
mod tests {
    use softfabric_units::{PartitionKey, Psn, Qpn};
    use softfabric_wire::rdma::{Bth, Extension, Opcode};

    use super::*;
    use crate::memory::Captured;

    fn header(payload_length: usize) -> TransportHeader {
        TransportHeader {
            bth: Bth {
                opcode: Opcode::RC_SEND_ONLY,
                solicited: false,
                migrated: true,
                pad: (payload_length.wrapping_neg() & 3) as u8,
                partition: PartitionKey::DEFAULT,
                fecn: false,
                becn: false,
                destination: Qpn::new(0x01_0002),
                acknowledge: true,
                psn: Psn::new(77),
            },
            extension: Extension::None,
            xrc_srq: 0,
        }
    }

    fn networks() -> [Network; 2] {
        [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")].map(|(source, destination)| Network {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            source_port: ROCE_PORT,
        })
    }

    #[test]
    fn what_is_sent_opens() {
        for network in networks() {
            for length in [0, 1, 2, 3, 4, 1000, 4096] {
                let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
                let payload = Payload::Bytes(Captured::from_slice(&bytes));
                for segment in [0, 5] {
                    let mut out = vec![1, 2, 3];
                    encode(&network, segment, &header(length), &payload, &mut out).unwrap();
                    let packet = &mut out[3..];
                    assert_eq!(packet.len(), super::length(&header(length), length as u32));
                    let mut opener = Opener::default();
                    let opened = opener.open(&network, FIRST_GUESS, packet).unwrap();
                    assert_eq!(
                        (opened.header, opened.payload),
                        (header(length), &bytes[..])
                    );
                    if network.destination.is_ipv4() {
                        assert_eq!(opened.hidden, sent(segment));
                    }
                    seal(&network, 0, packet);
                    let opened = opener.open(&network, FIRST_GUESS, packet).unwrap();
                    assert_eq!(opened.hidden, FIRST_GUESS);
                }
            }
        }
    }

    #[test]
    fn damage_is_seen() {
        for network in networks() {
            let payload = Payload::Bytes(Captured::from_slice(&[9; 100]));
            let mut packet = Vec::new();
            encode(&network, 0, &header(100), &payload, &mut packet).unwrap();
            let mut passed = 0;
            for byte in 0..packet.len() {
                packet[byte] ^= 0x10;
                // FECN and BECN are not covered.
                if byte != 4
                    && Opener::default()
                        .open(&network, FIRST_GUESS, &packet)
                        .is_ok()
                {
                    passed += 1;
                }
                packet[byte] ^= 0x10;
            }
            assert_eq!(passed, 0);
        }
    }

    /// A packet as another kind of sender numbers it.
    fn numbered(network: &Network, identification: u16) -> Vec<u8> {
        let payload = Payload::Bytes(Captured::from_slice(&[3; 64]));
        let mut packet = Vec::new();
        encode(network, identification, &header(64), &payload, &mut packet).unwrap();
        packet
    }

    #[test]
    fn identifications_are_solved_for_unless_the_source_is_known_to_use_ours() {
        let network = networks()[0];
        let mut opener = Opener::default();
        for identification in [40_000, 0, 0, 0, 50_000] {
            let packet = numbered(&network, identification);
            let opened = opener.open(&network, FIRST_GUESS, &packet).unwrap();
            assert_eq!(opened.hidden.identification, identification);
        }
        for _ in 0..Habit::SURE {
            opener
                .open(&network, FIRST_GUESS, &numbered(&network, 0))
                .unwrap();
        }
        // From the middle of a segmented send: still ours.
        assert!(
            opener
                .open(&network, FIRST_GUESS, &numbered(&network, 70))
                .is_ok()
        );
        let other = numbered(&network, 40_000);
        let refused = (0..200)
            .take_while(|_| opener.open(&network, FIRST_GUESS, &other).is_err())
            .count();
        assert_eq!(
            refused,
            usize::from(Habit::CHANGED),
            "then it is believed again"
        );
    }

    #[test]
    fn nonsense_is_malformed() {
        let network = networks()[0];
        for bytes in [&[][..], &[0xff; 12], &[4, 0, 0xff], &[0; 13], &[0x11; 16]] {
            let opened = Opener::default().open(&network, FIRST_GUESS, bytes);
            assert!(
                matches!(opened, Err(Refusal::Malformed(_))),
                "{bytes:?}: {opened:?}"
            );
        }
    }
}
