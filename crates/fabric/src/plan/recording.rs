//! What to keep, when to stop, and what happens to the network on the way.

use softfabric_units::{Class, Rate, Span, Time};

use super::{Endpoint, LinkId, NodeId};

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
}
