use softfabric_units::{Rate, Span};

use super::*;
use crate::plan::{Network, NodeId, Recording, Stop};

fn plan(network: Network, routing: RoutingKind) -> Plan {
    Plan {
        name: String::new(),
        seed: 0,
        timing: Timing::Exact,
        network,
        link_layer: crate::plan::LinkLayer::Ethernet,
        routing,
        reroute: Span::ZERO,
        switch_profiles: Vec::new(),
        host_profiles: Vec::new(),
        flows: Vec::new(),
        triggers: Vec::new(),
        jobs: Vec::new(),
        actions: Vec::new(),
        recording: Recording::default(),
        stop: Stop {
            at: softfabric_units::Time::NEVER,
            when_done: true,
        },
    }
}

fn link(network: &mut Network, a: NodeId, b: NodeId) {
    network.connect(a, b, Rate::gbps(100), Span::micros(1));
}

fn host(network: &mut Network, switch: NodeId) -> NodeId {
    let name = format!("h{}", network.nodes.len());
    let host = network.add_node(
        name,
        NodeKind::Host {
            profile: 0,
            subnet: 0,
        },
        0,
    );
    link(network, host, switch);
    host
}

fn switch(network: &mut Network, tier: u8) -> NodeId {
    let name = format!("s{}", network.nodes.len());
    network.add_node(name, NodeKind::Switch { profile: 0 }, tier)
}

/// Two leaves with two hosts each, two spines.
fn leaf_spine() -> Network {
    let mut network = Network::default();
    let leaves = [switch(&mut network, 1), switch(&mut network, 1)];
    let spines = [switch(&mut network, 2), switch(&mut network, 2)];
    for leaf in leaves {
        for spine in spines {
            link(&mut network, leaf, spine);
        }
    }
    for leaf in leaves {
        for _ in 0..2 {
            host(&mut network, leaf);
        }
    }
    network
}

fn ring(switches: u32) -> Network {
    let mut network = Network::default();
    let ring: Vec<_> = (0..switches).map(|_| switch(&mut network, 1)).collect();
    for index in 0..ring.len() {
        link(&mut network, ring[index], ring[(index + 1) % ring.len()]);
    }
    for &switch in &ring {
        host(&mut network, switch);
    }
    network
}

fn routes(network: Network, routing: RoutingKind, down: &[usize]) -> Routes {
    let up: Vec<bool> = (0..network.links.len())
        .map(|link| !down.contains(&link))
        .collect();
    Routes::compute(&plan(network, routing), &up)
}

#[test]
fn shortest_paths_use_every_spine() {
    let routes = routes(leaf_spine(), RoutingKind::Shortest, &[]);
    assert_eq!(
        routes.next_hops(0, 0),
        NextHops::Access(2),
        "hosts 0 and 1 hang on leaf 0"
    );
    assert_eq!(routes.next_hops(0, 2), NextHops::Ports(&[0, 1]));
    assert_eq!(routes.next_hops(2, 2), NextHops::Ports(&[1]));
}

#[test]
fn a_link_that_is_down_leads_nowhere() {
    let routes = routes(leaf_spine(), RoutingKind::Shortest, &[0]);
    assert_eq!(routes.next_hops(0, 2), NextHops::Ports(&[1]));
}

/// Follows first hops from everywhere to everywhere: all arrive, and no route goes up after it went down.
#[test]
fn up_down_routes_arrive_and_never_turn_up_again() {
    for network in [ring(5), ring(6), leaf_spine()] {
        let routes = routes(network.clone(), RoutingKind::UpDown, &[]);
        let far = |node: u32, port: u16| {
            let end = Endpoint {
                node: NodeId(node),
                port: crate::plan::PortId(port),
            };
            network.links.iter().find_map(|l| {
                if l.a == end {
                    Some(l.b.node.0)
                } else if l.b == end {
                    Some(l.a.node.0)
                } else {
                    None
                }
            })
        };
        let rank = |node: u32| (network.nodes[node as usize].tier, u32::MAX - node);
        for (destination, end) in destinations(&network).iter().enumerate() {
            for start in network.switches() {
                let mut stack = vec![(start.0, false, 0)];
                while let Some((node, went_down, hops)) = stack.pop() {
                    assert!(hops < 10, "a route goes round in circles");
                    match routes.next_hops(node, destination as u32) {
                        NextHops::Access(port) => assert_eq!(far(node, port), Some(end.node.0)),
                        NextHops::Ports(ports) => {
                            assert!(!ports.is_empty(), "{start:?} does not reach {end:?}");
                            for &port in ports {
                                let next = far(node, port).expect("ports have links");
                                let up = rank(next) > rank(node);
                                assert!(!(up && went_down), "up after down");
                                stack.push((next, went_down || !up, hops + 1));
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn murmur3_as_published() {
    // Reference values of murmur3_x86_32 for twelve bytes.
    let zero = HpccTuple {
        source_ip: 0,
        destination_ip: 0,
        ports: 0,
    };
    assert_eq!(hpcc_hash(zero, 0), murmur3_reference(&[0; 12], 0));
    let tuple = HpccTuple {
        source_ip: hpcc_ip(5),
        destination_ip: hpcc_ip(300),
        ports: 10_000 | 100 << 16,
    };
    let mut bytes = Vec::new();
    for word in [tuple.source_ip, tuple.destination_ip, tuple.ports] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    assert_eq!(hpcc_hash(tuple, 17), murmur3_reference(&bytes, 17));
    assert_eq!(hpcc_ip(300), 0x0b01_2c01, "node 300 is 11.1.44.1");
}

/// The algorithm over bytes, as its author describes it.
fn murmur3_reference(bytes: &[u8], seed: u32) -> u32 {
    let mut hash = seed;
    for block in bytes.chunks_exact(4) {
        let mut k = u32::from_le_bytes(block.try_into().expect("four bytes"));
        k = k.wrapping_mul(0xcc9e2d51);
        k = k.rotate_left(15);
        k = k.wrapping_mul(0x1b873593);
        hash ^= k;
        hash = hash.rotate_left(13);
        hash = hash.wrapping_mul(5).wrapping_add(0xe6546b64);
    }
    hash ^= bytes.len() as u32;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85ebca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2ae35);
    hash ^ (hash >> 16)
}

#[test]
fn picks_are_even() {
    let mut counts = [0; 5];
    for entropy in 0..50_000u32 {
        counts[pick(mix(entropy.wrapping_mul(2_654_435_761), 99), 5)] += 1;
    }
    assert!(
        counts.iter().all(|count| (9_000..11_000).contains(count)),
        "{counts:?}"
    );
}

/// Whether queues that wait for each other can make a circle: each cable waits for those that its packets go on by, whatever
/// their destination. Cables are taken away as long as nothing waits for them.
fn can_lock_up(network: &Network, routes: &Routes, up: &[bool]) -> bool {
    let mut far = FxHashMap::default();
    for (link, _) in network.links.iter().zip(up).filter(|(_, up)| **up) {
        far.insert(link.a, link.b);
        far.insert(link.b, link.a);
    }
    let next = |node: NodeId, destination: u32| -> Vec<Endpoint> {
        let port = |port: u16| Endpoint {
            node,
            port: crate::plan::PortId(port),
        };
        match routes.next_hops(node.0, destination) {
            NextHops::Access(_) => Vec::new(),
            NextHops::Ports(ports) => ports.iter().map(|found| port(*found)).collect(),
        }
    };
    let mut waits: FxHashMap<Endpoint, FxHashSet<Endpoint>> = FxHashMap::default();
    for destination in 0..destinations(network).len() as u32 {
        for switch in network.switches() {
            for out in next(switch, destination) {
                let beyond = next(far[&out].node, destination);
                waits.entry(out).or_default().extend(beyond);
            }
        }
    }
    loop {
        let before = waits.len();
        let there: FxHashSet<Endpoint> = waits.keys().copied().collect();
        waits.retain(|_, others| {
            others.retain(|other| there.contains(other));
            !others.is_empty()
        });
        if waits.len() == before {
            return before > 0;
        }
    }
}

/// Ways between groups go up, across and down, and cannot lock up. With only a ring of groups left, the shortest ones go
/// across twice, all round, and can; up-down ones cannot even then.
#[test]
fn a_dragonfly_plus_cannot_lock_up_until_cables_are_lost() {
    let cable = crate::topology::Cable {
        rate: Rate::gbps(100),
        delay: Span::micros(1),
    };
    let network = crate::topology::DragonflyPlus {
        groups: 5,
        leaves: 2,
        spines: 2,
        hosts_per_leaf: 1,
        global_links: 2,
        cable,
        trunk: cable,
        global: cable,
    }
    .build()
    .unwrap();
    let group = |end: Endpoint| -> Option<i32> {
        let name = &network.nodes[end.node.index()].name;
        name.strip_prefix("group")?.get(..1)?.parse().ok()
    };
    let all = vec![true; network.links.len()];
    let ring: Vec<bool> = (network.links.iter())
        .map(|link| match (group(link.a), group(link.b)) {
            (Some(a), Some(b)) => [0, 1, 4].contains(&(a - b).abs()),
            _ => true,
        })
        .collect();
    for (kind, up, expected) in [
        (RoutingKind::Shortest, &all, false),
        (RoutingKind::UpDown, &all, false),
        (RoutingKind::Shortest, &ring, true),
        (RoutingKind::UpDown, &ring, false),
    ] {
        let plan = plan(network.clone(), kind);
        let routes = Routes::compute(&plan, up);
        assert_eq!(can_lock_up(&network, &routes, up), expected, "{kind:?}");
        for switch in network.switches() {
            for destination in 0..destinations(&network).len() as u32 {
                assert_ne!(
                    routes.next_hops(switch.0, destination),
                    NextHops::Ports(&[])
                );
            }
        }
    }
}
