//! Counter values in the unit in which they are exported.

use serde::{Serialize, Serializer};
use softfabric_telemetry::{CounterDefinition, Unit};
use softfabric_units::{Span, Time};

/// A counter's value as outputs show it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ExportedValue {
    /// Packets, bytes or events.
    Whole(u64),
    /// Microseconds, as `ethtool` counts time, with the simulator's picoseconds behind the point.
    Microseconds(f64),
}

impl std::fmt::Display for ExportedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Microseconds(value) => value.fmt(f),
        }
    }
}

/// The value of a counter in its exported unit.
pub fn exported(definition: &CounterDefinition, value: u64) -> ExportedValue {
    match definition.unit {
        Unit::Picoseconds => ExportedValue::Microseconds(Span::picos(value).as_micros_f64()),
        Unit::Packets | Unit::Bytes | Unit::Events => ExportedValue::Whole(value),
    }
}

/// The name of the unit that [`exported`] gives.
pub fn exported_unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Packets => "packets",
        Unit::Bytes => "bytes",
        Unit::Events => "events",
        Unit::Picoseconds => "us",
    }
}

/// A count for people: `1,234,567`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Nanoseconds: a whole number where the picoseconds allow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Nanoseconds(pub(crate) u64);

impl From<Span> for Nanoseconds {
    fn from(span: Span) -> Self {
        Self(span.as_picos())
    }
}

impl From<Time> for Nanoseconds {
    fn from(time: Time) -> Self {
        Self(time.as_picos())
    }
}

impl Serialize for Nanoseconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(1_000) {
            serializer.serialize_u64(self.0 / 1_000)
        } else {
            serializer.serialize_f64(self.0 as f64 / 1e3)
        }
    }
}

impl std::fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest) = (self.0 / 1_000, self.0 % 1_000);
        if rest == 0 {
            write!(f, "{whole}")
        } else {
            let digits = format!("{rest:03}");
            write!(f, "{whole}.{}", digits.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use softfabric_telemetry::{ClassCounter, PortCounter};

    use super::*;

    #[test]
    fn time_is_exported_in_microseconds() {
        let duration = ClassCounter::PauseReceivedDuration.definition();
        assert_eq!(
            exported(duration, 1_500_001),
            ExportedValue::Microseconds(1.500_001)
        );
        let packets = PortCounter::TransmitPackets.definition();
        assert_eq!(exported(packets, 7), ExportedValue::Whole(7));
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(value), text);
        }
    }

    #[test]
    fn nanoseconds_are_whole_where_they_can_be() {
        for (picos, text) in [
            (834_091_000, "834091"),
            (1_234, "1.234"),
            (1_500, "1.5"),
            (1, "0.001"),
        ] {
            assert_eq!(Nanoseconds(picos).to_string(), text);
            assert_eq!(serde_json::to_string(&Nanoseconds(picos)).unwrap(), text);
        }
    }
}
