//! The states of a queue pair (IBTA vol. 1, 10.3.1).

use std::fmt;

/// What a queue pair speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QueuePairType {
    /// Reliable connection.
    ReliableConnection,
    /// Unreliable connection.
    UnreliableConnection,
    /// Unreliable datagram.
    UnreliableDatagram,
    /// The end of an extended reliable connection that sends requests (annex A14).
    XrcInitiator,
    /// The end of an extended reliable connection that receives requests: it has no queue of its own, each request names
    /// a shared receive queue of the XRC domain.
    XrcTarget,
}

impl QueuePairType {
    /// Every type.
    pub const ALL: [Self; 5] = [
        Self::ReliableConnection,
        Self::UnreliableConnection,
        Self::UnreliableDatagram,
        Self::XrcInitiator,
        Self::XrcTarget,
    ];

    /// Whether requests are acknowledged, and lost ones sent again.
    #[inline]
    pub const fn is_reliable(self) -> bool {
        matches!(
            self,
            Self::ReliableConnection | Self::XrcInitiator | Self::XrcTarget
        )
    }

    /// Whether it has one peer.
    #[inline]
    pub const fn is_connected(self) -> bool {
        !matches!(self, Self::UnreliableDatagram)
    }

    /// Whether it is an end of an extended reliable connection.
    #[inline]
    pub const fn is_extended(self) -> bool {
        matches!(self, Self::XrcInitiator | Self::XrcTarget)
    }

    /// Whether requests may be posted to its send queue.
    pub const fn sends(self) -> bool {
        !matches!(self, Self::XrcTarget)
    }

    /// Whether requests may be posted to its receive queue, or to the shared one in its place.
    pub const fn takes_receives(self) -> bool {
        !self.is_extended()
    }
}

impl fmt::Display for QueuePairType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReliableConnection => "RC",
            Self::UnreliableConnection => "UC",
            Self::UnreliableDatagram => "UD",
            Self::XrcInitiator => "XRC_INI",
            Self::XrcTarget => "XRC_TGT",
        })
    }
}

/// The state of a queue pair.
///
/// ```text
/// RESET → INIT → RTR → RTS ⇄ SQD          any → ERR, any → RESET
///                       └→ SQE → RTS      (SQE: UC and UD only)
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// Just made, or reset: nothing may be posted.
    Reset,
    /// Receive requests may be posted.
    Initialized,
    /// Ready to receive.
    ReadyToReceive,
    /// Ready to send.
    ReadyToSend,
    /// The send queue drains: messages begun are finished, no new one is started.
    SendQueueDrain,
    /// The send queue has failed, receives go on.
    SendQueueError,
    /// Every request is flushed.
    Error,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Reset,
        Self::Initialized,
        Self::ReadyToReceive,
        Self::ReadyToSend,
        Self::SendQueueDrain,
        Self::SendQueueError,
        Self::Error,
    ];

    /// Whether packets are accepted (IBTA vol. 1, table 91).
    #[inline]
    pub const fn receives(self) -> bool {
        matches!(
            self,
            Self::ReadyToReceive | Self::ReadyToSend | Self::SendQueueDrain | Self::SendQueueError
        )
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "RESET",
            Self::Initialized => "INIT",
            Self::ReadyToReceive => "RTR",
            Self::ReadyToSend => "RTS",
            Self::SendQueueDrain => "SQD",
            Self::SendQueueError => "SQE",
            Self::Error => "ERR",
        })
    }
}
