//! What the handle of a device and its background thread share.

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};

use softfabric_transport::rate::{DcqcnNicParameters, RateControlConfig};
use softfabric_transport::{Device, DeviceConfig, Mtu, QueuePairNumbers};
use softfabric_units::{Bytes, Qpn, Time};

use super::attention::Attention;
use super::core::Core;
use super::event::EventSink;
use super::general::{ArrivedMad, MadSink, hand_over};
use super::state::{News, State};
use super::{OpenError, fork};
use crate::clock::Clock;
use crate::cm;
use crate::host::{self, DeviceInfo};
use crate::memory::ProcessMemory;
use crate::neighbours::{self, Joined, Mailbox, Membership, OwnedLetter, Sockets};
use crate::port::shared::{self, SharedPort, VERSION};
use crate::port::udp::{Socket, Tap, UdpPort};
use crate::record::Recorder;
use crate::settings::{CongestionControl, Settings};

pub(crate) struct Inner {
    pub(super) info: DeviceInfo,
    pub(super) clock: Clock,
    pub(super) attention: Arc<Attention>,
    pub(super) inbox: Arc<Mutex<Vec<OwnedLetter>>>,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) sockets: Arc<Sockets>,
    /// The most unacknowledged bytes of a connection over the wire: what fits a socket's buffer.
    pub(super) window: Bytes,
    /// Whether packets may be marked, and notifications are obeyed.
    pub(super) marks: bool,
    membership: Arc<Membership>,
    local: Mutex<Vec<IpAddr>>,
    state: Mutex<State>,
    pub(super) sink: RwLock<Option<Arc<dyn EventSink>>>,
    pub(super) mad_sink: RwLock<Option<Arc<dyn MadSink>>>,
}

impl Inner {
    pub(super) fn open(info: &DeviceInfo, settings: &Settings) -> Result<Self, OpenError> {
        fork::prepare();
        let shortcut = settings.shares_memory();
        let links = shortcut && SharedPort::is_possible();
        let Joined {
            membership,
            mailbox,
            sockets,
        } = Membership::join(info, if links { VERSION } else { 0 })?;
        let membership = Arc::new(membership);
        let attention = Arc::new(Attention::new().map_err(OpenError::Descriptors)?);
        let inbox = Arc::default();
        let bell = attention
            .bell()
            .try_clone_to_owned()
            .map_err(OpenError::Descriptors)?;
        let (mailbox, sockets) = (Arc::new(mailbox), Arc::new(sockets));
        let device = Device::new(
            config(info, settings, membership.slot),
            ProcessMemory::new(),
        );
        let room = [&sockets.v4, &sockets.v6]
            .into_iter()
            .flatten()
            .map(Socket::room)
            .min();
        let core = Core::new(device, info, membership.slot, mailbox.clone());
        let recorder = match &settings.recording {
            Some(path) => Some(Recorder::start(path, info, membership.slot)?),
            None => None,
        };
        let tap = Tap::new(&settings.faults, settings.seed, recorder);
        let udp = UdpPort::new(sockets.clone(), tap);
        let shared = SharedPort::new(links, membership.clone(), mailbox.clone(), bell);
        Ok(Self {
            info: info.clone(),
            clock: Clock::start(),
            mailbox,
            sockets,
            window: window(room.unwrap_or(0)),
            marks: settings.congestion_control != CongestionControl::Off,
            membership,
            local: Mutex::new(host::addresses().map_err(host::HostError::from)?),
            state: Mutex::new(State::new(
                core,
                udp,
                shared,
                Arc::clone(&attention),
                Arc::clone(&inbox),
                shortcut,
            )),
            attention,
            inbox,
            sink: RwLock::new(None),
            mad_sink: RwLock::new(None),
        })
    }

    pub(super) fn slot(&self) -> u8 {
        self.membership.slot
    }

    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether an address is one of this network namespace. Addresses come and go: who is not known is looked for again.
    pub(super) fn is_local(&self, address: &IpAddr) -> bool {
        let mut local = self.local.lock().unwrap_or_else(PoisonError::into_inner);
        if !local.contains(address)
            && let Ok(now) = host::addresses()
        {
            *local = now;
        }
        local.contains(address)
    }

    /// Lets the lock go and does what is to be done without it.
    #[inline]
    pub(super) fn leave(&self, mut state: MutexGuard<'_, State>) {
        let news = state.news();
        drop(state);
        if let Some(news) = news {
            self.tell(news);
        }
    }

    #[cold]
    fn tell(&self, news: News) {
        if !news.events.is_empty() {
            let sink = self
                .sink
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            if let Some(sink) = sink {
                news.events.into_iter().for_each(|event| sink.event(event));
            }
        }
        if !news.mads.is_empty() {
            let sink = self
                .mad_sink
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            for mad in &news.mads {
                match &sink {
                    Some(sink) => sink.receive(mad),
                    None => self.pass_on(mad),
                }
            }
        }
        // What cannot be repaired now is noticed again.
        if news.repair {
            let _ = self.membership.repair(&self.sockets);
        }
        for (family, probe) in news.probes {
            let _ = self.membership.answer_probe(family, &self.sockets, &probe);
        }
    }

    /// A management datagram came to a process that manages no connections: it is for a neighbour, or for nobody.
    #[cold]
    fn pass_on(&self, mad: &ArrivedMad) {
        let neighbour = cm::addressee(mad).filter(|slot| *slot != self.slot());
        if !neighbour.is_some_and(|slot| hand_over(&self.mailbox, slot, mad)) {
            self.refuse(mad);
        }
    }

    /// Nobody here knows what a management datagram is about: whoever waits for an answer gets it.
    pub(super) fn refuse(&self, mad: &ArrivedMad) {
        if let Some(answer) = cm::answer_for_nobody(mad) {
            let mut state = self.lock();
            let now = self.clock.now();
            state.answer_mad(now, mad, &answer);
            let more = state.progress(now);
            state.flush();
            self.expect(&state, more);
            self.leave(state);
        }
    }

    /// Whoever sleeps is told of what is due now.
    #[inline]
    pub(super) fn expect(&self, state: &State, more: bool) {
        if !self.attention.is_asleep() {
            return;
        }
        if more || state.is_blocked() {
            self.attention.expect(Time::ZERO);
        } else if let Some(due) = state.deadline() {
            self.attention.expect(due);
        }
    }

    /// Every descriptor that a forked child must not hold.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let sockets = [self.sockets.v4.as_ref(), self.sockets.v6.as_ref()];
        let sockets = sockets.into_iter().flatten().map(AsFd::as_fd);
        let others = [
            self.attention.bell(),
            self.mailbox.as_fd(),
            self.membership.life(),
        ];
        sockets.chain(others)
    }

    /// Ends the device's life, once: keeps its counters, and says whether it is still a member.
    fn part(&self) -> bool {
        let mut state = self.lock();
        if !state.alive {
            return false;
        }
        state.flush();
        state.alive = false;
        let counters = neighbours::counters(&state.counters());
        drop(state);
        // Where they cannot be kept, they are gone, as those of a process that is killed.
        let _ = self.membership.leave_counters(&self.info.name, &counters);
        true
    }

    /// The process ends: what the neighbours need to know, they are told.
    pub(super) fn say_goodbye(&self) {
        if self.part() {
            self.attention.stop();
            self.membership.leave(self.sockets.clone());
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let parts = self.part();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.udp.close();
        if parts {
            self.membership.leave(std::mem::take(&mut self.sockets));
        }
    }
}

/// The MTU of connections that do not leave the host.
pub(super) fn local_mtu() -> Option<Mtu> {
    Mtu::local(shared::MTU)
}

/// The window for peers whose sockets have as much room as ours. More than this waits in caches that are too small.
fn window(room: usize) -> Bytes {
    Bytes::new((room as u64 / 3).clamp(64 << 10, 1 << 20))
}

fn config(info: &DeviceInfo, settings: &Settings, slot: u8) -> DeviceConfig {
    let first = u32::from(slot) << 16;
    // The last is the slot's own name for queue pair 1.
    let numbers = QueuePairNumbers::new(Qpn::new(first), Qpn::new(first | 0xfffe));
    DeviceConfig {
        mtu: info.mtu,
        qp_numbers: numbers.unwrap_or(QueuePairNumbers::ALL),
        rate_control: match settings.congestion_control {
            CongestionControl::Off => RateControlConfig::None,
            CongestionControl::Dcqcn => {
                RateControlConfig::DcqcnNic(DcqcnNicParameters::nvidia_default())
            }
        },
        ..DeviceConfig::new(settings.line_rate)
    }
}
