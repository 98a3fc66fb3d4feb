//! Several managers at one subnet: one manages, the others stand by and watch it (IBTA vol. 1, 14.4).
//!
//! ```text
//!                      another manages, or is higher
//!   DISCOVERING ───────────────────────────────────────► STANDBY
//!        │  ▲                                             │  ▲
//!        │  └──── it is silent, or hands over ────────────┘  │
//!        ▼                                                   │
//!     MASTER ──── a higher one stands by: hand over ─────────┘
//! ```
//!
//! The higher one has the higher priority, or with equal ones the lower GUID. Who stands by has nothing to say, and forgets
//! what it knows of the subnet before it takes over: the other one may have changed everything.

use std::cmp::Reverse;

use softfabric_units::{Lid, Span, Time};
use softfabric_wire::mad::subnet::{SmInfo, Smp};
use softfabric_wire::mad::{Attribute, ManagerState, Method, PortCapabilities, status};

use super::requests::Request;
use super::state::Known;
use super::{Cause, Event, Manager, Phase, Summary};
use crate::subnet::{NodeId, PortRef, Subnet};

/// What a Set(SMInfo) wants, by its modifier.
pub(super) const HAND_OVER: u32 = 1;
pub(super) const ACKNOWLEDGE: u32 = 2;
const DISABLE: u32 = 3;
const STAND_BY: u32 = 4;
const DISCOVER: u32 = 5;

/// How often a manager may be silent before the one that stands by takes over.
const PATIENCE: u8 = 3;

/// What is known of managers.
#[derive(Debug)]
pub(super) struct Election {
    pub(super) state: ManagerState,
    /// The others, with what they last said.
    others: Vec<(PortRef, Option<SmInfo>)>,
    /// Who manages, while this one stands by.
    master: Option<PortRef>,
    /// Who has handed over, until that is acknowledged.
    handed_over: Option<Lid>,
    missed: u8,
    /// When to look again.
    next_look: Option<Time>,
    /// Ports whose capabilities have changed, to look at when there is time.
    changed: Vec<PortRef>,
    /// A switch does not answer: everything has to be read again.
    pub(super) is_lost: bool,
    /// Switches where something has changed that no trap told of.
    pub(super) news: Vec<NodeId>,
}

impl Election {
    pub(super) const fn new() -> Self {
        Self {
            state: ManagerState::DISCOVERING,
            others: Vec::new(),
            master: None,
            handed_over: None,
            missed: 0,
            next_look: None,
            changed: Vec::new(),
            is_lost: false,
            news: Vec::new(),
        }
    }

    pub(super) const fn next_look(&self) -> Option<Time> {
        self.next_look
    }

    fn other(&mut self, port: PortRef) -> &mut Option<SmInfo> {
        let known = self.others.iter().position(|(other, _)| *other == port);
        let place = known.unwrap_or_else(|| {
            self.others.push((port, None));
            self.others.len() - 1
        });
        &mut self.others[place].1
    }
}

/// Whether `left` manages rather than `right`.
fn is_higher(left: &SmInfo, right: &SmInfo) -> bool {
    (left.priority, Reverse(left.guid)) > (right.priority, Reverse(right.guid))
}

impl Manager {
    /// Its state among managers.
    pub const fn state(&self) -> ManagerState {
        self.election.state
    }

    /// The port that other managers know this one by.
    fn own_end(&self) -> Option<PortRef> {
        self.own.map(|own| self.subnet.end_port(own))
    }

    fn is_manager_at(&self, end: PortRef) -> bool {
        let info = self.known.port(end);
        self.own_end() != Some(end)
            && info.is_some_and(|info| info.capabilities.contains(PortCapabilities::IS_SM))
    }

    /// After discovery: asks the other managers for their state; false where there is nobody to ask. In repairs, those that
    /// are known already are not asked.
    pub(super) fn ask_managers(&mut self) -> bool {
        let ends = self.subnet.end_ports().map(|(end, _)| end);
        let found: Vec<PortRef> = ends.filter(|end| self.is_manager_at(*end)).collect();
        let again = self.summary.cause == Cause::Start;
        let election = &mut self.election;
        election
            .others
            .retain(|(port, info)| found.contains(port) && info.is_some() && !again);
        let mut asked = false;
        for port in found {
            if election.other(port).is_none() {
                self.requests.ask(Request::ManagerInfo { port });
                asked = true;
            }
        }
        asked
    }

    /// With the answers: whether to manage. If not, it stands by.
    pub(super) fn elect(&mut self) -> bool {
        let own = self.manager_info();
        let is_master = self.election.state == ManagerState::MASTER;
        let claims = self.election.handed_over.is_some();
        let gives_way = |info: &SmInfo| {
            let higher = is_higher(info, &own);
            match info.state {
                ManagerState::MASTER => higher || !(is_master || claims),
                ManagerState::DISCOVERING | ManagerState::STANDBY => {
                    higher && !(is_master || claims)
                }
                _ => false,
            }
        };
        let others = self.election.others.iter();
        let master = others
            .filter_map(|(port, info)| Some((*port, info.as_ref()?)))
            .filter(|(_, info)| gives_way(info))
            .max_by_key(|(_, info)| {
                (
                    info.state == ManagerState::MASTER,
                    info.priority,
                    Reverse(info.guid),
                )
            });
        match master {
            Some((port, _)) => {
                self.stand_by(port);
                false
            }
            None => {
                self.election.state = ManagerState::MASTER;
                true
            }
        }
    }

    /// `master` manages the subnet.
    pub(super) fn stand_by(&mut self, master: PortRef) {
        self.election.state = ManagerState::STANDBY;
        self.election.master = Some(master);
        self.election.missed = 0;
        self.election.handed_over = None;
        self.rescans.clear();
        self.schedule_look();
        let master = self.named(master.node);
        self.events.push_back(Event::Standby { master });
    }

    pub(super) fn schedule_look(&mut self) {
        let pause = match self.election.state {
            ManagerState::STANDBY => Some(self.settings.standby_poll),
            ManagerState::MASTER => self.settings.sweep,
            _ => None,
        };
        self.election.next_look = pause.map(|pause| self.now + pause);
    }

    /// If it is time and nothing else is being done: who manages looks whether switches have something to tell, who stands by
    /// whether the master lives.
    pub(super) fn look(&mut self) {
        let due = self.election.next_look.is_some_and(|due| due <= self.now);
        if !due || self.phase != Phase::Idle {
            return;
        }
        self.election.next_look = None;
        self.phase = Phase::Looking;
        match (self.election.state, self.election.master) {
            (ManagerState::STANDBY, Some(port)) => {
                *self.election.other(port) = None;
                self.requests.ask(Request::ManagerInfo { port });
            }
            _ => {
                let switches: Vec<_> = self
                    .routed
                    .iter()
                    .flat_map(|(view, _)| (0..view.switches()).map(|switch| view.node(switch)))
                    .collect();
                for node in switches {
                    self.requests.ask(Request::SwitchInfo { node });
                }
                for (port, _) in self.election.others.clone() {
                    self.requests.ask(Request::ManagerInfo { port });
                }
            }
        }
    }

    /// A port's capabilities have changed: perhaps a manager is there now.
    pub(super) fn look_at(&mut self, lid: Lid) {
        if self.election.state != ManagerState::MASTER {
            return;
        }
        let found = self.subnet.end_ports().find(|(_, port)| port.lid == lid);
        let Some(end) = found.map(|(end, _)| end) else {
            return;
        };
        if self.own_end() == Some(end) {
            return;
        }
        self.election.changed.push(end);
        self.look_at_changed();
    }

    /// Looks at ports whose capabilities have changed, if nothing else is being done.
    pub(super) fn look_at_changed(&mut self) {
        if self.phase != Phase::Idle || self.election.changed.is_empty() {
            return;
        }
        self.phase = Phase::Looking;
        for port in std::mem::take(&mut self.election.changed) {
            self.requests.ask(Request::PortInfo { port });
        }
    }

    /// While it looks: what a port says of managers.
    pub(super) fn meet(&mut self, port: PortRef) {
        let known = self.election.others.iter().any(|(other, _)| *other == port);
        match (self.is_manager_at(port), known) {
            (true, _) => self.requests.ask(Request::ManagerInfo { port }),
            (false, true) => self.election.others.retain(|(other, _)| *other != port),
            (false, false) => {}
        }
    }

    pub(super) fn take_manager_info(&mut self, port: PortRef, info: SmInfo) {
        *self.election.other(port) = Some(info);
    }

    /// A manager does not answer any more.
    pub(super) fn miss(&mut self, port: PortRef) {
        if self.election.master != Some(port) {
            self.election.others.retain(|(other, _)| *other != port);
        }
    }

    /// All has been looked at. Returns what to do next.
    pub(super) fn end_look(&mut self) -> Phase {
        if self.election.state == ManagerState::STANDBY {
            return self.end_watch();
        }
        if std::mem::take(&mut self.election.is_lost) {
            self.start(self.now);
            return self.phase;
        }
        self.schedule_look();
        let news = std::mem::take(&mut self.election.news);
        if !news.is_empty() {
            self.begin(self.now, Cause::Change);
            for node in news {
                self.read_switch(node);
            }
            return self.phase;
        }
        let own = self.manager_info();
        let others = self.election.others.iter();
        let higher = others
            .filter_map(|(port, info)| Some((*port, info.as_ref()?)))
            .filter(|(_, info)| info.state == ManagerState::STANDBY && is_higher(info, &own))
            .max_by_key(|(_, info)| (info.priority, Reverse(info.guid)));
        match higher {
            Some((port, _)) => {
                self.requests.ask(Request::HandOver { port });
                Phase::HandingOver
            }
            None => Phase::Idle,
        }
    }

    /// The master has answered, or not.
    fn end_watch(&mut self) -> Phase {
        self.schedule_look();
        let Some(master) = self.election.master else {
            return Phase::Idle;
        };
        let info = *self.election.other(master);
        let lives = info.is_some_and(|info| {
            matches!(info.state, ManagerState::MASTER | ManagerState::DISCOVERING)
        });
        self.election.missed = if lives { 0 } else { self.election.missed + 1 };
        if self.election.missed < PATIENCE {
            return Phase::Idle;
        }
        self.take_over();
        self.phase
    }

    /// Discovers anew, as if it had just begun.
    fn take_over(&mut self) {
        self.election = Election {
            handed_over: self.election.handed_over,
            ..Election::new()
        };
        self.requests.forget();
        self.general.forget();
        self.subnet = Subnet::new();
        self.known = Known::default();
        self.own = None;
        self.routed = None;
        self.tree.clear();
        self.tree_is_old = true;
        self.rescans.clear();
        self.summary = Summary::default();
        self.phase = Phase::Idle;
        self.start(self.now);
    }

    /// Whether it may say something: not while it stands by, or is switched off.
    pub(super) fn manages(&self) -> bool {
        let silent = [ManagerState::STANDBY, ManagerState::NOT_ACTIVE];
        !silent.contains(&self.election.state)
    }

    /// The subnet is up: who has handed it over hears that it has it no more.
    pub(super) fn acknowledge(&mut self) {
        let Some(lid) = self.election.handed_over.take() else {
            return;
        };
        let found = self.subnet.end_ports().find(|(_, port)| port.lid == lid);
        if let Some(port) = found.map(|(port, _)| port) {
            self.requests.ask(Request::Acknowledge { port });
        }
    }

    /// The packet of a request to another manager.
    pub(super) fn manager_order(&mut self, port: PortRef, modifier: Option<u32>) -> Option<Smp> {
        let route = self.route_to(port.node)?;
        Some(match modifier {
            None => Smp::get::<SmInfo>(route, 0),
            Some(modifier) => Smp::set(route, modifier, &self.manager_info()),
        })
    }

    /// Answers what another manager asks or wants of this one.
    pub(super) fn handle_manager(&mut self, smp: &Smp) {
        let mut refused = 0;
        let mut then: Option<fn(&mut Self)> = None;
        if smp.method == Method::SET {
            let state = self.election.state;
            match smp.modifier {
                HAND_OVER if state == ManagerState::STANDBY => {
                    let other = smp.data_as::<SmInfo>();
                    let lid = other.and_then(|info| self.lid_of_guid(info.guid));
                    self.election.handed_over = Some(lid.unwrap_or(Lid(0)));
                    then = Some(Self::take_over);
                }
                // Two at once, or it has been told already.
                HAND_OVER if state != ManagerState::NOT_ACTIVE => {}
                ACKNOWLEDGE => {}
                DISABLE if state == ManagerState::STANDBY => {
                    self.election.state = ManagerState::NOT_ACTIVE;
                    self.election.next_look = None;
                }
                STAND_BY if state == ManagerState::NOT_ACTIVE => {
                    self.election.state = ManagerState::STANDBY;
                    self.schedule_look();
                }
                DISCOVER if state == ManagerState::STANDBY => then = Some(Self::take_over),
                _ => refused = status::INVALID_FIELD,
            }
        }
        let answer = smp.response(refused, self.manager_info().to_bytes());
        self.replies.push_back(answer);
        if let Some(then) = then {
            then(self);
        }
    }
}

/// The default of [`super::Settings::standby_poll`].
pub(super) const STANDBY_POLL: Span = Span::seconds(1);
