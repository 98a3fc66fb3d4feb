//! Memory windows, and regions whose addresses are their own.

use softfabric_testkit::{A, B, ByteMemory, Pair, PairOptions};
use softfabric_transport::{
    Access, Attachment, BindWindow, CompletedOperation, Modify, RegionInit, ReleaseKeyError,
    Remote, SendFlags, SendOperation, SendRequest, Status, WindowKind,
};
use softfabric_units::Time;
use softfabric_wire::rdma::Extension;

type Bytes = Pair<ByteMemory>;

fn pair() -> Bytes {
    Pair::reliable(PairOptions {
        record: true,
        ..PairOptions::default()
    })
}

/// A bind request for a window at side B.
fn bind(pair: &Bytes, window: u32, new_key: u32, address: u64, length: u64) -> BindWindow {
    BindWindow {
        window,
        new_key,
        region: pair.key(B),
        address,
        length,
        access: Access::REMOTE_WRITE | Access::REMOTE_READ,
    }
}

fn next(key: u32) -> u32 {
    key & !0xff | (key + 1) & 0xff
}

fn status_of(pair: &mut Bytes, side: usize, operation: SendOperation) -> Status {
    pair.post(side, SendRequest::empty(50, operation));
    pair.run();
    pair.completions(side)
        .iter()
        .find(|done| done.id == 50)
        .expect("it completes")
        .status
}

/// What a write of one byte through a key to an address of B comes to.
fn written(pair: &mut Bytes, key: u32, address: u64) -> Status {
    let operation = SendOperation::Write(Remote { address, key });
    pair.send(A, 60, operation, 0, 1);
    pair.run();
    pair.completions(A)[0].status
}

fn window(pair: &mut Bytes, kind: WindowKind) -> u32 {
    let end = &mut pair.ends[B];
    end.device
        .alloc_window(end.domain, kind)
        .expect("there are keys")
}

#[test]
fn windows_of_type_1_move() {
    let mut pair = pair();
    let first = window(&mut pair, WindowKind::Type1);
    let second = next(first);
    let binding = bind(&pair, first, second, 1000, 100);
    assert_eq!(
        status_of(&mut pair, B, SendOperation::BindWindow(binding)),
        Status::Success
    );
    assert_eq!(written(&mut pair, second, 1099), Status::Success);
    // It is bound elsewhere, without being invalidated; the old key is dead.
    let third = next(second);
    let binding = bind(&pair, second, third, 2000, 100);
    assert_eq!(
        status_of(&mut pair, B, SendOperation::BindWindow(binding)),
        Status::Success
    );
    assert_eq!(written(&mut pair, third, 2000), Status::Success);
    let region = pair.key(B);
    assert!(matches!(
        pair.ends[B].device.deregister_memory(region),
        Err(ReleaseKeyError::WindowsBound(1))
    ));
    // It cannot be invalidated, only unbound by a binding of no length.
    assert_eq!(written(&mut pair, second, 1000), Status::RemoteAccess);
}

#[test]
fn windows_bound_to_nothing_open_nothing() {
    let mut pair = pair();
    let first = window(&mut pair, WindowKind::Type1);
    assert_eq!(written(&mut pair, first, 0), Status::RemoteAccess);
    let mut pair = self::pair();
    let first = window(&mut pair, WindowKind::Type1);
    let second = next(first);
    let binding = bind(&pair, first, second, 1000, 100);
    status_of(&mut pair, B, SendOperation::BindWindow(binding));
    let third = next(second);
    let binding = bind(&pair, second, third, 0, 0);
    assert_eq!(
        status_of(&mut pair, B, SendOperation::BindWindow(binding)),
        Status::Success
    );
    let region = pair.key(B);
    pair.ends[B]
        .device
        .dealloc_window(third)
        .expect("it is there");
    assert_eq!(pair.ends[B].device.deregister_memory(region), Ok(()));
}

#[test]
fn windows_of_type_2_are_invalidated_before_they_move() {
    let mut pair = pair();
    let first = window(&mut pair, WindowKind::Type2);
    let second = first & !0xff | 0x77;
    let binding = bind(&pair, first, second, 1000, 100);
    assert_eq!(
        status_of(&mut pair, B, SendOperation::BindWindow(binding)),
        Status::Success
    );
    assert_eq!(written(&mut pair, second, 1000), Status::Success);
    let invalidate = SendOperation::LocalInvalidate(second);
    assert_eq!(status_of(&mut pair, B, invalidate), Status::Success);
    let third = second & !0xff | 0x78;
    let binding = bind(&pair, second, third, 1500, 100);
    assert_eq!(
        status_of(&mut pair, B, SendOperation::BindWindow(binding)),
        Status::Success
    );
    assert_eq!(written(&mut pair, third, 1599), Status::Success);
    let again = bind(&pair, third, next(third), 1500, 100);
    assert_eq!(
        status_of(&mut pair, B, SendOperation::BindWindow(again)),
        Status::WindowBind,
        "it is still valid"
    );
}

/// The sequence of the captures: bind, write, send with invalidate, and the next write is refused.
#[test]
fn a_peer_invalidates_a_window() {
    let mut pair = pair();
    let first = window(&mut pair, WindowKind::Type2);
    let key = first & !0xff | 0x8d;
    let binding = bind(&pair, first, key, 1000, 100);
    assert_eq!(
        status_of(&mut pair, B, SendOperation::BindWindow(binding)),
        Status::Success
    );
    assert_eq!(written(&mut pair, key, 1000), Status::Success);
    pair.receive(B, 900, 0, 100);
    pair.send(A, 1, SendOperation::SendInvalidate(key), 0, 10);
    pair.run();
    assert_eq!(pair.completions(A)[0].status, Status::Success);
    let received = pair.completions(B);
    assert_eq!(received[0].attachment, Attachment::Invalidated(key));
    assert_eq!(received[0].operation, CompletedOperation::Receive);
    assert!(
        pair.sent
            .iter()
            .any(|sent| sent.header.extension == Extension::Invalidate(key))
    );
    assert_eq!(written(&mut pair, key, 1000), Status::RemoteAccess);
}

#[test]
fn a_window_of_type_2_serves_one_queue_pair() {
    let mut pair = pair();
    let first = window(&mut pair, WindowKind::Type2);
    let key = next(first);
    let binding = bind(&pair, first, key, 1000, 100);
    // Another queue pair of B binds it.
    let end = &mut pair.ends[B];
    let other = end
        .device
        .create_qp(&softfabric_transport::QueuePairInit::new(
            softfabric_transport::QueuePairType::ReliableConnection,
            end.domain,
            end.queue,
        ))
        .expect("it can");
    let path = softfabric_testkit::path_to(A);
    let psn = softfabric_units::Psn::new(0);
    let timeout = softfabric_transport::AckTimeout::OFF;
    for step in [
        Modify::initialize(Access::REMOTE_WRITE),
        Modify::ready_to_receive_reliable(path, PairOptions::default().mtu, other, psn),
        Modify::ready_to_send_reliable(psn, timeout),
    ] {
        end.device
            .modify_qp(Time::ZERO, other, &step)
            .expect("in order");
    }
    let request = SendRequest::empty(1, SendOperation::BindWindow(binding));
    end.device
        .post_send(Time::ZERO, other, request)
        .expect("room");
    assert_eq!(pair.completions(B)[0].status, Status::Success);
    assert_eq!(written(&mut pair, key, 1000), Status::RemoteAccess);
}

#[test]
fn bindings_that_fail() {
    type Change = fn(&mut BindWindow, &mut Bytes);
    let cases: [(&str, Change); 5] = [
        ("past the end of the region", |bind, _| {
            bind.length = 1 << 40;
        }),
        ("a region key that opens nothing", |bind, _| {
            bind.region ^= 1;
        }),
        ("a new key of another window", |bind, _| {
            bind.new_key += 0x100;
        }),
        ("no window", |bind, _| bind.window ^= 1),
        ("a region that allows no windows", |bind, pair| {
            let end = &mut pair.ends[B];
            let region = RegionInit::new(0, 10_000, Access::LOCAL_WRITE);
            bind.region = end
                .device
                .register_memory(end.domain, &region)
                .expect("it fits");
        }),
    ];
    for (what, change) in cases {
        let mut pair = pair();
        let first = window(&mut pair, WindowKind::Type1);
        let mut binding = bind(&pair, first, next(first), 1000, 100);
        change(&mut binding, &mut pair);
        let status = status_of(&mut pair, B, SendOperation::BindWindow(binding));
        assert_eq!(status, Status::WindowBind, "{what}");
    }
}

#[test]
fn addresses_may_count_from_zero() {
    let mut pair = pair();
    let end = &mut pair.ends[B];
    let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::ZERO_BASED;
    let region = RegionInit {
        virtual_address: 0x1000,
        ..RegionInit::new(5000, 100, access)
    };
    let key = end
        .device
        .register_memory(end.domain, &region)
        .expect("fits");
    pair.fill(A, 0, &[3]);
    assert_eq!(written(&mut pair, key, 99), Status::Success);
    assert_eq!(pair.bytes(B, 5099, 1), [3]);
    // And from an address of their own.
    let end = &mut pair.ends[B];
    let region = RegionInit {
        virtual_address: 0x7fff_0000,
        ..RegionInit::new(6000, 100, access - Access::ZERO_BASED)
    };
    let key = end
        .device
        .register_memory(end.domain, &region)
        .expect("fits");
    assert_eq!(written(&mut pair, key, 0x7fff_0001), Status::Success);
    assert_eq!(pair.bytes(B, 6001, 1), [3]);
    assert_eq!(written(&mut pair, key, 6001), Status::RemoteAccess);
}

/// A window is unbound only after the read that was posted before it, where the request is fenced.
#[test]
fn a_fenced_binding_waits_for_reads() {
    for fenced in [false, true] {
        let mut pair = pair();
        let end = &mut pair.ends[A];
        let window = end
            .device
            .alloc_window(end.domain, WindowKind::Type1)
            .expect("there are keys");
        let remote = Remote {
            address: 0,
            key: pair.key(B),
        };
        pair.send(A, 1, SendOperation::Read(remote), 0, 4000);
        let mut binding = bind(&pair, window, next(window), 1000, 100);
        binding.region = pair.key(A);
        let mut request = SendRequest::empty(2, SendOperation::BindWindow(binding));
        if fenced {
            request = request.with(SendFlags::FENCE);
        }
        pair.post(A, request);
        let soon = Time::from_nanos(500);
        pair.run_until(soon);
        let region = pair.key(A);
        let bound = pair.ends[A].device.deregister_memory(region).is_err();
        assert_eq!(bound, !fenced, "the region is held by a bound window");
    }
}
