//! What the fields of management attributes hold: states, widths, speeds, MTUs, rates, capabilities.

use softfabric_units::{Bytes, Rate};

use super::table::{codes, sets};

codes! {
    /// What kind of node (IBTA vol. 1, table 151).
    NodeType(u8) {
        /// A channel adapter: a host.
        CHANNEL_ADAPTER = 1,
        /// A switch.
        SWITCH = 2,
        /// A router.
        ROUTER = 3,
    }

    /// How far a port's link has come (IBTA vol. 1, 7.2).
    PortState(u8) {
        /// In a Set: leave it.
        NO_CHANGE = 0,
        /// No link.
        DOWN = 1,
        /// The link is up; only subnet management passes.
        INITIALISE = 2,
        /// Configured, waits for the others.
        ARMED = 3,
        /// Data passes.
        ACTIVE = 4,
    }

    /// What the physical layer does (IBTA vol. 2, 5.6).
    PhysicalState(u8) {
        /// In a Set: leave it.
        NO_CHANGE = 0,
        /// Quiet.
        SLEEP = 1,
        /// Looks for the other end.
        POLLING = 2,
        /// Turned off.
        DISABLED = 3,
        /// Trains.
        TRAINING = 4,
        /// Up.
        LINK_UP = 5,
        /// Trains again after errors.
        ERROR_RECOVERY = 6,
    }

    /// A set of link widths, in lanes.
    LinkWidths(u8) {
        /// One lane.
        X1 = 1,
        /// Four.
        X4 = 2,
        /// Eight.
        X8 = 4,
        /// Twelve.
        X12 = 8,
        /// Two.
        X2 = 16,
    }

    /// A set of the first three lane speeds.
    LinkSpeeds(u8) {
        /// 2.5 Gb/s.
        SDR = 1,
        /// 5 Gb/s.
        DDR = 2,
        /// 10 Gb/s.
        QDR = 4,
    }

    /// A set of the lane speeds that came later; they count where one of them is active.
    ExtendedSpeeds(u8) {
        /// 14.0625 Gb/s.
        FDR = 1,
        /// 25.78125 Gb/s.
        EDR = 2,
        /// 53.125 Gb/s.
        HDR = 4,
        /// 106.25 Gb/s.
        NDR = 8,
    }

    /// The largest payload, as a code 1–5.
    MtuCode(u8) {
        /// 256 bytes.
        B256 = 1,
        /// 512 bytes.
        B512 = 2,
        /// 1024 bytes.
        B1024 = 3,
        /// 2048 bytes.
        B2048 = 4,
        /// 4096 bytes.
        B4096 = 5,
    }

    /// How many data lanes, as a code.
    LaneCount(u8) {
        /// VL 0.
        ONE = 1,
        /// VL 0 and 1.
        TWO = 2,
        /// VL 0 to 3.
        FOUR = 3,
        /// VL 0 to 7.
        EIGHT = 4,
        /// VL 0 to 14.
        FIFTEEN = 5,
    }

    /// A path's rate, as a code (IBTA vol. 1, table 224 and its successors).
    RateCode(u8) {}

    /// How to read a path's MTU, rate or lifetime.
    Selector(u8) {
        /// More than it.
        GREATER = 0,
        /// Less than it.
        LESS = 1,
        /// It.
        EXACTLY = 2,
        /// The largest that there is; for lifetimes, the smallest.
        BEST = 3,
    }

    /// CapabilityMask of PortInfo (IBTA vol. 1, table 155).
    PortCapabilities(u32) {
        /// A subnet manager is there.
        IS_SM = 1 << 1,
        /// It keeps notices.
        NOTICE = 1 << 2,
        /// It sends traps.
        TRAP = 1 << 3,
        /// It can migrate paths by itself.
        AUTOMATIC_MIGRATION = 1 << 5,
        /// It maps service levels to lanes.
        SL_MAPPING = 1 << 6,
        /// A subnet manager is there and is disabled.
        SM_DISABLED = 1 << 10,
        /// The system has a GUID.
        SYSTEM_IMAGE_GUID = 1 << 11,
        /// Speeds above QDR.
        EXTENDED_SPEEDS = 1 << 14,
        /// [`super::subnet::PortInfo::capabilities_2`] counts.
        CAPABILITIES_2 = 1 << 15,
        /// Connections.
        COMMUNICATION_MANAGEMENT = 1 << 16,
        /// Device management.
        DEVICE_MANAGEMENT = 1 << 19,
        /// A vendor's class.
        VENDOR_CLASS = 1 << 20,
        /// A trap when the mask changes.
        CAPABILITY_NOTICE = 1 << 22,
        /// It takes ClientReregister.
        CLIENT_REREGISTRATION = 1 << 25,
        /// A trap when other things change.
        OTHER_LOCAL_CHANGES = 1 << 26,
        /// [`super::subnet::SwitchInfo::multicast_top`] counts.
        MULTICAST_TOP = 1 << 30,
    }

    /// CapabilityMask of a performance or administration agent's ClassPortInfo.
    ClassCapabilities(u16) {
        /// It sends traps.
        TRAP = 1,
        /// It takes Get and Set of notices.
        NOTICE = 1 << 1,
        /// Performance: one request for all ports.
        ALL_PORT_SELECT = 1 << 8,
        /// Performance: 64-bit counters, unicast and multicast apart. Administration: a cooperating second manager.
        EXTENDED_WIDTH = 1 << 9,
        /// Performance: 64-bit counters of data and packets only.
        EXTENDED_WIDTH_NO_IETF = 1 << 10,
        /// Performance: the wait counter is there.
        TRANSMIT_WAIT = 1 << 12,
    }

    /// A set of subnet administration's components: those that a query fixes (IBTA vol. 1, 15.4.4).
    ComponentMask(u64) {}

    /// The states of a subnet manager (IBTA vol. 1, 14.4.1).
    ManagerState(u8) {
        /// Off.
        NOT_ACTIVE = 0,
        /// It looks for others.
        DISCOVERING = 1,
        /// Another one manages.
        STANDBY = 2,
        /// It manages.
        MASTER = 3,
    }
}

sets!(
    LinkWidths,
    LinkSpeeds,
    ExtendedSpeeds,
    PortCapabilities,
    ClassCapabilities,
    ComponentMask
);

impl MtuCode {
    /// The payload, where the code has one.
    pub const fn bytes(self) -> Option<Bytes> {
        match self.0 {
            1..=5 => Some(Bytes::new(128 << self.0)),
            _ => None,
        }
    }
}

impl LaneCount {
    /// The number of data lanes, where the code has one.
    pub const fn lanes(self) -> Option<u8> {
        match self.0 {
            1 => Some(1),
            2 => Some(2),
            3 => Some(4),
            4 => Some(8),
            5 => Some(15),
            _ => None,
        }
    }

    /// The code of the most lanes, up to `lanes`.
    pub const fn at_most(lanes: u8) -> Self {
        match lanes {
            0 | 1 => Self::ONE,
            2 | 3 => Self::TWO,
            4..=7 => Self::FOUR,
            8..=14 => Self::EIGHT,
            _ => Self::FIFTEEN,
        }
    }
}

impl LinkWidths {
    /// How many lanes, where it is one width.
    pub const fn lanes(self) -> Option<u8> {
        match self {
            Self::X1 => Some(1),
            Self::X2 => Some(2),
            Self::X4 => Some(4),
            Self::X8 => Some(8),
            Self::X12 => Some(12),
            _ => None,
        }
    }

    /// The widest of the set.
    pub const fn widest(self) -> Option<Self> {
        const BY_WIDTH: [LinkWidths; 5] = [
            LinkWidths::X12,
            LinkWidths::X8,
            LinkWidths::X4,
            LinkWidths::X2,
            LinkWidths::X1,
        ];
        let mut index = 0;
        while index < BY_WIDTH.len() {
            if self.contains(BY_WIDTH[index]) {
                return Some(BY_WIDTH[index]);
            }
            index += 1;
        }
        None
    }
}

/// Codes of rates, each with its nominal rate: 2.5 Gb/s units × lanes, and what FDR to NDR are called.
const RATES: [(u8, Rate); 23] = [
    (2, Rate::mbps(2_500)),
    (5, Rate::gbps(5)),
    (3, Rate::gbps(10)),
    (11, Rate::gbps(14)),
    (6, Rate::gbps(20)),
    (15, Rate::gbps(25)),
    (19, Rate::gbps(28)),
    (4, Rate::gbps(30)),
    (7, Rate::gbps(40)),
    (20, Rate::gbps(50)),
    (12, Rate::gbps(56)),
    (8, Rate::gbps(60)),
    (9, Rate::gbps(80)),
    (16, Rate::gbps(100)),
    (13, Rate::gbps(112)),
    (10, Rate::gbps(120)),
    (14, Rate::gbps(168)),
    (17, Rate::gbps(200)),
    (18, Rate::gbps(300)),
    (21, Rate::gbps(400)),
    (22, Rate::gbps(600)),
    (23, Rate::gbps(800)),
    (24, Rate::gbps(1_200)),
];

impl RateCode {
    /// The nominal rate, where the code has one.
    pub fn rate(self) -> Option<Rate> {
        let found = RATES.iter().find(|(code, _)| *code == self.0);
        found.map(|(_, rate)| *rate)
    }

    /// The code of the highest rate up to `rate`; the lowest where there is none.
    pub fn at_most(rate: Rate) -> Self {
        let fitting = RATES.iter().rev().find(|(_, known)| *known <= rate);
        Self(fitting.unwrap_or(&RATES[0]).0)
    }

    /// The code of a link, where width and speed are one each.
    pub fn of_link(width: LinkWidths, speed: LinkSpeeds, extended: ExtendedSpeeds) -> Option<Self> {
        let per_lane = match (extended, speed) {
            (ExtendedSpeeds::FDR, _) => Rate::gbps(14),
            (ExtendedSpeeds::EDR, _) => Rate::gbps(25),
            (ExtendedSpeeds::HDR, _) => Rate::gbps(50),
            (ExtendedSpeeds::NDR, _) => Rate::gbps(100),
            (_, LinkSpeeds::SDR) => Rate::mbps(2_500),
            (_, LinkSpeeds::DDR) => Rate::gbps(5),
            (_, LinkSpeeds::QDR) => Rate::gbps(10),
            _ => return None,
        };
        let lanes = u64::from(width.lanes()?);
        Some(Self::at_most(Rate::bps(per_lane.as_bps() * lanes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_rates() {
        let link = |width, speed, extended| {
            RateCode::of_link(width, speed, extended).and_then(RateCode::rate)
        };
        assert_eq!(
            link(LinkWidths::X4, LinkSpeeds::QDR, ExtendedSpeeds::HDR),
            Some(Rate::gbps(200))
        );
        assert_eq!(
            link(LinkWidths::X4, LinkSpeeds::QDR, ExtendedSpeeds::NONE),
            Some(Rate::gbps(40))
        );
        assert_eq!(
            link(LinkWidths::X4, LinkSpeeds::NONE, ExtendedSpeeds::FDR),
            Some(Rate::gbps(56))
        );
        assert_eq!(
            link(LinkWidths(3), LinkSpeeds::QDR, ExtendedSpeeds::HDR),
            None
        );
        assert!(RATES.windows(2).all(|pair| pair[0].1 < pair[1].1));
        assert_eq!(
            RateCode::at_most(Rate::gbps(99)).rate(),
            Some(Rate::gbps(80))
        );
    }

    #[test]
    fn counts_and_sizes() {
        assert_eq!(MtuCode::B4096.bytes(), Some(Bytes::new(4096)));
        assert_eq!(MtuCode(6).bytes(), None);
        assert_eq!(LaneCount::at_most(9).lanes(), Some(8));
        assert_eq!(LinkWidths(3).widest(), Some(LinkWidths::X4));
        assert_eq!(LinkWidths::NONE.widest(), None);
    }
}
