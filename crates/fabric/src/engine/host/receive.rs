//! The path from the link to memory: as fast as the link, or slower, with a buffer that pauses the switch.

use std::collections::VecDeque;

use softfabric_units::{Bytes, Rate, Time};

use crate::engine::frame::Frame;
use crate::plan::ReceivePath;

/// The receive side of a NIC.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    settings: ReceivePath,
    waiting: VecDeque<Frame>,
    bytes: u64,
}

impl ReceiveBuffer {
    pub(super) fn new(settings: ReceivePath) -> Self {
        Self {
            settings,
            waiting: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Memory is fast and nothing waits.
    #[inline]
    pub(super) fn takes_at_once(&self) -> bool {
        self.settings.drain.is_none() && self.waiting.is_empty()
    }

    pub(super) fn has_room(&self, frame: &Frame) -> bool {
        self.bytes + u64::from(frame.length) <= self.settings.buffer.as_u64()
    }

    /// Puts a packet into the buffer: when memory will have taken it, if it is the only one.
    pub(super) fn push(&mut self, now: Time, frame: Frame) -> Option<Time> {
        self.bytes += u64::from(frame.length);
        self.waiting.push_back(frame);
        if self.waiting.len() == 1 {
            self.next_done(now)
        } else {
            None
        }
    }

    /// Memory has taken the first packet.
    pub(super) fn pop(&mut self) -> Option<Frame> {
        let frame = self.waiting.pop_front()?;
        self.bytes -= u64::from(frame.length);
        Some(frame)
    }

    /// When memory will have taken the first packet, if it starts now. A stopped memory never will.
    pub(super) fn next_done(&self, now: Time) -> Option<Time> {
        let first = self.waiting.front()?;
        let length = Bytes::new(u64::from(first.length));
        let done = match self.settings.drain {
            Some(rate) => now.saturating_add(rate.time_for(length)),
            None => now,
        };
        (done != Time::NEVER).then_some(done)
    }

    /// Memory becomes faster or slower: when the first packet will be taken, if it was stuck until now.
    pub(super) fn set_drain(&mut self, now: Time, drain: Option<Rate>) -> Option<Time> {
        let stuck = self.settings.drain == Some(Rate::ZERO);
        self.settings.drain = drain;
        if stuck { self.next_done(now) } else { None }
    }

    pub(super) fn is_over_xoff(&self) -> bool {
        self.bytes > self.settings.xoff.as_u64()
    }

    pub(super) fn is_under_xon(&self) -> bool {
        self.bytes <= self.settings.xon.as_u64()
    }

    /// Packets that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use softfabric_units::Class;

    use super::*;

    fn frame(length: u16) -> Frame {
        Frame {
            length,
            class: Class::new(3),
            mark: 24,
            ..Frame::blank()
        }
    }

    #[test]
    fn a_slow_memory_takes_one_packet_after_another() {
        let settings = ReceivePath {
            drain: Some(Rate::gbps(8)),
            buffer: Bytes::new(2_500),
            xoff: Bytes::new(1_500),
            xon: Bytes::new(500),
        };
        let mut buffer = ReceiveBuffer::new(settings);
        assert!(!buffer.takes_at_once());
        assert_eq!(
            buffer.push(Time::ZERO, frame(1_000)),
            Some(Time::from_nanos(1_000))
        );
        assert!(!buffer.is_over_xoff());
        assert_eq!(
            buffer.push(Time::ZERO, frame(1_000)),
            None,
            "it waits for the first"
        );
        assert!(
            buffer.is_over_xoff()
                && !buffer.has_room(&frame(1_000))
                && buffer.has_room(&frame(500))
        );
        assert!(buffer.pop().is_some());
        assert_eq!(
            buffer.next_done(Time::from_nanos(1_000)),
            Some(Time::from_nanos(2_000))
        );
        assert!(!buffer.is_under_xon());
        assert!(buffer.pop().is_some() && buffer.is_under_xon() && buffer.pop().is_none());
    }

    #[test]
    fn a_stopped_memory_starts_again() {
        let settings = ReceivePath {
            drain: Some(Rate::ZERO),
            buffer: Bytes::new(2_500),
            xoff: Bytes::new(1_500),
            xon: Bytes::new(500),
        };
        let mut buffer = ReceiveBuffer::new(settings);
        assert_eq!(buffer.push(Time::ZERO, frame(1_000)), None);
        assert_eq!(
            buffer.set_drain(Time::from_nanos(5), None),
            Some(Time::from_nanos(5))
        );
    }
}
