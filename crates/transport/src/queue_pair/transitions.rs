//! Which changes of state there are, and which attributes each needs and allows (IBTA vol. 1, 11.2.5.2, table 92; for
//! XRC annex A14, as verbs know it: an initiator has no responder, a target no requester).

use super::attributes::Attributes as A;
use super::state::{QueuePairType, State};

/// What a change of state needs, and what it allows besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// These must be given.
    pub required: A,
    /// These may be given.
    pub optional: A,
}

impl Transition {
    const fn new(required: A, optional: A) -> Self {
        Self { required, optional }
    }

    const FREE: Self = Self::new(A::empty(), A::empty());

    /// The change of a `service` queue pair from one state to another; `None`: there is no such change.
    pub const fn of(service: QueuePairType, from: State, to: State) -> Option<Self> {
        use State::{
            Error, Initialized, ReadyToReceive, ReadyToSend, Reset, SendQueueDrain, SendQueueError,
        };
        Some(match (from, to) {
            (_, Reset | Error) => Self::FREE,
            (Reset, Initialized) => Self::new(initialize(service), A::empty()),
            (Initialized, Initialized) => Self::new(A::empty(), initialize(service)),
            (Initialized, ReadyToReceive) => ready_to_receive(service),
            (ReadyToReceive, ReadyToSend) => ready_to_send(service),
            (ReadyToSend, ReadyToSend) => Self::new(A::empty(), running(service)),
            (ReadyToSend, SendQueueDrain) => Self::new(A::empty(), A::DRAIN_NOTIFY),
            (SendQueueDrain, ReadyToSend) => Self::new(A::empty(), running(service)),
            (SendQueueDrain, SendQueueDrain) => Self::new(A::empty(), drained(service)),
            (SendQueueError, ReadyToSend) => match service {
                QueuePairType::UnreliableConnection => {
                    Self::new(A::empty(), A::CURRENT_STATE.union(A::ACCESS))
                }
                QueuePairType::UnreliableDatagram => {
                    Self::new(A::empty(), A::CURRENT_STATE.union(A::QKEY))
                }
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// What only a requester of a reliable service has.
const REQUESTER: A = A::RETRY_COUNT.union(A::RNR_RETRY).union(A::MAX_READS);

/// What only a responder of a reliable service has.
const RESPONDER: A = A::MAX_PEER_READS.union(A::MIN_RNR_TIMER);

const fn initialize(service: QueuePairType) -> A {
    let common = A::PARTITION.union(A::PORT);
    match service {
        QueuePairType::UnreliableDatagram => common.union(A::QKEY),
        _ => common.union(A::ACCESS),
    }
}

const fn ready_to_receive(service: QueuePairType) -> Transition {
    let connected = A::PATH
        .union(A::PATH_MTU)
        .union(A::DESTINATION)
        .union(A::RECEIVE_PSN);
    let optional = A::ALTERNATE_PATH.union(A::ACCESS).union(A::PARTITION);
    match service {
        QueuePairType::ReliableConnection | QueuePairType::XrcTarget => {
            Transition::new(connected.union(RESPONDER), optional)
        }
        QueuePairType::UnreliableConnection | QueuePairType::XrcInitiator => {
            Transition::new(connected, optional)
        }
        QueuePairType::UnreliableDatagram => {
            Transition::new(A::empty(), A::PARTITION.union(A::QKEY))
        }
    }
}

const fn ready_to_send(service: QueuePairType) -> Transition {
    let required = match service {
        QueuePairType::ReliableConnection | QueuePairType::XrcInitiator => {
            A::SEND_PSN.union(A::TIMEOUT).union(REQUESTER)
        }
        QueuePairType::XrcTarget => A::SEND_PSN.union(A::TIMEOUT),
        QueuePairType::UnreliableConnection | QueuePairType::UnreliableDatagram => A::SEND_PSN,
    };
    Transition::new(required, running(service))
}

/// What may change while requests are sent.
const fn running(service: QueuePairType) -> A {
    let connected = A::CURRENT_STATE
        .union(A::ACCESS)
        .union(A::ALTERNATE_PATH)
        .union(A::MIGRATION);
    match service {
        QueuePairType::ReliableConnection | QueuePairType::XrcTarget => {
            connected.union(A::MIN_RNR_TIMER)
        }
        QueuePairType::UnreliableConnection | QueuePairType::XrcInitiator => connected,
        QueuePairType::UnreliableDatagram => A::CURRENT_STATE.union(A::QKEY),
    }
}

/// What may change while the send queue is drained.
const fn drained(service: QueuePairType) -> A {
    let connected = A::PATH
        .union(A::ALTERNATE_PATH)
        .union(A::ACCESS)
        .union(A::PARTITION)
        .union(A::MIGRATION);
    let reliable = connected.union(A::PORT).union(A::TIMEOUT);
    match service {
        QueuePairType::ReliableConnection => reliable.union(REQUESTER).union(RESPONDER),
        QueuePairType::XrcInitiator => reliable.union(REQUESTER),
        QueuePairType::XrcTarget => reliable.union(RESPONDER),
        QueuePairType::UnreliableConnection => connected,
        QueuePairType::UnreliableDatagram => A::PARTITION.union(A::QKEY),
    }
}
