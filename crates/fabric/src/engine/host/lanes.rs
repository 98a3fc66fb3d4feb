//! The InfiniBand side of a NIC: which of its flows' packets may go, by lane and credit.

use softfabric_transport::rate::{InjectionDelayParameters, RateControlConfig};
use softfabric_units::{Class, ClassMask, PartitionKey, Rate};

use super::nic::Nic;

use crate::engine::frame::Frame;
use crate::engine::infiniband::path_rate;
use crate::engine::infiniband::{Arbiter, Credits, LaneMask};
use crate::engine::world::World;
use crate::plan::{Infiniband, SERVICE_LEVELS, StaticRate, shared_keys};

/// The lanes of a host's port.
#[derive(Debug)]
pub(crate) struct HostLanes {
    pub(crate) credits: Credits,
    pub(super) arbiter: Arbiter,
    /// The keys of partitions that the port holds, where it looks at them.
    pub(crate) keys: Option<Box<[PartitionKey]>>,
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
    /// The lanes of a port, over which no packet longer than `longest` goes.
    pub(crate) fn new(settings: &Infiniband, longest: u32) -> Self {
        let lanes = &settings.hosts;
        let level = settings.service_levels.map(|level| level & 0xf);
        let used = (settings.levels_in_use().iter()).fold(0, |used, level| {
            used | 1 << lanes.of_level[usize::from(*level)]
        });
        Self {
            credits: Credits::new(lanes),
            arbiter: Arbiter::new(&lanes.arbitration),
            keys: None,
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

    /// Whether the port holds a key that lets it take a packet (IBTA vol. 1, 10.9.3).
    pub(super) fn takes(&self, frame: &Frame) -> bool {
        let takes = |keys: &[PartitionKey]| keys.iter().any(|key| key.matches(frame.partition()));
        self.keys.as_deref().is_none_or(takes)
    }

    /// Puts service level and lane on a packet.
    pub(super) fn mark(&self, frame: &mut Frame, level: u8) {
        let lane = self.lane_of_level[usize::from(level & 0xf)];
        frame.mark = level << 4;
        frame.set_lane(lane);
    }
}

impl Nic {
    /// The key of the partition in which this end of a flow is: that of the first one which both ends share. Where they
    /// share none, whatever they hold: the flow is tried all the same, and fails.
    pub(super) fn partition(&self, flow: u32, host: u32, world: &World) -> PartitionKey {
        let Some(keys) = &world.keys else {
            return PartitionKey::DEFAULT;
        };
        let plan = &world.plan.flows[flow as usize];
        let [source, destination] =
            [plan.source, plan.destination].map(|end| keys[end.index()].as_slice());
        let is_source = plan.source.0 == host;
        match shared_keys(source, destination) {
            Some((key, _)) if is_source => key,
            Some((_, key)) => key,
            None => {
                let own = if is_source { source } else { destination };
                own.first().copied().unwrap_or(PartitionKey::DEFAULT)
            }
        }
    }

    /// How this end of a flow spaces its packets, where the fabric says so and the NIC has no rate control of its own, or a
    /// fixed rate: by congestion control, by the static rate of its path, or by both.
    pub(super) fn injection(
        &self,
        flow: u32,
        host: u32,
        level: u8,
        world: &World,
    ) -> Option<RateControlConfig> {
        let control = self.congestion_control(level, world);
        let settings = world.plan.link_layer.infiniband()?;
        if settings.static_rate == StaticRate::None {
            return control;
        }
        let line = self.transmitter.link.rate;
        // Where no path leads, no record says its rate; congestion control is the flow's all the same.
        let Some(path) = path_rate(flow, host, world) else {
            return control;
        };
        let delay = inter_packet_delay(line, path);
        let own = match self.device.config().rate_control {
            RateControlConfig::Fixed { rate } => rate,
            _ => line,
        };
        match control {
            _ if delay == 0 => control,
            Some(RateControlConfig::InjectionDelay(parameters)) => {
                let table = parameters.table.with_delay(delay);
                let slower = InjectionDelayParameters {
                    table,
                    ..parameters
                };
                Some(RateControlConfig::InjectionDelay(slower))
            }
            _ => {
                // Rounded up: a packet's time at this rate, rounded up as well, is then the exact one.
                let rate = Rate::bps(line.as_bps().div_ceil(u64::from(delay) + 1));
                Some(RateControlConfig::Fixed {
                    rate: rate.min(own),
                })
            }
        }
    }
}

/// For how many times of its own each packet is followed by nothing, so that a port of rate `line` sends no faster than
/// `path` (IBTA vol. 1, 9.11.1). Eight bits hold it.
pub(super) fn inter_packet_delay(line: Rate, path: Rate) -> u8 {
    let times = line.as_bps().div_ceil(path.as_bps().max(1)).max(1) - 1;
    times.min(u64::from(u8::MAX)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_whole_and_no_rate_is_above_the_path() {
        let delay = |line, path| inter_packet_delay(Rate::gbps(line), Rate::gbps(path));
        let found = [
            (100, 100),
            (100, 400),
            (100, 50),
            (100, 40),
            (100, 99),
            (400, 25),
        ];
        assert_eq!(
            found.map(|(line, path)| delay(line, path)),
            [0, 0, 1, 2, 1, 15]
        );
        assert_eq!(delay(1000, 1), 255);
        assert_eq!(inter_packet_delay(Rate::gbps(1), Rate::ZERO), 255);
    }
}
