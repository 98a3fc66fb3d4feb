//! The real clock behind the transport's [`Time`].

use std::time::Instant;

use softfabric_units::Time;

/// Counts from when it was made. A `u64` of picoseconds lasts 213 days; a process that lives longer starts its devices
/// anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    zero: Instant,
}

impl Clock {
    #[allow(
        clippy::disallowed_methods,
        reason = "the adapter is the driver that reads the real clock"
    )]
    pub(crate) fn start() -> Self {
        Self {
            zero: Instant::now(),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        let elapsed = self.zero.elapsed();
        Time::from_picos(
            elapsed.as_secs() * 1_000_000_000_000 + u64::from(elapsed.subsec_nanos()) * 1000,
        )
    }
}
