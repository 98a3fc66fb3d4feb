//! Links: how long bytes take, and what is under way.

use std::collections::VecDeque;

use softfabric_units::{Bytes, ClassMask, Random, Rate, Span, Time};

use super::frame::{Control, Frame};
use crate::plan::Timing;

/// Preamble, start delimiter and gap between frames: they take time on the wire and no room in buffers (802.3, 4.4.2).
pub(crate) const PREAMBLE_AND_GAP: u32 = 20;
/// InfiniBand's delimiters are part of its encoding (IBTA vol. 2).
pub(crate) const NO_GAP: u32 = 0;

/// One direction of a link, as its sender sees it.
#[derive(Clone, Debug)]
pub(crate) struct OutLink {
    /// The wire at the other end: the index of the receiving port among all ports.
    pub(crate) wire: u32,
    /// The receiving node.
    pub(crate) receiver: u32,
    /// The line rate.
    pub(crate) rate: Rate,
    /// Propagation, and the receiver's latency for packets.
    pub(crate) packet_delay: Span,
    /// Propagation alone: the receiving MAC handles pause frames itself.
    pub(crate) pause_delay: Span,
    /// How long the receiver takes to obey a pause frame that has arrived.
    pub(crate) pause_response: Span,
    /// The classes in which the receiver obeys.
    pub(crate) pause_obeyed: ClassMask,
    /// The receiver handles packets once this many bytes are there (cut-through); `None`: once they are whole.
    pub(crate) cut_through: Option<u32>,
    /// The link is up.
    pub(crate) up: bool,
    /// What damages packets.
    pub(crate) errors: Option<Box<ErrorModel>>,
    /// Bytes of time between frames.
    gap: u32,
    clock: LineClock,
}

/// The chance that a link damages a packet.
#[derive(Clone, Debug)]
pub(crate) struct ErrorModel {
    pub(crate) bit_error_rate: f64,
    pub(crate) packet_error_rate: f64,
    pub(crate) random: Random,
}

impl ErrorModel {
    /// Whether a packet of `length` bytes arrives damaged.
    pub(crate) fn damages(&mut self, length: u32) -> bool {
        let intact_bits =
            f64::from(length) * 8.0 * libm::log1p(-self.bit_error_rate.clamp(0.0, 1.0));
        let intact = libm::exp(intact_bits) * (1.0 - self.packet_error_rate.clamp(0.0, 1.0));
        self.random.chance(1.0 - intact)
    }
}

impl OutLink {
    pub(crate) fn new(wire: u32, receiver: u32, rate: Rate, delay: Span, timing: Timing) -> Self {
        Self {
            wire,
            receiver,
            rate,
            packet_delay: delay,
            pause_delay: delay,
            pause_response: Span::ZERO,
            pause_obeyed: ClassMask::ALL,
            cut_through: None,
            up: true,
            errors: None,
            gap: PREAMBLE_AND_GAP,
            clock: LineClock::new(rate, timing),
        }
    }

    /// An InfiniBand link: nothing between packets.
    #[must_use]
    pub(crate) fn without_gap(mut self) -> Self {
        self.gap = NO_GAP;
        self
    }

    /// How long a frame of `length` bytes keeps the transmitter busy, with what is between frames.
    #[inline]
    pub(crate) fn occupies(&self, length: u32) -> Span {
        self.clock.span(length, self.gap)
    }

    /// When the other end handles a packet whose transmission starts at `start` and takes `busy`.
    #[inline]
    pub(crate) fn arrival(&self, start: Time, busy: Span, length: u32) -> Time {
        let seen = match self.cut_through {
            Some(header) if header < length => self.clock.span(header, self.gap),
            _ => busy,
        };
        start + seen + self.packet_delay
    }

    /// The least time between a send and what it causes at the other end.
    pub(crate) fn lookahead(&self, smallest_frame: u32, pause_frame: u32) -> Span {
        let seen = self
            .cut_through
            .map_or(smallest_frame, |header| header.min(smallest_frame));
        let packet = self.clock.span(seen, self.gap) + self.packet_delay;
        packet.min(self.clock.span(pause_frame, self.gap) + self.pause_delay)
    }
}

/// Turns bytes into time at one rate.
#[derive(Clone, Debug)]
enum LineClock {
    /// The rate divides: so many picoseconds a byte.
    Exact { picos_per_byte: u64 },
    /// It does not: rounded up, packet by packet.
    Rounded { rate: Rate },
    /// Whole nanoseconds, as ns-3 computes them.
    Nanoseconds { rate: Rate },
}

impl LineClock {
    fn new(rate: Rate, timing: Timing) -> Self {
        let byte = rate.time_for(Bytes::new(1));
        match timing {
            Timing::Hpcc => Self::Nanoseconds { rate },
            Timing::Exact if rate.time_for(Bytes::new(1_000_000)) == byte * 1_000_000 => {
                Self::Exact {
                    picos_per_byte: byte.as_picos(),
                }
            }
            Timing::Exact => Self::Rounded { rate },
        }
    }

    #[inline]
    fn span(&self, length: u32, gap: u32) -> Span {
        match self {
            Self::Exact { picos_per_byte } => Span::picos(picos_per_byte * u64::from(length + gap)),
            Self::Rounded { rate } => rate.time_for(Bytes::new(u64::from(length + gap))),
            Self::Nanoseconds { rate } => nanoseconds_of(Bytes::new(u64::from(length)), *rate),
        }
    }
}

/// The time of `bytes` at `rate` as ns-3 has it: seconds in floating point, cut to a 64-bit fraction, then to whole
/// nanoseconds. What divides evenly comes out one nanosecond short.
pub(crate) fn nanoseconds_of(bytes: Bytes, rate: Rate) -> Span {
    Span::nanos(nanoseconds_of_seconds(
        bytes.as_f64() * 8.0 / rate.as_bps() as f64,
    ))
}

/// Whole nanoseconds of a number of seconds, by the same road.
pub(crate) fn nanoseconds_of_seconds(seconds: f64) -> u64 {
    let whole = libm::floor(seconds);
    let fraction = ((seconds - whole) * 18_446_744_073_709_551_616.0) as u128;
    whole as u64 * 1_000_000_000 + ((fraction * 1_000_000_000) >> 64) as u64
}

/// One direction of a link, as its receiver sees it: what is under way, in order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wire {
    pub(crate) packets: VecDeque<Frame>,
    pub(crate) controls: VecDeque<Control>,
    /// The receiver has an event for the first packet.
    pub(crate) packet_armed: bool,
    /// The receiver has an event for the first control frame.
    pub(crate) control_armed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_time_counts_preamble_and_gap() {
        let link = OutLink::new(0, 0, Rate::gbps(100), Span::nanos(500), Timing::Exact);
        assert_eq!(link.occupies(1048), Span::picos(1068 * 80));
        let odd = OutLink::new(0, 0, Rate::bps(30_000_000_001), Span::ZERO, Timing::Exact);
        assert_eq!(
            odd.occupies(1480),
            Rate::bps(30_000_000_001).time_for(Bytes::new(1500))
        );
    }

    #[test]
    fn hpcc_time_is_floored_and_even_results_are_one_short() {
        let span = |bytes| nanoseconds_of(Bytes::new(bytes), Rate::gbps(100)).as_nanos();
        assert_eq!([span(1048), span(60), span(43), span(49)], [83, 4, 3, 3]);
        assert_eq!(span(1025), 81, "82 ns exactly, and ns-3 says 81");
        assert_eq!(nanoseconds_of_seconds(2.0), 2_000_000_000);
        assert_eq!(nanoseconds_of_seconds(2.000000273), 2_000_000_272);
    }

    #[test]
    fn cut_through_waits_for_the_header_alone() {
        let mut link = OutLink::new(0, 0, Rate::gbps(100), Span::nanos(500), Timing::Exact);
        link.cut_through = Some(64);
        let start = Time::from_nanos(10);
        assert_eq!(
            link.arrival(start, link.occupies(4096), 4096),
            start + Span::picos(84 * 80) + Span::nanos(500)
        );
        assert_eq!(
            link.arrival(start, link.occupies(64), 64),
            start + link.occupies(64) + Span::nanos(500)
        );
    }

    #[test]
    fn errors_come_as_often_as_they_should() {
        let mut model = ErrorModel {
            bit_error_rate: 1e-5,
            packet_error_rate: 0.01,
            random: Random::from_seed(1),
        };
        let damaged = (0..100_000).filter(|_| model.damages(1000)).count() as f64 / 1e5;
        let expected = 1.0 - (1.0f64 - 1e-5).powi(8000) * 0.99;
        assert!(
            (damaged - expected).abs() < 0.005,
            "{damaged} for {expected}"
        );
    }
}
