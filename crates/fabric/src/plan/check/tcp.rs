//! Hosts that speak TCP: what they cannot do, and parameters that make no sense.

use softfabric_units::{Bytes, Span};

use super::{Findings, REPEATS};
use crate::plan::{Action, Channel, DataPath, HostProfile, Job, LinkLayer, Plan, Rank, Timing};
use crate::tcp::{CongestionAlgorithm, StackConfig};

/// The largest window that the window scale option can say (RFC 7323, 2.3).
const LARGEST_WINDOW: Bytes = Bytes::gib(1);

pub(super) fn check(plan: &Plan, findings: &mut Findings) {
    let speaks = |profile: &&HostProfile| profile.tcp.is_some();
    if !plan.host_profiles.iter().any(|profile| speaks(&profile)) {
        return;
    }
    for (index, profile) in plan.host_profiles.iter().enumerate() {
        let Some(stack) = &profile.tcp else { continue };
        let place = format!("host profile {index}");
        if plan.link_layer != LinkLayer::Ethernet {
            let advice = "use Ethernet, or RDMA";
            findings.error(&place, "speaks TCP on InfiniBand", advice);
        }
        if plan.timing == Timing::Hpcc {
            let problem = "speaks TCP with the timing of the HPCC code, which knows RDMA alone";
            findings.error(&place, problem, "use exact timing");
        }
        parameters(stack, &place, findings);
    }
    let before = findings.all.len();
    for (index, flow) in plan.flows.iter().enumerate() {
        let ends = [flow.source, flow.destination].map(|node| plan.stack_of(node).is_some());
        if ends[0] != ends[1] && findings.all.len() < before + REPEATS {
            findings.error(
                format!("flow {index}"),
                "goes between a host that speaks TCP and one that speaks RDMA",
                "name two hosts of a kind",
            );
        }
    }
    for job in &plan.jobs {
        one_job(plan, job, findings);
    }
    for (index, timed) in plan.actions.iter().enumerate() {
        if let Action::DrainRate(node, _)
        | Action::StormBegins(node, _)
        | Action::StormEnds(node, _) = timed.action
            && plan.stack_of(node).is_some()
        {
            findings.error(
                format!("action {index}"),
                "is for a NIC that pauses its switch, and the host speaks TCP",
                "name a host that speaks RDMA; a slow TCP host has slow processors",
            );
        }
    }
}

/// What ranks on hosts that speak TCP cannot have.
fn one_job(plan: &Plan, job: &Job, findings: &mut Findings) {
    let speaks = |rank: &&Rank| plan.stack_of(rank.host).is_some();
    let direct = |rank: &&Rank| {
        plan.host_profile(rank.host)
            .is_some_and(|profile| profile.server.data_path == DataPath::Direct)
    };
    let place = format!("job {}", job.name);
    if let Some(rank) = job.ranks.iter().filter(speaks).find(direct) {
        let name = &plan.network.nodes[rank.host.index()].name;
        let problem = format!(
            "has ranks on {name}, which speaks TCP and is to reach its accelerators' memory directly: that is GPUDirect RDMA"
        );
        let advice = "let it copy through host memory, `data_path = \"staged\"`, or speak RDMA";
        findings.error(&place, problem, advice);
    }
    let stands_by = |channel: &&Channel| {
        let from = job.ranks.get(channel.from as usize);
        !channel.standby.is_empty() && from.is_some_and(|rank| speaks(&rank))
    };
    if let Some(channel) = job.channels.iter().find(stands_by) {
        let problem = format!(
            "has connections of TCP from rank {} to rank {} that stand by for others: what a socket has taken and not \
             delivered is lost with it",
            channel.from, channel.to
        );
        let advice = "leave `failover` out: a job over TCP ends with the connection that it loses";
        findings.error(place, problem, advice);
    }
}

fn parameters(stack: &StackConfig, place: &str, findings: &mut Findings) {
    let tcp = &stack.tcp;
    let segment = tcp.maximum_segment.as_u64();
    if !(64..=64_960).contains(&segment) {
        let problem = format!("has a maximum segment size of {}", tcp.maximum_segment);
        findings.error(place, problem, "give 64 B to 64,960 B");
    }
    for (what, found, most) in [
        ("send buffer", tcp.send_buffer, Bytes::new(u64::MAX)),
        ("receive buffer", tcp.receive_buffer, LARGEST_WINDOW),
        ("call", stack.call, Bytes::new(u64::MAX)),
    ] {
        if found.is_zero() || found > most {
            let problem = format!("has a {what} of {found}");
            findings.error(place, problem, format!("give 1 B to {most}"));
        }
    }
    for (what, found) in [
        ("initial retransmission timeout", tcp.initial_timeout),
        ("least retransmission timeout", tcp.minimum_timeout),
    ] {
        if found.is_zero() || found > Span::seconds(1000) {
            findings.error(
                place,
                format!("has a {what} of {found}"),
                "give more than 0 and at most 1000s",
            );
        }
    }
    let share = |found: f64| found > 0.0 && found <= 1.0;
    let (what, sound) = match tcp.congestion {
        CongestionAlgorithm::Reno => ("", true),
        CongestionAlgorithm::Cubic(found) => (
            "CUBIC with a scale or a decrease out of range",
            found.scale > 0.0
                && found.scale.is_finite()
                && share(found.decrease)
                && found.decrease < 1.0,
        ),
        CongestionAlgorithm::Dctcp(found) => (
            "DCTCP with a gain or an alpha out of range",
            share(found.gain) && (0.0..=1.0).contains(&found.initial_alpha),
        ),
    };
    if !sound {
        let advice = "give a scale above 0, and shares between 0 and 1";
        findings.error(place, format!("has {what}"), advice);
    }
    if matches!(tcp.congestion, CongestionAlgorithm::Dctcp(_)) && !tcp.ecn {
        let problem = "has DCTCP without ECN: it hears of no marks";
        findings.warning(place, problem, "turn ECN on");
    }
    if let Some(cpu) = &stack.cpu {
        let counts = [cpu.cores, cpu.coalesced_frames, cpu.budget, cpu.ring];
        if counts.contains(&0) {
            let problem = "has no cores, or a ring, a budget or a batch of no frames";
            findings.error(place, problem, "give 1 or more of each");
        }
        if cpu.write_copy.is_zero() || cpu.read_copy.is_zero() || cpu.offload.is_zero() {
            let problem = "copies nothing, or offloads segments of 0 B";
            findings.error(place, problem, "give rates and sizes above zero");
        }
    }
}
