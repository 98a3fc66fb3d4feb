use softfabric_units::{Rate, Span};

use super::*;

const CABLE: Cable = Cable {
    rate: Rate::gbps(100),
    delay: Span::micros(1),
};

/// The number of ports of each node; fails on gaps and on ports used twice.
fn ports(network: &Network) -> Vec<usize> {
    let mut seen = vec![Vec::new(); network.nodes.len()];
    for end in network.links.iter().flat_map(|link| [link.a, link.b]) {
        seen[end.node.index()].push(end.port.index());
    }
    seen.into_iter()
        .map(|mut ports| {
            ports.sort_unstable();
            assert_eq!(ports, (0..ports.len()).collect::<Vec<_>>());
            ports.len()
        })
        .collect()
}

/// Whether every node reaches every other.
fn is_connected(network: &Network) -> bool {
    let mut group: Vec<usize> = (0..network.nodes.len()).collect();
    fn root(group: &mut [usize], mut node: usize) -> usize {
        while group[node] != node {
            group[node] = group[group[node]];
            node = group[node];
        }
        node
    }
    for link in &network.links {
        let (a, b) = (link.a.node.index(), link.b.node.index());
        let (a, b) = (root(&mut group, a), root(&mut group, b));
        group[a] = b;
    }
    (0..group.len()).all(|node| root(&mut group, node) == root(&mut group, 0))
}

fn names(network: &Network, prefix: &str) -> usize {
    network
        .nodes
        .iter()
        .filter(|node| {
            node.name.strip_prefix(prefix).is_some_and(|rest| {
                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
            })
        })
        .count()
}

#[test]
fn a_star() {
    let network = Star {
        hosts: 17,
        cable: CABLE,
    }
    .build()
    .unwrap();
    let ports = ports(&network);
    assert_eq!(ports[..17], [1; 17]);
    assert_eq!(ports[17], 17);
    assert_eq!(network.nodes[16].name, "h16");
    assert_eq!(network.nodes[17].name, "s0");
    assert_eq!(network.links[4].b.port, PortId(4));
    assert!(is_connected(&network));
}

#[test]
fn switches_in_a_row() {
    let parking = ParkingLot {
        hosts: vec![3, 2],
        cable: CABLE,
        trunk: CABLE,
    }
    .build()
    .unwrap();
    assert_eq!(ports(&parking), [1, 1, 1, 1, 1, 4, 3]);
    assert!(is_connected(&parking));
    let dumbbell = Dumbbell {
        left: 2,
        right: 1,
        cable: CABLE,
        bottleneck: Cable {
            rate: Rate::gbps(10),
            delay: Span::micros(5),
        },
    }
    .build()
    .unwrap();
    assert_eq!(ports(&dumbbell), [1, 1, 1, 3, 2]);
    assert_eq!(dumbbell.links[3].rate, Rate::gbps(10));
    assert_eq!(
        dumbbell.nodes[2].kind,
        NodeKind::Host {
            profile: 0,
            subnet: 1
        }
    );
}

#[test]
fn a_ring_closes() {
    let (network, clockwise) = Ring {
        switches: 4,
        hosts_per_switch: 2,
        cable: CABLE,
        trunk: CABLE,
    }
    .build()
    .unwrap();
    assert_eq!(ports(&network)[8..], [4; 4]);
    assert_eq!(network.links.len(), 8 + 4);
    let last = network.links[11];
    assert_eq!((last.a.node, last.b.node), (clockwise[3], clockwise[0]));
}

#[test]
fn leaves_and_spines() {
    let shape = LeafSpine {
        leaves: 4,
        spines: 2,
        hosts_per_leaf: 8,
        cable: CABLE,
        uplink: Cable {
            rate: Rate::gbps(400),
            delay: Span::micros(1),
        },
    };
    let network = shape.build().unwrap();
    let ports = ports(&network);
    assert_eq!(ports[32..36], [10; 4]);
    assert_eq!(ports[36..], [4; 2]);
    assert_eq!(network.links.len(), 32 + 8);
    assert!(is_connected(&network));
    assert_eq!(shape.oversubscription(), 1.0);
    assert_eq!(names(&network, "leaf"), 4);
    assert_eq!(network.nodes[36].tier, 2);
}

#[test]
fn fat_trees() {
    for (k, oversubscription) in [(2, 1), (4, 1), (8, 1), (4, 3)] {
        let shape = FatTree {
            k,
            oversubscription,
            cable: CABLE,
            uplink: CABLE,
        };
        let network = shape.build().unwrap();
        let hosts = shape.host_count();
        assert_eq!(hosts, k * k * k / 4 * oversubscription);
        assert_eq!(names(&network, "h"), hosts as usize);
        assert_eq!(names(&network, "core"), (k * k / 4) as usize);
        let between = k * (k / 2) * (k / 2) * 2;
        assert_eq!(network.links.len(), (hosts + between) as usize);
        let ports = ports(&network);
        for (node, ports) in network.nodes.iter().zip(ports) {
            let needed = match node.tier {
                0 => 1,
                1 => k / 2 * (1 + oversubscription),
                _ => k,
            };
            assert_eq!(ports, needed as usize, "{}", node.name);
        }
        assert!(is_connected(&network));
    }
}

#[test]
fn a_fat_tree_of_65536_hosts() {
    let network = FatTree {
        k: 64,
        oversubscription: 1,
        cable: CABLE,
        uplink: CABLE,
    }
    .build()
    .unwrap();
    assert_eq!(network.hosts().count(), 65_536);
    assert_eq!(network.switches().count(), 5 * 64 * 64 / 4);
    assert_eq!(network.links.len(), 3 * 65_536);
}

#[test]
fn tiers_of_bare_links() {
    let mut network = FatTree {
        k: 4,
        oversubscription: 1,
        cable: CABLE,
        uplink: CABLE,
    }
    .build()
    .unwrap();
    let expected: Vec<u8> = network.nodes.iter().map(|node| node.tier).collect();
    network.nodes.iter_mut().for_each(|node| node.tier = 9);
    tiers_by_distance(&mut network);
    let found: Vec<u8> = network.nodes.iter().map(|node| node.tier).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_cannot_be_built_says_why() {
    let error = FatTree {
        k: 7,
        oversubscription: 1,
        cable: CABLE,
        uplink: CABLE,
    }
    .build()
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`k` is 7, but it must be an even number from 2 to 256"
    );
    let error = Star {
        hosts: 70_000,
        cable: CABLE,
    }
    .build()
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`hosts` is 70000 ports on s0, but it must be at most 65536 ports a node"
    );
    let error = Star {
        hosts: 2,
        cable: Cable {
            rate: Rate::ZERO,
            ..CABLE
        },
    }
    .build()
    .unwrap_err();
    assert_eq!(error.field, "rate");
}

#[test]
fn a_torus_is_cabled_alike_everywhere() {
    let shape = Torus {
        dimensions: vec![3, 4],
        hosts_per_switch: 2,
        cable: CABLE,
        trunk: CABLE,
    };
    let network = shape.build().unwrap();
    assert_eq!(network.links.len(), 24 + 2 * 12);
    assert_eq!(ports(&network)[24..], [6; 12]);
    assert!(is_connected(&network));
    for link in &network.links[24..] {
        // Forward by an even port, back by the odd one after it.
        let (forward, back) = (link.a.port.0, link.b.port.0);
        assert_eq!((forward % 2, back), (0, forward + 1));
        let dimension = usize::from(forward - 2) / 2;
        let place = |node: NodeId| [(node.0 - 24) / 4, (node.0 - 24) % 4];
        let (from, to) = (place(link.a.node), place(link.b.node));
        assert_eq!(
            to[dimension],
            (from[dimension] + 1) % shape.dimensions[dimension]
        );
        assert_eq!(to[1 - dimension], from[1 - dimension]);
    }
}

#[test]
fn impossible_tori() {
    let torus = |dimensions: &[u32], hosts_per_switch| {
        let shape = Torus {
            dimensions: dimensions.to_vec(),
            hosts_per_switch,
            cable: CABLE,
            trunk: CABLE,
        };
        shape.build().unwrap_err().to_string()
    };
    let sizes = "`dimensions` is [2, 4], but it must be one to four numbers, each 3 or more, such as [4, 4, 4]";
    assert_eq!(torus(&[2, 4], 1), sizes);
    assert!(torus(&[], 1).starts_with("`dimensions` is []"));
    assert!(torus(&[3; 5], 1).starts_with("`dimensions` is"));
    assert!(torus(&[3], 0).starts_with("`hosts_per_switch` is 0"));
}

fn rails(servers_per_leaf: u32, spines: u32) -> RailOptimised {
    RailOptimised {
        servers: 10,
        rails: 4,
        planes: 2,
        servers_per_leaf,
        spines,
        cable: CABLE,
        uplink: Cable {
            rate: Rate::gbps(400),
            ..CABLE
        },
    }
}

/// Port r · planes + p of every server is on rail r and plane p, at the leaf of its group; spines link one plane's leaves.
#[test]
fn rails_and_planes() {
    let shape = rails(4, 3);
    let network = shape.build().unwrap();
    assert_eq!((shape.leaves(), names(&network, "h")), (3, 10));
    let counts = ports(&network);
    for (node, count) in network.nodes.iter().zip(&counts) {
        let expected = match node.tier {
            0 => 4 * 2,
            // Four servers, or the two that are left, and three spines.
            1 if node.name.ends_with("leaf2") => 2 + 3,
            1 => 4 + 3,
            // All leaves of all rails of its plane.
            _ => 4 * 3,
        };
        assert_eq!(*count, expected, "{}", node.name);
    }
    let name = |node: NodeId| network.nodes[node.index()].name.as_str();
    for link in &network.links[..10 * 8] {
        let (server, port) = (link.a.node.0, u32::from(link.a.port.0));
        let (rail, plane, leaf) = (port / 2, port % 2, server / 4);
        assert_eq!(
            name(link.b.node),
            format!("plane{plane}rail{rail}leaf{leaf}")
        );
        assert_eq!(link.rate, Rate::gbps(100));
    }
    for link in &network.links[10 * 8..] {
        let (leaf, spine) = (name(link.a.node), name(link.b.node));
        assert_eq!(leaf[..6], spine[..6], "{leaf} and {spine}");
        assert!(spine[6..].starts_with("spine"));
        assert_eq!(link.rate, Rate::gbps(400));
    }
    assert_eq!(network.links.len(), 10 * 8 + 2 * 4 * 3 * 3);
}

/// With one leaf a rail needs no spine; with several and none it is in pieces. One plane has no name.
#[test]
fn rails_without_spines() {
    let network = RailOptimised {
        planes: 1,
        ..rails(10, 0)
    }
    .build()
    .unwrap();
    assert_eq!(network.links.len(), 10 * 4);
    assert_eq!(network.nodes[10].name, "rail0leaf0");
    assert!(is_connected(&network), "over the servers");
    let error = rails(4, 0).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`spines` is 0, but it must be 1 or more, as each rail has 3 leaves"
    );
    for shape in [
        RailOptimised {
            rails: 0,
            ..rails(4, 1)
        },
        RailOptimised {
            planes: 0,
            ..rails(4, 1)
        },
    ] {
        assert!(shape.build().is_err());
    }
}

/// Four groups of three leaves and two spines: cables as counted, each group with as many to every other one, spread over its
/// spines as evenly as they go, and between leaves of different groups three cables.
#[test]
fn a_dragonfly_plus() {
    let shape = DragonflyPlus {
        groups: 4,
        leaves: 3,
        spines: 2,
        hosts_per_leaf: 5,
        global_links: 2,
        cable: CABLE,
        trunk: CABLE,
        global: CABLE,
    };
    let network = shape.build().unwrap();
    assert_eq!(network.hosts().count(), 4 * 3 * 5);
    assert_eq!(network.switches().count(), 4 * (3 + 2));
    // Hosts, leaves with spines, and every two groups with two cables.
    assert_eq!(shape.trunks(), 4 * 3 * 2 + 4 * 3 / 2 * 2);
    assert_eq!(network.links.len() as u64, 60 + shape.trunks());
    assert!(is_connected(&network));
    let ports = ports(&network);
    let of = |name: &str| {
        let place = network.nodes.iter().position(|node| node.name == name);
        place.unwrap()
    };
    assert_eq!(ports[of("group2leaf1")], 5 + 2);
    for group in 0..4 {
        for spine in 0..2 {
            assert_eq!(ports[of(&format!("group{group}spine{spine}"))], 3 + 3);
        }
    }
    let group = |node: NodeId| -> Option<u32> {
        let name = network.nodes[node.index()].name.strip_prefix("group")?;
        name.get(..1)?.parse().ok()
    };
    let mut between = [[0; 4]; 4];
    for link in &network.links {
        if let (Some(a), Some(b)) = (group(link.a.node), group(link.b.node)) {
            between[a as usize][b as usize] += 1;
            between[b as usize][a as usize] += 1;
        }
    }
    for (one, row) in between.iter().enumerate() {
        for (other, count) in row.iter().enumerate() {
            assert_eq!(
                *count,
                if one == other { 2 * 3 * 2 } else { 2 },
                "{one} {other}"
            );
        }
    }
}

#[test]
fn cables_of_a_dragonfly_plus_go_round_its_spines() {
    let shape = DragonflyPlus {
        groups: 5,
        leaves: 1,
        spines: 4,
        hosts_per_leaf: 1,
        global_links: 1,
        cable: CABLE,
        trunk: CABLE,
        global: CABLE,
    };
    let network = shape.build().unwrap();
    let ports = ports(&network);
    for (node, ports) in network.nodes.iter().zip(ports) {
        if node.name.contains("spine") {
            assert_eq!(ports, 1 + 1, "{}", node.name);
        }
    }
    let error = DragonflyPlus { groups: 1, ..shape }.build().unwrap_err();
    assert_eq!(error.to_string(), "`groups` is 1, but it must be 2 or more");
}
