//! The devices, their objects, and the actions that chance chooses.

use softfabric_testkit::{A, B, ByteMemory, Faults, Pair, Side, path_to};
use softfabric_transport::{
    Access, AckTimeout, Completion, CompletionQueueId, Datagram, Domain, Event, LocalSegment,
    LocalSegments, Modify, QueuePairInit, QueuePairType, ReceiveRequest, RegionInit, Remote,
    RnrRetry, SendFlags, SendOperation, SendRequest, SharedQueueId, SharedQueueInit, State,
    XrcQueueInit,
};
use softfabric_units::{Psn, Qpn, Random, Span};
use softfabric_wire::rdma::RnrTimer;

use crate::scene::{MEMORY, Scene};

const QKEY: u32 = 0x1234;

/// What is wrong with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Defect {
    None,
    /// Its local memory is not what the key allows.
    Local,
    /// The peer's memory is not.
    Remote,
    /// It names a shared receive queue that the target does not reach.
    Queue,
}

/// A request that was posted to a send queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    pub(crate) id: u64,
    pub(crate) operation: SendOperation,
    pub(crate) length: u32,
    /// Where the local memory starts: one range, whatever pieces it is posted in.
    pub(crate) local: u64,
    pub(crate) remote: u64,
    pub(crate) signaled: bool,
    pub(crate) solicited: bool,
    pub(crate) defect: Defect,
    /// Of XRC: which of the peer's shared receive queues.
    pub(crate) named: usize,
    /// How often the send queue had been brought back from SQE.
    pub(crate) epoch: u32,
    /// It was posted in SQE or ERR.
    pub(crate) too_late: bool,
}

impl Posted {
    pub(crate) fn takes_receive(&self) -> bool {
        matches!(
            self.operation,
            SendOperation::Send
                | SendOperation::SendImmediate(_)
                | SendOperation::WriteImmediate(..)
        )
    }

    pub(crate) fn is_send(&self) -> bool {
        matches!(
            self.operation,
            SendOperation::Send | SendOperation::SendImmediate(_)
        )
    }

    pub(crate) fn immediate(&self) -> Option<u32> {
        match self.operation {
            SendOperation::SendImmediate(data) | SendOperation::WriteImmediate(_, data) => {
                Some(data)
            }
            _ => None,
        }
    }
}

/// A request that was posted to a receive queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receive {
    pub(crate) id: u64,
    pub(crate) address: u64,
    pub(crate) room: u32,
    /// The memory is not what the key allows.
    pub(crate) defect: bool,
    pub(crate) completed: bool,
}

/// A shared receive queue of a side.
pub(crate) struct Shared {
    pub(crate) id: SharedQueueId,
    /// Of XRC.
    pub(crate) number: u32,
    pub(crate) receives: Vec<Receive>,
}

/// One side's objects, and what it has told.
pub(crate) struct Corner {
    pub(crate) domain: Domain,
    pub(crate) key: u32,
    /// Opens the same memory for reading by the device alone.
    weak_key: u32,
    queues: Vec<CompletionQueueId>,
    pub(crate) shared: Vec<Shared>,
    pub(crate) named: Vec<Shared>,
    xrc: softfabric_transport::XrcDomain,
    /// The number of a shared receive queue of another XRC domain.
    foreign: u32,
    pub(crate) log: Vec<Completion>,
    pub(crate) events: Vec<Event>,
    /// How often a completion queue was asked for an event.
    pub(crate) asked: usize,
    /// The memory as it was when the phase began.
    pub(crate) before: Vec<u8>,
    next: u64,
}

impl Corner {
    /// How many completion queues have told of completions.
    pub(crate) fn told(&self) -> usize {
        let events = self.events.iter();
        events
            .filter(|event| matches!(event, Event::Completion(_)))
            .count()
    }
}

/// Two queue pairs that talk to each other.
pub(crate) struct Link {
    pub(crate) service: QueuePairType,
    pub(crate) qps: [Qpn; 2],
    /// The side that sends, of XRC.
    pub(crate) from: Side,
    pub(crate) signal_all: bool,
    /// Which shared receive queue of its side each receives through.
    pub(crate) shared: [Option<usize>; 2],
    /// An 8-byte word at each side, for atomics of the other.
    pub(crate) words: [u64; 2],
    pub(crate) posted: [Vec<Posted>; 2],
    pub(crate) receives: [Vec<Receive>; 2],
    /// Room for one receive request for each message that was sent to a side, and which queue of XRC it goes to.
    spares: [Vec<(usize, u64)>; 2],
    /// The queue pair was put into the error state.
    pub(crate) forced: [bool; 2],
    pub(crate) epochs: [u32; 2],
}

impl Link {
    pub(crate) fn is_reliable(&self) -> bool {
        self.service.is_reliable()
    }

    pub(crate) fn is_extended(&self) -> bool {
        self.service.is_extended()
    }
}

pub(crate) struct World {
    pub(crate) scene: Scene,
    pub(crate) pair: Pair<ByteMemory>,
    pub(crate) corners: [Corner; 2],
    pub(crate) links: Vec<Link>,
    /// The wire has died in this phase.
    pub(crate) dead: bool,
    random: Random,
    ids: u64,
}

fn corner(pair: &mut Pair<ByteMemory>, side: Side, random: &mut Random) -> Corner {
    let end = &mut pair.ends[side];
    let (device, domain) = (&mut end.device, end.domain);
    let weak = RegionInit::new(0, MEMORY as u64, Access::REMOTE_READ);
    let weak_key = device.register_memory(domain, &weak).expect("it fits");
    let mut cq = || device.create_cq(1 << 16).expect("within limits");
    let queues = vec![cq(), cq(), cq()];
    let init = SharedQueueInit {
        domain,
        depth: 1 << 12,
        segments: 4,
    };
    let queue = |id, number| Shared {
        id,
        number,
        receives: Vec::new(),
    };
    let shared = [(); 2].map(|()| queue(device.create_srq(init).expect("small"), 0));
    let (xrc, other) = (device.alloc_xrc_domain(), device.alloc_xrc_domain());
    let mut make = |domain, completions| {
        let of = XrcQueueInit {
            domain,
            completions,
        };
        let id = device.create_xrc_srq(init, of).expect("small");
        let status = device.query_srq(id).expect("there");
        queue(id, status.number.expect("of XRC"))
    };
    let named = vec![make(xrc, queues[1]), make(xrc, queues[2])];
    let foreign = make(other, queues[0]).number;
    let bytes: Vec<u8> = (0..MEMORY / 8)
        .flat_map(|_| random.bits().to_ne_bytes())
        .collect();
    device
        .memory_mut()
        .slice_mut(0, MEMORY)
        .copy_from_slice(&bytes);
    Corner {
        domain,
        key: end.key,
        weak_key,
        queues,
        shared: shared.into(),
        named,
        xrc,
        foreign,
        log: Vec::new(),
        events: Vec::new(),
        asked: 0,
        before: bytes,
        next: 0,
    }
}

impl World {
    pub(crate) fn new(scene: Scene) -> Self {
        let mut random = Random::stream(scene.seed, 1);
        let service = QueuePairType::ReliableConnection;
        let mut pair = Pair::unconnected(service, scene.options(), |_, _| {});
        let corners = [A, B].map(|side| corner(&mut pair, side, &mut random));
        let mut world = Self {
            scene,
            pair,
            corners,
            links: Vec::new(),
            dead: false,
            random,
            ids: 0,
        };
        for _link in 0..scene.links {
            let link = world.link();
            world.links.push(link);
        }
        world
    }

    fn pick(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn link(&mut self) -> Link {
        let from = self.pick(2);
        let signal_all = self.random.chance(0.2);
        let service = match self.pick(20) {
            0..10 => QueuePairType::ReliableConnection,
            10..13 => QueuePairType::UnreliableConnection,
            13..15 => QueuePairType::UnreliableDatagram,
            _ => QueuePairType::XrcInitiator,
        };
        let mut shared = [None; 2];
        let qps = [A, B].map(|side| {
            let (first, second) = (self.pick(3), self.pick(3));
            let corner = &self.corners[side];
            let queue = corner.queues[first];
            let mut init = match (service, side == from) {
                (QueuePairType::XrcInitiator, false) => QueuePairInit::xrc_target(corner.xrc),
                _ => QueuePairInit::new(service, corner.domain, queue),
            };
            if init.xrc.is_none() {
                init.receive_queue = corner.queues[second];
            }
            init.signal_all = signal_all;
            if service.takes_receives() && self.random.chance(0.4) {
                let which = self.pick(2);
                shared[side] = Some(which);
                init.shared = Some(self.corners[side].shared[which].id);
            }
            let device = &mut self.pair.ends[side].device;
            device.create_qp(&init).expect("its objects exist")
        });
        Link {
            service,
            qps,
            from,
            signal_all,
            shared,
            words: [0; 2],
            posted: [Vec::new(), Vec::new()],
            receives: [Vec::new(), Vec::new()],
            spares: [Vec::new(), Vec::new()],
            forced: [false; 2],
            epochs: [0; 2],
        }
    }

    pub(crate) fn modify(&mut self, link: usize, side: Side, modify: &Modify) {
        let (now, qp) = (self.pair.now(), self.links[link].qps[side]);
        let device = &mut self.pair.ends[side].device;
        if let Err(error) = device.modify_qp(now, qp, modify) {
            panic!("{error}");
        }
    }

    pub(crate) fn state(&self, link: usize, side: Side) -> State {
        let qp = self.links[link].qps[side];
        let status = self.pair.ends[side].device.query_qp(qp);
        status.expect("it exists").state
    }

    /// Leads every queue pair from RESET to RTS. False where the run's memory is used up.
    pub(crate) fn connect(&mut self) -> bool {
        let options = self.scene.options();
        for link in 0..self.links.len() {
            let psns = [(); 2].map(|()| Psn::new(self.random.bits() as u32));
            let reads = 1 + self.random.below(4) as u8;
            let rnr = if self.scene.impatient {
                RnrRetry::new(self.random.below(4) as u8)
            } else {
                RnrRetry::INFINITE
            };
            let timer = RnrTimer::from_code(1 + self.random.below(6) as u8);
            let [Some(a), Some(b)] = [A, B].map(|side| self.room(side, 16)) else {
                return false;
            };
            self.links[link].words = [a, b].map(|address| address.next_multiple_of(8));
            for side in [A, B] {
                let peer = 1 - side;
                let (path, qp) = (path_to(peer), self.links[link].qps[peer]);
                let receive = Modify::ready_to_receive(path, options.mtu, qp, psns[peer]);
                let send = Modify::ready_to_send(psns[side]);
                let receive_reliable = Modify {
                    max_peer_reads: Some(reads),
                    min_rnr_timer: Some(timer),
                    ..receive
                };
                let timeout: Option<AckTimeout> = Some(options.timeout);
                let send_reliable = Modify {
                    timeout,
                    retry_count: Some(7),
                    rnr_retry: Some(rnr),
                    max_reads: Some(reads),
                    ..send
                };
                let rights = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
                let connected = Modify::initialize(rights);
                let from = self.links[link].from;
                let steps = match self.links[link].service {
                    QueuePairType::UnreliableDatagram => [
                        Modify::initialize_datagram(QKEY),
                        Modify::to(State::ReadyToReceive),
                        send,
                    ],
                    QueuePairType::UnreliableConnection => [connected, receive, send],
                    QueuePairType::ReliableConnection => {
                        [connected, receive_reliable, send_reliable]
                    }
                    _ if side == from => [connected, receive, send_reliable],
                    _ => [connected, receive_reliable, Modify { timeout, ..send }],
                };
                for step in steps {
                    self.modify(link, side, &step);
                }
            }
        }
        true
    }

    /// Does what chance chooses.
    pub(crate) fn work(&mut self) {
        for _action in 0..self.scene.actions {
            let (link, side) = (self.pick(self.links.len()), self.pick(2));
            match self.pick(100) {
                0..55 => self.send(link, side),
                55..75 => self.receive(link, side),
                75..90 => {
                    let later = self.pair.now() + Span::nanos(self.random.below(20_000));
                    self.pair.run_until(later);
                    self.drain();
                }
                90..94 => self.drain_or_resume(link, side),
                94..96 => self.ask(side),
                96..98 => self.recover(link, side),
                98 if self.scene.deaths => self.kill(link, side),
                99 if self.scene.deaths && self.random.chance(0.2) => {
                    self.dead = true;
                    self.pair.wire.set_faults(Faults::loss(1.0));
                }
                _ => {}
            }
        }
    }

    /// Puts a queue pair into SQD, or back into RTS.
    fn drain_or_resume(&mut self, link: usize, side: Side) {
        match self.state(link, side) {
            State::ReadyToSend => self.modify(link, side, &Modify::to(State::SendQueueDrain)),
            State::SendQueueDrain => self.modify(link, side, &Modify::to(State::ReadyToSend)),
            _ => {}
        }
    }

    fn recover(&mut self, link: usize, side: Side) {
        if self.state(link, side) == State::SendQueueError {
            self.modify(link, side, &Modify::to(State::ReadyToSend));
            self.links[link].epochs[side] += 1;
        }
    }

    fn kill(&mut self, link: usize, side: Side) {
        self.links[link].forced[side] = true;
        self.modify(link, side, &Modify::to(State::Error));
    }

    fn ask(&mut self, side: Side) {
        let which = self.pick(3);
        let queue = self.corners[side].queues[which];
        let solicited = self.random.chance(0.5);
        let device = &mut self.pair.ends[side].device;
        device.request_notify(queue, solicited).expect("it exists");
        self.corners[side].asked += 1;
    }

    /// Takes what the devices have completed and told.
    fn drain(&mut self) {
        for side in [A, B] {
            let corner = &mut self.corners[side];
            corner.events.extend(self.pair.events(side));
            let device = &mut self.pair.ends[side].device;
            for &queue in &corner.queues {
                while let Some(completion) = device.poll_completion(queue) {
                    corner.log.push(completion);
                }
            }
        }
    }

    /// Lets everything come to its end: receivers get what they need, nobody drains any more.
    pub(crate) fn settle(&mut self) {
        for link in 0..self.links.len() {
            for side in [A, B] {
                if self.state(link, side) == State::SendQueueDrain {
                    self.modify(link, side, &Modify::to(State::ReadyToSend));
                }
                for (named, address) in std::mem::take(&mut self.links[link].spares[side]) {
                    self.post_receive(link, side, named, address, self.scene.room());
                }
            }
        }
        self.pair.run();
        self.drain();
    }

    /// Ends the phase.
    pub(crate) fn reset(&mut self) {
        for link in 0..self.links.len() {
            for side in [A, B] {
                self.modify(link, side, &Modify::to(State::Reset));
            }
            let link = &mut self.links[link];
            link.posted = [Vec::new(), Vec::new()];
            link.receives = [Vec::new(), Vec::new()];
            link.spares = [Vec::new(), Vec::new()];
            link.forced = [false; 2];
            link.epochs = [0; 2];
        }
        for side in [A, B] {
            let corner = &mut self.corners[side];
            corner.log.clear();
            // A queue that has told nothing yet may still do so.
            corner.asked -= corner.told();
            corner.events.clear();
            let found = self.pair.ends[side].device.memory().slice(0, MEMORY);
            corner.before.copy_from_slice(found);
        }
        self.dead = false;
        self.pair.wire.set_faults(self.scene.faults);
    }

    /// Room for `length` bytes that nothing else uses in this run.
    fn room(&mut self, side: Side, length: u32) -> Option<u64> {
        let gap = self.random.below(8);
        let corner = &mut self.corners[side];
        let address = corner.next + gap;
        let end = address + u64::from(length);
        if end > MEMORY as u64 {
            return None;
        }
        corner.next = end;
        Some(address)
    }

    /// Cuts a range into pieces, perhaps with an empty one whose key opens nothing.
    fn pieces(&mut self, address: u64, length: u32, key: u32) -> LocalSegments {
        let mut pieces = LocalSegments::new();
        let mut done = 0;
        for _piece in 0..self.pick(3) {
            let length = self.random.below(u64::from(length - done) + 1) as u32;
            let key = if length == 0 { 0xbad } else { key };
            pieces.push(LocalSegment {
                address: address + u64::from(done),
                length,
                key,
            });
            done += length;
        }
        pieces.push(LocalSegment {
            address: address + u64::from(done),
            length: length - done,
            key,
        });
        pieces
    }

    fn length(&mut self) -> u32 {
        let mtu = u64::from(self.scene.mtu.as_u32());
        let longest = u64::from(self.scene.longest);
        let length = match self.pick(10) {
            0 => 0,
            1..4 => self.random.below(64),
            4 => mtu * self.random.below(4),
            5 => mtu + self.random.below(3) - 1,
            _ => self.random.below(longest),
        };
        length.min(longest) as u32
    }

    /// Posts a request.
    fn send(&mut self, link: usize, side: Side) {
        let service = self.links[link].service;
        if service == QueuePairType::XrcInitiator && side != self.links[link].from {
            return;
        }
        let peer = 1 - side;
        let choice = match service {
            QueuePairType::UnreliableDatagram => 1,
            QueuePairType::UnreliableConnection => 1 + self.pick(3),
            _ => self.pick(7),
        };
        let atomic = choice >= 5;
        let mut length = if atomic { 8 } else { self.length() };
        if service == QueuePairType::UnreliableDatagram {
            length = length.min(4096);
        }
        let (Some(local), Some(there)) = (self.room(side, length), self.room(peer, length)) else {
            return;
        };
        let named = self.pick(2);
        if matches!(choice, 0 | 1 | 3) {
            let Some(spare) = self.room(peer, self.scene.room()) else {
                return;
            };
            self.links[link].spares[peer].push((named, spare));
        }
        self.ids += 1;
        let id = self.ids;
        let mut remote = Remote {
            address: if atomic {
                self.links[link].words[peer]
            } else {
                there
            },
            key: self.corners[peer].key,
        };
        let mut key = self.corners[side].key;
        let inline = !atomic && choice != 4 && length <= 256 && self.random.chance(0.3);
        let mut defect = Defect::None;
        if self.scene.defects && length > 0 && self.random.chance(0.04) {
            let remotely = choice >= 2 && service != QueuePairType::UnreliableDatagram;
            match self.pick(3) {
                0 if !inline => {
                    defect = Defect::Local;
                    let reads = atomic || choice == 4;
                    let weak = self.corners[side].weak_key;
                    key = if reads { weak } else { key ^ 0x20 };
                }
                1 if remotely => {
                    defect = Defect::Remote;
                    remote.key ^= 0x40;
                }
                2 if remotely && !atomic => {
                    defect = Defect::Remote;
                    remote.address = MEMORY as u64 + 1 - u64::from(length);
                }
                _ => {}
            }
        }
        if length == 0 {
            // Nobody looks at these.
            remote.key = 0xbad;
        }
        let mut number = self.corners[peer].named[named].number;
        if service == QueuePairType::XrcInitiator
            && defect == Defect::None
            && self.scene.defects
            && self.random.chance(0.03)
        {
            defect = Defect::Queue;
            number = [self.corners[peer].foreign, number ^ 1, 0][self.pick(3)];
        }
        let operation = match choice {
            0 => SendOperation::Send,
            1 => SendOperation::SendImmediate(id as u32),
            2 => SendOperation::Write(remote),
            3 => SendOperation::WriteImmediate(remote, id as u32),
            4 => SendOperation::Read(remote),
            5 => SendOperation::FetchAdd {
                remote,
                add: self.random.below(1000),
            },
            _ => SendOperation::CompareSwap {
                remote,
                compare: self.random.below(3),
                swap: self.random.below(3),
            },
        };
        let mut request = SendRequest::empty(id, operation).to_srq(number);
        request.local = self.pieces(local, length, key);
        let signaled = self.random.chance(0.8);
        if !signaled {
            request = request.unsignaled();
        }
        let solicited = self.random.chance(0.2);
        for (flag, set) in [
            (SendFlags::FENCE, self.random.chance(0.2)),
            (SendFlags::INLINE, inline),
            (SendFlags::SOLICITED, solicited),
        ] {
            request.flags.set(flag, set);
        }
        if service == QueuePairType::UnreliableDatagram {
            request = request.to(Datagram {
                path: path_to(peer),
                destination: self.links[link].qps[peer],
                qkey: QKEY,
            });
        }
        let state = self.state(link, side);
        let (now, qp) = (self.pair.now(), self.links[link].qps[side]);
        let device = &mut self.pair.ends[side].device;
        if let Err(error) = device.post_send(now, qp, request) {
            panic!("{error}");
        }
        let link = &mut self.links[link];
        link.posted[side].push(Posted {
            id,
            operation,
            length,
            local,
            remote: there,
            signaled: signaled || link.signal_all,
            solicited,
            defect,
            named,
            epoch: link.epochs[side],
            too_late: matches!(state, State::SendQueueError | State::Error),
        });
    }

    /// Posts a receive request to where a queue pair receives from, perhaps one with a defect.
    fn receive(&mut self, link: usize, side: Side) {
        let mut room = self.scene.room() + self.random.below(100) as u32;
        let own = self.links[link].shared[side].is_none() && !self.links[link].is_extended();
        if own && self.links[link].is_reliable() && self.scene.defects && self.random.chance(0.03) {
            room = self.random.below(u64::from(self.scene.longest)) as u32;
        }
        let named = self.pick(2);
        if let Some(address) = self.room(side, room) {
            self.post_receive(link, side, named, address, room);
        }
    }

    fn post_receive(&mut self, link: usize, side: Side, named: usize, address: u64, room: u32) {
        let extended = self.links[link].is_extended();
        if extended && side == self.links[link].from {
            return;
        }
        let shared = if extended {
            Some(self.corners[side].named[named].id)
        } else {
            let shared = self.links[link].shared[side];
            shared.map(|shared| self.corners[side].shared[shared].id)
        };
        let own = shared.is_none() && self.links[link].is_reliable();
        let defect = own && self.scene.defects && self.random.chance(0.02);
        let corner = &self.corners[side];
        let key = if defect { corner.weak_key } else { corner.key };
        self.ids += 1;
        let id = self.ids;
        let local = self.pieces(address, room, key);
        let request = ReceiveRequest { id, local };
        let qp = self.links[link].qps[side];
        let device = &mut self.pair.ends[side].device;
        let posted = match shared {
            Some(shared) => device.post_srq_recv(shared, request),
            None => device.post_recv(qp, request),
        };
        if let Err(error) = posted {
            panic!("{error}");
        }
        let receive = Receive {
            id,
            address,
            room,
            defect,
            completed: false,
        };
        let corner = &mut self.corners[side];
        if extended {
            corner.named[named].receives.push(receive);
        } else if let Some(shared) = self.links[link].shared[side] {
            corner.shared[shared].receives.push(receive);
        } else {
            self.links[link].receives[side].push(receive);
        }
    }
}

impl World {
    /// Whether packets may have been lost.
    pub(crate) fn loses(&self) -> bool {
        self.dead || self.scene.loses()
    }

    /// Whether a message found no receive request at a side.
    pub(crate) fn starved(&self, side: Side) -> bool {
        let counter = softfabric_telemetry::DeviceCounter::OutOfBuffer;
        self.pair.counter(side, counter) > 0
    }
}
