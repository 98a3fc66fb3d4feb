//! A reliable connection from end to end.

use softfabric_testkit::{A, B, ByteMemory, Faults, Pair, PairOptions};
use softfabric_transport::{
    Attachment, CompletedOperation, Completion, Remote, SendOperation, Status,
};
use softfabric_units::{ClassMask, Psn, Time};
use softfabric_wire::rdma::Opcode;

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length)
        .map(|index| (index as u8).wrapping_mul(31).wrapping_add(seed))
        .collect()
}

fn successes(completions: &[Completion]) -> Vec<(u64, CompletedOperation)> {
    completions
        .iter()
        .map(|completion| {
            assert_eq!(completion.status, Status::Success, "{completion:?}");
            (completion.id, completion.operation)
        })
        .collect()
}

/// Every operation, in one order, over a wire with the given faults.
fn everything(faults: Faults, seed: u64) {
    let mut pair = Pair::<ByteMemory>::reliable(PairOptions {
        faults,
        seed,
        ..PairOptions::default()
    });
    let data = pattern(20_000, 7);
    pair.fill(A, 0, &data);
    pair.fill(B, 300_000, &pattern(9_999, 3));
    pair.fill(B, 400_000, &41u64.to_ne_bytes());
    pair.receive(B, 100, 100_000, 8_000);
    pair.receive(B, 101, 110_000, 8_000);
    pair.receive(B, 102, 120_000, 8_000);
    let key = pair.key(B);
    let remote = |address| Remote { address, key };
    pair.send(A, 1, SendOperation::Write(remote(200_000)), 0, 20_000);
    pair.send(A, 2, SendOperation::Send, 5, 5_000);
    pair.send(A, 3, SendOperation::Read(remote(300_000)), 50_000, 9_999);
    pair.send(A, 4, SendOperation::SendImmediate(0x44), 10, 0);
    let remote_word = remote(400_000);
    pair.send(
        A,
        5,
        SendOperation::FetchAdd {
            remote: remote_word,
            add: 1,
        },
        70_000,
        8,
    );
    let swap = SendOperation::CompareSwap {
        remote: remote_word,
        compare: 42,
        swap: 99,
    };
    pair.send(A, 6, swap, 70_008, 8);
    pair.send(
        A,
        7,
        SendOperation::WriteImmediate(remote(250_000), 0x55),
        0,
        3_000,
    );
    pair.send(A, 8, SendOperation::Write(remote(260_000)), 0, 0);
    pair.run();

    let sent = pair.completions(A);
    use CompletedOperation::{CompareSwap, FetchAdd, Read, Receive, ReceiveWithWrite, Send, Write};
    assert_eq!(
        successes(&sent),
        [
            (1, Write),
            (2, Send),
            (3, Read),
            (4, Send),
            (5, FetchAdd),
            (6, CompareSwap),
            (7, Write),
            (8, Write),
        ]
    );
    let received = pair.completions(B);
    assert_eq!(
        successes(&received),
        [(100, Receive), (101, Receive), (102, ReceiveWithWrite)]
    );
    assert_eq!(received[0].length, 5_000);
    assert_eq!(received[1].attachment, Attachment::Immediate(0x44));
    assert_eq!(received[2].attachment, Attachment::Immediate(0x55));
    assert_eq!(received[2].length, 3_000);
    assert_eq!(pair.bytes(B, 200_000, 20_000), data);
    assert_eq!(pair.bytes(B, 100_000, 5_000), &data[5..5_005]);
    assert_eq!(pair.bytes(A, 50_000, 9_999), pattern(9_999, 3));
    assert_eq!(pair.bytes(A, 70_000, 8), 41u64.to_ne_bytes());
    assert_eq!(pair.bytes(A, 70_008, 8), 42u64.to_ne_bytes());
    assert_eq!(pair.bytes(B, 400_000, 8), 99u64.to_ne_bytes());
    assert_eq!(pair.bytes(B, 250_000, 3_000), &data[..3_000]);
}

#[test]
fn every_operation_over_a_perfect_wire() {
    everything(Faults::default(), 1);
}

#[test]
fn every_operation_over_bad_wires() {
    for seed in 0..200 {
        for probability in [0.01, 0.05, 0.1] {
            everything(Faults::all(probability), seed);
        }
    }
}

/// An acknowledgement that waits is merged with later ones, but never past a read that has not been answered.
#[test]
fn answers_leave_in_the_order_of_their_requests() {
    let mut pair = Pair::<ByteMemory>::reliable(PairOptions {
        psn: Psn::new(0),
        ..PairOptions::default()
    });
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    for operation in [
        SendOperation::Write(remote),
        SendOperation::Write(remote),
        SendOperation::Read(remote),
        SendOperation::Write(remote),
        SendOperation::Write(remote),
    ] {
        pair.send(A, 1, operation, 0, 8);
    }
    // B is not asked for its answers before it has all requests.
    let all = ClassMask::ALL;
    while let Some(packet) = pair.ends[A].device.poll_transmit(Time::ZERO, all) {
        pair.forge(B, &packet.header, &packet.payload, packet.payload_length);
    }
    let mut answers = Vec::new();
    while let Some(packet) = pair.ends[B].device.poll_transmit(Time::ZERO, all) {
        answers.push((packet.header.bth.opcode, packet.header.bth.psn.as_u32()));
    }
    assert_eq!(
        answers,
        [
            (Opcode::RC_ACKNOWLEDGE, 1),
            (Opcode::RC_READ_RESPONSE_ONLY, 2),
            (Opcode::RC_ACKNOWLEDGE, 4),
        ]
    );
}
