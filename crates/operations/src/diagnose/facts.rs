//! What counters say of each direction of a cable: how busy it is, how long it is held back, what gets lost on it.
//!
//! ```text
//!         egress port P                      ingress port Q
//!  node A ────────────── packets ──────────────► node B        busy: what P sent, or what Q received
//!         ◄───────────── pause, credits ────────               held: P was paused, or Q paused it
//! ```
//!
//! A direction is named by its egress port. Where both ends count it, either may be missing.

use softfabric_telemetry::{ClassCounter, Counter, DeviceCounter, PortCounter};
use softfabric_units::{Bytes, Class, Rate, Span};

use super::{Diagnosis, Lane};
use crate::history::{Growth, History, Window};
use crate::topology::{LinkLayer, NodeKind, PortIndex, Topology};

/// Ethernet's preamble, start of frame and gap, which no counter of bytes has.
const BETWEEN_FRAMES: f64 = 20.0;
/// The longest pause of one frame, in quanta of 512 bit times (802.1Qbb).
const LONGEST_PAUSE: u64 = 65_535 * 512;

/// The counters, as questions about cables.
pub(crate) struct Facts<'a> {
    pub(crate) topology: &'a Topology,
    growth: Growth,
    /// Stretches in which every port that is heard was heard, one after the other.
    pub(crate) grid: Vec<Window>,
    /// The lanes in which anybody was ever held back.
    pub(crate) lanes: Vec<Lane>,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(topology: &'a Topology, history: &History) -> Self {
        let growth = history.growth();
        let grid = grid(topology, history);
        let mut facts = Self {
            topology,
            growth,
            grid,
            lanes: Vec::new(),
        };
        facts.lanes = facts.lanes_in_use(history);
        facts
    }

    fn lanes_in_use(&self, history: &History) -> Vec<Lane> {
        if self.topology.link_layer == LinkLayer::Infiniband {
            return vec![Lane::Credit];
        }
        let signs = [
            ClassCounter::PauseReceivedDuration,
            ClassCounter::PauseSentDuration,
        ];
        let used = |class: Class| {
            self.topology.port_indices().any(|port| {
                signs.iter().any(|&sign| {
                    history
                        .last(port, Counter::Class(class, sign))
                        .is_some_and(|value| value > 0)
                })
            })
        };
        Class::all()
            .filter(|&c| used(c))
            .map(Lane::Priority)
            .collect()
    }

    /// The whole time.
    pub(crate) fn whole(&self) -> Option<Window> {
        Some(Window {
            from: self.grid.first()?.from,
            to: self.grid.last()?.to,
        })
    }

    /// Growth of a counter of a port.
    pub(crate) fn grown(&self, port: PortIndex, counter: Counter, window: Window) -> Option<f64> {
        self.growth.of(port, counter, window)
    }

    /// Growth of a counter over all windows in which it is known, if there is any.
    pub(crate) fn sum(&self, port: PortIndex, counter: Counter, windows: &[Window]) -> Option<f64> {
        windows
            .iter()
            .filter_map(|&window| self.grown(port, counter, window))
            .reduce(|a, b| a + b)
    }

    /// Growth of a counter of all classes of a port.
    pub(crate) fn over_classes(
        &self,
        port: PortIndex,
        counter: ClassCounter,
        windows: &[Window],
    ) -> Option<f64> {
        Class::all()
            .filter_map(|class| self.sum(port, Counter::Class(class, counter), windows))
            .reduce(|a, b| a + b)
    }

    /// What share of the window the direction was sending, 0 to 1.
    pub(crate) fn busy(&self, egress: PortIndex, window: Window) -> Option<f64> {
        let rate = self.rate(egress)?;
        let ends = [
            (
                Some(egress),
                PortCounter::TransmitBytes,
                PortCounter::TransmitPackets,
            ),
            (
                self.topology.peer(egress),
                PortCounter::ReceiveBytes,
                PortCounter::ReceivePackets,
            ),
        ];
        let (bytes, packets) = ends.into_iter().find_map(|(port, bytes, packets)| {
            let port = port?;
            let bytes = self.grown(port, Counter::Port(bytes), window)?;
            let packets = self.grown(port, Counter::Port(packets), window);
            Some((bytes, packets.unwrap_or(0.0)))
        })?;
        let gaps = match self.topology.link_layer {
            LinkLayer::Ethernet => packets * BETWEEN_FRAMES,
            LinkLayer::Infiniband => 0.0,
        };
        let most = rate.as_bps() as f64 / 8.0 * window.length().as_seconds_f64();
        Some(((bytes + gaps) / most).min(1.0))
    }

    /// What share of the window the direction was held back by the other end, 0 to 1. Where only frames are told, as by the
    /// sending end of a switch, none of them means not at all, and any number is unknown.
    pub(crate) fn held(&self, egress: PortIndex, lane: Lane, window: Window) -> Option<f64> {
        let time = match lane {
            Lane::Priority(class) => {
                let here = Counter::Class(class, ClassCounter::PauseReceivedDuration);
                let there = Counter::Class(class, ClassCounter::PauseSentDuration);
                let frames = Counter::Class(class, ClassCounter::PauseSent);
                self.grown(egress, here, window).or_else(|| {
                    let peer = self.topology.peer(egress)?;
                    self.grown(peer, there, window).or_else(|| {
                        // A pause that began before the window may hold on with renewals only.
                        self.grown(peer, frames, window).filter(|&sent| sent < 1.0)
                    })
                })
            }
            Lane::Credit => self.grown(egress, Counter::Port(PortCounter::TransmitWait), window),
        }?;
        Some((time / window.length().as_picos() as f64).min(1.0))
    }

    /// How long one pause of the direction lasts on average, where the port that sends them tells it.
    pub(crate) fn mean_pause(
        &self,
        egress: PortIndex,
        lane: Lane,
        windows: &[Window],
    ) -> Option<Span> {
        let Lane::Priority(class) = lane else {
            return None;
        };
        let duration = Counter::Class(class, ClassCounter::PauseReceivedDuration);
        let transitions = Counter::Class(class, ClassCounter::PauseTransitions);
        let duration = self.sum(egress, duration, windows)?;
        // A pause that began before the windows is one, too.
        let pauses = self.sum(egress, transitions, windows)?.max(1.0);
        Some(Span::picos((duration / pauses) as u64))
    }

    /// The longest time for which one pause frame can hold the direction.
    pub(crate) fn longest_pause(&self, egress: PortIndex) -> Option<Span> {
        let rate = self.rate(egress)?;
        Some(rate.time_for(Bytes::new(LONGEST_PAUSE / 8)))
    }

    /// The direction's rate: that of the slower end.
    pub(crate) fn rate(&self, egress: PortIndex) -> Option<Rate> {
        let here = self.topology.port(egress).rate;
        let there = self
            .topology
            .peer(egress)
            .and_then(|peer| self.topology.port(peer).rate);
        match (here, there) {
            (Some(here), Some(there)) => Some(here.min(there)),
            (one, other) => one.or(other),
        }
        .filter(|rate| !rate.is_zero())
    }

    /// Whether the cable was down at any time of the window, as either end tells.
    pub(crate) fn was_down(&self, port: PortIndex, window: Window) -> bool {
        let downed = Counter::Port(PortCounter::LinkDowned);
        [Some(port), self.topology.peer(port)]
            .into_iter()
            .flatten()
            .any(|end| {
                self.growth.was_down(end, window) == Some(true)
                    || self.grown(end, downed, window).is_some_and(|n| n >= 1.0)
            })
    }

    /// Whether the port itself was heard.
    pub(crate) fn is_heard(&self, port: PortIndex, window: Window) -> bool {
        self.growth.is_covered(port, window)
    }

    /// What devices counted in these windows, all together.
    pub(crate) fn of_devices(&self, counter: DeviceCounter, windows: &[Window]) -> f64 {
        let hosts = self.topology.nodes().iter();
        hosts
            .filter(|node| node.kind == NodeKind::Host)
            .flat_map(|node| &node.ports)
            .filter_map(|&port| self.sum(port, Counter::Device(counter), windows))
            .sum()
    }

    /// Packets dropped on the way into the port for want of room, of one class.
    pub(crate) fn dropped_at_ingress(
        &self,
        port: PortIndex,
        class: Class,
        windows: &[Window],
    ) -> f64 {
        let counter = Counter::Class(class, ClassCounter::IngressDropped);
        self.sum(port, counter, windows).unwrap_or(0.0)
    }
}

/// Cuts the time into stretches as long as nine of ten ports' polls, so that growth in each is measured and not guessed.
fn grid(topology: &Topology, history: &History) -> Vec<Window> {
    let mut intervals: Vec<Span> = topology
        .port_indices()
        .filter_map(|port| history.interval(port))
        .collect();
    intervals.sort_unstable();
    let step = intervals.get(intervals.len() * 9 / 10).copied();
    let (Some(step), Some(span)) = (step, history.span()) else {
        return Vec::new();
    };
    if step.is_zero() {
        return Vec::new();
    }
    let count = span
        .length()
        .div_floor(step)
        .clamp(1, Diagnosis::MOST_STEPS);
    // A whole number of equal stretches; more than the most are merged evenly.
    let step = span.length() / count;
    (0..count)
        .map(|number| Window {
            from: span.from + step * number,
            to: span.from + step * (number + 1),
        })
        .collect()
}
