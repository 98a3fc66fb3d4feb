//! The global route header (IBTA vol. 1, 8.3): 40 bytes, laid out as an IPv6 header.

use std::net::Ipv6Addr;

use softfabric_units::Gid;

use crate::bytes::put;
use crate::error::DecodeError;
use crate::ip::{FlowLabel, IpProtocol, Ipv6Header, RawIpv6, TrafficClass};

/// A GRH. Length and next header follow from what it carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Grh {
    /// The traffic class.
    pub traffic_class: TrafficClass,
    /// The flow label.
    pub flow_label: FlowLabel,
    /// How many more routers may forward it; RoCEv1 is never routed.
    pub hop_limit: u8,
    /// Where it comes from.
    pub source: Gid,
    /// Where it goes.
    pub destination: Gid,
}

impl Grh {
    /// Its length in bytes.
    pub const LENGTH: usize = RawIpv6::LENGTH;

    /// Writes the header of a packet with `payload` bytes after it (ICRC included) and returns the header's length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Grh::LENGTH`] or `payload` longer than 65,535 bytes.
    pub fn encode(&self, next_header: IpProtocol, payload: usize, bytes: &mut [u8]) -> usize {
        put(bytes, 0, &self.to_raw(next_header, payload))
    }

    pub(crate) fn to_raw(self, next_header: IpProtocol, payload: usize) -> RawIpv6 {
        let header = Ipv6Header {
            traffic_class: self.traffic_class,
            flow_label: self.flow_label,
            hop_limit: self.hop_limit,
            source: Ipv6Addr::from(self.source.0),
            destination: Ipv6Addr::from(self.destination.0),
        };
        RawIpv6::new(&header, next_header, payload)
    }

    /// Reads the header at the start of `bytes`, what follows it, and how many bytes those are by its payload length.
    ///
    /// # Errors
    /// If the bytes end too early or the version is not 6.
    pub fn decode(bytes: &[u8]) -> Result<(Self, IpProtocol, usize), DecodeError> {
        let (header, next_header, payload) = RawIpv6::read(bytes, "GRH", "GRH version")?;
        let grh = Self {
            traffic_class: header.traffic_class,
            flow_label: header.flow_label,
            hop_limit: header.hop_limit,
            source: Gid(header.source.octets()),
            destination: Gid(header.destination.octets()),
        };
        Ok((grh, next_header, payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_bytes() {
        let header = Grh {
            traffic_class: TrafficClass::from_byte(0x01),
            flow_label: FlowLabel::checked(0xf_0e0d).unwrap(),
            hop_limit: 1,
            source: Gid::from_ip("fe80::a".parse().unwrap()),
            destination: Gid::from_ip("10.0.0.1".parse().unwrap()),
        };
        let mut expected = vec![0x60, 0x1f, 0x0e, 0x0d, 0, 20, 0x1b, 1];
        expected.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a]);
        expected.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1]);
        let mut bytes = [0; 40];
        assert_eq!(header.encode(IpProtocol::IBA_TRANSPORT, 20, &mut bytes), 40);
        assert_eq!(&bytes[..], expected);
        assert_eq!(
            Grh::decode(&bytes),
            Ok((header, IpProtocol::IBA_TRANSPORT, 20))
        );
        assert_eq!(
            Grh::decode(&bytes[..39]).unwrap_err().to_string(),
            "GRH at byte 0 needs 40 bytes, found 39"
        );
    }
}
