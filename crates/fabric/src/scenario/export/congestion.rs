//! The congestion control of a plan, as `[infiniband.congestion_control]`.

use crate::plan::{InfinibandCongestion, LevelReaction, SwitchPorts};
use crate::scenario::{CongestionSettings, LevelSettings, PortsKind, TableEntry};

/// # Errors
/// If switches differ, or a setting names ports by number.
pub(in crate::scenario) fn section(
    congestion: &InfinibandCongestion,
) -> Result<CongestionSettings, String> {
    let [switch, others @ ..] = &congestion.switches[..] else {
        return Err("congestion control is set for no switch profile".to_owned());
    };
    if others.iter().any(|other| other != switch) {
        return Err("congestion control differs between switches".to_owned());
    }
    let hosts = &congestion.hosts;
    let all = hosts.levels[0];
    let different = |(level, reaction): (u8, &LevelReaction)| LevelSettings {
        level,
        timer: Some(reaction.timer),
        increase: Some(reaction.increase),
        trigger: Some(reaction.trigger),
        minimum: Some(reaction.minimum),
    };
    Ok(CongestionSettings {
        threshold: Some(switch.threshold),
        packet_size: Some(switch.packet_size),
        marking_rate: Some(switch.marking_rate),
        victims: Some(ports(&switch.victims)?),
        credit_threshold: Some(switch.credit_threshold),
        credit_ports: Some(ports(&switch.credit_ports)?),
        timer: Some(all.timer),
        increase: Some(all.increase),
        trigger: Some(all.trigger),
        minimum: Some(all.minimum),
        level: (0..)
            .zip(&hosts.levels)
            .filter(|(_, reaction)| **reaction != all)
            .map(different)
            .collect(),
        table: Some(
            hosts
                .table
                .entries()
                .iter()
                .map(|entry| TableEntry {
                    shift: entry.shift(),
                    multiplier: entry.multiplier(),
                })
                .collect(),
        ),
    })
}

fn ports(ports: &SwitchPorts) -> Result<PortsKind, String> {
    match ports {
        SwitchPorts::None => Ok(PortsKind::None),
        SwitchPorts::Hosts => Ok(PortsKind::Hosts),
        SwitchPorts::All => Ok(PortsKind::All),
        SwitchPorts::These(_) => {
            Err("congestion control names ports of a switch by number".to_owned())
        }
    }
}
