//! Switches in a row, in a ring, or alone.

use super::{Builder, Cable, TopologyError, at_least, hosts, running, switches};
use crate::plan::{Network, NodeId};

/// Hosts `h0`, `h1` … on one switch `s0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Star {
    /// How many hosts.
    pub hosts: u32,
    /// The cable of each.
    pub cable: Cable,
}

impl Star {
    /// The network.
    ///
    /// # Errors
    /// If there are fewer than two hosts, or the rate is zero.
    pub fn build(&self) -> Result<Network, TopologyError> {
        at_least("hosts", self.hosts, 2)?;
        running("rate", self.cable.rate)?;
        let mut builder = Builder::default();
        let hosts = hosts(&mut builder, self.hosts, |_| 0);
        let switch = builder.switch("s0", 1);
        for host in hosts {
            builder.link(host, switch, self.cable);
        }
        builder.finish()
    }
}

/// Hosts on both sides of one link between `s0` and `s1`; those on the left come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dumbbell {
    /// How many hosts on `s0`.
    pub left: u32,
    /// How many hosts on `s1`.
    pub right: u32,
    /// The cable of each host.
    pub cable: Cable,
    /// The cable between the switches.
    pub bottleneck: Cable,
}

impl Dumbbell {
    /// The network.
    ///
    /// # Errors
    /// If a side has no host, or a rate is zero.
    pub fn build(&self) -> Result<Network, TopologyError> {
        at_least("left", self.left, 1)?;
        at_least("right", self.right, 1)?;
        running("rate", self.cable.rate)?;
        running("trunk_rate", self.bottleneck.rate)?;
        let (network, _) = row(&[self.left, self.right], self.cable, self.bottleneck, false)?;
        Ok(network)
    }
}

/// Switches `s0`, `s1` … in a row, with hosts on each; hosts are numbered along the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkingLot {
    /// How many hosts on each switch.
    pub hosts: Vec<u32>,
    /// The cable of each host.
    pub cable: Cable,
    /// The cables between switches.
    pub trunk: Cable,
}

impl ParkingLot {
    /// The network.
    ///
    /// # Errors
    /// If there are fewer than two switches, or a rate is zero.
    pub fn build(&self) -> Result<Network, TopologyError> {
        if self.hosts.len() < 2 {
            let found = format!("{:?}", self.hosts);
            return Err(TopologyError::new(
                "hosts",
                found,
                "one number for each of two or more switches, such as [3, 2]",
            ));
        }
        running("rate", self.cable.rate)?;
        running("trunk_rate", self.trunk.rate)?;
        let (network, _) = row(&self.hosts, self.cable, self.trunk, false)?;
        Ok(network)
    }
}

/// Switches `s0`, `s1` … in a ring, with hosts on each; hosts are numbered along the ring.
///
/// Shortest paths cross at most half of the ring. Whether a deadlock can form depends on the paths: flows may name
/// them, and clockwise ones close the cycle of buffers; up-down routing breaks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// How many switches.
    pub switches: u32,
    /// How many hosts on each.
    pub hosts_per_switch: u32,
    /// The cable of each host.
    pub cable: Cable,
    /// The cables between switches.
    pub trunk: Cable,
}

impl Ring {
    /// The network, and its switches in clockwise order.
    ///
    /// # Errors
    /// If there are fewer than three switches, no hosts, or a rate is zero.
    pub fn build(&self) -> Result<(Network, Vec<NodeId>), TopologyError> {
        at_least("switches", self.switches, 3)?;
        at_least("hosts_per_switch", self.hosts_per_switch, 1)?;
        running("rate", self.cable.rate)?;
        running("trunk_rate", self.trunk.rate)?;
        let hosts = vec![self.hosts_per_switch; self.switches as usize];
        row(&hosts, self.cable, self.trunk, true)
    }
}

fn row(
    hosts_of: &[u32],
    cable: Cable,
    trunk: Cable,
    closed: bool,
) -> Result<(Network, Vec<NodeId>), TopologyError> {
    let home: Vec<u32> = (0u32..)
        .zip(hosts_of)
        .flat_map(|(switch, count)| std::iter::repeat_n(switch, *count as usize))
        .collect();
    at_least("hosts", home.len() as u32, 2)?;
    let mut builder = Builder::default();
    let hosts = hosts(&mut builder, home.len() as u32, |host| home[host as usize]);
    let switches = switches(&mut builder, "s", hosts_of.len() as u32, 1);
    for (host, switch) in hosts.iter().zip(&home) {
        builder.link(*host, switches[*switch as usize], cable);
    }
    for pair in switches.windows(2) {
        builder.link(pair[0], pair[1], trunk);
    }
    if closed {
        builder.link(switches[switches.len() - 1], switches[0], trunk);
    }
    Ok((builder.finish()?, switches))
}
