//! The packet memory of a switch: who may hold how much, and when PFC speaks.
//!
//! Ingress is accounted per port and priority group, egress per port and queue:
//!
//! ```text
//! group:  reserved ──full──► shared, up to its threshold ──over──► headroom, up to its limit ──over──► dropped
//!                                          └─ XOFF                 (lossless only)
//! ```
//!
//! Invariant: the sum of all groups' bytes equals the sum of all queues' bytes; both are zero when the switch is empty.

use softfabric_units::{Class, Rate, Span};

use crate::plan::{Alpha, BufferAccounting, SwitchProfile};
use crate::results::DropReason;

/// What the memory says of a packet that wants in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// It is in.
    Accepted,
    /// It is not.
    Dropped(DropReason),
}

/// The packet memory of one switch.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    rules: Rules,
    cell: u64,
    /// The shared pool.
    shared_total: u64,
    shared_used: u64,
    /// The headroom pool, where one is shared; else each group has its own.
    headroom_pool: Option<u64>,
    headroom_used: u64,
    /// Indexed by port · 8 + group, and port · 8 + queue.
    groups: Vec<Group>,
    queues: Vec<Queue>,
    limits: [ClassLimits; Class::COUNT],
}

/// Which book is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    SharedBuffer,
    Hpcc,
}

/// A priority group of an ingress port.
#[derive(Clone, Debug, Default)]
struct Group {
    reserved: u64,
    shared: u64,
    headroom: u64,
    headroom_limit: u64,
    /// The most that was held.
    shared_peak: u64,
    headroom_peak: u64,
    /// The threshold is the free pool shifted right by so much (HPCC).
    shift: u32,
}

/// An egress queue.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    bytes: u64,
    peak: u64,
}

/// What a class may hold.
#[derive(Clone, Copy, Debug)]
struct ClassLimits {
    lossless: bool,
    reserved: u64,
    ingress: Alpha,
    xon_size: u64,
    xon_offset: Option<u64>,
    queue_reserved: u64,
    egress: Alpha,
}

/// What HPCC's switches reserve for each group, and how far under the threshold they resume.
const HPCC_RESERVED: u64 = 4096;
const HPCC_RESUME_OFFSET: u64 = 3072;

/// What the memory must know of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortShape {
    pub(crate) rate: Rate,
    pub(crate) delay: Span,
    /// Headroom of each class, where the profile leaves it to be computed.
    pub(crate) headroom: u64,
}

impl Memory {
    /// The empty memory of a switch with these ports; `host_rate` is the rate of the network's first NIC, which HPCC's
    /// thresholds depend on.
    pub(crate) fn new(profile: &SwitchProfile, ports: &[PortShape], host_rate: Rate) -> Self {
        match profile.buffer.accounting {
            BufferAccounting::SharedBuffer => Self::shared(profile, ports),
            BufferAccounting::Hpcc => Self::hpcc(profile, ports, host_rate),
        }
    }

    fn shared(profile: &SwitchProfile, ports: &[PortShape]) -> Self {
        let limits = profile.classes.each_ref().map(|class| ClassLimits {
            lossless: class.lossless,
            reserved: class.ingress.reserved.as_u64(),
            ingress: class.ingress.threshold,
            xon_size: class.ingress.xon.size.as_u64(),
            xon_offset: class.ingress.xon.offset.map(|offset| offset.as_u64()),
            queue_reserved: class.egress.reserved.as_u64(),
            egress: class.egress.threshold,
        });
        let mut set_aside = 0;
        let mut groups = Vec::with_capacity(ports.len() * Class::COUNT);
        for port in ports {
            for class in &profile.classes {
                let headroom_limit = if class.lossless {
                    class
                        .ingress
                        .headroom
                        .map_or(port.headroom, |headroom| headroom.as_u64())
                } else {
                    0
                };
                set_aside += class.ingress.reserved.as_u64();
                if profile.buffer.headroom_pool.is_none() {
                    set_aside += headroom_limit;
                }
                groups.push(Group {
                    headroom_limit,
                    ..Group::default()
                });
            }
        }
        let headroom_pool = profile.buffer.headroom_pool.map(|pool| pool.as_u64());
        set_aside += headroom_pool.unwrap_or(0);
        Self {
            rules: Rules::SharedBuffer,
            cell: profile.buffer.cell.as_u64().max(1),
            shared_total: profile.buffer.total.as_u64().saturating_sub(set_aside),
            shared_used: 0,
            headroom_pool,
            headroom_used: 0,
            queues: vec![Queue::default(); groups.len()],
            groups,
            limits,
        }
    }

    fn hpcc(profile: &SwitchProfile, ports: &[PortShape], host_rate: Rate) -> Self {
        let mut memory = Self::shared(profile, &[]);
        memory.rules = Rules::Hpcc;
        memory.cell = 1;
        let mut set_aside = 0;
        for port in ports {
            let bytes = u128::from(port.rate.as_bps()) * u128::from(port.delay.as_nanos())
                / 8
                / 1_000_000_000;
            let headroom = bytes as u64 * 3;
            let mut shift = 3;
            let mut rate = port.rate.as_bps();
            while rate > host_rate.as_bps() && shift > 0 {
                shift -= 1;
                rate /= 2;
            }
            set_aside += headroom + HPCC_RESERVED;
            for _ in Class::all() {
                memory.groups.push(Group {
                    headroom_limit: headroom,
                    shift,
                    ..Group::default()
                });
                memory.queues.push(Queue::default());
            }
        }
        memory.shared_total = profile.buffer.total.as_u64().saturating_sub(set_aside);
        memory
    }

    /// Takes a packet that came in by `ingress` and will leave by `egress`, if there is room.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        ingress: usize,
        egress: usize,
        group: Class,
        queue: Class,
        length: u64,
    ) -> Admission {
        let size = self.cells(length);
        let admission = match self.rules {
            Rules::SharedBuffer => self.admit_shared(ingress, egress, group, queue, size),
            Rules::Hpcc => self.admit_hpcc(ingress * Class::COUNT + group.index(), size),
        };
        let group = ingress * Class::COUNT + group.index();
        let queue = egress * Class::COUNT + queue.index();
        if admission == Admission::Accepted {
            let queue = &mut self.queues[queue];
            queue.bytes += size;
            queue.peak = queue.peak.max(queue.bytes);
            let group = &mut self.groups[group];
            group.shared_peak = group.shared_peak.max(group.shared);
            group.headroom_peak = group.headroom_peak.max(group.headroom);
        }
        admission
    }

    fn admit_shared(
        &mut self,
        ingress: usize,
        egress: usize,
        group: Class,
        queue: Class,
        size: u64,
    ) -> Admission {
        let free = self.shared_total - self.shared_used;
        let limits = &self.limits[queue.index()];
        let queued = self.queues[egress * Class::COUNT + queue.index()].bytes;
        if queued + size
            > limits
                .queue_reserved
                .saturating_add(threshold(limits.egress, free))
        {
            return Admission::Dropped(DropReason::EgressThreshold);
        }
        let headroom_room = match self.headroom_pool {
            Some(pool) => pool - self.headroom_used,
            None => u64::MAX,
        };
        let limits = &self.limits[group.index()];
        let group = &mut self.groups[ingress * Class::COUNT + group.index()];
        if group.reserved + size <= limits.reserved {
            group.reserved += size;
        } else if size <= free && group.shared + size <= threshold(limits.ingress, free) {
            group.shared += size;
            self.shared_used += size;
        } else if !limits.lossless {
            let reason = if size > free {
                DropReason::BufferFull
            } else {
                DropReason::IngressThreshold
            };
            return Admission::Dropped(reason);
        } else if group.headroom + size <= group.headroom_limit && size <= headroom_room {
            group.headroom += size;
            self.headroom_used += size;
        } else {
            return Admission::Dropped(DropReason::HeadroomFull);
        }
        Admission::Accepted
    }

    fn admit_hpcc(&mut self, group: usize, size: u64) -> Admission {
        let threshold = (self.shared_total - self.shared_used) >> self.groups[group].shift;
        let group = &mut self.groups[group];
        let used = group.reserved + group.shared;
        let over = |bytes: u64| bytes.saturating_sub(HPCC_RESERVED);
        if size + group.headroom > group.headroom_limit && size + over(used) > threshold {
            return Admission::Dropped(DropReason::HeadroomFull);
        }
        let after = used + size;
        if over(after) > threshold {
            group.headroom += size;
            self.headroom_used += size;
        } else {
            let shared = over(after);
            self.shared_used += shared - group.shared;
            group.shared = shared;
            group.reserved = after - shared;
        }
        Admission::Accepted
    }

    /// Gives back what a packet held.
    #[inline]
    pub(crate) fn release(
        &mut self,
        ingress: usize,
        egress: usize,
        group: Class,
        queue: Class,
        length: u64,
    ) {
        let size = self.cells(length);
        self.queues[egress * Class::COUNT + queue.index()].bytes -= size;
        let group = &mut self.groups[ingress * Class::COUNT + group.index()];
        let from_headroom = size.min(group.headroom);
        group.headroom -= from_headroom;
        self.headroom_used -= from_headroom;
        let from_shared = (size - from_headroom).min(group.shared);
        group.shared -= from_shared;
        self.shared_used -= from_shared;
        group.reserved -= size - from_headroom - from_shared;
    }

    /// Whether the group's other end must stop.
    #[inline]
    pub(crate) fn wants_pause(&self, ingress: usize, class: Class) -> bool {
        let group = &self.groups[ingress * Class::COUNT + class.index()];
        if group.headroom > 0 {
            return true;
        }
        let free = self.shared_total - self.shared_used;
        match self.rules {
            Rules::Hpcc => group.shared >= free >> group.shift,
            Rules::SharedBuffer => {
                let limits = &self.limits[class.index()];
                limits.lossless
                    && group.shared > 0
                    && group.shared >= threshold(limits.ingress, free).min(self.shared_total)
            }
        }
    }

    /// Whether the group's other end may go on.
    #[inline]
    pub(crate) fn allows_resume(&self, ingress: usize, class: Class) -> bool {
        let group = &self.groups[ingress * Class::COUNT + class.index()];
        if group.headroom > 0 {
            return false;
        }
        let free = self.shared_total - self.shared_used;
        match self.rules {
            Rules::Hpcc => {
                group.shared == 0 || group.shared + HPCC_RESUME_OFFSET <= free >> group.shift
            }
            Rules::SharedBuffer => {
                let limits = &self.limits[class.index()];
                let offset_reached = limits.xon_offset.is_some_and(|offset| {
                    group.shared.saturating_add(offset) <= threshold(limits.ingress, free)
                });
                group.shared <= limits.xon_size || offset_reached
            }
        }
    }

    /// Bytes in an egress queue, in whole cells.
    #[inline]
    pub(crate) fn queued(&self, egress: usize, class: Class) -> u64 {
        self.queues[egress * Class::COUNT + class.index()].bytes
    }

    /// The most that the queue and the ingress group of a port's class have held: queue, shared, headroom.
    pub(crate) fn peaks(&self, port: usize, class: Class) -> (u64, u64, u64) {
        let index = port * Class::COUNT + class.index();
        let group = &self.groups[index];
        (
            self.queues[index].peak,
            group.shared_peak,
            group.headroom_peak,
        )
    }

    /// Bytes of shared buffer that a group holds.
    #[cfg(test)]
    pub(crate) fn shared_of(&self, ingress: usize, class: Class) -> u64 {
        self.groups[ingress * Class::COUNT + class.index()].shared
    }

    /// Bytes of headroom that a group uses.
    #[cfg(test)]
    pub(crate) fn headroom_of(&self, ingress: usize, class: Class) -> u64 {
        self.groups[ingress * Class::COUNT + class.index()].headroom
    }

    /// What is held in all: by groups, and by queues. Equal, always.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let groups = self
            .groups
            .iter()
            .map(|group| group.reserved + group.shared + group.headroom)
            .sum();
        let queues = self.queues.iter().map(|queue| queue.bytes).sum();
        (groups, queues)
    }

    /// The books against themselves: pools against the sums of their users. In words, what does not add up.
    pub(crate) fn audit(&self) -> Option<String> {
        let (groups, queues) = self.totals();
        let shared: u64 = self.groups.iter().map(|group| group.shared).sum();
        let headroom: u64 = self.groups.iter().map(|group| group.headroom).sum();
        if groups != queues {
            return Some(format!("groups hold {groups} B, queues {queues} B"));
        }
        if shared != self.shared_used || headroom != self.headroom_used {
            return Some(format!(
                "pools say {} B shared and {} B headroom, groups {shared} B and {headroom} B",
                self.shared_used, self.headroom_used
            ));
        }
        None
    }

    #[inline]
    fn cells(&self, length: u64) -> u64 {
        if self.cell == 1 {
            length
        } else {
            length.div_ceil(self.cell) * self.cell
        }
    }
}

/// What one user may take of a pool of which `free` is left.
#[inline]
fn threshold(alpha: Alpha, free: u64) -> u64 {
    match alpha {
        Alpha::Dynamic(k) if k >= 0 => free.saturating_mul(1 << k.min(20)),
        Alpha::Dynamic(k) => free >> k.unsigned_abs().min(63),
        Alpha::Static(bytes) => bytes.as_u64(),
        Alpha::Unlimited => u64::MAX,
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;

#[cfg(test)]
mod limit_tests {
    use softfabric_units::Bytes;

    use super::*;
    use crate::engine::tests::{DATA, switch_profile};

    fn memory(profile: &SwitchProfile) -> Memory {
        let shape = PortShape {
            rate: Rate::gbps(100),
            delay: Span::micros(1),
            headroom: 0,
        };
        Memory::new(profile, &[shape; 2], Rate::gbps(100))
    }

    fn profile() -> SwitchProfile {
        let mut profile = switch_profile();
        profile.buffer.total = Bytes::new(60_000);
        profile.buffer.cell = Bytes::new(1);
        let ingress = &mut profile.classes[DATA.index()].ingress;
        ingress.headroom = Some(Bytes::new(4_000));
        ingress.threshold = Alpha::Dynamic(-1);
        profile
    }

    #[test]
    fn peaks_stay_when_packets_leave() {
        let mut memory = memory(&profile());
        let admitted = (0..20)
            .filter(|_| memory.admit(0, 1, DATA, DATA, 1_000) == Admission::Accepted)
            .count() as u64;
        let held = (memory.shared_of(0, DATA), memory.headroom_of(0, DATA));
        assert_eq!(held.1, 4_000);
        for _ in 0..admitted {
            memory.release(0, 1, DATA, DATA, 1_000);
        }
        assert_eq!(memory.admit(0, 1, DATA, DATA, 100), Admission::Accepted);
        assert_eq!(memory.peaks(0, DATA), (0, held.0, held.1));
        assert_eq!(memory.peaks(1, DATA), (admitted * 1_000, 0, 0));
    }

    #[test]
    fn reserves_and_headroom_are_no_part_of_the_shared_pool() {
        let mut profile = profile();
        // 2 ports: 16 · 2,000 B reserved, and 2 · 4,000 B of headroom, or a pool of it.
        assert_eq!(memory(&profile).shared_total, 20_000);
        profile.buffer.headroom_pool = Some(Bytes::new(7_000));
        assert_eq!(memory(&profile).shared_total, 21_000);
    }

    #[test]
    fn a_queue_has_its_reserve_beside_its_share() {
        let mut profile = profile();
        profile.classes[0].ingress.threshold = Alpha::Unlimited;
        let egress = &mut profile.classes[0].egress;
        egress.threshold = Alpha::Static(Bytes::new(3_000));
        egress.reserved = Bytes::new(1_000);
        let mut memory = memory(&profile);
        let lossy = Class::new(0);
        let admitted = (0..9)
            .filter(|_| memory.admit(0, 1, lossy, lossy, 500) == Admission::Accepted)
            .count();
        assert_eq!(admitted, 8, "3,000 B and the reserve of 1,000 B");
    }
}
