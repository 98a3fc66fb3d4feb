//! A host by itself: what its NIC is told of PFC, trust and ECN.

use crate::finding::{Finding, Rule};
use crate::host::HostPort;

pub(crate) fn check(host: &HostPort, findings: &mut Vec<Finding>) {
    for (file, line, text) in &host.unreadable {
        findings.push(
            Finding::new(Rule::Syntax, &host.name, file, Some(*line), "the line")
                .found(format!("`{text}`"))
                .expected(
                    "eight priorities, or a number",
                    "so the program and the kernel write it",
                )
                .advice("take the file anew"),
        );
    }
    let Some(lossless) = host.lossless() else {
        return;
    };
    for &priority in &lossless {
        for role in ["roce_np", "roce_rp"] {
            let path = format!("{role}/enable/{priority}");
            if let Some(off) = host.ecn.get(&path).filter(|setting| setting.value == 0) {
                let what = match role {
                    "roce_np" => "it answers no mark with a CNP",
                    _ => {
                        "its packets are not ECN-capable and its rate follows no CNP; a queue with RED drops them from its lower threshold on"
                    }
                };
                findings.push(
                    Finding::new(Rule::HostWithoutEcn, &host.name, &off.file, off.line, path)
                        .found("0")
                        .expected("1", format!("priority {priority} has PFC here: {what}"))
                        .advice("echo 1 into the file"),
                );
            }
        }
    }
    if let Some(cnp) = host.ecn.get("roce_np/cnp_802p_prio") {
        let priority = u8::try_from(cnp.value).unwrap_or(u8::MAX);
        if lossless.contains(&priority) {
            let path = "roce_np/cnp_802p_prio";
            findings.push(
                Finding::new(Rule::CnpClass, &host.name, &cnp.file, cnp.line, path)
                    .found(format!("{priority}, which has PFC"))
                    .expected(
                        "a priority without PFC, such as 6",
                        "a CNP that waits behind paused data comes too late to slow anybody down",
                    )
                    .advice("echo 6 into the file"),
            );
        }
    }
}
