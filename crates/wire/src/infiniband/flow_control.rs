//! Credits (IBTA vol. 1, 7.9): how a receiver says what it has room for, and when a sender may send.
//!
//! ```text
//!    0 | op(4) FCTBS(12) | VL(4) FCCL(12) |        LPCRC (2, lowest byte first)
//!
//!   sender                                   receiver
//!   FCTBS: blocks sent since the link came up    ABR: blocks received, or the sender's FCTBS where that is newer
//!   may send while FCCL − (FCTBS + blocks) ≤ 2048    FCCL: ABR + free blocks, at most 2048
//! ```
//!
//! All counts are of 64-byte blocks modulo 4096, per virtual lane. Because FCTBS travels with every flow-control packet,
//! a packet that was lost on the wire costs no credit for good: the next flow-control packet repairs the receiver's count.

use softfabric_units::Bytes;
use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::crc::{VCRC_LENGTH, vcrc};
use super::lrh::VirtualLane;
use crate::bytes::{put, take};
use crate::error::DecodeError;

/// What a credit stands for.
pub const BLOCK: Bytes = Bytes::new(64);

/// Counts are modulo this.
const MODULUS: u16 = 4096;
/// The most blocks that may be promised ahead.
const WINDOW: u16 = 2048;

/// Blocks that `length` bytes from LRH to VCRC take.
const fn blocks_of(length: Bytes) -> u64 {
    length.as_u64().div_ceil(BLOCK.as_u64())
}

const fn forward(from: u16, to: u16) -> u16 {
    to.wrapping_sub(from) % MODULUS
}

/// What a flow-control packet does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FlowControlOperation {
    /// Op 0: the link carries data.
    Normal,
    /// Op 1: the link is coming up.
    Initialise,
    /// An operation that the standard reserves: a receiver drops the packet.
    Reserved(u8),
}

/// A flow-control packet without its CRC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowControl {
    /// What it does.
    pub operation: FlowControlOperation,
    /// The lane that the counts are of.
    pub lane: VirtualLane,
    /// FCTBS: the blocks that its sender has sent, 12 bits.
    pub total_sent: u16,
    /// FCCL: how far the other side may count, 12 bits.
    pub limit: u16,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Raw {
    operation_sent: U16,
    lane_limit: U16,
    crc: [u8; VCRC_LENGTH],
}

impl FlowControl {
    /// Its length in bytes, LPCRC included.
    pub const LENGTH: usize = 6;

    /// The packet's bytes with a right LPCRC.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let operation = match self.operation {
            FlowControlOperation::Normal => 0,
            FlowControlOperation::Initialise => 1,
            FlowControlOperation::Reserved(code) => u16::from(code & 0xf),
        };
        let raw = Raw {
            operation_sent: U16::new((operation << 12) | (self.total_sent % MODULUS)),
            lane_limit: U16::new((u16::from(self.lane.as_u8()) << 12) | (self.limit % MODULUS)),
            crc: [0; VCRC_LENGTH],
        };
        let mut bytes = [0; Self::LENGTH];
        put(&mut bytes, 0, &raw);
        let crc = vcrc(&bytes[..4]).to_le_bytes();
        bytes[4..].copy_from_slice(&crc);
        bytes
    }

    /// Reads the packet at the start of `bytes`.
    ///
    /// # Errors
    /// If the bytes end too early or the LPCRC is wrong: the counts of a damaged packet must not be used.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let raw: Raw = take(bytes, 0, "flow-control packet")?;
        let found = u16::from_le_bytes(raw.crc);
        if found != vcrc(&bytes[..4]) {
            return Err(DecodeError::Value {
                what: "LPCRC",
                offset: 4,
                found: u64::from(found),
                needed: "the CRC of the four bytes before it",
            });
        }
        let (operation_sent, lane_limit) = (raw.operation_sent.get(), raw.lane_limit.get());
        Ok(Self {
            operation: match operation_sent >> 12 {
                0 => FlowControlOperation::Normal,
                1 => FlowControlOperation::Initialise,
                other => FlowControlOperation::Reserved(other as u8),
            },
            lane: VirtualLane::checked((lane_limit >> 12) as u8).expect("four bits are a lane"),
            total_sent: operation_sent % MODULUS,
            limit: lane_limit % MODULUS,
        })
    }
}

/// The sending side's counts of one lane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct CreditSender {
    total_sent: u16,
    limit: u16,
}

impl CreditSender {
    /// The blocks that may still be sent.
    pub const fn available(&self) -> u16 {
        let ahead = forward(self.total_sent, self.limit);
        if ahead > WINDOW { 0 } else { ahead }
    }

    /// Whether a packet of `length` bytes from LRH to VCRC may go.
    pub const fn may_send(&self, length: Bytes) -> bool {
        blocks_of(length) <= self.available() as u64
    }

    /// Counts a packet of `length` bytes that goes out.
    pub const fn sent(&mut self, length: Bytes) {
        self.total_sent = (self.total_sent + (blocks_of(length) % MODULUS as u64) as u16) % MODULUS;
    }

    /// Takes the limit of a flow-control packet that arrived.
    pub const fn granted(&mut self, limit: u16) {
        self.limit = limit % MODULUS;
    }

    /// FCTBS, for the flow-control packet that is sent the same way.
    pub const fn total_sent(&self) -> u16 {
        self.total_sent
    }
}

/// The receiving side's counts of one lane, with a buffer of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CreditReceiver {
    received: u16,
    capacity: u32,
    used: u32,
}

impl CreditReceiver {
    /// A lane whose buffer holds `capacity` bytes, rounded down to whole blocks.
    pub const fn new(capacity: Bytes) -> Self {
        Self {
            received: 0,
            capacity: (capacity.as_u64() / BLOCK.as_u64()) as u32,
            used: 0,
        }
    }

    /// Takes a packet of `length` bytes into the buffer; `false`, and nothing counted as used, where it does not fit: its
    /// sender broke the rules, and the packet is dropped.
    #[must_use]
    pub const fn arrived(&mut self, length: Bytes) -> bool {
        let blocks = blocks_of(length);
        self.received = (self.received + (blocks % MODULUS as u64) as u16) % MODULUS;
        if self.used as u64 + blocks > self.capacity as u64 {
            return false;
        }
        self.used += blocks as u32;
        true
    }

    /// Gives back the room of a packet of `length` bytes that has left.
    pub const fn released(&mut self, length: Bytes) {
        self.used = self.used.saturating_sub(blocks_of(length) as u32);
    }

    /// Counts anew from zero, as after a link has come up; the buffer holds what it holds.
    pub const fn restart(&mut self) {
        self.received = 0;
    }

    /// Takes FCTBS of a flow-control packet that arrived: whatever was lost on the way counts as received.
    pub const fn synchronise(&mut self, total_sent: u16) {
        self.received = total_sent % MODULUS;
    }

    /// FCCL for the next flow-control packet.
    pub const fn limit(&self) -> u16 {
        let free = self.capacity - self.used;
        let promised = if free > WINDOW as u32 {
            WINDOW
        } else {
            free as u16
        };
        (self.received + promised) % MODULUS
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn packet_bytes() {
        let packet = FlowControl {
            operation: FlowControlOperation::Initialise,
            lane: VirtualLane::checked(3).unwrap(),
            total_sent: 0x234,
            limit: 0xabc,
        };
        let bytes = packet.encode();
        assert_eq!(bytes[..4], [0x12, 0x34, 0x3a, 0xbc]);
        assert_eq!(FlowControl::decode(&bytes), Ok(packet));
        assert_eq!(
            FlowControl::decode(&bytes[..5]).unwrap_err().to_string(),
            "flow-control packet at byte 0 needs 6 bytes, found 5"
        );
    }

    #[test]
    fn a_sender_without_a_grant_waits() {
        let mut sender = CreditSender::default();
        assert!(!sender.may_send(Bytes::new(1)));
        sender.granted(2);
        assert!(sender.may_send(Bytes::new(128)) && !sender.may_send(Bytes::new(129)));
        sender.sent(Bytes::new(65));
        assert_eq!((sender.total_sent(), sender.available()), (2, 0));
        // A limit behind what was sent is far ahead modulo 4096: it grants nothing.
        sender.granted(1);
        assert_eq!(sender.available(), 0);
    }

    #[test]
    fn a_lost_packet_costs_credit_until_the_next_flow_control_packet() {
        let mut sender = CreditSender::default();
        let mut receiver = CreditReceiver::new(Bytes::kib(1));
        sender.granted(receiver.limit());
        sender.sent(Bytes::new(640));
        assert_eq!(sender.available(), 6);
        sender.granted(receiver.limit());
        assert_eq!(
            sender.available(),
            6,
            "the receiver has not seen the packet"
        );
        receiver.synchronise(sender.total_sent());
        sender.granted(receiver.limit());
        assert_eq!(sender.available(), 16);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut receiver = CreditReceiver::new(Bytes::new(191));
        assert!(receiver.arrived(Bytes::new(128)));
        assert!(!receiver.arrived(Bytes::new(1)));
        receiver.released(Bytes::new(128));
        assert!(receiver.arrived(Bytes::new(1)));
    }

    proptest! {
        #[test]
        fn any_packet_comes_back(bytes in any::<[u8; 4]>()) {
            let crc = vcrc(&bytes).to_le_bytes();
            let whole = [bytes[0], bytes[1], bytes[2], bytes[3], crc[0], crc[1]];
            prop_assert_eq!(FlowControl::decode(&whole).unwrap().encode(), whole);
        }

        #[test]
        fn one_wrong_bit_is_found(bytes in any::<[u8; 4]>(), bit in 0_usize..48) {
            let crc = vcrc(&bytes).to_le_bytes();
            let mut whole = [bytes[0], bytes[1], bytes[2], bytes[3], crc[0], crc[1]];
            whole[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(FlowControl::decode(&whole).is_err());
        }

        /// A sender that asks first never overruns the buffer, and all credit comes back, over many turns of the counters.
        #[test]
        fn credits_are_conserved(
            capacity in 1_u64..6000,
            steps in proptest::collection::vec((0_u8..4, 1_u64..4200), 1..400),
        ) {
            let mut sender = CreditSender::default();
            let mut receiver = CreditReceiver::new(Bytes::new(capacity * 64));
            let mut held = std::collections::VecDeque::new();
            for (what, length) in steps {
                let length = Bytes::new(length);
                match what {
                    0 | 1 if sender.may_send(length) => {
                        sender.sent(length);
                        prop_assert!(receiver.arrived(length));
                        held.push_back(length);
                    }
                    2 => if let Some(length) = held.pop_front() { receiver.released(length) },
                    _ => {
                        receiver.synchronise(sender.total_sent());
                        sender.granted(receiver.limit());
                    }
                }
            }
            held.into_iter().for_each(|length| receiver.released(length));
            sender.granted(receiver.limit());
            prop_assert_eq!(u64::from(sender.available()), capacity.min(2048));
        }
    }
}
