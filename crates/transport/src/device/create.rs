//! Queue pairs: made, opened and removed.

use std::collections::VecDeque;

use softfabric_units::{Bytes, Qpn, Time};

use super::Device;
use super::queue_pairs::unset;
use crate::completion::CompletionQueueId;
use crate::memory::Memory;
use crate::queue_pair::{
    CreateError, ModifyError, Pace, QueuePair, QueuePairInit, QueuePairStatistics, QueuePairType,
    State,
};
use crate::rate::{RateControl, RateControlConfig};
use crate::receive_queue::{SharedQueueId, XrcDomain, XrcError};
use crate::requester::Requester;
use crate::responder::Responder;

impl<M: Memory> Device<M> {
    /// Makes a queue pair, in state RESET, and returns its number.
    ///
    /// # Errors
    /// If an object does not exist, the number is taken or a capacity is out of range.
    pub fn create_qp(&mut self, init: &QueuePairInit) -> Result<Qpn, CreateError> {
        self.check_init(init)?;
        let number = match init.number {
            Some(number) if self.by_number.contains_key(&number) => {
                return Err(CreateError::NumberTaken(number));
            }
            Some(number) => number,
            None => self.free_number()?,
        };
        self.core.keys.join(init.domain);
        self.use_queues([init.send_queue, init.receive_queue], init.shared, 1);
        if let Some(xrc) = init.xrc {
            self.core.xrc_domains.join(xrc);
        }
        let receive_domain = init
            .shared
            .and_then(|shared| self.core.shared_queues.get(shared.0))
            .map_or(init.domain, |shared| shared.init.domain);
        let config = init.rate_control.unwrap_or(self.core.config.rate_control);
        self.next_serial = self.next_serial.wrapping_add(1);
        let entry = self.queue_pairs.vacant_entry();
        let slot = entry.key() as u32;
        entry.insert(QueuePair {
            number,
            slot,
            serial: self.next_serial,
            service: init.service,
            state: State::Reset,
            signal_all: init.signal_all,
            draining: false,
            domain: init.domain,
            receive_domain,
            send_queue: init.send_queue,
            receive_queue: init.receive_queue,
            shared: init.shared,
            xrc: init.xrc,
            openings: 1,
            settings: unset(number, self.core.config.mtu, init.window),
            requester: Requester::new(),
            responder: Responder::new(),
            receives: VecDeque::new(),
            rate: RateControl::new(&config, self.core.config.line_rate, Time::ZERO),
            pace: Pace {
                until: Time::ZERO,
                last_sent: Time::ZERO,
                last_size: Bytes::ZERO,
                waits: false,
                entry: Time::ZERO,
            },
            armed: Time::NEVER,
            in_requests: None,
            in_responses: None,
            statistics: QueuePairStatistics::default(),
            capacity: init.capacity,
        });
        self.by_number.insert(number, slot);
        Ok(number)
    }

    fn check_init(&self, init: &QueuePairInit) -> Result<(), CreateError> {
        match init.number {
            Some(number @ (Qpn::SUBNET_MANAGEMENT | Qpn::MULTICAST)) => {
                return Err(CreateError::Reserved(number));
            }
            Some(Qpn::GENERAL_SERVICES) if init.service != QueuePairType::UnreliableDatagram => {
                return Err(CreateError::GeneralServices(init.service));
            }
            _ => {}
        }
        let limits = &self.core.config.limits;
        if self.queue_pairs.len() >= limits.queue_pairs as usize {
            return Err(CreateError::TooMany(limits.queue_pairs));
        }
        self.check_objects(init)?;
        if let Some(Err(error)) = init.rate_control.as_ref().map(RateControlConfig::check) {
            return Err(CreateError::RateControl(error.parameter));
        }
        let capacity = &init.capacity;
        for (what, found, needed) in [
            ("send requests", capacity.sends, limits.work_requests),
            ("receive requests", capacity.receives, limits.work_requests),
            ("send segments", capacity.send_segments, limits.segments),
            (
                "receive segments",
                capacity.receive_segments,
                limits.segments,
            ),
            ("bytes of inline data", capacity.inline, limits.inline),
        ] {
            if found > needed {
                return Err(CreateError::Capacity {
                    what,
                    found,
                    needed,
                });
            }
        }
        Ok(())
    }

    /// Whether what the queue pair uses exists, and suits its type.
    fn check_objects(&self, init: &QueuePairInit) -> Result<(), CreateError> {
        let service = init.service;
        match (service, init.xrc) {
            (QueuePairType::XrcTarget, Some(xrc)) if self.core.xrc_domains.has(xrc) => {}
            (QueuePairType::XrcTarget, Some(xrc)) => {
                return Err(CreateError::UnknownXrcDomain(xrc));
            }
            (QueuePairType::XrcTarget, None) | (_, Some(_)) => {
                return Err(CreateError::Xrc(service));
            }
            (_, None) => {
                if !self.core.keys.has_domain(init.domain) {
                    return Err(CreateError::UnknownDomain(init.domain));
                }
                for queue in [init.send_queue, init.receive_queue] {
                    if !self.core.completion_queues.contains(queue.0) {
                        return Err(CreateError::UnknownCompletionQueue(queue));
                    }
                }
            }
        }
        let Some(shared) = init.shared else {
            return Ok(());
        };
        match self.core.shared_queues.get(shared.0) {
            None => Err(CreateError::UnknownSharedQueue(shared)),
            Some(queue) if queue.xrc.is_some() || !service.takes_receives() => {
                Err(CreateError::Shared(service, shared))
            }
            Some(_) => Ok(()),
        }
    }

    fn use_queues(
        &mut self,
        queues: [CompletionQueueId; 2],
        shared: Option<SharedQueueId>,
        change: i32,
    ) {
        for queue in queues {
            self.count_user(queue, change);
        }
        if let Some(shared) = shared
            && let Some(shared) = self.core.shared_queues.get_mut(shared.0)
        {
            shared.users = shared.users.saturating_add_signed(change);
        }
    }

    fn count_user(&mut self, queue: CompletionQueueId, change: i32) {
        if let Some(queue) = self.core.completion_queues.get_mut(queue.0) {
            queue.users = queue.users.saturating_add_signed(change);
        }
    }

    /// The next number in turn that no queue pair has.
    fn free_number(&mut self) -> Result<Qpn, CreateError> {
        let numbers = self.core.config.qp_numbers;
        // Among one more numbers than there are queue pairs, one is free.
        let tries = (self.by_number.len() as u32 + 1).min(numbers.count());
        for _ in 0..tries {
            let number = self.next_number;
            self.next_number = numbers.after(number);
            if !self.by_number.contains_key(&number) {
                return Ok(number);
            }
        }
        Err(CreateError::NoNumbers(numbers.count()))
    }

    /// Opens an XRC target once more, for another user of its domain: it is removed when all have destroyed it.
    ///
    /// # Errors
    /// If the domain has no target of this number.
    pub fn open_qp(&mut self, domain: XrcDomain, number: Qpn) -> Result<(), XrcError> {
        let slot = self.by_number.get(&number);
        let qp = slot.and_then(|&slot| self.queue_pairs.get_mut(slot as usize));
        match qp {
            Some(qp) if qp.xrc == Some(domain) => {
                qp.openings += 1;
                Ok(())
            }
            _ => Err(XrcError::NoTarget(domain, number)),
        }
    }

    /// Removes a queue pair with everything that waits in it, and its entries in its completion queues. An XRC target
    /// stays while others have it open; what it completed stays in the completion queues of its shared receive queues.
    ///
    /// # Errors
    /// If there is no such queue pair, or it is attached to a multicast group (IBTA vol. 1, 11.2.5.4).
    pub fn destroy_qp(&mut self, number: Qpn) -> Result<(), ModifyError> {
        let slot = *self
            .by_number
            .get(&number)
            .ok_or(ModifyError::Unknown(number))?;
        let groups = self.multicast_groups(number).count();
        if groups > 0 {
            return Err(ModifyError::Attached(groups));
        }
        let qp = &mut self.queue_pairs[slot as usize];
        qp.openings -= 1;
        if qp.openings > 0 {
            return Ok(());
        }
        qp.return_receive(&mut self.core);
        let qp = self.queue_pairs.remove(slot as usize);
        self.by_number.remove(&number);
        self.core.lanes.purge(slot);
        match qp.xrc {
            Some(xrc) => self.core.xrc_domains.leave(xrc),
            None => {
                self.core.keys.leave(qp.domain);
                let queues = [qp.send_queue, qp.receive_queue];
                self.use_queues(queues, qp.shared, -1);
                for queue in queues {
                    if let Some(queue) = self.core.completion_queues.get_mut(queue.0) {
                        queue.purge(number);
                    }
                }
            }
        }
        Ok(())
    }
}
