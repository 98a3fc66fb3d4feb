//! The passive side: is asked, and accepts.

use softfabric_units::{Gid, Time};
use softfabric_wire::mad::PrivateData;
use softfabric_wire::mad::cm::{
    CmMad, CommunicationId, ConnectReply, ConnectRequest, IpHeader, IpService, Message, ReadyToUse,
    ReceiptAcknowledgement, Reject, RejectReason, ServiceId, Stage,
};

use super::super::event::{Event, Way};
use super::active::PROGRAM_PATIENCE;
use super::connection::{Connection, Patience, Repeat, State};
use super::{CallError, Manager};

impl Manager {
    /// Accepts a request. The names in `reply` are overwritten.
    ///
    /// # Errors
    /// If the connection is unknown, or not one that the other side asks for.
    pub fn accept(
        &mut self,
        now: Time,
        connection: CommunicationId,
        mut reply: ConnectReply,
    ) -> Result<(), CallError> {
        let entry = self.connection(connection)?;
        let (State::RequestReceived, Some(remote)) = (&entry.state, entry.remote) else {
            return Err(CallError::State {
                call: "accepting",
                found: entry.state.name(),
                needed: "requested by the other side",
            });
        };
        reply.local = connection;
        reply.remote = remote;
        entry.local_qpn = reply.qpn;
        let mad = entry.encode(Message::ConnectReply(reply));
        let (repeat, due) = Repeat::new(now, mad.clone(), entry.patience);
        entry.state = State::ReplySent(repeat);
        let way = entry.way;
        self.set_due(connection, Some(due));
        self.send(way, mad);
        Ok(())
    }

    /// The queue pair has received something: the other side is ready, whether or not its RTU comes.
    ///
    /// # Errors
    /// If the connection is unknown. Where it does not wait for the other side, nothing happens.
    pub fn established(&mut self, connection: CommunicationId) -> Result<(), CallError> {
        let entry = self.connection(connection)?;
        if matches!(entry.state, State::ReplySent(_)) {
            self.stands(connection);
        }
        Ok(())
    }

    /// Whether a datagram is a new request for which nobody listens.
    pub fn is_early(&self, way: Way, bytes: &[u8]) -> bool {
        let Ok(mad) = CmMad::decode(bytes) else {
            return false;
        };
        let peer = (way.device, way.remote);
        let (known, service, private_data): (_, _, &[u8]) = match &mad.message {
            Message::ConnectRequest(request) => (
                self.by_name.contains_key(&(peer, request.local))
                    || self.by_qpn.contains_key(&(peer, request.qpn)),
                request.service,
                &request.private_data,
            ),
            Message::ResolutionRequest(request) => (
                self.asked_by_name.contains_key(&(peer, request.request)),
                request.service,
                &request.private_data,
            ),
            _ => return false,
        };
        let address = asked_address(service, private_data, way.local);
        !known && self.listeners.find(service, address).is_none()
    }

    /// A REQ has come.
    pub(super) fn on_request(
        &mut self,
        now: Time,
        way: Way,
        transaction: u64,
        request: ConnectRequest,
    ) {
        let peer = (way.device, way.remote);
        if let Some(name) = self.by_name.get(&(peer, request.local)).copied() {
            let known = &self.connections[&name];
            if known.transaction == transaction && known.remote_qpn == request.qpn {
                return self.repeat_answer(now, name, way);
            }
        }
        // A queue pair can be in one connection only: what we know of it is stale (IBTA vol. 1, 12.9.8.3.1).
        let stale = self.by_qpn.get(&(peer, request.qpn));
        let stale = stale.or_else(|| self.by_name.get(&(peer, request.local)));
        if let Some(stale) = stale.copied() {
            self.refuse_request(way, transaction, &request, RejectReason::STALE_CONNECTION);
            self.end_stale(stale);
            return;
        }
        let address = asked_address(request.service, &request.private_data, way.local);
        let Some(listener) = self.listeners.find(request.service, address) else {
            let reason = RejectReason::INVALID_SERVICE_ID;
            return self.refuse_request(way, transaction, &request, reason);
        };
        let Ok(name) = self.new_name(way.slot) else {
            let reason = RejectReason::NO_RESOURCES;
            return self.refuse_request(way, transaction, &request, reason);
        };
        let path = request.primary.ack_timeout.span();
        self.add_connection(Connection {
            way,
            local: name,
            remote: Some(request.local),
            transaction,
            local_qpn: softfabric_units::Qpn::new(0),
            remote_qpn: request.qpn,
            state: State::RequestReceived,
            patience: Patience {
                response: request.local_response_timeout.span() + path,
                retries: request.cm_retries,
                time_wait: path,
            },
            since: now,
            owned: true,
            due: None,
        });
        self.events.push_back(Event::ConnectRequest {
            listener,
            connection: name,
            way,
            request: Box::new(request),
        });
    }

    /// An RTU has come.
    pub(super) fn on_ready(&mut self, way: Way, ready: &ReadyToUse) {
        let name = ready.remote;
        let Some(entry) = self.connections.get(&name) else {
            return;
        };
        if !entry.is_peer(&way, ready.local) {
            return;
        }
        match &entry.state {
            State::ReplySent(_) => self.stands(name),
            State::Refused(mad) => {
                let mad = mad.clone();
                self.send(way, mad);
            }
            _ => {}
        }
    }

    /// The other side is ready.
    pub(super) fn stands(&mut self, name: CommunicationId) {
        if let Some(entry) = self.connections.get_mut(&name) {
            entry.state = State::Established(None);
            Self::arm(&mut self.timers, name, &mut entry.due, None);
            self.tell(name, Event::Established { connection: name });
        }
    }

    /// A request that came before comes again.
    fn repeat_answer(&mut self, now: Time, name: CommunicationId, way: Way) {
        let entry = &self.connections[&name];
        let mad = match (&entry.state, entry.remote) {
            (State::RequestReceived, Some(remote)) if entry.is_slow(now) => {
                entry.encode(Message::ReceiptAcknowledgement(ReceiptAcknowledgement {
                    local: name,
                    remote,
                    stage: Stage::Request,
                    timeout: PROGRAM_PATIENCE,
                    private_data: PrivateData::default(),
                }))
            }
            (State::ReplySent(repeat), _) => repeat.mad(),
            (State::Refused(mad), _) => mad.clone(),
            _ => return,
        };
        self.send(way, mad);
    }

    fn refuse_request(
        &mut self,
        way: Way,
        transaction: u64,
        request: &ConnectRequest,
        reason: RejectReason,
    ) {
        let reject = Reject {
            local: CommunicationId::default(),
            remote: request.local,
            stage: Stage::Request,
            reason,
            information_length: 0,
            information: PrivateData::default(),
            private_data: PrivateData::default(),
        };
        let mad = super::connection::encode(transaction, Message::Reject(reject));
        self.send(way, mad);
    }

    pub(super) fn set_due(&mut self, name: CommunicationId, due: Option<Time>) {
        if let Some(entry) = self.connections.get_mut(&name) {
            Self::arm(&mut self.timers, name, &mut entry.due, due);
        }
    }
}

/// The address that a request is for: the one in its private data, or the one that it came to.
pub(in crate::cm) fn asked_address(
    service: ServiceId,
    private_data: &[u8],
    arrived_at: Gid,
) -> Gid {
    if IpService::from_id(service).is_none() {
        return arrived_at;
    }
    match IpHeader::decode(private_data) {
        Ok(header) => Gid::from_ip(header.destination()),
        Err(_) => arrived_at,
    }
}
