//! What to keep, when to stop, and what happens to the network on the way.

use std::collections::BTreeSet;

use softfabric_units::{Class, Rate, Span, Time};

use super::{Endpoint, LinkId, NodeId, Plan};

/// What to keep beside the counters.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Recording {
    /// Sample queues, pauses and rates at this interval; `None`: no time series.
    pub interval: Option<Span>,
    /// Poll the counters of all ports at this interval; `None`: not at all.
    pub counters: Option<Span>,
    /// Which ports have time series.
    pub ports: PortSelection,
    /// The rate over time of at most so many flows (the first ones).
    pub flow_rates: u32,
    /// Ports whose frames are captured, both directions.
    pub captures: Vec<Endpoint>,
    /// Keep each pause and resume frame received, as the HPCC `pfc` file lists them.
    pub pause_log: bool,
    /// Encode and decode every packet on its way through the wire codec, and compare.
    pub check_wire: bool,
}

/// Which ports have time series.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum PortSelection {
    /// Those that matter: up to 64, by what happened on them.
    #[default]
    Busiest,
    /// These.
    These(Vec<Endpoint>),
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// At this time at the latest.
    pub at: Time,
    /// As soon as all flows are done and all packets have arrived.
    pub when_done: bool,
}

/// Something that happens to the network at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedAction {
    /// When.
    pub at: Time,
    /// What.
    pub action: Action,
}

/// Something that happens to the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// The link goes down: what is on it is lost.
    LinkDown(LinkId),
    /// The link comes back.
    LinkUp(LinkId),
    /// The link's bit error rate becomes this.
    BitErrorRate(LinkId, f64),
    /// The host's memory takes packets at this rate from now on; `None`: as fast as they come.
    DrainRate(NodeId, Option<Rate>),
    /// The host's NIC breaks and sends pause for the class without end.
    StormBegins(NodeId, Class),
    /// The broken NIC is repaired.
    StormEnds(NodeId, Class),
    /// Every switch and host stops sending and obeying pause for the class.
    PfcOff(Class),
    /// The host sends no new data.
    SourceStops(NodeId),
    /// The host's processors take so many times as long as usual: for computations of ranks, and for TCP's work.
    Slowness(NodeId, f64),
}

impl Plan {
    /// From the first thing that breaks until all is whole again; `None` if nothing breaks. What is whole at no time before
    /// the end, is not whole again.
    pub fn disturbance(&self) -> Option<(Time, Option<Time>)> {
        let mut actions: Vec<&TimedAction> = self.actions.iter().collect();
        actions.sort_by_key(|timed| timed.at);
        let mut broken: BTreeSet<(u8, u32, u8)> = BTreeSet::new();
        let (mut from, mut until) = (None, None);
        for timed in actions {
            let (what, breaks) = match timed.action {
                Action::LinkDown(link) => ((0, link.0, 0), true),
                Action::LinkUp(link) => ((0, link.0, 0), false),
                Action::BitErrorRate(link, rate) => {
                    let usual = self.network.links.get(link.0 as usize);
                    let usual = usual.map_or(0.0, |link| link.bit_error_rate);
                    ((1, link.0, 0), rate > usual)
                }
                Action::DrainRate(node, rate) => ((2, node.0, 0), rate.is_some()),
                Action::StormBegins(node, class) => ((3, node.0, class.as_u8()), true),
                Action::StormEnds(node, class) => ((3, node.0, class.as_u8()), false),
                Action::Slowness(node, slowness) => ((4, node.0, 0), slowness > 1.0),
                Action::PfcOff(_) | Action::SourceStops(_) => continue,
            };
            if breaks {
                broken.insert(what);
                from.get_or_insert(timed.at);
                until = None;
            } else if broken.remove(&what) && broken.is_empty() {
                until = Some(timed.at);
            }
        }
        Some((from?, until))
    }
}
