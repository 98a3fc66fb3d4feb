//! Extended reliable connections (annex A14): one target, many shared receive queues, each with memory and completions of
//! its own.

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, ByteMemory, Carry, Faults, Pair, PairOptions};
use softfabric_transport::{
    Access, Attachment, CompletedOperation, Completion, CompletionQueueId, Domain, Event,
    LengthsOnly, LocalSegment, Modify, ReceiveRequest, RegionInit, Remote, SendOperation,
    SendRequest, SharedQueueId, SharedQueueInit, State, Status, XrcDomain, XrcQueueInit,
};
use softfabric_units::{Psn, Span, Time};
use softfabric_wire::rdma::Service;

use crate::refusals::{state, syndromes};

type Bytes = Pair<ByteMemory>;

fn options() -> PairOptions {
    PairOptions {
        record: true,
        psn: Psn::new(100),
        ..PairOptions::default()
    }
}

/// One more shared receive queue at B, as another process would have it: memory, completions and domain of its own.
struct Process {
    domain: Domain,
    key: u32,
    completions: CompletionQueueId,
    queue: SharedQueueId,
    number: u32,
}

fn process<M: Carry>(pair: &mut Pair<M>, xrc: XrcDomain) -> Process {
    let device = &mut pair.ends[B].device;
    let domain = device.alloc_domain();
    let access =
        Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    let region = RegionInit::new(0, 1 << 20, access);
    let key = device.register_memory(domain, &region).expect("it fits");
    let completions = device.create_cq(10).expect("small");
    let init = SharedQueueInit {
        domain,
        depth: 10,
        segments: 1,
    };
    let of = XrcQueueInit {
        domain: xrc,
        completions,
    };
    let queue = device.create_xrc_srq(init, of).expect("it can");
    let status = device.query_srq(queue).expect("there");
    Process {
        domain,
        key,
        completions,
        queue,
        number: status.number.expect("of XRC"),
    }
}

impl Process {
    fn receive<M: Carry>(&self, pair: &mut Pair<M>, id: u64, address: u64, length: u32) {
        let piece = LocalSegment {
            address,
            length,
            key: self.key,
        };
        let device = &mut pair.ends[B].device;
        device
            .post_srq_recv(self.queue, ReceiveRequest::new(id, piece))
            .expect("room");
    }

    fn completions<M: Carry>(&self, pair: &mut Pair<M>) -> Vec<Completion> {
        let device = &mut pair.ends[B].device;
        std::iter::from_fn(|| device.poll_completion(self.completions)).collect()
    }
}

/// The XRC domain of B's target.
fn domain<M: Carry>(pair: &Pair<M>) -> XrcDomain {
    let end = &pair.ends[B];
    let status = end.device.query_qp(end.qp).expect("there");
    status.xrc.expect("it is a target")
}

fn every_operation<M: Carry>(options: PairOptions) -> (Pair<M>, [Vec<Completion>; 2]) {
    let mut pair = Pair::<M>::extended(options);
    let remote = |address| Remote {
        address,
        key: pair.key(B),
    };
    let operations = [
        (SendOperation::Send, 5000),
        (SendOperation::SendImmediate(7), 100),
        (SendOperation::Write(remote(20_000)), 3000),
        (SendOperation::WriteImmediate(remote(30_000), 8), 5000),
        (SendOperation::Read(remote(40_000)), 5000),
        (
            SendOperation::FetchAdd {
                remote: remote(48_000),
                add: 5,
            },
            8,
        ),
        (
            SendOperation::CompareSwap {
                remote: remote(48_000),
                compare: 5,
                swap: 6,
            },
            8,
        ),
        (SendOperation::WriteImmediate(remote(0), 9), 0),
        (SendOperation::SendImmediate(10), 4000),
        (SendOperation::Write(remote(50_000)), 10),
    ];
    for id in 0..5 {
        pair.receive(B, id, id * 6000, 6000);
    }
    for (id, (operation, length)) in operations.into_iter().enumerate() {
        pair.send(A, id as u64, operation, id as u64 * 6000, length);
    }
    pair.run();
    let completions = [A, B].map(|side| pair.completions(side));
    (pair, completions)
}

#[test]
fn every_operation_with_bytes_and_without() {
    let (mut pair, completions) = every_operation::<ByteMemory>(options());
    assert!(
        completions
            .iter()
            .flatten()
            .all(|done| done.status == Status::Success)
    );
    assert_eq!(completions[A].len(), 10);
    let received: Vec<_> = completions[B]
        .iter()
        .map(|done| (done.id, done.operation, done.attachment, done.length))
        .collect();
    let (receive, write) = (
        CompletedOperation::Receive,
        CompletedOperation::ReceiveWithWrite,
    );
    assert_eq!(
        received,
        [
            (0, receive, Attachment::None, 5000),
            (1, receive, Attachment::Immediate(7), 100),
            (2, write, Attachment::Immediate(8), 5000),
            (3, write, Attachment::Immediate(9), 0),
            (4, receive, Attachment::Immediate(10), 4000),
        ]
    );
    let target = pair.ends[B].qp;
    assert!(completions[B].iter().all(|done| done.qp == target));
    assert_eq!(pair.bytes(B, 48_000, 8), 6u64.to_ne_bytes());
    // Every packet is one of XRC, and every request names the queue.
    let number = pair.srq_number(B).expect("it has one");
    for sent in &pair.sent {
        let header = sent.header;
        assert_eq!(
            header.bth.opcode.service(),
            Service::ExtendedReliableConnection
        );
        assert!(header.is_consistent());
        let named = if sent.side == A { number } else { 0 };
        assert_eq!(header.xrc_srq, named);
    }
    let (without, the_same) = every_operation::<LengthsOnly>(options());
    assert_eq!(without.sent, pair.sent);
    assert_eq!(the_same, completions);
    assert_eq!(pair.events(B), []);
}

/// Data arrives whole and once over a bad wire, whatever is recovered how.
#[test]
fn over_a_bad_wire() {
    for seed in 0..40 {
        let bad = PairOptions {
            faults: Faults::all(0.08),
            seed,
            ..options()
        };
        let (pair, completions) = every_operation::<ByteMemory>(bad);
        assert_eq!(completions[A].len(), 10, "seed {seed}");
        assert_eq!(completions[B].len(), 5, "seed {seed}");
        let all = completions.iter().flatten();
        assert!(all.clone().all(|done| done.status == Status::Success));
        assert_eq!(pair.bytes(B, 48_000, 8), 6u64.to_ne_bytes());
    }
}

/// Each message goes to the queue that it names: its buffers, its completions, its memory.
#[test]
fn one_target_serves_many_queues() {
    let mut pair = Bytes::extended(options());
    let xrc = domain(&pair);
    let [first, second] = [(); 2].map(|()| process(&mut pair, xrc));
    for (index, process) in [&first, &second].into_iter().enumerate() {
        for id in 0..3 {
            let address = 100_000 * (index as u64 + 1) + id * 3000;
            process.receive(&mut pair, id + 10 * index as u64, address, 3000);
        }
    }
    let data: Vec<u8> = (0..12_000).map(|byte| (byte % 255) as u8).collect();
    pair.fill(A, 0, &data);
    for id in 0..6 {
        let number = if id % 2 == 0 {
            first.number
        } else {
            second.number
        };
        let piece = pair.piece(A, id * 2000, 2000);
        let request = SendRequest::new(id, SendOperation::Send, piece);
        pair.post(A, request.to_srq(number));
    }
    pair.run();
    assert_eq!(pair.completions(A).len(), 6);
    let target = pair.ends[B].qp;
    for (index, process) in [&first, &second].into_iter().enumerate() {
        let done = process.completions(&mut pair);
        let ids: Vec<_> = done.iter().map(|done| done.id).collect();
        assert_eq!(ids, [0, 1, 2].map(|id| id + 10 * index as u64));
        assert!(done.iter().all(|done| done.qp == target));
        for message in 0..3 {
            let address = 100_000 * (index as u64 + 1) + message * 3000;
            let from = (2 * message as usize + index) * 2000;
            assert_eq!(pair.bytes(B, address, 2000), &data[from..from + 2000]);
        }
    }
    assert!(pair.completions(B).is_empty(), "nothing in the third queue");
}

/// Keys are those of the named queue's domain, and of no other.
#[test]
fn memory_belongs_to_the_named_queue() {
    for read in [false, true] {
        for own in [true, false] {
            let mut pair = Bytes::extended(options());
            let xrc = domain(&pair);
            let [mine, other] = [(); 2].map(|()| process(&mut pair, xrc));
            assert_ne!(mine.domain, other.domain);
            let remote = Remote {
                address: 0,
                key: mine.key,
            };
            let operation = if read {
                SendOperation::Read(remote)
            } else {
                SendOperation::Write(remote)
            };
            let number = if own { mine.number } else { other.number };
            let request = SendRequest::new(1, operation, pair.piece(A, 0, 10));
            pair.post(A, request.to_srq(number));
            pair.run();
            let status = pair.completions(A)[0].status;
            let expected = if own {
                Status::Success
            } else {
                Status::RemoteAccess
            };
            assert_eq!(status, expected, "read: {read}");
        }
    }
}

/// A long read for one queue is answered while messages for others come in between, and when part of it is lost.
#[test]
fn a_read_keeps_its_domain() {
    for lost in [false, true] {
        let mut pair = Bytes::extended(options());
        let mut responses = 0;
        pair.wire.set_rule(move |side, _, _| {
            responses += u64::from(side == B);
            Some(softfabric_testkit::Fate {
                dropped: lost && side == B && responses == 3,
                ..Default::default()
            })
        });
        let xrc = domain(&pair);
        let [mine, other] = [(); 2].map(|()| process(&mut pair, xrc));
        let data: Vec<u8> = (0..50_000).map(|byte| (byte % 253) as u8).collect();
        pair.fill(B, 200_000, &data);
        other.receive(&mut pair, 5, 0, 100);
        let remote = Remote {
            address: 200_000,
            key: mine.key,
        };
        let read = SendRequest::new(1, SendOperation::Read(remote), pair.piece(A, 0, 50_000));
        pair.post(A, read.to_srq(mine.number));
        let send = SendRequest::new(2, SendOperation::Send, pair.piece(A, 60_000, 10));
        pair.post(A, send.to_srq(other.number));
        pair.run();
        let done = pair.completions(A);
        assert!(done.iter().all(|done| done.status == Status::Success));
        assert_eq!(pair.bytes(A, 0, 50_000), data);
        assert_eq!(other.completions(&mut pair).len(), 1);
    }
}

/// Numbers that name nothing in the target's domain: an invalid request, and the end of the connection.
#[test]
fn queues_that_a_target_does_not_reach() {
    type Number = fn(&mut Bytes) -> u32;
    let cases: [(&str, Number); 5] = [
        ("nobody's", |_| 0x00f0_0001),
        ("another variant", |pair| {
            pair.srq_number(B).expect("it has one") ^ 2
        }),
        ("of another domain", |pair| {
            let other = pair.ends[B].device.alloc_xrc_domain();
            process(pair, other).number
        }),
        ("not of XRC", |pair| {
            let end = &mut pair.ends[B];
            let init = SharedQueueInit {
                domain: end.domain,
                depth: 5,
                segments: 1,
            };
            let ordinary = end.device.create_srq(init).expect("small");
            let status = end.device.query_srq(ordinary).expect("there");
            assert_eq!(status.number, None);
            0x0000_0101
        }),
        ("destroyed, and its place taken", |pair| {
            let xrc = domain(pair);
            let old = process(pair, xrc);
            let device = &mut pair.ends[B].device;
            device.destroy_srq(old.queue).expect("nobody uses it");
            // Places rest before they are used again.
            let taken = (0..100).any(|_| {
                let new = process(pair, xrc);
                assert_ne!(old.number, new.number);
                let again = old.number >> 8 == new.number >> 8;
                let device = &mut pair.ends[B].device;
                if !again {
                    device.destroy_srq(new.queue).expect("nobody uses it");
                }
                again
            });
            assert!(taken);
            old.number
        }),
    ];
    for (what, number) in cases {
        for operation in 0..4 {
            let mut pair = Bytes::extended(options());
            let number = number(&mut pair);
            let remote = Remote {
                address: 0,
                key: pair.key(B),
            };
            let operation = match operation {
                0 => SendOperation::Send,
                1 => SendOperation::Write(remote),
                2 => SendOperation::Read(remote),
                _ => SendOperation::FetchAdd { remote, add: 1 },
            };
            pair.receive(B, 1, 0, 100);
            let request = SendRequest::new(1, operation, pair.piece(A, 0, 8));
            pair.post(A, request.to_srq(number));
            pair.run();
            assert_eq!(
                pair.completions(A)[0].status,
                Status::RemoteInvalidRequest,
                "{what}"
            );
            assert_eq!(syndromes(&pair), [0x61], "{what}");
            assert_eq!(state(&pair, B), State::Error, "{what}");
            assert_eq!(pair.events(B), [Event::RequestError(pair.ends[B].qp)]);
            // The queue's requests are not the target's to flush.
            assert!(pair.completions(B).is_empty(), "{what}");
        }
    }
}

/// All packets of a message name one queue.
#[test]
fn a_message_does_not_change_its_queue() {
    let mut pair = Bytes::extended(options());
    let xrc = domain(&pair);
    let other = process(&mut pair, xrc);
    other.receive(&mut pair, 2, 0, 5000);
    pair.receive(B, 1, 0, 5000);
    pair.send(A, 1, SendOperation::Send, 0, 3000);
    let qp = pair.ends[A].qp;
    let device = &mut pair.ends[A].device;
    let now = Time::ZERO;
    let mut packets = Vec::new();
    while let Some(packet) = device.poll_transmit(now, softfabric_units::ClassMask::ALL) {
        packets.push(packet);
    }
    assert_eq!((packets.len(), packets[0].qp), (3, qp));
    for packet in &packets[..2] {
        pair.forge(B, &packet.header, &packet.payload, packet.payload_length);
    }
    let mut last = packets[2].header;
    last.xrc_srq = other.number;
    pair.forge(B, &last, &packets[2].payload, packets[2].payload_length);
    assert_eq!(state(&pair, B), State::Error);
    // The request that was begun is flushed, where it belongs.
    let done = pair.completions(B);
    assert_eq!((done[0].id, done[0].status), (1, Status::Flushed));
    assert!(other.completions(&mut pair).is_empty());
}

#[test]
fn a_queue_without_requests_is_not_ready() {
    let mut pair = Bytes::extended(options());
    pair.send(A, 1, SendOperation::Send, 0, 100);
    pair.run_until(Time::ZERO + Span::millis(2));
    assert!(pair.counter(A, DeviceCounter::RnrNakReceived) >= 2);
    let queue = pair.ends[B].shared.expect("it has one");
    pair.receive(B, 5, 0, 100);
    pair.receive(B, 6, 0, 100);
    let device = &mut pair.ends[B].device;
    device.set_srq_limit(queue, 2).expect("below the depth");
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    assert_eq!(pair.completions(B)[0].id, 5);
    assert_eq!(pair.events(B), [Event::SharedQueueLimit(queue)]);
}

/// The queue is destroyed in the middle of a message: the rest is refused, and nothing completes anywhere.
#[test]
fn a_queue_that_goes_in_the_middle_of_a_message() {
    let mut pair = Bytes::extended(options());
    let xrc = domain(&pair);
    let gone = process(&mut pair, xrc);
    gone.receive(&mut pair, 5, 0, 500_000);
    let send = SendRequest::new(1, SendOperation::Send, pair.piece(A, 0, 500_000));
    pair.post(A, send.to_srq(gone.number));
    pair.run_until(Time::from_nanos(10_000));
    let device = &mut pair.ends[B].device;
    assert!(device.destroy_cq(gone.completions).is_err(), "it is in use");
    assert_eq!(device.destroy_srq(gone.queue), Ok(()));
    assert_eq!(device.destroy_cq(gone.completions), Ok(()));
    let next = device.create_cq(10).expect("small");
    assert_ne!(next, gone.completions, "nobody gets its number soon");
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::RemoteInvalidRequest);
    assert!(gone.completions(&mut pair).is_empty());
}

/// A target's completion queue overruns: the target fails, and another one that turns to it is refused.
#[test]
fn a_completion_queue_that_overruns() {
    let mut pair = Bytes::extended(options());
    let xrc = domain(&pair);
    let process = process(&mut pair, xrc);
    let device = &mut pair.ends[B].device;
    device.resize_cq(process.completions, 1).expect("empty");
    for id in 0..5 {
        process.receive(&mut pair, id, 0, 100);
    }
    for id in 0..2 {
        let send = SendRequest::new(id, SendOperation::Send, pair.piece(A, 0, 10));
        pair.post(A, send.to_srq(process.number));
    }
    pair.run();
    let target = pair.ends[B].qp;
    assert_eq!(state(&pair, B), State::Error);
    assert_eq!(
        pair.events(B),
        [
            Event::CompletionQueueError(process.completions),
            Event::QueuePairFatal(target)
        ]
    );
    // The connection is made anew, the completion queue is still of no use.
    for side in [A, B] {
        pair.modify(side, &Modify::to(State::Reset));
    }
    pair.completions(A);
    pair.connect(options(), |_, _| {});
    let send = SendRequest::new(9, SendOperation::Send, pair.piece(A, 0, 10));
    pair.post(A, send.to_srq(process.number));
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::RemoteOperation);
}
