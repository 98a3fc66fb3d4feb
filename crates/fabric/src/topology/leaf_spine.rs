//! Two tiers: every leaf is linked to every spine.

use super::{Builder, Cable, TopologyError, at_least, hosts, running, switches};
use crate::plan::Network;

/// Leaves `leaf0` … with hosts, each linked to all spines `spine0` …; hosts are numbered leaf by leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafSpine {
    /// How many leaves.
    pub leaves: u32,
    /// How many spines.
    pub spines: u32,
    /// How many hosts on each leaf.
    pub hosts_per_leaf: u32,
    /// The cable of each host.
    pub cable: Cable,
    /// The cables between leaf and spine.
    pub uplink: Cable,
}

impl LeafSpine {
    /// The network.
    ///
    /// # Errors
    /// If a count or a rate is zero.
    pub fn build(&self) -> Result<Network, TopologyError> {
        at_least("leaves", self.leaves, 1)?;
        at_least("spines", self.spines, 1)?;
        at_least("hosts_per_leaf", self.hosts_per_leaf, 1)?;
        running("rate", self.cable.rate)?;
        running("uplink_rate", self.uplink.rate)?;
        let mut builder = Builder::default();
        let count = self.leaves * self.hosts_per_leaf;
        let hosts = hosts(&mut builder, count, |host| host / self.hosts_per_leaf);
        let leaves = switches(&mut builder, "leaf", self.leaves, 1);
        let spines = switches(&mut builder, "spine", self.spines, 2);
        for (index, host) in hosts.iter().enumerate() {
            let leaf = leaves[index / self.hosts_per_leaf as usize];
            builder.link(*host, leaf, self.cable);
        }
        for leaf in &leaves {
            for spine in &spines {
                builder.link(*leaf, *spine, self.uplink);
            }
        }
        builder.finish()
    }

    /// What the hosts of a leaf can offer over what its uplinks carry.
    pub fn oversubscription(&self) -> f64 {
        let down = f64::from(self.hosts_per_leaf) * self.cable.rate.as_bps() as f64;
        down / (f64::from(self.spines) * self.uplink.rate.as_bps() as f64)
    }
}
