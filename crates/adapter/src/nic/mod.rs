//! A device that is open in this process.
//!
//! ```text
//! threads of the program ── with · poll ──┐
//!                                         ├─► lock ─► State { transport, paths, ports }
//! background thread ── when nobody polls ─┘        └─► events, delivered after the lock is let go
//! ```
//!
//! Whoever holds the lock makes progress for all: takes what arrived, lets timers act, sends what became ready.

mod event;
mod general;
mod path;
mod state;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use softfabric_telemetry::{DeviceCounters, PortCounters};
use softfabric_transport::{AddressVector, Completion, CompletionQueueId, Device, Modify, Mtu};
use softfabric_units::{Qpn, Time};

pub use event::EventSink;
pub use general::{ArrivedMad, GeneralServices, MAD_LENGTH, MadSink};
pub use path::{PathError, Route};

use crate::clock::Clock;
use crate::host::{self, DeviceInfo, GidEntry};
use crate::memory::ProcessMemory;
use crate::settings::Settings;
use state::{News, State};

/// Why a device was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The host's addresses could not be read.
    #[error(transparent)]
    Host(#[from] host::HostError),
}

/// One RDMA device, open in this process. All who open the same one share it.
pub struct Nic {
    info: DeviceInfo,
    clock: Clock,
    local: Vec<IpAddr>,
    state: Mutex<State>,
    sink: RwLock<Option<Arc<dyn EventSink>>>,
    mad_sink: RwLock<Option<Arc<dyn MadSink>>>,
}

impl std::fmt::Debug for Nic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nic")
            .field("name", &self.info.name)
            .field("netdev", &self.info.netdev)
            .finish_non_exhaustive()
    }
}

/// The devices that are open in this process.
static OPEN: Mutex<Vec<Weak<Nic>>> = Mutex::new(Vec::new());

impl Nic {
    /// Opens a device, or shares it with those in this process who have it open. It is closed when the last of them
    /// drops it.
    ///
    /// # Errors
    /// See [`OpenError`].
    ///
    /// # Safety
    /// The device follows addresses. While the caller has it open, it promises that every region registered with
    /// [`ProcessMemory::DIRECT`] is mapped, and writable where it is registered for [`Access::LOCAL_WRITE`], until it
    /// is deregistered, and that inline data can be read while it is posted. Regions of [`ProcessMemory::CHECKED`] may
    /// be anything, but writing them must break nobody's promise. That is what programs promise that register memory
    /// with RDMA hardware.
    ///
    /// [`Access::LOCAL_WRITE`]: softfabric_transport::Access::LOCAL_WRITE
    #[allow(
        unsafe_code,
        reason = "one promise at opening instead of one at every registration and post"
    )]
    pub unsafe fn open(info: &DeviceInfo, _settings: &Settings) -> Result<Arc<Self>, OpenError> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|nic| nic.strong_count() > 0);
        let known = open.iter().filter_map(Weak::upgrade);
        if let Some(nic) = known.into_iter().find(|nic| nic.info == *info) {
            return Ok(nic);
        }
        let nic = Arc::new(Self {
            info: info.clone(),
            clock: Clock::start(),
            local: host::addresses().map_err(host::HostError::from)?,
            state: Mutex::new(State::new(info)),
            sink: RwLock::new(None),
            mad_sink: RwLock::new(None),
        });
        open.push(Arc::downgrade(&nic));
        Ok(nic)
    }

    /// What the device is.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The device's GIDs.
    pub fn gids(&self) -> &[GidEntry] {
        &self.info.gids
    }

    /// What the device and its port have counted.
    pub fn counters(&self) -> (DeviceCounters, PortCounters) {
        let state = self.lock();
        (state.device.counters().clone(), PortCounters::default())
    }

    /// Who hears of the device's events from now on.
    pub fn set_sink(&self, sink: Arc<dyn EventSink>) {
        *self.sink.write().unwrap_or_else(PoisonError::into_inner) = Some(sink);
    }

    /// Does something with the transport: makes and changes objects, posts requests. What becomes ready by it is sent,
    /// and events are delivered, before this returns. Nothing that `change` calls may call the device again.
    pub fn with<R>(&self, change: impl FnOnce(&mut Device<ProcessMemory>, Time) -> R) -> R {
        let mut state = self.lock();
        let now = self.clock.now();
        let result = change(&mut state.device, now);
        state.progress(now);
        self.leave(state);
        result
    }

    /// Takes up to `max` completions off a queue and returns how many there were. Where none waits, the device makes
    /// progress once, and the queue is looked at again. `take` must not call the device.
    pub fn poll(
        &self,
        queue: CompletionQueueId,
        max: usize,
        mut take: impl FnMut(Completion),
    ) -> usize {
        let mut state = self.lock();
        let mut drain = |state: &mut State| {
            let mut taken = 0;
            while taken < max
                && let Some(completion) = state.device.poll_completion(queue)
            {
                take(completion);
                taken += 1;
            }
            taken
        };
        let mut taken = drain(&mut state);
        if taken == 0 {
            state.progress(self.clock.now());
            taken = drain(&mut state);
        }
        self.leave(state);
        taken
    }

    /// The path from one of the device's GIDs to a peer.
    ///
    /// # Errors
    /// If there is no such GID, or it cannot reach the peer.
    pub fn path(&self, gid_index: usize, route: &Route) -> Result<AddressVector, PathError> {
        let is_local = |ip: &IpAddr| self.local.contains(ip);
        self.lock()
            .paths
            .find(&self.info, gid_index, route, is_local)
    }

    /// The MTU that a connection to `destination` over `path` really has, where `mtu` is what the program asked for: it
    /// is larger where both ends share memory. Both ends find the same.
    pub fn path_mtu(&self, _path: &AddressVector, _destination: Qpn, mtu: Mtu) -> Mtu {
        mtu
    }

    /// Fits a change of a queue pair to the link that its path takes: MTU and window. To be called with every change
    /// before it is given to [`Device::modify_qp`].
    pub fn fit(&self, modify: &mut Modify) {
        if let (Some(path), Some(destination), Some(mtu)) =
            (&modify.path, modify.destination, modify.path_mtu)
        {
            modify.path_mtu = Some(self.path_mtu(path, destination, mtu));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the lock go and delivers what happened.
    fn leave(&self, mut state: MutexGuard<'_, State>) {
        let News { events, mads } = state.news();
        drop(state);
        if !events.is_empty() {
            let sink = self
                .sink
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            if let Some(sink) = sink {
                events.into_iter().for_each(|event| sink.event(event));
            }
        }
        if !mads.is_empty() {
            let sink = self
                .mad_sink
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            if let Some(sink) = sink {
                mads.iter().for_each(|mad| sink.receive(mad));
            }
        }
    }
}
