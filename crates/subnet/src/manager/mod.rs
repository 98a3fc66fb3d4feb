//! The subnet manager's core: discovers, gives identifiers, routes, programs, and repairs, without I/O and clock.
//!
//! ```text
//!              start, rescan                         handle_smp, handle_timeout
//!                   │                                        │
//!   ┌───────────────▼──────────┐   graph    ┌──────────┐   tables   ┌─────────────▼────────────────────┐
//!   │ discovery: node by node, │ ─────────► │ identify │ ─────────► │ programming: tables, then ports  │ ──► Event::Up
//!   │ port by port             │            │ route    │            │ armed, then active; only changes │
//!   └───────────────▲──────────┘            └──────────┘            └──────────────────────────────────┘
//!                   └──── a trap: only the switch that it names is read again
//! ```
//!
//! The driver hands it what arrives and the time, drains [`Manager::poll_transmit`] and [`Manager::poll_event`], and comes
//! back at [`Manager::poll_timeout`]. At most [`Settings::window`] requests are on their way; a lost one is sent again. What
//! a node is known to have is not written again, so a repair costs as many requests as there are changes.

mod administration;
mod congestion;
mod discovery;
mod election;
mod failure;
mod groups;
mod options;
mod partitions;
mod paths;
mod program;
mod quality;
mod records;
mod requests;
mod services;
mod state;
mod station;

use std::collections::VecDeque;

use softfabric_units::{Guid, Lid, Span, Time};
use softfabric_wire::mad::subnet::{Notice, SmInfo, Smp, SmpRoute, Trap};
use softfabric_wire::mad::{Attribute, ManagerState, Method};

use crate::routing::{Before, Routes, RoutingEngine, RoutingView};
use crate::subnet::{NodeId, PortRef, Subnet};

pub use administration::Answer;
pub use congestion::{CongestionControl, PortSetting};
use election::Election;
pub use failure::{ManageError, Problem};
use groups::Groups;
pub use options::{Options, OptionsError};
pub use partitions::{Partitions, PartitionsError};
pub use quality::{
    LaneSettings, Level, MOST_LANES, MOST_TURNS, PathRequest, Policy, PolicyError, PortKind,
    QualityError, QualityOfService, Rule,
};
use requests::{Request, Requests};
pub use services::Report;
use services::Services;
use state::Known;
pub use station::{Address, MOST_TRANSFERS, Outgoing, Station};

/// How a manager works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How many requests may be on their way at once.
    pub window: usize,
    /// How long to wait for an answer.
    pub timeout: Span,
    /// How often to send a request again.
    pub retries: u8,
    /// Ports of adapters get 2 to the power of this identifiers.
    pub lmc: u8,
    /// The subnet's part of GIDs.
    pub gid_prefix: u64,
    /// The key that ports hold and requests carry.
    pub key: u64,
    /// The key that it shows to other managers.
    pub manager_key: u64,
    /// Among several managers, the one with the highest priority (0–15) manages.
    pub priority: u8,
    /// How long to wait before all switches are asked whether something has changed, in case a trap was lost; `None`: they
    /// are not asked.
    pub sweep: Option<Span>,
    /// While it stands by: how often it asks whether the other one lives.
    pub standby_poll: Span,
}

impl Default for Settings {
    /// 64 requests at once, 200 ms, 3 retries and the key of managers as OpenSM has, LMC 0, the default subnet.
    fn default() -> Self {
        Self {
            window: 64,
            timeout: Span::millis(200),
            retries: 3,
            lmc: 0,
            gid_prefix: 0xfe80_0000_0000_0000,
            key: 0,
            manager_key: 1,
            priority: 0,
            sweep: None,
            standby_poll: election::STANDBY_POLL,
        }
    }
}

/// What a manager tells its driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Everything is routed and programmed; also after memberships of groups have changed.
    Up(Summary),
    /// Another one manages, and this one stands by.
    Standby {
        /// The node that the other one is on.
        master: String,
    },
    /// The subnet stays as it was before: nothing was programmed.
    Failed(ManageError),
    /// Something is odd, and the manager goes on.
    Problem(Problem),
}

/// Why a manager did something.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Cause {
    /// It was started, or started anew.
    #[default]
    Start,
    /// Something changed in the subnet.
    Change,
    /// Memberships of groups changed.
    Groups,
}

/// What a sweep found and did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// Why.
    pub cause: Cause,
    /// Switches in reach.
    pub switches: usize,
    /// Adapter ports in reach.
    pub adapter_ports: usize,
    /// Identifiers in reach.
    pub lids: usize,
    /// Requests that were sent since the sweep began, repetitions among them.
    pub requests: u64,
    /// How many of them wrote something.
    pub writes: u64,
    /// When it began.
    pub began: Time,
}

/// What it is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    /// Whether something has changed, and whether other managers live.
    Looking,
    HandingOver,
    Discovering,
    /// Other managers are asked for their state.
    Electing,
    /// Tables of switches, identifiers, lanes; then ports are armed; then active.
    Tables,
    Arming,
    Activating,
    /// Ports are up; congestion control is set.
    Congestion,
}

/// The core of a subnet manager.
pub struct Manager {
    settings: Settings,
    engine: Box<dyn RoutingEngine + Send>,
    subnet: Subnet,
    known: Known,
    requests: Requests,
    phase: Phase,
    /// The node that it runs on, and its port, once they have answered.
    own: Option<PortRef>,
    /// By which port each node is reached from which, on the shortest way from the own node.
    tree: Vec<Option<PortRef>>,
    tree_is_old: bool,
    routed: Option<(RoutingView, Routes)>,
    groups: Groups,
    services: Services,
    election: Election,
    /// The latest time that it was told.
    now: Time,
    /// None: tables of partitions stay as they are.
    partitions: Option<Partitions>,
    /// None: lanes are only what the engine needs of them.
    quality: Option<QualityOfService>,
    /// None: congestion control stays as it is.
    congestion: Option<CongestionControl>,
    /// Of congestion control: by identifiers, from queue pair 1.
    general: Requests,
    /// Switches to read again, and when that was wanted.
    rescans: Vec<(Time, NodeId)>,
    /// Switches that were out of reach and have been read since this sweep began.
    returned: Vec<NodeId>,
    /// Counts what arrives, so that others see it alive.
    activity: u32,
    events: VecDeque<Event>,
    replies: VecDeque<Smp>,
    summary: Summary,
}

impl Manager {
    /// A manager that has not begun.
    pub fn new(settings: Settings, engine: Box<dyn RoutingEngine + Send>) -> Self {
        Self {
            requests: Requests::new(&settings),
            general: Requests::new(&settings),
            settings,
            engine,
            subnet: Subnet::new(),
            known: Known::default(),
            phase: Phase::Idle,
            own: None,
            tree: Vec::new(),
            tree_is_old: true,
            routed: None,
            groups: Groups::default(),
            services: Services::default(),
            election: Election::new(),
            now: Time::ZERO,
            partitions: None,
            quality: None,
            congestion: None,
            rescans: Vec::new(),
            returned: Vec::new(),
            activity: 0,
            events: VecDeque::new(),
            replies: VecDeque::new(),
            summary: Summary::default(),
        }
    }

    /// Who is in which partition, from the next sweep on. Without it the manager leaves tables of partitions as they are.
    pub fn set_partitions(&mut self, partitions: Partitions) {
        self.partitions = Some(partitions);
    }

    /// Lanes, their turns and who has which level, from the next sweep on. Without it the manager writes only the lanes that
    /// its routing engine needs.
    ///
    /// # Errors
    /// If the settings contradict each other; they are not taken then.
    pub fn set_quality(&mut self, quality: QualityOfService) -> Result<(), QualityError> {
        quality.check()?;
        self.quality = Some(quality);
        Ok(())
    }

    /// What switches mark and how adapters react, from the next sweep on. Without it the manager leaves that as it is.
    pub fn set_congestion(&mut self, congestion: CongestionControl) {
        self.congestion = Some(congestion);
    }

    /// Begins: reads the whole subnet. What is known of nodes is kept, and so are their identifiers.
    pub fn start(&mut self, now: Time) {
        self.begin(now, Cause::Start);
        self.known.ask_all_for_congestion();
        self.requests.ask(Request::NodeInfo { from: None });
        let switches: Vec<NodeId> = self
            .subnet
            .nodes()
            .filter(|(_, node)| node.is_switch())
            .map(|(id, _)| id)
            .collect();
        for node in switches {
            self.read_switch(node);
        }
    }

    fn begin(&mut self, now: Time, cause: Cause) {
        if matches!(self.phase, Phase::Idle | Phase::Looking) {
            self.summary = Summary {
                cause,
                began: now,
                ..Summary::default()
            };
        }
        if self.phase != Phase::Discovering {
            self.requests.forget();
            self.general.forget();
            self.returned.clear();
        }
        self.phase = Phase::Discovering;
    }

    /// The subnet as it is known.
    pub const fn subnet(&self) -> &Subnet {
        &self.subnet
    }

    /// The routes that are programmed, or about to be, with the view that they are for.
    pub fn routes(&self) -> Option<(&RoutingView, &Routes)> {
        self.routed.as_ref().map(|(view, routes)| (view, routes))
    }

    /// The next answer to whoever sent the packet that was handled last: it goes back to where that came from.
    pub fn poll_reply(&mut self) -> Option<Smp> {
        self.replies.pop_front()
    }

    /// The next packet to send from queue pair 0, until there is none. Answers that were not polled for go first.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Smp> {
        self.now = self.now.max(now);
        if let Some(reply) = self.poll_reply() {
            return Some(reply);
        }
        loop {
            let (transaction, request) = self.requests.next(now)?;
            match self.packet(&request) {
                Some(smp) => {
                    if self.summary.requests == 0 && self.summary.cause == Cause::Groups {
                        self.summary.began = now;
                    }
                    self.summary.requests += 1;
                    self.summary.writes += u64::from(smp.method == Method::SET);
                    return Some(Smp {
                        transaction: u64::from(transaction),
                        key: self.settings.key,
                        ..smp
                    });
                }
                // No way leads there any more.
                None => {
                    self.requests.done(transaction);
                    self.next_phase();
                }
            }
        }
    }

    /// Takes a subnet management packet that arrived: an answer, or a trap.
    pub fn handle_smp(&mut self, now: Time, smp: &Smp) {
        self.now = self.now.max(now);
        self.activity = self.activity.wrapping_add(1);
        match (smp.method, smp.attribute) {
            (Method::TRAP, _) => return self.handle_trap(now, smp),
            (Method::GET | Method::SET, SmInfo::ID) => return self.handle_manager(smp),
            _ => {}
        }
        if smp.method != Method::GET_RESPONSE {
            return;
        }
        let Some((request, repeated)) = self.requests.done(smp.transaction as u32) else {
            return; // an answer to what was asked twice
        };
        let refused = smp.status & 0x1c != 0;
        if let (true, true, Request::SetPort { port } | Request::Activate { port }) =
            (refused, repeated, request)
        {
            // The first of them arrived and its answer did not: the port has the state already, and refuses to take it again.
            self.requests.ask(Request::PortInfo { port });
        } else if refused || smp.attribute != request.attribute() {
            let node = self.describe(&request);
            self.events.push_back(Event::Problem(Problem::Refused {
                node,
                request: request.name(),
                status: smp.status,
            }));
        } else {
            self.take(request, smp);
        }
        self.next_phase();
    }

    /// A request is known not to have arrived, as some links tell. Where other ways are known it takes one of them at once;
    /// otherwise it is sent again when its time is up.
    pub fn handle_lost(&mut self, transaction: u64) {
        self.requests.lost(transaction as u32);
    }

    /// What other managers are told.
    fn manager_info(&self) -> SmInfo {
        SmInfo {
            guid: self.own.map_or(Guid(0), |own| self.subnet.port(own).guid),
            key: self.settings.manager_key,
            activity: self.activity,
            priority: self.settings.priority,
            state: self.election.state,
        }
    }

    /// A notice: the switch that it is about is read again.
    fn handle_trap(&mut self, now: Time, smp: &Smp) {
        let notice = Notice::from_smp(&smp.data);
        self.report(&notice);
        self.replies.push_back(Smp {
            method: Method::TRAP_REPRESS,
            route: SmpRoute::Lid,
            ..*smp
        });
        match notice.trap() {
            Trap::LinkState(trap) => self.rescan(now, trap.lid),
            Trap::Capability(trap) => self.look_at(trap.lid),
            _ => {}
        }
    }

    /// Reads the ports of the switch with this identifier again, and repairs what has changed.
    pub fn rescan(&mut self, now: Time, lid: Lid) {
        let switch = self
            .subnet
            .end_ports()
            .find(|(end, port)| port.lid == lid && end.port == 0)
            .map(|(end, _)| end.node);
        let Some(switch) = switch else { return };
        if matches!(
            self.state(),
            ManagerState::STANDBY | ManagerState::NOT_ACTIVE
        ) {
            return;
        }
        if matches!(
            self.phase,
            Phase::Idle | Phase::Looking | Phase::Discovering
        ) {
            self.begin(now, Cause::Change);
            self.read_switch(switch);
        } else {
            self.rescans.push((now, switch));
        }
    }

    /// When [`Manager::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Time> {
        let idle = self.phase == Phase::Idle;
        let look = self.election.next_look().filter(|_| idle);
        let deadlines = [self.requests.deadline(), self.general.deadline(), look];
        deadlines.into_iter().flatten().min()
    }

    /// Sends again what has not been answered, or gives up on it.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.look();
        while let Some(request) = self.requests.expire(now) {
            if let Request::ManagerInfo { port }
            | Request::HandOver { port }
            | Request::Acknowledge { port } = request
            {
                self.miss(port);
                continue;
            }
            let node = self.describe(&request);
            self.events.push_back(Event::Problem(Problem::Silent {
                node,
                request: request.name(),
            }));
            self.give_up(request);
        }
        self.expire_congestion(now);
        self.next_phase();
    }

    /// What it has to tell, until there is nothing.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Goes on when nothing is on its way any more.
    fn next_phase(&mut self) {
        while self.requests.is_empty() && self.general.is_empty() {
            self.phase = match self.phase {
                Phase::Idle => return,
                Phase::Looking => self.end_look(),
                Phase::HandingOver => Phase::Idle,
                Phase::Discovering => {
                    if self.ask_managers() {
                        Phase::Electing
                    } else {
                        self.end_election()
                    }
                }
                Phase::Electing => self.end_election(),
                Phase::Tables => {
                    self.arm_ports();
                    Phase::Arming
                }
                Phase::Arming => {
                    self.activate_ports();
                    Phase::Activating
                }
                Phase::Activating => {
                    self.write_congestion();
                    Phase::Congestion
                }
                Phase::Congestion => {
                    self.events.push_back(Event::Up(self.summary));
                    self.schedule_look();
                    self.acknowledge();
                    Phase::Idle
                }
            };
            if self.phase == Phase::Idle && self.begin_groups() {
                continue;
            }
            if self.phase == Phase::Idle
                && let Some((wanted, _)) = self.rescans.first()
            {
                self.begin(*wanted, Cause::Change);
                for (_, switch) in std::mem::take(&mut self.rescans) {
                    self.read_switch(switch);
                }
            }
            self.look_at_changed();
        }
    }

    /// Who manages is known: the subnet is planned, or another one's.
    fn end_election(&mut self) -> Phase {
        if !self.elect() {
            return Phase::Idle;
        }
        match self.plan() {
            Ok(()) => {
                self.write_all_tables();
                Phase::Tables
            }
            Err(error) => {
                self.schedule_look();
                self.events.push_back(Event::Failed(error));
                Phase::Idle
            }
        }
    }

    /// Identifiers and routes for what is in reach.
    fn plan(&mut self) -> Result<(), ManageError> {
        let own = self.own.ok_or(ManageError::NoOwnNode)?;
        self.subnet.assign_lids(self.settings.lmc)?;
        let view = RoutingView::reachable(&self.subnet, own.node);
        let routes = match &self.routed {
            Some((old_view, old_routes)) => {
                let before = Before {
                    view: old_view,
                    routes: old_routes,
                };
                if before.covers(&view) {
                    self.engine.repair(&view, before)?
                } else {
                    self.engine.route(&view)?
                }
            }
            None => self.engine.route(&view)?,
        };
        self.check_capacities(&view, &routes)?;
        self.count_reached(&view);
        self.tell_of_ports(&view);
        self.routed = Some((view, routes));
        Ok(())
    }

    fn count_reached(&mut self, view: &RoutingView) {
        let adapters = view.targets().iter().filter(|target| target.is_adapter());
        self.summary.adapter_ports = adapters.filter(|target| target.copy == 0).count();
        self.summary.switches = view.switches();
        self.summary.lids = view.targets().len();
    }

    /// Whether switches have the lanes and entries that the routes need.
    fn check_capacities(&self, view: &RoutingView, routes: &Routes) -> Result<(), ManageError> {
        for link in view.links() {
            let port = PortRef {
                node: view.node(link.from as usize),
                port: link.port,
            };
            let lanes = self
                .known
                .port(port)
                .and_then(|info| info.lane_capability.lanes());
            let available = lanes.unwrap_or(1);
            if available < routes.lanes_used {
                return Err(ManageError::Lanes {
                    engine: routes.engine,
                    needed: routes.lanes_used,
                    node: self.named(port.node),
                    port: port.port,
                    available,
                });
            }
        }
        self.check_quality(view, routes)?;
        let ends: Vec<PortRef> = view.targets().iter().map(|target| target.end).collect();
        if let Some((end, needed, available)) = self.crowded_port(&ends) {
            return Err(ManageError::Partitions {
                node: self.named(end.node),
                port: end.port,
                needed,
                available,
            });
        }
        for switch in 0..view.switches() {
            let node = view.node(switch);
            let capacity = self
                .known
                .switch(node)
                .map_or(0, |info| info.linear_capacity);
            if capacity <= view.top().0 {
                return Err(ManageError::TableTooSmall {
                    node: self.named(node),
                    top: view.top(),
                    capacity,
                });
            }
        }
        Ok(())
    }

    fn named(&self, node: NodeId) -> String {
        let node = self.subnet.node(node);
        format!("{:?} ({})", node.description, node.guid)
    }

    fn describe(&self, request: &Request) -> String {
        let named = |node| self.named(node);
        match request.node() {
            Some(node) => named(node),
            None => match request {
                Request::NodeInfo { from: Some(from) } => {
                    format!(
                        "what is cabled to port {} of {}",
                        from.port,
                        named(from.node)
                    )
                }
                _ => "the manager's own node".to_owned(),
            },
        }
    }
}
