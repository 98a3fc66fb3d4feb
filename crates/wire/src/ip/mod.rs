//! IPv4 and IPv6 headers, and the two fields that they share: DSCP and ECN.

mod v4;
mod v6;

pub use v4::{Fragment, Ipv4Header};
pub(crate) use v6::RawIpv6;
pub use v6::{FlowLabel, Ipv6Header};

/// What follows an IP header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IpProtocol(pub u8);

impl IpProtocol {
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// The BTH, after a GRH (IBTA vol. 1, 8.3).
    pub const IBA_TRANSPORT: Self = Self(0x1b);
}

/// A differentiated services code point: 6 bits (RFC 2474).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Dscp(u8);

impl Dscp {
    /// The code point `code`, if it has 6 bits.
    pub const fn checked(code: u8) -> Option<Self> {
        if code < 64 { Some(Self(code)) } else { None }
    }

    /// The 6 bits.
    pub const fn code(self) -> u8 {
        self.0
    }
}

/// Explicit congestion notification (RFC 3168, 5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Ecn {
    /// The sender does not understand marks.
    #[default]
    NotCapable,
    /// ECT(1).
    Capable1,
    /// ECT(0): what RoCEv2 sends.
    Capable0,
    /// CE: the packet met congestion.
    CongestionExperienced,
}

impl Ecn {
    /// The two bits on the wire.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0b00,
            Self::Capable1 => 0b01,
            Self::Capable0 => 0b10,
            Self::CongestionExperienced => 0b11,
        }
    }

    /// The meaning of the low two bits of `bits`.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotCapable,
            0b01 => Self::Capable1,
            0b10 => Self::Capable0,
            _ => Self::CongestionExperienced,
        }
    }
}

/// The byte that IPv4 calls type of service and IPv6 traffic class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct TrafficClass {
    /// Upper six bits.
    pub dscp: Dscp,
    /// Lower two bits.
    pub ecn: Ecn,
}

impl TrafficClass {
    /// The byte on the wire.
    pub const fn to_byte(self) -> u8 {
        (self.dscp.0 << 2) | self.ecn.bits()
    }

    /// What the byte says.
    pub const fn from_byte(byte: u8) -> Self {
        Self {
            dscp: Dscp(byte >> 2),
            ecn: Ecn::from_bits(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_class_bits() {
        let class = TrafficClass {
            dscp: Dscp::checked(26).unwrap(),
            ecn: Ecn::Capable0,
        };
        assert_eq!(class.to_byte(), 0x6a);
        for byte in 0..=255 {
            assert_eq!(TrafficClass::from_byte(byte).to_byte(), byte);
        }
        assert_eq!(
            TrafficClass::from_byte(3).ecn,
            Ecn::CongestionExperienced,
            "RFC 3168: 11 is CE"
        );
        assert_eq!(TrafficClass::from_byte(1).ecn, Ecn::Capable1);
        assert_eq!(Dscp::checked(64), None);
    }
}
