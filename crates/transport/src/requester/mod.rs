//! The requester: what a queue pair sends, until its peer has acknowledged it.
//!
//! ```text
//!   send queue:  [ done? | in flight … | being sent | not begun … ]
//!   PSNs:          una ──────────────── next ── end
//!                  oldest not          cursor:  one past the
//!                  acknowledged        is sent  highest sent
//!                                      next
//! ```
//!
//! After a loss the cursor moves back, and `next` falls behind `end`. Invariant: `una ≤ end` and `next ≤ end` on the
//! circle of PSNs, and the head of the queue is the request that `una` belongs to.

mod acknowledge;
mod emit;
mod local;
mod recovery;

use std::collections::VecDeque;

use smallvec::SmallVec;
use softfabric_telemetry::DeviceCounter;
use softfabric_units::{Msn, PartitionKey, Psn, Qpn, Span, Time};

use crate::completion::{Attachment, CompletedOperation, Completion, CompletionFlags, Status};
use crate::config::{DeviceConfig, LossRecovery};
use crate::core::Core;
use crate::event::Event;
use crate::memory::{Access, Memory, Segment};
use crate::queue_pair::{QueuePair, Settings, State};
use crate::work::{Datagram, LocalSegment, SendFlags, SendOperation, SendRequest};

use recovery::Selective;

/// The most PSNs in flight: half the circle, so that old and new are told apart (IBTA vol. 1, 9.7.2).
pub(crate) const PSN_WINDOW: u32 = (1 << 23) - 1;

/// A request in the send queue.
pub(crate) struct Posted<M: Memory> {
    pub(crate) request: SendRequest,
    /// Inline data.
    captured: Option<M::Captured>,
    /// The message's length in bytes.
    length: u32,
    /// How many PSNs it takes; 0 until it is begun.
    packets: u32,
    first: Psn,
    /// Its number among the requests that have been begun: the SSN of the standard.
    sequence: Msn,
    begun: bool,
    /// The epoch at which its local keys held.
    checked: Option<u32>,
    /// How it has ended, where that is known before the peer's answer: local operations, and failures.
    ended: Option<Status>,
}

impl<M: Memory> Posted<M> {
    /// One past its last PSN.
    #[inline]
    fn end(&self) -> Psn {
        self.first.add(self.packets)
    }

    fn is_read_or_atomic(&self) -> bool {
        matches!(
            self.request.operation,
            SendOperation::Read(_)
                | SendOperation::CompareSwap { .. }
                | SendOperation::FetchAdd { .. }
        )
    }

    fn is_local(&self) -> bool {
        matches!(
            self.request.operation,
            SendOperation::BindWindow(_) | SendOperation::LocalInvalidate(_)
        )
    }

    /// Whether it takes a receive request of the peer.
    fn takes_receive(&self) -> bool {
        matches!(
            self.request.operation,
            SendOperation::Send
                | SendOperation::SendImmediate(_)
                | SendOperation::SendInvalidate(_)
                | SendOperation::WriteImmediate(..)
        )
    }
}

pub(crate) struct Requester<M: Memory> {
    queue: VecDeque<Posted<M>>,
    /// The request that is sent next, counted from the head.
    index: u32,
    /// How many PSNs of it are sent already.
    packet: u32,
    next: Psn,
    una: Psn,
    end: Psn,
    /// The most PSNs in flight.
    window: u32,
    timeout: Span,
    /// When the acknowledgement of `una` is overdue.
    overdue: Time,
    /// Until when the peer wants to be left alone; zero: it does not.
    quiet_until: Time,
    retries_left: u8,
    rnr_left: u8,
    reads: u8,
    max_reads: u8,
    /// A lost response was inferred at this PSN and asked for again: it is not inferred twice.
    implied: Option<Psn>,
    /// The highest SSN that the peer's credits allow; `None`: credits do not apply.
    credit_limit: Option<Msn>,
    next_sequence: Msn,
    selective: Option<Box<Selective>>,
}

impl<M: Memory> Requester<M> {
    pub(crate) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            index: 0,
            packet: 0,
            next: Psn::default(),
            una: Psn::default(),
            end: Psn::default(),
            window: PSN_WINDOW,
            timeout: Span::ZERO,
            overdue: Time::NEVER,
            quiet_until: Time::ZERO,
            retries_left: 0,
            rnr_left: 0,
            reads: 0,
            max_reads: 0,
            implied: None,
            credit_limit: None,
            next_sequence: Msn::default(),
            selective: None,
        }
    }

    /// Sets the first PSN.
    pub(crate) fn start(&mut self, psn: Psn) {
        self.next = psn;
        self.una = psn;
        self.end = psn;
        self.next_sequence = Msn::default();
        self.credit_limit = None;
        self.implied = None;
    }

    /// Takes over what matters of the attributes.
    pub(crate) fn configure(&mut self, settings: &Settings, config: &DeviceConfig) {
        let cap = match config.recovery {
            LossRecovery::SelectiveRepeat { bdp_cap } => bdp_cap,
            LossRecovery::GoBackN | LossRecovery::GoBack0 => None,
        };
        let bytes = [settings.window, cap].into_iter().flatten().min();
        self.window = bytes.map_or(PSN_WINDOW, |bytes| {
            let packets = bytes.as_u64().div_ceil(u64::from(settings.mtu.as_u32()));
            packets.clamp(1, u64::from(PSN_WINDOW)) as u32
        });
        self.timeout = settings.timeout.span().unwrap_or(Span::ZERO);
        self.retries_left = settings.retry_count;
        self.rnr_left = settings.rnr_retry.count();
        self.max_reads = settings.max_reads;
    }

    /// How many PSNs are in flight.
    #[inline]
    fn in_flight(&self) -> u32 {
        self.next.distance_from(self.una)
    }

    /// When something has to be done although nothing arrives.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        if self.quiet_until > Time::ZERO {
            self.quiet_until
        } else {
            self.overdue
        }
    }

    /// The PSN of the next new packet.
    pub(crate) fn end(&self) -> Psn {
        self.end
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Where the next request goes, if it is a datagram.
    #[inline]
    pub(crate) fn next_datagram(&self) -> Option<&Datagram> {
        self.queue
            .get(self.index as usize)?
            .request
            .datagram
            .as_ref()
    }

    pub(crate) fn push(&mut self, request: SendRequest, captured: Option<M::Captured>) {
        let length = match request.operation {
            SendOperation::CompareSwap { .. } | SendOperation::FetchAdd { .. } => 8,
            _ => request.local.iter().map(|piece| piece.length).sum(),
        };
        if self.queue.capacity() == 0 {
            self.queue.reserve_exact(1);
        }
        self.queue.push_back(Posted {
            request,
            captured,
            length,
            packets: 0,
            first: Psn::default(),
            sequence: Msn::default(),
            begun: false,
            checked: None,
            ended: None,
        });
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// The request that `psn` belongs to, counted from the head.
    fn position_of(&self, psn: Psn) -> usize {
        self.queue
            .partition_point(|posted| posted.begun && posted.end().offset_from(psn) <= 0)
    }
}

impl<M: Memory> QueuePair<M> {
    /// Whether a request packet could be sent now, as far as the queue pair alone decides.
    #[inline]
    pub(crate) fn request_ready(&self) -> bool {
        let requester = &self.requester;
        if requester.queue.is_empty() || requester.quiet_until > Time::ZERO {
            return false;
        }
        let fresh = match self.state {
            State::ReadyToSend => true,
            State::SendQueueDrain => false,
            _ => return false,
        };
        if let Some(selective) = &requester.selective
            && selective.next_lost(requester.una, requester.end).is_some()
        {
            return true;
        }
        let Some(posted) = requester.queue.get(requester.index as usize) else {
            return false;
        };
        if posted.ended.is_some() || requester.in_flight() >= requester.window {
            return false;
        }
        if posted.begun {
            return true;
        }
        // A drained queue begins nothing new (IBTA vol. 1, 10.3.1.5).
        fresh && self.may_begin(posted)
    }

    /// Whether the next request may be begun: fence, reads in flight, and the peer's credits.
    #[inline]
    fn may_begin(&self, posted: &Posted<M>) -> bool {
        let requester = &self.requester;
        if requester.reads > 0 {
            if posted.request.flags.contains(SendFlags::FENCE) {
                return false;
            }
            if posted.is_read_or_atomic() && requester.reads >= requester.max_reads {
                return false;
            }
        }
        // All PSNs of a read are in flight at once.
        if let SendOperation::Read(_) = posted.request.operation {
            let packets = posted.length.div_ceil(self.settings.mtu.as_u32());
            if requester.in_flight() + packets > PSN_WINDOW {
                return false;
            }
        }
        // IBTA vol. 1, 9.7.7.2.5: without a credit, one request may be in flight to probe for one.
        if let Some(limit) = requester.credit_limit
            && posted.takes_receive()
        {
            let ahead = requester.next_sequence.distance_from(limit);
            let beyond = ahead > 0 && ahead < 1 << 23;
            return !beyond || requester.una == requester.end;
        }
        true
    }

    /// Completes the requests at the head that are done, in order.
    pub(crate) fn reap(&mut self, core: &mut Core<M>) {
        while let Some(head) = self.requester.queue.front() {
            let status = match head.ended {
                Some(status) => status,
                None if head.begun
                    && !head.is_local()
                    && self.requester.una.offset_from(head.end()) >= 0 =>
                {
                    Status::Success
                }
                None => break,
            };
            if status != Status::Success {
                self.fail_request(core, status);
                return;
            }
            let Some(head) = self.requester.queue.pop_front() else {
                return;
            };
            // The cursor may still stand in the request: what it would send again has arrived.
            if self.requester.index == 0 {
                self.requester.packet = 0;
            } else {
                self.requester.index -= 1;
            }
            if self.signal_all || head.request.flags.contains(SendFlags::SIGNALED) {
                core.complete(self.send_queue, self.sent(&head, Status::Success));
            }
        }
        self.check_drained(core);
    }

    fn sent(&self, posted: &Posted<M>, status: Status) -> Completion {
        let operation = match posted.request.operation {
            SendOperation::Send
            | SendOperation::SendImmediate(_)
            | SendOperation::SendInvalidate(_) => CompletedOperation::Send,
            SendOperation::Write(_) | SendOperation::WriteImmediate(..) => {
                CompletedOperation::Write
            }
            SendOperation::Read(_) => CompletedOperation::Read,
            SendOperation::CompareSwap { .. } => CompletedOperation::CompareSwap,
            SendOperation::FetchAdd { .. } => CompletedOperation::FetchAdd,
            SendOperation::BindWindow(_) => CompletedOperation::BindWindow,
            SendOperation::LocalInvalidate(_) => CompletedOperation::LocalInvalidate,
        };
        Completion {
            id: posted.request.id,
            status,
            operation,
            qp: self.number,
            length: posted.length,
            attachment: Attachment::None,
            flags: CompletionFlags::empty(),
            source: Qpn::default(),
            source_gid: softfabric_units::Gid::default(),
            partition: PartitionKey::DEFAULT,
        }
    }

    /// Completes the request at the head with an error and stops the send queue: a reliable connection goes to ERR,
    /// the others to SQE (IBTA vol. 1, 10.3.1.6).
    pub(crate) fn fail_request(&mut self, core: &mut Core<M>, status: Status) {
        if let Some(head) = self.requester.queue.pop_front() {
            core.count(DeviceCounter::CompletionErrors);
            core.complete(self.send_queue, self.sent(&head, status));
        }
        if self.service.is_reliable() {
            self.fail(core);
        } else {
            self.state = State::SendQueueError;
            self.flush_sends(core);
        }
    }

    /// Completes every send request as flushed.
    pub(crate) fn flush_sends(&mut self, core: &mut Core<M>) {
        while let Some(posted) = self.requester.queue.pop_front() {
            core.count(DeviceCounter::FlushedRequests);
            core.complete(self.send_queue, self.sent(&posted, Status::Flushed));
        }
        let requester = &mut self.requester;
        requester.index = 0;
        requester.packet = 0;
        requester.reads = 0;
        requester.una = requester.end;
        requester.next = requester.end;
        requester.overdue = Time::NEVER;
        requester.quiet_until = Time::ZERO;
        requester.selective = None;
        requester.implied = None;
    }

    /// Raises the drained event when nothing that was begun is left (IBTA vol. 1, 10.3.1.5).
    pub(crate) fn check_drained(&mut self, core: &mut Core<M>) {
        if !self.draining {
            return;
        }
        let busy = self
            .requester
            .queue
            .front()
            .is_some_and(|head| head.begun && head.ended.is_none());
        if !busy {
            self.draining = false;
            if self.settings.drain_notify {
                core.events.push_back(Event::SendQueueDrained(self.number));
            }
        }
    }

    /// Checks the local memory of a request, unless it held at this epoch.
    fn check_segments(
        core: &Core<M>,
        domain: crate::memory::Domain,
        posted: &mut Posted<M>,
    ) -> bool {
        let epoch = core.keys.epoch();
        if posted.checked == Some(epoch) || posted.captured.is_some() {
            return true;
        }
        let need = if posted.is_read_or_atomic() {
            Access::LOCAL_WRITE
        } else {
            Access::empty()
        };
        let held = posted.request.local.iter().all(|piece| {
            piece.length == 0
                || core
                    .keys
                    .check_local(
                        piece.key,
                        domain,
                        piece.address,
                        u64::from(piece.length),
                        need,
                    )
                    .is_ok()
        });
        if held {
            posted.checked = Some(epoch);
        }
        held
    }
}

/// The checked pieces of `length` bytes from `offset` of a scatter/gather list.
#[inline]
pub(crate) fn segments<'a>(
    keys: &'a crate::memory::KeyTable,
    domain: crate::memory::Domain,
    local: &'a SmallVec<[LocalSegment; 1]>,
    offset: u32,
    length: u32,
) -> impl Iterator<Item = Segment> + 'a {
    let mut skip = u64::from(offset);
    let mut left = length;
    local.iter().filter_map(move |piece| {
        if skip >= u64::from(piece.length) {
            skip -= u64::from(piece.length);
            return None;
        }
        let length = (piece.length - skip as u32).min(left);
        if length == 0 {
            return None;
        }
        let address = piece.address + skip;
        skip = 0;
        left -= length;
        let found = keys.check_local(
            piece.key,
            domain,
            address,
            u64::from(length),
            Access::empty(),
        );
        found.ok().map(|translation| Segment {
            region: translation.region,
            address: translation.address,
            length,
        })
    })
}
