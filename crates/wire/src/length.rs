//! How many bytes a RoCE packet is on the line.
//!
//! ```text
//! preamble, SFD (8) | Ethernet (14, with tag 18) | network | headers | payload, pad | ICRC (4) | FCS (4) | gap (12)
//!                   '---------------- at least 64 bytes: the frame ------------------------------------'
//! ```

use softfabric_units::Bytes;

use crate::ethernet::{EthernetHeader, FCS_LENGTH, PauseFrame, PfcFrame, VlanTag};
use crate::ip::{Ipv4Header, Ipv6Header};
use crate::rdma::{Grh, ICRC_LENGTH, Opcode, pad_of};
use crate::udp::UdpHeader;

/// Preamble, start of frame and the shortest gap between frames: what a frame costs beside its own bytes.
pub const PREAMBLE_AND_GAP: Bytes = Bytes::new(20);

/// The shortest frame, with FCS.
pub const MIN_FRAME: Bytes = Bytes::new((EthernetHeader::MIN_FRAME + FCS_LENGTH) as u64);

/// A PAUSE or PFC frame with FCS: both are padded to the shortest.
pub const PAUSE_FRAME: Bytes = MIN_FRAME;
const _: () = assert!(EthernetHeader::LENGTH + PfcFrame::LENGTH <= EthernetHeader::MIN_FRAME);
const _: () = assert!(EthernetHeader::LENGTH + PauseFrame::LENGTH <= EthernetHeader::MIN_FRAME);

/// What carries the BTH in an Ethernet frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Encapsulation {
    /// GRH.
    RoceV1,
    /// IPv4 and UDP.
    RoceV2Ipv4,
    /// IPv6 and UDP.
    RoceV2Ipv6,
}

impl Encapsulation {
    /// The bytes between Ethernet header and BTH.
    #[inline]
    pub const fn header_length(self) -> usize {
        match self {
            Self::RoceV1 => Grh::LENGTH,
            Self::RoceV2Ipv4 => Ipv4Header::LENGTH + UdpHeader::LENGTH,
            Self::RoceV2Ipv6 => Ipv6Header::LENGTH + UdpHeader::LENGTH,
        }
    }

    /// What a frame of `opcode` costs beside payload and pad, with FCS.
    #[inline]
    pub const fn overhead(self, tagged: bool, opcode: Opcode) -> Bytes {
        let ethernet = EthernetHeader::LENGTH + if tagged { VlanTag::LENGTH } else { 0 };
        let rdma = opcode.header_length() + ICRC_LENGTH;
        Bytes::new((ethernet + self.header_length() + rdma + FCS_LENGTH) as u64)
    }

    /// The frame of a packet of `opcode` with `payload` bytes, with pad, padding and FCS: what a switch stores.
    #[inline]
    pub const fn frame_length(self, tagged: bool, opcode: Opcode, payload: Bytes) -> Bytes {
        let padded = payload.as_u64() + pad_of(payload.as_u64() as usize) as u64;
        let length = self.overhead(tagged, opcode).as_u64() + padded;
        if length < MIN_FRAME.as_u64() {
            MIN_FRAME
        } else {
            Bytes::new(length)
        }
    }

    /// The frame with preamble and gap: what the line is busy for.
    #[inline]
    pub const fn line_length(self, tagged: bool, opcode: Opcode, payload: Bytes) -> Bytes {
        let frame = self.frame_length(tagged, opcode, payload);
        Bytes::new(frame.as_u64() + PREAMBLE_AND_GAP.as_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_by_hand() {
        let payload = Bytes::new(1024);
        // 14 + 20 + 8 + 12 + 1024 + 4 + 4
        let frame = |encapsulation: Encapsulation, tagged, opcode, payload| {
            encapsulation.frame_length(tagged, opcode, payload).as_u64()
        };
        let v4 = Encapsulation::RoceV2Ipv4;
        assert_eq!(frame(v4, false, Opcode::RC_WRITE_MIDDLE, payload), 1086);
        assert_eq!(frame(v4, true, Opcode::RC_WRITE_MIDDLE, payload), 1090);
        assert_eq!(frame(v4, false, Opcode::RC_WRITE_FIRST, payload), 1102);
        let v6 = Encapsulation::RoceV2Ipv6;
        assert_eq!(frame(v6, false, Opcode::RC_WRITE_MIDDLE, payload), 1106);
        let v1 = Encapsulation::RoceV1;
        assert_eq!(frame(v1, false, Opcode::RC_WRITE_MIDDLE, payload), 1098);
        // One byte is padded to four: 62 + 4.
        assert_eq!(frame(v4, false, Opcode::RC_SEND_ONLY, Bytes::new(1)), 66);
        // 62 bytes are less than Ethernet's shortest frame.
        assert_eq!(frame(v4, false, Opcode::RC_SEND_ONLY, Bytes::ZERO), 64);
        assert_eq!(frame(v4, false, Opcode::RC_ACKNOWLEDGE, Bytes::ZERO), 66);
        assert_eq!(frame(v4, false, Opcode::CNP, Bytes::ZERO), 78);
        assert_eq!(
            v4.line_length(false, Opcode::RC_WRITE_MIDDLE, payload),
            Bytes::new(1106)
        );
    }
}
