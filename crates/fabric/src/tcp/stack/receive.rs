//! A core's receive ring, and how frames in a row become one segment (generic receive offload).

use std::collections::VecDeque;

use softfabric_units::Span;
use softfabric_wire::tcp::{TcpFlags, TcpHeader};

use super::super::{Arrival, CpuModel};

/// A segment as it came off the wire, or several as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// The connection.
    pub id: u32,
    /// The header.
    pub header: TcpHeader,
    /// Bytes of payload.
    pub payload: u32,
    /// It was marked (CE).
    pub congestion: bool,
}

impl Packet {
    pub(super) fn arrival(&self) -> Arrival<'_> {
        Arrival {
            header: &self.header,
            payload: self.payload,
            congestion: self.congestion,
        }
    }

    /// Makes `next` a part of this, if it goes on where this ends: much as Linux's `tcp_gro_receive`, which wants the same
    /// acknowledgement, flags and mark, and ends a segment with a push. Options are not compared, as they are there; the first
    /// one's stay.
    fn merge(&mut self, next: &Self, most: u64) -> bool {
        let plain = TcpFlags::ACK | TcpFlags::ECE;
        let joins = self.payload > 0
            && next.payload > 0
            && next.header.sequence == self.header.sequence.wrapping_add(self.payload)
            && next.header.acknowledgement == self.header.acknowledgement
            && next.congestion == self.congestion
            && plain.has(self.header.flags)
            && (plain | TcpFlags::PSH).has(next.header.flags)
            && next.header.flags.has(TcpFlags::ECE) == self.header.flags.has(TcpFlags::ECE)
            && u64::from(self.payload) + u64::from(next.payload) <= most;
        if joins {
            self.payload += next.payload;
            self.header.flags = self.header.flags | next.header.flags;
            self.header.window = next.header.window;
        }
        joins
    }
}

/// Frames of one poll, merged.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) packets: Vec<Packet>,
    pub(super) frames: u64,
}

impl Batch {
    pub(super) fn cost(&self, cpu: &CpuModel) -> Span {
        let stack = |packet: &Packet| {
            if packet.payload > 0 {
                cpu.segment
            } else {
                cpu.acknowledgement
            }
        };
        self.packets.iter().map(stack).sum::<Span>() + cpu.frame * self.frames
    }
}

/// The receive ring of one core.
#[derive(Debug, Default)]
pub(super) struct Ring {
    frames: VecDeque<Packet>,
    /// The core polls; no interrupt is needed.
    pub(super) polling: bool,
    pub(super) in_work: Batch,
}

impl Ring {
    pub(super) fn push(&mut self, packet: Packet) {
        self.frames.push_back(packet);
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Frames in the ring and in work.
    pub(super) fn held(&self) -> u64 {
        self.frames.len() as u64 + self.in_work.frames
    }

    /// What one poll takes off the ring. A frame is merged with the last segment of its connection.
    pub(super) fn take(&mut self, cpu: &CpuModel) -> Batch {
        let mut batch = Batch::default();
        let most = cpu.offload.as_u64();
        while batch.frames < u64::from(cpu.budget.max(1))
            && let Some(packet) = self.frames.pop_front()
        {
            batch.frames += 1;
            let last = batch
                .packets
                .iter_mut()
                .rev()
                .find(|last| last.id == packet.id);
            if !last.is_some_and(|last| last.merge(&packet, most)) {
                batch.packets.push(packet);
            }
        }
        batch
    }
}
