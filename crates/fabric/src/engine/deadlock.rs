//! Finding a deadlock: queues that wait for each other in a circle.
//!
//! An egress queue that is paused waits until the node at the other end has room in its ingress group; the packets there
//! wait in that node's egress queues. If all of those are paused too, and so on without a way out, nothing of it will
//! ever move again. On InfiniBand, lanes without credit wait for the input lane at the other end in the same way.

use std::collections::BTreeMap;

use softfabric_units::{Class, Time};

use super::node::{Kind, Node};
use crate::plan::{Endpoint, Network, NodeId, PortId};
use crate::results::Deadlock;

/// An egress queue: node, port and number.
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
        let id = id as u32;
        match &node.kind {
            Kind::Switch(switch) => {
                for (index, port) in switch.ports.iter().enumerate() {
                    let far = far_end.get(&endpoint(id, index as u16));
                    let paused = &port.transmitter.paused;
                    for queue in paused.queues.and(port.queues.waiting()).iter() {
                        let successors = paused
                            .mask
                            .iter()
                            .filter(|priority| paused.stops[priority.index()] == queue)
                            .flat_map(|priority| far.map(|far| holders(nodes, *far, priority)))
                            .flatten();
                        waits.insert((id, index as u16, queue.as_u8()), successors.collect());
                    }
                }
            }
            Kind::LaneSwitch(switch) => {
                // Where packets live for a while only, no circle stays closed.
                for index in (0..switch.ports.len()).filter(|port| !switch.ends_waits(*port)) {
                    let far = far_end.get(&endpoint(id, index as u16));
                    for lane in switch.starved(index) {
                        let successors =
                            far.map_or(Vec::new(), |far| lane_holders(nodes, *far, lane));
                        waits.insert((id, index as u16, lane), successors);
                    }
                }
            }
            Kind::Host(_) | Kind::TcpHost(_) => {}
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
    Some(Deadlock {
        class: Class::checked(start.2 & 7)?,
        cycle: trail
            .iter()
            .map(|&(node, port, _)| endpoint(node, port))
            .collect(),
        since,
    })
}

fn endpoint(node: u32, port: u16) -> Endpoint {
    Endpoint {
        node: NodeId(node),
        port: PortId(port),
    }
}

/// The egress lanes of a node that hold packets which came in by a lane of `ingress`.
fn lane_holders(nodes: &[Node], ingress: Endpoint, lane: u8) -> Vec<QueueId> {
    let Kind::LaneSwitch(switch) = &nodes[ingress.node.index()].kind else {
        return Vec::new();
    };
    let holders = switch.holders(ingress.port.0, lane).into_iter();
    holders
        .map(|(port, lane)| (ingress.node.0, port, lane))
        .collect()
}

/// The egress queues of a node that hold packets which came in by `ingress`, in a group that pauses `priority`.
fn holders(nodes: &[Node], ingress: Endpoint, priority: Class) -> Vec<QueueId> {
    let Kind::Switch(switch) = &nodes[ingress.node.index()].kind else {
        return Vec::new();
    };
    let mut holders = Vec::new();
    for (index, port) in switch.ports.iter().enumerate() {
        for queue in port.queues.waiting().iter() {
            let mut lane = port.queues.lane(queue);
            if lane.any(|frame| {
                frame.ingress == ingress.port.0 && switch.pauses(frame.class) == priority
            }) {
                holders.push((ingress.node.0, index as u16, queue.as_u8()));
            }
        }
    }
    holders
}

fn paused_since(nodes: &[Node], (node, port, queue): QueueId) -> Time {
    let switch = match &nodes[node as usize].kind {
        Kind::Switch(switch) => switch,
        Kind::LaneSwitch(switch) => return switch.head_since(usize::from(port), queue),
        Kind::Host(_) | Kind::TcpHost(_) => return Time::ZERO,
    };
    let paused = &switch.ports[usize::from(port)].transmitter.paused;
    let priorities = paused.mask.iter();
    priorities
        .filter(|priority| paused.stops[priority.index()].as_u8() == queue)
        .map(|priority| paused.since[priority.index()])
        .min()
        .unwrap_or(Time::ZERO)
}
