//! What scenarios mean: the plans that they lead to.

use softfabric_transport::rate::{DcqcnNicParameters, RateControlConfig};
use softfabric_units::{Bytes, Class, ClassMask, Rate, Span, Time};

use super::*;
use crate::plan::{
    Action, Addressing, Alpha, Forwarding, LinkId, LoadBalancing, NodeId, NodeKind,
    NotificationPoint, Routing, Scheduling, Start,
};

#[test]
fn the_smallest_scenario() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[[workload]]\nkind = \"incast\"\nbytes = \"1MB\"\n";
    let plan = plan(text);
    assert_eq!((plan.name.as_str(), plan.seed), ("test", 1));
    assert_eq!(plan.flows.len(), 2);
    assert_eq!(plan.flows[1].destination, NodeId(2));
    assert_eq!(plan.flows[0].group, "incast");
    assert_eq!(plan.network.links[0].rate, Rate::gbps(100));
    let switch = &plan.switch_profiles[0];
    assert_eq!(switch.lossless(), ClassMask::of(Class::new(3)));
    assert_eq!(switch.classes[3].ecn[0].kmin, Bytes::kb(400));
    assert_eq!(switch.classes[6].scheduling, Scheduling::Strict);
    let nic = &plan.host_profiles[0].nic;
    let nvidia = DcqcnNicParameters::nvidia_default();
    assert_eq!(nic.rate_control, RateControlConfig::DcqcnNic(nvidia));
    assert_eq!(nic.notification_class, Class::new(6));
    assert_eq!(plan.check(), []);
}

#[test]
fn switch_settings() {
    let plan = plan(&format!(
        "{STAR}[switch]\nforwarding = \"cut_through\"\nlossless = [3, 4]\nalpha = \"1/2\"\nxon = \"10KB\"\nload_balancing = \
         \"spray_random\"\n[[switch.ecn]]\nrate = \"50Gb/s\"\nscaled = true\nkmin = \"10KB\"\nkmax = \"20KB\"\npmax = \
         0.5\n[switch.class.4]\nalpha = \"200KB\"\necn = []\n[switch.class.0]\nweight = 3\n[switch.watchdog]\ndetection = \
         \"100ms\"\n"
    ));
    let switch = &plan.switch_profiles[0];
    assert_eq!(
        switch.forwarding,
        Forwarding::CutThrough {
            header: Bytes::new(64)
        }
    );
    assert_eq!(switch.load_balancing, LoadBalancing::SprayRandom);
    assert_eq!(switch.classes[3].ingress.threshold, Alpha::Dynamic(-1));
    assert_eq!(switch.classes[3].ingress.xon.size, Bytes::kb(10));
    assert_eq!(switch.classes[3].ingress.xon.offset, None);
    assert_eq!(switch.classes[3].ecn[0].rate, Some(Rate::gbps(100)));
    assert_eq!(switch.classes[3].ecn[0].kmax, Bytes::kb(40));
    assert_eq!(
        switch.classes[4].ingress.threshold,
        Alpha::Static(Bytes::kb(200))
    );
    assert_eq!(switch.classes[4].ecn, []);
    assert_eq!(switch.classes[0].scheduling, Scheduling::Weighted(3));
    assert!(!switch.classes[0].lossless);
    assert_eq!(switch.watchdog.unwrap().detection, Span::millis(100));
    let both = ClassMask::of(Class::new(3)).with(Class::new(4));
    assert_eq!(plan.host_profiles[0].lossless, both);
}

#[test]
fn groups_change_some() {
    let text = "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[switch]\nbuffer = \
                \"20MiB\"\n[[switch_group]]\nnames = [\"spine*\"]\nlatency = \"1us\"\n[[host_group]]\nnames = \
                [\"h1..h2\"]\ndrain = \"50Gb/s\"\n[[link]]\nbetween = [\"leaf*\", \"spine1\"]\ndelay = \"5us\"\n";
    let plan = plan(text);
    let profile = |name: &str| {
        let node = plan
            .network
            .nodes
            .iter()
            .find(|node| node.name == name)
            .unwrap();
        match node.kind {
            NodeKind::Switch { profile } | NodeKind::Host { profile, .. } => profile,
        }
    };
    assert_eq!((profile("leaf0"), profile("spine1")), (0, 1));
    assert_eq!(plan.switch_profiles[1].buffer.total, Bytes::mib(20));
    assert_eq!(plan.switch_profiles[1].latency, Span::micros(1));
    assert_eq!(
        (profile("h0"), profile("h1"), profile("h2"), profile("h3")),
        (0, 1, 1, 0)
    );
    assert_eq!(plan.host_profiles[1].receive.drain, Some(Rate::gbps(50)));
    let slow = plan
        .network
        .links
        .iter()
        .filter(|link| link.delay == Span::micros(5));
    assert_eq!(slow.count(), 2);
}

#[test]
fn presets_are_where_settings_start() {
    let plan = plan(&format!(
        "{STAR}[fabric]\nip = 6\n[switch]\npreset = \"sn2700\"\nlatency = \"7us\"\n[host]\npreset = \"connectx6\"\nmtu = \
         \"1024B\"\n"
    ));
    let preset = crate::preset::switch("sn2700").unwrap().profile();
    assert_eq!(plan.switch_profiles[0].buffer, preset.buffer);
    assert_eq!(plan.switch_profiles[0].latency, Span::micros(7));
    assert_eq!(plan.host_profiles[0].nic.mtu, Bytes::new(1024));
    assert_eq!(plan.host_profiles[0].addressing, Addressing::RoceV2Ipv6);
}

#[test]
fn host_settings() {
    let plan = plan(&format!(
        "{STAR}[host]\nloss_recovery = \"selective_repeat\"\nbdp_cap = \"150KB\"\nacknowledgement_class = 5\n\
         [host.congestion_control]\nkind = \"dcqcn_paper\"\nbyte_counter = \"off\"\n"
    ));
    let nic = &plan.host_profiles[0].nic;
    let RateControlConfig::DcqcnPaper(paper) = nic.rate_control else {
        panic!("{:?}", nic.rate_control);
    };
    assert_eq!(paper.byte_counter, None);
    assert_eq!(
        nic.notification,
        NotificationPoint::Cnp {
            interval: Span::micros(50),
            within: crate::plan::WithinInterval::Forgotten
        }
    );
    let cap = Some(Bytes::kb(150));
    assert_eq!(
        nic.loss_recovery,
        crate::plan::LossRecovery::SelectiveRepeat { cap }
    );
    let class = crate::plan::AcknowledgementClass::Explicit(Class::new(5));
    assert_eq!(nic.acknowledgement_class, class);
}

#[test]
fn rings_go_clockwise() {
    let text = "[topology]\nkind = \"ring\"\nswitches = 4\n[fabric]\nrouting = \"up_down\"\n[[workload]]\nkind = \
                \"permutation\"\npattern = \"shift\"\ndistance = 2\nroute = \"clockwise\"\nbytes = \"1MB\"\n";
    let plan = plan(text);
    assert_eq!(plan.routing, Routing::UpDown);
    let path = |flow: usize| {
        let path = plan.flows[flow].path.as_ref().unwrap();
        path.iter()
            .map(|node| plan.network.nodes[node.index()].name.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(path(0), ["s0", "s1", "s2"]);
    assert_eq!(path(3), ["s3", "s0", "s1"]);
}

#[test]
fn lists_of_flows_and_triggers() {
    let text = format!(
        "{STAR}[[trigger]]\ncount = 2\n[[workload]]\nkind = \"flows\"\nclass = 4\nstart = \"1us\"\nflow = [\n{{ from = \
         \"h0\", to = \"h1\", bytes = \"1MB\", on_received = 0 }},\n{{ from = \"h2\", to = \"h1\", bytes = \"2MB\", after = \
         0, start = \"3us\", class = 3, source_port = 7, path = [\"s0\"] }},\n]\n"
    );
    let plan = plan(&text);
    let [first, second] = &plan.flows[..] else {
        panic!("{:?}", plan.flows);
    };
    let trigger = crate::plan::TriggerId(0);
    assert_eq!(first.start, Start::At(Time::from_nanos(1_000)));
    assert_eq!((first.class.as_u8(), first.on_received), (4, Some(trigger)));
    assert_eq!(second.start, Start::After(trigger, Span::micros(3)));
    assert_eq!((second.class.as_u8(), second.udp_source_port), (3, 7));
    assert_eq!(second.path, Some(vec![NodeId(4)]));
    assert_eq!(plan.triggers[0].count, 2);
}

#[test]
fn seeds_change_chance_and_nothing_else() {
    let text = |seed: u32| {
        format!("seed = {seed}\n{STAR}[[workload]]\nkind = \"permutation\"\nbytes = \"1MB\"\n")
    };
    let text = |seed| text(seed).replace("hosts = 4", "hosts = 40");
    assert_eq!(plan(&text(1)), plan(&text(1)));
    let (one, two) = (plan(&text(1)), plan(&text(2)));
    assert_ne!(one.flows, two.flows);
    assert_eq!(one.network, two.network);
    let ports: std::collections::BTreeSet<_> =
        one.flows.iter().map(|flow| flow.udp_source_port).collect();
    assert!(ports.len() > 35 && ports.iter().all(|port| *port >= 49_152));
}

#[test]
fn events_happen() {
    let plan = plan(&format!(
        "{STAR}[[event]]\nkind = \"storm\"\nat = \"1ms\"\nhost = \"h1\"\nuntil = \"2ms\"\n[[event]]\nkind = \
         \"stop_sources\"\nat = \"3ms\"\n[[event]]\nkind = \"drain\"\nat = \"0s\"\nhosts = [\"h2\"]\nrate = \"unlimited\"\n"
    ));
    let class = Class::new(3);
    let actions: Vec<_> = plan.actions.iter().map(|timed| timed.action).collect();
    assert_eq!(actions[0], Action::StormBegins(NodeId(1), class));
    assert_eq!(actions[1], Action::StormEnds(NodeId(1), class));
    assert_eq!(
        actions[2..6],
        [0, 1, 2, 3].map(|host| Action::SourceStops(NodeId(host)))
    );
    assert_eq!(actions[6], Action::DrainRate(NodeId(2), None));
}

#[test]
fn ports_by_number_and_by_neighbour() {
    let plan = plan(&format!(
        "{STAR}[record]\ncaptures = [\"s0:2\", \"s0:h3\", \"h1:s0\"]\n"
    ));
    let ends: Vec<_> = (plan.recording.captures.iter())
        .map(|end| (end.node.0, end.port.0))
        .collect();
    assert_eq!(ends, [(4, 2), (4, 3), (1, 0)]);
}

#[test]
fn classes_by_dscp() {
    let text = r#"
        [topology]
        kind = "star"
        hosts = 3
        [switch]
        dscp = [{ codes = [24, 26], class = 3 }, { codes = [48], class = 6 }]
        [[workload]]
        kind = "flows"
        flow = [{ from = "h0", to = "h2", bytes = "1MB", dscp = 26 }, { from = "h1", to = "h2", bytes = "1MB" }]
    "#;
    let plan = plan(text);
    let crate::plan::Classifier::Dscp(classes) = &plan.switch_profiles[0].classifier else {
        panic!("classes are told by the DSCP");
    };
    let class_of = |code: usize| classes[code].as_u8();
    assert_eq!([24, 26, 48, 0, 63].map(class_of), [3, 3, 6, 0, 0]);
    assert_eq!((plan.flows[0].dscp, plan.flows[1].dscp), (Some(26), None));
    let again = Scenario::from_plan(&plan).expect("a scenario says it all");
    let again = Scenario::from_toml(&again.to_toml(), "again.toml");
    assert_eq!(again.expect("it reads").plan().expect("it resolves"), plan);
}

#[test]
fn infiniband() {
    use softfabric_transport::rate::RateControlConfig;
    let plan = plan(&format!(
        "{STAR}[fabric]\nkind = \"infiniband\"\n[infiniband]\nlanes = 3\nhead_of_queue_life = \"16.384us\"\n[[infiniband.low]]\nlane = \
         0\nweight = 10\n[[infiniband.low]]\nlane = 1\nweight = 20\n[[infiniband.low]]\nlane = 2\nweight = 30\n"
    ));
    let settings = plan.link_layer.infiniband().unwrap();
    assert_eq!(settings.hosts.count, 3);
    assert_eq!(settings.hosts.buffer, Bytes::kib(128));
    assert_eq!(settings.hosts.of_level[..5], [0, 1, 2, 0, 1]);
    let [switch] = &settings.switches[..] else {
        panic!("one profile")
    };
    assert_eq!(switch.lanes, settings.hosts);
    assert_eq!(switch.latency, Span::nanos(200));
    assert_eq!(switch.life.at_head, Some(Span::nanos(16_384)));
    assert_eq!(switch.life.at_head_to_host, switch.life.at_head);
    let header = Bytes::new(24);
    assert_eq!(switch.forwarding, Forwarding::CutThrough { header });
    let weights: Vec<_> = (switch.lanes.arbitration.low.iter())
        .map(|entry| entry.weight)
        .collect();
    assert_eq!(weights, [10, 20, 30]);
    let host = &plan.host_profiles[0];
    assert_eq!(host.nic.rate_control, RateControlConfig::None);
    assert_eq!(host.lossless, ClassMask::NONE);
}

#[test]
fn congestion_control_of_infiniband() {
    use softfabric_transport::rate::{InjectionDelay, TIMER_UNIT};

    use crate::plan::{AdapterCongestion, SwitchCongestion, SwitchPorts};
    let control = |settings: &str| {
        let plan = plan(&format!(
            "{STAR}[fabric]\nkind = \"infiniband\"\n{settings}"
        ));
        plan.link_layer.infiniband().unwrap().congestion.clone()
    };
    assert_eq!(control(""), None);
    let defaults = control("[infiniband.congestion_control]\n").unwrap();
    assert_eq!(defaults.switches, [SwitchCongestion::default()]);
    assert_eq!(defaults.hosts, AdapterCongestion::default());

    let all = control(
        "[infiniband.congestion_control]\nthreshold = 7\npacket_size = \"4KiB\"\nmarking_rate = 0\nvictims = \
         \"none\"\ntimer = \"10.24us\"\nminimum = 1\ntable = [{ shift = 0, multiplier = 0 }, { shift = 1, multiplier = 3 }]\n\
         [[infiniband.congestion_control.level]]\nlevel = 5\nincrease = 2\n",
    )
    .unwrap();
    let switch = &all.switches[0];
    assert_eq!((switch.threshold, switch.marking_rate), (7, 0));
    assert_eq!(switch.packet_size, Bytes::kib(4));
    assert_eq!(switch.victims, SwitchPorts::None);
    let (other, fifth) = (all.hosts.levels[4], all.hosts.levels[5]);
    assert_eq!((other.timer, other.increase), (TIMER_UNIT * 10, 1));
    assert_eq!((fifth.timer, fifth.increase), (TIMER_UNIT * 10, 2));
    assert_eq!((other.minimum, fifth.minimum), (1, 1));
    assert_eq!(all.hosts.table.limit(), 1);
    assert_eq!(
        Some(all.hosts.table.entries()[1]),
        InjectionDelay::new(1, 3)
    );
}

/// Steps and iterations in which everybody meets everybody are put together at one task each: a job is as large as what it
/// does, and not as its square.
#[test]
fn iterations_of_all_to_all_are_joined() {
    let dependencies = |hosts: u64| -> u64 {
        let plan = plan(&format!(
            "[topology]\nkind = \"star\"\nhosts = {hosts}\n[[job]]\niterations = 3\n[[job.step]]\nkind = \"all_to_all\"\n\
             bytes = \"1MB\"\n[[job.step]]\nkind = \"all_to_all\"\nbytes = \"1MB\"\n[[job.step]]\nkind = \"all_to_all\"\n\
             bytes = \"1MB\"\nbackground = true\n"
        ));
        (plan.jobs[0].tasks.iter())
            .map(|task| task.after.len() as u64)
            .sum()
    };
    // Nine times n ranks with n − 1 sends and as many receives; each waits for one task, and one task for each.
    let most = |hosts: u64| 9 * hosts * (hosts - 1) * 2 * 2 + 9 * hosts;
    for hosts in [8, 24] {
        let found = dependencies(hosts);
        assert!(found <= most(hosts), "{found} of {}", most(hosts));
    }
}

/// Events by the names of the topology, made into what happens to links: port r · planes + p of each server is on rail r and
/// plane p.
#[test]
fn parts_of_the_topology_fail() {
    let downs = |event: &str| -> Vec<(String, String)> {
        let plan = plan(&format!(
            "[topology]\nkind = \"rail_optimised\"\nservers = 4\nrails = 2\nplanes = 2\nservers_per_leaf = 2\nspines = 1\n\
             [[event]]\nat = \"1ms\"\nuntil = \"2ms\"\n{event}\n"
        ));
        let name = |node: NodeId| plan.network.nodes[node.index()].name.clone();
        let of = |wanted: fn(&Action) -> Option<LinkId>, at: u64| -> Vec<(String, String)> {
            (plan.actions.iter())
                .filter(|timed| timed.at == Time::from_nanos(at))
                .filter_map(|timed| wanted(&timed.action))
                .map(|link| &plan.network.links[link.0 as usize])
                .map(|link| (name(link.a.node), name(link.b.node)))
                .collect()
        };
        let down = of(
            |action| match action {
                Action::LinkDown(link) => Some(*link),
                _ => None,
            },
            1_000_000,
        );
        let up = of(
            |action| match action {
                Action::LinkUp(link) => Some(*link),
                _ => None,
            },
            2_000_000,
        );
        assert_eq!(down, up);
        assert_eq!(plan.actions.len(), 2 * down.len());
        down
    };
    let rail = downs("kind = \"rail_down\"\nrail = 1");
    // Four servers with a port on each plane, and the trunks of two leaves on each.
    assert_eq!(rail.len(), 4 * 2 + 2 * 2);
    assert!(rail.iter().all(|(a, b)| (a.clone() + b).contains("rail1")));
    let of_plane = downs("kind = \"rail_down\"\nrail = 1\nplane = 0");
    assert_eq!(of_plane.len(), 4 + 2);
    let plane = downs("kind = \"plane_down\"\nplane = 1");
    // Four servers with a port on each rail, and the trunks of four leaves.
    assert_eq!(plane.len(), 4 * 2 + 4);
    assert!(
        plane
            .iter()
            .all(|(a, b)| (a.clone() + b).contains("plane1"))
    );
    let switch = downs("kind = \"switch_down\"\nswitches = [\"plane0spine0\"]");
    assert_eq!(switch.len(), 4);
    let port = downs("kind = \"port_down\"\nport = \"h3:2\"");
    assert_eq!(port, [("h3".to_owned(), "plane0rail1leaf1".to_owned())]);
    let link = downs("kind = \"link_down\"\nbetween = [\"h3\", \"plane0rail1leaf1\"]");
    assert_eq!(link, port);
}

#[test]
fn links_flap() {
    let plan = plan(&format!(
        "{STAR}[[event]]\nkind = \"link_flaps\"\nat = \"1ms\"\nbetween = [\"h0\", \"s0\"]\nperiod = \"100us\"\ndown = 0.25\n\
         until = \"1310us\"\n"
    ));
    let found: Vec<(u64, bool)> = (plan.actions.iter())
        .map(|timed| {
            let micros = timed.at.since(Time::ZERO).as_picos() / 1_000_000;
            (micros, matches!(timed.action, Action::LinkDown(_)))
        })
        .collect();
    let expected = [
        (1000, true),
        (1025, false),
        (1100, true),
        (1125, false),
        (1200, true),
        (1225, false),
        (1300, true),
        (1310, false),
    ];
    assert_eq!(found, expected);
    let broken = plan.disturbance().unwrap();
    let at = |micros| Time::ZERO + Span::micros(micros);
    assert_eq!(broken, (at(1000), Some(at(1310))));
}
