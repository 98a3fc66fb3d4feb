//! Up towards roots, then down: no packet turns from down to up, so no lane can lock up.

use softfabric_units::Guid;

use super::alternatives::Alternatives;
use super::balance::{self, Candidates};
use super::close_by::{CloseBy, Measured};
use super::ranks::{Ranks, UpDownDistances};
use super::repair::Before;
use super::routes::Routes;
use super::view::{RoutingView, Target};
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

    fn alternatives(&self, view: &RoutingView) -> Result<Alternatives, RoutingError> {
        let (ranks, distances) = ways(view, &self.roots)?;
        Ok(distances.alternatives(view, &ranks))
    }
}

/// What to try where there is no route.
const HINT: &str = "no way goes up to a common root and down again; name other roots";

impl UpDown {
    fn routed(
        &self,
        view: &RoutingView,
        before: Option<Before<'_>>,
    ) -> Result<Routes, RoutingError> {
        let mut routes = Routes::empty(self.name(), view);
        if let Some(before) = before
            && let Some(rule) = self.close_by(view, before)?
        {
            let trusts = |switch: usize, target: &Target| rule.distances.trusts(switch, target);
            if balance::refill(&mut routes, view, &rule, before, trusts).is_ok() {
                return Ok(routes);
            }
            routes = Routes::empty(self.name(), view);
        }
        let (ranks, distances) = ways(view, &self.roots)?;
        distances.refuse_gaps(self.name(), view, HINT)?;
        let rule = Legal {
            view,
            ranks,
            distances: Measured::All(distances),
        };
        balance::fill(&mut routes, view, &rule, before)?;
        Ok(routes)
    }

    /// What lost cables can have changed; `None` where ranks have changed, or too much.
    fn close_by<'a>(
        &self,
        view: &'a RoutingView,
        before: Before<'a>,
    ) -> Result<Option<Legal<'a>>, RoutingError> {
        let roots = |view: &RoutingView| match &self.roots[..] {
            [] => Ok(Ranks::natural_roots(view)),
            roots => Ranks::roots_of(view, roots),
        };
        let (now, then) = (roots(view)?, roots(before.view)?);
        if now.is_empty() {
            return Ok(None);
        }
        let ranks = Ranks::from_roots(view, &now);
        if ranks != Ranks::from_roots(before.view, &then) {
            return Ok(None);
        }
        // All hosts meet under these ranks, so they did before, and these were the ranks.
        let close = CloseBy::new(view, &ranks, before);
        Ok(close.map(|close| Legal {
            view,
            ranks,
            distances: Measured::Close(close),
        }))
    }
}

/// Ranks below roots, and the ways that they allow.
fn ways(view: &RoutingView, roots: &[Guid]) -> Result<(Ranks, UpDownDistances), RoutingError> {
    let under = |roots: &[usize]| {
        let ranks = Ranks::from_roots(view, roots);
        let distances = UpDownDistances::new(view, &ranks);
        (ranks, distances)
    };
    if !roots.is_empty() {
        return Ok(under(&Ranks::roots_of(view, roots)?));
    }
    let natural = Ranks::natural_roots(view);
    if !natural.is_empty() {
        let (ranks, distances) = under(&natural);
        if distances.complete(view) {
            return Ok((ranks, distances));
        }
    }
    // One root reaches everything that has cables.
    Ok(under(Ranks::centre(view).as_slice()))
}

struct Legal<'a> {
    view: &'a RoutingView,
    ranks: Ranks,
    distances: Measured<'a>,
}

impl Candidates for Legal<'_> {
    fn candidates(&self, from: usize, to: usize, links: &mut Vec<u8>) {
        self.distances
            .candidates(self.view, &self.ranks, from, to, links);
    }

    fn hint(&self) -> &'static str {
        HINT
    }
}
