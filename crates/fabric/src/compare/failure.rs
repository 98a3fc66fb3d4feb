//! What an event did to the payload that arrives: how much came before, for how long too little came, how much came afterwards.
//!
//! ```text
//!  rate ▲ ▄▄▄▄▄▄▄▄            ▄▄▄▄▄▄▄▄
//!       │ before   █▁▁▁▁▁▁▁▁▁█  after
//!       └─────────┴──────────┴────────► time
//!              event   outage
//! ```

use serde::Serialize;
use softfabric_units::{Span, Time};

use super::figures::nanoseconds;
use crate::export::Summary;
use crate::results::Results;

/// An event that is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventTime {
    /// Its place in the scenario file.
    pub(crate) place: usize,
    /// What it is.
    pub(crate) name: String,
    /// When it happens.
    pub(crate) at: Time,
}

/// What an event did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Aftermath {
    /// Its place among the events of the scenario file.
    pub event: usize,
    /// What it is: `Link down h0 – leaf0`.
    pub name: String,
    /// When, in nanoseconds.
    pub at_ns: f64,
    /// Payload that arrived in bit/s, from the first start to the event; `None` if the event came first.
    pub before_bps: Option<f64>,
    /// The longest stretch from the event on in which less than half of that arrived, in nanoseconds; zero if there is none.
    pub outage_ns: f64,
    /// Payload that arrived in it in bit/s; `None` without one.
    pub during_bps: Option<f64>,
    /// Payload that arrived from its end to the end of the last flow or job, in bit/s; `None` if nothing was left to send.
    pub after_bps: Option<f64>,
}

/// A window in which means are taken: so many of them make up the run.
const WINDOWS: usize = 250;

pub(super) fn all(
    results: &Results,
    summary: &Summary,
    over: Time,
    events: &[EventTime],
) -> Vec<Aftermath> {
    let Some(series) = &results.series.delivered else {
        return Vec::new();
    };
    let interval = series.interval();
    let rates = Rates {
        values: series.values(),
        interval: interval.as_picos().max(1),
        origin: results.series.origin.as_picos(),
    };
    let happened = events.iter().filter(|event| event.at < over);
    happened
        .map(|event| rates.aftermath(event, summary.begin, over))
        .collect()
}

/// A rate over time.
struct Rates<'a> {
    values: &'a [f64],
    interval: u64,
    origin: u64,
}

impl Rates<'_> {
    /// The mean from one time to another: whole intervals count by their share in it.
    fn mean(&self, from: u64, to: u64) -> Option<f64> {
        if to <= from {
            return None;
        }
        let first = (from.saturating_sub(self.origin) / self.interval) as usize;
        let last = (to.saturating_sub(self.origin)).div_ceil(self.interval) as usize;
        let mut sum = 0.0;
        for (index, value) in self.values.iter().enumerate().take(last).skip(first) {
            let begin = self.origin + self.interval * index as u64;
            let end = begin + self.interval;
            let overlap = end.min(to).saturating_sub(begin.max(from));
            sum += value * overlap as f64;
        }
        Some(sum / (to - from) as f64)
    }

    fn aftermath(&self, event: &EventTime, begin: Time, over: Time) -> Aftermath {
        let (at, over, begin) = (event.at.as_picos(), over.as_picos(), begin.as_picos());
        let before = self.mean(begin, at);
        let outage = before.and_then(|before| self.outage(at, over, begin, before));
        let from = outage.map_or(at, |(_, end)| end);
        Aftermath {
            event: event.place,
            name: event.name.clone(),
            at_ns: at as f64 / 1e3,
            before_bps: before,
            outage_ns: outage.map_or(0.0, |(from, to)| nanoseconds(Span::picos(to - from))),
            during_bps: outage.and_then(|(from, to)| self.mean(from, to)),
            after_bps: self.mean(from, over),
        }
    }

    /// The longest stretch from `at` on with less than half of `before`.
    fn outage(&self, at: u64, over: u64, begin: u64, before: f64) -> Option<(u64, u64)> {
        let window = ((over - begin) / WINDOWS as u64).max(self.interval);
        let mut longest: Option<(u64, u64)> = None;
        let mut open: Option<u64> = None;
        let mut close = |from: u64, to: u64| {
            if longest.is_none_or(|(a, b)| to - from > b - a) {
                longest = Some((from, to));
            }
        };
        let mut from = at;
        while from + window <= over {
            let is_low = self.mean(from, from + window)? < before / 2.0;
            match (is_low, open) {
                (true, None) => open = Some(from),
                (false, Some(begun)) => {
                    close(begun, from);
                    open = None;
                }
                _ => {}
            }
            from += window;
        }
        if let Some(begun) = open {
            close(begun, from);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_found_where_it_is() {
        // A hundred intervals at 10, from 40 to 60 nothing, then 5.
        let values: Vec<f64> = (0..100)
            .map(|index| match index {
                0..40 => 10.0,
                40..60 => 0.0,
                _ => 5.5,
            })
            .collect();
        let rates = Rates {
            values: &values,
            interval: 1_000,
            origin: 0,
        };
        let event = EventTime {
            place: 0,
            name: "link_down".to_owned(),
            at: Time::from_picos(40_000),
        };
        let found = rates.aftermath(&event, Time::ZERO, Time::from_picos(100_000));
        assert_eq!(found.before_bps, Some(10.0));
        assert!((found.outage_ns - 20.0).abs() <= 1.0, "{found:?}");
        assert_eq!(found.during_bps, Some(0.0));
        assert!((found.after_bps.unwrap() - 5.5).abs() < 0.2, "{found:?}");
    }

    #[test]
    fn no_outage_where_half_still_comes() {
        let values = [10.0; 50].into_iter().chain([6.0; 50]).collect::<Vec<_>>();
        let rates = Rates {
            values: &values,
            interval: 1_000,
            origin: 0,
        };
        let event = EventTime {
            place: 0,
            name: "link_down".to_owned(),
            at: Time::from_picos(50_000),
        };
        let found = rates.aftermath(&event, Time::ZERO, Time::from_picos(100_000));
        assert_eq!((found.outage_ns, found.during_bps), (0.0, None));
        assert_eq!(found.after_bps, Some(6.0));
    }
}
