//! What a manager has programmed into the agents of a subnet, as the congestion control of a plan.
//!
//! ```text
//! OpenSM ─► CC datagrams ─► agents (SwitchCongestionSetting, CACongestionSetting, CongestionControlTable)
//!                              │
//!                              └─► Programmed ─► a scenario's table, or a plan with the same nodes
//! ```
//!
//! Bits of a mask are numbered from the right end of its 32 bytes, by port number; a plan's ports count from zero.

use softfabric_subnet::agent::{Agent, Fabric};
use softfabric_subnet::{NodeId, Subnet};
use softfabric_transport::rate::{InjectionDelay, InjectionTable, TABLE_ENTRIES, TIMER_UNIT};
use softfabric_units::Bytes;
use softfabric_wire::mad::congestion::{ControlTableEntry, LevelReaction as Reaction};
use thiserror::Error;

use crate::plan::{
    AdapterCongestion, InfinibandCongestion, LevelReaction, LinkLayer, NodeKind, Plan, PortId,
    SwitchCongestion, SwitchPorts,
};

/// Entries of one block of a control table.
const BLOCK: usize = 64;

/// Settings that no plan has.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CongestionError {
    /// Flows of one port and service level react together.
    #[error("{node} reacts by port and service level; only reactions by queue pair are simulated")]
    ByPort {
        /// The adapter.
        node: String,
    },
    /// Ports of a switch have settings of their own.
    #[error(
        "port {port} of {node} has a setting of its own; only settings of whole switches are simulated"
    )]
    PortSetting {
        /// The switch.
        node: String,
        /// The port's number.
        port: usize,
    },
    /// Two adapters react differently.
    #[error("{node} reacts otherwise than {first}; only adapters that are all alike are simulated")]
    AdaptersDiffer {
        /// The first adapter.
        first: String,
        /// Another one.
        node: String,
    },
    /// A table ends past what there is room for.
    #[error("the control table of {node} goes up to index {limit}; at most {} is simulated", TABLE_ENTRIES - 1)]
    Table {
        /// The adapter.
        node: String,
        /// The highest index.
        limit: u16,
    },
    /// There are no adapters.
    #[error("there are no adapters")]
    NoAdapters,
    /// The plan is another network.
    #[error("the plan has {found} nodes of InfiniBand, and the subnet {needed}")]
    OtherNetwork {
        /// In the plan; none on Ethernet.
        found: usize,
        /// In the subnet.
        needed: usize,
    },
}

/// What the agents of a subnet hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Programmed {
    /// What each switch marks, in the order of the nodes.
    pub switches: Vec<(NodeId, SwitchCongestion)>,
    /// How all adapters react.
    pub hosts: AdapterCongestion,
}

impl Programmed {
    /// Reads the agents.
    ///
    /// # Errors
    /// If they hold what cannot be simulated.
    pub fn read(fabric: &Fabric) -> Result<Self, CongestionError> {
        let subnet = fabric.subnet();
        let mut switches = Vec::new();
        let mut hosts: Option<(String, AdapterCongestion)> = None;
        for (number, node) in subnet.nodes() {
            let agent = fabric.agent(number);
            if node.is_switch() {
                switches.push((number, switch(agent, number, subnet)?));
                continue;
            }
            let found = adapter(agent, &node.id)?;
            match &hosts {
                Some((_, known)) if *known == found => {}
                Some((first, _)) => {
                    return Err(CongestionError::AdaptersDiffer {
                        first: first.clone(),
                        node: node.id.clone(),
                    });
                }
                None => hosts = Some((node.id.clone(), found)),
            }
        }
        let (_, hosts) = hosts.ok_or(CongestionError::NoAdapters)?;
        Ok(Self { switches, hosts })
    }

    /// The congestion control of a fabric whose switches are all set alike; `None` where they are not.
    pub fn alike(&self) -> Option<InfinibandCongestion> {
        let [(_, first), others @ ..] = &self.switches[..] else {
            return None;
        };
        let alike = others.iter().all(|(_, other)| other == first);
        alike.then(|| InfinibandCongestion {
            switches: vec![first.clone()],
            hosts: self.hosts.clone(),
        })
    }

    /// Puts the settings into a plan whose nodes are those of the subnet, as [`subnet`](super::subnet()) makes it. Switches
    /// of one profile whose settings differ get profiles of their own.
    ///
    /// # Errors
    /// If the plan is of another network; it is unchanged then.
    pub fn apply(&self, plan: &mut Plan) -> Result<(), CongestionError> {
        let is_switch = |kind: &NodeKind| matches!(kind, NodeKind::Switch { .. });
        let of_plan = plan
            .network
            .nodes
            .iter()
            .filter(|node| is_switch(&node.kind));
        let found = of_plan.count();
        let there = |(node, _): &(NodeId, SwitchCongestion)| {
            let node = plan.network.nodes.get(node.0 as usize);
            node.is_some_and(|node| is_switch(&node.kind))
        };
        let same = found == self.switches.len() && self.switches.iter().all(there);
        let settings = match &mut plan.link_layer {
            LinkLayer::Infiniband(settings) if same => settings,
            other => {
                return Err(CongestionError::OtherNetwork {
                    found: other.infiniband().map_or(0, |_| found),
                    needed: self.switches.len(),
                });
            }
        };
        let mut congestion = InfinibandCongestion {
            switches: Vec::new(),
            hosts: self.hosts.clone(),
        };
        let (mut profiles, mut ethernet) = (Vec::new(), Vec::new());
        let mut made: Vec<(u32, &SwitchCongestion)> = Vec::new();
        for (node, setting) in &self.switches {
            let kind = &mut plan.network.nodes[node.0 as usize].kind;
            let NodeKind::Switch { profile } = *kind else {
                continue;
            };
            let known = made.iter().position(|made| *made == (profile, setting));
            let index = known.unwrap_or_else(|| {
                made.push((profile, setting));
                profiles.push(settings.switches[profile as usize].clone());
                ethernet.extend(plan.switch_profiles.get(profile as usize).cloned());
                congestion.switches.push(setting.clone());
                made.len() - 1
            });
            *kind = NodeKind::Switch {
                profile: index as u32,
            };
        }
        settings.switches = profiles;
        settings.congestion = Some(Box::new(congestion));
        plan.switch_profiles = ethernet;
        Ok(())
    }
}

fn switch(
    agent: &Agent,
    node: NodeId,
    subnet: &Subnet,
) -> Result<SwitchCongestion, CongestionError> {
    let held = &agent.congestion;
    for (block, setting) in &held.ports {
        if let Some(place) = setting.ports.iter().position(|port| port.valid) {
            return Err(CongestionError::PortSetting {
                node: subnet.node(node).id.clone(),
                port: *block as usize * setting.ports.len() + place,
            });
        }
    }
    let setting = &held.switch;
    Ok(SwitchCongestion {
        threshold: setting.threshold,
        packet_size: Bytes::new(u64::from(setting.packet_size) * 64),
        marking_rate: setting.marking_rate,
        victims: ports(&setting.victim_mask, node, subnet),
        credit_threshold: setting.starvation_threshold,
        credit_ports: ports(&setting.credit_mask, node, subnet),
    })
}

/// The ports of a mask, by the shortest name that says the same.
fn ports(mask: &[u8; 32], node: NodeId, subnet: &Subnet) -> SwitchPorts {
    let is_set = |port: u8| mask[31 - usize::from(port / 8)] >> (port % 8) & 1 != 0;
    let all: Vec<_> = subnet.external_ports(node).collect();
    let at_host = |peer: Option<softfabric_subnet::PortRef>| {
        peer.is_some_and(|peer| !subnet.node(peer.node).is_switch())
    };
    let set: Vec<PortId> = all
        .iter()
        .filter(|(at, _)| is_set(at.port))
        .map(|(at, _)| PortId(u16::from(at.port) - 1))
        .collect();
    if set.is_empty() {
        SwitchPorts::None
    } else if set.len() == all.len() {
        SwitchPorts::All
    } else if (all.iter()).all(|(at, port)| is_set(at.port) == at_host(port.peer())) {
        SwitchPorts::Hosts
    } else {
        SwitchPorts::These(set)
    }
}

fn adapter(agent: &Agent, node: &str) -> Result<AdapterCongestion, CongestionError> {
    let held = &agent.congestion;
    if held.adapter.port_control & 1 != 0 {
        let node = node.to_owned();
        return Err(CongestionError::ByPort { node });
    }
    let level = |reaction: Reaction| LevelReaction {
        timer: TIMER_UNIT * u64::from(reaction.timer),
        increase: reaction.increase,
        trigger: reaction.trigger,
        minimum: reaction.minimum,
    };
    let limit = held.table.values().map(|block| block.limit).max();
    let limit = limit.unwrap_or_default();
    let entry = |index: usize| {
        let block = held.table.get(&((index / BLOCK) as u32));
        let entry = block.map_or(ControlTableEntry::default(), |block| {
            block.entries[index % BLOCK]
        });
        InjectionDelay::new(entry.shift, entry.multiplier)
    };
    // The fields of an entry have as many bits as a delay's, so each one is a delay.
    let entries: Option<Vec<_>> = (0..=usize::from(limit).min(TABLE_ENTRIES))
        .map(entry)
        .collect();
    let table = entries.and_then(|entries| InjectionTable::new(&entries));
    let table = table.ok_or_else(|| CongestionError::Table {
        node: node.to_owned(),
        limit,
    })?;
    Ok(AdapterCongestion {
        levels: held.adapter.levels.map(level),
        table,
    })
}

#[cfg(test)]
mod tests {
    use softfabric_units::Span;
    use softfabric_wire::mad::congestion::{
        CongestionControlTable, SwitchCongestionSetting, SwitchPortCongestionSetting,
        SwitchPortSetting,
    };

    use super::*;
    use crate::scenario::Scenario;

    const TWO_SWITCHES: &str = r#"
[fabric]
kind = "infiniband"
[topology]
kind = "dumbbell"
left = 2
right = 1
[[workload]]
kind = "flow"
from = "h0"
to = "h2"
bytes = "1MB"
"#;

    fn plan() -> Plan {
        Scenario::from_toml(TWO_SWITCHES, "two.toml")
            .unwrap()
            .plan()
            .unwrap()
    }

    /// The agents of the plan's network, by node.
    fn agents(plan: &Plan) -> Fabric {
        let up = vec![true; plan.network.links.len()];
        Fabric::new(super::super::subnet(&plan.network, &up).unwrap())
    }

    fn nodes(fabric: &Fabric, switches: bool) -> Vec<NodeId> {
        let nodes = fabric.subnet().nodes();
        let wanted = nodes.filter(|(_, node)| node.is_switch() == switches);
        wanted.map(|(node, _)| node).collect()
    }

    /// Congestion control as a manager would set it.
    fn programmed(fabric: &mut Fabric) {
        for node in nodes(fabric, true) {
            fabric.agent_mut(node).congestion.switch = SwitchCongestionSetting {
                threshold: 9,
                packet_size: 4,
                marking_rate: 7,
                victim_mask: [0xff; 32],
                starvation_threshold: 2,
                ..SwitchCongestionSetting::default()
            };
        }
        for node in nodes(fabric, false) {
            let congestion = &mut fabric.agent_mut(node).congestion;
            congestion.adapter.levels[3] = Reaction {
                timer: 100,
                increase: 2,
                trigger: 5,
                minimum: 1,
            };
            for block in 0..2 {
                let mut table = CongestionControlTable {
                    limit: 80,
                    ..CongestionControlTable::default()
                };
                for (place, entry) in table.entries.iter_mut().enumerate() {
                    entry.shift = 1;
                    entry.multiplier = (block * BLOCK + place) as u16;
                }
                congestion.table.insert(block as u32, table);
            }
        }
    }

    #[test]
    fn what_agents_hold_is_a_setting() {
        let plan = plan();
        let mut fabric = agents(&plan);
        programmed(&mut fabric);
        let found = Programmed::read(&fabric).unwrap();
        assert_eq!(found.switches.len(), 2);
        for (_, setting) in &found.switches {
            assert_eq!((setting.threshold, setting.marking_rate), (9, 7));
            assert_eq!(setting.packet_size, Bytes::new(256));
            assert_eq!(setting.victims, SwitchPorts::All);
            assert_eq!(setting.credit_threshold, 2);
            assert_eq!(setting.credit_ports, SwitchPorts::None);
        }
        let alike = found.alike().expect("both are set alike");
        assert_eq!(alike.switches, [found.switches[0].1.clone()]);
        assert_eq!(alike.hosts, found.hosts);
        let level = found.hosts.levels[3];
        assert_eq!(level.timer, Span::nanos(102_400));
        assert_eq!((level.increase, level.trigger, level.minimum), (2, 5, 1));
        assert_eq!(found.hosts.levels[0].increase, 0, "not set, no reaction");
        let entries = found.hosts.table.entries();
        assert_eq!(entries.len(), 81);
        assert_eq!(entries[70].multiplier(), 70);
    }

    #[test]
    fn a_mask_has_the_shortest_name() {
        let plan = plan();
        let fabric = agents(&plan);
        let left = nodes(&fabric, true)[0];
        let hosts: Vec<u8> = fabric
            .subnet()
            .external_ports(left)
            .filter(|(_, port)| {
                let peer = port.peer();
                peer.is_some_and(|peer| !fabric.subnet().node(peer.node).is_switch())
            })
            .map(|(at, _)| at.port)
            .collect();
        assert_eq!(hosts.len(), 2);
        let mask = |numbers: &[u8]| {
            let mut mask = [0; 32];
            for port in numbers {
                mask[31 - usize::from(port / 8)] |= 1 << (port % 8);
            }
            ports(&mask, left, fabric.subnet())
        };
        assert_eq!(mask(&[]), SwitchPorts::None);
        assert_eq!(mask(&[0, 200]), SwitchPorts::None, "no such ports");
        assert_eq!(mask(&[1, 2, 3]), SwitchPorts::All);
        assert_eq!(ports(&[0xff; 32], left, fabric.subnet()), SwitchPorts::All);
        assert_eq!(mask(&hosts), SwitchPorts::Hosts);
        let one = SwitchPorts::These(vec![PortId(u16::from(hosts[1]) - 1)]);
        assert_eq!(mask(&hosts[1..]), one);
    }

    #[test]
    fn switches_that_differ_get_profiles_of_their_own() {
        let mut plan = plan();
        let mut fabric = agents(&plan);
        programmed(&mut fabric);
        let [left, right] = nodes(&fabric, true)[..] else {
            panic!("two switches");
        };
        let setting = &mut fabric.agent_mut(right).congestion.switch;
        (setting.threshold, setting.packet_size) = (3, 1);
        let found = Programmed::read(&fabric).unwrap();
        assert_eq!(found.alike(), None);
        found.apply(&mut plan).unwrap();
        let settings = plan.link_layer.infiniband().unwrap();
        let congestion = settings.congestion.as_ref().unwrap();
        let profile = |node: NodeId| match plan.network.nodes[node.0 as usize].kind {
            NodeKind::Switch { profile } => profile as usize,
            NodeKind::Host { .. } => panic!("a switch"),
        };
        assert_eq!(settings.switches.len(), 2);
        assert_eq!(congestion.switches[profile(left)].threshold, 9);
        assert_eq!(congestion.switches[profile(right)].threshold, 3);
        assert_eq!(
            congestion.switches[profile(right)].packet_size,
            Bytes::new(64)
        );
        assert_eq!(congestion.hosts, found.hosts);
        assert_eq!(plan.check(), Vec::new());
    }

    #[test]
    fn what_cannot_be_simulated_is_refused() {
        let mut plan = plan();
        let refused = |change: &dyn Fn(&mut Fabric)| {
            let mut fabric = agents(&plan);
            programmed(&mut fabric);
            change(&mut fabric);
            Programmed::read(&fabric).map_err(|error| error.to_string())
        };
        let text = |change: &dyn Fn(&mut Fabric)| refused(change).unwrap_err();
        let host = |fabric: &Fabric| nodes(fabric, false)[1];
        let switch = |fabric: &Fabric| nodes(fabric, true)[1];
        let by_port = text(&|fabric| {
            fabric
                .agent_mut(host(fabric))
                .congestion
                .adapter
                .port_control = 1;
        });
        assert!(
            by_port.contains("reacts by port and service level"),
            "{by_port}"
        );
        let differ = text(&|fabric| {
            fabric.agent_mut(host(fabric)).congestion.adapter.levels[3].increase = 9;
        });
        assert!(differ.contains("reacts otherwise than"), "{differ}");
        let long = text(&|fabric| {
            for node in nodes(fabric, false) {
                let table = &mut fabric.agent_mut(node).congestion.table;
                table.get_mut(&0).unwrap().limit = 128;
            }
        });
        assert!(long.contains("up to index 128; at most 127"), "{long}");
        let port = text(&|fabric| {
            let mut block = SwitchPortCongestionSetting::default();
            block.ports[2] = SwitchPortSetting {
                valid: true,
                ..SwitchPortSetting::default()
            };
            let ports = &mut fabric.agent_mut(switch(fabric)).congestion.ports;
            ports.insert(0, block);
        });
        assert!(port.starts_with("port 2 of"), "{port}");
        let found = refused(&|_| {}).unwrap();
        plan.network.nodes.truncate(1);
        assert!(found.apply(&mut plan).is_err());
        plan.link_layer = LinkLayer::Ethernet;
        let error = found.apply(&mut plan).unwrap_err().to_string();
        assert!(error.contains("has 0 nodes of InfiniBand"), "{error}");
    }
}
