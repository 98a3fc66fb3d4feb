//! Rules: which packets meet which fault.
//!
//! ```text
//! drop:p=1%                            one packet in a hundred that is sent
//! delay=2ms:opcode=RC_ACKNOWLEDGE      every acknowledgement
//! corrupt:packets=5,10-12:at=receive   of those that arrive, numbers 5, 10, 11 and 12
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use softfabric_units::Span;
use softfabric_wire::rdma::Opcode;

/// What happens to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It is lost.
    Drop,
    /// It comes twice.
    Duplicate,
    /// It comes after packets that were behind it.
    Reorder,
    /// It comes later.
    Delay(Span),
    /// One of its bits is flipped.
    Corrupt,
    /// It is marked "congestion experienced".
    Mark,
}

/// Where packets meet faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Point {
    /// Before they leave.
    #[default]
    Send,
    /// After they have arrived.
    Receive,
}

/// One rule. A packet meets the fault if all of the conditions hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// What happens.
    pub fault: Fault,
    /// Where.
    pub point: Point,
    /// With what probability, 0 to 1.
    pub probability: f64,
    /// To packets with these numbers, counted from 1 at the point; empty: to all.
    pub packets: Vec<(u64, u64)>,
    /// To packets with these opcodes, by name; a star at the end stands for anything. Empty: to all.
    pub opcodes: Vec<String>,
}

impl Rule {
    /// A rule for every packet that is sent.
    pub const fn new(fault: Fault) -> Self {
        Self {
            fault,
            point: Point::Send,
            probability: 1.0,
            packets: Vec::new(),
            opcodes: Vec::new(),
        }
    }

    /// Whether a packet with this number may meet the fault, chance left aside.
    pub(super) fn applies(&self, number: u64, opcode: Option<Opcode>) -> bool {
        let numbered = self.packets.is_empty()
            || self
                .packets
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&number));
        numbered
            && (self.opcodes.is_empty()
                || opcode.is_some_and(|opcode| {
                    let name = plain(&opcode.to_string());
                    self.opcodes.iter().any(|pattern| is_match(pattern, &name))
                }))
    }
}

/// Names are compared without regard to case, spaces and underscores.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|character| !matches!(character, ' ' | '_'))
        .map(|character| character.to_ascii_lowercase())
        .collect()
}

fn is_match(pattern: &str, name: &str) -> bool {
    let pattern = plain(pattern);
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// Why a text is no rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RuleError {
    /// The fault is not one.
    #[error("`{0}` is no fault: it is drop, duplicate, reorder, delay=TIME, corrupt or mark")]
    Fault(String),
    /// A delay without a time, or a time where none belongs.
    #[error("`{0}`: a delay needs a time (delay=2ms), and only a delay has one")]
    Time(String),
    /// A condition is not one.
    #[error(
        "`{0}` is no condition: it is p=PROBABILITY, packets=NUMBERS, opcode=NAMES or at=send|receive"
    )]
    Condition(String),
    /// A probability is out of range.
    #[error("`{0}` is no probability: it is a number from 0 to 1, or a percentage such as 5%")]
    Probability(String),
    /// Numbers are not numbers.
    #[error("`{0}` is no list of packet numbers: it is such as 3,7-9, counted from 1")]
    Packets(String),
    /// No opcode has the name.
    #[error(
        "no opcode is named `{0}`: names are such as RC_SEND_ONLY or RC_ACKNOWLEDGE, and RC_SEND* stands for several"
    )]
    Opcode(String),
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut parts = text.split(':');
        let mut rule = Self::new(parse_fault(parts.next().unwrap_or_default().trim())?);
        for part in parts {
            let part = part.trim();
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| RuleError::Condition(part.to_owned()))?;
            match name {
                "p" => rule.probability = parse_probability(value)?,
                "packets" => rule.packets = parse_packets(value)?,
                "opcode" => rule.opcodes = parse_opcodes(value)?,
                "at" => {
                    rule.point = match value {
                        "send" => Point::Send,
                        "receive" => Point::Receive,
                        _ => return Err(RuleError::Condition(part.to_owned())),
                    }
                }
                _ => return Err(RuleError::Condition(part.to_owned())),
            }
        }
        Ok(rule)
    }
}

fn parse_fault(text: &str) -> Result<Fault, RuleError> {
    let (name, time) = match text.split_once('=') {
        Some((name, time)) => (name, Some(time)),
        None => (text, None),
    };
    let fault = match name {
        "drop" => Fault::Drop,
        "duplicate" => Fault::Duplicate,
        "reorder" => Fault::Reorder,
        "corrupt" => Fault::Corrupt,
        "mark" => Fault::Mark,
        "delay" => {
            let span = time.and_then(|time| time.parse().ok());
            let span = span.ok_or_else(|| RuleError::Time(text.to_owned()))?;
            return Ok(Fault::Delay(span));
        }
        _ => return Err(RuleError::Fault(text.to_owned())),
    };
    match time {
        Some(_) => Err(RuleError::Time(text.to_owned())),
        None => Ok(fault),
    }
}

fn parse_probability(text: &str) -> Result<f64, RuleError> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if (0.0..=whole).contains(&value) => Ok(value / whole),
        _ => Err(RuleError::Probability(text.to_owned())),
    }
}

fn parse_packets(text: &str) -> Result<Vec<(u64, u64)>, RuleError> {
    let wrong = || RuleError::Packets(text.to_owned());
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    text.split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first == 0 || first > last {
                return Err(wrong());
            }
            Ok((first, last))
        })
        .collect()
}

fn parse_opcodes(text: &str) -> Result<Vec<String>, RuleError> {
    text.split(',')
        .map(|name| {
            let known = Opcode::ALL
                .iter()
                .any(|opcode| is_match(name, &plain(&opcode.to_string())));
            if known {
                Ok(name.trim().to_owned())
            } else {
                Err(RuleError::Opcode(name.to_owned()))
            }
        })
        .collect()
}

/// Writes what [`Rule::from_str`] reads.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Fault::Drop => f.write_str("drop")?,
            Fault::Duplicate => f.write_str("duplicate")?,
            Fault::Reorder => f.write_str("reorder")?,
            Fault::Delay(span) => write!(f, "delay={span:#}")?,
            Fault::Corrupt => f.write_str("corrupt")?,
            Fault::Mark => f.write_str("mark")?,
        }
        if self.probability < 1.0 {
            write!(f, ":p={}", self.probability)?;
        }
        if !self.packets.is_empty() {
            let list = self.packets.iter().map(|(first, last)| {
                if first == last {
                    first.to_string()
                } else {
                    format!("{first}-{last}")
                }
            });
            write!(f, ":packets={}", list.collect::<Vec<_>>().join(","))?;
        }
        if !self.opcodes.is_empty() {
            write!(f, ":opcode={}", self.opcodes.join(","))?;
        }
        match self.point {
            Point::Send => Ok(()),
            Point::Receive => f.write_str(":at=receive"),
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_back_from_their_text() {
        for text in [
            "drop",
            "drop:p=0.01",
            "delay=2ms:opcode=RC_ACKNOWLEDGE",
            "corrupt:packets=5,10-12:at=receive",
            "mark:p=0.5:opcode=RC_SEND*,UD_SEND_ONLY",
            "reorder:p=0.25",
            "duplicate:packets=1",
        ] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        assert_eq!("drop:p=5%".parse::<Rule>().unwrap().probability, 0.05);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("lose", "drop, duplicate"),
            ("delay", "delay=2ms"),
            ("drop=1ms", "only a delay"),
            ("drop:p=2", "0 to 1"),
            ("drop:p=-1%", "percentage"),
            ("drop:packets=0", "counted from 1"),
            ("drop:packets=9-3", "counted from 1"),
            ("drop:opcode=RC_SEMD", "RC_SEMD"),
            ("drop:often", "condition"),
            ("drop:at=home", "at=send|receive"),
        ] {
            let error = text.parse::<Rule>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn conditions_are_all_needed() {
        let rule: Rule = "drop:packets=3-5:opcode=rc_send*".parse().unwrap();
        let send = Some(Opcode::RC_SEND_LAST);
        assert!(rule.applies(4, send));
        assert!(!rule.applies(6, send));
        assert!(!rule.applies(4, Some(Opcode::RC_ACKNOWLEDGE)));
        assert!(!rule.applies(4, None), "not even a packet");
    }
}
