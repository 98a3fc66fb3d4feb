//! Marks, notifications, rates and pacing.

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, Fate, Faults, Pair, PairOptions};
use softfabric_transport::rate::{
    DcqcnNicParameters, DcqcnPaperParameters, InjectionDelayParameters, InjectionTable,
    RateControlConfig, TIMER_UNIT,
};
use softfabric_transport::{
    Acknowledgement, ClassChoice, Coalescing, FrameSizing, LengthsOnly, NotificationPoint,
    NotificationScope, PaceRounding, RateChange, Remote, SendOperation, WithinInterval,
};
use softfabric_units::{Bytes, Class, Rate, Span, Time};
use softfabric_wire::rdma::Opcode;

fn marked() -> PairOptions {
    PairOptions {
        faults: Faults {
            mark: 1.0,
            ..Faults::default()
        },
        record: true,
        ..PairOptions::default()
    }
}

fn write(pair: &mut Pair<LengthsOnly>, id: u64, length: u32) {
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    pair.send(A, id, SendOperation::Write(remote), 0, length);
}

#[test]
fn one_notification_per_interval() {
    let mut pair = Pair::<LengthsOnly>::reliable(marked());
    // 200 KB take 17 µs, so 80 of them take 27 intervals.
    for id in 0..80 {
        write(&mut pair, id, 200_000);
    }
    pair.run();
    let sent = pair.counter(B, DeviceCounter::CnpSent);
    let whole = pair.ends[A]
        .completed
        .since(Time::ZERO)
        .div_floor(Span::micros(50));
    assert!(
        whole >= 26 && sent.abs_diff(whole) <= 1,
        "{sent} in {whole}"
    );
    assert_eq!(
        pair.counter(A, DeviceCounter::CnpIgnored),
        sent,
        "no rate control"
    );
    assert!(pair.counter(B, DeviceCounter::EcnMarkedReceived) > 15_000);
    let notification = pair
        .sent
        .iter()
        .find(|sent| sent.header.bth.opcode == Opcode::CNP)
        .expect("there is one");
    assert_eq!(notification.side, B);
    assert!(notification.header.bth.becn);
    assert_eq!(notification.header.bth.destination, pair.ends[A].qp);
    assert_eq!(notification.payload_length, 0);
}

#[test]
fn no_notification_where_there_is_no_point() {
    let mut options = marked();
    options.config.notification = NotificationPoint::Off;
    let mut pair = Pair::<LengthsOnly>::reliable(options);
    write(&mut pair, 1, 200_000);
    pair.run();
    assert_eq!(pair.counter(B, DeviceCounter::CnpSent), 0);
    assert!(
        pair.sent
            .iter()
            .all(|sent| sent.header.bth.opcode != Opcode::CNP)
    );
}

#[test]
fn an_interval_may_count_for_a_sender() {
    let mut options = marked();
    options.config.notification = NotificationPoint::Cnp {
        interval: Span::micros(50),
        scope: NotificationScope::Destination,
        within: WithinInterval::Forgotten,
    };
    let mut pair = Pair::<LengthsOnly>::reliable(options);
    write(&mut pair, 1, 200_000);
    pair.run();
    assert_eq!(pair.counter(B, DeviceCounter::CnpSent), 1);
}

#[test]
fn the_acknowledgement_of_a_marked_packet_may_carry_the_notification() {
    let mut options = marked();
    options.config.notification = NotificationPoint::OnAcknowledge;
    options.config.acknowledgement = Acknowledgement {
        coalescing: Coalescing::EveryPacket,
        ..Acknowledgement::default()
    };
    options.config.rate_control =
        RateControlConfig::DcqcnNic(DcqcnNicParameters::hpcc(Rate::gbps(100)));
    let mut pair = Pair::<LengthsOnly>::reliable(options);
    let mut data = 0;
    pair.wire.set_rule(move |side, _, _| {
        data += u64::from(side == A);
        Some(Fate {
            marked: side == A && data % 3 == 0,
            ..Fate::default()
        })
    });
    write(&mut pair, 1, 30 * 1024);
    pair.run();
    assert_eq!(pair.counter(B, DeviceCounter::CnpSent), 0);
    assert_eq!(pair.counter(A, DeviceCounter::CnpHandled), 10);
    let becn: Vec<bool> = pair
        .sent
        .iter()
        .filter(|sent| sent.side == B)
        .map(|sent| sent.header.bth.becn)
        .collect();
    let expected: Vec<bool> = (1..=30).map(|packet| packet % 3 == 0).collect();
    assert_eq!(becn, expected);
}

/// On InfiniBand acknowledgements carry BECN; what has none is answered by a notification packet at once.
#[test]
fn becn_rides_on_acknowledgements_and_goes_alone_where_there_is_none() {
    let options = || {
        let mut options = marked();
        options.config.notification = NotificationPoint::Becn;
        options.config.rate_control = RateControlConfig::InjectionDelay(InjectionDelayParameters {
            timer: TIMER_UNIT * 1000,
            increase: 1,
            trigger: 2,
            minimum: 0,
            table: InjectionTable::linear(2, 1, 127).expect("a table"),
        });
        options
    };
    let count = |pair: &Pair<LengthsOnly>, side, counter| pair.counter(side, counter);

    let mut writes = Pair::<LengthsOnly>::reliable(options());
    write(&mut writes, 1, 64 * 1024);
    writes.run();
    assert_eq!(count(&writes, B, DeviceCounter::CnpSent), 0);
    let acknowledgements = writes.sent.iter().filter(|sent| sent.side == B);
    let becn = acknowledgements.filter(|sent| sent.header.bth.becn).count() as u64;
    assert!(becn >= 4, "64 packets, an acknowledgement for at most 16");
    assert_eq!(count(&writes, A, DeviceCounter::CnpHandled), becn);
    assert_eq!(count(&writes, A, DeviceCounter::CongestionEvents), 1);
    let (sender, now) = (writes.ends[A].qp, writes.ends[A].completed);
    let index = writes.ends[A].device.rate_control(sender);
    let index = index.and_then(|control| control.injection_index(now));
    assert_eq!(index.map(u64::from), Some(becn));

    let mut reads = Pair::<LengthsOnly>::reliable(options());
    let remote = Remote {
        address: 0,
        key: reads.key(B),
    };
    reads.send(A, 1, SendOperation::Read(remote), 0, 64 * 1024);
    reads.run();
    assert_eq!(count(&reads, A, DeviceCounter::CnpSent), 64, "one a packet");
    assert_eq!(count(&reads, B, DeviceCounter::CnpHandled), 64);

    let mut unreliable = Pair::<LengthsOnly>::unreliable(options());
    write(&mut unreliable, 1, 10 * 1024);
    unreliable.run();
    assert_eq!(count(&unreliable, B, DeviceCounter::CnpSent), 10);
    assert_eq!(count(&unreliable, A, DeviceCounter::CnpHandled), 10);
}

/// The times at which A sends its packets, when it is polled in every nanosecond.
fn times(options: PairOptions, packets: usize) -> Vec<Time> {
    let mut pair = Pair::<LengthsOnly>::reliable(options);
    write(&mut pair, 1, packets as u32 * 1000);
    let end = &mut pair.ends[A];
    let mut times = Vec::new();
    for nanos in 0.. {
        let now = Time::from_nanos(nanos);
        while end
            .device
            .poll_transmit(now, softfabric_units::ClassMask::ALL)
            .is_some()
        {
            times.push(now);
        }
        if times.len() == packets {
            return times;
        }
        if let Some(timeout) = end.device.poll_timeout() {
            assert!(timeout >= now || timeout > times[times.len() - 1]);
        }
    }
    times
}

#[test]
fn a_fixed_rate_spaces_packets() {
    let mut options = PairOptions {
        mtu: softfabric_transport::Mtu::custom(1000).expect("not zero"),
        ..PairOptions::default()
    };
    options.config.rate_control = RateControlConfig::Fixed {
        rate: Rate::gbps(10),
    };
    options.config.pacing.sizing = FrameSizing::Fixed {
        data: Bytes::new(48),
        control: Bytes::new(60),
    };
    // 1048 bytes at 10 Gb/s: 838.4 ns.
    let sent: Vec<u64> = times(options, 6)
        .iter()
        .map(|time| time.as_nanos())
        .collect();
    assert_eq!(sent, [0, 839, 1678, 2517, 3356, 4195]);
    options.config.pacing.rounding = PaceRounding::WholeNanoseconds;
    let sent: Vec<u64> = times(options, 4)
        .iter()
        .map(|time| time.as_nanos())
        .collect();
    assert_eq!(sent, [0, 838, 1676, 2514]);
}

#[test]
fn a_new_rate_may_move_the_packet_that_waits() {
    for (change, moved) in [
        (RateChange::FromNextPacket, false),
        (RateChange::MovesWaiting, true),
    ] {
        let mut options = PairOptions::default();
        options.config.pacing.rate_change = change;
        options.config.rate_control =
            RateControlConfig::DcqcnPaper(DcqcnPaperParameters::sigcomm15());
        let mut pair = Pair::<LengthsOnly>::reliable(options);
        write(&mut pair, 1, 10_000);
        let end = &mut pair.ends[A];
        let all = softfabric_units::ClassMask::ALL;
        assert!(end.device.poll_transmit(Time::ZERO, all).is_some());
        // A notification while the next packet could leave at line rate.
        let notification = softfabric_wire::rdma::TransportHeader {
            bth: softfabric_wire::rdma::Bth {
                opcode: Opcode::CNP,
                solicited: false,
                migrated: true,
                pad: 0,
                partition: softfabric_units::PartitionKey::DEFAULT,
                fecn: false,
                becn: true,
                destination: end.qp,
                acknowledge: false,
                psn: softfabric_units::Psn::new(0),
            },
            extension: softfabric_wire::rdma::Extension::Notification,
            xrc_srq: 0,
        };
        pair.forge(A, &notification, (), 0);
        let end = &mut pair.ends[A];
        let rate = end.device.rate(end.qp, Time::ZERO).expect("there");
        assert_eq!(rate, Rate::gbps(50), "alpha is one at first");
        // 12 + 16 + 1024 + 50 bytes take 88.16 ns at line rate, and twice as long now.
        let sent = |end: &mut softfabric_testkit::End<LengthsOnly>, picos| {
            end.device
                .poll_transmit(Time::from_picos(picos), all)
                .is_some()
        };
        assert_eq!(sent(end, 176_319), !moved);
        assert_eq!(
            sent(end, 176_320),
            moved,
            "its own rate holds the second packet"
        );
        assert_eq!(pair.counter(A, DeviceCounter::CnpHandled), 1);
    }
}

#[test]
fn dcqcn_slows_a_marked_flow_and_leaves_an_unmarked_alone() {
    let throughput = |mark| {
        let mut options = PairOptions {
            faults: Faults {
                mark,
                ..Faults::default()
            },
            ..PairOptions::default()
        };
        options.config.rate_control =
            RateControlConfig::DcqcnNic(DcqcnNicParameters::hpcc(Rate::gbps(100)));
        let mut pair = Pair::<LengthsOnly>::reliable(options);
        for id in 0..20 {
            write(&mut pair, id, 1 << 20);
        }
        pair.run();
        assert_eq!(pair.completions(A).len(), 20);
        Rate::average(Bytes::mib(20), pair.ends[A].completed.since(Time::ZERO))
    };
    let free = throughput(0.0);
    let marked = throughput(0.01);
    assert!(free > Rate::gbps(90), "{free}");
    assert!(marked < Rate::gbps(80), "{marked}");
}

#[test]
fn acknowledgements_and_notifications_have_classes_of_their_own() {
    let mut options = marked();
    options.config.acknowledgement.class = ClassChoice::Explicit(Class::new(5));
    let mut pair = Pair::<LengthsOnly>::reliable_with(
        options,
        |_, _| {},
        |_, modify| {
            if let Some(path) = &mut modify.path {
                path.class = Class::new(3);
            }
        },
    );
    write(&mut pair, 1, 100);
    let only = softfabric_units::ClassMask::of;
    let end = &mut pair.ends[A];
    assert!(
        end.device
            .poll_transmit(Time::ZERO, only(Class::new(0)))
            .is_none()
    );
    let data = end
        .device
        .poll_transmit(Time::ZERO, only(Class::new(3)))
        .expect("the class is open");
    assert_eq!(data.class, Class::new(3));
    assert!(data.ecn_capable);
    pair.ends[B].device.handle_packet(
        Time::ZERO,
        softfabric_transport::Arrival {
            header: &data.header,
            payload: (),
            payload_length: data.payload_length,
            congestion: true,
            source: &softfabric_testkit::path_to(A),
            destination: None,
            grh: None,
        },
    );
    let end = &mut pair.ends[B];
    let open = softfabric_units::ClassMask::ALL;
    let notification = end.device.poll_transmit(Time::ZERO, open).expect("first");
    assert_eq!(notification.class, Class::new(6));
    assert!(!notification.ecn_capable);
    let answer = end.device.poll_transmit(Time::ZERO, open).expect("second");
    assert_eq!(answer.class, Class::new(5));
    assert_eq!(answer.path.class, Class::new(5));
}
