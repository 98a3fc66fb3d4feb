//! Names of ports for people: `leaf0:3` is port 3 of `leaf0`, and `leaf0:spine1` the port that leads to `spine1`.

use thiserror::Error;

use crate::plan::{Endpoint, Link, LinkId, Network, Node, NodeId, NodeKind, PortId};

/// Looks up nodes, ports, and what is at the other end of a link.
#[derive(Clone, Debug)]
pub struct Names<'a> {
    network: &'a Network,
    /// By node and port: the other end and the link.
    ends: Vec<Vec<Option<(Endpoint, LinkId)>>>,
}

/// A port that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PortNameError {
    /// No node has the name.
    #[error("there is no node `{found}`{}", nearest(.suggestion))]
    NoSuchNode {
        /// The name.
        found: String,
        /// The most similar one.
        suggestion: Option<String>,
    },
    /// The node has no such port.
    #[error("`{node}` has no port `{found}`: its ports are {ports}")]
    NoSuchPort {
        /// The node.
        node: String,
        /// What was asked for.
        found: String,
        /// What there is.
        ports: String,
    },
    /// The node has several ports.
    #[error("`{node}` has several ports, say which: {ports}")]
    Ambiguous {
        /// The node.
        node: String,
        /// What there is.
        ports: String,
    },
}

impl<'a> Names<'a> {
    /// Indexes the network.
    pub fn new(network: &'a Network) -> Self {
        let mut ends: Vec<Vec<Option<(Endpoint, LinkId)>>> = vec![Vec::new(); network.nodes.len()];
        for (index, link) in network.links.iter().enumerate() {
            for (this, other) in [(link.a, link.b), (link.b, link.a)] {
                let ports = &mut ends[this.node.index()];
                if ports.len() <= this.port.index() {
                    ports.resize(this.port.index() + 1, None);
                }
                ports[this.port.index()] = Some((other, LinkId(index as u32)));
            }
        }
        Self { network, ends }
    }

    /// The node.
    pub fn node(&self, id: NodeId) -> &'a Node {
        &self.network.nodes[id.index()]
    }

    /// Whether the node is a host.
    pub fn is_host(&self, id: NodeId) -> bool {
        matches!(self.node(id).kind, NodeKind::Host { .. })
    }

    /// `leaf0:3`; a host with one port goes by its bare name.
    pub fn port(&self, endpoint: Endpoint) -> String {
        let name = &self.node(endpoint.node).name;
        if self.is_host(endpoint.node) && self.ends[endpoint.node.index()].len() <= 1 {
            name.clone()
        } else {
            format!("{name}:{}", endpoint.port.0)
        }
    }

    /// The other end of the port's link.
    pub fn peer(&self, endpoint: Endpoint) -> Option<Endpoint> {
        self.end(endpoint).map(|(peer, _)| peer)
    }

    /// The port's link.
    pub fn link(&self, endpoint: Endpoint) -> Option<&'a Link> {
        self.end(endpoint)
            .map(|(_, link)| &self.network.links[link.0 as usize])
    }

    /// All ports that have a link, by node and port.
    pub fn ports(&self) -> impl Iterator<Item = Endpoint> + '_ {
        self.ends.iter().enumerate().flat_map(|(node, ports)| {
            let linked = ports.iter().enumerate().filter(|(_, end)| end.is_some());
            linked.map(move |(port, _)| endpoint(node, port))
        })
    }

    /// The port that a person means: `leaf0:3`; the one that leads to a node as `leaf0>spine1` or, easier to type in a
    /// shell, `leaf0:spine1`; or the name of a node with one port.
    ///
    /// # Errors
    /// If there is no such port, with what there is.
    pub fn find(&self, text: &str) -> Result<Endpoint, PortNameError> {
        if let Some(node) = self.node_named(text) {
            return match self.ends[node].len() {
                1 => Ok(endpoint(node, 0)),
                _ => Err(PortNameError::Ambiguous {
                    node: text.to_owned(),
                    ports: self.ports_of(node),
                }),
            };
        }
        let (node_name, port_name) = text.rsplit_once([':', '>']).unwrap_or((text, ""));
        let Some(node) = self.node_named(node_name) else {
            return Err(PortNameError::NoSuchNode {
                found: node_name.to_owned(),
                suggestion: self.nearest_node(node_name),
            });
        };
        let by_number = port_name
            .parse()
            .ok()
            .filter(|&port: &usize| self.ends[node].get(port).is_some_and(Option::is_some));
        let by_peer = || {
            self.ends[node]
                .iter()
                .position(|end| end.is_some_and(|(peer, _)| self.node(peer.node).name == port_name))
        };
        by_number
            .or_else(by_peer)
            .map(|port| endpoint(node, port))
            .ok_or_else(|| PortNameError::NoSuchPort {
                node: node_name.to_owned(),
                found: port_name.to_owned(),
                ports: self.ports_of(node),
            })
    }

    fn end(&self, endpoint: Endpoint) -> Option<(Endpoint, LinkId)> {
        *self
            .ends
            .get(endpoint.node.index())?
            .get(endpoint.port.index())?
    }

    fn node_named(&self, name: &str) -> Option<usize> {
        self.network.nodes.iter().position(|node| node.name == name)
    }

    fn nearest_node(&self, name: &str) -> Option<String> {
        let scored = self
            .network
            .nodes
            .iter()
            .map(|node| (strsim::jaro_winkler(&node.name, name), &node.name));
        scored
            .filter(|(score, _)| *score > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, name)| name.clone())
    }

    /// `0 (to host0), 1 (to host1), …`, at most eight.
    fn ports_of(&self, node: usize) -> String {
        let ports: Vec<String> = self.ends[node]
            .iter()
            .enumerate()
            .filter_map(|(port, end)| Some((port, (*end)?.0)))
            .map(|(port, peer)| format!("{port} (to {})", self.node(peer.node).name))
            .collect();
        match ports.len() {
            0..=8 => ports.join(", "),
            count => format!("{}, … {count} in all", ports[..8].join(", ")),
        }
    }
}

fn endpoint(node: usize, port: usize) -> Endpoint {
    Endpoint {
        node: NodeId(node as u32),
        port: PortId(port as u16),
    }
}

fn nearest(suggestion: &Option<String>) -> String {
    match suggestion {
        Some(name) => format!(": did you mean `{name}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use softfabric_units::{Rate, Span};

    use super::*;

    fn star() -> Network {
        let mut network = Network::default();
        let switch = network.add_node("switch", NodeKind::Switch { profile: 0 }, 1);
        for name in ["host0", "host1"] {
            let kind = NodeKind::Host {
                profile: 0,
                subnet: 0,
            };
            let host = network.add_node(name, kind, 0);
            network.connect(host, switch, Rate::gbps(100), Span::nanos(500));
        }
        network
    }

    #[test]
    fn ports_by_number_by_peer_and_alone() {
        let network = star();
        let names = Names::new(&network);
        for (text, found) in [
            ("switch:1", endpoint(0, 1)),
            ("switch:host1", endpoint(0, 1)),
            ("switch>host1", endpoint(0, 1)),
            ("host1", endpoint(2, 0)),
            ("host1:0", endpoint(2, 0)),
        ] {
            assert_eq!(names.find(text), Ok(found), "{text}");
        }
        assert_eq!(names.port(endpoint(0, 1)), "switch:1");
        assert_eq!(names.port(endpoint(2, 0)), "host1");
        assert_eq!(names.peer(endpoint(2, 0)), Some(endpoint(0, 1)));
        assert_eq!(names.ports().count(), 4);
    }

    #[test]
    fn wrong_names_say_what_there_is() {
        let network = star();
        let names = Names::new(&network);
        for (text, words) in [
            ("switch", "0 (to host0), 1 (to host1)"),
            ("switch:2", "no port `2`"),
            ("switsh:1", "did you mean `switch`?"),
            ("moon", "no node `moon`"),
        ] {
            let error = names.find(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
