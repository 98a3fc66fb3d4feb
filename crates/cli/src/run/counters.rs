//! From what a run has polled to a recording that `softfabric diagnose` reads.

use std::collections::BTreeSet;
use std::io::{self, Write};

use softfabric_fabric::export::Names;
use softfabric_fabric::plan::{self, Endpoint, Plan};
use softfabric_fabric::results::{CounterSample, Results};
use softfabric_operations::recording::{Recording, Skipped, Writer};
use softfabric_operations::topology::TopologyError;
use softfabric_operations::{History, LinkLayer, NodeKind, PortIndex, PortSample, Topology};
use softfabric_telemetry::Counter;
use softfabric_units::Class;

/// The topology of a plan, and its ports in the order of its links' ends.
pub(crate) struct Wiring {
    pub(crate) topology: Topology,
    /// By node and port number.
    ports: Vec<Vec<Option<PortIndex>>>,
}

impl Wiring {
    /// Takes names and cables from the plan.
    ///
    /// # Errors
    /// If two nodes have the same name.
    pub(crate) fn new(plan: &Plan) -> Result<Self, TopologyError> {
        let names = Names::new(&plan.network);
        let link_layer = match plan.link_layer {
            plan::LinkLayer::Ethernet => LinkLayer::Ethernet,
            plan::LinkLayer::Infiniband(_) => LinkLayer::Infiniband,
        };
        let mut topology = Topology::new(link_layer);
        let mut nodes = Vec::new();
        for id in plan.network.ids() {
            let kind = match names.is_host(id) {
                true => NodeKind::Host,
                false => NodeKind::Switch,
            };
            nodes.push(topology.add_node(names.node(id).name.clone(), kind)?);
        }
        let mut ports: Vec<Vec<Option<PortIndex>>> = vec![Vec::new(); nodes.len()];
        let linked: Vec<Endpoint> = names.ports().collect();
        for &end in &linked {
            let rate = names.link(end).map(|link| link.rate);
            let port = topology.add_port(nodes[end.node.index()], names.port(end), rate)?;
            let of_node = &mut ports[end.node.index()];
            of_node.resize(end.port.index() + 1, None);
            of_node[end.port.index()] = Some(port);
        }
        let wiring = Self { topology, ports };
        let cables: Vec<_> = linked
            .iter()
            .filter_map(|&end| {
                let peer = names.peer(end)?;
                Some((wiring.port(end)?, wiring.port(peer)?))
            })
            .collect();
        let Self {
            mut topology,
            ports,
        } = wiring;
        for (a, b) in cables {
            topology.connect(a, b)?;
        }
        Ok(Self { topology, ports })
    }

    /// The port at this end of a link.
    pub(crate) fn port(&self, end: Endpoint) -> Option<PortIndex> {
        let ports = self.ports.get(end.node.index())?;
        ports.get(end.port.index()).copied().flatten()
    }

    /// Hands on every sample of a run: a port's first one whole, of the others what changed.
    fn for_each(
        &self,
        results: &Results,
        tells: impl Fn(&Topology, PortIndex, Counter) -> bool,
        mut take: impl FnMut(PortIndex, &CounterSample, PortSample) -> io::Result<()>,
    ) -> io::Result<()> {
        let classes = classes_in_use(results);
        let mut begun = vec![false; self.topology.ports().len()];
        for sample in &results.counters {
            let Some(port) = self.port(sample.endpoint) else {
                continue;
            };
            let tells = |counter: Counter| tells(&self.topology, port, counter);
            let begins = !std::mem::replace(&mut begun[port.index()], true);
            let mut values: Vec<(Counter, u64)> = sample.changed.clone();
            values.retain(|&(counter, _)| tells(counter));
            if begins {
                let is_host = self.topology.owner(port).kind == NodeKind::Host;
                let silent = Counter::all().filter(|counter| match counter {
                    Counter::Class(class, _) => classes.contains(&class.as_u8()),
                    Counter::Device(_) => is_host,
                    Counter::Port(_) => true,
                });
                let told: BTreeSet<usize> = values.iter().map(|(c, _)| c.index()).collect();
                values.extend(
                    silent
                        .filter(|&counter| tells(counter) && !told.contains(&counter.index()))
                        .map(|counter| (counter, 0)),
                );
            }
            let up = Some(sample.up);
            take(port, sample, PortSample { up, values })?;
        }
        Ok(())
    }

    /// What the run has polled, as far as real devices would tell it: NICs what Linux has names for, switches what SONiC
    /// has names for; over InfiniBand everything, as every device has the same counters there.
    pub(crate) fn history(&self, results: &Results) -> History {
        let mut history = History::new(&self.topology);
        let taken = self.for_each(results, real_devices_tell, |port, sample, changes| {
            history.add_changes(port, sample.time, &changes);
            Ok(())
        });
        debug_assert!(taken.is_ok(), "nothing is written");
        history
    }
}

/// Whether a real device in the place of this one has the counter.
fn real_devices_tell(topology: &Topology, port: PortIndex, counter: Counter) -> bool {
    let row = counter.definition();
    match (topology.link_layer, topology.owner(port).kind) {
        (LinkLayer::Infiniband, _) => true,
        (LinkLayer::Ethernet, NodeKind::Host) => !row.linux.is_empty(),
        (LinkLayer::Ethernet, NodeKind::Switch) => !row.sonic.is_empty(),
    }
}

/// Classes in which anything was ever counted.
fn classes_in_use(results: &Results) -> BTreeSet<u8> {
    let changed = results.counters.iter().flat_map(|sample| &sample.changed);
    let classes = changed.filter_map(|(counter, _)| match counter {
        Counter::Class(class, _) => Some(Class::as_u8(*class)),
        Counter::Port(_) | Counter::Device(_) => None,
    });
    classes.collect()
}

/// What the run has polled, as it would be read from its file.
///
/// # Errors
/// If two nodes have the same name.
pub(crate) fn recording(
    plan: &Plan,
    results: &Results,
    about: &str,
) -> Result<Recording, TopologyError> {
    let wiring = Wiring::new(plan)?;
    let mut history = History::new(&wiring.topology);
    let taken = wiring.for_each(
        results,
        |_, _, _| true,
        |port, sample, changes| {
            history.add_changes(port, sample.time, &changes);
            Ok(())
        },
    );
    debug_assert!(taken.is_ok(), "nothing is written");
    Ok(Recording {
        about: about.to_owned(),
        topology: wiring.topology,
        history,
        skipped: Skipped::default(),
        start_unix_ns: 0,
    })
}

/// Writes topology and samples.
pub(super) fn write(
    out: &mut dyn Write,
    plan: &Plan,
    results: &Results,
    about: &str,
) -> io::Result<()> {
    let wiring = Wiring::new(plan).map_err(io::Error::other)?;
    let mut writer = Writer::new(out, &wiring.topology, about)?;
    wiring.for_each(
        results,
        |_, _, _| true,
        |port, sample, changes| writer.sample(port, sample.time, &changes),
    )
}
