//! Fabrics and counters made by hand, for tests.

use softfabric_telemetry::{ClassCounter, Counter, PortCounter};
use softfabric_units::{Class, Random, Rate, Span, Time};

use crate::history::{History, PortSample};
use crate::topology::{LinkLayer, NodeKind, PortIndex, Topology};

pub(crate) const DATA: Class = Class::new(3);
pub(crate) const RATE: Rate = Rate::gbps(100);
/// The largest packets of these fabrics.
const PACKET: f64 = 4_096.0;

/// `leaf<n>:<0..hosts>` lead to hosts, the ports after them to the spines; `spine<n>:<leaf>` to the leaves.
pub(crate) fn leaf_spine(leaves: u32, spines: u32, hosts: u32) -> Topology {
    let mut topology = Topology::new(LinkLayer::Ethernet);
    let mut uplinks = Vec::new();
    for leaf in 0..leaves {
        let node = switch(&mut topology, &format!("leaf{leaf}"));
        for port in 0..hosts {
            let host = format!("h{}", leaf * hosts + port);
            let host_node = topology.add_node(host.clone(), NodeKind::Host).unwrap();
            let down = topology
                .add_port(node, format!("leaf{leaf}:{port}"), Some(RATE))
                .unwrap();
            let up = topology.add_port(host_node, host, Some(RATE)).unwrap();
            topology.connect(down, up).unwrap();
        }
        for spine in 0..spines {
            let name = format!("leaf{leaf}:{}", hosts + spine);
            uplinks.push((spine, topology.add_port(node, name, Some(RATE)).unwrap()));
        }
    }
    for spine in 0..spines {
        let node = switch(&mut topology, &format!("spine{spine}"));
        let ups: Vec<_> = uplinks.iter().filter(|(s, _)| *s == spine).collect();
        for (leaf, (_, up)) in ups.into_iter().enumerate() {
            let name = format!("spine{spine}:{leaf}");
            let down = topology.add_port(node, name, Some(RATE)).unwrap();
            topology.connect(down, *up).unwrap();
        }
    }
    topology
}

fn switch(topology: &mut Topology, name: &str) -> crate::topology::NodeIndex {
    topology.add_node(name, NodeKind::Switch).unwrap()
}

/// What happens in one second on one direction of a cable, named by its egress port.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    /// Of the rate.
    pub(crate) busy: f64,
    /// Of the time.
    pub(crate) held: f64,
    /// How many pauses that was.
    pub(crate) pauses: u64,
    /// Packets marked at the egress.
    pub(crate) marks: u64,
    /// Packets dropped at the ingress.
    pub(crate) drops: u64,
    /// Packets that arrived damaged.
    pub(crate) damaged: u64,
}

/// A direction that sends for this share of the time, and nobody holds it.
pub(crate) fn busy(busy: f64) -> Flow {
    Flow {
        busy,
        ..Flow::default()
    }
}

/// Three leaves with four hosts each, and two spines.
pub(crate) fn hand() -> Hand {
    hand_of(LinkLayer::Ethernet)
}

/// The same, over this link layer.
pub(crate) fn hand_of(link_layer: LinkLayer) -> Hand {
    let mut topology = leaf_spine(3, 2, 4);
    topology.link_layer = link_layer;
    Hand::new(topology)
}

/// A fabric whose every second is told by hand, and polled once a second.
pub(crate) struct Hand {
    pub(crate) topology: Topology,
    totals: Vec<Vec<u64>>,
    seconds: Vec<Vec<PortSample>>,
    down: Vec<bool>,
}

impl Hand {
    pub(crate) fn new(topology: Topology) -> Self {
        let ports = topology.ports().len();
        let mut hand = Self {
            topology,
            totals: vec![vec![0; Counter::COUNT]; ports],
            seconds: Vec::new(),
            down: vec![false; ports],
        };
        hand.poll();
        hand
    }

    pub(crate) fn port(&self, name: &str) -> PortIndex {
        self.topology.find_port(name).unwrap()
    }

    /// The link of the port goes down.
    pub(crate) fn cut(&mut self, name: &str) {
        let port = self.port(name);
        let peer = self.topology.peer(port).unwrap();
        for end in [port, peer] {
            self.down[end.index()] = true;
            self.totals[end.index()][Counter::Port(PortCounter::LinkDowned).index()] += 1;
        }
    }

    /// Adds to a counter.
    pub(crate) fn count(&mut self, name: &str, counter: Counter, amount: u64) {
        let port = self.port(name);
        self.totals[port.index()][counter.index()] += amount;
    }

    /// A second passes in which these directions do something, and all others nothing.
    pub(crate) fn second(&mut self, flows: &[(&str, Flow)]) {
        for &(name, flow) in flows {
            let port = self.port(name);
            let peer = self.topology.peer(port).unwrap();
            let bytes = flow.busy * RATE.as_bps() as f64 / 8.0 * PACKET / (PACKET + 20.0);
            let packets = (bytes / PACKET) as u64;
            let held = (flow.held * 1e12) as u64;
            let data = |counter| Counter::Class(DATA, counter);
            for (port, counter, amount) in [
                (
                    port,
                    Counter::Port(PortCounter::TransmitBytes),
                    bytes as u64,
                ),
                (peer, Counter::Port(PortCounter::ReceiveBytes), bytes as u64),
                (port, Counter::Port(PortCounter::TransmitPackets), packets),
                (peer, Counter::Port(PortCounter::ReceivePackets), packets),
                (
                    peer,
                    Counter::Port(PortCounter::ReceiveErrors),
                    flow.damaged,
                ),
                (port, data(ClassCounter::PauseReceivedDuration), held),
                (peer, data(ClassCounter::PauseSentDuration), held),
                (port, data(ClassCounter::PauseTransitions), flow.pauses),
                (port, data(ClassCounter::PauseReceived), flow.pauses),
                (peer, data(ClassCounter::PauseSent), flow.pauses),
                (
                    port,
                    Counter::Port(PortCounter::PauseFramesReceived),
                    flow.pauses,
                ),
                (
                    peer,
                    Counter::Port(PortCounter::PauseFramesSent),
                    flow.pauses,
                ),
                (port, data(ClassCounter::EcnMarked), flow.marks),
                (peer, data(ClassCounter::IngressDropped), flow.drops),
                (port, Counter::Port(PortCounter::TransmitWait), held),
            ] {
                self.totals[port.index()][counter.index()] += amount;
            }
        }
        self.poll();
    }

    fn poll(&mut self) {
        let samples = self.totals.iter().zip(&self.down).map(|(totals, down)| {
            let values = Counter::all().map(|counter| (counter, totals[counter.index()]));
            PortSample {
                up: Some(!down),
                values: values.collect(),
            }
        });
        self.seconds.push(samples.collect());
    }

    /// Everything that was polled.
    pub(crate) fn history(&self) -> History {
        self.history_without(|_, _| false)
    }

    /// What was polled, without what `lost` says of ports and seconds.
    pub(crate) fn history_without(
        &self,
        mut lost: impl FnMut(PortIndex, usize) -> bool,
    ) -> History {
        let mut history = History::new(&self.topology);
        for (second, samples) in self.seconds.iter().enumerate() {
            let time = Time::ZERO + Span::seconds(second as u64);
            for (port, sample) in self.topology.port_indices().zip(samples) {
                if !lost(port, second) {
                    history.add(port, time, sample);
                }
            }
        }
        history
    }

    /// The first sample of each port whole, and of the others what changed.
    pub(crate) fn for_each_change(&self, mut take: impl FnMut(PortIndex, Time, &PortSample)) {
        for (second, samples) in self.seconds.iter().enumerate() {
            let time = Time::ZERO + Span::seconds(second as u64);
            for (port, sample) in self.topology.port_indices().zip(samples) {
                let mut sample = sample.clone();
                if let Some(before) = second.checked_sub(1) {
                    let before = &self.seconds[before][port.index()].values;
                    sample.values.retain(|value| !before.contains(value));
                }
                take(port, time, &sample);
            }
        }
    }

    /// What was polled, with a share of all samples lost by chance.
    pub(crate) fn history_with_losses(&self, share: f64, seed: u64) -> History {
        let mut random = Random::from_seed(seed);
        self.history_without(|_, _| random.chance(share))
    }
}
