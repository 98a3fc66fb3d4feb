//! Many connections over a network that loses, repeats and reorders: each is told once, and nothing stays behind.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use softfabric_units::Random;

use super::*;

const CONNECTIONS: u32 = 12;

/// What a program has heard of one connection.
#[derive(Clone, Copy, Default, Debug)]
struct Heard {
    replies: u32,
    ready: bool,
    established: u32,
    disconnected: u32,
    refused: u32,
    unreachable: u32,
    time_wait_over: u32,
}

/// What may be done to a connection later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Deed {
    Connect(u32),
    Accept,
    Reject,
    Ready,
    Disconnect,
    Destroy,
}

struct World {
    pair: Pair,
    random: Random,
    loss: f64,
    repetition: f64,
    /// Whether programs also lose interest at any time, or carry every connection through.
    fickle: bool,
    /// Datagrams on their way: when, a number, to whom.
    flying: BTreeMap<(Time, u64), (usize, Transmit)>,
    /// What programs will do: when, a number.
    deeds: BTreeMap<(Time, u64), (usize, CommunicationId, Deed)>,
    count: u64,
    heard: [BTreeMap<CommunicationId, Heard>; 2],
    destroyed: [BTreeSet<CommunicationId>; 2],
}

impl World {
    fn new(seed: u64, loss: f64, repetition: f64, fickle: bool) -> Self {
        let mut world = Self {
            pair: Pair::new(),
            random: Random::from_seed(seed),
            loss,
            repetition,
            fickle,
            flying: BTreeMap::new(),
            deeds: BTreeMap::new(),
            count: 0,
            heard: Default::default(),
            destroyed: Default::default(),
        };
        for number in 0..CONNECTIONS {
            let deed = Deed::Connect(number);
            world.later(ACTIVE, CommunicationId::default(), deed, 1_000);
        }
        world
    }

    fn after(&mut self, millis: u64) -> (Time, u64) {
        self.count += 1;
        let span = Span::micros(self.random.below(millis * 1_000 + 1));
        (self.pair.now + span, self.count)
    }

    fn later(&mut self, side: usize, name: CommunicationId, deed: Deed, millis: u64) {
        let key = self.after(millis);
        self.deeds.insert(key, (side, name, deed));
    }

    /// Runs until nothing is left to do.
    fn run(&mut self) {
        for _ in 0..100_000 {
            for side in [ACTIVE, PASSIVE] {
                self.collect(side);
            }
            let timers = self.pair.sides.iter().filter_map(Manager::poll_timeout);
            let flying = self.flying.keys().next().map(|(time, _)| *time);
            let deeds = self.deeds.keys().next().map(|(time, _)| *time);
            let Some(next) = timers.chain(flying).chain(deeds).min() else {
                return;
            };
            self.pair.now = self.pair.now.max(next);
            let now = self.pair.now;
            for side in &mut self.pair.sides {
                side.handle_timeout(now);
            }
            while let Some(entry) = self.flying.first_entry()
                && entry.key().0 <= now
            {
                let (to, transmit) = entry.remove();
                self.pair.inbox[to].push_back(transmit);
                self.pair.arrive(to);
            }
            while let Some(entry) = self.deeds.first_entry()
                && entry.key().0 <= now
            {
                let (side, name, deed) = entry.remove();
                self.act(side, name, deed);
            }
        }
        panic!("it never ends");
    }

    fn collect(&mut self, side: usize) {
        while let Some(transmit) = self.pair.sides[side].poll_transmit() {
            let copies = 1 + u32::from(self.random.chance(self.repetition));
            for _ in 0..copies {
                if !self.random.chance(self.loss) {
                    let key = self.after(20);
                    self.flying.insert(key, (1 - side, transmit.clone()));
                }
            }
        }
        while let Some(event) = self.pair.sides[side].poll_event() {
            self.hear(side, &event);
        }
    }

    fn hear(&mut self, side: usize, event: &Event) {
        let (name, change): (_, fn(&mut Heard)) = match event {
            Event::ConnectRequest { connection, .. } => {
                let rejects = self.fickle && self.random.chance(0.2);
                let deed = if rejects { Deed::Reject } else { Deed::Accept };
                self.later(side, *connection, deed, 300);
                assert!(!self.heard[side].contains_key(connection), "told twice");
                (*connection, |_| {})
            }
            Event::ConnectReply { connection, .. } => {
                let rejects = self.fickle && self.random.chance(0.2);
                let deed = if rejects { Deed::Reject } else { Deed::Ready };
                self.later(side, *connection, deed, 300);
                (*connection, |heard| heard.replies += 1)
            }
            Event::Established { connection } => {
                self.end_some_time(side, *connection);
                (*connection, |heard| heard.established += 1)
            }
            Event::Rejected { connection, .. } => {
                self.later(side, *connection, Deed::Destroy, 10);
                (*connection, |heard| heard.refused += 1)
            }
            Event::Unreachable { connection } => {
                self.later(side, *connection, Deed::Destroy, 10);
                (*connection, |heard| heard.unreachable += 1)
            }
            Event::Disconnected { connection, .. } => {
                if self.random.chance(0.5) {
                    self.later(side, *connection, Deed::Disconnect, 10);
                }
                self.later(side, *connection, Deed::Destroy, 2_000);
                (*connection, |heard| heard.disconnected += 1)
            }
            Event::TimeWaitOver { connection } => (*connection, |heard| heard.time_wait_over += 1),
            event => panic!("{event:?}"),
        };
        assert!(
            !self.destroyed[side].contains(&name),
            "{event:?} after its end"
        );
        change(self.heard[side].entry(name).or_default());
    }

    /// Either side may end what stands; at least one does.
    fn end_some_time(&mut self, side: usize, name: CommunicationId) {
        if side == ACTIVE || self.random.chance(0.5) {
            let destroys = self.fickle && self.random.chance(0.3);
            let deed = if destroys {
                Deed::Destroy
            } else {
                Deed::Disconnect
            };
            self.later(side, name, deed, 5_000);
        }
    }

    fn act(&mut self, side: usize, name: CommunicationId, deed: Deed) {
        if self.destroyed[side].contains(&name) {
            return;
        }
        let now = self.pair.now;
        let manager = &mut self.pair.sides[side];
        match deed {
            Deed::Connect(number) => {
                let name = manager.connect(now, way(1, 2), request(0x100 + number));
                let name = name.unwrap();
                self.heard[side].insert(name, Heard::default());
                if self.fickle && self.random.chance(0.2) {
                    self.later(side, name, Deed::Destroy, 500);
                }
            }
            // The other side may have given up meanwhile.
            Deed::Accept => {
                let number = self.heard[side].len() as u32;
                if manager.accept(now, name, reply(0x200 + number)).is_err() {
                    self.later(side, name, Deed::Destroy, 10);
                } else if self.fickle && self.random.chance(0.1) {
                    self.later(side, name, Deed::Destroy, 50);
                }
            }
            Deed::Reject => {
                let reason = RejectReason::CONSUMER;
                let _ = manager.reject(now, name, reason, PrivateData::default());
                self.later(side, name, Deed::Destroy, 10);
            }
            Deed::Ready => {
                if manager.ready(name, PrivateData::default()).is_ok() {
                    self.heard[side].entry(name).or_default().ready = true;
                    self.end_some_time(side, name);
                }
            }
            Deed::Disconnect => {
                let _ = manager.disconnect(now, name, PrivateData::default());
            }
            Deed::Destroy => {
                manager.destroy(now, name);
                self.destroyed[side].insert(name);
            }
        }
    }

    /// What holds in every world.
    fn check(&self) {
        for side in [ACTIVE, PASSIVE] {
            assert!(
                self.pair.sides[side].is_idle(),
                "side {side} keeps something"
            );
            for (name, heard) in &self.heard[side] {
                assert!(
                    [
                        heard.replies,
                        heard.established,
                        heard.disconnected,
                        heard.refused + heard.unreachable,
                        heard.time_wait_over,
                    ]
                    .iter()
                    .all(|count| *count <= 1),
                    "side {side}, {name:?}: {heard:?}"
                );
                let stood = heard.ready || heard.established == 1;
                assert!(heard.disconnected == 0 || stood, "{name:?}: {heard:?}");
                assert!(
                    heard.disconnected == 0 || heard.refused == 0,
                    "{name:?}: {heard:?}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Programs that carry every connection through get every one, whatever the network does.
    #[test]
    fn steady_programs_get_every_connection(seed in any::<u64>(), loss in 0.0..0.3, repetition in 0.0..0.3) {
        let mut world = World::new(seed, loss, repetition, false);
        world.run();
        world.check();
        for side in [ACTIVE, PASSIVE] {
            prop_assert_eq!(world.heard[side].len(), CONNECTIONS as usize);
            for (name, heard) in &world.heard[side] {
                let stood = if side == ACTIVE { u32::from(heard.ready) } else { heard.established };
                prop_assert_eq!((stood, heard.disconnected), (1, 1), "side {}, {:?}: {:?}", side, name, heard);
            }
        }
    }

    /// Programs that reject and lose interest at any time leave nothing behind either.
    #[test]
    fn fickle_programs_leave_nothing_behind(seed in any::<u64>(), loss in 0.0..0.4, repetition in 0.0..0.3) {
        let mut world = World::new(seed, loss, repetition, true);
        world.run();
        // Whoever still holds a connection when all is silent lets it go.
        for side in [ACTIVE, PASSIVE] {
            let names: Vec<_> = world.heard[side].keys().copied().collect();
            for name in names {
                world.act(side, name, Deed::Destroy);
            }
        }
        world.run();
        world.check();
    }

    /// Any datagrams, genuine or not, and any calls: no panic.
    #[test]
    fn any_datagrams_are_survived(
        mads in proptest::collection::vec((0x10_u8..0x1c, any::<[u8; 12]>(), any::<bool>()), 0..60),
    ) {
        let mut pair = Pair::new();
        let [active, passive] = pair.connected();
        let names = [active, passive, CommunicationId(0)];
        for (attribute, mut body, back) in mads {
            let side = usize::from(back);
            let mut mad = [0; 256];
            mad[..4].copy_from_slice(&[1, 7, 2, 3]);
            mad[17] = attribute;
            for at in [0, 4] {
                let name = names[usize::from(body[at]) % 3];
                body[at..at + 4].copy_from_slice(&name.0.to_be_bytes());
            }
            mad[24..36].copy_from_slice(&body);
            let way = if side == ACTIVE { way(1, 2) } else { way(2, 1) };
            let _ = pair.sides[side].handle_mad(pair.now, way, &mad);
            pair.sent(side);
            pair.inbox[1 - side].truncate(4);
            pair.arrive(1 - side);
            if body[9] < 64 && pair.sides[side].poll_timeout().is_some() {
                pair.wait(side);
            }
        }
        for side in [ACTIVE, PASSIVE] {
            pair.sides[side].shut_down(pair.now);
        }
        pair.wait_for_silence();
    }
}
