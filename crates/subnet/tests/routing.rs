//! Every engine on every kind of subnet: paths arrive, are as long as they should be, and lock up exactly where they may.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use softfabric_subnet::check::{Contention, check, contention};
use softfabric_subnet::generate::{fat_tree, random, torus};
use softfabric_subnet::routing::{
    Dfsssp, Distances, FatTree, MinHop, Nue, Routes, RoutingEngine, RoutingError, RoutingView,
    Torus, UpDown,
};
use softfabric_subnet::{PortRef, Subnet};
use softfabric_units::{Lid, Random};

fn with_lids(mut subnet: Subnet, lmc: u8) -> (Subnet, RoutingView) {
    subnet.assign_lids(lmc).unwrap();
    let view = RoutingView::new(&subnet);
    (subnet, view)
}

/// Identifiers in an order that has nothing to do with places, as discovery gives them.
fn shuffled(mut subnet: Subnet, seed: u64) -> Subnet {
    let mut ends: Vec<PortRef> = subnet.end_ports().map(|(end, _)| end).collect();
    Random::from_seed(seed).shuffle(&mut ends);
    for (lid, end) in (1..).zip(ends) {
        subnet.port_mut(end).lid = Lid(lid);
    }
    subnet
}

fn route(engine: &dyn RoutingEngine, view: &RoutingView) -> Routes {
    engine
        .route(view)
        .unwrap_or_else(|error| panic!("{}: {error}", engine.name()))
}

fn deadlock_free() -> Vec<Box<dyn RoutingEngine>> {
    vec![
        Box::new(UpDown::default()),
        Box::new(Dfsssp { lanes: 15 }),
        Box::new(Nue { lanes: 1 }),
        Box::new(Nue { lanes: 3 }),
    ]
}

/// Links of shortest paths, by breadth-first search.
fn shortest(view: &RoutingView) -> Vec<usize> {
    let distances = Distances::new(view);
    let mut hops = Vec::new();
    for target in view.targets().iter().filter(|target| target.is_adapter()) {
        for from in (0..view.switches()).filter(|switch| view.hosts(*switch) > 0) {
            let distance = usize::from(distances.between(from, target.switch as usize).unwrap());
            if hops.len() <= distance {
                hops.resize(distance + 1, 0);
            }
            hops[distance] += 1;
        }
    }
    hops
}

#[test]
fn min_hop_locks_up_on_a_torus_and_the_others_do_not() {
    let (_, view) = with_lids(torus(&[4, 4, 4], 2).unwrap(), 0);
    let report = check(&view, &route(&MinHop, &view));
    assert_eq!(report.broken_count, 0);
    let circle = report
        .credit_loop
        .expect("shortest paths on a torus make circles");
    assert!(circle.channels.len() >= 3, "{circle}");
    let mut engines = deadlock_free();
    engines.push(Box::new(Torus));
    for engine in engines {
        let routes = route(&*engine, &view);
        let report = check(&view, &routes);
        assert!(
            report.is_sound(),
            "{}: {:?}",
            engine.name(),
            report.credit_loop
        );
        assert!(
            report.broken.is_empty(),
            "{}: {:?}",
            engine.name(),
            report.broken
        );
    }
}

#[test]
fn a_ring_locks_up_and_a_line_does_not() {
    let ring = torus(&[5], 1).unwrap();
    let (mut subnet, view) = with_lids(ring, 0);
    let circle = check(&view, &route(&MinHop, &view)).credit_loop.unwrap();
    assert_eq!(circle.channels.len(), 5, "{circle}");
    let cut = PortRef {
        node: view.node(0),
        port: 1,
    };
    subnet.disconnect(cut).unwrap();
    let view = RoutingView::new(&subnet);
    assert!(check(&view, &route(&MinHop, &view)).is_sound());
}

#[test]
fn shortest_paths_are_as_short_as_breadth_first_search_finds() {
    for subnet in [
        fat_tree(8, 3).unwrap(),
        torus(&[3, 4, 5], 1).unwrap(),
        random(40, 5, 2, 7).unwrap(),
    ] {
        let (_, view) = with_lids(subnet, 0);
        let expected = shortest(&view);
        for engine in [&MinHop as &dyn RoutingEngine, &Dfsssp { lanes: 15 }] {
            assert_eq!(
                check(&view, &route(engine, &view)).hops,
                expected,
                "{}",
                engine.name()
            );
        }
    }
    // On a full tree, going up and down is shortest.
    let (_, view) = with_lids(fat_tree(8, 3).unwrap(), 0);
    for engine in [
        &UpDown::default() as &dyn RoutingEngine,
        &FatTree::default(),
    ] {
        assert_eq!(check(&view, &route(engine, &view)).hops, shortest(&view));
    }
    // On a torus, dimension order is shortest.
    let (_, view) = with_lids(torus(&[4, 5, 3], 1).unwrap(), 0);
    assert_eq!(check(&view, &route(&Torus, &view)).hops, shortest(&view));
}

/// Host i sends to host i + shift.
fn shift(view: &RoutingView, routes: &Routes, shift: usize) -> Contention {
    let mut hosts: Vec<(PortRef, Lid)> = view
        .targets()
        .iter()
        .filter(|target| target.is_adapter())
        .map(|target| (target.end, target.lid))
        .collect();
    hosts.sort_unstable();
    let flows: Vec<(Lid, Lid)> = (0..hosts.len())
        .map(|host| (hosts[host].1, hosts[(host + shift) % hosts.len()].1))
        .collect();
    contention(view, routes, &flows)
}

#[test]
fn a_fat_tree_carries_every_shift_without_contention() {
    for (radix, levels) in [(8, 3), (6, 3), (8, 2)] {
        let (_, view) = with_lids(shuffled(fat_tree(radix, levels).unwrap(), 1), 0);
        let routes = route(&FatTree::default(), &view);
        assert!(check(&view, &routes).is_sound());
        let hosts = view
            .targets()
            .iter()
            .filter(|target| target.is_adapter())
            .count();
        for by in 1..hosts {
            assert_eq!(
                shift(&view, &routes, by).most,
                1,
                "radix {radix}, shift {by}"
            );
        }
    }
}

#[test]
fn fat_tree_beats_min_hop_on_shifts() {
    let (_, view) = with_lids(shuffled(fat_tree(12, 3).unwrap(), 3), 0);
    let sum = |engine: &dyn RoutingEngine| {
        let routes = route(engine, &view);
        (1..60)
            .map(|by| shift(&view, &routes, by * 7).most)
            .sum::<u32>()
    };
    let (tree, shortest) = (sum(&FatTree::default()), sum(&MinHop));
    assert_eq!(tree, 59);
    assert!(
        shortest > 2 * tree,
        "{shortest} flows on the busiest links of 59 shifts"
    );
}

#[test]
fn a_lost_cable_moves_only_what_took_it() {
    let (mut subnet, view) = with_lids(fat_tree(8, 3).unwrap(), 0);
    let before = route(&FatTree::default(), &view);
    let leaf = view.node(0);
    subnet
        .disconnect(PortRef {
            node: leaf,
            port: 5,
        })
        .unwrap();
    let view = RoutingView::new(&subnet);
    let after = route(&FatTree::default(), &view);
    assert!(check(&view, &after).is_sound());
    let mut moved = 0;
    for switch in 0..view.switches() {
        for target in view.targets().iter().filter(|target| target.is_adapter()) {
            let (old, new) = (
                before.port(switch, target.lid),
                after.port(switch, target.lid),
            );
            moved += usize::from(old != new);
            let lost = switch == 0 && old == Some(5);
            let to_the_leaf = target.switch == 0;
            assert!(
                old == new || lost || to_the_leaf,
                "switch {switch}, LID {}",
                target.lid
            );
        }
    }
    assert!((30..400).contains(&moved), "{moved} entries changed");
}

#[test]
fn more_lanes_than_there_are_is_an_error() {
    let (_, view) = with_lids(torus(&[4, 4, 4], 2).unwrap(), 0);
    let error = Dfsssp { lanes: 1 }.route(&view).unwrap_err();
    let RoutingError::Lanes {
        needed, available, ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(available, 1);
    assert!((2..=9).contains(&needed), "{needed}");
    let lanes = needed as u8;
    assert!(Dfsssp { lanes }.route(&view).is_ok());
    assert!(Dfsssp { lanes: lanes - 1 }.route(&view).is_err());
}

#[test]
fn what_does_not_fit_is_refused_with_a_reason() {
    let (_, view) = with_lids(torus(&[4, 4], 1).unwrap(), 0);
    let error = FatTree::default().route(&view).unwrap_err().to_string();
    assert_eq!(
        error,
        "ftree does not fit this subnet: hosts are at all switches alike, so none is the top: name the roots"
    );
    let (_, view) = with_lids(fat_tree(4, 3).unwrap(), 0);
    let error = Torus.route(&view).unwrap_err().to_string();
    assert!(
        error.starts_with("torus-2QoS does not fit this subnet: port "),
        "{error}"
    );
    let missing = softfabric_units::Guid(5);
    let error = UpDown {
        roots: vec![missing],
    }
    .route(&view)
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "root 0x0000000000000005 is no switch of this subnet"
    );
    // Two halves that no cable joins.
    let (mut subnet, view) = with_lids(torus(&[4], 1).unwrap(), 0);
    for switch in [0, 2] {
        let node = view.node(switch);
        subnet.disconnect(PortRef { node, port: 1 }).unwrap();
    }
    let view = RoutingView::new(&subnet);
    for engine in [
        &MinHop as &dyn RoutingEngine,
        &UpDown::default(),
        &Dfsssp::default(),
        &Nue::default(),
    ] {
        let error = engine.route(&view).unwrap_err().to_string();
        assert!(error.contains("finds no path from switch \"T-"), "{error}");
    }
}

#[test]
fn a_torus_goes_round_a_lost_cable() {
    let (mut subnet, view) = with_lids(torus(&[5, 4], 1).unwrap(), 0);
    let node = view.node(0);
    subnet.disconnect(PortRef { node, port: 1 }).unwrap();
    let view = RoutingView::new(&subnet);
    let routes = route(&Torus, &view);
    let report = check(&view, &routes);
    assert!(report.is_sound(), "{report:?}");
}

#[test]
fn identifiers_of_one_port_take_different_ways() {
    let (subnet, view) = with_lids(fat_tree(8, 3).unwrap(), 2);
    let routes = route(&MinHop, &view);
    assert!(check(&view, &routes).is_sound());
    let host = subnet
        .end_ports()
        .find(|(_, port)| port.lids().count() == 4)
        .unwrap();
    let far = view.switches() - 20;
    let ports: Vec<_> = host
        .1
        .lids()
        .map(|lid| routes.port(far, lid).unwrap())
        .collect();
    let mut different = ports.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), 4, "{ports:?}");
}

#[test]
fn small_and_empty_subnets() {
    let all: [Box<dyn RoutingEngine>; 5] = [
        Box::new(MinHop),
        Box::new(UpDown::default()),
        Box::new(FatTree::default()),
        Box::new(Dfsssp::default()),
        Box::new(Nue::default()),
    ];
    let (_, nothing) = with_lids(Subnet::new(), 0);
    let (mut one, _) = with_lids(fat_tree(2, 2).unwrap(), 0);
    // One switch alone.
    let view = RoutingView::new(&one);
    for port in 1..=2 {
        one.disconnect(PortRef {
            node: view.node(view.switches() - 1),
            port,
        });
    }
    for engine in &all {
        let routes = route(&**engine, &nothing);
        assert_eq!(routes.blocks(), 1);
        assert!(check(&nothing, &routes).is_sound());
        let pair = with_lids(fat_tree(2, 2).unwrap(), 0).1;
        assert!(
            check(&pair, &route(&**engine, &pair)).is_sound(),
            "{}",
            engine.name()
        );
    }
}

#[test]
fn the_check_finds_what_is_broken() {
    use softfabric_subnet::check::BrokenPath;
    let (mut subnet, view) = with_lids(torus(&[4], 1).unwrap(), 0);
    let routes = route(&MinHop, &view);
    // Routes of before a cable was lost.
    let node = view.node(0);
    subnet.disconnect(PortRef { node, port: 1 }).unwrap();
    let after = RoutingView::new(&subnet);
    let report = check(&after, &routes);
    assert!(report.broken_count > 0);
    for BrokenPath { end, .. } in &report.broken {
        let lost = [
            "it leaves T-0 by port 1, where something else is",
            "it leaves T-1 by port 2, where something else is",
        ];
        assert!(lost.contains(&end.as_str()), "{end}");
    }
}

#[test]
fn up_and_down_uses_all_roots() {
    let (_, view) = with_lids(fat_tree(8, 3).unwrap(), 0);
    let routes = route(&UpDown::default(), &view);
    let roots = (0..view.switches()).filter(|switch| view.name(*switch).starts_with("L3"));
    for root in roots {
        let met = view
            .targets()
            .iter()
            .filter(|target| target.is_adapter())
            .any(|target| {
                (0..view.switches())
                    .filter(|from| view.hosts(*from) > 0)
                    .any(|from| {
                        let walk = routes.walk(&view, from, target.lid);
                        walk.links
                            .iter()
                            .any(|link| view.links()[*link].to as usize == root)
                    })
            });
        assert!(met, "{} carries nothing", view.name(root));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_tree_with_lost_cables_stays_connected_and_free(seed in any::<u64>(), lost in 1_usize..24) {
        let (mut subnet, _) = with_lids(fat_tree(8, 3).unwrap(), 0);
        let mut cables: Vec<_> = subnet
            .cables()
            .filter(|(left, right)| [left, right].iter().all(|end| subnet.node(end.node).is_switch()))
            .collect();
        Random::from_seed(seed).shuffle(&mut cables);
        for (left, _) in &cables[..lost] {
            subnet.disconnect(*left);
        }
        let view = RoutingView::new(&subnet);
        match FatTree::default().route(&view) {
            Ok(routes) => {
                let report = check(&view, &routes);
                prop_assert!(report.is_sound(), "{:?} {:?}", report.broken.first(), report.credit_loop);
            }
            // Enough lost cables leave a switch without a way up and down.
            Err(error) => prop_assert!(lost > 8, "{error}"),
        }
        for engine in deadlock_free() {
            if let Ok(routes) = engine.route(&view) {
                prop_assert!(check(&view, &routes).is_sound(), "{}", engine.name());
            }
        }
    }

    #[test]
    fn random_graphs_are_routed_without_circles(seed in any::<u64>(), switches in 2_u32..40, degree in 2_u8..7, hosts in 1_u8..4) {
        let (_, view) = with_lids(random(switches, degree, hosts, seed).unwrap(), 0);
        let shortest = shortest(&view);
        for engine in deadlock_free() {
            let routes = match engine.route(&view) {
                Ok(routes) => routes,
                Err(error) => return Err(TestCaseError::fail(format!("{}: {error}", engine.name()))),
            };
            let report = check(&view, &routes);
            prop_assert!(report.is_sound(), "{}: {:?} {:?}", engine.name(), report.broken.first(), report.credit_loop);
            prop_assert_eq!(report.hops.iter().sum::<usize>(), shortest.iter().sum::<usize>());
        }
        prop_assert_eq!(check(&view, &MinHop.route(&view).unwrap()).hops, shortest);
    }

    #[test]
    fn equal_subnets_have_equal_routes(seed in any::<u64>()) {
        let (_, view) = with_lids(random(20, 4, 2, seed).unwrap(), 0);
        let (_, again) = with_lids(random(20, 4, 2, seed).unwrap(), 0);
        let mut engines = deadlock_free();
        engines.push(Box::new(MinHop));
        for engine in engines {
            prop_assert_eq!(engine.route(&view), engine.route(&again));
        }
    }
}
