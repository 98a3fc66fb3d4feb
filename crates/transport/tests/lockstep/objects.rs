//! Completion queues, shared receive queues, memory windows, domains, and how requests are posted.

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, ByteMemory, Pair, PairOptions};
use softfabric_transport::rate::RateControlConfig;
use softfabric_transport::{
    Access, CompletionFlags, CompletionQueueError, CreateError, Event, LengthsOnly, LocalSegment,
    LocalSegments, Modify, PostError, QueuePairInit, QueuePairType, ReceiveRequest, RegionInit,
    RegisterError, ReleaseKeyError, Remote, SendFlags, SendOperation, SendRequest, SharedQueueInit,
    State, Status,
};
use softfabric_units::{Span, Time};
use softfabric_wire::rdma::Operation;

type Bytes = Pair<ByteMemory>;

fn pair() -> Bytes {
    Pair::reliable(PairOptions {
        record: true,
        ..PairOptions::default()
    })
}

fn remote(pair: &Bytes, address: u64) -> Remote {
    Remote {
        address,
        key: pair.key(B),
    }
}

#[test]
fn unsignalled_requests_complete_in_silence() {
    let mut pair = pair();
    let write = SendOperation::Write(remote(&pair, 0));
    for id in 0..10 {
        let request = SendRequest::new(id, write, pair.piece(A, 0, 100));
        let request = if id % 4 == 3 {
            request
        } else {
            request.unsignaled()
        };
        pair.post(A, request);
    }
    pair.run();
    let ids: Vec<_> = pair.completions(A).iter().map(|done| done.id).collect();
    assert_eq!(ids, [3, 7]);
    // An error is told whatever was asked.
    let wrong = SendOperation::Write(Remote { address: 0, key: 0 });
    let request = SendRequest::new(11, wrong, pair.piece(A, 0, 100)).unsignaled();
    pair.post(A, request);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::RemoteAccess);
}

#[test]
fn a_queue_pair_may_signal_everything() {
    let mut pair = Bytes::reliable_with(
        PairOptions::default(),
        |_, init| init.signal_all = true,
        |_, _| {},
    );
    let write = SendOperation::Write(remote(&pair, 0));
    let request = SendRequest::new(1, write, pair.piece(A, 0, 100)).unsignaled();
    pair.post(A, request);
    pair.run();
    assert_eq!(pair.completions(A).len(), 1);
}

#[test]
fn scatter_and_gather_over_packet_borders() {
    let mut pair = pair();
    let data: Vec<u8> = (0..6000).map(|byte| (byte * 3) as u8).collect();
    pair.fill(A, 0, &data);
    let pieces = |pair: &Bytes, side, lengths: &[u32]| {
        let mut address = 10_000;
        let mut list = LocalSegments::new();
        for &length in lengths {
            list.push(pair.piece(side, address, length));
            address += 7000;
        }
        list
    };
    // Sent from three pieces, received into four, one of them empty.
    for (index, (offset, length)) in [(0, 1000), (1000, 5), (1005, 3995)].iter().enumerate() {
        let bytes = data[*offset..offset + length].to_vec();
        pair.fill(A, 10_000 + 7000 * index as u64, &bytes);
    }
    let receive = ReceiveRequest {
        id: 9,
        local: pieces(&pair, B, &[10, 0, 3000, 4000]),
    };
    let end = &mut pair.ends[B];
    end.device.post_recv(end.qp, receive).expect("room");
    let mut request = SendRequest::empty(1, SendOperation::Send);
    request.local = pieces(&pair, A, &[1000, 5, 3995]);
    pair.post(A, request);
    pair.run();
    assert_eq!(pair.completions(B)[0].length, 5000);
    assert_eq!(pair.bytes(B, 10_000, 10), &data[..10]);
    assert_eq!(pair.bytes(B, 24_000, 3000), &data[10..3010]);
    assert_eq!(pair.bytes(B, 31_000, 1990), &data[3010..5000]);
}

#[test]
fn inline_data_is_copied_when_it_is_posted() {
    let mut pair = pair();
    pair.fill(A, 0, b"before");
    let mut request = SendRequest::new(
        1,
        SendOperation::Write(remote(&pair, 0)),
        pair.piece(A, 0, 6),
    )
    .with(SendFlags::INLINE);
    // Its key is not looked at.
    request.local[0].key = 0xffff_ffff;
    pair.post(A, request.clone());
    pair.fill(A, 0, b"after!");
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    assert_eq!(pair.bytes(B, 0, 6), b"before");
    request.local[0].length = 257;
    let end = &mut pair.ends[A];
    let posted = end.device.post_send(Time::ZERO, end.qp, request);
    assert_eq!(
        posted,
        Err(PostError::Inline {
            found: 257,
            needed: 256
        })
    );
}

#[test]
fn full_queues_and_long_lists_are_refused() {
    let mut pair = Pair::<LengthsOnly>::reliable_with(
        PairOptions::default(),
        |_, init| {
            init.capacity.sends = 2;
            init.capacity.receives = 1;
            init.capacity.send_segments = 1;
        },
        |_, _| {},
    );
    pair.receive(A, 1, 0, 1);
    pair.send(A, 1, SendOperation::Send, 0, 1);
    pair.send(A, 2, SendOperation::Send, 0, 1);
    let piece = pair.piece(A, 0, 1);
    let end = &mut pair.ends[A];
    let request = SendRequest::new(3, SendOperation::Send, piece);
    let full = end.device.post_send(Time::ZERO, end.qp, request.clone());
    assert_eq!(full, Err(PostError::Full(2)));
    let full = end.device.post_recv(end.qp, ReceiveRequest::new(2, piece));
    assert_eq!(full, Err(PostError::Full(1)));
    let end = &mut pair.ends[B];
    let mut long = request;
    long.local.push(piece);
    let refused = end.device.post_send(Time::ZERO, end.qp, long);
    assert_eq!(
        refused,
        Err(PostError::Segments {
            found: 2,
            needed: 1
        })
    );
}

/// A fenced request waits for reads before it; one without does not.
#[test]
fn a_fence_waits_for_reads() {
    for fenced in [false, true] {
        let mut pair = pair();
        let read = SendOperation::Read(remote(&pair, 0));
        pair.send(A, 1, read, 0, 4000);
        let write = SendOperation::Write(remote(&pair, 5000));
        let mut request = SendRequest::new(2, write, pair.piece(A, 0, 100));
        if fenced {
            request = request.with(SendFlags::FENCE);
        }
        pair.post(A, request);
        pair.run();
        assert_eq!(pair.completions(A).len(), 2);
        let position = |operation, side| {
            pair.sent
                .iter()
                .rposition(|sent| {
                    sent.side == side && sent.header.bth.opcode.operation() == operation
                })
                .expect("it was sent")
        };
        let write = position(Operation::Write, A);
        let response = position(Operation::ReadResponse, B);
        assert_eq!(write > response, fenced);
    }
}

#[test]
fn reads_in_flight_are_limited() {
    let mut pair = Bytes::reliable_with(
        PairOptions {
            record: true,
            ..PairOptions::default()
        },
        |_, _| {},
        |_, modify| {
            if modify.max_reads.is_some() {
                modify.max_reads = Some(2);
            }
        },
    );
    let read = SendOperation::Read(remote(&pair, 0));
    for id in 0..6 {
        pair.send(A, id, read, 0, 100);
    }
    pair.run_until(Time::ZERO + Span::nanos(900));
    assert_eq!(pair.sent.len(), 2);
    pair.run();
    assert_eq!(pair.completions(A).len(), 6);
}

#[test]
fn notifications_of_completions() {
    let mut pair = pair();
    let queue = pair.ends[B].queue;
    for id in 0..8 {
        pair.receive(B, id, 0, 100);
    }
    let send = |pair: &mut Bytes, solicited| {
        let mut request = SendRequest::new(1, SendOperation::Send, pair.piece(A, 0, 10));
        if solicited {
            request = request.with(SendFlags::SOLICITED);
        }
        pair.post(A, request);
        pair.run();
    };
    send(&mut pair, true);
    assert_eq!(pair.events(B), [], "nobody asked");
    pair.ends[B]
        .device
        .request_notify(queue, true)
        .expect("it exists");
    send(&mut pair, false);
    assert_eq!(pair.events(B), [], "not solicited");
    send(&mut pair, true);
    assert_eq!(pair.events(B), [Event::Completion(queue)]);
    send(&mut pair, true);
    assert_eq!(pair.events(B), [], "once for each time asked");
    // Asking for any after asking for solicited ones counts, and not the other way round.
    let device = &mut pair.ends[B].device;
    device.request_notify(queue, false).expect("it exists");
    device.request_notify(queue, true).expect("it exists");
    send(&mut pair, false);
    assert_eq!(pair.events(B), [Event::Completion(queue)]);
    let flags: Vec<_> = pair
        .completions(B)
        .iter()
        .map(|done| done.flags.contains(CompletionFlags::SOLICITED))
        .collect();
    assert_eq!(flags, [true, false, true, true, false]);
}

#[test]
fn a_completion_queue_that_overruns() {
    let mut pair = Bytes::reliable(PairOptions {
        depth: 2,
        ..PairOptions::default()
    });
    let write = SendOperation::Write(remote(&pair, 0));
    let end = &mut pair.ends[A];
    let (queue, qp) = (end.queue, end.qp);
    for id in 0..4 {
        let piece = LocalSegment {
            address: 0,
            length: 1,
            key: end.key,
        };
        end.device
            .post_send(Time::ZERO, qp, SendRequest::new(id, write, piece))
            .expect("room");
    }
    // Nobody polls: the devices are driven by hand.
    let all = softfabric_units::ClassMask::ALL;
    let source = softfabric_testkit::path_to(B);
    let mut packets = Vec::new();
    while let Some(packet) = pair.ends[A].device.poll_transmit(Time::ZERO, all) {
        packets.push(packet);
    }
    for packet in &packets {
        pair.forge(B, &packet.header, &packet.payload, packet.payload_length);
    }
    let mut answers = Vec::new();
    while let Some(packet) = pair.ends[B].device.poll_transmit(Time::ZERO, all) {
        answers.push(packet);
    }
    for packet in &answers {
        pair.ends[A].device.handle_packet(
            Time::ZERO,
            softfabric_transport::Arrival {
                header: &packet.header,
                payload: &[][..],
                payload_length: 0,
                congestion: false,
                source: &source,
                destination: None,
                grh: None,
            },
        );
    }
    let device = &mut pair.ends[A].device;
    assert_eq!(
        device.poll_event(),
        Some(Event::CompletionQueueError(queue))
    );
    assert_eq!(device.poll_event(), Some(Event::QueuePairFatal(qp)));
    assert_eq!(device.query_qp(qp).expect("there").state, State::Error);
    assert!(device.poll_completion(queue).is_some());
    assert!(device.poll_completion(queue).is_some());
    assert!(device.poll_completion(queue).is_none());
}

#[test]
fn completion_queues_change_their_depth() {
    let mut pair = pair();
    let queue = pair.ends[A].queue;
    let device = &mut pair.ends[A].device;
    assert_eq!(
        device.destroy_cq(queue),
        Err(CompletionQueueError::InUse(2))
    );
    assert!(matches!(
        device.create_cq(0),
        Err(CompletionQueueError::Depth { found: 0, .. })
    ));
    assert_eq!(device.resize_cq(queue, 10), Ok(()));
    let qp = pair.ends[A].qp;
    pair.modify(A, &Modify::to(State::Error));
    let device = &mut pair.ends[A].device;
    for id in 0..5 {
        device
            .post_recv(
                qp,
                ReceiveRequest {
                    id,
                    local: LocalSegments::new(),
                },
            )
            .expect("it is flushed");
    }
    assert_eq!(
        device.resize_cq(queue, 4),
        Err(CompletionQueueError::Resize {
            found: 4,
            waiting: 5
        })
    );
    device.destroy_qp(qp).expect("it is there");
    assert!(
        device.poll_completion(queue).is_none(),
        "its entries went with it"
    );
    assert_eq!(device.destroy_cq(queue), Ok(()));
    assert_eq!(
        device.resize_cq(queue, 4),
        Err(CompletionQueueError::Unknown(queue))
    );
}

#[test]
fn a_shared_receive_queue() {
    let shared = std::cell::Cell::new(None);
    let mut pair = Bytes::reliable_with(
        PairOptions::default(),
        |device, init| {
            let init_shared = SharedQueueInit {
                domain: init.domain,
                depth: 10,
                segments: 1,
            };
            let queue = device.create_srq(init_shared).expect("small");
            init.shared = Some(queue);
            shared.set(Some(queue));
        },
        |_, _| {},
    );
    let queue = shared.get().expect("made");
    let receive = |pair: &mut Bytes, id| {
        let piece = pair.piece(B, id * 100, 100);
        pair.ends[B]
            .device
            .post_srq_recv(queue, ReceiveRequest::new(id, piece))
    };
    for id in 0..5 {
        receive(&mut pair, id).expect("room");
    }
    let qp = pair.ends[B].qp;
    let own = ReceiveRequest::default();
    let device = &mut pair.ends[B].device;
    assert_eq!(device.post_recv(qp, own), Err(PostError::Shared));
    device.set_srq_limit(queue, 3).expect("below the depth");
    assert!(device.set_srq_limit(queue, 11).is_err());
    for id in 0..2 {
        pair.send(A, id, SendOperation::Send, 0, 10);
    }
    pair.run();
    assert_eq!(pair.events(B), [], "three are left");
    pair.send(A, 2, SendOperation::Send, 0, 10);
    pair.send(A, 3, SendOperation::Send, 0, 10);
    pair.run();
    assert_eq!(pair.events(B), [Event::SharedQueueLimit(queue)], "once");
    let ids: Vec<_> = pair.completions(B).iter().map(|done| done.id).collect();
    assert_eq!(ids, [0, 1, 2, 3]);
    assert_eq!(pair.ends[B].device.srq_waiting(queue), Some(1));
    assert!(pair.ends[B].device.destroy_srq(queue).is_err(), "in use");
    // A queue pair that fails keeps its hands off the others' requests.
    pair.modify(B, &Modify::to(State::Error));
    assert_eq!(pair.events(B), [Event::LastReceiveReached(qp)]);
    assert_eq!(pair.ends[B].device.srq_waiting(queue), Some(1));
    pair.ends[B].device.destroy_qp(qp).expect("there");
    assert_eq!(pair.ends[B].device.destroy_srq(queue), Ok(()));
    assert_eq!(receive(&mut pair, 1), Err(PostError::UnknownQueue));
}

#[test]
fn the_send_queue_drains() {
    let mut pair = pair();
    let write = SendOperation::Write(remote(&pair, 0));
    for id in 0..3 {
        pair.send(A, id, write, 0, 20_000);
    }
    pair.run_until(Time::ZERO + Span::nanos(800));
    pair.modify(
        A,
        &Modify {
            drain_notify: Some(true),
            ..Modify::to(State::SendQueueDrain)
        },
    );
    let qp = pair.ends[A].qp;
    let draining = |pair: &Bytes| pair.ends[A].device.query_qp(qp).expect("there").draining;
    assert!(draining(&pair));
    assert_eq!(pair.events(A), []);
    pair.run();
    assert!(!draining(&pair));
    assert_eq!(pair.events(A), [Event::SendQueueDrained(qp)]);
    assert_eq!(pair.completions(A).len(), 1, "what was begun, and no more");
    pair.modify(A, &Modify::to(State::ReadyToSend));
    pair.run();
    assert_eq!(pair.completions(A).len(), 2);
}

/// What was begun before the send queue drains is finished, losses made good included; what was not, waits.
#[test]
fn a_draining_send_queue_makes_losses_good() {
    let mut pair = pair();
    pair.wire.set_rule(|side, number, _| {
        Some(softfabric_testkit::Fate {
            dropped: side == A && number == 3,
            ..Default::default()
        })
    });
    let write = SendOperation::Write(remote(&pair, 0));
    pair.send(A, 1, write, 0, 20_000);
    pair.run_until(Time::ZERO + Span::nanos(800));
    let drain = Modify {
        drain_notify: Some(true),
        ..Modify::to(State::SendQueueDrain)
    };
    pair.modify(A, &drain);
    pair.send(A, 2, write, 0, 10);
    pair.run();
    assert!(pair.counter(A, DeviceCounter::Retransmitted) > 0);
    let qp = pair.ends[A].qp;
    assert_eq!(pair.events(A), [Event::SendQueueDrained(qp)]);
    let ids: Vec<_> = pair.completions(A).iter().map(|done| done.id).collect();
    assert_eq!(ids, [1]);
    pair.modify(A, &Modify::to(State::ReadyToSend));
    pair.run();
    assert_eq!(pair.completions(A)[0].id, 2);
}

/// A program that brings a failed queue pair back does not find what was flushed before.
#[test]
fn a_reset_queue_pair_leaves_no_completions() {
    let mut pair = pair();
    let (qp, queue) = (pair.ends[A].qp, pair.ends[A].queue);
    pair.modify(A, &Modify::to(State::Error));
    let posted = pair.ends[A].device.post_recv(qp, ReceiveRequest::default());
    assert_eq!(posted, Ok(()), "it is flushed");
    let waiting = |pair: &Bytes| {
        pair.ends[A]
            .device
            .query_cq(queue)
            .map(|queue| queue.waiting)
    };
    assert_eq!(waiting(&pair), Some(1));
    pair.modify(A, &Modify::to(State::Reset));
    assert_eq!(waiting(&pair), Some(0));
}

#[test]
fn a_connection_is_established_by_its_first_packet() {
    let options = PairOptions::default();
    let mut pair = Bytes::reliable_with(options, |_, _| {}, |_, _| {});
    // Side B as it was before it could send.
    pair.modify(B, &Modify::to(State::Reset));
    let (qp, peer) = (pair.ends[B].qp, pair.ends[A].qp);
    let path = softfabric_testkit::path_to(A);
    let rights = Access::REMOTE_WRITE;
    pair.modify(B, &Modify::initialize(rights));
    let ready = Modify::ready_to_receive_reliable(path, options.mtu, peer, options.psn);
    pair.modify(B, &ready);
    let write = SendOperation::Write(remote(&pair, 0));
    pair.send(A, 1, write, 0, 10);
    pair.send(A, 2, write, 0, 10);
    pair.run();
    assert_eq!(pair.completions(A).len(), 2);
    assert_eq!(pair.events(B), [Event::CommunicationEstablished(qp)]);
}

#[test]
fn registrations_that_fail() {
    let mut pair = pair();
    let end = &mut pair.ends[A];
    let register = |end: &mut softfabric_testkit::End<ByteMemory>, access, address| {
        let region = RegionInit::new(address, 100, access);
        end.device.register_memory(end.domain, &region)
    };
    assert_eq!(
        register(end, Access::REMOTE_WRITE, 0),
        Err(RegisterError::NeedsLocalWrite(Access::REMOTE_WRITE))
    );
    assert!(matches!(
        register(end, Access::LOCAL_WRITE, u64::MAX - 10),
        Err(RegisterError::Wraps { .. })
    ));
    let domain = end.domain;
    assert_eq!(
        end.device.dealloc_domain(domain),
        Err(ReleaseKeyError::DomainInUse(domain, 2)),
        "a queue pair and a region"
    );
    let (qp, key) = (end.qp, end.key);
    end.device.destroy_qp(qp).expect("there");
    end.device.deregister_memory(key).expect("there");
    assert_eq!(
        end.device.deregister_memory(key),
        Err(ReleaseKeyError::UnknownKey(key))
    );
    assert_eq!(end.device.dealloc_domain(domain), Ok(()));
    assert_eq!(
        register(end, Access::LOCAL_WRITE, 0),
        Err(RegisterError::UnknownDomain(domain))
    );
}

/// Credits (IBTA vol. 1, 9.7.7.2): a sender that knows of no receive request sends one message to probe, and none of its
/// messages meets a receiver that is not ready, but the probe.
#[test]
fn credits_hold_back_the_sender() {
    let mut options = PairOptions {
        record: true,
        ..PairOptions::default()
    };
    options.config.acknowledgement.credits = true;
    let mut pair = Bytes::reliable(options);
    for id in 0..3 {
        pair.receive(B, id, 0, 100);
    }
    for id in 0..10 {
        pair.send(A, id, SendOperation::Send, 0, 100);
        if id == 0 {
            pair.run();
        }
    }
    pair.run_until(pair.now() + Span::micros(100));
    assert_eq!(pair.completions(A).len(), 3);
    let naks = pair.counter(A, DeviceCounter::RnrNakReceived);
    assert_eq!(naks, 1, "the probe");
    let sends = pair.sent.iter().filter(|sent| sent.side == A).count();
    assert_eq!(sends, 4);
    for id in 3..10 {
        pair.receive(B, id, 0, 100);
    }
    pair.run();
    assert_eq!(pair.completions(A).len(), 7);
    assert_eq!(pair.counter(A, DeviceCounter::RnrNakReceived), naks);
}

#[test]
fn destroyed_queue_pairs_leave_nothing_behind() {
    let mut pair = pair();
    let write = SendOperation::Write(remote(&pair, 0));
    pair.send(A, 1, write, 0, 100_000);
    pair.run_until(Time::ZERO + Span::micros(3));
    let (a, b) = (pair.ends[A].qp, pair.ends[B].qp);
    pair.ends[B].device.destroy_qp(b).expect("there");
    pair.ends[A].device.destroy_qp(a).expect("there");
    pair.run();
    assert!(pair.completions(A).is_empty());
    assert!(pair.ends[A].device.query_qp(a).is_none());
    assert!(pair.ends[A].device.destroy_qp(a).is_err());
}

#[test]
fn queue_pairs_that_cannot_be_made() {
    let mut pair = pair();
    let end = &mut pair.ends[A];
    let service = QueuePairType::ReliableConnection;
    let good = QueuePairInit::new(service, end.domain, end.queue);
    let mut refused = |change: &dyn Fn(&mut QueuePairInit)| {
        let mut init = good;
        change(&mut init);
        end.device.create_qp(&init).expect_err("it cannot be made")
    };
    let taken = softfabric_units::Qpn::new(2);
    assert_eq!(
        refused(&|init| init.number = Some(taken)),
        CreateError::NumberTaken(taken)
    );
    let zero = softfabric_units::Rate::ZERO;
    assert_eq!(
        refused(&|init| init.rate_control = Some(RateControlConfig::Fixed { rate: zero })),
        CreateError::RateControl("rate")
    );
    assert!(matches!(
        refused(&|init| init.capacity.sends = u32::MAX),
        CreateError::Capacity {
            what: "send requests",
            ..
        }
    ));
}

/// A read of almost 2 GiB in packets of 256 bytes takes nearly half of all PSNs: two do not fit at once.
#[test]
fn reads_that_take_half_of_all_psns() {
    let mut pair = Pair::<LengthsOnly>::unconnected(
        QueuePairType::ReliableConnection,
        PairOptions {
            memory: 1 << 31,
            ..PairOptions::default()
        },
        |_, _| {},
    );
    let (a, b) = (pair.ends[A].qp, pair.ends[B].qp);
    let psn = softfabric_units::Psn::new(5);
    for (side, peer) in [(A, b), (B, a)] {
        let path = softfabric_testkit::path_to(1 - side);
        let mtu = softfabric_transport::Mtu::BYTES_256;
        let timeout = softfabric_transport::AckTimeout::OFF;
        pair.modify(side, &Modify::initialize(Access::REMOTE_READ));
        pair.modify(
            side,
            &Modify::ready_to_receive_reliable(path, mtu, peer, psn),
        );
        pair.modify(side, &Modify::ready_to_send_reliable(psn, timeout));
    }
    let read = SendOperation::Read(Remote {
        address: 0,
        key: pair.key(B),
    });
    let longest = ((1 << 23) - 1) * 256;
    pair.send(A, 1, read, 0, longest);
    pair.send(A, 2, read, 0, longest);
    let piece = pair.piece(A, 0, longest + 1);
    let end = &mut pair.ends[A];
    let refused = end
        .device
        .post_send(Time::ZERO, a, SendRequest::new(3, read, piece));
    assert!(matches!(refused, Err(PostError::Length { .. })));
    let all = softfabric_units::ClassMask::ALL;
    assert!(end.device.poll_transmit(Time::ZERO, all).is_some());
    assert!(end.device.poll_transmit(Time::ZERO, all).is_none());
    let status = end.device.query_qp(a).expect("there");
    assert_eq!(status.send_psn, psn.add((1 << 23) - 1));
}

#[test]
fn an_idle_send_queue_has_drained_at_once() {
    let mut pair = pair();
    pair.modify(
        A,
        &Modify {
            drain_notify: Some(true),
            ..Modify::to(State::SendQueueDrain)
        },
    );
    let qp = pair.ends[A].qp;
    assert_eq!(pair.events(A), [Event::SendQueueDrained(qp)]);
}
