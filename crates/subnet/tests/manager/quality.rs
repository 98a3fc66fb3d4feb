//! Quality of service: ports get lanes and turns as the options say, paths have their levels, and what contradicts is refused.

use softfabric_subnet::generate::{fat_tree, torus};
use softfabric_subnet::manager::{
    Event, Level, Manager, Options, Partitions, Policy, QualityOfService, Rule, Settings,
};
use softfabric_subnet::routing::{Dfsssp, MinHop, Nue, RoutingEngine, Torus};
use softfabric_subnet::{PortRef, Subnet};
use softfabric_units::{Guid, Lid, PartitionKey, Random, Time};
use softfabric_wire::infiniband::ServiceLevel;
use softfabric_wire::mad::administration::{
    AdministrationMad, LevelMapRecord, MultiPathRecord, PathRecord, VlArbitrationRecord, component,
    decode_table,
};
use softfabric_wire::mad::cm::ServiceId;
use softfabric_wire::mad::performance::ClassPortInfo;
use softfabric_wire::mad::{ComponentMask, LaneCount, Method, PortState, status};

use super::{Fabric, manager, run, start, table};

/// Four lanes on cables, eight on none; adapters and switches take turns differently.
const OPTIONS: &str = "
qos TRUE
qos_max_vls 4
qos_high_limit 3
qos_swe_high_limit 200
qos_vlarb_high 0:64,5:16
qos_vlarb_low 0:1,1:2,2:3,3:4
qos_ca_vlarb_low 3:9,2:8,1:7,0:6
qos_sl2vl 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
qos_ca_sl2vl 3,2,1,0,3,2,1,0,3,2,1,0,3,2,1,15
";

fn quality(options: &str) -> QualityOfService {
    Options::read(options, "options").unwrap().quality.unwrap()
}

fn with(engine: impl RoutingEngine + Send + 'static, options: &str) -> Manager {
    let mut manager = manager(engine);
    manager.set_quality(quality(options)).unwrap();
    manager
}

fn lanes(map: &softfabric_wire::mad::subnet::ServiceLevelMap) -> [u8; 16] {
    map.lanes.map(|lane| lane.as_u8())
}

/// Every port that has a cable, and what it holds.
fn verify(fabric: &Fabric) {
    for (number, node) in fabric.subnet().nodes() {
        let agent = fabric.emulated.agent(number);
        for port in 1..=node.ports {
            let place = PortRef { node: number, port };
            if fabric.subnet().port(place).peer().is_none() {
                assert!(!agent.turns.keys().any(|key| key & 0xff == u32::from(port)));
                continue;
            }
            let info = &agent.ports[usize::from(port)];
            assert_eq!(info.operational_lanes, LaneCount::FOUR);
            let table = |block: u32| {
                let entries = agent.turns[&(block << 16 | u32::from(port))].entries;
                entries.map(|entry| (entry.lane.as_u8(), entry.weight))
            };
            let (limit, low) = if node.is_switch() {
                (200, [(0, 1), (1, 2), (2, 3), (3, 4)])
            } else {
                (3, [(3, 9), (2, 8), (1, 7), (0, 6)])
            };
            assert_eq!(info.high_limit, limit);
            assert_eq!(table(1)[..4], low);
            assert_eq!(
                table(3)[..3],
                [(0, 64), (1, 16), (0, 0)],
                "5 is folded into 1"
            );
            assert!(
                table(1)[4..]
                    .iter()
                    .chain(&table(3)[2..])
                    .all(|turn| *turn == (0, 0))
            );
            // There is room for eight entries: no second blocks.
            for block in [2, 4] {
                assert!(!agent.turns.contains_key(&(block << 16 | u32::from(port))));
            }
            if node.is_switch() {
                for input in 0..=node.ports {
                    let map = &agent.levels[&(u32::from(input) << 8 | u32::from(port))];
                    let wanted = [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 15];
                    assert_eq!(lanes(map), wanted, "{place:?} from {input}");
                }
            } else {
                let map = &agent.levels[&u32::from(port)];
                assert_eq!(
                    lanes(map),
                    [3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 15]
                );
            }
        }
        // Base ports 0 have none.
        assert!(
            !agent
                .turns
                .keys()
                .any(|key| node.is_switch() && key & 0xff == 0)
        );
    }
}

#[test]
fn every_port_has_what_its_kind_is_told() {
    let mut fabric = Fabric::new(fat_tree(4, 3).unwrap());
    let mut manager = with(MinHop, OPTIONS);
    start(&mut manager, &mut fabric);
    verify(&fabric);
    let again = start(&mut manager, &mut fabric);
    assert_eq!(again.writes, 0, "{again:?}");

    // Administration answers the same.
    let all = ComponentMask::NONE;
    let turns = table(&manager, all, &VlArbitrationRecord::default());
    let ports = 16 + fabric.subnet().cables().count() * 2 - 16;
    assert_eq!(turns.len(), 2 * ports);
    let levels = table(&manager, all, &LevelMapRecord::default());
    let ends = |lid: Lid| {
        let mut ends = fabric.subnet().end_ports().map(|(end, _)| end);
        ends.find(|end| fabric.emulated.lid(*end) == lid).unwrap()
    };
    for record in &turns {
        let node = ends(record.lid).node;
        let key = u32::from(record.block) << 16 | u32::from(record.port);
        assert_eq!(fabric.emulated.agent(node).turns[&key], record.entries);
    }
    let mut of_adapters = 0;
    for record in &levels {
        let node = ends(record.lid).node;
        let is_switch = fabric.subnet().node(node).is_switch();
        of_adapters += usize::from(!is_switch);
        let key = u32::from(record.input) << 8 | u32::from(record.output);
        assert_eq!(fabric.emulated.agent(node).levels[&key], record.map);
    }
    assert_eq!(of_adapters, 16);
}

#[test]
fn losses_only_cost_time_and_a_repair_writes_little() {
    let mut fabric = Fabric::new(fat_tree(4, 3).unwrap());
    fabric.loss = 0.05;
    let settings = Settings {
        retries: 12,
        ..Settings::default()
    };
    let mut manager = Manager::new(settings, Box::new(MinHop));
    manager.set_quality(quality(OPTIONS)).unwrap();
    start(&mut manager, &mut fabric);
    verify(&fabric);
    fabric.loss = 0.0;
    // A cable between switches goes, and comes back: few tables change.
    let is_switch = |port: PortRef| fabric.subnet().node(port.node).is_switch();
    let cables = fabric.subnet().cables();
    let (end, peer) = cables
        .filter(|(left, right)| is_switch(*left) && is_switch(*right))
        .last()
        .unwrap();
    let begin = Time::from_picos(1_000_000_000_000);
    fabric.cut(end);
    let mut writes = [0, 0];
    for (round, writes) in writes.iter_mut().enumerate() {
        if round == 1 {
            fabric.mend(end, peer);
        }
        for port in [end, peer] {
            manager.handle_smp(begin, &fabric.trap(port.node));
        }
        let (events, _) = run(&mut manager, &mut fabric, begin);
        let Some(Event::Up(summary)) = events.last() else {
            panic!("{events:?}")
        };
        *writes = summary.writes;
    }
    verify(&fabric);
    assert!(writes.iter().all(|writes| *writes < 60), "{writes:?}");
}

#[test]
fn an_adapter_that_started_anew_gets_its_tables_again() {
    let mut fabric = Fabric::new(fat_tree(4, 3).unwrap());
    let mut manager = with(MinHop, OPTIONS);
    start(&mut manager, &mut fabric);
    let hosts: Vec<PortRef> = {
        let ends = fabric.subnet().end_ports().map(|(end, _)| end);
        ends.filter(|end| end.port == 1).collect()
    };
    // One is gone for a while; of another the link only goes down and up, before anybody looks.
    let begin = Time::from_picos(1_000_000_000_000);
    for (host, gone) in [(hosts[5], true), (hosts[6], false)] {
        let peer = fabric.cut(host);
        if gone {
            manager.handle_smp(begin, &fabric.trap(peer.node));
            run(&mut manager, &mut fabric, begin);
        }
        let agent = fabric.emulated.agent_mut(host.node);
        agent.levels.clear();
        agent.turns.clear();
        fabric.mend(host, peer);
        manager.handle_smp(begin, &fabric.trap(peer.node));
        run(&mut manager, &mut fabric, begin);
        let state = fabric.emulated.agent(host.node).ports[1].state;
        assert_eq!(state, PortState::ACTIVE);
        verify(&fabric);
    }
}

/// The levels that somebody gets who asks for paths between two hosts.
fn levels(manager: &Manager, change: impl Fn(&mut PathRecord), more: &[&str]) -> Vec<u8> {
    let subnet = manager.subnet();
    let lid = |guid: u64| {
        let mut ends = subnet.end_ports();
        ends.find(|(_, port)| port.guid == Guid(guid))
            .unwrap()
            .1
            .lid
    };
    let mut wanted = PathRecord {
        source_lid: lid(0x10_0001),
        destination_lid: lid(0x10_0009),
        ..PathRecord::default()
    };
    change(&mut wanted);
    let mask = more
        .iter()
        .chain(&["source_lid", "destination_lid"])
        .map(|name| component::<PathRecord>(name, ""))
        .fold(ComponentMask::NONE, ComponentMask::with);
    let paths = table(manager, mask, &wanted);
    if more.contains(&"service") {
        assert!(paths.iter().all(|path| path.service == wanted.service));
    }
    paths.iter().map(|path| path.level.as_u8()).collect()
}

fn policy() -> Policy {
    let level = |name: &str, sl| Level {
        name: name.to_owned(),
        sl,
    };
    let rule = |level: &str| Rule {
        level: level.to_owned(),
        ..Rule::default()
    };
    let services = Rule {
        services: vec![(ServiceId(0x100), ServiceId(0x1ff))],
        ..rule("storage")
    };
    let destinations = Rule {
        destinations: vec![Guid(0x10_0001)],
        ..rule("back")
    };
    Policy::new(
        vec![level("storage", 5), level("back", 1)],
        vec![services, destinations],
    )
    .unwrap()
}

#[test]
fn paths_have_the_levels_of_rules_partitions_and_requests() {
    let mut fabric = Fabric::new(fat_tree(4, 3).unwrap());
    let mut manager = manager(MinHop);
    let mut settings = quality(OPTIONS);
    settings.policy = policy();
    manager.set_quality(settings).unwrap();
    let partitions = "Default=0x7fff : ALL=full;\nred=0x8001, sl=2 : ALL=full;\n";
    manager.set_partitions(Partitions::read(partitions, "partitions").unwrap());
    start(&mut manager, &mut fabric);
    let query =
        AdministrationMad::query(Method::GET, ComponentMask::NONE, &ClassPortInfo::default());
    let can = manager
        .inform(&query)
        .head
        .data_as::<ClassPortInfo>()
        .unwrap();
    assert_eq!(can.capabilities_2, 2, "it minds classes and services");
    let of = |change: &dyn Fn(&mut PathRecord), more: &[&str]| levels(&manager, change, more);
    assert_eq!(of(&|_| {}, &[]), [0]);
    let red = |path: &mut PathRecord| path.partition = PartitionKey(0x8001);
    assert_eq!(of(&red, &["partition"]), [2]);
    let storage = |path: &mut PathRecord| {
        red(path);
        path.service = ServiceId(0x1ff);
    };
    assert_eq!(
        of(&storage, &["partition", "service"]),
        [5],
        "the rule before the partition"
    );
    let other = |path: &mut PathRecord| path.service = ServiceId(0x200);
    assert_eq!(of(&other, &["service"]), [0]);
    let back = |path: &mut PathRecord| {
        std::mem::swap(&mut path.source_lid, &mut path.destination_lid);
    };
    assert_eq!(of(&back, &[]), [1]);
    // Who asks for a level gets it, unless a rule says otherwise, or nobody would forward it.
    let level = |path: &mut PathRecord| path.level = ServiceLevel::checked(7).unwrap();
    assert_eq!(of(&level, &["level"]), [7]);
    let against = |path: &mut PathRecord| {
        storage(path);
        level(path);
    };
    assert_eq!(of(&against, &["partition", "service", "level"]), []);
    let dropped = |path: &mut PathRecord| path.level = ServiceLevel::checked(15).unwrap();
    assert_eq!(of(&dropped, &["level"]), []);
}

#[test]
fn paths_among_several_ports_have_their_levels() {
    let mut fabric = Fabric::new(fat_tree(4, 3).unwrap());
    let mut manager = manager(MinHop);
    let mut settings = quality(OPTIONS);
    settings.policy = policy();
    manager.set_quality(settings).unwrap();
    start(&mut manager, &mut fabric);
    let guids = [0x10_0005_u64, 0x10_0007, 0x10_0001, 0x10_0009, 0x10_000b];
    let ask = |record: &MultiPathRecord, more: &[&str], guids: &[u64]| {
        let names = more.iter().chain(&["sources", "destinations"]);
        let mask = names
            .map(|name| component::<MultiPathRecord>(name, ""))
            .fold(ComponentMask::NONE, ComponentMask::with);
        let mut query = AdministrationMad::query(Method::GET_MULTI, mask, record);
        for (place, guid) in query.data[24..].chunks_exact_mut(16).zip(guids) {
            place[..8].copy_from_slice(&0xfe80_0000_0000_0000_u64.to_be_bytes());
            place[8..].copy_from_slice(&guid.to_be_bytes());
        }
        manager.inform(&query)
    };
    let paths = |record: &MultiPathRecord, more: &[&str]| {
        let answer = ask(record, more, &guids);
        assert_eq!(
            (answer.head.method, answer.head.status),
            (Method::GET_MULTI_RESPONSE, 0)
        );
        let table = answer.table.unwrap();
        let paths: Vec<PathRecord> = decode_table(&table, answer.head.attribute_offset).unwrap();
        let ends = paths.iter().map(|path| {
            let guid = |gid: softfabric_units::Gid| u64::from(gid.0[15]);
            (
                guid(path.source_gid),
                guid(path.destination_gid),
                path.level.as_u8(),
            )
        });
        ends.collect::<Vec<_>>()
    };
    let two_to_three = MultiPathRecord {
        sources: 2,
        destinations: 3,
        ..MultiPathRecord::default()
    };
    // The second rule is of paths to the first host.
    assert_eq!(
        paths(&two_to_three, &[]),
        [
            (5, 1, 1),
            (5, 9, 0),
            (5, 11, 0),
            (7, 1, 1),
            (7, 9, 0),
            (7, 11, 0)
        ]
    );
    let storage = MultiPathRecord {
        service_low: 0x1ff,
        paths: 2,
        ..two_to_three
    };
    let service = ["service_high", "service_low", "paths"];
    assert_eq!(paths(&storage, &service), [(5, 1, 5), (5, 9, 5)]);
    let level = MultiPathRecord {
        level: ServiceLevel::checked(7).unwrap(),
        ..two_to_three
    };
    assert_eq!(
        paths(&level, &["level"]),
        [(5, 9, 7), (5, 11, 7), (7, 9, 7), (7, 11, 7)]
    );
    // There is room for eleven in one datagram.
    let many = MultiPathRecord {
        sources: 6,
        destinations: 6,
        ..MultiPathRecord::default()
    };
    assert_eq!(ask(&many, &[], &guids).head.status, status::INVALID_REQUEST);
    let nobody = MultiPathRecord::default();
    assert_eq!(
        ask(&nobody, &[], &guids).head.status,
        status::INSUFFICIENT_COMPONENTS
    );
    // Get and GetTable are for one path's record.
    let query = AdministrationMad::query(Method::GET, ComponentMask::NONE, &two_to_three);
    assert_eq!(
        manager.inform(&query).head.status,
        status::UNSUPPORTED_ATTRIBUTE
    );
}

/// What is said of settings that cannot be, before anything is written.
fn refusal(subnet: Subnet, manager: &mut Manager) -> String {
    let mut fabric = Fabric::new(subnet);
    manager.start(Time::ZERO);
    let (events, _) = run(manager, &mut fabric, Time::ZERO);
    let [Event::Failed(error)] = &events[..] else {
        panic!("{events:?}")
    };
    assert!(fabric.is_untouched());
    for (node, _) in fabric.subnet().nodes() {
        let agent = fabric.emulated.agent(node);
        assert!(agent.turns.is_empty() && agent.levels.is_empty() && agent.partitions.is_empty());
    }
    error.to_string()
}

#[test]
fn engines_with_lanes_keep_theirs_between_switches() {
    let options = "qos TRUE\nqos_vlarb_low 0:1,1:2,2:3\nqos_vlarb_high 0:0\nqos_ca_vlarb_low 0:1,1:2,2:3,3:4,4:5,5:6,6:7,7:8\nqos_swe_max_vls 3\n";
    let engines: [Box<dyn RoutingEngine + Send>; 3] = [
        Box::new(Torus),
        Box::new(Dfsssp::default()),
        Box::new(Nue { lanes: 2 }),
    ];
    for engine in engines {
        let name = engine.name();
        let mut fabric = Fabric::new(torus(&[4, 4], 1).unwrap());
        let mut manager = Manager::new(Settings::default(), engine);
        manager.set_quality(quality(options)).unwrap();
        start(&mut manager, &mut fabric);
        let (view, routes) = manager.routes().unwrap();
        assert_eq!(routes.lanes_used, 2, "{name}");
        for switch in 0..view.switches() {
            let node = fabric.subnet().by_guid(view.guid(switch)).unwrap();
            let agent = fabric.emulated.agent(node);
            for (port, state) in fabric.subnet().external_ports(node) {
                if state.peer().is_none() {
                    continue;
                }
                let map = lanes(&agent.levels[&u32::from(port.port)]);
                let wanted: Vec<u8> = match view.link_by_port(switch, port.port) {
                    Some(link) => (0..16).map(|level| routes.lane(link, level) % 2).collect(),
                    // Three lanes are none: two.
                    None => (0..15).map(|level| level % 2).chain([1]).collect(),
                };
                assert_eq!(map[..], wanted, "{name} {port:?}");
                let turns = agent.turns[&(1 << 16 | u32::from(port.port))].entries;
                let turns = turns.map(|turn| (turn.lane.as_u8(), turn.weight));
                assert_eq!(turns[..4], [(0, 1), (1, 2), (0, 3), (0, 0)]);
            }
        }
        let again = start(&mut manager, &mut fabric);
        assert_eq!(again.writes, 0, "{name}: {again:?}");
    }
}

#[test]
fn what_contradicts_the_engine_is_refused() {
    let torus = || torus(&[4, 4], 1).unwrap();
    let mut mapped = with(
        Torus,
        "qos TRUE\nqos_swe_sl2vl 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\n",
    );
    let told = refusal(torus(), &mut mapped);
    assert!(
        told.starts_with("torus-2QoS needs lane 1 for level")
            && told.contains("settings say lane 0"),
        "{told}"
    );
    // The same map as the engine's is no contradiction.
    let identity = "qos TRUE\nqos_sl2vl 0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1\nqos_vlarb_low 0:1,1:1\n";
    let mut fabric = Fabric::new(torus());
    start(&mut with(Nue { lanes: 2 }, identity), &mut fabric);

    let mut few = with(Nue { lanes: 2 }, "qos TRUE\nqos_swe_max_vls 1\n");
    let told = refusal(torus(), &mut few);
    assert!(
        told.starts_with("nue uses 2 lanes, and port") && told.contains("has 1:"),
        "{told}"
    );

    let mut settings = quality("qos TRUE\n");
    settings.policy = policy();
    let mut levels = manager(Dfsssp::default());
    levels.set_quality(settings).unwrap();
    let told = refusal(torus(), &mut levels);
    assert!(
        told.starts_with("dfsssp says which level each path has")
            && told.contains("the policy's level \"storage\" is to have level 5"),
        "{told}"
    );

    let mut parted = manager(Torus);
    let partitions = "Default=0x7fff : ALL=full;\nred=0x8001, sl=2 : ALL=full;\n";
    parted.set_partitions(Partitions::read(partitions, "partitions").unwrap());
    let told = refusal(torus(), &mut parted);
    assert!(
        told.contains("partition 0x0001 is to have level 2"),
        "{told}"
    );
}

#[test]
fn what_ports_cannot_is_refused() {
    let tree = || fat_tree(4, 2).unwrap();
    let told = refusal(tree(), &mut with(MinHop, "qos TRUE\nqos_ca_max_vls 15\n"));
    assert!(
        told.starts_with("ports of adapters are to use 15 lanes, and port 1 of \"H-00000 HCA-1\"")
            && told.contains("has 8"),
        "{told}"
    );
    let starved = "qos TRUE\nqos_vlarb_low 0:4,1:4\nqos_vlarb_high 2:1\n";
    let told = refusal(tree(), &mut with(MinHop, starved));
    assert!(
        told.starts_with("level 3 has lane 3 at port 1 of"),
        "{told}"
    );
    // Eight entries are all that there is room for.
    let long = "qos TRUE\nqos_vlarb_high 0:0\nqos_vlarb_low 0:1,0:1,1:1,2:1,3:1,4:1,5:1,6:1,7:1\n";
    let told = refusal(tree(), &mut with(MinHop, long));
    assert!(
        told.starts_with("level 7 has lane 7 at port 1 of"),
        "{told}"
    );
}

#[test]
fn whatever_ports_answer_the_manager_goes_on() {
    let mut random = Random::from_seed(5);
    for round in 0..40 {
        let mut fabric = Fabric::new(fat_tree(4, 2).unwrap());
        let mut manager = with(MinHop, OPTIONS);
        let mut now = Time::ZERO;
        manager.start(now);
        let mut ups = 0;
        for _ in 0..3_000 {
            while let Some(smp) = manager.poll_transmit(now) {
                let lanes = matches!(smp.attribute, 0x17 | 0x18);
                let Some(mut answer) = fabric.serve(smp) else {
                    continue;
                };
                if lanes && random.chance(0.4) {
                    for _ in 0..=random.below(8) {
                        answer.data[random.below(64) as usize] = random.bits() as u8;
                    }
                    if random.chance(0.2) {
                        answer.status = random.bits() as u16 & 0x7fff;
                        answer.attribute = 0x10 + random.below(12) as u16;
                    }
                    if random.chance(0.2) {
                        continue;
                    }
                }
                manager.handle_smp(now, &answer);
            }
            while let Some(event) = manager.poll_event() {
                ups += usize::from(matches!(event, Event::Up(_)));
            }
            let Some(next) = manager.poll_timeout() else {
                break;
            };
            now = now.max(next);
            manager.handle_timeout(now);
        }
        assert_eq!(ups, 1, "round {round}");
        // With honest answers, a sweep puts right what is not known to be.
        start(&mut manager, &mut fabric);
        verify(&fabric);
    }
}
