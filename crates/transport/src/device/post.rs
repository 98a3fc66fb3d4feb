//! Work requests in.

use softfabric_units::{Qpn, Time};

use super::Device;
use crate::completion::Status;
use crate::memory::{Memory, Segment};
use crate::queue_pair::{QueuePair, State};
use crate::receive_queue::SharedQueueId;
use crate::requester::PSN_WINDOW;
use crate::work::{PostError, ReceiveRequest, SendFlags, SendOperation, SendRequest};

impl<M: Memory> Device<M> {
    /// Adds a request to the send queue.
    ///
    /// # Errors
    /// If the queue pair does not exist, is not ready, is full, or cannot do this; see [`PostError`].
    pub fn post_send(
        &mut self,
        now: Time,
        number: Qpn,
        request: SendRequest,
    ) -> Result<(), PostError> {
        let slot = *self.by_number.get(&number).ok_or(PostError::UnknownQueue)?;
        let qp = &mut self.queue_pairs[slot as usize];
        let core = &mut self.core;
        if !qp.service.sends() {
            return Err(PostError::Operation {
                service: qp.service,
            });
        }
        // IBTA vol. 1, 10.3.1 and 10.8.2: posting is an error before RTS; in ERR and SQE requests are flushed.
        if matches!(
            qp.state,
            State::Reset | State::Initialized | State::ReadyToReceive
        ) {
            return Err(PostError::State {
                found: qp.state,
                needed: State::ReadyToSend,
            });
        }
        check_send(qp, core.config.limits.message, &request)?;
        let captured = if request.flags.contains(SendFlags::INLINE) {
            let pieces = request.local.iter().map(|piece| Segment {
                region: 0,
                address: piece.address,
                length: piece.length,
            });
            Some(core.memory.capture(pieces)?)
        } else {
            None
        };
        qp.requester.push(request, captured);
        if matches!(qp.state, State::Error | State::SendQueueError) {
            qp.flush_sends(core);
        } else {
            qp.prepare(core, now);
            qp.refresh(core);
        }
        if !self.core.overruns.is_empty() {
            self.settle_overruns();
        }
        Ok(())
    }

    /// Adds a request to the receive queue.
    ///
    /// # Errors
    /// If the queue pair does not exist, is in RESET, is full, or receives through a shared queue.
    pub fn post_recv(&mut self, number: Qpn, request: ReceiveRequest) -> Result<(), PostError> {
        let slot = *self.by_number.get(&number).ok_or(PostError::UnknownQueue)?;
        let qp = &mut self.queue_pairs[slot as usize];
        if !qp.service.takes_receives() {
            return Err(PostError::Operation {
                service: qp.service,
            });
        }
        if qp.shared.is_some() {
            return Err(PostError::Shared);
        }
        if qp.state == State::Reset {
            return Err(PostError::State {
                found: qp.state,
                needed: State::Initialized,
            });
        }
        if qp.receives.len() >= qp.capacity.receives as usize {
            return Err(PostError::Full(qp.capacity.receives));
        }
        check_segments(request.local.len(), qp.capacity.receive_segments)?;
        if qp.state == State::Error {
            qp.complete_failed_receive(&mut self.core, request.id, Status::Flushed);
            self.settle_overruns();
        } else {
            qp.receives.push_back(request);
        }
        Ok(())
    }

    /// Adds a request to a shared receive queue.
    ///
    /// # Errors
    /// If the queue does not exist or is full.
    pub fn post_srq_recv(
        &mut self,
        queue: SharedQueueId,
        request: ReceiveRequest,
    ) -> Result<(), PostError> {
        let shared = self
            .core
            .shared_queues
            .get_mut(queue.0)
            .ok_or(PostError::UnknownQueue)?;
        if shared.requests.len() >= shared.init.depth as usize {
            return Err(PostError::Full(shared.init.depth));
        }
        check_segments(request.local.len(), shared.init.segments)?;
        shared.requests.push_back(request);
        Ok(())
    }
}

fn check_segments(found: usize, needed: u32) -> Result<(), PostError> {
    if found > needed as usize {
        return Err(PostError::Segments { found, needed });
    }
    Ok(())
}

/// Whether the queue pair's service can do the request (IBTA vol. 1, table 35), and its lengths are in range.
fn check_send<M: Memory>(
    qp: &QueuePair<M>,
    longest: u32,
    request: &SendRequest,
) -> Result<(), PostError> {
    let service = qp.service;
    if qp.requester.waiting() >= qp.capacity.sends as usize {
        return Err(PostError::Full(qp.capacity.sends));
    }
    check_segments(request.local.len(), qp.capacity.send_segments)?;
    let (reliable, connected) = (service.is_reliable(), service.is_connected());
    let inline = request.flags.contains(SendFlags::INLINE);
    let (allowed, inlines) = match request.operation {
        SendOperation::Send | SendOperation::SendImmediate(_) => (true, true),
        SendOperation::SendInvalidate(_) => (reliable, true),
        SendOperation::Write(_) | SendOperation::WriteImmediate(..) => (connected, true),
        SendOperation::Read(_)
        | SendOperation::CompareSwap { .. }
        | SendOperation::FetchAdd { .. } => (reliable, false),
        SendOperation::BindWindow(_) | SendOperation::LocalInvalidate(_) => (connected, false),
    };
    if !allowed || (inline && !inlines) {
        return Err(PostError::Operation { service });
    }
    if request.datagram.is_some() == connected {
        return Err(PostError::Destination);
    }
    let length: u64 = request
        .local
        .iter()
        .map(|piece| u64::from(piece.length))
        .sum();
    // On a path with the smallest MTU the longest message would have more PSNs than can be told apart.
    let needed = if connected {
        longest.min(qp.settings.mtu.as_u32().saturating_mul(PSN_WINDOW))
    } else {
        qp.settings.mtu.as_u32()
    };
    if length > u64::from(needed) {
        let found = length;
        return Err(PostError::Length { found, needed });
    }
    if inline && length > u64::from(qp.capacity.inline) {
        return Err(PostError::Inline {
            found: length,
            needed: qp.capacity.inline,
        });
    }
    match request.operation {
        SendOperation::CompareSwap { remote, .. } | SendOperation::FetchAdd { remote, .. }
            if length < 8 || !remote.address.is_multiple_of(8) =>
        {
            Err(PostError::Atomic)
        }
        _ => Ok(()),
    }
}
