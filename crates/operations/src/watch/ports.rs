//! What ports and nodes do now, as rates; and how that came about, stretch by stretch.

use softfabric_telemetry::{ClassCounter, Counter, DeviceCounter, PortCounter};
use softfabric_units::{Bytes, Class, Rate, Time};

use super::Moment;
use crate::diagnose::Lane;
use crate::diagnose::facts::{Facts, HELD};
use crate::history::{History, Window};
use crate::topology::{NodeIndex, NodeKind, PortIndex, Topology};

/// What there is to know first, from good to bad.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// Nothing.
    Calm,
    /// It differs from its baseline.
    Deviates,
    /// It was not heard.
    Silent,
    /// It is held back: mostly a symptom.
    Held,
    /// The link is down.
    Down,
    /// A finding that goes on is here.
    Source,
}

impl State {
    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Deviates => "deviates",
            Self::Silent => "silent",
            Self::Held => "held",
            Self::Down => "down",
            Self::Source => "source",
        }
    }
}

/// A port, now. What its counters do not tell is `None`.
#[derive(Clone, PartialEq, Debug)]
pub struct PortView {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub node: NodeIndex,
    /// The port at the other end of the cable.
    pub peer: Option<PortIndex>,
    /// What to know first.
    pub state: State,
    /// How fast the cable is.
    pub rate: Option<Rate>,
    /// For what share of the time its neighbour kept it from sending: by pauses, or for lack of credit.
    pub held: Option<f64>,
    /// In which class that was, on Ethernet.
    pub class: Option<Class>,
    /// For what share of the time it kept its neighbour from sending.
    pub holds: Option<f64>,
    /// What it sends.
    pub transmits: Option<Rate>,
    /// What it receives.
    pub receives: Option<Rate>,
    /// Of the packets that it sent, how many it marked.
    pub marked: Option<f64>,
    /// Congestion notifications of its device, a second: sent and heard.
    pub notifications: Option<f64>,
    /// The most that stood in one of its egress queues, as it was told last.
    pub queue: Option<Bytes>,
    /// The most buffer that one of its priority groups held, headroom included.
    pub buffer: Option<Bytes>,
    /// Packets dropped here, a second.
    pub drops: Option<f64>,
    /// Packets that arrived damaged, a second.
    pub damaged: Option<f64>,
}

impl PortView {
    /// Whether it is held back for a noticeable share of the time.
    pub fn is_held(&self) -> bool {
        self.held.is_some_and(|held| held >= HELD)
    }

    /// How much it matters among ports of its state.
    pub(super) fn weight(&self) -> f64 {
        let held = self.held.unwrap_or(0.0).max(self.holds.unwrap_or(0.0));
        let lost = self.drops.unwrap_or(0.0) + self.damaged.unwrap_or(0.0);
        let busy = match (self.transmits, self.rate) {
            (Some(transmits), Some(rate)) => transmits.as_bps() as f64 / rate.as_bps() as f64,
            _ => 0.0,
        };
        held + (1.0 + lost).ln() * 0.05 + busy * 1e-3
    }
}

/// A node, now.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// What to know first.
    pub state: State,
    /// For what share of the time the worst of its ports was held.
    pub held: f64,
    /// What all its ports send.
    pub transmits: Option<Rate>,
    /// What all its ports receive.
    pub receives: Option<Rate>,
}

/// The whole fabric in one stretch of time.
#[derive(Clone, PartialEq, Debug)]
pub struct Stretch {
    /// Where it begins.
    pub from: Moment,
    /// Where it ends.
    pub to: Moment,
    /// How many ports were held for a noticeable share of it.
    pub held_ports: usize,
    /// For what share of it the worst port was held.
    pub worst: f64,
    /// Of all packets that switches sent, how many they marked.
    pub marked: Option<f64>,
    /// The deepest queue that was told at its end.
    pub queue: Option<Bytes>,
    /// What all hosts received.
    pub received: Option<Rate>,
    /// Packets dropped.
    pub drops: f64,
}

fn rate(bytes: f64, window: Window) -> Rate {
    let seconds = window.length().as_seconds_f64();
    Rate::bps((bytes * 8.0 / seconds).max(0.0) as u64)
}

/// The longest that one of the lanes held the direction.
pub(crate) fn held(facts: &Facts<'_>, port: PortIndex, window: Window) -> Option<(f64, Lane)> {
    let lanes = facts.lanes.iter();
    let held = lanes.filter_map(|&lane| Some((facts.held(port, lane, window)?, lane)));
    held.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// Growth at a port, or of the counter that says the same at the other end.
fn either(
    facts: &Facts<'_>,
    port: PortIndex,
    here: PortCounter,
    there: PortCounter,
    window: Window,
) -> Option<f64> {
    let grown = facts.grown(port, Counter::Port(here), window);
    grown.or_else(|| {
        let peer = facts.topology.peer(port)?;
        facts.grown(peer, Counter::Port(there), window)
    })
}

pub(crate) fn transmitted(facts: &Facts<'_>, port: PortIndex, window: Window) -> Option<Rate> {
    let (here, there) = (PortCounter::TransmitBytes, PortCounter::ReceiveBytes);
    either(facts, port, here, there, window).map(|bytes| rate(bytes, window))
}

pub(crate) fn received(facts: &Facts<'_>, port: PortIndex, window: Window) -> Option<Rate> {
    let (here, there) = (PortCounter::ReceiveBytes, PortCounter::TransmitBytes);
    either(facts, port, here, there, window).map(|bytes| rate(bytes, window))
}

/// Of the packets that a port sent, how many it marked.
pub(crate) fn marked(facts: &Facts<'_>, port: PortIndex, window: Window) -> Option<f64> {
    let marks = facts.over_classes(port, ClassCounter::EcnMarked, &[window])?;
    let sent = facts.grown(port, Counter::Port(PortCounter::TransmitPackets), window)?;
    Some(share(marks, sent))
}

/// Of so many packets, how many were marked; 0 of none.
fn share(marks: f64, sent: f64) -> f64 {
    match sent >= 1.0 {
        true => (marks / sent).min(1.0),
        false => 0.0,
    }
}

/// The largest of these watermarks over all classes, as it was told last.
pub(crate) fn watermark(
    history: &History,
    port: PortIndex,
    counter: ClassCounter,
    at: Time,
) -> Option<Bytes> {
    let classes = Class::all();
    let told =
        classes.filter_map(|class| history.value_at(port, Counter::Class(class, counter), at));
    told.max().map(Bytes::new)
}

/// Packets dropped at a port, at either side of it. Classes tell it more exactly than the port, and neither is added to the
/// other.
fn drops(facts: &Facts<'_>, port: PortIndex, window: Window) -> Option<f64> {
    let of_classes = [ClassCounter::IngressDropped, ClassCounter::EgressDropped]
        .into_iter()
        .filter_map(|counter| facts.over_classes(port, counter, &[window]))
        .reduce(|a, b| a + b);
    let of_port = [PortCounter::TransmitDiscards, PortCounter::ReceiveDiscards]
        .into_iter()
        .filter_map(|counter| facts.grown(port, Counter::Port(counter), window))
        .reduce(|a, b| a + b);
    match (of_classes, of_port) {
        (Some(classes), Some(port)) => Some(classes.max(port)),
        (one, other) => one.or(other),
    }
}

pub(super) fn ports(facts: &Facts<'_>, history: &History, recent: Option<Window>) -> Vec<PortView> {
    let ports = facts.topology.port_indices();
    ports
        .map(|port| port_view(facts, history, port, recent))
        .collect()
}

fn port_view(
    facts: &Facts<'_>,
    history: &History,
    port: PortIndex,
    recent: Option<Window>,
) -> PortView {
    let topology = facts.topology;
    let described = topology.port(port);
    let mut view = PortView {
        name: described.name.clone(),
        node: described.node,
        peer: described.peer,
        state: State::Silent,
        rate: facts.rate(port),
        held: None,
        class: None,
        holds: None,
        transmits: None,
        receives: None,
        marked: None,
        notifications: None,
        queue: None,
        buffer: None,
        drops: None,
        damaged: None,
    };
    let Some(recent) = recent else { return view };
    let seconds = recent.length().as_seconds_f64();
    let told = held(facts, port, recent);
    view.held = told.map(|(held, _)| held);
    view.class = told.and_then(|(_, lane)| match lane {
        Lane::Priority(class) => Some(class),
        Lane::Credit => None,
    });
    view.holds = described
        .peer
        .and_then(|peer| held(facts, peer, recent))
        .map(|(held, _)| held);
    view.transmits = transmitted(facts, port, recent);
    view.receives = received(facts, port, recent);
    view.marked = marked(facts, port, recent);
    let device = |counter| facts.grown(port, Counter::Device(counter), recent);
    view.notifications = [DeviceCounter::CnpSent, DeviceCounter::CnpHandled]
        .into_iter()
        .filter_map(device)
        .reduce(|a, b| a + b)
        .map(|notifications| notifications / seconds);
    view.queue = watermark(history, port, ClassCounter::QueueWatermark, recent.to);
    let shared = watermark(history, port, ClassCounter::IngressWatermark, recent.to);
    let headroom = watermark(history, port, ClassCounter::HeadroomWatermark, recent.to);
    view.buffer = match (shared, headroom) {
        (Some(shared), Some(headroom)) => Some(shared + headroom),
        (one, other) => one.or(other),
    };
    view.drops = drops(facts, port, recent).map(|drops| drops / seconds);
    view.damaged = facts
        .grown(port, Counter::Port(PortCounter::ReceiveErrors), recent)
        .map(|damaged| damaged / seconds);
    let is_down = history.up_at(port, recent.to) == Some(false)
        || described
            .peer
            .is_some_and(|peer| history.up_at(peer, recent.to) == Some(false));
    view.state = if is_down {
        State::Down
    } else if view.is_held() {
        State::Held
    } else if facts.is_heard(port, recent) || view.held.is_some() || view.transmits.is_some() {
        State::Calm
    } else {
        State::Silent
    };
    view
}

pub(super) fn nodes(topology: &Topology, ports: &[PortView]) -> Vec<NodeView> {
    let of_node = |node: &crate::topology::Node| {
        let own = || node.ports.iter().map(|port| &ports[port.index()]);
        let sum = |of: fn(&PortView) -> Option<Rate>| {
            let rates = own().filter_map(of).map(Rate::as_bps);
            rates.reduce(|a, b| a + b).map(Rate::bps)
        };
        // One cable that is silent, down or calm says nothing of a switch; one that is held does.
        let heard = own().any(|port| port.state != State::Silent);
        let up = own().any(|port| port.state != State::Down);
        let held = own().filter_map(|port| port.held).fold(0.0, f64::max);
        NodeView {
            name: node.name.clone(),
            kind: node.kind,
            state: match (heard, up, held >= HELD) {
                (false, ..) => State::Silent,
                (_, false, _) => State::Down,
                (.., true) => State::Held,
                _ => State::Calm,
            },
            held,
            transmits: sum(|port| port.transmits),
            receives: sum(|port| port.receives),
        }
    };
    topology.nodes().iter().map(of_node).collect()
}

/// The whole fabric, stretch by stretch.
pub(super) fn trend(
    facts: &Facts<'_>,
    history: &History,
    moment: impl Fn(Time) -> Moment,
) -> Vec<Stretch> {
    let topology = facts.topology;
    let stretch = |&window: &Window| {
        let mut stretch = Stretch {
            from: moment(window.from),
            to: moment(window.to),
            held_ports: 0,
            worst: 0.0,
            marked: None,
            queue: None,
            received: None,
            drops: 0.0,
        };
        let mut sent = 0.0;
        for port in topology.port_indices() {
            let held = held(facts, port, window).map_or(0.0, |(held, _)| held);
            stretch.held_ports += usize::from(held >= HELD);
            stretch.worst = stretch.worst.max(held);
            stretch.drops += drops(facts, port, window).unwrap_or(0.0);
            match topology.owner(port).kind {
                NodeKind::Switch => {
                    let queue = watermark(history, port, ClassCounter::QueueWatermark, window.to);
                    stretch.queue = stretch.queue.max(queue);
                    let marks = facts.over_classes(port, ClassCounter::EcnMarked, &[window]);
                    if let Some(marks) = marks {
                        let packets = Counter::Port(PortCounter::TransmitPackets);
                        sent += facts.grown(port, packets, window).unwrap_or(0.0);
                        stretch.marked = Some(stretch.marked.unwrap_or(0.0) + marks);
                    }
                }
                NodeKind::Host => {
                    if let Some(rate) = received(facts, port, window) {
                        let sum = stretch.received.map_or(0, Rate::as_bps) + rate.as_bps();
                        stretch.received = Some(Rate::bps(sum));
                    }
                }
            }
        }
        stretch.marked = stretch.marked.map(|marks| share(marks, sent));
        stretch
    };
    facts.grid.iter().map(stretch).collect()
}
