//! Who knows the way, and how many entries of tables it takes.

use serde::Serialize;

use crate::engine::table_entries;
use crate::plan::{NodeKind, Plan};
use crate::subnet::route;

/// The tables of a fabric's switches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoutingFigures {
    /// Who computes them.
    pub by: String,
    /// Switches.
    pub switches: u64,
    /// Entries of all tables together: destinations, or prefixes of destinations, that have a way.
    pub entries: u64,
    /// Next hops of all entries together: more than entries where several paths are used at once.
    pub next_hops: u64,
}

impl RoutingFigures {
    pub(super) fn of(plan: &Plan) -> Self {
        let switches = (plan.network.nodes.iter())
            .filter(|node| matches!(node.kind, NodeKind::Switch { .. }))
            .count() as u64;
        let up = vec![true; plan.network.links.len()];
        let Some(settings) = plan.link_layer.infiniband() else {
            let (entries, next_hops) = table_entries(plan);
            return Self {
                by: "each switch by itself, from IP routing".to_owned(),
                switches,
                entries,
                next_hops,
            };
        };
        let routed = route(&plan.network, settings, &up);
        let (engine, entries) = match &routed {
            Ok(subnets) => {
                let tables = subnets.iter().flat_map(|routed| {
                    (0..routed.view.switches()).map(|switch| routed.routes.table(switch))
                });
                let reached = |table: &[u8]| {
                    let entries = table.iter().skip(1);
                    entries
                        .filter(|port| **port != softfabric_subnet::routing::NO_PORT)
                        .count()
                };
                let entries = tables.map(reached).sum::<usize>() as u64;
                let engine = subnets
                    .first()
                    .map_or("none", |routed| routed.routes.engine);
                (engine, entries)
            }
            Err(_) => ("none", 0),
        };
        let by = match routed.map_or(1, |subnets| subnets.len()) {
            1 => format!("the subnet manager, by its engine {engine}"),
            many => format!("{many} subnet managers, by their engine {engine}"),
        };
        Self {
            by,
            switches,
            entries,
            next_hops: entries,
        }
    }
}
