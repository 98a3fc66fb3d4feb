//! How long a small message takes in an idle network: two programs that answer each other.
//!
//! ```text
//! first host  send ─┐        ┌─ answer is here: send ─┐
//! last host         └─ here: send ┘                   └─ …       the time of all, over their number
//! ```
//!
//! A program sends when the other's message has arrived, not when its own is acknowledged, so what is measured is one way.

use crate::plan::{Activity, Channel, Gate, Job, Phase, Plan, Receives, Sends, Task};
use crate::results::{JobStatus, Results};
use crate::scenario::{JobEntry, Record, Scenario, StopSettings};
use softfabric_units::{Bytes, Span};

use super::figures::nanoseconds;

/// How many messages go each way.
const MESSAGES: u32 = 64;
const SMALL: Bytes = Bytes::new(64);

/// The plan of two such programs on the first and the last host of a scenario; `None` if it has no two hosts, or its hosts
/// run no programs.
pub(super) fn plan(mut scenario: Scenario) -> Option<Plan> {
    let hosts: Vec<String> = {
        let network = scenario.plan().ok()?.network;
        let names = network
            .hosts()
            .map(|id| network.nodes[id.index()].name.clone());
        names.collect()
    };
    let (first, last) = (hosts.first()?, hosts.last()?);
    let text = format!(
        "name = 'small messages'\nhosts = ['{first}', '{last}']\nranks_per_host = 1\niterations = {MESSAGES}\n\
         [[step]]\nkind = 'shift'\nbytes = '64B'\ndistance = 1\n"
    );
    scenario.job = vec![toml::from_str::<JobEntry>(&text).ok()?];
    scenario.workload.clear();
    scenario.trigger.clear();
    scenario.event.clear();
    scenario.record = Record::default();
    scenario.stop = StopSettings::default();
    let mut plan = scenario.plan().ok()?;
    answer_each_other(plan.jobs.first_mut()?)?;
    Some(plan)
}

/// In the place of what the job does: each rank answers the other's messages, the first one begins.
fn answer_each_other(job: &mut Job) -> Option<()> {
    let channel = |from: u32| {
        let found = |channel: &Channel| channel.from == from;
        job.channels.iter().position(found).map(|at| at as u32)
    };
    let (there, back) = (channel(0)?, channel(1)?);
    let task = |rank, activity| Task {
        rank,
        phase: 0,
        processor: 0,
        after: Vec::new(),
        after_begin: Vec::new(),
        activity,
    };
    let send = |rank, channel, receive, lead| {
        let gates = vec![Gate { receive, lead }];
        let sends = Sends {
            channel,
            messages: MESSAGES,
            bytes: SMALL,
            pieces: 1,
            gates,
        };
        task(rank, Activity::Send(sends))
    };
    let receive = |rank, channel| {
        let receives = Receives {
            channel,
            messages: MESSAGES,
            pieces: 1,
            handling: Span::ZERO,
        };
        task(rank, Activity::Receive(receives))
    };
    job.tasks = vec![
        receive(0, back),
        receive(1, there),
        send(0, there, 0, 1),
        send(1, back, 1, 0),
    ];
    job.phases = vec![Phase {
        name: "small messages".to_owned(),
        collective: None,
    }];
    Some(())
}

/// The time of one message, in nanoseconds; `None` if not all came.
pub(super) fn latency(results: &Results) -> Option<f64> {
    let job = results.jobs.first()?;
    let span = job.phases.first()?.span()?;
    (job.status == JobStatus::Completed).then(|| nanoseconds(span) / f64::from(2 * MESSAGES))
}
