//! Queue pairs: made, changed, queried and removed.

use std::collections::VecDeque;

use softfabric_units::{Bytes, PartitionKey, Qpn, Time};
use softfabric_wire::rdma::RnrTimer;

use super::Device;
use crate::address::AddressVector;
use crate::completion::CompletionQueueId;
use crate::config::{DeviceConfig, Mtu};
use crate::event::Event;
use crate::memory::{Access, Memory};
use crate::queue_pair::{
    AckTimeout, Attributes, CreateError, GENERAL_SERVICES_QKEY, Migration, Modify, ModifyError,
    Pace, QueuePair, QueuePairInit, QueuePairStatistics, QueuePairStatus, QueuePairType, RnrRetry,
    Settings, State, Transition,
};
use crate::rate::{RateControl, RateControlConfig};
use crate::requester::Requester;
use crate::responder::Responder;

/// What a queue pair is set to before it is told otherwise.
const UNSET: Settings = Settings {
    access: Access::empty(),
    partition: PartitionKey::DEFAULT,
    qkey: 0,
    path: AddressVector {
        gid: softfabric_units::Gid([0; 16]),
        driver: 0,
        flow_label: 0,
        source_port: 0,
        traffic_class: 0,
        hop_limit: 0,
        class: softfabric_units::Class::new(0),
    },
    mtu: Mtu::BYTES_4096,
    destination: Qpn::new(0),
    timeout: AckTimeout::OFF,
    retry_count: 0,
    rnr_retry: RnrRetry::new(0),
    max_reads: 0,
    max_peer_reads: 0,
    min_rnr_timer: RnrTimer::from_code(0),
    migration: Migration::Migrated,
    alternate_path: None,
    window: None,
    drain_notify: false,
};

/// What queue pair `number` is set to in RESET, on a device whose MTU is `mtu`.
fn unset(number: Qpn, mtu: Mtu, window: Option<Bytes>) -> Settings {
    let qkey = match number {
        Qpn::GENERAL_SERVICES => GENERAL_SERVICES_QKEY,
        _ => 0,
    };
    Settings {
        qkey,
        mtu,
        window,
        ..UNSET
    }
}

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
        self.use_queues(init, 1);
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
            send_queue: init.send_queue,
            receive_queue: init.receive_queue,
            shared: init.shared,
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
        if !self.core.keys.has_domain(init.domain) {
            return Err(CreateError::UnknownDomain(init.domain));
        }
        for queue in [init.send_queue, init.receive_queue] {
            if !self.core.completion_queues.contains(queue.0 as usize) {
                return Err(CreateError::UnknownCompletionQueue(queue));
            }
        }
        if let Some(shared) = init.shared
            && !self.core.shared_queues.contains(shared.0 as usize)
        {
            return Err(CreateError::UnknownSharedQueue(shared));
        }
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

    fn use_queues(&mut self, init: &QueuePairInit, change: i32) {
        for queue in [init.send_queue, init.receive_queue] {
            self.count_user(queue, change);
        }
        if let Some(shared) = init.shared
            && let Some(shared) = self.core.shared_queues.get_mut(shared.0 as usize)
        {
            shared.users = shared.users.saturating_add_signed(change);
        }
    }

    fn count_user(&mut self, queue: CompletionQueueId, change: i32) {
        if let Some(queue) = self.core.completion_queues.get_mut(queue.0 as usize) {
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

    /// Changes a queue pair: its state, its attributes, or both (IBTA vol. 1, 11.2.5.2).
    ///
    /// # Errors
    /// If there is no such queue pair or change of state, attributes are missing or may not be given, or a value is
    /// out of range. Nothing is changed then.
    pub fn modify_qp(
        &mut self,
        now: Time,
        number: Qpn,
        modify: &Modify,
    ) -> Result<(), ModifyError> {
        let slot = *self
            .by_number
            .get(&number)
            .ok_or(ModifyError::Unknown(number))?;
        let qp = &mut self.queue_pairs[slot as usize];
        let core = &mut self.core;
        check_modify(qp, &core.config, modify)?;
        let from = qp.state;
        let to = modify.state.unwrap_or(from);
        if to == State::Reset {
            qp.reset(core);
            qp.settings = unset(number, core.config.mtu, qp.settings.window);
        }
        apply(&mut qp.settings, modify);
        if let Some(psn) = modify.receive_psn {
            qp.responder.start(psn);
        }
        if let Some(psn) = modify.send_psn {
            qp.requester.start(psn);
        }
        if to == State::Error && from != State::Error {
            qp.fail(core);
        }
        qp.state = to;
        qp.draining = to == State::SendQueueDrain;
        qp.requester.configure(&qp.settings, &core.config);
        if qp.draining {
            qp.check_drained(core);
        }
        qp.prepare(core, now);
        qp.refresh(core);
        self.settle_overruns();
        Ok(())
    }

    /// Tells how a queue pair stands.
    pub fn query_qp(&self, number: Qpn) -> Option<QueuePairStatus> {
        let slot = *self.by_number.get(&number)?;
        let qp = &self.queue_pairs[slot as usize];
        Some(QueuePairStatus {
            service: qp.service,
            state: qp.state,
            domain: qp.domain,
            send_queue: qp.send_queue,
            receive_queue: qp.receive_queue,
            shared: qp.shared,
            signal_all: qp.signal_all,
            draining: qp.draining,
            settings: qp.settings,
            capacity: qp.capacity,
            send_psn: qp.requester.end(),
            receive_psn: qp.responder.expected(),
            sends_waiting: qp.requester.waiting(),
            receives_waiting: qp.receives.len(),
        })
    }

    /// Removes a queue pair with everything that waits in it, and its entries in the completion queues.
    ///
    /// # Errors
    /// If there is no such queue pair, or it is attached to a multicast group (IBTA vol. 1, 11.2.5.4).
    pub fn destroy_qp(&mut self, number: Qpn) -> Result<(), ModifyError> {
        let groups = self.multicast_groups(number).count();
        if groups > 0 {
            return Err(ModifyError::Attached(groups));
        }
        let slot = self
            .by_number
            .remove(&number)
            .ok_or(ModifyError::Unknown(number))?;
        let qp = self.queue_pairs.remove(slot as usize);
        self.core.lanes.purge(slot);
        self.core.keys.leave(qp.domain);
        for queue in [qp.send_queue, qp.receive_queue] {
            self.count_user(queue, -1);
            if let Some(queue) = self.core.completion_queues.get_mut(queue.0 as usize) {
                queue.purge(number);
            }
        }
        if let Some(shared) = qp.shared
            && let Some(shared) = self.core.shared_queues.get_mut(shared.0 as usize)
        {
            shared.users = shared.users.saturating_sub(1);
        }
        Ok(())
    }

    /// Puts the queue pairs of overrun completion queues into the error state (IBTA vol. 1, 10.2.6.3).
    pub(super) fn settle_overruns(&mut self) {
        while let Some(queue) = self.core.overruns.pop() {
            for (_, qp) in &mut self.queue_pairs {
                let uses = qp.send_queue == queue || qp.receive_queue == queue;
                if uses && qp.state != State::Error && qp.state != State::Reset {
                    qp.fail(&mut self.core);
                    qp.refresh(&mut self.core);
                    self.core.events.push_back(Event::QueuePairFatal(qp.number));
                }
            }
        }
    }
}

/// Checks a change against the state, the table of transitions, and the ranges of values.
fn check_modify<M: Memory>(
    qp: &QueuePair<M>,
    config: &DeviceConfig,
    modify: &Modify,
) -> Result<(), ModifyError> {
    let from = qp.state;
    let to = modify.state.unwrap_or(from);
    if let Some(needed) = modify.current_state
        && needed != from
    {
        return Err(ModifyError::CurrentState {
            found: from,
            needed,
        });
    }
    let named = modify.attributes();
    // A change of nothing but the window is no transition.
    if modify.state.is_none() && named.is_empty() {
        return Ok(());
    }
    let service = qp.service;
    let transition =
        Transition::of(service, from, to).ok_or(ModifyError::Transition { service, from, to })?;
    let missing = transition.required - named;
    if !missing.is_empty() {
        return Err(ModifyError::Missing { from, to, missing });
    }
    let excess = named - transition.required - transition.optional;
    if !excess.is_empty() {
        return Err(ModifyError::Excess { from, to, excess });
    }
    if let Some(qkey) = modify.qkey
        && qp.number == Qpn::GENERAL_SERVICES
        && qkey != GENERAL_SERVICES_QKEY
    {
        return Err(ModifyError::GeneralServicesKey(qkey));
    }
    let reads = u64::from(config.limits.reads);
    for (attribute, found, needed) in [
        (Attributes::PORT, modify.port.map(u64::from), 1),
        (
            Attributes::PATH_MTU,
            modify
                .path_mtu
                .filter(|mtu| !mtu.is_local())
                .map(|mtu| u64::from(mtu.as_u32())),
            u64::from(config.mtu.as_u32()),
        ),
        (
            Attributes::RETRY_COUNT,
            modify.retry_count.map(u64::from),
            7,
        ),
        (
            Attributes::MAX_READS,
            modify.max_reads.map(u64::from),
            reads,
        ),
        (
            Attributes::MAX_PEER_READS,
            modify.max_peer_reads.map(u64::from),
            reads,
        ),
    ] {
        if let Some(found) = found
            && found > needed
        {
            return Err(ModifyError::Value {
                attribute,
                found,
                needed,
            });
        }
    }
    Ok(())
}

fn apply(settings: &mut Settings, modify: &Modify) {
    fn set<T: Copy>(kept: &mut T, given: Option<T>) {
        if let Some(given) = given {
            *kept = given;
        }
    }
    set(&mut settings.access, modify.access);
    set(&mut settings.partition, modify.partition);
    set(&mut settings.qkey, modify.qkey);
    set(&mut settings.path, modify.path);
    set(&mut settings.mtu, modify.path_mtu);
    set(&mut settings.destination, modify.destination);
    set(&mut settings.timeout, modify.timeout);
    set(&mut settings.retry_count, modify.retry_count);
    set(&mut settings.rnr_retry, modify.rnr_retry);
    set(&mut settings.max_reads, modify.max_reads);
    set(&mut settings.max_peer_reads, modify.max_peer_reads);
    set(&mut settings.min_rnr_timer, modify.min_rnr_timer);
    set(&mut settings.migration, modify.migration);
    set(&mut settings.window, modify.window);
    set(&mut settings.drain_notify, modify.drain_notify);
    if modify.alternate_path.is_some() {
        settings.alternate_path = modify.alternate_path;
    }
}
