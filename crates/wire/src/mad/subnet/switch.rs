//! Attributes of switches: what they can, and their forwarding tables (IBTA vol. 1, 14.2.5.4, 14.2.5.10 to 14.2.5.12).

use crate::mad::table::attributes;

attributes! {
    /// A switch.
    SwitchInfo = 0x0012, 20 bytes {
        /// Entries of the linear forwarding table.
        [0:0; 16] linear_capacity: u16,
        /// Entries of a random forwarding table: zero, as nobody has one.
        [2:0; 16] random_capacity: u16,
        /// Entries of the multicast forwarding table.
        [4:0; 16] multicast_capacity: u16,
        /// The highest LID in use in the linear forwarding table.
        [6:0; 16] linear_top: u16,
        /// Where packets go that no random entry names.
        [8:0; 8] default_port: u8,
        /// Where multicast goes that no entry names, unless it came from there.
        [9:0; 8] default_multicast_primary: u8,
        /// Where that goes.
        [10:0; 8] default_multicast_other: u8,
        /// How long a packet may stay in the switch: 4.096 µs · 2ⁿ, from 20 on without end.
        [11:0; 5] packet_life: u8,
        /// The state of a port has changed since a manager last wrote 1 here.
        [11:5; 1] state_change: bool,
        /// Which wildcards of service level maps it takes: 1 all inputs, 2 all outputs, 3 both.
        [11:6; 2] optimized_levels: u8,
        /// LIDs of a port in a random forwarding table.
        [12:0; 16] lids_per_port: u16,
        /// Entries of each external port's partition table.
        [14:0; 16] partition_capacity: u16,
        /// It can check partitions of packets that come in.
        [16:0; 1] inbound_enforcement: bool,
        /// It can check partitions of packets that go out.
        [16:1; 1] outbound_enforcement: bool,
        /// It can drop raw packets that come in.
        [16:2; 1] inbound_raw_filter: bool,
        /// It can drop raw packets that go out.
        [16:3; 1] outbound_raw_filter: bool,
        /// Its port 0 is a port like an adapter's.
        [16:4; 1] enhanced_port_0: bool,
        /// The highest multicast LID in use.
        [18:0; 16] multicast_top: u16,
    }

    /// 64 entries of the linear forwarding table: the modifier is the block.
    ForwardingBlock = 0x0019, 64 bytes {
        /// The port of each LID; see [`ForwardingBlock::NO_PORT`].
        [0:0; 512] ports: [u8; 64],
    }

    /// 32 entries of the multicast forwarding table, for 16 ports. The modifier is the block, and above bit 28 which ports.
    MulticastBlock = 0x001b, 64 bytes {
        /// The set of ports of each multicast LID.
        [0:0; 512] ports: [u16; 32],
    }
}

impl ForwardingBlock {
    /// LIDs of one block.
    pub const LIDS: usize = 64;
    /// The entry of a LID that leads nowhere.
    pub const NO_PORT: u8 = 0xff;
    /// A block of LIDs that lead nowhere.
    pub const EMPTY: Self = Self {
        ports: [Self::NO_PORT; Self::LIDS],
    };
}

impl MulticastBlock {
    /// LIDs of one block.
    pub const LIDS: usize = 32;
    /// Ports of one block.
    pub const PORTS: usize = 16;

    /// The modifier for block `block` and ports from 16 × `position` on.
    pub const fn modifier(position: u8, block: u16) -> u32 {
        (position as u32) << 28 | (block & 0x1ff) as u32
    }
}
