//! `[infiniband]`: the link layer of the plan, and what is different where it is there.

use std::borrow::Cow;

use softfabric_transport::rate::RateControlConfig;
use softfabric_units::{Bytes, ClassMask, Span};

use crate::plan::{
    Forwarding, HostProfile, Infiniband, InfinibandSwitch, LaneArbitration, LaneWeight, Lanes,
    LinkLayer, Network, NotificationPoint, PacketLife, StaticRate, SubnetRouting, SwitchProfile,
};
use crate::scenario::error::Problems;
use crate::scenario::{
    CongestionControl, FabricKind, ForwardingKind, InfinibandSettings, LaneEntry, NotificationKind,
    RoutingKind, Scenario, StaticRateKind, Switch,
};

/// As much as credits can promise (IBTA vol. 1, 7.9.4.4): 2048 blocks of 64 B.
const BUFFER: Bytes = Bytes::kib(128);
/// What our own subnet manager takes on a fabric of some thousand hosts; see `docs/performance.md`.
const REPAIR: Span = Span::millis(50);
const LATENCY: Span = Span::nanos(200);
/// What a switch has to see before it forwards: LRH and BTH, in whole words.
const HEADER: Bytes = Bytes::new(24);

fn is_infiniband(scenario: &Scenario) -> bool {
    scenario.fabric.kind == Some(FabricKind::Infiniband)
}

/// The scenario with the defaults that InfiniBand has.
pub(super) fn defaults(scenario: &Scenario) -> Cow<'_, Scenario> {
    if !is_infiniband(scenario) {
        return Cow::Borrowed(scenario);
    }
    let mut scenario = scenario.clone();
    let switch = &mut scenario.switch;
    switch.latency.get_or_insert(LATENCY);
    let forwarding = *switch.forwarding.get_or_insert(ForwardingKind::CutThrough);
    if forwarding == ForwardingKind::CutThrough {
        switch.cut_through_header.get_or_insert(HEADER);
    }
    let host = &mut scenario.host;
    host.congestion_control
        .get_or_insert(CongestionControl::None {});
    host.notification.get_or_insert(NotificationKind::Off);
    host.lossless.get_or_insert_default();
    Cow::Owned(scenario)
}

/// The same for profiles: what an InfiniBand scenario that says nothing leads to.
pub(in crate::scenario) fn default_profiles(switch: &mut SwitchProfile, host: &mut HostProfile) {
    switch.latency = LATENCY;
    switch.forwarding = Forwarding::CutThrough { header: HEADER };
    host.nic.rate_control = RateControlConfig::None;
    host.nic.notification = NotificationPoint::Off;
    host.lossless = ClassMask::NONE;
}

/// The link layer of the scenario's fabric.
pub(super) fn link_layer(
    scenario: &Scenario,
    network: &Network,
    profiles: &[SwitchProfile],
    hosts: &[HostProfile],
    problems: &mut Problems<'_>,
) -> LinkLayer {
    let settings = &scenario.infiniband;
    if !is_infiniband(scenario) {
        if *settings != InfinibandSettings::default() {
            problems.add(
                "infiniband",
                "settings of InfiniBand",
                "only with `fabric.kind = \"infiniband\"`",
                None,
            );
        }
        return LinkLayer::Ethernet;
    }
    let sections = std::iter::once(("switch".to_owned(), &scenario.switch)).chain(
        (scenario.switch_group.iter().enumerate())
            .map(|(place, group)| (format!("switch_group[{place}]"), group)),
    );
    for (field, section) in sections {
        ethernet_settings(&field, section, problems);
    }
    let lanes = lanes(settings);
    let life = packet_life(settings, problems);
    let switch = |profile: &SwitchProfile| InfinibandSwitch {
        forwarding: profile.forwarding,
        latency: profile.latency,
        lanes: lanes.clone(),
        life,
    };
    LinkLayer::Infiniband(Infiniband {
        switches: profiles.iter().map(switch).collect(),
        hosts: lanes.clone(),
        service_levels: (settings.service_levels).unwrap_or(Infiniband::USUAL_LEVELS),
        routing: routing(scenario, problems),
        repair: settings.repair.unwrap_or(REPAIR),
        static_rate: match settings.static_rate {
            Some(StaticRateKind::Path) => StaticRate::Path,
            Some(StaticRateKind::None) | None => StaticRate::None,
        },
        adaptive: settings.adaptive_routing.unwrap_or(false),
        multicast: super::multicast::groups(settings, network, hosts, problems),
        partitions: super::partition::partitions(settings, network, problems),
        congestion: (settings.congestion_control.as_ref())
            .map(|control| super::congestion::congestion(control, profiles.len(), problems))
            .map(Box::new),
    })
}

fn routing(scenario: &Scenario, problems: &mut Problems<'_>) -> SubnetRouting {
    let routing = match scenario.fabric.routing {
        Some(RoutingKind::Shortest | RoutingKind::MinHop) | None => SubnetRouting::MinHop,
        Some(RoutingKind::UpDown) => SubnetRouting::UpDown,
        Some(RoutingKind::FatTree) => SubnetRouting::FatTree,
        Some(RoutingKind::Dfsssp) => SubnetRouting::Dfsssp,
        Some(RoutingKind::Torus) => SubnetRouting::Torus,
        Some(RoutingKind::Nue) => SubnetRouting::Nue,
    };
    let settings = &scenario.infiniband;
    let said = [
        (
            "infiniband.service_levels",
            settings.service_levels.is_some(),
        ),
        ("infiniband.level_to_lane", settings.level_to_lane.is_some()),
    ];
    for (field, _) in said
        .iter()
        .filter(|(_, said)| routing.sets_levels() && *said)
    {
        problems.add(
            *field,
            "service levels for classes or lanes",
            "none, as this `fabric.routing` gives paths their levels and levels their lanes",
            Some("remove it, or use min_hop, up_down or fat_tree".to_owned()),
        );
    }
    routing
}

fn packet_life(settings: &InfinibandSettings, problems: &mut Problems<'_>) -> PacketLife {
    let fields = [
        ("head_of_queue_life", settings.head_of_queue_life),
        ("host_head_of_queue_life", settings.host_head_of_queue_life),
        ("packet_life", settings.packet_life),
    ];
    for (field, life) in fields {
        let Some(life) = life else { continue };
        let mut lives = (0..=PacketLife::LONGEST_CODE).filter_map(PacketLife::of_code);
        if lives.clone().any(|possible| possible == life) {
            continue;
        }
        let next = lives.find(|possible| *possible > life);
        problems.add(
            format!("infiniband.{field}"),
            format!("{life:#}"),
            "4.096us times a power of two, up to 2.147483648s",
            Some(match next {
                Some(next) => format!("the next longer one is {next:#}"),
                None => "leave it out: packets stay for ever".to_owned(),
            }),
        );
    }
    PacketLife {
        in_switch: settings.packet_life,
        at_head: settings.head_of_queue_life,
        at_head_to_host: settings
            .host_head_of_queue_life
            .or(settings.head_of_queue_life),
        stall_count: settings.stall_count,
    }
}

fn lanes(settings: &InfinibandSettings) -> Lanes {
    let mut lanes = Lanes::alike(
        settings.lanes.unwrap_or(1),
        settings.buffer.unwrap_or(BUFFER),
    );
    if let Some(of_level) = settings.level_to_lane {
        lanes.of_level = of_level;
    }
    let table = |entries: &Vec<LaneEntry>| {
        let entry = |entry: &LaneEntry| LaneWeight {
            lane: entry.lane,
            weight: entry.weight,
        };
        entries.iter().map(entry).collect()
    };
    lanes.arbitration = LaneArbitration {
        high: settings.high.as_ref().map_or(Vec::new(), table),
        low: settings.low.as_ref().map_or(lanes.arbitration.low, table),
        limit: settings.high_limit.unwrap_or(255),
    };
    lanes
}

/// Says so where a section has settings that only Ethernet switches have.
fn ethernet_settings(field: &str, section: &Switch, problems: &mut Problems<'_>) {
    let mut rest = section.clone();
    rest.names = None;
    rest.latency = None;
    rest.forwarding = None;
    rest.cut_through_header = None;
    if rest != Switch::default() {
        problems.add(
            field,
            "settings of an Ethernet switch",
            "`latency`, `forwarding` and `cut_through_header` on InfiniBand",
            Some("what its lanes do is said in `[infiniband]`".to_owned()),
        );
    }
}
