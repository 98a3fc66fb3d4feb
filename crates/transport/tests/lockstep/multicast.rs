//! Queue pair 1, and datagrams to groups.

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, ByteMemory, Pair, PairOptions, path_to};
use softfabric_transport::{
    AddressVector, Arrival, CreateError, Datagram, GENERAL_SERVICES_QKEY, Modify, ModifyError,
    MulticastError, QueuePairInit, QueuePairType, ReceiveRequest, SendOperation, SendRequest,
    State,
};
use softfabric_units::{ClassMask, Gid, PartitionKey, Psn, Qpn, Time};
use softfabric_wire::rdma::{Bth, Deth, Extension, Opcode, TransportHeader};

type Bytes = Pair<ByteMemory>;

fn group(last: u8) -> Gid {
    Gid::from(std::net::Ipv4Addr::new(239, 1, 2, last))
}

fn pair() -> Bytes {
    Pair::datagrams(PairOptions::default())
}

/// One more datagram queue pair of a side, ready, with `receives` receive requests of 100 bytes.
fn another(pair: &mut Bytes, side: usize, qkey: u32, receives: u64) -> Qpn {
    let end = &mut pair.ends[side];
    let service = QueuePairType::UnreliableDatagram;
    let init = QueuePairInit::new(service, end.domain, end.queue);
    let qp = end.device.create_qp(&init).expect("it can");
    for step in [
        Modify::initialize_datagram(qkey),
        Modify::to(State::ReadyToReceive),
        Modify::ready_to_send(Psn::new(0)),
    ] {
        end.device
            .modify_qp(Time::ZERO, qp, &step)
            .expect("in order");
    }
    for id in 0..receives {
        let address = u64::from(qp.as_u32()) * 1000 + id * 100;
        let piece = pair.piece(side, address, 100);
        let end = &mut pair.ends[side];
        end.device
            .post_recv(qp, ReceiveRequest::new(id, piece))
            .expect("room");
    }
    qp
}

const QKEY: u32 = 0x1111_1111;

/// Sends 8 bytes from A's queue pair to a group, and delivers them to B.
fn send(pair: &mut Bytes, to: Gid) {
    let datagram = Datagram {
        path: AddressVector {
            gid: to,
            ..path_to(B)
        },
        destination: Qpn::MULTICAST,
        qkey: QKEY,
    };
    let request = SendRequest::new(1, SendOperation::Send, pair.piece(A, 0, 8)).to(datagram);
    pair.post(A, request);
    pair.run();
}

#[test]
fn every_member_with_the_queue_key_receives() {
    let mut pair = pair();
    pair.fill(A, 0, b"for them");
    let members = [(QKEY, 1), (QKEY, 2), (QKEY ^ 1, 1), (QKEY, 0)]
        .map(|(qkey, receives)| another(&mut pair, B, qkey, receives));
    let elsewhere = another(&mut pair, B, QKEY, 1);
    let device = &mut pair.ends[B].device;
    for (index, &qp) in members.iter().enumerate() {
        assert_eq!(device.attach_multicast(qp, group(1)), Ok(index == 0));
    }
    assert_eq!(device.attach_multicast(elsewhere, group(2)), Ok(true));
    send(&mut pair, group(1));
    let received = pair.completions(B);
    let who: Vec<_> = received.iter().map(|done| done.qp).collect();
    assert_eq!(
        who,
        members[..2],
        "those with the key and a receive request"
    );
    for qp in who {
        let address = u64::from(qp.as_u32()) * 1000 + 40;
        assert_eq!(pair.bytes(B, address, 8), b"for them");
    }
    assert_eq!(received[0].source, pair.ends[A].qp);
    assert_eq!(received[0].length, 48);
    assert_eq!(pair.counter(B, DeviceCounter::Discarded), 1, "queue key");
    assert_eq!(pair.counter(B, DeviceCounter::OutOfBuffer), 1);
    let a = pair.completions(A);
    assert_eq!(a.len(), 1, "a datagram is sent once for all");
}

#[test]
fn members_come_and_go() {
    let mut pair = pair();
    let first = another(&mut pair, B, QKEY, 5);
    let second = another(&mut pair, B, QKEY, 5);
    let device = &mut pair.ends[B].device;
    assert_eq!(device.attach_multicast(first, group(1)), Ok(true));
    assert_eq!(device.attach_multicast(first, group(1)), Ok(false), "twice");
    assert_eq!(device.attach_multicast(second, group(1)), Ok(false));
    assert_eq!(
        device.multicast_groups(first).collect::<Vec<_>>(),
        [group(1)]
    );
    send(&mut pair, group(1));
    assert_eq!(pair.completions(B).len(), 2, "once each");
    let device = &mut pair.ends[B].device;
    assert_eq!(device.destroy_qp(first), Err(ModifyError::Attached(1)));
    assert_eq!(device.detach_multicast(first, group(1)), Ok(false));
    assert_eq!(
        device.detach_multicast(first, group(1)),
        Err(MulticastError::NotAttached(group(1)))
    );
    assert_eq!(device.destroy_qp(first), Ok(()));
    assert_eq!(device.detach_multicast(second, group(1)), Ok(true));
    send(&mut pair, group(1));
    assert!(pair.completions(B).is_empty());
    assert_eq!(pair.counter(B, DeviceCounter::Discarded), 1);
}

#[test]
fn what_cannot_be_attached() {
    let mut pair = pair();
    let datagrams = pair.ends[B].qp;
    let end = &mut pair.ends[B];
    let service = QueuePairType::ReliableConnection;
    let init = QueuePairInit::new(service, end.domain, end.queue);
    let connection = end.device.create_qp(&init).expect("it can");
    let nobody = Qpn::new(0x777);
    let attach = |qp, gid| end.device.attach_multicast(qp, gid);
    let mut attach = attach;
    assert_eq!(
        attach(connection, group(1)),
        Err(MulticastError::Service(service))
    );
    assert_eq!(
        attach(nobody, group(1)),
        Err(MulticastError::Unknown(nobody))
    );
    let single = path_to(A).gid;
    assert_eq!(
        attach(datagrams, single),
        Err(MulticastError::Address(single))
    );
    let v6 = Gid::from_ip("ff0e::1234".parse().expect("an address"));
    assert_eq!(attach(datagrams, v6), Ok(true));
}

/// Only datagrams, only with the group's address, only in the partition, only where the state allows it.
#[test]
fn what_is_not_delivered() {
    let mut pair = pair();
    let member = another(&mut pair, B, QKEY, 5);
    // A member with the key and a receive request, but in INIT.
    let idle = {
        let piece = pair.piece(B, 0, 100);
        let end = &mut pair.ends[B];
        let service = QueuePairType::UnreliableDatagram;
        let init = QueuePairInit::new(service, end.domain, end.queue);
        let qp = end.device.create_qp(&init).expect("it can");
        let initialize = Modify::initialize_datagram(QKEY);
        let device = &mut end.device;
        device
            .modify_qp(Time::ZERO, qp, &initialize)
            .expect("it can");
        let receive = ReceiveRequest::new(9, piece);
        device.post_recv(qp, receive).expect("room");
        qp
    };
    let device = &mut pair.ends[B].device;
    device.attach_multicast(member, group(1)).expect("it can");
    device.attach_multicast(idle, group(1)).expect("it can");
    let good = TransportHeader {
        bth: Bth {
            opcode: Opcode::UD_SEND_ONLY,
            solicited: false,
            migrated: true,
            pad: 0,
            partition: PartitionKey::DEFAULT,
            fecn: false,
            becn: false,
            destination: Qpn::MULTICAST,
            acknowledge: false,
            psn: Psn::new(0),
        },
        extension: Extension::Deth(Deth {
            qkey: QKEY,
            source: Qpn::new(5),
        }),
        xrc_srq: 0,
    };
    let mut partition = good;
    partition.bth.partition = PartitionKey(0x8001);
    let mut connected = good;
    connected.bth.opcode = Opcode::RC_SEND_ONLY;
    connected.extension = Extension::None;
    let mut notification = good;
    notification.bth.opcode = Opcode::CNP;
    notification.extension = Extension::Notification;
    let to = group(1);
    let other = group(2);
    let mut discarded = 0;
    for (header, destination, drops, received) in [
        (&good, Some(&to), 1, 1),
        (&good, Some(&other), 1, 0),
        (&good, None, 1, 0),
        (&partition, Some(&to), 2, 0),
        (&connected, Some(&to), 1, 0),
        (&notification, Some(&to), 1, 0),
    ] {
        pair.ends[B].device.handle_packet(
            Time::ZERO,
            Arrival {
                header,
                payload: &[1; 4],
                payload_length: 4,
                congestion: true,
                source: &path_to(A),
                destination,
                grh: None,
            },
        );
        discarded += drops;
        assert_eq!(pair.counter(B, DeviceCounter::Discarded), discarded);
        assert_eq!(pair.completions(B).len(), received);
    }
    let open = ClassMask::ALL;
    let answer = pair.ends[B].device.poll_transmit(Time::ZERO, open);
    assert!(answer.is_none(), "no notification either");
}

/// Queue pair 1 of a side, ready.
fn general_services(pair: &mut Bytes, side: usize) -> Qpn {
    let end = &mut pair.ends[side];
    let service = QueuePairType::UnreliableDatagram;
    let init = QueuePairInit {
        number: Some(Qpn::GENERAL_SERVICES),
        ..QueuePairInit::new(service, end.domain, end.queue)
    };
    let qp = end.device.create_qp(&init).expect("it can");
    for step in [
        Modify::initialize_datagram(GENERAL_SERVICES_QKEY),
        Modify::to(State::ReadyToReceive),
        Modify::ready_to_send(Psn::new(0)),
    ] {
        end.device
            .modify_qp(Time::ZERO, qp, &step)
            .expect("in order");
    }
    qp
}

/// Datagrams between queue pairs 1 come through; others cannot send the key, whatever they ask for.
#[test]
fn only_queue_pair_1_talks_to_queue_pair_1() {
    let mut pair = pair();
    for side in [A, B] {
        assert_eq!(general_services(&mut pair, side), Qpn::new(1));
    }
    for id in 0..3 {
        let piece = pair.piece(B, 5000 + id * 300, 300);
        let end = &mut pair.ends[B];
        end.device
            .post_recv(Qpn::new(1), ReceiveRequest::new(id, piece))
            .expect("room");
    }
    let to = Datagram {
        path: path_to(B),
        destination: Qpn::GENERAL_SERVICES,
        qkey: GENERAL_SERVICES_QKEY,
    };
    let request = SendRequest::new(1, SendOperation::Send, pair.piece(A, 0, 256)).to(to);
    pair.post(A, request.clone());
    pair.run();
    assert_eq!(pair.counter(B, DeviceCounter::Discarded), 1);
    assert!(pair.completions(B).is_empty());
    let now = pair.now();
    pair.ends[A]
        .device
        .post_send(now, Qpn::GENERAL_SERVICES, request)
        .expect("room");
    pair.run();
    let received = pair.completions(B);
    assert_eq!(received[0].qp, Qpn::new(1));
    assert_eq!((received[0].source, received[0].length), (Qpn::new(1), 296));
}

#[test]
fn queue_pair_1_has_its_key_and_its_service() {
    let mut pair = pair();
    let end = &mut pair.ends[A];
    let service = QueuePairType::UnreliableDatagram;
    let make = |number: Qpn, service| QueuePairInit {
        number: Some(number),
        ..QueuePairInit::new(service, end.domain, end.queue)
    };
    for reserved in [Qpn::SUBNET_MANAGEMENT, Qpn::MULTICAST] {
        assert_eq!(
            end.device.create_qp(&make(reserved, service)),
            Err(CreateError::Reserved(reserved))
        );
    }
    let reliable = QueuePairType::ReliableConnection;
    assert_eq!(
        end.device.create_qp(&make(Qpn::GENERAL_SERVICES, reliable)),
        Err(CreateError::GeneralServices(reliable))
    );
    let one = end
        .device
        .create_qp(&make(Qpn::GENERAL_SERVICES, service))
        .expect("it can");
    let qkey = |end: &softfabric_testkit::End<ByteMemory>| {
        end.device.query_qp(one).expect("there").settings.qkey
    };
    assert_eq!(qkey(end), GENERAL_SERVICES_QKEY);
    let wrong = Modify::initialize_datagram(QKEY);
    assert_eq!(
        end.device.modify_qp(Time::ZERO, one, &wrong),
        Err(ModifyError::GeneralServicesKey(QKEY))
    );
    let to_reset = Modify::to(State::Reset);
    end.device
        .modify_qp(Time::ZERO, one, &to_reset)
        .expect("always");
    assert_eq!(qkey(end), GENERAL_SERVICES_QKEY);
}
