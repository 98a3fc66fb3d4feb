//! InfiniBand's congestion control: which packets a switch marks, and how hosts slow down (IBTA vol. 1, annex A10).
//!
//! ```text
//! switch: queue above threshold ─► FECN ─► receiver: BECN back ─► sender: index into a table of waits rises
//!                                                                          (and falls by one each period)
//! ```

use softfabric_transport::rate::{
    InjectionDelayParameters, InjectionTable, RateControlConfig, TIMER_UNIT,
};
use softfabric_units::{Bytes, Span};

use super::{PortId, SERVICE_LEVELS};

/// Congestion control of an InfiniBand fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct InfinibandCongestion {
    /// What switches mark: one for each of [`Infiniband::switches`](super::Infiniband::switches).
    pub switches: Vec<SwitchCongestion>,
    /// How hosts react, where their profile has no rate control of its own. A receiver returns BECN on acknowledgements,
    /// or as its profile's notification point says.
    pub hosts: AdapterCongestion,
}

/// What a switch marks (`SwitchCongestionSetting`, annex A10.4.3.6).
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchCongestion {
    /// How early a lane of a port counts as congested (`Threshold`): 0 never, 1 late, 15 early. The standard leaves the
    /// scale open: here a lane is congested while more than (16 − threshold)/16 of one lane's receive buffer waits behind the
    /// packet that leaves.
    pub threshold: u8,
    /// Shorter packets are not marked (`Packet_Size`, there in units of 64 B): up to 16,320 B, whole units.
    pub packet_size: Bytes,
    /// How many packets that could be marked pass on average between two that are (`Marking_Rate`); 0: all are marked.
    pub marking_rate: u16,
    /// Where packets are marked also while the port waits for credit: it is no root of congestion then, but a victim
    /// (`Victim_Mask`).
    pub victims: SwitchPorts,
    /// How early a lane counts as starved of credit, in the scale of `threshold` (`CS_Threshold`); 0: never.
    pub credit_threshold: u8,
    /// Where packets are marked that leave a lane starved of credit (`Credit_Mask`).
    pub credit_ports: SwitchPorts,
}

/// Some ports of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchPorts {
    /// None.
    None,
    /// Those that hosts are at: a host that takes packets slowly has nobody else to mark them.
    Hosts,
    /// All.
    All,
    /// These.
    These(Vec<PortId>),
}

/// How hosts react to BECN (`CACongestionSetting`, annex A10.4.3.8), each flow for itself.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterCongestion {
    /// By service level.
    pub levels: [LevelReaction; SERVICE_LEVELS],
    /// The congestion control table (annex A10.4.3.9).
    pub table: InjectionTable,
}

/// How the flows of one service level react.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelReaction {
    /// How long until the index of a flow falls by one (`CCTI_Timer`), in whole units of 1.024 µs; zero: it never falls.
    pub timer: Span,
    /// How much a BECN raises the index (`CCTI_Increase`).
    pub increase: u8,
    /// The index at which an event is logged (`Trigger_Threshold`); zero: never.
    pub trigger: u8,
    /// The lowest index (`CCTI_Min`).
    pub minimum: u8,
}

impl SwitchCongestion {
    /// The longest `packet_size`: a byte counts units of 64 B (annex A10.4.3.6).
    pub const LONGEST_PACKET_SIZE: Bytes = Bytes::new(255 * 64);
}

impl Default for SwitchCongestion {
    /// The defaults of the congestion control manager that comes with Mellanox OFED ("Congestion Control Manager for
    /// Mellanox OFED User Guide"); OpenSM's own are all zero.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | `threshold` | 15 | the guide: `threshold` 0xf |
    /// | `packet_size` | 512 B | the guide: `packet_size` 0x200, in bytes |
    /// | `marking_rate` | 10 | the guide: `marking_rate` 0xa |
    /// | `victims` | hosts | assumed: adapters mark nothing, so a slow one is told of by its switch |
    /// | `credit_threshold` | 0 | assumed: as OpenSM's |
    fn default() -> Self {
        Self {
            threshold: 15,
            packet_size: Bytes::new(512),
            marking_rate: 10,
            victims: SwitchPorts::Hosts,
            credit_threshold: 0,
            credit_ports: SwitchPorts::None,
        }
    }
}

impl Default for LevelReaction {
    /// | field | value | source |
    /// |---|---|---|
    /// | `timer` | 150 · 1.024 µs | assumed: the guide computes it from the number of hosts |
    /// | `increase` | 1 | Mellanox OFED's guide (see [`SwitchCongestion`]): `ccti_increase` |
    /// | `trigger` | 2 | the guide: `trigger_threshold` |
    /// | `minimum` | 0 | line rate without congestion |
    fn default() -> Self {
        Self {
            timer: TIMER_UNIT * 150,
            increase: 1,
            trigger: 2,
            minimum: 0,
        }
    }
}

impl Default for AdapterCongestion {
    fn default() -> Self {
        Self {
            levels: [LevelReaction::default(); SERVICE_LEVELS],
            table: Self::table(),
        }
    }
}

impl AdapterCongestion {
    /// The table where none is given: each index adds a quarter of a packet's time to the wait, up to index 127. So the
    /// slowest flow has 1/33 of its line. (Mellanox OFED's manager computes a table from the number of hosts.)
    pub fn table() -> InjectionTable {
        InjectionTable::linear(2, 1, 127).expect("128 entries of a multiplier below 128 fit")
    }

    /// The rate control of a flow of service level `level`, 0–15.
    pub fn rate_control(&self, level: u8) -> RateControlConfig {
        let reaction = &self.levels[usize::from(level & 0xf)];
        RateControlConfig::InjectionDelay(InjectionDelayParameters {
            timer: reaction.timer,
            increase: reaction.increase,
            trigger: reaction.trigger,
            minimum: reaction.minimum,
            table: self.table,
        })
    }
}
