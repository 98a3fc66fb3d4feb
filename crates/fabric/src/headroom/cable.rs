//! The length of a cable, and how long light takes through it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use softfabric_units::Span;
use thiserror::Error;

/// The length of a cable in whole centimetres. Written as SONiC writes it, `5m` or `0.5m`.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct CableLength {
    centimetres: u32,
}

impl CableLength {
    /// How fast a signal travels in fibre, as SONiC's headroom calculation has it.
    pub const METRES_PER_SECOND: u64 = 198_000_000;

    /// `metres` metres.
    pub const fn metres(metres: u32) -> Self {
        Self::centimetres(metres * 100)
    }

    /// `centimetres` centimetres.
    pub const fn centimetres(centimetres: u32) -> Self {
        Self { centimetres }
    }

    /// The length in centimetres.
    pub const fn as_centimetres(self) -> u32 {
        self.centimetres
    }

    /// How long a signal takes from one end to the other, rounded up: about 5.05 ns a metre.
    pub const fn delay(self) -> Span {
        // centimetres / 100 / 1.98e8 seconds, in picoseconds.
        let picos = self.centimetres as u64 * 10_000_000_000;
        Span::picos(picos.div_ceil(Self::METRES_PER_SECOND))
    }
}

impl fmt::Display for CableLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (metres, rest) = (self.centimetres / 100, self.centimetres % 100);
        match (rest, rest % 10) {
            (0, _) => write!(f, "{metres}m"),
            (_, 0) => write!(f, "{metres}.{}m", rest / 10),
            _ => write!(f, "{metres}.{rest:02}m"),
        }
    }
}

/// A text that is not the length of a cable.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "`{found}` is not a cable length: write metres with at most two decimals, such as 5m or 0.5m"
)]
pub struct ParseCableLengthError {
    /// The text found.
    pub found: String,
}

impl FromStr for CableLength {
    type Err = ParseCableLengthError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| ParseCableLengthError {
            found: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<CableLength> {
    let number = text.trim().strip_suffix('m')?.trim_end();
    let (metres, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(metres) || !all_digits(fraction) || fraction.len() > 2 {
        return None;
    }
    let mut hundredths: u32 = fraction.parse().ok()?;
    if fraction.len() == 1 {
        hundredths *= 10;
    }
    let centimetres = metres.parse::<u32>().ok()?.checked_mul(100)?;
    centimetres
        .checked_add(hundredths)
        .map(CableLength::centimetres)
}

impl TryFrom<String> for CableLength {
    type Error = ParseCableLengthError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CableLength> for String {
    fn from(length: CableLength) -> Self {
        length.to_string()
    }
}
