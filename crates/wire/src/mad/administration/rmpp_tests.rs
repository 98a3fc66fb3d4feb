//! Transfers over a wire that loses and reorders; segments by hand; peers that break the rules.

use proptest::prelude::*;
use softfabric_units::{Span, Time};

use super::rmpp::*;
use crate::mad::MAD_LENGTH;

const DATA_AT: usize = 56;
const PATIENCE: RmppPatience = RmppPatience {
    timeout: Span::micros(100),
    retries: 30,
};

fn sender(data: &[u8]) -> RmppSender {
    RmppSender::new([0xaa; MAD_LENGTH], DATA_AT, data.to_vec(), PATIENCE)
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (index * 7 + index / 256) as u8)
        .collect()
}

#[test]
fn lengths_count_the_class_header() {
    let mut sender = sender(&bytes(401));
    let now = Time::ZERO;
    let first = sender.poll_transmit(now).unwrap();
    // version, DATA, no time + first + active, status; segment 1; 3 × 20 + 401 bytes
    assert_eq!(first[24..36], [1, 1, 0xfb, 0, 0, 0, 0, 1, 0, 0, 0x01, 0xcd]);
    assert_eq!(first[..24], [0xaa; 24]);
    assert_eq!(sender.poll_transmit(now), None, "the window is one segment");
    let mut receiver = RmppReceiver::new(DATA_AT, 1000);
    let answer = receiver
        .handle(&first, |bytes| bytes[3] = 0x55)
        .reply
        .unwrap();
    assert_eq!(answer[24..36], [1, 2, 0xf9, 0, 0, 0, 0, 1, 0, 0, 0, 33]);
    assert_eq!(answer[3], 0x55);
    sender.handle(now, &RmppHeader::decode(&answer[..]).unwrap());
    let middle = sender.poll_transmit(now).unwrap();
    assert_eq!(middle[24..36], [1, 1, 0xf9, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
    let last = sender.poll_transmit(now).unwrap();
    assert_eq!(last[24..36], [1, 1, 0xfd, 0, 0, 0, 0, 3, 0, 0, 0, 21]);
    assert_eq!(receiver.handle(&middle, |_| ()), RmppReceived::default());
    let end = receiver.handle(&last, |_| ());
    assert_eq!(end.message.unwrap().data, bytes(401));
    sender.handle(now, &RmppHeader::decode(&end.reply.unwrap()[..]).unwrap());
    assert_eq!(sender.outcome(), Some(Ok(())));
    assert_eq!(sender.poll_timeout(), None);
}

#[test]
fn a_short_message_is_one_segment() {
    for length in [0, 1, 200] {
        let segment = sender(&bytes(length)).poll_transmit(Time::ZERO).unwrap();
        assert_eq!(segment[26], 0xff, "first and last");
        let received = RmppReceiver::new(DATA_AT, 200).handle(&segment, |_| ());
        assert_eq!(received.message.unwrap().data, bytes(length));
    }
}

#[test]
fn a_receiver_that_is_silent_ends_the_transfer() {
    let mut sender = sender(&bytes(300));
    let mut sent = 0;
    let mut now = Time::ZERO;
    while sender.outcome().is_none() {
        while sender.poll_transmit(now).is_some() {
            sent += 1;
        }
        now = sender.poll_timeout().unwrap();
        sender.handle_timeout(now);
    }
    assert_eq!(sent, 31);
    assert_eq!(sender.outcome(), Some(Err(RmppStatus::TOO_MANY_RETRIES)));
    let abort = sender.poll_transmit(now).unwrap();
    assert_eq!(abort[25..28], [4, 0xf9, 126]);
    assert_eq!(sender.poll_transmit(now), None);
}

#[test]
fn peers_that_break_the_rules_are_aborted() {
    let acknowledgement = |segment, length| RmppHeader {
        kind: RmppKind::ACK,
        active: true,
        segment,
        length,
        ..RmppHeader::NONE
    };
    for (header, status) in [
        (acknowledgement(2, 9), RmppStatus::SEGMENT_TOO_BIG),
        (acknowledgement(1, 0), RmppStatus::WINDOW_TOO_SMALL),
        (
            RmppHeader {
                kind: RmppKind(9),
                ..acknowledgement(0, 0)
            },
            RmppStatus::BAD_KIND,
        ),
    ] {
        let mut sender = sender(&bytes(1000));
        sender.poll_transmit(Time::ZERO);
        sender.handle(Time::ZERO, &header);
        assert_eq!(sender.outcome(), Some(Err(status)));
    }
    let segment = sender(&bytes(1000)).poll_transmit(Time::ZERO).unwrap();
    let failure = |change: &dyn Fn(&mut [u8; MAD_LENGTH]), limit| {
        let mut bad = segment;
        change(&mut bad);
        RmppReceiver::new(DATA_AT, limit)
            .handle(&bad, |_| ())
            .failure
    };
    assert_eq!(failure(&|_| (), 1000), None);
    assert_eq!(failure(&|_| (), 199), Some(RmppStatus::RESOURCES_EXHAUSTED));
    assert_eq!(
        failure(&|bytes| bytes[24] = 2, 1000),
        Some(RmppStatus::UNSUPPORTED_VERSION)
    );
    assert_eq!(
        failure(&|bytes| bytes[26] = 0xf9, 1000),
        Some(RmppStatus::INCONSISTENT_FIRST)
    );
    // Last, with a length of more than a datagram.
    assert_eq!(
        failure(&|bytes| bytes[26] = 0xff, 1000),
        Some(RmppStatus::INCONSISTENT_LAST_LENGTH)
    );
}

proptest! {
    #[test]
    fn any_message_arrives_over_a_bad_wire(length in 0_usize..30_000, losses in any::<u64>(), rate in 0_u64..40) {
        let data = bytes(length);
        let mut sender = sender(&data);
        let mut receiver = RmppReceiver::new(DATA_AT, length);
        let mut random = losses;
        let mut lost = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % 100 < rate
        };
        let mut now = Time::ZERO;
        let mut message = None;
        while sender.outcome().is_none() {
            let mut flight = Vec::new();
            while let Some(segment) = sender.poll_transmit(now) {
                flight.push(segment);
            }
            if lost() {
                flight.reverse();
            }
            for segment in flight {
                if lost() {
                    continue;
                }
                let received = receiver.handle(&segment, |_| ());
                prop_assert_eq!(received.failure, None);
                if let Some(whole) = received.message {
                    prop_assert!(message.is_none(), "delivered twice");
                    message = Some(whole.data);
                }
                if let Some(reply) = received.reply.filter(|_| !lost()) {
                    sender.handle(now, &RmppHeader::decode(&reply[..]).unwrap());
                }
            }
            if let Some(deadline) = sender.poll_timeout() {
                now = deadline;
                sender.handle_timeout(now);
            }
        }
        prop_assert_eq!(sender.outcome(), Some(Ok(())));
        prop_assert_eq!(message, Some(data));
    }

    #[test]
    fn any_segment_leaves_a_receiver_standing(segments in proptest::collection::vec(any::<[u8; 12]>(), 1..40)) {
        let mut receiver = RmppReceiver::new(DATA_AT, 2_000);
        let mut sender = sender(&bytes(5_000));
        for (index, header) in segments.iter().enumerate() {
            let mut mad = [0; MAD_LENGTH];
            mad[24..36].copy_from_slice(header);
            if index % 2 == 0 {
                mad[24..32].copy_from_slice(&[1, 1, header[2], 0, 0, 0, 0, index as u8 / 2 + 1]);
            }
            receiver.handle(&mad, |_| ());
            sender.poll_transmit(Time::ZERO);
            sender.handle(Time::ZERO, &RmppHeader::decode(&mad).unwrap());
        }
    }
}

#[test]
fn an_acknowledgement_that_is_late_counts() {
    let mut sender = sender(&bytes(401));
    let first = sender.poll_transmit(Time::ZERO).unwrap();
    let mut receiver = RmppReceiver::new(DATA_AT, 1000);
    let reply = receiver.handle(&first, |_| ()).reply.unwrap();
    let acknowledgement = RmppHeader::decode(&reply[..]).unwrap();
    let late = Time::ZERO + PATIENCE.timeout;
    sender.handle_timeout(late);
    sender.handle(late, &acknowledgement);
    assert_eq!(sender.outcome(), None);
    let next = sender.poll_transmit(late).unwrap();
    assert_eq!(
        RmppHeader::decode(&next[..]).unwrap().segment,
        2,
        "not the first again"
    );
}

#[test]
fn a_transfer_that_the_other_side_ends_wants_no_timer() {
    let mut sender = sender(&bytes(401));
    sender.poll_transmit(Time::ZERO).unwrap();
    let stop = RmppHeader {
        kind: RmppKind::STOP,
        active: true,
        status: RmppStatus::TOO_MANY_RETRIES,
        ..RmppHeader::NONE
    };
    sender.handle(Time::ZERO, &stop);
    assert_eq!(sender.outcome(), Some(Err(RmppStatus::TOO_MANY_RETRIES)));
    assert_eq!(sender.poll_timeout(), None);
}
