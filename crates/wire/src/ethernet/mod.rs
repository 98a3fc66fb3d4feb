//! Ethernet II frames, 802.1Q tags, and the control frames of the link.
//!
//! ```text
//! destination (6) | source (6) | [ 0x8100 | PCP(3) DEI(1) VID(12) ] | EtherType (2) | body | padding | FCS (4)
//! ```
//!
//! The preamble, the FCS and the gap are not part of the bytes that the decoders take, as captures leave them out.

mod fcs;
mod pause;

pub use fcs::{FCS_LENGTH, append_fcs, fcs, split_fcs};
pub(crate) use pause::opcodes;
pub use pause::{CONTROL_ADDRESS, PauseFrame, PfcFrame, Quanta};

use softfabric_units::{Class, MacAddress};
use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::bytes::{put, take};
use crate::error::DecodeError;

/// What a frame's body is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// An 802.1Q tag.
    pub const VLAN: Self = Self(0x8100);
    /// IPv6.
    pub const IPV6: Self = Self(0x86dd);
    /// MAC control: PAUSE (802.3 annex 31B) and PFC (802.1Qbb).
    pub const MAC_CONTROL: Self = Self(0x8808);
    /// RoCEv1: a GRH follows (IBTA annex A16).
    pub const ROCE_V1: Self = Self(0x8915);
}

/// A VLAN identifier: 12 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct VlanId(u16);

impl VlanId {
    /// No VLAN: the tag only carries a priority.
    pub const PRIORITY_ONLY: Self = Self(0);

    /// The identifier `id`, if it has 12 bits.
    pub const fn checked(id: u16) -> Option<Self> {
        if id < 1 << 12 { Some(Self(id)) } else { None }
    }

    /// The 12 bits.
    pub const fn as_u16(self) -> u16 {
        self.0
    }
}

/// An 802.1Q tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct VlanTag {
    /// PCP: the class of the frame.
    pub priority: Class,
    /// DEI: drop this one first.
    pub drop_eligible: bool,
    /// VID.
    pub vlan: VlanId,
}

impl VlanTag {
    /// The bytes that a tag adds to a frame.
    pub const LENGTH: usize = 4;

    const fn to_bits(self) -> u16 {
        ((self.priority.as_u8() as u16) << 13)
            | ((self.drop_eligible as u16) << 12)
            | self.vlan.as_u16()
    }

    fn from_bits(bits: u16) -> Self {
        Self {
            priority: Class::new((bits >> 13) as u8),
            drop_eligible: bits & 0x1000 != 0,
            vlan: VlanId(bits & 0x0fff),
        }
    }
}

/// The header of an Ethernet II frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EthernetHeader {
    /// Where the frame goes.
    pub destination: MacAddress,
    /// Where it comes from.
    pub source: MacAddress,
    /// The 802.1Q tag, where there is one.
    pub tag: Option<VlanTag>,
    /// What the body is: not [`EtherType::VLAN`] where there is no tag.
    pub ether_type: EtherType,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawEthernet {
    destination: [u8; 6],
    source: [u8; 6],
    ether_type: U16,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawTag {
    control: U16,
    ether_type: U16,
}

impl EthernetHeader {
    /// The bytes of a header without a tag.
    pub const LENGTH: usize = 14;
    /// The shortest frame, without FCS: what is shorter is padded.
    pub const MIN_FRAME: usize = 60;

    /// The header's length in bytes.
    pub const fn length(&self) -> usize {
        Self::LENGTH
            + if self.tag.is_some() {
                VlanTag::LENGTH
            } else {
                0
            }
    }

    /// Writes the header to the start of `bytes` and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`EthernetHeader::length`].
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        let first_type = match self.tag {
            Some(_) => EtherType::VLAN,
            None => self.ether_type,
        };
        let raw = RawEthernet {
            destination: self.destination.0,
            source: self.source.0,
            ether_type: U16::new(first_type.0),
        };
        let at = put(bytes, 0, &raw);
        match self.tag {
            None => at,
            Some(tag) => {
                let raw = RawTag {
                    control: U16::new(tag.to_bits()),
                    ether_type: U16::new(self.ether_type.0),
                };
                put(bytes, at, &raw)
            }
        }
    }

    /// Reads the header at the start of `bytes`, and its length.
    ///
    /// # Errors
    /// If the bytes end too early.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), DecodeError> {
        let raw: RawEthernet = take(bytes, 0, "Ethernet header")?;
        let mut header = Self {
            destination: MacAddress(raw.destination),
            source: MacAddress(raw.source),
            tag: None,
            ether_type: EtherType(raw.ether_type.get()),
        };
        if header.ether_type == EtherType::VLAN {
            let raw: RawTag = take(bytes, Self::LENGTH, "802.1Q tag")?;
            header.tag = Some(VlanTag::from_bits(raw.control.get()));
            header.ether_type = EtherType(raw.ether_type.get());
        }
        Ok((header, header.length()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[rustfmt::skip]
    #[test]
    fn header_bytes() {
        let plain = EthernetHeader {
            destination: MacAddress([0x52, 0x54, 0, 0, 0, 2]),
            source: MacAddress([0x52, 0x54, 0, 0, 0, 1]),
            tag: None,
            ether_type: EtherType::IPV4,
        };
        let bytes = [0x52, 0x54, 0, 0, 0, 2, 0x52, 0x54, 0, 0, 0, 1, 0x08, 0x00];
        let mut written = [0; 14];
        assert_eq!(plain.encode(&mut written), 14);
        assert_eq!(written, bytes);
        assert_eq!(EthernetHeader::decode(&bytes), Ok((plain, 14)));

        let tag = VlanTag { priority: Class::new(3), drop_eligible: true, vlan: VlanId::checked(0x123).unwrap() };
        let tagged = EthernetHeader { tag: Some(tag), ether_type: EtherType::IPV6, ..plain };
        let bytes = [0x52, 0x54, 0, 0, 0, 2, 0x52, 0x54, 0, 0, 0, 1, 0x81, 0x00, 0x71, 0x23, 0x86, 0xdd];
        let mut written = [0; 18];
        assert_eq!(tagged.encode(&mut written), 18);
        assert_eq!(written, bytes);
        assert_eq!(EthernetHeader::decode(&bytes), Ok((tagged, 18)));
        assert_eq!(
            EthernetHeader::decode(&bytes[..15]).unwrap_err().to_string(),
            "802.1Q tag at byte 14 needs 4 bytes, found 1"
        );
    }

    proptest! {
        #[test]
        fn any_header_comes_back(bytes in any::<[u8; 18]>(), tagged in any::<bool>()) {
            let mut bytes = bytes;
            if tagged {
                bytes[12..14].copy_from_slice(&[0x81, 0]);
            }
            let (header, length) = EthernetHeader::decode(&bytes).unwrap();
            prop_assert_eq!(length, if tagged { 18 } else { header.length() });
            let mut written = [0; 18];
            prop_assert_eq!(header.encode(&mut written), length);
            prop_assert_eq!(&written[..length], &bytes[..length]);
        }
    }
}
