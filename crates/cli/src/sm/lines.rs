//! The lines that `softfabric sm` prints: one each time the subnet is up.

use std::time::Duration;

use softfabric_subnet::manager::{Cause, Summary};

use crate::format;
use crate::terminal::{BOLD, FAINT, GOOD};

/// How long the parts of a sweep took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// Until routing began; of changes in groups, nothing is discovered or routed.
    pub(super) discovery: Option<Duration>,
    pub(super) routing: Option<Duration>,
    pub(super) programming: Duration,
}

/// Column heads.
pub(super) fn heads() -> String {
    format!(
        "{FAINT}{:<7} {:>9} {:>7} {:>7} {:>9} {:>9}  {:>10} {:>10} {:>11} {:>10}{FAINT:#}\n",
        "subnet",
        "switches",
        "ports",
        "LIDs",
        "requests",
        "writes",
        "discovery",
        "routing",
        "programming",
        "all"
    )
}

/// A line.
pub(super) fn line(summary: &Summary, times: &Times) -> String {
    let what = match summary.cause {
        Cause::Start => "up",
        Cause::Change => "repair",
        Cause::Groups => "groups",
    };
    let number = |value: u64| format::grouped(value);
    let time = |time: Option<Duration>| time.map_or_else(|| "–".to_owned(), milliseconds);
    let all =
        times.discovery.unwrap_or_default() + times.routing.unwrap_or_default() + times.programming;
    format!(
        "{GOOD}{what:<7}{GOOD:#} {:>9} {:>7} {:>7} {:>9} {:>9}  {:>10} {:>10} {:>11} {BOLD}{:>10}{BOLD:#}\n",
        number(summary.switches as u64),
        number(summary.adapter_ports as u64),
        number(summary.lids as u64),
        number(summary.requests),
        number(summary.writes),
        time(times.discovery),
        time(times.routing),
        milliseconds(times.programming),
        milliseconds(all),
    )
}

fn milliseconds(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1e3;
    if milliseconds < 10.0 {
        format!("{milliseconds:.2} ms")
    } else if milliseconds < 10_000.0 {
        format!("{milliseconds:.0} ms")
    } else {
        format!("{:.1} s", milliseconds / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_under_their_heads() {
        let summary = Summary {
            switches: 1_620,
            adapter_ports: 11_664,
            lids: 13_284,
            requests: 612_345,
            writes: 400_000,
            ..Summary::default()
        };
        let times = Times {
            discovery: Some(Duration::from_millis(1_500)),
            routing: Some(Duration::from_micros(3_217)),
            programming: Duration::from_secs(12),
        };
        let plain = |text: String| anstream::adapter::strip_str(&text).to_string();
        let (heads, line) = (plain(heads()), plain(line(&summary, &times)));
        assert_eq!(heads.chars().count(), line.chars().count(), "{heads}{line}");
        assert!(
            line.contains("1500 ms    3.22 ms      12.0 s     13.5 s"),
            "{line}"
        );
        assert!(line.starts_with("up "), "{line}");
    }
}
