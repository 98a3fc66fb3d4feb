//! `[[workload]]`: the flows.

use softfabric_units::{Bytes, Class, Rate, Span, Time};

use super::network::Shape;
use super::tcp::port_of;
use super::{one, select};
use crate::plan::{
    Flow, GroupId, HostProfile, LARGEST_MESSAGE, MulticastGroup, Network, NodeId, NodeKind,
    Operation, PortId, Start, TriggerId,
};
use crate::scenario::error::Problems;
use crate::scenario::names::{Names, Wanted};
use crate::scenario::traffic::Common;
use crate::scenario::{
    FlowEntry, OperationKind, Pattern, Route, Scenario, SizePoint, Sizes, Workload,
};
use crate::workload::{self, Demand, Poisson, SizeDistribution};

/// The class of traffic that says nothing of it.
pub(super) const CLASS: u8 = 3;

/// What one carries where a flow is larger than that.
const PIECE: Bytes = Bytes::gib(1);

pub(super) fn flows(
    scenario: &Scenario,
    shape: &Shape,
    profiles: &[HostProfile],
    groups: &[MulticastGroup],
    problems: &mut Problems<'_>,
) -> Vec<Flow> {
    let mut maker = Maker {
        scenario,
        shape,
        profiles,
        groups,
        names: Names::new(&shape.network),
        problems,
        flows: Vec::new(),
    };
    for (place, workload) in scenario.workload.iter().enumerate() {
        maker.workload(place, workload);
    }
    maker.flows
}

struct Maker<'m, 's> {
    scenario: &'m Scenario,
    shape: &'m Shape,
    profiles: &'m [HostProfile],
    groups: &'m [MulticastGroup],
    names: Names<'m>,
    problems: &'m mut Problems<'s>,
    flows: Vec<Flow>,
}

impl Maker<'_, '_> {
    fn workload(&mut self, place: usize, workload: &Workload) {
        let field = format!("workload[{place}]");
        let common = workload.common();
        let start = common.start.unwrap_or(Time::ZERO);
        let seed = self.scenario.seed.unwrap_or(1);
        let stream = place as u64;
        match workload {
            Workload::Incast {
                fan_in,
                from,
                to,
                bytes,
                stagger,
                ..
            } => {
                let chosen = self.incast(&field, *fan_in, from.as_deref(), to.as_deref());
                let Some((senders, receiver)) = chosen else {
                    return;
                };
                if !self.some_bytes(&field, *bytes) {
                    return;
                }
                let stagger = stagger.unwrap_or(Span::ZERO);
                let demands = workload::incast(&senders, receiver, *bytes, start, stagger);
                self.demands(&demands, common, None);
            }
            Workload::Permutation {
                hosts,
                bytes,
                pattern,
                distance,
                route,
                ..
            } => {
                let Some(hosts) = self.several(&field, hosts.as_deref()) else {
                    return;
                };
                if !self.some_bytes(&field, *bytes) {
                    return;
                }
                let shift = self.distance(&field, *pattern, *distance, hosts.len());
                let demands = match shift {
                    Some(distance) => workload::shifted(&hosts, distance, *bytes, start),
                    None => workload::permutation(&hosts, *bytes, start, seed, stream),
                };
                let clockwise = *route == Some(Route::Clockwise);
                self.demands(&demands, common, clockwise.then_some(field.as_str()));
            }
            Workload::AllToAll {
                hosts,
                bytes,
                stagger,
                ..
            } => {
                let Some(hosts) = self.several(&field, hosts.as_deref()) else {
                    return;
                };
                if !self.some_bytes(&field, *bytes) {
                    return;
                }
                let stagger = stagger.unwrap_or(Span::ZERO);
                let demands = workload::all_to_all(&hosts, *bytes, start, stagger);
                self.demands(&demands, common, None);
            }
            Workload::Poisson {
                hosts,
                load,
                sizes,
                distribution,
                duration,
                ..
            } => {
                let Some(hosts) = self.several(&field, hosts.as_deref()) else {
                    return;
                };
                let sizes = self.sizes(&field, *sizes, distribution.as_deref());
                let (Some(sizes), Some(rate)) = (sizes, self.load(&field, *load, &hosts)) else {
                    return;
                };
                let arrivals = Poisson {
                    hosts: &hosts,
                    rate,
                    load: *load,
                    sizes: &sizes,
                    start,
                    end: start.saturating_add(*duration),
                };
                let demands = workload::poisson(&arrivals, seed, stream);
                self.demands(&demands, common, None);
            }
            Workload::Flow {
                from,
                to,
                bytes,
                count,
                path,
                ..
            } => {
                let entry = FlowEntry {
                    from: from.clone(),
                    to: to.clone(),
                    bytes: *bytes,
                    path: path.clone(),
                    ..FlowEntry::default()
                };
                for _ in 0..count.unwrap_or(1) {
                    self.entry(&field, &entry, common);
                }
            }
            Workload::Flows { flow, .. } => {
                for (number, entry) in flow.iter().enumerate() {
                    self.entry(&format!("{field}.flow[{number}]"), entry, common);
                }
            }
        }
    }

    fn incast(
        &mut self,
        field: &str,
        fan_in: Option<u32>,
        from: Option<&[String]>,
        to: Option<&str>,
    ) -> Option<(Vec<NodeId>, NodeId)> {
        let receiver = match to {
            Some(name) => {
                let field = format!("{field}.to");
                one(&self.names, name, Wanted::Host, &field, self.problems)?
            }
            None => self.shape.network.hosts().last()?,
        };
        let mut senders = match from {
            Some(patterns) => {
                let field = format!("{field}.from");
                let senders = select(&self.names, patterns, Wanted::Host, &field, self.problems);
                if let Some(place) = senders.iter().position(|sender| *sender == receiver) {
                    let name = &self.shape.network.nodes[receiver.index()].name;
                    let found = format!("`{name}`, the receiver itself, as sender {place}");
                    self.problems
                        .add(field, found, "other hosts than the receiver", None);
                    return None;
                }
                senders
            }
            None => self
                .shape
                .network
                .hosts()
                .filter(|host| *host != receiver)
                .collect(),
        };
        if let Some(fan_in) = fan_in {
            let there = senders.len();
            if fan_in as usize > there {
                let allowed = format!("at most {there}, the number of hosts that can send");
                self.problems
                    .add(format!("{field}.fan_in"), fan_in.to_string(), allowed, None);
                return None;
            }
            senders.truncate(fan_in as usize);
        }
        Some((senders, receiver))
    }

    /// The hosts of a list, or all of them; at least two.
    fn several(&mut self, field: &str, hosts: Option<&[String]>) -> Option<Vec<NodeId>> {
        let field = format!("{field}.hosts");
        let before = self.problems.len();
        let hosts = match hosts {
            Some(patterns) => select(&self.names, patterns, Wanted::Host, &field, self.problems),
            None => self.shape.network.hosts().collect(),
        };
        if self.problems.len() > before {
            return None;
        }
        if hosts.len() < 2 {
            let found = format!("{} hosts", hosts.len());
            self.problems.add(field, found, "at least two hosts", None);
            return None;
        }
        Some(hosts)
    }

    fn distance(
        &mut self,
        field: &str,
        pattern: Option<Pattern>,
        distance: Option<u32>,
        count: usize,
    ) -> Option<usize> {
        if pattern != Some(Pattern::Shift) {
            if distance.is_some() {
                let allowed = "only with `pattern = \"shift\"`";
                let field = format!("{field}.distance");
                self.problems.add(field, "a distance", allowed, None);
            }
            return None;
        }
        let distance = distance.map_or(count / 2, |distance| distance as usize);
        if distance.is_multiple_of(count) {
            let found = format!("{distance} among {count} hosts, which leads back to the sender");
            let allowed = format!("1 to {}", count - 1);
            self.problems
                .add(format!("{field}.distance"), found, allowed, None);
        }
        Some(distance)
    }

    fn sizes(
        &mut self,
        field: &str,
        known: Option<Sizes>,
        points: Option<&[SizePoint]>,
    ) -> Option<SizeDistribution> {
        let Some(points) = points else {
            return Some(match known {
                Some(Sizes::Hadoop) => SizeDistribution::hadoop(),
                Some(Sizes::WebSearch) | None => SizeDistribution::web_search(),
            });
        };
        if known.is_some() {
            let allowed = "either `sizes` or `distribution`";
            let field = format!("{field}.sizes");
            self.problems.add(field, "both", allowed, None);
        }
        let points: Vec<_> = (points.iter())
            .map(|point| (point.bytes, point.percent))
            .collect();
        match SizeDistribution::from_percent(&points) {
            Ok(sizes) => Some(sizes),
            Err(error) => {
                let field = format!("{field}.distribution[{}]", error.place);
                self.problems.add(field, error.found, error.needed, None);
                None
            }
        }
    }

    /// Checks the load, and says the rate that it is a share of: that of the slowest host's links together.
    fn load(&mut self, field: &str, load: f64, hosts: &[NodeId]) -> Option<Rate> {
        if !(load > 0.0 && load <= 1.0) {
            let field = format!("{field}.load");
            let allowed = "above 0, at most 1, such as 0.5";
            self.problems
                .add(field, format!("the number {load}"), allowed, None);
            return None;
        }
        let rates = host_rates(&self.shape.network);
        (hosts.iter()).map(|host| rates[host.index()]).min()
    }

    fn some_bytes(&mut self, field: &str, bytes: Bytes) -> bool {
        if bytes.is_zero() {
            let field = format!("{field}.bytes");
            self.problems.add(field, "0B", "at least `1B`", None);
        }
        !bytes.is_zero()
    }

    /// Adds flows for demands; `clockwise` is the field to blame where there is no ring to go round.
    fn demands(&mut self, demands: &[Demand], common: Common<'_>, clockwise: Option<&str>) {
        if let Some(field) = clockwise.filter(|_| self.shape.ring.is_empty()) {
            let allowed = "only in a topology of kind `ring`";
            let field = format!("{field}.route");
            return self.problems.add(field, "`clockwise`", allowed, None);
        }
        let homes = clockwise.map(|_| self.homes());
        for demand in demands {
            let mut flow = self.flow(demand.source, demand.destination, demand.bytes, common);
            flow.start = Start::At(demand.start);
            if let Some(homes) = &homes {
                flow.path = Some(self.round(
                    homes[demand.source.index()],
                    homes[demand.destination.index()],
                ));
            }
            self.flows.push(flow);
        }
    }

    fn entry(&mut self, field: &str, entry: &FlowEntry, common: Common<'_>) {
        let names = &self.names;
        let from = format!("{field}.from");
        let to = format!("{field}.to");
        let source = one(names, &entry.from, Wanted::Host, &from, self.problems);
        let group = (self.groups.iter()).position(|group| group.name == entry.to);
        let destination = match group {
            Some(group) => source.and_then(|source| self.receiver(field, source, group)),
            None => one(names, &entry.to, Wanted::Host, &to, self.problems),
        };
        let path = entry.path.as_ref().map(|path| {
            let field = format!("{field}.path");
            (path.iter().enumerate())
                .filter_map(|(place, name)| {
                    let field = format!("{field}[{place}]");
                    one(&self.names, name, Wanted::Switch, &field, self.problems)
                })
                .collect()
        });
        let (Some(source), Some(destination)) = (source, destination) else {
            return;
        };
        if source == destination {
            let found = format!("`{}`, the sender itself", entry.to);
            return self.problems.add(to, found, "another host", None);
        }
        if !self.some_bytes(field, entry.bytes) {
            return;
        }
        let mut flow = self.flow(source, destination, entry.bytes, common);
        flow.path = path;
        self.own_settings(field, entry, common, &mut flow);
        if let Some(group) = group {
            self.send_to(field, group, entry, common, &mut flow);
        }
        self.flows.push(flow);
    }

    /// One of those who hear what a host sends to a group.
    fn receiver(&mut self, field: &str, source: NodeId, group: usize) -> Option<NodeId> {
        let group = &self.groups[group];
        let nodes = &self.shape.network.nodes;
        let name = |host: NodeId| nodes[host.index()].name.as_str();
        if !group.may_send(source) {
            let all = group.members.iter().chain(&group.senders);
            let all: Vec<&str> = all.map(|host| name(*host)).collect();
            self.problems.add(
                format!("{field}.from"),
                format!(
                    "`{}`, which is not in the group `{}`",
                    name(source),
                    group.name
                ),
                format!("a member of the group: {}", all.join(", ")),
                Some(format!("or add it to `send_only` of `{}`", group.name)),
            );
            return None;
        }
        let receiver = group.receivers(source).next();
        if receiver.is_none() {
            self.problems.add(
                format!("{field}.to"),
                format!("`{}`, in which nobody else is", group.name),
                "a group with another member than the sender",
                None,
            );
        }
        receiver
    }

    /// Makes a flow one to a group: datagrams of what it takes at most, unless the flow says less.
    fn send_to(
        &mut self,
        field: &str,
        group: usize,
        entry: &FlowEntry,
        common: Common<'_>,
        flow: &mut Flow,
    ) {
        if entry.operation.or(common.operation).is_some() {
            self.problems.add(
                format!("{field}.operation"),
                "an operation",
                "none where a flow goes to a multicast group: it is sent as datagrams",
                None,
            );
        }
        flow.operation = Operation::Multicast(GroupId(group as u32));
        let said = entry.message.or(common.message);
        flow.message = Some(said.unwrap_or(self.groups[group].mtu));
    }

    fn own_settings(
        &mut self,
        field: &str,
        entry: &FlowEntry,
        common: Common<'_>,
        flow: &mut Flow,
    ) {
        let begin = common.start.unwrap_or(Time::ZERO);
        let later = entry.start.unwrap_or(Span::ZERO);
        flow.start = match self.trigger(&format!("{field}.after"), entry.after) {
            Some(trigger) => Start::After(trigger, later),
            None => Start::At(begin.saturating_add(later)),
        };
        if let Some(class) = entry.class.and_then(Class::checked) {
            flow.class = class;
        }
        if let Some(kind) = entry.operation {
            flow.operation = operation(kind);
        }
        if let Some(message) = entry.message {
            flow.message = Some(message);
        }
        if let Some(capable) = entry.ecn {
            flow.ecn_capable = capable;
        }
        flow.dscp = entry.dscp;
        if let Some(group) = &entry.group {
            flow.group.clone_from(group);
        }
        if let Some(port) = entry.source_port {
            flow.udp_source_port = port;
        }
        if let Some(port) = entry.destination_port {
            flow.udp_destination_port = port;
        }
        flow.on_sent = self.trigger(&format!("{field}.on_sent"), entry.on_sent);
        flow.on_received = self.trigger(&format!("{field}.on_received"), entry.on_received);
    }

    fn trigger(&mut self, field: &str, number: Option<u32>) -> Option<TriggerId> {
        let number = number?;
        let count = self.scenario.trigger.len();
        if number as usize >= count {
            let found = format!("trigger {number} of {count}");
            let allowed = "the number of a `[[trigger]]`, from zero";
            self.problems.add(field, found, allowed, None);
            return None;
        }
        Some(TriggerId(number))
    }

    fn flow(&self, source: NodeId, destination: NodeId, bytes: Bytes, common: Common<'_>) -> Flow {
        let seed = self.scenario.seed.unwrap_or(1);
        let mut flow = Flow {
            source,
            destination,
            source_nic: PortId(0),
            destination_nic: PortId(0),
            bytes,
            message: common
                .message
                .or_else(|| (bytes > LARGEST_MESSAGE).then_some(PIECE)),
            operation: common.operation.map_or(Operation::Write, operation),
            start: Start::At(common.start.unwrap_or(Time::ZERO)),
            class: Class::checked(common.class.unwrap_or(CLASS)).unwrap_or_default(),
            dscp: None,
            ecn_capable: common.ecn.unwrap_or(true),
            udp_source_port: source_port(seed, self.flows.len() as u64),
            udp_destination_port: port_of(source, &self.shape.network, self.profiles),
            path: None,
            group: common
                .group
                .map_or_else(|| snake_case(common.kind), str::to_owned),
            on_sent: None,
            on_received: None,
        };
        set_source_port(self.scenario, &self.shape.network, self.profiles, &mut flow);
        flow
    }

    /// The place in the ring of each host's switch.
    fn homes(&self) -> Vec<usize> {
        let network = &self.shape.network;
        let mut homes = vec![0; network.nodes.len()];
        let place = |node: NodeId| self.shape.ring.iter().position(|switch| *switch == node);
        for link in &network.links {
            for (near, far) in [(link.a.node, link.b.node), (link.b.node, link.a.node)] {
                let is_host = matches!(network.nodes[near.index()].kind, NodeKind::Host { .. });
                if let Some(place) = place(far).filter(|_| is_host) {
                    homes[near.index()] = place;
                }
            }
        }
        homes
    }

    /// The switches from one place of the ring to another, clockwise, both included.
    fn round(&self, from: usize, to: usize) -> Vec<NodeId> {
        let ring = &self.shape.ring;
        let steps = (to + ring.len() - from) % ring.len();
        (0..=steps)
            .map(|step| ring[(from + step) % ring.len()])
            .collect()
    }
}

/// What each node's links carry together.
fn host_rates(network: &Network) -> Vec<Rate> {
    let mut rates = vec![0u64; network.nodes.len()];
    for link in &network.links {
        rates[link.a.node.index()] += link.rate.as_bps();
        rates[link.b.node.index()] += link.rate.as_bps();
    }
    rates.into_iter().map(Rate::bps).collect()
}

/// A port of 49152 to 65535 that differs from flow to flow and from seed to seed, as NICs hash their queue pairs into
/// it (IBTA vol. 1, annex A17, 17.9.1).
pub(super) fn source_port(seed: u64, flow: u64) -> u16 {
    let random = softfabric_units::Random::stream(seed, 0x706f_7274_0000_0000 ^ flow).bits();
    0xc000 | (random >> 50) as u16
}

/// Gives a flow the source port that its host gives to all of its queue pairs, if it does.
pub(super) fn set_source_port(
    scenario: &Scenario,
    network: &Network,
    profiles: &[HostProfile],
    flow: &mut Flow,
) {
    let NodeKind::Host { profile, .. } = network.nodes[flow.source.index()].kind else {
        return;
    };
    // A connection of TCP needs a port of its own.
    if profiles[profile as usize].tcp.is_some() {
        return;
    }
    let group = (profile as usize).checked_sub(1);
    let of_group = group.and_then(|group| scenario.host_group[group].source_port);
    if let Some(port) = of_group.or(scenario.host.source_port) {
        flow.udp_source_port = port;
    }
}

fn operation(kind: OperationKind) -> Operation {
    match kind {
        OperationKind::Write => Operation::Write,
        OperationKind::Send => Operation::Send,
        OperationKind::Read => Operation::Read,
    }
}

fn snake_case(kind: &str) -> String {
    let mut name = String::new();
    for letter in kind.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}
