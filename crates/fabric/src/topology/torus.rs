//! Switches in a torus: a ring in each dimension.

use super::{Builder, Cable, TopologyError, at_least, hosts, running, switches};
use crate::plan::{Network, NodeId, PortId};

/// Switches `s0`, `s1` … in a torus, with hosts on each; hosts are numbered switch by switch, and switches with the last
/// dimension running fastest.
///
/// All switches are cabled alike: after the ports of hosts, ports 2d and 2d + 1 of these lead forward and back in
/// dimension d.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    /// How many switches each dimension has.
    pub dimensions: Vec<u32>,
    /// How many hosts on each.
    pub hosts_per_switch: u32,
    /// The cable of each host.
    pub cable: Cable,
    /// The cables between switches.
    pub trunk: Cable,
}

const MOST_DIMENSIONS: usize = 4;

impl Torus {
    /// How many switches a torus of these dimensions has: their product.
    pub fn switches(dimensions: &[u32]) -> u64 {
        let sizes = dimensions.iter().map(|size| u64::from(*size));
        sizes.fold(1, u64::saturating_mul)
    }

    /// The network.
    ///
    /// # Errors
    /// If a dimension has fewer than three switches, there are none or too many dimensions, no hosts, or a rate is zero.
    pub fn build(&self) -> Result<Network, TopologyError> {
        let sizes = &self.dimensions;
        if !(1..=MOST_DIMENSIONS).contains(&sizes.len()) || sizes.iter().any(|size| *size < 3) {
            let found = format!("{sizes:?}");
            return Err(TopologyError::new(
                "dimensions",
                found,
                "one to four numbers, each 3 or more, such as [4, 4, 4]",
            ));
        }
        at_least("hosts_per_switch", self.hosts_per_switch, 1)?;
        running("rate", self.cable.rate)?;
        running("trunk_rate", self.trunk.rate)?;
        let per = self.hosts_per_switch;
        let count = Self::switches(sizes) as u32;
        let mut builder = Builder::default();
        let hosts = hosts(&mut builder, count * per, |host| host / per);
        let switches = switches(&mut builder, "s", count, 1);
        for (index, host) in (0..).zip(hosts) {
            builder.link(host, switches[(index / per) as usize], self.cable);
        }
        let mut stride = count;
        for (dimension, size) in (0..).zip(sizes) {
            stride /= size;
            let forward = per + 2 * dimension;
            for index in 0..count {
                let place = index / stride % size;
                let next = index - place * stride + (place + 1) % size * stride;
                let [a, b]: [NodeId; 2] = [index, next].map(|index| switches[index as usize]);
                // More ports than can be numbered wrap here, and are refused by `finish`.
                let ports = [forward, forward + 1].map(|port| Some(PortId(port as u16)));
                builder.link_by_ports((a, ports[0]), (b, ports[1]), self.trunk);
            }
        }
        builder.finish()
    }
}
