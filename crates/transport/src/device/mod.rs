//! The device: one RDMA NIC, as its driver and its users see it.
//!
//! ```text
//! post_send ─┐                                  ┌─► poll_completion
//! post_recv ─┤    ┌ queue pairs ┐               ├─► poll_event
//!            ├──► │ keys, queues │ ─────────────┤
//! handle_packet ─►│ lanes, timers│               ├─► poll_transmit
//! handle_timeout ►└──────────────┘               └─► poll_timeout
//! ```
//!
//! Nothing happens between calls: the device has no clock and no thread.

mod arrive;
mod create;
mod multicast;
mod objects;
mod post;
mod queue_pairs;
mod transmit;
mod xrc;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use slab::Slab;
use softfabric_telemetry::DeviceCounters;
use softfabric_units::{Gid, Qpn, Rate, Time};

use crate::config::DeviceConfig;
use crate::core::Core;
use crate::event::Event;
use crate::memory::Memory;
use crate::queue_pair::{QueuePair, QueuePairStatistics};

pub use multicast::MulticastError;
pub(crate) use xrc::XrcDomains;

/// One RDMA NIC with one port, over memory of type `M`.
pub struct Device<M: Memory> {
    core: Core<M>,
    queue_pairs: Slab<QueuePair<M>>,
    by_number: FxHashMap<Qpn, u32>,
    /// The slots of the queue pairs that are attached to each group, in the order of attachment.
    multicast: BTreeMap<Gid, Vec<u32>>,
    next_number: Qpn,
    next_serial: u32,
    /// Of the number of the shared receive queue of XRC that was made last.
    srq_variant: u8,
}

impl<M: Memory> std::fmt::Debug for Device<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device")
            .field("config", &self.core.config)
            .field("queue_pairs", &self.queue_pairs.len())
            .finish_non_exhaustive()
    }
}

impl<M: Memory> Device<M> {
    /// A device without objects.
    ///
    /// # Panics
    /// If the rate control's parameters do not hold; see
    /// [`RateControlConfig::check`](crate::rate::RateControlConfig::check).
    pub fn new(config: DeviceConfig, memory: M) -> Self {
        if let Err(error) = config.rate_control.check() {
            panic!("{error}");
        }
        Self {
            core: Core::new(config, memory),
            queue_pairs: Slab::new(),
            by_number: FxHashMap::default(),
            multicast: BTreeMap::new(),
            next_number: config.qp_numbers.first(),
            next_serial: 0,
            srq_variant: 0,
        }
    }

    /// What the device was made with.
    pub fn config(&self) -> &DeviceConfig {
        &self.core.config
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.core.memory
    }

    /// The memory, to be changed.
    pub fn memory_mut(&mut self) -> &mut M {
        &mut self.core.memory
    }

    /// Everything that the device has counted.
    pub fn counters(&self) -> &DeviceCounters {
        &self.core.counters
    }

    /// The counters, for a driver that counts what it sees before the device does (wrong ICRCs).
    pub fn counters_mut(&mut self) -> &mut DeviceCounters {
        &mut self.core.counters
    }

    /// The next asynchronous event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.core.events.pop_front()
    }

    /// What one queue pair has done.
    pub fn qp_statistics(&self, number: Qpn) -> Option<&QueuePairStatistics> {
        let slot = *self.by_number.get(&number)?;
        Some(&self.queue_pairs[slot as usize].statistics)
    }

    /// The rate at which a queue pair may send at `now`.
    pub fn rate(&mut self, number: Qpn, now: Time) -> Option<Rate> {
        let slot = *self.by_number.get(&number)?;
        Some(self.queue_pairs[slot as usize].rate.rate(now))
    }

    /// The rate control of a queue pair, for recorders.
    pub fn rate_control(&mut self, number: Qpn) -> Option<&mut crate::rate::RateControl> {
        let slot = *self.by_number.get(&number)?;
        Some(&mut self.queue_pairs[slot as usize].rate)
    }
}
