//! The receiving half: order, windows, and when to acknowledge what.

use std::collections::VecDeque;

use softfabric_units::{Span, Time};

use super::Base;
use crate::tcp::TcpConfig;
use crate::tcp::ranges::Ranges;

/// What has arrived, and what the other end is owed.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// RCV.NXT.
    next: u64,
    /// What the application has read.
    consumed: u64,
    buffer: u64,
    segment: u64,
    shift: u8,
    /// The right edge of the window that was announced; it never moves left (RFC 9293, 3.8.6).
    edge: u64,
    ahead: Ranges,
    /// A position of each of the ranges that changed last, the latest first.
    recent: Vec<u64>,
    /// Bytes in order since the last acknowledgement.
    unacknowledged: u64,
    /// RCV.NXT as the other end knows it.
    acknowledged: u64,
    delay: Option<Span>,
    deadline: Option<Time>,
    /// An acknowledgement is owed now.
    now: bool,
    /// And before it those of these positions, with these echoes: each time, the state of marks has changed since (RFC 8257,
    /// 3.2). Several, where several segments are taken in before anything is sent.
    before: VecDeque<(u64, bool)>,
    /// Data that was pushed waits to be read, and to be acknowledged then.
    pushed: bool,
    /// ECN-Echo: with plain ECN until the other end says that it has reduced its window, with DCTCP what the last packet had.
    pub(super) echo: bool,
    /// TS.Recent (RFC 7323, 4.3).
    pub(super) recent_timestamp: u32,
}

/// What a segment says of congestion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// It was marked.
    pub(super) congestion: bool,
    /// Its sender has reduced its window (CWR).
    pub(super) reduced: bool,
    /// Echoes are to be exact, as DCTCP wants them.
    pub(super) accurate: bool,
}

/// What became of a segment's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Some of it is next in the stream.
    InOrder,
    /// It is kept until the hole before it is filled.
    Ahead,
    /// It was all there before, or does not fit the window.
    Duplicate,
}

/// How many ranges are remembered by when they changed: more than any header reports.
const REMEMBERED: usize = 4;

impl Receiver {
    pub(super) fn new(config: &TcpConfig, segment: u64) -> Self {
        Self {
            next: 1,
            consumed: 1,
            buffer: config.receive_buffer.as_u64(),
            segment,
            shift: 0,
            edge: 1,
            ahead: Ranges::default(),
            recent: Vec::new(),
            unacknowledged: 0,
            acknowledged: 1,
            delay: config.delayed_acknowledgement,
            deadline: None,
            now: false,
            before: VecDeque::new(),
            pushed: false,
            echo: false,
            recent_timestamp: 0,
        }
    }

    pub(super) fn agree(&mut self, segment: u64, shift: u8) {
        self.segment = segment;
        self.shift = shift;
    }

    /// The position of a sequence number of the other end, whose SYN has number `initial`.
    pub(super) fn position(&self, number: u32, initial: u32) -> u64 {
        Base::new(self.next, initial).position(number)
    }

    /// Whether the last acknowledgement was of `position` or a later one.
    pub(super) fn has_acknowledged(&self, position: u64) -> bool {
        position <= self.acknowledged
    }

    pub(super) fn readable(&self) -> u64 {
        self.next - self.consumed
    }

    pub(super) fn received(&self) -> u64 {
        self.next - 1
    }

    /// The data of a segment, `length` bytes from `start` on.
    pub(super) fn take(
        &mut self,
        now: Time,
        start: u64,
        length: u64,
        marks: Marks,
        pushed: bool,
    ) -> Outcome {
        self.note_marks(marks);
        let end = start + length;
        if end <= self.next || end > self.edge {
            self.now = true;
            return Outcome::Duplicate;
        }
        self.pushed |= pushed;
        if start > self.next {
            let merged = self.ahead.insert(start, end);
            self.recent
                .retain(|&known| !(merged.0..merged.1).contains(&known));
            self.recent.insert(0, start);
            self.recent.truncate(REMEMBERED);
            self.now = true;
            return Outcome::Ahead;
        }
        // RFC 5681, 4.2: what fills a hole, all or a part of it, is acknowledged at once.
        let fills = !self.ahead.is_empty();
        let before = self.next;
        // A merged segment may reach over several ranges.
        self.next = self.ahead.insert(before, end).1;
        self.ahead.remove_below(self.next);
        self.recent.retain(|&known| known >= self.next);
        self.unacknowledged += self.next - before;
        if fills || self.delay.is_none() || self.unacknowledged >= 2 * self.segment {
            self.now = true;
        } else if let Some(delay) = self.delay {
            self.deadline.get_or_insert(now + delay);
        }
        Outcome::InOrder
    }

    fn note_marks(&mut self, marks: Marks) {
        if !marks.accurate {
            self.echo = (self.echo && !marks.reduced) || marks.congestion;
        } else if marks.congestion != self.echo {
            let told = self.before.back().map(|(position, _)| *position);
            if self.next > told.unwrap_or(self.next - self.unacknowledged) {
                self.before.push_back((self.next, self.echo));
            }
            self.echo = marks.congestion;
        }
    }

    pub(super) fn read(&mut self, bytes: u64) {
        self.consumed = (self.consumed + bytes).min(self.next);
        if self.consumed == self.next && self.pushed {
            self.pushed = false;
            self.now |= self.unacknowledged > 0;
        }
        // The other end hears of a window that has become twice as large as it knows, if that is worth a segment.
        let known = self.edge.saturating_sub(self.next);
        let room = self.room();
        if room >= 2 * known && room >= self.segment.min(self.buffer / 2) && room > known {
            self.now = true;
        }
    }

    fn room(&self) -> u64 {
        self.buffer.saturating_sub(self.next - self.consumed)
    }

    pub(super) fn acknowledge_now(&mut self) {
        self.now = true;
    }

    /// The next acknowledgement that goes before all others, if there is one: its position and its echo.
    pub(super) fn owed_before(&mut self) -> Option<(u64, bool)> {
        let before = self.before.pop_front()?;
        self.unacknowledged = self.next - before.0;
        self.acknowledged = before.0;
        Some(before)
    }

    /// The acknowledgement that is owed now, if one is.
    pub(super) fn owed(&mut self) -> Option<(u64, bool)> {
        self.now.then(|| (self.acknowledges(), self.echo))
    }

    /// What a segment that leaves now acknowledges; nothing is owed any more.
    pub(super) fn acknowledges(&mut self) -> u64 {
        self.now = false;
        self.deadline = None;
        self.unacknowledged = 0;
        self.acknowledged = self.next;
        self.next
    }

    /// The window field of a segment that leaves now.
    pub(super) fn announce(&mut self) -> u16 {
        let room = (self.room() >> self.shift).min(0xffff) << self.shift;
        self.edge = self.edge.max(self.next + room);
        let window = (self.edge - self.next) >> self.shift;
        window.min(0xffff) as u16
    }

    /// The same with SYN, where nothing is shifted.
    pub(super) fn announce_unscaled(&mut self) -> u16 {
        let room = self.room().min(0xffff);
        self.edge = self.edge.max(self.next + room);
        room as u16
    }

    /// Up to `most` ranges that have arrived ahead, the one that changed last first (RFC 2018, 4).
    pub(super) fn blocks(&self, most: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let recent = self.recent.iter();
        recent
            .filter_map(|&position| self.ahead.around(position))
            .take(most)
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.now = true;
        }
    }
}
