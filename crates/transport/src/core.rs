//! What all queue pairs of a device share.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use softfabric_telemetry::{DeviceCounter, DeviceCounters};
use softfabric_units::{Gid, Time};

use crate::arbitration::Lanes;
use crate::completion::{Completion, CompletionQueue, CompletionQueueId, Pushed};
use crate::config::DeviceConfig;
use crate::device::XrcDomains;
use crate::event::Event;
use crate::memory::{KeyTable, Memory};
use crate::notification::Deferred;
use crate::receive_queue::SharedQueue;
use crate::table::Table;
use crate::timer::Timers;

pub(crate) struct Core<M: Memory> {
    pub(crate) config: DeviceConfig,
    pub(crate) memory: M,
    pub(crate) keys: KeyTable,
    pub(crate) counters: DeviceCounters,
    pub(crate) completion_queues: Table<CompletionQueue>,
    pub(crate) shared_queues: Table<SharedQueue>,
    pub(crate) xrc_domains: XrcDomains,
    pub(crate) events: VecDeque<Event>,
    pub(crate) lanes: Lanes,
    /// Wake-ups of acknowledgement and receiver-not-ready timers.
    pub(crate) timers: Timers,
    /// Wake-ups of paced queue pairs.
    pub(crate) pacing: Timers,
    /// When each sender was last notified, where the interval counts for senders.
    pub(crate) notified: FxHashMap<Gid, Option<Time>>,
    /// Notifications that wait for the end of their interval, the earliest first.
    pub(crate) deferred: VecDeque<Deferred>,
    /// Completion queues that have just overrun: their queue pairs are still to be put into the error state.
    pub(crate) overruns: Vec<CompletionQueueId>,
}

impl<M: Memory> Core<M> {
    pub(crate) fn new(config: DeviceConfig, memory: M) -> Self {
        Self {
            memory,
            keys: KeyTable::default(),
            counters: DeviceCounters::default(),
            completion_queues: Table::default(),
            shared_queues: Table::default(),
            xrc_domains: XrcDomains::default(),
            events: VecDeque::new(),
            lanes: Lanes::new(config.arbitration),
            timers: Timers::default(),
            pacing: Timers::default(),
            notified: FxHashMap::default(),
            deferred: VecDeque::new(),
            overruns: Vec::new(),
            config,
        }
    }

    #[inline]
    pub(crate) fn count(&mut self, counter: DeviceCounter) {
        self.counters.count(counter);
    }

    pub(crate) fn complete(&mut self, queue: CompletionQueueId, completion: Completion) {
        let Some(entries) = self.completion_queues.get_mut(queue.0) else {
            return;
        };
        match entries.push(completion) {
            Pushed::Quietly => {}
            Pushed::RaisesEvent => self.events.push_back(Event::Completion(queue)),
            // IBTA vol. 1, 10.2.6.3: the queue reports an asynchronous error, its queue pairs fail.
            Pushed::Overruns => {
                self.events.push_back(Event::CompletionQueueError(queue));
                self.overruns.push(queue);
            }
        }
    }
}
