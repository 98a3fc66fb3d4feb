//! The records of subnet administration (IBTA vol. 1, 15.2.5).

use softfabric_units::{Gid, Lid, PartitionKey, Qpn};

use crate::infiniband::ServiceLevel;
use crate::mad::cm::ServiceId;
use crate::mad::subnet::{
    ForwardingBlock, GuidInfo, MulticastBlock, NodeDescription, NodeInfo, NoticeType,
    PartitionTable, PortInfo, Producer, ServiceLevelMap, SmInfo, SwitchInfo, VlArbitration,
};
use crate::mad::table::attributes;
use crate::mad::{MtuCode, RateCode, Selector};

attributes! {
    /// A node, seen through one of its ports.
    NodeRecord = 0x0011, 108 bytes {
        /// The port.
        [0:0; 16] lid: Lid,
        /// What it says of the node.
        [4:0; 320 in NodeInfo] info: NodeInfo,
        /// The node's name.
        [44:0; 512] description: NodeDescription,
    }

    /// A port.
    PortInfoRecord = 0x0012, 68 bytes {
        /// The port; of a switch, port 0.
        [0:0; 16] lid: Lid,
        /// Its number.
        [2:0; 8] port: u8,
        /// Bit 0: capabilities match where the record has all that the query has.
        [3:0; 8] options: u8,
        /// What it says.
        [4:0; 512 in PortInfo] info: PortInfo,
    }

    /// A switch.
    SwitchInfoRecord = 0x0014, 24 bytes {
        /// Its port 0.
        [0:0; 16] lid: Lid,
        /// What it says.
        [4:0; 160 in SwitchInfo] info: SwitchInfo,
    }

    /// Service level → lane, of a pair of ports.
    LevelMapRecord = 0x0013, 16 bytes {
        /// The node.
        [0:0; 16] lid: Lid,
        /// Packets that come in here.
        [2:0; 8] input: u8,
        /// And go out here.
        [3:0; 8] output: u8,
        /// The lanes.
        [8:0; 64] map: ServiceLevelMap,
    }

    /// 64 entries of a linear forwarding table.
    ForwardingRecord = 0x0015, 72 bytes {
        /// The switch.
        [0:0; 16] lid: Lid,
        /// Which entries.
        [2:0; 16] block: u16,
        /// The entries.
        [8:0; 512] ports: ForwardingBlock,
    }

    /// 32 entries of a multicast forwarding table, of 16 ports.
    MulticastForwardingRecord = 0x0017, 72 bytes {
        /// The switch.
        [0:0; 16] lid: Lid,
        /// Which ports.
        [2:0; 4] position: u8,
        /// Which entries.
        [2:7; 9] block: u16,
        /// The entries.
        [8:0; 512] ports: MulticastBlock,
    }

    /// A subnet manager.
    SmInfoRecord = 0x0018, 28 bytes {
        /// Its port.
        [0:0; 16] lid: Lid,
        /// What it says.
        [4:0; 192 in SmInfo] info: SmInfo,
    }

    /// A cable, in one direction.
    LinkRecord = 0x0020, 6 bytes {
        /// The node that it leaves.
        [0:0; 16] from_lid: Lid,
        /// By this port.
        [2:0; 8] from_port: u8,
        /// The port that it comes to.
        [3:0; 8] to_port: u8,
        /// Of this node.
        [4:0; 16] to_lid: Lid,
    }

    /// Eight GUIDs of a port.
    GuidInfoRecord = 0x0030, 72 bytes {
        /// The port.
        [0:0; 16] lid: Lid,
        /// Which GUIDs.
        [2:0; 8] block: u8,
        /// The GUIDs.
        [8:0; 512 in GuidInfo] guids: GuidInfo,
    }

    /// A service that somebody offers.
    ServiceRecord = 0x0031, 176 bytes {
        /// The service.
        [0:0; 64] id: ServiceId,
        /// Who offers it.
        [8:0; 128] gid: Gid,
        /// In which partition.
        [24:0; 16] partition: PartitionKey,
        /// How long the offer holds, in seconds; all ones is for ever.
        [28:0; 32] lease: u32,
        /// Who knows this may change the offer.
        [32:0; 128] key: [u8; 16],
        /// Its name, ended by a zero where shorter.
        [48:0; 512] name: [u8; 64],
        /// The service's own.
        [112:0; 128 x 16] data8: [u8; 16],
        /// The service's own.
        [128:0; 128 x 8] data16: [u16; 8],
        /// The service's own.
        [144:0; 128 x 4] data32: [u32; 4],
        /// The service's own.
        [160:0; 128 x 2] data64: [u64; 2],
    }

    /// 32 entries of a partition table.
    PartitionTableRecord = 0x0033, 72 bytes {
        /// The node.
        [0:0; 16] lid: Lid,
        /// Which entries.
        [2:0; 16] block: u16,
        /// Of which port.
        [4:0; 8] port: u8,
        /// The entries.
        [8:0; 512] keys: PartitionTable,
    }

    /// 32 entries of lane arbitration.
    VlArbitrationRecord = 0x0036, 72 bytes {
        /// The node.
        [0:0; 16] lid: Lid,
        /// The port that they are of.
        [2:0; 8] port: u8,
        /// Which entries: 1 and 2 low, 3 and 4 high.
        [3:0; 8] block: u8,
        /// The entries.
        [8:0; 512] entries: VlArbitration,
    }

    /// A path between two ports, with what to put into packets that take it.
    PathRecord = 0x0035, 64 bytes {
        /// The service that it is for, or zero.
        [0:0; 64 x 2] service: ServiceId,
        /// Where it ends.
        [8:0; 128] destination_gid: Gid,
        /// Where it starts.
        [24:0; 128] source_gid: Gid,
        /// Where it ends.
        [40:0; 16] destination_lid: Lid,
        /// Where it starts.
        [42:0; 16] source_lid: Lid,
        /// For raw packets.
        [44:0; 1] raw: bool,
        /// The flow label.
        [44:4; 20] flow_label: u32,
        /// How many routers it may pass.
        [47:0; 8] hop_limit: u8,
        /// The traffic class.
        [48:0; 8] traffic_class: u8,
        /// The way back has the same properties.
        [49:0; 1] reversible: bool,
        /// How many paths are wanted.
        [49:1; 7] paths: u8,
        /// The partition.
        [50:0; 16] partition: PartitionKey,
        /// The class of service.
        [52:0; 12] qos_class: u16,
        /// The service level.
        [53:4; 4] level: ServiceLevel,
        /// How to read the MTU.
        [54:0; 2] mtu_selector: Selector,
        /// The MTU.
        [54:2; 6] mtu: MtuCode,
        /// How to read the rate.
        [55:0; 2] rate_selector: Selector,
        /// The rate.
        [55:2; 6] rate: RateCode,
        /// How to read the lifetime.
        [56:0; 2] lifetime_selector: Selector,
        /// How long a packet lives on it: 4.096 µs · 2ⁿ.
        [56:2; 6] lifetime: u8,
        /// Lower is better, among several.
        [57:0; 8] preference: u8,
    }

    /// Which paths are wanted between any of several ports and any of several others: the answers are [`PathRecord`]s.
    MultiPathRecord = 0x003a, 24 bytes {
        /// For raw packets.
        [0:0; 1] raw: bool,
        /// The flow label.
        [0:4; 20] flow_label: u32,
        /// How many routers they may pass.
        [3:0; 8] hop_limit: u8,
        /// The traffic class.
        [4:0; 8] traffic_class: u8,
        /// The ways back have the same properties.
        [5:0; 1] reversible: bool,
        /// How many paths are wanted at most.
        [5:1; 7] paths: u8,
        /// The partition.
        [6:0; 16] partition: PartitionKey,
        /// The class of service.
        [8:0; 12] qos_class: u16,
        /// The service level.
        [9:4; 4] level: ServiceLevel,
        /// How to read the MTU.
        [10:0; 2] mtu_selector: Selector,
        /// The MTU.
        [10:2; 6] mtu: MtuCode,
        /// How to read the rate.
        [11:0; 2] rate_selector: Selector,
        /// The rate.
        [11:2; 6] rate: RateCode,
        /// How to read the lifetime.
        [12:0; 2] lifetime_selector: Selector,
        /// How long a packet lives on them: 4.096 µs · 2ⁿ.
        [12:2; 6] lifetime: u8,
        /// The service that they are for, its first byte.
        [13:0; 8] service_high: u8,
        /// 1: as many as possible are to have no link in common.
        [14:0; 2] independence: u8,
        /// How many GIDs follow of ports where they may start.
        [15:0; 8] sources: u8,
        /// How many follow those, of ports where they may end.
        [16:0; 8] destinations: u8,
        /// The service, its other bytes.
        [17:0; 56] service_low: u64,
    }

    /// A port's membership of a multicast group, and the group.
    MemberRecord = 0x0038, 52 bytes {
        /// The group.
        [0:0; 128] group: Gid,
        /// The port.
        [16:0; 128] port: Gid,
        /// The queue key of the group.
        [32:0; 32] qkey: u32,
        /// The local identifier of the group.
        [36:0; 16] lid: Lid,
        /// How to read the MTU.
        [38:0; 2] mtu_selector: Selector,
        /// The MTU.
        [38:2; 6] mtu: MtuCode,
        /// The traffic class.
        [39:0; 8] traffic_class: u8,
        /// The partition.
        [40:0; 16] partition: PartitionKey,
        /// How to read the rate.
        [42:0; 2] rate_selector: Selector,
        /// The rate.
        [42:2; 6] rate: RateCode,
        /// How to read the lifetime.
        [43:0; 2] lifetime_selector: Selector,
        /// How long a packet lives: 4.096 µs · 2ⁿ.
        [43:2; 6] lifetime: u8,
        /// The service level.
        [44:0; 4] level: ServiceLevel,
        /// The flow label.
        [44:4; 20] flow_label: u32,
        /// How many routers packets may pass.
        [47:0; 8] hop_limit: u8,
        /// How far the group reaches.
        [48:0; 4] scope: u8,
        /// How the port is a member: bit 0 full, 1 none, 2 sends only.
        [48:4; 4] join_state: u8,
        /// Somebody else joined for the port.
        [49:0; 1] proxy_join: bool,
    }

    /// Who wants to hear of what.
    InformInfo = 0x0003, 36 bytes {
        /// Of this port; zero: of those between the identifiers below.
        [0:0; 128] gid: Gid,
        /// From here; all ones: of all.
        [16:0; 16] first_lid: Lid,
        /// To here.
        [18:0; 16] last_lid: Lid,
        /// 1: generic notices, 0: a vendor's.
        [22:0; 8] generic: u8,
        /// 1: begin, 0: stop.
        [23:0; 8] subscribe: u8,
        /// How bad; all ones: of all.
        [24:0; 16] kind: u16,
        /// Which trap, or a vendor's device; all ones: of all.
        [26:0; 16] number: u16,
        /// Who takes the reports.
        [28:0; 24] qpn: Qpn,
        /// How long that one may take to answer: 4.096 µs · 2ⁿ.
        [31:3; 5] response_time: u8,
        /// Of which kind of node, or vendor.
        [33:0; 24] producer: Producer,
    }

    /// Who has asked to hear of what.
    InformInfoRecord = 0x00f3, 64 bytes {
        /// Who.
        [0:0; 128] subscriber: Gid,
        /// Tells its subscriptions apart.
        [16:0; 16] number: u16,
        /// What.
        [24:0; 288 in InformInfo] info: InformInfo,
    }
}

impl InformInfo {
    /// Whether the subscription is for notices of `kind`: all ones in [`InformInfo::kind`] takes all.
    pub const fn wants(&self, kind: NoticeType) -> bool {
        self.kind == u16::MAX || self.kind == kind.0 as u16
    }
}
