//! What a node remembers for the report: drops, pause frames, and values over time.
//!
//! Samples are taken lazily: at the first event after an interval has ended, from the state as it was left. Nothing is
//! scheduled for the recorder's sake, so recording never changes a run. When a recorder is full it merges neighbours and
//! doubles its interval; all recorders of a run do so at the same times and end with the same interval.

use softfabric_telemetry::{ClassCounter, Reduce, Series};
use softfabric_units::{Class, Span, Time};

use super::frame::{Frame, PauseFrame};
use super::port::Transmitter;
use crate::plan::{Endpoint, FlowId, NodeId, PortId};
use crate::results::{DropReason, LosslessDrop, PauseEvent, Signal};

/// How many samples a series keeps at most.
const CAPACITY: usize = 1024;
/// How many lossless drops are kept one by one.
const KEPT_DROPS: usize = 1000;

/// Packets that were lost at a node.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub(crate) total: u64,
    pub(crate) lossless: u64,
    pub(crate) first_lossless: Vec<LosslessDrop>,
    /// The first packet that was lost to congestion.
    pub(crate) first: Option<Signal>,
}

impl Losses {
    pub(crate) fn count(
        &mut self,
        time: Time,
        endpoint: Endpoint,
        frame: &Frame,
        reason: DropReason,
        lossless: bool,
    ) {
        self.total += 1;
        if reason.is_congestion() {
            self.first.get_or_insert(Signal { time, endpoint });
        }
        if lossless {
            self.lossless += 1;
            if self.first_lossless.len() < KEPT_DROPS {
                let flow = FlowId(frame.flow);
                self.first_lossless.push(LosslessDrop {
                    time,
                    endpoint,
                    class: frame.class,
                    flow,
                    reason,
                });
            }
        }
    }
}

/// What a node remembers.
#[derive(Debug)]
pub(crate) struct NodeRecorder {
    node: NodeId,
    pub(crate) pause_log: Option<Vec<PauseEvent>>,
    clock: Option<SampleClock>,
    pub(crate) ports: Vec<PortTrack>,
    /// CE marks per interval.
    pub(crate) marks: Track,
    /// Notifications sent per interval.
    pub(crate) notifications: Track,
    /// Mean number of paused queues.
    pub(crate) paused_queues: Track,
    /// Payload bytes that hosts took, per interval.
    pub(crate) delivered: Track,
    /// Flows that are followed at this node.
    pub(crate) flows: Vec<FlowTrack>,
    last_marks: u64,
    last_notifications: u64,
    last_delivered: u64,
}

/// When samples are due.
#[derive(Clone, Copy, Debug)]
struct SampleClock {
    interval: Span,
    /// The end of the interval that runs.
    next: Time,
    origin: Time,
}

/// The values of one quantity.
#[derive(Debug)]
pub(crate) struct Track {
    reduce: Reduce,
    values: Vec<f64>,
}

impl Default for Track {
    fn default() -> Self {
        Self::new(Reduce::Sum)
    }
}

/// One port over time.
#[derive(Debug)]
pub(crate) struct PortTrack {
    queue: Track,
    mean_queue: Track,
    paused: Track,
    rate: Track,
    last_sent: u64,
    last_paused: u64,
    last_area: u128,
}

/// One flow over time, as the host at one end sees it.
#[derive(Debug)]
pub(crate) struct FlowTrack {
    pub(crate) flow: u32,
    /// Payload bytes delivered so far (receiver), kept by the host.
    pub(crate) bytes: u64,
    /// The rate that rate control allows now, in bit/s (sender), kept by the host.
    pub(crate) allowed: f64,
    rate: Track,
    allowed_track: Track,
    last_bytes: u64,
}

/// What a sample looks at on a port.
pub(crate) struct PortProbe<'t> {
    pub(crate) transmitter: &'t Transmitter,
    /// The most bytes queued since the last sample.
    pub(crate) peak: u64,
    /// Bytes queued now.
    pub(crate) queued: u64,
    /// Bytes queued times picoseconds until `changed`.
    pub(crate) area: u128,
    pub(crate) changed: Time,
    /// It is credit that holds the port up, not pause frames.
    pub(crate) by_credit: bool,
}

/// What the node counts beside its ports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeTotals {
    pub(crate) notifications: u64,
    pub(crate) delivered: u64,
}

impl Track {
    fn new(reduce: Reduce) -> Self {
        Self {
            reduce,
            values: Vec::new(),
        }
    }

    fn halve(&mut self) {
        let reduce = self.reduce;
        let merged = |pair: &[f64]| match (reduce, pair) {
            (Reduce::Mean, [a, b]) => (a + b) / 2.0,
            (Reduce::Sum, [a, b]) => a + b,
            (Reduce::Max, [a, b]) => a.max(*b),
            (_, [a, ..]) => *a,
            (_, []) => 0.0,
        };
        self.values = self.values.chunks(2).map(merged).collect();
    }

    /// The finished series, its values `interval` apart.
    pub(crate) fn series(&self, interval: Span) -> Series {
        Series::from_values(interval, self.reduce, self.values.clone())
    }

    /// Adds another track of the same length to this one, value by value.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.values
            .resize(self.values.len().max(other.values.len()), 0.0);
        for (value, more) in self.values.iter_mut().zip(&other.values) {
            *value += more;
        }
    }
}

impl PortTrack {
    fn new() -> Self {
        Self {
            queue: Track::new(Reduce::Max),
            mean_queue: Track::new(Reduce::Mean),
            paused: Track::new(Reduce::Mean),
            rate: Track::new(Reduce::Mean),
            last_sent: 0,
            last_paused: 0,
            last_area: 0,
        }
    }

    pub(crate) fn queue(&self) -> &Track {
        &self.queue
    }

    pub(crate) fn mean_queue(&self) -> &Track {
        &self.mean_queue
    }

    pub(crate) fn paused(&self) -> &Track {
        &self.paused
    }

    pub(crate) fn rate(&self) -> &Track {
        &self.rate
    }
}

impl FlowTrack {
    pub(crate) fn new(flow: u32) -> Self {
        Self {
            flow,
            bytes: 0,
            allowed: 0.0,
            rate: Track::new(Reduce::Mean),
            allowed_track: Track::new(Reduce::Mean),
            last_bytes: 0,
        }
    }

    pub(crate) fn rate(&self) -> &Track {
        &self.rate
    }

    pub(crate) fn allowed_rates(&self) -> &Track {
        &self.allowed_track
    }
}

impl NodeRecorder {
    /// A recorder of a node with `ports` ports. Samples start at `origin`, if `interval` says that any are taken.
    pub(crate) fn new(
        node: u32,
        ports: usize,
        interval: Option<Span>,
        origin: Time,
        pause_log: bool,
    ) -> Self {
        Self {
            node: NodeId(node),
            pause_log: pause_log.then(Vec::new),
            clock: interval.map(|interval| SampleClock {
                interval,
                next: origin + interval,
                origin,
            }),
            ports: (0..ports).map(|_| PortTrack::new()).collect(),
            marks: Track::new(Reduce::Sum),
            notifications: Track::new(Reduce::Sum),
            paused_queues: Track::new(Reduce::Mean),
            delivered: Track::new(Reduce::Sum),
            flows: Vec::new(),
            last_marks: 0,
            last_notifications: 0,
            last_delivered: 0,
        }
    }

    /// When the next sample is due.
    pub(crate) fn next_sample(&self) -> Time {
        self.clock.map_or(Time::NEVER, |clock| clock.next)
    }

    /// The final interval.
    pub(crate) fn interval(&self) -> Option<Span> {
        self.clock.map(|clock| clock.interval)
    }

    pub(crate) fn log_pause(&mut self, time: Time, port: usize, frame: &PauseFrame) {
        if let Some(log) = &mut self.pause_log {
            let endpoint = Endpoint {
                node: self.node,
                port: PortId(port as u16),
            };
            log.push(PauseEvent {
                time,
                endpoint,
                class: frame.class,
                pause: frame.request.is_pause(),
            });
        }
    }

    /// Takes all samples that are due at `now`; `probe` tells the state of a port as the last event left it.
    pub(crate) fn sample<'t>(
        &mut self,
        now: Time,
        totals: NodeTotals,
        mut probe: impl FnMut(usize) -> PortProbe<'t>,
    ) {
        let Some(mut clock) = self.clock else { return };
        let mut first = true;
        while clock.next <= now {
            let mut paused_queues = 0.0;
            let mut marks = 0;
            for (index, track) in self.ports.iter_mut().enumerate() {
                let state = probe(index);
                let transmitter = state.transmitter;
                track
                    .queue
                    .values
                    .push(if first { state.peak } else { state.queued } as f64);
                let since = clock.next.since(state.changed).as_picos();
                let area = state.area + u128::from(state.queued) * u128::from(since);
                let mean =
                    area.saturating_sub(track.last_area) as f64 / clock.interval.as_picos() as f64;
                track.mean_queue.values.push(mean);
                track.last_area = area;
                let sent = transmitter.total(ClassCounter::TransmitBytes);
                let rate = (sent - track.last_sent) as f64 * 8.0 / clock.interval.as_seconds_f64();
                track.rate.values.push(rate);
                track.last_sent = sent;
                let mut paused = if state.by_credit {
                    transmitter.waited(clock.next).as_picos()
                } else {
                    0
                };
                for class in Class::all() {
                    let counters = &transmitter.classes[class.index()];
                    paused += counters.value(ClassCounter::PauseReceivedDuration);
                    marks += counters.value(ClassCounter::EcnMarked);
                    if transmitter.paused.mask.contains(class) {
                        paused += clock
                            .next
                            .since(transmitter.paused.since[class.index()])
                            .as_picos();
                    }
                }
                let share = paused.saturating_sub(track.last_paused) as f64
                    / clock.interval.as_picos() as f64;
                track.paused.values.push(share.min(1.0));
                track.last_paused = paused;
                paused_queues += share;
            }
            self.paused_queues.values.push(paused_queues);
            self.marks
                .values
                .push(marks.saturating_sub(self.last_marks) as f64);
            self.last_marks = marks;
            self.notifications
                .values
                .push((totals.notifications - self.last_notifications) as f64);
            self.last_notifications = totals.notifications;
            self.delivered
                .values
                .push((totals.delivered - self.last_delivered) as f64);
            self.last_delivered = totals.delivered;
            for flow in &mut self.flows {
                let rate =
                    (flow.bytes - flow.last_bytes) as f64 * 8.0 / clock.interval.as_seconds_f64();
                flow.rate.values.push(rate);
                flow.last_bytes = flow.bytes;
                flow.allowed_track.values.push(flow.allowed);
            }
            first = false;
            if self.paused_queues.values.len() == CAPACITY {
                self.halve();
                clock.interval = clock.interval * 2;
            }
            let taken = self.paused_queues.values.len() as u64;
            clock.next = clock.origin + clock.interval * (taken + 1);
        }
        self.clock = Some(clock);
    }

    fn halve(&mut self) {
        for track in &mut self.ports {
            track.queue.halve();
            track.mean_queue.halve();
            track.paused.halve();
            track.rate.halve();
        }
        for track in [
            &mut self.marks,
            &mut self.notifications,
            &mut self.paused_queues,
            &mut self.delivered,
        ] {
            track.halve();
        }
        for flow in &mut self.flows {
            flow.rate.halve();
            flow.allowed_track.halve();
        }
    }
}
