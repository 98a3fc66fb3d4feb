//! General services: the management datagrams of queue pair 1, for connection management.

use std::io;
use std::sync::{Arc, PoisonError};

use softfabric_transport::{AddressVector, GENERAL_SERVICES_QKEY};
use softfabric_units::{Gid, PartitionKey, Psn, Qpn};
use softfabric_wire::rdma::{Bth, Deth, Extension, Opcode, TransportHeader};

use super::Nic;
use super::core::{encode_mad, general_services};
use crate::neighbours::Mailbox;

/// A management datagram is this long (IBTA vol. 1, 13.4.2).
pub const MAD_LENGTH: usize = 256;

/// A management datagram that arrived for queue pair 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrivedMad {
    /// Who sent it.
    pub source: Gid,
    /// The sender's queue pair.
    pub source_qp: Qpn,
    /// Which of the device's addresses it was sent to.
    pub destination: Gid,
    /// Its IP traffic class.
    pub traffic_class: u8,
    /// Its bytes.
    pub bytes: [u8; MAD_LENGTH],
}

/// Gets the management datagrams that arrive.
///
/// It is called on whatever thread made progress, with the device unlocked, so it may call the device.
pub trait MadSink: Send + Sync {
    /// One arrived.
    fn receive(&self, mad: &ArrivedMad);
}

/// Queue pair 1 of a device.
#[derive(Clone, Copy, Debug)]
pub struct GeneralServices<'a> {
    nic: &'a Nic,
}

impl Nic {
    /// Queue pair 1.
    pub fn general_services(&self) -> GeneralServices<'_> {
        GeneralServices { nic: self }
    }
}

impl GeneralServices<'_> {
    /// Sends a datagram to queue pair 1 at the end of `path`. Nothing tells whether it arrives.
    pub fn send(&self, path: &AddressVector, mad: &[u8; MAD_LENGTH]) {
        let inner = &*self.nic.inner;
        let mut state = inner.lock();
        let now = inner.clock.now();
        state.send_mad(now, path, Qpn::GENERAL_SERVICES, mad);
        let more = state.progress(now);
        state.flush();
        inner.expect(&state, more);
        inner.leave(state);
    }

    /// Sends a datagram to queue pair 1 of the neighbour that has a slot, at the end of `path`, which leads to this host.
    pub fn send_to_neighbour(&self, path: &AddressVector, slot: u8, mad: &[u8; MAD_LENGTH]) {
        let inner = &*self.nic.inner;
        let mut state = inner.lock();
        let now = inner.clock.now();
        state.send_mad(now, path, general_services(slot), mad);
        let more = state.progress(now);
        state.flush();
        inner.expect(&state, more);
        inner.leave(state);
    }

    /// Whether an address is one of this host's.
    pub fn is_local(&self, address: Gid) -> bool {
        self.nic.inner.is_local(&address.to_ip())
    }

    /// Gives a datagram that arrived here to the neighbour that has a slot: there it arrives as if from the network. All
    /// that come from the network arrive at the neighbour with the lowest slot. False: there is no such neighbour.
    pub fn hand_over(&self, slot: u8, mad: &ArrivedMad) -> bool {
        hand_over(&self.nic.inner.mailbox, slot, mad)
    }

    /// Answers a datagram of connection management that is for nobody on this host, if it wants an answer.
    pub fn refuse(&self, mad: &ArrivedMad) {
        self.nic.inner.refuse(mad);
    }

    /// Who gets the datagrams that arrive from now on. Without anybody, they go to the neighbours that they are for.
    pub fn set_sink(&self, sink: Arc<dyn MadSink>) {
        let mut slot = self
            .nic
            .inner
            .mad_sink
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *slot = Some(sink);
    }
}

/// Gives a datagram to the neighbour that has a slot. False: there is no such neighbour. A mailbox that is full loses
/// the datagram, as a network might.
pub(super) fn hand_over(mailbox: &Mailbox, slot: u8, mad: &ArrivedMad) -> bool {
    let sent = mailbox.send(slot, &[&encode_mad(mad), &mad.bytes], &[]);
    !sent.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// The header of a datagram to queue pair 1, by whichever of its numbers.
pub(super) fn header(psn: Psn, destination: Qpn) -> TransportHeader {
    TransportHeader {
        bth: Bth {
            opcode: Opcode::UD_SEND_ONLY,
            solicited: false,
            migrated: true,
            pad: 0,
            partition: PartitionKey::DEFAULT,
            fecn: false,
            becn: false,
            destination,
            acknowledge: false,
            psn,
        },
        extension: Extension::Deth(Deth {
            qkey: GENERAL_SERVICES_QKEY,
            source: Qpn::GENERAL_SERVICES,
        }),
        xrc_srq: 0,
    }
}
