//! Published behaviours of lossless fabrics, each as a scenario file that everybody can run, with its figure.
//!
//! The figures stand in the comments of the scenario files and of the tests, with their sources.

mod common;

use softfabric_fabric::headroom::{CableLength, HeadroomProfile};
use softfabric_fabric::plan::{Endpoint, NodeId, Plan, PortId, PortSelection};
use softfabric_fabric::results::{Ending, FlowStatus, Results};
use softfabric_fabric::scenario::Scenario;
use softfabric_fabric::theory::Dcqcn;
use softfabric_telemetry::ClassCounter;
use softfabric_units::{Bytes, Class, Rate, Span, Time};

use common::{scenario, simulate};

const DATA: Class = Class::new(3);

/// The goodput of each flow of a group, in Gb/s.
fn goodputs(plan: &Plan, results: &Results, group: &str) -> Vec<f64> {
    let flows = plan.flows.iter().zip(&results.flows);
    flows
        .filter(|(flow, _)| flow.group == group)
        .map(|(_, result)| result.goodput(results.end).as_gbps_f64())
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn class_total(results: &Results, counter: ClassCounter) -> u64 {
    let classes = results.ports.iter().flat_map(|port| &port.classes);
    classes.map(|class| class.value(counter)).sum()
}

/// The node's port 0 as its switch sees it: the switch's port that faces the node.
fn facing(plan: &Plan, name: &str) -> Endpoint {
    let node = plan.network.nodes.iter().position(|node| node.name == name);
    let node = NodeId(node.expect("the node is there") as u32);
    let link = plan
        .network
        .links
        .iter()
        .find(|link| link.a.node == node || link.b.node == node);
    let link = link.expect("the node has a link");
    if link.a.node == node { link.b } else { link.a }
}

/// Senders that share an ingress port share its pauses (Zhu et al., SIGCOMM 2015, section 2.2): 20 and three times 6.67
/// of 40 Gb/s.
#[test]
fn parking_lot_is_unfair_under_pfc() {
    let plan = scenario("parking_lot_pfc");
    let results = simulate(&plan);
    let (near, far) = (
        goodputs(&plan, &results, "near"),
        goodputs(&plan, &results, "far"),
    );
    let total: f64 = near.iter().chain(&far).sum();
    println!("near {near:.2?}, far {far:.2?} Gb/s of goodput");
    assert_eq!((near.len(), far.len()), (1, 3));
    assert!((near[0] / total * 40.0 - 20.0).abs() < 0.4, "{near:?}");
    for share in &far {
        assert!((share / total * 40.0 - 6.67).abs() < 0.2, "{far:?}");
    }
    assert!(total > 0.95 * 40.0, "the bottleneck is full: {total}");
    assert_eq!(results.lossless_drops, 0);
}

#[test]
fn parking_lot_is_fair_under_dcqcn() {
    let plan = scenario("parking_lot_dcqcn");
    let results = simulate(&plan);
    let mut all = goodputs(&plan, &results, "near");
    all.extend(goodputs(&plan, &results, "far"));
    let squares: f64 = all.iter().map(|share| share * share).sum();
    let jain = all.iter().sum::<f64>().powi(2) / (all.len() as f64 * squares);
    println!("{all:.2?} Gb/s, Jain's index {jain:.4}");
    assert!(jain > 0.98, "{all:?}");
    assert_eq!(results.lossless_drops, 0);
}

/// A flow that crosses no bottleneck loses to PFC that spreads from an incast, and does not with DCQCN.
#[test]
fn a_victim_suffers_from_pfc_and_not_from_dcqcn() {
    let victim = |name| {
        let plan = scenario(name);
        let results = simulate(&plan);
        assert_eq!(results.lossless_drops, 0);
        mean(&goodputs(&plan, &results, "victim"))
    };
    let (pfc, dcqcn) = (victim("victim_pfc"), victim("victim_dcqcn"));
    println!("victim: {pfc:.2} Gb/s under PFC alone, {dcqcn:.2} with DCQCN");
    assert!(pfc < 0.5 * 40.0 && dcqcn > 0.9 * 40.0);
}

/// The same over InfiniBand: the victim waits for credit that an incast elsewhere does not return, until the senders of
/// marked packets slow down.
#[test]
fn a_victim_waits_for_credit_and_recovers_with_congestion_control() {
    let outcome = |name| {
        let plan = scenario(name);
        let results = simulate(&plan);
        assert_eq!(results.conservation.dropped, 0);
        let victim = mean(&goodputs(&plan, &results, "victim"));
        let incast = goodputs(&plan, &results, "incast");
        let marks = class_total(&results, ClassCounter::EcnMarked);
        println!("{name}: victim {victim:.2} Gb/s, incast {incast:.2?}, {marks} marks");
        (victim, incast.iter().sum::<f64>(), marks)
    };
    let (alone, full, none) = outcome("infiniband_victim_uncontrolled");
    let (with_control, used, marks) = outcome("infiniband_victim");
    assert_eq!(none, 0);
    assert!(marks > 0);
    assert!(alone < 0.2 * 100.0, "{alone} Gb/s");
    assert!(with_control > 0.9 * 100.0, "{with_control} Gb/s");
    // And the overloaded link stays full.
    assert!(full > 0.98 * 100.0 && used > 0.95 * 100.0, "{full}, {used}");
}

/// One packet of 256 lost, messages of 4 MB (Guo et al., SIGCOMM 2016, section 4.1): no message is ever whole.
#[test]
fn go_back_zero_livelocks_and_go_back_n_does_not() {
    let goodput = |name| {
        let plan = scenario(name);
        simulate(&plan).flows[0].goodput(plan.stop.at).as_gbps_f64()
    };
    let (zero, n) = (
        goodput("livelock_go_back_zero"),
        goodput("livelock_go_back_n"),
    );
    println!("go-back-0 {zero} Gb/s, go-back-N {n:.2} Gb/s");
    assert_eq!(zero, 0.0);
    assert!(n > 1.0);
}

#[test]
fn a_ring_locks_and_stays_locked_after_the_sources_stop() {
    let plan = scenario("ring_deadlock");
    let results = simulate(&plan);
    let deadlock = results.deadlock.as_ref().expect("the ring locks");
    println!("locked since {}, looked at {}", deadlock.since, results.end);
    assert_eq!(deadlock.cycle.len(), 4);
    assert!(deadlock.since < Time::ZERO + Span::millis(1));
    assert!(
        results.end >= Time::ZERO + Span::millis(2),
        "long after the sources stopped"
    );
    assert_eq!(
        results.ending,
        Ending::Completed,
        "no flow is under way any more"
    );
    assert!(
        results.conservation.in_flight > 0,
        "and packets still stand in the ring"
    );
    assert_eq!(results.lossless_drops, 0);
}

/// The same ring over InfiniBand: a circle of lanes without credit instead of one of paused queues.
#[test]
fn a_ring_of_infiniband_locks_by_credits() {
    let plan = scenario("infiniband_credit_loop");
    let results = simulate(&plan);
    let deadlock = results.deadlock.as_ref().expect("the ring locks");
    println!("locked since {}, looked at {}", deadlock.since, results.end);
    assert_eq!(deadlock.cycle.len(), 4);
    assert!(deadlock.since < Time::ZERO + Span::millis(1));
    assert!(results.end >= Time::ZERO + Span::millis(2));
    assert_eq!(results.ending, Ending::Completed);
    assert!(results.conservation.in_flight > 0);
    assert_eq!(results.conservation.dropped, 0);
}

/// The incast of `incast.toml` over InfiniBand takes what the receiver's link takes, without a loss or a pause frame.
#[test]
fn an_incast_over_infiniband_takes_what_the_link_takes() {
    let results = simulate(&scenario("infiniband_incast"));
    assert_eq!(results.ending, Ending::Completed);
    assert_eq!(results.conservation.dropped, 0);
    let last = results.flows.iter().filter_map(|flow| flow.received).max();
    let seconds = (last.expect("done") - Time::ZERO).as_picos() as f64 / 1e12;
    let least = 16.0 * 10e6 * 8.0 / 100e9 * 4122.0 / 4096.0;
    println!("{seconds} s, {least} s at the least");
    assert!(seconds > least && seconds < 1.005 * least);
}

/// The same ring where priority groups, queues and priorities have other numbers: it is found in the queues all the same.
#[test]
fn a_ring_with_other_numbers_locks_too() {
    let plan = scenario("ring_deadlock");
    let mut other = plan.clone();
    for profile in &mut other.switch_profiles {
        profile.maps.group.swap(3, 5);
        profile.maps.pause.swap(3, 5);
        profile.maps.queue.swap(3, 2);
        profile.maps.stops.swap(3, 2);
        let before = profile.classes.clone();
        for (to, from) in [(5, 3), (3, 5)] {
            profile.classes[to].lossless = before[from].lossless;
            profile.classes[to].ingress = before[from].ingress;
        }
        for (to, from) in [(2, 3), (3, 2)] {
            profile.classes[to].egress = before[from].egress;
            profile.classes[to].ecn.clone_from(&before[from].ecn);
        }
    }
    let [plain, renumbered] = [&plan, &other].map(simulate);
    let [plain, renumbered] = [plain, renumbered].map(|results| results.deadlock);
    let (plain, renumbered) = (plain.expect("it locks"), renumbered.expect("it locks"));
    assert_eq!(
        (plain.cycle, plain.since),
        (renumbered.cycle, renumbered.since)
    );
    assert_eq!(renumbered.class.as_u8(), 2, "the queue");
}

#[test]
fn a_ring_with_up_down_routes_does_not_lock() {
    let plan = scenario("ring_up_down");
    let results = simulate(&plan);
    assert_eq!(results.deadlock, None);
    assert_eq!(
        (results.conservation.in_flight, results.lossless_drops),
        (0, 0)
    );
    assert!(
        results
            .flows
            .iter()
            .all(|flow| flow.delivered > Bytes::ZERO)
    );
}

/// Memory that takes less than the link brings: the NIC itself pauses the switch, part of the time.
#[test]
fn a_slow_receiver_pauses_its_switch() {
    let plan = scenario("slow_receiver");
    let results = simulate(&plan);
    let port = facing(&plan, "h1");
    let counters = results
        .ports
        .iter()
        .find(|result| result.endpoint == port)
        .expect("it has counters");
    let paused = counters.classes[DATA.index()].value(ClassCounter::PauseReceivedDuration);
    let duty = Span::picos(paused).as_seconds_f64() / results.end.as_seconds_f64();
    let goodput = results.flows[0].goodput(results.end);
    println!("paused {:.1} % of the time, {goodput}", duty * 100.0);
    assert!((0.3..0.9).contains(&duty));
    assert!(
        (35.0..=40.0).contains(&goodput.as_gbps_f64()),
        "memory takes 40 Gb/s"
    );
    assert_eq!(results.flows[0].status, FlowStatus::Completed);
    assert_eq!(results.lossless_drops, 0);
}

/// Turning PFC off in a storm turns a slowdown into loss, and goodput falls further.
#[test]
fn disabling_pfc_in_a_storm_makes_it_worse() {
    let outcome = |name| {
        let plan = scenario(name);
        let results = simulate(&plan);
        let (incast, bystander) = (
            goodputs(&plan, &results, "incast"),
            goodputs(&plan, &results, "bystander"),
        );
        println!(
            "{name}: incast {:.2}, bystanders {:.2} Gb/s, {} lost",
            mean(&incast),
            mean(&bystander),
            results.lossless_drops
        );
        (mean(&incast), mean(&bystander), results.lossless_drops)
    };
    let (on, off) = (outcome("storm_pfc_on"), outcome("storm_pfc_off"));
    assert_eq!(on.2, 0);
    assert!(off.2 > 1_000);
    assert!(off.0 < 0.5 * on.0 && off.1 < 0.5 * on.1);
}

/// Selective repeat and a cap of one bandwidth–delay product, without PFC, against RoCE with PFC (Mittal et al., SIGCOMM
/// 2018): 6 to 83 % better, by average slowdown, average completion time or tail.
#[test]
fn irn_without_pfc_beats_roce_with_pfc() {
    let outcome = |name| {
        let plan = scenario(name);
        let results = simulate(&plan);
        assert!(
            results
                .flows
                .iter()
                .all(|flow| flow.status == FlowStatus::Completed),
            "{name}"
        );
        let mut slowdowns: Vec<f64> = results
            .flows
            .iter()
            .filter_map(|flow| flow.slowdown())
            .collect();
        slowdowns.sort_by(f64::total_cmp);
        let times: Vec<f64> = results
            .flows
            .iter()
            .filter_map(|flow| Some(flow.completion_time()?.as_micros_f64()))
            .collect();
        let tail = slowdowns[slowdowns.len() * 99 / 100];
        println!(
            "{name}: slowdown {:.2}, p99 {tail:.2}, completion {:.0} us, {} lost",
            mean(&slowdowns),
            mean(&times),
            results.conservation.dropped
        );
        (mean(&slowdowns), mean(&times), results.lossless_drops)
    };
    let (irn, roce) = (outcome("irn_without_pfc"), outcome("irn_with_pfc"));
    assert_eq!(roce.2, 0, "PFC loses nothing");
    for (irn, roce) in [(irn.0, roce.0), (irn.1, roce.1)] {
        let better = 1.0 - irn / roce;
        println!("{:.0} % better", better * 100.0);
        assert!((0.06..=0.83).contains(&better));
    }
}

/// RoCEv1 stays within one Ethernet segment: a router drops it.
#[test]
fn rocev1_is_not_routed() {
    let plan = scenario("rocev1_routed");
    let results = simulate(&plan);
    for (flow, result) in plan.flows.iter().zip(&results.flows) {
        match flow.group.as_str() {
            "bridged" => assert_eq!(result.status, FlowStatus::Completed),
            _ => assert_eq!(
                result.status,
                FlowStatus::Failed("RETRY_EXC_ERR".to_owned())
            ),
        }
    }
}

/// The queue at the bottleneck, averaged over time after the start, and its standard deviation, in bytes.
fn steady_queue(mut plan: Plan, from: Span) -> (f64, f64) {
    let switch = plan.network.switches().next().expect("one switch");
    let receiver = plan.network.hosts().last().expect("a receiver");
    let port = PortId(receiver.0.min(plan.network.links.len() as u32 - 1) as u16);
    let endpoint = facing(&plan, &plan.network.nodes[receiver.index()].name);
    assert_eq!((endpoint.node, endpoint.port), (switch, port));
    plan.recording.ports = PortSelection::These(vec![endpoint]);
    let results = simulate(&plan);
    let queue = &results.series.ports[0].mean_queue;
    let steady: Vec<f64> = queue
        .samples()
        .filter(|sample| sample.time > Time::ZERO + from)
        .map(|sample| sample.value)
        .collect();
    let mean = mean(&steady);
    let variance = steady
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / steady.len() as f64;
    (mean, variance.sqrt())
}

/// The queue under N flows, against an outside model of the same process (`models/dcqcn_queue.py`), and beside the fixed
/// point of the fluid model (Zhu et al., CoNEXT 2016), which such a process does not reach; see `docs/decisions.md`.
#[test]
fn dcqcn_queues_as_an_outside_model_says() {
    for (flows, delay, outside, swings) in MODEL {
        let mut plan = scenario(&format!("dcqcn_equilibrium_{flows}"));
        for link in &mut plan.network.links {
            link.delay = delay;
        }
        let packet = plan.host_profiles[0].nic.mtu + Bytes::new(62 + 20);
        let theory = Dcqcn {
            packet,
            ..Dcqcn::of_the_papers(flows)
        };
        let fluid = theory.fixed_point().expect("parameters make sense");
        let runs: Vec<(f64, f64)> = (1..=8)
            .map(|seed| {
                let plan = Plan {
                    seed,
                    ..plan.clone()
                };
                steady_queue(plan, Span::millis(40))
            })
            .collect();
        let found = mean(&runs.iter().map(|run| run.0).collect::<Vec<_>>()) / 1e3;
        let deviation = mean(&runs.iter().map(|run| run.1).collect::<Vec<_>>()) / 1e3;
        println!(
            "N = {flows}, {delay} a link: {found:.1} KB, deviation {deviation:.1}; the model says {outside} KB ({:+.1} %), \
             deviation {swings}; the fluid {:?}",
            (found / outside - 1.0) * 100.0,
            fluid.queue.map(|queue| queue.as_f64() / 1e3),
        );
        assert!(
            (found / outside - 1.0).abs() <= 0.05,
            "N = {flows}, {delay} a link"
        );
        match fluid.queue {
            // Only more delay takes the fluid away from its fixed point, into swings larger than their mean.
            Some(_) => assert_eq!(
                deviation > found,
                delay > Span::micros(1),
                "N = {flows}, {delay} a link"
            ),
            // More marks are needed than the slope gives: the queue goes to its end.
            None => assert!(found > 0.85 * theory.kmax.as_f64() / 1e3),
        }
    }
}

/// Flows, delay of a link, and the model's mean queue and deviation in KB.
const MODEL: [(u32, Span, f64, f64); 6] = [
    (2, Span::micros(1), 25.6, 21.3),
    (4, Span::micros(1), 58.2, 35.1),
    (8, Span::micros(1), 125.1, 43.1),
    (10, Span::micros(1), 151.3, 33.4),
    (16, Span::micros(1), 179.3, 14.4),
    (10, Span::nanos(21_250), 51.3, 78.6),
];

fn xoff(metres: u32) -> Bytes {
    let profile = HeadroomProfile::spectrum1();
    let headroom = profile.headroom(Rate::gbps(100), CableLength::metres(metres));
    headroom.expect("a known speed").xoff
}

/// With the headroom that the formula gives, nothing is lost in the worst case; with less, packets are.
#[test]
fn headroom_decides_over_loss() {
    let plan = scenario("headroom_enough");
    let class = |plan: &Plan| {
        plan.switch_profiles[0].classes[DATA.index()]
            .ingress
            .headroom
    };
    assert_eq!(
        class(&plan),
        Some(xoff(300)),
        "the scenario has the formula's headroom"
    );
    let results = simulate(&plan);
    assert_eq!(results.lossless_drops, 0);
    assert!(class_total(&results, ClassCounter::PauseReceived) > 0);
    let needed = results
        .ports
        .iter()
        .map(|port| port.classes[DATA.index()].value(ClassCounter::HeadroomWatermark));
    let needed = needed.max().expect("ports");
    println!("headroom {}, of which {needed} B were used", xoff(300));
    let with = |headroom: u64| {
        let mut plan = plan.clone();
        plan.switch_profiles[0].classes[DATA.index()]
            .ingress
            .headroom = Some(Bytes::new(headroom));
        simulate(&plan).lossless_drops
    };
    assert_eq!(with(needed), 0);
    assert!(
        with(needed - 4_096) > 0,
        "one margin less and packets are lost"
    );
    assert!(simulate(&scenario("headroom_too_small")).lossless_drops > 0);
}

/// A burst fits into a deep buffer; everything else waits behind what deep buffers hold, and transfers hear of it late.
#[test]
fn deep_buffers_hide_bursts_and_delay_everything_else() {
    let run = |name: &str| {
        let plan = scenario(name);
        let results = simulate(&plan);
        let longest = |group: &str| {
            (plan.flows.iter().zip(&results.flows))
                .filter(|(flow, _)| flow.group == group)
                .map(|(_, result)| result.completion_time().unwrap().as_picos())
                .max()
                .unwrap()
        };
        let first = results.first_signals.drop.unwrap().time.as_picos();
        (longest("burst"), longest("request"), first)
    };
    let (shallow_burst, shallow_request, shallow_signal) = run("buffers_shallow");
    let (deep_burst, deep_request, deep_signal) = run("buffers_deep");
    // A timeout of 200 ms against queueing at the line rate.
    assert!(shallow_burst > 100 * deep_burst);
    // 8 MiB against 128 KiB: the share of its memory that a port may fill, at one active port.
    let wait = deep_request / shallow_request;
    assert!((30..=80).contains(&wait), "{wait}");
    assert!(deep_signal > 10 * shallow_signal);
}

/// What tells of congestion first: pauses where nothing marks, marks where DCQCN is in time, waits for credit over InfiniBand.
#[test]
fn the_first_signals_are_those_of_the_tuning() {
    let signals = |name: &str| simulate(&scenario(name)).first_signals;
    let paused = signals("victim_pfc");
    assert!(paused.mark.is_none() && paused.pause.is_some() && paused.drop.is_none());
    let marked = signals("victim_dcqcn");
    assert!(marked.mark.is_some() && marked.pause.is_none() && marked.drop.is_none());
    let credit = signals("infiniband_incast");
    assert!(credit.mark.is_none() && credit.pause.is_some() && credit.drop.is_none());
    let mut plan = scenario("victim_pfc");
    plan.recording.pause_log = true;
    let results = simulate(&plan);
    let logged = results.pause_log.iter().find(|event| event.pause).unwrap();
    let first = results.first_signals.pause.unwrap();
    assert_eq!((first.time, first.endpoint), (logged.time, logged.endpoint));
}

/// A Dragonfly+ whose groups send to the next one (Shpiner et al., HiPINEB 2017, on minimal routing): the hosts of a group share
/// the cables between these two, over Ethernet and over every routing engine of InfiniBand that takes the shape. None can lock up.
#[test]
fn a_dragonfly_plus_has_the_cables_between_two_groups() {
    let text = include_str!("../../../scenarios/dragonfly_plus.toml");
    let plan_of = |text: &str| -> Plan {
        let scenario = Scenario::from_toml(text, "dragonfly_plus.toml");
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        scenario.plan().unwrap_or_else(|error| panic!("{error}"))
    };
    // How many times as long as alone the slowest flow takes.
    let slowdown = |plan: &Plan| {
        assert!(plan.check().is_empty(), "{:?}", plan.check());
        let longest = |plan: &Plan| {
            let results = simulate(plan);
            assert_eq!(results.ending, Ending::Completed);
            (results.flows.iter().flat_map(|flow| flow.finished))
                .max()
                .unwrap()
                .as_seconds_f64()
        };
        let mut alone = plan.clone();
        alone.flows.truncate(1);
        longest(plan) / longest(&alone)
    };
    let near = |found: f64, expected: f64, what: &str| {
        println!("{what}: {found:.3}");
        assert!(
            (found / expected - 1.0).abs() < 0.05,
            "{what}: {found} is not {expected}"
        );
    };
    near(slowdown(&scenario("dragonfly_plus")), 4.0, "Ethernet");
    let over = |routing: &str, settings: &str| {
        let fabric =
            format!("[fabric]\nkind = \"infiniband\"\nrouting = \"{routing}\"\n{settings}");
        let text = text.replace("[host.congestion_control]\nkind = \"none\"\n", "");
        plan_of(&format!("{text}\n{fabric}"))
    };
    for (routing, lanes) in [("min_hop", 1), ("up_down", 1), ("dfsssp", 2), ("nue", 1)] {
        let plan = over(routing, &format!("[infiniband]\nlanes = {lanes}\n"));
        let found = slowdown(&plan);
        // Nue may go a longer way, where that is free.
        match routing {
            "nue" => assert!(found < 4.2, "{found}"),
            _ => near(found, 4.0, routing),
        }
    }
    // With two cables, packets that choose have both.
    let two = text.replace("global_links = 1", "global_links = 2");
    let two = two.replace("[host.congestion_control]\nkind = \"none\"\n", "");
    let adaptive = "[fabric]\nkind = \"infiniband\"\n[infiniband]\nadaptive_routing = true\n";
    let two = two.replace(
        "acknowledge_every = 16",
        "loss_recovery = \"selective_repeat\"",
    );
    near(
        slowdown(&plan_of(&format!("{two}\n{adaptive}"))),
        2.0,
        "adaptive",
    );
}
