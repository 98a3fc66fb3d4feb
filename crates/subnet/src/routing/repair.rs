//! Repairs: what of the routes before still holds after cables were lost, so that only the rest is routed anew.
//!
//! An entry is kept where its cable is there and the engine would still allow it: then the repaired tables are as good as any
//! that the engine makes, and the switches whose tables stay need not be written.

use super::routes::Routes;
use super::view::RoutingView;

/// Routes of the subnet as it was before.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    /// As it was.
    pub view: &'a RoutingView,
    /// Its routes.
    pub routes: &'a Routes,
}

impl<'a> Before<'a> {
    /// Whether `view` is this view with nothing added: the same cables but those that were lost, and the same identifiers
    /// at the same places but those that are gone.
    pub fn covers(&self, view: &RoutingView) -> bool {
        let places: Vec<Option<usize>> = (0..view.switches())
            .map(|switch| self.view.switch_of(view.node(switch)))
            .collect();
        let same_links = view.links().iter().all(|link| {
            let (Some(from), Some(to)) = (places[link.from as usize], places[link.to as usize])
            else {
                return false;
            };
            self.view.link_by_port(from, link.port).is_some_and(|old| {
                let old = self.view.links()[old];
                old.to as usize == to && old.peer_port == link.peer_port
            })
        });
        let mut old = self.view.targets().iter();
        let mut same_target = |target: &super::Target| {
            old.by_ref()
                .find(|old| old.lid >= target.lid)
                .is_some_and(|old| {
                    places[target.switch as usize] == Some(old.switch as usize)
                        && (old.lid, old.port, old.copy, old.end)
                            == (target.lid, target.port, target.copy, target.end)
                })
        };
        same_links
            && places.iter().all(Option::is_some)
            && view.targets().iter().all(&mut same_target)
    }

    /// The switches of `view` that have lost links, in order; `None` where a whole switch is gone.
    pub(super) fn losers(&self, view: &RoutingView) -> Option<Vec<usize>> {
        if view.switches() != self.view.switches() {
            return None;
        }
        let links = |view: &RoutingView, switch: usize| view.links_of(switch).len();
        let lost = |switch: &usize| links(view, *switch) < links(self.view, *switch);
        Some((0..view.switches()).filter(lost).collect())
    }

    /// The table that switch `switch` of `view` had.
    pub(super) fn table(&self, view: &RoutingView, switch: usize) -> Option<&'a [u8]> {
        let place = self.view.switch_of(view.node(switch))?;
        Some(self.routes.table(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::fat_tree;
    use crate::routing::{MinHop, RoutingEngine};

    #[test]
    fn a_view_covers_what_has_less() {
        let mut subnet = fat_tree(4, 3).unwrap();
        subnet.assign_lids(0).unwrap();
        let view = RoutingView::new(&subnet);
        let routes = MinHop.route(&view).unwrap();
        let before = Before {
            view: &view,
            routes: &routes,
        };
        assert!(before.covers(&view));
        let (end, peer) = subnet.cables().last().unwrap();
        let mut less = subnet.clone();
        less.disconnect(end);
        let less_view = RoutingView::new(&less);
        assert!(before.covers(&less_view));
        let after = Before {
            view: &less_view,
            ..before
        };
        assert!(!after.covers(&view));
        // The same number of cables, and one of them elsewhere.
        let (other, other_peer) = less.cables().last().unwrap();
        less.disconnect(other);
        less.connect(end, other_peer).unwrap();
        less.connect(other, peer).unwrap();
        assert!(!before.covers(&RoutingView::new(&less)));
        let mut moved = subnet.clone();
        let host = moved.end_ports().last().unwrap().0;
        moved.port_mut(host).lid.0 += 7;
        assert!(!before.covers(&RoutingView::new(&moved)));
    }
}
