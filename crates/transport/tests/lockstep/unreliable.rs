//! Unreliable connections and datagrams.

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, ByteMemory, Fate, Pair, PairOptions};
use softfabric_transport::{
    Attachment, CompletedOperation, CompletionFlags, Modify, PostError, Remote, SendFlags,
    SendOperation, SendRequest, State, Status,
};
use softfabric_units::{PartitionKey, Psn};

type Bytes = Pair<ByteMemory>;

fn options() -> PairOptions {
    PairOptions {
        record: true,
        psn: Psn::new(0xff_fffe),
        ..PairOptions::default()
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|byte| (byte * 5 + 1) as u8).collect()
}

fn lose(pair: &mut Bytes, numbers: &'static [u64]) {
    pair.wire.set_rule(move |side, number, _| {
        Some(Fate {
            dropped: side == A && numbers.contains(&number),
            ..Fate::default()
        })
    });
}

#[test]
fn a_connection_without_answers() {
    let mut pair = Bytes::unreliable(options());
    let data = pattern(5000);
    pair.fill(A, 0, &data);
    let key = pair.key(B);
    let remote = Remote {
        address: 20_000,
        key,
    };
    pair.receive(B, 10, 10_000, 5000);
    pair.receive(B, 11, 0, 0);
    pair.send(A, 1, SendOperation::SendImmediate(9), 0, 5000);
    pair.send(A, 2, SendOperation::Write(remote), 0, 5000);
    pair.send(A, 3, SendOperation::WriteImmediate(remote, 8), 0, 10);
    pair.run();
    assert_eq!(pair.completions(A).len(), 3);
    let received = pair.completions(B);
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].attachment, Attachment::Immediate(9));
    assert_eq!(received[0].length, 5000);
    assert_eq!(received[1].operation, CompletedOperation::ReceiveWithWrite);
    assert_eq!(pair.bytes(B, 10_000, 5000), data);
    assert_eq!(pair.bytes(B, 20_000, 5000), data);
    assert!(
        pair.sent.iter().all(|sent| sent.side == A),
        "nobody answers"
    );
}

#[test]
fn a_message_with_a_hole_is_dropped_and_the_next_arrives() {
    // Packets 0–4 are the first message, 5–9 the second, 10–14 the third.
    for lost in [&[0u64][..], &[2], &[4], &[4, 5], &[2, 7]] {
        let lost: &'static [u64] = lost;
        let mut pair = Bytes::unreliable(options());
        lose(&mut pair, lost);
        for id in 0..3 {
            pair.fill(A, id * 5000, &vec![id as u8 + 1; 5000]);
            pair.receive(B, 10 + id, 100_000 + id * 5000, 5000);
            pair.send(A, id, SendOperation::Send, id * 5000, 5000);
        }
        pair.run();
        assert_eq!(pair.completions(A).len(), 3, "the sender does not know");
        let whole: Vec<u8> = (0..3u64)
            .filter(|message| !lost.iter().any(|packet| packet / 5 == *message))
            .map(|message| message as u8 + 1)
            .collect();
        let received = pair.completions(B);
        assert_eq!(received.len(), whole.len(), "{lost:?}");
        for (index, message) in whole.iter().enumerate() {
            // What was given up on leaves its receive request to the next.
            assert_eq!(received[index].id, 10 + index as u64);
            assert_eq!(received[index].status, Status::Success);
            let address = 100_000 + index as u64 * 5000;
            assert_eq!(pair.bytes(B, address, 5000), vec![*message; 5000]);
        }
    }
}

#[test]
fn a_write_with_a_hole_does_not_complete_at_the_target() {
    let mut pair = Bytes::unreliable(options());
    lose(&mut pair, &[1]);
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    pair.receive(B, 10, 0, 0);
    pair.send(A, 1, SendOperation::WriteImmediate(remote, 1), 0, 5000);
    pair.send(A, 2, SendOperation::WriteImmediate(remote, 2), 0, 5000);
    pair.run();
    let received = pair.completions(B);
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].attachment, Attachment::Immediate(2));
}

#[test]
fn unreliable_connections_neither_read_nor_stop_at_refusals() {
    let mut pair = Bytes::unreliable(options());
    let wrong = Remote { address: 0, key: 3 };
    let request = SendRequest::new(1, SendOperation::Read(wrong), pair.piece(A, 0, 8));
    let end = &mut pair.ends[A];
    let posted = end
        .device
        .post_send(softfabric_units::Time::ZERO, end.qp, request);
    assert!(matches!(posted, Err(PostError::Operation { .. })));
    pair.send(A, 1, SendOperation::Write(wrong), 0, 100);
    pair.send(A, 2, SendOperation::Send, 0, 100);
    let right = Remote {
        address: 0,
        key: pair.key(B),
    };
    pair.fill(A, 0, &[5; 100]);
    pair.send(A, 3, SendOperation::Write(right), 0, 100);
    pair.run();
    assert_eq!(pair.completions(A).len(), 3);
    assert_eq!(pair.bytes(B, 0, 100), [5; 100]);
    assert_eq!(pair.counter(B, DeviceCounter::OutOfBuffer), 1);
    assert_eq!(pair.counter(B, DeviceCounter::Discarded), 1);
    let end = &pair.ends[B];
    let state = end.device.query_qp(end.qp).expect("there").state;
    assert_eq!(state, State::ReadyToSend);
}

#[test]
fn a_failed_send_queue_goes_on_after_it_is_set_right() {
    let mut pair = Bytes::unreliable(options());
    let mut request = SendRequest::new(1, SendOperation::Send, pair.piece(A, 0, 8));
    request.local[0].key = 5;
    pair.post(A, request);
    pair.send(A, 2, SendOperation::Send, 0, 8);
    pair.run();
    let statuses: Vec<_> = pair.completions(A).iter().map(|done| done.status).collect();
    assert_eq!(statuses, [Status::LocalProtection, Status::Flushed]);
    let end = &pair.ends[A];
    let state = end.device.query_qp(end.qp).expect("there").state;
    assert_eq!(state, State::SendQueueError);
    pair.modify(A, &Modify::to(State::ReadyToSend));
    pair.receive(B, 9, 0, 100);
    pair.send(A, 3, SendOperation::Send, 0, 8);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    assert_eq!(pair.completions(B).len(), 1);
}

/// A peer with a wrong key harms only its own message, whether that would have taken a receive request or not.
#[test]
fn a_wrong_key_ends_no_unreliable_connection() {
    for (immediate, length) in [(false, 10), (true, 10), (true, 5000)] {
        let mut pair = Bytes::unreliable(options());
        let wrong = Remote {
            address: 0,
            key: pair.key(B) ^ 0x40,
        };
        pair.receive(B, 10, 0, 100);
        let write = if immediate {
            SendOperation::WriteImmediate(wrong, 1)
        } else {
            SendOperation::Write(wrong)
        };
        pair.send(A, 1, write, 0, length);
        pair.send(A, 2, SendOperation::SendImmediate(2), 0, 10);
        pair.run();
        let end = &pair.ends[B];
        let state = end.device.query_qp(end.qp).expect("there").state;
        assert_eq!(state, State::ReadyToSend);
        let received = pair.completions(B);
        assert_eq!(received[0].attachment, Attachment::Immediate(2));
        assert_eq!(received[0].id, 10, "the request was not used up");
    }
}

/// What is wrong with the receiver's own memory stops it; a page of a peer's write that cannot be reached does not.
#[test]
fn a_receiver_whose_memory_fails() {
    for (receives, room, hole, expected) in [
        (true, 4, None, Some(Status::LocalLength)),
        (true, 100, Some(50..60), Some(Status::LocalOperation)),
        (false, 100, Some(50..60), None),
    ] {
        let mut pair = Bytes::unreliable(options());
        if let Some(hole) = hole {
            pair.ends[B].device.memory_mut().hole(hole);
        }
        pair.receive(B, 10, 0, room);
        let remote = Remote {
            address: 0,
            key: pair.key(B),
        };
        let operation = if receives {
            SendOperation::Send
        } else {
            SendOperation::Write(remote)
        };
        pair.send(A, 1, operation, 0, 100);
        pair.run();
        let status = pair.completions(B).first().map(|done| done.status);
        assert_eq!(status, expected);
        let end = &pair.ends[B];
        let state = end.device.query_qp(end.qp).expect("there").state;
        assert_eq!(state == State::Error, expected.is_some());
    }
}

#[test]
fn datagrams() {
    let mut pair = Bytes::datagrams(options());
    let data = pattern(1000);
    pair.fill(A, 0, &data);
    pair.receive(B, 10, 5000, 2000);
    pair.receive(B, 11, 8000, 40);
    let request = SendRequest::new(1, SendOperation::SendImmediate(7), pair.piece(A, 0, 1000))
        .to(pair.datagram_to(B))
        .with(SendFlags::SOLICITED);
    pair.post(A, request);
    pair.send(A, 2, SendOperation::Send, 0, 0);
    pair.run();
    assert_eq!(pair.completions(A).len(), 2);
    let received = pair.completions(B);
    assert_eq!(
        received[0].length, 1040,
        "40 bytes of header before the data"
    );
    assert_eq!(received[0].attachment, Attachment::Immediate(7));
    assert_eq!(
        received[0].flags,
        CompletionFlags::GRH | CompletionFlags::SOLICITED
    );
    assert_eq!(received[0].source, pair.ends[A].qp);
    assert_eq!(received[0].source_gid, softfabric_testkit::path_to(A).gid);
    assert_eq!(received[1].length, 40);
    assert_eq!(pair.bytes(B, 5040, 1000), data);
}

#[test]
fn datagrams_with_wrong_keys_or_without_room_are_dropped() {
    let mut pair = Bytes::datagrams(options());
    pair.receive(B, 10, 5000, 100);
    let mut wrong = pair.datagram_to(B);
    wrong.qkey ^= 1;
    let request = SendRequest::new(1, SendOperation::Send, pair.piece(A, 0, 8));
    pair.post(A, request.to(wrong));
    pair.run();
    assert_eq!(pair.counter(B, DeviceCounter::Discarded), 1, "queue key");
    pair.send(A, 2, SendOperation::Send, 0, 61);
    pair.run();
    assert_eq!(pair.counter(B, DeviceCounter::Discarded), 2, "length");
    pair.send(A, 3, SendOperation::Send, 0, 60);
    pair.run();
    let received = pair.completions(B);
    assert_eq!(received.len(), 1, "the request was kept");
    pair.send(A, 4, SendOperation::Send, 0, 60);
    pair.run();
    assert_eq!(pair.counter(B, DeviceCounter::OutOfBuffer), 1);
    let end = &pair.ends[B];
    let state = end.device.query_qp(end.qp).expect("there").state;
    assert_eq!(state, State::ReadyToSend);
    // Another partition: dropped before anything else.
    pair.receive(B, 11, 5000, 100);
    pair.modify(A, &Modify::to(State::SendQueueDrain));
    pair.modify(
        A,
        &Modify {
            partition: Some(PartitionKey(0x8005)),
            ..Modify::to(State::SendQueueDrain)
        },
    );
    pair.modify(A, &Modify::to(State::ReadyToSend));
    pair.send(A, 5, SendOperation::Send, 0, 60);
    pair.run();
    assert_eq!(pair.counter(B, DeviceCounter::Discarded), 3);
    assert!(pair.completions(B).is_empty());
}

/// A queue key with the top bit set stands for the sender's own.
#[test]
fn a_controlled_queue_key() {
    let mut pair = Bytes::datagrams(options());
    pair.receive(B, 10, 5000, 100);
    let mut controlled = pair.datagram_to(B);
    controlled.qkey = 0x8000_0000;
    let request = SendRequest::new(1, SendOperation::Send, pair.piece(A, 0, 8));
    pair.post(A, request.to(controlled));
    pair.run();
    assert_eq!(pair.completions(B).len(), 1);
}

#[test]
fn a_datagram_is_no_longer_than_the_ports_mtu_and_has_a_destination() {
    let mut pair = Bytes::datagrams(options());
    let post = |pair: &mut Bytes, request| {
        let end = &mut pair.ends[A];
        end.device
            .post_send(softfabric_units::Time::ZERO, end.qp, request)
    };
    let long = SendRequest::new(1, SendOperation::Send, pair.piece(A, 0, 4097));
    let to = pair.datagram_to(B);
    let refused = post(&mut pair, long.to(to));
    assert_eq!(
        refused,
        Err(PostError::Length {
            found: 4097,
            needed: 4096
        })
    );
    let nowhere = SendRequest::new(1, SendOperation::Send, pair.piece(A, 0, 8));
    assert_eq!(post(&mut pair, nowhere), Err(PostError::Destination));
}
