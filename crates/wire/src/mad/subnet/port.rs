//! Attributes of ports: state, link, partitions, lanes and their arbitration (IBTA vol. 1, 14.2.5.6 to 14.2.5.9).

use softfabric_units::{Lid, PartitionKey, Rate};

use crate::infiniband::{ServiceLevel, VirtualLane};
use crate::mad::table::attributes;
use crate::mad::{
    ExtendedSpeeds, LaneCount, LinkSpeeds, LinkWidths, MtuCode, PhysicalState, PortCapabilities,
    PortState, RateCode,
};

attributes! {
    /// A port. The modifier is its number; on adapters, 0 is the port that received the request.
    PortInfo = 0x0015, 64 bytes {
        /// The key that its manager has set.
        [0:0; 64] key: u64,
        /// The subnet's part of its GIDs.
        [8:0; 64] gid_prefix: u64,
        /// Its first local identifier.
        [16:0; 16] lid: Lid,
        /// Where its subnet manager is.
        [18:0; 16] manager_lid: Lid,
        /// What it can do.
        [20:0; 32] capabilities: PortCapabilities,
        /// A code of the vendor's.
        [24:0; 16] diagnostic: u16,
        /// How long the key holds without its manager, in seconds; 0 is for ever.
        [26:0; 16] key_lease: u16,
        /// The port by which the request came in.
        [28:0; 8] local_port: u8,
        /// The widths that it may use.
        [29:0; 8] width_enabled: LinkWidths,
        /// The widths that it has.
        [30:0; 8] width_supported: LinkWidths,
        /// The width that it uses.
        [31:0; 8] width_active: LinkWidths,
        /// The first speeds that it has.
        [32:0; 4] speed_supported: LinkSpeeds,
        /// How far its link has come.
        [32:4; 4] state: PortState,
        /// What its physical layer does.
        [33:0; 4] physical_state: PhysicalState,
        /// What its physical layer does after a link went down.
        [33:4; 4] down_default: PhysicalState,
        /// What the key guards: 0–3.
        [34:0; 2] key_protection: u8,
        /// It has 2 to the power of this local identifiers.
        [34:5; 3] lmc: u8,
        /// The first speed that it uses, where it uses no later one.
        [35:0; 4] speed_active: LinkSpeeds,
        /// The first speeds that it may use.
        [35:4; 4] speed_enabled: LinkSpeeds,
        /// The largest payload that the other end takes.
        [36:0; 4] neighbor_mtu: MtuCode,
        /// The service level to reach the manager by.
        [36:4; 4] manager_level: ServiceLevel,
        /// The data lanes that it has.
        [37:0; 4] lane_capability: LaneCount,
        /// How much it should initialise.
        [37:4; 4] init_type: u8,
        /// How much the high table of arbitration may send at a stretch, in 4 KiB; 255 is without end.
        [38:0; 8] high_limit: u8,
        /// Entries of its high table.
        [39:0; 8] arbitration_high_capacity: u8,
        /// Entries of its low table.
        [40:0; 8] arbitration_low_capacity: u8,
        /// How much it has initialised.
        [41:0; 4] init_type_reply: u8,
        /// The largest payload that it takes.
        [41:4; 4] mtu_capability: MtuCode,
        /// How many packets in a row that wait too long make a lane drop all.
        [42:0; 3] stall_count: u8,
        /// How long a packet may wait at the head of a queue: 4.096 µs · 2ⁿ, from 20 on without end.
        [42:3; 5] head_of_queue_life: u8,
        /// The data lanes that it uses.
        [43:0; 4] operational_lanes: LaneCount,
        /// A switch checks partitions of packets that come in.
        [43:4; 1] enforce_inbound: bool,
        /// A switch checks partitions of packets that go out.
        [43:5; 1] enforce_outbound: bool,
        /// A switch drops raw packets that come in.
        [43:6; 1] filter_raw_inbound: bool,
        /// A switch drops raw packets that go out.
        [43:7; 1] filter_raw_outbound: bool,
        /// How often a wrong management key came.
        [44:0; 16] key_violations: u16,
        /// How often a wrong partition key came.
        [46:0; 16] partition_violations: u16,
        /// How often a wrong queue key came.
        [48:0; 16] queue_key_violations: u16,
        /// Entries of its GUID table.
        [50:0; 8] guid_capacity: u8,
        /// Programs should register with subnet administration again.
        [51:0; 1] client_reregister: bool,
        /// How traps about partitions of multicast are held back.
        [51:1; 2] multicast_trap_suppression: u8,
        /// How long a packet lives on the subnet: 4.096 µs · 2ⁿ.
        [51:3; 5] subnet_timeout: u8,
        /// How long its agents may take to answer: 4.096 µs · 2ⁿ.
        [52:3; 5] response_time: u8,
        /// How many errors of the physical layer make it train again.
        [53:0; 4] local_physical_errors: u8,
        /// How many overruns of its buffers make it train again.
        [53:4; 4] overrun_errors: u8,
        /// The most credits that are worth having.
        [54:0; 16] max_credit_hint: u16,
        /// The round trip of its link, in 4 ns.
        [57:0; 24] link_round_trip: u32,
        /// What else it can do.
        [60:0; 16] capabilities_2: u16,
        /// The later speed that it uses.
        [62:0; 4] extended_speed_active: ExtendedSpeeds,
        /// The later speeds that it has.
        [62:4; 4] extended_speed_supported: ExtendedSpeeds,
        /// The later speeds that it may use; 30 and 31 are "no change" and "all".
        [63:3; 5] extended_speed_enabled: ExtendedSpeeds,
    }

    /// Mellanox's FDR10 link: asked of devices that have it.
    ExtendedPortInfo = 0xff90, 64 bytes {
        /// What a Set changes.
        [3:0; 8] change: u8,
        /// 1: it has FDR10.
        [7:0; 8] speed_supported: u8,
        /// 1: it may use FDR10.
        [11:0; 8] speed_enabled: u8,
        /// 1: it uses FDR10.
        [15:0; 8] speed_active: u8,
    }

    /// 32 entries of a partition table. The modifier is the block, and of a switch the port above it.
    PartitionTable = 0x0016, 64 bytes {
        /// The keys; zero where an entry is unused.
        [0:0; 512] keys: [PartitionKey; 32],
    }

    /// Service level → lane. The modifier of a switch is the input port, then the output port.
    ServiceLevelMap = 0x0017, 8 bytes {
        /// The lane of each level; lane 15 drops the packet.
        [0:0; 64] lanes: [VirtualLane; 16],
    }

    /// An entry of arbitration.
    LaneWeight = 0x0000, 2 bytes {
        /// The lane.
        [0:4; 4] lane: VirtualLane,
        /// How much it may send in its turn, in 64 bytes; 0 leaves the entry out.
        [1:0; 8] weight: u8,
    }

    /// 32 entries of arbitration. The modifier is the block (1 and 2 low, 3 and 4 high), and of a switch the port.
    VlArbitration = 0x0018, 64 bytes {
        /// The entries, in the order of their turns.
        [0:0; 512] entries: [LaneWeight; 32],
    }
}

impl PortInfo {
    /// The rate code of the active link.
    pub fn rate_code(&self) -> Option<RateCode> {
        RateCode::of_link(
            self.width_active,
            self.speed_active,
            self.extended_speed_active,
        )
    }

    /// The nominal rate of the active link.
    pub fn rate(&self) -> Option<Rate> {
        self.rate_code().and_then(RateCode::rate)
    }
}

impl PartitionTable {
    /// The modifier for block `block` of port `port`; of an adapter, port 0.
    pub const fn modifier(port: u8, block: u16) -> u32 {
        (port as u32) << 16 | block as u32
    }
}

impl ServiceLevelMap {
    /// The modifier for packets from port `input` to port `output`; of an adapter, both 0.
    pub const fn modifier(input: u8, output: u8) -> u32 {
        (input as u32) << 8 | output as u32
    }

    /// The modifier that sets all inputs of one output, where [`super::SwitchInfo::optimized_levels`] says that it can
    /// (OptimizedSLtoVLMapping, IBTA vol. 1, 14.2.5.8).
    pub const fn all_inputs(output: u8) -> u32 {
        1 << 17 | output as u32
    }

    /// The modifier that sets all pairs, where [`super::SwitchInfo::optimized_levels`] says that it can.
    pub const fn all_pairs() -> u32 {
        1 << 17 | 1 << 16
    }

    /// The lane of `level`.
    pub const fn lane(&self, level: ServiceLevel) -> VirtualLane {
        self.lanes[level.as_u8() as usize]
    }
}

impl VlArbitration {
    /// The modifier for block `block` (1–4) of port `port`; of an adapter, port 0.
    pub const fn modifier(port: u8, block: u8) -> u32 {
        (block as u32) << 16 | port as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mad::Attribute;

    #[test]
    fn lanes_and_weights() {
        let mut map = ServiceLevelMap::default();
        map.lanes[1] = VirtualLane::checked(0xb).unwrap();
        map.lanes[14] = VirtualLane::MANAGEMENT;
        assert_eq!(map.to_bytes::<8>(), [0x0b, 0, 0, 0, 0, 0, 0, 0xf0]);
        let mut table = VlArbitration::default();
        table.entries[1] = LaneWeight {
            lane: VirtualLane::checked(3).unwrap(),
            weight: 0x40,
        };
        assert_eq!(table.to_bytes::<64>()[..4], [0, 0, 3, 0x40]);
        assert_eq!(VlArbitration::decode(&table.to_bytes::<64>()), Ok(table));
    }

    #[test]
    fn modifiers() {
        assert_eq!(ServiceLevelMap::modifier(2, 9), 0x209);
        assert_eq!(ServiceLevelMap::all_inputs(9), 0x2_0009);
        assert_eq!(ServiceLevelMap::all_pairs(), 0x3_0000);
        assert_eq!(PartitionTable::modifier(3, 1), 0x3_0001);
        assert_eq!(VlArbitration::modifier(4, 3), 0x3_0004);
    }
}
