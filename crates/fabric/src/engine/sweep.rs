//! InfiniBand's subnet manager over time: a while after a link has changed, all switches have new tables.

use std::collections::VecDeque;

use softfabric_units::{Span, Time};

use super::infiniband::Tables;
use super::machine::Machine;
use super::world::World;
use crate::plan::Plan;
use crate::results::Repair;

/// The sweeps to come, and what those before did.
#[derive(Debug)]
pub(crate) struct Sweeps {
    /// From a change to new tables; `None` on Ethernet, whose switches route anew at once.
    delay: Option<Span>,
    stop: Time,
    /// When links changed that no sweep has seen.
    changes: VecDeque<Time>,
    pub(crate) repairs: Vec<Repair>,
}

impl Sweeps {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            delay: plan.link_layer.infiniband().map(|settings| settings.repair),
            stop: plan.stop.at,
            changes: VecDeque::new(),
            repairs: Vec::new(),
        }
    }

    /// A link has gone down or come up.
    pub(crate) fn link_changed(&mut self, at: Time) {
        let in_time = self.delay.is_some_and(|delay| at + delay < self.stop);
        if in_time && self.changes.back() != Some(&at) {
            self.changes.push_back(at);
        }
    }

    /// When the next sweep is done; never, if none is under way.
    pub(crate) fn next(&self) -> Time {
        let next = self.changes.front().zip(self.delay);
        next.map_or(Time::NEVER, |(changed, delay)| *changed + delay)
    }

    /// The next sweep is done: its routes are in force.
    pub(crate) fn run(&mut self, machine: &mut Machine, world: &mut World) {
        let programmed = self.next();
        let (Some(changed), Some(settings), Some(tables)) = (
            self.changes.pop_front(),
            world.plan.link_layer.infiniband(),
            &mut world.tables,
        ) else {
            return;
        };
        let mut repair = Repair {
            changed,
            programmed,
            entries: 0,
            switches: 0,
            failure: None,
        };
        match Tables::new(world.plan, settings, machine.links_up()) {
            Ok(new) => {
                let changes = tables.replace(new);
                (repair.entries, repair.switches) = (changes.entries, changes.switches);
                machine.program(tables, world.plan, settings);
            }
            Err(error) => repair.failure = Some(error.to_string()),
        }
        self.repairs.push(repair);
    }
}
