//! Pools: what they promise to groups, and what they have.

use std::collections::BTreeMap;

use softfabric_units::Bytes;

use crate::finding::{Finding, Rule};
use crate::sonic::{Entry, Switch};

#[derive(Default)]
struct Promised {
    reserved: u64,
    headroom: u64,
    groups: u64,
}

pub(crate) fn check(switch: &Switch, findings: &mut Vec<Finding>) {
    let mut promised: BTreeMap<&str, Promised> = BTreeMap::new();
    for (_, _, group) in switch.of_ports("BUFFER_PG") {
        let Some(profile) = switch.entry("BUFFER_PROFILE", group.text("profile").unwrap_or(""))
        else {
            continue;
        };
        let Some(pool) = switch.named(profile, "pool", "BUFFER_POOL", findings) else {
            continue;
        };
        let promised = promised.entry(pool.name).or_default();
        let size = profile.bytes("size", findings).unwrap_or(Bytes::ZERO);
        let xoff = profile.bytes("xoff", findings).unwrap_or(Bytes::ZERO);
        promised.reserved += size.as_u64();
        promised.headroom += xoff.as_u64();
        promised.groups += u64::from(xoff > Bytes::ZERO);
    }
    for (name, promised) in promised {
        if let Some(pool) = switch.entry("BUFFER_POOL", name) {
            of_pool(switch, pool, &promised, findings);
        }
    }
}

fn of_pool(switch: &Switch, pool: Entry<'_>, promised: &Promised, findings: &mut Vec<Finding>) {
    let Some(size) = pool.bytes("size", findings) else {
        return;
    };
    if promised.reserved > size.as_u64() && size > Bytes::ZERO {
        findings.push(
            pool.finding(Rule::PoolOversubscribed, "size")
                .found(format!("{} B", size.as_u64()))
                .expected(
                    format!("{} B or more", promised.reserved),
                    "all priority groups together are promised so much by the size of their profiles (size holds the headroom \
                     where there is no headroom pool)",
                )
                .advice("less headroom where cables are shorter, fewer lossless groups, or a headroom pool (xoff of the pool)"),
        );
    }
    // A shared pool of headroom is meant to be smaller than the sum: not all ports pause at once. By how much, a ratio says.
    let Some(shared) = pool.bytes("xoff", findings) else {
        return;
    };
    let parameters = switch.table("DEFAULT_LOSSLESS_BUFFER_PARAMETER");
    let ratio = parameters
        .iter()
        .find_map(|entry| entry.number("over_subscribe_ratio", findings))
        .filter(|&ratio| ratio > 0)
        .map_or(2, |ratio| ratio.unsigned_abs());
    let needed = promised.headroom.div_ceil(ratio);
    if shared.as_u64() < needed {
        findings.push(
            pool.finding(Rule::PoolOversubscribed, "xoff")
                .found(format!("{} B", shared.as_u64()))
                .expected(
                    format!("{needed} B or more"),
                    format!(
                        "{} groups may need {} B of headroom in all; shared {ratio} to 1 (over_subscribe_ratio, SONiC's usual value is 2)",
                        promised.groups, promised.headroom
                    ),
                )
                .advice("a larger headroom pool: once it is empty, groups that have paused in time still lose packets"),
        );
    }
}
