//! What travels: packets as a switch sees them, and the frames by which links are paused or granted credit.

use softfabric_units::{Class, PartitionKey, Time};

/// Room for the longest transport header of a simulated flow: a write with immediate has 32 bytes. Atomic operations have
/// 40 and more; no flow does any.
pub(crate) const HEADER_ROOM: usize = 35;

/// A packet on a link or in a queue: what switches look at, and the transport header as its own wire bytes, so that the
/// simulator carries exactly what the real adapter would send. `Copy`, and one cache line: kept by value in rings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// When the receiving node handles it.
    pub(crate) time: Time,
    /// Where it goes: an index into the routing's destinations; of a multicast packet, its group.
    pub(crate) destination: u32,
    /// Whose it is.
    pub(crate) flow: u32,
    /// What ECMP tells flows by: a hash over addresses and ports. In an InfiniBand switch, which tells no flows, the
    /// copies of a multicast packet have the place that they share: see [`Frame::share`].
    pub(crate) entropy: u32,
    /// Bytes that buffers count: from the Ethernet header to the FCS.
    pub(crate) length: u16,
    /// Payload bytes of the transport packet.
    pub(crate) payload: u16,
    /// The port by which it came into the switch that holds it.
    pub(crate) ingress: u16,
    /// Its traffic class, as the last node told it.
    pub(crate) class: Class,
    /// Its DSCP; on InfiniBand, the service level and the lane: see [`Frame::lane`].
    pub(crate) mark: u8,
    /// See the constants of [`Flags`].
    pub(crate) flags: Flags,
    /// The transport header, encoded.
    pub(crate) header: [u8; HEADER_ROOM],
}

impl Frame {
    /// The InfiniBand lane by which it came.
    #[inline]
    pub(crate) const fn lane(&self) -> u8 {
        self.mark & 0xf
    }

    /// Its InfiniBand service level.
    #[inline]
    pub(crate) const fn service_level(&self) -> u8 {
        self.mark >> 4
    }

    /// The number of the place in a switch's buffer that it shares with the other copies of a multicast packet.
    #[inline]
    pub(crate) const fn share(&self) -> u32 {
        self.entropy
    }

    /// Goes on by `lane`. Counters tell eight lanes apart.
    #[inline]
    pub(crate) fn set_lane(&mut self, lane: u8) {
        self.mark = self.mark & 0xf0 | lane;
        self.class = Class::new(lane & 7);
    }

    /// Marks it as having met congestion: FECN of its BTH, which the invariant CRC leaves out (IBTA vol. 1, A10.3.2).
    #[inline]
    pub(crate) fn set_fecn(&mut self) {
        self.header[FECN_BYTE] |= FECN;
    }

    /// The destination queue pair of its BTH (IBTA vol. 1, 9.2).
    pub(crate) const fn queue_pair(&self) -> u32 {
        let at = QUEUE_PAIR_BYTE;
        u32::from_be_bytes([0, self.header[at], self.header[at + 1], self.header[at + 2]])
    }

    /// The key of the partition that it is sent in.
    pub(crate) const fn partition(&self) -> PartitionKey {
        let [high, low] = [self.header[KEY_BYTE], self.header[KEY_BYTE + 1]];
        PartitionKey(u16::from_be_bytes([high, low]))
    }
}

/// Where a BTH has the destination queue pair.
const QUEUE_PAIR_BYTE: usize = 5;
/// Where a BTH has the partition key.
const KEY_BYTE: usize = 2;
/// Where a BTH has FECN.
const FECN_BYTE: usize = 4;
const FECN: u8 = 0x80;

/// Facts of one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Flags(u8);

impl Flags {
    /// ECN-capable (ECT).
    pub(crate) const ECN_CAPABLE: Self = Self(1);
    /// Congestion experienced (CE).
    pub(crate) const MARKED: Self = Self(2);
    /// From the flow's receiver to its sender.
    pub(crate) const REVERSE: Self = Self(4);
    /// A bit was damaged on the last link.
    pub(crate) const DAMAGED: Self = Self(8);
    /// RoCEv1: no IP header, not routable.
    pub(crate) const UNROUTABLE: Self = Self(16);
    /// InfiniBand's, to a multicast group.
    pub(crate) const MULTICAST: Self = Self(32);

    pub(crate) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) fn set(&mut self, flag: Self) {
        self.0 |= flag.0;
    }

    /// `flag` where `condition` holds, nothing elsewhere.
    #[must_use]
    pub(crate) const fn with(self, flag: Self, condition: bool) -> Self {
        if condition {
            Self(self.0 | flag.0)
        } else {
            self
        }
    }
}

/// A frame between the two ends of a link, which no switch passes on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Control {
    /// Ethernet's: stop, or go on.
    Pause(PauseFrame),
    /// InfiniBand's: how far the sender of a lane may count.
    Credit(CreditFrame),
}

impl Control {
    /// When the receiving end has it.
    #[inline]
    pub(crate) const fn time(&self) -> Time {
        match self {
            Self::Pause(frame) => frame.time,
            Self::Credit(frame) => frame.time,
        }
    }

    pub(crate) const fn is_pause_frame(&self) -> bool {
        matches!(self, Self::Pause(_))
    }
}

/// A flow-control packet on the wire, delimiters included.
pub(crate) const CREDIT_LENGTH: u32 = 8;

/// A flow-control packet for one lane (IBTA vol. 1, 7.9.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreditFrame {
    /// When the receiving end has it.
    pub(crate) time: Time,
    /// The data lane, 0–14.
    pub(crate) lane: u8,
    /// FCTBS: what this end has sent of the lane, in blocks.
    pub(crate) total_sent: u16,
    /// FCCL, in blocks.
    pub(crate) limit: u16,
}

/// A PFC frame for one class (802.1Qbb).
#[derive(Clone, Copy, Debug)]
pub(crate) struct PauseFrame {
    /// When the receiving MAC has it.
    pub(crate) time: Time,
    /// The class that it pauses or lets go on.
    pub(crate) class: Class,
    /// What it asks for.
    pub(crate) request: PauseRequest,
}

/// What a pause frame asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PauseRequest {
    /// Go on.
    Resume,
    /// Wait for so many quanta of 512 bit times.
    Quanta(u16),
    /// Wait until a resume frame comes. On the wire: the longest time.
    UntilResume,
}

impl PauseRequest {
    pub(crate) const fn is_pause(self) -> bool {
        !matches!(self, Self::Resume)
    }
}

#[cfg(test)]
impl Frame {
    /// For tests: 100 bytes of class 0, everything else zero.
    pub(crate) fn blank() -> Self {
        Self {
            time: Time::ZERO,
            destination: 0,
            flow: 0,
            entropy: 0,
            length: 100,
            payload: 0,
            ingress: 0,
            class: Class::new(0),
            mark: 0,
            flags: Flags::default(),
            header: [0; HEADER_ROOM],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_stays_small() {
        assert_eq!(size_of::<Frame>(), 64);
    }

    #[test]
    fn a_marked_frame_has_fecn_and_nothing_else_changed() {
        use softfabric_units::Qpn;
        use softfabric_wire::rdma::TransportHeader;
        let header =
            TransportHeader::congestion_notification(Qpn::new(0x12_3456), PartitionKey::DEFAULT);
        let mut frame = Frame::blank();
        header.encode(&mut frame.header);
        frame.set_fecn();
        assert_eq!(frame.partition(), PartitionKey::DEFAULT);
        assert_eq!(frame.queue_pair(), 0x12_3456);
        let (found, _) = TransportHeader::decode(&frame.header).unwrap();
        let mut expected = header;
        expected.bth.fecn = true;
        assert_eq!(found, expected);
    }
}
