//! Services that programs offer, and notices that they subscribe to.

use softfabric_subnet::generate::fat_tree;
use softfabric_subnet::manager::Manager;
use softfabric_subnet::routing::MinHop;
use softfabric_units::{Gid, Lid, PartitionKey, Qpn, Span, Time};
use softfabric_wire::mad::administration::{
    AdministrationMad, InformInfo, InformInfoRecord, ServiceRecord, component,
};
use softfabric_wire::mad::cm::ServiceId;
use softfabric_wire::mad::subnet::{GidTrap, Notice, Producer, Trap};
use softfabric_wire::mad::{ComponentMask, Method, status};

use super::{Fabric, manager, run, start, table};

fn hosts(manager: &Manager) -> Vec<(Lid, Gid)> {
    let ends = manager.subnet().end_ports();
    ends.filter(|(end, _)| end.port != 0)
        .map(|(_, port)| (port.lid, port.guid.gid(0xfe80 << 48)))
        .collect()
}

fn named(names: &[&str]) -> ComponentMask {
    names.iter().fold(ComponentMask::NONE, |mask, name| {
        mask.with(component::<ServiceRecord>(name, ""))
    })
}

#[test]
fn services_are_offered_for_a_time() {
    let mut fabric = Fabric::new(fat_tree(4, 2).unwrap());
    let mut manager = manager(MinHop);
    start(&mut manager, &mut fabric);
    let mut service = ServiceRecord {
        id: ServiceId(7),
        gid: hosts(&manager)[1].1,
        partition: PartitionKey::DEFAULT,
        lease: 10,
        key: [3; 16],
        ..ServiceRecord::default()
    };
    service.name[..4].copy_from_slice(b"tape");
    let who = named(&["id", "gid", "partition"]);
    let all = who.with(named(&["lease", "key", "name"]));
    let say = |manager: &mut Manager, method, mask, service: &ServiceRecord| {
        let head = manager
            .administer(&AdministrationMad::query(method, mask, service))
            .head;
        (head.method, head.status)
    };
    let told = say(&mut manager, Method::SET, named(&["id"]), &service);
    assert_eq!(told.1, status::INSUFFICIENT_COMPONENTS);
    let told = say(&mut manager, Method::SET, all, &service);
    assert_eq!(told, (Method::GET_RESPONSE, 0));
    let stranger = ServiceRecord {
        gid: Gid([9; 16]),
        ..service
    };
    let told = say(&mut manager, Method::SET, all, &stranger);
    assert_eq!(told.1, status::INVALID_GID);
    // Only who knows the key may change it.
    let thief = ServiceRecord {
        key: [4; 16],
        ..service
    };
    for method in [Method::SET, Method::DELETE] {
        assert_eq!(say(&mut manager, method, all, &thief).1, status::DENIED);
    }
    let found = table(&manager, named(&["name"]), &service);
    let shown = ServiceRecord {
        key: [0; 16],
        ..service
    };
    assert_eq!(found, [shown]);
    manager.poll_transmit(Time::ZERO + Span::millis(4_500));
    assert_eq!(table(&manager, who, &service)[0].lease, 6);
    manager.poll_transmit(Time::ZERO + Span::seconds(11));
    assert_eq!(table(&manager, who, &service), []);
    say(
        &mut manager,
        Method::SET,
        who.with(named(&["key"])),
        &service,
    );
    manager.poll_transmit(Time::ZERO + Span::seconds(1_000_000));
    assert_eq!(table(&manager, who, &service)[0].lease, u32::MAX);
    let told = say(&mut manager, Method::DELETE, all, &service);
    assert_eq!(told, (Method::DELETE_RESPONSE, 0));
    assert_eq!(table(&manager, who, &service), []);
    // Longer than time can be told.
    service.lease = u32::MAX - 1;
    let told = say(&mut manager, Method::SET, all, &service);
    assert_eq!(told, (Method::GET_RESPONSE, 0));
    assert_eq!(table(&manager, who, &service).len(), 1);
}

/// Everything from everywhere, unless changed.
fn everything() -> InformInfo {
    InformInfo {
        first_lid: Lid::PERMISSIVE,
        generic: 1,
        subscribe: 1,
        kind: u16::MAX,
        number: u16::MAX,
        qpn: Qpn::GENERAL_SERVICES,
        producer: Producer::new(0xff_ffff),
        ..InformInfo::default()
    }
}

fn subscribe(manager: &mut Manager, from: Lid, info: &InformInfo) -> u16 {
    let query = AdministrationMad::query(Method::SET, ComponentMask::NONE, info);
    manager.administer_from(&query, from).head.status
}

/// Who hears of which traps.
fn reports(manager: &mut Manager) -> Vec<(Lid, u16)> {
    std::iter::from_fn(|| manager.poll_report())
        .map(|report| {
            assert_eq!(report.mad.method, Method::REPORT);
            let notice = report.mad.data_as::<Notice>().unwrap();
            (report.to, notice.number)
        })
        .collect()
}

#[test]
fn who_subscribes_hears_of_it() {
    let mut fabric = Fabric::new(fat_tree(4, 2).unwrap());
    let mut manager = manager(MinHop);
    start(&mut manager, &mut fabric);
    let hosts = hosts(&manager);
    let links = InformInfo {
        number: 128,
        ..everything()
    };
    assert_eq!(subscribe(&mut manager, hosts[1].0, &everything()), 0);
    assert_eq!(subscribe(&mut manager, hosts[2].0, &links), 0);
    // Twice is once.
    assert_eq!(subscribe(&mut manager, hosts[2].0, &links), 0);
    let elsewhere = InformInfo {
        first_lid: Lid(0x4000),
        last_lid: Lid(0x4001),
        ..everything()
    };
    assert_eq!(subscribe(&mut manager, hosts[3].0, &elsewhere), 0);
    let records = table(&manager, ComponentMask::NONE, &InformInfoRecord::default());
    let subscribers: Vec<Gid> = records.iter().map(|record| record.subscriber).collect();
    assert_eq!(subscribers, [hosts[1].1, hosts[2].1, hosts[3].1]);

    // A host loses its cable: its switch tells, and the manager tells that the port is gone.
    let (host, _) = fabric
        .subnet()
        .end_ports()
        .filter(|(end, _)| end.port != 0)
        .last()
        .unwrap();
    let gone = fabric.subnet().port(host).guid.gid(0xfe80 << 48);
    let switch = fabric.cut(host);
    let trap = fabric.trap(switch.node);
    manager.handle_smp(Time::ZERO, &trap);
    let (_, now) = run(&mut manager, &mut fabric, Time::ZERO);
    let mut heard = Vec::new();
    while let Some(report) = manager.poll_report() {
        let notice = report.mad.data_as::<Notice>().unwrap();
        heard.push((report.to, notice.number));
        if notice.number == 65 {
            assert_eq!(notice.trap(), Trap::OutOfService(GidTrap { gid: gone }));
        }
    }
    assert_eq!(
        heard,
        [(hosts[1].0, 128), (hosts[2].0, 128), (hosts[1].0, 65)]
    );
    fabric.mend(host, switch);
    let trap = fabric.trap(switch.node);
    manager.handle_smp(now, &trap);
    run(&mut manager, &mut fabric, now);
    let heard = reports(&mut manager);
    assert_eq!(
        heard,
        [(hosts[1].0, 128), (hosts[2].0, 128), (hosts[1].0, 64)]
    );

    let stop = InformInfo {
        subscribe: 0,
        ..everything()
    };
    assert_eq!(subscribe(&mut manager, hosts[1].0, &stop), 0);
    let again = subscribe(&mut manager, hosts[1].0, &stop);
    assert_eq!(again, status::INVALID_REQUEST);
    manager.handle_smp(now, &trap);
    assert_eq!(reports(&mut manager), [(hosts[2].0, 128)]);
}
