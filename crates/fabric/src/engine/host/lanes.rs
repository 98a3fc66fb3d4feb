//! The InfiniBand side of a NIC: which of its flows' packets may go, by lane and credit.

use softfabric_units::{Class, ClassMask};

use crate::engine::frame::Frame;
use crate::engine::infiniband::{Arbiter, Credits, LaneMask};
use crate::plan::{Infiniband, Lanes, SERVICE_LEVELS};

/// The lanes of a host's port.
#[derive(Debug)]
pub(crate) struct HostLanes {
    pub(crate) credits: Credits,
    pub(super) arbiter: Arbiter,
    /// The service level of each traffic class of the plan, for paths that have none of their own; and by which lane each
    /// level leaves.
    level: [u8; Class::COUNT],
    lane_of_level: [u8; SERVICE_LEVELS],
    /// The lanes that flows use.
    used: LaneMask,
    /// The length of a full packet: a lane may send while it has credit for one.
    longest: u32,
}

impl HostLanes {
    /// The lanes of a port; with `any_level`, paths have levels of their own.
    pub(crate) fn new(settings: &Infiniband, lanes: &Lanes, longest: u32, any_level: bool) -> Self {
        let level = settings.service_levels.map(|level| level & 0xf);
        let of_classes = level.map(|level| lanes.of_level[usize::from(level)]);
        let mut used = of_classes.iter().fold(0, |used, lane| used | 1 << lane);
        if any_level {
            used = (lanes.of_level.iter()).fold(used, |used, lane| used | 1 << lane);
        }
        Self {
            credits: Credits::new(lanes),
            arbiter: Arbiter::new(&lanes.arbitration),
            level,
            lane_of_level: lanes.of_level,
            used,
            longest,
        }
    }

    /// The level of packets of a traffic class on a path, which may have a level of its own; and the class in which the
    /// transport queues them: eight lanes are told apart there.
    pub(super) fn level_and_class(&self, class: Class, of_path: Option<u8>) -> (u8, Class) {
        let level = of_path.unwrap_or(self.level[class.index()]) & 0xf;
        (
            level,
            Class::new(self.lane_of_level[usize::from(level)] & 7),
        )
    }

    /// The classes of the transport whose packets leave by a lane.
    pub(super) fn classes_of(lane: u8) -> ClassMask {
        ClassMask::of(Class::new(lane & 7))
    }

    /// The lanes that have credit for any packet. Of two that the transport does not tell apart, both or neither.
    pub(super) fn open(&self) -> LaneMask {
        let mut closed = 0;
        let mut lanes = self.used;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            lanes &= lanes - 1;
            if !self.credits.may_send(lane, self.longest) {
                closed |= (1 << lane) | (1 << (lane ^ 8));
            }
        }
        self.used & !closed
    }

    /// Puts service level and lane on a packet.
    pub(super) fn mark(&self, frame: &mut Frame, level: u8) {
        let lane = self.lane_of_level[usize::from(level & 0xf)];
        frame.mark = level << 4;
        frame.set_lane(lane);
    }
}
