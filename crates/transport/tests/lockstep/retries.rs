//! Loss, and how long it is put up with.

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, ByteMemory, Fate, Faults, Pair, PairOptions};
use softfabric_transport::{
    AckTimeout, Coalescing, LengthsOnly, LossRecovery, Mtu, Remote, RnrRetry, SendOperation, State,
    Status,
};
use softfabric_units::{Bytes, Psn, Span, Time};
use softfabric_wire::rdma::{Extension, NakCode, Operation, RnrTimer, Syndrome};

fn write<M: softfabric_testkit::Carry>(pair: &mut Pair<M>, id: u64, length: u32) {
    let key = pair.key(B);
    let remote = Remote { address: 0, key };
    pair.send(A, id, SendOperation::Write(remote), 0, length);
}

fn state(pair: &Pair<LengthsOnly>, side: usize) -> State {
    let end = &pair.ends[side];
    end.device.query_qp(end.qp).expect("it exists").state
}

#[test]
fn a_dead_peer_is_given_up_in_the_time_that_the_attributes_say() {
    for (code, retries) in [(1, 7), (5, 3), (10, 0), (14, 7)] {
        let options = PairOptions {
            faults: Faults::loss(1.0),
            timeout: AckTimeout::from_code(code),
            ..PairOptions::default()
        };
        let mut pair = Pair::<LengthsOnly>::reliable_with(
            options,
            |_, _| {},
            |_, modify| {
                if modify.retry_count.is_some() {
                    modify.retry_count = Some(retries);
                }
            },
        );
        write(&mut pair, 1, 100);
        write(&mut pair, 2, 100);
        pair.run();
        let done = pair.completions(A);
        assert_eq!(done[0].status, Status::RetriesExceeded);
        assert_eq!(done[1].status, Status::Flushed);
        assert_eq!(state(&pair, A), State::Error);
        assert_eq!(state(&pair, B), State::ReadyToSend, "the survivor goes on");
        let one = Span::nanos(4096 << code);
        assert_eq!(
            pair.now(),
            Time::ZERO + one * (u64::from(retries) + 1),
            "the first try and {retries} more, {one} each"
        );
        assert_eq!(
            pair.counter(A, DeviceCounter::LocalAckTimeout),
            u64::from(retries) + 1
        );
        assert_eq!(pair.counter(A, DeviceCounter::RetriesExceeded), 1);
    }
}

#[test]
fn without_a_timeout_a_request_waits_for_ever() {
    let options = PairOptions {
        faults: Faults::loss(1.0),
        timeout: AckTimeout::OFF,
        ..PairOptions::default()
    };
    let mut pair = Pair::<LengthsOnly>::reliable(options);
    write(&mut pair, 1, 100);
    pair.run();
    assert!(pair.completions(A).is_empty());
    assert_eq!(pair.packets, 1);
}

#[test]
fn progress_gives_the_retries_back() {
    // Every fifth data packet is lost, for ever: more losses than retries, and yet none too many in a row.
    let mut pair = Pair::<LengthsOnly>::reliable(PairOptions::default());
    pair.wire.set_rule(|side, number, _| {
        (side == A && number % 5 == 3).then_some(Fate {
            dropped: true,
            ..Fate::default()
        })
    });
    write(&mut pair, 1, 100_000);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    assert!(pair.counter(A, DeviceCounter::SequenceErrorReceived) > 20);
}

/// Loses the packets of side A whose numbers are given.
fn lose(pair: &mut Pair<LengthsOnly>, numbers: &'static [u64]) {
    pair.wire.set_rule(move |side, number, _| {
        Some(Fate {
            dropped: side == A && numbers.contains(&number),
            ..Fate::default()
        })
    });
}

fn recorded(recovery: LossRecovery) -> PairOptions {
    let mut options = PairOptions {
        record: true,
        psn: Psn::new(0),
        ..PairOptions::default()
    };
    options.config.recovery = recovery;
    options.config.acknowledgement.coalescing = Coalescing::EveryPacket;
    options
}

fn psns(pair: &Pair<LengthsOnly>) -> Vec<u32> {
    pair.sent
        .iter()
        .filter(|sent| sent.side == A)
        .map(|sent| sent.header.bth.psn.as_u32())
        .collect()
}

fn naks(pair: &Pair<LengthsOnly>) -> Vec<(u32, u32)> {
    pair.sent
        .iter()
        .filter_map(|sent| match sent.header.extension {
            Extension::Aeth(aeth) if aeth.syndrome == Syndrome::Nak(NakCode::SequenceError) => {
                Some((sent.header.bth.psn.as_u32(), aeth.msn.as_u32()))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn go_back_n_sends_everything_from_the_gap() {
    let mut pair = Pair::<LengthsOnly>::reliable(recorded(LossRecovery::GoBackN));
    lose(&mut pair, &[2]);
    write(&mut pair, 1, 40 * 1024);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    assert_eq!(naks(&pair), [(2, 0)], "one NAK for one gap");
    let sent = psns(&pair);
    let back = sent
        .iter()
        .skip(3)
        .position(|&psn| psn == 2)
        .expect("resent")
        + 3;
    let expected: Vec<u32> = (2..40).collect();
    assert_eq!(sent[back..], expected, "everything from the gap on");
    assert_eq!(
        pair.counter(A, DeviceCounter::Retransmitted),
        (back - 2) as u64
    );
    assert!(
        pair.ends[A].completed < Time::ZERO + Span::micros(20),
        "no timeout was needed"
    );
}

#[test]
fn a_nak_that_is_lost_is_made_good_by_the_timer() {
    let mut pair = Pair::<LengthsOnly>::reliable(recorded(LossRecovery::GoBackN));
    pair.wire.set_rule(|side, number, header| {
        let nak = matches!(header.extension, Extension::Aeth(aeth)
            if aeth.syndrome == Syndrome::Nak(NakCode::SequenceError));
        Some(Fate {
            dropped: nak || (side == A && number == 2),
            ..Fate::default()
        })
    });
    write(&mut pair, 1, 10 * 1024);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    assert_eq!(pair.counter(A, DeviceCounter::LocalAckTimeout), 1);
    assert_eq!(naks(&pair).len(), 1, "a gap is reported once");
}

#[test]
fn a_gap_is_reported_again_where_the_nic_does_so() {
    let mut options = recorded(LossRecovery::GoBackN);
    options.config.acknowledgement.nak_interval = Some(Span::nanos(500));
    options.timeout = AckTimeout::OFF;
    let mut pair = Pair::<LengthsOnly>::reliable(options);
    let mut first = true;
    pair.wire.set_rule(move |side, number, header| {
        let nak = matches!(header.extension, Extension::Aeth(aeth)
            if aeth.syndrome == Syndrome::Nak(NakCode::SequenceError));
        let lost = nak && std::mem::take(&mut first);
        Some(Fate {
            dropped: lost || (side == A && number == 2),
            ..Fate::default()
        })
    });
    write(&mut pair, 1, 40 * 1024);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    assert!(naks(&pair).len() > 1);
}

#[test]
fn selective_repeat_sends_only_what_is_lost() {
    let recovery = LossRecovery::SelectiveRepeat { bdp_cap: None };
    let mut pair = Pair::<LengthsOnly>::reliable(recorded(recovery));
    lose(&mut pair, &[2, 3, 7, 20]);
    write(&mut pair, 1, 40 * 1024);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    let mut sent = psns(&pair);
    assert_eq!(sent.len(), 44);
    assert_eq!(pair.counter(A, DeviceCounter::Retransmitted), 4);
    sent.sort_unstable();
    let twice: Vec<u32> = sent
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
        .collect();
    assert_eq!(twice, [2, 3, 7, 20]);
    assert_eq!(naks(&pair)[0], (2, 4), "2 is missing, 4 has arrived");
    assert_eq!(pair.counter(A, DeviceCounter::LocalAckTimeout), 0);
}

#[test]
fn selective_repeat_finds_a_lost_tail_by_the_timer() {
    let recovery = LossRecovery::SelectiveRepeat { bdp_cap: None };
    let mut pair = Pair::<LengthsOnly>::reliable(recorded(recovery));
    lose(&mut pair, &[36, 38, 39]);
    write(&mut pair, 1, 40 * 1024);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    assert_eq!(pair.counter(A, DeviceCounter::LocalAckTimeout), 1);
    assert_eq!(pair.counter(A, DeviceCounter::Retransmitted), 3);
}

#[test]
fn selective_repeat_obeys_its_cap() {
    let recovery = LossRecovery::SelectiveRepeat {
        bdp_cap: Some(Bytes::kib(5)),
    };
    let mut pair = Pair::<LengthsOnly>::reliable(recorded(recovery));
    write(&mut pair, 1, 40 * 1024);
    pair.run_until(Time::ZERO + Span::nanos(900));
    assert_eq!(
        psns(&pair),
        [0, 1, 2, 3, 4],
        "one round trip has not passed"
    );
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
}

#[test]
fn a_window_counts_what_is_not_acknowledged() {
    let mut options = recorded(LossRecovery::GoBackN);
    options.config.acknowledgement.coalescing = Coalescing::AtMost(1000);
    let mut pair = Pair::<LengthsOnly>::reliable_with(
        options,
        |_, init| init.window = Some(Bytes::new(3000)),
        |_, _| {},
    );
    write(&mut pair, 1, 40 * 1024);
    pair.run_until(Time::ZERO + Span::nanos(900));
    assert_eq!(psns(&pair), [0, 1, 2]);
    assert!(
        pair.sent[2].header.bth.acknowledge,
        "the packet that closes the window asks for an answer"
    );
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    assert_eq!(pair.counter(A, DeviceCounter::LocalAckTimeout), 0);
}

/// 1 of 256 packets is lost and messages have 4 MB (Guo et al., SIGCOMM'16): nothing comes through going back to 0.
#[test]
fn going_back_to_zero_livelocks_where_going_back_n_does_not() {
    let delivered = |recovery| {
        let mut options = PairOptions {
            timeout: AckTimeout::from_code(8),
            mtu: Mtu::BYTES_1024,
            memory: 8 << 20,
            ..PairOptions::default()
        };
        options.config.recovery = recovery;
        let mut pair = Pair::<LengthsOnly>::reliable(options);
        pair.wire.set_rule(|side, number, _| {
            Some(Fate {
                dropped: side == A && number % 256 == 255,
                ..Fate::default()
            })
        });
        for id in 0..20 {
            write(&mut pair, id, 4 << 20);
        }
        pair.run_until(Time::ZERO + Span::millis(10));
        assert!(pair.packets > 50_000, "the line is busy: {}", pair.packets);
        pair.completions(A).len()
    };
    assert_eq!(delivered(LossRecovery::GoBack0), 0);
    assert!(delivered(LossRecovery::GoBackN) >= 15);
    let selective = LossRecovery::SelectiveRepeat { bdp_cap: None };
    assert!(delivered(selective) >= 20);
}

fn not_ready(rnr_retry: RnrRetry, timer: RnrTimer) -> Pair<LengthsOnly> {
    let options = PairOptions {
        record: true,
        ..PairOptions::default()
    };
    Pair::reliable_with(
        options,
        |_, _| {},
        |_, modify| {
            if modify.rnr_retry.is_some() {
                modify.rnr_retry = Some(rnr_retry);
            }
            if modify.min_rnr_timer.is_some() {
                modify.min_rnr_timer = Some(timer);
            }
        },
    )
}

#[test]
fn a_receiver_that_is_not_ready_is_asked_again_after_its_timer() {
    let timer = RnrTimer::from_code(12);
    let mut pair = not_ready(RnrRetry::INFINITE, timer);
    pair.send(A, 1, SendOperation::Send, 0, 100);
    pair.send(A, 2, SendOperation::Send, 0, 100);
    // Nothing is posted for a while: ten tries, and no end of them.
    pair.run_until(Time::ZERO + Span::millis(7));
    assert!(pair.completions(A).is_empty());
    let naks = pair.counter(A, DeviceCounter::RnrNakReceived);
    assert_eq!(naks, 11, "one at once, then one each 0.64 ms and a little");
    assert_eq!(pair.counter(B, DeviceCounter::OutOfBuffer), naks);
    // As in the captures: syndrome 0x2c for code 12.
    let nak = pair.sent.iter().find(|sent| sent.side == B).expect("a NAK");
    let Extension::Aeth(aeth) = nak.header.extension else {
        panic!("an AETH");
    };
    assert_eq!(aeth.syndrome.to_byte(), 0x2c);
    pair.receive(B, 10, 0, 100);
    pair.receive(B, 11, 0, 100);
    pair.run();
    assert_eq!(pair.completions(A).len(), 2);
    assert_eq!(pair.completions(B).len(), 2);
}

#[test]
fn a_receiver_that_never_is_ready_is_given_up() {
    for retries in [0, 1, 6] {
        let timer = RnrTimer::from_code(5);
        let mut pair = not_ready(RnrRetry::new(retries), timer);
        pair.send(A, 1, SendOperation::Send, 0, 100);
        pair.run();
        let done = pair.completions(A);
        assert_eq!(done[0].status, Status::RnrRetriesExceeded);
        assert_eq!(
            pair.counter(A, DeviceCounter::RnrNakReceived),
            u64::from(retries) + 1
        );
        let completed = pair.ends[A].completed;
        let waited = timer.span() * u64::from(retries);
        assert!(completed >= Time::ZERO + waited, "{completed}");
        assert!(
            completed < Time::ZERO + waited + Span::micros(30),
            "{completed}"
        );
        assert_eq!(state(&pair, A), State::Error);
    }
}

/// While a peer is not ready, answers are lost now and then: more than there are retries, but never so many in a row.
#[test]
fn waiting_for_a_receiver_uses_up_no_retries() {
    let mut pair = not_ready(RnrRetry::INFINITE, RnrTimer::from_code(1));
    let mut answers = 0;
    pair.wire.set_rule(move |side, _, _| {
        answers += u64::from(side == B);
        Some(Fate {
            dropped: side == B && answers % 3 == 0,
            ..Fate::default()
        })
    });
    pair.send(A, 1, SendOperation::Send, 0, 100);
    pair.run_until(Time::ZERO + Span::millis(4));
    assert!(pair.counter(A, DeviceCounter::LocalAckTimeout) > 10);
    assert!(pair.completions(A).is_empty());
    pair.receive(B, 10, 0, 100);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
}

/// A lost read response is noticed by the answer to a later request, long before the timer.
#[test]
fn a_response_out_of_order_implies_a_loss() {
    let options = PairOptions {
        timeout: AckTimeout::from_code(20),
        record: true,
        ..PairOptions::default()
    };
    let mut pair = Pair::<ByteMemory>::reliable(options);
    let mut responses = 0;
    pair.wire.set_rule(move |_, _, header| {
        let response = header.bth.opcode.operation() == Operation::ReadResponse;
        responses += u32::from(response);
        Some(Fate {
            dropped: response && responses == 3,
            ..Fate::default()
        })
    });
    let data: Vec<u8> = (0..5000).map(|byte| byte as u8).collect();
    pair.fill(B, 0, &data);
    let key = pair.key(B);
    let remote = |address| Remote { address, key };
    pair.send(A, 1, SendOperation::Read(remote(0)), 10_000, 5000);
    pair.send(A, 2, SendOperation::Write(remote(50_000)), 0, 10);
    pair.run();
    assert_eq!(pair.completions(A).len(), 2);
    assert_eq!(pair.bytes(A, 10_000, 5000), data);
    assert_eq!(pair.counter(A, DeviceCounter::ImpliedNak), 1);
    let completed = pair.ends[A].completed;
    assert!(completed < Time::ZERO + Span::micros(20), "{completed}");
    // Only what is missing is asked for again.
    let requests: Vec<_> = pair
        .sent
        .iter()
        .filter_map(
            |sent| match (sent.header.bth.opcode.operation(), sent.header.extension) {
                (Operation::ReadRequest, Extension::Reth(reth)) => {
                    Some((reth.address, reth.length))
                }
                _ => None,
            },
        )
        .collect();
    assert_eq!(requests, [(0, 5000), (2048, 5000 - 2048)]);
}

#[test]
fn duplicates_are_answered_and_not_executed() {
    // The first answer to everything is lost, so every request comes twice.
    let mut pair = Pair::<ByteMemory>::reliable(PairOptions::default());
    let mut seen = Vec::new();
    pair.wire.set_rule(move |side, _, header| {
        let key = (header.bth.opcode, header.bth.psn);
        let first = side == B && !seen.contains(&key);
        if first {
            seen.push(key);
        }
        Some(Fate {
            dropped: first,
            ..Fate::default()
        })
    });
    let key = pair.key(B);
    let word = Remote { address: 800, key };
    pair.receive(B, 10, 1000, 100);
    pair.receive(B, 11, 1000, 100);
    pair.send(A, 1, SendOperation::Send, 0, 50);
    pair.send(
        A,
        2,
        SendOperation::FetchAdd {
            remote: word,
            add: 3,
        },
        0,
        8,
    );
    pair.send(
        A,
        3,
        SendOperation::FetchAdd {
            remote: word,
            add: 3,
        },
        8,
        8,
    );
    pair.send(A, 4, SendOperation::Read(word), 16, 8);
    pair.run();
    assert!(
        pair.completions(A)
            .iter()
            .all(|done| done.status == Status::Success)
    );
    assert_eq!(
        pair.bytes(B, 800, 8),
        6u64.to_ne_bytes(),
        "added twice, not more"
    );
    assert_eq!(
        pair.bytes(A, 0, 8),
        0u64.to_ne_bytes(),
        "the first answer again"
    );
    assert_eq!(pair.bytes(A, 8, 8), 3u64.to_ne_bytes());
    assert_eq!(pair.bytes(A, 16, 8), 6u64.to_ne_bytes());
    assert_eq!(
        pair.completions(B).len(),
        1,
        "one message, one receive request"
    );
    assert!(pair.counter(B, DeviceCounter::DuplicateRequest) >= 4);
}

/// A read that is asked for again while its data still streams: the old stream stops.
#[test]
fn a_read_asked_for_again_does_not_stream_twice() {
    let mut pair = Pair::<LengthsOnly>::reliable(PairOptions {
        record: true,
        ..PairOptions::default()
    });
    let mut responses = 0;
    pair.wire.set_rule(move |side, _, _| {
        responses += u64::from(side == B);
        Some(Fate {
            dropped: side == B && responses == 2,
            ..Fate::default()
        })
    });
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    pair.send(A, 1, SendOperation::Read(remote), 0, 200 * 1024);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    // What is in flight for a round trip of 2 µs is lost, 24 packets; not the other 170.
    let sent = pair.sent.iter().filter(|sent| sent.side == B).count();
    assert!((201..260).contains(&sent), "{sent}");
}

/// Answers that are lost for good: the read or atomic is asked for as often as the attributes say, then given up.
#[test]
fn reads_and_atomics_without_answers_are_given_up() {
    for atomic in [false, true] {
        let mut pair = Pair::<ByteMemory>::reliable(PairOptions::default());
        pair.wire.set_rule(|side, _, _| {
            Some(Fate {
                dropped: side == B,
                ..Fate::default()
            })
        });
        let remote = Remote {
            address: 400,
            key: pair.key(B),
        };
        let operation = if atomic {
            SendOperation::FetchAdd { remote, add: 1 }
        } else {
            SendOperation::Read(remote)
        };
        pair.send(A, 1, operation, 800, 8);
        write(&mut pair, 2, 100);
        pair.run();
        let done = pair.completions(A);
        let statuses: Vec<_> = done.iter().map(|done| done.status).collect();
        assert_eq!(statuses, [Status::RetriesExceeded, Status::Flushed]);
        assert_eq!(pair.counter(A, DeviceCounter::LocalAckTimeout), 8);
        let expected = u64::from(atomic);
        let word = pair.bytes(B, 400, 8).try_into().expect("eight bytes");
        assert_eq!(u64::from_ne_bytes(word), expected, "once, not eight times");
    }
}

/// The answer to a duplicate still waits when the peer, which has had the first answer, asks for the next: that is within
/// its limit.
#[test]
fn an_answer_to_a_duplicate_takes_nobodys_place() {
    let mut pair = Pair::<ByteMemory>::reliable_with(
        PairOptions {
            psn: Psn::new(100),
            ..PairOptions::default()
        },
        |_, _| {},
        |_, modify| {
            if modify.max_peer_reads.is_some() {
                modify.max_peer_reads = Some(1);
            }
        },
    );
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    let open = softfabric_units::ClassMask::ALL;
    let now = pair.now();
    let add = SendOperation::FetchAdd { remote, add: 1 };
    let read = SendOperation::Read(remote);
    for (first, second) in [(add, add), (add, read), (read, add), (read, read)] {
        pair.send(A, 1, first, 8, 8);
        let device = &mut pair.ends[A].device;
        let first = device.poll_transmit(now, open).expect("a request");
        let ask = |pair: &mut Pair<ByteMemory>, header| pair.forge(B, header, &[], 0);
        ask(&mut pair, &first.header);
        let answer = |pair: &mut Pair<ByteMemory>| pair.ends[B].device.poll_transmit(now, open);
        let answered = answer(&mut pair).expect("an answer");
        // The duplicate's answer waits.
        ask(&mut pair, &first.header);
        let length = answered.payload_length;
        pair.forge(A, &answered.header, &answered.payload, length);
        pair.send(A, 2, second, 16, 8);
        let device = &mut pair.ends[A].device;
        let second = device.poll_transmit(now, open).expect("its turn");
        ask(&mut pair, &second.header);
        let answered = answer(&mut pair).expect("an answer");
        assert_eq!(answered.header.bth.psn, second.header.bth.psn);
        let length = answered.payload_length;
        pair.forge(A, &answered.header, &answered.payload, length);
        assert!(answer(&mut pair).is_none(), "the old answer is not sent");
        let end = &mut pair.ends[A];
        let done = std::iter::from_fn(|| end.device.poll_completion(end.queue));
        assert!(done.map(|done| done.status).eq([Status::Success; 2]));
    }
}
