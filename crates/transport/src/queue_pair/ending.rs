//! How a queue pair ends: in the error state, or back in RESET.

use super::{QueuePair, State};
use crate::completion::Status;
use crate::core::Core;
use crate::event::Event;
use crate::memory::Memory;
use crate::responder::Responder;

impl<M: Memory> QueuePair<M> {
    /// Puts the queue pair into the error state and flushes what it holds (IBTA vol. 1, 10.3.1.7).
    pub(crate) fn fail(&mut self, core: &mut Core<M>) {
        self.responder.forget_replies();
        self.fail_after_replies(core);
    }

    /// The same, but what is owed to the peer is still sent: a refusal comes after the answers to requests before it.
    pub(crate) fn fail_after_replies(&mut self, core: &mut Core<M>) {
        self.state = State::Error;
        self.draining = false;
        self.responder.give_up();
        self.flush_sends(core);
        self.complete_receive_with(core, Status::Flushed);
        while let Some(receive) = self.receives.pop_front() {
            self.complete_failed_receive(core, receive.id, Status::Flushed);
        }
        // No target of XRC is attached to a shared receive queue.
        if self.shared.is_some() && self.xrc.is_none() {
            let event = Event::LastReceiveReached(self.number);
            core.events.push_back(event);
        }
    }

    /// Back to RESET: everything is forgotten, nothing completes (IBTA vol. 1, 10.3.1.1).
    pub(crate) fn reset(&mut self, core: &mut Core<M>) {
        self.state = State::Reset;
        self.draining = false;
        self.requester.clear();
        self.return_receive(core);
        if self.xrc.is_some() {
            self.forget_queue();
        }
        self.responder = Responder::new();
        self.receives.clear();
        core.lanes.purge(self.slot);
        self.in_requests = None;
        self.in_responses = None;
        // As drivers of real devices do: what was completed before says nothing about the queue pair after it.
        for queue in [self.send_queue, self.receive_queue] {
            if let Some(queue) = core.completion_queues.get_mut(queue.0) {
                queue.purge(self.number);
            }
        }
    }
}
