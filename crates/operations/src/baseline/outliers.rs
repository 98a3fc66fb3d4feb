//! Who did not achieve what the others did: hosts, pairs and rails that are slower than the rest.
//!
//! A value is an outlier if it lies five usual distances below the median of all, and five percent: the former alone would name
//! the slowest of equals, the latter alone would name somebody in any fabric whose values scatter. Both are robust: a tenth of
//! broken hosts does not move them. What a slow host explains is not told again as slow pairs.

use std::collections::BTreeMap;
use std::fmt;

use super::{Baseline, Pair, median, spread};

/// So many usual distances from the median are unusual.
const FAR: f64 = 5.0;
/// A smaller difference is nobody's concern.
const LEAST: f64 = 0.05;

/// Something slower than the rest.
#[derive(Clone, PartialEq, Debug)]
pub struct Outlier {
    /// What.
    pub of: Of,
    /// What it achieved, in bits a second, or nanoseconds for a latency.
    pub found: f64,
    /// The median of all.
    pub median: f64,
}

/// What is slower than the rest.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Of {
    /// A host sends slowly, to whomever.
    Sends(String),
    /// A host receives slowly, from whomever.
    Receives(String),
    /// All pairs of a rail are slow.
    Rail(u32),
    /// Only this pair is slow, on this rail where there are several: the way between them.
    Pair(String, String, Option<u32>),
    /// A small message takes long between these two.
    Latency(String, String),
}

/// All of them, and what was usual.
#[derive(Clone, PartialEq, Debug)]
pub struct Outliers {
    /// The worst of each kind first.
    pub found: Vec<Outlier>,
    /// The median bandwidth of all pairs, in bits a second.
    pub median_bps: f64,
    /// The slowest pair's.
    pub least_bps: f64,
    /// The fastest pair's.
    pub most_bps: f64,
    /// The median latency of a small message in nanoseconds, where it was measured.
    pub latency_ns: Option<f64>,
}

/// What is unusually small, the smallest first, each with its value and the median of all.
fn low<K: Clone + Ord>(values: &BTreeMap<K, f64>) -> Vec<(K, f64, f64)> {
    let all: Vec<f64> = values.values().copied().collect();
    let middle = median(&all);
    let bound = (middle - FAR * spread(&all, middle)).min(middle * (1.0 - LEAST));
    let mut low: Vec<_> = values
        .iter()
        .filter(|(_, value)| **value < bound)
        .map(|(key, value)| (key.clone(), *value, middle))
        .collect();
    low.sort_by(|a, b| a.1.total_cmp(&b.1));
    low
}

fn medians<K: Ord>(pairs: &[Pair], key: impl Fn(&Pair) -> Option<K>) -> BTreeMap<K, f64> {
    let mut values: BTreeMap<K, Vec<f64>> = BTreeMap::new();
    for pair in pairs {
        if let Some(key) = key(pair) {
            values.entry(key).or_default().push(pair.bandwidth_bps);
        }
    }
    values
        .into_iter()
        .map(|(key, values)| (key, median(&values)))
        .collect()
}

impl Baseline {
    /// A rail is slow if all of its pairs are: its best one tells.
    fn best_of_rails(&self) -> BTreeMap<u32, f64> {
        let mut best = BTreeMap::new();
        for pair in &self.pairs {
            if let Some(rail) = pair.rail {
                let known = best.entry(rail).or_insert(pair.bandwidth_bps);
                *known = pair.bandwidth_bps.max(*known);
            }
        }
        best
    }

    /// Who did not achieve what the others did.
    pub fn outliers(&self) -> Outliers {
        let outlier = |of: Of, (found, median): (f64, f64)| Outlier { of, found, median };
        let mut found = Vec::new();
        let rails = low(&self.best_of_rails());
        let slow_rails: Vec<u32> = rails.iter().map(|(rail, ..)| *rail).collect();
        let rest = |pair: &Pair| pair.rail.is_none_or(|rail| !slow_rails.contains(&rail));
        let sends = low(&medians(&self.pairs, |pair| {
            rest(pair).then(|| pair.client.clone())
        }));
        let receives = low(&medians(&self.pairs, |pair| {
            rest(pair).then(|| pair.server.clone())
        }));
        let is_slow =
            |hosts: &[(String, f64, f64)], name: &str| hosts.iter().any(|(host, ..)| host == name);
        let pairs: BTreeMap<(String, String, Option<u32>), f64> = self
            .pairs
            .iter()
            .filter(|pair| {
                rest(pair) && !is_slow(&sends, &pair.client) && !is_slow(&receives, &pair.server)
            })
            .map(|pair| {
                let key = (pair.client.clone(), pair.server.clone(), pair.rail);
                (key, pair.bandwidth_bps)
            })
            .collect();
        found.extend(
            rails
                .into_iter()
                .map(|(rail, value, middle)| outlier(Of::Rail(rail), (value, middle))),
        );
        found.extend(
            sends
                .into_iter()
                .map(|(host, value, middle)| outlier(Of::Sends(host), (value, middle))),
        );
        found.extend(
            receives
                .into_iter()
                .map(|(host, value, middle)| outlier(Of::Receives(host), (value, middle))),
        );
        found.extend(
            low(&pairs)
                .into_iter()
                .map(|((client, server, rail), value, middle)| {
                    outlier(Of::Pair(client, server, rail), (value, middle))
                }),
        );
        let latencies: BTreeMap<(String, String), f64> = self
            .pairs
            .iter()
            .filter_map(|pair| {
                let key = (pair.client.clone(), pair.server.clone());
                Some((key, pair.latency_ns?))
            })
            .collect();
        found.extend(high(&latencies));
        let all: Vec<f64> = self.pairs.iter().map(|pair| pair.bandwidth_bps).collect();
        let latencies: Vec<f64> = latencies.into_values().collect();
        Outliers {
            found,
            median_bps: median(&all),
            least_bps: all.iter().copied().reduce(f64::min).unwrap_or(0.0),
            most_bps: all.iter().copied().reduce(f64::max).unwrap_or(0.0),
            latency_ns: (!latencies.is_empty()).then(|| median(&latencies)),
        }
    }
}

/// Latencies that are unusually long, the longest first: paths differ in their hops, so only twice the median counts.
fn high(latencies: &BTreeMap<(String, String), f64>) -> Vec<Outlier> {
    let all: Vec<f64> = latencies.values().copied().collect();
    let middle = median(&all);
    let bound = (middle + FAR * spread(&all, middle)).max(middle * 2.0);
    let long = latencies.iter().filter(|(_, value)| **value > bound);
    let mut long: Vec<Outlier> = long
        .map(|((client, server), value)| Outlier {
            of: Of::Latency(client.clone(), server.clone()),
            found: *value,
            median: middle,
        })
        .collect();
    long.sort_by(|a, b| b.found.total_cmp(&a.found));
    long
}

impl fmt::Display for Outlier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gigabits = |value: f64| format!("{:.1} Gb/s", value / 1e9);
        let micros = |value: f64| format!("{:.2} µs", value / 1e3);
        let (found, median) = match self.of {
            Of::Latency(..) => (micros(self.found), micros(self.median)),
            _ => (gigabits(self.found), gigabits(self.median)),
        };
        match &self.of {
            Of::Sends(host) => write!(
                f,
                "slow host: {host} sends {found} to whomever, the median host {median}"
            ),
            Of::Receives(host) => {
                write!(
                    f,
                    "slow host: {host} receives {found} from whomever, the median host {median}"
                )
            }
            Of::Rail(rail) => write!(
                f,
                "slow rail: {found} on rail {rail}, {median} on the median rail"
            ),
            Of::Pair(client, server, rail) => write!(
                f,
                "slow pair: {found} from {client} to {server}{}, {median} between the median pair; both are well with others, so look \
                 at the way between them",
                rail.map_or(String::new(), |rail| format!(" on rail {rail}"))
            ),
            Of::Latency(client, server) => {
                write!(
                    f,
                    "long way: a small message takes {found} from {client} to {server}, {median} in the median"
                )
            }
        }
    }
}
