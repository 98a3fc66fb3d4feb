//! An InfiniBand subnet as ibnetdiscover or ibsim write it, as a topology of counters: nodes, ports and cables by the names that
//! recordings of hosts use.
//!
//! ```text
//! Ca "H-…"  # "gpu17 mlx5_0"   ──► host gpu17, port gpu17:mlx5_0
//! Switch "S-…" # "leaf0"       ──► switch leaf0, ports leaf0:1, leaf0:2 …
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use softfabric_operations::recording::{Recording, Skipped};
use softfabric_operations::topology::TopologyError;
use softfabric_operations::{History, LinkLayer, NodeKind, Topology};
use softfabric_subnet::format::{link_rate, read_topology};
use softfabric_subnet::{Node, NodeId, Subnet};

use super::contradiction;
use crate::failure::Failure;

/// The subnet of a file, as a recording without samples.
///
/// # Errors
/// If the file cannot be read, is none, or two of its adapters have one name.
pub(super) fn read(path: &Path) -> Result<Recording, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::unreadable(path, error))?;
    let name = path.display().to_string();
    let subnet = read_topology(&text, &name).map_err(|error| Failure::WrongKind {
        path: path.to_owned(),
        problem: error.to_string(),
        help: "ibnetdiscover > subnet.txt writes such a file.".to_owned(),
    })?;
    let topology = topology(&subnet).map_err(|error| contradiction(&error))?;
    Ok(Recording {
        about: name,
        history: History::new(&topology),
        topology,
        skipped: Skipped::default(),
        start_unix_ns: 0,
    })
}

/// What a node and its ports are called.
struct Names {
    node: String,
    /// The name of a port is this one; that of a switch, and of an adapter with several ports, has its number behind it.
    ports: String,
}

fn topology(subnet: &Subnet) -> Result<Topology, TopologyError> {
    let mut topology = Topology::new(LinkLayer::Infiniband);
    let names = names(subnet);
    let mut places = BTreeMap::new();
    for (id, node) in subnet.nodes() {
        let kind = match node.is_switch() {
            true => NodeKind::Switch,
            false => NodeKind::Host,
        };
        let names = &names[&id];
        // The adapters of a host are one host.
        let place = match topology.find_node(&names.node) {
            Some(known) if kind == NodeKind::Host && topology.node(known).kind == kind => known,
            _ => topology.add_node(names.node.clone(), kind)?,
        };
        for (at, port) in subnet.external_ports(id) {
            if port.peer().is_none() {
                continue;
            }
            let name = match (kind, node.ports) {
                (NodeKind::Host, 1) => names.ports.clone(),
                (NodeKind::Host, _) => format!("{}/{}", names.ports, at.port),
                (NodeKind::Switch, _) => format!("{}:{}", names.ports, at.port),
            };
            places.insert(at, topology.add_port(place, name, link_rate(port))?);
        }
    }
    for (here, there) in subnet.cables() {
        if let (Some(&here), Some(&there)) = (places.get(&here), places.get(&there)) {
            topology.connect(here, there)?;
        }
    }
    Ok(topology)
}

/// Descriptions, as drivers and people write them; identifiers where several switches have one description, or none.
fn names(subnet: &Subnet) -> BTreeMap<NodeId, Names> {
    let descriptions = || subnet.nodes().map(|(_, node)| node.description.trim());
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<&str> = descriptions().filter(|text| !seen.insert(*text)).collect();
    let of_node = |(id, node): (NodeId, &Node)| {
        let description = node.description.trim();
        let is_known = !description.is_empty() && !twice.contains(description);
        let names = match description.split_once(' ') {
            _ if !is_known => Names {
                node: node.id.clone(),
                ports: node.id.clone(),
            },
            // Linux says `HOST DEVICE`.
            Some((host, device)) if !node.is_switch() && !device.contains(' ') => Names {
                node: host.to_owned(),
                ports: format!("{host}:{device}"),
            },
            _ => Names {
                node: description.to_owned(),
                ports: description.to_owned(),
            },
        };
        (id, names)
    };
    subnet.nodes().map(of_node).collect()
}

#[cfg(test)]
mod tests {
    use softfabric_subnet::format::write_ibnetdiscover;

    use super::*;

    /// One leaf with a host of two adapters, and two switches of one description.
    fn file() -> String {
        let net = r#"
Switch 4 "S-1" # "leaf0"
[1] "H-1"[1]
[2] "H-2"[1]
[3] "S-2"[1]
[4] "S-3"[1]

Switch 4 "S-2" # "spine"
[1] "S-1"[3]

Switch 4 "S-3" # "spine"
[1] "S-1"[4]

Ca 1 "H-1" # "gpu17 mlx5_0"
[1] "S-1"[1]

Ca 1 "H-2" # "gpu17 mlx5_1"
[1] "S-1"[2]
"#;
        let mut subnet = read_topology(net, "made.net").unwrap();
        let describe = [("S-1", "leaf0"), ("S-2", "spine"), ("S-3", "spine")];
        let adapters = [("H-1", "gpu17 mlx5_0"), ("H-2", "gpu17 mlx5_1")];
        for (id, description) in describe.into_iter().chain(adapters) {
            let node = subnet.find(id).unwrap();
            subnet.node_mut(node).description = description.to_owned();
        }
        write_ibnetdiscover(&subnet)
    }

    #[test]
    fn a_subnet_has_the_names_of_recordings() {
        let subnet = read_topology(&file(), "subnet.txt").unwrap();
        let topology = topology(&subnet).unwrap();
        let host = topology.find_node("gpu17").unwrap();
        assert_eq!(topology.node(host).ports.len(), 2);
        assert_eq!(topology.link_layer, LinkLayer::Infiniband);
        let port = |name: &str| {
            let port = topology.find_port(name);
            port.unwrap_or_else(|| panic!("{name} of {:?}", topology.ports()))
        };
        let (adapter, leaf) = (port("gpu17:mlx5_1"), port("leaf0:2"));
        assert_eq!(topology.peer(adapter), Some(leaf));
        assert!(topology.port(leaf).rate.is_some());
        // Two are called spine: what tells them apart is their identifier.
        let spine = topology.peer(port("leaf0:3")).unwrap();
        assert!(topology.owner(spine).name.starts_with("S-"));
        assert_eq!(topology.find_node("spine"), None);
    }
}
