//! The credits of a port: what it may send on each lane, and what it grants the other end.
//!
//! ```text
//! sender.may_send ──► packet ──► receiver.arrived … released ──► announced, once enough has become free ──► sender.granted
//! ```
//!
//! Invariant: a packet that was sent with credit finds room. What a link damages arrives here all the same, and is
//! counted; so the counts of both ends agree without the repair by FCTBS (IBTA vol. 1, 7.9.4.3).

use softfabric_units::{Bytes, Time};
use softfabric_wire::infiniband::{BLOCK, CreditReceiver, CreditSender};

use super::arbiter::LaneMask;
use crate::engine::frame::CreditFrame;
use crate::plan::Lanes;

/// The longest packet: 4096 B of payload, and every header that there may be (IBTA vol. 1, 7.7.8 and 9.2).
const LONGEST: u64 = 4096 + 126;

/// The credits of all lanes of a port, in both directions.
#[derive(Clone, Debug)]
pub(crate) struct Credits {
    lanes: Box<[Lane]>,
    /// Lanes whose limit is to be told to the other end.
    announced: LaneMask,
}

#[derive(Clone, Debug)]
struct Lane {
    sender: CreditSender,
    receiver: CreditReceiver,
    /// Bytes that have become free and were not granted anew.
    owed: u64,
    /// So many of them are granted at once.
    batch: u64,
    used: u64,
    peak: u64,
}

impl Credits {
    /// The credits of a port with these lanes, which nothing has been granted yet.
    pub(crate) fn new(lanes: &Lanes) -> Self {
        let buffer = lanes.buffer.as_u64();
        // A quarter of the buffer, or a packet: seldom, and early enough that a sender never waits for what is free.
        let batch = (buffer / 4)
            .min(LONGEST)
            .min(buffer.saturating_sub(LONGEST));
        let lane = Lane {
            sender: CreditSender::default(),
            receiver: CreditReceiver::new(lanes.buffer),
            owed: 0,
            batch: batch.max(1),
            used: 0,
            peak: 0,
        };
        Self {
            lanes: vec![lane; usize::from(lanes.count)].into(),
            announced: 0,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// The limits that the other end begins with.
    pub(crate) fn limits(&self) -> impl Iterator<Item = u16> + '_ {
        self.lanes.iter().map(|lane| lane.receiver.limit())
    }

    /// The other end lets this one count as far as `limit`.
    pub(crate) fn granted(&mut self, lane: u8, limit: u16) {
        if let Some(lane) = self.lanes.get_mut(usize::from(lane)) {
            lane.sender.granted(limit);
        }
    }

    /// Whether a packet of so many bytes may go.
    #[inline]
    pub(crate) fn may_send(&self, lane: u8, length: u32) -> bool {
        let length = Bytes::new(u64::from(length));
        let lane = self.lanes.get(usize::from(lane));
        lane.is_some_and(|lane| lane.sender.may_send(length))
    }

    /// A packet goes.
    #[inline]
    pub(crate) fn sent(&mut self, lane: u8, length: u32) {
        let length = Bytes::new(u64::from(length));
        self.lanes[usize::from(lane)].sender.sent(length);
    }

    /// A packet has come; `false` where there is no room for it.
    #[inline]
    pub(crate) fn arrived(&mut self, lane: u8, length: u32) -> bool {
        let Some(lane) = self.lanes.get_mut(usize::from(lane)) else {
            return false;
        };
        let took = lane.receiver.arrived(Bytes::new(u64::from(length)));
        if took {
            lane.used += blocks(length);
            lane.peak = lane.peak.max(lane.used);
        }
        took
    }

    /// A packet has left the buffer. True if the other end is to be told now.
    #[inline]
    pub(crate) fn released(&mut self, lane: u8, length: u32) -> bool {
        let at = &mut self.lanes[usize::from(lane)];
        at.receiver.released(Bytes::new(u64::from(length)));
        at.used -= blocks(length);
        at.owed += blocks(length) * BLOCK.as_u64();
        if at.owed < at.batch {
            return false;
        }
        self.announced |= 1 << lane;
        true
    }

    /// The next limit to tell, if there is one.
    pub(crate) fn next_announcement(&mut self) -> Option<CreditFrame> {
        if self.announced == 0 {
            return None;
        }
        let lane = self.announced.trailing_zeros() as u8;
        self.announced &= self.announced - 1;
        let at = &mut self.lanes[usize::from(lane)];
        at.owed = 0;
        Some(CreditFrame {
            time: Time::NEVER,
            lane,
            total_sent: at.sender.total_sent(),
            limit: at.receiver.limit(),
        })
    }

    /// Whether there is a limit to tell.
    #[inline]
    pub(crate) fn has_announcements(&self) -> bool {
        self.announced != 0
    }

    /// The link fails: nothing may be sent, and both counts begin anew. What the buffer holds, it holds.
    pub(crate) fn reset(&mut self) {
        self.announced = 0;
        for lane in &mut self.lanes {
            lane.sender = CreditSender::default();
            lane.receiver.restart();
            lane.owed = 0;
        }
    }

    /// The link has come up: the other end is told what there is room for.
    pub(crate) fn announce_all(&mut self) {
        self.announced = ((1_u32 << self.lanes.len()) - 1) as LaneMask;
    }

    /// Bytes that a lane's buffer holds, in whole blocks.
    pub(crate) fn held(&self, lane: usize) -> u64 {
        self.lanes[lane].used * BLOCK.as_u64()
    }

    /// The most that a lane's buffer has held.
    pub(crate) fn peak(&self, lane: usize) -> u64 {
        self.lanes[lane].peak * BLOCK.as_u64()
    }
}

/// The blocks that a packet of so many bytes takes.
pub(crate) const fn blocks(length: u32) -> u64 {
    (length as u64).div_ceil(BLOCK.as_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_granted_before_a_sender_waits_for_it() {
        for buffer in [4300_u64, 8192, 16 << 10, 128 << 10] {
            let lanes = Lanes::alike(2, Bytes::new(buffer));
            let (mut here, mut there) = (Credits::new(&lanes), Credits::new(&lanes));
            for (lane, limit) in (0..).zip(there.limits()) {
                here.granted(lane, limit);
            }
            for packet in 0..10_000_u32 {
                let length = if packet % 7 == 0 { 30 } else { 4126 };
                assert!(here.may_send(1, length), "{buffer}: packet {packet}");
                here.sent(1, length);
                assert!(there.arrived(1, length));
                there.released(1, length);
                while let Some(credit) = there.next_announcement() {
                    here.granted(credit.lane, credit.limit);
                }
            }
            assert_eq!(there.held(1), 0);
            assert_eq!(there.peak(1), 65 * 64);
        }
    }

    #[test]
    fn a_link_that_comes_back_begins_anew_with_what_is_free() {
        let lanes = Lanes::alike(1, Bytes::new(8192));
        let (mut here, mut there) = (Credits::new(&lanes), Credits::new(&lanes));
        here.granted(0, there.limits().next().unwrap());
        here.sent(0, 4096);
        assert!(there.arrived(0, 4096));
        here.reset();
        there.reset();
        assert!(!here.may_send(0, 1), "nothing is granted");
        there.announce_all();
        let credit = there.next_announcement().unwrap();
        here.granted(0, credit.limit);
        assert!(here.may_send(0, 4096) && !here.may_send(0, 4097));
    }
}
