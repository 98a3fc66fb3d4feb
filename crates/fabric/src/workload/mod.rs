//! Who sends how much to whom, and when: the traffic patterns, without names and settings.
//!
//! ```text
//! incast        permutation      all-to-all       Poisson
//!  ●─┐           ●──►●            every host       each host: the next flow after an exponential time,
//!  ●─┼─►●        ●──►●            to every         to any other host, of a size drawn from a distribution
//!  ●─┘           one in, one out  other one
//! ```
//!
//! Invariant: equal seeds give equal demands, on every machine; every host draws from a stream of its own.

mod sizes;
#[cfg(test)]
mod tests;

use softfabric_units::{Bytes, Random, Rate, Span, Time};

pub use sizes::{SizeDistribution, SizeDistributionError};

use crate::plan::NodeId;

/// Streams of random numbers that workloads take, apart from those of the engine.
const STREAMS: u64 = 0x776f_726b_0000_0000;

/// Bytes from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Who sends.
    pub source: NodeId,
    /// Who receives.
    pub destination: NodeId,
    /// How much.
    pub bytes: Bytes,
    /// When it starts.
    pub start: Time,
}

/// All senders to one receiver, each `stagger` after the one before it.
pub fn incast(
    senders: &[NodeId],
    receiver: NodeId,
    bytes: Bytes,
    start: Time,
    stagger: Span,
) -> Vec<Demand> {
    (0u64..)
        .zip(senders)
        .map(|(place, source)| Demand {
            source: *source,
            destination: receiver,
            bytes,
            start: start + stagger * place,
        })
        .collect()
}

/// Each host to the one `distance` places further on, round the end.
pub fn shifted(hosts: &[NodeId], distance: usize, bytes: Bytes, start: Time) -> Vec<Demand> {
    let to = |place: usize| hosts[(place + distance) % hosts.len()];
    (hosts.iter().enumerate())
        .map(|(place, source)| Demand {
            source: *source,
            destination: to(place),
            bytes,
            start,
        })
        .collect()
}

/// Each host to another one, and each host from another one, by chance; nobody to itself.
///
/// Each such assignment (derangement) is equally likely: shuffles are drawn until one fits, 2.7 on average.
///
/// # Panics
/// If there are fewer than two hosts.
pub fn permutation(
    hosts: &[NodeId],
    bytes: Bytes,
    start: Time,
    seed: u64,
    stream: u64,
) -> Vec<Demand> {
    assert!(hosts.len() > 1, "one host alone has nobody to send to");
    let mut random = Random::stream(seed, STREAMS ^ stream);
    let mut destinations = hosts.to_vec();
    loop {
        random.shuffle(&mut destinations);
        if hosts.iter().zip(&destinations).all(|(a, b)| a != b) {
            break;
        }
    }
    (hosts.iter().zip(destinations))
        .map(|(source, destination)| Demand {
            source: *source,
            destination,
            bytes,
            start,
        })
        .collect()
}

/// Every host to every other one, each starting with the host after itself so that no receiver is everybody's first.
pub fn all_to_all(hosts: &[NodeId], bytes: Bytes, start: Time, stagger: Span) -> Vec<Demand> {
    let mut demands = Vec::with_capacity(hosts.len() * hosts.len().saturating_sub(1));
    for distance in 1..hosts.len() {
        let start = start + stagger * (distance as u64 - 1);
        demands.extend(shifted(hosts, distance, bytes, start));
    }
    demands
}

/// Open-loop arrivals: what [`poisson`] needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Poisson<'a> {
    /// Who sends, each to any of the others.
    pub hosts: &'a [NodeId],
    /// The rate of each host's link.
    pub rate: Rate,
    /// What share of that rate each host offers on average.
    pub load: f64,
    /// How large flows are.
    pub sizes: &'a SizeDistribution,
    /// No flow starts before.
    pub start: Time,
    /// No flow starts at or after.
    pub end: Time,
}

/// Poisson arrivals at each host, sorted by start and then by source.
///
/// # Panics
/// If there are fewer than two hosts, or the load or rate is not above zero.
pub fn poisson(arrivals: &Poisson<'_>, seed: u64, stream: u64) -> Vec<Demand> {
    let hosts = arrivals.hosts;
    assert!(hosts.len() > 1, "one host alone has nobody to send to");
    let bytes_per_pico = arrivals.rate.as_bps() as f64 * arrivals.load / 8.0 / 1e12;
    assert!(bytes_per_pico > 0.0, "no load, no arrivals");
    let mean_gap = arrivals.sizes.mean() / bytes_per_pico;
    let mut demands = Vec::new();
    for (place, source) in (0u64..).zip(hosts) {
        let mut random = Random::stream(seed, STREAMS ^ (stream << 20) ^ (place + 1));
        let mut now = arrivals.start.as_picos() as f64;
        loop {
            now += random.exponential(mean_gap);
            if now >= arrivals.end.as_picos() as f64 {
                break;
            }
            let other = random.below(hosts.len() as u64 - 1);
            let other = if other >= place { other + 1 } else { other };
            demands.push(Demand {
                source: *source,
                destination: hosts[other as usize],
                bytes: arrivals.sizes.at(random.unit()),
                start: Time::from_picos(now as u64),
            });
        }
    }
    demands.sort_by_key(|demand| (demand.start, demand.source));
    demands
}
