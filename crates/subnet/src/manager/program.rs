//! Programming: what switches and ports should have, written where they are not known to have it.

use softfabric_units::Lid;
use softfabric_wire::mad::subnet::{
    ForwardingBlock, MulticastBlock, PartitionTable, PortInfo, SmInfo, Smp, SwitchInfo,
    VlArbitration,
};
use softfabric_wire::mad::{LinkSpeeds, LinkWidths, MtuCode, PhysicalState, PortState};

use super::requests::Request;
use super::{Manager, election};
use crate::subnet::{NodeId, PortRef};

/// How long packets may stay: in a switch, and at the head of its queues (4.096 µs · 2ⁿ: about one second).
pub(super) const PACKET_LIFE: u8 = 18;
/// How long packets may stay in the subnet.
const SUBNET_TIMEOUT: u8 = 18;

impl Manager {
    /// Tables and identifiers of switches, identifiers of adapters.
    fn write_tables(&mut self) {
        let Some((view, routes)) = &self.routed else {
            return;
        };
        let blocks = routes.blocks() as u16;
        let switches: Vec<NodeId> = (0..view.switches())
            .map(|switch| view.node(switch))
            .collect();
        for (switch, node) in switches.iter().enumerate() {
            let port = PortRef {
                node: *node,
                port: 0,
            };
            self.write_port(port);
            self.write_switch(*node);
            for block in 0..blocks {
                let wanted = self.wanted_block(switch, block);
                if self.known.block(*node, block) != Some(&wanted) {
                    self.requests
                        .ask(Request::SetForwarding { node: *node, block });
                }
            }
        }
    }

    /// Everything that switches should have.
    pub(super) fn write_all_tables(&mut self) {
        self.write_tables();
        self.write_lanes();
        self.write_partitions();
        self.write_groups();
    }

    fn write_switch(&mut self, node: NodeId) {
        let wanted = self.wanted_switch(node);
        if wanted.is_some_and(|wanted| self.known.switch(node) != Some(&wanted)) {
            self.requests.ask(Request::SetSwitchInfo { node });
        }
    }

    fn write_port(&mut self, port: PortRef) {
        let wanted = self.wanted_port(port);
        if wanted.is_some_and(|wanted| self.known.differs(port, &wanted)) {
            self.requests.ask(Request::SetPort { port });
        }
    }

    /// The ports in reach that have cables.
    pub(super) fn cabled_ports(&self) -> Vec<PortRef> {
        let Some((view, _)) = &self.routed else {
            return Vec::new();
        };
        let mut ports = Vec::new();
        for switch in 0..view.switches() {
            for (port, state) in self.subnet.external_ports(view.node(switch)) {
                let Some(peer) = state.peer() else { continue };
                ports.push(port);
                if !self.subnet.node(peer.node).is_switch() {
                    ports.push(peer);
                }
            }
        }
        ports
    }

    /// What ports should have, and the state armed where they are not that far.
    pub(super) fn arm_ports(&mut self) {
        for port in self.cabled_ports() {
            self.write_port(port);
        }
    }

    /// Once all are armed.
    pub(super) fn activate_ports(&mut self) {
        for port in self.cabled_ports() {
            if self
                .known
                .port(port)
                .is_some_and(|info| info.state == PortState::ARMED)
            {
                self.requests.ask(Request::Activate { port });
            }
        }
    }

    /// The packet of a request; `None` where no way leads to whom it is for.
    pub(super) fn packet(&mut self, request: &Request) -> Option<Smp> {
        match *request {
            Request::SetSwitchInfo { node } => {
                let wanted = self.wanted_switch(node)?;
                // Writing the bit clears it.
                let order = SwitchInfo {
                    state_change: true,
                    ..wanted
                };
                Some(Smp::set(self.route_to(node)?, 0, &order))
            }
            Request::SetForwarding { node, block } => {
                let wanted = self.wanted_block(self.switch_of(node)?, block);
                Some(Smp::set(self.route_to(node)?, u32::from(block), &wanted))
            }
            Request::SetLevels { output, input } => self.levels_order(output, input),
            Request::SetMulticast {
                node,
                block,
                position,
            } => self.multicast_order(node, block, position),
            Request::ManagerInfo { port } => self.manager_order(port, None),
            Request::HandOver { port } => self.manager_order(port, Some(election::HAND_OVER)),
            Request::Acknowledge { port } => self.manager_order(port, Some(election::ACKNOWLEDGE)),
            Request::SetPartitions { port, block } => self.partitions_order(port, block),
            Request::SetArbitration { port, block } => self.arbitration_order(port, block),
            Request::SetPort { port } => {
                let wanted = self.wanted_port(port)?;
                let known = self.known.port(port)?;
                let order = ordered(&wanted, known);
                Some(Smp::set(
                    self.route_to(port.node)?,
                    u32::from(port.port),
                    &order,
                ))
            }
            Request::Activate { port } => {
                let known = self.known.port(port)?;
                let wanted = PortInfo {
                    state: PortState::ACTIVE,
                    ..*known
                };
                let order = ordered(&wanted, known);
                Some(Smp::set(
                    self.route_to(port.node)?,
                    u32::from(port.port),
                    &order,
                ))
            }
            _ => self.question(request),
        }
    }

    /// Takes the answer to any request.
    pub(super) fn take(&mut self, request: Request, smp: &Smp) {
        match request {
            Request::SetSwitchInfo { node } => {
                if let Some(info) = smp.data_as::<SwitchInfo>() {
                    self.known.set_switch(node, info);
                }
            }
            Request::SetForwarding { node, block } => {
                if let Some(ports) = smp.data_as::<ForwardingBlock>() {
                    self.known.set_block(node, block, ports);
                }
            }
            Request::SetLevels { output, input } => self.take_levels(output, input, smp),
            Request::SetMulticast {
                node,
                block,
                position,
            } => {
                if let Some(ports) = smp.data_as::<MulticastBlock>() {
                    self.known.set_multicast(node, block, position, ports);
                }
            }
            Request::ManagerInfo { port } => {
                if let Some(info) = smp.data_as::<SmInfo>() {
                    self.take_manager_info(port, info);
                }
            }
            Request::HandOver { port } => self.stand_by(port),
            Request::Acknowledge { .. } => {}
            Request::SetPartitions { port, block } => {
                if let Some(keys) = smp.data_as::<PartitionTable>() {
                    self.known.set_partitions(port, block, keys);
                }
            }
            Request::SetArbitration { port, block } => {
                if let Some(table) = smp.data_as::<VlArbitration>() {
                    self.known.set_arbitration(port, block, table);
                }
            }
            Request::SetPort { port } | Request::Activate { port } => {
                if let Some(info) = smp.data_as::<PortInfo>() {
                    self.known.set_port(port, info);
                    let still = self.wanted_port(port);
                    if let Some(wanted) = still.filter(|wanted| wanted.state == info.state)
                        && wanted != info
                    {
                        self.known.set_stubborn(port, wanted);
                    }
                }
            }
            _ => self.learn(request, smp),
        }
    }

    pub(super) fn switch_of(&self, node: NodeId) -> Option<usize> {
        let (view, _) = self.routed.as_ref()?;
        view.switch_of(node)
    }

    fn wanted_block(&self, switch: usize, block: u16) -> ForwardingBlock {
        match &self.routed {
            Some((_, routes)) => routes.block(switch, usize::from(block)),
            None => ForwardingBlock::EMPTY,
        }
    }

    fn wanted_switch(&self, node: NodeId) -> Option<SwitchInfo> {
        let known = self.known.switch(node)?;
        let (_, routes) = self.routed.as_ref()?;
        Some(SwitchInfo {
            linear_top: (routes.width() - 1) as u16,
            packet_life: PACKET_LIFE,
            state_change: false,
            ..*known
        })
    }

    /// What a port should have, as it is known otherwise.
    fn wanted_port(&self, port: PortRef) -> Option<PortInfo> {
        let known = self.known.port(port)?;
        let own = self.own?;
        let end = self.subnet.port(port);
        let is_switch = self.subnet.node(port.node).is_switch();
        let mut wanted = *known;
        if !is_switch || port.port == 0 {
            wanted.key = self.settings.key;
            wanted.gid_prefix = self.settings.gid_prefix;
            wanted.lid = end.lid;
            wanted.lmc = end.lmc;
            wanted.manager_lid = self.lid_of(own);
            wanted.subnet_timeout = SUBNET_TIMEOUT;
        }
        if let Some(limit) = self.wanted_high_limit(port) {
            wanted.high_limit = limit;
        }
        if port.port == 0 {
            return Some(wanted);
        }
        let peer = end.peer()?;
        if let Some(other) = self.known.port(peer) {
            wanted.neighbor_mtu = MtuCode(known.mtu_capability.0.min(other.mtu_capability.0));
            wanted.operational_lanes = self.wanted_lane_count(port)?;
        }
        if is_switch {
            wanted.head_of_queue_life = PACKET_LIFE;
        }
        if is_switch && self.partitions.is_some() {
            let enforces = self.enforces(port);
            (wanted.enforce_inbound, wanted.enforce_outbound) = (enforces, enforces);
        }
        if known.state == PortState::INITIALISE {
            wanted.state = PortState::ARMED;
        }
        Some(wanted)
    }

    /// The identifier of a port: of a switch, that of its port 0.
    pub(super) fn lid_of(&self, port: PortRef) -> Lid {
        self.subnet.port(self.subnet.end_port(port)).lid
    }
}

/// `wanted` as an order: what shall stay as it is says "no change".
fn ordered(wanted: &PortInfo, known: &PortInfo) -> PortInfo {
    PortInfo {
        state: if wanted.state == known.state {
            PortState::NO_CHANGE
        } else {
            wanted.state
        },
        physical_state: PhysicalState::NO_CHANGE,
        down_default: PhysicalState::NO_CHANGE,
        width_enabled: LinkWidths::NONE,
        speed_enabled: LinkSpeeds::NONE,
        client_reregister: wanted.lid != known.lid || wanted.manager_lid != known.manager_lid,
        ..*wanted
    }
}
