//! Multicast: which datagram queue pairs receive what is sent to a group (IBTA vol. 1, 10.5.2).
//!
//! ```text
//! datagram to QP 0xffffff at group G ──► every attached queue pair, each with a receive request of its own
//! ```
//!
//! The device only tells who receives. To have packets of a group arrive at all, and to give a queue pair's own packets
//! back to the members on this device, is the driver's business.

use softfabric_telemetry::DeviceCounter;
use softfabric_units::{Gid, Qpn};
use softfabric_wire::rdma::Service;

use super::Device;
use crate::memory::Memory;
use crate::packet::Arrival;
use crate::queue_pair::QueuePairType;

/// Why a queue pair was not attached to a group, or detached from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MulticastError {
    /// No such queue pair.
    #[error("queue pair {0} does not exist")]
    Unknown(Qpn),
    /// Only datagrams are multicast.
    #[error("a {0} queue pair cannot join a multicast group; UD can")]
    Service(QueuePairType),
    /// The address is no group's.
    #[error("{0} is not a multicast address; needed is ff00::/8 or an IPv4 address of 224.0.0.0/4")]
    Address(Gid),
    /// It is not attached.
    #[error("the queue pair is not attached to {0}")]
    NotAttached(Gid),
}

impl<M: Memory> Device<M> {
    /// Lets a datagram queue pair receive what is sent to `group`: true where it is the group's first member on this
    /// device, so that the driver joins the group. Attaching once more changes nothing.
    ///
    /// # Errors
    /// If there is no such queue pair, it is not of type UD, or the address is no group's.
    pub fn attach_multicast(&mut self, number: Qpn, group: Gid) -> Result<bool, MulticastError> {
        let slot = *self
            .by_number
            .get(&number)
            .ok_or(MulticastError::Unknown(number))?;
        let service = self.queue_pairs[slot as usize].service;
        if service != QueuePairType::UnreliableDatagram {
            return Err(MulticastError::Service(service));
        }
        if !group.to_ip().is_multicast() {
            return Err(MulticastError::Address(group));
        }
        let members = self.multicast.entry(group).or_default();
        let first = members.is_empty();
        if !members.contains(&slot) {
            members.push(slot);
        }
        Ok(first)
    }

    /// Ends what [`Device::attach_multicast`] began: true where the group has no member on this device any more.
    ///
    /// # Errors
    /// If the queue pair does not exist or is not attached.
    pub fn detach_multicast(&mut self, number: Qpn, group: Gid) -> Result<bool, MulticastError> {
        let slot = *self
            .by_number
            .get(&number)
            .ok_or(MulticastError::Unknown(number))?;
        let members = self
            .multicast
            .get_mut(&group)
            .ok_or(MulticastError::NotAttached(group))?;
        let position = members
            .iter()
            .position(|&member| member == slot)
            .ok_or(MulticastError::NotAttached(group))?;
        members.remove(position);
        let last = members.is_empty();
        if last {
            self.multicast.remove(&group);
        }
        Ok(last)
    }

    /// The groups that a queue pair is attached to.
    pub fn multicast_groups(&self, number: Qpn) -> impl Iterator<Item = Gid> + '_ {
        let slot = self.by_number.get(&number).copied();
        self.multicast
            .iter()
            .filter(move |(_, members)| slot.is_some_and(|slot| members.contains(&slot)))
            .map(|(group, _)| *group)
    }

    /// A packet for queue pair 0xffffff. Its marks lead to no notification: one receiver's queue is no reason to slow
    /// down for all.
    #[cold]
    pub(super) fn handle_multicast(&mut self, arrival: &Arrival<'_, M::Incoming<'_>>) {
        let header = arrival.header;
        let members = arrival
            .destination
            .and_then(|group| self.multicast.get(group));
        let (Some(members), Service::UnreliableDatagram) = (members, header.bth.opcode.service())
        else {
            self.core.count(DeviceCounter::Discarded);
            return;
        };
        for &slot in members {
            let qp = &mut self.queue_pairs[slot as usize];
            if qp.state.receives() && qp.settings.partition.matches(header.bth.partition) {
                qp.handle_datagram(&mut self.core, arrival);
                qp.refresh(&mut self.core);
            } else {
                self.core.count(DeviceCounter::Discarded);
            }
        }
    }
}
