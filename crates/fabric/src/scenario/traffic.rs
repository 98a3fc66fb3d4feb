//! `[[workload]]` and `[[trigger]]`: what is sent, and what starts it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softfabric_units::{Bytes, Span, Time};

use super::quantity::{BytesText, SpanText, TimeText};

/// Adds to every kind of workload what all of them have.
macro_rules! workloads {
    ($(
        $(#[$doc:meta])*
        $kind:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }
    )*) => {
        /// What is sent. Hosts are named one by one, by range `h0..h15` (both included) or by pattern `h*`.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
        pub enum Workload {
            $(
                $(#[$doc])*
                $kind {
                    $($(#[$field_doc])* $field: $type,)*
                    /// The name of its flows in reports. Default: the kind.
                    group: Option<String>,
                    /// When it starts. Default: `0s`.
                    #[schemars(with = "Option<TimeText>")]
                    start: Option<Time>,
                    /// The traffic class. Default: 3.
                    #[schemars(range(min = 0, max = 7))]
                    class: Option<u8>,
                    /// How a flow is sent. Default: `write`.
                    operation: Option<OperationKind>,
                    /// How much one work request carries. Default: the whole flow; 1 GiB of flows over 2 GiB.
                    #[schemars(with = "Option<BytesText>")]
                    message: Option<Bytes>,
                    /// Packets say that they are ECN-capable. Default: true.
                    ecn: Option<bool>,
                },
            )*
        }

        impl Workload {
            /// What every kind has.
            pub(super) fn common(&self) -> Common<'_> {
                match self {
                    $(Self::$kind { group, start, class, operation, message, ecn, .. } => Common {
                        kind: stringify!($kind),
                        group: group.as_deref(),
                        start: *start,
                        class: *class,
                        operation: *operation,
                        message: *message,
                        ecn: *ecn,
                    },)*
                }
            }
        }
    };
}

/// What every kind of workload has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common<'a> {
    pub(super) kind: &'static str,
    pub(super) group: Option<&'a str>,
    pub(super) start: Option<Time>,
    pub(super) class: Option<u8>,
    pub(super) operation: Option<OperationKind>,
    pub(super) message: Option<Bytes>,
    pub(super) ecn: Option<bool>,
}

workloads! {
    /// Many send to one.
    Incast {
        /// How many senders, the first hosts that are not the receiver. Default: all others, or those of `from`.
        #[schemars(range(min = 1))]
        fan_in: Option<u32>,
        /// Who sends. Default: all hosts but the receiver.
        from: Option<Vec<String>>,
        /// Who receives. Default: the last host.
        to: Option<String>,
        /// How much each sends.
        #[schemars(with = "BytesText")]
        bytes: Bytes,
        /// How much later each sender starts than the one before it. Default: `0s`.
        #[schemars(with = "Option<SpanText>")]
        stagger: Option<Span>,
    }
    /// Each host sends to one other host and receives from one.
    Permutation {
        /// Who takes part. Default: all hosts.
        hosts: Option<Vec<String>>,
        /// How much each sends.
        #[schemars(with = "BytesText")]
        bytes: Bytes,
        /// Who sends to whom. Default: `random`.
        pattern: Option<Pattern>,
        /// With `shift`: to the host so many places further on. Default: half of the hosts.
        #[schemars(range(min = 1))]
        distance: Option<u32>,
        /// Which way packets go. Default: `chosen`.
        route: Option<Route>,
    }
    /// Every host sends to every other one.
    AllToAll {
        /// Who takes part. Default: all hosts.
        hosts: Option<Vec<String>>,
        /// How much each sends to each.
        #[schemars(with = "BytesText")]
        bytes: Bytes,
        /// How much later a host starts each further flow. Default: `0s`, all at once.
        #[schemars(with = "Option<SpanText>")]
        stagger: Option<Span>,
    }
    /// Flows arrive by chance at every host, to any other host, with sizes from a distribution.
    Poisson {
        /// Who takes part. Default: all hosts.
        hosts: Option<Vec<String>>,
        /// What share of its link each host offers on average.
        #[schemars(range(min = 0))]
        load: f64,
        /// A known distribution of flow sizes. Default: `web_search`.
        sizes: Option<Sizes>,
        /// A distribution of flow sizes, instead of `sizes`: points that rise from 0 to 100 percent.
        distribution: Option<Vec<SizePoint>>,
        /// How long flows arrive.
        #[schemars(with = "SpanText")]
        duration: Span,
    }
    /// From one host to another.
    Flow {
        /// Who sends.
        from: String,
        /// Who receives: a host, or a group of `[[infiniband.multicast]]`.
        to: String,
        /// How much.
        #[schemars(with = "BytesText")]
        bytes: Bytes,
        /// How many flows like this. Default: 1.
        #[schemars(range(min = 1))]
        count: Option<u32>,
        /// The switches that packets cross, in order. Default: as load balancing chooses.
        path: Option<Vec<String>>,
    }
    /// Flows one by one.
    Flows {
        /// The flows.
        flow: Vec<FlowEntry>,
    }
}

/// One flow of a list. What is not given is as the workload says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowEntry {
    /// Who sends.
    pub from: String,
    /// Who receives: a host, or a group of `[[infiniband.multicast]]`.
    pub to: String,
    /// How much.
    #[schemars(with = "BytesText")]
    pub bytes: Bytes,
    /// When it starts, counted from the start of the workload. Default: `0s`.
    #[schemars(with = "Option<SpanText>")]
    pub start: Option<Span>,
    /// The number of the `[[trigger]]` that starts it, from zero; `start` then counts from there.
    pub after: Option<u32>,
    /// The traffic class.
    #[schemars(range(min = 0, max = 7))]
    pub class: Option<u8>,
    /// How it is sent.
    pub operation: Option<OperationKind>,
    /// How much one work request carries.
    #[schemars(with = "Option<BytesText>")]
    pub message: Option<Bytes>,
    /// Packets say that they are ECN-capable.
    pub ecn: Option<bool>,
    /// The DSCP of its packets, for switches that tell classes by it. Default: 8 times the class.
    #[schemars(range(min = 0, max = 63))]
    pub dscp: Option<u8>,
    /// The name of its group in reports.
    pub group: Option<String>,
    /// The UDP source port, by which ECMP tells flows apart. Default: by chance.
    pub source_port: Option<u16>,
    /// The UDP destination port. Default: 4791; 5201 of TCP, between hosts that speak it.
    pub destination_port: Option<u16>,
    /// The switches that packets cross, in order. Default: as load balancing chooses.
    pub path: Option<Vec<String>>,
    /// The number of the `[[trigger]]` that is hit when the sender has all acknowledgements.
    pub on_sent: Option<u32>,
    /// The number of the `[[trigger]]` that is hit when the receiver has all bytes.
    pub on_received: Option<u32>,
}

/// Who sends to whom in a permutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// By chance; nobody to itself.
    Random,
    /// Each to the host some places further on.
    Shift,
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// As routing and load balancing choose.
    Chosen,
    /// Clockwise round a ring: from switch to switch in the order of their numbers.
    Clockwise,
}

/// A known distribution of flow sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// Web search: 10 KB to 30 MB, mean 1.7 MB.
    WebSearch,
    /// Hadoop: most flows under 1 KB, mean 0.12 MB.
    Hadoop,
}

/// A point of a distribution of flow sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizePoint {
    /// The size.
    #[schemars(with = "BytesText")]
    pub bytes: Bytes,
    /// How many percent of all flows are not larger.
    #[schemars(range(min = 0, max = 100))]
    pub percent: f64,
}

/// How a flow is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// RDMA WRITE.
    Write,
    /// SEND into posted receives.
    Send,
    /// RDMA READ by the receiver.
    Read,
}

/// What starts flows other than the clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TriggerEntry {
    /// It fires when it was hit so often. Default: 1.
    #[schemars(range(min = 1))]
    pub count: Option<u32>,
    /// It fires again at every further hit. Default: false.
    pub repeat: Option<bool>,
}
