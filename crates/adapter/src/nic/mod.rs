//! A device that is open in this process.
//!
//! ```text
//! threads of the program ── with · poll ──┐
//!                                         ├─► lock ─► State { transport, paths, ports }
//! background thread ── when nobody polls ─┘        └─► events, delivered after the lock is let go
//! ```
//!
//! Whoever holds the lock makes progress for all: takes what arrived, lets timers act, sends what became ready.

mod attention;
mod background;
mod core;
mod event;
pub(crate) mod fork;
mod general;
mod inner;
mod path;
mod state;
mod turn;

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

use softfabric_telemetry::{DeviceCounters, PortCounters};
use softfabric_transport::{
    AddressVector, Completion, CompletionQueueId, Device, Modify, Mtu, MulticastError,
};
use softfabric_units::{Gid, Qpn, Time};

pub use core::Statistics;
pub use event::EventSink;
pub use general::{ArrivedMad, GeneralServices, MAD_LENGTH, MadSink};
use inner::Inner;
pub(crate) use path::Path;
pub use path::{PathError, Route};
use state::{Ask, State};

use crate::host::{self, DeviceInfo, GidEntry};
use crate::memory::ProcessMemory;
use crate::neighbours::JoinError;
use crate::port::udp::Family;
use crate::record::RecordError;
use crate::settings::Settings;

/// The bits of a traffic class that are the network's.
const ECN: u8 = 0b11;

/// Why a device was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The host's addresses could not be read.
    #[error(transparent)]
    Host(#[from] host::HostError),
    /// The port could not be opened.
    #[error(transparent)]
    Port(JoinError),
    /// The recording cannot be written.
    #[error(transparent)]
    Recording(#[from] RecordError),
    /// The process may have no more descriptors.
    #[error("the device needs file descriptors: {0} (see `ulimit -n`)")]
    Descriptors(#[source] io::Error),
    /// The process may have no more threads.
    #[error("the device needs a thread: {0} (see `ulimit -u`)")]
    Thread(#[source] io::Error),
}

impl From<JoinError> for OpenError {
    fn from(error: JoinError) -> Self {
        match error {
            JoinError::Place(cause) | JoinError::Port(cause)
                if cause.raw_os_error() == Some(libc::EMFILE) =>
            {
                Self::Descriptors(cause)
            }
            other => Self::Port(other),
        }
    }
}

/// Why a queue pair was not attached to a multicast group.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The transport refuses.
    #[error(transparent)]
    Transport(#[from] MulticastError),
    /// The host refuses.
    #[error("the group {0} cannot be joined on the interface: {1}")]
    Join(Gid, #[source] io::Error),
}

/// One RDMA device, open in this process. All who open the same one share it.
pub struct Nic {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Nic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nic")
            .field("name", &self.inner.info.name)
            .field("netdev", &self.inner.info.netdev)
            .finish_non_exhaustive()
    }
}

/// The devices that are open in this process: for those who open one, and for forks.
static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

struct Open {
    nic: Weak<Nic>,
    inner: Weak<Inner>,
}

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
    pub unsafe fn open(info: &DeviceInfo, settings: &Settings) -> Result<Arc<Self>, OpenError> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|open| open.inner.strong_count() > 0);
        let known = open
            .iter()
            .filter_map(|open| open.nic.upgrade())
            .find(|nic| {
                let same = (nic.inner.info.interface, &nic.inner.info.name);
                same == (info.interface, &info.name) && nic.is_alive()
            });
        if let Some(nic) = known {
            return Ok(nic);
        }
        let inner = Arc::new(Inner::open(info, settings)?);
        let shared = inner.clone();
        let thread = std::thread::Builder::new()
            .name(info.name.clone())
            .spawn(move || background::run(&shared))
            .map_err(OpenError::Thread)?;
        let nic = Arc::new(Self {
            inner,
            thread: Mutex::new(Some(thread)),
        });
        open.push(Open {
            nic: Arc::downgrade(&nic),
            inner: Arc::downgrade(&nic.inner),
        });
        Ok(nic)
    }

    /// Whether the device still works: not in a process that was forked from the one that opened it. There, verbs are
    /// answered, so that objects can be destroyed, but nothing is sent; a device that is opened anew works.
    pub fn is_alive(&self) -> bool {
        self.inner.lock().alive
    }

    /// What the device is.
    pub fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// The device's slot among the devices that are open in this network namespace: the upper 8 bits of its queue pair
    /// numbers.
    pub fn slot(&self) -> u8 {
        self.inner.slot()
    }

    /// The device's GIDs.
    pub fn gids(&self) -> &[GidEntry] {
        &self.inner.info.gids
    }

    /// What the device and its port have counted.
    pub fn counters(&self) -> (DeviceCounters, PortCounters) {
        self.inner.lock().counters()
    }

    /// What the device has counted beside.
    pub fn statistics(&self) -> Statistics {
        let state = self.inner.lock();
        Statistics {
            faults: state.udp.tap.met(),
            ..state.core.statistics
        }
    }

    /// Who hears of the device's events from now on.
    pub fn set_sink(&self, sink: Arc<dyn EventSink>) {
        let mut slot = self
            .inner
            .sink
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *slot = Some(sink);
    }

    /// Does something with the transport: makes and changes objects, posts requests. What becomes ready by it is sent,
    /// and events are delivered, before this returns. Nothing that `change` calls may call the device again.
    #[inline]
    pub fn with<R>(&self, change: impl FnOnce(&mut Device<ProcessMemory>, Time) -> R) -> R {
        let inner = &*self.inner;
        let mut state = inner.lock();
        let now = inner.clock.now();
        let result = change(&mut state.core.device, now);
        state.revoke();
        let more = state.progress(now);
        state.flush();
        inner.expect(&state, more);
        if more {
            state.streak.end(inner.clock.now());
        }
        inner.leave(state);
        result
    }

    /// Takes up to `max` completions off a queue and returns how many there were. Where none waits, the device makes
    /// progress once, and the queue is looked at again. `take` must not call the device.
    #[inline]
    pub fn poll(
        &self,
        queue: CompletionQueueId,
        max: usize,
        mut take: impl FnMut(Completion),
    ) -> usize {
        let inner = &*self.inner;
        let mut state = inner.lock();
        let mut drain = |state: &mut State| {
            let mut taken = 0;
            while taken < max
                && let Some(completion) = state.core.device.poll_completion(queue)
            {
                take(completion);
                taken += 1;
            }
            taken
        };
        inner.attention.count_poll();
        let mut gives_way = false;
        let mut taken = drain(&mut state);
        if taken == 0 {
            let now = inner.clock.now();
            let mut in_charge = inner.attention.is_with_program();
            if in_charge {
                if state.streak.observe(now, turn::was_lost) {
                    inner.attention.give_back();
                    in_charge = false;
                }
            } else if inner.attention.has_left() {
                state.streak.observe(now, turn::was_lost);
            }
            if in_charge {
                state.flush();
            }
            let received = state.receive(now, if in_charge { Ask::Hot } else { Ask::All });
            let more = state.progress(now);
            taken = drain(&mut state);
            if in_charge && received > 0 && !more {
                state.hold();
            } else {
                state.flush();
            }
            if received == 0 {
                state.nudge(now);
            }
            // In charge, the background thread looks after what is left when the polls end.
            if in_charge {
                gives_way = state.patience.is_over(now, received > 0 || taken > 0);
            } else {
                if state.streak.poll(now) {
                    inner.attention.give_to_program();
                    state.shared.stay_awake();
                } else {
                    inner.expect(&state, more);
                }
                if received > 0 || more {
                    state.streak.end(inner.clock.now());
                }
            }
        }
        inner.leave(state);
        if gives_way {
            // Whoever is waited for may want this very processor.
            std::thread::yield_now();
        }
        taken
    }

    /// The path from one of the device's GIDs to a peer.
    ///
    /// # Errors
    /// If there is no such GID, or it cannot reach the peer.
    pub fn path(&self, gid_index: usize, route: &Route) -> Result<AddressVector, PathError> {
        let is_local = self.inner.is_local(&route.destination.to_ip());
        let mut state = self.inner.lock();
        let paths = &mut state.core.paths;
        let mut path = paths.find(&self.inner.info, gid_index, route, is_local)?;
        path.traffic_class &= !ECN;
        if self.inner.marks {
            path.traffic_class |= AddressVector::ECT0;
        }
        Ok(path)
    }

    /// The MTU that a connection to `destination` over `path` really has, where `mtu` is what the program asked for: it
    /// is larger where both ends share memory. Both ends find the same.
    pub fn path_mtu(&self, path: &AddressVector, destination: Qpn, mtu: Mtu) -> Mtu {
        let mut state = self.inner.lock();
        let now = self.inner.clock.now();
        let slot = core::slot_of(destination);
        let local = state
            .core
            .paths
            .get(path.driver)
            .is_some_and(|path| path.local);
        let here = state.shortcut && slot == state.core.slot;
        if state.alive && local && (here || state.shared.has_link(now, slot)) {
            inner::local_mtu().unwrap_or(mtu)
        } else {
            mtu
        }
    }

    /// Fits a change of a queue pair to the link that its path takes: MTU and window. To be called with every change
    /// before it is given to [`Device::modify_qp`].
    pub fn fit(&self, modify: &mut Modify) {
        if let (Some(path), Some(destination), Some(mtu)) =
            (&modify.path, modify.destination, modify.path_mtu)
        {
            let real = self.path_mtu(path, destination, mtu);
            modify.path_mtu = Some(real);
            if !real.is_local() && modify.window.is_none() {
                modify.window = Some(Some(self.inner.window));
            }
        }
    }

    /// Lets a datagram queue pair receive what is sent to a multicast group.
    ///
    /// # Errors
    /// If the transport refuses, or the host cannot join the group.
    pub fn attach_multicast(&self, qp: Qpn, group: Gid) -> Result<(), AttachError> {
        let mut state = self.inner.lock();
        if state.core.device.attach_multicast(qp, group)?
            && let Err(error) = self.join(group, true)
        {
            state.core.device.detach_multicast(qp, group)?;
            return Err(AttachError::Join(group, error));
        }
        Ok(())
    }

    /// Ends what [`Nic::attach_multicast`] began.
    ///
    /// # Errors
    /// If the queue pair is not attached.
    pub fn detach_multicast(&self, qp: Qpn, group: Gid) -> Result<(), AttachError> {
        let last = self.inner.lock().core.device.detach_multicast(qp, group)?;
        if last {
            // An interface that has gone has left its groups.
            let _ = self.join(group, false);
        }
        Ok(())
    }

    fn join(&self, group: Gid, join: bool) -> io::Result<()> {
        let ip: IpAddr = group.to_ip();
        let socket = self.inner.sockets.of(Family::of(&ip));
        let socket = socket.ok_or(io::ErrorKind::Unsupported)?;
        socket.group(ip, self.inner.info.interface, join)
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        let slot = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = slot.take() else {
            return;
        };
        // The thread of a forked process's parent cannot be waited for; nor can a thread wait for itself.
        if self.inner.lock().alive {
            self.inner.attention.stop();
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        } else {
            std::mem::forget(thread);
        }
    }
}
