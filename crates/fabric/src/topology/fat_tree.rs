//! Three tiers of switches of k ports (Al-Fares et al., SIGCOMM 2008).

use super::{Builder, Cable, TopologyError, at_least, hosts, running, switches};
use crate::plan::Network;

/// k pods of k/2 edge and k/2 aggregation switches, and (k/2)² core switches.
///
/// Edge switches `edge0` … and aggregation switches `agg0` … are numbered pod by pod; aggregation switch j of each pod
/// is linked to the cores j·k/2 … of `core0` …. With `oversubscription` r, an edge switch has r·k/2 hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// The arity: an even number.
    pub k: u32,
    /// Hosts of an edge switch over its uplinks.
    pub oversubscription: u32,
    /// The cable of each host.
    pub cable: Cable,
    /// The cables between switches.
    pub uplink: Cable,
}

impl FatTree {
    /// The network.
    ///
    /// # Errors
    /// If k is odd or zero, or a rate is zero.
    pub fn build(&self) -> Result<Network, TopologyError> {
        if self.k < 2 || !self.k.is_multiple_of(2) || self.k > 256 {
            return Err(TopologyError::new(
                "k",
                self.k,
                "an even number from 2 to 256",
            ));
        }
        at_least("oversubscription", self.oversubscription, 1)?;
        running("rate", self.cable.rate)?;
        running("uplink_rate", self.uplink.rate)?;
        let half = self.k / 2;
        let edge_count = self.k * half;
        let hosts_per_edge = half * self.oversubscription;
        let mut builder = Builder::default();
        let hosts = hosts(&mut builder, edge_count * hosts_per_edge, |host| {
            host / hosts_per_edge
        });
        let edges = switches(&mut builder, "edge", edge_count, 1);
        let aggregations = switches(&mut builder, "agg", edge_count, 2);
        let cores = switches(&mut builder, "core", half * half, 3);
        for (index, host) in hosts.iter().enumerate() {
            let edge = edges[index / hosts_per_edge as usize];
            builder.link(*host, edge, self.cable);
        }
        let half = half as usize;
        for (index, edge) in edges.iter().enumerate() {
            let pod = index / half;
            for aggregation in &aggregations[pod * half..(pod + 1) * half] {
                builder.link(*edge, *aggregation, self.uplink);
            }
        }
        for (index, aggregation) in aggregations.iter().enumerate() {
            let place = index % half;
            for core in &cores[place * half..(place + 1) * half] {
                builder.link(*aggregation, *core, self.uplink);
            }
        }
        builder.finish()
    }

    /// How many hosts there are: k³/4 without oversubscription.
    pub const fn host_count(&self) -> u32 {
        let half = self.k / 2;
        self.k * half * half * self.oversubscription
    }
}
