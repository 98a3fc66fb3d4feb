//! InfiniBand: lanes that exist, buffers that hold a packet, service levels that have a lane.

use softfabric_subnet::routing::RoutingError;
use softfabric_transport::rate::RateControlConfig;
use softfabric_units::Bytes;

use super::{Finding, Findings, Severity};
use crate::plan::{
    AcknowledgementClass, DATA_LANES, HostProfile, Infiniband, Lanes, LinkLayer, LossRecovery,
    PacketLife, Plan, StaticRate, Timing,
};
use crate::subnet::{Routed, SubnetError, route};

/// What every buffer has to hold: the payload of a packet, and all its headers.
const HEADERS: Bytes = Bytes::new(64);

pub(super) fn check(plan: &Plan, findings: &mut Findings) {
    let LinkLayer::Infiniband(settings) = &plan.link_layer else {
        return;
    };
    if plan.timing == Timing::Hpcc {
        findings.error(
            "timing",
            "is that of the HPCC simulator, which has no InfiniBand",
            "use exact timing",
        );
    }
    for level in settings.service_levels.iter().filter(|level| **level > 15) {
        let found = format!("have service level {level}");
        findings.error("the traffic classes", found, "service levels are 0 to 15");
    }
    super::congestion::check(settings, findings);
    for (index, host) in plan.host_profiles.iter().enumerate() {
        if host.nic.acknowledgement_class != AcknowledgementClass::Request {
            findings.error(
                format!("host profile {index}"),
                "gives acknowledgements a class of their own, and on InfiniBand they go by the lane of their path",
                "let them have the class of the request",
            );
        }
    }
    if settings.static_rate == StaticRate::Path {
        for (index, host) in plan.host_profiles.iter().enumerate() {
            let control = host.nic.rate_control;
            if !matches!(
                control,
                RateControlConfig::None | RateControlConfig::Fixed { .. }
            ) {
                findings.error(
                    format!("host profile {index}"),
                    "has a rate control of its own beside the static rates of paths",
                    "use none, or a fixed rate; or no static rates",
                );
            }
        }
    }
    if settings.adaptive {
        overtaking(plan, findings);
    }
    let longest = plan.host_profiles.iter().map(|host| host.nic.mtu).max();
    let needed = Bytes::new(longest.unwrap_or(Bytes::ZERO).as_u64() + HEADERS.as_u64());
    lanes(
        &settings.hosts,
        settings,
        "the hosts' lanes",
        needed,
        findings,
    );
    for (index, profile) in settings.switches.iter().enumerate() {
        let place = format!("InfiniBand switch profile {index}");
        lanes(&profile.lanes, settings, &place, needed, findings);
        if profile.lanes.count != settings.hosts.count {
            findings.error(
                &place,
                format!(
                    "has {} data lanes, and hosts have {}",
                    profile.lanes.count, settings.hosts.count
                ),
                "operate the same number of lanes at both ends of each link",
            );
        }
        life(&profile.life, &place, findings);
    }
}

/// Hosts that send all again which came after a packet that was overtaken.
fn overtaking(plan: &Plan, findings: &mut Findings) {
    let in_order = |host: &HostProfile| {
        !matches!(host.nic.loss_recovery, LossRecovery::SelectiveRepeat { .. })
    };
    if plan.host_profiles.iter().any(in_order) {
        findings.warning(
            "adaptive routing",
            "lets packets of a flow overtake each other, which hosts take for losses: they send again what is on its way",
            "let hosts repeat selectively: they keep what comes early",
        );
    }
}

/// Whether the subnet manager finds routes, and whether they can lock up. The ids of the plan exist.
pub(super) fn check_routes(plan: &Plan, findings: &mut Findings) {
    let LinkLayer::Infiniband(settings) = &plan.link_layer else {
        return;
    };
    // What is said of lanes already is not said of routes again.
    if !(1..=DATA_LANES as u8).contains(&settings.hosts.count) {
        return;
    }
    let up = vec![true; plan.network.links.len()];
    let routed = match route(&plan.network, settings, &up) {
        Ok(routed) => routed,
        Err(error) => return findings.all.push(unroutable(&error)),
    };
    if let Some(credit_loop) = routed.iter().find_map(Routed::credit_loop) {
        findings.warning(
            "the routes",
            format!("can lock up: lanes wait for each other's credit in a circle, {credit_loop}"),
            "use a routing engine without deadlocks: up_down, nue, dfsssp; in a torus, `torus`",
        );
    }
}

/// What to say of a plan that has no routes.
pub(crate) fn unroutable(error: &SubnetError) -> Finding {
    let advice = match error {
        SubnetError::TooManyPorts { .. } => "give it fewer links",
        SubnetError::Lanes { .. } | SubnetError::Routing(RoutingError::Lanes { .. }) => {
            "operate more lanes, or use another routing engine"
        }
        SubnetError::AdaptiveLoop { .. } => {
            "use up_down or fat_tree, whose ways never make a circle, or no adaptive routing"
        }
        SubnetError::Routing(RoutingError::OneWay { .. }) => {
            "use min_hop, up_down or fat_tree, or no adaptive routing"
        }
        SubnetError::Routing(_) => {
            "use another routing engine: min_hop, up_down and nue take any network"
        }
        _ => "change the network",
    };
    Finding {
        severity: Severity::Error,
        place: "the routes".to_owned(),
        problem: error.to_string(),
        advice: advice.to_owned(),
    }
}

fn life(life: &PacketLife, place: &str, findings: &mut Findings) {
    let lives = [life.in_switch, life.at_head, life.at_head_to_host];
    if lives.into_iter().flatten().any(|life| life.is_zero()) {
        findings.error(
            place,
            "drops what has waited for no time",
            "give a life such as 16.384us, or none",
        );
    }
    let Some(count) = life.stall_count else {
        return;
    };
    if !(1..=7).contains(&count) {
        let found = format!("stalls a lane after {count} packets");
        findings.error(place, found, "give a count of 1 to 7, or none");
    }
    if life.at_head.is_none() && life.at_head_to_host.is_none() {
        findings.error(
            place,
            "stalls lanes after packets that outlive the head of a queue, where they may stay for ever",
            "give packets a life at the head of a queue as well, or lanes no stall count",
        );
    }
}

fn lanes(
    lanes: &Lanes,
    settings: &Infiniband,
    place: &str,
    needed: Bytes,
    findings: &mut Findings,
) {
    if !(1..=DATA_LANES as u8).contains(&lanes.count) {
        let found = format!("has {} data lanes", lanes.count);
        return findings.error(place, found, "operate 1 to 15 lanes");
    }
    if lanes.buffer < needed {
        findings.error(
            place,
            format!(
                "has a buffer of {} for each lane: no packet fits",
                lanes.buffer
            ),
            format!("give each lane {needed} or more"),
        );
    }
    let tables = [&lanes.arbitration.high, &lanes.arbitration.low];
    for entry in tables.into_iter().flatten() {
        if entry.lane >= lanes.count {
            findings.error(
                place,
                format!("arbitrates lane {}, of {}", entry.lane, lanes.count),
                "name lanes that are in operation",
            );
        }
    }
    for level in settings.levels_in_use() {
        let Some(&lane) = lanes.of_level.get(usize::from(level)) else {
            continue;
        };
        if lane >= lanes.count {
            findings.error(
                place,
                format!(
                    "puts service level {level} on lane {lane}, of {}",
                    lanes.count
                ),
                "name lanes that are in operation",
            );
            continue;
        }
        let served = |entry: &crate::plan::LaneWeight| entry.lane == lane && entry.weight > 0;
        if !tables.into_iter().flatten().any(served) {
            findings.error(
                place,
                format!("never serves lane {lane}, which has service level {level}"),
                "give the lane a weight in one of the arbitration tables",
            );
        }
    }
}
