//! The reliable multi-packet protocol: messages longer than a datagram (IBTA vol. 1, 13.6), without I/O and clock.
//!
//! ```text
//!   sender                                receiver
//!   DATA 1 (first, total length) ───────►
//!                                ◄─────── ACK 1, window to 33
//!   DATA 2 … 33                  ───────►
//!                                ◄─────── ACK 33, window to 65
//!   DATA … n (last, its length)  ───────►
//!                                ◄─────── ACK n
//! ```
//!
//! Each segment repeats the class's header, and lengths count it. A side that cannot go on sends ABORT or STOP, and the
//! transfer is over. Whatever arrives, state and memory stay bounded by what the caller allows.

use softfabric_units::{Span, Time};
use zerocopy::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::bytes::{put, take};
use crate::error::DecodeError;
use crate::mad::{MAD_LENGTH, MadHeader, table::codes};

/// Where the class's header starts: lengths count from here.
const CLASS_HEADER: usize = MadHeader::LENGTH + RmppHeader::LENGTH;
/// How many segments a receiver lets come before it acknowledges.
const WINDOW: u32 = 32;
/// "No opinion" on response times.
const NO_RESPONSE_TIME: u8 = 31;

codes! {
    /// What a segment is.
    RmppKind(u8) {
        /// Not a part of a transfer.
        NONE = 0,
        /// Data.
        DATA = 1,
        /// An acknowledgement.
        ACK = 2,
        /// The sender may not go on: no room.
        STOP = 3,
        /// The transfer failed.
        ABORT = 4,
    }

    /// Why a transfer ended (IBTA vol. 1, table 122).
    RmppStatus(u8) {
        /// It has not.
        NORMAL = 0,
        /// No room.
        RESOURCES_EXHAUSTED = 1,
        /// It took too long.
        TOTAL_TIME = 118,
        /// The last segment has a length that it cannot have.
        INCONSISTENT_LAST_LENGTH = 119,
        /// First and last segment disagree about the length.
        INCONSISTENT_FIRST = 120,
        /// A kind that does not exist.
        BAD_KIND = 121,
        /// The window ends before the acknowledged segment.
        WINDOW_TOO_SMALL = 122,
        /// An acknowledgement of what was never sent.
        SEGMENT_TOO_BIG = 123,
        /// A status that the kind cannot have.
        ILLEGAL_STATUS = 124,
        /// Another version.
        UNSUPPORTED_VERSION = 125,
        /// Sent again too often.
        TOO_MANY_RETRIES = 126,
    }
}

/// The header of a segment: 12 bytes after the MAD header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RmppHeader {
    /// 1.
    pub version: u8,
    /// What it is.
    pub kind: RmppKind,
    /// 4.096 µs · 2ⁿ, or 31 for none.
    pub response_time: u8,
    /// The protocol is in use.
    pub active: bool,
    /// The first segment.
    pub first: bool,
    /// The last.
    pub last: bool,
    /// Why it ended.
    pub status: RmppStatus,
    /// The segment, from 1; of an acknowledgement, the last one in order.
    pub segment: u32,
    /// Of data, the length; of an acknowledgement, the segment that the window ends with.
    pub length: u32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Raw {
    version: u8,
    kind: u8,
    time_flags: u8,
    status: u8,
    segment: U32,
    length: U32,
}

impl RmppHeader {
    /// Its length in bytes.
    pub const LENGTH: usize = 12;

    /// Of datagrams that are no part of a transfer.
    pub const NONE: Self = Self {
        version: 0,
        kind: RmppKind::NONE,
        response_time: 0,
        active: false,
        first: false,
        last: false,
        status: RmppStatus::NORMAL,
        segment: 0,
        length: 0,
    };

    const fn of(kind: RmppKind, segment: u32, length: u32) -> Self {
        Self {
            version: 1,
            kind,
            response_time: NO_RESPONSE_TIME,
            active: true,
            segment,
            length,
            ..Self::NONE
        }
    }

    /// Writes the header to the start of `bytes` and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`RmppHeader::LENGTH`].
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        let raw = Raw {
            version: self.version,
            kind: self.kind.0,
            time_flags: self.response_time << 3
                | u8::from(self.last) << 2
                | u8::from(self.first) << 1
                | u8::from(self.active),
            status: self.status.0,
            segment: U32::new(self.segment),
            length: U32::new(self.length),
        };
        put(bytes, 0, &raw)
    }

    /// Reads the header of the datagram `mad`.
    ///
    /// # Errors
    /// If the bytes end too early.
    pub fn decode(mad: &[u8]) -> Result<Self, DecodeError> {
        let raw: Raw = take(mad, MadHeader::LENGTH, "RMPP header")?;
        Ok(Self {
            version: raw.version,
            kind: RmppKind(raw.kind),
            response_time: raw.time_flags >> 3,
            active: raw.time_flags & 1 != 0,
            first: raw.time_flags & 2 != 0,
            last: raw.time_flags & 4 != 0,
            status: RmppStatus(raw.status),
            segment: raw.segment.get(),
            length: raw.length.get(),
        })
    }
}

/// How patient a sender is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RmppPatience {
    /// How long to wait for an acknowledgement.
    pub timeout: Span,
    /// How often to send again without progress.
    pub retries: u32,
}

/// The sending side of one transfer.
#[derive(Clone, Debug)]
pub struct RmppSender {
    /// Headers of MAD and class, as every segment repeats them.
    template: [u8; MAD_LENGTH],
    data_at: usize,
    data: Vec<u8>,
    patience: RmppPatience,
    segments: u32,
    /// The last segment that was acknowledged, that was sent since the last timeout, that was ever sent, that may be sent.
    acknowledged: u32,
    sent: u32,
    farthest: u32,
    window_end: u32,
    retries_left: u32,
    deadline: Option<Time>,
    outcome: Option<Result<(), RmppStatus>>,
    /// What to tell the other side before it is over.
    abort: Option<RmppStatus>,
}

impl RmppSender {
    /// A transfer of `data`, which lies from byte `data_at` of each datagram on (56 in subnet administration); `template` has
    /// the bytes before.
    ///
    /// # Panics
    /// If `data_at` is not behind the RMPP header and within a datagram.
    pub fn new(
        template: [u8; MAD_LENGTH],
        data_at: usize,
        data: Vec<u8>,
        patience: RmppPatience,
    ) -> Self {
        assert!(
            (CLASS_HEADER..MAD_LENGTH).contains(&data_at),
            "data start at byte {data_at}"
        );
        let segments = data.len().div_ceil(MAD_LENGTH - data_at).max(1) as u32;
        Self {
            template,
            data_at,
            data,
            patience,
            segments,
            acknowledged: 0,
            sent: 0,
            farthest: 0,
            window_end: 1,
            retries_left: patience.retries,
            deadline: None,
            outcome: None,
            abort: None,
        }
    }

    /// The next datagram to send, until there is none.
    pub fn poll_transmit(&mut self, now: Time) -> Option<[u8; MAD_LENGTH]> {
        if let Some(status) = self.abort.take() {
            let header = RmppHeader {
                status,
                ..RmppHeader::of(RmppKind::ABORT, 0, 0)
            };
            let mut bytes = self.template;
            header.encode(&mut bytes[MadHeader::LENGTH..]);
            return Some(bytes);
        }
        if self.outcome.is_some() || self.sent >= self.window_end.min(self.segments) {
            return None;
        }
        self.sent += 1;
        self.farthest = self.farthest.max(self.sent);
        self.deadline = Some(now + self.patience.timeout);
        Some(self.segment(self.sent))
    }

    fn segment(&self, number: u32) -> [u8; MAD_LENGTH] {
        let room = MAD_LENGTH - self.data_at;
        let start = (number as usize - 1) * room;
        let part = &self.data[start..self.data.len().min(start + room)];
        let class_header = self.data_at - CLASS_HEADER;
        let (first, last) = (number == 1, number == self.segments);
        let length = match (first, last) {
            (_, true) => class_header + part.len(),
            (true, false) => class_header * self.segments as usize + self.data.len(),
            (false, false) => 0,
        };
        let header = RmppHeader {
            first,
            last,
            ..RmppHeader::of(RmppKind::DATA, number, length as u32)
        };
        let mut bytes = self.template;
        header.encode(&mut bytes[MadHeader::LENGTH..]);
        bytes[self.data_at..].fill(0);
        bytes[self.data_at..][..part.len()].copy_from_slice(part);
        bytes
    }

    /// Takes the header of a datagram of this transfer that came from the receiver.
    pub fn handle(&mut self, now: Time, header: &RmppHeader) {
        if self.outcome.is_some() || !header.active {
            return;
        }
        match header.kind {
            RmppKind::ACK => self.handle_acknowledgement(now, header),
            RmppKind::STOP | RmppKind::ABORT => {
                self.outcome = Some(Err(header.status));
                self.deadline = None;
            }
            _ => self.fail(RmppStatus::BAD_KIND),
        }
    }

    fn handle_acknowledgement(&mut self, now: Time, header: &RmppHeader) {
        if header.segment > self.farthest {
            return self.fail(RmppStatus::SEGMENT_TOO_BIG);
        }
        if header.length < header.segment {
            return self.fail(RmppStatus::WINDOW_TOO_SMALL);
        }
        if header.segment < self.acknowledged {
            return; // an old one
        }
        if header.segment > self.acknowledged || header.length > self.window_end {
            self.retries_left = self.patience.retries;
        }
        self.acknowledged = header.segment;
        self.sent = self.sent.max(self.acknowledged);
        self.window_end = self.window_end.max(header.length);
        if self.acknowledged == self.segments {
            self.outcome = Some(Ok(()));
            self.deadline = None;
        } else {
            self.deadline = Some(now + self.patience.timeout);
        }
    }

    /// When [`RmppSender::handle_timeout`] wants to be called.
    pub const fn poll_timeout(&self) -> Option<Time> {
        self.deadline
    }

    /// Sends again what was not acknowledged, or gives up.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.outcome.is_some() || self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        if self.retries_left == 0 {
            return self.fail(RmppStatus::TOO_MANY_RETRIES);
        }
        self.retries_left -= 1;
        self.sent = self.acknowledged;
        self.deadline = Some(now + self.patience.timeout);
    }

    /// How it ended, once it has.
    pub const fn outcome(&self) -> Option<Result<(), RmppStatus>> {
        self.outcome
    }

    fn fail(&mut self, status: RmppStatus) {
        self.outcome = Some(Err(status));
        self.abort = Some(status);
        self.deadline = None;
    }
}

/// A message that has arrived whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RmppMessage {
    /// The first datagram: its headers are the message's.
    pub first: Box<[u8; MAD_LENGTH]>,
    /// The data of all segments.
    pub data: Vec<u8>,
}

/// What came of a segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RmppReceived {
    /// What to send back: an acknowledgement, or an abort.
    pub reply: Option<Box<[u8; MAD_LENGTH]>>,
    /// The message, once.
    pub message: Option<RmppMessage>,
    /// Why the transfer has failed: it is over.
    pub failure: Option<RmppStatus>,
}

/// The receiving side of one transfer.
#[derive(Clone, Debug)]
pub struct RmppReceiver {
    data_at: usize,
    /// The most bytes that a message may have.
    limit: usize,
    first: Option<Box<[u8; MAD_LENGTH]>>,
    data: Vec<u8>,
    /// The last segment in order.
    received: u32,
    window_end: u32,
    whole: bool,
}

impl RmppReceiver {
    /// Waits for a message of at most `limit` bytes, whose data lie from byte `data_at` of each datagram on.
    ///
    /// # Panics
    /// As [`RmppSender::new`].
    pub fn new(data_at: usize, limit: usize) -> Self {
        assert!(
            (CLASS_HEADER..MAD_LENGTH).contains(&data_at),
            "data start at byte {data_at}"
        );
        Self {
            data_at,
            limit,
            first: None,
            data: Vec::new(),
            received: 0,
            window_end: 1,
            whole: false,
        }
    }

    /// Takes a datagram of this transfer. `answer` turns its headers into those of an answer (method, addresses in the
    /// class's header).
    pub fn handle(
        &mut self,
        mad: &[u8; MAD_LENGTH],
        answer: impl Fn(&mut [u8; MAD_LENGTH]),
    ) -> RmppReceived {
        let header = RmppHeader::decode(mad).expect("a datagram has all bytes");
        let data_at = self.data_at;
        let reply = |header: RmppHeader| {
            let mut bytes = Box::new(*mad);
            bytes[data_at..].fill(0);
            header.encode(&mut bytes[MadHeader::LENGTH..]);
            answer(&mut bytes);
            bytes
        };
        let fail = |status: RmppStatus| RmppReceived {
            reply: Some(reply(RmppHeader {
                status,
                ..RmppHeader::of(RmppKind::ABORT, 0, 0)
            })),
            failure: Some(status),
            ..RmppReceived::default()
        };
        match header.kind {
            RmppKind::DATA => {}
            RmppKind::STOP | RmppKind::ABORT => {
                return RmppReceived {
                    failure: Some(header.status),
                    ..RmppReceived::default()
                };
            }
            _ => return fail(RmppStatus::BAD_KIND),
        }
        if header.version != 1 {
            return fail(RmppStatus::UNSUPPORTED_VERSION);
        }
        if header.segment != self.received + 1 || self.whole {
            // Too early, or again: the sender learns what was last in order.
            let acknowledgement = RmppHeader::of(RmppKind::ACK, self.received, self.window_end);
            return RmppReceived {
                reply: Some(reply(acknowledgement)),
                ..RmppReceived::default()
            };
        }
        if header.first != (header.segment == 1) {
            return fail(RmppStatus::INCONSISTENT_FIRST);
        }
        let class_header = self.data_at - CLASS_HEADER;
        let mut part = &mad[self.data_at..];
        if header.last {
            let length = (header.length as usize).checked_sub(class_header);
            let Some(used) = length.and_then(|length| part.get(..length)) else {
                return fail(RmppStatus::INCONSISTENT_LAST_LENGTH);
            };
            part = used;
        }
        if self.data.len() + part.len() > self.limit {
            return fail(RmppStatus::RESOURCES_EXHAUSTED);
        }
        let (received, mut window_end) = (header.segment, self.window_end);
        let acknowledge = header.last || received == window_end;
        if acknowledge {
            window_end = received + WINDOW;
        }
        let acknowledgement = RmppHeader::of(RmppKind::ACK, received, window_end);
        let reply = acknowledge.then(|| reply(acknowledgement));
        self.data.extend_from_slice(part);
        if header.first {
            self.first = Some(Box::new(*mad));
        }
        (self.received, self.window_end, self.whole) = (received, window_end, header.last);
        let message = header.last.then(|| RmppMessage {
            first: self.first.take().expect("the first segment came first"),
            data: std::mem::take(&mut self.data),
        });
        RmppReceived {
            reply,
            message,
            failure: None,
        }
    }
}
