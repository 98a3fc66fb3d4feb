//! How long the manager's routing engine works.

use std::sync::{Arc, Mutex, PoisonError};

use softfabric_subnet::routing::{Before, Routes, RoutingEngine, RoutingError, RoutingView};
use softfabric_units::Time;

use crate::clock::Clock;

type Shared = Arc<Mutex<Option<(Time, Time)>>>;

/// When the engine last began and ended.
pub(super) struct Stopwatch(Shared);

impl Stopwatch {
    pub(super) fn around(
        engine: Box<dyn RoutingEngine + Send>,
        clock: &Clock,
    ) -> (Box<dyn RoutingEngine + Send>, Self) {
        let shared = Shared::default();
        let timed = Timed {
            engine,
            clock: *clock,
            shared: Arc::clone(&shared),
        };
        (Box::new(timed), Self(shared))
    }

    pub(super) fn last(&self) -> Option<(Time, Time)> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An engine, and who watches it.
struct Timed {
    engine: Box<dyn RoutingEngine + Send>,
    clock: Clock,
    shared: Shared,
}

impl RoutingEngine for Timed {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn route(&self, view: &RoutingView) -> Result<Routes, RoutingError> {
        self.time(|| self.engine.route(view))
    }

    fn repair(&self, view: &RoutingView, before: Before<'_>) -> Result<Routes, RoutingError> {
        self.time(|| self.engine.repair(view, before))
    }
}

impl Timed {
    fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let begin = self.clock.now();
        let result = work();
        let times = Some((begin, self.clock.now()));
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = times;
        result
    }
}
