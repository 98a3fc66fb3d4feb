//! Repairs of routes: after lost cables they are as good as new ones, and what could stay has stayed.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use softfabric_subnet::check::check;
use softfabric_subnet::generate::{fat_tree, random, torus};
use softfabric_subnet::routing::{
    Before, Dfsssp, FatTree, MinHop, Nue, Routes, RoutingEngine, RoutingView, Torus, UpDown,
};
use softfabric_subnet::{PortRef, Subnet};
use softfabric_units::Random;

/// Cables between switches.
fn trunks(subnet: &Subnet) -> Vec<PortRef> {
    let is_switch = |port: PortRef| subnet.node(port.node).is_switch();
    let cables = subnet.cables();
    cables
        .filter(|(left, right)| is_switch(*left) && is_switch(*right))
        .map(|(left, _)| left)
        .collect()
}

/// Entries that differ, by whether the old one's cable is still there.
fn changes(old: (&RoutingView, &Routes), new: (&RoutingView, &Routes)) -> (usize, usize) {
    let (mut needless, mut needed) = (0, 0);
    for switch in 0..new.0.switches() {
        for target in new.0.targets() {
            let (was, is) = (
                old.1.port(switch, target.lid).unwrap(),
                new.1.port(switch, target.lid).unwrap(),
            );
            let gone = new.0.link_by_port(switch, was).is_none();
            match (was == is, gone && target.switch as usize != switch) {
                (true, _) => {}
                (false, true) => needed += 1,
                (false, false) => needless += 1,
            }
        }
    }
    (needless, needed)
}

#[test]
fn repaired_routes_are_as_good_as_new_ones() {
    let mut random_numbers = Random::from_seed(5);
    let mut repaired = 0;
    for (name, mut subnet) in [
        ("tree", fat_tree(8, 3).unwrap()),
        ("small tree", fat_tree(6, 2).unwrap()),
        ("torus", torus(&[4, 5], 2).unwrap()),
        ("random", random(24, 5, 2, 3).unwrap()),
    ] {
        subnet.assign_lids(u8::from(name == "small tree")).unwrap();
        let engines: [&dyn RoutingEngine; 6] = [
            &MinHop,
            &UpDown::default(),
            &FatTree::default(),
            &Dfsssp { lanes: 15 },
            &Torus,
            &Nue { lanes: 2 },
        ];
        for engine in engines {
            let mut subnet = subnet.clone();
            let mut view = RoutingView::new(&subnet);
            let Ok(mut routes) = engine.route(&view) else {
                continue;
            };
            for _ in 0..8 {
                let all = trunks(&subnet);
                let lost = all[random_numbers.below(all.len() as u64) as usize];
                subnet.disconnect(lost);
                let less = RoutingView::new(&subnet);
                let before = Before {
                    view: &view,
                    routes: &routes,
                };
                assert!(before.covers(&less));
                let (again, fresh) = (engine.repair(&less, before), engine.route(&less));
                let context = format!("{} on {name}", engine.name());
                let (Ok(again), Ok(fresh)) = (again.clone(), fresh.clone()) else {
                    assert_eq!(again.err(), fresh.err(), "{context}");
                    break;
                };
                let (report, wanted) = (check(&less, &again), check(&less, &fresh));
                assert!(report.broken.is_empty(), "{context}: {:?}", report.broken);
                assert_eq!(report.hops, wanted.hops, "{context}");
                if engine.name() != "minhop" {
                    assert_eq!(report.credit_loop, None, "{context}");
                }
                repaired += 1;
                (view, routes) = (less, again);
            }
        }
    }
    assert!(repaired > 100, "{repaired}");
}

#[test]
fn a_repair_changes_only_what_it_must() {
    let mut subnet = fat_tree(8, 3).unwrap();
    subnet.assign_lids(0).unwrap();
    let view = RoutingView::new(&subnet);
    let engines: [&dyn RoutingEngine; 3] = [&MinHop, &UpDown::default(), &FatTree::default()];
    for engine in engines {
        let routes = engine.route(&view).unwrap();
        let before = Before {
            view: &view,
            routes: &routes,
        };
        for lost in trunks(&subnet).into_iter().step_by(17) {
            let mut less = subnet.clone();
            less.disconnect(lost);
            let less = RoutingView::new(&less);
            let again = engine.repair(&less, before).unwrap();
            let (needless, needed) = changes((&view, &routes), (&less, &again));
            assert!(needed > 0, "{}", engine.name());
            // Elsewhere only what led towards the lost cable: to one leaf, its parent and roots at most.
            assert!(
                needless < 64 * 8,
                "{}: {needless} of {} entries",
                engine.name(),
                view.switches() * view.targets().len()
            );
        }
    }
}
