//! Switches and hosts: thresholds that fit each other and the memory.

use softfabric_transport::rate::RateControlConfig;
use softfabric_units::{Bytes, Class};

use super::Findings;
use crate::plan::{
    Alpha, BufferAccounting, ClassProfile, HostProfile, Link, LinkLayer, LossRecovery, NodeId,
    NodeKind, NotificationPoint, Plan, Scheduling, SwitchProfile, Timing,
};

pub(super) fn check(plan: &Plan, findings: &mut Findings) {
    for (index, profile) in plan.switch_profiles.iter().enumerate() {
        let place = format!("switch profile {index}");
        switch(profile, &place, findings);
        for class in Class::all() {
            let place = format!("{place}, class {class}");
            switch_class(&profile.classes[class.index()], &place, findings);
        }
    }
    for (index, profile) in plan.host_profiles.iter().enumerate() {
        host(
            profile,
            plan.timing,
            &format!("host profile {index}"),
            findings,
        );
    }
}

fn switch(profile: &SwitchProfile, place: &str, findings: &mut Findings) {
    class_maps(profile, place, findings);
    let buffer = &profile.buffer;
    if buffer.total.is_zero() {
        findings.error(place, "has no packet memory", "give a buffer such as 32MiB");
    }
    if buffer.cell.is_zero() {
        findings.error(place, "has cells of 0 B", "1 B counts bytes exactly");
    }
    if buffer.headroom_pool.is_some_and(|pool| pool > buffer.total) {
        findings.error(
            place,
            "has a headroom pool larger than the buffer",
            "the pool is a part of the buffer",
        );
    }
    if profile.pause.quanta == Some(0) {
        findings.error(place, "pauses for 0 quanta", "give 1 to 65535, or none");
    }
    if let Some(watchdog) = profile.watchdog {
        let spans = [watchdog.detection, watchdog.restoration, watchdog.poll];
        if spans.iter().any(|span| span.is_zero()) {
            findings.error(
                place,
                "has a watchdog with a time of zero",
                "give 100ms or more",
            );
        }
    }
}

fn switch_class(class: &ClassProfile, place: &str, findings: &mut Findings) {
    for ecn in &class.ecn {
        if ecn.kmin > ecn.kmax {
            findings.error(
                place,
                format!("has Kmin {} above Kmax {}", ecn.kmin, ecn.kmax),
                "Kmin is where marking begins",
            );
        }
        if !(0.0..=1.0).contains(&ecn.pmax) {
            let problem = format!("has Pmax {}, which is no probability", ecn.pmax);
            findings.error(place, problem, "give a number from 0 to 1");
        }
    }
    for threshold in [class.ingress.threshold, class.egress.threshold] {
        if let Alpha::Dynamic(exponent) = threshold
            && !(-7..=6).contains(&exponent)
        {
            let problem = format!("has a threshold of 2^{exponent} of what is free");
            findings.error(place, problem, "give an exponent from -7 to 6");
        }
    }
    if class.scheduling == Scheduling::Weighted(0) {
        findings.error(place, "has a weight of 0", "give 1 or more");
    }
}

/// Traffic classes by their maps: what PFC protects must not drop at egress, and each pause must be one group's.
fn class_maps(profile: &SwitchProfile, place: &str, findings: &mut Findings) {
    for class in Class::all() {
        let queue = &profile.classes[profile.maps.queue[class.index()].index()];
        if profile.protects(class) && queue.egress.threshold != Alpha::Unlimited {
            findings.warning(
                format!("{place}, class {class}"),
                "is lossless, yet its egress queue may drop",
                "leave the egress threshold of lossless classes unlimited",
            );
        }
    }
    let groups = profile.lossless();
    for (group, other) in groups
        .iter()
        .flat_map(|group| groups.iter().map(move |other| (group, other)))
    {
        let priority = profile.maps.pause[group.index()];
        if group < other && priority == profile.maps.pause[other.index()] {
            findings.error(
                place,
                format!("pauses priority {priority} for groups {group} and {other}: each would end the other's pauses"),
                "give each lossless group a PFC priority of its own",
            );
        }
    }
}

fn host(profile: &HostProfile, timing: Timing, place: &str, findings: &mut Findings) {
    let nic = &profile.nic;
    let mtu = nic.mtu.as_u64();
    if mtu == 0 || mtu > u64::from(u16::MAX) {
        let problem = format!("has an MTU of {}", nic.mtu);
        findings.error(
            place,
            problem,
            "give 256 B, 512 B, 1024 B, 2048 B or 4096 B",
        );
    } else if timing == Timing::Exact && ![256, 512, 1024, 2048, 4096].contains(&mtu) {
        findings.warning(
            place,
            format!("has an MTU of {}, which no link has", nic.mtu),
            "256 B, 512 B, 1024 B, 2048 B and 4096 B are real ones",
        );
    }
    if let Err(error) = nic.rate_control.check() {
        findings.error(place, error.to_string(), "change the parameter");
    }
    if matches!(nic.rate_control, RateControlConfig::InjectionDelay(_)) {
        findings.error(
            place,
            "has InfiniBand's rate control, which is one of the fabric",
            "set it in the congestion control of the InfiniBand fabric",
        );
    }
    if nic.window.is_some_and(Bytes::is_zero) {
        findings.error(
            place,
            "has a window of 0 B",
            "leave it out, or give a packet or more",
        );
    }
    if nic.loss_recovery
        == (LossRecovery::SelectiveRepeat {
            cap: Some(Bytes::ZERO),
        })
    {
        findings.error(
            place,
            "has a cap of 0 B",
            "leave it out, or give a packet or more",
        );
    }
    if let NotificationPoint::Cnp { interval, .. } = nic.notification
        && interval.is_zero()
    {
        findings.warning(
            place,
            "sends a CNP for every marked packet",
            "real NICs wait 4 µs to 50 µs between them",
        );
    }
    for (what, found, most) in [
        ("timeout", nic.timeout, 31),
        ("retry count", nic.retry_count, 7),
        ("RNR retry count", nic.rnr_retry, 7),
    ] {
        if found > most {
            let problem = format!("has a {what} of {found}");
            findings.error(place, problem, format!("give 0 to {most}"));
        }
    }
    if nic.acknowledge_every == 0 {
        findings.error(place, "never acknowledges", "give 1 or more packets");
    }
    let receive = &profile.receive;
    if receive.xon > receive.xoff || receive.xoff > receive.buffer {
        let problem = format!(
            "pauses at {}, resumes at {} and holds {}",
            receive.xoff, receive.xon, receive.buffer
        );
        findings.error(
            place,
            problem,
            "resume below pause, and pause within the buffer",
        );
    }
    if receive.drain.is_some_and(softfabric_units::Rate::is_zero) {
        findings.error(place, "takes nothing", "give a rate, or none for no limit");
    }
    if profile.pause_quanta == Some(0) {
        findings.error(place, "pauses for 0 quanta", "give 1 to 65535, or none");
    }
}

/// Whether what is set aside fits into the memory, and whether ECN acts before PFC, switch by switch; of switches with
/// the same profile, ports and headroom, the first.
pub(super) fn check_memory(plan: &Plan, findings: &mut Findings) {
    let network = &plan.network;
    if plan.link_layer != LinkLayer::Ethernet {
        return;
    }
    let mut worked_out = vec![0u64; network.nodes.len()];
    for link in &network.links {
        for end in [link.a, link.b] {
            worked_out[end.node.index()] += worked_out_headroom(plan, end.node, link);
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    for ((node, ports), worked_out) in network
        .nodes
        .iter()
        .zip(network.port_counts())
        .zip(worked_out)
    {
        let NodeKind::Switch { profile } = node.kind else {
            continue;
        };
        if !seen.insert((profile, ports, worked_out)) {
            continue;
        }
        let profile = &plan.switch_profiles[profile as usize];
        if profile.buffer.accounting == BufferAccounting::SharedBuffer {
            memory(profile, &node.name, u64::from(ports), worked_out, findings);
        }
    }
}

/// The headroom of one port of a switch, all lossless classes together, as far as it is worked out from the link.
fn worked_out_headroom(plan: &Plan, node: NodeId, link: &Link) -> u64 {
    let NodeKind::Switch { profile } = plan.network.nodes[node.index()].kind else {
        return 0;
    };
    let Some(profile) = plan.switch_profiles.get(profile as usize) else {
        return 0;
    };
    let left_open = |class: &&ClassProfile| class.lossless && class.ingress.headroom.is_none();
    let classes = profile.classes.iter().filter(left_open).count() as u64;
    if classes == 0 || profile.buffer.headroom_pool.is_some() {
        return 0;
    }
    classes * plan.needed_headroom(profile, link).as_u64()
}

fn memory(
    profile: &SwitchProfile,
    name: &str,
    ports: u64,
    worked_out: u64,
    findings: &mut Findings,
) {
    let total = profile.buffer.total.as_u64();
    let place = format!("switch {name}");
    let own = profile.buffer.headroom_pool.is_none();
    let mut aside = profile
        .buffer
        .headroom_pool
        .map_or(worked_out, Bytes::as_u64);
    for class in &profile.classes {
        let ingress = &class.ingress;
        let headroom = (ingress.headroom)
            .filter(|_| own && class.lossless)
            .map_or(0, Bytes::as_u64);
        let each = ingress.reserved.as_u64().saturating_add(headroom);
        aside = aside.saturating_add(each.saturating_mul(ports));
    }
    if aside > total {
        findings.error(
            &place,
            format!(
                "sets {} aside as headroom and reserves of {ports} ports, in a buffer of {}",
                Bytes::new(aside),
                profile.buffer.total
            ),
            "take a larger buffer, less headroom, or fewer ports",
        );
        return;
    }
    let shared = total - aside;
    for class in Class::all() {
        let found = &profile.classes[class.index()];
        if !found.lossless {
            continue;
        }
        // With one group alone, u = α · (S − u): it pauses at S · α / (1 + α).
        let pause = match found.ingress.threshold {
            Alpha::Unlimited => shared,
            Alpha::Static(bytes) => bytes.as_u64(),
            Alpha::Dynamic(exponent @ ..0) => shared / ((1 << exponent.unsigned_abs().min(7)) + 1),
            Alpha::Dynamic(exponent) => {
                let alpha = 1u64 << exponent.min(6);
                shared / (alpha + 1) * alpha
            }
        };
        let kmin = found.ecn.iter().map(|ecn| ecn.kmin).min();
        if let Some(kmin) = kmin.filter(|kmin| kmin.as_u64() > pause) {
            findings.warning(
                format!("{place}, class {class}"),
                format!(
                    "marks from {kmin} on, but pauses at {} at the latest: PFC acts before ECN",
                    Bytes::new(pause)
                ),
                "lower Kmin, or raise the threshold or the buffer",
            );
        }
    }
}
