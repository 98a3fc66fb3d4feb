//! Targets of XRC: each request names the shared receive queue, and with it the memory, that it is for (annex A14).

use softfabric_wire::rdma::{NakCode, Position};

use crate::completion::CompletionQueueId;
use crate::core::Core;
use crate::memory::{Domain, Memory};
use crate::queue_pair::{QueuePair, QueuePairType};
use crate::receive_queue::{SharedQueue, SharedQueueId};

impl<M: Memory> QueuePair<M> {
    /// The shared receive queue of a number, if it is one of this target's domain.
    fn named<'a>(
        &self,
        core: &'a Core<M>,
        number: u32,
    ) -> Option<(SharedQueueId, &'a SharedQueue)> {
        let (id, queue) = core.shared_queues.at(number >> 8)?;
        let (its_number, xrc) = queue.xrc?;
        let ours = its_number == number && Some(xrc.domain) == self.xrc;
        ours.then_some((SharedQueueId(id), queue))
    }

    /// Turns the target to the shared receive queue that a request packet names: its requests, its memory's domain and
    /// its completion queue count from now on.
    ///
    /// Within a message the queue stays the same. One whose completion queue has overrun receives nothing more.
    pub(super) fn turn_to(
        &mut self,
        core: &Core<M>,
        number: u32,
        position: Position,
    ) -> Result<(), NakCode> {
        let Some((id, queue)) = self.named(core, number) else {
            return Err(NakCode::InvalidRequest);
        };
        if self.shared == Some(id) {
            return Ok(());
        }
        if !position.starts() {
            return Err(NakCode::InvalidRequest);
        }
        let Some((_, xrc)) = queue.xrc else {
            return Err(NakCode::InvalidRequest);
        };
        let completions = core.completion_queues.get(xrc.completions.0);
        if completions.is_none_or(|queue| queue.overrun) {
            return Err(NakCode::RemoteOperational);
        }
        self.shared = Some(id);
        self.domain = queue.init.domain;
        self.receive_domain = queue.init.domain;
        self.receive_queue = xrc.completions;
        Ok(())
    }

    /// Whose memory a request for the shared receive queue `number` uses; without XRC, the queue pair's own domain.
    pub(super) fn domain_of(&self, core: &Core<M>, number: u32) -> Option<Domain> {
        match self.service {
            QueuePairType::XrcTarget => {
                let (_, queue) = self.named(core, number)?;
                Some(queue.init.domain)
            }
            _ => Some(self.domain),
        }
    }

    /// The shared receive queue that the target has turned to is gone. The rest of a message for it is refused, for
    /// nothing has its number.
    pub(crate) fn forget_queue(&mut self) {
        self.shared = None;
        self.domain = Domain::NONE;
        self.receive_domain = Domain::NONE;
        self.receive_queue = CompletionQueueId::NONE;
        self.responder.receive = None;
    }
}
