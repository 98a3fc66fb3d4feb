//! A plan's network as its InfiniBand subnet managers see it, and the routes that their engines make.
//!
//! ```text
//! Network, links that are up ─► Subnet ─► RoutingView ─► routing engine ─► Routes ─► forwarding tables of switches
//!   node n, port p                node n, port p + 1     (one of each for every subnet)
//! ```
//!
//! What no cable joins is several subnets, each with a manager of its own: rails without spines, planes. A host may have ports
//! in several of them, and joins none. Identifiers are those of the whole network, so that they stay when links fail, and no two
//! subnets have the same ones.

pub mod congestion;

use std::sync::Arc;

use softfabric_subnet::check::{Beside, CreditLoop, credit_loop};
use softfabric_subnet::routing::{
    Alternatives, Dfsssp, Distances, FatTree, MinHop, Nue, PortSet, Routes, RoutingEngine,
    RoutingError, RoutingView, Target, Torus, UpDown, multicast_tree,
};
use softfabric_subnet::{BuildError, LidError, NodeKind, PortRef, Subnet};
use softfabric_units::{Guid, Lid};
use thiserror::Error;

use crate::plan::{
    Endpoint, Infiniband, MulticastGroup, Network, NodeId as PlanNode, NodeKind as PlanKind,
    PortId, SubnetRouting,
};

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
    /// Packets that choose their way can lock each other up.
    #[error(
        "packets that choose among all ways of {engine} can lock up: lanes wait for each other's credit in a circle, {credit_loop}"
    )]
    AdaptiveLoop {
        /// The engine.
        engine: &'static str,
        /// A circle.
        credit_loop: CreditLoop,
    },
    /// No host is linked to a switch.
    #[error("no host is linked to a switch")]
    NoHosts,
}

/// Routes of one subnet.
#[derive(Clone, Debug)]
pub struct Routed {
    /// What the engine saw: the part of the subnet where the manager is.
    pub view: RoutingView,
    /// What it made.
    pub routes: Routes,
    /// With adaptive routing, all ports that packets may take.
    pub alternatives: Option<Alternatives>,
    /// The service level of each multicast group's packets, and the ports of each switch in its tree; none where no switch
    /// reaches all members.
    pub trees: Vec<(u8, Vec<PortSet>)>,
    subnet: Arc<Subnet>,
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

    /// A circle of lanes that wait for each other's credit, if packets between hosts and to groups can make one.
    pub fn credit_loop(&self) -> Option<CreditLoop> {
        let beside = Beside {
            alternatives: self.alternatives.as_ref(),
            trees: &self.trees,
        };
        credit_loop(&self.view, &self.routes, beside)
    }

    /// The manager's tree for a group: of those of its members that the manager reaches.
    fn tree(&self, group: &MulticastGroup, distances: &Distances) -> Vec<PortSet> {
        let targets = self.view.targets();
        let those = |hosts: &[PlanNode]| -> Vec<Target> {
            let first = |host: &PlanNode| Endpoint {
                node: *host,
                port: PortId(0),
            };
            let lids = hosts.iter().map(|host| self.lid(first(host)));
            let place = |lid| targets.binary_search_by_key(&lid, |target| target.lid).ok();
            lids.filter_map(place).map(|place| targets[place]).collect()
        };
        let (members, senders) = (those(&group.members), those(&group.senders));
        multicast_tree(&self.view, distances, &members, &senders).unwrap_or_default()
    }
}

/// The GUID of a host's first port.
pub(crate) fn port_guid(host: PlanNode) -> Guid {
    Guid(FIRST_GUID + u64::from(host.0) * GUID_STEP + 1)
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

/// The routes that the plan's engine makes in each subnet, for what its manager reaches: that sits at the subnet's first host port
/// that has a link. A subnet without such a port has no routes.
///
/// # Errors
/// If there are none at all, or an engine finds none where a manager is.
pub fn route(
    network: &Network,
    settings: &Infiniband,
    up: &[bool],
) -> Result<Vec<Routed>, SubnetError> {
    let subnet = Arc::new(subnet(network, up)?);
    let subnet_of = network.islands();
    // By number of a subnet: the switch at which its manager is.
    let mut managers: Vec<(u32, softfabric_subnet::NodeId)> = Vec::new();
    for host in network.hosts() {
        for (_, port) in subnet.external_ports(softfabric_subnet::NodeId(host.0)) {
            let Some(peer) = port
                .peer()
                .filter(|peer| subnet.node(peer.node).is_switch())
            else {
                continue;
            };
            let number = subnet_of[peer.node.0 as usize];
            if managers.iter().all(|(known, _)| *known != number) {
                managers.push((number, peer.node));
            }
        }
    }
    if managers.is_empty() {
        return Err(SubnetError::NoHosts);
    }
    managers
        .into_iter()
        .map(|(_, at)| route_from(&subnet, at, settings))
        .collect()
}

/// The routes of what a manager at this switch reaches.
fn route_from(
    subnet: &Arc<Subnet>,
    at: softfabric_subnet::NodeId,
    settings: &Infiniband,
) -> Result<Routed, SubnetError> {
    let view = RoutingView::reachable(subnet, at);
    let lanes = settings.hosts.count;
    let engine = engine(settings.routing, lanes);
    let routes = engine.route(&view)?;
    if routes.lanes_used > lanes {
        return Err(SubnetError::Lanes {
            engine: routes.engine,
            needed: routes.lanes_used,
            available: lanes,
        });
    }
    let alternatives = match settings.adaptive {
        true => Some(free_alternatives(&*engine, &view, &routes)?),
        false => None,
    };
    let mut routed = Routed {
        view,
        routes,
        alternatives,
        trees: Vec::new(),
        subnet: Arc::clone(subnet),
    };
    if !settings.multicast.is_empty() {
        let distances = Distances::new(&routed.view);
        let tree =
            |group: &MulticastGroup| (group.level.unwrap_or(0), routed.tree(group, &distances));
        routed.trees = settings.multicast.iter().map(tree).collect();
    }
    Ok(routed)
}

/// All ports that packets may take, which must not let them lock up.
fn free_alternatives(
    engine: &dyn RoutingEngine,
    view: &RoutingView,
    routes: &Routes,
) -> Result<Alternatives, SubnetError> {
    let alternatives = engine.alternatives(view)?;
    let beside = Beside {
        alternatives: Some(&alternatives),
        trees: &[],
    };
    match credit_loop(view, routes, beside) {
        None => Ok(alternatives),
        Some(credit_loop) => Err(SubnetError::AdaptiveLoop {
            engine: engine.name(),
            credit_loop,
        }),
    }
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
