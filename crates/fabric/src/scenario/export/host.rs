//! From a host's profile to `[host]`.

use softfabric_transport::rate::RateControlConfig;

use super::changed;
use crate::plan::{
    AcknowledgementClass, Arbitration, DataPath, HostProfile, LossRecovery, NotificationPoint,
    ServerProfile, WithinInterval,
};
use crate::scenario::resolve::default_stack;
use crate::scenario::{
    AcknowledgementKind, AcknowledgementRule, ArbitrationKind, CongestionControl, DataPathKind,
    Drain, Host, Limit, LossRecoveryKind, NotificationKind, Server,
};

/// What leads from the profile `base` to `profile`.
///
/// # Errors
/// If no section says so.
pub(super) fn section(profile: &HostProfile, base: &HostProfile) -> Result<Host, String> {
    let (nic, base_nic) = (&profile.nic, &base.nic);
    let congestion_control = changed(&nic.rate_control, &base_nic.rate_control)
        .map(congestion_control)
        .transpose()?;
    // Congestion control has a say in the default of the interval.
    let keeps_notification =
        nic.notification == base_nic.notification && congestion_control.is_none();
    let (notification, cnp_interval) = match nic.notification {
        _ if keeps_notification => (None, None),
        NotificationPoint::Off => (Some(NotificationKind::Off), None),
        NotificationPoint::OnAcknowledgement => (Some(NotificationKind::OnAcknowledgement), None),
        NotificationPoint::Cnp { interval, within } => {
            let kind = match within {
                WithinInterval::Forgotten => NotificationKind::Cnp,
                WithinInterval::Deferred => NotificationKind::CnpWindow,
            };
            (Some(kind), Some(interval))
        }
    };
    let (loss_recovery, bdp_cap) = match nic.loss_recovery {
        _ if nic.loss_recovery == base_nic.loss_recovery => (None, None),
        LossRecovery::GoBackN => (Some(LossRecoveryKind::GoBackN), None),
        LossRecovery::GoBackZero => (Some(LossRecoveryKind::GoBackZero), None),
        LossRecovery::SelectiveRepeat { cap } => {
            let kind = LossRecoveryKind::SelectiveRepeat;
            (Some(kind), Some(Limit::from(cap)))
        }
    };
    let (receive, base_receive) = (&profile.receive, &base.receive);
    Ok(Host {
        names: None,
        preset: None,
        mtu: changed(&nic.mtu, &base_nic.mtu),
        congestion_control,
        window: changed(&nic.window, &base_nic.window).map(Limit::from),
        loss_recovery,
        bdp_cap,
        notification,
        cnp_interval,
        cnp_class: changed(&nic.notification_class, &base_nic.notification_class)
            .map(softfabric_units::Class::as_u8),
        // Flows say it themselves.
        source_port: None,
        acknowledge_every: changed(&nic.acknowledge_every, &base_nic.acknowledge_every),
        acknowledgement_class: changed(&nic.acknowledgement_class, &base_nic.acknowledgement_class)
            .map(|class| match class {
                AcknowledgementClass::Explicit(class) => AcknowledgementKind::Number(class.as_u8()),
                AcknowledgementClass::Request => {
                    AcknowledgementKind::Rule(AcknowledgementRule::Request)
                }
                AcknowledgementClass::RequestUnpausedAtHost => {
                    AcknowledgementKind::Rule(AcknowledgementRule::RequestUnpausedAtHost)
                }
            }),
        arbitration: changed(&nic.arbitration, &base_nic.arbitration).map(|arbitration| {
            match arbitration {
                Arbitration::ControlFirst => ArbitrationKind::ControlFirst,
                Arbitration::RoundRobin => ArbitrationKind::RoundRobin,
            }
        }),
        timeout: changed(&nic.timeout, &base_nic.timeout),
        retry: changed(&nic.retry_count, &base_nic.retry_count),
        rnr_retry: changed(&nic.rnr_retry, &base_nic.rnr_retry),
        max_reads: changed(&nic.max_reads, &base_nic.max_reads),
        lossless: changed(&profile.lossless, &base.lossless)
            .map(|mask| mask.iter().map(softfabric_units::Class::as_u8).collect()),
        pause_quanta: changed(&profile.pause_quanta, &base.pause_quanta)
            .map(Option::unwrap_or_default),
        drain: changed(&receive.drain, &base_receive.drain).map(Drain::from),
        receive_buffer: changed(&receive.buffer, &base_receive.buffer),
        receive_xoff: changed(&receive.xoff, &base_receive.xoff),
        receive_xon: changed(&receive.xon, &base_receive.xon),
        server: changed(&profile.server, &base.server).map(|server| inside(&server)),
        tcp: super::tcp::section(profile.tcp.as_ref(), base.tcp.as_ref(), &default_stack())?,
    })
}

fn congestion_control(config: RateControlConfig) -> Result<CongestionControl, String> {
    Ok(match config {
        RateControlConfig::None => CongestionControl::None {},
        RateControlConfig::Fixed { rate } => CongestionControl::Fixed { rate },
        RateControlConfig::DcqcnPaper(found) => CongestionControl::DcqcnPaper {
            alpha_gain: Some(found.alpha_gain),
            alpha_period: Some(found.alpha_period),
            increase_period: Some(found.increase_period),
            byte_counter: Some(found.byte_counter.into()),
            fast_recovery_stages: Some(found.fast_recovery_stages),
            additive_increase: Some(found.additive_increase),
            hyper_increase: Some(found.hyper_increase),
            minimum_rate: Some(found.minimum_rate),
            restart_rate: found.restart_rate,
        },
        RateControlConfig::DcqcnNic(found) => CongestionControl::DcqcnNic {
            defaults: None,
            alpha_gain: Some(found.alpha_gain),
            initial_alpha: Some(found.initial_alpha),
            alpha_period: Some(found.alpha_period),
            decrease_period: Some(found.decrease_period),
            first_decrease_delay: Some(found.first_decrease_delay),
            decrease_share: Some(found.decrease_share),
            minimum_decrease_factor: Some(found.minimum_decrease_factor),
            rate_on_first_notification: found.rate_on_first_notification,
            clamp_target: Some(found.clamp_target),
            clamp_target_after_timer: Some(found.clamp_target_after_timer),
            minimum_rate: Some(found.minimum_rate),
            maximum_rate: found.maximum_rate,
            increase_period: Some(found.increase_period),
            byte_counter: Some(found.byte_counter.into()),
            fast_recovery_stages: Some(found.fast_recovery_stages),
            additive_increase: Some(found.additive_increase),
            hyper_increase: Some(found.hyper_increase),
            release_at_maximum: Some(found.release_at_maximum),
            restart_rate: found.restart_rate,
        },
        RateControlConfig::InjectionDelay(_) => {
            return Err("a NIC has InfiniBand's rate control of its own".to_owned());
        }
    })
}

/// Everything inside a server.
fn inside(server: &ServerProfile) -> Server {
    let staging = match &server.data_path {
        DataPath::Direct => None,
        DataPath::Staged(staging) => Some(staging),
    };
    Server {
        topology: None,
        accelerator_rate: Some(server.accelerator_rate),
        accelerator_latency: Some(server.accelerator_latency),
        data_path: Some(match staging {
            None => DataPathKind::Direct,
            Some(_) => DataPathKind::Staged,
        }),
        pcie_rate: staging.map(|staging| staging.uplink),
        pcie_sharing: staging.map(|staging| staging.sharing),
        copy_latency: staging.map(|staging| staging.latency),
        copy_processor_time: staging.map(|staging| staging.processor),
        post_time: Some(server.post),
        complete_time: Some(server.complete),
        slowness: Some(server.slowness),
    }
}
