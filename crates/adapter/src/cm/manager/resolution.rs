//! Service resolution: datagrams need no connection, only the queue pair that serves (IBTA vol. 1, 12.11).
//!
//! ```text
//!   asking    resolve ─► SIDR_REQ, repeated ─► SIDR_REP: told, gone
//!   asked     SIDR_REQ: told ─► answer: SIDR_REP, remembered for those who ask again ─► gone
//! ```

use softfabric_units::{Span, Time};
use softfabric_wire::mad::PrivateData;
use softfabric_wire::mad::cm::{
    CommunicationId, Message, ResolutionReply, ResolutionRequest, ResolutionStatus, ServiceId,
};

use super::super::event::{Event, Way};
use super::connection::{MadBytes, Patience, Repeat, encode};
use super::passive::asked_address;
use super::{CallError, Manager};

/// How long to wait for one answer, and how often to ask again: as the kernel does.
const PATIENCE: Patience = Patience {
    response: Span::millis(4_096),
    retries: 15,
    time_wait: Span::ZERO,
};

/// For how long an answer is remembered, for those to whom it did not come.
const MEMORY: Span = Span::seconds(30);

/// A resolution that this side asks for.
#[derive(Debug)]
pub(super) struct Asking {
    way: Way,
    repeat: Repeat,
    pub(super) due: Option<Time>,
}

/// A resolution that another side asks for.
#[derive(Debug)]
pub(super) struct Asked {
    way: Way,
    request: CommunicationId,
    transaction: u64,
    service: ServiceId,
    answer: Option<MadBytes>,
    pub(super) due: Option<Time>,
}

impl Manager {
    /// Asks which queue pair serves, and returns the resolution's name. The name in `request` is overwritten.
    ///
    /// # Errors
    /// If all names are taken.
    pub fn resolve(
        &mut self,
        now: Time,
        way: Way,
        mut request: ResolutionRequest,
    ) -> Result<CommunicationId, CallError> {
        let name = self.new_name(way.slot)?;
        request.request = name;
        let transaction = self.names.transaction();
        let mad = encode(transaction, Message::ResolutionRequest(request));
        self.send(way, mad.clone());
        let (repeat, due) = Repeat::new(now, mad, PATIENCE);
        self.timers.insert((due, name));
        let due = Some(due);
        self.asking.insert(name, Asking { way, repeat, due });
        Ok(name)
    }

    /// Answers a resolution. Request and service in `reply` are overwritten.
    ///
    /// # Errors
    /// If the resolution is unknown, or answered already.
    pub fn answer(
        &mut self,
        now: Time,
        resolution: CommunicationId,
        mut reply: ResolutionReply,
    ) -> Result<(), CallError> {
        let asked = self.asked.get_mut(&resolution);
        let asked = asked.ok_or(CallError::Unknown(resolution))?;
        if asked.answer.is_some() {
            return Err(CallError::State {
                call: "answering",
                found: "answered",
                needed: "asked by the other side",
            });
        }
        reply.request = asked.request;
        reply.service = asked.service;
        let mad = encode(asked.transaction, Message::ResolutionReply(reply));
        asked.answer = Some(mad.clone());
        let (way, due) = (asked.way, now.saturating_add(MEMORY));
        Self::arm(&mut self.timers, resolution, &mut asked.due, Some(due));
        self.send(way, mad);
        Ok(())
    }

    /// The program has no more use for the resolution and hears no more of it. Who waits for an answer is refused.
    pub fn destroy_resolution(&mut self, now: Time, resolution: CommunicationId) {
        if let Some(mut asking) = self.asking.remove(&resolution) {
            Self::arm(&mut self.timers, resolution, &mut asking.due, None);
        } else if let Some(asked) = self.asked.get(&resolution)
            && asked.answer.is_none()
        {
            let refusal = refusal(asked.request, asked.service, ResolutionStatus::REJECTED);
            // It was looked up, and has no answer yet.
            let _ = self.answer(now, resolution, refusal);
        }
    }

    /// Forgets a request for a resolution as if it had not come: the other side will ask again.
    pub fn ignore_resolution(&mut self, resolution: CommunicationId) {
        let asked = self.asked.get(&resolution);
        if asked.is_some_and(|asked| asked.answer.is_none()) {
            self.forget_asked(resolution);
        }
    }

    /// A SIDR_REQ has come.
    pub(super) fn on_resolution(&mut self, way: Way, transaction: u64, request: ResolutionRequest) {
        let key = ((way.device, way.remote), request.request);
        if let Some(name) = self.asked_by_name.get(&key).copied()
            && let Some(asked) = self.asked.get(&name)
        {
            if asked.transaction == transaction && asked.service == request.service {
                if let Some(answer) = asked.answer.clone() {
                    self.send(way, answer);
                }
                return;
            }
            // The other side gives the name to something new.
            self.forget_asked(name);
        }
        let address = asked_address(request.service, &request.private_data, way.local);
        let found = self.listeners.find(request.service, address);
        let named = match found {
            None => Err(ResolutionStatus::UNSUPPORTED),
            Some(listener) => (self.new_name(way.slot))
                .map(|name| (listener, name))
                .map_err(|_| ResolutionStatus::NO_QUEUE_PAIR),
        };
        let (listener, name) = match named {
            Ok(named) => named,
            Err(status) => {
                let reply = refusal(request.request, request.service, status);
                return self.send(way, encode(transaction, Message::ResolutionReply(reply)));
            }
        };
        self.asked_by_name.insert(key, name);
        let asked = Asked {
            way,
            request: request.request,
            transaction,
            service: request.service,
            answer: None,
            due: None,
        };
        self.asked.insert(name, asked);
        self.events.push_back(Event::ResolutionRequest {
            listener,
            resolution: name,
            way,
            request: Box::new(request),
        });
    }

    /// A SIDR_REP has come.
    pub(super) fn on_resolution_reply(&mut self, way: Way, reply: ResolutionReply) {
        let name = reply.request;
        let Some(asking) = self.asking.get_mut(&name) else {
            return;
        };
        if asking.way.device != way.device || asking.way.remote != way.remote {
            return;
        }
        Self::arm(&mut self.timers, name, &mut asking.due, None);
        self.asking.remove(&name);
        self.events.push_back(Event::ResolutionReply {
            resolution: name,
            reply: Box::new(reply),
        });
    }

    /// The timer of a resolution is due.
    pub(super) fn asking_due(&mut self, now: Time, name: CommunicationId) {
        let Some(asking) = self.asking.get_mut(&name) else {
            return;
        };
        if let Some((mad, due)) = asking.repeat.again(now) {
            let way = asking.way;
            Self::arm(&mut self.timers, name, &mut asking.due, Some(due));
            return self.send(way, mad);
        }
        self.asking.remove(&name);
        self.events
            .push_back(Event::ResolutionUnreachable { resolution: name });
    }

    pub(super) fn forget_asked(&mut self, name: CommunicationId) {
        if let Some(mut asked) = self.asked.remove(&name) {
            Self::arm(&mut self.timers, name, &mut asked.due, None);
            let key = ((asked.way.device, asked.way.remote), asked.request);
            if self.asked_by_name.get(&key) == Some(&name) {
                self.asked_by_name.remove(&key);
            }
        }
    }
}

/// An answer without a queue pair.
fn refusal(
    request: CommunicationId,
    service: ServiceId,
    status: ResolutionStatus,
) -> ResolutionReply {
    ResolutionReply {
        request,
        status,
        information_length: 0,
        vendor: 0,
        qpn: softfabric_units::Qpn::new(0),
        service,
        qkey: 0,
        information: PrivateData::default(),
        private_data: PrivateData::default(),
    }
}
