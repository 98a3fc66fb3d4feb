//! Jobs: ranks that are there, messages that somebody takes, tasks that do not wait for themselves.

use super::{Findings, REPEATS};
use crate::plan::{Activity, Job, LARGEST_MESSAGE, NodeKind, Plan, Task, order};

pub(super) fn check(plan: &Plan, findings: &mut Findings) {
    for (number, job) in plan.jobs.iter().enumerate() {
        let place = match job.name.as_str() {
            "" => format!("job {number}"),
            name => format!("job {name}"),
        };
        if ranks(plan, job, &place, findings) && indices(plan, job, &place, findings) {
            messages(job, &place, findings);
            circles(job, &place, findings);
        }
    }
    for (number, profile) in plan.host_profiles.iter().enumerate() {
        let server = &profile.server;
        let place = format!("host profile {number}");
        if server.accelerator_rate.is_zero() {
            findings.error(
                &place,
                "has accelerators with links of 0 bit/s",
                "give a rate",
            );
        }
        if !(server.slowness > 0.0 && server.slowness.is_finite()) {
            let problem = format!("takes {} times as long to compute", server.slowness);
            findings.error(&place, problem, "give a number above zero, such as 1");
        }
        if let crate::plan::DataPath::Staged(staging) = &server.data_path
            && staging.uplink.is_zero()
        {
            findings.error(&place, "copies at 0 bit/s", "give a rate");
        }
    }
}

/// Whether every rank is on a port of a host.
fn ranks(plan: &Plan, job: &Job, place: &str, findings: &mut Findings) -> bool {
    let before = findings.all.len();
    let ports = plan.network.port_counts();
    for (number, rank) in job.ranks.iter().enumerate() {
        let node = plan.network.nodes.get(rank.host.index());
        let problem = match node {
            Some(node) if !matches!(node.kind, NodeKind::Host { .. }) => {
                format!("has rank {number} on {}, which is no host", node.name)
            }
            Some(node) if u32::from(rank.nic.0) >= ports[rank.host.index()] => {
                let count = ports[rank.host.index()];
                format!(
                    "has rank {number} on port {} of {}, which has {count}",
                    rank.nic.0, node.name
                )
            }
            Some(_) => continue,
            None => format!(
                "has rank {number} on node {}, which is not there",
                rank.host.0
            ),
        };
        findings.error(place, problem, "place ranks on hosts and their ports");
        if findings.all.len() >= before + REPEATS {
            break;
        }
    }
    findings.all.len() == before
}

/// Whether everything that is named by its number is there.
fn indices(plan: &Plan, job: &Job, place: &str, findings: &mut Findings) -> bool {
    let before = findings.all.len();
    let ranks = job.ranks.len() as u32;
    for (number, channel) in job.channels.iter().enumerate() {
        if channel.from >= ranks || channel.to >= ranks {
            let problem = format!(
                "has channel {number} from rank {} to rank {}, of {ranks}",
                channel.from, channel.to
            );
            findings.error(place, problem, "name ranks that are there");
            continue;
        }
        let (from, to) = (
            job.ranks[channel.from as usize],
            job.ranks[channel.to as usize],
        );
        let within = from.host == to.host;
        if within != channel.flows.is_empty()
            || (channel.flows.iter().chain(&channel.standby))
                .any(|flow| flow.index() >= plan.flows.len())
        {
            let problem = format!(
                "has channel {number} from rank {} to rank {} with {} queue pairs",
                channel.from,
                channel.to,
                channel.flows.len()
            );
            let advice =
                "give queue pairs to ranks of different hosts, and none to those of one host";
            findings.error(place, problem, advice);
        }
    }
    let tasks = job.tasks.len() as u32;
    for (number, task) in job.tasks.iter().enumerate() {
        let of_rank = |other: &u32| {
            (job.tasks.get(*other as usize)).is_some_and(|other| other.rank == task.rank)
        };
        let sound = task.rank < ranks
            && (task.phase as usize) < job.phases.len()
            && task.after.iter().chain(&task.after_begin).all(of_rank)
            && match &task.activity {
                Activity::Compute(_) => true,
                Activity::Send(send) => {
                    (job.channels.get(send.channel as usize))
                        .is_some_and(|channel| channel.from == task.rank)
                        && send.gates.iter().all(|gate| {
                            of_rank(&gate.receive)
                                && matches!(
                                    job.tasks[gate.receive as usize].activity,
                                    Activity::Receive(_)
                                )
                        })
                }
                Activity::Receive(receive) => (job.channels.get(receive.channel as usize))
                    .is_some_and(|channel| channel.to == task.rank),
            };
        if !sound {
            let problem = format!("has task {number} of {tasks}, which names what is not there");
            findings.error(place, problem, "name tasks and channels of its own rank");
            if findings.all.len() >= before + REPEATS {
                break;
            }
        }
    }
    findings.all.len() == before
}

/// Everything that is sent is taken, and what is waited for is sent.
fn messages(job: &Job, place: &str, findings: &mut Findings) {
    let before = findings.all.len();
    let mut sent = vec![0u64; job.channels.len()];
    let mut taken = vec![0u64; job.channels.len()];
    for task in &job.tasks {
        match &task.activity {
            Activity::Send(send) => {
                sent[send.channel as usize] += u64::from(send.messages);
                let wrong = send.messages == 0 || send.bytes > LARGEST_MESSAGE;
                if wrong && findings.all.len() < before + REPEATS {
                    let problem = format!(
                        "has rank {} send {} messages of {}",
                        task.rank, send.messages, send.bytes
                    );
                    let advice = format!("give 1 message or more, of at most {LARGEST_MESSAGE}");
                    findings.error(place, problem, advice);
                }
            }
            Activity::Receive(receive) => {
                taken[receive.channel as usize] += u64::from(receive.messages);
            }
            Activity::Compute(_) => {}
        }
    }
    for (channel, (sent, taken)) in job.channels.iter().zip(sent.iter().zip(&taken)) {
        if findings.all.len() >= before + REPEATS {
            return;
        }
        let (from, to) = (channel.from, channel.to);
        if sent > taken {
            let problem =
                format!("has rank {from} send {sent} messages to rank {to}, which takes {taken}");
            findings.error(place, problem, "let the rank receive what is sent to it");
        } else if taken > sent {
            let problem = format!(
                "has rank {to} wait for {taken} messages of rank {from}, which sends {sent}"
            );
            findings.error(place, problem, "let the rank send what is waited for");
        }
        // Where steps multiply, the most stands for what is more.
        if *sent >= u64::from(u32::MAX) {
            let problem = format!("has {sent} messages from rank {from} to rank {to}");
            findings.error(place, problem, "send fewer, longer messages");
        }
    }
}

/// What a task comes after: the end of it, or its beginning.
fn before(task: &Task) -> impl Iterator<Item = &u32> {
    task.after.iter().chain(&task.after_begin)
}

/// Tasks that wait for each other in a circle, by what they come after.
fn circles(job: &Job, place: &str, findings: &mut Findings) {
    let waits: Vec<Vec<u32>> = (job.tasks.iter())
        .map(|task| before(task).copied().collect())
        .collect();
    let Err(circle) = order(&waits) else {
        return;
    };
    let rank = job.tasks[circle[0] as usize].rank;
    let names: Vec<String> = circle.iter().take(8).map(u32::to_string).collect();
    let problem = format!(
        "has tasks of rank {rank} that wait for each other in a circle: {}{}",
        names.join(", "),
        if circle.len() > 8 { " …" } else { "" }
    );
    findings.error(place, problem, "take one of these dependencies away");
}
