//! Times of the PFC watchdog.

use crate::finding::{Finding, Rule};
use crate::sonic::Switch;

/// What `pfcwd` of sonic-utilities takes, in milliseconds.
const DETECTION: std::ops::RangeInclusive<i64> = 100..=5_000;
const RESTORATION: std::ops::RangeInclusive<i64> = 100..=60_000;

pub(crate) fn check(switch: &Switch, findings: &mut Vec<Finding>) {
    let global = switch.entry("PFC_WD", "GLOBAL");
    let poll = global.and_then(|entry| entry.number("POLL_INTERVAL", findings));
    let mut watched: Vec<&str> = Vec::new();
    for entry in switch.table("PFC_WD") {
        if entry.name == "GLOBAL" {
            continue;
        }
        watched.push(entry.name);
        for (field, range) in [
            ("detection_time", DETECTION),
            ("restoration_time", RESTORATION),
        ] {
            let Some(time) = entry.number(field, findings) else {
                continue;
            };
            if !range.contains(&time) {
                findings.push(
                    entry
                        .finding(Rule::WatchdogTimes, field)
                        .found(format!("{time} ms"))
                        .expected(
                            format!("{} to {} ms", range.start(), range.end()),
                            "the range of sonic-utilities' pfcwd",
                        )
                        .advice("set it with `pfcwd start`"),
                );
            } else if let Some(poll) = poll.filter(|&poll| time < poll) {
                findings.push(
                    entry
                        .finding(Rule::WatchdogTimes, field)
                        .found(format!("{time} ms, and the watchdog looks every {poll} ms"))
                        .expected(
                            format!("{poll} ms or more, or a shorter POLL_INTERVAL"),
                            "what is shorter than one look cannot be told",
                        )
                        .advice("`pfcwd interval` sets how often it looks"),
                );
            }
        }
    }
    // A file without the table may be one of several; one with it has ports that it forgot.
    let Some(global) = global.or_else(|| switch.table("PFC_WD").first().copied()) else {
        return;
    };
    let forgotten: Vec<&str> = switch
        .table("PORT_QOS_MAP")
        .into_iter()
        .filter(|port| port.text("pfc_enable").is_some_and(|list| !list.is_empty()))
        .map(|port| port.name)
        .filter(|port| !watched.contains(port))
        .collect();
    if !forgotten.is_empty() {
        findings.push(
            global
                .finding(Rule::NoWatchdog, "ports")
                .found(format!("no entry for {}", forgotten.join(", ")))
                .expected(
                    "an entry for each port with PFC",
                    "where nobody watches, one broken NIC can hold the whole fabric",
                )
                .advice("`pfcwd start --action drop ports PORTS --detection-time 200 --restoration-time 200`"),
        );
    }
}
