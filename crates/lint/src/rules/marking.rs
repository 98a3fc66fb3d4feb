//! ECN and RED of lossless queues against the point at which PFC pauses.

use softfabric_units::Bytes;

use crate::finding::{Finding, Rule};
use crate::sonic::{Entry, Switch};

/// Nearer than so many of the largest frames, thresholds of a queue cannot be told apart.
const FRAMES_APART: u64 = 4;

pub(crate) fn check(switch: &Switch, findings: &mut Vec<Finding>) {
    if !switch.has("QUEUE") {
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    let mut bare: Vec<u8> = Vec::new();
    for (port, number, queue) in switch.of_ports("QUEUE") {
        let lossless = switch
            .priorities(port, "pfc_enable", findings)
            .unwrap_or_default();
        let stops = |&priority: &u8| {
            let table = "MAP_PFC_PRIORITY_TO_QUEUE";
            switch
                .mapped(port, "pfc_to_queue_map", table, priority)
                .unwrap_or(priority)
                == number
        };
        if !lossless.iter().any(stops) {
            continue;
        }
        let Some(name) = queue.text("wred_profile") else {
            if !bare.contains(&number) {
                bare.push(number);
                findings.push(
                    queue
                        .finding(Rule::LosslessWithoutEcn, "wred_profile")
                        .found("missing")
                        .expected(
                            "a WRED_PROFILE with ecn_all",
                            "without one, nothing is marked in this queue, and only pauses slow senders down",
                        )
                        .advice("add a profile and bind it: ecnconfig and `config ecn` change profiles, and cannot make one"),
                );
            }
            continue;
        };
        if seen.contains(&name) {
            continue;
        }
        let Some(profile) = switch.named(queue, "wred_profile", "WRED_PROFILE", findings) else {
            continue;
        };
        seen.push(name);
        of_profile(switch, port, number, profile, findings);
    }
}

fn of_profile(
    switch: &Switch,
    port: &str,
    queue: u8,
    profile: Entry<'_>,
    findings: &mut Vec<Finding>,
) {
    let marks = !matches!(profile.text("ecn"), None | Some("ecn_none"));
    let red = profile.text("wred_green_enable") == Some("true");
    if !marks {
        let (rule, found) = match red {
            true => (
                Rule::RedOnLossless,
                "ecn_none, with wred_green_enable true: RED drops",
            ),
            false => (Rule::LosslessWithoutEcn, "ecn_none: nothing is marked"),
        };
        findings.push(
            profile
                .finding(rule, "ecn")
                .found(found)
                .expected(
                    "ecn_all",
                    format!("queue {queue} of {port} is lossless: it must mark, and never drop, below the point at which PFC pauses"),
                )
                .advice("ecn: ecn_all"),
        );
        return;
    }
    let (Some(kmin), Some(kmax)) = (
        profile.bytes("green_min_threshold", findings),
        profile.bytes("green_max_threshold", findings),
    ) else {
        return;
    };
    let mtu = switch.mtu(port).map_or(Bytes::new(9_100), |(mtu, _)| mtu);
    let apart = mtu.as_u64() * FRAMES_APART;
    if kmax < kmin || kmax.as_u64() - kmin.as_u64() < apart {
        findings.push(
            profile
                .finding(Rule::EcnTooNarrow, "green_max_threshold")
                .found(format!("{} B, with green_min_threshold {} B", kmax.as_u64(), kmin.as_u64()))
                .expected(
                    format!("{} B or more", kmin.as_u64() + apart),
                    format!(
                        "{FRAMES_APART} frames of {} B between them: queues grow by whole frames in cells of some 200 B, and marking must rise \
                         between the two, not jump",
                        mtu.as_u64()
                    ),
                )
                .advice("thresholds farther apart"),
        );
    }
    let Some((xoff, how)) = queue_at_xoff(switch, port, queue, findings) else {
        return;
    };
    if kmin >= xoff {
        findings.push(
            profile
                .finding(Rule::EcnAboveXoff, "green_min_threshold")
                .found(format!("{} B", kmin.as_u64()))
                .expected(format!("less than {} B", xoff.as_u64()), how)
                .advice("mark earlier: ECN is to slow senders down before PFC stops them"),
        );
    }
}

/// How long a queue is when two senders' groups reach the point at which they pause, both with half of it.
fn queue_at_xoff(
    switch: &Switch,
    port: &str,
    queue: u8,
    findings: &mut Vec<Finding>,
) -> Option<(Bytes, String)> {
    let groups = switch.of_ports("BUFFER_PG").into_iter();
    let mut groups = groups.filter(|&(name, number, _)| name == port && number == queue);
    let (_, _, group) = groups.next()?;
    let profile = switch.entry("BUFFER_PROFILE", group.text("profile")?)?;
    profile.text("xoff")?;
    if let Some(fixed) = profile.bytes("static_th", findings) {
        let both = Bytes::new(fixed.as_u64() * 2);
        let how = format!(
            "two groups pause at {} B each (static_th of {}), so this is the queue when they do",
            fixed.as_u64(),
            profile.name
        );
        return Some((both, how));
    }
    let exponent = profile.number("dynamic_th", findings)?;
    let pool = switch.entry("BUFFER_POOL", profile.text("pool")?)?;
    let size = pool.bytes("size", findings)?.as_u64();
    let alpha = 2_f64.powi(i32::try_from(exponent).ok()?);
    let queue = 2.0 * alpha * size as f64 / (1.0 + 2.0 * alpha);
    let how = format!(
        "with alpha {alpha} (dynamic_th {exponent}) of what is free of {size} B ({}), two senders to one port both pause when the queue is \
         2 · alpha · pool / (1 + 2 · alpha) = {queue:.0} B; with more senders, and other ports in use, it is less",
        pool.name
    );
    Some((Bytes::new(queue as u64), how))
}
