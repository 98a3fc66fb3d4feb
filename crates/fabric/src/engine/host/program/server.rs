//! What is inside a server: links between accelerators, and PCIe links to host memory. Each carries one message after
//! the other.

use softfabric_units::{Bytes, Rate, Time};

use crate::plan::{ServerProfile, Staging};

/// The links of a server.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// By accelerator: until when its link is taken, out and in.
    out: Vec<Time>,
    into: Vec<Time>,
    /// By PCIe switch: until when its link to the host is taken, up and down.
    up: Vec<Time>,
    down: Vec<Time>,
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
    /// A message from one accelerator to another; returns when it has left, and when it has arrived.
    pub(super) fn between_accelerators(
        &mut self,
        now: Time,
        (from, to): (u32, u32),
        bytes: Bytes,
        profile: &ServerProfile,
    ) -> (Time, Time) {
        // A switch between the links cuts through: both are taken for the same time.
        let begin = now
            .max(*at(&mut self.out, from))
            .max(*at(&mut self.into, to));
        let end = begin + profile.accelerator_rate.time_for(bytes);
        *at(&mut self.out, from) = end;
        *at(&mut self.into, to) = end;
        (end, end + profile.accelerator_latency)
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

    /// Sending and receiving at once, each byte crosses the uplink twice each way: half of it is left for the network.
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
    fn accelerators_send_at_their_rate_and_not_into_one_at_once() {
        let mut server = Server::default();
        let profile = ServerProfile::default();
        let message = Bytes::mib(1);
        let time = profile.accelerator_rate.time_for(message);
        let (left, there) = server.between_accelerators(Time::ZERO, (0, 2), message, &profile);
        assert_eq!(left - Time::ZERO, time);
        assert_eq!(there, left + profile.accelerator_latency);
        // The receiver's link is taken, the third one's is not.
        let (second, _) = server.between_accelerators(Time::ZERO, (1, 2), message, &profile);
        assert_eq!(second - Time::ZERO, time * 2);
        let (third, _) = server.between_accelerators(Time::ZERO, (3, 4), message, &profile);
        assert_eq!(third - Time::ZERO, time);
    }
}
