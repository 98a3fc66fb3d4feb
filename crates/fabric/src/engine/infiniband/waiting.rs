//! Packets that wait in a switch, by where they go and where they came in: none stands in the way of another that goes
//! elsewhere.
//!
//! ```text
//! output, lane ─► ring of inputs ─► queue of (input) ─► frames in the pool
//! ```
//!
//! Invariant: an input is in the ring of (output, lane) exactly once while its queue there is not empty.

use std::collections::VecDeque;

use softfabric_units::Time;

use crate::engine::frame::Frame;

const NONE: u32 = u32::MAX;

/// All queues of a switch.
#[derive(Debug)]
pub(super) struct Waiting {
    ports: usize,
    lanes: usize,
    queues: Box<[Queue]>,
    rings: Box<[VecDeque<u16>]>,
    pool: Vec<Place>,
    free: u32,
    packets: u64,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    frame: Frame,
    next: u32,
}

impl Waiting {
    pub(super) fn new(ports: usize, lanes: usize) -> Self {
        let empty = Queue {
            head: NONE,
            tail: NONE,
        };
        Self {
            ports,
            lanes,
            queues: vec![empty; ports * lanes * ports].into(),
            rings: vec![VecDeque::new(); ports * lanes].into(),
            pool: Vec::new(),
            free: NONE,
            packets: 0,
        }
    }

    #[inline]
    fn ring(&self, output: usize, lane: u8) -> usize {
        output * self.lanes + usize::from(lane)
    }

    /// Puts a packet at the end of its input's queue. True if nothing waited for the output's lane before.
    pub(super) fn push(&mut self, output: usize, lane: u8, frame: Frame) -> bool {
        let ring = self.ring(output, lane);
        let place = Place { frame, next: NONE };
        let at = if self.free == NONE {
            self.pool.push(place);
            (self.pool.len() - 1) as u32
        } else {
            let at = self.free;
            self.free = self.pool[at as usize].next;
            self.pool[at as usize] = place;
            at
        };
        let queue = &mut self.queues[ring * self.ports + usize::from(frame.ingress)];
        if queue.tail == NONE {
            queue.head = at;
            self.rings[ring].push_back(frame.ingress);
        } else {
            self.pool[queue.tail as usize].next = at;
        }
        queue.tail = at;
        self.packets += 1;
        self.rings[ring].len() == 1 && queue.head == at
    }

    /// The packet that goes next by an output's lane.
    #[inline]
    pub(super) fn front(&self, output: usize, lane: u8) -> Option<&Frame> {
        let ring = self.ring(output, lane);
        let input = *self.rings[ring].front()?;
        let head = self.queues[ring * self.ports + usize::from(input)].head;
        Some(&self.pool[head as usize].frame)
    }

    /// Takes it; the other inputs have their turn before its input has one again.
    pub(super) fn pop(&mut self, output: usize, lane: u8) -> Option<Frame> {
        let ring = self.ring(output, lane);
        let input = self.rings[ring].pop_front()?;
        let (frame, is_last) = self.unlink(ring, input);
        if !is_last {
            self.rings[ring].push_back(input);
        }
        Some(frame)
    }

    /// Takes the first packet of a queue that has one; true with it if that was the last.
    #[inline]
    fn unlink(&mut self, ring: usize, input: u16) -> (Frame, bool) {
        let queue = &mut self.queues[ring * self.ports + usize::from(input)];
        let at = queue.head;
        let Place { frame, next } = self.pool[at as usize];
        queue.head = next;
        if next == NONE {
            queue.tail = NONE;
        }
        self.pool[at as usize].next = self.free;
        self.free = at;
        self.packets -= 1;
        (frame, next == NONE)
    }

    /// The inputs whose packets wait for an output's lane, in the order of their turns.
    pub(super) fn inputs(&self, output: usize, lane: u8) -> impl Iterator<Item = u16> {
        self.rings[self.ring(output, lane)].iter().copied()
    }

    /// When the first packet of an input came that waits for an output's lane.
    pub(super) fn first_of(&self, output: usize, lane: u8, input: u16) -> Option<Time> {
        let ring = self.ring(output, lane);
        let head = self.queues[ring * self.ports + usize::from(input)].head;
        self.pool.get(head as usize).map(|place| place.frame.time)
    }

    /// Whether it is an input's turn.
    pub(super) fn goes_next(&self, output: usize, lane: u8, input: u16) -> bool {
        self.rings[self.ring(output, lane)].front() == Some(&input)
    }

    /// Takes the first packet of an input, whose turn need not have come and stays where it is.
    pub(super) fn pop_of(&mut self, output: usize, lane: u8, input: u16) -> Option<Frame> {
        let ring = self.ring(output, lane);
        let turn = self.rings[ring].iter().position(|other| *other == input)?;
        let (frame, is_last) = self.unlink(ring, input);
        if is_last {
            self.rings[ring].remove(turn);
        }
        Some(frame)
    }

    /// Whether anything waits for an output's lane.
    #[inline]
    pub(super) fn is_empty(&self, output: usize, lane: u8) -> bool {
        self.rings[self.ring(output, lane)].is_empty()
    }

    /// All that waits for an output's lane, in no order that matters.
    pub(super) fn of(&self, output: usize, lane: u8) -> impl Iterator<Item = &Frame> {
        let ring = self.ring(output, lane);
        self.rings[ring].iter().flat_map(move |input| {
            let mut at = self.queues[ring * self.ports + usize::from(*input)].head;
            std::iter::from_fn(move || {
                let place = self.pool.get(at as usize)?;
                at = place.next;
                Some(&place.frame)
            })
        })
    }

    /// Packets in all queues.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(flow: u32, ingress: u16) -> Frame {
        Frame {
            flow,
            ingress,
            ..Frame::blank()
        }
    }

    #[test]
    fn inputs_have_their_turns_and_each_keeps_its_order() {
        let mut waiting = Waiting::new(4, 2);
        let pushes = [(0, 0), (1, 0), (2, 0), (10, 1), (11, 1), (20, 3)];
        let first: Vec<_> = pushes
            .iter()
            .map(|&(flow, input)| waiting.push(2, 1, frame(flow, input)))
            .collect();
        assert_eq!(first, [true, false, false, false, false, false]);
        assert_eq!(waiting.of(2, 1).count(), 6);
        let mut order = Vec::new();
        while let Some(front) = waiting.front(2, 1).map(|frame| frame.flow) {
            let frame = waiting.pop(2, 1).unwrap();
            assert_eq!(frame.flow, front);
            order.push(frame.flow);
        }
        assert_eq!(order, [0, 10, 20, 1, 11, 2]);
        assert!(waiting.is_empty(2, 1) && waiting.packets() == 0);
    }

    /// What is taken out of turn changes no turn but its own.
    #[test]
    fn a_packet_may_be_taken_out_of_turn() {
        let mut waiting = Waiting::new(4, 1);
        for (flow, input) in [(0, 0), (10, 1), (11, 1), (20, 2), (30, 3)] {
            waiting.push(2, 0, frame(flow, input));
        }
        assert!(waiting.goes_next(2, 0, 0) && !waiting.goes_next(2, 0, 1));
        let taken = |waiting: &mut Waiting, input| waiting.pop_of(2, 0, input).map(|it| it.flow);
        assert_eq!(taken(&mut waiting, 1), Some(10));
        assert_eq!(taken(&mut waiting, 2), Some(20));
        assert_eq!(taken(&mut waiting, 2), None);
        assert_eq!(waiting.inputs(2, 0).collect::<Vec<_>>(), [0, 1, 3]);
        let rest: Vec<_> = std::iter::from_fn(|| waiting.pop(2, 0)).collect();
        let rest: Vec<_> = rest.iter().map(|frame| frame.flow).collect();
        assert_eq!(rest, [0, 11, 30]);
        assert_eq!(waiting.packets(), 0);
    }

    #[test]
    fn places_are_used_again() {
        let mut waiting = Waiting::new(2, 1);
        for flow in 0..100 {
            waiting.push(0, 0, frame(flow, 1));
            waiting.push(1, 0, frame(flow, 0));
            assert_eq!(waiting.pop(0, 0).map(|frame| frame.flow), Some(flow));
            assert_eq!(waiting.pop(1, 0).map(|frame| frame.flow), Some(flow));
        }
        assert_eq!(waiting.pool.len(), 2);
    }
}
