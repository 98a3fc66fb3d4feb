//! InfiniBand's multicast groups: members that exist and share a partition, datagrams that fit, senders that are members.

use std::collections::{BTreeMap, BTreeSet};

use softfabric_units::Bytes;

use super::Findings;
use crate::plan::{
    DEFAULT_PARTITION, Endpoint, Flow, GroupId, MulticastGroup, NodeId, NodeKind, Plan, PortId,
};

/// Payloads that links can be set to (IBTA vol. 1, 14.2.5.6).
const PAYLOADS: [u64; 5] = [256, 512, 1024, 2048, 4096];
/// A PSN has 24 bits.
const MOST_DATAGRAMS: u64 = 1 << 24;

/// The groups. Those of the plan's ids exist.
pub(super) fn check(plan: &Plan, findings: &mut Findings) {
    let Some(settings) = plan.link_layer.infiniband() else {
        return;
    };
    if settings.multicast.is_empty() {
        return;
    }
    if settings.multicast.len() > GroupId::MOST {
        let found = format!("has {} multicast groups", settings.multicast.len());
        let advice = format!("make {} at most: more have no identifier", GroupId::MOST);
        return findings.error("the fabric", found, advice);
    }
    let keys = settings.partitions.as_ref().map(|partitions| {
        let nodes = &plan.network.nodes;
        let is_host = |node: NodeId| matches!(nodes[node.index()].kind, NodeKind::Host { .. });
        let all = partitions.partitions.iter();
        let there = all.flat_map(|partition| partition.full.iter().chain(&partition.limited));
        let mut there = there.map(|host| host.index());
        // What is wrong with partitions is said of them.
        let sound = there.all(|host| host < nodes.len());
        sound.then(|| partitions.keys(nodes.len(), is_host))
    });
    // By end of a link: the subnet that the link leads to.
    let islands = plan.network.islands();
    let subnets: BTreeMap<Endpoint, u32> = (plan.network.links.iter())
        .flat_map(|link| [(link.a, link.b.node), (link.b, link.a.node)])
        .map(|(end, neighbour)| (end, islands[neighbour.index()]))
        .collect();
    for group in &settings.multicast {
        let place = format!("multicast group {}", group.name);
        if !members(group, &place, plan, &subnets, findings) {
            continue;
        }
        if group.level.is_some_and(|level| level > 15) {
            let found = format!("has service level {}", group.level.unwrap_or(0));
            findings.error(&place, found, "service levels are 0 to 15");
        }
        if group.rate.is_some_and(softfabric_units::Rate::is_zero) {
            findings.error(&place, "has a rate of zero", "give a rate, or none");
        }
        payload(group, &place, plan, findings);
        let holds = |host: &NodeId| match &keys {
            None => group.key == DEFAULT_PARTITION,
            Some(None) => true,
            Some(Some(keys)) => {
                let full = group.full_key();
                keys[host.index()].iter().any(|key| key.matches(full))
            }
        };
        let mut all = group.members.iter().chain(&group.senders);
        if let Some(stranger) = all.find(|host| !holds(host)) {
            findings.error(
                &place,
                format!(
                    "has member {}, which is not in the group's partition {:#06x}",
                    plan.network.nodes[stranger.index()].name,
                    group.key
                ),
                "make it a member of the partition, or give the group another one",
            );
        }
    }
}

/// Whether all members are hosts of one subnet, each once.
fn members(
    group: &MulticastGroup,
    place: &str,
    plan: &Plan,
    subnets: &BTreeMap<Endpoint, u32>,
    findings: &mut Findings,
) -> bool {
    let mut first_subnet = None;
    let mut seen = BTreeSet::new();
    for &member in group.members.iter().chain(&group.senders) {
        let node = plan.network.nodes.get(member.index());
        let name = node.map_or("a node that does not exist", |node| node.name.as_str());
        if !node.is_some_and(|node| matches!(node.kind, NodeKind::Host { .. })) {
            let found = format!("has member {name}, which is no host");
            findings.error(place, found, "name hosts only");
            return false;
        }
        let first = Endpoint {
            node: member,
            port: PortId(0),
        };
        let Some(&subnet) = subnets.get(&first) else {
            let found = format!("has member {name}, which has no link");
            findings.error(place, found, "give it a link");
            return false;
        };
        let (other, known) = *first_subnet.get_or_insert((member, subnet));
        if subnet != known {
            let other = &plan.network.nodes[other.index()].name;
            let found = format!("has members {other} and {name}, whose first ports no cables join");
            findings.error(place, found, "name hosts of one subnet");
            return false;
        }
        if !seen.insert(member) {
            let found = format!("has member {name} twice");
            let advice = "name each host once: who hears the group may send to it anyway";
            findings.error(place, found, advice);
            return false;
        }
    }
    if group.members.is_empty() {
        let advice = "name the hosts that hear it";
        findings.error(place, "has no members", advice);
        return false;
    }
    true
}

/// Whether links carry the group's datagrams.
fn payload(group: &MulticastGroup, place: &str, plan: &Plan, findings: &mut Findings) {
    let all = group.members.iter().chain(&group.senders);
    let profiles = all.filter_map(|host| plan.host_profile(*host));
    let least = profiles.map(|profile| profile.nic.mtu).min();
    let least = least.unwrap_or(Bytes::new(4096));
    if !PAYLOADS.contains(&group.mtu.as_u64()) || group.mtu > least {
        let found = format!("has an MTU of {}", group.mtu);
        let advice = format!(
            "give it 256, 512, 1024, 2048 or 4096 bytes, and no more than its members' {least}"
        );
        findings.error(place, found, advice);
    }
}

/// A flow to a group. Its own ids exist.
pub(super) fn flow(plan: &Plan, place: &str, flow: &Flow, group: GroupId, findings: &mut Findings) {
    let Some(settings) = plan.link_layer.infiniband() else {
        let found = "goes to a multicast group";
        return findings.error(place, found, "groups are InfiniBand's");
    };
    let Some(group) = settings.multicast.get(group.index()) else {
        let found = format!(
            "goes to multicast group {}, of {}",
            group.0,
            settings.multicast.len()
        );
        return findings.error(place, found, "add the group");
    };
    let name = &group.name;
    let source = &plan.network.nodes[flow.source.index()].name;
    if !group.may_send(flow.source) {
        findings.error(
            place,
            format!("goes from {source} to multicast group {name}, in which it is not"),
            "make it a member, or one that only sends",
        );
    }
    if !group
        .receivers(flow.source)
        .any(|host| host == flow.destination)
    {
        findings.error(
            place,
            format!("goes from {source} to multicast group {name}, and names a receiver that does not hear it"),
            "name a member other than the sender",
        );
    }
    if flow.source_nic != PortId(0) || flow.destination_nic != PortId(0) {
        let found = "goes to a multicast group by another port than the first";
        findings.error(place, found, "hosts join groups by their first port");
    }
    let message = flow.message.unwrap_or(flow.bytes);
    if message > group.mtu {
        findings.error(
            place,
            format!(
                "has datagrams of {message}, and multicast group {name} takes {}",
                group.mtu
            ),
            "cut it into messages that are no longer than that",
        );
    }
    let datagrams = flow.bytes.as_u64().div_ceil(message.as_u64().max(1));
    if datagrams > MOST_DATAGRAMS {
        findings.error(
            place,
            format!("has {datagrams} datagrams, and no more than {MOST_DATAGRAMS} are told apart by their PSN"),
            "make several flows of it",
        );
    }
    if flow.path.is_some() {
        let found = "goes to a multicast group by a path of its own";
        findings.error(
            place,
            found,
            "leave the path out: the group's tree is the way",
        );
    }
    if flow.on_received.is_some() {
        findings.error(
            place,
            "hits a trigger when all is received, and goes to a multicast group, of which nobody knows that",
            "hit the trigger when it is sent",
        );
    }
}
