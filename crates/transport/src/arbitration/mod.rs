//! Who sends next: per traffic class, the queues of what waits to be sent.
//!
//! ```text
//!               lane of class c
//!               notifications   FIFO of packets
//!               acknowledgements FIFO of packets
//!               responses       set of queue pairs with read or atomic responses
//!               requests        set of queue pairs with requests
//! ```
//!
//! Notifications go before acknowledgements, and these before the rest; queue pairs take turns in the order of their
//! slots, a packet each. Invariant: a bit of a mask is set exactly where the queue of that lane is not empty.

mod ready;

use std::collections::VecDeque;

use softfabric_units::{Class, ClassMask, Msn, PartitionKey, Psn, Qpn};
use softfabric_wire::rdma::Syndrome;

use crate::address::AddressVector;
use crate::config::{Arbitration, ClassOrder, ResponseOrder};
pub(crate) use ready::ReadySet;

/// A congestion notification that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notification {
    pub(crate) path: AddressVector,
    pub(crate) destination: Qpn,
    pub(crate) partition: PartitionKey,
    pub(crate) qp: Qpn,
}

/// An acknowledgement that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledge {
    pub(crate) slot: u32,
    /// `None`: what the queue pair has merged until the packet leaves.
    pub(crate) answer: Option<Answer>,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) psn: Psn,
    pub(crate) msn: Msn,
    pub(crate) syndrome: Syndrome,
    pub(crate) becn: bool,
}

#[derive(Debug, Default)]
struct Lane {
    notifications: VecDeque<Notification>,
    acknowledges: VecDeque<Acknowledge>,
    responses: ReadySet,
    requests: ReadySet,
}

/// What is to be sent next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    Notification(Class, Notification),
    Acknowledge(Class, Acknowledge),
    Response(u32),
    Request(u32),
}

#[derive(Debug)]
pub(crate) struct Lanes {
    config: Arbitration,
    lanes: [Option<Box<Lane>>; Class::COUNT],
    notifications: ClassMask,
    acknowledges: ClassMask,
    responses: ClassMask,
    requests: ClassMask,
    /// DWRR: whose turn it is, and what it may still send.
    turn: usize,
    deficits: [i64; Class::COUNT],
    /// Whether the packet before was a response.
    responded: bool,
}

/// The bytes that a weight of one adds to a class in each round: more than a packet, so a round always serves.
const QUANTUM: i64 = 4608;

impl Lanes {
    pub(crate) fn new(config: Arbitration) -> Self {
        Self {
            config,
            lanes: Default::default(),
            notifications: ClassMask::NONE,
            acknowledges: ClassMask::NONE,
            responses: ClassMask::NONE,
            requests: ClassMask::NONE,
            turn: 0,
            deficits: [0; Class::COUNT],
            responded: false,
        }
    }

    #[inline]
    fn lane(&mut self, class: Class) -> &mut Lane {
        self.lanes[class.index()].get_or_insert_default()
    }

    pub(crate) fn notify(&mut self, class: Class, notification: Notification) {
        self.lane(class).notifications.push_back(notification);
        self.notifications = self.notifications.with(class);
    }

    #[inline]
    pub(crate) fn acknowledge(&mut self, class: Class, acknowledge: Acknowledge) {
        self.lane(class).acknowledges.push_back(acknowledge);
        self.acknowledges = self.acknowledges.with(class);
    }

    #[inline]
    pub(crate) fn set_response(&mut self, class: Class, slot: u32, ready: bool) {
        let set = &mut self.lane(class).responses;
        if ready {
            set.insert(slot);
            self.responses = self.responses.with(class);
        } else {
            set.remove(slot);
            if set.is_empty() {
                self.responses = self.responses.without(class);
            }
        }
    }

    #[inline]
    pub(crate) fn set_request(&mut self, class: Class, slot: u32, ready: bool) {
        let set = &mut self.lane(class).requests;
        if ready {
            set.insert(slot);
            self.requests = self.requests.with(class);
        } else {
            set.remove(slot);
            if set.is_empty() {
                self.requests = self.requests.without(class);
            }
        }
    }

    /// Forgets what waits for a queue pair that goes away.
    pub(crate) fn purge(&mut self, slot: u32) {
        for class in Class::all() {
            let Some(lane) = &mut self.lanes[class.index()] else {
                continue;
            };
            lane.acknowledges.retain(|waiting| waiting.slot != slot);
            if lane.acknowledges.is_empty() {
                self.acknowledges = self.acknowledges.without(class);
            }
            self.set_response(class, slot, false);
            self.set_request(class, slot, false);
        }
    }

    /// The classes in which something waits to be sent.
    pub(crate) fn waiting(&self) -> ClassMask {
        let masks = [
            self.notifications,
            self.acknowledges,
            self.responses,
            self.requests,
        ];
        ClassMask(masks.iter().fold(0, |all, mask| all | mask.0))
    }

    /// What goes next, of the open classes. A queue pair stays in its set: the caller takes it out when it has no more.
    #[inline]
    pub(crate) fn next(&mut self, open: ClassMask) -> Option<Turn> {
        let control = self.notifications.and(open);
        if !control.is_empty() {
            let class = highest(control);
            let queue = &mut self.lane(class).notifications;
            let notification = queue.pop_front();
            if queue.is_empty() {
                self.notifications = self.notifications.without(class);
            }
            return Some(Turn::Notification(class, notification?));
        }
        let control = self.acknowledges.and(open);
        if !control.is_empty() {
            let class = highest(control);
            let queue = &mut self.lane(class).acknowledges;
            let acknowledge = queue.pop_front();
            if queue.is_empty() {
                self.acknowledges = self.acknowledges.without(class);
            }
            return Some(Turn::Acknowledge(class, acknowledge?));
        }
        let responses = self.responses.and(open);
        let requests = self.requests.and(open);
        let class = self.class(ClassMask(responses.0 | requests.0))?;
        let respond = match (responses.contains(class), requests.contains(class)) {
            (true, true) => match self.config.responses {
                ResponseOrder::First => true,
                ResponseOrder::InTurn => !self.responded,
            },
            (responds, _) => responds,
        };
        self.responded = respond;
        let lane = self.lane(class);
        if respond {
            lane.responses.next().map(Turn::Response)
        } else {
            lane.requests.next().map(Turn::Request)
        }
    }

    #[inline]
    fn class(&mut self, waiting: ClassMask) -> Option<Class> {
        if waiting.is_empty() {
            return None;
        }
        match self.config.classes {
            ClassOrder::Strict => Some(highest(waiting)),
            ClassOrder::Weighted(weights) => Some(self.weighted(waiting, &weights)),
        }
    }

    /// Deficit round robin (Shreedhar and Varghese, 1995): a class that comes to its turn gets its quantum, and keeps
    /// the turn while it has some left.
    fn weighted(&mut self, waiting: ClassMask, weights: &[u8; Class::COUNT]) -> Class {
        loop {
            let class = Class::new(self.turn as u8);
            if waiting.contains(class) {
                if self.deficits[self.turn] > 0 {
                    return class;
                }
            } else {
                self.deficits[self.turn] = self.deficits[self.turn].min(0);
            }
            self.turn = (self.turn + 1) % Class::COUNT;
            if waiting.contains(Class::new(self.turn as u8)) {
                self.deficits[self.turn] += QUANTUM * i64::from(weights[self.turn].max(1));
            }
        }
    }

    /// Counts a packet against the share of its class.
    #[inline]
    pub(crate) fn charge(&mut self, class: Class, bytes: u64) {
        if matches!(self.config.classes, ClassOrder::Weighted(_)) {
            self.deficits[class.index()] -= bytes as i64;
        }
    }
}

#[inline]
fn highest(mask: ClassMask) -> Class {
    Class::new(7 - mask.0.leading_zeros() as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(lanes: &mut Lanes, packets: usize) -> [usize; 8] {
        let mut count = [0; 8];
        for _ in 0..packets {
            let Some(Turn::Request(slot)) = lanes.next(ClassMask::ALL) else {
                panic!("requests wait")
            };
            count[slot as usize] += 1;
            lanes.charge(Class::new(slot as u8), 1000);
        }
        count
    }

    #[test]
    fn weights_share_bytes() {
        let mut weights = [1; 8];
        weights[3] = 3;
        let mut lanes = Lanes::new(Arbitration {
            classes: ClassOrder::Weighted(weights),
            ..Arbitration::default()
        });
        lanes.set_request(Class::new(1), 1, true);
        lanes.set_request(Class::new(3), 3, true);
        let count = served(&mut lanes, 10_000);
        assert!((7400..7600).contains(&count[3]), "{count:?}");
        lanes.set_request(Class::new(3), 3, false);
        assert_eq!(served(&mut lanes, 100)[1], 100, "nobody waits for the idle");
    }

    #[test]
    fn strict_order_obeys_what_is_open() {
        let mut lanes = Lanes::new(Arbitration::default());
        lanes.set_request(Class::new(1), 1, true);
        lanes.set_request(Class::new(3), 3, true);
        assert_eq!(served(&mut lanes, 10)[3], 10);
        let open = ClassMask::ALL.without(Class::new(3));
        assert!(matches!(lanes.next(open), Some(Turn::Request(1))));
        assert!(lanes.next(ClassMask::of(Class::new(0))).is_none());
    }

    #[test]
    fn responses_first_or_in_turn() {
        for (responses, expected) in [
            (ResponseOrder::First, [true; 4]),
            (ResponseOrder::InTurn, [true, false, true, false]),
        ] {
            let mut lanes = Lanes::new(Arbitration {
                responses,
                ..Arbitration::default()
            });
            lanes.set_request(Class::new(2), 0, true);
            lanes.set_response(Class::new(2), 1, true);
            let order =
                [(); 4].map(|()| matches!(lanes.next(ClassMask::ALL), Some(Turn::Response(1))));
            assert_eq!(order, expected);
        }
    }
}
