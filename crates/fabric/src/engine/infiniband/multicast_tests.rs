//! Whole runs with multicast groups: who hears what, how often switches copy it, and what a slow member does to the others.

use proptest::prelude::*;
use softfabric_telemetry::PortCounter;
use softfabric_units::{Bytes, Random, Rate, Span, Time};
use softfabric_wire::infiniband::LinkPacket;

use super::tests::{of_port, on_infiniband, settings};
use crate::engine::feature_tests::{simulate, star, towards_receiver};
use crate::plan::*;
use crate::results::{Ending, FlowStatus, MulticastResult, Results};
use crate::scenario::Scenario;

const KEY: u16 = 0x7fff;

fn group(members: &[u32], senders: &[u32]) -> MulticastGroup {
    let hosts = |hosts: &[u32]| hosts.iter().map(|host| NodeId(1 + host)).collect();
    MulticastGroup {
        name: "group".to_owned(),
        members: hosts(members),
        senders: hosts(senders),
        level: None,
        mtu: Bytes::new(4096),
        rate: None,
        key: KEY,
    }
}

/// A flow from a host of a star to group 0.
fn to_group(plan: &Plan, source: u32, bytes: u64) -> Flow {
    let mut flow = towards_receiver(source, bytes);
    let settings = plan.link_layer.infiniband().unwrap();
    let receiver = settings.multicast[0].receivers(flow.source).next();
    flow.destination = receiver.expect("somebody hears it");
    flow.operation = Operation::Multicast(GroupId(0));
    flow.message = Some(Bytes::new(4096));
    flow
}

fn heard(result: &MulticastResult) -> Vec<(u32, u64, u64)> {
    let members = result.members.iter();
    members
        .map(|member| (member.node.0, member.packets, member.bytes.as_u64()))
        .collect()
}

/// Each member but the sender hears all, once; who only sends hears nothing; the switch copies, and counts.
#[test]
fn every_member_hears_all_of_it() {
    let mut plan = on_infiniband(star(6), 2);
    settings(&mut plan).multicast = vec![group(&[0, 1, 2, 3], &[4])];
    let bytes = 100 * 4096 + 1;
    plan.flows = vec![to_group(&plan, 1, bytes), to_group(&plan, 4, bytes)];
    plan.recording.check_wire = true;
    plan.recording.captures = vec![Endpoint {
        node: NodeId(1),
        port: PortId(0),
    }];
    assert_eq!(plan.check(), []);
    let results = simulate(&plan);
    assert_eq!(results.ending, Ending::Completed);
    assert_eq!(
        (results.conservation.dropped, results.lossless_drops),
        (0, 0)
    );
    let sent = 101;
    for flow in &results.flows {
        assert_eq!(flow.status, FlowStatus::Completed);
        assert_eq!(flow.delivered.as_u64(), bytes);
        assert!(flow.received > flow.finished && flow.slowdown().is_none());
    }
    let of = |flow: usize| heard(&results.multicast[flow]);
    assert_eq!(of(0), [1, 3, 4].map(|node| (node, sent, bytes)));
    assert_eq!(of(1), [1, 2, 3, 4].map(|node| (node, sent, bytes)));
    // Each packet of the first flow leaves three times, and of the second four.
    assert_eq!(results.conservation.sent, 2 * sent);
    assert_eq!(results.conservation.copied, 2 * sent + 3 * sent);
    let counts = |node: u32, port: u16| {
        [
            PortCounter::MulticastReceivePackets,
            PortCounter::MulticastTransmitPackets,
        ]
        .map(|counter| of_port(&results, node, port, counter))
    };
    // At the switch: members hear both flows, senders their own not.
    assert_eq!(
        [0, 1, 2, 3, 4, 5].map(|port| counts(0, port)),
        [
            [0, 2 * sent],
            [sent, sent],
            [0, 2 * sent],
            [0, 2 * sent],
            [sent, 0],
            [0, 0]
        ]
    );
    assert_eq!(counts(1, 0), [2 * sent, 0]);
    assert_eq!(counts(5, 0), [0, sent]);
    let packets: Vec<_> = (results.captures[0].frames.iter())
        .filter_map(|frame| LinkPacket::decode(&frame.bytes).ok())
        .collect();
    let short = packets.iter().find(|packet| packet.rdma.payload.len() == 1);
    let packet = short.expect("the last datagram has one byte");
    assert_eq!(packet.route.destination, GroupId(0).lid());
    assert_eq!(
        packet.grh.map(|grh| grh.destination),
        Some(GroupId(0).gid())
    );
    assert!(packet.icrc_is_right() && packet.vcrc_is_right());
}

/// The place in the input buffer is free when the last copy has left: a member whose link is slow slows down the sender, and
/// nothing is lost.
#[test]
fn the_slowest_member_sets_the_pace() {
    let mut plan = on_infiniband(star(4), 1);
    plan.network.links[3].rate = Rate::gbps(10);
    settings(&mut plan).multicast = vec![group(&[1, 2, 3], &[0])];
    let bytes = 500 * 4096;
    plan.flows = vec![to_group(&plan, 0, bytes)];
    let results = simulate(&plan);
    assert_eq!(results.conservation.dropped, 0);
    let took = |member: usize| {
        let received = results.multicast[0].members[member].received;
        received.expect("all") - results.flows[0].start.unwrap()
    };
    let wire = Rate::gbps(10).time_for(Bytes::new(500 * (4096 + 20 + 40 + 14)));
    let off = took(2).as_picos() as f64 / wire.as_picos() as f64;
    assert!((1.0..1.01).contains(&off), "{off}");
    // The others are ahead by no more than what the buffer holds.
    let ahead = took(2) - took(0);
    assert!(ahead <= Rate::gbps(10).time_for(Bytes::kib(33)), "{ahead}");
    assert!(of_port(&results, 1, 0, PortCounter::TransmitWait) > 0);
}

/// The group's rate spaces datagrams by whole times of their own, global route header included.
#[test]
fn a_group_has_a_rate() {
    for (rate, delay) in [(100, 0), (50, 1), (40, 2)] {
        let mut plan = on_infiniband(star(3), 1);
        let mut limited = group(&[1, 2], &[0]);
        limited.rate = Some(Rate::gbps(rate));
        settings(&mut plan).multicast = vec![limited];
        plan.flows = vec![to_group(&plan, 0, 200 * 4096)];
        let results = simulate(&plan);
        let flow = &results.flows[0];
        let took = flow.received.unwrap() - flow.start.unwrap();
        let packet = Span::picos(80 * (4096 + 20 + 40 + 14));
        // The last one goes over two links, of which the switch cuts through.
        let way = Span::nanos(2 * 500 + 150) + Span::picos(80 * 24);
        let exact = packet * (199 * (delay + 1) + 1) + way;
        let off = took.as_picos().abs_diff(exact.as_picos());
        // A picosecond for each packet: rates are whole bits a second.
        assert!(off <= 200, "{rate}: {took} instead of {exact}");
    }
}

/// Who has no link any more loses what is sent meanwhile; the others lose nothing, and the books balance.
#[test]
fn a_member_without_a_link_loses_alone() {
    let mut plan = on_infiniband(star(4), 1);
    settings(&mut plan).multicast = vec![group(&[1, 2, 3], &[0])];
    let bytes = 2000 * 4096;
    plan.flows = vec![to_group(&plan, 0, bytes)];
    plan.actions = vec![
        TimedAction {
            at: Time::from_nanos(100_000),
            action: Action::LinkDown(LinkId(2)),
        },
        TimedAction {
            at: Time::from_nanos(200_000),
            action: Action::LinkUp(LinkId(2)),
        },
    ];
    let results = simulate(&plan);
    let result = &results.multicast[0];
    let lost: Vec<u64> = (result.members.iter())
        .map(|member| result.lost(member))
        .collect();
    assert_eq!([lost[0], lost[2]], [0, 0]);
    // 0.1 ms of 100 Gb/s are 300 packets; what waited and what was on the wire is lost as well.
    assert!((298..320).contains(&lost[1]), "{lost:?}");
    assert_eq!(results.conservation.dropped, lost[1]);
    assert_eq!(results.flows[0].received, None, "one has not all of it");
    assert_eq!(results.flows[0].delivered.as_u64(), bytes - lost[1] * 4096);
}

const LEAVES: &str = "[fabric]\nkind = \"infiniband\"\nrouting = \"up_down\"\n[topology]\nkind = \"leaf_spine\"\nleaves = \
                      4\nspines = 2\nhosts_per_leaf = 2\n[infiniband]\nrepair = \"100us\"\n[[infiniband.multicast]]\nname \
                      = \"all\"\nmembers = [\"h*\"]\nmtu = \"2048B\"\n[[workload]]\nkind = \"flow\"\nfrom = \"h0\"\nto = \
                      \"all\"\nbytes = \"8MB\"\n";

fn outcome(results: &Results) -> (u64, Vec<u64>) {
    let result = &results.multicast[0];
    let lost = result.members.iter().map(|member| result.lost(member));
    (result.sent, lost.collect())
}

/// A tree that loses a cable is made anew by the manager's sweep; until then the members behind it lose what is sent.
#[test]
fn a_sweep_repairs_the_tree() {
    let plan = Scenario::from_toml(LEAVES, "tree.toml")
        .unwrap()
        .plan()
        .unwrap();
    let whole = simulate(&plan);
    assert_eq!(outcome(&whole), (3907, vec![0; 7]));
    // The cable from leaf to spine that the copies for leaf 2 take.
    let carries = |link: &Link| {
        let end = [link.a, link.b]
            .into_iter()
            .find(|end| plan.network.nodes[end.node.index()].name == "leaf2");
        let host = |node: NodeId| plan.network.nodes[node.index()].name.starts_with('h');
        end.is_some_and(|end| {
            !host(link.a.node)
                && !host(link.b.node)
                && of_port(
                    &whole,
                    end.node.0,
                    end.port.0,
                    PortCounter::MulticastReceivePackets,
                ) > 0
        })
    };
    let link = plan.network.links.iter().position(carries).unwrap();
    let mut broken = plan.clone();
    broken.actions = vec![TimedAction {
        at: Time::from_nanos(150_000),
        action: Action::LinkDown(LinkId(link as u32)),
    }];
    let results = simulate(&broken);
    let (sent, lost) = outcome(&results);
    assert_eq!(sent, 3907);
    // Members are h1 to h7: two of them are at leaf 2. 0.1 ms of 100 Gb/s are 590 packets of 2122 B. What is on its way up
    // when the tree moves to the other spine is lost for all but the sender's neighbour.
    assert_eq!(lost[0], 0);
    for member in [1, 2, 5, 6] {
        assert!(lost[member] < 20, "{lost:?}");
    }
    for member in [3, 4] {
        assert!((585..620).contains(&lost[member]), "{lost:?}");
    }
    assert_eq!(results.repairs.len(), 1);
    assert!(results.repairs[0].entries > 0 && results.repairs[0].failure.is_none());
}

/// In a partition of their own, members hear each other; limited members hear full ones only, as everybody else does.
#[test]
fn groups_have_a_partition() {
    let mut plan = on_infiniband(star(4), 1);
    settings(&mut plan).partitions = Some(Box::new(Partitions {
        partitions: vec![Partition {
            name: "some".to_owned(),
            key: 9,
            full: vec![NodeId(1)],
            limited: vec![NodeId(2), NodeId(3)],
        }],
        inbound: true,
        outbound: true,
    }));
    let mut of_some = group(&[0, 1, 2], &[]);
    of_some.key = 9;
    settings(&mut plan).multicast = vec![of_some];
    plan.flows = vec![to_group(&plan, 0, 40_960), to_group(&plan, 1, 40_960)];
    assert_eq!(plan.check(), []);
    let results = simulate(&plan);
    assert_eq!(
        heard(&results.multicast[0]),
        [(2, 10, 40_960), (3, 10, 40_960)]
    );
    assert_eq!(heard(&results.multicast[1]), [(1, 10, 40_960), (3, 0, 0)]);
    assert_eq!(
        of_port(&results, 0, 2, PortCounter::TransmitConstraintErrors),
        10
    );
    assert_eq!(results.conservation.dropped, 10);
    settings(&mut plan).multicast[0].members.push(NodeId(4));
    let problems: Vec<String> = plan
        .check()
        .into_iter()
        .map(|found| found.problem)
        .collect();
    assert_eq!(
        problems,
        ["has member h3, which is not in the group's partition 0x0009"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever is sent to groups and hosts at once: every block of every buffer is free in the end, every packet that was
    /// sent or copied is accounted for, and who may hear does, however many threads there are.
    #[test]
    fn credits_come_back(seed in any::<u64>(), leaves in 2_u32..5, flows in 1_usize..6, lanes in 1_u8..3) {
        let mut random = Random::from_seed(seed);
        let text = format!(
            "[fabric]\nkind = \"infiniband\"\nrouting = \"up_down\"\n[topology]\nkind = \"leaf_spine\"\nleaves = {leaves}\n\
             spines = 2\nhosts_per_leaf = 2\n[infiniband]\nlanes = {lanes}\nbuffer = \"9KiB\"\n"
        );
        let mut plan = Scenario::from_toml(&text, "random.toml").unwrap().plan().unwrap();
        let hosts: Vec<NodeId> = plan.network.hosts().collect();
        for number in 0..3 {
            let mut members = hosts.clone();
            random.shuffle(&mut members);
            let count = 2 + random.below(hosts.len() as u64 - 1) as usize;
            let mut senders = members.split_off(count.min(hosts.len()));
            members.sort_unstable();
            senders.sort_unstable();
            settings(&mut plan).multicast.push(MulticastGroup {
                name: format!("g{number}"),
                members,
                senders,
                ..group(&[], &[])
            });
        }
        let template = towards_receiver(1, 1);
        for _ in 0..flows {
            let groups = &plan.link_layer.infiniband().unwrap().multicast;
            let number = random.below(3) as usize;
            let all: Vec<NodeId> = groups[number].members.iter().chain(&groups[number].senders).copied().collect();
            let source = all[random.below(all.len() as u64) as usize];
            let destination = groups[number].receivers(source).next().unwrap();
            let class = softfabric_units::Class::new(random.below(8) as u8);
            let bytes = Bytes::new(1 + random.below(200_000));
            let operation = Operation::Multicast(GroupId(number as u32));
            let flow = Flow { source, destination, bytes, class, ..template.clone() };
            plan.flows.push(Flow { operation, message: Some(Bytes::new(4096)), ..flow.clone() });
            plan.flows.push(flow);
        }
        let errors: Vec<_> = plan.check().into_iter().filter(|found| found.severity == Severity::Error).collect();
        prop_assert_eq!(errors, []);
        let results = simulate(&plan);
        prop_assert_eq!(results.ending, Ending::Completed);
        prop_assert_eq!((results.conservation.in_flight, results.conservation.dropped), (0, 0));
        for result in &results.multicast {
            let bytes = plan.flows[result.flow.index()].bytes;
            prop_assert!(result.members.iter().all(|member| member.bytes == bytes && result.lost(member) == 0));
        }
        let mut options = crate::engine::RunOptions { threads: 3, ..Default::default() };
        let threaded = crate::engine::run(&plan, &mut options).unwrap();
        prop_assert_eq!(threaded.ports, results.ports);
        prop_assert_eq!(threaded.multicast, results.multicast);
    }
}
