//! `[host]` and `[[host_group]]`: the profiles of hosts.

use softfabric_transport::rate::{DcqcnNicParameters, DcqcnPaperParameters, RateControlConfig};
use softfabric_units::{Class, ClassMask, Rate, Span};

use super::defaults::{NIC_INTERVAL, PAPER_INTERVAL, host_profile};
use super::machine::Machines;
use super::select;
use super::switches::set;
use crate::import::nccl::NodeTopology;
use crate::plan::{
    AcknowledgementClass, Addressing, Arbitration, DataPath, HostProfile, LossRecovery, Network,
    NodeKind, NotificationPoint, Staging, WithinInterval,
};
use crate::preset;
use crate::scenario::error::{Problems, did_you_mean};
use crate::scenario::names::{Names, Wanted};
use crate::scenario::{
    AcknowledgementKind, AcknowledgementRule, ArbitrationKind, CongestionControl, DataPathKind,
    DcqcnDefaults, FabricKind, Host, LossRecoveryKind, NotificationKind, Scenario, Server,
};

pub(super) fn profiles(
    scenario: &Scenario,
    network: &mut Network,
    lossless: ClassMask,
    machines: &Machines,
    problems: &mut Problems<'_>,
) -> Vec<HostProfile> {
    if scenario.host.names.is_some() {
        let advice = Some("write it in `[[host_group]]`".to_owned());
        problems.add("host.names", "names", "settings of all hosts", advice);
    }
    let addressing = match (scenario.fabric.kind, scenario.fabric.ip) {
        (Some(FabricKind::RoceV1), _) => Addressing::RoceV1,
        (_, Some(6)) => Addressing::RoceV2Ipv6,
        _ => Addressing::RoceV2Ipv4,
    };
    let line = line_rate(network);
    let mut base = host_profile(lossless, addressing);
    let machine = machines.of_profile(0);
    apply(&scenario.host, &mut base, line, machine, "host", problems);
    let mut profiles = vec![base];
    for (place, group) in scenario.host_group.iter().enumerate() {
        let field = format!("host_group[{place}]");
        let mut profile = profiles[0].clone();
        let own = group
            .server
            .as_ref()
            .is_some_and(|it| it.topology.is_some());
        let machine = machines.of_profile(place + 1).filter(|_| own);
        apply(group, &mut profile, line, machine, &field, problems);
        let index = profiles.len() as u32;
        profiles.push(profile);
        let patterns = group.names.as_deref().unwrap_or(&[]);
        if patterns.is_empty() {
            let allowed = "the names of hosts, such as [\"h0..h3\"]";
            problems.add(format!("{field}.names"), "nothing", allowed, None);
        }
        let names = Names::new(network);
        let field = format!("{field}.names");
        let selected = select(&names, patterns, Wanted::Host, &field, problems);
        for node in selected {
            if let NodeKind::Host { profile, .. } = &mut network.nodes[node.index()].kind {
                *profile = index;
            }
        }
    }
    profiles
}

/// The rate of the first host's first link: what `defaults = "hpcc"` scales to.
fn line_rate(network: &Network) -> Rate {
    let is_host = |node: crate::plan::NodeId| {
        matches!(network.nodes[node.index()].kind, NodeKind::Host { .. })
    };
    (network.links.iter())
        .find(|link| is_host(link.a.node) || is_host(link.b.node))
        .map_or(Rate::gbps(100), |link| link.rate)
}

/// Lays a section over a profile; `machine` is what its own file says of what is inside.
fn apply(
    from: &Host,
    to: &mut HostProfile,
    line: Rate,
    machine: Option<&NodeTopology>,
    field: &str,
    problems: &mut Problems<'_>,
) {
    if let Some(name) = &from.preset {
        preset(name, to, line, field, problems);
    }
    if let Some(settings) = &from.tcp {
        let field = format!("{field}.tcp");
        to.tcp = Some(super::tcp::stack(settings, to.tcp, &field, problems));
    }
    let nic = &mut to.nic;
    if let Some(mtu) = from.mtu {
        if mtu.is_zero() || mtu.as_u64() > 65_535 {
            let allowed = "256B, 512B, 1024B, 2048B or 4096B";
            problems.add(format!("{field}.mtu"), mtu.to_string(), allowed, None);
        }
        nic.mtu = mtu;
    }
    if let Some(control) = &from.congestion_control {
        nic.rate_control = rate_control(control, line);
        if let Err(error) = nic.rate_control.check() {
            problems.add(
                format!("{field}.congestion_control.{}", error.parameter),
                error.found,
                error.needed,
                None,
            );
        }
    }
    if let Some(window) = from.window {
        nic.window = window.value();
        if nic.window.is_some_and(softfabric_units::Bytes::is_zero) {
            let allowed = "an amount above zero, or `none`";
            problems.add(format!("{field}.window"), "zero", allowed, None);
        }
    }
    let cap = from.bdp_cap.map_or_else(
        || match nic.loss_recovery {
            LossRecovery::SelectiveRepeat { cap } => cap,
            LossRecovery::GoBackN | LossRecovery::GoBackZero => None,
        },
        crate::scenario::Limit::value,
    );
    match from.loss_recovery {
        Some(LossRecoveryKind::GoBackN) => nic.loss_recovery = LossRecovery::GoBackN,
        Some(LossRecoveryKind::GoBackZero) => nic.loss_recovery = LossRecovery::GoBackZero,
        Some(LossRecoveryKind::SelectiveRepeat) => {
            nic.loss_recovery = LossRecovery::SelectiveRepeat { cap };
        }
        None => {
            if let LossRecovery::SelectiveRepeat { .. } = nic.loss_recovery {
                nic.loss_recovery = LossRecovery::SelectiveRepeat { cap };
            }
        }
    }
    let selective = matches!(nic.loss_recovery, LossRecovery::SelectiveRepeat { .. });
    if from.bdp_cap.is_some() && !selective {
        problems.add(
            format!("{field}.bdp_cap"),
            "a cap without selective repeat",
            "only with `loss_recovery = \"selective_repeat\"`",
            None,
        );
    }
    notification(from, to, field, problems);
    control_packets(from, to);
    let nic = &mut to.nic;
    set(&mut nic.timeout, from.timeout);
    set(&mut nic.retry_count, from.retry);
    set(&mut nic.rnr_retry, from.rnr_retry);
    set(&mut nic.max_reads, from.max_reads);
    if let Some(classes) = &from.lossless {
        to.lossless = (classes.iter())
            .filter_map(|class| Class::checked(*class))
            .fold(ClassMask::NONE, ClassMask::with);
    }
    if let Some(quanta) = from.pause_quanta {
        to.pause_quanta = Some(quanta).filter(|quanta| *quanta > 0);
    }
    receive_path(from, to, field, problems);
    if to.tcp.is_some() && to.server.data_path == DataPath::Direct {
        to.server.data_path = DataPath::Staged(STAGING);
    }
    if let Some(machine) = machine {
        super::machine::apply(machine, to.tcp.is_some(), &mut to.server);
    }
    if let Some(server) = &from.server {
        inside(server, to, field, problems);
    }
}

/// What is inside a server.
fn inside(from: &Server, to: &mut HostProfile, field: &str, problems: &mut Problems<'_>) {
    let server = &mut to.server;
    set(&mut server.accelerator_rate, from.accelerator_rate);
    set(&mut server.accelerator_latency, from.accelerator_latency);
    set(&mut server.post, from.post_time);
    set(&mut server.complete, from.complete_time);
    set(&mut server.slowness, from.slowness);
    match from.data_path {
        Some(DataPathKind::Direct) if to.tcp.is_some() => problems.add(
            format!("{field}.server.data_path"),
            "`direct`, which is GPUDirect RDMA, on a host that speaks TCP",
            "`staged`: sockets take data from host memory",
            None,
        ),
        Some(DataPathKind::Direct) => server.data_path = DataPath::Direct,
        Some(DataPathKind::Staged) if server.data_path == DataPath::Direct => {
            server.data_path = DataPath::Staged(STAGING);
        }
        Some(DataPathKind::Staged) | None => {}
    }
    match &mut server.data_path {
        DataPath::Staged(staging) => {
            set(&mut staging.uplink, from.pcie_rate);
            set(&mut staging.sharing, from.pcie_sharing);
            set(&mut staging.latency, from.copy_latency);
            set(&mut staging.processor, from.copy_processor_time);
        }
        DataPath::Direct => {
            for (name, given) in [
                ("pcie_rate", from.pcie_rate.is_some()),
                ("pcie_sharing", from.pcie_sharing.is_some()),
                ("copy_latency", from.copy_latency.is_some()),
                ("copy_processor_time", from.copy_processor_time.is_some()),
            ] {
                if given {
                    problems.add(
                        format!("{field}.server.{name}"),
                        "a setting of copies through host memory",
                        "only with `data_path = \"staged\"`",
                        None,
                    );
                }
            }
        }
    }
}

/// Copies through host memory, over PCIe of the fifth generation with 16 lanes: 63.0 GB/s raw, 57.6 GB/s with payloads of
/// 256 B. Starting a copy takes some microseconds, of the processor too.
pub(super) const STAGING: Staging = Staging {
    uplink: Rate::mbps(460_800),
    sharing: 1,
    latency: Span::micros(5),
    processor: Span::micros(5),
};

fn notification(from: &Host, to: &mut HostProfile, field: &str, problems: &mut Problems<'_>) {
    let (fallback, within) = match (to.nic.notification, &from.congestion_control) {
        (_, Some(CongestionControl::DcqcnNic { .. })) => (NIC_INTERVAL, WithinInterval::Forgotten),
        (_, Some(_)) => (PAPER_INTERVAL, WithinInterval::Forgotten),
        (NotificationPoint::Cnp { interval, within }, None) => (interval, within),
        (NotificationPoint::Off | NotificationPoint::OnAcknowledgement, None) => {
            (NIC_INTERVAL, WithinInterval::Forgotten)
        }
    };
    let interval = from.cnp_interval.unwrap_or(fallback);
    let cnp = |within| NotificationPoint::Cnp { interval, within };
    let before = to.nic.notification;
    to.nic.notification = match from.notification {
        Some(NotificationKind::Off) => NotificationPoint::Off,
        Some(NotificationKind::OnAcknowledgement) => NotificationPoint::OnAcknowledgement,
        Some(NotificationKind::Cnp) => cnp(WithinInterval::Forgotten),
        Some(NotificationKind::CnpWindow) => cnp(WithinInterval::Deferred),
        None if matches!(before, NotificationPoint::Cnp { .. }) => cnp(within),
        None => before,
    };
    let sends_cnps = matches!(to.nic.notification, NotificationPoint::Cnp { .. });
    if from.cnp_interval.is_some() && !sends_cnps {
        problems.add(
            format!("{field}.cnp_interval"),
            "an interval without CNPs",
            "only with `notification = \"cnp\"`",
            None,
        );
    }
}

fn control_packets(from: &Host, to: &mut HostProfile) {
    let nic = &mut to.nic;
    set(
        &mut nic.notification_class,
        from.cnp_class.and_then(Class::checked),
    );
    set(&mut nic.acknowledge_every, from.acknowledge_every);
    match from.acknowledgement_class {
        Some(AcknowledgementKind::Number(number)) => {
            if let Some(class) = Class::checked(number) {
                nic.acknowledgement_class = AcknowledgementClass::Explicit(class);
            }
        }
        Some(AcknowledgementKind::Rule(AcknowledgementRule::Request)) => {
            nic.acknowledgement_class = AcknowledgementClass::Request;
        }
        Some(AcknowledgementKind::Rule(AcknowledgementRule::RequestUnpausedAtHost)) => {
            nic.acknowledgement_class = AcknowledgementClass::RequestUnpausedAtHost;
        }
        None => {}
    }
    match from.arbitration {
        Some(ArbitrationKind::ControlFirst) => nic.arbitration = Arbitration::ControlFirst,
        Some(ArbitrationKind::RoundRobin) => nic.arbitration = Arbitration::RoundRobin,
        None => {}
    }
}

fn receive_path(from: &Host, to: &mut HostProfile, field: &str, problems: &mut Problems<'_>) {
    let receive = &mut to.receive;
    if let Some(drain) = from.drain {
        receive.drain = drain.value();
        if receive.drain.is_some_and(Rate::is_zero) {
            let allowed = "a rate above zero, or `unlimited`";
            problems.add(format!("{field}.drain"), "zero", allowed, None);
        }
    }
    set(&mut receive.buffer, from.receive_buffer);
    set(&mut receive.xoff, from.receive_xoff);
    set(&mut receive.xon, from.receive_xon);
    if receive.xon > receive.xoff {
        let found = format!("{}, above `receive_xoff`, {}", receive.xon, receive.xoff);
        problems.add(
            format!("{field}.receive_xon"),
            found,
            "at most `receive_xoff`",
            None,
        );
    }
    if receive.xoff > receive.buffer {
        let found = format!(
            "{}, above `receive_buffer`, {}",
            receive.xoff, receive.buffer
        );
        let allowed = "less than `receive_buffer`";
        problems.add(format!("{field}.receive_xoff"), found, allowed, None);
    }
}

/// The parameters that a scenario asks for, on a line of this rate.
pub(crate) fn rate_control(control: &CongestionControl, line: Rate) -> RateControlConfig {
    match control {
        CongestionControl::None {} => RateControlConfig::None,
        CongestionControl::Fixed { rate } => RateControlConfig::Fixed { rate: *rate },
        CongestionControl::DcqcnPaper {
            alpha_gain,
            alpha_period,
            increase_period,
            byte_counter,
            fast_recovery_stages,
            additive_increase,
            hyper_increase,
            minimum_rate,
            restart_rate,
        } => {
            let mut to = DcqcnPaperParameters::sigcomm15();
            set(&mut to.alpha_gain, *alpha_gain);
            set(&mut to.alpha_period, *alpha_period);
            set(&mut to.increase_period, *increase_period);
            set(
                &mut to.byte_counter,
                byte_counter.map(crate::scenario::ByteCounter::value),
            );
            set(&mut to.fast_recovery_stages, *fast_recovery_stages);
            set(&mut to.additive_increase, *additive_increase);
            set(&mut to.hyper_increase, *hyper_increase);
            set(&mut to.minimum_rate, *minimum_rate);
            to.restart_rate = restart_rate.or(to.restart_rate);
            RateControlConfig::DcqcnPaper(to)
        }
        CongestionControl::DcqcnNic {
            defaults,
            alpha_gain,
            initial_alpha,
            alpha_period,
            decrease_period,
            first_decrease_delay,
            decrease_share,
            minimum_decrease_factor,
            rate_on_first_notification,
            clamp_target,
            clamp_target_after_timer,
            minimum_rate,
            maximum_rate,
            increase_period,
            byte_counter,
            fast_recovery_stages,
            additive_increase,
            hyper_increase,
            release_at_maximum,
            restart_rate,
        } => {
            let mut to = match defaults {
                Some(DcqcnDefaults::Hpcc) => DcqcnNicParameters::hpcc(line),
                Some(DcqcnDefaults::Nvidia) | None => DcqcnNicParameters::nvidia_default(),
            };
            set(&mut to.alpha_gain, *alpha_gain);
            set(&mut to.initial_alpha, *initial_alpha);
            set(&mut to.alpha_period, *alpha_period);
            set(&mut to.decrease_period, *decrease_period);
            set(&mut to.first_decrease_delay, *first_decrease_delay);
            set(&mut to.decrease_share, *decrease_share);
            set(&mut to.minimum_decrease_factor, *minimum_decrease_factor);
            to.rate_on_first_notification =
                rate_on_first_notification.or(to.rate_on_first_notification);
            set(&mut to.clamp_target, *clamp_target);
            set(&mut to.clamp_target_after_timer, *clamp_target_after_timer);
            set(&mut to.minimum_rate, *minimum_rate);
            to.maximum_rate = maximum_rate.or(to.maximum_rate);
            set(&mut to.increase_period, *increase_period);
            set(
                &mut to.byte_counter,
                byte_counter.map(crate::scenario::ByteCounter::value),
            );
            set(&mut to.fast_recovery_stages, *fast_recovery_stages);
            set(&mut to.additive_increase, *additive_increase);
            set(&mut to.hyper_increase, *hyper_increase);
            set(&mut to.release_at_maximum, *release_at_maximum);
            to.restart_rate = restart_rate.or(to.restart_rate);
            RateControlConfig::DcqcnNic(to)
        }
    }
}

/// A preset says nothing of addresses, and which classes are lossless is for the switches to say.
fn preset(name: &str, to: &mut HostProfile, line: Rate, field: &str, problems: &mut Problems<'_>) {
    if let Some(preset) = preset::nic(name) {
        *to = HostProfile {
            addressing: to.addressing,
            lossless: to.lossless,
            tcp: to.tcp,
            ..preset.profile(line)
        };
        return;
    }
    let known: Vec<_> = preset::nic_names().collect();
    let found = format!("`{name}`, which is not a NIC preset");
    let advice = did_you_mean(name, known.iter().copied());
    problems.add(format!("{field}.preset"), found, known.join(", "), advice);
}
