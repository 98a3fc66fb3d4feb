//! The port by which a packet goes on.

use softfabric_wire::udp::ROCE_PORT;

use super::Switch;
use crate::engine::frame::{Flags, Frame};
use crate::engine::routing::{NextHops, hpcc_hash, mix, pick};
use crate::engine::world::World;
use crate::plan::LoadBalancing;

impl Switch {
    /// The port by which a packet goes on.
    pub(super) fn route(&mut self, frame: &Frame, world: &World) -> Option<usize> {
        let ports = match world.routes.next_hops(self.id, frame.destination) {
            NextHops::Access(port) => return Some(usize::from(port)),
            NextHops::Ports(ports) => ports,
        };
        if let Some(port) = self.fixed_port(frame, world) {
            return Some(port);
        }
        match ports {
            [] => None,
            [only] => Some(usize::from(*only)),
            _ => {
                let index = match self.load_balancing {
                    LoadBalancing::EcmpHash => {
                        pick(mix(frame.entropy, self.hash_seed), ports.len())
                    }
                    LoadBalancing::EcmpQueuePair => {
                        let entropy = with_queue_pair(frame, world);
                        pick(mix(entropy, self.hash_seed), ports.len())
                    }
                    LoadBalancing::EcmpHpcc => {
                        let address = &world.flows[frame.flow as usize];
                        let tuple = if frame.flags.has(Flags::REVERSE) {
                            address.reverse_tuple()
                        } else {
                            address.tuple
                        };
                        hpcc_hash(tuple, self.id) as usize % ports.len()
                    }
                    LoadBalancing::SprayRandom => self.random.below(ports.len() as u64) as usize,
                    LoadBalancing::SprayRoundRobin => {
                        self.spray = self.spray.wrapping_add(1);
                        self.spray as usize % ports.len()
                    }
                    LoadBalancing::Adaptive => self.shortest_queue(ports, frame),
                };
                Some(usize::from(ports[index]))
            }
        }
    }

    /// The next hop of a flow whose path is given, on that path and back.
    pub(super) fn fixed_port(&self, frame: &Frame, world: &World) -> Option<usize> {
        world
            .fixed_hops
            .port(self.id, frame.flow, frame.flags.has(Flags::REVERSE))
    }

    pub(super) fn shortest_queue(&self, ports: &[u16], frame: &Frame) -> usize {
        let start = pick(mix(frame.entropy, self.hash_seed), ports.len());
        let depth = |index: usize| self.ports[usize::from(ports[index])].queues.bytes;
        (0..ports.len())
            .map(|step| (start + step) % ports.len())
            .min_by_key(|&index| depth(index))
            .unwrap_or(0)
    }
}

/// The hash of a packet's addresses and ports, and of RoCEv2 of the destination queue pair. A switch finds that at a fixed
/// place behind a UDP header with RoCEv2's port, and nowhere else.
fn with_queue_pair(frame: &Frame, world: &World) -> u32 {
    let flow = &world.plan.flows[frame.flow as usize];
    let is_known = flow.udp_destination_port == ROCE_PORT
        && !frame.flags.has(Flags::UNROUTABLE)
        && world.plan.stack_of(flow.source).is_none();
    match is_known {
        true => frame.entropy ^ mix(frame.queue_pair(), 0),
        false => frame.entropy,
    }
}
