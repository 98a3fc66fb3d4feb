//! Real time, as state machines without a clock count it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use softfabric_units::{Span, Time};

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

    /// The same clock, so much earlier: as if that time had not passed.
    pub(crate) fn set_back(self, by: Span) -> Self {
        Self(self.0 + Duration::from_nanos(by.as_nanos()))
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

/// A time of day in UTC, to the second, as RFC 3339 writes it: `2026-11-30T09:12:44Z`.
pub(crate) fn date(unix_nanos: u64) -> String {
    let seconds = unix_nanos / 1_000_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that a leap day is the last of its year; four hundred of them are an era.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_796_083_199, "2026-11-30T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(seconds * 1_000_000_000), text);
        }
    }
}
