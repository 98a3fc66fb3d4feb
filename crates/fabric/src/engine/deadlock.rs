//! Finding a deadlock: queues that wait for each other in a circle.
//!
//! An egress queue that is paused waits until the node at the other end has room in its ingress group; the packets there
//! wait in that node's egress queues. If all of those are paused too, and so on without a way out, nothing of it will
//! ever move again.

use std::collections::BTreeMap;

use softfabric_units::{Class, Time};

use super::node::{Kind, Node};
use crate::plan::{Endpoint, Network, NodeId, PortId};
use crate::results::Deadlock;

/// An egress queue: node, port and class.
type QueueId = (u32, u16, u8);

/// Looks for a circle of paused queues at the end of a run.
pub(crate) fn find(network: &Network, nodes: &[Node]) -> Option<Deadlock> {
    let mut far_end = BTreeMap::new();
    for link in &network.links {
        far_end.insert(link.a, link.b);
        far_end.insert(link.b, link.a);
    }
    let mut waits: BTreeMap<QueueId, Vec<QueueId>> = BTreeMap::new();
    for (id, node) in nodes.iter().enumerate() {
        let Kind::Switch(switch) = &node.kind else {
            continue;
        };
        for (index, port) in switch.ports.iter().enumerate() {
            let endpoint = Endpoint {
                node: NodeId(id as u32),
                port: PortId(index as u16),
            };
            let stuck = port.transmitter.paused.mask.and(port.queues.waiting());
            for class in stuck.iter() {
                let successors = far_end
                    .get(&endpoint)
                    .map(|far| holders(nodes, *far, class))
                    .unwrap_or_default();
                waits.insert(
                    (endpoint.node.0, endpoint.port.0, class.as_u8()),
                    successors,
                );
            }
        }
    }
    // Whoever waits for a queue that can move, or for nobody, will move; take them away until all that is left is stuck.
    loop {
        let movable: Vec<QueueId> = waits
            .iter()
            .filter(|(_, successors)| {
                successors.is_empty()
                    || successors
                        .iter()
                        .any(|successor| !waits.contains_key(successor))
            })
            .map(|(queue, _)| *queue)
            .collect();
        if movable.is_empty() {
            break;
        }
        for queue in movable {
            waits.remove(&queue);
        }
    }
    let (&start, _) = waits.first_key_value()?;
    let mut trail = vec![start];
    loop {
        let next = *waits.get(trail.last()?)?.first()?;
        if let Some(position) = trail.iter().position(|queue| *queue == next) {
            trail.drain(..position);
            break;
        }
        trail.push(next);
    }
    let since = trail
        .iter()
        .map(|queue| paused_since(nodes, *queue))
        .max()?;
    let endpoint = |&(node, port, _): &QueueId| Endpoint {
        node: NodeId(node),
        port: PortId(port),
    };
    Some(Deadlock {
        class: Class::checked(start.2)?,
        cycle: trail.iter().map(endpoint).collect(),
        since,
    })
}

/// The egress queues of a node that hold packets of `class` which came in by `ingress`.
fn holders(nodes: &[Node], ingress: Endpoint, class: Class) -> Vec<QueueId> {
    let Kind::Switch(switch) = &nodes[ingress.node.index()].kind else {
        return Vec::new();
    };
    let holds = |port: &super::switch::SwitchPort| {
        port.queues
            .lane(class)
            .any(|frame| frame.ingress == ingress.port.0)
    };
    let ports = switch
        .ports
        .iter()
        .enumerate()
        .filter(|(_, port)| holds(port));
    ports
        .map(|(index, _)| (ingress.node.0, index as u16, class.as_u8()))
        .collect()
}

fn paused_since(nodes: &[Node], (node, port, class): QueueId) -> Time {
    match &nodes[node as usize].kind {
        Kind::Switch(switch) => {
            switch.ports[usize::from(port)].transmitter.paused.since[usize::from(class)]
        }
        Kind::Host(_) => Time::ZERO,
    }
}
