//! What every node may read and none may change while a window runs.

use std::sync::atomic::AtomicU64;

use rustc_hash::FxHashMap;
use softfabric_units::{PartitionKey, Rate, Span};

use super::frame::CREDIT_LENGTH;
use super::infiniband::Tables;
use super::program::Streams;
use super::routing::{HpccTuple, Routes};
use crate::plan::{LinkLayer, Network, NodeId, Plan, Timing};

/// The shared, read-only state of a run.
#[derive(Debug)]
pub(crate) struct World<'p> {
    pub(crate) plan: &'p Plan,
    /// Which ports lead where on Ethernet; empty on InfiniBand.
    pub(crate) routes: Routes,
    /// On InfiniBand, what the subnet manager has programmed.
    pub(crate) tables: Option<Tables>,
    /// By node: the keys of partitions that it holds, where a fabric of InfiniBand has any.
    pub(crate) keys: Option<Vec<Vec<PartitionKey>>>,
    /// The next hops of flows whose path is given.
    pub(crate) fixed_hops: FixedHops,
    /// What packets of a flow are addressed with, in the order of the flows.
    pub(crate) flows: Vec<FlowAddress>,
    /// What the connections of jobs have in their bytes.
    pub(crate) streams: Streams,
    /// The frames of this run's timing.
    pub(crate) sizes: FrameSizes,
    /// The least time between a cause at one node and its effect at another.
    pub(crate) lookahead: Span,
    /// The rate of the network's first NIC.
    pub(crate) host_rate: Rate,
    /// Flows that are neither done nor failed, and ranks that have something to do left.
    pub(crate) flows_left: AtomicU64,
}

impl World<'_> {
    /// The InfiniBand service level of packets to groups, where the routing engine gives paths their own and so classes none.
    pub(crate) fn level_of_groups(&self) -> Option<u8> {
        let settings = self.plan.link_layer.infiniband()?;
        settings.routing.sets_levels().then_some(0)
    }

    /// The InfiniBand service level of what `host` sends of a flow, where the path has one of its own.
    #[inline]
    pub(crate) fn level_from(&self, flow: u32, host: u32) -> Option<u8> {
        let tables = self.tables.as_ref()?;
        let address = &self.flows[flow as usize];
        if self.plan.flows[flow as usize].source.0 == host {
            tables.level(address.source, address.destination)
        } else {
            tables.level(address.destination, address.source)
        }
    }
}

/// How a flow is addressed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowAddress {
    /// The destination index of the sender's port, and of the receiver's.
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// The host whose work requests move the flow: the sender, or, for reads, the receiver.
    pub(crate) starter: u32,
    /// Its port.
    pub(crate) starting_port: u16,
    /// What ECMP hashes, in the flow's direction and back.
    pub(crate) entropy: u32,
    pub(crate) reverse_entropy: u32,
    /// The same as HPCC's switches see it.
    pub(crate) tuple: HpccTuple,
}

impl FlowAddress {
    /// The tuple of packets that go back.
    pub(crate) const fn reverse_tuple(&self) -> HpccTuple {
        HpccTuple {
            source_ip: self.tuple.destination_ip,
            destination_ip: self.tuple.source_ip,
            ports: self.tuple.ports.rotate_left(16),
        }
    }
}

/// Lengths that depend on the timing alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameSizes {
    /// A pause frame (or flow-control packet) in buffers and on the wire, without preamble and gap.
    pub(crate) pause: u32,
    /// The smallest packet.
    pub(crate) smallest: u32,
    /// Every transmission ends with an event, so that ties go by the order of scheduling.
    pub(crate) eager_free: bool,
}

impl FrameSizes {
    pub(crate) const fn of(timing: Timing, link_layer: &LinkLayer) -> Self {
        if let LinkLayer::Infiniband(_) = link_layer {
            return Self {
                pause: CREDIT_LENGTH,
                // An LRH, a BTH and two CRCs.
                smallest: 8 + 12 + 4 + 2,
                eager_free: false,
            };
        }
        match timing {
            Timing::Exact => Self {
                pause: 64,
                smallest: 64,
                eager_free: false,
            },
            Timing::Hpcc => Self {
                pause: 43,
                smallest: 49,
                eager_free: true,
            },
        }
    }
}

/// The next hops of flows whose path is given: looked up only where a plan has any.
#[derive(Debug, Default)]
pub(crate) struct FixedHops {
    ports: FxHashMap<(u32, u32, bool), u16>,
}

impl FixedHops {
    /// The hops of all paths in the plan. A pair of neighbours without a link leaves the choice to the routes;
    /// `Plan::check` refuses such paths.
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut ports = FxHashMap::default();
        let links = port_towards(&plan.network);
        for (id, flow) in plan.flows.iter().enumerate() {
            let Some(path) = &flow.path else { continue };
            let mut add = |node: NodeId, next: NodeId, reverse: bool| {
                if let Some(&port) = links.get(&(node, next)) {
                    ports.insert((node.0, id as u32, reverse), port);
                }
            };
            for (index, &node) in path.iter().enumerate() {
                let before = if index == 0 {
                    flow.source
                } else {
                    path[index - 1]
                };
                let after = path.get(index + 1).copied().unwrap_or(flow.destination);
                add(node, after, false);
                add(node, before, true);
            }
        }
        Self { ports }
    }

    /// The port by which `node` sends packets of `flow` on, in the given direction.
    #[inline]
    pub(crate) fn port(&self, node: u32, flow: u32, reverse: bool) -> Option<usize> {
        if self.ports.is_empty() {
            return None;
        }
        self.ports
            .get(&(node, flow, reverse))
            .map(|&port| usize::from(port))
    }
}

/// The first port of each node that leads to each of its neighbours.
fn port_towards(network: &Network) -> FxHashMap<(NodeId, NodeId), u16> {
    let mut ports = FxHashMap::default();
    for link in &network.links {
        ports
            .entry((link.a.node, link.b.node))
            .or_insert(link.a.port.0);
        ports
            .entry((link.b.node, link.a.node))
            .or_insert(link.b.port.0);
    }
    ports
}
