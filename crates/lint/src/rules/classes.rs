//! The way of a class through a switch: DSCP, traffic class, priority group, PFC priority, queue.
//!
//! ```text
//! DSCP ──► TC ──► priority group ──► PFC priority of the pauses that it sends
//!           └───► queue ◄────────── PFC priority of the pauses that it obeys
//! ```

use std::collections::BTreeMap;

use crate::finding::{Finding, Rule};
use crate::sonic::{Entry, Switch};

/// CNPs of NVIDIA's NICs have this DSCP until somebody changes it (/sys/class/net/*/ecn/roce_np/cnp_dscp).
const CNP_DSCP: u8 = 48;

pub(crate) fn check(switch: &Switch, findings: &mut Vec<Finding>) {
    pfc_and_headroom(switch, findings);
    // All ports of a switch mostly have the same maps: what is said of one set of them is said once.
    let mut seen: Vec<BTreeMap<&str, &str>> = Vec::new();
    for port in switch.table("PORT_QOS_MAP") {
        const SETTINGS: [&str; 6] = [
            "pfc_enable",
            "dscp_to_tc_map",
            "tc_to_pg_map",
            "tc_to_queue_map",
            "pfc_to_queue_map",
            "pfc_to_pg_map",
        ];
        let settings: BTreeMap<&str, &str> = SETTINGS
            .into_iter()
            .filter_map(|field| Some((field, port.text(field)?)))
            .collect();
        if seen.contains(&settings) {
            continue;
        }
        let Some(enabled) = switch.priorities(port.name, "pfc_enable", findings) else {
            continue;
        };
        ways(switch, port, &enabled, findings);
        notifications(switch, port, &enabled, findings);
        seen.push(settings);
    }
}

/// The priority that a group pauses.
fn pause_of(switch: &Switch, port: &str, group: u8) -> u8 {
    let reversed = (0..8).find(|&priority| {
        let table = "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP";
        switch.mapped(port, "pfc_to_pg_map", table, priority) == Some(group)
    });
    // Where there is no map, group n pauses priority n.
    reversed.unwrap_or(group)
}

/// A group with headroom must have PFC, and one with PFC must have headroom.
fn pfc_and_headroom(switch: &Switch, findings: &mut Vec<Finding>) {
    let mut without_pfc: Vec<(&str, u8)> = Vec::new();
    let mut with_headroom: Vec<(&str, u8)> = Vec::new();
    let mut named: Vec<&str> = Vec::new();
    for (port, group, entry) in switch.of_ports("BUFFER_PG") {
        named.push(port);
        let profile = entry.text("profile").unwrap_or("NULL");
        let found = switch.entry("BUFFER_PROFILE", profile);
        // `NULL`: the buffer manager computes a lossless profile.
        let has_headroom = profile == "NULL" || found.is_some_and(|p| p.text("xoff").is_some());
        if !has_headroom {
            continue;
        }
        with_headroom.push((port, group));
        let Some(enabled) = switch.priorities(port, "pfc_enable", findings) else {
            continue;
        };
        let pauses = pause_of(switch, port, group);
        if enabled.contains(&pauses) || without_pfc.iter().any(|&(_, known)| known == group) {
            continue;
        }
        without_pfc.push((port, group));
        let qos = switch.qos(port).unwrap_or(entry);
        findings.push(
            qos.finding(Rule::LosslessWithoutPfc, "pfc_enable")
                .found(format!("{enabled:?}, while priority group {group} has headroom"))
                .expected(
                    format!("priority {pauses} among them"),
                    format!("group {group} ({port}|{group}, profile {profile}) is to lose nothing, and sends no pause without PFC"),
                )
                .advice("turn PFC on for the priority, or take the headroom from the group"),
        );
    }
    if !switch.has("BUFFER_PG") {
        return;
    }
    let mut said: Vec<u8> = Vec::new();
    for qos in switch.table("PORT_QOS_MAP") {
        let port = qos.name;
        if !named.contains(&port) {
            continue;
        }
        for priority in switch
            .priorities(port, "pfc_enable", findings)
            .unwrap_or_default()
        {
            let table = "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP";
            let group = switch
                .mapped(port, "pfc_to_pg_map", table, priority)
                .unwrap_or(priority);
            // SONiC's buffer manager adds groups for the priorities with PFC to those of the file, where they are left out.
            let file_has_lossless = !with_headroom.is_empty();
            if with_headroom.contains(&(port, group))
                || said.contains(&priority)
                || !file_has_lossless
            {
                continue;
            }
            said.push(priority);
            findings.push(
                qos.finding(Rule::PfcWithoutHeadroom, "pfc_enable")
                    .found(format!(
                        "{priority}, and BUFFER_PG gives group {group} of {port} no headroom"
                    ))
                    .expected(
                        format!("a profile with xoff for {port}|{group}"),
                        "what is under way after a pause needs room, or it is lost",
                    )
                    .advice("give the group a lossless profile, or turn PFC off for the priority"),
            );
        }
    }
}

fn ways(switch: &Switch, port: Entry<'_>, enabled: &[u8], findings: &mut Vec<Finding>) {
    let mapped =
        |field: &str, table: &str, number: u8| switch.mapped(port.name, field, table, number);
    for class in 0..8_u8 {
        let Some(group) = mapped("tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", class) else {
            continue;
        };
        let priority = pause_of(switch, port.name, group);
        let group_is_lossless = enabled.contains(&priority);
        let queue = mapped("tc_to_queue_map", "TC_TO_QUEUE_MAP", class).unwrap_or(class);
        let stopped = mapped("pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE", priority);
        let stopped = stopped.unwrap_or(priority);
        if group_is_lossless && stopped != queue && enabled.contains(&class) {
            findings.push(
                port.finding(Rule::PauseStopsAnotherQueue, "pfc_to_queue_map")
                    .found(format!("a pause of priority {priority} stops queue {stopped}"))
                    .expected(
                        format!("queue {queue}"),
                        format!("packets of class {class} are in group {group}, which priority {priority} pauses, and leave by queue {queue}"),
                    )
                    .advice("MAP_PFC_PRIORITY_TO_QUEUE and TC_TO_QUEUE_MAP must agree for lossless classes"),
            );
        }
        if group_is_lossless && !enabled.contains(&class) {
            findings.push(
                port.finding(Rule::LossyInLosslessGroup, "tc_to_pg_map")
                    .found(format!("class {class} is in priority group {group}"))
                    .expected(
                        "a lossy group, such as 0",
                        format!("group {group} pauses priority {priority}: traffic of class {class} makes the switch pause a priority that its senders do not use"),
                    )
                    .advice("map the class to a group without PFC (TC_TO_PRIORITY_GROUP_MAP)"),
            );
        }
        if enabled.contains(&class) && priority != class {
            findings.push(
                port.finding(Rule::PauseOfAnotherPriority, "tc_to_pg_map")
                    .found(format!("class {class} is in group {group}, which pauses priority {priority}"))
                    .expected(
                        format!("a group that pauses priority {class}"),
                        format!("PFC is on for {class}: senders of that priority do not stop for a pause of {priority}"),
                    )
                    .advice("TC_TO_PRIORITY_GROUP_MAP and PFC_PRIORITY_TO_PRIORITY_GROUP_MAP must lead back to the priority"),
            );
        }
    }
}

/// Congestion notifications must not wait behind what they are about.
fn notifications(switch: &Switch, port: Entry<'_>, enabled: &[u8], findings: &mut Vec<Finding>) {
    let class = switch.mapped(port.name, "dscp_to_tc_map", "DSCP_TO_TC_MAP", CNP_DSCP);
    let Some(class) = class else {
        return;
    };
    if enabled.contains(&class) {
        findings.push(
            port.finding(Rule::CnpClass, "dscp_to_tc_map")
                .found(format!("DSCP {CNP_DSCP}, that of CNPs, is class {class}, which has PFC"))
                .expected(
                    "a class without PFC that goes first, such as 6",
                    "a CNP that waits behind paused data comes too late to slow anybody down (cnp_dscp of NVIDIA's NICs is 48)",
                )
                .advice("map DSCP 48 to class 6 (DSCP_TO_TC_MAP)"),
        );
        return;
    }
    let queue = switch.mapped(port.name, "tc_to_queue_map", "TC_TO_QUEUE_MAP", class);
    let queue = queue.unwrap_or(class);
    let mut queues = switch.of_ports("QUEUE").into_iter();
    let of_port = queues.find(|&(name, number, _)| name == port.name && number == queue);
    let scheduler =
        of_port.and_then(|(_, _, entry)| switch.entry("SCHEDULER", entry.text("scheduler")?));
    if let Some(scheduler) = scheduler.filter(|scheduler| scheduler.text("type") != Some("STRICT"))
    {
        findings.push(
            scheduler
                .finding(Rule::CnpClass, "type")
                .found(format!(
                    "{}, for queue {queue} that CNPs (DSCP {CNP_DSCP}) leave by",
                    scheduler.text("type").unwrap_or("nothing")
                ))
                .expected(
                    "STRICT",
                    "CNPs must not wait behind data of other queues: they tell senders to slow down",
                )
                .advice(format!("a strict scheduler for queue {queue}, or a map of DSCP 48 to a class that has one")),
        );
    }
}
