//! The sending half: what may leave, and what acknowledgements mean.

use softfabric_units::{Span, Time};

use super::Base;
use super::Statistics;
use super::recovery::Phase;
use super::scoreboard::Scoreboard;
use crate::tcp::TcpConfig;
use crate::tcp::congestion::{Acknowledged, Congestion};
use crate::tcp::round_trip::RoundTrip;

/// The stream to the other end.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    /// SND.UNA, SND.NXT, and the position after the last byte that the application has written.
    pub(super) unacknowledged: u64,
    pub(super) next: u64,
    written: u64,
    /// The application wants what it has written last to be handed on.
    pushed: bool,
    /// The right edge of the other end's window.
    edge: u64,
    pub(super) segment: u64,
    pub(super) sack: bool,
    pub(super) board: Scoreboard,
    pub(super) phase: Phase,
    /// Duplicate acknowledgements in a row, without SACK.
    pub(super) duplicates: u64,
    pub(super) congestion: Congestion,
    pub(super) round_trip: RoundTrip,
    timer: Option<Time>,
    /// How often in a row the timer has expired.
    pub(super) expired: u32,
    /// The next repair leaves whatever the window is (RFC 6675, 5, step 4.3).
    pub(super) repair_at_once: bool,
    /// CWR is to be said.
    pub(super) reduced: bool,
    /// The other end's window is shut and nothing is under way: one byte is to probe it (RFC 9293, 3.8.6.1).
    probe: bool,
    /// That byte is under way, and nothing else: that it is not taken says nothing of the network.
    probing: bool,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard<'a> {
    pub(super) acknowledgement: u64,
    /// The other end's window in bytes.
    pub(super) window: u64,
    /// What it has ahead.
    pub(super) blocks: &'a [(u64, u64)],
    /// ECN-Echo.
    pub(super) echo: bool,
    /// The segment has data: it is no duplicate acknowledgement (RFC 5681, 2).
    pub(super) with_data: bool,
}

/// A segment with data that is to leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) position: u64,
    pub(super) length: u64,
    pub(super) push: bool,
    /// It was sent before.
    pub(super) again: bool,
}

impl Sender {
    pub(super) fn new(config: &TcpConfig, segment: u64) -> Self {
        Self {
            unacknowledged: 1,
            next: 1,
            written: 1,
            pushed: false,
            edge: 1,
            segment,
            sack: false,
            board: Scoreboard::default(),
            phase: Phase::Open,
            duplicates: 0,
            congestion: Congestion::new(config, segment),
            round_trip: RoundTrip::new(config),
            timer: None,
            expired: 0,
            repair_at_once: false,
            reduced: false,
            probe: false,
            probing: false,
        }
    }

    pub(super) fn agree(&mut self, config: &TcpConfig, segment: u64, sack: bool) {
        self.segment = segment;
        self.sack = sack;
        self.congestion = Congestion::new(config, segment);
    }

    pub(super) fn set_window(&mut self, width: u64) {
        self.edge = self.unacknowledged + width;
    }

    pub(super) fn write(&mut self, bytes: u64, push: bool) {
        self.written += bytes;
        self.pushed = push;
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.unacknowledged - 1
    }

    /// Bytes written and not acknowledged.
    pub(super) fn unacknowledged_data(&self) -> u64 {
        self.written - self.unacknowledged
    }

    /// Bytes sent and not acknowledged: FlightSize of RFC 5681.
    pub(super) fn flight(&self) -> u64 {
        self.next - self.unacknowledged
    }

    /// What is thought to be in the network. Without SACK each duplicate acknowledgement tells of a segment that has left it
    /// (RFC 5681, 3.2).
    pub(super) fn pipe(&self) -> u64 {
        let pipe = self.board.pipe();
        if self.sack {
            return pipe;
        }
        pipe.saturating_sub(self.duplicates * self.segment)
    }

    pub(super) fn window(&self) -> u64 {
        self.congestion.window()
    }

    pub(super) fn alpha(&self) -> Option<f64> {
        self.congestion.alpha()
    }

    pub(super) fn round_trip(&self) -> Option<Span> {
        self.round_trip.smoothed()
    }

    pub(super) fn next_position(&self) -> u64 {
        self.next
    }

    /// Numbers that the other end acknowledges lie near what it has acknowledged.
    pub(super) fn position_base(&self, initial: u32) -> Base {
        Base::new(self.unacknowledged, initial)
    }

    pub(super) fn sample(&mut self, span: Span) {
        self.round_trip.sample(span);
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.timer
    }

    pub(super) fn start_timer(&mut self, now: Time) {
        self.timer = Some(now.saturating_add(self.round_trip.timeout()));
    }

    pub(super) fn stop_timer(&mut self) {
        self.timer = None;
    }

    pub(super) fn back_off(&mut self) {
        self.round_trip.back_off();
    }

    /// Whether CWR is to be said; it is said once.
    pub(super) fn take_reduced(&mut self) -> bool {
        std::mem::take(&mut self.reduced)
    }

    /// An acknowledgement has come.
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        heard: &Heard<'_>,
        statistics: &mut Statistics,
    ) {
        let position = heard.acknowledgement;
        if position > self.next || position < self.unacknowledged {
            return;
        }
        let flight = self.flight();
        let pipe = self.pipe();
        let bytes = position - self.unacknowledged;
        let same_window = position + heard.window <= self.edge;
        let taken = self.board.acknowledge(position);
        let mut measured = taken.sent;
        self.unacknowledged = position;
        for &(start, end) in heard.blocks {
            if position < start && start < end && end <= self.next {
                measured = measured.max(self.board.sack(start, end));
            }
        }
        if let Some(sent) = measured {
            self.round_trip.sample(now.since(sent));
        }
        self.edge = self.edge.max(position + heard.window);
        if bytes > 0 {
            self.expired = 0;
            self.probe = false;
            self.probing = false;
            self.round_trip.progress();
            self.timer = None;
            // Each segment that a partial acknowledgement covers is one fewer that duplicates stand for.
            self.duplicates = self.duplicates.saturating_sub(taken.segments);
        } else if self.probing {
            // RFC 9293, 3.8.6.1: who answers is alive, however long the window stays shut.
            self.expired = 0;
            if self.edge > self.unacknowledged {
                self.probe_again();
            }
        } else if !self.sack && !heard.with_data && same_window && self.flight() > 0 {
            self.duplicates += 1;
        }
        let acknowledged = Acknowledged {
            bytes,
            position,
            sent: self.next,
            latest: measured.map(|sent| now.since(sent)),
            smoothed: self.round_trip.smoothed(),
        };
        self.congestion.observe(&acknowledged, heard.echo);
        // The acknowledgement that ends a phase still speaks of packets that were sent before it.
        let marked = heard.echo && self.phase == Phase::Open && self.flight() + bytes > 0;
        self.move_on(bytes > 0);
        self.look_for_losses(flight, statistics);
        if marked && self.phase == Phase::Open {
            self.congestion.mark();
            self.phase = Phase::Reduced { until: self.next };
            self.reduced = true;
            statistics.reductions += 1;
        }
        let held_back = if self.congestion.is_slow_start() {
            // RFC 7661: while slow start doubles, half a window in use is enough.
            2 * pipe > self.congestion.window()
        } else {
            pipe + self.segment > self.congestion.window()
        };
        if bytes > 0 && held_back && self.phase.grows() {
            self.congestion.grow(now, &acknowledged);
        }
        if self.timer.is_none() && (self.flight() > 0 || self.is_shut()) {
            self.start_timer(now);
        }
        if self.flight() == 0 && !self.is_shut() {
            self.timer = None;
        }
    }

    /// There is data, and the other end's window takes none of it.
    fn is_shut(&self) -> bool {
        self.flight() == 0 && self.written > self.next && self.edge <= self.next
    }

    /// The next segment with data, if one may leave.
    pub(super) fn poll(
        &mut self,
        now: Time,
        nagle: bool,
        statistics: &mut Statistics,
    ) -> Option<Outgoing> {
        let window = self.congestion.window();
        let pipe = self.pipe();
        if let Some(repair) = self.board.next_repair() {
            let length = repair.end - repair.start;
            if !self.repair_at_once && pipe > 0 && pipe + length > window {
                return None;
            }
            self.repair_at_once = false;
            self.board.repaired(now, repair.start);
            statistics.retransmitted += u64::from(!self.probing);
            self.arm(now);
            return Some(Outgoing {
                position: repair.start,
                length,
                push: repair.push,
                again: true,
            });
        }
        let waiting = self.written - self.next;
        if waiting == 0 {
            return None;
        }
        let mut length = waiting.min(self.segment);
        let room = self.edge.saturating_sub(self.next);
        if self.probe {
            length = 1;
            self.probe = false;
            self.probing = true;
        } else {
            if room < length {
                // RFC 9293, 3.8.6.2.1: no silly segments, unless nothing else would ever move.
                if room == 0 || self.flight() > 0 {
                    if self.is_shut() && self.timer.is_none() {
                        self.start_timer(now);
                    }
                    return None;
                }
                length = room;
            }
            if pipe > 0 && pipe + length > window {
                return None;
            }
            if nagle && length < self.segment && self.flight() > 0 {
                return None;
            }
        }
        let start = self.next;
        self.next += length;
        let push = self.pushed && self.next == self.written;
        self.board.push(now, start, self.next, push);
        self.arm(now);
        Some(Outgoing {
            position: start,
            length,
            push,
            again: false,
        })
    }

    fn arm(&mut self, now: Time) {
        if self.timer.is_none() {
            self.start_timer(now);
        }
    }

    /// The probe's byte is to leave again.
    fn probe_again(&mut self) {
        self.board.lose_all();
        self.repair_at_once = true;
    }

    /// The timer has expired. False if the connection is to be given up.
    pub(super) fn time_out(
        &mut self,
        now: Time,
        retries: u32,
        statistics: &mut Statistics,
    ) -> bool {
        if self.flight() == 0 {
            self.probe = self.is_shut();
            self.timer = None;
            if self.probe {
                self.round_trip.back_off();
            }
            return true;
        }
        self.expired += 1;
        if self.expired > retries {
            self.timer = None;
            return false;
        }
        if self.probing {
            self.probe_again();
        } else {
            statistics.timeouts += 1;
            self.expire();
        }
        self.round_trip.back_off();
        self.start_timer(now);
        true
    }
}
