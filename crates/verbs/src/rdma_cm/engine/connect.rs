//! Connections are asked for, awaited, accepted, refused and ended.

use std::net::{Ipv4Addr, SocketAddr};

use softfabric_adapter::cm::{CallError, Manager, PortError, Way};
use softfabric_units::Lid;
use softfabric_units::{PartitionKey, Qpn, Time};
use softfabric_wire::infiniband::ServiceLevel;
use softfabric_wire::ip::FlowLabel;
use softfabric_wire::mad::cm::{
    CommunicationId, ConnectReply, ConnectRequest, IpHeader, Path, RejectReason, ResolutionReply,
    ResolutionRequest, ResolutionStatus, ServiceId, TransportService,
};
use softfabric_wire::mad::{PrivateData, TimeoutCode};

use super::super::abi;
use super::super::descriptors::ChannelId;
use super::{ACK_DELAY, Cm, DATAGRAM_QKEY, Id, Link, Peer, State, ack_timeout};
use crate::abi::{IBV_EVENT_COMM_EST, IBV_QPT_UC, IBV_QPT_XRC_SEND};
use crate::errno::Errno;

/// How soon both sides want an answer: 4.3 s, and how often they ask again. As Linux does.
const RESPONSE_TIMEOUT: TimeoutCode = TimeoutCode::from_code(20);
const RETRIES: u8 = 15;

/// The backlog of who does not choose one, and the longest.
const LONGEST_BACKLOG: u32 = 1024;

fn errno(error: CallError) -> Errno {
    match error {
        CallError::Unknown(_) | CallError::State { .. } => Errno::EINVAL,
        CallError::NoNames => Errno::ENOMEM,
        CallError::ServiceTaken(_) => Errno::EADDRINUSE,
    }
}

impl Cm {
    /// The address that an identifier listens at; any, if it has none.
    pub(crate) fn listen_address(
        &mut self,
        channel: ChannelId,
        number: u32,
    ) -> Result<SocketAddr, Errno> {
        let id = self.id(channel, number)?;
        match id.state {
            State::Idle => {
                let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
                self.bind(channel, number, any, None)?;
                Ok(self.id(channel, number)?.source.unwrap_or(any))
            }
            State::Bound => id.source.ok_or(Errno::EINVAL),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Waits for requests.
    pub(crate) fn listen(
        &mut self,
        manager: &mut Manager,
        channel: ChannelId,
        command: &abi::Listen,
    ) -> Result<(), Errno> {
        let id = self.id(channel, command.id)?;
        let (State::Bound, Some((service, address))) = (id.state, id.claim) else {
            return Err(Errno::EINVAL);
        };
        let service_id = id.service(service.port);
        self.registry
            .listen(service, address)
            .map_err(|error| match error {
                PortError::File(_) => Errno::EIO,
                _ => Errno::EADDRINUSE,
            })?;
        let listener = manager.listen(service_id, address).map_err(errno)?;
        self.by_listener.insert(listener, command.id);
        let id = self.id(channel, command.id)?;
        id.link = Link::Listener(listener);
        id.state = State::Listening;
        id.backlog = match command.backlog {
            1..=LONGEST_BACKLOG => command.backlog,
            _ => LONGEST_BACKLOG,
        };
        Ok(())
    }

    /// Asks for a connection, or for the queue pair that serves datagrams.
    pub(crate) fn connect(
        &mut self,
        manager: &mut Manager,
        now: Time,
        channel: ChannelId,
        command: &abi::Connect,
    ) -> Result<(), Errno> {
        let slot = self.slot;
        let id = self.id(channel, command.id)?;
        let (State::RouteResolved, Link::None) = (id.state, id.link) else {
            return Err(Errno::EINVAL);
        };
        let destination = id.destination.ok_or(Errno::EINVAL)?;
        let way = Way {
            device: id.local.as_ref().ok_or(Errno::EINVAL)?.device,
            slot,
            local: id.source_gid().ok_or(Errno::EINVAL)?,
            remote: id.destination_gid().ok_or(Errno::EINVAL)?,
        };
        let service = id.service(destination.port());
        let name = if id.is_datagram() {
            let words = words(&command.connection)?;
            let private_data = id.addressed(words)?;
            let request = ResolutionRequest {
                request: CommunicationId::default(),
                partition: PartitionKey::DEFAULT,
                service,
                private_data,
            };
            let name = manager.resolve(now, way, request).map_err(errno)?;
            id.link = Link::Resolution(name);
            name
        } else {
            let request = id.request(service, &command.connection)?;
            id.peer = Some(Peer {
                qpn: Qpn::new(0),
                psn: id.psn,
                responder_resources: request.responder_resources,
                initiator_depth: request.initiator_depth,
                retries: request.retries,
                rnr_retries: request.rnr_retries,
                mtu: request.mtu,
                ack_timeout: request.primary.ack_timeout,
            });
            let name = manager.connect(now, way, request).map_err(errno)?;
            id.link = Link::Connection(name);
            name
        };
        id.state = State::Connected;
        self.by_name.insert(name, command.id);
        Ok(())
    }

    /// Accepts a request; or, where the parameters are not valid, the other side's reply.
    pub(crate) fn accept(
        &mut self,
        manager: &mut Manager,
        now: Time,
        channel: ChannelId,
        command: &abi::Accept,
    ) -> Result<(), Errno> {
        let id = self.id(channel, command.id)?;
        let connection = &command.connection;
        if connection.valid == 0 {
            let Link::Connection(name) = id.link else {
                return Err(Errno::EINVAL);
            };
            return manager.ready(name, PrivateData::default()).map_err(errno);
        }
        let words = words(connection)?;
        match id.link {
            Link::Connection(name) => {
                let reply = id.reply(connection, words)?;
                if let Some(peer) = &mut id.peer {
                    peer.responder_resources = connection.responder_resources;
                    peer.initiator_depth = connection.initiator_depth;
                }
                id.user = command.user;
                manager.accept(now, name, reply).map_err(errno)
            }
            Link::Resolution(name) => {
                let qkey = match (connection.qkey, id.qkey) {
                    (0, own) => own.unwrap_or(DATAGRAM_QKEY),
                    (qkey, _) => qkey,
                };
                let status = ResolutionStatus::SUCCESS;
                let reply = resolution_reply(status, connection.qpn, qkey, words)?;
                id.user = command.user;
                id.link = Link::None;
                self.by_name.remove(&name);
                manager.answer(now, name, reply).map_err(errno)
            }
            Link::None | Link::Listener(_) => Err(Errno::EINVAL),
        }
    }

    /// Refuses a request, or a reply.
    pub(crate) fn reject(
        &mut self,
        manager: &mut Manager,
        now: Time,
        channel: ChannelId,
        command: &abi::Reject,
    ) -> Result<(), Errno> {
        let id = self.id(channel, command.id)?;
        let length = usize::from(command.private_data_length);
        let words = command.private_data.get(..length).ok_or(Errno::EINVAL)?;
        match id.link {
            Link::Connection(name) => {
                let reason = match command.reason {
                    0 => RejectReason::CONSUMER,
                    reason => RejectReason(u16::from(reason)),
                };
                let words = PrivateData::padded(words).ok_or(Errno::EINVAL)?;
                manager.reject(now, name, reason, words).map_err(errno)
            }
            Link::Resolution(name) => {
                let status = ResolutionStatus::REJECTED;
                let reply = resolution_reply(status, 0, 0, words)?;
                manager.answer(now, name, reply).map_err(errno)
            }
            Link::None | Link::Listener(_) => Err(Errno::EINVAL),
        }
    }

    /// Ends a connection. One that has ended stays so.
    pub(crate) fn disconnect(
        &mut self,
        manager: &mut Manager,
        now: Time,
        channel: ChannelId,
        command: abi::Disconnect,
    ) -> Result<(), Errno> {
        let id = self.id(channel, command.id)?;
        match (id.link, id.state) {
            (Link::Connection(name), _) => {
                let ended = manager.disconnect(now, name, PrivateData::default());
                ended.map_err(errno)
            }
            (Link::Resolution(_), _) | (Link::None, State::Connected | State::Disconnected) => {
                Ok(())
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// The queue pair has told its program something.
    pub(crate) fn notify(
        &mut self,
        manager: &mut Manager,
        channel: ChannelId,
        command: &abi::Notify,
    ) -> Result<(), Errno> {
        let Link::Connection(name) = self.id(channel, command.id)?.link else {
            return Err(Errno::EINVAL);
        };
        if command.event != IBV_EVENT_COMM_EST as u32 {
            return Err(Errno::EINVAL);
        }
        manager.established(name).map_err(errno)
    }
}

impl Id {
    /// Private data that begin with the addresses of both sides.
    fn addressed<const N: usize>(&self, words: &[u8]) -> Result<PrivateData<N>, Errno> {
        let source = self.source.ok_or(Errno::EINVAL)?;
        let destination = self.destination.ok_or(Errno::EINVAL)?;
        let header = IpHeader::new(source.ip(), source.port(), destination.ip());
        let mut bytes = vec![0; IpHeader::LENGTH];
        header.ok_or(Errno::EINVAL)?.encode(&mut bytes);
        bytes.extend(words);
        PrivateData::padded(&bytes).ok_or(Errno::EINVAL)
    }

    fn request(
        &self,
        service: ServiceId,
        connection: &abi::Connection,
    ) -> Result<ConnectRequest, Errno> {
        let local = self.local.as_ref().ok_or(Errno::EINVAL)?;
        let path = Path {
            // Ethernet has no local identifiers.
            local_lid: Lid(0xffff),
            remote_lid: Lid(0xffff),
            local_gid: self.source_gid().ok_or(Errno::EINVAL)?,
            remote_gid: self.destination_gid().ok_or(Errno::EINVAL)?,
            flow_label: FlowLabel::NONE,
            rate: 0,
            traffic_class: self.traffic_class,
            hop_limit: 64,
            service_level: ServiceLevel::default(),
            subnet_local: false,
            ack_timeout: ack_timeout(ACK_DELAY, self.packet_lifetime()),
        };
        Ok(ConnectRequest {
            local: CommunicationId::default(),
            vendor: 0,
            service,
            guid: u64::from_be_bytes(local.info.guid),
            qkey: 0,
            qpn: Qpn::new(connection.qpn),
            responder_resources: connection.responder_resources,
            initiator_depth: connection.initiator_depth,
            local_context: Qpn::new(0),
            remote_context: Qpn::new(0),
            remote_response_timeout: RESPONSE_TIMEOUT,
            transport: match i32::from(self.qp_type) {
                IBV_QPT_UC => TransportService::Unreliable,
                IBV_QPT_XRC_SEND => TransportService::ExtendedReliable,
                _ => TransportService::Reliable,
            },
            flow_control: connection.flow_control != 0,
            starting_psn: self.psn,
            local_response_timeout: RESPONSE_TIMEOUT,
            retries: connection.retries.min(7),
            partition: PartitionKey::DEFAULT,
            mtu: self.mtu(),
            channel_exists: false,
            rnr_retries: connection.rnr_retries.min(7),
            cm_retries: RETRIES,
            shared_receive_queue: connection.srq != 0,
            primary: path,
            alternate: Path::default(),
            private_data: self.addressed(words(connection)?)?,
        })
    }

    fn reply(&self, connection: &abi::Connection, words: &[u8]) -> Result<ConnectReply, Errno> {
        let local = self.local.as_ref().ok_or(Errno::EINVAL)?;
        Ok(ConnectReply {
            local: CommunicationId::default(),
            remote: CommunicationId::default(),
            qkey: 0,
            qpn: Qpn::new(connection.qpn),
            local_context: Qpn::new(0),
            vendor: 0,
            starting_psn: self.psn,
            responder_resources: connection.responder_resources,
            initiator_depth: connection.initiator_depth,
            ack_delay: TimeoutCode::from_code(ACK_DELAY),
            failover: 0,
            flow_control: connection.flow_control != 0,
            rnr_retries: connection.rnr_retries.min(7),
            shared_receive_queue: connection.srq != 0,
            guid: u64::from_be_bytes(local.info.guid),
            private_data: PrivateData::padded(words).ok_or(Errno::EINVAL)?,
        })
    }
}

fn resolution_reply(
    status: ResolutionStatus,
    qpn: u32,
    qkey: u32,
    words: &[u8],
) -> Result<ResolutionReply, Errno> {
    Ok(ResolutionReply {
        request: CommunicationId::default(),
        status,
        information_length: 0,
        vendor: 0,
        qpn: Qpn::new(qpn),
        service: ServiceId::default(),
        qkey,
        information: PrivateData::default(),
        private_data: PrivateData::padded(words).ok_or(Errno::EINVAL)?,
    })
}

/// The program's own words in a command.
fn words(connection: &abi::Connection) -> Result<&[u8], Errno> {
    let length = usize::from(connection.private_data_length);
    connection.private_data.get(..length).ok_or(Errno::EINVAL)
}
