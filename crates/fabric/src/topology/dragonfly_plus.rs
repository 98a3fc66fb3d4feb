//! Groups of leaves and spines, linked to each other by their spines.

use super::{Builder, Cable, TopologyError, at_least, hosts, running};
use crate::plan::{Network, NodeId};

/// A Dragonfly+ (Shpiner et al., "Dragonfly+: Low Cost Topology for Scaling Datacenters", HiPINEB 2017): in each group every
/// leaf `group{g}leaf{l}` is linked to every spine `group{g}spine{s}`, and spines to those of all other groups. Hosts are on
/// leaves, and numbered group by group and leaf by leaf.
///
/// ```text
///        group 0              group 1              group 2
///    spine    spine ─────── spine    spine ─────── spine    spine        every two groups are linked
///      │  ╲  ╱  │             │  ╲  ╱  │             │  ╲  ╱  │
///    leaf     leaf          leaf     leaf          leaf     leaf
/// ```
///
/// The shortest way between groups is leaf, spine, spine, leaf: up, across and down. Nothing on such ways goes across twice or
/// up after down, so queues that wait for each other make no circle, and no second class is needed. That ends where a lost
/// cable makes ways go across twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DragonflyPlus {
    /// How many groups.
    pub groups: u32,
    /// How many leaves each group has.
    pub leaves: u32,
    /// How many spines each group has.
    pub spines: u32,
    /// How many hosts on each leaf.
    pub hosts_per_leaf: u32,
    /// How many cables lead from each group to each other one. A group deals those to its spines in turn.
    pub global_links: u32,
    /// The cable of each host.
    pub cable: Cable,
    /// The cables between leaf and spine.
    pub trunk: Cable,
    /// The cables between groups.
    pub global: Cable,
}

impl DragonflyPlus {
    /// How many cables there are between switches.
    pub fn trunks(&self) -> u64 {
        let [groups, leaves, spines, each] =
            [self.groups, self.leaves, self.spines, self.global_links].map(u64::from);
        let inside = groups.saturating_mul(leaves).saturating_mul(spines);
        let pairs = groups.saturating_mul(groups.saturating_sub(1)) / 2;
        inside.saturating_add(pairs.saturating_mul(each))
    }

    /// The network.
    ///
    /// # Errors
    /// If there are fewer than two groups, or another count or a rate is zero.
    pub fn build(&self) -> Result<Network, TopologyError> {
        at_least("groups", self.groups, 2)?;
        at_least("leaves", self.leaves, 1)?;
        at_least("spines", self.spines, 1)?;
        at_least("hosts_per_leaf", self.hosts_per_leaf, 1)?;
        at_least("global_links", self.global_links, 1)?;
        running("rate", self.cable.rate)?;
        running("trunk_rate", self.trunk.rate)?;
        running("global_rate", self.global.rate)?;
        let mut builder = Builder::default();
        let count = self.groups * self.leaves * self.hosts_per_leaf;
        let hosts = hosts(&mut builder, count, |host| host / self.hosts_per_leaf);
        let mut tier = |name: &str, count: u32, tier: u8| -> Vec<Vec<NodeId>> {
            (0..self.groups)
                .map(|group| {
                    (0..count)
                        .map(|place| builder.switch(format!("group{group}{name}{place}"), tier))
                        .collect()
                })
                .collect()
        };
        let leaves = tier("leaf", self.leaves, 1);
        let spines = tier("spine", self.spines, 2);
        let by_leaf = hosts.chunks(self.hosts_per_leaf as usize);
        for (hosts, leaf) in by_leaf.zip(leaves.iter().flatten()) {
            for host in hosts {
                builder.link(*host, *leaf, self.cable);
            }
        }
        for (leaves, spines) in leaves.iter().zip(&spines) {
            for leaf in leaves {
                for spine in spines {
                    builder.link(*leaf, *spine, self.trunk);
                }
            }
        }
        for one in 0..self.groups {
            for other in one + 1..self.groups {
                for cable in 0..self.global_links {
                    let [a, b] = [(one, other), (other, one)].map(|(here, there)| {
                        spines[here as usize][self.spine_towards(here, there, cable)]
                    });
                    builder.link(a, b, self.global);
                }
            }
        }
        builder.finish()
    }

    /// The spine of a group that a cable towards another group is at: all cables of a group are counted, nearest group first,
    /// so that each group looks the same from inside.
    fn spine_towards(&self, here: u32, there: u32, cable: u32) -> usize {
        let distance = (there + self.groups - here) % self.groups;
        let number = u64::from(distance - 1) * u64::from(self.global_links) + u64::from(cable);
        (number % u64::from(self.spines)) as usize
    }
}
