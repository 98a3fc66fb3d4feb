//! The emulated fabric for itself: whom packets reach, what links do, and that no bytes do harm.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use softfabric_subnet::agent::{Delivery, Fabric, Packet};
use softfabric_subnet::format::read_topology;
use softfabric_subnet::generate::{fat_tree, torus};
use softfabric_subnet::ibsim::{Connect, Control, ControlKind, Data, Server, TIMED_OUT};
use softfabric_subnet::{NodeId, PortRef};
use softfabric_units::Lid;
use softfabric_wire::mad::performance::{PerformanceMad, PortCounters};
use softfabric_wire::mad::subnet::{
    DirectedRoute, ForwardingBlock, GuidInfo, Notice, PortInfo, SmInfo, Smp, SmpRoute, SwitchInfo,
    Trap,
};
use softfabric_wire::mad::{Attribute, Method, PhysicalState, PortState, status};

/// Two switches with a host each: host 2 - switch 0 - switch 1 - host 3.
fn fabric() -> Fabric {
    Fabric::new(torus(&[2], 1).unwrap())
}

const HOST: PortRef = PortRef {
    node: NodeId(2),
    port: 1,
};

fn directed(fabric: &mut Fabric, ports: &[u8], smp: Smp) -> Delivery {
    let route = SmpRoute::Directed(DirectedRoute::along(ports).unwrap());
    let packet = Packet {
        source: Lid::PERMISSIVE,
        destination: Lid::PERMISSIVE,
        mad: Smp { route, ..smp }.encode(),
    };
    fabric.send(HOST, &packet)
}

fn answer(fabric: &mut Fabric, ports: &[u8], smp: Smp) -> Smp {
    match directed(fabric, ports, smp) {
        Delivery::Answered(mad) => Smp::decode(&mad).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn set_port(fabric: &mut Fabric, ports: &[u8], modifier: u32, info: &PortInfo) -> u16 {
    answer(fabric, ports, Smp::set(SmpRoute::Lid, modifier, info)).status
}

/// Both hosts and both switches get identifiers, tables and active links.
fn configure(fabric: &mut Fabric) {
    let lids: [(&[u8], u32, u16); 4] = [
        (&[], 1, 1),
        (&[1], 0, 2),
        (&[1, 1], 0, 3),
        (&[1, 1, 3], 1, 4),
    ];
    for (ports, modifier, lid) in lids {
        let info = PortInfo {
            lid: Lid(lid),
            manager_lid: Lid(1),
            ..PortInfo::default()
        };
        assert_eq!(set_port(fabric, ports, modifier, &info), 0);
    }
    for (ports, table) in [(&[1][..], [255, 3, 0, 1, 1]), (&[1, 1], [255, 2, 2, 0, 3])] {
        let mut block = ForwardingBlock::EMPTY;
        block.ports[..5].copy_from_slice(&table);
        answer(fabric, ports, Smp::set(SmpRoute::Lid, 0, &block));
        let info = SwitchInfo {
            linear_top: 4,
            state_change: true,
            ..SwitchInfo::default()
        };
        answer(fabric, ports, Smp::set(SmpRoute::Lid, 0, &info));
    }
    for state in [PortState::ARMED, PortState::ACTIVE] {
        let info = |lid| PortInfo {
            state,
            lid: Lid(lid),
            manager_lid: Lid(1),
            ..PortInfo::default()
        };
        for port in 1..=3 {
            assert_eq!(set_port(fabric, &[1], port, &info(0)), 0);
            assert_eq!(set_port(fabric, &[1, 1], port, &info(0)), 0);
        }
        assert_eq!(set_port(fabric, &[], 1, &info(1)), 0);
        assert_eq!(set_port(fabric, &[1, 1, 3], 1, &info(4)), 0);
    }
}

fn counters_of(lid: u16) -> Packet {
    let request = PortCounters {
        port: 1,
        ..PortCounters::default()
    };
    let mad = PerformanceMad {
        method: Method::GET,
        status: 0,
        transaction: 5,
        attribute: PortCounters::ID,
        modifier: 0,
        data: request.to_bytes(),
    };
    Packet {
        source: Lid(1),
        destination: Lid(lid),
        mad: mad.encode(),
    }
}

#[test]
fn tables_and_states_decide_what_arrives() {
    let mut fabric = fabric();
    assert_eq!(fabric.send(HOST, &counters_of(4)), Delivery::Lost);
    configure(&mut fabric);
    let Delivery::Answered(mad) = fabric.send(HOST, &counters_of(4)) else {
        panic!("it is lost");
    };
    let counters = PerformanceMad::decode(&mad).unwrap();
    let counters = counters.data_as::<PortCounters>().unwrap();
    assert!(counters.receive_packets > 0);
    assert_eq!(counters.receive_data, 72 * counters.receive_packets);
    // Beyond the table, and round in circles.
    assert_eq!(fabric.send(HOST, &counters_of(5)), Delivery::Lost);
    let mut block = ForwardingBlock::EMPTY;
    block.ports[4] = 1;
    answer(&mut fabric, &[1, 1], Smp::set(SmpRoute::Lid, 0, &block));
    assert_eq!(fabric.send(HOST, &counters_of(4)), Delivery::Lost);
}

#[test]
fn states_go_one_after_another() {
    let mut fabric = fabric();
    let active = PortInfo {
        state: PortState::ACTIVE,
        ..PortInfo::default()
    };
    assert_eq!(
        set_port(&mut fabric, &[], 1, &active),
        status::INVALID_FIELD
    );
    assert_eq!(
        set_port(&mut fabric, &[], 2, &PortInfo::default()),
        status::INVALID_FIELD,
        "there is no such port"
    );
    configure(&mut fabric);
    // A port that is disabled takes its link down until it may look for the other end again.
    let physical = |physical_state| PortInfo {
        physical_state,
        ..PortInfo::default()
    };
    let state = |fabric: &mut Fabric| {
        let smp = answer(fabric, &[1], Smp::get::<PortInfo>(SmpRoute::Lid, 1));
        smp.data_as::<PortInfo>().unwrap().state
    };
    set_port(&mut fabric, &[1], 1, &physical(PhysicalState::DISABLED));
    assert_eq!(state(&mut fabric), PortState::DOWN);
    assert_eq!(
        directed(&mut fabric, &[1, 1], Smp::get::<PortInfo>(SmpRoute::Lid, 0)),
        Delivery::Lost
    );
    set_port(&mut fabric, &[1], 1, &physical(PhysicalState::POLLING));
    assert_eq!(state(&mut fabric), PortState::INITIALISE);
}

#[test]
fn switches_tell_the_manager_of_links() {
    let mut fabric = fabric();
    let link = PortRef {
        node: NodeId(0),
        port: 1,
    };
    let peer = fabric.cut(link).unwrap();
    assert_eq!(fabric.poll_trap(), None, "nobody to tell yet");
    fabric.mend(link, peer).unwrap();
    configure(&mut fabric);
    assert!(!fabric.agent(NodeId(0)).switch.state_change);
    let down = PortRef {
        node: NodeId(0),
        port: 2,
    };
    fabric.cut(down);
    assert!(fabric.agent(NodeId(0)).switch.state_change);
    let (from, packet) = fabric.poll_trap().unwrap();
    let Delivery::Arrived { at, mad } = fabric.send(from, &packet) else {
        panic!("it is lost");
    };
    assert_eq!(at, HOST);
    let notice = Notice::from_smp(&Smp::decode(&mad).unwrap().data);
    assert!(matches!(notice.trap(), Trap::LinkState(trap) if trap.lid == Lid(2)));
}

#[test]
fn keys_guard_ports() {
    let mut fabric = fabric();
    let locked = PortInfo {
        key: 7,
        key_protection: 1,
        ..PortInfo::default()
    };
    set_port(&mut fabric, &[], 1, &locked);
    let get = Smp::get::<PortInfo>(SmpRoute::Lid, 1);
    let seen = answer(&mut fabric, &[], get).data_as::<PortInfo>().unwrap();
    assert_eq!(seen.key, 0, "hidden");
    let set = Smp::set(SmpRoute::Lid, 1, &locked);
    assert_eq!(directed(&mut fabric, &[], set), Delivery::Lost);
    assert_eq!(fabric.agent(HOST.node).ports[1].key_violations, 1);
    assert_eq!(answer(&mut fabric, &[], Smp { key: 7, ..set }).status, 0);
    let seen = answer(&mut fabric, &[], Smp { key: 7, ..get });
    let seen = seen.data_as::<PortInfo>().unwrap();
    assert_eq!(
        (seen.key, seen.key_violations),
        (7, 0),
        "a Set writes the count"
    );
}

fn connect(server: &mut Server, id: u32, node: &str) -> u32 {
    let connect = Connect {
        id,
        queue_pair: 0,
        manager: false,
        node: node.to_owned(),
    };
    let control = Control {
        client: 0,
        kind: ControlKind::CONNECT,
        length: 44,
        data: connect.encode(),
    };
    let served = server.handle_control(&control);
    assert_eq!(served.refused, None);
    Connect::decode(&served.answer.data).id
}

/// What a manager is asked by another client reaches it, and its answer finds the way back.
#[test]
fn clients_reach_each_other() {
    let mut server = Server::new(Fabric::new(fat_tree(4, 2).unwrap()));
    let (manager, asker) = (connect(&mut server, 11, ""), connect(&mut server, 12, ""));
    let route = SmpRoute::Directed(DirectedRoute::along(&[]).unwrap());
    let ask = Data {
        destination: Lid::PERMISSIVE,
        source: Lid::PERMISSIVE,
        destination_qp: 0,
        source_qp: 0,
        status: 0,
        length: 256,
        mad: Smp::get::<SmInfo>(route, 0).encode(),
    };
    server.handle_data(asker as usize, &ask);
    let (to, lost) = server.poll_transmit().unwrap();
    assert_eq!(
        (to as u32, lost.status),
        (asker, TIMED_OUT),
        "nobody manages"
    );
    let mut is_manager = Control {
        client: manager,
        kind: ControlKind::SET_MANAGER,
        length: 4,
        data: [0; 64],
    };
    is_manager.data[0] = 1;
    server.handle_control(&is_manager);
    server.handle_data(asker as usize, &ask);
    let (to, question) = server.poll_transmit().unwrap();
    assert_eq!((to as u32, question.status), (manager, 0));
    let response = Smp::decode(&question.mad).unwrap().response(0, [3; 64]);
    let reply = Data {
        mad: response.encode(),
        ..question
    };
    server.handle_data(manager as usize, &reply);
    let (to, reply) = server.poll_transmit().unwrap();
    assert_eq!(
        (to as u32, Smp::decode(&reply.mad).unwrap().data),
        (asker, [3; 64])
    );
    let stranger = Connect {
        id: 13,
        queue_pair: 0,
        manager: false,
        node: "nobody".to_owned(),
    };
    let refused = server.handle_control(&Control {
        kind: ControlKind::CONNECT,
        data: stranger.encode(),
        ..is_manager
    });
    assert_eq!(refused.answer.kind, ControlKind::ERROR);
    assert_eq!(refused.refused.unwrap(), "no node is called \"nobody\"");
}

#[test]
fn a_fabric_without_ports_has_no_place_for_clients() {
    let adapter = "vendid=0x1\ndevid=0x1\nsysimgguid=0x1\ncaguid=0x1\nHca\t0 \"x\"\n";
    let fabric = Fabric::new(read_topology(adapter, "net").unwrap());
    let connect = Connect {
        id: 1,
        queue_pair: 0,
        manager: false,
        node: String::new(),
    };
    let refused = Server::new(fabric).handle_control(&Control {
        client: 0,
        kind: ControlKind::CONNECT,
        length: 64,
        data: connect.encode(),
    });
    assert_eq!(
        refused.refused.unwrap(),
        "the fabric has no port for clients"
    );
}

#[test]
fn clients_say_where_they_are_by_name_or_number() {
    let mut server = Server::new(fabric());
    let guid = server.fabric().subnet().node(HOST.node).guid.0;
    for (id, node) in [format!("{guid:#x}"), format!("{guid:#x}:1")]
        .into_iter()
        .enumerate()
    {
        let connect = Connect {
            id: id as u32,
            queue_pair: 0,
            manager: false,
            node: node.clone(),
        };
        let served = server.handle_control(&Control {
            client: 0,
            kind: ControlKind::CONNECT,
            length: 64,
            data: connect.encode(),
        });
        assert_eq!(
            served.answer.kind,
            ControlKind::CONNECT,
            "{node}: {:?}",
            served.refused
        );
    }
}

#[test]
fn guid_blocks_beyond_the_last_are_refused() {
    let get = Smp::get::<GuidInfo>(SmpRoute::Lid, 0x2000_0000);
    assert_eq!(
        answer(&mut fabric(), &[], get).status,
        status::INVALID_FIELD
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_datagram_does_harm(
        bytes in proptest::collection::vec(any::<u8>(), 256), class in 0_usize..6, method in 0_usize..4,
        attribute in 0_u8..0x40, known_modifier in any::<bool>(), hops in 0_u8..4,
    ) {
        let mut fabric = fabric();
        configure(&mut fabric);
        let mut mad: [u8; 256] = bytes.try_into().unwrap();
        let classes = [0x01, 0x81, 0x04, 0x21, 0x03, 0x77];
        let version = if class == 3 { 2 } else { 1 };
        mad[..4].copy_from_slice(&[1, classes[class], version, [1, 2, 5, 0x81][method]]);
        (mad[16], mad[17]) = (0, attribute);
        if known_modifier {
            mad[20..23].fill(0);
        }
        if class == 1 {
            (mad[6], mad[7]) = (0, hops);
            mad[32..36].fill(0xff);
        }
        for lid in [1, 2, 4, 0xffff] {
            let packet = Packet { source: Lid(1), destination: Lid(lid), mad };
            fabric.send(HOST, &packet);
            while let Some((from, trap)) = fabric.poll_trap() {
                fabric.send(from, &trap);
            }
        }
    }

    #[test]
    fn no_message_does_harm(control in proptest::collection::vec(any::<u8>(), 80), kind in 0_u8..12, slot in 0_u8..12) {
        let mut server = Server::new(fabric());
        connect(&mut server, 5, "");
        let mut control = control;
        control[..4].copy_from_slice(&0xdead_beef_u32.to_le_bytes());
        control[4..12].copy_from_slice(&[slot, 0, 0, 0, kind, 0, 0, 0]);
        server.handle_control(&Control::decode(&control).unwrap());
        let data = Data::decode(&[control.clone(), control.clone(), control.clone(), control[..48].to_vec()].concat()).unwrap();
        server.handle_data(usize::from(slot), &data);
    }
}
