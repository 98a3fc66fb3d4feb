//! What is inside a server: links between accelerators, and PCIe links to host memory. Each carries one message after
//! the other.

use std::collections::VecDeque;

use softfabric_units::{Bytes, Rate, Time};

use crate::plan::{ServerProfile, Staging};

/// The links of a server.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// By accelerator: what waits for its link, and until when that is taken by what comes in.
    out: Vec<Accelerator>,
    into: Vec<Time>,
    /// By PCIe switch: until when its link to the host is taken, up and down.
    up: Vec<Time>,
    down: Vec<Time>,
}

/// A message between accelerators of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Local {
    /// The outgoing channel, and the message's place in it.
    pub(super) channel: u32,
    pub(super) message: u32,
    pub(super) bytes: Bytes,
    /// The accelerator that it is for.
    pub(super) to: u32,
}

/// The outgoing side of an accelerator's link.
#[derive(Debug, Default)]
struct Accelerator {
    busy: bool,
    /// What waits, by receiver, in the order in which receivers were first sent to; they take turns.
    queues: Vec<(u32, VecDeque<Local>)>,
    turn: usize,
}

impl Accelerator {
    fn next(&mut self) -> Option<Local> {
        let count = self.queues.len();
        for step in 0..count {
            let place = (self.turn + step) % count;
            if let Some(message) = self.queues[place].1.pop_front() {
                self.turn = (place + 1) % count;
                return Some(message);
            }
        }
        None
    }
}

/// The moment of a slot in `slots`, which grows as needed.
fn at(slots: &mut Vec<Time>, index: u32) -> &mut Time {
    let index = index as usize;
    if slots.len() <= index {
        slots.resize(index + 1, Time::ZERO);
    }
    &mut slots[index]
}

/// Takes a link for `bytes`, from `now` on or when it is free; returns when that begins and ends.
fn take(free: &mut Time, now: Time, rate: Rate, bytes: Bytes) -> (Time, Time) {
    let begin = now.max(*free);
    *free = begin + rate.time_for(bytes);
    (begin, *free)
}

impl Server {
    /// A message from one accelerator to another waits for its turn.
    pub(super) fn queue(&mut self, from: u32, local: Local) {
        let from = from as usize;
        if self.out.len() <= from {
            self.out.resize_with(from + 1, Accelerator::default);
        }
        let queues = &mut self.out[from].queues;
        match queues.iter_mut().find(|(to, _)| *to == local.to) {
            Some((_, queue)) => queue.push_back(local),
            None => queues.push((local.to, VecDeque::from([local]))),
        }
    }

    /// The link of `from` has sent all that it was sending.
    pub(super) fn idle(&mut self, from: u32) {
        self.out[from as usize].busy = false;
    }

    /// The next message of `from`, if its link is idle: when it has left, and when it has arrived.
    pub(super) fn start(
        &mut self,
        now: Time,
        from: u32,
        profile: &ServerProfile,
    ) -> Option<(Local, Time, Time)> {
        let accelerator = &mut self.out[from as usize];
        if accelerator.busy {
            return None;
        }
        let local = accelerator.next()?;
        accelerator.busy = true;
        // A switch between the links cuts through: both are taken for the same time.
        let (_, end) = take(
            at(&mut self.into, local.to),
            now,
            profile.accelerator_rate,
            local.bytes,
        );
        Some((local, end, end + profile.accelerator_latency))
    }

    /// A message is copied to host memory, from where the NIC reads it; returns when the NIC may begin.
    pub(super) fn stage_out(
        &mut self,
        now: Time,
        accelerator: u32,
        bytes: Bytes,
        staging: &Staging,
    ) -> Time {
        let link = accelerator / staging.sharing.max(1);
        let (_, copied) = take(
            at(&mut self.up, link),
            now + staging.latency,
            staging.uplink,
            bytes,
        );
        // The NIC reads while it sends, so it begins when its reads do.
        let (begin, _) = take(at(&mut self.down, link), copied, staging.uplink, bytes);
        begin
    }

    /// A message has come from the network into host memory; returns when the accelerator has it.
    pub(super) fn stage_in(
        &mut self,
        now: Time,
        accelerator: u32,
        bytes: Bytes,
        staging: &Staging,
    ) -> Time {
        let link = accelerator / staging.sharing.max(1);
        // The NIC wrote while it received; what the link could not take until now is late.
        let first = Time::from_picos(
            (now.as_picos()).saturating_sub(staging.uplink.time_for(bytes).as_picos()),
        );
        let (_, written) = take(at(&mut self.up, link), first, staging.uplink, bytes);
        let written = written.max(now);
        let (_, copied) = take(
            at(&mut self.down, link),
            written + staging.latency,
            staging.uplink,
            bytes,
        );
        copied
    }
}

#[cfg(test)]
mod tests {
    use softfabric_units::Span;

    use super::*;

    const STAGING: Staging = Staging {
        uplink: Rate::gbps(400),
        sharing: 1,
        latency: Span::ZERO,
        processor: Span::ZERO,
    };

    /// Sending and receiving at once, each byte of both crosses the uplink once each way: half of it is left for the network.
    #[test]
    fn staging_both_ways_halves_the_uplink() {
        let mut server = Server::default();
        let message = Bytes::mib(1);
        let each = STAGING.uplink.time_for(message);
        let mut last = Time::ZERO;
        for _ in 0..100 {
            last = server.stage_out(Time::ZERO, 0, message, &STAGING);
            last = server.stage_in(last, 0, message, &STAGING).max(last);
        }
        let taken = (last - Time::ZERO).as_picos() as f64;
        let alone = each.as_picos() as f64 * 100.0;
        assert!((taken / alone - 2.0).abs() < 0.05, "{}", taken / alone);
    }

    #[test]
    fn accelerators_of_one_switch_share_its_link() {
        let shared = Staging {
            sharing: 2,
            ..STAGING
        };
        for (staging, expected) in [(STAGING, 1), (shared, 2)] {
            let mut server = Server::default();
            let message = Bytes::mib(1);
            server.stage_out(Time::ZERO, 0, message, &staging);
            let second = server.stage_out(Time::ZERO, 1, message, &staging);
            assert_eq!(
                second - Time::ZERO,
                staging.uplink.time_for(message) * expected
            );
        }
    }

    #[test]
    fn accelerators_send_at_their_rate_in_turns_and_not_into_one_at_once() {
        let mut server = Server::default();
        let profile = ServerProfile::default();
        let bytes = Bytes::mib(1);
        let time = profile.accelerator_rate.time_for(bytes);
        let mut queue = |from, to, message| {
            let channel = to;
            server.queue(
                from,
                Local {
                    channel,
                    message,
                    bytes,
                    to,
                },
            );
        };
        queue(0, 2, 0);
        queue(0, 2, 1);
        queue(0, 3, 0);
        queue(1, 2, 0);
        let (first, left, there) = server.start(Time::ZERO, 0, &profile).unwrap();
        assert_eq!((first.to, left - Time::ZERO), (2, time));
        assert_eq!(there, left + profile.accelerator_latency);
        assert_eq!(server.start(Time::ZERO, 0, &profile), None, "it is busy");
        // The receiver's link is taken, so another sender's message ends later.
        let (_, second, _) = server.start(Time::ZERO, 1, &profile).unwrap();
        assert_eq!(second - Time::ZERO, time * 2);
        // The other receiver has its turn before the second message to the first one.
        server.idle(0);
        let (next, left, _) = server.start(left, 0, &profile).unwrap();
        assert_eq!((next.to, left - Time::ZERO), (3, time * 2));
    }
}
