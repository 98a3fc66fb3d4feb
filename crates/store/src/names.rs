//! Names of files, which say what is inside: times, and which topology they are of.

use std::fmt;

use chrono::{DateTime, NaiveDateTime};

use crate::Range;

/// Times in names: UTC, as short as ISO 8601 allows, sorted as text.
const TIME: &str = "%Y%m%dT%H%M%S.%9fZ";
const SECOND: u64 = 1_000_000_000;

/// `samples-FIRST-LAST-tTOPOLOGY[-COPY].parquet`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SegmentName {
    pub(crate) range: Range,
    /// The number of the topology that its ports are of.
    pub(crate) topology: u32,
    /// Tells segments apart that two sessions wrote of the same time; 1 stays unsaid.
    pub(crate) copy: u32,
}

impl SegmentName {
    /// `None` if the name is another file's.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("samples-")?.strip_suffix(".parquet")?;
        let mut parts = rest.split('-');
        let from = from_text(parts.next()?)?;
        let to = from_text(parts.next()?)?;
        let topology = parts.next()?.strip_prefix('t')?.parse().ok()?;
        let copy = match parts.next() {
            Some(copy) => copy.parse().ok()?,
            None => 1,
        };
        let range = Range { from, to };
        let name = Self {
            range,
            topology,
            copy,
        };
        parts.next().is_none().then_some(name)
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (in_name(self.range.from), in_name(self.range.to));
        write!(f, "samples-{from}-{to}-t{:04}", self.topology)?;
        if self.copy > 1 {
            write!(f, "-{}", self.copy)?;
        }
        f.write_str(".parquet")
    }
}

/// The name of a topology's file.
pub(crate) fn topology(number: u32) -> String {
    format!("topology-{number:04}.jsonl")
}

/// The number in the name of a topology's file.
pub(crate) fn topology_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("topology-")?.strip_suffix(".jsonl")?;
    number.parse().ok()
}

/// A time since 1970 for people: `2026-12-01T02:17:00Z`, with as many digits of a second as it takes.
pub(crate) fn for_people(unix_nanos: u64) -> String {
    let time = DateTime::from_timestamp_nanos(i64::try_from(unix_nanos).unwrap_or(i64::MAX));
    time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
}

/// The nanoseconds since 1970 of a time as RFC 3339 writes it, such as `2026-12-01T02:17:00Z` or `…+01:00`; `None` if it is
/// none, or before 1970.
pub fn unix_nanos(text: &str) -> Option<u64> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    u64::try_from(time.timestamp_nanos_opt()?).ok()
}

fn in_name(unix_nanos: u64) -> String {
    let seconds = i64::try_from(unix_nanos / SECOND).unwrap_or(i64::MAX);
    let time = DateTime::from_timestamp(seconds, (unix_nanos % SECOND) as u32);
    time.unwrap_or_default().format(TIME).to_string()
}

fn from_text(text: &str) -> Option<u64> {
    let time = NaiveDateTime::parse_from_str(text, TIME).ok()?.and_utc();
    let seconds = u64::try_from(time.timestamp()).ok()?;
    let nanos = u64::from(time.timestamp_subsec_nanos());
    seconds.checked_mul(SECOND)?.checked_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_inside_and_sort_by_time() {
        let name = |from, to, topology, copy| SegmentName {
            range: Range { from, to },
            topology,
            copy,
        };
        let names = [
            name(0, 5, 1, 1),
            name(1_764_555_420_000_000_000, 1_764_555_479_999_999_999, 1, 1),
            name(1_764_555_420_000_000_001, 1_764_555_479_999_999_999, 12, 3),
            name(u64::MAX - 1, u64::MAX, 1, 1),
        ];
        let texts = names.map(|name| name.to_string());
        assert_eq!(
            texts[1],
            "samples-20251201T021700.000000000Z-20251201T021759.999999999Z-t0001.parquet"
        );
        assert!(texts.is_sorted(), "{texts:?}");
        for (name, text) in names.iter().zip(&texts) {
            assert_eq!(SegmentName::parse(text), Some(*name), "{text}");
        }
        for other in ["samples.parquet", "samples-1-2-t3.parquet", "a.jsonl", ""] {
            assert_eq!(SegmentName::parse(other), None);
        }
        assert_eq!(topology_number(&topology(7)), Some(7));
        assert_eq!(topology_number("topology-x.jsonl"), None);
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(unix_nanos("1970-01-01T00:00:01.5Z"), Some(1_500_000_000));
        assert_eq!(unix_nanos("1970-01-01T01:00:01+01:00"), Some(1_000_000_000));
        assert_eq!(for_people(1_500_000_000), "1970-01-01T00:00:01.500Z");
        for wrong in ["", "yesterday", "2026-12-01", "1969-12-31T23:59:59Z"] {
            assert_eq!(unix_nanos(wrong), None, "{wrong}");
        }
    }
}
