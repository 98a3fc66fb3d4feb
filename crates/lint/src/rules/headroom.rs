//! Headroom of each lossless priority group against the formula: rate, cable, MTU.

use softfabric_fabric::headroom::{CableLength, HeadroomProfile};
use softfabric_units::{Bytes, Rate};

use crate::Fabric;
use crate::finding::{Finding, Rule};
use crate::sonic::Switch;

/// The formula's values for a platform, by a path or name that SONiC gives it.
pub(crate) fn platform_of_path(path: &str) -> Option<HeadroomProfile> {
    const KNOWN: [(&str, HeadroomProfile); 3] = [
        ("sn2700", HeadroomProfile::spectrum1()),
        ("sn2410", HeadroomProfile::spectrum1()),
        ("sn5600", HeadroomProfile::spectrum4()),
    ];
    let mut known = KNOWN.into_iter();
    Some(known.find(|(name, _)| path.contains(name))?.1)
}

/// How the formula comes to its figure, for people.
pub(crate) fn arithmetic(profile: &HeadroomProfile, speed: Rate, cable: CableLength) -> String {
    let on_cable = 2.0 * f64::from(cable.as_centimetres()) / 100.0 * speed.as_bps() as f64
        / (CableLength::METRES_PER_SECOND as f64 * 8.0);
    format!(
        "of what is under way after a pause at {speed} over {cable}: {on_cable:.0} B on the cable (2 · length · rate / 1.98e8 m/s), one \
         frame of {} B in the pause's way, the peer's response, and one packet of {} B half received, in cells of {} B \
         (sonic-swss, cfgmgr/buffer_headroom_mellanox.lua)",
        profile.port_mtu.as_u64(),
        profile.lossless_mtu.as_u64(),
        profile.cell.as_u64(),
    )
}

pub(crate) fn check(fabric: &Fabric, switch: &Switch, findings: &mut Vec<Finding>) {
    let platform = switch.platform().or(fabric.platform);
    // One finding for each profile and kind of port: ports have the same trouble by the dozen.
    let mut seen: Vec<(&str, Rate, CableLength)> = Vec::new();
    for (port, _, group) in switch.of_ports("BUFFER_PG") {
        let Some(profile) = switch.named(group, "profile", "BUFFER_PROFILE", findings) else {
            continue;
        };
        let Some(xoff) = profile.bytes("xoff", findings) else {
            continue;
        };
        let (Some(platform), Some((speed, _)), Some(cable)) =
            (platform, switch.speed(port), switch.cable(port))
        else {
            continue;
        };
        let mtu = switch.mtu(port).map(|(mtu, _)| mtu);
        let formula = match mtu {
            Some(mtu) if mtu > Bytes::ZERO => platform.with_mtu(mtu, platform.lossless_mtu),
            _ => platform,
        };
        let Ok(needed) = formula.headroom(speed, cable) else {
            continue;
        };
        if xoff >= needed.xoff || seen.contains(&(profile.name, speed, cable)) {
            continue;
        }
        seen.push((profile.name, speed, cable));
        findings.push(
            profile
                .finding(Rule::Headroom, "xoff")
                .found(format!("{} B, for {port} and others like it", xoff.as_u64()))
                .expected(
                    format!("{} B or more", needed.xoff.as_u64()),
                    arithmetic(&formula, speed, cable),
                )
                .advice("raise xoff, and size and the pool with it: what is still under way after a pause is lost"),
        );
    }
}
