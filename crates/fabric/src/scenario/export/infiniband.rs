//! The lanes of a plan, as `[infiniband]`.

use crate::plan::{
    DEFAULT_PARTITION, Infiniband, LaneWeight, Lanes, LinkLayer, MulticastGroup, NodeId, Plan,
    StaticRate, SubnetRouting,
};
use crate::scenario::{
    Enforcement, InfinibandSettings, LaneEntry, MulticastSettings, PartitionSettings, RoutingKind,
    StaticRateKind,
};

pub(super) fn section(plan: &Plan) -> Result<InfinibandSettings, String> {
    let LinkLayer::Infiniband(settings) = &plan.link_layer else {
        return Ok(InfinibandSettings::default());
    };
    let lanes = &settings.hosts;
    let [first, ..] = &settings.switches[..] else {
        return Err("there is no InfiniBand switch profile".to_owned());
    };
    let alike = |switch: &crate::plan::InfinibandSwitch| {
        switch.lanes == *lanes && switch.life == first.life
    };
    if !settings.switches.iter().all(alike) {
        return Err("lanes, or lives of packets, differ between ports".to_owned());
    }
    if first.life.at_head.is_some() && first.life.at_head_to_host.is_none() {
        return Err("packets live for ever at ports to hosts alone".to_owned());
    }
    let table = |entries: &[LaneWeight]| {
        let entry = |entry: &LaneWeight| LaneEntry {
            lane: entry.lane,
            weight: entry.weight,
        };
        Some(entries.iter().map(entry).collect())
    };
    let usual = Lanes::alike(lanes.count, lanes.buffer);
    let says_levels =
        lanes.of_level != usual.of_level || settings.service_levels != Infiniband::USUAL_LEVELS;
    let sets_levels = settings.routing.sets_levels();
    if sets_levels && says_levels {
        return Err("classes or lanes have levels, and the routing engine sets them".to_owned());
    }
    Ok(InfinibandSettings {
        lanes: Some(lanes.count),
        buffer: Some(lanes.buffer),
        service_levels: Some(settings.service_levels).filter(|_| !sets_levels),
        level_to_lane: Some(lanes.of_level).filter(|_| !sets_levels),
        repair: Some(settings.repair),
        adaptive_routing: settings.adaptive.then_some(true),
        static_rate: match settings.static_rate {
            StaticRate::None => None,
            StaticRate::Path => Some(StaticRateKind::Path),
        },
        high: table(&lanes.arbitration.high),
        low: table(&lanes.arbitration.low),
        high_limit: Some(lanes.arbitration.limit),
        head_of_queue_life: first.life.at_head,
        host_head_of_queue_life: first.life.at_head_to_host,
        packet_life: first.life.in_switch,
        stall_count: first.life.stall_count,
        partition: partitions(plan, settings),
        multicast: groups(plan, settings)?,
        partition_enforcement: enforcement(settings),
        congestion_control: (settings.congestion.as_deref())
            .map(super::congestion::section)
            .transpose()?,
    })
}

fn names(plan: &Plan, hosts: &[NodeId]) -> Vec<String> {
    let name = |host: &NodeId| plan.network.nodes[host.index()].name.clone();
    hosts.iter().map(name).collect()
}

fn partitions(plan: &Plan, settings: &Infiniband) -> Vec<PartitionSettings> {
    let partitions = settings.partitions.iter().flat_map(|all| &all.partitions);
    partitions
        .map(|partition| PartitionSettings {
            name: partition.name.clone(),
            key: partition.key,
            full: names(plan, &partition.full),
            limited: names(plan, &partition.limited),
        })
        .collect()
}

/// Where switches guard partitions. Without any, all hosts are full members of the default one, and guards stop nothing.
fn enforcement(settings: &Infiniband) -> Option<Enforcement> {
    let all = settings.partitions.as_ref()?;
    let kind = match (all.inbound, all.outbound) {
        (false, false) => Enforcement::None,
        (true, false) => Enforcement::Inbound,
        (false, true) => Enforcement::Outbound,
        (true, true) => Enforcement::Both,
    };
    (!all.partitions.is_empty()).then_some(kind)
}

fn groups(plan: &Plan, settings: &Infiniband) -> Result<Vec<MulticastSettings>, String> {
    let partitions = settings.partitions.iter().flat_map(|all| &all.partitions);
    let partition = |group: &MulticastGroup| {
        let named = partitions
            .clone()
            .find(|partition| partition.key == group.key);
        match named {
            Some(partition) => Ok(Some(partition.name.clone())),
            None if group.key == DEFAULT_PARTITION => Ok(None),
            None => Err(format!("{} is in a partition without a name", group.name)),
        }
    };
    let groups = settings.multicast.iter();
    groups
        .map(|group| {
            Ok(MulticastSettings {
                name: group.name.clone(),
                members: names(plan, &group.members),
                send_only: names(plan, &group.senders),
                service_level: group.level,
                partition: partition(group)?,
                mtu: Some(group.mtu),
                rate: group.rate,
            })
        })
        .collect()
}

pub(super) const fn routing(routing: SubnetRouting) -> RoutingKind {
    match routing {
        SubnetRouting::MinHop => RoutingKind::MinHop,
        SubnetRouting::UpDown => RoutingKind::UpDown,
        SubnetRouting::FatTree => RoutingKind::FatTree,
        SubnetRouting::Dfsssp => RoutingKind::Dfsssp,
        SubnetRouting::Torus => RoutingKind::Torus,
        SubnetRouting::Nue => RoutingKind::Nue,
    }
}
