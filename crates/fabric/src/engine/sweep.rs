//! Routing over time: a while after a link has changed, all switches route by it. On InfiniBand that is the subnet manager's
//! work, on Ethernet that of a routing protocol.

use std::collections::VecDeque;

use softfabric_units::{Span, Time};

use super::infiniband::Tables;
use super::machine::Machine;
use super::routing::Routes;
use super::world::World;
use crate::plan::Plan;
use crate::results::Repair;

/// The sweeps to come, and what those before did.
#[derive(Debug)]
pub(crate) struct Sweeps {
    /// From a change to new tables; `None` where switches route anew at once.
    delay: Option<Span>,
    stop: Time,
    /// When links changed that no sweep has seen, and which were up then.
    changes: VecDeque<(Time, Vec<bool>)>,
    pub(crate) repairs: Vec<Repair>,
}

impl Sweeps {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            delay: match plan.link_layer.infiniband() {
                Some(settings) => Some(settings.repair),
                None => Some(plan.reroute).filter(|delay| !delay.is_zero()),
            },
            stop: plan.stop.at,
            changes: VecDeque::new(),
            repairs: Vec::new(),
        }
    }

    /// A link has gone down or come up; these are up now. Changes of one instant are one.
    pub(crate) fn link_changed(&mut self, at: Time, up: &[bool]) {
        let in_time = (self.delay).is_some_and(|delay| at.saturating_add(delay) < self.stop);
        if !in_time {
            return;
        }
        match self.changes.back_mut() {
            Some((time, links)) if *time == at => up.clone_into(links),
            _ => self.changes.push_back((at, up.to_vec())),
        }
    }

    /// When the next sweep is done; never, if none is under way.
    pub(crate) fn next(&self) -> Time {
        let next = self.changes.front().zip(self.delay);
        next.map_or(Time::NEVER, |((changed, _), delay)| {
            changed.saturating_add(delay)
        })
    }

    /// The next sweep is done: its routes are in force.
    pub(crate) fn run(&mut self, machine: &mut Machine, world: &mut World) {
        let programmed = self.next();
        if world.tables.is_none() {
            if let Some((_, up)) = self.changes.pop_front() {
                world.routes = Routes::compute(world.plan, &up);
            }
            return;
        }
        let (Some((changed, up)), Some(settings), Some(tables)) = (
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
        match Tables::new(world.plan, settings, &up) {
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
