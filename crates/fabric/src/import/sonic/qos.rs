//! `qos.json`: maps of DSCP, traffic class, group and queue; PFC classes; WRED; schedulers; the watchdog.

use std::path::Path;

use softfabric_units::{Class, ClassMask, Span};

use super::document::{Document, Entry};
use super::{SonicFiles, SonicSwitch, protect};
use crate::import::ImportError;
use crate::plan::{ClassMaps, Classifier, Ecn, Scheduling, Watchdog, WatchdogAction};

pub(super) fn apply(
    file: &Path,
    text: &str,
    files: &SonicFiles<'_>,
    switch: &mut SonicSwitch,
) -> Result<(), ImportError> {
    let document = Document::read(file, text)?;
    let port = find_port(&document, files.port)?;
    let maps = ClassMaps {
        group: map(
            &document,
            "TC_TO_PRIORITY_GROUP_MAP",
            port.text("tc_to_pg_map"),
        )?,
        queue: map(&document, "TC_TO_QUEUE_MAP", port.text("tc_to_queue_map"))?,
        pause: pauses(&document, port)?,
        stops: map(
            &document,
            "MAP_PFC_PRIORITY_TO_QUEUE",
            port.text("pfc_to_queue_map"),
        )?,
    };
    switch.profile.maps = maps;
    switch.profile.classifier = classifier(&document, port)?;
    // PFC is turned on for priorities; here, as in memory, it is groups that are lossless.
    let enabled = classes(port, "pfc_enable")?;
    let used = maps
        .group
        .iter()
        .copied()
        .fold(ClassMask::NONE, ClassMask::with);
    let groups = used
        .iter()
        .filter(|group| enabled.contains(maps.pause[group.index()]));
    let lossless = groups.fold(ClassMask::NONE, ClassMask::with);
    protect(&mut switch.profile, lossless, files.speed);
    queues(&document, port.name(), switch)?;
    watchdog(&document, port.name(), switch)?;
    Ok(())
}

/// The port asked for, or the first one with PFC.
fn find_port<'d>(
    document: &'d Document<'d>,
    wanted: Option<&str>,
) -> Result<Entry<'d>, ImportError> {
    if let Some(name) = wanted {
        return document.entry("PORT_QOS_MAP", name, None);
    }
    let mut ports = document.table("PORT_QOS_MAP");
    ports
        .find(|port| port.text("pfc_enable").is_some())
        .ok_or_else(|| {
            let found = "no port with `pfc_enable`";
            let allowed = "a port such as Ethernet0 with its maps";
            ImportError::new(document.file, None, "PORT_QOS_MAP", found, allowed)
        })
}

/// By the DSCP where the port has a map for it, else by the priority where it has one.
fn classifier(document: &Document<'_>, port: Entry<'_>) -> Result<Classifier, ImportError> {
    if let Some(name) = port.text("dscp_to_tc_map") {
        let classes = map(document, "DSCP_TO_TC_MAP", Some(name))?;
        return Ok(Classifier::Dscp(Box::new(classes)));
    }
    match port.text("dot1p_to_tc_map") {
        Some(name) => Ok(Classifier::Pcp(map(
            document,
            "DOT1P_TO_TC_MAP",
            Some(name),
        )?)),
        None => Ok(Classifier::Priority),
    }
}

/// The priority that each group pauses: SONiC maps priorities to groups; of two for one group the lower counts.
fn pauses(document: &Document<'_>, port: Entry<'_>) -> Result<[Class; Class::COUNT], ImportError> {
    let Some(name) = port.text("pfc_to_pg_map") else {
        return Ok(ClassMaps::SAME);
    };
    let entry = document.entry("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", name, None)?;
    let mut pauses = ClassMaps::SAME;
    let priorities: Vec<Class> = Class::all().collect();
    for priority in priorities.into_iter().rev() {
        if let Some(group) = entry.class(&priority.to_string())? {
            pauses[group.index()] = priority;
        }
    }
    Ok(pauses)
}

/// The numbers of a list `3,4`.
fn classes(entry: Entry<'_>, field: &str) -> Result<ClassMask, ImportError> {
    let text = entry.text(field).unwrap_or("");
    let mut mask = ClassMask::NONE;
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let class = part.parse().ok().and_then(Class::checked);
        let class =
            class.ok_or_else(|| entry.wrong(field, text, "classes from 0 to 7, such as 3,4"))?;
        mask = mask.with(class);
    }
    Ok(mask)
}

/// A map of N numbers to classes; where there is none, number n has class n, or 0 past the last class.
fn map<const N: usize>(
    document: &Document<'_>,
    table: &str,
    name: Option<&str>,
) -> Result<[Class; N], ImportError> {
    let mut map = std::array::from_fn(|index| match name {
        None => Class::checked(index as u8).unwrap_or_default(),
        Some(_) => Class::default(),
    });
    if let Some(name) = name {
        let entry = document.entry(table, name, None)?;
        for (index, class) in map.iter_mut().enumerate() {
            *class = entry.class(&index.to_string())?.unwrap_or(*class);
        }
    }
    Ok(map)
}

/// QUEUE: the scheduler and the WRED profile of each queue of the port.
fn queues(
    document: &Document<'_>,
    port: &str,
    switch: &mut SonicSwitch,
) -> Result<(), ImportError> {
    for queue in document.table("QUEUE") {
        let (name, classes) = queue.port_and_classes()?;
        if name != port {
            continue;
        }
        for class in classes.filter_map(Class::checked) {
            let found = &mut switch.profile.classes[class.index()];
            if let Some(name) = queue.text("scheduler") {
                found.scheduling = scheduling(document.entry("SCHEDULER", name, Some(queue))?)?;
            }
            if let Some(name) = queue.text("wred_profile") {
                let profile = document.entry("WRED_PROFILE", name, Some(queue))?;
                found.ecn = wred(profile)?.into_iter().collect();
            } else {
                found.ecn.clear();
            }
        }
    }
    Ok(())
}

fn scheduling(scheduler: Entry<'_>) -> Result<Scheduling, ImportError> {
    match scheduler.needed("type")? {
        "STRICT" => Ok(Scheduling::Strict),
        "DWRR" | "WRR" => {
            let weight = scheduler.number("weight")?.unwrap_or(1);
            match u32::try_from(weight) {
                Ok(weight) if weight > 0 => Ok(Scheduling::Weighted(weight)),
                _ => Err(scheduler.wrong("weight", weight.to_string(), "1 or more")),
            }
        }
        other => Err(scheduler.wrong("type", other, "STRICT, DWRR or WRR")),
    }
}

/// The green thresholds: ECN-capable packets are marked, others dropped where WRED is on.
fn wred(profile: Entry<'_>) -> Result<Option<Ecn>, ImportError> {
    let marks = match profile.text("ecn").unwrap_or("ecn_none") {
        "ecn_all" | "ecn_green" | "ecn_green_yellow" | "ecn_green_red" => true,
        "ecn_none" | "ecn_yellow" | "ecn_red" | "ecn_yellow_red" => false,
        other => return Err(profile.wrong("ecn", other, "ecn_none, ecn_green or ecn_all")),
    };
    if !marks {
        return Ok(None);
    }
    let needed = |field: &str| {
        let bytes = profile.bytes(field)?;
        bytes.ok_or_else(|| profile.wrong(field, "missing", "bytes"))
    };
    let kmin = needed("green_min_threshold")?;
    let kmax = needed("green_max_threshold")?;
    if kmin > kmax {
        let found = format!("{kmin}, above green_max_threshold, {kmax}");
        return Err(profile.wrong("green_min_threshold", found, "at most green_max_threshold"));
    }
    let percent = profile.number("green_drop_probability")?.unwrap_or(100);
    if !(0..=100).contains(&percent) {
        let found = percent.to_string();
        return Err(profile.wrong("green_drop_probability", found, "0 to 100 percent"));
    }
    Ok(Some(Ecn {
        rate: None,
        kmin,
        kmax,
        pmax: percent as f64 / 100.0,
        drop_not_capable: profile.text("wred_green_enable") == Some("true"),
    }))
}

/// PFC_WD: times in milliseconds; polling is in `GLOBAL`.
fn watchdog(
    document: &Document<'_>,
    port: &str,
    switch: &mut SonicSwitch,
) -> Result<(), ImportError> {
    let Some(entry) = document.table("PFC_WD").find(|entry| entry.name() == port) else {
        return Ok(());
    };
    let global = document
        .table("PFC_WD")
        .find(|entry| entry.name() == "GLOBAL");
    let millis = |entry: Entry<'_>, field: &str| -> Result<Span, ImportError> {
        let found = entry.number(field)?.unwrap_or(200);
        match u64::try_from(found) {
            Ok(millis) if millis > 0 => Ok(Span::millis(millis)),
            _ => Err(entry.wrong(field, found.to_string(), "milliseconds above zero")),
        }
    };
    switch.profile.watchdog = Some(Watchdog {
        detection: millis(entry, "detection_time")?,
        restoration: millis(entry, "restoration_time")?,
        poll: millis(global.unwrap_or(entry), "POLL_INTERVAL")?,
        action: match entry.text("action").unwrap_or("drop") {
            "drop" => WatchdogAction::Drop,
            "forward" => WatchdogAction::Forward,
            "alert" => WatchdogAction::Alert,
            other => return Err(entry.wrong("action", other, "drop, forward or alert")),
        },
    });
    Ok(())
}
