//! `[host]` and `[[host_group]]`: what hosts and their NICs do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softfabric_units::{Bytes, Rate, Span};

use super::job::Server;
use super::quantity::{ByteCounter, BytesText, Drain, Limit, RateText, SpanText};
use super::tcp::TcpSettings;

/// What hosts and their NICs do. `[host]` is for all of them, `[[host_group]]` changes it for some.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Only in `[[host_group]]`: which hosts, by name, range `h0..h3` (both included) or pattern `h*`.
    pub names: Option<Vec<String>>,
    /// A real NIC to start from; what else is given here overrides it.
    pub preset: Option<String>,
    /// Payload of a full packet. Default: `4096B`.
    #[schemars(with = "Option<BytesText>")]
    pub mtu: Option<Bytes>,
    /// How senders react to congestion. Default: `dcqcn_nic`.
    pub congestion_control: Option<CongestionControl>,
    /// At most so many unacknowledged bytes a queue pair. Default: `none`.
    pub window: Option<Limit>,
    /// What a lost packet costs. Default: `go_back_n`.
    pub loss_recovery: Option<LossRecoveryKind>,
    /// With `selective_repeat`: at most so many bytes in flight, the bandwidth-delay product in IRN. Default: `none`.
    pub bdp_cap: Option<Limit>,
    /// What a receiver does with marked packets. Default: `cnp`.
    pub notification: Option<NotificationKind>,
    /// At most one CNP a queue pair in this time. Default: `4us` with `dcqcn_nic`, else `50us`.
    #[schemars(with = "Option<SpanText>")]
    pub cnp_interval: Option<Span>,
    /// The class of CNPs. Default: 6.
    #[schemars(range(min = 0, max = 7))]
    pub cnp_class: Option<u8>,
    /// The UDP source port of all its queue pairs, by which ECMP tells them apart: with one for all, only addresses do. Default:
    /// each queue pair has its own, from 49152 on, as NICs make it from its number.
    pub source_port: Option<u16>,
    /// An acknowledgement for each so many packets. Default: 1.
    #[schemars(range(min = 1))]
    pub acknowledge_every: Option<u32>,
    /// The class of acknowledgements. Default: `request`.
    pub acknowledgement_class: Option<AcknowledgementKind>,
    /// Who sends next. Default: `control_first`.
    pub arbitration: Option<ArbitrationKind>,
    /// The local ACK timeout t, 4.096 µs · 2ᵗ; 0 waits for ever. Default: 14, which is 67 ms.
    #[schemars(range(min = 0, max = 31))]
    pub timeout: Option<u8>,
    /// How often a request is sent again before the queue pair fails. Default: 7.
    #[schemars(range(min = 0, max = 7))]
    pub retry: Option<u8>,
    /// How often a receiver that is not ready is tried again; 7 is for ever. Default: 7.
    #[schemars(range(min = 0, max = 7))]
    pub rnr_retry: Option<u8>,
    /// Outstanding reads and atomics. Default: 16.
    #[schemars(range(min = 1))]
    pub max_reads: Option<u8>,
    /// The classes in which the NIC obeys and sends pause frames. Default: those of the switches.
    #[schemars(inner(range(min = 0, max = 7)))]
    pub lossless: Option<Vec<u8>>,
    /// How long a pause frame of the NIC asks for, in quanta; 0: until a resume frame. Default: 65535.
    pub pause_quanta: Option<u16>,
    /// How fast memory takes what arrives. Default: `unlimited`.
    pub drain: Option<Drain>,
    /// The NIC's receive buffer. Default: `2MiB`.
    #[schemars(with = "Option<BytesText>")]
    pub receive_buffer: Option<Bytes>,
    /// The NIC sends pause when more than this waits. Default: `1MiB`.
    #[schemars(with = "Option<BytesText>")]
    pub receive_xoff: Option<Bytes>,
    /// And resume when this or less waits. Default: `768KiB`.
    #[schemars(with = "Option<BytesText>")]
    pub receive_xon: Option<Bytes>,
    /// What is inside, for the ranks of jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    /// TCP instead of RDMA.
    pub tcp: Option<TcpSettings>,
}

/// How senders react to congestion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum CongestionControl {
    /// Not at all: line rate.
    None {},
    /// A constant rate.
    Fixed {
        /// The rate.
        #[schemars(with = "RateText")]
        rate: Rate,
    },
    /// DCQCN as its paper describes it (SIGCOMM 2015); the paper's values are the defaults.
    DcqcnPaper {
        /// g, the weight of news in alpha. Default: 1/256.
        #[schemars(range(min = 0, max = 1))]
        alpha_gain: Option<f64>,
        /// How long without a notification until alpha decays. Default: `55us`.
        #[schemars(with = "Option<SpanText>")]
        alpha_period: Option<Span>,
        /// The increase timer. Default: `55us`.
        #[schemars(with = "Option<SpanText>")]
        increase_period: Option<Span>,
        /// The byte counter. Default: `10MB`.
        byte_counter: Option<ByteCounter>,
        /// F, how many increases are fast recovery. Default: 5.
        fast_recovery_stages: Option<u32>,
        /// The step of additive increase. Default: `40Mb/s`.
        #[schemars(with = "Option<RateText>")]
        additive_increase: Option<Rate>,
        /// The step of hyper increase. Default: `400Mb/s`.
        #[schemars(with = "Option<RateText>")]
        hyper_increase: Option<Rate>,
        /// No decrease goes below it. Default: `1Mb/s`.
        #[schemars(with = "Option<RateText>")]
        minimum_rate: Option<Rate>,
        /// The rate after an acknowledgement timeout. Default: unchanged.
        #[schemars(with = "Option<RateText>")]
        restart_rate: Option<Rate>,
    },
    /// DCQCN as NICs run it.
    DcqcnNic {
        /// Whose values are the defaults. Default: `nvidia`.
        defaults: Option<DcqcnDefaults>,
        /// g, the weight of news in alpha.
        #[schemars(range(min = 0, max = 1))]
        alpha_gain: Option<f64>,
        /// Alpha at the first notification.
        #[schemars(range(min = 0, max = 1))]
        initial_alpha: Option<f64>,
        /// The period of the alpha clock.
        #[schemars(with = "Option<SpanText>")]
        alpha_period: Option<Span>,
        /// The period of the decrease clock.
        #[schemars(with = "Option<SpanText>")]
        decrease_period: Option<Span>,
        /// How much later than one period the first decrease comes.
        #[schemars(with = "Option<SpanText>")]
        first_decrease_delay: Option<Span>,
        /// The share of alpha that a decrease takes off.
        #[schemars(range(min = 0, max = 1))]
        decrease_share: Option<f64>,
        /// A decrease leaves at least this share of the rate.
        #[schemars(range(min = 0, max = 1))]
        minimum_decrease_factor: Option<f64>,
        /// The rate at the first notification.
        #[schemars(with = "Option<RateText>")]
        rate_on_first_notification: Option<Rate>,
        /// Each decrease sets the target to the rate.
        clamp_target: Option<bool>,
        /// A decrease does so also if only the timer has raised the rate.
        clamp_target_after_timer: Option<bool>,
        /// No decrease goes below it.
        #[schemars(with = "Option<RateText>")]
        minimum_rate: Option<Rate>,
        /// No increase goes above it.
        #[schemars(with = "Option<RateText>")]
        maximum_rate: Option<Rate>,
        /// The increase timer.
        #[schemars(with = "Option<SpanText>")]
        increase_period: Option<Span>,
        /// The byte counter.
        byte_counter: Option<ByteCounter>,
        /// F, how many increases are fast recovery.
        fast_recovery_stages: Option<u32>,
        /// The step of additive increase.
        #[schemars(with = "Option<RateText>")]
        additive_increase: Option<Rate>,
        /// The step of hyper increase.
        #[schemars(with = "Option<RateText>")]
        hyper_increase: Option<Rate>,
        /// At the maximum rate the limiter is released.
        release_at_maximum: Option<bool>,
        /// The rate after an acknowledgement timeout.
        #[schemars(with = "Option<RateText>")]
        restart_rate: Option<Rate>,
    },
}

/// Whose values are the defaults of `dcqcn_nic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DcqcnDefaults {
    /// What NVIDIA's NICs are shipped with.
    Nvidia,
    /// What the HPCC ns-3 code runs as `dcqcn`, for the rate of the host's link.
    Hpcc,
}

/// What a lost packet costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossRecoveryKind {
    /// All packets from the lost one on are sent again.
    GoBackN,
    /// The whole message is sent again.
    GoBackZero,
    /// Only lost packets are sent again (IRN).
    SelectiveRepeat,
}

/// What a receiver does with marked packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotificationKind {
    /// Nothing.
    Off,
    /// It sends congestion notification packets; a mark within the interval after one is forgotten, as NICs do.
    Cnp,
    /// It sends congestion notification packets; a mark within the interval after one is answered at its end, as DCQCN
    /// was published.
    CnpWindow,
    /// The acknowledgement carries the mark, as in the HPCC ns-3 code.
    OnAcknowledgement,
}

/// The class of acknowledgements: a number, or a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AcknowledgementKind {
    /// This class.
    Number(#[schemars(range(min = 0, max = 7))] u8),
    /// By a rule.
    Rule(AcknowledgementRule),
}

/// Where acknowledgements ride.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AcknowledgementRule {
    /// In the class of the request, obeying its pause.
    Request,
    /// In the class of the request, never paused in the NIC (ACK_HIGH_PRIO of the HPCC ns-3 code).
    RequestUnpausedAtHost,
}

/// Who sends next on a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArbitrationKind {
    /// CNPs and acknowledgements first, then queue pairs in turn.
    ControlFirst,
    /// Acknowledgements in turn with requests.
    RoundRobin,
}
