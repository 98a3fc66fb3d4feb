//! What an InfiniBand fabric does: lanes and their credits, who is served, how long packets may wait.

use softfabric_units::{Bytes, Rate, Span};

use super::{Forwarding, InfinibandCongestion, MulticastGroup, Partitions};

/// Service levels: what a packet asks for, 0–15 (IBTA vol. 1, 7.6.5).
pub const SERVICE_LEVELS: usize = 16;
/// Data lanes: 0–14 (IBTA vol. 1, 7.6.1). Lane 15 is for management and no concern of a plan's flows.
pub const DATA_LANES: usize = 15;

/// The link layer of a plan's network.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum LinkLayer {
    /// Ethernet: switches are of `Plan::switch_profiles`, PFC stops what a buffer has no room for.
    #[default]
    Ethernet,
    /// InfiniBand: switches are of [`Infiniband::switches`], and nothing is sent without credit.
    Infiniband(Infiniband),
}

impl LinkLayer {
    /// InfiniBand's settings, where it is that.
    pub const fn infiniband(&self) -> Option<&Infiniband> {
        match self {
            Self::Ethernet => None,
            Self::Infiniband(settings) => Some(settings),
        }
    }
}

/// The settings of an InfiniBand fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Infiniband {
    /// Profiles that the network's switches name by index.
    pub switches: Vec<InfinibandSwitch>,
    /// The ports of hosts.
    pub hosts: Lanes,
    /// The service level of each of the eight traffic classes, on paths that the routing engine gives none.
    pub service_levels: [u8; 8],
    /// How the subnet manager routes.
    pub routing: SubnetRouting,
    /// Switches choose, for each packet, among all ports that the routing engine could have taken.
    pub adaptive: bool,
    /// From a change of a link to new forwarding tables everywhere: the trap, the sweep, the computation, the programming.
    pub repair: Span,
    /// How fast queue pairs send towards links that are slower than their own.
    pub static_rate: StaticRate,
    /// Who may talk to whom; `None`: all are full members of the default partition, and nobody looks.
    pub partitions: Option<Box<Partitions>>,
    /// Multicast groups, in the order of their ids.
    pub multicast: Vec<MulticastGroup>,
    /// Congestion control; `None`: nothing is marked, and nobody slows down but for want of credit.
    pub congestion: Option<Box<InfinibandCongestion>>,
}

impl Infiniband {
    /// The levels of classes where nothing else is said: the same numbers.
    pub const USUAL_LEVELS: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

    /// The service levels that packets may have: those of the classes and groups, or any where paths have their own; each
    /// once, in order.
    pub fn levels_in_use(&self) -> Vec<u8> {
        let mut levels = self.service_levels.map(|level| level & 0xf).to_vec();
        levels.extend((self.multicast.iter()).filter_map(|group| group.level));
        if self.routing.sets_levels() {
            levels = (0..SERVICE_LEVELS as u8).collect();
        }
        levels.sort_unstable();
        levels.dedup();
        levels
    }
}

/// The static rate of queue pairs (IBTA vol. 1, 9.11.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StaticRate {
    /// All send as fast as their port.
    #[default]
    None,
    /// As fast as the slowest link on the path, which the subnet manager's path record says when the connection is made:
    /// after a packet its queue pair waits for a whole number of packet times (inter-packet delay), so that the rate is a
    /// whole part of the port's, and no more than the path's. Responses to reads are not delayed.
    Path,
}

/// The routing engines of a subnet manager: see `softfabric_subnet::routing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SubnetRouting {
    /// Shortest paths, balanced.
    #[default]
    MinHop,
    /// Up towards roots, then down.
    UpDown,
    /// Up by destination (d-mod-k), then down.
    FatTree,
    /// Shortest paths, over as many lanes as it takes to be free of deadlocks.
    Dfsssp,
    /// Dimension order in a torus, with datelines; two lanes.
    Torus,
    /// Inside an acyclic graph of dependencies, over all lanes.
    Nue,
}

impl SubnetRouting {
    /// Whether it may give paths service levels of their own.
    pub const fn sets_levels(self) -> bool {
        matches!(self, Self::Dfsssp | Self::Torus | Self::Nue)
    }
}

/// The behaviour of a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct InfinibandSwitch {
    /// When a packet may leave.
    pub forwarding: Forwarding,
    /// From the arrival that `forwarding` waits for, to the packet's place at its egress port.
    pub latency: Span,
    /// Its ports.
    pub lanes: Lanes,
    /// How long packets may stay in it.
    pub life: PacketLife,
}

/// How long packets may stay in a switch before they are discarded (IBTA vol. 1, 18.2.5.4). Managers program multiples of
/// 4.096 µs by powers of two; `None` is for ever, as are their codes above 19.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PacketLife {
    /// From when the switch knows where a packet goes, until it begins to leave (LifeTimeValue).
    pub in_switch: Option<Span>,
    /// At the head of its lane, where that leads to a switch (HOQLife).
    pub at_head: Option<Span>,
    /// At the head of its lane, where that leads to a host: managers give less here, so that a slow host loses its own
    /// packets before those behind them lose theirs.
    pub at_head_to_host: Option<Span>,
    /// So many packets of a lane in a row that outlive `at_head` stall the lane: for eight times the life at its head it
    /// discards what waits and what comes (VLStallCount, 1–7). `None`: lanes never stall.
    pub stall_count: Option<u8>,
}

impl PacketLife {
    /// The unit of all lives (IBTA vol. 1, 14.2.5.4 and 14.2.5.6).
    pub const UNIT: Span = Span::nanos(4096);
    /// The highest code of a life that ends.
    pub const LONGEST_CODE: u8 = 19;

    /// The life that a code of HOQLife or LifeTimeValue stands for; `None`: for ever.
    pub const fn of_code(code: u8) -> Option<Span> {
        if code > Self::LONGEST_CODE {
            return None;
        }
        Some(Span::picos(Self::UNIT.as_picos() << code))
    }
}

/// The lanes of a port.
#[derive(Clone, Debug, PartialEq)]
pub struct Lanes {
    /// How many data lanes are in operation, 1–15.
    pub count: u8,
    /// The receive buffer of each lane.
    pub buffer: Bytes,
    /// The lane on which a packet of each service level leaves (SL2VL; the same for every input).
    pub of_level: [u8; SERVICE_LEVELS],
    /// Who is served.
    pub arbitration: LaneArbitration,
}

/// Who is served next: the two tables of IBTA vol. 1, 7.6.9.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneArbitration {
    /// Served first, as far as `limit` goes.
    pub high: Vec<LaneWeight>,
    /// Served when nothing of the high table may go, or its limit is used up.
    pub low: Vec<LaneWeight>,
    /// How much of high priority goes before low priority has a turn, in units of 4 KiB: 0 is one packet, 255 no limit.
    pub limit: u8,
}

/// An entry of an arbitration table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneWeight {
    /// The data lane.
    pub lane: u8,
    /// What it may send in a turn, in units of 64 B; 0 skips the entry.
    pub weight: u8,
}

impl Lanes {
    /// `count` lanes of `buffer` each; service levels go round them, and all are served alike.
    pub fn alike(count: u8, buffer: Bytes) -> Self {
        let count = count.clamp(1, DATA_LANES as u8);
        let entry = |lane| LaneWeight { lane, weight: 64 };
        Self {
            count,
            buffer,
            of_level: std::array::from_fn(|level| (level as u8) % count),
            arbitration: LaneArbitration {
                high: Vec::new(),
                low: (0..count).map(entry).collect(),
                limit: 0,
            },
        }
    }
}

/// What a lane carries at a signalling rate (IBTA vol. 1, 5.2 and vol. 2; the encoding takes its share).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaneSpeed {
    /// 2.5 Gb/s, 8b/10b.
    Sdr,
    /// 5 Gb/s, 8b/10b.
    Ddr,
    /// 10 Gb/s, 8b/10b.
    Qdr,
    /// 10.3125 Gb/s, 64b/66b.
    Fdr10,
    /// 14.0625 Gb/s, 64b/66b.
    Fdr,
    /// 25.78125 Gb/s, 64b/66b.
    Edr,
    /// 53.125 Gb/s, 256b/257b and forward error correction.
    Hdr,
    /// 106.25 Gb/s, 256b/257b and forward error correction.
    Ndr,
    /// 212.5 Gb/s, 256b/257b and forward error correction.
    Xdr,
}

impl LaneSpeed {
    /// What a link of `width` lanes (1, 2, 4, 8 or 12) carries.
    pub const fn data_rate(self, width: u8) -> Rate {
        let lane = match self {
            Self::Sdr => 2_000_000_000,
            Self::Ddr => 4_000_000_000,
            Self::Qdr => 8_000_000_000,
            Self::Fdr10 => 10_000_000_000,
            // 14.0625 · 64 / 66.
            Self::Fdr => 13_636_363_636,
            Self::Edr => 25_000_000_000,
            Self::Hdr => 50_000_000_000,
            Self::Ndr => 100_000_000_000,
            Self::Xdr => 200_000_000_000,
        };
        Rate::bps(lane * width as u64)
    }
}
