//! Reading `number unit` exactly, with errors that say what is allowed.

use thiserror::Error;

/// A text that is not the quantity that was needed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{found}` is not {expected}: {problem} (write it as {examples})")]
pub struct ParseQuantityError {
    /// The text that was found.
    pub found: String,
    /// What was needed, for a sentence.
    pub expected: &'static str,
    /// What is wrong with it.
    pub problem: String,
    /// How it may be written.
    pub examples: &'static str,
}

/// One unit and what it is worth in the type's base unit.
pub(crate) struct Scale {
    unit: &'static str,
    worth: u64,
}

impl Scale {
    pub(crate) const fn new(unit: &'static str, worth: u64) -> Self {
        Self { unit, worth }
    }

    pub(crate) const fn unit(&self) -> &'static str {
        self.unit
    }

    pub(crate) const fn worth(&self) -> u64 {
        self.worth
    }
}

/// Reads a decimal number and a unit into base units, exactly: what does not come out whole is refused.
pub(crate) fn parse_quantity(
    text: &str,
    expected: &'static str,
    examples: &'static str,
    scales: &[Scale],
) -> Result<u64, ParseQuantityError> {
    let fail = |problem: String| ParseQuantityError {
        found: text.to_owned(),
        expected,
        problem,
        examples,
    };
    let trimmed = text.trim();
    let number_end = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(number_end);
    let unit = unit.trim();
    if number.is_empty() {
        return Err(fail("it does not start with a number".to_owned()));
    }
    if unit.is_empty() && number.bytes().any(|b| b != b'0') {
        return Err(fail("the unit is missing".to_owned()));
    }
    let worth = match scales.iter().find(|scale| scale.unit == unit) {
        Some(scale) => scale.worth,
        None if unit.is_empty() => 1,
        None => {
            let known: Vec<_> = scales.iter().map(|scale| scale.unit).collect();
            return Err(fail(format!("`{unit}` is not one of {}", known.join(", "))));
        }
    };
    let digits = number.replace('_', "");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let bad_number = || fail(format!("`{number}` is not a decimal number"));
    let whole: u128 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| bad_number())?
    };
    let fraction = fraction.trim_end_matches('0');
    let fraction_value: u128 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().map_err(|_| bad_number())?
    };
    let fraction_scale = 10u128
        .checked_pow(fraction.len() as u32)
        .ok_or_else(bad_number)?;
    let fraction_part = fraction_value
        .checked_mul(u128::from(worth))
        .filter(|scaled| scaled.is_multiple_of(fraction_scale))
        .map(|scaled| scaled / fraction_scale)
        .ok_or_else(|| fail("it is finer than the smallest unit".to_owned()))?;
    whole
        .checked_mul(u128::from(worth))
        .and_then(|value| value.checked_add(fraction_part))
        .and_then(|value| u64::try_from(value).ok())
        .ok_or_else(|| fail("it is too large".to_owned()))
}

/// Serialises a quantity as the exact text that its alternate `Display` (`{:#}`) writes and its `FromStr` reads.
macro_rules! serde_as_text {
    ($quantity:ty, $expecting:literal) => {
        impl serde::Serialize for $quantity {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&format_args!("{self:#}"))
            }
        }

        impl<'de> serde::Deserialize<'de> for $quantity {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $quantity;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    };
}
pub(crate) use serde_as_text;
