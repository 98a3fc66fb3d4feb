//! A policy's file: levels of service, and rules that say which traffic has which.
//!
//! ```toml
//! [[level]]
//! name = "storage"
//! sl = 3                                # 0 to 15
//!
//! [[rule]]                              # the first one that fits decides
//! level = "storage"
//! partitions = [0x8001]
//! services = [0x10cc, "0x1000-0x1fff"]  # numbers, or ranges
//! classes = [2]                         # what who asks calls it
//! sources = ["0x0002c90300a1b2c3"]      # GUIDs of ports
//! destinations = []
//! ```
//!
//! Of each list that is there and not empty, one must fit. A path that no rule fits has the level of its partition.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use softfabric_subnet::manager::{Level, Policy, PolicyError, Rule};
use softfabric_units::{Guid, PartitionKey};
use softfabric_wire::mad::cm::ServiceId;
use toml::Spanned;

use crate::failure::Failure;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    level: Vec<LevelTable>,
    #[serde(default)]
    rule: Vec<RuleTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelTable {
    name: Spanned<String>,
    sl: Number<0, 15>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    level: Spanned<String>,
    #[serde(default)]
    partitions: Vec<Number<1, 0xffff>>,
    #[serde(default)]
    services: Vec<Range>,
    #[serde(default)]
    classes: Vec<Number<0, 0xfff>>,
    #[serde(default)]
    sources: Vec<Number<1, { u64::MAX }>>,
    #[serde(default)]
    destinations: Vec<Number<1, { u64::MAX }>>,
}

/// A number, or a text of one: those above 2⁶³ do not fit a number of TOML.
struct Number<const LEAST: u64, const MOST: u64>(u64);

/// From one number to another, or one alone.
struct Range(u64, u64);

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Number<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Range(first, last) = deserializer.deserialize_any(Numbers)?;
        let fits = first == last && (LEAST..=MOST).contains(&first);
        if !fits {
            let found = if first == last {
                format!("{first:#x}")
            } else {
                "a range".to_owned()
            };
            return Err(D::Error::custom(format!(
                "found {found}, needed one number from {LEAST} to {MOST:#x}"
            )));
        }
        Ok(Self(first))
    }
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Numbers)
    }
}

struct Numbers;

impl Visitor<'_> for Numbers {
    type Value = Range;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a text such as \"0x1000\" or \"0x1000-0x1fff\"")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Range, E> {
        let number = u64::try_from(value)
            .map_err(|_| E::custom(format!("found {value}, needed 0 or more")))?;
        Ok(Range(number, number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Range, E> {
        let number = |text: &str| {
            let text = text.trim();
            let parsed = match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => text.parse(),
            };
            parsed.map_err(|_| {
                E::custom(format!(
                    "found {text:?}, needed a number such as 4300 or 0x10cc"
                ))
            })
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(E::custom(format!(
                "found {text:?}, needed a range from the lower to the higher"
            )));
        }
        Ok(Range(first, last))
    }
}

/// Reads a file.
///
/// # Errors
/// With file and line of what cannot be.
pub(super) fn read(path: &Path) -> Result<Policy, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::unreadable(path, error))?;
    parse(&text).map_err(|(line, problem)| Failure::Arguments {
        problem: format!("{}:{line}: {problem}", path.display()),
        help: None,
    })
}

/// The policy that a text says; otherwise the line, from 1, and what is wrong with it.
fn parse(text: &str) -> Result<Policy, (usize, String)> {
    let line = |place: usize| 1 + text[..place.min(text.len())].matches('\n').count();
    let file: File = toml::from_str(text).map_err(|error| {
        let place = error.span().map_or(0, |span| span.start);
        (line(place), error.message().to_owned())
    })?;
    let names: Vec<usize> = file
        .level
        .iter()
        .map(|level| level.name.span().start)
        .collect();
    let uses: Vec<usize> = file
        .rule
        .iter()
        .map(|rule| rule.level.span().start)
        .collect();
    let place = |error: &PolicyError| match error {
        PolicyError::UnknownLevel { rule, .. } => uses[rule - 1],
        PolicyError::Twice { name } | PolicyError::ServiceLevel { name, .. } => {
            let mut same = names.iter().zip(&file.level);
            let last = same.rfind(|(_, level)| level.name.get_ref() == name);
            last.map_or(0, |(place, _)| *place)
        }
    };
    let levels = file.level.iter().map(|level| Level {
        name: level.name.get_ref().clone(),
        sl: level.sl.0 as u8,
    });
    let rules = file.rule.iter().map(|rule| Rule {
        level: rule.level.get_ref().clone(),
        partitions: all(&rule.partitions, |key| PartitionKey(key as u16)),
        services: rule
            .services
            .iter()
            .map(|Range(first, last)| (ServiceId(*first), ServiceId(*last)))
            .collect(),
        classes: all(&rule.classes, |class| class as u16),
        sources: all(&rule.sources, Guid),
        destinations: all(&rule.destinations, Guid),
    });
    Policy::new(levels.collect(), rules.collect())
        .map_err(|error| (line(place(&error)), error.to_string()))
}

fn all<T, const LEAST: u64, const MOST: u64>(
    numbers: &[Number<LEAST, MOST>],
    make: impl Fn(u64) -> T,
) -> Vec<T> {
    numbers.iter().map(|number| make(number.0)).collect()
}

#[cfg(test)]
mod tests {
    use softfabric_subnet::manager::PathRequest;

    use super::*;

    const FILE: &str = r#"
[[level]]
name = "storage"
sl = 3

[[rule]]
level = "storage"
partitions = [0x8001]
services = [0x10cc, "0x1000-0x1fff", "0xffffffffffffffff"]
sources = ["0x8002c90300a1b2c3"]
"#;

    #[test]
    fn a_file_is_read() {
        let policy = parse(FILE).unwrap();
        let request = PathRequest {
            partition: PartitionKey(1),
            service: Some(ServiceId(u64::MAX)),
            class: None,
            source: Guid(0x8002_c903_00a1_b2c3),
            destination: Guid(1),
        };
        assert_eq!(policy.level(&request).map(|level| level.sl), Some(3));
        let other = PathRequest {
            service: Some(ServiceId(0x2000)),
            ..request
        };
        assert_eq!(policy.level(&other), None);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (found, instead, line, wanted) in [
            (
                "sl = 3",
                "sl = 16",
                4,
                "found 0x10, needed one number from 0 to 0xf",
            ),
            (
                "level = \"storage\"",
                "level = \"fast\"",
                7,
                "there are storage",
            ),
            (
                "[0x8001]",
                "[0x18001]",
                8,
                "needed one number from 1 to 0xffff",
            ),
            (
                "0x1000-0x1fff",
                "0x1fff-0x1000",
                9,
                "from the lower to the higher",
            ),
            ("sources", "source", 10, "unknown field `source`"),
            ("sl = 3", "sl = -1", 4, "needed 0 or more"),
        ] {
            let text = FILE.replacen(found, instead, 1);
            let (at, problem) = parse(&text).unwrap_err();
            assert!(problem.contains(wanted), "{problem}");
            assert_eq!(at, line, "{problem}");
        }
        let twice = format!("{FILE}\n[[level]]\nname = \"storage\"\nsl = 1\n");
        let (at, problem) = parse(&twice).unwrap_err();
        assert_eq!(at, 13, "{problem}");
    }
}
