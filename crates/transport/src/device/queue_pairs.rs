//! Queue pairs: changed and queried.

use softfabric_units::{Bytes, PartitionKey, Qpn, Time};
use softfabric_wire::rdma::RnrTimer;

use super::Device;
use crate::address::AddressVector;
use crate::config::{DeviceConfig, Mtu};
use crate::event::Event;
use crate::memory::{Access, Memory};
use crate::queue_pair::{
    AckTimeout, Attributes, GENERAL_SERVICES_QKEY, Migration, Modify, ModifyError, QueuePair,
    QueuePairStatus, RnrRetry, Settings, State, Transition,
};

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
pub(super) fn unset(number: Qpn, mtu: Mtu, window: Option<Bytes>) -> Settings {
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
            xrc: qp.xrc,
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
