//! One open device of this process, as the C interface sees it: the adapter's NIC, and who hears of its events.
//!
//! ```text
//! Nic ── Event(number) ──► Listeners ── the object of that number ──► completion channel, or the context's events
//! ```
//!
//! Contexts of one device share a hub, as they share the NIC. The NIC holds the listeners and not the hub: otherwise
//! neither would ever end.
#![allow(
    unsafe_code,
    reason = "events are delivered to objects that the program holds"
)]

use std::sync::{Arc, Mutex, Weak};

use rustc_hash::FxHashMap;
use softfabric_adapter::{DeviceInfo, EventSink, Nic, Settings};
use softfabric_telemetry::{DeviceCounters, PortCounters};
use softfabric_transport::{CompletionQueueId, Event, SharedQueueId};
use softfabric_units::Qpn;

use crate::completion::CompletionQueue;
use crate::errno::Errno;
use crate::event::{self, Element};
use crate::object::{Pointer, lock};
use crate::queue_pair::QueuePair;
use crate::shared_queue::SharedQueue;
use crate::xrc::Named;

/// An open device.
pub(crate) struct Hub {
    pub(crate) nic: Arc<Nic>,
    pub(crate) listeners: Arc<Listeners>,
    /// XRC domains that files stand for.
    pub(crate) xrc_domains: Mutex<Vec<Named>>,
}

/// The objects that events may be for, by their numbers.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<Table>);

#[derive(Default)]
struct Table {
    completion_queues: FxHashMap<CompletionQueueId, Pointer<CompletionQueue>>,
    queue_pairs: FxHashMap<Qpn, Pointer<QueuePair>>,
    shared_queues: FxHashMap<SharedQueueId, Pointer<SharedQueue>>,
}

/// The devices that are open.
static OPEN: Mutex<Vec<Weak<Hub>>> = Mutex::new(Vec::new());

impl Hub {
    /// Opens a device, or joins those who have it open.
    pub(crate) fn open(info: &DeviceInfo, settings: &Settings) -> Result<Arc<Self>, Errno> {
        // SAFETY: the program promises for the memory that it registers, as with any RDMA device; inline data is read
        // while the program's call lasts.
        let nic = unsafe { Nic::open(info, settings) }.map_err(|error| {
            crate::report(&format!("{} cannot be opened: {error}", info.name));
            Errno::ENODEV
        })?;
        let mut open = lock(&OPEN);
        open.retain(|hub| hub.strong_count() > 0);
        if let Some(hub) = open
            .iter()
            .filter_map(Weak::upgrade)
            .find(|hub| Arc::ptr_eq(&hub.nic, &nic))
        {
            return Ok(hub);
        }
        let listeners = Arc::new(Listeners::default());
        nic.set_sink(Arc::<Listeners>::clone(&listeners));
        let hub = Arc::new(Self {
            nic,
            listeners,
            xrc_domains: Mutex::default(),
        });
        open.push(Arc::downgrade(&hub));
        Ok(hub)
    }
}

impl Hub {
    /// What an open device has counted, by its name.
    pub(crate) fn counters(name: &str) -> Option<(DeviceCounters, PortCounters)> {
        let hubs: Vec<_> = lock(&OPEN).iter().filter_map(Weak::upgrade).collect();
        let hub = hubs.into_iter().find(|hub| hub.nic.info().name == name)?;
        Some(hub.nic.counters())
    }
}

impl Listeners {
    pub(crate) fn add_completion_queue(
        &self,
        id: CompletionQueueId,
        queue: *const CompletionQueue,
    ) {
        lock(&self.0).completion_queues.insert(id, Pointer(queue));
    }

    pub(crate) fn remove_completion_queue(&self, id: CompletionQueueId) {
        lock(&self.0).completion_queues.remove(&id);
    }

    /// Of several who have opened one XRC target, the first hears of its events.
    pub(crate) fn add_queue_pair(&self, number: Qpn, qp: *const QueuePair) {
        lock(&self.0)
            .queue_pairs
            .entry(number)
            .or_insert(Pointer(qp));
    }

    pub(crate) fn remove_queue_pair(&self, number: Qpn, qp: Option<*const QueuePair>) {
        let mut table = lock(&self.0);
        let found = table.queue_pairs.get(&number);
        if found.is_some_and(|found| qp.is_none_or(|qp| *found == Pointer(qp))) {
            table.queue_pairs.remove(&number);
        }
    }

    pub(crate) fn add_shared_queue(&self, id: SharedQueueId, queue: *const SharedQueue) {
        lock(&self.0).shared_queues.insert(id, Pointer(queue));
    }

    pub(crate) fn remove_shared_queue(&self, id: SharedQueueId) {
        lock(&self.0).shared_queues.remove(&id);
    }
}

impl EventSink for Listeners {
    fn event(&self, event: Event) {
        let table = lock(&self.0);
        // SAFETY of all three: an object takes itself out of the table, under this lock, before it ends.
        match event {
            Event::Completion(id) => {
                if let Some(queue) = table.completion_queues.get(&id) {
                    // SAFETY: see above.
                    unsafe { &*queue.0 }.notify();
                }
            }
            Event::CompletionQueueError(id) => {
                if let Some(queue) = table.completion_queues.get(&id) {
                    // SAFETY: see above.
                    unsafe { &*queue.0 }
                        .context()
                        .raise(event::number(event), Element::CompletionQueue(*queue));
                }
            }
            Event::SharedQueueLimit(id) => {
                if let Some(queue) = table.shared_queues.get(&id) {
                    // SAFETY: see above.
                    unsafe { &*queue.0 }
                        .context()
                        .raise(event::number(event), Element::SharedQueue(*queue));
                }
            }
            Event::CommunicationEstablished(qp)
            | Event::SendQueueDrained(qp)
            | Event::LastReceiveReached(qp)
            | Event::QueuePairFatal(qp)
            | Event::RequestError(qp)
            | Event::AccessError(qp) => {
                if let Some(qp) = table.queue_pairs.get(&qp) {
                    // SAFETY: see above.
                    unsafe { &*qp.0 }
                        .context()
                        .raise(event::number(event), Element::QueuePair(*qp));
                }
            }
        }
    }
}
