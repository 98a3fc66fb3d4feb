//! From the programs of hosts to the results of jobs.

use softfabric_units::{Bytes, Span, Time};

use super::node::{Kind, Node};
use super::program::{Program, TaskRecord};
use crate::plan::{Activity, FlowId, Job, NodeId, Plan};
use crate::results::{
    Eras, FlowResult, FlowStatus, JobResult, JobStatus, PhaseResult, ProcessorResult, RankResult,
    Wait,
};

/// How many waits a result lists.
const LISTED_WAITS: usize = 1000;

/// What became of each job.
pub(crate) fn results(plan: &Plan, flows: &[FlowResult], nodes: &[Node]) -> Vec<JobResult> {
    let mut records: Vec<Vec<Option<TaskRecord>>> = (plan.jobs.iter())
        .map(|job| vec![None; job.tasks.len()])
        .collect();
    for program in nodes.iter().filter_map(program) {
        for record in program.records() {
            records[record.job as usize][record.task as usize] = Some(record);
        }
    }
    let disturbance = plan.disturbance();
    let eras = |number: u32| -> Option<Eras> {
        let (from, until) = disturbance?;
        let mut moved = [Bytes::ZERO; 3];
        for program in nodes.iter().filter_map(program) {
            for (sum, part) in moved.iter_mut().zip(program.moved(number)) {
                *sum += Bytes::new(part);
            }
        }
        let [before, during, after] = moved;
        Some(Eras {
            from,
            until,
            before,
            during,
            after,
        })
    };
    (0..)
        .zip(&plan.jobs)
        .zip(records)
        .map(|((number, job), records)| {
            let records: Vec<TaskRecord> = records.into_iter().flatten().collect();
            debug_assert_eq!(records.len(), job.tasks.len());
            result(plan, job, &records, flows, eras(number))
        })
        .collect()
}

/// What the processors of hosts with ranks did.
pub(crate) fn processors(nodes: &[Node]) -> Vec<ProcessorResult> {
    (0..)
        .zip(nodes)
        .filter_map(|(node, kind)| {
            let processor = program(kind)?.processor();
            Some(ProcessorResult {
                node: NodeId(node),
                requests: processor.requests,
                copies: processor.copies,
            })
        })
        .collect()
}

fn program(node: &Node) -> Option<&Program> {
    match &node.kind {
        Kind::Host(host) => host.program.as_deref(),
        Kind::TcpHost(host) => host.program.as_deref(),
        Kind::Switch(_) | Kind::LaneSwitch(_) => None,
    }
}

/// The last queue pair of a channel all of whose queue pairs have failed; or a connection that has failed.
fn failed_channel(plan: &Plan, job: &Job, flows: &[FlowResult]) -> Option<FlowId> {
    let failed = |flow: &FlowId| matches!(flows[flow.index()].status, FlowStatus::Failed(_));
    (job.channels.iter())
        .filter(|channel| !channel.flows.is_empty())
        .find_map(|channel| {
            let host = job.ranks[channel.from as usize].host;
            if plan.stack_of(host).is_some() {
                return channel.flows.iter().copied().find(failed);
            }
            let mut all = channel.flows.iter().chain(&channel.standby);
            let last = channel.flows.last().copied();
            last.filter(|_| all.all(failed))
        })
}

fn result(
    plan: &Plan,
    job: &Job,
    records: &[TaskRecord],
    flows: &[FlowResult],
    eras: Option<Eras>,
) -> JobResult {
    let nothing = RankResult {
        finished: Some(job.start),
        computing: Span::ZERO,
    };
    let mut ranks = vec![nothing; job.ranks.len()];
    let mut phases = vec![
        PhaseResult {
            begun: None,
            since: None,
            over: Some(Time::ZERO),
            computing: Span::ZERO,
        };
        job.phases.len()
    ];
    let mut computing = rustc_hash::FxHashMap::<(u32, u32), Span>::default();
    let mut waits = Vec::new();
    for (task, record) in job.tasks.iter().zip(records) {
        let rank = &mut ranks[task.rank as usize];
        let latest = |until: Option<Time>| Some(until?.max(record.over?));
        rank.finished = latest(rank.finished);
        let phase = &mut phases[task.phase as usize];
        phase.over = latest(phase.over);
        if let Some(begun) = record.begun {
            phase.begun = Some(phase.begun.map_or(begun, |first| first.min(begun)));
        }
        if let (Activity::Compute(_), Some(begun), Some(over)) =
            (&task.activity, record.begun, record.over)
            && task.processor == 0
        {
            let span = over.since(begun);
            rank.computing += span;
            let together = computing.entry((task.phase, task.rank)).or_default();
            *together += span;
            phase.computing = phase.computing.max(*together);
        }
        if record.begun.is_some() && record.over.is_none() && waits.len() < LISTED_WAITS {
            waits.extend(wait(job, task.rank, record));
        }
    }
    let mut before = None;
    for phase in &mut phases {
        phase.since = phase.begun.max(before);
        before = phase.over;
    }
    let finished = (ranks.iter().map(|rank| rank.finished))
        .try_fold(job.start, |last, rank| Some(last.max(rank?)));
    let status = match finished {
        Some(_) => JobStatus::Completed,
        None => failed_channel(plan, job, flows)
            .map_or(JobStatus::Unfinished, |flow| JobStatus::Failed { flow }),
    };
    JobResult {
        finished,
        status,
        ranks,
        phases,
        waits,
        eras,
    }
}

fn wait(job: &Job, rank: u32, record: &TaskRecord) -> Option<Wait> {
    let (other, receives, of) = match &job.tasks[record.task as usize].activity {
        Activity::Compute(_) => return None,
        Activity::Send(send) => (job.channels[send.channel as usize].to, false, send.messages),
        Activity::Receive(receive) => {
            let channel = &job.channels[receive.channel as usize];
            (channel.from, true, receive.messages)
        }
    };
    Some(Wait {
        rank,
        other,
        task: record.task,
        receives,
        messages: record.messages,
        of,
    })
}
