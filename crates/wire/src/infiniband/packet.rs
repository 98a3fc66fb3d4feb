//! A whole data packet of InfiniBand, local or global, with both of its CRCs.

use softfabric_units::Lid;

use super::crc::{VCRC_LENGTH, vcrc};
use super::lrh::{LinkNext, Lrh, ServiceLevel, VirtualLane};
use crate::data::Data;
use crate::error::DecodeError;
use crate::ip::IpProtocol;
use crate::rdma::{Grh, Icrc, RdmaPacket, TransportHeader};

/// Where a packet goes on its subnet: what an LRH says beside what follows from its contents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkRoute {
    /// The lane on this link.
    pub lane: VirtualLane,
    /// The level within the subnet.
    pub level: ServiceLevel,
    /// Where the packet comes from.
    pub source: Lid,
    /// Where it goes.
    pub destination: Lid,
}

/// One data packet from LRH to VCRC. Raw packets are not among these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkPacket<'a> {
    /// The route.
    pub route: LinkRoute,
    /// The global route header of a global packet.
    pub grh: Option<Grh>,
    /// From BTH to ICRC.
    pub rdma: RdmaPacket<'a>,
    /// The VCRC as it stands, right or wrong.
    pub vcrc: u16,
}

impl<'a> LinkPacket<'a> {
    /// A packet with right CRCs.
    ///
    /// # Panics
    /// If it is longer than the LRH can say: 2,047 words.
    pub fn new(
        route: LinkRoute,
        grh: Option<Grh>,
        header: TransportHeader,
        payload: Data<'a>,
    ) -> Self {
        let mut packet = Self {
            route,
            grh,
            rdma: RdmaPacket::new(header, payload),
            vcrc: 0,
        };
        packet.rdma.icrc = packet.computed_icrc();
        let mut bytes = vec![0; packet.length()];
        packet.encode(&mut bytes);
        packet.vcrc = vcrc(&bytes[..bytes.len() - VCRC_LENGTH]);
        packet
    }

    /// The length in bytes from LRH to VCRC: what takes credits.
    pub const fn length(&self) -> usize {
        let grh = if self.grh.is_some() { Grh::LENGTH } else { 0 };
        Lrh::LENGTH + grh + self.rdma.length() + VCRC_LENGTH
    }

    /// The LRH.
    ///
    /// # Panics
    /// As [`LinkPacket::new`].
    pub fn lrh(&self) -> Lrh {
        let words = (self.length() - VCRC_LENGTH) / 4;
        assert!(
            words < 1 << 11,
            "a packet of {words} words is longer than an LRH can say"
        );
        Lrh {
            lane: self.route.lane,
            level: self.route.level,
            next: if self.grh.is_some() {
                LinkNext::Global
            } else {
                LinkNext::Local
            },
            destination: self.route.destination,
            words: words as u16,
            source: self.route.source,
        }
    }

    /// Writes the packet to the start of `bytes` and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`LinkPacket::length`], or as [`LinkPacket::new`].
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        let mut at = self.lrh().encode(bytes);
        if let Some(grh) = &self.grh {
            at += grh.encode(
                IpProtocol::IBA_TRANSPORT,
                self.rdma.length(),
                &mut bytes[at..],
            );
        }
        at += self.rdma.encode(&mut bytes[at..]);
        Data::Bytes(&self.vcrc.to_le_bytes()).put(bytes, at)
    }

    /// Reads the packet that fills `bytes`, LRH to VCRC. Reserved bits of the LRH are ignored.
    ///
    /// # Errors
    /// If a header does not decode, the LRH or GRH names another length, or the packet is a raw one. Wrong CRCs are not
    /// errors here: see [`LinkPacket::icrc_is_right`] and [`LinkPacket::vcrc_is_right`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let lrh = Lrh::decode(bytes)?;
        let Some((body, [low, high])) = bytes.split_last_chunk::<VCRC_LENGTH>() else {
            unreachable!("an LRH was read")
        };
        let wrong = |what, offset, found: usize, needed| DecodeError::Value {
            what,
            offset,
            found: found as u64,
            needed,
        };
        if usize::from(lrh.words) * 4 != body.len() {
            let needed = "the words from LRH to ICRC";
            return Err(wrong("LRH length", 4, lrh.words.into(), needed));
        }
        let (grh, at) = match lrh.next {
            LinkNext::Local => (None, Lrh::LENGTH),
            LinkNext::Global => {
                let inner = &body[Lrh::LENGTH..];
                let (grh, next, payload) =
                    Grh::decode(inner).map_err(|error| error.at(Lrh::LENGTH))?;
                if next != IpProtocol::IBA_TRANSPORT {
                    let needed = "0x1b (a BTH)";
                    return Err(wrong(
                        "GRH next header",
                        Lrh::LENGTH + 6,
                        next.0.into(),
                        needed,
                    ));
                }
                if payload != inner.len() - Grh::LENGTH {
                    let needed = "the bytes from BTH to ICRC";
                    return Err(wrong(
                        "GRH payload length",
                        Lrh::LENGTH + 4,
                        payload,
                        needed,
                    ));
                }
                (Some(grh), Lrh::LENGTH + Grh::LENGTH)
            }
            LinkNext::RawEtherType | LinkNext::RawIpv6 => {
                let needed = "2 or 3: raw packets are not supported";
                return Err(wrong("LRH next header", 1, lrh.next.bits().into(), needed));
            }
        };
        Ok(Self {
            route: LinkRoute {
                lane: lrh.lane,
                level: lrh.level,
                source: lrh.source,
                destination: lrh.destination,
            },
            grh,
            rdma: RdmaPacket::decode(&body[at..]).map_err(|error| error.at(at))?,
            vcrc: u16::from_le_bytes([*low, *high]),
        })
    }

    /// Whether the ICRC is that of the packet. Switches leave it alone, so it also guards against their errors.
    pub fn icrc_is_right(&self) -> bool {
        self.rdma.icrc == self.computed_icrc()
    }

    /// Whether the VCRC is that of the packet: each link has its own.
    pub fn vcrc_is_right(&self) -> bool {
        let mut bytes = vec![0; self.length()];
        self.encode(&mut bytes);
        vcrc(&bytes[..bytes.len() - VCRC_LENGTH]) == self.vcrc
    }

    fn computed_icrc(&self) -> u32 {
        let mut icrc = match &self.grh {
            Some(grh) => Icrc::over_grh(grh, self.rdma.length()),
            None => Icrc::over_lrh(&self.lrh()),
        };
        self.rdma.add_to(&mut icrc);
        icrc.finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use softfabric_units::Gid;

    use super::*;
    use crate::infiniband::lrh::tests::SAMPLE;
    use crate::ip::{FlowLabel, TrafficClass};

    fn sample() -> Vec<u8> {
        [&SAMPLE[..], &[0x45, 0xfa]].concat()
    }

    fn global() -> LinkPacket<'static> {
        let bytes: &'static [u8] = sample().leak();
        let local = LinkPacket::decode(bytes).unwrap();
        let grh = Grh {
            traffic_class: TrafficClass::from_byte(3),
            flow_label: FlowLabel::NONE,
            hop_limit: 64,
            source: Gid([1; 16]),
            destination: Gid([2; 16]),
        };
        LinkPacket::new(
            local.route,
            Some(grh),
            local.rdma.header,
            local.rdma.payload,
        )
    }

    #[test]
    fn the_sample_is_what_a_new_packet_encodes_to() {
        let bytes = sample();
        let packet = LinkPacket::decode(&bytes).unwrap();
        assert!(packet.icrc_is_right() && packet.vcrc_is_right());
        assert_eq!(packet.route.source, Lid(0x17d2));
        let again = LinkPacket::new(packet.route, None, packet.rdma.header, packet.rdma.payload);
        let mut written = vec![0; again.length()];
        assert_eq!(again.encode(&mut written), bytes.len());
        assert_eq!(written, bytes);
    }

    #[test]
    fn a_global_packet_comes_back() {
        let packet = global();
        let mut bytes = vec![0; packet.length()];
        packet.encode(&mut bytes);
        assert_eq!(bytes.len(), 58 + Grh::LENGTH);
        let again = LinkPacket::decode(&bytes).unwrap();
        assert_eq!(again, packet);
        assert!(again.icrc_is_right() && again.vcrc_is_right());
    }

    #[test]
    fn a_switch_changes_the_lane_and_only_the_vcrc() {
        let bytes = sample();
        let mut packet = LinkPacket::decode(&bytes).unwrap();
        packet.route.lane = VirtualLane::checked(2).unwrap();
        assert!(packet.icrc_is_right() && !packet.vcrc_is_right());
        packet.route.level = ServiceLevel::checked(2).unwrap();
        assert!(!packet.icrc_is_right(), "the service level counts");
    }

    #[test]
    fn errors_say_what_and_where() {
        let message = |bytes: &[u8]| LinkPacket::decode(bytes).unwrap_err().to_string();
        let bytes = sample();
        assert_eq!(message(&bytes[..7]), "LRH at byte 0 needs 8 bytes, found 7");
        assert_eq!(
            message(&bytes[..57]),
            "LRH length at byte 4 is 0xe, needed the words from LRH to ICRC"
        );
        let mut raw = bytes.clone();
        raw[1] &= 0xfc;
        assert_eq!(
            message(&raw),
            "LRH next header at byte 1 is 0x0, needed 2 or 3: raw packets are not supported"
        );
        let packet = global();
        let mut bytes = vec![0; packet.length()];
        packet.encode(&mut bytes);
        bytes[14] = 17;
        assert_eq!(
            message(&bytes),
            "GRH next header at byte 14 is 0x11, needed 0x1b (a BTH)"
        );
        bytes[14] = 0x1b;
        bytes[13] ^= 4;
        assert_eq!(
            message(&bytes),
            "GRH payload length at byte 12 is 0x34, needed the bytes from BTH to ICRC"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_or_a_packet(
            tail in proptest::collection::vec(any::<u8>(), 0..80), next in 0_u8..4, opcode in any::<u8>(),
        ) {
            let mut bytes = vec![0x10, next, 0, 1, 0, 0, 0, 2];
            if next == 3 {
                let length = (tail.len().saturating_sub(VCRC_LENGTH)) as u8;
                bytes.extend([0x60, 0, 0, 0, 0, length, 0x1b, 1]);
                bytes.extend([7; 32]);
            }
            let at = bytes.len();
            bytes.extend(tail);
            if bytes.len() > at {
                bytes[at] = opcode;
            }
            bytes[5] = (bytes.len().saturating_sub(VCRC_LENGTH) / 4) as u8;
            if let Ok(packet) = LinkPacket::decode(&bytes) {
                let mut again = vec![0; packet.length()];
                packet.encode(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
