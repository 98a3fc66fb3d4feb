//! What each message does, one case at a time.

use super::*;

#[test]
fn a_connection_is_made_and_ended() {
    let mut pair = Pair::new();
    let [active, passive] = pair.connected();
    assert_eq!(
        (active.0 >> 24, passive.0 >> 24),
        (1, 2),
        "names say the slot"
    );
    pair.nothing(ACTIVE);
    assert_eq!(
        pair.sides[PASSIVE].poll_timeout(),
        None,
        "nothing to repeat"
    );
    pair.disconnect(ACTIVE, active);
    pair.message(ACTIVE, "DREQ");
    assert_eq!(pair.event(PASSIVE), disconnected(passive, true));
    pair.message(PASSIVE, "DREP");
    assert_eq!(pair.event(ACTIVE), disconnected(active, true));
    // The passive program answers by disconnecting too, which says nothing new.
    pair.disconnect(PASSIVE, passive);
    pair.nothing(PASSIVE);
    let waited = pair.wait(ACTIVE);
    assert_eq!(waited, TimeoutCode::from_code(17).span());
    assert_eq!(
        pair.event(ACTIVE),
        Event::TimeWaitOver { connection: active }
    );
    pair.destroy(PASSIVE, passive);
    pair.wait_for_silence();
    pair.nothing(PASSIVE);
    assert_eq!(
        pair.sides[ACTIVE].ready(active, PrivateData::default()),
        Err(CallError::Unknown(active))
    );
}

#[test]
fn nobody_listens() {
    let mut pair = Pair::new();
    pair.sides[PASSIVE] = Manager::new(2);
    let active = pair.connect();
    pair.message(ACTIVE, "REQ");
    pair.message(PASSIVE, "REJ");
    let event = pair.event(ACTIVE);
    assert_eq!(reason(&event), RejectReason::INVALID_SERVICE_ID);
    assert!(matches!(event, Event::Rejected { connection, .. } if connection == active));
    assert_eq!(pair.wait_for_silence(), Span::ZERO);
}

#[test]
fn listeners_of_other_addresses_and_none_at_all() {
    let mut pair = Pair::new();
    pair.sides[PASSIVE] = Manager::new(2);
    let other = pair.sides[PASSIVE].listen(service(), ListenAddress::One(gid(9)));
    let own = pair.sides[PASSIVE].listen(service(), ListenAddress::One(gid(2)));
    assert_eq!(
        pair.sides[PASSIVE].listen(service(), ListenAddress::One(gid(2))),
        Err(CallError::ServiceTaken(service()))
    );
    pair.connect();
    pair.message(ACTIVE, "REQ");
    let Event::ConnectRequest { listener, .. } = pair.event(PASSIVE) else {
        panic!("no request");
    };
    assert_eq!(Ok(listener), own);
    pair.sides[PASSIVE].stop_listening(listener);
    pair.sides[PASSIVE].stop_listening(other.unwrap());
    let second = pair.sides[ACTIVE].connect(pair.now, way(1, 2), request(0x12));
    pair.message(ACTIVE, "REQ");
    pair.message(PASSIVE, "REJ");
    assert!(
        matches!(pair.event(ACTIVE), Event::Rejected { connection, .. } if Ok(connection) == second)
    );
}

#[test]
fn early_requests_are_those_for_which_nobody_listens() {
    let mut pair = Pair::new();
    pair.sides[PASSIVE] = Manager::new(2);
    pair.connect();
    let request = pair.sides[ACTIVE].poll_transmit().unwrap();
    let asking = way(1, 2);
    pair.sides[ACTIVE]
        .resolve(pair.now, asking, resolution())
        .unwrap();
    let resolution = pair.sides[ACTIVE].poll_transmit().unwrap();
    let (here, now) = (way(2, 1), pair.now);
    let passive = &mut pair.sides[PASSIVE];
    for mad in [&request.mad, &resolution.mad] {
        assert!(passive.is_early(here, &**mad));
    }
    let listener = passive.listen(service(), ListenAddress::Any).unwrap();
    for mad in [&request.mad, &resolution.mad] {
        assert!(!passive.is_early(here, &**mad), "somebody listens");
        passive.handle_mad(now, here, &**mad).unwrap();
    }
    passive.stop_listening(listener);
    for mad in [&request.mad, &resolution.mad] {
        assert!(!passive.is_early(here, &**mad), "it is known");
    }
    assert!(!passive.is_early(here, &[0; 256]), "no request");
}

#[test]
fn a_slow_program_asks_for_patience() {
    let mut pair = Pair::new();
    let active = pair.connect();
    pair.message(ACTIVE, "REQ");
    let passive = pair.requested();
    let response = TimeoutCode::from_code(20).span() + TimeoutCode::from_code(17).span();
    assert_eq!(
        pair.wait(ACTIVE),
        Span::millis(100),
        "the first repetition is soon"
    );
    pair.message(ACTIVE, "REQ");
    pair.nothing(PASSIVE);
    let begun = pair.now;
    while pair.now.since(begun) < response {
        pair.wait(ACTIVE);
    }
    pair.sent(ACTIVE);
    pair.arrive(PASSIVE);
    // As often as the request has come again.
    assert_eq!(pair.sent(PASSIVE).first(), Some(&"MRA"));
    pair.arrive(ACTIVE);
    assert_eq!(pair.event_count(PASSIVE), 0, "the same request");
    let patience = TimeoutCode::from_code(24).span() + TimeoutCode::from_code(17).span();
    assert_eq!(pair.wait(ACTIVE), patience);
    assert_eq!(pair.lose(ACTIVE), ["REQ"]);
    pair.accept(passive);
    pair.message(PASSIVE, "REP");
    assert!(matches!(pair.event(ACTIVE), Event::ConnectReply { .. }));
    // So does the active one.
    pair.wait(PASSIVE);
    pair.message(PASSIVE, "REP");
    pair.nothing(ACTIVE);
    pair.now += response;
    pair.sides[PASSIVE].handle_timeout(pair.now);
    pair.message(PASSIVE, "REP");
    pair.nothing_but_mra(ACTIVE);
    assert_eq!(pair.event_count(ACTIVE), 0, "the same reply");
    assert_eq!(pair.wait(PASSIVE), patience);
    pair.lose(PASSIVE);
    pair.ready(active);
    pair.message(ACTIVE, "RTU");
    assert!(matches!(pair.event(PASSIVE), Event::Established { .. }));
}

#[test]
fn lost_messages_are_repeated_and_told_once() {
    let mut pair = Pair::new();
    let active = pair.connect();
    assert_eq!(pair.lose(ACTIVE), ["REQ"]);
    pair.wait(ACTIVE);
    pair.message(ACTIVE, "REQ");
    let passive = pair.requested();
    pair.accept(passive);
    assert_eq!(pair.lose(PASSIVE), ["REP"]);
    pair.wait(ACTIVE);
    pair.message(ACTIVE, "REQ");
    pair.message(PASSIVE, "REP");
    assert!(matches!(pair.event(ACTIVE), Event::ConnectReply { .. }));
    pair.ready(active);
    assert_eq!(pair.lose(ACTIVE), ["RTU"]);
    pair.wait(PASSIVE);
    pair.message(PASSIVE, "REP");
    pair.message(ACTIVE, "RTU");
    assert!(matches!(pair.event(PASSIVE), Event::Established { .. }));
    pair.disconnect(PASSIVE, passive);
    assert_eq!(pair.lose(PASSIVE), ["DREQ"]);
    pair.wait(PASSIVE);
    pair.message(PASSIVE, "DREQ");
    assert_eq!(pair.event(ACTIVE), disconnected(active, true));
    assert_eq!(pair.lose(ACTIVE), ["DREP"]);
    pair.wait(PASSIVE);
    pair.message(PASSIVE, "DREQ");
    pair.message(ACTIVE, "DREP");
    assert_eq!(pair.event(PASSIVE), disconnected(passive, true));
    pair.nothing(ACTIVE);
    pair.wait_for_silence();
}

#[test]
fn a_lost_rtu_is_no_lost_connection() {
    for ended in [false, true] {
        let mut pair = Pair::new();
        let active = pair.connect();
        pair.message(ACTIVE, "REQ");
        let passive = pair.requested();
        pair.accept(passive);
        pair.message(PASSIVE, "REP");
        pair.event(ACTIVE);
        pair.ready(active);
        assert_eq!(pair.lose(ACTIVE), ["RTU"]);
        let established = Event::Established {
            connection: passive,
        };
        if ended {
            pair.disconnect(ACTIVE, active);
            pair.message(ACTIVE, "DREQ");
            let passive_side = &mut pair.sides[PASSIVE];
            assert_eq!(passive_side.poll_event(), Some(established));
            assert_eq!(pair.event(PASSIVE), disconnected(passive, true));
        } else {
            // Data have come.
            pair.sides[PASSIVE].established(passive).unwrap();
            assert_eq!(pair.event(PASSIVE), established);
            pair.sides[PASSIVE].established(passive).unwrap();
            pair.nothing(PASSIVE);
            assert_eq!(pair.sides[PASSIVE].poll_timeout(), None);
        }
    }
}

#[test]
fn programs_reject_with_words_of_their_own() {
    let mut pair = Pair::new();
    let active = pair.connect();
    pair.message(ACTIVE, "REQ");
    let passive = pair.requested();
    let words = PrivateData::padded(b"no").unwrap();
    let no = |pair: &mut Pair, side: usize, name| {
        pair.sides[side].reject(pair.now, name, RejectReason::CONSUMER, words)
    };
    no(&mut pair, PASSIVE, passive).unwrap();
    assert_eq!(pair.lose(PASSIVE), ["REJ"]);
    pair.wait(ACTIVE);
    pair.message(ACTIVE, "REQ");
    pair.message(PASSIVE, "REJ");
    match pair.event(ACTIVE) {
        Event::Rejected { connection, reject } => {
            assert_eq!(
                (connection, reject.reason),
                (active, RejectReason::CONSUMER)
            );
            assert_eq!(reject.private_data, words);
        }
        event => panic!("{event:?}"),
    }
    pair.nothing(PASSIVE);
    assert!(no(&mut pair, PASSIVE, passive).is_err(), "rejected already");
    pair.wait_for_silence();

    // The active side may reject the reply.
    let active = pair.connect();
    pair.message(ACTIVE, "REQ");
    let passive = pair.requested();
    pair.accept(passive);
    pair.message(PASSIVE, "REP");
    pair.event(ACTIVE);
    no(&mut pair, ACTIVE, active).unwrap();
    pair.message(ACTIVE, "REJ");
    assert_eq!(reason(&pair.event(PASSIVE)), RejectReason::CONSUMER);
    pair.wait_for_silence();
}

#[test]
fn nobody_answers() {
    let mut pair = Pair::new();
    let active = pair.connect();
    let waited = pair.wait_for_silence();
    let response = TimeoutCode::from_code(20).span() + TimeoutCode::from_code(17).span();
    assert_eq!(waited, response * 16);
    assert_eq!(
        pair.event(ACTIVE),
        Event::Unreachable { connection: active }
    );

    let mut pair = Pair::new();
    let [active, _] = pair.connected();
    pair.sides[PASSIVE] = Manager::new(2);
    pair.disconnect(ACTIVE, active);
    let waited = pair.wait_for_silence();
    let time_wait = TimeoutCode::from_code(17).span();
    assert_eq!(
        waited,
        response + time_wait,
        "nothing depends on the answer"
    );
}

#[test]
fn the_end_without_an_answer_is_told() {
    let mut pair = Pair::new();
    let [active, passive] = pair.connected();
    pair.destroy(PASSIVE, passive);
    pair.disconnect(ACTIVE, active);
    pair.lose(PASSIVE);
    while pair.sides[ACTIVE].poll_timeout().is_some() {
        pair.wait(ACTIVE);
        pair.lose(ACTIVE);
    }
    let events: Vec<_> = std::iter::from_fn(|| pair.sides[ACTIVE].poll_event()).collect();
    let over = Event::TimeWaitOver { connection: active };
    assert_eq!(events, [disconnected(active, false), over]);
}

#[test]
fn a_queue_pair_is_in_one_connection() {
    let mut pair = Pair::new();
    let [_, passive] = pair.connected();
    // The active side dies and comes back with the same queue pair.
    pair.sides[ACTIVE] = Manager::new(77);
    pair.connect();
    pair.message(ACTIVE, "REQ");
    assert_eq!(pair.event(PASSIVE), disconnected(passive, false));
    pair.message(PASSIVE, "REJ");
    assert_eq!(reason(&pair.event(ACTIVE)), RejectReason::STALE_CONNECTION);
    pair.connected();
}

#[test]
fn both_disconnect_at_once() {
    let mut pair = Pair::new();
    let [active, passive] = pair.connected();
    pair.disconnect(ACTIVE, active);
    pair.disconnect(PASSIVE, passive);
    assert_eq!(pair.sent(ACTIVE), ["DREQ"]);
    assert_eq!(pair.sent(PASSIVE), ["DREQ"]);
    pair.arrive(ACTIVE);
    pair.arrive(PASSIVE);
    assert_eq!(pair.event(ACTIVE), disconnected(active, true));
    assert_eq!(pair.event(PASSIVE), disconnected(passive, true));
    pair.message(ACTIVE, "DREP");
    pair.message(PASSIVE, "DREP");
    pair.nothing(ACTIVE);
    pair.nothing(PASSIVE);
    pair.wait_for_silence();
}

#[test]
fn programs_forget_connections_in_every_state() {
    // The request is on its way: the passive side hears that nobody waits.
    let mut pair = Pair::new();
    let active = pair.connect();
    pair.message(ACTIVE, "REQ");
    let passive = pair.requested();
    pair.destroy(ACTIVE, active);
    pair.message(ACTIVE, "REJ");
    let event = pair.event(PASSIVE);
    assert_eq!(reason(&event), RejectReason::TIMEOUT);
    assert!(matches!(event, Event::Rejected { connection, .. } if connection == passive));
    assert_eq!(pair.wait_for_silence(), Span::ZERO);

    // The reply crosses that.
    let active = pair.connect();
    pair.message(ACTIVE, "REQ");
    let passive = pair.requested();
    pair.accept(passive);
    pair.destroy(ACTIVE, active);
    pair.lose(ACTIVE);
    pair.message(PASSIVE, "REP");
    pair.message(ACTIVE, "REJ");
    let reason_of_it = reason(&pair.event(PASSIVE));
    assert_eq!(reason_of_it, RejectReason::INVALID_COMMUNICATION_ID);

    // The request, the reply, or a connection that stands.
    for stage in 0..4 {
        let mut pair = Pair::new();
        let active = pair.connect();
        pair.message(ACTIVE, "REQ");
        let passive = pair.requested();
        if stage == 0 {
            pair.destroy(PASSIVE, passive);
            pair.message(PASSIVE, "REJ");
            assert_eq!(reason(&pair.event(ACTIVE)), RejectReason::CONSUMER);
            pair.wait_for_silence();
            continue;
        }
        pair.accept(passive);
        pair.message(PASSIVE, "REP");
        pair.event(ACTIVE);
        if stage == 1 {
            pair.destroy(ACTIVE, active);
            pair.message(ACTIVE, "REJ");
            assert_eq!(reason(&pair.event(PASSIVE)), RejectReason::CONSUMER);
            pair.wait_for_silence();
            continue;
        }
        pair.ready(active);
        if stage == 2 {
            // The passive side loses interest while the RTU is on its way.
            pair.destroy(PASSIVE, passive);
            assert_eq!(pair.lose(PASSIVE), ["REJ"]);
            pair.message(ACTIVE, "RTU");
            pair.message(PASSIVE, "REJ");
            assert_eq!(pair.event(ACTIVE), disconnected(active, true));
            pair.wait_for_silence();
            continue;
        }
        pair.message(ACTIVE, "RTU");
        pair.event(PASSIVE);
        pair.destroy(PASSIVE, passive);
        assert_eq!(pair.lose(PASSIVE), ["DREQ"]);
        pair.wait(PASSIVE);
        pair.message(PASSIVE, "DREQ");
        assert_eq!(pair.event(ACTIVE), disconnected(active, true));
        pair.message(ACTIVE, "DREP");
        pair.wait_for_silence();
        pair.nothing(PASSIVE);
    }
}

#[test]
fn ignored_requests_come_again() {
    let mut pair = Pair::new();
    pair.connect();
    pair.message(ACTIVE, "REQ");
    let passive = pair.requested();
    pair.sides[PASSIVE].ignore(passive);
    pair.nothing(PASSIVE);
    pair.wait(ACTIVE);
    pair.message(ACTIVE, "REQ");
    assert_ne!(pair.requested(), passive);
}

/// Messages of somebody who is not the other side, or does not know the connection, do nothing.
#[test]
fn forged_messages_do_nothing() {
    let mut pair = Pair::new();
    let [active, passive] = pair.connected();
    pair.disconnect(PASSIVE, passive);
    let mut genuine = pair.sides[PASSIVE].poll_transmit().unwrap();
    let from_elsewhere = way(1, 3);
    let peer = way(1, 2);
    let mut wrong_qpn = genuine.mad.clone();
    wrong_qpn[24 + 10] ^= 1;
    let mut wrong_name = genuine.mad.clone();
    wrong_name[24 + 3] ^= 1;
    let active_side = &mut pair.sides[ACTIVE];
    for (way, mad) in [
        (from_elsewhere, &genuine.mad),
        (peer, &wrong_qpn),
        (peer, &wrong_name),
    ] {
        active_side.handle_mad(pair.now, way, &**mad).unwrap();
        assert_eq!(active_side.poll_event(), None);
        assert_eq!(active_side.poll_transmit(), None);
    }
    active_side
        .handle_mad(pair.now, peer, &*genuine.mad)
        .unwrap();
    assert_eq!(active_side.poll_event(), Some(disconnected(active, true)));
    genuine.mad[1] = 3;
    assert!(
        active_side
            .handle_mad(pair.now, peer, &*genuine.mad)
            .is_err()
    );
}

#[test]
fn unknown_connections_end_at_once() {
    let mut pair = Pair::new();
    let [active, _] = pair.connected();
    pair.sides[PASSIVE] = Manager::new(3);
    pair.disconnect(ACTIVE, active);
    pair.message(ACTIVE, "DREQ");
    pair.message(PASSIVE, "DREP");
    assert_eq!(pair.event(ACTIVE), disconnected(active, true));
}

#[test]
fn datagram_services_are_resolved() {
    let mut pair = Pair::new();
    let asked = pair.sides[ACTIVE].resolve(pair.now, way(1, 2), resolution());
    let asked = asked.unwrap();
    pair.message(ACTIVE, "SIDR_REQ");
    let Event::ResolutionRequest {
        resolution: name, ..
    } = pair.event(PASSIVE)
    else {
        panic!("no request");
    };
    pair.wait(ACTIVE);
    pair.message(ACTIVE, "SIDR_REQ");
    pair.nothing(PASSIVE);
    let now = pair.now;
    pair.sides[PASSIVE]
        .answer(now, name, resolved(0x2d))
        .unwrap();
    assert!(
        pair.sides[PASSIVE]
            .answer(now, name, resolved(0x2d))
            .is_err()
    );
    assert_eq!(pair.lose(PASSIVE), ["SIDR_REP"]);
    pair.wait(ACTIVE);
    pair.message(ACTIVE, "SIDR_REQ");
    pair.message(PASSIVE, "SIDR_REP");
    match pair.event(ACTIVE) {
        Event::ResolutionReply { resolution, reply } => {
            assert_eq!((resolution, reply.qpn), (asked, Qpn::new(0x2d)));
            assert_eq!(reply.service, service());
        }
        event => panic!("{event:?}"),
    }
    pair.wait_for_silence();
}

#[test]
fn datagram_services_that_are_not_there() {
    let mut pair = Pair::new();
    let ask = |pair: &mut Pair| {
        let way = way(1, 2);
        pair.sides[ACTIVE]
            .resolve(pair.now, way, resolution())
            .unwrap()
    };
    let status = |event| match event {
        Event::ResolutionReply { reply, .. } => reply.status,
        event => panic!("{event:?}"),
    };
    // A program that loses interest refuses.
    ask(&mut pair);
    pair.message(ACTIVE, "SIDR_REQ");
    let Event::ResolutionRequest {
        resolution: name, ..
    } = pair.event(PASSIVE)
    else {
        panic!("no request");
    };
    pair.sides[PASSIVE].destroy_resolution(pair.now, name);
    pair.message(PASSIVE, "SIDR_REP");
    assert_eq!(status(pair.event(ACTIVE)), ResolutionStatus::REJECTED);
    pair.wait_for_silence();
    // Nobody listens.
    pair.sides[PASSIVE] = Manager::new(2);
    ask(&mut pair);
    pair.message(ACTIVE, "SIDR_REQ");
    pair.message(PASSIVE, "SIDR_REP");
    assert_eq!(status(pair.event(ACTIVE)), ResolutionStatus::UNSUPPORTED);
    // Nobody is there.
    let name = ask(&mut pair);
    let waited = pair.wait_for_silence();
    assert_eq!(waited, Span::millis(4_096 * 16));
    let event = Event::ResolutionUnreachable { resolution: name };
    assert_eq!(pair.event(ACTIVE), event);
    // The program does not wait.
    let name = ask(&mut pair);
    pair.sides[ACTIVE].destroy_resolution(pair.now, name);
    assert_eq!(pair.wait_for_silence(), Span::ZERO);
}

#[test]
fn one_process_connects_to_itself() {
    let mut manager = Manager::new(1);
    manager.listen(service(), ListenAddress::AnyIpv4).unwrap();
    let now = Time::ZERO;
    let turn = |manager: &mut Manager| {
        let mut names = Vec::new();
        while let Some(transmit) = manager.poll_transmit() {
            names.push(CmMad::decode(&*transmit.mad).unwrap().message.name());
            manager.handle_mad(now, way(1, 1), &*transmit.mad).unwrap();
        }
        names
    };
    let active = manager.connect(now, way(1, 1), request(5)).unwrap();
    assert_eq!(turn(&mut manager), ["REQ"]);
    let Some(Event::ConnectRequest { connection, .. }) = manager.poll_event() else {
        panic!("no request");
    };
    manager.accept(now, connection, reply(6)).unwrap();
    assert_eq!(turn(&mut manager), ["REP"]);
    assert!(matches!(
        manager.poll_event(),
        Some(Event::ConnectReply { .. })
    ));
    manager.ready(active, PrivateData::default()).unwrap();
    assert_eq!(turn(&mut manager), ["RTU"]);
    assert_eq!(
        manager.poll_event(),
        Some(Event::Established { connection })
    );
    manager
        .disconnect(now, active, PrivateData::default())
        .unwrap();
    assert_eq!(turn(&mut manager), ["DREQ", "DREP"]);
    let events: Vec<_> = std::iter::from_fn(|| manager.poll_event()).collect();
    assert_eq!(
        events,
        [disconnected(connection, true), disconnected(active, true)]
    );
}

#[test]
fn a_process_that_exits_says_so() {
    let mut pair = Pair::new();
    let [_, passive] = pair.connected();
    pair.sides[ACTIVE]
        .connect(pair.now, way(1, 2), request(0x12))
        .unwrap();
    pair.sides[ACTIVE]
        .resolve(pair.now, way(1, 2), resolution())
        .unwrap();
    pair.lose(ACTIVE);
    pair.sides[ACTIVE].shut_down(pair.now);
    let mut names = pair.sent(ACTIVE);
    names.sort_unstable();
    assert_eq!(names, ["DREQ", "REJ"]);
    pair.arrive(PASSIVE);
    assert_eq!(pair.event(PASSIVE), disconnected(passive, true));
    pair.nothing(ACTIVE);
    assert!(pair.sides[ACTIVE].listeners.is_empty());
}

#[test]
fn other_paths_are_refused() {
    let mut pair = Pair::new();
    let [active, passive] = pair.connected();
    let mut mad = [0; 256];
    mad[..4].copy_from_slice(&[1, 7, 2, 3]);
    mad[17] = 0x19;
    mad[24..28].copy_from_slice(&active.0.to_be_bytes());
    for (remote, status) in [(passive.0, 2), (7, 1)] {
        mad[28..32].copy_from_slice(&remote.to_be_bytes());
        let passive_side = &mut pair.sides[PASSIVE];
        passive_side.handle_mad(pair.now, way(2, 1), &mad).unwrap();
        let response = passive_side.poll_transmit().unwrap();
        assert_eq!((response.mad[17], response.mad[24 + 9]), (0x1a, status));
    }
}

impl Pair {
    /// A side asks the other, which hears it, for patience.
    fn nothing_but_mra(&mut self, side: usize) {
        self.message(side, "MRA");
    }

    fn event_count(&mut self, side: usize) -> usize {
        std::iter::from_fn(|| self.sides[side].poll_event()).count()
    }
}
