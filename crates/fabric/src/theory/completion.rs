//! How soon a flow that is alone can be done.
//!
//! ```text
//! sender ──hop 1──► switch ──hop 2──► … ──hop h──► receiver ──acknowledgement──► sender
//!           rate, delay   latency
//! ```
//!
//! Every switch stores a packet whole before it forwards it. Packets are of one size but for the last, so each but
//! the last follows the one before it by the longest serialisation on its way so far; the last is followed hop by hop.
//! The result is exact, and takes as many steps as there are hops.

use softfabric_units::{Bytes, Rate, Span};

/// One link on the way, and the switch at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The link's rate.
    pub rate: Rate,
    /// The link's delay.
    pub delay: Span,
    /// What the switch at its end takes from the last bit in to the first bit out; zero at the receiver.
    pub latency: Span,
}

/// How a message is cut into packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// What is to be transferred.
    pub bytes: Bytes,
    /// The most payload of a packet.
    pub payload: Bytes,
    /// What each packet has beside its payload.
    pub overhead: Bytes,
}

/// When a transfer counts as complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acknowledgement {
    /// When its last byte is at the receiver.
    None,
    /// When the sender has an acknowledgement of this size, which takes the same hops back.
    OfSize(Bytes),
}

/// The completion time over `hops` of a message that nothing else disturbs. `serialise` says how long bytes take at a
/// rate: [`Rate::time_for`], or a rounding of another simulator's.
///
/// A message of no bytes is one packet without payload. Without hops it takes no time.
pub fn ideal_completion(
    hops: &[Hop],
    message: Message,
    acknowledgement: Acknowledgement,
    serialise: impl Fn(Rate, Bytes) -> Span,
) -> Span {
    let payload = message.payload.as_u64().max(1);
    let packets = message.bytes.as_u64().div_ceil(payload).max(1);
    let last = message.bytes.as_u64() - (packets - 1) * payload;
    let full_size = Bytes::new(payload) + message.overhead;
    let last_size = Bytes::new(last) + message.overhead;

    // When the packet before the last has left each hop's sender, and when the last one arrives there.
    let mut before_sum = Span::ZERO;
    let mut slowest = Span::ZERO;
    let mut arrival = Span::ZERO;
    let mut passed = Span::ZERO;
    for hop in hops {
        let full = serialise(hop.rate, full_size);
        before_sum += full;
        slowest = slowest.max(full);
        let hop_free = match packets {
            1 => Span::ZERO,
            _ => passed + before_sum + slowest * (packets - 2),
        };
        passed += hop.delay + hop.latency;
        arrival = arrival.max(hop_free) + serialise(hop.rate, last_size) + hop.delay + hop.latency;
    }
    match acknowledgement {
        Acknowledgement::None => arrival,
        Acknowledgement::OfSize(size) => {
            let back = |hop: &Hop| serialise(hop.rate, size) + hop.delay + hop.latency;
            arrival + hops.iter().map(back).sum()
        }
    }
}

/// The completion time that the HPCC ns-3 code divides by for its slowdown, in its whole nanoseconds: twice the delays,
/// one payload's serialisation at each hop, and all bytes with their headers at the slowest hop's rate.
///
/// Source: `GetStandaloneFct` of its `third.cc`, restated in its own rounding: each term is rounded down.
pub fn hpcc_standalone(hops: &[Hop], message: Message) -> Span {
    let nanos = |bytes: u64, rate: Rate| {
        let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(rate.as_bps().max(1));
        Span::nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 1_000))
    };
    let payload = message.payload.as_u64().max(1);
    let packets = message.bytes.as_u64().div_ceil(payload);
    let on_wire = message.bytes.as_u64() + packets * message.overhead.as_u64();
    let delays: Span = hops.iter().map(|hop| hop.delay * 2).sum();
    let payloads: Span = hops.iter().map(|hop| nanos(payload, hop.rate)).sum();
    let slowest = hops.iter().map(|hop| hop.rate).min();
    delays + payloads + slowest.map_or(Span::ZERO, |rate| nanos(on_wire, rate))
}
