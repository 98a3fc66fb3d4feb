//! Messages of traces: which send is for which receive.

use std::collections::BTreeMap;

use softfabric_units::Bytes;

/// A message, seen from one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The rank at the other end.
    pub peer: u32,
    /// How long it is.
    pub bytes: Bytes,
    /// What tells it from others.
    pub tag: u32,
}

/// A send or a receive: its rank, and its place in it.
pub(super) type At = (u32, u32);

/// The sends and receives of all ranks, by sender, receiver and tag, each in the order in which its rank can do them.
#[derive(Debug, Default)]
pub(super) struct Ends {
    of: BTreeMap<(u32, u32, u32), BothEnds>,
}

/// What is sent from one rank to another with one tag, and what is received of it.
#[derive(Debug, Default)]
struct BothEnds {
    sends: Vec<End>,
    receives: Vec<End>,
}

/// One end, and how long its message is, or may be.
type End = (At, Bytes);

/// The two ends of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) send: At,
    pub(super) receive: At,
}

/// Why sends and receives are no pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unpaired {
    /// A rank sends what is not received; so many of its kind are.
    Sent {
        send: At,
        to: u32,
        tag: u32,
        received: usize,
    },
    /// A rank waits for what is not sent; so many of its kind are.
    Awaited {
        receive: At,
        from: u32,
        tag: u32,
        sent: usize,
    },
    /// A receive is shorter than its message.
    Short {
        pair: Pair,
        sent: Bytes,
        taken: Bytes,
    },
}

impl Ends {
    /// One more send of a rank.
    pub(super) fn send(&mut self, at: At, message: Message) {
        let ends = self.of.entry((at.0, message.peer, message.tag));
        ends.or_default().sends.push((at, message.bytes));
    }

    /// One more receive of a rank.
    pub(super) fn receive(&mut self, at: At, message: Message) {
        let ends = self.of.entry((message.peer, at.0, message.tag));
        ends.or_default().receives.push((at, message.bytes));
    }

    /// The n-th send from one rank to another with a tag is for the n-th receive of it.
    pub(super) fn pairs(self) -> Result<Vec<Pair>, Unpaired> {
        let mut pairs = Vec::new();
        for ((from, to, tag), BothEnds { sends, receives }) in self.of {
            let matched = sends.len().min(receives.len());
            if let Some(&(send, _)) = sends.get(matched) {
                return Err(Unpaired::Sent {
                    send,
                    to,
                    tag,
                    received: matched,
                });
            }
            if let Some(&(receive, _)) = receives.get(matched) {
                return Err(Unpaired::Awaited {
                    receive,
                    from,
                    tag,
                    sent: matched,
                });
            }
            for ((send, sent), (receive, taken)) in sends.into_iter().zip(receives) {
                let pair = Pair { send, receive };
                if taken < sent {
                    return Err(Unpaired::Short { pair, sent, taken });
                }
                pairs.push(pair);
            }
        }
        Ok(pairs)
    }
}
