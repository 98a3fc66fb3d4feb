//! `topology` of `[host.server]`: a file that says what is inside a server.

use std::borrow::Cow;
use std::path::Path;

use crate::import::{ImportError, beside, nccl};
use crate::plan::{DataPath, Network, NodeId, NodeKind, ServerProfile};
use crate::scenario::error::Problems;
use crate::scenario::{Host, Scenario, Topology};

/// What is inside the servers of a scenario, as files say it.
pub(super) struct Machines {
    /// That of `[host]`, then that of each `[[host_group]]`.
    profiles: Vec<Option<nccl::NodeTopology>>,
}

impl Machines {
    /// Reads the files that a scenario names.
    pub(super) fn read(scenario: &Scenario, problems: &mut Problems<'_>) -> Self {
        let mut profiles = Vec::new();
        for (field, host) in sections(scenario) {
            let own = match load(scenario, host) {
                Some(Ok(machine)) => Some(machine),
                Some(Err(error)) => {
                    problems.add_of_file(format!("{field}.server.topology"), &error);
                    None
                }
                None => None,
            };
            // A group is as all hosts are unless it says something else.
            profiles.push(own.or_else(|| profiles.first().cloned().flatten()));
        }
        Self { profiles }
    }

    /// What is inside the servers of a host profile.
    pub(super) fn of_profile(&self, profile: usize) -> Option<&nccl::NodeTopology> {
        self.profiles.get(profile)?.as_ref()
    }

    /// What is inside a host.
    pub(super) fn of(&self, host: NodeId, network: &Network) -> Option<&nccl::NodeTopology> {
        match network.nodes[host.index()].kind {
            NodeKind::Host { profile, .. } => self.of_profile(profile as usize),
            NodeKind::Switch { .. } => None,
        }
    }

    /// The scenario with the rails and rates of a rail-optimised fabric that it leaves to the file.
    pub(super) fn defaults<'s>(&self, scenario: &'s Scenario) -> Cow<'s, Scenario> {
        let mut scenario = Cow::Borrowed(scenario);
        let Some(machine) = self.of_profile(0) else {
            return scenario;
        };
        if let Topology::RailOptimised { .. } = scenario.topology
            && let Topology::RailOptimised { rails, rate, .. } = &mut scenario.to_mut().topology
        {
            *rails = rails.or(Some(machine.nics.len() as u32));
            *rate = rate.or(machine.port_rate());
        }
        scenario
    }
}

/// What the files of a scenario say and the model has no place for, with the file that says it.
pub(in crate::scenario) fn notes(scenario: &Scenario) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for (_, host) in sections(scenario) {
        if let (Some(name), Some(Ok(machine))) = (named(host), load(scenario, host)) {
            let of_file = machine.notes.iter().map(|note| format!("{name}: {note}"));
            notes.extend(of_file);
        }
    }
    let mut seen = rustc_hash::FxHashSet::default();
    notes.retain(|note| seen.insert(note.clone()));
    notes
}

/// Lays what a file says over a profile.
pub(super) fn apply(machine: &nccl::NodeTopology, speaks_tcp: bool, to: &mut ServerProfile) {
    super::switches::set(&mut to.accelerator_rate, machine.accelerator_rate);
    match machine.direct {
        Some(true) if !speaks_tcp => to.data_path = DataPath::Direct,
        Some(false) if to.data_path == DataPath::Direct => {
            to.data_path = DataPath::Staged(super::hosts::STAGING);
        }
        Some(_) | None => {}
    }
    if let DataPath::Staged(staging) = &mut to.data_path {
        super::switches::set(&mut staging.uplink, machine.pcie_rate);
        staging.sharing = machine.pcie_sharing;
    }
}

fn sections(scenario: &Scenario) -> impl Iterator<Item = (String, &Host)> {
    let groups = (scenario.host_group.iter().enumerate())
        .map(|(place, group)| (format!("host_group[{place}]"), group));
    std::iter::once(("host".to_owned(), &scenario.host)).chain(groups)
}

fn named(host: &Host) -> Option<&str> {
    host.server.as_ref()?.topology.as_deref()
}

fn load(scenario: &Scenario, host: &Host) -> Option<Result<nccl::NodeTopology, ImportError>> {
    let path = beside(Path::new(&scenario.source.file), named(host)?);
    Some(nccl::load(&path))
}
