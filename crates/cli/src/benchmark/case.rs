//! Faults, fabrics and loads, and the truth about each.

use softfabric_fabric::scenario::Scenario;
use softfabric_operations::diagnose::Cause;
use softfabric_operations::{NodeIndex, NodeKind, PortIndex, Topology};
use softfabric_units::Random;

use crate::failure::Failure;
use crate::run::counters::Wiring;

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    Storm,
    SlowReceiver,
    Incast,
    Deadlock,
    FailedLink,
    DegradedLink,
    HashCollision,
    NoPfc,
    NoEcn,
    Healthy,
    SlowApplication,
    InfinibandSlowReceiver,
    InfinibandIncast,
    InfinibandCreditLoop,
    InfinibandBadCable,
    InfinibandHealthy,
    // Several at once. New ones come last: the number of a fault is part of its seed.
    TwoStorms,
    StormAndBadCable,
    SlowReceiverAndFailedLink,
}

/// The shape of a fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    SmallLeafSpine,
    LeafSpine,
    FatTree,
    Ring,
}

/// One case.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) fault: Fault,
    pub(super) shape: Shape,
    /// What everybody sends beside what the fault is about, as a share of each host's link.
    pub(super) load: f64,
    pub(super) seed: u64,
}

/// A case as a scenario, and what a diagnosis must say.
pub(super) struct Prepared {
    pub(super) scenario: String,
    pub(super) truth: Truth,
}

/// What is wrong, and where.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    /// `None`: nothing.
    pub(super) cause: Option<Cause>,
    /// Names of ports or nodes, any of which is the place.
    pub(super) places: Vec<String>,
    /// What else is wrong at the same time, and where. Either may be called the first.
    pub(super) also: Option<(Cause, Vec<String>)>,
    /// When it begins, in microseconds of the run; of several, when the last of them does.
    pub(super) begin: u64,
}

impl Truth {
    fn of(cause: Option<Cause>, places: Vec<String>) -> Self {
        Self {
            cause,
            places,
            also: None,
            begin: 0,
        }
    }

    fn beginning(mut self, begin: u64) -> Self {
        self.begin = begin;
        self
    }

    /// Both at once.
    fn and(mut self, other: Self) -> Self {
        self.begin = self.begin.max(other.begin);
        self.also = other.cause.map(|cause| (cause, other.places));
        self
    }
}

/// All cases: each fault over each shape that can have it, each load, each seed.
pub(super) fn cases(first: u64, seeds: u64) -> Vec<Case> {
    use Fault::*;
    use Shape::*;
    const FAULTS: &[(Fault, &[Shape], &[f64])] = &[
        (Storm, &[SmallLeafSpine, LeafSpine, FatTree], &[0.1, 0.4]),
        (
            SlowReceiver,
            &[SmallLeafSpine, LeafSpine, FatTree],
            &[0.0, 0.2],
        ),
        (Incast, &[SmallLeafSpine, LeafSpine, FatTree], &[0.0, 0.2]),
        (Deadlock, &[Ring], &[0.0]),
        (FailedLink, &[SmallLeafSpine, LeafSpine], &[0.0, 0.1]),
        (
            DegradedLink,
            &[SmallLeafSpine, LeafSpine, FatTree],
            &[0.2, 0.4],
        ),
        (HashCollision, &[SmallLeafSpine, LeafSpine], &[0.0, 0.1]),
        (NoPfc, &[SmallLeafSpine, LeafSpine], &[0.0, 0.1]),
        (NoEcn, &[SmallLeafSpine, LeafSpine], &[0.0, 0.1]),
        (Healthy, &[SmallLeafSpine, LeafSpine, FatTree], &[0.3, 0.6]),
        (
            SlowApplication,
            &[SmallLeafSpine, LeafSpine, FatTree],
            &[0.02],
        ),
        (
            InfinibandSlowReceiver,
            &[SmallLeafSpine, FatTree],
            &[0.0, 0.1],
        ),
        (InfinibandIncast, &[SmallLeafSpine, FatTree], &[0.0, 0.1]),
        (InfinibandCreditLoop, &[Ring], &[0.0]),
        (InfinibandBadCable, &[SmallLeafSpine, FatTree], &[0.2]),
        (InfinibandHealthy, &[SmallLeafSpine, FatTree], &[0.0]),
        (TwoStorms, &[SmallLeafSpine, LeafSpine, FatTree], &[0.1]),
        (StormAndBadCable, &[SmallLeafSpine, LeafSpine], &[0.2]),
        (SlowReceiverAndFailedLink, &[LeafSpine], &[0.1]),
    ];
    let mut cases = Vec::new();
    for &(fault, shapes, loads) in FAULTS {
        for &shape in shapes {
            for &load in loads {
                for seed in first..first + seeds {
                    cases.push(Case {
                        fault,
                        shape,
                        load,
                        seed,
                    });
                }
            }
        }
    }
    cases
}

impl Case {
    /// A name that tells everything.
    pub(super) fn name(&self) -> String {
        let Self {
            fault,
            shape,
            load,
            seed,
        } = self;
        format!("{fault:?} {shape:?} load {load} seed {seed}")
    }

    fn is_infiniband(&self) -> bool {
        format!("{:?}", self.fault).starts_with("Infiniband")
    }

    /// The network, without traffic.
    fn base(&self, random: &mut Random, trunk: u32) -> String {
        let topology = match self.shape {
            Shape::SmallLeafSpine => format!(
                "kind = \"leaf_spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\nrate = \"25Gb/s\"\ntrunk_rate = \"{trunk}Gb/s\""
            ),
            Shape::LeafSpine => format!(
                "kind = \"leaf_spine\"\nleaves = 4\nspines = 3\nhosts_per_leaf = 6\nrate = \"25Gb/s\"\ntrunk_rate = \"{trunk}Gb/s\""
            ),
            Shape::FatTree => "kind = \"fat_tree\"\nk = 4\nrate = \"25Gb/s\"".to_owned(),
            Shape::Ring => {
                let switches = 4 + random.bits() % 3;
                format!("kind = \"ring\"\nswitches = {switches}\nrate = \"25Gb/s\"")
            }
        };
        let fabric = match self.is_infiniband() {
            true => "[fabric]\nkind = \"infiniband\"\n",
            false => "",
        };
        format!("seed = {}\n{fabric}[topology]\n{topology}\n", self.seed)
    }

    /// Chooses places and strengths by the seed, and writes the scenario.
    ///
    /// # Errors
    /// If the scenario is wrong.
    pub(super) fn prepare(&self) -> Result<Option<Prepared>, Failure> {
        let stream = self.fault as u64 * 16 + self.shape as u64;
        let mut random = Random::stream(self.seed, stream);
        let trunk = match self.fault {
            Fault::Healthy => 100,
            Fault::FailedLink => 80,
            // What is left must be wide enough: the failure is a fault by itself, and not by what it makes others carry.
            Fault::SlowReceiverAndFailedLink => 100,
            _ => 50,
        };
        let base = self.base(&mut random, trunk);
        let plan = Scenario::from_toml(&base, &self.name())?.plan()?;
        let wiring = Wiring::new(&plan).map_err(|error| Failure::Arguments {
            problem: error.to_string(),
            help: None,
        })?;
        let made = Maker {
            case: self,
            topology: &wiring.topology,
            random,
            text: base,
        };
        Ok(made.make())
    }
}

struct Maker<'a> {
    case: &'a Case,
    topology: &'a Topology,
    random: Random,
    text: String,
}

impl Maker<'_> {
    fn make(mut self) -> Option<Prepared> {
        let controlled = matches!(
            self.case.fault,
            Fault::Storm
                | Fault::DegradedLink
                | Fault::NoEcn
                | Fault::Healthy
                | Fault::SlowApplication
                | Fault::TwoStorms
                | Fault::StormAndBadCable
        );
        if !self.case.is_infiniband() {
            let control = if controlled { "dcqcn_nic" } else { "none" };
            self.add(&format!(
                "[switch]\nbuffer = \"6MiB\"\n[host.congestion_control]\nkind = \"{control}\"\n"
            ));
        }
        let truth = match self.case.fault {
            Fault::Storm => self.storm(),
            Fault::SlowReceiver | Fault::InfinibandSlowReceiver => self.slow_receiver(),
            Fault::Incast | Fault::InfinibandIncast => self.incast(),
            Fault::Deadlock | Fault::InfinibandCreditLoop => self.deadlock(),
            Fault::FailedLink => self.failed_link()?,
            Fault::DegradedLink | Fault::InfinibandBadCable => self.degraded_link(),
            Fault::HashCollision => self.hash_collision()?,
            Fault::NoPfc => self.no_pfc()?,
            Fault::NoEcn => self.no_ecn()?,
            Fault::Healthy | Fault::SlowApplication => Truth::of(None, Vec::new()),
            Fault::InfinibandHealthy => self.full_and_healthy(),
            Fault::TwoStorms => self.two_storms(),
            Fault::StormAndBadCable => self.storm().and(self.degraded_link()),
            Fault::SlowReceiverAndFailedLink => self.slow_receiver().and(self.cut_cable()),
        };
        if self.case.load > 0.0 {
            let load = self.case.load;
            self.add(&format!(
                "[[workload]]\nkind = \"poisson\"\ngroup = \"background\"\nload = {load}\nduration = \"19ms\"\n"
            ));
        }
        self.add("[stop]\nat = \"20ms\"\nwhen_done = false\n");
        Some(Prepared {
            scenario: self.text,
            truth,
        })
    }

    fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.random.bits() % bound as u64) as usize
    }

    /// When the fault begins, in microseconds.
    fn begin(&mut self) -> u64 {
        3_000 + self.random.bits() % 3_000
    }

    fn nodes(&self, wanted: impl Fn(NodeIndex) -> bool) -> Vec<NodeIndex> {
        let all = 0..self.topology.nodes().len() as u32;
        all.map(NodeIndex).filter(|&node| wanted(node)).collect()
    }

    fn hosts(&self) -> Vec<NodeIndex> {
        self.nodes(|node| self.topology.node(node).kind == NodeKind::Host)
    }

    fn name(&self, node: NodeIndex) -> String {
        self.topology.node(node).name.clone()
    }

    /// The switch's port that leads to a host, and the host's own.
    fn edge(&self, host: NodeIndex) -> (PortIndex, PortIndex) {
        let own = self.topology.node(host).ports[0];
        let facing = self.topology.peer(own).unwrap_or(own);
        (facing, own)
    }

    fn leaf_of(&self, host: NodeIndex) -> NodeIndex {
        self.topology.port(self.edge(host).0).node
    }

    fn port_name(&self, port: PortIndex) -> String {
        self.topology.port(port).name.clone()
    }

    /// The hosts of a switch.
    fn hosts_of(&self, leaf: NodeIndex) -> Vec<NodeIndex> {
        let hosts = self.hosts().into_iter();
        hosts.filter(|&host| self.leaf_of(host) == leaf).collect()
    }

    /// The ports of a switch that lead to other switches.
    fn trunks(&self, switch: NodeIndex) -> Vec<PortIndex> {
        let ports = self.topology.node(switch).ports.iter().copied();
        ports
            .filter(|&port| {
                let neighbour = self.topology.neighbour(port);
                neighbour.is_some_and(|node| node.kind == NodeKind::Switch)
            })
            .collect()
    }

    fn some_host(&mut self) -> NodeIndex {
        let hosts = self.hosts();
        hosts[self.below(hosts.len())]
    }

    /// Some hosts behind other switches.
    fn senders(&mut self, to: NodeIndex, count: usize) -> Vec<NodeIndex> {
        let leaf = self.leaf_of(to);
        let mut far: Vec<NodeIndex> = self.hosts();
        far.retain(|&host| self.leaf_of(host) != leaf);
        for place in (1..far.len()).rev() {
            let other = self.below(place + 1);
            far.swap(place, other);
        }
        far.truncate(count);
        far
    }

    fn flows_to(&mut self, to: NodeIndex, count: usize, start: u64) {
        for from in self.senders(to, count) {
            let (from, to) = (self.name(from), self.name(to));
            self.add(&format!(
                "[[workload]]\nkind = \"flow\"\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = \"1GB\"\nstart = \"{start}us\"\n"
            ));
        }
    }

    fn at_edge(&self, cause: Cause, host: NodeIndex) -> Truth {
        let (facing, own) = self.edge(host);
        let places = vec![self.port_name(facing), self.port_name(own)];
        Truth::of(Some(cause), places)
    }

    fn storm(&mut self) -> Truth {
        let host = self.some_host();
        self.storm_of(host)
    }

    fn storm_of(&mut self, host: NodeIndex) -> Truth {
        let begin = self.begin();
        self.flows_to(host, 2, 0);
        let name = self.name(host);
        self.add(&format!(
            "[[event]]\nkind = \"storm\"\nat = \"{begin}us\"\nhost = \"{name}\"\n"
        ));
        self.at_edge(Cause::HostStorm, host).beginning(begin)
    }

    fn two_storms(&mut self) -> Truth {
        let first = self.some_host();
        let mut others = self.hosts();
        others.retain(|&other| other != first);
        let second = others[self.below(others.len())];
        self.storm_of(first).and(self.storm_of(second))
    }

    /// A cable between switches that fails, and nobody is crowded for it.
    fn cut_cable(&mut self) -> Truth {
        let host = self.some_host();
        let leaf = self.leaf_of(host);
        let uplinks = self.trunks(leaf);
        let lost = uplinks[self.below(uplinks.len())];
        let peer = self.topology.peer(lost).unwrap_or(lost);
        let begin = self.begin();
        let spine = self.name(self.topology.port(peer).node);
        let leaf = self.name(leaf);
        self.add(&format!(
            "[[event]]\nkind = \"link_down\"\nat = \"{begin}us\"\nbetween = [\"{leaf}\", \"{spine}\"]\n"
        ));
        let places = vec![self.port_name(lost), self.port_name(peer)];
        Truth::of(Some(Cause::FailedLink), places).beginning(begin)
    }

    fn slow_receiver(&mut self) -> Truth {
        let host = self.some_host();
        let begin = self.begin();
        let rate = 2 + self.below(13);
        self.flows_to(host, 2, 0);
        let name = self.name(host);
        self.add(&format!(
            "[[event]]\nkind = \"drain\"\nat = \"{begin}us\"\nhosts = [\"{name}\"]\nrate = \"{rate}Gb/s\"\n"
        ));
        self.at_edge(Cause::SlowReceiver, host).beginning(begin)
    }

    fn incast(&mut self) -> Truth {
        let host = self.some_host();
        let begin = self.begin();
        let count = 4 + self.below(4);
        self.flows_to(host, count, begin);
        self.at_edge(Cause::Incast, host).beginning(begin)
    }

    /// Every host sends to the next at full speed: all links of hosts are full, and nobody is in anybody's way.
    fn full_and_healthy(&mut self) -> Truth {
        self.add(
            "[[workload]]\nkind = \"permutation\"\npattern = \"shift\"\ndistance = 1\nbytes = \"1GB\"\n",
        );
        Truth::of(None, Vec::new())
    }

    fn deadlock(&mut self) -> Truth {
        let begin = self.begin();
        self.add(&format!(
            "[[workload]]\nkind = \"permutation\"\npattern = \"shift\"\ndistance = 3\nroute = \"clockwise\"\nbytes = \
             \"1GB\"\n[[event]]\nkind = \"stop_sources\"\nat = \"{begin}us\"\n"
        ));
        let switches = self.nodes(|node| self.topology.node(node).kind == NodeKind::Switch);
        let trunks = switches.into_iter().flat_map(|switch| self.trunks(switch));
        let places = trunks.map(|port| self.port_name(port)).collect();
        Truth::of(Some(Cause::Deadlock), places).beginning(begin)
    }

    /// A leaf whose traffic fits on its uplinks however it is spread, until one of them fails.
    fn failed_link(&mut self) -> Option<Truth> {
        let host = self.some_host();
        let leaf = self.leaf_of(host);
        let uplinks = self.trunks(leaf);
        let lost = uplinks[self.below(uplinks.len())];
        let begin = self.begin();
        // Three on one cable and one on the other is 75 of 80 Gb/s; all four on one would be too much from the start.
        let spine = |port: PortIndex| self.topology.neighbour(port).map(|node| node.name.clone());
        let far = self.senders(host, 4);
        let near = self.hosts_of(leaf);
        for (from, to) in near.into_iter().take(4).zip(far) {
            let (from, to) = (self.name(from), self.name(to));
            self.add(&format!(
                "[[workload]]\nkind = \"flow\"\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = \"1GB\"\n"
            ));
        }
        let other = uplinks.iter().filter(|&&uplink| uplink != lost);
        let mut downs = vec![lost];
        // With three spines, two must fail to make the third too narrow.
        downs.extend(other.skip(1).copied());
        let names: Vec<String> = downs.iter().filter_map(|&port| spine(port)).collect();
        let leaf_name = self.name(leaf);
        for name in names {
            self.add(&format!(
                "[[event]]\nkind = \"link_down\"\nat = \"{begin}us\"\nbetween = [\"{leaf_name}\", \"{name}\"]\n"
            ));
        }
        let ends = downs
            .iter()
            .flat_map(|&port| [Some(port), self.topology.peer(port)]);
        let places = ends.flatten().map(|port| self.port_name(port)).collect();
        Some(Truth::of(Some(Cause::FailedLink), places).beginning(begin))
    }

    fn degraded_link(&mut self) -> Truth {
        let host = self.some_host();
        let uplinks = self.trunks(self.leaf_of(host));
        let port = uplinks[self.below(uplinks.len())];
        let peer = self.topology.peer(port).unwrap_or(port);
        let begin = self.begin();
        let rate = [1e-7, 3e-7][self.below(2)];
        let (a, b) = (
            self.name(self.topology.port(port).node),
            self.name(self.topology.port(peer).node),
        );
        self.add(&format!(
            "[[event]]\nkind = \"bit_errors\"\nat = \"{begin}us\"\nbetween = [\"{a}\", \"{b}\"]\nbit_error_rate = {rate}\n"
        ));
        let places = vec![self.port_name(port), self.port_name(peer)];
        Truth::of(Some(Cause::DegradedLink), places).beginning(begin)
    }

    /// Three of four flows of a leaf go by one uplink that carries two.
    fn hash_collision(&mut self) -> Option<Truth> {
        let host = self.some_host();
        let leaf = self.leaf_of(host);
        let uplinks = self.trunks(leaf);
        let crowded = uplinks[self.below(uplinks.len())];
        let free = *uplinks.iter().find(|&&uplink| uplink != crowded)?;
        let near = self.hosts_of(leaf);
        // One leaf for all of them, or the crowd would not fit at the other side either.
        let other = *self.senders(host, 1).first()?;
        let there = self.leaf_of(other);
        let far = self.hosts_of(there);
        for (number, (from, to)) in near.into_iter().zip(far).take(4).enumerate() {
            let way = if number < 3 { crowded } else { free };
            let spine = self.topology.neighbour(way)?.name.clone();
            let path = [self.name(leaf), spine, self.name(there)].map(|node| format!("\"{node}\""));
            let (from, to) = (self.name(from), self.name(to));
            self.add(&format!(
                "[[workload]]\nkind = \"flow\"\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = \"1GB\"\npath = [{}]\n",
                path.join(", ")
            ));
        }
        let peer = self.topology.peer(crowded)?;
        let places = vec![self.port_name(crowded), self.port_name(peer)];
        Some(Truth::of(Some(Cause::HashCollision), places))
    }

    /// A spine without PFC between leaves that have it.
    fn no_pfc(&mut self) -> Option<Truth> {
        let host = self.some_host();
        let uplinks = self.trunks(self.leaf_of(host));
        let port = uplinks[self.below(uplinks.len())];
        let spine = self.topology.neighbour(port)?.name.clone();
        let begin = self.begin();
        // Two of each leaf: more would not fit on the cable to the spine.
        let mut of_leaf: Vec<NodeIndex> = Vec::new();
        for from in self.senders(host, usize::MAX) {
            let leaf = self.leaf_of(from);
            if of_leaf.iter().filter(|&&known| known == leaf).count() == 2 {
                continue;
            }
            of_leaf.push(leaf);
            let path = [self.leaf_of(from), self.leaf_of(host)].map(|leaf| self.name(leaf));
            let (from, to) = (self.name(from), self.name(host));
            self.add(&format!(
                "[[workload]]\nkind = \"flow\"\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = \"1GB\"\nstart = \"{begin}us\"\n\
                 path = [\"{}\", \"{spine}\", \"{}\"]\n",
                path[0], path[1]
            ));
        }
        self.add(&format!(
            "[[switch_group]]\nnames = [\"{spine}\"]\nbuffer = \"6MiB\"\nlossless = []\n"
        ));
        // Its ports are named with it: whoever is not obeyed knows the cable.
        let node = self.topology.find_node(&spine)?;
        let ports = self.topology.node(node).ports.iter();
        let mut places: Vec<String> = ports.map(|&port| self.port_name(port)).collect();
        places.push(spine);
        Some(Truth::of(Some(Cause::Misconfiguration), places).beginning(begin))
    }

    /// A leaf that does not mark, with an incast among its own hosts, while others mark as they should.
    fn no_ecn(&mut self) -> Option<Truth> {
        let host = self.some_host();
        let leaf = self.leaf_of(host);
        let elsewhere = *self.senders(host, 1).first()?;
        for to in [host, elsewhere] {
            let mut near = self.hosts_of(self.leaf_of(to));
            near.retain(|&other| other != to);
            let to = self.name(to);
            for from in near.into_iter().take(3) {
                let from = self.name(from);
                self.add(&format!(
                    "[[workload]]\nkind = \"flow\"\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = \"1GB\"\n"
                ));
            }
        }
        let name = self.name(leaf);
        self.add(&format!(
            "[[switch_group]]\nnames = [\"{name}\"]\nbuffer = \"6MiB\"\necn = []\n"
        ));
        Some(Truth::of(Some(Cause::Misconfiguration), vec![name]))
    }
}
