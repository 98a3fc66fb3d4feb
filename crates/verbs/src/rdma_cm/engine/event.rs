//! From the manager's events to the program's.

use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};

use softfabric_adapter::cm::{Event, ListenerId, Manager, Program, Way};
use softfabric_units::{Gid, Time};
use softfabric_wire::mad::cm::{
    CommunicationId, ConnectReply, ConnectRequest, IpHeader, IpService, RejectReason,
    ResolutionReply, ResolutionRequest, ResolutionStatus, ServiceId,
};

use super::super::abi::{self, EventKind};
use super::super::descriptors::ChannelId;
use super::{Cm, Id, Link, Local, Peer, State, Waiting};
use crate::abi::ib_uverbs_ah_attr;
use crate::errno::Errno;

/// What an event carries.
pub(crate) enum Parameters {
    None,
    Connection(Box<abi::Connection>),
    Datagram(Box<abi::Datagram>),
}

/// A status that is an error's number.
fn failed(error: Errno) -> u32 {
    (-error.code()) as u32
}

impl Program for Cm {
    fn event(&mut self, manager: &mut Manager, now: Time, event: Event) {
        match event {
            Event::ConnectRequest {
                listener,
                connection,
                way,
                request,
            } => {
                if let Err(reason) = self.requested(manager, listener, connection, &way, &request) {
                    let words = softfabric_wire::mad::PrivateData::default();
                    let _ = manager.reject(now, connection, reason, words);
                    manager.destroy(now, connection);
                }
            }
            Event::ConnectReply { connection, reply } => self.replied(connection, &reply),
            Event::Established { connection } => {
                self.tell_named(connection, EventKind::Established, 0, &Parameters::None);
            }
            Event::Rejected { connection, reject } => {
                let mut parameters = connection_parameters(&reject.private_data);
                parameters.valid = 0;
                let parameters = Parameters::Connection(Box::new(parameters));
                let status = u32::from(reject.reason.0);
                self.over(connection, EventKind::Rejected, status, &parameters);
            }
            Event::Unreachable { connection } => {
                let status = failed(Errno::ETIMEDOUT);
                self.over(
                    connection,
                    EventKind::Unreachable,
                    status,
                    &Parameters::None,
                );
            }
            Event::Disconnected {
                connection,
                answered,
            } => {
                let status = if answered {
                    0
                } else {
                    failed(Errno::ETIMEDOUT)
                };
                if let Some(id) = self.named(connection) {
                    id.state = State::Disconnected;
                }
                self.tell_named(
                    connection,
                    EventKind::Disconnected,
                    status,
                    &Parameters::None,
                );
            }
            Event::TimeWaitOver { connection } => {
                self.over(connection, EventKind::TimewaitExit, 0, &Parameters::None);
            }
            Event::ResolutionRequest {
                listener,
                resolution,
                way,
                request,
            } => {
                if self
                    .resolution_requested(listener, resolution, &way, &request)
                    .is_none()
                {
                    manager.ignore_resolution(resolution);
                }
            }
            Event::ResolutionReply { resolution, reply } => self.resolved(resolution, &reply),
            Event::ResolutionUnreachable { resolution } => {
                let status = failed(Errno::ETIMEDOUT);
                self.over(
                    resolution,
                    EventKind::Unreachable,
                    status,
                    &Parameters::None,
                );
            }
        }
    }
}

impl Cm {
    /// Puts an event into its identifier's channel. One that its program does not know yet hears of nothing.
    pub(super) fn tell(
        &mut self,
        number: u32,
        kind: EventKind,
        status: u32,
        parameters: &Parameters,
    ) {
        let Some(id) = self.ids.get(&number) else {
            return;
        };
        if id.user == 0 {
            return;
        }
        let event = make(id.user, number, kind, status, parameters);
        let waiting = Waiting {
            counts_for: number,
            group: None,
            event,
        };
        let channel = id.channel;
        self.push(channel, waiting);
    }

    pub(super) fn push(&mut self, channel: ChannelId, waiting: Waiting) {
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.waiting.push_back(waiting);
            count_up(channel.descriptor.as_raw_fd());
        }
    }

    fn named(&mut self, name: CommunicationId) -> Option<&mut Id> {
        let number = self.by_name.get(&name)?;
        self.ids.get_mut(number)
    }

    fn tell_named(
        &mut self,
        name: CommunicationId,
        kind: EventKind,
        status: u32,
        parameters: &Parameters,
    ) {
        if let Some(number) = self.by_name.get(&name).copied() {
            self.tell(number, kind, status, parameters);
        }
    }

    /// The manager has forgotten the name.
    fn over(
        &mut self,
        name: CommunicationId,
        kind: EventKind,
        status: u32,
        parameters: &Parameters,
    ) {
        if let Some(id) = self.named(name) {
            id.state = State::Disconnected;
            id.link = Link::None;
        }
        self.tell_named(name, kind, status, parameters);
        self.by_name.remove(&name);
    }

    /// Somebody asks a listener for a connection.
    fn requested(
        &mut self,
        manager: &mut Manager,
        listener: ListenerId,
        connection: CommunicationId,
        way: &Way,
        request: &ConnectRequest,
    ) -> Result<(), RejectReason> {
        let Some((number, id)) =
            self.incoming(listener, way, request.service, &request.private_data)
        else {
            // Too many wait to be taken: the other side asks again.
            manager.ignore(connection);
            return Ok(());
        };
        if id.is_datagram() {
            return Err(RejectReason::INVALID_TRANSPORT_SERVICE);
        }
        let data = own_words(&id, &request.private_data);
        let mut parameters = connection_parameters(data);
        parameters.qpn = request.qpn.as_u32();
        parameters.responder_resources = request.initiator_depth;
        parameters.initiator_depth = request.responder_resources;
        parameters.flow_control = u8::from(request.flow_control);
        parameters.retries = request.retries;
        parameters.rnr_retries = request.rnr_retries;
        parameters.srq = u8::from(request.shared_receive_queue);
        let path = request.primary.ack_timeout.code().saturating_sub(1);
        let peer = Peer {
            qpn: request.qpn,
            psn: request.starting_psn,
            responder_resources: request.initiator_depth,
            initiator_depth: request.responder_resources,
            retries: request.retries,
            rnr_retries: request.rnr_retries,
            mtu: request.mtu,
            ack_timeout: super::ack_timeout(super::ACK_DELAY, path),
        };
        let id = Id {
            peer: Some(peer),
            link: Link::Connection(connection),
            traffic_class: request.primary.traffic_class,
            ..id
        };
        self.admit(
            number,
            id,
            connection,
            &Parameters::Connection(Box::new(parameters)),
        );
        Ok(())
    }

    fn resolution_requested(
        &mut self,
        listener: ListenerId,
        resolution: CommunicationId,
        way: &Way,
        request: &ResolutionRequest,
    ) -> Option<()> {
        let (number, id) = self.incoming(listener, way, request.service, &request.private_data)?;
        if !id.is_datagram() {
            return None;
        }
        let parameters = datagram_parameters(own_words(&id, &request.private_data));
        let id = Id {
            link: Link::Resolution(resolution),
            ..id
        };
        self.admit(
            number,
            id,
            resolution,
            &Parameters::Datagram(Box::new(parameters)),
        );
        Some(())
    }

    /// An identifier for a request to a listener, and the listener's number; `None` if nobody takes it now.
    fn incoming(
        &mut self,
        listener: ListenerId,
        way: &Way,
        service: ServiceId,
        private_data: &[u8],
    ) -> Option<(u32, Id)> {
        let number = *self.by_listener.get(&listener)?;
        let psn = softfabric_units::Psn::new(self.random.bits() as u32);
        let header = IpHeader::decode(private_data).ok();
        if header.is_some_and(|header| names_this_host(&header)) && !self.is_this_host(way.remote) {
            return None;
        }
        let parent = self.ids.get_mut(&number)?;
        if parent.backlog == 0 {
            return None;
        }
        let info = self.devices.get(way.device)?;
        let gid_index = info.gids.iter().position(|entry| entry.gid == way.local)?;
        parent.backlog -= 1;
        let mut id = Id::new(parent.channel, 0, parent.space, parent.qp_type, psn);
        id.state = State::Connected;
        id.qkey = parent.qkey;
        id.ack_timeout = parent.ack_timeout;
        let scope = |ip: IpAddr| match ip {
            IpAddr::V6(v6) if v6.is_unicast_link_local() => info.interface,
            _ => 0,
        };
        let port = IpService::from_id(service).map_or(0, |service| service.port);
        let (source, destination, destination_port) = match header {
            Some(header) => (header.destination(), header.source(), header.source_port()),
            None => (way.local.to_ip(), way.remote.to_ip(), 0),
        };
        id.source = Some(abi::socket_address(source, port, scope(source)));
        let destination = abi::socket_address(destination, destination_port, scope(destination));
        id.destination = Some(destination);
        id.local = Some(Local {
            device: way.device,
            info: info.clone(),
            gid_index,
        });
        Some((number, id))
    }

    /// Whether packets from `remote` come from this host.
    fn is_this_host(&self, remote: Gid) -> bool {
        let mut own = self.devices.iter().flat_map(|device| &device.gids);
        remote.to_ip().is_loopback() || own.any(|entry| entry.gid == remote)
    }

    /// Tells a listener's program of a request.
    fn admit(&mut self, listener: u32, id: Id, name: CommunicationId, parameters: &Parameters) {
        let Some(user) = self.ids.get(&listener).map(|parent| parent.user) else {
            return;
        };
        let number = self.number();
        let channel = id.channel;
        self.ids.insert(number, id);
        self.by_name.insert(name, number);
        let event = make(user, number, EventKind::ConnectRequest, 0, parameters);
        let waiting = Waiting {
            counts_for: listener,
            group: None,
            event,
        };
        self.push(channel, waiting);
    }

    /// The other side has accepted.
    fn replied(&mut self, name: CommunicationId, reply: &ConnectReply) {
        let Some(id) = self.named(name) else {
            return;
        };
        let lifetime = id.packet_lifetime();
        id.peer = Some(Peer {
            qpn: reply.qpn,
            psn: reply.starting_psn,
            responder_resources: reply.initiator_depth,
            initiator_depth: reply.responder_resources,
            // The retries that this side asked the other for are its own too.
            retries: id.peer.map_or(7, |peer| peer.retries),
            rnr_retries: reply.rnr_retries,
            mtu: id.mtu(),
            ack_timeout: super::ack_timeout(reply.ack_delay.code(), lifetime),
        });
        let mut parameters = connection_parameters(&reply.private_data);
        parameters.qpn = reply.qpn.as_u32();
        parameters.responder_resources = reply.initiator_depth;
        parameters.initiator_depth = reply.responder_resources;
        parameters.flow_control = u8::from(reply.flow_control);
        parameters.rnr_retries = reply.rnr_retries;
        parameters.srq = u8::from(reply.shared_receive_queue);
        let parameters = Parameters::Connection(Box::new(parameters));
        self.tell_named(name, EventKind::ConnectResponse, 0, &parameters);
    }

    /// The queue pair that serves datagrams, or why there is none.
    fn resolved(&mut self, name: CommunicationId, reply: &ResolutionReply) {
        if reply.status != ResolutionStatus::SUCCESS {
            let status = u32::from(reply.status.0);
            return self.over(name, EventKind::Unreachable, status, &Parameters::None);
        }
        let mut parameters = datagram_parameters(&reply.private_data);
        parameters.qpn = reply.qpn.as_u32();
        parameters.qkey = reply.qkey;
        if let Some(id) = self.named(name) {
            id.link = Link::None;
            parameters.path = id.path_attributes(id.destination_gid().unwrap_or_default());
        }
        let parameters = Parameters::Datagram(Box::new(parameters));
        self.tell_named(name, EventKind::Established, 0, &parameters);
        self.by_name.remove(&name);
    }
}

impl Id {
    /// How a queue pair or an address handle reaches `destination`.
    pub(super) fn path_attributes(&self, destination: Gid) -> ib_uverbs_ah_attr {
        let mut attributes = ib_uverbs_ah_attr {
            is_global: 1,
            port_num: 1,
            ..Default::default()
        };
        attributes.grh.dgid = destination.0;
        attributes.grh.hop_limit = 64;
        attributes.grh.traffic_class = self.traffic_class;
        let gid_index = self.local.as_ref().map_or(0, |local| local.gid_index);
        attributes.grh.sgid_index = u8::try_from(gid_index).unwrap_or(0);
        attributes
    }
}

/// Whether a request names an address that only this host itself may name.
fn names_this_host(header: &IpHeader) -> bool {
    header.source().is_loopback() || header.destination().is_loopback()
}

/// The part of private data that is the program's.
fn own_words<'a>(id: &Id, private_data: &'a [u8]) -> &'a [u8] {
    match id.space {
        super::Space::Infiniband if IpHeader::decode(private_data).is_err() => private_data,
        _ => &private_data[IpHeader::LENGTH..],
    }
}

fn connection_parameters(words: &[u8]) -> abi::Connection {
    let mut parameters: abi::Connection = abi::read(&[]);
    parameters.private_data[..words.len()].copy_from_slice(words);
    parameters.private_data_length = words.len() as u8;
    parameters
}

pub(super) fn datagram_parameters(words: &[u8]) -> abi::Datagram {
    let mut parameters: abi::Datagram = abi::read(&[]);
    parameters.private_data[..words.len()].copy_from_slice(words);
    parameters.private_data_length = words.len() as u8;
    parameters
}

pub(super) fn make(
    user: u64,
    id: u32,
    kind: EventKind,
    status: u32,
    parameters: &Parameters,
) -> Box<abi::Event> {
    let mut event: Box<abi::Event> = Box::new(abi::read(&[]));
    (event.user, event.id) = (user, id);
    (event.event, event.status) = (kind as u32, status);
    let bytes = match parameters {
        Parameters::None => &[],
        Parameters::Connection(connection) => abi::bytes_of(&**connection),
        Parameters::Datagram(datagram) => abi::bytes_of(&**datagram),
    };
    event.parameters[..bytes.len()].copy_from_slice(bytes);
    event
}

/// One more event waits behind a descriptor.
#[allow(unsafe_code, reason = "descriptors are counted by system calls")]
fn count_up(descriptor: RawFd) {
    let one = 1_u64.to_ne_bytes();
    // SAFETY: eight bytes are read from a local array. It fails only when 2⁶⁴ events wait.
    unsafe { libc::write(descriptor, one.as_ptr().cast(), one.len()) };
}

/// One event less waits behind a descriptor. A reader that has counted down already finds nothing and waits on.
#[allow(unsafe_code, reason = "descriptors are counted by system calls")]
pub(super) fn count_down(descriptor: RawFd) {
    let mut count = [0_u8; 8];
    let piece = libc::iovec {
        iov_base: count.as_mut_ptr().cast(),
        iov_len: count.len(),
    };
    // SAFETY: eight bytes are written to a local array. It does not wait.
    unsafe { libc::preadv2(descriptor, &raw const piece, 1, -1, libc::RWF_NOWAIT) };
}

const _: () = assert!(size_of::<abi::Connection>() <= 304 && size_of::<abi::Datagram>() <= 304);

#[cfg(test)]
mod tests {
    use super::*;

    /// Anybody on the network may write these addresses into a request; only this host's own are believed.
    #[test]
    fn a_request_that_names_this_host_is_known() {
        let names = |source: &str, destination: &str| {
            let ip = |text: &str| text.parse::<IpAddr>().unwrap();
            names_this_host(&IpHeader::new(ip(source), 7, ip(destination)).unwrap())
        };
        assert!(names("127.0.0.1", "127.0.0.1"));
        assert!(names("10.0.0.1", "127.0.0.1"));
        assert!(names("127.0.0.2", "10.0.0.1"));
        assert!(names("fd00::1", "::1"));
        assert!(!names("10.0.0.1", "10.0.0.2"));
        assert!(!names("fd00::1", "fd00::2"));
    }
}
