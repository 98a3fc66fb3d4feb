//! What was run: the settings in words, and the command that repeats them.

use maud::{Markup, html};
use softfabric_fabric::plan::{
    AcknowledgementClass, Addressing, Alpha, BufferAccounting, ClassProfile, Forwarding,
    HostProfile, Infiniband, InfinibandCongestion, InfinibandSwitch, LaneWeight, LevelReaction,
    Link, LoadBalancing, LossRecovery, Network, NodeKind, NotificationPoint, PacketLife, Plan,
    Routing, SwitchCongestion, SwitchPorts, SwitchProfile, Timing,
};
use softfabric_transport::rate::RateControlConfig;
use softfabric_units::Span;

use crate::format;

/// A name and what it is set to.
type Entry = (&'static str, String);

/// The settings of the run.
pub(super) fn section(plan: &Plan, command: &str) -> Markup {
    html! {
        section {
            h2 { "Settings" }
            p { "This command repeats the run:" }
            pre.command { code { (command) } }
            div.settings {
                (list("Run", &run(plan)))
                @if let Some(settings) = plan.link_layer.infiniband() {
                    (list("InfiniBand", &infiniband(settings)))
                    @if let Some(congestion) = &settings.congestion {
                        (list("Reaction to congestion", &reaction(congestion, settings)))
                    }
                    @for (index, profile) in settings.switches.iter().enumerate() {
                        @let count = users(plan, |kind| kind == NodeKind::Switch { profile: index as u32 });
                        @if count > 0 { (list(&plural(count, "switch", "switches"), &lane_switch(profile, settings.congestion.as_ref().and_then(|congestion| congestion.switches.get(index))))) }
                    }
                }
                @else { @for (index, profile) in plan.switch_profiles.iter().enumerate() {
                    @let count = users(plan, |kind| kind == NodeKind::Switch { profile: index as u32 });
                    @if count > 0 { (list(&plural(count, "switch", "switches"), &switch(profile))) }
                } }
                @for (index, profile) in plan.host_profiles.iter().enumerate() {
                    @let count = users(plan, |kind| matches!(kind, NodeKind::Host { profile, .. } if profile == index as u32));
                    @if count > 0 { (list(&plural(count, "host", "hosts"), &host(profile, plan))) }
                }
            }
        }
    }
}

/// `16 hosts, 6 switches and 24 links`.
pub(super) fn network_in_words(network: &Network) -> String {
    format!(
        "{}, {} and {}",
        plural(network.hosts().count(), "host", "hosts"),
        plural(network.switches().count(), "switch", "switches"),
        plural(network.links.len(), "link", "links"),
    )
}

fn list(heading: &str, entries: &[Entry]) -> Markup {
    html! {
        div {
            h3 { (heading) }
            dl { @for (name, value) in entries { dt { (name) } dd { (value) } } }
        }
    }
}

fn users(plan: &Plan, uses: impl Fn(NodeKind) -> bool) -> usize {
    plan.network
        .nodes
        .iter()
        .filter(|node| uses(node.kind))
        .count()
}

fn run(plan: &Plan) -> Vec<Entry> {
    let mut entries = vec![
        ("Seed", plan.seed.to_string()),
        (
            "Timing",
            match plan.timing {
                Timing::Exact => "exact: picoseconds, true frame lengths".to_owned(),
                Timing::Hpcc => "as the HPCC ns-3 code counts".to_owned(),
            },
        ),
        (
            "Routing",
            match plan.routing {
                Routing::Shortest => "all shortest paths".to_owned(),
                Routing::UpDown => "up-down".to_owned(),
            },
        ),
        (
            "Stop",
            format!(
                "at {}{}",
                plan.stop.at,
                if plan.stop.when_done {
                    ", or when all flows are done"
                } else {
                    ""
                }
            ),
        ),
    ];
    let mut kinds: Vec<(&Link, usize)> = Vec::new();
    for link in &plan.network.links {
        match kinds
            .iter_mut()
            .find(|(known, _)| (known.rate, known.delay) == (link.rate, link.delay))
        {
            Some((_, count)) => *count += 1,
            None => kinds.push((link, 1)),
        }
    }
    let shown = kinds
        .iter()
        .take(4)
        .map(|(link, count)| format!("{count} × {}, {}", link.rate, link.delay));
    let mut links: Vec<String> = shown.collect();
    if kinds.len() > 4 {
        links.push(format!("and {} more kinds", kinds.len() - 4));
    }
    entries.push(("Links", links.join("; ")));
    entries
}

fn infiniband(settings: &Infiniband) -> Vec<Entry> {
    let lanes = &settings.hosts;
    let table = |entries: &[LaneWeight]| {
        let entry = |entry: &LaneWeight| format!("{}: {}", entry.lane, entry.weight);
        let words: Vec<_> = entries.iter().map(entry).collect();
        if words.is_empty() {
            "none".to_owned()
        } else {
            words.join(", ")
        }
    };
    vec![
        ("Data lanes", lanes.count.to_string()),
        ("Buffer of a lane", lanes.buffer.to_string()),
        (
            "Lanes of classes",
            settings
                .service_levels
                .map(|level| lanes.of_level[usize::from(level & 15)].to_string())
                .join(", "),
        ),
        ("High priority", table(&lanes.arbitration.high)),
        ("Low priority", table(&lanes.arbitration.low)),
    ]
}

/// How the flows of the levels in use react.
fn reaction(congestion: &InfinibandCongestion, settings: &Infiniband) -> Vec<Entry> {
    let levels = settings.levels_in_use();
    let hosts = &congestion.hosts;
    let words = |level: &LevelReaction| {
        format!(
            "+{} a BECN, −1 each {}, from {}",
            level.increase, level.timer, level.minimum
        )
    };
    let first = &hosts.levels[usize::from(levels[0])];
    let same = (levels.iter()).all(|level| hosts.levels[usize::from(*level)] == *first);
    let index = if same {
        words(first)
    } else {
        let each = |level: &u8| format!("{level}: {}", words(&hosts.levels[usize::from(*level)]));
        levels.iter().map(each).collect::<Vec<_>>().join("; ")
    };
    let table = &hosts.table;
    let last = table.entries().last().copied().unwrap_or_default();
    vec![
        (if same { "Index" } else { "Index by level" }, index),
        ("Highest index", table.limit().to_string()),
        (
            "Wait there",
            format!(
                "{} / {} of a packet's time",
                last.multiplier(),
                1 << last.shift()
            ),
        ),
    ]
}

fn switch_ports(ports: &SwitchPorts) -> String {
    match ports {
        SwitchPorts::None => "nowhere".to_owned(),
        SwitchPorts::Hosts => "where hosts are".to_owned(),
        SwitchPorts::All => "everywhere".to_owned(),
        SwitchPorts::These(ports) => {
            let numbers: Vec<_> = ports.iter().map(|port| port.0.to_string()).collect();
            format!("ports {}", numbers.join(", "))
        }
    }
}

/// What a switch marks.
fn marking(setting: &SwitchCongestion) -> String {
    if setting.threshold == 0 {
        return "none".to_owned();
    }
    format!(
        "threshold {}, packets of {} and more, one of {}; while waiting for credit {}",
        setting.threshold,
        setting.packet_size,
        u32::from(setting.marking_rate) + 1,
        switch_ports(&setting.victims)
    )
}

fn lane_switch(profile: &InfinibandSwitch, setting: Option<&SwitchCongestion>) -> Vec<Entry> {
    let mut entries = vec![
        (
            "Forwarding",
            forwarding(profile.forwarding, profile.latency),
        ),
        ("Life at the head of a lane", head_life(&profile.life)),
        ("Life in the switch", life(profile.life.in_switch)),
    ];
    if let Some(setting) = setting {
        entries.push(("FECN", marking(setting)));
        if setting.credit_threshold > 0 {
            let starved = format!(
                "threshold {}, {}",
                setting.credit_threshold,
                switch_ports(&setting.credit_ports)
            );
            entries.push(("FECN for want of credit", starved));
        }
    }
    entries
}

fn head_life(lives: &PacketLife) -> String {
    let mut text = life(lives.at_head);
    if lives.at_head_to_host != lives.at_head {
        text.push_str(&format!("; to hosts {}", life(lives.at_head_to_host)));
    }
    if let Some(count) = lives.stall_count {
        text.push_str(&format!("; {count} in a row stall a lane"));
    }
    text
}

fn life(life: Option<Span>) -> String {
    life.map_or("for ever".to_owned(), |life| life.to_string())
}

fn forwarding(forwarding: Forwarding, latency: Span) -> String {
    match forwarding {
        Forwarding::StoreAndForward => format!("store and forward, {} latency", or_none(latency)),
        Forwarding::CutThrough { header } => {
            format!("cut-through after {header}, {} latency", or_none(latency))
        }
    }
}

fn switch(profile: &SwitchProfile) -> Vec<Entry> {
    let mut entries = vec![
        (
            "Buffer",
            format!(
                "{} in cells of {}{}",
                profile.buffer.total,
                profile.buffer.cell,
                match profile.buffer.accounting {
                    BufferAccounting::SharedBuffer => "",
                    BufferAccounting::Hpcc => ", accounted as in HPCC",
                }
            ),
        ),
        (
            "Forwarding",
            forwarding(profile.forwarding, profile.latency),
        ),
        (
            "Next hop",
            match profile.load_balancing {
                LoadBalancing::EcmpHash => "ECMP by hash",
                LoadBalancing::EcmpQueuePair => "ECMP by hash, over the queue pair too",
                LoadBalancing::EcmpHpcc => "ECMP by HPCC's hash",
                LoadBalancing::SprayRandom => "each packet by chance",
                LoadBalancing::SprayRoundRobin => "each packet in turn",
                LoadBalancing::Adaptive => "each packet to the shortest queue",
            }
            .to_owned(),
        ),
    ];
    for (index, class) in profile.classes.iter().enumerate() {
        if class.lossless {
            entries.push(("Lossless class", format!("{index}: {}", lossless(class))));
        }
    }
    if let Some(class) = profile.classes.iter().find(|class| !class.ecn.is_empty()) {
        let marks = class.ecn.iter().map(|ecn| {
            let rate = ecn.rate.map_or(String::new(), |rate| format!("{rate}: "));
            format!(
                "{rate}{} to {}, at most {}",
                ecn.kmin,
                ecn.kmax,
                format::percent(ecn.pmax)
            )
        });
        entries.push(("ECN", marks.collect::<Vec<_>>().join("; ")));
    }
    entries.push((
        "PFC watchdog",
        profile.watchdog.map_or("none".to_owned(), |watchdog| {
            format!("after {}", watchdog.detection)
        }),
    ));
    entries
}

fn lossless(class: &ClassProfile) -> String {
    let threshold = match class.ingress.threshold {
        Alpha::Dynamic(exponent) => format!("XOFF at 2^{exponent} of what is free"),
        Alpha::Static(bytes) => format!("XOFF at {bytes}"),
        Alpha::Unlimited => "no XOFF".to_owned(),
    };
    let headroom = class
        .ingress
        .headroom
        .map_or("headroom by rate, cable and MTU".to_owned(), |bytes| {
            format!("headroom {bytes}")
        });
    format!("{threshold}, {headroom}")
}

fn host(profile: &HostProfile, plan: &Plan) -> Vec<Entry> {
    let nic = &profile.nic;
    let infiniband = plan.link_layer.infiniband();
    let is_controlled = infiniband.is_some_and(|settings| settings.congestion.is_some());
    vec![
        (
            "Addressing",
            match profile.addressing {
                _ if plan.link_layer.infiniband().is_some() => "InfiniBand",
                Addressing::RoceV2Ipv4 => "RoCEv2 over IPv4",
                Addressing::RoceV2Ipv6 => "RoCEv2 over IPv6",
                Addressing::RoceV1 => "RoCEv1",
            }
            .to_owned(),
        ),
        ("MTU", nic.mtu.to_string()),
        (
            "Rate control",
            match &nic.rate_control {
                RateControlConfig::None if is_controlled => "the fabric's".to_owned(),
                RateControlConfig::None => "none: line rate".to_owned(),
                RateControlConfig::Fixed { rate } => format!("fixed, {rate}"),
                RateControlConfig::DcqcnPaper(_) => "DCQCN as in its paper".to_owned(),
                RateControlConfig::DcqcnNic(_) => "DCQCN as NICs run it".to_owned(),
                RateControlConfig::InjectionDelay(_) => "InfiniBand's injection delay".to_owned(),
            },
        ),
        (
            "Window",
            nic.window
                .map_or("none".to_owned(), |window| window.to_string()),
        ),
        (
            "Loss recovery",
            match nic.loss_recovery {
                LossRecovery::GoBackN => "go-back-N".to_owned(),
                LossRecovery::GoBackZero => "go-back-0".to_owned(),
                LossRecovery::SelectiveRepeat { .. } => "selective repeat".to_owned(),
            },
        ),
        (
            "Marks answered by",
            match nic.notification {
                NotificationPoint::Off if is_controlled => "BECN on acknowledgements".to_owned(),
                NotificationPoint::Off => "nothing".to_owned(),
                NotificationPoint::Cnp { interval, .. } => {
                    format!("a CNP, one each {interval} at most")
                }
                NotificationPoint::OnAcknowledgement => "the acknowledgement".to_owned(),
            },
        ),
        (
            "ACK class",
            match nic.acknowledgement_class {
                AcknowledgementClass::Request => "that of the request".to_owned(),
                AcknowledgementClass::Explicit(class) => class.to_string(),
                AcknowledgementClass::RequestUnpausedAtHost => {
                    "that of the request, unpaused at the host".to_owned()
                }
            },
        ),
        ("CNP class", nic.notification_class.to_string()),
        (
            "ACK timeout",
            match nic.timeout {
                0 => "none".to_owned(),
                code => format!(
                    "{}, {} retries",
                    Span::picos(4_096_000 << code.min(31)),
                    nic.retry_count
                ),
            },
        ),
        (
            "Receive path",
            profile
                .receive
                .drain
                .map_or("as fast as packets come".to_owned(), |rate| {
                    rate.to_string()
                }),
        ),
    ]
}

fn or_none(span: Span) -> String {
    if span.is_zero() {
        "no".to_owned()
    } else {
        span.to_string()
    }
}

fn plural(count: usize, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        format::grouped(count as u64),
        if count == 1 { one } else { many }
    )
}
