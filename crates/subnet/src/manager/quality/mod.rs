//! Quality of service: the lanes of ports, how levels map to them and how they take turns, and which traffic has which level.
//!
//! ```text
//!   traffic ──► Policy ──► service level ──► SL2VL of each hop ──► lane ──► VL arbitration: high table, low table
//!               rules,     in answers to     what LaneSettings    turns of (lane, weight in 64 bytes); the high one
//!               partitions path queries      say for the kind     sends at most `high_limit` × 4 KiB before the low one
//! ```
//!
//! What no setting names is as OpenSM has it: level n has lane n, lane 0 the only turn in the high table, the others turns of
//! 256 bytes in the low one. A port folds lanes that it has not into those that it has, and takes as many entries of a table
//! as there is room for (IBTA vol. 1, 7.6.6, 7.6.9).

mod policy;
mod program;

use softfabric_wire::infiniband::VirtualLane;
use softfabric_wire::mad::subnet::{LaneWeight, ServiceLevelMap, VlArbitration};
use thiserror::Error;

pub use policy::{Level, Policy, PolicyError, Request as PathRequest, Rule};

/// The data lanes that there can be.
pub const MOST_LANES: u8 = 15;
/// Entries of the largest table of arbitration.
pub const MOST_TURNS: usize = 64;
/// The weight of a turn that no setting names, in 64 bytes.
const USUAL_WEIGHT: u8 = 4;
/// The lane of level 15 that no setting names.
const LAST_LEVEL: u8 = 7;

/// Kinds of ports that may be set apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortKind {
    /// Of adapters.
    Adapter,
    /// Port 0 of switches, where it is an enhanced one.
    SwitchPort0,
    /// Ports of switches that take cables.
    Switch,
    /// Of routers.
    Router,
}

impl PortKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Adapter, Self::SwitchPort0, Self::Switch, Self::Router];

    const fn index(self) -> usize {
        match self {
            Self::Adapter => 0,
            Self::SwitchPort0 => 1,
            Self::Switch => 2,
            Self::Router => 3,
        }
    }

    /// What messages call the ports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adapter => "ports of adapters",
            Self::SwitchPort0 => "enhanced ports 0 of switches",
            Self::Switch => "ports of switches",
            Self::Router => "ports of routers",
        }
    }
}

/// What ports are told of their lanes; `None` is as in general.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LaneSettings {
    /// How many data lanes they use, 1–15; a port must have that many. Both ends of a cable use as many as the lower of both.
    pub most_lanes: Option<u8>,
    /// How much the high table may send at a stretch, in 4 KiB: 0 is one packet, 255 without end.
    pub high_limit: Option<u8>,
    /// The high table: turns in their order, at most [`MOST_TURNS`].
    pub high: Option<Vec<LaneWeight>>,
    /// The low table.
    pub low: Option<Vec<LaneWeight>>,
    /// The lane of each level.
    pub lanes: Option<ServiceLevelMap>,
}

/// What ports of one kind are told, with nothing left open.
#[derive(Clone, Debug)]
struct Told<'a> {
    most_lanes: Option<u8>,
    high_limit: u8,
    high: Vec<LaneWeight>,
    low: Vec<LaneWeight>,
    /// The lane of each level, and whether a setting names it.
    lanes: (ServiceLevelMap, Option<&'a ServiceLevelMap>),
}

/// Everything about quality of service.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct QualityOfService {
    /// All ports.
    pub general: LaneSettings,
    kinds: [LaneSettings; 4],
    /// Which traffic has which level.
    pub policy: Policy,
}

/// Settings that contradict each other.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum QualityError {
    /// Not a number of lanes.
    #[error("{kind} are to use {lanes} lanes, needed 1 to {MOST_LANES}")]
    Lanes {
        /// Which ports.
        kind: &'static str,
        /// How many were asked for.
        lanes: u8,
    },
    /// Too many turns.
    #[error(
        "the {table} table of {kind} has {turns} turns, and ports have room for {MOST_TURNS} at most"
    )]
    Turns {
        /// Which ports.
        kind: &'static str,
        /// high or low.
        table: &'static str,
        /// How many were asked for.
        turns: usize,
    },
    /// Nobody could send on a level that the policy gives.
    #[error(
        "the policy gives level {sl} ({name}), and {kind} drop its packets (lane 15): map it to a data lane, or choose another level"
    )]
    Dropped {
        /// What has the level.
        name: String,
        /// The level.
        sl: u8,
        /// Which ports.
        kind: &'static str,
    },
}

impl QualityOfService {
    /// The settings of one kind of ports.
    pub const fn kind(&self, kind: PortKind) -> &LaneSettings {
        &self.kinds[kind.index()]
    }

    /// The settings of one kind of ports, to change them.
    pub const fn kind_mut(&mut self, kind: PortKind) -> &mut LaneSettings {
        &mut self.kinds[kind.index()]
    }

    /// Whether settings and policy agree.
    ///
    /// # Errors
    /// With what contradicts what.
    pub fn check(&self) -> Result<(), QualityError> {
        for kind in PortKind::ALL {
            let told = self.told(kind);
            let name = kind.name();
            if let Some(lanes) = told.most_lanes
                && !(1..=MOST_LANES).contains(&lanes)
            {
                return Err(QualityError::Lanes { kind: name, lanes });
            }
            for (table, turns) in [("high", told.high.len()), ("low", told.low.len())] {
                if turns > MOST_TURNS {
                    return Err(QualityError::Turns {
                        kind: name,
                        table,
                        turns,
                    });
                }
            }
        }
        for level in self.policy.levels() {
            // Where packets start, and where they pass.
            for kind in [PortKind::Adapter, PortKind::Switch] {
                if self.drops(kind, level.sl) {
                    return Err(QualityError::Dropped {
                        name: level.name.clone(),
                        sl: level.sl,
                        kind: kind.name(),
                    });
                }
            }
        }
        Ok(())
    }

    fn told(&self, kind: PortKind) -> Told<'_> {
        let (own, general) = (self.kind(kind), &self.general);
        let named = own.lanes.as_ref().or(general.lanes.as_ref());
        let table = |own: &Option<Vec<LaneWeight>>, general: &Option<Vec<LaneWeight>>, high| {
            let named = own.as_ref().or(general.as_ref());
            named.cloned().unwrap_or_else(|| usual_turns(high))
        };
        Told {
            most_lanes: own.most_lanes.or(general.most_lanes),
            high_limit: own.high_limit.or(general.high_limit).unwrap_or(0),
            high: table(&own.high, &general.high, true),
            low: table(&own.low, &general.low, false),
            lanes: (named.copied().unwrap_or_else(usual_lanes), named),
        }
    }

    /// Whether ports of a kind drop packets of a level.
    fn drops(&self, kind: PortKind, sl: u8) -> bool {
        let named = self.kind(kind).lanes.or(self.general.lanes);
        let lane = named.unwrap_or_else(usual_lanes).lanes[usize::from(sl & 15)];
        lane == VirtualLane::MANAGEMENT
    }
}

fn lane(number: u8) -> VirtualLane {
    VirtualLane::checked(number).unwrap_or_default()
}

/// Level n has lane n.
fn usual_lanes() -> ServiceLevelMap {
    let mut map = ServiceLevelMap::default();
    for (place, number) in map
        .lanes
        .iter_mut()
        .zip((0..MOST_LANES).chain([LAST_LEVEL]))
    {
        *place = lane(number);
    }
    map
}

/// One turn for each lane: in the high table only lane 0 has one that counts, in the low table all others.
fn usual_turns(high: bool) -> Vec<LaneWeight> {
    (0..MOST_LANES)
        .map(|number| LaneWeight {
            lane: lane(number),
            weight: if (number == 0) == high {
                USUAL_WEIGHT
            } else {
                0
            },
        })
        .collect()
}

/// Lanes that a port with `lanes` of them has not are folded into those that it has: of their number, the bits count that the
/// port's lanes take.
const fn fold(number: u8, lanes: u8) -> u8 {
    match lanes {
        0 | 1 => 0,
        2..=3 => number & 1,
        4..=7 => number & 3,
        8..=14 => number & 7,
        _ => number,
    }
}

/// The block of a table for a port that has `lanes` data lanes and room for `room` entries; blocks are counted from 0.
fn block_of(turns: &[LaneWeight], block: usize, lanes: u8, room: usize) -> VlArbitration {
    let mut table = VlArbitration::default();
    let first = block * table.entries.len();
    let fits = turns.get(first..).unwrap_or_default();
    let fits = fits.iter().take(room.saturating_sub(first));
    for (place, turn) in table.entries.iter_mut().zip(fits) {
        *place = LaneWeight {
            lane: lane(fold(turn.lane.as_u8(), lanes)),
            weight: turn.weight,
        };
    }
    table
}

/// The lanes of levels at a port that has `lanes` data lanes; what is dropped stays so.
fn folded(map: &ServiceLevelMap, lanes: u8) -> ServiceLevelMap {
    let mut folded = *map;
    for place in &mut folded.lanes {
        if *place != VirtualLane::MANAGEMENT {
            *place = lane(fold(place.as_u8(), lanes));
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(pairs: &[(u8, u8)]) -> Vec<LaneWeight> {
        let turn = |(number, weight): &(u8, u8)| LaneWeight {
            lane: lane(*number),
            weight: *weight,
        };
        pairs.iter().map(turn).collect()
    }

    #[test]
    fn lanes_that_a_port_has_not_are_folded() {
        let folded: Vec<u8> = (0..15).map(|number| fold(number, 4)).collect();
        assert_eq!(folded, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2]);
        assert_eq!((fold(14, 15), fold(14, 8), fold(7, 1)), (14, 6, 0));
        let mut map = usual_lanes();
        map.lanes[3] = VirtualLane::MANAGEMENT;
        let lanes = super::folded(&map, 2).lanes.map(VirtualLane::as_u8);
        assert_eq!(lanes, [0, 1, 0, 15, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn tables_end_where_the_room_ends() {
        let long: Vec<(u8, u8)> = (0..40).map(|turn| (turn % 8, turn + 1)).collect();
        let long = turns(&long);
        let first = block_of(&long, 0, 8, 34);
        let second = block_of(&long, 1, 8, 34);
        assert_eq!(first.entries[31], turns(&[(7, 32)])[0]);
        assert_eq!(second.entries[..2], turns(&[(0, 33), (1, 34)]));
        assert_eq!(second.entries[2], LaneWeight::default());
        assert_eq!(block_of(&long, 0, 8, 1).entries[1], LaneWeight::default());
    }

    #[test]
    fn a_kind_says_what_differs() {
        let mut quality = QualityOfService::default();
        quality.general.high_limit = Some(7);
        quality.kind_mut(PortKind::Switch).low = Some(turns(&[(1, 9)]));
        let (switch, adapter) = (
            quality.told(PortKind::Switch),
            quality.told(PortKind::Adapter),
        );
        assert_eq!((switch.high_limit, adapter.high_limit), (7, 7));
        assert_eq!(switch.low, turns(&[(1, 9)]));
        assert_eq!(adapter.low[..2], turns(&[(0, 0), (1, 4)]));
        assert_eq!(adapter.high[..2], turns(&[(0, 4), (1, 0)]));
        assert_eq!(adapter.lanes.0.lanes[15].as_u8(), 7);
    }

    #[test]
    fn what_contradicts_is_refused() {
        let mut quality = QualityOfService::default();
        assert_eq!(quality.check(), Ok(()));
        let mut map = usual_lanes();
        map.lanes[3] = VirtualLane::MANAGEMENT;
        quality.kind_mut(PortKind::Switch).lanes = Some(map);
        assert_eq!(quality.check(), Ok(()));
        let levels = vec![Level {
            name: "storage".to_owned(),
            sl: 3,
        }];
        quality.policy = Policy::new(levels, Vec::new()).unwrap();
        let told = quality.check().unwrap_err().to_string();
        assert!(
            told.contains("level 3 (storage)") && told.contains("ports of switches"),
            "{told}"
        );
        quality.policy = Policy::default();
        quality.general.most_lanes = Some(16);
        assert!(quality.check().is_err());
        quality.general.most_lanes = None;
        quality.general.high = Some(turns(&[(0, 1); 65]));
        assert!(
            quality
                .check()
                .unwrap_err()
                .to_string()
                .contains("65 turns")
        );
    }
}
