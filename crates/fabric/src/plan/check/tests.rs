use softfabric_transport::rate::RateControlConfig;
use softfabric_units::{Bytes, Class, Rate, Span, Time};

use super::*;
use crate::plan::{
    AcknowledgementClass, Action, Activity, Addressing, Alpha, Endpoint, Job, LinkId, MOST_FLOWS,
    NodeId, NodeKind, PacketLife, Partition, Partitions, PortId, PortSelection, Start, StaticRate,
    TimedAction, TriggerId,
};
use crate::scenario::Scenario;

/// h0 to h2 on s0, and h0 sends to h2.
fn sound() -> Plan {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[[workload]]\nkind = \"flow\"\nfrom = \"h0\"\nto = \"h2\"\nbytes = \
                \"1MB\"\n";
    Scenario::from_toml(text, "sound").unwrap().plan().unwrap()
}

/// What is found after a change: severity, place, problem.
fn after(change: impl Fn(&mut Plan)) -> Vec<String> {
    let mut plan = sound();
    change(&mut plan);
    described(&plan)
}

fn described(plan: &Plan) -> Vec<String> {
    (plan.check().iter())
        .map(|finding| {
            format!(
                "{:?}: {}: {}",
                finding.severity, finding.place, finding.problem
            )
        })
        .collect()
}

#[test]
fn a_sound_plan_has_no_findings() {
    assert_eq!(after(|_| {}), Vec::<String>::new());
}

#[test]
fn networks() {
    assert_eq!(
        after(|plan| plan.network.links[1].rate = Rate::ZERO),
        ["Error: link 1 (h1–s0): has a rate of zero"]
    );
    assert_eq!(
        after(|plan| plan.network.links[1].bit_error_rate = 1.5),
        ["Error: link 1 (h1–s0): has a bit error rate of 1.5, which is no probability"]
    );
    assert_eq!(
        after(|plan| plan.network.links[1].b.port = PortId(7)),
        ["Error: node s0: has ports with gaps, or two links at one port"]
    );
    assert_eq!(
        after(|plan| plan.network.links[1].b.node = NodeId(9)),
        [
            "Error: link 1: ends at node 9, which is not there",
            "Error: node s0: has ports with gaps, or two links at one port",
        ]
    );
    assert_eq!(
        after(|plan| plan.network.nodes[1].name = "h0".to_owned()),
        ["Error: node 1: is called h0, as node 0 is"]
    );
    assert_eq!(
        after(|plan| plan.network.nodes[3].kind = NodeKind::Switch { profile: 2 }),
        ["Error: node s0: has switch profile 2, of 1"]
    );
    let many = after(|plan| {
        let link = plan.network.links[0];
        for port in 1..40 {
            let mut link = link;
            link.rate = Rate::ZERO;
            link.a.port = PortId(port);
            link.b.port = PortId(port + 2);
            plan.network.links.push(link);
        }
    });
    assert_eq!(many.len(), REPEATS, "{many:?}");
}

#[test]
fn switches() {
    assert_eq!(
        after(|plan| plan.switch_profiles[0].classes[3].ecn[0].kmax = Bytes::kb(10)),
        ["Error: switch profile 0, class 3: has Kmin 400KB above Kmax 10KB"]
    );
    assert_eq!(
        after(|plan| plan.switch_profiles[0].classes[3].ecn[0].pmax = -0.5),
        ["Error: switch profile 0, class 3: has Pmax -0.5, which is no probability"]
    );
    assert_eq!(
        after(|plan| plan.switch_profiles[0].classes[1].ingress.threshold = Alpha::Dynamic(7)),
        ["Error: switch profile 0, class 1: has a threshold of 2^7 of what is free"]
    );
    assert_eq!(
        after(|plan| plan.switch_profiles[0].classes[3].egress.threshold = Alpha::Dynamic(0)),
        ["Warning: switch profile 0, class 3: is lossless, yet its egress queue may drop"]
    );
    assert_eq!(
        after(|plan| plan.switch_profiles[0].classes[3].ingress.headroom = Some(Bytes::mib(12))),
        [
            "Error: switch s0: sets 36876KiB aside as headroom and reserves of 3 ports, in a buffer of 32MiB"
        ]
    );
    assert_eq!(
        after(|plan| {
            plan.switch_profiles[0].classes[3].ingress.threshold = Alpha::Static(Bytes::kb(300));
        }),
        [
            "Warning: switch s0, class 3: marks from 400KB on, but pauses at 300KB at the latest: PFC acts before ECN"
        ]
    );
    assert_eq!(
        after(|plan| plan.switch_profiles[0].pause.quanta = Some(0)),
        ["Error: switch profile 0: pauses for 0 quanta"]
    );
}

#[test]
fn the_point_of_pause_with_one_group_alone() {
    // 32 MiB less 3 · 4 KiB, α = 4: 4/5 of it. Kmin is one byte above.
    let shared = (32 << 20) - 3 * 4096;
    let problem = |kmin: u64| {
        after(|plan| {
            let class = &mut plan.switch_profiles[0].classes[3];
            class.ingress.threshold = Alpha::Dynamic(2);
            class.ingress.headroom = Some(Bytes::ZERO);
            class.ecn[0].kmin = Bytes::new(kmin);
            class.ecn[0].kmax = Bytes::mib(40);
        })
    };
    assert_eq!(problem(shared / 5 * 4), Vec::<String>::new());
    assert_eq!(problem(shared / 5 * 4 + 1).len(), 1);
}

/// Headroom that is worked out from the links is set aside like any other.
#[test]
fn worked_out_headroom_has_to_fit() {
    let found = after(|plan| plan.switch_profiles[0].buffer.total = Bytes::kib(300));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("Error: switch s0: sets "), "{found:?}");
    assert!(
        found[0].ends_with("of 3 ports, in a buffer of 300KiB"),
        "{found:?}"
    );
}

#[test]
fn hosts() {
    assert_eq!(
        after(|plan| plan.host_profiles[0].nic.mtu = Bytes::new(1000)),
        ["Warning: host profile 0: has an MTU of 1000B, which no link has"]
    );
    assert_eq!(
        after(|plan| plan.host_profiles[0].nic.mtu = Bytes::ZERO),
        ["Error: host profile 0: has an MTU of 0B"]
    );
    assert_eq!(
        after(|plan| {
            plan.host_profiles[0].nic.rate_control = RateControlConfig::Fixed { rate: Rate::ZERO };
        }),
        ["Error: host profile 0: rate control parameter `rate` is 0b/s, but it must be above 0"]
    );
    assert_eq!(
        after(|plan| plan.host_profiles[0].nic.timeout = 32),
        ["Error: host profile 0: has a timeout of 32"]
    );
    assert_eq!(
        after(|plan| plan.host_profiles[0].receive.xon = Bytes::mib(3)),
        ["Error: host profile 0: pauses at 1MiB, resumes at 3MiB and holds 2MiB"]
    );
    assert_eq!(
        after(|plan| plan.host_profiles[0].lossless = softfabric_units::ClassMask::NONE),
        ["Warning: class 3: is lossless on switches, but some hosts do not obey its pause frames"]
    );
}

#[test]
fn traffic() {
    let flow = |change: fn(&mut crate::plan::Flow)| after(move |plan| change(&mut plan.flows[0]));
    assert_eq!(
        flow(|flow| flow.destination = NodeId(0)),
        ["Error: flow 0: goes from h0 to h0, itself"]
    );
    assert_eq!(
        flow(|flow| flow.destination = NodeId(3)),
        ["Error: flow 0: has node 3 as destination, which is no host"]
    );
    assert_eq!(
        flow(|flow| flow.bytes = Bytes::ZERO),
        ["Error: flow 0: has 0 bytes"]
    );
    assert_eq!(
        flow(|flow| flow.bytes = Bytes::gib(3)),
        ["Error: flow 0: has messages of 3GiB"]
    );
    assert_eq!(
        flow(|flow| flow.start = Start::After(TriggerId(2), Span::ZERO)),
        ["Error: flow 0: names trigger 2, of 0"]
    );
    assert_eq!(
        flow(|flow| flow.source_nic = PortId(3)),
        ["Error: flow 0: goes by port 3 of h0, which is not there"]
    );
    assert_eq!(
        flow(|flow| flow.path = Some(vec![NodeId(1)])),
        ["Error: flow 0: has a path from h0 to h1, which no link connects"]
    );
    assert_eq!(
        after(|plan| {
            plan.network.links.remove(2);
        }),
        ["Error: flow 0: goes from h0 to h2, which no links connect"]
    );
    assert_eq!(
        after(|plan| {
            let host = plan.network.nodes[0].kind;
            let switch = plan.network.nodes[3].kind;
            let switch = plan.network.add_node("s1", switch, 1);
            let host = plan.network.add_node("h9", host, 0);
            plan.network
                .connect(switch, host, Rate::gbps(1), Span::ZERO);
            plan.flows[0].destination = host;
        }),
        ["Error: flow 0: goes from h0 to h9, which no links connect"]
    );
    assert_eq!(
        after(|plan| {
            plan.host_profiles[0].addressing = Addressing::RoceV1;
            plan.network.nodes[2].kind = NodeKind::Host {
                profile: 0,
                subnet: 5,
            };
        }),
        [
            "Warning: flow 0: goes from h0 to h2, into another Ethernet segment, as RoCEv1: it will not arrive"
        ]
    );
}

#[test]
fn classes_that_are_lossless_in_places() {
    assert_eq!(
        after(|plan| {
            let mut other = plan.switch_profiles[0].clone();
            other.classes[3].lossless = false;
            plan.switch_profiles.push(other);
        }),
        ["Warning: class 3: is lossless on some switches and not on others"]
    );
}

#[test]
fn actions_and_recording() {
    let action = |action: Action| {
        after(move |plan| {
            plan.actions.push(TimedAction {
                at: Time::ZERO,
                action,
            });
        })
    };
    assert_eq!(
        action(Action::LinkDown(LinkId(3))),
        ["Error: action 0: names link 3, which is not there"]
    );
    assert_eq!(
        action(Action::StormBegins(NodeId(3), Class::new(3))),
        ["Error: action 0: names node 3, which is no host"]
    );
    assert_eq!(
        action(Action::BitErrorRate(LinkId(0), 2.0)),
        ["Error: action 0: sets a bit error rate of 2, which is no probability"]
    );
    assert_eq!(
        after(|plan| {
            plan.recording.ports = PortSelection::These(vec![Endpoint {
                node: NodeId(0),
                port: PortId(1),
            }]);
        }),
        ["Error: recording: names port 1 of node 0, which is not there"]
    );
    assert_eq!(
        after(|plan| plan.stop.at = Time::ZERO),
        ["Error: stop: is at time zero"]
    );
}

#[test]
fn errors_come_first() {
    let found = after(|plan| {
        plan.host_profiles[0].nic.mtu = Bytes::new(1000);
        plan.stop.at = Time::ZERO;
    });
    assert!(
        found[0].starts_with("Error") && found[1].starts_with("Warning"),
        "{found:?}"
    );
}

#[test]
fn infiniband() {
    use crate::plan::{
        Forwarding, Infiniband, InfinibandSwitch, LaneWeight, Lanes, LinkLayer, SubnetRouting,
    };
    let after = |change: &dyn Fn(&mut Infiniband)| {
        after(|plan| {
            let lanes = Lanes::alike(2, Bytes::kib(16));
            let mut settings = Infiniband {
                switches: vec![InfinibandSwitch {
                    forwarding: Forwarding::StoreAndForward,
                    latency: Span::nanos(200),
                    lanes: lanes.clone(),
                    life: PacketLife::default(),
                }],
                hosts: lanes,
                service_levels: [0, 1, 2, 3, 4, 5, 6, 7],
                routing: SubnetRouting::MinHop,
                adaptive: false,
                multicast: Vec::new(),
                repair: Span::millis(50),
                static_rate: StaticRate::None,
                partitions: None,
                congestion: None,
            };
            change(&mut settings);
            plan.link_layer = LinkLayer::Infiniband(settings);
        })
    };
    assert_eq!(after(&|_| {}), Vec::<String>::new());
    assert_eq!(
        after(&|settings| settings.switches.clear()),
        ["Error: node s0: has switch profile 0, of 0"]
    );
    assert_eq!(
        after(&|settings| settings.hosts.buffer = Bytes::new(1000)),
        ["Error: the hosts' lanes: has a buffer of 1000B for each lane: no packet fits"]
    );
    assert_eq!(
        after(&|settings| settings.hosts.count = 0),
        [
            "Error: the hosts' lanes: has 0 data lanes",
            "Error: InfiniBand switch profile 0: has 2 data lanes, and hosts have 0",
        ]
    );
    let acknowledged = |class| {
        let text = "[fabric]\nkind = \"infiniband\"\n[topology]\nkind = \"star\"\nhosts = 3\n[[workload]]\nkind = \"flow\"\nfrom = \
                    \"h0\"\nto = \"h2\"\nbytes = \"1MB\"\n";
        let mut plan = Scenario::from_toml(text, "lanes").unwrap().plan().unwrap();
        plan.host_profiles[0].nic.acknowledgement_class = class;
        plan.check().len()
    };
    assert_eq!(acknowledged(AcknowledgementClass::Request), 0);
    assert_eq!(
        acknowledged(AcknowledgementClass::Explicit(Class::new(5))),
        1
    );
    assert_eq!(acknowledged(AcknowledgementClass::RequestUnpausedAtHost), 1);
    let members = |key, full: &[u32], limited: &[u32]| {
        let hosts = |hosts: &[u32]| hosts.iter().map(|host| NodeId(*host)).collect();
        let partition = Partition {
            name: "p".to_owned(),
            key,
            full: hosts(full),
            limited: hosts(limited),
        };
        after(&|settings| {
            settings.partitions = Some(Box::new(Partitions {
                partitions: vec![partition.clone()],
                inbound: true,
                outbound: true,
            }));
        })
    };
    let hosts: Vec<u32> = (0..4)
        .filter(|id| sound().network.nodes[*id as usize].name != "s0")
        .collect();
    assert_eq!(
        members(5, &[], &[]),
        Vec::<String>::new(),
        "the default partition"
    );
    assert_eq!(
        members(0x7fff, &hosts[..1], &hosts[1..]),
        Vec::<String>::new()
    );
    assert_eq!(
        members(0x7fff, &[], &hosts),
        [
            "Warning: the flow h0 → h2: has ends that share no partition in which one is a full member: nothing arrives, and \
          its queue pair fails"
        ]
    );
    assert_eq!(
        members(0x8001, &[], &hosts),
        ["Error: partition p: has key 0x8001"]
    );
    assert_eq!(
        members(5, &hosts, &hosts[..1]),
        ["Error: partition p: has member h0 twice"]
    );
    assert_eq!(
        members(5, &[99], &[]),
        ["Error: partition p: has member a node that does not exist, which is no host"]
    );
    assert_eq!(
        after(&|settings| settings.switches[0].life.stall_count = Some(8)),
        [
            "Error: InfiniBand switch profile 0: stalls a lane after 8 packets",
            "Error: InfiniBand switch profile 0: stalls lanes after packets that outlive the head of a queue, where they may \
             stay for ever",
        ]
    );
    assert_eq!(
        after(&|settings| settings.switches[0].life.at_head = Some(Span::ZERO)),
        ["Error: InfiniBand switch profile 0: drops what has waited for no time"]
    );
    assert_eq!(
        after(&|settings| settings.service_levels[7] = 16),
        ["Error: the traffic classes: have service level 16"]
    );
    assert_eq!(
        after(&|settings| settings.hosts.of_level[0] = 2),
        ["Error: the hosts' lanes: puts service level 0 on lane 2, of 2"]
    );
    assert_eq!(
        after(&|settings| {
            settings.hosts.arbitration.low = vec![LaneWeight { lane: 5, weight: 1 }];
            settings.service_levels = [0; 8];
        })[..2],
        [
            "Error: the hosts' lanes: arbitrates lane 5, of 2",
            "Error: the hosts' lanes: never serves lane 0, which has service level 0",
        ]
    );
}

#[test]
fn congestion_control_of_infiniband() {
    use softfabric_transport::rate::InjectionTable;

    use crate::plan::{
        AdapterCongestion, Forwarding, Infiniband, InfinibandCongestion, InfinibandSwitch, Lanes,
        LinkLayer, SwitchCongestion,
    };
    let after = |change: &dyn Fn(&mut InfinibandCongestion)| {
        after(|plan| {
            let lanes = Lanes::alike(1, Bytes::kib(16));
            let mut congestion = InfinibandCongestion {
                switches: vec![SwitchCongestion::default()],
                hosts: AdapterCongestion::default(),
            };
            change(&mut congestion);
            plan.link_layer = LinkLayer::Infiniband(Infiniband {
                switches: vec![InfinibandSwitch {
                    forwarding: Forwarding::StoreAndForward,
                    latency: Span::nanos(200),
                    lanes: lanes.clone(),
                    life: PacketLife::default(),
                }],
                hosts: lanes,
                service_levels: [0, 1, 2, 3, 4, 5, 6, 7],
                routing: crate::plan::SubnetRouting::MinHop,
                adaptive: false,
                multicast: Vec::new(),
                static_rate: StaticRate::None,
                partitions: None,
                repair: Span::millis(50),
                congestion: Some(Box::new(congestion)),
            });
        })
    };
    assert_eq!(after(&|_| {}), Vec::<String>::new());
    assert_eq!(
        after(&|congestion| congestion.switches.clear()),
        ["Error: congestion control: is set for 0 switch profiles, of 1"]
    );
    assert_eq!(
        after(&|congestion| {
            congestion.switches[0].threshold = 16;
            congestion.switches[0].packet_size = Bytes::new(100);
        }),
        [
            "Error: congestion control of InfiniBand switch profile 0: has a threshold of 16",
            "Error: congestion control of InfiniBand switch profile 0: marks packets from 100B on",
        ]
    );
    assert_eq!(
        after(&|congestion| congestion.switches[0].credit_threshold = 99),
        ["Error: congestion control of InfiniBand switch profile 0: has a credit threshold of 99"]
    );
    assert_eq!(
        after(&|congestion| {
            congestion.hosts.levels[3].minimum = 4;
            congestion.hosts.levels[9].minimum = 4;
            congestion.hosts.table = InjectionTable::linear(0, 1, 3).unwrap();
        }),
        [
            "Error: congestion control of service level 3: rate control parameter `minimum` is 4, but it must be an index \
             of the table"
        ],
        "level 9 is not in use"
    );
    assert_eq!(
        after(&|congestion| congestion.hosts.levels[7].timer = Span::ZERO),
        [
            "Warning: congestion control of service level 7: has no timer: a flow that was slowed down once never speeds \
             up again"
        ]
    );
}

/// Two hosts that send each other a message, and what is wrong when one thing of it changes.
#[test]
fn jobs() {
    let text = "[topology]\nkind = \"star\"\nhosts = 2\n[[job]]\n[[job.step]]\nkind = \"shift\"\nbytes = \"1MB\"\n";
    let scenario = Scenario::from_toml(text, "job.toml").unwrap();
    let plan = scenario.plan().unwrap();
    let broken = |change: &dyn Fn(&mut Job)| {
        let mut plan = plan.clone();
        change(&mut plan.jobs[0]);
        described(&plan)
    };
    assert_eq!(broken(&|_| {}), [] as [&str; 0]);
    assert_eq!(
        broken(&|job| job.ranks[1].nic = PortId(1)),
        ["Error: job shift: has rank 1 on port 1 of h1, which has 1"]
    );
    assert_eq!(
        broken(&|job| job.ranks[1].host = NodeId(2)),
        ["Error: job shift: has rank 1 on s0, which is no host"]
    );
    assert_eq!(
        broken(&|job| job.channels[0].flows.clear()),
        ["Error: job shift: has channel 0 from rank 0 to rank 1 with 0 queue pairs"]
    );
    assert_eq!(
        broken(&|job| job.tasks[0].after = vec![1]),
        ["Error: job shift: has task 0 of 4, which names what is not there"]
    );
    let messages = |job: &mut Job, change: i32| {
        for task in &mut job.tasks {
            if let Activity::Receive(receives) = &mut task.activity
                && receives.channel == 0
            {
                receives.messages = receives.messages.wrapping_add_signed(change);
            }
        }
    };
    assert_eq!(
        broken(&|job| messages(job, -1)),
        ["Error: job shift: has rank 0 send 2 messages to rank 1, which takes 1"]
    );
    assert_eq!(
        broken(&|job| messages(job, 1)),
        ["Error: job shift: has rank 1 wait for 3 messages of rank 0, which sends 2"]
    );
    let mine = |job: &Job| -> Vec<u32> {
        (0..)
            .zip(&job.tasks)
            .filter(|(_, task)| task.rank == 0)
            .map(|(id, _)| id)
            .collect()
    };
    assert_eq!(
        broken(&|job| {
            let [first, second] = mine(job)[..] else {
                unreachable!()
            };
            job.tasks[first as usize].after = vec![second];
            job.tasks[second as usize].after = vec![first];
        }),
        ["Error: job shift: has tasks of rank 0 that wait for each other in a circle: 0, 3"]
    );
}

/// Of what repeats, the first few are said.
#[test]
fn jobs_that_are_wrong_everywhere() {
    let text = "[topology]\nkind = \"star\"\nhosts = 40\n[[job]]\n[[job.step]]\nkind = \"shift\"\nbytes = \"1MB\"\n";
    let scenario = Scenario::from_toml(text, "job.toml").unwrap();
    let mut plan = scenario.plan().unwrap();
    for task in &mut plan.jobs[0].tasks {
        if let Activity::Send(send) = &mut task.activity {
            send.bytes = Bytes::gib(3);
        }
    }
    let found = described(&plan);
    assert_eq!(found.len(), REPEATS, "{found:?}");
    assert_eq!(
        found[0],
        "Error: job shift: has rank 0 send 2 messages of 3GiB"
    );
}

#[test]
fn more_flows_than_numbers() {
    let found = |flows| {
        let mut findings = Findings::default();
        traffic::count(flows, &mut findings);
        findings.all.len()
    };
    assert_eq!((found(MOST_FLOWS), found(MOST_FLOWS + 1)), (0, 1));
}
