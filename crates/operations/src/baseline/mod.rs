//! What a fabric could do on the day on which it was commissioned, as a file; and what differs now.
//!
//! ```text
//! {
//!   "softfabric_baseline": 1,
//!   "about": "leaf_spine, 12 hosts",
//!   "conditions": { "made": "2026-11-30T09:12:44Z", "command": "softfabric commission …", "version": "0.1.0", … },
//!   "pairs": [ { "client": "h0", "server": "h1", "round": 0, "bandwidth_bps": 96900000000, "latency_ns": 2100 }, … ],
//!   "hosts": [ { "host": "h0", "sends_bps": 96900000000, "receives_bps": 96900000000 }, … ],
//!   "ports": [ { "port": "leaf0:3", "busy": 0.97, "held": 0, "marked": 0.001, "queue_bytes": 61440 }, … ]
//! }
//! ```
//!
//! Every pair was measured on a fabric that did nothing else. Bandwidths are of payload, in bits a second; shares are from 0 to 1;
//! the watermarks of queues are in bytes.

mod compare;
mod outliers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::compare::{Deviation, Deviations, Measure};
pub use self::outliers::{Of, Outlier, Outliers};

/// The version of the format that is written.
const VERSION: u32 = 1;

/// What was measured at commissioning.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    softfabric_baseline: u32,
    /// Which fabric this is of.
    pub about: String,
    /// How it was measured.
    pub conditions: Conditions,
    /// One entry a measured pair, in the order of the rounds.
    pub pairs: Vec<Pair>,
    /// One entry a host, in the order of their names.
    pub hosts: Vec<Host>,
    /// One entry a port; none where only the ends were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortAtWork>,
}

/// How a baseline was measured: what must be the same for another one to be compared with it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// When, as RFC 3339 writes it. Empty where a simulation measured it, which has no date.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub made: String,
    /// The command that was given.
    pub command: String,
    /// The version of softfabric.
    pub version: String,
    /// What measured: the simulator, or another program as it names itself.
    pub tool: String,
    /// How traffic was laid over the hosts.
    pub pattern: Pattern,
    /// How many bytes a pair sent, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The seed of a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Anything else that matters, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// How traffic was laid over the hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Every pair once in each direction, in rounds in which no host is in two pairs.
    #[default]
    Pairs,
    /// A ring over the hosts of each rail, as an all-reduce goes round it.
    Rings,
}

impl Pattern {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pairs => "every pair, in rounds of disjoint pairs",
            Self::Rings => "a ring over each rail",
        }
    }
}

/// What one pair achieved, from the client to the server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Who sent.
    pub client: String,
    /// Who received.
    pub server: String,
    /// In which round.
    pub round: u32,
    /// The rail, where hosts have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rail: Option<u32>,
    /// Payload, in bits a second.
    pub bandwidth_bps: f64,
    /// Of a small message, one way or as the tool defines it, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
}

/// What one host achieved: the median over its pairs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Payload that it sent, in bits a second.
    pub sends_bps: f64,
    /// Payload that it received, in bits a second.
    pub receives_bps: f64,
}

/// What a port did while it was at work: the mean over all rounds in which it carried anything.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortAtWork {
    /// Its name.
    pub port: String,
    /// For what share of the time it sent.
    pub busy: f64,
    /// For what share of the time it was held.
    pub held: f64,
    /// Of the packets that it sent, how many it marked.
    pub marked: f64,
    /// The most bytes that stood in one of its egress queues, where it tells that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
}

/// Why a file is no baseline.
#[derive(Debug, Error)]
pub enum BaselineError {
    /// It is something else.
    #[error("this is no baseline: it must begin with {{\"softfabric_baseline\": {VERSION}, …}}")]
    Other,
    /// A version that this program does not know.
    #[error("it is of version {0}, and this program reads version {VERSION}")]
    Version(u64),
    /// A field is wrong.
    #[error("line {line}, field `{field}`: {problem}")]
    Field {
        /// Where.
        line: usize,
        /// Which.
        field: String,
        /// What.
        problem: String,
    },
}

impl Baseline {
    /// Makes one of what was measured. Hosts are the medians of their pairs.
    pub fn new(about: impl Into<String>, conditions: Conditions, pairs: Vec<Pair>) -> Self {
        let mut sends: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut receives: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for pair in &pairs {
            let bandwidth = pair.bandwidth_bps;
            sends.entry(&pair.client).or_default().push(bandwidth);
            receives.entry(&pair.server).or_default().push(bandwidth);
            sends.entry(&pair.server).or_default();
        }
        let hosts = sends.iter().map(|(host, sent)| Host {
            host: (*host).to_owned(),
            sends_bps: median(sent),
            receives_bps: receives.get(host).map_or(0.0, |values| median(values)),
        });
        let hosts = hosts.collect();
        Self {
            softfabric_baseline: VERSION,
            about: about.into(),
            conditions,
            pairs,
            hosts,
            ports: Vec::new(),
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// If it is none, with the field that is wrong.
    pub fn read(text: &str) -> Result<Self, BaselineError> {
        let version = serde_json::from_str::<serde_json::Value>(text)
            .ok()
            .and_then(|value| value.get("softfabric_baseline")?.as_u64());
        match version {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) => return Err(BaselineError::Version(version)),
            None if text.contains("\"softfabric_baseline\"") => {}
            None => return Err(BaselineError::Other),
        }
        let input = &mut serde_json::Deserializer::from_str(text);
        let read: Self = serde_path_to_error::deserialize(input).map_err(|error| {
            let field = error.path().to_string();
            let inner = error.into_inner();
            let problem = inner.to_string();
            let place = format!(" at line {} column {}", inner.line(), inner.column());
            BaselineError::Field {
                line: inner.line(),
                field,
                problem: problem.trim_end_matches(&place).to_owned(),
            }
        })?;
        read.check()?;
        Ok(read)
    }

    /// Writes it.
    ///
    /// # Errors
    /// If a figure is no number, which no measurement gives.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// What a JSON number may say and a measurement may not.
    fn check(&self) -> Result<(), BaselineError> {
        let wrong = |field: String, problem: &str| {
            Err(BaselineError::Field {
                line: 1,
                field,
                problem: problem.to_owned(),
            })
        };
        for (place, pair) in self.pairs.iter().enumerate() {
            if pair.bandwidth_bps < 0.0 {
                return wrong(
                    format!("pairs[{place}].bandwidth_bps"),
                    "a bandwidth is not negative",
                );
            }
        }
        for (place, port) in self.ports.iter().enumerate() {
            for (name, share) in [
                ("busy", port.busy),
                ("held", port.held),
                ("marked", port.marked),
            ] {
                if !(0.0..=1.0).contains(&share) {
                    return wrong(format!("ports[{place}].{name}"), "a share is from 0 to 1");
                }
            }
        }
        Ok(())
    }
}

/// The median; 0 of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.as_slice() {
        [] => 0.0,
        sorted if sorted.len() % 2 == 1 => sorted[sorted.len() / 2],
        sorted => (sorted[sorted.len() / 2 - 1] + sorted[sorted.len() / 2]) / 2.0,
    }
}

/// How far values usually lie from their median: the median of the distances, as large as a standard deviation where the values
/// are normal (the factor 1.4826).
pub(crate) fn spread(values: &[f64], middle: f64) -> f64 {
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&distances) * 1.4826
}
