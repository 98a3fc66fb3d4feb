//! Faults: packets are lost, doubled, reordered, delayed, damaged and marked, as rules say.
//!
//! ```text
//! packet ──► number it ──► each rule in order: does it apply, and does chance say so? ──► 0, 1 or 2 packets, now or later
//! ```
//!
//! What chance says about packet *n* depends on the seed, the rule and *n* alone. So a run with the same seed and the
//! same packets has the same faults, whatever the time between them.

mod rule;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use smallvec::SmallVec;
use softfabric_units::{Random, Span, Time};
use softfabric_wire::rdma::Opcode;

pub use rule::{Fault, Point, Rule, RuleError};

/// How long a packet waits at most for others to overtake it.
const OVERTAKING: Span = Span::millis(2);
/// The most packets that overtake it.
const OVERTAKERS: u64 = 4;

/// A packet on its way through the faults, with what its port needs to know about it.
#[derive(Clone, Debug)]
pub(crate) struct Packet<T> {
    pub(crate) bytes: Vec<u8>,
    pub(crate) marked: bool,
    pub(crate) about: T,
}

/// What happened to a packet, for recordings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fate {
    /// It was dropped by the rule with this number, counted from 1.
    pub(crate) dropped_by: Option<usize>,
}

#[derive(Debug)]
struct Waiting<T> {
    due: Time,
    /// After this many packets it goes, whatever the time.
    after: u64,
    order: u64,
    packet: Packet<T>,
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.order) == (other.due, other.order)
    }
}
impl<T> Eq for Waiting<T> {}
impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}

/// The faults at one point.
#[derive(Debug)]
pub(crate) struct Faults<T> {
    rules: Vec<(usize, Rule)>,
    seed: u64,
    number: u64,
    waiting: BinaryHeap<Reverse<Waiting<T>>>,
    pub(crate) met: u64,
}

impl<T: Clone> Faults<T> {
    /// The faults of `rules` at `point`; `None` where no rule is for it.
    pub(crate) fn new(rules: &[Rule], seed: u64, point: Point) -> Option<Self> {
        let here = rules.iter().cloned().enumerate();
        let rules: Vec<_> = here.filter(|(_, rule)| rule.point == point).collect();
        (!rules.is_empty()).then(|| Self {
            rules,
            seed: seed ^ u64::from(point == Point::Receive) << 63,
            number: 0,
            waiting: BinaryHeap::new(),
            met: 0,
        })
    }

    /// Takes a packet, and gives those that go on now: it, twice or not at all, and others that were waiting.
    pub(crate) fn pass(
        &mut self,
        now: Time,
        mut packet: Packet<T>,
    ) -> (SmallVec<[Packet<T>; 2]>, Fate) {
        self.number += 1;
        let number = self.number;
        let opcode = packet.bytes.first().copied().and_then(Opcode::from_code);
        let mut fate = Fate::default();
        let mut due = None;
        let mut after = u64::MAX;
        let mut copies = 1;
        for (index, rule) in &self.rules {
            let mut chance = chance(self.seed, *index, number);
            if !rule.applies(number, opcode) || !chance.chance(rule.probability) {
                continue;
            }
            self.met += 1;
            match rule.fault {
                Fault::Drop => {
                    fate.dropped_by = Some(index + 1);
                    copies = 0;
                }
                Fault::Duplicate => copies *= 2,
                Fault::Delay(span) => due = Some(due.unwrap_or(now).saturating_add(span)),
                Fault::Reorder => {
                    due = Some(due.unwrap_or(now).saturating_add(OVERTAKING));
                    after = number + 1 + chance.below(OVERTAKERS);
                }
                Fault::Corrupt => flip(&mut packet.bytes, &mut chance),
                Fault::Mark => packet.marked = true,
            }
        }
        let mut onward = SmallVec::new();
        for copy in 0..copies {
            match due {
                None => onward.push(packet.clone()),
                Some(due) => self.waiting.push(Reverse(Waiting {
                    due,
                    after,
                    order: number << 8 | copy,
                    packet: packet.clone(),
                })),
            }
        }
        self.release(|waiting| waiting.after <= number, &mut onward);
        (onward, fate)
    }

    /// The packets whose time has come.
    pub(crate) fn due(&mut self, now: Time) -> SmallVec<[Packet<T>; 2]> {
        let mut onward = SmallVec::new();
        while let Some(Reverse(first)) = self.waiting.peek()
            && first.due <= now
        {
            onward.extend(self.waiting.pop().map(|Reverse(first)| first.packet));
        }
        onward
    }

    /// When the next packet's time comes.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.waiting.peek().map(|Reverse(first)| first.due)
    }

    fn release(
        &mut self,
        goes: impl Fn(&Waiting<T>) -> bool,
        onward: &mut SmallVec<[Packet<T>; 2]>,
    ) {
        if !self.waiting.iter().any(|Reverse(waiting)| goes(waiting)) {
            return;
        }
        let mut all = std::mem::take(&mut self.waiting).into_vec();
        all.sort_unstable_by_key(|Reverse(waiting)| waiting.order);
        for Reverse(waiting) in all {
            if goes(&waiting) {
                onward.push(waiting.packet);
            } else {
                self.waiting.push(Reverse(waiting));
            }
        }
    }
}

/// What chance says about one packet and one rule.
fn chance(seed: u64, rule: usize, number: u64) -> Random {
    Random::stream(seed, number << 8 | rule as u64)
}

fn flip(bytes: &mut [u8], chance: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let bit = chance.below(8 * bytes.len() as u64);
    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(rules: &[&str], seed: u64) -> Faults<u64> {
        let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        Faults::new(&rules, seed, Point::Send).unwrap()
    }

    fn packet(about: u64) -> Packet<u64> {
        Packet {
            bytes: vec![4, 0, 0, 0],
            marked: false,
            about,
        }
    }

    /// What comes out of 1000 packets, a microsecond apart, and then of an hour's waiting.
    fn run(faults: &mut Faults<u64>) -> Vec<Packet<u64>> {
        let mut out = Vec::new();
        let mut now = Time::ZERO;
        for number in 1..=1000 {
            now += Span::micros(1);
            out.extend(faults.due(now));
            out.extend(faults.pass(now, packet(number)).0);
        }
        out.extend(faults.due(now + Span::seconds(3600)));
        out
    }

    fn numbers(packets: &[Packet<u64>]) -> Vec<u64> {
        packets.iter().map(|packet| packet.about).collect()
    }

    #[test]
    fn equal_seeds_have_equal_faults() {
        let rules = ["drop:p=5%", "duplicate:p=5%", "corrupt:p=5%"];
        let first = run(&mut faults(&rules, 1));
        let again = run(&mut faults(&rules, 1));
        assert_eq!(numbers(&first), numbers(&again));
        assert!(first.iter().zip(&again).all(|(a, b)| a.bytes == b.bytes));
        assert_ne!(numbers(&first), numbers(&run(&mut faults(&rules, 2))));
    }

    #[test]
    fn shares_are_as_asked_for() {
        let dropped = 1000 - run(&mut faults(&["drop:p=20%"], 3)).len();
        assert!((160..240).contains(&dropped), "{dropped}");
        let doubled = run(&mut faults(&["duplicate:p=20%"], 3)).len() - 1000;
        assert!((160..240).contains(&doubled), "{doubled}");
        let marked = run(&mut faults(&["mark:p=20%"], 3));
        let marked = marked.iter().filter(|packet| packet.marked).count();
        assert!((160..240).contains(&marked), "{marked}");
        let damaged = run(&mut faults(&["corrupt"], 3));
        let bits = |packet: &Packet<u64>| {
            let pairs = packet.bytes.iter().zip([4_u8, 0, 0, 0]);
            pairs.map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
        };
        assert!(damaged.iter().all(|packet| bits(packet) == 1));
    }

    #[test]
    fn reordered_packets_are_overtaken_and_none_is_lost() {
        let out = numbers(&run(&mut faults(&["reorder:p=10%"], 5)));
        let behind = out.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!((40..140).contains(&behind), "{behind}");
        let far = out
            .iter()
            .enumerate()
            .map(|(at, number)| number.abs_diff(at as u64 + 1));
        assert!(far.max().unwrap() < 32);
        let mut sorted = out;
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=1000).collect::<Vec<_>>());
    }

    #[test]
    fn delays_are_as_long_as_asked_for() {
        let mut faults = faults(&["delay=5us:packets=1"], 1);
        let now = Time::from_nanos(1000);
        assert!(faults.pass(now, packet(1)).0.is_empty());
        assert_eq!(faults.next_due(), Some(now + Span::micros(5)));
        assert_eq!(faults.pass(now, packet(2)).0.len(), 1);
        assert!(faults.due(now + Span::micros(4)).is_empty());
        assert_eq!(numbers(&faults.due(now + Span::micros(5))), [1]);
        assert_eq!(faults.met, 1);
    }

    #[test]
    fn drops_name_their_rule() {
        let mut faults = faults(&["mark", "drop:packets=2"], 1);
        assert_eq!(faults.pass(Time::ZERO, packet(1)).1.dropped_by, None);
        assert_eq!(faults.pass(Time::ZERO, packet(2)).1.dropped_by, Some(2));
    }
}
