//! `[[infiniband.partition]]`: members by their names.

use crate::plan::{Network, NodeId, Partition, Partitions};
use crate::scenario::error::Problems;
use crate::scenario::names::{Names, Wanted};
use crate::scenario::{Enforcement, InfinibandSettings};

pub(super) fn partitions(
    settings: &InfinibandSettings,
    network: &Network,
    problems: &mut Problems<'_>,
) -> Option<Box<Partitions>> {
    if settings.partition.is_empty() {
        if settings.partition_enforcement.is_some() {
            problems.add(
                "infiniband.partition_enforcement",
                "guards of partitions",
                "only with partitions",
                Some("add an `[[infiniband.partition]]`, or remove it".to_owned()),
            );
        }
        return None;
    }
    let names = Names::new(network);
    let mut partitions = Vec::new();
    for (place, partition) in settings.partition.iter().enumerate() {
        let mut members = |field: &str, patterns: &[String]| {
            let field = format!("infiniband.partition[{place}].{field}");
            let mut members: Vec<NodeId> = Vec::new();
            for pattern in patterns {
                match names.select(pattern, Wanted::Host) {
                    Ok(hosts) => members.extend(hosts),
                    Err(unknown) => {
                        problems.add(&field, unknown.found, unknown.allowed, unknown.advice);
                    }
                }
            }
            members.sort_unstable();
            members.dedup();
            members
        };
        partitions.push(Partition {
            name: partition.name.clone(),
            key: partition.key,
            full: members("full", &partition.full),
            limited: members("limited", &partition.limited),
        });
    }
    let enforcement = settings.partition_enforcement.unwrap_or(Enforcement::Both);
    Some(Box::new(Partitions {
        partitions,
        inbound: matches!(enforcement, Enforcement::Inbound | Enforcement::Both),
        outbound: matches!(enforcement, Enforcement::Outbound | Enforcement::Both),
    }))
}
