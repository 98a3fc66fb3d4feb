//! The manager in real time: one lock, the devices' queue pairs 1, and a thread for the timers.
//!
//! ```text
//! program's threads ── with ──┐                                  ┌─► device 0, queue pair 1
//! devices' threads ─ datagram ┼─► lock ─► Manager ─► events ─► Program
//! thread ──────────── timers ─┘     └──── once it is let go ─────┴─► device 1, queue pair 1
//! ```
//!
//! The program's part hears events under the lock, in order. Datagrams leave before that, and with the lock let go: one
//! that comes straight back (a process that talks to itself) finds it free.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use softfabric_units::{Span, Time};

use super::event::{Event, Transmit, Way};
use super::manager::Manager;
use super::route::{addressee, recipient};
use crate::clock::Clock;
use crate::nic::{ArrivedMad, MadSink, Nic, Route};

/// What stands above the manager.
pub trait Program: Send + 'static {
    /// Something happened. It is called under the lock and may call the manager, but no device.
    fn event(&mut self, manager: &mut Manager, now: Time, event: Event);
}

/// A manager at work.
pub struct Service<P> {
    core: Mutex<Core<P>>,
    /// Tells the thread that a timer is due sooner, or that it shall end.
    changed: Condvar,
    clock: Clock,
}

struct Core<P> {
    manager: Manager,
    program: P,
    devices: Vec<Arc<Nic>>,
    /// Requests for which nobody listens yet.
    early: Vec<Early>,
    /// Until when the thread sleeps.
    sleeps_until: Time,
    ended: bool,
}

/// A request for which nobody listens. Programs tell each other by other ways when to connect, and some listen a moment
/// after they have said so: who asks in between is asked for a moment of patience, not refused.
struct Early {
    device: usize,
    mad: ArrivedMad,
    /// When to look again, and until when.
    due: Time,
    refused_at: Time,
}

/// How long a request waits for somebody to listen, and how often it is looked.
const PATIENCE: Span = Span::millis(100);
const LOOKS: u64 = 10;
/// How many requests may wait.
const EARLY: usize = 1024;

impl<P> std::fmt::Debug for Service<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

impl<P: Program> Service<P> {
    /// A service without devices, whose names start at a point that `seed` chooses. Its thread ends with it.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(seed: u64, program: P) -> std::io::Result<Arc<Self>> {
        let service = Arc::new(Self {
            core: Mutex::new(Core {
                manager: Manager::new(seed),
                program,
                devices: Vec::new(),
                early: Vec::new(),
                sleeps_until: Time::NEVER,
                ended: false,
            }),
            changed: Condvar::new(),
            clock: Clock::start(),
        });
        let watched = Arc::downgrade(&service);
        std::thread::Builder::new()
            .name("softfabric-cm".to_owned())
            .spawn(move || watch_timers(&watched))?;
        Ok(service)
    }

    /// Calls the manager and the program's part together.
    pub fn with<R>(&self, call: impl FnOnce(&mut Manager, &mut P, Time) -> R) -> R {
        let mut core = self.lock();
        let core_now = &mut *core;
        let result = call(
            &mut core_now.manager,
            &mut core_now.program,
            self.clock.now(),
        );
        self.leave(core);
        result
    }

    /// Takes a device in, if it is not, and returns its number for [`Way::device`].
    pub fn add_device(self: &Arc<Self>, nic: &Arc<Nic>) -> usize {
        let mut core = self.lock();
        if let Some(known) = core
            .devices
            .iter()
            .position(|known| Arc::ptr_eq(known, nic))
        {
            return known;
        }
        let device = core.devices.len();
        core.devices.push(Arc::clone(nic));
        drop(core);
        nic.general_services().set_sink(Arc::new(Sink {
            service: Arc::downgrade(self),
            device,
        }));
        device
    }

    /// Ends every connection with one datagram, and lets the devices go: for a process that is about to exit.
    pub fn shut_down(&self) {
        self.with(|manager, _, now| manager.shut_down(now));
        let mut core = self.lock();
        core.ended = true;
        let devices = std::mem::take(&mut core.devices);
        drop(core);
        self.changed.notify_all();
        // A device takes the service's lock where a datagram has just come: it is let go before.
        drop(devices);
    }

    /// A datagram came to a device: for a neighbour, or for one of this process's devices, whichever it came to. A
    /// request for which nobody listens waits until `refused_at`.
    fn receive(&self, device: usize, mad: &ArrivedMad, refused_at: Option<Time>) {
        let mut core = self.lock();
        let own = |slot: u8| core.devices.iter().any(|nic| nic.slot() == slot);
        if let Some(slot) = addressee(mad).filter(|slot| !own(*slot))
            && let Some(nic) = core.devices.get(device).cloned()
        {
            drop(core);
            if nic.general_services().hand_over(slot, mad) {
                return;
            }
            core = self.lock();
        }
        let has = |nic: &Arc<Nic>| nic.gids().iter().any(|entry| entry.gid == mad.destination);
        let Some(found) = core.devices.iter().position(has) else {
            // To a device of the host that this process does not have open.
            let nic = core.devices.get(device).cloned();
            drop(core);
            return nic
                .iter()
                .for_each(|nic| nic.general_services().refuse(mad));
        };
        let way = Way {
            device: found,
            // One name space for all devices: the first one's slot.
            slot: core.devices.first().map_or(0, |nic| nic.slot()),
            local: mad.destination,
            remote: mad.source,
        };
        let now = self.clock.now();
        let refused_at = refused_at.unwrap_or(now + PATIENCE);
        let waits = now < refused_at && core.early.len() < EARLY;
        if waits && core.manager.is_early(way, &mad.bytes) {
            core.early.push(Early {
                device,
                mad: mad.clone(),
                due: now + PATIENCE / LOOKS,
                refused_at,
            });
            drop(core);
            return self.changed.notify_all();
        }
        // What is no message of connection management has no answer (IBTA vol. 1, 12.6.2).
        let _ = core.manager.handle_mad(now, way, &mad.bytes);
        self.leave(core);
    }

    fn lock(&self) -> MutexGuard<'_, Core<P>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what is to be sent, with the lock let go meanwhile, and then tells what happened: a program that ends on
    /// hearing something does not take the answer to it along.
    fn leave<'a>(&'a self, mut core: MutexGuard<'a, Core<P>>) {
        loop {
            let inner = &mut *core;
            let mut transmits = Vec::new();
            while let Some(transmit) = inner.manager.poll_transmit() {
                if let Some(nic) = inner.devices.get(transmit.way.device) {
                    transmits.push((Arc::clone(nic), transmit));
                }
            }
            if !transmits.is_empty() {
                drop(core);
                for (nic, transmit) in transmits {
                    send(&nic, &transmit);
                }
                core = self.lock();
                continue;
            }
            let Some(event) = inner.manager.poll_event() else {
                break;
            };
            let now = self.clock.now();
            inner.program.event(&mut inner.manager, now, event);
        }
        let due = core.manager.poll_timeout().unwrap_or(Time::NEVER);
        let sooner = due < core.sleeps_until;
        drop(core);
        if sooner {
            self.changed.notify_all();
        }
    }
}

/// Sends a datagram. One that cannot be sent is as good as lost, and is repeated.
fn send(nic: &Nic, transmit: &Transmit) {
    let way = &transmit.way;
    let entry = nic.gids().iter().find(|entry| entry.gid == way.local);
    let Some(entry) = entry else {
        return;
    };
    let Ok(path) = nic.path(entry.index, &Route::to(way.remote)) else {
        return;
    };
    let services = nic.general_services();
    // On this host, the process that it is for gets it at once.
    let neighbour = services
        .is_local(way.remote)
        .then(|| recipient(way.remote, &transmit.mad));
    match neighbour.flatten() {
        Some(slot) => services.send_to_neighbour(&path, slot, &transmit.mad),
        None => services.send(&path, &transmit.mad),
    }
}

/// A device's datagrams on their way to the service.
struct Sink<P> {
    service: Weak<Service<P>>,
    device: usize,
}

impl<P: Program> MadSink for Sink<P> {
    fn receive(&self, mad: &ArrivedMad) {
        if let Some(service) = self.service.upgrade() {
            service.receive(self.device, mad, None);
        }
    }
}

/// Sleeps until a timer is due, again and again, until the service ends.
fn watch_timers<P: Program>(watched: &Weak<Service<P>>) {
    /// How long the thread may miss that nobody holds the service any longer.
    const LONGEST_SLEEP: Span = Span::seconds(60);
    loop {
        let Some(service) = watched.upgrade() else {
            return;
        };
        let mut core = service.lock();
        if core.ended {
            return;
        }
        let now = service.clock.now();
        let early: Vec<_> = core
            .early
            .extract_if(.., |early| early.due <= now)
            .collect();
        if !early.is_empty() {
            drop(core);
            for Early {
                device,
                mad,
                refused_at,
                ..
            } in early
            {
                service.receive(device, &mad, Some(refused_at));
            }
            continue;
        }
        let due = core.manager.poll_timeout().unwrap_or(Time::NEVER);
        if due <= now {
            core.manager.handle_timeout(now);
            service.leave(core);
            continue;
        }
        let due = core
            .early
            .iter()
            .map(|early| early.due)
            .fold(due, Time::min);
        core.sleeps_until = due;
        let sleep = due.since(now).min(LONGEST_SLEEP);
        let sleep = Duration::from_nanos(sleep.as_nanos() + 1);
        let waited = service.changed.wait_timeout(core, sleep);
        let (mut core, _) = waited.unwrap_or_else(PoisonError::into_inner);
        core.sleeps_until = Time::NEVER;
    }
}
