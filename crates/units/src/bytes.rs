//! Amounts of data.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use std::str::FromStr;

use crate::parse::{ParseQuantityError, Scale, parse_quantity};

/// A number of bytes. Written as `64KiB`, `9100B`, `10MB` or `1GiB` in scenario files: `KiB` is 1,024, `KB` 1,000.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// More than any memory.
    pub const MAX: Self = Self(u64::MAX);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `kib` · 1,024 bytes.
    pub const fn kib(kib: u64) -> Self {
        Self(kib << 10)
    }

    /// `mib` · 1,024² bytes.
    pub const fn mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    /// `gib` · 1,024³ bytes.
    pub const fn gib(gib: u64) -> Self {
        Self(gib << 30)
    }

    /// `kb` · 1,000 bytes.
    pub const fn kb(kb: u64) -> Self {
        Self(kb * 1_000)
    }

    /// `mb` · 10⁶ bytes.
    pub const fn mb(mb: u64) -> Self {
        Self(mb * 1_000_000)
    }

    /// The number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The number of bytes, for people and ratios.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Whether there is nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, and zero where `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Writes the amount exactly, in the largest binary or decimal unit that divides it: `64KiB`, `10MB`, `9100B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (1 << 30, "GiB"),
            (1_000_000_000, "GB"),
            (1 << 20, "MiB"),
            (1_000_000, "MB"),
            (1 << 10, "KiB"),
            (10_000, ""),
            (1, "B"),
        ];
        for (size, unit) in units {
            if self.0 >= size && self.0.is_multiple_of(size) {
                return if unit.is_empty() {
                    write!(f, "{}KB", self.0 / 1_000)
                } else {
                    write!(f, "{}{unit}", self.0 / size)
                };
            }
        }
        f.write_str("0B")
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const SCALES: &[Scale] = &[
    Scale::new("B", 1),
    Scale::new("KiB", 1 << 10),
    Scale::new("MiB", 1 << 20),
    Scale::new("GiB", 1 << 30),
    Scale::new("TiB", 1 << 40),
    Scale::new("KB", 1_000),
    Scale::new("kB", 1_000),
    Scale::new("MB", 1_000_000),
    Scale::new("GB", 1_000_000_000),
    Scale::new("TB", 1_000_000_000_000),
];

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_quantity(text, "an amount of data", "64KiB, 10MB or 9100B", SCALES).map(Self)
    }
}

crate::parse::serde_as_text!(Bytes, "an amount of data such as \"64KiB\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in [
            "64KiB", "10MB", "9100B", "1GiB", "32MiB", "400KB", "0B", "1000B",
        ] {
            assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
        }
        assert_eq!("1.5KiB".parse::<Bytes>().unwrap(), Bytes::new(1536));
        assert!("1.5B".parse::<Bytes>().is_err(), "half a byte");
        assert!(
            "64K"
                .parse::<Bytes>()
                .unwrap_err()
                .to_string()
                .contains("KiB")
        );
    }
}
