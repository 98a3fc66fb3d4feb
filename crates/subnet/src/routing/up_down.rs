//! Up towards roots, then down: no packet turns from down to up, so no lane can lock up.

use softfabric_units::Guid;

use super::balance::{self, Candidates};
use super::ranks::{Ranks, UpDownDistances};
use super::repair::Before;
use super::routes::Routes;
use super::view::RoutingView;
use super::{RoutingEngine, RoutingError};

/// Up, then down.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct UpDown {
    /// The roots. None: the switches that are farthest from hosts, or the centre where all are equally far.
    pub roots: Vec<Guid>,
}

impl RoutingEngine for UpDown {
    fn name(&self) -> &'static str {
        "updn"
    }

    fn route(&self, view: &RoutingView) -> Result<Routes, RoutingError> {
        self.routed(view, None)
    }

    fn repair(&self, view: &RoutingView, before: Before<'_>) -> Result<Routes, RoutingError> {
        self.routed(view, Some(before))
    }
}

impl UpDown {
    fn routed(
        &self,
        view: &RoutingView,
        before: Option<Before<'_>>,
    ) -> Result<Routes, RoutingError> {
        let mut routes = Routes::empty(self.name(), view);
        let rule = Legal::new(view, &self.roots)?;
        rule.distances.refuse_gaps(self.name(), view, rule.hint())?;
        balance::fill(&mut routes, view, &rule, before)?;
        Ok(routes)
    }
}

struct Legal<'a> {
    view: &'a RoutingView,
    ranks: Ranks,
    distances: UpDownDistances,
}

impl<'a> Legal<'a> {
    fn new(view: &'a RoutingView, roots: &[Guid]) -> Result<Self, RoutingError> {
        let under = |roots: &[usize]| {
            let ranks = Ranks::from_roots(view, roots);
            let distances = UpDownDistances::new(view, &ranks);
            Self {
                view,
                ranks,
                distances,
            }
        };
        if !roots.is_empty() {
            return Ok(under(&Ranks::roots_of(view, roots)?));
        }
        let natural = Ranks::natural_roots(view);
        if !natural.is_empty() {
            let rule = under(&natural);
            if rule.distances.complete(view) {
                return Ok(rule);
            }
        }
        // One root reaches everything that has cables.
        Ok(under(Ranks::centre(view).as_slice()))
    }
}

impl Candidates for Legal<'_> {
    fn candidates(&self, from: usize, to: usize, links: &mut Vec<u8>) {
        self.distances
            .candidates(self.view, &self.ranks, from, to, links);
    }

    fn hint(&self) -> &'static str {
        "no way goes up to a common root and down again; name other roots"
    }
}
