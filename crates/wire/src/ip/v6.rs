//! The IPv6 header (RFC 8200). The GRH of RDMA has the same 40 bytes.
//!
//! ```text
//!    0 | version(4) | traffic class(8) | flow label(20) |
//!    4 | payload length    | next header  | hop limit   |
//!    8 | source (16)                                    |
//!   24 | destination (16)                               |
//! ```

use std::net::Ipv6Addr;

use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{IpProtocol, TrafficClass};
use crate::bytes::{put, take};
use crate::error::DecodeError;

/// A flow label: 20 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct FlowLabel(u32);

impl FlowLabel {
    /// No flow is named.
    pub const NONE: Self = Self(0);

    /// The label `label`, if it has 20 bits.
    pub const fn checked(label: u32) -> Option<Self> {
        if label < 1 << 20 {
            Some(Self(label))
        } else {
            None
        }
    }

    /// The 20 bits.
    pub const fn as_u32(self) -> u32 {
        self.0
    }
}

/// An IPv6 header. Length and next header follow from what it carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ipv6Header {
    /// DSCP and ECN.
    pub traffic_class: TrafficClass,
    /// The flow that the packet belongs to.
    pub flow_label: FlowLabel,
    /// How many more routers may forward it.
    pub hop_limit: u8,
    /// Where it comes from.
    pub source: Ipv6Addr,
    /// Where it goes.
    pub destination: Ipv6Addr,
}

/// The 40 bytes of an IPv6 header or a GRH.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
pub(crate) struct RawIpv6 {
    pub(crate) version_class_label: U32,
    payload_length: U16,
    next_header: u8,
    pub(crate) hop_limit: u8,
    source: [u8; 16],
    destination: [u8; 16],
}

impl RawIpv6 {
    pub(crate) const LENGTH: usize = 40;

    pub(crate) fn new(header: &Ipv6Header, next_header: IpProtocol, payload: usize) -> Self {
        let payload_length = u16::try_from(payload)
            .expect("callers keep a packet within the 65,535 bytes of a 16-bit length");
        let class = u32::from(header.traffic_class.to_byte()) << 20;
        Self {
            version_class_label: U32::new(6 << 28 | class | header.flow_label.0),
            payload_length: U16::new(payload_length),
            next_header: next_header.0,
            hop_limit: header.hop_limit,
            source: header.source.octets(),
            destination: header.destination.octets(),
        }
    }

    pub(crate) fn read(
        bytes: &[u8],
        header_name: &'static str,
        version_name: &'static str,
    ) -> Result<(Ipv6Header, IpProtocol, usize), DecodeError> {
        let raw: Self = take(bytes, 0, header_name)?;
        let first = raw.version_class_label.get();
        if first >> 28 != 6 {
            return Err(DecodeError::Value {
                what: version_name,
                offset: 0,
                found: u64::from(first >> 28),
                needed: "6",
            });
        }
        let header = Ipv6Header {
            traffic_class: TrafficClass::from_byte((first >> 20) as u8),
            flow_label: FlowLabel(first & 0x000f_ffff),
            hop_limit: raw.hop_limit,
            source: Ipv6Addr::from(raw.source),
            destination: Ipv6Addr::from(raw.destination),
        };
        let payload = usize::from(raw.payload_length.get());
        Ok((header, IpProtocol(raw.next_header), payload))
    }
}

impl Ipv6Header {
    /// Its length in bytes.
    pub const LENGTH: usize = RawIpv6::LENGTH;

    /// The most bytes that may follow it.
    pub const MAX_PAYLOAD: usize = u16::MAX as usize;

    /// Writes the header of a packet with `payload` bytes after it, and returns the header's length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Ipv6Header::LENGTH`] or `payload` longer than [`Ipv6Header::MAX_PAYLOAD`].
    pub fn encode(&self, next_header: IpProtocol, payload: usize, bytes: &mut [u8]) -> usize {
        put(bytes, 0, &RawIpv6::new(self, next_header, payload))
    }

    /// Reads the header at the start of `bytes`, what follows it, and how many bytes those are by its payload length.
    ///
    /// # Errors
    /// If the bytes end too early or the version is not 6.
    pub fn decode(bytes: &[u8]) -> Result<(Self, IpProtocol, usize), DecodeError> {
        RawIpv6::read(bytes, "IPv6 header", "IPv6 version")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn header_bytes() {
        let header = Ipv6Header {
            traffic_class: TrafficClass::from_byte(0x6a),
            flow_label: FlowLabel::checked(0x1_2345).unwrap(),
            hop_limit: 64,
            source: "fe80::1".parse().unwrap(),
            destination: "fe80::2".parse().unwrap(),
        };
        let mut expected = vec![0x66, 0xa1, 0x23, 0x45, 0x01, 0x02, 17, 64];
        for last in [1, 2] {
            expected.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        let mut bytes = [0; 40];
        assert_eq!(header.encode(IpProtocol::UDP, 0x102, &mut bytes), 40);
        assert_eq!(&bytes[..], expected);
        assert_eq!(
            Ipv6Header::decode(&bytes),
            Ok((header, IpProtocol::UDP, 0x102))
        );
        bytes[0] = 0x45;
        assert_eq!(
            Ipv6Header::decode(&bytes).unwrap_err().to_string(),
            "IPv6 version at byte 0 is 0x4, needed 6"
        );
        assert_eq!(FlowLabel::checked(1 << 20), None);
    }

    proptest! {
        #[test]
        fn any_header_comes_back(mut bytes in proptest::array::uniform32(any::<u8>()), tail in any::<[u8; 8]>()) {
            bytes[0] = 0x60 | bytes[0] & 0x0f;
            let bytes = [&bytes[..], &tail].concat();
            let (header, next_header, payload) = Ipv6Header::decode(&bytes).unwrap();
            let mut again = [0; 40];
            header.encode(next_header, payload, &mut again);
            prop_assert_eq!(&again[..], &bytes[..]);
        }
    }
}
