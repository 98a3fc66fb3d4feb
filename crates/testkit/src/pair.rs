//! Two devices in lockstep under a virtual clock.
//!
//! ```text
//!   device A ──► wire (faults, delay, serialisation) ──► device B
//!            ◄──                                     ◄──
//! ```
//!
//! One queue pair on each side is connected; a test drives both devices and reads what they completed. Equal options
//! give equal runs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use softfabric_telemetry::DeviceCounter;
use softfabric_transport::{
    Access, AckTimeout, AddressVector, Arrival, Completion, CompletionQueueId, Datagram, Device,
    DeviceConfig, Domain, Event, LocalSegment, Modify, Mtu, QueuePairInit, QueuePairType,
    ReceiveRequest, RegionInit, SendOperation, SendRequest, SharedQueueId, SharedQueueInit,
    Transmit, XrcQueueInit,
};
use softfabric_units::{Bytes, ClassMask, Gid, Psn, Qpn, Rate, Span, Time};

use crate::bytes::Carry;
use crate::wire::{Fate, Faults, Sent, Wire};

/// One of the two sides.
pub type Side = usize;
/// The first side.
pub const A: Side = 0;
/// The second side.
pub const B: Side = 1;

/// How a pair is set up.
#[derive(Clone, Copy, Debug)]
pub struct PairOptions {
    /// Both devices.
    pub config: DeviceConfig,
    /// The path MTU.
    pub mtu: Mtu,
    /// Faults of the wire.
    pub faults: Faults,
    /// The seed of the faults.
    pub seed: u64,
    /// One-way delay.
    pub delay: Span,
    /// Bytes of memory on each side.
    pub memory: usize,
    /// The first PSN of side A; B starts 1000 later.
    pub psn: Psn,
    /// Of both queue pairs.
    pub timeout: AckTimeout,
    /// Depth of the completion queues.
    pub depth: u32,
    /// Whether every packet is remembered.
    pub record: bool,
}

impl Default for PairOptions {
    fn default() -> Self {
        Self {
            config: DeviceConfig::new(Rate::gbps(100)),
            mtu: Mtu::BYTES_1024,
            faults: Faults::default(),
            seed: 1,
            delay: Span::micros(1),
            memory: 1 << 20,
            psn: Psn::new(0xff_fff0),
            timeout: AckTimeout::from_code(5),
            depth: 1 << 16,
            record: false,
        }
    }
}

/// One side: a device, one queue pair, and its surroundings.
pub struct End<M: Carry> {
    /// The device.
    pub device: Device<M>,
    /// Its protection domain.
    pub domain: Domain,
    /// Its completion queue, for both directions.
    pub queue: CompletionQueueId,
    /// The queue pair.
    pub qp: Qpn,
    /// The shared receive queue that it receives through: the one that was asked for, or that of XRC.
    pub shared: Option<SharedQueueId>,
    /// The key of all its memory.
    pub key: u32,
    busy_until: Time,
    /// When it last completed something.
    pub completed: Time,
    completions: Vec<Completion>,
    events: Vec<Event>,
}

struct InFlight<P> {
    time: Time,
    number: u64,
    to: Side,
    packet: Transmit<P>,
    fate: Fate,
}

impl<P> PartialEq for InFlight<P> {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.number) == (other.time, other.number)
    }
}
impl<P> Eq for InFlight<P> {}
impl<P> PartialOrd for InFlight<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> Ord for InFlight<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}

/// Two devices, the wire and the clock.
pub struct Pair<M: Carry> {
    /// The sides.
    pub ends: [End<M>; 2],
    /// The wire.
    pub wire: Wire,
    /// Every packet sent, if they are recorded.
    pub sent: Vec<Sent>,
    /// How many packets were sent.
    pub packets: u64,
    now: Time,
    delay: Span,
    record: bool,
    in_flight: BinaryHeap<Reverse<InFlight<M::Outgoing>>>,
    numbers: u64,
}

/// The path to a side.
pub fn path_to(side: Side) -> AddressVector {
    AddressVector {
        gid: Gid::from(std::net::Ipv4Addr::new(10, 0, 0, side as u8 + 1)),
        driver: side as u64,
        source_port: 0xc000,
        traffic_class: AddressVector::ECT0,
        hop_limit: 64,
        ..AddressVector::default()
    }
}

const QKEY: u32 = 0x1111_1111;

impl<M: Carry> Pair<M> {
    /// Two devices with a queue pair each, in RESET.
    pub fn unconnected(
        service: QueuePairType,
        options: PairOptions,
        change: impl Fn(&mut Device<M>, &mut QueuePairInit),
    ) -> Self {
        Self::build(options, |_, device, domain, queue| {
            let mut init = QueuePairInit::new(service, domain, queue);
            change(device, &mut init);
            (init, init.shared)
        })
    }

    /// Two devices, each with a queue pair and perhaps a shared receive queue that `make` decides on.
    fn build(
        options: PairOptions,
        make: impl Fn(
            Side,
            &mut Device<M>,
            Domain,
            CompletionQueueId,
        ) -> (QueuePairInit, Option<SharedQueueId>),
    ) -> Self {
        let end = |side| {
            let mut device = Device::new(options.config, M::sized(options.memory));
            let domain = device.alloc_domain();
            let access = Access::LOCAL_WRITE
                | Access::REMOTE_WRITE
                | Access::REMOTE_READ
                | Access::REMOTE_ATOMIC
                | Access::BIND_WINDOW;
            let region = RegionInit::new(0, options.memory as u64, access);
            let key = device
                .register_memory(domain, &region)
                .expect("the domain exists");
            let queue = device.create_cq(options.depth).expect("a small queue");
            let (init, shared) = make(side, &mut device, domain, queue);
            let qp = device.create_qp(&init).expect("its objects exist");
            End {
                device,
                domain,
                queue,
                qp,
                shared,
                key,
                busy_until: Time::ZERO,
                completed: Time::ZERO,
                completions: Vec::new(),
                events: Vec::new(),
            }
        };
        Self {
            ends: [end(A), end(B)],
            wire: Wire::new(options.faults, options.seed),
            sent: Vec::new(),
            packets: 0,
            now: Time::ZERO,
            delay: options.delay,
            record: options.record,
            in_flight: BinaryHeap::new(),
            numbers: 0,
        }
    }

    /// A reliable connection, ready on both sides.
    pub fn reliable(options: PairOptions) -> Self {
        Self::reliable_with(options, |_, _| {}, |_, _| {})
    }

    /// A reliable connection whose queue pairs and attributes a test changes before they are used.
    pub fn reliable_with(
        options: PairOptions,
        init: impl Fn(&mut Device<M>, &mut QueuePairInit),
        change: impl Fn(Side, &mut Modify),
    ) -> Self {
        let mut pair = Self::unconnected(QueuePairType::ReliableConnection, options, init);
        pair.connect(options, change);
        pair
    }

    /// An extended reliable connection from A to B, ready on both sides: B has a shared receive queue of XRC, which
    /// [`Pair::send`] names and [`Pair::receive`] fills.
    pub fn extended(options: PairOptions) -> Self {
        Self::extended_with(options, |_, _| {})
    }

    /// The same, with attributes that a test changes before they are used.
    pub fn extended_with(options: PairOptions, change: impl Fn(Side, &mut Modify)) -> Self {
        let mut pair = Self::build(options, |side, device, domain, queue| {
            if side == A {
                return (QueuePairInit::xrc_initiator(domain, queue), None);
            }
            let xrc = device.alloc_xrc_domain();
            let init = SharedQueueInit {
                domain,
                depth: 1 << 10,
                segments: 8,
            };
            let of = XrcQueueInit {
                domain: xrc,
                completions: queue,
            };
            let shared = device.create_xrc_srq(init, of).expect("its objects exist");
            (QueuePairInit::xrc_target(xrc), Some(shared))
        });
        pair.connect(options, change);
        pair
    }

    /// An unreliable connection, ready on both sides.
    pub fn unreliable(options: PairOptions) -> Self {
        let mut pair = Self::unconnected(QueuePairType::UnreliableConnection, options, |_, _| {});
        pair.connect(options, |_, _| {});
        pair
    }

    /// Datagram queue pairs, ready on both sides.
    pub fn datagrams(options: PairOptions) -> Self {
        let mut pair = Self::unconnected(QueuePairType::UnreliableDatagram, options, |_, _| {});
        for side in [A, B] {
            pair.modify(side, &Modify::initialize_datagram(QKEY));
            pair.modify(
                side,
                &Modify::to(softfabric_transport::State::ReadyToReceive),
            );
            pair.modify(side, &Modify::ready_to_send(options.psn));
        }
        pair
    }

    /// Leads both queue pairs from RESET to RTS, with attributes that a test changes on the way.
    ///
    /// # Panics
    /// If they are not in RESET, or a change is refused.
    pub fn connect(&mut self, options: PairOptions, change: impl Fn(Side, &mut Modify)) {
        let rights = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let first = [options.psn, options.psn.add(1000)];
        for side in [A, B] {
            let peer = 1 - side;
            let (path, qp) = (path_to(peer), self.ends[peer].qp);
            let end = &self.ends[side];
            let service = end.device.query_qp(end.qp).map(|status| status.service);
            let receive = Modify::ready_to_receive(path, options.mtu, qp, first[peer]);
            let receive_reliable =
                Modify::ready_to_receive_reliable(path, options.mtu, qp, first[peer]);
            let send = Modify::ready_to_send(first[side]);
            let send_reliable = Modify::ready_to_send_reliable(first[side], options.timeout);
            let [receive, send] = match service {
                Some(QueuePairType::UnreliableConnection) => [receive, send],
                Some(QueuePairType::XrcInitiator) => [receive, send_reliable],
                Some(QueuePairType::XrcTarget) => {
                    let timeout = Some(options.timeout);
                    [receive_reliable, Modify { timeout, ..send }]
                }
                _ => [receive_reliable, send_reliable],
            };
            let steps = [Modify::initialize(rights), receive, send];
            for mut step in steps {
                change(side, &mut step);
                self.modify(side, &step);
            }
        }
    }

    /// Changes the queue pair of a side.
    ///
    /// # Panics
    /// If the change is refused.
    pub fn modify(&mut self, side: Side, modify: &Modify) {
        let end = &mut self.ends[side];
        if let Err(error) = end.device.modify_qp(self.now, end.qp, modify) {
            panic!("{error}");
        }
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The key of all memory of a side.
    pub fn key(&self, side: Side) -> u32 {
        self.ends[side].key
    }

    /// A piece of a side's memory.
    pub fn piece(&self, side: Side, address: u64, length: u32) -> LocalSegment {
        LocalSegment {
            address,
            length,
            key: self.ends[side].key,
        }
    }

    /// Posts a signalled request over one piece of memory; a datagram goes to the other side.
    ///
    /// # Panics
    /// If it is refused.
    pub fn send(
        &mut self,
        side: Side,
        id: u64,
        operation: SendOperation,
        address: u64,
        length: u32,
    ) {
        let mut request = SendRequest::new(id, operation, self.piece(side, address, length));
        let end = &self.ends[side];
        let service = end.device.query_qp(end.qp).map(|status| status.service);
        if service == Some(QueuePairType::UnreliableDatagram) {
            request = request.to(self.datagram_to(1 - side));
        }
        self.post(side, request);
    }

    /// Where datagrams for a side go.
    pub fn datagram_to(&self, side: Side) -> Datagram {
        Datagram {
            path: path_to(side),
            destination: self.ends[side].qp,
            qkey: QKEY,
        }
    }

    /// Posts a request.
    ///
    /// # Panics
    /// If it is refused.
    pub fn post(&mut self, side: Side, request: SendRequest) {
        let request = match self.srq_number(1 - side) {
            Some(number) if request.xrc_srq == 0 => request.to_srq(number),
            _ => request,
        };
        let end = &mut self.ends[side];
        if let Err(error) = end.device.post_send(self.now, end.qp, request) {
            panic!("{error}");
        }
    }

    /// Posts a receive request over one piece of memory.
    ///
    /// # Panics
    /// If it is refused.
    pub fn receive(&mut self, side: Side, id: u64, address: u64, length: u32) {
        let request = ReceiveRequest::new(id, self.piece(side, address, length));
        let end = &mut self.ends[side];
        let posted = match end.shared {
            None => end.device.post_recv(end.qp, request),
            Some(shared) => end.device.post_srq_recv(shared, request),
        };
        if let Err(error) = posted {
            panic!("{error}");
        }
    }

    /// The number of a side's shared receive queue of XRC, if it has one.
    pub fn srq_number(&self, side: Side) -> Option<u32> {
        let end = &self.ends[side];
        end.device.query_srq(end.shared?)?.number
    }

    /// What a side has completed so far, in order; later calls do not tell it again.
    pub fn completions(&mut self, side: Side) -> Vec<Completion> {
        self.drain(side);
        std::mem::take(&mut self.ends[side].completions)
    }

    /// The asynchronous events of a side so far.
    pub fn events(&mut self, side: Side) -> Vec<Event> {
        self.drain(side);
        std::mem::take(&mut self.ends[side].events)
    }

    /// A counter of a side.
    pub fn counter(&self, side: Side, counter: DeviceCounter) -> u64 {
        self.ends[side].device.counters().value(counter)
    }

    fn drain(&mut self, side: Side) {
        let end = &mut self.ends[side];
        while let Some(completion) = end.device.poll_completion(end.queue) {
            end.completions.push(completion);
            end.completed = self.now;
        }
        while let Some(event) = end.device.poll_event() {
            end.events.push(event);
        }
    }

    /// Runs until nothing is in flight and no timer runs, or a virtual minute has passed.
    pub fn run(&mut self) {
        let limit = self.now + Span::seconds(60);
        self.run_until(limit);
    }

    /// Runs until nothing happens any more, or `limit`; the clock stops at what happened last.
    pub fn run_until(&mut self, limit: Time) {
        while self.step(limit) {}
    }

    /// Lets everything happen that happens next; false where nothing does before `limit`.
    pub fn step(&mut self, limit: Time) -> bool {
        for side in [A, B] {
            self.transmit(side);
        }
        let mut next = self
            .in_flight
            .peek()
            .map_or(Time::NEVER, |Reverse(first)| first.time);
        for end in &self.ends {
            if end.busy_until > self.now {
                next = next.min(end.busy_until);
            }
            if let Some(timeout) = end.device.poll_timeout() {
                next = next.min(timeout);
            }
        }
        if next > limit || next == Time::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        while let Some(Reverse(first)) = self.in_flight.peek()
            && first.time <= self.now
        {
            if let Some(Reverse(arrived)) = self.in_flight.pop() {
                self.arrive(&arrived);
            }
        }
        for side in [A, B] {
            let device = &mut self.ends[side].device;
            if device.poll_timeout().is_some_and(|time| time <= self.now) {
                device.handle_timeout(self.now);
            }
            self.drain(side);
        }
        true
    }

    fn transmit(&mut self, side: Side) {
        let now = self.now;
        let end = &mut self.ends[side];
        if end.busy_until > now {
            return;
        }
        let Some(packet) = end.device.poll_transmit(now, ClassMask::ALL) else {
            return;
        };
        let header = packet.header.bth.opcode.header_length() as u64;
        let size = Bytes::new(50 + header + u64::from(packet.payload_length));
        let rate = end.device.config().line_rate;
        end.busy_until = now + rate.time_for(size);
        let arrival = end.busy_until + self.delay;
        let fate = self.wire.decide(side, &packet.header);
        self.packets += 1;
        if self.record {
            self.sent.push(Sent {
                side,
                header: packet.header,
                payload_length: packet.payload_length,
                fate,
            });
        }
        if fate.dropped {
            return;
        }
        if fate.duplicated {
            let copy = Transmit {
                header: packet.header,
                payload: M::copy(&packet.payload),
                payload_length: packet.payload_length,
                class: packet.class,
                path: packet.path,
                ecn_capable: packet.ecn_capable,
                qp: packet.qp,
            };
            self.launch(arrival + self.delay, 1 - side, copy, fate);
        }
        self.launch(arrival + fate.late, 1 - side, packet, fate);
    }

    fn launch(&mut self, time: Time, to: Side, packet: Transmit<M::Outgoing>, fate: Fate) {
        self.numbers += 1;
        self.in_flight.push(Reverse(InFlight {
            time,
            number: self.numbers,
            to,
            packet,
            fate,
        }));
    }

    fn arrive(&mut self, arrived: &InFlight<M::Outgoing>) {
        let device = &mut self.ends[arrived.to].device;
        if arrived.fate.corrupted {
            device.counters_mut().count(DeviceCounter::IcrcErrors);
            return;
        }
        let packet = &arrived.packet;
        device.handle_packet(
            self.now,
            Arrival {
                header: &packet.header,
                payload: M::carry(&packet.payload),
                payload_length: packet.payload_length,
                congestion: arrived.fate.marked && packet.ecn_capable,
                source: &path_to(1 - arrived.to),
                destination: Some(&packet.path.gid),
                grh: None,
            },
        );
    }

    /// Delivers a packet that nobody of the two has sent.
    pub fn forge(
        &mut self,
        to: Side,
        header: &softfabric_wire::rdma::TransportHeader,
        payload: M::Incoming<'_>,
        payload_length: u32,
    ) {
        self.ends[to].device.handle_packet(
            self.now,
            Arrival {
                header,
                payload,
                payload_length,
                congestion: false,
                source: &path_to(1 - to),
                destination: Some(&path_to(to).gid),
                grh: None,
            },
        );
    }
}

impl Pair<crate::ByteMemory> {
    /// Writes into the memory of a side.
    pub fn fill(&mut self, side: Side, address: u64, bytes: &[u8]) {
        let memory = self.ends[side].device.memory_mut();
        memory
            .slice_mut(address, bytes.len())
            .copy_from_slice(bytes);
    }

    /// Bytes of the memory of a side.
    pub fn bytes(&self, side: Side, address: u64, length: usize) -> &[u8] {
        self.ends[side].device.memory().slice(address, length)
    }
}
