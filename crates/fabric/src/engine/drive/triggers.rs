//! Triggers: what starts flows when other flows are done.

use softfabric_units::Time;

use super::super::event::Signal;
use crate::plan::{Plan, Start};

/// How often each trigger was hit, and whom it starts. Every part of a run keeps the same copy.
#[derive(Clone, Debug)]
pub(crate) struct Triggers {
    hits: Vec<u32>,
    /// The flows that each trigger starts, in the order of their ids.
    waiting: Vec<Vec<u32>>,
}

impl Triggers {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut waiting = vec![Vec::new(); plan.triggers.len()];
        for (id, flow) in plan.flows.iter().enumerate() {
            if let Start::After(trigger, _) = flow.start {
                waiting[trigger.0 as usize].push(id as u32);
            }
        }
        Self {
            hits: vec![0; plan.triggers.len()],
            waiting,
        }
    }

    /// Takes note of a hit: calls `start` with each flow that starts, and when.
    pub(crate) fn hit(&mut self, signal: Signal, plan: &Plan, mut start: impl FnMut(u32, Time)) {
        let index = signal.trigger as usize;
        let trigger = plan.triggers[index];
        self.hits[index] += 1;
        let waiting = &self.waiting[index];
        let Some(past) = self.hits[index].checked_sub(trigger.count) else {
            return;
        };
        let flows = if trigger.repeat {
            waiting.get(past as usize..=past as usize).unwrap_or(&[])
        } else if past == 0 {
            waiting.as_slice()
        } else {
            &[]
        };
        for &flow in flows {
            if let Start::After(_, delay) = plan.flows[flow as usize].start {
                start(flow, signal.time + delay);
            }
        }
    }
}
