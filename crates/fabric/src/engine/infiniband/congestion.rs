//! Which packets a switch marks with FECN (IBTA vol. 1, annex A10.2.1.1).
//!
//! ```text
//! a lane of a port        more than the threshold waits?  ── no ──► goes unmarked
//!                               │ yes
//!                         had to wait for credit?     ── yes ─► victim: marked where the setting says so
//!                               │ no
//!                         root of congestion: marked, one of (marking rate + 1) on average
//! ```
//!
//! A packet that leaves has credit, always. So whether a lane waits for it is told by what was: a lane counts as a victim
//! from the moment at which it could have sent but for credit, until it has sent a buffer's worth without that. No grant
//! of credit lasts for longer.
//!
//! Invariant: `queued` is the bytes that wait for a lane, and `congested` has the lanes where that is above the threshold.

use softfabric_telemetry::{PortCounter, PortCounters};
use softfabric_units::{Random, Time};

use super::arbiter::LaneMask;
use crate::plan::{Lanes, NodeId, PortId, SwitchCongestion, SwitchPorts};

/// Congestion control of one switch.
#[derive(Debug)]
pub(crate) struct Congestion {
    ports: Box<[Port]>,
    random: Random,
    /// What a queue must exceed, in bytes, to count as congested, and to count as starved where credit is short.
    threshold: u64,
    credit_threshold: u64,
    /// Shorter packets are not marked.
    smallest: u32,
    /// The share that is marked of the packets that could be.
    share: f64,
    /// What a lane sends without waiting for credit before it is no victim any more.
    settled_after: u64,
}

#[derive(Debug)]
struct Port {
    lanes: Box<[Lane]>,
    marks_victims: bool,
    marks_starved: bool,
    congested: LaneMask,
    /// Since when any lane is.
    since: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    queued: u64,
    /// What is left to send until it is no victim; zero: it is none.
    unsettled: u64,
}

impl Congestion {
    /// What a switch needs to mark packets as `setting` says, if it marks any. `at_host` says which of its ports lead to
    /// a host.
    pub(crate) fn new(
        id: NodeId,
        setting: &SwitchCongestion,
        lanes: &Lanes,
        at_host: &[bool],
        seed: u64,
    ) -> Option<Box<Self>> {
        let starves = setting.credit_threshold > 0 && setting.credit_ports != SwitchPorts::None;
        if setting.threshold == 0 && !starves {
            return None;
        }
        let buffer = lanes.buffer.as_u64();
        let above = |threshold: u8| match threshold {
            0 => u64::MAX,
            weight => buffer * (16 - u64::from(weight.min(15))) / 16,
        };
        let has = |ports: &SwitchPorts, port: usize| match ports {
            SwitchPorts::None => false,
            SwitchPorts::Hosts => at_host[port],
            SwitchPorts::All => true,
            SwitchPorts::These(ports) => ports.contains(&PortId(port as u16)),
        };
        let port = |port| Port {
            lanes: vec![Lane::default(); usize::from(lanes.count)].into(),
            marks_victims: has(&setting.victims, port),
            marks_starved: has(&setting.credit_ports, port),
            congested: 0,
            since: Time::ZERO,
        };
        Some(Box::new(Self {
            ports: (0..at_host.len()).map(port).collect(),
            random: Random::stream(seed, u64::from(id.0)),
            threshold: above(setting.threshold),
            credit_threshold: above(setting.credit_threshold),
            smallest: setting.packet_size.as_u64() as u32,
            share: 1.0 / (f64::from(setting.marking_rate) + 1.0),
            settled_after: buffer,
        }))
    }

    /// A packet has come to the queue of a port's lane.
    pub(super) fn came(&mut self, now: Time, port: usize, lane: u8, length: u32) {
        let at = &mut self.ports[port];
        let queued = &mut at.lanes[usize::from(lane)].queued;
        *queued += u64::from(length);
        if *queued > self.threshold && at.congested >> lane & 1 == 0 {
            if at.congested == 0 {
                at.since = now;
            }
            at.congested |= 1 << lane;
        }
    }

    /// A packet has left the queue of a port's lane, onto the link or for good.
    pub(super) fn left(
        &mut self,
        now: Time,
        port: usize,
        lane: u8,
        length: u32,
        counters: &mut PortCounters,
    ) {
        let at = &mut self.ports[port];
        let queued = &mut at.lanes[usize::from(lane)].queued;
        *queued -= u64::from(length);
        if *queued <= self.threshold && at.congested >> lane & 1 != 0 {
            at.congested &= !(1 << lane);
            if at.congested == 0 {
                counters.add(
                    PortCounter::TransmitTimeCongested,
                    now.since(at.since).as_picos(),
                );
            }
        }
    }

    /// A lane of a port could send, but for credit.
    #[inline]
    pub(super) fn waits(&mut self, port: usize, lane: u8) {
        self.ports[port].lanes[usize::from(lane)].unsettled = self.settled_after;
    }

    /// A packet that has left the queue goes onto the link: whether it is to be marked.
    pub(super) fn marks(&mut self, port: usize, lane: u8, length: u32) -> bool {
        let at = &mut self.ports[port];
        let lane = &mut at.lanes[usize::from(lane)];
        let is_victim = lane.unsettled > 0;
        lane.unsettled = lane.unsettled.saturating_sub(u64::from(length));
        // What it leaves behind: a packet that goes straight through is no queue, however small the buffer.
        let behind = lane.queued;
        let is_congested = behind > self.threshold && (!is_victim || at.marks_victims);
        let is_starved = behind > self.credit_threshold && is_victim && at.marks_starved;
        (is_congested || is_starved) && length >= self.smallest && self.random.chance(self.share)
    }

    /// Closes the account of a port's time at the end of a run.
    pub(super) fn close(&mut self, now: Time, port: usize, counters: &mut PortCounters) {
        let at = &mut self.ports[port];
        if at.congested != 0 {
            let span = now.since(at.since).as_picos();
            counters.add(PortCounter::TransmitTimeCongested, span);
            at.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use softfabric_units::Bytes;

    use super::*;

    const LENGTH: u32 = 1000;

    fn congestion(change: impl Fn(&mut SwitchCongestion)) -> Option<Box<Congestion>> {
        let mut setting = SwitchCongestion {
            marking_rate: 0,
            victims: SwitchPorts::None,
            ..SwitchCongestion::default()
        };
        change(&mut setting);
        let lanes = Lanes::alike(2, Bytes::new(16_000));
        Congestion::new(NodeId(3), &setting, &lanes, &[false, true], 1)
    }

    /// Whether a packet of `length` bytes is marked that leaves lane 1 of `port` with `others` bytes behind it.
    fn marked(congestion: &mut Congestion, port: usize, others: u32, length: u32) -> bool {
        let counters = &mut PortCounters::default();
        congestion.came(Time::ZERO, port, 1, length);
        congestion.came(Time::ZERO, port, 1, others);
        congestion.left(Time::ZERO, port, 1, length, counters);
        let marked = congestion.marks(port, 1, length);
        congestion.left(Time::ZERO, port, 1, others, counters);
        marked
    }

    /// The threshold's scale: sixteenths of a lane's buffer, which is 16,000 B here.
    #[test]
    fn the_threshold_is_a_weight() {
        for threshold in 1..=15 {
            let mut marker = congestion(|setting| setting.threshold = threshold).unwrap();
            let edge = (16 - u32::from(threshold)) * 1000;
            assert!(!marked(&mut marker, 0, edge, LENGTH), "{threshold}");
            assert!(marked(&mut marker, 0, edge + 1, LENGTH), "{threshold}");
        }
        assert!(congestion(|setting| setting.threshold = 0).is_none());
    }

    #[test]
    fn short_packets_are_not_marked() {
        let mut marker = congestion(|setting| setting.packet_size = Bytes::new(512)).unwrap();
        assert!(!marked(&mut marker, 0, 9000, 511));
        assert!(marked(&mut marker, 0, 9000, 512));
    }

    #[test]
    fn of_eleven_packets_one_is_marked_at_a_rate_of_ten() {
        for (rate, share) in [(0, 1.0), (1, 0.5), (10, 1.0 / 11.0)] {
            let mut marker = congestion(|setting| setting.marking_rate = rate).unwrap();
            let packets = 100_000;
            let marks = (0..packets)
                .filter(|_| marked(&mut marker, 0, 9000, LENGTH))
                .count() as f64;
            let (mean, deviation) = (
                share * f64::from(packets),
                (f64::from(packets) * share * (1.0 - share)).sqrt(),
            );
            assert!((marks - mean).abs() <= 4.0 * deviation, "{rate}: {marks}");
        }
    }

    /// A lane that had to wait for credit is a victim until it has sent a buffer's worth.
    #[test]
    fn a_victim_is_marked_only_where_the_setting_says_so() {
        let after_waiting = |change: &dyn Fn(&mut SwitchCongestion), port| {
            let mut marker = congestion(change).unwrap();
            marker.waits(port, 1);
            let mut marks = (0..17).map(|_| marked(&mut marker, port, 9000, LENGTH));
            marks.position(|is_marked| is_marked)
        };
        let none = |_: &mut SwitchCongestion| {};
        assert_eq!(after_waiting(&none, 0), Some(16), "16,000 B are a buffer");
        let hosts = |setting: &mut SwitchCongestion| setting.victims = SwitchPorts::Hosts;
        assert_eq!(after_waiting(&hosts, 0), Some(16), "no host is at port 0");
        assert_eq!(after_waiting(&hosts, 1), Some(0));
        let all = |setting: &mut SwitchCongestion| setting.victims = SwitchPorts::All;
        assert_eq!(after_waiting(&all, 0), Some(0));
        let these = |setting: &mut SwitchCongestion| {
            setting.victims = SwitchPorts::These(vec![PortId(0)]);
        };
        assert_eq!(
            (after_waiting(&these, 0), after_waiting(&these, 1)),
            (Some(0), Some(16))
        );
        let mut other_lane = congestion(none).unwrap();
        other_lane.waits(0, 0);
        assert!(marked(&mut other_lane, 0, 9000, LENGTH));
    }

    #[test]
    fn starvation_has_a_threshold_of_its_own() {
        let mut marker = congestion(|setting| {
            setting.threshold = 0;
            setting.credit_threshold = 8;
            setting.credit_ports = SwitchPorts::Hosts;
        })
        .unwrap();
        assert!(!marked(&mut marker, 1, 9000, LENGTH), "there is credit");
        marker.waits(1, 1);
        assert!(!marked(&mut marker, 1, 8000, LENGTH));
        assert!(marked(&mut marker, 1, 8001, LENGTH));
        marker.waits(0, 1);
        assert!(!marked(&mut marker, 0, 8001, LENGTH), "not at this port");
        let only_mask = |setting: &mut SwitchCongestion| {
            setting.threshold = 0;
            setting.credit_ports = SwitchPorts::All;
        };
        assert!(congestion(only_mask).is_none());
    }

    /// 1,000 B are the threshold: from 2,000 B queued on, on either lane, the port is congested.
    #[test]
    fn congested_time_is_that_of_any_lane() {
        let mut marker = congestion(|_| {}).unwrap();
        let mut counters = PortCounters::default();
        let at = Time::from_nanos;
        marker.came(at(10), 0, 0, 1000);
        marker.came(at(20), 0, 0, 1000);
        marker.came(at(30), 0, 1, 1001);
        marker.left(at(50), 0, 0, 1000, &mut counters);
        let congested =
            |counters: &PortCounters| counters.value(PortCounter::TransmitTimeCongested) / 1000;
        assert_eq!(congested(&counters), 0, "lane 1 still is");
        marker.left(at(70), 0, 1, 1001, &mut counters);
        assert_eq!(congested(&counters), 50);
        marker.left(at(80), 0, 0, 1000, &mut counters);
        assert_eq!(congested(&counters), 50);
        marker.came(at(100), 0, 0, 1001);
        marker.close(at(107), 0, &mut counters);
        assert_eq!(congested(&counters), 57);
    }
}
