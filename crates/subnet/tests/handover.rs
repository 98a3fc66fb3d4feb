//! Several managers at one emulated subnet: one manages, the others stand by, hand over, and take over.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use softfabric_subnet::PortRef;
use softfabric_subnet::agent::Fabric;
use softfabric_subnet::generate::fat_tree;
use softfabric_subnet::ibsim::{Data, Joining, Progress, Server, TIMED_OUT};
use softfabric_subnet::manager::{Address, Cause, Event, Manager, Settings, Station};
use softfabric_subnet::routing::MinHop;
use softfabric_units::{Lid, Span, Time};
use softfabric_wire::mad::ManagerState;
use softfabric_wire::mad::administration::rmpp::RmppPatience;

struct World {
    server: Server,
    /// By slot; those that are gone stay silent.
    stations: Vec<Option<Station>>,
    now: Time,
    events: Vec<(usize, Event)>,
}

impl World {
    fn new() -> Self {
        Self {
            server: Server::new(Fabric::new(fat_tree(4, 3).unwrap())),
            stations: Vec::new(),
            now: Time::ZERO,
            events: Vec::new(),
        }
    }

    fn add(&mut self, node: &str, priority: u8) -> usize {
        let slot = self.stations.len();
        let mut joining = Joining::new(100 + slot as u32, node, true);
        loop {
            let served = self.server.handle_control(&joining.request());
            if let Progress::Done(joined) = joining.handle(&served.answer).unwrap() {
                assert_eq!(joined.slot as usize, slot);
                break;
            }
        }
        let settings = Settings {
            priority,
            sweep: Some(Span::seconds(10)),
            ..Settings::default()
        };
        let patience = RmppPatience {
            timeout: Span::seconds(1),
            retries: 0,
        };
        let mut manager = Manager::new(settings, Box::new(MinHop));
        manager.start(self.now);
        self.stations.push(Some(Station::new(manager, patience)));
        slot
    }

    fn state(&self, slot: usize) -> ManagerState {
        self.stations[slot].as_ref().unwrap().manager().state()
    }

    /// Lets time pass.
    fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let mut quiet = true;
            for slot in 0..self.stations.len() {
                let Some(station) = &mut self.stations[slot] else {
                    continue;
                };
                while let Some(out) = station.poll_transmit(self.now) {
                    quiet = false;
                    let data = Data::from(out);
                    self.server.handle_data(slot, &data);
                }
                while let Some(event) = station.manager_mut().poll_event() {
                    self.events.push((slot, event));
                }
            }
            while let Some((slot, data)) = self.server.poll_transmit() {
                quiet = false;
                let Some(Some(station)) = self.stations.get_mut(slot) else {
                    continue;
                };
                if data.status == TIMED_OUT {
                    station.handle_lost(&data.mad);
                } else {
                    let from = Address {
                        lid: data.source,
                        queue_pair: data.source_qp,
                    };
                    station.handle(self.now, from, &data.mad);
                }
            }
            if !quiet {
                self.now += Span::nanos(100);
                continue;
            }
            let stations = self.stations.iter().flatten();
            let due = stations.filter_map(Station::poll_timeout).min();
            match due.filter(|due| *due <= end) {
                Some(due) => self.now = self.now.max(due),
                None => {
                    self.now = self.now.max(end);
                    return;
                }
            }
            for station in self.stations.iter_mut().flatten() {
                station.handle_timeout(self.now);
            }
        }
    }

    fn vanish(&mut self, slot: usize) {
        self.stations[slot] = None;
        self.server.forget(slot);
    }

    /// What has happened since the last call.
    fn told(&mut self) -> Vec<(usize, Event)> {
        std::mem::take(&mut self.events)
    }

    /// Everybody's manager.
    fn check_master(&self, node: &str) {
        let fabric = self.server.fabric();
        let master = fabric.subnet().find(node).unwrap();
        let wanted = fabric.lid(PortRef {
            node: master,
            port: 1,
        });
        assert_ne!(wanted, Lid(0));
        for (end, _) in fabric.subnet().end_ports() {
            let info = fabric.agent(end.node).ports[usize::from(end.port)];
            assert_eq!(info.manager_lid, wanted, "{end:?}");
        }
    }
}

fn is_up(event: &Event) -> bool {
    matches!(event, Event::Up(summary) if summary.cause == Cause::Start)
}

#[test]
fn the_higher_one_gets_the_subnet_and_the_other_gets_it_back() {
    let mut world = World::new();
    let low = world.add("H-00000", 1);
    world.run(Span::seconds(1));
    assert!(matches!(&world.told()[..], [(0, event)] if is_up(event)));
    world.check_master("H-00000");

    let high = world.add("H-00009", 5);
    world.run(Span::millis(500));
    assert_eq!(world.state(high), ManagerState::STANDBY);
    assert_eq!(world.state(low), ManagerState::MASTER);
    let told = world.told();
    assert!(
        matches!(&told[..], [(1, Event::Standby { master })] if master.contains("H-00000")),
        "{told:?}"
    );

    // At its next sweep the lower one sees it, and hands over.
    world.run(Span::seconds(12));
    assert_eq!(world.state(low), ManagerState::STANDBY);
    assert_eq!(world.state(high), ManagerState::MASTER);
    let told = world.told();
    assert!(
        matches!(&told[..], [(0, Event::Standby { .. }), (1, event)] if is_up(event)),
        "{told:?}"
    );
    world.check_master("H-00009");

    // Both are content, however long.
    world.run(Span::seconds(100));
    assert_eq!(world.told(), []);

    world.vanish(high);
    world.run(Span::seconds(10));
    assert_eq!(world.state(low), ManagerState::MASTER);
    let told = world.told();
    assert!(
        matches!(&told[..], [(0, event)] if is_up(event)),
        "{told:?}"
    );
    world.check_master("H-00000");
}

#[test]
fn equal_priorities_are_decided_by_guid() {
    let mut world = World::new();
    let second = world.add("H-00009", 0);
    let first = world.add("H-00000", 0);
    // At once, and not only when the wrong one looks around.
    world.run(Span::seconds(5));
    assert_eq!(world.state(first), ManagerState::MASTER);
    world.run(Span::seconds(60));
    assert_eq!(world.state(first), ManagerState::MASTER);
    assert_eq!(world.state(second), ManagerState::STANDBY);
    world.check_master("H-00000");
}

#[test]
fn what_no_trap_tells_is_found_by_looking() {
    let mut world = World::new();
    world.add("H-00000", 0);
    world.run(Span::seconds(1));
    world.told();
    let subnet = world.server.fabric().subnet();
    let end = subnet.cables().last().unwrap().0;
    world.server.cut(end);
    // The traps are lost.
    while world.server.poll_transmit().is_some() {}
    world.run(Span::seconds(5));
    assert_eq!(world.told(), []);
    world.run(Span::seconds(10));
    let told = world.told();
    assert!(
        matches!(&told[..], [(0, Event::Up(summary))] if summary.cause == Cause::Change),
        "{told:?}"
    );
    // Nothing more to tell.
    world.run(Span::seconds(60));
    assert_eq!(world.told(), []);
}
