//! What a connection is set to.

use softfabric_units::{Bytes, Span};

/// The settings of one end of a connection. The defaults are Linux's, except where noted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpConfig {
    /// How the sender reacts to loss and marks.
    pub congestion: CongestionAlgorithm,
    /// The maximum segment size that this end announces: the MTU less 40 B of IPv4 and TCP headers (RFC 9293, 3.7.1).
    pub maximum_segment: Bytes,
    /// The initial congestion window in full segments (RFC 6928: 10).
    pub initial_window: u32,
    /// How much the application may have written that is not acknowledged (`tcp_wmem`, its maximum).
    pub send_buffer: Bytes,
    /// What bounds the window that this end announces (`tcp_rmem`, its maximum: automatic tuning has done its work).
    pub receive_buffer: Bytes,
    /// The retransmission timeout before anything was measured (RFC 6298, 2.1).
    pub initial_timeout: Span,
    /// No retransmission timeout is shorter. RFC 6298, 2.4 asks for 1 s; Linux has 200 ms (`TCP_RTO_MIN`).
    pub minimum_timeout: Span,
    /// No retransmission timeout is longer (`TCP_RTO_MAX`).
    pub maximum_timeout: Span,
    /// How often in a row a segment is sent again before the connection fails (`tcp_retries2`).
    pub retries: u32,
    /// An acknowledgement may wait so long for a second segment (RFC 9293, 3.8.6.3; Linux's `TCP_DELACK_MIN`); `None`:
    /// each segment is acknowledged.
    pub delayed_acknowledgement: Option<Span>,
    /// Selective acknowledgements (RFC 2018, RFC 6675). Without: NewReno (RFC 6582).
    pub sack: bool,
    /// Timestamps (RFC 7323): 12 B a segment, and old segments are told from new ones.
    pub timestamps: bool,
    /// Explicit congestion notification (RFC 3168), if the other end understands it too.
    pub ecn: bool,
    /// A segment that is not full waits while others are not acknowledged (RFC 9293, 3.7.4). Off, unlike in Linux: programs
    /// that move messages turn it off.
    pub nagle: bool,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            congestion: CongestionAlgorithm::Cubic(CubicParameters::default()),
            maximum_segment: Bytes::new(1460),
            initial_window: 10,
            send_buffer: Bytes::mib(4),
            receive_buffer: Bytes::mib(6),
            initial_timeout: Span::seconds(1),
            minimum_timeout: Span::millis(200),
            maximum_timeout: Span::seconds(120),
            retries: 15,
            delayed_acknowledgement: Some(Span::millis(40)),
            sack: true,
            timestamps: true,
            ecn: false,
            nagle: false,
        }
    }
}

/// How a sender reacts to loss and marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionAlgorithm {
    /// RFC 5681: a half on loss, a segment more each round trip.
    Reno,
    /// RFC 9438.
    Cubic(CubicParameters),
    /// RFC 8257; needs ECN at both ends and in the network.
    Dctcp(DctcpParameters),
}

/// The parameters of CUBIC (RFC 9438, 4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicParameters {
    /// C, how steep the curve is, in segments/s³.
    pub scale: f64,
    /// β, what a loss leaves of the window.
    pub decrease: f64,
    /// A flow that loses again before it was back at its last maximum leaves more room to others.
    pub fast_convergence: bool,
    /// Slow start ends when round trips become longer (HyStart++, RFC 9406).
    pub hystart: bool,
}

impl Default for CubicParameters {
    fn default() -> Self {
        Self {
            scale: 0.4,
            decrease: 0.7,
            fast_convergence: true,
            hystart: true,
        }
    }
}

/// The parameters of DCTCP (RFC 8257, 4.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpParameters {
    /// g, the weight of news in alpha.
    pub gain: f64,
    /// Alpha before anything was measured: 1 is cautious.
    pub initial_alpha: f64,
}

impl Default for DctcpParameters {
    fn default() -> Self {
        Self {
            gain: 1.0 / 16.0,
            initial_alpha: 1.0,
        }
    }
}
