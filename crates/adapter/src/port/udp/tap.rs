//! Where packets of the wire meet faults and recordings, on their way out and in.
//!
//! ```text
//! transport ──► faults ──► recording ──► socket        socket ──► recording ──► faults ──► transport
//! ```

use smallvec::SmallVec;
use softfabric_units::Time;
use softfabric_wire::pcapng::Direction;
use softfabric_wire::udp::ROCE_PORT;

use super::batch::Lane;
use super::frame::FIRST_GUESS;
use super::{CONGESTION_EXPERIENCED, Origin};
use crate::faults::{Faults, Packet, Point, Rule};
use crate::record::Recorder;

/// What stands between the transport and the sockets.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    send: Option<Faults<Lane>>,
    receive: Option<Faults<Origin>>,
    recorder: Option<Recorder>,
}

type Packets<T> = SmallVec<[Packet<T>; 2]>;

impl Tap {
    pub(crate) fn new(rules: &[Rule], seed: u64, recorder: Option<Recorder>) -> Self {
        Self {
            send: Faults::new(rules, seed, Point::Send),
            receive: Faults::new(rules, seed, Point::Receive),
            recorder,
        }
    }

    /// Whether packets that are sent have to pass one by one.
    pub(super) fn is_outward(&self) -> bool {
        self.send.is_some() || self.recorder.is_some()
    }

    /// Whether packets that arrive have to pass one by one.
    pub(super) fn is_inward(&self) -> bool {
        self.receive.is_some() || self.recorder.is_some()
    }

    /// How many packets met a fault.
    pub(crate) fn met(&self) -> u64 {
        let send = self.send.as_ref().map_or(0, |faults| faults.met);
        send + self.receive.as_ref().map_or(0, |faults| faults.met)
    }

    /// A packet that is to be sent: those that are sent now.
    pub(super) fn outward(&mut self, now: Time, lane: Lane, bytes: Vec<u8>) -> Packets<Lane> {
        let packet = Packet {
            bytes,
            marked: false,
            about: lane,
        };
        let Some(faults) = &mut self.send else {
            self.record_outward(now, &packet, "");
            return SmallVec::from_elem(packet, 1);
        };
        let original = self.recorder.is_some().then(|| packet.clone());
        let (onward, fate) = faults.pass(now, packet);
        if let (Some(rule), Some(original)) = (fate.dropped_by, original) {
            self.record_outward(now, &original, &format!("dropped by fault rule {rule}"));
        }
        self.mark_outward(now, onward)
    }

    /// Packets that were held back and are sent now.
    pub(super) fn outward_due(&mut self, now: Time) -> Packets<Lane> {
        let due = self.send.as_mut().map(|faults| faults.due(now));
        self.mark_outward(now, due.unwrap_or_default())
    }

    fn mark_outward(&mut self, now: Time, mut packets: Packets<Lane>) -> Packets<Lane> {
        for packet in &mut packets {
            if packet.marked {
                packet.about.traffic_class |= CONGESTION_EXPERIENCED;
            }
            self.record_outward(now, packet, "");
        }
        packets
    }

    fn record_outward(&mut self, now: Time, packet: &Packet<Lane>, comment: &str) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let lane = &packet.about;
        let origin = Origin {
            source: lane.path.source,
            source_port: ROCE_PORT,
            destination: lane.path.destination,
            traffic_class: lane.traffic_class,
            hop_limit: lane.hop_limit,
        };
        let bytes = &packet.bytes;
        recorder.write(
            now,
            Direction::Outbound,
            &origin,
            FIRST_GUESS,
            bytes,
            comment,
        );
    }

    /// A packet that arrived: those that go on now.
    pub(super) fn inward(&mut self, now: Time, origin: Origin, bytes: &[u8]) -> Packets<Origin> {
        let packet = Packet {
            bytes: bytes.to_vec(),
            marked: false,
            about: origin,
        };
        let Some(faults) = &mut self.receive else {
            self.record_inward(now, &packet, "");
            return SmallVec::from_elem(packet, 1);
        };
        let original = self.recorder.is_some().then(|| packet.clone());
        let (onward, fate) = faults.pass(now, packet);
        if let Some(original) = original {
            let comment = match fate.dropped_by {
                Some(rule) => format!("dropped by fault rule {rule}"),
                None => String::new(),
            };
            self.record_inward(now, &original, &comment);
        }
        mark_inward(onward)
    }

    /// Packets that were held back and arrive now.
    pub(super) fn inward_due(&mut self, now: Time) -> Packets<Origin> {
        let due = self.receive.as_mut().map(|faults| faults.due(now));
        mark_inward(due.unwrap_or_default())
    }

    fn record_inward(&mut self, now: Time, packet: &Packet<Origin>, comment: &str) {
        if let Some(recorder) = &mut self.recorder {
            let (origin, bytes) = (&packet.about, &packet.bytes);
            recorder.write(now, Direction::Inbound, origin, FIRST_GUESS, bytes, comment);
        }
    }

    /// When a packet that is held back goes on.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let send = self.send.as_ref().and_then(Faults::next_due);
        let receive = self.receive.as_ref().and_then(Faults::next_due);
        [send, receive].into_iter().flatten().min()
    }
}

fn mark_inward(mut packets: Packets<Origin>) -> Packets<Origin> {
    for packet in &mut packets {
        if packet.marked {
            packet.about.traffic_class |= CONGESTION_EXPERIENCED;
        }
    }
    packets
}
