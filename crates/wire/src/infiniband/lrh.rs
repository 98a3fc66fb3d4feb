//! The local route header (IBTA vol. 1, 7.7), with the lane and the level that it names.
//!
//! ```text
//!    0 | VL(4) LVer(4) SL(4) 0(2) LNH(2) | destination LID      |
//!    4 | 0(5) length(11)                 | source LID           |
//! ```
//!
//! The length counts 4-byte words from the LRH to the ICRC.

use softfabric_units::Lid;
use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::bytes::{put, take};
use crate::error::DecodeError;

/// The longest packet that the length field can say, in 4-byte words.
const MAX_WORDS: u16 = 0x07ff;

/// A virtual lane: 0–15.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct VirtualLane(u8);

impl VirtualLane {
    /// VL 15, of subnet management.
    pub const MANAGEMENT: Self = Self(15);

    /// Lane `lane`, if there is one.
    pub const fn checked(lane: u8) -> Option<Self> {
        if lane < 16 { Some(Self(lane)) } else { None }
    }

    /// 0–15.
    pub const fn as_u8(self) -> u8 {
        self.0
    }
}

/// A service level: 0–15.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ServiceLevel(u8);

impl ServiceLevel {
    /// Level `level`, if there is one.
    pub const fn checked(level: u8) -> Option<Self> {
        if level < 16 { Some(Self(level)) } else { None }
    }

    /// 0–15.
    pub const fn as_u8(self) -> u8 {
        self.0
    }
}

/// LNH: what follows the LRH.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinkNext {
    /// A raw packet with an EtherType.
    RawEtherType,
    /// A raw packet with an IPv6 header.
    RawIpv6,
    /// A BTH: a local packet.
    Local,
    /// A GRH: a global packet.
    Global,
}

impl LinkNext {
    pub(super) const fn bits(self) -> u8 {
        match self {
            Self::RawEtherType => 0,
            Self::RawIpv6 => 1,
            Self::Local => 2,
            Self::Global => 3,
        }
    }

    const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::RawEtherType,
            1 => Self::RawIpv6,
            2 => Self::Local,
            _ => Self::Global,
        }
    }
}

/// The local route header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lrh {
    /// The lane that the packet takes on this link.
    pub lane: VirtualLane,
    /// The level that the packet keeps within its subnet.
    pub level: ServiceLevel,
    /// What follows.
    pub next: LinkNext,
    /// Where the packet goes.
    pub destination: Lid,
    /// The length from LRH to ICRC in 4-byte words: 11 bits.
    pub words: u16,
    /// Where the packet comes from.
    pub source: Lid,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
pub(crate) struct RawLrh {
    pub(crate) lane_version: u8,
    level_next: u8,
    destination: U16,
    words: U16,
    source: U16,
}

impl Lrh {
    /// Its length in bytes.
    pub const LENGTH: usize = 8;

    /// Writes the header to the start of `bytes` and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Lrh::LENGTH`].
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        put(bytes, 0, &self.to_raw())
    }

    pub(crate) fn to_raw(self) -> RawLrh {
        RawLrh {
            lane_version: self.lane.0 << 4,
            level_next: (self.level.0 << 4) | self.next.bits(),
            destination: U16::new(self.destination.0),
            words: U16::new(self.words & MAX_WORDS),
            source: U16::new(self.source.0),
        }
    }

    /// Reads the header at the start of `bytes`. Reserved bits are ignored.
    ///
    /// # Errors
    /// If the bytes end too early or the link version is not 0.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let raw: RawLrh = take(bytes, 0, "LRH")?;
        if raw.lane_version & 0x0f != 0 {
            return Err(DecodeError::Value {
                what: "LRH link version",
                offset: 0,
                found: u64::from(raw.lane_version & 0x0f),
                needed: "0",
            });
        }
        Ok(Self {
            lane: VirtualLane(raw.lane_version >> 4),
            level: ServiceLevel(raw.level_next >> 4),
            next: LinkNext::from_bits(raw.level_next),
            destination: Lid(raw.destination.get()),
            words: raw.words.get() & MAX_WORDS,
            source: Lid(raw.source.get()),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rdma::{Icrc, Opcode, RdmaPacket};

    /// The sample of a local packet in IBTA vol. 1, 7.8, up to its ICRC.
    #[rustfmt::skip]
    pub(in crate::infiniband) const SAMPLE: [u8; 56] = [
        0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2,
        0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a,
        0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e,
        0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00,
        0x96, 0x25, 0xb7, 0x5a,
    ];

    #[test]
    fn sample_packet() {
        let lrh = Lrh {
            lane: VirtualLane::checked(7).unwrap(),
            level: ServiceLevel::checked(1).unwrap(),
            next: LinkNext::Local,
            destination: Lid(0x375c),
            words: 14,
            source: Lid(0x17d2),
        };
        assert_eq!(Lrh::decode(&SAMPLE), Ok(lrh));
        let mut bytes = [0; 8];
        assert_eq!(lrh.encode(&mut bytes), 8);
        assert_eq!(bytes, SAMPLE[..8]);
        assert_eq!(usize::from(lrh.words) * 4, SAMPLE.len());
        let packet = RdmaPacket::decode(&SAMPLE[8..]).unwrap();
        assert_eq!(packet.header.bth.opcode, Opcode::RC_WRITE_ONLY);
        assert_eq!(packet.payload.len(), 14);
        let mut icrc = Icrc::over_lrh(&lrh);
        packet.add_to(&mut icrc);
        assert_eq!(icrc.finish(), packet.icrc);
    }

    #[test]
    fn errors_say_what_and_where() {
        assert_eq!(
            Lrh::decode(&[1; 8]).unwrap_err().to_string(),
            "LRH link version at byte 0 is 0x1, needed 0"
        );
        assert_eq!(
            Lrh::decode(&[0; 7]).unwrap_err().to_string(),
            "LRH at byte 0 needs 8 bytes, found 7"
        );
        assert_eq!(VirtualLane::checked(16), None);
        assert_eq!(ServiceLevel::checked(16), None);
    }

    proptest! {
        #[test]
        fn any_header_comes_back(bytes in any::<[u8; 8]>()) {
            let mut bytes = bytes;
            bytes[0] &= 0xf0;
            bytes[1] &= 0xf3;
            bytes[4] &= 0x07;
            let mut again = [0; 8];
            Lrh::decode(&bytes).unwrap().encode(&mut again);
            prop_assert_eq!(again, bytes);
        }

        #[test]
        fn lanes_do_not_count_in_the_icrc_but_all_else_does(bit in 0_usize..64) {
            let mut bytes = [0x70, 0x12, 0x37, 0x5c, 0, 0x0e, 0x17, 0xd2];
            let before = Icrc::over_lrh(&Lrh::decode(&bytes).unwrap()).finish();
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
            if let Ok(lrh) = Lrh::decode(&bytes) {
                let reserved = matches!(bit, 12..14 | 32..37);
                let same = Icrc::over_lrh(&lrh).finish() == before;
                prop_assert_eq!(same, bit < 4 || reserved);
            }
        }
    }
}
