//! Partitions on the wire: who is let through, where the others are dropped, and what it costs those who are not meant.

use softfabric_telemetry::PortCounter;
use softfabric_units::{PartitionKey, Rate, Span};
use softfabric_wire::infiniband::LinkPacket;

use super::LaneSwitch;
use super::tests::{of_port, on_infiniband, settings};
use crate::engine::feature_tests::{simulate, star, towards_receiver};
use crate::engine::frame::{Frame, HEADER_ROOM};
use crate::engine::link::OutLink;
use crate::engine::port::Transmitter;
use crate::plan::*;
use crate::results::{FlowStatus, Results};

fn host(number: u32) -> NodeId {
    NodeId(1 + number)
}

/// Host 0 serves hosts 1 and 2, which do not know each other; 1 sends to both others, and fails with 2.
fn tenants(inbound: bool, outbound: bool) -> Plan {
    let mut plan = on_infiniband(star(3), 1);
    settings(&mut plan).partitions = Some(Box::new(Partitions {
        partitions: vec![
            Partition {
                name: "everybody".to_owned(),
                key: 0x7fff,
                full: Vec::new(),
                limited: (0..3).map(host).collect(),
            },
            Partition {
                name: "served".to_owned(),
                key: 5,
                full: vec![host(0)],
                limited: vec![host(1), host(2)],
            },
        ],
        inbound,
        outbound,
    }));
    let mut foreign = towards_receiver(1, 1_000_000);
    foreign.destination = host(2);
    plan.flows = vec![towards_receiver(1, 1_000_000), foreign];
    plan.host_profiles[0].nic.timeout = 5;
    plan
}

fn outcome(results: &Results) -> [u64; 3] {
    [
        of_port(results, 0, 1, PortCounter::ReceiveConstraintErrors),
        of_port(results, 0, 2, PortCounter::TransmitConstraintErrors),
        of_port(results, 3, 0, PortCounter::PartitionKeyViolations),
    ]
}

#[test]
fn who_shares_no_partition_fails_and_harms_nobody() {
    for (inbound, outbound) in [(true, true), (false, true), (true, false), (false, false)] {
        let plan = tenants(inbound, outbound);
        let warnings = plan.check();
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].place, "the flow h1 → h2");
        let results = simulate(&plan);
        assert_eq!(results.flows[0].status, FlowStatus::Completed);
        let FlowStatus::Failed(status) = &results.flows[1].status else {
            panic!("{:?}", results.flows[1]);
        };
        assert_eq!(status, "RETRY_EXC_ERR");
        assert_eq!(results.flows[1].delivered.as_u64(), 0);
        assert_eq!(results.lossless_drops, 0, "they are meant to be dropped");
        // All that the flow sent, at the one place or the other: the sender's own switch knows its key.
        let dropped = results.conservation.dropped;
        assert!(
            dropped > 8 * 200,
            "{dropped}: a message of 245 packets, eight times"
        );
        let expected = if outbound {
            [0, dropped, 0]
        } else {
            [0, 0, dropped]
        };
        assert_eq!(outcome(&results), expected, "{inbound} {outbound}");
    }
}

/// The keys of members say how they are members, in both directions.
#[test]
fn packets_carry_their_senders_keys() {
    let mut plan = tenants(true, true);
    plan.flows.truncate(1);
    plan.recording.check_wire = true;
    plan.recording.captures = vec![Endpoint {
        node: host(0),
        port: PortId(0),
    }];
    let results = simulate(&plan);
    assert_eq!(results.flows[0].status, FlowStatus::Completed);
    let mut sent = 0;
    for frame in &results.captures[0].frames {
        // An LRH of eight bytes, then the BTH with the key in its third and fourth.
        let is_packet = frame.length > 6;
        if is_packet {
            let key = u16::from_be_bytes([frame.bytes[10], frame.bytes[11]]);
            assert_eq!(key, if frame.sent { 0x8005 } else { 5 });
            sent += u32::from(frame.sent);
        }
        if frame.sent && is_packet {
            let packet = LinkPacket::decode(&frame.bytes).expect("an acknowledgement");
            assert!(packet.icrc_is_right());
        }
    }
    assert!(sent > 0);
}

/// A host that says it is a full member, and is a limited one, or none, is not let in by a guard.
#[test]
fn a_guard_lets_in_the_keys_of_its_host_alone() {
    let plan = tenants(true, true);
    let infiniband = plan.link_layer.infiniband().unwrap();
    let partitions = infiniband.partitions.as_ref().unwrap();
    let keys = partitions.keys(4, |node| node.0 > 0);
    let link = |node| OutLink::new(0, node, Rate::gbps(100), Span::nanos(1), Timing::Exact);
    let ports = (1..4).map(|node| Transmitter::new(link(node))).collect();
    let mut switch = LaneSwitch::new(NodeId(0), &infiniband.switches[0], ports);
    let frame = |key: u16| {
        let mut header = [0; HEADER_ROOM];
        header[2..4].copy_from_slice(&key.to_be_bytes());
        let frame = Frame {
            header,
            ..Frame::blank()
        };
        assert_eq!(frame.partition(), PartitionKey(key));
        frame
    };
    assert!(switch.lets_in(1, &frame(0x9999)), "nobody guards yet");
    switch.guard(partitions, &keys, &[true, true, false]);
    for (port, key, lets_in) in [
        (0, 0x8005, true),
        (0, 5, false),
        (1, 5, true),
        (1, 0x8005, false),
        (1, 0x7fff, true),
        (1, 0xffff, false),
        (1, 6, false),
        (2, 6, true),
    ] {
        assert_eq!(
            switch.lets_in(port, &frame(key)),
            lets_in,
            "{port} {key:#x}"
        );
    }
    let counters = &switch.ports[1].transmitter.port;
    assert_eq!(counters.value(PortCounter::ReceiveConstraintErrors), 3);
    for (port, key, lets_out) in [(0, 5, true), (1, 5, false), (1, 0x8005, true), (2, 6, true)] {
        assert_eq!(
            switch.lets_out(port, &frame(key)),
            lets_out,
            "{port} {key:#x}"
        );
    }
}
