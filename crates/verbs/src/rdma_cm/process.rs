//! The connection manager of this process: started by its first channel, left behind by a fork, ended at exit.
#![allow(unsafe_code, reason = "the C library calls back at forks and at exit")]

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, Once};

use parking_lot::lock_api::RawMutex as _;
use softfabric_adapter::cm::{Registry, Service};
use softfabric_adapter::{DeviceInfo, devices};
use softfabric_units::Random;

use super::engine::{Cm, Local};
use super::route;
use crate::device::settings;
use crate::errno::Errno;
use crate::hub::Hub;
use crate::object::lock;

/// What runs in this process.
pub(super) struct Running {
    pub(super) service: Arc<Service<Cm>>,
    /// The devices that are open, by their number in the service.
    hubs: Mutex<Vec<(Arc<Hub>, Arc<DeviceInfo>)>>,
}

/// Null until the first channel, and in a forked child until its own first.
static RUNNING: AtomicPtr<Running> = AtomicPtr::new(std::ptr::null_mut());

/// Held while it is started, and while the process forks, so that a child never finds it half done.
static STARTING: parking_lot::RawMutex = parking_lot::RawMutex::INIT;

impl Running {
    /// What runs in this process already.
    pub(super) fn here() -> Option<&'static Self> {
        // SAFETY: it is leaked: it lives as long as the process, and is shared only.
        unsafe { RUNNING.load(Ordering::Acquire).as_ref() }
    }

    /// What runs in this process, started if need be.
    pub(super) fn start() -> Result<&'static Self, Errno> {
        STARTING.lock();
        let started = Self::here().map_or_else(Self::start_first, Ok);
        // SAFETY: it was locked above.
        unsafe { STARTING.unlock() };
        started
    }

    fn start_first() -> Result<&'static Self, Errno> {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handlers are functions of this library, which is not unloaded while they are registered.
            unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
        });
        let registry = Registry::join().map_err(|error| {
            crate::report(&format!("connections cannot be managed: {error}"));
            Errno::of(&error)
        })?;
        let mut random = Random::from_seed(seed());
        let names = random.bits();
        let service = Service::start(names, Cm::new(random, registry));
        let running = Box::leak(Box::new(Self {
            service: service.map_err(|error| Errno::of(&error))?,
            hubs: Mutex::new(Vec::new()),
        }));
        RUNNING.store(running, Ordering::Release);
        Ok(running)
    }

    /// The device that has `address`, opened.
    pub(super) fn local(&self, address: SocketAddr) -> Result<Local, Errno> {
        let devices = list()?;
        let (info, _) = route::owner(&devices, address).ok_or_else(|| {
            // The host's, but of no device; or nobody's here.
            match route::is_local(address) {
                true => Errno::ENODEV,
                false => Errno::EADDRNOTAVAIL,
            }
        })?;
        let (device, info) = self.open(info)?;
        // The places of addresses are those of when the device was opened; one that came later has none.
        let here = std::slice::from_ref(&*info);
        let (_, gid_index) = route::owner(here, address).ok_or(Errno::EADDRNOTAVAIL)?;
        Ok(Local {
            device,
            info,
            gid_index,
        })
    }

    /// The first device, opened.
    pub(super) fn first(&self) -> Result<Local, Errno> {
        let devices = list()?;
        let (device, info) = self.open(devices.first().ok_or(Errno::ENODEV)?)?;
        Ok(Local {
            device,
            info,
            gid_index: 0,
        })
    }

    /// Opens every device: who listens at any address listens on all.
    pub(super) fn open_all(&self) -> Result<(), Errno> {
        for info in list()? {
            self.open(&info)?;
        }
        Ok(())
    }

    fn open(&self, info: &DeviceInfo) -> Result<(usize, Arc<DeviceInfo>), Errno> {
        let mut hubs = lock(&self.hubs);
        // Addresses come and go: what makes a device is its interface and its name.
        let known = hubs
            .iter()
            .position(|(_, known)| (known.interface, &known.name) == (info.interface, &info.name));
        if let Some(device) = known {
            return Ok((device, hubs[device].1.clone()));
        }
        let hub = Hub::open(info, settings())?;
        let info = Arc::new(hub.nic.info().clone());
        let device = self.service.add_device(&hub.nic);
        let slot = hub.nic.slot();
        self.service
            .with(|_, cm, _| cm.add_device(device, &info, slot));
        hubs.push((hub, info.clone()));
        // Registered after the device's own, so that it runs before: what it sends still leaves.
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handler is a function of this library.
            unsafe { libc::atexit(at_exit) };
        });
        Ok((device, info))
    }
}

fn list() -> Result<Vec<DeviceInfo>, Errno> {
    devices(settings()).map_err(|error| {
        crate::report(&error.to_string());
        Errno::ENODEV
    })
}

/// A number that differs from process to process.
fn seed() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: eight bytes are written to a local array.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    u64::from_ne_bytes(bytes) ^ u64::from(std::process::id())
}

/// A copy of a descriptor, closed in programs that this one starts.
pub(super) fn copy(descriptor: &OwnedFd) -> Result<OwnedFd, Errno> {
    let copy = descriptor.as_fd().try_clone_to_owned();
    copy.map_err(|error| Errno::of(&error))
}

extern "C" fn before_fork() {
    STARTING.lock();
}

extern "C" fn in_parent() {
    // SAFETY: locked by `before_fork` on this thread.
    unsafe { STARTING.unlock() };
}

/// The parent's connections are the parent's. Its manager may have been locked by a thread that the child does not have,
/// so it is left as it is.
extern "C" fn in_child() {
    RUNNING.store(std::ptr::null_mut(), Ordering::Release);
    softfabric_adapter::cm::leave_registry_to_parent();
    // SAFETY: locked by `before_fork`; the child's only thread is the one that forked.
    unsafe { STARTING.unlock() };
}

/// A connection ends with its process: the other sides are told.
extern "C" fn at_exit() {
    crate::errno::quiet(|| {
        if let Some(running) = Running::here() {
            running.service.shut_down();
        }
    });
}
