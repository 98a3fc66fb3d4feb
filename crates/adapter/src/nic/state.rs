//! What a device's lock guards: the transport, and the ways its packets take.
//!
//! ```text
//! transport ──poll_transmit──► route ─┬─ a queue pair of this device: straight back into it
//!    ▲                                └─ elsewhere: UDP
//!    └───────handle_packet──── arrived ◄─┘
//! ```
//!
//! A payload's pieces are good while the lock is held, so every packet is copied, or placed, before it is let go.

use std::sync::{Arc, Mutex, PoisonError};

use softfabric_telemetry::{DeviceCounter, DeviceCounters, PortCounters};
use softfabric_transport::{AddressVector, Arrival, Event, State as QueuePairState, Transmit};
use softfabric_units::{Class, ClassMask, Gid, Qpn, Span, Time};
use softfabric_wire::rdma::Service;

use super::attention::{Attention, Patience, Streak};
use super::core::{Core, LETTER_MAD, LETTER_PACKET, decode_mad, decode_origin, slot_of};
use super::general::{self, ArrivedMad, MAD_LENGTH};
use super::path::Path;
use crate::memory::{Captured, Incoming, Payload};
use crate::neighbours::{self, LETTER_ASK, OwnedLetter};
use crate::port::shared::{LETTER_RING, SharedPort, Taken};
use crate::port::udp::{Family, Origin, UdpPort, datagram_header};

/// How many packets leave before the lock is given to others.
const TURN: usize = 256;
/// How many batches are taken from a socket before others have their turn.
const BATCHES: usize = 4;

/// How long a socket that had nothing is left alone by a program that polls: asking slows down those who fill it.
const REST: Span = Span::nanos(200);

/// Which sockets are asked for packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// All.
    All,
    /// Those that had packets a moment ago: a system call for each poll would slow down who shares memory only.
    Hot,
}

/// The locked part of a device.
pub(crate) struct State {
    pub(crate) core: Core,
    pub(crate) udp: UdpPort,
    pub(crate) shared: SharedPort,
    attention: Arc<Attention>,
    /// Until when the sockets are left alone by polls.
    rest: [Time; 2],
    inbox: Arc<Mutex<Vec<OwnedLetter>>>,
    /// Whether packets between queue pairs of one process, and of one host, may leave out the wire.
    pub(crate) shortcut: bool,
    pub(crate) streak: Streak,
    pub(crate) patience: Patience,
    /// False in a process that was forked: its packets would be taken for the parent's.
    pub(crate) alive: bool,
}

/// What has to be done once the lock is let go.
pub(crate) struct News {
    pub(crate) events: Vec<Event>,
    pub(crate) mads: Vec<ArrivedMad>,
    pub(crate) probes: Vec<(Family, Vec<u8>)>,
    pub(crate) repair: bool,
}

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

impl State {
    pub(crate) fn new(
        core: Core,
        udp: UdpPort,
        shared: SharedPort,
        attention: Arc<Attention>,
        inbox: Arc<Mutex<Vec<OwnedLetter>>>,
        shortcut: bool,
    ) -> Self {
        Self {
            core,
            udp,
            shared,
            attention,
            rest: [Time::ZERO; 2],
            inbox,
            shortcut,
            streak: Streak::default(),
            patience: Patience::default(),
            alive: true,
        }
    }

    /// Takes what arrived, and returns how many packets that were.
    pub(crate) fn receive(&mut self, now: Time, ask: Ask) -> usize {
        if !self.alive {
            return 0;
        }
        if self.attention.take_letters() {
            self.read_letters(now);
        }
        let core = &mut self.core;
        let mut total = self
            .shared
            .receive(|arrived| core.arrived_here(now, arrived));
        for family in FAMILIES {
            let at = family as usize;
            if ask == Ask::Hot && (now < self.rest[at] || !self.attention.is_hot(family, now)) {
                continue;
            }
            for _ in 0..BATCHES {
                let core = &mut self.core;
                let received = self
                    .udp
                    .receive(now, family, |arrived| core.arrived(now, arrived));
                // An error of the socket is one of an earlier send, and is gone with being read.
                let (received, more) = received.unwrap_or((0, false));
                total += received;
                if received == 0 {
                    self.rest[at] = now + REST;
                    break;
                }
                self.attention.heat(family, now);
                if !more {
                    break;
                }
            }
        }
        total
    }

    #[cold]
    fn read_letters(&mut self, now: Time) {
        let letters = {
            let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *inbox)
        };
        for letter in letters {
            match letter.bytes.first() {
                Some(&LETTER_PACKET) => {
                    if let Some((origin, packet)) = decode_origin(&letter.bytes) {
                        self.receive_handed(now, origin, packet);
                    }
                }
                Some(&LETTER_MAD) => self.core.mads.extend(decode_mad(&letter.bytes)),
                Some(&LETTER_RING) => {
                    self.shared
                        .accept(&letter.bytes, letter.slot, letter.descriptors);
                }
                Some(&LETTER_ASK) => {
                    let answer = serde_json::to_vec(&neighbours::counters(&self.counters()));
                    if let (Ok(answer), Some(sender)) = (answer, &letter.sender) {
                        // Who asks and does not listen gets no answer.
                        let _ = self.core.mailbox.send_to(sender, &[&answer], &[]);
                    }
                }
                // A letter that wakes has done so.
                _ => {}
            }
        }
    }

    /// Takes a packet that a neighbour has handed over.
    fn receive_handed(&mut self, now: Time, origin: Origin, bytes: &[u8]) {
        let core = &mut self.core;
        self.udp.receive_handed(origin, bytes, |arrived| {
            // What is not for us either is not handed on once more.
            if slot_of(arrived.header.bth.destination) == core.slot {
                core.arrived(now, arrived);
            }
        });
    }

    /// Lets timers act, and packets go to their ports. Says whether more could go. What goes to the wire leaves with
    /// [`State::flush`].
    pub(crate) fn progress(&mut self, now: Time) -> bool {
        if !self.alive {
            return false;
        }
        let device = &mut self.core.device;
        if device.poll_timeout().is_some_and(|due| due <= now) {
            device.handle_timeout(now);
        }
        let core = &mut self.core;
        self.udp.release(now, |arrived| core.arrived(now, arrived));
        self.shared.look_for_room(now);
        let mut more = true;
        for _ in 0..TURN {
            if !self.udp.has_room() || !self.shared.has_room() {
                more = false;
                break;
            }
            let Some(packet) = self.core.device.poll_transmit(now, ClassMask::ALL) else {
                more = false;
                break;
            };
            self.route(now, &packet);
        }
        self.shared.flush();
        more
    }

    /// Sends what waits at the wire's port.
    #[inline]
    pub(crate) fn flush(&mut self) {
        self.attention.hold(false);
        self.udp.flush();
    }

    /// Keeps what waits at the wire's port until the program polls or posts again: what it answers to a packet leaves
    /// together with the acknowledgement, in one system call.
    #[inline]
    pub(crate) fn hold(&mut self) {
        if self.udp.has_waiting() {
            self.attention.hold(true);
        }
    }

    /// Neighbours that have something to read, and do not, are woken.
    #[inline]
    pub(crate) fn nudge(&mut self, now: Time) {
        self.shared.nudge(now);
    }

    /// Memory of queue pairs that have gone may be another's soon: their neighbours must not read it any more.
    #[inline]
    pub(crate) fn revoke(&mut self) {
        let device = &self.core.device;
        self.shared.revoke(|qp| {
            device.query_qp(qp).is_none_or(|status| {
                !matches!(
                    status.state,
                    QueuePairState::ReadyToSend | QueuePairState::SendQueueDrain
                )
            })
        });
    }

    /// When something has to be done although nothing happens.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let device = self.core.device.poll_timeout();
        [device, self.udp.tap.next_due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether packets wait for a port: somebody has to look again soon.
    pub(crate) fn is_blocked(&self) -> bool {
        self.udp.is_blocked() || self.shared.is_blocked()
    }

    /// Takes what has to be told and done, if there is anything.
    #[inline]
    pub(crate) fn news(&mut self) -> Option<News> {
        let event = self.core.device.poll_event();
        let quiet = event.is_none()
            && self.core.mads.is_empty()
            && self.udp.probes.is_empty()
            && !self.core.repair;
        if quiet {
            return None;
        }
        let mut news = News {
            events: event.into_iter().collect(),
            mads: std::mem::take(&mut self.core.mads),
            probes: std::mem::take(&mut self.udp.probes),
            repair: std::mem::take(&mut self.core.repair),
        };
        while let Some(event) = self.core.device.poll_event() {
            news.events.push(event);
        }
        Some(news)
    }

    /// What was counted.
    pub(crate) fn counters(&self) -> (DeviceCounters, PortCounters) {
        let mut device = self.core.device.counters().clone();
        device.add(DeviceCounter::IcrcErrors, self.udp.damaged);
        device.add(
            DeviceCounter::Discarded,
            self.udp.malformed + self.shared.malformed,
        );
        let mut port = self.udp.counters.clone();
        port.merge(&self.shared.counters);
        (device, port)
    }

    /// Sends a management datagram to queue pair 1.
    pub(crate) fn send_mad(
        &mut self,
        now: Time,
        path: &AddressVector,
        to: Qpn,
        mad: &[u8; MAD_LENGTH],
    ) {
        let packet = self.mad_packet(*path, to, mad);
        if self.alive {
            self.route(now, &packet);
        }
    }

    /// Sends a management datagram back to where another came from, from the address that it was for.
    pub(crate) fn answer_mad(&mut self, now: Time, arrived: &ArrivedMad, mad: &[u8; MAD_LENGTH]) {
        let path = Path {
            source: arrived.destination.to_ip(),
            destination: arrived.source.to_ip(),
            scope: self.core.paths.scope_of(&arrived.source.to_ip()),
            local: false,
        };
        let address = AddressVector {
            gid: arrived.source,
            driver: 0,
            flow_label: 0,
            source_port: 0,
            traffic_class: 0,
            hop_limit: 64,
            class: Class::new(0),
        };
        let packet = self.mad_packet(address, Qpn::GENERAL_SERVICES, mad);
        if self.alive {
            self.udp.send(now, &path, &packet);
        }
    }

    fn mad_packet(
        &mut self,
        path: AddressVector,
        to: Qpn,
        mad: &[u8; MAD_LENGTH],
    ) -> Transmit<Payload> {
        let psn = self.core.mad_psn;
        self.core.mad_psn = psn.next();
        Transmit {
            header: general::header(psn, to),
            payload: Payload::Bytes(Captured::from_slice(mad)),
            payload_length: MAD_LENGTH as u32,
            class: path.class,
            path,
            ecn_capable: false,
            qp: Qpn::GENERAL_SERVICES,
        }
    }

    #[inline]
    fn route(&mut self, now: Time, packet: &Transmit<Payload>) {
        let path = match self.core.paths.get(packet.path.driver) {
            Some(path) => *path,
            // An answer to somebody whose path nobody has looked up.
            None => match self.core.paths.back_to(&packet.path.gid) {
                Some(path) => path,
                None => return,
            },
        };
        let slot = slot_of(packet.header.bth.destination);
        if self.shortcut && path.local && slot == self.core.slot {
            self.loop_back(now, &path, packet);
            return;
        }
        if path.local && slot != 0 {
            let source = Gid::from_ip(path.source);
            if self.shared.send(now, slot, source, packet) == Taken::Yes {
                return;
            }
        }
        self.udp.send(now, &path, packet);
    }

    /// A queue pair of this device sends to another.
    fn loop_back(&mut self, now: Time, path: &Path, packet: &Transmit<Payload>) {
        let source = AddressVector {
            gid: Gid::from_ip(path.source),
            driver: 0,
            ..packet.path
        };
        let is_datagram = packet.header.bth.opcode.service() == Service::UnreliableDatagram;
        let grh = is_datagram.then(|| {
            let ends = (path.source, path.destination);
            datagram_header(ends, &packet.path, &packet.header, packet.payload_length)
        });
        self.core.arrive(
            now,
            Arrival {
                header: &packet.header,
                payload: Incoming::Here(&packet.payload),
                payload_length: packet.payload_length,
                congestion: false,
                source: &source,
                destination: Some(&packet.path.gid),
                grh: grh.as_ref(),
            },
        );
    }
}
