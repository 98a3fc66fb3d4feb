//! Asynchronous events (IBTA vol. 1, 11.6.3).

use softfabric_units::Qpn;

use crate::completion::CompletionQueueId;
use crate::receive_queue::SharedQueueId;

/// Something that happened outside any work request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// A completion queue got an entry that it was armed for.
    Completion(CompletionQueueId),
    /// A completion queue lost an entry.
    CompletionQueueError(CompletionQueueId),
    /// A shared receive queue fell below its limit.
    SharedQueueLimit(SharedQueueId),
    /// The first packet of a connection arrived while the queue pair was still getting ready to send.
    CommunicationEstablished(Qpn),
    /// The send queue has drained after a change to SQD.
    SendQueueDrained(Qpn),
    /// The last receive request of a queue pair with a shared receive queue was taken; the pair is in the error state.
    LastReceiveReached(Qpn),
    /// The queue pair failed: its completion queue overran, or the device could not go on.
    QueuePairFatal(Qpn),
    /// A peer's request was invalid; the queue pair is in the error state.
    RequestError(Qpn),
    /// A peer's request was refused access; the queue pair is in the error state.
    AccessError(Qpn),
}
