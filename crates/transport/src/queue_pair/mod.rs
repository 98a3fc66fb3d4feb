//! A queue pair: its state, its attributes, and its two halves.
//!
//! ```text
//!            ┌ requester: send queue → request packets, responses → completions
//! queue pair ┤
//!            └ responder: request packets → memory, receive queue, responses
//! ```

mod attributes;
mod ending;
mod pace;
mod state;
mod transitions;

use std::collections::VecDeque;

use softfabric_units::{Bytes, Class, PartitionKey, Psn, Qpn, Time};
use softfabric_wire::rdma::RnrTimer;

pub use attributes::{AckTimeout, Attributes, Migration, Modify, RnrRetry};
pub use state::{QueuePairType, State};
pub use transitions::Transition;

use crate::address::AddressVector;
use crate::completion::CompletionQueueId;
use crate::config::Mtu;
use crate::core::Core;
use crate::memory::{Access, Domain, Memory};
use crate::rate::{RateControl, RateControlConfig};
use crate::receive_queue::{SharedQueueId, XrcDomain};
use crate::requester::Requester;
use crate::responder::Responder;
use crate::work::ReceiveRequest;

/// The queue key of queue pair 1, general services (IBTA vol. 1, 10.2.5): fixed, and no other queue pair can send it.
pub const GENERAL_SERVICES_QKEY: u32 = 0x8001_0000;

/// A queue pair to make.
#[derive(Clone, Copy, Debug)]
pub struct QueuePairInit {
    /// What it speaks.
    pub service: QueuePairType,
    /// Whose memory it uses.
    pub domain: Domain,
    /// Where its send requests complete.
    pub send_queue: CompletionQueueId,
    /// Where its receive requests complete.
    pub receive_queue: CompletionQueueId,
    /// Where it takes receive requests from, instead of a queue of its own.
    pub shared: Option<SharedQueueId>,
    /// The XRC domain of a target; see [`QueuePairInit::xrc_target`].
    pub xrc: Option<XrcDomain>,
    /// The number it should have; `None`: the device chooses. Number 1 is general services, a datagram queue pair.
    pub number: Option<Qpn>,
    /// Every send request makes a completion, flagged or not.
    pub signal_all: bool,
    /// How much it holds.
    pub capacity: Capacity,
    /// Its rate control; `None`: the device's.
    pub rate_control: Option<RateControlConfig>,
    /// The most unacknowledged bytes, counted in full packets.
    pub window: Option<Bytes>,
}

impl QueuePairInit {
    /// A queue pair of `service` with one completion queue for both directions.
    pub fn new(service: QueuePairType, domain: Domain, completions: CompletionQueueId) -> Self {
        Self {
            service,
            domain,
            send_queue: completions,
            receive_queue: completions,
            shared: None,
            xrc: None,
            number: None,
            signal_all: false,
            capacity: Capacity::default(),
            rate_control: None,
            window: None,
        }
    }

    /// The sending end of an extended reliable connection.
    pub fn xrc_initiator(domain: Domain, completions: CompletionQueueId) -> Self {
        Self::new(QueuePairType::XrcInitiator, domain, completions)
    }

    /// The receiving end of an extended reliable connection. It has neither memory nor queues of its own: those of the
    /// shared receive queue are used that a request names.
    pub fn xrc_target(domain: XrcDomain) -> Self {
        let (none, nowhere) = (Domain::NONE, CompletionQueueId::NONE);
        Self {
            xrc: Some(domain),
            ..Self::new(QueuePairType::XrcTarget, none, nowhere)
        }
    }
}

/// How much the queues of a queue pair hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Send requests.
    pub sends: u32,
    /// Receive requests.
    pub receives: u32,
    /// Pieces of memory of a send request.
    pub send_segments: u32,
    /// Pieces of memory of a receive request.
    pub receive_segments: u32,
    /// Bytes of inline data.
    pub inline: u32,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            sends: 1024,
            receives: 1024,
            send_segments: 8,
            receive_segments: 8,
            inline: 256,
        }
    }
}

/// Why a queue pair was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CreateError {
    /// No such domain.
    #[error("{0:?} does not exist")]
    UnknownDomain(Domain),
    /// No such completion queue.
    #[error("{0:?} does not exist")]
    UnknownCompletionQueue(CompletionQueueId),
    /// No such shared receive queue.
    #[error("{0:?} does not exist")]
    UnknownSharedQueue(SharedQueueId),
    /// An XRC target needs an XRC domain, and no other type has one.
    #[error("a {0} queue pair and an XRC domain: targets need one, others have none")]
    Xrc(QueuePairType),
    /// No such XRC domain.
    #[error("{0:?} does not exist")]
    UnknownXrcDomain(XrcDomain),
    /// The type takes no receive requests, or the shared receive queue is one of XRC.
    #[error("a {0} queue pair cannot receive through {1:?}")]
    Shared(QueuePairType, SharedQueueId),
    /// Another queue pair has the number.
    #[error("queue pair number {0} is taken")]
    NumberTaken(Qpn),
    /// The number has a meaning of its own: 0 (subnet management) or 0xffffff (multicast).
    #[error("queue pair number {0} is reserved")]
    Reserved(Qpn),
    /// Queue pair 1 speaks datagrams.
    #[error("queue pair 1 is general services and needs UD, not {0}")]
    GeneralServices(QueuePairType),
    /// Every number that the device gives is taken.
    #[error("all {0} queue pair numbers are taken")]
    NoNumbers(u32),
    /// There are as many queue pairs as the device allows.
    #[error("the device has {0} queue pairs and allows no more")]
    TooMany(u32),
    /// A parameter of its rate control is out of range; see
    /// [`RateControlConfig::check`](crate::rate::RateControlConfig::check).
    #[error("rate control parameter `{0}` is out of range")]
    RateControl(&'static str),
    /// A capacity is larger than the device allows.
    #[error("a capacity of {found} {what}, at most {needed} are allowed")]
    Capacity {
        /// Which.
        what: &'static str,
        /// What was asked for.
        found: u32,
        /// The most.
        needed: u32,
    },
}

/// Why a queue pair was not changed. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ModifyError {
    /// No such queue pair.
    #[error("queue pair {0} does not exist")]
    Unknown(Qpn),
    /// The state is not the asserted one.
    #[error("the queue pair is in {found}, not in {needed}")]
    CurrentState {
        /// The state it is in.
        found: State,
        /// The state that was asserted.
        needed: State,
    },
    /// There is no such change of state.
    #[error("a {service} queue pair does not go from {from} to {to}")]
    Transition {
        /// Its service.
        service: QueuePairType,
        /// The state it is in.
        from: State,
        /// The state that was asked for.
        to: State,
    },
    /// Attributes are missing.
    #[error("from {from} to {to}, {missing:?} is needed as well")]
    Missing {
        /// The state it is in.
        from: State,
        /// The state that was asked for.
        to: State,
        /// What is missing.
        missing: Attributes,
    },
    /// Attributes cannot be changed here.
    #[error("from {from} to {to}, {excess:?} cannot be given")]
    Excess {
        /// The state it is in.
        from: State,
        /// The state that was asked for.
        to: State,
        /// What is too much.
        excess: Attributes,
    },
    /// The queue key of queue pair 1 is fixed.
    #[error("queue pair 1 has queue key {GENERAL_SERVICES_QKEY:#010x}, not {0:#010x}")]
    GeneralServicesKey(u32),
    /// A queue pair that is to be destroyed is still attached to multicast groups.
    #[error("the queue pair is attached to {0} multicast groups; detach it first")]
    Attached(usize),
    /// An attribute has a value that it cannot have.
    #[error("{attribute:?} is {found}, and {needed} at most is allowed")]
    Value {
        /// Which.
        attribute: Attributes,
        /// What was asked for.
        found: u64,
        /// The most.
        needed: u64,
    },
}

/// What a queue pair is set to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// What the peer may do.
    pub access: Access,
    /// The partition.
    pub partition: PartitionKey,
    /// The queue key.
    pub qkey: u32,
    /// The path to the peer.
    pub path: AddressVector,
    /// The most payload of a packet.
    pub mtu: Mtu,
    /// The peer.
    pub destination: Qpn,
    /// How long an acknowledgement may take.
    pub timeout: AckTimeout,
    /// How often a request is sent again without progress.
    pub retry_count: u8,
    /// How often a peer that is not ready is asked again.
    pub rnr_retry: RnrRetry,
    /// How many reads and atomics may be in flight to the peer.
    pub max_reads: u8,
    /// How many the peer may have in flight.
    pub max_peer_reads: u8,
    /// The timer of receiver-not-ready NAKs.
    pub min_rnr_timer: RnrTimer,
    /// The migration state.
    pub migration: Migration,
    /// An alternate path, never used.
    pub alternate_path: Option<AddressVector>,
    /// The most unacknowledged bytes.
    pub window: Option<Bytes>,
    /// Whether an event tells that the send queue has drained.
    pub drain_notify: bool,
}

/// What a query tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuePairStatus {
    /// Its service.
    pub service: QueuePairType,
    /// Its state.
    pub state: State,
    /// Whose memory it uses; of an XRC target, that of the last request.
    pub domain: Domain,
    /// Where its send requests complete; meaningless for an XRC target.
    pub send_queue: CompletionQueueId,
    /// Where its receive requests complete; of an XRC target, that of the last request.
    pub receive_queue: CompletionQueueId,
    /// Where it takes receive requests from, instead of a queue of its own; of an XRC target, that of the last request.
    pub shared: Option<SharedQueueId>,
    /// The XRC domain of a target.
    pub xrc: Option<XrcDomain>,
    /// Whether every send request makes a completion.
    pub signal_all: bool,
    /// Whether the send queue still drains (in SQD).
    pub draining: bool,
    /// What it is set to.
    pub settings: Settings,
    /// How much it holds.
    pub capacity: Capacity,
    /// The PSN of the next new request packet.
    pub send_psn: Psn,
    /// The PSN that the next request should arrive with.
    pub receive_psn: Psn,
    /// Send requests that have not completed.
    pub sends_waiting: usize,
    /// Receive requests that have not been taken.
    pub receives_waiting: usize,
}

/// What one queue pair has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueuePairStatistics {
    /// Request and read response packets sent.
    pub packets_sent: u64,
    /// Their payload.
    pub bytes_sent: u64,
    /// Request packets sent again.
    pub retransmitted: u64,
    /// Request and read response packets accepted.
    pub packets_received: u64,
    /// Their payload.
    pub bytes_received: u64,
    /// Congestion notifications received.
    pub notifications_received: u64,
    /// Congestion notifications sent.
    pub notifications_sent: u64,
    /// Acknowledgement timeouts.
    pub timeouts: u64,
    /// Receiver-not-ready NAKs received.
    pub rnr_naks: u64,
}

/// When the next packet of the queue pair may leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) until: Time,
    pub(crate) last_sent: Time,
    pub(crate) last_size: Bytes,
    /// Whether an entry of the pacing heap will wake it, and the time of that entry.
    pub(crate) waits: bool,
    pub(crate) entry: Time,
}

pub(crate) struct QueuePair<M: Memory> {
    pub(crate) number: Qpn,
    pub(crate) slot: u32,
    /// Tells this queue pair from others that had the slot.
    pub(crate) serial: u32,
    pub(crate) service: QueuePairType,
    pub(crate) state: State,
    pub(crate) signal_all: bool,
    pub(crate) draining: bool,
    /// Whose memory requests and peers use. An XRC target takes this and the next four from the shared receive queue
    /// that a request names.
    pub(crate) domain: Domain,
    /// Whose memory receive requests use.
    pub(crate) receive_domain: Domain,
    pub(crate) send_queue: CompletionQueueId,
    pub(crate) receive_queue: CompletionQueueId,
    pub(crate) shared: Option<SharedQueueId>,
    pub(crate) xrc: Option<XrcDomain>,
    /// How often an XRC target has been made or opened, less how often destroyed.
    pub(crate) openings: u32,
    pub(crate) settings: Settings,
    pub(crate) requester: Requester<M>,
    pub(crate) responder: Responder<M>,
    pub(crate) receives: VecDeque<ReceiveRequest>,
    pub(crate) rate: RateControl,
    pub(crate) pace: Pace,
    /// The time of this queue pair's entry in the timer heap; never, without one.
    pub(crate) armed: Time,
    /// The classes in whose sets it is.
    pub(crate) in_requests: Option<Class>,
    pub(crate) in_responses: Option<Class>,
    pub(crate) statistics: QueuePairStatistics,
    pub(crate) capacity: Capacity,
}

impl<M: Memory> QueuePair<M> {
    /// The class of the next request.
    #[inline]
    pub(crate) fn request_class(&self) -> Class {
        if self.service == QueuePairType::UnreliableDatagram
            && let Some(datagram) = self.requester.next_datagram()
        {
            return datagram.path.class;
        }
        self.settings.path.class
    }

    /// Puts the queue pair into the sets of those that may send, or takes it out.
    #[inline]
    pub(crate) fn refresh(&mut self, core: &mut Core<M>) {
        let open = !self.pace.waits;
        let request = (open && self.request_ready()).then(|| self.request_class());
        if request != self.in_requests {
            if let Some(class) = self.in_requests {
                core.lanes.set_request(class, self.slot, false);
            }
            if let Some(class) = request {
                core.lanes.set_request(class, self.slot, true);
            }
            self.in_requests = request;
        }
        let response = (open && self.response_ready()).then_some(self.settings.path.class);
        if response != self.in_responses {
            if let Some(class) = self.in_responses {
                core.lanes.set_response(class, self.slot, false);
            }
            if let Some(class) = response {
                core.lanes.set_response(class, self.slot, true);
            }
            self.in_responses = response;
        }
    }

    /// Sees to it that the timer heap wakes the queue pair at its next deadline. Usually an earlier entry is there.
    #[inline]
    pub(crate) fn arm(&mut self, core: &mut Core<M>) {
        let deadline = self.requester.deadline();
        if deadline < self.armed {
            self.armed = deadline;
            core.timers.push(deadline, self.slot, self.serial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::LengthsOnly;

    /// Tens of thousands of queue pairs are simulated: what one needs before it has work stays small.
    #[test]
    fn a_queue_pair_is_small() {
        assert!(size_of::<QueuePair<LengthsOnly>>() <= 768);
        assert!(size_of::<crate::requester::Posted<LengthsOnly>>() <= 208);
    }
}
