//! What one node holds: all that managers read and write there.

use std::collections::BTreeMap;

use softfabric_units::{Guid, Lid, PartitionKey};
use softfabric_wire::mad::performance::{PortCounters, PortCountersExtended};
use softfabric_wire::mad::subnet::{
    ForwardingBlock, GuidInfo, MulticastBlock, PartitionTable, PortInfo, ServiceLevelMap,
    SwitchInfo, VlArbitration,
};
use softfabric_wire::mad::{
    ExtendedSpeeds, LaneCount, LinkSpeeds, LinkWidths, MtuCode, PhysicalState, PortCapabilities,
    PortState,
};

use super::congestion::Congestion;
use crate::subnet::{NodeId, Port, PortRef, Subnet};

/// Entries of every partition table.
pub(super) const PARTITIONS: u16 = 32;
/// Entries of every end port's GUID table.
const GUIDS: u8 = 32;
/// Entries of the tables that say how lanes take turns.
const ARBITRATION_ENTRIES: u8 = 8;
/// How long agents may take to answer, and packets may live on the subnet: about a second (4.096 µs · 2¹⁸).
const TIME: u8 = 18;

/// What one node holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agent {
    /// Of a switch.
    pub switch: SwitchInfo,
    /// The ports by number; entry 0 of an adapter is nobody's.
    pub ports: Vec<PortInfo>,
    /// Forwarding tables, by block; blocks that nobody wrote lead nowhere.
    pub blocks: BTreeMap<u32, ForwardingBlock>,
    /// Multicast tables, by modifier.
    pub multicast: BTreeMap<u32, MulticastBlock>,
    /// Lanes of service levels, by modifier: input << 8 | output.
    pub levels: BTreeMap<u32, ServiceLevelMap>,
    /// How lanes take turns, by modifier.
    pub turns: BTreeMap<u32, VlArbitration>,
    /// Partition tables, by modifier.
    pub partitions: BTreeMap<u32, PartitionTable>,
    /// Further GUIDs, by port and block.
    pub guids: BTreeMap<(u8, u32), GuidInfo>,
    /// Counters of 32 bits and less, by port.
    pub counters: Vec<PortCounters>,
    /// Counters of 64 bits, by port.
    pub extended: Vec<PortCountersExtended>,
    /// Settings of congestion control.
    pub congestion: Congestion,
}

impl Agent {
    /// A node as it is after power-up: links trained, nothing configured.
    pub(super) fn new(subnet: &Subnet, node: NodeId) -> Self {
        let description = subnet.node(node);
        let ports = usize::from(description.ports) + 1;
        Self {
            switch: if description.is_switch() {
                SwitchInfo {
                    linear_capacity: Lid::FIRST_MULTICAST.0,
                    multicast_capacity: 1024,
                    partition_capacity: PARTITIONS,
                    inbound_enforcement: true,
                    outbound_enforcement: true,
                    ..SwitchInfo::default()
                }
            } else {
                SwitchInfo::default()
            },
            ports: (0..=description.ports)
                .map(|number| {
                    let port = PortRef { node, port: number };
                    match (number, description.is_switch()) {
                        (0, true) => own_port(),
                        (0, false) => PortInfo::default(),
                        (_, is_switch) => external_port(subnet.port(port), number, is_switch),
                    }
                })
                .collect(),
            blocks: BTreeMap::new(),
            multicast: BTreeMap::new(),
            levels: BTreeMap::new(),
            turns: BTreeMap::new(),
            partitions: BTreeMap::new(),
            guids: BTreeMap::new(),
            counters: vec![PortCounters::default(); ports],
            extended: vec![PortCountersExtended::default(); ports],
            congestion: Congestion::default(),
        }
    }

    /// The port that a switch sends packets for `lid` to.
    pub(super) fn forward(&self, lid: Lid) -> Option<u8> {
        if lid.0 > self.switch.linear_top || !lid.is_unicast() {
            return None;
        }
        let block = self.blocks.get(&(u32::from(lid.0) / 64))?;
        let port = block.ports[usize::from(lid.0) % ForwardingBlock::LIDS];
        (port != ForwardingBlock::NO_PORT).then_some(port)
    }

    /// A partition table as it is read.
    pub(super) fn partition_table(&self, modifier: u32) -> PartitionTable {
        self.partitions.get(&modifier).copied().unwrap_or_else(|| {
            let mut table = PartitionTable::default();
            if modifier & 0xffff == 0 {
                table.keys[0] = PartitionKey::DEFAULT;
            }
            table
        })
    }

    /// A block of a port's GUIDs as it is read: the first one is `own`.
    pub(super) fn guid_block(&self, port: u8, block: u32, own: Guid) -> GuidInfo {
        let mut guids = self.guids.get(&(port, block)).copied().unwrap_or_default();
        if block == 0 {
            guids.guids[0] = own;
        }
        guids
    }
}

const CAPABILITIES: PortCapabilities = PortCapabilities::TRAP
    .with(PortCapabilities::AUTOMATIC_MIGRATION)
    .with(PortCapabilities::SL_MAPPING)
    .with(PortCapabilities::SYSTEM_IMAGE_GUID)
    .with(PortCapabilities::COMMUNICATION_MANAGEMENT)
    .with(PortCapabilities::CAPABILITY_NOTICE)
    .with(PortCapabilities::CLIENT_REREGISTRATION)
    .with(PortCapabilities::EXTENDED_SPEEDS);

/// A switch's port 0: it has no link, and is always there.
fn own_port() -> PortInfo {
    PortInfo {
        state: PortState::ACTIVE,
        physical_state: PhysicalState::LINK_UP,
        capabilities: CAPABILITIES,
        ..any_port()
    }
}

fn external_port(port: &Port, number: u8, is_switch: bool) -> PortInfo {
    let cabled = port.peer().is_some();
    let has_extended = port.extended_speed != ExtendedSpeeds::NONE;
    let capabilities = PortCapabilities(if has_extended {
        CAPABILITIES.0
    } else {
        CAPABILITIES.0 & !PortCapabilities::EXTENDED_SPEEDS.0
    });
    let widths = widths_up_to(port.width);
    let speeds = LinkSpeeds(all_up_to(port.speed.0));
    let extended = ExtendedSpeeds(all_up_to(port.extended_speed.0));
    PortInfo {
        local_port: number,
        state: if cabled {
            PortState::INITIALISE
        } else {
            PortState::DOWN
        },
        physical_state: if cabled {
            PhysicalState::LINK_UP
        } else {
            PhysicalState::POLLING
        },
        capabilities,
        width_active: port.width,
        width_supported: widths,
        width_enabled: widths,
        speed_active: port.speed,
        speed_supported: speeds,
        speed_enabled: speeds,
        extended_speed_active: port.extended_speed,
        extended_speed_supported: extended,
        extended_speed_enabled: extended,
        guid_capacity: if is_switch { 0 } else { GUIDS },
        ..any_port()
    }
}

fn any_port() -> PortInfo {
    PortInfo {
        gid_prefix: 0xfe80_0000_0000_0000,
        mtu_capability: MtuCode::B4096,
        neighbor_mtu: MtuCode::B256,
        lane_capability: LaneCount::EIGHT,
        operational_lanes: LaneCount::EIGHT,
        arbitration_high_capacity: ARBITRATION_ENTRIES,
        arbitration_low_capacity: ARBITRATION_ENTRIES,
        down_default: PhysicalState::POLLING,
        subnet_timeout: TIME,
        response_time: TIME,
        width_active: LinkWidths::X4,
        width_supported: widths_up_to(LinkWidths::X4),
        width_enabled: widths_up_to(LinkWidths::X4),
        speed_active: LinkSpeeds::QDR,
        speed_supported: LinkSpeeds(all_up_to(LinkSpeeds::QDR.0)),
        speed_enabled: LinkSpeeds(all_up_to(LinkSpeeds::QDR.0)),
        ..PortInfo::default()
    }
}

/// All bits up to the highest of `set`.
const fn all_up_to(set: u8) -> u8 {
    if set == 0 {
        0
    } else {
        u8::MAX >> set.leading_zeros()
    }
}

/// What ports of a width can fall back to.
const fn widths_up_to(width: LinkWidths) -> LinkWidths {
    match width {
        LinkWidths::X12 => LinkWidths::X12.with(LinkWidths::X4).with(LinkWidths::X1),
        LinkWidths::X8 => LinkWidths::X8.with(LinkWidths::X4).with(LinkWidths::X1),
        LinkWidths::X4 => LinkWidths::X4.with(LinkWidths::X1),
        LinkWidths::X2 => LinkWidths::X2.with(LinkWidths::X1),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_can_do_what_they_do_and_less() {
        assert_eq!(all_up_to(ExtendedSpeeds::HDR.0), 7);
        assert_eq!(all_up_to(0), 0);
        assert_eq!(widths_up_to(LinkWidths::X4), LinkWidths(3));
    }
}
