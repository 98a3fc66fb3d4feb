//! InfiniBand's congestion control: a setting for each switch profile, thresholds and tables within their fields.

use softfabric_units::Bytes;

use super::Findings;
use crate::plan::{Infiniband, InfinibandCongestion, SwitchCongestion};

/// The longest `Packet_Size`: 255 units of 64 B.
const LONGEST: Bytes = SwitchCongestion::LONGEST_PACKET_SIZE;

pub(super) fn check(settings: &Infiniband, findings: &mut Findings) {
    let Some(congestion) = &settings.congestion else {
        return;
    };
    let (found, needed) = (congestion.switches.len(), settings.switches.len());
    if found != needed {
        findings.error(
            "congestion control",
            format!("is set for {found} switch profiles, of {needed}"),
            "give each InfiniBand switch profile a setting",
        );
    }
    for (index, setting) in congestion.switches.iter().enumerate() {
        let place = format!("congestion control of InfiniBand switch profile {index}");
        for (name, threshold) in [
            ("threshold", setting.threshold),
            ("credit threshold", setting.credit_threshold),
        ] {
            if threshold > 15 {
                let found = format!("has a {name} of {threshold}");
                findings.error(&place, found, "thresholds are 0 (off) to 15 (early)");
            }
        }
        let size = setting.packet_size;
        if size > LONGEST || !size.as_u64().is_multiple_of(64) {
            findings.error(
                &place,
                format!("marks packets from {size} on"),
                format!("give a multiple of 64 B, up to {LONGEST}"),
            );
        }
    }
    levels(settings, congestion, findings);
}

/// The reactions of the levels that are in use.
fn levels(settings: &Infiniband, congestion: &InfinibandCongestion, findings: &mut Findings) {
    let mut before = None;
    for level in settings.levels_in_use() {
        let reaction = &congestion.hosts.levels[usize::from(level)];
        if before.replace(reaction) == Some(reaction) {
            continue;
        }
        let place = format!("congestion control of service level {level}");
        if let Err(error) = congestion.hosts.rate_control(level).check() {
            findings.error(place, error.to_string(), "change the parameter");
        } else if reaction.increase > 0 && reaction.timer.is_zero() {
            findings.warning(
                place,
                "has no timer: a flow that was slowed down once never speeds up again",
                "give a timer, such as 153.6us",
            );
        }
    }
}
