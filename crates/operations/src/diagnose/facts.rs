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

pub(crate) use super::trace::HELD;
use super::{Diagnosis, Lane};
use crate::history::{Growth, History, Window};
use crate::topology::{LinkLayer, NodeKind, PortIndex, Topology};

/// Ethernet's preamble, start of frame and gap, which no counter of bytes has.
const BETWEEN_FRAMES: f64 = 20.0;
/// The longest pause of one frame, in quanta of 512 bit times (802.1Qbb).
const LONGEST_PAUSE: u64 = 65_535 * 512;

/// What a counter said, and which one: the two ends of a cable count the same, and either may be the one that is heard.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Told {
    pub(crate) value: f64,
    pub(crate) port: PortIndex,
    pub(crate) counter: Counter,
}

/// The counters, as questions about cables.
pub(crate) struct Facts<'a> {
    pub(crate) topology: &'a Topology,
    growth: Growth<'a>,
    /// Stretches in which every port that is heard was heard, one after the other.
    pub(crate) grid: Vec<Window>,
    /// The lanes in which anybody was ever held back.
    pub(crate) lanes: Vec<Lane>,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(topology: &'a Topology, history: &'a History) -> Self {
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
                let mut signs = signs.iter();
                signs.any(|&sign| history.has_counted(port, Counter::Class(class, sign)))
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

    /// Whether a counter of a port cannot have grown at any time.
    pub(crate) fn stands_still(&self, port: PortIndex, counter: Counter) -> bool {
        self.growth.stands_still(port, counter)
    }

    /// The directions that may have been held at some time: of most, no counter of it ever moved.
    pub(crate) fn may_be_held(&self, lane: Lane) -> Vec<PortIndex> {
        let moves = |port: Option<PortIndex>, counter| {
            port.is_some_and(|port| !self.stands_still(port, counter))
        };
        let may_be = |egress: &PortIndex| match lane {
            Lane::Priority(class) => {
                let of = |counter| Counter::Class(class, counter);
                let (here, peer) = (Some(*egress), self.topology.peer(*egress));
                moves(here, of(ClassCounter::PauseReceivedDuration))
                    || moves(peer, of(ClassCounter::PauseSentDuration))
                    || moves(here, of(ClassCounter::PauseReceived))
                    || moves(peer, of(ClassCounter::PauseSent))
            }
            Lane::Credit => moves(Some(*egress), Counter::Port(PortCounter::TransmitWait)),
        };
        self.topology.port_indices().filter(may_be).collect()
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
        self.busy_told(egress, window).map(|told| told.value)
    }

    /// The same, with the counter of bytes that tells it.
    pub(crate) fn busy_told(&self, egress: PortIndex, window: Window) -> Option<Told> {
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
        let (told, packets) = ends.into_iter().find_map(|(port, bytes, packets)| {
            let told = self.told(port?, Counter::Port(bytes), window)?;
            let packets = self.grown(told.port, Counter::Port(packets), window);
            Some((told, packets.unwrap_or(0.0)))
        })?;
        let gaps = match self.topology.link_layer {
            LinkLayer::Ethernet => packets * BETWEEN_FRAMES,
            LinkLayer::Infiniband => 0.0,
        };
        let most = rate.as_bps() as f64 / 8.0 * window.length().as_seconds_f64();
        Some(Told {
            value: ((told.value + gaps) / most).min(1.0),
            ..told
        })
    }

    /// What share of the window the direction was held back by the other end, 0 to 1.
    pub(crate) fn held(&self, egress: PortIndex, lane: Lane, window: Window) -> Option<f64> {
        self.held_told(egress, lane, window).map(|told| told.value)
    }

    /// The same, with the counter that tells it. Where only frames are told, as by the sending end of a switch, so few that
    /// they cannot hold it for long mean hardly at all; more of them are unknown.
    pub(crate) fn held_told(&self, egress: PortIndex, lane: Lane, window: Window) -> Option<Told> {
        let told = match lane {
            Lane::Priority(class) => {
                let here = Counter::Class(class, ClassCounter::PauseReceivedDuration);
                self.told(egress, here, window).or_else(|| {
                    let peer = self.topology.peer(egress)?;
                    let there = Counter::Class(class, ClassCounter::PauseSentDuration);
                    self.told(peer, there, window).or_else(|| {
                        // A pause that began before the window may hold on with renewals only.
                        let frames = self.pause_frames(egress, Some(class), window)?;
                        let most = self.most_held(egress, frames.value, window);
                        let time = match frames.value {
                            none if none < 1.0 => 0.0,
                            _ => {
                                most.filter(|&most| most < HELD)?
                                    * window.length().as_picos() as f64
                            }
                        };
                        Some(Told {
                            value: time,
                            ..frames
                        })
                    })
                })
            }
            Lane::Credit => self.told(egress, Counter::Port(PortCounter::TransmitWait), window),
        }?;
        Some(Told {
            value: (told.value / window.length().as_picos() as f64).min(1.0),
            ..told
        })
    }

    /// How many pause frames held the direction, of one priority or of all together, as either end counts them.
    pub(crate) fn pause_frames(
        &self,
        egress: PortIndex,
        class: Option<Class>,
        window: Window,
    ) -> Option<Told> {
        let (received, sent) = match class {
            Some(class) => (
                Counter::Class(class, ClassCounter::PauseReceived),
                Counter::Class(class, ClassCounter::PauseSent),
            ),
            None => (
                Counter::Port(PortCounter::PauseFramesReceived),
                Counter::Port(PortCounter::PauseFramesSent),
            ),
        };
        self.told(egress, received, window)
            .or_else(|| self.told(self.topology.peer(egress)?, sent, window))
    }

    /// For what share of the window so many pause frames can hold the direction at most, one that began earlier included.
    pub(crate) fn most_held(&self, egress: PortIndex, frames: f64, window: Window) -> Option<f64> {
        let longest = self.longest_pause(egress)?.as_picos() as f64;
        Some((frames + 1.0) * longest / window.length().as_picos() as f64)
    }

    fn told(&self, port: PortIndex, counter: Counter, window: Window) -> Option<Told> {
        let value = self.grown(port, counter, window)?;
        Some(Told {
            value,
            port,
            counter,
        })
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

    /// Whether anything went over the port, or was paused at it.
    pub(crate) fn is_in_use(&self, port: PortIndex, window: Window) -> bool {
        let of_port = [
            PortCounter::TransmitBytes,
            PortCounter::ReceiveBytes,
            PortCounter::TransmitPackets,
            PortCounter::ReceivePackets,
            PortCounter::PauseFramesSent,
            PortCounter::PauseFramesReceived,
        ];
        let of_class = [
            ClassCounter::PauseSent,
            ClassCounter::PauseReceived,
            ClassCounter::PauseSentDuration,
            ClassCounter::PauseReceivedDuration,
        ];
        let classes = Class::all().flat_map(|class| of_class.map(|c| Counter::Class(class, c)));
        of_port
            .map(Counter::Port)
            .into_iter()
            .chain(classes)
            .any(|counter| self.grown(port, counter, window).is_some_and(|n| n > 0.0))
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

    /// What devices counted in each of the stretches of the grid, all together.
    pub(crate) fn of_devices_by_stretch(&self, counters: &[DeviceCounter]) -> Vec<f64> {
        let stretch = |&window: &Window| {
            counters
                .iter()
                .map(|&counter| self.of_devices(counter, &[window]))
                .sum()
        };
        self.grid.iter().map(stretch).collect()
    }
}

/// How often ports are polled: the interval that nine of ten ports keep.
pub(crate) fn interval(topology: &Topology, history: &History) -> Option<Span> {
    let ports = topology.port_indices();
    let mut intervals: Vec<Span> = ports.filter_map(|port| history.interval(port)).collect();
    intervals.sort_unstable();
    let step = intervals.get(intervals.len() * 9 / 10).copied();
    step.filter(|step| !step.is_zero())
}

/// Cuts the time into stretches as long as nine of ten ports' polls, so that growth in each is measured and not guessed.
fn grid(topology: &Topology, history: &History) -> Vec<Window> {
    let (Some(step), Some(span)) = (interval(topology, history), history.span()) else {
        return Vec::new();
    };
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
