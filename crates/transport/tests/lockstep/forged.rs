//! Packets that somebody made up: malformed ones are refused, forged ones change nothing.

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, ByteMemory, Pair, PairOptions};
use softfabric_transport::{
    CompletedOperation, Mtu, QueuePairInit, QueuePairType, Remote, SendOperation, State, Status,
};
use softfabric_units::{Msn, PartitionKey, Psn, Qpn};
use softfabric_wire::rdma::{
    Aeth, AtomicEth, Bth, Extension, NakCode, Opcode, Reth, Syndrome, TransportHeader,
};

use crate::refusals::{pair, state, syndromes};

type Bytes = Pair<ByteMemory>;

/// Opcode, announced length where there is an RETH, and payload length.
type Packet = (Opcode, Option<u32>, u32);

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
            "an answer of another service",
            false,
            Opcode::RC_ACKNOWLEDGE,
            aeth(Syndrome::Nak(NakCode::InvalidRdRequest)),
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
