//! `[[event]]`: what happens to the network on the way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softfabric_units::{Span, Time};

use super::quantity::{Drain, SpanText, TimeText};

/// Something that happens to the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// A link goes down: what is on it is lost.
    LinkDown {
        /// When.
        #[schemars(with = "TimeText")]
        at: Time,
        /// The nodes at both ends.
        between: (String, String),
        /// When it is back. Default: when `link_up` says so.
        #[schemars(with = "Option<TimeText>")]
        until: Option<Time>,
    },
    /// A link comes back.
    LinkUp {
        /// When.
        #[schemars(with = "TimeText")]
        at: Time,
        /// The nodes at both ends.
        between: (String, String),
    },
    /// A link goes down and comes back, again and again.
    LinkFlaps {
        /// When it goes down first.
        #[schemars(with = "TimeText")]
        at: Time,
        /// The nodes at both ends.
        between: (String, String),
        /// How long from one time that it goes down to the next.
        #[schemars(with = "SpanText")]
        period: Span,
        /// What share of that it is down. Default: 0.5.
        #[schemars(range(min = 0, max = 1))]
        down: Option<f64>,
        /// When it is whole again.
        #[schemars(with = "TimeText")]
        until: Time,
    },
    /// A port fails: its link is down.
    PortDown {
        /// When.
        #[schemars(with = "TimeText")]
        at: Time,
        /// The port, `node:port` or `node:neighbour`.
        port: String,
        /// When it is back. Default: never.
        #[schemars(with = "Option<TimeText>")]
        until: Option<Time>,
    },
    /// A switch fails: all its links are down.
    SwitchDown {
        /// When.
        #[schemars(with = "TimeText")]
        at: Time,
        /// Which switches.
        switches: Vec<String>,
        /// When they are back. Default: never.
        #[schemars(with = "Option<TimeText>")]
        until: Option<Time>,
    },
    /// All leaves of a rail of a `rail_optimised` fabric fail.
    RailDown {
        /// When.
        #[schemars(with = "TimeText")]
        at: Time,
        /// The rail, from zero.
        rail: u32,
        /// Of this plane alone. Default: of all planes.
        plane: Option<u32>,
        /// When they are back. Default: never.
        #[schemars(with = "Option<TimeText>")]
        until: Option<Time>,
    },
    /// All switches of a plane of a `rail_optimised` fabric fail.
    PlaneDown {
        /// When.
        #[schemars(with = "TimeText")]
        at: Time,
        /// The plane, from zero.
        plane: u32,
        /// When they are back. Default: never.
        #[schemars(with = "Option<TimeText>")]
        until: Option<Time>,
    },
    /// A link damages bits from now on, as one with a bad optic does.
    BitErrors {
        /// When.
        #[schemars(with = "TimeText")]
        at: Time,
        /// The nodes at both ends.
        between: (String, String),
        /// The probability that a bit is damaged.
        #[schemars(range(min = 0, max = 1))]
        bit_error_rate: f64,
        /// When it has the rate again that it had at first. Default: never.
        #[schemars(with = "Option<TimeText>")]
        until: Option<Time>,
    },
    /// Hosts become slow: computations of ranks take longer, and of hosts that speak TCP all work of the stack.
    SlowHosts {
        /// When.
        #[schemars(with = "TimeText")]
        at: Time,
        /// Which hosts.
        hosts: Vec<String>,
        /// How many times as long.
        #[schemars(range(min = 0))]
        slowness: f64,
        /// When they are as fast as before. Default: never.
        #[schemars(with = "Option<TimeText>")]
        until: Option<Time>,
    },
    /// The memory of hosts takes packets at this rate from now on.
    Drain {
        /// When.
        #[schemars(with = "TimeText")]
        at: Time,
        /// Which hosts.
        hosts: Vec<String>,
        /// The rate.
        rate: Drain,
    },
    /// A broken NIC sends pause frames without end.
    Storm {
        /// When it breaks.
        #[schemars(with = "TimeText")]
        at: Time,
        /// The host.
        host: String,
        /// The class that it pauses. Default: 3.
        #[schemars(range(min = 0, max = 7))]
        class: Option<u8>,
        /// When it is repaired. Default: never.
        #[schemars(with = "Option<TimeText>")]
        until: Option<Time>,
    },
    /// Everybody stops sending and obeying pause frames for a class.
    PfcOff {
        /// When.
        #[schemars(with = "TimeText")]
        at: Time,
        /// The class. Default: 3.
        #[schemars(range(min = 0, max = 7))]
        class: Option<u8>,
    },
    /// Hosts send no new data.
    StopSources {
        /// When.
        #[schemars(with = "TimeText")]
        at: Time,
        /// Which hosts. Default: all.
        hosts: Option<Vec<String>>,
    },
}
