//! Alternatives: all ports that an engine's rule would let a switch take, for switches that choose as packets come.

use super::view::RoutingView;

/// By switch and destination's switch: the ports on the engine's shortest ways.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alternatives {
    switches: usize,
    /// A row for each switch; a cell names a range of `ports`.
    cells: Vec<(u32, u8)>,
    ports: Vec<u8>,
}

/// So many different lists of a switch are looked through before one is written again.
const KNOWN: usize = 64;

impl Alternatives {
    /// Collects what `candidates` adds: the places, among the links of the first switch, of those that are good towards the
    /// second.
    pub(super) fn collect(
        view: &RoutingView,
        candidates: impl Fn(usize, usize, &mut Vec<u8>),
    ) -> Self {
        let switches = view.switches();
        let mut found = Self {
            switches,
            cells: Vec::with_capacity(switches * switches),
            ports: Vec::new(),
        };
        let mut places = Vec::new();
        for from in 0..switches {
            let links = view.out(from);
            // Most destinations share a list with others.
            let mut known: Vec<(u32, u8)> = Vec::new();
            for to in 0..switches {
                places.clear();
                if from != to {
                    candidates(from, to, &mut places);
                }
                for place in &mut places {
                    *place = links[usize::from(*place)].port;
                }
                let same = known.iter().find(|cell| found.list(**cell) == places);
                let cell = same.copied().unwrap_or_else(|| {
                    let cell = (found.ports.len() as u32, places.len() as u8);
                    found.ports.extend_from_slice(&places);
                    if known.len() < KNOWN {
                        known.push(cell);
                    }
                    cell
                });
                found.cells.push(cell);
            }
        }
        found
    }

    fn list(&self, (start, count): (u32, u8)) -> &[u8] {
        &self.ports[start as usize..][..usize::from(count)]
    }

    /// The ports by which `from` may send on what is for `to`, in order; none where they are the same.
    pub fn ports(&self, from: usize, to: usize) -> &[u8] {
        self.list(self.cells[from * self.switches + to])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{FatTree, MinHop, Nue, RoutingEngine, RoutingError, UpDown};
    use super::*;
    use crate::check::{Beside, credit_loop};
    use crate::generate::{fat_tree, random, torus};
    use crate::subnet::Subnet;

    fn view(mut subnet: Subnet) -> RoutingView {
        subnet.assign_lids(0).unwrap();
        RoutingView::new(&subnet)
    }

    fn union_has_loop(engine: &dyn RoutingEngine, view: &RoutingView) -> bool {
        let alternatives = engine.alternatives(view).unwrap();
        let beside = Beside {
            alternatives: Some(&alternatives),
            ..Beside::default()
        };
        credit_loop(view, &engine.route(view).unwrap(), beside).is_some()
    }

    /// In a tree all ways up are equal, and their union locks nothing up; in a torus it does, unless it goes up and down.
    #[test]
    fn the_union_is_checked() {
        let tree = view(fat_tree(8, 2).unwrap());
        let leaf = (0..tree.switches()).find(|switch| tree.hosts(*switch) > 0);
        let leaf = leaf.unwrap();
        let other = (0..tree.switches()).rfind(|switch| tree.hosts(*switch) > 0);
        let alternatives = FatTree::default().alternatives(&tree).unwrap();
        assert_eq!(alternatives.ports(leaf, other.unwrap()).len(), 4);
        assert_eq!(alternatives.ports(leaf, leaf), []);
        for engine in [
            &FatTree::default() as &dyn RoutingEngine,
            &MinHop,
            &UpDown::default(),
        ] {
            assert!(!union_has_loop(engine, &tree), "{}", engine.name());
        }
        let torus = view(torus(&[4, 4], 1).unwrap());
        assert!(union_has_loop(&MinHop, &torus));
        assert!(!union_has_loop(&UpDown::default(), &torus));
        let refused = Nue { lanes: 1 }.alternatives(&torus).unwrap_err();
        assert_eq!(refused, RoutingError::OneWay { engine: "nue" });
    }

    proptest! {
        /// What a table says is one of the alternatives, and each of those is one link nearer.
        #[test]
        fn tables_choose_among_them(seed in any::<u64>(), switches in 2_u32..30) {
            let view = view(random(switches, 4, 2, seed).unwrap());
            for engine in [&MinHop as &dyn RoutingEngine, &UpDown::default()] {
                let alternatives = engine.alternatives(&view).unwrap();
                let routes = engine.route(&view).unwrap();
                for target in view.targets() {
                    let to = target.switch as usize;
                    let length = |from| routes.walk(&view, from, target.lid).links.len();
                    for from in (0..view.switches()).filter(|from| *from != to) {
                        let ports = alternatives.ports(from, to);
                        prop_assert!(ports.contains(&routes.port(from, target.lid).unwrap()));
                        for port in ports {
                            let link = view.link_by_port(from, *port).unwrap();
                            let next = view.links()[link].to as usize;
                            prop_assert_eq!(length(next) + 1, length(from));
                        }
                    }
                }
            }
        }
    }
}
