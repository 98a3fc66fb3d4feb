//! Every refusal: what the peer answers, how the request ends on both sides, and what nobody gets in with.

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, ByteMemory, Pair, PairOptions};
use softfabric_transport::{
    Access, CompletedOperation, Event, LocalSegment, Mtu, QueuePairInit, QueuePairType, RegionInit,
    Remote, SendOperation, SendRequest, State, Status,
};
use softfabric_units::{Msn, PartitionKey, Psn, Qpn};
use softfabric_wire::rdma::{
    Aeth, AtomicEth, Bth, Extension, NakCode, Opcode, Reth, Syndrome, TransportHeader,
};

type Bytes = Pair<ByteMemory>;

/// What a wrong request is called, and how its remote memory is made.
type WrongRemote = (&'static str, fn(&mut Bytes) -> Remote, u32);

/// Opcode, announced length where there is an RETH, and payload length.
type Packet = (Opcode, Option<u32>, u32);

fn pair() -> Bytes {
    Pair::reliable(PairOptions {
        record: true,
        psn: Psn::new(100),
        ..PairOptions::default()
    })
}

fn state(pair: &Bytes, side: usize) -> State {
    let end = &pair.ends[side];
    end.device.query_qp(end.qp).expect("it exists").state
}

/// The syndromes that B answered with.
fn syndromes(pair: &Bytes) -> Vec<u8> {
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

fn header(to: Qpn, opcode: Opcode, psn: Psn, extension: Extension) -> TransportHeader {
    TransportHeader {
        bth: Bth {
            opcode,
            solicited: false,
            migrated: true,
            pad: 0,
            partition: PartitionKey::DEFAULT,
            fecn: false,
            becn: false,
            destination: to,
            acknowledge: true,
            psn,
        },
        extension,
        xrc_srq: 0,
    }
}

/// Packets that break the rules of a message (IBTA vol. 1, 9.7.4.1): each ends the connection with an invalid request.
#[test]
fn malformed_requests() {
    let reth = |length| {
        Extension::Reth(Reth {
            address: 0,
            rkey: 0,
            length,
        })
    };
    let first = Psn::new(100);
    let mtu = Mtu::BYTES_1024.as_u32();
    let payload = vec![0; 5000];
    let cases: [(&str, &[Packet]); 14] = [
        (
            "a middle without a first",
            &[(Opcode::RC_WRITE_MIDDLE, None, mtu)],
        ),
        (
            "a last without a first",
            &[(Opcode::RC_SEND_LAST, None, 10)],
        ),
        (
            "a first within a message",
            &[
                (Opcode::RC_WRITE_FIRST, Some(5000), mtu),
                (Opcode::RC_WRITE_FIRST, Some(5000), mtu),
            ],
        ),
        (
            "a send within a write",
            &[
                (Opcode::RC_WRITE_FIRST, Some(5000), mtu),
                (Opcode::RC_SEND_MIDDLE, None, mtu),
            ],
        ),
        (
            "a read within a write",
            &[
                (Opcode::RC_WRITE_FIRST, Some(5000), mtu),
                (Opcode::RC_READ_REQUEST, Some(10), 0),
            ],
        ),
        (
            "a first that is not full",
            &[(Opcode::RC_WRITE_FIRST, Some(5000), 100)],
        ),
        (
            "an only beyond the MTU",
            &[(Opcode::RC_SEND_ONLY, None, mtu + 1)],
        ),
        (
            "an empty last",
            &[
                (Opcode::RC_WRITE_FIRST, Some(mtu), mtu),
                (Opcode::RC_WRITE_LAST, None, 0),
            ],
        ),
        (
            "more than announced",
            &[(Opcode::RC_WRITE_ONLY, Some(5), 6)],
        ),
        (
            "less than announced",
            &[(Opcode::RC_WRITE_ONLY, Some(7), 6)],
        ),
        (
            "less than announced, at the end",
            &[
                (Opcode::RC_WRITE_FIRST, Some(5000), mtu),
                (Opcode::RC_WRITE_LAST, None, 6),
            ],
        ),
        (
            "more than announced, in the middle",
            &[
                (Opcode::RC_WRITE_FIRST, Some(1500), mtu),
                (Opcode::RC_WRITE_MIDDLE, None, mtu),
            ],
        ),
        (
            "a message of more than 2 GiB",
            &[(Opcode::RC_WRITE_FIRST, Some(0x8000_0001), mtu)],
        ),
        (
            "a read of more than 2 GiB",
            &[(Opcode::RC_READ_REQUEST, Some(0x8000_0001), 0)],
        ),
    ];
    for (what, packets) in cases {
        let mut pair = pair();
        pair.receive(B, 5, 0, 10_000);
        let key = pair.key(B);
        let to = pair.ends[B].qp;
        for (number, &(opcode, announced, length)) in packets.iter().enumerate() {
            let extension = match (announced, reth(announced.unwrap_or(0))) {
                (Some(_), Extension::Reth(reth)) => Extension::Reth(Reth { rkey: key, ..reth }),
                _ => Extension::None,
            };
            let header = header(to, opcode, first.add(number as u32), extension);
            pair.forge(B, &header, &payload[..length as usize], length);
        }
        pair.run();
        assert_eq!(syndromes(&pair).last(), Some(&0x61), "{what}");
        assert_eq!(state(&pair, B), State::Error, "{what}");
        assert_eq!(pair.completions(B)[0].status, Status::Flushed, "{what}");
    }
}

#[test]
fn an_atomic_at_an_odd_address_or_without_its_right() {
    let atomic = |address, rkey| {
        Extension::Atomic(AtomicEth {
            address,
            rkey,
            swap_or_add: 1,
            compare: 0,
        })
    };
    let mut odd = pair();
    let key = odd.key(B);
    let to = odd.ends[B].qp;
    let packet = header(to, Opcode::RC_FETCH_ADD, Psn::new(100), atomic(4, key));
    odd.forge(B, &packet, &[], 0);
    odd.run();
    assert_eq!(syndromes(&odd), [0x61]);

    let mut wrong = pair();
    let packet = header(
        to,
        Opcode::RC_FETCH_ADD,
        Psn::new(100),
        atomic(8, key ^ 0x300),
    );
    wrong.forge(B, &packet, &[], 0);
    wrong.run();
    assert_eq!(syndromes(&wrong), [0x62]);
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

/// Forged packets: unless number, partition, service and PSN are right, nothing happens but counting.
#[test]
fn forged_packets_change_nothing() {
    let mut pair = pair();
    let key = pair.key(B);
    let to = pair.ends[B].qp;
    let reth = Extension::Reth(Reth {
        address: 0,
        rkey: key,
        length: 4,
    });
    let good = header(to, Opcode::RC_WRITE_ONLY, Psn::new(100), reth);
    let forged = |change: &dyn Fn(&mut Bth)| {
        let mut header = good;
        change(&mut header.bth);
        header
    };
    let wrong = [
        forged(&|bth| bth.destination = Qpn::new(0x777)),
        forged(&|bth| bth.partition = PartitionKey(0x8001)),
        forged(&|bth| bth.opcode = Opcode::UC_WRITE_ONLY),
        forged(&|bth| bth.opcode = Opcode::XRC_WRITE_ONLY),
    ];
    for header in &wrong {
        pair.forge(B, header, &[9; 4], 4);
    }
    assert_eq!(
        pair.counter(B, DeviceCounter::Discarded),
        wrong.len() as u64
    );
    // A PSN ahead is a gap, one behind a duplicate: neither is executed.
    pair.forge(B, &forged(&|bth| bth.psn = Psn::new(105)), &[9; 4], 4);
    pair.forge(B, &forged(&|bth| bth.psn = Psn::new(95)), &[9; 4], 4);
    pair.run();
    assert_eq!(pair.bytes(B, 0, 4), [0; 4]);
    assert_eq!(state(&pair, B), State::ReadyToSend);
    // The connection still works.
    pair.fill(A, 0, &[1, 2, 3, 4]);
    let remote = Remote { address: 0, key };
    pair.send(A, 1, SendOperation::Write(remote), 0, 4);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    assert_eq!(pair.bytes(B, 0, 4), [1, 2, 3, 4]);
}

/// A duplicate of a read that asks for more than the read did, or where it may not: dropped.
#[test]
fn forged_duplicates_of_a_read() {
    let mut pair = pair();
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    pair.send(A, 1, SendOperation::Read(remote), 0, 2048);
    pair.run();
    let before = pair.sent.len();
    let to = pair.ends[B].qp;
    let read = |rkey, length| {
        Extension::Reth(Reth {
            address: 0,
            rkey,
            length,
        })
    };
    for extension in [read(remote.key, 2049), read(remote.key ^ 1, 2048)] {
        let packet = header(to, Opcode::RC_READ_REQUEST, Psn::new(100), extension);
        pair.forge(B, &packet, &[], 0);
        pair.run();
        assert_eq!(pair.sent.len(), before);
    }
    let packet = header(
        to,
        Opcode::RC_READ_REQUEST,
        Psn::new(101),
        read(remote.key, 1024),
    );
    pair.forge(B, &packet, &[], 0);
    pair.run();
    assert_eq!(pair.sent.len(), before + 1, "its second half is read again");
}

#[test]
fn forged_answers_change_nothing() {
    let mut pair = pair();
    let to = pair.ends[A].qp;
    let aeth = |syndrome| {
        Extension::Aeth(Aeth {
            syndrome,
            msn: Msn::new(1),
        })
    };
    let syndromes = [
        Syndrome::ACK,
        Syndrome::Nak(NakCode::SequenceError),
        Syndrome::Nak(NakCode::InvalidRequest),
        Syndrome::Nak(NakCode::RemoteAccess),
        Syndrome::RnrNak(softfabric_wire::rdma::RnrTimer::from_code(1)),
        Syndrome::Reserved(0x7f),
    ];
    // Nothing is outstanding, so every answer is a ghost.
    for (index, syndrome) in syndromes.into_iter().enumerate() {
        for psn in [99, 100, 101, 0x80_0100] {
            let packet = header(to, Opcode::RC_ACKNOWLEDGE, Psn::new(psn), aeth(syndrome));
            pair.forge(A, &packet, &[], 0);
        }
        assert!(pair.counter(A, DeviceCounter::Discarded) >= 3 * index as u64);
    }
    let data = header(
        to,
        Opcode::RC_READ_RESPONSE_ONLY,
        Psn::new(100),
        aeth(Syndrome::ACK),
    );
    pair.forge(A, &data, &[1; 8], 8);
    pair.run();
    assert_eq!(state(&pair, A), State::ReadyToSend);
    assert!(pair.completions(A).is_empty());
}

#[test]
fn answers_that_do_not_fit_are_bad_responses() {
    let aeth = |syndrome| {
        Extension::Aeth(Aeth {
            syndrome,
            msn: Msn::new(1),
        })
    };
    let atomic = Extension::AethAtomic(
        Aeth {
            syndrome: Syndrome::ACK,
            msn: Msn::new(1),
        },
        5,
    );
    for (what, read, opcode, extension, length) in [
        (
            "a reserved syndrome",
            false,
            Opcode::RC_ACKNOWLEDGE,
            aeth(Syndrome::Reserved(0x7f)),
            0,
        ),
        (
            "read data for a write",
            false,
            Opcode::RC_READ_RESPONSE_ONLY,
            aeth(Syndrome::ACK),
            8,
        ),
        (
            "an atomic's result for a read",
            true,
            Opcode::RC_ATOMIC_ACKNOWLEDGE,
            atomic,
            0,
        ),
        (
            "too little read data",
            true,
            Opcode::RC_READ_RESPONSE_ONLY,
            aeth(Syndrome::ACK),
            7,
        ),
        (
            "a middle where the end should be",
            true,
            Opcode::RC_READ_RESPONSE_MIDDLE,
            Extension::None,
            8,
        ),
    ] {
        let mut pair = pair();
        pair.wire.set_rule(|_, _, _| {
            Some(softfabric_testkit::Fate {
                dropped: true,
                ..Default::default()
            })
        });
        let remote = Remote {
            address: 0,
            key: pair.key(B),
        };
        let operation = if read {
            SendOperation::Read(remote)
        } else {
            SendOperation::Write(remote)
        };
        pair.send(A, 1, operation, 0, 8);
        pair.run_until(softfabric_units::Time::from_nanos(1000));
        let packet = header(pair.ends[A].qp, opcode, Psn::new(100), extension);
        pair.forge(A, &packet, &[1; 8][..length], length as u32);
        let done = pair.completions(A);
        assert_eq!(done[0].status, Status::BadResponse, "{what}");
        assert_eq!(done[0].operation == CompletedOperation::Read, read);
        assert_eq!(state(&pair, A), State::Error, "{what}");
    }
}

#[test]
fn queue_pairs_that_are_not_ready_receive_nothing() {
    let options = PairOptions::default();
    let mut pair = Bytes::unconnected(
        QueuePairType::ReliableConnection,
        options,
        |_, _: &mut QueuePairInit| {},
    );
    let to = pair.ends[B].qp;
    let packet = header(to, Opcode::RC_SEND_ONLY, Psn::new(0), Extension::None);
    pair.forge(B, &packet, &[], 0);
    assert_eq!(pair.counter(B, DeviceCounter::Discarded), 1);
    pair.run();
    assert_eq!(pair.packets, 0);
}
