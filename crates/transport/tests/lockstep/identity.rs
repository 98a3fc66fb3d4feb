//! Who speaks for a connection: only its peer, from the peer's address (IBTA vol. 1, 9.6.1.5).

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, ByteMemory, Carry, Pair, PairOptions, path_to};
use softfabric_transport::rate::{DcqcnNicParameters, RateControlConfig};
use softfabric_transport::{
    AddressVector, Arrival, LengthsOnly, Modify, QueuePairType, Remote, SendOperation, State,
    Status,
};
use softfabric_units::{Gid, PartitionKey, Psn, Time};
use softfabric_wire::rdma::{
    Aeth, Bth, Deth, Extension, NakCode, Opcode, Reth, Syndrome, TransportHeader,
};

fn pair<M: Carry>(service: QueuePairType) -> Pair<M> {
    let mut options = PairOptions {
        psn: Psn::new(100),
        record: true,
        ..PairOptions::default()
    };
    options.config.rate_control = RateControlConfig::DcqcnNic(DcqcnNicParameters::nvidia_default());
    match service {
        QueuePairType::UnreliableConnection => Pair::unreliable(options),
        QueuePairType::UnreliableDatagram => Pair::datagrams(options),
        _ => Pair::reliable(options),
    }
}

fn header<M: Carry>(
    pair: &Pair<M>,
    to: usize,
    opcode: Opcode,
    extension: Extension,
) -> TransportHeader {
    TransportHeader {
        bth: Bth {
            opcode,
            solicited: false,
            migrated: true,
            pad: 0,
            partition: PartitionKey::DEFAULT,
            fecn: false,
            becn: opcode == Opcode::CNP,
            destination: pair.ends[to].qp,
            acknowledge: true,
            psn: Psn::new(100),
        },
        extension,
        xrc_srq: 0,
    }
}

/// Delivers a packet that says to come from `gid`.
fn deliver<M: Carry>(
    pair: &mut Pair<M>,
    to: usize,
    header: &TransportHeader,
    payload: M::Incoming<'_>,
    payload_length: u32,
    gid: Gid,
) {
    let source = AddressVector {
        gid,
        ..path_to(1 - to)
    };
    let now = pair.now();
    pair.ends[to].device.handle_packet(
        now,
        Arrival {
            header,
            payload,
            payload_length,
            congestion: true,
            source: &source,
            destination: None,
            grh: None,
        },
    );
}

fn stranger() -> Gid {
    Gid::from(std::net::Ipv4Addr::new(10, 0, 0, 66))
}

/// Right in everything but the address: number, partition, PSN, key.
#[test]
fn a_strangers_request_is_dropped() {
    for (service, opcode) in [
        (QueuePairType::ReliableConnection, Opcode::RC_WRITE_ONLY),
        (QueuePairType::UnreliableConnection, Opcode::UC_WRITE_ONLY),
    ] {
        let mut pair = pair::<ByteMemory>(service);
        let reth = Extension::Reth(Reth {
            address: 0,
            rkey: pair.key(B),
            length: 4,
        });
        let write = header(&pair, B, opcode, reth);
        deliver(&mut pair, B, &write, &[7; 4], 4, stranger());
        pair.run();
        assert_eq!(pair.counter(B, DeviceCounter::WrongSource), 1);
        assert_eq!(pair.counter(B, DeviceCounter::EcnMarkedReceived), 0);
        assert_eq!(pair.bytes(B, 0, 4), [0; 4], "{service}");
        assert_eq!(pair.packets, 0, "nobody is answered");
        deliver(&mut pair, B, &write, &[7; 4], 4, path_to(A).gid);
        assert_eq!(pair.bytes(B, 0, 4), [7; 4], "{service}");
        assert_eq!(pair.counter(B, DeviceCounter::WrongSource), 1);
    }
}

/// Nor can a stranger end, speed up or slow down what a connection does.
#[test]
fn a_strangers_answers_are_dropped() {
    let mut pair = pair::<LengthsOnly>(QueuePairType::ReliableConnection);
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    pair.send(A, 1, SendOperation::Write(remote), 0, 8);
    pair.run_until(Time::from_nanos(500));
    let answers = [
        Syndrome::ACK,
        Syndrome::Nak(NakCode::RemoteAccess),
        Syndrome::Nak(NakCode::SequenceError),
    ];
    for syndrome in answers {
        let msn = softfabric_units::Msn::new(1);
        let aeth = Extension::Aeth(Aeth { syndrome, msn });
        let answer = header(&pair, A, Opcode::RC_ACKNOWLEDGE, aeth);
        deliver(&mut pair, A, &answer, (), 0, stranger());
    }
    let notification = header(&pair, A, Opcode::CNP, Extension::Notification);
    deliver(&mut pair, A, &notification, (), 0, stranger());
    assert_eq!(pair.counter(A, DeviceCounter::WrongSource), 4);
    assert_eq!(pair.counter(A, DeviceCounter::CnpHandled), 0);
    assert_eq!(pair.counter(A, DeviceCounter::Retransmitted), 0);
    assert!(pair.completions(A).is_empty());
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    deliver(&mut pair, A, &notification, (), 0, path_to(B).gid);
    assert_eq!(pair.counter(A, DeviceCounter::CnpHandled), 1);
}

/// Datagrams come from anybody who knows the queue key.
#[test]
fn datagrams_come_from_anywhere() {
    let mut pair = pair::<ByteMemory>(QueuePairType::UnreliableDatagram);
    pair.receive(B, 1, 0, 100);
    let deth = Extension::Deth(Deth {
        qkey: 0x1111_1111,
        source: pair.ends[A].qp,
    });
    let datagram = header(&pair, B, Opcode::UD_SEND_ONLY, deth);
    deliver(&mut pair, B, &datagram, &[7; 4], 4, stranger());
    let received = pair.completions(B);
    assert_eq!(received[0].source_gid, stranger());
    assert_eq!(pair.counter(B, DeviceCounter::WrongSource), 0);
}

/// A new path means a new address of the peer.
#[test]
fn a_peer_may_move() {
    let mut pair = pair::<LengthsOnly>(QueuePairType::ReliableConnection);
    pair.modify(B, &Modify::to(State::SendQueueDrain));
    let path = AddressVector {
        gid: stranger(),
        ..path_to(A)
    };
    pair.modify(
        B,
        &Modify {
            path: Some(path),
            ..Modify::to(State::SendQueueDrain)
        },
    );
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    pair.send(A, 1, SendOperation::Write(remote), 0, 8);
    pair.run_until(Time::from_nanos(5_000));
    assert_eq!(pair.counter(B, DeviceCounter::WrongSource), 1);
}
