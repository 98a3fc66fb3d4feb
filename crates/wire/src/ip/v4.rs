//! The IPv4 header (RFC 791), without options.
//!
//! ```text
//!    0 | version(4) IHL(4) | DSCP(6) ECN(2) | total length   |
//!    4 | identification                     | 0 DF MF offset |
//!    8 | time to live      | protocol       | checksum       |
//!   12 | source                                              |
//!   16 | destination                                         |
//! ```
//!
//! The checksum is right in every header that was decoded or encoded.

use std::net::Ipv4Addr;

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{IpProtocol, TrafficClass};
use crate::bytes::{internet_checksum, put, take};
use crate::error::DecodeError;

const VERSION_AND_LENGTH: u8 = 0x45;
const RESERVED_FLAG: u16 = 0x8000;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

/// An IPv4 header. Lengths and the protocol follow from what it carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ipv4Header {
    /// DSCP and ECN.
    pub traffic_class: TrafficClass,
    /// Covered by the ICRC of RoCEv2.
    pub identification: u16,
    /// DF.
    pub dont_fragment: bool,
    /// The packet's place, where it is a fragment.
    pub fragment: Fragment,
    /// How many more routers may forward it.
    pub time_to_live: u8,
    /// Where it comes from.
    pub source: Ipv4Addr,
    /// Where it goes.
    pub destination: Ipv4Addr,
}

/// The place of a fragment in its packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Fragment {
    /// MF: others follow.
    pub more: bool,
    /// Where it starts, in units of 8 bytes: 13 bits.
    pub offset: u16,
}

impl Fragment {
    /// The packet is whole.
    pub const WHOLE: Self = Self {
        more: false,
        offset: 0,
    };
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
pub(crate) struct RawIpv4 {
    version_and_length: u8,
    pub(crate) traffic_class: u8,
    total_length: U16,
    identification: U16,
    fragment: U16,
    pub(crate) time_to_live: u8,
    protocol: u8,
    pub(crate) checksum: U16,
    source: [u8; 4],
    destination: [u8; 4],
}

impl Ipv4Header {
    /// Its length in bytes.
    pub const LENGTH: usize = 20;

    /// The most bytes that may follow it.
    pub const MAX_PAYLOAD: usize = u16::MAX as usize - Self::LENGTH;

    /// Writes the header of a packet with `payload` bytes after it, and returns the header's length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Ipv4Header::LENGTH`] or `payload` longer than [`Ipv4Header::MAX_PAYLOAD`].
    pub fn encode(&self, protocol: IpProtocol, payload: usize, bytes: &mut [u8]) -> usize {
        put(bytes, 0, &self.to_raw(protocol, payload))
    }

    pub(crate) fn to_raw(self, protocol: IpProtocol, payload: usize) -> RawIpv4 {
        assert!(
            payload <= Self::MAX_PAYLOAD,
            "{payload} bytes do not fit an IPv4 packet"
        );
        let mut fragment = self.fragment.offset & OFFSET_MASK;
        if self.dont_fragment {
            fragment |= DONT_FRAGMENT;
        }
        if self.fragment.more {
            fragment |= MORE_FRAGMENTS;
        }
        let mut raw = RawIpv4 {
            version_and_length: VERSION_AND_LENGTH,
            traffic_class: self.traffic_class.to_byte(),
            total_length: U16::new((Self::LENGTH + payload) as u16),
            identification: U16::new(self.identification),
            fragment: U16::new(fragment),
            time_to_live: self.time_to_live,
            protocol: protocol.0,
            checksum: U16::ZERO,
            source: self.source.octets(),
            destination: self.destination.octets(),
        };
        raw.checksum = U16::new(internet_checksum(raw.as_bytes()));
        raw
    }

    /// Reads the header at the start of `bytes`, what follows it, and how many bytes those are by its total length.
    ///
    /// # Errors
    /// If the bytes end too early, or version, header length (options are not read), total length, reserved flag or
    /// checksum are not as they must be.
    pub fn decode(bytes: &[u8]) -> Result<(Self, IpProtocol, usize), DecodeError> {
        let raw: RawIpv4 = take(bytes, 0, "IPv4 header")?;
        let wrong = |what, offset, found: u16, needed| {
            Err(DecodeError::Value {
                what,
                offset,
                found: u64::from(found),
                needed,
            })
        };
        if raw.version_and_length != VERSION_AND_LENGTH {
            let found = u16::from(raw.version_and_length);
            return wrong(
                "IPv4 version and header length",
                0,
                found,
                "0x45 (no options)",
            );
        }
        let total_length = raw.total_length.get();
        let Some(payload) = usize::from(total_length).checked_sub(Self::LENGTH) else {
            return wrong("IPv4 total length", 2, total_length, "at least 20");
        };
        let flags = raw.fragment.get();
        if flags & RESERVED_FLAG != 0 {
            return wrong("IPv4 flags", 6, flags, "a zero in the reserved flag");
        }
        let mut unsummed = raw;
        unsummed.checksum = U16::ZERO;
        if raw.checksum.get() != internet_checksum(unsummed.as_bytes()) {
            let needed = "the checksum of the header";
            return wrong("IPv4 header checksum", 10, raw.checksum.get(), needed);
        }
        let header = Self {
            traffic_class: TrafficClass::from_byte(raw.traffic_class),
            identification: raw.identification.get(),
            dont_fragment: flags & DONT_FRAGMENT != 0,
            fragment: Fragment {
                more: flags & MORE_FRAGMENTS != 0,
                offset: flags & OFFSET_MASK,
            },
            time_to_live: raw.time_to_live,
            source: Ipv4Addr::from(raw.source),
            destination: Ipv4Addr::from(raw.destination),
        };
        Ok((header, IpProtocol(raw.protocol), payload))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ip::{Dscp, Ecn};

    const HEADER: Ipv4Header = Ipv4Header {
        traffic_class: TrafficClass::from_byte(0),
        identification: 0x1c46,
        dont_fragment: true,
        fragment: Fragment::WHOLE,
        time_to_live: 64,
        source: Ipv4Addr::new(172, 16, 10, 99),
        destination: Ipv4Addr::new(172, 16, 10, 12),
    };
    /// A widely used worked example of the header checksum (TCP, total length 60, checksum 0xb1e6).
    const BYTES: [u8; 20] = [
        0x45, 0x00, 0x00, 0x3c, 0x1c, 0x46, 0x40, 0x00, 0x40, 0x06, 0xb1, 0xe6, 0xac, 0x10, 0x0a,
        0x63, 0xac, 0x10, 0x0a, 0x0c,
    ];

    #[test]
    fn worked_example() {
        let mut bytes = [0; 20];
        assert_eq!(HEADER.encode(IpProtocol::TCP, 40, &mut bytes), 20);
        assert_eq!(bytes, BYTES);
        assert_eq!(
            Ipv4Header::decode(&BYTES),
            Ok((HEADER, IpProtocol::TCP, 40))
        );
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        for bit in 0..160 {
            let mut bytes = BYTES;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Ipv4Header::decode(&bytes).is_err(), "bit {bit} flipped");
        }
    }

    #[test]
    fn errors_say_what_and_where() {
        let message = |at: usize, value: u8| {
            let mut bytes = BYTES;
            bytes[at] = value;
            Ipv4Header::decode(&bytes).unwrap_err().to_string()
        };
        assert_eq!(
            message(0, 0x46),
            "IPv4 version and header length at byte 0 is 0x46, needed 0x45 (no options)"
        );
        assert_eq!(
            message(3, 19),
            "IPv4 total length at byte 2 is 0x13, needed at least 20"
        );
        assert_eq!(
            message(6, 0xc0),
            "IPv4 flags at byte 6 is 0xc000, needed a zero in the reserved flag"
        );
        assert_eq!(
            message(8, 63),
            "IPv4 header checksum at byte 10 is 0xb1e6, needed the checksum of the header"
        );
        assert_eq!(
            Ipv4Header::decode(&BYTES[..19]).unwrap_err().to_string(),
            "IPv4 header at byte 0 needs 20 bytes, found 19"
        );
    }

    proptest! {
        #[test]
        fn any_header_comes_back(
            class in any::<u8>(), identification in any::<u16>(), flags in any::<(bool, bool)>(), offset in 0_u16..0x2000,
            time_to_live in any::<u8>(), addresses in any::<(u32, u32)>(), protocol in any::<u8>(),
            payload in 0..=Ipv4Header::MAX_PAYLOAD,
        ) {
            let header = Ipv4Header {
                traffic_class: TrafficClass {
                    dscp: Dscp::checked(class >> 2).unwrap(),
                    ecn: Ecn::from_bits(class),
                },
                identification,
                dont_fragment: flags.0,
                fragment: Fragment { more: flags.1, offset },
                time_to_live,
                source: Ipv4Addr::from(addresses.0),
                destination: Ipv4Addr::from(addresses.1),
            };
            let mut bytes = [0; 20];
            header.encode(IpProtocol(protocol), payload, &mut bytes);
            prop_assert_eq!(Ipv4Header::decode(&bytes), Ok((header, IpProtocol(protocol), payload)));
        }
    }
}
