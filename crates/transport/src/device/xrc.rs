//! XRC: shared receive queues that peers name by number, and the domains that they belong to (annex A14).
//!
//! ```text
//! initiator ── request, XRCETH: number ──► target ──► the shared receive queue of that number, in the target's domain:
//!                                                     its receive requests, its memory's domain, its completion queue
//! ```
//!
//! So one connection per host reaches every process of it, each by its own shared receive queue.

use super::Device;
use crate::memory::Memory;
use crate::receive_queue::{
    SharedQueue, SharedQueueError, SharedQueueId, SharedQueueInit, XrcDomain, XrcError,
    XrcQueueInit,
};
use crate::table::Table;

/// XRC domains, and how many objects belong to each.
#[derive(Debug, Default)]
pub(crate) struct XrcDomains(Table<u32>);

impl XrcDomains {
    fn members(&mut self, domain: XrcDomain) -> Option<&mut u32> {
        self.0.get_mut(domain.0)
    }

    pub(super) fn has(&self, domain: XrcDomain) -> bool {
        self.0.contains(domain.0)
    }

    pub(super) fn join(&mut self, domain: XrcDomain) {
        if let Some(members) = self.members(domain) {
            *members += 1;
        }
    }

    pub(super) fn leave(&mut self, domain: XrcDomain) {
        if let Some(members) = self.members(domain) {
            *members = members.saturating_sub(1);
        }
    }
}

/// How many shared receive queues of XRC have numbers: 16 bits of index over 8 of variant, which moves on whenever the
/// index is used again, as in memory keys.
const MOST: u32 = 1 << 16;

impl<M: Memory> Device<M> {
    /// Makes an XRC domain.
    pub fn alloc_xrc_domain(&mut self) -> XrcDomain {
        XrcDomain(self.core.xrc_domains.0.insert(0))
    }

    /// Removes an XRC domain.
    ///
    /// # Errors
    /// If there is none, or shared receive queues or targets still belong to it.
    pub fn dealloc_xrc_domain(&mut self, domain: XrcDomain) -> Result<(), XrcError> {
        match self.core.xrc_domains.members(domain) {
            None => Err(XrcError::UnknownDomain(domain)),
            Some(0) => {
                self.core.xrc_domains.0.remove(domain.0);
                Ok(())
            }
            Some(members) => Err(XrcError::DomainInUse(domain, *members)),
        }
    }

    /// Makes a shared receive queue of XRC; [`Device::query_srq`] tells its number. Targets of the XRC domain receive
    /// through it, no queue pair is made with it.
    ///
    /// # Errors
    /// If a domain or the completion queue does not exist, or a capacity is out of range.
    pub fn create_xrc_srq(
        &mut self,
        init: SharedQueueInit,
        xrc: XrcQueueInit,
    ) -> Result<SharedQueueId, SharedQueueError> {
        if !self.core.xrc_domains.has(xrc.domain) {
            return Err(SharedQueueError::UnknownXrcDomain(xrc.domain));
        }
        let completions = xrc.completions.0;
        if !self.core.completion_queues.contains(completions) {
            return Err(SharedQueueError::UnknownCompletionQueue(xrc.completions));
        }
        let queue = self.create_srq(init)?;
        let index = Table::<SharedQueue>::index(queue.0);
        if index >= MOST {
            self.destroy_srq(queue)?;
            return Err(SharedQueueError::NoNumbers(MOST));
        }
        // 1 to 255: no number is zero, which is what a request says that names none.
        self.srq_variant = self.srq_variant % 255 + 1;
        let number = index << 8 | u32::from(self.srq_variant);
        if let Some(shared) = self.core.shared_queues.get_mut(queue.0) {
            shared.xrc = Some((number, xrc));
        }
        self.core.xrc_domains.join(xrc.domain);
        if let Some(queue) = self.core.completion_queues.get_mut(completions) {
            queue.users += 1;
        }
        Ok(queue)
    }

    /// A shared receive queue of XRC is going: targets forget it, and the receive request that they have of it.
    pub(super) fn forget_xrc_srq(&mut self, queue: SharedQueueId, xrc: XrcQueueInit) {
        for (_, qp) in &mut self.queue_pairs {
            if qp.xrc.is_some() && qp.shared == Some(queue) {
                qp.forget_queue();
            }
        }
        self.core.xrc_domains.leave(xrc.domain);
        let completions = xrc.completions.0;
        if let Some(queue) = self.core.completion_queues.get_mut(completions) {
            queue.users = queue.users.saturating_sub(1);
        }
    }
}
