//! How long XRC domains, shared receive queues and targets live, what they refuse, and whose packets they take.

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, ByteMemory, Pair, PairOptions};
use softfabric_transport::{
    CreateError, LossRecovery, ModifyError, PostError, QueuePairInit, QueuePairType,
    ReceiveRequest, RegionInit, Remote, SendOperation, SendRequest, SharedQueueError,
    SharedQueueInit, State, Status, XrcError, XrcQueueInit,
};
use softfabric_units::{Msn, PartitionKey, Psn, Qpn, Time};
use softfabric_wire::rdma::{Aeth, Bth, Extension, Opcode, Reth, Syndrome, TransportHeader};

use crate::refusals::state;

type Bytes = Pair<ByteMemory>;

fn pair() -> Bytes {
    Pair::extended(PairOptions {
        psn: Psn::new(100),
        record: true,
        ..PairOptions::default()
    })
}

#[test]
fn a_domain_lives_as_long_as_what_belongs_to_it() {
    let mut pair = pair();
    let end = &mut pair.ends[B];
    let target = end.qp;
    let xrc = end.device.query_qp(target).expect("there").xrc;
    let xrc = xrc.expect("it is a target");
    assert_eq!(
        end.device.dealloc_xrc_domain(xrc),
        Err(XrcError::DomainInUse(xrc, 2)),
        "a queue and a target"
    );
    assert!(
        end.device.destroy_cq(end.queue).is_err(),
        "the queue uses it"
    );
    let queue = end.shared.expect("it has one");
    assert_eq!(end.device.destroy_srq(queue), Ok(()), "no target holds it");
    assert_eq!(end.device.destroy_cq(end.queue), Ok(()));
    assert_eq!(
        end.device.dealloc_xrc_domain(xrc),
        Err(XrcError::DomainInUse(xrc, 1))
    );
    assert_eq!(end.device.destroy_qp(target), Ok(()));
    assert_eq!(end.device.dealloc_xrc_domain(xrc), Ok(()));
    assert_eq!(
        end.device.dealloc_xrc_domain(xrc),
        Err(XrcError::UnknownDomain(xrc))
    );
    assert_ne!(end.device.alloc_xrc_domain(), xrc, "nobody gets its number");
}

/// A target that two have open serves on when one of them leaves.
#[test]
fn a_target_is_shared_by_those_who_open_it() {
    let mut pair = pair();
    let end = &mut pair.ends[B];
    let target = end.qp;
    let xrc = end.device.query_qp(target).expect("there").xrc;
    let xrc = xrc.expect("it is a target");
    let other = end.device.alloc_xrc_domain();
    assert_eq!(
        end.device.open_qp(other, target),
        Err(XrcError::NoTarget(other, target))
    );
    let nobody = Qpn::new(0x99);
    assert_eq!(
        end.device.open_qp(xrc, nobody),
        Err(XrcError::NoTarget(xrc, nobody))
    );
    assert_eq!(end.device.open_qp(xrc, target), Ok(()));
    assert_eq!(end.device.destroy_qp(target), Ok(()));
    pair.receive(B, 1, 0, 100);
    pair.send(A, 1, SendOperation::Send, 0, 10);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    let device = &mut pair.ends[B].device;
    assert_eq!(device.destroy_qp(target), Ok(()));
    assert_eq!(device.destroy_qp(target), Err(ModifyError::Unknown(target)));
    assert_eq!(pair.completions(B).len(), 1, "what it completed stays");
}

#[test]
fn what_initiators_and_targets_do_not_do() {
    let mut pair = pair();
    let piece = pair.piece(A, 0, 10);
    for (side, service) in [
        (A, QueuePairType::XrcInitiator),
        (B, QueuePairType::XrcTarget),
    ] {
        let end = &mut pair.ends[side];
        let refused = PostError::Operation { service };
        let receive = ReceiveRequest::default();
        assert_eq!(end.device.post_recv(end.qp, receive), Err(refused));
    }
    let end = &mut pair.ends[B];
    let send = SendRequest::new(1, SendOperation::Send, piece);
    assert_eq!(
        end.device.post_send(Time::ZERO, end.qp, send),
        Err(PostError::Operation {
            service: QueuePairType::XrcTarget
        })
    );
}

#[test]
fn what_cannot_be_made() {
    let mut pair = pair();
    let end = &mut pair.ends[B];
    let xrc = end.device.alloc_xrc_domain();
    let gone = end.device.alloc_xrc_domain();
    end.device.dealloc_xrc_domain(gone).expect("empty");
    let own = end.shared.expect("it has one");
    let init = SharedQueueInit {
        domain: end.domain,
        depth: 5,
        segments: 1,
    };
    let ordinary = end.device.create_srq(init).expect("small");
    let of = XrcQueueInit {
        domain: gone,
        completions: end.queue,
    };
    assert_eq!(
        end.device.create_xrc_srq(init, of),
        Err(SharedQueueError::UnknownXrcDomain(gone))
    );
    let target = QueuePairInit::xrc_target(xrc);
    let initiator = QueuePairInit::xrc_initiator(end.domain, end.queue);
    let reliable = QueuePairType::ReliableConnection;
    let connection = QueuePairInit::new(reliable, end.domain, end.queue);
    let (is_target, is_initiator) = (QueuePairType::XrcTarget, QueuePairType::XrcInitiator);
    for (init, error) in [
        (
            QueuePairInit {
                xrc: Some(gone),
                ..target
            },
            CreateError::UnknownXrcDomain(gone),
        ),
        (
            QueuePairInit {
                xrc: None,
                ..target
            },
            CreateError::Xrc(is_target),
        ),
        (
            QueuePairInit {
                xrc: Some(xrc),
                ..initiator
            },
            CreateError::Xrc(is_initiator),
        ),
        (
            QueuePairInit {
                shared: Some(ordinary),
                ..initiator
            },
            CreateError::Shared(is_initiator, ordinary),
        ),
        (
            QueuePairInit {
                shared: Some(ordinary),
                ..target
            },
            CreateError::Shared(is_target, ordinary),
        ),
        (
            QueuePairInit {
                shared: Some(own),
                ..connection
            },
            CreateError::Shared(reliable, own),
        ),
    ] {
        assert_eq!(end.device.create_qp(&init), Err(error));
    }
}

/// Requests go to targets, answers to initiators, and RC to neither.
#[test]
fn packets_for_the_wrong_end() {
    let mut pair = pair();
    let key = pair.key(A);
    let number = pair.srq_number(B).expect("it has one");
    let reth = Extension::Reth(Reth {
        address: 0,
        rkey: key,
        length: 4,
    });
    let aeth = Extension::Aeth(Aeth {
        syndrome: Syndrome::ACK,
        msn: Msn::new(0),
    });
    let cases = [
        (A, Opcode::XRC_WRITE_ONLY, reth, number),
        (A, Opcode::RC_WRITE_ONLY, reth, 0),
        (A, Opcode::RC_ACKNOWLEDGE, aeth, 0),
        (B, Opcode::XRC_ACKNOWLEDGE, aeth, 0),
        (B, Opcode::RC_WRITE_ONLY, reth, 0),
    ];
    for (to, opcode, extension, xrc_srq) in cases {
        let header = TransportHeader {
            bth: Bth {
                opcode,
                solicited: false,
                migrated: true,
                pad: 0,
                partition: PartitionKey::DEFAULT,
                fecn: false,
                becn: false,
                destination: pair.ends[to].qp,
                acknowledge: true,
                psn: Psn::new(if to == A { 1100 } else { 100 }),
            },
            extension,
            xrc_srq,
        };
        let before = pair.counter(to, DeviceCounter::Discarded);
        pair.forge(to, &header, &[9; 4], 4);
        assert_eq!(pair.counter(to, DeviceCounter::Discarded), before + 1);
    }
    pair.run();
    assert_eq!(pair.packets, 0);
    assert_eq!(pair.bytes(A, 0, 4), [0; 4]);
}

/// Going back to 0, the request that a message had is there for its second try; with a queue of XRC, and with another.
#[test]
fn a_message_that_is_forgotten_gives_its_request_back() {
    let mut options = PairOptions::default();
    options.config.recovery = LossRecovery::GoBack0;
    for extended in [true, false] {
        let mut pair = if extended {
            Bytes::extended(options)
        } else {
            Bytes::reliable_with(
                options,
                |device, init| {
                    let shared = SharedQueueInit {
                        domain: init.domain,
                        depth: 10,
                        segments: 1,
                    };
                    init.shared = device.create_srq(shared).ok();
                },
                |_, _| {},
            )
        };
        pair.wire.set_rule(|side, number, _| {
            Some(softfabric_testkit::Fate {
                dropped: side == A && number == 2,
                ..Default::default()
            })
        });
        pair.receive(B, 5, 0, 10_000);
        pair.receive(B, 6, 0, 10_000);
        pair.send(A, 1, SendOperation::Send, 0, 10_000);
        pair.send(A, 2, SendOperation::Send, 0, 10_000);
        pair.run();
        let ids: Vec<_> = pair.completions(B).iter().map(|done| done.id).collect();
        assert_eq!(ids, [5, 6], "extended: {extended}");
    }
}

/// A queue pair that is reset or destroyed in the middle of a message leaves the shared queue's request to others.
#[test]
fn a_request_goes_back_when_its_queue_pair_goes() {
    for destroyed in [false, true] {
        let mut pair = pair();
        pair.receive(B, 5, 0, 500_000);
        pair.send(A, 1, SendOperation::Send, 0, 500_000);
        pair.run_until(Time::from_nanos(10_000));
        let queue = pair.ends[B].shared.expect("it has one");
        let waiting = |pair: &Bytes| pair.ends[B].device.srq_waiting(queue);
        assert_eq!(waiting(&pair), Some(0));
        let target = pair.ends[B].qp;
        if destroyed {
            pair.ends[B].device.destroy_qp(target).expect("there");
        } else {
            pair.modify(B, &softfabric_transport::Modify::to(State::Reset));
        }
        assert_eq!(waiting(&pair), Some(1));
        assert!(pair.completions(B).is_empty());
    }
}

/// The memory of receive requests is that of the shared queue's domain, whatever domain the queue pair has.
#[test]
fn a_shared_queue_has_memory_of_its_own() {
    for own in [true, false] {
        let mut pair = Bytes::reliable_with(
            PairOptions::default(),
            |device, init| {
                let domain = device.alloc_domain();
                let shared = SharedQueueInit {
                    domain,
                    depth: 10,
                    segments: 1,
                };
                init.shared = device.create_srq(shared).ok();
            },
            |_, _| {},
        );
        let end = &mut pair.ends[B];
        let queue = end.shared.expect("it has one");
        let domain = end.device.query_srq(queue).expect("there").domain;
        let region = RegionInit::new(0, 1000, softfabric_transport::Access::LOCAL_WRITE);
        let key = end.device.register_memory(domain, &region).expect("fits");
        let mut piece = pair.piece(B, 0, 100);
        if own {
            piece.key = key;
        }
        let end = &mut pair.ends[B];
        let receive = ReceiveRequest::new(5, piece);
        end.device.post_srq_recv(queue, receive).expect("room");
        pair.send(A, 1, SendOperation::Send, 0, 10);
        pair.run();
        let expected = if own {
            Status::Success
        } else {
            Status::LocalProtection
        };
        assert_eq!(pair.completions(B)[0].status, expected);
        // What the peer writes is still memory of the queue pair's domain.
        if own {
            let key = pair.key(B);
            let write = SendOperation::Write(Remote { address: 0, key });
            pair.send(A, 2, write, 0, 10);
            pair.run();
            let done = pair.completions(A);
            assert_eq!(done.last().map(|done| done.status), Some(Status::Success));
        }
    }
}

/// A target fails in the middle of a message: its request is flushed, the others in the queue are not touched.
#[test]
fn a_target_that_fails_flushes_only_what_it_took() {
    let mut pair = pair();
    for id in 5..8 {
        pair.receive(B, id, 0, 500_000);
    }
    pair.send(A, 1, SendOperation::Send, 0, 500_000);
    pair.run_until(Time::from_nanos(10_000));
    pair.modify(B, &softfabric_transport::Modify::to(State::Error));
    let flushed: Vec<_> = pair
        .completions(B)
        .iter()
        .map(|done| (done.id, done.status, done.qp))
        .collect();
    assert_eq!(flushed, [(5, Status::Flushed, pair.ends[B].qp)]);
    assert_eq!(pair.events(B), [], "it was attached to no queue");
    let queue = pair.ends[B].shared.expect("it has one");
    assert_eq!(pair.ends[B].device.srq_waiting(queue), Some(2));
    assert_eq!(state(&pair, A), State::ReadyToSend);
}
