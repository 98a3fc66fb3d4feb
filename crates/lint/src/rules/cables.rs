//! Both ends of a cable: the same priorities, the same DSCPs, the same rate and MTU.

use crate::Fabric;
use crate::finding::{Finding, Rule};
use crate::host::HostPort;
use crate::sonic::{Entry, Switch};

/// One end of a cable that is known.
enum End<'f> {
    Switch(&'f Switch, &'f str),
    Host(&'f HostPort),
}

pub(crate) fn check(fabric: &Fabric, a: &str, b: &str, findings: &mut Vec<Finding>) {
    match (end(fabric, a), end(fabric, b)) {
        (Some(End::Switch(first, port)), Some(End::Switch(second, other))) => {
            switches(first, port, second, other, findings);
        }
        (Some(End::Switch(switch, port)), Some(End::Host(host)))
        | (Some(End::Host(host)), Some(End::Switch(switch, port))) => {
            host_and_switch(host, switch, port, findings);
        }
        _ => {}
    }
}

fn end<'f>(fabric: &'f Fabric, name: &'f str) -> Option<End<'f>> {
    if let Some(host) = fabric.hosts.get(name) {
        return Some(End::Host(host));
    }
    let (switch, port) = name.split_once(':')?;
    Some(End::Switch(fabric.switches.get(switch)?, port))
}

fn sorted(mut priorities: Vec<u8>) -> Vec<u8> {
    priorities.sort_unstable();
    priorities
}

/// DSCPs that are lossless at a port of a switch; `None` where it does not say.
fn lossless_codes(switch: &Switch, port: &str, enabled: &[u8]) -> Option<Vec<u8>> {
    switch.qos(port)?.text("dscp_to_tc_map")?;
    let class = |code| switch.mapped(port, "dscp_to_tc_map", "DSCP_TO_TC_MAP", code);
    let codes = (0..64).filter(|&code| class(code).is_some_and(|class| enabled.contains(&class)));
    Some(codes.collect())
}

fn switches(first: &Switch, port: &str, second: &Switch, other: &str, findings: &mut Vec<Finding>) {
    let far = format!("{}:{other}", second.name);
    let enabled = |switch: &Switch, port: &str, findings: &mut Vec<Finding>| {
        switch.priorities(port, "pfc_enable", findings).map(sorted)
    };
    let ends = enabled(first, port, findings).zip(enabled(second, other, findings));
    if let (Some((here, there)), Some(qos)) = (ends, first.qos(port)) {
        if here == there {
            let codes =
                lossless_codes(first, port, &here).zip(lossless_codes(second, other, &there));
            if let Some((here, there)) = codes.filter(|(here, there)| here != there) {
                findings.push(codes_differ(qos, &here, &far, &there));
            }
        } else {
            findings.push(
                qos.finding(Rule::PfcDiffersAtEnds, "pfc_enable")
                    .found(format!("{here:?}, and {far} has {there:?}"))
                    .expected(
                        "the same at both ends",
                        "a pause for a priority that the other end does not obey stops nobody, and packets are lost",
                    )
                    .advice("set pfc_enable alike at both ends"),
            );
        }
    }
    let rates = first.speed(port).zip(second.speed(other));
    if let Some(((here, entry), (there, _))) = rates.filter(|((a, _), (b, _))| a != b) {
        findings.push(differs(
            entry,
            "speed",
            &here.to_string(),
            &far,
            &there.to_string(),
        ));
    }
    let mtus = first.mtu(port).zip(second.mtu(other));
    if let Some(((here, entry), (there, _))) = mtus.filter(|((a, _), (b, _))| a != b) {
        let (here, there) = (here.as_u64().to_string(), there.as_u64().to_string());
        findings.push(differs(entry, "mtu", &here, &far, &there));
    }
}

fn differs(entry: Entry<'_>, field: &str, here: &str, far: &str, there: &str) -> Finding {
    entry
        .finding(Rule::LinkDiffersAtEnds, field)
        .found(format!("{here}, and {far} has {there}"))
        .expected(
            "the same at both ends",
            "a link with two speeds does not come up; larger frames than the other end takes are lost",
        )
        .advice("set it alike at both ends")
}

fn codes_differ(qos: Entry<'_>, here: &[u8], far: &str, there: &[u8]) -> Finding {
    qos.finding(Rule::DscpDiffersAtEnds, "dscp_to_tc_map")
        .found(format!("lossless DSCPs {here:?}, and {far} has {there:?}"))
        .expected(
            "the same at both ends",
            "a packet that is lossless at one hop and lossy at the next is lost there",
        )
        .advice("the same DSCP_TO_TC_MAP at all switches")
}

fn host_and_switch(host: &HostPort, switch: &Switch, port: &str, findings: &mut Vec<Finding>) {
    let far = format!("{}:{port}", switch.name);
    let Some(enabled) = switch.priorities(port, "pfc_enable", findings).map(sorted) else {
        return;
    };
    if let (Some(lossless), Some(pfc)) = (host.lossless(), &host.pfc)
        && lossless != enabled
    {
        let place = Finding::new(
            Rule::PfcDiffersAtEnds,
            &host.name,
            &pfc.file,
            pfc.line,
            "PFC enabled",
        );
        findings.push(
            place
                .found(format!("{lossless:?}, and {far} has {enabled:?}"))
                .expected(
                    "the same at both ends",
                    "where the host does not obey, the switch drops; where the switch does not, the host does",
                )
                .advice("mlnx_qos -i INTERFACE --pfc with the switch's priorities"),
        );
    }
    let Some(qos) = switch.qos(port) else {
        return;
    };
    let by_dscp = qos.text("dscp_to_tc_map").is_some();
    let Some(trust) = &host.trust else {
        return;
    };
    if by_dscp && trust.value != "dscp" {
        findings.push(
            Finding::new(Rule::Trust, &host.name, &trust.file, trust.line, "Priority trust state")
                .found(format!("{}, and {far} sorts by DSCP", trust.value))
                .expected(
                    "dscp",
                    "the NIC puts packets that arrive into the buffer of another priority than the switch sends them in",
                )
                .advice("mlnx_qos -i INTERFACE --trust dscp"),
        );
        return;
    }
    let Some(codes) = lossless_codes(switch, port, &enabled) else {
        return;
    };
    for code in codes {
        let class = switch.mapped(port, "dscp_to_tc_map", "DSCP_TO_TC_MAP", code);
        let (Some(class), Some(priority)) = (class, host.priority(code)) else {
            continue;
        };
        if class != priority {
            let placed = host.priority_of_dscp.get(&code);
            let (file, line) = placed.map_or((&trust.file, trust.line), |p| (&p.file, p.line));
            findings.push(
                Finding::new(
                    Rule::DscpDiffersAtEnds,
                    &host.name,
                    file,
                    line,
                    format!("DSCP {code}"),
                )
                .found(format!("priority {priority}, and class {class} at {far}"))
                .expected(
                    format!("priority {class}"),
                    "a pause of the switch for this class stops another priority of the NIC",
                )
                .advice(format!(
                    "mlnx_qos -i INTERFACE --dscp2prio set,{code},{class}"
                )),
            );
        }
    }
}
