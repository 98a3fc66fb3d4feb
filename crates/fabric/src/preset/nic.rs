//! What a preset of a NIC is, and the profile that comes out of it.

use softfabric_transport::rate::{DcqcnNicParameters, RateControlConfig};
use softfabric_units::{Bytes, Class, ClassMask, Rate, Span};

use super::switch::show;
use super::{Sourced, Value};
use crate::plan::{
    AcknowledgementClass, Addressing, Arbitration, HostProfile, LossRecovery, NicProfile,
    NotificationPoint, ReceivePath, ServerProfile,
};

/// A NIC with its settings.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NicPreset {
    /// The name to ask for.
    pub name: &'static str,
    /// Other names for the same.
    pub aliases: &'static [&'static str],
    /// What it stands for.
    pub summary: &'static str,
    /// Payload of a full packet.
    pub mtu: Sourced<Bytes>,
    /// The sender's rate control, by line rate.
    pub rate_control: Sourced<fn(Rate) -> DcqcnNicParameters>,
    /// What a lost packet costs.
    pub loss_recovery: Sourced<LossRecovery>,
    /// What the receiver does with CE.
    pub notification: Sourced<NotificationPoint>,
    /// The class of CNPs.
    pub notification_class: Sourced<Class>,
    /// The DSCP of CNPs; none where they have no packet of their own.
    pub notification_dscp: Sourced<Option<u8>>,
    /// An acknowledgement for each so many packets.
    pub acknowledge_every: Sourced<u32>,
    /// The class of acknowledgements.
    pub acknowledgement_class: Sourced<AcknowledgementClass>,
    /// Who sends next.
    pub arbitration: Sourced<Arbitration>,
    /// The local ACK timeout code; 0 waits for ever.
    pub timeout: Sourced<u8>,
    /// How often a request is sent again.
    pub retry_count: Sourced<u8>,
    /// How often a receiver that is not ready is tried again.
    pub rnr_retry: Sourced<u8>,
    /// Outstanding reads and atomics.
    pub max_reads: Sourced<u8>,
    /// The receive buffer, and where pause and resume are sent.
    pub receive: Sourced<ReceivePath>,
    /// The lossless classes.
    pub lossless: Sourced<&'static [u8]>,
    /// How long a pause frame asks for; none until a resume frame.
    pub pause_quanta: Sourced<Option<u16>>,
}

impl NicPreset {
    /// The profile that the engine takes, for a line of this rate.
    pub fn profile(&self, line: Rate) -> HostProfile {
        let lossless = self.lossless.value.iter();
        HostProfile {
            tcp: None,
            nic: NicProfile {
                mtu: self.mtu.value,
                rate_control: RateControlConfig::DcqcnNic((self.rate_control.value)(line)),
                window: None,
                loss_recovery: self.loss_recovery.value,
                notification: self.notification.value,
                acknowledge_every: self.acknowledge_every.value,
                acknowledgement_class: self.acknowledgement_class.value,
                notification_class: self.notification_class.value,
                arbitration: self.arbitration.value,
                timeout: self.timeout.value,
                retry_count: self.retry_count.value,
                rnr_retry: self.rnr_retry.value,
                max_reads: self.max_reads.value,
            },
            addressing: Addressing::RoceV2Ipv4,
            receive: self.receive.value,
            lossless: lossless.fold(ClassMask::NONE, |mask, class| mask.with(Class::new(*class))),
            pause_quanta: self.pause_quanta.value,
            server: ServerProfile::default(),
        }
    }

    /// What it sets, for people; rate control at 100 Gb/s.
    pub fn values(&self) -> Vec<Value> {
        let mut values = vec![show("mtu", self.mtu, |bytes| bytes.to_string())];
        values.extend(self.rate_control_values());
        values.extend([
            show("loss_recovery", self.loss_recovery, loss_recovery),
            show("notification", self.notification, notification),
            show("notification_class", self.notification_class, |class| {
                class.to_string()
            }),
            show("notification_dscp", self.notification_dscp, |dscp| {
                dscp.map_or("none".to_owned(), |dscp| dscp.to_string())
            }),
            show("acknowledge_every", self.acknowledge_every, |packets| {
                format!("{packets} packets")
            }),
            show(
                "acknowledgement_class",
                self.acknowledgement_class,
                acknowledgement_class,
            ),
            show("arbitration", self.arbitration, |order| {
                match order {
                    Arbitration::ControlFirst => "control first",
                    Arbitration::RoundRobin => "in turn",
                }
                .to_owned()
            }),
            show("timeout", self.timeout, timeout),
            show("retry_count", self.retry_count, |count| count.to_string()),
            show("rnr_retry", self.rnr_retry, |count| count.to_string()),
            show("max_reads", self.max_reads, |count| count.to_string()),
            show("receive", self.receive, |receive| {
                let drain = receive
                    .drain
                    .map_or("as fast as they come".to_owned(), |rate| rate.to_string());
                format!(
                    "{} buffer, XOFF above {}, XON at {}, drained {drain}",
                    receive.buffer, receive.xoff, receive.xon
                )
            }),
            show("lossless", self.lossless, |classes| format!("{classes:?}")),
            show("pause_quanta", self.pause_quanta, |quanta| {
                quanta.map_or("until resumed".to_owned(), |quanta| quanta.to_string())
            }),
        ]);
        values
    }

    /// Rate control, one value for each of its fields.
    fn rate_control_values(&self) -> Vec<Value> {
        let parameters = (self.rate_control.value)(Rate::gbps(100));
        let optional =
            |rate: Option<Rate>, none: &str| rate.map_or(none.to_owned(), |rate| rate.to_string());
        let counter = parameters
            .byte_counter
            .map_or("off".to_owned(), |bytes| bytes.to_string());
        let fields = [
            ("rate.alpha_gain", parameters.alpha_gain.to_string()),
            ("rate.initial_alpha", parameters.initial_alpha.to_string()),
            ("rate.alpha_period", parameters.alpha_period.to_string()),
            (
                "rate.decrease_period",
                parameters.decrease_period.to_string(),
            ),
            ("rate.decrease_share", parameters.decrease_share.to_string()),
            (
                "rate.minimum_decrease_factor",
                parameters.minimum_decrease_factor.to_string(),
            ),
            (
                "rate.rate_on_first_notification",
                optional(parameters.rate_on_first_notification, "unchanged"),
            ),
            ("rate.clamp_target", parameters.clamp_target.to_string()),
            (
                "rate.clamp_target_after_timer",
                parameters.clamp_target_after_timer.to_string(),
            ),
            ("rate.minimum_rate", parameters.minimum_rate.to_string()),
            (
                "rate.maximum_rate",
                optional(parameters.maximum_rate, "line rate"),
            ),
            (
                "rate.increase_period",
                parameters.increase_period.to_string(),
            ),
            ("rate.byte_counter", counter),
            (
                "rate.fast_recovery_stages",
                parameters.fast_recovery_stages.to_string(),
            ),
            (
                "rate.additive_increase",
                parameters.additive_increase.to_string(),
            ),
            ("rate.hyper_increase", parameters.hyper_increase.to_string()),
            (
                "rate.release_at_maximum",
                parameters.release_at_maximum.to_string(),
            ),
        ];
        fields
            .into_iter()
            .map(|(field, value)| Value {
                field,
                value,
                source: self.rate_control.source,
            })
            .collect()
    }
}

fn loss_recovery(recovery: LossRecovery) -> String {
    match recovery {
        LossRecovery::GoBackN => "go back N".to_owned(),
        LossRecovery::GoBackZero => "go back 0".to_owned(),
        LossRecovery::SelectiveRepeat { cap: None } => "selective repeat".to_owned(),
        LossRecovery::SelectiveRepeat { cap: Some(cap) } => {
            format!("selective repeat, at most {cap} in flight")
        }
    }
}

fn notification(point: NotificationPoint) -> String {
    match point {
        NotificationPoint::Off => "off".to_owned(),
        NotificationPoint::Cnp { interval, .. } => format!("a CNP each {interval} at most"),
        NotificationPoint::OnAcknowledgement => "on the acknowledgement".to_owned(),
    }
}

fn acknowledgement_class(class: AcknowledgementClass) -> String {
    match class {
        AcknowledgementClass::Request => "the request's".to_owned(),
        AcknowledgementClass::Explicit(class) => class.to_string(),
        AcknowledgementClass::RequestUnpausedAtHost => {
            "the request's, never paused at the host".to_owned()
        }
    }
}

fn timeout(code: u8) -> String {
    if code == 0 {
        return "never".to_owned();
    }
    format!("{code}: {}", Span::nanos(4_096) * (1 << code))
}
