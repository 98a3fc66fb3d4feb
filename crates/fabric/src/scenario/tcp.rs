//! `[host.tcp]`: hosts that speak TCP instead of RDMA.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softfabric_units::{Bytes, Rate, Span};

use super::quantity::{BytesText, Interval, RateText, SpanText};

/// TCP instead of RDMA. Hosts speak it with `fabric.kind = "tcp"`, or where they have this section. The defaults are Linux's
/// unless noted; of the other settings of hosts, only `lossless` counts beside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpSettings {
    /// The largest IPv4 packet; over IPv6, packets are 20 B longer. Default: `9000B`.
    #[schemars(with = "Option<BytesText>")]
    pub mtu: Option<Bytes>,
    /// How senders react to loss and marks. Default: `cubic`.
    pub congestion_control: Option<TcpCongestionControl>,
    /// Explicit congestion notification, but for flows with `ecn = false`. Default: with `dctcp` true, else false; a group that names
    /// `congestion_control` says it anew.
    pub ecn: Option<bool>,
    /// The initial congestion window in segments. Default: 10.
    #[schemars(range(min = 1))]
    pub initial_window: Option<u32>,
    /// How much may be written that is not acknowledged. Default: `4MiB`.
    #[schemars(with = "Option<BytesText>")]
    pub send_buffer: Option<Bytes>,
    /// How much may wait to be read; up to 1 GiB. Default: `6MiB`.
    #[schemars(with = "Option<BytesText>")]
    pub receive_buffer: Option<Bytes>,
    /// How much an application writes or reads at once; flows with a `message` that is shorter write that. Default:
    /// `128KiB`.
    #[schemars(with = "Option<BytesText>")]
    pub call: Option<Bytes>,
    /// No retransmission timeout is shorter. Default: `200ms`.
    #[schemars(with = "Option<SpanText>")]
    pub minimum_timeout: Option<Span>,
    /// The retransmission timeout before a round trip was measured. Default: `1s`.
    #[schemars(with = "Option<SpanText>")]
    pub initial_timeout: Option<Span>,
    /// How often in a row a segment is sent again before the connection fails. Default: 15.
    pub retries: Option<u32>,
    /// An acknowledgement waits so long for a second segment; `off`: it does not. Default: `40ms`.
    pub delayed_acknowledgement: Option<Interval>,
    /// Selective acknowledgements. Default: true.
    pub sack: Option<bool>,
    /// Timestamps, 12 B a segment. Default: true.
    pub timestamps: Option<bool>,
    /// Segments that are not full wait for acknowledgements. Default: false, as programs that send messages have it.
    pub nagle: Option<bool>,
    /// What it costs the processors.
    pub cpu: Option<CpuSettings>,
}

/// How TCP reacts to loss and marks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TcpCongestionControl {
    /// RFC 5681: half the window on loss, a segment more each round trip.
    Reno {},
    /// RFC 9438.
    Cubic {
        /// C, in segments/s³. Default: 0.4.
        #[schemars(range(min = 0))]
        scale: Option<f64>,
        /// β, what a loss leaves of the window. Default: 0.7.
        #[schemars(range(min = 0, max = 1))]
        decrease: Option<f64>,
        /// A flow that loses again early leaves room to others. Default: true.
        fast_convergence: Option<bool>,
        /// Slow start ends when round trips become longer (RFC 9406). Default: true.
        hystart: Option<bool>,
    },
    /// RFC 8257: the window shrinks by the share of marked packets. Switches have to mark.
    Dctcp {
        /// g, the weight of news in alpha. Default: 1/16.
        #[schemars(range(min = 0, max = 1))]
        gain: Option<f64>,
        /// Alpha at the start. Default: 1.
        #[schemars(range(min = 0, max = 1))]
        initial_alpha: Option<f64>,
    },
}

/// What TCP costs a host's processors. The defaults fit what was measured of Linux in "Understanding Host Network Stack
/// Overheads" (SIGCOMM 2021): about 42 Gb/s on one receiving core, half of its time in copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CpuSettings {
    /// Work takes time. Default: true.
    pub enabled: Option<bool>,
    /// Cores that share the connections. Default: 8.
    #[schemars(range(min = 1))]
    pub cores: Option<u32>,
    /// A read or a write, without its copy. Default: `300ns`.
    #[schemars(with = "Option<SpanText>")]
    pub system_call: Option<Span>,
    /// To wake the application that waits. Default: `1us`.
    #[schemars(with = "Option<SpanText>")]
    pub wake_up: Option<Span>,
    /// How fast what is written is copied. Default: `180Gb/s`.
    #[schemars(with = "Option<RateText>")]
    pub write_copy: Option<Rate>,
    /// How fast what is read is copied. Default: `86Gb/s`.
    #[schemars(with = "Option<RateText>")]
    pub read_copy: Option<Rate>,
    /// The stack's way for a segment as offloaded (TSO) or merged (GRO). Default: `2500ns`.
    #[schemars(with = "Option<SpanText>")]
    pub segment: Option<Span>,
    /// Driver and merging for each frame that arrives. Default: `350ns`.
    #[schemars(with = "Option<SpanText>")]
    pub frame: Option<Span>,
    /// The stack's way for an acknowledgement without data. Default: `500ns`.
    #[schemars(with = "Option<SpanText>")]
    pub acknowledgement: Option<Span>,
    /// To take an interrupt. Default: `1us`.
    #[schemars(with = "Option<SpanText>")]
    pub interrupt: Option<Span>,
    /// The NIC waits so long after a frame until it interrupts. Default: `16us`.
    #[schemars(with = "Option<SpanText>")]
    pub coalescing: Option<Span>,
    /// Or for so many frames. Default: 32.
    #[schemars(range(min = 1))]
    pub coalesced_frames: Option<u32>,
    /// Frames that one poll takes at most. Default: 64.
    #[schemars(range(min = 1))]
    pub budget: Option<u32>,
    /// Frames that a core's receive ring holds. Default: 1024.
    #[schemars(range(min = 1))]
    pub ring: Option<u32>,
    /// The largest segment that is offloaded or merged. Default: `64KiB`.
    #[schemars(with = "Option<BytesText>")]
    pub offload: Option<Bytes>,
}
