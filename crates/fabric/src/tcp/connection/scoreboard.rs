//! What was sent and is not acknowledged, segment by segment, and what of it is lost (RFC 6675).

use std::collections::VecDeque;

use softfabric_units::{Span, Time};

use crate::tcp::ranges::Ranges;

/// A segment under way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Its position, and the one after its last byte.
    start: u64,
    end: u64,
    time: Time,
    /// It was sent more than once: its round trip cannot be told (Karn).
    again: bool,
    /// The other end has it.
    sacked: bool,
    /// It is taken for lost.
    lost: bool,
    /// And was sent again since.
    repaired: bool,
    push: bool,
}

impl Sent {
    fn length(&self) -> u64 {
        self.end - self.start
    }

    /// What it contributes to what is thought to be in the network.
    fn pipe(&self) -> u64 {
        if self.sacked {
            return 0;
        }
        self.length() * (u64::from(!self.lost) + u64::from(self.repaired))
    }
}

/// All segments under way, in the order of the stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<Sent>,
    /// Ranges that the other end has ahead of a hole.
    sacked: Ranges,
    /// What is thought to be in the network, in bytes (RFC 6675, SetPipe).
    pipe: u64,
    /// Everything that is not sacked below this is lost.
    lost_below: u64,
    /// Nothing below this is lost and yet to be sent again.
    repair_from: u64,
    /// When the latest segment left that is known to have arrived and was sent once.
    latest_arrived: Time,
}

/// A segment that is to be sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repair {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) push: bool,
}

/// What an acknowledgement has taken off the scoreboard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    /// When the latest segment among them left that was sent once and not known to have arrived.
    pub(super) sent: Option<Time>,
    pub(super) segments: u64,
}

/// More than so many segments' worth of bytes above a hole mean that it is a loss (DupThresh − 1).
const REORDERED: u64 = 2;
/// So many ranges above a hole mean it, too.
const DUPLICATE_THRESHOLD: usize = 3;

impl Scoreboard {
    pub(super) fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Adds a segment that is sent for the first time.
    pub(super) fn push(&mut self, now: Time, start: u64, end: u64, push: bool) {
        let sent = Sent {
            start,
            end,
            time: now,
            again: false,
            sacked: false,
            lost: false,
            repaired: false,
            push,
        };
        self.pipe += sent.pipe();
        self.segments.push_back(sent);
    }

    /// Everything below `position` is acknowledged.
    pub(super) fn acknowledge(&mut self, position: u64) -> Taken {
        let mut taken = Taken::default();
        while let Some(sent) = self.segments.front()
            && sent.end <= position
        {
            self.pipe -= sent.pipe();
            if !sent.again && !sent.sacked {
                taken.sent = Some(sent.time);
                self.latest_arrived = self.latest_arrived.max(sent.time);
            }
            taken.segments += 1;
            self.segments.pop_front();
        }
        self.sacked.remove_below(position);
        self.lost_below = self.lost_below.max(position);
        self.repair_from = self.repair_from.max(position);
        taken
    }

    /// The other end has `start..end` ahead of a hole. Returns when the latest segment left that this is news of, if that
    /// was sent once.
    pub(super) fn sack(&mut self, start: u64, end: u64) -> Option<Time> {
        let mut latest = None;
        let news: arrayvec::ArrayVec<(u64, u64), 8> =
            self.sacked.missing(start, end).take(8).collect();
        for (start, end) in news {
            let first = self.segments.partition_point(|sent| sent.start < start);
            for sent in self.segments.range_mut(first..) {
                if sent.end > end {
                    break;
                }
                self.pipe -= sent.pipe();
                sent.sacked = true;
                if !sent.again {
                    latest = Some(sent.time);
                    self.latest_arrived = self.latest_arrived.max(sent.time);
                }
            }
            self.sacked.insert(start, end);
        }
        latest
    }

    /// Looks for losses by what was sacked above them (RFC 6675, IsLost): true if there are new ones.
    pub(super) fn find_losses(&mut self, segment: u64) -> bool {
        let mut above = 0;
        let mut below = 0;
        for (count, (start, end)) in (1..).zip(self.sacked.descending()) {
            above += end - start;
            if above > REORDERED * segment || count >= DUPLICATE_THRESHOLD {
                below = start;
                break;
            }
        }
        self.lose_below(below)
    }

    /// Looks for segments that were sent again and lost again: something that left later by more than `reordering` has
    /// arrived (RFC 8985, 6.2). RFC 6675 would wait for the timer.
    pub(super) fn find_lost_repairs(&mut self, reordering: Span) {
        for sent in &mut self.segments {
            if sent.start >= self.lost_below {
                break;
            }
            if sent.repaired && !sent.sacked && sent.time + reordering < self.latest_arrived {
                self.pipe -= sent.pipe();
                sent.repaired = false;
                self.pipe += sent.pipe();
                self.repair_from = self.repair_from.min(sent.start);
            }
        }
    }

    /// The first segment is lost (NewReno). True if it was not known to be, or was sent again since.
    pub(super) fn lose_first(&mut self) -> bool {
        let Some(first) = self.segments.front_mut() else {
            return false;
        };
        self.pipe -= first.pipe();
        let news = !first.lost || first.repaired;
        first.lost = true;
        first.repaired = false;
        self.lost_below = self.lost_below.max(first.end);
        self.repair_from = first.start;
        news
    }

    fn lose_below(&mut self, position: u64) -> bool {
        let mut found = false;
        if position <= self.lost_below {
            return found;
        }
        let first = self
            .segments
            .partition_point(|sent| sent.start < self.lost_below);
        for sent in self.segments.range_mut(first..) {
            if sent.end > position {
                break;
            }
            if !sent.sacked && !sent.lost {
                self.pipe -= sent.pipe();
                sent.lost = true;
                found = true;
            }
        }
        self.lost_below = position;
        found
    }

    /// Everything that the other end is not known to have is lost: the timer has expired (RFC 6675, 5.1).
    pub(super) fn lose_all(&mut self) {
        for sent in &mut self.segments {
            if !sent.sacked {
                sent.lost = true;
                sent.repaired = false;
            }
        }
        self.pipe = 0;
        if let (Some(first), Some(last)) = (self.segments.front(), self.segments.back()) {
            self.lost_below = last.end;
            self.repair_from = first.start;
        }
    }

    /// The first lost segment that is yet to be sent again.
    pub(super) fn next_repair(&mut self) -> Option<Repair> {
        let first = self
            .segments
            .partition_point(|sent| sent.start < self.repair_from);
        for sent in self.segments.range(first..) {
            if sent.start >= self.lost_below {
                break;
            }
            if sent.lost && !sent.sacked && !sent.repaired {
                self.repair_from = sent.start;
                return Some(Repair {
                    start: sent.start,
                    end: sent.end,
                    push: sent.push,
                });
            }
        }
        self.repair_from = self.repair_from.max(self.lost_below);
        None
    }

    /// The segment that [`Scoreboard::next_repair`] has named is sent again.
    pub(super) fn repaired(&mut self, now: Time, start: u64) {
        let index = self.segments.partition_point(|sent| sent.start < start);
        if let Some(sent) = self.segments.get_mut(index) {
            self.pipe -= sent.pipe();
            sent.repaired = true;
            sent.again = true;
            sent.time = now;
            self.pipe += sent.pipe();
        }
    }

    /// What [`Scoreboard::pipe`] must be.
    #[cfg(test)]
    pub(super) fn recount(&self) -> u64 {
        self.segments.iter().map(Sent::pipe).sum()
    }
}
