//! Bit rates, and the time that bytes take on a line.

use std::fmt;
use std::str::FromStr;

use crate::parse::{ParseQuantityError, Scale, parse_quantity};
use crate::{Bytes, Span};

const PICOS_PER_SECOND: u64 = 1_000_000_000_000;

/// A rate in whole bits per second. Written as `400Gb/s`, `25Gbps` or `40Mb/s` in scenario files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);

    /// `bits` bits per second.
    pub const fn bps(bits: u64) -> Self {
        Self(bits)
    }

    /// `megabits` · 10⁶ bits per second.
    pub const fn mbps(megabits: u64) -> Self {
        Self(megabits * 1_000_000)
    }

    /// `gigabits` · 10⁹ bits per second.
    pub const fn gbps(gigabits: u64) -> Self {
        Self(gigabits * 1_000_000_000)
    }

    /// The rate in bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The rate in Gb/s, for people and for rate control's fractions.
    pub fn as_gbps_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether nothing moves.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// How long `bytes` take at this rate, rounded up to a whole picosecond; [`Span::MAX`] at rate zero.
    pub const fn time_for(self, bytes: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        // 8e12 · bytes fits a u64 up to 2.3 MB, which is every packet.
        match bytes.as_u64().checked_mul(8 * PICOS_PER_SECOND) {
            Some(bit_picos) => Span::picos(bit_picos.div_ceil(self.0)),
            None => {
                let bit_picos = bytes.as_u64() as u128 * (8 * PICOS_PER_SECOND) as u128;
                let picos = bit_picos.div_ceil(self.0 as u128);
                Span::picos(if picos > u64::MAX as u128 {
                    u64::MAX
                } else {
                    picos as u64
                })
            }
        }
    }

    /// How many whole bytes pass in `span`.
    pub const fn bytes_in(self, span: Span) -> Bytes {
        let bits = self.0 as u128 * span.as_picos() as u128 / PICOS_PER_SECOND as u128;
        Bytes::new((bits / 8) as u64)
    }

    /// The average rate of `bytes` over `span`; zero over an empty span.
    pub const fn average(bytes: Bytes, span: Span) -> Self {
        if span.is_zero() {
            return Self::ZERO;
        }
        let bit_picos = bytes.as_u64() as u128 * 8 * PICOS_PER_SECOND as u128;
        Self((bit_picos / span.as_picos() as u128) as u64)
    }
}

/// Writes the rate in the largest unit, to three places: `400Gb/s`, `40Mb/s`, `6.667Gb/s`. `{:#}` writes it exactly.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            let exact = [
                (1_000_000_000, "Gb/s"),
                (1_000_000, "Mb/s"),
                (1_000, "kb/s"),
            ];
            let whole = exact
                .into_iter()
                .find(|(scale, _)| self.0 >= *scale && self.0.is_multiple_of(*scale));
            let (scale, unit) = whole.unwrap_or((1, "b/s"));
            return write!(f, "{}{unit}", self.0 / scale);
        }
        let (scale, unit) = match self.0 {
            b if b >= 1_000_000_000 => (1e9, "Gb/s"),
            b if b >= 1_000_000 => (1e6, "Mb/s"),
            b if b >= 1_000 => (1e3, "kb/s"),
            _ => (1.0, "b/s"),
        };
        let text = format!("{:.3}", self.0 as f64 / scale);
        write!(
            f,
            "{}{unit}",
            text.trim_end_matches('0').trim_end_matches('.')
        )
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const SCALES: &[Scale] = &[
    Scale::new("b/s", 1),
    Scale::new("bps", 1),
    Scale::new("kb/s", 1_000),
    Scale::new("Kbps", 1_000),
    Scale::new("kbps", 1_000),
    Scale::new("Mb/s", 1_000_000),
    Scale::new("Mbps", 1_000_000),
    Scale::new("Gb/s", 1_000_000_000),
    Scale::new("Gbps", 1_000_000_000),
    Scale::new("Tb/s", 1_000_000_000_000),
    Scale::new("Tbps", 1_000_000_000_000),
];

impl FromStr for Rate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_quantity(text, "a bit rate", "400Gb/s, 25Gbps or 40Mb/s", SCALES).map(Self)
    }
}

crate::parse::serde_as_text!(Rate, "a bit rate such as \"400Gb/s\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_at_line_rates() {
        for (gbps, picos) in [
            (10, 800),
            (25, 320),
            (40, 200),
            (50, 160),
            (100, 80),
            (200, 40),
            (400, 20),
            (800, 10),
        ] {
            assert_eq!(Rate::gbps(gbps).time_for(Bytes::new(1)), Span::picos(picos));
        }
    }

    #[test]
    fn time_rounds_up_and_zero_never_ends() {
        assert_eq!(
            Rate::bps(3 * 8_000_000_000_000).time_for(Bytes::new(1)),
            Span::picos(1)
        );
        assert_eq!(Rate::ZERO.time_for(Bytes::new(1)), Span::MAX);
        assert_eq!(
            Rate::gbps(1).time_for(Bytes::gib(1)),
            Span::picos((1 << 30) * 8_000)
        );
    }

    #[test]
    fn text_and_back() {
        for text in ["400Gb/s", "40Mb/s", "6.667Gb/s", "5kb/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        assert_eq!("100Gbps".parse::<Rate>().unwrap(), Rate::gbps(100));
        let error = "100GB/s".parse::<Rate>().unwrap_err().to_string();
        assert!(
            error.contains("GB/s") && error.contains("400Gb/s"),
            "{error}"
        );
    }

    #[test]
    fn exact_text_and_back() {
        for bits in [0, 1, 999, 5_000, 33_333_333_333, 400_000_000_000] {
            let rate = Rate::bps(bits);
            assert_eq!(format!("{rate:#}").parse(), Ok(rate));
        }
        assert_eq!(format!("{:#}", Rate::bps(33_333_333_333)), "33333333333b/s");
        assert_eq!(format!("{:#}", Rate::gbps(400)), "400Gb/s");
    }

    #[test]
    fn averages() {
        assert_eq!(
            Rate::average(Bytes::new(125), Span::micros(1)),
            Rate::gbps(1)
        );
        assert_eq!(Rate::average(Bytes::new(125), Span::ZERO), Rate::ZERO);
        assert_eq!(Rate::gbps(1).bytes_in(Span::micros(1)), Bytes::new(125));
    }
}
