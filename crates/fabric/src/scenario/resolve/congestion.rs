//! `[infiniband.congestion_control]`: what a scenario leaves open, and the table of waits.

use softfabric_transport::rate::{InjectionDelay, InjectionTable, TABLE_ENTRIES};

use crate::plan::{
    AdapterCongestion, InfinibandCongestion, LevelReaction, SwitchCongestion, SwitchPorts,
};
use crate::scenario::error::Problems;
use crate::scenario::{CongestionSettings, PortsKind, TableEntry};

const FIELD: &str = "infiniband.congestion_control";

/// The congestion control of a fabric with so many switch profiles.
pub(super) fn congestion(
    settings: &CongestionSettings,
    profiles: usize,
    problems: &mut Problems<'_>,
) -> InfinibandCongestion {
    let base = SwitchCongestion::default();
    let switch = SwitchCongestion {
        threshold: settings.threshold.unwrap_or(base.threshold),
        packet_size: settings.packet_size.unwrap_or(base.packet_size),
        marking_rate: settings.marking_rate.unwrap_or(base.marking_rate),
        victims: settings.victims.map_or(base.victims, ports),
        credit_threshold: settings.credit_threshold.unwrap_or(base.credit_threshold),
        credit_ports: settings.credit_ports.map_or(base.credit_ports, ports),
    };
    let base = LevelReaction::default();
    let all = LevelReaction {
        timer: settings.timer.unwrap_or(base.timer),
        increase: settings.increase.unwrap_or(base.increase),
        trigger: settings.trigger.unwrap_or(base.trigger),
        minimum: settings.minimum.unwrap_or(base.minimum),
    };
    let mut hosts = AdapterCongestion {
        levels: [all; crate::plan::SERVICE_LEVELS],
        table: AdapterCongestion::table(),
    };
    for change in &settings.level {
        if let Some(level) = hosts.levels.get_mut(usize::from(change.level)) {
            *level = LevelReaction {
                timer: change.timer.unwrap_or(all.timer),
                increase: change.increase.unwrap_or(all.increase),
                trigger: change.trigger.unwrap_or(all.trigger),
                minimum: change.minimum.unwrap_or(all.minimum),
            };
        }
    }
    if let Some(entries) = &settings.table {
        match table(entries) {
            Some(table) => hosts.table = table,
            None => problems.add(
                format!("{FIELD}.table"),
                format!("{} entries", entries.len()),
                format!("1 to {TABLE_ENTRIES} entries"),
                None,
            ),
        }
    }
    check(settings, &hosts, problems);
    InfinibandCongestion {
        switches: vec![switch; profiles],
        hosts,
    }
}

fn ports(kind: PortsKind) -> SwitchPorts {
    match kind {
        PortsKind::None => SwitchPorts::None,
        PortsKind::Hosts => SwitchPorts::Hosts,
        PortsKind::All => SwitchPorts::All,
    }
}

fn table(entries: &[TableEntry]) -> Option<InjectionTable> {
    let entry = |entry: &TableEntry| InjectionDelay::new(entry.shift, entry.multiplier);
    let entries: Option<Vec<_>> = entries.iter().map(entry).collect();
    InjectionTable::new(&entries?)
}

/// Parameters that no flow can be run with, where the file says them.
fn check(settings: &CongestionSettings, hosts: &AdapterCongestion, problems: &mut Problems<'_>) {
    if let Some(size) = settings.packet_size
        && (size > SwitchCongestion::LONGEST_PACKET_SIZE || !size.as_u64().is_multiple_of(64))
    {
        problems.add(
            format!("{FIELD}.packet_size"),
            size.to_string(),
            "a multiple of 64B, at most 16320B",
            None,
        );
    }
    // What all levels share is said once, of one that no entry changes.
    let changed: Vec<u8> = settings.level.iter().map(|change| change.level).collect();
    let mut levels = 0..crate::plan::SERVICE_LEVELS as u8;
    let shared = levels.find(|level| !changed.contains(level));
    let whole = shared.map(|level| (FIELD.to_owned(), level));
    let each = (changed.iter().enumerate())
        .map(|(place, level)| (format!("{FIELD}.level[{place}]"), *level));
    for (field, level) in whole.into_iter().chain(each) {
        if let Err(error) = hosts.rate_control(level).check() {
            problems.add(
                format!("{field}.{}", error.parameter),
                error.found,
                error.needed,
                None,
            );
        }
    }
}
