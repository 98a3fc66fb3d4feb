//! The two ends of a channel.

use std::collections::VecDeque;

use softfabric_units::Bytes;

use super::carrier::POSTED;
use crate::plan::Dealing;

/// The sending end: messages that are ready, dealt over flows.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The sends, by the place of their first message in the channel.
    pub(super) sends: Vec<(u32, u32)>,
    pub(super) lanes: Vec<Lane>,
    /// The accelerators at both ends, if they are in one server.
    pub(super) within: Option<(u32, u32)>,
    /// The receiving end, if it is on this host.
    pub(super) incoming: u32,
    /// The accelerator that sends.
    pub(super) accelerator: u32,
    /// Which lane a message takes.
    pub(super) dealing: Dealing,
    /// The lane that is looked at first.
    pub(super) turn: usize,
    /// Ready, and on no flow yet.
    pub(super) waiting: VecDeque<u32>,
    /// Messages that are not sent, of all.
    pub(super) left: u32,
}

/// One queue pair or connection of a channel.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) flow: u32,
    /// It is used only when all others have failed.
    pub(super) standby: bool,
    pub(super) open: bool,
    pub(super) failed: bool,
    /// Posted, in the order of posting.
    pub(super) posted: VecDeque<u32>,
}

impl Outgoing {
    /// The task that a message is of.
    pub(super) fn task_of(&self, message: u32) -> u32 {
        let place = self.sends.partition_point(|(first, _)| *first <= message);
        self.sends[place - 1].1
    }

    /// The lane for a message, if there is room: its own by its number, or that with the fewest messages under way, of those
    /// that live and have room; of equal ones each in its turn.
    pub(super) fn lane(&mut self, message: u32) -> Option<usize> {
        if self.dealing == Dealing::InTurn {
            let usual = self.lanes.iter().filter(|lane| !lane.standby).count();
            let own = message as usize % usual.max(1);
            let lane = &self.lanes[own];
            if !lane.failed {
                return ((lane.posted.len() as u64) < POSTED).then_some(own);
            }
        }
        let usual = (self.lanes.iter()).any(|lane| !lane.standby && !lane.failed);
        let usable = |lane: &Lane| {
            let set_aside = lane.failed || usual && lane.standby;
            !set_aside && (lane.posted.len() as u64) < POSTED
        };
        let count = self.lanes.len();
        let best = (0..count)
            .map(|step| (self.turn + step) % count)
            .filter(|place| usable(&self.lanes[*place]))
            .min_by_key(|place| self.lanes[*place].posted.len())?;
        self.turn = (best + 1) % count;
        Some(best)
    }

    /// A queue pair has failed: what it had posted goes over another one, before everything else.
    pub(super) fn fail(&mut self, place: usize) {
        let lane = &mut self.lanes[place];
        lane.failed = true;
        for message in std::mem::take(&mut lane.posted).into_iter().rev() {
            self.waiting.push_front(message);
        }
    }
}

/// The receiving end.
#[derive(Debug)]
pub(super) struct Incoming {
    /// The receives, by the place of their first message in the channel.
    pub(super) receives: Vec<(u32, u32)>,
    /// How long messages are, by the place of the first one of that length.
    pub(super) sizes: Vec<(u32, Bytes)>,
    /// The accelerator that receives.
    pub(super) accelerator: u32,
    /// Its job, and whether its messages come from another host.
    pub(super) job: u32,
    pub(super) by_network: bool,
}

impl Incoming {
    /// The task that a message is for, and the message's place in it.
    pub(super) fn task_of(&self, message: u32) -> (u32, u32) {
        let place = (self.receives).partition_point(|(first, _)| *first <= message);
        let (first, task) = self.receives[place - 1];
        (task, message - first)
    }
}

/// Which messages of a receive have come: all up to one, and some after it.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// All before this one.
    pub(super) prefix: u32,
    /// Some after it, in order.
    ahead: Vec<u32>,
}

impl Arrivals {
    /// Takes note of a message; false if it has come before.
    pub(super) fn add(&mut self, message: u32) -> bool {
        if message < self.prefix {
            return false;
        }
        match self.ahead.binary_search(&message) {
            Ok(_) => return false,
            Err(place) => self.ahead.insert(place, message),
        }
        let next = (self.ahead.iter())
            .zip(self.prefix..)
            .take_while(|(come, expected)| *come == expected)
            .count();
        self.ahead.drain(..next);
        self.prefix += next as u32;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_count_once_and_in_order() {
        let mut arrivals = Arrivals::default();
        assert!(arrivals.add(1));
        assert_eq!(arrivals.prefix, 0);
        assert!(!arrivals.add(1));
        assert!(arrivals.add(3));
        assert!(arrivals.add(0));
        assert_eq!(arrivals.prefix, 2);
        assert!(!arrivals.add(0));
        assert!(arrivals.add(2));
        assert_eq!(arrivals.prefix, 4);
        assert!(!arrivals.add(3));
    }
}
