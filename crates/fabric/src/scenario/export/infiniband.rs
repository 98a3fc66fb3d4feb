//! The lanes of a plan, as `[infiniband]`.

use crate::plan::{
    Infiniband, LaneWeight, Lanes, LinkLayer, NodeId, Plan, StaticRate, SubnetRouting,
};
use crate::scenario::{
    Enforcement, InfinibandSettings, LaneEntry, PartitionSettings, RoutingKind, StaticRateKind,
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
        partition_enforcement: settings.partitions.as_ref().map(|partitions| {
            match (partitions.inbound, partitions.outbound) {
                (false, false) => Enforcement::None,
                (true, false) => Enforcement::Inbound,
                (false, true) => Enforcement::Outbound,
                (true, true) => Enforcement::Both,
            }
        }),
        congestion_control: (settings.congestion.as_deref())
            .map(super::congestion::section)
            .transpose()?,
    })
}

fn partitions(plan: &Plan, settings: &Infiniband) -> Vec<PartitionSettings> {
    let names = |hosts: &[NodeId]| {
        let name = |host: &NodeId| plan.network.nodes[host.index()].name.clone();
        hosts.iter().map(name).collect()
    };
    let partitions = settings.partitions.iter().flat_map(|all| &all.partitions);
    partitions
        .map(|partition| PartitionSettings {
            name: partition.name.clone(),
            key: partition.key,
            full: names(&partition.full),
            limited: names(&partition.limited),
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
