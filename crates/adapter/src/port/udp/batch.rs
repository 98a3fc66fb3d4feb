//! Packets that wait to be sent, gathered into as few messages as the kernel allows.
//!
//! ```text
//! arena    | packet packet packet short | packet | packet packet …
//! messages   one place, equal lengths     other    …
//!            but for the last
//! ```
//!
//! Every payload is copied here: its ICRC is that of the bytes that leave, whatever the program does to its memory
//! meanwhile.

use std::io;

use softfabric_transport::MemoryFault;
use softfabric_wire::rdma::{Operation, TransportHeader};
use softfabric_wire::udp::ROCE_PORT;

use super::frame::{self, Network};
use super::socket::{Batches, Family, Outgoing};
use crate::memory::Payload;
use crate::neighbours::Sockets;
use crate::nic::Path;

/// Bytes after which a batch is sent.
const FULL: usize = 1 << 18;
/// The most segments of one message: what older kernels take.
const SEGMENTS: u16 = 64;
/// The most bytes of one message, below what a UDP datagram's 16 bits of length allow.
const MESSAGE: usize = 65_000;

/// Where packets go and how: those of one message have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lane {
    pub(crate) path: Path,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    /// The receiving process: its socket is chosen by a message's first packet.
    pub(crate) member: u8,
}

impl Lane {
    pub(crate) fn network(&self) -> Network {
        Network {
            source: self.path.source,
            destination: self.path.destination,
            source_port: ROCE_PORT,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Message {
    lane: Lane,
    start: usize,
    end: usize,
    /// The length of all packets but the last.
    segment: usize,
    segments: u16,
    /// It is acknowledgements, which nobody waits for as much as for data: a message takes microseconds to leave.
    gives_way: bool,
}

impl Message {
    /// Whether a packet of `length` bytes may follow.
    fn takes(&self, lane: &Lane, length: usize) -> bool {
        let whole = (self.end - self.start).is_multiple_of(self.segment);
        whole
            && length <= self.segment
            && self.segments < SEGMENTS
            && self.end - self.start + length <= MESSAGE
            && self.lane == *lane
    }
}

/// Packets that wait.
#[derive(Debug)]
pub(crate) struct Batch {
    arena: Vec<u8>,
    messages: Vec<Message>,
    /// How many messages have gone.
    sent: usize,
    batches: Batches,
    /// Whether the kernel splits messages.
    segmentation: bool,
}

/// What became of a flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Flushed {
    /// The socket's buffer is full: some still wait.
    pub(crate) blocked: bool,
    /// Packets that no route or no interface would take.
    pub(crate) discarded: u64,
}

impl Batch {
    pub(crate) fn new(segmentation: bool) -> Self {
        Self {
            arena: Vec::with_capacity(FULL + MESSAGE),
            messages: Vec::new(),
            sent: 0,
            batches: Batches::to_send(),
            segmentation,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether it should be flushed before more is added.
    pub(crate) fn is_full(&self) -> bool {
        self.arena.len() >= FULL
    }

    /// Adds a packet, and returns its length.
    ///
    /// # Errors
    /// If its payload cannot be read.
    pub(crate) fn push(
        &mut self,
        lane: Lane,
        header: &TransportHeader,
        payload: &Payload,
        payload_length: u32,
    ) -> Result<usize, MemoryFault> {
        let length = frame::length(header, payload_length);
        let acknowledges = header.bth.opcode.operation() == Operation::Acknowledge;
        let start = self.arena.len();
        let last = self.messages.last_mut();
        let last = last.filter(|last| self.segmentation && last.takes(&lane, length));
        let segment = last.as_ref().map_or(0, |last| last.segments);
        frame::encode(&lane.network(), segment, header, payload, &mut self.arena)?;
        let end = self.arena.len();
        match last {
            Some(last) => {
                last.end = end;
                last.segments += 1;
                last.gives_way &= acknowledges;
            }
            None => self.messages.push(Message {
                lane,
                start,
                end,
                segment: length,
                segments: 1,
                gives_way: acknowledges,
            }),
        }
        Ok(length)
    }

    /// Adds a packet that is encoded already, by itself.
    pub(crate) fn push_bytes(&mut self, lane: Lane, packet: &[u8]) {
        let start = self.arena.len();
        self.arena.extend_from_slice(packet);
        self.messages.push(Message {
            lane,
            start,
            end: self.arena.len(),
            segment: packet.len(),
            segments: 1,
            gives_way: false,
        });
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self, sockets: &Sockets) -> Flushed {
        let mut flushed = Flushed::default();
        if self.sent == 0 && self.messages.len() > 1 {
            self.messages.sort_by_key(|message| message.gives_way);
        }
        while let Some(first) = self.messages.get(self.sent) {
            let family = Family::of(&first.lane.path.destination);
            let Some(socket) = sockets.of(family) else {
                flushed.discarded += u64::from(first.segments);
                self.sent += 1;
                continue;
            };
            let outgoing = self.messages[self.sent..]
                .iter()
                .take_while(|message| Family::of(&message.lane.path.destination) == family)
                .map(|message| Outgoing {
                    path: &message.lane.path,
                    traffic_class: message.lane.traffic_class,
                    hop_limit: message.lane.hop_limit,
                    segment: message.segment,
                    bytes: &self.arena[message.start..message.end],
                });
            match self.batches.send(socket, outgoing) {
                Ok(sent) => self.sent += sent,
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => {
                        flushed.blocked = true;
                        return flushed;
                    }
                    // The kernel cannot split for this interface: from now on, one by one.
                    _ if self.messages[self.sent].segments > 1 && is_unsupported(&error) => {
                        self.segmentation = false;
                        self.split();
                    }
                    // No route, a packet too long for the path, a firewall: as lost as any other.
                    _ => {
                        flushed.discarded += u64::from(self.messages[self.sent].segments);
                        self.sent += 1;
                    }
                },
            }
        }
        self.arena.clear();
        self.messages.clear();
        self.sent = 0;
        flushed
    }

    /// Makes every packet that waits a message of its own.
    fn split(&mut self) {
        let mut single = Vec::new();
        for message in &self.messages[self.sent..] {
            let mut start = message.start;
            while start < message.end {
                let end = (start + message.segment).min(message.end);
                frame::seal(&message.lane.network(), 0, &mut self.arena[start..end]);
                single.push(Message {
                    start,
                    end,
                    segment: end - start,
                    segments: 1,
                    ..*message
                });
                start = end;
            }
        }
        self.messages = single;
        self.sent = 0;
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::EIO | libc::EOPNOTSUPP | libc::ENOPROTOOPT)
    )
}
