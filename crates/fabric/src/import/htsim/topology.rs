//! Topologies: a header `Nodes`, `Tiers`, `Podsize`, then for each tier the switches and the links below them.
//!
//! ```text
//!  tier 2   core              radix_down
//!            │  downlinks of tier 2
//!  tier 1   agg    radix_up · radix_down
//!            │  downlinks of tier 1, `bundle` of them side by side
//!  tier 0   tor    radix_up · radix_down
//!            │  downlinks of tier 0
//!           host
//! ```

use std::path::Path;

use softfabric_units::{Rate, Span};

use super::Failure;
use crate::import::ImportError;
use crate::import::lines::{Word, read};
use crate::plan::{Network, NodeId, NodeKind};
use crate::topology::{Builder, Cable};

/// A fat-tree of two or three tiers with its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HtsimTopology {
    hosts: u32,
    pod_size: u32,
    tiers: Vec<Tier>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tier {
    rate: Option<Rate>,
    delay: Option<Span>,
    latency: Span,
    radix_up: u32,
    radix_down: u32,
    oversubscribed: u32,
    bundle: u32,
}

/// How many switches there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    pods: u32,
    tors_per_pod: u32,
    aggregations_per_pod: u32,
    cores: u32,
}

/// Reads a topology.
///
/// # Errors
/// If a line is unknown or wrong, or the numbers do not make a fat-tree.
pub fn read_topology(file: &Path, text: &str) -> Result<HtsimTopology, ImportError> {
    let mut hosts = None;
    let mut tier_count = None;
    let mut pod_size = None;
    let mut tiers: [Option<Tier>; 3] = [None; 3];
    let mut current = None;
    for (line, content) in (1..).zip(text.lines()) {
        let mut words = content.split_whitespace();
        let Some(key) = words.next().filter(|key| !key.starts_with('#')) else {
            continue;
        };
        let word = Word {
            text: words.next().unwrap_or(""),
            line,
        };
        let number: u32 = read(file, word, key, "a whole number")?;
        let known = match (key.to_ascii_lowercase().as_str(), current) {
            ("nodes", None) => hosts.replace(number).is_none(),
            ("tiers", None) => tier_count.replace(number).is_none(),
            ("podsize", None) => pod_size.replace(number).is_none(),
            ("tier", _) => {
                if number > 2 || tiers[number as usize].is_some() {
                    let found = format!("`{number}`");
                    let allowed = "0, 1 and 2, each once";
                    return Err(ImportError::new(file, Some(line), key, found, allowed));
                }
                current = Some(number as usize);
                tiers[number as usize] = Some(Tier {
                    oversubscribed: 1,
                    bundle: 1,
                    ..Tier::default()
                });
                true
            }
            (key, Some(current)) => {
                let tier = tiers[current].get_or_insert_default();
                set(tier, key, number)
            }
            (_, None) => false,
        };
        if !known {
            return Err(ImportError::new(
                file,
                Some(line),
                "a line",
                format!("`{}`", content.trim()),
                "Nodes, Tiers, Podsize; after `Tier n`: Downlink_speed_Gbps, Radix_Up, Radix_Down, Oversubscribed, \
                 Bundle, Switch_Latency_ns, Downlink_Latency_ns, Queue_Up, Queue_Down",
            ));
        }
    }
    let needed = |value: Option<u32>, field: &str| {
        value.filter(|value| *value > 0).ok_or_else(|| {
            let error = ImportError::new(file, None, field, "missing", "a number above zero");
            error.advise("is this a topology of htsim?")
        })
    };
    let count = needed(tier_count, "Tiers")?;
    if !(2..=3).contains(&count) {
        let found = count.to_string();
        return Err(ImportError::new(file, None, "Tiers", found, "2 or 3"));
    }
    let tiers: Vec<_> = (0..count as usize)
        .map(|place| {
            tiers[place].ok_or_else(|| {
                let field = format!("Tier {place}");
                ImportError::new(file, None, field, "missing", "its lines")
            })
        })
        .collect::<Result<_, _>>()?;
    let topology = HtsimTopology {
        hosts: needed(hosts, "Nodes")?,
        pod_size: needed(pod_size, "Podsize")?,
        tiers,
    };
    topology.counts(file)?;
    Ok(topology)
}

fn set(tier: &mut Tier, key: &str, number: u32) -> bool {
    match key {
        "downlink_speed_gbps" => tier.rate = Some(Rate::gbps(u64::from(number))),
        "downlink_latency_ns" => tier.delay = Some(Span::nanos(u64::from(number))),
        "switch_latency_ns" => tier.latency = Span::nanos(u64::from(number)),
        "radix_up" => tier.radix_up = number,
        "radix_down" => tier.radix_down = number,
        "oversubscribed" => tier.oversubscribed = number,
        "bundle" => tier.bundle = number,
        // The depth of htsim's queues: its switches have no shared memory.
        "queue_up" | "queue_down" => {}
        _ => return false,
    }
    true
}

impl HtsimTopology {
    /// htsim's fat-tree of three tiers for k³/4 hosts, if there is such a k.
    pub fn of_hosts(hosts: u32, cable: Cable) -> Option<Self> {
        let k = (2..=256u32).step_by(2).find(|k| k * k * k / 4 == hosts)?;
        let tier = Tier {
            rate: Some(cable.rate),
            delay: Some(cable.delay),
            latency: Span::ZERO,
            radix_up: k / 2,
            radix_down: k / 2,
            oversubscribed: 1,
            bundle: 1,
        };
        let top = Tier {
            radix_up: 0,
            radix_down: k,
            ..tier
        };
        Some(Self {
            hosts,
            pod_size: k * k / 4,
            tiers: vec![tier, tier, top],
        })
    }

    /// How many hosts there are.
    pub const fn hosts(&self) -> u32 {
        self.hosts
    }

    /// The latency of the switches of each tier, from tier 1 on: profile n of the plan's switches is tier n + 1.
    pub(super) fn latencies(&self) -> Vec<Span> {
        self.tiers.iter().map(|tier| tier.latency).collect()
    }

    /// Hosts `h0` …, then `tor0` …, `agg0` …, `core0` …, less the links that failed.
    pub(super) fn network(
        &self,
        file: &Path,
        failures: &[Failure],
    ) -> Result<Network, ImportError> {
        let counts = self.counts(file)?;
        let mut builder = Builder::default();
        let tor_count = counts.tors_per_pod * counts.pods;
        let aggregation_count = counts.aggregations_per_pod * counts.pods;
        let per_tor = self.tiers[0].radix_down;
        let hosts: Vec<_> = (0..self.hosts)
            .map(|host| builder.host(format!("h{host}"), host / per_tor))
            .collect();
        let mut switches = |name: &str, tier: u8, count: u32| -> Vec<NodeId> {
            let kind = NodeKind::Switch {
                profile: u32::from(tier) - 1,
            };
            (0..count)
                .map(|index| builder.node(format!("{name}{index}"), kind, tier))
                .collect()
        };
        let tors = switches("tor", 1, tor_count);
        let aggregations = switches("agg", 2, aggregation_count);
        let cores = switches("core", 3, counts.cores);
        for (index, host) in hosts.iter().enumerate() {
            builder.link(*host, tors[index / per_tor as usize], self.cable(0));
        }
        let per_pod = counts.aggregations_per_pod as usize;
        for (index, tor) in tors.iter().enumerate() {
            let pod = index / counts.tors_per_pod as usize;
            for aggregation in &aggregations[pod * per_pod..(pod + 1) * per_pod] {
                for _ in 0..self.tiers[1].bundle {
                    builder.link(*tor, *aggregation, self.cable(1));
                }
            }
        }
        for failure in failures {
            let uplinks = self.uplinks();
            if failure.switch >= aggregation_count || failure.link >= uplinks {
                let found = format!("link {} of switch {}", failure.link, failure.switch);
                let allowed = format!(
                    "links below {uplinks} of aggregation switches below {aggregation_count}"
                );
                let line = Some(failure.line);
                return Err(ImportError::new(file, line, "a failure", found, allowed));
            }
        }
        for (index, aggregation) in (0u32..).zip(&aggregations) {
            let place = index as usize % per_pod;
            for uplink in 0..self.uplinks() {
                let core = cores[place + per_pod * uplink as usize];
                // Of a bundle only the first link fails, as in htsim.
                let failed = (failures.iter())
                    .any(|failure| failure.switch == index && failure.link == uplink);
                for _ in u32::from(failed)..self.tiers[2].bundle {
                    builder.link(*aggregation, core, self.cable(2));
                }
            }
        }
        builder
            .finish()
            .map_err(|error| ImportError::new(file, None, error.field, error.found, error.needed))
    }

    fn cable(&self, tier: usize) -> Cable {
        let tier = &self.tiers[tier];
        Cable {
            rate: tier.rate.unwrap_or_default(),
            delay: tier.delay.unwrap_or_default(),
        }
    }

    /// Bundles of uplinks of an aggregation switch.
    fn uplinks(&self) -> u32 {
        match self.tiers.get(2) {
            Some(core) => self.tiers[1].radix_up / core.bundle,
            None => 0,
        }
    }

    /// The numbers of switches, if they fit each other: htsim's own checks.
    fn counts(&self, file: &Path) -> Result<Counts, ImportError> {
        let wrong = |field: String, found: String, allowed: &str| {
            Err(ImportError::new(file, None, field, found, allowed))
        };
        for (place, tier) in self.tiers.iter().enumerate() {
            let is_top = place + 1 == self.tiers.len();
            for (field, found) in [
                ("Downlink_speed_Gbps", tier.rate.map_or(0, Rate::as_bps)),
                ("Downlink_Latency_ns", tier.delay.map_or(0, Span::as_picos)),
                ("Radix_Down", u64::from(tier.radix_down)),
                ("Radix_Up", u64::from(tier.radix_up + u32::from(is_top))),
                ("Bundle", u64::from(tier.bundle)),
                ("Oversubscribed", u64::from(tier.oversubscribed)),
            ] {
                if found == 0 {
                    let field = format!("{field} of tier {place}");
                    return wrong(field, "missing or 0".to_owned(), "a number above zero");
                }
            }
        }
        let [tor, aggregation, ..] = self.tiers[..] else {
            return wrong("Tiers".to_owned(), "fewer than 2".to_owned(), "2 or 3");
        };
        if !self.hosts.is_multiple_of(self.pod_size) {
            let found = format!("{}, with {} nodes", self.pod_size, self.hosts);
            return wrong("Podsize".to_owned(), found, "a divisor of `Nodes`");
        }
        if !self.pod_size.is_multiple_of(tor.radix_down) {
            let found = format!("{}, with pods of {}", tor.radix_down, self.pod_size);
            return wrong(
                "Radix_Down of tier 0".to_owned(),
                found,
                "a divisor of `Podsize`",
            );
        }
        let tors_per_pod = self.pod_size / tor.radix_down;
        if tor.radix_down / tor.radix_up != tor.oversubscribed {
            let found = format!(
                "{}, with {} links down and {} up",
                tor.oversubscribed, tor.radix_down, tor.radix_up
            );
            let allowed = "the links down over those up";
            return wrong("Oversubscribed of tier 0".to_owned(), found, allowed);
        }
        let tor_uplinks = tors_per_pod * tor.radix_up;
        let aggregations_per_pod = tor_uplinks / aggregation.radix_down;
        if !tor_uplinks.is_multiple_of(aggregation.radix_down)
            || aggregations_per_pod * aggregation.bundle != tor.radix_up
        {
            let found = format!(
                "{}, for the {tor_uplinks} uplinks of a pod's first tier",
                aggregation.radix_down
            );
            let allowed =
                "such that each first-tier switch reaches each second-tier switch of its pod";
            return wrong("Radix_Down of tier 1".to_owned(), found, allowed);
        }
        let pods = self.hosts / self.pod_size;
        let mut counts = Counts {
            pods,
            tors_per_pod,
            aggregations_per_pod,
            cores: 0,
        };
        if let Some(core) = self.tiers.get(2) {
            let uplinks = pods * aggregations_per_pod * aggregation.radix_up;
            counts.cores = uplinks / core.radix_down;
            if !uplinks.is_multiple_of(core.radix_down)
                || counts.cores * core.bundle != aggregation.radix_up * aggregations_per_pod
            {
                let found = format!(
                    "{}, for the {uplinks} uplinks of the second tier",
                    core.radix_down
                );
                let allowed =
                    "such that each core switch reaches one second-tier switch of each pod";
                return wrong("Radix_Down of tier 2".to_owned(), found, allowed);
            }
        } else if pods > 1 {
            let found = format!("{}, with {} nodes", self.pod_size, self.hosts);
            return wrong("Podsize".to_owned(), found, "all nodes, with two tiers");
        }
        Ok(counts)
    }
}
