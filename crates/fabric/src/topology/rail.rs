//! Servers with several NICs, each on a rail of its own; each NIC's ports, each on a plane of its own.

use super::{Builder, Cable, TopologyError, at_least, hosts, running};
use crate::plan::{Network, NodeId};

/// Servers `h0` … with a NIC for each rail, and each NIC with a port for each plane. Rail r of plane p has leaves
/// `rail{r}leaf{l}` (with several planes `plane{p}rail{r}leaf{l}`), each for some servers; spines `spine{s}` (`plane{p}spine{s}`) link all
/// leaves of a plane. A server's port for rail r and plane p is r · planes + p.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RailOptimised {
    /// How many servers.
    pub servers: u32,
    /// How many rails: NICs of a server.
    pub rails: u32,
    /// How many planes: ports of a NIC.
    pub planes: u32,
    /// How many servers hang on one leaf.
    pub servers_per_leaf: u32,
    /// How many spines each plane has; none: rails do not reach each other.
    pub spines: u32,
    /// The cable of each port of a NIC.
    pub cable: Cable,
    /// The cables between leaf and spine.
    pub uplink: Cable,
}

impl RailOptimised {
    /// How many leaves each rail of a plane has.
    pub fn leaves(&self) -> u32 {
        self.servers.div_ceil(self.servers_per_leaf.max(1))
    }

    /// The network.
    ///
    /// # Errors
    /// If a count or a rate is zero, or if a rail has several leaves and no spine.
    pub fn build(&self) -> Result<Network, TopologyError> {
        at_least("servers", self.servers, 1)?;
        at_least("rails", self.rails, 1)?;
        at_least("planes", self.planes, 1)?;
        at_least("servers_per_leaf", self.servers_per_leaf, 1)?;
        running("rate", self.cable.rate)?;
        running("trunk_rate", self.uplink.rate)?;
        let leaves = self.leaves();
        if leaves > 1 && self.spines == 0 {
            let needed = format!("1 or more, as each rail has {leaves} leaves");
            return Err(TopologyError::new("spines", 0, needed));
        }
        let mut builder = Builder::default();
        let servers = hosts(&mut builder, self.servers, |server| {
            server / self.servers_per_leaf
        });
        let plane_name = |plane: u32| match self.planes {
            1 => String::new(),
            _ => format!("plane{plane}"),
        };
        let mut leaf = |plane: u32, rail: u32, number: u32| {
            let name = format!("{}rail{rail}leaf{number}", plane_name(plane));
            builder.switch(name, 1)
        };
        let mut rows: Vec<Vec<NodeId>> = Vec::new();
        for rail in 0..self.rails {
            for plane in 0..self.planes {
                rows.push(
                    (0..leaves)
                        .map(|number| leaf(plane, rail, number))
                        .collect(),
                );
            }
        }
        let spines: Vec<Vec<NodeId>> = (0..self.planes)
            .map(|plane| {
                (0..self.spines)
                    .map(|spine| builder.switch(format!("{}spine{spine}", plane_name(plane)), 2))
                    .collect()
            })
            .collect();
        for (number, server) in (0..).zip(&servers) {
            for row in &rows {
                let leaf = row[(number / self.servers_per_leaf) as usize];
                builder.link(*server, leaf, self.cable);
            }
        }
        for (place, row) in rows.iter().enumerate() {
            for leaf in row {
                for spine in &spines[place % self.planes as usize] {
                    builder.link(*leaf, *spine, self.uplink);
                }
            }
        }
        builder.finish()
    }
}
