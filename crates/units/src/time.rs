//! Points in time and lengths of time, in whole picoseconds.
//!
//! At 400 Gb/s a byte takes 20 ps and at 800 Gb/s 10 ps, so every usual line rate divides without rounding. A `u64` of
//! picoseconds holds 213 days.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;

use crate::parse::{ParseQuantityError, Scale, parse_quantity};

const PICOS_PER_NANO: u64 = 1_000;
const PICOS_PER_MICRO: u64 = 1_000_000;
const PICOS_PER_MILLI: u64 = 1_000_000_000;
const PICOS_PER_SECOND: u64 = 1_000_000_000_000;

/// A point in time: picoseconds since the driver's own zero (the start of a simulation, or of a process).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A length of time in picoseconds. Written as `500ns`, `55us`, `1.5ms` or `2s` in scenario files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Time {
    /// The driver's zero.
    pub const ZERO: Self = Self(0);
    /// Later than everything: "no deadline".
    pub const NEVER: Self = Self(u64::MAX);

    /// A point `picos` picoseconds after zero.
    pub const fn from_picos(picos: u64) -> Self {
        Self(picos)
    }

    /// A point `nanos` nanoseconds after zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos * PICOS_PER_NANO)
    }

    /// Picoseconds since zero.
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds since zero, rounded down.
    pub const fn as_nanos(self) -> u64 {
        self.0 / PICOS_PER_NANO
    }

    /// Seconds since zero, for people: never for arithmetic that decides anything.
    pub fn as_seconds_f64(self) -> f64 {
        self.0 as f64 / PICOS_PER_SECOND as f64
    }

    /// The time since `earlier`, or nothing where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, and [`Time::NEVER`] past the end.
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than everything.
    pub const MAX: Self = Self(u64::MAX);

    /// `picos` picoseconds.
    pub const fn picos(picos: u64) -> Self {
        Self(picos)
    }

    /// `nanos` nanoseconds.
    pub const fn nanos(nanos: u64) -> Self {
        Self(nanos * PICOS_PER_NANO)
    }

    /// `micros` microseconds.
    pub const fn micros(micros: u64) -> Self {
        Self(micros * PICOS_PER_MICRO)
    }

    /// `millis` milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Self(millis * PICOS_PER_MILLI)
    }

    /// `seconds` seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(seconds * PICOS_PER_SECOND)
    }

    /// The span in picoseconds.
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// The span in whole nanoseconds, rounded down.
    pub const fn as_nanos(self) -> u64 {
        self.0 / PICOS_PER_NANO
    }

    /// The span in whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / PICOS_PER_MICRO
    }

    /// The span in microseconds, for people.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / PICOS_PER_MICRO as f64
    }

    /// The span in seconds, for people.
    pub fn as_seconds_f64(self) -> f64 {
        self.0 as f64 / PICOS_PER_SECOND as f64
    }

    /// Whether the span is empty.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, and zero where `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// How often `other` fits into the span, rounded down; `other` must not be zero.
    pub const fn div_floor(self, other: Self) -> u64 {
        self.0 / other.0
    }

    /// The span rounded down to whole nanoseconds, as simulators with a nanosecond clock count it.
    pub const fn floor_to_nanos(self) -> Self {
        Self(self.0 - self.0 % PICOS_PER_NANO)
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0 - span.0)
    }
}

impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        Span(self.0 - earlier.0)
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

impl Div<u64> for Span {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

/// Writes the span in the largest unit, to three decimals: `1.5us`, `83.84ns`, `2s`. `{:#}` writes it exactly.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            let whole = (SPAN_SCALES.iter().rev())
                .find(|scale| self.0 > 0 && self.0.is_multiple_of(scale.worth()));
            return match whole {
                Some(scale) => write!(f, "{}{}", self.0 / scale.worth(), scale.unit()),
                None => f.write_str("0s"),
            };
        }
        let (scale, unit) = match self.0 {
            0 => return f.write_str("0s"),
            p if p >= PICOS_PER_SECOND => (PICOS_PER_SECOND, "s"),
            p if p >= PICOS_PER_MILLI => (PICOS_PER_MILLI, "ms"),
            p if p >= PICOS_PER_MICRO => (PICOS_PER_MICRO, "us"),
            p if p >= PICOS_PER_NANO => (PICOS_PER_NANO, "ns"),
            _ => (1, "ps"),
        };
        let value = self.0 as f64 / scale as f64;
        let text = format!("{value:.3}");
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        };
        write!(f, "{text}{unit}")
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER {
            f.write_str("never")
        } else {
            fmt::Display::fmt(&Span(self.0), f)
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const SPAN_SCALES: &[Scale] = &[
    Scale::new("ps", 1),
    Scale::new("ns", PICOS_PER_NANO),
    Scale::new("µs", PICOS_PER_MICRO),
    Scale::new("us", PICOS_PER_MICRO),
    Scale::new("ms", PICOS_PER_MILLI),
    Scale::new("s", PICOS_PER_SECOND),
];

impl FromStr for Span {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_quantity(
            text,
            "a length of time",
            "500ns, 55us, 1.5ms or 2s",
            SPAN_SCALES,
        )
        .map(Self)
    }
}

impl FromStr for Time {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(|Span(picos)| Self(picos))
    }
}

crate::parse::serde_as_text!(Span, "a length of time such as \"500ns\"");
crate::parse::serde_as_text!(Time, "a point in time such as \"2ms\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in ["500ns", "55us", "1.5ms", "2s", "83.84ns", "1ps"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("55µs".parse::<Span>().unwrap(), Span::micros(55));
        assert_eq!(Span::ZERO.to_string(), "0s");
    }

    #[test]
    fn exact_text_and_back() {
        for picos in [
            0,
            1,
            83_840,
            1_500_000,
            2_000_000_272_000,
            2_000_000_000_000,
        ] {
            let span = Span::picos(picos);
            assert_eq!(format!("{span:#}").parse(), Ok(span));
        }
        assert_eq!(
            format!("{:#}", Time::from_nanos(2_000_000_272)),
            "2000000272ns"
        );
        assert_eq!(format!("{:#}", Span::micros(55)), "55us");
    }

    #[test]
    fn wrong_text_says_what_is_allowed() {
        let error = "55".parse::<Span>().unwrap_err().to_string();
        assert!(error.contains("unit") && error.contains("500ns"), "{error}");
        let error = "7 parsecs".parse::<Span>().unwrap_err().to_string();
        assert!(error.contains("parsecs"), "{error}");
        assert!("-1ns".parse::<Span>().is_err());
        assert!("0.0001ps".parse::<Span>().is_err(), "finer than the clock");
        assert!(
            "999999999s".parse::<Span>().is_err(),
            "longer than the clock"
        );
    }
}
