//! Multicast groups: on Ethernet, the group's address says all.
//!
//! Joining tells the program how to reach the group. That its queue pair hears the group is the queue pair's business
//! (`ibv_attach_mcast`).

use std::net::SocketAddr;

use softfabric_units::{Gid, Qpn};

use super::super::abi::{self, EventKind};
use super::super::descriptors::ChannelId;
use super::event::{Parameters, datagram_parameters, make};
use super::{Cm, DATAGRAM_QKEY, Group, State, Waiting};
use crate::errno::Errno;

impl Cm {
    /// Joins the group of an address.
    pub(crate) fn join(
        &mut self,
        channel: ChannelId,
        number: u32,
        user: u64,
        address: Option<SocketAddr>,
    ) -> Result<abi::Number, Errno> {
        let address = address.ok_or(Errno::EINVAL)?;
        let id = self.id(channel, number)?;
        let placed = matches!(
            id.state,
            State::Bound | State::AddressResolved | State::RouteResolved
        );
        if !placed || id.local.is_none() || !id.is_datagram() || !address.ip().is_multicast() {
            return Err(Errno::EINVAL);
        }
        let mut parameters = datagram_parameters(&[]);
        parameters.qpn = Qpn::MULTICAST.as_u32();
        parameters.qkey = id.qkey.unwrap_or(DATAGRAM_QKEY);
        parameters.path = id.path_attributes(Gid::from_ip(address.ip()));
        let group = self.number();
        let entry = Group {
            id: number,
            reported: 0,
        };
        self.groups.insert(group, entry);
        let parameters = Parameters::Datagram(Box::new(parameters));
        let event = make(user, group, EventKind::MulticastJoin, 0, &parameters);
        let waiting = Waiting {
            counts_for: number,
            group: Some(group),
            event,
        };
        self.push(channel, waiting);
        Ok(abi::Number { value: group })
    }

    /// Leaves a group; the answer is how many of its events the program has taken.
    pub(crate) fn leave(&mut self, channel: ChannelId, group: u32) -> Result<abi::Number, Errno> {
        let id = self.groups.get(&group).ok_or(Errno::ENOENT)?.id;
        self.id(channel, id)?;
        if let Some(channel) = self.channels.get_mut(&channel) {
            super::life::forget(channel, |waiting| waiting.group == Some(group));
        }
        let value = self.groups.remove(&group).map_or(0, |group| group.reported);
        Ok(abi::Number { value })
    }
}
