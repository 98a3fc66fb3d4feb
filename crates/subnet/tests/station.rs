//! A manager at a port of an emulated subnet, behind ibsim's protocol, all in one process and without sockets: programs ask it,
//! and whatever comes to it, it goes on.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use softfabric_subnet::agent::Fabric;
use softfabric_subnet::generate::fat_tree;
use softfabric_subnet::ibsim::{Data, Joining, Progress, Server, TIMED_OUT};
use softfabric_subnet::manager::{Address, Event, Manager, Settings, Station, Summary};
use softfabric_subnet::routing::MinHop;
use softfabric_subnet::{PortRef, Subnet};
use softfabric_units::{Lid, Random, Span, Time};
use softfabric_wire::mad::administration::rmpp::{RmppPatience, RmppReceiver};
use softfabric_wire::mad::administration::{
    AdministrationMad, InformInfo, MemberRecord, NodeRecord, PathRecord, ServiceRecord,
    decode_table,
};
use softfabric_wire::mad::subnet::{Notice, SmInfo, Smp, SmpRoute};
use softfabric_wire::mad::{Attribute, ComponentMask, MAD_LENGTH, ManagerState, Method};

struct World {
    server: Server,
    station: Station,
    now: Time,
    /// What came to the other program.
    heard: Vec<Data>,
    ups: Vec<Summary>,
}

/// The slots of the manager and of the other program.
const MANAGER: usize = 0;
const PROGRAM: usize = 1;

fn join(server: &mut Server, id: u32, node: &str, manager: bool) {
    let mut joining = Joining::new(id, node, manager);
    loop {
        let served = server.handle_control(&joining.request());
        if let Progress::Done(_) = joining.handle(&served.answer).unwrap() {
            return;
        }
    }
}

impl World {
    fn new(subnet: Subnet) -> Self {
        let mut server = Server::new(Fabric::new(subnet));
        join(&mut server, 1, "H-00000", true);
        join(&mut server, 2, "H-00005", false);
        let patience = RmppPatience {
            timeout: Span::millis(100),
            retries: 2,
        };
        let manager = Manager::new(Settings::default(), Box::new(MinHop));
        let mut world = Self {
            server,
            station: Station::new(manager, patience),
            now: Time::ZERO,
            heard: Vec::new(),
            ups: Vec::new(),
        };
        world.station.manager_mut().start(Time::ZERO);
        world.run();
        assert_eq!(world.ups.len(), 1);
        world
    }

    /// Until nobody has anything to say any more.
    fn run(&mut self) {
        for _ in 0..1_000_000 {
            self.now += Span::nanos(100);
            let mut quiet = true;
            while let Some(out) = self.station.poll_transmit(self.now) {
                quiet = false;
                let data = Data::from(out);
                self.server
                    .handle_data(MANAGER, &Data::decode(&data.encode()).unwrap());
            }
            while let Some((slot, data)) = self.server.poll_transmit() {
                quiet = false;
                if slot != MANAGER {
                    self.heard.push(data);
                } else if data.status == TIMED_OUT {
                    self.station.handle_lost(&data.mad);
                } else {
                    let from = Address {
                        lid: data.source,
                        queue_pair: data.source_qp,
                    };
                    self.station.handle(self.now, from, &data.mad);
                }
            }
            while let Some(event) = self.station.manager_mut().poll_event() {
                if let Event::Up(summary) = event {
                    self.ups.push(summary);
                }
            }
            if quiet {
                let Some(due) = self.station.poll_timeout() else {
                    return;
                };
                self.now = self.now.max(due);
                self.station.handle_timeout(self.now);
            }
        }
        panic!("it never ends");
    }

    fn manager_lid(&self) -> Lid {
        let subnet = self.server.fabric().subnet();
        let node = subnet.find("H-00000").unwrap();
        self.server.fabric().lid(PortRef { node, port: 1 })
    }

    /// The other program sends something to the manager.
    fn say(&mut self, queue_pair: u32, mad: [u8; MAD_LENGTH]) {
        let data = Data::outgoing(self.manager_lid(), queue_pair, queue_pair, mad, MAD_LENGTH);
        self.server.handle_data(PROGRAM, &data);
    }

    /// All records, taken in parts.
    fn nodes(&mut self) -> Vec<NodeRecord> {
        let mut query = AdministrationMad::query(
            Method::GET_TABLE,
            ComponentMask::NONE,
            &NodeRecord::default(),
        );
        query.transaction = 77;
        self.heard.clear();
        self.say(1, query.encode());
        let mut receiver = RmppReceiver::new(56, 1 << 20);
        loop {
            // Nothing is late here: acknowledged before time passes.
            self.step();
            let Some(data) = self.heard.pop() else {
                panic!("no answer")
            };
            let received = receiver.handle(&data.mad, |mad| mad[3] = Method::GET_TABLE.0);
            if let Some(reply) = received.reply {
                self.say(1, *reply);
            }
            if let Some(message) = received.message {
                let head = AdministrationMad::decode(&message.first[..]).unwrap();
                self.run();
                return decode_table(&message.data, head.attribute_offset).unwrap();
            }
        }
    }

    /// The manager hears and says one thing.
    fn step(&mut self) {
        while self.heard.is_empty() {
            while let Some((slot, data)) = self.server.poll_transmit() {
                if slot != MANAGER {
                    self.heard.push(data);
                    continue;
                }
                let from = Address {
                    lid: data.source,
                    queue_pair: data.source_qp,
                };
                self.station.handle(self.now, from, &data.mad);
            }
            let Some(out) = self.station.poll_transmit(self.now) else {
                if self.heard.is_empty() {
                    return;
                }
                break;
            };
            let data = Data::from(out);
            self.server.handle_data(MANAGER, &data);
        }
    }
}

#[test]
fn programs_ask_over_the_wire() {
    let mut world = World::new(fat_tree(8, 3).unwrap());
    let summary = world.ups[0];
    assert_eq!((summary.switches, summary.lids), (80, 208));
    // 208 records of 112 bytes, in 117 parts.
    let nodes = world.nodes();
    assert_eq!(nodes.len(), 208);
    let info = Smp::get::<SmInfo>(SmpRoute::Lid, 0);
    world.say(0, info.encode());
    world.run();
    let answer = Smp::decode(&world.heard.last().unwrap().mad).unwrap();
    let info = answer.data_as::<SmInfo>().unwrap();
    assert_eq!(info.state, ManagerState::MASTER);
    // Who does not acknowledge is given up.
    let query = AdministrationMad::query(
        Method::GET_TABLE,
        ComponentMask::NONE,
        &NodeRecord::default(),
    );
    world.heard.clear();
    world.say(1, query.encode());
    world.run();
    assert_eq!(world.heard.len(), 3, "once, and twice again");
    assert!(world.station.is_quiet());
}

#[test]
fn a_lost_link_is_repaired_behind_the_protocol() {
    let mut world = World::new(fat_tree(8, 3).unwrap());
    let subnet = world.server.fabric().subnet().clone();
    let is_switch = |port: PortRef| subnet.node(port.node).is_switch();
    let cables: Vec<(PortRef, PortRef)> = subnet
        .cables()
        .filter(|(left, right)| is_switch(*left) && is_switch(*right))
        .collect();
    for (end, peer) in cables.iter().step_by(7) {
        let before = world.now;
        world.server.cut(*end);
        world.run();
        let repair = world.ups.last().unwrap();
        assert!(repair.writes < 200, "{repair:?}");
        // Nobody had to wait for a timeout.
        let took = world.now.as_picos() - before.as_picos();
        assert!(took < Span::millis(100).as_picos(), "{took} ps");
        world.server.mend(*end, *peer).unwrap();
        world.run();
        assert_eq!(world.nodes().len(), 208);
    }
}

#[test]
fn whatever_comes_the_manager_goes_on() {
    let mut world = World::new(fat_tree(4, 3).unwrap());
    let mut random = Random::from_seed(11);
    let query = |method, random: &mut Random| {
        let mask = ComponentMask(random.bits() & random.bits());
        match random.below(5) {
            0 => AdministrationMad::query(method, mask, &NodeRecord::default()),
            1 => AdministrationMad::query(method, mask, &PathRecord::default()),
            2 => AdministrationMad::query(method, mask, &MemberRecord::default()),
            3 => AdministrationMad::query(method, mask, &ServiceRecord::default()),
            _ => AdministrationMad::query(method, mask, &InformInfo::default()),
        }
    };
    let methods = [
        Method::GET,
        Method::SET,
        Method::GET_TABLE,
        Method::DELETE,
        Method::REPORT_RESPONSE,
        Method(0x14),
    ];
    let attributes = [
        NodeRecord::ID,
        0x12,
        0x20,
        0x31,
        0x33,
        0x35,
        0x36,
        0x38,
        0x13,
        0x17,
    ];
    for round in 0..4_000 {
        let (queue_pair, mut mad) = match random.below(4) {
            0 => (0, Smp::get::<SmInfo>(SmpRoute::Lid, 0).encode()),
            1 => {
                let mut trap = Smp::get::<Notice>(SmpRoute::Lid, 0);
                trap.method = Method::TRAP;
                (0, trap.encode())
            }
            _ => {
                let method = methods[random.below(methods.len() as u64) as usize];
                let mut query = query(method, &mut random);
                if random.chance(0.3) {
                    let which = random.below(attributes.len() as u64) as usize;
                    query.attribute = attributes[which];
                }
                (1, query.encode())
            }
        };
        for _ in 0..random.below(12) {
            mad[random.below(MAD_LENGTH as u64) as usize] ^= random.bits() as u8;
        }
        if random.chance(0.05) {
            for byte in &mut mad {
                *byte = random.bits() as u8;
            }
        }
        world.say(queue_pair, mad);
        // Not every time: some things meet others on their way.
        if round % 3 == 0 {
            world.run();
        }
    }
    world.run();
    let switches = 20;
    assert_eq!(world.nodes().len(), 16 + switches);
    let ups = world.ups.len();
    let end = world.server.fabric().subnet().cables().last().unwrap().0;
    world.server.cut(end);
    world.run();
    assert!(world.ups.len() > ups, "the repair");
}
