//! `[[infiniband.multicast]]`: groups, their members by name, and what is not said of them.

use softfabric_units::Bytes;

use super::select;
use crate::plan::{DEFAULT_PARTITION, HostProfile, MulticastGroup, Network, NodeId, NodeKind};
use crate::scenario::error::{Problems, nearest};
use crate::scenario::names::{Names, Wanted};
use crate::scenario::{InfinibandSettings, MulticastSettings};

pub(super) fn groups(
    settings: &InfinibandSettings,
    network: &Network,
    hosts: &[HostProfile],
    problems: &mut Problems<'_>,
) -> Vec<MulticastGroup> {
    let names = Names::new(network);
    let mut groups: Vec<MulticastGroup> = Vec::new();
    for (place, group) in settings.multicast.iter().enumerate() {
        let field = format!("infiniband.multicast[{place}]");
        let is_taken = groups.iter().any(|other| other.name == group.name);
        if is_taken || names.node(&group.name, Wanted::Any).is_ok() {
            let what = if is_taken { "group" } else { "node" };
            problems.add(
                format!("{field}.name"),
                format!("`{}`, the name of another {what}", group.name),
                "a name of its own: flows say it where they name their destination",
                None,
            );
        }
        let mut those = |what: &str, patterns: &[String]| {
            let field = format!("{field}.{what}");
            let mut hosts = select(&names, patterns, Wanted::Host, &field, problems);
            hosts.sort_unstable();
            hosts
        };
        let members = those("members", &group.members);
        let mut senders = those("send_only", &group.send_only);
        // Who hears the group may send to it anyway.
        senders.retain(|sender| members.binary_search(sender).is_err());
        let mtu = |host: &NodeId| match network.nodes[host.index()].kind {
            NodeKind::Host { profile, .. } => hosts.get(profile as usize),
            NodeKind::Switch { .. } => None,
        };
        let all = members.iter().chain(&senders);
        let least = all.filter_map(mtu).map(|profile| profile.nic.mtu).min();
        groups.push(MulticastGroup {
            key: key(group, settings, &field, problems),
            name: group.name.clone(),
            level: group.service_level,
            mtu: group.mtu.or(least).unwrap_or(Bytes::new(4096)),
            rate: group.rate,
            members,
            senders,
        });
    }
    groups
}

/// The key of a group's partition.
fn key(
    group: &MulticastSettings,
    settings: &InfinibandSettings,
    field: &str,
    problems: &mut Problems<'_>,
) -> u16 {
    let Some(name) = &group.partition else {
        return DEFAULT_PARTITION;
    };
    let known = || settings.partition.iter().map(|known| known.name.as_str());
    let named = settings.partition.iter().find(|known| known.name == *name);
    named.map_or_else(
        || {
            let all: Vec<&str> = known().collect();
            problems.add(
                format!("{field}.partition"),
                format!("`{name}`"),
                format!("the name of a partition: {}", all.join(", ")),
                nearest(name, known()).map(|name| format!("did you mean `{name}`?")),
            );
            DEFAULT_PARTITION
        },
        |partition| partition.key,
    )
}
