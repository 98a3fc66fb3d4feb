//! An identifier gets an address and a port, and finds its way.

use std::net::SocketAddr;

use softfabric_adapter::cm::{ListenAddress, PortError};
use softfabric_units::Gid;

use super::super::abi::EventKind;
use super::super::descriptors::ChannelId;
use super::event::Parameters;
use super::{Cm, Id, Local, State};
use crate::abi::ib_user_path_rec;
use crate::errno::Errno;

fn port_errno(error: &PortError) -> Errno {
    match error {
        PortError::InUse(_) => Errno::EADDRINUSE,
        PortError::NoneFree => Errno::EADDRNOTAVAIL,
        PortError::File(_) => Errno::EIO,
    }
}

impl Cm {
    /// Whether an identifier may be bound, or its way found.
    pub(crate) fn bound_address(
        &mut self,
        channel: ChannelId,
        id: u32,
    ) -> Result<Option<SocketAddr>, Errno> {
        let id = self.id(channel, id)?;
        match id.state {
            State::Idle | State::Bound => Ok(id.source),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Gives an identifier an address and a port; `local` is whose address it is, unless it is any.
    pub(crate) fn bind(
        &mut self,
        channel: ChannelId,
        number: u32,
        address: SocketAddr,
        local: Option<Local>,
    ) -> Result<(), Errno> {
        let id = self.id(channel, number)?;
        if id.state != State::Idle {
            return Err(Errno::EINVAL);
        }
        let (space, reuse) = (id.space, id.reuse);
        let served = served(address, id.only_ipv6);
        let protocol = space.service(0).protocol;
        let bound = self
            .registry
            .bind(protocol, address.port(), served, reuse, &mut self.random);
        let port = bound.map_err(|error| port_errno(&error))?;
        let id = self.id(channel, number)?;
        let mut address = address;
        address.set_port(port);
        id.claim = Some((space.service(port), served));
        id.source = Some(address);
        id.local = local;
        id.state = State::Bound;
        Ok(())
    }

    /// The way is found: from `source` on `local` to `destination`. Or it is not.
    pub(crate) fn address_resolved(
        &mut self,
        channel: ChannelId,
        number: u32,
        destination: SocketAddr,
        found: Result<(SocketAddr, Local), Errno>,
    ) -> Result<(), Errno> {
        let free_port = 32_768 + self.random.below(28_000) as u16;
        let id = self.id(channel, number)?;
        let (source, local) = match found {
            Ok(found) => found,
            Err(error) => {
                let status = (-error.code()) as u32;
                self.tell(number, EventKind::AddressError, status, &Parameters::None);
                return Ok(());
            }
        };
        // A port that only asks need not be anybody's own.
        let bound = id.source.map_or(0, |bound| bound.port());
        let mut source = source;
        source.set_port(if bound == 0 { free_port } else { bound });
        id.source = Some(source);
        id.destination = Some(destination);
        id.local = Some(local);
        id.state = State::AddressResolved;
        self.tell(number, EventKind::AddressResolved, 0, &Parameters::None);
        Ok(())
    }

    /// The route is found: on Ethernet, the address is the route.
    pub(crate) fn resolve_route(&mut self, channel: ChannelId, number: u32) -> Result<(), Errno> {
        let id = self.id(channel, number)?;
        if id.state != State::AddressResolved {
            return Err(Errno::EINVAL);
        }
        id.state = State::RouteResolved;
        self.tell(number, EventKind::RouteResolved, 0, &Parameters::None);
        Ok(())
    }
}

impl Id {
    /// The path to the other side, as the kernel shows it.
    pub(super) fn path_record(&self) -> Option<ib_user_path_rec> {
        /// "Exactly this", of a field that may also be a bound.
        const EXACTLY: u8 = 2;
        /// What the port says of its link (`IBV_RATE_100_GBPS`).
        const RATE_100_GBPS: u8 = 16;
        Some(ib_user_path_rec {
            dgid: self.destination_gid().unwrap_or_default().0,
            sgid: self.source_gid()?.0,
            reversible: 1,
            mtu: u32::from(self.mtu().code()),
            pkey: 0xffff,
            hop_limit: 64,
            traffic_class: self.traffic_class,
            numb_path: 1,
            mtu_selector: EXACTLY,
            rate_selector: EXACTLY,
            rate: RATE_100_GBPS,
            packet_life_time_selector: EXACTLY,
            packet_life_time: self.packet_lifetime(),
            ..Default::default()
        })
    }
}

/// Which addresses a bound identifier serves.
pub(super) fn served(address: SocketAddr, only_ipv6: bool) -> ListenAddress {
    match address {
        _ if !address.ip().is_unspecified() => ListenAddress::One(Gid::from_ip(address.ip())),
        SocketAddr::V4(_) => ListenAddress::AnyIpv4,
        SocketAddr::V6(_) if only_ipv6 => ListenAddress::AnyIpv6,
        SocketAddr::V6(_) => ListenAddress::Any,
    }
}
