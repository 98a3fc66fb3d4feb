//! One mechanism a test, against what its RFC says.

use softfabric_wire::tcp::TcpFlags;

use super::*;
use crate::tcp::{CongestionAlgorithm, DctcpParameters};

const SEGMENT: u64 = 1000;

fn reno() -> TcpConfig {
    TcpConfig {
        congestion: CongestionAlgorithm::Reno,
        maximum_segment: Bytes::new(SEGMENT),
        timestamps: false,
        ..TcpConfig::default()
    }
}

fn logged(
    config: TcpConfig,
    bytes: u64,
    dropper: impl FnMut(usize, u64, &Transmit) -> bool + 'static,
) -> World {
    let mut world = World::new(Path::clean(Rate::gbps(10), Span::micros(50)));
    world.logs = true;
    world.dropper = Box::new(dropper);
    world.add(config, bytes, Time::ZERO);
    world.run(Time::ZERO + Span::seconds(100));
    assert!(world.flows[0].finished.is_some());
    assert_eq!(world.flows[0].read, bytes);
    world
}

/// RFC 9293, 3.5 and RFC 7323, 2.2: SYN, SYN-ACK, ACK; options in the first two; windows unscaled there.
#[test]
fn three_segments_set_a_connection_up() {
    let world = logged(
        TcpConfig {
            ecn: true,
            ..TcpConfig::default()
        },
        100,
        |_, _, _| false,
    );
    let (first, second, third) = (
        world.log[0].2.header,
        world.log[1].2.header,
        world.log[2].2.header,
    );
    assert_eq!(first.flags, TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR);
    assert_eq!(second.flags, TcpFlags::SYN | TcpFlags::ACK | TcpFlags::ECE);
    assert_eq!(second.acknowledgement, first.sequence.wrapping_add(1));
    assert_eq!(third.acknowledgement, second.sequence.wrapping_add(1));
    assert_eq!(third.sequence, first.sequence.wrapping_add(1));
    for header in [first, second] {
        assert_eq!(header.options.maximum_segment, Some(1460));
        assert!(header.options.sack_permitted && header.options.timestamps.is_some());
        // 6 MiB >> 7 = 49,152 is the first that 16 bits hold.
        assert_eq!(header.options.window_scale, Some(7));
        assert_eq!(header.window, 65_535);
    }
    assert_eq!(u64::from(third.window) << 7, 6 << 20);
    // The data is there after one round trip and a half, acknowledged after two.
    let round_trip = Span::micros(100);
    let finished = world.flows[0].finished.unwrap();
    assert!(
        finished.since(Time::ZERO) > round_trip * 2
            && finished.since(Time::ZERO) < round_trip * 2 + Span::micros(2)
    );
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second() {
    let mut world = World::new(Path::clean(Rate::gbps(10), Span::micros(50)));
    world.add(reno(), 100, Time::ZERO);
    world.path.room = 0;
    world.run(Time::ZERO + Span::millis(1500));
    assert_eq!(world.dropped, 2, "at 0 s and 1 s");
    world.path.room = 10;
    world.run(Time::ZERO + Span::seconds(10));
    let finished = world.flows[0].finished.unwrap();
    assert!(
        (finished.as_seconds_f64() - 3.0).abs() < 0.001,
        "1 s and 2 s: {finished}"
    );
}

/// RFC 5681, 3.2 and RFC 6675: the loss of one segment is repaired a round trip later, without a timeout.
#[test]
fn one_loss_is_repaired_at_once() {
    for sack in [true, false] {
        let world = logged(
            TcpConfig { sack, ..reno() },
            200 * SEGMENT,
            |_, number, _| number == 40,
        );
        let statistics = world.flows[0].ends[0].statistics();
        assert_eq!(
            (
                statistics.retransmitted,
                statistics.timeouts,
                statistics.fast_recoveries
            ),
            (1, 0, 1),
            "SACK {sack}"
        );
        let finished = world.flows[0].finished.unwrap();
        assert!(finished < Time::from_nanos(2_500_000), "{finished}");
    }
}

/// RFC 3042: the first two duplicates each let a new segment out, so that the loss of one of three segments is found
/// without waiting for the timer.
#[test]
fn limited_transmit_finds_losses_in_small_windows() {
    // An initial window of three; the second segment is lost. One duplicate comes of the third; two new segments that it
    // and the first acknowledgement let out make two more.
    let config = TcpConfig {
        initial_window: 3,
        delayed_acknowledgement: None,
        ..reno()
    };
    let world = logged(config, 30 * SEGMENT, |_, number, _| number == 2);
    let statistics = world.flows[0].ends[0].statistics();
    assert_eq!((statistics.timeouts, statistics.retransmitted), (0, 1));
}

/// RFC 6675 against RFC 6582: five losses in one window are repaired in one round trip with SACK, one a round trip without.
#[test]
fn sack_repairs_many_losses_in_a_round_trip() {
    let repairs = |sack| {
        let lost = |_: usize, number: u64, _: &Transmit| {
            (50..60).contains(&number) && number.is_multiple_of(2)
        };
        let world = logged(TcpConfig { sack, ..reno() }, 150 * SEGMENT, lost);
        let statistics = *world.flows[0].ends[0].statistics();
        assert_eq!(
            (statistics.timeouts, statistics.retransmitted),
            (0, 5),
            "SACK {sack}"
        );
        // From the first segment that is sent again to the last.
        let mut highest = 0;
        let base = world.log[0].2.header.sequence;
        let again: Vec<Time> = world
            .log
            .iter()
            .filter(|(_, forward, segment)| {
                let position = segment.header.sequence.wrapping_sub(base);
                let again = *forward && segment.payload > 0 && position < highest;
                highest = if *forward {
                    highest.max(position + 1)
                } else {
                    highest
                };
                again
            })
            .map(|(time, ..)| *time)
            .collect();
        assert_eq!(again.len(), 5);
        again[4].since(again[0])
    };
    let (with, without) = (repairs(true), repairs(false));
    assert!(with < Span::micros(100), "{with}: within a round trip");
    assert!(
        without > Span::micros(400) && without < Span::micros(440),
        "{without}: four round trips"
    );
}

/// RFC 8985, 6.2: a segment that is lost, sent again and lost again is found by what left after it; NewReno has the timer
/// only.
#[test]
fn a_repair_that_is_lost_is_found() {
    for sack in [true, false] {
        let mut copies = 0;
        let mut first = None;
        let world = logged(
            TcpConfig { sack, ..reno() },
            400 * SEGMENT,
            move |_, number, segment| {
                if number == 40 {
                    first = Some(segment.header.sequence);
                }
                copies += u32::from(first == Some(segment.header.sequence));
                copies > 0 && copies <= 2 && first == Some(segment.header.sequence)
            },
        );
        let statistics = world.flows[0].ends[0].statistics();
        assert_eq!(
            statistics.timeouts,
            u64::from(!sack),
            "SACK {sack}: {statistics:?}"
        );
        assert!(statistics.retransmitted >= 2);
    }
}

/// RFC 6298, 5: nobody tells of the loss of the last segment but the timer, after the least timeout of 200 ms.
#[test]
fn a_lost_tail_waits_for_the_timer() {
    let world = logged(reno(), 20 * SEGMENT, |_, number, _| number == 20);
    let statistics = world.flows[0].ends[0].statistics();
    assert_eq!((statistics.timeouts, statistics.retransmitted), (1, 1));
    let finished = world.flows[0].finished.unwrap().as_seconds_f64();
    assert!((0.2..0.201).contains(&finished), "{finished}");
}

/// RFC 6298, 5.5: each further timeout takes twice as long; a connection gives up in the end.
#[test]
fn timeouts_back_off_and_end() {
    let mut world = World::new(Path::clean(Rate::gbps(10), Span::micros(50)));
    world.logs = true;
    world.dropper = Box::new(|_, _, _| true);
    world.add(
        TcpConfig {
            retries: 4,
            ..reno()
        },
        500,
        Time::ZERO,
    );
    world.run(Time::ZERO + Span::seconds(100));
    let times: Vec<f64> = world
        .log
        .iter()
        .filter(|(_, forward, segment)| *forward && segment.payload > 0)
        .map(|(time, ..)| time.as_seconds_f64())
        .collect();
    assert_eq!(times.len(), 5);
    for (place, pair) in times.windows(2).enumerate() {
        let expected = 0.2 * f64::from(1 << place);
        assert!((pair[1] - pair[0] - expected).abs() < 1e-3, "{times:?}");
    }
    assert!(is_failed(&world.flows[0].ends[0]));
}

/// RFC 1122, 4.2.3.2: every second segment is acknowledged, and a single one after the delay.
#[test]
fn acknowledgements_are_of_two_segments_or_late() {
    let acknowledgements = |world: &World| world.flows[0].ends[1].statistics().acknowledgements;
    // The first acknowledgement comes at once: the SYN could not say how large the window is, and this one does.
    let world = logged(reno(), 100 * SEGMENT, |_, _, _| false);
    assert_eq!(acknowledgements(&world), 51);
    let each = logged(
        TcpConfig {
            delayed_acknowledgement: None,
            ..reno()
        },
        100 * SEGMENT,
        |_, _, _| false,
    );
    assert_eq!(acknowledgements(&each), 100);
    // The last of an odd number is pushed, and acknowledged when it is read.
    let odd = logged(reno(), 101 * SEGMENT, |_, _, _| false);
    assert_eq!(acknowledgements(&odd), 51);
    assert!(odd.flows[0].finished.unwrap() < Time::from_nanos(2_000_000));
    // Nobody reads: the delay says when.
    let mut world = World::new(Path::clean(Rate::gbps(10), Span::micros(50)));
    world.reads = false;
    world.add(reno(), SEGMENT, Time::ZERO);
    world.run(Time::ZERO + Span::seconds(1));
    let finished = world.flows[0].finished.unwrap().as_seconds_f64();
    assert!((0.040..0.041).contains(&finished), "{finished}");
}

/// RFC 9293, 3.8.6.1: a window that shuts is probed; the update that opens it may be lost.
#[test]
fn a_shut_window_is_probed() {
    for lost in [0.0, 1.0] {
        let mut world = World::new(Path::clean(Rate::gbps(10), Span::micros(50)));
        world.reads = false;
        let config = TcpConfig {
            receive_buffer: Bytes::new(10 * SEGMENT),
            ..reno()
        };
        world.add(config, 30 * SEGMENT, Time::ZERO);
        world.run(Time::ZERO + Span::millis(100));
        assert_eq!(
            world.flows[0].ends[1].readable(),
            10 * SEGMENT,
            "the window is full"
        );
        world.reads = true;
        world.path.acknowledgement_loss = lost;
        world.drain(0);
        world.path.acknowledgement_loss = 0.0;
        world.run(Time::ZERO + Span::seconds(10));
        assert_eq!(world.flows[0].read, 30 * SEGMENT, "update lost: {lost}");
        let finished = world.flows[0].finished.unwrap().as_seconds_f64();
        assert_eq!(finished > 0.2, lost > 0.0, "{finished}");
    }
}

/// RFC 3168, 6.1: an echo on every acknowledgement until CWR, one reduction a window, CWR on the next new segment; what is
/// marked is not lost.
#[test]
fn marks_reduce_once_a_window() {
    let mut world = World::new(Path {
        marks_from: 40,
        ..Path::clean(Rate::gbps(1), Span::micros(500))
    });
    world.logs = true;
    world.add(
        TcpConfig {
            ecn: true,
            ..reno()
        },
        2_000 * SEGMENT,
        Time::ZERO,
    );
    world.run(Time::ZERO + Span::seconds(10));
    let statistics = *world.flows[0].ends[0].statistics();
    assert_eq!((statistics.retransmitted, world.dropped), (0, 0));
    assert!(
        world.marked > 0 && statistics.reductions > 0 && statistics.echoes > statistics.reductions
    );
    let reduced = world
        .log
        .iter()
        .filter(|(_, forward, segment)| *forward && segment.header.flags.has(TcpFlags::CWR));
    assert_eq!(
        reduced.count() as u64,
        statistics.reductions + 1,
        "and the SYN's"
    );
    // Pure acknowledgements and SYNs are not ECN-capable (RFC 3168, 6.1.4), data is.
    assert!(
        world
            .log
            .iter()
            .all(|(_, _, segment)| segment.ecn_capable == (segment.payload > 0))
    );
}

/// RFC 8257, 3.2: when marks begin or end while an acknowledgement is delayed, what came before is acknowledged first,
/// with the echo that it had. So the bytes of echoes are the bytes of marked packets.
#[test]
fn dctcps_receiver_echoes_exactly() {
    let config = TcpConfig {
        congestion: CongestionAlgorithm::Dctcp(DctcpParameters::default()),
        ecn: true,
        ..reno()
    };
    let mut world = World::new(Path {
        marks_from: 12,
        ..Path::clean(Rate::gbps(1), Span::micros(500))
    });
    world.logs = true;
    world.add(config, 20_000 * SEGMENT, Time::ZERO);
    world.run(Time::ZERO + Span::seconds(10));
    let base = world.log[0].2.header.sequence;
    let (mut known, mut echoed, mut changes) = (1_u32, 0_u64, 0);
    let mut last = false;
    for (_, _, segment) in world
        .log
        .iter()
        .filter(|(_, forward, segment)| !forward && !segment.header.flags.has(TcpFlags::SYN))
    {
        let position = segment.header.acknowledgement.wrapping_sub(base);
        let echo = segment.header.flags.has(TcpFlags::ECE);
        echoed += if echo { u64::from(position - known) } else { 0 };
        known = position;
        changes += u64::from(echo != last);
        last = echo;
    }
    let marked = world.flows[0].ends[1].statistics().marked;
    assert!(changes > 20 && marked > 100, "{changes} {marked}");
    assert_eq!(echoed, marked * SEGMENT);
}

/// Several segments in a row may come as one, which reaches over what had arrived ahead.
#[test]
fn what_reaches_over_others_is_taken_whole() {
    for (end, expected) in [
        (2_500, 3_000_u64),
        (3_000, 4_000),
        (3_500, 4_000),
        (4_500, 4_500),
    ] {
        let mut world = World::new(Path::clean(Rate::gbps(10), Span::micros(50)));
        world.logs = true;
        world.add(reno(), SEGMENT, Time::ZERO);
        world.run(Time::ZERO + Span::micros(120));
        let base = world.log[0].2.header.sequence.wrapping_add(1);
        let mut header = world.log[2].2.header;
        let receiver = &mut world.flows[0].ends[1];
        for (from, to) in [(1_000, 2_000), (2_000, 3_000), (3_000, 4_000), (0, end)] {
            if end == 2_500 && from == 3_000 {
                continue;
            }
            header.sequence = base.wrapping_add(from);
            let arrival = Arrival {
                header: &header,
                payload: to - from,
                congestion: false,
            };
            receiver.handle_segment(world.now, &arrival);
        }
        assert_eq!(receiver.received(), expected, "up to {end}");
    }
    // With a hole between what had arrived.
    let mut world = World::new(Path::clean(Rate::gbps(10), Span::micros(50)));
    world.logs = true;
    world.add(reno(), SEGMENT, Time::ZERO);
    world.run(Time::ZERO + Span::micros(120));
    let base = world.log[0].2.header.sequence.wrapping_add(1);
    let mut header = world.log[2].2.header;
    let receiver = &mut world.flows[0].ends[1];
    for (from, to) in [(1_000, 2_000), (3_000, 4_000), (0, 3_500)] {
        header.sequence = base.wrapping_add(from);
        let arrival = Arrival {
            header: &header,
            payload: to - from,
            congestion: false,
        };
        receiver.handle_segment(world.now, &arrival);
    }
    assert_eq!(receiver.received(), 4_000);
}

/// RFC 7323, 5: a duplicate from long ago is known by its timestamp and answered, even within the window.
#[test]
fn old_segments_are_told_by_their_timestamps() {
    let mut world = World::new(Path::clean(Rate::gbps(10), Span::micros(50)));
    world.logs = true;
    let config = TcpConfig {
        timestamps: true,
        ..reno()
    };
    world.add(config, 100 * SEGMENT, Time::ZERO + Span::millis(10));
    world.run(Time::ZERO + Span::seconds(1));
    let old = world
        .log
        .iter()
        .find(|(_, forward, segment)| *forward && segment.payload > 0)
        .unwrap()
        .2;
    let mut header = old.header;
    header.options.timestamps.as_mut().unwrap().value -= 1;
    let receiver = &mut world.flows[0].ends[1];
    // As if the numbers had come round: next in the stream, but old.
    header.sequence = header.sequence.wrapping_add(100 * SEGMENT as u32);
    let received = receiver.received();
    receiver.handle_segment(
        world.now,
        &Arrival {
            header: &header,
            payload: 988,
            congestion: false,
        },
    );
    assert_eq!(receiver.received(), received);
    assert!(
        receiver.poll_transmit(world.now).is_some(),
        "it is answered"
    );
    header.options.timestamps.as_mut().unwrap().value += 1;
    receiver.handle_segment(
        world.now,
        &Arrival {
            header: &header,
            payload: 988,
            congestion: false,
        },
    );
    assert_eq!(receiver.received(), received + 988);
}

/// RFC 9293, 3.8.6.1: a window may stay shut for as long as its owner likes; probes are no timeouts, count as no
/// retransmissions, cost no window, and end no connection.
#[test]
fn probes_are_no_timeouts() {
    let mut world = World::new(Path::clean(Rate::gbps(10), Span::micros(50)));
    world.reads = false;
    let config = TcpConfig {
        receive_buffer: Bytes::new(10 * SEGMENT),
        retries: 2,
        minimum_timeout: Span::millis(10),
        maximum_timeout: Span::millis(100),
        ..reno()
    };
    world.add(config, 30 * SEGMENT, Time::ZERO);
    world.run(Time::ZERO + Span::millis(5));
    let window = world.flows[0].ends[0].congestion_window();
    let sent = world.flows[0].ends[0].statistics().sent;
    world.run(Time::ZERO + Span::seconds(10));
    let sender = &world.flows[0].ends[0];
    let statistics = *sender.statistics();
    assert!(statistics.sent > sent + 50, "it probes: {statistics:?}");
    assert_eq!((statistics.timeouts, statistics.retransmitted), (0, 0));
    assert_eq!(sender.congestion_window(), window);
    assert_eq!(sender.state(), State::Established);
    world.reads = true;
    world.drain(0);
    world.run(Time::ZERO + Span::seconds(20));
    assert_eq!(world.flows[0].read, 30 * SEGMENT);
    // Who does not answer probes is gone.
    world = World::new(Path::clean(Rate::gbps(10), Span::micros(50)));
    world.reads = false;
    world.add(config, 30 * SEGMENT, Time::ZERO);
    world.run(Time::ZERO + Span::millis(5));
    world.path.acknowledgement_loss = 1.0;
    world.run(Time::ZERO + Span::seconds(10));
    assert!(is_failed(&world.flows[0].ends[0]));
}

/// RFC 9293, 3.10.7.4: before a connection stands, a segment must acknowledge the SYN that was sent, whatever it carries.
#[test]
fn data_of_another_connection_sets_none_up() {
    let now = Time::ZERO;
    let mut client = Connection::connect(reno(), 7);
    let mut server = Connection::listen(reno(), 1000);
    let hand = |to: &mut Connection, segment: &Transmit| {
        let arrival = Arrival {
            header: &segment.header,
            payload: segment.payload,
            congestion: false,
        };
        to.handle_segment(now, &arrival);
    };
    client.write(500, true);
    hand(&mut server, &client.poll_transmit(now).unwrap());
    hand(&mut client, &server.poll_transmit(now).unwrap());
    let data = client.poll_transmit(now).unwrap();
    assert_eq!(data.payload, 500);
    let mut foreign = data;
    foreign.header.acknowledgement = foreign.header.acknowledgement.wrapping_add(5);
    hand(&mut server, &foreign);
    assert_eq!((server.state(), server.received()), (State::SynReceived, 0));
    let mut bare = data;
    bare.header.flags = TcpFlags::PSH;
    hand(&mut server, &bare);
    assert_eq!((server.state(), server.received()), (State::SynReceived, 0));
    hand(&mut server, &data);
    assert_eq!(
        (server.state(), server.received()),
        (State::Established, 500)
    );
}

/// RFC 8257, 3.2, where several segments are taken in before anything can leave, as a batch of a poll is: each change of the
/// mark has its acknowledgement.
#[test]
fn echoes_are_exact_within_a_batch() {
    let now = Time::ZERO;
    let config = TcpConfig {
        congestion: CongestionAlgorithm::Dctcp(DctcpParameters::default()),
        ecn: true,
        ..reno()
    };
    let mut client = Connection::connect(config, 0);
    let mut server = Connection::listen(config, 0);
    let hand = |to: &mut Connection, segment: &Transmit, congestion: bool| {
        let arrival = Arrival {
            header: &segment.header,
            payload: segment.payload,
            congestion,
        };
        to.handle_segment(now, &arrival);
    };
    client.write(6 * SEGMENT, true);
    hand(&mut server, &client.poll_transmit(now).unwrap(), false);
    hand(&mut client, &server.poll_transmit(now).unwrap(), false);
    let mut left = 6 * SEGMENT;
    for marked in [false, true, true, false, true, false] {
        let segment = loop {
            let segment = client.poll_transmit(now).expect("a window of ten");
            if segment.payload > 0 {
                break segment;
            }
            hand(&mut server, &segment, false);
        };
        left -= u64::from(segment.payload);
        hand(&mut server, &segment, marked);
    }
    assert_eq!(left, 0);
    let mut found = Vec::new();
    while let Some(segment) = server.poll_transmit(now) {
        found.push((
            u64::from(segment.header.acknowledgement - 1) / SEGMENT,
            segment.header.flags.has(TcpFlags::ECE),
        ));
    }
    let expected = [(1, false), (3, true), (4, false), (5, true), (6, false)];
    assert_eq!(found, expected);
}
