//! Packets that arrive, and whose payload is gone: they count as lost on the way.

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, ByteMemory, Pair, PairOptions};
use softfabric_transport::{Remote, SendOperation, State, Status};

type Bytes = Pair<ByteMemory>;

const LENGTH: u32 = 5000;

fn pattern(length: u32) -> Vec<u8> {
    (0..length).map(|byte| (byte * 7 + 1) as u8).collect()
}

fn lose(pair: &mut Bytes, side: usize, payloads: &[u64]) {
    pair.ends[side].device.memory_mut().lose(payloads);
}

/// Of a message of five packets, each in turn, and some twice: a reliable peer sends it again.
#[test]
fn a_reliable_peer_sends_again() {
    let losses = [&[0][..], &[2], &[4], &[0, 1], &[2, 3, 5, 9]];
    for lost in losses {
        let mut pair = Bytes::reliable(PairOptions::default());
        let data = pattern(LENGTH);
        pair.fill(A, 0, &data);
        pair.fill(B, 300_000, &data);
        let key = pair.key(B);
        lose(&mut pair, B, lost);
        lose(&mut pair, A, lost);
        pair.receive(B, 10, 100_000, LENGTH);
        pair.receive(B, 11, 0, 0);
        pair.send(A, 1, SendOperation::Send, 0, LENGTH);
        let remote = |address| Remote { address, key };
        let write = SendOperation::WriteImmediate(remote(200_000), 5);
        pair.send(A, 2, write, 0, LENGTH);
        pair.send(A, 3, SendOperation::Read(remote(300_000)), 400_000, LENGTH);
        pair.run();
        let done = pair.completions(A);
        let ids: Vec<_> = done.iter().map(|done| (done.id, done.status)).collect();
        assert_eq!(ids, [1, 2, 3].map(|id| (id, Status::Success)), "{lost:?}");
        let received = pair.completions(B);
        let ids: Vec<_> = received.iter().map(|done| (done.id, done.status)).collect();
        assert_eq!(ids, [10, 11].map(|id| (id, Status::Success)), "{lost:?}");
        for (side, address) in [(B, 100_000), (B, 200_000), (A, 400_000)] {
            assert_eq!(pair.bytes(side, address, data.len()), data, "{lost:?}");
        }
        let counted = pair.counter(B, DeviceCounter::Discarded);
        assert_eq!(counted, lost.len() as u64, "{lost:?}");
    }
}

#[test]
fn an_unreliable_message_is_dropped_and_its_request_serves_the_next() {
    for lost in 0..5 {
        let mut pair = Bytes::unreliable(PairOptions::default());
        lose(&mut pair, B, &[lost]);
        for (id, byte) in [(1, 1), (2, 2)] {
            pair.fill(A, id * 5000, &[byte; LENGTH as usize]);
            pair.send(A, id, SendOperation::Send, id * 5000, LENGTH);
        }
        pair.receive(B, 10, 100_000, LENGTH);
        pair.run();
        let received = pair.completions(B);
        assert_eq!(received.len(), 1);
        assert_eq!(received[0].status, Status::Success);
        assert_eq!(pair.bytes(B, 100_000, 5000), [2; LENGTH as usize]);
    }
}

#[test]
fn a_datagram_is_dropped_and_its_request_serves_the_next() {
    let mut pair = Bytes::datagrams(PairOptions::default());
    lose(&mut pair, B, &[0]);
    pair.receive(B, 10, 100_000, 1000);
    for (id, byte) in [(1, 1), (2, 2)] {
        pair.fill(A, id * 1000, &[byte; 500]);
        let to = pair.datagram_to(B);
        let piece = pair.piece(A, id * 1000, 500);
        let send = softfabric_transport::SendRequest::new(id, SendOperation::Send, piece);
        pair.post(A, send.to(to));
    }
    pair.run();
    let received = pair.completions(B);
    assert_eq!(received.len(), 1);
    assert_eq!((received[0].id, received[0].status), (10, Status::Success));
    assert_eq!(pair.bytes(B, 100_040, 500), [2; 500]);
    let end = &pair.ends[B];
    let state = end.device.query_qp(end.qp).expect("there").state;
    assert_eq!(state, State::ReadyToSend);
}
