//! Whatever the wire does, every byte arrives once and in order.

use proptest::prelude::*;

use super::*;
use crate::tcp::{CongestionAlgorithm, CubicParameters, DctcpParameters};

fn algorithms() -> impl Strategy<Value = CongestionAlgorithm> {
    prop_oneof![
        Just(CongestionAlgorithm::Reno),
        Just(CongestionAlgorithm::Cubic(CubicParameters::default())),
        Just(CongestionAlgorithm::Dctcp(DctcpParameters::default())),
    ]
}

prop_compose! {
    fn configs()(
        congestion in algorithms(), sack in any::<bool>(), timestamps in any::<bool>(), ecn in any::<bool>(),
        nagle in any::<bool>(), delay in prop_oneof![Just(None), Just(Some(Span::millis(40)))],
        segment in prop_oneof![Just(100_u64), Just(1460), Just(8960)], receive in 1_000_u64..200_000, send in 500_u64..200_000,
    ) -> TcpConfig {
        TcpConfig {
            congestion, sack, timestamps, ecn, nagle,
            maximum_segment: Bytes::new(segment),
            receive_buffer: Bytes::new(receive),
            send_buffer: Bytes::new(send),
            delayed_acknowledgement: delay,
            retries: 100,
            ..TcpConfig::default()
        }
    }
}

/// A probability below `most`, and zero half of the time: paths are clean often enough.
fn often_none(most: f64) -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..most]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_byte_arrives_once_and_in_order(
        sender in configs(), receiver in configs(), bytes in 1_u64..200_000, loss in often_none(0.25),
        duplication in often_none(0.2), reordering in often_none(0.3), acknowledgement_loss in often_none(0.25), seed in any::<u64>(),
        room in 2_usize..60, marks_from in 0_usize..20,
    ) {
        let path = Path {
            loss, duplication, reordering, acknowledgement_loss, seed, room, marks_from,
            held: Span::micros(300),
            ..Path::clean(Rate::gbps(1), Span::micros(50))
        };
        let mut world = World::new(path);
        let flow = world.add(sender, bytes, Time::ZERO);
        let initial = world.random.bits() as u32;
        world.flows[flow].ends[1] = Connection::listen(receiver, initial);
        world.run(Time::ZERO + Span::seconds(200_000));
        let found = &world.flows[flow];
        // A SYN is sent seven times at most; nothing else gives up here.
        if is_failed(&found.ends[0]) || is_failed(&found.ends[1]) {
            prop_assert_eq!(found.read, 0);
            return Ok(());
        }
        prop_assert_eq!(found.read, bytes);
        prop_assert_eq!(found.ends[1].received(), bytes);
        prop_assert!(found.finished.is_some(), "all bytes are acknowledged: {:?}", found.ends[0]);
        let statistics = found.ends[0].statistics();
        let orderly = loss == 0.0 && duplication == 0.0 && reordering == 0.0 && acknowledgement_loss == 0.0;
        if orderly && world.dropped == 0 {
            prop_assert_eq!(statistics.retransmitted, 0);
        }
    }

    /// A header that nobody sent: no panic, and the books stay right.
    #[test]
    fn no_segment_is_too_strange(
        config in configs(), numbers in proptest::collection::vec(any::<(u32, u32, u16, u16)>(), 1..40),
        near in any::<bool>(), blocks in any::<[(u32, u32); 3]>(), payload in 0_u32..70_000,
    ) {
        use softfabric_wire::tcp::{SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps};
        let mut world = World::new(Path::clean(Rate::gbps(1), Span::micros(50)));
        let flow = world.add(config, 1_000_000, Time::ZERO);
        world.run(Time::ZERO + Span::micros(400));
        for (sequence, acknowledgement, flags, window) in numbers {
            let mut sack = SackBlocks::default();
            for (start, end) in blocks {
                sack.push(acknowledgement.wrapping_add(start % 10_000), acknowledgement.wrapping_add(end % 10_000));
            }
            for end in 0..2 {
                let connection = &mut world.flows[flow].ends[end];
                // Numbers of the connection itself, or any.
                let own = connection.poll_transmit(world.now).map(|segment| segment.header);
                let base = own.filter(|_| near).map_or((0, 0), |header| (header.acknowledgement, header.sequence));
                let header = TcpHeader {
                    source_port: 0, destination_port: 0,
                    sequence: base.0.wrapping_add(if near { sequence % 100_000 } else { sequence }),
                    acknowledgement: base.1.wrapping_add(if near { acknowledgement % 100_000 } else { acknowledgement }),
                    flags: TcpFlags::from_bits(flags & 0x1ff), window, checksum: 0, urgent: 0,
                    options: TcpOptions { sack, timestamps: near.then_some(Timestamps { value: u32::MAX / 3, echo: 0 }), ..TcpOptions::default() },
                };
                connection.handle_segment(world.now, &Arrival { header: &header, payload, congestion: near });
                connection.handle_timeout(world.now);
                while connection.poll_transmit(world.now).is_some() {}
                prop_assert!(connection.books_agree());
                prop_assert!(connection.readable() <= connection.received());
            }
        }
    }
}
