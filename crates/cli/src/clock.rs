//! Real time, as state machines without a clock count it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use softfabric_units::Time;

/// Time since a program began its work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "who serves programs in real time lives in real time"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(&self) -> Time {
        let elapsed = u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Time::from_picos(elapsed.saturating_mul(1_000))
    }
}

/// From `from` to `to`; zero where that is earlier.
pub(crate) const fn between(from: Time, to: Time) -> Duration {
    Duration::from_nanos(to.as_picos().saturating_sub(from.as_picos()) / 1_000)
}

/// The time of day, in nanoseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "recordings of several hosts are aligned by the time of day, and Prometheus is asked by it"
)]
pub(crate) fn unix_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    u64::try_from(nanos).unwrap_or(0)
}
