//! What quantities look like in the schema, and the few values that are either a word or a quantity.
//!
//! Invariant: every `format` written here is known to [`check`], which reads the text just as the types do.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use softfabric_units::{Bytes, Rate, Span, Time};

use crate::plan::Alpha;

/// Stands for a quantity of another crate in the schema.
macro_rules! in_schema {
    ($name:ident, $format:literal, $what:literal, [$($example:literal),+]) => {
        pub(crate) enum $name {}

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                $format.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string", "format": $format, "title": $what, "examples": [$($example),+]
                })
            }
        }
    };
}

in_schema!(RateText, "rate", "a bit rate", ["400Gb/s", "40Mb/s"]);
in_schema!(SpanText, "span", "a length of time", ["500ns", "55us"]);
in_schema!(TimeText, "time", "a point in time", ["0s", "2ms"]);
in_schema!(BytesText, "bytes", "an amount of data", ["64KiB", "10MB"]);

/// A value that is either a word or a quantity, written as text.
macro_rules! word_or {
    ($(#[$doc:meta])* $name:ident, $inner:ty, $variant:ident, $word:literal, $format:literal, $what:literal, [$($example:literal),+]) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            #[doc = concat!("`", $word, "`.")]
            $variant,
            /// A quantity.
            Value($inner),
        }

        impl $name {
            /// The quantity, unless it is the word.
            pub fn value(self) -> Option<$inner> {
                match self {
                    Self::$variant => None,
                    Self::Value(value) => Some(value),
                }
            }
        }

        impl From<Option<$inner>> for $name {
            fn from(value: Option<$inner>) -> Self {
                value.map_or(Self::$variant, Self::Value)
            }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $word => Ok(Self::$variant),
                    _ => text.parse().map(Self::Value).map_err(|error: softfabric_units::ParseQuantityError| {
                        format!("{error}, or `{}`", $word)
                    }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::$variant => f.write_str($word),
                    Self::Value(value) => value.fmt(f),
                }
            }
        }

        as_text!($name, $format, $what, [$($example),+]);
    };
}

/// Reads and writes a type as text, and says so in the schema.
macro_rules! as_text {
    ($name:ident, $format:literal, $what:literal, [$($example:literal),+]) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                $format.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string", "format": $format, "title": $what, "examples": [$($example),+]
                })
            }
        }
    };
}

word_or!(
    /// How much headroom a priority group has.
    Headroom, Bytes, Auto, "auto", "headroom", "an amount of data, or \"auto\"", ["auto", "100KiB"]
);
word_or!(
    /// When a byte counter acts.
    ByteCounter, Bytes, Off, "off", "byte_counter", "an amount of data, or \"off\"", ["10MB", "off"]
);
word_or!(
    /// How fast memory takes what arrives.
    Drain, Rate, Unlimited, "unlimited", "drain", "a bit rate, or \"unlimited\"", ["50Gb/s", "unlimited"]
);

word_or!(
    /// The memory that absorbs packets in flight after a pause frame.
    HeadroomPool, Bytes, Own, "own", "headroom_pool", "an amount of data, or \"own\"", ["20MB", "own"]
);
word_or!(
    /// The most that may be under way.
    Limit, Bytes, None, "none", "limit", "an amount of data, or \"none\"", ["150KB", "none"]
);
word_or!(
    /// How often something is looked at.
    Interval, Span, Off, "off", "interval", "a length of time, or \"off\"", ["10us", "off"]
);

/// How much of the shared memory one user may take: `1/8` or `4` of what is free (a power of two), `200KB`, or
/// `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(pub Alpha);

impl FromStr for Share {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text == "unlimited" {
            return Ok(Self(Alpha::Unlimited));
        }
        let (number, is_fraction) = match text.strip_prefix("1/") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        if let Ok(number) = number.parse::<u32>() {
            let power = number.checked_ilog2().filter(|power| 1 << power == number);
            let exponent = power.map(|power| {
                if is_fraction {
                    -(power as i8)
                } else {
                    power as i8
                }
            });
            return match exponent {
                Some(exponent) if (-7..=6).contains(&exponent) => {
                    Ok(Self(Alpha::Dynamic(exponent)))
                }
                _ => Err(format!("`{text}` is not a power of two from 1/128 to 64")),
            };
        }
        (text.parse::<Bytes>())
            .map(|bytes| Self(Alpha::Static(bytes)))
            .map_err(|_| {
                format!(
                    "`{text}` is not a share of the free memory: write 1/8 or 4, an amount such as 200KB, or \
                     `unlimited`"
                )
            })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Alpha::Unlimited => f.write_str("unlimited"),
            Alpha::Static(bytes) => bytes.fmt(f),
            Alpha::Dynamic(exponent @ ..0) => write!(f, "1/{}", 1u32 << exponent.unsigned_abs()),
            Alpha::Dynamic(exponent) => write!(f, "{}", 1u32 << exponent),
        }
    }
}

as_text!(
    Share,
    "share",
    "a share of the free memory (a power of two), an amount of data, or \"unlimited\"",
    ["1/8", "4", "200KB", "unlimited"]
);

/// What is wrong with a text of a format, if anything is. Other formats allow every text.
pub(super) fn check(format: &str, text: &str) -> Option<String> {
    fn wrong<T: FromStr>(text: &str) -> Option<String>
    where
        T::Err: fmt::Display,
    {
        text.parse::<T>().err().map(|error| error.to_string())
    }
    match format {
        "rate" => wrong::<Rate>(text),
        "span" => wrong::<Span>(text),
        "time" => wrong::<Time>(text),
        "bytes" => wrong::<Bytes>(text),
        "headroom" => wrong::<Headroom>(text),
        "byte_counter" => wrong::<ByteCounter>(text),
        "drain" => wrong::<Drain>(text),
        "headroom_pool" => wrong::<HeadroomPool>(text),
        "limit" => wrong::<Limit>(text),
        "interval" => wrong::<Interval>(text),
        "share" => wrong::<Share>(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_back() {
        for text in ["1/8", "1/128", "1", "4", "64", "200KB", "unlimited"] {
            assert_eq!(text.parse::<Share>().unwrap().to_string(), text);
        }
        assert_eq!("1/8".parse::<Share>().unwrap().0, Alpha::Dynamic(-3));
        for text in ["3", "1/6", "128", "1/256", "0", "1/0"] {
            let error = text.parse::<Share>().unwrap_err();
            assert!(
                error.contains("is not a power of two from 1/128 to 64"),
                "{error}"
            );
        }
    }

    #[test]
    fn words_or_quantities() {
        assert_eq!("auto".parse(), Ok(Headroom::Auto));
        assert_eq!("3KiB".parse(), Ok(Headroom::Value(Bytes::kib(3))));
        let error = "fast".parse::<Drain>().unwrap_err();
        assert!(error.ends_with(", or `unlimited`"), "{error}");
        assert!(
            check("headroom", "12")
                .unwrap()
                .contains("the unit is missing")
        );
        assert_eq!(check("rate", "100Gb/s"), None);
    }
}
