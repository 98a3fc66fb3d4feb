//! The wires: how datagrams come to agents and back, links that come and go, and the traps that tell of it.

use std::collections::VecDeque;

use softfabric_units::Lid;
use softfabric_wire::mad::congestion::CongestionMad;
use softfabric_wire::mad::performance::PerformanceMad;
use softfabric_wire::mad::subnet::{
    CapabilityTrap, NextHop, Notice, SmInfo, Smp, SmpRoute, StateTrap, Trap,
};
use softfabric_wire::mad::{
    Attribute, MAD_LENGTH, MadHeader, ManagementClass, Method, NodeType, PhysicalState,
    PortCapabilities, PortState, status,
};

use super::node::Agent;
use super::performance;
use crate::subnet::{NodeId, PortRef, Subnet};

/// 4-byte words of a datagram's packet as counters see it: everything but its last checksum.
const WORDS: u32 = 72;
/// No path is longer: a packet that has gone so far goes round in circles.
const MOST_HOPS: usize = 64;

/// A datagram with its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Where answers go.
    pub source: Lid,
    /// Where it goes; datagrams by directed route carry their own way.
    pub destination: Lid,
    /// Its bytes.
    pub mad: [u8; MAD_LENGTH],
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// An agent answered, and the answer is back.
    Answered([u8; MAD_LENGTH]),
    /// It is for a program at this port.
    Arrived {
        /// The port; port 0 of a switch.
        at: PortRef,
        /// As it arrived.
        mad: [u8; MAD_LENGTH],
    },
    /// It, or its answer, did not arrive.
    Lost,
}

/// An emulated subnet: its graph, and an agent for each node.
#[derive(Clone, Debug)]
pub struct Fabric {
    subnet: Subnet,
    agents: Vec<Agent>,
    traps: VecDeque<(PortRef, Packet)>,
}

impl Fabric {
    /// The subnet after power-up: links trained, no identifiers, no tables.
    pub fn new(subnet: Subnet) -> Self {
        let agents = subnet
            .nodes()
            .map(|(node, _)| Agent::new(&subnet, node))
            .collect();
        Self {
            subnet,
            agents,
            traps: VecDeque::new(),
        }
    }

    /// The graph. Its identifiers are the file's, not those that a manager gave.
    pub const fn subnet(&self) -> &Subnet {
        &self.subnet
    }

    /// A node's agent.
    ///
    /// # Panics
    /// If the node is of another subnet; so in all that takes nodes and ports.
    pub fn agent(&self, node: NodeId) -> &Agent {
        &self.agents[node.index()]
    }

    /// A node's agent, to change what it holds.
    pub fn agent_mut(&mut self, node: NodeId) -> &mut Agent {
        &mut self.agents[node.index()]
    }

    /// The LID that a manager gave to the end port of `at`; zero before that.
    pub fn lid(&self, at: PortRef) -> Lid {
        let end = self.subnet.end_port(at);
        self.agent(end.node).ports[usize::from(end.port)].lid
    }

    /// Sends a packet from an end port. Requests to agents are answered at once.
    pub fn send(&mut self, from: PortRef, packet: &Packet) -> Delivery {
        let Ok(header) = MadHeader::decode(&packet.mad) else {
            return Delivery::Lost;
        };
        let delivery = match header.class {
            ManagementClass::SUBNET_LID_ROUTED | ManagementClass::SUBNET_DIRECTED => {
                self.send_smp(from, packet)
            }
            _ => self.send_general(from, packet, &header),
        };
        delivery.unwrap_or(Delivery::Lost)
    }

    /// Where a packet would arrive, without counting it.
    pub fn destination(&self, from: PortRef, packet: &Packet) -> Option<PortRef> {
        let mut probe = Walk {
            subnet: &self.subnet,
            agents: &self.agents,
            passed: Vec::new(),
        };
        match Smp::decode(&packet.mad) {
            Ok(mut smp) => probe.smp(from, &mut smp, packet.destination),
            Err(_) => probe.by_lid(from, packet.destination, false),
        }
    }

    fn send_smp(&mut self, from: PortRef, packet: &Packet) -> Option<Delivery> {
        let mut smp = Smp::decode(&packet.mad).ok()?;
        let at = self.walk(|walk| walk.smp(from, &mut smp, packet.destination))?;
        let asks = matches!(smp.method, Method::GET | Method::SET);
        if !asks || smp.attribute == SmInfo::ID {
            return Some(Delivery::Arrived {
                at: self.subnet.end_port(at),
                mad: smp.encode(),
            });
        }
        let (status, data) = self.manage(at, &smp)?;
        let mut answer = smp.response(status, data);
        let back = self.walk(|walk| walk.smp(at, &mut answer, packet.source))?;
        (back.node == from.node).then(|| Delivery::Answered(answer.encode()))
    }

    fn send_general(
        &mut self,
        from: PortRef,
        packet: &Packet,
        header: &MadHeader,
    ) -> Option<Delivery> {
        let at = self.walk(|walk| walk.by_lid(from, packet.destination, false))?;
        let answered = matches!(
            header.class,
            ManagementClass::PERFORMANCE | ManagementClass::CONGESTION_CONTROL
        );
        if !answered || header.method.is_response() {
            return Some(Delivery::Arrived {
                at: self.subnet.end_port(at),
                mad: packet.mad,
            });
        }
        let answer = self.answer_general(at, packet, header)?;
        let back = self.walk(|walk| walk.by_lid(at, packet.source, false))?;
        (back.node == from.node).then_some(Delivery::Answered(answer))
    }

    fn answer_general(
        &mut self,
        at: PortRef,
        packet: &Packet,
        header: &MadHeader,
    ) -> Option<[u8; MAD_LENGTH]> {
        let node = self.subnet.node(at.node);
        let (is_switch, ports) = (node.is_switch(), node.ports);
        if !matches!(header.method, Method::GET | Method::SET) {
            return Some(refuse(packet, header, status::UNSUPPORTED_METHOD));
        }
        let agent = &mut self.agents[at.node.index()];
        if header.class == ManagementClass::PERFORMANCE {
            let Ok(mad) = PerformanceMad::decode(&packet.mad) else {
                return Some(refuse(packet, header, status::UNSUPPORTED_VERSION));
            };
            return Some(performance::answer(agent, &mad, is_switch, at.port).encode());
        }
        let Ok(mad) = CongestionMad::decode(&packet.mad) else {
            return Some(refuse(packet, header, status::UNSUPPORTED_VERSION));
        };
        let answer = agent.congestion.answer(&mad, is_switch, ports)?;
        Some(answer.encode())
    }

    /// Walks, and counts the packet at the ports that it passed.
    fn walk(&mut self, go: impl FnOnce(&mut Walk<'_>) -> Option<PortRef>) -> Option<PortRef> {
        let mut walk = Walk {
            subnet: &self.subnet,
            agents: &self.agents,
            passed: Vec::new(),
        };
        let end = go(&mut walk);
        for (out, into) in walk.passed {
            self.agents[out.node.index()].count_sent(out.port, WORDS);
            self.agents[into.node.index()].count_received(into.port, WORDS);
        }
        end
    }

    /// Takes a port's cable away, and returns the other end; both ends go down, and their switches tell.
    pub fn cut(&mut self, port: PortRef) -> Option<PortRef> {
        let peer = self.subnet.disconnect(port)?;
        self.settle(port);
        self.settle(peer);
        Some(peer)
    }

    /// Cables two ports; the link comes up, and their switches tell.
    ///
    /// # Errors
    /// If a port does not exist or has a cable.
    pub fn mend(&mut self, port: PortRef, peer: PortRef) -> Result<(), crate::BuildError> {
        self.subnet.connect(port, peer)?;
        self.settle(port);
        Ok(())
    }

    /// What a manager asks of a port's physical layer: disabled, asleep, or looking for the other end.
    pub(super) fn enable(&mut self, port: PortRef, physical: PhysicalState) {
        let info = &mut self.agents[port.node.index()].ports[usize::from(port.port)];
        if physical == PhysicalState::POLLING && info.physical_state == PhysicalState::LINK_UP {
            return self.retrain(port);
        }
        info.physical_state = physical;
        self.settle(port);
    }

    /// The link goes down and comes up again.
    pub(super) fn retrain(&mut self, port: PortRef) {
        let ends = [Some(port), self.subnet.port(port).peer()];
        for end in ends.into_iter().flatten() {
            let info = &mut self.agents[end.node.index()].ports[usize::from(end.port)];
            if info.state > PortState::INITIALISE {
                info.state = PortState::INITIALISE;
                self.agents[end.node.index()].count_down(end.port);
                self.tell_change(end);
            }
        }
    }

    /// Brings the states of a link in line with its cable and what its ports are set to.
    fn settle(&mut self, port: PortRef) {
        let peer = self.subnet.port(port).peer();
        let held = |end: PortRef| held_state(&self.agents[end.node.index()], end.port).is_some();
        let up = peer.is_some_and(|peer| !held(port) && !held(peer));
        for end in [Some(port), peer].into_iter().flatten() {
            let keeps = held_state(&self.agents[end.node.index()], end.port);
            let info = &mut self.agents[end.node.index()].ports[usize::from(end.port)];
            let before = info.state;
            if up {
                info.physical_state = PhysicalState::LINK_UP;
                info.state = before.max(PortState::INITIALISE);
            } else {
                info.physical_state = keeps.unwrap_or(PhysicalState::POLLING);
                info.state = PortState::DOWN;
            }
            if info.state != before {
                if !up {
                    self.agents[end.node.index()].count_down(end.port);
                }
                self.tell_change(end);
            }
        }
    }

    /// Trap 128, where it is a switch's port.
    fn tell_change(&mut self, port: PortRef) {
        if !self.subnet.node(port.node).is_switch() {
            return;
        }
        self.agents[port.node.index()].switch.state_change = true;
        let own = self.subnet.end_port(port);
        let lid = self.lid(own);
        let trap = Trap::LinkState(StateTrap { lid });
        self.tell(own, &trap);
    }

    /// Says whether a manager runs at an end port: the manager in charge hears of it by trap 144.
    pub fn set_manager(&mut self, at: PortRef, runs: bool) {
        let end = self.subnet.end_port(at);
        let info = &mut self.agents[end.node.index()].ports[usize::from(end.port)];
        let capabilities = if runs {
            info.capabilities.with(PortCapabilities::IS_SM)
        } else {
            PortCapabilities(info.capabilities.0 & !PortCapabilities::IS_SM.0)
        };
        if capabilities == info.capabilities {
            return;
        }
        info.capabilities = capabilities;
        let trap = Trap::Capability(CapabilityTrap {
            lid: info.lid,
            capabilities,
            ..CapabilityTrap::default()
        });
        self.tell(end, &trap);
    }

    /// Queues a trap to the port's manager, if it has identifiers and knows one.
    fn tell(&mut self, end: PortRef, trap: &Trap) {
        let info = &self.agents[end.node.index()].ports[usize::from(end.port)];
        let kind = if end.port == 0 {
            NodeType::SWITCH
        } else {
            NodeType::CHANNEL_ADAPTER
        };
        if info.lid.0 == 0 || info.manager_lid.0 == 0 {
            return;
        }
        let Some(notice) = Notice::of(trap, kind, info.lid) else {
            return;
        };
        let smp = Smp {
            method: Method::TRAP,
            key: info.key,
            data: notice.to_smp(),
            ..Smp::get::<Notice>(SmpRoute::Lid, 0)
        };
        let packet = Packet {
            source: info.lid,
            destination: info.manager_lid,
            mad: smp.encode(),
        };
        self.traps.push_back((end, packet));
    }

    /// The next trap, with the port that tells: hand it to [`Fabric::send`]. Each is sent once.
    pub fn poll_trap(&mut self) -> Option<(PortRef, Packet)> {
        self.traps.pop_front()
    }
}

/// The state that a port was set to, where that keeps its link down.
fn held_state(agent: &Agent, port: u8) -> Option<PhysicalState> {
    let state = agent.ports[usize::from(port)].physical_state;
    matches!(state, PhysicalState::DISABLED | PhysicalState::SLEEP).then_some(state)
}

/// The datagram sent back with a status.
fn refuse(packet: &Packet, header: &MadHeader, status: u16) -> [u8; MAD_LENGTH] {
    let mut bytes = packet.mad;
    let answer = MadHeader {
        method: Method(header.method.0 | 0x80),
        status,
        ..*header
    };
    answer.encode(&mut bytes);
    bytes
}

/// A packet on its way.
struct Walk<'a> {
    subnet: &'a Subnet,
    agents: &'a [Agent],
    /// The hops so far: the port it left by, and the port it came in by.
    passed: Vec<(PortRef, PortRef)>,
}

impl Walk<'_> {
    /// Moves a subnet management packet along its route; where it ends, and by which port it came in there.
    fn smp(&mut self, from: PortRef, smp: &mut Smp, destination: Lid) -> Option<PortRef> {
        let SmpRoute::Directed(route) = &mut smp.route else {
            return self.by_lid(from, destination, true);
        };
        let (mut here, mut arrived) = (from, None);
        loop {
            let is_switch = self.subnet.node(here.node).is_switch();
            match route.advance(arrived, is_switch) {
                NextHop::Here => return Some(here),
                NextHop::Port(port) => {
                    here = self.cross(PortRef { port, ..here }, true)?;
                    arrived = Some(here.port);
                }
                NextHop::Lid(lid) => {
                    here = self.by_lid(here, lid, true)?;
                    arrived = Some(here.port);
                }
                NextHop::Nowhere => return None,
            }
        }
    }

    /// Moves a packet by LID, through the tables of switches.
    fn by_lid(&mut self, from: PortRef, lid: Lid, management: bool) -> Option<PortRef> {
        let mut here = from;
        for hop in 0..MOST_HOPS {
            let agent = &self.agents[here.node.index()];
            let is_switch = self.subnet.node(here.node).is_switch();
            let own = agent.ports[usize::from(if is_switch { 0 } else { here.port })];
            let is_own = own.lid.0 != 0 && lid.0 >> own.lmc == own.lid.0 >> own.lmc;
            if is_own || (lid == Lid::PERMISSIVE && hop == 0) {
                return Some(here);
            }
            let out = match (is_switch, hop) {
                (true, _) => agent.forward(lid)?,
                (false, 0) => here.port,
                (false, _) => return None,
            };
            here = self.cross(PortRef { port: out, ..here }, management)?;
        }
        None
    }

    /// Over the cable at `out`: management passes as soon as the link is up, all else only where both ends are configured.
    fn cross(&mut self, out: PortRef, management: bool) -> Option<PortRef> {
        if out.port == 0 || out.port > self.subnet.node(out.node).ports {
            return None;
        }
        let into = self.subnet.port(out).peer()?;
        let state = |end: PortRef| self.agents[end.node.index()].ports[usize::from(end.port)].state;
        let (sends, takes) = if management {
            (PortState::INITIALISE, PortState::INITIALISE)
        } else {
            (PortState::ACTIVE, PortState::ARMED)
        };
        if state(out) < sends || state(into) < takes {
            return None;
        }
        self.passed.push((out, into));
        Some(into)
    }
}
