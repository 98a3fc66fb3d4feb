//! Programs on streams: their ports, their agents, and the answers that they wait for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use softfabric_units::{Span, Time};
use softfabric_wire::mad::administration::ADMINISTRATION_DATA;
use softfabric_wire::mad::administration::rmpp::{RmppHeader, RmppKind, RmppReceiver};
use softfabric_wire::mad::{MAD_LENGTH, ManagementClass};

use super::message::{AgentId, Envelope, FromServer, LONGEST_FRAME, Registration};
use crate::ibsim::{CLASS, METHOD, TIMED_OUT, TRANSACTION};
use crate::subnet::PortRef;

/// A stream, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UserId(pub u16);

/// The upper 16 bits of transaction numbers are clients' slots; those of users begin here.
const FIRST: u16 = 0x100;

impl UserId {
    /// What the upper 16 bits of its requests' transaction numbers become.
    pub(super) const fn mark(self) -> u16 {
        FIRST + self.0
    }

    /// Whose number it is.
    pub(super) const fn of_mark(mark: u16) -> Option<Self> {
        match mark.checked_sub(FIRST) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }
}

/// A program at a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// Its process.
    pub process: u32,
    /// Where it is.
    pub port: PortRef,
    pub(crate) manager: bool,
    agents: BTreeMap<AgentId, Registration>,
}

/// A request that an answer is to come for.
#[derive(Clone, Debug)]
struct Pending {
    user: UserId,
    agent: AgentId,
    transaction: [u8; 8],
    deadline: Time,
    timeout: Span,
    retries: u32,
    to: Envelope,
    mad: Vec<u8>,
    /// The answer, while it comes in segments.
    answer: Option<RmppReceiver>,
}

/// What a datagram is to a program.
#[derive(Debug)]
pub(super) enum Assembly {
    /// All of its message.
    Whole,
    /// A segment.
    Partial {
        /// What its sender is to hear.
        reply: Option<Box<[u8; MAD_LENGTH]>>,
        /// The message, if this was its last segment.
        message: Option<Vec<u8>>,
    },
}

/// What a request's time has come for.
#[derive(Debug)]
pub(super) enum Overdue {
    /// Send it again.
    Again {
        user: UserId,
        agent: AgentId,
        to: Envelope,
        mad: Vec<u8>,
    },
    /// It came back to its sender.
    GivenUp,
}

/// All programs on streams.
#[derive(Clone, Default, Debug)]
pub(crate) struct Users {
    streams: BTreeSet<UserId>,
    users: BTreeMap<UserId, User>,
    pending: Vec<Pending>,
    outgoing: VecDeque<(UserId, FromServer)>,
}

/// The bit of a method that makes it an answer's.
const RESPONSE: u8 = 0x80;
/// Agents of one stream at most, as in the kernel.
const MOST_AGENTS: AgentId = 32;

impl Users {
    /// A number for a stream that begins, unless there are as many as can be told apart.
    pub(super) fn begin(&mut self) -> Option<UserId> {
        let free = (0..=u16::MAX - FIRST)
            .map(UserId)
            .find(|id| !self.streams.contains(id))?;
        self.streams.insert(free);
        Some(free)
    }

    pub(super) fn add(&mut self, id: UserId, process: u32, port: PortRef) {
        let user = User {
            process,
            port,
            manager: false,
            agents: BTreeMap::new(),
        };
        self.users.insert(id, user);
    }

    pub(super) fn remove(&mut self, id: UserId) -> Option<User> {
        self.pending.retain(|pending| pending.user != id);
        self.outgoing.retain(|(user, _)| *user != id);
        self.streams.remove(&id);
        self.users.remove(&id)
    }

    pub(crate) fn get(&self, id: UserId) -> Option<&User> {
        self.users.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (UserId, &User)> {
        self.users.iter().map(|(id, user)| (*id, user))
    }

    pub(super) fn set_manager(&mut self, id: UserId, runs: bool) -> Option<PortRef> {
        let user = self.users.get_mut(&id)?;
        user.manager = runs;
        Some(user.port)
    }

    pub(super) fn register(&mut self, id: UserId, registration: Registration) {
        if let Some(user) = self.users.get_mut(&id)
            && registration.agent < MOST_AGENTS
        {
            user.agents.insert(registration.agent, registration);
        }
    }

    pub(super) fn unregister(&mut self, id: UserId, agent: AgentId) {
        if let Some(user) = self.users.get_mut(&id) {
            user.agents.remove(&agent);
        }
        let theirs = |pending: &Pending| (pending.user, pending.agent) == (id, agent);
        self.pending.retain(|pending| !theirs(pending));
    }

    /// Whether a stream has an agent.
    pub(super) fn has_agent(&self, id: UserId, agent: AgentId) -> bool {
        self.get(id)
            .is_some_and(|user| user.agents.contains_key(&agent))
    }

    /// The agent at a port that registered for a class and method.
    pub(crate) fn listener(
        &self,
        at: PortRef,
        class: ManagementClass,
        method: u8,
    ) -> Option<(UserId, AgentId)> {
        let hears = |registration: &&Registration| {
            registration.class == class.0 && registration.methods >> (method & 0x7f) & 1 != 0
        };
        let here = self.iter().filter(|(_, user)| user.port == at);
        let mut found = here.filter_map(|(id, user)| {
            let agent = user.agents.values().find(hears)?;
            Some((id, agent.agent))
        });
        found.next()
    }

    /// A request waits for its answer from now on.
    pub(super) fn expect(
        &mut self,
        now: Time,
        (user, agent): (UserId, AgentId),
        (timeout, retries): (u32, u32),
        to: Envelope,
        mad: &[u8],
    ) {
        let timeout = Span::millis(u64::from(timeout));
        self.pending.push(Pending {
            user,
            agent,
            transaction: transaction(mad),
            deadline: now + timeout,
            timeout,
            retries,
            to,
            mad: mad.to_vec(),
            answer: None,
        });
    }

    /// Puts segments of an answer together, as the kernel does for its users.
    pub(super) fn assemble(&mut self, user: UserId, agent: AgentId, mad: &[u8]) -> Assembly {
        let (Ok(datagram), ManagementClass::SUBNET_ADMINISTRATION) = (
            <&[u8; MAD_LENGTH]>::try_from(mad),
            ManagementClass(mad[CLASS]),
        ) else {
            return Assembly::Whole;
        };
        let is_segment = RmppHeader::decode(mad).is_ok_and(|header| {
            header.active && header.kind == RmppKind::DATA && !(header.first && header.last)
        });
        if !is_segment {
            return Assembly::Whole;
        }
        // Segments that nobody waits for are dropped.
        let Some(place) = self.waiting(user, agent, mad) else {
            return Assembly::Partial {
                reply: None,
                message: None,
            };
        };
        let answer = &mut self.pending[place].answer;
        let receiver =
            answer.get_or_insert_with(|| RmppReceiver::new(ADMINISTRATION_DATA, LONGEST_FRAME));
        // The other direction of the same transaction.
        let received = receiver.handle(datagram, |answer| answer[METHOD] ^= RESPONSE);
        if received.failure.is_some() {
            *answer = None;
        }
        Assembly::Partial {
            reply: received.reply,
            message: received.message.map(|message| {
                let mut whole = message.first[..ADMINISTRATION_DATA].to_vec();
                whole.extend(message.data);
                whole
            }),
        }
    }

    /// Takes note of an answer: true if its agent waits for it.
    pub(super) fn answered(&mut self, user: UserId, agent: AgentId, mad: &[u8]) -> bool {
        let found = self.waiting(user, agent, mad);
        found.map(|place| self.pending.swap_remove(place)).is_some()
    }

    /// The request that an answer, or the request itself, belongs to.
    fn waiting(&self, user: UserId, agent: AgentId, mad: &[u8]) -> Option<usize> {
        let key = (user, agent, transaction(mad));
        let mut pending = self.pending.iter();
        pending.position(|pending| (pending.user, pending.agent, pending.transaction) == key)
    }

    /// Nobody will answer: the request goes back to who sent it.
    pub(super) fn give_up(&mut self, user: UserId, agent: AgentId, mad: &[u8]) {
        if let Some(place) = self.waiting(user, agent, mad) {
            let pending = self.pending.swap_remove(place);
            self.return_to_sender(pending);
        }
    }

    fn return_to_sender(&mut self, pending: Pending) {
        let message = FromServer::Received {
            agent: pending.agent,
            status: TIMED_OUT,
            from: pending.to,
            mad: pending.mad,
        };
        self.outgoing.push_back((pending.user, message));
    }

    /// When the next request's time is over.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.pending.iter().map(|pending| pending.deadline).min()
    }

    /// A request whose time is over.
    pub(super) fn overdue(&mut self, now: Time) -> Option<Overdue> {
        let place = (self.pending.iter()).position(|pending| pending.deadline <= now)?;
        let pending = &mut self.pending[place];
        if pending.retries == 0 {
            let pending = self.pending.swap_remove(place);
            self.return_to_sender(pending);
            return Some(Overdue::GivenUp);
        }
        pending.retries -= 1;
        pending.answer = None;
        pending.deadline = now + pending.timeout;
        Some(Overdue::Again {
            user: pending.user,
            agent: pending.agent,
            to: pending.to,
            mad: pending.mad.clone(),
        })
    }

    pub(super) fn send(&mut self, user: UserId, message: FromServer) {
        self.outgoing.push_back((user, message));
    }

    pub(super) fn poll(&mut self) -> Option<(UserId, FromServer)> {
        self.outgoing.pop_front()
    }
}

/// The transaction number of a datagram: bytes 8 to 15.
fn transaction(mad: &[u8]) -> [u8; 8] {
    let bytes = mad
        .get(TRANSACTION..TRANSACTION + 8)
        .and_then(|bytes| bytes.try_into().ok());
    bytes.unwrap_or_default()
}
