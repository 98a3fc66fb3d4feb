//! `[switch]` and `[[switch_group]]`: the profiles of switches.

use softfabric_units::{Bytes, Class, Rate, Span};

use super::defaults::{class_profile, switch_profile};
use super::select;
use crate::plan::{
    BufferAccounting, ClassProfile, Classifier, Ecn, Forwarding, Layer, LoadBalancing, Network,
    NodeKind, Scheduling, SwitchProfile, Watchdog, WatchdogAction, Xon,
};
use crate::preset;
use crate::scenario::error::{Problems, did_you_mean};
use crate::scenario::names::{Names, Wanted};
use crate::scenario::{
    AccountingKind, ForwardingKind, LayerKind, LoadBalancingKind, Marking, Scenario, Switch,
    SwitchClass, WatchdogActionKind, WatchdogSettings,
};

pub(super) fn profiles(
    scenario: &Scenario,
    network: &mut Network,
    rates: &[Rate],
    problems: &mut Problems<'_>,
) -> Vec<SwitchProfile> {
    if scenario.switch.names.is_some() {
        let advice = Some("write it in `[[switch_group]]`".to_owned());
        problems.add("switch.names", "names", "settings of all switches", advice);
    }
    let mut base = switch_profile(rates);
    apply(&scenario.switch, &mut base, rates, "switch", problems);
    let mut profiles = vec![base];
    for (place, group) in scenario.switch_group.iter().enumerate() {
        let field = format!("switch_group[{place}]");
        let mut profile = profiles[0].clone();
        apply(group, &mut profile, rates, &field, problems);
        let index = profiles.len() as u32;
        profiles.push(profile);
        let patterns = group.names.as_deref().unwrap_or(&[]);
        if patterns.is_empty() {
            let allowed = "the names of switches, such as [\"spine*\"]";
            problems.add(format!("{field}.names"), "nothing", allowed, None);
        }
        let names = Names::new(network);
        let field = format!("{field}.names");
        let selected = select(&names, patterns, Wanted::Switch, &field, problems);
        for node in selected {
            if let NodeKind::Switch { profile } = &mut network.nodes[node.index()].kind {
                *profile = index;
            }
        }
    }
    profiles
}

fn apply(
    from: &Switch,
    to: &mut SwitchProfile,
    rates: &[Rate],
    field: &str,
    problems: &mut Problems<'_>,
) {
    if let Some(name) = &from.preset {
        preset(name, to, field, problems);
    }
    set(&mut to.latency, from.latency);
    let header = from.cut_through_header.unwrap_or(match to.forwarding {
        Forwarding::CutThrough { header } => header,
        Forwarding::StoreAndForward => Bytes::new(64),
    });
    match from.forwarding {
        Some(ForwardingKind::StoreAndForward) => to.forwarding = Forwarding::StoreAndForward,
        Some(ForwardingKind::CutThrough) => to.forwarding = Forwarding::CutThrough { header },
        None if from.cut_through_header.is_some() => {
            if let Forwarding::CutThrough { .. } = to.forwarding {
                to.forwarding = Forwarding::CutThrough { header };
            } else {
                problems.add(
                    format!("{field}.cut_through_header"),
                    format!("{header} with `store_and_forward`"),
                    "only with `forwarding = \"cut_through\"`",
                    None,
                );
            }
        }
        None => {}
    }
    match from.layer {
        Some(LayerKind::Bridge) => to.layer = Layer::Bridge,
        Some(LayerKind::Router) => to.layer = Layer::Router,
        None => {}
    }
    memory(from, to, field, problems);
    if let Some(lossless) = &from.lossless {
        for class in Class::all() {
            let wanted = lossless.contains(&class.as_u8());
            if to.classes[class.index()].lossless != wanted {
                to.classes[class.index()] = class_profile(class, wanted, rates);
            }
        }
    }
    if let Some(pause) = &from.pause {
        if let Some(quanta) = pause.quanta {
            to.pause.quanta = Some(quanta).filter(|quanta| *quanta > 0);
        }
        set(&mut to.pause.response_delay, pause.response_delay);
        set(&mut to.pause.obeys, pause.obeys);
        set(&mut to.pause.obeys_on_lossy, pause.obeys_on_lossy);
    }
    if let Some(settings) = &from.watchdog {
        to.watchdog = watchdog(settings, to.watchdog, field, problems);
    }
    class_maps(from, to, field, problems);
    if let Some(points) = &from.dscp {
        let mut classes = Box::new([Class::default(); 64]);
        for (point, class) in points
            .iter()
            .flat_map(|points| points.codes.iter().map(|code| (*code, points.class)))
        {
            // The schema has seen to it that both are in range.
            classes[usize::from(point & 63)] = Class::checked(class).unwrap_or_default();
        }
        to.classifier = Classifier::Dscp(classes);
    }
    if let Some(kind) = from.load_balancing {
        to.load_balancing = match kind {
            LoadBalancingKind::Ecmp => LoadBalancing::EcmpHash,
            LoadBalancingKind::EcmpQueuePair => LoadBalancing::EcmpQueuePair,
            LoadBalancingKind::EcmpHpcc => LoadBalancing::EcmpHpcc,
            LoadBalancingKind::SprayRandom => LoadBalancing::SprayRandom,
            LoadBalancingKind::SprayRoundRobin => LoadBalancing::SprayRoundRobin,
            LoadBalancingKind::Adaptive => LoadBalancing::Adaptive,
        };
    }
    classes(from, to, rates, field, problems);
}

/// What tells a packet's class by its priority, and what follows from a class.
fn class_maps(from: &Switch, to: &mut SwitchProfile, field: &str, problems: &mut Problems<'_>) {
    // The schema has seen to it that all are in range.
    let map = |numbers: [u8; 8]| numbers.map(|number| Class::checked(number).unwrap_or_default());
    if let Some(classes) = from.pcp {
        to.classifier = Classifier::Pcp(map(classes));
        if from.dscp.is_some() {
            problems.add(
                format!("{field}.pcp"),
                "together with `dscp`",
                "one of the two: a port trusts the priority or the DSCP",
                None,
            );
        }
    }
    set(&mut to.maps.group, from.class_to_group.map(map));
    set(&mut to.maps.queue, from.class_to_queue.map(map));
    set(&mut to.maps.pause, from.group_to_pfc.map(map));
    set(&mut to.maps.stops, from.pfc_to_queue.map(map));
}

fn memory(from: &Switch, to: &mut SwitchProfile, field: &str, problems: &mut Problems<'_>) {
    set(&mut to.buffer.total, from.buffer);
    set(&mut to.buffer.cell, from.cell);
    if let Some(pool) = from.headroom_pool {
        to.buffer.headroom_pool = pool.value();
    }
    match from.accounting {
        Some(AccountingKind::SharedBuffer) => {
            to.buffer.accounting = BufferAccounting::SharedBuffer;
        }
        Some(AccountingKind::Hpcc) => to.buffer.accounting = BufferAccounting::Hpcc,
        None => {}
    }
    if to.buffer.cell.is_zero() {
        problems.add(format!("{field}.cell"), "0B", "at least `1B`", None);
        to.buffer.cell = Bytes::new(1);
    }
    if let Some(pool) = to
        .buffer
        .headroom_pool
        .filter(|pool| *pool > to.buffer.total)
    {
        let total = to.buffer.total;
        problems.add(
            format!("{field}.headroom_pool"),
            format!("{pool}, in a buffer of {total}"),
            "less than `buffer`",
            None,
        );
    }
}

/// Settings of all lossless classes first, then those of single classes.
fn classes(
    from: &Switch,
    to: &mut SwitchProfile,
    rates: &[Rate],
    field: &str,
    problems: &mut Problems<'_>,
) {
    let of_lossless = SwitchClass {
        reserved: from.reserved,
        alpha: from.alpha,
        headroom: from.headroom,
        xon: from.xon,
        xon_offset: from.xon_offset,
        ecn: from.ecn.clone(),
        ..SwitchClass::default()
    };
    let total = to.buffer.total;
    for class in Class::all() {
        let profile = &mut to.classes[class.index()];
        if profile.lossless && of_lossless != SwitchClass::default() {
            one_class(&of_lossless, class, profile, rates, total, field, problems);
        }
    }
    for (name, settings) in &from.class {
        let below = format!("{field}.class.{name}");
        let number = name.parse().ok().and_then(Class::checked);
        let Some(class) = number.filter(|class| class.to_string() == *name || name.len() == 1)
        else {
            problems.add(below, format!("`{name}`"), "a class from 0 to 7", None);
            continue;
        };
        let profile = &mut to.classes[class.index()];
        one_class(settings, class, profile, rates, total, &below, problems);
    }
}

fn one_class(
    from: &SwitchClass,
    class: Class,
    to: &mut ClassProfile,
    rates: &[Rate],
    buffer: Bytes,
    field: &str,
    problems: &mut Problems<'_>,
) {
    if let Some(lossless) = from.lossless.filter(|lossless| *lossless != to.lossless) {
        *to = class_profile(class, lossless, rates);
    }
    set(&mut to.ingress.reserved, from.reserved);
    set(&mut to.ingress.threshold, from.alpha.map(|share| share.0));
    if let Some(headroom) = from.headroom {
        to.ingress.headroom = headroom.value();
        if headroom.value().is_some_and(|headroom| headroom > buffer) {
            problems.add(
                format!("{field}.headroom"),
                format!("{headroom}, in a buffer of {buffer}"),
                "less than `buffer`",
                Some("it is set aside for every port".to_owned()),
            );
        }
    }
    if from.xon.is_some() || from.xon_offset.is_some() {
        to.ingress.xon = Xon {
            size: from.xon.unwrap_or(Bytes::ZERO),
            offset: from.xon_offset,
        };
    }
    set(&mut to.egress.reserved, from.egress_reserved);
    set(
        &mut to.egress.threshold,
        from.egress_alpha.map(|share| share.0),
    );
    if let Some(markings) = &from.ecn {
        to.ecn = ecn(markings, rates, field, problems);
    }
    match (from.strict, from.weight) {
        (Some(true), Some(_)) => problems.add(
            format!("{field}.weight"),
            "a weight of a strict queue",
            "a weight only where `strict` is false",
            None,
        ),
        (Some(true), None) => to.scheduling = Scheduling::Strict,
        (None | Some(false), Some(weight)) => to.scheduling = Scheduling::Weighted(weight),
        (Some(false), None) => to.scheduling = Scheduling::Weighted(1),
        (None, None) => {}
    }
}

fn ecn(markings: &[Marking], rates: &[Rate], field: &str, problems: &mut Problems<'_>) -> Vec<Ecn> {
    let mut entries: Vec<Ecn> = Vec::new();
    for (place, marking) in markings.iter().enumerate() {
        let field = format!("{field}.ecn[{place}]");
        if marking.kmin > marking.kmax {
            problems.add(
                format!("{field}.kmin"),
                format!("{}, above `kmax`, which is {}", marking.kmin, marking.kmax),
                "at most `kmax`",
                None,
            );
        }
        let entry = Ecn {
            rate: marking.rate,
            kmin: marking.kmin,
            kmax: marking.kmax,
            pmax: marking.pmax,
            drop_not_capable: marking.drop_not_capable.unwrap_or(false),
        };
        if marking.scaled != Some(true) {
            entries.push(entry);
            continue;
        }
        let Some(base) = marking.rate.filter(|rate| !rate.is_zero()) else {
            problems.add(
                format!("{field}.scaled"),
                "true without a `rate`",
                "a `rate` that the thresholds are for, such as 100Gb/s",
                None,
            );
            continue;
        };
        for rate in rates {
            let scale = |bytes: Bytes| {
                let product = u128::from(bytes.as_u64()) * u128::from(rate.as_bps());
                Bytes::new((product / u128::from(base.as_bps())) as u64)
            };
            entries.push(Ecn {
                rate: Some(*rate),
                kmin: scale(entry.kmin),
                kmax: scale(entry.kmax),
                ..entry
            });
        }
    }
    entries
}

/// Detection, restoration and poll of SONiC's watchdog where nothing else is said.
const WATCHDOG_TIME: Span = Span::millis(200);

fn watchdog(
    from: &WatchdogSettings,
    before: Option<Watchdog>,
    field: &str,
    problems: &mut Problems<'_>,
) -> Option<Watchdog> {
    if from.enabled == Some(false) {
        return None;
    }
    let mut watchdog = before.unwrap_or(Watchdog {
        detection: WATCHDOG_TIME,
        restoration: WATCHDOG_TIME,
        poll: WATCHDOG_TIME,
        action: WatchdogAction::Drop,
    });
    set(&mut watchdog.detection, from.detection);
    set(&mut watchdog.restoration, from.restoration);
    set(&mut watchdog.poll, from.poll);
    match from.action {
        Some(WatchdogActionKind::Drop) => watchdog.action = WatchdogAction::Drop,
        Some(WatchdogActionKind::Forward) => watchdog.action = WatchdogAction::Forward,
        Some(WatchdogActionKind::Alert) => watchdog.action = WatchdogAction::Alert,
        None => {}
    }
    for (name, span) in [
        ("detection", watchdog.detection),
        ("restoration", watchdog.restoration),
        ("poll", watchdog.poll),
    ] {
        if span.is_zero() {
            let field = format!("{field}.watchdog.{name}");
            problems.add(field, "zero", "a time above zero, such as 200ms", None);
        }
    }
    Some(watchdog)
}

fn preset(name: &str, to: &mut SwitchProfile, field: &str, problems: &mut Problems<'_>) {
    if let Some(preset) = preset::switch(name) {
        *to = preset.profile();
        return;
    }
    let known: Vec<_> = preset::switch_names().collect();
    let found = format!("`{name}`, which is not a switch preset");
    let advice = did_you_mean(name, known.iter().copied());
    problems.add(format!("{field}.preset"), found, known.join(", "), advice);
}

pub(super) fn set<T>(to: &mut T, from: Option<T>) {
    if let Some(from) = from {
        *to = from;
    }
}
