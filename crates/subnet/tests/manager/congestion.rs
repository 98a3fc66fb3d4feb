//! Congestion control: switches and adapters get their settings once ports are up, again when they come back, and only then.

use softfabric_subnet::PortRef;
use softfabric_subnet::generate::{fat_tree, torus};
use softfabric_subnet::manager::{CongestionControl, Event, Manager, Options, Settings, Summary};
use softfabric_subnet::routing::MinHop;
use softfabric_units::{Random, Time};
use softfabric_wire::mad::PortState;
use softfabric_wire::mad::congestion::ControlTableEntry;

use super::{Fabric, manager, run};

/// 100 entries: two blocks.
fn options() -> String {
    let table: Vec<String> = (0..100).map(|index| format!("1:{}", index * 3)).collect();
    format!(
        "congestion_control TRUE\ncc_sw_cong_setting_control_map 0x1f\ncc_sw_cong_setting_victim_mask 0xff\n\
         cc_sw_cong_setting_threshold 11\ncc_sw_cong_setting_packet_size 8\ncc_sw_cong_setting_marking_rate 7\n\
         cc_sw_port_cong_setting 0x200001 3 9 4 100\n\
         cc_ca_cong_setting_control_map 0x3\ncc_ca_cong_setting_ccti_timer 0 150\n\
         cc_ca_cong_setting_ccti_increase 1 2\ncc_ca_cong_setting_ccti_min 2 9\ncc_cct {}\n",
        table.join(",")
    )
}

fn settings() -> CongestionControl {
    let options = Options::read(&options(), "options").unwrap();
    assert_eq!(options.quality, None);
    options.congestion.unwrap()
}

fn congested(settings: CongestionControl) -> Manager {
    let mut manager = manager(MinHop);
    manager.set_congestion(settings);
    manager
}

fn start(manager: &mut Manager, fabric: &mut Fabric) -> (Vec<Event>, Summary) {
    manager.start(Time::ZERO);
    let (mut events, _) = run(manager, fabric, Time::ZERO);
    let Some(Event::Up(summary)) = events.pop() else {
        panic!("{events:?}")
    };
    (events, summary)
}

/// All nodes but those in `without` hold the settings, and those hold none.
fn verify(fabric: &Fabric, without: &[&str]) {
    for (number, node) in fabric.subnet().nodes() {
        let held = &fabric.emulated.agent(number).congestion;
        if without.contains(&node.id.as_str()) {
            assert_eq!(held, &Default::default(), "{}", node.id);
            continue;
        }
        if node.is_switch() {
            assert_eq!((held.switch.threshold, held.switch.packet_size), (11, 8));
            assert_eq!(held.switch.marking_rate, 7, "{}", node.id);
            assert_eq!(held.switch.victim_mask[31], 0xff);
            if node.guid.0 == 0x20_0001 {
                let port = held.ports[&0].ports[3];
                assert!(port.valid && !held.ports[&0].ports[2].valid);
                assert_eq!(
                    (port.threshold, port.packet_size, port.parameter),
                    (9, 4, 100)
                );
            } else {
                assert!(held.ports.is_empty());
            }
            continue;
        }
        assert_eq!(
            (held.adapter.control_map, held.adapter.levels[0].timer),
            (3, 150)
        );
        assert_eq!(held.adapter.levels[1].increase, 2, "{}", node.id);
        assert_eq!(held.adapter.levels[2].minimum, 0, "the map leaves it out");
        let [first, second] = [0, 1].map(|block| &held.table[&block]);
        assert_eq!((first.limit, second.limit), (99, 99));
        let entry = |multiplier| ControlTableEntry {
            shift: 1,
            multiplier,
        };
        assert_eq!(
            (first.entries[63], second.entries[35]),
            (entry(189), entry(297))
        );
        assert_eq!(second.entries[36], ControlTableEntry::default());
    }
}

#[test]
fn nodes_get_their_settings_once() {
    let mut fabric = Fabric::new(fat_tree(4, 3).unwrap());
    let mut plain = manager(MinHop);
    let (_, without) = start(&mut plain, &mut fabric);
    verify_nothing(&fabric);
    let mut fabric = Fabric::new(fat_tree(4, 3).unwrap());
    let mut manager = congested(settings());
    let (events, summary) = start(&mut manager, &mut fabric);
    assert_eq!(events, []);
    verify(&fabric, &[]);
    // 20 switches, one of them with a port of its own; 16 adapters with a setting and two blocks.
    let (nodes, written) = (36, 20 + 1 + 16 * 3);
    assert_eq!(summary.writes, without.writes + written);
    assert_eq!(summary.requests, without.requests + nodes + written);
    let (_, again) = start(&mut manager, &mut fabric);
    assert_eq!(again.writes, 0);
}

fn verify_nothing(fabric: &Fabric) {
    let mut nodes = fabric.subnet().nodes();
    assert!(nodes.all(|(node, _)| fabric.emulated.agent(node).congestion == Default::default()));
}

#[test]
fn who_comes_back_gets_them_again() {
    let mut fabric = Fabric::new(torus(&[5], 2).unwrap());
    let mut manager = congested(settings());
    start(&mut manager, &mut fabric);
    verify(&fabric, &[]);
    let begin = Time::from_picos(1_000_000_000_000);
    // A host whose link goes down and up, and a switch with its hosts that is gone for a while.
    let host = {
        let ends = fabric.subnet().end_ports().map(|(end, _)| end);
        ends.filter(|end| end.port == 1).last().unwrap()
    };
    let peer = fabric.cut(host);
    fabric.emulated.agent_mut(host.node).congestion = Default::default();
    fabric.mend(host, peer);
    manager.handle_smp(begin, &fabric.trap(peer.node));
    let (events, _) = run(&mut manager, &mut fabric, begin);
    let Some(Event::Up(summary)) = events.last() else {
        panic!("{events:?}")
    };
    assert!(summary.writes < 10, "{summary:?}");
    verify(&fabric, &[]);

    let far = fabric
        .subnet()
        .by_guid(softfabric_units::Guid(0x20_0002))
        .unwrap();
    let cables = [1, 2].map(|port| PortRef { node: far, port });
    let peers = cables.map(|port| fabric.cut(port));
    for peer in peers {
        manager.handle_smp(begin, &fabric.trap(peer.node));
    }
    run(&mut manager, &mut fabric, begin);
    let agent = fabric.emulated.agent_mut(far);
    agent.congestion = Default::default();
    agent.blocks.clear();
    for (port, peer) in cables.into_iter().zip(peers) {
        fabric.mend(peer, port);
        manager.handle_smp(begin, &fabric.trap(peer.node));
    }
    let (events, _) = run(&mut manager, &mut fabric, begin);
    assert!(matches!(events.last(), Some(Event::Up(_))), "{events:?}");
    verify(&fabric, &[]);
}

#[test]
fn losses_only_cost_time_and_who_has_none_is_left_alone() {
    let mut fabric = Fabric::new(fat_tree(4, 2).unwrap());
    fabric.loss = 0.1;
    let mut manager = Manager::new(
        Settings {
            retries: 20,
            ..Settings::default()
        },
        Box::new(MinHop),
    );
    manager.set_congestion(settings());
    start(&mut manager, &mut fabric);
    verify(&fabric, &[]);

    let mut fabric = Fabric::new(fat_tree(4, 2).unwrap());
    let deaf = fabric.subnet().find("H-00003").unwrap();
    fabric.deaf.insert(deaf);
    let mut manager = congested(settings());
    let (events, _) = start(&mut manager, &mut fabric);
    let [Event::Problem(problem)] = &events[..] else {
        panic!("{events:?}")
    };
    assert!(
        problem.to_string().starts_with("\"H-00003 HCA-1\"")
            && problem
                .to_string()
                .ends_with("does not answer to Get(CongestionInfo)"),
        "{problem}"
    );
    verify(&fabric, &["H-00003"]);
    assert_eq!(
        fabric.emulated.agent(deaf).ports[1].state,
        PortState::ACTIVE
    );
    // A repair elsewhere does not ask it again.
    let end = fabric.subnet().cables().next().unwrap().0;
    let end = if fabric.subnet().node(end.node).is_switch() {
        end
    } else {
        fabric.subnet().port(end).peer().unwrap()
    };
    let begin = Time::from_picos(1_000_000_000_000);
    manager.handle_smp(begin, &fabric.trap(end.node));
    let (events, _) = run(&mut manager, &mut fabric, begin);
    assert!(matches!(events[..], [Event::Up(_)]), "{events:?}");
}

#[test]
fn keys_and_tables_that_do_not_fit_are_told() {
    // Nodes with another key do not answer.
    let mut fabric = Fabric::new(fat_tree(4, 2).unwrap());
    let guarded = fabric.subnet().find("H-00003").unwrap();
    let mut keyed = settings();
    keyed.key = 5;
    fabric.emulated.agent_mut(guarded).congestion.key.key = 6;
    let mut manager = congested(keyed.clone());
    let (events, _) = start(&mut manager, &mut fabric);
    let told: Vec<String> = events
        .iter()
        .map(|event| match event {
            Event::Problem(problem) => problem.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told.len(), 3, "the setting and two blocks: {told:?}");
    let of = |what: &str| told.iter().filter(|told| told.contains(what)).count();
    assert_eq!(
        of("does not answer to Set(CACongestionSetting)"),
        1,
        "{told:?}"
    );
    assert_eq!(
        of("does not answer to Set(CongestionControlTable)"),
        2,
        "{told:?}"
    );
    assert!(fabric.emulated.agent(guarded).congestion.table.is_empty());
    // With the right one they do.
    fabric.emulated.agent_mut(guarded).congestion.key.key = 5;
    let (events, _) = start(&mut manager, &mut fabric);
    assert_eq!(events, []);
    fabric.emulated.agent_mut(guarded).congestion.key = Default::default();
    let held = fabric.emulated.agent(guarded).congestion.table.len();
    assert_eq!(held, 2);

    // Adapters have room for 128 entries.
    let mut long = settings();
    long.table = vec![ControlTableEntry::default(); 129];
    let mut fabric = Fabric::new(fat_tree(4, 2).unwrap());
    let (events, _) = start(&mut congested(long), &mut fabric);
    assert_eq!(events.len(), 8);
    let Event::Problem(problem) = &events[0] else {
        panic!("{events:?}")
    };
    let told = problem.to_string();
    assert!(
        told.contains("has room for 128 entries, and 129 are given"),
        "{told}"
    );
    for (node, described) in fabric.subnet().nodes() {
        let held = &fabric.emulated.agent(node).congestion;
        assert!(
            described.is_switch() || held.table.is_empty() && held.adapter == Default::default()
        );
    }
}

#[test]
fn whatever_nodes_answer_the_manager_goes_on() {
    let mut random = Random::from_seed(17);
    for round in 0..60 {
        let mut fabric = Fabric::new(fat_tree(4, 2).unwrap());
        let mut manager = congested(settings());
        let mut now = Time::ZERO;
        manager.start(now);
        let mut ups = 0;
        for _ in 0..3_000 {
            while let Some(smp) = manager.poll_transmit(now) {
                let answer = fabric.serve(smp).unwrap();
                manager.handle_smp(now, &answer);
            }
            while let Some((to, mad)) = manager.poll_congestion(now) {
                let mut answer = fabric.serve_congestion(to, &mad).unwrap();
                if random.chance(0.4) {
                    for _ in 0..=random.below(16) {
                        answer.data[random.below(192) as usize] = random.bits() as u8;
                    }
                    if random.chance(0.3) {
                        answer.status = random.bits() as u16;
                        answer.attribute = 0x10 + random.below(10) as u16;
                    }
                    if random.chance(0.2) {
                        answer.transaction ^= random.below(4);
                    }
                }
                manager.handle_congestion(now, &answer);
                if random.chance(0.1) {
                    manager.handle_congestion(now, &answer);
                }
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
    }
}
