//! From a switch's profile to `[switch]`.

use softfabric_units::{Class, ClassMask};

use super::changed;
use crate::plan::{
    BufferAccounting, ClassProfile, Classifier, Ecn, Forwarding, Layer, LoadBalancing, Scheduling,
    SwitchProfile, Watchdog, WatchdogAction,
};
use crate::scenario::{
    AccountingKind, CodePoints, ForwardingKind, HeadroomPool, LayerKind, LoadBalancingKind,
    Marking, Pause, Share, Switch, SwitchClass, WatchdogActionKind, WatchdogSettings,
};

/// What leads from the profile `base` to `profile`.
pub(super) fn section(profile: &SwitchProfile, base: &SwitchProfile) -> Switch {
    let (forwarding, cut_through_header) = match profile.forwarding {
        _ if profile.forwarding == base.forwarding => (None, None),
        Forwarding::StoreAndForward => (Some(ForwardingKind::StoreAndForward), None),
        Forwarding::CutThrough { header } => (Some(ForwardingKind::CutThrough), Some(header)),
    };
    Switch {
        forwarding,
        cut_through_header,
        latency: changed(&profile.latency, &base.latency),
        layer: changed(&profile.layer, &base.layer).map(|layer| match layer {
            Layer::Bridge => LayerKind::Bridge,
            Layer::Router => LayerKind::Router,
        }),
        buffer: changed(&profile.buffer.total, &base.buffer.total),
        cell: changed(&profile.buffer.cell, &base.buffer.cell),
        headroom_pool: changed(&profile.buffer.headroom_pool, &base.buffer.headroom_pool)
            .map(HeadroomPool::from),
        accounting: changed(&profile.buffer.accounting, &base.buffer.accounting).map(
            |accounting| match accounting {
                BufferAccounting::SharedBuffer => AccountingKind::SharedBuffer,
                BufferAccounting::Hpcc => AccountingKind::Hpcc,
            },
        ),
        pause: changed(&profile.pause, &base.pause).map(|pause| Pause {
            quanta: Some(pause.quanta.unwrap_or(0)),
            response_delay: Some(pause.response_delay),
            obeys: Some(pause.obeys),
            obeys_on_lossy: Some(pause.obeys_on_lossy),
        }),
        dscp: code_points(&profile.classifier),
        pcp: match &profile.classifier {
            Classifier::Pcp(classes) => Some(numbers(*classes)),
            Classifier::Priority | Classifier::Dscp(_) => None,
        },
        class_to_group: changed(&profile.maps.group, &base.maps.group).map(numbers),
        class_to_queue: changed(&profile.maps.queue, &base.maps.queue).map(numbers),
        group_to_pfc: changed(&profile.maps.pause, &base.maps.pause).map(numbers),
        pfc_to_queue: changed(&profile.maps.stops, &base.maps.stops).map(numbers),
        watchdog: changed(&profile.watchdog, &base.watchdog).map(watchdog),
        load_balancing: changed(&profile.load_balancing, &base.load_balancing).map(
            |kind| match kind {
                LoadBalancing::EcmpHash => LoadBalancingKind::Ecmp,
                LoadBalancing::EcmpQueuePair => LoadBalancingKind::EcmpQueuePair,
                LoadBalancing::EcmpHpcc => LoadBalancingKind::EcmpHpcc,
                LoadBalancing::SprayRandom => LoadBalancingKind::SprayRandom,
                LoadBalancing::SprayRoundRobin => LoadBalancingKind::SprayRoundRobin,
                LoadBalancing::Adaptive => LoadBalancingKind::Adaptive,
            },
        ),
        class: (Class::all())
            .map(|class| class.index())
            .filter(|index| profile.classes[*index] != base.classes[*index])
            .map(|index| (index.to_string(), class(&profile.classes[index])))
            .collect(),
        ..Switch::default()
    }
}

/// The classes that any profile protects.
pub(super) fn lossless(profiles: &[SwitchProfile]) -> ClassMask {
    (Class::all())
        .filter(|class| (profiles.iter()).any(|profile| profile.classes[class.index()].lossless))
        .fold(ClassMask::NONE, ClassMask::with)
}

fn class(profile: &ClassProfile) -> SwitchClass {
    let xon = profile.ingress.xon;
    let (strict, weight) = match profile.scheduling {
        Scheduling::Strict => (Some(true), None),
        Scheduling::Weighted(weight) => (Some(false), Some(weight)),
    };
    SwitchClass {
        lossless: Some(profile.lossless),
        reserved: Some(profile.ingress.reserved),
        alpha: Some(Share(profile.ingress.threshold)),
        headroom: Some(profile.ingress.headroom.into()),
        xon: Some(xon.size).filter(|size| !size.is_zero() || xon.offset.is_none()),
        xon_offset: xon.offset,
        egress_reserved: Some(profile.egress.reserved),
        egress_alpha: Some(Share(profile.egress.threshold)),
        ecn: Some(profile.ecn.iter().map(marking).collect()),
        strict,
        weight,
    }
}

/// The code points of each class but class 0, which is the rest.
fn code_points(classifier: &Classifier) -> Option<Vec<CodePoints>> {
    let Classifier::Dscp(classes) = classifier else {
        return None;
    };
    let points = |class: Class| CodePoints {
        codes: (0..64u8)
            .filter(|code| classes[usize::from(*code)] == class)
            .collect(),
        class: class.as_u8(),
    };
    let named = Class::all().skip(1).map(points);
    Some(named.filter(|points| !points.codes.is_empty()).collect())
}

fn numbers(map: [Class; Class::COUNT]) -> [u8; 8] {
    map.map(Class::as_u8)
}

fn marking(ecn: &Ecn) -> Marking {
    Marking {
        rate: ecn.rate,
        scaled: None,
        kmin: ecn.kmin,
        kmax: ecn.kmax,
        pmax: ecn.pmax,
        drop_not_capable: ecn.drop_not_capable.then_some(true),
    }
}

fn watchdog(watchdog: Option<Watchdog>) -> WatchdogSettings {
    let Some(watchdog) = watchdog else {
        return WatchdogSettings {
            enabled: Some(false),
            ..WatchdogSettings::default()
        };
    };
    WatchdogSettings {
        enabled: Some(true),
        detection: Some(watchdog.detection),
        restoration: Some(watchdog.restoration),
        poll: Some(watchdog.poll),
        action: Some(match watchdog.action {
            WatchdogAction::Drop => WatchdogActionKind::Drop,
            WatchdogAction::Forward => WatchdogActionKind::Forward,
            WatchdogAction::Alert => WatchdogActionKind::Alert,
        }),
    }
}
