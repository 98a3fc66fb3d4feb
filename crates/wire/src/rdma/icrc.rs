//! The invariant CRC: CRC-32 over everything that no router changes (IBTA vol. 1, 7.8.1; annex A17.3.3 for RoCEv2).
//!
//! ```text
//! 8 × 0xff | IP or GRH | UDP | BTH … payload, pad | ICRC (little endian)      RoCE, and global packets
//! LRH                           | BTH … payload, pad | ICRC                      local packets of InfiniBand
//! ```
//!
//! What switches and routers may change counts as ones: the virtual lane of an LRH, the traffic class, time to live or hop limit, the IPv4 header checksum, the
//! IPv6 and GRH flow label, the UDP checksum, and the byte of the BTH that holds FECN and BECN. Everything else counts as
//! it stands, the IPv4 identification and flags among it.

use crc32fast::Hasher;
use zerocopy::IntoBytes;
use zerocopy::big_endian::{U16, U32};

use super::grh::Grh;
use crate::infiniband::Lrh;
use crate::ip::{IpProtocol, Ipv4Header, Ipv6Header, RawIpv6};
use crate::udp::UdpHeader;

/// CRC-32 of eight bytes 0xff, which stand for the LRH that RoCE has not.
const CRC_OF_NO_LRH: u32 = 0x2144_df1c;
/// The byte of the BTH that holds FECN and BECN.
const BTH_CONGESTION_BYTE: usize = 4;
const ZEROS: [u8; 256] = [0; 256];

/// The bytes of the ICRC.
pub const ICRC_LENGTH: usize = 4;

/// An ICRC in the making: headers of the network, then transport headers, then payload and pad.
#[derive(Clone, Debug)]
pub struct Icrc(Hasher);

impl Icrc {
    /// Starts a RoCEv2 packet over IPv4, with `transport` bytes from BTH to ICRC.
    ///
    /// # Panics
    /// If the packet would be longer than 65,535 bytes; so in the other two.
    pub fn over_ipv4(ip: &Ipv4Header, udp: &UdpHeader, transport: usize) -> Self {
        let mut raw = ip.to_raw(IpProtocol::UDP, UdpHeader::LENGTH + transport);
        raw.traffic_class = 0xff;
        raw.time_to_live = 0xff;
        raw.checksum = U16::MAX_VALUE;
        Self::start(raw.as_bytes()).with_udp(udp, transport)
    }

    /// Starts a RoCEv2 packet over IPv6, with `transport` bytes from BTH to ICRC.
    pub fn over_ipv6(ip: &Ipv6Header, udp: &UdpHeader, transport: usize) -> Self {
        let raw = RawIpv6::new(ip, IpProtocol::UDP, UdpHeader::LENGTH + transport);
        Self::start(masked(raw).as_bytes()).with_udp(udp, transport)
    }

    /// Starts a RoCEv1 packet or a global one of InfiniBand, with `transport` bytes from BTH to ICRC.
    pub fn over_grh(grh: &Grh, transport: usize) -> Self {
        Self::start(masked(grh.to_raw(IpProtocol::IBA_TRANSPORT, transport)).as_bytes())
    }

    /// Starts a local packet of InfiniBand. A global one starts with [`Icrc::over_grh`], as its LRH counts as ones.
    pub fn over_lrh(lrh: &Lrh) -> Self {
        let mut raw = lrh.to_raw();
        raw.lane_version |= 0xf0;
        let mut hasher = Hasher::new();
        hasher.update(raw.as_bytes());
        Self(hasher)
    }

    fn start(network: &[u8]) -> Self {
        let mut hasher = Hasher::new_with_initial_len(CRC_OF_NO_LRH, 8);
        hasher.update(network);
        Self(hasher)
    }

    fn with_udp(mut self, udp: &UdpHeader, transport: usize) -> Self {
        let mut raw = udp.to_raw(transport);
        raw.checksum = U16::MAX_VALUE;
        self.0.update(raw.as_bytes());
        self
    }

    /// Adds the transport headers, which start with the BTH.
    pub fn headers(&mut self, headers: &[u8]) {
        let (before, rest) = headers.split_at(BTH_CONGESTION_BYTE.min(headers.len()));
        self.0.update(before);
        if let [_, after @ ..] = rest {
            self.0.update(&[0xff]);
            self.0.update(after);
        }
    }

    /// Adds payload or pad bytes.
    pub fn payload(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds `count` payload bytes of value zero.
    pub fn zeros(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            let some = left.min(ZEROS.len());
            self.0.update(&ZEROS[..some]);
            left -= some;
        }
    }

    /// The ICRC; the wire carries it with its lowest byte first.
    pub fn finish(self) -> u32 {
        self.0.finalize()
    }
}

fn masked(mut raw: RawIpv6) -> RawIpv6 {
    // The version stays; traffic class and flow label count as ones.
    raw.version_class_label = U32::new(raw.version_class_label.get() | 0x0fff_ffff);
    raw.hop_limit = 0xff;
    raw
}

/// Finds the IPv4 identification and DF of a packet from its ICRC, as a UDP socket shows neither.
///
/// CRCs are linear: the ICRC that the packet carries, xor the ICRC that the receiver computes with identification 0 and
/// DF 0, is the CRC of the two unknown fields alone, followed by as many zero bytes as the packet had. That is the
/// fields' polynomial times a power of *x* modulo the CRC's; multiplying by the inverse power gives the fields back.
///
/// The fields take 17 bits of the 32, so a damaged packet passes as a whole one in 1 of 2¹⁵ cases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdentificationSolver {
    /// x to the power of minus the bits between the fields and the end of the CRC's division.
    inverse_power: u32,
}

/// The two IPv4 fields that the ICRC covers and a UDP socket hides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HiddenFields {
    /// The identification.
    pub identification: u16,
    /// DF.
    pub dont_fragment: bool,
}

/// The CRC-32 polynomial without x³², its lowest power in the highest bit as in every word here.
const POLYNOMIAL: u32 = 0xedb8_8320;
const ONE: u32 = 1 << 31;
const X: u32 = 1 << 30;
/// The polynomial is primitive, so x has the order 2³² − 1, and the power before that is 1 / x.
const INVERSE_OF_X: u32 = power(X, (1 << 32) - 2);
/// Where the byte that holds DF ends in an IPv4 header.
const FLAGS_END: usize = 7;
const DONT_FRAGMENT: u8 = 0x40;

impl IdentificationSolver {
    /// A solver for packets whose IPv4 total length is `total_length`.
    pub const fn for_total_length(total_length: u16) -> Self {
        let after_fields = (total_length as usize).saturating_sub(FLAGS_END + ICRC_LENGTH);
        // A CRC also shifts its message by 32 bits.
        Self {
            inverse_power: power(INVERSE_OF_X, 8 * after_fields as u64 + 32),
        }
    }

    /// The fields of a packet that carries the ICRC `found`, where `computed` is its ICRC with both fields zero. `None`
    /// where no fields explain the difference: then the packet is damaged.
    pub const fn solve(&self, found: u32, computed: u32) -> Option<HiddenFields> {
        let fields = product(found ^ computed, self.inverse_power);
        // The three bytes on the wire, the last nearest to the end, are powers 23 to 0 of the polynomial.
        let [above, high, low, flags] = fields.to_le_bytes();
        if above != 0 || flags & !DONT_FRAGMENT != 0 {
            return None;
        }
        Some(HiddenFields {
            identification: u16::from_be_bytes([high, low]),
            dont_fragment: flags != 0,
        })
    }
}

/// The product of two polynomials modulo the CRC's.
const fn product(left: u32, mut right: u32) -> u32 {
    let mut sum = 0;
    let mut power = ONE;
    while power != 0 {
        if left & power != 0 {
            sum ^= right;
        }
        right = (right >> 1) ^ if right & 1 != 0 { POLYNOMIAL } else { 0 };
        power >>= 1;
    }
    sum
}

/// `base` to the power of `exponent` modulo the CRC's polynomial.
const fn power(mut base: u32, mut exponent: u64) -> u32 {
    let mut result = ONE;
    while exponent != 0 {
        if exponent & 1 != 0 {
            result = product(result, base);
        }
        base = product(base, base);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;
    use softfabric_units::Gid;

    use super::*;
    use crate::ip::{Dscp, Ecn, FlowLabel, Fragment, TrafficClass};

    /// The plain definition, bit by bit.
    fn crc_bit_by_bit(bytes: &[u8]) -> u32 {
        let mut register = u32::MAX;
        for byte in bytes {
            register ^= u32::from(*byte);
            for _ in 0..8 {
                register = (register >> 1) ^ if register & 1 != 0 { POLYNOMIAL } else { 0 };
            }
        }
        !register
    }

    const IP: Ipv4Header = Ipv4Header {
        traffic_class: TrafficClass::from_byte(0),
        identification: 0,
        dont_fragment: false,
        fragment: Fragment::WHOLE,
        time_to_live: 64,
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
    };
    const UDP: UdpHeader = UdpHeader {
        source_port: 0xc000,
        destination_port: 4791,
        checksum: 0,
    };

    fn icrc(ip: &Ipv4Header, udp: &UdpHeader, transport: &[u8]) -> u32 {
        let mut icrc = Icrc::over_ipv4(ip, udp, transport.len() + ICRC_LENGTH);
        icrc.headers(transport);
        icrc.finish()
    }

    #[test]
    fn the_missing_lrh_is_eight_bytes_of_ones() {
        assert_eq!(crc_bit_by_bit(&[0xff; 8]), CRC_OF_NO_LRH);
    }

    #[test]
    fn against_bytes_masked_by_hand() {
        #[rustfmt::skip]
        let masked = [
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            0x45, 0xff, 0, 44, 0x12, 0x34, 0x40, 0, 0xff, 17, 0xff, 0xff, 10, 0, 0, 1, 10, 0, 0, 2,
            0xc0, 0, 0x12, 0xb7, 0, 24, 0xff, 0xff,
            0x04, 0, 0xff, 0xff, 0xff, 0, 0, 17, 0, 0, 0, 1,
        ];
        let ip = Ipv4Header {
            identification: 0x1234,
            dont_fragment: true,
            ..IP
        };
        let bth = [0x04, 0, 0xff, 0xff, 0xc0, 0, 0, 17, 0, 0, 0, 1];
        assert_eq!(icrc(&ip, &UDP, &bth), crc_bit_by_bit(&masked));
    }

    #[test]
    fn global_routes_masked_by_hand() {
        let source = "fd00::1".parse::<Ipv6Addr>().unwrap();
        let destination = "fd00::2".parse::<Ipv6Addr>().unwrap();
        let bth = [0x04, 0, 0xff, 0xff, 0x80, 0, 0, 17, 0, 0, 0, 1];
        let expected = |next_header: u8, length: u8, udp: &[u8]| {
            let mut masked = vec![0xff; 8];
            masked.extend([0x6f, 0xff, 0xff, 0xff, 0, length, next_header, 0xff]);
            masked.extend(source.octets());
            masked.extend(destination.octets());
            masked.extend(udp);
            masked.extend([0x04, 0, 0xff, 0xff, 0xff, 0, 0, 17, 0, 0, 0, 1]);
            crc_bit_by_bit(&masked)
        };
        let class = TrafficClass::from_byte(0x6a);
        let flow_label = FlowLabel::checked(0x0a_bcde).unwrap();
        let grh = Grh {
            traffic_class: class,
            flow_label,
            hop_limit: 3,
            source: Gid(source.octets()),
            destination: Gid(destination.octets()),
        };
        let mut icrc = Icrc::over_grh(&grh, 16);
        icrc.headers(&bth);
        assert_eq!(icrc.finish(), expected(0x1b, 16, &[]));
        let ip = Ipv6Header {
            traffic_class: class,
            flow_label,
            hop_limit: 3,
            source,
            destination,
        };
        let mut icrc = Icrc::over_ipv6(&ip, &UDP, 16);
        icrc.headers(&bth);
        let udp = [0xc0, 0, 0x12, 0xb7, 0, 24, 0xff, 0xff];
        assert_eq!(icrc.finish(), expected(17, 24, &udp));
    }

    #[test]
    fn zeros_are_payload() {
        for count in [0, 1, 255, 256, 257, 1_000] {
            let mut zeros = Icrc::over_ipv4(&IP, &UDP, 16);
            let mut bytes = zeros.clone();
            zeros.zeros(count);
            bytes.payload(&vec![0; count]);
            assert_eq!(zeros.finish(), bytes.finish());
        }
    }

    #[test]
    fn headers_shorter_than_a_bth_do_not_panic() {
        for length in 0..6 {
            icrc(&IP, &UDP, &[7; 6][..length]);
        }
    }

    proptest! {
        #[test]
        fn what_routers_change_does_not_count(
            transport in proptest::collection::vec(any::<u8>(), 12..64), dscp in 0_u8..64, ecn in any::<u8>(),
            time_to_live in any::<u8>(), checksum in any::<u16>(), congestion in any::<u8>(),
        ) {
            let ip = Ipv4Header {
                traffic_class: TrafficClass { dscp: Dscp::checked(dscp).unwrap(), ecn: Ecn::from_bits(ecn) },
                time_to_live,
                ..IP
            };
            let mut changed = transport.clone();
            changed[BTH_CONGESTION_BYTE] = congestion;
            prop_assert_eq!(icrc(&IP, &UDP, &transport), icrc(&ip, &UdpHeader { checksum, ..UDP }, &changed));
        }

        #[test]
        fn one_other_bit_counts(transport in proptest::collection::vec(any::<u8>(), 12..64), bit in any::<prop::sample::Index>()) {
            let bit = bit.index(transport.len() * 8);
            let mut changed = transport.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(icrc(&IP, &UDP, &transport) == icrc(&IP, &UDP, &changed), bit / 8 == BTH_CONGESTION_BYTE);
        }

        #[test]
        fn hidden_fields_are_found(
            transport in proptest::collection::vec(any::<u8>(), 12..4200), identification in any::<u16>(), dont_fragment in any::<bool>(),
        ) {
            let ip = Ipv4Header { identification, dont_fragment, ..IP };
            let total_length = (28 + transport.len() + ICRC_LENGTH) as u16;
            let solver = IdentificationSolver::for_total_length(total_length);
            let found = icrc(&ip, &UDP, &transport);
            let computed = icrc(&IP, &UDP, &transport);
            prop_assert_eq!(solver.solve(found, computed), Some(HiddenFields { identification, dont_fragment }));
        }
    }
}
