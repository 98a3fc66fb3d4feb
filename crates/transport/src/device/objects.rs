//! Domains, memory keys, completion queues and shared receive queues.

use super::Device;
use crate::completion::{
    Armed, Completion, CompletionQueue, CompletionQueueError, CompletionQueueId,
    CompletionQueueStatus,
};
use crate::memory::{
    Domain, Memory, RegionChange, RegionInit, RegisterError, ReleaseKeyError, ReregisterError,
    WindowKind,
};
use crate::receive_queue::{
    SharedQueue, SharedQueueError, SharedQueueId, SharedQueueInit, SharedQueueStatus,
};

impl<M: Memory> Device<M> {
    /// Makes a protection domain.
    pub fn alloc_domain(&mut self) -> Domain {
        self.core.keys.alloc_domain()
    }

    /// Removes a protection domain.
    ///
    /// # Errors
    /// If there is none, or something still belongs to it.
    pub fn dealloc_domain(&mut self, domain: Domain) -> Result<(), ReleaseKeyError> {
        self.core.keys.dealloc_domain(domain)
    }

    /// Registers memory and returns its key, local and remote in one.
    ///
    /// # Errors
    /// If the domain does not exist, the rights contradict each other or the range wraps.
    pub fn register_memory(
        &mut self,
        domain: Domain,
        region: &RegionInit,
    ) -> Result<u32, RegisterError> {
        self.core.keys.register(domain, region)
    }

    /// Changes whose a region is, where it is, or what it may be used for. Its key stays.
    ///
    /// # Errors
    /// If the key is no region's, windows are bound to it, or it could not be registered so.
    pub fn reregister_memory(
        &mut self,
        key: u32,
        change: &RegionChange,
    ) -> Result<(), ReregisterError> {
        self.core.keys.reregister(key, change)
    }

    /// Releases a memory region; its key opens nothing any more.
    ///
    /// # Errors
    /// If the key opens nothing, or windows are bound to the region.
    pub fn deregister_memory(&mut self, key: u32) -> Result<(), ReleaseKeyError> {
        self.core.keys.release(key)
    }

    /// Makes a memory window, not bound yet, and returns its first key. It is bound by a work request.
    ///
    /// # Errors
    /// If the domain does not exist.
    pub fn alloc_window(&mut self, domain: Domain, kind: WindowKind) -> Result<u32, RegisterError> {
        self.core.keys.alloc_window(domain, kind)
    }

    /// Releases a memory window, bound or not.
    ///
    /// # Errors
    /// If the key opens nothing.
    pub fn dealloc_window(&mut self, key: u32) -> Result<(), ReleaseKeyError> {
        self.core.keys.release(key)
    }

    /// Makes a completion queue for `depth` entries.
    ///
    /// # Errors
    /// If the depth is zero or above the device's limit.
    pub fn create_cq(&mut self, depth: u32) -> Result<CompletionQueueId, CompletionQueueError> {
        self.check_depth(depth)?;
        let number = self
            .core
            .completion_queues
            .insert(CompletionQueue::new(depth));
        Ok(CompletionQueueId(number))
    }

    /// Changes the depth of a completion queue.
    ///
    /// # Errors
    /// If there is none, or the depth is out of range or too small for what waits.
    pub fn resize_cq(
        &mut self,
        queue: CompletionQueueId,
        depth: u32,
    ) -> Result<(), CompletionQueueError> {
        self.check_depth(depth)?;
        self.completion_queue(queue)?.resize(depth)
    }

    /// Removes a completion queue.
    ///
    /// # Errors
    /// If there is none, or queue pairs still use it.
    pub fn destroy_cq(&mut self, queue: CompletionQueueId) -> Result<(), CompletionQueueError> {
        let users = self.completion_queue(queue)?.users;
        if users > 0 {
            return Err(CompletionQueueError::InUse(users));
        }
        self.core.completion_queues.remove(queue.0);
        Ok(())
    }

    fn check_depth(&self, depth: u32) -> Result<(), CompletionQueueError> {
        let needed = self.core.config.limits.completions;
        if depth == 0 || depth > needed {
            let found = depth;
            return Err(CompletionQueueError::Depth { found, needed });
        }
        Ok(())
    }

    fn completion_queue(
        &mut self,
        queue: CompletionQueueId,
    ) -> Result<&mut CompletionQueue, CompletionQueueError> {
        self.core
            .completion_queues
            .get_mut(queue.0)
            .ok_or(CompletionQueueError::Unknown(queue))
    }

    /// Tells how a completion queue stands.
    pub fn query_cq(&self, queue: CompletionQueueId) -> Option<CompletionQueueStatus> {
        let queue = self.core.completion_queues.get(queue.0)?;
        Some(queue.status())
    }

    /// The next completion of a queue.
    #[inline]
    pub fn poll_completion(&mut self, queue: CompletionQueueId) -> Option<Completion> {
        self.core.completion_queues.get_mut(queue.0)?.pop()
    }

    /// Asks for one event at the next completion, or at the next solicited one (or error). Asking for more wins over
    /// asking for less (IBTA vol. 1, 11.4.2.2).
    ///
    /// # Errors
    /// If there is no such queue.
    pub fn request_notify(
        &mut self,
        queue: CompletionQueueId,
        solicited_only: bool,
    ) -> Result<(), CompletionQueueError> {
        let wanted = if solicited_only {
            Armed::Solicited
        } else {
            Armed::Any
        };
        let queue = self.completion_queue(queue)?;
        queue.armed = queue.armed.max(wanted);
        Ok(())
    }

    /// Makes a shared receive queue.
    ///
    /// # Errors
    /// If the domain does not exist or a capacity is out of range.
    pub fn create_srq(&mut self, init: SharedQueueInit) -> Result<SharedQueueId, SharedQueueError> {
        let limits = self.core.config.limits;
        if init.depth == 0 || init.depth > limits.work_requests {
            return Err(SharedQueueError::Depth {
                found: init.depth,
                needed: limits.work_requests,
            });
        }
        if init.segments > limits.segments {
            return Err(SharedQueueError::Segments {
                found: init.segments,
                needed: limits.segments,
            });
        }
        if !self.core.keys.join(init.domain) {
            return Err(SharedQueueError::UnknownDomain(init.domain));
        }
        let number = self.core.shared_queues.insert(SharedQueue::new(init));
        Ok(SharedQueueId(number))
    }

    /// Arms the limit event of a shared receive queue: it is raised once, when fewer than `limit` requests wait after
    /// one was taken. Zero disarms.
    ///
    /// # Errors
    /// If there is no such queue, or the limit is above its depth.
    pub fn set_srq_limit(
        &mut self,
        queue: SharedQueueId,
        limit: u32,
    ) -> Result<(), SharedQueueError> {
        let shared = self.shared_queue(queue)?;
        if limit > shared.init.depth {
            return Err(SharedQueueError::Limit {
                found: limit,
                needed: shared.init.depth,
            });
        }
        shared.limit = limit;
        Ok(())
    }

    /// Changes how many requests a shared receive queue holds.
    ///
    /// # Errors
    /// If there is no such queue, or the depth is out of range, or too small for what waits or for the limit.
    pub fn resize_srq(&mut self, queue: SharedQueueId, depth: u32) -> Result<(), SharedQueueError> {
        let most = self.core.config.limits.work_requests;
        let shared = self.shared_queue(queue)?;
        if depth == 0 || depth > most {
            return Err(SharedQueueError::Depth {
                found: depth,
                needed: most,
            });
        }
        let needed = shared.requests.len().max(shared.limit as usize);
        if (depth as usize) < needed {
            return Err(SharedQueueError::Resize {
                found: depth,
                needed,
            });
        }
        shared.init.depth = depth;
        Ok(())
    }

    /// Tells how a shared receive queue stands.
    pub fn query_srq(&self, queue: SharedQueueId) -> Option<SharedQueueStatus> {
        let shared = self.core.shared_queues.get(queue.0)?;
        Some(shared.status())
    }

    /// How many requests wait in a shared receive queue.
    pub fn srq_waiting(&self, queue: SharedQueueId) -> Option<usize> {
        self.query_srq(queue).map(|status| status.waiting)
    }

    /// Removes a shared receive queue and the requests that wait in it.
    ///
    /// # Errors
    /// If there is none, or queue pairs still use it.
    pub fn destroy_srq(&mut self, queue: SharedQueueId) -> Result<(), SharedQueueError> {
        let shared = self.shared_queue(queue)?;
        if shared.users > 0 {
            return Err(SharedQueueError::InUse(shared.users));
        }
        let domain = shared.init.domain;
        let xrc = shared.xrc;
        self.core.shared_queues.remove(queue.0);
        self.core.keys.leave(domain);
        if let Some((_, xrc)) = xrc {
            self.forget_xrc_srq(queue, xrc);
        }
        Ok(())
    }

    fn shared_queue(&mut self, queue: SharedQueueId) -> Result<&mut SharedQueue, SharedQueueError> {
        self.core
            .shared_queues
            .get_mut(queue.0)
            .ok_or(SharedQueueError::Unknown(queue))
    }
}
