//! Traffic over the routes of InfiniBand's subnet managers: what can lock does, what cannot does not, and what a lost link
//! costs.

mod common;

use std::path::Path;

use softfabric_fabric::engine::{Driver, RunOptions, run};
use softfabric_fabric::export::findings::{Kind, find};
use softfabric_fabric::plan::{Link, LinkLayer, NodeKind, PacketLife, Plan, SubnetRouting};
use softfabric_fabric::results::{Ending, FlowResult, FlowStatus, Results};
use softfabric_fabric::scenario::{Event, FabricKind, Host, Record, Scenario, Switch, Topology};
use softfabric_fabric::subnet::route;
use softfabric_telemetry::{ClassCounter, PortCounter};
use softfabric_units::{Bytes, Span, Time};

use common::{scenario, simulate};

fn plan_of(text: &str) -> Plan {
    let scenario = Scenario::from_toml(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    scenario.plan().unwrap_or_else(|error| panic!("{error}"))
}

/// Whether the checker finds a circle of lanes in the plan's routes.
fn may_lock(plan: &Plan) -> bool {
    let settings = plan.link_layer.infiniband().expect("InfiniBand");
    let up = vec![true; plan.network.links.len()];
    let routed = route(&plan.network, settings, &up).expect("routes");
    routed.iter().any(|subnet| subnet.credit_loop().is_some())
}

/// A torus with every flow along its rings, over the routes of an engine.
fn torus(routing: &str, lanes: u8, dimensions: &str, distance: u32) -> Plan {
    plan_of(&format!(
        r#"
        [fabric]
        kind = "infiniband"
        routing = "{routing}"
        [topology]
        kind = "torus"
        dimensions = {dimensions}
        rate = "40Gb/s"
        [infiniband]
        lanes = {lanes}
        buffer = "32KiB"
        [[workload]]
        kind = "permutation"
        pattern = "shift"
        distance = {distance}
        bytes = "4MB"
        [stop]
        at = "20ms"
        "#
    ))
}

/// The checker says of routes alone what then happens to packets: min-hop locks a torus, and nothing else does.
#[test]
fn a_torus_locks_where_the_checker_says_so() {
    for (dimensions, distance) in [("[5, 5]", 2), ("[5, 4, 3]", 26)] {
        let plan = torus("min_hop", 1, dimensions, distance);
        assert!(may_lock(&plan), "{dimensions}");
        let results = simulate(&plan);
        let deadlock = results.deadlock.as_ref().expect("a deadlock");
        assert!(deadlock.cycle.len() >= 5, "{deadlock:?}");
        assert!(results.flows.iter().any(|flow| flow.finished.is_none()));
        for (routing, lanes) in [
            ("up_down", 1),
            ("torus", 2),
            ("nue", 1),
            ("nue", 3),
            ("nue", 12),
            ("dfsssp", 8),
        ] {
            let plan = torus(routing, lanes, dimensions, distance);
            assert!(!may_lock(&plan), "{routing} {dimensions}");
            let results = simulate(&plan);
            assert_eq!(results.deadlock, None, "{routing} {dimensions}");
            assert_eq!(results.ending, Ending::Completed, "{routing} {dimensions}");
            assert_eq!(results.conservation.dropped, 0, "{routing} {dimensions}");
        }
    }
}

/// The scenarios of the torus are what they say.
#[test]
fn the_torus_scenarios() {
    let locked = simulate(&scenario("infiniband_torus_min_hop"));
    let deadlock = locked.deadlock.expect("locks");
    assert_eq!(deadlock.cycle.len(), 5);
    assert!(
        deadlock.since < Time::ZERO + Span::micros(500),
        "{}",
        deadlock.since
    );
    let free = simulate(&scenario("infiniband_torus"));
    assert_eq!((free.ending, free.deadlock), (Ending::Completed, None));
}

/// Up by destination gives every shift permutation of a full tree links of its own; balanced shortest paths do not.
#[test]
fn fat_tree_routes_beat_min_hop_on_shifts() {
    let finish = |routing: &str, distance: u32| {
        let plan = plan_of(&format!(
            r#"
            [fabric]
            kind = "infiniband"
            routing = "{routing}"
            [topology]
            kind = "fat_tree"
            k = 8
            delay = "50ns"
            [[workload]]
            kind = "permutation"
            pattern = "shift"
            distance = {distance}
            bytes = "500kB"
            "#
        ));
        let results = simulate(&plan);
        assert_eq!(results.ending, Ending::Completed);
        let last = results.flows.iter().filter_map(|flow| flow.received).max();
        last.expect("done").as_picos() as f64 / 1e6
    };
    // Alone, 500 kB in packets of 4122 B take 40.3 µs on a link of 100 Gb/s.
    let alone = 500e3 * 8.0 / 100e9 * 1e6 * 4122.0 / 4096.0;
    let mut ratios = Vec::new();
    for distance in [1, 7, 16, 33, 64, 100] {
        let (tree, shortest) = (finish("fat_tree", distance), finish("min_hop", distance));
        println!(
            "shift {distance}: ftree {tree:.1} µs, min-hop {shortest:.1} µs, alone {alone:.1} µs"
        );
        assert!(tree < 1.15 * alone, "shift {distance}: {tree} of {alone}");
        ratios.push(shortest / tree);
    }
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!(mean > 1.5, "{ratios:?}");
}

/// Bytes that all flows have delivered when the run is stopped at `at`.
fn delivered(plan: &Plan, at: Span) -> f64 {
    let mut plan = plan.clone();
    plan.stop.at = Time::ZERO + at;
    let results = simulate(&plan);
    results
        .flows
        .iter()
        .map(|flow| flow.delivered.as_u64() as f64)
        .sum()
}

/// A lost uplink in the middle of a transfer: no queue pair fails, and the share of the lost uplink is lost.
#[test]
fn a_lost_link_is_repaired_and_costs_its_share() {
    let plan = scenario("infiniband_link_failure");
    let results = simulate(&plan);
    assert_eq!(results.ending, Ending::Completed);
    assert!(
        results
            .flows
            .iter()
            .all(|flow| flow.status == FlowStatus::Completed)
    );
    assert!(results.flows.iter().any(|flow| flow.retransmitted > 0));
    let [repair] = &results.repairs[..] else {
        panic!("{:?}", results.repairs);
    };
    assert_eq!(repair.changed, Time::ZERO + Span::millis(3));
    assert_eq!(repair.programmed, Time::ZERO + Span::millis(5));
    assert_eq!(repair.failure, None);
    // Only what went through the lost link moves: one destination behind each leaf; and the spine has no way down any more
    // to the four hosts of the leaf.
    assert_eq!((repair.entries, repair.switches), (6, 3));
    let rate = |from, to| {
        let [before, after] = [from, to].map(|at| delivered(&plan, Span::micros(at)));
        (after - before) * 8.0 / ((to - from) as f64 * 1e-6) / 1e9
    };
    let (whole, reduced) = (rate(1000, 2500), rate(6500, 8000));
    println!(
        "{whole:.1} Gb/s before, {reduced:.1} Gb/s after: {:.3}",
        reduced / whole
    );
    // Of eight flows, four go up from the lost cable's leaf and four down to it, each over three cables now.
    assert!((reduced / whole - 0.75).abs() < 0.02, "{}", reduced / whole);
}

/// Without the repair, the flows on the lost link use up their retries.
#[test]
fn without_a_repair_queue_pairs_fail() {
    let mut plan = scenario("infiniband_link_failure");
    let LinkLayer::Infiniband(settings) = &mut plan.link_layer else {
        panic!("InfiniBand");
    };
    settings.repair = Span::millis(200);
    let results = simulate(&plan);
    let failed = |status: &FlowStatus| matches!(status, FlowStatus::Failed(_));
    assert!(results.flows.iter().any(|flow| failed(&flow.status)));
    assert!(results.repairs.is_empty());
}

/// A switch that is cut off leaves the others routed; when it comes back, so do its hosts.
#[test]
fn a_leaf_that_comes_back_is_reached_again() {
    let mut text = r#"
        [fabric]
        kind = "infiniband"
        [topology]
        kind = "leaf_spine"
        leaves = 3
        spines = 2
        hosts_per_leaf = 2
        [infiniband]
        repair = "100us"
        [host]
        timeout = 8
        [[workload]]
        kind = "permutation"
        pattern = "shift"
        distance = 2
        bytes = "20MB"
        "#
    .to_owned();
    for (kind, at) in [("link_down", "500us"), ("link_up", "2ms")] {
        for spine in ["spine0", "spine1"] {
            text.push_str(&format!(
                "[[event]]\nkind = \"{kind}\"\nat = \"{at}\"\nbetween = [\"leaf2\", \"{spine}\"]\n"
            ));
        }
    }
    let plan = plan_of(&text);
    let results = simulate(&plan);
    assert_eq!(results.ending, Ending::Completed);
    let failures: Vec<_> = results
        .repairs
        .iter()
        .map(|repair| &repair.failure)
        .collect();
    assert_eq!(failures, [&None, &None]);
}

/// A path's level is that of its destination (as Nue gives them), for data and for acknowledgements that go back.
#[test]
fn each_direction_has_the_level_of_its_own_path() {
    let plan = plan_of(
        r#"
        [fabric]
        kind = "infiniband"
        routing = "nue"
        [topology]
        kind = "leaf_spine"
        leaves = 2
        spines = 1
        hosts_per_leaf = 1
        [infiniband]
        lanes = 2
        [[workload]]
        kind = "flow"
        from = "h0"
        to = "h1"
        bytes = "1MB"
        "#,
    );
    let results = simulate(&plan);
    let sent = |host: u32| {
        let port = results
            .ports
            .iter()
            .find(|port| port.endpoint.node.0 == host);
        let classes = &port.expect("a port").classes;
        [0, 1].map(|lane| classes[lane].value(ClassCounter::TransmitPackets) > 0)
    };
    // The second leaf's destinations have lane 1, the first's lane 0.
    assert_eq!((sent(0), sent(1)), ([false, true], [true, false]));
}

/// However many threads, and whichever driver: the same result, with a repair on the way.
#[test]
fn threads_and_drivers_agree() {
    let mut plan = scenario("infiniband_link_failure");
    for flow in &mut plan.flows {
        flow.bytes = Bytes::new(8_000_000);
    }
    plan.actions[0].at = Time::ZERO + Span::micros(200);
    let with = |threads, driver| {
        let mut options = RunOptions {
            threads,
            driver,
            ..RunOptions::default()
        };
        let mut results = run(&plan, &mut options).expect("a result");
        results.work.windows = 0;
        // What was armed for a wire that was cut may find nothing, or find the next packet.
        results.work.events = 0;
        results
    };
    let first = with(1, Driver::Automatic);
    assert_eq!(first.repairs.len(), 1, "{:?}", first.repairs);
    assert!(first == with(3, Driver::Automatic));
    assert!(first == with(1, Driver::Sequential));
}

/// What the engine cannot route is refused before anything runs, with what to try.
#[test]
fn what_cannot_be_routed_is_refused() {
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut plan = torus("torus", 2, "[4, 4]", 1);
        change(&mut plan);
        let error = run(&plan, &mut RunOptions::default()).expect_err("no routes");
        error.to_string()
    };
    let with = |routing| {
        move |plan: &mut Plan| {
            if let LinkLayer::Infiniband(settings) = &mut plan.link_layer {
                settings.routing = routing;
            }
        }
    };
    let tree = refused(&with(SubnetRouting::FatTree));
    assert!(tree.contains("ftree does not fit this subnet"), "{tree}");
    let one_lane = refused(&|plan| {
        if let LinkLayer::Infiniband(settings) = &mut plan.link_layer {
            settings.hosts = softfabric_fabric::plan::Lanes::alike(1, settings.hosts.buffer);
            for switch in &mut settings.switches {
                switch.lanes = settings.hosts.clone();
            }
        }
    });
    assert!(
        one_lane.contains("torus-2QoS uses 2 lanes, and links have 1"),
        "{one_lane}"
    );
    let wide = refused(&|plan| {
        let switch = (plan.network.ids())
            .find(|id| matches!(plan.network.nodes[id.index()].kind, NodeKind::Switch { .. }))
            .expect("a switch");
        for number in 0..260 {
            let kind = NodeKind::Host {
                profile: 0,
                subnet: 0,
            };
            let host = plan.network.add_node(format!("x{number}"), kind, 0);
            let first = plan.network.links[0];
            plan.network.connect(host, switch, first.rate, first.delay);
        }
    });
    assert!(wide.contains("s0 has more than 254 ports"), "{wide}");
}

/// The networks and workloads of all scenarios that are not over InfiniBand, over it: whatever the topology, nothing is lost
/// but what cables damage, every packet passes the codec, all books agree, and only the ring whose flows name their paths
/// round it locks.
#[test]
fn every_workload_of_rocev2_runs_over_infiniband() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut ran = 0;
    let mut locked = Vec::new();
    let files = std::fs::read_dir(folder).expect("the scenarios are in the repository");
    for file in files {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let mut scenario = Scenario::from_toml(&text, &path.display().to_string())
            .unwrap_or_else(|error| panic!("{error}"));
        if scenario.fabric.kind == Some(FabricKind::Infiniband) {
            continue;
        }
        scenario.fabric.kind = Some(FabricKind::Infiniband);
        scenario.fabric.segment = None;
        scenario.timing = None;
        // What only Ethernet has.
        scenario.switch = Switch::default();
        scenario.switch_group.clear();
        scenario.host = Host::default();
        scenario.host_group.clear();
        scenario
            .event
            .retain(|event| matches!(event, Event::StopSources { .. }));
        scenario.record = Record::default();
        // A subnet is one: rails have cables between them, and planes would have none.
        if let Topology::RailOptimised { spines, planes, .. } = &mut scenario.topology {
            spines.get_or_insert(2);
            *planes = None;
        }
        let mut plan = scenario.plan().unwrap_or_else(|error| panic!("{error}"));
        plan.recording.check_wire = true;
        plan.stop.at = plan.stop.at.min(Time::ZERO + Span::millis(2));
        let damages = |link: &Link| link.bit_error_rate > 0.0 || link.packet_error_rate > 0.0;
        let damaged = plan.network.links.iter().any(damages);
        let results = simulate(&plan);
        assert_eq!(results.lossless_drops, 0, "{name}");
        assert!(damaged || results.conservation.dropped == 0, "{name}");
        if results.deadlock.is_some() {
            locked.push(name.clone());
        }
        let moved = results
            .flows
            .iter()
            .filter(|flow| flow.delivered > Bytes::ZERO);
        assert!(moved.count() > 0, "{name}");
        for (flow, result) in plan.flows.iter().zip(&results.flows) {
            let done = result.status == FlowStatus::Completed;
            assert!(!done || result.delivered == flow.bytes, "{name}");
        }
        ran += 1;
    }
    assert!(ran >= 20, "{ran}");
    locked.sort_unstable();
    assert_eq!(locked, ["ring_deadlock"]);
}

/// The same torus and traffic: it locks for ever, or limps where switches discard what waits for too long, or runs.
#[test]
fn the_life_of_packets_lets_a_locked_torus_limp() {
    let limps = scenario("infiniband_torus_limps");
    let locks = scenario("infiniband_torus_min_hop");
    assert_eq!(limps.flows, locks.flows);
    assert_eq!(limps.network, locks.network);
    let results = simulate(&limps);
    assert_eq!(
        (results.ending, &results.deadlock),
        (Ending::Completed, &None)
    );
    assert!(results.lossless_drops > 0);
    let discards = |results: &Results| -> u64 {
        let ports = results.ports.iter();
        ports
            .map(|port| port.port.value(PortCounter::HeadLifeDiscards))
            .sum()
    };
    assert_eq!(discards(&results), results.lossless_drops);
    let arrived = |flow: &&FlowResult| flow.status == FlowStatus::Completed;
    assert_eq!(results.flows.iter().filter(arrived).count(), 23);
    let findings = find(&limps, &results);
    let kinds: Vec<Kind> = findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [Kind::LosslessDrops, Kind::FailedFlows]);
    assert!(findings[0].details[1].contains("longer than HOQLife"));
    assert!(findings[0].advice.contains("circle of lanes"));
    let free = simulate(&scenario("infiniband_torus"));
    let ratio = results.end.since(Time::ZERO).as_picos() as f64
        / free.end.since(Time::ZERO).as_picos() as f64;
    println!(
        "limps: {} instead of {}, {ratio:.1} times",
        results.end, free.end
    );
    assert!(ratio > 3.0, "{ratio}");
    // A circle that is closed while the run stops opens again: it is no deadlock.
    for micros in [500, 600, 700, 800] {
        let mut stopped = limps.clone();
        stopped.stop.at = Time::ZERO + Span::micros(micros);
        assert_eq!(simulate(&stopped).deadlock, None, "{micros} µs");
    }
    // A life that a run never sees helps nobody.
    let mut longer = limps.clone();
    let LinkLayer::Infiniband(settings) = &mut longer.link_layer else {
        panic!("InfiniBand");
    };
    for switch in &mut settings.switches {
        switch.life.at_head = PacketLife::of_code(18);
        switch.life.at_head_to_host = PacketLife::of_code(16);
    }
    longer.stop.at = Time::ZERO + Span::millis(20);
    let results = simulate(&longer);
    assert_eq!(results.lossless_drops, 0);
    let failed = |flow: &&FlowResult| matches!(flow.status, FlowStatus::Failed(_));
    assert!(results.flows.iter().filter(failed).count() > 2);
}

/// The victim and its neighbour: what a static rate spares the one, and does not cost the other.
#[test]
fn a_static_rate_spares_the_victim() {
    let paced = scenario("infiniband_static_rate");
    let unpaced = scenario("infiniband_static_rate_off");
    assert_eq!(
        (&paced.flows, &paced.network),
        (&unpaced.flows, &unpaced.network)
    );
    let rates = |plan: &Plan| {
        let results = simulate(plan);
        assert_eq!(results.conservation.dropped, 0);
        let end = results.end;
        let rates: Vec<f64> = (results.flows.iter())
            .map(|flow| flow.goodput(end).as_bps() as f64 / 1e9)
            .collect();
        (rates[0], rates[1])
    };
    let share = 4096.0 / 4122.0;
    let (slow, victim) = rates(&unpaced);
    println!("without: {slow:.1} and {victim:.1} Gb/s");
    assert!((slow / (25.0 * share) - 1.0).abs() < 0.01, "{slow}");
    assert!(
        victim < 1.1 * slow,
        "they take turns for the same credit: {victim}"
    );
    let (slow, victim) = rates(&paced);
    println!("with: {slow:.1} and {victim:.1} Gb/s");
    assert!((slow / (25.0 * share) - 1.0).abs() < 0.01, "{slow}");
    assert!((victim / (75.0 * share) - 1.0).abs() < 0.01, "{victim}");
}

/// Tenants who share a partition talk; those who do not are told of before and after the run.
#[test]
fn partitions_keep_tenants_apart() {
    let plan = scenario("infiniband_partitions");
    let warnings = plan.check();
    let places: Vec<&str> = warnings
        .iter()
        .map(|finding| finding.place.as_str())
        .collect();
    assert_eq!(places, ["the flow h1 → h6"]);
    let results = simulate(&plan);
    let (last, others) = results.flows.split_last().expect("flows");
    let done = |flow: &FlowResult| flow.status == FlowStatus::Completed;
    assert!(others.iter().all(done));
    assert_eq!(last.status, FlowStatus::Failed("RETRY_EXC_ERR".to_owned()));
    let findings = find(&plan, &results);
    let kinds: Vec<Kind> = findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [Kind::FailedFlows, Kind::KeptApart]);
    let detail = &findings[1].details[0];
    assert!(detail.starts_with("leaf1:"), "{detail}");
    assert!(detail.contains("port_xmit_constraint_errors"), "{detail}");
    // Without partitions, or with the two in one, it arrives.
    let mut open = plan;
    let LinkLayer::Infiniband(settings) = &mut open.link_layer else {
        panic!("InfiniBand");
    };
    settings.partitions = None;
    let results = simulate(&open);
    assert!(results.flows.iter().all(done));
    assert_eq!(find(&open, &results), []);
}

/// Two cables are lost within one repair time: each has a sweep of its own, made of the links as they were at its loss, and
/// changes as much as it would with all the time in the world.
#[test]
fn losses_closer_than_a_repair_are_repaired_one_after_the_other() {
    let text = |events: &str| {
        format!(
            r#"
            [fabric]
            kind = "infiniband"
            routing = "fat_tree"
            [topology]
            kind = "leaf_spine"
            leaves = 2
            spines = 4
            hosts_per_leaf = 4
            [infiniband]
            repair = "500us"
            [host]
            timeout = 6
            [[workload]]
            kind = "permutation"
            pattern = "shift"
            distance = 4
            bytes = "30MB"
            {events}
            "#
        )
    };
    let down = |at: &str, spine: &str| {
        format!(
            "[[event]]\nkind = \"link_down\"\nat = \"{at}\"\nbetween = [\"leaf0\", \"{spine}\"]\n"
        )
    };
    let plan = plan_of(&text(&(down("300us", "spine1") + &down("500us", "spine2"))));
    let results = simulate(&plan);
    assert_eq!(results.ending, Ending::Completed);
    assert!(
        results
            .flows
            .iter()
            .all(|flow| flow.status == FlowStatus::Completed)
    );
    let times: Vec<_> = (results.repairs.iter())
        .map(|repair| (repair.changed, repair.programmed))
        .collect();
    let at = |micros| Time::ZERO + Span::micros(micros);
    assert_eq!(times, [(at(300), at(800)), (at(500), at(1000))]);
    // What each changes is what one loss after the other changes, with all the time in the world.
    let slow = plan_of(&text(&(down("300us", "spine1") + &down("900us", "spine2"))));
    let slow = simulate(&slow);
    let changes = |results: &Results| -> Vec<(u64, u64)> {
        let repairs = results.repairs.iter();
        repairs
            .map(|repair| (repair.entries, repair.switches))
            .collect()
    };
    assert_eq!(changes(&results), changes(&slow));
    assert!(changes(&results).iter().all(|(entries, _)| *entries > 0));
}

/// One publisher by multicast, one by connections: the tree loses to whom a cable led, and tells it; connections repeat.
#[test]
fn multicast_reaches_all_but_those_behind_a_lost_cable() {
    let plan = scenario("infiniband_multicast");
    assert_eq!(plan.check(), []);
    let results = simulate(&plan);
    let is_done = |flow: &FlowResult| flow.status == FlowStatus::Completed;
    assert!(results.flows.iter().all(is_done));
    let [news] = &results.multicast[..] else {
        panic!("one flow goes to a group");
    };
    assert_eq!(news.sent, 10_000_000_u64.div_ceil(2048));
    for member in &news.members {
        let name = &plan.network.nodes[member.node.index()].name;
        let is_behind = ["h8", "h9", "h10", "h11"].contains(&name.as_str());
        // 200 us of 100 Gb/s are 1,178 packets of 2,122 B. Members share their links with connections of 7 Gb/s each, and a
        // packet waits for the slowest of its outputs: a tenth less. What waited for the cable is lost as well: at most a
        // lane's buffer, 61 packets; and once more for all but the publisher's neighbours, when the tree moves to the other
        // spine.
        let expected = match name.as_str() {
            "h1" | "h2" | "h3" => 0..1,
            _ if is_behind => 1_030..1_300,
            _ => 0..70,
        };
        assert!(
            expected.contains(&news.lost(member)),
            "{name}: {}",
            news.lost(member)
        );
    }
    let kinds: Vec<Kind> = find(&plan, &results)
        .iter()
        .map(|found| found.kind)
        .collect();
    assert_eq!(kinds, [Kind::Unheard, Kind::Repaired]);
    // The tree brings to 14 what the other publisher's link carries 14 times; but its packets wait for the slowest of their
    // outputs, which the connections use as well.
    let took = |flow: usize| {
        results.flows[flow]
            .completion_time()
            .expect("done")
            .as_picos() as f64
    };
    let slowest = (1..15).map(took).fold(0.0, f64::max);
    let times = slowest / took(0);
    assert!((10.0..14.0).contains(&times), "{times}");
}

/// What collides on one spine has four of them, once switches choose.
#[test]
fn adaptive_routing_spreads_what_collides() {
    let mut plan = scenario("infiniband_adaptive");
    assert_eq!(plan.check(), []);
    let slowest = |plan: &Plan| {
        let results = simulate(plan);
        assert_eq!(results.conservation.dropped, 0);
        let times = results
            .flows
            .iter()
            .map(|flow| flow.completion_time().expect("done"));
        times.max().expect("flows").as_picos() as f64
    };
    let adaptive = slowest(&plan);
    let LinkLayer::Infiniband(settings) = &mut plan.link_layer else {
        panic!("InfiniBand");
    };
    settings.adaptive = false;
    let fixed = slowest(&plan);
    println!(
        "fixed: {:.0} us, adaptive: {:.0} us",
        fixed / 1e6,
        adaptive / 1e6
    );
    assert!(fixed / adaptive > 3.7, "{}", fixed / adaptive);
}

/// No cable joins two stars: each is a subnet, and a flow or a group of both is refused.
#[test]
fn subnets_do_not_reach_each_other() {
    let text = |traffic: &str| {
        let mut text =
            "[fabric]\nkind = \"infiniband\"\n[topology]\nkind = \"explicit\"\n".to_owned();
        for (name, kind) in [
            ("a", "host"),
            ("b", "host"),
            ("c", "host"),
            ("d", "host"),
            ("s", "switch"),
            ("t", "switch"),
        ] {
            text += &format!("[[topology.node]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
        }
        for (host, switch) in [("a", "s"), ("b", "s"), ("c", "t"), ("d", "t")] {
            text += &format!(
                "[[topology.link]]\na = \"{host}\"\nb = \"{switch}\"\nrate = \"100Gb/s\"\ndelay = \"1us\"\n"
            );
        }
        text + traffic
    };
    let flow = |from: &str, to: &str| {
        format!(
            "[[workload]]\nkind = \"flow\"\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = \"1MB\"\n"
        )
    };
    let group =
        |members: &str| format!("[[infiniband.multicast]]\nname = \"all\"\nmembers = {members}\n");
    let plan = plan_of(&text(
        &(flow("a", "b") + &flow("d", "c") + &group("[\"c\", \"d\"]")),
    ));
    let results = simulate(&plan);
    assert_eq!(results.ending, Ending::Completed);
    for (traffic, told) in [
        (flow("a", "c"), "c"),
        (
            group("[\"b\", \"c\"]"),
            "has members b and c, whose first ports no cables join",
        ),
    ] {
        let scenario = Scenario::from_toml(&text(&traffic), "two.toml").expect("its form is right");
        let error = scenario
            .plan()
            .expect_err("no cable leads there")
            .to_string();
        assert!(error.contains(told), "{error}");
    }
}
