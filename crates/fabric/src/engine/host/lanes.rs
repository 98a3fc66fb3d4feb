//! The InfiniBand side of a NIC: which of its flows' packets may go, by lane and credit.

use softfabric_units::{Class, ClassMask};

use crate::engine::frame::Frame;
use crate::engine::infiniband::{Arbiter, Credits, LaneMask};
use crate::plan::{Infiniband, Lanes};

/// The lanes of a host's port.
#[derive(Debug)]
pub(crate) struct HostLanes {
    pub(crate) credits: Credits,
    pub(super) arbiter: Arbiter,
    /// The service level, and the lane by which it leaves, of each traffic class of the plan.
    level: [u8; Class::COUNT],
    lane: [u8; Class::COUNT],
    /// The lanes that flows use.
    used: LaneMask,
    /// The length of a full packet: a lane may send while it has credit for one.
    longest: u32,
}

impl HostLanes {
    pub(crate) fn new(settings: &Infiniband, lanes: &Lanes, longest: u32) -> Self {
        let level = settings.service_levels.map(|level| level & 0xf);
        let lane = level.map(|level| lanes.of_level[usize::from(level)]);
        Self {
            credits: Credits::new(lanes),
            arbiter: Arbiter::new(&lanes.arbitration),
            level,
            lane,
            used: lane.iter().fold(0, |used, lane| used | 1 << lane),
            longest,
        }
    }

    /// The class in which the transport queues packets of a traffic class: eight lanes are told apart there.
    pub(super) fn class_of(&self, class: Class) -> Class {
        Class::new(self.lane[class.index()] & 7)
    }

    /// The classes of the transport whose packets leave by a lane.
    pub(super) fn classes_of(lane: u8) -> ClassMask {
        ClassMask::of(Class::new(lane & 7))
    }

    /// The lanes that have credit for any packet.
    pub(super) fn open(&self) -> LaneMask {
        let mut open = 0;
        let mut lanes = self.used;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            lanes &= lanes - 1;
            if self.credits.may_send(lane, self.longest) {
                open |= 1 << lane;
            }
        }
        open
    }

    /// Puts service level and lane on a packet of a traffic class.
    pub(super) fn mark(&self, frame: &mut Frame, class: Class) {
        let (level, lane) = (self.level[class.index()], self.lane[class.index()]);
        frame.mark = level << 4;
        frame.set_lane(lane);
    }
}
