//! A plan's network as its InfiniBand subnet manager sees it, and the routes that the manager's engine makes.
//!
//! ```text
//! Network, links that are up ─► Subnet ─► RoutingView ─► routing engine ─► Routes ─► forwarding tables of switches
//!   node n, port p                node n, port p + 1
//! ```
//!
//! Identifiers are those of the whole network, so that they stay when links fail.

pub mod congestion;

use softfabric_subnet::check::{CreditLoop, check};
use softfabric_subnet::routing::{
    Dfsssp, FatTree, MinHop, Nue, Routes, RoutingEngine, RoutingError, RoutingView, Torus, UpDown,
};
use softfabric_subnet::{BuildError, LidError, NodeKind, PortRef, Subnet};
use softfabric_units::{Guid, Lid};
use thiserror::Error;

use crate::plan::{Endpoint, Infiniband, Network, NodeKind as PlanKind, SubnetRouting};

/// The most ports of a node: the others' numbers have a meaning (IBTA vol. 1, 14.2.5.6).
const MOST_PORTS: u16 = 254;
/// Nodes' GUIDs start here, with room for those of their ports.
const FIRST_GUID: u64 = 0x0002_0000_0000_0000;
const GUID_STEP: u64 = 0x100;

/// Why a network has no routes.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SubnetError {
    /// A node with more ports than InfiniBand numbers.
    #[error("{node} has more than {MOST_PORTS} ports")]
    TooManyPorts {
        /// The node.
        node: String,
    },
    /// Two links at one port, or a link at none.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Not enough identifiers.
    #[error(transparent)]
    Lids(#[from] LidError),
    /// No routes.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// The routes use more lanes than links have.
    #[error("{engine} uses {needed} lanes, and links have {available}")]
    Lanes {
        /// The engine.
        engine: &'static str,
        /// The lanes of its routes.
        needed: u8,
        /// Those of the plan.
        available: u8,
    },
    /// No host is linked to a switch.
    #[error("no host is linked to a switch")]
    NoHosts,
}

/// Routes of a network.
#[derive(Clone, Debug)]
pub struct Routed {
    /// What the engine saw: the part of the network where the manager is.
    pub view: RoutingView,
    /// What it made.
    pub routes: Routes,
    subnet: Subnet,
}

impl Routed {
    /// The row of a node's forwarding table; `None` for hosts, and for switches that the manager does not reach.
    pub fn row(&self, node: crate::plan::NodeId) -> Option<usize> {
        self.view.switch_of(softfabric_subnet::NodeId(node.0))
    }

    /// The identifier of a host's port.
    pub fn lid(&self, end: Endpoint) -> Lid {
        self.subnet.port(port(end)).lid
    }

    /// A circle of lanes that wait for each other's credit, if there can be one.
    pub fn credit_loop(&self) -> Option<CreditLoop> {
        check(&self.view, &self.routes).credit_loop
    }
}

/// The subnet of a network, with links that are up.
///
/// # Errors
/// If a node has too many ports, or there are too many of them all.
pub fn subnet(network: &Network, up: &[bool]) -> Result<Subnet, SubnetError> {
    let mut subnet = Subnet::new();
    let mut ports = vec![0_u16; network.nodes.len()];
    for end in network.links.iter().flat_map(|link| [link.a, link.b]) {
        let count = &mut ports[end.node.index()];
        *count = (*count).max(end.port.0.saturating_add(1));
    }
    for ((node, ports), number) in network.nodes.iter().zip(ports).zip(0..) {
        let kind = match node.kind {
            PlanKind::Host { .. } => NodeKind::Adapter,
            PlanKind::Switch { .. } => NodeKind::Switch,
        };
        if ports > MOST_PORTS {
            let node = node.name.clone();
            return Err(SubnetError::TooManyPorts { node });
        }
        let guid = Guid(FIRST_GUID + number * GUID_STEP);
        subnet.add_node(kind, guid, ports as u8, &node.name)?;
    }
    for link in &network.links {
        subnet.connect(port(link.a), port(link.b))?;
    }
    subnet.assign_lids(0)?;
    for (link, _) in network.links.iter().zip(up).filter(|(_, up)| !**up) {
        subnet.disconnect(port(link.a));
    }
    Ok(subnet)
}

/// The routes that the plan's engine makes for what the manager reaches: it sits at the first host that has a link.
///
/// # Errors
/// If there are none.
pub fn route(network: &Network, settings: &Infiniband, up: &[bool]) -> Result<Routed, SubnetError> {
    let subnet = subnet(network, up)?;
    let hosts = network
        .hosts()
        .map(|host| softfabric_subnet::NodeId(host.0));
    let first = hosts
        .flat_map(|host| subnet.external_ports(host))
        .filter_map(|(_, port)| port.peer())
        .find(|peer| subnet.node(peer.node).is_switch());
    let first = first.ok_or(SubnetError::NoHosts)?;
    let view = RoutingView::reachable(&subnet, first.node);
    let lanes = settings.hosts.count;
    let routes = engine(settings.routing, lanes).route(&view)?;
    if routes.lanes_used > lanes {
        return Err(SubnetError::Lanes {
            engine: routes.engine,
            needed: routes.lanes_used,
            available: lanes,
        });
    }
    Ok(Routed {
        view,
        routes,
        subnet,
    })
}

fn engine(routing: SubnetRouting, lanes: u8) -> Box<dyn RoutingEngine> {
    match routing {
        SubnetRouting::MinHop => Box::new(MinHop),
        SubnetRouting::UpDown => Box::new(UpDown::default()),
        SubnetRouting::FatTree => Box::new(FatTree::default()),
        SubnetRouting::Dfsssp => Box::new(Dfsssp { lanes }),
        SubnetRouting::Torus => Box::new(Torus),
        SubnetRouting::Nue => Box::new(Nue { lanes }),
    }
}

fn port(end: Endpoint) -> PortRef {
    PortRef {
        node: softfabric_subnet::NodeId(end.node.0),
        // Nodes with more ports are refused before any is used.
        port: (end.port.0 + 1) as u8,
    }
}
