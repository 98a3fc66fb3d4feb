//! The devices, their objects, and the actions that chance chooses.

use softfabric_testkit::{A, B, ByteMemory, Faults, Pair, Side, path_to};
use softfabric_transport::{
    Access, AckTimeout, Completion, CompletionQueueId, Domain, Event, Modify, QueuePairInit,
    QueuePairType, RegionInit, RnrRetry, SendOperation, SharedQueueId, SharedQueueInit, State,
    XrcQueueInit,
};
use softfabric_units::{Psn, Qpn, Random, Span};
use softfabric_wire::rdma::RnrTimer;

use crate::scene::{MEMORY, Scene};

pub(crate) const QKEY: u32 = 0x1234;

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
    pub(crate) weak_key: u32,
    queues: Vec<CompletionQueueId>,
    pub(crate) shared: Vec<Shared>,
    pub(crate) named: Vec<Shared>,
    xrc: softfabric_transport::XrcDomain,
    /// The number of a shared receive queue of another XRC domain.
    pub(crate) foreign: u32,
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
    pub(crate) spares: [Vec<(usize, u64)>; 2],
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
    /// Links whose queue pairs were destroyed in this phase.
    pub(crate) ghosts: Vec<Link>,
    /// The wire has died in this phase.
    pub(crate) dead: bool,
    pub(crate) random: Random,
    pub(crate) ids: u64,
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
            ghosts: Vec::new(),
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

    pub(crate) fn pick(&mut self, bound: usize) -> usize {
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
        (0..self.links.len()).all(|link| {
            let words = self.words();
            if let Some(words) = words {
                self.connect_link(link, words);
            }
            words.is_some()
        })
    }

    /// A word on each side.
    fn words(&mut self) -> Option<[u64; 2]> {
        let (a, b) = (self.room(A, 16)?, self.room(B, 16)?);
        Some([a, b].map(|address| address.next_multiple_of(8)))
    }

    fn connect_link(&mut self, link: usize, words: [u64; 2]) {
        let options = self.scene.options();
        let psns = [(); 2].map(|()| Psn::new(self.random.bits() as u32));
        let reads = 1 + self.random.below(4) as u8;
        let rnr = if self.scene.impatient {
            RnrRetry::new(self.random.below(4) as u8)
        } else {
            RnrRetry::INFINITE
        };
        let timer = RnrTimer::from_code(1 + self.random.below(6) as u8);
        self.links[link].words = words;
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
                QueuePairType::ReliableConnection => [connected, receive_reliable, send_reliable],
                _ if side == from => [connected, receive, send_reliable],
                _ => [connected, receive_reliable, Modify { timeout, ..send }],
            };
            for step in steps {
                self.modify(link, side, &step);
            }
        }
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
                94 => self.ask(side),
                95 if self.random.chance(0.3) => self.replace(link),
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

    /// Destroys the queue pairs of a link in the middle of their work, and makes others in their place.
    fn replace(&mut self, link: usize) {
        let Some(words) = self.words() else {
            return;
        };
        self.drain();
        for side in [A, B] {
            let qp = self.links[link].qps[side];
            let device = &mut self.pair.ends[side].device;
            device.destroy_qp(qp).expect("it exists");
        }
        let new = self.link();
        let ghost = std::mem::replace(&mut self.links[link], new);
        self.ghosts.push(ghost);
        self.connect_link(link, words);
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
                    let mut ghosts = self.ghosts.iter();
                    let gone = ghosts.any(|ghost| ghost.qps[side] == completion.qp);
                    assert!(!gone, "from beyond: {completion:?}");
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
        self.ghosts.clear();
        self.dead = false;
        self.pair.wire.set_faults(self.scene.faults);
    }

    /// Room for `length` bytes that nothing else uses in this run.
    pub(crate) fn room(&mut self, side: Side, length: u32) -> Option<u64> {
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
}

impl World {
    /// Whether packets may have been lost.
    pub(crate) fn loses(&self) -> bool {
        self.dead || self.scene.loses()
    }

    /// Whether a queue pair may hold a receive request for a message that will never be whole.
    pub(crate) fn may_hold(&self, link: usize, side: Side) -> bool {
        !self.links[link].is_reliable() || self.state(link, 1 - side) == State::Error
    }

    /// Whether a message found no receive request at a side.
    pub(crate) fn starved(&self, side: Side) -> bool {
        let counter = softfabric_telemetry::DeviceCounter::OutOfBuffer;
        self.pair.counter(side, counter) > 0
    }
}
