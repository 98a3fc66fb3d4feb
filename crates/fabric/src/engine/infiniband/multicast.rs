//! Packets to multicast groups: a switch sends a copy by each port of the group's tree but the one that the packet came by.
//!
//! ```text
//! packet ─► one place in the input lane's buffer ─► a copy in the queue of each output, which shares the place
//!                                                     each copy leaves when its output has credit; the place is free when
//!                                                     the last one has left
//! ```
//!
//! Invariant: as many copies of a packet are queued as its place counts, and a place that counts none is no copy's.

use softfabric_telemetry::PortCounter;
use softfabric_units::Time;

use super::LaneSwitch;
use crate::engine::event::Scheduler;
use crate::engine::frame::{Flags, Frame};
use crate::engine::world::World;
use crate::results::DropReason;

/// The places that copies of packets share.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// How many copies of each are left.
    left: Vec<u16>,
    free: Vec<u32>,
    /// Copies made beyond the packet that came in.
    pub(super) made: u64,
}

impl Copies {
    fn place(&mut self, copies: u16) -> u32 {
        self.made += u64::from(copies.saturating_sub(1));
        if let Some(place) = self.free.pop() {
            self.left[place as usize] = copies;
            return place;
        }
        self.left.push(copies);
        (self.left.len() - 1) as u32
    }

    /// A copy has left; true if that was the last one.
    fn leave(&mut self, place: u32) -> bool {
        let left = &mut self.left[place as usize];
        *left -= 1;
        if *left > 0 {
            return false;
        }
        self.free.push(place);
        true
    }
}

impl LaneSwitch {
    /// A packet to a group has been taken into the buffer of `port`.
    #[cold]
    pub(super) fn replicate<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        let counters = &mut self.ports[port].transmitter.port;
        counters.count(PortCounter::MulticastReceivePackets);
        if frame.flags.has(Flags::DAMAGED) {
            counters.count(PortCounter::ReceiveErrors);
            self.lose(now, port, frame, DropReason::Damaged);
            return self.free(now, port, frame, world, scheduler);
        }
        if !self.lets_in(port, frame) {
            self.lose(now, port, frame, DropReason::PartitionKey);
            return self.free(now, port, frame, world, scheduler);
        }
        let tables = world.tables.as_ref();
        let outputs: Vec<usize> = tables.map_or_else(Vec::new, |tables| {
            tables
                .group_ports(self.id, frame.destination, port)
                .collect()
        });
        if outputs.is_empty() {
            let counters = &mut self.ports[port].transmitter.port;
            counters.count(PortCounter::ReceiveDiscards);
            self.lose(now, port, frame, DropReason::NoRoute);
            return self.free(now, port, frame, world, scheduler);
        }
        let mut copy = *frame;
        copy.ingress = port as u16;
        copy.entropy = self.copies.place(outputs.len() as u16);
        for output in outputs {
            let refused = if !self.lets_out(output, frame) {
                Some(DropReason::PartitionKey)
            } else if !self.ports[output].transmitter.link.up {
                let counters = &mut self.ports[output].transmitter.port;
                counters.count(PortCounter::TransmitDiscards);
                Some(DropReason::LinkDown)
            } else {
                None
            };
            match refused {
                None => self.queue(now, output, copy, world, scheduler),
                Some(reason) => {
                    self.lose(now, port, &copy, reason);
                    self.leave(now, &copy, world, scheduler);
                }
            }
        }
    }

    /// Copies that switches have made of packets, beyond the packets themselves.
    pub(crate) fn copies(&self) -> u64 {
        self.copies.made
    }

    /// Whether a packet that leaves, as it waited here, leaves its place in the buffer free: the last copy does.
    #[inline]
    pub(super) fn leaves_place(&mut self, flags: Flags, share: u32) -> bool {
        !flags.has(Flags::MULTICAST) || self.copies.leave(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_copy_frees_the_place_and_places_are_used_again() {
        let mut copies = Copies::default();
        let (one, three) = (copies.place(1), copies.place(3));
        assert_eq!(copies.made, 2);
        assert!(copies.leave(one));
        assert_eq!(copies.place(2), one);
        assert_eq!([(); 3].map(|()| copies.leave(three)), [false, false, true]);
        assert_eq!([(); 2].map(|()| copies.leave(one)), [false, true]);
        assert_eq!(copies.left.len(), 2);
    }
}
