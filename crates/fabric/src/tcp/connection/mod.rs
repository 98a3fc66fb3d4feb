//! One end of a connection: set-up, the sender and the receiver (RFC 9293).
//!
//! ```text
//!   connect ─► SYN sent ──────────────┐                     write ─► sender ─► segments
//!                                     ├─► established       read  ◄─ receiver ◄─ segments
//!   listen ──► listening ─► SYN received
//! ```
//!
//! Invariant: positions count from the SYN, which is position 0; the first byte of the stream is position 1. They are 64
//! bits wide, and only headers have the 32 bits of the wire.
//!
//! Connections are not closed: both ends know how much is to come.

mod receiver;
mod recovery;
mod scoreboard;
mod sender;

use softfabric_units::{Span, Time};
use softfabric_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};

use self::receiver::Receiver;
use self::sender::{Heard, Sender};
use super::{CongestionAlgorithm, TcpConfig};

/// A segment that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The header, without ports and checksum.
    pub header: TcpHeader,
    /// Bytes of payload.
    pub payload: u32,
    /// The packet says that its sender understands marks (ECT).
    pub ecn_capable: bool,
}

/// A segment that has come in, or several in a row as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// The header; of several, that of the first, with the last one's window.
    pub header: &'a TcpHeader,
    /// Bytes of payload.
    pub payload: u32,
    /// The packet was marked (CE).
    pub congestion: bool,
}

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Data flows.
    Established,
    /// Nobody answered.
    Failed,
}

/// What one end has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments sent, those sent again and pure acknowledgements included.
    pub sent: u64,
    /// Segments with data that were sent again.
    pub retransmitted: u64,
    /// How often the retransmission timer expired.
    pub timeouts: u64,
    /// How often the third duplicate acknowledgement, or SACK, told of a loss.
    pub fast_recoveries: u64,
    /// How often marks reduced the congestion window.
    pub reductions: u64,
    /// Acknowledgements received that carried ECN-Echo.
    pub echoes: u64,
    /// Acknowledgements sent without data.
    pub acknowledgements: u64,
    /// Segments received whose data had all been there before, were too old, or did not fit the window.
    pub duplicates: u64,
    /// Segments received ahead of a hole.
    pub out_of_order: u64,
    /// Segments received with CE.
    pub marked: u64,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    config: TcpConfig,
    state: State,
    /// The sequence numbers of both SYNs.
    ours: u32,
    theirs: u32,
    options: Agreed,
    sender: Sender,
    receiver: Receiver,
    /// The SYN, or the answer to one, is to be sent.
    synchronise: bool,
    /// How often that was sent, and when first.
    attempts: u32,
    first_attempt: Time,
    statistics: Statistics,
}

/// What both ends have agreed on.
#[derive(Clone, Copy, Debug, Default)]
struct Agreed {
    sack: bool,
    timestamps: bool,
    ecn: bool,
    /// By how much the windows of each end are shifted.
    their_shift: u8,
    our_shift: u8,
}

/// The most that a window may be shifted (RFC 7323, 2.3).
const MOST_SHIFT: u8 = 14;
/// The granularity of the clock of timestamps: Linux's millisecond.
const TICK: Span = Span::millis(1);
/// How often a SYN is sent before the connection fails (`tcp_syn_retries` is 6).
const SYN_ATTEMPTS: u32 = 7;

impl Connection {
    /// The end that opens the connection; `initial` is its initial sequence number.
    pub fn connect(config: TcpConfig, initial: u32) -> Self {
        let mut connection = Self::listen(config, initial);
        connection.state = State::SynSent;
        connection.synchronise = true;
        connection
    }

    /// The end that waits for the other's SYN.
    pub fn listen(config: TcpConfig, initial: u32) -> Self {
        let segment = config.maximum_segment.as_u64();
        Self {
            state: State::Listen,
            ours: initial,
            theirs: 0,
            options: Agreed::default(),
            sender: Sender::new(&config, segment),
            receiver: Receiver::new(&config, segment),
            synchronise: false,
            attempts: 0,
            first_attempt: Time::ZERO,
            statistics: Statistics::default(),
            config,
        }
    }

    /// The application has written `bytes` more; with `push`, the other end's application is to have them at once.
    pub fn write(&mut self, bytes: u64, push: bool) {
        self.sender.write(bytes, push);
    }

    /// How much more the application may write.
    pub fn writable(&self) -> u64 {
        (self.config.send_buffer.as_u64()).saturating_sub(self.sender.unacknowledged_data())
    }

    /// How many bytes the application may read.
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// The application has read `bytes`.
    pub fn read(&mut self, bytes: u64) {
        self.receiver.read(bytes);
    }

    /// Bytes that were written and acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// Bytes of the stream that have arrived without a hole before them.
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// The congestion window in bytes.
    pub fn congestion_window(&self) -> u64 {
        self.sender.window()
    }

    /// DCTCP's alpha, where that runs.
    pub fn alpha(&self) -> Option<f64> {
        self.sender.alpha()
    }

    /// The smoothed round-trip time, once it was measured.
    pub fn round_trip(&self) -> Option<Span> {
        self.sender.round_trip()
    }

    /// Whether the scoreboard's sum is the sum of its segments.
    #[cfg(test)]
    pub(super) fn books_agree(&self) -> bool {
        self.sender.board.pipe() == self.sender.board.recount()
    }

    /// What it has counted.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn is_accurate(&self) -> bool {
        matches!(self.config.congestion, CongestionAlgorithm::Dctcp(_))
    }

    /// A segment has come in. What makes no sense is dropped, or answered as RFC 9293 has it.
    pub fn handle_segment(&mut self, now: Time, arrival: &Arrival<'_>) {
        let flags = arrival.header.flags;
        if flags.has(TcpFlags::RST) || self.state == State::Failed {
            return;
        }
        if flags.has(TcpFlags::SYN) {
            return self.handle_syn(now, arrival.header);
        }
        match self.state {
            State::Listen | State::SynSent | State::Failed => return,
            State::SynReceived => {
                // RFC 9293, 3.10.7.4: what does not acknowledge our SYN is of another connection, data or not.
                let acknowledged = self.ours.wrapping_add(1);
                if !flags.has(TcpFlags::ACK) || arrival.header.acknowledgement != acknowledged {
                    return;
                }
                self.establish(now);
            }
            State::Established => {}
        }
        self.handle_established(now, arrival);
    }

    fn handle_syn(&mut self, now: Time, header: &TcpHeader) {
        let answers = header.flags.has(TcpFlags::ACK);
        match (self.state, answers) {
            (State::Listen, false) => {
                self.agree(header);
                self.state = State::SynReceived;
                self.synchronise = true;
            }
            (State::SynSent, true) => {
                if header.acknowledgement != self.ours.wrapping_add(1) {
                    return;
                }
                self.agree(header);
                self.establish(now);
                self.receiver.acknowledge_now();
            }
            // Our answer was lost.
            (State::SynReceived, false) => self.synchronise = true,
            // Our acknowledgement of theirs was lost.
            (State::Established, true) => self.receiver.acknowledge_now(),
            _ => {}
        }
    }

    /// Settles what both ends understand.
    fn agree(&mut self, header: &TcpHeader) {
        let options = &header.options;
        self.theirs = header.sequence;
        let flags = header.flags;
        let ecn_wanted = if flags.has(TcpFlags::ACK) {
            flags.has(TcpFlags::ECE) && !flags.has(TcpFlags::CWR)
        } else {
            flags.has(TcpFlags::ECE | TcpFlags::CWR)
        };
        self.options = Agreed {
            sack: self.config.sack && options.sack_permitted,
            timestamps: self.config.timestamps && options.timestamps.is_some(),
            ecn: self.config.ecn && ecn_wanted,
            their_shift: options.window_scale.unwrap_or(0).min(MOST_SHIFT),
            our_shift: if options.window_scale.is_some() {
                self.window_shift()
            } else {
                0
            },
        };
        // RFC 9293, 3.7.1: 536 where the other end does not say; RFC 6691: options come off it.
        let theirs = u64::from(options.maximum_segment.unwrap_or(536));
        let room = theirs.min(self.config.maximum_segment.as_u64());
        let timestamps = if self.options.timestamps { 12 } else { 0 };
        let segment = room.saturating_sub(timestamps).max(1);
        self.sender.agree(&self.config, segment, self.options.sack);
        self.receiver.agree(segment, self.options.our_shift);
        self.sender.set_window(u64::from(header.window));
        if let Some(stamp) = options.timestamps {
            self.receiver.recent_timestamp = stamp.value;
        }
    }

    fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.synchronise = false;
        self.sender.stop_timer();
        if self.attempts == 1 {
            self.sender.sample(now.since(self.first_attempt));
        }
    }

    fn handle_established(&mut self, now: Time, arrival: &Arrival<'_>) {
        let header = arrival.header;
        let start = self.receiver.position(header.sequence, self.theirs);
        if let (true, Some(stamp)) = (self.options.timestamps, header.options.timestamps) {
            // RFC 7323, 5.3: an old segment is answered and dropped.
            if (stamp.value.wrapping_sub(self.receiver.recent_timestamp) as i32) < 0 {
                self.statistics.duplicates += u64::from(arrival.payload > 0);
                self.receiver.acknowledge_now();
                return;
            }
            if self.receiver.has_acknowledged(start) {
                self.receiver.recent_timestamp = stamp.value;
            }
        }
        if header.flags.has(TcpFlags::ACK) {
            self.handle_acknowledgement(now, arrival);
        }
        if arrival.payload > 0 {
            self.statistics.marked += u64::from(arrival.congestion);
            let outcome = self.receiver.take(
                now,
                start,
                u64::from(arrival.payload),
                receiver::Marks {
                    congestion: arrival.congestion,
                    reduced: header.flags.has(TcpFlags::CWR),
                    accurate: self.is_accurate(),
                },
                header.flags.has(TcpFlags::PSH),
            );
            match outcome {
                receiver::Outcome::Duplicate => self.statistics.duplicates += 1,
                receiver::Outcome::Ahead => self.statistics.out_of_order += 1,
                receiver::Outcome::InOrder => {}
            }
        }
    }

    fn handle_acknowledgement(&mut self, now: Time, arrival: &Arrival<'_>) {
        let header = arrival.header;
        let base = self.sender.position_base(self.ours);
        let position = |number: u32| base.position(number);
        let echo = self.options.ecn && header.flags.has(TcpFlags::ECE);
        self.statistics.echoes += u64::from(echo);
        let mut blocks = [(0, 0); softfabric_wire::tcp::SackBlocks::MOST];
        let mut count = 0;
        if self.options.sack {
            for (place, (start, end)) in blocks.iter_mut().zip(header.options.sack.iter()) {
                *place = (position(start), position(end));
                count += 1;
            }
        }
        let heard = Heard {
            acknowledgement: position(header.acknowledgement),
            window: u64::from(header.window) << self.options.their_shift,
            blocks: &blocks[..count],
            echo,
            with_data: arrival.payload > 0,
        };
        self.sender.acknowledge(now, &heard, &mut self.statistics);
    }

    /// The next segment that is to be sent, if any may be.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if self.synchronise {
            self.synchronise = false;
            return Some(self.synchronising(now));
        }
        if self.state != State::Established {
            return None;
        }
        if let Some(position) = self.receiver.owed_before() {
            return Some(self.acknowledging(now, position));
        }
        if let Some(segment) = self
            .sender
            .poll(now, self.config.nagle, &mut self.statistics)
        {
            let mut flags = TcpFlags::ACK.with(TcpFlags::PSH, segment.push);
            if self.options.ecn && !segment.again && self.sender.take_reduced() {
                flags = flags | TcpFlags::CWR;
            }
            flags = flags.with(TcpFlags::ECE, self.options.ecn && self.receiver.echo);
            let acknowledgement = self.receiver.acknowledges();
            let mut transmit = self.segment(now, segment.position, acknowledgement, flags);
            transmit.payload = segment.length as u32;
            // RFC 3168, 6.1.5: not on what is sent again.
            transmit.ecn_capable = self.options.ecn && (!segment.again || self.is_accurate());
            return Some(transmit);
        }
        let position = self.receiver.owed()?;
        Some(self.acknowledging(now, position))
    }

    /// When [`Connection::handle_timeout`] is to be called, if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        let delayed = self.receiver.deadline();
        match (self.sender.deadline(), delayed) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Time has passed: `now` is at or after what [`Connection::poll_timeout`] said.
    pub fn handle_timeout(&mut self, now: Time) {
        self.receiver.handle_timeout(now);
        if self.sender.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        match self.state {
            State::SynSent | State::SynReceived => {
                self.statistics.timeouts += 1;
                self.sender.stop_timer();
                if self.attempts >= SYN_ATTEMPTS {
                    self.state = State::Failed;
                } else {
                    self.synchronise = true;
                    self.sender.back_off();
                }
            }
            State::Established => {
                let alive = self
                    .sender
                    .time_out(now, self.config.retries, &mut self.statistics);
                if !alive {
                    self.state = State::Failed;
                }
            }
            State::Listen | State::Failed => self.sender.stop_timer(),
        }
    }

    /// The smallest shift with which 16 bits say the whole receive buffer.
    fn window_shift(&self) -> u8 {
        let buffer = self.config.receive_buffer.as_u64();
        (0..MOST_SHIFT)
            .find(|&shift| buffer >> shift <= 0xffff)
            .unwrap_or(MOST_SHIFT)
    }

    fn stamp(&self, now: Time) -> Timestamps {
        Timestamps {
            value: now.since(Time::ZERO).div_floor(TICK) as u32,
            echo: self.receiver.recent_timestamp,
        }
    }

    /// A SYN, or the answer to one.
    fn synchronising(&mut self, now: Time) -> Transmit {
        let answers = self.state == State::SynReceived;
        self.attempts += 1;
        if self.attempts == 1 {
            self.first_attempt = now;
        }
        self.sender.start_timer(now);
        self.statistics.sent += 1;
        let mut flags = TcpFlags::SYN.with(TcpFlags::ACK, answers);
        // RFC 3168, 6.1.1: the answer has ECE alone.
        let ecn = if answers {
            self.options.ecn
        } else {
            self.config.ecn
        };
        flags = flags
            .with(TcpFlags::ECE, ecn)
            .with(TcpFlags::CWR, ecn && !answers);
        let agreed = |wanted: bool, agreed: bool| wanted && (!answers || agreed);
        let options = TcpOptions {
            maximum_segment: Some(self.config.maximum_segment.as_u64().min(65_535) as u16),
            window_scale: Some(self.window_shift()),
            sack_permitted: agreed(self.config.sack, self.options.sack),
            timestamps: agreed(self.config.timestamps, self.options.timestamps)
                .then(|| self.stamp(now)),
            ..TcpOptions::default()
        };
        let window = self.receiver.announce_unscaled();
        Transmit {
            header: TcpHeader {
                source_port: 0,
                destination_port: 0,
                sequence: self.ours,
                acknowledgement: if answers {
                    self.theirs.wrapping_add(1)
                } else {
                    0
                },
                flags,
                window,
                checksum: 0,
                urgent: 0,
                options,
            },
            payload: 0,
            ecn_capable: false,
        }
    }

    fn acknowledging(&mut self, now: Time, (position, echo): (u64, bool)) -> Transmit {
        self.statistics.acknowledgements += 1;
        let flags = TcpFlags::ACK.with(TcpFlags::ECE, self.options.ecn && echo);
        let sequence = self.sender.next_position();
        self.segment(now, sequence, position, flags)
    }

    fn segment(
        &mut self,
        now: Time,
        position: u64,
        acknowledges: u64,
        flags: TcpFlags,
    ) -> Transmit {
        self.statistics.sent += 1;
        let window = self.receiver.announce();
        let theirs = self.theirs;
        let mut options = TcpOptions {
            timestamps: self.options.timestamps.then(|| self.stamp(now)),
            ..TcpOptions::default()
        };
        if self.options.sack {
            let most = if self.options.timestamps { 1 } else { 2 };
            for (start, end) in self.receiver.blocks(most) {
                options
                    .sack
                    .push(on_wire(theirs, start), on_wire(theirs, end));
            }
        }
        Transmit {
            header: TcpHeader {
                source_port: 0,
                destination_port: 0,
                sequence: on_wire(self.ours, position),
                acknowledgement: on_wire(theirs, acknowledges),
                flags,
                window,
                checksum: 0,
                urgent: 0,
                options,
            },
            payload: 0,
            ecn_capable: false,
        }
    }
}

/// A position as a sequence number, where the SYN has number `initial`.
fn on_wire(initial: u32, position: u64) -> u32 {
    initial.wrapping_add(position as u32)
}

/// Tells positions from sequence numbers: of all that a number may mean, the one nearest to a position that is known.
#[derive(Clone, Copy, Debug)]
struct Base {
    near: u64,
    number: u32,
}

impl Base {
    fn new(near: u64, initial: u32) -> Self {
        Self {
            near,
            number: on_wire(initial, near),
        }
    }

    /// The position of `number`; what would lie before the SYN is the SYN.
    fn position(self, number: u32) -> u64 {
        let distance = i64::from(number.wrapping_sub(self.number) as i32);
        self.near.saturating_add_signed(distance)
    }
}
