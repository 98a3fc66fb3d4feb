//! What happens at a node, and in what order.

use softfabric_units::Time;

use super::frame::{Control, Frame};
use super::link::OutLink;

/// Something that happens at a node. The code orders what happens at one instant: control frames, then packets, then
/// transmitters that become free, then timers; each by port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Event(u32);

/// An event, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EventKind {
    /// The next control frame of the port's wire arrives.
    Control(usize),
    /// The next packet of the port's wire arrives.
    Packet(usize),
    /// The port's transmitter becomes free.
    PortFree(usize),
    /// A timer of the node: its own number.
    Timer(u32),
}

const INDEX_BITS: u32 = 28;

impl Event {
    pub(crate) const fn control(port: usize) -> Self {
        Self(port as u32)
    }

    pub(crate) const fn packet(port: usize) -> Self {
        Self(1 << INDEX_BITS | port as u32)
    }

    pub(crate) const fn port_free(port: usize) -> Self {
        Self(2 << INDEX_BITS | port as u32)
    }

    /// Timer `number`, below 2²⁸.
    pub(crate) const fn timer(number: u32) -> Self {
        Self(3 << INDEX_BITS | number)
    }

    pub(crate) const fn kind(self) -> EventKind {
        let index = self.0 & ((1 << INDEX_BITS) - 1);
        match self.0 >> INDEX_BITS {
            0 => EventKind::Control(index as usize),
            1 => EventKind::Packet(index as usize),
            2 => EventKind::PortFree(index as usize),
            _ => EventKind::Timer(index),
        }
    }

    pub(crate) const fn code(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_code(code: u32) -> Self {
        Self(code)
    }
}

/// A hit on a trigger: the one thing that nodes tell each other beside packets. It takes one lookahead to arrive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Signal {
    /// When it takes effect.
    pub(crate) time: Time,
    /// The trigger that is hit.
    pub(crate) trigger: u32,
    /// The flow that hit it: makes the order total.
    pub(crate) flow: u32,
}

/// Where a node puts what it causes.
pub(crate) trait Scheduler {
    /// The node itself wants to be told at `time`.
    fn at(&mut self, time: Time, event: Event);
    /// A packet goes onto a link; its time says when the other end handles it.
    fn send(&mut self, link: &OutLink, frame: Frame);
    /// A frame between the two ends of a link goes onto it.
    fn send_control(&mut self, link: &OutLink, control: Control);
    /// A trigger is hit.
    fn signal(&mut self, signal: Signal);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_order_and_come_back() {
        let events = [
            Event::control(3),
            Event::packet(0),
            Event::packet(7),
            Event::port_free(1),
            Event::timer(0),
        ];
        assert!(events.is_sorted());
        assert_eq!(events.map(Event::kind)[2], EventKind::Packet(7));
        assert_eq!(
            Event::from_code(events[3].code()).kind(),
            EventKind::PortFree(1)
        );
        assert_eq!(events[4].kind(), EventKind::Timer(0));
    }
}
