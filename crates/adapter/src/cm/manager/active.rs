//! The active side: asks, and is ready once it is accepted.

use softfabric_units::{Qpn, Time};
use softfabric_wire::mad::cm::{
    CommunicationId, ConnectReply, ConnectRequest, Message, ReadyToUse, ReceiptAcknowledgement,
    Reject, RejectReason, Stage,
};
use softfabric_wire::mad::{PrivateData, TimeoutCode};

use super::super::event::{Event, Way};
use super::connection::{Connection, Patience, Repeat, State};
use super::{CallError, Manager};

/// How long a program may take to answer, as an MRA tells the other side: 69 s, as the kernel does.
pub(super) const PROGRAM_PATIENCE: TimeoutCode = TimeoutCode::from_code(24);

impl Manager {
    /// Asks for a connection over `way`, and returns its name. The name in `request` is overwritten.
    ///
    /// # Errors
    /// If all names are taken.
    pub fn connect(
        &mut self,
        now: Time,
        way: Way,
        mut request: ConnectRequest,
    ) -> Result<CommunicationId, CallError> {
        let name = self.new_name(way.slot)?;
        request.local = name;
        let path = request.primary.ack_timeout.span();
        let patience = Patience {
            response: request.remote_response_timeout.span() + path,
            retries: request.cm_retries,
            time_wait: path,
        };
        let transaction = self.names.transaction();
        let local_qpn = request.qpn;
        let mad = super::connection::encode(transaction, Message::ConnectRequest(request));
        self.send(way, mad.clone());
        let (repeat, due) = Repeat::new(now, mad, patience);
        self.add_connection(Connection {
            way,
            local: name,
            remote: None,
            transaction,
            local_qpn,
            remote_qpn: Qpn::new(0),
            state: State::RequestSent(repeat),
            patience,
            since: now,
            owned: true,
            due: Some(due),
        });
        Ok(name)
    }

    /// The queue pair is ready to send and receive: the accepted connection stands.
    ///
    /// # Errors
    /// If the connection is unknown or was not accepted by the other side just now.
    pub fn ready(
        &mut self,
        connection: CommunicationId,
        private_data: PrivateData<224>,
    ) -> Result<(), CallError> {
        let entry = self.connection(connection)?;
        let (State::ReplyReceived, Some(remote)) = (&entry.state, entry.remote) else {
            return Err(CallError::State {
                call: "being ready",
                found: entry.state.name(),
                needed: "accepted by the other side",
            });
        };
        let mad = entry.encode(Message::ReadyToUse(ReadyToUse {
            local: connection,
            remote,
            private_data,
        }));
        entry.state = State::Established(Some(mad.clone()));
        let way = entry.way;
        self.send(way, mad);
        Ok(())
    }

    /// A REP has come.
    pub(super) fn on_reply(&mut self, now: Time, way: Way, transaction: u64, reply: ConnectReply) {
        let name = reply.remote;
        let Some(entry) = self.connections.get_mut(&name) else {
            return self.refuse_unknown_reply(way, transaction, &reply);
        };
        if !entry.is_peer(&way, reply.local) {
            return;
        }
        match &entry.state {
            State::RequestSent(_) => {
                entry.state = State::ReplyReceived;
                entry.since = now;
                entry.remote = Some(reply.local);
                entry.remote_qpn = reply.qpn;
                Self::arm(&mut self.timers, name, &mut entry.due, None);
                let peer = (entry.way.device, entry.way.remote);
                self.by_name.insert((peer, reply.local), name);
                if reply.qpn.as_u32() > 0 {
                    self.by_qpn.insert((peer, reply.qpn), name);
                }
                let event = Event::ConnectReply {
                    connection: name,
                    reply: Box::new(reply),
                };
                self.tell(name, event);
            }
            State::ReplyReceived if entry.is_slow(now) => {
                let mad = entry.encode(Message::ReceiptAcknowledgement(ReceiptAcknowledgement {
                    local: name,
                    remote: reply.local,
                    stage: Stage::Reply,
                    timeout: PROGRAM_PATIENCE,
                    private_data: PrivateData::default(),
                }));
                self.send(way, mad);
            }
            State::Established(Some(mad)) | State::Refused(mad) => {
                let mad = mad.clone();
                self.send(way, mad);
            }
            _ => {}
        }
    }

    /// Nobody here waits for the reply: the other side should not wait for us.
    fn refuse_unknown_reply(&mut self, way: Way, transaction: u64, reply: &ConnectReply) {
        let reject = Reject {
            local: reply.remote,
            remote: reply.local,
            stage: Stage::Reply,
            reason: RejectReason::INVALID_COMMUNICATION_ID,
            information_length: 0,
            information: PrivateData::default(),
            private_data: PrivateData::default(),
        };
        let mad = super::connection::encode(transaction, Message::Reject(reject));
        self.send(way, mad);
    }
}
