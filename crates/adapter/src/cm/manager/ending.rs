//! How connections end: refused, disconnected, forgotten by the program, given up.

use softfabric_units::Time;
use softfabric_wire::mad::PrivateData;
use softfabric_wire::mad::cm::{
    CommunicationId, DisconnectReply, DisconnectRequest, Message, ReceiptAcknowledgement, Reject,
    RejectReason, Stage,
};

use super::super::event::{Event, Way};
use super::connection::{Connection, Repeat, State, encode};
use super::{CallError, Manager};

impl Manager {
    /// Refuses a request, or a reply.
    ///
    /// # Errors
    /// If the connection is unknown, or the other side does not wait for an answer.
    pub fn reject(
        &mut self,
        now: Time,
        connection: CommunicationId,
        reason: RejectReason,
        private_data: PrivateData<148>,
    ) -> Result<(), CallError> {
        let entry = self.connection(connection)?;
        if !matches!(entry.state, State::RequestReceived | State::ReplyReceived) {
            return Err(CallError::State {
                call: "rejecting",
                found: entry.state.name(),
                needed: "requested or accepted by the other side",
            });
        }
        self.refuse(now, connection, reason, private_data);
        Ok(())
    }

    /// Forgets a request as if it had not come: the other side will ask again.
    pub fn ignore(&mut self, connection: CommunicationId) {
        if let Some(entry) = self.connections.get(&connection)
            && matches!(entry.state, State::RequestReceived)
        {
            self.remove_connection(connection);
        }
    }

    /// Ends a connection that stands. One that has ended, or does not stand yet, stays as it is.
    ///
    /// # Errors
    /// If the connection is unknown.
    pub fn disconnect(
        &mut self,
        now: Time,
        connection: CommunicationId,
        private_data: PrivateData<220>,
    ) -> Result<(), CallError> {
        let entry = self.connection(connection)?;
        if matches!(entry.state, State::Established(_) | State::ReplySent(_)) {
            self.end(now, connection, private_data);
        }
        Ok(())
    }

    /// The program has no more use for the connection and hears no more of it. The other side is told.
    pub fn destroy(&mut self, now: Time, connection: CommunicationId) {
        let Some(entry) = self.connections.get_mut(&connection) else {
            return;
        };
        entry.owned = false;
        match entry.state {
            State::RequestSent(_) => {
                self.give_up(connection, Stage::Request);
                self.remove_connection(connection);
            }
            State::ReplyReceived | State::RequestReceived | State::ReplySent(_) => {
                let reason = RejectReason::CONSUMER;
                self.refuse(now, connection, reason, PrivateData::default());
            }
            State::Established(_) => self.end(now, connection, PrivateData::default()),
            State::DisconnectSent(_) | State::TimeWait | State::Refused(_) => {}
        }
    }

    /// A DREQ has come.
    pub(super) fn on_disconnect(
        &mut self,
        now: Time,
        way: Way,
        transaction: u64,
        request: &DisconnectRequest,
    ) {
        let name = request.remote;
        let reply = Message::DisconnectReply(DisconnectReply {
            local: name,
            remote: request.local,
            private_data: PrivateData::default(),
        });
        let mad = encode(transaction, reply);
        let Some(entry) = self.connections.get_mut(&name) else {
            // It has ended so long ago that we do not know it: the other side need not wait.
            return self.send(way, mad);
        };
        if !entry.is_peer(&way, request.local) || entry.remote.is_none() {
            return;
        }
        match entry.state {
            // Who ends a connection must know its queue pair.
            _ if request.remote_qpn != entry.local_qpn => {}
            State::RequestSent(_) | State::ReplyReceived | State::RequestReceived => {}
            State::ReplySent(_) => {
                // The other side was ready, only its RTU was lost.
                self.stands(name);
                self.send(way, mad);
                self.over(now, name, true);
            }
            State::Established(_) | State::DisconnectSent(_) => {
                self.send(way, mad);
                self.over(now, name, true);
            }
            State::TimeWait | State::Refused(_) => self.send(way, mad),
        }
    }

    /// A DREP has come.
    pub(super) fn on_disconnect_reply(&mut self, now: Time, way: Way, reply: &DisconnectReply) {
        let name = reply.remote;
        if let Some(entry) = self.connections.get(&name)
            && entry.is_peer(&way, reply.local)
            && matches!(entry.state, State::DisconnectSent(_))
        {
            self.over(now, name, true);
        }
    }

    /// A REJ has come.
    pub(super) fn on_reject(&mut self, now: Time, way: Way, reject: Reject) {
        // Who gives up before there is an answer does not know our name, but we know his.
        let peer = (way.device, way.remote);
        let name = match self.connections.contains_key(&reject.remote) {
            true => reject.remote,
            false => match self.by_name.get(&(peer, reject.local)) {
                Some(name) if reject.remote.0 == 0 => *name,
                _ => return,
            },
        };
        let entry = &self.connections[&name];
        let anonymous = reject.local.0 == 0 && matches!(entry.state, State::RequestSent(_));
        if !anonymous && !entry.is_peer(&way, reject.local) || entry.way.remote != way.remote {
            return;
        }
        match entry.state {
            State::RequestSent(_)
            | State::ReplyReceived
            | State::RequestReceived
            | State::ReplySent(_) => {
                let event = Event::Rejected {
                    connection: name,
                    reject: Box::new(reject),
                };
                self.tell(name, event);
                self.remove_connection(name);
            }
            State::Established(_) | State::DisconnectSent(_) => self.over(now, name, true),
            State::TimeWait => {}
            State::Refused(_) => {
                self.remove_connection(name);
            }
        }
    }

    /// An MRA has come.
    pub(super) fn on_receipt(&mut self, now: Time, way: Way, receipt: &ReceiptAcknowledgement) {
        let name = receipt.remote;
        let Some(entry) = self.connections.get_mut(&name) else {
            return;
        };
        if !entry.is_peer(&way, receipt.local) {
            return;
        }
        let repeat = match (&mut entry.state, receipt.stage) {
            (State::RequestSent(repeat), Stage::Request)
            | (State::ReplySent(repeat), Stage::Reply) => repeat,
            _ => return,
        };
        let longer = receipt.timeout.span() + entry.patience.time_wait;
        let due = repeat.wait(now, longer);
        Self::arm(&mut self.timers, name, &mut entry.due, Some(due));
    }

    /// The timer of a connection is due.
    pub(super) fn connection_due(&mut self, now: Time, name: CommunicationId) {
        let Some(entry) = self.connections.get_mut(&name) else {
            return;
        };
        if let State::RequestSent(repeat) | State::ReplySent(repeat) | State::DisconnectSent(repeat) =
            &mut entry.state
            && let Some((mad, due)) = repeat.again(now)
        {
            let way = entry.way;
            Self::arm(&mut self.timers, name, &mut entry.due, Some(due));
            return self.send(way, mad);
        }
        match entry.state {
            State::RequestSent(_) | State::ReplySent(_) => {
                let active = matches!(entry.state, State::RequestSent(_));
                let stage = if active { Stage::Request } else { Stage::Reply };
                self.give_up(name, stage);
                self.tell(name, Event::Unreachable { connection: name });
                self.remove_connection(name);
            }
            State::DisconnectSent(_) => self.over(now, name, false),
            State::TimeWait => {
                self.tell(name, Event::TimeWaitOver { connection: name });
                self.remove_connection(name);
            }
            State::Refused(_) => {
                self.remove_connection(name);
            }
            State::ReplyReceived | State::RequestReceived | State::Established(_) => {}
        }
    }

    /// The other side's queue pair is in another connection now: this one cannot stand.
    pub(super) fn end_stale(&mut self, name: CommunicationId) {
        let Some(entry) = self.connections.get(&name) else {
            return;
        };
        match entry.state {
            State::TimeWait | State::Refused(_) => {}
            State::Established(_) | State::DisconnectSent(_) | State::ReplySent(_) => {
                let standing = !matches!(entry.state, State::ReplySent(_));
                let event = if standing {
                    Event::Disconnected {
                        connection: name,
                        answered: false,
                    }
                } else {
                    Event::Unreachable { connection: name }
                };
                self.tell(name, event);
                self.remove_connection(name);
            }
            State::RequestSent(_) | State::ReplyReceived | State::RequestReceived => {
                self.tell(name, Event::Unreachable { connection: name });
                self.remove_connection(name);
            }
        }
    }

    /// Sends a REJ and remembers it for as long as the other side may ask again.
    fn refuse(
        &mut self,
        now: Time,
        name: CommunicationId,
        reason: RejectReason,
        private_data: PrivateData<148>,
    ) {
        let Some(entry) = self.connections.get_mut(&name) else {
            return;
        };
        let mad = reject(entry, entry.stage(), reason, private_data);
        entry.state = State::Refused(mad.clone());
        let due = now.saturating_add(entry.patience.response + entry.patience.response);
        let way = entry.way;
        Self::arm(&mut self.timers, name, &mut entry.due, Some(due));
        self.send(way, mad);
    }

    /// Tells the other side, once, that nobody waits for it any longer.
    fn give_up(&mut self, name: CommunicationId, stage: Stage) {
        if let Some(entry) = self.connections.get(&name) {
            let reason = RejectReason::TIMEOUT;
            let mad = reject(entry, stage, reason, PrivateData::default());
            let way = entry.way;
            self.send(way, mad);
        }
    }

    /// Sends a DREQ and repeats it.
    fn end(&mut self, now: Time, name: CommunicationId, private_data: PrivateData<220>) {
        let Some(entry) = self.connections.get_mut(&name) else {
            return;
        };
        let Some(remote) = entry.remote else {
            return;
        };
        let mad = entry.encode(Message::DisconnectRequest(DisconnectRequest {
            local: name,
            remote,
            remote_qpn: entry.remote_qpn,
            private_data,
        }));
        let patience = entry.patience.to_end();
        let (repeat, due) = Repeat::new(now, mad.clone(), patience);
        entry.state = State::DisconnectSent(repeat);
        let way = entry.way;
        Self::arm(&mut self.timers, name, &mut entry.due, Some(due));
        self.send(way, mad);
    }

    /// The connection has ended: time wait begins.
    fn over(&mut self, now: Time, name: CommunicationId, answered: bool) {
        let Some(entry) = self.connections.get_mut(&name) else {
            return;
        };
        entry.state = State::TimeWait;
        let due = now.saturating_add(entry.patience.time_wait);
        Self::arm(&mut self.timers, name, &mut entry.due, Some(due));
        let event = Event::Disconnected {
            connection: name,
            answered,
        };
        self.tell(name, event);
    }
}

fn reject(
    entry: &Connection,
    stage: Stage,
    reason: RejectReason,
    private_data: PrivateData<148>,
) -> super::MadBytes {
    entry.encode(Message::Reject(Reject {
        local: entry.local,
        remote: entry.remote.unwrap_or_default(),
        stage,
        reason,
        information_length: 0,
        information: PrivateData::default(),
        private_data,
    }))
}
