//! Memory regions that change under their key, regions without bytes, and what queries tell of queues.

use softfabric_testkit::{A, B, ByteMemory, Pair, PairOptions};
use softfabric_transport::{
    Access, BindWindow, CompletionQueueStatus, LengthsOnly, LocalSegment, ReceiveRequest,
    RegionChange, RegionInit, RegionRange, RegisterError, Remote, ReregisterError, SendOperation,
    SendRequest, SharedQueueError, SharedQueueInit, SharedQueueStatus, State, Status, WindowKind,
};
use softfabric_units::Time;

type Bytes = Pair<ByteMemory>;

fn pair() -> Bytes {
    Pair::reliable(PairOptions::default())
}

const REMOTE: Access = Access::LOCAL_WRITE
    .union(Access::REMOTE_WRITE)
    .union(Access::REMOTE_READ);

fn register(pair: &mut Bytes, side: usize, region: &RegionInit) -> u32 {
    let end = &mut pair.ends[side];
    end.device
        .register_memory(end.domain, region)
        .expect("it can be")
}

fn written(pair: &mut Bytes, key: u32, address: u64) -> Status {
    let operation = SendOperation::Write(Remote { address, key });
    pair.send(A, 60, operation, 0, 4);
    pair.run();
    pair.completions(A)[0].status
}

#[test]
fn a_region_changes_its_rights() {
    let mut pair = pair();
    let key = register(&mut pair, B, &RegionInit::new(0, 1000, Access::LOCAL_WRITE));
    let change = RegionChange {
        access: Some(REMOTE),
        ..RegionChange::default()
    };
    let device = &mut pair.ends[B].device;
    assert_eq!(device.reregister_memory(key, &change), Ok(()));
    assert_eq!(written(&mut pair, key, 10), Status::Success);
    let change = RegionChange {
        access: Some(Access::LOCAL_WRITE),
        ..RegionChange::default()
    };
    let device = &mut pair.ends[B].device;
    assert_eq!(device.reregister_memory(key, &change), Ok(()));
    assert_eq!(written(&mut pair, key, 10), Status::RemoteAccess);
}

#[test]
fn a_region_moves() {
    let mut pair = pair();
    pair.fill(A, 0, b"data");
    let key = register(&mut pair, B, &RegionInit::new(0, 1000, REMOTE));
    let change = RegionChange {
        range: Some(RegionRange {
            virtual_address: 0x7000_0000,
            address: 20_000,
            length: 100,
            region: 0,
        }),
        ..RegionChange::default()
    };
    let device = &mut pair.ends[B].device;
    assert_eq!(device.reregister_memory(key, &change), Ok(()));
    assert_eq!(written(&mut pair, key, 0x7000_0000 + 96), Status::Success);
    assert_eq!(pair.bytes(B, 20_096, 4), b"data");
    assert_eq!(written(&mut pair, key, 0), Status::RemoteAccess);
}

#[test]
fn a_region_goes_to_another_domain() {
    let mut pair = pair();
    let key = register(&mut pair, B, &RegionInit::new(0, 1000, REMOTE));
    let device = &mut pair.ends[B].device;
    let other = device.alloc_domain();
    let change = RegionChange {
        domain: Some(other),
        ..RegionChange::default()
    };
    assert_eq!(device.reregister_memory(key, &change), Ok(()));
    assert!(device.dealloc_domain(other).is_err(), "it is in use");
    let third = device.alloc_domain();
    let region = RegionInit::new(0, 10, REMOTE);
    let moved = device.register_memory(third, &region).expect("fits");
    assert_eq!(device.reregister_memory(moved, &change), Ok(()));
    assert_eq!(
        device.dealloc_domain(third),
        Ok(()),
        "nothing is left in it"
    );
    device.deregister_memory(moved).expect("it is there");
    assert_eq!(written(&mut pair, key, 10), Status::RemoteAccess);
    let device = &mut pair.ends[B].device;
    device.deregister_memory(key).expect("it is there");
    assert_eq!(device.dealloc_domain(other), Ok(()));
}

/// A region that changes in the middle of a write: from then on nothing is written where it was.
#[test]
fn a_region_moves_in_the_middle_of_a_write() {
    let mut pair = pair();
    let key = register(&mut pair, B, &RegionInit::new(0, 500_000, REMOTE));
    pair.fill(A, 0, &vec![7; 500_000]);
    let remote = Remote { address: 0, key };
    pair.send(A, 1, SendOperation::Write(remote), 0, 500_000);
    pair.run_until(Time::from_nanos(10_000));
    let change = RegionChange {
        access: Some(Access::LOCAL_WRITE),
        ..RegionChange::default()
    };
    let device = &mut pair.ends[B].device;
    assert_eq!(device.reregister_memory(key, &change), Ok(()));
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::RemoteAccess);
    assert_eq!(pair.bytes(B, 0, 1), [7]);
    assert_eq!(pair.bytes(B, 499_999, 1), [0]);
}

#[test]
fn changes_that_are_refused_change_nothing() {
    let mut pair = pair();
    let key = register(&mut pair, B, &RegionInit::new(0, 1000, REMOTE));
    let nothing = RegionChange::default();
    let device = &mut pair.ends[B].device;
    let gone = device.alloc_domain();
    device.dealloc_domain(gone).expect("empty");
    let window = device
        .alloc_window(pair.ends[B].domain, WindowKind::Type1)
        .expect("there are keys");
    let range = RegionRange {
        virtual_address: u64::MAX,
        address: 0,
        length: 2,
        region: 0,
    };
    let device = &mut pair.ends[B].device;
    for (key, change, error) in [
        (key ^ 1, nothing, ReregisterError::UnknownKey(key ^ 1)),
        (window, nothing, ReregisterError::UnknownKey(window)),
        (
            key,
            RegionChange {
                domain: Some(gone),
                ..nothing
            },
            RegisterError::UnknownDomain(gone).into(),
        ),
        (
            key,
            RegionChange {
                access: Some(Access::REMOTE_WRITE),
                ..nothing
            },
            RegisterError::NeedsLocalWrite(Access::REMOTE_WRITE).into(),
        ),
        (
            key,
            RegionChange {
                range: Some(range),
                ..nothing
            },
            RegisterError::Wraps {
                address: u64::MAX,
                length: 2,
            }
            .into(),
        ),
    ] {
        assert_eq!(device.reregister_memory(key, &change), Err(error));
    }
    assert_eq!(written(&mut pair, key, 996), Status::Success);
}

#[test]
fn a_region_with_windows_stays_as_it_is() {
    let mut pair = pair();
    let end = &mut pair.ends[B];
    let window = end
        .device
        .alloc_window(end.domain, WindowKind::Type1)
        .expect("there are keys");
    let bind = BindWindow {
        window,
        new_key: window + 1,
        region: end.key,
        address: 0,
        length: 10,
        access: Access::REMOTE_READ,
    };
    pair.post(B, SendRequest::empty(1, SendOperation::BindWindow(bind)));
    let key = pair.key(B);
    let device = &mut pair.ends[B].device;
    assert_eq!(
        device.reregister_memory(key, &RegionChange::default()),
        Err(ReregisterError::WindowsBound(1))
    );
}

/// What is written to a null region is lost, what is read from it is zero.
#[test]
fn a_region_without_bytes() {
    let mut pair = pair();
    let null = register(&mut pair, A, &RegionInit::null(Access::LOCAL_WRITE));
    pair.fill(B, 0, &[9; 100]);
    pair.fill(A, 100, &[5; 3000]);
    let whole = SendOperation::Write(Remote {
        address: 0,
        key: pair.key(B),
    });
    // Three bytes of memory, 2000 zeros, three bytes of memory.
    let piece = |address, length, key| LocalSegment {
        address,
        length,
        key,
    };
    let mut request = SendRequest::empty(1, whole);
    let own = pair.key(A);
    request.local.push(piece(100, 3, own));
    request.local.push(piece(0xffff_ffff_0000, 2000, null));
    request.local.push(piece(100, 3, own));
    pair.post(A, request);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    assert_eq!(pair.bytes(B, 0, 5), [5, 5, 5, 0, 0]);
    assert_eq!(pair.bytes(B, 2000, 7), [0, 0, 0, 5, 5, 5, 0]);
    // A read of which the middle is thrown away, an atomic whose result is.
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    let mut request = SendRequest::empty(2, SendOperation::Read(remote));
    request.local.push(piece(9000, 2, own));
    request.local.push(piece(100, 1999, null));
    request.local.push(piece(9002, 3, own));
    pair.post(A, request);
    let add = SendOperation::FetchAdd { remote, add: 1 };
    pair.post(A, SendRequest::new(3, add, piece(64, 8, null)));
    pair.run();
    let done = pair.completions(A);
    assert!(done.iter().all(|done| done.status == Status::Success));
    assert_eq!(pair.bytes(A, 9000, 5), [5, 5, 0, 0, 5]);
    assert_eq!(pair.bytes(A, 64, 8), [0; 8], "nothing was placed there");
    assert_eq!(pair.bytes(A, 100, 100), [5; 100]);
}

#[test]
fn queries_of_queues() {
    let mut pair = Pair::<LengthsOnly>::reliable(PairOptions::default());
    let end = &mut pair.ends[A];
    let init = SharedQueueInit {
        domain: end.domain,
        depth: 10,
        segments: 3,
    };
    let shared = end.device.create_srq(init).expect("small");
    for id in 0..4 {
        let request = ReceiveRequest {
            id,
            ..ReceiveRequest::default()
        };
        end.device.post_srq_recv(shared, request).expect("room");
    }
    end.device
        .set_srq_limit(shared, 6)
        .expect("below the depth");
    let status = SharedQueueStatus {
        domain: end.domain,
        depth: 10,
        segments: 3,
        limit: 6,
        waiting: 4,
        users: 0,
        number: None,
        xrc: None,
    };
    assert_eq!(end.device.query_srq(shared), Some(status));
    let resize = |depth| end.device.resize_srq(shared, depth);
    let mut resize = resize;
    assert_eq!(
        resize(5),
        Err(SharedQueueError::Resize {
            found: 5,
            needed: 6
        })
    );
    assert!(matches!(resize(0), Err(SharedQueueError::Depth { .. })));
    assert_eq!(resize(6), Ok(()));
    assert_eq!(end.device.query_srq(shared).map(|srq| srq.depth), Some(6));
    for id in 0..2 {
        let request = ReceiveRequest {
            id,
            ..ReceiveRequest::default()
        };
        end.device.post_srq_recv(shared, request).expect("room");
    }
    let one_more = end.device.post_srq_recv(shared, ReceiveRequest::default());
    assert!(one_more.is_err());

    let status = end.device.query_qp(end.qp).expect("there");
    assert_eq!(
        (status.send_queue, status.receive_queue),
        (end.queue, end.queue)
    );
    assert_eq!((status.domain, status.shared), (end.domain, None));
    assert!(!status.signal_all);
    let queue = end.queue;
    pair.modify(A, &softfabric_transport::Modify::to(State::Error));
    let end = &mut pair.ends[A];
    end.device
        .post_recv(end.qp, ReceiveRequest::default())
        .expect("it is flushed");
    assert_eq!(
        end.device.query_cq(queue),
        Some(CompletionQueueStatus {
            depth: PairOptions::default().depth,
            waiting: 1,
            overrun: false,
            users: 2,
        })
    );
}
