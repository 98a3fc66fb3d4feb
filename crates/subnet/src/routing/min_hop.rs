//! Shortest paths, balanced at each switch. Fast, and not free of deadlock where the graph has cycles.

use super::balance::{self, Candidates};
use super::distance::{Distances, FAR};
use super::repair::Before;
use super::routes::Routes;
use super::view::RoutingView;
use super::{RoutingEngine, RoutingError};

/// Shortest paths.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MinHop;

impl RoutingEngine for MinHop {
    fn name(&self) -> &'static str {
        "minhop"
    }

    fn route(&self, view: &RoutingView) -> Result<Routes, RoutingError> {
        routed(view, None)
    }

    fn repair(&self, view: &RoutingView, before: Before<'_>) -> Result<Routes, RoutingError> {
        routed(view, Some(before))
    }
}

fn routed(view: &RoutingView, before: Option<Before<'_>>) -> Result<Routes, RoutingError> {
    let mut routes = Routes::empty(MinHop.name(), view);
    let rule = Shortest {
        view,
        distances: Distances::new(view),
    };
    balance::fill(&mut routes, view, &rule, before)?;
    Ok(routes)
}

struct Shortest<'a> {
    view: &'a RoutingView,
    distances: Distances,
}

impl Candidates for Shortest<'_> {
    fn candidates(&self, from: usize, to: usize, links: &mut Vec<u8>) {
        let row = self.distances.to(to);
        let here = row[from];
        if here == FAR {
            return;
        }
        for (place, link) in (0..).zip(self.view.out(from)) {
            if row[link.to as usize] + 1 == here {
                links.push(place);
            }
        }
    }

    fn hint(&self) -> &'static str {
        "no cables lead there"
    }
}
