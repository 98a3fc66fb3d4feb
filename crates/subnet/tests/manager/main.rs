//! The manager against agents of simulated nodes: over a wire that loses packets, through lost and new cables.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod agents;
mod congestion;
mod partitions;
mod quality;
mod services;

use std::collections::{BTreeSet, VecDeque};

use softfabric_subnet::check::check;
use softfabric_subnet::generate::{fat_tree, random, torus};
use softfabric_subnet::manager::{Event, ManageError, Manager, Problem, Settings, Summary};
use softfabric_subnet::routing::{
    Dfsssp, FatTree, MinHop, Nue, RoutingEngine, RoutingView, Torus, UpDown,
};
use softfabric_subnet::{NodeId, PortRef, Subnet};
use softfabric_units::{Gid, Guid, Lid, PartitionKey, Random, Span, Time};
use softfabric_wire::mad::administration::{
    AdministrationMad, ForwardingRecord, GuidInfoRecord, LevelMapRecord, LinkRecord, MemberRecord,
    NodeRecord, PartitionTableRecord, PathRecord, PortInfoRecord, SmInfoRecord, SwitchInfoRecord,
    VlArbitrationRecord, component, decode_table,
};
use softfabric_wire::mad::congestion::CongestionMad;
use softfabric_wire::mad::subnet::{Notice, SmInfo, Smp, SmpRoute};
use softfabric_wire::mad::{
    Attribute, ComponentMask, LaneCount, ManagerState, Method, MtuCode, NodeType, PortState,
    RateCode, Selector, status,
};

use agents::Fabric;
use softfabric_subnet::agent::Agent;

const LATENCY: Span = Span::micros(10);

/// An answer on its way.
enum Flying {
    Subnet(Smp),
    Congestion(CongestionMad),
}

/// Runs until the manager has nothing more to do; returns what it said, and when it ended.
fn run(manager: &mut Manager, fabric: &mut Fabric, mut now: Time) -> (Vec<Event>, Time) {
    let mut flying: VecDeque<(Time, Flying)> = VecDeque::new();
    let mut events = Vec::new();
    loop {
        let mut window = 0;
        while let Some(smp) = manager.poll_transmit(now) {
            window += 1;
            // Everything is encoded and decoded on its way.
            let smp = Smp::decode(&smp.encode()).unwrap();
            if let Some(answer) = fabric.serve(smp) {
                let answer = Smp::decode(&answer.encode()).unwrap();
                flying.push_back((now + LATENCY, Flying::Subnet(answer)));
            }
        }
        while let Some((to, mad)) = manager.poll_congestion(now) {
            if let Some(answer) = fabric.serve_congestion(to, &mad) {
                flying.push_back((now + LATENCY, Flying::Congestion(answer)));
            }
        }
        assert!(window <= 64 + 1, "{window} requests at once");
        while let Some(event) = manager.poll_event() {
            events.push(event);
        }
        let arrival = flying.front().map(|(time, _)| *time);
        let Some(next) = arrival.into_iter().chain(manager.poll_timeout()).min() else {
            return (events, now);
        };
        now = now.max(next);
        if arrival == Some(next) {
            match flying.pop_front().unwrap().1 {
                Flying::Subnet(smp) => manager.handle_smp(now, &smp),
                Flying::Congestion(mad) => manager.handle_congestion(now, &mad),
            }
        } else {
            manager.handle_timeout(now);
        }
    }
}

fn start(manager: &mut Manager, fabric: &mut Fabric) -> Summary {
    manager.start(Time::ZERO);
    let (events, _) = run(manager, fabric, Time::ZERO);
    let [Event::Up(summary)] = events[..] else {
        panic!("{events:?}")
    };
    summary
}

/// What is in the switches is what was routed; everything in reach has its own identifier and active links, and no path
/// breaks or locks up.
fn verify(manager: &Manager, fabric: &Fabric) {
    let (view, routes) = manager.routes().unwrap();
    let report = check(view, routes);
    assert!(report.broken.is_empty(), "{:?}", report.broken.first());
    let found = manager.subnet();
    for switch in 0..view.switches() {
        let node = fabric.subnet().by_guid(view.guid(switch)).unwrap();
        let agent = fabric.emulated.agent(node);
        assert_eq!(usize::from(agent.switch.linear_top) + 1, routes.width());
        assert!(!agent.switch.state_change);
        for (lid, port) in routes.table(switch).iter().enumerate() {
            let block = &agent.blocks[&((lid / 64) as u32)];
            assert_eq!(
                block.ports[lid % 64],
                *port,
                "LID {lid} at {}",
                view.name(switch)
            );
        }
        if routes.lanes_used > 1 {
            for link in view.links_of(switch) {
                let output = view.links()[link].port;
                let turns = agent.turns[&(1 << 16 | u32::from(output))];
                let lanes: Vec<u8> = turns
                    .entries
                    .iter()
                    .filter(|entry| entry.weight > 0)
                    .map(|entry| entry.lane.as_u8())
                    .collect();
                assert_eq!(lanes, (0..routes.lanes_used).collect::<Vec<_>>());
                for input in 0..=fabric.subnet().node(node).ports {
                    let map = agent.levels[&(u32::from(input) << 8 | u32::from(output))];
                    for (level, lane) in (0..8).zip(map.lanes) {
                        assert_eq!(lane.as_u8(), routes.lane(link, level) % routes.lanes_used);
                    }
                }
            }
        }
    }
    let reachable = RoutingView::reachable(fabric.subnet(), fabric.own);
    assert_eq!(view.switches(), reachable.switches());
    let mut lids = BTreeSet::new();
    for (end, _) in fabric.subnet().end_ports() {
        let node = fabric.subnet().node(end.node);
        let switch = if node.is_switch() {
            Some(end.node)
        } else {
            fabric.subnet().port(end).peer().map(|peer| peer.node)
        };
        if switch.is_none_or(|switch| reachable.switch_of(switch).is_none()) {
            continue;
        }
        let info = &fabric.emulated.agent(end.node).ports[usize::from(end.port)];
        assert!(
            info.lid.is_unicast() && lids.insert(info.lid),
            "{} has LID {}",
            node.id,
            info.lid
        );
        let known = found.by_guid(node.guid).unwrap();
        assert_eq!(
            found
                .port(PortRef {
                    node: known,
                    port: end.port
                })
                .lid,
            info.lid
        );
        assert_eq!(found.node(known).description, node.description);
        if end.port > 0 {
            assert_eq!(info.state, PortState::ACTIVE, "{}", node.id);
            assert_eq!(info.neighbor_mtu, MtuCode::B4096);
        }
        let trunks = fabric
            .subnet()
            .external_ports(end.node)
            .filter(|(_, port)| port.peer().is_some());
        for (port, _) in trunks {
            let info = &fabric.emulated.agent(port.node).ports[usize::from(port.port)];
            assert_eq!(
                info.state,
                PortState::ACTIVE,
                "port {} of {}",
                port.port,
                node.id
            );
            assert_eq!(info.operational_lanes, LaneCount::EIGHT);
        }
    }
}

fn manager(engine: impl RoutingEngine + Send + 'static) -> Manager {
    Manager::new(Settings::default(), Box::new(engine))
}

#[test]
fn every_engine_brings_its_subnets_up() {
    let cases: Vec<(Subnet, Manager)> = vec![
        (fat_tree(4, 3).unwrap(), manager(FatTree::default())),
        (fat_tree(6, 2).unwrap(), manager(UpDown::default())),
        (random(12, 4, 2, 9).unwrap(), manager(MinHop)),
        (random(12, 4, 2, 9).unwrap(), manager(Nue { lanes: 2 })),
        (torus(&[3, 4], 2).unwrap(), manager(Torus)),
        (torus(&[4, 4], 1).unwrap(), manager(Dfsssp { lanes: 8 })),
    ];
    for (subnet, mut manager) in cases {
        let hosts = subnet.nodes().filter(|(_, node)| !node.is_switch()).count();
        let mut fabric = Fabric::new(subnet);
        let summary = start(&mut manager, &mut fabric);
        assert_eq!(summary.adapter_ports, hosts);
        assert_eq!(summary.requests as usize, fabric.sent);
        verify(&manager, &fabric);
    }
}

#[test]
fn a_second_sweep_writes_nothing() {
    let mut fabric = Fabric::new(fat_tree(4, 3).unwrap());
    let mut manager = manager(FatTree::default());
    start(&mut manager, &mut fabric);
    let summary = start(&mut manager, &mut fabric);
    assert_eq!(summary.writes, 0, "{summary:?}");
    verify(&manager, &fabric);
}

#[test]
fn losses_only_cost_time() {
    let mut fabric = Fabric::new(fat_tree(4, 3).unwrap());
    fabric.loss = 0.05;
    let settings = Settings {
        retries: 12,
        ..Settings::default()
    };
    let mut manager = Manager::new(settings, Box::new(FatTree::default()));
    let summary = start(&mut manager, &mut fabric);
    assert!(summary.requests > 1_000 / 2, "{summary:?}");
    verify(&manager, &fabric);
}

#[test]
fn a_lost_cable_is_repaired_by_a_few_requests() {
    let mut fabric = Fabric::new(fat_tree(8, 3).unwrap());
    let mut manager = manager(FatTree::default());
    let whole = start(&mut manager, &mut fabric);
    let leaf = fabric
        .subnet()
        .nodes()
        .find(|(_, node)| node.is_switch())
        .unwrap()
        .0;
    let port = PortRef {
        node: leaf,
        port: 5,
    };
    let peer = fabric.cut(port);
    let begin = Time::from_picos(1_000_000_000_000);
    for end in [port, peer] {
        manager.handle_smp(begin, &fabric.trap(end.node));
    }
    let (events, _) = run(&mut manager, &mut fabric, begin);
    let Some(Event::Up(repair)) = events.last() else {
        panic!("{events:?}")
    };
    assert!(
        repair.requests < whole.requests / 8,
        "{repair:?} against {whole:?}"
    );
    verify(&manager, &fabric);

    fabric.mend(port, peer);
    let begin = Time::from_picos(2_000_000_000_000);
    for end in [port, peer] {
        manager.handle_smp(begin, &fabric.trap(end.node));
    }
    let (events, _) = run(&mut manager, &mut fabric, begin);
    assert!(matches!(events.last(), Some(Event::Up(_))), "{events:?}");
    verify(&manager, &fabric);
    assert_eq!(
        manager.subnet().cables().count(),
        fabric.subnet().cables().count()
    );
}

#[test]
fn part_of_a_subnet_may_go_and_come_back() {
    let mut fabric = Fabric::new(torus(&[5], 2).unwrap());
    let mut manager = manager(MinHop);
    start(&mut manager, &mut fabric);
    let before: Vec<Lid> = manager
        .subnet()
        .end_ports()
        .map(|(_, port)| port.lid)
        .collect();
    let far = fabric.subnet().by_guid(Guid(0x20_0000 + 2)).unwrap();
    let near: Vec<(PortRef, PortRef)> = [1, 2]
        .map(|port| PortRef { node: far, port })
        .map(|port| (fabric.cut(port), port))
        .into();
    let begin = Time::from_picos(1_000_000_000_000);
    for (end, _) in &near {
        manager.handle_smp(begin, &fabric.trap(end.node));
    }
    let (events, _) = run(&mut manager, &mut fabric, begin);
    let Some(Event::Up(summary)) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!((summary.switches, summary.adapter_ports), (4, 8));
    verify(&manager, &fabric);
    // It has started anew, and knows nothing.
    let agent = fabric.emulated.agent_mut(far);
    agent.blocks.clear();
    agent.ports[0].lid = Lid(0);
    for (end, port) in near {
        fabric.mend(end, port);
        manager.handle_smp(begin, &fabric.trap(end.node));
    }
    let (events, _) = run(&mut manager, &mut fabric, begin);
    let Some(Event::Up(summary)) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!((summary.switches, summary.adapter_ports), (5, 10));
    verify(&manager, &fabric);
    let after: Vec<Lid> = manager
        .subnet()
        .end_ports()
        .map(|(_, port)| port.lid)
        .collect();
    assert_eq!(before, after, "identifiers stay");
}

#[test]
fn what_does_not_answer_is_named_and_left_out() {
    let mut fabric = Fabric::new(fat_tree(4, 2).unwrap());
    let dead = fabric
        .subnet()
        .nodes()
        .filter(|(_, node)| !node.is_switch())
        .nth(3)
        .unwrap()
        .0;
    fabric.silent.insert(dead);
    let mut manager = manager(MinHop);
    manager.start(Time::ZERO);
    let (events, _) = run(&mut manager, &mut fabric, Time::ZERO);
    let [Event::Problem(problem), Event::Up(summary)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        problem.to_string(),
        "what is cabled to port 2 of \"L1-00-01\" (0x0000000000200001) does not answer to Get(NodeInfo)"
    );
    assert_eq!(summary.adapter_ports, 7);
}

#[test]
fn unroutable_subnets_are_left_as_they_are() {
    let mut fabric = Fabric::new(torus(&[4, 4], 1).unwrap());
    let mut manager = manager(FatTree::default());
    manager.start(Time::ZERO);
    let (events, _) = run(&mut manager, &mut fabric, Time::ZERO);
    assert!(
        matches!(events[..], [Event::Failed(ManageError::Routing(_))]),
        "{events:?}"
    );
    assert!(fabric.is_untouched(), "nothing was programmed");
    assert!(fabric.subnet().nodes().all(|(node, _)| {
        fabric
            .emulated
            .agent(node)
            .ports
            .iter()
            .all(|port| port.lid == Lid(0))
    }));

    let own = fabric.own;
    fabric.silent.insert(own);
    let mut manager = self::manager(MinHop);
    manager.start(Time::ZERO);
    let (events, _) = run(&mut manager, &mut fabric, Time::ZERO);
    assert_eq!(events.last(), Some(&Event::Failed(ManageError::NoOwnNode)));
}

#[test]
fn what_switches_do_not_have_is_named_before_anything_is_written() {
    let failure = |engine: Manager, change: &dyn Fn(&mut Agent)| {
        let mut manager = engine;
        let mut fabric = Fabric::new(torus(&[4, 4], 1).unwrap());
        // The last of the switches, which come first.
        change(fabric.emulated.agent_mut(NodeId(9)));
        manager.start(Time::ZERO);
        let (events, _) = run(&mut manager, &mut fabric, Time::ZERO);
        let [Event::Failed(error)] = &events[..] else {
            panic!("{events:?}")
        };
        assert!(fabric.is_untouched());
        error.to_string()
    };
    let one_lane = |agent: &mut Agent| agent.ports[2].lane_capability = LaneCount::ONE;
    let message = failure(manager(Torus), &one_lane);
    assert!(
        message.starts_with("torus-2QoS uses 2 lanes, and port 2 of \"T-"),
        "{message}"
    );
    let message = failure(manager(MinHop), &|agent| agent.switch.linear_capacity = 20);
    assert!(
        message.starts_with("the highest identifier is 32, and the forwarding table of \"T-"),
        "{message}"
    );
}

#[test]
fn answers_of_nonsense_do_no_harm() {
    let mut fabric = Fabric::new(fat_tree(4, 2).unwrap());
    let mut manager = manager(MinHop);
    manager.start(Time::ZERO);
    let mut random = Random::from_seed(3);
    let mut now = Time::ZERO;
    for _ in 0..5_000 {
        while let Some(smp) = manager.poll_transmit(now) {
            let Some(mut answer) = fabric.serve(smp) else {
                continue;
            };
            if random.chance(0.3) {
                let at = random.below(64) as usize;
                answer.data[at] ^= random.bits() as u8;
            }
            if random.chance(0.05) {
                answer.attribute = random.below(0x20) as u16;
                answer.status = random.below(0x20) as u16;
            }
            manager.handle_smp(now, &answer);
            if random.chance(0.1) {
                manager.handle_smp(now, &answer);
            }
        }
        while let Some(event) = manager.poll_event() {
            if let Event::Problem(Problem::Silent { .. }) = event {
                manager.start(now);
            }
        }
        let Some(next) = manager.poll_timeout() else {
            break;
        };
        now = next;
        manager.handle_timeout(now);
    }
}

/// All records that answer a query.
fn table<A: Attribute + PartialEq>(manager: &Manager, mask: ComponentMask, record: &A) -> Vec<A> {
    let query = AdministrationMad::query(Method::GET_TABLE, mask, record);
    let answer = manager.inform(&query);
    assert_eq!(
        (answer.head.method, answer.head.status),
        (Method::GET_TABLE_RESPONSE, 0)
    );
    decode_table(&answer.table.unwrap(), answer.head.attribute_offset).unwrap()
}

#[test]
fn everything_known_can_be_asked_for() {
    let mut fabric = Fabric::new(torus(&[3, 4], 2).unwrap());
    let mut manager = manager(Torus);
    let busy = manager.inform(&AdministrationMad::query(
        Method::GET,
        ComponentMask::NONE,
        &NodeRecord::default(),
    ));
    assert_eq!(busy.head.status, status::BUSY);
    start(&mut manager, &mut fabric);
    let (hosts, switches, cables) = (24, 12, 24 + 24);
    let all = ComponentMask::NONE;
    let nodes = table(&manager, all, &NodeRecord::default());
    assert_eq!(nodes.len(), hosts + switches);
    assert!(
        nodes
            .iter()
            .any(|node| node.description.to_text() == "H-00003 HCA-1")
    );
    let only = component::<NodeRecord>("info", "node_type");
    let mut wanted = NodeRecord::default();
    wanted.info.node_type = NodeType::SWITCH;
    assert_eq!(table(&manager, only, &wanted).len(), switches);
    assert_eq!(
        table(&manager, all, &LinkRecord::default()).len(),
        2 * cables
    );
    assert_eq!(
        table(&manager, all, &SwitchInfoRecord::default()).len(),
        switches
    );
    // Eight external ports of a switch, and its port 0.
    let ports = table(&manager, all, &PortInfoRecord::default());
    assert_eq!(ports.len(), hosts + switches * 7);
    assert_eq!(table(&manager, all, &SmInfoRecord::default()).len(), 1);
    let (_, routes) = manager.routes().unwrap();
    let forwarding = table(&manager, all, &ForwardingRecord::default());
    assert_eq!(forwarding.len(), switches * routes.blocks());

    let get = |mask, record: &NodeRecord| {
        manager
            .inform(&AdministrationMad::query(Method::GET, mask, record))
            .head
    };
    assert_eq!(
        get(all, &NodeRecord::default()).status,
        status::TOO_MANY_RECORDS
    );
    let by_lid = component::<NodeRecord>("lid", "");
    assert_eq!(
        get(
            by_lid,
            &NodeRecord {
                lid: Lid(999),
                ..wanted
            }
        )
        .status,
        status::NO_RECORDS
    );
    let found = get(by_lid, &nodes[5]);
    assert_eq!(found.data_as::<NodeRecord>(), Some(nodes[5]));
    // No record, but a class's own.
    let notice = manager.inform(&AdministrationMad::query(
        Method::GET,
        all,
        &Notice::default(),
    ));
    assert_eq!(notice.head.status, status::UNSUPPORTED_ATTRIBUTE);
    // Tables of lanes: both rings of each switch; of partitions and GUIDs: all ends.
    let lanes = table(&manager, all, &VlArbitrationRecord::default());
    assert_eq!(lanes.len(), switches * 4);
    let levels = table(&manager, all, &LevelMapRecord::default());
    assert_eq!(levels.len(), switches * 6 * 7);
    let keys = table(&manager, all, &PartitionTableRecord::default());
    assert_eq!(keys.len(), hosts + switches);
    assert!(
        keys.iter()
            .all(|table| table.keys.keys[..2] == [PartitionKey(0xffff), PartitionKey(0)])
    );
    let guids = table(&manager, all, &GuidInfoRecord::default());
    assert_eq!(guids.len(), hosts + switches);
}

/// Who hears a packet to `lid` that `from` sends, by the tables of the switches.
fn hear(fabric: &Fabric, from: PortRef, lid: Lid) -> Vec<PortRef> {
    let mut heard = Vec::new();
    let mut flying = vec![fabric.subnet().port(from).peer().unwrap()];
    while let Some(at) = flying.pop() {
        if !fabric.subnet().node(at.node).is_switch() {
            heard.push(at);
            continue;
        }
        assert!(heard.len() < 1_000, "it goes round");
        let (block, entry) = ((lid.0 - 0xc000) / 32, (lid.0 - 0xc000) % 32);
        for port in (1..=fabric.subnet().node(at.node).ports).filter(|port| *port != at.port) {
            let table = &fabric.emulated.agent(at.node).multicast;
            let part = table.get(&(u32::from(port / 16) << 28 | u32::from(block)));
            if part.is_some_and(|part| part.ports[usize::from(entry)] >> (port % 16) & 1 != 0) {
                let out = PortRef {
                    node: at.node,
                    port,
                };
                flying.extend(fabric.subnet().port(out).peer());
            }
        }
    }
    heard.sort_unstable();
    heard
}

#[test]
fn groups_reach_their_members_also_after_a_repair() {
    let mut fabric = Fabric::new(fat_tree(4, 3).unwrap());
    let mut manager = manager(FatTree::default());
    start(&mut manager, &mut fabric);
    let hosts: Vec<PortRef> = fabric
        .subnet()
        .end_ports()
        .filter(|(end, _)| end.port == 1)
        .map(|(end, _)| end)
        .collect();
    let gid = |fabric: &Fabric, host: PortRef| fabric.subnet().port(host).guid.gid(0xfe80 << 48);
    let group = Gid([0xff; 16]);
    let mut mask = component::<MemberRecord>("group", "");
    for name in [
        "port",
        "join_state",
        "qkey",
        "partition",
        "level",
        "flow_label",
        "traffic_class",
    ] {
        mask = mask.with(component::<MemberRecord>(name, ""));
    }
    let wanted = |fabric: &Fabric, host| MemberRecord {
        group,
        port: gid(fabric, host),
        join_state: 1,
        qkey: 0xb1b,
        ..MemberRecord::default()
    };
    let members = [hosts[0], hosts[1], hosts[6], hosts[15]];
    let mut lids = BTreeSet::new();
    for member in members {
        let query = AdministrationMad::query(Method::SET, mask, &wanted(&fabric, member));
        let answer = manager.administer(&query).head;
        assert_eq!((answer.status, answer.method), (0, Method::GET_RESPONSE));
        lids.insert(answer.data_as::<MemberRecord>().unwrap().lid);
        run(&mut manager, &mut fabric, Time::ZERO);
    }
    assert_eq!(lids.len(), 1);
    let lid = *lids.first().unwrap();
    let verify = |fabric: &Fabric, members: &[PortRef]| {
        for sender in members {
            let others: Vec<PortRef> = members
                .iter()
                .copied()
                .filter(|other| other != sender)
                .collect();
            assert_eq!(hear(fabric, *sender, lid), others);
        }
    };
    verify(&fabric, &members);
    // A cable of the tree is lost.
    let switch = fabric.subnet().port(hosts[15]).peer().unwrap().node;
    let trunk = PortRef {
        node: switch,
        port: 3,
    };
    let peer = fabric.cut(trunk);
    for end in [trunk, peer] {
        manager.handle_smp(Time::ZERO, &fabric.trap(end.node));
    }
    run(&mut manager, &mut fabric, Time::ZERO);
    verify(&fabric, &members);
    // One leaves.
    let query = AdministrationMad::query(Method::DELETE, mask, &wanted(&fabric, hosts[6]));
    assert_eq!(manager.administer(&query).head.status, 0);
    run(&mut manager, &mut fabric, Time::ZERO);
    verify(&fabric, &[hosts[0], hosts[1], hosts[15]]);
    assert_eq!(
        table(&manager, ComponentMask::NONE, &MemberRecord::default()).len(),
        3
    );
    assert_eq!(
        manager.administer(&query).head.status,
        status::INVALID_REQUEST
    );
    // With another key, or too little, nobody gets in.
    let other = MemberRecord {
        qkey: 1,
        ..wanted(&fabric, hosts[3])
    };
    let query = AdministrationMad::query(Method::SET, mask, &other);
    assert_eq!(
        manager.administer(&query).head.status,
        status::INVALID_REQUEST
    );
    let unknown = MemberRecord {
        group: Gid([0xfe; 16]),
        ..other
    };
    let query = AdministrationMad::query(Method::SET, mask, &unknown);
    assert_eq!(manager.administer(&query).head.status, status::INVALID_GID);
}

#[test]
fn other_managers_learn_who_manages() {
    let mut fabric = Fabric::new(fat_tree(4, 2).unwrap());
    let settings = Settings {
        priority: 9,
        ..Settings::default()
    };
    let mut manager = Manager::new(settings, Box::new(MinHop));
    let ask = |manager: &mut Manager| {
        let question = Smp {
            transaction: 77,
            ..Smp::get::<SmInfo>(SmpRoute::Lid, 0)
        };
        manager.handle_smp(Time::ZERO, &question);
        let answer = manager.poll_transmit(Time::ZERO).unwrap();
        assert_eq!(
            (answer.transaction, answer.method),
            (77, Method::GET_RESPONSE)
        );
        answer.data_as::<SmInfo>().unwrap()
    };
    assert_eq!(ask(&mut manager).state, ManagerState::DISCOVERING);
    start(&mut manager, &mut fabric);
    let info = ask(&mut manager);
    let own = fabric
        .subnet()
        .port(PortRef {
            node: fabric.own,
            port: 1,
        })
        .guid;
    assert_eq!(
        (info.state, info.priority, info.guid),
        (ManagerState::MASTER, 9, own)
    );
    assert!(ask(&mut manager).activity > info.activity);
}

#[test]
fn paths_have_the_level_that_keeps_them_free() {
    let mut fabric = Fabric::new(torus(&[5, 4], 1).unwrap());
    let mut manager = manager(Torus);
    start(&mut manager, &mut fabric);
    let (view, routes) = manager.routes().unwrap();
    let hosts: Vec<_> = view
        .targets()
        .iter()
        .filter(|target| target.is_adapter())
        .collect();
    let source = component::<PathRecord>("source_lid", "");
    let destination = component::<PathRecord>("destination_gid", "");
    let mut levels = BTreeSet::new();
    for to in &hosts {
        let wanted = PathRecord {
            source_lid: hosts[0].lid,
            destination_gid: manager.subnet().port(to.end).guid.gid(0xfe80 << 48),
            ..PathRecord::default()
        };
        let paths = table(&manager, source.with(destination), &wanted);
        let [path] = paths[..] else {
            panic!("{paths:?}")
        };
        assert_eq!(path.destination_lid, to.lid);
        assert_eq!(
            path.level.as_u8(),
            routes.level(hosts[0].switch as usize, to.lid)
        );
        assert_eq!(
            (path.mtu, path.rate.rate()),
            (MtuCode::B4096, Some(softfabric_units::Rate::gbps(200)))
        );
        levels.insert(path.level);
    }
    assert_eq!(levels.len(), 4, "two rings, each crossed or not");
    // All destinations at once.
    let wanted = PathRecord {
        source_lid: hosts[0].lid,
        ..PathRecord::default()
    };
    assert_eq!(table(&manager, source, &wanted).len(), view.targets().len());
    // Faster than there is.
    let faster = PathRecord {
        rate: RateCode(21),
        rate_selector: Selector::GREATER,
        ..wanted
    };
    let rate =
        component::<PathRecord>("rate", "").with(component::<PathRecord>("rate_selector", ""));
    assert_eq!(table(&manager, source.with(rate), &faster).len(), 0);
    let slower = PathRecord {
        rate_selector: Selector::LESS,
        ..faster
    };
    assert_eq!(
        table(&manager, source.with(rate), &slower).len(),
        view.targets().len()
    );
    let nobody = manager.inform(&AdministrationMad::query(
        Method::GET,
        ComponentMask::NONE,
        &wanted,
    ));
    assert_eq!(nobody.head.status, status::INSUFFICIENT_COMPONENTS);
}
