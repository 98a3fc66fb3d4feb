//! The attributes of a queue pair, and the set of those that a change names.

use bitflags::bitflags;
use softfabric_units::{Bytes, PartitionKey, Psn, Qpn, Span};
use softfabric_wire::rdma::RnrTimer;

use super::state::State;
use crate::address::AddressVector;
use crate::config::Mtu;
use crate::memory::Access;

bitflags! {
    /// Attributes of a queue pair (IBTA vol. 1, 11.2.5.2).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub struct Attributes: u32 {
        /// The state before, asserted.
        const CURRENT_STATE = 1 << 0;
        /// Whether the drained event is wanted.
        const DRAIN_NOTIFY = 1 << 1;
        /// What peers may do.
        const ACCESS = 1 << 2;
        /// The partition.
        const PARTITION = 1 << 3;
        /// The port.
        const PORT = 1 << 4;
        /// The queue key.
        const QKEY = 1 << 5;
        /// The path.
        const PATH = 1 << 6;
        /// The path MTU.
        const PATH_MTU = 1 << 7;
        /// The local ACK timeout.
        const TIMEOUT = 1 << 8;
        /// The retry count.
        const RETRY_COUNT = 1 << 9;
        /// The RNR retry count.
        const RNR_RETRY = 1 << 10;
        /// The PSN that the first request arrives with.
        const RECEIVE_PSN = 1 << 11;
        /// How many reads and atomics may be in flight.
        const MAX_READS = 1 << 12;
        /// An alternate path.
        const ALTERNATE_PATH = 1 << 13;
        /// The RNR timer that is asked for.
        const MIN_RNR_TIMER = 1 << 14;
        /// The PSN that the first request leaves with.
        const SEND_PSN = 1 << 15;
        /// How many reads and atomics the peer may have in flight.
        const MAX_PEER_READS = 1 << 16;
        /// The migration state.
        const MIGRATION = 1 << 17;
        /// The peer's queue pair.
        const DESTINATION = 1 << 18;
    }
}

/// The local ACK timeout: code `t` stands for `4.096 µs · 2^t`, and 0 for never (IBTA vol. 1, 9.7.6.1.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct AckTimeout(u8);

impl AckTimeout {
    /// Never.
    pub const OFF: Self = Self(0);

    /// The timeout of the low five bits of `code`.
    pub const fn from_code(code: u8) -> Self {
        Self(code & 0x1f)
    }

    /// The five bits.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// How long it is; `None`: never.
    pub const fn span(self) -> Option<Span> {
        match self.0 {
            0 => None,
            code => Some(Span::nanos(4096 << code)),
        }
    }
}

/// How often a peer that is not ready is asked again: 0–6, or 7 for without end (IBTA vol. 1, 9.7.5.2.8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RnrRetry(u8);

impl RnrRetry {
    /// Without end.
    pub const INFINITE: Self = Self(7);

    /// The count of the low three bits of `count`.
    pub const fn new(count: u8) -> Self {
        Self(count & 7)
    }

    /// The three bits.
    pub const fn count(self) -> u8 {
        self.0
    }
}

/// The path migration state (IBTA vol. 1, 17.2.8). Only kept: no path is migrated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Migration {
    /// The path has migrated: packets say so.
    #[default]
    Migrated,
    /// An alternate path is to be loaded.
    Rearm,
    /// An alternate path is ready.
    Armed,
}

/// A change of a queue pair: what is `Some` is changed, or asserted.
///
/// ```
/// use softfabric_transport::{Modify, State};
///
/// let to_error = Modify::to(State::Error);
/// assert!(to_error.attributes().is_empty());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Modify {
    /// The new state; `None` keeps it.
    pub state: Option<State>,
    /// The state that the caller believes it to be in.
    pub current_state: Option<State>,
    /// Whether an event tells that the send queue has drained.
    pub drain_notify: Option<bool>,
    /// What the peer may do: the REMOTE flags.
    pub access: Option<Access>,
    /// The partition.
    pub partition: Option<PartitionKey>,
    /// The port of the device, 1.
    pub port: Option<u8>,
    /// The queue key (datagrams).
    pub qkey: Option<u32>,
    /// The path to the peer.
    pub path: Option<AddressVector>,
    /// The most payload of a packet on it.
    pub path_mtu: Option<Mtu>,
    /// How long an acknowledgement may take.
    pub timeout: Option<AckTimeout>,
    /// How often a request is sent again without progress, 0–7.
    pub retry_count: Option<u8>,
    /// How often a peer that is not ready is asked again.
    pub rnr_retry: Option<RnrRetry>,
    /// The PSN that the first request arrives with.
    pub receive_psn: Option<Psn>,
    /// The PSN that the first request leaves with.
    pub send_psn: Option<Psn>,
    /// How many reads and atomics may be in flight to the peer.
    pub max_reads: Option<u8>,
    /// How many the peer may have in flight.
    pub max_peer_reads: Option<u8>,
    /// The timer of receiver-not-ready NAKs.
    pub min_rnr_timer: Option<RnrTimer>,
    /// The peer's queue pair.
    pub destination: Option<Qpn>,
    /// An alternate path: kept, never used.
    pub alternate_path: Option<AddressVector>,
    /// The migration state: kept, and shown in packets.
    pub migration: Option<Migration>,
    /// Not of the standard, allowed in every state: the most unacknowledged bytes, counted in full packets;
    /// `Some(None)` lifts the limit.
    pub window: Option<Option<Bytes>>,
}

impl Modify {
    /// A change of the state alone.
    pub fn to(state: State) -> Self {
        Self {
            state: Some(state),
            ..Self::default()
        }
    }

    /// RESET → INIT of a connected queue pair, in the default partition.
    pub fn initialize(access: Access) -> Self {
        Self {
            partition: Some(PartitionKey::DEFAULT),
            port: Some(1),
            access: Some(access),
            ..Self::to(State::Initialized)
        }
    }

    /// RESET → INIT of a datagram queue pair, in the default partition.
    pub fn initialize_datagram(qkey: u32) -> Self {
        Self {
            partition: Some(PartitionKey::DEFAULT),
            port: Some(1),
            qkey: Some(qkey),
            ..Self::to(State::Initialized)
        }
    }

    /// INIT → RTR of an unreliable connection.
    pub fn ready_to_receive(path: AddressVector, mtu: Mtu, destination: Qpn, psn: Psn) -> Self {
        Self {
            path: Some(path),
            path_mtu: Some(mtu),
            destination: Some(destination),
            receive_psn: Some(psn),
            ..Self::to(State::ReadyToReceive)
        }
    }

    /// INIT → RTR of a reliable connection: 16 reads, and an RNR timer of 0.64 ms.
    pub fn ready_to_receive_reliable(
        path: AddressVector,
        mtu: Mtu,
        destination: Qpn,
        psn: Psn,
    ) -> Self {
        Self {
            max_peer_reads: Some(16),
            min_rnr_timer: Some(RnrTimer::from_code(12)),
            ..Self::ready_to_receive(path, mtu, destination, psn)
        }
    }

    /// RTR → RTS of an unreliable connection or of datagrams.
    pub fn ready_to_send(psn: Psn) -> Self {
        Self {
            send_psn: Some(psn),
            ..Self::to(State::ReadyToSend)
        }
    }

    /// RTR → RTS of a reliable connection: seven retries, RNR retries without end, 16 reads.
    pub fn ready_to_send_reliable(psn: Psn, timeout: AckTimeout) -> Self {
        Self {
            timeout: Some(timeout),
            retry_count: Some(7),
            rnr_retry: Some(RnrRetry::INFINITE),
            max_reads: Some(16),
            ..Self::ready_to_send(psn)
        }
    }

    /// The set of attributes that the change names.
    pub fn attributes(&self) -> Attributes {
        let mut set = Attributes::empty();
        let mut name = |attribute, named| set.set(attribute, named);
        name(Attributes::CURRENT_STATE, self.current_state.is_some());
        name(Attributes::DRAIN_NOTIFY, self.drain_notify.is_some());
        name(Attributes::ACCESS, self.access.is_some());
        name(Attributes::PARTITION, self.partition.is_some());
        name(Attributes::PORT, self.port.is_some());
        name(Attributes::QKEY, self.qkey.is_some());
        name(Attributes::PATH, self.path.is_some());
        name(Attributes::PATH_MTU, self.path_mtu.is_some());
        name(Attributes::TIMEOUT, self.timeout.is_some());
        name(Attributes::RETRY_COUNT, self.retry_count.is_some());
        name(Attributes::RNR_RETRY, self.rnr_retry.is_some());
        name(Attributes::RECEIVE_PSN, self.receive_psn.is_some());
        name(Attributes::MAX_READS, self.max_reads.is_some());
        name(Attributes::ALTERNATE_PATH, self.alternate_path.is_some());
        name(Attributes::MIN_RNR_TIMER, self.min_rnr_timer.is_some());
        name(Attributes::SEND_PSN, self.send_psn.is_some());
        name(Attributes::MAX_PEER_READS, self.max_peer_reads.is_some());
        name(Attributes::MIGRATION, self.migration.is_some());
        name(Attributes::DESTINATION, self.destination.is_some());
        set
    }
}
