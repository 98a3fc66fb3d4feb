//! Partitions: ports get their keys, switches guard adapters, and paths are in partitions that both ends are in.

use softfabric_subnet::PortRef;
use softfabric_subnet::generate::{fat_tree, random};
use softfabric_subnet::manager::{Event, ManageError, Manager, Partitions};
use softfabric_subnet::routing::MinHop;
use softfabric_units::{Lid, Time};
use softfabric_wire::mad::administration::{PathRecord, component};

use super::{Fabric, manager, run, start, table};

/// Two tenants, and the manager in both.
const TENANTS: &str = "
Default=0x7fff : ALL=limited, SELF=full;
red=0x8001 : SELF=full, 0x100003=full, 0x100005=limited;
blue=0x2, defmember=limited : SELF=full, 0x100007, 0x100009;
";

fn keys(fabric: &Fabric, port: PortRef, number: u8) -> Option<Vec<u16>> {
    let agent = fabric.emulated.agent(port.node);
    let table = agent.partitions.get(&(u32::from(number) << 16))?;
    let used = table.keys.iter().map(|key| key.0);
    Some(used.filter(|key| *key != 0).collect())
}

#[test]
fn ports_get_their_keys_and_switches_guard_them() {
    let mut fabric = Fabric::new(fat_tree(4, 3).unwrap());
    let mut manager = manager(MinHop);
    manager.set_partitions(Partitions::read(TENANTS, "tenants").unwrap());
    start(&mut manager, &mut fabric);
    let mut found = Vec::new();
    for (end, port) in fabric.subnet().end_ports() {
        let own = keys(&fabric, end, end.port).unwrap();
        if end.port == 0 {
            assert_eq!(own, [0x7fff], "{end:?}");
            continue;
        }
        let guard = port.peer().unwrap();
        assert_eq!(keys(&fabric, guard, guard.port).as_ref(), Some(&own));
        let info = fabric.emulated.agent(guard.node).ports[usize::from(guard.port)];
        assert!(info.enforce_inbound && info.enforce_outbound, "{guard:?}");
        found.push(own);
    }
    assert_eq!(found[0], [0xffff, 0x8001, 0x8002]);
    assert_eq!(found[1..3], [[0x7fff, 0x8001], [0x7fff, 0x0001]]);
    assert_eq!(found[3..5], [[0x7fff, 0x0002], [0x7fff, 0x0002]]);
    assert!(found[5..].iter().all(|keys| keys == &[0x7fff]));
    // Between switches nothing is checked.
    for (left, right) in fabric.subnet().cables() {
        let info = fabric.emulated.agent(left.node).ports[usize::from(left.port)];
        let hosts = [left, right].map(|end| !fabric.subnet().node(end.node).is_switch());
        assert_eq!(info.enforce_inbound, hosts[1] && !hosts[0], "{left:?}");
    }
    manager.start(Time::ZERO);
    let (events, _) = run(&mut manager, &mut fabric, Time::ZERO);
    let [Event::Up(summary)] = events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(summary.writes, 0);
}

/// The partition of the path between two hosts, by their numbers.
fn shared(manager: &Manager, from: usize, to: usize) -> Option<u16> {
    let hosts: Vec<Lid> = {
        let mut hosts: Vec<_> = manager
            .subnet()
            .end_ports()
            .filter(|(end, _)| end.port != 0)
            .map(|(_, port)| (port.guid, port.lid))
            .collect();
        hosts.sort();
        hosts.into_iter().map(|(_, lid)| lid).collect()
    };
    let wanted = PathRecord {
        source_lid: hosts[from],
        destination_lid: hosts[to],
        ..PathRecord::default()
    };
    let mask = component::<PathRecord>("source_lid", "")
        .with(component::<PathRecord>("destination_lid", ""));
    let paths = table(manager, mask, &wanted);
    assert!(paths.len() <= 1);
    paths.first().map(|path| path.partition.0)
}

#[test]
fn paths_are_in_partitions_of_both_ends() {
    let mut fabric = Fabric::new(fat_tree(4, 3).unwrap());
    let mut manager = manager(MinHop);
    manager.set_partitions(Partitions::read(TENANTS, "tenants").unwrap());
    start(&mut manager, &mut fabric);
    assert_eq!(shared(&manager, 1, 2), Some(0x8001));
    assert_eq!(shared(&manager, 2, 1), Some(0x0001));
    assert_eq!(shared(&manager, 0, 3), Some(0xffff));
    // Other tenants, and limited members among each other.
    for (from, to) in [(1, 3), (3, 4), (2, 9), (10, 11)] {
        assert_eq!(shared(&manager, from, to), None, "{from} to {to}");
    }
}

#[test]
fn too_many_partitions_are_refused_before_anything_is_written() {
    let mut fabric = Fabric::new(random(6, 3, 1, 1).unwrap());
    let mut manager = manager(MinHop);
    let many: String = (1..40).map(|key| format!("{key} : ALL=full;\n")).collect();
    manager.set_partitions(Partitions::read(&many, "many").unwrap());
    manager.start(Time::ZERO);
    let (events, _) = run(&mut manager, &mut fabric, Time::ZERO);
    let [
        Event::Failed(ManageError::Partitions {
            needed: 40,
            available: 32,
            ..
        }),
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert!(fabric.is_untouched());
}
