//! The agent of subnet management (classes 0x01 and 0x81): what nodes are, their ports and tables (IBTA vol. 1, 14.2.5).

use softfabric_units::Guid;
use softfabric_wire::mad::subnet::{
    ForwardingBlock, GuidInfo, MulticastBlock, NodeDescription, NodeInfo, PartitionTable, PortInfo,
    SMP_DATA_LENGTH, ServiceLevelMap, Smp, SwitchInfo, VendorId, VlArbitration,
};
use softfabric_wire::mad::{
    Attribute, ExtendedSpeeds, LinkSpeeds, LinkWidths, Method, NodeType, PhysicalState, PortState,
    status,
};

use super::fabric::Fabric;
use super::node::PARTITIONS;
use crate::subnet::{NodeKind, PortRef};

type Data = [u8; SMP_DATA_LENGTH];

/// "All that are supported" of the enabled widths, speeds and later speeds (IBTA vol. 1, table 155).
const ALL_WIDTHS: u8 = 0xff;
const ALL_SPEEDS: u8 = 0xf;
const ALL_EXTENDED: u8 = 31;
const EXTENDED_NO_CHANGE: u8 = 30;

/// In the modifier of PortInfo: the manager knows of the later speeds (IBTA vol. 1, 14.2.5.6).
const EXTENDED_SPEEDS: u32 = 1 << 31;

impl Fabric {
    /// The status and data of the answer to a Get or Set that came in by `at` (port 0: from the switch itself); `None` where
    /// its key is wrong and it gets no answer.
    pub(super) fn manage(&mut self, at: PortRef, smp: &Smp) -> Option<(u16, Data)> {
        let set = smp.method == Method::SET;
        let hidden = self.check_key(at, smp, set)?;
        let unsupported = (status::UNSUPPORTED_ATTRIBUTE, smp.data);
        let is_switch = self.subnet().node(at.node).is_switch();
        Some(match smp.attribute {
            NodeInfo::ID if !set => (0, self.describe(at).to_bytes()),
            NodeDescription::ID if !set => {
                let text = &self.subnet().node(at.node).description;
                (0, NodeDescription::new(text).to_bytes())
            }
            PortInfo::ID => self.port_info(at, smp, set, hidden),
            PartitionTable::ID => self.partition_table(at, smp, set),
            GuidInfo::ID => self.guid_info(at, smp, set),
            ServiceLevelMap::ID => self.service_levels(at, smp, set),
            VlArbitration::ID => self.arbitration(at, smp, set),
            SwitchInfo::ID if is_switch => {
                let switch = &mut self.agent_mut(at.node).switch;
                if let (true, Some(new)) = (set, smp.data_as::<SwitchInfo>()) {
                    set_switch(switch, &new);
                }
                (0, switch.to_bytes())
            }
            ForwardingBlock::ID if is_switch => self.forwarding(at, smp, set),
            MulticastBlock::ID if is_switch => self.multicast(at, smp, set),
            _ => unsupported,
        })
    }

    /// `None` where the packet is dropped, and whether keys are to be hidden in the answer (IBTA vol. 1, 14.2.4.2).
    fn check_key(&mut self, at: PortRef, smp: &Smp, set: bool) -> Option<bool> {
        let end = self.subnet().end_port(at);
        let port = &mut self.agent_mut(end.node).ports[usize::from(end.port)];
        if port.key == 0 || port.key == smp.key {
            return Some(false);
        }
        if !set && port.key_protection < 2 {
            return Some(port.key_protection == 1);
        }
        port.key_violations = port.key_violations.saturating_add(1);
        None
    }

    /// NodeInfo as the port tells it.
    pub(crate) fn describe(&self, at: PortRef) -> NodeInfo {
        let node = self.subnet().node(at.node);
        NodeInfo {
            base_version: 1,
            class_version: 1,
            node_type: match node.kind {
                NodeKind::Switch => NodeType::SWITCH,
                NodeKind::Router => NodeType::ROUTER,
                NodeKind::Adapter => NodeType::CHANNEL_ADAPTER,
            },
            ports: node.ports,
            system: node.system,
            node: node.guid,
            port: self.subnet().port(self.subnet().end_port(at)).guid,
            partition_capacity: PARTITIONS,
            device: node.device,
            revision: 0,
            local_port: at.port,
            vendor: VendorId::new(node.vendor),
        }
    }

    /// PortInfo of the node's port `number`, as a program at `at` reads it of its own node; 0 and ports that are not
    /// there are `at` itself.
    pub(crate) fn read_port(&self, at: PortRef, number: u8) -> Data {
        let port = match self.named_port(at, u32::from(number)) {
            Some(port) if number > 0 => port,
            _ => at,
        };
        let info = self.agent(port.node).ports[usize::from(port.port)];
        PortInfo {
            local_port: port.port,
            ..info
        }
        .to_bytes()
    }

    /// The first block of the end port's partition table.
    pub(crate) fn partitions(&self, at: PortRef) -> PartitionTable {
        let modifier = PartitionTable::modifier(at.port, 0);
        self.agent(at.node).partition_table(modifier)
    }

    /// The port whose attributes a modifier names; `None` where the node has none. On adapters 0 is the port of `at`.
    fn named_port(&self, at: PortRef, number: u32) -> Option<PortRef> {
        let node = self.subnet().node(at.node);
        let port = u8::try_from(number)
            .ok()
            .filter(|port| *port <= node.ports)?;
        Some(if port == 0 && !node.is_switch() {
            at
        } else {
            PortRef { port, ..at }
        })
    }

    fn port_info(&mut self, at: PortRef, smp: &Smp, set: bool, hidden: bool) -> (u16, Data) {
        let refused = (status::INVALID_FIELD, smp.data);
        let Some(port) = self.named_port(at, smp.modifier & !EXTENDED_SPEEDS) else {
            return refused;
        };
        if let (true, Some(new)) = (set, smp.data_as::<PortInfo>())
            && !self.set_port(port, &new)
        {
            return refused;
        }
        let info = self.agent(port.node).ports[usize::from(port.port)];
        let info = PortInfo {
            local_port: at.port,
            key: if hidden { 0 } else { info.key },
            ..info
        };
        (0, info.to_bytes())
    }

    /// Takes over what can be set; false, and nothing is, where a state cannot be reached from the present one.
    fn set_port(&mut self, port: PortRef, new: &PortInfo) -> bool {
        let old = &mut self.agent_mut(port.node).ports[usize::from(port.port)];
        let state = match (new.state, old.state) {
            (PortState::NO_CHANGE | PortState::DOWN, state) => state,
            (PortState::ARMED, PortState::INITIALISE) => PortState::ARMED,
            (PortState::ACTIVE, PortState::ARMED | PortState::ACTIVE) => PortState::ACTIVE,
            _ => return false,
        };
        let physical = new.physical_state;
        let own = port.port == 0 || !matches!(physical.0, 1..=3);
        if !own && !matches!(new.state, PortState::NO_CHANGE | PortState::DOWN) {
            return false;
        }
        let enabled = |new: u8, all: u8, old: u8, supported: u8| match new {
            0 => old,
            new if new == all => supported,
            new => new & supported,
        };
        *old = PortInfo {
            state,
            width_enabled: LinkWidths(enabled(
                new.width_enabled.0,
                ALL_WIDTHS,
                old.width_enabled.0,
                old.width_supported.0,
            )),
            speed_enabled: LinkSpeeds(enabled(
                new.speed_enabled.0,
                ALL_SPEEDS,
                old.speed_enabled.0,
                old.speed_supported.0,
            )),
            extended_speed_enabled: match new.extended_speed_enabled.0 {
                EXTENDED_NO_CHANGE => old.extended_speed_enabled,
                new => ExtendedSpeeds(enabled(
                    new,
                    ALL_EXTENDED,
                    old.extended_speed_enabled.0,
                    old.extended_speed_supported.0,
                )),
            },
            down_default: if new.down_default == PhysicalState::NO_CHANGE {
                old.down_default
            } else {
                new.down_default
            },
            // What ports only tell.
            capabilities: old.capabilities,
            diagnostic: old.diagnostic,
            local_port: old.local_port,
            width_supported: old.width_supported,
            width_active: old.width_active,
            speed_supported: old.speed_supported,
            speed_active: old.speed_active,
            extended_speed_supported: old.extended_speed_supported,
            extended_speed_active: old.extended_speed_active,
            physical_state: old.physical_state,
            lane_capability: old.lane_capability,
            arbitration_high_capacity: old.arbitration_high_capacity,
            arbitration_low_capacity: old.arbitration_low_capacity,
            init_type_reply: old.init_type_reply,
            mtu_capability: old.mtu_capability,
            guid_capacity: old.guid_capacity,
            response_time: old.response_time,
            link_round_trip: old.link_round_trip,
            capabilities_2: old.capabilities_2,
            client_reregister: false,
            ..*new
        };
        if port.port > 0 {
            match physical {
                PhysicalState::DISABLED | PhysicalState::SLEEP | PhysicalState::POLLING => {
                    self.enable(port, physical);
                }
                _ if new.state == PortState::DOWN => self.retrain(port),
                _ => {}
            }
        }
        true
    }

    fn partition_table(&mut self, at: PortRef, smp: &Smp, set: bool) -> (u16, Data) {
        let is_switch = self.subnet().node(at.node).is_switch();
        let port = if is_switch { smp.modifier >> 16 } else { 0 };
        let known = self.named_port(at, port).is_some();
        if !known || smp.modifier & 0xffff >= u32::from(PARTITIONS) / 32 {
            return (status::INVALID_FIELD, smp.data);
        }
        // Every port of an adapter has its own.
        let modifier = if is_switch {
            smp.modifier
        } else {
            u32::from(at.port) << 16 | smp.modifier & 0xffff
        };
        let agent = self.agent_mut(at.node);
        if let (true, Some(new)) = (set, smp.data_as()) {
            agent.partitions.insert(modifier, new);
        }
        (0, agent.partition_table(modifier).to_bytes())
    }

    fn guid_info(&mut self, at: PortRef, smp: &Smp, set: bool) -> (u16, Data) {
        let end = self.subnet().end_port(at);
        let own: Guid = self.subnet().port(end).guid;
        let agent = self.agent_mut(at.node);
        let capacity = u32::from(agent.ports[usize::from(end.port)].guid_capacity);
        if smp.modifier > 0 && smp.modifier >= capacity.div_ceil(8) {
            return (status::INVALID_FIELD, smp.data);
        }
        if let (true, Some(new)) = (set, smp.data_as()) {
            agent.guids.insert((end.port, smp.modifier), new);
        }
        (0, agent.guid_block(end.port, smp.modifier, own).to_bytes())
    }

    fn service_levels(&mut self, at: PortRef, smp: &Smp, set: bool) -> (u16, Data) {
        let node = self.subnet().node(at.node);
        let (is_switch, ports) = (node.is_switch(), u32::from(node.ports));
        let refused = (status::INVALID_FIELD, smp.data);
        let (input, output) = (smp.modifier >> 8 & 0xff, smp.modifier & 0xff);
        let agent = self.agent_mut(at.node);
        if !is_switch {
            let key = u32::from(at.port);
            if let (true, Some(new)) = (set, smp.data_as()) {
                agent.levels.insert(key, new);
            }
            let map = agent.levels.get(&key).copied().unwrap_or_default();
            return (0, map.to_bytes());
        }
        let wildcard = smp.modifier >> 16;
        let (inputs, outputs) = match wildcard {
            0 if input <= ports && output <= ports => (input..=input, output..=output),
            2 if output <= ports && agent.switch.optimized_levels & 1 != 0 && set => {
                (0..=ports, output..=output)
            }
            3 if agent.switch.optimized_levels == 3 && set => (0..=ports, 0..=ports),
            _ => return refused,
        };
        let Some(new) = smp.data_as::<ServiceLevelMap>() else {
            return refused;
        };
        if !set {
            let map = agent.levels.get(&smp.modifier).copied();
            return (0, map.unwrap_or_default().to_bytes());
        }
        for input in inputs {
            for output in outputs.clone() {
                agent.levels.insert(input << 8 | output, new);
            }
        }
        (0, smp.data)
    }

    fn arbitration(&mut self, at: PortRef, smp: &Smp, set: bool) -> (u16, Data) {
        let (block, port) = (smp.modifier >> 16, smp.modifier & 0xffff);
        let Some(port) = self
            .named_port(at, port)
            .filter(|_| (1..=4).contains(&block))
        else {
            return (status::INVALID_FIELD, smp.data);
        };
        let agent = self.agent_mut(at.node);
        let key = block << 16 | u32::from(port.port);
        if let (true, Some(new)) = (set, smp.data_as()) {
            agent.turns.insert(key, new);
        }
        let table: VlArbitration = agent.turns.get(&key).copied().unwrap_or_default();
        (0, table.to_bytes())
    }

    fn forwarding(&mut self, at: PortRef, smp: &Smp, set: bool) -> (u16, Data) {
        let agent = self.agent_mut(at.node);
        let block = smp.modifier;
        if block >= u32::from(agent.switch.linear_capacity).div_ceil(64) {
            return (status::INVALID_FIELD, smp.data);
        }
        if let (true, Some(new)) = (set, smp.data_as()) {
            agent.blocks.insert(block, new);
        }
        let entries = agent.blocks.get(&block).unwrap_or(&ForwardingBlock::EMPTY);
        (0, entries.to_bytes())
    }

    fn multicast(&mut self, at: PortRef, smp: &Smp, set: bool) -> (u16, Data) {
        let ports = u32::from(self.subnet().node(at.node).ports);
        let agent = self.agent_mut(at.node);
        let (position, block) = (smp.modifier >> 28, smp.modifier & 0x0fff_ffff);
        let blocks = u32::from(agent.switch.multicast_capacity).div_ceil(32);
        if block >= blocks || position * 16 > ports {
            return (status::INVALID_FIELD, smp.data);
        }
        if let (true, Some(new)) = (set, smp.data_as()) {
            agent.multicast.insert(smp.modifier, new);
        }
        let entries: MulticastBlock = agent
            .multicast
            .get(&smp.modifier)
            .copied()
            .unwrap_or_default();
        (0, entries.to_bytes())
    }
}

fn set_switch(switch: &mut SwitchInfo, new: &SwitchInfo) {
    *switch = SwitchInfo {
        linear_top: new.linear_top.min(switch.linear_capacity.saturating_sub(1)),
        default_port: new.default_port,
        default_multicast_primary: new.default_multicast_primary,
        default_multicast_other: new.default_multicast_other,
        packet_life: new.packet_life,
        lids_per_port: new.lids_per_port,
        multicast_top: new.multicast_top,
        // Who writes a one has seen the change.
        state_change: switch.state_change && !new.state_change,
        ..*switch
    };
}
