//! Subnets by rule: fat trees, tori, random graphs. Ports are cabled in the same way at every switch of a kind.

use softfabric_units::{Guid, Random};
use thiserror::Error;

use crate::subnet::{BuildError, NodeId, NodeKind, PortRef, Subnet};

const FIRST_HOST: u64 = 0x10_0000;
const FIRST_SWITCH: u64 = 0x20_0000;

/// Why there is no such subnet.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum GenerateError {
    /// A fat tree needs an even radix, and 2 or 3 levels.
    #[error(
        "a fat tree has 2 or 3 levels of switches with an even number of ports from 2 to 254; asked for {levels} levels of {radix} ports"
    )]
    FatTree {
        /// Ports of a switch.
        radix: u8,
        /// Levels of switches.
        levels: u8,
    },
    /// A torus needs dimensions, and ports for them.
    #[error(
        "a torus has 1 to 4 dimensions of at least 2 switches, and at most 254 ports at each; asked for {dimensions:?} with {hosts} hosts at each switch"
    )]
    Torus {
        /// Switches in each dimension.
        dimensions: Vec<u8>,
        /// Hosts at each switch.
        hosts: u8,
    },
    /// More cables than ports.
    #[error(
        "a random subnet of {switches} switches with {degree} cables and {hosts} hosts each: needs at least 2 switches and cables, and at most 254 ports"
    )]
    Random {
        /// Switches.
        switches: u32,
        /// Cables to other switches at each.
        degree: u8,
        /// Hosts at each.
        hosts: u8,
    },
    /// A rule that contradicts itself.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Adds nodes with running GUIDs.
#[derive(Default)]
struct Builder {
    subnet: Subnet,
    hosts: u64,
    switches: u64,
}

impl Builder {
    fn switch(&mut self, ports: u8, id: &str) -> Result<NodeId, BuildError> {
        let guid = Guid(FIRST_SWITCH + self.switches);
        self.switches += 1;
        self.subnet.add_node(NodeKind::Switch, guid, ports, id)
    }

    /// A host with one port, cabled to `port` of `switch`.
    fn host(&mut self, node: NodeId, port: u8) -> Result<(), BuildError> {
        let id = format!("H-{:05}", self.hosts);
        let guid = Guid(FIRST_HOST + 2 * self.hosts);
        self.hosts += 1;
        let host = self.subnet.add_node(NodeKind::Adapter, guid, 1, &id)?;
        self.subnet.node_mut(host).description = format!("{id} HCA-1");
        self.cable((node, port), (host, 1))
    }

    fn cable(&mut self, left: (NodeId, u8), right: (NodeId, u8)) -> Result<(), BuildError> {
        let end = |(node, port)| PortRef { node, port };
        self.subnet.connect(end(left), end(right))
    }
}

/// A full fat tree of switches with `radix` ports: of 3 levels radix³/4 hosts, of 2 levels radix²/2.
///
/// Ports 1 to radix/2 lead down, the others up; those of the top all lead down.
///
/// # Errors
/// If there is no such tree.
pub fn fat_tree(radix: u8, levels: u8) -> Result<Subnet, GenerateError> {
    let half = radix / 2;
    if !radix.is_multiple_of(2) || half == 0 || radix == u8::MAX || !matches!(levels, 2 | 3) {
        return Err(GenerateError::FatTree { radix, levels });
    }
    let mut builder = Builder::default();
    let pods = if levels == 3 { radix } else { 1 };
    let leaves_of_a_pod = if levels == 3 { half } else { radix };
    let mut middles = Vec::new();
    for pod in 0..pods {
        let leaves = (0..leaves_of_a_pod)
            .map(|leaf| builder.switch(radix, &format!("L1-{pod:02}-{leaf:02}")))
            .collect::<Result<Vec<_>, _>>()?;
        for leaf in &leaves {
            for port in 1..=half {
                builder.host(*leaf, port)?;
            }
        }
        for middle in 0..half {
            let node = builder.switch(radix, &format!("L2-{pod:02}-{middle:02}"))?;
            for (port, leaf) in (1..).zip(&leaves) {
                builder.cable((*leaf, half + 1 + middle), (node, port))?;
            }
            middles.push(node);
        }
    }
    if levels == 3 {
        for top in 0..u32::from(half) * u32::from(half) {
            let node = builder.switch(radix, &format!("L3-{top:04}"))?;
            let (plane, place) = (top / u32::from(half), (top % u32::from(half)) as u8);
            for pod in 0..radix {
                let middle = middles[usize::from(pod) * usize::from(half) + plane as usize];
                builder.cable((middle, half + 1 + place), (node, pod + 1))?;
            }
        }
    }
    Ok(builder.subnet)
}

/// A torus with `hosts` hosts at each switch. Ports 2d + 1 and 2d + 2 lead forward and back in dimension d.
///
/// # Errors
/// If there is no such torus.
pub fn torus(dimensions: &[u8], hosts: u8) -> Result<Subnet, GenerateError> {
    let count = dimensions.len();
    let ports = 2 * count + usize::from(hosts);
    if !(1..=4).contains(&count) || dimensions.iter().any(|size| *size < 2) || ports > 254 {
        return Err(GenerateError::Torus {
            dimensions: dimensions.to_vec(),
            hosts,
        });
    }
    let mut builder = Builder::default();
    let total: usize = dimensions.iter().map(|size| usize::from(*size)).product();
    let place = |mut index: usize| -> Vec<usize> {
        let mut place = vec![0; count];
        for (coordinate, size) in place.iter_mut().zip(dimensions).rev() {
            *coordinate = index % usize::from(*size);
            index /= usize::from(*size);
        }
        place
    };
    let mut switches = Vec::with_capacity(total);
    for index in 0..total {
        let name: Vec<String> = place(index).iter().map(usize::to_string).collect();
        switches.push(builder.switch(ports as u8, &format!("T-{}", name.join("-")))?);
    }
    for (index, switch) in switches.iter().enumerate() {
        let mut stride = total;
        for (dimension, size) in dimensions.iter().enumerate() {
            let size = usize::from(*size);
            stride /= size;
            let here = index / stride % size;
            let next = index - here * stride + (here + 1) % size * stride;
            let port = 2 * dimension as u8 + 1;
            builder.cable((*switch, port), (switches[next], port + 1))?;
        }
        for host in 0..hosts {
            builder.host(*switch, 2 * count as u8 + 1 + host)?;
        }
    }
    Ok(builder.subnet)
}

/// A connected random graph: a ring, and cables between random switches until each has `degree` or no pair is free.
///
/// # Errors
/// If there are not enough ports or switches.
pub fn random(switches: u32, degree: u8, hosts: u8, seed: u64) -> Result<Subnet, GenerateError> {
    let ports = u16::from(degree) + u16::from(hosts);
    if switches < 2 || degree < 2 || ports > 254 {
        return Err(GenerateError::Random {
            switches,
            degree,
            hosts,
        });
    }
    let mut builder = Builder::default();
    let mut random = Random::stream(seed, 0);
    let all = (0..switches)
        .map(|index| builder.switch(ports as u8, &format!("R-{index:04}")))
        .collect::<Result<Vec<_>, _>>()?;
    let mut used = vec![0_u8; all.len()];
    let mut cable = |builder: &mut Builder, left: usize, right: usize| {
        for end in [left, right] {
            used[end] += 1;
        }
        builder.cable((all[left], used[left]), (all[right], used[right]))?;
        Ok::<_, BuildError>([used[left], used[right]])
    };
    let mut free: Vec<usize> = (0..all.len()).collect();
    for left in 0..all.len() {
        cable(&mut builder, left, (left + 1) % all.len())?;
    }
    free.retain(|_| degree > 2);
    while free.len() > 1 {
        let mut pick = || random.below(free.len() as u64) as usize;
        let (one, two) = (pick(), pick());
        if one == two {
            continue;
        }
        let [left, right] = cable(&mut builder, free[one], free[two])?;
        let full = [(one, left), (two, right)];
        let mut gone: Vec<usize> = full
            .into_iter()
            .filter(|(_, used)| *used == degree)
            .map(|(place, _)| place)
            .collect();
        gone.sort_unstable();
        while let Some(place) = gone.pop() {
            free.swap_remove(place);
        }
    }
    for switch in &all {
        for host in 0..hosts {
            builder.host(*switch, degree + 1 + host)?;
        }
    }
    Ok(builder.subnet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(subnet: &Subnet) -> (usize, usize, usize) {
        let switches = subnet.nodes().filter(|(_, node)| node.is_switch()).count();
        (
            subnet.nodes().len() - switches,
            switches,
            subnet.cables().count(),
        )
    }

    #[test]
    fn sizes_by_arithmetic() {
        assert_eq!(sizes(&fat_tree(8, 3).unwrap()), (128, 80, 3 * 128));
        assert_eq!(sizes(&fat_tree(8, 2).unwrap()), (32, 12, 2 * 32));
        assert_eq!(
            sizes(&torus(&[4, 4, 4], 2).unwrap()),
            (128, 64, 128 + 3 * 64)
        );
        assert_eq!(sizes(&torus(&[2, 3], 1).unwrap()), (6, 6, 6 + 12));
        let (hosts, switches, cables) = sizes(&random(20, 6, 2, 1).unwrap());
        assert_eq!((hosts, switches), (40, 20));
        assert!((40 + 55..=40 + 60).contains(&cables), "{cables}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(matches!(fat_tree(7, 3), Err(GenerateError::FatTree { .. })));
        assert!(matches!(fat_tree(8, 4), Err(GenerateError::FatTree { .. })));
        assert!(matches!(
            torus(&[4, 1], 1),
            Err(GenerateError::Torus { .. })
        ));
        assert!(matches!(
            random(1, 2, 1, 0),
            Err(GenerateError::Random { .. })
        ));
    }
}
