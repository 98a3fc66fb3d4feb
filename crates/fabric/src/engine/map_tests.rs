//! Traffic classes, priority groups, queues and PFC priorities that have different numbers.

use softfabric_telemetry::ClassCounter;
use softfabric_units::{Bytes, Class, Rate, Span, Time};

use super::feature_tests::{simulate, star, towards_receiver};
use super::tests::{DATA, leaf_spine};
use super::*;
use crate::plan::*;

const GROUP: Class = Class::new(5);
const QUEUE: Class = Class::new(2);

fn swapped(a: Class, b: Class) -> [Class; Class::COUNT] {
    let mut map = ClassMaps::SAME;
    map.swap(a.index(), b.index());
    map
}

/// The same switch under other numbers: traffic class 3 has group 5 and queue 2, and pauses priority 3 as before.
fn renumber(profile: &mut SwitchProfile) {
    profile.maps = ClassMaps {
        group: swapped(DATA, GROUP),
        queue: swapped(DATA, QUEUE),
        pause: swapped(DATA, GROUP),
        stops: swapped(DATA, QUEUE),
    };
    let before = profile.classes.clone();
    for class in Class::all() {
        let from = &before[class.index()];
        let group = &mut profile.classes[profile.maps.group[class.index()].index()];
        group.lossless = from.lossless;
        group.ingress = from.ingress;
        let queue = &mut profile.classes[profile.maps.queue[class.index()].index()];
        queue.egress = from.egress;
        queue.ecn.clone_from(&from.ecn);
        queue.scheduling = from.scheduling;
    }
}

fn said(plan: &Plan) -> String {
    let findings = plan.check();
    let lines = findings
        .iter()
        .map(|finding| format!("{}: {}\n", finding.place, finding.problem));
    lines.collect()
}

fn total(results: &Results, class: Class, counter: ClassCounter) -> u64 {
    let ports = results.ports.iter();
    ports
        .map(|port| port.classes[class.index()].value(counter))
        .sum()
}

#[test]
fn other_numbers_change_nothing_but_the_numbers() {
    let mut plan = leaf_spine(3);
    let classes = plan.switch_profiles[0].classes.iter_mut().enumerate();
    for (_, class) in classes.filter(|(index, _)| *index != DATA.index()) {
        class.ecn.clear();
    }
    let mut other = plan.clone();
    renumber(&mut other.switch_profiles[0]);
    let warnings = |plan: &Plan| plan.check().len();
    assert_eq!(warnings(&plan), warnings(&other));
    let (plain, renumbered) = (simulate(&plan), simulate(&other));
    assert_eq!(plain.flows, renumbered.flows);
    assert_eq!(plain.end, renumbered.end);
    let same = |counter, class| {
        let (before, after) = (
            total(&plain, DATA, counter),
            total(&renumbered, class, counter),
        );
        assert!(
            before > 0 && before == after,
            "{counter:?}: {before}, {after}"
        );
    };
    for counter in [
        ClassCounter::PauseSent,
        ClassCounter::PauseReceived,
        ClassCounter::PauseReceivedDuration,
        ClassCounter::TransmitBytes,
        ClassCounter::ReceivePackets,
    ] {
        same(counter, DATA);
    }
    same(ClassCounter::IngressWatermark, GROUP);
    same(ClassCounter::EcnMarked, QUEUE);
    same(ClassCounter::QueueWatermark, QUEUE);
}

/// Of four map entries, each one that does not fit the others costs packets of a lossless class, or stops nothing.
#[test]
fn maps_that_do_not_agree_lose_packets() {
    let with = |change: fn(&mut ClassMaps)| {
        let mut plan = leaf_spine(3);
        plan.host_profiles[0].nic.rate_control =
            softfabric_transport::rate::RateControlConfig::None;
        plan.host_profiles[0].nic.timeout = 8;
        renumber(&mut plan.switch_profiles[0]);
        change(&mut plan.switch_profiles[0].maps);
        plan.stop.at = Time::ZERO + Span::millis(2);
        let said = said(&plan);
        (simulate(&plan).lossless_drops, said)
    };
    let (drops, said) = with(|_| ());
    assert_eq!(drops, 0, "{said}");
    assert!(!said.contains("class 3"), "{said}");
    let (drops, said) = with(|maps| maps.stops = ClassMaps::SAME);
    assert!(
        drops > 0 && said.contains("stops queue 3"),
        "{drops}: {said}"
    );
    let (drops, said) = with(|maps| maps.pause = ClassMaps::SAME);
    assert!(
        drops > 0 && said.contains("hosts send it in 3"),
        "{drops}: {said}"
    );
    // A group that is not lossless: nothing is paused, and what is dropped was never promised.
    let (drops, said) = with(|maps| maps.group = ClassMaps::SAME);
    assert_eq!(drops, 0);
    assert!(!said.contains("class 3"), "{said}");
}

#[test]
fn two_groups_do_not_pause_one_priority() {
    let mut plan = star(2);
    plan.switch_profiles[0].classes[4].lossless = true;
    plan.switch_profiles[0].maps.pause[4] = DATA;
    let said = said(&plan);
    assert!(
        said.contains("pauses priority 3 for groups 3 and 4"),
        "{said}"
    );
}

/// A bridge that regenerates priorities: what comes with priority 3 is class 0 here, and lossy.
#[test]
fn a_switch_may_change_the_priority() {
    let with = |pcp: [Class; Class::COUNT]| {
        let mut plan = star(4);
        plan.switch_profiles[0].classifier = Classifier::Pcp(pcp);
        plan.switch_profiles[0].classes[0].egress.threshold = Alpha::Static(Bytes::kb(100));
        plan.host_profiles[0].nic.timeout = 8;
        plan.flows = (1..4)
            .map(|source| towards_receiver(source, 1_000_000))
            .collect();
        plan.stop.at = Time::ZERO + Span::millis(2);
        simulate(&plan)
    };
    let kept = with(ClassMaps::SAME);
    assert_eq!(kept.conservation.dropped, 0);
    let changed = with(swapped(DATA, Class::new(0)));
    assert!(changed.conservation.dropped > 100 && changed.lossless_drops == 0);
    assert_eq!(total(&changed, DATA, ClassCounter::PauseSent), 0);
    // It leaves with its new priority.
    assert!(total(&changed, Class::new(0), ClassCounter::ReceivePackets) > 1_000);
}

/// Two traffic classes in one queue: they share it in order, and each has its own group.
#[test]
fn classes_may_share_a_queue() {
    let mut plan = star(3);
    let other = Class::new(4);
    plan.switch_profiles[0].maps.queue[other.index()] = DATA;
    plan.switch_profiles[0].maps.stops[other.index()] = DATA;
    plan.switch_profiles[0].classes[other.index()].lossless = true;
    plan.flows = (1..3)
        .map(|source| towards_receiver(source, 2_000_000))
        .collect();
    plan.flows[1].class = other;
    plan.host_profiles[0].lossless = plan.host_profiles[0].lossless.with(other);
    let results = simulate(&plan);
    let at_receiver = &results.ports[0];
    assert!(at_receiver.classes[DATA.index()].value(ClassCounter::QueueWatermark) > 100_000);
    assert_eq!(
        at_receiver.classes[other.index()].value(ClassCounter::QueueWatermark),
        0
    );
    let goodput = |flow: usize| results.flows[flow].goodput(results.end);
    assert!(goodput(0) > Rate::gbps(40) && goodput(1) > Rate::gbps(40));
}
