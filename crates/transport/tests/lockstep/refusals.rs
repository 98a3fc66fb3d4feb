//! Every refusal: what the peer answers, how the request ends on both sides, and what nobody gets in with.

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, ByteMemory, Pair, PairOptions};
use softfabric_transport::{
    Access, Event, LocalSegment, RegionInit, Remote, SendOperation, SendRequest, State, Status,
};
use softfabric_units::Psn;
use softfabric_wire::rdma::Extension;

type Bytes = Pair<ByteMemory>;

/// What a wrong request is called, and how its remote memory is made.
type WrongRemote = (&'static str, fn(&mut Bytes) -> Remote, u32);

pub(crate) fn pair() -> Bytes {
    Pair::reliable(PairOptions {
        record: true,
        psn: Psn::new(100),
        ..PairOptions::default()
    })
}

pub(crate) fn state(pair: &Bytes, side: usize) -> State {
    let end = &pair.ends[side];
    end.device.query_qp(end.qp).expect("it exists").state
}

/// The syndromes that B answered with.
pub(crate) fn syndromes(pair: &Bytes) -> Vec<u8> {
    pair.sent
        .iter()
        .filter(|sent| sent.side == B)
        .filter_map(|sent| match sent.header.extension {
            Extension::Aeth(aeth) => Some(aeth.syndrome.to_byte()),
            _ => None,
        })
        .collect()
}

/// Runs a request of A that B refuses: the status at A, the syndrome on the wire, the events at B.
fn refused(pair: &mut Bytes, request: SendRequest) -> (Status, u8, Vec<Event>) {
    pair.post(A, request);
    // Whatever comes after is flushed.
    pair.send(A, 77, SendOperation::Send, 0, 1);
    pair.run();
    let done = pair.completions(A);
    assert_eq!(done.len(), 2);
    assert_eq!(done[1].status, Status::Flushed);
    assert_eq!(state(pair, A), State::Error);
    let answers = syndromes(pair);
    assert_eq!(answers.len(), 1);
    let events = pair.events(B);
    (done[0].status, answers[0], events)
}

fn request(pair: &Bytes, operation: SendOperation, length: u32) -> SendRequest {
    SendRequest::new(1, operation, pair.piece(A, 0, length))
}

#[test]
fn wrong_keys_bounds_and_rights() {
    let size = PairOptions::default().memory as u64;
    let cases: [WrongRemote; 6] = [
        (
            "a key that nobody has",
            |_| Remote {
                address: 0,
                key: 0x1234_5678,
            },
            10,
        ),
        (
            "another variant of the right key",
            |pair| Remote {
                address: 0,
                key: pair.key(B) ^ 1,
            },
            10,
        ),
        (
            "past the end",
            |pair| Remote {
                address: PairOptions::default().memory as u64 - 5,
                key: pair.key(B),
            },
            6,
        ),
        (
            "around the end of the address space",
            |pair| Remote {
                address: u64::MAX - 5,
                key: pair.key(B),
            },
            100,
        ),
        (
            "without the right",
            |pair| {
                let end = &mut pair.ends[B];
                let region = RegionInit::new(0, 1000, Access::LOCAL_WRITE);
                let key = end
                    .device
                    .register_memory(end.domain, &region)
                    .expect("it fits");
                Remote { address: 0, key }
            },
            10,
        ),
        (
            "of another domain",
            |pair| {
                let device = &mut pair.ends[B].device;
                let other = device.alloc_domain();
                let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ;
                let region = RegionInit::new(0, 1000, access);
                let key = device.register_memory(other, &region).expect("it fits");
                Remote { address: 0, key }
            },
            10,
        ),
    ];
    for (what, remote, length) in cases {
        for read in [false, true] {
            let mut pair = pair();
            let remote = remote(&mut pair);
            let operation = if read {
                SendOperation::Read(remote)
            } else {
                SendOperation::Write(remote)
            };
            let request = request(&pair, operation, length);
            let (status, syndrome, events) = refused(&mut pair, request);
            assert_eq!(status, Status::RemoteAccess, "{what}");
            assert_eq!(syndrome, 0x62, "{what}");
            assert_eq!(events, [Event::AccessError(pair.ends[B].qp)], "{what}");
            assert_eq!(state(&pair, B), State::Error, "{what}");
            assert_eq!(pair.counter(B, DeviceCounter::ResponderAccessErrors), 1);
            assert_eq!(pair.counter(A, DeviceCounter::RemoteAccessErrors), 1);
        }
    }
    // The last byte is still in.
    let mut pair = pair();
    let remote = Remote {
        address: size - 5,
        key: pair.key(B),
    };
    pair.send(A, 1, SendOperation::Write(remote), 0, 5);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
}

#[test]
fn a_length_of_zero_needs_no_key() {
    let mut pair = pair();
    let nowhere = Remote {
        address: 5,
        key: 0xdead_beef,
    };
    pair.send(A, 1, SendOperation::Write(nowhere), 0, 0);
    pair.send(A, 2, SendOperation::Read(nowhere), 0, 0);
    pair.run();
    let done = pair.completions(A);
    assert_eq!(done.len(), 2);
    assert!(done.iter().all(|done| done.status == Status::Success));
}

#[test]
fn a_released_key_opens_nothing() {
    let mut pair = pair();
    let end = &mut pair.ends[B];
    let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
    let region = RegionInit::new(0, 1000, access);
    let old = end
        .device
        .register_memory(end.domain, &region)
        .expect("fits");
    end.device.deregister_memory(old).expect("it is there");
    let new = end
        .device
        .register_memory(end.domain, &region)
        .expect("fits");
    assert_eq!(old >> 8, new >> 8, "the slot is used again");
    assert_ne!(old, new);
    let stale = Remote {
        address: 0,
        key: old,
    };
    let request = request(&pair, SendOperation::Write(stale), 10);
    assert_eq!(refused(&mut pair, request).0, Status::RemoteAccess);
}

/// A key is taken away in the middle of a message: from then on nothing is written.
#[test]
fn a_key_released_in_the_middle_of_a_write() {
    let mut pair = pair();
    let end = &mut pair.ends[B];
    let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
    let region = RegionInit::new(0, 500_000, access);
    let key = end
        .device
        .register_memory(end.domain, &region)
        .expect("fits");
    pair.fill(A, 0, &vec![7; 500_000]);
    let remote = Remote { address: 0, key };
    pair.send(A, 1, SendOperation::Write(remote), 0, 500_000);
    pair.run_until(softfabric_units::Time::from_nanos(10_000));
    pair.ends[B]
        .device
        .deregister_memory(key)
        .expect("it is there");
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::RemoteAccess);
    assert_eq!(pair.bytes(B, 0, 1), [7]);
    assert_eq!(pair.bytes(B, 499_999, 1), [0]);
}

#[test]
fn a_key_released_in_the_middle_of_a_read() {
    let mut pair = pair();
    let end = &mut pair.ends[B];
    let region = RegionInit::new(0, 500_000, Access::REMOTE_READ);
    let key = end
        .device
        .register_memory(end.domain, &region)
        .expect("fits");
    let remote = Remote { address: 0, key };
    pair.send(A, 1, SendOperation::Read(remote), 0, 500_000);
    pair.run_until(softfabric_units::Time::from_nanos(10_000));
    pair.ends[B]
        .device
        .deregister_memory(key)
        .expect("it is there");
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::RemoteAccess);
}

#[test]
fn operations_that_the_queue_pair_does_not_allow() {
    for (missing, operation) in [
        (Access::REMOTE_WRITE, 0),
        (Access::REMOTE_READ, 1),
        (Access::REMOTE_ATOMIC, 2),
    ] {
        let mut pair = Bytes::reliable_with(
            PairOptions {
                record: true,
                ..PairOptions::default()
            },
            |_, _| {},
            |_, modify| {
                if let Some(access) = &mut modify.access {
                    *access -= missing;
                }
            },
        );
        let remote = Remote {
            address: 0,
            key: pair.key(B),
        };
        let operation = match operation {
            0 => SendOperation::Write(remote),
            1 => SendOperation::Read(remote),
            _ => SendOperation::FetchAdd { remote, add: 1 },
        };
        let request = request(&pair, operation, 8);
        let (status, syndrome, events) = refused(&mut pair, request);
        assert_eq!(status, Status::RemoteInvalidRequest);
        assert_eq!(syndrome, 0x61);
        assert_eq!(events, [Event::RequestError(pair.ends[B].qp)]);
    }
}

#[test]
fn a_message_too_long_for_its_receive_request() {
    for length in [101, 5000] {
        let mut pair = pair();
        pair.receive(B, 9, 0, 100);
        pair.receive(B, 10, 0, 100);
        let request = request(&pair, SendOperation::Send, length);
        let (status, syndrome, _) = refused(&mut pair, request);
        assert_eq!(status, Status::RemoteInvalidRequest);
        assert_eq!(syndrome, 0x61);
        let received = pair.completions(B);
        assert_eq!(received[0].status, Status::LocalLength);
        assert_eq!(received[0].id, 9);
        assert_eq!(received[1].status, Status::Flushed);
    }
}

#[test]
fn receive_memory_that_the_key_does_not_allow() {
    let mut pair = pair();
    let end = &mut pair.ends[B];
    let read_only = RegionInit::new(0, 1000, Access::REMOTE_READ);
    let key = end
        .device
        .register_memory(end.domain, &read_only)
        .expect("fits");
    let piece = LocalSegment {
        address: 0,
        length: 100,
        key,
    };
    let receive = softfabric_transport::ReceiveRequest::new(9, piece);
    end.device
        .post_recv(end.qp, receive)
        .expect("posting does not check");
    let request = request(&pair, SendOperation::Send, 10);
    let (status, syndrome, events) = refused(&mut pair, request);
    assert_eq!(status, Status::RemoteOperation);
    assert_eq!(syndrome, 0x63);
    assert_eq!(events, [Event::QueuePairFatal(pair.ends[B].qp)]);
    assert_eq!(pair.completions(B)[0].status, Status::LocalProtection);
}

#[test]
fn memory_that_cannot_be_reached() {
    // At the target of a send, of a write with immediate, of a read.
    let mut sent = pair();
    sent.ends[B].device.memory_mut().hole(50..60);
    sent.receive(B, 9, 0, 100);
    let send = request(&sent, SendOperation::Send, 100);
    assert_eq!(refused(&mut sent, send).0, Status::RemoteOperation);
    assert_eq!(sent.completions(B)[0].status, Status::LocalOperation);

    let mut written = pair();
    written.ends[B].device.memory_mut().hole(50..60);
    written.receive(B, 9, 0, 100);
    let remote = Remote {
        address: 0,
        key: written.key(B),
    };
    let write = request(&written, SendOperation::WriteImmediate(remote, 1), 100);
    let (status, syndrome, _) = refused(&mut written, write);
    assert_eq!((status, syndrome), (Status::RemoteOperation, 0x63));
    let received = written.completions(B);
    assert_eq!(received[0].status, Status::LocalAccess);
    assert_eq!(received[0].id, 9);

    let mut read = pair();
    read.ends[B].device.memory_mut().hole(50..60);
    let request = request(&read, SendOperation::Read(remote), 100);
    let (status, syndrome, _) = refused(&mut read, request);
    assert_eq!((status, syndrome), (Status::RemoteOperation, 0x63));

    // At the source.
    let mut source = pair();
    source.ends[A].device.memory_mut().hole(50..60);
    source.send(A, 1, SendOperation::Write(remote), 0, 100);
    source.run();
    assert_eq!(source.completions(A)[0].status, Status::LocalOperation);
    assert_eq!(source.packets, 0);
}

#[test]
fn local_memory_that_the_key_does_not_allow() {
    let mut pair = pair();
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    // A good request before it completes first.
    pair.send(A, 1, SendOperation::Write(remote), 0, 3000);
    let wrong = LocalSegment {
        address: 0,
        length: 10,
        key: 0x55,
    };
    pair.post(A, SendRequest::new(2, SendOperation::Write(remote), wrong));
    pair.send(A, 3, SendOperation::Write(remote), 0, 10);
    pair.run();
    let done: Vec<_> = pair
        .completions(A)
        .iter()
        .map(|done| (done.id, done.status))
        .collect();
    assert_eq!(
        done,
        [
            (1, Status::Success),
            (2, Status::LocalProtection),
            (3, Status::Flushed)
        ]
    );
    // A read into memory without LOCAL_WRITE.
    let mut pair = self::pair();
    let end = &mut pair.ends[A];
    let region = RegionInit::new(0, 1000, Access::REMOTE_READ);
    let key = end
        .device
        .register_memory(end.domain, &region)
        .expect("fits");
    let local = LocalSegment {
        address: 0,
        length: 10,
        key,
    };
    pair.post(A, SendRequest::new(1, SendOperation::Read(remote), local));
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::LocalProtection);
}

#[test]
fn more_reads_than_allowed() {
    // B allows one read of A, and A believes it may have 16: posting many at once breaks the rule.
    let options = PairOptions {
        record: true,
        ..PairOptions::default()
    };
    let mut pair = Bytes::reliable_with(
        options,
        |_, _| {},
        |side, modify| {
            if side == B && modify.max_peer_reads.is_some() {
                modify.max_peer_reads = Some(1);
            }
        },
    );
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    for id in 0..8 {
        pair.send(A, id, SendOperation::Read(remote), 0, 50_000);
    }
    pair.run();
    assert!(
        pair.completions(A)
            .iter()
            .any(|done| done.status == Status::RemoteInvalidRequest)
    );
}

/// Where the peer may have no read in flight, one is an invalid request; where we may have none, it fails here.
#[test]
fn no_reads_at_all() {
    for (here, there, status) in [
        (0, 16, Status::LocalOperation),
        (16, 0, Status::RemoteInvalidRequest),
    ] {
        for atomic in [false, true] {
            let mut pair = Bytes::reliable_with(
                PairOptions {
                    record: true,
                    ..PairOptions::default()
                },
                |_, _| {},
                |side, modify| {
                    if side == A && modify.max_reads.is_some() {
                        modify.max_reads = Some(here);
                    }
                    if side == B && modify.max_peer_reads.is_some() {
                        modify.max_peer_reads = Some(there);
                    }
                },
            );
            let remote = Remote {
                address: 0,
                key: pair.key(B),
            };
            let operation = if atomic {
                SendOperation::FetchAdd { remote, add: 1 }
            } else {
                SendOperation::Read(remote)
            };
            pair.send(A, 1, SendOperation::Write(remote), 0, 8);
            pair.send(A, 2, operation, 0, 8);
            pair.send(A, 3, SendOperation::Write(remote), 0, 8);
            pair.run();
            let done = pair.completions(A);
            let statuses: Vec<_> = done.iter().map(|done| done.status).collect();
            assert_eq!(statuses, [Status::Success, status, Status::Flushed]);
        }
    }
}

/// What an atomic brings goes into the first eight bytes, however many there are; fewer are refused.
#[test]
fn an_atomic_needs_eight_bytes() {
    let mut pair = pair();
    pair.fill(B, 0, &7u64.to_ne_bytes());
    pair.fill(A, 100, &[0xee; 16]);
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    let add = SendOperation::FetchAdd { remote, add: 1 };
    pair.send(A, 1, add, 100, 16);
    pair.run();
    let done = pair.completions(A);
    assert_eq!((done[0].status, done[0].length), (Status::Success, 8));
    assert_eq!(pair.bytes(A, 100, 8), 7u64.to_ne_bytes());
    assert_eq!(pair.bytes(A, 108, 8), [0xee; 8]);
    let short = SendRequest::new(2, add, pair.piece(A, 100, 7));
    let end = &mut pair.ends[A];
    let refused = end
        .device
        .post_send(softfabric_units::Time::ZERO, end.qp, short);
    assert_eq!(refused, Err(softfabric_transport::PostError::Atomic));
}
