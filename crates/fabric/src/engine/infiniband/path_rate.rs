//! What the subnet manager's path record says of a path's rate: that of its slowest link (IBTA vol. 1, 15.2.5.16).

use softfabric_units::Rate;

use crate::engine::world::World;
use crate::plan::{Network, NodeId};

/// By node and port: the rate of its link, and who is at its other end.
#[derive(Debug)]
pub(super) struct FarEnds(Vec<Vec<Option<(Rate, NodeId)>>>);

impl FarEnds {
    pub(super) fn new(network: &Network) -> Self {
        let mut ends = vec![Vec::new(); network.nodes.len()];
        for link in &network.links {
            for (near, far) in [(link.a, link.b), (link.b, link.a)] {
                let ports = &mut ends[near.node.index()];
                if ports.len() <= near.port.index() {
                    ports.resize(near.port.index() + 1, None);
                }
                ports[near.port.index()] = Some((link.rate, far.node));
            }
        }
        Self(ends)
    }

    fn at(&self, node: NodeId, port: usize) -> Option<(Rate, NodeId)> {
        *self.0[node.index()].get(port)?
    }
}

/// The rate of the slowest link on the path that `host` sends a flow's packets by, as the tables are now; `None` where
/// none leads there, or the fabric knows no rates of paths.
pub(crate) fn path_rate(flow: u32, host: u32, world: &World) -> Option<Rate> {
    let tables = world.tables.as_ref()?;
    let ends = tables.far_ends.as_ref()?;
    let plan = &world.plan.flows[flow as usize];
    let address = &world.flows[flow as usize];
    let reverse = plan.source.0 != host;
    let (destination, nic) = if reverse {
        (address.source, plan.destination_nic)
    } else {
        (address.destination, plan.source_nic)
    };
    let (mut rate, mut at) = ends.at(NodeId(host), nic.index())?;
    // A path through more switches than there are leads nowhere.
    for _ in 0..world.plan.network.nodes.len() {
        let is_end = at.0 == plan.source.0 || at.0 == plan.destination.0;
        if is_end {
            return Some(rate);
        }
        let fixed = world.fixed_hops.port(at.0, flow, reverse);
        let port = fixed.or_else(|| tables.port(at.0, destination))?;
        let (next, far) = ends.at(at, port)?;
        rate = rate.min(next);
        at = far;
    }
    None
}
