//! The codes of an acknowledgement: syndrome byte, credit codes and receiver-not-ready timers.
//!
//! ```text
//! syndrome:  bit 7    bits 6–5          bits 4–0
//!            0        00 ACK            credit code (31: credits do not apply)
//!                     01 RNR NAK        timer code
//!                     11 NAK            why
//! ```
//!
//! Every byte has one meaning and every meaning one byte.

use softfabric_units::Span;

use super::header::{NakCode, RnrTimer, Syndrome};

const FORM_MASK: u8 = 0xe0;
const VALUE_MASK: u8 = 0x1f;
const FORM_ACK: u8 = 0x00;
const FORM_RNR_NAK: u8 = 0x20;
const FORM_NAK: u8 = 0x60;

/// How many credits codes 0–30 stand for (IBTA vol. 1, 9.7.7.2.1).
const CREDITS: [u32; 31] = [
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
];

/// The timers of codes 0–31 in units of 10 µs (IBTA vol. 1, table 46).
const RNR_TIMERS: [u64; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

impl Syndrome {
    /// The credit code that says that end-to-end credits do not apply.
    pub const NO_CREDITS: u8 = 31;

    /// A positive acknowledgement without end-to-end credits.
    pub const ACK: Self = Self::Ack {
        credit: Self::NO_CREDITS,
    };

    /// What a syndrome byte says. NAK codes that the standard does not name become [`Syndrome::Reserved`].
    #[inline]
    pub const fn from_byte(byte: u8) -> Self {
        let value = byte & VALUE_MASK;
        match byte & FORM_MASK {
            FORM_ACK => Self::Ack { credit: value },
            FORM_RNR_NAK => Self::RnrNak(RnrTimer::from_code(value)),
            FORM_NAK => match NakCode::from_code(value) {
                Some(code) => Self::Nak(code),
                None => Self::Reserved(byte),
            },
            _ => Self::Reserved(byte),
        }
    }

    /// The byte on the wire. Of a credit code only the low five bits count.
    #[inline]
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Ack { credit } => FORM_ACK | (credit & VALUE_MASK),
            Self::RnrNak(timer) => FORM_RNR_NAK | timer.code(),
            Self::Nak(code) => FORM_NAK | code.code(),
            Self::Reserved(byte) => byte,
        }
    }

    /// How many more requests the responder has room for; `None` where the syndrome does not say.
    pub const fn credits(self) -> Option<u32> {
        match self {
            Self::Ack { credit } if credit < Self::NO_CREDITS => Some(CREDITS[credit as usize]),
            _ => None,
        }
    }

    /// A positive acknowledgement that grants `credits`, rounded down to what a code can say.
    pub const fn with_credits(credits: u32) -> Self {
        let mut code = 0;
        while code + 1 < CREDITS.len() && CREDITS[code + 1] <= credits {
            code += 1;
        }
        Self::Ack { credit: code as u8 }
    }
}

impl NakCode {
    /// The five bits on the wire.
    #[inline]
    pub const fn code(self) -> u8 {
        match self {
            Self::SequenceError => 0,
            Self::InvalidRequest => 1,
            Self::RemoteAccess => 2,
            Self::RemoteOperational => 3,
            Self::InvalidRdRequest => 4,
        }
    }

    /// The NAK of five bits, if the standard names it.
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::SequenceError,
            1 => Self::InvalidRequest,
            2 => Self::RemoteAccess,
            3 => Self::RemoteOperational,
            4 => Self::InvalidRdRequest,
            _ => return None,
        })
    }
}

impl RnrTimer {
    /// The timer's length: 10 µs to 655.36 ms.
    pub const fn span(self) -> Span {
        Span::micros(10 * RNR_TIMERS[self.code() as usize])
    }

    /// The shortest timer that is at least `span` long, or the longest (655.36 ms) where none is.
    pub fn from_span(span: Span) -> Self {
        // Code 0 is the longest, so the others are in order.
        (1..32)
            .map(Self::from_code)
            .find(|timer| timer.span() >= span)
            .unwrap_or(Self::from_code(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back() {
        for byte in 0..=255 {
            assert_eq!(Syndrome::from_byte(byte).to_byte(), byte);
        }
    }

    #[test]
    fn bytes_seen_on_the_wire() {
        assert_eq!(Syndrome::from_byte(0x1f), Syndrome::ACK);
        assert_eq!(
            Syndrome::from_byte(0x2c),
            Syndrome::RnrNak(RnrTimer::from_code(12))
        );
        assert_eq!(
            Syndrome::from_byte(0x60),
            Syndrome::Nak(NakCode::SequenceError)
        );
        assert_eq!(
            Syndrome::from_byte(0x61),
            Syndrome::Nak(NakCode::InvalidRequest)
        );
        assert_eq!(
            Syndrome::from_byte(0x62),
            Syndrome::Nak(NakCode::RemoteAccess)
        );
        assert_eq!(
            Syndrome::from_byte(0x63),
            Syndrome::Nak(NakCode::RemoteOperational)
        );
        assert_eq!(Syndrome::from_byte(0x65), Syndrome::Reserved(0x65));
        assert_eq!(Syndrome::from_byte(0x45), Syndrome::Reserved(0x45));
        assert_eq!(Syndrome::from_byte(0x80), Syndrome::Reserved(0x80));
    }

    #[test]
    fn credits_round_down() {
        for (credits, said) in [
            (0, 0),
            (5, 4),
            (6, 6),
            (13, 12),
            (191, 128),
            (192, 192),
            (1 << 15, 1 << 15),
            (u32::MAX, 1 << 15),
        ] {
            assert_eq!(Syndrome::with_credits(credits).credits(), Some(said));
        }
        assert_eq!(Syndrome::ACK.credits(), None);
        assert_eq!(Syndrome::Nak(NakCode::SequenceError).credits(), None);
        for code in 0..31 {
            let syndrome = Syndrome::Ack { credit: code };
            assert_eq!(
                Syndrome::with_credits(syndrome.credits().unwrap()),
                syndrome
            );
        }
    }

    #[test]
    fn timers() {
        for (code, span) in [
            (0, Span::micros(655_360)),
            (1, Span::micros(10)),
            (12, Span::micros(640)),
            (14, Span::micros(1_280)),
            (31, Span::micros(491_520)),
        ] {
            assert_eq!(RnrTimer::from_code(code).span(), span);
        }
        for code in 0..32 {
            let timer = RnrTimer::from_code(code);
            assert_eq!(RnrTimer::from_span(timer.span()), timer);
        }
        assert_eq!(RnrTimer::from_span(Span::ZERO).code(), 1);
        assert_eq!(RnrTimer::from_span(Span::micros(11)).code(), 2);
        assert_eq!(RnrTimer::from_span(Span::micros(491_521)).code(), 0);
        assert_eq!(RnrTimer::from_span(Span::seconds(2)).code(), 0);
    }
}
