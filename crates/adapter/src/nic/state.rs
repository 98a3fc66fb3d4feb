//! What a device's lock guards: the transport, and the ways its packets take.
//!
//! ```text
//! Device ──poll_transmit──► route ─┬─ a queue pair of this device: straight back into it
//!    ▲                             └─ elsewhere
//!    └────────handle_packet────────┘
//! ```
//!
//! A payload's pieces are good while the lock is held, so every packet is copied, or placed, before it is let go.

use softfabric_telemetry::DeviceCounter;
use softfabric_transport::{
    AddressVector, Arrival, Device, DeviceConfig, Event, GENERAL_SERVICES_QKEY, Transmit,
};
use softfabric_units::{ClassMask, Gid, Psn, Qpn, Rate, Time};
use softfabric_wire::rdma::{Extension, Service};

use super::general::{self, ArrivedMad, MAD_LENGTH};
use super::path::Paths;
use crate::host::DeviceInfo;
use crate::memory::{Captured, Incoming, Payload, ProcessMemory};

/// How many packets leave before the lock is given to others.
const TURN: usize = 256;

/// The locked part of a device.
pub(crate) struct State {
    pub(crate) device: Device<ProcessMemory>,
    pub(crate) paths: Paths,
    mads: Vec<ArrivedMad>,
    mad_psn: Psn,
}

/// What has to be told once the lock is let go.
#[derive(Default)]
pub(crate) struct News {
    pub(crate) events: Vec<Event>,
    pub(crate) mads: Vec<ArrivedMad>,
}

impl State {
    pub(crate) fn new(_info: &DeviceInfo) -> Self {
        Self {
            device: Device::new(DeviceConfig::new(Rate::gbps(100)), ProcessMemory::new()),
            paths: Paths::default(),
            mads: Vec::new(),
            mad_psn: Psn::default(),
        }
    }

    /// Lets timers act and packets leave. Says whether more could leave.
    pub(crate) fn progress(&mut self, now: Time) -> bool {
        if self.device.poll_timeout().is_some_and(|due| due <= now) {
            self.device.handle_timeout(now);
        }
        for _ in 0..TURN {
            let Some(packet) = self.device.poll_transmit(now, ClassMask::ALL) else {
                return false;
            };
            self.route(now, &packet);
        }
        true
    }

    /// Takes what has to be told.
    pub(crate) fn news(&mut self) -> News {
        let mut news = News {
            events: Vec::new(),
            mads: std::mem::take(&mut self.mads),
        };
        while let Some(event) = self.device.poll_event() {
            news.events.push(event);
        }
        news
    }

    /// Sends a management datagram to queue pair 1.
    pub(crate) fn send_mad(&mut self, now: Time, path: &AddressVector, mad: &[u8; MAD_LENGTH]) {
        let psn = self.mad_psn;
        self.mad_psn = psn.next();
        let packet = Transmit {
            header: general::header(psn),
            payload: Payload::Bytes(Captured::from_slice(mad)),
            payload_length: MAD_LENGTH as u32,
            class: path.class,
            path: *path,
            ecn_capable: false,
            qp: Qpn::GENERAL_SERVICES,
        };
        self.route(now, &packet);
    }

    fn route(&mut self, now: Time, packet: &Transmit<Payload>) {
        let Some(path) = self.paths.get(packet.path.driver) else {
            return;
        };
        if path.local {
            let mut source = packet.path;
            source.gid = Gid::from_ip(path.source);
            self.arrive(
                now,
                Arrival {
                    header: &packet.header,
                    payload: Incoming::Here(&packet.payload),
                    payload_length: packet.payload_length,
                    congestion: false,
                    source: &source,
                    destination: Some(&packet.path.gid),
                    grh: None,
                },
            );
        }
    }

    fn arrive(&mut self, now: Time, arrival: Arrival<'_, Incoming<'_>>) {
        if arrival.header.bth.destination == Qpn::GENERAL_SERVICES {
            self.arrive_mad(&arrival);
        } else {
            self.device.handle_packet(now, arrival);
        }
    }

    /// A datagram for queue pair 1, which is not one of the transport's.
    fn arrive_mad(&mut self, arrival: &Arrival<'_, Incoming<'_>>) {
        let header = arrival.header;
        let mut bytes = Vec::with_capacity(MAD_LENGTH);
        let taken = match (header.extension, header.bth.opcode.service()) {
            (Extension::Deth(deth), Service::UnreliableDatagram)
                if deth.qkey == GENERAL_SERVICES_QKEY
                    && arrival.payload.append_to(&mut bytes).is_ok() =>
            {
                <[u8; MAD_LENGTH]>::try_from(bytes.as_slice())
                    .ok()
                    .map(|bytes| ArrivedMad {
                        source: arrival.source.gid,
                        source_qp: deth.source,
                        destination: arrival.destination.copied().unwrap_or_default(),
                        traffic_class: arrival.source.traffic_class,
                        bytes,
                    })
            }
            _ => None,
        };
        match taken {
            Some(mad) => self.mads.push(mad),
            None => self.device.counters_mut().count(DeviceCounter::Discarded),
        }
    }
}
