//! The protocol of connection management, without clock and sockets.
//!
//! ```text
//!   active   connect ─► RequestSent ─► ReplyReceived ─► Established ─► DisconnectSent ─► TimeWait ─► gone
//!                          REQ ▼   REP ▲       ready: RTU ▼          DREQ ▼ DREP ▲
//!   passive  listen ──► RequestReceived ─► ReplySent ─► Established ───────────────────► TimeWait ─► gone
//!                                accept: REP ▼   RTU ▲                DREQ ▲ DREP ▼
//! ```
//!
//! Whatever the network loses, repeats or reorders, a program hears of each connection's beginning and end once, and
//! every entry goes away in the end: [`Manager::is_idle`].

mod active;
mod arrive;
mod connection;
mod ending;
mod passive;
mod resolution;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;
use softfabric_units::{Gid, Qpn, Time};
use softfabric_wire::mad::cm::{CommunicationId, ServiceId};

use super::event::{Event, Transmit, Way};
use super::listener::{ListenAddress, ListenerId, Listeners};
use super::names::Names;
use connection::{Connection, MadBytes};
pub(super) use passive::asked_address;
use resolution::{Asked, Asking};

/// Why a call was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// There is no connection, or no resolution, of that name (any longer).
    #[error("{0:?} is not the name of a connection: it has ended, or never was")]
    Unknown(CommunicationId),
    /// The connection's state does not allow it.
    #[error("the connection is {found}; {call} needs one that is {needed}")]
    State {
        /// What was called.
        call: &'static str,
        /// What the connection is.
        found: &'static str,
        /// What it would have to be.
        needed: &'static str,
    },
    /// All names are taken.
    #[error("this process has 16 million connections already: end some")]
    NoNames,
    /// Somebody in this process listens there.
    #[error("service {0} has a listener at these addresses already")]
    ServiceTaken(ServiceId),
}

/// The other side's address: one device's peers do not mix with another's.
type Peer = (usize, Gid);

/// Makes, answers and ends connections.
///
/// Its driver calls it, then sends what [`Manager::poll_transmit`] gives until there is nothing, hands on what
/// [`Manager::poll_event`] gives, and comes back with [`Manager::handle_timeout`] at [`Manager::poll_timeout`].
#[derive(Debug)]
pub struct Manager {
    names: Names,
    listeners: Listeners,
    connections: BTreeMap<CommunicationId, Connection>,
    /// Connections by what the other side calls them.
    by_name: FxHashMap<(Peer, CommunicationId), CommunicationId>,
    /// Connections by the other side's queue pair, which can be in one only.
    by_qpn: FxHashMap<(Peer, Qpn), CommunicationId>,
    /// Resolutions that this side asks for.
    asking: BTreeMap<CommunicationId, Asking>,
    /// Resolutions that others ask for.
    asked: BTreeMap<CommunicationId, Asked>,
    asked_by_name: FxHashMap<(Peer, CommunicationId), CommunicationId>,
    timers: BTreeSet<(Time, CommunicationId)>,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
}

impl Manager {
    /// A manager without connections. Its names start at a point that `seed` chooses.
    pub fn new(seed: u64) -> Self {
        Self {
            names: Names::new(seed),
            listeners: Listeners::default(),
            connections: BTreeMap::new(),
            by_name: FxHashMap::default(),
            by_qpn: FxHashMap::default(),
            asking: BTreeMap::new(),
            asked: BTreeMap::new(),
            asked_by_name: FxHashMap::default(),
            timers: BTreeSet::new(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Takes requests for `service` at `address` from now on.
    ///
    /// # Errors
    /// If the same addresses have a listener for it.
    pub fn listen(
        &mut self,
        service: ServiceId,
        address: ListenAddress,
    ) -> Result<ListenerId, CallError> {
        let listener = self.listeners.add(service, address);
        listener.ok_or(CallError::ServiceTaken(service))
    }

    /// Takes no more requests. Those that it told of stay.
    pub fn stop_listening(&mut self, listener: ListenerId) {
        self.listeners.remove(listener);
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// The next thing to tell.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`Manager::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Repeats what was not answered, and gives up what has been repeated enough.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some((due, name)) = self.timers.first().copied()
            && due <= now
        {
            self.timers.pop_first();
            if let Some(connection) = self.connections.get_mut(&name) {
                connection.due = None;
                self.connection_due(now, name);
            } else if let Some(asking) = self.asking.get_mut(&name) {
                asking.due = None;
                self.asking_due(now, name);
            } else if let Some(asked) = self.asked.get_mut(&name) {
                asked.due = None;
                self.forget_asked(name);
            }
        }
    }

    /// Whether nothing is left to wait for: no connection, no resolution, no timer.
    pub fn is_idle(&self) -> bool {
        self.connections.is_empty()
            && self.asking.is_empty()
            && self.asked.is_empty()
            && self.timers.is_empty()
            && self.by_name.is_empty()
            && self.by_qpn.is_empty()
            && self.asked_by_name.is_empty()
    }

    /// Ends everything at once, as well as one datagram each can: for a process that is about to exit.
    pub fn shut_down(&mut self, now: Time) {
        self.listeners = Listeners::default();
        let names: Vec<_> = self.connections.keys().copied().collect();
        for name in names {
            self.destroy(now, name);
        }
        let names: Vec<_> = self
            .asking
            .keys()
            .chain(self.asked.keys())
            .copied()
            .collect();
        for name in names {
            self.destroy_resolution(now, name);
        }
    }

    /// A name that nothing has.
    fn new_name(&mut self, slot: u8) -> Result<CommunicationId, CallError> {
        let taken = |name: CommunicationId| {
            self.connections.contains_key(&name)
                || self.asking.contains_key(&name)
                || self.asked.contains_key(&name)
        };
        self.names.name(slot, taken).ok_or(CallError::NoNames)
    }

    fn send(&mut self, way: Way, mad: MadBytes) {
        self.transmits.push_back(Transmit { way, mad });
    }

    /// Sets the only timer of `name`.
    fn arm(
        timers: &mut BTreeSet<(Time, CommunicationId)>,
        name: CommunicationId,
        slot: &mut Option<Time>,
        due: Option<Time>,
    ) {
        if let Some(old) = slot.take() {
            timers.remove(&(old, name));
        }
        if let Some(due) = due {
            timers.insert((due, name));
            *slot = Some(due);
        }
    }

    /// Tells of a connection that a program knows.
    fn tell(&mut self, name: CommunicationId, event: Event) {
        if self
            .connections
            .get(&name)
            .is_some_and(|connection| connection.owned)
        {
            self.events.push_back(event);
        }
    }

    fn connection(&mut self, name: CommunicationId) -> Result<&mut Connection, CallError> {
        let connection = self.connections.get_mut(&name);
        connection
            .filter(|connection| connection.owned)
            .ok_or(CallError::Unknown(name))
    }

    fn add_connection(&mut self, connection: Connection) {
        let name = connection.local;
        let peer = (connection.way.device, connection.way.remote);
        if let Some(remote) = connection.remote {
            self.by_name.insert((peer, remote), name);
        }
        if connection.remote_qpn.as_u32() > 0 {
            self.by_qpn.insert((peer, connection.remote_qpn), name);
        }
        if let Some(due) = connection.due {
            self.timers.insert((due, name));
        }
        self.connections.insert(name, connection);
    }

    /// Takes the connection out of every table.
    fn remove_connection(&mut self, name: CommunicationId) -> Option<Connection> {
        let mut connection = self.connections.remove(&name)?;
        Self::arm(&mut self.timers, name, &mut connection.due, None);
        let peer = (connection.way.device, connection.way.remote);
        if let Some(remote) = connection.remote
            && self.by_name.get(&(peer, remote)) == Some(&name)
        {
            self.by_name.remove(&(peer, remote));
        }
        let key = (peer, connection.remote_qpn);
        if self.by_qpn.get(&key) == Some(&name) {
            self.by_qpn.remove(&key);
        }
        Some(connection)
    }
}
