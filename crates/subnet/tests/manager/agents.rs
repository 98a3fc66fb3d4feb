//! Nodes with their agents, cabled together: what answers a manager in these tests.

use std::collections::{BTreeMap, BTreeSet};

use softfabric_subnet::{NodeId, PortRef, Subnet};
use softfabric_units::Random;
use softfabric_wire::mad::subnet::{
    ForwardingBlock, MulticastBlock, NextHop, NodeDescription, NodeInfo, Notice, PortInfo,
    ServiceLevelMap, Smp, SmpRoute, StateTrap, SwitchInfo, Trap, VlArbitration,
};
use softfabric_wire::mad::{
    Attribute, ExtendedSpeeds, LaneCount, LinkSpeeds, LinkWidths, Method, MtuCode, NodeType,
    PortState, status,
};

/// What one node has.
pub(crate) struct Agent {
    pub(crate) switch: SwitchInfo,
    pub(crate) ports: Vec<PortInfo>,
    pub(crate) blocks: BTreeMap<u32, ForwardingBlock>,
    pub(crate) levels: BTreeMap<u32, ServiceLevelMap>,
    pub(crate) multicast: BTreeMap<u32, MulticastBlock>,
    pub(crate) turns: BTreeMap<u32, VlArbitration>,
}

/// Nodes with their agents, and the cables between them. The manager is at the first adapter.
pub(crate) struct Fabric {
    pub(crate) subnet: Subnet,
    pub(crate) agents: Vec<Agent>,
    pub(crate) own: NodeId,
    pub(crate) random: Random,
    pub(crate) loss: f64,
    pub(crate) silent: BTreeSet<NodeId>,
    pub(crate) sent: usize,
}

impl Fabric {
    pub(crate) fn new(subnet: Subnet) -> Self {
        let agents = subnet
            .nodes()
            .map(|(node, description)| Agent {
                switch: SwitchInfo {
                    linear_capacity: 0xc000,
                    multicast_capacity: 1024,
                    optimized_levels: (node.0 % 2) as u8,
                    ..SwitchInfo::default()
                },
                ports: (0..=description.ports)
                    .map(|port| {
                        let cabled =
                            port > 0 && subnet.port(PortRef { node, port }).peer().is_some();
                        PortInfo {
                            state: match (port, cabled) {
                                (0, _) => PortState::ACTIVE,
                                (_, true) => PortState::INITIALISE,
                                _ => PortState::DOWN,
                            },
                            local_port: port,
                            width_active: LinkWidths::X4,
                            speed_active: LinkSpeeds::QDR,
                            extended_speed_active: ExtendedSpeeds::HDR,
                            mtu_capability: MtuCode::B4096,
                            lane_capability: LaneCount::EIGHT,
                            arbitration_low_capacity: 8,
                            ..PortInfo::default()
                        }
                    })
                    .collect(),
                blocks: BTreeMap::new(),
                levels: BTreeMap::new(),
                multicast: BTreeMap::new(),
                turns: BTreeMap::new(),
            })
            .collect();
        let own = subnet
            .nodes()
            .find(|(_, node)| !node.is_switch())
            .unwrap()
            .0;
        Self {
            subnet,
            agents,
            own,
            random: Random::from_seed(7),
            loss: 0.0,
            silent: BTreeSet::new(),
            sent: 0,
        }
    }

    /// Moves a packet along its directed route; where it ends, and by which port it came in.
    fn travel(&self, start: NodeId, smp: &mut Smp) -> Option<(NodeId, Option<u8>)> {
        let SmpRoute::Directed(route) = &mut smp.route else {
            return None;
        };
        let (mut here, mut arrived) = (start, None);
        loop {
            match route.advance(arrived, self.subnet.node(here).is_switch()) {
                NextHop::Here => return Some((here, arrived)),
                NextHop::Port(port) => {
                    let end = PortRef { node: here, port };
                    if port == 0 || port > self.subnet.node(here).ports {
                        return None;
                    }
                    let peer = self.subnet.port(end).peer()?;
                    (here, arrived) = (peer.node, Some(peer.port));
                }
                NextHop::Lid(_) | NextHop::Nowhere => return None,
            }
        }
    }

    /// Takes a request of the manager; the answer comes back, unless something is lost.
    pub(crate) fn serve(&mut self, mut smp: Smp) -> Option<Smp> {
        self.sent += 1;
        let (node, arrived) = self.travel(self.own, &mut smp)?;
        if self.random.chance(self.loss) || self.silent.contains(&node) {
            return None;
        }
        let (status, data) = self.answer(node, arrived, &smp);
        let mut answer = smp.response(status, data);
        let (back, _) = self.travel(node, &mut answer)?;
        assert_eq!(back, self.own, "answers come back the way they went");
        (!self.random.chance(self.loss)).then_some(answer)
    }

    fn answer(&mut self, node: NodeId, arrived: Option<u8>, smp: &Smp) -> (u16, [u8; 64]) {
        let description = self.subnet.node(node);
        let is_switch = description.is_switch();
        let local = arrived.unwrap_or(u8::from(!is_switch));
        let set = smp.method == Method::SET;
        let refused = (status::INVALID_FIELD, smp.data);
        match smp.attribute {
            NodeInfo::ID => {
                let port = PortRef {
                    node,
                    port: if is_switch { 0 } else { local },
                };
                let info = NodeInfo {
                    node_type: if is_switch {
                        NodeType::SWITCH
                    } else {
                        NodeType::CHANNEL_ADAPTER
                    },
                    ports: description.ports,
                    system: description.system,
                    node: description.guid,
                    port: self.subnet.port(port).guid,
                    local_port: local,
                    ..NodeInfo::default()
                };
                (0, info.to_bytes())
            }
            NodeDescription::ID => (0, NodeDescription::new(&description.description).to_bytes()),
            SwitchInfo::ID if is_switch => {
                let agent = &mut self.agents[node.0 as usize];
                if set {
                    let new = SwitchInfo::decode(&smp.data).unwrap();
                    agent.switch = SwitchInfo {
                        linear_top: new.linear_top,
                        packet_life: new.packet_life,
                        state_change: agent.switch.state_change && !new.state_change,
                        ..agent.switch
                    };
                }
                (0, agent.switch.to_bytes())
            }
            PortInfo::ID => {
                let port = PortRef {
                    node,
                    port: smp.modifier as u8,
                };
                let first = u8::from(!is_switch);
                if smp.modifier > u32::from(description.ports) || port.port < first {
                    return refused;
                }
                if set && !self.set_port(port, &PortInfo::decode(&smp.data).unwrap()) {
                    return refused;
                }
                (
                    0,
                    self.agents[node.0 as usize].ports[usize::from(port.port)].to_bytes(),
                )
            }
            ForwardingBlock::ID if set && is_switch => {
                let block = ForwardingBlock::decode(&smp.data).unwrap();
                self.agents[node.0 as usize]
                    .blocks
                    .insert(smp.modifier, block);
                (0, smp.data)
            }
            ServiceLevelMap::ID if set && is_switch => {
                let map = ServiceLevelMap::decode(&smp.data).unwrap();
                let ports = u32::from(description.ports);
                let agent = &mut self.agents[node.0 as usize];
                if smp.modifier >> 16 == 2 && agent.switch.optimized_levels & 1 != 0 {
                    for input in 0..=ports {
                        agent.levels.insert(input << 8 | smp.modifier & 0xff, map);
                    }
                } else if smp.modifier >> 16 == 0 {
                    agent.levels.insert(smp.modifier, map);
                } else {
                    return refused;
                }
                (0, smp.data)
            }
            MulticastBlock::ID if set && is_switch => {
                let block = MulticastBlock::decode(&smp.data).unwrap();
                self.agents[node.0 as usize]
                    .multicast
                    .insert(smp.modifier, block);
                (0, smp.data)
            }
            VlArbitration::ID if set => {
                let table = VlArbitration::decode(&smp.data).unwrap();
                self.agents[node.0 as usize]
                    .turns
                    .insert(smp.modifier, table);
                (0, smp.data)
            }
            _ => (status::UNSUPPORTED_ATTRIBUTE, smp.data),
        }
    }

    /// Only the steps that the standard allows: armed from initialise, active from armed when the other end is armed, too.
    fn set_port(&mut self, port: PortRef, new: &PortInfo) -> bool {
        let peer = (port.port > 0)
            .then(|| self.subnet.port(port).peer())
            .flatten();
        let other =
            peer.map(|peer| self.agents[peer.node.0 as usize].ports[usize::from(peer.port)].state);
        let old = &mut self.agents[port.node.0 as usize].ports[usize::from(port.port)];
        let state = match (new.state, old.state, other) {
            (PortState::NO_CHANGE, state, _) => state,
            (PortState::ARMED, PortState::INITIALISE, Some(_)) => PortState::ARMED,
            (PortState::ACTIVE, PortState::ARMED, Some(other)) if other >= PortState::ARMED => {
                PortState::ACTIVE
            }
            _ => return false,
        };
        let stubborn = port.node.0.is_multiple_of(3);
        *old = PortInfo {
            state,
            // Some nodes have their own mind.
            subnet_timeout: if stubborn { 3 } else { new.subnet_timeout },
            physical_state: old.physical_state,
            down_default: old.down_default,
            width_enabled: old.width_enabled,
            speed_enabled: old.speed_enabled,
            ..*new
        };
        true
    }

    fn set_state(&mut self, port: PortRef, state: PortState) {
        self.agents[port.node.0 as usize].ports[usize::from(port.port)].state = state;
        self.agents[port.node.0 as usize].switch.state_change = true;
    }

    pub(crate) fn cut(&mut self, port: PortRef) -> PortRef {
        let peer = self.subnet.disconnect(port).unwrap();
        for end in [port, peer] {
            self.set_state(end, PortState::DOWN);
        }
        peer
    }

    pub(crate) fn mend(&mut self, port: PortRef, peer: PortRef) {
        self.subnet.connect(port, peer).unwrap();
        for end in [port, peer] {
            self.set_state(end, PortState::INITIALISE);
        }
    }

    /// The notice of a switch whose link has changed.
    pub(crate) fn trap(&self, node: NodeId) -> Smp {
        let lid = self.agents[node.0 as usize].ports[0].lid;
        let notice =
            Notice::of(&Trap::LinkState(StateTrap { lid }), NodeType::SWITCH, lid).unwrap();
        Smp {
            method: Method::TRAP,
            data: notice.to_smp(),
            ..Smp::get::<Notice>(SmpRoute::Lid, 0)
        }
    }
}
