//! `pg_profile_lookup.ini`: each line's headroom against the formula.

use std::path::Path;

use softfabric_fabric::headroom::HeadroomProfile;
use softfabric_fabric::import::sonic::read_headroom_table;

use crate::finding::{Finding, Rule};
use crate::rules::headroom::{arithmetic, platform_of_path};

pub(crate) fn check(
    platform: Option<HeadroomProfile>,
    device: &str,
    file: &str,
    text: &str,
    findings: &mut Vec<Finding>,
) {
    let path = Path::new(file);
    let entries = match read_headroom_table(path, text) {
        Ok(entries) => entries,
        Err(error) => {
            let line = error.line;
            let finding = Finding::new(Rule::Syntax, device, file, line, "the file")
                .found(error.to_string())
                .expected(
                    "speed cable size xon xoff threshold [xon_offset]",
                    "SONiC's buffer manager splits each line into these columns",
                )
                .advice("correct the line");
            findings.push(finding);
            return;
        }
    };
    let Some(profile) = platform.or_else(|| platform_of_path(file)) else {
        return;
    };
    for entry in &entries {
        let Ok(needed) = profile.headroom(entry.speed, entry.cable) else {
            continue;
        };
        if entry.xoff >= needed.xoff {
            continue;
        }
        let field = format!("xoff of {} over {}", entry.speed, entry.cable);
        findings.push(
            Finding::new(Rule::Headroom, device, file, Some(entry.line), field)
                .found(format!("{} B", entry.xoff.as_u64()))
                .expected(
                    format!("{} B or more", needed.xoff.as_u64()),
                    arithmetic(&profile, entry.speed, entry.cable),
                )
                .advice("raise xoff, and size and the pool with it: what is still under way after a pause is lost"),
        );
    }
}
