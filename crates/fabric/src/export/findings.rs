//! What somebody must know about a run before its figures: the worst first.

use serde::Serialize;
use softfabric_telemetry::{ClassCounter, PortCounter};

use super::{Names, grouped};
use crate::plan::{NodeId, Plan};
use crate::results::{
    DropReason, Ending, FlowResult, FlowStatus, JobStatus, LosslessDrop, Results,
};
use crate::subnet::{Routed, route};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The network, or the simulator, failed at what it promises.
    Failure,
    /// The figures are to be read with care.
    Notice,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A lossless class dropped packets.
    LosslessDrops,
    /// Queues wait for each other in a circle.
    Deadlock,
    /// Something does not add up: a fault of the simulator.
    Conservation,
    /// Queue pairs failed.
    FailedFlows,
    /// A job did not come to its end.
    JobFailed,
    /// A job lost queue pairs and went on without them.
    JobSurvived,
    /// Packets were dropped for the sake of partitions.
    KeptApart,
    /// Members of multicast groups did not get what was sent to them.
    Unheard,
    /// Nothing can move, yet flows are not done.
    Stalled,
    /// The PFC watchdog declared queues stormed.
    Watchdog,
    /// The subnet manager routed anew.
    Repaired,
    /// The run, or its sources, were stopped before all flows were done.
    Unfinished,
    /// Somebody interrupted the run.
    Interrupted,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// How bad.
    pub weight: Weight,
    /// It, in one sentence.
    pub title: String,
    /// Where and when, a line each.
    pub details: Vec<String>,
    /// What to try.
    pub advice: String,
}

/// How many lines of detail a finding has at most.
const DETAILS: usize = 8;

/// Everything to know about the run, the worst first.
pub fn find(plan: &Plan, results: &Results) -> Vec<Finding> {
    let names = Names::new(&plan.network);
    let found = [
        lossless_drops(&names, plan, results),
        deadlock(&names, results),
        conservation(results),
        failed_flows(plan, results),
        kept_apart(&names, results),
        unheard(plan, results),
    ];
    let mut all: Vec<Finding> = found.into_iter().flatten().collect();
    all.extend(super::jobs::findings(plan, results));
    let found = [
        stalled(plan, results),
        watchdog(&names, results),
        repaired(results),
        unfinished(results),
        interrupted(results),
    ];
    all.extend(found.into_iter().flatten());
    all.sort_by_key(|finding| finding.weight);
    all
}

/// Whether one of them is a failure.
pub fn has_failure(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| finding.weight == Weight::Failure)
}

fn lossless_drops(names: &Names<'_>, plan: &Plan, results: &Results) -> Option<Finding> {
    let first = results.first_lossless_drops.first();
    if results.lossless_drops == 0 {
        return None;
    }
    let place = first.map_or(String::new(), |drop| {
        format!(
            ", the first at {} after {}",
            names.port(drop.endpoint),
            drop.time
        )
    });
    Some(Finding {
        kind: Kind::LosslessDrops,
        weight: Weight::Failure,
        title: format!(
            "Lossless classes dropped {}{place}",
            count(results.lossless_drops, "packet")
        ),
        details: drops_by_place(names, &results.first_lossless_drops, results.lossless_drops),
        advice: match first {
            None => String::new(),
            Some(drop) if ends_a_life(drop.reason) => life_advice(plan),
            Some(drop) => drop_advice(drop.reason).to_owned(),
        },
    })
}

/// Whether a packet was dropped because an InfiniBand switch keeps none for longer.
fn ends_a_life(reason: DropReason) -> bool {
    matches!(
        reason,
        DropReason::HeadOfQueueLife | DropReason::PacketLife | DropReason::LaneStalled
    )
}

/// Why packets waited for too long: the routes' own circle, or somebody who is slow.
fn life_advice(plan: &Plan) -> String {
    let reason = DropReason::HeadOfQueueLife;
    let up = vec![true; plan.network.links.len()];
    let settings = plan.link_layer.infiniband();
    let routed = settings.and_then(|settings| route(&plan.network, settings, &up).ok());
    match routed.and_then(|routed| routed.iter().find_map(Routed::credit_loop)) {
        None => drop_advice(reason).to_owned(),
        Some(circle) => format!(
            "The routes have a circle of lanes that wait for each other's credit, and only these drops open it again: \
             {circle}. Use a routing engine without deadlocks: up_down, nue, dfsssp; in a torus, `torus`."
        ),
    }
}

/// `12 × class 3 at leaf0:3: no headroom left`, the most frequent first.
fn drops_by_place(names: &Names<'_>, drops: &[LosslessDrop], all: u64) -> Vec<String> {
    let mut places: Vec<(LosslessDrop, u64)> = Vec::new();
    for drop in drops {
        let same = |known: &LosslessDrop| {
            (known.endpoint, known.class, known.reason) == (drop.endpoint, drop.class, drop.reason)
        };
        match places.iter_mut().find(|(known, _)| same(known)) {
            Some((_, count)) => *count += 1,
            None => places.push((*drop, 1)),
        }
    }
    let listed = drops.len() as u64;
    places.sort_by_key(|(drop, count)| (std::cmp::Reverse(*count), drop.time, drop.endpoint));
    let lines = places.iter().map(|(drop, count)| {
        format!(
            "{count} × class {} at {}: {}",
            drop.class,
            names.port(drop.endpoint),
            drop_reason(drop.reason)
        )
    });
    let mut lines = shortened(lines.collect());
    if listed < all {
        lines.insert(0, format!("among the first {}:", grouped(listed)));
    }
    lines
}

fn deadlock(names: &Names<'_>, results: &Results) -> Option<Finding> {
    let deadlock = results.deadlock.as_ref()?;
    let mut circle: Vec<String> = deadlock
        .cycle
        .iter()
        .map(|&port| names.port(port))
        .collect();
    circle.extend(circle.first().cloned());
    Some(Finding {
        kind: Kind::Deadlock,
        weight: Weight::Failure,
        title: format!(
            "Deadlock of {} in class {} since {}",
            count(deadlock.cycle.len() as u64, "port"),
            deadlock.class,
            deadlock.since
        ),
        details: vec![format!("each waits for the next: {}", circle.join(" → "))],
        advice: "Route so that no circle of buffers can form (up-down routing), or let a PFC watchdog break it, which \
                 drops packets."
            .to_owned(),
    })
}

fn conservation(results: &Results) -> Option<Finding> {
    let violations = &results.conservation.violations;
    if violations.is_empty() {
        return None;
    }
    Some(Finding {
        kind: Kind::Conservation,
        weight: Weight::Failure,
        title: "The simulator lost count: its figures cannot be trusted".to_owned(),
        details: shortened(violations.clone()),
        advice: "This is a fault of softfabric. Please report it with the scenario and the seed."
            .to_owned(),
    })
}

fn failed_flows(plan: &Plan, results: &Results) -> Option<Finding> {
    let name = |node: NodeId| &plan.network.nodes[node.index()].name;
    let mut lines = Vec::new();
    for (flow, result) in plan.flows.iter().zip(&results.flows) {
        // What becomes of a job's queue pairs is the job's to say.
        if flow.is_fed() {
            continue;
        }
        if let FlowStatus::Failed(status) = &result.status {
            lines.push(format!(
                "{} → {}: {status}",
                name(flow.source),
                plan.destination_name(flow)
            ));
        }
    }
    if lines.is_empty() {
        return None;
    }
    Some(Finding {
        kind: Kind::FailedFlows,
        weight: Weight::Failure,
        title: format!("{} failed", count(lines.len() as u64, "flow")),
        details: shortened(lines),
        advice: "Look for drops on the path of the flow, and compare the time they last with timeout and retry count."
            .to_owned(),
    })
}

fn kept_apart(names: &Names<'_>, results: &Results) -> Option<Finding> {
    let mut packets = 0;
    let mut lines = Vec::new();
    for port in &results.ports {
        for (counter, who) in [
            (
                PortCounter::ReceiveConstraintErrors,
                "the switch let in none of",
            ),
            (
                PortCounter::TransmitConstraintErrors,
                "the switch let out none of",
            ),
            (
                PortCounter::PartitionKeyViolations,
                "the adapter took none of",
            ),
        ] {
            let found = port.port.value(counter);
            packets += found;
            if found > 0 {
                let name = counter.definition().id;
                let place = names.port(port.endpoint);
                lines.push(format!(
                    "{place}: {who} {} ({name})",
                    count(found, "packet")
                ));
            }
        }
    }
    if lines.is_empty() {
        return None;
    }
    Some(Finding {
        kind: Kind::KeptApart,
        weight: Weight::Notice,
        title: format!(
            "Partitions kept {} from hosts that are in none of theirs",
            count(packets, "packet")
        ),
        details: shortened(lines),
        advice: "If these hosts are to talk, make both members of one `[[infiniband.partition]]`, one of them in full."
            .to_owned(),
    })
}

/// What members of multicast groups lost: nobody else tells them.
fn unheard(plan: &Plan, results: &Results) -> Option<Finding> {
    let name = |node: NodeId| &plan.network.nodes[node.index()].name;
    let (mut packets, mut members) = (0, 0);
    let mut lines = Vec::new();
    for result in &results.multicast {
        let flow = &plan.flows[result.flow.index()];
        for member in &result.members {
            let lost = result.lost(member);
            if lost == 0 {
                continue;
            }
            packets += lost;
            members += 1;
            lines.push(format!(
                "{}: {} of {} from {} to {}",
                name(member.node),
                grouped(lost),
                count(result.sent, "packet"),
                name(flow.source),
                plan.destination_name(flow)
            ));
        }
    }
    if lines.is_empty() {
        return None;
    }
    Some(Finding {
        kind: Kind::Unheard,
        weight: Weight::Notice,
        title: format!(
            "Multicast did not reach everybody: {} of it {} not come to {}",
            count(packets, "packet"),
            if packets == 1 { "has" } else { "have" },
            count(members, "member")
        ),
        details: shortened(lines),
        advice: "Nobody sends a datagram again. Look for links that were down or damaged packets, for partitions in which \
                 sender and member are both limited, and for a run that ended while packets were under way."
            .to_owned(),
    })
}

fn stalled(plan: &Plan, results: &Results) -> Option<Finding> {
    // A job that stands still says so itself.
    let by_job = results
        .jobs
        .iter()
        .any(|job| job.status != JobStatus::Completed);
    if results.ending != Ending::Stalled || results.deadlock.is_some() || by_job {
        return None;
    }
    let name = |node: NodeId| &plan.network.nodes[node.index()].name;
    let waiting = plan.flows.iter().zip(&results.flows);
    let waiting = waiting.filter(|(_, result)| result.status == FlowStatus::Unfinished);
    let lines: Vec<String> = waiting
        .map(|(flow, result)| {
            format!(
                "{} → {}: {} of {} delivered",
                name(flow.source),
                plan.destination_name(flow),
                result.delivered,
                flow.bytes
            )
        })
        .collect();
    Some(Finding {
        kind: Kind::Stalled,
        weight: Weight::Failure,
        title: format!(
            "Nothing moves any more since {}, yet {} not done",
            results.end,
            are(unfinished_flows(results))
        ),
        details: shortened(lines),
        advice: "Without an ACK timeout a lost packet or acknowledgement stops its flow for ever: set the NIC's timeout."
            .to_owned(),
    })
}

fn watchdog(names: &Names<'_>, results: &Results) -> Option<Finding> {
    let mut storms = 0;
    let mut lines = Vec::new();
    for port in &results.ports {
        for (class, counters) in port.classes.iter().enumerate() {
            let times = counters.value(ClassCounter::WatchdogStorms);
            if times > 0 {
                storms += times;
                lines.push(format!(
                    "{} class {class}: {}, {} dropped",
                    names.port(port.endpoint),
                    count(times, "storm"),
                    counters.value(ClassCounter::WatchdogDropped)
                ));
            }
        }
    }
    if storms == 0 {
        return None;
    }
    Some(Finding {
        kind: Kind::Watchdog,
        weight: Weight::Notice,
        title: format!("The PFC watchdog found {}", count(storms, "storm")),
        details: shortened(lines),
        advice: "The ports that report are symptoms: follow who pauses whom to its end.".to_owned(),
    })
}

fn repaired(results: &Results) -> Option<Finding> {
    let repairs = &results.repairs;
    let first = repairs.first()?;
    let delay = first.programmed.since(first.changed);
    let failed = repairs.iter().any(|repair| repair.failure.is_some());
    let lines = repairs.iter().map(|repair| match &repair.failure {
        Some(reason) => format!(
            "changed at {}: the old routes stay: {reason}",
            repair.changed
        ),
        None => format!(
            "changed at {}, in force at {}: new entries {}, switches that have them {}",
            repair.changed,
            repair.programmed,
            grouped(repair.entries),
            grouped(repair.switches)
        ),
    });
    Some(Finding {
        kind: Kind::Repaired,
        weight: Weight::Notice,
        title: match (repairs.iter()).filter(|repair| repair.failure.is_none()).count() {
            0 => "Links changed, and the subnet manager found no routes".to_owned(),
            1 => format!("Links changed, and the subnet manager routed anew once, {delay} after"),
            times => format!(
                "Links changed, and the subnet manager routed anew {times} times, {delay} after"
            ),
        },
        details: shortened(lines.collect()),
        advice: if failed {
            "Where there are no routes, another routing engine may find some."
        } else {
            "Until then packets for lost links were dropped and sent again: compare `[infiniband] repair` with the NIC's \
             timeout and retries."
        }
        .to_owned(),
    })
}

fn unfinished(results: &Results) -> Option<Finding> {
    let flows = unfinished_flows(results);
    let title = match results.ending {
        _ if flows == 0 => return None,
        Ending::StopTime => format!(
            "The run stopped at {}, before {} done",
            results.end,
            were(flows)
        ),
        // Sources that an event stopped have nothing more to send, and that ends the run.
        Ending::Completed => format!("{} stopped by an event before the end", were(flows)),
        Ending::Stalled | Ending::Interrupted => return None,
    };
    let is_done = |flow: &FlowResult| flow.status == FlowStatus::Completed;
    let advice = match (results.ending, results.flows.iter().any(is_done)) {
        (_, false) => {
            "No flow is done, so there are no completion times: goodput, rates and queues are the figures of \
                       this run."
        }
        (Ending::StopTime, true) => {
            "Completion times and slowdowns are of flows that are done. A later stop time \
                                     includes the others."
        }
        (_, true) => "Completion times and slowdowns are of flows that are done.",
    };
    Some(Finding {
        kind: Kind::Unfinished,
        weight: Weight::Notice,
        title,
        details: Vec::new(),
        advice: advice.to_owned(),
    })
}

fn interrupted(results: &Results) -> Option<Finding> {
    if results.ending != Ending::Interrupted {
        return None;
    }
    Some(Finding {
        kind: Kind::Interrupted,
        weight: Weight::Notice,
        title: format!(
            "Interrupted at {} of simulated time; {} not done",
            results.end,
            are(unfinished_flows(results))
        ),
        details: Vec::new(),
        advice: "All outputs have what there was until then.".to_owned(),
    })
}

fn unfinished_flows(results: &Results) -> u64 {
    let open =
        |status: &FlowStatus| matches!(status, FlowStatus::Unfinished | FlowStatus::NotStarted);
    results
        .flows
        .iter()
        .filter(|flow| open(&flow.status))
        .count() as u64
}

fn drop_reason(reason: DropReason) -> &'static str {
    match reason {
        DropReason::HeadroomFull => "the headroom was full",
        DropReason::IngressThreshold => "the priority group was over its threshold",
        DropReason::EgressThreshold => "the egress queue was over its threshold",
        DropReason::BufferFull => "the packet memory was full",
        DropReason::Red => "RED dropped a packet that is not ECN-capable",
        DropReason::Watchdog => "the PFC watchdog dropped it",
        DropReason::LinkDown => "the link was down",
        DropReason::Damaged => "a bit was damaged on the link",
        DropReason::NoRoute => "no route led to the destination",
        DropReason::NotRoutable => "a router cannot forward RoCEv1",
        DropReason::ReceiveBufferFull => "the NIC's receive buffer was full",
        DropReason::HeadOfQueueLife => "it was at the head of its lane for longer than HOQLife",
        DropReason::PacketLife => "it was in the switch for longer than LifeTimeValue",
        DropReason::PartitionKey => "its partition is none of the host's",
        DropReason::LaneStalled => "its lane was stalled after VLStallCount discards in a row",
    }
}

fn drop_advice(reason: DropReason) -> &'static str {
    match reason {
        DropReason::HeadroomFull => {
            "Give the class the headroom that its rate, cable and MTU need: `softfabric headroom` computes it."
        }
        DropReason::EgressThreshold => {
            "The egress queue of a lossless class needs an unlimited threshold."
        }
        DropReason::IngressThreshold | DropReason::BufferFull => {
            "Lower alpha, or the number of lossless classes: together they must leave memory for the headroom."
        }
        DropReason::Red => {
            "Make the traffic ECN-capable, or keep RED from dropping in a lossless class."
        }
        DropReason::Watchdog => "The watchdog drops to break a storm: find who started the pause.",
        DropReason::PartitionKey => "Make both ends members of one partition.",
        DropReason::LinkDown | DropReason::Damaged => "No buffer setting helps: the link lost it.",
        DropReason::NoRoute => "Check the topology: the destination cannot be reached from there.",
        DropReason::NotRoutable => {
            "RoCEv1 stays within one Ethernet segment: use RoCEv2 across subnets."
        }
        DropReason::ReceiveBufferFull => {
            "The receiving NIC must send pause early enough: lower its XOFF, or enlarge its buffer."
        }
        DropReason::HeadOfQueueLife | DropReason::PacketLife | DropReason::LaneStalled => {
            "Somebody downstream takes too little, or lanes wait for each other in a circle: find where the credit ends."
        }
    }
}

/// `1 packet`, `2 packets`.
pub(super) fn count(number: u64, word: &str) -> String {
    format!(
        "{} {word}{}",
        grouped(number),
        if number == 1 { "" } else { "s" }
    )
}

fn are(flows: u64) -> String {
    format!(
        "{} {}",
        count(flows, "flow"),
        if flows == 1 { "is" } else { "are" }
    )
}

fn were(flows: u64) -> String {
    format!(
        "{} {}",
        count(flows, "flow"),
        if flows == 1 { "was" } else { "were" }
    )
}

pub(super) fn shortened(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > DETAILS {
        let more = lines.len() - (DETAILS - 1);
        lines.truncate(DETAILS - 1);
        lines.push(format!("and {more} more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_clean_run_has_none() {
        let (plan, results) = sample::incast();
        assert_eq!(find(&plan, &results), []);
    }

    #[test]
    fn a_lossless_drop_comes_first() {
        let (plan, mut results) = sample::lossy();
        results.conservation.violations = vec!["sent 3, found 2".to_owned()];
        results.flows[1].status = FlowStatus::Failed("RETRY_EXC_ERR".to_owned());
        let findings = find(&plan, &results);
        let kinds: Vec<_> = findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(
            kinds,
            [Kind::LosslessDrops, Kind::Conservation, Kind::FailedFlows]
        );
        let first = &findings[0];
        assert!(
            first.title.contains("12 packets, the first at leaf0:"),
            "{}",
            first.title
        );
        assert!(first.advice.contains("softfabric headroom"));
        assert!(has_failure(&findings));
    }

    #[test]
    fn a_deadlock_names_its_circle_and_is_no_second_stall() {
        let (plan, results) = sample::deadlocked();
        let findings = find(&plan, &results);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].kind, Kind::Deadlock);
        let circle = &findings[0].details[0];
        assert!(
            circle.ends_with("leaf0:4 → spine0:1 → leaf1:5 → leaf0:4"),
            "{circle}"
        );
    }

    #[test]
    fn a_run_that_is_stopped_says_what_its_figures_are_of() {
        let (plan, mut results) = sample::incast();
        results.flows[0].status = FlowStatus::Unfinished;
        let mut said = |ending| {
            results.ending = ending;
            let findings = find(&plan, &results);
            assert_eq!(findings.len(), 1);
            assert_eq!(findings[0].kind, Kind::Unfinished);
            (findings[0].title.clone(), findings[0].advice.clone())
        };
        let (title, advice) = said(Ending::StopTime);
        assert!(title.ends_with("before 1 flow was done"), "{title}");
        assert!(advice.contains("A later stop time"), "{advice}");
        let (title, advice) = said(Ending::Completed);
        assert_eq!(title, "1 flow was stopped by an event before the end");
        assert!(!advice.contains("stop time"), "{advice}");
        for flow in &mut results.flows {
            flow.status = FlowStatus::Unfinished;
        }
        results.ending = Ending::StopTime;
        let advice = &find(&plan, &results)[0].advice;
        assert!(advice.starts_with("No flow is done"), "{advice}");
    }

    #[test]
    fn notices_are_no_failures() {
        let (plan, mut results) = sample::incast();
        results.ending = Ending::Interrupted;
        results.flows[0].status = FlowStatus::Unfinished;
        let findings = find(&plan, &results);
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].title.contains("1 flow is not done"),
            "{}",
            findings[0].title
        );
        assert!(!has_failure(&findings));
    }

    #[test]
    fn long_lists_are_cut() {
        let lines: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let short = shortened(lines);
        assert_eq!(short.len(), DETAILS);
        assert_eq!(short.last().unwrap(), "and 13 more");
    }
}
